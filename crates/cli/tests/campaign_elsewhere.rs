//! Parts of campaigns that are collected on another machine, or were measured with other inputs.

mod common;

use common::campaign::{Verb, change, collected, cut, measured, parts};
use common::{Files, refused, run, stderr, stdout};
use serde_json::Value;
use std::fs;

/// A text with a key on each line.
fn keys(first: u32) -> String {
    (first..first + 100).map(|key| format!("{key}\n")).collect::<Vec<_>>().concat()
}

fn with_keys(path: &str) -> Verb {
    let flags = "bench --index skiplist --threads 1,2 --mix 100/0/0 --seconds 0.01 --rounds 1";
    Verb::new(&format!("{flags} --key-file {path}"), 2)
}

/// The path of the file is the same, and its keys are not.
#[test]
fn parts_of_other_keys_are_not_mixed() {
    let files = Files::new();
    let path = files.write("keys", keys(1000));
    let verb = with_keys(&path);
    let out = measured(&verb, &files, "part");
    cut(&out, 1, 0);
    let first = files.path("first");
    assert_eq!(verb.part("1/2", &first).status.code(), Some(0));
    files.write("keys", keys(2000));
    let content = format!("another content of `{path}` (");
    refused(&verb.part("1/1", &out), &["--out", &content, "name another file"]);
    let second = files.path("second");
    assert_eq!(verb.part("2/2", &second).status.code(), Some(0));
    let other = run(&["collect", &first, &second]);
    refused(&other, &["is of another campaign (content of `"]);
    files.write("keys", keys(1000));
    assert_eq!(verb.part("1/1", &out).status.code(), Some(0));
    // The part would take the place of the keys.
    refused(&verb.part("1/1", &path), &["--key-file and --out exclude each other"]);
}

/// The properties are those of the run, and `collect` does not need their file.
#[test]
fn properties_are_those_of_the_run() {
    let files = Files::new();
    let workload = |records: &str| {
        format!("recordcount={records}\noperationcount=500\nreadproportion=1\nupdateproportion=0\n")
    };
    let path = files.write("workload", workload("1000"));
    let verb = Verb::new(
        &format!(
            "store ycsb run -P {path} -p operationcount=1k --index map --rounds 1 --threads 1,2"
        ),
        2,
    );
    let out = measured(&verb, &files, "part");
    fs::remove_file(&path).unwrap();
    let config = &collected(&[&out])[0]["config"];
    assert_eq!(
        (config["records"].as_u64(), config["operations"].as_u64()),
        (Some(1000), Some(1000))
    );
    files.write("workload", workload("2000"));
    assert_eq!(collected(&[&out])[0]["config"]["records"], 1000);
    cut(&out, 1, 0);
    refused(&verb.part("1/1", &out), &["--out", "was begun with another"]);
}

/// A machine that only collects has no such folder, less memory, and another processor.
#[test]
fn collecting_needs_nothing_of_the_machine_that_measured() {
    let files = Files::new();
    let folder = files.path("logs");
    fs::create_dir(&folder).unwrap();
    let memtable = "memtable --num 1k --rounds 1 --threads 1 --workload fillseq --memtable art";
    let memtable = Verb::new(&format!("{memtable} --wal {folder}"), 1);
    let out = measured(&memtable, &files, "memtable");
    fs::remove_dir(&folder).unwrap();
    assert_eq!(collected(&[&out])[0]["config"]["log"], "written");

    let tpcc = "store tpcc run --reduced --warehouses 1 --transactions 20 --index map --rounds 1 \
                --threads 1";
    let out = measured(&Verb::new(tpcc, 1), &files, "tpcc");
    change(&out, "\"reduced\":true", "\"reduced\":false");
    change(&out, "\"warehouses\":\"1\"", "\"warehouses\":\"10000\"");
    assert_eq!(collected(&[&out])[0]["config"]["warehouses"], 10_000);

    let trie = "bench --index patricia-16 --key-type u128 --keys 1k --threads 1 --mix 100/0/0 --seconds 0.01 \
                --rounds 1 --sync optimistic";
    let out = measured(&Verb::new(trie, 1), &files, "trie");
    change(&out, "\"sync\":\"optimistic\"", "\"sync\":\"rtm\"");
    let has =
        if fs::read_to_string(&out).unwrap().contains("\"rtm\":true") { "true" } else { "false" };
    change(&out, &format!("\"rtm\":{has}"), "\"rtm\":true");
    assert_eq!(collected(&[&out])[0]["config"]["indexes"][0], "patricia-16:rtm");
}

