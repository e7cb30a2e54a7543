//! Keys as container nodes and route nodes have them.
//!
//! A node has a *slot* for each key: a number itself, or the first eight bytes of a byte string and
//! a pointer to an object with all its bytes. The pointer carries the length, up to nine. So most
//! comparisons of byte strings read the slot alone.
//!
//! A *bound* is a key that separates two children. It may be any key that is larger than those on
//! the left and at most as large as those on the right. Bounds of up to eight bytes need no object.

use super::word::Word;
use crate::domain::Guard;
use crate::encoding::{IndexKey, common_prefix};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::tagged::{AtomicTagged, Tagged};
use std::cmp::Ordering as Order;
use std::ptr::NonNull;

/// The bytes of a key that lie in its slot.
const HEAD: usize = 8;
/// The bytes of the length in front of a key's bytes.
pub(crate) const LENGTH_BYTES: usize = 8;
/// The longest byte string that is a key.
pub(crate) const MAX_BYTES: usize = 512 << 10;

/// Keys as nodes hold them, and their order. The trait is sealed.
#[doc(hidden)]
pub trait Slots: private::Sealed + 'static {
    /// A key as a node has it.
    type Slot: Copy + PartialEq;
    /// The place of a slot.
    type Place;
    /// A key that is searched.
    type Probe<'k>: Copy;
    /// A key that is put into a tree.
    type New<'k>: Copy;
    /// The data beside keys on which the order depends, and the place of keys that the tree does
    /// not own.
    type Order: Send + Sync + 'static;
    /// Whether keys have objects that the tree owns.
    const HAS_OBJECTS: bool;
    /// Whether the bounds of nodes are keys of entries. If not, they are keys of their own.
    const BOUNDS_ARE_ENTRIES: bool = false;

    /// Whether entries have values beside their keys. If not, an update of a present key replaces
    /// the key.
    const HAS_VALUES: bool = true;

    /// The key of a slot as a probe.
    ///
    /// # Safety
    /// The object of the slot is not reclaimed while the probe is used.
    unsafe fn probe_slot(slot: Self::Slot, order: &Self::Order) -> Self::Probe<'_>;
    fn place(slot: Self::Slot) -> Self::Place;
    fn load(place: &Self::Place) -> Self::Slot;
    fn store(place: &Self::Place, slot: Self::Slot);
    /// A slot without an object, for places that have no key yet.
    fn unused() -> Self::Slot;
    /// The order of a slot's key and a probe, or nothing if that depends on the key's object.
    fn order(slot: Self::Slot, probe: &Self::Probe<'_>) -> Option<Order>;
    /// The order of a slot's key and a probe.
    ///
    /// # Safety
    /// The object of the slot is not reclaimed during the call.
    unsafe fn order_by_object(slot: Self::Slot, probe: &Self::Probe<'_>) -> Order;

    /// Prefetches what [`order_by_object`](Self::order_by_object) would read of a key. The slot may
    /// be of a key that is not in the tree any more.
    #[inline(always)]
    fn prefetch(_slot: impl FnOnce() -> Self::Slot) {}

    /// Notes that a call searches for a key again, since the tree has changed meanwhile.
    fn again(_probe: &Self::Probe<'_>) {}

    /// Whether two slots are of the same key object, or of the same number.
    fn are_same(a: Self::Slot, b: Self::Slot) -> bool {
        a == b
    }

    /// The length of a key, for keys that may be too long.
    fn len(key: Self::New<'_>) -> usize;
    /// The bytes of a key's object, of an entry or of a bound. Zero if it needs none.
    fn object_bytes(key: Self::New<'_>, is_bound: bool) -> usize;
    /// The slot of a key with an object, if it needs one.
    ///
    /// # Safety
    /// The object has the bytes that `object_bytes` says, and nobody else has it.
    unsafe fn slot(key: Self::New<'_>, object: Option<NonNull<u8>>) -> Self::Slot;
    /// The key's object, if it has one that the tree owns.
    fn object(slot: Self::Slot) -> Option<NonNull<u8>>;
    /// A bound between the keys of two neighbouring entries: see [`CaKey::between`].
    ///
    /// # Safety
    /// The objects of the slots are not reclaimed during `'k`.
    unsafe fn bound<'k>(left: Self::Slot, right: Self::Slot, low: bool) -> Self::New<'k>;
    /// The address of a key that the tree does not own, if the key has one.
    fn id(_slot: Self::Slot) -> Option<usize> {
        None
    }
    /// Retires a key that the tree does not own, and that neither an entry nor a route node has any
    /// more.
    ///
    /// # Safety
    /// No new reader can reach the key. It is retired once, under a guard of the tree's domain.
    unsafe fn retire(_slot: Self::Slot, _order: &Self::Order, _guard: &Guard) {}
}

/// A key type that the tree can hold: `u64`, `u128` or `[u8]`. The trait is sealed.
pub trait CaKey:
    IndexKey + for<'k> Slots<Order = (), New<'k> = <Self as IndexKey>::Ref<'k>>
{
    #[doc(hidden)]
    fn probe(key: Self::Ref<'_>) -> Self::Probe<'_>;
    /// The key of an entry's slot.
    ///
    /// # Safety
    /// The object of the slot is not reclaimed during `'g`. The slot is that of an entry.
    #[doc(hidden)]
    unsafe fn key<'g>(slot: Self::Slot) -> Self::Ref<'g>;
    /// A short bound between two neighbouring keys. Numbers are as short as each other, and theirs
    /// is as low as possible if `low`, else as high.
    #[doc(hidden)]
    fn between<'k>(left: Self::Ref<'_>, right: Self::Ref<'k>, low: bool) -> Self::New<'k>;
}

pub(crate) mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
    impl Sealed for [u8] {}
}

/// A place for a number of 128 bits: two words. Readers validate that they belong together.
#[derive(Debug)]
pub struct Wide(AtomicU64, AtomicU64);

macro_rules! number {
    ($key:ty, $place:ty, $new:expr, $load:expr, $store:expr) => {
        impl Slots for $key {
            type Slot = Self;
            type Place = $place;
            type Probe<'k> = Self;
            type New<'k> = Self;
            type Order = ();
            const HAS_OBJECTS: bool = false;

            #[inline(always)]
            unsafe fn probe_slot(slot: Self, _order: &()) -> Self::Probe<'_> {
                slot
            }
            fn place(slot: Self) -> $place {
                $new(slot)
            }
            #[inline(always)]
            fn load(place: &$place) -> Self {
                $load(place)
            }
            #[inline(always)]
            fn store(place: &$place, slot: Self) {
                $store(place, slot);
            }
            fn unused() -> Self {
                0
            }
            #[inline(always)]
            fn order(slot: Self, probe: &Self) -> Option<Order> {
                Some(slot.cmp(probe))
            }
            #[inline(always)]
            unsafe fn order_by_object(slot: Self, probe: &Self) -> Order {
                slot.cmp(probe)
            }
            fn len(_key: Self) -> usize {
                size_of::<Self>()
            }
            fn object_bytes(_key: Self, _is_bound: bool) -> usize {
                0
            }
            unsafe fn slot(key: Self, _object: Option<NonNull<u8>>) -> Self {
                key
            }
            fn object(_slot: Self) -> Option<NonNull<u8>> {
                None
            }
            unsafe fn bound<'k>(left: Self, right: Self, low: bool) -> Self::New<'k> {
                Self::between(left, right, low)
            }
        }

        impl CaKey for $key {
            #[inline(always)]
            fn probe(key: Self::Ref<'_>) -> Self::Probe<'_> {
                key
            }
            #[inline(always)]
            unsafe fn key<'g>(slot: Self) -> Self::Ref<'g> {
                slot
            }
            fn between<'k>(left: Self::Ref<'_>, right: Self::Ref<'k>, low: bool) -> Self::New<'k> {
                if low { left + 1 } else { right } // `left` is the smaller one
            }
        }
    };
}

// Relaxed: the lock of the base node orders all accesses (see the table of the module docs).
number!(
    u64,
    AtomicU64,
    AtomicU64::new,
    |place: &AtomicU64| place.load(Ordering::Relaxed),
    |place: &AtomicU64, slot| place.store(slot, Ordering::Relaxed)
);
number!(
    u128,
    Wide,
    |slot: u128| Wide(AtomicU64::new((slot >> 64) as u64), AtomicU64::new(slot as u64)),
    |place: &Wide| {
        let high = u128::from(place.0.load(Ordering::Relaxed));
        high << 64 | u128::from(place.1.load(Ordering::Relaxed))
    },
    |place: &Wide, slot: u128| {
        place.0.store((slot >> 64) as u64, Ordering::Relaxed);
        place.1.store(slot as u64, Ordering::Relaxed);
    }
);

/// The slot of a byte string: its first bytes, and its object with the length as a hint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TextSlot {
    head: u64,
    object: Tagged<u8>,
}

impl TextSlot {
    /// The length, or nine if it is more than eight.
    fn short_len(self) -> usize {
        usize::from(self.object.hint())
    }

    /// The bytes behind the first eight.
    ///
    /// # Safety
    /// The object is not reclaimed during `'k`.
    unsafe fn rest<'k>(self) -> &'k [u8] {
        if self.short_len() <= HEAD {
            return &[];
        }
        // SAFETY: our contract: the object is there. It never changes.
        unsafe { &bytes_of(self.object.pointer())[HEAD..] }
    }
}

/// The bytes of a key's object.
///
/// # Safety
/// The object is initialised and not reclaimed during `'k`.
pub(crate) unsafe fn bytes_of<'k>(object: *mut u8) -> &'k [u8] {
    // SAFETY: our contract: the length lies in front of the bytes.
    unsafe {
        let len = touch(object).cast::<u64>().read() as usize;
        std::slice::from_raw_parts(object.byte_add(LENGTH_BYTES), len)
    }
}

/// The place of a [`TextSlot`].
pub struct TextPlace(AtomicU64, AtomicTagged<u8>);

/// A byte string that is searched.
#[derive(Clone, Copy, Debug)]
pub struct TextProbe<'k> {
    head: u64,
    /// The length, or nine if it is more than eight.
    short_len: usize,
    /// The bytes behind the first eight.
    rest: &'k [u8],
}

/// The first eight bytes, with zeros behind a shorter string.
#[inline]
fn head_of(bytes: &[u8]) -> u64 {
    let mut head = [0; HEAD];
    let len = bytes.len().min(HEAD);
    head[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(head)
}

impl Slots for [u8] {
    type Slot = TextSlot;
    type Place = TextPlace;
    type Probe<'k> = TextProbe<'k>;
    type New<'k> = &'k [u8];
    type Order = ();
    const HAS_OBJECTS: bool = true;

    unsafe fn probe_slot(slot: TextSlot, _order: &()) -> TextProbe<'_> {
        // SAFETY: our contract.
        let rest = unsafe { slot.rest() };
        TextProbe { head: slot.head, short_len: slot.short_len(), rest }
    }

    fn place(slot: TextSlot) -> TextPlace {
        TextPlace(AtomicU64::new(slot.head), AtomicTagged::new(slot.object))
    }

    #[inline(always)]
    fn load(place: &TextPlace) -> TextSlot {
        let head = place.0.load(Ordering::Relaxed); // as for numbers
        TextSlot { head, object: place.1.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    fn store(place: &TextPlace, slot: TextSlot) {
        place.0.store(slot.head, Ordering::Relaxed); // as for numbers
        place.1.store(slot.object, Ordering::Relaxed);
    }

    fn unused() -> TextSlot {
        TextSlot { head: 0, object: Tagged::null() }
    }

    #[inline(always)]
    fn order(slot: TextSlot, probe: &TextProbe<'_>) -> Option<Order> {
        let by_head = slot.head.cmp(&probe.head);
        if by_head.is_ne() {
            return Some(by_head);
        }
        // One of them ends within the first eight bytes, and behind it are only zeros in the other.
        let (a, b) = (slot.short_len(), probe.short_len);
        (a.min(b) <= HEAD).then(|| a.cmp(&b))
    }

    unsafe fn order_by_object(slot: TextSlot, probe: &TextProbe<'_>) -> Order {
        let by_rest = || {
            // SAFETY: our contract.
            unsafe { slot.rest() }.cmp(probe.rest)
        };
        Self::order(slot, probe).unwrap_or_else(by_rest)
    }

    fn len(key: &[u8]) -> usize {
        key.len()
    }

    fn object_bytes(key: &[u8], is_bound: bool) -> usize {
        if is_bound && key.len() <= HEAD { 0 } else { LENGTH_BYTES + key.len() }
    }

    unsafe fn slot(key: &[u8], object: Option<NonNull<u8>>) -> TextSlot {
        if let Some(object) = object {
            // SAFETY: our contract: there is room for the length and the bytes.
            unsafe {
                object.cast::<u64>().write(key.len() as u64);
                let to = object.byte_add(LENGTH_BYTES).as_ptr();
                to.copy_from_nonoverlapping(key.as_ptr(), key.len());
            }
        }
        let pointer = object.map_or(Tagged::null(), |object| Tagged::new(object.as_ptr()));
        let short_len = key.len().min(HEAD + 1) as u16;
        TextSlot { head: head_of(key), object: pointer.with_hint(short_len) }
    }

    fn object(slot: TextSlot) -> Option<NonNull<u8>> {
        NonNull::new(slot.object.pointer())
    }

    unsafe fn bound<'k>(left: TextSlot, right: TextSlot, low: bool) -> &'k [u8] {
        // SAFETY: our contract. Entries have objects.
        unsafe { Self::between(Self::key(left), Self::key(right), low) }
    }
}

impl CaKey for [u8] {
    #[inline]
    fn probe(key: Self::Ref<'_>) -> Self::Probe<'_> {
        let rest = key.get(HEAD..).unwrap_or_default();
        TextProbe { head: head_of(key), short_len: key.len().min(HEAD + 1), rest }
    }

    #[inline]
    unsafe fn key<'g>(slot: TextSlot) -> Self::Ref<'g> {
        // SAFETY: our contract: the slot of an entry has an object.
        unsafe { bytes_of(slot.object.pointer()) }
    }

    fn between<'k>(left: Self::Ref<'_>, right: Self::Ref<'k>, _low: bool) -> Self::New<'k> {
        let common = common_prefix(left, right, 0);
        &right[..right.len().min(common + 1)]
    }
}

/// The word of a slot's object.
pub(crate) fn object_word<K: Slots + ?Sized>(slot: K::Slot) -> Option<Word> {
    K::object(slot).map(Word::key)
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    /// Slots without an object order as their keys, whatever the lengths.
    #[test]
    fn slots_order_as_byte_strings() {
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for len in [1, 7, 8, 9, 10, 17] {
            for last in [0, 1, 255] {
                keys.push([vec![0; len - 1], vec![last]].concat());
                keys.push([vec![b'a'; len - 1], vec![last]].concat());
            }
        }
        for a in &keys {
            let mut memory = vec![0_u64; 8];
            let object = NonNull::new(memory.as_mut_ptr().cast::<u8>());
            // SAFETY: the memory has room for the longest key.
            let slot = unsafe { <[u8]>::slot(a, object) };
            for b in &keys {
                let probe = <[u8]>::probe(b);
                // SAFETY: the memory is there.
                unsafe {
                    assert_eq!(<[u8]>::order_by_object(slot, &probe), a.cmp(b), "{a:?} {b:?}");
                    let again = <[u8]>::probe_slot(slot, &());
                    assert_eq!(<[u8]>::order_by_object(slot, &again), Order::Equal);
                    assert_eq!(<[u8]>::key(slot), a);
                }
                if a < b {
                    let mut memory = vec![0_u64; 8];
                    let object = NonNull::new(memory.as_mut_ptr().cast::<u8>());
                    // SAFETY: the memory of both slots is there.
                    let bound = unsafe { <[u8]>::bound(slot, <[u8]>::slot(b, object), false) };
                    assert!(a.as_slice() < bound && bound <= b.as_slice());
                }
            }
        }
    }
}
