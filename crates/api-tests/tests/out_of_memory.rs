//! Reorganizations and loads whose own lists cannot be allocated return an error and change
//! nothing. The tests have a process of their own, whose global allocator fails on request.

use silvics::art::hot::{Policy, ReorganizeError, Sampled, Sampling};
use silvics::{AllocError, ArtTree, BulkLoadError, Check, Lookup, Map, Pooled};
use silvics_testkit::make::apart;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZeroU32;
use std::panic::catch_unwind;

/// The system's allocator, which fails when [`failing`] asks for it.
struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

std::thread_local! {
    /// The number of the allocation that fails, among those of at least the given bytes. The next
    /// one is 1, and 0 is none.
    static FAILS: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

impl Failing {
    fn refuses(bytes: usize) -> bool {
        let (least, nth) = FAILS.get();
        if bytes >= least && nth > 0 {
            FAILS.set((least, nth - 1));
        }
        bytes >= least && nth == 1
    }
}

// SAFETY: every call goes to the system's allocator, or fails.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is that of the system's allocator.
        unsafe { System.dealloc(object, layout) };
    }
}

/// Calls `work` while the n-th allocation of at least `bytes` bytes fails. Returns whether `work`
/// made that many.
fn failing<T>(least: usize, nth: u64, work: impl FnOnce() -> T) -> (T, bool) {
    FAILS.set((least, nth));
    let done = work();
    let (_, left) = FAILS.replace((0, 0));
    (done, left == 0)
}

fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Each allocation in turn fails, from a size that the collector's own allocations, which must not
/// fail, do not reach.
fn each_fails(least: usize, policy: Policy) -> u64 {
    const KEYS: u64 = 20_000;
    for nth in 1.. {
        let mut tree: ArtTree<u64, Pooled, Sampled> = ArtTree::with_options(&apart()).unwrap();
        (0..KEYS).for_each(|n| assert_eq!(tree.pin().insert(scattered(n), n), Ok(None)));
        tree.sample(Some(Sampling { every: NonZeroU32::MIN, ..Sampling::default() }));
        let look = |tree: &ArtTree<u64, Pooled, Sampled>, from| {
            (from..from + 300).for_each(|n| assert_eq!(tree.pin().get(scattered(n)), Some(n)));
        };
        look(&tree, 0);
        let warm = tree.reorganize(Policy { share: 1.0, least_gain: 0.0, ..policy }).unwrap();
        assert!(warm.leaves > 0);
        look(&tree, 5000);
        let (outcome, met) = failing(least, nth, || tree.reorganize(policy));
        if met {
            let refused = matches!(outcome, Err(ReorganizeError::Alloc(AllocError::System { .. })));
            assert!(refused, "allocation {nth}: {outcome:?}");
        }
        tree.sample(None);
        assert_eq!(tree.check(), Ok(KEYS as usize));
        tree.settle();
        let live: Vec<_> = tree.pool_stats().iter().map(|of| (of.kind, of.live_slots)).collect();
        assert_eq!(tree.reachable().unwrap(), live);
        (0..KEYS).for_each(|n| assert_eq!(tree.pin().get(scattered(n)), Some(n)));
        let again = tree.reorganize(policy);
        if !met {
            assert!(outcome.is_ok());
            assert_eq!(again, Err(ReorganizeError::NoSamples));
            return nth - 1;
        }
        assert_eq!(again.unwrap().samples, 300, "they are there for the next attempt");
    }
    unreachable!()
}

/// Each allocation of at least 16 KiB in turn fails: the map itself makes smaller ones.
#[test]
fn a_map_of_sorted_entries_may_have_no_memory() {
    let entries = || (0..20_000).map(|n| (format!("{n:08}"), n));
    for nth in 1.. {
        let load = || Map::<String, u64>::from_sorted(entries());
        let (outcome, met) = failing(16 << 10, nth, load);
        if !met {
            assert_eq!(outcome.unwrap().len(), 20_000);
            assert!(nth > 5, "the lists grow some times, and {nth} allocations failed");
            return;
        }
        let error = outcome.map(drop).unwrap_err();
        let refused = matches!(error, BulkLoadError::Alloc(AllocError::System { .. }));
        assert!(refused, "allocation {nth}: {error:?}");
    }
}

/// A map is collected from entries in any order, and each allocation of at least 16 KiB in turn
/// fails. None ends the program.
#[test]
fn a_map_of_unsorted_entries_may_have_no_memory() {
    let entries = || (0..20_000_u64).rev().chain(0..9_000).map(|n| (format!("{n:08}"), n));
    for nth in 1.. {
        let collect = || catch_unwind(|| entries().collect::<Map<String, u64>>());
        let (outcome, met) = failing(16 << 10, nth, collect);
        if !met {
            let map = outcome.expect("no allocation fails");
            assert_eq!(map.len(), 20_000);
            assert!(map.pin().iter().all(|(key, n)| key == format!("{:08}", *n)));
            assert!(nth > 8, "the lists grow some times, and {nth} allocations failed");
            return;
        }
        let panic = outcome.map(drop).unwrap_err();
        let message = panic.downcast_ref::<String>().expect("the message of an `AllocError`");
        assert!(message.contains("the system refused"), "{nth}: {message}");
    }
}

#[test]
fn every_list_may_have_no_memory() {
    let nothing_moves = Policy { least_gain: f64::INFINITY, ..Policy::default() };
    let lists = each_fails(1, nothing_moves);
    assert!(lists > 15, "{lists}");
    let everything = Policy { share: 1.0, least_gain: 0.0, ..Policy::default() };
    let large = each_fails(4096, everything);
    assert!(large > 10, "{large}");
}