/// Rows with missing units do not look complete, and the best number of threads is unknown.
#[test]
fn what_is_missing_is_in_each_format() {
    let files = Files::new();
    let memtable = "memtable --num 1k --rounds 1 --threads 1,2 --workload fillseq --memtable art";
    let ycsb = "store ycsb run -p recordcount=1000 -p operationcount=1000 -p readproportion=1 \
                -p updateproportion=0 --index map --rounds 1 --threads 1,2,3";
    let bench = "bench --index skiplist --keys 1k --threads 1,2 --mix 100/0/0 --seconds 0.01 \
                 --rounds 1";
    for (name, flags, units) in [("memtable", memtable, 2), ("ycsb", ycsb, 3), ("bench", bench, 2)]
    {
        let out = measured(&Verb::new(flags, units), &files, name);
        let whole = &collected(&[&out])[0];
        assert_eq!(whole.get("remarks"), None);
        assert_eq!(whole["best"].as_array().map(Vec::len), (name == "ycsb").then_some(1));
        cut(&out, units - 1, 0);
        let in_format = |format| {
            let output = run(&["collect", &out, "--format", format]);
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            stdout(&output)
        };
        let part: Value = serde_json::from_str(&in_format("json")).unwrap();
        let remark = part["remarks"][0].as_str().expect("a remark");
        assert!(remark.starts_with("Not measured yet: 1 unit: "), "{remark}");
        assert_eq!(part["best"].as_array().map(Vec::len), (name == "ycsb").then_some(0));
        let csv = in_format("csv");
        assert!(csv.lines().next().is_some_and(|header| header.ends_with(",remarks")), "{csv}");
        assert_eq!(csv.matches("Not measured yet: 1 unit: ").count(), units - 1, "{csv}");
        let table = in_format("table");
        assert!(table.contains(remark) && !table.contains("best number"), "{table}");
    }
    let experiments = "reproduce bst/1.3 bst/1.4 --quick --keys 2000 --level facts";
    let out = measured(&Verb::new(experiments, 2), &files, "reproduce");
    cut(&out, 1, 0);
    let table = stdout(&run(&["collect", &out]));
    assert!(table.ends_with("\nNot measured yet: 1 unit: bst/1.4.\n"), "{table}");
}

/// The date and the command of a page are those of the measurement. The page names all facts in
/// which the machines differ.
#[test]
fn pages_have_the_origin_of_their_figures() {
    let files = Files::new();
    let experiments = Verb::new("reproduce bst/1.3 bst/1.4 --quick --keys 2000 --level facts", 2);
    let of_experiments = [("1/2", "3"), ("2/2", "4")].map(|(shard, name)| {
        let path = files.path(name);
        assert_eq!(experiments.part(shard, &path).status.code(), Some(0));
        path
    });
    let page = files.path("page.html");
    for [first, second] in [parts(&files), of_experiments] {
        for path in [&first, &second] {
            let text = fs::read_to_string(path).unwrap();
            let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            let date = head["run"]["date"].as_str().expect("a date");
            change(path, date, "2001-02-03 04:05 UTC");
        }
        change(&second, "\"cpu\":", "\"cpu\":\"Z80\",\"was\":");
        change(&second, "\"kernel\":", "\"kernel\":\"0.1\",\"old\":");
        let output = run(&["collect", &first, &second, "--html", &page]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let html = fs::read_to_string(&page).unwrap();
        let fact = |name: &str| {
            let after = html.split(&format!("<dt>{name}</dt><dd>")).nth(1).expect("a fact");
            after.split("</dd>").next().unwrap_or_default().to_owned()
        };
        assert_eq!(fact("Date"), "2001-02-03 04:05 UTC");
        assert!(fact("Command").contains("--shard 1/2 --out"), "{}", fact("Command"));
        assert!(fact("Collected").contains(" by silvics collect "), "{}", fact("Collected"));
        assert!(html.contains("Part 2/2 ran on another machine than part 1/2 (cpu: Z80, but "));
        assert!(html.contains("; kernel: 0.1, but "), "{html}");
    }
}

/// The tables and CSV of a verb in one go have columns that JSON does not check: those for the
/// memory of tables and of indexes.
#[test]
fn memory_of_tables_and_indexes_stays_apart() {
    let files = Files::new();
    let ycsb = "store ycsb run -p recordcount=1000 -p operationcount=1000 -p readproportion=1 \
                -p updateproportion=0 --index map --rounds 1 --threads 1";
    let tpcc = "store tpcc run --reduced --warehouses 1 --transactions 20 --index map --rounds 1 \
                --threads 1";
    for (name, flags) in [("ycsb", ycsb), ("tpcc", tpcc)] {
        let verb = Verb::new(flags, 1);
        let out = measured(&verb, &files, name);
        let csv = |args: &[&str]| stdout(&run(&[args, &["--format", "csv"]].concat()));
        let (whole, result) = (csv(&verb.args(&[])), csv(&["collect", &out]));
        for column in ["table_bytes", "index_bytes"] {
            let bytes = |text: &str| cell(text, column).parse::<f64>().expect("bytes");
            // The same work allocates about the same memory.
            let ratio = bytes(&result) / bytes(&whole);
            assert!((0.9..1.1).contains(&ratio), "{column}: {whole}\n{result}");
        }
        let table = stdout(&run(&["collect", &out]));
        let row = table.lines().find(|line| line.contains("map")).expect("a row");
        assert!(!row.trim_end().trim_end_matches('│').trim_end().ends_with('–'), "{table}");
    }
}

/// A cell of the first row of CSV, whose cells have no commas.
fn cell<'a>(text: &'a str, column: &str) -> &'a str {
    let mut lines = text.lines();
    let header = lines.next().expect("a header");
    let at = header.split(',').position(|name| name == column).expect("a column");
    lines.next().and_then(|row| row.split(',').nth(at)).expect("a row")
}
