//! Making room: the first block, larger blocks, two blocks for one, and blocks beside others.

use super::Blocks;
use super::block::{self, BlockRef, New};
use super::edit::{Edit, Edited, Hold, Step};
use super::fill::Run;
use super::key::{Bit, BlockKey};
use super::lock::Locked;
use super::ops::{Attempt, LongKey};
use super::order::{Gap, NEW, Order, Rank};
use super::plan::Plan;
use super::shape::{Bytes, Shape, fits, inline_bytes, prefix_of};
use super::trail::Trail;
use super::word::Word;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::{AllocError, Placement};

/// The entries of a block in the order of their keys, with a new one among them.
pub(super) struct Sorted<'k, 'g, K: BlockKey + ?Sized> {
    block: BlockRef<'g, K>,
    order: Order,
    new: (New<'k, K>, u8),
}

impl<'k, 'g: 'k, K: BlockKey + ?Sized> Sorted<'k, 'g, K> {
    /// The present entries of a block, of the order given, and a new one of this rank.
    fn new(block: BlockRef<'g, K>, mut order: Order, rank: Rank, new: New<'k, K>, tag: u8) -> Self {
        order.insert(rank, NEW);
        order.keep(block.live());
        Self { block, order, new: (new, tag) }
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn key(&self, at: usize) -> K::Ref<'k> {
        match self.order.numbers()[at] {
            NEW => self.new.0.key,
            number => self.block.key(usize::from(number)),
        }
    }

    /// The bytes that the keys of some entries take in a block of a depth.
    fn bytes(&self, from: usize, to: usize, depth: Bit) -> Bytes {
        let prefix = prefix_of::<K>((self.key(from), self.key(to - 1)), depth);
        let new = || inline_bytes::<K>(K::len(K::shorten(self.new.0.key)), prefix);
        let bytes = |run: Run| if run.is_new() { new() } else { self.block.run_bytes(run, prefix) };
        Bytes { prefix, keys: self.order.runs(from, to).map(bytes).sum() }
    }

    /// A block of some of the entries, with room for more.
    fn copy<P: Placement>(
        &self,
        (from, to): (usize, usize),
        bytes: Bytes,
        depth: Bit,
        edit: &mut Edit<'_, K, P>,
        tree: &Blocks<K, P>,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        edit.reserve(1)?;
        let shape = Shape::with_room::<K>(to - from, bytes);
        let copy = tree.objects.block(shape, depth, guard)?;
        edit.made(Word::block(copy.as_ptr()));
        copy.set_prefix(self.key(from));
        for run in self.order.runs(from, to) {
            let gap = |at| self.order.gap(at);
            if run.is_new() {
                let (New { key, value, outside }, tag) = &self.new;
                let new = New { key: K::shorten(*key), value: *value, outside: *outside };
                copy.append(&new, *tag, Rank::last(gap(run.position)));
            } else {
                copy.append_run(self.block, run, gap);
            }
        }
        copy.set_live(block::all(to - from));
        Ok(Word::block(copy.as_ptr()))
    }

    /// The first entry whose key has a bit, of those that part there.
    fn parting(&self, bit: Bit) -> usize {
        (0..self.len()).find(|at| K::has(self.key(*at), bit)).unwrap_or(self.len())
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// A block of one entry, which is not linked yet.
    fn block_of_one(
        &self,
        new: &New<'_, K>,
        tag: u8,
        depth: Bit,
        edit: &mut Edit<'_, K, P>,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        edit.reserve(1)?;
        let bytes = Bytes::of_one::<K>(K::shorten(new.key), depth);
        let block = self.objects.block(Shape::with_room::<K>(1, bytes), depth, guard)?;
        edit.made(Word::block(block.as_ptr()));
        block.set_prefix(K::shorten(new.key));
        block.append(new, tag, Rank::last(Gap::NONE));
        block.set_live(1);
        Ok(Word::block(block.as_ptr()))
    }

    /// Puts the first key into a tree without a root.
    #[cold]
    pub(super) fn plant(&self, key: K::Ref<'_>, value: u64, tag: u8, guard: &Guard) -> Attempt {
        Self::check_len(K::shorten(key))?;
        let Some(held) = Hold::new(&self.root_lock) else { return Ok(None) };
        if !self.root.word().is_none() {
            return Ok(None);
        }
        let long = LongKey::new(self, K::shorten(key), guard)?;
        let mut edit = Edit::new(self, guard);
        let new = New { key, value, outside: long.address() };
        let block = self.block_of_one(&new, tag, 0, &mut edit, guard)?;
        edit.link(&self.root, block, held, &mut []); // LP(inserted)
        long.linked();
        self.objects.frame().len.add(1);
        Ok(Some(None))
    }

    /// Puts a new key into a block that has no room for it: into a larger block, or into one of two
    /// that replace it.
    pub(super) fn grow<'g>(
        &'g self,
        (mut locked, parent): (Locked<'g, K>, Option<Step<'g>>),
        (order, rank): (Order, Rank),
        (key, value, tag): (K::Ref<'_>, u64, u8),
        guard: &'g Guard,
    ) -> Attempt {
        let block = locked.block;
        let long = LongKey::new(self, K::shorten(key), guard)?;
        let new = New { key: K::shorten(key), value, outside: long.address() };
        if !planted(Canary::CopiedBeforeBarred) {
            locked.bar();
        }
        let sorted = Sorted::new(block, order, rank, new, tag);
        let mut edit = Edit::new(self, guard);
        let all = (0, sorted.len());
        let bytes = sorted.bytes(0, sorted.len(), block.depth());
        let edited = if fits::<K>(sorted.len(), bytes) {
            let copy = sorted.copy(all, bytes, block.depth(), &mut edit, self, guard)?;
            locked.bar();
            edit.replace_block(parent, locked, copy) // LP(inserted)
        } else {
            self.split(&sorted, locked, edit, guard)?
        };
        Ok((edited == Edited::Done).then(|| {
            long.linked();
            self.objects.frame().len.add(1);
            None
        }))
    }

    /// Replaces a block by two.
    fn split<'g>(
        &'g self,
        sorted: &Sorted<'g, 'g, K>,
        mut locked: Locked<'g, K>,
        mut edit: Edit<'g, K, P>,
        guard: &'g Guard,
    ) -> Result<Edited, AllocError> {
        let Some(bit) = K::difference(sorted.key(0), sorted.key(sorted.len() - 1)) else {
            unreachable!("keys of a block differ")
        };
        let mut path = Vec::new();
        // The block is locked, so it stays where its keys lead to.
        if self.path(locked.block.key(0), &mut path, guard)? != Some(locked.block) {
            return Ok(Edited::Restart);
        }
        let middle = sorted.parting(bit);
        let mut copy = |from, to| {
            let bytes = sorted.bytes(from, to, bit + 1);
            sorted.copy((from, to), bytes, bit + 1, &mut edit, self, guard)
        };
        let left = copy(0, middle)?;
        let middle = middle + usize::from(planted(Canary::SplitDropsFence));
        let right = copy(middle, sorted.len())?;
        locked.bar();
        let Some((step, _)) = path.split_last() else {
            let mut plan = Plan::one(left);
            plan.insert(0, bit, true, right);
            let root = edit.encode(&plan)?;
            return Ok(edit.replace_block(None, locked, root)); // LP(inserted)
        };
        let Some(hold) = Hold::new(step.node.lock()) else { return Ok(Edited::Restart) };
        if step.node.child(step.at).word() != Word::block(locked.block.as_ptr()) {
            return Ok(Edited::Restart);
        }
        let mut plan = Plan::of(step.node);
        plan.set_child(step.at, left);
        plan.insert(step.at, bit, true, right);
        edit.replace_node(&path, hold, plan, &mut [Some(locked)]) // LP(inserted)
    }

