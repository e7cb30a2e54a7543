//! Keys as a radix tree sees them: digits at depths.

use super::ahead::{Part, ROOM};
use super::leaf::{BYTES_LEAVES, U64_LEAVES, U128_LEAVES};
use super::leaf::{BytesLeaf, BytesLeaves, IntegerLeaf, IntegerLeaves, LeafOf, Leaves};
use super::node::NODES;
use super::scan::Frame;
use crate::key::{IndexKey, common_prefix};
use silvics_layout::NodeLayout;
use silvics_pool::Placement;
use std::mem::MaybeUninit;

/// What a key has at a depth: a byte, or its end, which comes before every byte.
pub(super) type Digit = Option<u8>;

/// Nodes on the path of a byte string that a scan remembers; few in schedules, so that it has to do without.
const REMEMBERED: usize = if cfg!(silvics_shuttle) { 2 } else { 16 };

/// A key type the tree can hold.
///
/// Sealed: implemented for `u64`, `u128` and `[u8]`.
pub trait ArtKey: Parts {}

impl ArtKey for u64 {}
impl ArtKey for u128 {}
impl ArtKey for [u8] {}

/// What the tree must know of its keys.
#[doc(hidden)]
pub trait Parts: IndexKey {
    /// Whether nodes of the last byte hold values. There is no leaf below them that has the whole key: so
    /// a lookup compares prefixes where bytes are skipped, and they must fit a word.
    const DIRECT: bool;
    /// The keys of a leaf, at most.
    const LEAF_KEYS: usize;
    /// The bytes of a key, at most.
    const MAX_BYTES: usize;
    /// Whether scans look ahead: where all keys have leaves, and leaves are many. If so they have …
    const LOOKS_AHEAD: bool;
    /// … at first nothing ahead …
    const NOTHING_AHEAD: Self::Ahead;
    /// … and so much, at most.
    type Ahead: AsRef<[MaybeUninit<Part>]> + AsMut<[MaybeUninit<Part>]>;
    /// The tree's objects: first the nodes, in the order of their kinds, then the leaves, by how many keys
    /// they have.
    const OBJECTS: &'static [NodeLayout];
    /// None of the nodes on the path of a scan …
    const NO_FRAMES: Self::Frames;
    /// … and as many of them as it remembers.
    type Frames: AsRef<[MaybeUninit<Frame>]> + AsMut<[MaybeUninit<Frame>]>;
    /// The pools of leaves.
    type Leaves<P: Placement>: Leaves<Self>;
    /// A leaf.
    type Leaf<'g>: LeafOf<'g, Self>;

