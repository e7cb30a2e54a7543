//! The rounds of `silvics bench`: loads, mixes, scans, and the peers that cannot take part.

mod common;

use common::{Files, assert_sound, bench, bench_json, field, number, rows, stderr, stdout};
use serde_json::Value;

/// A B-tree of words has 16 bytes of entries per key in nodes that are half full at least. Blocks
/// of glibc have a header that no node uses.
#[test]
#[cfg(all(feature = "peers", target_os = "linux", target_env = "gnu"))]
fn bytes_of_peers_are_those_of_their_blocks() {
    let result =
        bench_json(&["--index", "peer:btreemap-rwlock", "--keys", "100k", "--mix", "100/0/0"]);
    let load = &result["loads"][0];
    assert_eq!(field(load, "bytes_source"), "malloc");
    let bytes = number(load, "bytes_per_key");
    assert!((17.0..36.0).contains(&bytes), "{bytes}");
    assert_eq!(number(&rows(&result)[0], "bytes_per_key").to_string(), bytes.to_string());
}

#[test]
fn loads_are_repeated_and_compared() {
    let args = ["--index", "art,skiplist", "--keys", "1k", "--rounds", "3", "--load-threads", "1"];
    for (loads, expected) in [(None, 3), (Some("2"), 2)] {
        let flag = loads.map_or(vec![], |loads| vec!["--loads", loads]);
        let result = bench_json(&[&args[..], &flag].concat());
        let rows = result["loads"].as_array().unwrap();
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(field(row, "samples").as_array().unwrap().len(), expected);
            assert_eq!(field(row, "threads"), 1);
            assert!(
                number(field(row, "ratio"), "median") > 0.0
                    && number(field(row, "mops"), "low") > 0.0
            );
        }
    }
}

/// The second cell does not fit into the memory that is allowed.
#[test]
fn what_was_finished_before_an_error_is_printed() {
    let files = Files::new();
    let [page, runs] = ["page.html", "runs"].map(|name| files.path(name));
    let args = ["--index", "skiplist", "--keys", "1k,500k", "--memory-limit", "4M", "--mix"];
    let args = [&args[..], &["100/0/0", "--kept-in", &runs, "--save", "a"]].concat();
    let output = bench(&[&args[..], &["--html", &page, "--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--save a: not kept, because it did not finish"));
    let result: Value = serde_json::from_str(&stdout(&output)).expect("a result");
    let keys: Vec<_> = rows(&result).iter().map(|row| row["keys"].as_u64()).collect();
    assert_eq!(keys, [Some(1000)]);
    let reason = result["stopped"].as_str().expect("the error");
    assert!(stderr(&output).contains(&format!("error: {reason}")), "{}", stderr(&output));
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("This is what was finished before"));
    let table = stdout(&bench(&args));
    assert!(table.contains("Stopped: ") && table.contains("| skiplist"), "{table}");
    let csv = stdout(&bench(&[&args[..], &["--format", "csv"]].concat()));
    assert!(csv.lines().nth(1).is_some_and(|line| line.contains("Stopped: ")), "{csv}");
}

/// The ratios of short scans were printed below the tables of all scans.
#[test]
fn ratios_of_builds_are_those_of_their_scans() {
    let trees = "edge-ext-lf:fixed,edge-ext-lf:baseline";
    let args = ["--index", trees, "--keys", "1k", "--mix", "0/0/0/100", "--scan-length", "10,200"];
    let result = bench_json(&args);
    let lengths: Vec<_> = result["builds"].as_array().unwrap().iter().collect();
    let lengths: Vec<_> = lengths.iter().map(|build| build["scan_length"].as_u64()).collect();
    assert_eq!(lengths, [Some(10), Some(200)]);
    let table = stdout(&bench(&args));
    assert_eq!(table.matches("fixed / baseline, edge-ext-lf: ").count(), 2, "{table}");
}

/// The index is a fresh one in each round, so the checks of the last one pass.
#[test]
fn mixes_that_grow_or_shrink_begin_with_a_fresh_index() {
    let args = ["--index", "art", "--keys", "1k", "--mix", "50/50/0,90/5/5,50/0/50,0/100/0"];
    let result = bench_json(&args);
    assert_eq!(rows(&result).len(), 4);
    for row in rows(&result) {
        assert_sound(row, 2);
    }
}

