//! Keys that are bounds of route nodes, if bounds are keys of entries.
//!
//! The entry of such a key may be removed while a route node has it. So a tree counts the route
//! nodes of each key, and retires a key when neither an entry nor a route node has it any more. It
//! goes by the objects, and never compares keys.
//!
//! ```text
//! split: hold the key, then link the route node; release it if that fails
//! join:  unlink the route node, then release the key
//! a writer that removes an entry: unlink it, then ask whether its key is held
//! ```
//!
//! # Why no key is retired too early, and each is retired once
//! * L1: A key is held before a route node with it is linked, and until that is unlinked.
//! * L2: A split of a base node takes a key of its own entries. A removal of this entry is an
//!   exchange of the same place, or of one below the new route node. If the exchange of the split
//!   comes first, the removal has seen its outcome, and finds the key held. If not, the split
//!   fails.
//! * L3: The lock decides who is last: the removal, if the key is not held then, or else the last
//!   one that releases the key.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `held` | add, before the split's exchange | `SeqCst` | load, after the removal's exchange | the removal has seen the exchange (L2), so it sees the number |
//! | `held` | subtract | `SeqCst` | the load | a removal that sees the lower number sees that the lock was taken before, or takes it |

use crate::ca::key::Slots;
use crate::canary::{Canary, planted};
use crate::error::{AllocError, Violation};
use crate::frame::violation;
use silvics_pool::Budget;
use silvics_sync::atomic::{AtomicU32, Ordering};
use silvics_sync::{Mutex, OnceBox};
use std::collections::{HashMap, HashSet};

/// The groups of keys that are counted together. Most groups have no key that is held, so that
/// removals need not take the lock.
const GROUPS: usize = if cfg!(silvics_shuttle) { 2 } else { 1024 };

/// The keys that route nodes have. Nothing before the first split.
pub(super) struct Bounds<K: Slots + ?Sized>(OnceBox<Table<K>>);

struct Table<K: Slots + ?Sized> {
    /// The number of keys of each group that are held.
    held: [AtomicU32; GROUPS],
    keys: Mutex<HashMap<usize, Held<K>>>,
}

/// A key that is held.
struct Held<K: Slots + ?Sized> {
    slot: K::Slot,
    route_nodes: usize,
    /// Whether its entry is removed.
    is_removed: bool,
}

/// The group of a key's object.
fn group(object: usize) -> usize {
    ((object as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % GROUPS
}

impl<K: Slots + ?Sized> Bounds<K> {
    pub(super) fn new() -> Self {
        Self(OnceBox::default())
    }

    /// Notes that a route node is going to have a key of an entry. A key without an address of its
    /// own needs no note.
    pub(super) fn hold(&self, slot: K::Slot, budget: &Budget) -> Result<(), AllocError> {
        let Some(object) = K::id(slot) else { return Ok(()) };
        let held = std::array::from_fn(|_| AtomicU32::new(0));
        let make = || Table { held, keys: Mutex::default() };
        let table = self.0.get_or_make(budget, make);
        let table =
            table.map_err(|refused| budget.error_of(refused, OnceBox::<Table<K>>::BYTES))?;
        let mut keys = table.keys.lock();
        keys.try_reserve(1).map_err(|_| AllocError::System { requested: size_of::<Held<K>>() })?;
        let new = || {
            table.held[group(object)].fetch_add(1, Ordering::SeqCst);
            Held { slot, route_nodes: 0, is_removed: false }
        };
        keys.entry(object).or_insert_with(new).route_nodes += 1;
        Ok(())
    }

    /// Notes that a route node does not have the key any more, or never had it. Returns whether the
    /// caller is the last one that has the key.
    #[must_use]
    pub(super) fn release(&self, slot: K::Slot) -> bool {
        let (Some(object), Some(table)) = (K::id(slot), self.0.get()) else { return false };
        let mut keys = table.keys.lock();
        let Some(held) = keys.get_mut(&object) else { return false };
        held.route_nodes -= 1;
        if held.route_nodes > 0 {
            return false;
        }
        let is_removed = held.is_removed;
        keys.remove(&object);
        table.held[group(object)].fetch_sub(1, Ordering::SeqCst);
        is_removed && !planted(Canary::HeldKeyForgotten)
    }

    /// Notes that the entry of the key is removed. Returns whether the caller is the last one that
    /// has the key.
    #[must_use]
    pub(super) fn remove(&self, slot: K::Slot) -> bool {
        let (Some(object), Some(table)) = (K::id(slot), self.0.get()) else { return true };
        let is_held = table.held[group(object)].load(Ordering::SeqCst) > 0;
        if !is_held || planted(Canary::HeldKeyRetired) {
            return true;
        }
        match table.keys.lock().get_mut(&object) {
            Some(held) => {
                held.is_removed = true;
                false
            }
            None => true,
        }
    }

    /// The keys without an entry.
    pub(super) fn removed(&self) -> Vec<K::Slot> {
        let Some(table) = self.0.get() else { return Vec::new() };
        let keys = table.keys.lock();
        keys.values().filter(|held| held.is_removed).map(|held| held.slot).collect()
    }

    /// Verifies that the keys of these route nodes are held, that no others are, and that they are
    /// noted as removed unless they are among the entries. Access is exclusive.
    pub(super) fn check(
        &self,
        bounds: &[K::Slot],
        entries: &HashSet<usize>,
    ) -> Result<(), Violation> {
        let objects: Vec<usize> = bounds.iter().filter_map(|slot| K::id(*slot)).collect();
        let Some(table) = self.0.get() else {
            let is_right = objects.is_empty();
            return if is_right { Ok(()) } else { violation("L1", "no key is held".into()) };
        };
        let keys = table.keys.lock();
        let held: usize = keys.values().map(|held| held.route_nodes).sum();
        if held != objects.len() || objects.iter().any(|object| !keys.contains_key(object)) {
            let routes = objects.len();
            return violation("L1", format!("{held} keys are held for {routes} route nodes"));
        }
        match keys.iter().find(|(object, held)| held.is_removed == entries.contains(*object)) {
            Some(_) => violation("L2", "a key is noted as removed, and has an entry".into()),
            None => Ok(()),
        }
    }

    /// The bytes that the budget was charged for.
    pub(super) fn bytes(&self) -> usize {
        self.0.get().map_or(0, |_| OnceBox::<Table<K>>::BYTES)
    }
}
