//! The store as an engine.

use super::engine::{Engine, ScanCheck};
use super::job::Job;
use super::run::{Context, Loader, Worker};
use crate::flags::error::Error;
use crate::store::contenders::Make;
use crate::store::engine::{Measured, Memory, Stop};
use crate::store::meter::Lap;
use crate::store::timed::Timed;
use silvics_store::durability::Durability;
use silvics_store::index::{FormOf, Scannable, Search};
use silvics_store::{
    Column, Index, IndexSpec, Policy, Row, Schema, SchemaError, Store, StoreOptions, Table, Tx,
    Type,
};
use silvics_workload::ycsb::{Fields, Op};
use std::ops::ControlFlow;

/// The most keys of a transaction that are looked up at once.
const MANY: usize = 64;

/// A store with one table, whose primary index is `I`.
pub struct Ours<P: Policy, I: Search> {
    pub(super) store: Store<P>,
    table: Table<P>,
    pub(super) index: Index<P, u64, Timed<I>>,
    key: Column<u64>,
    fields: Vec<Column<[u8]>>,
}

pub(super) fn refused(error: &silvics_store::Error) -> Stop {
    Stop::of(error, "--log")
}

impl<P: Policy, I: Search<Form = u64>> Ours<P, I> {
    /// Makes an empty store for a job, with a log if there is a place for it.
    pub fn new(
        job: &Job,
        (options, log): (&StoreOptions, Option<Durability>),
        make: Make<I>,
    ) -> Result<Self, Error> {
        let made = match log {
            None => Store::with_options(options).and_then(|store| {
                let table = store.create_table(Self::schema(job, make))?;
                Self::of(job, store, table)
            }),
            Some(log) => {
                let schema = Self::schema(job, make);
                let opened = Store::open(options, log, |store| store.create_table(schema));
                let (store, table, _) = opened.map_err(|error| Error::value("--log", error))?;
                Self::of(job, store, table)
            }
        };
        made.map_err(|error| match error {
            silvics_store::Error::Schema(SchemaError::TooLarge { bytes, .. }) => {
                let most = silvics_store::ROW_BYTES;
                let problem = format!(
                    "a record has {bytes} bytes, and a row of the store at most {most}: lower \
                     fieldcount or fieldlength"
                );
                Error::value("-p", problem)
            }
            error => Error::value("--index", error),
        })
    }

    fn schema(job: &Job, make: Make<I>) -> Schema {
        let mut spec = IndexSpec::primary(["key"]);
        if !job.scans() {
            spec = spec.points_only();
        }
        let spec = spec.made_by(move |options| make(options).map(Timed));
        let mut schema = Schema::new("usertable").column("key", Type::U64).index(spec);
        for field in 0..job.fields() {
            schema = schema.column(format!("field{field}"), Type::Bytes(job.field_bytes()));
        }
        schema
    }

    /// The engine of a store with its table.
    fn of(job: &Job, store: Store<P>, table: Table<P>) -> Result<Self, silvics_store::Error> {
        let fields = (0..job.fields()).map(|field| table.column(&format!("field{field}")));
        Ok(Self {
            index: table.index_over("primary")?,
            key: table.column("key")?,
            fields: fields.collect::<Result<_, _>>()?,
            table,
            store,
        })
    }

    pub(super) fn insert(
        &self,
        tx: &Tx<'_, P>,
        job: &Job,
        record: u64,
        stamp: u64,
        buffer: &mut [u8],
    ) -> Result<(), silvics_store::Error> {
        tx.insert(&self.table, |row| {
            row.set(self.key, job.key(record))?;
            for (number, column) in self.fields.iter().enumerate() {
                row.set(*column, job.fill(record, number as u32, stamp, buffer))?;
            }
            Ok(())
        })
    }

    /// Checks that a row has the wanted key, and one of the fields that a read has asked for.
    #[inline]
    fn check(
        &self,
        job: &Job,
        (record, wanted): (u64, u64),
        fields: Fields,
        row: &Row<'_>,
    ) -> Result<(), Failed> {
        let key = row.get(self.key)?;
        if key != wanted {
            let wrong = format!("a lookup of key {wanted} has returned the row with key {key}");
            return Err(Failed::Stop(Stop::Wrong(wrong)));
        }
        let field = Job::checked(fields);
        let value = row.get(self.fields[field as usize])?;
        job.check(record, field, value).map_err(|wrong| Failed::Stop(Stop::Wrong(wrong)))
    }
}

/// A failure inside of a transaction.
pub(super) enum Failed {
    Store(silvics_store::Error),
    Stop(Stop),
}

impl From<silvics_store::Error> for Failed {
    fn from(error: silvics_store::Error) -> Self {
        Self::Store(error)
    }
}

/// The records that a transaction inserts, which it keeps when it runs again.
type Numbers<'a> = Vec<silvics_workload::ycsb::Insert<'a>>;

