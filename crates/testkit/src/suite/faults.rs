//! Property: an operation whose allocation fails, or that a panic unwinds, has not happened. The
//! index is unchanged, its locks are free, and no object is lost or freed twice.
//!
//! The index must be placed on [`Faulty`](crate::faulty::Faulty), which knows each object.
//! [`crate::fault_suite!`] declares the tests.

mod case;

use self::case::{Case, State, Verb};
use crate::crew::together;
use crate::failure::ensure;
use crate::faulty::{Ledger, Plan, Ran, strike, under, unwinding};
use crate::key_sum::{Balance, settle_accounts};
use crate::keys::{lend, nth};
use crate::limit::write_or_be_refused;
use crate::make::Make;
use crate::memory::follows;
use crate::rest::counts;
use crate::rng::Rng;
use crate::{Failure, Outcome, ScanSubject, Subject, size};
use silvics::index::Cursor;
use silvics::{AllocError, Domain, NatarajanTree, Options, PinIndex, Shared};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// An index, the ledger of its objects, and its domain.
#[derive(Debug)]
pub(crate) struct Recorded<I: ?Sized> {
    pub(crate) make: Make<I>,
    pub(crate) index: Arc<I>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) domain: Domain,
}

impl<I: Subject + ?Sized> Recorded<I> {
    /// An empty index.
    pub(crate) fn new(make: Make<I>) -> Result<Self, Failure> {
        let domain = Domain::new();
        let options = Options { domain: Some(domain.clone()), ..Options::default() };
        let (index, ledger) = Ledger::record(|| make(&options));
        Ok(Self { make, index: Arc::from(index?), ledger, domain })
    }

    /// Exclusive access to the index. Fails if a cursor shares it.
    pub(crate) fn exclusive(&mut self) -> Result<&mut I, Failure> {
        Arc::get_mut(&mut self.index).ok_or_else(|| Failure::new("something still holds the index"))
    }

    /// Drops the index, and fails if an object of it is left.
    pub(crate) fn end(self) -> Outcome {
        let Self { index, ledger, domain, .. } = self;
        drop(index);
        nothing_left(&ledger, &domain)
    }
}

/// Flushes the domain of a dropped index, which no thread pins. Fails unless every object of the
/// index was freed, and freed once.
fn nothing_left(ledger: &Ledger, domain: &Domain) -> Outcome {
    let mut rounds = 0;
    // A flush runs a limited number of batches.
    while !ledger.live().is_empty() && rounds < 10_000 {
        domain.flush();
        rounds += 1;
    }
    let live = ledger.live();
    ensure!(live.is_empty(), "the index is gone and left objects behind: {live:?}");
    ledger.audit()
}

/// The time limit of a few operations: far more than they take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit of a run of several threads.
const LONG_PATIENCE: Duration = Duration::from_secs(300);

/// Calls `work` on another thread and waits for it, up to `patience`. A lock that was never
/// released is therefore a failure and not a deadlock.
fn elsewhere<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (send, receive) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let result = work();
        drop(send);
        result
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = receive.recv_timeout(patience) {
        return Err(Failure::new("another thread waits forever: a lock was not released"));
    }
    // Waits until the thread is gone altogether: an ending thread pins each domain once more.
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Tries every verb in every state, with the n-th allocation under each plan, for every n that
/// exists.
fn nth_allocations<I: Subject + ?Sized>(
    make: Make<I>,
    plans: &[fn(u64) -> Plan],
    judge: impl Fn(&mut Case<I>, Ran<Result<Option<u64>, AllocError>>) -> Result<bool, Failure>,
) -> Outcome {
    let mut struck = 0usize;
    for state in State::all() {
        for target in state.targets() {
            let present = Case::new(make, &state, target, Verb::Remove)?.present;
            for verb in Verb::all(present) {
                for (at, plan) in plans.iter().enumerate() {
                    for n in 1.. {
                        let case = Case::new(make, &state, target, verb)?;
                        let outer = (at + n as usize).is_multiple_of(2);
                        let faults = one(case, plan(n), outer, &judge).map_err(|f| {
                            let at = (state.name, verb, target, plan(n));
                            f.at(format_args!("{}: {:?} of key {}, {:?}", at.0, at.1, at.2, at.3))
                        })?;
                        struck += usize::from(faults);
                        if !faults {
                            break; // fewer than n allocations
                        }
                    }
                }
            }
        }
    }
    ensure!(struck > 0, "no operation met an allocation: the index is not on `Faulty`");
    Ok(())
}

