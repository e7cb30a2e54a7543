//! Lookups and scans allocate nothing: counted by the global allocator of this process.

use silvics::bst::build::Baseline;
use silvics::bst::natarajan::build::Fixed2;
use silvics::{
    ArtTree, Batches, BronsonTree, Check, CitrusTree, Create, DrachslerTree, EllenTree, HowleyTree,
    Lookup, Map, NatarajanTree, Pooled, RamachandranTree, Shared, SkipList, TicketTree,
};
use silvics_testkit::counting::{Counting, allocations};
use silvics_testkit::make;
use silvics_testkit::{TestKey, holds, lookups};
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Compiled once for all: what erasing a type adds would be found, too.
fn allocate_nothing<I: Create + Batches + Check + Lookup<Key: TestKey> + 'static>() {
    holds(lookups::allocate_nothing(make::points::<I>));
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
    holds(lookups::scans_allocate_nothing(make::exact::<DrachslerTree<Pooled>>));
    holds(lookups::scans_allocate_nothing(make::exact::<DrachslerTree<Shared>>));
}

/// The lines in which its lookups announce themselves were made with the tree.
#[test]
fn citrus() {
    allocate_nothing::<CitrusTree<Pooled>>();
    allocate_nothing::<CitrusTree<Shared>>();
}

#[test]
fn scans_of_external_trees() {
    holds(lookups::scans_allocate_nothing(make::exact::<TicketTree<Pooled>>));
    holds(lookups::scans_allocate_nothing(make::exact::<NatarajanTree<Pooled>>));
    holds(lookups::scans_allocate_nothing(make::exact::<NatarajanTree<Shared>>));
    holds(lookups::scans_allocate_nothing(make::exact::<EllenTree<Pooled>>));
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
    holds(lookups::scans_allocate_nothing(make::exact::<ArtTree<u64, Pooled>>));
    holds(lookups::scans_allocate_nothing(make::exact::<ArtTree<[u8], Pooled>>));
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
    holds(lookups::scans_allocate_nothing(make::exact::<SkipList<u64, Pooled>>));
    holds(lookups::scans_allocate_nothing(make::exact::<SkipList<[u8], Pooled>>));
}

#[test]
fn maps() {
    let names: Map<String, Vec<u64>> = Map::new();
    let pairs: Map<(String, u64), u64> = Map::new();
    let numbers: Map<i32, Arc<str>> = Map::new();
    let name = |n: i32| format!("name with a \0 {n}");
    for n in 0..1000 {
        names.insert(name(n), vec![n as u64]);
        pairs.insert((name(n), 7), n as u64);
        numbers.insert(n, name(n).into());
    }
    let asked: Vec<String> = (0..1200).map(name).collect();
    let (name_view, pair_view, number_view) = (names.pin(), pairs.pin(), numbers.pin());
    let owned = names.pin_owned();
    let look = || {
        let mut found = 0;
        for (n, name) in (0..).zip(&asked) {
            found += name_view.get(name.as_str()).map_or(0, |values| values.len());
            found += usize::from(names.get(name).is_some() && owned.contains_key(name));
            found += usize::from(pair_view.get((name.as_str(), 7)).is_some());
            found += usize::from(pair_view.contains_key((name, 8)));
            found += number_view.get(n).map_or(0, |text| usize::from(**text == **name));
            found += usize::from(name_view.get_key_value(name).is_some_and(|(key, _)| key == name));
            found += usize::from(name_view.upper_bound(Included(name)).is_some());
            found += usize::from(name_view.lower_bound(Excluded(name)).is_some());
        }
        found
    };
    look(); // this thread's buffer for keys that are encoded
    let before = allocations();
    assert_eq!(look(), 5 * 1000 + 1200 + 1200 - 1);
    assert!(number_view.range(..500).map(|(_, text)| text.len()).sum::<usize>() > 500 * 10);
    assert_eq!(name_view.iter().map(|(_, values)| values.len()).sum::<usize>(), 1000);
    assert_eq!(allocations() - before, 0);
    assert_eq!(pair_view.keys().count(), 1000);
    assert_eq!(allocations() - before, 1000, "a part with a zero is decoded");
}
