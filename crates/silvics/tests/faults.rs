//! Every structure while its allocations fail or panic.

use silvics::bst::build::Baseline;
use silvics::bst::natarajan::build::{Collocated, Shifted};
use silvics::{
    ArtTree, BronsonTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree,
    RamachandranTree, SkipList, TicketTree,
};
use silvics_testkit::{fault_suite, faulty::Faulty, mapped::Mapped};

fault_suite!(occ_avl, BronsonTree<Faulty>);
fault_suite!(edge_ext_lf, NatarajanTree<Faulty>, scans);
fault_suite!(edge_ext_lf_shifted, NatarajanTree<Faulty, Shifted>, scans);
// Not `scans`: those count objects, and how many blocks entries take depends on their history.
fault_suite!(edge_ext_lf_collocated, NatarajanTree<Faulty, Collocated>);
fault_suite!(ext_lf, EllenTree<Faulty>, scans);
fault_suite!(int_lf, HowleyTree<Faulty>);
fault_suite!(log_int, DrachslerTree<Faulty>, scans);
fault_suite!(citrus, CitrusTree<Faulty>);
fault_suite!(edge_int_lf, RamachandranTree<Faulty>);
fault_suite!(edge_int_lf_baseline, RamachandranTree<Faulty, Baseline>);
fault_suite!(art, ArtTree<u64, Faulty>, scans);
fault_suite!(art_bytes, ArtTree<[u8], Faulty>, scans);
fault_suite!(map, Mapped<u64, Faulty>);
fault_suite!(map_bytes, Mapped<[u8], Faulty>);
fault_suite!(skiplist_u64, SkipList<u64, Faulty>, scans);
fault_suite!(skiplist_bytes, SkipList<[u8], Faulty>, scans);
fault_suite!(ticket, TicketTree<Faulty>, scans);
