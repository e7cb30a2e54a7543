//! `--shard`, `--out` and `silvics collect`: parts of a measurement, killed and started again.

mod common;

use common::campaign::{Verb, collected, cut, parts, small, units};
use common::{Files, refused, run, stderr, stdout};
use serde_json::Value;
use std::fs;

/// Runs a part to its end, takes all from it that SIGKILL in its second unit would not have left,
/// and starts it again. Returns what the second process said.
fn killed_and_resumed(verb: &Verb, shard: &str, out: &str) -> String {
    assert_eq!(verb.part(shard, out).status.code(), Some(0));
    cut(out, 1, 10);
    let before = fs::read_to_string(out).expect("text");
    let output = verb.part(shard, out);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "", "a part has no result");
    let whole = before.rfind('\n').expect("a line");
    assert!(fs::read_to_string(out).expect("text").starts_with(&before[..=whole]));
    stderr(&output)
}

/// A value without its figures, which chance may leave out: names, texts and the form remain.
fn form(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), form(value))).collect()
        }
        Value::Array(items) => items.iter().map(form).collect(),
        Value::Number(_) | Value::Null => "figure".into(),
        other => other.clone(),
    }
}

/// Checks that two values are the same, and names the first place where they are not.
fn same(a: &Value, b: &Value, place: &str) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{place}: {:?} {:?}", a.keys(), b.keys());
            a.iter().for_each(|(name, value)| same(value, &b[name], &format!("{place}.{name}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{place}");
            let pairs = a.iter().zip(b).enumerate();
            pairs.for_each(|(at, (a, b))| same(a, b, &format!("{place}[{at}]")));
        }
        _ => assert_eq!(a, b, "{place}"),
    }
}

