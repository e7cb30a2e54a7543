//! The values of a table, and the payloads of leaves.
//!
//! A value of a number type of at most four bytes, `bool`, `char` or `()` is the payload itself.
//! Any other value has a slot, as in a [`Map`](crate::Map), and the payload is the slot's address.

use crate::domain::{Domain, Guard};
use crate::error::AllocError;
use crate::map::value::{Draft, Value, ValueRef, Values, inline, inlined, word_of};
use silvics_pool::{Config, Placement, PoolStats};
use std::ptr::{NonNull, with_exposed_provenance_mut};

/// A value in a slot. The type is none that a map has in its words, so each value has a slot.
#[repr(transparent)]
pub(super) struct InSlot<V>(V);

/// Whether values of this type are payloads.
#[inline(always)]
const fn is_narrow<V>() -> bool {
    size_of::<V>() <= 4
}

/// Whether a payload is a value, and not the address of a slot.
#[inline(always)]
fn is_payload<V: 'static>() -> bool {
    is_narrow::<V>() && inline::<V>()
}

/// The upper part of a word, which a value of at most four bytes does not use on this target.
const UNUSED: u32 = if cfg!(target_endian = "big") { 32 } else { 0 };

/// The slots of the values, if they have any.
pub(super) struct Slots<V: Value, P: Placement>(Option<Values<InSlot<V>, P>>);

/// A value that is not in the table yet.
pub(super) enum Pending<'t, V: Value, P: Placement> {
    Payload(u64),
    Slot(Draft<'t, InSlot<V>, P>),
}

impl<V: Value, P: Placement> Pending<'_, V, P> {
    #[inline]
    pub(super) fn payload(&self) -> u64 {
        match self {
            Self::Payload(payload) => *payload,
            Self::Slot(draft) => draft.word(),
        }
    }

    /// Ends the draft: the payload is in the table.
    pub(super) fn placed(self) {
        if let Self::Slot(draft) = self {
            draft.placed();
        }
    }

    /// The value again: the payload is not in the table.
    #[cold]
    pub(super) fn into_value(self) -> V {
        match self {
            Self::Payload(payload) => {
                let word = payload << UNUSED;
                // SAFETY: `Slots::pending` has made the payload of a `V` that is inlined, which is
                // a number, `bool`, `char` or `()`.
                unsafe { std::ptr::from_ref(inlined::<V>(&word)).read() }
            }
            Self::Slot(draft) => draft.into_value().0,
        }
    }
}

impl<V: Value, P: Placement> Slots<V, P> {
    pub(super) fn new(config: impl FnOnce() -> Config, domain: &Domain) -> Self {
        Self((!is_payload::<V>()).then(|| Values::new("value", config, domain)))
    }

    fn slots(&self) -> Option<&Values<InSlot<V>, P>> {
        self.0.as_ref().filter(|_| !is_payload::<V>())
    }

    /// Moves a value into a slot if it needs one. If the allocation fails, returns the value.
    pub(super) fn pending(
        &self,
        value: V,
        guard: &Guard,
    ) -> Result<Pending<'_, V, P>, (V, AllocError)> {
        match self.slots() {
            None => Ok(Pending::Payload(word_of(value) >> UNUSED)),
            Some(slots) => match slots.draft(InSlot(value), guard) {
                Ok(draft) => Ok(Pending::Slot(draft)),
                Err((InSlot(value), error)) => Err((value, error)),
            },
        }
    }

    /// The value of a payload.
    ///
    /// # Safety
    /// The payload was read in a leaf of the table under a guard that lives as long as the result,
    /// and so does the table.
    #[inline(always)]
    pub(super) unsafe fn value<'g>(payload: u64) -> ValueRef<'g, V> {
        let word = if is_payload::<V>() {
            payload << UNUSED
        } else if inline::<V>() {
            let slot = with_exposed_provenance_mut::<V>(payload as usize);
            // SAFETY: L1: the payload is the address of an initialised slot, which the guard keeps.
            // The type is a number of eight bytes, and a copy of it is a value.
            word_of(unsafe { slot.read() })
        } else {
            payload
        };
        // SAFETY: our contract: the word is that of a value, or of a number.
        unsafe { ValueRef::new(word) }
    }

    /// Retires the value of a payload that was taken out of the table. The caller holds no lock.
    ///
    /// # Safety
    /// The caller took the payload out, calls this once, and passes a guard of the domain.
    pub(super) unsafe fn retire(&self, payload: u64, guard: &Guard) {
        if let Some(slots) = self.slots() {
            // SAFETY: our contract.
            unsafe { slots.retire(payload, guard) };
        }
    }

    /// Drops some values that no pin protects. The caller holds no lock.
    #[inline(always)]
    pub(super) fn drop_some(&self) {
        if let Some(slots) = self.slots() {
            slots.drop_some();
        }
    }

    /// See [`Values::are_dropped_one_by_one`].
    pub(super) fn are_dropped_one_by_one(&self) -> bool {
        self.slots().is_some_and(Values::are_dropped_one_by_one)
    }

    /// Drops the value of a payload in a table that is being dropped.
    ///
    /// # Safety
    /// The payload is in the table, and no other use of it is left.
    pub(super) unsafe fn drop_with_table(&self, payload: u64) {
        if let Some(slots) = self.slots() {
            // SAFETY: our contract.
            unsafe { slots.drop_with_map(payload) };
        }
    }

    pub(super) fn flush(&self) {
        if let Some(slots) = self.slots() {
            slots.flush();
        }
    }

    pub(super) fn shrink(&self) -> usize {
        self.slots().map_or(0, Values::shrink)
    }

    pub(super) fn settle(&mut self) {
        if let Self(Some(slots)) = self {
            slots.settle();
        }
    }

    pub(super) fn stats(&self) -> Option<PoolStats> {
        self.slots().and_then(Values::stats)
    }
}

// Pools have no slot at an address of more than 47 bits (`AllocError::Address`), so payloads hold
// addresses.
const _: () = assert!(size_of::<NonNull<u8>>() == 8);
