//! A schedule must catch every planted mistake, for its own reason and in time: see
//! `silvics::canary` and `silvics_testkit::schedules`.
#![cfg(all(silvics_shuttle, feature = "canaries"))]

mod reasons;
mod scenarios;

use reasons::reasons;
use scenarios::{
    ADAPTING, ADAPTING_ENDS, ADAPTING_RANGES, ADAPTING_UPDATES, BATCHES, BLOCK_ENDS, BLOCKS,
    CHAINS, COMMON, COPIES, COUNTS, ENDS, FLAGS, HELD_KEYS, HOT, JOINS, LATE_HELPERS, LOCKED_EDGES,
    MULTI, NODES, ORDERINGS, PROMOTIONS, RELOCATIONS, RESERVATIONS, ROOTS, ROTATIONS, SCANS,
    SUCCESSIONS, TOWERS, TRIES, TURNS, VERSIONS, WORD_ENDS, WORDS, reorganizing,
};
use silvics::art::hot::Sampled;
use silvics::bst::natarajan::build::Collocated;
use silvics::ca::build::{AvlRestless, Restless};
use silvics::canary::{Canary, plant};
use silvics::key::Prefixed;
use silvics::structures::STRUCTURES;
use silvics::{
    ArtTree, BlockTree, BronsonTree, CaTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree,
    LfcaTree, NatarajanTree, PatriciaTree, RamachandranTree, SkipList, TicketTree, WordTree,
};
use silvics_testkit::mapped::Mapped;
use silvics_testkit::ordmapped::OrdMapped;
use silvics_testkit::schedules::Step::{Exchange, Get, Insert, Remove};
use silvics_testkit::schedules::{
    Found, Model, Scenario, Stops, ends, first_bytes, hunt, hunt_programs, hunt_stop, points,
    report, scans, updates,
};
use std::time::Instant;

/// The number of schedules per scenario and scheduler within which a canary must be caught.
const SCHEDULES: usize = 20_000;

/// The seconds within which a canary must be caught.
const SECONDS: f32 = 60.0;

/// The mistakes of threads that move a leaf.
const MOVES: [Canary; 3] =
    [Canary::MovedLeafTrusted, Canary::LeafCopiedBeforeLocked, Canary::MovedLeafFreedAtOnce];

/// The mistakes of removals of the first or last entry.
const POPS: [Canary; 2] = [Canary::PopInTwoSteps, Canary::PopPathUnlocked];

/// The mistakes of atomic ranges.
const RANGE_CANARIES: [Canary; 2] = [Canary::RangeNotValidated, Canary::RangeUnlockedEarly];

/// The mistakes of blocks that show at the first and last entry.
const BLOCK_END_CANARIES: [Canary; 2] = [Canary::NeighbourUnlocked, Canary::FirstNotValidated];

/// The mistakes of blocks of words that show at the first and last entry.
const WORD_END_CANARIES: [Canary; 3] =
    [Canary::EndUnlocked, Canary::EndNotChecked, Canary::EndNotClosed];

/// The mistakes of the lock-free tree that show at the first and last entry.
const LFCA_END_CANARIES: [Canary; 2] = [Canary::SnapshotNotValidated, Canary::PopsBehindEmpty];

/// The mistakes of the lock-free tree with keys that user code compares.
const HELD_KEY_CANARIES: [Canary; 4] =
    [Canary::HeldKeyRetired, Canary::KeyHeldLate, Canary::HeldKeyForgotten, Canary::OldFirstEntry];

fn catch_moving() -> Option<Found> {
    hunt::<ArtTree<u64, Model, Sampled>>(&[HOT], reorganizing, SCHEDULES, None)
}

