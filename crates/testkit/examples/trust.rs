//! Writes the figures of the last long run into docs/trust.md:
//! `cargo run -p silvics-testkit --example trust -- target/trust docs/trust.md`.
//!
//! The folder holds the output of the jobs of `just stress`, one file per job. A job without a file
//! did not run, and the table says so. The text between the two marks of the page is replaced.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

const BEGIN: &str = "<!-- figures: written by `just trust` -->\n";
const END: &str = "<!-- end of figures -->";

type Cells = BTreeMap<String, String>;

/// The folder with the output of the jobs.
struct Logs(PathBuf);

impl Logs {
    fn read(&self, job: &str) -> Option<String> {
        fs::read_to_string(self.0.join(job)).ok()
    }

    /// The lines of a job that begin with `word`, each split into its words.
    fn lines(&self, job: &str, word: &str) -> Vec<Vec<String>> {
        let text = self.read(job).unwrap_or_default();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        text.lines().map(words).filter(|w| w.first().is_some_and(|f| f == word)).collect()
    }
}

/// The number in decimal, with spaces between its thousands.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// The text with its lines wrapped at 100 columns, as documents are.
fn wrapped(text: &str) -> String {
    let (mut lines, mut columns) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if columns > 0 {
            let fits = columns + 1 + width <= 100;
            lines.push(if fits { ' ' } else { '\n' });
            columns = if fits { columns + 1 } else { 0 };
        }
        lines.push_str(word);
        columns += width;
    }
    lines
}

/// The calls and histories of each structure, summed over its placements, and how they were made.
fn histories(logs: &Logs) -> Option<(Cells, String)> {
    let report: Value = serde_json::from_str(&logs.read("verify.json")?).ok()?;
    let mut sums: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    if report["undecided"] != 0 {
        return None;
    }
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
fn schedules(logs: &Logs, word: &str, told: impl Fn(u64, u64) -> String) -> Option<Cells> {
    logs.read("schedules.txt")?;
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in logs.lines("schedules.txt", word) {
        let [_, structure, _, figures @ ..] = &line[..] else { continue };
        let sum = sums.entry(with_keys(structure)).or_default();
        sum.0 += 1;
        sum.1 += figures.iter().filter_map(|word| word.parse::<u64>().ok()).sum::<u64>();
    }
    let cell = |(name, (lines, figures))| (name, told(lines, figures));
    Some(sums.into_iter().map(cell).collect())
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
fn tests(logs: &Logs, job: &str) -> Option<Cells> {
    let text = logs.read(job).filter(|text| !text.contains("SKIPPED"))?;
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
    Some(sums.into_iter().map(|(name, sum)| (name, cell(sum))).collect())
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

fn table(logs: &Logs) -> String {
    let histories = histories(logs);
    let cells = histories.as_ref().map(|(cells, _)| cells.clone());
    let structures: Vec<String> = cells.iter().flat_map(Cells::keys).cloned().collect();
    let schedules_of = |figure: u64, of: u64| format!("{} of {of} scenarios", count(figure));
    let mut columns = vec![
        ("histories", cells),
        ("schedules", schedules(logs, "schedules", |scenarios, n| schedules_of(n, scenarios))),
        ("stops", schedules(logs, "progress", |verbs, stops| format!("{stops} in {verbs} verbs"))),
    ];
    columns.extend(TESTS.map(|(heading, job)| (heading, tests(logs, job))));
    let mut page = String::from("| structure |");
    for (heading, _) in &columns {
        let _ = write!(page, " {heading} |");
    }
    let _ = writeln!(page, "\n|{}", "---|".repeat(1 + columns.len()));
    for structure in &structures {
        let _ = write!(page, "| {structure} |");
        for (_, cells) in &columns {
            let cell = match cells {
                None => "not run",
                Some(cells) => cells.get(structure).map_or("–", String::as_str),
            };
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    }
    if let Some((_, run)) = histories {
        let seed = silvics_testkit::size::seed();
        let told = format!("`silvics verify`: {run}. Schedules and suite: seed {seed}.");
        let _ = writeln!(page, "\n{}", wrapped(&told));
    }
    page.push_str(&canaries(logs));
    page.push_str(&others(logs));
    page
}

/// The table of planted mistakes. Schedules print `canary INDEX NAME schedules N scenario NAME
/// seconds S: …`, and `silvics verify` prints `canary NAME verify S s`.
fn canaries(logs: &Logs) -> String {
    let mut found: BTreeMap<String, [Option<String>; 3]> = BTreeMap::new();
    for line in logs.lines("canaries.txt", "canary") {
        if let [_, index, name, by, schedules, _, scenario, ..] = &line[..]
            && by == "schedules"
        {
            let row = found.entry(name.clone()).or_default();
            row[0] = Some(index.clone());
            row[1] = Some(format!("{schedules} schedules, `{scenario}`"));
        }
    }
    for line in logs.lines("planted.txt", "canary") {
        if let [_, name, _, seconds, ..] = &line[..]
            && let Ok(seconds) = seconds.parse::<f64>()
        {
            found.entry(name.clone()).or_default()[2] = Some(format!("{seconds:.2} s"));
        }
    }
    if found.is_empty() {
        return "\nThe planted mistakes were not run.\n".into();
    }
    let mut page = String::from(
        "\n| planted mistake | in | found by schedules after | by `silvics verify` within |\n|---|---|---|---|\n",
    );
    for (name, [index, schedules, verify]) in found {
        let cell = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let (index, schedules, verify) = (cell(index), cell(schedules), cell(verify));
        let _ = writeln!(page, "| `{name}` | {index} | {schedules} | {verify} |");
    }
    page
}

/// The sentences about loom, whose models belong to no structure, and about the recorder.
fn others(logs: &Logs) -> String {
    let mut page = String::new();
    if let Some(text) = logs.read("loom.txt") {
        let passed = text.lines().filter(|l| l.starts_with("test ") && l.ends_with("ok")).count();
        let _ = writeln!(
            page,
            "\nLoom: {passed} models of small pieces, each explored whole within its bound."
        );
    }
    if let Some(text) = logs.read("recorder.txt") {
        let builds = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let pairs = builds.filter(|words| words.len() == 3 && words[1].parse::<f64>().is_ok());
        let (equal, more): (Vec<_>, Vec<_>) = pairs.partition(|words| words[1] == words[2]);
        let text = format!(
            "Recorder: a lookup takes as many instructions with its calls as without them in {} \
             builds of structures, and more in {}.",
            equal.len(),
            more.len()
        );
        let _ = writeln!(page, "\n{}", wrapped(&text));
    }
    page
}

fn write(folder: &Path, page: &Path) -> Result<(), String> {
    let text = fs::read_to_string(page).map_err(|e| format!("{}: {e}", page.display()))?;
    let missing = || format!("{} lacks the two marks between which its figures go", page.display());
    let (before, rest) = text.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let logs = Logs(folder.to_owned());
    let run = logs.read("run.txt").unwrap_or_default();
    let figures = format!("{}\n\n{}", wrapped(&run), table(&logs));
    let text = format!("{before}{BEGIN}\n{}\n\n{END}{after}", figures.trim());
    fs::write(page, text).map_err(|e| format!("{}: {e}", page.display()))
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [folder, page] = &args[..] else {
        eprintln!("trust: name the folder of the jobs' output and the page");
        return ExitCode::from(2);
    };
    match write(Path::new(folder), Path::new(page)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("trust: {problem}");
            ExitCode::from(2)
        }
    }
}
