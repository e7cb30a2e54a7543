//! Several outputs of one command: one that cannot be written does not lose the others.
#![cfg(target_os = "linux")] // it has a file that is always full

mod common;

use common::{command, refused, stderr};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::Output;

const BENCH: [&str; 11] = [
    "bench",
    "--index",
    "skiplist",
    "--keys",
    "1k",
    "--mix",
    "100/0/0",
    "--seconds",
    "0.01",
    "--rounds",
    "1",
];

/// Runs the command with a standard output that takes nothing.
fn without_output(args: &[&str]) -> Output {
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = command(args).stdout(full).output().expect("the command runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let errors = stderr(&output).lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("standard output"), "{}", stderr(&output));
    output
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn files_are_written_though_standard_output_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let (page, runs) = (folder.path().join("x.html"), folder.path().join("runs"));
    let files = ["--html", text(&page), "--save", "a", "--kept-in", text(&runs)];
    without_output(&[&BENCH[..], &files].concat());
    assert!(page.is_file() && runs.join("a.json").is_file());

    let page = folder.path().join("y.html");
    let quick = ["reproduce", "bst/1.8", "--quick", "--keys", "8k", "--level", "facts"];
    without_output(&[&quick[..], &["--html", text(&page)]].concat());
    assert!(page.is_file());

    let page = folder.path().join("z.html");
    without_output(&["inspect", "--keys", "1k", "--html", text(&page)]);
    assert!(page.is_file());

    let history = folder.path().join("history");
    let short = ["verify", "--index", "skiplist", "--seconds", "0.2"];
    without_output(&[&short[..], &["--history", text(&history)]].concat());
    assert!(history.is_file());
}

#[test]
fn results_are_printed_though_a_file_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("a.json");
    std::os::unix::fs::symlink("/dev/full", &kept).unwrap();
    let page = folder.path().join("x.html");
    let files = ["--html", text(&page), "--save", "a", "--kept-in", text(folder.path())];
    let mut output = command(&[&BENCH[..], &files, &["--format", "json"]].concat())
        .output()
        .expect("the command runs");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["results"].as_array().map(Vec::len), Some(1));
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));
    output.stdout.clear();
    refused(&output, &["--save", "a.json", "cannot be written"]);
}
