//! `silvics store` and `verify --store`: workloads, outputs and refusals.

mod common;

use common::{Files, refused, rows, run, stderr, stdout};
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
            assert_eq!((&row["operations"], &row["transactions"]), (&1200.into(), &1200.into()));
            let kinds = row["kinds"].as_array().unwrap();
            let by_kind = kinds.iter().map(|kind| kind["transactions"].as_u64().unwrap());
            assert_eq!(by_kind.sum::<u64>(), 1200, "{row}");
            assert!(row["tps"]["median"].as_f64().unwrap() > 0.0);
            assert!(row["index_us"].as_f64().is_some());
            assert_eq!(row["scanned"].as_u64().unwrap() > 0, letter == "e");
            let inserts = matches!(letter, "d" | "e");
            let records = row["memory"][0]["entries"].as_u64().unwrap();
            assert_eq!(records > 1000, inserts, "{letter}: {records} records");
            assert_eq!(row["records"][1], records);
        }
    }
}

/// A database with a lock around it is best with one thread.
#[test]
fn contenders_are_compared_with_their_best_numbers_of_threads() {
    let file = workload("b");
    let args = ["-P", &file, "--index", "map,art", "--threads"];
    let report = ycsb("run", &[&args[..], &["1,2,3"]].concat());
    let best = report["best"].as_array().unwrap();
    assert_eq!(best.len(), 2);
    for (at, best) in best.iter().enumerate() {
        let own = rows(&report).iter().filter(|row| row["index"] == best["index"]);
        let rate = |row: &Value| row["tps"]["median"].as_f64().unwrap();
        let highest = own.max_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap();
        assert_eq!(best["threads"], highest["threads"]);
        assert_eq!(best["tps_median"], highest["tps"]["median"]);
        assert!(at > 0 || best["ratio"]["median"] == 1.0, "{best}");
    }
    let report = ycsb("run", &[&args[..], &["2"]].concat());
    assert_eq!(report["best"].as_array().map(Vec::len), Some(0));
    let table = ["store", "ycsb", "run", "-P", &file, "--threads", "1,2"];
    assert!(stdout(&run(&table)).contains("Each with its best number of threads"));
}

#[test]
fn transactions_of_several_operations_read_by_batches() {
    let file = workload("b");
    for get_many in [&[][..], &["--get-many"]] {
        let args = ["-P", &file, "-p", "recordcount=500", "--transaction", "16"];
        let args = [&args[..], get_many, &["-p", "operationcount=3200", "--threads", "2"]].concat();
        let report = ycsb("run", &args);
        let row = &rows(&report)[0];
        let operations = row["operations"].as_u64().unwrap();
        assert_eq!(operations, 16 * row["transactions"].as_u64().unwrap());
        assert_eq!(row["kinds"][0]["kind"], "TRANSACTION");
        assert_eq!(row["latency_us"]["transactions"], row["transactions"]);
    }
}

#[test]
fn lookups_and_misses_are_measured_beside_a_run() {
    let file = workload("c");
    for get_many in [&[][..], &["--get-many"]] {
        let args = ["-P", &file, "-p", "recordcount=500", "--transaction", "16", "--costs"];
        let args = [&args[..], get_many, &["-p", "operationcount=3210", "--threads", "2"]].concat();
        let report = ycsb("run", &args);
        let costs = &rows(&report)[0]["costs"];
        assert!(costs["lookup_ns"].as_f64().unwrap() > 0.0, "{costs}");
        assert!(costs["miss_ns"].as_f64().unwrap() > 0.0, "{costs}");
        assert!(costs["miss_bytes"].as_u64().unwrap() >= 50_000, "{costs}");
        // The last transactions are shorter.
        assert_eq!(rows(&report)[0]["operations"], 2 * 3210);
    }
}

