//! The objects of entries, and the memory that they come from.

use super::super::numbers::{is_number, key_in, number_of, word_of};
use super::super::order::{Comparator, bytes_of, head_of};
use super::super::slot::{KeyMemory, Slot};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::map::kept::{Kept, Objects};
use silvics_pool::{BytesAlloc, Config, Placement, Pooled, SMALL_PAGE};
use silvics_sync::atomic::{AtomicU32, Ordering};
use silvics_sync::prefetch;
use std::alloc::Layout;
use std::cmp;
use std::marker::PhantomData;
use std::mem::{needs_drop, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, drop_in_place, with_exposed_provenance_mut};

/// An entry as the nodes have it: the head of its key, and the word of its object.
pub(super) type EntrySlot = Slot<u64>;

/// The start of each object.
#[repr(C)]
pub(super) struct Header {
    /// The number of those that have the object, one of which is the map, and [`REMOVED`].
    state: AtomicU32,
}

/// Set once the entry is not in the map any more.
const REMOVED: u32 = 1 << 31;
/// The most counts of an object. More of them end the process.
const MOST: u32 = 1 << 30;

/// The object of an entry whose key is a number: the node has the key.
#[repr(C)]
struct Bare<V> {
    header: Header,
    value: V,
}

/// The object of another entry.
#[repr(C)]
struct Full<K, V> {
    header: Header,
    key: K,
    value: V,
}

/// The parts of the objects of entries with keys of type `K` and values of type `V`.
pub(super) struct Shape<K, V>(PhantomData<(K, V)>);

impl<K, V> Shape<K, V> {
    pub(super) fn layout() -> Layout {
        const { assert!(align_of::<Full<K, V>>() <= SMALL_PAGE, "an alignment beyond 4 KiB") };
        if is_number::<K>() { Layout::new::<Bare<V>>() } else { Layout::new::<Full<K, V>>() }
    }

    /// The key of an object. Keys are not numbers.
    ///
    /// # Safety
    /// The word is that of an initialised object, which is not taken back during `'o`.
    #[inline(always)]
    pub(super) unsafe fn key<'o>(word: u64) -> &'o K {
        debug_assert!(!is_number::<K>());
        // SAFETY: our contract.
        unsafe { address(word).byte_add(offset_of!(Full<K, V>, key)).cast().as_ref() }
    }

    /// The value of an object.
    ///
    /// # Safety
    /// That of [`Shape::key`].
    #[inline(always)]
    pub(super) unsafe fn value<'o>(word: u64) -> &'o V {
        // SAFETY: our contract.
        unsafe { Self::value_at(address(word)).as_ref() }
    }

    unsafe fn value_at(object: NonNull<u8>) -> NonNull<V> {
        let offset = if is_number::<K>() {
            offset_of!(Bare<V>, value)
        } else {
            offset_of!(Full<K, V>, value)
        };
        // SAFETY: the caller's promise: it is an object of this shape.
        unsafe { object.byte_add(offset).cast() }
    }

    /// The head of a key in its entry.
    #[inline(always)]
    pub(super) fn head(key: &K) -> u64 {
        if is_number::<K>() { number_of(key) } else { bytes_of(key).map_or(0, head_of) }
    }

    /// Initialises an object that the map and one entry have. Returns its slot.
    ///
    /// # Safety
    /// The object is fresh memory of this shape.
    pub(super) unsafe fn init(object: NonNull<u8>, key: K, value: V) -> EntrySlot {
        let head = Self::head(&key);
        let header = Header { state: AtomicU32::new(2) };
        // SAFETY: our contract.
        unsafe {
            if is_number::<K>() {
                object.cast::<Bare<V>>().write(Bare { header, value });
            } else {
                object.cast::<Full<K, V>>().write(Full { header, key, value });
            }
        }
        Slot::new(head, object.as_ptr().expose_provenance() as u64)
    }

    /// Moves the key and the value out of an object.
    ///
    /// # Safety
    /// The slot is that of an object of this shape. Nobody uses its key and its value afterwards.
    pub(super) unsafe fn take(slot: EntrySlot) -> (K, V) {
        // SAFETY: our contract.
        unsafe {
            let value = Self::value_at(address(slot.word)).read();
            if is_number::<K>() {
                let word = word_of::<K>(slot.head());
                return (std::ptr::from_ref(key_in::<K>(&word)).read(), value);
            }
            (std::ptr::from_ref(Self::key(slot.word)).read(), value)
        }
    }

