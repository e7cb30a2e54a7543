//! Leaves that have become empty or small.
//!
//! A leaf without an entry is unlinked. A block of few entries is merged with its neighbour, if the
//! two make an aligned range of places. An array of slots with few entries becomes a block. If
//! memory cannot be allocated, or if another thread is in the way, the leaf stays as it is.

use super::Words;
use super::block::{BlockRef, MAX_ENTRIES, MAX_PLACES, groups_for};
use super::edit::{Found, Fresh, Hold, Leaf, Spot};
use super::entries::{BlockEntries, Entries, SlotEntries};
use super::grow::{DENSE, Part};
use super::key::WordKey;
use super::slots::{SLOTS, SlotsRef};
use super::value::{Content, Marks};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use silvics_pool::Placement;

/// The most entries of a block that may be merged.
const FEW: usize = if cfg!(silvics_shuttle) { 1 } else { MAX_ENTRIES / 4 };
/// The most entries of a block that two are merged to, so that it is not split again soon.
const MERGED: usize = 2 * MAX_ENTRIES / 3;
/// The most entries of an array that becomes a block: half as many as a block that becomes one.
const SPARSE: usize = DENSE / 2;

impl<K: WordKey> Leaf<'_, K> {
    /// The number of values.
    pub(super) fn count(self) -> usize {
        match self {
            Self::Block(block) => {
                let is_value = |at: &usize| matches!(block.value(*at).content(), Content::Value(_));
                block.places().filter(is_value).count()
            }
            Self::Slots(slots) => {
                let is_value = |at: &usize| matches!(slots.value(*at).content(), Content::Value(_));
                (0..SLOTS).filter(is_value).count()
            }
        }
    }
}

impl<K: WordKey, P: Placement> Words<K, P> {
    /// Unlinks, merges or shrinks the leaf of a key that was removed, if few entries are left.
    #[cold]
    #[inline(never)]
    pub(super) fn tidy(&self, key: K, guard: &Guard) {
        loop {
            let found = self.seek(key, guard);
            // SAFETY: I3: the word was read under the guard.
            let Some(leaf) = (unsafe { Leaf::of(found.word) }) else { return };
            let count = leaf.count();
            let is_large = match leaf {
                Leaf::Block(block) => {
                    count > FEW && 2 * groups_for::<K>(count + 1) > block.word().groups()
                }
                Leaf::Slots(_) => count > SPARSE,
            };
            if is_large {
                return;
            }
            let Some(hold) = Hold::new(leaf.lock()) else { continue }; // it was replaced
            if count == 0 {
                if self.unlink(leaf, hold, key, guard) {
                    return;
                }
                continue;
            }
            // Another thread may be in the way, or memory may be short: then the leaf stays.
            let _: Result<(), AllocError> = match leaf {
                Leaf::Block(block) if count <= FEW => self.merge((block, hold), &found, key, guard),
                Leaf::Block(block) => {
                    let entries = Self::closed_entries(block, key);
                    self.copy((block, hold), &found, &entries, guard)
                }
                Leaf::Slots(slots) => self.to_block((slots, hold), &found, key, guard),
            };
            return;
        }
    }

