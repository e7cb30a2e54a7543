//! Property: lookups write nothing and allocate nothing. Each half needs a process of its own: a
//! write into a protected region ends it, and allocations are counted by its global allocator.

use crate::counting;
use crate::crew::together;
use crate::failure::ensure;
use crate::keys::{lend, nth, tagged};
use crate::make::Make;
use crate::memory::settle;
use crate::rng::{Rng, scattered};
use crate::{Failure, Outcome, ScanSubject, Subject, size};
use silvics::{Options, PinIndex};
use silvics_pool::{Region, set_read_only};

/// Half the upper bound of the keys, which are the even numbers except every fourth of them.
const KEYS: u64 = size::pick(1 << 15, 1 << 14, 64) as u64;

/// Makes an index that every kind of write has changed, with all its garbage freed.
fn filled<I: Subject + ?Sized>(make: Make<I>) -> Result<Box<I>, Failure> {
    let index = make(&Options::default())?;
    let key = |n: u64| nth::<I>(2 * n);
    for n in (0..KEYS).map(|at| scattered(at, KEYS)) {
        index.pin().insert(lend::<I>(&key(n)), tagged(2 * n, 0))?;
    }
    for n in 0..KEYS {
        let owned = key(n);
        if is_there(2 * n) {
            index.pin().insert(lend::<I>(&owned), tagged(2 * n, 1))?;
        } else {
            index.pin().remove(lend::<I>(&owned))?;
        }
    }
    settle(&*index);
    Ok(index)
}

/// Whether [`filled`] leaves key `n` in the index, with `tagged(n, 1)`.
fn is_there(n: u64) -> bool {
    n < 2 * KEYS && n.is_multiple_of(2) && !n.is_multiple_of(8)
}

/// Looks up random keys, singly and in batches, under a new pin each time.
fn point_reads<I: Subject + ?Sized>(index: &I, rng: &mut Rng) -> Outcome {
    const BATCH: usize = 40;
    let first = rng.below(2 * KEYS);
    let owned: [_; BATCH] = std::array::from_fn(|at| nth::<I>(first + at as u64));
    let lent = owned.each_ref().map(lend::<I>);
    let mut many = [None; BATCH];
    let mut single = [None; BATCH];
    without_allocating(|| {
        let guard = index.domain().pin();
        index.get_many(&lent, &mut many, &guard);
        for (key, value) in lent.iter().zip(&mut single) {
            *value = index.get(*key, &guard);
        }
    })?;
    for (n, (one, other)) in (first..).zip(single.into_iter().zip(many)) {
        let wanted = is_there(n).then(|| tagged(n, 1));
        ensure!(one == wanted, "get of key {n} returns {one:?}, wanted {wanted:?}");
        ensure!(other == wanted, "get_many of key {n} returns {other:?}, wanted {wanted:?}");
    }
    Ok(())
}

/// Reads ranges in both directions, under a new pin each time.
fn range_reads<I: ScanSubject + ?Sized>(index: &I, rng: &mut Rng) -> Outcome {
    const MOST: usize = 50;
    let first = rng.below(2 * KEYS);
    let owned = nth::<I>(first);
    let found = without_allocating(|| {
        let guard = index.domain().pin();
        let key = lend::<I>(&owned);
        let forth = index.range(key.., &guard).take(MOST).map(|e| e.1);
        let back = index.range_rev(..key, &guard).take(MOST).map(|e| e.1);
        forth.chain(back).fold(0, u64::wrapping_add)
    })?;
    let forth = (first..2 * KEYS).filter(|n| is_there(*n)).take(MOST);
    let back = (0..first).rev().filter(|n| is_there(*n)).take(MOST);
    let wanted = forth.chain(back).map(|n| tagged(n, 1)).fold(0, u64::wrapping_add);
    ensure!(found == wanted, "scans from key {first} give other values");
    Ok(())
}

/// Runs `lookups` and fails if this thread allocated meanwhile. Detects nothing unless
/// [`counting::Counting`] is the global allocator.
fn without_allocating<T>(lookups: impl FnOnce() -> T) -> Result<T, Failure> {
    let before = counting::allocations();
    let result = lookups();
    let made = counting::allocations() - before;
    ensure!(made == 0, "{made} allocations in lookups");
    Ok(result)
}

/// Runs `read` on several threads.
fn read_together<I: Subject + ?Sized>(
    index: &I,
    rounds: usize,
    read: impl Fn(&I, &mut Rng) -> Outcome + Sync,
) -> Outcome {
    together(3, |thread, _| {
        let mut rng = Rng::new(size::seed(), thread);
        // A thread's first pin registers it with the domain.
        drop(index.domain().pin());
        (0..rounds).try_for_each(|_| read(index, &mut rng))
    })?;
    Ok(())
}

/// Point lookups allocate nothing. Needs [`counting::Counting`] as the global allocator.
pub fn allocate_nothing<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    counting::ensure_counted()?;
    read_together(&*filled(make)?, size::pick(50_000, 5000, 20), point_reads)
}

/// Ranges allocate nothing. Needs [`counting::Counting`] as the global allocator.
pub fn scans_allocate_nothing<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    counting::ensure_counted()?;
    read_together(&*filled(make)?, size::pick(10_000, 1000, 5), range_reads)
}

/// Checks that point lookups write nothing: they run with all regions of the index read-only, and a
/// write ends the process. Needs a placement that has regions.
pub fn write_nothing<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let index = filled(make)?;
    protected(&*index, || read_together(&*index, size::pick(50_000, 5000, 20), point_reads))
}

/// Checks that ranges write nothing: they run with all regions of the index read-only. A scan of
/// the whole index comes first: an index may note what it finds, for later scans.
pub fn scans_write_nothing<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let index = filled(make)?;
    let whole = index.range(.., &index.domain().pin()).count();
    ensure!(whole == index.len(), "a scan of {} entries returns {whole}", index.len());
    protected(&*index, || read_together(&*index, size::pick(10_000, 1000, 5), range_reads))
}

/// Runs `reads` with the regions of the index read-only. The index must be settled.
fn protected<I: Subject + ?Sized>(index: &I, reads: impl FnOnce() -> Outcome) -> Outcome {
    let stats = index.pool_stats();
    let regions: Vec<Region> = stats.into_iter().flat_map(|pool| pool.regions).collect();
    ensure!(!regions.is_empty(), "no regions: nothing would be protected");
    let failed = |error| Failure::new(format!("set_read_only: {error}"));
    // SAFETY: the regions are those of `index`, which is borrowed and has no garbage left that a
    // pin might reclaim. `reads` only looks keys up, and a write is a mistake that this test
    // detects.
    unsafe { set_read_only(&regions, true) }.map_err(failed)?;
    let outcome = reads();
    // SAFETY: these are the regions that were protected, and they become writable again.
    unsafe { set_read_only(&regions, false) }.map_err(failed)?;
    outcome
}

/// Runs the test named `test` of this test binary alone, in a child process with `variable` set.
/// Fails unless a signal ends the process, as a write into a protected region does.
#[cfg(unix)]
pub fn dies_by_signal(test: &str, variable: &str) -> Outcome {
    use std::os::unix::process::ExitStatusExt;
    let failed = |error| Failure::new(format!("the test binary cannot be run again: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let output = std::process::Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(variable, "1")
        .output()
        .map_err(failed)?;
    let signal = output.status.signal();
    ensure!(
        // SIGSEGV is 11 everywhere. Some systems raise SIGBUS instead, which is 7 or 10.
        matches!(signal, Some(7 | 10 | 11)),
        "the planted write passed: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(())
}
