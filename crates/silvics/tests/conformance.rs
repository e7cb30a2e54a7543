//! The conformance suite of `silvics-testkit` on every structure, build and placement.
//!
//! Builds that are one type (`edge-ext-lf`'s fixed and baseline, `occ-avl-2`'s) are run once.

use silvics::bst::bronson::build as bronson;
use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::natarajan::build as natarajan;
use silvics::{
    ArtTree, BronsonTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree, Pooled,
    RamachandranTree, Shared, SkipList, TicketTree,
};
use silvics_testkit::mapped::Mapped;
use silvics_testkit::{holds, index_suite, outcome};

index_suite!(occ_avl_pooled, BronsonTree<Pooled>);
index_suite!(occ_avl_shared, BronsonTree<Shared>);
index_suite!(occ_avl_fixed_pooled, BronsonTree<Pooled, Fixed>);
index_suite!(occ_avl_fixed_shared, BronsonTree<Shared, Fixed>);
index_suite!(occ_avl_baseline_pooled, BronsonTree<Pooled, Baseline>);
index_suite!(occ_avl_baseline_shared, BronsonTree<Shared, Baseline>);
index_suite!(occ_avl_2_pooled, BronsonTree<Pooled, bronson::Baseline2>);
index_suite!(occ_avl_2_shared, BronsonTree<Shared, bronson::Baseline2>);
index_suite!(occ_avl_2_ret_pooled, BronsonTree<Pooled, bronson::Restarting2>);
index_suite!(occ_avl_2_ret_shared, BronsonTree<Shared, bronson::Restarting2>);

index_suite!(edge_ext_lf_pooled, NatarajanTree<Pooled>, scans);
index_suite!(edge_ext_lf_shared, NatarajanTree<Shared>, scans);
index_suite!(edge_ext_lf_fixed_pooled, NatarajanTree<Pooled, Fixed>, scans);
index_suite!(edge_ext_lf_fixed_shared, NatarajanTree<Shared, Fixed>, scans);
index_suite!(edge_ext_lf_shifted_pooled, NatarajanTree<Pooled, natarajan::Shifted>, scans);
index_suite!(edge_ext_lf_shifted_shared, NatarajanTree<Shared, natarajan::Shifted>, scans);
index_suite!(edge_ext_lf_collocated_pooled, NatarajanTree<Pooled, natarajan::Collocated>, scans);
index_suite!(edge_ext_lf_collocated_shared, NatarajanTree<Shared, natarajan::Collocated>, scans);
index_suite!(edge_ext_lf_2_fixed_pooled, NatarajanTree<Pooled, natarajan::Fixed2>, scans);
index_suite!(edge_ext_lf_2_fixed_shared, NatarajanTree<Shared, natarajan::Fixed2>, scans);
index_suite!(edge_ext_lf_2_baseline_pooled, NatarajanTree<Pooled, natarajan::Baseline2>, scans);
index_suite!(edge_ext_lf_2_baseline_shared, NatarajanTree<Shared, natarajan::Baseline2>, scans);

index_suite!(edge_int_lf_fixed_pooled, RamachandranTree<Pooled, Fixed>);
index_suite!(edge_int_lf_fixed_shared, RamachandranTree<Shared, Fixed>);
index_suite!(edge_int_lf_baseline_pooled, RamachandranTree<Pooled, Baseline>);
index_suite!(edge_int_lf_baseline_shared, RamachandranTree<Shared, Baseline>);

index_suite!(log_int_fixed_pooled, DrachslerTree<Pooled, Fixed>, scans);
index_suite!(log_int_fixed_shared, DrachslerTree<Shared, Fixed>, scans);
index_suite!(log_int_baseline_pooled, DrachslerTree<Pooled, Baseline>, scans);
index_suite!(log_int_baseline_shared, DrachslerTree<Shared, Baseline>, scans);

