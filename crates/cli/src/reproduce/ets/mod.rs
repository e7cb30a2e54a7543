//! Experiments on contention adapting trees, and on the tables of Erlang.
//!
//! | module | holds |
//! |---|---|
//! | `inserts` | ets/5.2 |
//! | `throughput` | ets/5.3 |
//! | `ranges` | ets/5.4 |
//! | `switched` | its series after a switch of the length of ranges |
//! | `moments` | its facts: base nodes of a range, and recorded histories |
//! | `counters` | ets/5.5 |
//! | `subjects` | maps that read ranges |
//! | `erlang` | Erlang's tables, measured by a script |

mod counters;
pub mod erlang;
mod inserts;
mod moments;
mod ranges;
mod subjects;
mod switched;
mod throughput;

use super::Experiment;
use crate::flags::error::Error;
use crate::interrupt;
use crate::progress;
use erlang::{Erlang, Release};

/// The sources have no model of a machine. This is the machine of the other experiments.
const MACHINE: &str = "haswell";

macro_rules! blog {
    ($section:literal) => {
        concat!("Winblad, The new scalable ETS ordered_set, 2020, ", $section)
    };
}

/// All experiments on contention adapting trees, in the order of their numbers.
pub const ALL: &[Experiment] = &[
    Experiment {
        name: "ets/5.2",
        title: "inserts into disjoint ranges",
        source: blog!("the first example"),
        machine: MACHINE,
        claim: "on two cores, 1, 2 and 4 processes insert 10 M integers into one AVL tree under one lock in \
                3.35, 3.96 and 6.38 s, and into a contention adapting tree in 3.83, 2.11 and 1.67 s",
        carried_by: "fact, clock",
        seen_if: "splits under contention and joins back to one base node when one thread works alone \
                (forced in tests, never left to luck); one lock gets slower, four against one at \
                least 1.5; the adapting tree does not, at most 1.2; with one thread it takes at most \
                1.5 × as long, with four less",
        elsewhere: false,
        cannot_show: &[],
        gather: inserts::inserts,
    },
    Experiment {
        name: "ets/5.3",
        title: "fourteen mixes",
        source: blog!("the benchmark of Erlang/OTP"),
        machine: MACHINE,
        claim: "the adapting tree gains up to 64 threads in all mixes, while the table under one lock often \
                loses; that table wins in one case: one process, with long sequential walks",
        carried_by: "clock",
        seen_if: "all fourteen mixes for two kinds of locked BTreeMap, both adapting trees and two \
                other trees at 1 to 8 threads: the adapting tree is never below 0.8 of the better of \
                coarse and fine locking, and above one lock from two threads on where there are \
                writes",
        elsewhere: true,
        cannot_show: &[
            "64 hardware threads of several sockets: this needs such a machine; the clock's lines have 1 to \
             8 threads",
        ],
        gather: throughput::throughput,
    },
    ranges::EXPERIMENT,
    counters::EXPERIMENT,
];

/// Erlang for these experiments.
pub fn erlang(chosen: &[&Experiment]) -> Result<Erlang, Error> {
    const FLAG: &str = "--with-erlang";
    if !chosen.iter().any(|one| ALL.iter().any(|own| own.name == one.name)) {
        return Err(Error::value(FLAG, "only experiments of `ets` measure Erlang's tables"));
    }
    let erlang = Erlang::start().map_err(|problem| Error::value(FLAG, problem))?;
    let Release { otp, schedulers } = &erlang.release;
    progress::note(&format!("{FLAG}: Erlang/OTP {otp} with {schedulers} schedulers"));
    Ok(erlang)
}

/// The failure of Erlang's script.
fn failed(table: &str, problem: String) -> Error {
    if interrupt::pending() {
        return Error::Interrupted;
    }
    Error::Wrong { index: table.into(), what: problem }
}
