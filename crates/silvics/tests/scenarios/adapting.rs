//! Scenarios for the contention adapting trees. Under the model, a node of a container has at most
//! three entries, the second write of a base node splits it, and the fourth one joins it.

use silvics_testkit::schedules::EndVerb::{First, Last, PopFirst, PopLast};
use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{
    Collect, End, Exchange, Get, Insert, Range, RangeRev, Remove, TryInsert, UpdateRange, Walk,
    WalkRev,
};

/// Base nodes are split and joined while others search and write.
pub(crate) const ADAPTING: &[Scenario] = &[
    Scenario {
        name: "split-beside-writers",
        keys: 8,
        before: &[Insert(2, 1)],
        tasks: &[
            &[Insert(4, 2), Get(2), Get(4)],
            &[Insert(6, 3), Get(6), Remove(2)],
            &[TryInsert(0, 4), Get(0), Get(6)],
        ],
    },
    Scenario {
        name: "join-beside-writers",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2)],
        tasks: &[
            &[Remove(0), Get(4), Insert(0, 3)],
            &[Insert(4, 4), Get(0), Get(4)],
            &[Insert(1, 5), Exchange(4, Some(2), Some(6)), Get(1)],
        ],
    },
    Scenario {
        name: "two-join",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3), Insert(7, 4)],
        tasks: &[
            &[Remove(0), Get(4), Get(7)],
            &[Remove(4), Insert(0, 5), Get(6)],
            &[Remove(6), Remove(7), Get(0)],
        ],
    },
    Scenario {
        name: "join-beside-split",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3)],
        tasks: &[
            &[Remove(0), Get(6)],
            &[Insert(7, 4), Insert(5, 5), Get(5)],
            &[Exchange(6, Some(3), Some(6)), Get(0), Get(6)],
        ],
    },
    Scenario {
        name: "neighbours-of-a-join",
        keys: 8,
        before: &[Insert(0, 1), Insert(6, 2), Insert(4, 3), Insert(2, 4), Insert(1, 5)],
        tasks: &[
            &[Remove(6), Get(4), Remove(4)],
            &[Remove(0), Get(2), Remove(1)],
            &[Insert(7, 6), Get(2), Insert(3, 7)],
        ],
    },
    Scenario {
        // Route nodes 2, 5 and 3: the left child of the first is a base node, and so is the right
        // child of the second.
        name: "nested-joins",
        keys: 8,
        before: &[
            Insert(0, 1),
            Insert(2, 2),
            Insert(7, 3),
            Insert(5, 4),
            Insert(3, 5),
            Insert(4, 6),
        ],
        tasks: &[&[Remove(0), Get(3)], &[Remove(5), Remove(7), Get(4)], &[Get(2), Get(7)]],
    },
    Scenario {
        // Route node 2 leads to a base node with 0, and to route node 3. The fourth write of that
        // base node joins it with the one that has 2, below route node 3.
        name: "walk-on-an-old-way",
        keys: 8,
        before: &[
            Insert(0, 1),
            Insert(2, 2),
            Insert(4, 3),
            Insert(3, 4),
            Insert(0, 5),
            Insert(0, 6),
            Insert(0, 7),
        ],
        tasks: &[&[Insert(0, 8), Get(2)], &[RangeRev(0, 2), Get(0)], &[Range(0, 4)]],
    },
    Scenario {
        name: "container-of-several-nodes",
        keys: 12,
        before: &[Insert(0, 1), Insert(11, 2), Insert(2, 3), Insert(4, 4), Insert(6, 5)],
        tasks: &[
            &[Insert(5, 6), Remove(4), Get(6)],
            &[Remove(11), Get(5), Get(0)],
            &[Insert(7, 7), Remove(2), Get(7)],
        ],
    },
    Scenario {
        name: "ranges-beside-joins",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3), Insert(7, 4)],
        tasks: &[
            &[Remove(4), Insert(5, 5), Remove(0)],
            &[Range(0, 7), RangeRev(0, 7)],
            &[Insert(1, 6), Remove(7)],
        ],
    },
    Scenario {
        name: "walks-beside-splits",
        keys: 8,
        before: &[Insert(1, 1), Insert(5, 2)],
        tasks: &[
            &[Insert(3, 3), Insert(7, 4), Remove(1)],
            &[Walk(0, 4), WalkRev(7, 4)],
            &[Insert(6, 5), Remove(5)],
        ],
    },
];

/// Joins that meet others at a route node, a place or a neighbour.
pub(crate) const JOINS: &[Scenario] = &[
    Scenario {
        // All tasks have base nodes that become empty, and are joined at once.
        name: "neighbours-emptied",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(2, 3), Insert(6, 4)],
        tasks: &[
            &[Remove(0), Remove(2), Get(4)],
            &[Remove(4), Insert(2, 5), Get(0)],
            &[Remove(6), Range(0, 7)],
        ],
    },
    Scenario {
        // The fourth write of the base node with 0 joins it, beside writes of its neighbour.
        name: "join-beside-its-neighbour",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(0, 3), Insert(0, 4), Insert(0, 5)],
        tasks: &[
            &[Insert(0, 6), Get(4)],
            &[Insert(5, 7), Get(0), Remove(4)],
            &[Get(4), Insert(4, 8), Get(0)],
        ],
    },
    Scenario {
        // The place above a join goes away, or the parent's other child does.
        name: "joins-above-joins",
        keys: 12,
        before: &[
            Insert(0, 1),
            Insert(8, 2),
            Insert(2, 3),
            Insert(4, 4),
            Insert(9, 5),
            Insert(6, 6),
            Insert(10, 7),
        ],
        tasks: &[
            &[Remove(0), Remove(2), Get(6)],
            &[Remove(4), Remove(6), Get(9)],
            &[Remove(9), Remove(8), Get(10), Remove(10)],
        ],
    },
];

