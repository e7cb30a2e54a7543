//! The keys of blocks: their bits, as the index above the blocks tests them, and their place in a
//! block.
//!
//! # Bits
//! A key is an infinite string of bits: its bytes, then zeros without end, and after these its
//! length. So two keys of which one is the other and zeros differ in a bit of their lengths, and
//! the order of keys is the order of these strings. Bits have numbers (`Bit`): 8 for each byte,
//! and those of the length from `LENGTH` on. Integers have no length.
//!
//! # Pieces
//! A block of [`Prefixed`] keys has their common prefix once (`shape.rs`). Its keys come from two
//! places then, and are never put together: comparisons and differences go through both pieces.

use crate::encoding::{IndexKey, Prefixed, common_prefix};
use std::ops::Range;
use std::slice;

/// The number of a bit of a key. A smaller number is more significant.
pub(super) type Bit = u32;

/// The first bit of the length. No byte has it, since keys are shorter.
pub(super) const LENGTH: Bit = 1 << 27;
/// The window of the length.
pub(super) const LENGTH_WINDOW: u32 = LENGTH / 8;

/// The longest byte string, as in the radix tree.
pub(super) const MAX_BYTES: usize = 512 << 10;
const _: () = assert!(MAX_BYTES < LENGTH_WINDOW as usize);

/// The longest byte string that lies in its block. A longer one has memory of its own.
pub(super) const MAX_INLINE: usize = 512;

/// A key that a [`BlockTree`](crate::BlockTree) can have: `u64`, `u128`, `[u8]` or [`Prefixed`].
pub trait BlockKey: IndexKey + private::Sealed {
    /// A key that is searched for, prepared for its windows.
    #[doc(hidden)]
    type Probe<'k>: Copy;
    /// The bytes of each key in a block, or 0 for byte strings.
    #[doc(hidden)]
    const FIXED: usize;
    /// The most windows that keys have.
    #[doc(hidden)]
    const WINDOWS: usize;
    /// The longest byte string that a tree takes.
    #[doc(hidden)]
    const LONGEST: usize = MAX_BYTES;
    /// Whether a block has the common prefix of its keys once.
    #[doc(hidden)]
    const SHARES: bool = false;
    /// Whether keys do not lie in blocks, but behind the values of their entries.
    #[doc(hidden)]
    const IN_ENTRIES: bool = false;

