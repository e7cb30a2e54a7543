//! Property: garbage is bounded, and scans and cursors hold no more than they document.
//!
//! The bounds are those of [`silvics::domain`]. While pins are short, garbage is the objects
//! retired during some two epochs, and the unsealed ones. Under a held pin, garbage is every object
//! retired since. After that pin it is freed within a stated number of pins, or of flushes.
//!
//! [`parked_cursors`] and [`unfinished_scans`] count objects exactly. They need an index on
//! [`Faulty`](crate::faulty::Faulty), whose refusals make a thread seal its retired objects.

use crate::crew::together;
use crate::failure::ensure;
use crate::faults::{Recorded, unpinned};

use crate::keys::{lend, nth, own};
use crate::make::Make;
use crate::memory::{UNSEALED, extra_slots, live_slots, settle};
use crate::{Failure, Outcome, ScanSubject, Subject, size};
use silvics::index::Cursor;
use silvics::{KeyRef, Options, OwnedKey, PinIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of pins of a thread after which the collector works.
const INTERVAL: usize = 128;
/// The number of batches that the collector runs each time it works.
const STEPS: usize = 8;
/// The steps of the epoch between the end of a pin and the end of the last garbage that it
/// protected. The collector takes at most one step each time it works.
const EPOCHS: usize = 2;

/// One thread scans in all ways, each time under a pin of its own, while another inserts, replaces
/// and removes. From time to time both stop: then the garbage is at most the objects retired since
/// the stop before the last.
///
/// The reason: a pin taken after a stop sees the epoch of that moment or a later one. So the first
/// batch sealed afterwards moves the epoch on, and the scanner cannot prevent it. The epoch
/// therefore moves at least once between two stops. After two moves, batches sealed before may be
/// freed, and each further sealed batch runs eight of them.
pub fn scans_under_churn<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    /// The inserts, upserts and removals between two stops: enough to seal some batches.
    const BURST: u64 = 4 * UNSEALED as u64;
    /// The number of entries that are present.
    const WINDOW: u64 = 100;
    /// The most objects of one pool that a burst retires. An insert that puts a copy in a leaf's
    /// place and an upsert retire at most one object each, and a removal two; or each verb retires
    /// one descriptor.
    const RETIRED: usize = 4 * BURST as usize;
    let index: Arc<I> = Arc::from(make(&Options::default())?);
    let empty = live_slots(&*index);
    let bursts = size::pick(800, 300, 4) as u64;
    let retired = RETIRED * index.pool_stats().len();
    let most = empty + 2 * WINDOW as usize + 2 * retired + extra_slots(&*index, 3);
    let worst = together(2, |thread, crew| {
        let mut worst = 0;
        for burst in 0..bursts {
            crew.meet()?;
            if thread == 0 {
                worst = worst.max(live_slots(&*index));
                ensure!(
                    worst <= most,
                    "{worst} objects are in use for {WINDOW} entries after {burst} bursts of scans \
                     and churn, at most {most} expected: {retired} may be retired in a burst"
                );
            }
            crew.meet()?;
            for at in 0..if thread == 0 { BURST } else { 24 } {
                if thread == 0 {
                    churn_step(&*index, burst * BURST + at, WINDOW)?;
                } else {
                    scan(&index, at)?;
                }
            }
        }
        Ok(worst)
    })?;
    let all = bursts as usize * retired;
    println!("at most {} objects at a stop, of up to {all} retired; bound {most}", worst[0]);
    Ok(())
}

/// Inserts one key, replaces its value, and removes the one that is `window` older.
fn churn_step<I: Subject + ?Sized>(index: &I, at: u64, window: u64) -> Outcome {
    let key = |n: u64| nth::<I>(n.reverse_bits() >> 40);
    let added = index.pin().try_insert(lend::<I>(&key(at)), at);
    ensure!(added == Ok(()), "try_insert of a new key returns {added:?}");
    let old = index.pin().insert(lend::<I>(&key(at)), !at)?;
    ensure!(old == Some(at), "insert returns {old:?}");
    if let Some(old) = at.checked_sub(window) {
        let removed = index.pin().remove(lend::<I>(&key(old)))?;
        ensure!(removed == Some(!old), "remove returns {removed:?}");
    }
    Ok(())
}

