//! Verifies the invariants of a quiescent tree.

use super::Words;
use super::block::{BlockRef, low_of};
use super::edit::Leaf;
use super::key::WordKey;
use super::node::Places;
use super::order::NO_ORDER;
use super::slots::{SLOT_BITS, SLOTS, SlotsRef};
use super::value::Content;
use super::word::{Leads, Word};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;

impl<K: WordKey, P: Placement> Words<K, P> {
    /// Walks the tree and verifies I4 to I8. Calls `see` with each object, and returns the number
    /// of entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let entries = Self::check_places(self.root(), see)?;
        self.objects.frame().counted(entries)
    }

    fn check_places(places: Places<'_, K>, see: &mut See<'_>) -> Result<usize, Violation> {
        let (mut entries, mut at, len) = (0, 0, places.list.len());
        if !places.lock.is_open() {
            return violation("I4", "linked places are locked or obsolete".into());
        }
        while at < len {
            let word = places.word(at);
            let last = if word.is_none() || places.is_root() { at } else { places.run(at).1 };
            let width = last + 1 - at;
            if !width.is_power_of_two() || !at.is_multiple_of(width) {
                return violation("I6", format!("places {at} to {last} have one child"));
            }
            // SAFETY: I3: access is exclusive, and the word is linked.
            match unsafe { word.leads::<K>() } {
                Leads::None => {}
                Leads::Node(node) => {
                    see(node.placed());
                    let below = node.places();
                    let top = places.shift + width.ilog2();
                    let is_whole = below.top().max(places.shift) == top;
                    let is_below = below.base >= places.start(at) && below.base <= places.end(last);
                    let checks = below.top() < places.shift;
                    if below.base.above(below.top()) != below.base
                        || !is_below
                        || !is_whole
                        || checks != word.checks()
                    {
                        return violation("I6", format!("a node from {:?} at {at}", below.base));
                    }
                    entries += Self::check_places(below, see)?;
                }
                Leads::Block(block) => {
                    see(block.placed());
                    entries += Self::check_block(block, (places, at, last))?;
                }
                Leads::Slots(slots) => {
                    see(slots.placed());
                    entries += Self::check_slots(slots, (places, at, last))?;
                }
            }
            at = last + 1;
        }
        Ok(entries)
    }

    fn check_leaf(leaf: Leaf<'_, K>) -> Result<(), Violation> {
        if !leaf.lock().is_open() || leaf.successor().word() != Word::NONE {
            return violation("I4", "a linked leaf is locked, obsolete or moved".into());
        }
        Ok(())
    }

    fn check_block(
        block: BlockRef<'_, K>,
        (places, at, last): (Places<'_, K>, usize, usize),
    ) -> Result<usize, Violation> {
        Self::check_leaf(Leaf::Block(block))?;
        let (mut order, top) = (NO_ORDER, places.start(at).top());
        let (len, _) = block.ordered(&mut order, top);
        let (marks, mut present, mut before) = (block.word().marks(), 0, None);
        for place in &order[..len] {
            let (key, word) = block.entry(*place, top);
            if before.is_some_and(|before| before >= key) {
                return violation("I7", format!("{before:?} before {key:?}"));
            }
            before = Some(key);
            if block.find(key) != Some(low_of::<K>(*place)) {
                return violation("I5", format!("{key:?} is not found"));
            }
            match marks.content(word) {
                Content::Moved => return violation("I8", format!("{key:?} has moved")),
                Content::Absent | Content::Closed => {}
                Content::Value(_) => {
                    present += 1;
                    if key < places.start(at) || key > places.end(last) {
                        return violation("I6", format!("{key:?} at {at} to {last}"));
                    }
                }
            }
        }
        Ok(present)
    }

    fn check_slots(
        slots: SlotsRef<'_, K>,
        (places, at, last): (Places<'_, K>, usize, usize),
    ) -> Result<usize, Violation> {
        Self::check_leaf(Leaf::Slots(slots))?;
        let base = slots.key(0);
        if places.shift > SLOT_BITS || base != places.start(at).above(SLOT_BITS) {
            return violation("I6", format!("slots from {base:?} at {at}"));
        }
        let mut present = 0;
        for slot in 0..SLOTS {
            match slots.value(slot).content() {
                Content::Moved => return violation("I8", format!("slot {slot} has moved")),
                Content::Absent | Content::Closed => {}
                Content::Value(_) => {
                    present += 1;
                    let key = slots.key(slot);
                    if key < places.start(at) || key > places.end(last) {
                        return violation("I6", format!("{key:?} at {at} to {last}"));
                    }
                }
            }
        }
        Ok(present)
    }
}
