//! The operations of a map: the index's, with values behind its words.
//!
//! Guards and pins that they are given are of the map's domain.

use super::key::{AsKey, FormRef, Key};
use super::value::Draft;
use super::{Entry, Map, MapIndex, Value, ValueRef};
use crate::canary::{Canary, planted};
use crate::domain::{Guard, OwnedGuard};
use crate::encoding::IndexKey;
use crate::error::{self, AllocError};
use crate::index::{KeyRef, OrderedEnds};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

/// A value that could not be put into a map, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rejected<V> {
    /// It goes back to where it came from.
    pub value: V,
    /// Memory could not be had, or the key is too long; the map is as it was.
    pub error: AllocError,
}

impl<V> Rejected<V> {
    fn some(self) -> Rejected<Option<V>> {
        Rejected { value: Some(self.value), error: self.error }
    }
}

/// Why [`View::try_insert`](super::View::try_insert) did not insert. Either gives the value back. `R` is how a value is lent.
#[derive(Debug)]
#[non_exhaustive]
pub enum TryInsertError<R, V> {
    /// The key is present.
    Occupied {
        /// What it has.
        present: R,
        /// What was to be inserted.
        value: V,
    },
    /// Memory could not be had.
    Alloc(Rejected<V>),
}

/// Why [`View::compare_exchange`](super::View::compare_exchange) did not exchange. Either gives the new value back.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompareExchangeError<R, V> {
    /// The key is in this state instead of the expected one; `None` is *absent*.
    Mismatch {
        /// The state it is in.
        present: Option<R>,
        /// What was to be put there.
        new: Option<V>,
    },
    /// Memory could not be had.
    Alloc(Rejected<Option<V>>),
}

/// Why [`View::try_remove_if`](super::View::try_remove_if) did not remove a key that is present.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoveIfError<R> {
    /// The condition does not hold of its value.
    Kept(R),
    /// The index has to allocate to remove, and memory could not be had.
    Alloc(AllocError),
}

/// What the closure of [`View::compute`](super::View::compute) wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<V, T = ()> {
    /// The key is to have this value, whether it is present or not.
    Insert(V),
    /// The key is to be absent.
    Remove,
    /// Nothing is to change, and the caller to be told this.
    Abort(T),
}

/// What [`View::compute`](super::View::compute) has done. `R` is how a value is lent.
#[derive(Clone, Copy, Debug)]
pub enum Compute<R, T = ()> {
    /// The key was absent and has a value.
    Inserted(R),
    /// The key had a value and has another.
    Updated {
        /// The value it had.
        old: R,
        /// The value it has.
        new: R,
    },
    /// The key had this value and is absent; or it was absent.
    Removed(Option<R>),
    /// Nothing has changed.
    Aborted(T),
}

impl<R, T> Compute<R, T> {
    /// The same with values lent otherwise.
    pub(super) fn map<S>(self, mut lend: impl FnMut(R) -> S) -> Compute<S, T> {
        match self {
            Self::Inserted(new) => Compute::Inserted(lend(new)),
            Self::Updated { old, new } => Compute::Updated { old: lend(old), new: lend(new) },
            Self::Removed(old) => Compute::Removed(old.map(lend)),
            Self::Aborted(told) => Compute::Aborted(told),
        }
    }
}

impl<V> fmt::Display for Rejected<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<R, V> fmt::Display for TryInsertError<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied { .. } => write!(f, "the key is present"),
            Self::Alloc(rejected) => rejected.fmt(f),
        }
    }
}

impl<R, V> fmt::Display for CompareExchangeError<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { present: Some(_), .. } => write!(f, "the key has another value"),
            Self::Mismatch { present: None, .. } => write!(f, "the key is absent"),
            Self::Alloc(rejected) => rejected.fmt(f),
        }
    }
}

impl<R> fmt::Display for RemoveIfError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(_) => write!(f, "the condition does not hold"),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl<V: fmt::Debug> Error for Rejected<V> {}
impl<R: fmt::Debug, V: fmt::Debug> Error for TryInsertError<R, V> {}
impl<R: fmt::Debug, V: fmt::Debug> Error for CompareExchangeError<R, V> {}
impl<R: fmt::Debug> Error for RemoveIfError<R> {}

