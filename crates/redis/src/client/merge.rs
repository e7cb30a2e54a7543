//! The cursor that merges shards.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Bound;
use std::vec;

use super::{Entry, Page, Pages, Scan};

/// A cursor over the entries of all shards in key order. [`Scan::merge`] makes one.
///
/// # Guarantee
///
/// * A key that is in its shard for the whole duration of the scan is returned once. A key that is
///   in no shard for all of it is not returned. A key that comes or goes meanwhile is returned once
///   or not at all.
/// * The keys are in ascending or descending order of their bytes, over all shards together, as
///   if one map had all of them. Also with concurrent writes, no key is before an earlier one.
/// * A value is one that its key had at a moment between the start of the scan and its return.
///
/// A scan is not a snapshot. Each page is read at its own moment, and an entry of a page may be
/// changed or removed before it is returned. If one client first writes to shard A and then to
/// shard B, a scan may return the second write without the first.
///
/// The shards have to have different keys, as [`Shards`](super::Shards) ensures. If several shards
/// have an equal key, the cursor returns it once for each of them, the shard with the smaller
/// number first.
///
/// # Failures
///
/// The cursor holds its position itself, as the last key that it read of each shard. The servers
/// hold none. So it goes on after a failover, after a reconnection, and while slots move to other
/// nodes. If a failover loses writes that no replica had, the scan reads the shard as it then is.
///
/// Use [`Reconnecting`](super::Reconnecting) as the source of a scan that has to outlive its
/// connection.
///
/// A page that cannot be read is an item `Err`. The position stays: the next call of
/// [`next`](Iterator::next) tries this page again, and no entry is lost or repeated. A source that
/// always fails returns errors without end, so the caller has to stop at an error, or to bound its
/// retries. After a `None`, all calls return `None`.
///
/// # Cost
///
/// The first item waits for one page of each shard, one after the other. After that, each page is
/// one round trip, and an item costs one step in a heap of the shards. The cursor holds at most one
/// page per shard.
#[derive(Debug)]
pub struct Merge<S> {
    source: S,
    shards: Vec<Shard>,
    /// The next entry of each shard that is not in `wanting` and not at its end.
    heads: BinaryHeap<Head>,
    /// The shards whose next entry is not in `heads`.
    wanting: Vec<usize>,
    scan: Scan,
}

/// The position in one shard.
#[derive(Debug, Default)]
struct Shard {
    /// The rest of the last page.
    page: vec::IntoIter<Entry>,
    /// The last key of the last page.
    last: Option<Vec<u8>>,
    /// Whether no page comes after this one.
    ended: bool,
}

/// The next entry of a shard. The greatest head is the next item of the cursor.
#[derive(Debug)]
struct Head {
    entry: Entry,
    shard: usize,
    descending: bool,
}

impl<S: Pages> Merge<S> {
    pub(super) fn new(source: S, scan: Scan) -> Self {
        let shards: Vec<Shard> = scan.maps.iter().map(|_| Shard::default()).collect();
        let wanting = (0..shards.len()).collect();
        Self { source, heads: BinaryHeap::with_capacity(shards.len()), shards, wanting, scan }
    }

    /// Stops the scan and returns its source.
    pub fn into_source(self) -> S {
        self.source
    }

    /// The next entry of a shard, or `None` at its end.
    fn advance(&mut self, shard: usize) -> Result<Option<Entry>, S::Error> {
        let Scan { maps, min, max, descending, page, .. } = &self.scan;
        let (map, shard) = (&maps[shard], &mut self.shards[shard]);
        let entry = shard.page.next();
        if entry.is_some() || shard.ended {
            return Ok(entry);
        }
        let (mut min, mut max) = (as_slice(min), as_slice(max));
        if let Some(last) = &shard.last {
            *(if *descending { &mut max } else { &mut min }) = Bound::Excluded(last);
        }
        let question = Page { map, min, max, descending: *descending, entries: *page };
        let entries = self.source.page(&question)?;
        // A short page holds all keys up to the bound that were there at its moment. Each key that
        // is there throughout is one of them.
        shard.ended = entries.len() < page.get();
        if let Some((key, _)) = entries.last() {
            shard.last = Some(key.clone());
        }
        shard.page = entries.into_iter();
        Ok(shard.page.next())
    }
}

impl<S: Pages> Iterator for Merge<S> {
    type Item = Result<Entry, S::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(&shard) = self.wanting.last() {
            match self.advance(shard) {
                Ok(entry) => {
                    self.wanting.pop();
                    let descending = self.scan.descending;
                    self.heads.extend(entry.map(|entry| Head { entry, shard, descending }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
        let Head { entry, shard, .. } = self.heads.pop()?;
        self.wanting.push(shard);
        Some(Ok(entry))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = self.entry.0.cmp(&other.entry.0);
        let keys = if self.descending { keys } else { keys.reverse() };
        keys.then(other.shard.cmp(&self.shard))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
