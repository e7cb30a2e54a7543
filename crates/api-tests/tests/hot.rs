//! Reorganization of the radix tree: contents and invariants beside readers and writers, failed
//! allocations, and the number of pages read.

use silvics::art::ArtKey;
use silvics::art::hot::{Coverage, Policy, ReorganizeError, Report, Sampled, Sampling};
use silvics::{
    AllocError, ArtTree, Check, IndexKey, Lookup, Options, Pages, Placement, Pooled, Recorded,
    Shared,
};
use silvics_api_tests::mixed;
use silvics_layout::record;
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use silvics_testkit::faulty::{Faulty, Plan, under};
use silvics_testkit::make::apart;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

const SMALL: bool = cfg!(miri);

fn tree<K: ArtKey + ?Sized, P: Placement>() -> ArtTree<K, P, Sampled> {
    let options = Options { pages: Pages::Small, ..apart() };
    ArtTree::with_options(&options).unwrap()
}

/// Sampling of one lookup in `every`.
fn sampling(every: u32, bytes: usize) -> Sampling {
    Sampling { every: NonZeroU32::new(every).unwrap(), bytes }
}

/// A policy that moves every object that was seen.
fn everything() -> Policy {
    Policy { share: 1.0, least_gain: 0.0, ..Policy::default() }
}

type Oracle<K> = BTreeMap<<K as IndexKey>::Owned, u64>;

/// Checks that the tree has the oracle's entries, in both directions, and no other live object.
fn is<K: ArtKey + ?Sized, P: Placement>(tree: &mut ArtTree<K, P, Sampled>, oracle: &Oracle<K>) {
    assert_eq!(tree.check(), Ok(oracle.len()));
    tree.settle();
    let live: Vec<_> = tree.pool_stats().iter().map(|of| (of.kind, of.live_slots)).collect();
    assert_eq!(tree.reachable().unwrap(), live);
    let pinned = tree.pin();
    for (key, value) in oracle {
        assert_eq!(pinned.get(K::borrow(key)), Some(*value), "{key:?}");
    }
    let owned = |(key, value): (K::Ref<'_>, u64)| (K::to_owned(key), value);
    let all = || oracle.iter().map(|(key, value)| (key.clone(), *value));
    assert!(pinned.range(..).map(owned).eq(all()));
    assert!(pinned.range_rev(..).map(owned).eq(all().rev()));
}

/// Reorganizes many times for different hot keys, with changes in between, and then removes all
/// keys.
fn goes_on<K: ArtKey + ?Sized, P: Placement>(key: impl Fn(u64) -> K::Owned) {
    let keys = if SMALL { 200 } else { 1000 };
    let mut tree = tree::<K, P>();
    let mut oracle = Oracle::<K>::new();
    for n in 0..keys {
        tree.pin().insert(K::borrow(&key(n)), n).unwrap();
        oracle.insert(key(n), n);
    }
    for round in 0..6 {
        tree.sample(Some(sampling(1, 4 << 20)));
        for n in 0..keys / 2 {
            let hot = key((n % (keys / 10) + round * keys / 7) % keys);
            assert_eq!(tree.pin().get(K::borrow(&hot)), oracle.get(&hot).copied());
        }
        tree.sample(None);
        let report = tree.reorganize(everything()).unwrap();
        assert!(report.leaves + report.nodes > 0 && report.missed == 0, "{report:?}");
        assert!(report.after.small[2] <= report.before.small[2], "{report:?}");
        assert_eq!(report.samples, keys / 2);
        is(&mut tree, &oracle);
        let regions: usize = tree.pool_stats().last().unwrap().regions.len();
        assert!(regions <= if P::NAME == Pooled::NAME { 4 } else { 1 }, "{regions} of leaves");
        for n in (0..keys).skip(round as usize).step_by(5) {
            let (key, fresh) = (key(n), key(n + keys));
            if n % 3 == 0 {
                assert_eq!(tree.pin().remove(K::borrow(&key)), Ok(oracle.remove(&key)));
            } else {
                let (key, value) = if n % 3 == 1 { (key, round) } else { (fresh, n) };
                let old = tree.pin().insert(K::borrow(&key), value);
                assert_eq!(old, Ok(oracle.insert(key, value)));
            }
        }
        is(&mut tree, &oracle);
    }
    for key in oracle.keys() {
        assert!(tree.pin().remove(K::borrow(key)).unwrap().is_some());
    }
    is(&mut tree, &Oracle::<K>::new());
}

#[test]
fn contents_stay_what_they_are() {
    goes_on::<u64, Pooled>(mixed);
    goes_on::<u64, Pooled>(|n| n);
    goes_on::<u64, Shared>(|n| if n % 2 == 0 { n } else { mixed(n) >> (n % 60) });
    goes_on::<u128, Pooled>(|n| u128::from(mixed(n)) << (n % 64));
    let text = |n: u64| format!("/{:x}/{}{n}", mixed(n) % 7, "deep/".repeat(mixed(n) as usize % 9));
    goes_on::<[u8], Pooled>(|n| text(n).into_bytes().into());
    goes_on::<[u8], Shared>(|n| text(n).into_bytes().into());
    goes_on::<[u8], Faulty>(|n| {
        vec![b'm'; n as usize % 700].into_iter().chain(n.to_be_bytes()).collect()
    });
}

#[test]
fn what_cannot_be_done_is_said() {
    let mut tree = tree::<u64, Pooled>();
    assert_eq!(tree.reorganize(Policy::default()), Err(ReorganizeError::NoSamples));
    tree.sample(Some(sampling(1, 1 << 12)));
    assert_eq!(tree.reorganize(Policy::default()), Err(ReorganizeError::NoSamples));
    for share in [0.0, -1.0, 1.1, f64::NAN] {
        let refused = tree.reorganize(Policy { share, ..Policy::default() });
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("use more than 0 and at most 1"), "{said}");
    }
    // An empty tree has nothing to move.
    assert_eq!(tree.pin().get(1), None);
    let report = tree.reorganize(everything()).unwrap();
    assert_eq!((report.samples, report.accesses, report.nodes, report.leaves), (1, 0, 0, 0));
    assert_eq!(report.before, Coverage { small: [0; 3], huge: [0; 3] });
    is(&mut tree, &BTreeMap::new());
}

