//! Two-phase locking.
//!
//! # Source
//! Eswaran, Gray, Lorie and Traiger, CACM 1976 (two phases); Rosenkrantz, Stearns and Lewis, TODS
//! 1978 (wait-die); Mohan, VLDB 1990 (next-key locks); Yu, Bezerra, Pavlo, Devadas and Stonebraker,
//! VLDB 2014 (no-wait and wait-die in DBx1000).
//!
//! # Algorithm
//! ```text
//! read(row):    lock the row shared; copy the columns
//! write(row):   lock the row exclusive; copy the columns; they are changed at the commit
//! miss(key):    lock the key shared in the table of key locks; look it up again
//! insert(key):  lock the key exclusive; make a row, held exclusive; place it in the index;
//!               fence; look at the lock of the next key: nobody else may hold it
//! scan(range):  lock each row shared, and the first row behind the range, or the end of the index;
//!               fence; the index must still have the same entries, up to that row, else lock again
//! commit:       change the rows; release all locks
//! ```
//! If a lock is held, **no-wait** aborts the transaction. Under **wait-die** it waits if it is
//! older than all holders, and is aborted otherwise; it keeps its age when it runs again.
//!
//! # Invariants
//! * P1: a transaction holds the lock of each row that it has read or written until its end, and
//!   the columns change only under the exclusive lock.
//! * P2: the lock of a row also stands for the gap between its key and the key before it, in each
//!   index. A transaction that has scanned a gap holds this lock. The lock `end` of an index stands
//!   for the gap behind its last key. In an index of lists, each list has its own gaps, and the
//!   lock of its key in the table of key locks stands for the gap behind its last entry.
//! * P3: a transaction that places an entry sees the lock of each transaction that has scanned the
//!   gap of its key before, or that transaction sees the entry: one of the two fences comes first.
//!   The scan's lock is that of the first committed row behind the gap, or of `end`. The one that
//!   places looks at the first entry, which may be that of a third transaction. If the third one
//!   holds its row still, this is a conflict. If it has given the entry up and released the row, it
//!   has counted that in between (`removals`), and the one that places looks again.
//! * P4: an entry leaves an index only while its row is held exclusive. The exception is an entry
//!   whose removal was postponed. `next` skips it, so a scan never takes its row for the one behind
//!   the range. So the row behind a range has its entry as long as the scan holds its lock.
//! * P5: a transaction waits only for younger ones. So no cycle of waits exists.
//!
//! # Memory ordering
//! The locks' own orderings are in `lock/word.rs`. The two fences of the algorithm are `SeqCst`
//! (P3). The count of removals:
//!
//! | access | ordering | reason |
//! |---|---|---|
//! | add, when an own entry is gone | Release | a walk that follows a load of it does not meet the entry |
//! | load before the walk | Acquire | if the walk meets the entry, the count was the old one |
//! | load after it | Relaxed | a transaction that sees the lock free acquired it after the addition |

use super::held::{Locks, Mode};
use super::{Policy, Scanned, Seen, Stop, private};
use crate::canary::{self, Canary};
use crate::error::Conflict;
use crate::index::{Bounds, ErasedIndex, IndexCore};
use crate::key::{KeyRef, spread};
use crate::lock::{NO_HOLDER, Refused, RowLock, WordLock};
use crate::rows::{Address, Inline, RowLayout, RowRef};
use crate::store::StoreCore;
use crate::tx::state::{Inner, WriteKind};
use silvics_sync::atomic::{Ordering, fence};
use silvics_sync::backoff::Backoff;
use std::marker::PhantomData;
use std::ops::Bound;
use std::ptr::NonNull;

/// The attempts to find the row behind a range or a key while rows come and go.
const TRIES: usize = 64;

/// Two-phase locking, described in `policy/locking.rs`. `W` is the reaction to a conflict, `R` the
/// layout of rows with their locks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Locking<W = NoWait, R = Inline<WordLock>>(PhantomData<fn() -> (W, R)>);

