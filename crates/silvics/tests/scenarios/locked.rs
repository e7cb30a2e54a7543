//! Scenarios for internal trees with a lock per node.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{Exchange, Get, Insert, RangeRev, Remove, TryInsert};

/// Scenarios for the AVL tree: rotations beside all other operations.
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
        // 1 becomes a routing node, which is used again, or is unlinked with one of its children.
        name: "routing-node",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Remove(0)], &[Insert(1, 4), Get(1)], &[Remove(2), TryInsert(1, 5)]],
    },
    Scenario {
        // A routing node loses its value and gets another, beside lookups.
        name: "routing-node-refilled",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[
            &[Get(1), Get(1), Get(1), Get(1), Get(1)],
            &[Remove(1), Insert(1, 4), Remove(1), Insert(1, 5)],
        ],
    },
    Scenario {
        // An insert attaches below a node that is being unlinked.
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
        // The insert of 19 rotates at 4 and gives it the child 8, which loses its balance
        // meanwhile.
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

/// Scenarios for the AVL tree: two rotations within one step of a descent.
pub(crate) const TURNS: &[Scenario] = &[Scenario {
    // The insert of 0 lifts 1 above 2, and the removal of 0 lifts 2 back above 1, which is present
    // throughout.
    name: "turned-and-turned-back",
    keys: 4,
    before: &[Insert(2, 1), Insert(1, 2)],
    tasks: &[&[Insert(0, 3), Insert(3, 4), Remove(0)], &[Get(1)]],
}];

/// Scenarios for the tree over an ordered list: nodes that have left the tree or the list, but not
/// both.
pub(crate) const ORDERINGS: &[Scenario] = &[
    Scenario {
        // 2 takes the place of 1. It comes from below 4, which is removed meanwhile.
        name: "successor-loses-its-parent",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(4, 4), Insert(2, 5)],
        tasks: &[&[Remove(1)], &[Remove(4)], &[Get(3), Get(2)]],
    },
    Scenario {
        // 2 is removed from below 5, and 5 from above 2. They have no neighbour in common.
        name: "parent-removed",
        keys: 7,
        before: &[Insert(6, 1), Insert(5, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(2)], &[Remove(5)], &[Get(3), Get(2)]],
    },
    Scenario {
        // A lookup of 4 ends at 3, below 2, and needs its neighbour 5, which is far above.
        name: "neighbour-far-above",
        keys: 6,
        before: &[Insert(5, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(3)], &[Remove(5)], &[Get(4)]],
    },
    Scenario {
        // The key of a node with two children is inserted again, below another node.
        name: "removed-and-inserted-again",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1)], &[Insert(1, 4), Get(1)], &[Get(1), Get(2)]],
    },
    Scenario {
        // Readers reach the inserted node from behind it, and from before it.
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
        // Each removed node is another's neighbour, parent or successor.
        name: "removals-of-neighbours",
        keys: 5,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4), Insert(4, 5)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Get(3)], &[Remove(3), Insert(1, 6)]],
    },
];

/// Scenarios for the tree that copies successors: keys that are in two nodes.
pub(crate) const COPIES: &[Scenario] = &[
    Scenario {
        // 2 is copied to the place of 1, from below 3.
        name: "successor-copied",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4)],
        tasks: &[&[Remove(1)], &[Get(2), Get(2)], &[Get(3), Get(2), Get(0)]],
    },
    Scenario {
        // 2, the right child of 1, is copied to the place of 1.
        name: "right-child-copied",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[&[Remove(1)], &[Get(2), Insert(2, 5), Get(2)], &[Remove(3), Get(2)]],
    },
    Scenario {
        // 2 is copied to the place of 1 while its value is replaced.
        name: "copied-while-updated",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4)],
        tasks: &[&[Remove(1)], &[Insert(2, 5), Get(2)], &[Exchange(2, Some(5), Some(6)), Get(2)]],
    },
    Scenario {
        // 2 is inserted at a place that another insert has found empty, is copied, and is removed
        // from there.
        name: "empty-again",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3)],
        tasks: &[&[TryInsert(2, 4), Get(2)], &[Insert(2, 5), Remove(1)], &[Remove(2), Get(2)]],
    },
    Scenario {
        // Keys are inserted behind the copy and before the node that was copied.
        name: "inserts-around-a-copy",
        keys: 9,
        before: &[Insert(2, 1), Insert(0, 2), Insert(8, 3), Insert(6, 4)],
        tasks: &[&[Remove(2)], &[Insert(4, 5), Get(4)], &[Insert(7, 6), Remove(6), Get(7)]],
    },
    Scenario {
        // Each remover copies its own successor, and both wait.
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
        // The copy and its successor are removed next.
        name: "copies-of-copies",
        keys: 5,
        before: &[Insert(1, 1), Insert(0, 2), Insert(3, 3), Insert(2, 4), Insert(4, 5)],
        tasks: &[&[Remove(1), Remove(3)], &[Remove(2), Get(3)], &[Get(4), Get(3)]],
    },
];
