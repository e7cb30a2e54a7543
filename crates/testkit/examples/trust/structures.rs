//! The table of structures: histories, schedules and tests of each.

use crate::logs::Logs;
use crate::{count, wrapped};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

type Cells = BTreeMap<String, String>;

/// The cells of a column. `None` if its job was skipped.
type Column = Option<Cells>;

/// The calls and histories of each structure, summed over its placements, and how they were made.
fn histories(logs: &Logs) -> Result<(Cells, String), String> {
    const JOB: &str = "verify.json";
    let output = logs.text(JOB)?.unwrap_or_default();
    let report: Value = serde_json::from_str(output).map_err(|e| format!("{JOB}: {e}"))?;
    if report["undecided"] != 0 {
        return Err(format!("{JOB}: histories are undecided: {}", report["undecided"]));
    }
    of_report(&report).ok_or_else(|| format!("{JOB}: it lacks a field of a report of `verify`"))
}

fn of_report(report: &Value) -> Option<(Cells, String)> {
    let mut sums: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for row in report["by_index"].as_array()? {
        let name = format!("{} {}", row["index"].as_str()?, row["key_type"].as_str()?);
        let sum = sums.entry(name).or_default();
        for (sum, field) in sum.iter_mut().zip(["operations", "histories", "violations"]) {
            *sum += row[field].as_u64()?;
        }
    }
    let cell = |[operations, histories, violations]: [u64; 3]| {
        let wrong = if violations == 0 { String::new() } else { format!(", {violations} WRONG") };
        format!("{} calls in {}{wrong}", count(operations), count(histories))
    };
    let cells = sums.into_iter().map(|(name, sum)| (name, cell(sum))).collect();
    let run = format!(
        "seed {}, threads {}, mix {}, clock {}, {:.0} s",
        report["seed"],
        report["threads"],
        report["mix"].as_str()?,
        report["clock"].as_str()?,
        report["seconds"].as_f64()?
    );
    Some((cells, run))
}

/// The name and key type of a structure that schedules call `skiplist-bytes` or `occ-avl:pooled`.
fn with_keys(structure: &str) -> String {
    let name = structure.split(':').next().unwrap_or_default();
    let keys = ["bytes", "u128"];
    let with = |keys| name.strip_suffix(keys)?.strip_suffix('-').map(|name| (name, keys));
    let (name, keys) = keys.into_iter().find_map(with).unwrap_or((name, "u64"));
    format!("{name} {keys}")
}

/// The sums over the scenarios of each structure. The lines read `schedules STRUCTURE SCENARIO
/// random N pct N` or `progress STRUCTURE VERB stops N`; `word` says which of these to sum.
fn schedules(logs: &Logs, word: &str, told: impl Fn(u64, u64) -> String) -> Result<Column, String> {
    const JOB: &str = "schedules.txt";
    let lines = logs.lines(JOB, word)?;
    if lines.is_empty() {
        return Err(format!("{JOB}: its output has no line `{word} …`"));
    }
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in lines {
        let [_, structure, _, figures @ ..] = &line[..] else { continue };
        let sum = sums.entry(with_keys(structure)).or_default();
        sum.0 += 1;
        sum.1 += figures.iter().filter_map(|word| word.parse::<u64>().ok()).sum::<u64>();
    }
    let cell = |(name, (lines, figures))| (name, told(lines, figures));
    Ok(Some(sums.into_iter().map(cell).collect()))
}

/// The name and key type of the structure that a test is for. The modules around the test are
/// those of the table of structures: `occ_avl::fixed::u64_keys::pooled::churn`.
fn of_test(name: &str) -> Option<String> {
    let mut modules = name.split("::");
    let structure = modules.next()?.replace('_', "-");
    let keys = match modules.nth(1)?.strip_suffix("_keys")? {
        "byte" => "bytes",
        word => word,
    };
    Some(format!("{structure} {keys}"))
}

/// The number of passed tests per structure in the output of `cargo test`.
fn tests(logs: &Logs, job: &str) -> Result<Column, String> {
    let Some(text) = logs.text(job)? else { return Ok(None) };
    let mut sums: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for line in text.lines() {
        let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        else {
            continue;
        };
        let Some(structure) = of_test(name).filter(|_| !outcome.starts_with("ignored")) else {
            continue;
        };
        sums.entry(structure).or_default()[usize::from(!outcome.starts_with("ok"))] += 1;
    }
    let cell = |[passed, failed]: [u64; 2]| match failed {
        0 => passed.to_string(),
        _ => format!("{passed}, {failed} FAIL"),
    };
    if sums.is_empty() {
        return Err(format!("{job}: its output has no test of a structure"));
    }
    Ok(Some(sums.into_iter().map(|(name, sum)| (name, cell(sum))).collect()))
}

/// The jobs that run tests: the heading of each column, and its file.
const TESTS: [(&str, &str); 6] = [
    ("suite", "suite.txt"),
    ("churn", "churn.txt"),
    ("faults", "faults.txt"),
    ("TSan", "tsan.txt"),
    ("ASan", "asan.txt"),
    ("valgrind", "valgrind.txt"),
];

/// The table, with a row for each structure that has histories.
pub(crate) fn table(logs: &Logs) -> Result<String, String> {
    let (cells, run) = histories(logs)?;
    let structures: Vec<String> = cells.keys().cloned().collect();
    let schedules_of = |figure: u64, of: u64| format!("{} of {of} scenarios", count(figure));
    let mut columns = vec![
        ("histories", Some(cells)),
        ("schedules", schedules(logs, "schedules", |scenarios, n| schedules_of(n, scenarios))?),
        ("stops", schedules(logs, "progress", |verbs, stops| format!("{stops} in {verbs} verbs"))?),
    ];
    for (heading, job) in TESTS {
        columns.push((heading, tests(logs, job)?));
    }
    let mut page = String::from("| structure |");
    for (heading, _) in &columns {
        let _ = write!(page, " {heading} |");
    }
    let _ = writeln!(page, "\n|{}", "---|".repeat(1 + columns.len()));
    for structure in &structures {
        let _ = write!(page, "| {structure} |");
        for (_, cells) in &columns {
            let cell = match cells {
                None => "skipped",
                Some(cells) => cells.get(structure).map_or("–", String::as_str),
            };
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    }
    let seed = silvics_testkit::size::seed();
    let told = format!("`silvics verify`: {run}. Schedules and suite: seed {seed}.");
    let _ = writeln!(page, "\n{}", wrapped(&told));
    Ok(page)
}
