//! Lookups and scans allocate nothing: counted by the global allocator of this process.

use silvics::bst::build::Baseline;
use silvics::bst::natarajan::build::Fixed2;
use silvics::{
    ArtTree, BronsonTree, Check, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree,
    OrderedIndex, Pooled, RamachandranTree, Shared, SkipList, TicketTree,
};
use silvics_testkit::counting::Counting;
use silvics_testkit::erased::{Erased, points, run};
use silvics_testkit::{TestKey, holds, lookups};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Compiled once for all: what erasing a type adds would be found, too.
fn allocate_nothing<I: OrderedIndex<Key: TestKey> + Check + 'static>() {
    holds(run(points::<I>(), lookups::allocate_nothing::<Erased<I::Key>>));
}

#[test]
fn occ_avl() {
    allocate_nothing::<BronsonTree<Pooled>>();
    allocate_nothing::<BronsonTree<Shared>>();
}

#[test]
fn edge_ext_lf() {
    allocate_nothing::<NatarajanTree<Pooled>>();
    allocate_nothing::<NatarajanTree<Shared>>();
    allocate_nothing::<NatarajanTree<Pooled, Fixed2>>();
}

#[test]
fn ticket() {
    allocate_nothing::<TicketTree<Pooled>>();
    allocate_nothing::<TicketTree<Shared>>();
}

#[test]
fn log_int() {
    allocate_nothing::<DrachslerTree<Pooled>>();
    allocate_nothing::<DrachslerTree<Shared>>();
    holds(lookups::scans_allocate_nothing::<DrachslerTree<Pooled>>());
    holds(lookups::scans_allocate_nothing::<DrachslerTree<Shared>>());
}

/// The lines in which its lookups announce themselves were made with the tree.
#[test]
fn citrus() {
    allocate_nothing::<CitrusTree<Pooled>>();
    allocate_nothing::<CitrusTree<Shared>>();
}

#[test]
fn scans_of_external_trees() {
    holds(lookups::scans_allocate_nothing::<TicketTree<Pooled>>());
    holds(lookups::scans_allocate_nothing::<NatarajanTree<Pooled>>());
    holds(lookups::scans_allocate_nothing::<NatarajanTree<Shared>>());
    holds(lookups::scans_allocate_nothing::<EllenTree<Pooled>>());
}

#[test]
fn ext_lf() {
    allocate_nothing::<EllenTree<Pooled>>();
    allocate_nothing::<EllenTree<Shared>>();
}

#[test]
fn int_lf() {
    allocate_nothing::<HowleyTree<Pooled>>();
    allocate_nothing::<HowleyTree<Shared>>();
}

#[test]
fn edge_int_lf() {
    allocate_nothing::<RamachandranTree<Pooled>>();
    allocate_nothing::<RamachandranTree<Pooled, Baseline>>();
}

#[test]
fn art() {
    allocate_nothing::<ArtTree<u64, Pooled>>();
    allocate_nothing::<ArtTree<u64, Shared>>();
    allocate_nothing::<ArtTree<[u8], Pooled>>();
    holds(lookups::scans_allocate_nothing::<ArtTree<u64, Pooled>>());
    holds(lookups::scans_allocate_nothing::<ArtTree<[u8], Pooled>>());
}

#[test]
fn skiplist() {
    allocate_nothing::<SkipList<u64, Pooled>>();
    allocate_nothing::<SkipList<[u8], Pooled>>();
    allocate_nothing::<SkipList<u64, Shared>>();
    allocate_nothing::<SkipList<[u8], Shared>>();
}

#[test]
fn skiplist_scans() {
    holds(lookups::scans_allocate_nothing::<SkipList<u64, Pooled>>());
    holds(lookups::scans_allocate_nothing::<SkipList<[u8], Pooled>>());
}
