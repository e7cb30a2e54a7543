//! Ranges.
//!
//! # Algorithm
//! ```text
//! a walk takes a block at a time: its entries in order, of those the present ones, up to the
//!     range's end; then the next block on the way
//! next: the key and value of the next of these entries, if it is still present
//! ```
//! The nodes on the way may have been replaced meanwhile. Their children then are as they were when
//! the node was replaced, or newer. An object that is no longer linked was linked since the walk
//! began, and does not change any more. So a walk sees each entry that is present throughout.

use super::Blocks;
use super::block::{BlockRef, MAX_ENTRIES};
use super::key::BlockKey;
use super::order::Place;
use super::seek::{Found, Next, Way};
use super::word::Leads;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::AlgorithmBounds;
use silvics_pool::{Placement, Pooled};
use silvics_sync::atomic::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

/// A scan of a [`BlockTree`](crate::BlockTree), in descending order if it `DESCENDS`.
pub struct Range<'g, K: BlockKey + ?Sized, P: Placement = Pooled, const DESCENDS: bool = false> {
    tree: &'g Blocks<K, P>,
    guard: &'g Guard,
    /// The end of the walk.
    end: Bound<K::Ref<'g>>,
    way: Way<'g>,
    block: Option<BlockRef<'g, K>>,
    /// The prefix of the block.
    prefix: &'g [u8],
    /// The entries of the block, in the order of the walk.
    entries: [u8; MAX_ENTRIES],
    /// The next of them.
    at: usize,
    /// One past the last of them.
    len: usize,
    /// Whether the range ends in this block.
    is_last: bool,
}

/// A descending scan of a [`BlockTree`](crate::BlockTree).
pub type RangeRev<'g, K, P = Pooled> = Range<'g, K, P, true>;

impl<K: BlockKey + ?Sized, P: Placement, const DESCENDS: bool> fmt::Debug
    for Range<'_, K, P, DESCENDS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("end", &self.end).finish_non_exhaustive()
    }
}

impl<'g, K: BlockKey + ?Sized, P: Placement, const DESCENDS: bool> Range<'g, K, P, DESCENDS> {
    pub(super) fn new(
        tree: &'g Blocks<K, P>,
        (low, high): AlgorithmBounds<'g, Blocks<K, P>>,
        guard: &'g Guard,
    ) -> Self {
        let (start, end) = if DESCENDS { (high, low) } else { (low, high) };
        let mut range = Self {
            tree,
            guard,
            end,
            way: Way::new(),
            block: None,
            prefix: &[],
            entries: [0; MAX_ENTRIES],
            at: 0,
            len: 0,
            is_last: false,
        };
        range.seek(start);
        range
    }

    /// Whether the walk meets `a` before `b`.
    #[inline]
    fn precedes(a: K::Ref<'_>, b: K::Ref<'_>) -> bool {
        if DESCENDS { K::shorten(b) < K::shorten(a) } else { K::shorten(a) < K::shorten(b) }
    }

    /// Goes to the first block with entries from `start` on.
    fn seek(&mut self, start: Bound<K::Ref<'_>>) {
        let (Bound::Included(key) | Bound::Excluded(key)) = start else {
            match self.tree.begin::<DESCENDS>(&mut self.way) {
                Some(block) => self.enter(block),
                None => self.is_last = true,
            }
            return;
        };
        let Some(found) = self.tree.seek(K::shorten(key), &mut self.way, self.guard) else {
            self.is_last = true;
            return;
        };
        match found {
            Found::In(block, order, place) => {
                // The entries that are smaller than the start, and whether it is an entry.
                let (smaller, is_entry) = match place {
                    Place::At(position) => (position, true),
                    Place::Between(rank, _) => (rank.position, false),
                };
                let is_included = matches!(start, Bound::Included(_));
                let passed = smaller + usize::from(is_entry && is_included == DESCENDS);
                let numbers = order.numbers();
                let ahead = if DESCENDS { &numbers[..passed] } else { &numbers[passed..] };
                self.take(block, ahead);
            }
            Found::Before(block) if !DESCENDS => self.enter(block),
            Found::Behind(block) if DESCENDS => self.enter(block),
            Found::Before(block) | Found::Behind(block) => {
                // All entries of the block are before the start.
                (self.block, self.at, self.len) = (Some(block), 0, 0);
            }
        }
    }

    /// Goes to a block.
    fn enter(&mut self, block: BlockRef<'g, K>) {
        self.prefetch_next();
        let order = block.bare_order();
        self.take(block, order.numbers());
    }

