//! Traces of the operations of a map: [`Map::record`](crate::Map::record).
//!
//! `silvics advise --trace FILE` measures indexes with the keys and operations of a trace. A map
//! that is not recorded pays nothing: recording is an index around the map's index, so the recorded
//! map has another type.
//!
//! # Format
//! A trace is JSON lines in ASCII or UTF-8. A key is as the index has it. Keys of up
//! to 64 bits are numbers in the order of the keys (the `i64` 0 is 2^63). Keys of up to 128 bits
//! are strings of decimal digits. Byte strings are strings if they are valid UTF-8, else
//! `{"hex": "00ff"}`.
//!
//! | line | meaning |
//! |---|---|
//! | `{"silvics_trace": 1, "key_type": "u64", "present": 3}` | the first line, with the version of the format |
//! | `{"present": KEY}` | a key that was present when the recording began, in ascending order |
//! | `{"op": "get", "thread": 0, "key": KEY}` | an operation on one key |
//! | `{"op": "get_many", "thread": 0, "keys": [KEY, …]}` | a batch: `get_many` or `insert_many` |
//! | `{"op": "scan", "thread": 0, "from": KEY, "entries": 7, "descending": false}` | a scan |
//! | `{"op": "first", "thread": 0, "key": KEY}` | `first`, `last`, `pop_first` or `pop_last`, with the key that it found, or `null` |
//! | `{"end": 1000}` | the last line, with the number of operations: without it the trace was cut short |
//!
//! * The first line names the form of keys (`u64`, `u128` or `bytes`) and how many are present.
//! * Operations on one key are `get`, `insert` (or replace), `try_insert` and `remove`. They are
//!   those that reach the index, by what they did: a `compute` is a `get` and then an `insert`, a
//!   `try_insert` or a `remove`, and a step that found another state is a `get`.
//! * A batch has at most 64 keys, because a map hands its index no more at once.
//! * `entries` is the number of entries that a scan read from the index. Owned ranges read ahead,
//!   and so does a range of a view if its values are not small.
//!   `from` is `null` if the scan began at an end.
//! * A line is written when its operation has returned, that of a scan when it is dropped. So lines
//!   of different threads may be in another order than the operations. An operation that failed
//!   has no line; a batch that failed has one with the keys before the failure.
//! * A map that is dropped before [`Recorder::finish`] adds the scans by which it finds its values.
//!
//! # Cost
//! All threads write through one lock, and a line takes some hundred nanoseconds. Record for
//! seconds, not for hours. Values are not recorded.

mod log;

pub(crate) use log::Begun;
pub use log::{RecordError, Recorder, TraceKey};

use crate::cursor::KeyCursor;
use crate::domain::{Domain, Guard};
use crate::encoding::IndexKey;
use crate::error::{AllocError, BulkLoadError, InsertManyError, Violation};
use crate::index::{
    Batches, Check, Create, KeyRef, Lookup, Options, OrderedEnds, OrderedIndex, OrderedScan,
};
use crate::map::MapIndex;
use crate::update::Update;
use log::Log;
use silvics_pool::PoolStats;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The index `I`, whose operations are recorded: see the [module](self).
pub struct Recording<I: Lookup> {
    inner: I,
    log: Arc<Log>,
}

type Bounds<'g, I> = (Bound<KeyRef<'g, I>>, Bound<KeyRef<'g, I>>);

impl<I: Lookup<Key: TraceKey>> Recording<I> {
    /// Records the operations of `inner` from now on.
    pub(crate) fn new(inner: I, log: Arc<Log>) -> Self {
        Self { inner, log }
    }

    fn key(&self, op: &str, key: KeyRef<'_, I>) {
        self.log.operation(op, |line| {
            line.extend(b", \"key\": ");
            I::Key::write(key, line);
        });
    }

