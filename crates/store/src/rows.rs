//! Rows in memory: their layouts, their allocators, and how they are freed.
//!
//! An index maps a key to the address of a row, and a row stays at that address until it is freed.
//!
//! # Layouts
//! | layout | objects of a row | for |
//! |---|---|---|
//! | [`Inline`] | the lock and the columns, one behind the other | everything |
//! | [`Study`] | a row, its columns, a wrapper, a lock; with [`Lists`](crate::index::Lists) a cell, too | the experiments of Arbel-Raviv, Brown and Morrison (USENIX ATC 2018) |
//!
//! # Invariants
//! * R1: the address in an index is that of a row of the index's table, which is not freed yet. It
//!   may be absent.
//! * R2: a row is retired once, after no index leads to it any more, or never. It is freed when no
//!   guard of the store's domain from before is left. So an address that was read from an index
//!   under a guard is that of a row while the guard lives.
//! * R3: the columns are words that are only accessed by atomic operations, except before the row
//!   is in an index.

use crate::lock::RowLock;
use silvics::AllocError;
use silvics::domain::Owner;
use silvics_pool::{BytesAlloc, BytesPool, Config, PoolStats, SharedBytes};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

/// The address of a row, as an index holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address(NonNull<u8>);

// SAFETY: it is a number; a row behind it is used under the rules of `RowRef`.
unsafe impl Send for Address {}
// SAFETY: as for `Send`.
unsafe impl Sync for Address {}

impl From<NonNull<u8>> for Address {
    fn from(row: NonNull<u8>) -> Self {
        Self(row)
    }
}

impl Address {
    pub(crate) fn pointer(self) -> NonNull<u8> {
        self.0
    }

    /// The word that an index holds.
    #[inline(always)]
    pub(crate) fn word(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// The address that an index returned.
    ///
    /// # Safety
    /// `word` is the word of an address.
    #[inline(always)]
    pub(crate) unsafe fn of(word: u64) -> Self {
        let pointer = std::ptr::with_exposed_provenance_mut(word as usize);
        // SAFETY: the caller's promise: the address is not null.
        Self(unsafe { NonNull::new_unchecked(pointer) })
    }
}

/// The memory that objects of one kind come from.
pub(crate) enum Source {
    /// A pool for each kind of object. Dropping it releases the objects.
    Pooled(BytesPool),
    /// The heap of the store's options, which indexes with the placement `Shared` use, too.
    Shared(SharedBytes, Box<Registry>),
}

/// The objects of a heap that are not freed yet, so that the source can free them when it is
/// dropped: an index without scans cannot enumerate its rows. It is off the heap that it describes.
#[derive(Default)]
pub(crate) struct Registry([Mutex<HashMap<usize, usize>>; 16]);

impl Registry {
    fn part(&self, object: NonNull<u8>) -> MutexGuard<'_, HashMap<usize, usize>> {
        self.0[object.addr().get() / 64 % 16].lock()
    }
}

impl Source {
    pub(crate) fn new(kind: &'static str, shared: bool, config: &Config) -> Self {
        if shared {
            Self::Shared(<SharedBytes as BytesAlloc>::new(kind, config), Box::default())
        } else {
            Self::Pooled(<BytesPool as BytesAlloc>::new(kind, config))
        }
    }

    pub(crate) fn alloc(&self, bytes: usize) -> Result<NonNull<u8>, AllocError> {
        match self {
            Self::Pooled(pool) => pool.alloc(bytes),
            Self::Shared(heap, registry) => {
                let object = BytesAlloc::alloc(heap, bytes)?;
                let mut part = registry.part(object);
                if part.try_reserve(1).is_err() {
                    drop(part);
                    // SAFETY: allocated above, used by nobody.
                    unsafe { BytesAlloc::free(heap, object, bytes) };
                    return Err(AllocError::System { requested: size_of::<(usize, usize)>() });
                }
                // Exposed, since `drop` restores the pointer from its address.
                part.insert(object.as_ptr().expose_provenance(), bytes);
                Ok(object)
            }
        }
    }

