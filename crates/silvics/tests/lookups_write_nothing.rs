//! "No shared write on a lookup": every pooled structure is read with its regions write-protected.
//! A process of its own, since a write ends it.

use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::natarajan::build::{Collocated, Fixed2};
use silvics::{
    BronsonTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree, Pooled,
    RamachandranTree, SkipList, TicketTree,
};
use silvics_testkit::{broken, holds, lookups};

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn occ_avl() {
    holds(lookups::write_nothing::<BronsonTree<Pooled>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn edge_ext_lf() {
    holds(lookups::write_nothing::<NatarajanTree<Pooled>>());
    holds(lookups::write_nothing::<NatarajanTree<Pooled, Fixed2>>());
    holds(lookups::write_nothing::<NatarajanTree<Pooled, Collocated>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn ticket() {
    holds(lookups::write_nothing::<TicketTree<Pooled>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn log_int() {
    holds(lookups::write_nothing::<DrachslerTree<Pooled>>());
    holds(lookups::scans_write_nothing::<DrachslerTree<Pooled>>());
}

/// What its lookups write is each thread's own, and in no region.
#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn citrus() {
    holds(lookups::write_nothing::<CitrusTree<Pooled>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn scans_of_external_trees() {
    holds(lookups::scans_write_nothing::<TicketTree<Pooled>>());
    holds(lookups::scans_write_nothing::<NatarajanTree<Pooled>>());
    holds(lookups::scans_write_nothing::<EllenTree<Pooled>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn ext_lf() {
    holds(lookups::write_nothing::<EllenTree<Pooled>>());
    holds(lookups::write_nothing::<EllenTree<Pooled, Fixed>>());
    holds(lookups::write_nothing::<EllenTree<Pooled, Baseline>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn int_lf() {
    holds(lookups::write_nothing::<HowleyTree<Pooled>>());
    holds(lookups::write_nothing::<HowleyTree<Pooled, Baseline>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn edge_int_lf() {
    holds(lookups::write_nothing::<RamachandranTree<Pooled>>());
    holds(lookups::write_nothing::<RamachandranTree<Pooled, Baseline>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn skiplist() {
    holds(lookups::write_nothing::<SkipList<u64, Pooled>>());
    holds(lookups::write_nothing::<SkipList<[u8], Pooled>>());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn skiplist_scans() {
    holds(lookups::scans_write_nothing::<SkipList<u64, Pooled>>());
    holds(lookups::scans_write_nothing::<SkipList<[u8], Pooled>>());
}

/// Set in the child process that has to die.
const PLANTED: &str = "SILVICS_PLANTED_WRITE";

/// The fence is real: an index that counts its lookups in a pool does not survive them.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "runs a child process")]
fn a_planted_write_is_fatal() {
    if std::env::var_os(PLANTED).is_some() {
        holds(lookups::write_nothing::<broken::WritingLookup>());
    } else {
        holds(lookups::dies_by_signal("a_planted_write_is_fatal", PLANTED));
    }
}
