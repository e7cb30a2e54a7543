//! The order of a block's entries.
//!
//! An insert appends its entry, and leaves the order as it is: it then covers the entries before. A
//! thread that needs the order of all entries sorts those that were added since, merges them, and
//! writes the result to the block if nobody has its lock.

use super::block::{BlockRef, MAX_ENTRIES};
use super::key::BlockKey;
use crate::canary::{Canary, planted};

impl<'g, K: BlockKey + ?Sized> BlockRef<'g, K> {
    /// The numbers of all entries in the order of their keys, present or not, and how many they
    /// are. The caller may have the lock.
    pub(super) fn sorted(self) -> ([u8; MAX_ENTRIES], usize) {
        let entries = self.entries();
        let (order, ordered) = self.order();
        if ordered >= entries {
            return (order, ordered);
        }
        (self.merged(order, ordered, entries), entries)
    }

    /// As [`BlockRef::sorted`], and keeps the order if it is new. The caller has no lock.
    #[inline]
    pub(super) fn sorted_once(self) -> ([u8; MAX_ENTRIES], usize) {
        let entries = self.entries();
        let (order, ordered) = self.order();
        if ordered >= entries || planted(Canary::OrderTrusted) {
            return (order, ordered);
        }
        self.sort(order, ordered, entries)
    }

    #[cold]
    #[inline(never)]
    fn sort(
        self,
        order: [u8; MAX_ENTRIES],
        ordered: usize,
        entries: usize,
    ) -> ([u8; MAX_ENTRIES], usize) {
        let order = self.merged(order, ordered, entries);
        if let Some(locked) = self.try_locked()
            && self.order().1 < entries
        {
            self.write_order(&order[..entries]);
            drop(locked);
        }
        (order, entries)
    }

    /// Merges the entries from `ordered` on into the order of those before.
    fn merged(self, order: [u8; MAX_ENTRIES], ordered: usize, entries: usize) -> [u8; MAX_ENTRIES] {
        let key = |number: u8| self.key(usize::from(number));
        let mut added = [0; MAX_ENTRIES];
        for (to, number) in added.iter_mut().zip(ordered..entries) {
            *to = number as u8;
        }
        let added = &mut added[..entries - ordered];
        added.sort_unstable_by(|a, b| key(*a).cmp(&key(*b)));
        let (mut merged, mut old) = ([0; MAX_ENTRIES], 0);
        for (before, new) in added.iter().enumerate() {
            let smaller = order[old..ordered].partition_point(|other| key(*other) < key(*new));
            merged[old + before..][..smaller].copy_from_slice(&order[old..old + smaller]);
            old += smaller;
            merged[old + before] = *new;
        }
        merged[old + added.len()..entries].copy_from_slice(&order[old..ordered]);
        merged
    }
}
