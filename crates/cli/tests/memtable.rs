//! `silvics memtable`: every workload on every memtable, its output, and its refusals.

mod common;

use common::{field, number, refused, rows, run, stderr, stdout};
use serde_json::Value;

const WORKLOADS: [&str; 7] = [
    "fillseq",
    "fillrandom",
    "overwrite",
    "readrandom",
    "multireadrandom",
    "readwhilewriting",
    "seekrandom",
];
const MEMTABLES: [&str; 4] = ["art", "skiplist", "ordmap", "skiplist-pointer"];
const MODES: [&str; 4] = ["pipelined", "parallel", "serial", "unordered"];

/// The result of the verb on few keys as JSON.
#[track_caller]
fn memtable(args: &[&str]) -> Value {
    let little = ["memtable", "--num", "1000", "--rounds", "2", "--format", "json"];
    let output = run(&[&little, args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("standard output is JSON and nothing else")
}

/// Checks the facts that hold for every row.
#[track_caller]
fn assert_sound(row: &Value) {
    assert_eq!(row["checked"], true);
    assert_eq!(field(row, "samples").as_array().unwrap().len(), 2);
    let rate = field(row, "ops_per_s");
    let (low, median, high) = (number(rate, "low"), number(rate, "median"), number(rate, "high"));
    assert!(0.0 < low && low <= median && median <= high, "{row}");
    let latency = field(row, "latency_ns");
    let [p50, p99, p999] = ["p50", "p99", "p999"].map(|name| number(latency, name));
    assert!(0.0 < p50 && p50 <= p99 && p99 <= p999, "{row}");
    assert!(number(row, "bytes_per_entry") > 16.0, "{row}");
    let writes = number(row, "writes");
    assert!(number(row, "groups") <= writes, "{row}");
    if writes > 0.0 {
        assert_eq!(number(row, "mutexes_per_write").to_string(), "0", "{row}");
        assert!(number(row, "group_size") >= 1.0, "{row}");
    }
}

#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn every_workload_runs_on_every_memtable_in_every_mode() {
    let names = [WORKLOADS.join(","), MEMTABLES.join(","), MODES.join(",")];
    let [workloads, memtables, modes] = &names;
    let result = memtable(&[
        "--workload",
        workloads,
        "--memtable",
        memtables,
        "--mode",
        modes,
        "--threads",
        "1,3",
        "--batch",
        "1,7",
        "--value-size",
        "20",
        "--no-wal",
    ]);
    let rows = rows(&result);
    rows.iter().for_each(assert_sound);
    // Batches matter to the fills and to multireadrandom.
    assert_eq!(rows.len(), (4 * 2 + 3) * 2 * MEMTABLES.len() * MODES.len());
    for row in rows {
        let workload = row["workload"].as_str().unwrap();
        let hits = row["hits"].as_u64();
        match workload {
            "fillseq" | "fillrandom" | "overwrite" => {
                assert_eq!(hits, None, "{row}");
                assert!(number(row, "writes") >= 2.0 * 1000.0 / 7.0, "{row}");
            }
            // Any key has another one behind it, mostly.
            "seekrandom" => assert!(hits.unwrap() > 1900, "{row}"),
            // The fill draws 1000 of 1000 keys: 63 % of them.
            _ => assert!((1100..1450).contains(&hits.unwrap()), "{row}"),
        }
        let writer = &row["writer_ops_per_s"];
        assert_eq!(writer.is_null(), workload != "readwhilewriting", "{row}");
    }
    assert_eq!(result["config"]["log"], "none");
    assert_eq!(result["interrupted"], false);
}

#[test]
fn a_log_is_written_read_again_and_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_str().expect("it is text");
    for (more, log, syncs) in [(&[][..], "written", 0), (&["--sync"], "synced", 1)] {
        let fills =
            ["--workload", "fillrandom,overwrite", "--memtable", "art,skiplist", "--wal", path];
        let result = memtable(&[&fills[..], &["--num", "200"], more].concat());
        for row in rows(&result) {
            assert_sound(row);
            assert_eq!(row["log"], log);
            let (groups, appends) = (number(row, "groups"), number(row, "log_appends"));
            assert!(groups > 0.0 && (appends - groups).abs() < 0.5, "{row}");
            assert_eq!(
                number(row, "log_syncs").to_string(),
                (appends * f64::from(syncs)).to_string()
            );
        }
    }
    assert_eq!(std::fs::read_dir(path).expect("the folder").count(), 0, "each log is removed");
}

