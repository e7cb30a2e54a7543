//! Lookups, and the writing verb.

use super::Words;
use super::block::{BlockRef, Claim, Probe};
use super::edit::Leaf;
use super::key::WordKey;
use super::node::Places;
use super::slots::SlotsRef;
use super::value::Changed;
use super::word::{Kind, Leads, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::afterwards;
use crate::update::{Step as Change, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::backoff::Backoff;

/// The first bits of a key, which choose one of the root's places.
pub(super) const ROOT_BITS: u32 = 2;

/// The outcome of an attempt to update a key.
pub(super) enum Tried {
    /// The state found.
    Found(Option<u64>),
    /// Nothing has changed, or there is more room.
    Again,
}

pub(super) type Attempt = Result<Tried, AllocError>;

impl<K: WordKey, P: Placement> Words<K, P> {
    /// See [`Lookup::get`](crate::Lookup::get). The guard is of the tree's domain.
    #[inline(always)]
    pub(super) fn look_up(&self, key: K, _guard: &Guard) -> Option<u64> {
        self.value_in(self.leaf(key), key)
    }

    /// The value of a key that leads to a leaf, or to nothing.
    #[inline(always)]
    pub(super) fn value_in(&self, leaf: Word, key: K) -> Option<u64> {
        let (marks, word) = (leaf.marks(), Self::word_in(leaf, key));
        if word == marks.moved() {
            return self.look_up_moved(leaf, key);
        }
        marks.allow(word).then_some(word)
    }

    /// The value word of a key in the leaf that it leads to.
    #[inline(always)]
    fn word_in(leaf: Word, key: K) -> u64 {
        match leaf.kind() {
            Kind::Block => {
                // SAFETY: I3: the word was read under the guard of the lookup.
                let block = unsafe { BlockRef::<K>::new(leaf) };
                P::saw(|| block.looked_at(key));
                block.look_up(key)
            }
            Kind::Slots => {
                // SAFETY: I3: the word was read under the guard of the lookup.
                let slots = unsafe { SlotsRef::<K>::new(leaf) };
                P::saw(|| [slots.looked_at(key)]);
                slots.value(SlotsRef::slot_of(key)).word() // LP(found, absent)
            }
            Kind::None | Kind::Node => leaf.marks().absent(), // LP(absent): the load of this word
        }
    }

    /// Looks up a key whose value has moved from its leaf.
    #[cold]
    #[inline(never)]
    fn look_up_moved(&self, mut leaf: Word, key: K) -> Option<u64> {
        loop {
            // If the move was taken back, the leaf has its values again.
            leaf = Self::successor_of(leaf, key).unwrap_or_else(|| self.leaf(key));
            let (marks, word) = (leaf.marks(), Self::word_in(leaf, key));
            if word != marks.moved() {
                return marks.allow(word).then_some(word);
            }
        }
    }

    /// The leaf of a key after the one that its value has moved from. Nothing if the move was taken
    /// back meanwhile: a value that is moved between two looks at the same successor has moved
    /// there.
    fn successor_of(leaf: Word, key: K) -> Option<Word> {
        // SAFETY: I3: the word was read under the guard of the lookup.
        let place = unsafe { Leaf::<K>::of(leaf) }?.successor();
        let successor = place.word();
        let has_moved =
            || Self::word_in(leaf, key) == leaf.marks().moved() && place.word() == successor;
        let is_sure = !successor.is_none() && (planted(Canary::SuccessorTrusted) || has_moved());
        is_sure.then(|| Self::leaf_below(successor, key))
    }

    /// The value of a key that has moved from a leaf that a walk has come to.
    pub(super) fn value_after(&self, leaf: Word, key: K) -> Option<u64> {
        self.look_up_moved(leaf, key)
    }

    /// The leaf that a key leads to. It is none if the tree has no leaf there.
    #[inline(always)]
    pub(super) fn leaf(&self, key: K) -> Word {
        Self::leaf_below(self.first(key), key)
    }

    /// The word of the root that a key leads to.
    #[inline(always)]
    pub(super) fn first(&self, key: K) -> Word {
        self.roots[key.bits(K::BITS - ROOT_BITS, ROOT_BITS)].word()
    }

    #[inline(always)]
    fn leaf_below(mut word: Word, key: K) -> Word {
        while word.kind() == Kind::Node {
            // SAFETY: I3: the word was read under the guard of the caller's operation.
            let node = unsafe { super::node::NodeRef::<K>::new(word) };
            P::saw(|| node.passed(key));
            match node.find(key) {
                Some(child) => word = child,
                None => return Word::NONE,
            }
        }
        word
    }

    /// The places of the root.
    pub(super) fn root(&self) -> Places<'_, K> {
        Places {
            list: &self.roots,
            lock: &self.root_lock,
            base: K::ENDS[0],
            shift: K::BITS - ROOT_BITS,
        }
    }

    /// See [`OrderedIndex::update`](crate::OrderedIndex::update). The guard is of the tree's
    /// domain.
    #[inline]
    pub(super) fn change(
        &self,
        key: K,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let leaf = self.leaf(key);
        let changed = match leaf.kind() {
            Kind::Slots => {
                // SAFETY: I3: the word was read under the guard.
                let slots = unsafe { SlotsRef::<K>::new(leaf) };
                slots.value(SlotsRef::slot_of(key)).change(verb, false)
            }
            Kind::Block => {
                // SAFETY: I3: the word was read under the guard.
                let block = unsafe { BlockRef::<K>::new(leaf) };
                let Some(changed) = Self::change_in(block, key, verb) else {
                    block.prefetch_whole();
                    self.make_room(key, guard)?;
                    return self.change_slowly(key, verb, guard);
                };
                changed
            }
            Kind::None | Kind::Node => return self.change_slowly(key, verb, guard),
        };
        match changed {
            Changed::From(state) => Ok(state),
            Changed::Inserted => {
                self.objects.frame().len.add(1);
                Ok(None)
            }
            Changed::Removed(value) => {
                self.removed(leaf, key, guard);
                Ok(Some(value))
            }
            Changed::Closed | Changed::Moved | Changed::Marked => {
                self.change_slowly(key, verb, guard)
            }
        }
    }

    /// Applies a verb in a block, without its lock. Nothing if that needs more room.
    #[inline(always)]
    fn change_in(block: BlockRef<'_, K>, key: K, verb: Update) -> Option<Changed> {
        let probe = block.probe(key);
        if let Probe::At(at) = probe {
            return Some(block.value(at).change(verb, false));
        }
        // LP(kept): the last load
        let Change::Put(value) = verb.step(None) else { return Some(Changed::From(None)) };
        if !block.word().marks().allow(value) {
            return Some(Changed::Marked);
        }
        match block.claim(key, probe, false) {
            Claim::At(at) => Some(block.value(at).change(verb, false)),
            Claim::Closed => Some(Changed::Closed),
            Claim::Full => None,
        }
    }

    /// As `change`, if that needs a lock or more room.
    #[cold]
    #[inline(never)]
    fn change_slowly(
        &self,
        key: K,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut backoff = Backoff::new();
        loop {
            let leaf = self.leaf(key);
            // SAFETY: I3: the word was read under the guard.
            let attempt = match unsafe { leaf.leads::<K>() } {
                Leads::Block(block) => self.change_block(block, key, verb, guard),
                Leads::Slots(slots) => self.change_slots(slots, key, verb, guard),
                Leads::None | Leads::Node(_) => match verb.step(None) {
                    Change::Put(value) => self.plant(key, value, guard),
                    _ => return Ok(None), // LP(kept): the load of the leaf's word
                },
            };
            if let Tried::Found(state) = attempt? {
                return Ok(state);
            }
            backoff.wait();
        }
    }

    /// The state found, after the count of entries has been changed as the place was.
    fn counted(&self, leaf: Word, key: K, changed: Changed, guard: &Guard) -> Tried {
        match changed {
            Changed::From(state) => Tried::Found(state),
            Changed::Inserted => {
                self.objects.frame().len.add(1);
                Tried::Found(None)
            }
            Changed::Removed(value) => {
                self.removed(leaf, key, guard);
                Tried::Found(Some(value))
            }
            Changed::Closed | Changed::Moved | Changed::Marked => Tried::Again,
        }
    }

    fn change_block<'g>(
        &'g self,
        block: BlockRef<'g, K>,
        key: K,
        verb: Update,
        guard: &'g Guard,
    ) -> Attempt {
        match Self::change_in(block, key, verb) {
            None => return self.make_room(key, guard).map(|()| Tried::Again),
            Some(Changed::Closed) => {}
            Some(Changed::Marked) => return self.change_marks(key, verb, guard),
            Some(Changed::Moved) => {
                // Its successor is linked when it is unlocked.
                let _ = block.lock().read();
                return Ok(Tried::Again);
            }
            Some(changed) => return Ok(self.counted(block.word(), key, changed, guard)),
        }
        let changed = {
            let Some(_hold) = super::edit::Hold::new(block.lock()) else { return Ok(Tried::Again) };
            match block.claim(key, block.probe(key), true) {
                Claim::At(at) => Some(block.value(at).change(verb, true)),
                Claim::Closed | Claim::Full => None,
            }
        };
        match changed {
            Some(Changed::Marked) => self.change_marks(key, verb, guard),
            Some(changed) => Ok(self.counted(block.word(), key, changed, guard)),
            None => self.make_room(key, guard).map(|()| Tried::Again),
        }
    }

    fn change_slots<'g>(
        &'g self,
        slots: SlotsRef<'g, K>,
        key: K,
        verb: Update,
        guard: &'g Guard,
    ) -> Attempt {
        let place = slots.value(SlotsRef::slot_of(key));
        let mut changed = place.change(verb, false);
        if changed == Changed::Closed {
            let Some(_hold) = super::edit::Hold::new(slots.lock()) else { return Ok(Tried::Again) };
            changed = place.change(verb, true);
        }
        match changed {
            Changed::Marked => self.change_marks(key, verb, guard),
            Changed::Moved => {
                let _ = slots.lock().read();
                Ok(Tried::Again)
            }
            changed => Ok(self.counted(slots.word(), key, changed, guard)),
        }
    }

    /// Counts the removal of a key, and tidies its leaf if few entries may be left.
    #[inline]
    pub(super) fn removed(&self, leaf: Word, key: K, guard: &Guard) {
        self.objects.frame().len.add(-1);
        // SAFETY: I3: the word was read under the guard.
        let may_be_small = match unsafe { leaf.leads::<K>() } {
            Leads::Block(block) => block.find(key).is_some_and(|at| block.is_group_empty(at)),
            Leads::Slots(slots) => slots.is_line_empty(SlotsRef::slot_of(key)),
            Leads::None | Leads::Node(_) => false,
        };
        if may_be_small {
            afterwards(|| self.tidy(key, guard));
        }
    }
}