#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn misses_are_modelled_where_asked() {
    let file = workload("b");
    let args = ["-P", &file, "--index", "map,art", "--transaction", "16"];
    let report = ycsb("run", &[&args[..], &["--model", "haswell"]].concat());
    for row in rows(&report) {
        let model = &row["model"];
        assert_eq!((&model["machine"], &model["transactions"]), (&"haswell".into(), &2500.into()));
        // 1000 rows of 1 kB are more than the first level of caches.
        let l1 = ["index", "rows"].map(|part| model[part]["l1"].as_f64().unwrap());
        assert!(l1[0] > 1.0 && l1[1] > 100.0, "{model}");
        assert!(["4 KiB", "2 MiB"].contains(&model["row_pages"].as_str().unwrap()), "{model}");
    }
    assert!(rows(&ycsb("run", &args))[0]["model"].is_null(), "only where asked");
    let table = run(&[&["store", "ycsb", "run", "--model", "zen4"], &args[..]].concat());
    assert!(stdout(&table).contains("A transaction in the model of zen4"));
}

#[test]
fn stores_can_have_a_log() {
    let (file, folder) = (workload("a"), tempfile::tempdir().unwrap());
    let log = folder.path().join("logs").display().to_string();
    let args = ["-P", &file, "--policy", "optimistic,no-wait", "--log", &log];
    let report = ycsb("run", &args);
    for (store, row) in rows(&report).iter().enumerate() {
        assert_eq!(row["operations"], 2000, "{row}");
        let files = std::fs::read_dir(format!("{log}/{store}")).unwrap();
        let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        // 1000 records of 1 kB, and some 1000 updates of a field of 100 bytes.
        assert!((1_080_000..1_400_000).contains(&bytes), "{bytes}");
    }
    refused(&run(&[&["store", "ycsb", "run"], &args[..]].concat()), &["--log", "is not empty"]);
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
    assert_eq!(report["config"]["transaction"], 16);
    for row in rows(&report) {
        assert_eq!(row["mixed"], true);
        let (all, transactions) = (row["operations"].as_u64(), row["transactions"].as_u64());
        assert_eq!(all.unwrap(), 16 * transactions.unwrap());
    }
    let structure = rows(&report)[1]["memory"][1]["structure"].as_str().unwrap();
    assert!(structure.starts_with("lists of occ-avl"), "{structure}");
}

#[test]
fn trees_that_become_lists_are_named() {
    let file = workload("a");
    let notes = |order: &str, index: &str| {
        let args = ["store", "ycsb", "load", "-P", &file, "--rounds", "1", "-p", order];
        let output = run(&[&args[..], &["--index", index]].concat());
        assert!(output.status.success());
        stderr(&output)
    };
    let note = notes("insertorder=ordered", "int-lf,occ-avl:fixed,art,ext-lf,int-lf:baseline");
    assert!(note.contains("(int-lf, ext-lf, int-lf:baseline)"), "{note}");
    assert_eq!(notes("insertorder=ordered", "map,occ-avl,skiplist"), "");
    assert_eq!(notes("insertorder=hashed", "int-lf"), "");
}

#[test]
fn loads_and_peers_are_measured() {
    let file = workload("a");
    let peers = "map,peer:crossbeam-skiplist,peer:congee,peer:btreemap-rwlock";
    let report = ycsb("load", &["-P", &file, "-p", "recordcount=10000", "--index", peers]);
    assert_eq!(rows(&report).len(), 4);
    for row in rows(&report) {
        assert_eq!(
            (&row["memory"][0]["entries"], &row["records"][1]),
            (&10_000.into(), &10_000.into())
        );
        assert_eq!((&row["operations"], &row["transactions"]), (&20_000.into(), &200.into()));
        assert_eq!(row["samples"].as_array().unwrap().len(), 2);
        assert!(row["index_us"].as_f64().unwrap() > 0.0, "{row}");
    }
    let ratios: Vec<f64> =
        rows(&report).iter().map(|row| row["ratio_to_first"].as_f64().unwrap()).collect();
    assert!((ratios[0] - 1.0).abs() < 1e-9);
    assert!(ratios[1..].iter().any(|ratio| (ratio - 1.0).abs() > 1e-9), "{ratios:?}");
    for letter in ["a", "d", "e"] {
        let file = workload(letter);
        let report = ycsb("run", &["-P", &file, "--index", peers, "--policy", "wait-die"]);
        assert_eq!(rows(&report).len(), 4, "{letter}");
    }
}

