//! Experiments on Patricia tries with lock teleportation.
//!
//! The source validates its walks by hardware transactions, which most machines do not have. Here
//! versions in the nodes do it ([`silvics::patricia`]), with the same limits of retries.
//!
//! | module | holds |
//! |---|---|
//! | `sizes` | trie/3.1 |
//! | `locality` | trie/3.2 |
//! | `alphabets` | trie/3.3 |
//! | `allocators` | trie/3.4 |
//! | `threads`, `parking` | trie/3.5 |
//! | `retries` | trie/3.6 |
//! | `child` | this command under tools that count |
//! | `subjects` | the tries, and the mix that threads run on them |

mod allocators;
mod alphabets;
mod child;
mod locality;
#[cfg(feature = "peers")]
mod parking;
mod retries;
mod sizes;
mod subjects;
mod threads;

pub use child::load_only;

use super::Experiment;
use super::evidence::Level;
use super::plan::Plan;
use crate::flags::args::SyncArgs;
use crate::flags::error::Error;
use crate::flags::site::Site;
use crate::flags::sync::Sync;
use crate::progress;

/// The experiment whose result is also a picture.
pub const DRAWN: &str = "trie/3.6";

/// The machine of the source.
const MACHINE: &str = "i7-4770";

macro_rules! paper {
    ($section:literal) => {
        concat!("Repetti and Herlihy, Patricia tries with lock teleportation, ", $section)
    };
}

/// The experiments with lines of the clock about lock teleportation.
const TELEPORTING: [&str; 3] = ["trie/3.3", "trie/3.5", DRAWN];

/// The lock teleportation that `--sync` requests for these experiments, if it does.
pub fn sync(
    args: &SyncArgs,
    chosen: &[&Experiment],
    plan: &Plan,
    site: Site,
) -> Result<Option<Sync>, Error> {
    const FLAG: &str = "--sync";
    let teleports = chosen.iter().any(|one| TELEPORTING.contains(&one.name));
    if args.sync.is_some() && !(teleports && plan.levels.contains(&Level::Clock)) {
        let names = TELEPORTING.join(", ");
        let problem = format!("only lines of the clock in {names} depend on it: name one of these");
        return Err(Error::value(FLAG, problem));
    }
    let (sync, note) = Sync::new(args, site)?;
    if sync.is_some_and(|sync| ![Sync::OPTIMISTIC, Sync::RTM].contains(&sync)) {
        let problem = "these experiments always run the locks, too: choose optimistic or rtm";
        return Err(Error::value(FLAG, problem));
    }
    if let Some(note) = note.filter(|_| site.is_here) {
        progress::note(&note);
    }
    Ok(sync)
}

/// All experiments on Patricia tries, in the order of their numbers.
pub const ALL: &[Experiment] = &[
    Experiment {
        name: "trie/3.1",
        title: "sizes of four alphabets",
        source: paper!("section 5.1"),
        machine: MACHINE,
        claim: "nodes of alphabets of 2, 4, 16 and 256 characters have 48, 64, 160 and 2080 bytes; tries \
                of a million random keys of 128 bits take 107 963 659, 114 748 505, 225 471 634 and \
                2 284 996 369 bytes",
        carried_by: "fact",
        seen_if: "node sizes equal, totals within 2 %; a variant whose leaves have no child arrays, \
                and what it saves",
        elsewhere: false,
        cannot_show: &[],
        gather: sizes::gather,
    },
    Experiment {
        name: "trie/3.2",
        title: "locality of four alphabets",
        source: paper!("section 5.1"),
        machine: MACHINE,
        claim: "under cachegrind, with spin locks, 2.4, 3.8, 4.1 and 7.4 % of the accesses miss the first \
                level for alphabets of 2, 4, 16 and 256 characters, and 0.7, 1.3, 1.8 and 5.6 % the last",
        carried_by: "model",
        seen_if: "the same order; the byte alphabet's last-level rate at least three times the \
                hexadecimal one's; cachegrind within 20 % on the first level",
        elsewhere: false,
        cannot_show: &[
            "the rates themselves: cachegrind counts every access of a program, and the source's program \
             is another one, and loads by eight threads; here one thread does",
        ],
        gather: locality::gather,
    },
    Experiment {
        name: "trie/3.3",
        title: "the best alphabet",
        source: paper!("sections 1.4 and 5.1, figure 5"),
        machine: MACHINE,
        claim: "tries of characters of 2k bits are half as deep as those of k bits; an alphabet of 16 is \
                the best at eight threads, and one of 256 is unsteady",
        carried_by: "fact; clock reported",
        seen_if: "depth falls from alphabet to alphabet in proportion to the bits per character; the \
                order reported with its spread; 16 expected at least as fast as 2 and as 256",
        elsewhere: false,
        cannot_show: &[
            "throughput on eight hardware threads: this needs such a machine; the lines of the clock run \
             eight threads on the cores of this one",
        ],
        gather: alphabets::gather,
    },
    Experiment {
        name: "trie/3.4",
        title: "traps into the system by allocator",
        source: paper!("section 4.3"),
        machine: MACHINE,
        claim: "by inserts alone of eight threads, glibc reaches 273 541 per second, jemalloc 732 995, tcmalloc \
                839 010; transactions abort by traps: glibc makes 6196 calls of brk, 50 of mmap and 22 of futex, \
                tcmalloc 409, 301 and 3912",
        carried_by: "fact",
        seen_if: "one build per allocator, traps into the system counted; the pool traps least; \
                ranking by traps per insert",
        elsewhere: true,
        cannot_show: &[
            "aborts of hardware transactions: they need a CPU with TSX; the traps that cause them are counted",
        ],
        gather: allocators::gather,
    },
    Experiment {
        name: "trie/3.5",
        title: "more threads than cores",
        source: paper!("section 4.4, figure 4"),
        machine: MACHINE,
        claim: "teleportation beats all locks below thirteen threads, and does not collapse when threads \
                exceed the hardware's; spin locks collapse",
        carried_by: "clock",
        seen_if: "version validation in place of the transaction: not slower than hand-over-hand spin \
                locks from two threads on; at four times the cores it keeps 70 % of its peak while \
                spin locks lose half",
        elsewhere: true,
        cannot_show: &[
            "hardware transactions: they need a CPU with TSX, and --sync rtm; else versions in the nodes \
             validate the walks",
            "the collapse of spin locks that never yield: those here yield the processor after some waits",
        ],
        gather: threads::gather,
    },
    Experiment {
        name: DRAWN,
        title: "retry policy",
        source: paper!("section 5.2, figure 6"),
        machine: MACHINE,
        claim: "at eight threads limits of retries hardly matter (9.6 to 10.0 M/s for 0 to 10 retries of \
                reads); at sixteen, more retries of reads raise the throughput from 4.3 to 7.9 M/s, and \
                reads matter more than changes",
        carried_by: "fact, clock, with aborts injected",
        seen_if: "the same heat map from real validation failures and a model of aborts; with more \
                threads than cores, retrying reads helps more than retrying changes",
        elsewhere: true,
        cannot_show: &[
            "aborts of hardware transactions: they need a CPU with TSX, and --sync rtm; else a stand-in \
             injects aborts, and versions fail to validate",
        ],
        gather: retries::gather,
    },
];
