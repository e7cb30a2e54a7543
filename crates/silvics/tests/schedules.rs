//! Every structure in many schedules: see `silvics_testkit::schedules`. Run it: `just shuttle`.
#![cfg(silvics_shuttle)]

#[path = "schedules/patricia.rs"]
mod patricia;
mod scenarios;
#[path = "scenarios/stops.rs"]
mod stops;
#[path = "schedules/unprotected.rs"]
mod unprotected;

use scenarios::{
    ADAPTING, ADAPTING_ENDS, ADAPTING_RANGES, ADAPTING_UPDATES, BATCHES, BLOCK_ENDS, BLOCKS,
    CHAINS, COMMON, COPIES, COUNTS, ENDS, FLAGS, HELD_KEYS, HOT, JOINS, LATE_HELPERS, LOCKED_EDGES,
    MULTI, NODES, ORDERINGS, PROMOTIONS, RELOCATIONS, RESERVATIONS, ROOTS, ROTATIONS, SCANS,
    SUCCESSIONS, TOWERS, TURNS, VERSIONS, WORD_ENDS, WORDS, reorganizing,
};
use silvics::art::hot::Sampled;
use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::natarajan::build::{Collocated, Fixed2};
use silvics::ca::build::{AvlRestless, Restless, Spin};
use silvics::key::Prefixed;
use silvics::structures::At;
use silvics::{
    ArtTree, BlockTree, BronsonTree, CaTree, CitrusTree, Create, DrachslerTree, EllenTree,
    HowleyTree, LfcaTree, NatarajanTree, RamachandranTree, SkipList, TicketTree, WordTree,
};
use silvics_testkit::mapped::Mapped;
use silvics_testkit::ordmapped::OrdMapped;
use silvics_testkit::schedules::Step::{Get, GetMany, Insert, Remove};
use silvics_testkit::schedules::{
    Act, Model, Scenario, Step, Stops, atomic, ends, explore, explore_program, first_bytes,
    hunt_stop, points, scans, stops, updates,
};
use silvics_testkit::{ScanSubject, Subject};
use stops::{
    BESIDE_READERS, JOIN_STOPS, LOOKUPS, RELOCATION_STOPS, SCAN_STOPS, STOPS, SUCCESSION_STOPS,
    UNCOPIED,
};

/// The number of schedules per scenario and scheduler, unless `SILVICS_SCHEDULES` is set.
const SCHEDULES: usize = 300;

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

/// This build puts two nodes into one object.
#[test]
fn edge_ext_lf_collocated() {
    let lists = &[COMMON, CHAINS, BATCHES];
    explore_all::<NatarajanTree<Model, Collocated>>("edge-ext-lf:collocated", lists, points);
}

/// In this build lookups keep a record, and all nodes are of one kind.
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

/// In this build the descent goes back level by level.
#[test]
fn occ_avl_recursive() {
    explore_all::<BronsonTree<Model, Fixed>>("occ-avl:fixed", &[ROTATIONS], points);
}

/// Values have slots of their own, which must stay valid while the values are borrowed.
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

/// These builds differ in the kinds that share a pool, and in how lookups descend.
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

/// The lookups of this build are another search.
#[test]
fn edge_int_lf_baseline() {
    let moved: &'static [Scenario] = &SUCCESSIONS[..5];
    explore_all::<RamachandranTree<Model, Baseline>>("edge-int-lf:baseline", &[moved], points);
}

#[test]
fn art() {
    explore_all::<ArtTree<u64, Model>>("art", &[COMMON, NODES, SCANS], scans);
    explore_all::<ArtTree<u64, Model>>("art", &[ROOTS], first_bytes);
}

/// The keys are prefixes of others, and skip more bytes than a node remembers.
#[test]
fn art_bytes() {
    explore_all::<ArtTree<[u8], Model>>("art-bytes", &[COMMON, NODES, SCANS], scans);
}

