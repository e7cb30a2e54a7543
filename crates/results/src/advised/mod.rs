//! Holds the advice of `silvics advise` against every candidate, on seventeen workloads, and judges
//! it: `just advised`. It takes half an hour on two cores, and memory for ten times the keys.
//!
//! Each result is a file of the folder. A run that was interrupted goes on with the workloads that
//! have none.

mod judge;
mod workloads;

use crate::fault::{Fault, fault, read, write};
use crate::host::refuse_changes;
use judge::{Held, Verdict};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use workloads::WORKLOADS;

/// The flags of the verb.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of the results
    folder: PathBuf,
    /// The command
    #[arg(long, default_value = "target/release/silvics")]
    silvics: PathBuf,
    /// The budget of each advice, in seconds
    #[arg(long, default_value_t = 60)]
    budget: u32,
    /// Judge the results of the folder, and measure nothing
    #[arg(long)]
    judge: bool,
}

/// Prints the judgement. The code is 1 if a bar is missed.
pub(crate) fn advised(args: &Args) -> Result<ExitCode, Fault> {
    let verdict = held(args)?;
    print!("{verdict}");
    if !args.judge && !verdict.is_whole() {
        return fault("some workloads have no answer: run it again");
    }
    Ok(if verdict.is_reached() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn held(args: &Args) -> Result<Verdict, Fault> {
    if !args.judge {
        refuse_changes("commit them")?; // answers are kept by commit
        fs::create_dir_all(&args.folder).map_err(told(&args.folder))?;
    }
    let mut all = Vec::new();
    for (at, workload) in WORKLOADS.iter().enumerate() {
        let file = args.folder.join(format!("{:02}.json", at + 1));
        if !args.judge && !file.exists() {
            eprintln!("{}: {}", workload.name, workload.flags);
            measure(args, workload.flags, &file)?;
        }
        let held = file.exists().then(|| answer(args, &file)).transpose()?;
        all.push((workload, held));
    }
    Ok(Verdict::of(all))
}

/// An answer that is kept.
fn answer(args: &Args, file: &Path) -> Result<Held, Fault> {
    let wrong = |problem: String| Fault(format!("{}: {problem}", file.display()));
    let held = Held::read(&read(file)?).map_err(wrong)?;
    if !args.judge && (held.budget() - f64::from(args.budget)).abs() > 0.5 {
        let other = format!("its budget was {} seconds: name another folder", held.budget());
        return Err(wrong(other));
    }
    Ok(held)
}

/// Asks for advice on a workload, and keeps the answer. If the command fails, the workload stays
/// without a result, and the others are measured.
fn measure(args: &Args, flags: &str, file: &Path) -> Result<(), Fault> {
    let flags: Result<Vec<String>, Fault> =
        flags.split_whitespace().map(|flag| workloads::prepared(flag, &args.folder)).collect();
    let output = Command::new(&args.silvics)
        .arg("advise")
        .args(flags?)
        .args(["--exhaustive", "--format", "json", "--budget"])
        .arg(args.budget.to_string())
        .stderr(Stdio::inherit())
        .output()
        .map_err(told(&args.silvics))?;
    if !output.status.success() {
        eprintln!("it ended with {}", output.status);
        return Ok(());
    }
    write(file, &String::from_utf8_lossy(&output.stdout))
}

/// The failure of the system at a path.
fn told(path: &Path) -> impl Fn(std::io::Error) -> Fault {
    move |error| Fault(format!("{}: {error}", path.display()))
}
