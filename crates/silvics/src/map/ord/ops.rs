//! The operations of a map of any order. The pins that they take are of the map's domain.

use super::order::{Comparator, Compares};
use super::tree::{Asked, New, Tree, Words};
use super::{Entry, OrdMap};
use crate::ca::build::Build;
use crate::domain::Guard;
use crate::error::AllocError;
use crate::map::lend::Pin;
use crate::map::spot::Spot;
use crate::map::value::{Value, ValueRef};
use crate::map::{
    CompareExchangeError, Compute, Operation, Rejected, RemoveIfError, TryInsertError,
};
use crate::update::Update;
use silvics_pool::Placement;
use std::ops::Bound;

/// A key of a tree, for the operations of `spot.rs`.
struct At<'a, 'q, K: Value, C: Comparator<K>, P: Placement, B: Build> {
    tree: &'a Tree<K, C, P, B>,
    asked: &'a Asked<'q, K, C>,
    /// The key to insert, if it is absent.
    new: Option<&'a New<'a, K, P>>,
    guard: &'a Guard,
}

impl<K: Value, C: Comparator<K>, P: Placement, B: Build> Clone for At<'_, '_, K, C, P, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Value, C: Comparator<K>, P: Placement, B: Build> Copy for At<'_, '_, K, C, P, B> {}

// SAFETY: C1 and the linearization points of the tree (`lfca`): a word is a value's that was put,
// one exchange takes it out, and an operation that fails has put nothing.
unsafe impl<K: Value, C: Comparator<K>, P: Placement, B: Build> Spot for At<'_, '_, K, C, P, B> {
    #[inline(always)]
    fn get(self) -> Option<u64> {
        self.tree.get(self.asked, self.guard).map(|(_, value)| value)
    }

    #[inline(always)]
    fn update(self, verb: Update) -> Result<Option<u64>, AllocError> {
        let found = self.tree.update(self.asked, self.new, None, verb, self.guard)?;
        Ok(found.map(|(_, value)| value))
    }
}

