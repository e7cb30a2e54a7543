//! Values that are marks of the leaf that they are put into.
//!
//! The leaf is copied to one with the other marks. If that is not possible, because it has values
//! that are marks there or no room for another key, it is divided first, down to one key if need
//! be.

use super::Words;
use super::block::{BlockRef, MAX_ENTRIES, groups_for};
use super::edit::{Found, Fresh, Hold, Leaf, Spot};
use super::entries::{BlockEntries, Entries, SlotEntries};
use super::grow::{Part, move_value};
use super::key::WordKey;
use super::ops::{Attempt, Tried};
use super::slots::{SLOT_BITS, SLOTS, SlotsRef};
use super::value::{Content, Marks};
use super::word::Word;
use crate::domain::Guard;
use crate::error::{AllocError, reserved};
use crate::update::{Step as Change, Update};
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering;

/// The bits of a key that choose one of the blocks that an array of slots is divided into.
const SCATTER_BITS: u32 = 1;
const _: () = assert!(SLOTS >> SCATTER_BITS <= MAX_ENTRIES);

/// The state that a moved key had.
enum Exchanged {
    From(Option<u64>),
    /// Nothing has changed.
    No,
}

impl<K: WordKey, P: Placement> Words<K, P> {
    /// Applies a verb that puts a value which is a mark of the leaf, as far as one step goes.
    #[cold]
    #[inline(never)]
    pub(super) fn change_marks(&self, key: K, verb: Update, guard: &Guard) -> Attempt {
        let found = self.seek(key, guard);
        // SAFETY: I3: the word was read under the guard.
        let Some(leaf) = (unsafe { Leaf::of(found.word) }) else { return Ok(Tried::Again) };
        let Some(hold) = Hold::new(leaf.lock()) else { return Ok(Tried::Again) };
        let block = match leaf {
            Leaf::Slots(slots) => {
                self.scatter((slots, hold), &found, key, guard)?;
                return Ok(Tried::Again);
            }
            Leaf::Block(block) => block,
        };
        let entries = Self::closed_entries(block, key);
        let marks = block.word().marks();
        let other = Marks::new(!marks.is_other());
        let fits = |(of, word): (&K, &u64)| *of == key || !marks.allow(*word) || other.allow(*word);
        let has_room = entries.len < MAX_ENTRIES || entries.keys().binary_search(&key).is_ok();
        if has_room && entries.keys().iter().zip(&entries.words).all(fits) {
            return self.exchange((block, hold), &found, &entries, (key, verb), guard);
        }
        let keys = entries.keys();
        let ends = (key.min(keys[0]), key.max(keys[keys.len() - 1]));
        self.split((block, hold), &found, &entries, ends, guard)?;
        Ok(Tried::Again)
    }

