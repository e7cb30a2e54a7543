//! Scenarios for blocks: under the model a block has at most three entries, and a node three
//! children.

use silvics_testkit::schedules::EndVerb::{First, Last, PopFirst, PopLast};
use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{
    End, Exchange, Get, Insert, Range, RangeRev, Remove, TryInsert, Walk, WalkRev,
};

/// Blocks are split, emptied, merged and put beside others, and nodes are divided, while others
/// read and write them.
pub(crate) const BLOCKS: &[Scenario] = &[
    Scenario {
        name: "block-splits",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        tasks: &[
            &[Insert(3, 4), Get(0)],
            &[Insert(1, 5), Exchange(1, Some(5), Some(6)), Get(1)],
            &[Remove(2), Insert(4, 7), Get(2)],
        ],
    },
    Scenario {
        name: "two-split-one-block",
        keys: 6,
        before: &[Insert(0, 1), Insert(2, 2), Insert(4, 3)],
        tasks: &[
            &[Insert(1, 4), Get(1), Get(5)],
            &[Insert(5, 5), Get(5), Get(1)],
            &[Range(0, 5), RangeRev(0, 5)],
        ],
    },
    Scenario {
        name: "node-divided",
        keys: 12,
        before: &[
            Insert(0, 1),
            Insert(2, 2),
            Insert(4, 3),
            Insert(6, 4),
            Insert(8, 5),
            Insert(10, 6),
            Insert(1, 7),
            Insert(5, 8),
        ],
        tasks: &[
            &[Insert(3, 9), Insert(7, 10), Get(8)],
            &[Insert(9, 11), Insert(11, 12), Get(2)],
            &[Range(0, 11), Remove(4), Get(6)],
        ],
    },
    Scenario {
        name: "put-back-beside-reads",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 2)],
        tasks: &[
            &[Remove(1), Insert(1, 3), Remove(1), TryInsert(1, 4)],
            &[Get(1), Get(1), Get(1)],
            &[Range(0, 2), Get(1)],
        ],
    },
    Scenario {
        name: "blocks-emptied",
        keys: 9,
        before: &[
            Insert(0, 1),
            Insert(1, 2),
            Insert(2, 3),
            Insert(3, 4),
            Insert(4, 5),
            Insert(8, 6),
        ],
        tasks: &[
            &[Remove(4), Insert(5, 7), Get(8)],
            &[Remove(8), Get(4), TryInsert(8, 8)],
            &[Walk(3, 2), WalkRev(8, 2)],
        ],
    },
    Scenario {
        name: "beside-a-subtree",
        keys: 40,
        before: &[Insert(32, 1), Insert(33, 2), Insert(34, 3), Insert(35, 4)],
        tasks: &[
            &[Insert(0, 5), Get(0), Get(16)],
            &[Insert(16, 6), Get(16), Insert(1, 7)],
            &[Remove(32), Remove(33), Range(0, 36)],
        ],
    },
    // The root is a block again, which still has the depth of a node's child.
    Scenario {
        name: "beside-the-root",
        keys: 6,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4), Remove(2), Remove(3)],
        tasks: &[&[Insert(4, 5), Get(4)], &[Insert(5, 6), Get(5)], &[Remove(0), Remove(1)]],
    },
    // The tags of these two keys are equal.
    Scenario {
        name: "equal-tags",
        keys: 90,
        before: &[Insert(0, 1)],
        tasks: &[&[Insert(89, 2), Get(89), Remove(0), Get(89)], &[Get(89), Insert(0, 3)]],
    },
    Scenario {
        name: "small-blocks-merged",
        keys: 6,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[
            &[Remove(1), Insert(0, 5), Get(2)],
            &[Remove(3), Insert(2, 6), Get(0)],
            &[Insert(4, 7), Range(0, 5)],
        ],
    },
    Scenario {
        name: "values-while-a-block-is-copied",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        tasks: &[
            &[Insert(0, 4), Insert(0, 5), Insert(0, 6)],
            &[Insert(4, 7), Remove(4), Insert(3, 8)],
            &[Get(0), Get(0), Get(0)],
        ],
    },
];

/// Entries come and go at the ends.
pub(crate) const BLOCK_ENDS: &[Scenario] = &[
    Scenario {
        name: "ends-of-blocks-emptied",
        keys: 9,
        before: &[Insert(2, 1), Insert(3, 2), Insert(4, 3), Insert(5, 4), Insert(8, 5)],
        tasks: &[
            &[End(PopFirst), End(PopFirst), End(PopFirst)],
            &[End(PopLast), End(First), End(PopLast)],
            &[Insert(0, 6), End(Last)],
        ],
    },
    Scenario {
        name: "ends-beside-new-blocks",
        keys: 40,
        before: &[Insert(16, 1), Insert(17, 2), Insert(18, 3), Insert(19, 4)],
        tasks: &[
            &[Insert(0, 5), Remove(16), Get(0)],
            &[End(First), End(PopFirst)],
            &[Insert(32, 6), Remove(19), End(Last)],
        ],
    },
    Scenario {
        name: "ends-of-a-split-block",
        keys: 6,
        before: &[Insert(1, 1), Insert(2, 2), Insert(3, 3)],
        tasks: &[
            &[Insert(0, 4), Insert(5, 5)],
            &[End(First), End(PopLast)],
            &[End(PopFirst), Insert(4, 6)],
        ],
    },
    // Three levels of nodes. While a walk stands at the root, the root is replaced, and the block
    // that was the first below it for a while is gone again when the walk goes on.
    Scenario {
        name: "first-block-comes-and-goes",
        keys: 84,
        before: &[
            Insert(64, 1),
            Insert(65, 1),
            Insert(66, 1),
            Insert(67, 1),
            Insert(68, 1),
            Insert(69, 1),
            Insert(70, 1),
            Insert(71, 1),
            Insert(72, 1),
            Insert(73, 1),
            Insert(74, 1),
            Insert(75, 1),
            Insert(76, 1),
            Insert(77, 1),
            Insert(78, 1),
            Insert(79, 1),
            Insert(80, 1),
            Insert(81, 1),
            Insert(82, 1),
            Insert(83, 1),
        ],
        tasks: &[&[Insert(32, 2), Get(64), Insert(0, 3), Remove(32)], &[End(PopFirst)]],
    },
    Scenario {
        name: "first-entry-behind-others",
        keys: 84,
        before: &[
            Insert(64, 1),
            Insert(65, 1),
            Insert(66, 1),
            Insert(67, 1),
            Insert(68, 1),
            Insert(69, 1),
            Insert(70, 1),
            Insert(71, 1),
            Insert(72, 1),
            Insert(73, 1),
            Insert(74, 1),
            Insert(75, 1),
            Insert(76, 1),
            Insert(77, 1),
            Insert(78, 1),
            Insert(79, 1),
            Insert(80, 1),
            Insert(81, 1),
            Insert(82, 1),
            Insert(83, 1),
        ],
        tasks: &[
            &[Insert(32, 2), Insert(64, 4), Insert(0, 3), Remove(32)],
            &[End(First), End(First)],
        ],
    },
];
