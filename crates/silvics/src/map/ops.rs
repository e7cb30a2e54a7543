//! The operations of a map on one key and on both ends: those of `spot.rs` on keys of the index.
//! The guards and pins that they take are of the map's domain.

use super::key::{AsKey, FormRef, Key};
use super::lend::Pin;
use super::spot::At;
use super::value::Draft;
use super::{
    CompareExchangeError, Compute, Keyed, Map, MapIndex, Operation, Rejected, RemoveIfError,
    TryInsertError, Value, ValueRef,
};
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::index::{KeyRef, OrderedEnds};

/// Evaluates `$body` with the form of a key. If the form is available, the body is not in a
/// closure, so that the compiler optimizes it together with the code around.
macro_rules! with_form {
    ($key:expr, $form:ident => $body:expr) => {
        match $key.form() {
            Some($form) => $body,
            None => $key.with_form(|$form| $body),
        }
    };
}

/// Evaluates `$body` with the form of a key that may be inserted (M5).
macro_rules! with_new_form {
    ($key:expr, $form:ident => $body:expr) => {
        with_form!($key, $form => {
            admit::<K>($key, short::<K>($form));
            $body
        })
    };
}

pub(super) use {with_form, with_new_form};

/// Checks a form before it is inserted, and panics if it is not valid (M5).
#[inline(always)]
pub(super) fn admit<K: Key>(key: &(impl AsKey<K> + ?Sized), form: FormRef<'_, K>) {
    if key.vouches().is_none() {
        K::admit(form);
    }
}

