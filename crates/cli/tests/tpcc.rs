//! `silvics store tpcc`.

#![allow(unreachable_pub)]

mod common;

use common::{refused, run, stdout};
use serde_json::Value;

/// Runs a verb on a small database and returns its result.
fn tpcc(verb: &str, args: &[&str]) -> Value {
    let fixed = ["store", "tpcc", verb, "--reduced", "--rounds", "2", "--format", "json"];
    let output = run(&[&fixed, args].concat());
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn rows(report: &Value) -> &[Value] {
    report["results"].as_array().unwrap()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn the_standard_mix_keeps_the_conditions() {
    let args = ["--warehouses", "2", "--threads", "2", "--transactions", "200"];
    let contenders = ["--index", "map,skiplist", "--policy", "optimistic,wait-die"];
    let report = tpcc("check", &[&args[..], &contenders].concat());
    let config = &report["config"];
    assert_eq!((&config["benchmark"], &config["phase"]), (&"tpcc".into(), &"check".into()));
    assert_eq!((count(&config["warehouses"]), count(&config["customers"])), (2, 60));
    assert_eq!(rows(&report).len(), 4);
    let mut committed = 0;
    for row in rows(&report) {
        assert_eq!(row["transactions"], 2 * 2 * 200, "{row}");
        let of = |kind: &str| -> u64 {
            let kinds = row["kinds"].as_array().unwrap().iter();
            kinds.filter(|of| of["kind"] == kind).map(|of| count(&of["transactions"])).sum()
        };
        assert_eq!(of("NEW_ORDER") + of("ROLLED_BACK"), 360);
        committed += 800 - of("ROLLED_BACK");
        assert_eq!([of("PAYMENT"), of("DELIVERY")], [344, 32]);
        assert_eq!([of("ORDER_STATUS"), of("STOCK_LEVEL")], [32, 32]);
        let minutes = row["seconds"].as_f64().unwrap() / 60.0;
        let orders = row["tpmc"].as_f64().unwrap() * minutes;
        assert_eq!(orders.round() as u64, of("NEW_ORDER"));
        let [before, after] = [0, 1].map(|at| count(&row["records"][at]));
        // Each new order has 5 to 15 lines, and each payment an entry of the history.
        assert!(after >= before + 344 + 6 * of("NEW_ORDER"), "{before} {after}");
        let memory = row["memory"].as_array().unwrap();
        assert_eq!(memory.len(), 9 + 9 + 2, "nine tables, and their indexes");
        assert!(memory.iter().any(|part| part["part"] == "customer.by_name"));
        assert!(row["index_us"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(count(&config["serializable"]), committed);
}

/// Transactions are recorded and checked in parts, which are one run in the result.
#[test]
fn many_transactions_are_checked_in_parts() {
    let args = ["--warehouses", "1", "--threads", "2", "--transactions", "9k", "--index", "map"];
    let report = tpcc("check", &args);
    let row = &rows(&report)[0];
    assert_eq!(row["transactions"], 2 * 2 * 9000);
    assert_eq!(row["samples"].as_array().unwrap().len(), 2);
    let kinds = row["kinds"].as_array().unwrap();
    let rolled_back = kinds.iter().find(|of| of["kind"] == "ROLLED_BACK").unwrap();
    let committed = 36_000 - count(&rolled_back["transactions"]);
    assert_eq!(count(&report["config"]["serializable"]), committed);
    let run = tpcc("run", &args);
    assert!(run["config"]["serializable"].is_null());
}

#[test]
fn the_studys_mix_runs_over_its_trees() {
    let args = ["--mix", "half", "--warehouses", "1", "--threads", "2", "--transactions", "150"];
    let contenders = ["--index", "occ-avl:fixed,int-lf", "--policy", "no-wait"];
    let place = ["--row-layout", "inline,study-padded", "--placement", "size-class", "--mixed"];
    let report = tpcc("check", &[&args[..], &contenders, &place].concat());
    assert_eq!(report["config"]["benchmark"], "tpcc-half", "another benchmark than the full mix");
    assert_eq!(rows(&report).len(), 4);
    for row in rows(&report) {
        let kinds: Vec<&str> = row["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| of["kind"].as_str().unwrap())
            .collect();
        assert!(kinds.iter().all(|kind| ["NEW_ORDER", "PAYMENT", "ROLLED_BACK"].contains(kind)));
        assert!(row["structure"].as_str().unwrap().contains("scrambled"), "{}", row["structure"]);
    }
}

#[test]
fn loads_are_measured() {
    let report = tpcc("load", &["--warehouses", "2", "--threads", "1"]);
    let row = &rows(&report)[0];
    // 1000 items; of each warehouse itself, its stock, ten districts, 60 customers with history and
    // order in each, and 18 new orders; and order lines.
    let without_lines = 1000 + 2 * (1 + 1000 + 10 * (1 + 3 * 60 + 18));
    let rows = count(&row["records"][1]);
    assert!((5 * 1200..=15 * 1200).contains(&(rows - without_lines)), "{rows}");
    assert_eq!(count(&row["operations"]), 2 * rows, "in two rounds");
    // A transaction of two rounds has some 96 rows. None is timed.
    assert!((rows / 60..rows / 20).contains(&count(&row["transactions"])), "{row}");
    assert!(row["index_us"].is_null() && row["latency_us"]["sampled"] == 0, "{row}");
    let csv = run(&["store", "tpcc", "run", "--reduced", "--seconds", "0.1", "--format", "csv"]);
    assert!(stdout(&csv).lines().next().unwrap().ends_with(",tpmc"));
    let table = run(&["store", "tpcc", "run", "--reduced", "--transactions", "50"]);
    let text = stdout(&table);
    assert!(text.contains("without think times; 50 transactions of each thread; 3 rounds"));
    assert!(text.contains("new orders per minute (tpmC)"));
    assert!(
        text.contains("memory at the end in MB: warehouse.table ")
            && text.contains("stock.primary ")
    );
}

#[test]
fn wrong_input_is_refused() {
    let refuses = |args: &[&str], parts: &[&str]| {
        refused(&run(&[&["store", "tpcc", "run"], args].concat()), parts);
    };
    refuses(&["--warehouses", "0"], &["--warehouses", "from 1 to 10000"]);
    refuses(&["--warehouses", "9999"], &["--warehouses", "9999 warehouses need about", "fewer"]);
    refuses(&["--mix", "everything"], &["--mix", "choose from standard, half"]);
    refuses(&["--index", "occ-avl"], &["--index", "`occ-avl` cannot scan", "skiplist"]);
    refuses(&["--index", "db:redb"], &["--index", "`db:redb` runs YCSB alone"]);
    let study = ["--policy", "no-wait", "--row-layout", "study"];
    refuses(&study, &["--row-layout", "add --mix half"]);
    refuses(&["--seconds", "1", "--transactions", "5"], &["--seconds", "--transactions"]);
    let load = run(&["store", "tpcc", "load", "--seconds", "1"]);
    refused(&load, &["--seconds", "use `tpcc run`"]);
    refuses(&["--terminals", "5"], &["--terminals", "only `tpcc run --data`"]);
}

/// A folder takes no more bytes. The run ends with a sentence, and no transaction is lost.
#[cfg(target_os = "linux")]
#[test]
fn a_full_folder_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let load = ["--data", &data, "--warehouses", "1", "--threads", "2"];
    let load: Value = {
        let fixed = ["store", "tpcc", "load", "--reduced", "--format", "json"];
        serde_json::from_str(&stdout(&run(&[&fixed[..], &load].concat()))).unwrap()
    };
    // No file of the process grows beyond 256 KiB, in blocks of 512 bytes.
    let limited = "trap '' XFSZ; ulimit -f 512; exec \"$@\"";
    let full = std::process::Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_silvics")])
        .args(["store", "tpcc", "run", "--data", &data, "--seconds", "60", "--rounds", "1"])
        .output()
        .unwrap();
    refused(&full, &["--data", "`map` cannot go on", "File too large", "had ended are not lost"]);
    let check = ["store", "tpcc", "check", "--data", &data, "--transactions", "50"];
    let output = run(&[&check[..], &["--rounds", "1", "--format", "json"]].concat());
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let (before, loaded) = (&rows(&report)[0]["records"][0], &rows(&load)[0]["records"][1]);
    assert!(count(before) > count(loaded) + 500, "{before} rows, and {loaded} were loaded");
}

/// A database in a folder survives the end of its process, at any moment.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_database_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let kept = ["--data", &data];
    let verb = |verb: &str, args: &[&str]| {
        run(&[&["store", "tpcc", verb], &kept[..], args, &["--format", "json"]].concat())
    };
    refused(&verb("run", &[]), &["--data", "holds no database: use `tpcc load` first"]);
    let load = ["--reduced", "--warehouses", "2", "--threads", "2"];
    let report: Value = serde_json::from_str(&stdout(&verb("load", &load))).unwrap();
    let loaded = count(&rows(&report)[0]["records"][1]);
    refused(&verb("load", &load), &["--data", "holds a database: remove it"]);
    for (policy, terminals) in [("optimistic", "10"), ("wait-die", "1")] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_silvics"))
            .args(["store", "tpcc", "run", "--seconds", "60", "--rounds", "1"])
            .args(["--policy", policy, "--terminals", terminals])
            .args(kept)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let bytes = || -> u64 {
            let files = std::fs::read_dir(&data).unwrap();
            files.map(|file| file.unwrap().metadata().map_or(0, |of| of.len())).sum()
        };
        let before = bytes();
        for _ in 0..600 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            if bytes() > before + 200_000 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(bytes() > before + 200_000, "it has not written its log");
    }
    let args = ["--transactions", "50", "--rounds", "1", "--index", "skiplist"];
    let report: Value = serde_json::from_str(&stdout(&verb("check", &args))).unwrap();
    assert_eq!(report["config"]["warehouses"], 2, "as the database has");
    let before = count(&rows(&report)[0]["records"][0]);
    assert!(before > loaded + 500, "{before} rows, and {loaded} were loaded");
    refused(&verb("check", &["--warehouses", "3"]), &["--warehouses", "has 2 warehouses"]);
    refused(&verb("check", &["--index", "map,art"]), &["--data", "one database"]);
    refused(&verb("run", &["--mix", "half", "--index", "occ-avl"]), &["--data", "must scan"]);
    // A checkpoint is cut.
    let files = std::fs::read_dir(&data).unwrap().map(|file| file.unwrap().path());
    let mut checkpoints =
        files.filter(|file| file.extension().is_some_and(|of| of == "checkpoint"));
    let checkpoint = checkpoints.next().unwrap();
    let bytes = std::fs::read(&checkpoint).unwrap();
    std::fs::write(&checkpoint, &bytes[..bytes.len() - 1]).unwrap();
    refused(&verb("check", &[]), &["--data", "checkpoint"]);
}
