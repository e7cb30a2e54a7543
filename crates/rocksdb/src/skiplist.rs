//! `silvics_skiplist`: the skip list with entries in its nodes, in RocksDB's arena.
//!
//! A list for one of the two orders of bytes compares keys by itself, and has hints on its links. A
//! list for another comparator calls it through a C function.
//!
//! The list has hints for inserts, but RocksDB's are not used: `cpp/table.h` says why.

use crate::table::{Run, fail, run, start};
use silvics::AllocError;
use silvics_memtable::skiplist::{
    Arena, ByBytes, ByFunction, InlineSkipList, Order, Place, Position,
};
use silvics_memtable::{EncodedKey, Entry, InternalKey};
use std::alloc::Layout;
use std::cmp::Ordering;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::ptr::NonNull;

/// RocksDB's allocator of a memtable, and the function that calls it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Memory {
    /// The allocator.
    pub allocator: *mut c_void,
    /// Allocates bytes, aligned to words. Returns null if that fails.
    pub alloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut u8,
}

// SAFETY: the allocator of a memtable that takes concurrent inserts is for any thread
// (`memory/concurrent_arena.h`).
unsafe impl Send for Memory {}
// SAFETY: as for `Send`.
unsafe impl Sync for Memory {}

// SAFETY: the allocator returns memory of its own for each call, aligned to words, and frees it
// after the memtable's table. The C function returns null instead of an exception.
unsafe impl Arena for Memory {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        // SAFETY: `silvics_skiplist_new` demands that the allocator lives as long as the list.
        let memory = unsafe { (self.alloc)(self.allocator, layout.size()) };
        NonNull::new(memory).ok_or(AllocError::System { requested: layout.size() })
    }
}

/// RocksDB's comparator of entries, and the function that calls it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Compare {
    /// The comparator.
    pub comparator: *const c_void,
    /// Compares two entries: the result is negative, zero or positive.
    pub compare: unsafe extern "C" fn(*const c_void, *const u8, *const u8) -> c_int,
}

// SAFETY: comparators of RocksDB are for any thread (`rocksdb/comparator.h`).
unsafe impl Send for Compare {}
// SAFETY: as for `Send`.
unsafe impl Sync for Compare {}

impl Compare {
    #[inline]
    fn call(&self, a: Entry<'_>, b: Entry<'_>) -> Ordering {
        let (a, b) = (a.as_ptr().as_ptr(), b.as_ptr().as_ptr());
        // SAFETY: `silvics_skiplist_new` demands that the comparator lives as long as the list.
        unsafe { (self.compare)(self.comparator, a, b) }.cmp(&0)
    }
}

/// The orders in which C++ asks for a list. `cpp/internal.h` has the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KeyOrder {
    /// The order of bytes.
    Bytes = 0,
    /// The reverse order of bytes.
    ReverseBytes = 1,
    /// The order of a comparator.
    Other = 2,
}

/// An order whose targets are made from the two forms in which RocksDB has a key.
trait Sought: Order {
    fn sought<R>(
        key: InternalKey<'_>,
        entry: Option<Entry<'_>>,
        search: impl FnOnce(Self::Target<'_>) -> R,
    ) -> R;
}

impl<const REVERSE: bool> Sought for ByBytes<REVERSE> {
    #[inline(always)]
    fn sought<R>(
        key: InternalKey<'_>,
        _: Option<Entry<'_>>,
        search: impl FnOnce(InternalKey<'_>) -> R,
    ) -> R {
        search(key)
    }
}

impl<F: Fn(Entry<'_>, Entry<'_>) -> Ordering + Send + Sync> Sought for ByFunction<F> {
    #[inline(always)]
    fn sought<R>(
        key: InternalKey<'_>,
        entry: Option<Entry<'_>>,
        search: impl FnOnce(Entry<'_>) -> R,
    ) -> R {
        match entry {
            Some(entry) => search(entry),
            None => search(EncodedKey::new(key).entry()),
        }
    }
}

/// Fills a run with a position and those that follow it.
#[inline(always)]
fn fill<'l, O: Order>(
    list: &'l InlineSkipList<O, Memory>,
    position: Option<Position<'l>>,
    descends: bool,
    run: &mut Run,
) -> usize {
    let (mut len, room) = (0, run.len());
    list.visit(position, descends, room, |at| {
        run[len] = MaybeUninit::new(at.entry().as_ptr().as_ptr().cast_const());
        len += 1;
    });
    len
}

#[inline(always)]
fn seek<O: Sought>(
    list: &InlineSkipList<O, Memory>,
    key: Bound<InternalKey<'_>>,
    entry: Option<Entry<'_>>,
    descends: bool,
    run: &mut Run,
) -> usize {
    let position = match key {
        Bound::Included(key) | Bound::Excluded(key) => O::sought(key, entry, |target| {
            if descends { list.seek_for_prev(target) } else { list.seek(target) }
        }),
        Bound::Unbounded if descends => list.last(),
        Bound::Unbounded => list.first(),
    };
    fill(list, position, descends, run)
}

type Comparing = Box<dyn Fn(Entry<'_>, Entry<'_>) -> Ordering + Send + Sync>;

/// A memtable.
#[derive(Debug)]
pub struct List(Orders);

enum Orders {
    Forward(InlineSkipList<ByBytes<false>, Memory>),
    Reverse(InlineSkipList<ByBytes<true>, Memory>),
    Other(InlineSkipList<ByFunction<Comparing>, Memory>),
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Forward(_) => "Forward",
            Self::Reverse(_) => "Reverse",
            Self::Other(_) => "Other",
        })
    }
}

