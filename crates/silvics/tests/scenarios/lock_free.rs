//! For internal trees without locks, whose keys move up.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{Any, Exchange, Get, Insert, Remove, TryInsert};

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
