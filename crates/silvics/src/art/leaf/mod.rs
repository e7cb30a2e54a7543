//! Leaves: keys and their values.
//!
//! A leaf of integers holds up to four entries ([`integers`]), a leaf of a byte string holds one
//! ([`bytes`]).

mod bytes;
mod entries;
mod integers;

pub(super) use entries::Entries;
pub(super) use integers::integers;

use super::key::DigitKey;
use super::word::Word;
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Config, Placement, PoolStats, SlotSize};
use silvics_sync::atomic::AtomicU64;
use std::ptr::NonNull;

/// A key type that leaves can hold.
#[doc(hidden)]
pub trait LeafKey: DigitKey {
    /// The most keys in one leaf.
    const LEAF_KEYS: usize;
    /// The layouts of the tree's objects: the nodes in the order of their kinds, then the leaves by
    /// their number of keys.
    const OBJECTS: &'static [NodeLayout];
    /// The pools of leaves.
    type Leaves<P: Placement>: Leaves<Self>;
    /// A leaf.
    type Leaf<'g>: LeafOf<'g, Self>;
}

/// The most keys in a leaf of any key type.
pub(super) const MOST_KEYS: usize = 4;

/// A leaf that is not reclaimed during `'g`. Its keys never change (I1), its values are atomic.
#[doc(hidden)]
pub trait LeafOf<'g, K: LeafKey + ?Sized>: Copy {
    /// # Safety
    /// The word leads to a leaf of a tree with keys `K`, which is not reclaimed during `'g`.
    unsafe fn from_word(word: Word) -> Self;
    /// The number of places. Each has a key, removed or not.
    fn len(self) -> usize;
    /// Whether the entry at a place has been removed.
    fn is_gone(self, at: usize) -> bool;
    /// The word of this leaf after the entry at a place is removed. It must not be the last one.
    fn without(word: Word, at: usize) -> Word;
    /// The key at a place.
    fn key(self, at: usize) -> K::Ref<'g>;
    /// The value at a place.
    fn value(self, at: usize) -> &'g AtomicU64;
    /// The place of a key that has not been removed.
    fn find(self, key: K::Ref<'_>) -> Option<usize>;
    /// The value of a key that has not been removed.
    fn get(self, key: K::Ref<'_>) -> Option<u64>;
    /// The offset and length of the bytes that a search for a key compares, if it compares any.
    fn looked_at(self, key: K::Ref<'_>) -> Option<(usize, usize)>;
    /// The offset of the value at a place from the leaf's address.
    fn value_offset(self, at: usize) -> usize;
    /// The leaf's size in bytes.
    fn bytes(self) -> usize;

    /// The places of the entries that have not been removed, at least one.
    #[inline(always)]
    fn places(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.len()).filter(move |&at| !self.is_gone(at))
    }
}

/// The pools of leaves.
#[doc(hidden)]
pub trait Leaves<K: LeafKey + ?Sized>: Send + Sync + Sized + 'static {
    fn new(config: &Config) -> Self;
    /// Memory for a leaf of these entries. There must be at least one, and at most
    /// [`LeafKey::LEAF_KEYS`].
    fn alloc(&self, entries: &[(K::Ref<'_>, u64)]) -> Result<NonNull<u8>, AllocError>;
    /// The size of such a leaf.
    fn slot(entries: &[(K::Ref<'_>, u64)]) -> SlotSize;
    /// Makes a leaf of these entries, which must ascend by key.
    ///
    /// # Safety
    /// The memory has that size, is aligned to 8 bytes, and nobody else has it.
    unsafe fn fill(leaf: NonNull<u8>, entries: &[(K::Ref<'_>, u64)]) -> Word;
    /// Frees a leaf.
    ///
    /// # Safety
    /// The leaf came from these pools, is freed once, and nobody can reach it any more.
    unsafe fn free(&self, word: Word);
    /// The statistics of each pool.
    fn stats(&self) -> impl Iterator<Item = PoolStats>;
    /// Returns the free memory of all pools to the system, and its bytes.
    fn shrink(&self) -> usize;
}
