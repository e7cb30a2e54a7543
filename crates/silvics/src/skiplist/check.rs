//! Verifies the invariants of a quiescent list.

use super::Skip;
use super::key::SkipKey;
use super::node::{MAX_HEIGHT, NodeRef};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;
use std::collections::HashMap;

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// Walks every level and verifies that keys ascend strictly (I2), no link is marked (I3), hints
    /// are right (I5), and each node is linked on exactly the levels that its references count,
    /// without those of cursors (I4). Calls `see` with each node, and returns the number of
    /// entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        see(self.head().placed());
        let mut links: HashMap<usize, usize> = HashMap::new();
        let mut entries = 0;
        for level in 0..MAX_HEIGHT {
            let mut node = self.head();
            loop {
                let link = node.next(level);
                if link.is_marked() {
                    return violation("I3", format!("{:?} is marked at level {level}", node.key()));
                }
                let Some(next) = link.node() else { break };
                let (from, to) = (node.key(), next.key());
                if from >= to && node != self.head() {
                    return violation("I2", format!("{from:?} before {to:?} at level {level}"));
                }
                if link.hint() != K::hint(from, to) {
                    let (hint, right) = (link.hint(), K::hint(from, to));
                    let detail = format!("{from:?} to {to:?}: {hint:#x} instead of {right:#x}");
                    return violation("I5", detail);
                }
                *links.entry(next.as_ptr().addr()).or_default() += 1;
                if level == 0 {
                    see(next.placed());
                    entries += 1;
                }
                node = next;
            }
        }
        self.check_references(&links)?;
        self.frame.counted(entries)
    }

    fn check_references(&self, links: &HashMap<usize, usize>) -> Result<(), Violation> {
        let mut next: Option<NodeRef<'_, K>> = self.head().next(0).node();
        let mut seen = 0;
        while let Some(node) = next {
            let linked = links.get(&node.as_ptr().addr()).copied().unwrap_or(0);
            // Cursors hold references too, so there may be more references than levels.
            if linked != node.height() || (node.references() as usize) < linked {
                let (height, references) = (node.height(), node.references());
                let detail = format!(
                    "{:?} of height {height} is linked on {linked} levels, {references} references",
                    node.key()
                );
                return violation("I4", detail);
            }
            seen += 1;
            next = node.next(0).node();
        }
        if seen != links.len() {
            return violation(
                "I3",
                format!("{} nodes linked above level 0 only", links.len() - seen),
            );
        }
        Ok(())
    }
}