/// The error of a key that was not inserted, with its entry.
type RefusedBy<'g, K, V> = TryInsertError<ValueRef<'g, V>, (K, V)>;
/// The result of a computation.
type Computed<'g, K, V, T> = Result<Compute<ValueRef<'g, V>, T>, Rejected<(K, Option<V>)>>;
/// The result of an operation, and whether it has inserted the key.
type Outcome<T, E> = Result<(T, bool), E>;

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> OrdMap<K, V, C, P, B> {
    /// References to an entry.
    ///
    /// # Safety
    /// It was read in the tree of a map with such keys and values, which lives as long as `'g`, and
    /// so does a guard of its domain that was taken before (O1).
    #[inline(always)]
    pub(super) unsafe fn entry_of<'g>((key, value): Words) -> Entry<'g, K, V> {
        // SAFETY: O1, M1, our contract.
        unsafe { (ValueRef::new(key), ValueRef::new(value)) }
    }

    #[inline(always)]
    pub(super) fn do_get<'g, Q: ?Sized>(
        &'g self,
        key: &Q,
        pin: Pin<'g, '_>,
    ) -> Option<ValueRef<'g, V>>
    where
        C: Compares<K, Q>,
    {
        let (_, word) = self.tree.with_asked(key, |asked| self.tree.get(asked, pin.guard))?;
        Some(self.values.lent(word, pin))
    }

    #[inline(always)]
    pub(super) fn do_get_key_value<'g, Q: ?Sized>(
        &'g self,
        key: &Q,
        pin: Pin<'g, '_>,
    ) -> Option<Entry<'g, K, V>>
    where
        C: Compares<K, Q>,
    {
        let found = self.tree.with_asked(key, |asked| self.tree.get(asked, pin.guard))?;
        // SAFETY: it was read under the pin.
        Some(unsafe { Self::entry_of(found) })
    }

    #[inline(always)]
    pub(super) fn do_contains_key<Q: ?Sized>(&self, key: &Q, pin: Pin<'_, '_>) -> bool
    where
        C: Compares<K, Q>,
    {
        self.tree.with_asked(key, |asked| self.tree.get(asked, pin.guard)).is_some()
    }

    /// Runs an operation that may insert a key. It returns whether it has. If not, the key is
    /// dropped, or part of the error.
    #[inline(always)]
    fn with_new<T, E>(
        &self,
        key: K,
        pin: Pin<'_, '_>,
        operation: impl FnOnce(At<'_, '_, K, C, P, B>) -> Outcome<T, E>,
    ) -> Result<T, (K, Result<E, AllocError>)> {
        let new = match self.tree.draft(key, pin.guard) {
            Ok(new) => new,
            Err((key, error)) => return Err((key, Err(error))),
        };
        let run = |asked: &Asked<'_, K, C>| {
            operation(At { tree: &self.tree, asked, new: Some(&new), guard: pin.guard })
        };
        match self.tree.with_new(&new, run) {
            Ok((result, is_inserted)) => {
                if is_inserted {
                    new.placed();
                }
                self.drop_some_keys();
                Ok(result)
            }
            Err(error) => Err((new.into_key(), Ok(error))),
        }
    }

    /// Drops removed keys that no pin protects. The tree itself only retires keys: it may do so in
    /// the middle of an operation, where no code of the user may run.
    #[inline(always)]
    pub(super) fn drop_some_keys(&self) {
        if let Some(keys) = self.tree.keys() {
            keys.drop_some();
        }
    }

    #[inline(always)]
    pub(super) fn do_insert<'g>(
        &'g self,
        (key, value): (K, V),
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, Rejected<(K, V)>> {
        let draft = match self.values.drafted(value, pin.guard) {
            Ok(draft) => draft,
            Err(Rejected { value, error }) => return Err(Rejected { value: (key, value), error }),
        };
        let mut draft = Some(draft);
        let outcome = self.with_new(key, pin, |at| {
            let draft = draft.take().expect("it is used once");
            self.values.put(at, draft, pin).map(|old| {
                let is_inserted = old.is_none();
                (old, is_inserted)
            })
        });
        outcome.map_err(|(key, error)| match (error, draft) {
            (Ok(Rejected { value, error }), _) => Rejected { value: (key, value), error },
            (Err(error), Some(draft)) => Rejected { value: (key, draft.into_value()), error },
            (Err(_), None) => unreachable!("the value is used behind the key"),
        })
    }

    #[inline(always)]
    pub(super) fn do_try_insert<'g>(
        &'g self,
        (key, value): (K, V),
        pin: Pin<'g, '_>,
    ) -> Result<ValueRef<'g, V>, RefusedBy<'g, K, V>>
    where
        C: Compares<K, K>,
    {
        // If the key is present, `Occupied` is the result, and no memory is needed.
        let refused = |(key, value): (K, V), error| match self.do_get(&key, pin) {
            Some(present) => TryInsertError::Occupied { present, value: (key, value) },
            None => TryInsertError::Alloc(Rejected { value: (key, value), error }),
        };
        let draft = match self.values.drafted(value, pin.guard) {
            Ok(draft) => draft,
            Err(Rejected { value, error }) => return Err(refused((key, value), error)),
        };
        let mut draft = Some(draft);
        let outcome = self.with_new(key, pin, |at| {
            let draft = draft.take().expect("it is used once");
            self.values.put_new(at, draft, pin).map(|new| (new, true))
        });
        outcome.map_err(|(key, error)| match (error, draft) {
            (Ok(TryInsertError::Occupied { present, value }), _) => {
                TryInsertError::Occupied { present, value: (key, value) }
            }
            (Ok(TryInsertError::Alloc(Rejected { value, error })), _) => {
                TryInsertError::Alloc(Rejected { value: (key, value), error })
            }
            (Err(error), Some(draft)) => refused((key, draft.into_value()), error),
            (Err(_), None) => unreachable!("the value is used behind the key"),
        })
    }

    #[inline(always)]
    fn at_asked<Q: ?Sized, R>(
        &self,
        key: &Q,
        pin: Pin<'_, '_>,
        operation: impl FnOnce(At<'_, '_, K, C, P, B>) -> R,
    ) -> R
    where
        C: Compares<K, Q>,
    {
        let at = |asked: &Asked<'_, K, C>| {
            operation(At { tree: &self.tree, asked, new: None, guard: pin.guard })
        };
        self.tree.with_remembered(key, at)
    }

    #[inline(always)]
    pub(super) fn do_remove<'g, Q: ?Sized>(
        &'g self,
        key: &Q,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, AllocError>
    where
        C: Compares<K, Q>,
    {
        let removed = self.at_asked(key, pin, |at| self.values.take(at, pin));
        self.drop_some_keys();
        removed
    }

    pub(super) fn do_remove_entry<'g, Q: ?Sized>(
        &'g self,
        key: &Q,
        pin: Pin<'g, '_>,
    ) -> Result<Option<Entry<'g, K, V>>, AllocError>
    where
        C: Compares<K, Q>,
    {
        let remove = |asked: &Asked<'_, K, C>| {
            self.tree.update(asked, None, None, Update::Remove, pin.guard)
        };
        let removed = self.tree.with_remembered(key, remove)?;
        Ok(removed.map(|removed| self.popped(removed, pin)))
    }

    pub(super) fn do_remove_if<'g, Q: ?Sized>(
        &'g self,
        key: &Q,
        condition: impl FnMut(&V) -> bool,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, RemoveIfError<ValueRef<'g, V>>>
    where
        C: Compares<K, Q>,
    {
        let removed = self.at_asked(key, pin, |at| match at.get() {
            Some(word) => self.values.take_if(at, word, condition, pin),
            None => Ok(None),
        });
        self.drop_some_keys();
        removed
    }

    pub(super) fn do_update<'g, Q: ?Sized>(
        &'g self,
        key: &Q,
        mut change: impl FnMut(&V) -> V,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, Rejected<Option<V>>>
    where
        C: Compares<K, Q>,
    {
        let decide = |value: Option<&V>| match value {
            Some(value) => Operation::Insert(change(value)),
            None => Operation::Abort(()),
        };
        let computed = self.at_asked(key, pin, |at| self.values.compute(at, decide, pin))?;
        match computed {
            Compute::Inserted(new) | Compute::Updated { new, .. } => Ok(Some(new)),
            Compute::Removed(_) | Compute::Aborted(()) => Ok(None),
        }
    }

    pub(super) fn do_compute<'g, T>(
        &'g self,
        key: K,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
        pin: Pin<'g, '_>,
    ) -> Computed<'g, K, V, T> {
        let outcome = self.with_new(key, pin, |at| {
            self.values.compute(at, decide, pin).map(|computed| {
                let is_inserted = matches!(computed, Compute::Inserted(_));
                (computed, is_inserted)
            })
        });
        outcome.map_err(|(key, error)| match error {
            Ok(Rejected { value, error }) => Rejected { value: (key, value), error },
            Err(error) => Rejected { value: (key, None), error },
        })
    }

    pub(super) fn do_compare_exchange<'g, Q: ?Sized>(
        &'g self,
        key: &Q,
        expected: &V,
        new: Option<V>,
        pin: Pin<'g, '_>,
    ) -> Result<ValueRef<'g, V>, CompareExchangeError<ValueRef<'g, V>, V>>
    where
        C: Compares<K, Q>,
        V: PartialEq,
    {
        let exchange =
            |at: At<'_, '_, K, C, P, B>| self.values.exchange(at, Some(expected), new, pin);
        let old = self.at_asked(key, pin, exchange)?;
        self.drop_some_keys();
        Ok(old.unwrap_or_else(|| unreachable!("the key had the expected value")))
    }

    pub(super) fn do_first<'g>(&'g self, pin: Pin<'g, '_>) -> Option<Entry<'g, K, V>> {
        // SAFETY: it was read under the pin.
        Some(unsafe { Self::entry_of(self.tree.end::<false>(pin.guard)?) })
    }

    pub(super) fn do_last<'g>(&'g self, pin: Pin<'g, '_>) -> Option<Entry<'g, K, V>> {
        // SAFETY: it was read under the pin.
        Some(unsafe { Self::entry_of(self.tree.end::<true>(pin.guard)?) })
    }

    pub(super) fn do_pop_first<'g>(
        &'g self,
        pin: Pin<'g, '_>,
    ) -> Result<Option<Entry<'g, K, V>>, AllocError> {
        Ok(self.tree.pop::<false>(pin.guard)?.map(|popped| self.popped(popped, pin)))
    }

    pub(super) fn do_pop_last<'g>(
        &'g self,
        pin: Pin<'g, '_>,
    ) -> Result<Option<Entry<'g, K, V>>, AllocError> {
        Ok(self.tree.pop::<true>(pin.guard)?.map(|popped| self.popped(popped, pin)))
    }

    /// References to an entry that the caller took out of the tree, which has retired the key.
    fn popped<'g>(&'g self, (key, value): Words, pin: Pin<'g, '_>) -> Entry<'g, K, V> {
        self.drop_some_keys();
        // SAFETY: O1: the word is that of a key, which was in the tree after the pin was taken.
        (unsafe { ValueRef::new(key) }, self.values.taken(value, pin))
    }

    /// The first entry at or after a bound, or the last one at or before it if `DESCENDS`.
    fn beside<'g, Q: ?Sized, const DESCENDS: bool>(
        &'g self,
        bound: Bound<&Q>,
        pin: Pin<'g, '_>,
    ) -> Option<Entry<'g, K, V>>
    where
        C: Compares<K, Q>,
    {
        let mut scan = self.tree.scan::<DESCENDS>(pin.guard);
        let found = match bound {
            Bound::Unbounded => scan.next([Bound::Unbounded; 2]),
            Bound::Included(key) => self
                .tree
                .with_asked(key, |asked| scan.next([Bound::Included(asked), Bound::Unbounded])),
            Bound::Excluded(key) => self
                .tree
                .with_asked(key, |asked| scan.next([Bound::Excluded(asked), Bound::Unbounded])),
        };
        // SAFETY: it was read under the pin.
        Some(unsafe { Self::entry_of(found?) })
    }

    pub(super) fn do_lower_bound<'g, Q: ?Sized>(
        &'g self,
        bound: Bound<&Q>,
        pin: Pin<'g, '_>,
    ) -> Option<Entry<'g, K, V>>
    where
        C: Compares<K, Q>,
    {
        self.beside::<Q, false>(bound, pin)
    }

    pub(super) fn do_upper_bound<'g, Q: ?Sized>(
        &'g self,
        bound: Bound<&Q>,
        pin: Pin<'g, '_>,
    ) -> Option<Entry<'g, K, V>>
    where
        C: Compares<K, Q>,
    {
        self.beside::<Q, true>(bound, pin)
    }
}
