//! The layouts that the trees describe match their nodes in memory, and cost as many lines as they
//! state.

use silvics::bst::bronson::build::Restarting2;
use silvics::{BronsonTree, Check, Create, Objects, Options, OrderedIndex, PinIndex, Pooled};
use silvics_layout::Placed;

/// The bytes of a cache line.
const LINE: usize = 64;

/// Inserts keys in no order, so that trees without balance stay flat.
fn fill<I: OrderedIndex<Key = u64>>(index: &I, keys: u64) {
    let mut view = index.pin();
    for n in 0..keys {
        if n.is_multiple_of(64) {
            view.repin(); // some inserts leave garbage
        }
        let key = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        assert_eq!(view.insert(key, n), Ok(None));
    }
}

/// The objects of one kind, as found in memory.
#[derive(Default)]
struct Found {
    objects: usize,
    lines: usize,
    most: usize,
}

/// Counts the lines that a visit touches, over the addresses of all nodes of a tree, and compares
/// the average with the layout, kind by kind. If the layout states one line, no node may take more.
#[allow(clippy::float_cmp)] // ones add up exactly
fn lines<I: Create + OrderedIndex<Key = u64> + Objects>(name: &str, published: Option<&[f64]>) {
    let mut tree = I::with_options(&Options::default()).unwrap();
    fill(&tree, 60_000);
    let mut found: Vec<Found> = I::OBJECTS.iter().map(|_| Found::default()).collect();
    tree.census(&mut |Placed { layout, address, .. }| {
        let kind = I::OBJECTS.iter().position(|of| of.kind == layout.kind).unwrap();
        assert_eq!(address % layout.align, 0);
        let lines = layout.lines_at(address % LINE, LINE);
        found[kind].objects += 1;
        found[kind].lines += lines;
        found[kind].most = found[kind].most.max(lines);
    })
    .unwrap();
    for (at, (layout, found)) in I::OBJECTS.iter().zip(found).enumerate() {
        if layout.kind == "descriptor" {
            continue; // no search passes it
        }
        let wanted = layout.lines_per_visit(layout.size, LINE);
        let (kind, mean) = (layout.kind, found.lines as f64 / found.objects as f64);
        assert!(found.objects >= 60_000, "{name}: {} of {kind}", found.objects);
        if let Some(published) = published {
            assert_eq!(wanted, published[at], "{name}: {kind}");
        }
        assert!((mean - wanted).abs() < 0.01, "{name}: {kind}: {mean} lines");
        assert!(wanted > 1.0 || found.most == 1, "{name}: {kind}: {} lines", found.most);
    }
}

/// The lines per visit that the documents state, kind by kind.
#[allow(clippy::match_same_arms)] // one line for each build
fn published(structure: &str, build: &str) -> Option<&'static [f64]> {
    Some(match (structure, build) {
        ("occ_avl", "restarting") => &[1.0],
        ("occ_avl", "fixed") => &[1.0],
        ("occ_avl", "baseline") => &[2.5],
        ("occ_avl_2", "baseline") => &[1.0],
        ("edge_ext_lf", "compact") => &[1.25, 1.0],
        ("edge_ext_lf", "fixed") => &[1.0],
        ("edge_ext_lf", "collocated") => &[1.0],
        ("edge_ext_lf_2", "fixed") => &[1.0],
        ("edge_ext_lf_2", "baseline") => &[1.0],
        ("ticket", "compact") => &[1.0, 1.0],
        ("ticket", "fixed") => &[1.25],
        ("ticket", "baseline") => &[1.0],
        ("citrus", "fixed") => &[1.25],
        ("citrus", "baseline") => &[1.25],
        ("ext_lf", "compact") => &[1.0, 1.0],
        ("ext_lf", "fixed") => &[1.25],
        ("ext_lf", "baseline") => &[1.0],
        ("int_lf", "fixed") => &[1.25],
        ("int_lf", "baseline") => &[1.0],
        ("edge_int_lf", "fixed") => &[1.25],
        ("log_int", "fixed") => &[1.25],
        ("log_int", "baseline") => &[1.5],
        _ => return None,
    })
}

