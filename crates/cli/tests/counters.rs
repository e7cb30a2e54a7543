//! The figures that `--counters` adds to results. Machines differ in their events: each event must
//! have a figure or a reason.

mod common;

use common::{bench, bench_json, run, stderr, stdout};
use serde_json::Value;

const EVENTS: [&str; 7] = [
    "cycles",
    "instructions",
    "llc_misses",
    "dtlb_misses",
    "page_walks",
    "page_faults",
    "context_switches",
];

/// On any machine, each event has a figure, or the result gives the reason why it has none.
#[test]
fn counters_have_figures_or_a_reason() {
    let args = ["--index", "skiplist", "--keys", "10k", "--mix", "90/5/5", "--threads", "1,2"];
    let output = bench(&[&args[..], &["--counters", "--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let config = &result["config"];
    let refused = config["counters_refused"].as_str().unwrap_or_default();
    for row in result["results"].as_array().unwrap() {
        assert_figures_or_reasons(&row["counters"], refused);
        // Other events may never happen.
        for event in ["cycles", "instructions"] {
            let figure = row["counters"][event].as_f64();
            assert!(figure.is_none_or(|figure| figure > 1.0), "{event}: {row}");
        }
        if !row["counters"].is_null() {
            let counted = row["counters"]["time_counted"].as_f64().unwrap();
            assert!(0.0 < counted && counted <= 1.0, "{counted}");
        }
    }
    for event in EVENTS {
        let used = config["counters"].get(event);
        assert!(used.is_some() || refused.contains(event), "{event}: {config}");
    }
    // Each part of the reason is printed once, on one line.
    let some_runs = refused.contains("in some runs");
    let from_the_start = !refused.is_empty() && !refused.starts_with("in some runs");
    let told = stderr(&output).lines().filter(|line| line.contains("--counters: ")).count();
    assert_eq!(told, usize::from(some_runs) + usize::from(from_the_start), "{}", stderr(&output));
    #[cfg(target_os = "linux")]
    if !["cpu", "cpu_core", "armv8_pmuv3_0"]
        .iter()
        .any(|cpu| std::path::Path::new("/sys/bus/event_source/devices").join(cpu).exists())
    {
        // Without such a device, as in most virtual machines, hardware events are refused.
        for event in &EVENTS[..5] {
            assert!(refused.contains(event), "{event}: {refused}");
        }
    }
}

#[test]
fn without_the_flag_nothing_is_counted() {
    let result = bench_json(&["--index", "skiplist", "--keys", "1k"]);
    assert!(
        result["config"]["counters"].is_null() && result["config"]["counters_refused"].is_null()
    );
    for row in result["results"].as_array().unwrap() {
        assert!(row.get("counters").is_some_and(Value::is_null), "{row}");
    }
}

/// Fails if an event lacks a figure and is not named as refused, or has a figure although it was
/// refused from the start.
fn assert_figures_or_reasons(counters: &Value, refused: &str) {
    let from_the_start = refused.split("in some runs").next().unwrap_or_default();
    for event in EVENTS {
        if counters[event].is_null() {
            assert!(refused.contains(event), "{event}: {refused}");
        } else {
            assert!(!from_the_start.contains(event), "{event}: {refused}");
        }
    }
}

#[test]
fn remedies_are_counted_before_and_after() {
    let args = ["inspect", "--index", "occ-avl:baseline", "--keys", "2k", "--lookups", "2k"];
    let fix = ["--fix", "--counters", "--format", "json"];
    let output = run(&[&args[..], &fix].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = result["config"]["counters_refused"].as_str().unwrap_or_default();
    let fixes = result["fixes"].as_array().unwrap();
    assert!(!fixes.is_empty(), "the baseline has oversights");
    for fix in fixes {
        assert_figures_or_reasons(&fix["counters_before"], refused);
        assert_figures_or_reasons(&fix["counters_after"], refused);
    }
}

#[test]
fn counters_without_a_measurement_are_an_error() {
    let output = run(&["inspect", "--keys", "1k", "--counters"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert_eq!(
        stderr(&output),
        "error: --counters: only what --fix measures is counted: add it, or leave this out\n"
    );
}

/// If a thread can open no counter, the result gives the reason, and its run has no figure.
#[test]
#[cfg(target_os = "linux")]
fn too_few_files_are_no_zero() {
    let args =
        "bench --index skiplist --keys 1k --mix 100/0/0 --threads 32 --seconds 0.05 --rounds 1";
    let script = format!("ulimit -n 24; exec \"$0\" {args} --counters --format json");
    let mut shell = std::process::Command::new("sh");
    let output = shell.args(["-c", &script, env!("CARGO_BIN_EXE_silvics")]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = result["config"]["counters_refused"].as_str().unwrap();
    assert!(EVENTS.iter().all(|event| refused.contains(event)), "{refused}");
    assert!(result["results"][0]["counters"].is_null(), "{result}");
    if refused.contains("in some runs") {
        assert!(refused.contains("raise the limit with ulimit -n"), "{refused}");
        assert!(stderr(&output).contains("note: --counters: in some runs no "));
    }
}
