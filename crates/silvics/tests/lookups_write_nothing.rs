//! "No shared write on a lookup": every pooled structure is read with its regions write-protected.
//! A process of its own, since a write ends it.

use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::natarajan::build::{Collocated, Fixed2};
use silvics::{
    ArtTree, Batches, BronsonTree, Check, CitrusTree, Create, DrachslerTree, EllenTree, HowleyTree,
    Lookup, NatarajanTree, Pooled, RamachandranTree, SkipList, TicketTree,
};
use silvics_testkit::make;
use silvics_testkit::{TestKey, broken, holds, lookups};

/// Compiled once for all: what erasing a type adds would be found, too.
fn write_nothing<I: Create + Batches + Check + Lookup<Key: TestKey> + 'static>() {
    holds(lookups::write_nothing(make::points::<I>));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn occ_avl() {
    write_nothing::<BronsonTree<Pooled>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn edge_ext_lf() {
    write_nothing::<NatarajanTree<Pooled>>();
    write_nothing::<NatarajanTree<Pooled, Fixed2>>();
    write_nothing::<NatarajanTree<Pooled, Collocated>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn ticket() {
    write_nothing::<TicketTree<Pooled>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn log_int() {
    write_nothing::<DrachslerTree<Pooled>>();
    holds(lookups::scans_write_nothing(make::exact::<DrachslerTree<Pooled>>));
}

/// What its lookups write is each thread's own, and in no region.
#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn citrus() {
    write_nothing::<CitrusTree<Pooled>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn scans_of_external_trees() {
    holds(lookups::scans_write_nothing(make::exact::<TicketTree<Pooled>>));
    holds(lookups::scans_write_nothing(make::exact::<NatarajanTree<Pooled>>));
    holds(lookups::scans_write_nothing(make::exact::<EllenTree<Pooled>>));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn ext_lf() {
    write_nothing::<EllenTree<Pooled>>();
    write_nothing::<EllenTree<Pooled, Fixed>>();
    write_nothing::<EllenTree<Pooled, Baseline>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn int_lf() {
    write_nothing::<HowleyTree<Pooled>>();
    write_nothing::<HowleyTree<Pooled, Baseline>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn edge_int_lf() {
    write_nothing::<RamachandranTree<Pooled>>();
    write_nothing::<RamachandranTree<Pooled, Baseline>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn art() {
    write_nothing::<ArtTree<u64, Pooled>>();
    write_nothing::<ArtTree<[u8], Pooled>>();
    holds(lookups::scans_write_nothing(make::exact::<ArtTree<u64, Pooled>>));
    holds(lookups::scans_write_nothing(make::exact::<ArtTree<[u8], Pooled>>));
}

#[test]
fn skiplist() {
    write_nothing::<SkipList<u64, Pooled>>();
    write_nothing::<SkipList<[u8], Pooled>>();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory protection")]
fn skiplist_scans() {
    holds(lookups::scans_write_nothing(make::exact::<SkipList<u64, Pooled>>));
    holds(lookups::scans_write_nothing(make::exact::<SkipList<[u8], Pooled>>));
}

/// Set in the child process that has to die.
const PLANTED: &str = "SILVICS_PLANTED_WRITE";

/// The fence is real: an index that counts its lookups in a pool does not survive them.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "runs a child process")]
fn a_planted_write_is_fatal() {
    if std::env::var_os(PLANTED).is_some() {
        write_nothing::<broken::WritingLookup>();
    } else {
        holds(lookups::dies_by_signal("a_planted_write_is_fatal", PLANTED));
    }
}
