//! Recorded structures report the reads of their lookups.

use silvics::bst::bronson::build::{Baseline2, Restarting2};
use silvics::bst::build::{Baseline, Fixed};
use silvics::structures::At;
use silvics::{
    BronsonTree, CitrusTree, Create, HowleyTree, Objects, Options, OrderedIndex, PinIndex, Pooled,
    Recorded, Shared, SizeClassHeap,
};
use silvics_layout::record::{self, Read, Why};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const KEYS: u64 = 30_000;

/// The structures whose nodes have many entries.
const WIDE: [&str; 6] = ["art", "blocks", "words", "ca_tree", "lfca_tree", "patricia_16"];

/// Key number `n`, in no order (the finaliser of Murmur3).
fn key(n: u64) -> u64 {
    let n = (n ^ (n >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let n = (n ^ (n >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    n ^ (n >> 33)
}

fn filled<I: Create + OrderedIndex<Key = u64>>(options: &Options) -> I {
    let index = I::with_options(options).unwrap();
    for n in 0..KEYS {
        assert_eq!(index.pin().insert(key(n), n), Ok(None));
    }
    index
}

/// The reads of a lookup of key number `n`.
fn reads_of<I: Create + OrderedIndex<Key = u64>>(index: &I, n: u64) -> Vec<Read> {
    let (mut reads, held) = (Vec::new(), index.pin());
    let found = record::of(&mut reads, || held.get(key(n)));
    assert_eq!(found, (n < KEYS).then_some(n));
    reads
}

/// The objects that were read, in order. Successive reads of one object count as one visit.
fn visits(reads: &[Read]) -> Vec<usize> {
    let steps = reads.iter().filter(|read| read.why != Why::Again);
    let mut objects: Vec<usize> = steps.map(|read| read.object).collect();
    objects.dedup();
    objects
}

/// Every read lies within an object of the census. A path has no object twice, all paths begin with
/// a few common objects, and a present key is read in the last object.
fn paths<I: Create + OrderedIndex<Key = u64> + Objects>(name: &str) {
    let mut index: I = filled(&Options::default());
    let paths: Vec<_> = (0..KEYS + 500).map(|n| reads_of(&index, n)).collect();
    let mut sizes = BTreeMap::new();
    index
        .census(&mut |object| {
            sizes.insert(object.address - object.before, object.bytes);
        })
        .unwrap();
    let mut longest = 0;
    let mut seconds: BTreeSet<usize> = BTreeSet::new();
    for (n, reads) in paths.iter().enumerate() {
        for read in reads {
            // The object read may be a part of one in the census: a leaf, for example.
            let (start, size) = sizes.range(..=read.object).next_back().unwrap();
            let first = read.address.checked_sub(*start).expect("not before it");
            assert!(first + read.bytes <= *size, "{name}: {read:?}");
        }
        let visits = visits(reads);
        // A skip list reads a node on each of its levels. In `log-int`, the list may lead from a
        // node without the key to nodes that the search has visited.
        let twice = visits.len() - visits.iter().collect::<BTreeSet<_>>().len();
        let may = match name {
            "skiplist" => visits.len() / 2,
            "log_int" if n as u64 >= KEYS => 2,
            _ => 0,
        };
        assert!(twice <= may, "{name}: {visits:?}");
        assert!(!visits.is_empty(), "{name}: {n}");
        longest = longest.max(visits.len());
        seconds.extend(visits.get(1));
        let ends = reads.iter().filter(|read| read.why == Why::Found);
        let ends: BTreeSet<usize> = ends.map(|read| read.object).collect();
        let all_end = matches!(name, "edge_ext_lf" | "edge_ext_lf_2" | "ticket" | "ext_lf");
        // A leaf of the radix tree, or a block, may hold other keys.
        let may_end = all_end || WIDE.contains(&name) && ends.len() == 1;
        assert_eq!(ends.len(), usize::from(may_end || (n as u64) < KEYS), "{name}: {reads:?}");
        assert!(ends.iter().all(|end| visits.last() == Some(end)), "{name}");
    }
    let wide = WIDE.contains(&name);
    let lengths = match name {
        "ca_tree" | "lfca_tree" => 2..24, // up to 16 route nodes in the restless builds
        _ if wide => 2..10,
        _ => 15..100,
    };
    assert!(lengths.contains(&longest), "{name}: {longest}");
    // The root's children, or the nodes to which a tall tower leads.
    let most = if name == "words" {
        4 << 9
    } else if wide {
        256
    } else {
        60
    };
    assert!((1..=most).contains(&seconds.len()), "{name}: {}", seconds.len());
}

#[test]
fn lookups_report_their_paths() {
    macro_rules! paths_of {
        (@ $name:ident $index:ty) => {
            paths::<At<$index, Recorded<Pooled>>>(stringify!($name));
        };
        (ca_tree avl u64_keys $r:ident $c:ident $f:ident $index:ty) => {
            paths_of! { @ avl $index }
        };
        (ca_tree avl_coarse u64_keys $r:ident $c:ident $f:ident $index:ty) => {
            paths_of! { @ avl $index }
        };
        (ca_tree avl_restless u64_keys $r:ident $c:ident $f:ident $index:ty) => {
            paths_of! { @ avl $index }
        };
        ($structure:ident $build:ident u64_keys $r:ident $c:ident $f:ident $index:ty) => {
            paths_of! { @ $structure $index }
        };
        ($structure:ident $build:ident $keys:ident $($rest:tt)*) => {};
    }
    silvics::for_each_index! { paths_of }
}

#[test]
fn others_report_nothing() {
    assert!(reads_of(&filled::<HowleyTree>(&Options::default()), 3).is_empty());
    let index: HowleyTree<Recorded<Pooled>> = filled(&Options::default());
    let held = index.pin();
    assert_eq!(held.get(key(3)), Some(3));
    let mut reads = Vec::new();
    std::thread::scope(|scope| {
        record::of(&mut reads, || {
            let other = scope.spawn(|| index.pin().get(key(4)));
            assert_eq!(other.join().unwrap(), Some(4), "of another thread's nothing is recorded");
        });
    });
    assert!(reads.is_empty());
}

/// The lines of 64 bytes per visit in which lookups make the reads that `counts` selects, as the
/// average over the objects that they pass. It is not an average over visits, since most visits are
/// to the few objects near the root.
fn lines_per_visit<I: Create + OrderedIndex<Key = u64>>(counts: impl Fn(Why) -> bool) -> f64 {
    let heap = Arc::new(SizeClassHeap::new(silvics::Pages::Small));
    let index: I = filled(&Options { heap: Some(heap), ..Options::default() });
    // The visits to each object, and the lines read in them.
    let mut objects: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for n in 0..KEYS {
        let reads = reads_of(&index, n);
        let passed: Vec<_> = reads.iter().filter(|read| counts(read.why)).collect();
        let lines: BTreeSet<(usize, usize)> = passed
            .iter()
            .flat_map(|read| {
                let last = (read.address + read.bytes - 1) / 64;
                (read.address / 64..=last).map(|line| (read.object, line))
            })
            .collect();
        for object in passed.iter().map(|read| read.object).collect::<BTreeSet<_>>() {
            objects.entry(object).or_default().0 += 1;
        }
        for (object, _) in lines {
            objects.entry(object).or_default().1 += 1;
        }
    }
    let per_visit = objects.values().map(|(visits, lines)| *lines as f64 / *visits as f64);
    per_visit.sum::<f64>() / objects.len() as f64
}

/// bst/1.4: if every visit misses, a search has 1 1/8 misses per 48-byte node that it passes. Our
/// searches load the other link, too, which is as often in the next line.
#[test]
fn a_search_needs_nine_lines_for_eight_nodes_of_48_bytes() {
    type Nodes48 = CitrusTree<Recorded<Shared>, Fixed>;
    let needed = lines_per_visit::<Nodes48>(|why| why == Why::Step);
    assert!((needed - 1.125).abs() <= 0.01, "{needed}");
    let loaded = lines_per_visit::<Nodes48>(|why| matches!(why, Why::Step | Why::Beside));
    assert!((loaded - 1.25).abs() <= 0.01, "{loaded}");
    let whole = lines_per_visit::<HowleyTree<Recorded<Shared>, Baseline>>(|_| true);
    assert!((whole - 1.0).abs() < 1e-9, "{whole}");
}

/// bst/1.8: the version of `occ-avl` is read again after each step, in a line that has been read.
#[test]
fn occ_avl_reads_each_node_again() {
    let again = |reads: &[Read]| reads.iter().filter(|read| read.why == Why::Again).count();
    for reads in [
        reads_of(&filled::<BronsonTree<Recorded<Pooled>, Baseline2>>(&Options::default()), 77),
        reads_of(&filled::<BronsonTree<Recorded<Pooled>, Restarting2>>(&Options::default()), 77),
    ] {
        // The link and the version of each node except the last, and of the holder.
        assert_eq!(again(&reads), 2 * (visits(&reads).len() - 1));
    }
    let tree: BronsonTree<Recorded<Pooled>, Restarting2> = filled(&Options::default());
    let (frozen, mut reads) = (tree.freeze(), Vec::new());
    assert_eq!(record::of(&mut reads, || frozen.get(key(77))), Some(77));
    assert_eq!(again(&reads), 0);
    let (last, passed) = (visits(&reads).len() - 1, Why::Step);
    let steps = reads.iter().filter(|read| read.why == passed).count();
    assert_eq!(steps, 2 * last, "key and link");
}
