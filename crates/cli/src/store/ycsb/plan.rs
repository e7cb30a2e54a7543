//! The command line, checked.

use super::job::Job;
use super::make::recorder;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::site::Site;
use crate::flags::store::YcsbArgs;
use crate::flags::units::parse_count;
use crate::flags::values::{THREADS_MAX, list, number, seconds, seed, single};
use crate::store::contenders::{self, Contender};
use silvics_layout::Machine;
use silvics_store::durability::Durability;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_workload::ycsb::{
    Origin, Properties, PropertyError, RequestDist, Study as StudyJob, Workload,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most operations of a transaction.
const TRANSACTION_MAX: usize = 10_000;

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Common(Format),
    /// The lines that YCSB prints.
    Ycsb,
}

impl Output {
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text == "ycsb" {
            return Ok(Self::Ycsb);
        }
        Format::parse(text).map(Self::Common).map_err(|_| {
            let problem = format!("`{text}` is not a format: choose table, json, csv or ycsb");
            Error::value("--format", problem)
        })
    }
}

impl Output {
    /// Fails if the format has no room for the results of a plan.
    pub fn fits(self, plan: &Plan) -> Result<(), Error> {
        let problem = match self {
            Self::Ycsb if plan.model.is_some() => {
                "`ycsb` has no room for a model: leave --model out, or choose json"
            }
            Self::Ycsb if plan.contenders.len() * plan.threads.len() > 1 => {
                "`ycsb` has room for one result: name one index, policy, layout of rows, placement \
                 and number of threads, or choose json"
            }
            _ => return Ok(()),
        };
        Err(Error::value("--format", problem))
    }
}

/// A checked command line.
pub struct Plan {
    pub job: Job,
    pub loads: bool,
    pub contenders: Vec<Contender>,
    pub threads: Vec<usize>,
    pub load_threads: usize,
    pub transaction: usize,
    pub get_many: bool,
    /// The operations of a run, if they end it.
    pub operations: Option<u64>,
    pub time: Option<Duration>,
    pub costs: bool,
    /// The machine of the model, if figures of one were asked for.
    pub model: Option<Machine>,
    /// The folder of the logs, if there are any.
    pub log: Option<Logs>,
    pub rounds: usize,
    pub seed: u64,
    pub format: Output,
    pub notes: Vec<String>,
}

impl Plan {
    /// Reads the flags for a machine.
    pub fn new(args: &YcsbArgs, site: impl Into<Site>, loads: bool) -> Result<Self, Error> {
        let cores = site.into().cores;
        let transaction = |text: &str| number(text, 1, TRANSACTION_MAX);
        let transaction = single("--transaction", &args.transaction, transaction)?;
        let seed = single("--seed", &args.seed, seed)?;
        let (mut job, mut notes) = job(args, seed)?;
        let time = args.seconds.as_deref();
        let time = time.map(|text| single("--seconds", text, seconds)).transpose()?;
        let format = Output::parse(&args.format)?;
        let rounds = args.rounds.as_deref();
        let rounds = rounds.map(|text| single("--rounds", text, |text| number(text, 1, 100_000)));
        // YCSB makes operationcount operations; its format adds all rounds up.
        let rounds = rounds.transpose()?.unwrap_or(if format == Output::Ycsb { 1 } else { 3 });
        let (mut threads, mut operations, mut limit) = (None, None, None);
        if let Job::Core(workload, _) = &job {
            let settings = workload.settings();
            let asked = settings.threads.map(|threads| threads.to_string());
            let asked = asked.map(|text| single("-p threadcount", &text, threads_of));
            threads = asked.transpose()?;
            operations = settings.operations.filter(|_| time.is_none());
            limit = settings.seconds.map(Duration::from_secs);
        }
        let time = time.or(limit);
        if matches!(job, Job::Core(..)) && operations.is_none() && time.is_none() {
            let problem = "there is no operationcount, or it is 0, which means no limit: set it to \
                           a number of operations, or add --seconds";
            return Err(Error::value("-p", problem));
        }
        let threads = match &args.threads {
            Some(text) => list("--threads", text, threads_of)?,
            None => vec![threads.unwrap_or(cores)],
        };
        if let Job::Core(workload, _) = &mut job {
            let grows = workload.inserts_records()
                && workload.settings().request_dist == RequestDist::Zipfian;
            if grows && operations.is_none() {
                notes.push(
                    "requests do not reach all records that are inserted: a run that ends by time \
                     expects the inserts of operationcount"
                        .into(),
                );
            }
            let runs = operations.map_or(1, |_| rounds * threads.len());
            **workload = workload.clone().of_runs(runs as u64);
        }
        let contenders = contenders::all(&args.contenders)?;
        if job.inserts_ascending() {
            notes.extend(contenders::note_on_lists(&contenders));
        }
        let plan = Self {
            contenders,
            loads,
            load_threads: threads.iter().copied().max().unwrap_or(1).min(cores),
            transaction: job.requests().unwrap_or(transaction),
            threads,
            get_many: args.get_many,
            operations,
            time,
            costs: args.costs,
            model: model(args)?,
            log: args.log.as_deref().map(Logs::new).transpose()?,
            rounds,
            seed,
            format,
            notes,
            job,
        };
        let scans = plan.job.scans();
        plan.contenders.iter().try_for_each(|contender| contender.check(scans))?;
        plan.check(args)?;
        Ok(plan)
    }

