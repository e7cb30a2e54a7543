//! Holds the advice of `silvics advise` against every cell, on fourteen workloads, and judges it:
//! `just advised`. It takes hours on two cores, and memory for ten times the keys.
//!
//! Each result is a file of the folder. A run that was interrupted goes on with the workloads that
//! have none.

mod judge;
mod workloads;

use clap::Parser;
use judge::{Held, Verdict};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use workloads::WORKLOADS;

/// Hold the advice of `silvics advise` against every cell.
#[derive(Parser)]
struct Args {
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

fn main() -> ExitCode {
    let args = Args::parse();
    match held(&args) {
        Ok(verdict) => {
            print!("{verdict}");
            if !args.judge && !verdict.is_whole() {
                eprintln!("error: some workloads have no answer: run it again");
                return ExitCode::from(2);
            }
            if verdict.is_reached() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn held(args: &Args) -> Result<Verdict, String> {
    let told = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    fs::create_dir_all(&args.folder).map_err(|error| told(&args.folder, error))?;
    if !args.judge {
        is_clean()?;
    }
    let mut all = Vec::new();
    for (at, workload) in WORKLOADS.iter().enumerate() {
        let file = args.folder.join(format!("{:02}.json", at + 1));
        if !args.judge && !file.exists() {
            eprintln!("{}: {}", workload.name, workload.flags);
            measure(args, workload.flags, &file)?;
        }
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            text => Some(text.map_err(|error| told(&file, error))?),
        };
        let wrong = |problem| format!("{}: {problem}", file.display());
        let held = text.map(|text| Held::read(&text).map_err(wrong)).transpose()?;
        if let Some(held) = &held
            && !args.judge
            && (held.budget() - f64::from(args.budget)).abs() > 0.5
        {
            let other = format!("its budget was {} seconds: name another folder", held.budget());
            return Err(wrong(other));
        }
        all.push((workload, held));
    }
    Ok(Verdict::of(all))
}

/// Answers are kept by commit, so a changed tree is refused.
fn is_clean() -> Result<(), String> {
    let status = Command::new("git").args(["status", "--porcelain"]).output();
    let status = status.map_err(|error| format!("git: {error}"))?;
    if status.status.success() && status.stdout.is_empty() {
        return Ok(());
    }
    Err("the tree has changes that are not committed: commit or stash them".into())
}

/// Asks for advice on a workload, and keeps the answer. If the command fails, the workload stays
/// without a result, and the others are measured.
fn measure(args: &Args, flags: &str, file: &Path) -> Result<(), String> {
    let told = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let flags: Vec<String> = flags
        .split_whitespace()
        .map(|flag| workloads::prepared(flag, &args.folder))
        .collect::<Result<_, _>>()?;
    let output = Command::new(&args.silvics)
        .arg("advise")
        .args(flags)
        .args(["--exhaustive", "--format", "json", "--budget"])
        .arg(args.budget.to_string())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| told(&args.silvics, error))?;
    if !output.status.success() {
        eprintln!("it ended with {}", output.status);
        return Ok(());
    }
    let part = file.with_extension("part");
    fs::write(&part, output.stdout).map_err(|error| told(&part, error))?;
    fs::rename(&part, file).map_err(|error| told(file, error))
}
