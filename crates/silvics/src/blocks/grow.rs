//! Making room: the first block, larger blocks, two blocks for one, and blocks beside others.

use super::Blocks;
use super::block::{self, BlockRef, MAX_ENTRIES, New, Shape};
use super::edit::{Edit, Edited, Hold, Step};
use super::key::{Bit, BlockKey};
use super::lock::Locked;
use super::ops::{Attempt, LongKey};
use super::plan::Plan;
use super::trail::Trail;
use super::word::Word;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::Ordering;

/// The entries of a block in the order of their keys, with a new one among them.
struct Sorted<'k, 'g, K: BlockKey + ?Sized> {
    block: BlockRef<'g, K>,
    numbers: [u8; MAX_ENTRIES + 1],
    len: usize,
    new: (New<'k, K>, u8),
}

/// The number of the new entry.
const NEW: u8 = u8::MAX;

impl<'k, 'g: 'k, K: BlockKey + ?Sized> Sorted<'k, 'g, K> {
    /// The present entries of a block and a new one, whose key the block does not have.
    fn new(block: BlockRef<'g, K>, new: New<'k, K>, tag: u8) -> Self {
        let (order, entries) = block.sorted();
        let live = block.live();
        let (mut numbers, mut len) = ([NEW; MAX_ENTRIES + 1], 0);
        for &at in order[..entries].iter().filter(|at| live >> **at & 1 == 1) {
            numbers[len] = at;
            len += 1;
        }
        let position = numbers[..len]
            .partition_point(|at| K::shorten(block.key(usize::from(*at))) < K::shorten(new.key));
        numbers.copy_within(position..len, position + 1);
        numbers[position] = NEW;
        Self { block, numbers, len: len + 1, new: (new, tag) }
    }

    fn key(&self, at: usize) -> K::Ref<'k> {
        match self.numbers[at] {
            NEW => self.new.0.key,
            number => self.block.key(usize::from(number)),
        }
    }

    /// The bytes that the keys of some entries take in a block.
    fn key_bytes(&self, from: usize, to: usize) -> usize {
        (from..to).map(|at| block::inline_bytes::<K>(K::len(self.key(at)))).sum()
    }

    /// A block of some of the entries, with room for more.
    fn copy<P: Placement>(
        &self,
        (from, to): (usize, usize),
        depth: Bit,
        edit: &mut Edit<'_, K, P>,
        tree: &Blocks<K, P>,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        edit.reserve(1)?;
        let shape = Shape::with_room::<K>(to - from, self.key_bytes(from, to));
        let copy = tree.objects.block(shape, depth, guard)?;
        edit.made(Word::block(copy.as_ptr()));
        for number in &self.numbers[from..to] {
            if *number == NEW {
                let (New { key, value, outside }, tag) = &self.new;
                copy.append(&New { key: K::shorten(*key), value: *value, outside: *outside }, *tag);
                continue;
            }
            copy.append_from(self.block, usize::from(*number));
        }
        copy.set_live(block::all(to - from));
        copy.set_sorted();
        Ok(Word::block(copy.as_ptr()))
    }

    /// The first entry whose key has a bit, of those that part there.
    fn parting(&self, bit: Bit) -> usize {
        (0..self.len).find(|at| K::has(self.key(*at), bit)).unwrap_or(self.len)
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
        let key_bytes = block::inline_bytes::<K>(K::len(K::shorten(new.key)));
        let block = self.objects.block(Shape::with_room::<K>(1, key_bytes), depth, guard)?;
        edit.made(Word::block(block.as_ptr()));
        block.append(new, tag);
        block.set_live(1);
        block.set_sorted();
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
        self.frame.len.add(1);
        Ok(Some(None))
    }

    /// Puts a new key into a block that has no room for it: into a larger block, or into one of two
    /// that replace it.
    pub(super) fn grow<'g>(
        &'g self,
        mut locked: Locked<'g, K>,
        key: K::Ref<'_>,
        value: u64,
        tag: u8,
        guard: &'g Guard,
    ) -> Attempt {
        let block = locked.block;
        let long = LongKey::new(self, K::shorten(key), guard)?;
        let mut path = Vec::new();
        // The block is locked, so it stays where its keys lead to.
        if self.path(K::shorten(key), &mut path, guard)? != Some(block) {
            return Ok(None);
        }
        let new = New { key: K::shorten(key), value, outside: long.address() };
        if !planted(Canary::CopiedBeforeBarred) {
            locked.bar();
        }
        let sorted = Sorted::new(block, new, tag);
        let mut edit = Edit::new(self, guard);
        let all = (0, sorted.len);
        let edited = if block::fits::<K>(sorted.len, sorted.key_bytes(0, sorted.len)) {
            let copy = sorted.copy(all, block.depth(), &mut edit, self, guard)?;
            locked.bar();
            edit.replace_block(&path, locked, copy) // LP(inserted)
        } else {
            self.split(&sorted, &path, locked, edit, guard)?
        };
        Ok((edited == Edited::Done).then(|| {
            long.linked();
            self.frame.len.add(1);
            None
        }))
    }

    /// Replaces a block by two.
    fn split<'g>(
        &'g self,
        sorted: &Sorted<'g, 'g, K>,
        path: &[Step<'g>],
        mut locked: Locked<'g, K>,
        mut edit: Edit<'g, K, P>,
        guard: &'g Guard,
    ) -> Result<Edited, AllocError> {
        let Some(bit) = K::difference(sorted.key(0), sorted.key(sorted.len - 1)) else {
            unreachable!("keys of a block differ")
        };
        let middle = sorted.parting(bit);
        let left = sorted.copy((0, middle), bit + 1, &mut edit, self, guard)?;
        let middle = middle + usize::from(planted(Canary::SplitDropsFence));
        let right = sorted.copy((middle, sorted.len), bit + 1, &mut edit, self, guard)?;
        locked.bar();
        let Some((step, _)) = path.split_last() else {
            let mut plan = Plan::one(left);
            plan.insert(0, bit, true, right);
            let root = edit.encode(&plan)?;
            return Ok(edit.replace_block(path, locked, root)); // LP(inserted)
        };
        let Some(hold) = Hold::new(step.node.lock()) else { return Ok(Edited::Restart) };
        if step.node.child(step.at).word() != Word::block(locked.block.as_ptr()) {
            return Ok(Edited::Restart);
        }
        let mut plan = Plan::of(step.node);
        plan.set_child(step.at, left);
        plan.insert(step.at, bit, true, right);
        edit.replace_node(path, hold, plan, &mut [Some(locked)]) // LP(inserted)
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
            self.frame.len.add(1);
            None
        }))
    }
}

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// Adds a copy of an entry of another block, which keeps updates out.
    pub(super) fn append_from(self, from: Self, at: usize) {
        let value = from.value(at).load(Ordering::Relaxed);
        let outside = from.outside(at).map(|(key, _)| key);
        self.append(&New { key: from.key(at), value, outside }, from.tag(at));
    }
}
