//! Writes checkpoints while transactions run.

use super::error::CheckpointError;
use super::image::{self, BLOCK_BYTES};
use super::load::KeyBuf;
use super::storage::{CheckpointFile, CheckpointStorage};
use crate::error::Error;
use crate::policy::Policy;
use crate::store::Store;
use crate::table::TableCore;
use crate::tx::state::Inner;
use silvics::AllocError;
use silvics_memtable::log::LogStorage;
use silvics_sync::backoff::Backoff;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most rows that one transaction of a checkpoint reads.
const MOST_ROWS: usize = 1024;

/// The report of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The number, which is also that of the log at which a replay begins.
    pub number: u64,
    /// The rows.
    pub rows: u64,
    /// The bytes.
    pub bytes: u64,
    /// The time that it took.
    pub took: Duration,
    /// The numbers of the logs that were removed, because the checkpoint replaces them.
    pub removed: Vec<u64>,
}

/// The checkpoints of a store.
#[derive(Default)]
pub(crate) struct Checkpoints {
    /// Their storage, if the store is durable.
    pub(super) storage: Option<Arc<dyn CheckpointStorage>>,
}

impl<P: Policy> Store<P> {
    /// Writes a checkpoint of all rows while other transactions run, then removes the logs and
    /// checkpoints that it replaces. A second call waits for the first one.
    ///
    /// The rows are read by small transactions. If they conflict with other transactions, they run
    /// again; under the locking policies, the others may be aborted, too. Do not call it while this
    /// thread has a transaction that writes or has asked for a row to write: it may never return.
    ///
    /// Do not call this inside of a transaction: if that one has written a row, the call never
    /// returns.
    pub fn checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        let begun = Instant::now();
        let checkpoints = self.core.checkpoint.lock();
        let (Some(log), Some(storage)) = (&self.core.log, &checkpoints.storage) else {
            return Err(CheckpointError::NotDurable);
        };
        let tables = self.core.tables.lock().clone();
        if let Some(table) = tables.iter().find(|table| !table.indexes[0].can_scan()) {
            return Err(CheckpointError::PointsOnly { table: table.name.clone() });
        }
        let in_log = |why| CheckpointError::Log { why };
        let (number, position) = log.lead().and_then(|mut lead| lead.switch()).map_err(in_log)?;
        let failed =
            |error| CheckpointError::Storage { checkpoint: number, error: Arc::new(error) };
        storage.remove_unfinished().map_err(failed)?;
        let header = image::Header { number, position, schema: log.name.clone() };
        let write = || {
            let file = storage.create(number).map_err(failed)?;
            let mut writer = Writer::new(file, &header).map_err(failed)?;
            for table in &tables {
                self.stream(table, &mut writer).map_err(|stop| match stop {
                    Stop::Io(error) => failed(error),
                    Stop::Read(error) => CheckpointError::Read(error),
                })?;
            }
            // W7: everything that the rows contain is in the log, and synced.
            let end = log.lead().and_then(|mut lead| lead.flush()).map_err(in_log)?;
            writer.finish(end).map_err(failed)
        };
        let (rows, bytes) = write().inspect_err(|_| {
            let _ = storage.remove_unfinished(); // it would keep a full disk full
        })?;
        let removed = remove_older(&*log.storage, &**storage, number).map_err(|error| {
            CheckpointError::Removal { checkpoint: number, error: Arc::new(error) }
        })?;
        Ok(Checkpoint { number, rows, bytes, took: begun.elapsed(), removed })
    }

    /// Appends the rows of a table.
    fn stream(&self, table: &TableCore<P>, to: &mut Writer) -> Result<(), Stop> {
        let most = (BLOCK_BYTES / (table.places.words * 8)).clamp(1, MOST_ROWS);
        let (mut last, mut limit) = (None, most);
        let (mut age, mut backoff) = (None, Backoff::new());
        loop {
            let begin = to.block.len();
            let tx = self.begin_at(age);
            let read = tx.read_behind(table, last.as_ref(), limit, &mut to.block);
            let done = read.and_then(|next| tx.end(Inner::commit).map(|()| next));
            match done {
                Ok(next) => {
                    to.rows += ((to.block.len() - begin) / (table.places.words * 8)) as u64;
                    (age, backoff, limit) = (None, Backoff::new(), most.min(2 * limit));
                    if to.block.len() >= BLOCK_BYTES || next.is_none() {
                        drop(tx); // no pin while a file is written
                        to.write_block(table.number).map_err(Stop::Io)?;
                    }
                    if next.is_none() {
                        return Ok(());
                    }
                    last = next;
                }
                Err(Error::Aborted(_)) => {
                    to.block.truncate(begin);
                    (age, limit) = (Some(tx.age()), limit.div_ceil(2));
                    drop(tx);
                    backoff.wait();
                }
                Err(error) => return Err(Stop::Read(error)),
            }
        }
    }
}

