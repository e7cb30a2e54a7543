//! `surrealmx`: versions of records over a radix tree.

use super::{Pending, Record, refused, writes};
use crate::store::engine::{Measured, Memory, Stop};
use crate::store::meter::Lap;
use crate::store::ycsb::engine::{Engine, ScanCheck};
use crate::store::ycsb::run::{Context, Loader, Worker};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::backoff::Backoff;
use silvics_workload::ycsb::{Fields, Op};
use surrealmx::{Database, Error, Transaction};

pub struct SurrealMx {
    database: Database,
    conflicts: AtomicU64,
}

/// Why a transaction has failed.
enum Failed {
    Database(Error),
    Stop(Stop),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl SurrealMx {
    pub fn new() -> Self {
        Self { database: Database::new(), conflicts: AtomicU64::new(0) }
    }

    fn attempt(
        transaction: &mut Transaction,
        ops: &[Op],
        context: &Context<'_>,
        record_of: &mut Record<'_>,
        pending: &mut Pending<'_>,
    ) -> Result<(), Failed> {
        let job = context.job;
        let key = |record: u64| job.key(record).to_be_bytes();
        let mut inserted = 0;
        for op in ops {
            match *op {
                Op::Read { record, fields } | Op::ReadModifyWrite { record, read: fields, .. } => {
                    let check = |value: &[u8]| record_of.check(record, fields, value);
                    match transaction.with_value(key(record), check)? {
                        Some(checked) => checked.map_err(Failed::Stop)?,
                        None => pending.missed += 1,
                    }
                }
                Op::Scan { record, len, .. } => {
                    let range = key(record).to_vec()..vec![0xFF; 9];
                    let mut keys = ScanCheck::new(job, record, len);
                    let mut seen = Ok(());
                    transaction.scan_with(range, None, Some(len as usize), |key, value| {
                        let key = key.first_chunk().map_or(0, |key| u64::from_be_bytes(*key));
                        seen = keys.see(key);
                        record_of.copy(value);
                        pending.scanned += 1;
                        seen.is_ok()
                    })?;
                    seen.and_then(|()| keys.end()).map_err(Failed::Stop)?;
                }
                Op::Insert => {
                    let record = pending.numbers[inserted].record();
                    let value = record_of.fill(record, context.stamp, Fields::All).to_vec();
                    transaction.put(key(record), value)?;
                    inserted += 1;
                }
                Op::Update { .. } => {}
            }
            if let Op::Update { record, fields }
            | Op::ReadModifyWrite { record, write: fields, .. } = *op
            {
                let copy = |value: &[u8]| record_of.copy(value);
                if transaction.with_value(key(record), copy)?.is_some() {
                    let value = record_of.fill(record, context.stamp, fields).to_vec();
                    transaction.set(key(record), value)?;
                } else {
                    pending.missed += 1;
                }
            }
        }
        Ok(())
    }

    fn transact(
        &self,
        ops: &[Op],
        context: &mut Context<'_>,
        record_of: &mut Record<'_>,
    ) -> Result<(), Stop> {
        let mut pending = Pending::new(ops, context);
        let mut backoff = Backoff::new();
        loop {
            pending.begin();
            let mut transaction = self.database.transaction(writes(ops));
            let done = Self::attempt(&mut transaction, ops, context, record_of, &mut pending);
            let ended = done.and_then(|()| {
                let ended = if writes(ops) { transaction.commit() } else { transaction.cancel() };
                ended.map_err(Failed::Database)
            });
            match ended {
                Ok(()) => break,
                Err(Failed::Database(Error::KeyReadConflict | Error::KeyWriteConflict)) => {
                    self.conflicts.fetch_add(1, Ordering::Relaxed);
                    backoff.wait();
                }
                Err(Failed::Database(error)) => return Err(refused(error)),
                Err(Failed::Stop(stop)) => return Err(stop),
            }
        }
        pending.commit(context);
        Ok(())
    }
}

impl Engine for SurrealMx {
    fn load(&self, loader: Loader<'_>) -> Result<Lap, Stop> {
        let job = loader.job;
        let mut record_of = Record::new(job);
        loader.drive(|records| {
            let mut transaction = self.database.transaction(true);
            for &record in records {
                let value = record_of.fill(record, 0, Fields::All).to_vec();
                transaction.set(job.key(record).to_be_bytes(), value).map_err(refused)?;
            }
            transaction.commit().map_err(refused)
        })
    }

    fn run(&self, worker: Worker<'_>) -> Result<Lap, Stop> {
        let mut record = Record::new(worker.job());
        worker.drive(|ops, context| self.transact(ops, context, &mut record))
    }

    fn records(&self) -> Result<u64, Stop> {
        let mut transaction = self.database.transaction(false);
        let all = Vec::new()..vec![0xFF; 9];
        let count = transaction.total(all, None, None).map_err(refused)?;
        transaction.cancel().map_err(refused)?;
        Ok(count as u64)
    }
}

impl Measured for SurrealMx {
    fn memory(&self) -> Vec<Memory> {
        let (entries, structure) = (self.records().unwrap_or(0), "radix tree".into());
        vec![Memory { part: "table".into(), structure, entries, bytes: None, is_index: false }]
    }

    fn aborts(&self) -> Vec<(&'static str, u64)> {
        vec![("conflict", self.conflicts.load(Ordering::Relaxed))]
    }
}
