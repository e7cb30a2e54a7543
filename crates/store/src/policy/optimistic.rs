//! Optimistic concurrency control.
//!
//! # Source
//! Tu, Zheng, Kohler, Liskov and Madden, "Speedy transactions in multicore in-memory databases",
//! SOSP 2013 (Silo), sections 4.2 to 4.6.
//!
//! # Algorithm
//! The header of a row is a word: `commit timestamp (62 bits) | absent | locked`.
//! ```text
//! read(row):   word = row.word, unlocked; copy the columns; row.word is still word; remember both
//! insert(key): make a row, locked and absent, and place it in the indexes
//! take back(key): remove an own entry; from now on the key counts as one that was absent
//! commit:      lock each row that is written: exchange the word that was read for the same, locked
//!              fence
//!              validate: each row that was read has its word, and is locked by nobody else;
//!                        each absent key is absent; each range has the same rows;
//!                        no entry was removed from these indexes since the validation began
//!              timestamp = larger than all words that were read or locked, in the present epoch
//!              change the rows; count and remove entries of old keys; store the timestamps
//! ```
//!
//! # Departures
//! 1. Absent keys and ranges are looked up again at the commit, instead of by versions of the
//!    index's nodes: any structure can be the index. A key may be absent again although it was
//!    present meanwhile, so each index counts the removals of entries.
//! 2. A transaction that finds a row locked when it commits is aborted, and does not wait: so locks
//!    need no order. Each row that is written was read, so a changed word is known before the
//!    validation. An update that gives a row another key locks the row at once.
//! 3. No thread advances the epoch. A worker does so every 64 commits, if 40 ms have passed.
//!
//! # Invariants
//! * O1: a row's columns change only while its word is locked, and its word is different
//!   afterwards.
//! * O2: an entry is placed in an index and removed from it only while its row is locked, besides
//!   an entry whose removal was postponed: its row is absent, or has another key. So an entry never
//!   leads to a row that is freed (with D1).
//! * O3: a transaction validates after it has placed all of its entries and locked all of its rows.
//!
//! # Why it is serializable
//! Order transactions by the moment p of their `SeqCst` fence: all of their locks are taken and all
//! of their entries are placed, and their validation begins.
//! * A row that T read has not changed at p(T): it is validated afterwards (O1).
//! * A key that T missed is absent at p(T). If another transaction U inserts it and p(U) < p(T),
//!   then the entry was placed before p(U) (O3). So T's validation finds it: its row is locked by
//!   U, or committed. Both abort T. If U places the entry later, p(U) > p(T).
//! * Suppose that V deletes the row of this key, and that T does not find the entry any more. V has
//!   been validated, and cannot fail any more. It adds to the count of removals before it removes
//!   the entry. If T loads the count for the first time before this addition, T's second load finds
//!   another count, and T is aborted. Otherwise T's first load synchronizes with the addition, so T
//!   sees all locks of V when it validates, and comes after V.
//! * The same holds for ranges, because a scan visits each entry that is there all the time.
//!
//! # Memory ordering
//! | site | ordering | pairs with | why |
//! |---|---|---|---|
//! | `read` first load | Acquire | `publish`, `release` | the columns are at least those of this word |
//! | `read` fence, second load | Acquire, Relaxed | `lock` fence | a column of a later commit makes the word differ, or locked |
//! | `lock` exchange | Acquire / Relaxed | `publish`, `release` | a writer sees the columns of the commit before it |
//! | fence after the locks | `SeqCst` | the same fence of other commits | of two transactions that write what the other one has read, at least one sees the other's lock or entry. As a Release fence it also orders the locks before the columns |
//! | `validate` load | Acquire | `publish`, `release` | a changed row is seen as a whole |
//! | `removals` addition and loads | `SeqCst` | each other | a transaction that sees the count of a removal sees the locks of its transaction |
//! | fence before the second load of `removals` | Acquire | the index's own Release | if an entry was missed, the count of its removal is seen |
//! | `publish` and `release` store | Release | `read`, `lock` | publishes the columns |
//! | `EPOCH`, load and exchange | Relaxed | – | an epoch only has to grow |

use super::{Policy, Scanned, Seen, Stop, private};
use crate::canary::{self, Canary};
use crate::error::Conflict;
use crate::index::{Bounds, ErasedIndex, IndexCore};
use crate::key::KeyRef;
use crate::rows::{Address, Inline, RowRef};
use crate::tx::arena::Stored;
use crate::tx::state::{IndexPtr, Inner, Workspace, Write, WriteKind, bytes, push};
use silvics::AllocError;
use silvics_sync::atomic::{AtomicU64, Ordering, fence};
use silvics_sync::backoff::Backoff;
use std::cell::Cell;
use std::ops::Bound;
use std::ptr::NonNull;

