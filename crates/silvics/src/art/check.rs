//! Verifies the invariants of a quiescent tree.

use super::ArtTree;
use super::leaf::LeafRef;
use super::node::{AnySize, LAST, NodeRef, agree};
use super::word::{Content, Kind, Word};
use crate::error::Violation;
use silvics_pool::Placement;

fn violation<T>(invariant: &'static str, detail: String) -> Result<T, Violation> {
    Err(Violation { invariant, detail })
}

/// What a walk has come to below a node.
struct Below {
    /// The bytes that keys there have, and before which depth.
    prefix: u64,
    depth: usize,
    word: Word,
}

impl<P: Placement> ArtTree<P> {
    /// Walks the tree: prefixes and depths (I2), counts (I4), leaves (I5), nodes that are too small (I6).
    /// Shows `see` the words that lead to objects, and returns the number of entries.
    pub(super) fn walk(&mut self, see: &mut dyn FnMut(Word)) -> Result<usize, Violation> {
        let mut entries = 0;
        let mut open = vec![Below { prefix: 0, depth: 0, word: self.root_word() }];
        while let Some(Below { prefix, depth, word }) = open.pop() {
            see(word);
            if word.kind() == Kind::Leaf {
                entries += Self::check_leaf(word, prefix, depth)?;
                continue;
            }
            // SAFETY: nobody else has the tree.
            let node = unsafe { NodeRef::from_word(word) };
            let (header, at) = (node.header(), word.depth());
            if at < depth || at > LAST || depth > 0 && !agree(header.prefix, prefix, depth) {
                let detail = format!("{:x} at {at} below {prefix:x} before {depth}", header.prefix);
                return violation("I2", detail);
            }
            if at < 8 && header.prefix & (u64::MAX >> (8 * at)) != 0 {
                return violation("I1", format!("prefix {:x} at {at}", header.prefix));
            }
            let live = match node {
                NodeRef::Values(node) if at == LAST => {
                    entries += node.all().count();
                    Self::places(node)?
                }
                NodeRef::Values(_) => return violation("I2", format!("values at {at}")),
                NodeRef::Words(node) => {
                    for (byte, word) in node.all() {
                        let prefix = header.prefix | u64::from(byte) << (56 - 8 * at);
                        open.push(Below { prefix, depth: at + 1, word });
                    }
                    Self::places(node)?
                }
            };
            if live < 2 && depth > 0 {
                return violation("I6", format!("{live} live places at {at}"));
            }
        }
        let counted = self.len.sum();
        if counted != entries as i64 {
            return violation("len", format!("{entries} entries, {counted} counted"));
        }
        Ok(entries)
    }

    /// How many places of a node are not empty, as the node counts them.
    fn places<C: Content + 'static>(node: AnySize<'_, C>) -> Result<usize, Violation>
    where
        C::Atomic: Send,
    {
        let (found, counted) = (node.all().count(), node.header().live());
        if found != counted {
            return violation("I4", format!("{found} live places, {counted} counted"));
        }
        Ok(found)
    }

    fn check_leaf(word: Word, prefix: u64, depth: usize) -> Result<usize, Violation> {
        // SAFETY: nobody else has the tree.
        let leaf = unsafe { LeafRef::from_word(word) };
        for at in 0..leaf.len() {
            let key = leaf.key(at);
            if !agree(key, prefix, depth) {
                return violation("I2", format!("{key:x} below {prefix:x} before {depth}"));
            }
            if at > 0 && leaf.key(at - 1) >= key {
                return violation("I5", format!("{:x} before {key:x}", leaf.key(at - 1)));
            }
        }
        Ok(leaf.len())
    }
}
