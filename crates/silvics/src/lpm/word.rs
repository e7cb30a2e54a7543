//! The words of nodes.
//!
//! | word | bits |
//! |---|---|
//! | none | all zero |
//! | leaf | 0: one; 8 to 15: the length of the prefix; 16 to 63: the payload |
//! | child | 0: zero; 1: whether the node is wide; 2: whether it is of IPv6; 3 to 47: its address |
//!
//! The payload is a value of at most four bytes, or the address of a slot with the value. A leaf
//! need not have its prefix: a lookup that comes to it has the prefix's address, and the leaf has
//! its length.

use std::ptr::{NonNull, with_exposed_provenance_mut};

/// A word of a node, and the root of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct Word(u64);

const LEAF: u64 = 1;
const WIDE: u64 = 2;
const V6: u64 = 4;
const TAGS: u64 = 7;

impl Word {
    pub(super) const NONE: Self = Self(0);

    /// The leaf of a prefix of this length, with a payload of at most 48 bits.
    #[inline(always)]
    pub(super) fn leaf(payload: u64, len: u8) -> Self {
        debug_assert!(payload >> 48 == 0, "a payload has 48 bits");
        Self(payload << 16 | u64::from(len) << 8 | LEAF)
    }

    /// The word that leads to a node.
    pub(super) fn child(node: NonNull<u8>, is_wide: bool, is_v6: bool) -> Self {
        let address = node.as_ptr().expose_provenance() as u64;
        debug_assert!(address & TAGS == 0, "nodes are aligned");
        let kind = if is_wide { WIDE } else { 0 } | if is_v6 { V6 } else { 0 };
        Self(address | kind)
    }

    #[inline(always)]
    pub(super) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    #[inline(always)]
    pub(super) fn into_raw(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(super) fn is_leaf(self) -> bool {
        self.0 & LEAF != 0
    }

    #[inline(always)]
    pub(super) fn is_child(self) -> bool {
        self.0 & LEAF == 0 && self.0 != 0
    }

    /// The length of the prefix of a leaf.
    #[inline(always)]
    pub(super) fn len(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The payload of a leaf.
    #[inline(always)]
    pub(super) fn payload(self) -> u64 {
        self.0 >> 16
    }

    /// Whether the word is a leaf of this length.
    #[inline(always)]
    pub(super) fn is_leaf_of(self, len: u8) -> bool {
        self.0 & 0xFFFF == u64::from(len) << 8 | LEAF
    }

    /// Whether the node of a child is wide.
    #[inline(always)]
    pub(super) fn is_wide(self) -> bool {
        self.0 & WIDE != 0
    }

    /// Whether the node of a child is of IPv6.
    #[inline(always)]
    pub(super) fn is_v6(self) -> bool {
        self.0 & V6 != 0
    }

    /// The address of the node of a child.
    #[inline(always)]
    pub(super) fn node(self) -> *mut u8 {
        with_exposed_provenance_mut((self.0 & !TAGS) as usize)
    }

    /// This word, or the other one if this is none.
    #[inline(always)]
    pub(super) fn or(self, other: Self) -> Self {
        if self.is_none() { other } else { self }
    }

    /// The child as a pointer with its tags, as the domain takes retired objects.
    pub(super) fn into_retired(self) -> NonNull<u8> {
        let tagged = self.node().map_addr(|address| address | (self.0 & TAGS) as usize);
        NonNull::new(tagged).expect("a child is at no null address")
    }

    /// The child of such a pointer.
    pub(super) fn from_retired(retired: NonNull<u8>) -> Self {
        Self(retired.as_ptr().expose_provenance() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_what_they_were_made_of() {
        for (payload, len) in [(0, 0), (u64::from(u32::MAX), 32), ((1 << 48) - 1, 128)] {
            let word = Word::leaf(payload, len);
            assert!(word.is_leaf() && !word.is_child() && !word.is_none());
            assert_eq!((word.payload(), word.len()), (payload, len));
            assert!(word.is_leaf_of(len) && !word.is_leaf_of(len + 1));
            assert_eq!(Word::NONE.or(word), word);
        }
        let node = Box::leak(Box::new(7_u64));
        let place = NonNull::from(&mut *node).cast::<u8>();
        for (is_wide, is_v6) in [(false, false), (false, true), (true, false), (true, true)] {
            let word = Word::child(place, is_wide, is_v6);
            assert!(word.is_child() && !word.is_leaf() && !word.is_none());
            assert_eq!((word.is_wide(), word.is_v6()), (is_wide, is_v6));
            assert_eq!(word.node(), place.as_ptr());
            assert_eq!(Word::from_retired(word.into_retired()), word);
        }
        // SAFETY: leaked above, and used no more.
        drop(unsafe { Box::from_raw(node) });
    }
}
