//! Regression tests that need a process of their own and run one at a time: other tests would map
//! the same addresses again.

use silvics::art::hot::{Policy, Sampled, Sampling};
use silvics::dynamic::AnyIndex;
use silvics::index::Cursor;
use silvics::{
    ArtTree, BronsonTree, Check, CitrusTree, Domain, Lookup, Map, NatarajanTree, Options,
    OrderedIndex, OrderedScan, Pooled,
};
use silvics_pool::Region;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_testkit::make::apart;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn regions(index: &(impl Lookup + ?Sized)) -> Vec<Region> {
    index.pool_stats().into_iter().flat_map(|pool| pool.regions).collect()
}

/// Whether the first page of any region is mapped.
fn mapped(regions: &[Region]) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let ranges: Vec<_> = maps
        .lines()
        .filter_map(|line| {
            let (from, rest) = line.split_once('-')?;
            let to = rest.split_once(' ')?.0;
            Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
        })
        .collect();
    regions.iter().any(|region| ranges.iter().any(|r| r.contains(&region.start.addr().get())))
}

/// Symptom: a dropped index kept all its memory if some of its objects had been retired. Cause: the
/// last sealed batch, which holds the pool, sat in a collector that no thread would pin again.
/// Prevented by: dropping an index flushes its domain.
#[test]
fn a_dropped_index_leaves_nothing_to_its_domain() {
    let _alone = alone();
    let domain = Domain::new();
    let options = Options { domain: Some(domain.clone()), ..Options::default() };
    let regions = {
        let index: BronsonTree = BronsonTree::with_options(&options).expect("memory");
        for key in 0..10_000 {
            index.insert(key, key, &domain.pin()).expect("memory");
        }
        for key in 0..100 {
            index.remove(key, &domain.pin()).expect("memory");
        }
        regions(&index)
    };
    assert!(!mapped(&regions), "still mapped");
}

/// Makes an index in which one pin has retired many batches.
fn much_retired() -> NatarajanTree {
    let index: NatarajanTree = NatarajanTree::with_options(&apart()).expect("memory");
    let view = index.pin();
    for key in 0..100_000u64 {
        view.insert(key.reverse_bits(), key).expect("memory");
    }
    for key in 0..100_000u64 {
        view.remove(key.reverse_bits()).expect("memory");
    }
    drop(view);
    index
}

/// Symptom: a dropped index kept its memory after removals under one long pin. Cause: a flush runs
/// a limited number of batches, and there were more. Prevented by: sealed batches are counted, and
/// a drop flushes until guards protect the rest.
#[test]
fn a_dropped_index_leaves_no_backlog() {
    let _alone = alone();
    let index = much_retired();
    let regions = regions(&index);
    drop(index);
    assert!(!mapped(&regions), "still mapped");
}

/// Symptom: a dropped map kept its memory while another map of its domain was pinned, and most maps
/// share a domain. Cause: its sealed batches held its pools. Prevented by: a batch does not hold a
/// pool that is released as a whole.
#[test]
fn a_dropped_index_keeps_no_memory_while_a_guard_of_its_domain_is_held() {
    let _alone = alone();
    let index = much_retired();
    let of_index = regions(&index);
    let domain = index.domain().clone();
    let guard = domain.pin();
    for key in 0..1000u64 {
        index.pin().insert(key, key).expect("memory");
        index.pin().remove(key).expect("memory");
    }
    drop(index);
    assert!(!mapped(&of_index), "a guard is held, but not of the dropped index");
    drop((guard, domain));

    // By default, maps and trees of the process share a domain.
    let pinned: Map<u64, u64> = Map::new();
    let dropped: ArtTree<u64> = ArtTree::with_options(&Options::default()).expect("memory");
    let view = pinned.pin();
    for key in 0..100_000u64 {
        dropped.pin().insert(key.reverse_bits(), key).expect("memory");
    }
    for key in 0..50_000u64 {
        dropped.pin().remove(key.reverse_bits()).expect("memory");
    }
    let of_dropped = regions(&dropped);
    drop(dropped);
    assert!(!of_dropped.is_empty() && !mapped(&of_dropped), "a pin of another map is held");
    drop(view);
}

/// Symptom: while the destructors of a dropped map's values ran, no map freed what it removed.
/// Cause: the drop had pinned the domain that maps share. Prevented by: destructors run unpinned.
#[test]
fn destructors_of_a_dropped_map_run_without_a_pin() {
    let _alone = alone();
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// A value whose destructor lets another map drop what it has removed.
    struct Churns(Arc<Map<u64, Counted>>);
    impl Drop for Churns {
        fn drop(&mut self) {
            self.0.insert(1, Counted);
            self.0.remove(1);
            (0..4).for_each(|_| self.0.flush());
        }
    }
    let other = Arc::new(Map::new());
    let map: Map<u64, Churns> = Map::new();
    (0..300).for_each(|key| drop(map.insert(key, Churns(Arc::clone(&other)))));
    drop(map);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 300);
}