/// Runs one case under one plan, with or without a guard that outlives the operation. Returns
/// whether the operation reached the allocation that the plan strikes.
fn one<I: Subject + ?Sized>(
    mut case: Case<I>,
    plan: Plan,
    outer: bool,
    judge: &impl Fn(&mut Case<I>, Ran<Result<Option<u64>, AllocError>>) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mark = case.recorded.ledger.mark();
    let held = outer.then(|| case.recorded.domain.pin());
    let ran = under(plan, || case.operate(held.as_ref()));
    let happened = if ran.faults == 0 {
        let said = ran.outcome.ok_or_else(|| Failure::new("unwound without a reason"))?;
        case.happened(said, "with memory")?;
        true
    } else {
        judge(&mut case, ran)?
    };
    let faults = ran.faults > 0;
    let case = elsewhere(PATIENCE, move || case.verify(mark, happened))?;
    drop(held);
    unpinned(&case.recorded.domain)?;
    case.recorded.end()?;
    Ok(faults)
}

/// Makes the n-th allocation of an operation and all later ones fail, for every n. Either the
/// operation reports the failure and has not happened, or it succeeds without the memory and has
/// happened. If only one attempt fails, the operation tries again and succeeds.
pub fn nth_fails<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    nth_allocations(make, &[Plan::FailFrom], |case, ran| match ran.outcome {
        Some(Err(_)) => Ok(false),
        Some(said) => case.happened(said, "without memory").map(|()| true),
        None => Err(Failure::new("it unwound when memory ran out")),
    })?;
    nth_allocations(make, &[Plan::FailOnce], |case, ran| match ran.outcome {
        Some(said) => case.happened(said, "with one failed attempt").map(|()| true),
        None => Err(Failure::new("it unwound")),
    })
}

/// Makes the n-th allocation of an operation panic, at once or in the second attempt, for every n.
/// Either the operation unwinds and has not happened, or it succeeds without a second attempt and
/// has happened.
pub fn nth_panics<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let swallowed =
        |said| Err(Failure::new(format!("a panic was swallowed, and it returns {said:?}")));
    nth_allocations(make, &[Plan::Panic], |_, ran| ran.outcome.map_or(Ok(false), swallowed))?;
    nth_allocations(make, &[Plan::FailThenPanic], |case, ran| match ran.outcome {
        None => Ok(false),
        Some(said) if ran.faults == 1 => case.happened(said, "without memory").map(|()| true),
        Some(said) => swallowed(said),
    })
}

/// Makes the n-th allocation of `with_options` fail or panic, for every n. Then there must be no
/// index, and no object may be left.
pub fn creation<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let plans: [fn(u64) -> Plan; 3] = [Plan::FailFrom, Plan::Panic, Plan::FailThenPanic];
    let mut struck = 0usize;
    for plan in plans {
        for n in 1.. {
            let domain = Domain::new();
            let options = Options { domain: Some(domain.clone()), ..Options::default() };
            let (ran, ledger) = Ledger::record(|| under(plan(n), || make(&options)));
            let place = |f: Failure| f.at(format_args!("{:?} of with_options", plan(n)));
            match (ran.faults, ran.outcome) {
                (0, Some(Ok(index))) => {
                    drop(index);
                    nothing_left(&ledger, &domain).map_err(place)?;
                    break;
                }
                (0, Some(Err(error))) => return Err(place(error.into())),
                (_, Some(Ok(_))) => return Err(place(Failure::new("there is an index"))),
                (_, Some(Err(_)) | None) => struck += 1,
            }
            nothing_left(&ledger, &domain).map_err(place)?;
            unpinned(&domain).map_err(place)?;
        }
    }
    // An index that allocates nothing when it is made has no allocation that could fail here.
    let first = Ledger::record(|| under(Plan::FailFrom(1), || make(&Options::default())));
    ensure!((struck > 0) == first.0.outcome.is_some_and(|o| o.is_err()), "it fails now and then");
    Ok(())
}

/// Threads write while many of their allocations fail or panic. The writes that succeeded have
/// taken effect, the others have not, and no object is lost.
pub fn among_threads<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    elsewhere(LONG_PATIENCE, move || writers_among_faults(make))
}

