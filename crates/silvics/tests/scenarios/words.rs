//! Scenarios for blocks of words: under the model a block has at most three entries in groups of
//! two places, an array four slots, and a node four children. The words 96 to 98 and 112 to 114 are
//! marks.

use silvics_testkit::schedules::EndVerb::{First, Last, PopFirst, PopLast};
use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{
    End, Exchange, Get, Insert, Range, RangeRev, Remove, TryInsert, Walk, WalkRev,
};

/// Blocks and arrays of slots are made, divided, emptied, merged and turned into each other, while
/// others read and write them.
pub(crate) const WORDS: &[Scenario] = &[
    Scenario {
        name: "two-keys-of-one-group",
        keys: 2,
        before: &[],
        tasks: &[
            &[Insert(0, 1), Get(1), Remove(0)],
            &[Insert(1, 2), Get(0), TryInsert(1, 3)],
            &[TryInsert(0, 4), Get(1), Get(0)],
        ],
    },
    Scenario {
        name: "keys-pass-a-full-group",
        keys: 24,
        before: &[Insert(0, 1)],
        tasks: &[
            &[Insert(6, 2), Get(6), Get(12)],
            &[Insert(12, 3), Get(12), Get(6)],
            &[TryInsert(6, 4), Remove(12), Get(0)],
        ],
    },
    Scenario {
        name: "block-split",
        keys: 24,
        before: &[Insert(0, 1), Insert(6, 2), Insert(12, 3)],
        tasks: &[
            &[Insert(18, 4), Get(0), Get(6)],
            &[Insert(6, 5), Exchange(6, Some(5), Some(6)), Get(6)],
            &[Remove(12), Insert(23, 7), Get(12)],
        ],
    },
    Scenario {
        name: "two-split-one-block",
        keys: 24,
        before: &[Insert(0, 1), Insert(6, 2), Insert(12, 3)],
        tasks: &[
            &[Insert(3, 4), Get(3), Get(18)],
            &[Insert(18, 5), Get(18), Get(3)],
            &[Range(0, 23), RangeRev(0, 23)],
        ],
    },
    Scenario {
        name: "value-changes-while-it-moves",
        keys: 24,
        before: &[Insert(0, 1), Insert(6, 2), Insert(12, 3)],
        tasks: &[
            &[Insert(0, 4), Insert(0, 5), Insert(0, 6)],
            &[Insert(18, 7), Remove(18)],
            &[Get(0), Get(0), Get(0)],
        ],
    },
    Scenario {
        name: "slots-made",
        keys: 6,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3)],
        tasks: &[
            &[Insert(3, 4), Get(0), Insert(5, 5)],
            &[Insert(1, 6), Exchange(1, Some(6), Some(7)), Get(1)],
            &[Remove(2), Get(2), Range(0, 5)],
        ],
    },
    Scenario {
        name: "slots-become-a-block",
        keys: 5,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[
            &[Remove(0), Remove(1), Get(2)],
            &[Remove(3), TryInsert(3, 5), Get(3)],
            &[RangeRev(0, 4), Exchange(2, Some(3), Some(6))],
        ],
    },
    Scenario {
        name: "slots-emptied",
        keys: 8,
        before: &[Insert(4, 1), Insert(0, 2), Insert(1, 3), Insert(2, 4), Insert(3, 5)],
        tasks: &[
            &[Remove(0), Remove(1)],
            &[Remove(2), Remove(3), Get(4)],
            &[Insert(1, 6), Walk(0, 2), Remove(1)],
        ],
    },
    Scenario {
        name: "blocks-merged",
        keys: 24,
        before: &[Insert(0, 1), Insert(6, 2), Insert(12, 3), Insert(18, 4)],
        tasks: &[
            &[Remove(0), Insert(6, 5), Get(12)],
            &[Remove(18), Insert(12, 6), Get(6)],
            &[Insert(3, 7), Range(0, 23)],
        ],
    },
    Scenario {
        name: "blocks-merged-beside-walks",
        keys: 24,
        before: &[Insert(0, 1), Insert(6, 2), Insert(12, 3), Insert(18, 4)],
        tasks: &[
            &[Remove(0), Remove(18)],
            &[Range(0, 23), Walk(0, 3)],
            &[RangeRev(0, 23), WalkRev(23, 3)],
        ],
    },
    Scenario {
        name: "blocks-emptied",
        keys: 24,
        before: &[Insert(0, 1), Insert(6, 2), Insert(12, 3), Insert(18, 4)],
        tasks: &[
            &[Remove(0), Remove(6), Get(12)],
            &[Remove(12), Remove(18), TryInsert(18, 5)],
            &[Insert(6, 6), Get(0), Remove(6)],
        ],
    },
    Scenario {
        name: "above-a-node",
        keys: 40,
        before: &[Insert(32, 1), Insert(34, 2), Insert(36, 3), Insert(38, 4)],
        tasks: &[
            &[Insert(0, 5), Get(0), Get(16)],
            &[Insert(16, 6), Get(16), Insert(1, 7)],
            &[Remove(32), Remove(34), Range(0, 39)],
        ],
    },
    Scenario {
        name: "marks-as-values",
        keys: 24,
        before: &[Insert(0, 96), Insert(6, 2)],
        tasks: &[
            &[Insert(6, 112), Get(6), Get(0)],
            &[Insert(0, 3), Exchange(0, Some(3), Some(97)), Get(0)],
            &[Remove(6), Insert(12, 98), Get(12)],
        ],
    },
    // The first exchange of marks finds another value, and is taken back.
    Scenario {
        name: "marks-taken-back",
        keys: 7,
        before: &[Insert(0, 1), Insert(6, 2)],
        tasks: &[
            &[Exchange(0, Some(1), Some(96))],
            &[Insert(0, 5), Insert(0, 97)],
            &[Get(6), Get(6)],
        ],
    },
    // A value is a mark of the block, and then of its copy no more.
    Scenario {
        name: "marks-exchanged-twice",
        keys: 13,
        before: &[Insert(6, 2)],
        tasks: &[
            &[Insert(0, 97), Get(0)],
            &[Insert(12, 96), Insert(12, 5), Get(0)],
            &[Get(6), Get(0)],
        ],
    },
    // A node of one child goes, and its child has only a part of its places.
    Scenario {
        name: "node-of-one-child",
        keys: 64,
        before: &[
            Insert(0, 1),
            Insert(4, 2),
            Insert(8, 3),
            Insert(12, 4),
            Insert(32, 5),
            Insert(40, 6),
            Insert(48, 7),
            Insert(56, 8),
            Insert(1, 9),
            Insert(2, 10),
        ],
        tasks: &[
            &[Remove(8), Remove(12), Get(9), Insert(9, 11), Get(9)],
            &[Remove(4), Insert(5, 12), Get(5)],
            &[Range(0, 63), Get(0)],
        ],
    },
    Scenario {
        name: "marks-in-slots",
        keys: 4,
        before: &[Insert(0, 1), Insert(1, 2), Insert(2, 3), Insert(3, 4)],
        tasks: &[
            &[Insert(0, 96), Get(0), Get(1)],
            &[Insert(1, 112), Remove(1), Get(0)],
            &[Exchange(2, Some(3), Some(98)), Range(0, 3)],
        ],
    },
    Scenario {
        name: "orders-noted",
        keys: 4,
        before: &[Insert(2, 1)],
        tasks: &[
            &[Insert(0, 2), Range(0, 3)],
            &[Insert(1, 3), RangeRev(0, 3)],
            &[Range(0, 3), Remove(1), Insert(3, 4)],
        ],
    },
];

/// The first and the last leaf change while the ends are read and removed.
pub(crate) const WORD_ENDS: &[Scenario] = &[
    Scenario {
        name: "first-leaf-planted",
        keys: 24,
        before: &[Insert(18, 1), Insert(12, 2), Insert(13, 3), Insert(19, 4)],
        tasks: &[
            &[Insert(0, 5), End(First), Remove(0)],
            &[End(PopFirst), Insert(6, 6)],
            &[End(First), Get(12)],
        ],
    },
    Scenario {
        name: "first-block-emptied",
        keys: 24,
        before: &[Insert(0, 1), Insert(6, 2), Insert(12, 3), Insert(18, 4)],
        tasks: &[
            &[End(PopFirst), End(PopFirst)],
            &[Insert(0, 5), Remove(6)],
            &[End(Last), End(PopLast), Get(0)],
        ],
    },
    Scenario {
        name: "end-beside-smaller-key",
        keys: 4,
        before: &[Insert(1, 1), Insert(2, 2)],
        tasks: &[
            &[Insert(0, 3), Remove(2)],
            &[End(PopFirst), End(First)],
            &[Exchange(1, Some(1), Some(4)), Get(0)],
        ],
    },
];
