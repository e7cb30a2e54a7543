//! Scenarios for radix trees: leaves that burst, nodes that grow, shrink and part.

use silvics::art::ArtKey;
use silvics::art::hot::{Policy, ReorganizeError, Sampled, Sampling};
use silvics::{ArtTree, Guard, Lookup};
use silvics_sync::model;
use silvics_testkit::TestKey;
use silvics_testkit::schedules::EndVerb::{First, Last, PopFirst, PopLast};
use silvics_testkit::schedules::Step::{
    End, Exchange, Get, Insert, Range, RangeRev, Remove, Reorganize, TryInsert,
};
use silvics_testkit::schedules::{Log, Model, Scenario, Step, scans};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The value that a node of values uses for absent keys: to store it, a node that leads to leaves
/// replaces the node.
const ABSENT: u64 = 0xA85E_4E7D_EC0D_E5ED;

const PRESENT: [Step; 49] = {
    let mut all = [Insert(0, 1); 49];
    let mut key = 0;
    while key < all.len() {
        all[key] = Insert(key as u64, 1);
        key += 1;
    }
    all
};

/// Inserts the keys `0..count` with the value 1.
const fn up_to(count: usize) -> &'static [Step] {
    PRESENT.split_at(count).0
}

/// Scenarios for the root, for keys that differ in their first byte. The first node has four
/// places. Two threads find it too small, and a third reads what it writes.
pub(crate) const ROOTS: &[Scenario] = &[
    Scenario {
        name: "root-grows",
        keys: 8,
        before: up_to(4),
        tasks: &[
            &[Insert(4, 2), Get(5)],
            &[Insert(5, 3), Get(4)],
            &[Insert(6, 4), Get(6), Remove(6), Get(6)],
        ],
    },
    Scenario {
        name: "root-grows-and-shrinks",
        keys: 6,
        before: up_to(4),
        tasks: &[
            &[TryInsert(4, 2), Remove(0), Get(4)],
            &[Remove(1), Remove(2), Insert(5, 3), Get(5)],
            &[Insert(3, 4), Get(3), Remove(3)],
        ],
    },
];

