//! The scenarios of `schedules.rs` and `canaries.rs`: as small as the situations allow that they
//! are to bring about, since the number of orders grows with every step.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{
    Any, Exchange, Get, GetMany, Insert, Range, RangeRev, Remove, TryInsert, Walk, WalkRev,
};

/// For every structure.
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

/// For the AVL tree: rotations beside everything else.
pub(crate) const ROTATIONS: &[Scenario] = &[
    Scenario {
        // The insert of 2 moves 0 down.
        name: "single-rotation",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2)],
        tasks: &[&[Insert(2, 3), Insert(3, 4)], &[Get(1), Get(0)], &[Insert(1, 5), Get(2)]],
    },
    Scenario {
        // The insert of 2 moves 4 and 0 down.
        name: "double-rotation",
        keys: 6,
        before: &[Insert(4, 1), Insert(0, 2)],
        tasks: &[&[Insert(2, 3)], &[Get(0), Get(4)], &[TryInsert(3, 4), TryInsert(1, 5)]],
    },
    Scenario {
        name: "ascending-inserts",
        keys: 6,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        tasks: &[&[Insert(3, 4), Insert(4, 5)], &[Remove(0), Get(2)], &[Get(2), Insert(5, 6)]],
    },
    Scenario {
        // The removal of 0 makes 1 move below 3.
        name: "removal-rotates",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(4, 4)],
        tasks: &[&[Remove(0)], &[Get(3), Get(1)], &[Insert(2, 5), Remove(1)]],
    },
    Scenario {
        // 1 becomes a routing node, is used again, or unlinked with one of its children.
        name: "routing-node",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Remove(0)], &[Insert(1, 4), Get(1)], &[Remove(2), TryInsert(1, 5)]],
    },
    Scenario {
        // A routing node loses its value and gets another beside lookups.
        name: "routing-node-refilled",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[
            &[Get(1), Get(1), Get(1), Get(1), Get(1)],
            &[Remove(1), Insert(1, 4), Remove(1), Insert(1, 5)],
        ],
    },
    Scenario {
        // Attaching below a node that is being unlinked.
        name: "attach-below-unlinked",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(2), Get(3)], &[Insert(3, 4), Get(3)], &[Remove(3), Insert(2, 5)]],
    },
    Scenario {
        // The insert of 9 rotates at 2 and gives it the child 4, which grows meanwhile.
        name: "moved-while-growing",
        keys: 10,
        before: &[Insert(2, 1), Insert(0, 2), Insert(6, 3), Insert(4, 4), Insert(8, 5)],
        tasks: &[&[Insert(3, 6)], &[Insert(9, 7)]],
    },
    Scenario {
        // The insert of 19 rotates at 4 and gives it the child 8, which loses its balance meanwhile.
        name: "moved-while-unbalanced",
        keys: 20,
        before: &[
            Insert(4, 1),
            Insert(2, 2),
            Insert(12, 3),
            Insert(1, 4),
            Insert(8, 5),
            Insert(16, 6),
            Insert(6, 7),
            Insert(14, 8),
            Insert(18, 9),
        ],
        tasks: &[&[Insert(5, 10)], &[Insert(19, 11)]],
    },
    Scenario {
        // The insert of 5 lifts 4 above 2 and 6, beside lookups of 4 that stand at 2.
        name: "double-rotation-of-the-present",
        keys: 9,
        before: &[Insert(6, 1), Insert(2, 2), Insert(8, 3), Insert(1, 4), Insert(4, 5)],
        tasks: &[&[Insert(5, 6)], &[Get(4), Get(4), Get(4)]],
    },
    Scenario {
        name: "damage-on-two-sides",
        keys: 8,
        before: &[
            Insert(4, 1),
            Insert(2, 2),
            Insert(6, 3),
            Insert(1, 4),
            Insert(3, 5),
            Insert(5, 6),
            Insert(7, 7),
        ],
        tasks: &[
            &[Remove(1), Remove(3), Insert(0, 8)],
            &[Remove(5), Remove(7), Get(6)],
            &[Remove(4), Remove(2), Get(3)],
        ],
    },
];