/// That the map's domain is pinned, and stays so for `'g`.
#[derive(Clone, Copy)]
pub(super) struct Pin<'g, 'c> {
    /// For calls of the index.
    pub(super) guard: &'c Guard,
    lends: PhantomData<&'g ()>,
}

impl<'g> From<&'g Guard> for Pin<'g, 'g> {
    #[inline(always)]
    fn from(guard: &'g Guard) -> Self {
        Self { guard, lends: PhantomData }
    }
}

impl<'g, 'c> Pin<'g, 'c> {
    /// For calls under a guard that goes before `'g` ends, what they lend being protected by an owned one.
    ///
    /// # Safety
    /// Both are of the map's domain, and `guard` is the younger one.
    pub(super) unsafe fn beside(guard: &'c Guard, _owned: &'g OwnedGuard) -> Self {
        Self { guard, lends: PhantomData }
    }
}

/// Does something with a key's form: in place where it need not be made, so that nothing stands in the way of the compiler.
macro_rules! with_form {
    ($key:expr, $form:ident => $body:expr) => {
        match $key.form() {
            Some($form) => $body,
            None => $key.with_form(|$form| $body),
        }
    };
}

/// The same with a key that may come into the index (M5).
macro_rules! with_new_form {
    ($key:expr, $form:ident => $body:expr) => {
        with_form!($key, $form => {
            admit::<K>($key, short::<K>($form));
            $body
        })
    };
}

/// Lets a form into the index, or panics (M5).
#[inline(always)]
pub(super) fn admit<K: Key>(key: &(impl AsKey<K> + ?Sized), form: FormRef<'_, K>) {
    if key.vouches().is_none() {
        K::admit(form);
    }
}

/// A value on its way into a map.
type DraftOf<'m, V, I> = Draft<'m, V, <I as MapIndex>::Placement>;