    /// Drops the key and the value of an object.
    ///
    /// # Safety
    /// That of [`Shape::take`].
    unsafe fn drop_content(object: NonNull<u8>) {
        /// Drops the value even if the key's destructor panics.
        struct Value<V>(NonNull<V>);
        impl<V> Drop for Value<V> {
            fn drop(&mut self) {
                // SAFETY: the contract of `drop_content`.
                unsafe { drop_in_place(self.0.as_ptr()) };
            }
        }
        // SAFETY: our contract.
        unsafe {
            let _value = Value(Self::value_at(object));
            if !is_number::<K>() {
                drop_in_place(object.byte_add(offset_of!(Full<K, V>, key)).cast::<K>().as_ptr());
            }
        }
    }
}

/// The address of the object of a word.
#[inline(always)]
pub(super) fn address(word: u64) -> NonNull<u8> {
    NonNull::new(with_exposed_provenance_mut(word as usize)).expect("no object is at address 0")
}

/// The header of the object of a word.
///
/// # Safety
/// The object is initialised, and not taken back during `'o`.
#[inline(always)]
pub(super) unsafe fn header<'o>(word: u64) -> &'o Header {
    // SAFETY: our contract: each object begins with its header.
    unsafe { address(word).cast().as_ref() }
}

impl Header {
    /// Adds counts for others that have the object.
    #[inline(always)]
    pub(super) fn hold(&self, counts: u32) {
        // Relaxed: the caller has the object, or a guard that keeps it.
        let before = self.state.fetch_add(counts, Ordering::Relaxed);
        if before & !REMOVED > MOST {
            std::process::abort();
        }
    }

    /// Notes that one has the object no more. Returns whether it was the last one.
    #[inline(always)]
    #[must_use]
    fn release(&self) -> bool {
        // AcqRel: what others did with the object happens before the last one drops it.
        self.state.fetch_sub(1, Ordering::AcqRel) & !REMOVED == 1
    }

    /// Notes that the entry is removed.
    #[inline(always)]
    pub(super) fn remove(&self) {
        self.state.fetch_or(REMOVED, Ordering::SeqCst);
    }

    /// Whether the removal of the entry has noted itself. It does so after it has taken effect.
    #[inline(always)]
    pub(super) fn is_removed(&self) -> bool {
        self.state.load(Ordering::SeqCst) & REMOVED != 0
    }
}

/// The bytes of a cache line.
const LINE: usize = 64;

/// The order of entries.
pub(super) struct ByFunction {
    /// Compares the keys of two objects whose heads are equal.
    compare: unsafe fn(u64, u64) -> cmp::Ordering,
}

impl ByFunction {
    pub(super) fn new<K: Ord, V>() -> Self {
        Self {
            compare: |a, b| {
                if is_number::<K>() {
                    return cmp::Ordering::Equal; // the head is the key
                }
                // SAFETY: the contract of the field: the objects are of this shape.
                unsafe { Shape::<K, V>::key(a).cmp(Shape::<K, V>::key(b)) }
            },
        }
    }
}

impl Comparator<Header> for ByFunction {
    #[inline(always)]
    fn compare(&self, a: &Header, b: &Header) -> cmp::Ordering {
        if std::ptr::eq(a, b) {
            return cmp::Ordering::Equal; // whatever the user's order says
        }
        let word = |header| std::ptr::from_ref::<Header>(header).addr() as u64;
        // SAFETY: the map of this order has objects of one shape, whose words are exposed.
        unsafe { (self.compare)(word(a), word(b)) }
    }
}

/// The memory of the objects of one map.
pub(super) struct ObjectMemory {
    bytes: <Pooled as Placement>::Bytes,
    size: usize,
    /// Drops the content of an object, if that has a destructor.
    drop: Option<unsafe fn(NonNull<u8>)>,
}

