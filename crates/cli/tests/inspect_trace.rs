//! `silvics inspect` of other programs' allocations, and its report of where an index lies in
//! memory.

mod common;

use common::{Files, command, run, stderr, stdout};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Output, Stdio};

/// A trace of nodes of 48 bytes side by side, of which 24 are declared to be read, and of buffers 1
/// MiB apart without a declaration. At the end one of each is freed, and a new buffer takes the
/// place of the old one.
fn trace() -> String {
    let mut text = String::from("kind node hot 0 24\n");
    for number in 0..1000 {
        let _ = writeln!(text, "node {:#x} 48", 0x7f00_0000_0000_usize + 48 * number);
        let _ =
            writeln!(text, "buffer {:#x} {}", 0x10_0000 + (number << 20), 100 + number % 2 * 200);
    }
    text += "- 0x7f0000000000\n- 0x100000\n- 0x9\nbuffer 0x100000 64\n";
    text
}

fn inspect(args: &[&str]) -> Output {
    run(&[&["inspect"], args].concat())
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("standard output is JSON and nothing else")
}

/// The sentence of a refusal, which must be the only one.
fn refusal(output: &Output) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(stdout(output), "");
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{text}");
    text
}

fn close(value: &Value, to: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value - to).abs() < 1e-9, "{value} instead of {to}");
}

#[test]
fn a_trace_is_answered_like_an_index() {
    let files = Files::new();
    let path = files.write("trace", trace());
    let report = json(&inspect(&["--trace", &path, "--machine", "haswell", "--format", "json"]));
    for nothing in ["config", "model", "collocation", "physical_note"] {
        assert!(report[nothing].is_null(), "{nothing}: {}", report[nothing]);
    }
    let trace = &report["trace"];
    assert_eq!(trace["file"], path.as_str());
    assert_eq!((&trace["events"], &trace["peak_event"]), (&2004.into(), &2000.into()));
    assert_eq!((&trace["peak_objects"], &trace["peak_bytes"]), (&2000.into(), &248_000.into()));
    assert_eq!((&trace["unknown_frees"], &trace["overlaps"]), (&1.into(), &0.into()));

    let [buffer, node] = &report["kinds"].as_array().expect("kinds")[..] else {
        panic!("{}", report["kinds"]);
    };
    assert_eq!((&buffer["kind"], &node["kind"]), (&"buffer".into(), &"node".into()));
    assert_eq!(node["objects"], 1000);
    close(&node["hot_bytes"], 24.0);
    close(&node["straddle_share"], 0.25);
    assert_eq!(node["study_classes"], serde_json::json!({"48": 1000}));
    assert_eq!(buffer["study_classes"], serde_json::json!({"112": 500, "320": 500}));
    assert_eq!((&buffer["bytes_min"], &buffer["bytes_max"]), (&100.into(), &300.into()));
    close(&buffer["hot_bytes"], 200.0);
    assert_eq!(buffer["stride_histogram"], serde_json::json!({"1048576": 999}));
    assert_eq!((&buffer["pages_4k"], &node["pages_4k"]), (&1000.into(), &12.into()));
    for unknown in ["class", "set_coverage_physical", "pages_absent", "huge_page_share"] {
        assert!(node[unknown].is_null(), "{unknown}");
    }

    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().map(|row| (row["id"].as_str(), row["kind"].as_str()));
    let found: Vec<_> = found.collect();
    assert!(found.contains(&(Some("straddling"), Some("node"))), "{found:?}");
    assert!(found.contains(&(Some("set-underutilization"), Some("buffer"))), "{found:?}");
    assert!(found.contains(&(Some("scattered-pages"), Some("buffer"))), "{found:?}");
    for row in findings {
        assert!(row["predicted_gain"].is_null());
        let pool = if row["kind"] == "node" { "silvics_pool::Pool`" } else { "::BytesPool`" };
        assert!(row["remedy"].as_str().is_some_and(|text| text.contains(pool)), "{row}");
    }
}