    /// Unlinks a leaf that the caller has locked, if it has no entry. Returns whether that is so no
    /// longer, or was never so.
    pub(super) fn unlink<'g>(
        &'g self,
        leaf: Leaf<'g, K>,
        hold: Hold<'g>,
        key: K,
        guard: &'g Guard,
    ) -> bool {
        // A value that is removed after that leaves its place open.
        let is_empty = match leaf {
            Leaf::Block(block) => block.close(),
            Leaf::Slots(slots) => slots.close(),
        };
        if !is_empty && !planted(Canary::OpenPlaceTrusted) || leaf.count() > 0 {
            Self::open(leaf);
            return true;
        }
        let Found { spot, word, .. } = self.seek(key, guard);
        let Some(held) = spot.hold(leaf.word()).filter(|_| word == leaf.word()) else {
            Self::open(leaf);
            return false;
        };
        Self::link_run(spot, super::word::Word::NONE);
        let is_last = spot.places.distinct() <= 1;
        drop(held);
        self.leave(leaf.word(), hold, guard);
        if is_last {
            self.collapse(key, guard);
        }
        true
    }

    /// Opens the closed places of a leaf whose lock the caller has.
    fn open(leaf: Leaf<'_, K>) {
        match leaf {
            Leaf::Block(block) => block.open(),
            Leaf::Slots(slots) => slots.open(),
        }
    }

    /// The entries of a block that the caller has locked, after it was closed.
    pub(super) fn closed_entries(block: BlockRef<'_, K>, key: K) -> BlockEntries<K> {
        block.close();
        let mut entries = BlockEntries::new();
        entries.read_closed(block, key);
        entries
    }

    /// The block that makes an aligned run of places with that of a spot, whose run is given: the
    /// first of its places, and the block.
    fn beside(
        Spot { places, .. }: Spot<'_, K>,
        (first, last): (usize, usize),
        marks: Marks,
    ) -> Option<(usize, BlockRef<'_, K>)> {
        let len = last - first + 1;
        let other = first ^ len;
        let is_aligned = len.is_power_of_two() && first.is_multiple_of(len);
        if places.is_root() || !is_aligned || other + len > places.list.len() {
            return None;
        }
        let word = places.word(other);
        // SAFETY: I3: the word was read under the guard.
        match unsafe { Leaf::<K>::of(word) } {
            Some(Leaf::Block(block))
                if block.word().marks() == marks
                    && places.run_of(other, word) == (other, other + len - 1) =>
            {
                Some((other, block))
            }
            _ => None,
        }
    }

    /// A block with the entries of two, of which the first ones precede the others, and the parts
    /// of both.
    fn merged<'g>(
        fresh: &mut Fresh<'g, K, P>,
        pair: [&BlockEntries<K>; 2],
        marks: Marks,
        guard: &'g Guard,
    ) -> Result<(BlockRef<'g, K>, [Part<'g, K>; 2]), AllocError> {
        let [before, behind] = pair;
        let groups = groups_for::<K>(before.len + behind.len + 1);
        let make = |tree: &'g Self| tree.objects.block(groups, marks, guard);
        let block: BlockRef<'g, K> = fresh.add(make, |block| block.word())?;
        let content =
            pair.into_iter().flat_map(|of| of.keys().iter().zip(of.words.iter().copied()));
        let mut places = [0; MAX_PLACES];
        block.fill(content, |number, at| places[number] = at);
        let part = |from: usize, of: &BlockEntries<K>| {
            let mut own = [0; MAX_PLACES];
            own[..of.len].copy_from_slice(&places[from..from + of.len]);
            Part { leaf: Leaf::Block(block), entries: (0, of.len), places: own }
        };
        Ok((block, [part(0, before), part(before.len, behind)]))
    }

    /// Merges a block of few entries with its neighbour, or shrinks it.
    fn merge<'g>(
        &'g self,
        (block, hold): (BlockRef<'g, K>, Hold<'g>),
        found: &Found<'g, K>,
        key: K,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let (spot, marks) = (found.spot, block.word().marks());
        let run = spot.places.run_of(spot.at, block.word());
        let entries = Self::closed_entries(block, key);
        let Some((other, neighbour)) = Self::beside(spot, run, marks) else {
            if 2 * groups_for::<K>(entries.len + 1) <= block.word().groups() {
                return self.copy((block, hold), found, &entries, guard);
            }
            block.open();
            return Ok(());
        };
        let few = entries.len + Leaf::Block(neighbour).count() <= MERGED;
        let Some(hold_other) = few.then(|| Hold::attempt(neighbour.lock())).flatten() else {
            block.open();
            return Ok(());
        };
        let others = Self::closed_entries(neighbour, key);
        if entries.len + others.len > MERGED {
            block.open();
            neighbour.open();
            return Ok(());
        }
        let mut fresh = Fresh::new(self);
        let mut olds = [(block, &entries), (neighbour, &others)];
        if other < run.0 {
            olds.swap(0, 1);
        }
        let (merged, parts) = Self::merged(&mut fresh, olds.map(|old| old.1), marks, guard)?;
        let (word, len) = (block.word(), run.1 - run.0 + 1);
        let Some(held) = spot.hold(word) else { return Ok(()) };
        if spot.places.word(other) != neighbour.word()
            || spot.places.run(other) != (other, other + len - 1)
            || spot.places.run(spot.at) != run
        {
            return Ok(());
        }
        for ((old, entries), part) in olds.into_iter().zip(&parts) {
            Self::move_all(Leaf::Block(old), &entries.at, [part], merged.word());
        }
        let start = run.0.min(other);
        for place in &spot.places.list[start..start + 2 * len] {
            place.link(merged.word());
        }
        fresh.linked();
        let is_last = spot.places.distinct() <= 1;
        drop(held);
        self.leave(word, hold, guard);
        self.leave(neighbour.word(), hold_other, guard);
        if is_last {
            self.collapse(key, guard);
        }
        Ok(())
    }

    /// Replaces an array of slots with few entries by a block.
    fn to_block<'g>(
        &'g self,
        (slots, hold): (SlotsRef<'g, K>, Hold<'g>),
        found: &Found<'g, K>,
        key: K,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let marks = slots.word().marks();
        let mut entries: SlotEntries<K> = Entries::new();
        entries.read_slots(slots);
        let made = if entries.len <= MAX_ENTRIES {
            let mut fresh = Fresh::new(self);
            let content = (entries.keys(), &entries.words[..entries.len]);
            let part = Self::part(&mut fresh, content, marks, 0, guard);
            let held = found.spot.hold(slots.word());
            match (part, held) {
                (Ok(part), Some(held)) => Ok(Some((fresh, part, held))),
                (Err(error), _) => Err(error),
                (_, None) => Ok(None),
            }
        } else {
            Ok(None)
        };
        let (fresh, part, held) = match made {
            Ok(Some(made)) => made,
            other => {
                Self::open(Leaf::Slots(slots));
                return other.map(|_| ());
            }
        };
        let word = part.leaf.word();
        Self::move_all(Leaf::Slots(slots), &entries.at, &[part], word);
        Self::link_run(found.spot, word);
        fresh.linked();
        let is_last = found.spot.places.distinct() <= 1;
        drop(held);
        self.leave(slots.word(), hold, guard);
        if is_last {
            self.collapse(key, guard);
        }
        Ok(())
    }
}
