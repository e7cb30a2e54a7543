//! An index that is correct by inspection: a `BTreeMap` under one lock. The suite is developed
//! against it, and [`crate::broken`] plants mistakes in it.

use crate::Outcome;
use crate::failure::ensure;
use crate::rest::counts;
use silvics::index::Cursor;
use silvics::update::Step;
use silvics::{
    AllocError, AtomicRanges, Batches, Check, Create, Domain, Guard, IndexKey, Lookup, Options,
    OrderedEnds, OrderedIndex, OrderedScan, Pages, PoolStats, RangeUpdates, Update, Violation,
};
use silvics_pool::Budget;
use silvics_sync::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The bytes that each entry takes from the budget.
pub const ENTRY_BYTES: usize = 64;

/// A `BTreeMap` under one lock.
#[derive(Debug)]
pub struct LockedMap<K: IndexKey + ?Sized> {
    state: Mutex<State<K>>,
    domain: Domain,
    budget: Budget,
}

#[derive(Debug)]
pub(crate) struct State<K: IndexKey + ?Sized> {
    pub(crate) entries: BTreeMap<K::Owned, u64>,
    /// The number of times that an entry was put or taken.
    pub(crate) writes: u64,
    /// Every key that a range has returned, kept as long as the map.
    lent: BTreeSet<Arc<K::Owned>>,
}

type Bounds<'a, K> = (Bound<<K as IndexKey>::Ref<'a>>, Bound<<K as IndexKey>::Ref<'a>>);

impl<K: IndexKey + ?Sized> LockedMap<K> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock()
    }

    /// The budget in which the entries are counted.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes the memory of one entry from the budget.
    fn admit(&self) -> Result<(), AllocError> {
        self.budget.take(ENTRY_BYTES)
    }

    /// Returns a reference to a copy of `key` that lives as long as the map.
    #[allow(clippy::unused_self)] // its lifetime is used
    pub(crate) fn lend<'g>(&'g self, state: &mut State<K>, key: &K::Owned) -> K::Ref<'g> {
        let lent = if let Some(lent) = state.lent.get(key) {
            Arc::as_ptr(lent)
        } else {
            let fresh = Arc::new(key.clone());
            let address = Arc::as_ptr(&fresh);
            state.lent.insert(fresh);
            address
        };
        // SAFETY: a key in `lent` is never changed, and is dropped only with the map, which is
        // borrowed for 'g.
        K::borrow(unsafe { &*lent })
    }

    /// All entries in `bounds`, ascending, read atomically.
    pub(crate) fn snapshot<'g>(&'g self, bounds: Bounds<'_, K>) -> Vec<(K::Ref<'g>, u64)> {
        let mut state = self.lock();
        let found: Vec<(K::Owned, u64)> = state
            .entries
            .iter()
            .filter(|(key, _)| within::<K>(&bounds, key))
            .map(|(key, value)| (key.clone(), *value))
            .collect();
        found.into_iter().map(|(key, value)| (self.lend(&mut state, &key), value)).collect()
    }
}

/// Whether `key` is in `bounds`. No key is in inverted bounds.
pub(crate) fn within<K: IndexKey + ?Sized>(bounds: &Bounds<'_, K>, key: &K::Owned) -> bool {
    let key = K::borrow(key);
    let above = match &bounds.0 {
        Bound::Included(low) => key >= K::shorten(*low),
        Bound::Excluded(low) => key > K::shorten(*low),
        Bound::Unbounded => true,
    };
    let below = match &bounds.1 {
        Bound::Included(high) => key <= K::shorten(*high),
        Bound::Excluded(high) => key < K::shorten(*high),
        Bound::Unbounded => true,
    };
    above && below
}

impl<K: IndexKey + ?Sized> LockedMap<K> {
    /// The entry that `take` finds at an end. `take` may remove it.
    fn at_end(
        &self,
        take: impl FnOnce(&mut BTreeMap<K::Owned, u64>) -> Option<(K::Owned, u64)>,
    ) -> Option<(K::Ref<'_>, u64)> {
        let mut state = self.lock();
        let before = state.entries.len();
        let (key, value) = take(&mut state.entries)?;
        if state.entries.len() < before {
            state.writes += 1;
            self.budget.give(ENTRY_BYTES);
        }
        Some((self.lend(&mut state, &key), value))
    }
}

