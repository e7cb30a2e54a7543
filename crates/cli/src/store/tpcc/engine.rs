//! The database of a contender.

use super::data;
use super::run::Worker;
use crate::flags::error::Error;
use crate::store::contenders::{ByPolicy, Contender, Make, lists};
use crate::store::engine::{Measured, Memory, Stop};
use crate::store::meter::{Fault, Lap};
use crate::store::timed::Timed;
use silvics::Options;
use silvics_store::durability::{CheckpointError, Recovery};
use silvics_store::index::{Lists, MultiLists, Named, Scannable, Search};
use silvics_store::{Policy, Store};
use silvics_testkit::serial;
use silvics_tpcc::serial::{Recorder, Versions};
use silvics_tpcc::{Database, Failure, Outcome, Scrambled, Session, Structures, Unit, Violation};
use silvics_workload::tpcc::{Population, Scale, Transaction};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The transactions of a thread.
pub type Record = Vec<serial::Transaction>;

/// A database that is loaded, run and checked.
pub trait Engine: Measured {
    /// Loads a part of the population. Returns the number of rows.
    fn load(&self, population: &Population, unit: &Unit) -> Result<u64, Stop>;

    /// Runs the transactions of a thread: see [`Worker::drive`].
    fn run(&self, worker: Worker) -> Result<Lap, Stop>;

    /// Runs the transactions of a thread, and returns what they have read and written.
    fn record(&self, worker: Worker, recorder: Recorder<'_>) -> Result<(Lap, Record), Stop>;

    /// The versions of all items, while no transaction runs.
    fn versions(&self, scale: Scale) -> Result<Versions, Fault>;

    /// The violations of the consistency conditions.
    fn violations(&self, scale: Scale) -> Result<Vec<Violation>, Fault>;

    /// The numbers of warehouses, items, and customers of a district.
    fn scale(&self) -> (u32, u32, u32);

    /// The transactions that were committed so far.
    fn commits(&self) -> u64;

    /// Writes a checkpoint, if the database is kept.
    fn checkpoint(&self) -> Result<(), Fault>;
}

/// The microseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

/// The reason why a transaction failed, for the report: missing rows are wrong answers.
fn stop(failure: &Failure) -> Stop {
    match failure {
        Failure::Missing { .. } => Stop::Wrong(failure.to_string()),
        Failure::Store(error) => Stop::of(error, "--data"),
        _ => Stop::Refused(failure.to_string()),
    }
}

/// Fails unless a transaction has ended as it must.
fn expected(transaction: &Transaction, outcome: Result<Outcome, Failure>) -> Result<(), Stop> {
    let outcome = std::hint::black_box(outcome.map_err(|failure| stop(&failure))?);
    let must_roll_back = matches!(transaction, Transaction::NewOrder(order) if order.rolls_back());
    if matches!(outcome, Outcome::RolledBack) == must_roll_back {
        return Ok(());
    }
    Err(Stop::Wrong(format!("{transaction:?} has ended with {outcome:?}")))
}

impl<P: Policy, I: Scannable + Search<Form = u64>> Engine for Database<P, I> {
    fn load(&self, population: &Population, unit: &Unit) -> Result<u64, Stop> {
        Self::load(self, population, unit).map_err(|failure| stop(&failure))
    }

    fn run(&self, worker: Worker) -> Result<Lap, Stop> {
        let transact = |session: &mut Session, transaction: &_| {
            expected(transaction, self.run_deferred(transaction, session, now()))
        };
        let wait = |session: &_| self.wait(session).map_err(|failure| stop(&failure));
        worker.drive(Session::default(), transact, wait).map(|(lap, _)| lap)
    }

    fn record(&self, worker: Worker, recorder: Recorder<'_>) -> Result<(Lap, Record), Stop> {
        let transact = |recorder: &mut Recorder<'_>, transaction: &_| {
            expected(transaction, recorder.run(self, transaction, now()))
        };
        let (lap, recorder) = worker.drive(recorder, transact, |_| Ok(()))?;
        Ok((lap, recorder.committed()))
    }

    fn versions(&self, scale: Scale) -> Result<Versions, Fault> {
        Versions::of(self, scale).map_err(|failure| Fault::Stop(stop(&failure)))
    }

