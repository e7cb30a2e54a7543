//! Keys in the opposite order.

use super::{AsKey, Form, FormRef, Key};
use crate::encoding::{Decoder, Encoder};
use std::cmp::{Ordering, Reverse};

impl<T: Key> Key for Reverse<T> {
    type Form = T::Form;
    type Ref<'a> = Reverse<T::Part<'a>>;
    type Part<'a> = Reverse<T::Part<'a>>;

    #[inline]
    fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
        Reverse(T::Form::read_reversed::<T>(form))
    }
    #[inline]
    fn read<'a>(from: &mut Decoder<'a>) -> Self::Part<'a> {
        Reverse(from.reversed(T::read))
    }
    #[inline]
    fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
        key
    }
    #[inline]
    fn part_to_owned(part: Self::Part<'_>) -> Self {
        Reverse(T::part_to_owned(part.0))
    }
    #[inline]
    fn compare(&self, other: &Self) -> Ordering {
        other.0.compare(&self.0)
    }
}

impl<T: Key, Q: AsKey<T>> AsKey<Reverse<T>> for Reverse<Q> {
    #[inline]
    fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, Reverse<T>>) -> R) -> R {
        T::Form::with_reversed::<T, R>(&self.0, then)
    }
    #[inline(always)]
    fn form(&self) -> Option<FormRef<'_, Reverse<T>>> {
        T::Form::reversed::<T>(&self.0)
    }
    #[inline]
    fn write(&self, to: &mut Encoder) {
        to.reversed(|to| self.0.write(to));
    }
}