/// Makes one scan of some kind, under a short pin.
fn scan<I: ScanSubject + ?Sized>(index: &Arc<I>, at: u64) -> Outcome {
    let mut values: Vec<u64> = Vec::new();
    let guard = index.domain().pin();
    match at % 5 {
        0 => values.extend(index.range(.., &guard).map(|(_, value)| value)),
        1 => values.extend(index.range_rev(.., &guard).map(|(_, value)| value)),
        2 => values.extend(index.range(.., &guard).take(7).map(|(_, value)| value)),
        3 => values.extend(index.range_rev(.., &guard).take(7).map(|(_, value)| value)),
        _ => {
            drop(guard);
            let mut cursor = index.cursor();
            while values.len() < 20 && cursor.next() {
                values.extend(cursor.value());
            }
        }
    }
    let distinct: BTreeSet<_> = values.iter().collect();
    ensure!(distinct.len() == values.len(), "an entry was returned twice: {values:?}");
    Ok(())
}

/// Under a held pin nothing is freed, and the objects in use grow with those retired; the figures
/// are printed. After the pin, every sealed object is freed within the number of pins of one thread
/// that the domain promises, or of flushes.
pub fn garbage_under_a_held_pin<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    const PARTS: u64 = 4;
    let keys = size::pick(16_000, 6000, 400) as u64;
    let empty = live_slots(&*make(&Options::default())?);
    for flushed in [false, true] {
        let index = make(&Options::default())?;
        let key = |n: u64| nth::<I>(n.reverse_bits() >> 40);
        for n in 0..keys {
            index.pin().insert(lend::<I>(&key(n)), n)?;
        }
        let mut live = settle(&*index);
        println!("{keys} entries: {live} objects, {} bytes", index.bytes());
        let held = index.domain().pin();
        for part in 0..PARTS {
            together(1, |_, _| {
                for n in part * keys / PARTS..(part + 1) * keys / PARTS {
                    let replaced = index.pin().insert(lend::<I>(&key(n)), !n)?;
                    ensure!(replaced == Some(n), "insert returns {replaced:?}");
                    let removed = index.pin().remove(lend::<I>(&key(n)))?;
                    ensure!(removed == Some(!n), "remove returns {removed:?}");
                }
                index.domain().flush();
                Ok(())
            })?;
            let (before, now) = (live, live_slots(&*index));
            ensure!(now >= before, "{} objects were freed under a guard", before - now);
            live = now;
            let gone = (part + 1) * keys / PARTS;
            println!("{gone} replaced and removed: {live} objects, {} bytes", index.bytes());
        }
        drop(held);
        let batches = (live - empty) / UNSEALED + index.pool_stats().len();
        let unsealed = empty + extra_slots(&*index, 1 + PARTS as usize);
        let (name, most, step): (_, _, &dyn Fn()) = if flushed {
            // A flush runs the collector three times.
            let most = (batches.div_ceil(STEPS) + EPOCHS).div_ceil(3);
            ("flushes", most, &|| index.domain().flush())
        } else {
            let most = INTERVAL * (batches.div_ceil(STEPS) + EPOCHS);
            ("pins", most, &|| drop(index.domain().pin()))
        };
        let mut steps = 0;
        while steps < most && live_slots(&*index) > unsealed {
            step();
            steps += 1;
        }
        let left = live_slots(&*index);
        ensure!(
            left <= unsealed,
            "{left} objects are left {steps} {name} after the guard is gone: {most} should suffice for \
             {batches} batches, and {unsealed} may be left"
        );
        println!("free after {steps} {name} of at most {most}, for some {batches} batches");
    }
    Ok(())
}

type Live = BTreeMap<&'static str, usize>;

/// The objects of an index that has had `keys` entries, of which it has the first `left`, after all
/// garbage is freed.
fn plain<I: Subject + ?Sized>(make: Make<I>, keys: u64, left: u64) -> Result<Live, Failure> {
    let recorded = Recorded::new(make)?;
    for n in 0..keys {
        recorded.index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
    }
    for n in left..keys {
        recorded.index.pin().remove(lend::<I>(&nth::<I>(n)))?;
    }
    Ok(settled(&recorded))
}

/// Frees all garbage and returns the objects left. Only the calling thread may have made garbage,
/// and it has no guard.
fn settled<I: Subject + ?Sized>(recorded: &Recorded<I>) -> Live {
    let index = &*recorded.index;
    index.shrink(); // seals this thread's garbage
    settle(index);
    recorded.ledger.live()
}

fn total(live: &Live) -> usize {
    live.values().sum()
}

