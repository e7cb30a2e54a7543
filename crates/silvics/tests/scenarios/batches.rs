//! Scenarios for structures that descend to several keys at once.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{Any, Get, GetMany, Insert, InsertMany, Remove};

/// Batches beside writers that change the nodes for which their descents wait.
pub(crate) const BATCHES: &[Scenario] = &[
    Scenario {
        name: "batch-after-a-lookup",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        tasks: &[&[Remove(1)], &[Get(1), GetMany(0, 2)], &[Get(2)]],
    },
    Scenario {
        name: "batch-beside-removals",
        keys: 5,
        before: &[Insert(2, 1), Insert(1, 2), Insert(3, 3), Insert(0, 4), Insert(4, 5)],
        tasks: &[&[GetMany(0, 4)], &[Remove(1), Remove(2), Insert(1, 6)], &[Remove(3), Remove(4)]],
    },
    Scenario {
        name: "batch-beside-updates",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[
            &[GetMany(0, 3), GetMany(1, 2)],
            &[Insert(1, 5), Remove(0), Insert(1, 6)],
            &[Insert(2, 7), GetMany(1, 3)],
        ],
    },
    Scenario {
        name: "two-batches-of-upserts",
        keys: 4,
        before: &[Insert(1, 1)],
        tasks: &[
            &[InsertMany(0, 3, 10), Get(1)],
            &[InsertMany(0, 3, 20), GetMany(0, 3)],
            &[Remove(1), Get(3)],
        ],
    },
    Scenario {
        name: "upserts-beside-removals",
        keys: 4,
        before: &[Insert(2, 1), Insert(0, 2), Insert(3, 3)],
        tasks: &[&[InsertMany(0, 3, 10)], &[Remove(2), Remove(3), Remove(0)], &[Any, Any]],
    },
];
