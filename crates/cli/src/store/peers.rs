//! Maps of other crates as indexes of the store.

use crossbeam_skiplist::SkipMap;
use parking_lot::RwLock;
use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_store::index::{Scannable, Search};
use std::collections::BTreeMap;
use std::ops::Bound;

/// A map of another crate. Each keeps its own rules of reclamation; the store's guard protects rows
/// alone.
pub enum Peer {
    CrossbeamSkiplist(Box<SkipMap<u64, u64>>),
    Congee(congee::Congee<usize, usize>),
    BtreeMapRwLock(RwLock<BTreeMap<u64, u64>>),
}

impl Peer {
    /// The names of all of them on the command line.
    pub const NAMES: [&str; 3] = ["peer:crossbeam-skiplist", "peer:congee", "peer:btreemap-rwlock"];

    /// The map with a name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "peer:crossbeam-skiplist" => Self::CrossbeamSkiplist(Box::default()),
            "peer:congee" => Self::Congee(congee::Congee::default()),
            "peer:btreemap-rwlock" => Self::BtreeMapRwLock(RwLock::default()),
            _ => return None,
        })
    }
}

/// A bound that `congee` can have: inclusive below.
fn from(low: Bound<u64>) -> Option<usize> {
    Some(match low {
        Bound::Unbounded => 0,
        Bound::Included(key) => key as usize,
        Bound::Excluded(key) => key.checked_add(1)? as usize,
    })
}

/// The entries that a scan takes at a time.
const BUFFER: usize = 64;

/// Scans in ascending order; the end of a range of `congee` is exclusive, so the greatest key is
/// looked up.
fn walk_congee(
    tree: &congee::Congee<usize, usize>,
    (low, high): (Bound<u64>, Bound<u64>),
    visit: &mut dyn FnMut(u64, u64) -> bool,
) {
    let is_below = |key: u64| match high {
        Bound::Unbounded => true,
        Bound::Included(last) => key <= last,
        Bound::Excluded(end) => key < end,
    };
    let guard = tree.pin();
    let Some(mut start) = from(low) else { return };
    let mut buffer = [(0_usize, 0_usize); BUFFER];
    loop {
        let found = tree.range(&start, &usize::MAX, &mut buffer, &guard);
        for &(key, word) in &buffer[..found] {
            if !is_below(key as u64) || !visit(key as u64, word as u64) {
                return;
            }
            start = key + 1;
        }
        if found < BUFFER {
            break;
        }
    }
    if is_below(u64::MAX)
        && let Some(word) = tree.get(&usize::MAX, &guard)
    {
        visit(u64::MAX, word as u64);
    }
}

/// Scans some entries at a time, so that the lock is not held while the store reads rows.
fn walk_btree(
    map: &RwLock<BTreeMap<u64, u64>>,
    (mut low, mut high): (Bound<u64>, Bound<u64>),
    descending: bool,
    visit: &mut dyn FnMut(u64, u64) -> bool,
) {
    let is_empty = |low: Bound<u64>, high: Bound<u64>| match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
        _ => false,
    };
    while !is_empty(low, high) {
        let entries: Vec<(u64, u64)> = {
            let map = map.read();
            let entries = map.range((low, high)).map(|(&key, &word)| (key, word));
            if descending {
                entries.rev().take(BUFFER).collect()
            } else {
                entries.take(BUFFER).collect()
            }
        };
        let Some(&(last, _)) = entries.last() else { return };
        let is_last = entries.len() < BUFFER;
        if !entries.into_iter().all(|(key, word)| visit(key, word)) || is_last {
            return;
        }
        *(if descending { &mut high } else { &mut low }) = Bound::Excluded(last);
    }
}

// SAFETY: S1 to S4 are the contracts of the maps, each of which is linearizable; S5: no method
// calls the store. S6: nothing unwinds: the keys are numbers, and a failed allocation ends the
// process.
unsafe impl Search for Peer {
    type Form = u64;

