//! The planted mistakes in point operations, batches, scans and ends.

use super::{Entries, Map, Mistake};
use crate::reference::{LockedCursor, Position};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::index::Cursor;
use silvics::{
    AllocError, Batches, Guard, InsertManyError, Lookup, OrderedEnds, OrderedIndex, RangeUpdates,
};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Lets other threads run between two steps that should be atomic, once in [`GAP_EVERY`] calls:
/// until one of them has written, or for a while if none does. So the mistake shows on any machine,
/// however its threads are scheduled.
fn gap(map: &Map) {
    if !CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(GAP_EVERY) {
        return;
    }
    let writes = map.lock().writes;
    for _ in 0..100 {
        silvics_sync::thread::yield_now();
        if map.lock().writes != writes {
            return;
        }
    }
}

/// The number of calls of [`gap`].
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Calls per gap. On a machine with more threads than cores a gap takes some milliseconds, so not
/// every call can have one.
const GAP_EVERY: usize = 16;

/// Upsert reads the old value and writes the new one in two steps. Found by `histories`.
#[derive(Debug)]
pub struct LostUpdate;
impl Mistake for LostUpdate {
    fn insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        let old = map.get(key, guard);
        gap(map);
        map.insert(key, value, guard)?;
        Ok(old)
    }
}

/// Remove returns a value read before the key was claimed. Found by `histories`.
#[derive(Debug)]
pub struct StaleRemove;
impl Mistake for StaleRemove {
    fn remove(map: &Map, key: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        let old = map.get(key, guard);
        gap(map);
        Ok(map.remove(key, guard)?.and(old))
    }
}

/// Two threads that remove one key both succeed. Found by `key_sum`.
#[derive(Debug)]
pub struct TwoWinners;
impl Mistake for TwoWinners {
    fn remove(map: &Map, key: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        let old = map.get(key, guard);
        gap(map);
        map.remove(key, guard)?;
        Ok(old)
    }
}

/// Two threads that insert one key both succeed. Found by `key_sum`.
#[derive(Debug)]
pub struct CheckThenInsert;
impl Mistake for CheckThenInsert {
    fn try_insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<(), TryInsertError> {
        if let Some(present) = map.get(key, guard) {
            return Err(TryInsertError::Occupied(present));
        }
        gap(map);
        map.insert(key, value, guard)?;
        Ok(())
    }
}

/// `len` counts an upsert of a present key as an insert. Found by `sequential::oracle`.
#[derive(Debug)]
pub struct DriftingLen;
impl Mistake for DriftingLen {
    fn len(map: &Map, upserts: usize) -> usize {
        map.len() + upserts / 8
    }
}