impl<K: IndexKey + ?Sized> OrderedEnds for LockedMap<K> {
    fn first<'g>(&'g self, _: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        self.at_end(|entries| entries.first_key_value().map(|(key, value)| (key.clone(), *value)))
    }
    fn last<'g>(&'g self, _: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        self.at_end(|entries| entries.last_key_value().map(|(key, value)| (key.clone(), *value)))
    }
    fn pop_first<'g>(&'g self, _: &'g Guard) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        Ok(self.at_end(BTreeMap::pop_first))
    }
    fn pop_last<'g>(&'g self, _: &'g Guard) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        Ok(self.at_end(BTreeMap::pop_last))
    }
}

impl<K: IndexKey + ?Sized> Create for LockedMap<K> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        Ok(Self {
            state: Mutex::new(State { entries: BTreeMap::new(), writes: 0, lent: BTreeSet::new() }),
            domain: options.domain.clone().unwrap_or_default(),
            budget: Budget::new(options.memory_limit),
        })
    }
}

impl<K: IndexKey + ?Sized> Lookup for LockedMap<K> {
    type Key = K;
    fn domain(&self) -> &Domain {
        &self.domain
    }
    fn get(&self, key: K::Ref<'_>, _: &Guard) -> Option<u64> {
        self.lock().entries.get(&K::to_owned(key)).copied()
    }
    fn len(&self) -> usize {
        self.lock().entries.len()
    }
    fn bytes(&self) -> usize {
        self.budget.held()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        let live_slots = self.budget.held() / ENTRY_BYTES;
        vec![PoolStats {
            kind: "entry",
            live_slots,
            live_bytes: live_slots * ENTRY_BYTES,
            regions: Vec::new(),
            pages: Pages::Small,
            fallback: None,
        }]
    }
}

impl<K: IndexKey + ?Sized> OrderedIndex for LockedMap<K> {
    fn update(&self, key: K::Ref<'_>, verb: Update, _: &Guard) -> Result<Option<u64>, AllocError> {
        let mut state = self.lock();
        let key = K::to_owned(key);
        let present = state.entries.get(&key).copied();
        match verb.step(present) {
            Step::Keep => {}
            Step::Put(value) => {
                if present.is_none() {
                    self.admit()?;
                }
                state.entries.insert(key, value);
                state.writes += 1;
            }
            Step::Take => {
                state.entries.remove(&key);
                state.writes += 1;
                self.budget.give(ENTRY_BYTES);
            }
        }
        Ok(present)
    }
}

impl<K: IndexKey + ?Sized> Batches for LockedMap<K> {}

impl<K: IndexKey + ?Sized> OrderedScan for LockedMap<K> {
    type Range<'g> = std::vec::IntoIter<(K::Ref<'g>, u64)>;
    type RangeRev<'g> = std::iter::Rev<Self::Range<'g>>;
    type Cursor = LockedCursor<K>;

    fn range<'g, R: RangeBounds<K::Ref<'g>>>(&'g self, range: R, _: &'g Guard) -> Self::Range<'g> {
        self.snapshot((range.start_bound().cloned(), range.end_bound().cloned())).into_iter()
    }

    fn range_rev<'g, R: RangeBounds<K::Ref<'g>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g> {
        self.range(range, guard).rev()
    }

    fn cursor(self: &Arc<Self>) -> LockedCursor<K> {
        LockedCursor { map: Arc::clone(self), at: Position::BeforeFirst }
    }
}

impl<K: IndexKey + ?Sized> AtomicRanges for LockedMap<K> {
    fn collect_range<'g, R: RangeBounds<K::Ref<'g>>>(
        &'g self,
        range: R,
        _: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError> {
        Ok(self.snapshot((range.start_bound().cloned(), range.end_bound().cloned())))
    }
}

impl<K: IndexKey + ?Sized> RangeUpdates for LockedMap<K> {
    fn update_range<'g, R: RangeBounds<K::Ref<'g>>>(
        &'g self,
        range: R,
        _: &'g Guard,
        mut new: impl FnMut(K::Ref<'_>, u64) -> u64,
    ) -> Result<usize, AllocError> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        let mut state = self.lock();
        let mut values = Vec::new();
        for (key, value) in state.entries.iter().filter(|(key, _)| within::<K>(&bounds, key)) {
            values.push((key.clone(), new(K::borrow(key), *value)));
        }
        let count = values.len();
        state.writes += count as u64;
        state.entries.extend(values);
        Ok(count)
    }
}

impl<K: IndexKey + ?Sized> Check for LockedMap<K> {
    fn check(&mut self) -> Result<usize, Violation> {
        let entries = self.lock().entries.len();
        let held = self.budget.held();
        if held != entries * ENTRY_BYTES {
            return Err(Violation {
                invariant: "the budget holds the entries",
                detail: format!("{entries} entries, {held} bytes"),
            });
        }
        Ok(entries)
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        Ok(vec![("entry", self.lock().entries.len())])
    }

