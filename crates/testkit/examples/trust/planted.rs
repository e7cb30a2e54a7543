//! The tables of planted mistakes.

use crate::logs::Logs;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The jobs that hunt mistakes of structures, by schedules and by `silvics verify`.
const STRUCTURES: [&str; 2] = ["canaries.txt", "planted.txt"];

/// The jobs that hunt mistakes of the write buffer and the store by schedules.
const SCHEDULES: [&str; 2] = ["memtable-schedules.txt", "store-schedules.txt"];

/// The jobs that hunt mistakes of the write buffer and the store on threads.
const THREADS: [&str; 3] = ["memtable-canaries.txt", "store-canaries.txt", "tpcc.txt"];

fn cell(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".into())
}

/// The mistakes of structures. Schedules print `canary INDEX NAME schedules N scenario NAME seconds
/// S: …`, and `silvics verify` prints `canary NAME verify S s`.
pub(crate) fn of_structures(logs: &Logs) -> Result<String, String> {
    let mut found: BTreeMap<String, [Option<String>; 3]> = BTreeMap::new();
    for line in logs.lines(STRUCTURES[0], "canary")? {
        if let [_, index, name, by, schedules, _, scenario, ..] = &line[..]
            && by == "schedules"
        {
            let row = found.entry(name.clone()).or_default();
            row[0] = Some(index.clone());
            row[1] = Some(format!("{schedules} schedules, `{scenario}`"));
        }
    }
    if found.is_empty() {
        return Err(format!("{}: its output has no planted mistake", STRUCTURES[0]));
    }
    let mut is_seen = logs.text(STRUCTURES[1])?.is_none(); // skipped
    for line in logs.lines(STRUCTURES[1], "canary")? {
        if let [_, name, by, seconds, ..] = &line[..]
            && by == "verify"
            && let Ok(seconds) = seconds.parse::<f64>()
        {
            found.entry(name.clone()).or_default()[2] = Some(format!("{seconds:.2} s"));
            is_seen = true;
        }
    }
    if !is_seen {
        return Err(format!("{}: its output has no planted mistake", STRUCTURES[1]));
    }
    let mut page = String::from(
        "| planted mistake | in | found by schedules after | by `silvics verify` within |\n\
         |---|---|---|---|\n",
    );
    for (name, [index, schedules, verify]) in found {
        let (index, schedules, verify) = (cell(index), cell(schedules), cell(verify));
        let _ = writeln!(page, "| `{name}` | {index} | {schedules} | {verify} |");
    }
    Ok(page)
}

/// The mistakes of the write buffer and the store. Schedules print `canary NAME [POLICY] schedules
/// N SCENARIO`, and tests on threads print `canary NAME WHERE found HOW: WHAT`.
pub(crate) fn of_systems(logs: &Logs) -> Result<String, String> {
    let mut found: BTreeMap<(String, String), [Vec<String>; 2]> = BTreeMap::new();
    let mut hunts = vec![];
    for (at, job) in SCHEDULES.map(|job| (0, job)).into_iter().chain(THREADS.map(|job| (1, job))) {
        let lines = logs.lines(job, "canary")?;
        if lines.is_empty() && logs.text(job)?.is_some() {
            return Err(format!("{job}: its output has no planted mistake"));
        }
        hunts.extend(lines.into_iter().map(|line| (at, line)));
    }
    for (at, line) in hunts {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let (name, place, how) = match words[..] {
            [_, name, "schedules", number, program, ..] => (name, "–", (number, program)),
            [_, name, place, "schedules", number, program, ..] => (name, place, (number, program)),
            [_, name, place, "found", ..] => (name, place, ("", "")),
            _ => continue,
        };
        let text = match how {
            ("", _) => words[4..].join(" ").split(": ").next().unwrap_or_default().to_owned(),
            (number, program) => {
                format!("{number} schedules, `{}`", program.trim_end_matches(':'))
            }
        };
        found.entry((name.into(), place.into())).or_default()[at].push(text);
    }
    let mut page = String::from(
        "| planted mistake | under | found by schedules after | on threads |\n|---|---|---|---|\n",
    );
    for ((name, place), texts) in found {
        let [schedules, threads] =
            texts.map(|texts| cell((!texts.is_empty()).then(|| texts.join("; "))));
        let _ = writeln!(page, "| `{name}` | {place} | {schedules} | {threads} |");
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_mistakes_is_an_error() {
        let schedules = "canary art a-mistake schedules 3 scenario x seconds 1: found\n";
        let of = |verify: &str| {
            of_structures(&Logs::of(&[("canaries.txt", schedules), ("planted.txt", verify)]))
        };
        let table = of("canary a-mistake verify 0.5 s\n").unwrap();
        assert!(table.ends_with("| `a-mistake` | art | 3 schedules, `x` | 0.50 s |\n"), "{table}");
        assert_eq!(
            of("test result: ok. 5 passed\n").unwrap_err(),
            "planted.txt: its output has no planted mistake"
        );
    }

    #[test]
    fn mistakes_are_read_from_schedules_and_from_threads() {
        let logs = Logs::of(&[
            ("memtable-schedules.txt", "canary pending-ignored schedules 12 a-switch\n"),
            (
                "store-schedules.txt",
                "canary lost-update optimistic schedules 277 two-keys: no order\n",
            ),
            ("memtable-canaries.txt", "canary lost-bloom-bit filter found in round 37\n"),
            (
                "store-canaries.txt",
                "test a ... canary lost-update optimistic found within 0.21s: in history 3: lost\n",
            ),
            ("tpcc.txt", "canary lost-update optimistic found in round 5 of TPC-C: no order\n"),
        ]);
        let table = of_systems(&logs).unwrap();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| `lost-bloom-bit` | filter | – | in round 37 |",
                "| `lost-update` | optimistic | 277 schedules, `two-keys` | within 0.21s; in round 5 of \
                 TPC-C |",
                "| `pending-ignored` | – | 12 schedules, `a-switch` | – |",
            ]
        );
    }
}
