//! `silvics verify`: its output, the files that it writes and reads, and its refusals.

mod common;

use common::{Files, refused, run, stderr, stdout};
use serde_json::Value;

fn json(args: &[&str]) -> (Option<i32>, Value) {
    let output = run(&[&["verify", "--format", "json"], args].concat());
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {}{}", stdout(&output), stderr(&output)));
    (output.status.code(), value)
}

#[track_caller]
fn refuses(args: &[&str], parts: &[&str]) {
    refused(&run(&[&["verify"], args].concat()), parts);
}

#[test]
#[cfg(feature = "peers")]
fn peers_are_checked_when_they_are_named() {
    let asked = "peer:btreemap-rwlock,peer:arctic-map,peer:artmap";
    let (code, report) = json(&["--index", asked, "--seconds", "0.9"]);
    assert_eq!(code, Some(0), "{report}");
    let rows = report["by_index"].as_array().unwrap();
    assert_eq!(rows.len(), 9, "three types of keys each: {report}");
    for row in rows {
        assert!(row["operations"].as_u64() > Some(0), "{row}");
        assert_eq!((&row["placement"], &row["pages"]), (&"own".into(), &"system".into()));
    }
}

#[test]
#[cfg(feature = "peers")]
fn the_group_of_peers_brings_all_of_them() {
    // Lookups alone: what is known to be wrong with some peers needs writes.
    let (code, report) = json(&["--index", "peers", "--mix", "100/0/0", "--seconds", "0.9"]);
    assert_eq!(code, Some(0), "{report}");
    let rows = report["by_index"].as_array().unwrap();
    let names: std::collections::BTreeSet<_> =
        rows.iter().map(|row| &row["index"]).map(Value::as_str).collect();
    assert_eq!(names.len(), 10, "{names:?}");
}

#[test]
fn all_our_indexes_are_recorded_and_checked() {
    let (code, report) = json(&["--seconds", "1.6"]);
    assert_eq!(code, Some(0), "{report}");
    let rows = report["by_index"].as_array().unwrap();
    let mut names: Vec<String> = rows
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap().to_owned();
            assert!(row["operations"].as_u64() > Some(0), "{row}");
            assert!(row["histories"].as_u64() > Some(0), "{row}");
            assert_eq!((&row["violations"], &row["undecided"]), (&0.into(), &0.into()));
            format!("{} {} {}", text("index"), text("placement"), text("key_type"))
        })
        .collect();
    names.sort();
    // Write buffers: four memtables in four modes.
    let buffers: Vec<String> = names.extract_if(.., |name| name.starts_with("memtable:")).collect();
    assert_eq!(buffers.len(), 16, "{buffers:?}");
    assert!(buffers.iter().all(|name| name.ends_with(" own bytes")), "{buffers:?}");
    assert!(buffers.contains(&"memtable:art:pipelined own bytes".to_owned()), "{buffers:?}");
    let catalogue = run(&["list", "--format", "json"]);
    let catalogue: Value = serde_json::from_slice(&catalogue.stdout).unwrap();
    let strings = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().into()).collect()
    };
    let mut wanted = Vec::new();
    for index in catalogue["indexes"].as_array().unwrap() {
        let name = index["name"].as_str().unwrap();
        let placements = strings(&index["placements"]);
        for place in placements.iter().filter(|_| !name.starts_with("peer:")) {
            wanted
                .extend(strings(&index["keys"]).iter().map(|key| format!("{name} {place} {key}")));
        }
    }
    wanted.sort();
    assert!(wanted.len() > 8 && wanted.contains(&"skiplist shared bytes".to_owned()));
    assert_eq!(names, wanted);
    for total in ["operations", "histories"] {
        let sum: u64 = rows.iter().map(|row| row[total].as_u64().unwrap()).sum();
        assert_eq!(report[total].as_u64(), Some(sum));
    }
    assert_eq!(report["violations"], 0);
}

