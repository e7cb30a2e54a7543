//! `silvics verify --store`: histories of transactions on stores of all kinds.

use super::plan;
use crate::flags::args::{Format, VerifyArgs};
use crate::flags::error::Error;
use crate::flags::units::count;
use crate::flags::values::{THREADS_MAX, list, number, seconds, seed, single};
use crate::host::machine::Machine;
use crate::interrupt;
use crate::output;
use crate::progress::Progress;
use serde::Serialize;
use silvics_store::testing::{SUBJECTS, Subject};
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::{self, Until};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The prefix of the names of planted mistakes.
const CANARY: &str = "canary:";

/// A kind of store with a planted mistake, if there is one.
#[derive(Clone, Copy)]
struct Target {
    subject: &'static Subject,
    canary: Option<Canary>,
}

#[cfg(feature = "canaries")]
use silvics_store::canary::Canary;
/// A mistake that can be planted: there is none without the feature `canaries`.
#[cfg(not(feature = "canaries"))]
#[derive(Clone, Copy)]
enum Canary {}

/// The kinds of stores of a list of policies, or all of them.
fn targets(text: Option<&str>) -> Result<Vec<Target>, Error> {
    let all = SUBJECTS.iter().map(|subject| Target { subject, canary: None });
    let Some(text) = text else { return Ok(all.collect()) };
    let mut targets: Vec<Target> = Vec::new();
    for item in text.split(',') {
        if let Some(name) = item.strip_prefix(CANARY) {
            targets.extend(with_canary(name)?);
            continue;
        }
        let found = all.clone().filter(|target| is_called(target.subject, item));
        let before = targets.len();
        targets.extend(found);
        if targets.len() == before {
            let mut names: Vec<&str> = SUBJECTS.iter().map(|subject| subject.policy).collect();
            names.sort_unstable();
            names.dedup();
            let problem = format!(
                "`{item}` is no policy of a store: choose from {}, or add the structure of its \
                 indexes as in optimistic/words",
                names.join(", ")
            );
            return Err(Error::value("--store", problem));
        }
    }
    Ok(targets)
}

/// Whether a kind of store has this name: its policy, or `POLICY/STRUCTURE`.
fn is_called(subject: &Subject, name: &str) -> bool {
    match name.split_once('/') {
        Some((policy, structure)) => subject.policy == policy && subject.structure == structure,
        None => subject.policy == name,
    }
}

#[cfg(feature = "canaries")]
fn with_canary(name: &str) -> Result<Vec<Target>, Error> {
    let canary = Canary::ALL.into_iter().find(|canary| canary.name() == name);
    let Some(canary) = canary else {
        let names = Canary::ALL.map(Canary::name).join(", ");
        let problem = format!("`{CANARY}{name}` is not a canary: choose from {names}");
        return Err(Error::value("--store", problem));
    };
    let target = |subject| Target { subject, canary: Some(canary) };
    Ok(Subject::with(canary).map(target).collect())
}

#[cfg(not(feature = "canaries"))]
fn with_canary(name: &str) -> Result<Vec<Target>, Error> {
    let problem = format!(
        "`{CANARY}{name}` needs a build that can plant mistakes: add --features canaries to cargo run"
    );
    Err(Error::value("--store", problem))
}

/// Plants a mistake in all stores of the process, or none.
fn plant(canary: Option<Canary>) {
    #[cfg(feature = "canaries")]
    silvics_store::canary::plant(canary);
    #[cfg(not(feature = "canaries"))]
    let _: Option<Canary> = canary;
}

/// The result of a run.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    /// The source of time stamps: `tsc`, or a shared `counter`.
    clock: &'static str,
    threads: Vec<usize>,
    seed: u64,
    anomalies: usize,
    by_store: Vec<Row>,
    interrupted: bool,
}

/// One kind of store.
#[derive(Debug, Serialize)]
struct Row {
    policy: &'static str,
    structure: &'static str,
    seconds: f64,
    transactions: u64,
    aborted: u64,
    operations: u64,
    histories: u64,
    /// Choices that the check left open: see `silvics_testkit::serial`.
    open: u64,
    anomaly: Option<String>,
}