    /// # Safety
    /// `alloc(bytes)` of this source returned the object. It is freed once, and nobody uses it.
    pub(crate) unsafe fn free(&self, object: NonNull<u8>, bytes: usize) {
        match self {
            // SAFETY: the caller's promise.
            Self::Pooled(pool) => unsafe { pool.free(object, bytes) },
            Self::Shared(heap, registry) => {
                registry.part(object).remove(&object.addr().get());
                // SAFETY: the caller's promise.
                unsafe { BytesAlloc::free(heap, object, bytes) };
            }
        }
    }

    pub(crate) fn stats(&self) -> PoolStats {
        match self {
            Self::Pooled(pool) => pool.stats(),
            Self::Shared(heap, _) => BytesAlloc::stats(heap),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let Self::Shared(heap, registry) = self else { return };
        for part in &registry.0 {
            for (object, bytes) in part.lock().drain() {
                let object = std::ptr::with_exposed_provenance_mut(object);
                if let Some(object) = NonNull::new(object) {
                    // SAFETY: `alloc` returned the object, and `free` has not removed it since.
                    unsafe { BytesAlloc::free(heap, object, bytes) };
                }
            }
        }
    }
}

/// The memory of the rows of one table.
pub struct RowMemory<R> {
    sources: Vec<Source>,
    words: usize,
    layout: PhantomData<fn() -> R>,
}

impl<R: RowLayout> RowMemory<R> {
    pub(crate) fn new(words: usize, shared: bool, config: &Config) -> Self {
        let sources = R::KINDS.iter().map(|kind| Source::new(kind, shared, config)).collect();
        Self { sources, words, layout: PhantomData }
    }

    /// The memory of each kind of object.
    pub(crate) fn stats(&self) -> Vec<PoolStats> {
        self.sources.iter().map(Source::stats).collect()
    }
}

// SAFETY: `free` frees a row to the sources that it came from, which any thread may do.
unsafe impl<R: RowLayout> Owner for RowMemory<R> {
    unsafe fn free(&self, row: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { R::free(self, row) };
    }
}

/// A part of a row in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowPart {
    /// `lock` (the lock or version) or `columns`, and in the layout [`Study`] also `wrapper` and
    /// `row`.
    pub name: &'static str,
    /// The address of its first byte.
    pub address: usize,
    /// The bytes of it that are used: in the layout [`Study`], those of a lock without its padding.
    pub bytes: usize,
}

impl RowPart {
    fn new(name: &'static str, part: NonNull<u8>, bytes: usize) -> Self {
        Self { name, address: part.as_ptr().expose_provenance(), bytes }
    }
}

mod private {
    pub trait Sealed {}
}

/// A layout of rows. The trait is sealed.
pub trait RowLayout: private::Sealed + Sized + Send + Sync + 'static {
    /// The lock or version of a row.
    type Header: Send + Sync + 'static;
    /// The name in reports.
    const NAME: &'static str;
    /// The kinds of objects.
    #[doc(hidden)]
    const KINDS: &'static [&'static str];

    /// Allocates a row with this header and columns of zeros.
    #[doc(hidden)]
    fn alloc(memory: &RowMemory<Self>, header: Self::Header) -> Result<NonNull<u8>, AllocError>;

    /// Frees a row.
    ///
    /// # Safety
    /// The row is of this memory, is freed once, and nobody uses it.
    #[doc(hidden)]
    unsafe fn free(memory: &RowMemory<Self>, row: NonNull<u8>);

    /// The header of a row.
    ///
    /// # Safety
    /// The row is not freed during `'a`.
    #[doc(hidden)]
    unsafe fn header<'a>(row: NonNull<u8>) -> &'a Self::Header;

    /// The columns of a row.
    ///
    /// # Safety
    /// The row has `words` words of columns, and is not freed during `'a`.
    #[doc(hidden)]
    unsafe fn columns<'a>(row: NonNull<u8>, words: usize) -> &'a [AtomicU64];

    /// The parts of a row, in the order in which a lookup reads them. The last one is `columns`.
    ///
    /// # Safety
    /// As for `columns`.
    #[doc(hidden)]
    unsafe fn parts(row: NonNull<u8>, words: usize) -> Vec<RowPart>;
}