    /// The bytes of a key.
    fn len(key: Self::Ref<'_>) -> usize;
    /// How many digits it has, its end included where lengths differ.
    fn digits(key: Self::Ref<'_>) -> usize;
    /// What a key has at a depth; behind its end as at its end.
    fn digit(key: Self::Ref<'_>, depth: usize) -> Digit;
    /// The last eight bytes before a depth, or all if they are less, the last one lowest. Of a key that
    /// reaches so far.
    fn before(key: Self::Ref<'_>, depth: usize) -> u64;
    /// The first depth at which two different keys differ.
    fn parting(a: Self::Ref<'_>, b: Self::Ref<'_>) -> usize;
    /// The key of a value that is at a byte of a node of the last byte with this prefix.
    fn direct(prefix: u64, byte: u8) -> Self::Ref<'static>;
    /// Gives `note` the key as bytes, …
    fn noted(key: Self::Ref<'_>, note: impl FnOnce(&[u8]));
    /// … of which this makes it again.
    fn from_note(note: &[u8]) -> Self::Ref<'_>;
}

impl Parts for u64 {
    const DIRECT: bool = true;
    const LEAF_KEYS: usize = 4;
    const MAX_BYTES: usize = 8;
    const LOOKS_AHEAD: bool = false;
    const NOTHING_AHEAD: [MaybeUninit<Part>; 0] = [];
    type Ahead = [MaybeUninit<Part>; 0];
    const OBJECTS: &'static [NodeLayout] = &{
        let ([a, b, c, d, e, f, g], [h, i, j, k]) = (NODES, U64_LEAVES);
        [a, b, c, d, e, f, g, h, i, j, k]
    };
    const NO_FRAMES: Self::Frames = [const { MaybeUninit::uninit() }; 8];
    type Frames = [MaybeUninit<Frame>; 8];
    type Leaves<P: Placement> = IntegerLeaves<u64, P>;
    type Leaf<'g> = IntegerLeaf<'g, u64>;

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
        // Swapped once for a whole descent.
        Some(key.swap_bytes().wrapping_shr(8 * depth as u32) as u8)
    }
    #[inline(always)]
    fn before(key: u64, depth: usize) -> u64 {
        key >> 8 >> (56 - 8 * depth)
    }
    fn parting(a: u64, b: u64) -> usize {
        ((a ^ b).leading_zeros() / 8) as usize
    }
    fn noted(key: u64, note: impl FnOnce(&[u8])) {
        note(&key.to_ne_bytes());
    }
    fn from_note(note: &[u8]) -> u64 {
        u64::from_ne_bytes(note.try_into().expect("the note of such a key"))
    }
    #[inline(always)]
    fn direct(prefix: u64, byte: u8) -> u64 {
        prefix << 8 | u64::from(byte)
    }
}

impl Parts for u128 {
    const DIRECT: bool = false;
    const LEAF_KEYS: usize = 4;
    const MAX_BYTES: usize = 16;
    const LOOKS_AHEAD: bool = false;
    const NOTHING_AHEAD: [MaybeUninit<Part>; 0] = [];
    type Ahead = [MaybeUninit<Part>; 0];
    const OBJECTS: &'static [NodeLayout] = &{
        let ([a, b, c, d, ..], [h, i, j, k]) = (NODES, U128_LEAVES);
        [a, b, c, d, h, i, j, k]
    };
    const NO_FRAMES: Self::Frames = [const { MaybeUninit::uninit() }; 16];
    type Frames = [MaybeUninit<Frame>; 16];
    type Leaves<P: Placement> = IntegerLeaves<u128, P>;
    type Leaf<'g> = IntegerLeaf<'g, u128>;

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
    fn noted(key: u128, note: impl FnOnce(&[u8])) {
        note(&key.to_ne_bytes());
    }
    fn from_note(note: &[u8]) -> u128 {
        u128::from_ne_bytes(note.try_into().expect("the note of such a key"))
    }
    fn direct(_prefix: u64, _byte: u8) -> u128 {
        unreachable!("every value has a leaf")
    }
}

impl Parts for [u8] {
    const DIRECT: bool = false;
    const LEAF_KEYS: usize = 1;
    const MAX_BYTES: usize = 64 << 10;
    const LOOKS_AHEAD: bool = true;
    const NOTHING_AHEAD: Self::Ahead = [const { MaybeUninit::uninit() }; ROOM];
    type Ahead = [MaybeUninit<Part>; ROOM];
    const OBJECTS: &'static [NodeLayout] = &{
        let ([a, b, c, d, ..], [leaf]) = (NODES, BYTES_LEAVES);
        [a, b, c, d, leaf]
    };
    const NO_FRAMES: Self::Frames = [const { MaybeUninit::uninit() }; REMEMBERED];
    type Frames = [MaybeUninit<Frame>; REMEMBERED];
    type Leaves<P: Placement> = BytesLeaves<P>;
    type Leaf<'g> = BytesLeaf<'g>;

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
    fn noted(key: &[u8], note: impl FnOnce(&[u8])) {
        note(key);
    }
    fn from_note(note: &[u8]) -> &[u8] {
        note
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
        assert_eq!(<[u8] as Parts>::parting(b"abcdefghi", b"abcdefghj"), 8);
        assert_eq!(<[u8] as Parts>::parting(b"ab", b"abc"), 2);
        assert_eq!(<[u8] as Parts>::parting(b"", b"a"), 0);
    }

    /// Integers are as their big-endian bytes.
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
