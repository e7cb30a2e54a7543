//! The placement of objects under the model: each has an allocation that is not reused in a
//! schedule.

use silvics_pool::{AllocError, BytesAlloc, Config, Heap, Placement, PoolStats, SlotAlloc};
use silvics_sync::model::freed;
use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A placement and a heap over the global allocator. Freed objects are poisoned and kept until the
/// schedule ends. So a later access is found ([`freed`]), as are a second free and a leak.
#[derive(Clone, Copy, Debug, Default)]
pub struct Model;

// SAFETY: `saw` is the default one, which does nothing.
unsafe impl Placement for Model {
    const NAME: &'static str = "model";
    const RELEASES_WHOLE: bool = false;
    type Slots<T: Send + 'static> = ModelSlots<T>;
    type Bytes = ModelBytes;
}

// SAFETY: the memory comes from the global allocator, with the requested layout. `free` panics only
// if its caller breaks the contract.
unsafe impl Heap for Model {
    fn alloc(&self, kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        alloc(layout, kind).ok()
    }
    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        free(object, layout);
    }
}

/// The value of each byte of fresh memory: no plausible pointer, count or key.
const FRESH: u8 = 0xA5;
/// The value of each byte of freed memory: an odd address far beyond user space, with all marks
/// set.
const POISON: u8 = 0xDF;

