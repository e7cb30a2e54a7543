//! Ranges in both directions.

use super::ArtTree;
use super::leaf::LeafRef;
use super::node::{Bytes, NodeRef, agree, byte_at, first_from, last_before};
use super::word::{ABSENT, Kind, Word};
use crate::bst::Keys;
use crate::domain::Guard;
use silvics_pool::{Placement, Pooled};
use std::marker::PhantomData;

/// An ascending scan of an [`ArtTree`]; see [`crate::OrderedScan`] for what it promises.
pub struct Range<'g, P: Placement = Pooled>(Walk<'g, P>);

/// A descending scan of an [`ArtTree`]; see [`crate::OrderedScan`] for what it promises.
pub struct RangeRev<'g, P: Placement = Pooled>(Walk<'g, P>);

impl<'g, P: Placement> Range<'g, P> {
    pub(super) fn new(tree: &'g ArtTree<P>, keys: Option<Keys>, guard: &'g Guard) -> Self {
        Self(Walk::new::<false>(tree, keys, guard))
    }
}

impl<'g, P: Placement> RangeRev<'g, P> {
    pub(super) fn new(tree: &'g ArtTree<P>, keys: Option<Keys>, guard: &'g Guard) -> Self {
        Self(Walk::new::<true>(tree, keys, guard))
    }
}

impl<P: Placement> Iterator for Range<'_, P> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        self.0.next::<false>()
    }
}

impl<P: Placement> Iterator for RangeRev<'_, P> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        self.0.next::<true>()
    }
}

/// A node of the path where a scan stands.
#[derive(Clone, Copy)]
struct Frame<'g> {
    node: NodeRef<'g>,
    prefix: u64,
    /// The bytes with something there when the scan came …
    bytes: Bytes,
    /// … of which those from here on are still to come, or of a descending scan those before it.
    edge: usize,
}

/// Nodes of a path, at most.
const DEPTHS: usize = 8;

/// A scan, down the tree and up again.
///
/// Every node it stands in was reachable when it came there, and what it reads in one that is not any
/// more was so at one moment since (see the module docs): so it sees each key that was there throughout,
/// and none that never was. Nodes divide the keys among their bytes, and it takes these in order.
struct Walk<'g, P: Placement> {
    /// Empty when the scan is over.
    path: [Option<Frame<'g>>; DEPTHS],
    len: usize,
    /// The leaf where it stands, and how many of its keys are still to come.
    leaf: Option<(LeafRef<'g>, usize)>,
    keys: Option<Keys>,
    marker: PhantomData<&'g ArtTree<P>>,
}

impl<'g, P: Placement> Walk<'g, P> {
    fn new<const REV: bool>(tree: &'g ArtTree<P>, keys: Option<Keys>, _guard: &'g Guard) -> Self {
        let (path, marker) = ([None; DEPTHS], PhantomData);
        let mut walk = Self { path, len: 0, leaf: None, keys, marker };
        if let Some(keys) = keys {
            walk.enter::<REV>(tree.root_word(), keys);
        }
        walk
    }

    /// Goes on with a child, as far as keys of the scan can be there.
    fn enter<const REV: bool>(&mut self, word: Word, keys: Keys) {
        if word.kind() == Kind::Leaf {
            // SAFETY: read under the scan's guard.
            let leaf = unsafe { LeafRef::from_word(word) };
            self.leaf = Some((leaf, leaf.len()));
            return;
        }
        // SAFETY: read under the scan's guard.
        let node = unsafe { NodeRef::from_word(word) };
        let (prefix, depth) = (node.header().prefix, word.depth());
        let bound = if REV { keys.last() } else { keys.first() };
        let within = depth == 0 || agree(prefix, bound, depth);
        let edge = match (within, REV) {
            (true, false) => usize::from(byte_at(bound, depth)),
            (true, true) => usize::from(byte_at(bound, depth)) + 1,
            // All of it is before the bound, or behind it.
            (false, false) if prefix < bound => return,
            (false, true) if prefix > bound => return,
            (false, false) => 0,
            (false, true) => 256,
        };
        self.path[self.len] = Some(Frame { node, prefix, bytes: node.bytes(), edge });
        self.len += 1;
    }

    /// The next entry of the leaf, if there is one.
    #[inline(always)]
    fn of_leaf<const REV: bool>(&mut self) -> Option<(u64, u64)> {
        let (leaf, left) = self.leaf?;
        let Some(rest) = left.checked_sub(1) else {
            self.leaf = None;
            return None;
        };
        self.leaf = Some((leaf, rest));
        let at = if REV { rest } else { leaf.len() - left };
        Some((leaf.key(at), leaf.value(at)))
    }

    /// The next entry of the last node, or a step to another.
    #[inline(always)]
    fn of_node<const REV: bool>(&mut self, keys: Keys) -> Option<(u64, u64)> {
        let frame = self.path[self.len - 1].as_mut()?;
        loop {
            let byte = if REV {
                last_before(&frame.bytes, frame.edge)
            } else {
                first_from(&frame.bytes, frame.edge)
            };
            let Some(byte) = byte else { break };
            frame.edge = usize::from(byte) + usize::from(!REV);
            match frame.node {
                NodeRef::Values(node) => {
                    let value = node.at(byte);
                    if value != ABSENT {
                        return Some((frame.prefix | u64::from(byte), value));
                    }
                }
                NodeRef::Words(node) => {
                    let word = node.at(byte);
                    if !word.is_none() {
                        self.enter::<REV>(word, keys);
                        return None;
                    }
                }
            }
        }
        self.len -= 1;
        None
    }

    #[inline(always)]
    fn next<const REV: bool>(&mut self) -> Option<(u64, u64)> {
        let keys = self.keys?;
        loop {
            let entry = match self.leaf {
                Some(_) => self.of_leaf::<REV>(),
                None if self.len == 0 => break,
                None => self.of_node::<REV>(keys),
            };
            let Some((key, value)) = entry else { continue };
            if keys.contains(key) {
                return Some((key, value));
            }
            // Before the first one there may be others in a leaf or node where the scan begins.
            if if REV { key < keys.first() } else { key > keys.last() } {
                break;
            }
        }
        self.keys = None;
        None
    }
}
