//! Every structure in many orders: see `silvics_testkit::schedules`. Runs with
//! `just shuttle`, or
//! `RUSTFLAGS="--cfg silvics_shuttle" cargo test --release -p silvics --test schedules`.
#![cfg(silvics_shuttle)]

mod scenarios;

use scenarios::{
    BATCHES, CHAINS, COMMON, COPIES, ENDS, FLAGS, HOT, LATE_HELPERS, LOCKED_EDGES, NODES,
    ORDERINGS, PROMOTIONS, RELOCATIONS, RESERVATIONS, ROTATIONS, SCANS, SUCCESSIONS, TOWERS, TURNS,
    reorganizing,
};
use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::natarajan::build::{Collocated, Fixed2};
use silvics::structures::At;
use silvics::{
    ArtTree, BronsonTree, CitrusTree, Create, DrachslerTree, EllenTree, HowleyTree, NatarajanTree,
    RamachandranTree, SkipList, TicketTree,
};
use silvics_testkit::mapped::Mapped;
use silvics_testkit::schedules::Step::{
    Exchange, Get, GetMany, Insert, Range, RangeRev, Remove, TryInsert, Walk, WalkRev,
};
use silvics_testkit::schedules::{
    Act, Model, Scenario, Step, Stops, ends, explore, hunt_stop, points, scans, stops,
};
use silvics_testkit::{ScanSubject, Subject};

/// Schedules of a scenario and scheduler, unless `SILVICS_SCHEDULES` says otherwise.
const SCHEDULES: usize = 2000;

