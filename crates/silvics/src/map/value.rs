//! Values of a map: in the index's word where they fit, else each in a slot at one address.
//!
//! # Algorithm
//! An index holds words. A value of a type of the closed list of [`inline`] is its word, its bytes first and zeros
//! behind. Any other is moved into a slot of the map's own pool, where it stays until its key is
//! removed or given another value; its word is the slot's address.
//! ```text
//! insert(k, v):  slot := alloc; *slot := v; old := index.insert(k, slot); retire old
//! get(k):        pin; slot := index.get(k); lend *slot for as long as the pin lasts
//! retire(slot):  into this thread's batch; a full one is freed by the collector once all pins of before are gone, or
//!                if values have destructors waits until it says so: then the next calls of any thread drop them
//! ```
//!
//! # Invariants
//! * V1: every word that the index holds, or that a pinned reader has read there, is of an initialised slot, for it
//!   goes into the index once, is taken out by one writer, and retired by that one, under a pin.
//! * V2: **destructors run where no lock is held**, since they are the user's code and may call the map: when the map
//!   is about to be pinned, by a write to it that has taken effect, by [`Values::settle`], or when it is dropped. The
//!   collector only says when they may: it runs deferred calls wherever somebody pins, under locks of an index too.
//! * V3: whoever has been lent a value borrows the map. So when the map is dropped all of them can be, whatever
//!   guards of its domain there are.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `Waiting::ready` | store, by the collector | `SeqCst` | `take_ready` | reads of the values by those who had pinned happen before the drop; comes before `some_ready` |
//! | `Waiting::ready` | `take_ready` | `SeqCst` | the above | as above |
//! | `some_ready` | store, swap | `SeqCst` | each other | of who clears it and who sets it one is first: either it stays set, or who has cleared it sees what is ready |
//! | `some_ready` | load | Relaxed | – | a hint that it is worth a look: what is missed is seen by a later call |
//!
//! A slot is initialised before the store that publishes its word in the index, which releases it.

use crate::domain::{Domain, Guard, Reclaim, Retired, Sealed};
use crate::error::AllocError;
use silvics_pool::{Config, Placement, Pool, PoolStats, Shared, SlotAlloc};
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_sync::{Mutex, prefetch};
use std::any::TypeId;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, drop_in_place, with_exposed_provenance_mut};
use std::sync::Arc;

/// What a map can hold: anything that threads can share, at one address unless it is a number.
pub trait Value: Send + Sync + 'static {}
impl<V: Send + Sync + 'static> Value for V {}

/// Whether values of this type are in the index's words: numbers of up to 8 bytes, `bool`, `char` and `()`.
#[inline(always)]
pub(crate) fn inline<V: 'static>() -> bool {
    macro_rules! is_one_of {
        ($($type:ty),*) => { $(TypeId::of::<V>() == TypeId::of::<$type>())||* };
    }
    is_one_of!((), bool, char, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64)
}

/// The word of a value that is [`inline`].
#[inline(always)]
fn word_of<V: 'static>(value: V) -> u64 {
    assert!(inline::<V>());
    let mut word = 0;
    // SAFETY: no type of the list is larger or has an address's alignment above a word's.
    unsafe { (&raw mut word).cast::<V>().write(value) };
    word
}

/// A value as a map lends it, as long as a pin lasts: a reference, or for numbers the number itself.
///
/// ```
/// let map: silvics::Map<u32, String> = silvics::Map::new();
/// map.insert(1, "one".to_string());
/// let map = map.pin();
/// let value = map.get(1).expect("inserted");
/// map.remove(1);
/// assert_eq!(value.len(), 3); // still readable
/// ```
pub struct ValueRef<'g, V> {
    word: u64,
    lent: PhantomData<&'g V>,
}

impl<V> Clone for ValueRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for ValueRef<'_, V> {}

impl<V: Value> ValueRef<'_, V> {
    /// A word of the index of a map of such values.
    ///
    /// # Safety
    /// A guard of the map's domain that was there when the word was read, and the map, live as long as this.
    #[inline(always)]
    pub(crate) unsafe fn new(word: u64) -> Self {
        Self { word, lent: PhantomData }
    }
}

