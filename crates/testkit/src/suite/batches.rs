//! Property: a batch equals its calls made one after the other. This holds for batches of every
//! size, in their answers and in the entries that they leave, among writers, and if memory runs out
//! in the middle.
//!
//! The sizes lie on both sides of the sizes of the groups that structures form, and keys are
//! repeated.

use crate::failure::ensure;
use crate::faults::Recorded;
use crate::faulty::{Plan, Ran, under};
use crate::grid::{Grid, among_writers};
use crate::keys::{Shown, belongs, lend, nth, tagged};
use crate::make::Make;
use crate::memory;
use crate::reference::same_content;
use crate::rng::Rng;
use crate::sequential::{UNTOUCHED, get_many, insert_many};
use crate::{Failure, Outcome, Subject, size};
use silvics::{InsertManyError, Options, OwnedKey, PinIndex};
use std::collections::BTreeMap;

/// Sizes of batches: powers of two, which groups have; one less and one more; and a few groups.
const SIZES: [usize; 22] =
    [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 65, 100];

/// Compares lookups and upserts in batches of every size with `BTreeMap`: on one repeated key, on a
/// few keys and on many, with fewer and with more result places than keys.
pub fn as_one_by_one<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let rounds = size::pick(20, 6, 1);
    for (seed, range) in [1, 3, 20, 1000].into_iter().enumerate() {
        let mut rng = Rng::new(size::seed(), seed);
        let mut index = make(&Options::default())?;
        let mut model = BTreeMap::new();
        for size in (0..rounds).flat_map(|_| SIZES) {
            let guard = index.domain().pin();
            let extra = rng.below(5) as i8 - 2;
            let mut key = || Shown::<I::Key>(nth::<I>(rng.below(range)));
            let keys: Vec<_> = (0..size).map(|_| key()).collect();
            let entries: Vec<_> = (0..size).map(|at| (key(), at as u64)).collect();
            insert_many(&*index, &mut model, &entries, extra, &guard)
                .and_then(|()| get_many(&*index, &model, &keys, extra, &guard))
                .map_err(|f| f.at(format_args!("batches of {size} out of {range} keys")))?;
            // Removes some keys, so that the next batch has something to insert.
            for Shown(key) in keys.iter().take(size / 2) {
                let found = index.remove(lend::<I>(key), &guard)?;
                ensure!(found == model.remove(key), "remove after a batch returns {found:?}");
            }
        }
        same_content(&mut *index, &model)?;
    }
    Ok(())
}

/// Runs batches while other threads write, on few keys and on many, in any order and repeated.
pub fn under_writers<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let rounds = size::pick(30_000, 2000, 5);
    for keys in [1, 12, 200, 2000] {
        let mut index = make(&Options::default())?;
        let grid = Grid::plant(&*index, keys)?;
        among_writers(&*index, &grid, |rng| {
            (0..rounds).try_for_each(|_| batch(&*index, &grid, rng))
        })
        .map_err(|f| f.at(format_args!("{keys} keys")))?;
        let entries = index.check()?;
        memory::follows(make, &*index, entries, 4)?;
    }
    Ok(())
}

/// Looks up keys in a batch, or writes new values to them in a batch.
fn batch<I: Subject + ?Sized>(index: &I, grid: &Grid<I>, rng: &mut Rng) -> Outcome {
    let writes = rng.percent(30);
    let count = rng.below(50) as usize;
    let numbers: Vec<u64> = std::iter::repeat_with(|| rng.below(grid.len))
        .filter(|n| !writes || Grid::<I>::may_appear(*n))
        .take(count)
        .collect();
    let owned: Vec<_> = numbers.iter().map(|n| nth::<I>(*n)).collect();
    let mut found = vec![None; count];
    let guard = index.domain().pin();
    let verb = if writes {
        let value = |n: u64| tagged(n, n);
        let lent: Vec<_> =
            owned.iter().zip(&numbers).map(|(key, n)| (lend::<I>(key), value(*n))).collect();
        let absent = index.insert_many(&lent, &mut found, &guard)?;
        let told = found.iter().filter(|found| found.is_none()).count();
        ensure!(absent == told, "insert_many reports {absent} absent keys, its places show {told}");
        "insert_many"
    } else {
        let lent: Vec<_> = owned.iter().map(lend::<I>).collect();
        index.get_many(&lent, &mut found, &guard);
        "get_many"
    };
    for (n, value) in numbers.into_iter().zip(found) {
        let right = match value {
            Some(value) => Grid::<I>::may_appear(n) && belongs(n, value),
            None => !Grid::<I>::stays(n),
        };
        ensure!(right, "{verb} of key {n} returns {value:?} under writers");
    }
    Ok(())
}