    /// Replaces a block by one with the other marks, and applies a verb to one of its keys.
    fn exchange<'g>(
        &'g self,
        (block, hold): (BlockRef<'g, K>, Hold<'g>),
        found: &Found<'g, K>,
        entries: &BlockEntries<K>,
        (key, verb): (K, Update),
        guard: &'g Guard,
    ) -> Attempt {
        let marks = Marks::new(!block.word().marks().is_other());
        let mut fresh = Fresh::new(self);
        let groups = groups_for::<K>(entries.len + 1);
        let copy =
            fresh.add(|tree| tree.objects.block(groups, marks, guard), |block| block.word())?;
        let rank = entries.keys().partition_point(|other| *other < key);
        let is_there = entries.keys().get(rank) == Some(&key);
        let (before, behind) =
            (&entries.keys()[..rank], &entries.keys()[rank + usize::from(is_there)..]);
        let keys = before.iter().chain([&key]).chain(behind);
        copy.fill(keys.map(|key| (key, marks.absent())), |_, _| ());
        let Some(held) = found.spot.hold(block.word()) else { return Ok(Tried::Again) };
        block.successor().link(copy.word());
        let Exchanged::From(state) = Self::exchange_values(block, copy, entries, (key, verb))
        else {
            block.successor().link(Word::NONE);
            block.open();
            fresh.retire(guard);
            return Ok(Tried::Again);
        };
        Self::link_run(found.spot, copy.word()); // LP(inserted), if the block did not have the key
        fresh.linked();
        drop(held);
        self.leave(block.word(), hold, guard);
        if state.is_none() {
            self.objects.frame().len.add(1);
        }
        Ok(Tried::Found(state))
    }

    /// Moves the values of a block to a copy, that of `key` last, to which the verb is applied. If
    /// a value is a mark of the copy, or the verb puts nothing, all values come back.
    fn exchange_values(
        block: BlockRef<'_, K>,
        copy: BlockRef<'_, K>,
        entries: &BlockEntries<K>,
        (key, verb): (K, Update),
    ) -> Exchanged {
        let to = |key| {
            let Some(at) = copy.find(key) else { unreachable!("it was put there") };
            copy.value(at)
        };
        let from = |at: usize| Leaf::Block(block).value(entries.at[at]);
        let (keys, own) = (entries.keys(), entries.keys().iter().position(|other| *other == key));
        let others = || (0..entries.len).filter(|at| Some(*at) != own);
        let back = |count: usize| {
            for at in others().take(count) {
                let content = match to(keys[at]).content() {
                    Content::Value(value) => value,
                    _ => block.word().marks().absent(),
                };
                from(at).place.store(content, Ordering::SeqCst);
            }
            Exchanged::No
        };
        for (count, at) in others().enumerate() {
            if !move_value(from(at), to(keys[at])) {
                return back(count);
            }
        }
        let Some(own) = own else {
            return match verb.step(None) {
                // The marks may have changed since the caller found that the value is one.
                Change::Put(value) if to(key).marks.allow(value) => {
                    to(key).place.store(value, Ordering::SeqCst);
                    Exchanged::From(None)
                }
                _ => back(entries.len),
            };
        };
        loop {
            let word = from(own).word();
            let state = Some(word).filter(|word| from(own).marks.allow(*word));
            let Change::Put(value) = verb.step(state) else { return back(entries.len) };
            if !to(key).marks.allow(value) {
                return back(entries.len);
            }
            to(key).place.store(value, Ordering::SeqCst);
            let (moved, success, failure) =
                (from(own).marks.moved(), Ordering::SeqCst, Ordering::SeqCst);
            // LP(inserted, replaced)
            if from(own).place.compare_exchange(word, moved, success, failure).is_ok() {
                return Exchanged::From(state);
            }
        }
    }

    /// Replaces an array of slots by blocks.
    fn scatter<'g>(
        &'g self,
        (slots, hold): (SlotsRef<'g, K>, Hold<'g>),
        found: &Found<'g, K>,
        key: K,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let mut entries: SlotEntries<K> = Entries::new();
        entries.read_slots(slots);
        let Some(parts) =
            self.try_scatter(slots, &entries, found, guard).inspect_err(|_| slots.open())?
        else {
            slots.open();
            return Ok(());
        };
        self.leave(slots.word(), hold, guard);
        self.tidy_parts(parts.iter(), entries.keys(), guard);
        if parts.is_empty() {
            self.collapse(key, guard);
        }
        Ok(())
    }

    /// As `scatter`, but for the state of the array. Returns the blocks if it is done.
    fn try_scatter<'g>(
        &'g self,
        slots: SlotsRef<'g, K>,
        entries: &SlotEntries<K>,
        found: &Found<'g, K>,
        guard: &'g Guard,
    ) -> Result<Option<Vec<Part<'g, K>>>, AllocError> {
        let marks = slots.word().marks();
        let mut fresh = Fresh::new(self);
        // The array may serve a part of its range only: that of the places that lead to it.
        let Spot { places: above, at } = found.spot;
        let (first, last) = above.run_of(at, slots.word());
        let top = (above.shift + (last - first + 1).ilog2()).min(SLOT_BITS);
        let (base, bits) = (slots.key(0).max(above.start(first)), top.min(SCATTER_BITS));
        let (shape, checks) = ((base, top - bits, bits), top < above.shift);
        let node = fresh.add(|tree| tree.objects.node(shape, checks, guard), |node| node.word())?;
        let (places, keys) = (node.places(), entries.keys());
        let mut parts = Vec::new();
        for (at, place) in places.list.iter().enumerate() {
            let from = keys.partition_point(|key| *key < places.start(at));
            let to = keys.partition_point(|key| *key <= places.end(at));
            if from < to {
                let content = (&keys[from..to], &entries.words[from..to]);
                let part = Self::part(&mut fresh, content, marks, from, guard)?;
                place.link(part.leaf.word());
                reserved(&mut parts, 1)?.push(part);
            }
        }
        let held = found.spot.hold(slots.word());
        let Some(_held) = held.filter(|_| above.run_of(at, slots.word()) == (first, last)) else {
            return Ok(None);
        };
        Self::move_all(Leaf::Slots(slots), &entries.at, &parts, node.word());
        Self::link_run(found.spot, node.word());
        fresh.linked();
        Ok(Some(parts))
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use crate::words::block;
    use crate::words::key::WordKey;
    use crate::words::value::Marks;
    use crate::{Check, Objects, Options, WordTree};

    /// Keys that fill the groups of the largest block evenly.
    fn even_keys(seed: u64) -> Vec<u64> {
        let groups = block::max_groups::<u64>();
        let mut room = vec![u64::PER_GROUP; groups];
        let keys = (1_000 * seed..).map(|n| n << 8).filter(|key| {
            let home = (u64::from(key.hash()) * groups as u64) >> 32;
            let is_room = room[home as usize] > 0;
            room[home as usize] -= usize::from(is_room);
            is_room
        });
        keys.take(groups * u64::PER_GROUP).collect()
    }

    /// A block without a place for another key, to which a value comes that is a mark.
    #[test]
    fn a_mark_comes_to_a_full_block() {
        let mut full = 0;
        for seed in 0..40 {
            let mut tree: WordTree<u64> = WordTree::with_options(&Options::default()).unwrap();
            let keys = even_keys(seed);
            for (key, value) in keys.iter().zip(0..) {
                assert_eq!(tree.pin().insert(*key, value), Ok(None));
            }
            let mut leaves = 0;
            tree.census(&mut |_| leaves += 1).unwrap();
            full += usize::from(leaves == 1);
            let mark = Marks::BOTH[0].absent();
            assert_eq!(tree.pin().insert(keys[0] + 1, mark), Ok(None));
            assert_eq!(tree.pin().get(keys[0] + 1), Some(mark));
            assert!(keys.iter().zip(0..).all(|(key, value)| tree.pin().get(*key) == Some(value)));
            assert_eq!(tree.check(), Ok(keys.len() + 1));
        }
        assert!(full > 0, "no block was full");
    }
}
