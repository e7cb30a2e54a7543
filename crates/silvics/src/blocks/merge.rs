//! Blocks that have become empty or small.
//!
//! A block without an entry is unlinked. A block of few entries is merged with its sibling, if that
//! is a block, too. A block with dead entries of long keys is copied without them. All of this
//! needs memory. If it cannot be allocated, or if another thread has the sibling's lock, the block
//! stays as it is. A shrink looks at blocks without an entry and at dead long keys again
//! (`sweep.rs`).

use super::Blocks;
use super::block::{self, BlockRef, MAX_ENTRIES};
use super::edit::{Edit, Edited, Hold};
use super::key::{Bit, BlockKey};
use super::lock::Locked;
use super::order::{Gap, Order};
use super::plan::Plan;
use super::shape::{Bytes, Shape, fits, prefix_of};
use super::word::{Leads, Word};
use crate::domain::Guard;
use silvics_pool::{AllocError, Placement};

/// The most entries of a block that may be merged.
pub(super) const FEW: usize = if cfg!(silvics_shuttle) { 1 } else { MAX_ENTRIES / 4 };
/// The most entries of a block that two are merged to, so that it is not split again soon.
const MERGED: usize = 2 * MAX_ENTRIES / 3;

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// Unlinks a block that has no entry present. If the node without it cannot be allocated, the
    /// empty block stays.
    pub(super) fn unlink<'g>(&'g self, locked: Locked<'g, K>, key: K::Ref<'_>, guard: &'g Guard) {
        if self.try_unlink(locked, key, guard) != Ok(true) {
            self.note_left_behind();
        }
    }

    /// Unlinks such a block. Returns whether it is gone.
    pub(super) fn try_unlink<'g>(
        &'g self,
        mut locked: Locked<'g, K>,
        key: K::Ref<'_>,
        guard: &'g Guard,
    ) -> Result<bool, AllocError> {
        locked.bar();
        // If anything fails, the block stays, without an entry.
        let (mut path, mut locked) = (Vec::new(), [Some(locked)]);
        while let Some(block) = locked[0].as_ref().map(|locked| locked.block) {
            if self.path(K::shorten(key), &mut path, guard)? != Some(block) {
                return Ok(false);
            }
            let Some(step) = path.last() else {
                let Some(held) = Hold::new(&self.root_lock) else { return Ok(false) };
                if self.root.word() == Word::block(block.as_ptr()) {
                    Edit::new(self, guard).link(&self.root, Word::NONE, held, &mut locked);
                }
                continue;
            };
            let Some(hold) = Hold::new(step.node.lock()) else { continue };
            if step.node.child(step.at).word() != Word::block(block.as_ptr()) {
                continue;
            }
            let mut plan = Plan::of(step.node);
            plan.remove(step.at);
            let _: Edited = Edit::new(self, guard).replace_node(&path, hold, plan, &mut locked)?;
        }
        Ok(true)
    }

    /// Merges a block of few entries with its sibling, if that is a block and not too large.
    /// Updates are kept out of the block.
    pub(super) fn merge<'g>(&'g self, locked: Locked<'g, K>, key: K::Ref<'_>, guard: &'g Guard) {
        // Another thread may be in the way, or memory may be short: then the block stays.
        let _: Result<Option<Edited>, AllocError> = self.try_merge(locked, key, guard);
    }

    pub(super) fn try_merge<'g>(
        &'g self,
        mut locked: Locked<'g, K>,
        key: K::Ref<'_>,
        guard: &'g Guard,
    ) -> Result<Option<Edited>, AllocError> {
        locked.bar();
        let (mut path, block) = (Vec::new(), locked.block);
        if self.path(key, &mut path, guard)? != Some(block) {
            return Ok(None);
        }
        let Some(step) = path.last() else { return Ok(None) };
        let Some(hold) = Hold::new(step.node.lock()) else { return Ok(None) };
        let mut plan = Plan::of(step.node);
        if plan.child(step.at) != Word::block(block.as_ptr()) {
            return Ok(None);
        }
        let Some((at, bit)) = plan.sibling(step.at) else { return Ok(None) };
        // SAFETY: I3: the word was read under the guard, in a node that was.
        let Leads::Block(sibling) = (unsafe { plan.child(at).leads::<K>() }) else {
            return Ok(None);
        };
        let entries = (block.live().count_ones() + sibling.live().count_ones()) as usize;
        if entries > MERGED {
            return Ok(None);
        }
        // Locks of blocks come before those of nodes, so this one is only tried.
        let Some(mut other) = sibling.try_locked() else { return Ok(None) };
        other.bar();
        let pair = if at < step.at { [sibling, block] } else { [block, sibling] };
        let mut edit = Edit::new(self, guard);
        let Some(merged) = self.copied(&pair, bit, &mut edit, guard)? else { return Ok(None) };
        plan.set_child(at, merged);
        plan.remove(step.at);
        edit.replace_node(&path, hold, plan, &mut [Some(locked), Some(other)]).map(Some)
    }

    /// Copies a block without its dead entries, to free their long keys.
    pub(super) fn compact<'g>(&'g self, locked: Locked<'g, K>, key: K::Ref<'_>, guard: &'g Guard) {
        // Another thread may be in the way: then the block stays.
        if self.try_compact(locked, key, guard).is_err() {
            self.note_left_behind();
        }
    }

    pub(super) fn try_compact<'g>(
        &'g self,
        mut locked: Locked<'g, K>,
        key: K::Ref<'_>,
        guard: &'g Guard,
    ) -> Result<Option<Edited>, AllocError> {
        locked.bar();
        let block = locked.block;
        let Some((found, parent)) = self.block_of(key, guard) else { return Ok(None) };
        if found != block {
            return Ok(None);
        }
        let mut edit = Edit::new(self, guard);
        let copy = self.copied(&[block], block.depth(), &mut edit, guard)?;
        Ok(copy.map(|copy| edit.replace_block(parent, locked, copy)))
    }

    /// A block with the present entries of one block, or of two that part at the bit `depth`,
    /// unless it would be too large.
    fn copied(
        &self,
        blocks: &[BlockRef<'_, K>],
        depth: Bit,
        edit: &mut Edit<'_, K, P>,
        guard: &Guard,
    ) -> Result<Option<Word>, AllocError> {
        let orders = blocks.iter().map(|block| {
            let mut order = block.order();
            order.keep(block.live());
            (*block, order)
        });
        let (mut entries, mut ends) = (0, None);
        for (block, order) in orders.clone() {
            entries += order.len();
            let [Some(first), Some(last)] = [order.numbers().first(), order.numbers().last()]
            else {
                continue;
            };
            let [first, last] = [first, last].map(|number| block.key(usize::from(*number)));
            ends = Some((ends.map_or(first, |(first, _)| first), last));
        }
        let Some(ends) = ends else { return Ok(None) };
        let prefix = prefix_of::<K>(ends, depth);
        let of_block = |(block, order): (BlockRef<'_, K>, Order)| {
            let bytes = |run| block.run_bytes(run, prefix);
            order.runs(0, order.len()).map(bytes).sum::<usize>()
        };
        let bytes = Bytes { prefix, keys: orders.clone().map(of_block).sum() };
        if blocks.len() > 1 && (entries > MERGED || !fits::<K>(entries, bytes)) {
            return Ok(None);
        }
        edit.reserve(1)?;
        let merged = self.objects.block(Shape::with_room::<K>(entries, bytes), depth, guard)?;
        edit.made(Word::block(merged.as_ptr()));
        merged.set_prefix(ends.0);
        for (block, order) in orders {
            // The blocks part at the first bit that is not before their depth.
            let gap = |at| if at == 0 { Gap::of(depth) } else { order.gap(at) };
            for run in order.runs(0, order.len()) {
                merged.append_run(block, run, gap);
            }
        }
        merged.set_live(block::all(entries));
        Ok(Some(Word::block(merged.as_ptr())))
    }
}