#[test]
fn the_output_has_the_lines_of_ycsb() {
    let file = workload("f");
    // The operations of three rounds were added up unless there was --rounds 1.
    let args = ["store", "ycsb", "run", "-P", &file, "--format", "ycsb"];
    let output = run(&args);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("[OVERALL], RunTime(ms), "), "{text}");
    assert!(text.contains("[OVERALL], Throughput(ops/sec), "), "{text}");
    assert!(text.contains("[READ-MODIFY-WRITE], 99thPercentileLatency(us), "), "{text}");
    let operations = text.lines().filter_map(|line| line.split_once("], Operations, "));
    let all: u64 = operations.map(|(_, count)| count.parse::<u64>().unwrap()).sum();
    assert_eq!(all, 1000, "{text}");
    let load = run(&["store", "ycsb", "load", "-P", &file, "--format", "ycsb"]);
    assert!(stdout(&load).contains("[INSERT], Operations, 1000"));
    let table = run(&[&args[..6], &["table", "--rounds", "1"]].concat());
    assert!(stdout(&table).contains("optimistic") && stdout(&table).contains("no interval"));
}

/// CSV had no costs, kinds, records, scanned rows or 95th percentiles.
#[test]
fn csv_has_the_columns_of_the_other_formats() {
    let (reads, scans) = (workload("b"), workload("e"));
    let csv = |args: &[&str]| -> Vec<(String, String)> {
        let output = run(&[&["store", "ycsb", "run", "--format", "csv"], args].concat());
        let text = stdout(&output);
        let cells = |line: &str| line.split(',').map(String::from).collect::<Vec<_>>();
        let mut lines = text.lines().map(cells);
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(names.len(), values.len(), "{text}");
        names.into_iter().zip(values).collect()
    };
    let value = |row: &[(String, String)], name: &str| -> String {
        row.iter().find(|(column, _)| column == name).unwrap().1.clone()
    };
    let row = csv(&["-P", &reads, "--costs", "--model", "haswell", "--rounds", "2"]);
    assert_eq!(value(&row, "model_machine"), "haswell");
    for name in ["p95_us", "operation_ns", "lookup_ns", "miss_ns", "model_index_l1", "model_row_l1"]
    {
        assert!(value(&row, name).parse::<f64>().unwrap() > 0.0, "{name}");
    }
    for name in ["transactions_by_kind", "p50_us_by_kind", "p95_us_by_kind", "p99_us_by_kind"] {
        let kinds = value(&row, name);
        assert!(kinds.contains("READ=") && kinds.contains("UPDATE="), "{kinds}");
    }
    let row = csv(&["-P", &scans, "--rounds", "1"]);
    assert!(value(&row, "scanned").parse::<u64>().unwrap() > 0);
    assert_eq!(value(&row, "records_before"), "1000");
    assert_ne!(value(&row, "records_after"), "1000");
    assert_eq!((value(&row, "lookup_ns"), value(&row, "cut")), (String::new(), "false".into()));
}

/// `-p recordcount=1M` was refused, although --rows 1M is not.
#[test]
fn counts_of_the_command_line_can_have_units() {
    let file = workload("c");
    let counts = ["-p", "recordcount=2k", "-p", " operationcount = 1K"];
    let report = ycsb("run", &[&["-P", &file][..], &counts].concat());
    assert_eq!(report["config"]["records"], 2000);
    assert_eq!(report["config"]["operations"], 1000);
}

