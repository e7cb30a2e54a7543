//! Runs the built command.
#![allow(dead_code, unreachable_pub)] // each test file uses what it needs

pub mod campaign;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The command with these arguments.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_silvics"));
    command.args(args);
    command
}

/// Runs the command, and returns its output.
pub fn run(args: &[&str]) -> Output {
    command(args).output().expect("the command runs")
}

/// Runs `silvics bench` on few keys, with these arguments.
pub fn bench(args: &[&str]) -> Output {
    let little = ["bench", "--seconds", "0.01", "--rounds", "2"];
    run(&[&little, args].concat())
}

/// The result of [`bench`] as JSON.
pub fn bench_json(args: &[&str]) -> Value {
    let output = bench(&[args, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("standard output is JSON and nothing else")
}

/// The text of standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The text of standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that the command printed one sentence with all of `parts` and nothing on standard output,
/// and that its exit code is 2. Notes may stand before the sentence.
#[track_caller]
pub fn refused(output: &Output, parts: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(stdout(output), "");
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("note: ")).collect();
    let message = lines.first().and_then(|line| line.strip_prefix("error: "));
    let message = message.unwrap_or_else(|| panic!("no error: {text}"));
    assert_eq!(lines.len(), 1, "{text}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

/// A temporary folder for key files.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("the file can be written");
        path.to_string_lossy().into_owned()
    }

    /// Writes a SOSD file and returns its path.
    pub fn sosd(&self, name: &str, count: u64, words: impl IntoIterator<Item = u64>) -> String {
        let words = std::iter::once(count).chain(words);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.write(name, bytes)
    }

    /// The path of a file of this name.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// The path of a file that does not exist.
    pub fn missing(&self) -> String {
        self.0.path().join("none").to_string_lossy().into_owned()
    }
}

/// The field `name` of a row. Fails if the row does not have it.
pub fn field<'a>(row: &'a Value, name: &str) -> &'a Value {
    let value = &row[name];
    assert!(!value.is_null(), "no {name} in {row}");
    value
}

pub fn rows(result: &Value) -> &[Value] {
    result["results"].as_array().expect("results")
}

pub fn number(row: &Value, name: &str) -> f64 {
    field(row, name).as_f64().expect("a number")
}

/// Checks the facts that hold for every row.
pub fn assert_sound(row: &Value, rounds: usize) {
    for name in [
        "index",
        "variant",
        "placement",
        "pages",
        "threads",
        "keys",
        "mix",
        "dist",
        "batch",
        "key_type",
        "value_type",
        "allocator",
        "bytes_source",
    ] {
        field(row, name);
    }
    assert_eq!(row["checked"], true);
    assert_eq!(field(row, "samples").as_array().unwrap().len(), rounds);
    let mops = field(row, "mops");
    let (low, median, high) = (number(mops, "low"), number(mops, "median"), number(mops, "high"));
    assert!(0.0 < low && low <= median && median <= high, "{row}");
    assert!(number(row, "hits") <= number(row, "lookups"));
    assert!(number(row, "ratio_to_first") > 0.0);
    assert!(row.get("huge_page_share").is_some());
}