/// The header and the columns of a row in one object.
#[derive(Clone, Copy, Debug)]
pub struct Inline<H>(PhantomData<fn() -> H>);

impl<H> private::Sealed for Inline<H> {}

impl<H> Inline<H> {
    /// The byte at which the columns begin.
    const COLUMNS: usize = size_of::<H>().next_multiple_of(8);

    /// The bytes of a row: whole cache lines, if they are at most an eighth more. A pool aligns
    /// such an object to a line, so that a row touches one line less.
    fn bytes(words: usize) -> usize {
        let bytes = Self::COLUMNS + words * 8;
        let lines = bytes.next_multiple_of(64);
        if lines - bytes <= bytes / 8 { lines } else { bytes }
    }
}

impl<H: Send + Sync + 'static> RowLayout for Inline<H> {
    type Header = H;
    const NAME: &'static str = "inline";
    const KINDS: &'static [&'static str] = &["row"];

    fn alloc(memory: &RowMemory<Self>, header: H) -> Result<NonNull<u8>, AllocError> {
        const { assert!(align_of::<H>() <= 8, "rows are aligned to 8 bytes") };
        let row = memory.sources[0].alloc(Self::bytes(memory.words))?;
        // SAFETY: the object has room for the header and the words behind it, and no other thread
        // knows it.
        unsafe {
            row.cast::<H>().write(header);
            row.add(Self::COLUMNS).write_bytes(0, memory.words * 8);
        }
        Ok(row)
    }

    unsafe fn free(memory: &RowMemory<Self>, row: NonNull<u8>) {
        // SAFETY: the caller's promise; `alloc` requested this size.
        unsafe { memory.sources[0].free(row, Self::bytes(memory.words)) };
    }

    #[inline(always)]
    unsafe fn header<'a>(row: NonNull<u8>) -> &'a H {
        // SAFETY: `alloc` wrote the header, and the row is not freed (the caller's promise).
        unsafe { row.cast().as_ref() }
    }

    #[inline(always)]
    unsafe fn columns<'a>(row: NonNull<u8>, words: usize) -> &'a [AtomicU64] {
        // SAFETY: `alloc` wrote the words, and the row is not freed (the caller's promise). Other
        // threads access them atomically alone (R3).
        unsafe { std::slice::from_raw_parts(row.add(Self::COLUMNS).cast().as_ptr(), words) }
    }

    unsafe fn parts(row: NonNull<u8>, words: usize) -> Vec<RowPart> {
        // SAFETY: `alloc` requested an object that has its columns there.
        let columns = unsafe { row.add(Self::COLUMNS) };
        vec![RowPart::new("lock", row, size_of::<H>()), RowPart::new("columns", columns, words * 8)]
    }
}

/// The rows of the study's database, DBx1000: a wrapper, which indexes lead to, a row, its columns
/// and its lock are objects of their own. A lookup follows the pointers from one to the other.
///
/// They are allocated in this order: row (64 bytes), columns, wrapper (64 bytes), lock.
#[derive(Clone, Copy, Debug)]
pub struct Study<H>(PhantomData<fn() -> H>);

impl<H> private::Sealed for Study<H> {}

/// An object of 64 bytes, of which the first words are used.
#[repr(C)]
struct Wrapper {
    row: NonNull<u8>,
    _rest: [u64; 7],
}

#[repr(C)]
struct StudyRow {
    columns: NonNull<u8>,
    lock: NonNull<u8>,
    _rest: [u64; 6],
}