/// A hot region is unmapped when its objects have moved elsewhere and no guard can see it, and when
/// the tree is dropped.
#[test]
fn hot_regions_go_with_their_objects_and_with_the_index() {
    let _alone = alone();
    let index: ArtTree<u64, Pooled, Sampled> = ArtTree::with_options(&apart()).expect("memory");
    index.sample(Some(Sampling { every: NonZeroU32::MIN, ..Sampling::default() }));
    (0..100_000).for_each(|key: u64| {
        index.pin().insert(key.reverse_bits(), key).expect("memory");
    });
    let policy = Policy { least_gain: 0.0, ..Policy::default() };
    let reorganize = |from: u64| {
        let before = regions(&index);
        for key in from..from + 100 {
            assert_eq!(index.pin().get(key.reverse_bits()), Some(key));
        }
        assert!(index.reorganize(policy).expect("memory").bytes > 0);
        let fresh = regions(&index).into_iter().filter(|region| !before.contains(region));
        fresh.collect::<Vec<_>>()
    };
    let first = reorganize(0);
    assert!(first.len() == 1 && mapped(&first));
    let second = reorganize(50_000);
    for key in 200_000..201_000 {
        index.pin().insert(key, key).expect("memory");
        index.pin().remove(key).expect("memory");
    }
    index.domain().flush();
    assert!(!mapped(&first), "what was in it has been moved");
    assert!(mapped(&second));
    drop(index);
    assert!(!mapped(&second));
}

/// More entries than an index has before it has regions.
const KEYS: u64 = 8000;

/// Makes an index for each set of capabilities, with [`KEYS`] entries.
fn any_indexes() -> [AnyIndex<u64>; 3] {
    let options = Options::default();
    let indexes = [
        AnyIndex::new(CitrusTree::<Pooled>::with_options(&options).expect("memory")),
        AnyIndex::with_scans(NatarajanTree::<Pooled>::with_options(&options).expect("memory")),
        AnyIndex::with_ends(ArtTree::<u64>::with_options(&options).expect("memory")),
    ];
    for index in &indexes {
        let guard = index.domain().pin();
        for key in 0..KEYS {
            assert_eq!(index.insert(key, key + 1, &guard), Ok(None));
        }
    }
    indexes
}

/// The memory of an index of any structure goes with its last handle: the index itself, a clone or
/// a cursor.
#[test]
fn an_index_of_any_structure_lives_as_long_as_its_last_handle() {
    let _alone = alone();
    for index in any_indexes() {
        let regions = regions(&*index);
        let copy = index.clone();
        let cursor = index.cursor();
        drop(index);
        assert!(mapped(&regions), "{copy:?} exists");
        assert_eq!(copy.get(7, &copy.domain().pin()), Some(8));
        drop(copy);
        if let Some(mut cursor) = cursor {
            assert!(mapped(&regions), "{cursor:?} exists");
            assert!(cursor.seek(7));
            assert_eq!((cursor.key(), cursor.value()), (Some(7), Some(8)));
        }
        assert!(!mapped(&regions), "still mapped");
    }
}

/// Exclusive access to an index of any structure needs its only handle.
#[test]
fn exclusive_access_excludes_clones_and_cursors() {
    let _alone = alone();
    for mut index in any_indexes() {
        let check = |index: &mut AnyIndex<u64>| index.exclusive().map(Check::check);
        assert_eq!(check(&mut index), Some(Ok(KEYS as usize)));
        let mut copy = index.clone();
        assert_eq!((check(&mut index), check(&mut copy)), (None, None));
        drop(copy);
        assert_eq!(check(&mut index), Some(Ok(KEYS as usize)));
        if let Some(cursor) = index.cursor() {
            assert_eq!(check(&mut index), None, "{cursor:?} exists");
            drop(cursor);
            assert_eq!(check(&mut index), Some(Ok(KEYS as usize)));
        }
    }
}

/// An index of any structure has the scans and the ends that it was wrapped with, and no others.
#[test]
fn an_index_of_any_structure_has_the_capabilities_of_its_structure() {
    let _alone = alone();
    let [points, scans, ends] = any_indexes();
    assert!(points.scans().is_none() && points.cursor().is_none() && points.ends().is_none());
    assert!(scans.ends().is_none());
    for index in [&scans, &ends] {
        let guard = index.domain().pin();
        let range = index.scans().expect("it scans").range(KEYS - 2.., &guard);
        assert!(range.eq([(KEYS - 2, KEYS - 1), (KEYS - 1, KEYS)]));
        assert!(index.cursor().expect("it scans").next());
    }
    let guard = ends.domain().pin();
    let both = ends.ends().expect("it has ends");
    assert_eq!((both.first(&guard), both.last(&guard)), (Some((0, 1)), Some((KEYS - 1, KEYS))));
    // The wrapper decides: a structure may be wrapped without its scans.
    let tree = NatarajanTree::<Pooled>::with_options(&apart()).expect("memory");
    let index = AnyIndex::new(tree);
    assert!(index.scans().is_none() && index.cursor().is_none());
}
