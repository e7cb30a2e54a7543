//! The operations on one key of a map: those on its word, with values behind the words.

use super::lend::Pin;
use super::value::{Draft, Values};
use super::{
    CompareExchangeError, Compute, MapIndex, Operation, Rejected, RemoveIfError, TryInsertError,
    Value, ValueRef,
};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::KeyRef;
use crate::update::Update;
use silvics_pool::Placement;

/// One key, whose word can be read and changed under a guard.
///
/// # Safety
/// The operations keep clauses 1 to 4 of [`MapIndex`](super::MapIndex).
pub(super) unsafe trait Spot: Copy {
    /// The word of the key.
    fn get(self) -> Option<u64>;

    /// See [`OrderedIndex::update`](crate::OrderedIndex::update).
    fn update(self, verb: Update) -> Result<Option<u64>, AllocError>;
}

/// A key of an index.
pub(super) struct At<'a, I: MapIndex> {
    pub(super) index: &'a I,
    pub(super) form: KeyRef<'a, I>,
    pub(super) guard: &'a Guard,
}

impl<I: MapIndex> Clone for At<'_, I> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<I: MapIndex> Copy for At<'_, I> {}

// SAFETY: `Map` has an index that is a `MapIndex`.
unsafe impl<I: MapIndex> Spot for At<'_, I> {
    #[inline(always)]
    fn get(self) -> Option<u64> {
        self.index.get(self.form, self.guard)
    }

    #[inline(always)]
    fn update(self, verb: Update) -> Result<Option<u64>, AllocError> {
        self.index.update(self.form, verb, self.guard)
    }
}