const _: () = assert!(size_of::<Wrapper>() == 64 && size_of::<StudyRow>() == 64);

const ROW: usize = 0;
const COLUMNS: usize = 1;
const WRAPPER: usize = 2;
const LOCK: usize = 3;

impl<H> Study<H> {
    /// # Safety
    /// The row is not freed during `'a`.
    #[inline(always)]
    unsafe fn row<'a>(wrapper: NonNull<u8>) -> &'a StudyRow {
        // SAFETY: `alloc` wrote the wrapper and the row, which never change; the caller's promise.
        unsafe { wrapper.cast::<Wrapper>().as_ref().row.cast().as_ref() }
    }
}

impl<H: RowLock> RowLayout for Study<H> {
    type Header = H;
    const NAME: &'static str = "study";
    const KINDS: &'static [&'static str] = &["row", "columns", "wrapper", "lock"];

    fn alloc(memory: &RowMemory<Self>, header: H) -> Result<NonNull<u8>, AllocError> {
        // Objects that are freed again if a later one cannot be allocated.
        struct Taken<'a>(&'a Source, NonNull<u8>, usize);
        impl Drop for Taken<'_> {
            fn drop(&mut self) {
                // SAFETY: allocated below with this size, and nobody uses it.
                unsafe { self.0.free(self.1, self.2) };
            }
        }
        let take = |kind: usize, bytes: usize| {
            let source = &memory.sources[kind];
            source.alloc(bytes).map(|object| Taken(source, object, bytes))
        };
        let row = take(ROW, size_of::<StudyRow>())?;
        let columns = take(COLUMNS, memory.words * 8)?;
        let wrapper = take(WRAPPER, size_of::<Wrapper>())?;
        const { assert!(align_of::<H>() <= 8, "objects are aligned to 8 bytes") };
        let lock = take(LOCK, size_of::<H>())?;
        let (row_at, columns_at, wrapper_at, lock_at) = (row.1, columns.1, wrapper.1, lock.1);
        // SAFETY: the objects have these sizes, and no other thread knows them.
        unsafe {
            columns_at.write_bytes(0, memory.words * 8);
            lock_at.cast::<H>().write(header);
            row_at.cast().write(StudyRow { columns: columns_at, lock: lock_at, _rest: [0; 6] });
            wrapper_at.cast().write(Wrapper { row: row_at, _rest: [0; 7] });
        }
        for taken in [row, columns, wrapper, lock] {
            std::mem::forget(taken);
        }
        Ok(wrapper_at)
    }

    unsafe fn free(memory: &RowMemory<Self>, wrapper: NonNull<u8>) {
        // SAFETY: the caller's promise; `alloc` requested these sizes.
        unsafe {
            let &StudyRow { columns, lock, .. } = Self::row(wrapper);
            let row = wrapper.cast::<Wrapper>().as_ref().row;
            memory.sources[LOCK].free(lock, size_of::<H>());
            memory.sources[WRAPPER].free(wrapper, size_of::<Wrapper>());
            memory.sources[COLUMNS].free(columns, memory.words * 8);
            memory.sources[ROW].free(row, size_of::<StudyRow>());
        }
    }

    #[inline(always)]
    unsafe fn header<'a>(row: NonNull<u8>) -> &'a H {
        // SAFETY: `alloc` wrote the lock; the caller's promise.
        unsafe { Self::row(row).lock.cast().as_ref() }
    }

    #[inline(always)]
    unsafe fn columns<'a>(row: NonNull<u8>, words: usize) -> &'a [AtomicU64] {
        // SAFETY: as for `Inline`.
        unsafe { std::slice::from_raw_parts(Self::row(row).columns.cast().as_ptr(), words) }
    }

    unsafe fn parts(wrapper: NonNull<u8>, words: usize) -> Vec<RowPart> {
        // SAFETY: `alloc` wrote the wrapper and the row; the caller's promise.
        let (row, fields) = unsafe { (wrapper.cast::<Wrapper>().as_ref().row, Self::row(wrapper)) };
        let part = |kind: usize, object, bytes| RowPart::new(Self::KINDS[kind], object, bytes);
        vec![
            part(WRAPPER, wrapper, offset_of!(Wrapper, _rest)),
            part(ROW, row, offset_of!(StudyRow, _rest)),
            part(LOCK, fields.lock, H::USED),
            part(COLUMNS, fields.columns, words * 8),
        ]
    }
}