/// Scenarios for nodes. Keys that differ only in the last byte make a node of values, at first with
/// fourteen places. 256 and 512 part from them at a node above.
pub(crate) const NODES: &[Scenario] = &[
    Scenario {
        name: "leaf-bursts",
        keys: 6,
        before: up_to(4),
        tasks: &[
            &[Insert(4, 2), Get(2)],
            &[Remove(1), TryInsert(5, 3), Get(4)],
            &[Insert(2, 4), Exchange(2, Some(4), Some(5))],
        ],
    },
    Scenario {
        name: "node-grows",
        keys: 16,
        before: up_to(14),
        tasks: &[
            &[Insert(14, 2), Get(3)],
            &[Insert(3, 4), Get(3), Remove(5)],
            &[TryInsert(15, 3), Get(14), Get(5)],
        ],
    },
    Scenario {
        name: "two-come-to-a-digit",
        keys: 6,
        before: up_to(5),
        tasks: &[
            &[TryInsert(5, 2), Get(5)],
            &[TryInsert(5, 3), Remove(5)],
            &[Insert(5, 4), Exchange(5, Some(4), Some(5))],
        ],
    },
    // A node with a place for each byte: writers detect present values by its bits.
    Scenario {
        name: "node-of-all-bytes",
        keys: 50,
        before: up_to(49),
        tasks: &[
            &[TryInsert(49, 2), Remove(3), Get(49)],
            &[TryInsert(49, 3), Insert(3, 4), Exchange(3, Some(4), None)],
            &[Remove(49), TryInsert(3, 5), Get(3)],
        ],
    },
    Scenario {
        name: "node-shrinks",
        keys: 5,
        before: up_to(5),
        tasks: &[
            &[Remove(0), Remove(1), Get(4)],
            &[Insert(4, 2), Get(4), TryInsert(1, 3)],
            &[Remove(2), Get(3)],
        ],
    },
    Scenario {
        name: "node-emptied",
        keys: 5,
        before: up_to(5),
        tasks: &[
            &[Remove(0), Remove(1), Remove(2)],
            &[Remove(3), Remove(4), Insert(0, 2)],
            &[Insert(3, 3), Get(3)],
        ],
    },
    Scenario {
        name: "prefixes-part",
        keys: 520,
        before: up_to(5),
        tasks: &[
            &[Insert(256, 2), Get(1), Remove(256)],
            &[TryInsert(512, 3), Remove(512), Get(256)],
            &[Insert(1, 4), Insert(5, 4), Get(1)],
        ],
    },
    Scenario {
        name: "shrinks-beside-parting",
        keys: 260,
        before: up_to(5),
        tasks: &[&[Remove(0), Remove(1)], &[Insert(256, 2), Get(256)]],
    },
    // For byte strings: a node is inserted above one that is about to be removed.
    Scenario {
        name: "goes-below-a-parting",
        keys: 520,
        before: &[Insert(0, 1), Insert(2, 1)],
        tasks: &[&[Remove(0), Get(2)], &[Insert(512, 2), Get(512)], &[Insert(2, 3), Remove(2)]],
    },
    Scenario {
        name: "node-above-goes",
        keys: 520,
        before: &[
            Insert(0, 1),
            Insert(1, 1),
            Insert(2, 1),
            Insert(3, 1),
            Insert(4, 1),
            Insert(256, 1),
            Insert(512, 1),
        ],
        tasks: &[
            &[Remove(256), Remove(512), Get(4)],
            &[Insert(4, 2), Get(4), Insert(5, 2)],
            &[Insert(257, 3), Get(257)],
        ],
    },
    // A range begins where its first key parts from the key of a leaf, which becomes a node with
    // keys on both sides.
    Scenario {
        name: "ranges-beside-parting",
        keys: 601,
        before: &[Insert(12, 1), Insert(600, 1)],
        tasks: &[
            &[RangeRev(0, 13), Range(11, 599)],
            &[Insert(14, 2), Insert(2, 2)],
            &[Range(11, 599), RangeRev(0, 13)],
        ],
    },
    Scenario {
        name: "range-beside-growth",
        keys: 6,
        before: up_to(4),
        tasks: &[
            &[Range(0, 5), RangeRev(0, 5)],
            &[Insert(4, 2), Insert(5, 2)],
            &[Remove(1), Remove(2)],
        ],
    },
    Scenario {
        name: "value-that-stands-for-none",
        keys: 7,
        before: up_to(5),
        tasks: &[
            &[Insert(1, ABSENT), Get(1), Insert(1, 2)],
            &[Exchange(1, Some(1), Some(ABSENT)), Remove(2), Get(3)],
            &[Insert(5, ABSENT), TryInsert(6, 3), Remove(5)],
        ],
    },
    Scenario {
        name: "value-that-stands-for-none-among-all-bytes",
        keys: 50,
        before: up_to(49),
        tasks: &[
            &[Insert(49, ABSENT), Get(49), Insert(5, 7)],
            &[TryInsert(49, 3), Remove(49), Exchange(5, Some(1), Some(ABSENT))],
            &[Exchange(3, Some(1), Some(ABSENT)), Insert(3, 4), Remove(3)],
        ],
    },
];

/// Calls for the first and the last entry, beside writers of these entries and of the nodes on the
/// way to them. The keys from 256 on, and from 512 on, are in leaves of their own. 0 to 4 are in a
/// node of values. With all of them, the way to 256 has one node more than a reader keeps versions
/// of.
pub(crate) const ENDS: &[Scenario] = &[
    Scenario {
        name: "first-passes-by",
        keys: 516,
        before: FAR,
        tasks: &[&[End(First), End(First)], &[Insert(0, 2), Remove(256)], &[Insert(257, 3)]],
    },
    Scenario {
        name: "last-passes-by",
        keys: 516,
        before: &[Insert(0, 1), Insert(1, 1), Insert(2, 1), Insert(3, 1), Insert(256, 1)],
        tasks: &[&[End(Last), End(Last)], &[Insert(512, 2), Remove(256)], &[Insert(4, 3)]],
    },
    Scenario {
        name: "pops-meet",
        keys: 516,
        before: FAR,
        tasks: &[
            &[End(PopFirst), End(First)],
            &[End(PopFirst), Insert(0, 2)],
            &[End(PopLast), Remove(512)],
        ],
    },
    // A smaller key comes to the node above that of the first entry, and the task that has inserted
    // it still finds that entry.
    Scenario {
        name: "pop-passes-by",
        keys: 513,
        before: &[
            Insert(256, 1),
            Insert(257, 1),
            Insert(258, 1),
            Insert(259, 1),
            Insert(260, 1),
            Insert(512, 1),
        ],
        tasks: &[&[End(PopFirst)], &[Insert(0, 2), Get(256)], &[Insert(260, 3), End(Last)]],
    },
    Scenario {
        name: "pop-of-a-value",
        keys: 6,
        before: up_to(5),
        tasks: &[
            &[End(PopFirst), End(PopFirst)],
            &[Remove(0), Insert(0, 2), Insert(5, 2)],
            &[End(First), Exchange(1, Some(1), Some(3)), End(Last)],
        ],
    },
    Scenario {
        name: "deep-ends",
        keys: 257,
        before: &[
            Insert(256, 1),
            Insert(0, 1),
            Insert(1, 1),
            Insert(2, 1),
            Insert(3, 1),
            Insert(4, 1),
        ],
        tasks: &[
            &[End(First), End(PopFirst)],
            &[Remove(0), Remove(1), End(First)],
            &[Remove(2), Insert(0, 2), End(Last)],
        ],
    },
    Scenario {
        name: "the-only-key-goes",
        keys: 2,
        before: &[Insert(0, 1)],
        tasks: &[
            &[End(PopFirst), End(First)],
            &[End(PopLast), Insert(0, 2)],
            &[Insert(1, 3), Remove(0), End(Last)],
        ],
    },
];

