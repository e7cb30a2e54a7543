//! The tables of docs/experiments.md, which follow the experiments and the results of a run.
//!
//! `just experiments` makes the results anew and writes the tables.

use super::report::outcome;
use super::{Experiment, PARTS, all};
use serde_json::Value;
use std::fmt::Write as _;
use std::{env, fs};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/experiments.jsonl");

/// The results, a report for each experiment.
fn results() -> Vec<Value> {
    let text = fs::read_to_string(RESULTS).expect("docs/results/experiments.jsonl");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The result of an experiment.
fn result<'a>(results: &'a [Value], name: &str) -> &'a Value {
    let result = results.iter().find(|result| result["experiment"] == name);
    result.unwrap_or_else(|| panic!("{name} has no result: run `just experiments`"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The source of an experiment, by its prefix.
fn source(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// The section of the document about the results of an experiment.
fn section(name: &str) -> &'static str {
    match name {
        "bst/1.2" => "by-the-clock",
        "bst/1.9" => "what-was-seen-of-the-database",
        "bst/1.10" => "what-was-seen-of-tpc-c",
        "art/4.3" => "what-was-seen-of-hot-nodes",
        _ => match source(name) {
            "bst" => "what-was-seen-of-them",
            "memtable" => "what-was-seen-of-memtables",
            "trie" => "what-was-seen-of-tries",
            "art" => "what-was-seen-of-translations",
            _ => "what-was-seen-of-adapting-trees",
        },
    }
}

/// The verdict of a result, or the reason why there is none.
fn verdict(result: &Value) -> String {
    let lines = result["evidence"].as_array().expect("evidence");
    let is_decided = lines.iter().any(|line| line["decides"] == true);
    let levels = result["config"]["levels"].as_array().expect("levels");
    let levels: Vec<&str> = levels.iter().map(text).collect();
    outcome(result["failed"].as_str(), is_decided, text(&result["verdict"]), &levels)
}

/// The table of the experiments of a source.
fn table(prefix: &str, results: &[Value]) -> String {
    let mut table =
        String::from("| no. | claimed | carried by | seen if | verdict |\n|---|---|---|---|---|\n");
    for part in PARTS.iter().filter(|part| source(part.name) == prefix) {
        let _ = writeln!(table, "| {} {} | – | – | – | {} |", part.name, part.title, part.shown_by);
    }
    for one in all().filter(|one| source(one.name) == prefix) {
        let mark = if one.elsewhere { " ◆" } else { "" };
        let verdict = verdict(result(results, one.name));
        let cells = [one.claim, one.carried_by, one.seen_if].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(
            table,
            "| {} {}{mark} | {} | {verdict} ([more](#{})) |",
            one.name,
            one.title,
            cells.join(" | "),
            section(one.name)
        );
    }
    table
}

/// The state of all experiments, in some lines.
fn state(results: &[Value]) -> String {
    let first = &results[0];
    let (machine, config) = (&first["machine"], &first["config"]);
    let levels: Vec<&str> = config["levels"].as_array().expect("levels").iter().map(text).collect();
    let quick = if config["quick"] == true { ", `--quick`" } else { "" };
    let commit =
        machine["commit"].as_str().map_or_else(String::new, |of| format!(", commit `{of}`"));
    let mut state = format!(
        "The results of that run are in [`experiments.jsonl`](results/experiments.jsonl).\n\n\
         | run | levels {}{quick}, seed {}, silvics {}{commit}, {} with {} cores |\n|---|---|\n",
        levels.join(" and "),
        config["seed"],
        text(&machine["silvics"]),
        machine["cpu"].as_str().unwrap_or("a machine without a name"),
        machine["cores"]
    );
    let mut verdicts: Vec<(String, Vec<&str>)> = Vec::new();
    for Experiment { name, .. } in all() {
        let verdict = verdict(result(results, name));
        match verdicts.iter_mut().find(|(of, _)| *of == verdict) {
            Some((_, names)) => names.push(name),
            None => verdicts.push((verdict, vec![name])),
        }
    }
    verdicts.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    for (verdict, names) in verdicts {
        let _ = writeln!(state, "| {verdict} | {}: {} |", names.len(), names.join(", "));
    }
    state
}

/// The document with this text between the markers of a region.
fn with(document: &str, region: &str, wanted: &str) -> String {
    let begin = format!(
        "<!-- The {region} begins: generated, see crates/cli/src/reproduce/document.rs -->\n"
    );
    let end = format!("<!-- The {region} ends -->");
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("no `{begin}`"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no `{end}`"));
    format!("{before}{begin}{wanted}{end}{after}")
}

/// The tables follow the experiments and the results. With `SILVICS_BLESS=1` in the environment
/// this test writes them.
#[test]
fn tables_of_the_document_follow_the_experiments() {
    let (results, found) = (results(), fs::read_to_string(DOCUMENT).expect("docs/experiments.md"));
    for one in all() {
        let result = result(&results, one.name);
        let same = [("claim", one.claim), ("seen_if", one.seen_if), ("carried_by", one.carried_by)];
        for (name, of) in same {
            assert_eq!(result[name], of, "{} has changed: run `just experiments`", one.name);
        }
    }
    let mut wanted = with(&found, "state", &state(&results));
    for prefix in ["bst", "memtable", "trie", "art", "ets"] {
        wanted = with(&wanted, &format!("table of {prefix}"), &table(prefix, &results));
    }
    if env::var_os("SILVICS_BLESS").is_some() {
        fs::write(DOCUMENT, wanted).expect("docs/experiments.md can be written");
        return;
    }
    assert!(
        found == wanted,
        "docs/experiments.md is not what the experiments and their results say: run this test with \
         SILVICS_BLESS=1 in the environment, or `just experiments`"
    );
}