/// The most lines of a row that are fetched ahead: those of a row of 1 kB.
const LINES: usize = 17;

/// A row in the layout `R`, during the guard under which its address was read (R2).
pub struct RowRef<R> {
    pub(crate) address: Address,
    pub(crate) words: usize,
    layout: PhantomData<fn() -> R>,
}

impl<R> Clone for RowRef<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for RowRef<R> {}

impl<R: RowLayout> RowRef<R> {
    /// # Safety
    /// The address is that of a row in this layout with as many words, which is not freed while
    /// this value is used.
    #[inline(always)]
    pub(crate) unsafe fn new(address: Address, words: usize) -> Self {
        Self { address, words, layout: PhantomData }
    }

    #[inline(always)]
    pub fn header(&self) -> &R::Header {
        // SAFETY: the promise of `new`.
        unsafe { R::header(self.address.0) }
    }

    #[inline(always)]
    fn columns(&self) -> &[AtomicU64] {
        // SAFETY: the promise of `new`.
        unsafe { R::columns(self.address.0, self.words) }
    }

    /// The parts of the row.
    pub(crate) fn parts(&self) -> Vec<RowPart> {
        // SAFETY: the promise of `new`.
        unsafe { R::parts(self.address.0, self.words) }
    }

    /// Copies the columns. Other threads may write meanwhile: the caller has a lock, or validates.
    #[inline(always)]
    pub fn copy_to(&self, to: &mut [u64]) {
        debug_assert_eq!(to.len(), self.words);
        const STEP: usize = 4; // words that are copied without a look at the length
        let (mut to, mut from) = (to.chunks_exact_mut(STEP), self.columns().chunks_exact(STEP));
        for (to, from) in to.by_ref().zip(from.by_ref()) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.load(Ordering::Relaxed);
            }
        }
        for (to, from) in to.into_remainder().iter_mut().zip(from.remainder()) {
            *to = from.load(Ordering::Relaxed);
        }
    }

    /// Stores those words of `new` that differ from `old`. The caller has the lock.
    #[inline]
    pub fn store(&self, new: &[u64], old: Option<&[u64]>) {
        for (at, (to, &word)) in self.columns().iter().zip(new).enumerate() {
            if old.is_none_or(|old| old[at] != word) {
                to.store(word, Ordering::Relaxed);
            }
        }
    }

    /// Stores the bytes of a row that nobody else uses.
    #[inline]
    pub fn fill(&self, image: &[u8]) {
        for (to, word) in self.columns().iter().zip(image.as_chunks().0) {
            to.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
    }

    /// A word of a row that nobody else uses.
    #[inline]
    pub fn get(&self, at: usize) -> u64 {
        self.columns()[at].load(Ordering::Relaxed)
    }

    /// Stores a word of a row that nobody else uses.
    #[inline]
    pub fn set(&self, at: usize, word: u64) {
        self.columns()[at].store(word, Ordering::Relaxed);
    }

    /// Begins to bring the first lines of the row into the cache.
    #[inline(always)]
    pub fn prefetch(&self) {
        let start = self.address.0.as_ptr();
        // The columns of a row of several objects are elsewhere.
        let lines = if R::KINDS.len() == 1 { LINES } else { 1 };
        for line in (0..self.words * 8 + 8).step_by(64).take(lines) {
            silvics_sync::prefetch(start.wrapping_add(line));
        }
    }
}