fn explore_all<I: Create + Subject>(structure: &str, lists: &[&'static [Scenario]], act: Act<I>) {
    for scenario in lists.iter().copied().flatten() {
        explore(structure, scenario, act, SCHEDULES);
    }
}

#[test]
fn edge_ext_lf() {
    let lists = &[COMMON, CHAINS, SCANS, PROMOTIONS, BATCHES];
    explore_all::<NatarajanTree<Model>>("edge-ext-lf", lists, scans);
}

/// Two nodes in one object.
#[test]
fn edge_ext_lf_collocated() {
    let lists = &[COMMON, CHAINS, BATCHES];
    explore_all::<NatarajanTree<Model, Collocated>>("edge-ext-lf:collocated", lists, points);
}

/// Lookups that keep a record, nodes of one kind.
#[test]
fn edge_ext_lf_2() {
    explore_all::<NatarajanTree<Model, Fixed2>>("edge-ext-lf-2", &[COMMON, CHAINS], points);
}

#[test]
fn ticket() {
    let lists = &[COMMON, CHAINS, LOCKED_EDGES, SCANS, PROMOTIONS];
    explore_all::<TicketTree<Model>>("ticket", lists, scans);
}

#[test]
fn occ_avl() {
    explore_all::<BronsonTree<Model>>("occ-avl", &[COMMON, ROTATIONS, TURNS], points);
}

/// The descent that goes back level by level.
#[test]
fn occ_avl_recursive() {
    explore_all::<BronsonTree<Model, Fixed>>("occ-avl:fixed", &[ROTATIONS], points);
}

/// Values in slots of their own, which must be there as long as they are lent.
#[test]
fn map() {
    explore_all::<Mapped<u64, Model>>("map", &[COMMON], points);
}

#[test]
fn citrus() {
    explore_all::<CitrusTree<Model>>("citrus", &[COMMON, COPIES], points);
}

#[test]
fn log_int() {
    let lists = [COMMON, ORDERINGS, SCANS];
    explore_all::<DrachslerTree<Model>>("log-int", &lists, scans);
}

#[test]
fn ext_lf() {
    let lists = &[COMMON, CHAINS, FLAGS, SCANS, PROMOTIONS];
    explore_all::<EllenTree<Model>>("ext-lf", lists, scans);
}

/// The other builds differ in what is one pool, and in how lookups descend.
#[test]
fn ext_lf_builds() {
    explore_all::<EllenTree<Model, Fixed>>("ext-lf:fixed", &[FLAGS], points);
    explore_all::<EllenTree<Model, Baseline>>("ext-lf:baseline", &[FLAGS], points);
}

#[test]
fn int_lf() {
    let lists = &[COMMON, CHAINS, RELOCATIONS, LATE_HELPERS];
    explore_all::<HowleyTree<Model>>("int-lf", lists, points);
}

#[test]
fn edge_int_lf() {
    explore_all::<RamachandranTree<Model>>(
        "edge-int-lf",
        &[COMMON, SUCCESSIONS, RESERVATIONS],
        points,
    );
}

/// Its lookups are another search.
#[test]
fn edge_int_lf_baseline() {
    let moved: &'static [Scenario] = &SUCCESSIONS[..5];
    explore_all::<RamachandranTree<Model, Baseline>>("edge-int-lf:baseline", &[moved], points);
}

#[test]
fn art() {
    explore_all::<ArtTree<u64, Model>>("art", &[COMMON, NODES, SCANS], scans);
}

/// Keys that are prefixes of others, and skip more than a node remembers.
#[test]
fn art_bytes() {
    explore_all::<ArtTree<[u8], Model>>("art-bytes", &[COMMON, NODES, SCANS], scans);
}

/// Calls that see the whole index, judged together with all others.
#[test]
fn art_ends() {
    for scenario in ENDS {
        explore::<ArtTree<u64, Model>>("art", scenario, ends, SCHEDULES / 2);
        explore::<ArtTree<[u8], Model>>("art-bytes", scenario, ends, SCHEDULES / 4);
    }
}

/// What is read moves, beside who reads and writes it.
#[test]
fn art_reorganizes() {
    for scenario in HOT {
        explore::<ArtTree<u64, Model>>("art", scenario, reorganizing, SCHEDULES / 4);
        explore::<ArtTree<[u8], Model>>("art-bytes", scenario, reorganizing, SCHEDULES / 8);
    }
}

fn skiplist<I: Create + ScanSubject>(structure: &str) {
    explore_all::<I>(structure, &[COMMON, TOWERS, SCANS, BATCHES], scans);
}

#[test]
fn skiplist_u64() {
    skiplist::<SkipList<u64, Model>>("skiplist");
}

#[test]
fn skiplist_bytes() {
    skiplist::<SkipList<[u8], Model>>("skiplist-bytes");
}

/// Slots that go from task to task: more are free at first than a magazine holds, and each task
/// allocates and frees.
const TURNOVER: &[Scenario] = &[Scenario {
    name: "slots-change-hands",
    keys: 8,
    before: &[
        Insert(0, 1),
        Insert(1, 2),
        Insert(2, 3),
        Insert(3, 4),
        Insert(4, 5),
        Insert(5, 6),
        Insert(6, 7),
        Insert(7, 8),
        Remove(0),
        Remove(1),
        Remove(2),
        Remove(3),
        Remove(4),
        Remove(5),
        Remove(6),
    ],
    tasks: &[
        &[
            Insert(0, 9),
            Remove(0),
            Insert(1, 10),
            Insert(2, 11),
            Remove(1),
            Remove(2),
            Insert(0, 12),
        ],
        &[
            Insert(4, 13),
            Insert(5, 14),
            Remove(4),
            Remove(5),
            Insert(6, 15),
            Remove(7),
            Insert(4, 16),
        ],
    ],
}];

/// The pools themselves. Their magazines hold two slots in this build, so that slots go from task to
/// task through bitmaps and lists. One handed out twice shows as a broken structure; when a pool is
/// dropped in this build, it counts its slots, and misses those that were lost.
#[test]
fn pools() {
    for scenario in [COMMON, TURNOVER].into_iter().flatten() {
        macro_rules! in_pools {
            ($structure:ident $build:ident $keys:ident full $c:ident $f:ident $index:ty) => {
                let name = concat!(stringify!($structure), ":", stringify!($build), ":pooled");
                explore::<$index>(name, scenario, points, SCHEDULES / 10);
            };
            ($structure:ident $build:ident $keys:ident suite $($rest:tt)*) => {};
        }
        silvics::for_each_index! { in_pools }
    }
}

/// Writers that stop: every verb, and `compare_exchange` in each of its forms, on the keys that the
/// other task needs.
const STOPS: &[Stops] = &[
    Stops {
        name: "remove",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        victim: Remove(1),
        other: &[
            Get(1),
            Remove(0),
            Insert(1, 5),
            Remove(2),
            TryInsert(2, 6),
            Exchange(1, Some(5), None),
            Insert(4, 7),
            Remove(1),
            Insert(0, 8),
        ],
    },
    Stops {
        name: "insert",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2)],
        victim: Insert(1, 3),
        other: &[
            Get(1),
            Remove(1),
            TryInsert(1, 4),
            Insert(1, 5),
            Remove(0),
            Remove(2),
            Insert(3, 6),
            Remove(1),
            Insert(0, 7),
        ],
    },
    Stops {
        name: "update",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: Insert(1, 4),
        other: &[
            Get(1),
            Insert(1, 5),
            Remove(1),
            Remove(0),
            Insert(1, 6),
            Exchange(2, Some(3), Some(7)),
            Remove(2),
        ],
    },
    Stops {
        name: "exchange",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 2)],
        victim: Exchange(1, Some(2), None),
        other: &[Remove(0), Insert(1, 5), Remove(1), Insert(2, 6), Get(1)],
    },
    Stops {
        name: "exchange-inserts",
        keys: 3,
        before: &[Insert(0, 1), Insert(2, 2)],
        victim: Exchange(1, None, Some(3)),
        other: &[Get(1), Remove(0), Insert(1, 5), Remove(1), TryInsert(1, 6), Remove(2)],
    },
    Stops {
        name: "exchange-updates",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: Exchange(1, Some(2), Some(4)),
        other: &[Get(1), Insert(1, 5), Remove(0), Remove(1), TryInsert(1, 6), Remove(2)],
    },
    Stops {
        name: "try-insert",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2)],
        victim: TryInsert(1, 3),
        other: &[Get(1), TryInsert(1, 4), Remove(1), Remove(0), Insert(1, 5), Remove(2), Remove(1)],
    },
];

