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
    use crate::reproduce::plan::Plan;

    /// A lab for small experiments.
    pub fn lab() -> Lab {
        let args = ReproduceArgs {
            experiments: Vec::new(),
            level: "facts,model".into(),
            keys: None,
            quick: true,
            machine: None,
            with_erlang: false,
            svg: None,
            db_bench: None,
            load_only: None,
            sync: crate::flags::args::SyncArgs::default(),
            seed: "1".into(),
            format: "table".into(),
        };
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
