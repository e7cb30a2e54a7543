//! Batches: several descents at a time, each waiting for its next node while the others go on.
//!
//! As in Kocberber, Falsafi and Grot, "Asynchronous memory access chaining", PVLDB 9(4), 2015: a descent
//! is a state machine, a lane, here the edge it has come to. A step follows the edge, takes the next one,
//! and prefetches what that leads to; a lane that has come to a leaf begins with the next key. Each lane
//! is a `search` that takes its time: the guard keeps what its edge leads to meanwhile (I5).

use super::super::side::Side;
use super::Natarajan;
use super::build::Build;
use super::node::AtomicEdge;
use crate::bst::external::{Child, Edge, InnerWords, LeafWords};
use crate::domain::Guard;
use silvics_pool::Placement;

/// Descents at a time.
const LANES: usize = if cfg!(silvics_shuttle) { 2 } else { 32 };

/// Entries of a batch of upserts whose keys are looked up together first.
pub(super) const WARMED: usize = if cfg!(silvics_shuttle) { 3 } else { 64 };

/// The steps from the root whose nodes are taken to be in the cache.
const HOT_STEPS: usize = if cfg!(silvics_shuttle) { 1 } else { 10 };

/// A descent to one key.
#[derive(Clone, Copy)]
struct Lane {
    /// The key's number in the batch.
    number: usize,
    key: u64,
    /// The edge it has come to: what this leads to is waited for.
    edge: Edge,
}

impl<P: Placement, B: Build> Natarajan<P, B> {
    /// Searches for the keys numbered below `count`, and shows `ended` the leaf where each search ends,
    /// in any order.
    #[inline(always)]
    pub(super) fn search_many<'g>(
        &'g self,
        count: usize,
        key: impl Fn(usize) -> u64,
        mut ended: impl FnMut(usize, u64, &'g B::Leaf),
        guard: &'g Guard,
    ) {
        let mut numbers = 0..count;
        // A descent to the next key of those that must wait.
        let mut begin = |ended: &mut dyn FnMut(usize, u64, &'g B::Leaf)| {
            'next: for number in numbers.by_ref() {
                let key = key(number);
                let mut lane = Lane { number, key, edge: self.root.load() };
                for _ in 0..HOT_STEPS {
                    if let Some(leaf) = self.step(&mut lane, guard) {
                        ended(number, key, leaf);
                        continue 'next;
                    }
                }
                lane.edge.prefetch::<B::Inner>();
                return Some(lane);
            }
            None
        };
        let mut lanes = [None; LANES];
        let lanes = &mut lanes[..LANES.min(count)];
        let mut waiting = 0;
        for slot in &mut *lanes {
            *slot = begin(&mut ended);
            waiting += usize::from(slot.is_some());
        }
        while waiting > 0 {
            for slot in &mut *lanes {
                let Some(lane) = slot else { continue };
                if let Some(leaf) = self.step(lane, guard) {
                    ended(lane.number, lane.key, leaf);
                    *slot = begin(&mut ended);
                    waiting -= usize::from(slot.is_none());
                } else {
                    lane.edge.prefetch::<B::Inner>();
                }
            }
        }
    }

    /// Follows a lane's edge; the leaf, if it leads to one.
    #[inline(always)]
    #[allow(clippy::unused_self)] // its lifetime is used
    fn step<'g>(&'g self, lane: &mut Lane, _guard: &'g Guard) -> Option<&'g B::Leaf> {
        // SAFETY: as in `search`: read from a reachable edge under the guard.
        match unsafe { lane.edge.child::<B::Inner, B::Leaf>() } {
            Child::Leaf(leaf) => {
                P::saw(|| B::Leaf::LEAF.ended(leaf));
                Some(leaf)
            }
            Child::Inner(inner) => {
                let side = Side::of(lane.key, inner.key());
                P::saw(|| B::Inner::INNER.passed(inner, side.index()));
                lane.edge = side.load(inner.children(), AtomicEdge::load);
                None
            }
        }
    }
}