#[test]
fn what_is_together_stays_where_it_is() {
    let tree = tree::<u64, Pooled>();
    (0..50_000).for_each(|n| assert_eq!(tree.pin().insert(mixed(n), n), Ok(None)));
    tree.sample(Some(sampling(1, 1 << 16)));
    let look = || (0..5000).for_each(|n| assert_eq!(tree.pin().get(mixed(n % 50)), Some(n % 50)));
    look();
    let first = tree.reorganize(Policy::default()).unwrap();
    assert!(first.leaves > 0 && first.after.small[1] < first.before.small[1], "{first:?}");
    look();
    let second = tree.reorganize(Policy::default()).unwrap();
    assert_eq!((second.before, second.bytes), (first.after, 0), "nothing to be gained");
    look();
    let none = tree.reorganize(Policy { most_bytes: 0, ..everything() }).unwrap();
    assert_eq!(none.bytes, 0);
    let some = Policy { most_bytes: 3000, ..everything() };
    look();
    assert!((1..=3000).contains(&tree.reorganize(some).unwrap().bytes));
}

/// Readers never miss a key that is present throughout, while writers and a reorganizer change its
/// nodes.
#[expect(clippy::too_many_lines, reason = "three kinds of threads over one tree")]
fn with_readers_and_writers<K: ArtKey + ?Sized>(key: impl Fn(u64) -> K::Owned + Sync) {
    let keys = if SMALL { 60 } else { 1000 };
    let mut tree = tree::<K, Pooled>();
    let mut oracle = Oracle::<K>::new();
    for n in (0..keys).step_by(2) {
        tree.pin().insert(K::borrow(&key(n)), n).unwrap();
        oracle.insert(key(n), n);
    }
    tree.sample(Some(sampling(3, 1 << 14)));
    let (done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (tree, key, oracle, done, looks) = (&tree, &key, &oracle, &done, &looks);
        let reader = move |seed: u64| {
            let mut at = seed;
            while !done.load(Ordering::Relaxed) {
                at += 1;
                let n = mixed(at) % (keys / 2) * 2;
                let n = if at.is_multiple_of(4) { n } else { n / 16 * 2 };
                assert_eq!(tree.pin().get(K::borrow(&key(n))), Some(n));
                if at.is_multiple_of(512) {
                    let pinned = tree.pin();
                    let found = pinned.range(..).map(|(key, value)| (K::to_owned(key), value));
                    let stable = found.filter(|(_, value)| *value < keys);
                    assert!(stable.eq(oracle.iter().map(|(key, value)| (key.clone(), *value))));
                }
                looks.fetch_add(1, Ordering::Relaxed);
            }
        };
        let writer = move || {
            let mut at = 7;
            while !done.load(Ordering::Relaxed) {
                at += 1;
                let n = mixed(at) % (keys / 2) * 2 + 1;
                let pinned = tree.pin();
                if at % 3 == 0 {
                    pinned.remove(K::borrow(&key(n))).unwrap();
                } else {
                    pinned.insert(K::borrow(&key(n)), keys + at).unwrap();
                    let found = pinned.get(K::borrow(&key(n)));
                    assert_eq!(found, Some(keys + at), "its own key");
                }
            }
        };
        let threads = [
            scope.spawn(move || reader(1)),
            scope.spawn(move || reader(1 << 20)),
            scope.spawn(writer),
        ];
        let rounds = if SMALL { 3 } else { 30 };
        let mut moved = 0;
        for _ in 0..rounds {
            let before = looks.load(Ordering::Relaxed);
            while looks.load(Ordering::Relaxed) < before + keys / 3
                && !threads.iter().any(std::thread::ScopedJoinHandle::is_finished)
            {
                std::thread::yield_now();
            }
            match tree.reorganize(everything()) {
                Ok(report) => moved += report.nodes + report.leaves,
                Err(ReorganizeError::NoSamples | ReorganizeError::Regions) => {}
                Err(other) => panic!("{other}"),
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(moved > 0);
        // The scope does not wait until the threads have given their garbage away.
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let written: Vec<_> = {
        let pinned = tree.pin();
        let all = pinned.range(..).map(|(key, value)| (K::to_owned(key), value));
        all.filter(|(_, value)| *value >= keys).collect()
    };
    oracle.extend(written);
    is(&mut tree, &oracle);
}

#[test]
fn readers_and_writers_go_on() {
    with_readers_and_writers::<u64>(mixed);
    with_readers_and_writers::<u64>(|n| n);
    with_readers_and_writers::<[u8]>(|n| format!("{:x}/{n}", mixed(n) % 5).into_bytes().into());
}

/// Values that are written while their leaf or node moves are not lost.
#[test]
fn no_write_is_lost() {
    let keys = if SMALL { 40 } else { 400 };
    for spread in [false, true] {
        let key = |n: u64| if spread { mixed(n) } else { n };
        let mut tree = tree::<u64, Pooled>();
        (0..keys).for_each(|n| assert_eq!(tree.pin().insert(key(n), 0), Ok(None)));
        tree.sample(Some(sampling(1, 1 << 14)));
        let done = AtomicBool::new(false);
        let last = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut round = 0;
                while !done.load(Ordering::Relaxed) {
                    for n in 0..keys {
                        assert_eq!(tree.pin().insert(key(n), round + 1), Ok(Some(round)));
                    }
                    round += 1;
                }
                round
            });
            for _ in 0..if SMALL { 3 } else { 100 } {
                (0..keys).for_each(|n| assert!(tree.pin().get(key(n)).is_some()));
                match tree.reorganize(everything()) {
                    Ok(_) | Err(ReorganizeError::Regions) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            done.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        is(&mut tree, &(0..keys).map(|n| (key(n), last)).collect());
    }
}

/// Each allocation of a reorganization fails, or panics: the contents stay, nothing leaks, and the
/// next reorganization works.
#[test]
fn memory_may_fail_at_any_allocation() {
    let keys = 300;
    for nth in 1.. {
        let mut met = 0;
        for plan in [Plan::FailOnce(nth), Plan::FailFrom(nth), Plan::Panic(nth)] {
            let mut tree = tree::<u64, Faulty>();
            (0..keys).for_each(|n| assert_eq!(tree.pin().insert(mixed(n), n), Ok(None)));
            let oracle = (0..keys).map(|n| (mixed(n), n)).collect();
            tree.sample(Some(sampling(1, 1 << 14)));
            let look = |tree: &ArtTree<u64, Faulty, Sampled>, from| {
                (from..from + 30).for_each(|n| assert_eq!(tree.pin().get(mixed(n)), Some(n)));
            };
            look(&tree, 0);
            tree.reorganize(everything()).unwrap();
            look(&tree, 100);
            // Objects of the old region go back to the heap.
            let ran = under(plan, || tree.reorganize(everything()));
            met = ran.met;
            match ran.outcome {
                Some(Err(ReorganizeError::Alloc(AllocError::System { .. }))) | None => {
                    assert!(ran.faults > 0);
                }
                Some(Ok(Report { returned, .. })) => assert!(returned > 20 || ran.faults > 0),
                other => panic!("{other:?}"),
            }
            is(&mut tree, &oracle);
            look(&tree, 200);
            tree.reorganize(everything()).unwrap();
            is(&mut tree, &oracle);
        }
        if nth > met {
            assert!(nth > 20, "only {met} allocations");
            break;
        }
    }
}

/// The objects that a reorganization had moved out of a region waited in the thread's batch, which
/// nothing filled while the thread did nothing else. After eight reorganizations of few objects
/// each, no region was left for good. Now each reorganization ends by handing its batch over.
#[test]
fn regions_of_few_objects_are_not_used_up() {
    let mut tree = tree::<u64, Pooled>();
    (0..1000).for_each(|n| assert_eq!(tree.pin().insert(mixed(n), n), Ok(None)));
    tree.sample(Some(sampling(1, 1 << 12)));
    for round in 0..30 {
        assert_eq!(tree.pin().get(mixed(round)), Some(round));
        let report = tree.reorganize(everything()).unwrap();
        assert!(report.leaves + report.nodes > 0, "{report:?}");
    }
    is(&mut tree, &(0..1000).map(|n| (mixed(n), n)).collect());
}

/// A guard keeps all regions that were made since it was pinned. When it is dropped they are
/// unmapped, and the samples are still available.
#[test]
fn a_held_guard_keeps_regions_and_no_longer() {
    let mut tree = tree::<u64, Pooled>();
    (0..1000).for_each(|n| assert_eq!(tree.pin().insert(mixed(n), n), Ok(None)));
    let guard = tree.domain().pin();
    let mut refused = 0;
    for round in 0..12 {
        std::thread::scope(|scope| {
            let again = || {
                tree.sample(Some(sampling(1, 1 << 12)));
                (0..40).for_each(|n| assert!(tree.pin().get(mixed(40 * round + n)).is_some()));
                tree.sample(None);
                tree.reorganize(everything())
            };
            match scope.spawn(again).join().unwrap() {
                Ok(_) => assert_eq!(refused, 0),
                Err(error) => {
                    assert_eq!(error, ReorganizeError::Regions);
                    refused += 1;
                }
            }
        });
    }
    assert!(refused >= 3, "{refused}");
    drop(guard);
    let report = tree.reorganize(everything()).unwrap();
    assert!(report.samples >= 40 && report.leaves > 0, "{report:?}");
    is(&mut tree, &(0..1000).map(|n| (mixed(n), n)).collect());
}

/// If a memory limit leaves no room for two regions, the older one is emptied first.
#[test]
fn a_limit_with_room_for_one_region_is_enough() {
    /// The bytes before and after the first of two reorganizations, each for other keys.
    fn twice(memory_limit: Option<usize>) -> (usize, usize) {
        let options = Options { memory_limit, pages: Pages::Small, ..apart() };
        let mut tree: ArtTree<u64, Pooled, Sampled> = ArtTree::with_options(&options).unwrap();
        let keys = if SMALL { 300 } else { 30_000 };
        let mut oracle = BTreeMap::new();
        for n in 0..keys {
            tree.pin().insert(mixed(n), n).unwrap();
            oracle.insert(mixed(n), n);
        }
        tree.sample(Some(sampling(1, 1 << 17)));
        let mut held = Vec::new();
        for round in 0..2 {
            for n in 0..keys / 10 {
                tree.pin().get(mixed(n + round * keys / 2));
            }
            held.push(tree.bytes());
            let report = tree.reorganize(everything()).unwrap();
            assert!(report.bytes > 0 && report.missed == 0, "{report:?}");
            is(&mut tree, &oracle);
            held.push(tree.bytes());
        }
        (held[0], held[1])
    }
    let (before, after) = twice(None);
    assert!(after > before);
    // This is too little for another region. Moving a small one takes more than a quarter beside
    // it.
    let quarters = if SMALL { 3 } else { 1 };
    twice(Some(after + quarters * (after - before) / 4));
}

#[test]
fn a_limit_without_room_for_a_region_is_an_error() {
    let limit = if SMALL { 600 << 10 } else { 3 << 20 };
    let options = Options { memory_limit: Some(limit), pages: Pages::Small, ..apart() };
    let mut tree: ArtTree<u64, Pooled, Sampled> = ArtTree::with_options(&options).unwrap();
    tree.sample(Some(sampling(1, 1 << 16)));
    let mut oracle = BTreeMap::new();
    for n in 0.. {
        if tree.pin().insert(mixed(n), n).is_err() {
            break;
        }
        oracle.insert(mixed(n), n);
        tree.pin().get(mixed(n));
    }
    let held = tree.bytes();
    let refused = tree.reorganize(everything());
    assert!(
        matches!(refused, Err(ReorganizeError::Alloc(AllocError::Limit { .. }))),
        "{refused:?}"
    );
    assert_eq!(tree.bytes(), held);
    is(&mut tree, &oracle);
}

#[test]
fn a_thread_reorganizes_from_time_to_time() {
    let tree = Arc::new(tree::<u64, Pooled>());
    (0..2000).for_each(|n| assert_eq!(tree.pin().insert(mixed(n), n), Ok(None)));
    let reorganizer = tree.reorganize_every(Duration::from_millis(1), everything()).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(reorganizer.last(), None, "no samples yet");
    tree.sample(Some(sampling(1, 1 << 14)));
    let mut at = 0;
    while reorganizer.last().is_none() {
        at = (at + 1) % 2000;
        assert_eq!(tree.pin().get(mixed(at)), Some(at));
    }
    assert!(reorganizer.last().unwrap().is_ok());
    let idle = tree.reorganize_every(Duration::from_secs(3600), everything()).unwrap();
    drop((reorganizer, idle)); // at once
    let mut tree = Arc::into_inner(tree).expect("the threads have ended");
    is(&mut tree, &(0..2000).map(|n| (mixed(n), n)).collect());
}

/// A sequence of ranks r, with probabilities proportional to r^-s.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(len: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weight = |rank: u64| (rank as f64).powf(-exponent);
        Self(
            (1..=len)
                .map(|rank| {
                    sum += weight(rank);
                    sum
                })
                .collect(),
        )
    }

    fn rank(&self, random: u64) -> u64 {
        let at = (random >> 11) as f64 / (1_u64 << 53) as f64 * self.0[self.0.len() - 1];
        self.0.partition_point(|&sum| sum <= at) as u64
    }
}

/// The number of pages of `bytes` bytes that cover 90 % of the recorded reads of these lookups.
fn pages_read(tree: &ArtTree<u64, Recorded<Pooled>, Sampled>, keys: &[u64], bytes: usize) -> usize {
    let mut pages = HashMap::<usize, u64>::new();
    let mut total = 0;
    let guard = tree.domain().pin();
    for key in keys {
        let mut reads = Vec::new();
        record::of(&mut reads, || tree.get(*key, &guard));
        for read in reads {
            *pages.entry(read.address / bytes).or_default() += 1;
            total += 1;
        }
    }
    let mut counts: Vec<u64> = pages.into_values().collect();
    counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    let mut covered = 0;
    let enough = |count: &u64| {
        covered += count;
        10 * covered >= 9 * total
    };
    1 + counts.iter().position(enough).unwrap()
}

/// Prints the small pages that cover 90 % of the reads of later lookups, before and after, by
/// exponent.
fn pages_fall(keys: u64, lookups: u64, exponents: &[f64]) {
    for &exponent in exponents {
        let tree = tree::<u64, Recorded<Pooled>>();
        let sparse = |n: u64| mixed(n) >> 1;
        (0..keys).for_each(|n| assert_eq!(tree.pin().insert(sparse(n), n), Ok(None)));
        let zipf = Zipf::new(keys, exponent);
        // Ranks are independent of the order of insertion.
        let key = |n: u64| sparse(mixed(zipf.rank(mixed(n))) % keys);
        tree.sample(Some(sampling(16, 4 << 20)));
        (0..lookups).for_each(|n| assert!(tree.pin().get(key(n)).is_some()));
        tree.sample(None);
        let later: Vec<u64> = (1 << 40..(1 << 40) + lookups / 8).map(key).collect();
        let before = [4096, 2 << 20].map(|bytes| pages_read(&tree, &later, bytes));
        let report = tree.reorganize(Policy::default()).unwrap();
        let after = [4096, 2 << 20].map(|bytes| pages_read(&tree, &later, bytes));
        println!("zipf {exponent}: {before:?} to {after:?} pages; {report:?}");
        assert!(before[0] >= 4 * after[0], "zipf {exponent}: {before:?} to {after:?} pages");
        assert!(before[1] >= after[1], "zipf {exponent}: {before:?} to {after:?} pages");
        assert!(report.before.small[1] >= 4 * report.after.small[1], "{report:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn hot_pages_become_few() {
    pages_fall(200_000, 1_000_000, &[1.2]);
    pages_fall(200_000, 300_000, &[1.8]);
}

#[test]
#[ignore = "a million keys: for release builds"]
fn hot_pages_become_few_of_many() {
    pages_fall(1_000_000, 16_000_000, &[1.2, 1.5, 1.8]);
}
