//! Dropping an index returns everything: its regions are unmapped, and the heap is where it was.
//! One test in a process of its own, so that nobody else maps or allocates meanwhile.

use silvics::{
    ArtTree, BronsonTree, Check, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree,
    OrderedIndex, Pooled, RamachandranTree, Shared, SkipList, TicketTree,
};
use silvics_testkit::counting::{Counting, live_bytes};
use silvics_testkit::erased::{Erased, points, run};
use silvics_testkit::memory::{
    dropping_and_flushing_returns_everything, dropping_returns_everything,
};
use silvics_testkit::{TestKey, holds};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn returned<I: OrderedIndex<Key: TestKey> + Check + 'static>(name: &str) {
    let flushed = run(points::<I>(), || {
        dropping_and_flushing_returns_everything::<Erased<I::Key>>(live_bytes)
    });
    holds(flushed.map_err(|f| f.at(format_args!("{name}, domain flushed after the drop"))));
    let own = run(points::<I>(), || dropping_returns_everything::<Erased<I::Key>>(live_bytes));
    holds(own.map_err(|f| f.at(format_args!("{name}, domain of its own"))));
}

#[test]
fn dropping_returns_regions_and_heap() {
    returned::<BronsonTree<Pooled>>("occ-avl pooled");
    returned::<BronsonTree<Shared>>("occ-avl shared");
    returned::<NatarajanTree<Pooled>>("edge-ext-lf pooled");
    returned::<NatarajanTree<Shared>>("edge-ext-lf shared");
    returned::<DrachslerTree<Pooled>>("log-int pooled");
    returned::<DrachslerTree<Shared>>("log-int shared");
    returned::<CitrusTree<Pooled>>("citrus pooled");
    returned::<CitrusTree<Shared>>("citrus shared");
    returned::<TicketTree<Pooled>>("ticket pooled");
    returned::<TicketTree<Shared>>("ticket shared");
    returned::<EllenTree<Pooled>>("ext-lf pooled");
    returned::<EllenTree<Shared>>("ext-lf shared");
    returned::<HowleyTree<Pooled>>("int-lf pooled");
    returned::<HowleyTree<Shared>>("int-lf shared");
    returned::<RamachandranTree<Pooled>>("edge-int-lf pooled");
    returned::<RamachandranTree<Shared>>("edge-int-lf shared");
    returned::<ArtTree<u64, Pooled>>("art u64 pooled");
    returned::<ArtTree<u64, Shared>>("art u64 shared");
    returned::<ArtTree<[u8], Pooled>>("art bytes pooled");
    returned::<ArtTree<[u8], Shared>>("art bytes shared");
    returned::<SkipList<u64, Pooled>>("skiplist u64 pooled");
    returned::<SkipList<u64, Shared>>("skiplist u64 shared");
    returned::<SkipList<[u8], Pooled>>("skiplist bytes pooled");
    returned::<SkipList<[u8], Shared>>("skiplist bytes shared");
}
