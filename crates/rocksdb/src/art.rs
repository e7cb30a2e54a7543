//! `silvics_art`: the byte index over RocksDB's entries.
//!
//! The index ([`EntrySet`]) has the addresses of entries. Their keys stay in RocksDB's arena.
//!
//! # Pins
//! A reader of the index pins its domain. Each call here pins for itself, and none returns a
//! reference into the index. So an iterator of RocksDB that lives for hours holds nothing back. A
//! pin takes some nanoseconds, and a run of entries needs one.
//!
//! All tables use the shared domain of the process. A thread registers with a domain when it pins
//! it for the first time: with one domain this happens once, and not for every memtable of every
//! column family. Since no pin outlives its call, tables do not hold back each other's memory.

use crate::table::{Run, fail, run, start};
use silvics::blocks::EntrySet;
use silvics::{AllocError, Domain, Options};
use silvics_memtable::index::Handle;
use silvics_memtable::{Entry, InternalKey};
use silvics_sync::prefetch;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::ptr::{NonNull, null_mut};

/// Runs of more entries than this are prefetched: their reader goes through them.
const FEW: usize = 4;

/// A table of one of the two orders that the index knows.
#[derive(Debug)]
struct Ordered<const REVERSE: bool>(EntrySet<Handle<REVERSE>>);

impl<const REVERSE: bool> Ordered<REVERSE> {
    fn new() -> Result<Self, AllocError> {
        let options = Options { domain: Some(Domain::shared()), ..Options::default() };
        EntrySet::with_options(&options).map(Self)
    }

    /// Puts an entry in. Returns false if there is one with its key.
    ///
    /// # Safety
    /// As [`Handle::new`] demands: the entry outlives the table.
    #[inline(always)]
    unsafe fn insert(&self, entry: NonNull<u8>) -> Result<bool, AllocError> {
        // SAFETY: the caller's promise.
        let handle = unsafe { Handle::new(entry) };
        Ok(self.0.insert(handle, &self.0.domain().pin())?.is_none())
    }

    /// Fills a run with entries in RocksDB's order, or in the opposite one.
    #[inline(always)]
    fn walk(&self, from: Bound<InternalKey<'_>>, descends: bool, run: &mut Run) -> usize {
        let guard = self.0.domain().pin();
        let from = from.map(Handle::<REVERSE>::ordered);
        if descends == REVERSE {
            fill(self.0.range((from, Bound::Unbounded), &guard), run)
        } else {
            fill(self.0.range_rev((Bound::Unbounded, from), &guard), run)
        }
    }

    fn contains(&self, key: InternalKey<'_>) -> bool {
        self.0.get(Handle::<REVERSE>::ordered(key), &self.0.domain().pin()).is_some()
    }
}

#[inline(always)]
fn fill<const REVERSE: bool>(
    entries: impl Iterator<Item = Handle<REVERSE>>,
    run: &mut Run,
) -> usize {
    let mut len = 0;
    let is_long = run.len() > FEW;
    // The run comes first: when it is full, no further entry is sought.
    for (place, entry) in run.iter_mut().zip(entries) {
        if is_long {
            prefetch(entry.address().as_ptr());
        }
        *place = MaybeUninit::new(entry.address().as_ptr().cast_const());
        len += 1;
    }
    len
}

/// A memtable.
#[derive(Debug)]
pub struct Art(Order);

#[derive(Debug)]
enum Order {
    Forward(Ordered<false>),
    Reverse(Ordered<true>),
}

/// Calls a method of the table in its order.
macro_rules! with {
    ($table:expr, $ordered:ident => $call:expr) => {
        match &$table.0 {
            Order::Forward($ordered) => $call,
            Order::Reverse($ordered) => $call,
        }
    };
}