fn writers_among_faults<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    const THREADS: usize = 2;
    let operations = size::pick(200_000, 60_000, 120);
    for (round, (fail, panic)) in [(20, 0), (0, 20), (30, 10)].into_iter().enumerate() {
        let mut struck: u64 = 0;
        for keys in [4, 300, 20_000] {
            let mut recorded = Recorded::new(make)?;
            let index = &*recorded.index;
            let results = together(THREADS, |thread, _| {
                let mut rng = Rng::new(size::seed(), 8 * round + thread);
                let (mut balance, mut faults) = (Balance::new(), 0);
                for _ in 0..operations / THREADS / 3 {
                    let plan = Plan::Sometimes { seed: rng.word(), fail, panic };
                    let ran =
                        under(plan, || write_or_be_refused(index, &mut rng, keys, &mut balance));
                    faults += ran.faults;
                    ran.outcome.unwrap_or(Ok(()))?;
                }
                Ok((balance, faults))
            })?;
            struck += results.iter().map(|(_, faults)| faults).sum::<u64>();
            let balances = results.into_iter().map(|(balance, _)| balance).collect();
            let place = |f: Failure| {
                f.at(format_args!("{fail} % failed, {panic} % panicked, keys below {keys}"))
            };
            settle_accounts(make, recorded.exclusive()?, balances).map_err(place)?;
            unpinned(&recorded.domain).map_err(place)?;
            recorded.end().map_err(place)?;
        }
        // A radix tree of 4 keys allocates a handful of objects, which a plan may all spare.
        ensure!(struck > 0, "no allocation was met: the index is not on `Faulty`");
    }
    Ok(())
}

/// Fails if any thread, the calling one included, pins the domain. Objects that another index of
/// that domain retires would then not be freed.
pub(crate) fn unpinned(domain: &Domain) -> Outcome {
    use crate::memory::{UNSEALED, live_slots, settle};
    let options = Options { domain: Some(domain.clone()), ..Options::default() };
    let canary = NatarajanTree::<Shared>::with_options(&options)?;
    let retired = 3 * UNSEALED;
    for value in 0..=retired as u64 {
        canary.pin().insert(1, value)?;
    }
    let before = live_slots(&canary);
    let left = settle(&canary);
    ensure!(
        left <= 3 + UNSEALED,
        "a thread pins the domain: of {before} objects, {retired} of them retired, {left} stay"
    );
    Ok(())
}

/// Makes an index with the keys `0..keys`, each with its number as its value.
fn filled<I: Subject + ?Sized>(make: Make<I>, keys: u64) -> Result<Box<I>, Failure> {
    let index = make(&Options::default())?;
    for n in 0..keys {
        index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
    }
    Ok(index)
}

/// Checks an index after user code has unwound: no pin is left, and another thread can write every
/// key. The objects that these writes retire are freed, except for the batches of that thread, of
/// the caller, and of the threads of `before` earlier calls.
fn goes_on<I: Subject + ?Sized>(
    make: Make<I>,
    index: &mut Arc<I>,
    keys: u64,
    before: usize,
) -> Outcome {
    unpinned(index.domain())?;
    let shared = Arc::clone(index);
    elsewhere(PATIENCE, move || {
        for n in 0..keys {
            let key = nth::<I>(n);
            let view = shared.pin();
            let removed = view.remove(lend::<I>(&key))?;
            ensure!(removed == Some(n), "key {n}: remove returns {removed:?}");
            let added = view.try_insert(lend::<I>(&key), n);
            ensure!(added == Ok(()), "key {n}: try_insert returns {added:?}");
            let replaced = view.insert(lend::<I>(&key), n)?;
            ensure!(replaced == Some(n), "key {n}: insert returns {replaced:?}");
        }
        Ok(())
    })?;
    unpinned(index.domain())?;
    let index =
        Arc::get_mut(index).ok_or_else(|| Failure::new("something still holds the index"))?;
    follows(make, index, keys as usize, 2 + before)?;
    counts(index, keys as usize)
}

/// User code panics between lookups, under a guard of its own or under one that is used again.
pub fn user_panics<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let keys = size::pick(600, 600, 90) as u64;
    let mut index: Arc<I> = Arc::from(filled(make, keys)?);
    for (at, stop) in [0, 1, keys / 2, keys - 1].into_iter().enumerate() {
        let outer = (at % 2 == 0).then(|| index.domain().pin());
        let done = unwinding(|| {
            let inner = index.domain().pin();
            let guard = outer.as_ref().unwrap_or(&inner);
            for n in 0..keys {
                let owned = [n, n + keys].map(nth::<I>);
                let lent: Vec<_> = owned.iter().map(lend::<I>).collect();
                let mut found = [None; 2];
                index.get_many(&lent, &mut found, guard);
                if n == stop || found != [Some(n), None] {
                    strike();
                }
            }
        });
        ensure!(done.is_none(), "no panic unwound");
        if let Some(guard) = outer {
            let found = index.get(lend::<I>(&nth::<I>(stop)), &guard);
            ensure!(found == Some(stop), "get returns {found:?} under a guard that is used again");
        }
        goes_on(make, &mut index, keys, at)
            .map_err(|f| f.at(format_args!("unwound at key {stop}")))?;
    }
    Ok(())
}