/// Scans of all entries have no length.
#[test]
fn scans_go_on_by_range_by_key_or_over_everything() {
    for index in ["ca-tree", "map"] {
        let args = ["--index", index, "--keys", "2k", "--mix", "0/0/0/100", "--scan-length", "7"];
        let more = ["--scan-by", "range,next,whole", "--counting", "single"];
        let result = bench_json(&[&args[..], &more].concat());
        assert_eq!(field(field(&result, "config"), "counting"), "single");
        let rows = rows(&result);
        let ways: Vec<_> = rows.iter().map(|row| field(row, "scan_by").clone()).collect();
        assert_eq!(ways, ["range", "next", "whole"]);
        let lengths: Vec<_> = rows.iter().map(|row| row["scan_length"].as_u64()).collect();
        assert_eq!(lengths, [Some(7), Some(7), None]);
        for (row, most) in rows.iter().zip([7, 7, 2000]) {
            let (scanned, mops) = (number(row, "scanned"), number(field(row, "mops"), "median"));
            assert!(scanned > 0.0 && mops > 0.0, "{row}");
            if most == 2000 {
                assert_eq!(scanned as u64 % 2000, 0, "each scan reads everything: {row}");
            }
        }
    }
}

#[test]
fn mixes_have_decimals() {
    let result = bench_json(&["--index", "map", "--keys", "1k", "--mix", "79.5/10/10/0.5"]);
    let [row] = rows(&result) else { panic!("one row") };
    assert_eq!(field(row, "mix"), "79.5/10/10/0.5");
    assert!(number(row, "scanned") > 0.0);
}

#[test]
fn the_loops_cost_and_the_time_of_an_entry_are_shown() {
    let args = ["--index", "art,skiplist", "--keys", "5k", "--mix", "100/0/0,0/0/0/100"];
    let result = bench_json(&[&args[..], &["--scan-length", "10,100"]].concat());
    let lengths: Vec<_> = rows(&result).iter().map(|row| row["scan_length"].as_u64()).collect();
    assert_eq!(lengths, [None, None, Some(10), Some(10), Some(100), Some(100)]);
    for (row, length) in rows(&result).iter().zip(lengths) {
        assert!(number(row, "own_ns") > 0.0);
        match length {
            Some(100) => _ = number(field(row, "entry_ns"), "median"), // on a busy machine below 0
            _ => assert!(row["entry_ns"].is_null()),
        }
    }
}

#[test]
#[cfg(feature = "peers")]
fn upserts_leave_the_size_and_peers_without_them_lose_the_row() {
    let args =
        ["--index", "art,map,skiplist,peer:btreemap-rwlock,peer:crossbeam-skiplist,peer:scc"];
    let more = ["--keys", "2k", "--mix", "90/5/5,20/20/20/0/40,40/0/0/0/60", "--format", "json"];
    let output = bench(&[&args[..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`peer:scc` has no such upserts: left out of --mix 40/0/0/0/60")
    );
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    for row in rows(&result) {
        assert_sound(row, 2);
    }
    let of = |mix: &str| rows(&result).iter().filter(|row| row["mix"] == mix).count();
    assert_eq!([of("90/5/5"), of("40/0/0/0/60"), of("20/20/20/0/40")], [6, 5, 4]);
}

#[test]
#[cfg(feature = "peers")]
fn a_peer_whose_keys_are_too_long_is_left_out() {
    let files = Files::new();
    let long = files.write("long", [b"a\n".as_slice(), &vec![b'x'; 65536], b"\nb\n"].concat());
    let args = ["--index", "skiplist,peer:masstree", "--key-file", &long, "--format", "json"];
    let output = bench(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in ["`peer:masstree`", "line 2", "65536", "leave out"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows(&result).iter().all(|row| row["index"] == "skiplist"));
}

/// Also if it was named.
#[test]
#[cfg(feature = "peers")]
fn a_peer_that_takes_no_such_keys_is_left_out() {
    let args = ["--index", "art,peer:congee", "--keys", "1k", "--key-type", "u128"];
    let output = bench(&[&args[..], &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("`peer:congee` takes no u128 keys: left out"));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows(&result).iter().all(|row| row["index"] == "art"));
}
