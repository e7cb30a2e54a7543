//! `silvics verify` finds mistakes planted in our structures, reports them in a few lines, and
//! finds them again in the files that it writes.
#![cfg(feature = "canaries")]

mod common;

use common::{Files, run, stderr, stdout};
use serde_json::Value;

/// Runs `silvics verify`, and returns its exit code and result.
fn verify(args: &[&str]) -> (Option<i32>, Value) {
    let output = run(&[&["verify", "--format", "json"], args].concat());
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {}{}", stdout(&output), stderr(&output)));
    (output.status.code(), value)
}

/// The seconds within which each mistake must be found.
const BUDGET: &str = "60";

/// Checks that the mistake is found as a history, by its calls. The mistake may also trip an
/// assertion of the structure first, or make a call loop; then another seed is tried.
fn found_in_a_history(name: &str) {
    let files = Files::new();
    let (history, schedule) = (files.write("history", ""), files.write("schedule", ""));
    let index = format!("canary:{name}");
    let found = (1..=8).any(|seed: u32| {
        let seed = seed.to_string();
        let args = ["--index", &index, "--seconds", BUDGET, "--seed", &seed];
        let files = ["--history", &history, "--schedule", &schedule];
        let (code, report) = verify(&[&args[..], &files].concat());
        assert_eq!(code, Some(1), "{name} was not found: {report}");
        let rows = report["by_index"].as_array().unwrap();
        let wrong = &rows.last().unwrap()["violation"];
        let text = wrong["text"].as_str().unwrap();
        println!("canary {name} verify {} s\n{text}", report["seconds"]);
        let Some(calls) = wrong["calls"].as_array() else {
            let otherwise = ["a call panicked: assertion", "a call never returns"];
            assert!(otherwise.iter().any(|how| text.contains(how)), "{text}");
            return false;
        };
        // A call that loops may have taken effect at any time since it began, so the report shows
        // all calls after it. A call may also be pending where the report is cut.
        let is_pending = calls.iter().any(|call| call["end"].is_null());
        let is_short = (1..=12).contains(&calls.len());
        assert!(is_pending || is_short, "not short: {wrong}");
        is_short && run(&["verify", "--check", &history]).status.code() == Some(1)
    });
    assert!(found, "{name} is never found by its calls");

    let (code, checked) = verify(&["--check", &history]);
    assert_eq!((code, checked["verdict"].as_str()), (Some(1), Some("violation")), "{checked}");
    let (code, again) = verify(&["--replay", &schedule, "--seconds", BUDGET]);
    assert_eq!(code, Some(1), "{name} was not found again: {again}");
}

/// Checks that the mistake is found by the content of the index at rest.
fn found_at_rest(name: &str, what: &str) {
    let (code, report) = verify(&["--index", &format!("canary:{name}"), "--seconds", BUDGET]);
    assert_eq!(code, Some(1), "{name} was not found: {report}");
    let rows = report["by_index"].as_array().unwrap();
    let text = rows.last().unwrap()["violation"]["text"].as_str().unwrap().to_owned();
    println!("canary {name} verify {} s\n{text}", report["seconds"]);
    assert!(text.contains(what), "{text}");
}

#[test]
fn wrong_answers_are_found_in_histories() {
    for name in [
        "insert-ignores-mark",
        "scan-takes-frozen-for-gone",
        "version-read-late",
        "descent-unvalidated",
        "rotation-keeps-version",
        "attach-unvalidated",
        "scan-skips-replacement",
        "pop-in-two-steps",
    ] {
        found_in_a_history(name);
    }
}

#[test]
fn mistakes_of_versions_are_found() {
    for name in [
        "batch-ready-early",
        "number-drawn-early",
        "late-version-kept",
        "snapshot-not-seen",
        "announced-late",
    ] {
        let (code, report) = verify(&["--index", &format!("canary:{name}"), "--seconds", BUDGET]);
        assert_eq!(code, Some(1), "{name} was not found: {report}");
        let wrong = &report["by_index"].as_array().unwrap().last().unwrap()["violation"];
        let text = wrong["text"].as_str().unwrap();
        println!("canary {name} verify {} s\n{text}", report["seconds"]);
        let calls = wrong["calls"].as_array().unwrap_or_else(|| panic!("no calls: {text}"));
        assert!((1..=16).contains(&calls.len()), "not short: {text}");
    }
}

#[test]
fn a_wrong_count_is_found_at_rest() {
    found_at_rest("counted-on-failure", "len is");
}

#[test]
fn a_scan_out_of_order_is_found_at_once() {
    found_at_rest("cursor-follows-frozen-link", "a scan");
}
