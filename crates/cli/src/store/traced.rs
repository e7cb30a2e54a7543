//! Transactions of the store, with what they read.

use super::engine::{Engine, Stop};
use super::ours::{Failed, Ours, refused};
use super::run::Context;
use silvics_layout::record::{self, Read};
use silvics_store::index::{Scannable, Search};
use silvics_store::{Policy, RowPart};
use silvics_workload::ycsb::{Insert, Op};

/// An operation, with what it has read.
pub struct Step {
    /// The reads of its lookups in the index.
    pub path: Vec<Read>,
    /// The parts of its row, in the order in which they are read.
    pub row: Vec<RowPart>,
    /// Whether it writes the row.
    pub writes: bool,
}

/// A store whose index records its reads.
pub trait Traced: Send + Sync {
    /// The store.
    fn engine(&self) -> &dyn Engine;

    /// Runs a transaction and returns its operations. No other thread uses the store.
    fn trace(&self, ops: &[Op], context: &mut Context<'_>) -> Result<Vec<Step>, Stop>;
}

impl<P: Policy, I: Scannable + Search<Form = u64>> Traced for Ours<P, I> {
    fn engine(&self) -> &dyn Engine {
        self
    }

    fn trace(&self, ops: &[Op], context: &mut Context<'_>) -> Result<Vec<Step>, Stop> {
        let job = context.job;
        let mut buffer = vec![0; job.field_bytes() as usize];
        let inserts = ops.iter().filter(|op| matches!(op, Op::Insert));
        let numbers: Vec<Insert<'_>> = inserts.map(|_| context.inserts.begin()).collect();
        let (mut steps, mut seen) = (Vec::new(), (0, 0));
        let done = self.store.transact(|tx| {
            steps.clear();
            let mut next = numbers.iter();
            for op in ops {
                let record = op.record().or_else(|| next.next().map(Insert::record)).unwrap_or(0);
                let mut path = Vec::new();
                record::of(&mut path, || match op {
                    Op::Insert => {
                        let inserted = self.insert(tx, job, record, context.stamp, &mut buffer);
                        inserted.map_err(Failed::Store)
                    }
                    _ => self.operate(tx, *op, context, &mut seen, &mut buffer),
                })?;
                let row = tx.parts(&self.index, job.key(record))?.unwrap_or_default();
                steps.push(Step { path, row, writes: !matches!(op, Op::Read { .. }) });
            }
            Ok(())
        });
        match done {
            Ok(()) if seen.0 == 0 => {
                numbers.into_iter().for_each(Insert::acknowledge);
                Ok(steps)
            }
            Ok(()) => {
                Err(Stop::Wrong(format!("{} operations have not found their record", seen.0)))
            }
            Err(Failed::Store(error)) => Err(refused(&error)),
            Err(Failed::Stop(stop)) => Err(stop),
        }
    }
}