impl<P: Policy, I: Scannable + Search<Form = u64>> Ours<P, I> {
    /// Runs one transaction.
    fn transact(
        &self,
        ops: &[Op],
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Result<(), Stop> {
        let inserts = ops.iter().filter(|op| matches!(op, Op::Insert)).count();
        let numbers: Numbers<'_> = (0..inserts).map(|_| context.inserts.begin()).collect();
        let only_reads = ops.iter().all(|op| matches!(op, Op::Read { .. }));
        let done = self.store.transact(|tx| {
            let mut seen = (0, 0);
            if context.get_many && only_reads {
                self.read_all(tx, ops, context, &mut seen)?;
                return Ok(seen);
            }
            let mut next = numbers.iter();
            for op in ops {
                match *op {
                    Op::Insert => {
                        let Some(number) = next.next() else { continue };
                        self.insert(tx, context.job, number.record(), context.stamp, buffer)?;
                    }
                    _ => self.operate(tx, *op, context, &mut seen, buffer)?,
                }
            }
            Ok(seen)
        });
        match done {
            Ok((missed, scanned)) => {
                context.tally.missed += missed;
                context.tally.scanned += scanned;
                context.tally.inserted += numbers.len() as u64;
                for number in numbers {
                    number.acknowledge();
                }
                Ok(())
            }
            Err(Failed::Store(error)) => Err(refused(&error)),
            Err(Failed::Stop(stop)) => Err(stop),
        }
    }

    /// Makes an operation that is no insertion. `seen` counts records that are missing, and rows
    /// of scans.
    #[inline]
    pub(super) fn operate(
        &self,
        tx: &Tx<'_, P>,
        op: Op,
        context: &Context<'_>,
        seen: &mut (u64, u64),
        buffer: &mut [u8],
    ) -> Result<(), Failed> {
        let job = context.job;
        match op {
            Op::Read { record, fields } | Op::ReadModifyWrite { record, read: fields, .. } => {
                let key = job.key(record);
                match tx.get(&self.index, key)? {
                    Some(row) => self.check(job, (record, key), fields, &row)?,
                    None => seen.0 += 1,
                }
            }
            Op::Scan { record, len, .. } => {
                let mut keys = ScanCheck::new(job, record, len);
                let scan = tx.scan(&self.index, job.key(record)..).limit(len as usize);
                scan.for_each(|row| {
                    keys.see(row.get(self.key)?).map_err(Failed::Stop)?;
                    seen.1 += 1;
                    Ok::<_, Failed>(ControlFlow::Continue(()))
                })?;
                keys.end().map_err(Failed::Stop)?;
            }
            Op::Update { .. } | Op::Insert => {}
        }
        if let Op::Update { record, fields } | Op::ReadModifyWrite { record, write: fields, .. } =
            op
        {
            let found = tx.update(&self.index, job.key(record), |row| {
                for (number, column) in self.fields.iter().enumerate() {
                    let number = number as u32;
                    if fields.contains(number) {
                        row.set(*column, job.fill(record, number, context.stamp, buffer))?;
                    }
                }
                Ok::<(), silvics_store::Error>(())
            })?;
            seen.0 += u64::from(!found);
        }
        Ok(())
    }

    /// Makes a transaction that only reads.
    fn read_all(
        &self,
        tx: &Tx<'_, P>,
        ops: &[Op],
        context: &Context<'_>,
        seen: &mut (u64, u64),
    ) -> Result<(), Failed> {
        for ops in ops.chunks(MANY) {
            let mut keys = [0; MANY];
            for (key, op) in keys.iter_mut().zip(ops) {
                *key = context.job.key(op.record().unwrap_or(0));
            }
            let mut rows = [None; MANY];
            tx.get_many(&self.index, &keys[..ops.len()], &mut rows[..ops.len()])?;
            for ((op, key), row) in ops.iter().zip(keys).zip(&rows) {
                let Op::Read { record, fields } = *op else { continue };
                match row {
                    Some(row) => self.check(context.job, (record, key), fields, row)?,
                    None => seen.0 += 1,
                }
            }
        }
        Ok(())
    }
}

impl<P: Policy, I: Scannable + Search<Form = u64>> Engine for Ours<P, I> {
    fn load(&self, loader: Loader<'_>) -> Result<Lap, Stop> {
        let job = loader.job;
        let mut buffer = vec![0; job.field_bytes() as usize];
        loader.drive(|records| {
            let batch = self.store.transact(|tx| {
                let mut each = records.iter();
                each.try_for_each(|&record| self.insert(tx, job, record, 0, &mut buffer))
            });
            batch.map_err(|error| refused(&error))
        })
    }

    fn run(&self, worker: Worker<'_>) -> Result<Lap, Stop> {
        let mut buffer = vec![0; worker.field_bytes()];
        worker.drive(|ops, context| self.transact(ops, context, &mut buffer))
    }

    fn records(&self) -> Result<u64, Stop> {
        Ok(self.table.len() as u64)
    }

    fn lookups(&self, job: &Job, records: &[u64], get_many: bool) -> Option<u64> {
        let index = &self.index.structure().0;
        let domain = self.store.domain();
        let mut found = 0;
        if get_many {
            let (mut keys, mut words) = ([0; MANY], [None; MANY]);
            for records in records.chunks(MANY) {
                let guard = domain.pin();
                for (key, record) in keys.iter_mut().zip(records) {
                    *key = job.key(*record);
                }
                index.get_many(&keys[..records.len()], &mut words[..records.len()], &guard);
                found += words[..records.len()].iter().flatten().count() as u64;
            }
            return Some(found);
        }
        for records in records.chunks(MANY) {
            let guard = domain.pin();
            let get = |record: &u64| -> Option<u64> {
                let key: FormOf<'_, I> = job.key(*record);
                index.get(key, &guard)
            };
            found += records.iter().filter_map(get).count() as u64;
        }
        Some(found)
    }
}

impl<P: Policy, I: Search> Measured for Ours<P, I> {
    fn memory(&self) -> Vec<Memory> {
        Memory::of(self.table.memory(), "")
    }

    fn aborts(&self) -> Vec<(&'static str, u64)> {
        let aborts = self.store.stats().aborts;
        aborts.into_iter().map(|(reason, count)| (reason.name(), count)).collect()
    }

    fn times_index(&self) -> bool {
        true
    }
}
