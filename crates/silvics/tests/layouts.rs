//! The layouts that the trees describe are those of their nodes in memory, and cost what they say.

use silvics::bst::bronson::Bronson;
use silvics::bst::bronson::build::{Baseline2, Restarting, Restarting2};
use silvics::bst::build::{Baseline, Compact, Fixed};
use silvics::bst::citrus::Citrus;
use silvics::bst::drachsler::Drachsler;
use silvics::bst::ellen::Ellen;
use silvics::bst::howley::Howley;
use silvics::bst::natarajan::{Natarajan, build as natarajan};
use silvics::bst::ramachandran::Ramachandran;
use silvics::bst::ticket::{Ticket, build as ticket};
use silvics::frame::{Algorithm, Index};
use silvics::{BronsonTree, Check, Lookup, Objects, Options, OrderedIndex, PinIndex, Pooled};
use silvics_layout::Placed;

/// A line of a cache.
const LINE: usize = 64;

/// Keys in no order, so that trees without balance stay flat.
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

/// What the objects of one kind were found to be.
#[derive(Default)]
struct Found {
    objects: usize,
    lines: usize,
    most: usize,
}

/// Counts the lines that a visit touches over the addresses of all nodes of a tree, and compares
/// them with what the layout says: `wanted` on average, kind by kind, exactly where every node takes
/// one line.
#[allow(clippy::float_cmp)] // ones add up exactly
fn lines<A: Algorithm<Key = u64>>(wanted: &[f64]) {
    let mut tree: Index<A> = Index::with_options(&Options::default()).unwrap();
    fill(&tree, 60_000);
    let mut found: Vec<Found> = A::OBJECTS.iter().map(|_| Found::default()).collect();
    tree.census(&mut |Placed { layout, address, .. }| {
        let kind = A::OBJECTS.iter().position(|of| of.kind == layout.kind).unwrap();
        assert_eq!(address % layout.align, 0);
        let lines = layout.lines_at(address % LINE, LINE);
        found[kind].objects += 1;
        found[kind].lines += lines;
        found[kind].most = found[kind].most.max(lines);
    })
    .unwrap();
    for ((layout, found), wanted) in A::OBJECTS.iter().zip(found).zip(wanted) {
        let (kind, mean) = (layout.kind, found.lines as f64 / found.objects as f64);
        assert!(found.objects >= 60_000 || layout.edges() == 0, "{}: {kind}", A::NAME);
        assert_eq!(layout.lines_per_visit(layout.size, LINE), *wanted, "{}: {kind}", A::NAME);
        assert!((mean - wanted).abs() < 0.01, "{}: {kind}: {mean} lines", A::NAME);
        assert!(*wanted > 1.0 || found.most == 1, "{}: {kind}: {} lines", A::NAME, found.most);
    }
}

#[test]
fn a_visit_touches_the_lines_that_the_layout_says() {
    lines::<Bronson<Pooled, Restarting>>(&[1.0]);
    lines::<Bronson<Pooled, Fixed>>(&[1.0]);
    lines::<Bronson<Pooled, Baseline>>(&[2.5]);
    lines::<Bronson<Pooled, Baseline2>>(&[1.0]);
    lines::<Natarajan<Pooled, natarajan::Compact>>(&[1.25, 1.0]);
    lines::<Natarajan<Pooled, natarajan::Fixed>>(&[1.0]);
    lines::<Natarajan<Pooled, natarajan::Collocated>>(&[1.0]);
    lines::<Natarajan<Pooled, natarajan::Fixed2>>(&[1.0]);
    lines::<Natarajan<Pooled, natarajan::Baseline2>>(&[1.0]);
    lines::<Ticket<Pooled, ticket::Compact>>(&[1.0, 1.0]);
    lines::<Ticket<Pooled, Fixed>>(&[1.25]);
    lines::<Ticket<Pooled, Baseline>>(&[1.0]);
    lines::<Citrus<Pooled, Fixed>>(&[1.25]);
    lines::<Citrus<Pooled, Baseline>>(&[1.25]);
    lines::<Ellen<Pooled, Compact>>(&[1.0, 1.0]);
    lines::<Ellen<Pooled, Fixed>>(&[1.25]);
    lines::<Ellen<Pooled, Baseline>>(&[1.0]);
    lines::<Howley<Pooled, Fixed>>(&[1.25]);
    lines::<Howley<Pooled, Baseline>>(&[1.0]);
    lines::<Ramachandran<Pooled, Fixed>>(&[1.25]);
    lines::<Drachsler<Pooled, Fixed>>(&[1.25]);
    lines::<Drachsler<Pooled, Baseline>>(&[1.5]);
}

/// The bytes of a tree are those of its objects, and at most 3 % of pools.
fn bytes<A: Algorithm<Key = u64>>() {
    let mut tree: Index<A> = Index::with_options(&Options::default()).unwrap();
    fill(&tree, 1_000_000);
    tree.settle();
    let mut objects = 0;
    tree.census(&mut |object| objects += object.bytes).unwrap();
    let held = tree.bytes();
    let overhead = held as f64 / objects as f64 - 1.0;
    assert!((0.0..=0.03).contains(&overhead), "{}: {held} bytes for {objects}", A::NAME);
}

#[test]
fn pools_add_three_percent_at_most() {
    bytes::<Bronson<Pooled, Fixed>>();
    bytes::<Bronson<Pooled, Baseline2>>();
    bytes::<Natarajan<Pooled, natarajan::Compact>>();
    bytes::<Natarajan<Pooled, natarajan::Fixed>>();
    bytes::<Natarajan<Pooled, natarajan::Fixed2>>();
    bytes::<Ramachandran<Pooled, Fixed>>();
    bytes::<Drachsler<Pooled, Fixed>>();
    bytes::<Citrus<Pooled, Fixed>>();
    bytes::<Howley<Pooled, Fixed>>();
    bytes::<Ticket<Pooled, ticket::Compact>>();
    bytes::<Ticket<Pooled, Fixed>>();
    bytes::<Ellen<Pooled, Compact>>();
    bytes::<Ellen<Pooled, Fixed>>();
}

/// Lookups in a frozen tree are those of the tree.
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