/// Makes the n-th allocation of a batch fail or panic, for every n. The entries before it must be
/// in the index and the later ones not, and the batch must report so. If only one attempt fails,
/// all entries must be in the index.
///
/// The index must be placed on [`Faulty`](crate::faulty::Faulty).
pub fn nth_faults<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let plans: [fn(u64) -> Plan; 3] = [Plan::FailFrom, Plan::FailOnce, Plan::Panic];
    let sizes: &[usize] = if cfg!(miri) { &[3] } else { &[1, 5, 9, 17, 40, 60] };
    let mut struck = 0usize;
    for &size in sizes {
        for plan in plans {
            for n in 1.. {
                let faults = one_fault(make, size, plan(n))
                    .map_err(|f| f.at(format_args!("a batch of {size}, {:?}", plan(n))))?;
                struck += usize::from(faults);
                if !faults {
                    break;
                }
            }
        }
    }
    ensure!(struck > 0, "no batch met an allocation: the index is not on `Faulty`");
    Ok(())
}

/// Runs one batch under one plan. Returns whether it reached the allocation that the plan strikes.
fn one_fault<I: Subject + ?Sized>(make: Make<I>, size: usize, plan: Plan) -> Result<bool, Failure> {
    let mut recorded = Recorded::new(make)?;
    let mut model = BTreeMap::new();
    let mut rng = Rng::new(size::seed(), size);
    for n in 0..size as u64 {
        recorded.index.pin().insert(lend::<I>(&nth::<I>(2 * n)), n)?;
        model.insert(nth::<I>(2 * n), n);
    }
    // Entries with present keys, with absent keys, and some keys twice.
    let entries: Vec<(OwnedKey<I>, u64)> =
        (0..size as u64).map(|at| (nth::<I>(rng.below(2 * size as u64)), 1000 + at)).collect();
    let lent: Vec<_> = entries.iter().map(|(key, value)| (lend::<I>(key), *value)).collect();
    let mut replaced = vec![UNTOUCHED; size];
    let index = &*recorded.index;
    let ran = under(plan, || index.insert_many(&lent, &mut replaced, &index.domain().pin()));
    let done = done(&ran, plan, &replaced)?;
    let mut absent = 0;
    for (at, (key, value)) in entries.iter().enumerate() {
        let wanted = if at < done { model.insert(key.clone(), *value) } else { UNTOUCHED };
        absent += usize::from(wanted.is_none());
        let place = replaced[at];
        ensure!(place == wanted, "of {done} done, place {at} holds {place:?}, wanted {wanted:?}");
    }
    if let Some(Ok(told)) = ran.outcome {
        ensure!(told == absent, "the batch reports {told} absent keys, not {absent}");
    }
    same_content(recorded.exclusive()?, &model)
        .map_err(|f| f.at(format_args!("{done} entries done")))?;
    recorded.end()?;
    Ok(ran.faults > 0)
}

/// The number of entries done, as the batch reports it. If the batch unwound, its result places
/// show the number.
fn done(
    ran: &Ran<Result<usize, InsertManyError>>,
    plan: Plan,
    replaced: &[Option<u64>],
) -> Result<usize, Failure> {
    match (ran.faults, plan, ran.outcome) {
        (0, _, Some(Ok(_))) | (_, Plan::FailOnce(_), Some(Ok(_))) => Ok(replaced.len()),
        (1.., Plan::FailFrom(_), Some(Err(error))) => Ok(error.done),
        (1.., Plan::Panic(_), None) => {
            let untouched = replaced.iter().position(|place| *place == UNTOUCHED);
            untouched.ok_or_else(|| Failure::new("it unwound when all was done"))
        }
        (faults, _, outcome) => {
            Err(Failure::new(format!("with {faults} faults it returns {outcome:?}")))
        }
    }
}
