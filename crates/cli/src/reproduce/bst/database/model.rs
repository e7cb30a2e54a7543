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
use super::loaded::Recorded;
use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::reproduce::bst::placed::model::{Modelled, Models, OfRow};
use crate::reproduce::lab::Lab;
use silvics_layout::record::Read;
use silvics_workload::Share;
use silvics_workload::ycsb::{Request, Study, StudyError};

/// The transactions that count; as many before them fill the model.
const TRANSACTIONS: usize = 2_000;

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

/// Runs transactions on a loaded database, and their reads through the models.
pub fn replayed(lab: &Lab, name: &str, loaded: &Recorded) -> Result<Modelled, Error> {
    let study = study(loaded.rows.len(), 2 * TRANSACTIONS);
    let requests = requests(study, lab.plan.seed, Share::ALONE);
    let requests = requests.map_err(|error| Error::value("--keys", error))?;
    let transactions: Vec<&[Request]> = requests.chunks_exact(study.requests).collect();
    Modelled::of(&lab.plan.machine, name, TRANSACTIONS, |number, models| {
        replay(&*loaded.engine, &loaded.rows, transactions[number], models)
    })
}

fn replay(
    engine: &dyn Engine,
    rows: &[OfRow],
    requests: &[Request],
    models: &mut Models,
) -> Result<(), Failure> {
    engine.trace(requests, &mut |request: Request, path: &[Read]| {
        models.path(path);
        rows[request.key as usize].look(models);
    })?;
    for request in requests {
        rows[request.key as usize].commit(request.is_update, models);
    }
    Ok(())
}