    /// Does nothing: this map retires no objects.
    fn settle(&mut self) {}
}

/// The place of a cursor, in the contract's words: the model with which cursors are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position<O> {
    /// Before the first entry.
    BeforeFirst,
    /// At an entry that was present when the cursor arrived, with its key and value of then.
    At(O, u64),
    /// After the last entry.
    AfterLast,
}

/// One move of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move<O> {
    /// To the first entry at or after the key.
    Seek(O),
    /// To the last entry at or before the key.
    SeekForPrev(O),
    /// To the next entry.
    Next,
    /// To the previous entry.
    Prev,
}

/// The position to which the move leads from `at` in `entries`.
pub fn step<O: Ord + Clone>(
    entries: &BTreeMap<O, u64>,
    at: &Position<O>,
    step: &Move<O>,
) -> Position<O> {
    use Bound::{Excluded, Included, Unbounded};
    let ahead = |from: Bound<&O>| entries.range::<O, _>((from, Unbounded)).next();
    let back = |to: Bound<&O>| entries.range::<O, _>((Unbounded, to)).next_back();
    let (found, missed) = match (step, at) {
        (Move::Seek(key), _) => (ahead(Included(key)), Position::AfterLast),
        (Move::SeekForPrev(key), _) => (back(Included(key)), Position::BeforeFirst),
        (Move::Next, Position::BeforeFirst) => (ahead(Unbounded), Position::AfterLast),
        (Move::Next, Position::At(key, _)) => (ahead(Excluded(key)), Position::AfterLast),
        (Move::Next, Position::AfterLast) => (None, Position::AfterLast),
        (Move::Prev, Position::AfterLast) => (back(Unbounded), Position::BeforeFirst),
        (Move::Prev, Position::At(key, _)) => (back(Excluded(key)), Position::BeforeFirst),
        (Move::Prev, Position::BeforeFirst) => (None, Position::BeforeFirst),
    };
    found.map_or(missed, |(key, value)| Position::At(key.clone(), *value))
}

/// A cursor of [`LockedMap`].
#[derive(Debug)]
pub struct LockedCursor<K: IndexKey + ?Sized> {
    pub(crate) map: Arc<LockedMap<K>>,
    pub(crate) at: Position<K::Owned>,
}

impl<K: IndexKey + ?Sized> LockedCursor<K> {
    fn go(&mut self, to: &Move<K::Owned>) -> bool {
        self.at = step(&self.map.lock().entries, &self.at, to);
        matches!(self.at, Position::At(..))
    }
}

impl<K: IndexKey + ?Sized> Cursor for LockedCursor<K> {
    type Key = K;

    fn seek(&mut self, key: K::Ref<'_>) -> bool {
        self.go(&Move::Seek(K::to_owned(key)))
    }
    fn seek_for_prev(&mut self, key: K::Ref<'_>) -> bool {
        self.go(&Move::SeekForPrev(K::to_owned(key)))
    }
    fn next(&mut self) -> bool {
        self.go(&Move::Next)
    }
    fn prev(&mut self) -> bool {
        self.go(&Move::Prev)
    }
    fn key(&self) -> Option<K::Ref<'_>> {
        match &self.at {
            Position::At(key, _) => Some(K::borrow(key)),
            _ => None,
        }
    }
    fn value(&self) -> Option<u64> {
        match self.at {
            Position::At(_, value) => Some(value),
            _ => None,
        }
    }
}

/// Compares the whole content of an index with a model: every key of the model is found, and `len`
/// and `check` agree with it. An index that has every wanted entry and the right number of them has
/// no other.
pub(crate) fn same_content<I: crate::Subject + ?Sized>(
    index: &mut I,
    model: &BTreeMap<silvics::OwnedKey<I>, u64>,
) -> Outcome {
    let guard = index.domain().pin();
    for (key, value) in model {
        let found = index.get(crate::keys::lend::<I>(key), &guard);
        ensure!(
            found == Some(*value),
            "get({}) returns {found:?}, wanted {value}",
            crate::keys::show::<I>(key)
        );
    }
    drop(guard);
    counts(index, model.len())
}