/// Lookups that stop, which nobody may wait for.
const LOOKUPS: &[Stops] = &[
    Stops {
        name: "get",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        victim: Get(0),
        other: &[Remove(1), Insert(3, 4), Remove(0), Remove(2), Insert(1, 5), Insert(0, 6)],
    },
    Stops {
        name: "get-many",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        victim: GetMany(0, 2),
        other: &[Remove(1), Insert(3, 4), Remove(0), Remove(2), Insert(1, 5), Insert(0, 6)],
    },
];

/// Writers that stop with a node whose key moves up, or that has the right child only, or the left
/// one only: whatever the victim has marked, the other comes by.
const SUCCESSION_STOPS: &[Stops] = &[
    Stops {
        name: "promotion",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(3, 4), Insert(4, 5)],
        victim: Remove(1),
        other: &[
            Get(3),
            Get(2),
            Insert(2, 6),
            Insert(3, 7),
            Remove(3),
            Remove(5),
            Remove(0),
            TryInsert(1, 8),
            Remove(4),
        ],
    },
    Stops {
        name: "promotion-of-the-right-child",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        victim: Exchange(1, Some(1), None),
        other: &[Get(2), Insert(3, 4), Remove(0), Remove(2), Insert(2, 5), Remove(1), Insert(1, 6)],
    },
    Stops {
        name: "left-child-only",
        keys: 4,
        before: &[Insert(3, 1), Insert(1, 2), Insert(0, 3)],
        victim: Remove(1),
        other: &[Insert(2, 4), Get(1), Remove(0), Insert(1, 5), Remove(3), Remove(1)],
    },
    Stops {
        name: "update-of-two-children",
        keys: 5,
        before: &[Insert(3, 1), Insert(1, 2), Insert(0, 3), Insert(2, 4)],
        victim: Insert(1, 5),
        other: &[Get(1), Remove(2), Insert(1, 6), Remove(3), Insert(2, 7), Remove(1), Remove(0)],
    },
];

/// Scans that stop.
const SCAN_STOPS: &[Stops] = &[
    Stops {
        name: "range",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: Range(0, 3),
        other: &[Remove(1), Insert(2, 4), Insert(1, 5), Remove(0), Range(0, 3), Remove(2)],
    },
    Stops {
        name: "reverse-range",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: RangeRev(0, 3),
        other: &[Remove(1), Insert(2, 4), Insert(1, 5), Remove(0), RangeRev(0, 3), Remove(2)],
    },
    Stops {
        name: "cursor",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: Walk(0, 3),
        other: &[Remove(1), Insert(2, 4), Insert(1, 5), Remove(0), Walk(0, 3), Remove(2)],
    },
    Stops {
        name: "reverse-cursor",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: WalkRev(3, 3),
        other: &[Remove(1), Insert(2, 4), Insert(1, 5), Remove(0), WalkRev(3, 3), Remove(2)],
    },
];

/// Whatever a stopped task leaves behind, the other finishes without it.
fn others_finish<I: Create + Subject>(structure: &str, victims: &'static [Stops], act: Act<I>) {
    for victim in victims {
        if let Some(places) = stops::<I>(structure, victim, act) {
            assert!(places >= 5, "{}: only {places} places to stop at", victim.name);
        }
    }
}

