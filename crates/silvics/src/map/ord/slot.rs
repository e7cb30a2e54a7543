//! The keys of a map of any order, as nodes of the tree have them.
//!
//! A slot has a key's head, if the order has heads, and its word: the address of the key, or a
//! number itself (`value.rs`).
//! The tree reads a key only to compare it: under a guard, in a node that never changes.

use super::order::Comparator;
use crate::ca::key::{Slots, private};
use crate::domain::Guard;
use crate::map::value::{Value, ValueRef, Values, fetch, inline};
use silvics_pool::Placement;
use silvics_sync::atomic::{AtomicU64, Ordering as Memory};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Keys of type `K` in the order of `C`, in a memory of type `M`. Slots have heads of type `H`.
pub(super) struct ByOrder<K, C, M, H>(PhantomData<(K, C, M, H)>);

impl<K, C, M, H> private::Sealed for ByOrder<K, C, M, H> {}

/// The memory of keys.
pub(super) trait KeyMemory: Send + Sync + 'static {
    /// Whether entries have values beside their keys.
    const HAS_VALUES: bool;

    /// Retires a key. The caller may hold a lock.
    ///
    /// # Safety
    /// No new reader can reach the key. It is retired once, under a guard of the map's domain.
    unsafe fn retire_only(&self, word: u64, guard: &Guard);
}

impl<K: Value, P: Placement> KeyMemory for Values<K, P> {
    const HAS_VALUES: bool = true;

    unsafe fn retire_only(&self, word: u64, guard: &Guard) {
        // SAFETY: our contract.
        unsafe { Values::retire_only(self, word, guard) };
    }
}

/// A head as a slot has it: a number, or nothing.
pub(super) trait Head: Copy + PartialEq + Send + Sync + 'static {
    /// Its place.
    type Place;

    fn of(head: u64) -> Self;
    fn get(self) -> u64;
    fn place(self) -> Self::Place;
    fn load(place: &Self::Place) -> Self;
    fn store(place: &Self::Place, head: Self);
}

impl Head for u64 {
    type Place = AtomicU64;

    #[inline(always)]
    fn of(head: u64) -> u64 {
        head
    }
    #[inline(always)]
    fn get(self) -> u64 {
        self
    }
    fn place(self) -> AtomicU64 {
        AtomicU64::new(self)
    }
    #[inline(always)]
    fn load(place: &AtomicU64) -> u64 {
        place.load(Memory::Relaxed) // nodes do not change once they are linked
    }
    #[inline(always)]
    fn store(place: &AtomicU64, head: u64) {
        place.store(head, Memory::Relaxed); // likewise
    }
}

impl Head for () {
    type Place = ();

    #[inline(always)]
    fn of(_head: u64) {}
    #[inline(always)]
    fn get(self) -> u64 {
        0
    }
    fn place(self) {}
    #[inline(always)]
    fn load((): &()) {}
    #[inline(always)]
    fn store((): &(), (): ()) {}
}

/// A key as a node has it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Slot<H> {
    head: H,
    pub(super) word: u64,
}

impl<H: Head> Slot<H> {
    #[inline(always)]
    pub(super) fn new(head: u64, word: u64) -> Self {
        Self { head: H::of(head), word }
    }

    /// The head of the key, or zero if slots have none.
    #[inline(always)]
    pub(super) fn head(self) -> u64 {
        self.head.get()
    }
}

/// The place of a slot.
pub(super) struct Place<H: Head>(H::Place, AtomicU64);

/// A key that is searched: all that a search needs to compare it.
pub(super) struct Probe<'k, K, C> {
    head: Option<u64>,
    against: Against<'k, K, C>,
    memo: Option<&'k Memo>,
}

/// The comparisons of a call that searches again and again: from its third search on, it has the
/// outcomes of the searches before, from the second one on. So the call ends even if comparisons
/// write to the map, unless they always add another key, or if the comparator answers differently
/// each time.
#[derive(Default)]
pub(super) struct Memo {
    searches: Cell<u32>,
    /// The words of keys, and how they compare. A word means one key while the guard lives.
    known: RefCell<Vec<(u64, Ordering)>>,
}

impl Memo {
    /// Notes that a search begins that may change the map.
    pub(super) fn search(&self) {
        self.searches.set(self.searches.get().saturating_add(1));
    }

    fn is_used(&self) -> bool {
        self.searches.get() > 1
    }

    #[cold]
    fn known(&self, word: u64) -> Option<Ordering> {
        let known = self.known.borrow();
        known.iter().find(|(of, _)| *of == word).map(|(_, order)| *order)
    }

    #[cold]
    fn note(&self, word: u64, order: Ordering) {
        let mut known = self.known.borrow_mut();
        if known.try_reserve(1).is_ok() {
            known.push((word, order));
        }
    }
}

