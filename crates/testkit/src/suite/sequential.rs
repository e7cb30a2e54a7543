//! Property: on one thread an index behaves as a map. Compares every verb, in every state, with
//! `BTreeMap`.

use crate::failure::ensure;
use crate::keys::{Shown, TestKey, lend, nth, show};
use crate::make::Make;
use crate::reference::same_content;
use crate::rest::counts;
use crate::rng::Rng;
use crate::{Failure, Outcome, Subject, size};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::{Guard, Options, OwnedKey, PinIndex};
use std::collections::BTreeMap;

/// The state that a compare-exchange expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The present state of the key.
    Right,
    /// The key is absent.
    Absent,
    /// The key has this value.
    Value(u64),
}

/// One call; `O` is the key.
#[derive(Debug)]
pub enum Step<O> {
    /// `get`
    Get(O),
    /// `try_insert`
    TryInsert(O, u64),
    /// `insert`
    Insert(O, u64),
    /// `remove`
    Remove(O),
    /// `compare_exchange`
    CompareExchange(O, Expect, Option<u64>),
    /// `get_many` of these keys, with this number of result places more or fewer than keys.
    GetMany(Vec<O>, i8),
    /// `insert_many` of these entries, with this number of result places more or fewer than
    /// entries.
    InsertMany(Vec<(O, u64)>, i8),
    /// `len` and `is_empty`
    Len,
}

fn values() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![4 => 0..4u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1), 2 => any::<u64>()]
}

fn expectations() -> impl Strategy<Value = Expect> {
    prop_oneof![
        3 => Just(Expect::Right),
        1 => Just(Expect::Absent),
        1 => values().prop_map(Expect::Value),
    ]
}

fn steps<K: TestKey + ?Sized>() -> impl Strategy<Value = Step<Shown<K>>> {
    let key = || K::strategy().prop_map(Shown::<K>);
    prop_oneof![
        2 => key().prop_map(Step::Get),
        4 => (key(), values()).prop_map(|(k, v)| Step::TryInsert(k, v)),
        4 => (key(), values()).prop_map(|(k, v)| Step::Insert(k, v)),
        4 => key().prop_map(Step::Remove),
        6 => (key(), expectations(), proptest::option::of(values()))
            .prop_map(|(k, e, n)| Step::CompareExchange(k, e, n)),
        1 => (proptest::collection::vec(key(), 0..40), -2..3i8)
            .prop_map(|(k, extra)| Step::GetMany(k, extra)),
        1 => (proptest::collection::vec((key(), values()), 0..40), -2..3i8)
            .prop_map(|(e, extra)| Step::InsertMany(e, extra)),
        1 => Just(()).prop_map(|()| Step::Len),
    ]
}

/// Makes one step on the index and on the model, and compares the answers.
pub(crate) fn step<I: Subject + ?Sized>(
    index: &I,
    model: &mut BTreeMap<OwnedKey<I>, u64>,
    step: &Step<Shown<I::Key>>,
    guard: &Guard,
) -> Outcome {
    match step {
        Step::Get(Shown(key)) => {
            let (found, wanted) = (index.get(lend::<I>(key), guard), model.get(key).copied());
            ensure!(found == wanted, "get returns {found:?}, wanted {wanted:?}");
        }
        Step::TryInsert(Shown(key), value) => {
            let wanted = match model.get(key) {
                Some(present) => Err(TryInsertError::Occupied(*present)),
                None => Ok(()),
            };
            let found = index.try_insert(lend::<I>(key), *value, guard);
            ensure!(found == wanted, "try_insert returns {found:?}, wanted {wanted:?}");
            model.entry(key.clone()).or_insert(*value);
        }
        Step::Insert(Shown(key), value) => {
            let found = index.insert(lend::<I>(key), *value, guard)?;
            let wanted = model.insert(key.clone(), *value);
            ensure!(found == wanted, "insert returns {found:?}, wanted {wanted:?}");
        }
        Step::Remove(Shown(key)) => {
            let (found, wanted) = (index.remove(lend::<I>(key), guard)?, model.remove(key));
            ensure!(found == wanted, "remove returns {found:?}, wanted {wanted:?}");
        }
        Step::CompareExchange(Shown(key), expect, new) => {
            exchange(index, model, key, *expect, *new, guard)?;
        }
        Step::GetMany(keys, extra) => get_many(index, model, keys, *extra, guard)?,
        Step::InsertMany(entries, extra) => insert_many(index, model, entries, *extra, guard)?,
        Step::Len => {
            let (found, wanted) = (index.len(), model.len());
            ensure!(found == wanted, "len is {found}, wanted {wanted}");
            ensure!(index.is_empty() == (wanted == 0), "is_empty is wrong");
        }
    }
    Ok(())
}

