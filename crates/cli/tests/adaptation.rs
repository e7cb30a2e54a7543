//! `silvics bench --trace-adaptation` and `silvics watch`: how an index adapts to contention.

mod common;

use common::{Files, bench, command, field, number, refused, run, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

const RESTLESS: [&str; 6] = ["--index", "ca-tree:restless", "--keys", "2k", "--mix", "0/0/0/0/100"];

/// The trace of a benchmark with these arguments, and the text of its plot.
fn traced(args: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let json = path("a.json");
    let output = bench(&[args, &["--trace-adaptation", &json]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("ca-tree"), "the result is printed, too");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2, "nothing else is left");
    let read = |path: &str| fs::read_to_string(path).expect("the file was written");
    let trace = serde_json::from_str(&read(&json)).expect("the trace is JSON");
    (trace, read(&path("a.svg")))
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    field(value, name).as_array().expect("an array")
}

/// Checks what holds for each sample of an index in key order of their times.
#[track_caller]
fn assert_sample(sample: &Value, at_rest: bool) {
    let [routes, bases, splits, joins] =
        ["route_nodes", "base_nodes", "splits", "joins"].map(|name| number(sample, name));
    assert_eq!(bases.to_string(), (routes + 1.0).to_string(), "{sample}");
    if at_rest {
        assert_eq!(routes.to_string(), (splits - joins).to_string(), "{sample}");
    }
    let statistics = field(sample, "statistics");
    let [min, median, max] = ["min", "median", "max"].map(|name| number(statistics, name));
    assert!(min <= median && median <= max, "{sample}");
    assert!(number(sample, "deepest") <= 16.0);
    assert!(number(sample, "seconds") >= 0.0);
}

#[test]
fn a_trace_has_every_run_with_its_configuration() {
    let (trace, svg) = traced(&[&RESTLESS[..], &["--threads", "1,2"]].concat());
    assert_eq!((&trace["format"], &trace["version"]), (&"silvics adaptation".into(), &1.into()));
    field(&trace, "machine");
    let runs = array(&trace, "runs");
    assert_eq!(runs.len(), 4, "two numbers of threads, two rounds");
    for traced in runs {
        assert_eq!(traced["index"], "ca-tree:restless");
        assert_eq!((&traced["keys"], &traced["mix"]), (&2000.into(), &"0/0/0/0/100".into()));
        for name in ["cell", "placement", "dist", "threads", "round", "mops", "sampling_share"] {
            field(traced, name);
        }
        let samples = array(traced, "samples");
        assert!(samples.len() >= 2, "the start and the end");
        let mut before = &samples[0];
        for sample in samples {
            assert_sample(sample, false);
            for name in ["seconds", "splits", "joins"] {
                assert!(number(sample, name) >= number(before, name), "{before} {sample}");
            }
            before = sample;
        }
        assert_sample(before, true);
        let splits = number(before, "splits") - number(&samples[0], "splits");
        assert!(splits > 0.0, "{splits} splits in a build that splits by force");
    }
    let plot = roxmltree::Document::parse(&svg).expect("well-formed");
    let of_class = |class: &str| {
        plot.descendants().filter(|node| node.attribute("class") == Some(class)).count()
    };
    assert_eq!(["plot p0", "plot p1", "plot p2"].map(of_class), [4; 3]);
}

#[test]
fn a_build_that_does_not_split_has_one_base_node() {
    let args = ["--index", "ca-tree:coarse", "--keys", "1k", "--placement", "shared"];
    let (trace, _) = traced(&args);
    for traced in array(&trace, "runs") {
        for sample in array(traced, "samples") {
            assert_eq!(
                (number(sample, "base_nodes") as usize, sample["splits"].as_u64()),
                (1, Some(0))
            );
        }
    }
}

/// It is divided into 64 base nodes for each thread of the largest run, and stays so.
#[test]
fn a_fine_tree_is_divided_after_its_load() {
    let args = ["--index", "ca-tree:fine", "--keys", "2k", "--mix", "0/50/50", "--threads", "1,3"];
    let (trace, _) = traced(&args);
    for traced in array(&trace, "runs") {
        for sample in array(traced, "samples") {
            assert_eq!(sample["base_nodes"], 3 * 64, "{sample}");
        }
    }
}

#[test]
fn indexes_that_do_not_adapt_cannot_be_traced() {
    let files = Files::new();
    let path = files.missing();
    let refuses = |index: &str, path: &str, parts: &[&str]| {
        refused(&bench(&["--index", index, "--keys", "1k", "--trace-adaptation", path]), parts);
    };
    refuses("skiplist", &path, &["--trace-adaptation", "`skiplist`", "such as ca-tree"]);
    refuses("ca-tree,art", &path, &["--trace-adaptation", "`art`"]);
    assert!(!Path::new(&path).exists());
    refuses("ca-tree", "/no/such/folder/a.json", &["--trace-adaptation", "/no/such/folder"]);
    refuses("ca-tree", "a.svg", &["--trace-adaptation", "`a.svg`", ".json"]);
}

/// The output of `silvics watch` with these arguments.
fn watch(args: &[&str]) -> String {
    let little = ["watch", "--keys", "2k", "--seconds", "0.25"];
    let output = run(&[&little[..], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "there is no terminal to draw on");
    stdout(&output)
}

#[test]
fn a_pipe_gets_lines_and_a_summary() {
    let text = watch(&["ca-tree:restless", "--threads", "3"]);
    assert!(text.starts_with("ca-tree:restless, 2000 keys"), "{text}");
    let lines = |threads: &str| {
        let of_phase = text.lines().filter(|line| line.split_whitespace().next() == Some(threads));
        of_phase.filter(|line| line.split_whitespace().count() == 9).count()
    };
    assert!(lines("3") >= 1 && lines("1") >= 1, "{text}");
    assert!(text.contains("\n3 threads for 0.") && text.contains("\n1 thread for 0."), "{text}");
    assert!(text.ends_with("The index has all keys with their values.\n"), "{text}");
    assert!(!text.contains("No base node was split"), "{text}");
}

#[test]
fn a_tree_that_does_not_split_says_so() {
    let text = watch(&["--index", "ca-tree:coarse", "--threads", "2"]);
    assert!(text.contains("base nodes 1 → 1 (at most 1), 0 splits, 0 joins"), "{text}");
    assert!(text.contains("No base node was split"), "{text}");
}

#[test]
fn what_was_watched_is_json_on_request() {
    let text = watch(&["--threads", "2", "--format", "json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON and nothing else");
    assert_eq!(report["checked"], true);
    assert_eq!(report["config"]["index"], "ca-tree");
    let phases = array(&report, "phases");
    let threads: Vec<_> = phases.iter().map(|phase| phase["threads"].as_u64()).collect();
    assert_eq!(threads, [Some(2), Some(1)]);
    for phase in phases {
        assert_sample(field(phase, "start"), true);
        assert!(!array(phase, "frames").is_empty());
        for frame in array(phase, "frames") {
            assert_sample(frame, true);
            assert!(number(frame, "mops") > 0.0);
        }
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let refuses = |args: &[&str], parts: &[&str]| {
        refused(&run(&[&["watch"], args].concat()), parts);
    };
    refuses(&["skiplist"], &["--index", "`skiplist` does not adapt", "such as ca-tree"]);
    refuses(&["ca-treee"], &["--index", "did you mean `ca-tree`?"]);
    refuses(&["default"], &["--index", "`default`", "name one"]);
    refuses(&["ca-tree:fast"], &["--index", "`fast`", "choose default"]);
    refuses(&["--threads", "0"], &["--threads", "`0`"]);
    refuses(&["--seconds", "0"], &["--seconds", "`0`"]);
    refuses(&["--keys", "0"], &["--keys", "`0`"]);
    refuses(&["--format", "csv"], &["--format", "table or json"]);
    refuses(&["ca-tree", "--index", "ca-tree"], &["--index", "exclude each other"]);
}

#[test]
fn help_names_both() {
    let help = |args: &[&str]| stdout(&command(args).output().expect("the command runs"));
    assert!(help(&["bench", "--help"]).contains("--trace-adaptation"));
    assert!(help(&["watch", "--help"]).contains("ca-tree:restless"));
}
