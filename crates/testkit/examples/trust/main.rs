//! Writes the figures of the last long run into docs/trust.md:
//! `cargo run -p silvics-testkit --example trust -- target/trust docs/trust.md`.
//!
//! The folder holds the output of the jobs of `just stress`, one file per job. If the output of a
//! job is missing, or has not the figures that the page shows, the page stays as it is. The text
//! between the two marks of the page is replaced.
//!
//! * `logs`: the outputs of all jobs that `.ci/stress` names.
//! * `structures`: the table of structures.
//! * `systems`: maps with versions, the write buffer, the store and TPC-C.
//! * `planted`: the mistakes that were found.
//! * `others`: loom, the recorder, and the jobs whose figures are not shown.

mod logs;
mod others;
mod planted;
mod structures;
mod systems;

use logs::Logs;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

const BEGIN: &str = "<!-- figures: written by `just trust` -->\n";
const END: &str = "<!-- end of figures -->";

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

/// The text between the marks.
fn figures(logs: &Logs) -> Result<String, String> {
    let parts = [
        wrapped(&logs.run),
        structures::table(logs)?,
        systems::tables(logs)?,
        planted::of_structures(logs)?,
        planted::of_systems(logs)?,
        others::sentences(logs)?,
    ];
    Ok(parts.map(|part| part.trim().to_owned()).join("\n\n"))
}

fn write(logs: &Logs, page: &Path) -> Result<(), String> {
    let text = fs::read_to_string(page).map_err(|e| format!("{}: {e}", page.display()))?;
    let missing = || format!("{} lacks the two marks between which its figures go", page.display());
    let (before, rest) = text.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let text = format!("{before}{BEGIN}\n{}\n\n{END}{after}", figures(logs)?);
    fs::write(page, text).map_err(|e| format!("{}: {e}", page.display()))
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [folder, page] = &args[..] else {
        eprintln!("trust: name the folder of the jobs' output and the page");
        return ExitCode::from(2);
    };
    let logs = Logs::read(Path::new(folder), Path::new(".ci/stress"));
    match logs.and_then(|logs| write(&logs, Path::new(page))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("trust: {problem}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortened outputs of the jobs whose figures are shown.
    const OUTPUTS: [(&str, &str); 21] = [
        (
            "verify.json",
            r#"{"undecided": 0, "by_index": [{"index": "art", "key_type": "u64", "operations": 12345,
            "histories": 6, "violations": 0}], "seed": 1, "threads": [2, 3], "mix": "38/32/28/2",
            "clock": "tsc", "seconds": 300.1}"#,
        ),
        ("verify.txt", "5 operations in 2 histories, 0 violations; 4.0 s"),
        ("versions.txt", "7 operations in 3 histories, 0 violations; 4.0 s"),
        ("suite.txt", "test art::pooled::u64_keys::get ... ok"),
        ("churn.txt", "test art::pooled::u64_keys::long_churn ... ok"),
        ("faults.txt", "test art::pooled::u64_keys::get ... ok"),
        ("asan.txt", "test art::pooled::u64_keys::get ... ok"),
        ("tsan.txt", "SKIPPED tsan: there is no nightly toolchain"),
        ("valgrind.txt", "test art::pooled::u64_keys::get ... ok"),
        ("schedules.txt", "schedules art one-key random 4 pct 5\nprogress art get stops 3"),
        (
            "memtable.txt",
            "losses of power: 500\nkills: 9, batches: 8\ntest result: ok. 2 passed; 0",
        ),
        (
            "memtable-schedules.txt",
            "schedules memtable:art a random 1 pct 2\ncanary x schedules 9 a",
        ),
        ("memtable-canaries.txt", "canary x Parallel found within 1 s"),
        (
            "store.txt",
            "wait-die over words: 9 committed, 8 aborted, 7 open\nkills: 318, of\ntest result: ok. \
             2 passed; 0",
        ),
        (
            "store-schedules.txt",
            "schedules store:a b random 1 pct 2\ncanary x no-wait schedules 9 a: b",
        ),
        ("store-canaries.txt", "canary x no-wait found within 1 s: b"),
        ("tpcc-check.txt", "map no-wait: 320 DELIVERY, 14 timed: p50 26.66 us"),
        (
            "tpcc.txt",
            "canary x no-wait found in round 3 of TPC-C: b\n12 losses of power: 34 acknowledged, 5 \
             checkpoints\ntest result: ok. 2 passed; 0",
        ),
        ("canaries.txt", "canary art held-forgotten schedules 361 scenario all-bytes seconds 1: b"),
        ("planted.txt", "canary held-forgotten verify 0.2 s"),
        ("loom.txt", "test a ... ok"),
    ];

    #[test]
    fn the_page_has_the_figures_of_all_jobs_of_the_script() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/stress");
        let folder = env::temp_dir().join(format!("silvics-trust-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = fs::read_to_string(&script).unwrap();
        for name in logs::names(&text) {
            let output = OUTPUTS.iter().find(|(job, _)| *job == name).map(|(_, output)| *output);
            let output = output.unwrap_or("1.5 2 2\ntest result: ok. 1 passed; 0 failed");
            fs::write(folder.join(name), output).unwrap();
            fs::write(folder.join(format!("{name}.seconds")), "1").unwrap();
        }
        fs::write(folder.join("run.txt"), "Commit `12345678`, 2026-01-01\n").unwrap();
        let figures_of = || figures(&Logs::read(&folder, &script)?);
        let page = figures_of().unwrap();
        for expected in [
            "Commit `12345678`, 2026-01-01\n\n| structure | histories |",
            "| art u64 | 12 345 calls in 6 | 9 of 1 scenarios | 3 in 1 verbs | 1 | 1 | 1 | skipped |",
            "| write buffer | processes that were killed | 9, with 8 batches |",
            "| TPC-C | losses of power | 12, with 34 acknowledged transactions and 5 checkpoints |",
            "| wait-die over `words` | 9 | 8 | 7 |",
            "| `x` | no-wait | 9 schedules, `a` | within 1 s; in round 3 of TPC-C |",
            "Jobs of `.ci/stress` that were skipped: `tsan`.",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        // Without an output there is no page.
        for job in ["versions.txt", "store.txt", "tpcc-check.txt", "public-api.txt"] {
            let output = fs::read(folder.join(job)).unwrap();
            fs::remove_file(folder.join(job)).unwrap();
            assert!(figures_of().unwrap_err().contains(job), "{job}");
            fs::write(folder.join(job), output).unwrap();
        }
        // Nor is there one if an output has other lines than expected.
        for job in
            ["versions.txt", "store.txt", "tpcc.txt", "planted.txt", "loom.txt", "schedules.txt"]
        {
            let output = fs::read(folder.join(job)).unwrap();
            fs::write(folder.join(job), "nothing").unwrap();
            assert!(figures_of().unwrap_err().starts_with(job), "{job}");
            fs::write(folder.join(job), output).unwrap();
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
