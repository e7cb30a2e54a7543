//! Property: the key-sum rule of the literature. After any run, the keys inserted minus the keys
//! removed are the keys present. The rule is checked as counts per key, which show the wrong key.

use crate::crew::together;
use crate::failure::ensure;
use crate::keys::{belongs, lend, nth, tagged};
use crate::make::Make;
use crate::memory;
use crate::rest::counts;
use crate::rng::Rng;
use crate::{Failure, Outcome, Subject, size};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::{Guard, Options};
use std::collections::HashMap;

/// For each key, how often a thread saw it inserted minus how often it saw it removed.
pub(crate) type Balance = HashMap<u64, i64>;

/// Adds a thread's balance to the sum of all.
fn add(sum: &mut Balance, thread: Balance) {
    for (n, change) in thread {
        *sum.entry(n).or_default() += change;
    }
}

/// Threads insert and remove random keys of small, large and nearly endless ranges.
pub fn key_sum<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let operations = size::pick(200_000, 6000, 40);
    let ranges = [(2, 4), (8, 4), (40, 4), (1000, 2), (20_000, 2), (u64::MAX, 2)];
    for (round, (range, weight)) in ranges.into_iter().enumerate() {
        for threads in [2, 3] {
            let mut index = make(&Options::default())?;
            let balances = together(threads, |thread, _| {
                let mut rng = Rng::new(size::seed(), round * 8 + thread);
                let mut balance = Balance::new();
                for _ in 0..weight * operations / threads {
                    let guard = index.domain().pin();
                    random_write(&*index, &mut rng, range, &guard, &mut balance)?;
                }
                Ok(balance)
            })?;
            settle_accounts(make, &mut *index, balances)
                .map_err(|f| f.at(format_args!("{threads} threads, keys below {range}")))?;
        }
    }
    Ok(())
}

/// Compares the balances of all threads with the content of the index, down to the objects in use.
pub(crate) fn settle_accounts<I: Subject + ?Sized>(
    make: Make<I>,
    index: &mut I,
    balances: Vec<Balance>,
) -> Outcome {
    let mut sum = Balance::new();
    let threads = balances.len() + 1;
    for balance in balances {
        add(&mut sum, balance);
    }
    let guard = index.domain().pin();
    let (mut present, mut keys_found, mut keys_counted) = (0, 0u64, 0u64);
    for (&n, &count) in &sum {
        let found = index.get(lend::<I>(&nth::<I>(n)), &guard);
        ensure!(
            count == i64::from(found.is_some()),
            "key {n} was inserted {count} times more than removed, and get returns {found:?}"
        );
        if let Some(value) = found {
            ensure!(belongs(n, value), "key {n} has another key's value {value:#x}");
            present += 1;
            keys_found = keys_found.wrapping_add(n);
        }
        keys_counted = keys_counted.wrapping_add(n.wrapping_mul(count.cast_unsigned()));
    }
    drop(guard);
    ensure!(
        keys_found == keys_counted,
        "the keys present sum to {keys_found}, inserted minus removed to {keys_counted}"
    );
    counts(index, present)?;
    memory::follows(make, index, present, threads)
}

/// Calls one random verb on a random key below `range`, and enters the change in `balance`.
pub(crate) fn random_write<I: Subject + ?Sized>(
    index: &I,
    rng: &mut Rng,
    range: u64,
    guard: &Guard,
    balance: &mut Balance,
) -> Outcome {
    let n = rng.below(range);
    let owned = nth::<I>(n);
    let key = lend::<I>(&owned);
    let value = tagged(n, rng.word());
    let mine = |value: u64| {
        if belongs(n, value) {
            Ok(())
        } else {
            Err(Failure::new(format!("key {n} returned another key's value {value:#x}")))
        }
    };
    let change = match rng.below(8) {
        0..=1 => match index.try_insert(key, value, guard) {
            Ok(()) => 1,
            Err(TryInsertError::Occupied(present)) => mine(present).map(|()| 0)?,
            Err(error) => return Err(Failure::new(format!("try_insert: {error}"))),
        },
        2 => match index.insert(key, value, guard)? {
            None => 1,
            Some(old) => mine(old).map(|()| 0)?,
        },
        3..=5 => match index.remove(key, guard)? {
            None => 0,
            Some(old) => mine(old).map(|()| -1)?,
        },
        6 => {
            let expected = index.get(key, guard);
            expected.map_or(Ok(()), mine)?;
            let new = rng.percent(50).then_some(value);
            match index.compare_exchange(key, expected, new, guard) {
                Ok(()) => i64::from(new.is_some()) - i64::from(expected.is_some()),
                Err(CompareExchangeError::Mismatch(found)) => {
                    ensure!(found != expected, "key {n}: mismatch with what was expected");
                    found.map_or(Ok(()), mine).map(|()| 0)?
                }
                Err(error) => return Err(Failure::new(format!("compare_exchange: {error}"))),
            }
        }
        _ => {
            index.get(key, guard).map_or(Ok(()), mine)?;
            0
        }
    };
    *balance.entry(n).or_default() += change;
    Ok(())
}