/// The reaction of a transaction to a lock that is held. The trait is sealed.
pub trait OnConflict: private::Sealed + Send + Sync + 'static {
    /// The name in reports.
    const NAME: &'static str;
    /// The reason of an abort.
    #[doc(hidden)]
    const REASON: Conflict;
    /// Whether a transaction of age `ts` waits for holders that are not older than `oldest`.
    #[doc(hidden)]
    fn waits(ts: u64, oldest: u64) -> bool;
}

/// A conflict aborts the transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWait;

/// An older transaction waits, a younger one is aborted.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitDie;

impl private::Sealed for NoWait {}
impl private::Sealed for WaitDie {}

impl OnConflict for NoWait {
    const NAME: &'static str = "no-wait";
    const REASON: Conflict = Conflict::RowLocked;

    #[inline(always)]
    fn waits(_ts: u64, _oldest: u64) -> bool {
        false
    }
}

impl OnConflict for WaitDie {
    const NAME: &'static str = "wait-die";
    const REASON: Conflict = Conflict::Died;

    #[inline]
    fn waits(ts: u64, oldest: u64) -> bool {
        oldest != NO_HOLDER && ts < oldest
    }
}

/// The locks that a transaction holds.
pub struct LockLog<L> {
    rows: Locks<L>,
    keys: Locks<WordLock>,
}

impl<L> Default for LockLog<L> {
    fn default() -> Self {
        Self { rows: Locks::default(), keys: Locks::default() }
    }
}

// SAFETY: the pointers lead to locks, which any thread may use.
unsafe impl<L: Send + Sync> Send for LockLog<L> {}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Granted {
    /// The transaction has one more lock.
    Now,
    /// The transaction holds a lock that is enough.
    Before,
    /// The row of the lock is not there.
    Absent,
}

/// Requests a lock for a transaction of age `ts`, and waits as `W` does. `reason` is that of an
/// abort.
#[inline]
fn acquire<W: OnConflict, L: RowLock>(
    locks: &mut Locks<L>,
    (lock, row): (&L, Option<Address>),
    mode: Mode,
    ts: u64,
    reason: Conflict,
) -> Result<Granted, Stop> {
    locks.reserve()?;
    let place = NonNull::from(lock);
    let mut own_shared = 0;
    let mut backoff = Backoff::new();
    loop {
        let granted = if mode == Mode::Shared {
            lock.lock_shared(ts)
        } else {
            lock.lock_exclusive(ts, own_shared)
        };
        let oldest = match granted {
            Ok(()) => {
                if own_shared > 0 {
                    locks.merge(place);
                }
                locks.push(place, row, mode);
                return Ok(Granted::Now);
            }
            Err(Refused::Absent) => return Ok(Granted::Absent),
            Err(Refused::Held(oldest)) => oldest,
        };
        let held = locks.own(place);
        if held.exclusive || (mode == Mode::Shared && held.shared > 0) {
            return Ok(Granted::Before);
        }
        if mode == Mode::Exclusive && held.shared != own_shared {
            own_shared = held.shared; // its own requests are in the way
            continue;
        }
        // A transaction that holds the lock itself waits for the others if none of them is older.
        let waits = W::waits(ts, oldest) || (own_shared > 0 && W::waits(ts, oldest + 1));
        if !waits {
            return Err(reason.into());
        }
        backoff.wait();
    }
}

impl<W: OnConflict, R: RowLayout<Header: RowLock>> Locking<W, R> {
    fn lock_key(
        inner: &mut Inner<'_, Self>,
        index: &IndexCore,
        key: KeyRef<'_>,
        mode: Mode,
    ) -> Result<(), Stop> {
        let lock = inner.store.locks.of(spread(index.serial, key));
        let reason = if W::waits(0, 1) { W::REASON } else { Conflict::KeyLocked };
        acquire::<W, _>(&mut inner.work.log.keys, (lock, None), mode, inner.ts, reason).map(|_| ())
    }

