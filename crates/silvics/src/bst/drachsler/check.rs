//! Verifies the invariants of a quiescent tree.

use super::super::side::Side;
use super::Drachsler;
use super::build::{Build, Words};
use super::node::Node;
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::Placed;
use silvics_pool::Placement;

impl<P: Placement, B: Build> Drachsler<P, B> {
    /// Walks the tree in order, and the list beside it: both have the same nodes (I3: what enters
    /// one enters the other), in ascending order (I1, I4), each of which names its neighbours (I1)
    /// and its parent (I4) and is not marked (I2).
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let (head, tail) = (self.head(), self.tail());
        see(Placed::new(&B::Words::NODE, self.head.addr().get()));
        let (mut entries, mut last) = (0, head);
        // The nodes whose left subtrees are being walked.
        let mut open: Vec<&Node<B::Words>> = Vec::new();
        let (mut parent, mut side) = (tail, Side::LEFT);
        loop {
            // SAFETY: exclusive access, so nothing is reclaimed.
            while let Some(node) = unsafe { parent.child(side) } {
                self.check_node(node, parent)?;
                open.push(node);
                (parent, side) = (node, Side::LEFT);
            }
            let Some(node) = open.pop() else { break };
            see(Placed::new(&B::Words::NODE, node.as_non_null().addr().get()));
            self.check_neighbours(last, node)?;
            entries += 1;
            last = node;
            (parent, side) = (node, Side::RIGHT);
        }
        see(Placed::new(&B::Words::NODE, self.tail.addr().get()));
        self.check_neighbours(last, tail)?;
        // SAFETY: exclusive access, so nothing is reclaimed.
        let right = unsafe { [head.child(Side::RIGHT), tail.child(Side::RIGHT)] };
        if !right[0].is_some_and(|right| right.is(tail)) || right[1].is_some() {
            return violation("I4", "the ends have other children than at first".into());
        }
        self.frame.counted(entries)
    }

    /// Checks a node by itself. One that is met a second time names another parent.
    fn check_node(&self, node: &Node<B::Words>, parent: &Node<B::Words>) -> Result<(), Violation> {
        let name = self.name(node);
        if node.is(self.tail()) || node.is(self.head()) {
            return violation("I4", format!("{name} is below the root"));
        }
        // SAFETY: exclusive access, so nothing is reclaimed. A node in the tree has been in the
        // list (I3).
        if !unsafe { node.parent() }.is(parent) {
            return violation("I4", format!("{name} names another parent"));
        }
        if node.is_marked() {
            return violation("I2", format!("{name} is removed and still there"));
        }
        Ok(())
    }

    /// Two nodes that follow each other in the tree do so in the list.
    fn check_neighbours(
        &self,
        pred: &Node<B::Words>,
        succ: &Node<B::Words>,
    ) -> Result<(), Violation> {
        let names = || format!("{} and {}", self.name(pred), self.name(succ));
        if !pred.is(self.head()) && !succ.is(self.tail()) && pred.key() >= succ.key() {
            return violation("I4", format!("{} are not in order", names()));
        }
        // SAFETY: exclusive access, so nothing is reclaimed. The ends are in the list, and a node
        // in the tree has been (I3).
        let (to, back) = unsafe { (pred.succ(), succ.pred()) };
        if to.is(succ) && back.is(pred) {
            return Ok(());
        }
        let detail = format!("{} are not neighbours in the list", names());
        violation(if to.is(succ) { "I1" } else { "I3" }, detail)
    }

    fn name(&self, node: &Node<B::Words>) -> String {
        if node.is(self.head()) {
            "the head".into()
        } else if node.is(self.tail()) {
            "the tail".into()
        } else {
            format!("node {}", node.key())
        }
    }
}
