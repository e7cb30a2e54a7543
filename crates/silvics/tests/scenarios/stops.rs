//! Tasks that stop for ever, and the calls that another task makes beside them.

use silvics_testkit::schedules::Step::{
    self, Exchange, Get, GetMany, Insert, Range, RangeRev, Remove, TryInsert, Walk, WalkRev,
};
use silvics_testkit::schedules::Stops;

/// Writers that stop: every verb, and `compare_exchange` in each of its forms, on the keys that the
/// other task needs.
pub(crate) const STOPS: &[Stops] = &[
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

/// Writers that stop beside lookups and scans. Blocks of up to three entries are changed, copied,
/// split and merged.
pub(crate) const BESIDE_READERS: &[Stops] = &[
    Stops {
        name: "update-beside-readers",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: Insert(1, 4),
        other: READS,
    },
    Stops {
        name: "insert-beside-readers",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2)],
        victim: Insert(1, 3),
        other: READS,
    },
    Stops {
        name: "split-beside-readers",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        victim: Insert(3, 4),
        other: READS,
    },
    Stops {
        name: "merge-beside-readers",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4), Remove(2)],
        victim: Remove(1),
        other: READS,
    },
];

const READS: &[Step] =
    &[Get(0), Get(1), Get(2), Get(3), GetMany(0, 3), Range(0, 3), RangeRev(0, 3)];

/// Lookups that stop, for which no other task may wait.
pub(crate) const LOOKUPS: &[Stops] = &[
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

/// Writers that stop at a node whose key moves up, or at one that has only the right child, or only
/// the left one. The other task comes by all nodes that the victim may have marked.
pub(crate) const SUCCESSION_STOPS: &[Stops] = &[
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
pub(crate) const SCAN_STOPS: &[Stops] = &[
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

/// Removals that lift the successor and stop. Then lookups and writers come to each of its nodes.
pub(crate) const RELOCATION_STOPS: &[Stops] = &[
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

/// Lookups that stop beside updates that copy no node, and so wait for no lookup.
pub(crate) const UNCOPIED: &[Stops] = &[
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

/// Writers that stop in a join of a tree whose second write splits a base node, and whose fourth
/// one joins it. The other task comes by all places that the join may have claimed.
pub(crate) const JOIN_STOPS: &[Stops] = &[
    Stops {
        // Both base nodes are children of the parent.
        name: "join-of-siblings",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2), Insert(0, 3), Insert(0, 4), Insert(0, 5)],
        victim: Insert(0, 6),
        other: &[Get(0), Get(4), Range(0, 7), Insert(1, 7), Insert(5, 8), Remove(4), Remove(0)],
    },
    Stops {
        // The parent's other child is a route node.
        name: "join-with-a-nephew",
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
        victim: Insert(0, 8),
        other: &[Get(0), Get(3), Insert(4, 9), Insert(2, 10), Remove(3), Insert(1, 11), Remove(2)],
    },
    Stops {
        name: "join-of-an-empty-one",
        keys: 8,
        before: &[Insert(0, 1), Insert(4, 2)],
        victim: Remove(0),
        other: &[Get(0), Insert(5, 3), Insert(1, 4), Remove(4), Range(0, 7), Remove(1), Remove(5)],
    },
];
