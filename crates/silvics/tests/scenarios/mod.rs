//! The scenarios of `schedules.rs` and `canaries.rs`. Each is as small as its situation allows,
//! since the number of schedules grows with every step.

mod adapting;
mod batches;
mod blocks;
mod counts;
mod external;
mod lists;
mod lock_free;
mod locked;
#[cfg(feature = "lpm")]
mod lpm;
mod multi;
mod radix;
mod tries;
mod versions;
mod words;

pub(crate) use adapting::{
    ADAPTING, ADAPTING_ENDS, ADAPTING_RANGES, ADAPTING_UPDATES, HELD_KEYS, JOINS,
};
pub(crate) use batches::BATCHES;
pub(crate) use blocks::{BLOCK_ENDS, BLOCKS};
pub(crate) use counts::COUNTS;
pub(crate) use external::{CHAINS, FLAGS, LOCKED_EDGES, PROMOTIONS};
pub(crate) use lists::{SCANS, TOWERS};
pub(crate) use lock_free::{LATE_HELPERS, RELOCATIONS, RESERVATIONS, SUCCESSIONS};
pub(crate) use locked::{COPIES, ORDERINGS, ROTATIONS, TURNS};
#[cfg(feature = "lpm")]
pub(crate) use lpm::LPM;
pub(crate) use multi::MULTI;
pub(crate) use radix::{ENDS, HOT, NODES, ROOTS, reorganizing};
pub(crate) use tries::TRIES;
pub(crate) use versions::VERSIONS;
pub(crate) use words::{WORD_ENDS, WORDS};

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{Any, Exchange, Get, GetMany, Insert, Remove, TryInsert};

/// Scenarios for every structure.
pub(crate) const COMMON: &[Scenario] = &[
    Scenario {
        name: "one-key",
        keys: 1,
        before: &[],
        tasks: &[
            &[TryInsert(0, 1), Remove(0)],
            &[Insert(0, 2), Get(0), Exchange(0, Some(2), Some(3))],
            &[Exchange(0, None, Some(4)), Remove(0)],
        ],
    },
    Scenario {
        name: "update-beside-removal",
        keys: 2,
        before: &[Insert(0, 1), Insert(1, 2)],
        tasks: &[
            &[Insert(1, 3), Get(1)],
            &[Remove(1), Get(1)],
            &[Exchange(1, Some(2), Some(4)), Exchange(1, Some(3), None)],
        ],
    },
    Scenario {
        name: "insert-beside-removal",
        keys: 4,
        before: &[Insert(1, 1), Insert(2, 2)],
        tasks: &[&[Remove(1), Get(3)], &[TryInsert(3, 3), Get(3)], &[Insert(0, 4), GetMany(0, 3)]],
    },
    Scenario {
        name: "neighbours-removed",
        keys: 4,
        before: &[Insert(2, 1), Insert(1, 2), Insert(3, 3), Insert(0, 4)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Insert(1, 5)], &[Remove(3), Get(0), Get(1)]],
    },
    Scenario {
        name: "emptied-and-refilled",
        keys: 2,
        before: &[Insert(0, 1)],
        tasks: &[
            &[Remove(0), Insert(1, 2), Remove(1)],
            &[TryInsert(0, 3), Remove(1), TryInsert(1, 4)],
        ],
    },
    Scenario {
        name: "any-of-three",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2)],
        tasks: &[&[Any, Any, Any, Any], &[Any, Any, Any, Any]],
    },
    Scenario {
        name: "any-of-five",
        keys: 5,
        before: &[Insert(3, 1), Insert(1, 2), Insert(4, 3)],
        tasks: &[&[Any, Any, Any], &[Any, Any, Any], &[Any, Any, Any]],
    },
];
