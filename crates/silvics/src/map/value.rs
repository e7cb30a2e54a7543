//! The values of a map: in the words of the index if their type allows it, else each in a slot of
//! its own.
//!
//! # Algorithm
//! An index holds words. A value whose type is in the list of [`inline`] is stored in the word: its
//! bytes first, then zeros. Any other value is moved into a slot of the map's own pool, and stays
//! there until its key is removed or gets another value; the word is the slot's address.
//! ```text
//! insert(k, v):  slot := alloc; *slot := v; old := index.insert(k, slot); retire old
//! get(k):        pin; slot := index.get(k); return a reference to *slot, valid while the pin lasts
//! retire(slot):  into this thread's batch. Once all earlier pins are gone, the collector frees a full
//!                batch; if values have destructors, it marks the batch ready, and the next calls of
//!                any thread drop the values
//! ```
//!
//! # Invariants
//! * V1: every word that the index holds, or that a pinned reader has read there, is the address of
//!   an initialised slot: the word is inserted once, taken out by one writer, and retired by that
//!   writer under a pin.
//! * V2: **destructors run while no lock is held**, since they are user code and may call the map.
//!   They run before the map is pinned, after a write has taken effect, in [`Values::flush`] and
//!   [`Values::settle`], and when the map is dropped (`kept.rs`).
//! * V3: every returned value borrows the map. So when the map is dropped, all values can be
//!   dropped, even if guards of its domain live.
//!
//! A slot is initialised before the store that publishes its word in the index, which releases it.

use super::kept::{Kept, Objects};
use crate::domain::{Domain, Guard};
use crate::error::AllocError;
use silvics_pool::{Config, Placement, Pool, PoolStats, Shared, SlotAlloc};
use silvics_sync::prefetch;
use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, drop_in_place, from_ref, with_exposed_provenance_mut};

/// A type of values of a map: any type that threads can share.
///
/// *Small values* are `()`, `bool`, `char`, `f32`, `f64`, and integers of at most 8 bytes (but not
/// `NonZero`). They are stored in the index itself, and copied when they are read. All other values
/// keep their address in the map until they are removed or replaced.
pub trait Value: Send + Sync + 'static {}
impl<V: Send + Sync + 'static> Value for V {}

/// Whether values of this type are stored in the words of the index: numbers of up to 8 bytes,
/// `bool`, `char` and `()`.
#[inline(always)]
pub(crate) fn inline<V: 'static>() -> bool {
    macro_rules! is_one_of {
        ($($type:ty),*) => { $(TypeId::of::<V>() == TypeId::of::<$type>())||* };
    }
    is_one_of!((), bool, char, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64)
}

/// The word of a value whose type is [`inline`].
#[inline(always)]
pub(crate) fn word_of<V: 'static>(value: V) -> u64 {
    assert!(inline::<V>());
    let mut word = 0;
    // SAFETY: no type of the list is larger than a word or has a greater alignment.
    unsafe { (&raw mut word).cast::<V>().write(value) };
    word
}

/// The value in a word.
///
/// # Safety
/// The type of the value is [`inline`], and the word was read in the index of a map with values of
/// this type.
#[inline(always)]
pub(crate) unsafe fn inlined<V: 'static>(word: &u64) -> &V {
    debug_assert!(inline::<V>());
    // SAFETY: `word_of` wrote a `V` into this word.
    unsafe { &*from_ref(word).cast() }
}

/// A value that a map returns, valid while a pin lasts: a reference, or the number itself.
///
/// ```
/// let map: silvics::Map<u32, String> = silvics::Map::new();
/// map.insert(1, "one".to_string());
/// let map = map.pin();
/// let value = map.get(1).expect("inserted");
/// map.remove(1);
/// assert_eq!(value.len(), 3); // still readable
/// let copy: String = value.clone(); // a clone of the value
/// assert_eq!(copy, "one");
/// ```
pub struct ValueRef<'g, V> {
    word: u64,
    lent: PhantomData<&'g V>,
}

impl<'g, V: Value> ValueRef<'g, V> {
    /// The value of a word that was read in the index of a map with values of this type.
    ///
    /// # Safety
    /// The map lives as long as this value, and so does a guard of its domain that was taken before
    /// the word was read.
    #[inline(always)]
    pub(crate) unsafe fn new(word: u64) -> Self {
        Self { word, lent: PhantomData }
    }

