//! Entries that hold a pin.

use super::Entry;
use crate::domain::Guard;
use crate::map::lend::{GuardPlace, Lent};
use crate::map::value::{Value, ValueRef};
use std::fmt;
use std::mem::ManuallyDrop;

/// An entry together with a pin that keeps it readable: what the methods of
/// [`OrdMap`](super::OrdMap) itself return. It cannot leave its thread.
pub struct EntryGuard<'m, K: Value, V: Value> {
    key: ValueRef<'m, K>,
    value: ValueRef<'m, V>,
    _guard: Guard,
}

impl<K: Value, V: Value> EntryGuard<'_, K, V> {
    /// The key, as the map has it.
    #[inline]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &V {
        &self.value
    }
}

impl<K: Value + fmt::Debug, V: Value + fmt::Debug> fmt::Debug for EntryGuard<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EntryGuard").field(self.key()).field(self.value()).finish()
    }
}

/// An entry that was read under the guard of a call.
pub(super) struct Pair<'m, K, V>(pub(super) Entry<'m, K, V>);

// SAFETY: the key and the value take the guard of the call.
unsafe impl<'m, K: Value, V: Value> Lent<'m, V> for Pair<'m, K, V> {
    type Held = EntryGuard<'m, K, V>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        let (key, value) = self.0;
        // SAFETY: the caller does not use the guard any more.
        then(EntryGuard { key, value, _guard: unsafe { ManuallyDrop::take(guard) } })
    }
}