impl<P: Policy> crate::tx::Tx<'_, P> {
    /// Appends the next rows of a table behind a primary key. Returns the key of the last one, if
    /// more may follow.
    fn read_behind(
        &self,
        table: &TableCore<P>,
        key: Option<&KeyBuf>,
        limit: usize,
        to: &mut Vec<u8>,
    ) -> Result<Option<KeyBuf>, Error> {
        let index = &*table.indexes[0];
        let (mut count, mut last) = (0, None);
        self.scan_behind(index, key.map(KeyBuf::get)).limit(limit).for_each(|row| {
            let requested = to.len() + row.bytes().len();
            to.try_reserve(row.bytes().len()).map_err(|_| AllocError::System { requested })?;
            to.extend_from_slice(row.bytes());
            count += 1;
            if count == limit {
                last = Some(index.core().with_key(row.bytes(), KeyBuf::of));
            }
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        Ok(last)
    }
}

/// Why rows were not written.
enum Stop {
    Io(io::Error),
    Read(Error),
}

/// Writes the file of a checkpoint.
struct Writer {
    file: Box<dyn CheckpointFile>,
    seed: u32,
    /// The rows of the next block.
    block: Vec<u8>,
    blocks: u64,
    rows: u64,
    bytes: u64,
}

impl Writer {
    fn new(mut file: Box<dyn CheckpointFile>, header: &image::Header) -> io::Result<Self> {
        let (head, seed) = header.encode();
        file.append(&head)?;
        Ok(Self { file, seed, block: Vec::new(), blocks: 0, rows: 0, bytes: head.len() as u64 })
    }

    /// Writes the block as rows of a table, unless it is empty.
    fn write_block(&mut self, table: u32) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let head = image::block_head(self.seed, table, self.blocks, &self.block);
        self.file.append(&head)?;
        self.file.append(&self.block)?;
        self.bytes += (head.len() + self.block.len()) as u64;
        self.blocks += 1;
        self.block.clear();
        Ok(())
    }

    /// Writes the trailer. Returns the numbers of rows and bytes.
    fn finish(mut self, end: u64) -> io::Result<(u64, u64)> {
        let trailer = image::trailer(self.seed, self.blocks, end);
        self.file.append(&trailer)?;
        self.file.finish()?;
        Ok((self.rows, self.bytes + trailer.len() as u64))
    }
}

/// Removes the logs and checkpoints before `number`, the oldest first. Returns the logs.
fn remove_older(
    logs: &dyn LogStorage,
    checkpoints: &dyn CheckpointStorage,
    number: u64,
) -> io::Result<Vec<u64>> {
    let mut older = logs.numbers()?;
    older.retain(|&log| log < number);
    for &log in &older {
        logs.remove(log)?; // rule R5 of the log
    }
    for checkpoint in checkpoints.numbers()?.into_iter().filter(|&older| older < number) {
        checkpoints.remove(checkpoint)?;
    }
    Ok(older)
}