enum Against<'k, K, C> {
    /// A key of the map.
    Key(&'k C, u64),
    /// A value of the caller.
    Asked(&'k dyn Fn(&K) -> Ordering),
}

impl<K, C> Clone for Against<'_, K, C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, C> Copy for Against<'_, K, C> {}

impl<K, C> Clone for Probe<'_, K, C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, C> Copy for Probe<'_, K, C> {}

impl<'k, K, C> Probe<'k, K, C> {
    /// A key that has this word and this head.
    ///
    /// # Safety
    /// The key stays readable while the probe is used.
    pub(super) unsafe fn of_key<M>(
        head: u64,
        word: u64,
        held: &'k Keys<C, M>,
        memo: Option<&'k Memo>,
    ) -> Self {
        Self { head: Some(head), against: Against::Key(&held.order, word), memo }
    }

    /// A value of the caller, which `compare` compares with a key. Its head may be unknown.
    pub(super) fn asked(
        head: Option<u64>,
        compare: &'k dyn Fn(&K) -> Ordering,
        memo: Option<&'k Memo>,
    ) -> Self {
        Self { head, against: Against::Asked(compare), memo }
    }

    /// Notes that a search begins that may change the map.
    pub(super) fn search(&self) {
        if let Some(memo) = self.memo {
            memo.search();
        }
    }

    /// Compares a key with this one.
    #[inline(always)]
    fn compare(&self, key: &K) -> Ordering
    where
        K: Value,
        C: Comparator<K>,
    {
        match self.against {
            Against::Key(order, word) => {
                // SAFETY: the contract of `probe_slot`: the key stays readable.
                let other = unsafe { ValueRef::<K>::new(word) };
                order.compare(key, &other)
            }
            Against::Asked(compare) => compare(key),
        }
    }
}

/// The order of the keys of a map, and the keys themselves.
pub(super) struct Keys<C, M> {
    pub(super) order: C,
    pub(super) keys: M,
}

impl<K: Value, C: Comparator<K>, M: KeyMemory, H: Head> Slots for ByOrder<K, C, M, H> {
    type Slot = Slot<H>;
    type Place = Place<H>;
    type Probe<'k> = Probe<'k, K, C>;
    type New<'k> = Slot<H>;
    type Order = Keys<C, M>;
    const HAS_OBJECTS: bool = false;
    const BOUNDS_ARE_ENTRIES: bool = true;
    const HAS_VALUES: bool = M::HAS_VALUES;

    #[inline]
    unsafe fn probe_slot(slot: Slot<H>, keys: &Self::Order) -> Probe<'_, K, C> {
        // SAFETY: our contract.
        unsafe { Probe::of_key(slot.head.get(), slot.word, keys, None) }
    }

    fn place(slot: Slot<H>) -> Place<H> {
        Place(slot.head.place(), AtomicU64::new(slot.word))
    }

    #[inline(always)]
    fn load(place: &Place<H>) -> Slot<H> {
        // Relaxed: nodes do not change once they are linked.
        Slot { head: H::load(&place.0), word: place.1.load(Memory::Relaxed) }
    }

    #[inline(always)]
    fn store(place: &Place<H>, slot: Slot<H>) {
        H::store(&place.0, slot.head);
        place.1.store(slot.word, Memory::Relaxed); // as in `load`
    }

    fn unused() -> Slot<H> {
        Slot::new(0, 0)
    }

    #[inline(always)]
    fn order(slot: Slot<H>, probe: &Probe<'_, K, C>) -> Option<Ordering> {
        if size_of::<H>() == 0 {
            return None;
        }
        let order = slot.head.get().cmp(&probe.head?);
        order.is_ne().then_some(order)
    }

    #[inline(always)]
    unsafe fn order_by_object(slot: Slot<H>, probe: &Probe<'_, K, C>) -> Ordering {
        // SAFETY: our contract: the key is in the tree, and was not retired before the guard.
        let key = unsafe { ValueRef::<K>::new(slot.word) };
        let Some(memo) = probe.memo.filter(|memo| memo.is_used()) else {
            return probe.compare(&key);
        };
        memo.known(slot.word).unwrap_or_else(|| {
            let order = probe.compare(&key);
            memo.note(slot.word, order);
            order
        })
    }

    #[inline(always)]
    fn prefetch(slot: impl FnOnce() -> Slot<H>) {
        if !inline::<K>() {
            fetch::<K>(slot().word);
        }
    }

    fn again(probe: &Probe<'_, K, C>) {
        probe.search();
    }

    fn are_same(a: Slot<H>, b: Slot<H>) -> bool {
        a.word == b.word
    }

    fn len(_key: Slot<H>) -> usize {
        0
    }

    fn object_bytes(_key: Slot<H>, _is_bound: bool) -> usize {
        0
    }

    unsafe fn slot(key: Slot<H>, _object: Option<NonNull<u8>>) -> Slot<H> {
        key
    }

    fn object(_slot: Slot<H>) -> Option<NonNull<u8>> {
        None
    }

    unsafe fn bound<'k>(_left: Slot<H>, right: Slot<H>, _low: bool) -> Self::New<'k> {
        right
    }

    fn id(slot: Slot<H>) -> Option<usize> {
        (!inline::<K>()).then_some(slot.word as usize)
    }

    unsafe fn retire(slot: Slot<H>, keys: &Self::Order, guard: &Guard) {
        // SAFETY: our contract.
        unsafe { keys.keys.retire_only(slot.word, guard) };
    }
}
