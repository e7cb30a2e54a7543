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
use crate::drive::replayed::{Misses, Part, Replayed};
use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::lab::Lab;
use silvics_layout::record::Read;
use silvics_layout::{Machine, MachineError, PageSize};
use silvics_workload::Share;
use silvics_workload::ycsb::{Request, Study, StudyError};

/// The misses of a transaction of one database in several models, on average.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modelled {
    /// In the tree and in the rows, on pages of 4 KiB.
    pub small: [Misses; 2],
    /// On pages of 2 MiB.
    pub huge: [Misses; 2],
}

/// The transactions that count; as many before them fill the model.
const TRANSACTIONS: usize = 2_000;

/// A model, with the size of its pages.
struct Paged(Replayed, PageSize);

impl Paged {
    fn read(&mut self, part: Part, address: usize, bytes: usize) {
        self.0.read(part, address, bytes, self.1);
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
                for model in &mut models {
                    model.0.warm();
                }
            }
            let replayed = replay(&*loaded.engine, &loaded.rows, transaction, &mut models);
            replayed.map_err(|failure| failure.of(name))?;
            if number.is_multiple_of(256) && interrupt::pending() {
                return Err(Error::Interrupted);
            }
        }
        let [small, huge] = models.each_ref().map(|model| model.0.per_transaction(count));
        Ok(Self { small, huge })
    }
}

/// A model on small pages, and one on huge pages. Unlike in other experiments, a quick run has the
/// whole machine: even its few rows lie on more pages than there are translations.
fn models(machine: &Machine) -> Result<[Paged; 2], MachineError> {
    let [small, huge] = [Replayed::new(machine)?, Replayed::new(machine)?];
    Ok([Paged(small, PageSize::Small), Paged(huge, PageSize::Huge)])
}

fn replay(
    engine: &dyn Engine,
    rows: &[OfRow],
    requests: &[Request],
    models: &mut [Paged; 2],
) -> Result<(), Failure> {
    engine.trace(requests, &mut |request: Request, path: &[Read]| {
        for model in &mut *models {
            for step in path {
                model.read(Part::Index, step.address, step.bytes);
            }
            of_request(rows[request.key as usize], |address, bytes| {
                model.read(Part::Rows, address, bytes);
            });
        }
    })?;
    for request in requests {
        for model in &mut *models {
            let row = rows[request.key as usize];
            of_commit(row, request.is_update, |address, bytes| {
                model.read(Part::Rows, address, bytes);
            });
        }
    }
    Ok(())
}