/// Two processes measure the parts of a verb at the same time, and one part is cut and started
/// again. The collected result has the form of a run in one go, and the figures of the parts.
fn two_workers(verb: &Verb, form_of: fn(&Value) -> Value) -> Vec<Value> {
    let files = Files::new();
    let [first, second] = ["1", "2"].map(|name| files.path(name));
    let other = verb.start("2/2", &second);
    let half = verb.units / 2;
    let said = killed_and_resumed(verb, "1/2", &first);
    assert!(said.contains(&format!("part 1/2 has {half} of {} units", verb.units)), "{said}");
    let again = said.matches("note: measured: ").count();
    assert_eq!(again, half - 1, "it leaves out what it has: {said}");
    assert_eq!(other.wait_with_output().expect("it ends").status.code(), Some(0));
    assert_eq!((units(&first), units(&second)), (half, half));

    let result = collected(&[&second, &first]);
    assert_eq!(rows_of_parts(&[&first, &second]), rows_of_result(&result));
    let whole = run(&verb.args(&["--format", "json"]));
    let whole: Vec<Value> = serde_json::Deserializer::from_slice(&whole.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON");
    let forms = |of: &[Value]| of.iter().map(form_of).collect::<Vec<_>>();
    for (part, whole) in forms(&result).iter().zip(&forms(&whole)) {
        same(part, whole, "");
    }
    assert_eq!(result.len(), whole.len());

    let output = run(&["collect", &first]);
    assert_eq!(output.status.code(), Some(1));
    let missing = stderr(&output).matches("note: missing: ").count();
    assert_eq!(missing, half, "{}", stderr(&output));
    assert!(stderr(&output).contains("(part 2/2, of which there is no file)"));
    assert!(!stdout(&output).is_empty(), "it prints what it has");
    result
}

/// The rows of all units of parts, in the order of the units.
fn rows_of_parts(files: &[&str]) -> Vec<Value> {
    let mut units: Vec<Value> = Vec::new();
    for path in files {
        let text = fs::read_to_string(path).expect("text");
        units.extend(text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    units.sort_by_key(|unit| unit["unit"].as_u64());
    let rows = |mut unit: Value| match unit["outcome"].take() {
        Value::Array(rows) => rows,
        outcome => ["results", "rows", "evidence"]
            .iter()
            .find_map(|name| outcome[*name].as_array().cloned())
            .expect("rows"),
    };
    without_cells(units.into_iter().flat_map(rows).collect())
}

fn rows_of_result(reports: &[Value]) -> Vec<Value> {
    let rows = |report: &Value| {
        let rows = [&report["results"], &report["evidence"]];
        rows.into_iter().find_map(Value::as_array).cloned().expect("rows")
    };
    without_cells(reports.iter().flat_map(rows).collect())
}

/// The number of a row's cell is another one in a unit.
fn without_cells(mut rows: Vec<Value>) -> Vec<Value> {
    for row in &mut rows {
        row.as_object_mut().expect("a row").remove("cell");
    }
    rows
}

#[test]
fn bench_in_two_parts() {
    let result = two_workers(&Verb::bench(), |report| {
        let mut report = form(report);
        // Processor time may be unknown in very short runs.
        for row in report["results"].as_array_mut().unwrap() {
            for field in ["cpu_mops", "cpu_ratio"] {
                row.as_object_mut().unwrap().remove(field);
            }
        }
        report
    });
    let rows = result[0]["results"].as_array().unwrap();
    let cells: Vec<u64> = rows.iter().map(|row| row["cell"].as_u64().unwrap()).collect();
    assert_eq!(cells, [[0; 8], [1; 8]].concat());
}

#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn memtable_in_two_parts() {
    let result = two_workers(&Verb::memtable(), form);
    assert_eq!(result[0]["results"].as_array().unwrap().len(), 8 * 2);
}

#[test]
fn ycsb_in_two_parts() {
    let result = two_workers(&Verb::ycsb(), |report| {
        let mut report = form(report);
        // Aborts are chance.
        for row in report["results"].as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("aborts");
        }
        without_best(report)
    });
    let threads: Vec<u64> = threads(&result[0]);
    assert_eq!(threads, [1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(result[0]["best"].as_array().unwrap().len(), 2);
}

#[test]
fn tpcc_in_two_parts() {
    let result = two_workers(&Verb::tpcc(), |report| {
        let mut report = form(report);
        for row in report["results"].as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("aborts");
        }
        without_best(report)
    });
    assert_eq!(threads(&result[0]), [1, 1, 2, 2, 3, 3, 4, 4]);
    let committed = result[0]["config"]["serializable"].as_u64().unwrap();
    // Some new orders are rolled back.
    let all = 2 * 2 * 200 * (1 + 2 + 3 + 4);
    assert!((all * 9 / 10..=all).contains(&committed), "{committed}");
}

#[test]
fn reproduce_in_two_parts() {
    let result = two_workers(&Verb::reproduce(), form);
    let names: Vec<&str> =
        result.iter().map(|report| report["experiment"].as_str().unwrap()).collect();
    assert_eq!(names, ["bst/1.3", "bst/1.4", "bst/1.5", "art/4.1"]);
}

fn threads(report: &Value) -> Vec<u64> {
    let rows = report["results"].as_array().unwrap();
    rows.iter().map(|row| row["threads"].as_u64().unwrap()).collect()
}

/// The best number of threads is chance. The contenders are not.
fn without_best(mut report: Value) -> Value {
    for best in report["best"].as_array_mut().unwrap() {
        *best = best["index"].clone();
    }
    report
}

#[test]
fn wrong_parts_are_refused() {
    let files = Files::new();
    let out = files.path("out");
    for shard in ["3/2", "0/2", "0/0", "1", "a/b", "1/2/3", "1.5/2", ""] {
        refused(&small().part(shard, &out), &["--shard", &format!("`{shard}`"), "1/4"]);
    }
    let small = small();
    refused(&run(&small.args(&["--shard", "1/2"])), &["--shard", "add --out FILE"]);
    refused(&run(&small.args(&["--out", &out])), &["--out", "add --shard I/N"]);
    for flags in [["--html", "x"], ["--format", "json"], ["--save", "x"], ["--baseline", "x"]] {
        let output = run(&small.args(&[&["--shard", "1/2", "--out", &out][..], &flags].concat()));
        refused(&output, &[flags[0], "a part has no such output"]);
    }
    let output = run(&["reproduce", "--shard", "1/2", "--out", &out]);
    refused(&output, &["--shard", "name experiments, or add --all"]);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn files_that_cannot_be_written_are_refused() {
    let files = Files::new();
    let folder = files.path("");
    refused(&small().part("1/2", &folder), &["--out", "is no plain file"]);
    let nowhere = format!("{}/x", files.missing());
    refused(&small().part("1/2", &nowhere), &["--out", "cannot be written"]);
    let notes = files.write("notes", "my notes");
    refused(&small().part("1/2", &notes), &["--out", "is no part of a campaign"]);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "my notes");
}

#[test]
fn a_part_goes_on_only_as_it_began() {
    let files = Files::new();
    let [first, _] = parts(&files);
    let whole = fs::read_to_string(&first).unwrap();
    refused(&small().part("2/2", &first), &["--out", "is that of part 1/2, and this is part 2/2"]);
    let seed = run(&small().args(&["--seed", "2", "--shard", "1/2", "--out", &first]));
    refused(&seed, &["was begun with another seed (1, now 2)", "name another file"]);
    let count = small().part("1/3", &first);
    refused(&count, &["was begun with another number of parts (2, now 3)"]);
    for (from, to, parts) in [
        ("\"cpu\":", "\"cpu\":\"Z80\",\"was\":", "another cpu (Z80, now "),
        ("\"silvics\":\"0", "\"silvics\":\"9", "another version (9."),
        ("\"commit\":", "\"commit\":\"abc\",\"was\":", "another commit (abc, now "),
    ] {
        assert!(whole.contains(from), "{whole}");
        fs::write(&first, whole.replacen(from, to, 1)).unwrap();
        refused(&small().part("1/2", &first), &["--out", parts]);
    }
    fs::write(&first, whole.replacen("{\"unit\":0", "{\"un", 1)).unwrap();
    refused(&small().part("1/2", &first), &["--out", "is damaged in line 2", "remove the line"]);
}

/// A line without an end is what a killed process leaves.
#[test]
fn a_cut_line_is_measured_again() {
    let files = Files::new();
    let [first, second] = parts(&files);
    let whole = fs::read_to_string(&first).unwrap();
    fs::write(&first, &whole[..whole.len() - 5]).unwrap();
    let output = run(&["collect", &first, &second]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("the last line is cut"), "{said}");
    let missing = "missing: 1k keys, uniform, 1 thread, mix 100/0/0 (part 1/2, which `";
    assert!(said.contains(missing), "{said}");
    assert_eq!(small().part("1/2", &first).status.code(), Some(0));
    assert_eq!(collected(&[&first, &second])[0]["results"].as_array().unwrap().len(), 2);
}

#[test]
fn only_parts_of_one_campaign_are_collected() {
    let files = Files::new();
    let [first, second] = parts(&files);
    let collect = |args: &[&str]| run(&[&["collect"], args].concat());
    refused(&collect(&[]), &["FILE", "name the files of all parts"]);
    refused(&collect(&[&first, &files.missing()]), &["FILE", "cannot be read"]);
    refused(&collect(&[&first, &first]), &["mix 100/0/0`, as `", "leave one of them out"]);
    refused(&collect(&[&files.write("empty", "")]), &["is no part of a campaign"]);
    refused(&collect(&[&files.write("json", "{}\n")]), &["is no part of a campaign"]);
    refused(&collect(&[&first, &second, "--format", "xml"]), &["--format", "`xml`"]);
    refused(&collect(&[&first, "--html", &files.path("")]), &["--html", "is a folder"]);
    let page = collect(&[&first, &second, "--html", &second]);
    refused(&page, &["FILE and --html exclude each other", "both name one file"]);
    let text = fs::read_to_string(&second).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        collect(&[&first, &files.write("changed", text.replacen(from, to, 1))])
    };
    let other = changed("\"seed\":\"1\"", "\"seed\":\"7\"");
    refused(&other, &["is of another campaign", "(seed: 7, but 1 in `"]);
    let other = changed("\"commit\":", "\"commit\":\"abc\",\"was\":");
    refused(&other, &["is of another campaign", "(commit: abc, but "]);
    refused(&changed("\"2/2\"", "\"2/3\""), &["(number of parts: 3, but 2 in `"]);
    refused(
        &changed("{\"unit\":1", "{\"unit\":0"),
        &["is damaged in line 2", "no unit of part 2/2"],
    );
    refused(&changed("\"mops\":", "\"mips\":"), &["cannot be read by this version"]);
    let memtable = files.path("memtable");
    let flags = "memtable --num 1k --rounds 1 --threads 1 --workload fillseq --memtable art";
    assert_eq!(Verb::new(flags, 1).part("1/1", &memtable).status.code(), Some(0));
    refused(&collect(&[&first, &memtable]), &["(verb: memtable, but bench in `"]);
    refused(&collect(&[&memtable, "--html", "x"]), &["--html", "has no page"]);

    let output = changed("\"cpu\":", "\"cpu\":\"Z80\",\"was\":");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    let differs = "Part 2/2 ran on another machine than part 1/2 (cpu: Z80, but ";
    assert!(said.contains(differs), "{said}");
    assert!(stdout(&output).contains(differs), "the table says it, too");
}

/// The page of all parts, and of some: what is missing is on the page, too.
#[test]
fn pages_say_what_is_missing() {
    let files = Files::new();
    let [first, second] = parts(&files);
    let page = files.path("page.html");
    let output = run(&["collect", &first, &second, "--html", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Throughput by threads") && !html.contains("Not measured yet"));
    let output = run(&["collect", &first, "--html", &page, "--format", "csv"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output).lines().count(), 2, "a header and a row");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Not measured yet: 1 unit: 1k keys, uniform, 2 threads"), "{html}");

    let experiments = Verb::new("reproduce bst/1.3 bst/1.4 --quick --keys 2000 --level facts", 2);
    let part = files.path("experiments");
    assert_eq!(experiments.part("1/2", &part).status.code(), Some(0));
    let output = run(&["collect", &part, "--html", &page]);
    assert_eq!(output.status.code(), Some(1));
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("Its part has not run it yet").count(), 1);
}

/// Each figure is the one that was written, to the last bit.
#[test]
fn figures_are_those_of_the_parts() {
    let files = Files::new();
    let all = parts(&files);
    let result = collected(&[&all[0], &all[1]]);
    for (at, path) in all.iter().enumerate() {
        let text = fs::read_to_string(path).unwrap();
        let unit: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(unit["outcome"]["results"][0], result[0]["results"][at]);
    }
    let unit = fs::read_to_string(&all[0]).unwrap();
    let unit: Value = serde_json::from_str(unit.lines().nth(1).unwrap()).unwrap();
    assert_eq!(unit["outcome"]["loads"], result[0]["loads"], "those of one unit of the cell");
}

/// With more parts than units, the last parts have none.
#[test]
fn a_part_may_have_no_unit() {
    let files = Files::new();
    let out = files.path("third");
    let output = small().part("3/3", &out);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("part 3/3 has 0 of 2 units"), "{}", stderr(&output));
    let output = run(&["collect", &out]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""));
    assert_eq!(stderr(&output).matches("note: missing: ").count(), 2);
}
