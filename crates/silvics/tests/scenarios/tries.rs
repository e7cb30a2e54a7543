//! Scenarios for Patricia tries: labels that are split and joined, nodes that are replaced below
//! and above a writer.
//!
//! With 16 characters, keys below 16 differ in the last character alone, keys below 256 in the last
//! two.

use silvics_testkit::schedules::Scenario;
use silvics_testkit::schedules::Step::{Exchange, Get, Insert, Range, RangeRev, Remove, TryInsert};

/// Scenarios for tries of any alphabet.
pub(crate) const TRIES: &[Scenario] = &[
    Scenario {
        name: "splits-beside-lookup",
        keys: 20,
        before: &[Insert(0, 1), Insert(1, 1)],
        tasks: &[
            &[Insert(16, 2), Get(0), Remove(16)],
            &[Get(0), Get(1), Get(16)],
            &[TryInsert(17, 3), Get(17), Get(1)],
        ],
    },
    // The label of the node of two keys gets shorter, and its bytes are not those of its beginning.
    Scenario {
        name: "label-moves-beside-lookup",
        keys: 0x212,
        before: &[Insert(0x111, 1), Insert(0x112, 1)],
        tasks: &[&[Insert(0x211, 2)], &[Get(0x111), Get(0x112)]],
    },
    // The node of 0 and 1 goes, and the leaf that stays takes its place below the grandparent.
    Scenario {
        name: "parent-goes-beside-insert",
        keys: 40,
        before: &[Insert(0, 1), Insert(1, 1), Insert(16, 1)],
        tasks: &[&[Remove(0), Get(1)], &[Insert(32, 2), Get(32), Get(16)], &[Insert(2, 3), Get(2)]],
    },
    // Three nodes, one below the other. The grandparent of a removal is replaced meanwhile.
    Scenario {
        name: "grandparent-changes",
        keys: 600,
        before: &[Insert(0, 1), Insert(16, 1), Insert(256, 1)],
        tasks: &[
            &[Remove(16), Get(0), Get(16)],
            &[Insert(512, 2), Get(512)],
            &[Remove(256), Get(0)],
        ],
    },
    Scenario {
        name: "labels-are-joined",
        keys: 300,
        before: &[Insert(0, 1), Insert(1, 1), Insert(256, 1)],
        tasks: &[
            &[Remove(256), Get(0), Insert(256, 4)],
            &[Get(0), Get(1), Get(256)],
            &[Insert(16, 2), Remove(1), Get(0)],
        ],
    },
    Scenario {
        name: "emptied-and-filled",
        keys: 20,
        before: &[Insert(0, 1)],
        tasks: &[
            &[Remove(0), Insert(16, 2), Get(16)],
            &[Insert(0, 3), Get(0), Exchange(0, Some(3), None)],
            &[TryInsert(16, 4), Remove(16), Get(0)],
        ],
    },
    Scenario {
        name: "walks-over-changes",
        keys: 40,
        before: &[Insert(0, 1), Insert(1, 1), Insert(16, 1), Insert(33, 1)],
        tasks: &[
            &[Range(0, 39), RangeRev(0, 39)],
            &[Remove(1), Insert(17, 2)],
            &[Insert(1, 3), Remove(16)],
        ],
    },
];
