//! The study's findings about where nodes lie (ATC'18), as facts about the addresses of real trees:
//! in one heap for all kinds, as programs have it, and in one pool per kind. docs/experiments.md
//! has the numbers (bst/1.4 to 1.7).

use silvics::bst::bronson::Bronson;
use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::citrus::Citrus;
use silvics::bst::howley::Howley;
use silvics::bst::natarajan::Natarajan;
use silvics::bst::natarajan::build::{Baseline2, Collocated, Shifted};
use silvics::frame::{Algorithm, Index};
use silvics::{Heap, Objects, Options, Pages, Pooled, Recorded, Shared, SizeClassHeap};
use silvics_layout::{Census, Collocation, Facts, Paths, SetHash, Sets, record};
use std::alloc::Layout;
use std::sync::Arc;

const KEYS: u64 = 100_000;

/// A second-level cache of 2 MiB, which has fewer sets than there are nodes.
const SETS: Sets = Sets { line: 64, sets: 2048, hash: SetHash::Modulo };

/// A tree of random keys, inserted by one thread that reuses nothing.
fn prefilled<A: Algorithm<Key = u64>>(options: &Options, mut between: impl FnMut(u64)) -> Census {
    let mut tree: Index<A> = Index::with_options(options).unwrap();
    let held = tree.pin();
    for n in 0..KEYS {
        assert_eq!(held.insert(n.wrapping_mul(0x9E37_79B9_7F4A_7C15), n), Ok(None));
        between(n);
    }
    drop(held);
    let mut census = Census::default();
    tree.census(&mut |object| census.place(object)).unwrap();
    census
}

fn in_one_heap() -> (Arc<SizeClassHeap>, Options) {
    let heap = Arc::new(SizeClassHeap::new(Pages::Small));
    (Arc::clone(&heap), Options { heap: Some(heap), ..Options::default() })
}

fn of<A: Algorithm<Key = u64>>(options: &Options) -> Facts {
    of_in::<A>(options, &SETS)
}

fn of_in<A: Algorithm<Key = u64>>(options: &Options, sets: &Sets) -> Facts {
    prefilled::<A>(options, |_| {}).facts("node", sets).unwrap()
}

/// bst/1.4: one in four nodes in blocks of 48 bytes straddles two lines; none in blocks of 32 or 64
/// bytes does.
#[test]
fn a_quarter_of_the_nodes_in_48_byte_blocks_straddle() {
    let quarter = 0.245..=0.255;
    let straddling = of::<Citrus<Shared, Fixed>>(&in_one_heap().1).straddling;
    assert!(quarter.contains(&straddling), "citrus: {straddling}");
    let straddling = of::<Howley<Shared, Fixed>>(&in_one_heap().1).straddling;
    assert!(quarter.contains(&straddling), "int-lf: {straddling}");
    for straddling in [
        of::<Natarajan<Shared, Fixed>>(&in_one_heap().1).straddling,
        of::<Howley<Shared, Baseline>>(&in_one_heap().1).straddling,
    ] {
        assert!(straddling.abs() < f64::EPSILON, "{straddling}");
    }
}

