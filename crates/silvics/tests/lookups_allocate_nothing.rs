//! Lookups and scans allocate nothing: counted by the global allocator of this process.

use silvics::bst::build::Baseline;
use silvics::bst::natarajan::build::Fixed2;
use silvics::{
    BronsonTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree, Pooled,
    RamachandranTree, Shared, SkipList, TicketTree,
};
use silvics_testkit::counting::Counting;
use silvics_testkit::{holds, lookups};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn occ_avl() {
    holds(lookups::allocate_nothing::<BronsonTree<Pooled>>());
    holds(lookups::allocate_nothing::<BronsonTree<Shared>>());
}

#[test]
fn edge_ext_lf() {
    holds(lookups::allocate_nothing::<NatarajanTree<Pooled>>());
    holds(lookups::allocate_nothing::<NatarajanTree<Shared>>());
    holds(lookups::allocate_nothing::<NatarajanTree<Pooled, Fixed2>>());
}

#[test]
fn ticket() {
    holds(lookups::allocate_nothing::<TicketTree<Pooled>>());
    holds(lookups::allocate_nothing::<TicketTree<Shared>>());
}

#[test]
fn log_int() {
    holds(lookups::allocate_nothing::<DrachslerTree<Pooled>>());
    holds(lookups::allocate_nothing::<DrachslerTree<Shared>>());
    holds(lookups::scans_allocate_nothing::<DrachslerTree<Pooled>>());
    holds(lookups::scans_allocate_nothing::<DrachslerTree<Shared>>());
}

/// The lines in which its lookups announce themselves were made with the tree.
#[test]
fn citrus() {
    holds(lookups::allocate_nothing::<CitrusTree<Pooled>>());
    holds(lookups::allocate_nothing::<CitrusTree<Shared>>());
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
    holds(lookups::allocate_nothing::<EllenTree<Pooled>>());
    holds(lookups::allocate_nothing::<EllenTree<Shared>>());
}

#[test]
fn int_lf() {
    holds(lookups::allocate_nothing::<HowleyTree<Pooled>>());
    holds(lookups::allocate_nothing::<HowleyTree<Shared>>());
}

#[test]
fn edge_int_lf() {
    holds(lookups::allocate_nothing::<RamachandranTree<Pooled>>());
    holds(lookups::allocate_nothing::<RamachandranTree<Pooled, Baseline>>());
}

#[test]
fn skiplist() {
    holds(lookups::allocate_nothing::<SkipList<u64, Pooled>>());
    holds(lookups::allocate_nothing::<SkipList<[u8], Pooled>>());
    holds(lookups::allocate_nothing::<SkipList<u64, Shared>>());
    holds(lookups::allocate_nothing::<SkipList<[u8], Shared>>());
}

#[test]
fn skiplist_scans() {
    holds(lookups::scans_allocate_nothing::<SkipList<u64, Pooled>>());
    holds(lookups::scans_allocate_nothing::<SkipList<[u8], Pooled>>());
}
