//! Measures every table of the README and of docs at one commit, and writes the tables into
//! their pages.
//!
//! ```text
//! just results                 measures what this commit has not measured yet, and writes the pages
//! just results --list          the runs, with their minutes and whether they are done
//! just results --only ID,ID    some runs
//! just results --check         compares the pages with the kept output, without measuring
//! just results --write         writes the pages from the kept output, without measuring
//! just results --shard 2/4     the second of four parts, into a folder of its own
//! just results collect DIR…    puts the parts together, and says what is missing
//! just advised                 holds the advice of the command against every candidate
//! ```
//!
//! * `manifest`: the runs and tables, from docs/results/*.toml.
//! * `measure`: runs commands, and keeps the output of each in docs/results/data.
//! * `data`: the kept output, as records with fields.
//! * `select`, `table`: cells and tables from records.
//! * `page`: regions of pages. `stray`: figures outside of them.
//! * `check`: what makes pages stale.
//! * `experiments`: what makes the results of experiments stale.
//! * `shard`: parts for several machines.
//! * `advised`: the judge of advice.
//! * `host`: the repository and the machine.

mod advised;
mod check;
mod data;
mod experiments;
mod fault;
mod host;
mod manifest;
mod measure;
mod page;
mod select;
mod shard;
mod stray;
mod table;

use clap::{Parser, Subcommand};
use fault::Fault;
use manifest::Manifest;
use measure::{Options, Pending};
use shard::Shard;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "results", about = "Measures the tables of README and docs at one commit")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Compare the pages with the kept output, and measure nothing
    #[arg(long, conflicts_with_all = ["list", "only", "trial", "shard"])]
    check: bool,
    /// With --check: accept tables whose runs have no output yet
    #[arg(long, requires = "check")]
    unmeasured: bool,
    /// Write the pages from the kept output, and measure nothing
    #[arg(long, conflicts_with_all = ["check", "list", "only", "trial", "shard", "out"])]
    write: bool,
    /// List the runs with their minutes, and measure nothing
    #[arg(long)]
    list: bool,
    /// Measure these runs only
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure small sizes, also with uncommitted changes, and call the tables a trial
    #[arg(long)]
    trial: bool,
    /// Measure the I-th of N parts, and leave the pages alone
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Keep the output of the runs here, instead of docs/results/data or a folder of the shard
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Put the outputs of several shards together, write the pages, and say what is missing
    Collect {
        /// The folders of the shards
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
    },
    /// Hold the advice of `silvics advise` against every candidate
    Advised(advised::Args),
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("error: {fault}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, Fault> {
    if let Some(Verb::Advised(args)) = &args.verb {
        return advised::advised(args);
    }
    let manifest = Manifest::read()?;
    if let Some(Verb::Collect { folders }) = &args.verb {
        return collect(&manifest, folders);
    }
    if args.check {
        return Ok(report(&check::findings(&manifest, args.unmeasured)?));
    }
    if args.write {
        return Ok(ended(&page::write_all(&manifest)));
    }
    let options = Options {
        only: args.only.clone(),
        trial: args.trial,
        shard: args.shard,
        out: args.out.clone().unwrap_or_else(|| shard::folder(args.shard)),
    };
    let pending = Pending::of(&manifest, &options)?;
    if args.list {
        pending.print();
        return Ok(ExitCode::SUCCESS);
    }
    let mut faults = pending.measure()?;
    if args.shard.is_none() && args.out.is_none() {
        faults.extend(page::write_all(&manifest));
    }
    Ok(ended(&faults))
}

/// Prints the faults that did not keep the other runs and tables from being made.
fn ended(faults: &[Fault]) -> ExitCode {
    for fault in faults {
        eprintln!("error: {fault}");
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn collect(manifest: &Manifest, folders: &[PathBuf]) -> Result<ExitCode, Fault> {
    let missing = shard::collect(manifest, folders)?;
    let code = ended(&page::write_all(manifest));
    if missing.is_empty() {
        println!("all {} runs are there", manifest.runs().count());
        return Ok(code);
    }
    println!(
        "missing: {} of {} runs: {}",
        missing.len(),
        manifest.runs().count(),
        missing.join(", ")
    );
    Ok(ExitCode::FAILURE)
}

/// Prints the findings of a check.
fn report(findings: &[String]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{} findings: `just results` measures and writes the tables", findings.len());
    ExitCode::FAILURE
}