index_suite!(citrus_fixed_pooled, CitrusTree<Pooled, Fixed>);
index_suite!(citrus_fixed_shared, CitrusTree<Shared, Fixed>);
index_suite!(citrus_baseline_pooled, CitrusTree<Pooled, Baseline>);
index_suite!(citrus_baseline_shared, CitrusTree<Shared, Baseline>);

index_suite!(int_lf_fixed_pooled, HowleyTree<Pooled, Fixed>);
index_suite!(int_lf_fixed_shared, HowleyTree<Shared, Fixed>);
index_suite!(int_lf_baseline_pooled, HowleyTree<Pooled, Baseline>);
index_suite!(int_lf_baseline_shared, HowleyTree<Shared, Baseline>);

index_suite!(ticket_pooled, TicketTree<Pooled>, scans);
index_suite!(ticket_shared, TicketTree<Shared>, scans);
index_suite!(ticket_fixed_pooled, TicketTree<Pooled, Fixed>, scans);
index_suite!(ticket_fixed_shared, TicketTree<Shared, Fixed>, scans);
index_suite!(ticket_baseline_pooled, TicketTree<Pooled, Baseline>, scans);
index_suite!(ticket_baseline_shared, TicketTree<Shared, Baseline>, scans);

index_suite!(ext_lf_pooled, EllenTree<Pooled>, scans);
index_suite!(ext_lf_shared, EllenTree<Shared>, scans);
index_suite!(ext_lf_fixed_pooled, EllenTree<Pooled, Fixed>, scans);
index_suite!(ext_lf_fixed_shared, EllenTree<Shared, Fixed>, scans);
index_suite!(ext_lf_baseline_pooled, EllenTree<Pooled, Baseline>, scans);
index_suite!(ext_lf_baseline_shared, EllenTree<Shared, Baseline>, scans);

index_suite!(art_pooled, ArtTree<u64, Pooled>, scans);
index_suite!(art_shared, ArtTree<u64, Shared>, scans);
index_suite!(art_u128_pooled, ArtTree<u128, Pooled>, scans);
index_suite!(art_bytes_pooled, ArtTree<[u8], Pooled>, scans);
index_suite!(art_bytes_shared, ArtTree<[u8], Shared>, scans);

index_suite!(map_pooled, Mapped<u64, Pooled>);
index_suite!(map_shared, Mapped<u64, Shared>);
index_suite!(map_u128_pooled, Mapped<u128, Pooled>);
index_suite!(map_bytes_pooled, Mapped<[u8], Pooled>);
index_suite!(map_bytes_shared, Mapped<[u8], Shared>);

index_suite!(skiplist_u64_pooled, SkipList<u64, Pooled>, scans);
index_suite!(skiplist_u64_shared, SkipList<u64, Shared>, scans);
index_suite!(skiplist_bytes_pooled, SkipList<[u8], Pooled>, scans);
index_suite!(skiplist_bytes_shared, SkipList<[u8], Shared>, scans);

/// Constant memory over a million pairs (`just stress`: a hundred million) in a build of each.
macro_rules! long_churn {
    ($($name:ident: $index:ty,)*) => {
        $(
            mod $name {
                #[allow(clippy::wildcard_imports)]
                use super::*;

                #[test]
                fn long() {
                    holds(outcome!($index, points::memory::long_churn));
                }
            }
        )*
    };
}

long_churn! {
    occ_avl_churn: BronsonTree,
    occ_avl_2_churn: BronsonTree<Pooled, bronson::Baseline2>,
    edge_ext_lf_churn: NatarajanTree,
    edge_ext_lf_2_churn: NatarajanTree<Pooled, natarajan::Fixed2>,
    edge_int_lf_churn: RamachandranTree,
    log_int_churn: DrachslerTree,
    citrus_churn: CitrusTree,
    int_lf_churn: HowleyTree,
    ticket_churn: TicketTree,
    ext_lf_churn: EllenTree,
    art_churn: ArtTree,
    art_bytes_churn: ArtTree<[u8]>,
    skiplist_u64_churn: SkipList<u64>,
    skiplist_bytes_churn: SkipList<[u8]>,
}
