//! Counting the entries of a range, in any order of the keys of a leaf.
//!
//! A count visits the same leaves as a scan of the range (`scan.rs`), and sees keys in the same
//! states. A scan has to know the order of keys; a count reads their lines one after the other.

use super::Words;
use super::block::BlockRef;
use super::edit::Leaf;
use super::key::WordKey;
use super::slots::SlotsRef;
use super::value::ValuePlace;
use super::word::Word;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::AlgorithmBounds;
use silvics_pool::Placement;
use std::ops::Bound;

impl<K: WordKey, P: Placement> Words<K, P> {
    /// The smallest key that leads to the same leaf as `key`, if there is a leaf.
    pub(super) fn start_of_leaf(&self, key: K, guard: &Guard) -> Option<K> {
        let (spot, leaf) = self.leaf_from(key, false, guard)?;
        let (first, last) = spot.places.run_of(spot.at, leaf.word());
        let (first, last) = (spot.places.start(first), spot.places.end(last));
        (first..=last).contains(&key).then_some(first)
    }

    /// The number of entries between two bounds.
    pub(super) fn count_between(
        &self,
        (start, end): AlgorithmBounds<'_, Self>,
        guard: &Guard,
    ) -> usize {
        let inclusive = |bound, unbounded, inwards: bool| match bound {
            Bound::Unbounded => Some(unbounded),
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) => K::next(key, inwards),
        };
        let [first, last] = K::ENDS;
        let bounds = inclusive(start, first, false).zip(inclusive(end, last, true));
        let Some((start, end)) = bounds.filter(|(start, end)| start <= end) else { return 0 };
        let (mut count, mut next) = (0, Some((start, None)));
        while let Some((key, spot)) = next {
            let from_root = || self.leaf_from(key, false, guard).map(|(spot, _)| spot);
            let Some(spot) = spot.or_else(from_root) else { break };
            let word = spot.word();
            // SAFETY: I3: the word was read under the guard.
            let Some(leaf) = (unsafe { Leaf::of(word) }) else {
                next = Some((key, None)); // a node, or nothing
                continue;
            };
            leaf.prefetch_whole();
            let run = spot.places.run_of(spot.at, word);
            let (low, mut high) = (spot.places.start(run.0).max(key), spot.places.end(run.1));
            next = None;
            if high < end {
                next = match spot.leads_behind(run, false) {
                    Some(spot) => Some((spot.entry(false), Some(spot))),
                    None => spot.key_behind(false).map(|key| (key, None)),
                };
            }
            high = high.min(end);
            if low > high {
                break; // the leaf is behind the range
            }
            count += match leaf {
                Leaf::Block(block) => self.count_in_block(block, (low, high)),
                Leaf::Slots(slots) => self.count_in_slots(slots, (low, high)),
            };
        }
        count
    }

    /// The number of entries of a block between two keys.
    #[inline]
    fn count_in_block(&self, block: BlockRef<'_, K>, (low, high): (K, K)) -> usize {
        let (mut count, mut has_moved) = (0, false);
        let bounds = (low.stored(), high.stored());
        for group in 0..block.word().groups() {
            for at in K::GROUP_WORDS * group..K::GROUP_WORDS * group + K::PER_GROUP {
                let value = block.value(at);
                let word = value.word();
                let is_in = block.is_within(at, bounds);
                count += usize::from(is_in & value.marks.allow(word));
                has_moved |= is_in & (word == value.marks.moved());
            }
        }
        if has_moved && !planted(Canary::MovedIsAbsent) {
            let within = block.places().filter(|at| block.is_within(*at, bounds));
            let key = |at| block.known_key(at, low.top());
            let present = |at: &usize| self.is_present(block.word(), key(*at), block.value(*at));
            return within.filter(present).count();
        }
        count
    }

    /// The number of entries of an array of slots between two keys.
    #[inline]
    fn count_in_slots(&self, slots: SlotsRef<'_, K>, (low, high): (K, K)) -> usize {
        let present =
            |at| usize::from(self.is_present(slots.word(), slots.key(at), slots.value(at)));
        (SlotsRef::slot_of(low)..=SlotsRef::slot_of(high)).map(present).sum()
    }

    /// Whether a place of a leaf has a value, or has had it before it moved and its successor has
    /// one.
    #[inline(always)]
    fn is_present(&self, leaf: Word, key: K, value: ValuePlace<'_>) -> bool {
        let word = value.word();
        value.marks.allow(word)
            || word == value.marks.moved() && self.value_after(leaf, key).is_some()
    }
}
