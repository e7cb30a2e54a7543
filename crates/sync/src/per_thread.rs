//! Dense thread indexes, and tables with one padded cell per thread.
//!
//! A thread takes the smallest free index when it first needs one, and returns it when it ends. The
//! next thread with that index takes over the contents of the cells at it. Nothing has to be
//! flushed when a thread ends, and a table never grows beyond the largest number of threads that
//! lived at once. A thread may borrow a free index, to empty the cells at it
//! ([`for_each_ended`]); each such thread may make the tables one cell larger.
//!
//! # Invariants
//! * P1: at any moment an index belongs to at most one living thread: the one that took it, or one
//!   that borrows it.
//! * P2: the last access of a cell by the old owner of an index happens before the first access by
//!   its new owner, because both lock the registry's mutex in between.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `bucket` | `get` load | Acquire | the CAS that installs it | a thread that sees the bucket sees initialised cells |
//! | `bucket` | install CAS | Release / Acquire | `get` | publishes the cells; the loser uses the winner's bucket |
//! | `ENDED` | all | Relaxed | – | a count; the registry's mutex orders what ended threads did |

use crate::CachePadded;
use crate::atomic::{AtomicPtr, Ordering};
use crate::once_box::{install, try_boxed};
#[cfg(not(silvics_shuttle))]
use std::cell::Cell;

/// The index of a living thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadIndex(u32);

impl ThreadIndex {
    /// The index as a number: dense from 0.
    #[inline(always)]
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

#[cfg(not(silvics_shuttle))]
const UNASSIGNED: u32 = u32::MAX;
#[cfg(not(silvics_shuttle))]
const GONE: u32 = u32::MAX - 1;

#[cfg(not(any(silvics_loom, silvics_shuttle)))]
mod registry {
    use crate::Mutex;
    use crate::atomic::{AtomicU64, Ordering};
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    static INDEXES: LazyLock<Mutex<Indexes>> = LazyLock::new(Mutex::default);

    #[derive(Default)]
    struct Indexes {
        free: BTreeSet<u32>,
        /// The number of indexes ever created.
        created: u32,
        /// The number of indexes that threads have borrowed.
        borrowed: u32,
    }

    std::thread_local! {
        /// The thread's index. It has no destructor, so it can be read until the thread's very end.
        pub(super) static INDEX: Cell<u32> = const { Cell::new(super::UNASSIGNED) };
        /// Returns the index when the thread ends.
        static RETURN: Return = const { Return };
    }

    struct Return;

    impl Drop for Return {
        fn drop(&mut self) {
            let index = INDEX.replace(super::GONE);
            INDEXES.lock().free.insert(index);
            ENDED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of threads with an index that have ended.
    pub(super) static ENDED: AtomicU64 = AtomicU64::new(0);

    /// A free index that a thread has borrowed.
    struct Borrowed(u32);

    impl Drop for Borrowed {
        fn drop(&mut self) {
            let mut indexes = INDEXES.lock();
            indexes.free.insert(self.0);
            indexes.borrowed -= 1;
        }
    }

    /// Borrows the free indexes one after the other, in ascending order. Returns whether no other
    /// index was borrowed meanwhile.
    pub(super) fn borrow_each(mut work: impl FnMut(u32)) -> bool {
        let (mut next, mut all) = (0, true);
        loop {
            let index = {
                let mut indexes = INDEXES.lock();
                all &= indexes.borrowed == 0;
                let Some(&index) = indexes.free.range(next..).next() else { return all };
                indexes.free.remove(&index);
                indexes.borrowed += 1;
                Borrowed(index)
            };
            work(index.0);
            next = index.0 + 1;
        }
    }

    pub(super) fn assign() -> u32 {
        if RETURN.try_with(|_| ()).is_err() {
            INDEX.set(super::GONE);
            return super::GONE;
        }
        let mut indexes = INDEXES.lock();
        // The smallest free index keeps tables dense.
        let index = indexes.free.pop_first().unwrap_or_else(|| {
            indexes.created += 1;
            indexes.created - 1
        });
        INDEX.set(index);
        index
    }
}

#[cfg(all(silvics_loom, not(silvics_shuttle)))]
mod registry {
    use std::cell::Cell;

    crate::thread_local! {
        pub(super) static INDEX: Cell<u32> = Cell::new(super::UNASSIGNED);
    }
    crate::model::lazy_static! {
        static ref NEXT: crate::atomic::AtomicU32 = crate::atomic::AtomicU32::new(0);
    }

