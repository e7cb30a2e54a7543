//! `silvics store`: YCSB and TPC-C on the transactional store, and YCSB on databases that a user
//! would choose instead.
//!
//! | module | holds |
//! |---|---|
//! | `ycsb`, `tpcc` | the benchmarks |
//! | `contenders` | the databases to be measured |
//! | `engine` | the facts about a database that a report needs |
//! | `timed`, `peers` | an index that measures its own time; maps of other crates as indexes |
//! | `parts` | benchmarks on several machines |
//! | `meter` | counts and times of transactions |
//! | `report`, `render` | the result, as data and as text |

mod contenders;
mod engine;
mod meter;
mod parts;
#[cfg(feature = "peers")]
mod peers;
mod render;
mod report;
pub mod timed;
mod tpcc;
mod ycsb;

use crate::flags::error::Error;
use crate::flags::store::{StoreArgs, StoreBenchmark};
use crate::interrupt;
use crate::progress::Progress;
use meter::Sample;
pub use tpcc::Tpcc;
pub use ycsb::Ycsb;

pub use contenders::names as indexes;

/// Runs a benchmark of the store and prints the result. Returns whether the user interrupted it.
pub fn store(args: &StoreArgs) -> Result<bool, Error> {
    match &args.benchmark {
        StoreBenchmark::Ycsb(verb) => ycsb::ycsb(verb),
        StoreBenchmark::Tpcc(verb) => tpcc::tpcc(verb),
    }
}

/// Lets the contenders take turns, in reverse order in each second round. Returns the samples of
/// each: after an interrupt those of the finished rounds, or if there are none, those of the first
/// round so far, of which the last one is cut.
fn in_turns(
    (contenders, rounds): (usize, usize),
    progress: &Progress,
    mut measure: impl FnMut(usize, usize) -> Result<Sample, Error>,
) -> Result<Vec<Vec<Sample>>, Error> {
    let mut samples: Vec<Vec<Sample>> = (0..contenders).map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..contenders {
            let at = if round % 2 == 0 { turn } else { contenders - 1 - turn };
            let sample = match measure(at, round) {
                Err(Error::Interrupted) => None,
                sample => Some(sample?),
            };
            samples[at].extend(sample.filter(|sample| sample.tally.transactions > 0));
            if interrupt::pending() {
                for samples in &mut samples {
                    samples.truncate(round.max(1));
                }
                return Ok(samples);
            }
            progress.step();
        }
    }
    Ok(samples)
}