/// For the external tree: several flagged leaves under one ancestor, cut out at once.
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

/// For the tree over an ordered list: what leaves the one and still is in the other.
pub(crate) const ORDERINGS: &[Scenario] = &[
    Scenario {
        // 2 takes the place of 1, from below 4, which leaves it meanwhile.
        name: "successor-loses-its-parent",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(4, 4), Insert(2, 5)],
        tasks: &[&[Remove(1)], &[Remove(4)], &[Get(3), Get(2)]],
    },
    Scenario {
        // 2 leaves from below 5, which leaves from above it; they have no neighbour in common.
        name: "parent-removed",
        keys: 7,
        before: &[Insert(6, 1), Insert(5, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(2)], &[Remove(5)], &[Get(3), Get(2)]],
    },
    Scenario {
        // Who looks for 4 ends at 3, below 2, and needs its neighbour 5, which is far above.
        name: "neighbour-far-above",
        keys: 6,
        before: &[Insert(5, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(3)], &[Remove(5)], &[Get(4)]],
    },
    Scenario {
        // The key of a node with two children comes back, below another.
        name: "removed-and-inserted-again",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1)], &[Insert(1, 4), Get(1)], &[Get(1), Get(2)]],
    },
    Scenario {
        // Seen from behind first, or from before it.
        name: "insert-seen-from-both-sides",
        keys: 3,
        before: &[Insert(0, 1), Insert(2, 2)],
        tasks: &[&[Insert(1, 3)], &[Get(1), RangeRev(0, 2), Get(1)]],
    },
    Scenario {
        // The range comes from 2, the lookup from 0.
        name: "insert-seen-from-behind",
        keys: 3,
        before: &[Insert(2, 1), Insert(0, 2)],
        tasks: &[&[Insert(1, 3)], &[RangeRev(0, 2), Get(1)]],
    },
    Scenario {
        name: "attach-behind-removed",
        keys: 4,
        before: &[Insert(1, 1), Insert(3, 2)],
        tasks: &[&[Remove(1), Get(2)], &[Insert(2, 3), Get(2)], &[Remove(3), Insert(0, 4)]],
    },
    Scenario {
        // The successor of 1 is 3, or 2 below it.
        name: "successor-inserted",
        keys: 5,
        before: &[Insert(1, 1), Insert(0, 2), Insert(4, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Get(4)], &[Insert(2, 5), Get(2)], &[Remove(3), Get(0)]],
    },
    Scenario {
        // Each is the other's neighbour, parent or successor.
        name: "removals-of-neighbours",
        keys: 5,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4), Insert(4, 5)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Get(3)], &[Remove(3), Insert(1, 6)]],
    },
];

/// For the tree that copies successors: what is there twice.
pub(crate) const COPIES: &[Scenario] = &[
    Scenario {
        // 2 is copied to the place of 1, from below 3.
        name: "successor-copied",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4)],
        tasks: &[&[Remove(1)], &[Get(2), Get(2)], &[Get(3), Get(2), Get(0)]],
    },
    Scenario {
        // The same, where the successor is the right child.
        name: "right-child-copied",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(1)], &[Get(2), Insert(2, 5), Get(2)], &[Remove(3), Get(2)]],
    },
    Scenario {
        // Its value is replaced meanwhile.
        name: "copied-while-updated",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4)],
        tasks: &[&[Remove(1)], &[Insert(2, 5), Get(2)], &[Exchange(2, Some(5), Some(6)), Get(2)]],
    },
    Scenario {
        // 2 comes to a place that an insert has found empty, is copied, and gone from there.
        name: "empty-again",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3)],
        tasks: &[&[TryInsert(2, 4), Get(2)], &[Insert(2, 5), Remove(1)], &[Remove(2), Get(2)]],
    },
    Scenario {
        // Behind the copy and before what is copied.
        name: "inserts-around-a-copy",
        keys: 9,
        before: &[Insert(2, 1), Insert(0, 2), Insert(8, 3), Insert(6, 4)],
        tasks: &[&[Remove(2)], &[Insert(4, 5), Get(4)], &[Insert(7, 6), Remove(6), Get(7)]],
    },
    Scenario {
        // Each remover has its own successor, and both wait.
        name: "two-copies-at-once",
        keys: 7,
        before: &[
            Insert(3, 1),
            Insert(1, 2),
            Insert(5, 3),
            Insert(0, 4),
            Insert(2, 5),
            Insert(4, 6),
            Insert(6, 7),
        ],
        tasks: &[&[Remove(1), Get(2)], &[Remove(5), Get(6)], &[Remove(3), Get(4)]],
    },
    Scenario {
        // The copy is the next to be removed, and its successor.
        name: "copies-of-copies",
        keys: 5,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4), Insert(4, 5)],
        tasks: &[&[Remove(1), Remove(3)], &[Remove(2), Get(3)], &[Get(4), Get(3)]],
    },
];

