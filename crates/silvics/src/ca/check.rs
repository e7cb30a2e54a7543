//! Verifies the invariants of a quiescent tree.

use super::Ca;
use super::avl::height_of;
use super::build::{Build, Form};
use super::change::height;
use super::key::{CaKey, Slots};
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
pub(crate) type Bounds<K> = [Option<<K as Slots>::Slot>; 2];

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ca<K, P, B> {
    /// Walks the tree and verifies N2, N4, R1, R3 and R4. Calls `see` with each object, and returns
    /// the number of entries.
    pub(crate) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let entries = Self::check_subtree(self.root.word(), [None; 2], see)?;
        self.objects.frame().counted(entries)
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
            see_key::<K>(bound, see);
            if !route.get().lock.is_open() {
                return violation("R3", "a linked route node is locked or obsolete".into());
            }
            if !is_within::<K>(bound, [low, high], &()) {
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
        match B::FORM {
            Form::Blocks => check_container::<K>(root, [low, high], &(), see),
            Form::Avl if root.is_none() => Ok(0),
            Form::Avl => check_avl::<K>(root, [low, high], false, see),
        }
    }
}

/// Whether a slot is within bounds.
pub(crate) fn is_within<K: Slots + ?Sized>(
    slot: K::Slot,
    [low, high]: Bounds<K>,
    by: &K::Order,
) -> bool {
    let is_before = |a: K::Slot, b: K::Slot, or_equal: bool| {
        // SAFETY: access is exclusive, and the slots are of linked objects.
        let probe = unsafe { K::probe_slot(b, by) };
        let found = order::<K>(a, &probe, Locked);
        matches!(found, Ok(Ordering::Less)) || or_equal && matches!(found, Ok(Ordering::Equal))
    };
    low.is_none_or(|low| is_before(low, slot, true))
        && high.is_none_or(|high| is_before(slot, high, false))
}

/// Shows the object of a key.
pub(crate) fn see_key<K: Slots + ?Sized>(slot: K::Slot, see: &mut See<'_>) {
    if let Some(object) = K::object(slot) {
        // SAFETY: access is exclusive, and the key is one of a linked object.
        see(unsafe { placed_key(object) });
    }
}

/// Verifies N2 and N4 in a container. Calls `see` with each object, and returns the number of
/// entries.
pub(crate) fn check_container<K: Slots + ?Sized>(
    root: Word,
    bounds: Bounds<K>,
    by: &K::Order,
    see: &mut See<'_>,
) -> Result<usize, Violation> {
    if root.is_none() {
        return Ok(0);
    }
    check_node::<K>(root, height::<K>(root), bounds, by, see)
}

fn check_node<K: Slots + ?Sized>(
    word: Word,
    height: usize,
    bounds: Bounds<K>,
    by: &K::Order,
    see: &mut See<'_>,
) -> Result<usize, Violation> {
    // SAFETY: access is exclusive, and the word is linked.
    let node = unsafe { NodeRef::<K>::new(word) };
    see(node.placed());
    let (len, first) = (node.len(), usize::from(!node.is_leaf()));
    if len == 0 || node.capacity() > max_entries::<K>(node.is_leaf()) {
        return violation("N4", format!("{len} entries in room for {}", node.capacity()));
    }
    if node.is_leaf() != (height == 0) {
        return violation("N4", format!("{word:?} at height {height}"));
    }
    let mut before = None;
    for at in first..len {
        let key = node.key(at);
        see_key::<K>(key, see);
        let is_after = before.is_none_or(|before| !is_within::<K>(before, [Some(key), None], by));
        if !is_after || !is_within::<K>(key, bounds, by) {
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
        entries += check_node::<K>(node.child(at), height - 1, [low, high], by, see)?;
    }
    Ok(entries)
}

/// Verifies V1 and V2 in a tree whose keys are within bounds, and larger than the lower one if it
/// is a key. Calls `see` with each object, and returns the number of entries.
fn check_avl<K: CaKey + ?Sized>(
    word: Word,
    [low, high]: Bounds<K>,
    low_is_key: bool,
    see: &mut See<'_>,
) -> Result<usize, Violation> {
    if word.kind() != Kind::Avl {
        return violation("V2", format!("{word:?} in an AVL tree"));
    }
    // SAFETY: access is exclusive, and the word is linked.
    let node = unsafe { NodeRef::<K>::new(word) };
    see(node.placed());
    let key = node.key(0);
    see_key::<K>(key, see);
    let is_again = low_is_key && low.is_some_and(|low| is_within::<K>(low, [Some(key), None], &()));
    if is_again || !is_within::<K>(key, [low, high], &()) {
        return violation("V1", "a key is not in order".into());
    }
    let mut entries = 1;
    for (right, bounds) in [(false, [low, Some(key)]), (true, [Some(key), high])] {
        if let Some(below) = node.below(right) {
            entries += check_avl::<K>(below.word(), bounds, right || low_is_key, see)?;
        }
    }
    let heights = [false, true].map(|right| height_of(node.below(right)));
    let height = heights[0].max(heights[1]) + 1;
    if heights[0].abs_diff(heights[1]) > 1 || node.height() != height {
        return violation("V2", format!("height {} above {heights:?}", node.height()));
    }
    Ok(entries)
}
