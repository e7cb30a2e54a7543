//! Keys that are strings of characters or of bytes.

use super::{AsKey, AsPrefix, FormRef, Key, Vouched};
use crate::encoding::{Decoder, Encoder, text, text_of};
#[cfg(feature = "bytes")]
use bytes::Bytes;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Implements [`Key`] for the owned strings `$owned`, which are borrowed as `&$lent`.
macro_rules! strings {
    ($lent:ty, $from_form:expr, $from_own_form:expr, $from_part:expr, $bytes:expr; $($owned:ty: $copy:path),*) => {$(
        impl Key for $owned {
            type Form = [u8];
            type Ref<'a> = &'a $lent;
            type Part<'a> = Cow<'a, $lent>;

            #[inline]
            fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
                $from_form(form)
            }
            #[inline(always)]
            #[allow(unused_unsafe)] // any bytes are a byte string
            unsafe fn from_own_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
                // SAFETY: the caller promises that `admit` has returned for the form, which it does
                // only for text, or that a vouching type has written it, and those write only text.
                unsafe { $from_own_form(form) }
            }
            #[inline]
            fn admit(form: FormRef<'_, Self>) {
                let _: &$lent = $from_form(form);
            }
            #[inline]
            fn read<'a>(from: &mut Decoder<'a>) -> Cow<'a, $lent> {
                $from_part(from.string())
            }
            #[inline]
            fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
                Cow::Borrowed(key)
            }
            #[inline]
            fn part_to_owned(part: Cow<'_, $lent>) -> Self {
                part.into_owned().into()
            }
            #[inline]
            fn to_owned(key: &$lent) -> Self {
                $copy(key)
            }
            #[inline]
            fn compare(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        }

        strings!(as_key $lent, $bytes, $owned; $owned, $lent, Cow<'_, $lent>);
    )*};
    (as_key $lent:ty, $bytes:expr, $owned:ty; $($as_key:ty),*) => {$(
        impl AsKey<$owned> for $as_key {
            #[inline(always)]
            fn with_form<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                let lent: &$lent = self;
                then($bytes(lent))
            }
            #[inline(always)]
            fn form(&self) -> Option<&[u8]> {
                let lent: &$lent = self;
                Some($bytes(lent))
            }
            #[inline(always)]
            fn vouches(&self) -> Option<Vouched<Self>> {
                Some(Vouched::new())
            }
            #[inline]
            fn write(&self, to: &mut Encoder) {
                let lent: &$lent = self;
                to.push_string($bytes(lent));
            }
        }

        impl AsPrefix<$owned> for $as_key {
            #[inline]
            fn with_prefix<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                let lent: &$lent = self;
                then($bytes(lent))
            }
        }
    )*};
}

strings!(str, text, std::str::from_utf8_unchecked, text_of, str::as_bytes; String: String::from, Box<str>: Box::from, Arc<str>: Arc::from);
strings!([u8], (|bytes| bytes), (|bytes| bytes), (|part| part), (|bytes| bytes); Vec<u8>: Vec::from, Box<[u8]>: Box::from, Arc<[u8]>: Arc::from);
#[cfg(feature = "bytes")]
strings!([u8], (|bytes| bytes), (|bytes| bytes), (|part| part), (|bytes| bytes); Bytes: Bytes::copy_from_slice);

/// Implements [`AsKey`] and [`AsPrefix`] for arrays of bytes, such as literals.
macro_rules! literals {
    ($($owned:ty),*) => {$(
        impl<const N: usize> AsKey<$owned> for [u8; N] {
            #[inline(always)]
            fn with_form<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(self)
            }
            #[inline(always)]
            fn form(&self) -> Option<&[u8]> {
                Some(self)
            }
            #[inline]
            fn write(&self, to: &mut Encoder) {
                to.push_string(self);
            }
        }

        impl<const N: usize> AsPrefix<$owned> for [u8; N] {
            fn with_prefix<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(self)
            }
        }
    )*};
}

literals!(Vec<u8>, Box<[u8]>, Arc<[u8]>);
#[cfg(feature = "bytes")]
literals!(Bytes);