    /// An operation on an end that has found an entry, or none.
    fn end<'g>(
        &'g self,
        op: &str,
        found: Option<(KeyRef<'g, I>, u64)>,
    ) -> Option<(KeyRef<'g, I>, u64)> {
        self.log.operation(op, |line| {
            line.extend(b", \"key\": ");
            match &found {
                Some((key, _)) => I::Key::write(I::Key::shorten(*key), line),
                None => line.extend(b"null"),
            }
        });
        found
    }

    /// A scan that is about to begin.
    fn scan<'g>(&'g self, from: Bound<KeyRef<'_, I>>, descends: bool) -> Scan<'g> {
        let mut text = Vec::new();
        match from {
            Bound::Included(key) | Bound::Excluded(key) => I::Key::write(key, &mut text),
            Bound::Unbounded => text.extend(b"null"),
        }
        Scan { log: &self.log, from: text, descends, entries: 0 }
    }
}

/// The name of an update that found a state.
fn done(verb: Update, found: Option<u64>) -> &'static str {
    match verb {
        Update::CompareExchange { expected, .. } if found != expected => "get",
        Update::Remove | Update::CompareExchange { new: None, .. } => "remove",
        Update::TryInsert(_) | Update::CompareExchange { expected: None, .. } => "try_insert",
        Update::Insert(_) | Update::CompareExchange { .. } => "insert",
    }
}

fn write_keys<'k, K: TraceKey + ?Sized>(
    log: &Log,
    op: &str,
    keys: impl Iterator<Item = K::Ref<'k>>,
) {
    log.operation(op, |line| {
        line.extend(b", \"keys\": [");
        for (at, key) in keys.enumerate() {
            line.extend(if at == 0 { &b""[..] } else { b", " });
            K::write(key, line);
        }
        line.push(b']');
    });
}

impl<I: Lookup + fmt::Debug> fmt::Debug for Recording<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recording").field(&self.inner).finish()
    }
}

/// A scan that is under way. Dropping it writes its line.
struct Scan<'g> {
    log: &'g Log,
    /// The key that it begins at, as JSON.
    from: Vec<u8>,
    descends: bool,
    entries: usize,
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        let Self { log, from, descends, entries } = self;
        log.operation("scan", |line| {
            line.extend(b", \"from\": ");
            line.extend(&*from);
            line.extend(format!(", \"entries\": {entries}, \"descending\": {descends}").as_bytes());
        });
    }
}

/// A range of a [`Recording`].
pub struct RecordedRange<'g, R> {
    inner: R,
    scan: Scan<'g>,
}

impl<R> fmt::Debug for RecordedRange<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordedRange({} entries so far)", self.scan.entries)
    }
}

impl<R: Iterator> Iterator for RecordedRange<'_, R> {
    type Item = R::Item;

    fn next(&mut self) -> Option<R::Item> {
        let next = self.inner.next();
        self.scan.entries += usize::from(next.is_some());
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

/// Makes an index that records nothing: a map is recorded by [`Map::record`](crate::Map::record).
impl<I: Create + Lookup<Key: TraceKey>> Create for Recording<I> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        Ok(Self::new(I::with_options(options)?, Log::closed()))
    }
}

impl<I: Lookup<Key: TraceKey>> Lookup for Recording<I> {
    type Key = I::Key;

    fn domain(&self) -> &Domain {
        self.inner.domain()
    }
    fn get(&self, key: KeyRef<'_, Self>, guard: &Guard) -> Option<u64> {
        let found = self.inner.get(I::Key::shorten(key), guard);
        self.key("get", key);
        found
    }
    fn len(&self) -> usize {
        self.inner.len()
    }
    fn len_snapshot(&self) -> Option<usize> {
        self.inner.len_snapshot()
    }
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.inner.pool_stats()
    }
}

impl<I: OrderedIndex<Key: TraceKey>> OrderedIndex for Recording<I> {
    fn update(
        &self,
        key: KeyRef<'_, Self>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let found = self.inner.update(I::Key::shorten(key), verb, guard)?;
        self.key(done(verb, found), key);
        Ok(found)
    }
    fn shrink(&self) -> usize {
        self.inner.shrink()
    }
}

