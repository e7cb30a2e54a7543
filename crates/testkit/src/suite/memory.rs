//! Property: memory is returned. Churn, upserts and short-lived threads run in constant memory.
//! Retired objects are freed, and no object is left that the index does not reach.

use crate::crew::together;
use crate::failure::ensure;
use crate::grid::{Grid, among_writers};
use crate::key_sum::{Balance, random_write};
use crate::keys::{TestKey, lend, nth};
use crate::make::Make;
use crate::reclaim::{UNFINISHED, unfinished};
use crate::rest::counts;
use crate::rng::Rng;
use crate::sequential::{random_step, step};
use crate::{Failure, Outcome, ScanSubject, Subject, size};
use silvics::index::Cursor;
use silvics::{Domain, Guard, Options, OrderedIndex, OwnedKey, Pages, PinIndex};
use silvics_sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most retired objects of each pool that a thread holds back.
pub const UNSEALED: usize = silvics::domain::BATCH_OBJECTS;

/// The limit to which `bytes()` may rise above its level after the warm-up: garbage of one burst,
/// and pools that grow by whole slabs.
const RISE: usize = 4 << 20;

/// The number of objects that an index holds. Retired ones count.
pub fn live_slots<I: OrderedIndex + ?Sized>(index: &I) -> usize {
    index.pool_stats().iter().map(|pool| pool.live_slots).sum()
}

/// The number of objects that `threads` threads may hold back unsealed.
pub fn extra_slots<I: OrderedIndex + ?Sized>(index: &I, threads: usize) -> usize {
    UNSEALED * threads * index.pool_stats().len()
}

/// Flushes the index's domain until nothing more is freed, and returns the number of objects left.
/// No thread may hold a guard.
pub fn settle<I: OrderedIndex + ?Sized>(index: &I) -> usize {
    let mut live = live_slots(index);
    let mut quiet = 0;
    // A flush runs a limited number of batches, and frees nothing until the epoch has moved.
    while quiet < 8 {
        index.domain().flush();
        let now = live_slots(index);
        quiet = if now < live { 0 } else { quiet + 1 };
        live = now;
    }
    live
}

/// The `at`-th key that a thread of a churn run inserts. The keys of the threads interleave, and
/// now and then a key is large.
fn churn_key<I: Subject + ?Sized>(at: usize, thread: usize, threads: usize) -> OwnedKey<I> {
    // Every number comes once, and not in order.
    let scattered = (at as u64 * threads as u64 + thread as u64).reverse_bits() >> 20;
    if at % 512 == 7 { <I::Key as TestKey>::bulky(scattered) } else { nth::<I>(scattered) }
}

/// Threads insert new keys and remove old ones, and replace some in between. `bytes()` must stay at
/// its level after the warm-up, and all objects must be free in the end.
pub fn churn<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    churn_of(make, size::churn_pairs().unwrap_or(size::pick(1_000_000, 100_000, 600)))
}

/// Runs [`churn`] for longer in debug builds, too.
pub fn long_churn<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    churn_of(make, size::churn_pairs().unwrap_or(size::pick(1_000_000, 150_000, 600)))
}

