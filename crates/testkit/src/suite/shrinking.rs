//! Property: free memory goes back to the system on request, and memory in use does not.

use crate::crew::together;
use crate::failure::ensure;
use crate::key_sum::{Balance, random_write, settle_accounts};
use crate::keys::{TestKey, lend, nth};
use crate::make::Make;
use crate::memory::exact;
use crate::reference::same_content;
use crate::rng::Rng;
use crate::{Outcome, Subject, size};
use silvics::{Domain, Options, Pages, PinIndex};
use std::collections::BTreeMap;

/// The bytes by which the arrays of a thread's magazines may grow meanwhile.
const ARRAYS: usize = 64 << 10;
/// The bytes by which they may grow during `shrink`.
const ARRAY: usize = 4 << 10;

/// After most keys have been removed, `shrink` returns as much memory as it reports, the other keys
/// stay present, and the returned memory is used again. Beside writers, the counts of keys and of
/// objects stay correct.
pub fn shrink<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    for pages in [Pages::Small, Pages::Thp] {
        alone(make, pages).map_err(|f| f.at(format_args!("alone, on {pages}")))?;
    }
    beside_writers(make)
}

fn alone<I: Subject + ?Sized>(make: Make<I>, pages: Pages) -> Outcome {
    // Guards of tests beside this one would delay what a shared domain retires.
    let options = Options { pages, domain: Some(Domain::new()), ..Options::default() };
    let mut index = make(&options)?;
    let keys = size::pick_whole(60_000, 6_000, 20) as u64;
    let kept = keys / 8;
    let mut most = 0;
    for round in 0..3 {
        for n in 0..keys {
            index.pin().insert(lend::<I>(&nth::<I>(n)), n + round)?;
        }
        let bulky = |at| <I::Key as TestKey>::bulky(keys + at);
        for at in 0..8 {
            index.pin().insert(lend::<I>(&bulky(at)), round)?;
        }
        // Rounds end with more or less garbage, and the thread's magazines hold more or less.
        index.settle();
        index.shrink();
        let full = index.bytes();
        ensure!(
            most == 0 || full <= most + most / 4 + ARRAYS,
            "{full} bytes in round {round}, {most} before"
        );
        most = most.max(full);
        for at in 0..8 {
            index.pin().remove(lend::<I>(&bulky(at)))?;
        }
        for n in kept..keys {
            index.pin().remove(lend::<I>(&nth::<I>(n)))?;
        }
        // As before: what `shrink` frees itself would make magazines grow meanwhile.
        index.settle();
        let before = index.bytes();
        let given = index.shrink();
        let after = index.bytes();
        // A heap may return memory before it is asked to.
        ensure!(
            after + given <= before + ARRAY,
            "of {before} bytes {given} were returned, and {after} are left"
        );
        let mapped = index.pool_stats().iter().any(|pool| !pool.regions.is_empty());
        let large = full > 1 << 19;
        ensure!(
            !mapped || !large || given > full / 4,
            "of {full} bytes only {given} were returned"
        );
        let model: BTreeMap<_, _> = (0..kept).map(|n| (nth::<I>(n), n + round)).collect();
        ensure!(model.len() as u64 == kept, "keys are distinct");
        same_content(&mut *index, &model).map_err(|f| f.at(format_args!("round {round}")))?;
    }
    exact(make, &mut *index)
}

fn beside_writers<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    const WRITERS: usize = 2;
    let mut index = make(&Options::default())?;
    let range = size::pick(20_000, 1_000, 8) as u64;
    let balances = together(WRITERS + 1, |thread, crew| {
        let mut balance = Balance::new();
        if thread == WRITERS {
            while !crew.stopped() {
                index.shrink();
            }
            return Ok(balance);
        }
        let mut rng = Rng::new(size::seed(), thread);
        for _ in 0..size::pick(100_000, 4_000, 20) {
            random_write(&*index, &mut rng, range, &index.domain().pin(), &mut balance)?;
        }
        crew.stop();
        Ok(balance)
    })?;
    settle_accounts(make, &mut *index, balances).map_err(|f| f.at("beside writers"))?;
    exact(make, &mut *index).map_err(|f| f.at("beside writers"))
}
