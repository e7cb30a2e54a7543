//! A regression test with a process of its own: other tests would map the same addresses again.

use silvics::{BronsonTree, Domain, Options, OrderedIndex};

/// Symptom: a dropped index kept all its memory if some of it had been retired. Cause: the last
/// sealed batch, which holds the pool, sat in a collector that nobody would pin again. Prevented
/// by: dropping an index flushes its domain.
#[test]
fn a_dropped_index_leaves_nothing_to_its_domain() {
    let domain = Domain::new();
    let options = Options { domain: Some(domain.clone()), ..Options::default() };
    let regions: Vec<_> = {
        let index: BronsonTree = BronsonTree::with_options(&options).expect("memory");
        for key in 0..10_000 {
            index.insert(key, key, &domain.pin()).expect("memory");
        }
        for key in 0..100 {
            index.remove(key, &domain.pin()).expect("memory");
        }
        index.pool_stats().into_iter().flat_map(|s| s.regions).collect()
    };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for region in regions {
        let start = region.start.addr().get();
        let mapped = maps.lines().filter_map(|line| {
            let (from, rest) = line.split_once('-')?;
            let to = rest.split_once(' ')?.0;
            Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
        });
        assert!(!mapped.into_iter().any(|range| range.contains(&start)), "still mapped");
    }
}