#[test]
fn what_is_recorded_can_be_checked_again() {
    let files = Files::new();
    for (index, key_type) in [("skiplist", "u64"), ("art", "u128"), ("skiplist", "bytes")] {
        let path = files.write("history.jsonl", "old");
        let args = ["--index", index, "--key-type", key_type, "--placement", "shared"];
        let little = ["--seconds", "0.05", "--mix", "30/30/30/10", "--history", &path];
        let (code, report) = json(&[&args[..], &little].concat());
        assert_eq!(code, Some(0), "{report}");
        let (code, checked) = json(&["--check", &path]);
        assert_eq!((code, checked["verdict"].as_str()), (Some(0), Some("linearizable")));
        assert!(checked["operations"].as_u64() > Some(1000), "{checked}");

        // One answer is changed: no call ever wrote this value.
        let text = std::fs::read_to_string(&path).unwrap();
        let at = text.lines().position(|l| l.contains("\"ok\"") && l.contains("\"get\"")).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut line: Value = serde_json::from_str(&lines[at]).unwrap();
        line["value"] = 3.into();
        lines[at] = line.to_string();
        let bad = files.write("bad.jsonl", lines.join("\n") + "\n");
        let (code, checked) = json(&["--check", &bad]);
        assert_eq!((code, checked["verdict"].as_str()), (Some(1), Some("violation")));
        let calls = checked["calls"].as_array().unwrap();
        assert!(calls.len() <= 10, "not short: {checked}");
        let is_wrong = |call: &Value| call["call"].as_str().unwrap().ends_with("get → 3");
        assert!(calls.iter().any(is_wrong), "{checked}");
    }
}

