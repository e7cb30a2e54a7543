//! `silvics bench --save` and `--baseline`.

mod common;

use common::{bench, command, field, number, refused, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

const ARGS: [&str; 10] =
    ["bench", "--seconds", "0.01", "--rounds", "5", "--keys", "1k", "--threads", "1", "--index"];

/// Runs the command in a folder.
fn run_in(folder: &Path, args: &[&str]) -> std::process::Output {
    command(&[&ARGS[..], args].concat()).current_dir(folder).output().expect("the command runs")
}

fn json(output: &std::process::Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_kept_run_is_compared_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("target")).unwrap();
    let saved = run_in(folder.path(), &["art,skiplist", "--save", "first"]);
    assert_eq!(saved.status.code(), Some(0), "{}", stderr(&saved));
    assert!(stderr(&saved).contains("note: --save is in `target/silvics/first.json`"));
    let kept = fs::read(folder.path().join("target/silvics/first.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!((&kept["format"], &kept["name"]), (&1.into(), &"first".into()));
    assert_eq!(kept["report"]["results"].as_array().unwrap().len(), 4);

    let args = ["skiplist,occ-avl", "--baseline", "first", "--format", "json"];
    let comparison = json(&run_in(folder.path(), &args))["comparison"].take();
    assert_eq!(comparison["baseline"], "first");
    // The system may have other huge pages to give than a moment ago.
    let differences = comparison["differences"].as_array().unwrap().iter();
    let what = differences.map(|of| of["what"].as_str().unwrap());
    let what: Vec<_> = what.filter(|what| !what.starts_with("huge pages of")).collect();
    assert_eq!(what, ["indexes"]);
    let rows = field(&comparison, "rows").as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["index"], "skiplist");
        let ratio = field(row, "ratio");
        let (low, median, high) =
            (number(ratio, "low"), number(ratio, "median"), number(ratio, "high"));
        assert!(0.0 < low && low <= median && median <= high, "{row}");
        assert!((number(ratio, "coverage") - 250.0 / 252.0).abs() < 1e-9);
        let verdict = field(row, "verdict").as_str().unwrap();
        assert!(["faster", "slower", "no-change-seen"].contains(&verdict), "{verdict}");
    }
    let names = |part: &str| {
        let ids = field(&comparison, part).as_array().unwrap();
        ids.iter().map(|id| id["index"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("only_here"), ["occ-avl"; 2]);
    assert_eq!(names("only_in_baseline"), ["art"; 2]);

    let args = ["skiplist,occ-avl", "--baseline", "first", "--noise", "7"];
    let text = stdout(&run_in(folder.path(), &args));
    for part in [
        "compared with the kept run `first`",
        "with 99.2 % (",
        "beyond a change of 7 %",
        "| verdict ",
        "only in this run: occ-avl (pooled, thp): 1k u64 keys, uniform, 1 thread, mix 90/5/5",
        "only in the kept run: art (pooled, thp)",
    ] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
}

/// The samples of a kept run are changed: the verdict follows them.
#[test]
fn verdicts_follow_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let at = runs.to_str().unwrap();
    let args = ["skiplist", "--mix", "100/0/0", "--kept-in", at];
    assert!(run_in(folder.path(), &[&args[..], &["--save", "a"]].concat()).status.success());
    let whole = fs::read(runs.join("a.json")).unwrap();
    for (factor, verdict) in [(0.01, "faster"), (100.0, "slower")] {
        let mut kept: Value = serde_json::from_slice(&whole).unwrap();
        for sample in kept["report"]["results"][0]["samples"].as_array_mut().unwrap() {
            *sample = (sample.as_f64().unwrap() * factor).into();
        }
        fs::write(runs.join("b.json"), kept.to_string()).unwrap();
        let more = ["--baseline", "b", "--format", "json"];
        let result = json(&run_in(folder.path(), &[&args[..], &more].concat()));
        assert_eq!(result["comparison"]["rows"][0]["verdict"], verdict);
    }
    // Two rounds beside five decide nothing.
    let more = ["--baseline", "b", "--noise", "100", "--rounds", "2", "--format", "json"];
    let result = json(&run_in(folder.path(), &[&args[..], &more].concat()));
    assert_eq!(result["comparison"]["rows"][0]["verdict"], "too-few-rounds");
}

#[test]
fn another_machine_or_configuration_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let at = runs.to_str().unwrap();
    let args = ["skiplist", "--mix", "100/0/0", "--kept-in", at];
    assert!(run_in(folder.path(), &[&args[..], &["--save", "a"]].concat()).status.success());
    let mut kept: Value = serde_json::from_slice(&fs::read(runs.join("a.json")).unwrap()).unwrap();
    for (field, value) in [
        ("cpu", "Abacus 9000".into()),
        ("caches", serde_json::json!([{"level": 1, "type": "Data", "bytes": 8192}])),
        ("hugetlb_pages", 12345.into()),
        ("clock", "sundial".into()),
        ("build", "clay".into()),
    ] {
        kept["report"]["machine"][field] = value;
    }
    kept["report"]["results"][0]["pages_given"] = "clay".into();
    fs::write(runs.join("a.json"), kept.to_string()).unwrap();
    let more = ["--baseline", "a", "--seed", "2", "--counting", "single", "--batch", "1,2"];
    let more =
        [&more[..], &["--scan-length", "7", "--scan-by", "next", "--mix", "100/0/0,0/50/50"]];
    let more = [&more.concat()[..], &["--slot-align", "64", "--colouring"]].concat();
    let output = run_in(folder.path(), &[&args[..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let notes: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("--baseline a was measured otherwise"), "{notes:?}");
    for part in [
        "cpu: Abacus 9000, now ",
        "caches: L1 data 8 KiB, now ",
        "hugetlb_pages: 12345, now ",
        "clock: sundial, now ",
        "build: clay, now ",
        "tuning: nothing, now --slot-align 64 --colouring",
        "counting: striped, now single",
        "seed: 1, now 2",
        "mix: 100/0/0, now 100/0/0, 0/50/50",
        "batch: 1, now 1, 2",
        "scan_by: range, now next",
        "scan_length: 100, now 7",
    ] {
        assert!(notes[0].contains(part), "`{part}` is not in {notes:?}");
        assert!(stdout(&output).contains(part), "`{part}` is not in {}", stdout(&output));
    }
    // This is known after the run.
    let pages = "pages of skiplist (pooled, thp, 1k keys): clay, now ";
    assert!(stdout(&output).contains(pages), "{}", stdout(&output));
}

/// A file is what it holds: not its name.
#[test]
fn a_file_with_other_keys_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = |file: &str, more: &[&str]| {
        let args = ["bench", "--seconds", "0.01", "--rounds", "1", "--threads", "1"];
        let args = [&args[..], &["--index", "art", "--kept-in", "runs", "--key-file", file], more];
        let output = command(&args.concat()).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.txt", "elm\noak\nyew\nash\n");
    write("b.txt", "elm\noak\nyew\nash\n");
    run("a.txt", &["--save", "a"]);
    let same = run("b.txt", &["--baseline", "a"]);
    assert!(!same.contains("key_file"), "{same}");
    write("a.txt", "elm\noak\nyew\nfir\n");
    let other = run("a.txt", &["--baseline", "a"]);
    let parts: Vec<&str> = other.split("`a.txt` with the digest ").collect();
    assert_eq!(parts.len(), 3, "{other}");
    assert!(parts[0].ends_with("key_file: ") && parts[1].ends_with(", now "), "{other}");
    assert_ne!(parts[1][..16], parts[2][..16], "{other}");
}

/// All of these end before anything is measured.
#[test]
fn bad_names_files_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    // These rounds would take hours.
    let args = ["--index", "skiplist", "--keys", "1k", "--rounds", "10000", "--seconds", "60"];
    let refuses = |more: &[&str], parts: &[&str]| {
        refused(&bench(&[&args[..], &["--kept-in", at], more].concat()), parts);
    };
    fs::write(folder.path().join("cut.json"), "{\"format\": 1, \"rep").unwrap();
    fs::write(folder.path().join("newer.json"), "{\"format\": 2}").unwrap();
    refuses(&["--baseline", "none"], &["--baseline", "none.json", "--save none", "cut, newer"]);
    refuses(&["--baseline", "cut"], &["cut.json", "is no whole kept run", "--save"]);
    refuses(&["--baseline", "newer"], &["newer.json", "format 2", "up to 1", "--save"]);
    refuses(&["--baseline", "../x"], &["--baseline", "`../x`", "letters"]);
    refuses(&["--save", "a/b"], &["--save", "`a/b`"]);
    refuses(&["--save", "a", "--noise", "1"], &["--noise", "--baseline"]);
    refuses(&[], &["--kept-in", "--save and --baseline"]);
    refuses(&["--baseline", "a", "--noise", "x"], &["--noise", "`x`", "percent"]);
    refuses(&["--save", "CON"], &["--save", "`CON`", "device on Windows"]);
    let new = folder.path().join("new").to_string_lossy().into_owned();
    let output = bench(&[&args[..], &["--save", "a", "--kept-in", &new, "--seed", "x"]].concat());
    refused(&output, &["--seed"]);
    assert!(!Path::new(&new).exists(), "a run that is refused leaves no folder");
    let missing = folder.path().join("no/such").to_string_lossy().into_owned();
    let output = bench(&[&args[..], &["--save", "a", "--kept-in", &missing]].concat());
    refused(&output, &["--kept-in", "no/such", "cannot be made"]);
    let file = folder.path().join("cut.json").to_string_lossy().into_owned();
    let output = bench(&[&args[..], &["--save", "a", "--kept-in", &file]].concat());
    refused(&output, &["cut.json"]);

    // No two of the files are one, unless the run takes the place of its baseline.
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (new, cut, keys) = (path("new.json"), path("cut.json"), path("keys.txt"));
    fs::write(&keys, "a\nb\n").unwrap();
    refuses(&["--save", "new", "--html", &new], &["--html and --save", "both name one file"]);
    let traced = ["--index", "ca-tree", "--trace-adaptation", &new];
    refuses(&[&traced[..], &["--save", "new"]].concat(), &["--trace-adaptation and --save"]);
    let file = ["bench", "--index", "art", "--rounds", "10000", "--key-file", &keys];
    refused(&common::run(&[&file[..], &["--html", &keys]].concat()), &["--key-file and --html"]);
    let inspected = ["inspect", "--index", "art", "--key-file", &keys, "--svg", &keys];
    refused(&common::run(&inspected), &["--key-file and --svg"]);
    assert_eq!(fs::read_to_string(&keys).unwrap(), "a\nb\n");

    let kept = ["--index", "skiplist", "--keys", "1k", "--mix", "100/0/0", "--kept-in", at];
    assert!(bench(&[&kept[..], &["--save", "other"]].concat()).status.success());
    refuses(
        &["--baseline", "other", "--mix", "90/5/5"],
        &["other.json", "no row in common", "mix 100/0/0"],
    );
    let page = path("other.json");
    let html = ["--baseline", "other", "--mix", "100/0/0", "--html", &page];
    refuses(&html, &["--html and --baseline", "both name one file"]);
    assert_eq!(fs::read_to_string(&cut).unwrap(), "{\"format\": 1, \"rep", "it stays as it was");
}

/// The number of keys of a file is known when it is read, before anything is measured.
#[test]
fn a_file_of_another_number_of_keys_has_no_row_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let keys = |count: usize| (0..count).fold(String::new(), |all, key| all + &format!("{key}\n"));
    fs::write(folder.path().join("keys.txt"), keys(100)).unwrap();
    let run = |more: &[&str]| {
        let args = ["bench", "--seconds", "0.01", "--rounds", "1", "--key-file", "keys.txt"];
        let args = [&args[..], &["--index", "art", "--kept-in", "runs"], more].concat();
        command(&args).current_dir(folder.path()).output().expect("the command runs")
    };
    assert!(run(&["--save", "a"]).status.success());
    let kept = fs::read(folder.path().join("runs/a.json")).unwrap();
    fs::write(folder.path().join("keys.txt"), keys(300)).unwrap();
    for name in ["a", "b"] {
        let output = run(&["--baseline", "a", "--save", name]);
        refused(&output, &["--baseline", "a.json", "no row in common"]);
    }
    assert_eq!(fs::read(folder.path().join("runs/a.json")).unwrap(), kept);
}