/// Cursors stay parked at entries that are replaced or removed, for many rounds of churn. Each
/// cursor still answers, holds at most one object and no pin, and releases the object when it
/// moves.
pub fn parked_cursors<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let (keys, rounds) = (size::pick(60, 60, 10) as u64, size::pick(60, 40, 4) as u64);
    let mut recorded = Recorded::new(make)?;
    let empty = plain(make, keys, 0)?;
    let mut parked: Vec<(I::Cursor, OwnedKey<I>, u64)> = Vec::new();
    for round in 0..rounds {
        let index = &recorded.index;
        for n in 0..keys {
            index.pin().insert(lend::<I>(&nth::<I>(n)), round << 32 | n)?;
        }
        let at = round * 7 % keys;
        let here = nth::<I>(at);
        let mut arrivals = [index.cursor(), index.cursor(), index.cursor()];
        arrivals[0].seek(lend::<I>(&here));
        while arrivals[1].key().map(own::<I>).as_ref() != Some(&here) && arrivals[1].next() {}
        arrivals[2].seek_for_prev(lend::<I>(&nth::<I>(keys)));
        while arrivals[2].key().map(own::<I>).as_ref() != Some(&here) && arrivals[2].prev() {}
        parked.extend(arrivals.map(|cursor| (cursor, here.clone(), round << 32 | at)));
        for n in 0..keys {
            if (n + round).is_multiple_of(2) {
                index.pin().insert(lend::<I>(&nth::<I>(n)), 0)?;
            }
            index.pin().remove(lend::<I>(&nth::<I>(n)))?;
        }
        for (cursor, key, value) in &parked {
            let found = (cursor.key().map(own::<I>), cursor.value());
            ensure!(
                found.0.as_ref() == Some(key) && found.1 == Some(*value),
                "a cursor parked at a removed entry answers {:?}, wanted {value}",
                found.1
            );
        }
        unpinned(&recorded.domain)?;
        // Three cursors stand at one node each round.
        let (live, most) = (settled(&recorded), total(&empty) + 1 + round as usize);
        ensure!(
            total(&live) <= most,
            "round {round}: {live:?} objects are in use, at most {most} expected: {empty:?} when \
             empty, and one for each entry that cursors stand at"
        );
    }
    // A cursor that moves away releases its old entry.
    for (at, (cursor, ..)) in parked.iter_mut().enumerate() {
        let moved = if at % 2 == 0 { cursor.next() } else { cursor.prev() };
        ensure!(!moved, "a cursor moved to an entry of an empty index");
    }
    let live = settled(&recorded);
    ensure!(live == empty, "all cursors are outside, and {live:?} objects are in use");
    for n in 0..keys {
        recorded.index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
    }
    for (at, (cursor, ..)) in parked.iter_mut().enumerate() {
        cursor.seek(lend::<I>(&nth::<I>(at as u64 % keys)));
    }
    let (live, full) = (settled(&recorded), plain(make, keys, keys)?);
    ensure!(live == full, "cursors at present entries, and {live:?} objects instead of {full:?}");
    drop(parked);
    crate::rest::counts(recorded.exclusive()?, keys as usize)?;
    recorded.end()
}

/// Ways in which scans end, or are left unfinished.
pub(crate) const UNFINISHED: [&str; 18] = [
    "a range dropped half-way",
    "a range never advanced",
    "a range whose entries are removed as it returns them",
    "a range whose entries are removed before it returns them",
    "a range half-way, then without its entries",
    "a range collected and inserted back",
    "a range around an absent key, which is then inserted",
    "a range_rev dropped half-way",
    "a range_rev never advanced",
    "a range_rev whose entries are removed as it returns them",
    "a range_rev half-way, then without its entries",
    "a range_rev collected and inserted back",
    "ranges from both ends that meet",
    "a cursor never moved",
    "a cursor dropped at an entry",
    "a cursor dropped at an entry that is removed",
    "a cursor to the last entry, back to the first, which is removed",
    "a cursor that removes what it stands at",
];