    /// Assigns a new index. Threads of a model are few and short-lived, so they do not return
    /// indexes.
    pub(super) fn assign() -> u32 {
        let index = NEXT.fetch_add(1, crate::atomic::Ordering::Relaxed);
        INDEX.with(|i| i.set(index));
        index
    }

    /// Borrows nothing: no index is free.
    pub(super) fn borrow_each(_work: impl FnMut(u32)) -> bool {
        true
    }
}

/// The calling task's index: its number in the execution plus one, or 0 outside of an execution.
#[cfg(silvics_shuttle)]
pub fn thread_index() -> Option<ThreadIndex> {
    Some(ThreadIndex(crate::model::task().map_or(0, |task| task as u32 + 1)))
}

/// The calling thread's index, or `None` once the thread's local variables are destroyed.
#[cfg(not(silvics_shuttle))]
#[inline]
pub fn thread_index() -> Option<ThreadIndex> {
    let index = registry::INDEX.with(Cell::get);
    if index < GONE { Some(ThreadIndex(index)) } else { assign(index) }
}

#[cfg(not(silvics_shuttle))]
#[cold]
fn assign(index: u32) -> Option<ThreadIndex> {
    if index == GONE {
        return None;
    }
    let index = registry::assign();
    (index < GONE).then_some(ThreadIndex(index))
}

/// Calls `work` with each index that no living thread has, in ascending order. During a call of
/// `work` the index is the calling thread's, as well as its own one. O(log threads) per index.
///
/// Returns whether these were all: a call leaves out an index that another one has borrowed.
///
/// Under a model checker no thread returns its index, so `work` is not called.
pub fn for_each_ended(work: impl Fn(ThreadIndex)) -> bool {
    #[cfg(not(silvics_shuttle))]
    return registry::borrow_each(|index| work(ThreadIndex(index)));
    #[cfg(silvics_shuttle)]
    {
        let _ = work;
        true
    }
}

/// The number of threads that have returned their index. It tells whether [`for_each_ended`] may
/// find more than before. 0 under a model checker.
pub fn threads_ended() -> u64 {
    #[cfg(not(any(silvics_loom, silvics_shuttle)))]
    return registry::ENDED.load(Ordering::Relaxed);
    #[cfg(any(silvics_loom, silvics_shuttle))]
    return 0;
}

/// The number of buckets. They hold 1, 2, 4, … cells, so that a table grows without moving cells.
const BUCKETS: usize = 32;

/// An account that is charged for a table's memory.
pub trait Account {
    /// Charges `bytes` more. Returns whether the account admits them.
    fn admit(&self, bytes: usize) -> bool;
    /// Credits `bytes` that were admitted before.
    fn refund(&self, bytes: usize);
}

/// The account that admits everything and counts nothing.
impl Account for () {
    fn admit(&self, _bytes: usize) -> bool {
        true
    }
    fn refund(&self, _bytes: usize) {}
}

impl<A: Account + ?Sized> Account for std::sync::Arc<A> {
    fn admit(&self, bytes: usize) -> bool {
        (**self).admit(bytes)
    }
    fn refund(&self, bytes: usize) {
        (**self).refund(bytes);
    }
}

/// Bytes that an account has admitted. They are refunded unless they are kept.
pub(crate) struct Charge<'a, A: Account> {
    account: &'a A,
    bytes: usize,
}

impl<'a, A: Account> Charge<'a, A> {
    /// Charges `bytes`, if the account admits them.
    pub(crate) fn take(account: &'a A, bytes: usize) -> Option<Self> {
        account.admit(bytes).then(|| Self { account, bytes })
    }

    /// Leaves the bytes charged.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl<A: Account> Drop for Charge<'_, A> {
    fn drop(&mut self) {
        self.account.refund(self.bytes);
    }
}

/// A table of one `T` per thread, each on cache lines of its own and made by `T::default`. An
/// account is charged for its memory.
///
/// [`PerThread::get`] returns shared references. If only the owner of a cell may write it, the
/// cell's type must ensure that itself; P1 makes the owner one thread at a time.
pub struct PerThread<T, A: Account = ()> {
    buckets: [AtomicPtr<CachePadded<T>>; BUCKETS],
    account: A,
}

impl<T, A: Account> std::fmt::Debug for PerThread<T, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerThread").finish_non_exhaustive()
    }
}

// SAFETY: the table owns its cells, and threads share references to them.
unsafe impl<T: Send + Sync, A: Account + Send> Send for PerThread<T, A> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send + Sync, A: Account + Sync> Sync for PerThread<T, A> {}

