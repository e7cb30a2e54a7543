//! The command `silvics`: ordered indexes measured side by side.
//!
//! | module | holds |
//! |---|---|
//! | `flags` | the command line, its values, and the errors of the command |
//! | `catalogue` | every index there is, and the choice among them |
//! | `contender` | what is driven: our indexes, the map and the peers, behind one trait |
//! | `drive` | what drives it: loads, runs, checks, and the key types |
//! | `bench` | `silvics bench` |
//! | `inspect` | `silvics inspect` |
//! | `list` | `silvics list` |
//! | `reproduce` | `silvics reproduce` |
//! | `verify` | `silvics verify` |
//! | `host` | what the system says about the machine and this process |
//! | `output`, `progress`, `interrupt` | standard output, standard error, Ctrl-C |
//!
//! A verb uses the modules above it and below it in this order: `flags`, `host`, `contender`,
//! `drive`, `catalogue`. No module of these uses a verb; `reproduce` alone uses other verbs.

// Nothing of a program can be reached from outside: `pub` means for the other modules.
#![allow(unreachable_pub)]

mod bench;
mod catalogue;
mod contender;
mod drive;
mod flags;
mod host;
mod inspect;
mod interrupt;
mod list;
mod output;
mod progress;
mod reproduce;
mod verify;

use flags::args::{Cli, Verb};
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