/// The scenario of a list with this name: the only one that catches some mistake soon.
fn only(list: &'static [Scenario], name: &str) -> &'static [Scenario] {
    let at = list.iter().position(|scenario| scenario.name == name).expect("a scenario");
    &list[at..=at]
}

fn catch_in_art(canary: Canary) -> Option<Found> {
    match canary {
        Canary::ShrinkForgotten => hunt::<ArtTree<[u8], Model>>(&[NODES], points, SCHEDULES, None),
        _ if MOVES.contains(&canary) => catch_moving(),
        _ if POPS.contains(&canary) || canary == Canary::EndNotValidated => {
            hunt::<ArtTree<u64, Model>>(&[ENDS], ends, SCHEDULES, None)
        }
        _ => hunt::<ArtTree<u64, Model>>(&[NODES, COMMON], scans, SCHEDULES, None),
    }
}

fn catch_in_blocks(canary: Canary) -> Option<Found> {
    match canary {
        _ if BLOCK_END_CANARIES.contains(&canary) => {
            hunt::<BlockTree<u64, Model>>(&[BLOCK_ENDS, ENDS], ends, SCHEDULES, None)
        }
        Canary::BesideAnything => {
            let lists = &[only(BLOCKS, "beside-the-root")];
            hunt::<BlockTree<u64, Model>>(lists, scans, SCHEDULES, None)
        }
        Canary::PutBackTrusted => {
            let lists = &[only(COMMON, "update-beside-removal")];
            hunt::<BlockTree<u64, Model>>(lists, scans, SCHEDULES, None)
        }
        Canary::PrefixIgnored => {
            let lists = &[BLOCKS, COMMON];
            hunt::<BlockTree<Prefixed<'static>, Model>>(lists, scans, SCHEDULES, None)
        }
        Canary::GapForgotten => {
            hunt::<BlockTree<[u8], Model>>(&[BLOCKS, COMMON], scans, SCHEDULES, None)
        }
        _ => hunt::<BlockTree<u64, Model>>(&[BLOCKS, COMMON], scans, SCHEDULES, None),
    }
}

fn catch_in_ca_tree(canary: Canary) -> Option<Found> {
    match canary {
        Canary::OldBoundTrusted => {
            let lists = &[only(ADAPTING, "walk-on-an-old-way")];
            hunt::<CaTree<u64, Model, Restless>>(lists, scans, SCHEDULES, None)
        }
        Canary::ReadersNotAwaited => {
            hunt::<CaTree<u64, Model, AvlRestless>>(&[ADAPTING, COMMON], scans, SCHEDULES, None)
        }
        _ if RANGE_CANARIES.contains(&canary) => {
            let lists = &[ADAPTING_RANGES, ADAPTING_UPDATES];
            hunt::<CaTree<u64, Model, Restless>>(lists, updates, SCHEDULES, None)
        }
        Canary::ObjectNotRetired => {
            let lists = &[COMMON, ADAPTING];
            hunt::<CaTree<[u8], Model, Restless>>(lists, scans, SCHEDULES, None)
        }
        Canary::RouteNotLocked => {
            let lists = &[only(ADAPTING, "nested-joins")];
            hunt::<CaTree<u64, Model, Restless>>(lists, scans, 4 * SCHEDULES, None)
        }
        _ => {
            let lists = &[ADAPTING, COMMON];
            hunt::<CaTree<u64, Model, Restless>>(lists, scans, SCHEDULES, None)
        }
    }
}

fn catch_in_lfca_tree(canary: Canary) -> Option<Found> {
    match canary {
        Canary::SnapshotNotValidated => {
            let lists = &[only(ADAPTING_ENDS, "passes-an-empty-one")];
            hunt::<LfcaTree<u64, Model, Restless>>(lists, ends, 4 * SCHEDULES, None)
        }
        Canary::PopsBehindEmpty => {
            let lists = &[only(ADAPTING_ENDS, "pops-behind-an-empty-one")];
            hunt::<LfcaTree<u64, Model, Restless>>(lists, ends, 4 * SCHEDULES, None)
        }
        Canary::StaleBoundTrusted => {
            let lists = &[only(ADAPTING, "walk-on-an-old-way")];
            hunt::<LfcaTree<u64, Model, Restless>>(lists, scans, SCHEDULES, None)
        }
        _ if HELD_KEY_CANARIES.contains(&canary) => {
            let lists = &[HELD_KEYS, COMMON];
            hunt::<OrdMapped<u128, Model, Restless>>(lists, points, SCHEDULES, None)
        }
        _ => {
            let lists = &[JOINS, ADAPTING, COMMON];
            hunt::<LfcaTree<u64, Model, Restless>>(lists, scans, SCHEDULES, None)
        }
    }
}

fn catch(canary: Canary) -> Option<Found> {
    if matches!(canary, Canary::ScanTakesFrozenForGone | Canary::ScanForgetsItsPlace) {
        return hunt::<NatarajanTree<Model>>(&[PROMOTIONS, SCANS], scans, SCHEDULES, None);
    }
    match canary.index() {
        "art" => catch_in_art(canary),
        "blocks" => catch_in_blocks(canary),
        "ca-tree" => catch_in_ca_tree(canary),
        "lfca-tree" => catch_in_lfca_tree(canary),
        "words" if WORD_END_CANARIES.contains(&canary) => {
            hunt::<WordTree<u64, Model>>(&[WORD_ENDS, ENDS], ends, SCHEDULES, None)
        }
        "words" if canary == Canary::SuccessorTrusted => {
            let lists = &[only(WORDS, "marks-taken-back")];
            hunt::<WordTree<u64, Model>>(lists, scans, 10 * SCHEDULES, None)
        }
        "words" => hunt::<WordTree<u64, Model>>(&[WORDS, COMMON], scans, SCHEDULES, None),
        "patricia-16" => hunt::<PatriciaTree<u64, Model>>(&[TRIES, COMMON], scans, SCHEDULES, None),
        "map" => hunt::<Mapped<u64, Model>>(&[COMMON], points, SCHEDULES, None),
        "counts" => hunt_programs(COUNTS, SCHEDULES),
        "versions" => hunt_programs(VERSIONS, SCHEDULES),
        "multi" => hunt_programs(MULTI, SCHEDULES),
        #[cfg(feature = "lpm")]
        "lpm" => hunt_programs(scenarios::LPM, SCHEDULES),
        "edge-ext-lf" => hunt::<NatarajanTree<Model>>(&[CHAINS, COMMON], points, SCHEDULES, None),
        "edge-ext-lf:collocated" => {
            let lists = &[CHAINS, COMMON];
            hunt::<NatarajanTree<Model, Collocated>>(lists, points, SCHEDULES, None)
        }
        "ext-lf" => hunt::<EllenTree<Model>>(&[FLAGS, CHAINS, COMMON], points, SCHEDULES, None),
        "int-lf" if canary == Canary::SuccessorsParentTrusted => {
            hunt::<HowleyTree<Model>>(&[LATE_HELPERS], points, SCHEDULES, None)
        }
        "int-lf" => hunt::<HowleyTree<Model>>(&[RELOCATIONS, COMMON], points, SCHEDULES, None),
        "edge-int-lf" if canary == Canary::ReservedTakenForFate => {
            hunt::<RamachandranTree<Model>>(&[RESERVATIONS], points, SCHEDULES, None)
        }
        "edge-int-lf" => {
            hunt::<RamachandranTree<Model>>(&[SUCCESSIONS, COMMON], points, SCHEDULES, None)
        }
        "occ-avl" if canary == Canary::NextReadEarly => {
            hunt::<BronsonTree<Model>>(&[TURNS], points, 4 * SCHEDULES, None)
        }
        "occ-avl" => hunt::<BronsonTree<Model>>(&[ROTATIONS, COMMON], points, SCHEDULES, None),
        "citrus" => hunt::<CitrusTree<Model>>(&[COPIES, COMMON], points, SCHEDULES, None),
        "log-int" => {
            hunt::<DrachslerTree<Model>>(&[ORDERINGS, SCANS, COMMON], scans, SCHEDULES, None)
        }
        "ticket" => hunt::<TicketTree<Model>>(&[LOCKED_EDGES, COMMON], points, SCHEDULES, None),
        "skiplist" if canary == Canary::BatchTrustsLink => {
            hunt::<SkipList<u64, Model>>(&[BATCHES], points, SCHEDULES, None)
        }
        "skiplist" => {
            hunt::<SkipList<u64, Model>>(&[TOWERS, SCANS, COMMON], scans, SCHEDULES, None)
        }
        index => panic!("{canary:?} is in {index}, which has no scenarios"),
    }
}

/// A removal that stops between its flag and its clean-up, beside calls that meet the flag.
const FLAGGED: Stops = Stops {
    name: "remove",
    keys: 3,
    before: &[Insert(0, 1), Insert(1, 2)],
    victim: Remove(1),
    other: &[Get(1), Insert(1, 3), Remove(0), Exchange(1, Some(3), None), Insert(2, 4)],
};

/// Every mistake sits in a structure of the table, or in the map.
#[test]
fn canaries_name_structures_of_the_table() {
    for canary in Canary::ALL {
        let (structure, build) = match canary.index().split_once(':') {
            Some((structure, build)) => (structure, Some(build)),
            None => (canary.index(), None),
        };
        let row = STRUCTURES.iter().find(|row| row.name == structure);
        let builds = row.map_or(&[][..], |row| row.builds);
        let known = build.is_none_or(|build| builds.iter().any(|of| of.name == build));
        assert!(
            matches!(structure, "map" | "counts" | "lpm" | "multi" | "versions")
                || row.is_some() && known,
            "{canary:?}: {}",
            canary.index()
        );
    }
    for row in STRUCTURES {
        // The builds of another row of the same structure share its code.
        let module = STRUCTURES.iter().filter(|other| other.page == row.page);
        let mut names = module.map(|row| row.name);
        let is_in =
            |name: &str| Canary::ALL.iter().any(|c| c.index().split(':').next() == Some(name));
        assert!(names.any(is_in), "{} has no seeded mistake", row.name);
    }
}

/// Only this test plants mistakes, since a planted mistake holds for the whole process.
#[test]
fn every_canary_is_caught() {
    let mut alive = Vec::new();
    for &canary in Canary::ALL {
        if cfg!(not(feature = "lpm")) && canary.index() == "lpm" {
            continue;
        }
        if std::env::var("ONLY").is_ok_and(|only| only != canary.index()) {
            continue;
        }
        let start = Instant::now();
        plant(Some(canary));
        let found = catch(canary);
        plant(None);
        let seconds = start.elapsed().as_secs_f32();
        let name = canary.name();
        match found {
            Some(Found { schedules, scenario, reason }) => {
                report(&format!(
                    "canary {} {name} schedules {schedules} scenario {} seconds {seconds:.2}: {}",
                    canary.index(),
                    scenario,
                    reason.lines().next().unwrap_or_default(),
                ));
                let expected = reasons(canary).iter().any(|expected| reason.contains(expected));
                assert!(expected, "{name} is caught for another reason: {reason}");
            }
            None => alive.push(name),
        }
        assert!(seconds < SECONDS, "{name} takes {seconds} s");
    }
    assert!(alive.is_empty(), "not caught: {}", alive.join(", "));
    who_moves_nodes_makes_the_mistakes_of_who_grows_them();
    who_grows_the_root_makes_them_too();
    a_removal_that_nobody_finishes_holds_others_up();
    the_link_of_a_node_that_left_the_list_first_leads_to_freed_memory();
}

/// The scenarios of the growing root find these mistakes as well.
fn who_grows_the_root_makes_them_too() {
    for canary in [Canary::CopiedBeforeLocked, Canary::ReplacedNotObsolete] {
        plant(Some(canary));
        let found = hunt::<ArtTree<u64, Model>>(&[ROOTS], first_bytes, SCHEDULES, None);
        plant(None);
        let reason = found.unwrap_or_else(|| panic!("{canary:?} is not caught at the root")).reason;
        assert!(reasons(canary).iter().any(|expected| reason.contains(expected)), "{reason}");
    }
}

/// Reorganization finds these mistakes as well, although no node grows or shrinks.
fn who_moves_nodes_makes_the_mistakes_of_who_grows_them() {
    for canary in [Canary::CopiedBeforeLocked, Canary::ReplacedNotObsolete] {
        let moves = HOT.iter().position(|scenario| scenario.name == "node-moves");
        let moves = &HOT[moves.expect("a scenario of this name")..][..1];
        let start = Instant::now();
        plant(Some(canary));
        let found = hunt::<ArtTree<u64, Model, Sampled>>(&[moves], reorganizing, SCHEDULES, None);
        plant(None);
        let found = found.expect("what is written meanwhile is lost");
        assert!(reasons(canary).iter().any(|of| found.reason.contains(of)), "{}", found.reason);
        report(&format!(
            "canary art {} schedules {} scenario {} seconds {:.2}: {}",
            canary.name(),
            found.schedules,
            found.scenario,
            start.elapsed().as_secs_f32(),
            found.reason.lines().next().unwrap_or_default(),
        ));
    }
}

/// Shows why `log-int` departs from its paper. The canary gives a wrong answer in another scenario;
/// in this one a reader follows a link to freed memory, as the module's documentation says.
fn the_link_of_a_node_that_left_the_list_first_leads_to_freed_memory() {
    let far = ORDERINGS.iter().position(|scenario| scenario.name == "neighbour-far-above");
    let far = &ORDERINGS[far.expect("a scenario of this name")..][..1];
    let start = Instant::now();
    plant(Some(Canary::ListBeforeTree));
    let found = hunt::<DrachslerTree<Model>>(&[far], scans, SCHEDULES, None);
    plant(None);
    let found = found.expect("a reader goes from a node in the tree to one that is gone");
    assert!(found.reason.contains("use after free"), "{}", found.reason);
    report(&format!(
        "canary log-int list-before-tree schedules {} scenario {} seconds {:.2}: use after free",
        found.schedules,
        found.scenario,
        start.elapsed().as_secs_f32(),
    ));
}

/// The progress test finds missing help by itself, not only by the starvation of a schedule.
fn a_removal_that_nobody_finishes_holds_others_up() {
    let stops = || hunt_stop::<NatarajanTree<Model>>(&FLAGGED, points);
    let places = stops().expect("with help the others finish");
    plant(Some(Canary::MissingHelp));
    let stuck = stops();
    plant(None);
    let (at, reason) = stuck.expect_err("without help somebody waits for the removal");
    assert!(at <= places, "at {at} of {places} places");
    assert!(reason.contains("max_steps"), "stopped at {at}: {reason}");
    report(&format!("canary edge-ext-lf missing-help stops at {at} of {places}"));
}
