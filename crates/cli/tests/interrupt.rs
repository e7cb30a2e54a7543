//! Ctrl-C during a benchmark prints the cells that were finished.
#![cfg(unix)]

mod common;

use common::{command, stderr, stdout};
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn start(args: &[&str]) -> Child {
    let bench = [
        "bench",
        "--index",
        "edge-ext-lf,occ-avl,skiplist",
        "--keys",
        "1k",
        "--mix",
        "100/0/0",
        "--rounds",
        "500",
    ];
    command(&[&bench, args].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs")
}

fn interrupt_after(child: Child, time: Duration) -> Output {
    std::thread::sleep(time);
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    child.wait_with_output().expect("it ends")
}

#[test]
fn finished_rounds_are_printed() {
    let child = start(&["--seconds", "0.01", "--format", "json"]);
    let output = interrupt_after(child, Duration::from_millis(1500));
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(result["interrupted"], true);
    let rows = result["results"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let samples = row["samples"].as_array().unwrap().len();
        assert!((1..500).contains(&samples), "{samples} rounds");
        assert_eq!(row["checked"], false, "there was no time for that");
    }
}

#[test]
fn a_table_says_that_it_is_not_all() {
    let output = interrupt_after(start(&["--seconds", "0.01"]), Duration::from_millis(1500));
    assert_eq!(output.status.code(), Some(130));
    assert!(stdout(&output).contains("Interrupted: this is what was finished."));
    assert!(stdout(&output).contains("| skiplist?"));
}

#[test]
fn an_interrupt_in_the_middle_of_a_long_run_is_heard() {
    let child = start(&["--seconds", "60", "--format", "json"]);
    let begun = std::time::Instant::now();
    let output = interrupt_after(child, Duration::from_millis(700));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(output.status.code(), Some(130));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["results"].as_array().map(Vec::len), Some(0));
}