/// User code panics in the middle of a range, of a descending range, and between the moves of a
/// cursor, under a guard of its own or under one that is used again.
pub fn user_panics_in_scans<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let keys = size::pick(600, 600, 90) as u64;
    let mut index: Arc<I> = Arc::from(filled(make, keys)?);
    for (at, stop) in [0, 1, keys / 2, keys - 1].into_iter().enumerate() {
        for (kind, name) in ["range", "range_rev", "cursor"].into_iter().enumerate() {
            let outer = (at % 2 == 0).then(|| index.domain().pin());
            let mut seen = 0;
            let mut entry = |_| {
                seen += 1;
                if seen > stop {
                    strike();
                }
            };
            let done = unwinding(|| {
                let inner = outer.is_none().then(|| index.domain().pin());
                let guard = outer.as_ref().or(inner.as_ref());
                match (kind, guard) {
                    (0, Some(guard)) => {
                        index.range(.., guard).map(|(_, value)| value).for_each(&mut entry);
                    }
                    (1, Some(guard)) => {
                        index.range_rev(.., guard).map(|(_, value)| value).for_each(&mut entry);
                    }
                    _ => {
                        let mut cursor = index.cursor();
                        while cursor.next() {
                            entry(cursor.value().unwrap_or(u64::MAX));
                        }
                    }
                }
            });
            ensure!(
                done.is_none() && seen == stop + 1,
                "{name} returns {seen} entries, not {stop}"
            );
            if let Some(guard) = outer {
                let (up, down) =
                    (index.range(.., &guard).count(), index.range_rev(.., &guard).count());
                ensure!(
                    up == keys as usize && down == up,
                    "{up} entries up and {down} down, of {keys}, under a guard that is used again"
                );
            }
            goes_on(make, &mut index, keys, 3 * at + kind)
                .map_err(|f| f.at(format_args!("{name} unwound at entry {stop}")))?;
        }
    }
    // A cursor that is not dropped continues from its entry.
    let mut cursor = index.cursor();
    let done = unwinding(|| {
        cursor.seek(lend::<I>(&nth::<I>(keys / 2)));
        strike();
    });
    ensure!(done.is_none() && cursor.value() == Some(keys / 2), "the cursor lost its place");
    ensure!(cursor.next() && cursor.value() == Some(keys / 2 + 1), "the cursor does not go on");
    drop(cursor);
    goes_on(make, &mut index, keys, 12)
}

/// Declares a module of tests for an index type over [`Faulty`](crate::faulty::Faulty); with
/// `scans` for one that has ranges and cursors:
///
/// ```
/// use silvics::{NatarajanTree, SkipList};
/// use silvics_testkit::{fault_suite, faulty::Faulty};
///
/// fault_suite!(edge_ext_lf, NatarajanTree<Faulty>);
/// fault_suite!(skiplist_u64, SkipList<u64, Faulty>, scans);
/// # fn main() {} // nothing runs here: the tests belong to a test binary
/// ```
#[macro_export]
macro_rules! fault_suite {
    ($name:ident, $index:ty) => {
        $crate::fault_suite!(@module $name, $index,);
    };
    ($name:ident, $index:ty, points) => {
        $crate::fault_suite!(@module $name, $index,);
    };
    ($name:ident, $index:ty, scans) => {
        $crate::fault_suite!(@module $name, $index,
            user_panics_in_scans: faults::user_panics_in_scans,
            parked_cursors: reclaim::parked_cursors,
            unfinished_scans: reclaim::unfinished_scans,
        );
    };
    (@module $name:ident, $index:ty, $($test:ident: $file:ident::$property:ident,)*) => {
        mod $name {
            #[allow(unused_imports, clippy::wildcard_imports)]
            use super::*;
            $crate::index_suite!(@tests $index, points,
                nth_allocation_fails: faults::nth_fails,
                nth_allocation_panics: faults::nth_panics,
                nth_allocation_of_a_batch: batches::nth_faults,
                creation_fails: faults::creation,
                faults_among_threads: faults::among_threads,
                user_panics: faults::user_panics,
            );
            $crate::index_suite!(@tests $index, scans,
                $($test: $file::$property,)*
            );
        }
    };
}