    /// Puts a new key into a block of its own, beside the subtree that it differs from in a bit
    /// before those that the subtree is divided by.
    pub(super) fn put_beside(
        &self,
        key: K::Ref<'_>,
        value: u64,
        tag: u8,
        guard: &Guard,
    ) -> Attempt {
        let mut path = Vec::new();
        let Some(block) = self.path(K::shorten(key), &mut path, guard)? else { return Ok(None) };
        let Some(bit) = K::difference(K::shorten(key), block.key(0)) else { return Ok(None) };
        if bit >= block.depth() {
            return Ok(None);
        }
        let above = path.iter().take_while(|step| step.node.first_bit() < bit).count();
        path.truncate(above.max(1));
        let has = K::has(K::shorten(key), bit);
        let subtree = |step: &Step<'_>| {
            let (first, last) = step.node.subtree(step.at, bit);
            step.node.child(if has { last } else { first }).word()
        };
        let neighbour = |path: &[Step<'_>], trail: &mut Trail| {
            let word = path.last().map_or_else(|| self.root.word(), subtree);
            let edge = if has { Self::edge::<true> } else { Self::edge::<false> };
            edge(word, trail, guard)
        };
        // The neighbour is locked, so that the first and the last block change under their locks.
        let (mut before, mut after) = (Trail::new(), Trail::new());
        let Some(edge) = neighbour(&path, &mut before) else { return Ok(None) };
        let Ok(lock) = edge.locked() else { return Ok(None) };
        // The keys of the subtree agree up to this bit, so the key differs there from each of them.
        // The neighbour may be one of another subtree, which has taken the place of the root.
        let parts_there = K::difference(K::shorten(key), edge.key(0)) == Some(bit);
        if !(parts_there || planted(Canary::BesideAnything)) || bit >= edge.depth() {
            return Ok(None);
        }
        let long = LongKey::new(self, K::shorten(key), guard)?;
        let mut edit = Edit::new(self, guard);
        edit.beside((!planted(Canary::NeighbourUnlocked)).then_some(lock));
        let new = New { key, value, outside: long.address() };
        let beside = self.block_of_one(&new, tag, bit + 1, &mut edit, guard)?;
        let edited = if let Some(step) = path.last().copied() {
            let Some(hold) = Hold::new(step.node.lock()) else { return Ok(None) };
            neighbour(&path, &mut after);
            if before != after {
                return Ok(None);
            }
            let mut plan = Plan::of(step.node);
            plan.insert(step.at, bit, has, beside);
            edit.replace_node(&path, hold, plan, &mut [])? // LP(inserted)
        } else {
            let Some(held) = Hold::new(&self.root_lock) else { return Ok(None) };
            if self.root.word() != Word::block(edge.as_ptr()) {
                return Ok(None);
            }
            let mut plan = Plan::one(self.root.word());
            plan.insert(0, bit, has, beside);
            let root = edit.encode(&plan)?;
            edit.link(&self.root, root, held, &mut []); // LP(inserted)
            Edited::Done
        };
        Ok((edited == Edited::Done).then(|| {
            long.linked();
            self.objects.frame().len.add(1);
            None
        }))
    }
}