    fn lock_row(
        inner: &mut Inner<'_, Self>,
        row: RowRef<R>,
        mode: Mode,
        image: &mut [u64],
    ) -> Result<Seen, Stop> {
        let ts = inner.ts;
        let lock = (row.header(), Some(row.address));
        let granted = acquire::<W, _>(&mut inner.work.log.rows, lock, mode, ts, W::REASON)?;
        match granted {
            Granted::Absent => return Ok(Seen::Absent),
            // A row that the transaction writes was held exclusive before.
            Granted::Before => {
                if let Some(own) = inner.work.writes.find(row.address) {
                    return Ok(Seen::Own(own));
                }
            }
            Granted::Now => {}
        }
        row.copy_to(image);
        let is_new = mode == Mode::Shared && granted == Granted::Now;
        if is_new && canary::planted(Canary::LockReleasedEarly) {
            unlock_last(inner);
        }
        Ok(Seen::Present(0))
    }

    /// The first entry of `index` above a bound, without those whose removal is late: nobody locks
    /// an absent row that is not held.
    fn next(
        inner: &Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        low: Bound<KeyRef<'_>>,
    ) -> Option<RowRef<R>> {
        let words = index.core().words;
        let mut next = None;
        index.walk((low, Bound::Unbounded), false, &inner.guard, &mut |key, word| {
            // SAFETY: R1 and R2: the word was read from an index of the table, under the guard.
            let row: RowRef<R> = unsafe { RowRef::new(Address::of(word), words) };
            let state = row.header().peek();
            if state.is_absent() && state.holds() == 0
                || inner.store.is_postponed(index, key, row.address)
            {
                return true;
            }
            next = Some(row);
            false
        });
        next
    }

    /// Locks the gap above a range, so that P3 holds for it.
    fn lock_gap_above(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        range: Bounds<'_>,
    ) -> Result<(), Stop> {
        let low = match range.1 {
            Bound::Included(key) => Bound::Excluded(key),
            // Above the last entry of a list comes no other one.
            Bound::Excluded(key) if !index.core().lists || of_same_list(range.0, key) => {
                Bound::Included(key)
            }
            Bound::Excluded(_) | Bound::Unbounded => {
                Self::lock_end(inner, index, range)?;
                fence(Ordering::SeqCst);
                return Ok(());
            }
        };
        let mut backoff = Backoff::new();
        for _ in 0..TRIES {
            let next = Self::next(inner, index, low);
            let address = next.map(|next| next.address);
            if let Some(next) = next {
                let (lock, ts) = ((next.header(), Some(next.address)), inner.ts);
                let rows = &mut inner.work.log.rows;
                if acquire::<W, _>(rows, lock, Mode::Shared, ts, W::REASON)? == Granted::Absent {
                    backoff.wait(); // its entry is about to leave the index
                    continue;
                }
            } else {
                Self::lock_end(inner, index, range)?;
            }
            fence(Ordering::SeqCst);
            // While this transaction waited, the owner of the lock may have inserted a row in front
            // of its row, or deleted its row.
            if Self::next(inner, index, low).map(|next| next.address) == address {
                return Ok(());
            }
        }
        Err(Conflict::RangeChanged.into())
    }

    /// Locks the gap behind the last key of an index, or of the list in which a range lies.
    fn lock_end(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        range: Bounds<'_>,
    ) -> Result<(), Stop> {
        let key = match range.0 {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => KeyRef::Word(0), // of no list
        };
        let (end, ts) = (end(inner.store, index.core(), key), inner.ts);
        acquire::<W, _>(&mut inner.work.log.keys, (end, None), Mode::Shared, ts, W::REASON)
            .map(|_| ())
    }
}

/// The bytes of the key of a list.
const LIST: usize = 8;