fn churn_of<I: Subject + ?Sized>(make: Make<I>, pairs: usize) -> Outcome {
    const THREADS: usize = 2;
    /// The number of a thread's keys that are present.
    const WINDOW: usize = 500;
    /// The pairs between two meetings. They bound the garbage even if a thread is preempted while
    /// it is pinned: a pair can retire some KiB where each write copies nodes.
    const BURST: usize = 256;
    let options = Options { pages: Pages::Small, ..Options::default() };
    let mut index = make(&options)?;
    let pairs = (pairs / THREADS).max(4);
    let burst = BURST.min(pairs / 4);
    let samples = together(THREADS, |thread, crew| {
        let key = |at| churn_key::<I>(at, thread, THREADS);
        let mut samples = Vec::new();
        for at in 0..pairs {
            if at % burst == 0 {
                crew.meet()?;
                samples.push(index.bytes());
            }
            churn_pair(&*index, &key, at, WINDOW)?;
        }
        for at in pairs.saturating_sub(WINDOW)..pairs {
            ensure!(
                index.pin().remove(lend::<I>(&key(at)))?.is_some(),
                "the {at}-th key of thread {thread} is gone"
            );
        }
        Ok(samples)
    })?;
    let samples = &samples[0];
    let warm = samples.iter().take(samples.len().div_ceil(4)).max();
    let (warm, worst) = (warm.copied(), samples.iter().max().copied());
    let (warm, worst) = (warm.unwrap_or(0), worst.unwrap_or(0));
    ensure!(
        worst <= warm + RISE,
        "bytes rise from {warm} after a quarter of {pairs} pairs to {worst}"
    );
    counts(&mut *index, 0)?;
    follows(make, &*index, 0, THREADS + 1)
}

/// Inserts one key and removes the one that is `window` older.
fn churn_pair<I: Subject + ?Sized>(
    index: &I,
    key: &impl Fn(usize) -> OwnedKey<I>,
    at: usize,
    window: usize,
) -> Outcome {
    let (view, fresh, value) = (index.pin(), key(at), at as u64);
    let lent = lend::<I>(&fresh);
    let added = view.try_insert(lent, value);
    ensure!(added == Ok(()), "try_insert of a new key returns {added:?}");
    if at.is_multiple_of(4) {
        let old = view.insert(lent, !value)?;
        ensure!(old == Some(value), "insert returns {old:?}");
        let swapped = view.compare_exchange(lent, Some(!value), Some(value));
        ensure!(swapped == Ok(()), "compare_exchange returns {swapped:?}");
    }
    if let Some(old) = at.checked_sub(window) {
        let removed = view.remove(lend::<I>(&key(old)))?;
        ensure!(removed == Some(old as u64), "remove returns {removed:?}");
    }
    Ok(())
}

/// Fails unless the settled objects of an index are in proportion to its `entries`, and `bytes()`
/// covers them. An entry has at most two objects (a leaf or node, and an inner node), and in a map
/// its value, too. An empty index's objects, and those that `threads` threads hold back, come on
/// top.
pub(crate) fn follows<I: Subject + ?Sized>(
    make: Make<I>,
    index: &I,
    entries: usize,
    threads: usize,
) -> Outcome {
    in_proportion(make, index, settle(index), entries, extra_slots(index, threads))
}

/// Fails unless the live objects of an unused index are exactly those that it reaches, kind by
/// kind, and are in proportion to its entries.
pub(crate) fn exact<I: Subject + ?Sized>(make: Make<I>, index: &mut I) -> Outcome {
    index.settle();
    let live: Vec<_> = index.pool_stats().iter().map(|p| (p.kind, p.live_slots)).collect();
    let reached = index.reachable()?;
    ensure!(live == reached, "{live:?} objects are live, {reached:?} can be reached");
    in_proportion(make, index, live_slots(index), index.len(), 0)
}

/// The objects of an index whose only entry was removed. Some structures have none before the first
/// entry comes.
fn emptied<I: Subject + ?Sized>(make: Make<I>) -> Result<usize, Failure> {
    let mut index = make(&Options::default())?;
    index.pin().insert(lend::<I>(&nth::<I>(0)), 0)?;
    index.pin().remove(lend::<I>(&nth::<I>(0)))?;
    index.settle();
    Ok(live_slots(&*index))
}

/// The number of objects that the first entry makes and that stay when it is removed: the root, in
/// some structures.
pub(crate) fn made_by_first<I: Subject + ?Sized>(make: Make<I>) -> Result<usize, Failure> {
    let empty = live_slots(&*make(&Options::default())?);
    Ok(emptied(make)? - empty)
}

