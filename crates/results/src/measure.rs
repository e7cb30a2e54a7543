//! Runs the commands, one after the other, and keeps the output of each as soon as it ends. So a
//! run that was interrupted goes on with the commands that have no output at this commit.

use crate::data::{Data, Stamp};
use crate::fault::{Fault, fault};
use crate::host;
use crate::manifest::{Manifest, Run, Source};
use crate::shard::Shard;
use crate::table::BUSY;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The user's choice of runs.
pub(crate) struct Options {
    pub(crate) only: Vec<String>,
    pub(crate) trial: bool,
    pub(crate) shard: Option<Shard>,
    pub(crate) out: PathBuf,
}

/// The chosen runs, and which of them have output at this commit.
pub(crate) struct Pending<'a> {
    manifest: &'a Manifest,
    options: &'a Options,
    commit: String,
    runs: Vec<(&'a Run, bool)>,
}

impl<'a> Pending<'a> {
    pub(crate) fn of(manifest: &'a Manifest, options: &'a Options) -> Result<Self, Fault> {
        let commit = host::commit()?;
        if let Some(id) = options.only.iter().find(|id| manifest.runs().all(|run| run.id != **id)) {
            return fault(format!("--only: there is no run `{id}`: `--list` shows them"));
        }
        let mut chosen: Vec<&Run> = manifest.runs().collect();
        chosen.retain(|run| options.only.is_empty() || options.only.contains(&run.id));
        if let Some(shard) = options.shard {
            chosen = shard.part(&chosen);
        }
        let done = |run: &Run| -> Result<bool, Fault> {
            let data = Data::read(&options.out, &run.id)?;
            Ok(data.is_some_and(|Data { stamp, .. }| {
                let same = stamp.commit == commit && stamp.trial == options.trial;
                same && stamp.command == command(run, options.trial)
            }))
        };
        let runs: Result<_, Fault> = chosen.into_iter().map(|run| Ok((run, done(run)?))).collect();
        Ok(Self { manifest, options, runs: runs?, commit })
    }

    /// Lists the runs, with their minutes.
    pub(crate) fn print(&self) {
        let sum = |done| -> f64 {
            let runs = self.runs.iter().filter(|run| run.1 == done);
            runs.fold(0.0, |sum, run| sum + run.0.minutes)
        };
        for (run, done) in &self.runs {
            let done = if *done { "done" } else { "" };
            let command = command(run, self.options.trial);
            println!("{:<28} {:>5.1} min  {done:<5} {command}", run.id, run.minutes);
        }
        println!("{:.0} minutes to measure, {:.0} done", sum(false), sum(true));
    }

    /// Makes the runs that are left. The others are made although one fails, or what one of them
    /// reads or runs cannot be made. Returns the faults.
    pub(crate) fn measure(&self) -> Result<Vec<Fault>, Fault> {
        if !self.options.trial {
            host::refuse_changes("commit them, or add --trial")?;
        }
        let left: Vec<&Run> = self.runs.iter().filter(|run| !run.1).map(|run| run.0).collect();
        let commands: Vec<String> =
            left.iter().map(|run| command(run, self.options.trial)).collect();
        let mut faults = Vec::new();
        for source in self.manifest.pages.iter().flat_map(|page| &page.file) {
            faults.extend(make(source, &commands).err());
        }
        let mut built = BTreeSet::new();
        for build in commands.iter().filter_map(|command| build(command)) {
            if built.insert(build.clone()) {
                println!("== {build}");
                // If it fails, so do its runs.
                _ = shell(&build);
            }
        }
        for (at, (run, command)) in left.iter().zip(&commands).enumerate() {
            println!("== {} of {}: {}: {command}", at + 1, left.len(), run.id);
            if let Err(fault) = self.run(run, command) {
                println!("   {fault}");
                faults.push(Fault(format!("run `{}`: {fault}: start again", run.id)));
            }
        }
        Ok(faults)
    }