/// For edges that are reserved before their node has a fate.
pub(crate) const RESERVATIONS: &[Scenario] = &[
    Scenario {
        // Two carry out the removal of 2; the one that comes late meets a reserved edge.
        name: "reserved-before-fate",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(2)], &[Remove(2), Remove(0), Get(0)], &[Remove(1)]],
    },
    Scenario {
        // The same beside an update of the node with the reserved edge.
        name: "update-before-fate",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(2)], &[Remove(2), Insert(1, 4), Get(1)], &[Remove(1)]],
    },
];

/// For the internal tree with marks on edges: keys that move up, beside everything that meets them.
pub(crate) const SUCCESSIONS: &[Scenario] = &[
    Scenario {
        // The removal of 1 moves 3 up, past lookups that have passed 1.
        name: "promotion-past-lookups",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(3, 4)],
        tasks: &[&[Remove(1)], &[Get(3), Get(3)], &[Get(4), Get(3), Get(1)]],
    },
    Scenario {
        // An insert of 2 on its way to the empty edge left of 5, where 3 comes and moves up: then 2
        // belongs left of 3.
        name: "edge-empty-again",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3)],
        tasks: &[&[Insert(2, 4), Get(2)], &[Insert(3, 5), Remove(1), Get(2)]],
    },
    Scenario {
        name: "growth-around-a-successor",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Get(3)], &[Insert(4, 5), Get(4)], &[Insert(2, 6), Get(2)]],
    },
    Scenario {
        name: "successor-removed",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Get(1)], &[Remove(3), Get(3)], &[TryInsert(3, 5), Get(3)]],
    },
    Scenario {
        name: "successor-updated",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(3, 4)],
        tasks: &[
            &[Remove(1), Get(3)],
            &[Insert(3, 5), Exchange(3, Some(5), Some(6))],
            &[Get(3), Insert(1, 7)],
        ],
    },
    Scenario {
        // The successor is the right child itself.
        name: "right-child-moves-up",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Insert(3, 4)], &[Insert(1, 5), Get(2)]],
    },
    Scenario {
        // 1 has one child when its removal looks, or two, or none.
        name: "children-come-and-go",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2)],
        tasks: &[&[Remove(1), Get(0)], &[Insert(2, 3), Remove(2)], &[Remove(0), Insert(0, 4)]],
    },
    Scenario {
        // The copy for 1 is not needed, if 0 or 2 is gone first.
        name: "copy-in-vain",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Get(1)], &[Remove(0), Get(2)], &[Remove(2), TryInsert(1, 4)]],
    },
    Scenario {
        // 1 has a right edge only: reserved, while its left child goes and comes.
        name: "reserved-edge",
        keys: 4,
        before: &[Insert(2, 1), Insert(1, 2), Insert(0, 3)],
        tasks: &[&[Remove(1), Get(1)], &[Remove(0), Insert(1, 4)], &[Insert(1, 5), Remove(2)]],
    },
    Scenario {
        // On the way to the successor of 1 everything is being removed.
        name: "nodes-above-a-successor-removed",
        keys: 9,
        before: &[
            Insert(1, 1),
            Insert(0, 2),
            Insert(8, 3),
            Insert(6, 4),
            Insert(4, 5),
            Insert(3, 6),
        ],
        tasks: &[&[Remove(1), Get(3)], &[Remove(6), Remove(8)], &[Remove(4), Insert(2, 7)]],
    },
    Scenario {
        // Each has two children, and the successors are each other's.
        name: "promotions-in-a-row",
        keys: 7,
        before: &[
            Insert(3, 1),
            Insert(1, 2),
            Insert(5, 3),
            Insert(0, 4),
            Insert(2, 5),
            Insert(4, 6),
            Insert(6, 7),
        ],
        tasks: &[&[Remove(3), Get(5)], &[Remove(5), Remove(1)], &[Remove(4), Get(6), Get(2)]],
    },
    Scenario {
        name: "update-beside-growth",
        keys: 3,
        before: &[Insert(1, 1)],
        tasks: &[
            &[Insert(1, 2), Exchange(1, Some(2), Some(3))],
            &[Insert(2, 4), Get(2)],
            &[TryInsert(0, 5), Get(0), Get(2)],
        ],
    },
    Scenario {
        name: "any-of-seven",
        keys: 7,
        before: &[Insert(3, 1), Insert(1, 2), Insert(5, 3), Insert(0, 4), Insert(4, 5)],
        tasks: &[&[Any, Any, Any], &[Any, Any, Any], &[Any, Any, Any]],
    },
];

