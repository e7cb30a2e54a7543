//! Walks along the entries of one container, which never changes.

use super::edit::place;
use crate::ca::key::CaKey;
use crate::ca::node::NodeRef;
use crate::ca::search::{Locked, order};
use crate::ca::word::Word;
use std::cmp::Ordering;
use std::ops::Bound;

/// An inner node, and the number of one of its children.
type Child<'g, K> = (NodeRef<'g, K>, usize);

/// The position at which a walk begins: a key, and whether it is part of the walk. Nothing if the
/// walk begins at an end.
pub(super) type From<'k, K> = Option<(<K as CaKey>::Probe<'k>, bool)>;

/// The position that a bound of a range is.
pub(super) fn from_bound<K: CaKey + ?Sized>(bound: Bound<K::Ref<'_>>) -> From<'_, K> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((K::probe(key), true)),
        Bound::Excluded(key) => Some((K::probe(key), false)),
    }
}

/// Whether the way to the base node where a walk begins goes right at a bound.
pub(super) fn goes_right<K: CaKey + ?Sized, const DESCENDS: bool>(
    bound: K::Slot,
    from: &From<'_, K>,
) -> bool {
    match from {
        None => DESCENDS,
        Some((probe, included)) => match order::<K>(bound, probe, Locked) {
            Ok(Ordering::Equal) => !DESCENDS || *included,
            order => matches!(order, Ok(Ordering::Less)),
        },
    }
}

/// Whether a walk ends before a key, or if `is_bound`, before all keys behind a bound.
pub(super) fn is_beyond<K: CaKey + ?Sized, const DESCENDS: bool>(
    slot: K::Slot,
    is_bound: bool,
    end: &From<'_, K>,
) -> bool {
    end.as_ref().is_some_and(|(end, included)| match order::<K>(slot, end, Locked) {
        Ok(Ordering::Equal) => !included || DESCENDS && is_bound,
        order => matches!(order, Ok(Ordering::Less)) == DESCENDS,
    })
}

/// A walk along a container, in descending order if it `DESCENDS`.
pub(super) struct Walk<'g, K: CaKey + ?Sized, const DESCENDS: bool> {
    root: Word,
    leaf: Option<NodeRef<'g, K>>,
    /// The number of the next entry, or if the walk descends, one more.
    at: usize,
    /// The node above, and the number of the leaf there.
    above: Option<Child<'g, K>>,
    /// The nearest bound of the nodes further up, in the direction of the walk.
    outer: Option<K::Slot>,
}

impl<'g, K: CaKey + ?Sized, const DESCENDS: bool> Walk<'g, K, DESCENDS> {
    /// A walk from a position on.
    ///
    /// # Safety
    /// The container is linked, or was at some moment since a guard was taken that lives during
    /// `'g`.
    pub(super) unsafe fn new(root: Word, from: &From<'_, K>) -> Self {
        let mut walk = Self { root, leaf: None, at: 0, above: None, outer: None };
        walk.seek(from);
        walk
    }

    /// A walk without entries.
    pub(super) fn nothing() -> Self {
        Self { root: Word::NONE, leaf: None, at: 0, above: None, outer: None }
    }

    fn seek(&mut self, from: &From<'_, K>) {
        (self.leaf, self.above, self.outer) = (None, None, None);
        let mut word = self.root;
        while !word.is_none() {
            // SAFETY: C1, the contract of `new`: the nodes of the container stay during `'g`.
            let node = unsafe { NodeRef::<'g, K>::new(word) };
            let at = match from {
                None if DESCENDS => node.len(),
                None => 0,
                Some((probe, included)) => {
                    let or_equal = if DESCENDS { *included } else { !node.is_leaf() || !*included };
                    place(node, usize::from(!node.is_leaf()), probe, or_equal)
                }
            };
            if node.is_leaf() {
                (self.leaf, self.at) = (Some(node), at);
                return;
            }
            if let Some(bound) = self.above.and_then(Self::beside) {
                self.outer = Some(bound);
            }
            let at = at.saturating_sub(1);
            self.above = Some((node, at));
            word = node.child(at);
            NodeRef::<K>::prefetch_keys(word);
        }
    }

    /// The bound beside a child, in the direction of the walk, if its node has it.
    fn beside((node, at): Child<'g, K>) -> Option<K::Slot> {
        let bound = if DESCENDS { at } else { at + 1 };
        (0 < bound && bound < node.len()).then(|| node.key(bound))
    }

    /// Goes to the next leaf. Returns whether there is one.
    fn turn(&mut self) -> bool {
        let Some((node, at)) = self.above else { return false };
        let next = if DESCENDS { at.checked_sub(1) } else { Some(at + 1) };
        if let Some(next) = next.filter(|next| *next < node.len()) {
            // SAFETY: C1: as in `seek`.
            let leaf = unsafe { NodeRef::new(node.child(next)) };
            self.above = Some((node, next));
            (self.leaf, self.at) = (Some(leaf), if DESCENDS { leaf.len() } else { 0 });
            return true;
        }
        let Some(bound) = self.outer else { return false };
        // SAFETY: C1: the bound is one of the container.
        self.seek(&Some((unsafe { K::probe_slot(bound) }, !DESCENDS)));
        true
    }

    /// The next entry.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(K::Slot, u64)> {
        loop {
            let leaf = self.leaf?;
            if DESCENDS && self.at > 0 {
                self.at -= 1;
                return Some((leaf.key(self.at), leaf.value(self.at)));
            }
            if !DESCENDS && self.at < leaf.len() {
                self.at += 1;
                return Some((leaf.key(self.at - 1), leaf.value(self.at - 1)));
            }
            if !self.turn() {
                self.leaf = None;
            }
        }
    }
}
