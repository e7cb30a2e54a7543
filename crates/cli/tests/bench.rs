//! The output of `silvics bench` and `silvics list` on good input.

mod common;

use common::{
    Files, assert_sound, bench, bench_json, field, number, refused, rows, run, stderr, stdout,
};
use serde_json::Value;

#[test]
fn json_has_every_field_and_stdout_nothing_else() {
    let result = bench_json(&[
        "--index",
        "edge-ext-lf,occ-avl,skiplist",
        "--keys",
        "1k,2k",
        "--threads",
        "1,2",
    ]);
    for part in ["machine", "config", "results", "loads"] {
        field(&result, part);
    }
    assert!(number(&result["machine"], "cores") >= 1.0);
    // Three indexes, two sizes, two numbers of threads, two mixes.
    assert_eq!(rows(&result).len(), 24);
    for row in rows(&result) {
        assert_sound(row, 2);
        assert_eq!(row["bytes_source"], "exact");
        assert!(number(row, "bytes_per_key") > 8.0);
    }
    let first = &rows(&result)[0];
    assert_eq!(first["index"], "edge-ext-lf");
    assert_eq!(number(first, "ratio_to_first").to_string(), "1");
    assert_eq!((&first["keys"], &first["key_space"]), (&1000.into(), &2000.into()));
    assert_eq!(result["loads"].as_array().unwrap().len(), 6);
    assert_eq!(result["interrupted"], false);
}

#[test]
fn half_of_uniform_lookups_hit() {
    let result = bench_json(&["--index", "occ-avl", "--keys", "10k", "--mix", "100/0/0"]);
    let row = &rows(&result)[0];
    let share = number(row, "hits") / number(row, "lookups");
    assert!((0.45..0.55).contains(&share), "{share}");
}

#[test]
#[cfg(feature = "peers")]
#[ignore = "takes seconds: `just stress` runs it"]
fn every_contender_runs_every_distribution() {
    let dists = "uniform,sparse,zipf:0,zipf:1.2,sparse+zipf:1.2,sequential,disjoint,latest";
    let catalogue = run(&["list", "--format", "json"]);
    let catalogue: Value = serde_json::from_slice(&catalogue.stdout).unwrap();
    // `peer:artmap-versioned` takes no writes, so it is left out.
    let takes = |index: &&Value| index["keys"].as_array().unwrap().contains(&"u64".into());
    let all = catalogue["indexes"].as_array().unwrap().iter().filter(takes).count() - 1;
    let result = bench_json(&[
        "--index",
        "all",
        "--keys",
        "500",
        "--dist",
        dists,
        "--mix",
        "60/20/20",
        "--threads",
        "2",
        "--rounds",
        "1",
    ]);
    let names: std::collections::HashSet<&str> =
        rows(&result).iter().filter_map(|row| row["index"].as_str()).collect();
    // Now and then ferntree 0.7 reports twice that it inserted a key; it then has no rows.
    assert_eq!(names.len() + usize::from(!names.contains("peer:ferntree")), all, "{names:?}");
    let ferntree = rows(&result).iter().filter(|row| row["index"] == "peer:ferntree").count();
    let rows_of = |name: &str| rows(&result).iter().filter(|row| row["index"] == name).count();
    let few: Vec<_> = names.iter().filter(|name| rows_of(name) < 8).collect();
    assert!(few.iter().all(|name| **name == "peer:ferntree"), "{few:?} have fewer rows");
    assert_eq!(rows(&result).len(), 8 * (all - 1) + ferntree);
    for row in rows(&result) {
        assert_sound(row, 1);
    }
}

#[test]
fn scans_are_counted() {
    let result = bench_json(&[
        "--index",
        "skiplist",
        "--keys",
        "5k",
        "--mix",
        "50/10/10/30",
        "--scan-length",
        "7",
    ]);
    let row = &rows(&result)[0];
    assert_sound(row, 2);
    assert_eq!(row["mix"], "50/10/10/30");
    assert_eq!(row["scan_length"], 7);
    assert!(number(row, "scanned") > 7.0);
}

#[test]
fn of_a_group_what_cannot_scan_is_left_out() {
    let args = ["--index", "ours", "--keys", "1k", "--mix", "100/0/0,95/0/0/5"];
    let output = bench(&[&args[..], &["--format", "json"]].concat());
    assert!(
        stderr(&output)
            .contains("note: `occ-avl` cannot scan u64 keys: left out of --mix 95/0/0/5")
    );
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let scanning: Vec<&Value> = rows(&result)
        .iter()
        .filter(|row| row["mix"] == "95/0/0/5")
        .map(|row| &row["index"])
        .collect();
    assert!(scanning.iter().any(|index| *index == "skiplist"));
    assert!(scanning.iter().all(|index| *index != "occ-avl"));
    let first = rows(&result).iter().find(|row| row["mix"] == "95/0/0/5").unwrap();
    assert_eq!(number(first, "ratio_to_first").to_string(), "1");
}

