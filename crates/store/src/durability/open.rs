//! Opens a durable store: recovery.

use super::error::OpenError;
use super::image::{Part, Reader, Wrong};
use super::load::{Fail, Loader};
use super::log::Log;
use super::schema::{self, Difference};
use super::storage::CheckpointStorage;
use super::{Checkpoints, Durability};
use crate::error::Error;
use crate::policy::Policy;
use crate::store::{Store, StoreOptions};
use silvics_memtable::log::{
    HeaderError, LogError, LogFile, LogStorage, LogWriter, RecoveryError, Stopped, recover_logs,
};
use silvics_sync::Mutex;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The report of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The number of the checkpoint that was loaded, if there was one.
    pub checkpoint: Option<u64>,
    /// The rows of the checkpoint.
    pub checkpoint_rows: u64,
    /// The bytes of the checkpoint.
    pub checkpoint_bytes: u64,
    /// The records of the log that were applied, one for each transaction.
    pub records: u64,
    /// The changes of rows in these records.
    pub operations: u64,
    /// The bytes of these records.
    pub log_bytes: u64,
    /// The rows of the store after the recovery.
    pub rows: u64,
    /// The time that the recovery took.
    pub took: Duration,
    /// The place of the log behind which nothing was applied, unless that is its end: a torn record
    /// is usual after a power failure, and was not acknowledged.
    pub stopped: Option<Stopped>,
    /// The numbers of the logs that were left out, because records before them are lost. That does
    /// not happen unless the medium loses bytes that were synced.
    pub left_out: Vec<u64>,
    /// The bytes of the records of these logs.
    pub left_out_bytes: u64,
}

impl<P: Policy> Store<P> {
    /// Opens a durable store: creates its tables by `create`, loads the newest checkpoint, applies
    /// the log behind it, and begins a new log. Returns the store, what `create` has returned, and
    /// a report.
    ///
    /// `create` must create the same tables in the same order each time, and insert no rows. Only
    /// indexes other than the primary ones may be added or removed. Afterwards the tables are
    /// fixed. If the call fails, the files have the same content as before: see [`OpenError`].
    ///
    /// ```
    /// use silvics_store::durability::Durability;
    /// use silvics_store::{Error, Schema, Store, StoreOptions, Table, Type};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// fn create(store: &Store) -> Result<Table, Error> {
    ///     store.create_table(Schema::new("notes").column("id", Type::U64).primary(["id"]))
    /// }
    /// let options = StoreOptions::default();
    /// let (store, notes, _) = Store::open(&options, Durability::folder(folder)?, create)?;
    /// let id = notes.column::<u64>("id")?;
    /// store.transact(|tx| tx.insert(&notes, |row| row.set(id, 7)))?; // durable now
    /// drop(store);
    ///
    /// let (store, notes, recovery) = Store::open(&options, Durability::folder(folder)?, create)?;
    /// assert_eq!((notes.len(), recovery.records), (1, 1));
    /// store.checkpoint()?; // the next recovery reads this instead of the log before it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open<T>(
        options: &StoreOptions,
        durability: Durability,
        create: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<(Self, T, Recovery), OpenError> {
        let mut store = Self::with_options(options)?;
        let made = create(&store)?;
        let begun = Instant::now();
        let tables = store.core.tables.lock().clone();
        if let Some(table) = tables.iter().find(|table| table.indexes[0].count() > 0) {
            return Err(OpenError::NotEmpty { table: table.name.clone() });
        }
        let name = schema::describe(&tables);
        let Durability { logs, checkpoints, sync } = durability;
        let mut recovery = Recovery::default();
        let mut loader = Loader::new(&store.core, &tables);
        let image = load_checkpoint(&*checkpoints, &name, &mut loader, &mut recovery)?;
        let (number, next) = replay(&logs, &name, image, &mut loader, &mut recovery)?;
        recovery.rows = loader.finish().map_err(|fail| refused(fail, String::new(), 0))?;
        let file = LogWriter::create(&*logs, number, next, &name)?;
        store.core.log = Some(Box::new(Log::new(logs, name, sync, file)));
        store.core.checkpoint = Mutex::new(Checkpoints { storage: Some(checkpoints) });
        recovery.took = begun.elapsed();
        Ok((store, made, recovery))
    }
}

/// The part of the log that a checkpoint needs.
#[derive(Clone, Copy, Debug)]
struct Image {
    /// The number of the checkpoint, and of the log at which the replay begins.
    number: u64,
    /// The position of the first record of that log.
    first: u64,
    /// The position that the log must reach.
    end: u64,
}