/// Keys for a leaf of one key, and a leaf of four.
const FAR: &[Step] =
    &[Insert(256, 1), Insert(512, 1), Insert(513, 1), Insert(514, 1), Insert(515, 1)];

/// Runs any step. The lookups of a [`Reorganize`] step end before another task runs.
pub(crate) fn reorganizing<K: ArtKey + TestKey + ?Sized>(
    index: &Arc<ArtTree<K, Model, Sampled>>,
    log: &mut Log,
    step: Step,
    guard: &Guard,
) {
    let Reorganize(first, last) = step else { return scans(index, log, step, guard) };
    model::sequential(|| {
        let sampling = Sampling { every: NonZeroU32::MIN, bytes: 0 };
        index.sample(Some(sampling));
        for n in first..=last {
            index.get(K::borrow(&K::nth(n)), guard);
        }
        index.sample(None);
    });
    match index.reorganize(Policy { share: 1.0, least_gain: 0.0, ..Policy::default() }) {
        // Another task has taken the samples, or is about to; or guards hold regions of earlier
        // moves.
        Ok(_)
        | Err(ReorganizeError::NoSamples | ReorganizeError::Running | ReorganizeError::Regions) => {
        }
        Err(error) => panic!("reorganize: {error}"),
    }
}

/// The leaf or node that moves is the one that other tasks change. 0, 1, 256, 257 and 512 are in
/// three leaves below a node.
pub(crate) const HOT: &[Scenario] = &[
    Scenario {
        name: "leaf-moves",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 1)],
        tasks: &[
            &[Reorganize(0, 0), Get(1)],
            &[Insert(0, 2), Exchange(1, Some(1), Some(3))],
            &[Insert(2, 4), Get(0), Remove(1)],
        ],
    },
    Scenario {
        name: "node-moves",
        keys: 6,
        before: up_to(5),
        tasks: &[
            &[Reorganize(0, 0), Get(1)],
            &[Insert(1, 2), Remove(2), Get(5)],
            &[Insert(5, 3), Insert(0, 4)],
        ],
    },
    Scenario {
        name: "node-moves-beside-growth",
        keys: 16,
        before: up_to(14),
        tasks: &[&[Reorganize(3, 3)], &[Insert(14, 2), Get(3)], &[Insert(3, 4), Remove(5)]],
    },
    Scenario {
        name: "node-moves-and-goes",
        keys: 5,
        before: up_to(5),
        tasks: &[
            &[Reorganize(3, 3), Get(4)],
            &[Remove(0), Remove(1), Remove(2)],
            &[Remove(3), Insert(4, 2), Remove(4)],
        ],
    },
    Scenario {
        name: "hot-leaf-goes-back",
        keys: 513,
        before: &[
            Insert(0, 1),
            Insert(1, 1),
            Insert(256, 1),
            Insert(257, 1),
            Insert(512, 1),
            Reorganize(0, 0),
        ],
        tasks: &[
            &[Reorganize(256, 256)],
            &[Insert(0, 2), Get(1), Insert(256, 2)],
            &[Get(0), Remove(1), Range(0, 2)],
        ],
    },
    Scenario {
        name: "node-above-moves",
        keys: 513,
        before: &[Insert(0, 1), Insert(1, 1), Insert(256, 1), Insert(257, 1), Insert(512, 1)],
        tasks: &[
            &[Reorganize(0, 0), Reorganize(512, 512)],
            &[Insert(0, 2), Remove(512), Get(1)],
            &[Remove(256), Remove(257), Get(0)],
        ],
    },
    Scenario {
        name: "two-reorganize",
        keys: 3,
        before: &[Insert(0, 1), Insert(1, 1)],
        tasks: &[&[Reorganize(0, 0)], &[Reorganize(1, 1), Get(0)], &[Insert(0, 2), Get(1)]],
    },
];