/// The key of the list in which a key of an index of lists lies.
fn list_of(key: KeyRef<'_>) -> &[u8] {
    match key {
        KeyRef::Word(_) => &[],
        KeyRef::Bytes(bytes) => bytes.get(..LIST).unwrap_or(bytes),
    }
}

/// Whether a range that begins at a bound ends at a key of the same list.
fn of_same_list(low: Bound<KeyRef<'_>>, high: KeyRef<'_>) -> bool {
    let (Bound::Included(low) | Bound::Excluded(low)) = low else { return false };
    list_of(low) == list_of(high)
}

/// The lock of the gap behind the last key of an index, or behind the last entry of the list in
/// which a key lies.
fn end<'a, P: Policy>(
    store: &'a StoreCore<P>,
    index: &'a IndexCore,
    key: KeyRef<'_>,
) -> &'a WordLock {
    if index.lists {
        store.locks.of(spread(index.serial, KeyRef::Bytes(list_of(key))))
    } else {
        &index.end
    }
}

impl<W, R> private::Sealed for Locking<W, R> {}

impl<W: OnConflict, R: RowLayout<Header: RowLock>> Policy for Locking<W, R> {
    type Rows = R;
    type Log = LockLog<R::Header>;

    const WAITS_FOR_ROWS: bool = true;

    fn name() -> String {
        W::NAME.into()
    }

    fn room(log: &Self::Log) -> usize {
        log.rows.room() + log.keys.room()
    }

    fn new_header(ts: u64) -> R::Header {
        R::Header::held_absent(ts)
    }

    fn loaded_header() -> R::Header {
        let lock = R::Header::held_absent(NO_HOLDER);
        lock.unlock_exclusive(false);
        lock
    }

    fn made(inner: &mut Inner<'_, Self>, row: RowRef<R>) -> Result<u64, Stop> {
        let rows = &mut inner.work.log.rows;
        rows.reserve()?;
        rows.push(NonNull::from(row.header()), Some(row.address), Mode::Exclusive);
        Ok(0)
    }

    #[inline]
    fn read(inner: &mut Inner<'_, Self>, row: RowRef<R>, image: &mut [u64]) -> Result<Seen, Stop> {
        Self::lock_row(inner, row, Mode::Shared, image)
    }

    #[inline]
    fn read_to_write(
        inner: &mut Inner<'_, Self>,
        row: RowRef<R>,
        image: &mut [u64],
    ) -> Result<Seen, Stop> {
        Self::lock_row(inner, row, Mode::Exclusive, image)
    }

