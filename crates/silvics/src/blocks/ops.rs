//! Lookups, and the writing verb.

use super::Blocks;
use super::block::{BlockRef, New, all, tag};
use super::edit::Step;
use super::key::{Bit, BlockKey};
use super::lock::Locked;
use super::merge::FEW;
use super::node::NodeRef;
use super::order::{Gap, Place, Rank};
use super::search::{Portable, Search};
use super::word::{Leads, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::afterwards;
use crate::update::{Step as Change, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::Ordering;
use std::ptr::NonNull;

/// The outcome of an attempt to update a key: the state found, or nothing if it must be tried
/// again.
pub(super) type Attempt = Result<Option<Option<u64>>, AllocError>;
const RESTART: Attempt = Ok(None);

/// The memory of a long key that has no entry yet. Dropping it frees the key.
pub(super) struct LongKey<'t, K: BlockKey + ?Sized, P: Placement> {
    tree: &'t Blocks<K, P>,
    key: Option<NonNull<u8>>,
}

impl<'t, K: BlockKey + ?Sized, P: Placement> LongKey<'t, K, P> {
    pub(super) fn new(
        tree: &'t Blocks<K, P>,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<Self, AllocError> {
        let key = tree.objects.long_key(key, guard)?;
        Ok(Self { tree, key })
    }

    pub(super) fn address(&self) -> Option<NonNull<u8>> {
        self.key
    }

    /// Gives the key to its entry.
    pub(super) fn linked(mut self) {
        self.key = None;
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Drop for LongKey<'_, K, P> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // SAFETY: the key was never linked, so nobody else has it.
            unsafe { self.tree.objects.free(Word::long_key(key)) };
        }
    }
}

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// The number and value of a key's entry, if the key is present.
    #[inline(always)]
    fn get(self, key: K::Ref<'_>, tag: u8, search: impl Search) -> Option<(usize, u64)> {
        let at = self.find(key, tag, self.live(), search)?; // LP(absent): the load of `live`
        let value = self.value(at).load(Ordering::SeqCst); // LP(found)
        // The entry may have been removed and put back meanwhile, and the value may be one that is
        // about to be put back.
        let is_live = self.live() >> at & 1 == 1 || planted(Canary::PutBackTrusted);
        is_live.then_some((at, value)) // LP(absent): this load
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// See [`Lookup::get`](crate::Lookup::get). The guard is of the tree's domain.
    #[inline(always)]
    pub(super) fn look_up(&self, key: K::Ref<'_>, _guard: &Guard) -> Option<u64> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(search) = self.avx2 {
            // SAFETY: the value says that the processor has the instructions.
            return unsafe { self.look_up_avx2(key, search) };
        }
        self.look_up_with(key, Portable)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn look_up_avx2(&self, key: K::Ref<'_>, search: super::search::Avx2) -> Option<u64> {
        self.look_up_with(key, search)
    }

    #[inline(always)]
    fn look_up_with(&self, key: K::Ref<'_>, search: impl Search) -> Option<u64> {
        let tag = tag(K::hash(K::shorten(key)));
        let mut buffer = [0; 8];
        let probe = K::probe(K::shorten(key), &mut buffer);
        let (block, _) = Self::descend(self.root.word(), &probe, search)?; // LP(absent): the root
        let found = block.get(K::shorten(key), tag, search);
        P::saw(|| block.looked_at(found.map(|(at, _)| at)));
        found.map(|(_, value)| value)
    }

    /// Goes down to a block. `choose` takes a child of each node. Nothing if `word` is none.
    #[inline(always)]
    pub(super) fn walk<'g>(
        mut word: Word,
        mut choose: impl FnMut(NodeRef<'g>) -> usize,
    ) -> Option<BlockRef<'g, K>> {
        if word.is_none() {
            return None;
        }
        loop {
            // SAFETY: I3: the callers have read the word under the guard of their operation, and so
            // have we in a node that was. It is not none, which only the root can be (I1).
            match unsafe { word.leads::<K>() } {
                Leads::Block(block) => return Some(block),
                Leads::Node(node) => word = node.child(choose(node)).word(),
            }
        }
    }

    /// The block that a key leads to, and the place that leads to the block, if it is in a node.
    #[inline(always)]
    fn descend<'g>(
        root: Word,
        probe: &K::Probe<'_>,
        search: impl Search,
    ) -> Option<(BlockRef<'g, K>, Option<Step<'g>>)> {
        // As `walk`, but a closure would not have the processor's features.
        let (mut word, mut parent) = (root, None);
        if word.is_none() {
            return None;
        }
        loop {
            // SAFETY: as in `walk`.
            match unsafe { word.leads::<K>() } {
                Leads::Block(block) => {
                    block.prefetch();
                    return Some((block, parent));
                }
                Leads::Node(node) => {
                    let at = node.find::<K>(probe, search);
                    P::saw(|| node.passed(at));
                    parent = Some(Step { node, at });
                    word = node.child(at).word();
                }
            }
        }
    }

    /// The block that a key leads to, and the place that leads to the block, if it is in a node.
    /// Nothing if the tree is empty. The guard is of the tree's domain.
    #[inline]
    pub(super) fn block_of<'g>(
        &'g self,
        key: K::Ref<'_>,
        _guard: &'g Guard,
    ) -> Option<(BlockRef<'g, K>, Option<Step<'g>>)> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(search) = self.avx2 {
            // SAFETY: the value says that the processor has the instructions.
            return unsafe { Self::block_of_avx2(self.root.word(), key, search) };
        }
        let mut buffer = [0; 8];
        Self::descend(self.root.word(), &K::probe(K::shorten(key), &mut buffer), Portable)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn block_of_avx2<'g>(
        root: Word,
        key: K::Ref<'_>,
        search: super::search::Avx2,
    ) -> Option<(BlockRef<'g, K>, Option<Step<'g>>)> {
        let mut buffer = [0; 8];
        Self::descend(root, &K::probe(K::shorten(key), &mut buffer), search)
    }

    /// The number and value of a key's entry in a block, if the key is present.
    #[inline]
    pub(super) fn get_in(
        &self,
        block: BlockRef<'_, K>,
        key: K::Ref<'_>,
        tag: u8,
    ) -> Option<(usize, u64)> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if K::SHARES
            && let Some(search) = self.avx2
        {
            // SAFETY: the value says that the processor has the instructions.
            return unsafe { Self::get_in_avx2(block, key, tag, search) };
        }
        block.get(key, tag, Portable)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn get_in_avx2(
        block: BlockRef<'_, K>,
        key: K::Ref<'_>,
        tag: u8,
        search: super::search::Avx2,
    ) -> Option<(usize, u64)> {
        block.get(key, tag, search)
    }

    /// The child of a node that a key leads to.
    #[inline]
    pub(super) fn child_of(&self, node: NodeRef<'_>, probe: &K::Probe<'_>) -> usize {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(search) = self.avx2 {
            // SAFETY: the value says that the processor has the instructions.
            return unsafe { Self::child_of_avx2(node, probe, search) };
        }
        node.find::<K>(probe, Portable)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn child_of_avx2(
        node: NodeRef<'_>,
        probe: &K::Probe<'_>,
        search: super::search::Avx2,
    ) -> usize {
        node.find::<K>(probe, search)
    }

    /// See [`OrderedIndex::update`](crate::OrderedIndex::update). The guard is of the tree's
    /// domain.
    #[inline]
    pub(super) fn change(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let tag = tag(K::hash(K::shorten(key)));
        loop {
            let Some((block, parent)) = self.block_of(K::shorten(key), guard) else {
                let Change::Put(value) = verb.step(None) else { return Ok(None) }; // LP(kept)
                if let Some(state) = self.plant(K::shorten(key), value, tag, guard)? {
                    return Ok(state);
                }
                continue;
            };
            let found = self.get_in(block, K::shorten(key), tag);
            let state = found.map(|(_, value)| value);
            let attempt = match (verb.step(state), found) {
                (Change::Keep, _) | (Change::Take, None) => return Ok(state), // LP(kept): `get`
                (Change::Put(_), Some((at, _))) => Self::replace(block, at, verb),
                (Change::Take, Some((at, _))) => self.take(block, at, K::shorten(key), verb, guard),
                (Change::Put(value), None) => {
                    self.put((block, parent), (K::shorten(key), value, tag), guard)
                }
            };
            if let Some(state) = attempt? {
                return Ok(state);
            }
        }
    }

    /// Gives a present key another value, if the verb wants it.
    #[inline]
    fn replace(block: BlockRef<'_, K>, at: usize, verb: Update) -> Attempt {
        let Ok(update) = block.begin_update() else { return RESTART };
        let _update = (!planted(Canary::UpdateNotCounted)).then_some(update);
        if block.live() >> at & 1 == 0 {
            return RESTART;
        }
        let value = block.value(at);
        if let Update::Insert(new) = verb {
            return Ok(Some(Some(value.swap(new, Ordering::SeqCst)))); // LP(replaced)
        }
        let mut old = value.load(Ordering::SeqCst);
        while let Change::Put(new) = verb.step(Some(old)) {
            match value.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break, // LP(replaced)
                Err(other) => old = other,
            }
        }
        Ok(Some(Some(old))) // LP(kept): the last load
    }

    /// Makes a present key absent, if the verb wants it.
    fn take<'g>(
        &'g self,
        block: BlockRef<'g, K>,
        at: usize,
        key: K::Ref<'_>,
        verb: Update,
        guard: &'g Guard,
    ) -> Attempt {
        let Ok(mut locked) = block.locked() else { return RESTART };
        if block.live() >> at & 1 == 0 {
            return RESTART;
        }
        if !planted(Canary::RemovalLetsUpdatesIn) {
            locked.bar();
        }
        let value = block.value(at).load(Ordering::SeqCst);
        if verb.step(Some(value)) == Change::Take {
            self.remove_entry(&locked, at);
            self.tidy(locked, key, guard);
        }
        Ok(Some(Some(value))) // LP(kept): the load
    }

    /// Makes an entry absent. Updates are kept out of the block.
    pub(super) fn remove_entry(&self, locked: &Locked<'_, K>, at: usize) {
        let block = locked.block;
        block.set_live(block.live() & !(1 << at)); // LP(removed)
        self.objects.frame().len.add(-1);
    }

    /// Unlinks or merges a block that has lost an entry, if few are left, or frees its long keys.
    pub(super) fn tidy<'g>(&'g self, locked: Locked<'g, K>, key: K::Ref<'_>, guard: &'g Guard) {
        let left = locked.block.live().count_ones() as usize;
        if left == 0 {
            afterwards(|| self.unlink(locked, key, guard));
        } else if locked.block.has_dead_long_keys() {
            afterwards(|| self.compact(locked, key, guard));
        } else if left <= FEW && left.is_power_of_two() {
            afterwards(|| self.merge(locked, key, guard));
        }
    }

    /// The length of a key to insert. Fails if the key is too long.
    pub(super) fn check_len(key: K::Ref<'_>) -> Result<usize, AllocError> {
        let bytes = K::len(key);
        if K::FIXED == 0 && bytes > K::LONGEST {
            return Err(AllocError::KeyLength { bytes, limit: K::LONGEST });
        }
        Ok(bytes)
    }

    /// Makes an absent key present.
    fn put<'g>(
        &'g self,
        (block, parent): (BlockRef<'g, K>, Option<Step<'g>>),
        (key, value, tag): (K::Ref<'_>, u64, u8),
        guard: &'g Guard,
    ) -> Attempt {
        let len = Self::check_len(K::shorten(key))?;
        block.prefetch_insert();
        let Ok(locked) = block.locked() else { return RESTART };
        let (live, trusted) = (block.live(), planted(Canary::AbsenceTrusted));
        match block.find(K::shorten(key), tag, all(block.entries()), Portable) {
            Some(at) if live >> at & 1 == 1 && !trusted => return RESTART,
            Some(at) if live >> at & 1 == 0 => {
                if planted(Canary::PutBackEarly) {
                    block.set_live(live | 1 << at);
                }
                block.value(at).store(value, Ordering::SeqCst);
                block.set_live(live | 1 << at); // LP(inserted)
                self.objects.frame().len.add(1);
                return Ok(Some(None));
            }
            _ => {}
        }
        let has_room = block.has_room(len);
        if !has_room {
            block.prefetch_whole();
        }
        let order = block.order();
        let (rank, bit) = match order.place(block, K::shorten(key)) {
            Place::Between(rank, bit) => (rank, bit),
            Place::At(position) if trusted => {
                (Rank { position, gap: Gap::NONE, follows: true }, Bit::MAX)
            }
            Place::At(_) => return RESTART,
        };
        if bit < block.depth() && !planted(Canary::DepthIgnored) {
            drop(locked);
            return self.put_beside(key, value, tag, guard);
        }
        if !has_room || !block.is_prefix_of(len, bit) {
            return self.grow((locked, parent), (order, rank), (key, value, tag), guard);
        }
        let long = LongKey::new(self, K::shorten(key), guard)?;
        let new = New { key: K::shorten(key), value, outside: long.address() };
        let at = block.append(&new, tag, rank);
        block.set_live(live | 1 << at); // LP(inserted)
        long.linked();
        self.objects.frame().len.add(1);
        Ok(Some(None))
    }
}
