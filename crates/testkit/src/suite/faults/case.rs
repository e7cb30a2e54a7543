//! One operation in one state: it runs under a plan of faults, and then everything is compared.

use super::Recorded;
use crate::failure::ensure;
use crate::keys::{lend, nth};
use crate::make::Make;
use crate::memory::made_by_first;
use crate::reference::same_content;
use crate::{Failure, Outcome, Subject, size};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::{AllocError, Guard, OwnedKey, PinIndex};
use std::collections::BTreeMap;

/// A state in which operations are tried: the numbers of the keys that were inserted, in order, and
/// of those that were removed again. All numbers are even.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) name: &'static str,
    inserted: Vec<u64>,
    removed: Vec<u64>,
}

impl State {
    /// The states: they make trees rotate, keep routing nodes, and make towers grow.
    pub(super) fn all() -> Vec<Self> {
        let state = |name, inserted: &[u64], removed: &[u64]| Self {
            name,
            inserted: inserted.to_vec(),
            removed: removed.to_vec(),
        };
        let ascending = |keys: u64| -> Vec<u64> { (1..=keys).map(|n| 2 * n).collect() };
        let full = [16, 8, 24, 4, 12, 20, 28];
        let scattered: Vec<u64> = (1..64).map(|n| 2 * crate::rng::scattered(n, 64)).collect();
        let mut states = vec![
            state("empty", &[], &[]),
            state("one key", &[16], &[]),
            state("emptied", &[16, 8], &[8, 16]),
            state("about to rotate", &ascending(2), &[]),
            state("about to rotate twice", &[16, 8], &[]),
            state("a routing node", &full, &[8]),
            state("a routing node at the root", &full[..3], &[16]),
            state("many keys, ascending", &ascending(7), &[]),
            state("many keys", &scattered, &[]),
            state("many keys, a third removed", &scattered, &scattered[..20]),
        ];
        states.truncate(size::pick(states.len(), states.len(), 6));
        states
    }

    /// The numbers of the keys to try: present and absent ones, the extreme ones, some between, and
    /// removed ones.
    pub(super) fn targets(&self) -> Vec<u64> {
        let mut sorted = self.inserted.clone();
        sorted.sort_unstable();
        let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
            return vec![1];
        };
        let middle = sorted[sorted.len() / 2];
        let mut targets = vec![low - 1, low, middle, middle + 1, high, high + 1];
        targets.extend(self.removed.iter().take(2));
        targets.extend(self.inserted.first());
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}

/// A writing verb with its values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verb {
    TryInsert(u64),
    Insert(u64),
    Remove,
    CompareExchange(Option<u64>, Option<u64>),
}

/// A value that no key has.
const OTHER: u64 = u64::MAX - 1;

impl Verb {
    /// Every verb and form on a key in state `present`, with values that match the state and that
    /// do not.
    pub(super) fn all(present: Option<u64>) -> [Self; 9] {
        let exchange = Self::CompareExchange;
        let held = present.or(Some(OTHER));
        [
            Self::TryInsert(7),
            Self::Insert(8),
            Self::Remove,
            exchange(None, Some(9)),
            exchange(held, Some(10)),
            exchange(held, held),
            exchange(held, None),
            exchange(None, None),
            exchange(Some(OTHER - 1), Some(11)),
        ]
    }

    /// The state in which the verb leaves a key that was in state `present`.
    fn after(self, present: Option<u64>) -> Option<u64> {
        match self {
            Self::TryInsert(value) => present.or(Some(value)),
            Self::Insert(value) => Some(value),
            Self::Remove => None,
            Self::CompareExchange(expected, new) if expected == present => new,
            Self::CompareExchange(..) => present,
        }
    }