/// For the skip list: towers.
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

/// For structures with scans.
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

/// For the scans of external trees: subtrees that move up while a scan passes.
pub(crate) const PROMOTIONS: &[Scenario] = &[
    Scenario {
        // The sibling of 1 moves up and gets 0 below it: behind a scan that has seen 1.
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

/// For the external tree with locks: updates that meet at an edge, or at two of one node.
pub(crate) const LOCKED_EDGES: &[Scenario] = &[
    Scenario {
        // The removal of 1 takes both edges of the node above 1 and 2.
        name: "growth-beside-the-removed",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2), Insert(1, 3)],
        tasks: &[&[Remove(1)], &[Insert(3, 4), Get(3)], &[Insert(2, 5), Get(2)]],
    },
    Scenario {
        // Each removal wants an edge that the other takes for good.
        name: "removals-in-a-row",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Get(1)], &[Remove(3), TryInsert(1, 5)]],
    },
    Scenario {
        // The edge changes, and changes back to the same leaf.
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
/// For external trees whose operations flag a parent and a grandparent.
pub(crate) const FLAGS: &[Scenario] = &[
    Scenario {
        // Each removal's grandparent is the parent of the next one: flags and marks meet.
        name: "removals-in-a-row",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Get(3)], &[Remove(3), Get(1)]],
    },
    Scenario {
        // An insert at the parent that a removal is about to mark.
        name: "insert-at-a-marked-parent",
        keys: 4,
        before: &[Insert(0, 1), Insert(2, 2)],
        tasks: &[&[Remove(2), Get(1)], &[TryInsert(1, 3), Get(1)], &[Insert(3, 4), Remove(0)]],
    },
    Scenario {
        // The insert of 3 helps that of 1 at their parent, and comes late: 1 is gone again.
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
        // The words of few nodes are claimed and released over and over.
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

/// For the internal tree: successors that are lifted to where a removed node was.
pub(crate) const RELOCATIONS: &[Scenario] = &[
    Scenario {
        // The removal of 1 lifts 2, its child.
        name: "successor-is-child",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Get(2)], &[Get(2), Remove(2)], &[Insert(3, 4), Insert(2, 5)]],
    },
    Scenario {
        // The removal of 1 lifts 2 over 4, beside those who look for 2 below 4.
        name: "successor-lifted",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(4, 3), Insert(2, 4), Insert(5, 5)],
        tasks: &[&[Remove(1), Get(1)], &[Get(2), Get(2)], &[Insert(2, 6), Get(2)]],
    },
    Scenario {
        // What comes between 1 and 2, and below 2, while 2 is lifted.
        name: "growth-at-the-successor",
        keys: 8,
        before: &[Insert(1, 1), Insert(0, 2), Insert(6, 3), Insert(4, 4)],
        tasks: &[
            &[Remove(1), Get(4)],
            &[TryInsert(3, 5), Get(3)],
            &[TryInsert(5, 6), Remove(4), Get(5)],
        ],
    },
    Scenario {
        // Two relocations, the lower of which is at the successor's parent of the upper.
        name: "relocation-below-a-relocation",
        keys: 9,
        before: &[
            Insert(1, 1),
            Insert(0, 2),
            Insert(6, 3),
            Insert(3, 4),
            Insert(8, 5),
            Insert(7, 6),
            Insert(4, 7),
        ],
        tasks: &[&[Remove(1), Get(3)], &[Remove(6), Get(7)], &[Remove(3), Get(4)]],
    },
    Scenario {
        // The same place is relocated again and again, beside a search that went right there.
        name: "relocated-twice",
        keys: 6,
        before: &[
            Insert(1, 1),
            Insert(0, 2),
            Insert(5, 3),
            Insert(3, 4),
            Insert(2, 5),
            Insert(4, 6),
        ],
        tasks: &[&[Remove(1), Remove(2)], &[Get(3), Get(2)], &[Get(3), Get(4)]],
    },
    Scenario {
        // The node that a search went right at last is removed, then the one above relocated.
        name: "last-right-turn-removed",
        keys: 6,
        before: &[
            Insert(1, 1),
            Insert(0, 2),
            Insert(5, 3),
            Insert(2, 4),
            Insert(4, 5),
            Insert(3, 6),
        ],
        tasks: &[&[Remove(2), Remove(1)], &[Get(3), Get(3)], &[Get(3)]],
    },
    Scenario {
        // The node that a search went right at last is updated, then its copy relocated.
        name: "last-right-turn-updated",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(2, 4), Insert(3, 5)],
        tasks: &[&[Insert(1, 6), Remove(1)], &[Get(2), Get(2)], &[Get(2)]],
    },
    Scenario {
        name: "successor-and-parent-removed",
        keys: 8,
        before: &[
            Insert(1, 1),
            Insert(0, 2),
            Insert(6, 3),
            Insert(4, 4),
            Insert(3, 5),
            Insert(7, 6),
        ],
        tasks: &[
            &[Remove(1), Get(3)],
            &[Remove(4), Remove(3)],
            &[Insert(4, 7), Insert(2, 8), Get(1)],
        ],
    },
    Scenario {
        name: "updates-beside-a-relocation",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4)],
        tasks: &[
            &[Remove(1), Insert(1, 5)],
            &[Insert(2, 6), Exchange(2, Some(6), Some(7))],
            &[Insert(1, 8), Insert(3, 9)],
        ],
    },
    Scenario {
        // A link that is emptied and filled over and over.
        name: "link-used-again",
        keys: 2,
        before: &[Insert(0, 1)],
        tasks: &[
            &[Insert(1, 2), Remove(1)],
            &[Insert(1, 3), Remove(1)],
            &[TryInsert(1, 4), Get(1), Remove(1)],
        ],
    },
    Scenario {
        // A copy takes a node's place while others go below it.
        name: "growth-below-an-update",
        keys: 4,
        before: &[Insert(1, 1)],
        tasks: &[&[Insert(1, 2), Get(0)], &[Insert(0, 3), Get(0)], &[Insert(2, 4), Remove(0)]],
    },
    Scenario {
        name: "anything-among-six",
        keys: 6,
        before: &[Insert(2, 1), Insert(0, 2), Insert(4, 3), Insert(3, 4), Insert(5, 5)],
        tasks: &[&[Any, Any, Any], &[Any, Any, Any], &[Any, Any]],
    },
];

/// For the internal tree: a relocation of which a thread learns that has not been there when it began.
pub(crate) const LATE_HELPERS: &[Scenario] = &[Scenario {
    // 4, the parent of the successor 3, goes when the removal of 1 has begun; who has removed it comes
    // to the removal of 1 later, under another guard.
    name: "successors-parent-gone",
    keys: 7,
    before: &[Insert(1, 1), Insert(0, 2), Insert(6, 3), Insert(4, 4), Insert(3, 5)],
    tasks: &[&[Remove(1)], &[Remove(4), TryInsert(0, 7), Get(0), TryInsert(0, 7)]],
}];
