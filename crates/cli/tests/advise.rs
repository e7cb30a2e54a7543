//! `silvics advise`: which index for a workload.

mod common;

use common::{refused, run, stderr, stdout};
use serde_json::Value;
use silvics::Map;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// The least budget: the advice of a debug build on a busy machine is not what is tested.
const SMALL: [&str; 6] = ["--keys", "4k", "--budget", "3", "--threads", "2"];

fn advise(flags: &[&str]) -> Value {
    let output = run(&[&["advise", "--format", "json"], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("standard output is JSON and nothing else")
}

#[track_caller]
fn refuses(flags: &[&str], parts: &[&str]) {
    refused(&run(&[&["advise"], flags].concat()), parts);
}

/// The finalists have rounds, the advice is one of them, and its Rust names what it differs in.
fn is_whole(advice: &Value) {
    let finalists = advice["finalists"].as_array().unwrap();
    let of = &advice["advice"];
    let names: Vec<&str> = finalists.iter().map(|row| row["candidate"].as_str().unwrap()).collect();
    assert!(names.contains(&of["candidate"].as_str().unwrap()), "{of} is none of {names:?}");
    for row in finalists {
        assert!(!row["samples"].as_array().unwrap().is_empty(), "{row}");
        assert!(row["mops"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    let rust = of["rust"].as_array().unwrap();
    assert_eq!(rust.len(), 3);
    let map = rust[1].as_str().unwrap();
    assert!(map.starts_with("let map") && map.ends_with("?;"), "{map}");
    assert_eq!(map.contains("Pages::Small"), of["pages"] == "4k", "{map}");
    assert_eq!(map.contains("Shared"), of["placement"] == "shared", "{map}");
    assert_eq!(map.contains("Counting::Single"), of["counting"] == "single", "{map}");
    let batch = of["batch"].as_u64().unwrap();
    assert_eq!(rust[2].as_str().unwrap().contains("_many"), batch > 1, "{rust:?}");
    assert!(!of["because"].as_array().unwrap().is_empty());
}

#[test]
fn a_description_gets_advice() {
    let advice = advise(&[&SMALL[..], &["--mix", "70/15/15", "--budget", "6"]].concat());
    is_whole(&advice);
    assert_eq!(advice["workload"]["keys"], 4000);
    let structures: Vec<&str> = advice["structures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["candidate"].as_str().unwrap())
        .collect();
    for name in ["words", "art", "skiplist", "ca-tree", "edge-ext-lf"] {
        assert!(
            structures.iter().any(|candidate| candidate.starts_with(name)),
            "{name}: {structures:?}"
        );
    }
    let leaders = advice["forecast"]["leaders"].as_array().unwrap();
    assert!(leaders.len() >= 2, "{leaders:?}");
    let times: Vec<f64> = leaders.iter().map(|of| of["ns_at_ten"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn needs_leave_the_maps_that_meet_them() {
    for (need, candidate) in [
        ("order", "ordmap:function"),
        ("ranks", "map:counted"),
        ("snapshots", "versioned"),
        ("atomic-ranges", ""),
    ] {
        let advice = advise(&[&SMALL[..], &["--needs", need]].concat());
        is_whole(&advice);
        let index = advice["advice"]["index"].as_str().unwrap();
        match need {
            "atomic-ranges" => {
                assert!(index.starts_with("ca-tree") || index == "lfca-tree");
                let rust = advice["advice"]["rust"].to_string();
                assert!(rust.contains("collect_range") && !rust.contains("Map"), "{rust}");
            }
            _ => assert_eq!(index, candidate),
        }
    }
    let text = stdout(&run(&[&["advise", "--needs", "order"], &SMALL[..]].concat()));
    assert!(text.contains("the usual map with what is needed"), "{text}");
    assert!(!text.contains("Map::new()"), "{text}");
    refuses(&["--needs", "ranks,order"], &["no map has all of ranks, order"]);
}

/// The model has single lookups, so it says nothing about other calls.
#[test]
fn scans_and_batches_have_no_prediction() {
    let of = [(["--mix", "40/0/0/60"], "scans"), (["--batch", "16"], "calls of many keys")];
    for (flags, reason) in of {
        let advice = advise(&[&SMALL[..], &flags].concat());
        is_whole(&advice);
        let forecast = &advice["forecast"];
        assert!(forecast["leaders"].as_array().unwrap().is_empty(), "{forecast}");
        assert!(forecast["missing"].as_str().unwrap().contains(reason), "{forecast}");
    }
}

/// Upserts of many keys are one call, and are named as such. Removals are single ones.
#[test]
fn the_calls_of_many_keys_are_those_of_the_mix() {
    let rust = |mix: &str| {
        let advice = advise(&[&SMALL[..], &["--batch", "64", "--mix", mix]].concat());
        (advice["advice"]["batch"].as_u64(), advice["advice"]["rust"][2].to_string())
    };
    let (batch, call) = rust("0/0/0/0/100");
    assert_eq!(batch > Some(1), call.contains("insert_many"), "{call}");
    assert!(!call.contains("get_many"), "{call}");
    assert_eq!(rust("0/50/50").1.matches("get_many").count(), 0);
    assert_eq!(rust("0/0/0/100").0, Some(1));
}

#[test]
fn a_key_file_is_sampled_in_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("paths.txt");
    let mut file = File::create(&path).unwrap();
    for n in 0..6000 {
        writeln!(file, "/srv/data/{:02}/{:03}/part-{n:05}.parquet", n % 7, n % 331).unwrap();
    }
    drop(file);
    let path = path.to_str().unwrap();
    let advice =
        advise(&["--key-file", path, "--budget", "3", "--mix", "80/10/5/5", "--goal", "memory"]);
    is_whole(&advice);
    let workload = &advice["workload"];
    assert_eq!((&workload["key_type"], &workload["keys"]), (&"bytes".into(), &3000.into()));
    let because = advice["advice"]["because"].to_string();
    // The rate is no reason. It may be a doubt, whether the choice is fast enough.
    assert!(!because.contains("rate is") || because.contains("may be below a half"), "{because}");
    // The fewest bytes, of the finalists that are fast enough.
    let finalists = advice["finalists"].as_array().unwrap();
    let rate = |row: &Value| row["mops"]["median"].as_f64().unwrap();
    let fastest = finalists.iter().map(rate).fold(0.0, f64::max);
    let bytes = |row: &Value| row["bytes_per_key"].as_f64().unwrap();
    let fast_enough = finalists.iter().filter(|row| 2.0 * rate(row) >= fastest);
    let least = fast_enough.map(bytes).fold(f64::MAX, f64::min);
    let of =
        finalists.iter().find(|row| row["candidate"] == advice["advice"]["candidate"]).unwrap();
    assert!(bytes(of) <= 1.06 * least, "{} for {}, {least} at least", bytes(of), of["candidate"]);
}

/// Records a map, whose keys are numbers that lie far apart.
fn record(path: &Path) -> u64 {
    let map: Map<u64, u64> = (0..2000).map(|n| (n << 40, n)).collect();
    let (map, recorder) = map.record(File::create(path).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let map = &map;
            scope.spawn(move || {
                for n in 0..3000_u64 {
                    let key = ((n * 7 + thread) % 2500) << 40;
                    match n % 10 {
                        0 => drop(map.insert(key, n)),
                        1 => drop(map.remove(key)),
                        2 => assert!(map.pin().range(key..).take(20).count() <= 20),
                        _ => drop(map.get(key)),
                    }
                }
            });
        }
    });
    recorder.finish().unwrap()
}

#[test]
fn a_trace_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let recorded = record(&path);
    assert_eq!(recorded, 6000);
    let path_text = path.to_str().unwrap();
    let advice = advise(&["--trace", path_text, "--budget", "3"]);
    is_whole(&advice);
    let workload = &advice["workload"];
    assert_eq!((&workload["source"], &workload["keys"]), (&"trace".into(), &2000.into()));
    assert_eq!(workload["mix"], "70/0/10/10/10");
    let entries = workload["scan_length"].as_u64().unwrap();
    assert!((15..=20).contains(&entries), "{entries}"); // some scans reach the last key

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    refuses(&["--trace", path_text], &["was cut short after"]);
    refuses(&["--trace", "nowhere.jsonl"], &["--trace: `nowhere.jsonl` cannot be read"]);
    refuses(&["--trace", path_text, "--mix", "90/5/5"], &["--trace", "--mix"]);
}

/// Each run begins with an empty index, and inserts each key once: if the last keys were left out,
/// or inserted again, the bytes would be those of other trees.
#[test]
fn a_trace_of_a_load_is_a_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let (map, recorder) = Map::<u64, u64>::new().record(File::create(&path).unwrap()).unwrap();
    for n in 0..3000_u64 {
        map.insert(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n);
    }
    recorder.finish().unwrap();
    let advice = advise(&["--trace", path.to_str().unwrap(), "--budget", "3"]);
    is_whole(&advice);
    let workload = &advice["workload"];
    assert_eq!((&workload["keys"], &workload["mix"]), (&0.into(), &"0/0/0/0/100".into()));
    let structures = advice["structures"].as_array().unwrap();
    let bytes = |name: &str| {
        let is = |row: &&Value| row["candidate"].as_str().unwrap().starts_with(name);
        structures.iter().find(is).expect("a row")["bytes_per_key"].as_f64().unwrap()
    };
    // An external tree has a leaf of 24 bytes and a node of 40 for each key, and a slab or two.
    let external = bytes("ext-lf,") * 3000.0;
    assert!((64.0 * 3000.0..64.0 * 3000.0 + 500_000.0).contains(&external), "{external}");
    assert!(advice["forecast"]["missing"].as_str().unwrap().contains("reads no key"));
}

/// Only a part of the operations fits into the budget, and this is said.
#[test]
fn a_long_trace_is_extrapolated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let (map, recorder) = Map::<u64, u64>::new().record(File::create(&path).unwrap()).unwrap();
    (0..50_000_u64).for_each(|n| drop(map.insert(n, n)));
    map.pop_first();
    recorder.finish().unwrap();
    let advice = advise(&["--trace", path.to_str().unwrap(), "--budget", "3"]);
    assert_eq!(advice["advice"]["how_sure"], "extrapolated");
    let because = advice["advice"]["because"].to_string();
    assert!(because.contains("the first 60 % of the operations"), "{because}");
    assert_eq!(advice["workload"]["needs"], serde_json::json!(["ends"]));
    let structures = advice["structures"].to_string();
    assert!(structures.contains("words") && !structures.contains("skiplist"), "{structures}");
}

#[test]
fn bad_input_has_one_sentence() {
    refuses(&["--budget", "1"], &["too few to load and measure"]);
    refuses(&["--goal", "spead"], &["did you mean `speed`?"]);
    refuses(&["--needs", "rank"], &["did you mean `ranks`?"]);
    refuses(&["--machine", "abacus"], &["--machine"]);
    refuses(&["--format", "csv"], &["choose table or json"]);
    refuses(&["--key-file", "nowhere.txt"], &["nowhere.txt"]);
    let text = stdout(&run(&[&["advise"], &SMALL[..]].concat()));
    assert!(text.contains("Take: ") && text.contains("How sure: "), "{text}");
}
