//! Experiments on binary search trees.
//!
//! | module | experiments |
//! |---|---|
//! | `mixes` | bst/1.2 |
//! | `oversights` | bst/1.3 |
//! | `straddling` | bst/1.4, bst/1.7 |
//! | `sets` | bst/1.5, bst/1.6 |
//! | `bookkeeping` | bst/1.8 |
//! | `database` | bst/1.9 |
//! | `tpcc` | bst/1.10 |
//! | `questions` | bst/1.11 |
//! | `placed` | what bst/1.9 and bst/1.10 share |

mod bookkeeping;
mod database;
mod mixes;
mod oversights;
mod placed;
mod questions;
mod sets;
mod straddling;
mod tpcc;

use super::Experiment;
use super::evidence::{Evidence, Expected};

macro_rules! atc18 {
    ($section:literal) => {
        concat!("Arbel-Raviv, Brown and Morrison, USENIX ATC 2018, ", $section)
    };
}

/// The study's machine whose last level has slices.
const MACHINE: &str = "haswell";

const MANY_CORES: &str = "the source's throughput on 32 to 64 hardware threads of several sockets: this needs such a machine";

/// All experiments on binary search trees, in the order of their numbers.
pub const ALL: &[Experiment] = &[
    Experiment {
        name: "bst/1.2",
        title: "the microbenchmark",
        source: atc18!("sections 3.1 and 4"),
        machine: MACHINE,
        claim: "with 10 M items, fixed trees fall into the classes (occ-avl, occ-avl-2), (log-int, \
                edge-int-lf, citrus, int-lf, edge-ext-lf-2, edge-ext-lf), (ticket), (ext-lf), the fastest \
                first; 90 % lookups keep the order of lookups alone almost perfectly, and most comparisons \
                hold at 70 %",
        carried_by: "clock",
        seen_if: "with 10 million keys each class beats the next, in geometric means; and with 1 and \
                with 10 million keys, of the comparisons of two trees that lookups tell apart, 90 % \
                have the same outcome at 90 % lookups, and half at 70 %",
        elsewhere: false,
        cannot_show: &[MANY_CORES],
        gather: mixes::mixes,
    },
    Experiment {
        name: "bst/1.3",
        title: "oversights",
        source: atc18!("sections 3.1 and 3.2.1"),
        machine: MACHINE,
        claim: "smaller locks, no padding and searched fields first are worth up to 86 % with 1 M items \
                (geometric mean 11 %) on abu-dhabi, up to 43 % (23 %) on haswell, and bring occ-avl to the \
                level of occ-avl-2; with 10 M items, smaller nodes cost int-lf, ticket and ext-lf 17 % on \
                abu-dhabi, which fetches no pairs of lines",
        carried_by: "fact, model; clock reported",
        seen_if: "size classes as in the table of trees; lines touched per visited node fall where \
                fields were scattered, and rise by a quarter where nodes no longer fill a line; \
                modelled cache misses per lookup fall at 1 M, of each tree and on average; at 10 M \
                without pair prefetching, 48-byte nodes miss more than 64-byte ones",
        elsewhere: true,
        cannot_show: &[MANY_CORES],
        gather: oversights::oversights,
    },
    Experiment {
        name: "bst/1.4",
        title: "straddling",
        source: atc18!("section 3.2.1"),
        machine: MACHINE,
        claim: "nodes of 48 bytes start at offset 0, 16, 32 or 48 of a line; the 24 bytes that a search \
                reads of one in four lie in two lines, and the word beyond is read half the time: 1 1/8 \
                lines per visit",
        carried_by: "fact, model",
        seen_if: "25 % ± 0.5 of the nodes straddle, none of 32 or 64 bytes; 1.125 ± 0.01 lines per \
                visit that reads one child, as the source's visits do (ours read both at once: \
                1.25); an option aligns the nodes and says what that costs",
        elsewhere: false,
        cannot_show: &[],
        gather: straddling::straddling,
    },
    Experiment {
        name: "bst/1.5",
        title: "half of the sets",
        source: atc18!("section 3.2.3"),
        machine: MACHINE,
        claim: "int-lf allocates a node and a descriptor of 64 bytes in turns, so nodes map to half of the \
                cache's sets; nodes apart from descriptors make lookups 40 % faster with 1 M items; random \
                allocations in between spread nodes over all sets, yet lookups stay slow unless \
                prefetching is off, as the lines fetched beside nodes are useless",
        carried_by: "fact, model",
        seen_if: "nodes cover half of the sets of L1, L2 and a last level without slices, give or take \
                the root's → at least 99 %; neighbour lines that hold a node 0 → at least 0.9; \
                modelled misses per lookup fall by a quarter; three variants: mixed, mixed with \
                noise, segregated",
        elsewhere: false,
        cannot_show: &[],
        gather: sets::half,
    },
    Experiment {
        name: "bst/1.6",
        title: "a third of the sets",
        source: atc18!("section 4"),
        machine: MACHINE,
        claim: "a row, a wrapper and a node of 64 bytes follow one another, so each kind repeats every 192 \
                bytes, and haswell's hash maps it to a third of the sets of the last level; external trees \
                allocate two nodes and are immune",
        carried_by: "fact; model with a slice function of our own making",
        seen_if: "at least 95 % of strides are 192 bytes when mixed; coverage about ⅓ against about 1 \
                segregated; the external pattern is spread",
        elsewhere: true,
        cannot_show: &[
            "the hash of the source's processor, which nobody has published: the model folds a line's number \
             modulo 3, which is a function of our making",
        ],
        gather: sets::third,
    },
    Experiment {
        name: "bst/1.7",
        title: "lucky neighbours",
        source: atc18!("section 3.2.4"),
        machine: MACHINE,
        claim: "75 % of the inner nodes of edge-ext-lf that have a leaf child share a line with a child; \
                after one more allocation of 32 bytes at the start, 75 % have it in the line beside, all \
                of them from an odd line, where fetching pairs does not help: 14 % (abu-dhabi) and 11 % \
                (haswell) slower with 1 M items",
        carried_by: "fact; clock reported",
        seen_if: "75 ± 3 % → 0; of the shifted pairs at least 99 % begin in an odd line; a policy that \
                allocates leaf and parent as one block, which then share a line in every such pair",
        elsewhere: false,
        cannot_show: &[],
        gather: straddling::collocation,
    },
    Experiment {
        name: "bst/1.8",
        title: "bookkeeping",
        source: atc18!("section 3.3"),
        machine: MACHINE,
        claim: "restarting occ-avl-2 at the root instead of returning through recursion makes lookups 17 % \
                faster with 1 M items on haswell, reading no versions either another 12 %, 31 % in all, and \
                21 % with 10 M items; a third read of a line sets off a prefetch",
        carried_by: "fact; clock reported",
        seen_if: "stack bytes per level, which the compiled program does not tell; words needed per \
                visited node 3 → 2, in the place of loads; no restarts in a read-only run; \
                restarting at the root is not slower",
        elsewhere: true,
        cannot_show: &[
            "that a third read of a line sets off a prefetch: it needs that processor, and counters, which a \
             virtual machine has not",
            "the stack that a level of the recursion takes: the compiled program does not tell",
            "loads of a node, of which the source counts 3, and 2 without versions: lookups here load more than \
             they need, so the words that they need decide in the place of loads",
        ],
        gather: bookkeeping::bookkeeping,
    },
    Experiment {
        name: "bst/1.9",
        title: "YCSB in a database",
        source: atc18!("section 4"),
        machine: MACHINE,
        claim: "in a database of 10 M rows, with 16 lookups by Zipf's law to a transaction and a tree as \
                index, heaps of their own for the tree's nodes take the index time of occ-avl from 121 to \
                108 s and the TLB misses of a transaction with occ-avl-2 from 412 to 161; nodes lay on one \
                page in ten before, and on neighbouring pages then; nodes of 48 bytes between row locks of \
                48 bytes hide that locks share lines, so that edge-int-lf's database time rises from 58 to \
                67 s until the locks are padded to 192 bytes; the order of the trees is near that of the \
                microbenchmark again",
        carried_by: "fact, model; clock reported",
        seen_if: "pages that hold nodes halve; runs of neighbouring pages at least five times as long; \
                locks per line 1.33 → 1; modelled TLB misses per transaction at most 0.6 of mixed, \
                with 4 KiB and 2 MiB pages",
        elsewhere: false,
        cannot_show: &[MANY_CORES],
        gather: database::database,
    },
    Experiment {
        name: "bst/1.10",
        title: "TPC-C in a database",
        source: atc18!("section 4"),
        machine: MACHINE,
        claim: "in TPC-C with 48 warehouses, half new orders and half payments, with a tree as each of the \
                indexes, heaps of their own for the trees' nodes make the whole up to 7.6 % faster: the \
                index time of occ-avl falls by 10 s of more than 200 s and its database time rises by 2 s, \
                that of edge-ext-lf falls by 10 s and rises by 6 s, and int-lf with nodes of 64 bytes and \
                descriptors of 112 bytes takes 97 instead of 113 s in the index and 140 instead of 135 s in \
                the database",
        carried_by: "fact, model; clock reported",
        seen_if: "TPC-C's consistency conditions hold; facts and model as in bst/1.9, with two to four \
                warehouses",
        elsewhere: true,
        cannot_show: &[
            MANY_CORES,
            "48 warehouses, which take more than 30 GiB: there are two here, or as many as --keys rows fill",
            "int-lf with descriptors of 112 bytes: no build here has them",
        ],
        gather: tpcc::tpcc,
    },
    Experiment {
        name: "bst/1.11",
        title: "three questions",
        source: atc18!("section 6"),
        machine: MACHINE,
        claim: "allocators should tell which size class an object is in, which types lie close together, \
                and how each type spreads over the sets of the last level; such queries could find layout \
                problems by themselves",
        carried_by: "fact",
        seen_if: "one command answers all three for any structure here and for a user's own types, and \
                names bst/1.4 to 1.7 on the baseline builds and not on the fixed ones",
        elsewhere: false,
        cannot_show: &[],
        gather: questions::questions,
    },
];