/// Calls of the ends see the whole index, and are judged together with all other calls.
#[test]
fn art_ends() {
    for scenario in ENDS {
        explore::<ArtTree<u64, Model>>("art", scenario, ends, SCHEDULES / 2);
        explore::<ArtTree<[u8], Model>>("art-bytes", scenario, ends, SCHEDULES / 4);
    }
}

/// A block has three entries, and a node three children.
#[test]
fn blocks() {
    let lists = [COMMON, NODES, SCANS, BATCHES, BLOCKS];
    explore_all::<BlockTree<u64, Model>>("blocks", &lists, scans);
    explore_all::<BlockTree<u64, Model>>("blocks", &[ROOTS], first_bytes);
}

#[test]
fn blocks_bytes() {
    explore_all::<BlockTree<[u8], Model>>("blocks-bytes", &[COMMON, SCANS, BLOCKS], scans);
}

/// All keys of these scenarios begin with the same bytes, but part after some more.
#[test]
fn blocks_prefixes() {
    let lists = [COMMON, SCANS, BLOCKS];
    explore_all::<BlockTree<Prefixed<'static>, Model>>("blocks-prefixes", &lists, scans);
    for scenario in ENDS.iter().chain(BLOCK_ENDS) {
        let name = "blocks-prefixes";
        explore::<BlockTree<Prefixed<'static>, Model>>(name, scenario, ends, SCHEDULES / 4);
    }
}

#[test]
fn blocks_ends() {
    for scenario in ENDS.iter().chain(BLOCK_ENDS) {
        explore::<BlockTree<u64, Model>>("blocks", scenario, ends, SCHEDULES / 2);
        explore::<BlockTree<[u8], Model>>("blocks-bytes", scenario, ends, SCHEDULES / 4);
    }
}

/// A block has three entries, an array four slots, and a node four children.
#[test]
fn words() {
    let lists = [COMMON, NODES, SCANS, BATCHES, WORDS];
    explore_all::<WordTree<u64, Model>>("words", &lists, scans);
    explore_all::<WordTree<u64, Model>>("words", &[ROOTS], first_bytes);
    explore_all::<WordTree<u128, Model>>("words-u128", &[COMMON, SCANS, WORDS], scans);
}

#[test]
fn words_ends() {
    for scenario in ENDS.iter().chain(WORD_ENDS) {
        explore::<WordTree<u64, Model>>("words", scenario, ends, SCHEDULES / 2);
        explore::<WordTree<u128, Model>>("words-u128", scenario, ends, SCHEDULES / 4);
    }
}

/// A node of a container has three entries. Base nodes are split and joined all the time.
#[test]
fn ca_tree() {
    let lists = [COMMON, SCANS, ADAPTING];
    explore_all::<CaTree<u64, Model, Restless>>("ca-tree:restless", &lists, scans);
    explore_all::<CaTree<[u8], Model, Restless>>("ca-tree:restless-bytes", &lists, scans);
    explore_all::<CaTree<u64, Model>>("ca-tree", &[COMMON, NODES, SCANS, BATCHES], scans);
    explore_all::<CaTree<u128, Model>>("ca-tree-u128", &[COMMON, SCANS], scans);
}

/// AVL trees under readers–writer locks, and blocks under spin locks.
#[test]
fn ca_tree_locked() {
    let lists = [COMMON, SCANS, ADAPTING];
    explore_all::<CaTree<u64, Model, AvlRestless>>("ca-tree:avl-restless", &lists, scans);
    let name = "ca-tree:avl-restless-bytes";
    explore_all::<CaTree<[u8], Model, AvlRestless>>(name, &lists, scans);
    let name = "ca-tree:avl-restless-u128";
    explore_all::<CaTree<u128, Model, AvlRestless>>(name, &[NODES, BATCHES], scans);
    explore_all::<CaTree<u64, Model, Spin>>("ca-tree:spin", &[COMMON, SCANS], scans);
}

