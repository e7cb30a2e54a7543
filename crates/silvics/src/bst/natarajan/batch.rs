//! Batches: several descents in turns, each of which waits for its next node while the others
//! continue.
//!
//! The method is that of Kocberber, Falsafi and Grot, "Asynchronous memory access chaining", PVLDB
//! 9(4), 2015. A descent is a state machine, a lane, whose state here is the edge that it has
//! reached. A step follows this edge, takes the next one, and prefetches that one's child. A lane
//! that has reached a leaf begins with the next key. Each lane is a slow `search`: the guard
//! protects the child of its edge meanwhile (I5).

use super::super::side::Side;
use super::Natarajan;
use super::build::Build;
use super::node::AtomicEdge;
use crate::bst::external::{Child, Edge, InnerWords, LeafWords};
use crate::domain::Guard;
use silvics_pool::Placement;

/// The number of descents in turns.
const LANES: usize = if cfg!(silvics_shuttle) { 2 } else { 32 };

/// The number of entries of a batch of upserts whose keys are looked up together first.
pub(super) const WARMED: usize = if cfg!(silvics_shuttle) { 3 } else { 64 };

/// The number of steps from the root whose nodes are assumed to be in the cache.
const HOT_STEPS: usize = if cfg!(silvics_shuttle) { 1 } else { 10 };

/// A descent to one key.
#[derive(Clone, Copy)]
struct Lane {
    /// The key's number in the batch.
    number: usize,
    key: u64,
    /// The edge that the descent has reached. Its child is being prefetched.
    edge: Edge,
}

impl<P: Placement, B: Build> Natarajan<P, B> {
    /// Searches for the keys with the numbers below `count`, and passes to `ended` the leaf at
    /// which each search ends, in any order.
    #[inline(always)]
    pub(super) fn search_many<'g>(
        &'g self,
        count: usize,
        key: impl Fn(usize) -> u64,
        mut ended: impl FnMut(usize, u64, &'g B::Leaf),
        guard: &'g Guard,
    ) {
        let mut numbers = 0..count;
        // Begins a descent to the next key that must wait for a node.
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

    /// Follows a lane's edge. Returns the leaf if the edge leads to one.
    #[inline(always)]
    #[allow(clippy::unused_self)] // its lifetime is used
    fn step<'g>(&'g self, lane: &mut Lane, _guard: &'g Guard) -> Option<&'g B::Leaf> {
        // SAFETY: I1, I5: the edge was read from the root or from a node that was reached under the
        // guard.
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