impl Art {
    /// An empty table for keys in the order of their bytes, or in the reverse order.
    pub fn new(is_reverse: bool) -> Result<Self, AllocError> {
        Ok(Self(if is_reverse {
            Order::Reverse(Ordered::new()?)
        } else {
            Order::Forward(Ordered::new()?)
        }))
    }

    /// Puts an entry in. Returns false if there is one with its key.
    ///
    /// # Safety
    /// An entry begins at the address (see [`entry`](crate::entry)). It neither changes nor is
    /// freed before the table is dropped.
    #[inline(always)]
    pub unsafe fn insert(&self, entry: NonNull<u8>) -> Result<bool, AllocError> {
        // SAFETY: the caller's promise.
        with!(self, ordered => unsafe { ordered.insert(entry) })
    }

    /// Fills a run with the addresses of entries from a key on: in RocksDB's order, or in the
    /// opposite order if it `descends`. Returns their number, which is less than the room only if
    /// there are no more.
    #[inline(always)]
    pub fn walk(
        &self,
        from: Bound<InternalKey<'_>>,
        descends: bool,
        run: &mut [MaybeUninit<*const u8>],
    ) -> usize {
        with!(self, ordered => ordered.walk(from, descends, run))
    }

    /// Whether there is an entry with this key.
    pub fn contains(&self, key: InternalKey<'_>) -> bool {
        with!(self, ordered => ordered.contains(key))
    }

    /// The bytes of the table, without the entries.
    pub fn bytes(&self) -> usize {
        with!(self, ordered => ordered.0.bytes())
    }
}

/// Makes a table. Returns null if the allocation failed.
#[unsafe(no_mangle)]
pub extern "C" fn silvics_art_new(is_reverse: bool) -> *mut Art {
    Art::new(is_reverse).map_or(null_mut(), |art| Box::into_raw(Box::new(art)))
}

/// Drops a table.
///
/// # Safety
/// [`silvics_art_new`] has returned it. It is dropped once, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_art_drop(art: *mut Art) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(art) });
}

/// Puts an entry in. Returns false if there is one with its key.
///
/// RocksDB cannot refuse an insert: its log has the entry already, and its own memtables throw
/// `bad_alloc` through code that does not handle it. So the process ends if there is no memory, or
/// if the key is too long for the index, and the log still has the entry.
///
/// # Safety
/// The table lives. An entry begins at the address, and neither changes nor is freed before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_art_insert(art: &Art, entry: NonNull<u8>) -> bool {
    // SAFETY: the caller's promise.
    match unsafe { art.insert(entry) } {
        Ok(is_new) => is_new,
        Err(error) => fail("silvics_art", error),
    }
}

/// Fills a run with entries from an internal key on, or from an end of the table if it is null.
///
/// # Safety
/// The table lives. `len` bytes lie at `key`, of which the last eight are a trailer, or it is null.
/// `room` addresses fit at `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_art_seek(
    art: &Art,
    key: *const u8,
    len: usize,
    descends: bool,
    to: *mut *const u8,
    room: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { art.walk(start(key, len), descends, run(to, room)) }
}

/// Fills a run with the entries that follow one of the table.
///
/// # Safety
/// The table lives, and has the entry. `room` addresses fit at `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_art_follow(
    art: &Art,
    entry: NonNull<u8>,
    descends: bool,
    to: *mut *const u8,
    room: usize,
) -> usize {
    // SAFETY: the caller's promise: entries of the table live as long as it.
    unsafe { art.walk(Bound::Excluded(Entry::from_raw(entry).key()), descends, run(to, room)) }
}

/// Whether the table has an entry with the key of this one.
///
/// # Safety
/// The table lives. An entry begins at the address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_art_contains(art: &Art, entry: NonNull<u8>) -> bool {
    // SAFETY: the caller's promise.
    art.contains(unsafe { Entry::from_raw(entry) }.key())
}

/// The bytes of the table, without the entries.
///
/// # Safety
/// The table lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_art_bytes(art: &Art) -> usize {
    art.bytes()
}
