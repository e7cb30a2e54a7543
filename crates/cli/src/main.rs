//! The command `silvics`: ordered indexes measured side by side.
//!
//! | module | holds |
//! |---|---|
//! | `args`, `flags`, `select`, `place`, `units` | the command line, its values, and numbers as people write them |
//! | `catalogue`, `list`, `layout` | every index there is, `silvics list`, and what it allocates |
//! | `contender`, `ours`, `peers` | what the benchmark drives, and the adapters to it |
//! | `keys` | the types of keys it can drive with |
//! | `bench` | `silvics bench` |
//! | `inspect` | `silvics inspect` |
//! | `verify` | `silvics verify` |
//! | `reproduce` | `silvics reproduce` |
//! | `machine`, `memory`, `alloc` | what the system tells about itself and this process |
//! | `counters` | the counters of processor and system, around what is measured |
//! | `output`, `progress`, `interrupt`, `error` | standard output, standard error, Ctrl-C, failures |

// Nothing of a program can be reached from outside: `pub` means for the other modules.
#![allow(unreachable_pub)]

mod alloc;
mod args;
mod bench;
mod catalogue;
mod contender;
mod counters;
mod error;
mod flags;
mod held;
mod inspect;
mod interrupt;
mod keys;
mod layout;
mod list;
mod machine;
mod map;
mod memory;
mod ours;
mod output;
#[cfg(feature = "peers")]
mod peers;
mod place;
mod progress;
mod reproduce;
mod select;
mod source;
mod units;
mod verify;

use args::{Cli, Verb};
use std::process::ExitCode;

fn main() -> ExitCode {
    let interrupted = |interrupted| if interrupted { interrupt::EXIT_CODE } else { 0 };
    let result = match Cli::read().verb {
        Verb::List(args) => list::list(&args).map(|()| 0),
        Verb::Bench(args) => bench::bench(&args).map(interrupted),
        Verb::Inspect(args) => inspect::inspect(&args).map(|()| 0),
        Verb::Verify(args) => verify::verify(&args),
        Verb::Reproduce(args) => reproduce::reproduce(&args).map(|()| 0),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}
