//! Keys as a radix tree sees them: one digit at each depth.

use super::word::DEPTHS;
use crate::encoding::{IndexKey, common_prefix};
use silvics_sync::tagged::HINT_BITS;

/// The digit of a key at a depth: a byte, or the key's end, which sorts before every byte.
pub(super) type Digit = Option<u8>;

/// The number of depths that are the hint of a word alone.
pub(super) const HINTS: usize = 1 << HINT_BITS;

/// A key type that consists of digits.
#[doc(hidden)]
pub trait DigitKey: IndexKey {
    /// Whether nodes of the last byte hold values. No leaf below such a node has the whole key, so
    /// a lookup compares prefixes where bytes are skipped, and the skipped bytes must fit in a
    /// word.
    const DIRECT: bool;
    /// The length of the longest key, in bytes.
    const MAX_BYTES: usize;

    /// Whether a key is so long that a node on its path may be deeper than a word's hint says.
    #[inline(always)]
    fn is_long(key: Self::Ref<'_>) -> bool {
        Self::MAX_BYTES > HINTS && Self::len(key) >= HINTS
    }

    /// Whether nodes at `depth` hold values instead of words.
    #[inline(always)]
    fn is_direct(depth: usize) -> bool {
        Self::DIRECT && depth == Self::MAX_BYTES - 1
    }

    /// The length of a key in bytes.
    fn len(key: Self::Ref<'_>) -> usize;
    /// The number of a key's digits. It includes the end if keys differ in length.
    fn digits(key: Self::Ref<'_>) -> usize;
    /// The digit of a key at a depth; beyond the key's end it is the end.
    fn digit(key: Self::Ref<'_>, depth: usize) -> Digit;
    /// The last eight bytes of a key before `depth`, or all of them if they are fewer, the last one
    /// in the lowest byte. The key must have `depth` bytes.
    fn before(key: Self::Ref<'_>, depth: usize) -> u64;
    /// The first depth at which two different keys differ.
    fn parting(a: Self::Ref<'_>, b: Self::Ref<'_>) -> usize;
    /// The key whose value lies at `byte` of a node of the last byte with this prefix.
    fn direct(prefix: u64, byte: u8) -> Self::Ref<'static>;
}

impl DigitKey for u64 {
    const DIRECT: bool = true;
    const MAX_BYTES: usize = 8;

    #[inline(always)]
    fn len(_key: u64) -> usize {
        8
    }
    fn digits(_key: u64) -> usize {
        8
    }
    #[inline(always)]
    fn digit(key: u64, depth: usize) -> Digit {
        debug_assert!(depth < 8);
        // The compiler swaps the bytes once for a whole descent.
        Some(key.swap_bytes().wrapping_shr(8 * depth as u32) as u8)
    }
    #[inline(always)]
    fn before(key: u64, depth: usize) -> u64 {
        key >> 8 >> (56 - 8 * depth)
    }
    fn parting(a: u64, b: u64) -> usize {
        ((a ^ b).leading_zeros() / 8) as usize
    }
    #[inline(always)]
    fn direct(prefix: u64, byte: u8) -> u64 {
        prefix << 8 | u64::from(byte)
    }
}

impl DigitKey for u128 {
    const DIRECT: bool = false;
    const MAX_BYTES: usize = 16;

    #[inline(always)]
    fn len(_key: u128) -> usize {
        16
    }
    fn digits(_key: u128) -> usize {
        16
    }
    #[inline(always)]
    fn digit(key: u128, depth: usize) -> Digit {
        Some((key >> (120 - 8 * depth)) as u8)
    }
    #[inline(always)]
    fn before(key: u128, depth: usize) -> u64 {
        (key >> 8 >> (120 - 8 * depth)) as u64
    }
    fn parting(a: u128, b: u128) -> usize {
        ((a ^ b).leading_zeros() / 8) as usize
    }
    fn direct(_prefix: u64, _byte: u8) -> u128 {
        unreachable!("every value has a leaf")
    }
}

impl DigitKey for [u8] {
    const DIRECT: bool = false;
    /// As many bytes as a word has depths for: two keys part at their last byte at the latest, or
    /// where the shorter one ends.
    const MAX_BYTES: usize = DEPTHS;

    #[inline(always)]
    fn len(key: &[u8]) -> usize {
        key.len()
    }
    fn digits(key: &[u8]) -> usize {
        key.len() + 1
    }
    #[inline(always)]
    fn digit(key: &[u8], depth: usize) -> Digit {
        key.get(depth).copied()
    }
    fn before(key: &[u8], depth: usize) -> u64 {
        let last = &key[depth.saturating_sub(8)..depth];
        last.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
    fn parting(a: &[u8], b: &[u8]) -> usize {
        common_prefix(a, b, 0)
    }
    fn direct(_prefix: u64, _byte: u8) -> &'static [u8] {
        unreachable!("every value has a leaf")
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn keys_part_where_they_differ() {
        assert_eq!(u64::parting(0, 1), 7);
        assert_eq!(u64::parting(0, u64::MAX), 0);
        assert_eq!(u128::parting(0, 1 << 64), 7);
        assert_eq!(u128::parting(0, 1), 15);
        assert_eq!(<[u8] as DigitKey>::parting(b"abcdefghi", b"abcdefghj"), 8);
        assert_eq!(<[u8] as DigitKey>::parting(b"ab", b"abc"), 2);
        assert_eq!(<[u8] as DigitKey>::parting(b"", b"a"), 0);
    }

    /// An integer has the digits of its big-endian bytes.
    #[test]
    fn integers_have_the_digits_of_their_bytes() {
        let word = 0x0102_0304_0506_0708_u64;
        let wide = u128::from(word) << 64 | u128::from(word << 4);
        for depth in 0..8 {
            let bytes = word.to_be_bytes();
            assert_eq!(u64::digit(word, depth), <[u8]>::digit(&bytes, depth));
            assert_eq!(u64::before(word, depth), <[u8]>::before(&bytes, depth));
        }
        for depth in 0..16 {
            let bytes = wide.to_be_bytes();
            assert_eq!(u128::digit(wide, depth), <[u8]>::digit(&bytes, depth));
            assert_eq!(u128::before(wide, depth), <[u8]>::before(&bytes, depth));
        }
        assert_eq!(<[u8]>::digit(b"ab", 2), None);
        assert_eq!(u64::direct(u64::before(word, 7), 8), word);
    }
}