    fn violations(&self, scale: Scale) -> Result<Vec<Violation>, Fault> {
        self.check(scale).map_err(|failure| Fault::Stop(stop(&failure)))
    }

    fn scale(&self) -> (u32, u32, u32) {
        Self::scale(self)
    }

    fn commits(&self) -> u64 {
        self.store().stats().commits
    }

    fn checkpoint(&self) -> Result<(), Fault> {
        match self.store().checkpoint() {
            Ok(_) | Err(CheckpointError::NotDurable) => Ok(()),
            Err(error) => {
                let problem = format!("the database was not kept, so load it again: {error}");
                Err(Fault::Stop(Stop::Log("--data", problem)))
            }
        }
    }
}

impl<P: Policy, I: Scannable + Search<Form = u64>> Measured for Database<P, I> {
    fn memory(&self) -> Vec<Memory> {
        let tables = Self::memory(self).into_iter();
        tables.flat_map(|(table, parts)| Memory::of(parts, &format!("{table}."))).collect()
    }

    fn aborts(&self) -> Vec<(&'static str, u64)> {
        let aborts = self.store().stats().aborts;
        aborts.into_iter().map(|(reason, count)| (reason.name(), count)).collect()
    }

    fn times_index(&self) -> bool {
        true
    }
}

/// A database, and how it was recovered, if it is kept.
type Made = (Box<dyn Engine>, Option<Recovery>);

/// Makes the database of a contender: an empty one, or the one in a folder.
pub fn make(contender: &Contender, folder: Option<&Path>) -> Result<Made, Error> {
    contender.with_policy(Maker { contender, folder })
}

struct Maker<'a> {
    contender: &'a Contender,
    folder: Option<&'a Path>,
}

fn database<P: Policy, I: Scannable + Search<Form = u64>>(
    Maker { contender, folder }: Maker<'_>,
    structures: &Structures<I>,
) -> Result<Made, Error> {
    if let Some(path) = folder {
        let (options, folder) = (contender.options(), data::folder(path)?);
        let opened =
            Store::<P>::open(&options, folder, |store| Database::create_tables(store, structures));
        let failed = |error: &dyn fmt::Display| {
            Error::value("--data", format_args!("{}: {error}", path.display()))
        };
        let (store, (), recovery) = opened.map_err(|error| failed(&error))?;
        let database = Database::<P, I>::new(store).map_err(|error| failed(&error))?;
        return Ok((Box::new(database), Some(recovery)));
    }
    let made = || -> Result<Database<P, I>, silvics_store::Error> {
        let store = Store::<P>::with_options(&contender.options())?;
        Database::create_tables(&store, structures)?;
        Database::new(store)
    };
    let made = made().map_err(|error| Error::value("--index", error))?;
    Ok((Box::new(made), None))
}

/// Indexes that scan.
fn ranges<I: Search<Form = u64>>(make: Make<I>) -> Structures<Timed<I>> {
    Structures::scanning(move |options| make(options).map(Timed))
}

/// Indexes that need not scan, of scrambled keys, the unique ones made by `make`.
fn points<I: Search<Form = u64>>(
    contender: &Contender,
    make: Make<I>,
) -> Structures<Timed<Scrambled<I>>> {
    let named = Arc::new(contender.named());
    Structures::points(
        move |options| Ok(Timed(Scrambled(make(options)?))),
        move |spec| {
            let named = Arc::clone(&named);
            spec.made_by(move |options| {
                MultiLists::around(Scrambled(named(options)?), options).map(Timed)
            })
        },
    )
}

impl ByPolicy for Maker<'_> {
    type Made = Made;

    fn direct<P: Policy, I: Scannable + Search<Form = u64>>(
        self,
        index: Make<I>,
    ) -> Result<Made, Error> {
        database::<P, _>(self, &ranges(index))
    }

    fn named<P: Policy>(self, index: Make<Named<u64>>) -> Result<Made, Error> {
        if index(&Options::default()).is_ok_and(|index| index.scans()) {
            return database::<P, _>(self, &ranges(index));
        }
        let structures = points(self.contender, index);
        database::<P, _>(self, &structures)
    }

    fn listed<P: Policy>(self) -> Result<Made, Error> {
        let contender = self.contender;
        let make: Make<Lists<Named<u64>>> = lists(contender.named());
        database::<P, _>(self, &points(contender, make))
    }
}