/// Fails unless `live` is at most the objects of an empty index, `extra`, and two objects for each
/// entry. There may be one more if values are objects, two if nodes have labels apart, and three if
/// a part of the index may have one entry and take a node, a route node and a bound. Their bytes
/// must have room for the values; an object may hold several.
fn in_proportion<I: Subject + ?Sized>(
    make: Make<I>,
    index: &I,
    live: usize,
    entries: usize,
    extra: usize,
) -> Outcome {
    let empty = emptied(make)?;
    let covered: usize = index.pool_stats().iter().map(|pool| pool.live_bytes).sum();
    let has = |kind| usize::from(index.pool_stats().iter().any(|pool| pool.kind == kind));
    let each = 2 + has("value") + 3 * has("route") + 2 * has("label");
    ensure!(
        covered >= size_of::<u64>() * entries && live <= empty + each * entries + extra,
        "{live} objects of {covered} bytes are in use for {entries} entries; {empty} when empty, and \
         {extra} may be unsealed"
    );
    let bytes = index.bytes();
    ensure!(bytes >= covered, "bytes() is {bytes}, but the objects of the pools take {covered}");
    Ok(())
}

/// When no thread uses an index and its retired objects are reclaimed, it holds exactly the objects
/// that it reaches, sentinels and routing nodes included. Checked after random work of one thread,
/// of several threads, and when the index is empty again.
pub fn live_objects_are_reachable<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    for range in [40, 20_000] {
        live_after_one_thread(make, range)
            .map_err(|f| f.at(format_args!("one thread, keys below {range}")))?;
    }
    for range in [4, 200, 20_000] {
        live_after_threads(make, range)
            .map_err(|f| f.at(format_args!("several threads, keys below {range}")))?;
    }
    let mut index = make(&Options::default())?;
    for present in [true, false] {
        for key in &<I::Key as TestKey>::extremes() {
            let (view, key) = (index.pin(), lend::<I>(key));
            let found = if present { view.insert(key, 1)? } else { view.remove(key)? };
            ensure!(found == (!present).then_some(1), "a write returns {found:?}");
        }
        exact(make, &mut *index).map_err(|f| f.at("extreme keys"))?;
    }
    Ok(())
}

fn live_after_one_thread<I: Subject + ?Sized>(make: Make<I>, range: u64) -> Outcome {
    const PARTS: usize = 8;
    let mut rng = Rng::new(size::seed(), range as usize);
    let mut index = make(&Options::default())?;
    let mut model = BTreeMap::new();
    for part in 0..PARTS {
        let growing = part < PARTS / 2;
        for _ in 0..size::pick(30_000, 5000, 20) {
            let one = random_step::<I>(&mut rng, range, if growing { 60 } else { 25 });
            step(&*index, &mut model, &one, &index.domain().pin())?;
        }
        exact(make, &mut *index).map_err(|f| f.at(format_args!("part {part} of {PARTS}")))?;
    }
    for key in model.keys() {
        index.pin().remove(lend::<I>(key))?;
    }
    counts(&mut *index, 0)?;
    exact(make, &mut *index).map_err(|f| f.at("emptied"))
}

fn live_after_threads<I: Subject + ?Sized>(make: Make<I>, range: u64) -> Outcome {
    const THREADS: usize = 3;
    let mut index = make(&Options::default())?;
    for round in 0..size::pick(20, 6, 2) {
        together(THREADS, |thread, _| {
            let mut rng = Rng::new(size::seed(), round * THREADS + thread);
            let mut balance = Balance::new();
            let mut guard = index.domain().pin();
            for _ in 0..size::pick(10_000, 4000, 20) {
                random_write(&*index, &mut rng, range, &guard, &mut balance)?;
                if rng.percent(20) {
                    guard.repin();
                }
            }
            Ok(())
        })?;
        exact(make, &mut *index).map_err(|f| f.at(format_args!("round {round}")))?;
    }
    together(THREADS, |thread, _| {
        // Two threads remove each key.
        for n in (0..range).filter(|n| (n / 2) as usize % THREADS != thread) {
            index.pin().remove(lend::<I>(&nth::<I>(n)))?;
        }
        Ok(())
    })?;
    counts(&mut *index, 0)?;
    exact(make, &mut *index).map_err(|f| f.at("emptied"))
}

