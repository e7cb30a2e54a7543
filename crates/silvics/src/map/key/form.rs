//! The forms in which indexes hold the keys of maps, and copies of such forms.

use super::{AsKey, Key};
use crate::blocks::BlockTree;
use crate::encoding::{Decoder, Encoder, IndexKey, common_prefix, decode_u64};
use crate::error::{AllocError, reserved};
use crate::frame::Structure;
use crate::index::{Check, Objects, OrderedEnds};
use crate::map::MapIndex;
use crate::words::WordTree;
use silvics_pool::{Placement, Pooled};

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
    impl Sealed for [u8] {}
}

/// A form in which an index holds the keys of a map: `u64`, `u128` or `[u8]`. The trait is sealed.
///
/// It decides on the default index of a map: [`DefaultIndex`].
pub trait Form: IndexKey + private::Sealed {
    /// The default index of a map whose keys have this form.
    type Index<P: Placement>: MapIndex<Key = Self, Placement = P>
        + OrderedEnds
        + Objects
        + Check
        + Structure
        + 'static;
    /// Many copied keys.
    #[doc(hidden)]
    type Forms: Forms<Self>;
    /// A copied key. It stays at its address when this value is moved.
    #[doc(hidden)]
    type Kept: Clone + Send + 'static;

    /// Copies a key.
    #[doc(hidden)]
    fn keep(key: Self::Ref<'_>) -> Self::Kept;

    /// Copies a key in place of another one.
    #[doc(hidden)]
    fn keep_in(kept: &mut Self::Kept, key: Self::Ref<'_>);

    /// Borrows a copied key.
    #[doc(hidden)]
    fn kept(kept: &Self::Kept) -> Self::Ref<'_>;

    /// A number that spreads keys.
    #[doc(hidden)]
    fn spread(key: Self::Ref<'_>) -> usize;

    /// Extends the lifetime of a borrowed key.
    ///
    /// # Safety
    /// The result is used only while the owner of the key lives. The owner may be moved meanwhile.
    #[doc(hidden)]
    unsafe fn lengthen<'a>(key: Self::Ref<'_>) -> Self::Ref<'a>;

    /// Returns a key that is greater than `first` and at most `last`, near the middle between
    /// them: the place to divide a range. `first` must be smaller than `last`.
    #[doc(hidden)]
    fn between(first: Self::Ref<'_>, last: Self::Ref<'_>) -> Self::Kept;

    /// Calls `then` with a form of a key that has the opposite order.
    #[doc(hidden)]
    fn with_reversed<K: Key<Form = Self>, R>(
        key: &(impl AsKey<K> + ?Sized),
        then: impl FnOnce(Self::Ref<'_>) -> R,
    ) -> R;

    /// That form if it is available without an encoding: see [`AsKey::form`].
    #[doc(hidden)]
    fn reversed<K: Key<Form = Self>>(key: &(impl AsKey<K> + ?Sized)) -> Option<Self::Ref<'_>>;

    /// Decodes a form of [`Form::with_reversed`].
    #[doc(hidden)]
    fn read_reversed<K: Key<Form = Self>>(form: Self::Ref<'_>) -> K::Part<'_>;
}

/// The default index of a map with keys of type `K`: a [`WordTree`] if their form is `u64` or
/// `u128`, and a [`BlockTree`] if it is a byte string.
pub type DefaultIndex<K, P = Pooled> = <<K as Key>::Form as Form>::Index<P>;

/// The high half of a product, which depends on all bits of a number.
fn mixed(number: u64) -> usize {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
}

/// Copied keys in a row.
pub trait Forms<F: Form + ?Sized>: Default + Send + 'static {
    /// Makes room for a key.
    fn reserve(&mut self, key: F::Ref<'_>) -> Result<(), AllocError>;
    /// Makes room for the given number of keys, if they are short.
    fn make_room(&mut self, keys: usize);
    /// Appends a key.
    fn push(&mut self, key: F::Ref<'_>);
    /// The key number `at`.
    fn get(&self, at: usize) -> F::Ref<'_>;
    /// The number of keys.
    fn count(&self) -> usize;
    /// Removes all keys.
    fn clear(&mut self);
}

macro_rules! numbers {
    ($($form:ty),*) => {$(
        impl Form for $form {
            type Index<P: Placement> = WordTree<$form, P>;
            type Forms = Vec<$form>;
            type Kept = $form;

            #[inline(always)]
            fn keep(key: $form) -> $form {
                key
            }
            #[inline(always)]
            fn keep_in(kept: &mut $form, key: $form) {
                *kept = key;
            }
            #[inline(always)]
            fn kept(kept: &$form) -> $form {
                *kept
            }
            #[inline(always)]
            fn spread(key: $form) -> usize {
                mixed(key as u64 ^ (u128::from(key) >> 64) as u64)
            }
            #[inline(always)]
            unsafe fn lengthen<'a>(key: $form) -> Self::Ref<'a> {
                key
            }
            fn between(first: $form, last: $form) -> $form {
                first + (last - first).div_ceil(2)
            }
            #[inline(always)]
            fn with_reversed<K: Key<Form = $form>, R>(
                key: &(impl AsKey<K> + ?Sized),
                then: impl FnOnce($form) -> R,
            ) -> R {
                key.with_form(|form| then(!form))
            }
            #[inline(always)]
            fn reversed<K: Key<Form = $form>>(
                key: &(impl AsKey<K> + ?Sized),
            ) -> Option<Self::Ref<'_>> {
                key.form().map(|form: $form| !form)
            }
            #[inline(always)]
            fn read_reversed<K: Key<Form = $form>>(form: Self::Ref<'_>) -> K::Part<'_> {
                K::into_part(K::from_form(!form))
            }
        }

        impl Forms<$form> for Vec<$form> {
            fn reserve(&mut self, _: $form) -> Result<(), AllocError> {
                reserved(self, 1).map(drop)
            }
            #[inline]
            fn make_room(&mut self, keys: usize) {
                Vec::reserve(self, keys);
            }
            #[inline]
            fn push(&mut self, key: $form) {
                Vec::push(self, key);
            }
            #[inline]
            fn get(&self, at: usize) -> $form {
                self[at]
            }
            #[inline]
            fn count(&self) -> usize {
                self.len()
            }
            #[inline]
            fn clear(&mut self) {
                Vec::clear(self);
            }
        }
    )*};
}

numbers!(u64, u128);

impl Form for [u8] {
    type Index<P: Placement> = BlockTree<[u8], P>;
    type Forms = Strings;
    type Kept = Vec<u8>;

    fn keep(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }
    fn keep_in(kept: &mut Vec<u8>, key: &[u8]) {
        kept.clear();
        kept.extend_from_slice(key);
    }
    fn kept(kept: &Vec<u8>) -> &[u8] {
        kept
    }
    fn spread(key: &[u8]) -> usize {
        let last = &key[key.len().saturating_sub(8)..];
        let number = last.iter().fold(key.len() as u64, |sum, byte| sum << 8 | u64::from(*byte));
        mixed(number)
    }
    unsafe fn lengthen<'a>(key: &[u8]) -> Self::Ref<'a> {
        // SAFETY: the caller promises that the owner lives while the result is used. Moving the
        // owner does not move the bytes, and no one changes them while they are borrowed.
        unsafe { std::slice::from_raw_parts(key.as_ptr(), key.len()) }
    }
    fn between(first: &[u8], last: &[u8]) -> Vec<u8> {
        let common = common_prefix(first, last, 0);
        let (a, b) = (number_at(first, common), number_at(last, common));
        // If one key is the other with bytes 0 appended, the eight bytes may be equal.
        if a == b {
            return last.to_vec();
        }
        // Dropping the last bytes 0 makes the key smaller, but not smaller than `first`: the two
        // differ in a byte that is not 0 here.
        let middle = u64::between(a, b).to_be_bytes();
        let len = middle.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
        [&last[..common], &middle[..len]].concat()
    }
    #[inline]
    fn with_reversed<K: Key<Form = [u8]>, R>(
        key: &(impl AsKey<K> + ?Sized),
        then: impl FnOnce(&[u8]) -> R,
    ) -> R {
        Encoder::encode(|to| to.reversed(|to| key.write(to)), then)
    }
    #[inline(always)]
    fn reversed<K: Key<Form = [u8]>>(_: &(impl AsKey<K> + ?Sized)) -> Option<&[u8]> {
        None
    }
    #[inline]
    fn read_reversed<K: Key<Form = [u8]>>(form: Self::Ref<'_>) -> K::Part<'_> {
        Decoder::new(form).reversed(K::read)
    }
}

/// The eight bytes from position `at` on as a number; missing bytes count as 0.
fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    let len = (bytes.len() - at).min(8);
    eight[..len].copy_from_slice(&bytes[at..at + len]);
    decode_u64(eight)
}

/// Copied byte strings in a row.
#[derive(Default)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Forms<[u8]> for Strings {
    fn reserve(&mut self, key: &[u8]) -> Result<(), AllocError> {
        reserved(&mut self.bytes, key.len())?;
        reserved(&mut self.ends, 1).map(drop)
    }
    #[inline]
    fn make_room(&mut self, keys: usize) {
        self.bytes.reserve(keys * 32);
        self.ends.reserve(keys);
    }
    #[inline]
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }
    #[inline]
    fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }
    #[inline]
    fn count(&self) -> usize {
        self.ends.len()
    }
    #[inline]
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Strings that share long prefixes and contain many bytes 0.
    fn strings() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![5 => Just(0), 2 => Just(1), 2 => Just(u8::MAX), 1 => any::<u8>()], 0..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

        #[test]
        fn between_two_strings_is_behind_the_first(a in strings(), b in strings(), prefix in strings()) {
            let (a, b) = ([&prefix[..], &a].concat(), [&prefix[..], &b].concat());
            prop_assume!(a != b);
            let (first, last) = (a.clone().min(b.clone()), a.max(b));
            let between = <[u8]>::between(&first, &last);
            prop_assert!(first < between && between <= last, "{first:?} {between:?} {last:?}");
        }

        #[test]
        fn between_two_numbers_is_behind_the_first(a: u128, b: u128, shift in 0..128u32) {
            let (a, b) = (a >> shift, b >> shift);
            prop_assume!(a != b);
            let (first, last) = (a.min(b), a.max(b));
            let between = u128::between(first, last);
            prop_assert!(first < between && between <= last);
            let (first, last) = (first as u64, last as u64);
            if first < last {
                let between = u64::between(first, last);
                prop_assert!(first < between && between <= last);
            }
        }
    }

    #[test]
    fn between_is_about_in_the_middle() {
        assert_eq!((u64::between(0, u64::MAX), u64::between(7, 8)), (1 << 63, 8));
        assert_eq!(<[u8]>::between(b"user/a", b"user/c"), b"user/b");
        assert_eq!(<[u8]>::between(b"a", b"a\0"), b"a\0");
        assert_eq!(<[u8]>::between(b"", &[0; 9]), [0; 9]);
        assert_eq!(<[u8]>::between(b"", b"\0\x02"), b"\0\x01");
    }
}
