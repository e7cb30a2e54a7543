//! Scenarios for the skip list, and for all structures with ranges.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{
    Any, Get, Insert, Range, RangeRev, Remove, TryInsert, Walk, WalkRev,
};

/// Scenarios for the skip list: towers.
pub(crate) const TOWERS: &[Scenario] = &[
    Scenario {
        name: "tower-beside-removal",
        keys: 4,
        before: &[Insert(0, 1), Insert(3, 2)],
        tasks: &[&[Insert(1, 3)], &[Remove(1), Get(3)], &[Insert(2, 4), Remove(1)]],
    },
    Scenario {
        name: "towers-in-a-row",
        keys: 5,
        before: &[Insert(0, 1)],
        tasks: &[&[Insert(1, 2), Insert(4, 3)], &[Insert(2, 4), Remove(4)], &[Remove(2), Get(4)]],
    },
    Scenario {
        name: "replaced-node-replaced",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2)],
        tasks: &[
            &[Insert(1, 3), Insert(1, 4)],
            &[Insert(1, 5), Remove(0)],
            &[Remove(1), Get(1), TryInsert(2, 6)],
        ],
    },
    Scenario {
        name: "reader-beside-removal",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Remove(2)], &[Get(2), Get(3), Get(1)], &[Remove(0)]],
    },
];

/// Scenarios for structures with scans.
pub(crate) const SCANS: &[Scenario] = &[
    Scenario {
        name: "range-beside-updates",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Range(0, 3), Range(1, 2)], &[Insert(1, 5), Insert(2, 6)], &[Insert(1, 7)]],
    },
    Scenario {
        name: "range-beside-removals",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(4, 4)],
        tasks: &[&[Range(0, 4)], &[Remove(1), TryInsert(1, 5)], &[Remove(2), Insert(3, 6)]],
    },
    Scenario {
        name: "reverse-range",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[RangeRev(0, 4)], &[Remove(2), Insert(4, 5)], &[Insert(1, 6), Remove(3)]],
    },
    Scenario {
        name: "cursor-beside-removals",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Walk(0, 4)], &[Remove(1), Remove(2), Insert(1, 5)], &[Insert(2, 6), Remove(3)]],
    },
    Scenario {
        name: "cursor-at-a-replaced-key",
        keys: 3,
        before: &[Insert(1, 1), Insert(2, 2)],
        tasks: &[&[Walk(1, 1)], &[Insert(1, 3), Insert(1, 4), Insert(1, 5)]],
    },
    Scenario {
        name: "cursor-backwards",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[WalkRev(4, 4)], &[Remove(2), Insert(2, 5)], &[Remove(1), Insert(4, 6)]],
    },
    Scenario {
        name: "cursors-beside-anything",
        keys: 4,
        before: &[Insert(1, 1), Insert(2, 2)],
        tasks: &[&[Walk(1, 3)], &[WalkRev(2, 2), Any], &[Any, Any, Any]],
    },
];