#[test]
fn values_and_keys_have_any_size() {
    let sizes = ["--value-size", "0,1,8,9,5000", "--key-size", "8", "--num", "100"];
    let result =
        memtable(&[&["--workload", "overwrite,readrandom", "--serial"], &sizes[..]].concat());
    assert!(rows(&result).iter().all(|row| row["mode"] == "serial" && row["key_size"] == 8));
    memtable(&["--workload", "multireadrandom,seekrandom", "--key-size", "300", "--unordered"]);
}

#[test]
fn one_operation_is_enough() {
    let result = memtable(&["--workload", &WORKLOADS.join(","), "--num", "1", "--threads", "2"]);
    assert_eq!(rows(&result).len(), 3 * WORKLOADS.len());
}

#[test]
fn tables_and_csv() {
    let args =
        ["memtable", "--num", "500", "--rounds", "2", "--threads", "2", "--no-adaptive-yield"];
    let table = run(&args);
    let text = stdout(&table);
    assert!(text.contains("readrandom, 2 threads, batches of 1, values of 100 bytes"), "{text}");
    assert!(text.contains("| skiplist | pipelined |"), "{text}");
    assert!(text.contains("adaptive yield off"), "{text}");
    assert!(text.contains("All answers and contents were checked."), "{text}");
    let csv = stdout(&run(&[&args[..], &["--format", "csv"]].concat()));
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [columns[0]; 7]);
}

#[test]
fn wrong_flags_are_refused() {
    let refuses = |args: &[&str], parts: &[&str]| {
        refused(&run(&[&["memtable"], args].concat()), parts);
    };
    refuses(&["--workload", "fillrandon"], &["--workload", "did you mean `fillrandom`?"]);
    refuses(&["--workload", "x"], &["`x` is not a workload", "choose from fillseq, "]);
    refuses(&["--memtable", "skiplst"], &["--memtable", "did you mean `skiplist`?"]);
    refuses(&["--mode", "serail"], &["--mode", "did you mean `serial`?"]);
    refuses(&["--threads", "0"], &["--threads", "`0`", "from 1"]);
    refuses(&["--num", "0"], &["--num", "`0`"]);
    refuses(&["--batch", "1,x"], &["--batch", "`x`"]);
    refuses(&["--key-size", "7"], &["--key-size", "`7`", "from 8"]);
    refuses(&["--value-size", "2G"], &["--value-size", "`2G`"]);
    refuses(&["--rounds", "0"], &["--rounds", "`0`"]);
    refuses(&["--seed", "-1"], &["--seed", "`-1`"]);
    refuses(&["--format", "xml"], &["--format", "`xml`"]);
    refuses(&["--sync"], &["--sync", "there is no log", "add --wal"]);
    refuses(&["--wal", "/no/such/folder"], &["--wal", "/no/such/folder", "is no folder"]);
    refuses(&["--wal", "--no-wal"], &["--wal", "--no-wal", "leave one out"]);
    refuses(&["--serial", "--unordered"], &["--serial", "--unordered", "leave one out"]);
    refuses(&["--serial", "--mode", "parallel"], &["--serial", "--mode", "leave one out"]);
}

/// Ctrl-C ends the command after the present run.
#[test]
#[cfg(unix)]
fn an_interrupt_leaves_the_finished_rounds() {
    let args =
        ["memtable", "--num", "2k", "--rounds", "100k", "--threads", "1", "--format", "json"];
    let child = common::command(&args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the command runs");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let killed =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(result["interrupted"], true);
    let counts: Vec<usize> =
        rows(&result).iter().map(|row| row["samples"].as_array().unwrap().len()).collect();
    assert!(counts.len() == 3 && counts[0] > 0 && counts == [counts[0]; 3], "{counts:?}");
}