    /// Prepares a key. A short one is copied to `buffer`.
    #[doc(hidden)]
    fn probe<'k>(key: Self::Ref<'k>, buffer: &'k mut [u8; 8]) -> Self::Probe<'k>;
    /// The 64 bits of the key from byte `offset` on.
    #[doc(hidden)]
    fn window(probe: &Self::Probe<'_>, offset: u32) -> u64;
    /// The offset of the window that begins with a bit.
    #[doc(hidden)]
    fn window_of(bit: Bit) -> u32;
    /// A hash of the key. The upper bits are the best.
    #[doc(hidden)]
    fn hash(key: Self::Ref<'_>) -> u64;
    /// The first bit in which two keys differ, if they do.
    #[doc(hidden)]
    fn difference(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Option<Bit>;
    /// Whether a bit of the key is set.
    #[doc(hidden)]
    fn has(key: Self::Ref<'_>, bit: Bit) -> bool;
    /// The length of the key.
    #[doc(hidden)]
    fn len(key: Self::Ref<'_>) -> usize;
    /// A key of at most one byte more than a tree takes, with the same place among those that it
    /// takes.
    #[doc(hidden)]
    fn cut(key: Self::Ref<'_>) -> Self::Ref<'_>;
    /// The pieces of a key whose first bytes a block may have once for all keys.
    #[doc(hidden)]
    fn pieces(_key: Self::Ref<'_>) -> Option<[&[u8]; 2]> {
        None
    }
    /// The number of first bytes that two byte strings have in common.
    #[doc(hidden)]
    fn common(_a: Self::Ref<'_>, _b: Self::Ref<'_>) -> usize {
        0
    }

    /// Reads a key from its block.
    ///
    /// # Safety
    /// `len` initialised bytes lie at `key`, which [`BlockKey::write`] has written: all bytes of a
    /// key behind those of `prefix`. They stay unchanged as long as the result lives.
    #[doc(hidden)]
    unsafe fn read(prefix: &[u8], key: *const u8, len: usize) -> Self::Ref<'_>;
    /// Reads a key behind the value of its entry.
    ///
    /// # Safety
    /// The word is the value of an entry, which lives as long as the result.
    #[doc(hidden)]
    unsafe fn behind<'g>(_word: u64) -> Self::Ref<'g> {
        unreachable!("the key is in the block")
    }
    /// Writes bytes of a key to its block: all of an integer.
    ///
    /// # Safety
    /// There is room for these bytes at `to`, and nobody else has it.
    #[doc(hidden)]
    unsafe fn write(key: Self::Ref<'_>, bytes: Range<usize>, to: *mut u8);
}

pub(super) mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
    impl Sealed for [u8] {}
    impl Sealed for super::Prefixed<'static> {}
}

/// The multiplier of Fibonacci hashing (Knuth, volume 3, section 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Another odd number without a pattern: the fraction of the square root of 2.
const OTHER: u64 = 0x6A09_E667_F3BC_C909;

/// Multiplies, and folds the product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

macro_rules! integer {
    ($key:ty, windows: $windows:literal) => {
        impl BlockKey for $key {
            type Probe<'k> = $key;
            const FIXED: usize = size_of::<$key>();
            const WINDOWS: usize = $windows;

            #[inline(always)]
            fn probe(key: $key, _buffer: &mut [u8; 8]) -> $key {
                key
            }
            #[inline(always)]
            fn window(probe: &$key, offset: u32) -> u64 {
                (*probe >> (<$key>::BITS - 64 - 8 * offset)) as u64
            }
            #[inline(always)]
            fn window_of(bit: Bit) -> u32 {
                bit / 64 * 8
            }
            #[inline(always)]
            fn hash(key: $key) -> u64 {
                let low = (key as u64).wrapping_mul(GOLDEN);
                if $windows == 1 {
                    low
                } else {
                    fold(low ^ (key >> (<$key>::BITS - 64)) as u64, OTHER)
                }
            }
            #[inline(always)]
            fn difference(a: $key, b: $key) -> Option<Bit> {
                (a != b).then(|| (a ^ b).leading_zeros())
            }
            #[inline(always)]
            fn has(key: $key, bit: Bit) -> bool {
                key >> (<$key>::BITS - 1 - bit) & 1 == 1
            }
            #[inline(always)]
            fn len(_key: $key) -> usize {
                size_of::<$key>()
            }
            #[inline(always)]
            fn cut(key: Self::Ref<'_>) -> Self::Ref<'_> {
                key
            }
            #[inline(always)]
            unsafe fn read(_: &[u8], key: *const u8, _len: usize) -> Self::Ref<'_> {
                // SAFETY: the caller's promise.
                unsafe { key.cast::<$key>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn write(key: $key, _: Range<usize>, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<$key>().write_unaligned(key) };
            }
        }
    };
}

integer!(u64, windows: 1);
integer!(u128, windows: 2);

/// A byte string that is searched for.
#[derive(Clone, Copy, Debug)]
pub struct BytesProbe<'k> {
    /// At least 8 bytes: a shorter key is padded with zeros, which changes no window.
    bytes: &'k [u8],
    /// The length of the key.
    len: usize,
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl BlockKey for [u8] {
    type Probe<'k> = BytesProbe<'k>;
    const FIXED: usize = 0;
    const WINDOWS: usize = super::node::MAX_WINDOWS;

    #[inline(always)]
    fn probe<'k>(key: &'k [u8], buffer: &'k mut [u8; 8]) -> BytesProbe<'k> {
        let len = key.len();
        if len >= 8 {
            return BytesProbe { bytes: key, len };
        }
        for (to, from) in buffer.iter_mut().zip(key) {
            *to = *from;
        }
        BytesProbe { bytes: buffer, len }
    }
    #[inline(always)]
    fn window(probe: &BytesProbe<'_>, offset: u32) -> u64 {
        if offset == LENGTH_WINDOW {
            return probe.len as u64;
        }
        // All bits of a window that passes the key's end are in the last eight bytes.
        let last = probe.bytes.len() - 8;
        let start = last.min(offset as usize);
        // SAFETY: `probe` has made the slice at least 8 bytes long, and `start` is at most 8 less
        // than its length.
        let read = unsafe { probe.bytes.as_ptr().add(start).cast::<u64>().read_unaligned() };
        let (read, past) = (u64::from_be(read), 8 * (offset as usize - start));
        if past < 64 { read << past } else { 0 }
    }
    #[inline(always)]
    fn window_of(bit: Bit) -> u32 {
        if bit >= LENGTH { LENGTH_WINDOW } else { bit / 8 }
    }
    #[inline(always)]
    fn hash(key: &[u8]) -> u64 {
        let (len, seed) = (key.len(), key.len() as u64 ^ GOLDEN);
        if len < 8 {
            let short = key.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            return fold(seed ^ short, OTHER);
        }
        if len <= 16 {
            return fold(seed ^ word(key, 0), OTHER ^ word(key, len - 8));
        }
        let (mut a, mut b) = (seed, OTHER);
        for pair in key.chunks_exact(16) {
            a = fold(a ^ word(pair, 0), OTHER);
            b = fold(b ^ word(pair, 8), GOLDEN);
        }
        fold(a ^ word(key, len - 16), b ^ word(key, len - 8))
    }
    #[inline]
    fn difference(a: &[u8], b: &[u8]) -> Option<Bit> {
        let common = common_prefix(a, b, 0);
        let mut at = common;
        if common == a.len().min(b.len()) {
            let longer = if a.len() > b.len() { a } else { b };
            at += longer[common..].iter().position(|byte| *byte != 0).unwrap_or(longer.len());
        }
        let byte = |key: &[u8]| key.get(at).copied().unwrap_or(0);
        difference_at(at, byte(a) ^ byte(b), (a.len(), b.len()))
    }
    #[inline]
    fn has(key: &[u8], bit: Bit) -> bool {
        has_bit(key.len(), bit, |at| key.get(at).copied())
    }
    #[inline(always)]
    fn len(key: &[u8]) -> usize {
        key.len()
    }
    #[inline(always)]
    fn cut(key: Self::Ref<'_>) -> Self::Ref<'_> {
        &key[..key.len().min(MAX_BYTES + 1)]
    }
    #[inline]
    fn common(a: &[u8], b: &[u8]) -> usize {
        common_prefix(a, b, 0)
    }
    #[inline(always)]
    unsafe fn read(_: &[u8], key: *const u8, len: usize) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts(key, len) }
    }
    #[inline(always)]
    unsafe fn write(key: &[u8], bytes: Range<usize>, to: *mut u8) {
        let bytes = &key[bytes];
        // SAFETY: the caller's promise.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// A byte string in two pieces that is searched for.
#[derive(Clone, Copy, Debug)]
pub struct PrefixedProbe<'k> {
    key: Prefixed<'k>,
    /// The key, if it is in one piece.
    whole: BytesProbe<'k>,
}

impl BlockKey for Prefixed<'static> {
    type Probe<'k> = PrefixedProbe<'k>;
    const FIXED: usize = 0;
    const WINDOWS: usize = super::node::MAX_WINDOWS;
    const SHARES: bool = true;

    #[inline(always)]
    fn probe<'k>(key: Prefixed<'k>, buffer: &'k mut [u8; 8]) -> PrefixedProbe<'k> {
        let [_, rest] = key.pieces();
        PrefixedProbe { key, whole: <[u8]>::probe(rest, buffer) }
    }
    #[inline(always)]
    fn window(probe: &PrefixedProbe<'_>, offset: u32) -> u64 {
        let [prefix, _] = probe.key.pieces();
        if prefix.is_empty() {
            return <[u8]>::window(&probe.whole, offset);
        }
        window_of_pieces(probe.key, offset)
    }
    #[inline(always)]
    fn window_of(bit: Bit) -> u32 {
        <[u8]>::window_of(bit)
    }
    #[inline(always)]
    fn hash(key: Prefixed<'_>) -> u64 {
        match key.pieces() {
            [[], rest] => <[u8]>::hash(rest),
            [prefix, rest] => hash_of_pieces(prefix, rest),
        }
    }
    #[inline]
    fn difference(a: Prefixed<'_>, b: Prefixed<'_>) -> Option<Bit> {
        let mut at = a.common(b);
        if at == a.len().min(b.len()) {
            // Zeros follow the end of the shorter one.
            let longer = if a.len() > b.len() { a } else { b };
            while longer.get(at) == Some(0) {
                at += 1;
            }
        }
        let byte = |key: Prefixed<'_>| key.get(at).unwrap_or(0);
        difference_at(at, byte(a) ^ byte(b), (a.len(), b.len()))
    }
    #[inline]
    fn has(key: Prefixed<'_>, bit: Bit) -> bool {
        has_bit(key.len(), bit, |at| key.get(at))
    }
    #[inline(always)]
    fn len(key: Prefixed<'_>) -> usize {
        key.len()
    }
    #[inline]
    fn cut(key: Self::Ref<'_>) -> Self::Ref<'_> {
        // A key that is so long is in one piece.
        let [prefix, rest] = key.pieces();
        Prefixed::new(prefix, <[u8]>::cut(rest))
    }
    #[inline(always)]
    fn pieces(key: Self::Ref<'_>) -> Option<[&[u8]; 2]> {
        Some(key.pieces())
    }
    #[inline]
    fn common(a: Prefixed<'_>, b: Prefixed<'_>) -> usize {
        a.common(b)
    }
    #[inline(always)]
    unsafe fn read(prefix: &[u8], key: *const u8, len: usize) -> Prefixed<'_> {
        // SAFETY: the caller's promise.
        Prefixed::new(prefix, unsafe { slice::from_raw_parts(key, len) })
    }
    #[inline(always)]
    unsafe fn write(key: Prefixed<'_>, bytes: Range<usize>, to: *mut u8) {
        let [prefix, rest] = key.pieces();
        let at = |at: usize| (at.min(prefix.len()), at.saturating_sub(prefix.len()));
        let (start, end) = (at(bytes.start), at(bytes.end));
        let (first, second) = (&prefix[start.0..end.0], &rest[start.1..end.1]);
        // SAFETY: the caller's promise: these are the bytes, one after the other.
        unsafe {
            to.copy_from_nonoverlapping(first.as_ptr(), first.len());
            to.add(first.len()).copy_from_nonoverlapping(second.as_ptr(), second.len());
        }
    }
}

#[cold]
fn window_of_pieces(key: Prefixed<'_>, offset: u32) -> u64 {
    if offset == LENGTH_WINDOW {
        return key.len() as u64;
    }
    let byte = |at: usize| key.get(offset as usize + at).unwrap_or(0);
    u64::from_be_bytes(std::array::from_fn(byte))
}

#[cold]
fn hash_of_pieces(prefix: &[u8], rest: &[u8]) -> u64 {
    let mut whole = [0; Prefixed::MAX_PIECES];
    whole[..prefix.len()].copy_from_slice(prefix);
    let len = prefix.len() + rest.len();
    whole[prefix.len()..len].copy_from_slice(rest);
    <[u8]>::hash(&whole[..len])
}

/// The first bit in which two byte strings differ: in these bits of a byte, or in the length.
#[inline(always)]
fn difference_at(byte: usize, bits: u8, (a, b): (usize, usize)) -> Option<Bit> {
    if bits != 0 {
        return Some(8 * byte as Bit + bits.leading_zeros());
    }
    let lengths = a as u64 ^ b as u64;
    (lengths != 0).then(|| LENGTH + lengths.leading_zeros())
}

/// Whether a byte string of a length has a bit.
#[inline(always)]
fn has_bit(len: usize, bit: Bit, byte: impl Fn(usize) -> Option<u8>) -> bool {
    if bit >= LENGTH {
        return len as u64 >> (63 - (bit - LENGTH)) & 1 == 1;
    }
    byte(bit as usize / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1)
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    fn awkward() -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0, 0], vec![0; 9], vec![0; 16]];
        for text in ["a", "ab", "ab\0", "ab\0\0", "ab\0c", "abcdefgh", "abcdefg", "abcdefghi"] {
            keys.push(text.into());
            keys.push([b"a prefix of some length/", text.as_bytes()].concat());
            keys.push([&[255; 40], text.as_bytes(), &[0; 20]].concat());
        }
        keys.sort();
        keys
    }

    #[test]
    fn the_first_differing_bit_gives_the_order() {
        for a in &awkward() {
            for b in &awkward() {
                let (a, b) = (a.as_slice(), b.as_slice());
                let Some(bit) = <[u8]>::difference(a, b) else {
                    assert_eq!(a, b);
                    continue;
                };
                assert_eq!(a < b, !<[u8]>::has(a, bit), "{a:?} {b:?}");
                assert_eq!(a < b, <[u8]>::has(b, bit), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_window_has_the_bits_of_its_key() {
        for key in &awkward() {
            let mut buffer = [0; 8];
            let probe = <[u8]>::probe(key, &mut buffer);
            for offset in (0..80).chain([LENGTH_WINDOW]) {
                let window = <[u8]>::window(&probe, offset);
                for at in 0..64 {
                    let has = <[u8]>::has(key, 8 * offset + at);
                    assert_eq!(window >> (63 - at) & 1 == 1, has, "{key:?} {offset} {at}");
                }
            }
        }
        for (offset, word) in [(0, 0x0123_4567_89AB_CDEF), (8, 0xFEDC_BA98_7654_3210)] {
            assert_eq!(u128::window(&0x0123_4567_89AB_CDEF_FEDC_BA98_7654_3210, offset), word);
        }
        assert_eq!(u64::window(&42, 0), 42);
    }
}