/// Loads the newest checkpoint, if there is one.
fn load_checkpoint<P: Policy>(
    storage: &dyn CheckpointStorage,
    name: &str,
    loader: &mut Loader<'_, P>,
    recovery: &mut Recovery,
) -> Result<Option<Image>, OpenError> {
    let failed =
        |checkpoint| move |error| OpenError::Storage { checkpoint, error: Arc::new(error) };
    let numbers = storage.numbers().map_err(failed(None))?;
    let Some(&number) = numbers.last() else { return Ok(None) };
    let file = storage.open(number).map_err(failed(Some(number)))?;
    let wrong = |wrong| match wrong {
        Wrong::Io(error) => failed(Some(number))(error),
        Wrong::Foreign => OpenError::Version { file: format!("checkpoint {number}"), found: None },
        Wrong::Version(found) => {
            let found = Some(found.to_string());
            OpenError::Version { file: format!("checkpoint {number}"), found }
        }
        Wrong::Damaged { offset, why } => OpenError::Damaged { checkpoint: number, offset, why },
    };
    let (header, mut reader) = Reader::open(file).map_err(wrong)?;
    if header.schema != name {
        return Err(differs(format!("checkpoint {number}"), &header.schema, name));
    }
    if header.number != number {
        let why = "the header has another number, so the file was renamed";
        return Err(OpenError::Damaged { checkpoint: number, offset: reader.bytes(), why });
    }
    let end = loop {
        let offset = reader.bytes();
        match reader.next().map_err(wrong)? {
            Part::Rows(table, rows) => {
                let loaded = loader.rows(table, rows);
                let file = || format!("checkpoint {number}");
                recovery.checkpoint_rows += loaded.map_err(|fail| refused(fail, file(), offset))?;
            }
            Part::End(end) => break end,
        }
    };
    recovery.checkpoint = Some(number);
    recovery.checkpoint_bytes = reader.bytes();
    Ok(Some(Image { number, first: header.position, end }))
}

/// Applies the log behind a checkpoint. Returns the number and the first position of the next log.
fn replay<P: Policy>(
    storage: &Arc<dyn LogStorage>,
    name: &str,
    image: Option<Image>,
    loader: &mut Loader<'_, P>,
    recovery: &mut Recovery,
) -> Result<(u64, u64), OpenError> {
    let from = image.map_or(0, |image| image.number);
    let mut first = None;
    let recovered = recover_logs(&Since { storage: Arc::clone(storage), from }, name, |record| {
        // The replay over a fuzzy image must begin where that begins.
        let first = *first.get_or_insert(record.first_seqno);
        if first != image.map_or(1, |image| image.first) {
            return Err(None);
        }
        loader.record(record.batch).map_err(Some)
    });
    let missing = |wanted, found| {
        let checkpoint = image.map(|image| image.number);
        OpenError::Missing { checkpoint, wanted, found }
    };
    let wanted = image.map_or(1, |image| image.first);
    let logs = recovered.map_err(|error| match error {
        RecoveryError::Log(LogError::Header {
            log,
            reason: HeaderError::Comparator { found, .. },
        }) => differs(format!("log {log}"), &found, name),
        RecoveryError::Log(error) => error.into(),
        RecoveryError::Apply { log, offset, error: Some(fail) } => {
            refused(fail, format!("log {log}"), offset)
        }
        // The first record is another one.
        _ => missing(wanted, first.unwrap_or(0)),
    })?;
    let next = logs.last_seqno + 1;
    let found = first.unwrap_or(next);
    if found != wanted {
        return Err(missing(wanted, found));
    }
    if let Some(image) = image
        && next < image.end
    {
        return Err(missing(image.end, next)); // W7
    }
    (recovery.records, recovery.operations) = (logs.batches, logs.operations);
    recovery.log_bytes = logs.bytes;
    (recovery.stopped, recovery.left_out) = (logs.stopped, logs.left_out);
    recovery.left_out_bytes = logs.left_out_bytes;
    // The log at which the image begins may be gone, if nothing was written to it.
    Ok((logs.next_number.max(from + 1), next))
}

/// The error of a file with another description of the tables.
fn differs(file: String, found: &str, declared: &str) -> OpenError {
    match schema::difference(found, declared) {
        Difference::Foreign => OpenError::Version { file, found: None },
        Difference::Version(found) => OpenError::Version { file, found: Some(found) },
        Difference::Table { found, declared } => OpenError::Schema { file, found, declared },
    }
}

/// The error of rows that were not loaded from a file.
fn refused(fail: Fail, file: String, offset: u64) -> OpenError {
    match fail {
        Fail::Alloc(error) => error.into(),
        Fail::Wrong => OpenError::Record { file, offset },
        Fail::Unique { table, index } => OpenError::Unique { table, index },
    }
}

/// The logs from a number on. A checkpoint contains the earlier ones, which may be removed in part.
struct Since {
    storage: Arc<dyn LogStorage>,
    from: u64,
}

impl LogStorage for Since {
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>> {
        self.storage.create(number)
    }
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = self.storage.numbers()?;
        numbers.retain(|&number| number >= self.from);
        Ok(numbers)
    }
    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        self.storage.read(number)
    }
    fn read_into(&self, number: u64, into: &mut Vec<u8>) -> io::Result<()> {
        self.storage.read_into(number, into)
    }
    fn sync(&self, number: u64) -> io::Result<()> {
        self.storage.sync(number)
    }
    fn remove(&self, number: u64) -> io::Result<()> {
        self.storage.remove(number)
    }
}
