//! Verifies the invariants of a quiescent tree.

use super::hot::sampler::Sampler;
use super::key::Digit;
use super::kinds::{bytes, layout};
use super::leaf::LeafOf;
use super::node::{AnySize, NodeRef};
use super::word::{Content, Kind, Word};
use super::{Art, ArtKey};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::Placed;
use silvics_pool::Placement;

/// A node or leaf that a walk has come to.
struct Seen<'g, K: ArtKey + ?Sized> {
    word: Word,
    /// The position of the node above it in the list, and the digit there.
    above: Option<(usize, Digit)>,
    /// One of the keys below.
    key: Option<K::Ref<'g>>,
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Walks the tree and verifies prefixes and depths (I2), locks (I3), counts (I4), leaves (I5)
    /// and the least contents of nodes (I6). Shows `see` each object, and returns the number of
    /// entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let mut entries = 0;
        let mut seen: Vec<Seen<'_, K>> = Vec::new();
        let root = self.root.word();
        let mut open = if root.is_none() { Vec::new() } else { vec![(None, root)] };
        while let Some((above, word)) = open.pop() {
            // SAFETY: I8: the object is linked, and access to the tree is exclusive.
            let bytes = unsafe { bytes::<K>(word) };
            see(Placed { bytes, ..Placed::new(layout::<K>(word), word.object().addr()) });
            let at = seen.len();
            if word.kind() == Kind::Leaf {
                // SAFETY: I7: the word leads to a leaf. I8: it is linked, and access is exclusive.
                let leaf = unsafe { K::Leaf::from_word(word) };
                entries += Self::check_leaf(leaf)?;
                seen.push(Seen { word, above, key: Some(leaf.key(0)) });
                continue;
            }
            // SAFETY: I7: the word's kind is a node's. I8: it is linked, and access is exclusive.
            let node = unsafe { NodeRef::from_word(word) };
            let mut key = None;
            let live = match node {
                NodeRef::Values(node) => {
                    if !K::is_direct(word.depth()) {
                        return violation("I2", format!("values at {}", word.depth()));
                    }
                    let first = node.all().next().and_then(|(digit, _)| digit);
                    key = first.map(|byte| K::direct(node.header().prefix, byte));
                    entries += node.all().count();
                    Self::places(node)?
                }
                NodeRef::Words(node) => {
                    open.extend(node.all().map(|(digit, word)| (Some((at, digit)), word)));
                    Self::places(node)?
                }
            };
            if !node.header().lock.is_open() {
                return violation(
                    "I3",
                    format!("a node at {} is locked or obsolete", word.depth()),
                );
            }
            let (used, digits) = (node.header().used(), node.digits().count());
            let full = matches!(word.kind(), Kind::Node256 | Kind::Values256);
            if !full && used != digits {
                return violation("I4", format!("{digits} digits have places, {used} counted"));
            }
            let least = if matches!(node, NodeRef::Words(_)) { 2 } else { 1 };
            if live < least && above.is_some() {
                return violation("I6", format!("{live} live places at {}", word.depth()));
            }
            seen.push(Seen { word, above, key });
        }
        Self::check_paths(&mut seen)?;
        self.alloc.frame().counted(entries)
    }

    /// Compares, from the bottom up, one key of each child with a key of a sibling, with the node's
    /// prefix and with the digit (I2). By then it has checked in which bytes all keys below the
    /// child agree.
    fn check_paths(seen: &mut [Seen<'_, K>]) -> Result<(), Violation> {
        for at in (1..seen.len()).rev() {
            let Seen { word, above: Some((above, digit)), key: Some(key) } = seen[at] else {
                return violation("I2", "no key below a node".into());
            };
            let parent = &seen[above];
            let depth = parent.word.depth();
            if word.kind() != Kind::Leaf && word.depth() <= depth {
                return violation("I2", format!("{} below {depth}", word.depth()));
            }
            let other = parent.key;
            let apart = other.is_some_and(|other| K::parting(other, key) != depth);
            // SAFETY: I7: a child's parent is a node. I8: it is linked, and access is exclusive.
            let prefix = unsafe { NodeRef::from_word(parent.word) }.header().prefix;
            if apart || K::digit(key, depth) != digit || K::before(key, depth) != prefix {
                let detail = format!("{key:?} at {digit:?} of {depth} below {prefix:x}: {other:?}");
                return violation("I2", detail);
            }
            seen[above].key = Some(key);
        }
        Ok(())
    }

    /// The number of places of a node that are not empty, which must be the node's own count.
    fn places<C: Content + 'static>(node: AnySize<'_, C>) -> Result<usize, Violation>
    where
        C::Atomic: Send,
    {
        let (found, counted) = (node.all().count(), node.header().live());
        if found != counted {
            return violation("I4", format!("{found} live places, {counted} counted"));
        }
        if let AnySize::Full(full) = node {
            let wrong = |byte: &u8| full.holds(*byte) != (node.at(Some(*byte)) != C::EMPTY);
            if let Some(byte) = (0..=255).find(wrong) {
                return violation("I4", format!("a place of {byte} that is not as noted"));
            }
        }
        Ok(found)
    }

    fn check_leaf(leaf: K::Leaf<'_>) -> Result<usize, Violation> {
        if !(1..=K::LEAF_KEYS).contains(&leaf.len()) {
            return violation("I5", format!("{} keys in a leaf", leaf.len()));
        }
        for at in 1..leaf.len() {
            let (before, key) = (leaf.key(at - 1), leaf.key(at));
            if before >= key {
                return violation("I5", format!("{before:?} before {key:?}"));
            }
        }
        if (leaf.len()..16).any(|at| leaf.is_gone(at)) {
            return violation("I5", "what a leaf never had is gone".into());
        }
        match leaf.places().count() {
            0 => violation("I5", "a leaf of which all are gone".into()),
            entries => Ok(entries),
        }
    }
}