#[test]
fn standard_input_is_a_trace_too() {
    let mut child = command(&["inspect", "--trace", "-", "--set-hash", "modulo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(trace().as_bytes()).expect("it is read");
    drop(input);
    let text = stdout(&child.wait_with_output().expect("it ends"));
    assert!(
        text.starts_with("trace -: 2004 events; most bytes were alive after event 2000"),
        "{text}"
    );
    for question in
        ["size class?", "close to it?", "sets and pages?", "straddling (#2 node): 25.0 %"]
    {
        assert!(text.contains(question), "{question}: {text}");
    }
    assert!(!text.contains("predicted gain") && !text.contains("make of it"), "{text}");
}

#[test]
fn tables_have_the_largest_kinds_under_short_names_and_json_has_all() {
    let name =
        |number| format!("library.so!{}+{number:#x}<program", "a_very_long_function".repeat(9));
    let mut text = String::new();
    for number in 0..30 {
        let (address, bytes) = (0x1000 * (number + 1), 3000 - 50 * number);
        let _ = writeln!(text, "{} {address:#x} {bytes}", name(number));
    }
    let files = Files::new();
    let path = files.write("trace", text);
    let table = stdout(&inspect(&["--trace", &path]));
    let first = "| #1 library.so!a_very_long_func…y_long_function+0x0<program ";
    assert!(table.contains(first), "{table}");
    assert!(table.contains("| #20 ") && !table.contains("#21 "), "{table}");
    let others = table.lines().find(|line| line.starts_with("| 10 other kinds "));
    assert!(others.is_some_and(|line| line.contains("| 10      | 1775  | 17750 ")), "{table}");
    let most = table.lines().map(|line| line.chars().count()).max();
    assert!(most < Some(200), "{table}");
    let report = json(&inspect(&["--trace", &path, "--format", "json"]));
    let kinds: Vec<_> = report["kinds"].as_array().into_iter().flatten().collect();
    assert_eq!((kinds.len(), kinds[29]["kind"].as_str()), (30, Some(name(29).as_str())));
}

#[test]
fn addresses_may_be_any() {
    let files = Files::new();
    let path =
        files.write("trace", "low 0x0 8\nhigh 0xffffffffffffff00 255\nmid 0x8000000000000000 1\n");
    let report = json(&inspect(&["--trace", &path, "--format", "json"]));
    assert_eq!(report["kinds"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["kinds"][0]["kind"], "high");
    close(&report["kinds"][0]["lines_per_visit"], 4.0);
}

#[test]
fn what_is_no_trace_is_refused_in_a_sentence() {
    let files = Files::new();
    let refused = |path: &str, parts: &[&str]| {
        let text = refusal(&inspect(&["--trace", path]));
        for part in [&["--trace: `", path], parts].concat() {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
    };
    refused(&files.missing(), &["cannot be read", "name a file that can"]);
    refused(env!("CARGO_MANIFEST_DIR"), &["cannot be read"]);
    refused(
        &files.write("broken", "node 0x10 8\n\nnode 0x20\n"),
        &["line 3 is not a line of a trace"],
    );
    refused(&files.write("decimal", "node 10 8\n"), &["line 1", "`10`", "in hex with 0x"]);
    refused(&files.write("empty", ""), &["has no objects"]);
    refused(&files.write("comments", "# nothing\nnode 0x10 0\n"), &["has no objects"]);
}

#[test]
fn what_describes_an_index_has_no_place_beside_a_trace() {
    let files = Files::new();
    let path = files.write("trace", "node 0x10 8\n");
    let flags: [&[&str]; 16] = [
        &["--index", "occ-avl"],
        &["--variant", "fixed"],
        &["--placement", "pooled"],
        &["--pages", "thp"],
        &["--slot-align", "64"],
        &["--slab", "64K"],
        &["--regions", "2M-64M"],
        &["--colouring"],
        &["--keys", "1M"],
        &["--key-type", "u64"],
        &["--dist", "uniform"],
        &["--updates", "0"],
        &["--no-reuse"],
        &["--host", "row:64"],
        &["--lookups", "50k"],
        &["--fix"],
    ];
    for flag in flags {
        let text = refusal(&inspect(&[flag, &["--trace", &path]].concat()));
        assert!(text.contains("--trace") && text.contains(flag[0]), "{text}");
        assert!(text.contains("exclude each other: leave one out"), "{text}");
    }
    let machine = inspect(&["--trace", &path, "--machine", "pentium"]);
    assert!(refusal(&machine).contains("`pentium`"));
    assert!(refusal(&inspect(&["--machine", "pentium"])).contains("--machine"));
    assert!(refusal(&inspect(&["--trace", &path, "--format", "csv"])).contains("--format"));
    for more in [&["--no-prefetch"][..], &["--set-hash", "slices:4"], &["--machine", "zen4"]] {
        let output = inspect(&[&["--trace", &path], more].concat());
        assert_eq!(output.status.code(), Some(0), "{more:?}: {}", stderr(&output));
    }
}

/// Runs `silvics inspect` on a small index with these pages.
fn small_index(pages: &str) -> Output {
    let little = ["--index", "occ-avl", "--keys", "20k", "--lookups", "100", "--format", "json"];
    inspect(&[&little[..], &["--pages", pages]].concat())
}

#[test]
fn an_index_says_where_it_is_in_memory_or_why_not() {
    let report = json(&small_index("4k"));
    assert!(report["trace"].is_null() && report["config"]["fallback"].is_null());
    let node = &report["kinds"][0];
    if let Some(note) = report["physical_note"].as_str() {
        assert!(note.starts_with("pagemap refused: "), "{note}");
        assert!(note.ends_with("run as root or with CAP_SYS_ADMIN"), "{note}");
        assert!(node["set_coverage_physical"].is_null() && node["pages_absent"].is_null());
    } else {
        let covered = node["set_coverage_physical"].as_f64().expect("a share");
        assert!(covered > 0.0 && covered <= 1.0, "{covered}");
        assert_eq!(node["pages_absent"], 0);
    }
    if cfg!(target_os = "linux") {
        close(&node["huge_page_share"], 0.0);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn pages_that_are_not_reserved_are_told_with_their_number() {
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let output = small_index("hugetlb");
    let report = json(&output);
    let Some(fallback) = report["config"]["fallback"].as_str() else {
        assert!(free.is_ok_and(|free| free.trim() != "0"), "given, and none are free");
        return;
    };
    let note = stderr(&output);
    assert_eq!(note, format!("note: `occ-avl` on --pages hugetlb: {fallback}\n"));
    if free.is_ok() {
        assert!(note.contains("this region needs 1") && note.contains("sysctl vm.nr_hugepages="));
    }
}

#[test]
fn what_a_trace_says_is_neither_obeyed_nor_believed() {
    let files = Files::new();
    let mut text = String::from("kind a\x1b[2J|b hot 0 18446744073709551615\n");
    for number in 0..300 {
        let _ = writeln!(text, "a\x1b[2J|b {:#x} 40", 0x1_0000 + 4096 * number);
        // A kind whose name is a word of every finding.
        let _ = writeln!(text, "of {:#x} 40", 0x1_0040 + 4096 * number);
    }
    let path = files.write("trace", text);
    let output = inspect(&["--trace", &path, "--machine", "haswell"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(!text.contains('\x1b') && text.contains("a\u{fffd}[2J\u{fffd}b"), "{text}");
    assert!(text.contains(" of them lie 4096 bytes"), "{text}");
    let report = json(&inspect(&["--trace", &path, "--format", "json"]));
    close(&report["kinds"][0]["hot_bytes"], 40.0);
}