    /// Copies the reference. This is an associated function, to be called as
    /// `ValueRef::clone(&value)`: `value.clone()` clones the value itself.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // the trait would hide the clone of the value
    pub fn clone(this: &Self) -> Self {
        Self { ..*this }
    }

    /// Returns a reference that does not borrow the `ValueRef`: it is valid as long as the pin that
    /// protects the value. Returns `None` for [small values](Value): such a value is not in the
    /// map's memory, but in the `ValueRef` itself.
    ///
    /// ```
    /// let map: silvics::Map<u32, String> = silvics::Map::new();
    /// map.insert(1, "one".to_string());
    /// let view = map.pin();
    /// let text: &str = view.get(1).and_then(|value| value.into_ref()).expect("inserted");
    /// assert_eq!(text, "one");
    /// ```
    #[inline(always)]
    pub fn into_ref(self) -> Option<&'g V> {
        // SAFETY: V1: the word is the address of an initialised slot, and the guard that `new`
        // demands keeps the slot from being freed for `'g`.
        (!inline::<V>()).then(|| unsafe { pointer(self.word).as_ref() })
    }

    /// The same value with another lifetime.
    ///
    /// # Safety
    /// The contract of [`ValueRef::new`] holds for the result.
    #[inline(always)]
    pub(super) unsafe fn lengthen<'l>(self) -> ValueRef<'l, V> {
        // SAFETY: the caller's promise.
        unsafe { ValueRef::new(self.word) }
    }
}

impl<V: Value> Deref for ValueRef<'_, V> {
    type Target = V;

    #[inline(always)]
    fn deref(&self) -> &V {
        if inline::<V>() {
            // SAFETY: `new` was given the word of a value.
            return unsafe { inlined(&self.word) };
        }
        // SAFETY: V1: the word is the address of an initialised slot, and the guard that `new`
        // demands keeps the slot from being freed.
        unsafe { pointer(self.word).as_ref() }
    }
}

impl<V: Value + fmt::Debug> fmt::Debug for ValueRef<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<V: Value + fmt::Display> fmt::Display for ValueRef<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<V: Value + PartialEq> PartialEq for ValueRef<'_, V> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<V: Value + PartialEq> PartialEq<V> for ValueRef<'_, V> {
    fn eq(&self, other: &V) -> bool {
        **self == *other
    }
}

/// The address of the slot of a word.
#[inline(always)]
fn pointer<V>(word: u64) -> NonNull<V> {
    NonNull::new(with_exposed_provenance_mut(word as usize)).expect("no slot is at address 0")
}

/// Prefetches the value of a word whose type is not [`inline`].
#[inline(always)]
pub(super) fn fetch<V>(word: u64) {
    prefetch(with_exposed_provenance_mut::<V>(word as usize));
}

/// The memory of values. Values that are too large for a pool's slabs come one by one from a heap.
enum Memory<V: Value, P: Placement> {
    Slots(P::Slots<V>),
    Large(<Shared as Placement>::Slots<V>),
}

impl<V: Value, P: Placement> Memory<V, P> {
    const IS_LARGE: bool =
        size_of::<V>() > Pool::<V>::MAX_SIZE || align_of::<V>() > Pool::<V>::MAX_ALIGN;

    fn new(kind: &'static str, config: &Config) -> Self {
        if Self::IS_LARGE {
            return Self::Large(SlotAlloc::new(kind, config));
        }
        Self::Slots(SlotAlloc::new(kind, config))
    }

    #[inline(always)]
    fn alloc(&self) -> Result<NonNull<V>, AllocError> {
        match self {
            Self::Slots(slots) if !Self::IS_LARGE => slots.alloc(),
            Self::Large(slots) if Self::IS_LARGE => slots.alloc(),
            _ => unreachable!("as `new` has made it"),
        }
    }