#[test]
fn ca_tree_ends() {
    for scenario in ENDS.iter().chain(ADAPTING_ENDS) {
        let name = "ca-tree:avl-restless";
        explore::<CaTree<u64, Model, AvlRestless>>(name, scenario, ends, SCHEDULES / 2);
        let name = "ca-tree:restless";
        explore::<CaTree<u64, Model, Restless>>(name, scenario, ends, SCHEDULES / 2);
        explore::<CaTree<[u8], Model>>("ca-tree-bytes", scenario, ends, SCHEDULES / 4);
    }
}

#[test]
fn ca_tree_ranges() {
    for scenario in ADAPTING_RANGES.iter().chain(ADAPTING_UPDATES) {
        let name = "ca-tree:avl-restless";
        explore::<CaTree<u64, Model, AvlRestless>>(name, scenario, updates, SCHEDULES);
        let name = "ca-tree:restless";
        explore::<CaTree<u64, Model, Restless>>(name, scenario, updates, SCHEDULES);
        let name = "ca-tree:restless-bytes";
        explore::<CaTree<[u8], Model, Restless>>(name, scenario, updates, SCHEDULES / 2);
    }
}

/// A node of a container has three entries. Base nodes are split and joined all the time.
#[test]
fn lfca_tree() {
    let lists = [COMMON, SCANS, ADAPTING, JOINS];
    explore_all::<LfcaTree<u64, Model, Restless>>("lfca-tree:restless", &lists, scans);
    explore_all::<LfcaTree<[u8], Model, Restless>>("lfca-tree:restless-bytes", &lists, scans);
    explore_all::<LfcaTree<u64, Model>>("lfca-tree", &[COMMON, NODES, SCANS, BATCHES], scans);
    explore_all::<LfcaTree<u128, Model>>("lfca-tree-u128", &[COMMON, SCANS], scans);
}

/// An index that counts its keys, maps with versions and with several values for each key, and a
/// table of IP prefixes, in programs of their own.
#[test]
fn programs() {
    #[cfg(feature = "lpm")]
    for program in scenarios::LPM {
        explore_program("lpm", *program, SCHEDULES);
    }
    for (index, programs) in [("counts", COUNTS), ("versions", VERSIONS), ("multi", MULTI)] {
        for program in programs {
            explore_program(index, *program, SCHEDULES);
        }
    }
}

/// Keys have slots of their own, and route nodes have some of them.
#[test]
fn ordmap() {
    let lists = [COMMON, HELD_KEYS];
    explore_all::<OrdMapped<u128, Model, Restless>>("ordmap:restless", &lists, points);
}

#[test]
fn lfca_tree_ranges() {
    for scenario in ADAPTING_RANGES {
        let name = "lfca-tree:restless";
        explore::<LfcaTree<u64, Model, Restless>>(name, scenario, atomic, SCHEDULES);
        let name = "lfca-tree:restless-bytes";
        explore::<LfcaTree<[u8], Model, Restless>>(name, scenario, atomic, SCHEDULES / 2);
    }
}

#[test]
fn lfca_tree_ends() {
    for scenario in ENDS.iter().chain(ADAPTING_ENDS) {
        let name = "lfca-tree:restless";
        explore::<LfcaTree<u64, Model, Restless>>(name, scenario, ends, SCHEDULES / 2);
        explore::<LfcaTree<[u8], Model>>("lfca-tree-bytes", scenario, ends, SCHEDULES / 4);
    }
}

