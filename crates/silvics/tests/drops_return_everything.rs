//! Dropping an index returns everything: its regions are unmapped, and the heap is where it was.
//! One test at a time in a process of its own, so that nobody else maps or allocates meanwhile.

use silvics::{BronsonTree, NatarajanTree, Pooled, Shared, SkipList};
use silvics_testkit::counting::{Counting, live_bytes};
use silvics_testkit::memory::{
    dropping_and_flushing_returns_everything, dropping_returns_everything,
};
use silvics_testkit::{Subject, holds};
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn returned<I: Subject>() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let flushed = dropping_and_flushing_returns_everything::<I>(live_bytes);
    holds(flushed.map_err(|f| f.at("domain flushed after the drop")));
    let own = dropping_returns_everything::<I>(live_bytes);
    holds(own.map_err(|f| f.at("domain of its own")));
}

#[test]
fn occ_avl_pooled() {
    returned::<BronsonTree<Pooled>>();
}

#[test]
fn occ_avl_shared() {
    returned::<BronsonTree<Shared>>();
}

#[test]
fn edge_ext_lf_pooled() {
    returned::<NatarajanTree<Pooled>>();
}

#[test]
fn edge_ext_lf_shared() {
    returned::<NatarajanTree<Shared>>();
}

#[test]
fn skiplist_pooled() {
    returned::<SkipList<u64, Pooled>>();
    returned::<SkipList<[u8], Pooled>>();
}

#[test]
fn skiplist_shared() {
    returned::<SkipList<u64, Shared>>();
    returned::<SkipList<[u8], Shared>>();
}
