//! Bytes of keys: written, read, and kept.

use super::{common_prefix, decode_u64};
use crate::art::ArtKey;
use std::borrow::Cow;
use std::cell::Cell;
use std::mem::{MaybeUninit, take};

/// Keys up to here are encoded on the stack.
const INLINE: usize = 128;

/// Room for longer ones is kept up to here: twice the longest that indexes take, for it grows by doubling.
const KEPT: usize = 128 << 10;

/// In front of a byte that would be taken for an end or for this one, which is then one more.
const ESCAPE: u8 = 1;
/// Behind a string.
const END: u8 = 0;

std::thread_local! {
    /// Room for a longer key, kept so that the next one needs no memory.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What the encoding of a key is written to.
pub struct Encoder {
    short: [MaybeUninit<u8>; INLINE],
    /// Bytes in `short`, unless they are in `long`.
    len: usize,
    long: Vec<u8>,
}

impl Encoder {
    /// Passes on what `write` writes. Allocates nothing for keys up to 128 bytes, and no more than once in a thread for
    /// longer ones of a length.
    #[inline]
    pub fn encode<R>(write: impl FnOnce(&mut Self), then: impl FnOnce(&[u8]) -> R) -> R {
        let mut encoder =
            Self { short: [const { MaybeUninit::uninit() }; INLINE], len: 0, long: Vec::new() };
        write(&mut encoder);
        then(encoder.bytes())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            // SAFETY: the first `len` have been written.
            return unsafe { std::slice::from_raw_parts(self.short.as_ptr().cast(), self.len) };
        }
        &self.long
    }

    /// Adds bytes as they are: a part of a fixed length.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end > INLINE || !self.long.is_empty() {
            return self.push_long(bytes);
        }
        // SAFETY: there is room, as seen above, and nobody else has it.
        unsafe {
            let free = self.short.as_mut_ptr().add(self.len).cast();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), free, bytes.len());
        }
        self.len = end;
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            let mut room = ROOM.try_with(Cell::take).unwrap_or_default();
            room.clear();
            room.extend_from_slice(self.bytes());
            self.long = room;
        }
        self.long.extend_from_slice(bytes);
    }

    /// Adds a string with its end, so that anything can follow.
    #[inline]
    pub fn push_string(&mut self, mut bytes: &[u8]) {
        while let Some(at) = bytes.iter().position(|&byte| byte <= ESCAPE) {
            self.push(&bytes[..at]);
            self.push(&[ESCAPE, bytes[at] + 1]);
            bytes = &bytes[at + 1..];
        }
        self.push(bytes);
        self.push(&[END]);
    }
}

impl Drop for Encoder {
    #[inline]
    fn drop(&mut self) {
        if (1..=KEPT).contains(&self.long.capacity()) {
            let long = take(&mut self.long);
            let _ = ROOM.try_with(|room| room.set(long)); // a thread that ends needs none
        }
    }
}

/// What the parts of a key are read from, in the order in which they were written.
pub struct Decoder<'a> {
    rest: &'a [u8],
}

/// What went wrong if a key cannot be read.
const FOREIGN: &str = "the bytes of a key are not what its type has written: an implementation of silvics::Key \
                       or silvics::AsKey by hand breaks its promise";

impl<'a> Decoder<'a> {
    /// Reads these bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Takes so many bytes, as [`Encoder::push`] has written them.
    ///
    /// # Panics
    /// If there are fewer, which no key of this crate's types or of derived ones has.
    #[inline]
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at_checked(len).expect(FOREIGN);
        self.rest = rest;
        taken
    }

    /// Takes so many bytes as an array.
    ///
    /// # Panics
    /// As [`Decoder::take`].
    #[inline]
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.rest.split_first_chunk().expect(FOREIGN);
        self.rest = rest;
        *taken
    }

    /// Takes a string that [`Encoder::push_string`] has written.
    ///
    /// # Panics
    /// If there is no end of one.
    #[inline]
    pub fn string(&mut self) -> Cow<'a, [u8]> {
        let end = self.rest.iter().position(|&byte| byte <= ESCAPE).expect(FOREIGN);
        let taken = self.take(end);
        if self.array() == [END] { Cow::Borrowed(taken) } else { Cow::Owned(self.escaped(taken)) }
    }

    /// The rest of a string that begins so, up to an escape.
    #[cold]
    fn escaped(&mut self, start: &[u8]) -> Vec<u8> {
        // No other byte of it is zero.
        let rest = self.rest.iter().position(|&byte| byte == END).expect(FOREIGN);
        let mut string = Vec::with_capacity(start.len() + rest);
        string.extend_from_slice(start);
        loop {
            let [byte] = self.array();
            string.push(byte.checked_sub(1).expect(FOREIGN));
            let end = self.rest.iter().position(|&byte| byte <= ESCAPE).expect(FOREIGN);
            string.extend_from_slice(self.take(end));
            if self.array() == [END] {
                return string;
            }
        }
    }
}

