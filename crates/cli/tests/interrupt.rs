//! Ctrl-C during a benchmark prints what was finished.
#![cfg(target_os = "linux")]

mod common;

use common::{command, rows, stderr, stdout};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Interrupts a benchmark of three indexes and 500 rounds.
fn bench_at_work(args: &[&str]) -> Output {
    let bench = ["bench", "--index", "edge-ext-lf,occ-avl,skiplist", "--keys", "1k"];
    let rounds = ["--mix", "100/0/0", "--rounds", "500"];
    interrupt_at_work(&[&bench[..], &rounds, args].concat())
}

/// Interrupts a command after a second of processor time, when it is in the middle of its work on
/// however slow a machine. Its work takes far longer.
fn interrupt_at_work(args: &[&str]) -> Output {
    let child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the command runs");
    let busy = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        // The state is the first field behind the name in brackets, `utime` the twelfth, in
        // hundredths of a second.
        let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        fields.nth(11).unwrap().parse::<u64>().unwrap() >= 100
    };
    while !busy() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    output
}

#[test]
fn finished_rounds_are_printed() {
    let output = bench_at_work(&["--seconds", "0.05", "--format", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(result["interrupted"], true);
    let rows = result["results"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let samples = row["samples"].as_array().unwrap().len();
        assert!((1..500).contains(&samples), "{samples} rounds");
        assert_eq!(row["checked"], false, "there was no time for that");
    }
    // Intervals of the 500 rounds that were asked for would cover 95 %.
    let least = rows.iter().map(|row| row["samples"].as_array().unwrap().len()).min().unwrap();
    let coverage = result["config"]["interval_coverage"].as_f64().unwrap();
    let of_few = 1.0 - 0.5_f64.powi(least as i32 - 1); // as long as it is the widest interval
    assert!(least > 8 || (coverage - of_few).abs() < 1e-9, "{least} rounds: {coverage}");
}

#[test]
fn a_table_says_that_it_is_not_all() {
    let output = bench_at_work(&["--seconds", "0.01"]);
    assert!(stdout(&output).contains("Interrupted: this is what was finished."));
    assert!(stdout(&output).contains("| skiplist?"));
}

/// Rows that were not reached are not rows that only the kept run has. The run is not kept.
#[test]
fn an_interrupted_comparison_says_nothing_of_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().to_str().unwrap();
    let quick = ["bench", "--index", "edge-ext-lf,occ-avl,skiplist", "--keys", "1k"];
    let quick = [&quick[..], &["--mix", "100/0/0", "--seconds", "0.01", "--rounds", "2"]].concat();
    let saved = command(&[&quick[..], &["--save", "a", "--kept-in", kept]].concat()).output();
    assert!(saved.unwrap().status.success());
    let later = ["--seconds", "60", "--format", "json", "--baseline", "a", "--save", "b"];
    let output = bench_at_work(&[&later[..], &["--kept-in", kept]].concat());
    assert!(stderr(&output).contains("--save b: not kept"), "{}", stderr(&output));
    assert!(!folder.path().join("b.json").exists());
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let comparison = &result["comparison"];
    assert_eq!(
        (&comparison["rows"], &result["interrupted"]),
        (&Value::Array(vec![]), &true.into())
    );
    assert_eq!(comparison["only_in_baseline"], Value::Array(vec![]));
}

#[test]
fn an_interrupt_in_the_middle_of_a_long_run_is_heard() {
    let output = bench_at_work(&["--seconds", "3600", "--format", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["results"].as_array().map(Vec::len), Some(0));
}

fn store(verb: &str, args: &[&str]) -> Output {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/workloada");
    let flags = ["store", "ycsb", verb, "-P", file, "-p", "fieldcount=1", "--threads", "2"];
    interrupt_at_work(&[&flags[..], args].concat())
}

/// A run of an hour that was interrupted in its only round had no result.
#[test]
fn the_first_round_of_a_store_is_printed_if_it_is_cut() {
    let long = ["--rounds", "1", "--seconds", "3600", "--index", "map,art", "--format"];
    let output = store("run", &[&long[..], &["json"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["interrupted"], true);
    assert_eq!(rows(&result).len(), 1, "the second one has not begun");
    let row = &rows(&result)[0];
    assert_eq!((&row["index"], &row["cut"]), (&"map".into(), &true.into()));
    assert!(row["transactions"].as_u64().unwrap() > 0);
    let table = stdout(&store("run", &[&long[..], &["table"]].concat()));
    assert!(table.contains("| map (cut)") && table.contains("Checked: "), "{table}");
    assert!(table.contains("Interrupted in the first round"), "{table}");
    let ycsb = store("run", &["--seconds", "3600", "--format", "ycsb"]);
    let lines = stdout(&ycsb);
    assert!(lines.contains("[OVERALL], Interrupted, true\n"), "{lines}");
    assert!(lines.contains("[UPDATE], Operations, "), "{lines}");
}

#[test]
fn finished_rounds_of_a_store_are_printed() {
    let short = ["--rounds", "100000", "--seconds", "0.01", "--format", "json"];
    let result: Value = serde_json::from_slice(&store("run", &short).stdout).unwrap();
    let row = &rows(&result)[0];
    assert_eq!(row["cut"], false);
    assert!(row["samples"].as_array().unwrap().len() > 1);
}

/// Such a command said that it had checked the number of records.
#[test]
fn an_interrupt_during_a_load_leaves_no_result_of_a_run() {
    let large = ["-p", "recordcount=400000000", "-p", "fieldlength=1"];
    let run = |args: &[&str]| stdout(&store("run", &[&large[..], args].concat()));
    let table = run(&["--seconds", "1"]);
    assert!(!table.contains("Checked: "), "{table}");
    assert!(table.contains("Interrupted before there was a result."), "{table}");
    assert_eq!(run(&["--seconds", "1", "--format", "ycsb"]), "[OVERALL], Interrupted, true\n");
    let load = store("load", &[&large[..], &["--format", "json"]].concat());
    let result: Value = serde_json::from_slice(&load.stdout).unwrap();
    let row = &rows(&result)[0];
    assert_eq!(row["cut"], true);
    assert_eq!(row["records"][1], row["operations"], "{row}");
}

#[test]
fn the_verification_of_stores_ends() {
    let output = interrupt_at_work(&["verify", "--store", "--seconds", "3600", "--format", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["interrupted"], &result["anomalies"]), (&true.into(), &0.into()));
}
