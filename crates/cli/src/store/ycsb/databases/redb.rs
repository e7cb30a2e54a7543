//! `redb` on its in-memory backend.

use super::{Pending, Record, refused, writes};
use crate::store::engine::{Measured, Memory, Stop};
use crate::store::meter::Lap;
use crate::store::ycsb::engine::{Engine, ScanCheck};
use crate::store::ycsb::run::{Context, Loader, Worker};
use redb::backends::InMemoryBackend;
use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable, ReadableTableMetadata as _,
    TableDefinition, WriteTransaction,
};
use silvics_workload::ycsb::{Fields, Op};

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("usertable");

pub struct Redb(Database);

impl Redb {
    pub fn new() -> Result<Self, redb::Error> {
        let database = Database::builder().create_with_backend(InMemoryBackend::new())?;
        let transaction = database.begin_write()?;
        transaction.open_table(TABLE)?;
        transaction.commit()?;
        Ok(Self(database))
    }

    /// Begins a transaction that writes. It is not durable: without this, each commit would write
    /// a header and checksums for a file that does not exist.
    fn begin_write(&self) -> Result<WriteTransaction, Stop> {
        let mut transaction = self.0.begin_write().map_err(refused)?;
        transaction.set_durability(Durability::None).map_err(refused)?;
        Ok(transaction)
    }

    /// A read, or a scan.
    fn read(
        table: &impl ReadableTable<u64, &'static [u8]>,
        op: Op,
        context: &Context<'_>,
        record_of: &mut Record<'_>,
        pending: &mut Pending<'_>,
    ) -> Result<(), Stop> {
        let job = context.job;
        match op {
            Op::Read { record, fields } | Op::ReadModifyWrite { record, read: fields, .. } => {
                match table.get(job.key(record)).map_err(refused)? {
                    Some(value) => record_of.check(record, fields, value.value())?,
                    None => pending.missed += 1,
                }
            }
            Op::Scan { record, len, .. } => {
                let (rows, mut keys) =
                    (table.range(job.key(record)..), ScanCheck::new(job, record, len));
                for row in rows.map_err(refused)?.take(len as usize) {
                    let (key, value) = row.map_err(refused)?;
                    keys.see(key.value())?;
                    record_of.copy(value.value());
                    pending.scanned += 1;
                }
                keys.end()?;
            }
            Op::Update { .. } | Op::Insert => {}
        }
        Ok(())
    }

    fn write(
        &self,
        ops: &[Op],
        context: &Context<'_>,
        record_of: &mut Record<'_>,
        pending: &mut Pending<'_>,
    ) -> Result<(), Stop> {
        let job = context.job;
        let transaction = self.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE).map_err(refused)?;
            let mut inserted = 0;
            for op in ops {
                Self::read(&table, *op, context, record_of, pending)?;
                match *op {
                    Op::Insert => {
                        let record = pending.numbers[inserted].record();
                        let value = record_of.fill(record, context.stamp, Fields::All);
                        table.insert(job.key(record), value).map_err(refused)?;
                        inserted += 1;
                    }
                    Op::Update { record, fields }
                    | Op::ReadModifyWrite { record, write: fields, .. } => {
                        let key = job.key(record);
                        let found = match table.get(key).map_err(refused)? {
                            Some(value) => {
                                record_of.copy(value.value());
                                true
                            }
                            None => false,
                        };
                        if found {
                            let value = record_of.fill(record, context.stamp, fields);
                            table.insert(key, value).map_err(refused)?;
                        }
                        pending.missed += u64::from(!found);
                    }
                    Op::Read { .. } | Op::Scan { .. } => {}
                }
            }
        }
        transaction.commit().map_err(refused)
    }

    fn transact(
        &self,
        ops: &[Op],
        context: &mut Context<'_>,
        record_of: &mut Record<'_>,
    ) -> Result<(), Stop> {
        let mut pending = Pending::new(ops, context);
        if writes(ops) {
            self.write(ops, context, record_of, &mut pending)?;
        } else {
            let transaction = self.0.begin_read().map_err(refused)?;
            let table = transaction.open_table(TABLE).map_err(refused)?;
            for op in ops {
                Self::read(&table, *op, context, record_of, &mut pending)?;
            }
        }
        pending.commit(context);
        Ok(())
    }
}

impl Engine for Redb {
    fn load(&self, loader: Loader<'_>) -> Result<Lap, Stop> {
        let job = loader.job;
        let mut record_of = Record::new(job);
        loader.drive(|records| {
            let transaction = self.begin_write()?;
            {
                let mut table = transaction.open_table(TABLE).map_err(refused)?;
                for &record in records {
                    let value = record_of.fill(record, 0, Fields::All);
                    table.insert(job.key(record), value).map_err(refused)?;
                }
            }
            transaction.commit().map_err(refused)
        })
    }

    fn run(&self, worker: Worker<'_>) -> Result<Lap, Stop> {
        let mut record = Record::new(worker.job());
        worker.drive(|ops, context| self.transact(ops, context, &mut record))
    }

    fn records(&self) -> Result<u64, Stop> {
        let transaction = self.0.begin_read().map_err(refused)?;
        let table = transaction.open_table(TABLE).map_err(refused)?;
        table.len().map_err(refused)
    }
}

impl Measured for Redb {
    fn memory(&self) -> Vec<Memory> {
        let entries = self.records().unwrap_or(0);
        vec![Memory {
            part: "table".into(),
            structure: "B-tree".into(),
            entries,
            bytes: None,
            is_index: false,
        }]
    }
}