/// The objects of the execution on this operating system thread.
#[derive(Default)]
struct Ledger {
    live: BTreeMap<usize, (NonNull<u8>, Layout, &'static str)>,
    freed: BTreeMap<usize, (NonNull<u8>, Layout, &'static str)>,
}

std::thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

/// Deallocates all memory, including that of a failed schedule.
#[allow(clippy::disallowed_methods)] // this is a placement
pub(super) fn reset() {
    freed::clear();
    let ledger = LEDGER.take();
    for (object, layout, _) in ledger.live.into_values().chain(ledger.freed.into_values()) {
        // SAFETY: `alloc` allocated it with this layout. The schedule is over: references to the
        // object are gone, or on a stack that never runs again.
        unsafe { std::alloc::dealloc(object.as_ptr(), layout) };
    }
}

/// The objects that are not freed, as `kind at address`.
pub(super) fn live() -> Vec<String> {
    LEDGER.with_borrow(|ledger| {
        ledger.live.iter().map(|(at, (.., kind))| format!("{kind} at {at:#x}")).collect()
    })
}

/// The freed objects that were written afterwards, as `kind at address`. This finds writes that are
/// no atomic operations, which the model does not see.
pub(super) fn written() -> Vec<String> {
    LEDGER.with_borrow(|ledger| {
        let written = ledger.freed.iter().filter(|(_, (object, layout, _))| {
            // SAFETY: `free` has initialised all bytes, and the object is kept until `reset`.
            let bytes = unsafe { std::slice::from_raw_parts(object.as_ptr(), layout.size()) };
            bytes.iter().any(|byte| *byte != POISON)
        });
        written.map(|(at, (.., kind))| format!("{kind} at {at:#x}")).collect()
    })
}

#[allow(clippy::disallowed_methods)] // this is a placement
fn alloc(layout: Layout, kind: &'static str) -> Result<NonNull<u8>, AllocError> {
    // SAFETY: the layout of an object is never empty here.
    let object = NonNull::new(unsafe { std::alloc::alloc(layout) });
    let object = object.ok_or(AllocError::System { requested: layout.size() })?;
    // SAFETY: new memory of that size.
    unsafe { object.write_bytes(FRESH, layout.size()) };
    LEDGER.with_borrow_mut(|ledger| {
        ledger.live.insert(object.as_ptr().addr(), (object, layout, kind));
    });
    Ok(object)
}

/// Poisons an object and keeps it until `reset`.
///
/// # Panics
/// Panics if the object is not live.
fn free(object: NonNull<u8>, layout: Layout) {
    let at = object.as_ptr().addr();
    let known = LEDGER.with_borrow_mut(|ledger| match ledger.live.remove(&at) {
        Some(entry) => {
            ledger.freed.insert(at, entry);
            Ok(entry)
        }
        None => Err(ledger.freed.get(&at).copied()),
    });
    if std::thread::panicking() {
        return; // the schedule has failed already
    }
    match known {
        Ok((_, allocated, kind)) => {
            assert_eq!(allocated, layout, "free of an object of kind {kind} as of another");
            // SAFETY: a live object of that size. By D1 of the domain nobody reads it any more; if
            // somebody does, `freed` finds the access.
            unsafe { object.write_bytes(POISON, layout.size()) };
            freed::insert(at, layout.size());
        }
        Err(Some((.., kind))) => panic!("double free: the {kind} at {at:#x}"),
        Err(None) => panic!("free of {at:#x}, which was never allocated"),
    }
}

/// The live objects of a kind. Kinds have different names within an index, and a schedule has one
/// index.
fn stats(kind: &'static str, config: &Config) -> PoolStats {
    let (live_slots, live_bytes) = LEDGER.with_borrow(|ledger| {
        let of_kind = ledger.live.values().filter(|(.., other)| *other == kind);
        of_kind.fold((0, 0), |(slots, bytes), (_, layout, _)| (slots + 1, bytes + layout.size()))
    });
    PoolStats {
        kind,
        live_slots,
        live_bytes,
        regions: Vec::new(),
        pages: config.pages,
        fallback: None,
    }
}

/// Objects of one type.
#[derive(Debug)]
pub struct ModelSlots<T> {
    kind: &'static str,
    config: Config,
    marker: PhantomData<fn() -> T>,
}

// SAFETY: objects come from the global allocator, with the requested layout. `free` panics only if
// its caller breaks the contract.
unsafe impl<T: Send + 'static> SlotAlloc<T> for ModelSlots<T> {
    fn new(kind: &'static str, config: &Config) -> Self {
        const { assert!(size_of::<T>() > 0) };
        Self { kind, config: config.clone(), marker: PhantomData }
    }
    fn alloc(&self) -> Result<NonNull<T>, AllocError> {
        alloc(Layout::new::<T>(), self.kind).map(NonNull::cast)
    }
    unsafe fn free(&self, object: NonNull<T>) {
        free(object.cast(), Layout::new::<T>());
    }
    fn shrink(&self) -> usize {
        0
    }
    fn stats(&self) -> PoolStats {
        stats(self.kind, &self.config)
    }
}

/// Objects of any size.
#[derive(Debug)]
pub struct ModelBytes {
    kind: &'static str,
    config: Config,
}

impl ModelBytes {
    fn layout(size: usize) -> Result<Layout, AllocError> {
        Layout::from_size_align(size.max(1), 8).map_err(|_| AllocError::System { requested: size })
    }
}

// SAFETY: objects come from the global allocator, with the requested layout. `free` panics only if
// its caller breaks the contract.
unsafe impl BytesAlloc for ModelBytes {
    fn new(kind: &'static str, config: &Config) -> Self {
        Self { kind, config: config.clone() }
    }
    fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError> {
        alloc(Self::layout(size)?, self.kind)
    }
    unsafe fn free(&self, object: NonNull<u8>, size: usize) {
        let layout = Self::layout(size).expect("it was allocated with this size");
        free(object, layout);
    }
    fn shrink(&self) -> usize {
        0
    }
    fn stats(&self) -> PoolStats {
        stats(self.kind, &self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> ModelSlots<u64> {
        reset();
        SlotAlloc::new("word", &Config::default())
    }

    #[test]
    fn what_is_not_freed_is_named() {
        let slots = slots();
        let object = slots.alloc().unwrap();
        assert_eq!(live(), [format!("word at {:#x}", object.as_ptr().addr())]);
        // SAFETY: allocated above.
        unsafe { slots.free(object) };
        assert!(live().is_empty());
    }

    #[test]
    fn the_heap_keeps_objects_like_the_placement() {
        reset();
        let (heap, layout): (&dyn Heap, _) = (&Model, Layout::new::<u64>());
        let object = heap.alloc("row", layout).unwrap();
        assert_eq!(live(), [format!("row at {:#x}", object.as_ptr().addr())]);
        // SAFETY: allocated above.
        unsafe { heap.free("row", object, layout) };
        assert!(live().is_empty() && freed::contains(object.as_ptr().addr()));
    }

    #[test]
    fn freed_memory_is_kept_poisoned_and_known() {
        let slots = slots();
        let object = slots.alloc().unwrap();
        // SAFETY: allocated above.
        unsafe { slots.free(object) };
        let last = object.as_ptr().addr() + 7;
        assert!(freed::contains(last) && !freed::contains(last + 1));
        // SAFETY: freed memory is kept until `reset`.
        assert_eq!(unsafe { object.read() }, u64::from_ne_bytes([POISON; 8]));
        reset();
        assert!(!freed::contains(last));
    }

    #[test]
    fn a_plain_write_to_freed_memory_is_found() {
        let slots = slots();
        let objects = [slots.alloc().unwrap(), slots.alloc().unwrap()];
        // SAFETY: allocated above; the write is the mistake, into memory kept until `reset`.
        unsafe {
            for object in objects {
                slots.free(object);
            }
            assert!(written().is_empty());
            objects[1].cast::<u8>().add(7).write(0);
        }
        assert_eq!(written(), [format!("word at {:#x}", objects[1].as_ptr().addr())]);
    }

    #[test]
    #[should_panic(expected = "double free: the word")]
    fn a_second_free_is_found() {
        let slots = slots();
        let object = slots.alloc().unwrap();
        for _ in 0..2 {
            // SAFETY: the second free violates the contract, which is the mistake to be found.
            unsafe { slots.free(object) };
        }
    }

    #[test]
    #[should_panic(expected = "use after free")]
    fn an_atomic_operation_on_freed_memory_is_found() {
        reset();
        let slots: ModelSlots<silvics_sync::atomic::AtomicU64> =
            SlotAlloc::new("atomic", &Config::default());
        let object = slots.alloc().unwrap();
        // SAFETY: new memory. Freed memory is kept until `reset`, so it can be read.
        unsafe {
            object.write(1.into());
            slots.free(object);
            object.as_ref().load(silvics_sync::atomic::Ordering::Relaxed);
        }
    }
}