    /// Fails if flags do not suit each other.
    fn check(&self, args: &YcsbArgs) -> Result<(), Error> {
        if self.loads {
            let flags = [
                ("--seconds", args.seconds.is_some()),
                ("--costs", self.costs),
                ("--model", self.model.is_some()),
                ("--get-many", self.get_many),
                ("--transaction", args.transaction != "1"),
                ("--transactions", args.transactions.is_some()),
            ];
            if let Some((flag, _)) = flags.into_iter().find(|(_, is_set)| *is_set) {
                let problem = "a load makes no operations of the workload: use `ycsb run`";
                return Err(Error::value(flag, problem));
            }
        }
        let database = self.contenders.iter().find(|contender| contender.is_database());
        if let Some(Contender { index, .. }) = database {
            let flags = [
                ("--costs", self.costs),
                ("--model", self.model.is_some()),
                ("--get-many", self.get_many),
                ("--log", self.log.is_some()),
            ];
            if let Some((flag, _)) = flags.into_iter().find(|(_, is_set)| *is_set) {
                let problem = format!("it has no effect on `{index}`: leave one of them out");
                return Err(Error::value(flag, problem));
            }
        }
        if self.model.is_some() {
            if self.job.scans() {
                let problem = "the reads of scans are not recorded: leave --model out, or choose a \
                               workload without scans";
                return Err(Error::value("--model", problem));
            }
            self.contenders.iter().try_for_each(|contender| recorder(contender).map(|_| ()))?;
        }
        self.format.fits(self)?;
        if let (Job::Core(workload, _), true) = (&self.job, self.costs) {
            let shares = workload.settings().proportions;
            if shares.insert >= 1.0 {
                let problem = "the workload only inserts, so it has no lookups to measure";
                return Err(Error::value("--costs", problem));
            }
            if self.get_many && shares.read < 1.0 {
                let problem = "only transactions of reads use get_many, and the workload also \
                               writes or scans: leave --get-many or --costs out";
                return Err(Error::value("--costs", problem));
            }
        }
        Ok(())
    }

    /// Whether a run ends when the first thread has finished.
    pub fn stops_with_first(&self) -> bool {
        matches!(self.job, Job::Study(..))
    }
}

/// The folder of the logs of all stores.
pub struct Logs {
    folder: PathBuf,
    /// The number of stores so far.
    stores: AtomicUsize,
}

impl Logs {
    fn new(folder: &Path) -> Result<Self, Error> {
        let files = std::fs::read_dir(folder);
        if files.is_ok_and(|mut files| files.next().is_some()) {
            let place = folder.display();
            let problem = format!("{place} is not empty: name a new folder, or remove its files");
            return Err(Error::value("--log", problem));
        }
        Ok(Self { folder: folder.into(), stores: AtomicUsize::new(0) })
    }

    /// The place of the log of the next store.
    pub fn next(&self) -> Result<Durability, Error> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed); // the numbers need only differ
        let folder = self.folder.join(number.to_string());
        let failed = |error| Error::value("--log", format_args!("{}: {error}", folder.display()));
        Durability::folder(&folder).map_err(failed)
    }
}

