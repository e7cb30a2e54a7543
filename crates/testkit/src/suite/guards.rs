//! Property: a guard of another domain is harmless, and one domain serves several indexes.

use crate::crew::together;
use crate::failure::ensure;
use crate::grid::Grid;
use crate::key_sum::{Balance, random_write, settle_accounts};
use crate::keys::{lend, nth, own};
use crate::make::Make;
use crate::memory::follows;
use crate::rest::counts;
use crate::rng::Rng;
use crate::sequential;
use crate::{Outcome, ScanSubject, Subject, size};
use silvics::{Domain, Options};
use std::collections::BTreeMap;

/// Every operation is correct under a guard of another domain that is pinned for long, while other
/// threads churn under guards of all kinds.
pub fn foreign<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let elsewhere = Domain::new();
    let mut index = make(&Options::default())?;
    let mut model = BTreeMap::new();
    let guard = elsewhere.pin();
    for at in 0..size::pick(20_000, 8000, 100) {
        let mut rng = Rng::new(size::seed(), at);
        let one = sequential::random_step::<I>(&mut rng, 64, 50);
        sequential::step(&*index, &mut model, &one, &guard)
            .map_err(|f| f.at("under a foreign guard"))?;
    }
    drop(guard);
    crate::reference::same_content(&mut *index, &model)?;

    let mut index = make(&Options::default())?;
    let operations = size::pick(1_000_000, 400_000, 200);
    let balances = together(3, |thread, _| {
        let mut rng = Rng::new(size::seed(), thread);
        let mut balance = Balance::new();
        // This guard stays pinned while nodes of this and other threads are freed and reused.
        let foreign = elsewhere.pin();
        for _ in 0..operations / 3 {
            if thread > 0 {
                random_write(&*index, &mut rng, 100, &foreign, &mut balance)?;
            } else {
                let own = index.domain().pin();
                random_write(&*index, &mut rng, 100, &own, &mut balance)?;
            }
        }
        Ok(balance)
    })?;
    settle_accounts(make, &mut *index, balances)
}

/// A foreign guard does not keep an index's garbage, and ranges under a foreign guard are safe
/// among writers.
pub fn foreign_scans<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let elsewhere = Domain::new();
    let index = make(&Options::default())?;
    let grid = Grid::plant(&*index, size::pick(400, 200, 24) as u64)?;
    let scans = size::pick(8000, 4000, 10);
    together(3, |thread, crew| {
        let mut rng = Rng::new(size::seed(), thread);
        let guard = elsewhere.pin();
        if thread > 0 {
            while !crew.stopped() {
                grid.write(&*index, &mut rng, &guard)?;
            }
            return Ok(());
        }
        for scan in 0..scans {
            let mut seen = Vec::new();
            let entry = |(key, value)| (own::<I>(key), value);
            let entries: Vec<_> = if scan % 2 == 0 {
                index.range(.., &guard).map(entry).collect()
            } else {
                index.range_rev(.., &guard).map(entry).collect()
            };
            for (key, value) in entries {
                seen.push(grid.seen(&key, value)?);
            }
            seen.sort_unstable();
            for n in (0..grid.len).filter(|n| Grid::<I>::stays(*n)) {
                ensure!(
                    seen.binary_search(&n).is_ok(),
                    "key {n} was present throughout and not seen under a foreign guard"
                );
            }
        }
        crew.stop();
        Ok(())
    })?;
    Ok(())
}

/// A foreign guard that is held for long does not delay reclamation.
pub fn foreign_garbage<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let elsewhere = Domain::new();
    let mut index = make(&Options::default())?;
    let guard = elsewhere.pin();
    for n in 0..size::pick(20_000, 8000, 300) as u64 {
        let owned = nth::<I>(n % 10);
        index.insert(lend::<I>(&owned), n, &guard)?;
        let removed = index.remove(lend::<I>(&owned), &guard)?;
        ensure!(removed == Some(n), "remove returns {removed:?}");
    }
    follows(make, &*index, 0, 1)?;
    drop(guard);
    counts(&mut *index, 0)
}

/// Two indexes of one domain accept each other's guards, and each is dropped alone.
pub fn shared<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let domain = Domain::new();
    let options = Options { domain: Some(domain.clone()), ..Options::default() };
    let mut pair = [make(&options)?, make(&options)?];
    for index in &pair {
        ensure!(
            format!("{:?}", index.domain()) == format!("{domain:?}"),
            "the index does not use the domain it was given"
        );
    }
    let operations = size::pick(600_000, 300_000, 200);
    let balances = together(2, |thread, _| {
        let mut rng = Rng::new(size::seed(), thread);
        let mut balances = [Balance::new(), Balance::new()];
        for _ in 0..operations / 8 {
            // One pin for operations on both.
            let guard = pair[rng.below(2) as usize].domain().pin();
            for _ in 0..4 {
                let which = rng.below(2) as usize;
                random_write(&*pair[which], &mut rng, 200, &guard, &mut balances[which])?;
            }
        }
        Ok(balances)
    })?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for [one, other] in balances {
        first.push(one);
        second.push(other);
    }
    settle_accounts(make, &mut *pair[0], first)?;
    let [one, mut other] = pair;
    drop(one);
    domain.flush();
    settle_accounts(make, &mut *other, second)
}