    /// Takes entries of a block, whose numbers are in the order of their keys.
    fn take(&mut self, block: BlockRef<'g, K>, numbers: &[u8]) {
        let live = block.live();
        let mut len = 0;
        for at in 0..numbers.len() {
            let number = if DESCENDS { numbers[numbers.len() - 1 - at] } else { numbers[at] };
            if planted(Canary::OrderTrusted) && usize::from(number) >= block.sorted_entries() {
                continue;
            }
            self.entries[len] = number;
            len += usize::from(live >> number & 1 == 1);
        }
        (self.block, self.prefix, self.at, self.len) = (Some(block), block.prefix(), 0, len);
        self.cut();
    }

    /// Leaves out the entries of the block that are behind the end.
    fn cut(&mut self) {
        // The keys of an entry set are in other memory, so a key is not read in vain.
        if matches!(self.end, Bound::Unbounded) {
            return;
        }
        let (Some(block), Some(last)) = (self.block, self.entries[..self.len].last()) else {
            return;
        };
        let end = self.end;
        let within = |number: &u8| {
            let key = block.key(usize::from(*number));
            match end {
                Bound::Unbounded => true,
                Bound::Included(end) => !Self::precedes(K::shorten(end), key),
                Bound::Excluded(end) => Self::precedes(key, K::shorten(end)),
            }
        };
        if !within(last) {
            self.len = self.entries[..self.len].partition_point(within);
            self.is_last = true;
        }
    }

    fn prefetch_next(&self) {
        if let Some(word) = self.way.ahead::<DESCENDS>() {
            // SAFETY: I3: the word was read under the guard of the walk.
            if let Leads::Block(block) = unsafe { word.leads::<K>() } {
                block.prefetch_all();
            }
        }
    }

    /// The next entry that is present: its block, its number and its value.
    #[inline]
    fn next_present(&mut self) -> Option<(BlockRef<'g, K>, usize, u64)> {
        loop {
            while self.at < self.len {
                let Some(block) = self.block else { break };
                let number = usize::from(self.entries[self.at]);
                self.at += 1;
                if let Some(value) = block.value_if_present(number) {
                    return Some((block, number, value));
                }
            }
            if !self.advance() {
                return None;
            }
        }
    }

    /// The values of the entries. Keys that do not lie in blocks are not read.
    pub(super) fn values(mut self) -> impl Iterator<Item = u64> + 'g {
        std::iter::from_fn(move || self.next_present().map(|(_, _, value)| value))
    }

    /// Goes to the next block, and returns whether there is one.
    #[inline(never)]
    fn advance(&mut self) -> bool {
        let Some(block) = self.block.filter(|_| !self.is_last) else { return false };
        match Blocks::<K, P>::next::<DESCENDS>(&mut self.way) {
            Next::Block(block) => self.enter(block),
            Next::End => {
                self.is_last = true;
                return false;
            }
            Next::Lost => self.find_way(block),
        }
        true
    }

    /// Finds the way on from a block that is on a path of more nodes than a way keeps.
    #[cold]
    fn find_way(&mut self, block: BlockRef<'g, K>) {
        if !self.tree.turn::<DESCENDS>(block, &mut self.way, self.guard) {
            // The block was replaced. On behind all its keys, present or not.
            let order = block.bare_order();
            let last = if DESCENDS { 0 } else { order.len() - 1 };
            self.seek(Bound::Excluded(block.key(usize::from(order.numbers()[last]))));
        }
    }
}

impl<'g, K: BlockKey + ?Sized, P: Placement, const DESCENDS: bool> Iterator
    for Range<'g, K, P, DESCENDS>
{
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (block, number, value) = self.next_present()?;
        Some((block.key_behind(self.prefix, number), value))
    }

    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        loop {
            if let Some(block) = self.block {
                for number in &self.entries[self.at..self.len] {
                    let number = usize::from(*number);
                    if let Some(value) = block.value_if_present(number) {
                        folded = f(folded, (block.key_behind(self.prefix, number), value));
                    }
                }
                self.at = self.len;
            }
            if !self.advance() {
                return folded;
            }
        }
    }
}

impl<K: BlockKey + ?Sized, P: Placement, const DESCENDS: bool> FusedIterator
    for Range<'_, K, P, DESCENDS>
{
}

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// The value of an entry, if it is present.
    #[inline(always)]
    fn value_if_present(self, at: usize) -> Option<u64> {
        let value = self.value(at).load(Ordering::SeqCst);
        (self.live() >> at & 1 == 1).then_some(value)
    }
}