impl<T: Default, A: Account> PerThread<T, A> {
    /// Makes an empty table. A cell is made when its thread first needs it.
    pub fn new(account: A) -> Self {
        let buckets = std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut()));
        Self { buckets, account }
    }

    /// The cell of `index`, if it has been made.
    #[inline(always)]
    pub fn get(&self, index: ThreadIndex) -> Option<&T> {
        let (bucket, at) = Self::locate(index);
        let cells = self.buckets[bucket].load(Ordering::Acquire);
        if cells.is_null() {
            return None;
        }
        // SAFETY: an installed bucket contains 2^bucket initialised cells until the table is
        // dropped, and `at` is below 2^bucket.
        Some(unsafe { &**cells.add(at) })
    }

    /// The cell of `index`, made if necessary. Returns `None` if the account refuses the memory or
    /// its allocation failed.
    #[inline(always)]
    pub fn get_or_make(&self, index: ThreadIndex) -> Option<&T> {
        self.get(index).or_else(|| self.make(index))
    }

    #[cold]
    fn make(&self, index: ThreadIndex) -> Option<&T> {
        let (bucket, at) = Self::locate(index);
        let charge = Charge::take(&self.account, Self::bucket_bytes(bucket))?;
        let cells = install(&self.buckets[bucket], try_boxed(1 << bucket, CachePadded::default)?);
        if cells.is_ok() {
            charge.keep();
        }
        let (Ok(cells) | Err(cells)) = cells;
        // SAFETY: as in `get`.
        Some(unsafe { &**cells.add(at) })
    }

    /// Makes the cells of the first `threads` indexes in advance. It stops early if the account
    /// refuses the memory or its allocation failed.
    pub fn prepare(&self, threads: u32) {
        for index in 0..threads {
            if self.get_or_make(ThreadIndex(index)).is_none() {
                return;
            }
        }
    }

    /// The cells made so far, of living and ended threads.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.buckets.iter().enumerate().flat_map(|(bucket, cells)| {
            let cells = cells.load(Ordering::Acquire);
            let len = if cells.is_null() { 0 } else { 1usize << bucket };
            // SAFETY: as in `get`.
            (0..len).map(move |at| unsafe { &**cells.add(at) })
        })
    }

    #[inline(always)]
    fn locate(index: ThreadIndex) -> (usize, usize) {
        let position = index.0 + 1; // below u32::MAX: no overflow, and the bucket is in bounds
        let bucket = position.ilog2();
        (bucket as usize, (position ^ 1 << bucket) as usize)
    }
}

impl<T, A: Account> PerThread<T, A> {
    const fn bucket_bytes(bucket: usize) -> usize {
        size_of::<CachePadded<T>>() << bucket
    }
}