/// Compare-exchange compares presence, not the value. Found by `sequential::oracle`.
#[derive(Debug)]
pub struct BlindExchange;
impl Mistake for BlindExchange {
    fn compare_exchange(
        map: &Map,
        key: u64,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Result<(), CompareExchangeError> {
        let present = map.get(key, guard);
        let expected = expected.and(present);
        map.compare_exchange(key, expected, new, guard)
    }
}

/// Put-if-absent overwrites a present value. Found by `sequential::oracle`.
#[derive(Debug)]
pub struct OverwritingTryInsert;
impl Mistake for OverwritingTryInsert {
    fn try_insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<(), TryInsertError> {
        match map.insert(key, value, guard)? {
            None => Ok(()),
            Some(old) => Err(TryInsertError::Occupied(old)),
        }
    }
}

/// The largest key is mistaken for a sentinel. Found by `sequential::extremes`.
#[derive(Debug)]
pub struct SentinelKey;
impl Mistake for SentinelKey {
    fn get(map: &Map, key: u64, guard: &Guard) -> Option<u64> {
        map.get(key, guard).filter(|_| key != u64::MAX)
    }
}

/// Batched lookups work in groups of four and forget the rest. Found by `sequential::oracle`.
#[derive(Debug)]
pub struct WholeGroupsOnly;
impl Mistake for WholeGroupsOnly {
    fn get_many(map: &Map, keys: &[u64], values: &mut [Option<u64>], guard: &Guard) {
        let whole = keys.len().min(values.len()) / 4 * 4;
        map.get_many(&keys[..whole], &mut values[..whole], guard);
    }
}

/// Batched upserts are sorted wrongly first: of several with one key, the first wins. Found by
/// `batches::as_one_by_one`.
#[derive(Debug)]
pub struct FirstOfDuplicates;
impl Mistake for FirstOfDuplicates {
    fn insert_many(
        map: &Map,
        entries: &[(u64, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let absent = map.insert_many(entries, replaced, guard)?;
        for (key, value) in entries.iter().rev() {
            map.insert(*key, *value, guard).map_err(|error| InsertManyError::new(0, error))?;
        }
        Ok(absent)
    }
}

/// Batched upserts look up all keys before they write, and report these values as replaced. Found
/// by `histories`.
#[derive(Debug)]
pub struct BatchLooksFirst;
impl Mistake for BatchLooksFirst {
    fn insert_many(
        map: &Map,
        entries: &[(u64, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let keys: Vec<u64> = entries.iter().map(|(key, _)| *key).collect();
        map.get_many(&keys, replaced, guard);
        gap(map);
        map.insert_many(entries, &mut [], guard)
    }
}

/// A batch that is refused one entry continues with the others. Found by `limit::limits`.
#[derive(Debug)]
pub struct BatchGoesOn;
impl Mistake for BatchGoesOn {
    fn insert_many(
        map: &Map,
        entries: &[(u64, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let result = map.insert_many(entries, replaced, guard);
        if let Err(refused) = result {
            for (key, value) in &entries[refused.done..] {
                // Present keys need no memory.
                let _ = map.insert(*key, *value, guard);
            }
        }
        result
    }
}

/// A scan goes by rank, and writes in front of it shift the ranks. Found by
/// `ranges::under_writers`.
#[derive(Debug)]
pub struct RankedRange;
impl Mistake for RankedRange {
    fn range(map: &Map, bounds: (Bound<u64>, Bound<u64>)) -> Entries<'_> {
        let mut rank = 0;
        Box::new(std::iter::from_fn(move || {
            if rank == 2 {
                gap(map);
            }
            let entry = {
                let state = map.lock();
                let mut inside = state.entries.iter().filter(|(key, _)| bounds.contains(*key));
                inside.nth(rank).map(|(key, value)| (*key, *value))
            };
            rank += 1;
            entry
        }))
    }
}

/// An excluded bound is treated as an included one. Found by `ranges::oracle`.
#[derive(Debug)]
pub struct ClosedRange;
impl Mistake for ClosedRange {
    fn range(map: &Map, bounds: (Bound<u64>, Bound<u64>)) -> Entries<'_> {
        let low = match bounds.0 {
            Bound::Excluded(low) => Bound::Included(low),
            other => other,
        };
        Box::new(map.snapshot((low, bounds.1)).into_iter())
    }
}

/// `first` walks from a removed entry to the next without looking at the front again. Found by
/// `ends::histories`.
#[derive(Debug)]
pub struct UnvalidatedFirst;
impl Mistake for UnvalidatedFirst {
    fn first(map: &Map, _: &Guard) -> Option<(u64, u64)> {
        let mut passed = Bound::Unbounded;
        loop {
            let next = |state: &crate::reference::State<u64>| {
                let mut after = state.entries.range((passed, Bound::Unbounded));
                after.next().map(|(key, value)| (*key, *value))
            };
            let (key, value) = next(&map.lock())?;
            gap(map);
            if map.lock().entries.contains_key(&key) {
                return Some((key, value));
            }
            passed = Bound::Excluded(key);
        }
    }
}

/// `pop_first` looks up the first entry, and then removes it even if another one has come before it
/// meanwhile. Found by `ends::histories`.
#[derive(Debug)]
pub struct PopInTwoSteps;
impl Mistake for PopInTwoSteps {
    fn pop_first(map: &Map, guard: &Guard) -> Option<(u64, u64)> {
        loop {
            let (key, _) = map.first(guard)?;
            gap(map);
            if let Ok(Some(value)) = map.remove(key, guard) {
                return Some((key, value));
            }
        }
    }
}

/// `pop_first` passes an entry that is removed meanwhile, and removes the next one, although
/// another may have come before it. Found by `ends::histories`.
#[derive(Debug)]
pub struct PopOfNext;
impl Mistake for PopOfNext {
    fn pop_first(map: &Map, guard: &Guard) -> Option<(u64, u64)> {
        let mut passed = Bound::Unbounded;
        loop {
            let next = |state: &crate::reference::State<u64>| {
                state.entries.range((passed, Bound::Unbounded)).next().map(|(key, _)| *key)
            };
            let key = next(&map.lock())?;
            gap(map);
            if let Ok(Some(value)) = map.remove(key, guard) {
                return Some((key, value));
            }
            passed = Bound::Excluded(key);
        }
    }
}

/// `pop_first` looks up the first entry, removes its key, and returns the entry even if another
/// thread has removed or replaced it meanwhile. Found by `histories::end_histories`.
#[derive(Debug)]
pub struct PopTwice;
impl Mistake for PopTwice {
    fn pop_first(map: &Map, guard: &Guard) -> Option<(u64, u64)> {
        let (key, value) = map.first(guard)?;
        gap(map);
        let _ = map.remove(key, guard);
        Some((key, value))
    }
}

/// A cursor whose entry was removed starts again at the front. Found by `cursors::oracle`.
#[derive(Debug)]
pub struct LostPlace;
impl Mistake for LostPlace {
    fn next(cursor: &mut LockedCursor<u64>) -> bool {
        if cursor.map.len() > 1 {
            gap(&cursor.map);
        }
        if let Position::At(key, _) = cursor.at
            && !cursor.map.lock().entries.contains_key(&key)
        {
            cursor.at = Position::BeforeFirst;
        }
        cursor.next()
    }
}

/// A reverse seek finds the entry, and then its predecessor in a second step that accepts whatever
/// it meets. Found by `cursors::under_writers`.
#[derive(Debug)]
pub struct TwoStepSeek;
impl Mistake for TwoStepSeek {
    fn seek_for_prev(cursor: &mut LockedCursor<u64>, key: u64) -> bool {
        if !cursor.seek(key) {
            return cursor.seek_for_prev(key);
        }
        if cursor.key() == Some(key) {
            return true;
        }
        gap(&cursor.map);
        cursor.prev()
    }
}

/// A range that should be read atomically is read in two halves, the upper one first. Found by
/// `histories::range_histories`.
#[derive(Debug)]
pub struct RangeInHalves;
impl Mistake for RangeInHalves {
    fn collect_range(map: &Map, bounds: (Bound<u64>, Bound<u64>)) -> Vec<(u64, u64)> {
        let all = map.snapshot(bounds);
        let Some((middle, _)) = all.get(all.len() / 2) else { return all };
        let upper = map.snapshot((Bound::Included(*middle), bounds.1));
        gap(map);
        let mut entries = map.snapshot((bounds.0, Bound::Excluded(*middle)));
        entries.extend(upper);
        entries
    }
}

/// An update of a range updates its entries one after the other. Found by
/// `histories::update_histories`.
#[derive(Debug)]
pub struct RangeUpdateInParts;
impl Mistake for RangeUpdateInParts {
    fn update_range(
        map: &Map,
        bounds: (Bound<u64>, Bound<u64>),
        guard: &Guard,
        new: &mut dyn FnMut(u64, u64) -> u64,
    ) -> Result<usize, AllocError> {
        let mut updated = 0;
        for (key, _) in map.snapshot(bounds) {
            updated += map.update_range(key..=key, guard, &mut *new)?;
            gap(map);
        }
        Ok(updated)
    }
}

/// A panic of the closure of a range update leaves the entries before it updated. Found by
/// `atomic_ranges::update_panics`.
#[derive(Debug)]
pub struct HalfUpdate;
impl Mistake for HalfUpdate {
    fn update_range(
        map: &Map,
        bounds: (Bound<u64>, Bound<u64>),
        guard: &Guard,
        new: &mut dyn FnMut(u64, u64) -> u64,
    ) -> Result<usize, AllocError> {
        let entries = map.snapshot(bounds);
        for (key, value) in &entries {
            map.insert(*key, new(*key, *value), guard)?;
        }
        Ok(entries.len())
    }
}

/// A bound of an atomic read of a range is taken for one of the other kind. Found by
/// `atomic_ranges::reads`.
#[derive(Debug)]
pub struct ClosedMoment;
impl Mistake for ClosedMoment {
    fn collect_range(map: &Map, (low, high): (Bound<u64>, Bound<u64>)) -> Vec<(u64, u64)> {
        let closed = |bound| match bound {
            Bound::Excluded(key) => Bound::Included(key),
            bound => bound,
        };
        map.snapshot((low, closed(high)))
    }
}

/// A removal forgets to free its node. Found by `memory::churn`,
/// `memory::live_objects_are_reachable` and `limit::limits`.
#[derive(Debug)]
pub struct Leak;
impl Mistake for Leak {
    fn remove(map: &Map, key: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        let removed = map.remove(key, guard)?;
        if removed.is_some() {
            map.budget().take(crate::reference::ENTRY_BYTES)?;
        }
        Ok(removed)
    }
}

/// One removal in a thousand forgets to free its node. Found by
/// `memory::live_objects_are_reachable`.
#[derive(Debug)]
pub struct RareLeak;
impl Mistake for RareLeak {
    fn remove(map: &Map, key: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        static REMOVALS: AtomicUsize = AtomicUsize::new(0);
        let removed = map.remove(key, guard)?;
        if removed.is_some() && REMOVALS.fetch_add(1, Ordering::Relaxed) % 1000 == 999 {
            map.budget().take(crate::reference::ENTRY_BYTES)?;
        }
        Ok(removed)
    }
}

/// An upsert that needs memory removes the entry first, and then its allocation fails. Found by
/// `limit::limits`.
#[derive(Debug)]
pub struct HalfUpsert;
impl Mistake for HalfUpsert {
    fn insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        // It needs twice the memory for a moment, like an update that copies.
        let old = map.remove(key, guard)?;
        map.budget().take(2 * crate::reference::ENTRY_BYTES)?;
        map.budget().give(2 * crate::reference::ENTRY_BYTES);
        map.insert(key, value, guard)?;
        Ok(old)
    }
}

/// An insert whose allocation fails has already linked its entry. Found by `limit::limits`.
#[derive(Debug)]
pub struct LinkedThenRefused;
impl Mistake for LinkedThenRefused {
    fn try_insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<(), TryInsertError> {
        let result = map.try_insert(key, value, guard);
        if let Err(TryInsertError::Alloc(_)) = result {
            map.lock().entries.insert(key, value);
        }
        result
    }
}

/// A removal under a guard of another domain does nothing. Found by `guards::foreign`.
#[derive(Debug)]
pub struct FussyGuard;
impl Mistake for FussyGuard {
    fn remove(map: &Map, key: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        let own = map.domain().pin();
        if format!("{own:?}") != format!("{guard:?}") {
            return Ok(None);
        }
        map.remove(key, guard)
    }
}

/// A lookup allocates. Found by `lookups::allocate_nothing`.
#[derive(Debug)]
pub struct AllocatingLookup;
impl Mistake for AllocatingLookup {
    fn get(map: &Map, key: u64, guard: &Guard) -> Option<u64> {
        *std::hint::black_box(Box::new(map.get(key, guard)))
    }
}

/// Dropping the index leaves its nodes behind. Found by `dropping::dropping_returns_everything`.
#[derive(Debug)]
pub struct LeakyDrop;
impl Mistake for LeakyDrop {
    fn dropped(map: &Arc<Map>) {
        std::mem::forget(Arc::clone(map));
    }
}

/// Dropping the index leaves a small table behind. Found by
/// `dropping::dropping_returns_everything`.
#[derive(Debug)]
pub struct ForgottenTable;
impl Mistake for ForgottenTable {
    fn dropped(_: &Arc<Map>) {
        std::mem::forget(std::hint::black_box(Box::new([0_u8; 640])));
    }
}

/// An upsert removes the entry and inserts it again. Found by `presence::under_writers`.
#[derive(Debug)]
pub struct BlinkingUpsert;
impl Mistake for BlinkingUpsert {
    fn insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        let old = map.remove(key, guard)?;
        gap(map);
        Ok(map.insert(key, value, guard)?.or(old))
    }
}