/// The pins that these operations take are of the domain of the values, and were taken before the
/// spot reads its word.
impl<V: Value, P: Placement> Values<V, P> {
    /// Returns a reference to the value of a word that was read, or taken out, under `pin.guard`.
    #[inline(always)]
    #[allow(clippy::unused_self)] // the value borrows the map
    pub(super) fn lent<'g>(&'g self, word: u64, _pin: Pin<'g, '_>) -> ValueRef<'g, V> {
        // SAFETY: M1: the word is that of a value; M3: the pin was taken before the word was read,
        // and its values stay readable for `'g`.
        unsafe { ValueRef::new(word) }
    }

    /// Retires the value of a word that the caller took out of the index, and returns a reference
    /// to it.
    #[inline(always)]
    pub(super) fn taken<'g>(&'g self, word: u64, pin: Pin<'g, '_>) -> ValueRef<'g, V> {
        if planted(Canary::ValueFreedAtOnce) {
            // SAFETY: none; this is the seeded mistake.
            unsafe { self.drop_in_index(word) };
            return self.lent(word, pin);
        }
        // SAFETY: M2: the index returned the word to this caller alone.
        unsafe { self.retire(word, pin.guard) };
        self.lent(word, pin)
    }

    /// Moves a value into its slot.
    #[inline(always)]
    pub(super) fn drafted(&self, value: V, guard: &Guard) -> Result<Draft<'_, V, P>, Rejected<V>> {
        self.draft(value, guard).map_err(|(value, error)| Rejected { value, error })
    }

    /// Gives a key a value, and returns the one before.
    #[inline(always)]
    pub(super) fn put<'g>(
        &'g self,
        spot: impl Spot,
        draft: Draft<'_, V, P>,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, Rejected<V>> {
        match spot.update(Update::Insert(draft.word())) {
            Ok(old) => {
                draft.placed();
                Ok(old.map(|old| self.taken(old, pin)))
            }
            Err(error) => Err(Rejected { value: draft.into_value(), error }),
        }
    }

    /// Gives an absent key a value, and returns it.
    #[inline(always)]
    pub(super) fn put_new<'g>(
        &'g self,
        spot: impl Spot,
        draft: Draft<'_, V, P>,
        pin: Pin<'g, '_>,
    ) -> Result<ValueRef<'g, V>, TryInsertError<ValueRef<'g, V>, V>> {
        let word = draft.word();
        match spot.update(Update::TryInsert(word)) {
            Ok(None) => {
                draft.placed();
                Ok(self.lent(word, pin))
            }
            Ok(Some(present)) => {
                let present = self.lent(present, pin);
                Err(TryInsertError::Occupied { present, value: draft.into_value() })
            }
            Err(error) => Err(TryInsertError::Alloc(Rejected { value: draft.into_value(), error })),
        }
    }

    /// Removes a key, and returns its value.
    #[inline(always)]
    pub(super) fn take<'g>(
        &'g self,
        spot: impl Spot,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, AllocError> {
        let old = spot.update(Update::Remove)?;
        Ok(old.map(|old| self.taken(old, pin)))
    }

    /// Removes a key whose value had this word, if `condition` holds for its value. Checks the
    /// condition again for each other value that it finds.
    pub(super) fn take_if<'g>(
        &'g self,
        spot: impl Spot,
        mut word: u64,
        mut condition: impl FnMut(&V) -> bool,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, RemoveIfError<ValueRef<'g, V>>> {
        loop {
            let value = self.lent(word, pin);
            if !condition(&value) {
                return Err(RemoveIfError::Kept(value));
            }
            let verb = Update::CompareExchange { expected: Some(word), new: None };
            match spot.update(verb).map_err(RemoveIfError::Alloc)? {
                Some(found) if found == word => return Ok(Some(self.taken(word, pin))),
                Some(now) => word = now,
                None => return Ok(None),
            }
        }
    }

    /// Changes the state of a key as `decide` says.
    pub(super) fn compute<'g, T>(
        &'g self,
        spot: impl Spot,
        mut decide: impl FnMut(Option<&V>) -> Operation<V, T>,
        pin: Pin<'g, '_>,
    ) -> Result<Compute<ValueRef<'g, V>, T>, Rejected<Option<V>>> {
        let mut seen = spot.get();
        loop {
            let old = seen.map(|word| self.lent(word, pin));
            let draft = match decide(old.as_deref()) {
                Operation::Insert(value) => {
                    Some(self.drafted(value, pin.guard).map_err(Rejected::some)?)
                }
                Operation::Remove => None,
                Operation::Abort(told) => return Ok(Compute::Aborted(told)),
            };
            let word = draft.as_ref().map(Draft::word);
            match spot.update(Update::CompareExchange { expected: seen, new: word }) {
                Ok(found) if found == seen => {
                    draft.into_iter().for_each(Draft::placed);
                    let old = seen.map(|word| self.taken(word, pin));
                    return Ok(match (old, word.map(|word| self.lent(word, pin))) {
                        (Some(old), Some(new)) => Compute::Updated { old, new },
                        (None, Some(new)) => Compute::Inserted(new),
                        (old, None) => Compute::Removed(old),
                    });
                }
                Ok(now) => seen = now,
                Err(error) => return Err(Rejected { value: draft.map(Draft::into_value), error }),
            }
        }
    }

    /// Brings a key from one state to another.
    pub(super) fn exchange<'g>(
        &'g self,
        spot: impl Spot,
        expected: Option<&V>,
        mut new: Option<V>,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, CompareExchangeError<ValueRef<'g, V>, V>>
    where
        V: PartialEq,
    {
        let mut seen = spot.get();
        let mut again = false;
        loop {
            let present = seen.map(|word| self.lent(word, pin));
            let trusted = again && planted(Canary::OtherValueTrusted);
            if present.as_deref() != expected && !trusted {
                return Err(CompareExchangeError::Mismatch { present, new });
            }
            let draft = match new.map(|value| self.drafted(value, pin.guard)).transpose() {
                Ok(draft) => draft,
                Err(rejected) => return Err(CompareExchangeError::Alloc(rejected.some())),
            };
            let word = draft.as_ref().map(Draft::word);
            match spot.update(Update::CompareExchange { expected: seen, new: word }) {
                Ok(found) if found == seen => {
                    draft.into_iter().for_each(Draft::placed);
                    return Ok(seen.map(|word| self.taken(word, pin)));
                }
                Ok(now) => seen = now,
                Err(error) => {
                    let value = draft.map(Draft::into_value);
                    return Err(CompareExchangeError::Alloc(Rejected { value, error }));
                }
            }
            // The value leaves its slot, since a mismatch returns it to the caller.
            new = draft.map(Draft::into_value);
            again = true;
        }
    }
}