#[test]
fn edge_ext_lf_is_lock_free() {
    others_finish::<NatarajanTree<Model>>("edge-ext-lf", STOPS, points);
    others_finish::<NatarajanTree<Model>>("edge-ext-lf", LOOKUPS, points);
    others_finish::<NatarajanTree<Model>>("edge-ext-lf", SCAN_STOPS, scans);
}

#[test]
fn ext_lf_is_lock_free() {
    others_finish::<EllenTree<Model>>("ext-lf", STOPS, points);
    others_finish::<EllenTree<Model>>("ext-lf", LOOKUPS, points);
    others_finish::<EllenTree<Model>>("ext-lf", SCAN_STOPS, scans);
}

/// A removal that lifts the successor, and stops; then lookups and writers at each of its nodes.
const RELOCATION_STOPS: &[Stops] = &[
    Stops {
        name: "relocation",
        keys: 8,
        before: &[Insert(1, 1), Insert(0, 2), Insert(6, 3), Insert(3, 4), Insert(7, 5)],
        victim: Remove(1),
        other: &[
            Get(3),
            Get(1),
            Get(2),
            Get(4),
            Insert(3, 6),
            Insert(2, 7),
            Insert(4, 8),
            Remove(3),
            Get(3),
            Remove(6),
            Insert(1, 9),
            Remove(0),
        ],
    },
    Stops {
        // Lookups of 2 go right at 1.
        name: "removal-at-a-right-turn",
        keys: 4,
        before: &[Insert(1, 1), Insert(3, 2)],
        victim: Remove(1),
        other: &[Get(2), Get(1), Get(2), Insert(2, 3), Get(2), Remove(3)],
    },
    Stops {
        name: "relocation-of-a-child",
        keys: 5,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3), Insert(4, 4)],
        victim: Remove(1),
        other: &[
            Get(2),
            Get(1),
            Insert(2, 5),
            Insert(3, 6),
            Remove(2),
            Insert(1, 7),
            Remove(0),
            Remove(4),
        ],
    },
];

#[test]
fn int_lf_is_lock_free() {
    others_finish::<HowleyTree<Model>>("int-lf", STOPS, points);
    others_finish::<HowleyTree<Model>>("int-lf", RELOCATION_STOPS, points);
    others_finish::<HowleyTree<Model>>("int-lf", LOOKUPS, points);
}

#[test]
fn edge_int_lf_is_lock_free() {
    others_finish::<RamachandranTree<Model>>("edge-int-lf", STOPS, points);
    others_finish::<RamachandranTree<Model>>("edge-int-lf", SUCCESSION_STOPS, points);
    others_finish::<RamachandranTree<Model>>("edge-int-lf", LOOKUPS, points);
}

fn skiplist_is_lock_free<I: Create + ScanSubject>(structure: &str) {
    others_finish::<I>(structure, STOPS, scans);
    others_finish::<I>(structure, LOOKUPS, scans);
    others_finish::<I>(structure, SCAN_STOPS, scans);
}

#[test]
fn skiplist_u64_is_lock_free() {
    skiplist_is_lock_free::<SkipList<u64, Model>>("skiplist");
}

#[test]
fn skiplist_bytes_is_lock_free() {
    skiplist_is_lock_free::<SkipList<[u8], Model>>("skiplist-bytes");
}

/// Its writers take locks, and the same test says so; nobody waits for its lookups.
#[test]
fn occ_avl_blocks_for_writers_only() {
    others_finish::<BronsonTree<Model>>("occ-avl", LOOKUPS, points);
    for victim in STOPS {
        let (at, reason) = hunt_stop::<BronsonTree<Model>>(victim, points)
            .expect_err("a task that stops under a lock must hold the other up");
        assert!(reason.contains("max_steps"), "{}, at {at}: {reason}", victim.name);
    }
}

/// Its writers take locks, and nobody waits for its lookups and scans.
#[test]
fn log_int_blocks_for_writers_only() {
    others_finish::<DrachslerTree<Model>>("log-int", LOOKUPS, scans);
    others_finish::<DrachslerTree<Model>>("log-int", SCAN_STOPS, scans);
    for victim in STOPS {
        let (at, reason) = hunt_stop::<DrachslerTree<Model>>(victim, scans)
            .expect_err("a task that stops under a lock must hold the other up");
        assert!(reason.contains("max_steps"), "{}, at {at}: {reason}", victim.name);
    }
}

/// The same of another tree with locks.
#[test]
fn ticket_blocks_for_writers_only() {
    others_finish::<TicketTree<Model>>("ticket", LOOKUPS, points);
    others_finish::<TicketTree<Model>>("ticket", SCAN_STOPS, scans);
    for victim in STOPS {
        let (at, reason) = hunt_stop::<TicketTree<Model>>(victim, points)
            .expect_err("a task that stops under a lock must hold the other up");
        assert!(reason.contains("max_steps"), "{}, at {at}: {reason}", victim.name);
    }
}