impl<V: Value> Deref for ValueRef<'_, V> {
    type Target = V;

    #[inline(always)]
    fn deref(&self) -> &V {
        if inline::<V>() {
            // SAFETY: `word_of` has written a `V` there.
            return unsafe { &*(&raw const self.word).cast() };
        }
        // SAFETY: V1, by the promise to `new`.
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

/// The slot of a word.
#[inline(always)]
fn pointer<V>(word: u64) -> NonNull<V> {
    NonNull::new(with_exposed_provenance_mut(word as usize)).expect("no slot is at address 0")
}

/// Asks for the value of a word, which is not [`inline`].
#[inline(always)]
pub(super) fn fetch<V>(word: u64) {
    prefetch(pointer::<V>(word).as_ptr());
}

/// The slots of a map's values.
struct Slots<V: Value, P: Placement> {
    memory: Memory<V, P>,
    /// Sealed batches, the oldest first; none where values have no destructors.
    waiting: Mutex<VecDeque<Waiting>>,
    /// Whether some of them can be dropped.
    some_ready: Arc<AtomicBool>,
}

/// What is too large for a pool's slabs comes one by one from a heap.
enum Memory<V: Value, P: Placement> {
    Slots(P::Slots<V>),
    Large(<Shared as Placement>::Slots<V>),
}

/// A batch of retired values.
struct Waiting {
    batch: Sealed,
    /// Whether nobody can read them any more.
    ready: Arc<AtomicBool>,
}

// SAFETY: `V` is `Send + Sync`, and of unlinked values only whoever takes a batch off the list has them.
unsafe impl<V: Value, P: Placement> Send for Slots<V, P> {}
// SAFETY: as above.
unsafe impl<V: Value, P: Placement> Sync for Slots<V, P> {}

impl<V: Value, P: Placement> Memory<V, P> {
    const IS_LARGE: bool =
        size_of::<V>() > Pool::<V>::MAX_SIZE || align_of::<V>() > Pool::<V>::MAX_ALIGN;

    fn new(config: &Config) -> Self {
        if Self::IS_LARGE {
            return Self::Large(SlotAlloc::new("value", config));
        }
        Self::Slots(SlotAlloc::new("value", config))
    }

    #[inline(always)]
    fn alloc(&self) -> Result<NonNull<V>, AllocError> {
        match self {
            Self::Slots(slots) if !Self::IS_LARGE => slots.alloc(),
            Self::Large(slots) if Self::IS_LARGE => slots.alloc(),
            _ => unreachable!("as `new` has made it"),
        }
    }

    /// # Safety
    /// As [`SlotAlloc::free`].
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

// SAFETY: allocators are shared by all threads, and so can values be.
unsafe impl<V: Value, P: Placement> Reclaim for Slots<V, P> {
    fn releases_whole(&self) -> bool {
        P::Slots::<V>::RELEASES_WHOLE && !Memory::<V, P>::IS_LARGE && !std::mem::needs_drop::<V>()
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        let value = object.cast::<V>();
        if std::mem::needs_drop::<V>() {
            // SAFETY: an initialised value (V1) that nobody else has, by the caller's promise.
            let dropped =
                catch_unwind(AssertUnwindSafe(|| unsafe { drop_in_place(value.as_ptr()) }));
            // A destructor that panics has been heard, and is no matter of whose call it was in.
            if let Err(panic) = dropped {
                std::mem::forget(panic);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.memory.free(value) };
    }

    fn sealed(pool: &Arc<Self>, batch: Sealed) -> impl FnOnce() + 'static {
        let (now, later) = if std::mem::needs_drop::<V>() {
            let ready = Arc::new(AtomicBool::new(false));
            pool.waiting.lock().push_back(Waiting { batch, ready: Arc::clone(&ready) });
            (None, Some((ready, Arc::clone(&pool.some_ready))))
        } else {
            (Some((batch, Arc::clone(pool))), None)
        };
        move || {
            if let Some((batch, pool)) = now {
                // SAFETY: D1 and D2 of the domain: no guard taken later can reach the values, and all earlier ones are gone.
                unsafe { batch.run(&*pool) };
            }
            if let Some((ready, some_ready)) = later {
                ready.store(true, Ordering::SeqCst);
                some_ready.store(true, Ordering::SeqCst);
            }
        }
    }
}

impl<V: Value, P: Placement> Slots<V, P> {
    /// The oldest batch, if nobody can read its values any more.
    fn take_ready(&self) -> Option<Sealed> {
        let mut waiting = self.waiting.lock();
        if !waiting.front()?.ready.load(Ordering::SeqCst) {
            return None;
        }
        waiting.pop_front().map(|waiting| waiting.batch)
    }

    /// Drops the values of so many batches, at most.
    fn drop_ready(&self, most: usize) {
        std::thread_local! {
            /// A value's destructor that writes to the map has more of them dropped, but not by itself.
            static DROPPING: Cell<bool> = const { Cell::new(false) };
        }
        if DROPPING.try_with(|dropping| dropping.replace(true)).unwrap_or(true) {
            return;
        }
        self.some_ready.swap(false, Ordering::SeqCst);
        for left in (0..most).rev() {
            let Some(batch) = self.take_ready() else { break };
            if left == 0 {
                self.some_ready.store(true, Ordering::SeqCst); // perhaps
            }
            // SAFETY: each was retired once (V1), and nobody reads it any more.
            unsafe { batch.run(self) };
        }
        DROPPING.with(|dropping| dropping.set(false));
    }
}

impl<V: Value, P: Placement> Drop for Slots<V, P> {
    fn drop(&mut self) {
        if self.releases_whole() {
            return;
        }
        while let Some(Waiting { batch, .. }) = { self.waiting.lock().pop_front() } {
            // SAFETY: V3.
            unsafe { batch.run(self) };
        }
    }
}

/// The values of a map that are not [`inline`]; none of any other.
pub(crate) struct Values<V: Value, P: Placement>(Option<Boxed<V, P>>);

struct Boxed<V: Value, P: Placement> {
    retired: Retired<Slots<V, P>>,
    slots: Arc<Slots<V, P>>,
}

/// Batches that a sealed one pays for: more than one, so that the list becomes shorter.
const PAID: usize = 2;

impl<V: Value, P: Placement> Values<V, P> {
    pub(crate) fn new(config: &Config, domain: &Domain) -> Self {
        if inline::<V>() {
            return Self(None);
        }
        let (waiting, some_ready) = (Mutex::default(), Arc::new(AtomicBool::new(false)));
        let slots = Arc::new(Slots { memory: Memory::new(config), waiting, some_ready });
        let retired = Retired::new(Arc::clone(&slots), domain.clone(), &config.budget);
        Self(Some(Boxed { retired, slots }))
    }

    /// Nothing for values that are [`inline`], for which the compiler sees it.
    #[inline(always)]
    fn boxed(&self) -> Option<&Boxed<V, P>> {
        self.0.as_ref().filter(|_| !inline::<V>())
    }

    /// A value on its way into the index. If memory is short, what this thread has retired is flushed and the
    /// attempt repeated once.
    #[inline(always)]
    pub(crate) fn draft(
        &self,
        value: V,
        guard: &Guard,
    ) -> Result<Draft<'_, V, P>, (V, AllocError)> {
        let Some(boxed) = self.boxed() else {
            return Ok(Draft { values: self, word: word_of(value) });
        };
        let slot = match boxed.slots.memory.alloc() {
            Ok(slot) => slot,
            Err(_) => match boxed.alloc_after_flush(guard) {
                Ok(slot) => slot,
                Err(error) => return Err((value, error)),
            },
        };
        // SAFETY: a fresh slot has room for a `V` and is ours alone.
        unsafe { slot.write(value) };
        Ok(Draft { values: self, word: slot.as_ptr().expose_provenance() as u64 })
    }

    /// Retires the value of a word that has been taken out of the index.
    ///
    /// # Safety
    /// V1: by whoever took it out, once, under a guard of the domain.
    #[inline(always)]
    pub(crate) unsafe fn retire(&self, word: u64, guard: &Guard) {
        let Some(boxed) = self.boxed() else { return };
        let value = pointer::<V>(word);
        // SAFETY: the caller's promise.
        let sealed = unsafe { boxed.retired.retire(value.cast(), size_of::<V>(), guard) };
        if sealed && std::mem::needs_drop::<V>() {
            boxed.slots.drop_ready(PAID);
        }
    }

    /// Drops some of the values that nobody can read any more, if there are such. No lock is held.
    #[inline(always)]
    pub(crate) fn drop_some(&self) {
        if let Some(boxed) = self.boxed().filter(|_| std::mem::needs_drop::<V>())
            && boxed.slots.some_ready.load(Ordering::Relaxed)
        {
            boxed.slots.drop_ready(PAID);
        }
    }

    /// Whether dropping the index must be told which values there are.
    pub(crate) fn are_dropped_one_by_one(&self) -> bool {
        self.boxed().is_some_and(|boxed| !boxed.slots.releases_whole())
    }

    /// Drops a value that is in the index.
    ///
    /// # Safety
    /// Nobody uses the index's word any more.
    pub(crate) unsafe fn drop_in_index(&self, word: u64) {
        if let Some(boxed) = self.boxed() {
            // SAFETY: V1, by the caller's promise.
            unsafe { boxed.slots.reclaim(pointer(word)) };
        }
    }

    /// Seals what this thread has retired, flushes the domain, and drops what nobody can read any more.
    pub(crate) fn flush(&self) {
        if let Some(boxed) = self.boxed() {
            boxed.retired.flush_unpinned();
            boxed.slots.drop_ready(usize::MAX);
        }
    }

    /// See [`Map::shrink`](super::Map::shrink).
    pub(crate) fn shrink(&self) -> usize {
        self.flush();
        self.boxed().map_or(0, |boxed| boxed.slots.memory.shrink())
    }

    /// Drops everything that is retired, whoever did it.
    pub(crate) fn settle(&mut self) {
        let Self(Some(boxed)) = self else { return };
        boxed.retired.drain();
        boxed.slots.drop_ready(usize::MAX);
    }

    /// Nothing where values are in the index.
    pub(crate) fn stats(&self) -> Option<PoolStats> {
        self.boxed().map(|boxed| boxed.slots.memory.stats())
    }
}

impl<V: Value, P: Placement> Boxed<V, P> {
    #[cold]
    fn alloc_after_flush(&self, guard: &Guard) -> Result<NonNull<V>, AllocError> {
        self.retired.flush(guard);
        self.slots.drop_ready(usize::MAX);
        self.slots.memory.alloc()
    }
}

/// A value that is not in the index yet: given back, or else dropped, unless it gets there. An index that unwinds does so before it
/// has anything: it allocates first, and nothing unwinds of what it calls later.
pub(crate) struct Draft<'m, V: Value, P: Placement> {
    values: &'m Values<V, P>,
    word: u64,
}

impl<V: Value, P: Placement> Draft<'_, V, P> {
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        self.word
    }

    /// It is in the index.
    #[inline(always)]
    pub(crate) fn placed(self) {
        std::mem::forget(self);
    }

    /// It is not, and goes back to where it came from.
    #[cold]
    pub(crate) fn into_value(self) -> V {
        let draft = ManuallyDrop::new(self);
        let Some(boxed) = draft.values.boxed() else {
            // SAFETY: `word_of` has written a `V`, of a type that can be copied.
            return unsafe { (&raw const draft.word).cast::<V>().read() };
        };
        let slot = pointer::<V>(draft.word);
        // SAFETY: written by `draft`, ours alone, and not used any more.
        unsafe {
            let value = slot.read();
            boxed.slots.memory.free(slot);
            value
        }
    }
}

impl<V: Value, P: Placement> Drop for Draft<'_, V, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(boxed) = self.values.boxed() {
            // SAFETY: written by `draft` and ours alone.
            unsafe { boxed.slots.reclaim(pointer(self.word)) };
        }
    }
}