    fn missed(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<bool, Stop> {
        if !canary::planted(Canary::MissedKeyUnlocked) {
            Self::lock_key(inner, index.core(), key, Mode::Shared)?;
        }
        Ok(true)
    }

    fn claim(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<(), Stop> {
        Self::lock_key(inner, index.core(), key, Mode::Exclusive)
    }

    fn hold(_inner: &mut Inner<'_, Self>, _at: usize) -> Result<(), Conflict> {
        Ok(()) // P1
    }

    fn unhold(_inner: &mut Inner<'_, Self>, _at: usize) {}

    /// The entry may stand for a gap that the transaction has scanned. Then the row behind it
    /// stands for the gap from now on.
    fn unplacing(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<(), Stop> {
        if index.core().scans {
            let key = Bound::Included(key);
            Self::lock_gap_above(inner, index, (key, key))?;
        }
        Ok(())
    }

    fn placed(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<(), Stop> {
        if !index.core().scans || canary::planted(Canary::NextKeyIgnored) {
            return Ok(());
        }
        let mut backoff = Backoff::new();
        loop {
            let removals = index.core().removals.load(Ordering::Acquire);
            fence(Ordering::SeqCst); // P3
            let others = match Self::next(inner, index, Bound::Excluded(key)) {
                // The transaction holds the lock of each row that it writes.
                Some(next) if inner.work.writes.find(next.address).is_some() => None,
                Some(next) => inner.work.log.rows.others(next.header()),
                None => inner.work.log.keys.others(end(inner.store, index.core(), key)),
            };
            match others {
                None if index.core().removals.load(Ordering::Relaxed) != removals => {}
                None => return Ok(()),
                Some(oldest) if W::waits(inner.ts, oldest) => backoff.wait(),
                Some(_) => return Err(Conflict::Scanned.into()),
            }
        }
    }

    fn scanned(inner: &mut Inner<'_, Self>, scanned: Scanned) -> Result<bool, Stop> {
        // The caller has read the rows of the segment, so it holds their locks.
        // SAFETY: T1; the arena is cleared after the transaction.
        let (index, bounds) =
            unsafe { (scanned.index.get(), super::optimistic::bounds(scanned.low, scanned.high)) };
        if canary::planted(Canary::NextKeyIgnored) {
            return Ok(true);
        }
        Self::lock_gap_above(inner, index, bounds)?;
        let mut left = inner.work.segment.iter();
        let mut same = true;
        index.walk(bounds, scanned.descending, &inner.guard, &mut |key, word| {
            same = left.next().is_some_and(|&(of, row)| {
                // SAFETY: the arena is cleared after the transaction.
                row.word() == word && unsafe { of.get() } == key
            });
            same
        });
        Ok(same && left.next().is_none())
    }

    fn recheck(_inner: &Inner<'_, Self>) -> Result<(), Conflict> {
        Ok(()) // P1
    }

    fn prepare(_inner: &mut Inner<'_, Self>) -> Result<(), Conflict> {
        Ok(())
    }

    fn removing(_index: &IndexCore) {} // P4

    fn withdrawn(index: &IndexCore) {
        index.removals.fetch_add(1, Ordering::Release);
    }

    fn publish(inner: &mut Inner<'_, Self>) {
        unlock(inner, |kind| matches!(kind, WriteKind::Delete | WriteKind::Void));
    }

    fn release(inner: &mut Inner<'_, Self>) {
        unlock(inner, |kind| matches!(kind, WriteKind::Insert | WriteKind::Void));
    }
}

/// Releases all locks. The rows whose writes are of a kind for which `is_absent` holds are absent
/// from now on.
fn unlock<W: OnConflict, R: RowLayout<Header: RowLock>>(
    inner: &mut Inner<'_, Locking<W, R>>,
    is_absent: impl Fn(WriteKind) -> bool,
) {
    let work = &mut *inner.work;
    for held in work.log.rows.drain() {
        // SAFETY: R2: the row was read under the transaction's guard, which is still held.
        let lock = unsafe { held.lock.as_ref() };
        let write = match held.row {
            Some(row) if held.mode == Mode::Exclusive => work.writes.find(row),
            _ => None,
        };
        let absent = write.is_some_and(|at| is_absent(work.writes.all()[at].kind));
        release(lock, held.mode, absent);
    }
    for held in work.log.keys.drain() {
        // SAFETY: the store owns the table of key locks and the indexes (T1).
        release(unsafe { held.lock.as_ref() }, held.mode, false);
    }
}

fn release<L: RowLock>(lock: &L, mode: Mode, absent: bool) {
    match mode {
        Mode::Shared => lock.unlock_shared(),
        Mode::Exclusive => lock.unlock_exclusive(absent),
        Mode::Merged => {}
    }
}

/// A planted mistake: the last lock is released while the transaction goes on.
fn unlock_last<W: OnConflict, R: RowLayout<Header: RowLock>>(inner: &mut Inner<'_, Locking<W, R>>) {
    if let Some(held) = inner.work.log.rows.pop() {
        // SAFETY: R2: the row was read under the transaction's guard, which is still held.
        release(unsafe { held.lock.as_ref() }, held.mode, false);
    }
}
