//! Searches in a container, with its lock or without.
//!
//! # Protocol
//! A search without the lock reads the version of the base node's lock, then the words that it
//! needs, and then validates the version. Until it has validated, it trusts nothing that it has
//! read: before it follows a word to another object, it validates that the word was in the
//! container. The guard keeps that object. Numbers are clamped to the size of their node, which
//! the word says.

use super::key::Slots;
use super::node::NodeRef;
use super::word::{Kind, Word};
use crate::canary::{Canary, planted};
use silvics_pool::Placement;
use silvics_sync::version::{Version, VersionLock};
use std::cmp::Ordering;

/// Whether the reads of a search belong together.
pub(crate) trait Valid: Copy {
    fn is_valid(self) -> bool;
}

/// The caller has the lock, or the container never changes.
#[derive(Clone, Copy)]
pub(crate) struct Locked;

impl Valid for Locked {
    #[inline(always)]
    fn is_valid(self) -> bool {
        true
    }
}

/// The caller has seen a version of the lock.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'g> {
    pub(crate) lock: &'g VersionLock,
    pub(crate) version: Version,
}

impl Valid for Seen<'_> {
    #[inline(always)]
    fn is_valid(self) -> bool {
        self.lock.validate(self.version)
    }
}

/// A writer has changed the container meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Torn;

/// The number of the keys before `len` that are smaller than a key, or equal to it if `or_equal`.
/// Those before `from` are.
#[inline(always)]
pub(crate) fn rank<K: Slots + ?Sized>(
    node: NodeRef<'_, K>,
    (from, len): (usize, usize),
    probe: &K::Probe<'_>,
    or_equal: bool,
    valid: impl Valid,
) -> Result<usize, Torn> {
    let (mut low, mut size) = (from, len.saturating_sub(from));
    while size > 0 {
        let half = size / 2;
        let key = node.key(low + half);
        let order = if let Some(order) = K::order(key, probe) {
            order
        } else {
            // The next key to be compared, if there is one, is one of these two.
            for next in [low + half / 2, low + half + 1 + (size - half - 1) / 2] {
                K::prefetch(|| node.key(next.min(len - 1)));
            }
            order_by_object::<K>(key, probe, valid)?
        };
        let passes = order == Ordering::Less || or_equal && order == Ordering::Equal;
        low = if passes { low + half + 1 } else { low };
        size = if passes { size - half - 1 } else { half };
    }
    Ok(low)
}

/// The order of a key of a node and another key.
#[inline(always)]
pub(crate) fn order<K: Slots + ?Sized>(
    slot: K::Slot,
    probe: &K::Probe<'_>,
    valid: impl Valid,
) -> Result<Ordering, Torn> {
    match K::order(slot, probe) {
        Some(order) => Ok(order),
        None => order_by_object::<K>(slot, probe, valid),
    }
}

/// The order of a key of a node and another key, by the object of the first one.
#[inline(always)]
fn order_by_object<K: Slots + ?Sized>(
    slot: K::Slot,
    probe: &K::Probe<'_>,
    valid: impl Valid,
) -> Result<Ordering, Torn> {
    if !valid.is_valid() {
        return Err(Torn);
    }
    // SAFETY: N3: the container had the key when its version was read, or has it under the lock. So
    // its object was not retired before the guard was taken.
    Ok(unsafe { K::order_by_object(slot, probe) })
}

/// The node that a word leads to, if the word was in the container. Nothing if the container is
/// empty.
///
/// # Safety
/// The word was read from the container of such keys after the version, under a guard that lives
/// during `'g`.
#[inline(always)]
pub(crate) unsafe fn follow<'g, K: Slots + ?Sized>(
    word: Word,
    valid: impl Valid,
) -> Result<Option<NodeRef<'g, K>>, Torn> {
    if !valid.is_valid() {
        return Err(Torn);
    }
    // SAFETY: N3: the word was in the container, so it leads to a node of it, which was not retired
    // before the guard was taken (our contract).
    Ok((!word.is_none()).then(|| unsafe { NodeRef::new(word) }))
}

/// The entry of a key in a container.
///
/// # Safety
/// That of [`follow`].
#[inline]
pub(crate) unsafe fn entry_of<K: Slots + ?Sized, P: Placement>(
    container: Word,
    probe: &K::Probe<'_>,
    valid: impl Valid,
) -> Result<Option<(K::Slot, u64)>, Torn> {
    let mut word = container;
    loop {
        // SAFETY: our contract.
        let Some(node) = (unsafe { follow::<K>(word, valid)? }) else { return Ok(None) };
        let len = node.len();
        if word.kind() == Kind::Inner {
            let at = rank(node, (1, len), probe, true, valid)? - 1;
            P::saw(|| node.looked_at(at));
            word = node.child(at);
            NodeRef::<K>::prefetch_keys(word);
            continue;
        }
        let at = rank(node, (0, len), probe, false, valid)?;
        P::saw(|| node.looked_at(at));
        let is_there = at < len && order::<K>(node.key(at), probe, valid)? == Ordering::Equal;
        let entry = is_there.then(|| (node.key(at), node.value(at)));
        let is_valid = valid.is_valid() || planted(Canary::ValueNotValidated);
        return if is_valid { Ok(entry) } else { Err(Torn) };
    }
}
