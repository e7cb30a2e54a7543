//! Blocks that had to stay when memory was short.
//!
//! A removal that cannot allocate leaves an empty block, or dead long keys, and notes that
//! (`left_behind`). The next shrink then visits all blocks: first to unlink the empty ones, then to
//! merge small blocks, and to copy blocks without their dead entries. It does so in rounds. A round
//! ends when several allocations have failed. The garbage of a round is freed before the next one,
//! which can allocate again. The rounds end when one has nothing to do, or fails to do anything.
//!
//! Only a sweep may use the bytes that the tree has reserved below its limit (`objects.rs`):
//! without them, a full tree might have no memory for a single node.

use super::Blocks;
use super::block::BlockRef;
use super::edit::Edited;
use super::key::BlockKey;
use super::merge::FEW;
use super::seek::{Next, Way};
use crate::domain::Guard;
use silvics_pool::{AllocError, Budget, Placement};
use silvics_sync::atomic::Ordering;

/// The most rounds of a sweep, so that other writers cannot keep it going for ever. A round gives
/// up as many blocks as there are free slots for nodes.
const ROUNDS: usize = 1 << 10;
/// The number of failed allocations at which a round ends. A later block may need a node of another
/// size, or none.
const FAILURES: usize = 16;

/// The outcome of a round.
#[derive(Default)]
struct Round {
    /// The number of blocks that were given up or compacted.
    changed: usize,
    /// The number of allocations that have failed.
    failures: usize,
    /// Whether a block was passed over because of another thread.
    passed_over: bool,
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// Notes that a block stays that should not.
    #[cold]
    pub(super) fn note_left_behind(&self) {
        // Relaxed: a shrink that misses the note leaves the block to the next one.
        self.left_behind.store(true, Ordering::Relaxed);
    }

    /// Gives up the blocks that were left behind. Returns the number of bytes that it returned to
    /// the system. The caller has no guard.
    pub(super) fn sweep_up(&self) -> usize {
        // Relaxed: a note that it misses is for the next shrink.
        if !self.left_behind.swap(false, Ordering::Relaxed) {
            return 0;
        }
        let mut returned = 0;
        for only_empty in [true, false] {
            for left in (0..ROUNDS).rev() {
                returned += self.objects.memory().shrink();
                let guard = self.objects.frame().domain.pin();
                let round = Budget::with_reserves(|| self.sweep_once(only_empty, &guard));
                let is_stuck = round.failures > 0 && (round.changed == 0 || left == 0);
                if round.passed_over || is_stuck {
                    self.note_left_behind();
                }
                let is_done = if only_empty { round.failures } else { round.changed } == 0;
                if is_done || is_stuck {
                    break;
                }
            }
        }
        returned
    }

    /// Visits the blocks in order, until some allocations have failed.
    fn sweep_once(&self, only_empty: bool, guard: &Guard) -> Round {
        let (mut way, mut round) = (Way::new(), Round::default());
        let mut block = self.begin::<false>(&mut way);
        while let Some(current) = block {
            // The next block is found first: the way to it leads over this one.
            let next = match Self::next::<false>(&mut way) {
                Next::Lost if self.turn::<false>(current, &mut way, guard) => {
                    Self::next::<false>(&mut way)
                }
                next => next,
            };
            match self.give_up(current, only_empty, guard) {
                Ok(Some(changed)) => round.changed += usize::from(changed),
                Ok(None) => round.passed_over = true,
                Err(_) => round.failures += 1,
            }
            block = match next {
                Next::Block(block) if round.failures < FAILURES => Some(block),
                Next::Block(_) | Next::End => None,
                Next::Lost => {
                    round.passed_over = true;
                    None
                }
            };
        }
        round
    }

    /// Unlinks a block without entries. Unless the caller wants empty blocks only, copies one with
    /// few entries, or with dead long keys, without its dead entries, and merges one with few
    /// entries. Returns whether it did one of these, or nothing if another thread is in the way or
    /// has replaced the block.
    fn give_up<'g>(
        &'g self,
        block: BlockRef<'g, K>,
        only_empty: bool,
        guard: &'g Guard,
    ) -> Result<Option<bool>, AllocError> {
        let most = if only_empty { 0 } else { FEW };
        let is_small = || block.live().count_ones() as usize <= most;
        let is_wanted = || is_small() || !only_empty && block.has_dead_long_keys();
        if !is_wanted() {
            return Ok(Some(false));
        }
        // A block that was replaced stays locked.
        let Some(locked) = block.try_locked() else { return Ok(None) };
        let key = block.key(0);
        let has_dead = block.entries() > block.live().count_ones() as usize;
        let edited = if block.live() == 0 {
            let is_gone = self.try_unlink(locked, key, guard)?;
            Some(if is_gone { Edited::Done } else { Edited::Restart })
        } else if only_empty {
            None
        } else if has_dead {
            // The copy has the size of its entries. It is merged in a later round.
            self.try_compact(locked, key, guard)?
        } else if is_small() {
            self.try_merge(locked, key, guard)?
        } else {
            None
        };
        Ok((edited != Some(Edited::Restart)).then_some(edited.is_some()))
    }
}