/// Leaves and nodes move while other tasks read and write them.
#[test]
fn art_reorganizes() {
    for scenario in HOT {
        explore::<ArtTree<u64, Model, Sampled>>("art", scenario, reorganizing, SCHEDULES / 4);
        explore::<ArtTree<[u8], Model, Sampled>>(
            "art-bytes",
            scenario,
            reorganizing,
            SCHEDULES / 8,
        );
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

/// A scenario in which slots go from task to task: more slots are free at first than a magazine
/// holds, and each task allocates and frees.
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

/// The name of a structure with this type of keys, as failures and figures state it.
fn named(structure: &str, keys: &str) -> String {
    let suffix = match keys {
        "byte_keys" => "-bytes",
        "u128_keys" => "-u128",
        _ => "",
    };
    structure.replace('_', "-") + suffix
}

/// Structures in real pools. Magazines hold two slots in this build, so that slots go from task to
/// task through bitmaps and lists. A slot that is handed out twice shows as a broken structure.
/// When a pool is dropped in this build, it counts its slots, and reports lost ones.
#[test]
fn pools() {
    for scenario in [COMMON, TURNOVER].into_iter().flatten() {
        macro_rules! in_pools {
            ($structure:ident $build:ident $keys:ident full $c:ident $f:ident $index:ty) => {
                let name = named(stringify!($structure), stringify!($keys));
                let name = format!("{name}:{}:pooled", stringify!($build));
                explore::<$index>(&name, scenario, points, SCHEDULES / 10);
            };
            ($structure:ident $build:ident $keys:ident $runs:ident $($rest:tt)*) => {};
        }
        silvics::for_each_index! { in_pools }
    }
}

/// Fails unless the other task finishes wherever a victim stops.
fn others_finish<I: Create + Subject>(structure: &str, victims: &'static [Stops], act: Act<I>) {
    for victim in victims {
        if let Some(places) = stops::<I>(structure, victim, act) {
            assert!(places >= 5, "{}: only {places} places to stop at", victim.name);
        }
    }
}

/// Fails unless the other task waits for a writer that stops at some place, under a lock.
fn writers_hold_others_up<I: Create + Subject>(act: Act<I>) {
    for victim in STOPS {
        let (at, reason) = hunt_stop::<I>(victim, act)
            .expect_err("a task that stops under a lock must hold the other up");
        assert!(reason.contains("max_steps"), "{}, at {at}: {reason}", victim.name);
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

/// Among the writers that stop are some that split or join base nodes.
#[test]
fn lfca_tree_is_lock_free() {
    others_finish::<LfcaTree<u64, Model>>("lfca-tree", STOPS, scans);
    others_finish::<LfcaTree<u64, Model, Restless>>("lfca-tree:restless", STOPS, scans);
    others_finish::<LfcaTree<u64, Model, Restless>>("lfca-tree:restless", LOOKUPS, scans);
    others_finish::<LfcaTree<u64, Model, Restless>>("lfca-tree:restless", SCAN_STOPS, scans);
    others_finish::<LfcaTree<u64, Model, Restless>>("lfca-tree:restless", JOIN_STOPS, scans);
    others_finish::<LfcaTree<[u8], Model>>("lfca-tree-bytes", LOOKUPS, scans);
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

/// Writers of `occ-avl` take locks, which the progress test detects. No task waits for its lookups.
#[test]
fn occ_avl_blocks_for_writers_only() {
    others_finish::<BronsonTree<Model>>("occ-avl", LOOKUPS, points);
    writers_hold_others_up::<BronsonTree<Model>>(points);
}

/// Writers of `log-int` take locks. No task waits for its lookups and scans.
#[test]
fn log_int_blocks_for_writers_only() {
    others_finish::<DrachslerTree<Model>>("log-int", LOOKUPS, scans);
    others_finish::<DrachslerTree<Model>>("log-int", SCAN_STOPS, scans);
    writers_hold_others_up::<DrachslerTree<Model>>(scans);
}

/// Writers of `ticket` take locks. No task waits for its lookups and scans.
#[test]
fn ticket_blocks_for_writers_only() {
    others_finish::<TicketTree<Model>>("ticket", LOOKUPS, points);
    others_finish::<TicketTree<Model>>("ticket", SCAN_STOPS, scans);
    writers_hold_others_up::<TicketTree<Model>>(points);
}

/// Writers of the radix tree take locks. No task waits for its lookups and scans.
#[test]
fn art_blocks_for_writers_only() {
    others_finish::<ArtTree<u64, Model>>("art", LOOKUPS, points);
    others_finish::<ArtTree<u64, Model>>("art", SCAN_STOPS, scans);
    others_finish::<ArtTree<[u8], Model>>("art-bytes", LOOKUPS, points);
    others_finish::<ArtTree<[u8], Model>>("art-bytes", SCAN_STOPS, scans);
    writers_hold_others_up::<ArtTree<u64, Model>>(points);
}

/// Writers of blocks take locks. No task waits for lookups and scans, and these wait for no task.
#[test]
fn blocks_block_for_writers_only() {
    others_finish::<BlockTree<u64, Model>>("blocks", LOOKUPS, scans);
    others_finish::<BlockTree<u64, Model>>("blocks", SCAN_STOPS, scans);
    others_finish::<BlockTree<u64, Model>>("blocks", BESIDE_READERS, scans);
    others_finish::<BlockTree<[u8], Model>>("blocks-bytes", LOOKUPS, scans);
    others_finish::<BlockTree<[u8], Model>>("blocks-bytes", SCAN_STOPS, scans);
    others_finish::<BlockTree<[u8], Model>>("blocks-bytes", BESIDE_READERS, scans);
    others_finish::<BlockTree<Prefixed<'static>, Model>>("blocks-prefixes", LOOKUPS, scans);
    others_finish::<BlockTree<Prefixed<'static>, Model>>("blocks-prefixes", SCAN_STOPS, scans);
    writers_hold_others_up::<BlockTree<u64, Model>>(scans);
}

/// Writers of blocks of words take locks to make room and to unlink. No task waits for lookups and
/// scans, and these wait for no task.
#[test]
fn words_block_for_some_writers_only() {
    others_finish::<WordTree<u64, Model>>("words", LOOKUPS, scans);
    others_finish::<WordTree<u64, Model>>("words", SCAN_STOPS, scans);
    others_finish::<WordTree<u64, Model>>("words", BESIDE_READERS, scans);
    let held = |victim| hunt_stop::<WordTree<u64, Model>>(victim, scans).is_err();
    assert!(STOPS.iter().any(held), "no writer stops under a lock");
}

/// A lookup that stops in its descent delays only removals of nodes with two children. Writers that
/// stop delay other writers, as they hold locks.
#[test]
fn citrus_blocks_for_writers_and_copies_only() {
    others_finish::<CitrusTree<Model>>("citrus", UNCOPIED, points);
    for victim in LOOKUPS.iter().chain(STOPS) {
        let (at, reason) = hunt_stop::<CitrusTree<Model>>(victim, points)
            .expect_err("a task that stops in a descent or under a lock must hold the other up");
        assert!(reason.contains("max_steps"), "{}, at {at}: {reason}", victim.name);
    }
}

/// A lookup alone, beside other lookups, and beside an insertion that makes 1 and 0 move down.
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

/// The most accesses that the victim makes in any schedule.
fn accesses<I: Create + Subject>(stops: &'static Stops) -> u64 {
    match hunt_stop::<I>(stops, points) {
        Ok(places) => places,
        Err((at, reason)) => panic!("at {at}: {reason}"),
    }
}

/// While no task writes, no lookup restarts: it makes as many accesses beside other lookups as
/// alone.
#[test]
fn lookups_beside_lookups_never_restart() {
    fn holds<I: Create + Subject>(structure: &str) {
        for [alone, beside, _] in [&FOUND, &MISSED] {
            let counts = [alone, beside].map(accesses::<I>);
            assert_eq!(counts[0], counts[1], "{structure}, {:?}", alone.victim);
        }
    }
    macro_rules! holds_of {
        ($structure:ident spin $($rest:tt)*) => {}; // lookups wait for one another
        ($structure:ident $build:ident $keys:ident stress $($rest:tt)*) => {};
        ($structure:ident $build:ident $keys:ident $r:ident $c:ident $f:ident $index:ty) => {
            let name = named(stringify!($structure), stringify!($keys));
            holds::<At<$index, Model>>(&format!("{name}:{}", stringify!($build)));
        };
    }
    silvics::for_each_index! { holds_of }
    // The number of accesses does grow beside a writer.
    let [alone, _, rotating] = &MANY;
    let counts = [alone, rotating].map(accesses::<BronsonTree<Model>>);
    assert!(counts[1] > counts[0], "{counts:?}");
}