/// Records histories of transactions and checks them. Returns the exit code.
pub fn verify(args: &VerifyArgs, stores: Option<&str>) -> Result<u8, Error> {
    refuse_others(args)?;
    let format = Format::parse(&args.format)?;
    let targets = targets(stores)?;
    let threads = list("--threads", args.threads.as_deref().unwrap_or("2,3"), |text| {
        number(text, 1, THREADS_MAX.min(serial::Plan::THREADS_MAX))
    })?;
    let time = single("--seconds", args.seconds.as_deref().unwrap_or("30"), seconds)?;
    let seed = single("--seed", args.seed.as_deref().unwrap_or("1"), seed)?;
    interrupt::catch();
    let clock = Clock::new();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut report = Report {
        machine: Machine::this(cores),
        clock: clock.source().name(),
        threads: threads.clone(),
        seed,
        anomalies: 0,
        by_store: Vec::new(),
        interrupted: false,
    };
    let progress = Progress::new(targets.len());
    for target in &targets {
        progress.doing(format!("{} over {}", target.subject.policy, target.subject.structure));
        let until = Until::Elapsed(time / targets.len() as u32);
        let plan = serial::Plan { threads: threads.clone(), seed, until, ..Default::default() };
        let begun = Instant::now();
        plant(target.canary);
        let recorded = target.subject.verify(&plan, &clock, interrupt::pending_beat);
        plant(None);
        if let Some(failure) = recorded.exhausted {
            let (index, problem) = (target.subject.policy.into(), failure.reason().into());
            return Err(Error::Exhausted { index, problem });
        }
        report.by_store.push(Row::of(target.subject, &recorded, begun.elapsed()));
        report.anomalies += usize::from(recorded.found.is_some());
        progress.step();
        if recorded.found.is_some() || interrupt::pending() {
            break;
        }
    }
    report.interrupted = interrupt::pending();
    drop(progress);
    report.print(format)?;
    Ok(match (report.anomalies > 0, report.interrupted) {
        (true, _) => super::WRONG,
        (false, true) => interrupt::EXIT_CODE,
        (false, false) => 0,
    })
}

/// Refuses flags that have no meaning for transactions.
fn refuse_others(args: &VerifyArgs) -> Result<(), Error> {
    let remedy = "a store has transactions, so leave the other out";
    plan::refuse("--store", remedy, plan::subjects(args))?;
    let files = [("--history", args.history.is_some()), ("--replay", args.replay.is_some())];
    plan::refuse("--store", remedy, files)
}

impl Row {
    fn of(subject: &Subject, recorded: &serial::Report, time: Duration) -> Self {
        Self {
            policy: subject.policy,
            structure: subject.structure,
            seconds: time.as_secs_f64(),
            transactions: recorded.committed,
            aborted: recorded.aborted,
            operations: recorded.operations,
            histories: recorded.histories,
            open: recorded.open,
            anomaly: recorded.found.as_ref().map(|found| found.what.to_string()),
        }
    }
}

const HEADER: [&str; 9] = [
    "policy",
    "structure",
    "seconds",
    "transactions",
    "aborted",
    "operations",
    "histories",
    "open",
    "anomaly",
];

impl Report {
    fn print(&self, format: Format) -> Result<(), Error> {
        match format {
            Format::Table => output::text(&self.table()),
            Format::Json => output::json(self),
            Format::Csv => output::csv(&HEADER, self.by_store.iter().map(Row::record)),
        }
    }

    fn table(&self) -> String {
        let mut text = format!("silvics {} on {}\n", self.machine.silvics, self.machine);
        let threads: Vec<String> = self.threads.iter().map(ToString::to_string).collect();
        _ = writeln!(
            text,
            "histories of transactions with {} threads, seed {}, clock {}; each must be strictly \
             serializable\n",
            threads.join(" or "),
            self.seed,
            self.clock,
        );
        let mut table = output::table(&HEADER[..8]).drops(&["open", "seconds", "operations"]);
        for row in &self.by_store {
            let mut record = row.record();
            record.truncate(8);
            for figure in &mut record[3..] {
                *figure = figure.parse().map_or(figure.clone(), count);
            }
            record[2] = format!("{:.1}", row.seconds);
            table.add_row(record);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
        _ = writeln!(text, "{table}");
        for row in self.by_store.iter().filter(|row| row.anomaly.is_some()) {
            let anomaly = row.anomaly.as_deref().unwrap_or_default();
            _ = writeln!(text, "\n{} over {}: {anomaly}", row.policy, row.structure);
        }
        let all: u64 = self.by_store.iter().map(|row| row.transactions).sum();
        let anomalies = match self.anomalies {
            0 => "no anomaly".into(),
            some => format!("{some} anomaly"),
        };
        _ = writeln!(text, "\n{} transactions checked, {anomalies}", count(all as usize));
        if self.interrupted {
            text.push_str("Interrupted: this is what was finished.\n");
        }
        text
    }
}

impl Row {
    fn record(&self) -> Vec<String> {
        vec![
            self.policy.into(),
            self.structure.into(),
            self.seconds.to_string(),
            self.transactions.to_string(),
            self.aborted.to_string(),
            self.operations.to_string(),
            self.histories.to_string(),
            self.open.to_string(),
            self.anomaly.clone().unwrap_or_default(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_named_by_policy_and_structure() {
        let names = |text| -> Vec<String> {
            let targets = targets(text).unwrap();
            let name =
                |target: &Target| format!("{}/{}", target.subject.policy, target.subject.structure);
            targets.iter().map(name).collect()
        };
        assert_eq!(names(None).len(), SUBJECTS.len());
        assert_eq!(names(Some("optimistic/words")), ["optimistic/words"]);
        assert!(names(Some("wait-die,no-wait:study")).len() >= 4);
        let error = targets(Some("optimist")).err().unwrap().to_string();
        assert!(error.contains("`optimist` is no policy of a store: choose from no-wait, "));
    }
}