/// Checks that live objects are reachable after scans: after ranges dropped half-way and cursors
/// dropped anywhere, alone, in every way that [`crate::reclaim::unfinished_scans`] knows, and
/// beside writers.
pub fn live_objects_after_scans<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    fn alone<I: ?Sized>(index: &mut Arc<I>) -> Result<&mut I, Failure> {
        Arc::get_mut(index).ok_or_else(|| Failure::new("something still holds the index"))
    }
    let keys = size::pick(200, 100, 12) as u64;
    let mut index: Arc<I> = Arc::from(make(&Options::default())?);
    for (number, name) in UNFINISHED.into_iter().enumerate() {
        for n in 0..keys {
            index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
        }
        unfinished(&index, number, keys).map_err(|f| f.at(name))?;
        exact(make, alone(&mut index)?).map_err(|f| f.at(name))?;
    }
    for keys in [4, keys] {
        let mut index: Arc<I> = Arc::from(make(&Options::default())?);
        let grid = Grid::plant(&*index, keys)?;
        among_writers(&*index, &grid, |rng| {
            let mut parked = Vec::new();
            for _ in 0..size::pick(20_000, 6000, 10) {
                leave_a_scan(&index, keys, rng, &mut parked);
            }
            Ok(())
        })?;
        exact(make, alone(&mut index)?)
            .map_err(|f| f.at(format_args!("{keys} keys, beside writers")))?;
    }
    Ok(())
}

/// Begins a scan and drops it, or adds its cursor to those `parked`.
fn leave_a_scan<I: ScanSubject + ?Sized>(
    index: &Arc<I>,
    keys: u64,
    rng: &mut Rng,
    parked: &mut Vec<I::Cursor>,
) {
    const PARKED: u64 = 8;
    let start = nth::<I>(rng.below(keys));
    let steps = rng.below(keys / 2) as usize;
    let guard = index.domain().pin();
    match rng.below(4) {
        0 => drop(index.range(lend::<I>(&start).., &guard).nth(steps)),
        1 => drop(index.range_rev(..lend::<I>(&start), &guard).nth(steps)),
        way => {
            drop(guard);
            let mut cursor = index.cursor();
            if way == 2 {
                cursor.seek(lend::<I>(&start));
                for _ in 0..steps {
                    cursor.next();
                }
            } else {
                cursor.seek_for_prev(lend::<I>(&start));
                for _ in 0..steps {
                    cursor.prev();
                }
            }
            parked.push(cursor);
            if parked.len() as u64 > PARKED {
                parked.swap_remove(rng.below(PARKED) as usize);
            }
        }
    }
}

/// Many short threads insert and remove. The memory that they leave behind must not add up.
pub fn threads_that_end<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    const AT_ONCE: usize = 4;
    let options = Options { pages: Pages::Small, ..Options::default() };
    let mut index = make(&options)?;
    let rounds = size::pick(500, 150, 3);
    let mut warm = 0;
    for round in 0..rounds {
        together(AT_ONCE, |thread, _| {
            for at in 0..100 {
                let owned = nth::<I>((at * AT_ONCE + thread) as u64);
                let key = lend::<I>(&owned);
                ensure!(index.pin().insert(key, 1)?.is_none(), "key {at} is already present");
                ensure!(index.pin().remove(key)? == Some(1), "key {at} is gone");
            }
            Ok(())
        })?;
        let bytes = index.bytes();
        if round <= rounds / 4 {
            warm = warm.max(bytes);
        }
        ensure!(
            bytes <= warm + 2 * RISE,
            "bytes rise from {warm} to {bytes} in round {round} of {AT_ONCE} threads each"
        );
    }
    counts(&mut *index, 0)?;
    // Unsealed batches stay with the indexes of threads, which other tests of this process share.
    follows(make, &*index, 0, 64)
}

