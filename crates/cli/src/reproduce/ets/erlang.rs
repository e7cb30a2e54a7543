//! Erlang's own tables: a script that measures them, run by `escript`.
//!
//! `ets.escript` states the operations. Each call starts a virtual machine of its own, with a
//! scheduler for each processor.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Output, Stdio};

const SCRIPT: &str = include_str!("ets.escript");

/// An ordered table of ETS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// An AVL tree under one readers-writer lock: the table without options.
    Old,
    /// A contention adapting search tree: the table with `write_concurrency` and
    /// `read_concurrency`.
    New,
}

impl Table {
    /// The script's name of the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// The counters of a table's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// One counter for all schedulers.
    Single,
    /// A counter for each scheduler, which is `decentralized_counters`.
    Striped,
}

impl Counters {
    /// The script's name of the counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Striped => "striped",
        }
    }
}

/// The Erlang that runs the script.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Release {
    /// The release of Erlang/OTP.
    pub otp: String,
    /// The number of threads that run processes.
    pub schedulers: usize,
}

/// The time of inserts into disjoint ranges.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Inserts {
    /// The time from the first insert to the last one. The script has checked the table's size.
    pub seconds: f64,
}

/// The throughput of a mix.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Throughput {
    /// Millions of operations per second of all processes. A sequence or a selection counts as one.
    pub mops: f64,
}

/// The time of inserts with one kind of counters, and the time of reading the size.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Counted {
    /// The time of all inserts. The script has checked the table's size.
    pub seconds: f64,
    /// The median time of a call that reads the size, after the inserts.
    pub size_micros: f64,
}

/// The script, in a file that only this process uses, and the Erlang that runs it.
pub struct Erlang {
    script: ScriptFile,
    pub release: Release,
}

impl Erlang {
    /// Writes the script into a file, and checks that it runs. The error is a sentence that states
    /// the remedy.
    pub fn start() -> Result<Self, String> {
        let script = ScriptFile::new()?;
        let release = call(&script.0, &["release"])?;
        Ok(Self { script, release })
    }

    /// Measures `n` inserts of ascending integers. Each process has its own range of them.
    pub fn inserts(&self, table: Table, processes: usize, n: u64) -> Result<Inserts, String> {
        self.call(&["inserts", table.name(), &processes.to_string(), &n.to_string()])
    }

    /// Measures a mix of operations on the keys from 1 to `range`, of which the table holds half at
    /// first. The mix is `INSERT/DELETE/LOOKUP` or `INSERT/DELETE/LOOKUP/SHARE:OPERATION`, in
    /// percent.
    pub fn throughput(
        &self,
        table: Table,
        processes: usize,
        mix: &str,
        range: u64,
        seconds: f64,
    ) -> Result<Throughput, String> {
        let numbers = [processes.to_string(), range.to_string(), seconds.to_string()];
        let [processes, range, seconds] = &numbers;
        self.call(&["throughput", table.name(), processes, mix, range, seconds])
    }

    /// Measures `n` inserts of ascending integers, and then the time of reading the size.
    pub fn counters(
        &self,
        counters: Counters,
        processes: usize,
        n: u64,
    ) -> Result<Counted, String> {
        self.call(&["counters", counters.name(), &processes.to_string(), &n.to_string()])
    }

    fn call<T: DeserializeOwned>(&self, arguments: &[&str]) -> Result<T, String> {
        call(&self.script.0, arguments)
    }
}

/// A new file with the script, which is removed on drop.
struct ScriptFile(PathBuf);