#[test]
fn placements_and_pages_multiply() {
    let result = bench_json(&[
        "--index",
        "skiplist,occ-avl",
        "--keys",
        "1k",
        "--mix",
        "90/5/5",
        "--placement",
        "pooled,shared,size-class",
        "--pages",
        "4k,thp",
    ]);
    let places: Vec<(&str, &str)> = rows(&result)
        .iter()
        .map(|row| (row["placement"].as_str().unwrap(), row["pages"].as_str().unwrap()))
        .collect();
    let expected = [
        ("pooled", "4k"),
        ("pooled", "thp"),
        ("shared", "system"),
        ("size-class", "4k"),
        ("size-class", "thp"),
    ];
    assert_eq!(places, expected.map(|place| [place; 2]).concat());
    // All indexes are in one cell, with ratios to its first row.
    for row in rows(&result) {
        assert_sound(row, 2);
        assert_eq!(row["cell"], 0);
    }
    let ratios = |at: usize| number(&rows(&result)[at], "ratio_to_first").to_string();
    assert!(ratios(0) == "1" && (1..places.len()).any(|at| ratios(at) != "1"));
    let result = bench_json(&[
        "--index",
        "occ-avl:fixed,peer:btreemap-rwlock,occ-avl:baseline",
        "--keys",
        "1k",
        "--mix",
        "90/5/5",
        "--placement",
        "pooled,size-class",
    ]);
    let owners: Vec<_> = rows(&result).iter().map(|row| row["placement"].as_str()).collect();
    let [pooled, peer, classes] = ["pooled", "own", "size-class"].map(Some);
    assert_eq!(owners, [pooled, peer, pooled, classes, classes], "a peer is there once");
    let builds = result["builds"].as_array().unwrap().iter();
    let builds: Vec<_> = builds.map(|build| build["placement"].as_str()).collect();
    assert_eq!(builds, [pooled, classes]);
}

#[test]
fn batches_give_the_same_answers() {
    let result = bench_json(&[
        "--index",
        "edge-ext-lf,occ-avl,skiplist",
        "--keys",
        "2k",
        "--batch",
        "1,8,100",
        "--mix",
        "70/20/10",
    ]);
    let batches: Vec<&Value> = rows(&result).iter().map(|row| &row["batch"]).collect();
    assert_eq!(batches, [1, 1, 1, 8, 8, 8, 100, 100, 100]);
}

#[test]
fn csv_has_a_record_per_row() {
    let output =
        bench(&["--index", "edge-ext-lf,occ-avl,skiplist", "--keys", "1k", "--format", "csv"]);
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let header = reader.headers().unwrap().clone();
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), 6);
    let column = |name| header.iter().position(|other| other == name).unwrap();
    assert_eq!(&records[2][column("index")], "skiplist");
    assert_eq!(&records[3][column("mix")], "90/5/5");
    assert_eq!(records[0][column("samples")].split(' ').count(), 2);
    assert_eq!(&records[0][column("checked")], "true");
}

#[test]
fn tables_name_what_was_run() {
    let output = bench(&["--index", "ours", "--keys", "1k", "--seed", "7", "--dist", "zipf:0.5"]);
    let text = stdout(&output);
    for part in ["2 rounds of 0.01 s", "seed 7", "1k u64 keys of 2k, zipf:0.5", "| occ-avl "] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
    let noted = |line: &str| line.starts_with("note: ") && line.ends_with("left out");
    let text = stderr(&output);
    assert!(text.lines().all(noted), "no progress where there is no terminal: {text}");
}

/// A file with lines of many kinds: with NUL, not UTF-8, with carriage returns, empty, of 64 KiB,
/// and repeated.
#[test]
fn a_file_of_lines() {
    let files = Files::new();
    let mut text = Vec::new();
    for n in 0..300 {
        text.extend(format!("/usr/share/{n}\0x\r\n").into_bytes());
        text.extend([0xff, 0xfe, n as u8 | 128, b'\n']);
    }
    text.extend(b"\nsame\nsame\nsame\n");
    text.extend(vec![b'k'; 64 << 10]);
    let path = files.write("paths.txt", text);
    let args =
        ["--index", "skiplist", "--key-file", &path, "--mix", "50/20/20/10", "--format", "json"];
    let output = bench(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // 300 paths, 128 other lines, the empty line, "same", and the long line.
    assert!(
        stderr(&output).contains("174 duplicate keys dropped, 431 left"),
        "{}",
        stderr(&output)
    );
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["config"]["key_file"]["duplicates_dropped"], 174);
    let row = &rows(&result)[0];
    assert_sound(row, 2);
    assert_eq!(row["key_type"], "bytes");
    assert_eq!((&row["keys"], &row["key_space"]), (&216.into(), &431.into()));
}

