//! `silvics store` and `verify --store`: workloads, outputs and refusals.

mod common;

use common::{refused, rows, run};
use serde_json::Value;
use std::path::PathBuf;

/// A workload file of the repository.
fn workload(letter: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(format!("workloads/workload{letter}")).display().to_string()
}

/// Runs YCSB with little work, and returns the JSON output.
fn ycsb(verb: &str, args: &[&str]) -> Value {
    let little = ["store", "ycsb", verb, "--rounds", "2", "--format", "json"];
    let output = run(&[&little[..], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_core_workload_runs_under_each_policy() {
    for letter in ["a", "b", "c", "d", "e", "f"] {
        let file = workload(letter);
        let report = ycsb(
            "run",
            &[
                "-P",
                &file,
                "-p",
                "operationcount=600",
                "--threads",
                "1,2",
                "--policy",
                "optimistic,no-wait,wait-die",
                "--index",
                "map,art",
            ],
        );
        assert_eq!(rows(&report).len(), 2 * 3 * 2);
        for row in rows(&report) {
            // A transaction is one operation; each thread ends with a whole block.
            assert!(row["operations"].as_u64().unwrap() >= 1200, "{row}");
            assert_eq!(row["missed"], 0, "{letter}: {row}");
            assert_eq!(row["checked"], true);
            assert!(row["tps"]["median"].as_f64().unwrap() > 0.0);
            assert!(row["index_us"].as_f64().is_some());
            assert_eq!(row["scanned"].as_u64().unwrap() > 0, letter == "e");
            let inserts = matches!(letter, "d" | "e");
            let records = row["memory"][0]["entries"].as_u64().unwrap();
            assert_eq!(records > 1000, inserts, "{letter}: {records} records");
        }
    }
}

#[test]
fn transactions_of_several_operations_read_by_batches() {
    let file = workload("b");
    for get_many in [&[][..], &["--get-many"]] {
        let args = ["-P", &file, "-p", "recordcount=500", "--transaction", "16", "--costs"];
        let args = [&args[..], get_many, &["-p", "operationcount=3200", "--threads", "2"]].concat();
        let report = ycsb("run", &args);
        let row = &rows(&report)[0];
        let operations = row["operations"].as_u64().unwrap();
        assert_eq!(operations, 16 * row["transactions"].as_u64().unwrap());
        assert!(row["costs"]["lookup_ns"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["latency_us"][0]["kind"], "TRANSACTION");
    }
}

#[test]
fn the_study_runs_on_its_rows() {
    let report = ycsb(
        "run",
        &[
            "--study",
            "--rows",
            "2k",
            "--transactions",
            "100",
            "--threads",
            "2",
            "--index",
            "occ-avl,edge-int-lf:fixed,ticket",
            "--policy",
            "no-wait",
            "--row-layout",
            "inline,study,study-padded",
            "--placement",
            "size-class",
            "--mixed",
        ],
    );
    assert_eq!(rows(&report).len(), 9);
    for row in rows(&report) {
        assert_eq!(row["missed"], 0);
        assert_eq!(row["mixed"], true);
        let (all, transactions) = (row["operations"].as_u64(), row["transactions"].as_u64());
        assert_eq!(all.unwrap(), 16 * transactions.unwrap());
    }
    let structure = rows(&report)[1]["memory"][1]["structure"].as_str().unwrap();
    assert!(structure.starts_with("lists of occ-avl"), "{structure}");
}

#[test]
fn loads_and_peers_are_measured() {
    let file = workload("a");
    let peers = "map,peer:crossbeam-skiplist,peer:congee,peer:btreemap-rwlock";
    let report = ycsb("load", &["-P", &file, "-p", "recordcount=3000", "--index", peers]);
    assert_eq!(rows(&report).len(), 4);
    assert!(rows(&report).iter().all(|row| row["memory"][0]["entries"] == 3000));
    for letter in ["a", "d", "e"] {
        let file = workload(letter);
        let report = ycsb("run", &["-P", &file, "--index", peers, "--policy", "wait-die"]);
        for row in rows(&report) {
            assert_eq!(row["missed"], 0, "{letter}: {row}");
        }
    }
}

#[test]
fn the_output_has_the_lines_of_ycsb() {
    let file = workload("f");
    let args = ["store", "ycsb", "run", "-P", &file, "--format", "ycsb", "--rounds", "1"];
    let output = run(&args);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("[OVERALL], RunTime(ms), "), "{text}");
    assert!(text.contains("[OVERALL], Throughput(ops/sec), "), "{text}");
    assert!(text.contains("[READ-MODIFY-WRITE], 99thPercentileLatency(us), "), "{text}");
    for format in ["table", "csv"] {
        let output = run(&[&args[..6], &[format, "--rounds", "1"]].concat());
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("optimistic"));
    }
}

#[test]
fn wrong_input_is_refused() {
    let file = workload("e");
    let refuses = |args: &[&str], parts: &[&str]| {
        refused(&run(&[&["store", "ycsb", "run"], args].concat()), parts);
    };
    refuses(&[], &["-P", "names no workload"]);
    refuses(&["-P", "no-such-file"], &["-P", "no-such-file"]);
    refuses(&["-P", &file, "-p", "readproportion=0.5"], &["-P", "sum"]);
    refuses(&["-P", &file, "-p", "requestdistribution=normal"], &["-P", "normal", "zipfian"]);
    let scans = ["--index", "`occ-avl` cannot scan", "choose from", "skiplist", "art"];
    refuses(&["-P", &file, "--index", "occ-avl"], &scans);
    refuses(&["-P", &file, "--index", "tree"], &["--index", "there is no structure `tree`"]);
    refuses(&["-P", &file, "--index", "peer:scc"], &["--index", "choose from peer:crossbeam"]);
    refuses(&["-P", &file, "--policy", "hope"], &["--policy", "choose from optimistic, no-wait"]);
    refuses(&["-P", &file, "--row-layout", "study"], &["--row-layout", "add --policy no-wait"]);
    refuses(&["-P", &file, "--mixed"], &["--mixed", "size-class"]);
    refuses(&["-P", &file, "--format", "xml"], &["--format", "table, json, csv or ycsb"]);
    refuses(&["--study", "--rows", "8"], &["--rows", "16 distinct rows"]);
    if !cfg!(feature = "databases") {
        refuses(&["-P", &file, "--index", "db:redb"], &["--index", "--features databases"]);
    }
}

#[cfg(feature = "databases")]
#[test]
fn databases_have_the_same_records() {
    for letter in ["a", "b", "c", "d", "e", "f"] {
        let (file, databases) = (workload(letter), "map,db:sqlite,db:redb,db:surrealmx");
        let report = ycsb("run", &["-P", &file, "--index", databases, "--transaction", "4"]);
        assert_eq!(rows(&report).len(), 4);
        for row in rows(&report) {
            assert_eq!(row["missed"], 0, "{letter}: {row}");
        }
    }
}

#[test]
fn stores_are_verified() {
    let output = run(&["verify", "--store", "--seconds", "2.4", "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["anomalies"], 0);
    let stores = report["by_store"].as_array().unwrap();
    assert_eq!(stores.len(), 12);
    assert!(stores.iter().all(|store| store["transactions"].as_u64().unwrap() > 0));
    let table = run(&["verify", "--store", "wait-die/words", "--seconds", "0.2"]);
    assert!(String::from_utf8(table.stdout).unwrap().contains("no anomaly"));
    let refuses = |args: &[&str], parts: &[&str]| {
        refused(&run(&[&["verify", "--store"], args].concat()), parts);
    };
    refuses(&["hope"], &["--store", "`hope` is no policy of a store"]);
    refuses(&["--index", "map"], &["--store", "--index"]);
}
