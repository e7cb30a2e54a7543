//! Verifies the invariants of a quiescent tree.

use super::Ellen;
use super::build::Build;
use super::node::{Child, Edge};
use crate::bst::claim::State;
use crate::bst::external::{InnerWords, LeafWords};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::Placed;
use silvics_pool::Placement;

impl<P: Placement, B: Build> Ellen<P, B> {
    /// Walks the tree left to right: every leaf must be within the bounds its path gives (I2), the
    /// right end in its place and every internal node but the root over a leaf of its own (I3), no
    /// node claimed (I4, I6: operations finish what they flag), and the counts must agree.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let (mut leaves, mut inners, mut ends) = (0usize, 0usize, 0usize);
        see(Placed::new(&B::INNER, self.root.addr().get()));
        if let State::Claimed(claim) = self.root().control().0.load() {
            return violation("I4", format!("the root of a quiescent tree is claimed: {claim:?}"));
        }
        if self.root().children()[1].load() != Edge::END {
            return violation("I3", "something is on the right of the root".into());
        }
        // An edge with the bounds of its subtree: above `low` (exclusive), up to `high`.
        let mut open: Vec<(Edge, Option<u64>, Option<u64>)> =
            vec![(self.root().children()[0].load(), None, None)];
        while let Some((edge, low, high)) = open.pop() {
            // SAFETY: exclusive access, so nothing is reclaimed.
            match unsafe { edge.child::<B>() } {
                Child::End => {
                    ends += 1;
                    if high.is_some() {
                        return violation("I3", "the end is not the rightmost".into());
                    }
                }
                Child::Leaf(leaf) => {
                    leaves += 1;
                    see(Placed::new(&B::LEAF, edge.leaf_ptr::<B>().addr().get()));
                    let key = leaf.key();
                    if low.is_some_and(|l| key <= l) || high.is_none_or(|h| key > h) {
                        return violation("I2", format!("leaf {key} outside ({low:?}, {high:?}]"));
                    }
                }
                Child::Inner(inner) => {
                    inners += 1;
                    see(Placed::new(&B::INNER, edge.inner_ptr::<B>().addr().get()));
                    let key = inner.key();
                    if let State::Claimed(claim) = inner.control().0.load() {
                        let detail =
                            format!("a quiescent tree has the claimed node {key}: {claim:?}");
                        return violation("I4", detail);
                    }
                    if low.is_some_and(|l| key <= l) || high.is_some_and(|h| key >= h) {
                        return violation("I2", format!("node {key} outside ({low:?}, {high:?})"));
                    }
                    open.push((inner.children()[1].load(), Some(key), high));
                    open.push((inner.children()[0].load(), low, Some(key)));
                }
            }
        }
        if ends != 1 || inners != leaves {
            let detail = format!("{leaves} leaves, {inners} internal nodes, {ends} ends");
            return violation("I3", detail);
        }
        self.frame.counted(leaves)
    }
}
