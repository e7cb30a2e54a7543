//! The order of a block's entries.
//!
//! A block is made with its entries in order. An insert appends its entry behind them. A thread
//! that needs the order of all entries sorts those that were added, and merges them. They are few,
//! since a block has room for few.

use super::block::{BlockRef, MAX_ENTRIES};
use super::key::BlockKey;

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// The numbers of all entries in the order of their keys, present or not, and how many they
    /// are.
    #[inline]
    pub(super) fn sorted(self) -> ([u8; MAX_ENTRIES], usize) {
        let entries = self.entries();
        let order = std::array::from_fn(|at| at as u8);
        if self.sorted_entries() == entries {
            return (order, entries);
        }
        (self.merged(order, entries), entries)
    }

    /// Merges the entries that were added into those that are sorted.
    #[inline(never)]
    fn merged(self, order: [u8; MAX_ENTRIES], entries: usize) -> [u8; MAX_ENTRIES] {
        let key = |number: u8| self.key(usize::from(number));
        let (sorted, mut added) = (self.sorted_entries(), order);
        let added = &mut added[sorted..entries];
        added.sort_unstable_by(|a, b| key(*a).cmp(&key(*b)));
        let (mut merged, mut old) = ([0; MAX_ENTRIES], 0);
        for (before, new) in added.iter().enumerate() {
            let smaller = order[old..sorted].partition_point(|other| key(*other) < key(*new));
            merged[old + before..][..smaller].copy_from_slice(&order[old..old + smaller]);
            old += smaller;
            merged[old + before] = *new;
        }
        merged[old + added.len()..entries].copy_from_slice(&order[old..sorted]);
        merged
    }
}