/// An object that a guard may have seen is not freed while the guard is held, under any guard and
/// from any thread that retires it. It is freed soon after, as the domain's documentation promises.
pub fn held_guards_keep<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    kept_while_removed(make, |index, n, guard| {
        let removed = index.remove(lend::<I>(&nth::<I>(n)), guard)?;
        ensure!(removed == Some(n), "remove returns {removed:?}");
        Ok(())
    })
}

/// [`held_guards_keep`], while `take` removes an entry: the one of the given key, or another.
pub(crate) fn kept_while_removed<I: Subject + ?Sized>(
    make: Make<I>,
    take: fn(&I, u64, &Guard) -> Outcome,
) -> Outcome {
    /// The number of pins of a thread after which the collector works.
    const INTERVAL: usize = 128;
    /// The number of batches that the collector runs each time it works.
    const STEPS: usize = 8;
    let elsewhere = Domain::new();
    let keys = size::pick(20_000, 5000, 200) as u64;
    for foreign in [false, true] {
        let mut index = make(&Options::default())?;
        for n in (0..keys).map(|n| n.reverse_bits() >> 40) {
            index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
        }
        let before = settle(&*index);
        let held = index.domain().pin();
        let removed = together(1, |_, _| {
            for n in (0..keys).map(|n| n.reverse_bits() >> 40) {
                let guard = if foreign { elsewhere.pin() } else { index.domain().pin() };
                take(&index, n, &guard)?;
            }
            elsewhere.flush();
            index.domain().flush();
            Ok(())
        });
        removed?;
        let kept = live_slots(&*index);
        ensure!(
            kept >= before,
            "{} objects were freed under a guard that may have seen them",
            before - kept
        );
        drop(held);
        let batches = kept / UNSEALED + 1;
        for _ in 0..INTERVAL * (batches / STEPS + 4) {
            drop(index.domain().pin());
        }
        let (left, extra) = (live_slots(&*index), extra_slots(&*index, 2));
        let empty = emptied(make)?;
        ensure!(
            left <= empty + extra,
            "{left} objects are left long after the guard is dropped; an empty index has {empty}"
        );
        counts(&mut *index, 0)?;
    }
    Ok(())
}

/// An index is dropped while another thread is pinned in the domain of both. That thread holds
/// sealed and unsealed garbage of the index, and then uses a second index of the domain.
pub fn dropped_with_garbage_elsewhere<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let domain = Domain::new();
    let options = Options { domain: Some(domain.clone()), ..Options::default() };
    let mut second = make(&options)?;
    let first = make(&options)?;
    let keys = size::pick(2000, 1000, 80) as u64;
    let fill = |index: &I, from: u64| -> Outcome {
        for n in from..from + keys {
            index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
        }
        Ok(())
    };
    let (first, second_ref) = (Mutex::new(Some(first)), &second);
    let with_first = |work: &dyn Fn(&I) -> Outcome| {
        let held = first.lock();
        held.as_ref().map_or(Ok(()), |index| work(index))
    };
    together(2, |thread, crew| {
        with_first(&|index| {
            fill(index, keys * thread as u64)?;
            for n in 0..keys / 2 + 7 {
                let n = n + keys * thread as u64;
                index.pin().remove(lend::<I>(&nth::<I>(n)))?;
            }
            Ok(())
        })?;
        let guard = (thread == 1).then(|| domain.pin());
        crew.meet()?;
        if thread == 0 {
            drop(first.lock().take());
            domain.flush();
        }
        crew.meet()?;
        drop(guard);
        fill(second_ref, keys * thread as u64)?;
        for _ in 0..300 {
            drop(domain.pin());
        }
        domain.flush();
        Ok(())
    })?;
    domain.flush();
    counts(&mut *second, 2 * keys as usize)
}
