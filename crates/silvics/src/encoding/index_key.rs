//! The keys of indexes.
//!
//! An index orders its keys as [`IndexKey::Ref`] orders them: integers by value, byte strings
//! lexicographically (a proper prefix comes first). Structures that only compare bytes take
//! integers through an order-preserving encoding: for all `a` and `b`, `a < b` if and only if
//! `encode(a) < encode(b)` as byte strings.
//!
//! ```
//! use silvics::key::{decode_u64, encode_u64};
//! assert!(encode_u64(255) < encode_u64(256)); // little-endian bytes would say otherwise
//! assert_eq!(decode_u64(encode_u64(7)), 7);
//! ```

use std::fmt::Debug;
use std::hash::Hash;

/// A type that an index can be keyed by. Every value of the type is a legal key: the sentinels of
/// a structure are not taken from it.
pub trait IndexKey: 'static {
    /// A borrowed key: the number itself for integers, `&[u8]` for byte strings.
    type Ref<'a>: Copy + Ord + Debug + Send + Sync;
    /// A key that owns its bytes.
    type Owned: Clone + Ord + Hash + Debug + Send + Sync + 'static;

    /// Copies a borrowed key.
    fn to_owned(key: Self::Ref<'_>) -> Self::Owned;
    /// Borrows an owned key.
    fn borrow(key: &Self::Owned) -> Self::Ref<'_>;
    /// Shortens the lifetime of a borrowed key: `Ref` is covariant, but the compiler cannot see
    /// this through the trait.
    fn shorten<'short, 'long: 'short>(key: Self::Ref<'long>) -> Self::Ref<'short>;
}

impl IndexKey for u64 {
    type Ref<'a> = u64;
    type Owned = u64;

    #[inline(always)]
    fn to_owned(key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn borrow(key: &u64) -> u64 {
        *key
    }
    #[inline(always)]
    fn shorten<'short, 'long: 'short>(key: u64) -> u64 {
        key
    }
}

impl IndexKey for u128 {
    type Ref<'a> = u128;
    type Owned = u128;

    #[inline(always)]
    fn to_owned(key: u128) -> u128 {
        key
    }
    #[inline(always)]
    fn borrow(key: &u128) -> u128 {
        *key
    }
    #[inline(always)]
    fn shorten<'short, 'long: 'short>(key: u128) -> u128 {
        key
    }
}

impl IndexKey for [u8] {
    type Ref<'a> = &'a [u8];
    type Owned = Box<[u8]>;

    #[inline]
    fn to_owned(key: &[u8]) -> Box<[u8]> {
        key.into()
    }
    #[inline(always)]
    fn borrow(key: &Box<[u8]>) -> &[u8] {
        key
    }
    #[inline(always)]
    fn shorten<'short, 'long: 'short>(key: &'long [u8]) -> &'short [u8] {
        key
    }
}

/// Keys that are byte strings.
pub trait ByteKey: IndexKey {
    /// The key that has these bytes.
    fn of_bytes(bytes: &[u8]) -> Self::Ref<'_>;
    /// Whether a key begins with these bytes.
    fn starts_with(key: Self::Ref<'_>, bytes: &[u8]) -> bool;
}

impl ByteKey for [u8] {
    #[inline(always)]
    fn of_bytes(bytes: &[u8]) -> &[u8] {
        bytes
    }
    #[inline(always)]
    fn starts_with(key: &[u8], bytes: &[u8]) -> bool {
        key.starts_with(bytes)
    }
}

/// Returns the length of the common prefix of two byte strings; it is at least `known`.
#[inline(always)]
pub(crate) fn common_prefix(a: &[u8], b: &[u8], known: usize) -> usize {
    let len = a.len().min(b.len());
    let mut at = known;
    while at + 8 <= len {
        let word = |s: &[u8]| u64::from_le_bytes(s[at..at + 8].try_into().expect("eight bytes"));
        let differing = word(a) ^ word(b);
        if differing != 0 {
            return at + (differing.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < len && a[at] == b[at] {
        at += 1;
    }
    at
}

/// The order-preserving encoding of a `u64`: big-endian bytes.
#[inline]
pub const fn encode_u64(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

/// The inverse of [`encode_u64`].
#[inline]
pub const fn decode_u64(bytes: [u8; 8]) -> u64 {
    u64::from_be_bytes(bytes)
}

/// The order-preserving encoding of a `u128`: big-endian bytes.
#[inline]
pub const fn encode_u128(key: u128) -> [u8; 16] {
    key.to_be_bytes()
}

/// The inverse of [`encode_u128`].
#[inline]
pub const fn decode_u128(bytes: [u8; 16]) -> u128 {
    u128::from_be_bytes(bytes)
}

/// The order-preserving map from signed to unsigned integers. It flips the sign bit, so that
/// negative numbers come first.
#[inline]
pub const fn encode_i64(key: i64) -> u64 {
    key.cast_unsigned() ^ (1 << 63)
}

/// The inverse of [`encode_i64`].
#[inline]
pub const fn decode_i64(key: u64) -> i64 {
    (key ^ (1 << 63)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_keep_the_order_and_come_back() {
        let numbers = [0, 1, 127, 128, 255, 256, 1 << 32, u64::MAX - 1, u64::MAX];
        for &a in &numbers {
            assert_eq!(decode_u64(encode_u64(a)), a);
            let (wide, signed) = (u128::from(a) << 60, a.cast_signed());
            assert_eq!(decode_u128(encode_u128(wide)), wide);
            assert_eq!(decode_i64(encode_i64(signed)), signed);
            for &b in &numbers {
                assert_eq!(encode_u64(a).cmp(&encode_u64(b)), a.cmp(&b));
                let (wide_b, signed_b) = (u128::from(b) << 60, b.cast_signed());
                assert_eq!(encode_u128(wide).cmp(&encode_u128(wide_b)), wide.cmp(&wide_b));
                assert_eq!(encode_i64(signed).cmp(&encode_i64(signed_b)), signed.cmp(&signed_b));
            }
        }
    }
}