    /// Frees a slot.
    ///
    /// # Safety
    /// The contract of [`SlotAlloc::free`] holds for the slot.
    #[inline(always)]
    unsafe fn free(&self, slot: NonNull<V>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Slots(slots) if !Self::IS_LARGE => slots.free(slot),
                Self::Large(slots) if Self::IS_LARGE => slots.free(slot),
                _ => unreachable!("as `new` has made it"),
            }
        }
    }

    fn stats(&self) -> PoolStats {
        match self {
            Self::Slots(slots) => slots.stats(),
            Self::Large(slots) => slots.stats(),
        }
    }

    fn shrink(&self) -> usize {
        match self {
            Self::Slots(slots) => slots.shrink(),
            Self::Large(slots) => slots.shrink(),
        }
    }
}

// Implemented by hand: the auto traits would recurse for a map whose value type contains the map.
// SAFETY: the allocators of `P` are `Send`, and so are values.
unsafe impl<V: Value, P: Placement> Send for Memory<V, P> {}
// SAFETY: the allocators of `P` are `Sync`, and a value is taken back by one thread.
unsafe impl<V: Value, P: Placement> Sync for Memory<V, P> {}

// SAFETY: any thread may call an allocator of `P`, and drop a value, which is `Send`.
unsafe impl<V: Value, P: Placement> Objects for Memory<V, P> {
    #[inline(always)]
    fn runs_user_code(&self) -> bool {
        std::mem::needs_drop::<V>()
    }

    #[inline(always)]
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE && !Self::IS_LARGE && !std::mem::needs_drop::<V>()
    }

    unsafe fn take_back(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe {
            drop_value::<V>(object.cast());
            self.free(object.cast());
        }
    }
}

/// Drops a value.
///
/// # Safety
/// The value is initialised, and nothing else uses it, now or later.
unsafe fn drop_value<V>(value: NonNull<V>) {
    if std::mem::needs_drop::<V>() {
        // SAFETY: the caller's promise.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { drop_in_place(value.as_ptr()) }));
        // The panic hook has reported it; it must not unwind into an unrelated caller.
        if let Err(panic) = dropped {
            std::mem::forget(panic);
        }
    }
}

/// The values of a map in their slots; nothing if the type of the values is [`inline`].
pub(crate) struct Values<V: Value, P: Placement>(Option<Box<Boxed<V, P>>>);

type Boxed<V, P> = Kept<Memory<V, P>>;

impl<V: Value, P: Placement> Values<V, P> {
    /// Those of a map, in a pool of this name.
    pub(crate) fn new(
        kind: &'static str,
        config: impl FnOnce() -> Config,
        domain: &Domain,
    ) -> Self {
        if inline::<V>() {
            return Self(None);
        }
        let config = config().starting_small();
        Self(Some(Box::new(Kept::new(Memory::new(kind, &config), domain, &config.budget))))
    }

    /// The slots, if the type of the values is not [`inline`]. The compiler evaluates that
    /// condition.
    #[inline(always)]
    fn boxed(&self) -> Option<&Boxed<V, P>> {
        self.0.as_deref().filter(|_| !inline::<V>())
    }

