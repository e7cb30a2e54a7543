//! Making room: first entries, larger blocks, and several blocks or arrays of slots for one.

use super::Words;
use super::block::{BlockRef, MAX_ENTRIES, MAX_PLACES, groups_for};
use super::edit::{Found, Fresh, Hold, Leaf, Spot};
use super::entries::BlockEntries;
use super::key::WordKey;
use super::ops::{Attempt, Tried};
use super::slots::{SLOT_BITS, SLOTS, SlotsRef};
use super::value::{Content, Marks, ValuePlace};
use super::word::{Kind, Leads, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use silvics_pool::Placement;
use silvics_sync::atomic::{Ordering, fence};

/// Moves the content of a place to a place that readers look at only after this one has moved.
/// Fails if the content is a mark there.
#[inline]
pub(super) fn move_value(from: ValuePlace<'_>, to: ValuePlace<'_>) -> bool {
    let moved = from.marks.moved();
    loop {
        let word = from.word();
        let content = match from.marks.content(word) {
            Content::Value(value) if to.marks.allow(value) => value,
            Content::Value(_) => return false,
            Content::Absent | Content::Closed | Content::Moved => to.marks.absent(),
        };
        // Relaxed: published by the exchange.
        to.place.store(content, Ordering::Relaxed);
        if planted(Canary::ValueMovedTwice) {
            from.place.store(moved, Ordering::SeqCst);
            return true;
        }
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        if from.place.compare_exchange(word, moved, success, failure).is_ok() {
            return true;
        }
    }
}

/// An array of slots gets the values of a full block if this many keys of its range of [`SLOTS`]
/// are there: a sixth. If keys only came, the array has at most 1.3 times the bytes of the block
/// that would follow. It is not copied when more come.
pub(super) const DENSE: usize = if cfg!(silvics_shuttle) { MAX_ENTRIES } else { SLOTS / 6 };

/// The bits by which a block is split if its keys are dense. Others are split by one bit.
const SPLIT_BITS: u32 = 2;

/// A leaf that is made for some of the entries of another one.
pub(super) struct Part<'g, K> {
    pub(super) leaf: Leaf<'g, K>,
    /// The entries: the first one, and one past the last.
    pub(super) entries: (usize, usize),
    /// The places of the entries in the leaf.
    pub(super) places: [u8; MAX_PLACES],
}

impl<K: WordKey, P: Placement> Words<K, P> {
    /// Puts the first entry below a place that leads nowhere.
    pub(super) fn plant(&self, key: K, value: u64, guard: &Guard) -> Attempt {
        let found = self.seek(key, guard);
        if found.word.kind() == Kind::Node {
            self.widen(&found, key, guard)?;
            return Ok(Tried::Again);
        }
        // The first and the last leaf change under their locks, so that an end stays one.
        let Some(_growth) = Hold::new(&self.growth) else { return Ok(Tried::Again) };
        fence(Ordering::SeqCst); // pairs with that in `ends.rs`
        let mut ends = [None, None];
        if !planted(Canary::EndUnlocked) {
            for (hold, descends) in ends.iter_mut().zip([false, true]) {
                let end = self.leaf_from(K::ENDS[usize::from(descends)], descends, guard);
                let Some((spot, leaf)) = end else { continue };
                let (first, last) = spot.places.run_of(spot.at, leaf.word());
                let is_behind = key > spot.places.end(last);
                if if descends { is_behind } else { key < spot.places.start(first) } {
                    *hold = Some(Hold::new(leaf.lock()));
                }
            }
            if ends.iter().flatten().any(Option::is_none) {
                return Ok(Tried::Again); // the end was replaced
            }
        }
        let Found { spot, word, .. } = self.seek(key, guard);
        if !word.is_none() {
            return Ok(Tried::Again);
        }
        let Some(_held) = spot.hold(word) else { return Ok(Tried::Again) };
        let marks = if Marks::BOTH[0].allow(value) { Marks::BOTH[0] } else { Marks::BOTH[1] };
        let block = self.objects.block(groups_for::<K>(1), marks, guard)?;
        block.fill([(&key, value)].into_iter(), |_, _| ());
        let (first, last) = spot.places.free_run(spot.at);
        for place in &spot.places.list[first..=last] {
            place.link(block.word()); // LP(inserted)
        }
        self.objects.frame().len.add(1);
        Ok(Tried::Found(None))
    }

    /// Makes room in the block that a key leads to: replaces it by a larger one, or by several, or
    /// by arrays of slots.
    pub(super) fn make_room(&self, key: K, guard: &Guard) -> Result<(), AllocError> {
        let found = self.seek(key, guard);
        // SAFETY: I3: the word was read under the guard.
        let Leads::Block(block) = (unsafe { found.word.leads::<K>() }) else { return Ok(()) };
        let Some(hold) = Hold::new(block.lock()) else { return Ok(()) };
        let entries = Self::closed_entries(block, key);
        let (keys, len) = (entries.keys(), entries.len);
        let span = keys.first().and_then(|first| first.difference(keys[len - 1]));
        let Some(bit) = span else { return self.copy((block, hold), &found, &entries, guard) };
        let is_dense = Self::is_dense(bit, len);
        if is_dense && bit < SLOT_BITS {
            return self.to_slots((block, hold), found.spot, &entries, guard);
        }
        if is_dense || len >= MAX_ENTRIES {
            return self.split((block, hold), &found, &entries, (keys[0], keys[len - 1]), guard);
        }
        self.copy((block, hold), &found, &entries, guard)
    }