const LOCKED: u64 = 1;
const ABSENT: u64 = 2;
const STEP: u64 = 4;

/// The bits of a word above the number of a commit within its epoch.
const EPOCH_SHIFT: u32 = 32;

/// The waits for the owner of a lock, which may be committing, before a reader gives up.
const PATIENCE: u32 = 12;

/// Optimistic concurrency control, described in `policy/optimistic.rs`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Optimistic;

/// The version of a row.
#[derive(Debug)]
#[repr(transparent)]
pub struct Version(AtomicU64);

/// The rows, absent keys and ranges that a transaction has read.
#[derive(Default)]
pub struct OptimisticLog {
    /// The rows that were read: their words, and where these are.
    reads: Vec<(NonNull<AtomicU64>, u64, Address)>,
    misses: Vec<(IndexPtr, Stored)>,
    ranges: Vec<Range>,
    /// The entries of all ranges.
    entries: Vec<(Stored, Address)>,
    /// The word that the rows get.
    commit: u64,
    /// Room for a row of each index in which a key was missed: the validation allocates nothing.
    image: Cell<Vec<u64>>,
}

// SAFETY: the pointers lead to words of rows, which any thread may use.
unsafe impl Send for OptimisticLog {}

/// A range that was scanned, with a part of `OptimisticLog::entries`.
struct Range {
    scanned: Scanned,
    first: usize,
    count: usize,
}

type Row = RowRef<<Optimistic as Policy>::Rows>;

fn word_of(row: &Row) -> NonNull<AtomicU64> {
    NonNull::from(&row.header().0)
}

/// Copies a row whose word is not locked. Returns the word, or `None` if it stays locked.
#[inline(always)]
fn copy(row: Row, image: &mut [u64]) -> Option<u64> {
    let header = &row.header().0;
    let mut backoff = Backoff::new();
    for _ in 0..PATIENCE {
        let word = header.load(Ordering::Acquire);
        if word & LOCKED == 0 {
            if word & ABSENT != 0 {
                return Some(word);
            }
            row.copy_to(image);
            fence(Ordering::Acquire);
            if header.load(Ordering::Relaxed) == word {
                return Some(word);
            }
        }
        backoff.wait();
    }
    None
}

impl private::Sealed for Optimistic {}

impl Policy for Optimistic {
    type Rows = Inline<Version>;
    type Log = OptimisticLog;

    const WAITS_FOR_ROWS: bool = false;

    fn name() -> String {
        "optimistic".into()
    }

    fn room(log: &OptimisticLog) -> usize {
        let (reads, misses) = (log.reads.capacity(), log.misses.capacity());
        reads + misses + log.ranges.capacity() + log.entries.capacity()
    }

    fn new_header(_ts: u64) -> Version {
        Version(AtomicU64::new(LOCKED | ABSENT))
    }

    fn loaded_header() -> Version {
        Version(AtomicU64::new(0)) // every commit has a larger word
    }

    fn made(_inner: &mut Inner<'_, Self>, _row: Row) -> Result<u64, Stop> {
        Ok(ABSENT)
    }

    #[inline]
    fn read(inner: &mut Inner<'_, Self>, row: Row, image: &mut [u64]) -> Result<Seen, Stop> {
        if !inner.work.writes.is_empty()
            && let Some(own) = inner.work.writes.find(row.address)
        {
            return Ok(Seen::Own(own));
        }
        let Some(word) = copy(row, image) else { return Err(Conflict::Uncommitted.into()) };
        if word & ABSENT != 0 {
            return Ok(Seen::Absent);
        }
        push(&mut inner.work.log.reads, (word_of(&row), word, row.address))?;
        Ok(Seen::Present(word))
    }

    #[inline]
    fn read_to_write(
        inner: &mut Inner<'_, Self>,
        row: Row,
        image: &mut [u64],
    ) -> Result<Seen, Stop> {
        Self::read(inner, row, image)
    }

