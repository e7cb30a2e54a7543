//! The result of `silvics verify`.

use super::plan::{Plan, Target};
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::place::SYSTEM_PAGES;
use crate::host::machine::Machine;
use crate::output;
use serde::{Serialize, Serializer};
use silvics_testkit::clock::Clock;
use silvics_testkit::linearizable::{BadCall, Verdict, Violation};
use silvics_testkit::verify::{self, Kinds, Wrong};
use std::fmt::Write;
use std::time::Duration;

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    machine: Machine,
    /// The source of time stamps: `tsc`, or a shared `counter`.
    clock: &'static str,
    mix: String,
    threads: Vec<usize>,
    seed: u64,
    seconds: f64,
    /// The calls that were recorded and found linearizable.
    operations: u64,
    /// The calls that were recorded, by kind.
    #[serde(serialize_with = "by_name")]
    calls: Kinds,
    histories: u64,
    pub violations: usize,
    /// The checks that were given up, each of a key or of a whole history. Their calls are not
    /// among the operations.
    pub undecided: u64,
    #[serde(rename = "by_index")]
    pub rows: Vec<Row>,
    pub interrupted: bool,
}

/// Writes the number of calls of each kind under its name.
fn by_name<S: Serializer>(kinds: &Kinds, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(kinds.iter())
}

/// One index in one place with one type of keys.
#[derive(Debug, Serialize)]
pub struct Row {
    index: String,
    placement: &'static str,
    pages: String,
    key_type: &'static str,
    seconds: f64,
    operations: u64,
    #[serde(serialize_with = "by_name")]
    calls: Kinds,
    histories: u64,
    violations: usize,
    undecided: u64,
    /// Million operations recorded and checked per second.
    mops: f64,
    violation: Option<WrongHistory>,
}

/// A wrong history.
#[derive(Debug, Serialize)]
struct WrongHistory {
    /// The number of the history.
    history: u64,
    /// The number of its threads.
    threads: usize,
    /// The error, as a table prints it.
    text: String,
    /// Its calls, if the error is a history that is not linearizable.
    #[serde(flatten)]
    calls: Option<Calls>,
}

#[derive(Debug, Serialize)]
struct Calls {
    on: String,
    states: Vec<String>,
    #[serde(rename = "calls")]
    rows: Vec<CallRow>,
}

#[derive(Debug, Serialize)]
struct CallRow {
    thread: usize,
    start: u64,
    end: Option<u64>,
    call: String,
}

impl Calls {
    fn of(violation: &Violation) -> Self {
        let (on, states) = (violation.on.clone(), violation.states.clone());
        Self { on, states, rows: rows(&violation.calls) }
    }

    /// The calls of what is wrong, if it is known by its calls.
    fn of_wrong(wrong: &Wrong) -> Option<Self> {
        match wrong {
            Wrong::History(violation) => Some(Self::of(violation)),
            Wrong::Versions(wrong) => {
                let on = wrong.reason.clone();
                Some(Self { on, states: Vec::new(), rows: rows(&wrong.calls) })
            }
            Wrong::Other(_) => None,
        }
    }
}

fn rows(calls: &[BadCall]) -> Vec<CallRow> {
    let row = |call: &BadCall| CallRow {
        thread: call.thread,
        start: call.start,
        end: call.end,
        call: call.call.clone(),
    };
    calls.iter().map(row).collect()
}

impl Row {
    pub fn of(target: &Target, recorded: &verify::Report, time: Duration) -> Self {
        let violation = recorded.found.as_ref().map(|found| WrongHistory {
            history: found.history,
            threads: found.threads,
            text: found.what.to_string(),
            calls: Calls::of_wrong(&found.what),
        });
        Self {
            index: target.index.clone(),
            placement: if target.has_own_place { "own" } else { target.place.name() },
            pages: if target.has_own_place { SYSTEM_PAGES.into() } else { target.place.pages() },
            key_type: target.key_type.name(),
            seconds: time.as_secs_f64(),
            operations: recorded.operations,
            calls: recorded.kinds,
            histories: recorded.histories,
            violations: usize::from(violation.is_some()),
            undecided: recorded.undecided,
            mops: recorded.operations as f64 / time.as_secs_f64() / 1e6,
            violation,
        }
    }

