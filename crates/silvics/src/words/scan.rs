//! Ranges.
//!
//! # Algorithm
//! ```text
//! a walk takes a leaf at a time: the places of its keys in order, up to the range's end; then it
//!     goes on to the next leaf, by the node above, or from the root
//! next: the key and the value of the next of these places, if it has a value
//! ```
//! The node may have been replaced meanwhile. Its children then are as they were when the node was
//! replaced. A leaf that is no longer linked was linked since the walk began; its values have moved
//! to its successors, where they are looked up. So a walk sees each entry that is present
//! throughout.
//!
//! A walk that finds keys in a block whose rank the block does not know notes the order of all keys
//! there. This is the only write of a walk, and the next one finds the order.
//!
//! A walk prefetches the next leaf of the same node, and from the second leaf there on the one
//! after that, too.
//!
//! A walk first notes which slots of an array have values, since a branch for each slot would be
//! mispredicted often. If all slots of the array before had values, it takes all slots as they
//! come.

use super::Words;
use super::block::{BlockRef, low_of};
use super::edit::{Leaf, Spot};
use super::key::WordKey;
use super::order::{NO_ORDER, Order};
use super::slots::{SLOTS, SlotsRef};
use super::value::Marks;
use super::word::Word;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::AlgorithmBounds;
use silvics_pool::{Placement, Pooled};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

const _: () = assert!(SLOTS <= u64::BITS as usize);
/// All slots of an array, as bits.
const ALL: u64 = u64::MAX >> (u64::BITS as usize - SLOTS);

/// The entries of a leaf that a walk has yet to return, and where it goes on.
struct Taken<'g, K> {
    /// The first key that the walk has not passed, and the place where its leaf should be.
    next: Option<(K, Option<Spot<'g, K>>)>,
    leaf: Word,
    marks: Marks,
    /// The key of the first slot, or the first two bits of the block's keys.
    base: K,
    /// The slots that are left, as bits.
    slots: u64,
    /// Whether the last array of slots had all values.
    was_full: bool,
    /// The number of leaves behind this one that were prefetched.
    ahead: u8,
    /// The places of the block that are left: the first, and one past the last.
    left: (usize, usize),
    places: Order,
}

/// A scan of a [`WordTree`](crate::WordTree), in descending order if it `DESCENDS`.
pub struct Range<'g, K: WordKey, P: Placement = Pooled, const DESCENDS: bool = false> {
    tree: &'g Words<K, P>,
    guard: &'g Guard,
    /// The last key of the walk.
    end: K,
    taken: Taken<'g, K>,
}

/// A descending scan of a [`WordTree`](crate::WordTree).
pub type RangeRev<'g, K, P = Pooled> = Range<'g, K, P, true>;

impl<K: WordKey, P: Placement, const DESCENDS: bool> fmt::Debug for Range<'_, K, P, DESCENDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("end", &self.end).finish_non_exhaustive()
    }
}

impl<'g, K: WordKey> Taken<'g, K> {
    /// Goes to the next leaf. Takes nothing if there is none there: then the
    /// walk goes on from the root. Returns whether there may be more.
    #[inline(never)]
    fn advance<P: Placement, const DESCENDS: bool>(
        &mut self,
        tree: &'g Words<K, P>,
        guard: &'g Guard,
        end: K,
    ) -> bool {
        (self.left, self.slots) = ((0, 0), 0);
        let Some((key, spot)) = self.next.take() else { return false };
        let from_root = || tree.leaf_from(key, DESCENDS, guard).map(|(spot, _)| spot);
        let Some(spot) = spot.or_else(from_root) else { return false };
        self.leaf = spot.word();
        self.marks = self.leaf.marks();
        // SAFETY: I3: the word was read under the guard.
        match unsafe { Leaf::of(self.leaf) } {
            Some(Leaf::Block(block)) => self.enter_block::<DESCENDS>((key, spot, end), block),
            Some(Leaf::Slots(slots)) => self.enter_slots::<DESCENDS>((key, spot, end), slots),
            None => (self.next, self.ahead) = (Some((key, None)), 0), // a node, or nothing
        }
        true
    }