impl<I: Batches<Key: TraceKey>> Batches for Recording<I> {
    fn get_many(&self, keys: &[KeyRef<'_, Self>], values: &mut [Option<u64>], guard: &Guard) {
        self.inner.get_many(keys, values, guard);
        write_keys::<I::Key>(&self.log, "get_many", keys.iter().copied());
    }
    fn insert_many(
        &self,
        entries: &[(KeyRef<'_, Self>, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let inserted = self.inner.insert_many(entries, replaced, guard);
        let done = inserted.as_ref().map_or_else(|error| error.done, |_| entries.len());
        let keys = entries.iter().take(done).map(|&(key, _)| key);
        write_keys::<I::Key>(&self.log, "insert_many", keys);
        inserted
    }
}

impl<I: OrderedScan<Key: TraceKey>> OrderedScan for Recording<I> {
    type Range<'g>
        = RecordedRange<'g, I::Range<'g>>
    where
        Self: 'g;
    type RangeRev<'g>
        = RecordedRange<'g, I::RangeRev<'g>>
    where
        Self: 'g;
    type Cursor = KeyCursor<Self>;

    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::Range<'g> {
        let (start, end) = (range.start_bound().cloned(), range.end_bound().cloned());
        let scan = self.scan(start, false);
        RecordedRange { inner: self.inner.range((start, end), guard), scan }
    }

    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g> {
        let (start, end) = (range.start_bound().cloned(), range.end_bound().cloned());
        let scan = self.scan(end, true);
        RecordedRange { inner: self.inner.range_rev((start, end), guard), scan }
    }

    fn cursor(self: &Arc<Self>) -> KeyCursor<Self> {
        KeyCursor::new(Arc::clone(self))
    }
}

impl<I: OrderedEnds<Key: TraceKey>> OrderedEnds for Recording<I> {
    fn first<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)> {
        self.end("first", self.inner.first(guard))
    }
    fn last<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)> {
        self.end("last", self.inner.last(guard))
    }
    fn pop_first<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError> {
        let found = self.inner.pop_first(guard)?;
        Ok(self.end("pop_first", found))
    }
    fn pop_last<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError> {
        let found = self.inner.pop_last(guard)?;
        Ok(self.end("pop_last", found))
    }
}

impl<I: Check + Lookup> Check for Recording<I> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.inner.check()
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        self.inner.reachable()
    }
    fn settle(&mut self) {
        self.inner.settle();
    }
}

// SAFETY: `I` keeps the contract, and its words, keys and results are passed on unchanged.
unsafe impl<I: MapIndex<Key: TraceKey>> MapIndex for Recording<I> {
    type Placement = I::Placement;

    fn load(
        &mut self,
        entries: &[(KeyRef<'_, Self>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        self.inner.load(entries, threads)
    }

    fn read_ahead<'g>(
        &'g self,
        bounds: Bounds<'g, I>,
        descends: bool,
        most: usize,
        guard: &'g Guard,
        mut each: impl FnMut(KeyRef<'g, Self>, u64),
    ) {
        let mut scan = self.scan(if descends { bounds.1 } else { bounds.0 }, descends);
        self.inner.read_ahead(bounds, descends, most, guard, |key, word| {
            scan.entries += 1;
            each(key, word);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Update, done};

    #[test]
    fn updates_are_named_by_what_they_did() {
        let exchange = |expected, new| Update::CompareExchange { expected, new };
        for (verb, found, name) in [
            (Update::Insert(1), Some(2), "insert"),
            (Update::TryInsert(1), Some(2), "try_insert"),
            (Update::Remove, None, "remove"),
            (exchange(Some(2), Some(1)), Some(2), "insert"),
            (exchange(None, Some(1)), None, "try_insert"),
            (exchange(Some(2), None), Some(2), "remove"),
            (exchange(Some(2), Some(1)), Some(3), "get"),
            (exchange(Some(2), None), None, "get"),
            (exchange(None, Some(1)), Some(3), "get"),
        ] {
            assert_eq!(done(verb, found), name, "{verb:?} found {found:?}");
        }
    }
}
