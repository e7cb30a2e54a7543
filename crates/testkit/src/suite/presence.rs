//! Property: a key that is present throughout is found throughout, also while its value and its
//! neighbours are written. A key that is never present is never found.

use crate::failure::ensure;
use crate::grid::{Grid, among_writers};
use crate::keys::{belongs, lend, nth};
use crate::make::Make;
use crate::memory;
use crate::rng::Rng;
use crate::{Outcome, Subject, size};
use silvics::Options;

/// Looks up keys while others write: one key that is replaced all the time, a few keys, and many.
pub fn under_writers<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let rounds = size::pick(300_000, 8000, 20);
    for (keys, rounds) in [(1, rounds), (12, 3 * rounds), (60, 3 * rounds), (1000, rounds)] {
        let mut index = make(&Options::default())?;
        let grid = Grid::plant(&*index, keys)?;
        among_writers(&*index, &grid, |rng| {
            (0..rounds).try_for_each(|_| read(&*index, &grid, rng))
        })
        .map_err(|f| f.at(format_args!("{keys} keys")))?;
        let entries = index.check()?;
        memory::follows(make, &*index, entries, 4)?;
    }
    Ok(())
}

/// Looks up a few neighbouring keys, one by one or in a batch.
fn read<I: Subject + ?Sized>(index: &I, grid: &Grid<I>, rng: &mut Rng) -> Outcome {
    const BATCH: u64 = 4;
    let first = rng.below(grid.len);
    let numbers = first..grid.len.min(first + BATCH);
    let owned: Vec<_> = numbers.clone().map(nth::<I>).collect();
    let lent: Vec<_> = owned.iter().map(lend::<I>).collect();
    let mut values = [None; BATCH as usize];
    let guard = index.domain().pin();
    let verb = if rng.percent(50) {
        index.get_many(&lent, &mut values, &guard);
        "get_many"
    } else {
        for (key, value) in lent.iter().zip(&mut values) {
            *value = index.get(*key, &guard);
        }
        "get"
    };
    for (n, value) in numbers.zip(values) {
        let right = match value {
            Some(value) => Grid::<I>::may_appear(n) && belongs(n, value),
            None => !Grid::<I>::stays(n),
        };
        ensure!(right, "{verb} of key {n} returns {value:?} under writers");
    }
    Ok(())
}
