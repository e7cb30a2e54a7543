//! Property: atomic ranges, which are read or updated. Alone, they are those of `BTreeMap`. A
//! panic of the closure of an update changes nothing. (The histories of such ranges are in
//! [`crate::histories`].)

use crate::failure::ensure;
use crate::keys::{lend, nth, own, show};
use crate::make::Make;
use crate::reference::{same_content, within};
use crate::rng::Rng;
use crate::{Outcome, ScanSubject, size};
use silvics::{AtomicRanges, Options, OwnedKey, RangeUpdates};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Model<I> = BTreeMap<OwnedKey<I>, u64>;
type Bounds<I> = (Bound<OwnedKey<I>>, Bound<OwnedKey<I>>);

/// A bound of any kind, at one of `keys` keys.
fn bound<I: ScanSubject + ?Sized>(rng: &mut Rng, keys: u64) -> Bound<OwnedKey<I>> {
    let key = nth::<I>(rng.below(keys));
    match rng.below(7) {
        0 => Bound::Unbounded,
        1..=3 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn shown<I: ScanSubject + ?Sized>(bounds: &Bounds<I>) -> String {
    let end = |bound: &Bound<OwnedKey<I>>| format!("{:?}", bound.as_ref().map(show::<I>));
    format!("{} to {}", end(&bounds.0), end(&bounds.1))
}

/// Inserts and removes keys at random, and calls `check` with the index, a model, and bounds of
/// every kind, empty and inverted ones among them.
fn as_a_model<I: ScanSubject + ?Sized>(
    make: Make<I>,
    mut check: impl FnMut(&I, &mut Model<I>, &Bounds<I>) -> Outcome,
) -> Outcome {
    let keys = size::pick(2000, 600, 40) as u64;
    let mut rng = Rng::new(size::seed(), 0);
    let mut index = make(&Options::default())?;
    let mut model = Model::<I>::new();
    for value in 0..size::pick(40_000, 6000, 60) as u64 {
        let key = nth::<I>(rng.below(keys));
        let guard = index.domain().pin();
        if rng.below(5) < 3 {
            index.insert(lend::<I>(&key), value, &guard)?;
            model.insert(key, value);
        } else {
            index.remove(lend::<I>(&key), &guard)?;
            model.remove(&key);
        }
        drop(guard);
        if value % 20 == 0 {
            let bounds = (bound::<I>(&mut rng, keys), bound::<I>(&mut rng, keys));
            check(&*index, &mut model, &bounds)?;
        }
    }
    same_content(&mut *index, &model)
}

/// Compares atomic reads of ranges with a model.
pub fn reads<I: ScanSubject + AtomicRanges + ?Sized>(make: Make<I>) -> Outcome {
    as_a_model(make, |index: &I, model, bounds| {
        let guard = index.domain().pin();
        let lent = (bounds.0.as_ref().map(lend::<I>), bounds.1.as_ref().map(lend::<I>));
        let found = index.collect_range(lent, &guard)?;
        let found: Vec<_> = found.into_iter().map(|(key, value)| (own::<I>(key), value)).collect();
        let wanted = model.iter().filter(|(key, _)| within::<I::Key>(&lent, key));
        ensure!(
            found.iter().map(|(key, value)| (key, value)).eq(wanted.clone()),
            "collect_range of {} returns {} entries, of {}, or others",
            shown::<I>(bounds),
            found.len(),
            wanted.count()
        );
        Ok(())
    })
}

/// Compares updates of ranges with a model.
pub fn updates<I: ScanSubject + RangeUpdates + ?Sized>(make: Make<I>) -> Outcome {
    as_a_model(make, |index: &I, model, bounds| {
        let guard = index.domain().pin();
        let lent = (bounds.0.as_ref().map(lend::<I>), bounds.1.as_ref().map(lend::<I>));
        let mut seen = Vec::new();
        let count = index.update_range(lent, &guard, |key, value| {
            seen.push((own::<I>(key), value));
            value + (1 << 40)
        })?;
        let wanted = model.iter_mut().filter(|(key, _)| within::<I::Key>(&lent, key));
        let wanted = wanted.map(|(key, value)| {
            *value += 1 << 40;
            (key.clone(), *value - (1 << 40))
        });
        let is_equal = wanted.eq(seen.iter().cloned());
        ensure!(
            is_equal && count == seen.len(),
            "update_range of {} updates {count} entries and shows {}, or others than a map",
            shown::<I>(bounds),
            seen.len()
        );
        Ok(())
    })
}

/// The closure of an update panics in the middle: no entry has changed, and no lock is kept.
pub fn update_panics<I: ScanSubject + RangeUpdates + ?Sized>(make: Make<I>) -> Outcome {
    let keys = size::pick(600, 600, 40) as u64;
    let mut index = make(&Options::default())?;
    let mut model = Model::<I>::new();
    for n in 0..keys {
        index.insert(lend::<I>(&nth::<I>(n)), n, &index.domain().pin())?;
        model.insert(nth::<I>(n), n);
    }
    for stop in [0, keys / 2, keys - 1] {
        let mut seen = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let guard = index.domain().pin();
            index.update_range(.., &guard, |_, value| {
                if seen == stop {
                    std::panic::resume_unwind(Box::new("a panic of the closure"));
                }
                seen += 1;
                value + 1
            })
        }));
        ensure!(outcome.is_err(), "no panic unwound");
        same_content(&mut *index, &model)?;
        let guard = index.domain().pin();
        let count = index.update_range(.., &guard, |_, value| value ^ 1 << 50)?;
        ensure!(count as u64 == keys, "{count} entries of {keys} were updated");
        for value in model.values_mut() {
            *value ^= 1 << 50;
        }
        drop(guard);
        same_content(&mut *index, &model)?;
    }
    Ok(())
}

/// A guard of another domain does no harm.
pub fn foreign_guards<I: ScanSubject + AtomicRanges + ?Sized>(make: Make<I>) -> Outcome {
    let (index, other) = (make(&crate::make::apart())?, make(&crate::make::apart())?);
    let foreign = other.domain().pin();
    for n in 0..40 {
        index.insert(lend::<I>(&nth::<I>(n)), n, &foreign)?;
    }
    let found = index.collect_range(.., &foreign)?;
    for n in 0..40 {
        index.remove(lend::<I>(&nth::<I>(n)), &foreign)?;
    }
    // The list is still readable: the index keeps what it leads to.
    let found: Vec<_> = found.into_iter().map(|(key, value)| (own::<I>(key), value)).collect();
    let wanted: Vec<_> = (0..40).map(|n| (nth::<I>(n), n)).collect();
    ensure!(found == wanted, "{} entries, or others", found.len());
    Ok(())
}
