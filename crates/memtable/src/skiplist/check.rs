//! Verifies a quiescent list.

use super::node::{MAX_HEIGHT, Node};
use super::{Arena, Order, Placing, SkipList};

impl<O: Order, A: Arena, L: Placing> SkipList<O, A, L> {
    /// Verifies S2 and S3, and returns the number of entries. The error says what is wrong.
    pub fn check(&mut self) -> Result<usize, String> {
        let this = &*self;
        let mut lower: Option<Vec<Node<'_>>> = None;
        let mut count = 0;
        for level in 0..MAX_HEIGHT {
            let mut nodes = Vec::new();
            let mut at = this.head.node();
            loop {
                let link = at.next(level);
                let Some(next) = link.node() else { break };
                let entry = Self::position(next).entry();
                let hint = if at == this.head.node() {
                    this.order.start(O::target(entry)).hint
                } else {
                    let before = Self::position(at).entry();
                    if this.order.compare(before, O::target(entry)).is_ge() {
                        return Err(format!(
                            "S2: {before:?} is not before {entry:?} on level {level}"
                        ));
                    }
                    O::hint(before, entry)
                };
                if link.hint() != hint {
                    let found = link.hint();
                    return Err(format!(
                        "S3: hint {found:#x} of {entry:?} on level {level} should be {hint:#x}"
                    ));
                }
                nodes.push(next);
                at = next;
            }
            if let Some(lower) = &lower {
                let mut below = lower.iter();
                if let Some(lost) = nodes.iter().find(|node| !below.any(|other| other == *node)) {
                    let entry = Self::position(*lost).entry();
                    return Err(format!("S2: {entry:?} is on level {level} and not below"));
                }
            } else {
                count = nodes.len();
            }
            lower = Some(nodes);
        }
        Ok(count)
    }
}