fn exchange<I: Subject + ?Sized>(
    index: &I,
    model: &mut BTreeMap<OwnedKey<I>, u64>,
    key: &OwnedKey<I>,
    expect: Expect,
    new: Option<u64>,
    guard: &Guard,
) -> Outcome {
    let present = model.get(key).copied();
    let expected = match expect {
        Expect::Right => present,
        Expect::Absent => None,
        Expect::Value(value) => Some(value),
    };
    let wanted =
        if present == expected { Ok(()) } else { Err(CompareExchangeError::Mismatch(present)) };
    let found = index.compare_exchange(lend::<I>(key), expected, new, guard);
    ensure!(
        found == wanted,
        "compare_exchange from {expected:?} returns {found:?}, wanted {wanted:?}"
    );
    if wanted.is_ok() {
        match new {
            Some(value) => model.insert(key.clone(), value),
            None => model.remove(key),
        };
    }
    Ok(())
}

/// The content of a result place that no call may write.
pub(crate) const UNTOUCHED: Option<u64> = Some(0x5eed);

/// One result place for each key, and `extra` more or fewer.
fn places(keys: usize, extra: i8) -> Vec<Option<u64>> {
    vec![UNTOUCHED; keys.saturating_add_signed(isize::from(extra))]
}

pub(crate) fn get_many<I: Subject + ?Sized>(
    index: &I,
    model: &BTreeMap<OwnedKey<I>, u64>,
    keys: &[Shown<I::Key>],
    extra: i8,
    guard: &Guard,
) -> Outcome {
    let lent: Vec<_> = keys.iter().map(|key| lend::<I>(&key.0)).collect();
    let mut values = places(keys.len(), extra);
    index.get_many(&lent, &mut values, guard);
    for (at, found) in values.into_iter().enumerate() {
        let wanted = keys.get(at).map_or(UNTOUCHED, |key| model.get(&key.0).copied());
        ensure!(found == wanted, "get_many returns {found:?} in place {at}, wanted {wanted:?}");
    }
    Ok(())
}

/// Inserts a batch into the index and the model, and compares the answers. The caller compares the
/// contents.
pub(crate) fn insert_many<I: Subject + ?Sized>(
    index: &I,
    model: &mut BTreeMap<OwnedKey<I>, u64>,
    entries: &[(Shown<I::Key>, u64)],
    extra: i8,
    guard: &Guard,
) -> Outcome {
    let lent: Vec<_> = entries.iter().map(|(key, value)| (lend::<I>(&key.0), *value)).collect();
    let mut replaced = places(entries.len(), extra);
    let found = index.insert_many(&lent, &mut replaced, guard)?;
    let olds: Vec<_> =
        entries.iter().map(|(key, value)| model.insert(key.0.clone(), *value)).collect();
    let wanted = olds.iter().filter(|old| old.is_none()).count();
    ensure!(found == wanted, "insert_many reports {found} absent keys, not {wanted}");
    for (at, found) in replaced.into_iter().enumerate() {
        let wanted = olds.get(at).copied().unwrap_or(UNTOUCHED);
        ensure!(found == wanted, "insert_many returns {found:?} in place {at}, wanted {wanted:?}");
    }
    Ok(())
}

/// Runs short random programs, and shrinks one that fails.
pub fn oracle<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let mut runner = TestRunner::new(config(size::pick(1000, 150, 4)));
    let longest = size::pick(400, 200, 24);
    let programs = proptest::collection::vec(steps::<I::Key>(), 1..longest);
    let result = runner.run(&programs, |program| {
        let mut index = make(&Options::default()).map_err(reject)?;
        let mut model = BTreeMap::new();
        for (at, one) in program.iter().enumerate() {
            let guard = index.domain().pin();
            step(&*index, &mut model, one, &guard)
                .map_err(|f| reject(f.at(format_args!("step {at}, {one:?}"))))?;
        }
        same_content(&mut *index, &model).map_err(reject)
    });
    result.map_err(|failure| Failure::new(failure.to_string()))
}

pub(crate) fn reject(failure: impl Into<Failure>) -> TestCaseError {
    TestCaseError::fail(failure.into().to_string())
}

/// A configuration without a file of past failures: a failing program is printed whole and belongs
/// in a test.
pub(crate) fn config(cases: usize) -> Config {
    Config { cases: cases as u32, failure_persistence: None, ..Config::default() }
}

