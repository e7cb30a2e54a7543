//! Dropping an index returns everything: its regions are unmapped, and the heap is at its earlier
//! level. There is one test in a process of its own, so that no other thread maps or allocates
//! meanwhile.

use silvics::art::hot::{Policy, Sampled, Sampling};
use silvics::structures::At;
use silvics::{ArtTree, Batches, Check, Create, Lookup, Options, Placement, Pooled, Shared};
use silvics_testkit::counting::{Counting, live_bytes};
use silvics_testkit::dropping::{
    dropping_and_flushing_returns_everything, dropping_returns_everything,
};
use silvics_testkit::make;
use silvics_testkit::{TestKey, holds};
use std::num::NonZeroU32;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Fails unless dropping an index of type `I` returns everything.
fn returns_everything<I>(name: &str)
where
    I: Create + Batches + Check + Lookup<Key: TestKey> + 'static,
{
    let flushed = dropping_and_flushing_returns_everything(make::points::<I>, live_bytes);
    holds(flushed.map_err(|f| f.at(format_args!("{name}, domain flushed after the drop"))));
    let own = dropping_returns_everything(make::points::<I>, live_bytes);
    holds(own.map_err(|f| f.at(format_args!("{name}, domain of its own"))));
}

macro_rules! returned {
    ($structure:ident $build:ident $keys:ident full $capability:ident $faults:ident $index:ty) => {
        let name =
            concat!(stringify!($structure), ":", stringify!($build), " with ", stringify!($keys));
        returns_everything::<At<$index, Pooled>>(&format!("{name}, pooled"));
        returns_everything::<At<$index, Shared>>(&format!("{name}, shared"));
    };
    ($structure:ident $build:ident $keys:ident locked $($rest:tt)*) => {
        returned! { $structure $build $keys full $($rest)* }
    };
    ($structure:ident $build:ident $keys:ident $runs:ident $($rest:tt)*) => {};
}

/// Makes a radix tree with notes of lookups and a hot region, empties it and drops it.
fn reorganized<P: Placement>() {
    let mut tree = ArtTree::<u64, P, Sampled>::with_options(&Options::default()).expect("memory");
    let empty = tree.bytes();
    tree.sample(Some(Sampling { every: NonZeroU32::MIN, ..Sampling::default() }));
    for key in 0..2000 {
        tree.pin().insert(key << 40, key).expect("memory");
        assert_eq!(tree.pin().get((key % 50) << 40), Some(key % 50));
    }
    let noted = tree.bytes();
    assert!(noted >= empty + Sampling::default().bytes, "notes are in the budget");
    let policy = Policy { share: 1.0, least_gain: 0.0, ..Policy::default() };
    assert!(tree.reorganize(policy).expect("memory").bytes > 0);
    assert!(tree.bytes() > noted, "and so is the region");
    for key in 0..2000 {
        assert_eq!(tree.pin().remove(key << 40), Ok(Some(key)));
    }
    tree.settle();
    let regions = tree.pool_stats().into_iter().map(|pool| pool.regions.len());
    assert!(P::NAME == Pooled::NAME || regions.sum::<usize>() == 0, "nothing is in it");
}

/// Compares the lowest heap level of several rounds: the collector frees some 2 KiB of a thread
/// late.
fn reorganized_returns_everything<P: Placement>() {
    let lowest = || {
        let round = |_| {
            reorganized::<P>();
            live_bytes()
        };
        (0..6).map(round).min().unwrap_or(0)
    };
    lowest(); // fills what threads and collectors keep
    let (before, after) = (lowest(), lowest());
    assert!(after <= before, "{}: {before} to {after}", P::NAME);
}

#[test]
fn dropping_returns_regions_and_heap() {
    reorganized_returns_everything::<Pooled>();
    reorganized_returns_everything::<Shared>();
    silvics::for_each_index! { returned }
}