/// Text that has been written as such.
pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect(FOREIGN)
}

/// The same, of a part.
pub(super) fn text_of(part: Cow<'_, [u8]>) -> Cow<'_, str> {
    match part {
        Cow::Borrowed(bytes) => Cow::Borrowed(text(bytes)),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).expect(FOREIGN)),
    }
}

/// What is no variant of an enum.
#[doc(hidden)]
#[cold]
pub fn no_variant() -> ! {
    panic!("{FOREIGN}");
}

/// Of discriminants, how many others are smaller than each.
#[doc(hidden)]
pub const fn ranks<const N: usize>(of: [i128; N]) -> [u16; N] {
    let mut ranks = [0; N];
    let mut at = 0;
    while at < N {
        let mut other = 0;
        while other < N {
            ranks[at] += (of[other] < of[at]) as u16;
            other += 1;
        }
        at += 1;
    }
    ranks
}

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
    impl Sealed for [u8] {}
}

/// A form in which indexes hold keys.
pub trait Form: ArtKey + private::Sealed {
    /// Many keys.
    #[doc(hidden)]
    type Forms: Forms<Self>;
    /// A key that stays where it is when this is moved.
    #[doc(hidden)]
    type Kept: Clone + Send + 'static;

    /// Keeps a key.
    #[doc(hidden)]
    fn keep(key: Self::Ref<'_>) -> Self::Kept;

    /// The key that is kept.
    #[doc(hidden)]
    fn kept(kept: &Self::Kept) -> Self::Ref<'_>;

    /// A key for longer.
    ///
    /// # Safety
    /// It is used only as long as what it was lent by is there, wherever that is moved to.
    #[doc(hidden)]
    unsafe fn lengthen<'a>(key: Self::Ref<'_>) -> Self::Ref<'a>;

    /// A key behind `first` and not behind `last`, about in the middle: where to divide what is between them. `first`
    /// is the smaller one.
    #[doc(hidden)]
    fn between(first: Self::Ref<'_>, last: Self::Ref<'_>) -> Self::Kept;
}

/// Keys in a row.
pub trait Forms<F: Form + ?Sized>: Default + Send + 'static {
    /// Adds a key behind the others.
    fn push(&mut self, key: F::Ref<'_>);
    /// Key number `at`.
    fn get(&self, at: usize) -> F::Ref<'_>;
    /// How many there are.
    fn count(&self) -> usize;
    /// Forgets them.
    fn clear(&mut self);
}

macro_rules! numbers {
    ($($form:ty),*) => {$(
        impl Form for $form {
            type Forms = Vec<$form>;
            type Kept = $form;

            #[inline(always)]
            fn keep(key: $form) -> $form {
                key
            }
            #[inline(always)]
            fn kept(kept: &$form) -> $form {
                *kept
            }
            #[inline(always)]
            unsafe fn lengthen<'a>(key: $form) -> Self::Ref<'a> {
                key
            }
            fn between(first: $form, last: $form) -> $form {
                first + (last - first).div_ceil(2)
            }
        }

        impl Forms<$form> for Vec<$form> {
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
    type Forms = Strings;
    type Kept = Vec<u8>;

    fn keep(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }
    fn kept(kept: &Vec<u8>) -> &[u8] {
        kept
    }
    unsafe fn lengthen<'a>(key: &[u8]) -> Self::Ref<'a> {
        // SAFETY: nobody changes them; the caller promises the rest.
        unsafe { std::slice::from_raw_parts(key.as_ptr(), key.len()) }
    }
    fn between(first: &[u8], last: &[u8]) -> Vec<u8> {
        let common = common_prefix(first, last, 0);
        let (a, b) = (number_at(first, common), number_at(last, common));
        // Where only zeros follow, eight bytes tell no difference.
        if a == b {
            return last.to_vec();
        }
        // Without its last zeros it comes before what has them, but not before what was smaller: that differs in a
        // byte that is no zero here.
        let middle = u64::between(a, b).to_be_bytes();
        let len = middle.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
        [&last[..common], &middle[..len]].concat()
    }
}

/// The eight bytes from `at` on as a number, with zeros where there are none.
fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    let len = (bytes.len() - at).min(8);
    eight[..len].copy_from_slice(&bytes[at..at + len]);
    decode_u64(eight)
}

/// Byte strings in a row.
#[derive(Default)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Forms<[u8]> for Strings {
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

    /// Strings that have much in common, zeros among it.
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
