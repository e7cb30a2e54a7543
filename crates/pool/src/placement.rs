//! Says by a type where a structure's objects live.

use crate::{AllocError, BytesPool, Config, Pool, PoolStats};
use silvics_layout::{Read, record};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_sync::tagged::addressable;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// An allocator of objects of one type.
///
/// # Safety
/// `alloc` returns memory for a `T`, aligned for it and at an address of at most 48 bits. It
/// belongs to the caller alone until `free` takes it back or the allocator is dropped. `free` does
/// not unwind: indexes free objects when their operations have taken effect.
pub unsafe trait SlotAlloc<T>: Send + Sync + Sized + 'static {
    /// Makes an allocator of objects called `kind`.
    fn new(kind: &'static str, config: &Config) -> Self;

    /// Allocates an object. It is uninitialised and belongs to the caller alone.
    fn alloc(&self) -> Result<NonNull<T>, AllocError>;

    /// Takes an object back without dropping its content.
    ///
    /// # Safety
    /// The object came from this allocator, is freed only once, and nobody uses it any more.
    unsafe fn free(&self, object: NonNull<T>);

    /// Returns unused memory to the system as far as possible, and the number of bytes returned.
    fn shrink(&self) -> usize;

    /// Returns the memory that the allocator holds.
    fn stats(&self) -> PoolStats;
}

/// An allocator of objects of any size, aligned to 8 bytes.
///
/// # Safety
/// `alloc(size)` returns `size` bytes, aligned to 8 and at addresses of at most 48 bits. They
/// belong to the caller alone until `free` takes them back or the allocator is dropped. `free` does
/// not unwind: indexes free objects when their operations have taken effect.
pub unsafe trait BytesAlloc: Send + Sync + Sized + 'static {
    /// Makes an allocator of objects called `kind`.
    fn new(kind: &'static str, config: &Config) -> Self;

    /// Allocates `size` bytes. They are uninitialised and belong to the caller alone.
    fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError>;

    /// Takes an object back.
    ///
    /// # Safety
    /// The object came from `alloc(size)` of this allocator, is freed only once, and nobody uses it
    /// any more.
    unsafe fn free(&self, object: NonNull<u8>, size: usize);

    /// Returns unused memory to the system as far as possible, and the number of bytes returned.
    fn shrink(&self) -> usize;

    /// Returns the memory that the allocator holds.
    fn stats(&self) -> PoolStats;
}

/// The allocators of a structure's objects, as a type parameter.
///
/// # Safety
/// If `TAKES_FIRST`, the allocators are [`Pool`] and [`BytesPool`]: they take back what an index
/// has allocated from [`SmallObjects`](crate::SmallObjects).
///
/// `saw` does not unwind, and calls no operation of an index: structures call it in the middle of
/// their operations, also when these have taken effect.
pub unsafe trait Placement: Send + Sync + Sized + 'static {
    /// The name in the catalogue and on the command line.
    const NAME: &'static str;
    /// Whether dropping an allocator releases its objects. If not, an index frees each of them
    /// before.
    const RELEASES_WHOLE: bool;
    /// Whether an index may make the allocators after its first objects.
    const TAKES_FIRST: bool = false;
    /// The allocator of objects of type `T`.
    type Slots<T: Send + 'static>: SlotAlloc<T>;
    /// The allocator of objects of many sizes.
    type Bytes: BytesAlloc;

    /// Receives the reads of one step of an operation. It does nothing and compiles to nothing,
    /// except for [`Recorded`].
    #[inline(always)]
    fn saw<R: IntoIterator<Item = Read>>(_reads: impl FnOnce() -> R) {}
}

/// The default placement: a pool per object kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pooled;

// SAFETY: the allocators are those pools, and `saw` is the default one, which does nothing.
unsafe impl Placement for Pooled {
    const NAME: &'static str = "pooled";
    const RELEASES_WHOLE: bool = true;
    const TAKES_FIRST: bool = true;
    type Slots<T: Send + 'static> = Pool<T>;
    type Bytes = BytesPool;
}

/// One [`Heap`](crate::Heap) for all objects, as most libraries do it. [`Config::heap`] selects the
/// heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared;

// SAFETY: `saw` is the default one, which does nothing.
unsafe impl Placement for Shared {
    const NAME: &'static str = "shared";
    const RELEASES_WHOLE: bool = false;
    type Slots<T: Send + 'static> = SharedSlots<T>;
    type Bytes = SharedBytes;
}

/// Places objects as `P` does, and records what operations read ([`silvics_layout::record`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded<P>(PhantomData<P>);

// SAFETY: the allocators are those of `P`, and so is `TAKES_FIRST`. `report` calls no index, and
// appends the reads to a list, which does not unwind. The reads come from structures, which compute
// them from addresses.
unsafe impl<P: Placement> Placement for Recorded<P> {
    const NAME: &'static str = P::NAME;
    const RELEASES_WHOLE: bool = P::RELEASES_WHOLE;
    const TAKES_FIRST: bool = P::TAKES_FIRST;
    type Slots<T: Send + 'static> = P::Slots<T>;
    type Bytes = P::Bytes;

    fn saw<R: IntoIterator<Item = Read>>(reads: impl FnOnce() -> R) {
        record::report(reads());
    }
}