    fn missed(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<bool, Stop> {
        let words = index.core().words;
        let image = inner.work.log.image.get_mut();
        if image.len() < words {
            let requested = size_of::<u64>() * words;
            let failed = |_| AllocError::System { requested };
            image.try_reserve_exact(words - image.len()).map_err(failed)?;
            image.resize(words, 0);
        }
        let key = inner.work.arena.key(key)?;
        push(&mut inner.work.log.misses, (IndexPtr::of(index), key))?;
        Ok(false)
    }

    fn claim(
        _inner: &mut Inner<'_, Self>,
        _index: &(dyn ErasedIndex + 'static),
        _key: KeyRef<'_>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    fn hold(inner: &mut Inner<'_, Self>, at: usize) -> Result<(), Conflict> {
        lock_row(&mut inner.work.writes.all_mut()[at])
    }

    fn unhold(inner: &mut Inner<'_, Self>, at: usize) {
        let write = &mut inner.work.writes.all_mut()[at];
        if std::mem::take(&mut write.locked) {
            write.row.header().0.store(write.mark, Ordering::Release);
        }
    }

    /// The key was absent when the entry was placed, and the transaction knows it. Without the
    /// entry, another transaction may insert the key.
    fn unplacing(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<(), Stop> {
        if index.core().is_unique() {
            Self::missed(inner, index, key)?;
        }
        Ok(())
    }

    fn placed(
        _inner: &mut Inner<'_, Self>,
        _index: &(dyn ErasedIndex + 'static),
        _key: KeyRef<'_>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    fn scanned(inner: &mut Inner<'_, Self>, scanned: Scanned) -> Result<bool, Stop> {
        let first = inner.work.log.entries.len();
        for at in 0..inner.work.segment.len() {
            let (key, row) = inner.work.segment[at];
            if !inner.is_placed(scanned.index, key, row) {
                push(&mut inner.work.log.entries, (key, row))?;
            }
        }
        let count = inner.work.log.entries.len() - first;
        push(&mut inner.work.log.ranges, Range { scanned, first, count })?;
        Ok(true)
    }

    fn recheck(inner: &Inner<'_, Self>) -> Result<(), Conflict> {
        fence(Ordering::SeqCst);
        validate(inner)
    }

    fn prepare(inner: &mut Inner<'_, Self>) -> Result<(), Conflict> {
        lock(inner)?;
        fence(Ordering::SeqCst);
        validate(inner)?;
        let work = &mut *inner.work;
        let largest = work.log.reads.iter().map(|&(_, word, _)| word).max().unwrap_or(0);
        let epoch = inner.store.epoch() << EPOCH_SHIFT;
        work.log.commit = (largest.max(epoch) & !(STEP - 1)) + STEP;
        Ok(())
    }

    fn removing(index: &IndexCore) {
        index.removals.fetch_add(1, Ordering::SeqCst);
    }

    fn withdrawn(_index: &IndexCore) {}

    fn publish(inner: &mut Inner<'_, Self>) {
        let work = &mut *inner.work;
        for write in work.writes.all() {
            let gone = matches!(write.kind, WriteKind::Delete | WriteKind::Void);
            let word = work.log.commit | if gone { ABSENT } else { 0 };
            write.row.header().0.store(word, Ordering::Release);
        }
        clear(&mut work.log);
    }

    fn release(inner: &mut Inner<'_, Self>) {
        let work = &mut *inner.work;
        for write in work.writes.all().iter().filter(|write| write.locked) {
            write.row.header().0.store(write.mark, Ordering::Release);
        }
        clear(&mut work.log);
    }
}

fn clear(log: &mut OptimisticLog) {
    log.reads.clear();
    log.misses.clear();
    log.ranges.clear();
    log.entries.clear();
}

/// Locks the rows that are written. New rows are locked already, and so are those whose keys
/// change.
fn lock(inner: &mut Inner<'_, Optimistic>) -> Result<(), Conflict> {
    inner.work.writes.all_mut().iter_mut().try_for_each(lock_row)
}

/// Locks a row that is written, unless it is locked already.
fn lock_row(write: &mut Write<Optimistic>) -> Result<(), Conflict> {
    if write.locked {
        return Ok(());
    }
    let header = &write.row.header().0;
    if canary::planted(Canary::LostUpdate) {
        write.mark = header.load(Ordering::Relaxed) & !LOCKED;
    }
    let (word, success, failure) = (write.mark, Ordering::Acquire, Ordering::Relaxed);
    if header.compare_exchange(word, word | LOCKED, success, failure).is_err() {
        return Err(Conflict::RowChanged);
    }
    write.locked = true;
    Ok(())
}

/// Whether this transaction has locked a row.
fn is_locked(work: &Workspace<Optimistic>, row: Address) -> bool {
    work.writes.find(row).is_some_and(|at| work.writes.all()[at].locked)
}

/// The number of removals from all indexes in which the transaction has missed keys or scanned. An
/// index counts for each of its misses and ranges.
fn removals(log: &OptimisticLog) -> u64 {
    let indexes = log.misses.iter().map(|&(index, _)| index);
    let indexes = indexes.chain(log.ranges.iter().map(|range| range.scanned.index));
    // SAFETY: T1.
    let count = |index: IndexPtr| unsafe { index.get() }.core().removals.load(Ordering::SeqCst);
    indexes.map(count).fold(0, u64::wrapping_add)
}

/// Checks that what was read is still true.
fn validate(inner: &Inner<'_, Optimistic>) -> Result<(), Conflict> {
    let work = &*inner.work;
    let before = removals(&work.log);
    let reads = if canary::planted(Canary::ReadsNotValidated) { &[] } else { &*work.log.reads };
    for &(header, word, row) in reads {
        // SAFETY: R2: the row was read under the transaction's guard.
        let now = unsafe { header.as_ref() }.load(Ordering::Acquire);
        if canary::planted(Canary::LostUpdate) && is_locked(work, row) {
            continue;
        }
        if now != word && (now != word | LOCKED || !is_locked(work, row)) {
            return Err(Conflict::RowChanged);
        }
    }
    if work.log.misses.is_empty() && work.log.ranges.is_empty()
        || canary::planted(Canary::PhantomsIgnored)
    {
        return Ok(());
    }
    validate_absences(inner)?;
    fence(Ordering::Acquire);
    let removals = removals(&work.log);
    if removals != before {
        return Err(Conflict::RangeChanged);
    }
    Ok(())
}

/// Checks that the keys and ranges are still without other rows.
fn validate_absences(inner: &Inner<'_, Optimistic>) -> Result<(), Conflict> {
    let work = &*inner.work;
    for &(index, key) in &work.log.misses {
        // SAFETY: T1; the arena is cleared after the transaction.
        let (index, key) = unsafe { (index.get(), key.get()) };
        if !is_missing(inner, index, key) {
            return Err(Conflict::KeyAppeared);
        }
    }
    for range in &work.log.ranges {
        if !is_same(inner, range) {
            return Err(Conflict::RangeChanged);
        }
    }
    Ok(())
}

/// Whether a key is still absent, or leads to a row that only this transaction knows by this key.
fn is_missing(
    inner: &Inner<'_, Optimistic>,
    index: &(dyn ErasedIndex + 'static),
    key: KeyRef<'_>,
) -> bool {
    let Some(found) = index.look(key, &inner.guard) else { return true };
    // SAFETY: R1: the word is one of an index.
    let address = unsafe { Address::of(found) };
    if let Some(own) = inner.work.writes.find(address) {
        if inner.is_placed_by_key(IndexPtr::of(index), key, address) {
            return true;
        }
        // While the transaction holds the lock of the row, its old columns are the committed ones.
        if inner.work.writes.all()[own].locked {
            return !inner.had_key(own, index, key);
        }
    }
    let mut image = inner.work.log.image.take();
    let is_absent = is_absent(index, key, address, &mut image[..index.core().words]);
    inner.work.log.image.set(image);
    is_absent
}

/// Whether the row is not committed with this key: it is deleted, or has another key. A row that is
/// locked may get the key at any moment, so the key does not count as absent.
fn is_absent(
    index: &dyn ErasedIndex,
    key: KeyRef<'_>,
    address: Address,
    image: &mut [u64],
) -> bool {
    let core = index.core();
    // SAFETY: R1 and R2: the address was read from an index of the table, under the guard.
    let row: Row = unsafe { RowRef::new(address, core.words) };
    match copy(row, image) {
        None => false,
        Some(word) if word & ABSENT != 0 => true,
        Some(_) => {
            // SAFETY: the slice has as many words.
            let image = unsafe { bytes(NonNull::from(&*image).cast(), row.words) };
            core.with_key(image, |of_row| of_row != key)
        }
    }
}

/// Whether a range has the entries that it had when it was scanned, besides those that this
/// transaction has placed since. A row may be found by the old key of its entry when it has another
/// one already, so the keys are compared, too.
fn is_same(inner: &Inner<'_, Optimistic>, range: &Range) -> bool {
    let work = &*inner.work;
    let mut left = &work.log.entries[range.first..range.first + range.count];
    let mut same = true;
    let scanned = &range.scanned;
    // SAFETY: T1; the arena is cleared after the transaction.
    let (index, bounds) = unsafe { (scanned.index.get(), bounds(scanned.low, scanned.high)) };
    index.walk(bounds, scanned.descending, &inner.guard, &mut |key, word| {
        // SAFETY: R1: the word is one of an index.
        let address = unsafe { Address::of(word) };
        if let Some((&(of, row), rest)) = left.split_first()
            && row == address
            // SAFETY: the arena is cleared after the transaction.
            && (unsafe { of.get() } == key || canary::planted(Canary::ScannedKeysIgnored))
        {
            left = rest;
            return true;
        }
        same = inner.is_placed_by_key(scanned.index, key, address);
        same
    });
    same && left.is_empty()
}

/// Borrows bounds.
///
/// # Safety
/// The arena has not released the keys during `'a`.
pub(super) unsafe fn bounds<'a>(low: Bound<Stored>, high: Bound<Stored>) -> Bounds<'a> {
    // SAFETY: the caller's promise.
    unsafe { (low.map(|key| key.get()), high.map(|key| key.get())) }
}