    /// Whether arrays of slots get the `len` entries of a block: if their keys, which first differ
    /// in `bit`, are dense.
    fn is_dense(bit: u32, len: usize) -> bool {
        bit < SLOT_BITS + SPLIT_BITS && len >= DENSE << (bit + 1).saturating_sub(SLOT_BITS)
    }

    /// A block with some of the entries of another leaf, and room for more. Its values are those
    /// that were read; they may have changed.
    pub(super) fn part<'g>(
        fresh: &mut Fresh<'g, K, P>,
        (keys, words): (&[K], &[u64]),
        marks: Marks,
        from: usize,
        guard: &'g Guard,
    ) -> Result<Part<'g, K>, AllocError> {
        let groups = groups_for::<K>(keys.len() + 1);
        let make = |tree: &'g Self| tree.objects.block(groups, marks, guard);
        let block: BlockRef<'g, K> = fresh.add(make, |block| block.word())?;
        let mut places = [0; MAX_PLACES];
        let entries = keys.iter().zip(words.iter().copied());
        block.fill(entries, |number, at| places[number] = at);
        Ok(Part { leaf: Leaf::Block(block), entries: (from, from + keys.len()), places })
    }

    /// An array of slots for some of the entries of another leaf, which are in its range. Its
    /// values are absent.
    fn part_in_slots<'g>(
        fresh: &mut Fresh<'g, K, P>,
        keys: &[K],
        marks: Marks,
        from: usize,
        guard: &'g Guard,
    ) -> Result<Part<'g, K>, AllocError> {
        let base = keys[0].above(SLOT_BITS);
        let make = |tree: &'g Self| tree.objects.slots(base, marks, guard);
        let slots: SlotsRef<'g, K> = fresh.add(make, |slots| slots.word())?;
        let mut places = [0; MAX_PLACES];
        for (place, key) in places.iter_mut().zip(keys) {
            *place = SlotsRef::slot_of(*key) as u8;
        }
        Ok(Part { leaf: Leaf::Slots(slots), entries: (from, from + keys.len()), places })
    }

    /// Moves entries of a leaf to parts that have their keys already. `successor` leads to the
    /// parts.
    pub(super) fn move_all<'p>(
        old: Leaf<'_, K>,
        at: &[u8],
        parts: impl IntoIterator<Item = &'p Part<'p, K>>,
        successor: Word,
    ) where
        K: 'p,
    {
        old.successor().link(successor);
        for part in parts {
            let (from, to) = part.entries;
            for (at, to) in at[from..to].iter().zip(&part.places) {
                let moved = move_value(old.value(*at), part.leaf.value(*to));
                debug_assert!(moved, "the marks are the same");
            }
        }
    }

    /// Replaces a block by a copy with room for more entries.
    pub(super) fn copy<'g>(
        &'g self,
        (block, hold): (BlockRef<'g, K>, Hold<'g>),
        found: &Found<'g, K>,
        entries: &BlockEntries<K>,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let mut fresh = Fresh::new(self);
        let content = (entries.keys(), &entries.words[..entries.len]);
        let part = Self::part(&mut fresh, content, block.word().marks(), 0, guard)?;
        let Some(held) = found.spot.hold(block.word()) else { return Ok(()) };
        let word = part.leaf.word();
        Self::move_all(Leaf::Block(block), &entries.at, &[part], word);
        Self::link_run(found.spot, word);
        fresh.linked();
        drop(held);
        self.leave(block.word(), hold, guard);
        Ok(())
    }

    /// Marks a leaf that is no longer linked as obsolete, and retires it.
    pub(super) fn leave(&self, word: Word, hold: Hold<'_>, guard: &Guard) {
        if planted(Canary::LeafStaysValid) {
            drop(hold);
        } else {
            hold.obsolete();
        }
        // SAFETY: I4: the leaf is no longer linked, and was locked, so it is retired once.
        unsafe { self.objects.retire(word, guard) };
    }

    /// Replaces a block by leaves that part at the first bit in which the two `ends` differ. All
    /// its keys are between these. There are two leaves, or one if it has all keys, or up to four
    /// if the keys are dense.
    pub(super) fn split<'g>(
        &'g self,
        (block, hold): (BlockRef<'g, K>, Hold<'g>),
        found: &Found<'g, K>,
        entries: &BlockEntries<K>,
        ends: (K, K),
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let (keys, len) = (entries.keys(), entries.len);
        let Some(bit) = ends.0.difference(ends.1) else { unreachable!("the keys differ") };
        let bits = if bit > SLOT_BITS && Self::is_dense(bit, len) { SPLIT_BITS } else { 1 };
        let low = bit + 1 - bits;
        let Found { above, spot, .. } = *found;
        let places = spot.places;
        if low < places.shift
            && let Some(above) = above
        {
            let more = places.shift - low;
            if Self::may_have(places.bits() + more, places.distinct()) {
                drop(hold);
                return self.refine(above, places, more, guard);
            }
        }
        let mut fresh = Fresh::new(self);
        let parts = Self::parts(&mut fresh, (block, entries), (low, bits), guard)?;
        let word_of =
            |part: &Option<Part<'g, K>>| part.as_ref().map_or(Word::NONE, |part| part.leaf.word());
        let checks = bit + 1 < places.shift;
        let shape = (ends.0.above(bit + 1), low, bits);
        let node = fresh.add(|tree| tree.objects.node(shape, checks, guard), |node| node.word())?;
        for (place, part) in node.places().list.iter().zip(&parts) {
            place.link(word_of(part));
        }
        let Some(held) = spot.hold(block.word()) else { return Ok(()) };
        Self::move_all(Leaf::Block(block), &entries.at, parts.iter().flatten(), node.word());
        if low < places.shift {
            // The node stays. Other places of the block have no key.
            Self::link_below(spot, ends.0, places.shift.max(bit + 1), |_| node.word());
            fresh.linked();
        } else {
            let word = |key: K| word_of(&parts[key.bits(low, bits)]);
            Self::link_below(spot, ends.0, bit + 1, word);
            fresh.linked();
            // SAFETY: I4: readers of the old block come to the node, and nobody else. They have had
            // their guards since before the block was unlinked. The node is retired once.
            unsafe { self.objects.retire(node.word(), guard) };
        }
        drop(held);
        self.leave(block.word(), hold, guard);
        self.tidy_parts(parts.iter().flatten(), keys, guard);
        Ok(())
    }

    /// The leaves that a block is split into by `bits` bits from `low` up.
    fn parts<'g>(
        fresh: &mut Fresh<'g, K, P>,
        (block, entries): (BlockRef<'g, K>, &BlockEntries<K>),
        (low, bits): (u32, u32),
        guard: &'g Guard,
    ) -> Result<[Option<Part<'g, K>>; 1 << SPLIT_BITS], AllocError> {
        let (keys, marks) = (entries.keys(), block.word().marks());
        let mut parts = [const { None }; 1 << SPLIT_BITS];
        let mut from = 0;
        for (place, part) in parts.iter_mut().enumerate().take(1 << bits) {
            let to = keys.partition_point(|key| key.bits(low, bits) <= place);
            let (keys, words) = (&keys[from..to], &entries.words[from..to]);
            if low == SLOT_BITS && keys.len() >= DENSE {
                *part = Some(Self::part_in_slots(fresh, keys, marks, from, guard)?);
            } else if from < to {
                *part = Some(Self::part(fresh, (keys, words), marks, from, guard)?);
            }
            from = to;
        }
        Ok(parts)
    }

    /// Unlinks those parts of a leaf whose entries were removed before they moved.
    pub(super) fn tidy_parts<'p>(
        &self,
        parts: impl Iterator<Item = &'p Part<'p, K>>,
        keys: &[K],
        guard: &Guard,
    ) where
        K: 'p,
    {
        for part in parts.filter(|part| part.leaf.count() == 0) {
            self.tidy(keys[part.entries.0], guard);
        }
    }

    /// Links new words to the places of a leaf: to those whose keys agree with a key in all bits
    /// from `top` up, what `word` says for the smallest key below; nothing to the others. The
    /// caller has the lock of the places.
    pub(super) fn link_below(spot: Spot<'_, K>, key: K, top: u32, word: impl Fn(K) -> Word) {
        let places = spot.places;
        let (first, last) = places.run(spot.at);
        for at in first..=last {
            let start = places.start(at);
            let is_below = start.above(top) == key.above(top);
            places.list[at].link(if is_below { word(start) } else { Word::NONE });
        }
    }

    /// Replaces a block by an array of slots.
    fn to_slots<'g>(
        &'g self,
        (block, hold): (BlockRef<'g, K>, Hold<'g>),
        spot: Spot<'g, K>,
        entries: &BlockEntries<K>,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let keys = entries.keys();
        let (base, shift) = (keys[0].above(SLOT_BITS), spot.places.shift);
        let mut fresh = Fresh::new(self);
        let part = Self::part_in_slots(&mut fresh, keys, block.word().marks(), 0, guard)?;
        let mut word = part.leaf.word();
        if shift > SLOT_BITS {
            // The array does not check keys, so a node above it does.
            let shape = (base, SLOT_BITS, 0);
            let node =
                fresh.add(|tree| tree.objects.node(shape, true, guard), |node| node.word())?;
            node.places().list[0].link(word);
            word = node.word();
        }
        let Some(held) = spot.hold(block.word()) else { return Ok(()) };
        let successor = part.leaf.word();
        Self::move_all(Leaf::Block(block), &entries.at, &[part], successor);
        Self::link_below(spot, base, shift.max(SLOT_BITS), |_| word);
        fresh.linked();
        drop(held);
        self.leave(block.word(), hold, guard);
        Ok(())
    }
}