    /// Moves a value into a slot, before its word is inserted. If the allocation fails, it flushes
    /// the values that this thread retired, and tries once more.
    #[inline(always)]
    pub(crate) fn draft(
        &self,
        value: V,
        guard: &Guard,
    ) -> Result<Draft<'_, V, P>, (V, AllocError)> {
        let Some(boxed) = self.boxed() else {
            return Ok(Draft { values: self, word: word_of(value) });
        };
        let slot = match boxed.made(guard, Memory::alloc) {
            Ok(slot) => slot,
            Err(error) => return Err((value, error)),
        };
        // SAFETY: a fresh slot has room for a `V`, and no other thread knows it.
        unsafe { slot.write(value) };
        Ok(Draft { values: self, word: slot.as_ptr().expose_provenance() as u64 })
    }

    /// Retires the value of a word that has been taken out of the index.
    ///
    /// # Safety
    /// The caller took the word out of the index, calls this once, and passes a guard of the domain
    /// (V1).
    #[inline(always)]
    pub(crate) unsafe fn retire(&self, word: u64, guard: &Guard) {
        let Some(boxed) = self.boxed() else { return };
        // SAFETY: the caller's promise.
        unsafe { boxed.retire(pointer::<V>(word).cast(), size_of::<V>(), guard) };
    }

    /// Retires a value like [`Values::retire`], and drops no other ones.
    ///
    /// # Safety
    /// That of [`Values::retire`].
    pub(crate) unsafe fn retire_only(&self, word: u64, guard: &Guard) {
        let Some(boxed) = self.boxed() else { return };
        // SAFETY: the caller's promise.
        unsafe { boxed.retire_only(pointer::<V>(word).cast(), size_of::<V>(), guard) };
    }

    /// Drops the values of some ready batches, if there are any. The caller holds no lock.
    #[inline(always)]
    pub(crate) fn drop_some(&self) {
        if let Some(boxed) = self.boxed() {
            boxed.drop_some();
        }
    }

    /// Whether the map must drop each value that is still in the index, when it is dropped.
    pub(crate) fn are_dropped_one_by_one(&self) -> bool {
        self.boxed().is_some_and(|boxed| !boxed.memory().releases_whole())
    }

    /// Drops a value that is in the index.
    ///
    /// # Safety
    /// The word is in the index or was taken out of it, and no other use of it is left.
    pub(crate) unsafe fn drop_in_index(&self, word: u64) {
        if let Some(boxed) = self.boxed() {
            // SAFETY: V1: the slot is initialised. By the caller's promise nothing else uses it.
            unsafe { boxed.memory().take_back(pointer(word)) };
        }
    }

    /// Drops a value that is in the index of a map that is being dropped. Its slot goes with the
    /// pool, if that is released as a whole.
    ///
    /// # Safety
    /// The word is in the index, and no other use of it is left.
    pub(crate) unsafe fn drop_with_map(&self, word: u64) {
        if !P::RELEASES_WHOLE || Memory::<V, P>::IS_LARGE {
            // SAFETY: the caller's promise.
            unsafe { self.drop_in_index(word) };
        } else if self.boxed().is_some() {
            // SAFETY: V1: the slot is initialised. By the caller's promise nothing else uses it.
            unsafe { drop_value::<V>(pointer(word)) };
        }
    }

    /// Seals the values that this thread retired, flushes the domain, and drops all ready batches.
    pub(crate) fn flush(&self) {
        if let Some(boxed) = self.boxed() {
            boxed.flush();
        }
    }

    /// Flushes, and returns empty slabs to the system: see [`Map::shrink`](super::Map::shrink).
    pub(crate) fn shrink(&self) -> usize {
        self.flush();
        self.boxed().map_or(0, |boxed| boxed.memory().shrink())
    }

    /// Drops every retired value that no guard protects, whichever thread retired it.
    pub(crate) fn settle(&mut self) {
        if let Self(Some(boxed)) = self {
            boxed.settle();
        }
    }

    /// The contents of the pool of the values; none if values are stored in the index.
    pub(crate) fn stats(&self) -> Option<PoolStats> {
        self.boxed().map(|boxed| boxed.memory().stats())
    }
}

/// A value in its slot, whose word is not in the index yet. Dropping the draft drops the value.
///
/// An index that panics does so before it inserts the word: it allocates first, and nothing that it
/// calls later panics.
pub(crate) struct Draft<'m, V: Value, P: Placement> {
    values: &'m Values<V, P>,
    word: u64,
}

impl<V: Value, P: Placement> Draft<'_, V, P> {
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        self.word
    }

    /// Ends the draft: its word is in the index.
    #[inline(always)]
    pub(crate) fn placed(self) {
        std::mem::forget(self);
    }

    /// Moves the value out of its slot again: its word is not in the index.
    #[cold]
    pub(crate) fn into_value(self) -> V {
        let draft = ManuallyDrop::new(self);
        let Some(boxed) = draft.values.boxed() else {
            // SAFETY: `word_of` wrote a `V` into the word, and its type is `Copy`.
            return unsafe { (&raw const draft.word).cast::<V>().read() };
        };
        let slot = pointer::<V>(draft.word);
        // SAFETY: `draft` wrote the value. The word never was in the index, so no other thread
        // knows the slot, and it is not used below.
        unsafe {
            let value = slot.read();
            boxed.memory().free(slot);
            value
        }
    }
}

impl<V: Value, P: Placement> Drop for Draft<'_, V, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(boxed) = self.values.boxed() {
            // SAFETY: `draft` wrote the value, and no other thread knows the slot.
            unsafe { boxed.memory().take_back(pointer(self.word)) };
        }
    }
}