/// Calls functions of the list in its order.
macro_rules! with {
    ($table:expr, $list:ident => $call:expr) => {
        match &$table.0 {
            Orders::Forward($list) => $call,
            Orders::Reverse($list) => $call,
            Orders::Other($list) => $call,
        }
    };
}

/// Makes a list, which allocates from RocksDB's memory.
///
/// # Safety
/// The allocator and the comparator live as long as the list. Their functions take them, and any
/// thread may call them; neither lets an exception out. The allocator returns null, or words that
/// nobody else uses before the list is dropped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_new(
    order: KeyOrder,
    compare: Compare,
    memory: Memory,
) -> *mut List {
    Box::into_raw(Box::new(List(match order {
        KeyOrder::Bytes => Orders::Forward(InlineSkipList::new(ByBytes, memory)),
        KeyOrder::ReverseBytes => Orders::Reverse(InlineSkipList::new(ByBytes, memory)),
        KeyOrder::Other => {
            let comparing: Comparing = Box::new(move |a, b| compare.call(a, b));
            Orders::Other(InlineSkipList::new(ByFunction(comparing), memory))
        }
    })))
}

/// Drops a list. Its nodes stay in RocksDB's memory.
///
/// # Safety
/// [`silvics_skiplist_new`] has returned it. It is dropped once, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_drop(list: *mut List) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(list) });
}

/// Allocates a node, and returns the place of its entry of `bytes` bytes. The process ends if the
/// allocation fails: RocksDB writes to the place without a check.
///
/// # Safety
/// The list lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_allocate(list: &List, bytes: usize) -> NonNull<u8> {
    match with!(list, list => list.allocate(bytes)) {
        Ok(place) => place.entry(),
        Err(error) => fail("silvics_skiplist", error),
    }
}

/// Puts an entry in. Returns false if there is one with its key.
///
/// # Safety
/// The list lives. [`silvics_skiplist_allocate`] has returned the entry's place for it, the entry
/// is written there, and it is inserted once. No other insert runs meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_insert(list: &List, entry: NonNull<u8>) -> bool {
    // SAFETY: the caller's promise.
    with!(list, list => unsafe { list.insert(Place::of_entry(entry)) })
}

/// Puts an entry in while other threads may put others in by functions whose names end in
/// `concurrently`. Returns false if there is one with its key.
///
/// # Safety
/// The list lives. [`silvics_skiplist_allocate`] has returned the entry's place for it, the entry
/// is written there, and it is inserted once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_insert_concurrently(
    list: &List,
    entry: NonNull<u8>,
) -> bool {
    // SAFETY: the caller's promise.
    with!(list, list => unsafe { list.insert_concurrently(Place::of_entry(entry)) })
}

/// Fills a run with entries from a key on, or from an end of the list if it is null.
///
/// # Safety
/// The list lives. `len` bytes lie at `key`, of which the last eight are a trailer, or it is null.
/// An entry with this key begins at `entry`, or it is null. `room` addresses fit at `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_seek(
    list: &List,
    key: *const u8,
    len: usize,
    entry: *mut u8,
    descends: bool,
    to: *mut *const u8,
    room: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (key, entry, run) = unsafe {
        (start(key, len), NonNull::new(entry).map(|at| Entry::from_raw(at)), run(to, room))
    };
    with!(list, list => seek(list, key, entry, descends, run))
}

/// Fills a run with the entries that follow one of the list.
///
/// # Safety
/// The list lives, and has the entry. `room` addresses fit at `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_follow(
    list: &List,
    entry: NonNull<u8>,
    descends: bool,
    to: *mut *const u8,
    room: usize,
) -> usize {
    // SAFETY: the caller's promise. In an inline list the entry's address is that of its node.
    let (at, run) = unsafe { (Position::from_raw(entry), run(to, room)) };
    with!(list, list => {
        fill(list, if descends { list.prev(at) } else { list.next(at) }, descends, run)
    })
}

/// Whether the list has an entry with the key of this one.
///
/// # Safety
/// The list lives. An entry begins at the address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_skiplist_contains(list: &List, entry: NonNull<u8>) -> bool {
    fn contains<O: Order>(list: &InlineSkipList<O, Memory>, entry: Entry<'_>) -> bool {
        list.contains(O::target(entry))
    }
    // SAFETY: the caller's promise.
    let entry = unsafe { Entry::from_raw(entry) };
    with!(list, list => contains(list, entry))
}
