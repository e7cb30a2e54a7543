//! Scenarios for external trees.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{
    Exchange, Get, Insert, Range, RangeRev, Remove, TryInsert, Walk, WalkRev,
};

/// Scenarios for the external tree: several flagged leaves under one ancestor, cut out at once.
pub(crate) const CHAINS: &[Scenario] = &[
    Scenario {
        name: "chain-cut-at-once",
        keys: 5,
        before: &[Insert(4, 1), Insert(3, 2), Insert(2, 3), Insert(1, 4), Insert(0, 5)],
        tasks: &[&[Remove(1), Get(1)], &[Remove(2), Get(4)], &[Remove(3), Remove(0)]],
    },
    Scenario {
        name: "growth-below-a-chain",
        keys: 6,
        before: &[Insert(1, 1), Insert(3, 2), Insert(5, 3)],
        tasks: &[&[Remove(3), Remove(1)], &[Insert(4, 4), Get(4)], &[Insert(2, 5), Insert(0, 6)]],
    },
    Scenario {
        name: "both-leaves-of-a-parent",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 2)],
        tasks: &[&[Remove(0), Get(1)], &[Remove(1), Get(0)], &[TryInsert(2, 3), Insert(0, 4)]],
    },
];

/// Scenarios for scans of external trees: subtrees that move up while a scan passes.
pub(crate) const PROMOTIONS: &[Scenario] = &[
    Scenario {
        // The sibling of 1 moves up and gets 0 below it, behind a scan that has seen 1.
        name: "promoted-sibling-grows",
        keys: 3,
        before: &[Insert(1, 1), Insert(2, 2)],
        tasks: &[&[Range(0, 2)], &[Remove(1), Insert(0, 3)]],
    },
    Scenario {
        // The sibling of 2 moves up and gets 2 again.
        name: "promoted-sibling-grows-backwards",
        keys: 3,
        before: &[Insert(2, 1), Insert(1, 2), Insert(0, 3)],
        tasks: &[&[RangeRev(0, 2)], &[Remove(2), Insert(2, 4)]],
    },
    Scenario {
        // More edges are pending than a walk keeps in this build.
        name: "walk-begins-again",
        keys: 6,
        before: &[Insert(5, 1), Insert(4, 2), Insert(3, 3), Insert(2, 4), Insert(0, 5)],
        tasks: &[&[Range(0, 5)], &[Remove(2), Insert(1, 6)], &[Remove(4), Insert(4, 7)]],
    },
    Scenario {
        name: "walk-begins-again-backwards",
        keys: 6,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4), Insert(5, 5)],
        tasks: &[&[RangeRev(0, 5)], &[Remove(3), Insert(4, 6)], &[Remove(1), Insert(1, 7)]],
    },
    Scenario {
        name: "cursors-beside-promotions",
        keys: 4,
        before: &[Insert(1, 1), Insert(2, 2), Insert(3, 3)],
        tasks: &[&[Walk(0, 3)], &[WalkRev(3, 3)], &[Remove(1), Insert(0, 4), Remove(2)]],
    },
];

/// Scenarios for the external tree with locks: updates that meet at an edge, or at two edges of one
/// node.
pub(crate) const LOCKED_EDGES: &[Scenario] = &[
    Scenario {
        // The removal of 1 takes both edges of the node above 1 and 2.
        name: "growth-beside-the-removed",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2), Insert(1, 3)],
        tasks: &[&[Remove(1)], &[Insert(3, 4), Get(3)], &[Insert(2, 5), Get(2)]],
    },
    Scenario {
        // Each removal needs an edge that the other takes for good.
        name: "removals-in-a-row",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Get(1)], &[Remove(3), TryInsert(1, 5)]],
    },
    Scenario {
        // The edge changes, and then changes back to its first leaf.
        name: "edge-changes-and-comes-back",
        keys: 3,
        before: &[Insert(1, 1)],
        tasks: &[&[Insert(0, 2), Get(0)], &[Insert(2, 3), Remove(2)], &[Insert(1, 4), Remove(1)]],
    },
    Scenario {
        name: "updates-of-one-edge",
        keys: 2,
        before: &[Insert(0, 1), Insert(1, 2)],
        tasks: &[
            &[Insert(1, 3), Exchange(1, Some(3), Some(4))],
            &[Exchange(1, Some(2), Some(5)), Remove(0)],
            &[Insert(1, 6), Get(1)],
        ],
    },
];

/// Scenarios for external trees whose operations flag a parent and a grandparent.
pub(crate) const FLAGS: &[Scenario] = &[
    Scenario {
        // Each removal's grandparent is the parent of the next one: flags and marks meet.
        name: "removals-in-a-row",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Get(3)], &[Remove(3), Get(1)]],
    },
    Scenario {
        // An insert meets a parent that a removal is about to mark.
        name: "insert-at-a-marked-parent",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2)],
        tasks: &[&[Remove(2), Get(1)], &[TryInsert(1, 3), Get(1)], &[Insert(3, 4), Remove(0)]],
    },
    Scenario {
        // The insert of 3 helps that of 1 at their parent, but late: 1 has been removed again.
        name: "late-helper-of-an-insert",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2)],
        tasks: &[&[Insert(1, 3), Remove(1), Get(1)], &[Insert(3, 4), Get(1)]],
    },
    Scenario {
        name: "update-at-a-marked-parent",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        tasks: &[
            &[Remove(0), Get(1)],
            &[Insert(1, 4), Insert(1, 5)],
            &[Exchange(1, Some(4), Some(6)), Remove(1)],
        ],
    },
    Scenario {
        // The words of few nodes are claimed and released again and again.
        name: "words-used-again",
        keys: 2,
        before: &[Insert(0, 1)],
        tasks: &[
            &[Insert(1, 2), Remove(1), Insert(1, 3)],
            &[Insert(1, 4), Remove(1)],
            &[Remove(1)],
        ],
    },
    Scenario {
        name: "right-end",
        keys: 3,
        before: &[],
        tasks: &[
            &[Insert(0, 1), Remove(0)],
            &[Insert(1, 2), Remove(1), Insert(1, 3)],
            &[TryInsert(2, 4), Get(0), Remove(2)],
        ],
    },
];
