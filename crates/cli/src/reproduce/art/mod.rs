//! Experiments on the adaptive radix tree and translations.
//!
//! # Keys and lookups
//! Dense keys are the integers from 1 to n. Sparse keys are n distinct numbers below 2^32 that look
//! random. All of them are inserted, in random order. Lookups choose by a Zipf distribution over
//! all keys. The source does not say whether its ranks are scattered over the keys. But it goes on
//! to gather hot nodes in the same pages, which supposes that they are scattered, so they are
//! scattered here. The smaller effect for dense keys whose ranks are in the order of the keys is
//! reported beside it.
//!
//! | module | holds |
//! |---|---|
//! | `curve` | the cost of lookups in the model, by skew |
//! | `held` | the memory of a tree, and its pages |
//! | `stalls` | art/4.1 |
//! | `pages` | art/4.2 |
//! | `together` | art/4.3 |
//! | `sampled` | a tree whose lookups are sampled, before and after its reorganization |
//! | `draws` | the lookups of both |
//! | `paid` | the cost of a reorganization |
//! | `nodes` | the node set of the source, counted |

mod curve;
mod draws;
mod held;
mod nodes;
mod on;
mod pages;
mod paid;
mod sampled;
mod stalls;
mod together;

use super::Experiment;
use crate::drive::subject::Traffic;
use silvics_workload::{Choice, Dist, WordKeys};

const SLIDES: &str =
    "Wong, Feng, Xu, Lo and Kao, TLB misses – the missing issue of adaptive radix tree?";
/// The source's machine: 64 and 512 translations of 4 KiB pages, 32 of 2 MiB pages, 6 MiB of last
/// level.
const MACHINE: &str = "i7-2630qm";

const STALLS: &str = "stalls of a processor, which need its counters: the model adds up latencies of Sandy \
                      Bridge, some of them assumed, and no work between reads, so its shares are too high \
                      where most reads hit";
const NODES: &str = "the source's nodes, of 36 bytes and up: those here begin and end at lines, hold values, \
                     and up to four keys share a leaf";

const WAITS: &str = "that a lookup never waits for a reorganization: those that go on beside it are counted, and \
                     the longest is reported; that none takes a lock is for the code to show";

/// All experiments on the radix tree, in the order of their numbers.
pub const ALL: &[Experiment] = &[
    Experiment {
        name: "art/4.1",
        title: "where TLB misses matter",
        source: SLIDES,
        machine: MACHINE,
        claim: "of a million keys, dense (19 MB) or sparse (22 MB), TLB misses are 5 to 7 % of the stall time \
                of lookups with Zipf exponents from 0 to 1, where cache misses dominate, up to 23 % from 1 to \
                2, and 0 to 2 % from 2 to 3",
        carried_by: "model",
        seen_if: "the modelled share has its peak between 1 and 2 and is under 3 % at 3",
        elsewhere: true,
        cannot_show: &[STALLS, NODES],
        gather: stalls::stalls,
    },
    Experiment {
        name: "art/4.2",
        title: "huge pages",
        source: SLIDES,
        machine: MACHINE,
        claim: "2 MiB pages make lookups 1 to 32 % faster with exponents below 2 and change nothing beyond; \
                they leave fewer TLB misses, and fewer lines of the page table in the caches",
        carried_by: "fact, model; clock reported",
        seen_if: "pages of each size counted from the system's own report; modelled TLB misses at most \
                a fifth below exponent 2, lines of the page table in L2 at most half; clock ratio \
                per skew at 10 million keys",
        elsewhere: false,
        cannot_show: &[STALLS, NODES],
        gather: pages::pages,
    },
    Experiment {
        name: "art/4.3",
        title: "hot nodes together",
        source: SLIDES,
        machine: MACHINE,
        claim: "counting accesses and placing the nodes that have most of them in the same pages helps lookups \
                of sparse keys with a skew, and is immaterial for dense keys on 2 MiB pages",
        carried_by: "fact, model",
        seen_if: "pages that take 90 % of the accesses fall to a quarter (sparse, exponents 1.2 to \
                1.8); modelled TLB misses fall; dense on huge pages changes by less than 5 %; \
                contents unchanged, readers never stopped; the number of lookups after which it has \
                paid",
        elsewhere: false,
        cannot_show: &[STALLS, NODES, WAITS],
        gather: together::together,
    },
];

/// The skews of lookups.
const EXPONENTS: [f64; 7] = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0];
/// The exponent below which the source sees a gain from huge pages, and above which it sees none.
const FEW_KEYS: f64 = 2.0;

/// The number of the source's keys.
const KEYS: usize = 1_000_000;

/// The kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Dense,
    Sparse,
}

impl Keys {
    const BOTH: [Self; 2] = [Self::Dense, Self::Sparse];

    fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
        }
    }

    fn space(self, keys: usize, seed: u64) -> WordKeys {
        match self {
            Self::Dense => WordKeys::dense(keys),
            Self::Sparse => WordKeys::random32(keys, seed),
        }
    }

    /// The keys, and lookups that choose all of them with equal probability.
    fn traffic(self, keys: usize, seed: u64) -> Traffic<u64> {
        Traffic { space: self.space(keys, seed), choice: zipf(0.0, keys, seed) }
    }
}

/// Lookups with the given exponent.
fn zipf(exponent: f64, keys: usize, seed: u64) -> Choice {
    Choice::filled(Dist::Zipf(exponent), keys, seed)
}
