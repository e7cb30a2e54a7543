//! Property: ranges. Alone, they return the entries of `BTreeMap`. Under writers they keep the
//! promise of [`silvics::OrderedScan`].

use crate::failure::ensure;
use crate::grid::{Grid, among_writers};
use crate::keys::{Shown, TestKey, lend, nth, own, show};
use crate::make::Make;
use crate::memory;
use crate::reference::within;
use crate::rng::Rng;
use crate::sequential::{config, reject};
use crate::{Failure, Outcome, ScanSubject, size};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use silvics::{Guard, KeyRef, Options, OwnedKey, PinIndex};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// Two bounds whose `Debug` is a few characters.
struct ShownBounds<K: TestKey + ?Sized>(Bound<K::Owned>, Bound<K::Owned>);

impl<K: TestKey + ?Sized> fmt::Debug for ShownBounds<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Bound::Included(key) => write!(f, "[{}, ", K::show(key))?,
            Bound::Excluded(key) => write!(f, "({}, ", K::show(key))?,
            Bound::Unbounded => f.write_str("(-∞, ")?,
        }
        match &self.1 {
            Bound::Included(key) => write!(f, "{}]", K::show(key)),
            Bound::Excluded(key) => write!(f, "{})", K::show(key)),
            Bound::Unbounded => f.write_str("∞)"),
        }
    }
}

fn bound<K: TestKey + ?Sized>() -> impl Strategy<Value = Bound<K::Owned>> {
    prop_oneof![
        3 => K::strategy().prop_map(Bound::Included),
        3 => K::strategy().prop_map(Bound::Excluded),
        1 => Just(()).prop_map(|()| Bound::Unbounded),
    ]
}

/// Compares ranges in both directions with the oracle, for bounds of every kind, empty and inverted
/// ones among them.
pub fn oracle<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let mut runner = TestRunner::new(config(size::pick(500, 200, 3)));
    let key = <I::Key as TestKey>::strategy().prop_map(Shown::<I::Key>);
    let bounds = (bound::<I::Key>(), bound::<I::Key>());
    let bounds = bounds.prop_map(|(low, high)| ShownBounds::<I::Key>(low, high));
    let input = (
        proptest::collection::vec(key, 0..size::pick(100, 60, 12)),
        proptest::collection::vec(bounds, 1..20),
    );
    let result = runner.run(&input, |(keys, bounds)| {
        let index = make(&Options::default()).map_err(reject)?;
        let mut model = BTreeMap::new();
        for (value, key) in keys.into_iter().enumerate() {
            let value = value as u64;
            index.pin().insert(lend::<I>(&key.0), value).map_err(reject)?;
            model.insert(key.0, value);
        }
        for bounds in &bounds {
            same_range(&*index, &model, bounds).map_err(reject)?;
        }
        Ok(())
    });
    result.map_err(|failure| Failure::new(failure.to_string()))
}

/// Fails unless the entries in `bounds`, in both directions, are the model's.
fn same_range<I: ScanSubject + ?Sized>(
    index: &I,
    model: &BTreeMap<OwnedKey<I>, u64>,
    bounds: &ShownBounds<I::Key>,
) -> Outcome {
    let lent = (bounds.0.as_ref().map(lend::<I>), bounds.1.as_ref().map(lend::<I>));
    let wanted: Vec<(OwnedKey<I>, u64)> = model
        .iter()
        .filter(|(key, _)| within::<I::Key>(&lent, key))
        .map(|(key, value)| (key.clone(), *value))
        .collect();
    let guard = index.domain().pin();
    let entry = |(key, value)| (own::<I>(key), value);
    let forth: Vec<_> = index.range(lent, &guard).map(entry).collect();
    let mut back: Vec<_> = index.range_rev(lent, &guard).map(entry).collect();
    back.reverse();
    for (name, found) in [("range", forth), ("range_rev (reversed)", back)] {
        let (found_shown, wanted_shown) = (show_all::<I>(&found), show_all::<I>(&wanted));
        ensure!(
            found == wanted,
            "{name} of {bounds:?} returns [{found_shown}], wanted [{wanted_shown}]"
        );
    }
    Ok(())
}

fn show_all<I: ScanSubject + ?Sized>(entries: &[(OwnedKey<I>, u64)]) -> String {
    let shown = entries.iter().map(|(k, v)| format!("{}={v}", show::<I>(k)));
    shown.collect::<Vec<_>>().join(", ")
}

/// Tries every way to write a range, through the index and through its pinned view.
pub fn syntax<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let index = make(&Options::default())?;
    for n in 0..10 {
        index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
    }
    let view = index.pin();
    let (owned_low, owned_high) = (nth::<I>(3), nth::<I>(6));
    let (low, high) = (lend::<I>(&owned_low), lend::<I>(&owned_high));
    let cases: [(&str, Vec<u64>, Vec<u64>); 8] = [
        ("..", both(&*index, .., view.guard()), (0..10).collect()),
        ("a..", both(&*index, low.., view.guard()), (3..10).collect()),
        ("..b", both(&*index, ..high, view.guard()), (0..6).collect()),
        ("..=b", both(&*index, ..=high, view.guard()), (0..7).collect()),
        ("a..b", both(&*index, low..high, view.guard()), (3..6).collect()),
        ("a..=b", both(&*index, low..=high, view.guard()), (3..7).collect()),
        ("b..a", both(&*index, high..low, view.guard()), vec![]),
        ("a..a", both(&*index, low..low, view.guard()), vec![]),
    ];
    for (name, mut found, wanted) in cases {
        let mirrored = wanted.iter().rev();
        let wanted: Vec<u64> = wanted.iter().chain(mirrored).copied().collect();
        ensure!(found == wanted, "{name} returns {found:?}, wanted {wanted:?}");
        found.clear();
    }
    let forth: Vec<u64> = view.range(low..high).map(|(_, value)| value).collect();
    let back: Vec<u64> = view.range_rev(low..high).map(|(_, value)| value).collect();
    ensure!(forth == [3, 4, 5], "the view's range returns {forth:?}");
    ensure!(back == [5, 4, 3], "the view's range_rev returns {back:?}");
    Ok(())
}

