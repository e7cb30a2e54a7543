//! Verifies the invariants of a quiescent tree.

use super::Ca;
use super::build::Build;
use super::change::Container;
use super::key::CaKey;
use super::node::{NodeRef, max_entries};
use super::objects::placed_key;
use super::route::{BaseRef, RouteRef};
use super::search::{Locked, order};
use super::word::{Kind, Word};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;
use std::cmp::Ordering;

/// The bounds of a subtree: its keys are not smaller than the first, and smaller than the second.
type Bounds<K> = [Option<<K as CaKey>::Slot>; 2];

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ca<K, P, B> {
    /// Walks the tree and verifies N2, N4, R1, R3 and R4. Calls `see` with each object, and returns
    /// the number of entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let entries = Self::check_subtree(self.root.word(), [None; 2], see)?;
        self.objects.frame().counted(entries)
    }

    /// Whether a slot is within bounds.
    fn is_within(slot: K::Slot, [low, high]: Bounds<K>) -> bool {
        let is_before = |a: K::Slot, b: K::Slot, or_equal: bool| {
            // SAFETY: access is exclusive, and the slots are of linked objects.
            let probe = unsafe { K::probe_slot(b) };
            let found = order::<K>(a, &probe, Locked);
            matches!(found, Ok(Ordering::Less)) || or_equal && matches!(found, Ok(Ordering::Equal))
        };
        low.is_none_or(|low| is_before(low, slot, true))
            && high.is_none_or(|high| is_before(slot, high, false))
    }

    fn see_key(slot: K::Slot, see: &mut See<'_>) {
        if let Some(object) = K::object(slot) {
            // SAFETY: access is exclusive, and the key is one of a linked object.
            see(unsafe { placed_key(object) });
        }
    }

    fn check_subtree(
        word: Word,
        [low, high]: Bounds<K>,
        see: &mut See<'_>,
    ) -> Result<usize, Violation> {
        if word.kind() == Kind::Route {
            // SAFETY: access is exclusive, and the word is linked.
            let route = unsafe { RouteRef::<K>::new(word) };
            see(route.placed());
            let bound = route.bound();
            Self::see_key(bound, see);
            if !route.get().lock.is_open() {
                return violation("R3", "a linked route node is locked or obsolete".into());
            }
            if !Self::is_within(bound, [low, high]) {
                return violation("R4", "a bound is not within those above".into());
            }
            let left = Self::check_subtree(route.child(false).word(), [low, Some(bound)], see)?;
            let right = Self::check_subtree(route.child(true).word(), [Some(bound), high], see)?;
            return Ok(left + right);
        }
        if word.kind() != Kind::Base {
            return violation("R1", format!("{word:?} in the place of a base node"));
        }
        // SAFETY: access is exclusive, and the word is linked.
        let base = unsafe { BaseRef::new(word) };
        see(base.get().placed());
        if !base.get().lock.is_open() {
            return violation("R3", "a linked base node is locked or obsolete".into());
        }
        let root = base.get().container.word();
        if root.is_none() {
            return Ok(0);
        }
        let height = Container::<K, P>::height(root);
        Self::check_node(root, height, [low, high], see)
    }

    fn check_node(
        word: Word,
        height: usize,
        bounds: Bounds<K>,
        see: &mut See<'_>,
    ) -> Result<usize, Violation> {
        // SAFETY: access is exclusive, and the word is linked.
        let node = unsafe { NodeRef::<K>::new(word) };
        see(node.placed());
        let (len, first) = (node.len(), usize::from(!node.is_leaf()));
        if len == 0 || node.capacity() > max_entries::<K>() {
            return violation("N4", format!("{len} entries in room for {}", node.capacity()));
        }
        if node.is_leaf() != (height == 0) {
            return violation("N4", format!("{word:?} at height {height}"));
        }
        let mut before = None;
        for at in first..len {
            let key = node.key(at);
            Self::see_key(key, see);
            let is_after = before.is_none_or(|before| !Self::is_within(before, [Some(key), None]));
            if !is_after || !Self::is_within(key, bounds) {
                return violation("N2", format!("entry {at} of {len} is not in order"));
            }
            before = Some(key);
        }
        if node.is_leaf() {
            return Ok(len);
        }
        let mut entries = 0;
        for at in 0..len {
            let low = if at == 0 { bounds[0] } else { Some(node.key(at)) };
            let high = if at + 1 == len { bounds[1] } else { Some(node.key(at + 1)) };
            entries += Self::check_node(node.child(at), height - 1, [low, high], see)?;
        }
        Ok(entries)
    }
}