    /// The smallest and the largest key that the walk takes from the leaf, if there is one.
    #[inline]
    fn window<const DESCENDS: bool>(&mut self, (start, spot, end): (K, Spot<'g, K>, K)) -> (K, K) {
        let (mut low, mut high) = self.pass::<DESCENDS>(spot);
        if DESCENDS {
            high = high.min(start);
            if low <= end {
                (low, self.next) = (end, None);
            }
        } else {
            low = low.max(start);
            if high >= end {
                (high, self.next) = (end, None);
            }
        }
        self.prefetch_next::<DESCENDS>();
        (low, high)
    }

    #[inline]
    fn enter_block<const DESCENDS: bool>(
        &mut self,
        at: (K, Spot<'g, K>, K),
        block: BlockRef<'g, K>,
    ) {
        let (low, high) = self.window::<DESCENDS>(at);
        self.base = low.top();
        let (len, known) = block.ordered(&mut self.places, self.base);
        if len > known {
            block.note_order(&self.places[..len]);
        }
        if len == 0 {
            return;
        }
        let key = |place: &u8| block.known_key(low_of::<K>(*place), low.top());
        let places = &self.places[..len];
        let (mut first, mut last) = (0, len);
        if key(&places[0]) < low {
            first = places.partition_point(|place| key(place) < low);
        }
        if key(&places[len - 1]) > high {
            last = places.partition_point(|place| key(place) <= high);
        }
        self.left = (first, last.max(first));
    }

    #[inline]
    fn enter_slots<const DESCENDS: bool>(
        &mut self,
        at: (K, Spot<'g, K>, K),
        slots: SlotsRef<'g, K>,
    ) {
        let (low, high) = self.window::<DESCENDS>(at);
        if low > high {
            return;
        }
        self.base = slots.key(0);
        let mut present = if self.was_full { ALL } else { 0 };
        if !self.was_full {
            for at in (0..SLOTS).rev() {
                present = present << 1 | u64::from(self.marks.is_or_was(slots.value(at).word()));
            }
            self.was_full = present == ALL;
        }
        let (from, to) = (SlotsRef::slot_of(low), SlotsRef::slot_of(high));
        self.slots = present & u64::MAX >> (63 - to) & u64::MAX << from;
    }

    /// Goes past the places of the leaf. Returns the smallest and the largest key below them.
    ///
    /// The places are those that have the word of the leaf now. It may have led to more when the
    /// walk read it. These have other leaves by now, which the walk comes to.
    #[inline]
    fn pass<const DESCENDS: bool>(&mut self, spot: Spot<'g, K>) -> (K, K) {
        let run = spot.places.run_of(spot.at, self.leaf);
        self.next = match spot.leads_behind(run, DESCENDS) {
            Some(spot) => Some((spot.entry(DESCENDS), Some(spot))),
            None => spot.key_behind(DESCENDS).map(|key| (key, None)),
        };
        (spot.places.start(run.0), spot.places.end(run.1))
    }

    /// Prefetches the leaf that the walk goes on with. If the walk has come to a leaf that was
    /// prefetched, it may be a long one, and the leaf after the next is prefetched, too.
    #[inline]
    fn prefetch_next<const DESCENDS: bool>(&mut self) {
        let was_ahead = std::mem::take(&mut self.ahead);
        let Some((_, Some(spot))) = self.next else { return };
        let word = spot.word();
        self.ahead = 1;
        if was_ahead < 2 {
            Self::prefetch(word);
        }
        let run = || spot.places.run_of(spot.at, word);
        if was_ahead > 0
            && let Some(spot) = spot.leads_behind(run(), DESCENDS)
        {
            Self::prefetch(spot.word());
            self.ahead = 2;
        }
    }

    #[inline]
    fn prefetch(word: Word) {
        // SAFETY: I3: the word was read under the guard.
        if let Some(leaf) = unsafe { Leaf::<K>::of(word) } {
            leaf.prefetch_whole();
        }
    }

    /// The place of the block that is next, if one is left.
    #[inline(always)]
    fn next_place<const DESCENDS: bool>((first, last): &mut (usize, usize)) -> Option<usize> {
        if *first >= *last {
            return None;
        }
        if DESCENDS {
            *last -= 1;
            return Some(*last);
        }
        *first += 1;
        Some(*first - 1)
    }

    /// The key and the word of a place of the block.
    #[inline(always)]
    fn at_place(&self, at: usize) -> (K, u64) {
        // SAFETY: I3: the word of the leaf was read under the guard, and is that of a block, as it
        // has places.
        let block = unsafe { BlockRef::<K>::new(self.leaf) };
        block.entry(self.places[at % NO_ORDER.len()], self.base)
    }

    /// The slot that is next, if one is left.
    #[inline(always)]
    fn next_slot<const DESCENDS: bool>(slots: &mut u64) -> Option<usize> {
        if *slots == 0 {
            return None;
        }
        let at = if DESCENDS { slots.ilog2() } else { slots.trailing_zeros() };
        *slots &= if DESCENDS { !(1 << at) } else { *slots - 1 };
        Some(at as usize)
    }

    /// The key and the word of a slot.
    #[inline(always)]
    fn at_slot(&self, at: usize) -> (K, u64) {
        let key = self.base.with(0, at);
        // SAFETY: I3: the word of the leaf was read under the guard, and is that of an array of
        // slots, as some are left.
        let slots = unsafe { SlotsRef::<K>::new(self.leaf) };
        (key, slots.value(SlotsRef::slot_of(key)).word())
    }
}

impl<'g, K: WordKey, P: Placement, const DESCENDS: bool> Range<'g, K, P, DESCENDS> {
    pub(super) fn new(
        tree: &'g Words<K, P>,
        (low, high): AlgorithmBounds<'g, Words<K, P>>,
        guard: &'g Guard,
    ) -> Self {
        let (start, end) = if DESCENDS { (high, low) } else { (low, high) };
        let [first, last] = if DESCENDS { [K::ENDS[1], K::ENDS[0]] } else { K::ENDS };
        let inclusive = |bound, unbounded, inwards: bool| match bound {
            Bound::Unbounded => Some(unbounded),
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) => K::next(key, inwards),
        };
        let (start, end) = (inclusive(start, first, DESCENDS), inclusive(end, last, !DESCENDS));
        let in_order = |(start, end): &(K, K)| if DESCENDS { start >= end } else { start <= end };
        let next = start.zip(end).filter(in_order).map(|(start, _)| (start, None));
        let taken = Taken {
            next,
            leaf: Word::NONE,
            marks: Word::NONE.marks(),
            base: K::ENDS[0],
            slots: 0,
            was_full: false,
            ahead: 0,
            left: (0, 0),
            places: NO_ORDER,
        };
        let mut range = Self { tree, guard, end: end.unwrap_or(last), taken };
        range.advance();
        range
    }

    #[inline(always)]
    fn advance(&mut self) -> bool {
        self.taken.advance::<P, DESCENDS>(self.tree, self.guard, self.end)
    }

    /// The entry of a place or slot, if it has one.
    #[inline(always)]
    fn present(&self, (key, word): (K, u64)) -> Option<(K, u64)> {
        if self.taken.marks.allow(word) { Some((key, word)) } else { self.marked(key, word) }
    }

    #[cold]
    #[inline(never)]
    fn marked(&self, key: K, word: u64) -> Option<(K, u64)> {
        let has_moved = word == self.taken.marks.moved() && !planted(Canary::MovedIsAbsent);
        if !has_moved {
            return None;
        }
        self.tree.value_after(self.taken.leaf, key).map(|value| (key, value))
    }
}

impl<K: WordKey, P: Placement, const DESCENDS: bool> Iterator for Range<'_, K, P, DESCENDS> {
    type Item = (K, u64);

    #[inline]
    fn next(&mut self) -> Option<(K, u64)> {
        loop {
            while let Some(at) = Taken::<K>::next_place::<DESCENDS>(&mut self.taken.left) {
                if let Some(entry) = self.present(self.taken.at_place(at)) {
                    return Some(entry);
                }
            }
            while let Some(at) = Taken::<K>::next_slot::<DESCENDS>(&mut self.taken.slots) {
                if let Some(entry) = self.present(self.taken.at_slot(at)) {
                    return Some(entry);
                }
                self.taken.was_full = false;
            }
            if !self.advance() {
                return None;
            }
        }
    }

    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        loop {
            let (mut left, mut slots) = (self.taken.left, self.taken.slots);
            while let Some(at) = Taken::<K>::next_place::<DESCENDS>(&mut left) {
                if let Some(entry) = self.present(self.taken.at_place(at)) {
                    folded = f(folded, entry);
                }
            }
            while let Some(at) = Taken::<K>::next_slot::<DESCENDS>(&mut slots) {
                match self.present(self.taken.at_slot(at)) {
                    Some(entry) => folded = f(folded, entry),
                    None => self.taken.was_full = false,
                }
            }
            if !self.advance() {
                return folded;
            }
        }
    }
}

impl<K: WordKey, P: Placement, const DESCENDS: bool> FusedIterator for Range<'_, K, P, DESCENDS> {}
