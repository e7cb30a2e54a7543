//! Transactions of the store, with what they read.

use super::engine::Engine;
use super::ours::{Failed, Ours, refused};
use super::run::Context;
use crate::store::engine::Stop;
use silvics_layout::record::{self, Read};
use silvics_store::index::{Scannable, Search};
use silvics_store::{Policy, RowPart};
use silvics_workload::ycsb::{Insert, Op};

/// An operation, with what it has read.
#[derive(Clone, Debug)]
pub struct Step {
    /// The reads of its lookups in the index.
    pub path: Vec<Read>,
    /// The parts of its row, in the order in which they are read.
    pub row: Vec<RowPart>,
    /// The address and the bytes of each run of words in the columns that it has changed.
    pub written: Vec<(usize, usize)>,
}

/// The runs of words that differ between two images of a row. An insertion changes all words.
fn changed(columns: &RowPart, before: Option<&[u8]>, after: &[u8]) -> Vec<(usize, usize)> {
    const WORD: usize = 8;
    let Some(before) = before else { return vec![(columns.address, columns.bytes)] };
    let words = before.chunks(WORD).zip(after.chunks(WORD)).enumerate();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in words.filter(|(_, (before, after))| before != after) {
        let address = columns.address + at * WORD;
        match runs.last_mut() {
            Some((start, bytes)) if *start + *bytes == address => *bytes += WORD,
            _ => runs.push((address, WORD)),
        }
    }
    runs
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
            seen = (0, 0);
            let mut next = numbers.iter();
            for op in ops {
                let record = op.record().or_else(|| next.next().map(Insert::record)).unwrap_or(0);
                let image = || tx.get(&self.index, job.key(record));
                let before = image()?.map(|row| row.bytes());
                let mut path = Vec::new();
                record::of(&mut path, || match op {
                    Op::Insert => {
                        let inserted = self.insert(tx, job, record, context.stamp, &mut buffer);
                        inserted.map_err(Failed::Store)
                    }
                    _ => self.operate(tx, *op, context, &mut seen, &mut buffer),
                })?;
                let row = tx.parts(&self.index, job.key(record))?.unwrap_or_default();
                let written = match (row.last(), image()?) {
                    (Some(columns), Some(after)) => changed(columns, before, after.bytes()),
                    _ => Vec::new(),
                };
                steps.push(Step { path, row, written });
            }
            Ok::<(), Failed>(())
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
