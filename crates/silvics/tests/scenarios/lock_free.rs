//! Scenarios for internal trees without locks, whose keys move up.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{Any, Exchange, Get, Insert, Remove, TryInsert};

/// Scenarios for the internal tree: successors that are lifted to the place of a removed key.
pub(crate) const RELOCATIONS: &[Scenario] = &[
    Scenario {
        // The removal of 1 lifts 2, its child.
        name: "successor-is-child",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Get(2)], &[Get(2), Remove(2)], &[Insert(3, 4), Insert(2, 5)]],
    },
    Scenario {
        // The removal of 1 lifts 2 over 4, beside lookups that search for 2 below 4.
        name: "successor-lifted",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(4, 3), Insert(2, 4), Insert(5, 5)],
        tasks: &[&[Remove(1), Get(1)], &[Get(2), Get(2)], &[Insert(2, 6), Get(2)]],
    },
    Scenario {
        // Keys come between 1 and 2, and below 2, while 2 is lifted.
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
        // Two relocations: the lower one is at the parent of the upper one's successor.
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
        // One place is relocated repeatedly, beside a search that went right there.
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
        // The node at which a search last went right is removed, and then the one above is
        // relocated.
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
        // The node at which a search last went right is updated, and then its copy is relocated.
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
        // A link is emptied and filled again and again.
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
        // A copy takes a node's place while other operations go below it.
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

/// Scenarios for the internal tree: a relocation that a thread meets and that began after its
/// operation.
pub(crate) const LATE_HELPERS: &[Scenario] = &[Scenario {
    // 4, the parent of the successor 3, is removed after the removal of 1 has begun. The thread
    // that removed it meets the removal of 1 later, under another guard.
    name: "successors-parent-gone",
    keys: 7,
    before: &[Insert(1, 1), Insert(0, 2), Insert(6, 3), Insert(4, 4), Insert(3, 5)],
    tasks: &[&[Remove(1)], &[Remove(4), TryInsert(0, 7), Get(0), TryInsert(0, 7)]],
}];

/// Scenarios for edges that are reserved before their node has a fate.
pub(crate) const RESERVATIONS: &[Scenario] = &[
    Scenario {
        // Two threads carry out the removal of 2, and the later one meets a reserved edge.
        name: "reserved-before-fate",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(2)], &[Remove(2), Remove(0), Get(0)], &[Remove(1)]],
    },
    Scenario {
        // Two threads carry out the removal of 2, beside an update of the node with the reserved
        // edge.
        name: "update-before-fate",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(2)], &[Remove(2), Insert(1, 4), Get(1)], &[Remove(1)]],
    },
];

/// Scenarios for the internal tree with marks on edges: keys that move up, beside all operations
/// that meet them.
pub(crate) const SUCCESSIONS: &[Scenario] = &[
    Scenario {
        // The removal of 1 moves 3 up, while lookups have passed 1.
        name: "promotion-past-lookups",
        keys: 6,
        before: &[Insert(1, 1), Insert(0, 2), Insert(5, 3), Insert(3, 4)],
        tasks: &[&[Remove(1)], &[Get(3), Get(3)], &[Get(4), Get(3), Get(1)]],
    },
    Scenario {
        // An insert of 2 is on its way to the empty edge left of 5. Then 3 is inserted there and
        // moves up, so 2 belongs left of 3.
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
        // The successor is the right child.
        name: "right-child-moves-up",
        keys: 4,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Get(2)], &[Remove(2), Insert(3, 4)], &[Insert(1, 5), Get(2)]],
    },
    Scenario {
        // The removal of 1 finds one child, two, or none.
        name: "children-come-and-go",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2)],
        tasks: &[&[Remove(1), Get(0)], &[Insert(2, 3), Remove(2)], &[Remove(0), Insert(0, 4)]],
    },
    Scenario {
        // The copy for 1 is not needed if 0 or 2 is removed first.
        name: "copy-in-vain",
        keys: 3,
        before: &[Insert(1, 1), Insert(0, 2), Insert(2, 3)],
        tasks: &[&[Remove(1), Get(1)], &[Remove(0), Get(2)], &[Remove(2), TryInsert(1, 4)]],
    },
    Scenario {
        // 1 has only a right edge, which is reserved while its left child is removed and inserted.
        name: "reserved-edge",
        keys: 4,
        before: &[Insert(2, 1), Insert(1, 2), Insert(0, 3)],
        tasks: &[&[Remove(1), Get(1)], &[Remove(0), Insert(1, 4)], &[Insert(1, 5), Remove(2)]],
    },
    Scenario {
        // All nodes on the way to the successor of 1 are being removed.
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
        // Each removed node has two children, and each is the other's successor.
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
