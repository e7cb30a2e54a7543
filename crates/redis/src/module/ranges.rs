//! Commands on ranges. A range that is longer than the threshold is read on a thread of the module
//! ([`super::jobs`]).

use super::api::{Call, Failure, Reply};
use super::jobs::{Work, settings, submit};
use crate::aggregate::{Aggregate, Operation};
use crate::map::{Bounds, ByteView, Entry};
use crate::request::{self, Cursor, Slice, behind};
use crate::scan::Scan;
use std::ops::{Bound, ControlFlow};

/// `OM.RANGE map min max [LIMIT offset count] [KEYSONLY]`
pub(super) fn range(call: Call<'_>) -> Result<(), Failure> {
    between(call, false)
}

/// `OM.REVRANGE map max min [LIMIT offset count] [KEYSONLY]`
pub(super) fn range_rev(call: Call<'_>) -> Result<(), Failure> {
    between(call, true)
}

fn between(call: Call<'_>, descends: bool) -> Result<(), Failure> {
    let mut words = call.words(2);
    let bounds = request::bounds(&mut words, descends)?;
    let slice = request::slice(&mut words)?;
    list(call, bounds, descends, slice)
}

/// `OM.PREFIX map prefix [LIMIT offset count] [KEYSONLY]`
pub(super) fn prefix(call: Call<'_>) -> Result<(), Failure> {
    let slice = request::slice(&mut call.words(3))?;
    let prefix = call.word(2);
    let behind = behind(prefix);
    let end = behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    list(call, (Bound::Included(prefix), end), false, slice)
}

/// Replies with entries of a range.
fn list(call: Call<'_>, bounds: Bounds<'_>, descends: bool, slice: Slice) -> Result<(), Failure> {
    let key = call.read();
    let Some(map) = key.map()? else {
        call.reply().array(0);
        return Ok(());
    };
    let threshold = settings().threshold();
    if slice.offset.saturating_add(slice.count) > threshold
        && map.len() > threshold
        && settings().leaves_loop(call)
    {
        let scan = Scan::new(bounds, descends);
        let mut probe = scan.clone();
        if !probe.step(&map.pin(), threshold, |_, _| ControlFlow::Continue(())) {
            return submit(call, &key, Work::List(Listing::new(scan, slice)));
        }
    }
    let view = map.pin();
    let few = slice.count.min(threshold);
    let entries: Vec<Entry<'_>> = if descends {
        collect(view.range_rev(bounds).skip(slice.offset).take(slice.count), few)
    } else {
        collect(view.range(bounds).skip(slice.offset).take(slice.count), few)
    };
    let reply = call.reply();
    reply.array(entries.len() * if slice.keys_only { 1 } else { 2 });
    for (key, value) in entries {
        reply.entry(key, value, slice.keys_only);
    }
    Ok(())
}

/// Collects entries into a list that has room for some from the start.
fn collect<'v>(entries: impl Iterator<Item = Entry<'v>>, few: usize) -> Vec<Entry<'v>> {
    let mut list = Vec::with_capacity(few.min(128));
    list.extend(entries);
    list
}

/// `OM.SCAN map cursor [COUNT n] [KEYSONLY]`
pub(super) fn scan(call: Call<'_>) -> Result<(), Failure> {
    let (count, keys_only) = request::scan_options(&mut call.words(3))?;
    let cursor = Cursor::parse(call.word(2))?;
    let key = call.read();
    let map = key.map()?;
    let from = match (&cursor, map) {
        (Cursor::Start, _) => Bound::Unbounded,
        (Cursor::Behind(id, key), Some(map)) if *id == map.id() => Bound::Excluded(*key),
        _ => {
            let sentence = "the cursor is of a map that was deleted, or of another process: \
                            begin with 0, or go on behind the last key with OM.RANGE map (key +";
            return Err(Failure::Sentence(sentence.into()));
        }
    };
    let reply = call.reply();
    reply.array(2);
    let Some(map) = map else {
        reply.bytes(b"0");
        reply.array(0);
        return Ok(());
    };
    let view = map.pin();
    let count = count.min(settings().threshold().max(1));
    let mut entries = view.range((from, Bound::Unbounded));
    let some: Vec<Entry<'_>> = entries.by_ref().take(count).collect();
    match (some.last(), entries.next()) {
        (Some((last, _)), Some(_)) => reply.bytes(&Cursor::text(map.id(), last)),
        _ => reply.bytes(b"0"),
    }
    reply.array(some.len() * if keys_only { 1 } else { 2 });
    for (key, value) in some {
        reply.entry(key, value, keys_only);
    }
    Ok(())
}

