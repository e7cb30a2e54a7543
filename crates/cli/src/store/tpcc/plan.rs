//! The command line, checked.

use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::site::Site;
use crate::flags::store::{TpccArgs, TpccVerb};
use crate::flags::values::{THREADS_MAX, list, named, number, seconds, seed, single};
use crate::host::memory;
use crate::store::contenders::{self, Contender, Layout};
use crate::store::meter;
use silvics_workload::tpcc::{Mix, Scale, WAREHOUSES_MAX};
use std::path::PathBuf;
use std::time::Duration;

/// The part of the benchmark that the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The load is measured.
    Load,
    /// The transactions are measured.
    Run,
    /// The transactions are measured, and the conditions are checked.
    Check,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// After this time.
    After(Duration),
    /// When each thread has made this number of transactions.
    Transactions(u64),
}

/// A checked command line.
pub struct Plan {
    pub phase: Phase,
    pub contenders: Vec<Contender>,
    pub scale: Scale,
    pub mix: Mix,
    pub threads: Vec<usize>,
    pub load_threads: usize,
    /// The terminals of a thread: the transactions that it makes before it waits for the log.
    pub terminals: usize,
    pub end: End,
    pub rounds: usize,
    pub seed: u64,
    pub format: Format,
    /// The folder of the database, if it is kept.
    pub data: Option<PathBuf>,
    /// Whether the number of warehouses was asked for.
    pub names_warehouses: bool,
}

/// The bytes of a warehouse with its indexes, about, and of one at the reduced scale. Two
/// warehouses over `map`, with the items, have 206 MB after the load.
const WAREHOUSE_BYTES: usize = 100 << 20;
const REDUCED_BYTES: usize = 2 << 20;

/// The transactions of a thread, at most.
const TRANSACTIONS_MAX: usize = 1 << 40;

/// The name of a mix.
pub fn name(mix: Mix) -> &'static str {
    match mix {
        Mix::Standard => "standard",
        Mix::Half => "half",
    }
}

impl Plan {
    /// Reads the flags for a machine.
    pub fn new(verb: &TpccVerb, site: impl Into<Site>) -> Result<Self, Error> {
        let site = site.into();
        let cores = site.cores;
        let (args, phase) = match verb {
            TpccVerb::Load(args) => (args, Phase::Load),
            TpccVerb::Run(args) => (args, Phase::Run),
            TpccVerb::Check(args) => (args, Phase::Check),
        };
        let threads = match &args.threads {
            Some(text) => list("--threads", text, |text| number(text, 1, THREADS_MAX))?,
            None => vec![cores],
        };
        let most = threads.iter().copied().max().unwrap_or(1);
        let mix = single("--mix", &args.mix, |text| {
            named(text, "a mix", [Mix::Standard, Mix::Half], name)
        })?;
        let contenders = contenders::all(&args.contenders)?;
        let databases = if phase == Phase::Load { 1 } else { contenders.len() };
        let plan = Self {
            phase,
            scale: scale(args, most, databases, site)?,
            contenders,
            mix,
            load_threads: most.min(cores),
            threads,
            terminals: terminals(args, phase)?,
            end: end(args)?,
            rounds: match &args.rounds {
                Some(text) => single("--rounds", text, |text| number(text, 1, 100_000))?,
                None if phase == Phase::Load && args.data.is_some() => 1,
                None => 3,
            },
            seed: single("--seed", &args.seed, seed)?,
            format: Format::parse(&args.format)?,
            data: args.data.clone(),
            names_warehouses: args.warehouses.is_some(),
        };
        plan.check(args)?;
        Ok(plan)
    }

    /// Fails if flags do not suit each other.
    fn check(&self, args: &TpccArgs) -> Result<(), Error> {
        let scans = self.mix == Mix::Standard;
        for contender in &self.contenders {
            if contender.is_database() {
                let problem =
                    format!("`{}` runs YCSB alone: leave it out of TPC-C", contender.index);
                return Err(Error::value("--index", problem));
            }
            if scans && contender.layout != Layout::Inline {
                let problem = "the study's layouts have lists, which cannot scan: add --mix half, \
                               the study's half new orders and half payments";
                return Err(Error::value("--row-layout", problem));
            }
            contender.check(scans)?;
        }
        if self.data.is_some() {
            self.check_data()?;
        }
        let of_runs = [("--seconds", &args.seconds), ("--transactions", &args.transactions)];
        if self.phase == Phase::Load
            && let Some((flag, _)) = of_runs.into_iter().find(|(_, value)| value.is_some())
        {
            let problem = "a load makes no transactions of the workload: use `tpcc run`";
            return Err(Error::value(flag, problem));
        }
        Ok(())
    }
}

impl Plan {
    /// Fails unless one database can be kept.
    fn check_data(&self) -> Result<(), Error> {
        let refused = |problem: &str| Err(Error::value("--data", problem));
        if self.contenders.len() > 1 {
            return refused("a folder holds one database: name one index, policy and placement");
        }
        if self.phase == Phase::Load && self.rounds > 1 {
            return refused("a folder is loaded once: add --rounds 1");
        }
        let ranges = |of: &Contender| of.layout == Layout::Inline && of.check(true).is_ok();
        if !self.contenders.iter().all(ranges) {
            return refused("a checkpoint reads rows in their order, so the index must scan");
        }
        Ok(())
    }
}

fn scale(args: &TpccArgs, threads: usize, databases: usize, site: Site) -> Result<Scale, Error> {
    let warehouses = match &args.warehouses {
        None => threads,
        Some(text) => {
            single("--warehouses", text, |text| number(text, 1, WAREHOUSES_MAX as usize))?
        }
    };
    let of = if args.reduced { Scale::reduced } else { Scale::new };
    let scale = of(warehouses as u32).map_err(|error| Error::value("--warehouses", error))?;
    let each = if args.reduced { REDUCED_BYTES } else { WAREHOUSE_BYTES };
    let needed = warehouses.saturating_mul(each).saturating_mul(databases);
    match memory::available() {
        Some(available) if site.is_here && needed > available => {
            let problem = format!(
                "{databases} databases of {warehouses} warehouses need about {} GB, and {} GB are \
                 available: name fewer",
                needed >> 30,
                available >> 30
            );
            Err(Error::value("--warehouses", problem))
        }
        _ => Ok(scale),
    }
}

/// The terminals of a warehouse (clause 4.2.1).
const TERMINALS: usize = 10;

/// Fewer than the transactions of which one is timed, so that each terminal's turn comes.
const TERMINALS_MAX: usize = meter::SAMPLED as usize - 1;

/// The terminals of each thread. Without a log, there is nothing to wait for.
fn terminals(args: &TpccArgs, phase: Phase) -> Result<usize, Error> {
    let is_kept = args.data.is_some() && phase == Phase::Run;
    match &args.terminals {
        Some(_) if !is_kept => {
            let problem = "only `tpcc run --data` waits for a log: leave the flag out";
            Err(Error::value("--terminals", problem))
        }
        Some(text) => single("--terminals", text, |text| number(text, 1, TERMINALS_MAX)),
        None => Ok(if is_kept { TERMINALS } else { 1 }),
    }
}

fn end(args: &TpccArgs) -> Result<End, Error> {
    match (&args.transactions, &args.seconds) {
        (Some(text), _) => {
            let each = single("--transactions", text, |text| number(text, 1, TRANSACTIONS_MAX));
            Ok(End::Transactions(each? as u64))
        }
        (None, Some(text)) => Ok(End::After(single("--seconds", text, seconds)?)),
        (None, None) => Ok(End::After(Duration::from_secs(2))),
    }
}