impl ObjectMemory {
    /// The memory of objects with such keys and values.
    pub(super) fn new<K, V>(mut config: Config) -> Self {
        let layout = Shape::<K, V>::layout();
        let align = layout.align().max(config.tuning.slot_alignment());
        config.tuning = config.tuning.slot_align(align).unwrap_or(config.tuning);
        let drops = needs_drop::<V>() || !is_number::<K>() && needs_drop::<K>();
        let drop: unsafe fn(NonNull<u8>) = Shape::<K, V>::drop_content;
        let bytes = BytesAlloc::new("entry", &config);
        Self { bytes, size: layout.size(), drop: drops.then_some(drop) }
    }

    pub(super) fn alloc(&self) -> Result<NonNull<u8>, AllocError> {
        self.bytes.alloc(self.size)
    }

    /// Frees an object whose content was moved out, or has no destructor.
    ///
    /// # Safety
    /// The object is of this memory, and nobody uses it any more.
    pub(super) unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: our contract.
        unsafe { self.bytes.free(object, self.size) };
    }

    /// Drops the content of an object, if it has a destructor.
    ///
    /// # Safety
    /// The object is initialised, of this memory, and nobody uses its content any more.
    unsafe fn drop_content(&self, object: NonNull<u8>) {
        if let Some(drop) = self.drop {
            // SAFETY: our contract: an object of the shape whose function this is.
            unsafe { drop(object) };
        }
    }

    /// Drops the content of an object of a map that is being dropped. The pool frees the object.
    ///
    /// # Safety
    /// That of [`ObjectMemory::drop_content`].
    pub(super) unsafe fn drop_in_map(&self, object: NonNull<u8>) {
        // SAFETY: our contract.
        quietly(|| unsafe { self.drop_content(object) });
    }

    /// Whether contents have destructors.
    pub(super) fn has_destructors(&self) -> bool {
        self.drop.is_some()
    }

    /// Notes that an entry, or the map, has the object no more. The last one frees it.
    ///
    /// # Safety
    /// The caller has the object, and uses it no more.
    #[inline(always)]
    pub(super) unsafe fn release(&self, object: NonNull<u8>) {
        // SAFETY: our contract: the object is initialised.
        if unsafe { object.cast::<Header>().as_ref() }.release() {
            // SAFETY: likewise, and no one else has the object.
            unsafe { self.end(object) };
        }
    }

    /// Drops the content of an object, and frees it, even if a destructor panics.
    ///
    /// # Safety
    /// The caller is the only one that has the object, and uses it no more.
    pub(super) unsafe fn end(&self, object: NonNull<u8>) {
        struct Freed<'m>(&'m ObjectMemory, NonNull<u8>);
        impl Drop for Freed<'_> {
            fn drop(&mut self) {
                // SAFETY: the contract of `end`.
                unsafe { self.0.free(self.1) };
            }
        }
        let _freed = Freed(self, object);
        // SAFETY: our contract.
        unsafe { self.drop_content(object) };
    }

    /// Prefetches an object, up to the length of a line.
    #[inline(always)]
    pub(super) fn fetch(&self, object: NonNull<u8>) {
        prefetch(object.as_ptr());
        prefetch(object.as_ptr().wrapping_add(self.size.min(LINE) - 1));
    }

    pub(super) fn shrink(&self) -> usize {
        self.bytes.shrink()
    }
}

// SAFETY: any thread may free objects of the pool. Only a map whose keys and values are `Send` is
// used by several threads.
unsafe impl Objects for ObjectMemory {
    #[inline(always)]
    fn runs_user_code(&self) -> bool {
        self.has_destructors()
    }

    #[inline(always)]
    fn releases_whole(&self) -> bool {
        Pooled::RELEASES_WHOLE && !self.has_destructors()
    }

    unsafe fn take_back(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise: the map has the object no more.
        quietly(|| unsafe { self.release(object) });
    }
}

/// Runs destructors of the user. If one panics, the panic hook has reported it, and it must not
/// unwind into an unrelated caller.
pub(super) fn quietly(drop: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(drop)) {
        std::mem::forget(panic);
    }
}

impl KeyMemory for Kept<ObjectMemory> {
    const HAS_VALUES: bool = false;

    unsafe fn retire_only(&self, word: u64, guard: &Guard) {
        // SAFETY: our contract.
        unsafe { Kept::retire_only(self, address(word), self.memory().size, guard) };
    }
}
