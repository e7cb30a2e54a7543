//! The command `silvics`: ordered indexes measured side by side.
//!
//! | module | holds |
//! |---|---|
//! | `collect` | `silvics collect` |
//! | `reproduce` | `silvics reproduce`, which runs `bench`, `inspect` and `memtable` |
//! | `advise` | `silvics advise`, which inspects, too |
//! | `bench` | `silvics bench` |
//! | `inspect` | `silvics inspect` |
//! | `list` | `silvics list` |
//! | `verify` | `silvics verify` |
//! | `watch` | `silvics watch` |
//! | `memtable` | `silvics memtable` |
//! | `store` | `silvics store` |
//! | `campaign` | the parts of a measurement on several machines |
//! | `install` | `silvics completions` and `silvics man` |
//! | `catalogue` | every index, its constructors, and the choice among them |
//! | `drive` | loads, runs and checks of a contender, and the key types |
//! | `contender` | our indexes, the map and the peers, behind one trait |
//! | `flags` | the command line, its values, and the errors of the command |
//! | `host` | facts from the system about the machine and this process |
//! | `page` | pages with charts, tables and data |
//! | `svg` | pictures |
//! | `output`, `progress`, `interrupt` | standard output, standard error, Ctrl-C |
//! | `table`, `terminal` | tables that fit the terminal; its width and colours |
//! | `names` | names in reports that are read again |
//!
//! Modules use those below them in the table, with two exceptions: `flags` reads key files by the
//! key types of `drive`, and `host` and `output` use the units and errors of `flags`. No files
//! import each other in a circle.

// Nothing of a program can be reached from outside: `pub` means for the other modules.
#![allow(unreachable_pub)]

mod advise;
mod bench;
mod campaign;
mod catalogue;
mod collect;
mod contender;
mod drive;
mod flags;
mod host;
mod inspect;
mod install;
mod interrupt;
mod list;
mod memtable;
mod names;
mod output;
mod page;
mod progress;
mod reproduce;
mod store;
mod svg;
mod table;
mod terminal;
mod verify;
mod watch;

use flags::args::{Cli, Verb};
use flags::error::Error;
use std::process::ExitCode;
use terminal::ERROR;

fn main() -> ExitCode {
    page::origin::begin();
    let cli = Cli::read();
    let result = terminal::set(cli.wide, &cli.color).and_then(|()| run(cli.verb));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            anstream::eprintln!("{ERROR}error:{ERROR:#} {error}");
            error.exit_code()
        }
    }
}

/// Runs a verb. Returns the exit code.
fn run(verb: Verb) -> Result<u8, Error> {
    let interrupted = |interrupted| if interrupted { interrupt::EXIT_CODE } else { 0 };
    match verb {
        Verb::List(args) => list::list(&args).map(|()| 0),
        Verb::Bench(args) => bench::bench(&args).map(interrupted),
        Verb::Inspect(args) => inspect::inspect(&args).map(|()| 0),
        Verb::Verify(args) => verify::verify(&args),
        Verb::Watch(args) => watch::watch(&args).map(interrupted),
        Verb::Memtable(args) => memtable::memtable(&args).map(interrupted),
        Verb::Store(args) => store::store(&args).map(interrupted),
        Verb::Advise(args) => advise::advise(&args).map(|()| 0),
        Verb::Reproduce(args) => reproduce::reproduce(&args),
        Verb::Collect(args) => collect::collect(args),
        Verb::Completions(args) => install::completions(&args).map(|()| 0),
        Verb::Man(args) => install::man(&args).map(|()| 0),
    }
}
