//! SQLite in memory.

use super::{Pending, refused, writes};
use crate::store::engine::{Measured, Memory, Stop};
use crate::store::meter::Lap;
use crate::store::ycsb::engine::{Engine, ScanCheck};
use crate::store::ycsb::job::Job;
use crate::store::ycsb::run::{Context, Loader, Worker};
use rusqlite::{Connection, OptionalExtension as _, params_from_iter, types::Value};
use silvics_sync::Mutex;
use silvics_workload::ycsb::{Fields, Op};

pub struct Sqlite {
    connection: Mutex<Connection>,
    insert: String,
    select: String,
    scan: String,
    update_all: String,
    update_one: Vec<String>,
    fields: u32,
}

impl Sqlite {
    pub fn new(job: &Job) -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        let fields = job.fields();
        let all = |of: &dyn Fn(u32) -> String| {
            let columns: Vec<String> = (0..fields).map(of).collect();
            columns.join(", ")
        };
        let columns = all(&|field| format!("field{field} BLOB NOT NULL"));
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; \
             CREATE TABLE usertable (key INTEGER PRIMARY KEY, {columns});"
        ))?;
        let names = all(&|field| format!("field{field}"));
        let sets = all(&|field| format!("field{field} = ?{}", field + 2));
        let marks = all(&|field| format!("?{}", field + 2));
        let one = |field: u32| format!("UPDATE usertable SET field{field} = ?2 WHERE key = ?1");
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self {
            insert: format!("INSERT INTO usertable (key, {names}) VALUES (?1, {marks})"),
            select: format!("SELECT {names} FROM usertable WHERE key = ?1"),
            scan: format!(
                "SELECT {names}, key FROM usertable WHERE key >= ?1 ORDER BY key LIMIT ?2"
            ),
            update_all: format!("UPDATE usertable SET {sets} WHERE key = ?1"),
            update_one: (0..fields).map(one).collect(),
            fields,
            connection: Mutex::new(connection),
        })
    }

    fn write(
        &self,
        connection: &Connection,
        (sql, fields): (&str, Fields),
        job: &Job,
        (record, stamp): (u64, u64),
    ) -> rusqlite::Result<usize> {
        let mut buffer = vec![0; job.field_bytes() as usize];
        let mut values = vec![Value::Integer(job.key(record) as i64)];
        for field in (0..self.fields).filter(|field| fields.contains(*field)) {
            values.push(Value::Blob(job.fill(record, field, stamp, &mut buffer).to_vec()));
        }
        connection.prepare_cached(sql)?.execute(params_from_iter(values))
    }

    /// Reads all fields, as YCSB does, and checks one.
    fn read(
        &self,
        connection: &Connection,
        job: &Job,
        record: u64,
        fields: Fields,
    ) -> Result<bool, Stop> {
        let mut statement = connection.prepare_cached(&self.select).map_err(refused)?;
        let row = statement.query_row([job.key(record) as i64], |row| {
            let bytes = self.copy(row)?;
            let field = Job::checked(fields);
            let blob = row.get_ref(field as usize)?.as_blob()?;
            Ok((bytes, job.check(record, field, blob)))
        });
        match row.optional().map_err(refused)? {
            Some((_, checked)) => checked.map(|()| true).map_err(Stop::Wrong),
            None => Ok(false),
        }
    }

    /// Copies all fields of a row, as a client gets them.
    fn copy(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(1 << 10);
        for field in 0..self.fields as usize {
            bytes.extend_from_slice(row.get_ref(field)?.as_blob()?);
        }
        Ok(bytes)
    }

    fn operate(
        &self,
        connection: &Connection,
        op: Op,
        context: &Context<'_>,
        pending: &mut Pending<'_>,
    ) -> Result<(), Stop> {
        let job = context.job;
        match op {
            Op::Read { record, fields } | Op::ReadModifyWrite { record, read: fields, .. } => {
                pending.missed += u64::from(!self.read(connection, job, record, fields)?);
            }
            Op::Scan { record, len, .. } => {
                let mut statement = connection.prepare_cached(&self.scan).map_err(refused)?;
                let key = job.key(record) as i64;
                let mut rows = statement.query([key, i64::from(len)]).map_err(refused)?;
                let mut keys = ScanCheck::new(job, record, len);
                while let Some(row) = rows.next().map_err(refused)? {
                    let key: i64 = row.get(self.fields as usize).map_err(refused)?;
                    keys.see(key as u64)?;
                    std::hint::black_box(self.copy(row).map_err(refused)?);
                    pending.scanned += 1;
                }
                keys.end()?;
            }
            Op::Update { .. } | Op::Insert => {}
        }
        if let Op::Update { record, fields } | Op::ReadModifyWrite { record, write: fields, .. } =
            op
        {
            let sql = match fields {
                Fields::All => &self.update_all,
                Fields::One(field) => &self.update_one[field as usize],
            };
            let changed = self.write(connection, (sql, fields), job, (record, context.stamp));
            pending.missed += u64::from(changed.map_err(refused)? == 0);
        }
        Ok(())
    }

    fn transact(&self, ops: &[Op], context: &mut Context<'_>) -> Result<(), Stop> {
        let mut pending = Pending::new(ops, context);
        let connection = self.connection.lock();
        let begin = if writes(ops) { "BEGIN IMMEDIATE" } else { "BEGIN" };
        let execute = |sql: &str| -> Result<(), Stop> {
            connection.prepare_cached(sql).and_then(|mut all| all.execute([])).map_err(refused)?;
            Ok(())
        };
        execute(begin)?;
        let mut inserted = 0;
        for op in ops {
            if matches!(op, Op::Insert) {
                let number = (pending.numbers[inserted].record(), context.stamp);
                let insert = (&*self.insert, Fields::All);
                self.write(&connection, insert, context.job, number).map_err(refused)?;
                inserted += 1;
            } else {
                self.operate(&connection, *op, context, &mut pending)?;
            }
        }
        execute("COMMIT")?;
        drop(connection);
        pending.commit(context);
        Ok(())
    }
}

impl Engine for Sqlite {
    fn load(&self, loader: Loader<'_>) -> Result<Lap, Stop> {
        let job = loader.job;
        loader.drive(|records| {
            let connection = self.connection.lock();
            connection.execute_batch("BEGIN").map_err(refused)?;
            for &record in records {
                let insert = (&*self.insert, Fields::All);
                self.write(&connection, insert, job, (record, 0)).map_err(refused)?;
            }
            connection.execute_batch("COMMIT").map_err(refused)
        })
    }

    fn run(&self, worker: Worker<'_>) -> Result<Lap, Stop> {
        worker.drive(|ops, context| self.transact(ops, context))
    }

    fn records(&self) -> Result<u64, Stop> {
        let connection = self.connection.lock();
        let count = connection.query_row("SELECT count(*) FROM usertable", [], |row| row.get(0));
        count.map(|count: i64| count as u64).map_err(refused)
    }
}

impl Measured for Sqlite {
    fn memory(&self) -> Vec<Memory> {
        let connection = self.connection.lock();
        let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
        let bytes = pragma("page_count")
            .and_then(|count: i64| Ok((count * pragma("page_size")?) as u64))
            .ok();
        drop(connection);
        let entries = self.records().unwrap_or(0);
        vec![Memory {
            part: "table".into(),
            structure: "B-tree".into(),
            entries,
            bytes,
            is_index: false,
        }]
    }
}