/// A result over the entries of a range, so far.
pub(super) enum Tally {
    /// Their number.
    Count(usize),
    /// Aggregates of their values, and the key of a value that is not a number.
    Aggregate(Aggregate, Vec<Operation>, Option<Vec<u8>>),
}

impl Tally {
    /// Adds the next `most` entries of a scan. Returns whether there are no more to add.
    pub(super) fn step(&mut self, scan: &mut Scan, view: &ByteView<'_>, most: usize) -> bool {
        match self {
            Self::Count(count) => scan.step(view, most, |_, _| {
                *count += 1;
                ControlFlow::Continue(())
            }),
            Self::Aggregate(aggregate, _, wrong) => scan.step(view, most, |key, value| {
                if aggregate.add(value).is_some() {
                    return ControlFlow::Continue(());
                }
                *wrong = Some(key.to_vec());
                ControlFlow::Break(())
            }),
        }
    }

    pub(super) fn reply(&self, reply: Reply) {
        match self {
            Self::Count(count) => reply.integer(*count),
            Self::Aggregate(_, _, Some(key)) => {
                let key = key[..key.len().min(40)].escape_ascii();
                reply.failure(&Failure::Sentence(format!(
                    "the value of key '{key}' is not a number: aggregate a range of numbers"
                )));
            }
            Self::Aggregate(aggregate, operations, None) => {
                reply.array(operations.len());
                for &operation in operations {
                    match aggregate.result(operation) {
                        Some(result) => reply.bytes(result.as_bytes()),
                        None => reply.null(),
                    }
                }
            }
        }
    }
}

/// `OM.COUNT map min max`
pub(super) fn count(call: Call<'_>) -> Result<(), Failure> {
    let bounds = request::bounds(&mut call.words(2), false)?;
    tally(call, bounds, Tally::Count(0))
}

/// `OM.AGG map min max operation [operation …]`
pub(super) fn aggregate(call: Call<'_>) -> Result<(), Failure> {
    let mut words = call.words(2);
    let bounds = request::bounds(&mut words, false)?;
    let operations = request::operations(&mut words)?;
    tally(call, bounds, Tally::Aggregate(Aggregate::default(), operations, None))
}

fn tally(call: Call<'_>, bounds: Bounds<'_>, mut tally: Tally) -> Result<(), Failure> {
    let key = call.read();
    if let Some(map) = key.map()? {
        let (mut scan, leaves) = (Scan::new(bounds, false), settings().leaves_loop(call));
        let most = if leaves { settings().threshold() } else { usize::MAX };
        if !tally.step(&mut scan, &map.pin(), most) {
            return submit(call, &key, Work::Tally(scan, tally));
        }
    }
    tally.reply(call.reply());
    Ok(())
}

/// `OM.DELRANGE map min max [COUNT n]`
pub(super) fn delete(call: Call<'_>) -> Result<(), Failure> {
    let mut words = call.words(2);
    let bounds = request::bounds(&mut words, false)?;
    let most = request::count(&mut words)?.unwrap_or(usize::MAX);
    let key = call.write();
    let removed = match key.map()? {
        Some(map) => map.remove_range(bounds, most)?,
        None => 0,
    };
    call.reply().integer(removed);
    call.removed(key, removed, c"om.delrange");
    Ok(())
}

/// Entries of a range on their way to a client.
pub(super) struct Listing {
    scan: Scan,
    slice: Slice,
    /// Whether the array is begun.
    begun: bool,
    /// The entries in it.
    sent: usize,
}

impl Listing {
    pub(super) fn new(scan: Scan, slice: Slice) -> Self {
        Self { scan, slice, begun: false, sent: 0 }
    }

    /// Replies with the next entries, and passes over those before the offset: `most` of both
    /// together. Returns whether there are no more.
    pub(super) fn step(&mut self, view: &ByteView<'_>, most: usize, reply: Reply) -> bool {
        self.begin(reply);
        if self.slice.offset > 0 {
            let passed = most.min(self.slice.offset);
            self.slice.offset -= passed;
            return self.scan.step(view, passed, |_, _| ControlFlow::Continue(()));
        }
        let (keys_only, most) = (self.slice.keys_only, most.min(self.slice.count - self.sent));
        let mut sent = 0;
        let over = self.scan.step(view, most, |key, value| {
            reply.entry(key, value, keys_only);
            sent += 1;
            ControlFlow::Continue(())
        });
        self.sent += sent;
        over || self.sent == self.slice.count
    }

    pub(super) fn finish(mut self, reply: Reply) {
        self.begin(reply);
        reply.end_array(self.sent * if self.slice.keys_only { 1 } else { 2 });
    }

    fn begin(&mut self, reply: Reply) {
        if !std::mem::replace(&mut self.begun, true) {
            reply.begin_array();
        }
    }
}