/// A line with the share by which the second is less than the first, both misses of the model per
/// lookup.
fn falls(what: &str, misses: (f64, f64), expected: Expected) -> Evidence {
    let none = "the last level of the model holds the whole tree: give it more --keys";
    Evidence::falls(what, misses, expected, none)
}

#[cfg(test)]
mod tests {
    use super::{Expected, falls};
    use crate::flags::reproduce::ReproduceArgs;
    use crate::reproduce::evidence::Verdict;
    use crate::reproduce::lab::Lab;
    use crate::reproduce::plan::{Plan, tests::args};

    /// A lab for small experiments.
    pub fn lab() -> Lab {
        let args = ReproduceArgs { level: "facts,model".into(), quick: true, ..args() };
        Lab::new(Plan::new(&args).unwrap())
    }

    #[test]
    fn a_tree_that_fits_shows_no_misses() {
        let any = || Expected::AtLeast(0.25, 0.0);
        assert_eq!(falls("misses", (0.0, 0.0), any()).verdict, Verdict::CannotBeShown);
        assert_eq!(falls("misses", (2.0, 1.0), any()).verdict, Verdict::Confirmed);
        assert_eq!(falls("misses", (1.0, 2.0), any()).verdict, Verdict::Contradicted);
    }

    #[test]
    fn numbers_are_distinct() {
        let mut names: Vec<_> = super::ALL.iter().map(|experiment| experiment.name).collect();
        names.dedup();
        assert_eq!(names.len(), super::ALL.len());
        assert!(super::ALL.iter().all(|one| !one.claim.is_empty() && !one.source.is_empty()));
    }
}