/// Runs one long random program per key range, so that trees grow deep, shrink and grow again.
pub fn oracle_long<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    for (round, range) in [40, 1000, 30_000].into_iter().enumerate() {
        let mut rng = Rng::new(size::seed(), round);
        let mut index = make(&Options::default())?;
        let mut model = BTreeMap::new();
        let steps = size::pick(300_000, 50_000, 300);
        for at in 0..steps {
            let guard = index.domain().pin();
            // The run alternates between growth and decay.
            let growing = (at / (steps / 4 + 1)).is_multiple_of(2);
            let one = random_step::<I>(&mut rng, range, if growing { 60 } else { 25 });
            step(&*index, &mut model, &one, &guard)
                .map_err(|f| f.at(format_args!("step {at} of range {range}, {one:?}")))?;
        }
        same_content(&mut *index, &model)?;
    }
    Ok(())
}

pub(crate) fn random_step<I: Subject + ?Sized>(
    rng: &mut Rng,
    range: u64,
    grow: u64,
) -> Step<Shown<I::Key>> {
    let key = Shown::<I::Key>(nth::<I>(rng.below(range)));
    let value = rng.below(4);
    let expect = match rng.below(4) {
        0 => Expect::Absent,
        1 => Expect::Value(rng.below(4)),
        _ => Expect::Right,
    };
    let new = rng.percent(grow).then_some(value);
    match rng.below(10) {
        0 => Step::Get(key),
        1 | 2 => Step::CompareExchange(key, expect, new),
        _ if rng.percent(grow) && rng.percent(50) => Step::TryInsert(key, value),
        _ if rng.percent(grow) => Step::Insert(key, value),
        _ => Step::Remove(key),
    }
}

/// Inserts in ascending, descending and zigzag order, the worst for trees that do not balance,
/// and removes in each of these orders.
pub fn orders<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let keys = size::pick(4000, 2000, 40) as u64;
    let order = |kind: usize, at: u64| match kind {
        0 => at,
        1 => keys - 1 - at,
        _ if at.is_multiple_of(2) => at / 2,
        _ => keys - 1 - at / 2,
    };
    for (rising, falling) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
        let mut index = make(&Options::default())?;
        for at in 0..keys {
            let n = order(rising, at);
            let added = index.pin().try_insert(lend::<I>(&nth::<I>(n)), n);
            ensure!(added == Ok(()), "try_insert {n} returns {added:?}");
        }
        counts(&mut *index, keys as usize)?;
        for at in 0..keys {
            let n = order(falling, at);
            let removed = index.pin().remove(lend::<I>(&nth::<I>(n)))?;
            ensure!(removed == Some(n), "remove {n} returns {removed:?}");
        }
        counts(&mut *index, 0)?;
    }
    Ok(())
}

/// Stores every extreme value under every extreme key, through each verb and through the pinned
/// view.
pub fn extremes<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let mut index = make(&Options::default())?;
    let keys = <I::Key as TestKey>::extremes();
    for value in [0, 1, u64::MAX - 1, u64::MAX] {
        let mut view = index.pin();
        for key in &keys {
            let lent = lend::<I>(key);
            let name = show::<I>(key);
            ensure!(view.get(lent).is_none(), "{name} is present before its insertion");
            ensure!(view.try_insert(lent, value) == Ok(()), "{name}: try_insert");
            let again = view.try_insert(lent, !value);
            ensure!(
                again == Err(TryInsertError::Occupied(value)),
                "{name}: try_insert again returns {again:?}"
            );
            ensure!(view.insert(lent, !value) == Ok(Some(value)), "{name}: insert");
            ensure!(
                view.compare_exchange(lent, Some(!value), Some(value)) == Ok(()),
                "{name}: compare_exchange"
            );
            view.repin();
            ensure!(view.get(lent) == Some(value), "{name}: get");
        }
        let lent: Vec<_> = keys.iter().map(lend::<I>).collect();
        let mut found = vec![None; keys.len()];
        view.get_many(&lent, &mut found);
        ensure!(found.iter().all(|f| *f == Some(value)), "get_many returns {found:?}");
        drop(view);
        counts(&mut *index, keys.len())?;
        for (at, key) in keys.iter().enumerate() {
            let lent = lend::<I>(key);
            let view = index.pin();
            let gone = if at.is_multiple_of(2) {
                view.remove(lent) == Ok(Some(value))
            } else {
                view.compare_exchange(lent, Some(value), None) == Ok(())
            };
            ensure!(gone, "{}: removal", show::<I>(key));
            ensure!(view.get(lent).is_none(), "{} is still there", show::<I>(key));
        }
        counts(&mut *index, 0)?;
    }
    Ok(())
}