#[test]
fn a_visit_touches_the_lines_that_the_layout_says() {
    let mut used = 0;
    macro_rules! lines_of {
        (skiplist $($rest:tt)*) => {}; // towers have no layout of one size
        (art $($rest:tt)*) => {};      // nodes of several lines, of which a search reads two
        (blocks $($rest:tt)*) => {};
        (words $($rest:tt)*) => {};
        (ca_tree $($rest:tt)*) => {};
        (lfca_tree $($rest:tt)*) => {};
        (patricia_16 $($rest:tt)*) => {};
        (patricia_256 $($rest:tt)*) => {};
        (patricia_4 $($rest:tt)*) => {};
        (patricia_2 $($rest:tt)*) => {};
        ($structure:ident $build:ident u64_keys $r:ident $c:ident $f:ident $index:ty) => {
            let (structure, build) = (stringify!($structure), stringify!($build));
            let published = published(structure, build);
            used += usize::from(published.is_some());
            lines::<$index>(&format!("{structure}:{build}"), published);
        };
    }
    silvics::for_each_index! { lines_of }
    assert_eq!(used, 22, "a build with published lines is no longer in the table");
}

/// The bytes of a tree are those of its objects, and at most 3 % more for pools.
fn bytes<I: Create + OrderedIndex<Key = u64> + Objects + Check>(name: &str) {
    let mut tree = I::with_options(&Options::default()).unwrap();
    fill(&tree, 1_000_000);
    tree.settle();
    let mut objects = 0;
    tree.census(&mut |object| objects += object.bytes).unwrap();
    let held = tree.bytes();
    let overhead = held as f64 / objects as f64 - 1.0;
    assert!((0.0..=0.03).contains(&overhead), "{name}: {held} bytes for {objects}");
}

#[test]
fn pools_add_three_percent_at_most() {
    macro_rules! bytes_of {
        (skiplist $($rest:tt)*) => {}; // objects of many sizes, rounded up to classes
        (art $($rest:tt)*) => {};
        (blocks $($rest:tt)*) => {};
        (words $($rest:tt)*) => {};
        (ca_tree $($rest:tt)*) => {};
        (lfca_tree $($rest:tt)*) => {};
        (patricia_16 $($rest:tt)*) => {};
        (patricia_256 $($rest:tt)*) => {};
        (patricia_4 $($rest:tt)*) => {};
        (patricia_2 $($rest:tt)*) => {};
        (edge_ext_lf collocated $($rest:tt)*) => {}; // blocks of which a half may be dead
        ($structure:ident fixed u64_keys $r:ident $c:ident $f:ident $index:ty) => {
            bytes::<$index>(concat!(stringify!($structure), ":fixed"));
        };
        ($structure:ident $build:ident u64_keys full $c:ident $f:ident $index:ty) => {
            bytes::<$index>(concat!(stringify!($structure), ":", stringify!($build)));
        };
        ($structure:ident $build:ident u64_keys $r:ident $($rest:tt)*) => {};
    }
    silvics::for_each_index! { bytes_of }
}

/// A frozen tree answers lookups as the tree did.
#[test]
fn a_frozen_tree_answers_as_before() {
    let tree: BronsonTree<Pooled, Restarting2> =
        BronsonTree::with_options(&Options::default()).unwrap();
    fill(&tree, 1000);
    let view = tree.pin();
    for key in (0..1000u64).step_by(3).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
        assert!(view.remove(key).unwrap().is_some());
    }
    let keys: Vec<u64> = (0..2000u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let wanted: Vec<Option<u64>> = keys.iter().map(|key| view.get(*key)).collect();
    drop(view);
    let frozen = tree.freeze();
    assert_eq!(keys.iter().map(|key| frozen.get(*key)).collect::<Vec<_>>(), wanted);
    assert_eq!((frozen.len(), frozen.get(u64::MAX)), (666, None));
    let mut thawed = frozen.thaw();
    assert_eq!(thawed.check(), Ok(666));
    assert_eq!(thawed.pin().insert(u64::MAX, 7), Ok(None));
}
