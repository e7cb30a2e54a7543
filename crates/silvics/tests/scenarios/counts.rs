//! Programs with an index that counts its keys: writers beside ranks.

use silvics::counts::Counted;
use silvics::words::Words;
use silvics::{Check, Index, Lookup, Options, OrderStatistics, OrderedEnds, OrderedIndex};
use silvics_sync::model::sequential;
use silvics_testkit::schedules::{Model, Program, Task, beside_one_another};

type Tree = Index<Counted<Words<u64, Model>>>;

pub(crate) const COUNTS: &[Program] = &[
    Program { name: "inserts-beside-ranks", play: inserts },
    Program { name: "the-first-rank", play: first_rank },
    Program { name: "removals-beside-ranks", play: removals },
    Program { name: "many-inserts-at-one-place", play: many_inserts },
    Program { name: "pops-beside-ranks", play: pops },
];

/// The keys that an index has first.
fn tree(keys: impl IntoIterator<Item = u64>, is_counted: bool) -> Tree {
    sequential(|| {
        let tree = Tree::with_options(&Options::default()).expect("memory");
        let guard = tree.domain().pin();
        for key in keys {
            tree.insert(key, key, &guard).expect("memory");
        }
        if is_counted {
            tree.rank(u64::MAX, &guard);
        }
        drop(guard);
        tree
    })
}

/// Runs tasks, and then compares the ranks of all keys with a scan.
fn run(tree: Tree, tasks: Vec<Task<Tree>>) {
    let mut tree = beside_one_another(tree, tasks);
    sequential(|| {
        let keys = tree.check().unwrap_or_else(|violation| panic!("check: {violation}"));
        {
            let guard = tree.domain().pin();
            let last = tree.last(&guard).map_or(0, |(key, _)| key);
            for number in 0..keys {
                let (key, _) = tree.nth(number, &guard).expect("there are more keys");
                assert_eq!(tree.rank(key, &guard), number, "the rank of {key}");
            }
            assert_eq!(tree.rank(last + 1, &guard), keys, "the rank behind all keys");
            assert_eq!(tree.nth(keys, &guard), None);
        }
        tree.check().unwrap_or_else(|violation| panic!("check of a clean tree: {violation}"));
        tree.settle();
        let reachable = tree.reachable().unwrap_or_else(|violation| panic!("{violation}"));
        let live = tree.pool_stats().into_iter().map(|stats| (stats.kind, stats.live_slots));
        assert!(live.eq(reachable.iter().copied()), "not all live objects can be reached");
    });
}

/// Puts or removes keys, and asks for the number of keys after each. `least` of the keys that are
/// there at first are not removed by others, and `most` others may come.
fn writes(writes: &'static [(u64, bool)], (least, most): (usize, usize)) -> Task<Tree> {
    Box::new(move |tree| {
        let mut own = 0;
        for &(key, comes) in writes {
            let guard = tree.domain().pin();
            if comes {
                own += usize::from(tree.insert(key, key, &guard).expect("memory").is_none());
            } else {
                own -= usize::from(tree.remove(key, &guard).expect("memory").is_some());
            }
            let rank = tree.rank(1000, &guard);
            let range = least + own..=least + own + most;
            assert!(range.contains(&rank), "{rank} keys, not {range:?}");
            assert!(tree.nth(least - 1, &guard).is_some(), "there are more than {least} keys");
        }
    })
}

/// Two tasks insert keys, and each of them must find its own.
fn inserts() {
    let tree = tree([10, 20, 30, 40, 50], true);
    run(
        tree,
        vec![writes(&[(11, true), (12, true)], (5, 2)), writes(&[(13, true), (41, true)], (5, 2))],
    );
}

/// The directory is made while keys come.
fn first_rank() {
    let tree = tree([10, 20, 30, 40, 50], false);
    run(tree, vec![writes(&[(11, true)], (5, 2)), writes(&[(21, true), (51, true)], (5, 1))]);
}

/// Buckets become small while keys go and come.
fn removals() {
    let tree = tree((1..=12).map(|n| 10 * n), true);
    let removes: Task<Tree> = Box::new(|tree| {
        for key in [10, 20, 30, 40, 50, 60] {
            let guard = tree.domain().pin();
            tree.remove(key, &guard).expect("memory");
        }
        let guard = tree.domain().pin();
        let rank = tree.rank(1000, &guard);
        assert!((6..=8).contains(&rank), "{rank} keys");
    });
    let others: Task<Tree> = Box::new(|tree| {
        for key in [35, 65] {
            let guard = tree.domain().pin();
            tree.insert(key, key, &guard).expect("memory");
            let rank = tree.rank(1000, &guard);
            assert!((7..=14).contains(&rank), "{rank} keys");
        }
    });
    run(tree, vec![removes, others]);
}

/// Buckets, groups and sections are divided while keys come.
fn many_inserts() {
    let tree = tree((1..=10).map(|n| 10 * n), true);
    let inserts = |from: u64| -> Task<Tree> {
        Box::new(move |tree| {
            for key in from..from + 4 {
                let guard = tree.domain().pin();
                tree.insert(key, key, &guard).expect("memory");
            }
            let guard = tree.domain().pin();
            let rank = tree.rank(1000, &guard);
            assert!((14..=18).contains(&rank), "{rank} keys");
        })
    };
    run(tree, vec![inserts(51), inserts(55)]);
}

/// Keys are taken from both ends.
fn pops() {
    let tree = tree((1..=8).map(|n| 10 * n), true);
    let pops = |last: bool| -> Task<Tree> {
        Box::new(move |tree| {
            for popped in 1..=2 {
                let guard = tree.domain().pin();
                let entry = if last { tree.pop_last(&guard) } else { tree.pop_first(&guard) };
                assert!(entry.expect("memory").is_some());
                let rank = tree.rank(1000, &guard);
                assert!((6 - popped..=8 - popped).contains(&rank), "{rank} keys");
            }
        })
    };
    run(tree, vec![pops(false), pops(true)]);
}