// SAFETY: its slots fit and align a `T`, lie in mappings checked to be addressable, and are handed
// out once (C2 of `core.rs`). `free` keeps the slot for later allocations, and does not panic.
unsafe impl<T: Send + 'static> SlotAlloc<T> for Pool<T> {
    fn new(kind: &'static str, config: &Config) -> Self {
        Pool::new(kind, config)
    }
    #[inline(always)]
    fn alloc(&self) -> Result<NonNull<T>, AllocError> {
        Pool::alloc(self)
    }
    #[inline(always)]
    unsafe fn free(&self, object: NonNull<T>) {
        // SAFETY: the caller's promise.
        unsafe { Pool::free(self, object) }
    }
    fn shrink(&self) -> usize {
        Pool::shrink(self)
    }
    fn stats(&self) -> PoolStats {
        Pool::stats(self)
    }
}

// SAFETY: slots as for `Pool`; large objects come from the global allocator and are checked to be
// addressable. `free` does not panic.
unsafe impl BytesAlloc for BytesPool {
    fn new(kind: &'static str, config: &Config) -> Self {
        BytesPool::new(kind, config)
    }
    #[inline(always)]
    fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError> {
        BytesPool::alloc(self, size)
    }
    #[inline(always)]
    unsafe fn free(&self, object: NonNull<u8>, size: usize) {
        // SAFETY: the caller's promise.
        unsafe { BytesPool::free(self, object, size) }
    }
    fn shrink(&self) -> usize {
        BytesPool::shrink(self)
    }
    fn stats(&self) -> PoolStats {
        BytesPool::stats(self)
    }
}

/// An allocator of objects of any size that takes each from a heap and counts it. Each allocation
/// writes the shared count, which is a part of the cost that [`Pooled`] saves.
pub struct SharedBytes {
    kind: &'static str,
    config: Config,
    live: AtomicUsize,
    live_bytes: AtomicUsize,
}

impl SharedBytes {
    fn alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        let bytes = self.config.heap.bytes(layout);
        self.config.budget.take(bytes)?;
        let error = match self.config.heap.alloc(self.kind, layout) {
            Some(object) if addressable(object.as_ptr().wrapping_add(layout.size() & !7)) => {
                self.live.fetch_add(1, Ordering::Relaxed);
                self.live_bytes.fetch_add(layout.size(), Ordering::Relaxed);
                return Ok(object);
            }
            Some(object) => {
                // SAFETY: allocated above.
                unsafe { self.config.heap.free(self.kind, object, layout) };
                AllocError::Address
            }
            None => AllocError::System { requested: layout.size() },
        };
        self.config.budget.give(bytes);
        Err(error)
    }

    /// # Safety
    /// `object` came from `alloc_layout(layout)` of this allocator.
    unsafe fn free_layout(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.config.heap.free(self.kind, object, layout) };
        self.live.fetch_sub(1, Ordering::Relaxed);
        self.live_bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        self.config.budget.give(self.config.heap.bytes(layout));
    }

    /// The layout of an object, aligned as slots of a pool would be.
    fn layout(&self, size: usize) -> Result<Layout, AllocError> {
        let align = self.config.tuning.slot_alignment().max(8);
        let layout = Layout::from_size_align(size.max(1), align);
        layout.map_err(|_| AllocError::System { requested: size })
    }
}

// SAFETY: the heap's contract, by which its `free` does not unwind; `alloc_layout` checks the
// address.
unsafe impl BytesAlloc for SharedBytes {
    fn new(kind: &'static str, config: &Config) -> Self {
        let (live, live_bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { kind, config: config.clone(), live, live_bytes }
    }

    fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError> {
        self.alloc_layout(self.layout(size)?)
    }

    unsafe fn free(&self, object: NonNull<u8>, size: usize) {
        if let Ok(layout) = self.layout(size) {
            // SAFETY: the caller's promise: `alloc(size)` used the same layout.
            unsafe { self.free_layout(object, layout) };
        }
    }

    /// Returns 0: freed objects go straight back to the heap.
    fn shrink(&self) -> usize {
        0
    }

    fn stats(&self) -> PoolStats {
        PoolStats {
            kind: self.kind,
            live_slots: self.live.load(Ordering::Relaxed),
            live_bytes: self.live_bytes.load(Ordering::Relaxed),
            regions: Vec::new(),
            pages: self.config.pages,
            fallback: None,
        }
    }
}

/// An allocator of objects of one type that takes each from a heap.
pub struct SharedSlots<T> {
    bytes: SharedBytes,
    marker: PhantomData<fn() -> T>,
}

impl<T> SharedSlots<T> {
    /// The layout requested per object. Heaps do not accept an empty one.
    const LAYOUT: Layout = if size_of::<T>() > 0 {
        Layout::new::<T>()
    } else {
        match Layout::from_size_align(align_of::<T>(), align_of::<T>()) {
            Ok(layout) => layout,
            Err(_) => unreachable!(),
        }
    };
}

// SAFETY: as for `SharedBytes`, with the layout of `T`.
unsafe impl<T: Send + 'static> SlotAlloc<T> for SharedSlots<T> {
    fn new(kind: &'static str, config: &Config) -> Self {
        Self { bytes: SharedBytes::new(kind, config), marker: PhantomData }
    }
    fn alloc(&self) -> Result<NonNull<T>, AllocError> {
        self.bytes.alloc_layout(Self::LAYOUT).map(NonNull::cast)
    }
    unsafe fn free(&self, object: NonNull<T>) {
        // SAFETY: the caller's promise.
        unsafe { self.bytes.free_layout(object.cast(), Self::LAYOUT) };
    }
    fn shrink(&self) -> usize {
        self.bytes.shrink()
    }
    fn stats(&self) -> PoolStats {
        self.bytes.stats()
    }
}