#[test]
fn wrong_input_is_refused() {
    let file = workload("e");
    let refuses = |args: &[&str], parts: &[&str]| {
        refused(&run(&[&["store", "ycsb", "run"], args].concat()), parts);
    };
    refuses(&[], &["-P", "there is no workload"]);
    refuses(&["-P", &file, "--rows", "5"], &["--rows", "add --study"]);
    refuses(&["-P", &file, "--format", "ycsb", "--threads", "1,2"], &["--format", "one result"]);
    refuses(&["-P", &file, "-p", "threadcount=5000"], &["threadcount", "4096"]);
    refuses(&["-P", &file, "-p", "fieldcount=60000"], &["-p", "lower fieldcount or fieldlength"]);
    let inserts = ["-p", "insertproportion=1", "-p", "scanproportion=0", "--costs"];
    refuses(&[&["-P", &file][..], &inserts].concat(), &["--costs", "only inserts"]);
    let peer = ["--index", "peer:congee", "--policy", "no-wait", "--row-layout", "study"];
    refuses(&[&["-P", &file][..], &peer].concat(), &["--row-layout", "peer:congee"]);
    let load = run(&["store", "ycsb", "load", "-P", &file, "--seconds", "1"]);
    refused(&load, &["--seconds", "a load makes no operations"]);
    let load = ["store", "ycsb", "load", "--study", "--rows", "100", "--transactions", "5"];
    refused(&run(&load), &["--transactions: a load makes no operations"]);
    refuses(&["-P", "no-such-file"], &["-P: no-such-file"]);
    // Wrong overrides were reported under the flag of the files.
    refuses(&["-P", &file, "-p", "readproportion=0.5"], &["-p: the proportions sum"]);
    refuses(&["-P", &file, "-p", "requestdistribution=normal"], &["-p: ", "normal", "zipfian"]);
    refuses(&["-P", &file, "-p", "recordcount"], &["-p: `recordcount`"]);
    refuses(&["-p", "operationcount=5"], &["-p: `recordcount` is not set"]);
    let files = Files::new();
    let wrong = files.write("wrong", "recordcount=2k\noperationcount=5\n");
    refuses(&["-P", &wrong], &["-P: `recordcount=2k`", "line 1"]);
    refuses(&["-P", &file, "-p", "operationcount=0"], &["-p: ", "means no limit", "--seconds"]);
    let scans = ["--index", "`occ-avl` cannot scan", "choose from", "skiplist", "art"];
    refuses(&["-P", &file, "--index", "occ-avl"], &scans);
    refuses(&["-P", &file, "--index", "tree"], &["--index", "there is no structure `tree`"]);
    refuses(&["-P", &file, "--index", "peer:scc"], &["--index", "choose from peer:crossbeam"]);
    refuses(&["-P", &file, "--policy", "hope"], &["--policy", "choose from optimistic, no-wait"]);
    refuses(&["-P", &file, "--row-layout", "study"], &["--row-layout", "add --policy no-wait"]);
    refuses(&["-P", &file, "--mixed"], &["--mixed", "size-class"]);
    refuses(&["-P", &file, "--model", "haswell"], &["--model", "reads of scans"]);
    let peer = ["-P", &workload("c"), "--index", "peer:congee", "--model", "haswell"];
    refuses(&peer, &["--model", "reads of `peer:congee` cannot be recorded"]);
    let lines = ["-P", &workload("c"), "--format", "ycsb", "--model", "haswell"];
    refuses(&lines, &["--format", "no room for a model"]);
    refuses(&["-P", &file, "--model", "z80"], &["--model", "`z80`", "choose haswell"]);
    refuses(&["-P", &file, "--format", "xml"], &["--format", "table, json, csv or ycsb"]);
    refuses(&["--study", "--rows", "8"], &["--rows", "16 distinct rows"]);
    if cfg!(feature = "databases") {
        for flag in ["--costs", "--get-many", "--model=zen4"] {
            let name = flag.split('=').next().unwrap();
            let parts = [name, "no effect on `db:redb`"];
            refuses(&["-P", &workload("c"), "--index", "map,db:redb", flag], &parts);
        }
    } else {
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
    }
    let (file, databases) = (workload("a"), "db:sqlite,db:redb,db:surrealmx");
    for lengths in ["uniform", "zipfian"] {
        let lengths = format!("fieldlengthdistribution={lengths}");
        let report = ycsb("run", &["-P", &file, "--index", databases, "-p", &lengths]);
        assert_eq!(rows(&report).len(), 3);
    }
}

#[test]
fn stores_are_verified() {
    let output = run(&["verify", "--store", "--seconds", "2.8", "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["anomalies"], 0);
    let stores = report["by_store"].as_array().unwrap();
    assert_eq!(stores.len(), 14);
    assert!(stores.iter().all(|store| store["transactions"].as_u64().unwrap() > 0));
    let table = run(&["verify", "--store", "wait-die/words", "--seconds", "0.2"]);
    assert!(String::from_utf8(table.stdout).unwrap().contains("no anomaly"));
    let refuses = |args: &[&str], parts: &[&str]| {
        refused(&run(&[&["verify", "--store"], args].concat()), parts);
    };
    refuses(&["hope"], &["--store", "`hope` is no policy of a store"]);
    refuses(&["--index", "map"], &["--store", "--index"]);
}