/// Scans that are dropped at any point, or whose entries are written meanwhile, keep nothing: the
/// objects in use are those of the entries, by kind. Leaks of this sort went unnoticed in
/// `crossbeam-skiplist` for years (issues 671, 1178; pull request 736).
pub fn unfinished_scans<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let (keys, rounds) = (size::pick(80, 80, 12) as u64, size::pick(12, 8, 2));
    let mut recorded = Recorded::new(make)?;
    for round in 0..rounds {
        for (number, name) in UNFINISHED.into_iter().enumerate() {
            for n in 0..keys {
                recorded.index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
            }
            let place = |f: Failure| f.at(format_args!("{name}, round {round}"));
            unfinished(&recorded.index, number, keys).map_err(place)?;
            unpinned(&recorded.domain).map_err(place)?;
            let (live, wanted) =
                (settled(&recorded), plain(make, keys, recorded.index.len() as u64)?);
            ensure!(
                live == wanted,
                "{name}, round {round}: {live:?} objects are in use, the entries take {wanted:?}"
            );
        }
    }
    let left = recorded.index.len();
    crate::rest::counts(recorded.exclusive()?, left)?;
    recorded.end()
}

/// Leaves a scan in the way numbered `number` of [`UNFINISHED`].
#[expect(clippy::too_many_lines, reason = "one arm for each way to leave a scan")]
pub(crate) fn unfinished<I: ScanSubject + ?Sized>(
    index: &Arc<I>,
    number: usize,
    keys: u64,
) -> Outcome {
    let guard = index.domain().pin();
    let middle = keys as usize / 2;
    let remove = |key: KeyRef<'_, I>| -> Outcome {
        let removed = index.remove(key, &guard)?;
        ensure!(removed.is_some(), "a key that a scan returned is absent");
        Ok(())
    };
    let remove_all = || -> Outcome {
        for n in 0..keys {
            index.remove(lend::<I>(&nth::<I>(n)), &guard)?;
        }
        Ok(())
    };
    let cursor_at = |n: u64| {
        let mut cursor = index.cursor();
        cursor.seek(lend::<I>(&nth::<I>(n)));
        cursor
    };
    let (from, to) = (nth::<I>(1), nth::<I>(keys - 1));
    let within = lend::<I>(&from)..lend::<I>(&to);
    match number {
        0 => drop(index.range(.., &guard).nth(middle)),
        1 => drop(index.range(.., &guard)),
        2 => index.range(.., &guard).try_for_each(|(key, _)| remove(key))?,
        3 => {
            let mut range = index.range(.., &guard);
            range.next();
            remove_all()?;
            ensure!(range.count() < keys as usize, "a range returns entries long gone");
        }
        4 => {
            let mut range = index.range(.., &guard);
            range.nth(middle);
            remove_all()?;
            drop(range);
        }
        5 | 11 => {
            let kept: Vec<_> = if number == 5 {
                index.range(within, &guard).map(|(key, value)| (own::<I>(key), value)).collect()
            } else {
                index.range_rev(within, &guard).map(|(key, value)| (own::<I>(key), value)).collect()
            };
            ensure!(kept.len() == keys as usize - 2, "{} entries in the range", kept.len());
            for (key, value) in &kept {
                index.insert(lend::<I>(key), !value, &guard)?;
            }
        }
        6 => {
            let around = [middle as u64 - 1, middle as u64, middle as u64 + 1].map(nth::<I>);
            let [low, hole, high] = [0, 1, 2].map(|at| lend::<I>(&around[at]));
            remove(hole)?;
            ensure!(index.range(low..high, &guard).count() == 1, "the range around a hole");
            index.insert(hole, 1, &guard)?;
        }
        7 => drop(index.range_rev(.., &guard).nth(middle)),
        8 => drop(index.range_rev(.., &guard)),
        9 => index.range_rev(.., &guard).try_for_each(|(key, _)| remove(key))?,
        10 => {
            let mut range = index.range_rev(.., &guard);
            range.nth(middle);
            remove_all()?;
            drop(range);
        }
        12 => {
            let (mut up, mut down) = (index.range(.., &guard), index.range_rev(.., &guard));
            while let (Some((low, _)), Some((high, _))) = (up.next(), down.next())
                && low < high
            {
                remove(low)?;
                remove(high)?;
            }
        }
        13 => drop(index.cursor()),
        14 => drop(cursor_at(keys / 2)),
        15 => {
            let cursor = cursor_at(keys / 2);
            remove_all()?;
            drop(cursor);
        }
        16 => {
            let mut cursor = cursor_at(keys - 1);
            while cursor.prev() {}
            cursor.next();
            let first = nth::<I>(0);
            remove(lend::<I>(&first))?;
            drop(cursor);
        }
        _ => {
            let mut cursor = index.cursor();
            while cursor.next() {
                let here = cursor.key().map(own::<I>);
                here.map_or(Ok(()), |key| remove(lend::<I>(&key)))?;
            }
        }
    }
    Ok(())
}