/// The values of a range, forward and then backward.
fn both<'g, I: ScanSubject + ?Sized>(
    index: &'g I,
    range: impl RangeBounds<KeyRef<'g, I>> + Clone,
    guard: &'g Guard,
) -> Vec<u64> {
    let forth = index.range(range.clone(), guard);
    let back = index.range_rev(range, guard);
    forth.map(|e| e.1).chain(back.map(|e| e.1)).collect()
}

/// Scans in both directions, whole and cut short, while others write: over one key that is replaced
/// all the time, over a few keys, and over many.
pub fn under_writers<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let scans = size::pick(10_000, 2000, 4);
    for (keys, scans) in [(1, 60 * scans), (16, 10 * scans), (600, scans)] {
        let mut index = make(&Options::default())?;
        let grid = Grid::plant(&*index, keys)?;
        among_writers(&*index, &grid, |rng| {
            (0..scans).try_for_each(|_| scan(&*index, &grid, rng))
        })?;
        let entries = index.check()?;
        memory::follows(make, &*index, entries, 4)?;
    }
    Ok(())
}

/// An entry that a range returned stays intact while the guard is held, whatever happens to the
/// entry in the index and to its memory. The range itself continues.
pub fn under_a_held_guard<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let index = make(&Options::default())?;
    let keys = size::pick(4000, 1000, 40) as u64;
    for n in 0..keys {
        index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
    }
    let guard = index.domain().pin();
    let mut range = index.range(.., &guard);
    let mut lent: Vec<_> = range.by_ref().take(keys as usize / 2).collect();
    for n in 0..keys - 1 {
        index.pin().remove(lend::<I>(&nth::<I>(n)))?;
    }
    index.domain().flush();
    for n in keys..2 * keys {
        index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
    }
    lent.extend(range);
    for (n, (key, value)) in (0..).zip(&lent).take(keys as usize / 2) {
        let intact = own::<I>(*key) == nth::<I>(n) && *value == n;
        ensure!(intact, "entry {n} has changed under its guard: {key:?} = {value}");
    }
    let onward = lent[keys as usize / 2..].iter().map(|(_, value)| *value);
    let onward: Vec<u64> = onward.collect();
    ensure!(
        onward.is_sorted() && onward.contains(&(keys - 1)),
        "after its entry was removed the range went on with {onward:?}"
    );
    Ok(())
}

fn random_bound(rng: &mut Rng, len: u64) -> Bound<u64> {
    match rng.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(rng.below(len)),
        _ => Bound::Excluded(rng.below(len)),
    }
}

/// Makes one scan with random bounds.
fn scan<I: ScanSubject + ?Sized>(index: &I, grid: &Grid<I>, rng: &mut Rng) -> Outcome {
    let numbers = (random_bound(rng, grid.len), random_bound(rng, grid.len));
    let owned = (numbers.0.map(nth::<I>), numbers.1.map(nth::<I>));
    let lent = (owned.0.as_ref().map(lend::<I>), owned.1.as_ref().map(lend::<I>));
    let most = if rng.percent(30) { rng.below(50) as usize } else { usize::MAX };
    let guard = index.domain().pin();
    let forth = rng.percent(50);
    let entries: Vec<(OwnedKey<I>, u64)> = if forth {
        let range = index.range(lent, &guard).take(most);
        range.map(|(key, value)| (own::<I>(key), value)).collect()
    } else {
        let range = index.range_rev(lent, &guard).take(most);
        range.map(|(key, value)| (own::<I>(key), value)).collect()
    };
    drop(guard);
    let whole = entries.len() < most;
    let name = if forth { "range" } else { "range_rev" };
    judge(grid, numbers, forth, whole, &entries)
        .map_err(|f| f.at(format_args!("{name} of {numbers:?} under writers")))
}

/// Judges the entries that a scan of `bounds` saw. `whole` is true if the scan ran to its end.
fn judge<I: ScanSubject + ?Sized>(
    grid: &Grid<I>,
    bounds: (Bound<u64>, Bound<u64>),
    forth: bool,
    whole: bool,
    entries: &[(OwnedKey<I>, u64)],
) -> Outcome {
    let mut seen = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let n = grid.seen(key, *value)?;
        ensure!(bounds.contains(&n), "key {n} is outside");
        if let Some(&last) = seen.last() {
            ensure!(n != last, "key {n} seen twice");
            ensure!((n > last) == forth, "key {n} seen after {last}");
        }
        seen.push(n);
    }
    // A scan that was cut short is judged by the part that it walked.
    let reached = match seen.last() {
        _ if whole => None,
        Some(&last) => Some(last),
        None => return Ok(()),
    };
    let walked = |n: &u64| match reached {
        Some(last) if forth => *n <= last,
        Some(last) => *n >= last,
        None => true,
    };
    seen.retain(|n| Grid::<I>::stays(*n));
    seen.sort_unstable();
    let wanted = (0..grid.len).filter(|n| Grid::<I>::stays(*n) && bounds.contains(n));
    for n in wanted.filter(walked) {
        ensure!(seen.binary_search(&n).is_ok(), "key {n} was present throughout and not seen");
    }
    Ok(())
}
