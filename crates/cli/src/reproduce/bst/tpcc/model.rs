//! The translations that transactions need, in the model.
//!
//! # Method
//! One terminal runs real transactions on a database that one thread has loaded. The tree records
//! the reads of each call, and the heap the places of all objects, so the reads of the database
//! follow. Each row that an index leads to is read: its cell, the wrapper, the row, its lock and
//! all of its columns. An insertion also touches the nodes and descriptors that it allocates. At
//! the commit, the wrapper, the row and the lock of each row are read again, and its columns if
//! they were written.
//!
//! # Approximations
//! 1. An insertion is recorded as the lookup before it. Some trees also record its own descent,
//!    which passes the same nodes. Its writes to nodes on that path are left out.
//! 2. A list is read at the cells of the rows that were found. The cells before them are left out.
//! 3. All columns of a row are read, although a transaction needs some of them. They are read again
//!    at the commit if the kind of transaction writes rows of their table.
//! 4. A new order that is rolled back reads what a commit reads.
//! 5. The memory of the transaction itself and the latches of keys are left out: they are some
//!    pages, and lie where they lie whatever the heap.

use super::engine::{Loaded, TABLES};
use super::traced::Step;
use crate::drive::replayed::Part;
use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::reproduce::bst::placed::model::{Modelled, Models};
use crate::reproduce::lab::Lab;
use silvics_tpcc::Session;
use silvics_workload::Share;
use silvics_workload::tpcc::Transaction;

/// The transactions that count; as many before them fill the model.
const TRANSACTIONS: usize = 2_000;
/// Those of a quick run.
const FEW: usize = 300;

/// Runs transactions on a loaded database, and their reads through the models.
pub fn replayed(lab: &Lab, loaded: &Loaded) -> Result<Modelled, Error> {
    let (mut terminal, mut session) = (loaded.engine.terminal(Share::ALONE), Session::default());
    let count = if lab.plan.quick { FEW } else { TRANSACTIONS };
    Modelled::of(&lab.plan.machine, loaded.engine.tree(), count, |_, models| {
        let transaction = terminal.draw();
        let (done, steps) = loaded.tracer.of(|| loaded.engine.transact(&transaction, &mut session));
        done?;
        replay(&transaction, &steps, models)
    })
}

/// Whether a kind of transaction writes the rows of a table that it finds.
fn writes(transaction: &Transaction, table: &str) -> bool {
    match transaction {
        Transaction::NewOrder(_) => ["district", "stock"].contains(&table),
        Transaction::Payment(_) => ["warehouse", "district", "customer"].contains(&table),
        _ => false,
    }
}

fn replay(transaction: &Transaction, steps: &[Step], models: &mut Models) -> Result<(), Failure> {
    let lost = || Failure::Wrong("the objects of a row were not allocated together".into());
    for step in steps {
        match step {
            Step::Path(path) => models.path(path),
            Step::New(blocks) => {
                for block in blocks {
                    models.read(Part::Index, block.address, block.bytes);
                }
            }
            Step::Row(found) => found.row.ok_or_else(lost)?.look(models),
        }
    }
    for step in steps {
        if let Step::Row(found) = step {
            let table = found.table.and_then(|table| TABLES.get(table));
            let is_written = found.is_new || table.is_some_and(|table| writes(transaction, table));
            found.row.ok_or_else(lost)?.commit(is_written, models);
        }
    }
    Ok(())
}