/// Keys that are bounds of route nodes are removed, and come back, while base nodes are split and
/// joined.
pub(crate) const HELD_KEYS: &[Scenario] = &[
    Scenario {
        name: "bound-removed-beside-split",
        keys: 8,
        before: &[Insert(2, 1), Insert(4, 2)],
        tasks: &[
            &[Insert(6, 3), Get(4), Get(6)],
            &[Remove(4), Get(2), Insert(4, 4)],
            &[Remove(2), Insert(3, 5), Get(4)],
        ],
    },
    Scenario {
        name: "bound-removed-beside-join",
        keys: 8,
        before: &[Insert(0, 1), Insert(2, 2), Insert(4, 3), Insert(6, 4)],
        tasks: &[
            &[Remove(4), Get(6), Remove(6)],
            &[Remove(2), Get(0), Insert(2, 5)],
            &[Insert(1, 6), Get(4), Remove(0)],
        ],
    },
    Scenario {
        name: "bounds-come-and-go",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2)],
        tasks: &[
            &[Remove(4), Insert(4, 3), Remove(4), Get(0)],
            &[Insert(5, 4), Remove(5), Insert(5, 5), Get(4)],
            &[Remove(0), Insert(0, 6), Get(5), Get(4)],
        ],
    },
    Scenario {
        name: "first-entries-change",
        keys: 8,
        before: &[Insert(1, 1), Insert(3, 2), Insert(5, 3), Insert(7, 4), Insert(6, 5)],
        tasks: &[
            &[Remove(5), Insert(4, 6), Get(6)],
            &[Remove(3), Insert(2, 7), Get(4)],
            &[Get(7), Remove(6), Get(2)],
        ],
    },
];

/// Base nodes at the ends of the tree are emptied, joined and filled again.
pub(crate) const ADAPTING_ENDS: &[Scenario] = &[
    Scenario {
        // The first base node has keys below 4, and the second one has 6. When 4 is inserted, it is
        // not the first key, but a search may have passed the first base node while that was empty.
        name: "passes-an-empty-one",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3), Remove(4)],
        tasks: &[&[Remove(0)], &[Insert(0, 4), Insert(4, 5)], &[End(First)]],
    },
    Scenario {
        name: "pops-behind-an-empty-one",
        keys: 8,
        before: &[Insert(0, 1), Insert(6, 2)],
        tasks: &[&[Remove(0)], &[Insert(0, 3), Get(6)], &[End(PopFirst)]],
    },
    Scenario {
        name: "refilled-in-front",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3)],
        tasks: &[
            &[Remove(0), Insert(0, 4)],
            &[End(PopFirst)],
            &[End(First), Insert(1, 5), Remove(4)],
        ],
    },
    Scenario {
        name: "first-base-node-emptied",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3)],
        tasks: &[
            &[End(PopFirst), End(PopFirst)],
            &[Insert(1, 4), End(First), Remove(4)],
            &[End(Last), Get(6)],
        ],
    },
    Scenario {
        name: "last-base-node-emptied",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(2, 3)],
        tasks: &[
            &[End(PopLast), End(PopLast)],
            &[Insert(5, 4), End(Last), Remove(0)],
            &[End(First), Get(2)],
        ],
    },
];

/// Ranges over several base nodes are read atomically.
pub(crate) const ADAPTING_RANGES: &[Scenario] = &[
    Scenario {
        name: "entries-that-move-behind-a-range",
        keys: 8,
        before: &[Insert(0, 1), Insert(6, 2), Insert(4, 3)],
        tasks: &[
            &[Insert(1, 4), Remove(6), Insert(7, 5)],
            &[Collect(0, 7), Collect(1, 6)],
            &[Remove(0), Insert(2, 6)],
        ],
    },
    Scenario {
        name: "ranges-beside-splits-and-joins",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3), Insert(7, 4)],
        tasks: &[
            &[Remove(4), Insert(5, 5), Remove(0)],
            &[Collect(0, 7), Get(5), Collect(3, 7)],
            &[Insert(1, 6), Remove(7), Insert(2, 7)],
        ],
    },
    Scenario {
        name: "ranges-beside-pops",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3)],
        tasks: &[
            &[End(PopFirst), End(PopFirst)],
            &[Collect(0, 7), Get(6)],
            &[Insert(1, 4), End(PopLast)],
        ],
    },
];

/// Ranges over several base nodes are updated atomically.
pub(crate) const ADAPTING_UPDATES: &[Scenario] = &[
    Scenario {
        name: "updates-of-ranges",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3)],
        tasks: &[
            &[UpdateRange(0, 7, 64), Get(0)],
            &[Get(6), Get(0), Insert(5, 4)],
            &[Collect(0, 7), Remove(4)],
        ],
    },
    Scenario {
        name: "updates-that-overlap",
        keys: 8,
        before: &[Insert(0, 1), Insert(7, 2), Insert(3, 3), Insert(5, 4)],
        tasks: &[
            &[UpdateRange(0, 5, 64), Collect(0, 7)],
            &[UpdateRange(3, 7, 128), Get(0)],
            &[Insert(4, 5), UpdateRange(0, 7, 256), Get(7)],
        ],
    },
    Scenario {
        name: "updates-beside-pops",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(6, 3)],
        tasks: &[
            &[End(PopFirst), End(PopFirst)],
            &[Collect(0, 7), UpdateRange(0, 6, 64)],
            &[Insert(1, 4), End(PopLast)],
        ],
    },
];
