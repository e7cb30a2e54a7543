//! The command `silvics`: ordered indexes measured side by side.
//!
//! | module | holds |
//! |---|---|
//! | `args`, `units` | the command line, and numbers as people write them |
//! | `catalogue`, `list` | every index there is, and `silvics list` |
//! | `contender`, `ours`, `peers` | what the benchmark drives, and the adapters to it |
//! | `keys` | the types of keys it can drive with |
//! | `bench` | `silvics bench` |
//! | `machine`, `memory`, `alloc` | what the system tells about itself and this process |
//! | `output`, `progress`, `interrupt`, `error` | standard output, standard error, Ctrl-C, failures |

// Nothing of a program can be reached from outside: `pub` means for the other modules.
#![allow(unreachable_pub)]

mod alloc;
mod args;
mod bench;
mod catalogue;
mod contender;
mod error;
mod interrupt;
mod keys;
mod list;
mod machine;
mod memory;
mod ours;
mod output;
#[cfg(feature = "peers")]
mod peers;
mod progress;
mod units;

use args::{Cli, Verb};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::List(args) => list::list(&args).map(|()| false),
        Verb::Bench(args) => bench::bench(&args),
    };
    match result {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(interrupt::EXIT_CODE),
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}