/// bst/1.5: nodes and descriptors of one class alternate, so nodes use half of the sets, and no
/// line that is fetched beside one is of use. Noise between them covers the sets and helps little.
/// A pool for each kind fixes both.
#[test]
fn nodes_between_descriptors_use_half_of_the_sets() {
    let mixed = of::<Howley<Shared, Baseline>>(&in_one_heap().1);
    assert!((mixed.set_coverage - 0.5).abs() < 0.001, "{mixed:?}");
    assert!(mixed.useful_neighbours < 0.001, "{mixed:?}");
    assert!(mixed.strides[&128] * 100 > mixed.objects * 95, "{:?}", mixed.strides);

    let (heap, options) = in_one_heap();
    let noise = |n: u64| {
        // The noise has sizes from 16 to 256 bytes, in no order, and stays allocated.
        let bytes = 16 + (n.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as usize % 241;
        assert!(heap.alloc("noise", Layout::from_size_align(bytes, 8).unwrap()).is_some());
    };
    let noisy =
        prefilled::<Howley<Shared, Baseline>>(&options, noise).facts("node", &SETS).unwrap();
    assert!(noisy.set_coverage > 0.99 && noisy.offsets.len() == 1, "{noisy:?}");
    assert!(1.0 - noisy.useful_neighbours >= 0.4, "{noisy:?}");

    let segregated = of::<Howley<Pooled, Baseline>>(&Options::default());
    assert!(segregated.set_coverage >= 0.99, "{segregated:?}");
    assert!(segregated.useful_neighbours >= 0.9, "{segregated:?}");
    assert!(segregated.pages > 5 * segregated.page_runs, "{segregated:?}");
}

/// The last level of `haswell`: 30 MiB in twelve slices.
const SLICED: Sets = Sets { line: 64, sets: 12 * 2048, hash: SetHash::Slices(12) };

/// A census of nodes between the rows and wrappers of a database, all of 64 bytes, in one heap.
fn in_a_database<A: Algorithm<Key = u64>>() -> Census {
    let (heap, options) = in_one_heap();
    prefilled::<A>(&options, |_| {
        for kind in ["row", "wrapper"] {
            assert!(heap.alloc(kind, Layout::from_size_align(64, 8).unwrap()).is_some());
        }
    })
}

/// bst/1.6: one node every 192 bytes uses a third of a sliced cache, and two nodes every 256 bytes
/// use all of it.
#[test]
fn a_node_every_three_lines_uses_a_third_of_a_sliced_cache() {
    let three = in_a_database::<Bronson<Shared, Fixed>>().facts("node", &SLICED).unwrap();
    assert!(three.strides[&192] * 100 >= three.objects * 95, "{:?}", three.strides);
    assert!((three.set_coverage - 1.0 / 3.0).abs() < 0.01, "{three:?}");
    let whole = in_a_database::<Bronson<Shared, Fixed>>().facts("node", &SETS).unwrap();
    assert!(whole.set_coverage > 0.99, "a cache without slices hides it: {whole:?}");
    let four = in_a_database::<Natarajan<Shared, Baseline2>>().facts("node", &SLICED).unwrap();
    assert!(four.strides[&64] * 100 >= four.objects * 45, "{:?}", four.strides);
    assert!(four.set_coverage > 0.99, "{four:?}");
    let segregated = of_in::<Bronson<Pooled, Fixed>>(&Options::default(), &SLICED);
    assert!(segregated.set_coverage > 0.99, "{segregated:?}");
}

/// The places of the leaves, as seen from the nodes above them, in a tree of random keys.
fn collocation<A: Algorithm<Key = u64>>(options: &Options) -> Collocation {
    let tree: Index<A> = Index::with_options(options).unwrap();
    let held = tree.pin();
    // The keys are in no order. Multiples would not do: their pairs that lie side by side would
    // alternate.
    let key =
        |n: u64| (n ^ 0x5DEE_CE66).wrapping_pow(3).swap_bytes().wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    for n in 0..KEYS {
        assert_eq!(held.insert(key(n), n), Ok(None));
    }
    let (mut paths, mut reads) = (Paths::default(), Vec::new());
    for n in 0..KEYS {
        assert_eq!(record::of(&mut reads, || held.get(key(n))), Some(n));
        paths.add(&reads);
        reads.clear();
    }
    paths.collocation()
}

/// bst/1.7: three in four internal nodes above a leaf share its line, as long as nothing shifts the
/// allocations by one. If something does, the leaf is in the line before. The study found all those
/// nodes on odd lines, whose neighbour is not fetched. With two objects of 32 bytes per insert,
/// every other node is on one, as it must be.
#[test]
fn luck_puts_leaves_beside_their_parents() {
    let percent = |part: usize, of: usize| 100.0 * part as f64 / of as f64;
    let lucky = collocation::<Natarajan<Recorded<Shared>, Fixed>>(&in_one_heap().1);
    let same = percent(lucky.same_line, lucky.parents);
    assert!((72.0..=78.0).contains(&same), "{lucky:?}");
    let shifted = collocation::<Natarajan<Recorded<Shared>, Shifted>>(&in_one_heap().1);
    let beside = shifted.same_pair + shifted.next_pair;
    let near = percent(beside, shifted.parents);
    assert!(shifted.same_line == 0 && (72.0..=78.0).contains(&near), "{shifted:?}");
    let odd = percent(shifted.next_pair, beside);
    assert!((49.0..=51.0).contains(&odd), "{shifted:?}");
    for blocks in [
        collocation::<Natarajan<Recorded<Shared>, Collocated>>(&in_one_heap().1),
        collocation::<Natarajan<Recorded<Pooled>, Collocated>>(&Options::default()),
    ] {
        let same = percent(blocks.same_line, blocks.parents);
        assert!((72.0..=78.0).contains(&same), "{blocks:?}");
    }
}

/// Kinds of one class share pages and regions in a heap, and share none in pools.
#[test]
fn pools_hold_nodes_on_fewer_pages() {
    let (mixed, segregated) = (
        of::<Howley<Shared, Fixed>>(&in_one_heap().1),
        of::<Howley<Pooled, Fixed>>(&Options::default()),
    );
    assert!(mixed.pages > segregated.pages, "{} pages, {}", mixed.pages, segregated.pages);
    assert!(mixed.page_runs > 5 * segregated.page_runs, "{mixed:?} {segregated:?}");
}
