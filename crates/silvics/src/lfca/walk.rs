//! Walks along the entries of one container, which never changes.
//!
//! A walk compares keys where it begins, and once in each leaf: whether the end of the range is
//! there. From leaf to leaf it follows the nodes. So it ends whatever the order of the keys is.

use super::edit::place;
use crate::ca::change::{Path, to_edge};
use crate::ca::key::Slots;
use crate::ca::node::NodeRef;
use crate::ca::search::{Locked, order};
use crate::ca::word::Word;
use std::cmp::Ordering;
use std::ops::Bound;

/// The position at which a walk begins or ends: a key, and whether it is part of the walk. Nothing
/// if this is an end of the tree.
pub(crate) type From<'k, K> = Option<(<K as Slots>::Probe<'k>, bool)>;

/// The position that a bound of a range is.
pub(crate) fn from_bound<T>(bound: Bound<T>) -> Option<(T, bool)> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((key, true)),
        Bound::Excluded(key) => Some((key, false)),
    }
}

/// Whether the way to the base node where a walk begins goes right at a bound.
pub(super) fn goes_right<K: Slots + ?Sized, const DESCENDS: bool>(
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
pub(super) fn is_beyond<K: Slots + ?Sized, const DESCENDS: bool>(
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
pub(super) struct Walk<'g, K: Slots + ?Sized, const DESCENDS: bool> {
    path: Path<'g, K>,
    leaf: Option<NodeRef<'g, K>>,
    /// The number of the next entry, or if the walk descends, one more.
    at: usize,
    /// The value of `at` behind the last entry of the leaf that belongs to the walk.
    stop: usize,
    /// Whether the walk ends in this leaf.
    ends: bool,
}

impl<'g, K: Slots + ?Sized, const DESCENDS: bool> Walk<'g, K, DESCENDS> {
    /// Begins a walk along a container from a position on, which ends at another one.
    ///
    /// # Safety
    /// The container is linked, or was at some moment since a guard was taken that lives during
    /// `'g`.
    #[inline]
    pub(super) unsafe fn begin(&mut self, root: Word, from: &From<'_, K>, end: &From<'_, K>) {
        self.stop_here();
        let mut word = root;
        while !word.is_none() {
            // SAFETY: C1, our contract: the nodes of the container stay during `'g`.
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
                self.stand(node, at, end);
                return;
            }
            let at = at.saturating_sub(1);
            self.path.go((node, at));
            word = node.child(at);
            NodeRef::<K>::prefetch_keys(word);
        }
    }

    /// Ends the walk.
    pub(super) fn stop_here(&mut self) {
        (self.leaf, self.ends) = (None, false);
        self.path.clear();
    }

    /// A walk without entries.
    pub(super) fn nothing() -> Self {
        Self { path: Path::default(), leaf: None, at: 0, stop: 0, ends: false }
    }

    /// Goes on at a position in a leaf.
    fn stand(&mut self, leaf: NodeRef<'g, K>, at: usize, end: &From<'_, K>) {
        let len = leaf.len();
        let (mut stop, mut ends) = (if DESCENDS { 0 } else { len }, false);
        // A comparison may panic, and then the walk stands at no entry.
        (self.leaf, self.at, self.stop) = (Some(leaf), at, at);
        if let Some((probe, included)) = end
            && at != stop
        {
            let last = if DESCENDS { 0 } else { len - 1 };
            ends = is_beyond::<K, DESCENDS>(leaf.key(last), false, end);
            if ends {
                stop = if DESCENDS {
                    place(leaf, 0, probe, !*included).min(at)
                } else {
                    place(leaf, at, probe, *included)
                };
            }
        }
        (self.stop, self.ends) = (stop, ends);
    }

    /// Goes to the next leaf. Returns whether there is one.
    fn turn(&mut self, end: &From<'_, K>) -> bool {
        if self.ends {
            return false;
        }
        while let Some((node, child)) = self.path.pop() {
            let next = if DESCENDS { child.checked_sub(1) } else { Some(child + 1) };
            let Some(next) = next.filter(|next| *next < node.len()) else { continue };
            self.path.go((node, next));
            // SAFETY: C1: as in `begin`.
            let leaf = unsafe { to_edge(node.child(next), DESCENDS, &mut self.path) };
            self.stand(leaf, if DESCENDS { leaf.len() } else { 0 }, end);
            return true;
        }
        false
    }

    /// The next entry before the end, which is the one that `begin` was given.
    #[inline]
    pub(super) fn next(&mut self, end: &From<'_, K>) -> Option<(K::Slot, u64)> {
        loop {
            let leaf = self.leaf?;
            if DESCENDS && self.at > self.stop {
                self.at -= 1;
                return Some((leaf.key(self.at), leaf.value(self.at)));
            }
            if !DESCENDS && self.at < self.stop {
                self.at += 1;
                return Some((leaf.key(self.at - 1), leaf.value(self.at - 1)));
            }
            if !self.turn(end) {
                return None;
            }
        }
    }

    /// Whether the end is in the leaf where the walk stands.
    pub(super) fn ends(&self) -> bool {
        self.ends
    }

    /// The entry in front of the next one, in the direction of the walk, if it is in the same leaf.
    pub(super) fn last(&self) -> Option<K::Slot> {
        let leaf = self.leaf?;
        let last = if DESCENDS { Some(self.at) } else { self.at.checked_sub(1) };
        last.filter(|last| *last < leaf.len()).map(|last| leaf.key(last))
    }
}
