//! Verifies the invariants of a quiescent tree.

use super::super::tree::{See, violation};
use super::Natarajan;
use super::node::{Child, Edge, INNER, LEAF};
use crate::error::Violation;
use silvics_pool::Placement;
use std::ptr::NonNull;

impl<P: Placement> Natarajan<P> {
    /// Walks the tree left to right: every leaf must be within the bounds its path gives (I2), no
    /// edge marked (I3: operations finish what they mark), and the counts must agree.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let (mut leaves, mut inners, mut sentinels) = (0usize, 0usize, 0usize);
        // An edge with the bounds of its subtree: above `low` (exclusive), up to `high`.
        let mut open: Vec<(Edge, Option<u64>, Option<u64>)> = vec![(self.root.load(), None, None)];
        while let Some((edge, low, high)) = open.pop() {
            if edge != edge.clean() {
                return violation("I3", format!("a quiescent tree has the marked edge {edge:?}"));
            }
            // SAFETY: exclusive access, so nothing is reclaimed.
            match unsafe { edge.child() } {
                Child::Leaf(leaf) if std::ptr::eq(leaf, self.sentinel.as_ptr()) => {
                    sentinels += 1;
                    see(&LEAF, self.sentinel.cast());
                    if high.is_some() {
                        return violation("I2", "the sentinel is not the rightmost leaf".into());
                    }
                }
                Child::Leaf(leaf) => {
                    leaves += 1;
                    see(&LEAF, NonNull::from(leaf).cast());
                    let fits =
                        low.is_none_or(|l| leaf.key > l) && high.is_none_or(|h| leaf.key <= h);
                    if !fits {
                        let detail = format!("leaf {} outside ({low:?}, {high:?}]", leaf.key);
                        return violation("I2", detail);
                    }
                }
                Child::Inner(inner) => {
                    inners += 1;
                    see(&INNER, NonNull::from(inner).cast());
                    open.push((inner.children[1].load(), Some(inner.key), high));
                    open.push((inner.children[0].load(), low, Some(inner.key)));
                }
            }
        }
        if sentinels != 1 || inners != leaves {
            let detail = format!("{leaves} leaves, {inners} internal nodes, {sentinels} sentinels");
            return violation("I1", detail);
        }
        self.frame.counted(leaves)
    }
}