/// The machine of the model.
fn model(args: &YcsbArgs) -> Result<Option<Machine>, Error> {
    let machine = args.model.as_deref().map(Machine::named).transpose();
    machine.map_err(|error| Error::value("--model", error))
}

fn threads_of(text: &str) -> Result<usize, String> {
    number(text, 1, THREADS_MAX)
}

/// Properties of YCSB that have no effect here, and why.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    ("target", "each thread works as fast as it can"),
    ("table", "the table is called usertable"),
    ("zeropadding", "keys are numbers"),
];

/// The properties whose value can have a unit with `-p`, as the numbers of flags. In files they
/// have none, as in those of YCSB.
const COUNTS: [&str; 4] = ["recordcount", "operationcount", "insertcount", "insertstart"];

/// An override in which a number with a unit, as in `recordcount=1M`, is written out.
fn written_out(assignment: &str) -> String {
    let count = assignment.split_once('=').and_then(|(name, value)| {
        let is_count = COUNTS.contains(&name.trim());
        Some((name, is_count.then(|| parse_count(value.trim()))??))
    });
    count.map_or_else(|| assignment.into(), |(name, count)| format!("{name}={count}"))
}

/// The error for properties, with the flag that has set them.
fn wrong_property(error: PropertyError) -> Error {
    let is_override = match &error {
        PropertyError::Override { .. } | PropertyError::Missing { .. } => true,
        PropertyError::Value { origin, .. } => *origin == Origin::Override,
        PropertyError::Proportions { parts, .. } => {
            parts.iter().any(|(_, _, origin)| *origin == Origin::Override)
        }
        _ => false,
    };
    Error::value(if is_override { "-p" } else { "-P" }, error)
}

/// The properties of a command line. Those of files that were read on another machine come from the
/// flags.
fn properties(args: &YcsbArgs) -> Result<Properties, Error> {
    let overrides = args.properties.iter().map(|assignment| written_out(assignment));
    let all = match &args.from_files {
        Some(read) => Properties::read(&[] as &[PathBuf], read.iter().cloned().chain(overrides)),
        None => Properties::read(&args.files, overrides),
    };
    all.map_err(wrong_property)
}

/// The flags, with the properties of their files.
pub fn with_properties(args: &YcsbArgs) -> Result<YcsbArgs, Error> {
    let all = properties(args)?;
    let of_files =
        all.iter().filter(|(_, property)| matches!(property.origin, Origin::File { .. }));
    let read = of_files.map(|(name, property)| format!("{name}={}", property.value)).collect();
    Ok(YcsbArgs { from_files: Some(read), ..args.clone() })
}

/// The benchmark, with notes on properties without an effect.
fn job(args: &YcsbArgs, seed: u64) -> Result<(Job, Vec<String>), Error> {
    if args.study {
        let count = |flag, text: &Option<String>, default: u64| match text {
            Some(text) => {
                single(flag, text, |text| number(text, 1, 1 << 32)).map(|count| count as u64)
            }
            None => Ok(default),
        };
        let study = StudyJob {
            rows: count("--rows", &args.rows, StudyJob::ATC18.rows)?,
            transactions: count(
                "--transactions",
                &args.transactions,
                StudyJob::ATC18.transactions,
            )?,
            ..StudyJob::ATC18
        };
        if study.rows < study.requests as u64 {
            let problem = format!("a transaction has {} distinct rows: name more", study.requests);
            return Err(Error::value("--rows", problem));
        }
        return Ok((Job::study(study, seed), Vec::new()));
    }
    for (flag, value) in [("--rows", &args.rows), ("--transactions", &args.transactions)] {
        if value.is_some() {
            return Err(Error::value(flag, "only the study has it: add --study"));
        }
    }
    if args.files.is_empty() && args.properties.is_empty() {
        let problem = "there is no workload: add for example -P workloads/workloada, or --study";
        return Err(Error::value("-P", problem));
    }
    let properties = properties(args)?;
    let workload = Workload::from_properties(&properties).map_err(wrong_property)?;
    let mut notes: Vec<String> =
        workload.settings().notes.iter().map(ToString::to_string).collect();
    for (name, why) in WITHOUT_EFFECT {
        if let Some(property) = properties.get(name) {
            let origin = &property.origin;
            notes.push(format!("the property `{name}` ({origin}) has no effect here: {why}"));
        }
    }
    Ok((Job::core(workload), notes))
}
