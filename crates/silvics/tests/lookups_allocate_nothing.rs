//! Lookups and scans allocate nothing, in every structure of the table: counted by the global
//! allocator of this process.

use silvics::Map;
use silvics_testkit::counting::{Counting, allocations};
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tests lookups in pools and, unless a build differs from another by a policy alone, in shared
/// memory; scans in pools. A lookup that takes a lock may split or join base nodes.
macro_rules! allocate_nothing {
    (alias $($build:tt)*) => {};
    (stress $($build:tt)*) => {};
    (locked $capability:ident $faults:ident $index:ty) => {};
    (suite $capability:ident $faults:ident $index:ty) => {
        allocate_nothing!(@ $capability $index, Pooled);
    };
    (full $capability:ident $faults:ident $index:ty) => {
        allocate_nothing!(@ $capability $index, Pooled Shared);
    };
    (@ points $index:ty, $($placement:ident)+) => {
        #[test]
        fn lookups_allocate_nothing() {
            use silvics::structures::At;
            use silvics_testkit::{holds, lookups, make};
            // Behind a trait object: an allocation that the face adds would be found, too.
            $(holds(lookups::allocate_nothing(make::points::<At<$index, silvics::$placement>>));)+
        }
    };
    (@ scans $index:ty, $($placement:ident)+) => {
        allocate_nothing!(@ points $index, $($placement)+);

        #[test]
        fn scans_allocate_nothing() {
            use silvics::structures::At;
            use silvics_testkit::{holds, lookups, make};
            holds(lookups::scans_allocate_nothing(make::exact::<At<$index, silvics::Pooled>>));
        }
    };
    (@ $ends:ident $($index:tt)+) => {
        allocate_nothing!(@ scans $($index)+);
    };
}

silvics::structure_modules!(allocate_nothing);

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
        let (mut some, mut more) = ([const { None }; 100], [const { None }; 100]);
        name_view.get_many(&asked[..100], &mut some);
        number_view.get_many(&std::array::from_fn::<i32, 100, _>(|n| n as i32), &mut more);
        found + some.iter().flatten().count() + more.iter().flatten().count()
    };
    look(); // this thread's buffer for keys that are encoded
    let before = allocations();
    assert_eq!(look(), 5 * 1000 + 1200 + 1200 - 1 + 200);
    assert!(number_view.range(..500).map(|(_, text)| text.len()).sum::<usize>() > 500 * 10);
    assert_eq!(name_view.iter().map(|(_, values)| values.len()).sum::<usize>(), 1000);
    assert_eq!(allocations() - before, 0);
    assert_eq!(pair_view.keys().count(), 1000);
    assert_eq!(allocations() - before, 1000, "a part with a zero is decoded");
}