impl<T, A: Account> Drop for PerThread<T, A> {
    fn drop(&mut self) {
        for (bucket, cells) in self.buckets.iter().enumerate() {
            let cells = cells.load(Ordering::Acquire);
            if !cells.is_null() {
                self.account.refund(Self::bucket_bytes(bucket));
                let cells = std::ptr::slice_from_raw_parts_mut(cells, 1 << bucket);
                // SAFETY: `make` installed a box of this length, and nobody else has the table.
                drop(unsafe { Box::from_raw(cells) });
            }
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::atomic::AtomicUsize;
    use crate::times;
    use std::collections::HashSet;
    use std::sync::{Arc, Barrier};

    #[test]
    fn living_threads_have_different_indexes_and_ended_ones_give_them_back() {
        const THREADS: usize = 20;
        let mut highest = 0;
        for _ in 0..5 {
            let all_alive = Arc::new(Barrier::new(THREADS));
            let indexes: HashSet<usize> = (0..THREADS)
                .map(|_| {
                    let all_alive = Arc::clone(&all_alive);
                    std::thread::spawn(move || {
                        let index = thread_index().unwrap();
                        assert_eq!(thread_index(), Some(index));
                        all_alive.wait();
                        index.get()
                    })
                })
                .collect::<Vec<_>>()
                .into_iter()
                .map(|t| t.join().unwrap())
                .collect();
            assert_eq!(indexes.len(), THREADS);
            highest = highest.max(*indexes.iter().max().unwrap());
        }
        // Other tests of this process may hold some indexes.
        assert!(highest < 5 * THREADS, "indexes are not reused: {highest}");
    }

    #[test]
    fn indexes_of_ended_threads_can_be_borrowed_and_those_of_living_ones_cannot() {
        const THREADS: usize = 8;
        let own = thread_index().unwrap();
        let (ended, table) = (AtomicUsize::new(0), PerThread::<AtomicUsize>::new(()));
        let start = Barrier::new(THREADS);
        let use_own = || {
            let cell = table.get_or_make(thread_index().unwrap()).unwrap();
            assert_eq!(cell.fetch_add(1, Ordering::Relaxed), 0, "two threads have one index");
            std::thread::yield_now();
            assert_eq!(cell.fetch_sub(1, Ordering::Relaxed), 1, "two threads have one index");
        };
        for _ in 0..if cfg!(miri) { 2 } else { 50 } {
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        use_own();
                    });
                }
                let _ = for_each_ended(|index| {
                    assert_ne!(index, own);
                    let cell = table.get_or_make(index).unwrap();
                    assert_eq!(cell.fetch_add(1, Ordering::Relaxed), 0, "a living thread has it");
                    std::thread::yield_now();
                    cell.fetch_sub(1, Ordering::Relaxed);
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
        assert!(ended.load(Ordering::Relaxed) > 0);
        // A borrowed index is returned also when the work panics.
        let count = || {
            let count = AtomicUsize::new(0);
            let _ = for_each_ended(|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            count.into_inner()
        };
        let panics = std::panic::catch_unwind(|| for_each_ended(|_| panic!("planted")));
        assert!(panics.is_err() && count() > 0);
        // One call leaves out what another one has.
        let _ = for_each_ended(|index| {
            let all = for_each_ended(|other| assert_ne!(index, other));
            assert!(!all, "the inner call left {index:?} out");
        });
    }

    #[test]
    fn a_cell_belongs_to_its_index_and_survives_its_thread() {
        let table = Arc::new(PerThread::<AtomicUsize>::new(()));
        let first = {
            let table = Arc::clone(&table);
            std::thread::spawn(move || {
                let index = thread_index().unwrap();
                table.get_or_make(index).unwrap().store(index.get() + 1, Ordering::Relaxed);
                index
            })
            .join()
            .unwrap()
        };
        assert_eq!(table.get(first).unwrap().load(Ordering::Relaxed), first.get() + 1);
        assert_eq!(table.iter().filter(|c| c.load(Ordering::Relaxed) != 0).count(), 1);
    }

    #[test]
    fn the_account_bears_what_the_table_holds_and_may_refuse() {
        struct Limited(AtomicUsize, usize);
        impl Account for &Limited {
            fn admit(&self, bytes: usize) -> bool {
                let taken = |held| Some(held + bytes).filter(|&after| after <= self.1);
                self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
            }
            fn refund(&self, bytes: usize) {
                self.0.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
        let cell = size_of::<CachePadded<u64>>();
        let account = Limited(AtomicUsize::new(0), 3 * cell);
        let table = PerThread::<u64, _>::new(&account);
        assert!(table.get_or_make(ThreadIndex(0)).is_some());
        assert!(table.get_or_make(ThreadIndex(1)).is_some() && table.get(ThreadIndex(2)).is_some());
        assert_eq!(account.0.load(Ordering::Relaxed), 3 * cell);
        assert!(table.get_or_make(ThreadIndex(3)).is_none(), "refused");
        drop(table);
        assert_eq!(account.0.load(Ordering::Relaxed), 0);

        // Two threads want one bucket at once: the loser's bytes are refunded.
        let account = Limited(AtomicUsize::new(0), usize::MAX);
        for _ in 0..times(1000) {
            let table = PerThread::<u64, _>::new(&account);
            let start = Barrier::new(2);
            std::thread::scope(|scope| {
                for cell in 1..=2 {
                    let (table, start) = (&table, &start);
                    scope.spawn(move || {
                        start.wait();
                        assert!(table.get_or_make(ThreadIndex(cell)).is_some());
                    });
                }
            });
            assert_eq!(account.0.load(Ordering::Relaxed), 2 * cell);
        }
        assert_eq!(account.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn cells_can_be_made_ahead() {
        let table = PerThread::<AtomicUsize>::new(());
        table.prepare(5);
        assert!((0..7).all(|index| table.get(ThreadIndex(index)).is_some()), "whole buckets");
        assert!(table.get(ThreadIndex(7)).is_none());
    }

    #[test]
    fn cells_do_not_share_lines() {
        let table = PerThread::<AtomicUsize>::new(());
        let a = std::ptr::from_ref(table.get_or_make(ThreadIndex(1)).unwrap()).addr();
        let b = std::ptr::from_ref(table.get_or_make(ThreadIndex(2)).unwrap()).addr();
        assert!(a.abs_diff(b) >= 64);
    }
}
