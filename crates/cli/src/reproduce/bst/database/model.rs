//! The translations that transactions need, in the model.
//!
//! # Method
//! Real transactions run on a database that one thread has loaded. The tree records the reads of
//! each lookup. The heap has recorded the places of the row's objects, so the reads of the database
//! follow: of each request the cell, the wrapper, the row, its lock and its columns; at the commit,
//! of each row again the wrapper, the row and the lock, and the columns if they were updated.
//!
//! The memory of the transaction itself and the latches of keys are left out: they are some pages,
//! and lie where they lie whatever the heap.

use super::engine::Engine;
use super::loaded::{OfRow, Recorded};
use super::trees::LOCK_BYTES;
use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::lab::Lab;
use silvics_layout::record::Read;
use silvics_layout::{Counts, Machine, MachineError, Model, PageSize};
use silvics_workload::Share;
use silvics_workload::ycsb::{Request, Study, StudyError};

/// The misses of a transaction, on average.
#[derive(Clone, Copy, Debug, Default)]
pub struct Misses {
    /// Translations that were not in the first level.
    pub first: f64,
    /// Translations that were in no level.
    pub walks: f64,
    /// Those of them that lookups in the tree needed.
    pub in_index: f64,
}

/// The misses of one database in several models.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modelled {
    /// On pages of 4 KiB.
    pub small: Misses,
    /// On pages of 2 MiB.
    pub huge: Misses,
}

/// The transactions that count; as many before them fill the model.
const TRANSACTIONS: usize = 2_000;

/// A model, with the size of its pages.
struct Replayed {
    model: Model,
    pages: PageSize,
    before: Counts,
    /// The walks for reads of the tree.
    in_index: u64,
}

impl Replayed {
    fn new(machine: &Machine, pages: PageSize) -> Result<Self, MachineError> {
        Ok(Self { model: Model::new(machine)?, pages, before: Counts::default(), in_index: 0 })
    }

    /// Restarts the counting. Earlier transactions have only filled the model.
    fn warm(&mut self) {
        (self.before, self.in_index) = (self.model.counts(), 0);
    }

    fn read(&mut self, address: usize, bytes: usize) {
        self.model.read(address, bytes, self.pages);
    }

    /// Reads the path of a lookup.
    fn look_up(&mut self, path: &[Read]) {
        let before = self.model.counts().page_walks;
        for step in path {
            self.read(step.address, step.bytes);
        }
        self.in_index += self.model.counts().page_walks - before;
    }

    fn misses(&self, transactions: usize) -> Misses {
        let counts = self.model.counts() - self.before;
        let each = |count: u64| count as f64 / transactions.max(1) as f64;
        Misses {
            first: each(counts.tlb_misses),
            walks: each(counts.page_walks),
            in_index: each(self.in_index),
        }
    }
}

/// The bytes that are read of the objects of a row.
const WORD: usize = 8;
const ROW_HEAD: usize = 16;
const COLUMNS: usize = 128;

/// Calls `read` with the address and the bytes of each read of a request, after those of its
/// lookup.
fn of_request([row, columns, wrapper, lock, cell]: OfRow, mut read: impl FnMut(usize, usize)) {
    read(cell, WORD);
    read(wrapper, WORD);
    read(row, ROW_HEAD);
    read(lock, LOCK_BYTES);
    read(columns, COLUMNS);
}

/// Calls `read` with each read of a row at the commit.
fn of_commit(
    [row, columns, wrapper, lock, _]: OfRow,
    is_update: bool,
    mut read: impl FnMut(usize, usize),
) {
    read(wrapper, WORD);
    read(row, ROW_HEAD);
    if is_update {
        read(columns, COLUMNS);
    }
    read(lock, LOCK_BYTES);
}

/// The study's transactions on this number of rows.
pub fn study(rows: usize, transactions: usize) -> Study {
    Study { rows: rows as u64, transactions: transactions as u64, ..Study::ATC18 }
}

/// The transactions of a thread, one behind the other.
pub fn requests(study: Study, seed: u64, share: Share) -> Result<Vec<Request>, StudyError> {
    let mut stream = study.stream(seed, share)?;
    let mut requests = vec![Request::default(); study.transactions as usize * study.requests];
    stream.fill(&mut requests);
    Ok(requests)
}

impl Modelled {
    /// Runs transactions on a loaded database, and their reads through the models.
    pub fn of(lab: &Lab, name: &str, loaded: &Recorded) -> Result<Self, Error> {
        let rows = loaded.rows.len();
        let count = TRANSACTIONS;
        let study = study(rows, 2 * count);
        let requests = requests(study, lab.plan.seed, Share::ALONE);
        let requests = requests.map_err(|error| Error::value("--keys", error))?;
        let models = models(&lab.plan.machine);
        let mut models = models.map_err(|error| Error::value("--machine", error))?;
        for (number, transaction) in requests.chunks_exact(study.requests).enumerate() {
            if number == count {
                models.iter_mut().for_each(Replayed::warm);
            }
            let replayed = replay(&*loaded.engine, &loaded.rows, transaction, &mut models);
            replayed.map_err(|failure| failure.of(name))?;
            if number.is_multiple_of(256) && interrupt::pending() {
                return Err(Error::Interrupted);
            }
        }
        let [small, huge] = models.each_ref().map(|model| model.misses(count));
        Ok(Self { small, huge })
    }
}

/// A model on small pages, and one on huge pages. Unlike in other experiments, a quick run has the
/// whole machine: even its few rows lie on more pages than there are translations.
fn models(machine: &Machine) -> Result<[Replayed; 2], MachineError> {
    Ok([Replayed::new(machine, PageSize::Small)?, Replayed::new(machine, PageSize::Huge)?])
}

fn replay(
    engine: &dyn Engine,
    rows: &[OfRow],
    requests: &[Request],
    models: &mut [Replayed; 2],
) -> Result<(), Failure> {
    engine.trace(requests, &mut |request: Request, path: &[Read]| {
        for replayed in &mut *models {
            replayed.look_up(path);
            of_request(rows[request.key as usize], |address, bytes| replayed.read(address, bytes));
        }
    })?;
    for request in requests {
        for replayed in &mut *models {
            let row = rows[request.key as usize];
            of_commit(row, request.is_update, |address, bytes| replayed.read(address, bytes));
        }
    }
    Ok(())
}