    /// Calls the verb. Returns the state that it reports to have found.
    fn call<I: Subject + ?Sized>(
        self,
        index: &I,
        key: &OwnedKey<I>,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let key = lend::<I>(key);
        match self {
            Self::TryInsert(value) => match index.try_insert(key, value, guard) {
                Ok(()) => Ok(None),
                Err(TryInsertError::Occupied(found)) => Ok(Some(found)),
                Err(TryInsertError::Alloc(error)) => Err(error),
                Err(error) => unreachable!("{error}"),
            },
            Self::Insert(value) => index.insert(key, value, guard),
            Self::Remove => index.remove(key, guard),
            Self::CompareExchange(expected, new) => {
                match index.compare_exchange(key, expected, new, guard) {
                    Ok(()) => Ok(expected),
                    Err(CompareExchangeError::Mismatch(found)) => Ok(found),
                    Err(CompareExchangeError::Alloc(error)) => Err(error),
                    Err(error) => unreachable!("{error}"),
                }
            }
        }
    }
}

/// One operation in one state.
#[derive(Debug)]
pub(super) struct Case<I: Subject + ?Sized> {
    pub(super) recorded: Recorded<I>,
    model: BTreeMap<OwnedKey<I>, u64>,
    key: OwnedKey<I>,
    verb: Verb,
    /// The state of `key` before the operation, in the model and in the index.
    pub(super) present: Option<u64>,
}

impl<I: Subject + ?Sized> Case<I> {
    pub(super) fn new(
        make: Make<I>,
        state: &State,
        target: u64,
        verb: Verb,
    ) -> Result<Self, Failure> {
        let recorded = Recorded::new(make)?;
        let mut model = BTreeMap::new();
        let view = recorded.index.pin();
        for &n in &state.inserted {
            view.insert(lend::<I>(&nth::<I>(n)), n)?;
            model.insert(nth::<I>(n), n);
        }
        for &n in &state.removed {
            view.remove(lend::<I>(&nth::<I>(n)))?;
            model.remove(&nth::<I>(n));
        }
        drop(view);
        let key = nth::<I>(target);
        let present = model.get(&key).copied();
        Ok(Self { recorded, model, key, verb, present })
    }

    /// Runs the operation under the given guard, or under a guard of its own that unwinding drops.
    pub(super) fn operate(&self, held: Option<&Guard>) -> Result<Option<u64>, AllocError> {
        let index = &*self.recorded.index;
        match held {
            Some(guard) => self.verb.call(index, &self.key, guard),
            None => self.verb.call(index, &self.key, &index.domain().pin()),
        }
    }

    /// Checks the answer of an operation that took effect, and applies the operation to the model.
    pub(super) fn happened(
        &mut self,
        said: Result<Option<u64>, AllocError>,
        when: &str,
    ) -> Outcome {
        let (verb, present) = (self.verb, self.present);
        ensure!(said == Ok(present), "{verb:?} {when} returns {said:?}, wanted {present:?}");
        match verb.after(present) {
            Some(value) => self.model.insert(self.key.clone(), value),
            None => self.model.remove(&self.key),
        };
        Ok(())
    }

    /// Compares the index with the model, on a thread that holds no lock. Then runs the operation
    /// if it has not happened, and then every verb on other keys.
    pub(super) fn verify(mut self, mark: u64, happened: bool) -> Result<Self, Failure> {
        if !happened {
            let kept = self.recorded.ledger.live_since(mark);
            ensure!(
                kept.is_empty()
                    || kept.values().sum::<usize>() <= made_by_first(self.recorded.make)?,
                "an operation that did not happen keeps {kept:?}"
            );
            same_content(self.recorded.exclusive()?, &self.model)
                .map_err(|f| f.at("after an operation that did not happen"))?;
            let said = self.operate(None);
            self.happened(said, "again, with memory,")?;
        }
        same_content(self.recorded.exclusive()?, &self.model)?;
        // Keys beside the target: a lock that is still held would be needed there.
        for n in [0, 3, 1000] {
            let key = nth::<I>(n);
            if self.model.contains_key(&key) || key == self.key {
                continue;
            }
            let mut present = None;
            let index = &*self.recorded.index;
            for verb in Verb::all(Some(8)).into_iter().chain([Verb::Remove]) {
                let said = verb.call(index, &key, &index.domain().pin());
                ensure!(said == Ok(present), "{verb:?} on key {n} returns {said:?} afterwards");
                present = verb.after(present);
            }
        }
        same_content(self.recorded.exclusive()?, &self.model)?;
        Ok(self)
    }
}