    fn make(_options: &Options) -> Result<Self, AllocError> {
        Ok(Self::BtreeMapRwLock(RwLock::default()))
    }
    fn structure(&self) -> String {
        match self {
            Self::CrossbeamSkiplist(_) => Self::NAMES[0].into(),
            Self::Congee(_) => Self::NAMES[1].into(),
            Self::BtreeMapRwLock(_) => Self::NAMES[2].into(),
        }
    }
    #[inline]
    fn get(&self, key: u64, _guard: &Guard) -> Option<u64> {
        match self {
            Self::CrossbeamSkiplist(map) => map.get(&key).map(|entry| *entry.value()),
            Self::Congee(tree) => {
                let guard = tree.pin();
                tree.get(&(key as usize), &guard).map(|word| word as u64)
            }
            Self::BtreeMapRwLock(map) => map.read().get(&key).copied(),
        }
    }
    unsafe fn try_insert(
        &self,
        key: u64,
        word: u64,
        _guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let present = match self {
            Self::CrossbeamSkiplist(map) => {
                // No two rows have one word, so another word is that of a present entry.
                let present = *map.get_or_insert(key, word).value();
                (present != word).then_some(present)
            }
            Self::Congee(tree) => {
                let guard = tree.pin();
                let keep = |old: Option<usize>| old.unwrap_or(word as usize);
                let old = tree.compute_or_insert(key as usize, keep, &guard);
                let requested = size_of::<u64>();
                old.map_err(|_| AllocError::System { requested })?.map(|old| old as u64)
            }
            Self::BtreeMapRwLock(map) => {
                let mut map = map.write();
                let present = map.get(&key).copied();
                map.entry(key).or_insert(word);
                present
            }
        };
        Ok(present)
    }
    unsafe fn replace(&self, key: u64, word: u64, _guard: &Guard) -> Result<(), AllocError> {
        match self {
            Self::CrossbeamSkiplist(map) => {
                map.insert(key, word);
            }
            Self::Congee(tree) => {
                let guard = tree.pin();
                let requested = size_of::<u64>();
                let inserted = tree.insert(key as usize, word as usize, &guard);
                inserted.map_err(|_| AllocError::System { requested })?;
            }
            Self::BtreeMapRwLock(map) => {
                map.write().insert(key, word);
            }
        }
        Ok(())
    }
    unsafe fn remove(&self, key: u64, _guard: &Guard) -> Result<(), AllocError> {
        match self {
            Self::CrossbeamSkiplist(map) => {
                map.remove(&key);
            }
            Self::Congee(tree) => {
                let guard = tree.pin();
                tree.remove(&(key as usize), &guard);
            }
            Self::BtreeMapRwLock(map) => {
                map.write().remove(&key);
            }
        }
        Ok(())
    }
    fn walk(
        &self,
        bounds: (Bound<u64>, Bound<u64>),
        descending: bool,
        _guard: &Guard,
        visit: &mut dyn FnMut(u64, u64) -> bool,
    ) {
        match self {
            Self::CrossbeamSkiplist(map) => {
                let mut entries = map.range(bounds);
                while let Some(entry) =
                    if descending { entries.next_back() } else { entries.next() }
                {
                    if !visit(*entry.key(), *entry.value()) {
                        return;
                    }
                }
            }
            Self::Congee(tree) if descending => {
                let mut all = Vec::new();
                walk_congee(tree, bounds, &mut |key, word| {
                    all.push((key, word));
                    true
                });
                let _ = all.into_iter().rev().all(|(key, word)| visit(key, word));
            }
            Self::Congee(tree) => walk_congee(tree, bounds, visit),
            Self::BtreeMapRwLock(map) => walk_btree(map, bounds, descending, visit),
        }
    }
    fn scans(&self) -> bool {
        true
    }
    fn count(&self) -> usize {
        match self {
            Self::CrossbeamSkiplist(map) => map.len(),
            Self::Congee(tree) => {
                let mut keys = 0;
                walk_congee(tree, (Bound::Unbounded, Bound::Unbounded), &mut |_, _| {
                    keys += 1;
                    true
                });
                keys
            }
            Self::BtreeMapRwLock(map) => map.read().len(),
        }
    }
    fn bytes(&self) -> Option<usize> {
        None
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        Vec::new()
    }
}

impl Scannable for Peer {}