    fn run(&self, run: &Run, command: &str) -> Result<(), Fault> {
        let busy = host::busy();
        if busy > BUSY {
            println!("   other programs use {:.0} % of the machine", busy * 100.0);
        }
        let start = Instant::now();
        let output = shell(command)?;
        if !self.options.trial {
            if host::commit()? != self.commit {
                return fault("another commit was checked out meanwhile");
            }
            host::refuse_changes("the run may have measured them: restore the tree")?;
        }
        let stamp = Stamp {
            command: command.into(),
            commit: self.commit.clone(),
            date: host::date(),
            machine: host::machine(),
            seconds: start.elapsed().as_secs(),
            busy: (busy * 100.0).round() / 100.0,
            trial: self.options.trial,
        };
        Data::of(stamp, run.format, &output)?.write(&self.options.out, &run.id)
    }
}

/// The command of a run.
pub(crate) fn command(run: &Run, trial: bool) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match &run.trial {
        Some(command) if trial => words(command),
        _ if trial => small(&words(&run.command)),
        _ => words(&run.command),
    }
}

/// The command with small numbers behind the flags that say how much is done.
fn small(command: &str) -> String {
    let mut last = "";
    let words = command.split(' ').map(|word| {
        let number = match last {
            "--keys" | "--num" => "2000",
            "--seconds" => "0.01",
            "--rounds" => "2",
            "--loads" => "1",
            _ => word,
        };
        last = word;
        number
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The command that builds what another one runs. `None` for scripts, which build for themselves.
fn build(command: &str) -> Option<String> {
    let from = command.find("cargo ")?;
    let cargo = command[from..].split(" -- ").next()?.trim_end_matches(" --");
    if let Some(flags) = cargo.strip_prefix("cargo run ") {
        return Some(format!("{}cargo build {flags}", &command[..from]));
    }
    cargo.strip_prefix("cargo bench ").map(|flags| format!("cargo bench --no-run {flags}"))
}

/// Makes a file that one of the commands reads.
fn make(source: &Source, commands: &[String]) -> Result<(), Fault> {
    let name = source.path.display().to_string();
    if source.path.exists() || commands.iter().all(|command| !command.contains(&name)) {
        return Ok(());
    }
    println!("== {name}");
    let folder = source.path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Fault(format!("{name}: {error}")))?;
    // A command that is interrupted leaves no file of this name.
    let part = format!("{name}.part");
    shell(&source.command.replace(&name, &part))?;
    _ = std::fs::rename(&part, &source.path);
    if source.path.exists() {
        Ok(())
    } else {
        fault(format!("{name}: its command did not make it"))
    }
}

/// Runs a command, and returns what it printed to stdout. Its other output is shown.
fn shell(command: &str) -> Result<String, Fault> {
    let output = Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {command}")])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Fault(format!("bash cannot be started: {error}")))?;
    if !output.status.success() {
        return fault(format!("`{command}` failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| Fault(format!("`{command}` printed no text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_built_before_they_are_measured() {
        let cases = [
            ("cargo run --release -- bench --keys 1M", Some("cargo build --release")),
            (
                "cargo run --release --features a -p b --example c -- 5",
                Some("cargo build --release --features a -p b --example c"),
            ),
            ("cd bench/lpm && cargo run --release", Some("cd bench/lpm && cargo build --release")),
            (
                "cargo bench -p silvics --bench clients",
                Some("cargo bench --no-run -p silvics --bench clients"),
            ),
            ("X=1 cargo run --release -- bench", Some("X=1 cargo build --release")),
            ("crates/redis/bench.sh --valkey", None),
        ];
        for (command, expected) in cases {
            assert_eq!(build(command).as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn a_trial_is_small() {
        let command =
            "cargo run --release -- bench --keys 10M --seconds 0.5 --rounds 9 --threads 2";
        let expected =
            "cargo run --release -- bench --keys 2000 --seconds 0.01 --rounds 2 --threads 2";
        assert_eq!(small(command), expected);
    }
}
