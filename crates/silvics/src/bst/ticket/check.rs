//! Verifies the invariants of a quiescent tree.

use super::super::home::NodeStore;
use super::super::side::Side;
use super::Ticket;
use super::build::Build;
use crate::bst::external::{Child, Edge, InnerWords, LeafWords, show};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;

impl<P: Placement, B: Build> Ticket<P, B> {
    /// Walks the tree from left to right. It checks that every leaf is within the bounds of its
    /// path (I2), that no lock is taken (I4), and that the counts agree.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let (mut leaves, mut inners, mut sentinels) = (0usize, 0usize, 0usize);
        Self::check_locks(&self.holder)?;
        // Edges, each with the bounds of its subtree: above `low` (exclusive), up to `high`.
        let mut open: Vec<(Edge, Option<u64>, Option<u64>)> =
            vec![(self.root().load(), None, None)];
        while let Some((edge, low, high)) = open.pop() {
            if edge == Edge::NONE {
                return violation("I1", format!("a null edge between {low:?} and {high:?}"));
            }
            // SAFETY: I1; the tree is quiescent, since access is exclusive.
            match unsafe { edge.child::<B::Inner, B::Leaf>() } {
                Child::Leaf(leaf) => {
                    show(self.objects.leaf_lives(edge.leaf_ptr()), &B::LEAF, "I5", see)?;
                    if self.is_sentinel(leaf) {
                        sentinels += 1;
                        if high.is_some() {
                            return violation(
                                "I2",
                                "the sentinel is not the rightmost leaf".into(),
                            );
                        }
                        continue;
                    }
                    leaves += 1;
                    let key = leaf.key();
                    if low.is_some_and(|l| key <= l) || high.is_some_and(|h| key > h) {
                        return violation("I2", format!("leaf {key} outside ({low:?}, {high:?}]"));
                    }
                }
                Child::Inner(inner) => {
                    inners += 1;
                    show(self.objects.inner_lives(edge.inner_ptr()), &B::INNER, "I5", see)?;
                    Self::check_locks(inner)?;
                    let (key, [left, right]) = (inner.key(), inner.children());
                    open.push((right.load(), Some(key), high));
                    open.push((left.load(), low, Some(key)));
                }
            }
        }
        if sentinels != 1 || inners != leaves {
            let detail = format!("{leaves} leaves, {inners} internal nodes, {sentinels} sentinels");
            return violation("I1", detail);
        }
        self.frame.counted(leaves)
    }

    fn check_locks(inner: &B::Inner) -> Result<(), Violation> {
        let seen = inner.control().look();
        if seen.is_taken(Side::LEFT) || seen.is_taken(Side::RIGHT) {
            let detail = format!("node {} of a quiescent tree is locked: {seen:?}", inner.key());
            return violation("I4", detail);
        }
        Ok(())
    }
}