/// Shortens the lifetime of a key's form.
pub(super) fn short<'s, 'l: 's, K: Key>(
    form: <K::Form as IndexKey>::Ref<'l>,
) -> <K::Form as IndexKey>::Ref<'s> {
    <K::Form as IndexKey>::shorten(form)
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// Decodes a form that the index returned.
    #[inline(always)]
    pub(super) fn key_of(form: KeyRef<'_, I>) -> K::Ref<'_> {
        // SAFETY: M5: a vouching type wrote the form, or `admit` has returned for it.
        unsafe { K::from_own_form(form) }
    }

    /// Copies the key of a form that the index returned.
    #[inline(always)]
    pub(super) fn owned_key_of(form: KeyRef<'_, I>) -> K {
        K::to_owned(Self::key_of(form))
    }

    /// A key of the index, under a guard.
    #[inline(always)]
    fn at<'a, 'f: 'a>(&'a self, form: KeyRef<'f, I>, pin: Pin<'_, 'a>) -> At<'a, I> {
        At { index: &self.index, form: short::<K>(form), guard: pin.guard }
    }

    #[inline(always)]
    pub(super) fn do_get<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'g, '_>,
    ) -> Option<ValueRef<'g, V>> {
        let word = with_form!(key, form => self.index.get(form, pin.guard))?;
        Some(self.values.lent(word, pin))
    }

    #[inline(always)]
    pub(super) fn do_contains_key(&self, key: &(impl AsKey<K> + ?Sized), pin: Pin<'_, '_>) -> bool {
        with_form!(key, form => self.index.get(form, pin.guard)).is_some()
    }

    #[inline(always)]
    pub(super) fn do_insert<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        value: V,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, Rejected<V>> {
        let draft = self.values.drafted(value, pin.guard)?;
        with_new_form!(key, form => self.values.put(self.at(form, pin), draft, pin))
    }

    /// Inserts a value under the key that it contains.
    pub(super) fn do_insert_keyed<'g>(
        &'g self,
        value: V,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, Rejected<V>>
    where
        V: Keyed<Key = K>,
    {
        let draft = self.values.drafted(value, pin.guard)?;
        let word = draft.word();
        let mut draft = Some(draft);
        let outcome = {
            // The value stays in its place while the key borrows it: the draft ends below, or the
            // index has the word and the pin protects the value. The draft must end before the
            // key's user code runs again, or a panic there would drop a value of the index (M4).
            let value = self.values.lent(word, pin);
            let key = value.key();
            with_new_form!(&key, form => self.index.insert(form, word, pin.guard).map(|old| {
                draft.take().into_iter().for_each(Draft::placed);
                old.map(|old| self.values.taken(old, pin))
            }))
        };
        match (outcome, draft) {
            (Err(error), Some(draft)) => Err(Rejected { value: draft.into_value(), error }),
            (Err(_), None) => unreachable!("the draft of a refused word"),
            (Ok(old), _) => Ok(old),
        }
    }

    #[inline(always)]
    pub(super) fn do_try_insert<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        value: V,
        pin: Pin<'g, '_>,
    ) -> Result<ValueRef<'g, V>, TryInsertError<ValueRef<'g, V>, V>> {
        let draft = match self.values.drafted(value, pin.guard) {
            Ok(draft) => draft,
            // If the key is present, `Occupied` is the result, and no memory is needed.
            Err(rejected) => {
                return Err(match self.do_get(key, pin) {
                    Some(present) => TryInsertError::Occupied { present, value: rejected.value },
                    None => TryInsertError::Alloc(rejected),
                });
            }
        };
        with_new_form!(key, form => self.values.put_new(self.at(form, pin), draft, pin))
    }

    #[inline(always)]
    pub(super) fn do_remove<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, AllocError> {
        with_form!(key, form => self.values.take(self.at(form, pin), pin))
    }

    /// Removes an entry whose value had this word, if `condition` holds for its value. Checks the
    /// condition again for each other value that it finds.
    pub(super) fn remove_form_if<'g>(
        &'g self,
        form: KeyRef<'_, I>,
        word: u64,
        condition: impl FnMut(&V) -> bool,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, RemoveIfError<ValueRef<'g, V>>> {
        self.values.take_if(self.at(form, pin), word, condition, pin)
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
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
        pin: Pin<'g, '_>,
    ) -> Result<Compute<ValueRef<'g, V>, T>, Rejected<Option<V>>> {
        key.with_form(|form| {
            admit::<K>(key, short::<K>(form));
            self.values.compute(self.at(form, pin), decide, pin)
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
            self.values.exchange(self.at(form, pin), expected, new, pin)
        })
    }

    pub(super) fn do_first<'g, 'c, Q>(
        &'g self,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Option<(Q, ValueRef<'g, V>)>
    where
        I: OrderedEnds,
    {
        let (form, word) = self.index.first(pin.guard)?;
        Some((key_of(form), self.values.lent(word, pin)))
    }

    pub(super) fn do_last<'g, 'c, Q>(
        &'g self,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Option<(Q, ValueRef<'g, V>)>
    where
        I: OrderedEnds,
    {
        let (form, word) = self.index.last(pin.guard)?;
        Some((key_of(form), self.values.lent(word, pin)))
    }

    pub(super) fn do_pop_first<'g, 'c, Q>(
        &'g self,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Result<Option<(Q, ValueRef<'g, V>)>, AllocError>
    where
        I: OrderedEnds,
    {
        Ok(self.index.pop_first(pin.guard)?.map(|popped| self.popped(popped, key_of, pin)))
    }

    pub(super) fn do_pop_last<'g, 'c, Q>(
        &'g self,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Result<Option<(Q, ValueRef<'g, V>)>, AllocError>
    where
        I: OrderedEnds,
    {
        Ok(self.index.pop_last(pin.guard)?.map(|popped| self.popped(popped, key_of, pin)))
    }

    /// Returns references to an entry that the caller took out of the index.
    fn popped<'g, 'c, Q>(
        &'g self,
        (form, word): (KeyRef<'c, I>, u64),
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> (Q, ValueRef<'g, V>) {
        // Retired before the key is decoded: decoding is user code and may panic.
        let value = self.values.taken(word, pin);
        (key_of(form), value)
    }
}
