//! Where a structure's objects live, as a type.

use crate::{AllocError, BytesPool, Config, Pool, PoolStats};
use silvics_layout::{Read, record};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_sync::tagged::addressable;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Objects of one type.
///
/// # Safety
/// `alloc` gives memory for a `T`, aligned for it and with an address of at most 48 bits, that is nobody else's until `free` takes it back, or
/// the allocator is dropped.
pub unsafe trait SlotAlloc<T>: Send + Sync + Sized + 'static {
    /// Whether dropping the allocator releases every object; if not, each must be freed before.
    const RELEASES_WHOLE: bool;

    /// An allocator of objects called `kind`.
    fn new(kind: &'static str, config: &Config) -> Self;

    /// An uninitialised object, the caller's alone.
    fn alloc(&self) -> Result<NonNull<T>, AllocError>;

    /// Takes an object back without dropping its content.
    ///
    /// # Safety
    /// It came from here, is taken back once, and is used by nobody any more.
    unsafe fn free(&self, object: NonNull<T>);

    /// Gives what is free and can be given back to the system, and says how many bytes.
    fn shrink(&self) -> usize;

    /// What it holds.
    fn stats(&self) -> PoolStats;
}

/// Objects of any size, 8-byte aligned.
///
/// # Safety
/// `alloc` gives so many bytes, aligned to 8 and with addresses of at most 48 bits, that are nobody else's until `free` takes them back, or the
/// allocator is dropped.
pub unsafe trait BytesAlloc: Send + Sync + Sized + 'static {
    /// Whether dropping the allocator releases every object; if not, each must be freed before.
    const RELEASES_WHOLE: bool;

    /// An allocator of objects called `kind`.
    fn new(kind: &'static str, config: &Config) -> Self;

    /// `size` uninitialised bytes, the caller's alone.
    fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError>;

    /// Takes an object back.
    ///
    /// # Safety
    /// It came from `alloc(size)` here, is taken back once, and is used by nobody any more.
    unsafe fn free(&self, object: NonNull<u8>, size: usize);

    /// Gives what is free and can be given back to the system, and says how many bytes.
    fn shrink(&self) -> usize;

    /// What it holds.
    fn stats(&self) -> PoolStats;
}

/// Where a structure's objects live.
pub trait Placement: Send + Sync + Sized + 'static {
    /// Its name in the catalogue and on the command line.
    const NAME: &'static str;
    /// Where objects of type `T` live.
    type Slots<T: Send + 'static>: SlotAlloc<T>;
    /// Where objects of many sizes live.
    type Bytes: BytesAlloc;

    /// Told what a step of an operation reads. Nothing, for which nothing is compiled, but where it is
    /// [`Recorded`].
    #[inline(always)]
    fn saw<R: IntoIterator<Item = Read>>(_reads: impl FnOnce() -> R) {}
}

/// A pool per object kind: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pooled;

impl Placement for Pooled {
    const NAME: &'static str = "pooled";
    type Slots<T: Send + 'static> = Pool<T>;
    type Bytes = BytesPool;
}

/// One [`Heap`](crate::Heap) for everything, as most libraries do it: [`Config::heap`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared;

impl Placement for Shared {
    const NAME: &'static str = "shared";
    type Slots<T: Send + 'static> = SharedSlots<T>;
    type Bytes = SharedBytes;
}

/// Objects live where they do with `P`, and what operations read is recorded
/// ([`silvics_layout::record`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded<P>(PhantomData<P>);

impl<P: Placement> Placement for Recorded<P> {
    const NAME: &'static str = P::NAME;
    type Slots<T: Send + 'static> = P::Slots<T>;
    type Bytes = P::Bytes;

    fn saw<R: IntoIterator<Item = Read>>(reads: impl FnOnce() -> R) {
        record::report(reads());
    }
}

// SAFETY: its slots are of `T`, and handed out once (C2 of `core.rs`).
unsafe impl<T: Send + 'static> SlotAlloc<T> for Pool<T> {
    const RELEASES_WHOLE: bool = true;

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

// SAFETY: as above, or from a mapping or the global allocator, checked to be addressable.
unsafe impl BytesAlloc for BytesPool {
    const RELEASES_WHOLE: bool = true;

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

/// Objects of any size from a heap, counted one by one: each allocation writes the
/// shared count, which is part of what [`Pooled`] saves.
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
    /// `object` came from `alloc_layout(layout)`.
    unsafe fn free_layout(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.config.heap.free(self.kind, object, layout) };
        self.live.fetch_sub(1, Ordering::Relaxed);
        self.live_bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        self.config.budget.give(self.config.heap.bytes(layout));
    }

    fn layout(size: usize) -> Result<Layout, AllocError> {
        Layout::from_size_align(size.max(1), 8).map_err(|_| AllocError::System { requested: size })
    }
}

// SAFETY: a heap keeps the promise, and the address is checked.
unsafe impl BytesAlloc for SharedBytes {
    const RELEASES_WHOLE: bool = false;

    fn new(kind: &'static str, config: &Config) -> Self {
        let (live, live_bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { kind, config: config.clone(), live, live_bytes }
    }

    fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError> {
        self.alloc_layout(Self::layout(size)?)
    }

    unsafe fn free(&self, object: NonNull<u8>, size: usize) {
        if let Ok(layout) = Self::layout(size) {
            // SAFETY: the caller's promise: `alloc(size)` used the same layout.
            unsafe { self.free_layout(object, layout) };
        }
    }

    /// Nothing is free here: what is taken back is the heap's.
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

/// Objects of one type from a heap.
pub struct SharedSlots<T> {
    bytes: SharedBytes,
    marker: PhantomData<fn() -> T>,
}

impl<T> SharedSlots<T> {
    /// What is asked for, which heaps want to be something.
    const LAYOUT: Layout = if size_of::<T>() > 0 {
        Layout::new::<T>()
    } else {
        match Layout::from_size_align(align_of::<T>(), align_of::<T>()) {
            Ok(layout) => layout,
            Err(_) => unreachable!(),
        }
    };
}

// SAFETY: as above, with the layout of `T`.
unsafe impl<T: Send + 'static> SlotAlloc<T> for SharedSlots<T> {
    const RELEASES_WHOLE: bool = false;

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