impl ScriptFile {
    fn new() -> Result<Self, String> {
        let folder = env::temp_dir();
        let failed = |path: &Path, error: io::Error| {
            format!("cannot write the Erlang script {}: {error}", path.display())
        };
        // A process may hold several files, and a killed one may have left some.
        for number in 0..1000 {
            let path = folder.join(format!("silvics-ets-{}-{number}.escript", process::id()));
            match create(&path) {
                Ok(mut file) => {
                    let script = Self(path);
                    file.write_all(SCRIPT.as_bytes()).map_err(|error| failed(&script.0, error))?;
                    return Ok(script);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        Err(format!("cannot write the Erlang script: {} has no free name", folder.display()))
    }
}

impl Drop for ScriptFile {
    fn drop(&mut self) {
        // If the file is gone already, there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// Creates a file that did not exist, and that other users cannot write or read.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Runs the script, and reads its line of JSON.
fn call<T: DeserializeOwned>(script: &Path, arguments: &[&str]) -> Result<T, String> {
    let output = Command::new("escript")
        .arg(script)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_run(&error))?;
    read(&output).map_err(|problem| format!("escript {}: {problem}", arguments.join(" ")))
}

/// The sentence on an `escript` that cannot be started.
fn not_run(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        "`escript` is not installed: install Erlang/OTP 25 or later (`apt-get install erlang-base`)"
            .into()
    } else {
        format!(
            "`escript` cannot be run ({error}): install Erlang/OTP 25 or later again (`apt-get \
             install --reinstall erlang-base`)"
        )
    }
}

/// Reads the line of JSON that a call has printed, if the call succeeded.
fn read<T: DeserializeOwned>(output: &Output) -> Result<T, String> {
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = stderr.trim();
        // The script begins its own sentences with that.
        let said = said.strip_prefix("error: ").unwrap_or(said);
        return Err(match said {
            "" => format!("{}, and nothing on stderr", output.status),
            said => format!("{said} ({})", output.status),
        });
    }
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let stdout = String::from_utf8_lossy(&output.stdout);
        format!("its output is not the expected JSON ({error}): {}", stdout.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = r#"{"table":"new","processes":4,"n":1000,"seconds":0.001500,"size":1000,
            "otp":"25","schedulers":2}"#;
        let inserts = Inserts { seconds: 0.0015 };
        assert_eq!(serde_json::from_str::<Inserts>(line).unwrap(), inserts);
        // A line of another call lacks fields.
        assert!(serde_json::from_str::<Throughput>(line).is_err());
    }

    #[test]
    fn each_file_is_new_and_removed() {
        let [first, second] = [ScriptFile::new().unwrap(), ScriptFile::new().unwrap()];
        assert_ne!(first.0, second.0);
        assert_eq!(fs::read_to_string(&second.0).unwrap(), SCRIPT);
        let path = first.0.clone();
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn a_missing_program_is_named_with_the_package() {
        let sentence = not_run(&io::ErrorKind::NotFound.into());
        assert!(sentence.contains("apt-get install erlang-base"), "{sentence}");
    }

    /// Each call on a few keys. Without `escript`, the test says that it has tested nothing.
    #[test]
    fn the_script_measures_tables() {
        if Command::new("escript").stdin(Stdio::null()).output().is_err() {
            println!("nothing was tested: `escript` is not installed (erlang-base)");
            return;
        }
        let erlang = Erlang::start().unwrap();
        for table in [Table::Old, Table::New] {
            assert!(erlang.inserts(table, 3, 1000).unwrap().seconds > 0.0);
        }
        for mix in ["50/50/0", "10/10/79.9999/0.0001:selectAll", "0/0/0/100:nextseq10"] {
            let found = erlang.throughput(Table::New, 2, mix, 1000, 0.02).unwrap();
            assert!(found.mops > 0.0, "{mix}");
        }
        for counters in [Counters::Single, Counters::Striped] {
            let found = erlang.counters(counters, 2, 1000).unwrap();
            assert!(found.seconds > 0.0 && found.size_micros > 0.0, "{}", counters.name());
        }
        let problem = erlang.throughput(Table::Old, 1, "1/2/3", 10, 1.0).unwrap_err();
        assert!(problem.contains("must add up to 100"), "{problem}");
    }
}