/// An index's key with a shorter life.
pub(super) fn short<'s, 'l: 's, K: Key>(
    form: <K::Form as IndexKey>::Ref<'l>,
) -> <K::Form as IndexKey>::Ref<'s> {
    <K::Form as IndexKey>::shorten(form)
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// The key of a form that the index has given.
    #[inline(always)]
    pub(super) fn key_of(form: KeyRef<'_, I>) -> K::Ref<'_> {
        // SAFETY: M5.
        unsafe { K::from_own_form(form) }
    }

    /// A value that has been read, or taken out, under a pin.guard.
    #[inline(always)]
    #[allow(clippy::unused_self)] // which what is lent borrows
    pub(super) fn lent<'g>(&'g self, word: u64, _pin: Pin<'g, '_>) -> ValueRef<'g, V> {
        // SAFETY: M1, M3.
        unsafe { ValueRef::new(word) }
    }

    /// The value of a word that the caller has just taken out of the index.
    #[inline(always)]
    pub(super) fn taken<'g>(&'g self, word: u64, pin: Pin<'g, '_>) -> ValueRef<'g, V> {
        if planted(Canary::ValueFreedAtOnce) {
            // SAFETY: none, that is the mistake.
            unsafe { self.values.drop_in_index(word) };
            return self.lent(word, pin);
        }
        // SAFETY: M2.
        unsafe { self.values.retire(word, pin.guard) };
        self.lent(word, pin)
    }

    #[inline(always)]
    pub(super) fn draft(&self, value: V, guard: &Guard) -> Result<DraftOf<'_, V, I>, Rejected<V>> {
        self.values.draft(value, guard).map_err(|(value, error)| Rejected { value, error })
    }

    #[inline(always)]
    pub(super) fn do_get<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'g, '_>,
    ) -> Option<ValueRef<'g, V>> {
        let word = with_form!(key, form => self.index.get(form, pin.guard))?;
        Some(self.lent(word, pin))
    }

    #[inline(always)]
    pub(super) fn do_insert<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        value: V,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, Rejected<V>> {
        let draft = self.draft(value, pin.guard)?;
        with_new_form!(key, form => match self.index.insert(form, draft.word(), pin.guard) {
            Ok(old) => {
                draft.placed();
                Ok(old.map(|old| self.taken(old, pin)))
            }
            Err(error) => Err(Rejected { value: draft.into_value(), error }),
        })
    }

    #[inline(always)]
    pub(super) fn do_try_insert<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        value: V,
        pin: Pin<'g, '_>,
    ) -> Result<ValueRef<'g, V>, TryInsertError<ValueRef<'g, V>, V>> {
        let draft = match self.draft(value, pin.guard) {
            Ok(draft) => draft,
            // Of a key that is present that is the answer.
            Err(rejected) => {
                return Err(match self.do_get(key, pin) {
                    Some(present) => TryInsertError::Occupied { present, value: rejected.value },
                    None => TryInsertError::Alloc(rejected),
                });
            }
        };
        let word = draft.word();
        with_new_form!(key, form => match self.index.try_insert(form, word, pin.guard) {
            Ok(()) => {
                draft.placed();
                Ok(self.lent(word, pin))
            }
            Err(error::TryInsertError::Occupied(present)) => {
                let present = self.lent(present, pin);
                Err(TryInsertError::Occupied { present, value: draft.into_value() })
            }
            Err(error::TryInsertError::Alloc(error)) => {
                Err(TryInsertError::Alloc(Rejected { value: draft.into_value(), error }))
            }
        })
    }

    #[inline(always)]
    pub(super) fn do_remove<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, AllocError> {
        with_form!(key, form => match self.index.remove(form, pin.guard) {
            Ok(old) => Ok(old.map(|old| self.taken(old, pin))),
            Err(error) => Err(error),
        })
    }

    pub(super) fn do_get_or_insert_with<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        make: impl FnOnce() -> V,
        pin: Pin<'g, '_>,
    ) -> Result<ValueRef<'g, V>, Rejected<V>> {
        if let Some(present) = self.do_get(key, pin) {
            return Ok(present);
        }
        match self.do_try_insert(key, make(), pin) {
            Ok(present) | Err(TryInsertError::Occupied { present, .. }) => Ok(present),
            Err(TryInsertError::Alloc(rejected)) => Err(rejected),
        }
    }

    /// Removes an entry as long as `condition` holds of its value: that one's, each time another is found.
    pub(super) fn remove_form_if<'g>(
        &'g self,
        form: KeyRef<'_, I>,
        mut word: u64,
        mut condition: impl FnMut(&V) -> bool,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, RemoveIfError<ValueRef<'g, V>>> {
        loop {
            let value = self.lent(word, pin);
            if !condition(&value) {
                return Err(RemoveIfError::Kept(value));
            }
            match self.index.compare_exchange(short::<K>(form), Some(word), None, pin.guard) {
                Ok(()) => return Ok(Some(self.taken(word, pin))),
                Err(error::CompareExchangeError::Mismatch(Some(now))) => word = now,
                Err(error::CompareExchangeError::Mismatch(None)) => return Ok(None),
                Err(error::CompareExchangeError::Alloc(error)) => {
                    return Err(RemoveIfError::Alloc(error));
                }
            }
        }
    }

    pub(super) fn do_remove_if<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        condition: impl FnMut(&V) -> bool,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, RemoveIfError<ValueRef<'g, V>>> {
        key.with_form(|form| match self.index.get(short::<K>(form), pin.guard) {
            Some(word) => self.remove_form_if(form, word, condition, pin),
            None => Ok(None),
        })
    }

    pub(super) fn do_compute<'g, T>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        mut decide: impl FnMut(Option<&V>) -> Operation<V, T>,
        pin: Pin<'g, '_>,
    ) -> Result<Compute<ValueRef<'g, V>, T>, Rejected<Option<V>>> {
        key.with_form(|form| {
            admit::<K>(key, short::<K>(form));
            let mut seen = self.index.get(short::<K>(form), pin.guard);
            loop {
                let old = seen.map(|word| self.lent(word, pin));
                let draft = match decide(old.as_deref()) {
                    Operation::Insert(value) => {
                        Some(self.draft(value, pin.guard).map_err(Rejected::some)?)
                    }
                    Operation::Remove => None,
                    Operation::Abort(told) => return Ok(Compute::Aborted(told)),
                };
                let word = draft.as_ref().map(Draft::word);
                match self.index.compare_exchange(short::<K>(form), seen, word, pin.guard) {
                    Ok(()) => {
                        draft.into_iter().for_each(Draft::placed);
                        let old = seen.map(|word| self.taken(word, pin));
                        return Ok(match (old, word.map(|word| self.lent(word, pin))) {
                            (Some(old), Some(new)) => Compute::Updated { old, new },
                            (None, Some(new)) => Compute::Inserted(new),
                            (old, None) => Compute::Removed(old),
                        });
                    }
                    Err(error::CompareExchangeError::Mismatch(now)) => seen = now,
                    Err(error::CompareExchangeError::Alloc(error)) => {
                        return Err(Rejected { value: draft.map(Draft::into_value), error });
                    }
                }
            }
        })
    }

    pub(super) fn do_update<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        mut change: impl FnMut(&V) -> V,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, Rejected<Option<V>>> {
        let decide = |value: Option<&V>| match value {
            Some(value) => Operation::Insert(change(value)),
            None => Operation::Abort(()),
        };
        match self.do_compute(key, decide, pin)? {
            Compute::Inserted(new) | Compute::Updated { new, .. } => Ok(Some(new)),
            Compute::Removed(_) | Compute::Aborted(()) => Ok(None),
        }
    }

    pub(super) fn do_compare_exchange<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        expected: Option<&V>,
        new: Option<V>,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, CompareExchangeError<ValueRef<'g, V>, V>>
    where
        V: PartialEq,
    {
        key.with_form(|form| {
            admit::<K>(key, short::<K>(form));
            let mut seen = self.index.get(short::<K>(form), pin.guard);
            let mut new = new;
            let mut again = false;
            loop {
                let present = seen.map(|word| self.lent(word, pin));
                let trusted = again && planted(Canary::OtherValueTrusted);
                if present.as_deref() != expected && !trusted {
                    return Err(CompareExchangeError::Mismatch { present, new });
                }
                let draft = match new.map(|value| self.draft(value, pin.guard)).transpose() {
                    Ok(draft) => draft,
                    Err(rejected) => return Err(CompareExchangeError::Alloc(rejected.some())),
                };
                let word = draft.as_ref().map(Draft::word);
                match self.index.compare_exchange(short::<K>(form), seen, word, pin.guard) {
                    Ok(()) => {
                        draft.into_iter().for_each(Draft::placed);
                        return Ok(seen.map(|word| self.taken(word, pin)));
                    }
                    Err(error::CompareExchangeError::Mismatch(now)) => seen = now,
                    Err(error::CompareExchangeError::Alloc(error)) => {
                        let value = draft.map(Draft::into_value);
                        return Err(CompareExchangeError::Alloc(Rejected { value, error }));
                    }
                }
                // It goes back, for `==` is the user's.
                new = draft.map(Draft::into_value);
                again = true;
            }
        })
    }

    pub(super) fn do_pop<'g, const REV: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<Entry<'g, K, V>>, AllocError>
    where
        I: OrderedEnds,
    {
        let popped = if REV { self.index.pop_last(guard)? } else { self.index.pop_first(guard)? };
        Ok(popped.map(|(form, word)| {
            // First, as decoding is the user's.
            let value = self.taken(word, guard.into());
            (Self::key_of(form), value)
        }))
    }

    pub(super) fn do_end<'g, const REV: bool>(&'g self, guard: &'g Guard) -> Option<Entry<'g, K, V>>
    where
        I: OrderedEnds,
    {
        let (form, word) = if REV { self.index.last(guard)? } else { self.index.first(guard)? };
        Some((Self::key_of(form), self.lent(word, guard.into())))
    }
}