#[test]
fn calls_on_the_ends_are_recorded_and_counted() {
    let files = Files::new();
    let path = files.write("history.jsonl", "");
    let args = ["--index", "skiplist,art,map", "--placement", "pooled", "--key-type", "u64"];
    let (code, report) = json(&[&args[..], &["--seconds", "0.9", "--history", &path]].concat());
    assert_eq!(code, Some(0), "{report}");
    let count = |of: &Value, kind: &str| of["calls"][kind].as_u64().unwrap();
    let rows = report["by_index"].as_array().unwrap();
    for kind in ["first", "last", "pop_first", "pop_last"] {
        let counts: Vec<u64> = rows.iter().map(|row| count(row, kind)).collect();
        assert_eq!(counts[0], 0, "a skip list has no ends: {report}");
        assert!(counts[1] > 0 && counts[2] > 0, "{kind}: {report}");
        assert_eq!(count(&report, kind), counts.iter().sum::<u64>());
    }
    assert_eq!((count(&rows[2], "scan"), rows[1]["undecided"].as_u64()), (0, Some(0)));
    let kinds: u64 = rows[1]["calls"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(rows[1]["operations"].as_u64(), Some(kinds));

    // The history of the map is judged again, also after one of its pops has another answer.
    let (code, checked) = json(&["--check", &path]);
    assert_eq!((code, checked["verdict"].as_str()), (Some(0), Some("linearizable")));
    let text = std::fs::read_to_string(&path).unwrap();
    let wrong = |line: &&str| line.contains("\"pop_last\"") && line.contains("\"value\":[");
    let line = text.lines().find(wrong).unwrap();
    let mut value: Value = serde_json::from_str(line).unwrap();
    value["value"][1] = 3.into();
    let bad = files.write("bad.jsonl", text.replace(line, &value.to_string()));
    let (code, checked) = json(&["--check", &bad]);
    assert_eq!((code, checked["verdict"].as_str()), (Some(1), Some("violation")));
    assert!(checked["calls"].as_array().unwrap().len() <= 12, "not short: {checked}");
    let table = run(&["verify", "--index", "art", "--seconds", "0.2"]);
    assert!(stdout(&table).contains(" pop_first, "), "{}", stdout(&table));
}

/// The process, verb, key, value, answer and times of a call.
type Call = (u64, &'static str, Value, Value, Value, [u64; 2]);

/// Each kind of call on a map with versions is recorded and checked.
#[test]
fn maps_with_versions_are_checked_with_their_snapshots() {
    let (code, report) = json(&["--index", "versioned", "--seconds", "1.5"]);
    assert_eq!(code, Some(0), "{report}");
    let rows = report["by_index"].as_array().unwrap();
    let keys: Vec<&str> = rows.iter().map(|row| row["key_type"].as_str().unwrap()).collect();
    assert_eq!(keys, ["u64", "u128", "bytes"]);
    for row in rows {
        for kind in ["put", "put_if_latest", "delete", "commit", "get_latest", "snapshot"] {
            assert!(row["calls"][kind].as_u64() > Some(0), "no {kind}: {row}");
        }
        for kind in ["get_at", "get_version", "range_at", "range", "history", "prune", "publish"] {
            assert!(row["calls"][kind].as_u64() > Some(0), "no {kind}: {row}");
        }
        assert!(row["histories"].as_u64() > Some(1), "{row}");
    }
}

/// Writes the lines of calls.
fn lines(calls: &[Call]) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for (id, (process, f, key, value, answer, [start, end])) in calls.iter().enumerate() {
        for (kind, value, time) in [("invoke", value, start), ("ok", answer, end)] {
            let line = serde_json::json!({
                "id": id, "process": process, "type": kind, "f": f, "key": key, "value": value,
                "time": time,
            });
            lines.push((*time, line.to_string() + "\n"));
        }
    }
    lines.sort_by_key(|(time, _)| *time);
    lines.into_iter().map(|(_, line)| line).collect()
}

#[test]
fn thousands_of_calls_on_the_ends_are_decided() {
    let null = Value::Null;
    let mut calls = Vec::new();
    for n in 0..2000 {
        let at = 10 * n;
        let entry = serde_json::json!([n, n]);
        calls.push((0, "try_insert", n.into(), n.into(), null.clone(), [at, at + 4]));
        calls.push((1, "pop_first", null.clone(), null.clone(), entry, [at + 1, at + 5]));
        calls.push((2, "last", null.clone(), null.clone(), null.clone(), [at + 2, at + 6]));
    }
    let files = Files::new();
    let path = files.write("long.jsonl", lines(&calls));
    let (code, checked) = json(&["--check", &path]);
    assert_eq!((code, checked["verdict"].as_str()), (Some(0), Some("linearizable")));
    assert_eq!(checked["operations"], 6000);

    // An entry is popped a second time.
    calls[5000] = calls[4999].clone();
    calls[5000].0 = 2;
    let path = files.write("twice.jsonl", lines(&calls));
    let (code, checked) = json(&["--check", &path]);
    assert_eq!((code, checked["verdict"].as_str()), (Some(1), Some("violation")));
    let shown = checked["calls"].as_array().unwrap();
    assert!(shown.len() <= 4, "not short: {checked}");
    assert!(shown.iter().any(|call| call["call"] == "pop_first → 1666: 1666"), "{checked}");
}

#[test]
fn what_cannot_be_decided_is_neither_good_nor_bad() {
    let null = Value::Null;
    let mut calls = Vec::new();
    for n in 0..24 {
        let key = || Value::from(n);
        calls.push((0, "insert", key(), key(), null.clone(), [2 * n, 2 * n + 1]));
        calls.push((n, "remove", key(), null.clone(), key(), [100, 200]));
    }
    // Both are on all keys: beside one alone, the search would go key by key.
    let last = serde_json::json!([23, 23]);
    calls.push((98, "first", null.clone(), null.clone(), last, [105, 150]));
    calls.push((99, "first", null.clone(), null.clone(), null, [110, 120]));
    let files = Files::new();
    let path = files.write("crowded.jsonl", lines(&calls));
    let (code, checked) = json(&["--check", &path]);
    assert_eq!((code, checked["verdict"].as_str()), (Some(3), Some("undecided")));
    let table = run(&["verify", "--check", &path]);
    for part in ["26 calls were under way", "Up to 16 calls with answers", "record fewer threads"] {
        assert!(stdout(&table).contains(part), "{}", stdout(&table));
    }
}

#[test]
fn values_that_make_no_sense() {
    refuses(&["--index", "skipplist"], &["--index", "did you mean `skiplist`?"]);
    #[cfg(feature = "peers")]
    refuses(
        &["--index", "peer:ferntree", "--key-type", "bytes"],
        &["--key-type", "`peer:ferntree`", "byte keys", "name another key type"],
    );
    refuses(&["--index", "occ-avl-2:unsafe"], &["`occ-avl-2:unsafe` only looks keys up"]);
    refuses(&["--index", "occ-avl", "--key-type", "bytes"], &["`occ-avl`", "byte keys"]);
    refuses(&["--index", "skiplist", "--key-type", "u128"], &["`skiplist`", "u128 keys"]);
    #[cfg(not(feature = "canaries"))]
    refuses(&["--index", "canary:x"], &["`canary:x`", "--features canaries"]);
    #[cfg(feature = "canaries")]
    refuses(&["--index", "canary:x"], &["`canary:x` is not a canary", "missing-help"]);
    refuses(&["--mix", "50/50/1"], &["--mix", "sum to 100"]);
    refuses(&["--threads", "0"], &["--threads", "`0`", "from 1 to 256"]);
    refuses(&["--seconds", "never"], &["--seconds", "`never`"]);
    refuses(&["--placement", "heap"], &["--placement", "`heap`"]);
    refuses(&["--key-type", "string"], &["--key-type", "`string`"]);
    refuses(&["--key-type", "u96"], &["--key-type", "`u96`", "choose u64, u128 or bytes"]);
    refuses(&["--format", "xml"], &["--format", "`xml`"]);
}

#[test]
fn files_that_cannot_be_used() {
    let files = Files::new();
    let missing = files.missing();
    let line = r#"{"id":0,"process":0,"type":"invoke","f":"get","key":1,"time":0}"#;
    refuses(&["--check", &missing], &["--check", "cannot be read"]);
    for (text, parts) in [
        (String::new(), ["line 1", "empty"]),
        (line[..30].to_owned(), ["line 1", "cut short"]),
        (format!("{line}\n"), ["line 1", "no completion"]),
        (format!("{line}\n{line}\n"), ["line 2", "id 0 was invoked before"]),
        (format!("{}\n", line.replace("get", "got")), ["line 1", "unknown operation `got`"]),
        (format!("{}\n{line}\n", line.replace("0}", "9}")), ["line 2", "lines go by time"]),
    ] {
        let path = files.write("bad.jsonl", text);
        refuses(&["--check", &path], &["--check", &path, parts[0], parts[1]]);
    }
    let path = files.write("schedule.json", "{}");
    refuses(&["--replay", &path], &["--replay", "is not a schedule", "missing field"]);
    refuses(&["--replay", &missing], &["--replay", "cannot be read"]);
    refuses(&["--replay", &path, "--seed", "2"], &["--replay and --seed"]);
    refuses(&["--check", &path, "--replay", &path], &["--check and --replay"]);
    refuses(&["--check", &path, "--seconds", "1"], &["--check and --seconds"]);
    refuses(&["--history", &path, "--schedule", &path], &["--history and --schedule"]);
    refuses(&["--history", &format!("{missing}/x")], &["--history", "there is no folder"]);
}

/// Stacks are larger than the address space, or too large for all threads together. No file is
/// written.
#[test]
#[cfg(target_os = "linux")]
fn threads_that_the_system_does_not_start() {
    let files = Files::new();
    let (history, schedule) = (files.write("history", "old"), files.write("schedule", "old"));
    let args = format!(
        "verify --index art --threads 256 --seconds 1 --history {history} --schedule {schedule}"
    );
    for (limit, stack) in [("unlimited", 1_u64 << 60), ("8388608", 1 << 28)] {
        let script = format!("ulimit -v {limit}; exec \"$0\" {args}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_silvics")])
            .env("RUST_MIN_STACK", stack.to_string())
            .output()
            .unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("--threads: the system started "), "{text}");
        assert!(text.contains(" of 256 threads (") && text.contains("name fewer"), "{text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
        for file in [&history, &schedule] {
            assert_eq!(std::fs::read_to_string(file).unwrap(), "old");
        }
    }
}

#[test]
fn a_schedule_is_made_again() {
    let files = Files::new();
    let schedule = serde_json::json!({
        "index": "occ-avl", "placement": "pooled", "pages": "4k", "key_type": "u64",
        "mix": "30/40/30", "threads": [3], "seed": 5, "history": 7,
    });
    let path = files.write("schedule.json", schedule.to_string());
    let (code, report) = json(&["--replay", &path, "--seconds", "0.05"]);
    assert_eq!(code, Some(0), "{report}");
    let rows = report["by_index"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&report["seed"], &report["mix"]), (&5.into(), &"30/40/30".into()));
    let path = files.write("odd.json", schedule.to_string().replace("occ-avl", "oak"));
    refuses(&["--replay", &path], &["--replay", "cannot be replayed", "`oak` is not an index"]);
}