    fn record(&self) -> Vec<String> {
        vec![
            self.index.clone(),
            self.placement.into(),
            self.pages.clone(),
            self.key_type.into(),
            self.operations.to_string(),
            self.calls.ends().to_string(),
            self.histories.to_string(),
            self.violations.to_string(),
            self.undecided.to_string(),
            format!("{:.2}", self.mops),
        ]
    }
}

const HEADER: &[&str] = &[
    "index",
    "placement",
    "pages",
    "key type",
    "operations",
    "ends",
    "histories",
    "violations",
    "undecided",
    "Mops/s",
];

impl Report {
    pub fn new(plan: &Plan, clock: &Clock, machine: Machine) -> Self {
        Self {
            machine,
            clock: clock.source().name(),
            mix: plan.mix.to_string(),
            threads: plan.threads.clone(),
            seed: plan.seed,
            seconds: 0.0,
            operations: 0,
            calls: Kinds::default(),
            histories: 0,
            violations: 0,
            undecided: 0,
            rows: Vec::new(),
            interrupted: false,
        }
    }

    /// Adds the rows up.
    pub fn sum(&mut self, interrupted: bool) {
        self.seconds = self.rows.iter().map(|row| row.seconds).sum();
        self.operations = self.rows.iter().map(|row| row.operations).sum();
        for row in &self.rows {
            self.calls.add(&row.calls);
        }
        self.histories = self.rows.iter().map(|row| row.histories).sum();
        self.violations = self.rows.iter().map(|row| row.violations).sum();
        self.undecided = self.rows.iter().map(|row| row.undecided).sum();
        self.interrupted = interrupted;
    }

    pub fn print(&self, format: Format) -> Result<(), Error> {
        match format {
            Format::Json => output::json(self),
            Format::Csv => output::csv(HEADER, self.rows.iter().map(Row::record)),
            Format::Table => output::text(&self.table()),
        }
    }

    fn table(&self) -> String {
        let mut table = output::table(HEADER).drops(&["ends", "Mops/s", "pages", "histories"]);
        table = table.names(&["index", "placement", "pages", "key type"]);
        table.add_rows(self.rows.iter().map(Row::record));
        let mut text = format!(
            "{table}\n\n{} operations in {} histories, {} violation{}; {:.1} s, threads {:?}, mix {}, \
             seed {}, clock {}\n{}\n",
            self.operations,
            self.histories,
            self.violations,
            crate::flags::units::plural(self.violations),
            self.seconds,
            self.threads,
            self.mix,
            self.seed,
            self.clock,
            self.machine,
        );
        let kinds = self.calls.iter().filter(|(_, count)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(name, count)| format!("{count} {name}")).collect();
        let _ = writeln!(text, "calls recorded: {}", kinds.join(", "));
        for row in &self.rows {
            if let Some(wrong) = &row.violation {
                let (index, placement, key_type) = (&row.index, row.placement, row.key_type);
                let (number, wrong) = (wrong.history, &wrong.text);
                let _ =
                    writeln!(text, "\n{index} {placement} {key_type}, history {number}: {wrong}");
            }
        }
        text
    }
}

/// The result of checking a file.
#[derive(Debug, Serialize)]
pub struct Checked {
    operations: usize,
    verdict: &'static str,
    /// The error, or the check that was given up, as text.
    reason: Option<String>,
    #[serde(flatten)]
    calls: Option<Calls>,
}

impl Checked {
    pub fn of(operations: usize, verdict: Verdict) -> Self {
        let (verdict, reason, calls) = match verdict {
            Verdict::Linearizable => ("linearizable", None, None),
            Verdict::Violation(violation) => {
                ("violation", Some(violation.to_string()), Some(Calls::of(&violation)))
            }
            Verdict::Undecided { what } => {
                ("undecided", Some(format!("{what}: the check was given up")), None)
            }
        };
        Self { operations, verdict, reason, calls }
    }

    pub fn print(&self, format: Format) -> Result<(), Error> {
        let reason = self.reason.as_deref().unwrap_or_default();
        match format {
            Format::Json => output::json(self),
            Format::Csv => {
                let record = vec![self.operations.to_string(), self.verdict.into(), reason.into()];
                output::csv(&["operations", "verdict", "reason"], std::iter::once(record))
            }
            Format::Table => {
                let gap = if reason.is_empty() { "" } else { "\n" };
                output::text(&format!(
                    "{} operations: {}\n{reason}{gap}",
                    self.operations, self.verdict
                ))
            }
        }
    }
}