#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn key_sets_with_every_distribution_that_has_no_keys_of_its_own() {
    for set in ["words", "uuid", "email", "url"] {
        let args = ["--index", "art,skiplist", "--keys", "500,1k", "--keyset", set];
        let dists = ["--dist", "uniform,zipf:0.99,sequential,disjoint,latest"];
        let result = bench_json(&[&args[..], &dists, &["--mix", "50/20/20/10"]].concat());
        assert_eq!(result["config"]["keyset"], set);
        assert_eq!(rows(&result).len(), 20);
        for row in rows(&result) {
            assert_sound(row, 2);
            assert_eq!((&row["keyset"], &row["key_type"]), (&set.into(), &"bytes".into()));
            assert_eq!(
                number(row, "key_space").to_string(),
                (2.0 * number(row, "keys")).to_string()
            );
        }
    }
    let numbers = bench_json(&["--index", "skiplist", "--keys", "100"]);
    assert_eq!(
        (&numbers["config"]["keyset"], &rows(&numbers)[0]["keyset"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn tables_name_the_key_set() {
    let args = ["--index", "map", "--keys", "1k", "--keyset", "email", "--key-type", "string"];
    let output = bench(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["keys: the key set email of this seed", "1k string keys of 2k (email), uniform"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
#[cfg(feature = "peers")]
fn of_all_indexes_what_cannot_take_the_keys_is_left_out() {
    let files = Files::new();
    let path =
        files.write("long", [b"a\nb\n".as_slice(), &vec![b'x'; 65536], b"\nc\nd\n"].concat());
    let output = bench(&["--key-file", &path, "--mix", "90/5/5", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`peer:masstree` takes keys of at most"),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("`edge-ext-lf` takes no byte keys: left out"));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = rows(&result).iter().filter_map(|row| row["index"].as_str()).collect();
    assert!(names.contains(&"skiplist") && names.contains(&"peer:btreemap-rwlock"), "{names:?}");
}

#[test]
fn a_sosd_file_as_keys_of_any_type() {
    let files = Files::new();
    let path = files.sosd("keys_uint64", 1001, (0..1001).map(|n| u64::MAX - n % 1000));
    for (index, key_type) in [("skiplist", "u64"), ("skiplist", "bytes"), ("art", "u128")] {
        let result = bench_json(&[
            "--index",
            index,
            "--key-file",
            &path,
            "--key-type",
            key_type,
            "--dist",
            "uniform,zipf:1",
        ]);
        assert_eq!(rows(&result).len(), 4);
        for row in rows(&result) {
            assert_sound(row, 2);
            assert_eq!((&row["keys"], &row["key_type"]), (&500.into(), &key_type.into()));
        }
    }
    let sorted = files.sosd("sorted.u64", 3, [5, 6, 7]);
    bench_json(&["--index", "occ-avl", "--key-file", &sorted, "--dist", "sequential"]);
}

#[test]
#[cfg(feature = "peers")]
fn maps_hold_any_keys_and_values() {
    let maps = "map,peer:crossbeam-skiplist,peer:scc,peer:btreemap-rwlock";
    for key_type in ["u64", "u128", "bytes", "string"] {
        for value_type in ["u64", "arc"] {
            let types = ["--key-type", key_type, "--value-type", value_type];
            let what = ["--index", maps, "--keys", "500", "--mix", "50/20/20/10"];
            let result = bench_json(&[&what[..], &types[..]].concat());
            assert_eq!(rows(&result).len(), 4);
            for row in rows(&result) {
                assert_sound(row, 2);
                assert_eq!(
                    (&row["key_type"], &row["value_type"]),
                    (&key_type.into(), &value_type.into())
                );
            }
        }
    }
    let files = Files::new();
    let path = files.write("binary", b"text\nmore\n\xff\xfe\n");
    let args = ["--key-file", &path, "--key-type", "string", "--index", "map"];
    let output = bench(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--key-type string: key 3 is not valid UTF-8"),
        "{}",
        stderr(&output)
    );
}

/// Each run checks every answer, and some scans entry by entry, against values that depend on both
/// halves of a key.
#[test]
fn keys_can_have_128_bits() {
    let args = ["--index", "ours", "--key-type", "u128", "--keys", "2k", "--mix", "50/20/20/10"];
    let places = ["--placement", "pooled,shared", "--dist", "uniform,sparse"];
    let output = bench(&[&args[..], &places, &["--format", "json"]].concat());
    assert!(stderr(&output).contains("`skiplist` takes no u128 keys: left out"));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = rows(&result).iter().filter_map(|row| row["index"].as_str()).collect();
    // Maps have only the placement of pools.
    let tries = ["patricia-2", "patricia-4", "patricia-16", "patricia-256"];
    let others = ["words", "ca-tree", "lfca-tree", "blocks"];
    let indexes = [&["art"][..], &tries, &others].concat();
    let maps = ["map", "ordmap", "versioned", "multimap", "skipmap"];
    let placed = [&indexes[..], &maps, &indexes[..]].concat();
    assert_eq!(names, placed.repeat(2));
    for row in rows(&result) {
        assert_sound(row, 2);
        assert_eq!(row["key_type"], "u128");
        assert!(number(row, "scanned") > 0.0);
    }
}

#[test]
fn a_variant_is_named_as_it_was_given() {
    let result =
        bench_json(&["--index", "skiplist:default,skiplist", "--keys", "100", "--mix", "100/0/0"]);
    let names: Vec<&Value> = rows(&result).iter().map(|row| &row["index"]).collect();
    assert_eq!(names, ["skiplist:default", "skiplist"]);
}

#[test]
fn list_shows_the_catalogue() {
    let output = run(&["list", "--format", "json"]);
    let catalogue: Value = serde_json::from_slice(&output.stdout).unwrap();
    let indexes = catalogue["indexes"].as_array().unwrap();
    let names: Vec<&str> = indexes.iter().filter_map(|index| index["name"].as_str()).collect();
    assert_eq!(names[0], "edge-ext-lf");
    for index in indexes {
        for name in ["paper", "topology", "sync", "keys", "ranges", "variants", "placements"] {
            field(index, name);
        }
    }
    let keys_of = |name: &str| {
        let index = indexes.iter().find(|index| index["name"] == name).unwrap();
        (index["keys"].clone(), index["ranges"].clone())
    };
    let all = serde_json::json!(["u64", "u128", "bytes"]);
    assert_eq!(keys_of("art"), (all.clone(), all));
    assert_eq!(keys_of("occ-avl"), (serde_json::json!(["u64"]), serde_json::json!([])));
    let table = stdout(&run(&["list"]));
    let csv = stdout(&run(&["list", "--format", "csv"]));
    assert!(names.iter().all(|name| table.contains(name) && csv.contains(name)));
}

/// The rows of one index of `silvics list --layout`, by build.
fn layout<'a>(layouts: &'a Value, name: &str, build: &str) -> &'a Value {
    let builds = layouts["builds"].as_array().expect("builds");
    let found = builds.iter().find(|row| row["name"] == name && row["build"] == build);
    found.unwrap_or_else(|| panic!("no {name}:{build}"))
}

#[test]
fn list_shows_layouts() {
    let output = run(&["list", "--layout", "--format", "json"]);
    let layouts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = |name, build| {
        let row = layout(&layouts, name, build);
        assert_eq!(row["kinds"][0]["bytes"], row["node_bytes"]);
        ["node_bytes", "class", "hot_bytes", "lines_per_visit"].map(|of| field(row, of).to_string())
    };
    assert_eq!(figures("occ-avl", "fixed"), ["64", "64", "32", "1.0"]);
    assert_eq!(figures("occ-avl", "baseline"), ["112", "112", "32", "2.5"]);
    let oversights = layout(&layouts, "occ-avl", "baseline")["oversights"].as_array().unwrap();
    assert_eq!(oversights.len(), 3);
    let table = stdout(&run(&["list", "--layout"]));
    let csv = stdout(&run(&["list", "--layout", "--format", "csv"]));
    assert!(
        table.contains("scattered fields") && csv.contains("occ-avl,baseline,node,112,112,32,2.5")
    );
}

/// Every build of every tree is measured, and so is the gain of the fixed builds.
#[test]
fn the_trees_of_the_study_come_in_all_builds() {
    let args = ["--index", "bst", "--keys", "1k", "--mix", "100/0/0,90/5/5", "--threads", "1"];
    let output = bench(&[&args[..], &["--format", "json"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let note = "note: `occ-avl-2:unsafe` only looks keys up: left out of --mix 90/5/5";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    let samples = |index: &str, mix: &str| -> Vec<f64> {
        let row = rows(&result).iter().find(|row| row["index"] == index && row["mix"] == mix);
        let row = row.unwrap_or_else(|| panic!("no {index} at {mix}"));
        assert_sound(row, 2);
        field(row, "samples").as_array().unwrap().iter().filter_map(Value::as_f64).collect()
    };
    samples("occ-avl-2:unsafe", "100/0/0");
    let builds = result["builds"].as_array().expect("builds");
    for mix in ["100/0/0", "90/5/5"] {
        let trees: Vec<&Value> = builds
            .iter()
            .filter(|build| build["mix"] == mix && !build["index"].is_null())
            .collect();
        let mut product = [1.0, 1.0];
        for tree in &trees {
            let name = tree["index"].as_str().unwrap();
            let fixed = samples(&format!("{name}:fixed"), mix);
            let baseline = samples(&format!("{name}:baseline"), mix);
            let ratios = [fixed[0] / baseline[0], fixed[1] / baseline[1]];
            product = [product[0] * ratios[0], product[1] * ratios[1]];
            let median = f64::midpoint(ratios[0], ratios[1]);
            assert!((number(&tree["ratio"], "median") / median - 1.0).abs() < 1e-9, "{name}");
        }
        let mean = builds.iter().find(|build| build["mix"] == mix && build["index"].is_null());
        let mean = mean.expect("a geometric mean");
        assert_eq!(number(mean, "trees") as usize, trees.len());
        let root = 1.0 / trees.len() as f64;
        let wanted = f64::midpoint(product[0].powf(root), product[1].powf(root));
        assert!((number(&mean["ratio"], "median") / wanted - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_variant_can_be_chosen_for_all_that_have_it() {
    let args = ["--index", "bst", "--variant", "baseline", "--keys", "100", "--mix", "100/0/0"];
    let result = bench_json(&args);
    assert!(
        rows(&result).len() >= 2 && rows(&result).iter().all(|row| row["variant"] == "baseline")
    );
    let one = bench_json(&["--index", "occ-avl", "--variant", "fixed", "--keys", "100"]);
    assert_eq!(rows(&one)[0]["index"], "occ-avl:fixed");
}

#[test]
fn tries_are_chosen_by_their_synchronisation() {
    let keys = ["--key-type", "u128", "--keys", "100", "--mix", "100/0/0"];
    let run = |args: &[&str]| bench_json(&[&keys, args].concat());
    let names = |result: &Value| -> Vec<String> {
        rows(result).iter().map(|row| row["index"].as_str().unwrap().into()).collect()
    };
    let of = |index: &str, sync: &str| names(&run(&["--index", index, "--sync", sync]));
    assert_eq!(of("patricia", "spin"), ["patricia-16:spin"]);
    assert_eq!(of("patricia-16,patricia-16:spin", "spin"), ["patricia-16:spin"]);
    assert_eq!(of("patricia-16:paper", "spin"), ["patricia-16:paper-spin"]);
    assert_eq!(of("patricia-16:paper", "optimistic"), ["patricia-16:paper"]);
}

/// On a machine without hardware transactions, `--fallback` runs another build, and says so.
#[test]
fn transactions_fall_back() {
    let args = ["--key-type", "u128", "--keys", "100", "--mix", "100/0/0", "--sync", "rtm"];
    for index in ["patricia-16", "patricia-16:rtm"] {
        let args = [&["--index", index], &args[..]].concat();
        let alone = bench(&args);
        let output = bench(&[&args[..], &["--fallback", "--format", "json"]].concat());
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let name = rows(&result)[0]["index"].as_str().unwrap().to_owned();
        if stderr(&output).contains("optimistic teleportation runs") {
            assert!(["patricia-16", "patricia-16:compact"].contains(&&*name), "{name}");
            refused(&alone, &["--sync", "no restricted transactional memory", "add --fallback"]);
        } else {
            assert_eq!((name.as_str(), alone.status.code()), ("patricia-16:rtm", Some(0)));
        }
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    use std::process::Stdio;
    let mut child = common::command(&["list"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// jemalloc reads its options from a symbol to which nothing else refers. If the linker dropped it,
/// the program would compare peers on small pages with our indexes on huge ones.
#[test]
#[cfg(all(feature = "alloc-jemalloc", feature = "peers", target_os = "linux"))]
fn jemalloc_has_huge_pages() {
    let result =
        bench_json(&["--index", "peer:btreemap-rwlock", "--keys", "500k", "--mix", "100/0/0"]);
    let row = &rows(&result)[0];
    assert_eq!(row["allocator"], "jemalloc thp:always");
    if result["machine"]["thp"] != "never" {
        assert!(number(row, "huge_page_share") > 0.5, "{row}");
    }
}