/// The same of the radix tree.
#[test]
fn art_blocks_for_writers_only() {
    others_finish::<ArtTree<u64, Model>>("art", LOOKUPS, points);
    others_finish::<ArtTree<u64, Model>>("art", SCAN_STOPS, scans);
    others_finish::<ArtTree<[u8], Model>>("art-bytes", LOOKUPS, points);
    others_finish::<ArtTree<[u8], Model>>("art-bytes", SCAN_STOPS, scans);
    for victim in STOPS {
        let (at, reason) = hunt_stop::<ArtTree<u64, Model>>(victim, points)
            .expect_err("a task that stops under a lock must hold the other up");
        assert!(reason.contains("max_steps"), "{}, at {at}: {reason}", victim.name);
    }
}

/// Lookups that stop, beside updates that copy no node: for these nobody has to wait.
const UNCOPIED: &[Stops] = &[
    Stops {
        name: "get-beside-splices",
        keys: 5,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        victim: Get(0),
        other: &[
            Insert(1, 4),
            Remove(0),
            Insert(4, 5),
            Remove(1),
            Exchange(4, Some(5), Some(6)),
            Insert(3, 7),
            Remove(4),
            Get(3),
        ],
    },
    Stops {
        name: "get-many-beside-splices",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        victim: GetMany(0, 2),
        other: &[Remove(2), Remove(1), Insert(3, 4), TryInsert(0, 5), Remove(0), Insert(2, 6)],
    },
];

/// A lookup that stops in its descent holds up who removes a node with two children, and nobody
/// else. Writers that stop hold up others, as their locks do.
#[test]
fn citrus_blocks_for_writers_and_copies_only() {
    others_finish::<CitrusTree<Model>>("citrus", UNCOPIED, points);
    for victim in LOOKUPS.iter().chain(STOPS) {
        let (at, reason) = hunt_stop::<CitrusTree<Model>>(victim, points)
            .expect_err("a task that stops in a descent or under a lock must hold the other up");
        assert!(reason.contains("max_steps"), "{}, at {at}: {reason}", victim.name);
    }
}

/// Lookups alone, beside others, and beside an insertion that makes 1 and 0 move down.
const fn lookups(victim: Step) -> [Stops; 3] {
    const BEFORE: &[Step] = &[Insert(1, 1), Insert(0, 2), Insert(2, 3), Insert(3, 4), Insert(4, 5)];
    const OTHERS: [&[Step]; 3] = [&[], &[Get(1), Get(0), Get(5)], &[Insert(5, 6)]];
    let [alone, beside, rotating] = OTHERS;
    [
        Stops { name: "lookup", keys: 6, before: BEFORE, victim, other: alone },
        Stops { name: "lookup", keys: 6, before: BEFORE, victim, other: beside },
        Stops { name: "lookup", keys: 6, before: BEFORE, victim, other: rotating },
    ]
}
static FOUND: [Stops; 3] = lookups(Get(0));
static MISSED: [Stops; 3] = lookups(Get(5));
static MANY: [Stops; 3] = lookups(GetMany(0, 5));

/// How many accesses the victim makes at most, in any schedule.
fn accesses<I: Create + Subject>(stops: &'static Stops) -> u64 {
    match hunt_stop::<I>(stops, points) {
        Ok(places) => places,
        Err((at, reason)) => panic!("at {at}: {reason}"),
    }
}

/// While nobody writes no lookup starts again: it makes as many accesses beside others as alone.
#[test]
fn lookups_beside_lookups_never_restart() {
    fn holds<I: Create + Subject>(structure: &str) {
        for [alone, beside, _] in [&FOUND, &MISSED] {
            let counts = [alone, beside].map(accesses::<I>);
            assert_eq!(counts[0], counts[1], "{structure}, {:?}", alone.victim);
        }
    }
    macro_rules! holds_of {
        ($structure:ident $build:ident $keys:ident $r:ident $c:ident $f:ident $index:ty) => {
            holds::<At<$index, Model>>(concat!(stringify!($structure), ":", stringify!($build)));
        };
    }
    silvics::for_each_index! { holds_of }
    // What is counted does grow beside a writer.
    let [alone, _, rotating] = &MANY;
    let counts = [alone, rotating].map(accesses::<BronsonTree<Model>>);
    assert!(counts[1] > counts[0], "{counts:?}");
}
