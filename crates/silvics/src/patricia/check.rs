//! Verifies the invariants of a quiescent trie.

use super::Patricia;
use super::build::Build;
use super::digits::{bytes_to, chars, put_digit};
use super::key::PatriciaKey;
use super::node::{Node, Nodes};
use super::policy::Policy;
use super::search::NodesOf;
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;

/// A node to be verified, with the path that leads to it.
struct Open<'g, N: ?Sized> {
    node: Node<'g, N>,
    /// The first character of the node's label.
    from: u32,
    path: Vec<u8>,
}

impl<K, B, S, P> Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    /// Walks the trie in the order of keys, and verifies that labels are those of the paths, and
    /// entries have the keys of their paths (I1), that ends increase and labels have their bytes
    /// (I2), that each node has an entry or two children (I6), and the builds' own invariants (I5).
    /// Calls `see` with each object, and returns the number of entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let bits = NodesOf::<K, B, S>::BITS;
        let mut entries = 0;
        // SAFETY: access is exclusive.
        let root = unsafe { self.top.root.load::<NodesOf<K, B, S>>() };
        let mut open = Vec::from_iter(root.map(|node| Open { node, from: 0, path: Vec::new() }));
        while let Some(Open { node, from, mut path }) = open.pop() {
            let end = NodesOf::<K, B, S>::end(node);
            if end < from {
                return violation("I2", format!("a label from {from} to {end}"));
            }
            path.resize(bytes_to(bits, end), 0);
            let label = NodesOf::<K, B, S>::label(node, from);
            if let Some(at) = label.differs(bits, &path, 0, from) {
                return violation("I1", format!("a label differs from its path at {at}"));
            }
            label.copy_to(&mut path, 0);
            NodesOf::<K, B, S>::check(node, from, see)?;
            if NodesOf::<K, B, S>::value(node).is_some() {
                entries += 1;
                Self::check_key(node, &path)?;
            } else if NodesOf::<K, B, S>::children(node) < 2 && !self.is_untidy() {
                return violation("I6", format!("a node without use at {path:?}"));
            }
            if K::FIXED.is_some_and(|bytes| end > chars(bits, bytes)) {
                return violation("I2", format!("an end at {end}"));
            }
            let mut next = NodesOf::<K, B, S>::child::<true>(node, i32::MAX);
            while let Some((digit, child)) = next {
                let mut path = path.clone();
                path.resize(bytes_to(bits, end + 1), 0);
                put_digit(bits, &mut path, end, digit);
                open.push(Open { node: child, from: end + 1, path });
                next = NodesOf::<K, B, S>::child::<true>(node, digit as i32 - 1);
            }
        }
        self.frame.counted(entries)
    }

    /// Verifies the key of a node with an entry.
    fn check_key(node: Node<'_, NodesOf<K, B, S>>, path: &[u8]) -> Result<(), Violation> {
        let bits = NodesOf::<K, B, S>::BITS;
        let whole = chars(bits, path.len()) == NodesOf::<K, B, S>::end(node);
        let right = match NodesOf::<K, B, S>::key(node) {
            Some(key) => K::bytes(key).as_ref() == path,
            None => K::FIXED.is_none_or(|bytes| bytes == path.len()),
        };
        if whole && right { Ok(()) } else { violation("I1", format!("a key at path {path:?}")) }
    }
}
