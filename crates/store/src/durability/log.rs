//! The log of a durable store: the queue of records, group commit, and waiting.
//!
//! The module documentation of `durability` has the algorithm, and numbers the invariants.

use crate::error::Error;
use crate::policy::Stop;
use silvics::AllocError;
use silvics_memtable::log::{LogError, LogStorage, LogWriter};
use silvics_memtable::{Seqno, WriteBatch};
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use silvics_sync::backoff::Backoff;
use silvics_sync::thread::{Thread, current, park, yield_now};
use silvics_sync::{CachePadded, Mutex};
use std::mem::take;
use std::sync::Arc;

/// The records that are appended by one call of the storage.
const CHUNK: usize = 64;

/// Batches whose memory is kept for later transactions: the most of them, and the most bytes that
/// such a batch has held.
const SPARES: usize = 64;
const SPARE_BYTES: usize = 64 << 10;

/// A transaction that does not wait for its record writes the queue itself if it has more bytes.
const MOST_QUEUED: usize = 8 << 20;

/// The log of a store, shared by its threads.
pub(crate) struct Log {
    pub(super) storage: Arc<dyn LogStorage>,
    /// The name that each file of the log has: the format and the schema.
    pub(super) name: String,
    /// Whether a group is durable only after a sync.
    sync: bool,
    /// The position behind the last record, or 0 if all records are durable.
    unsettled: CachePadded<AtomicU64>,
    /// The position behind the last record that is durable.
    durable: CachePadded<AtomicU64>,
    queue: CachePadded<Mutex<Queue>>,
    /// Whether the queue has more bytes than a transaction should leave to another one.
    is_long: AtomicBool,
    turn: CachePadded<Mutex<Turn>>,
}

/// The records that have a place in the log and are not in a file yet.
#[derive(Default)]
struct Queue {
    records: Vec<(Seqno, WriteBatch)>,
    bytes: usize,
    /// Empty batches with memory.
    spares: Vec<WriteBatch>,
    /// The position of the next record.
    next: Seqno,
    /// Whether the log has failed: it takes no more records.
    has_failed: bool,
}

/// The right to write to the file.
struct Turn {
    /// The writer, unless a thread uses it.
    writer: Option<Box<Writer>>,
    /// The threads that wait for the writer, or for their record.
    waiting: Vec<Thread>,
    /// The checkpoints that wait for the writer. They come before transactions: a thread that
    /// commits all the time would take the writer again before they are awake.
    wanted: usize,
    /// Why the log has failed.
    failure: Option<Arc<str>>,
}

/// The newest file of the log.
pub(super) struct Writer {
    pub(super) file: LogWriter,
    /// The group that is written now. Between groups it is empty, and keeps its memory.
    records: Vec<(Seqno, WriteBatch)>,
    /// The position behind the group.
    end: u64,
}

impl Log {
    /// A log whose records continue in `file`.
    pub(super) fn new(
        storage: Arc<dyn LogStorage>,
        name: String,
        sync: bool,
        file: LogWriter,
    ) -> Self {
        let next = file.next_seqno();
        let writer = Some(Box::new(Writer { file, records: Vec::new(), end: next }));
        let turn = Turn { writer, waiting: Vec::new(), wanted: 0, failure: None };
        Self {
            storage,
            name,
            sync,
            unsettled: CachePadded::new(AtomicU64::new(0)),
            durable: CachePadded::new(AtomicU64::new(next)),
            queue: CachePadded::new(Mutex::new(Queue { next, ..Queue::default() })),
            is_long: AtomicBool::new(false),
            turn: CachePadded::new(Mutex::new(turn)),
        }
    }

    /// Gives a record its place (W1), and returns the position behind it. The batch is exchanged
    /// for an empty one. After an error it has no place, and is as it was.
    pub(crate) fn append(&self, batch: &mut WriteBatch) -> Result<u64, Stop> {
        let mut queue = self.queue.lock();
        if queue.has_failed {
            return Err(Stop::ReadOnly);
        }
        let requested = (queue.records.len() + 1) * size_of::<(Seqno, WriteBatch)>();
        queue.records.try_reserve(1).map_err(|_| AllocError::System { requested })?;
        let spare = queue.spares.pop().unwrap_or_default();
        let (seqno, batch) = (queue.next, std::mem::replace(batch, spare));
        queue.next += u64::from(batch.len());
        queue.bytes += batch.bytes().len();
        queue.records.push((seqno, batch));
        if queue.bytes > MOST_QUEUED {
            self.is_long.store(true, Ordering::Relaxed); // a hint: see `is_long`
        }
        // Release: pairs with the load in `seen`, although the publication of a row would do.
        self.unsettled.store(queue.next, Ordering::Release);
        Ok(queue.next)
    }

    /// A position that is behind the records of all transactions that the caller has read from, or
    /// 0 if these are durable (W3).
    #[inline]
    pub(crate) fn seen(&self) -> u64 {
        // Acquire: an index may have shown by a relaxed load that an entry is gone.
        fence(Ordering::Acquire);
        self.unsettled.load(Ordering::Acquire)
    }

    /// Whether all records before a position are durable.
    #[inline]
    pub(crate) fn is_durable(&self, position: u64) -> bool {
        self.durable.load(Ordering::Acquire) >= position
    }

    /// Whether the queue has more bytes than a transaction should leave to another one.
    pub(super) fn is_long(&self) -> bool {
        // Relaxed: a transaction that misses it leaves the queue to the next one.
        self.is_long.load(Ordering::Relaxed)
    }

    /// The position behind the last record.
    pub(super) fn end(&self) -> u64 {
        self.queue.lock().next
    }

    /// Waits until all records before a position are durable. If no thread writes, this one does.
    pub(crate) fn wait(&self, position: u64) -> Result<(), Error> {
        let mut backoff = Backoff::new();
        loop {
            let mut turn = self.turn.lock();
            if self.is_durable(position) {
                return Ok(());
            }
            if let Some(why) = &turn.failure {
                return Err(Error::Unacknowledged { why: Arc::clone(why) });
            }
            if turn.wanted == 0
                && let Some(writer) = turn.writer.take()
            {
                drop(turn);
                Lead::new(self, writer).write(self.sync);
            } else if !cfg!(silvics_shuttle) && !backoff.yields() {
                // A group on a fast medium is written before a thread could sleep. In a model the
                // thread sleeps at once, so that a wake-up that is missing shows.
                drop(turn);
                backoff.wait();
            } else {
                turn.wait();
                drop(turn);
                park();
            }
        }
    }

    /// Waits for the writer, and takes it.
    pub(super) fn lead(&self) -> Result<Lead<'_>, Arc<str>> {
        let mut has_waited = false;
        loop {
            let mut turn = self.turn.lock();
            let failure = turn.failure.clone();
            if failure.is_some() || turn.writer.is_some() {
                turn.wanted -= usize::from(has_waited);
            }
            if let Some(why) = failure {
                return Err(why);
            }
            if let Some(writer) = turn.writer.take() {
                drop(turn);
                return Ok(Lead::new(self, writer));
            }
            turn.wanted += usize::from(!has_waited);
            has_waited = true;
            turn.wait();
            drop(turn);
            park();
        }
    }

    /// Why the log has failed.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.turn.lock().failure.clone()
    }

    /// Refuses all further records (W5). The lead, when it is dropped, wakes the threads that wait.
    fn fail(&self, why: &str) {
        {
            let mut queue = self.queue.lock();
            queue.has_failed = true;
            queue.records.clear();
        }
        self.turn.lock().failure.get_or_insert_with(|| why.into());
    }
}

impl Turn {
    /// Enters the calling thread, which then parks.
    fn wait(&mut self) {
        if self.waiting.try_reserve(1).is_ok() {
            self.waiting.push(current());
        } else {
            // Nobody wakes this thread, so it must not park.
            current().unpark();
            yield_now();
        }
    }
}

/// The writer, for one thread. Dropping it gives the writer back, and wakes the threads that wait.
pub(super) struct Lead<'a> {
    log: &'a Log,
    writer: Option<Box<Writer>>,
    /// Whether a call of the storage has begun and has not returned: then it has unwound.
    is_writing: bool,
}

impl<'a> Lead<'a> {
    fn new(log: &'a Log, writer: Box<Writer>) -> Self {
        Self { log, writer: Some(writer), is_writing: false }
    }

    /// Writes the records of the queue as one group, and makes them durable. A failure is final.
    fn write(&mut self, sync: bool) {
        let Some(writer) = &mut self.writer else { return };
        {
            let mut queue = self.log.queue.lock();
            std::mem::swap(&mut queue.records, &mut writer.records);
            writer.end = queue.next;
            queue.bytes = 0;
            self.log.is_long.store(false, Ordering::Relaxed); // under the mutex, as the other store
        }
        self.is_writing = true;
        let done = append(&mut writer.file, &writer.records)
            .and_then(|()| if sync { writer.file.sync() } else { Ok(()) });
        match done {
            Ok(()) => self.log.settle(writer),
            Err(error) => self.log.fail(&error.to_string()),
        }
        self.is_writing = false;
    }

    /// Writes and syncs all records, also if the options ask for no sync. Returns the position
    /// behind them.
    pub(super) fn flush(&mut self) -> Result<u64, Arc<str>> {
        self.write(true);
        match self.log.failure() {
            Some(why) => Err(why),
            None => Ok(self.writer.as_ref().map_or(0, |writer| writer.end)),
        }
    }

    /// Ends the file, and begins the next one, which gets the records that are appended from now on
    /// (W4). Returns its number, and the position of its first record.
    pub(super) fn switch(&mut self) -> Result<(u64, u64), Arc<str>> {
        self.flush()?; // rule R4 of the log
        let log = self.log;
        let Some(writer) = &mut self.writer else { return Ok((0, 0)) };
        let next = writer.file.next_seqno();
        let number = writer.file.number() + 1;
        self.is_writing = true;
        let created = LogWriter::create(&*log.storage, number, next, &log.name);
        self.is_writing = false;
        match created {
            Ok(file) => writer.file = file,
            Err(error) => {
                let why: Arc<str> = error.to_string().into();
                log.fail(&why);
                return Err(why);
            }
        }
        Ok((number, next))
    }
}

impl Log {
    /// Notes that the group of the writer is durable, and keeps the memory of its batches.
    fn settle(&self, writer: &mut Writer) {
        let end = writer.end;
        // Release: pairs with `is_durable`; the acknowledged records are in the file before.
        self.durable.store(end, Ordering::Release);
        // A later record has stored a larger position, or none has, and all are durable.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.unsettled.compare_exchange(end, 0, success, failure);
        let mut queue = self.queue.lock();
        while queue.spares.len() < SPARES
            && queue.spares.try_reserve(1).is_ok()
            && let Some((_, mut batch)) = writer.records.pop()
        {
            if batch.bytes().len() <= SPARE_BYTES {
                batch.clear();
                queue.spares.push(batch);
            }
        }
        drop(queue);
        writer.records.clear(); // frees the others outside of the lock
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if self.is_writing {
            self.log.fail("the storage of the log has panicked");
        }
        let waiting = {
            let mut turn = self.log.turn.lock();
            turn.writer = self.writer.take();
            take(&mut turn.waiting)
        };
        waiting.iter().for_each(Thread::unpark);
    }
}

impl Drop for Log {
    /// Writes the records of transactions that nobody has waited for.
    fn drop(&mut self) {
        let position = self.end();
        if !std::thread::panicking() && !self.is_durable(position) {
            let _ = self.wait(position);
        }
    }
}

/// Appends records. If an allocation fails, it appends fewer at a time.
fn append(file: &mut LogWriter, records: &[(Seqno, WriteBatch)]) -> Result<(), LogError> {
    static EMPTY: WriteBatch = WriteBatch::new();
    let (mut rest, mut most) = (records, CHUNK);
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(rest.len().min(most));
        let mut group = [(0, &EMPTY); CHUNK];
        for (to, (seqno, batch)) in group.iter_mut().zip(chunk) {
            *to = (*seqno, batch);
        }
        match file.append_group(&group[..chunk.len()]) {
            Ok(()) => rest = behind,
            Err(LogError::Alloc(_)) if chunk.len() > 1 => most = chunk.len() / 2,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle, miri))))]
mod tests {
    use super::*;
    use silvics_memtable::log::forgetful::Forgetful;

    /// Transactions took the writer again before a checkpoint that waited for it was awake: with
    /// eight threads and a sync of 0.5 ms, a checkpoint waited for seven groups on average.
    #[test]
    fn a_checkpoint_comes_before_transactions() {
        let storage = Forgetful::new();
        let file = LogWriter::create(&storage, 1, 1, "test").unwrap();
        let log = Log::new(Arc::new(storage), "test".into(), true, file);
        for _ in 0..50 {
            let lead = log.lead().unwrap();
            let durable = log.end();
            let is_waiting = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let checkpoint = scope.spawn(|| {
                    let _lead = log.lead().unwrap();
                    log.is_durable(durable + 1)
                });
                while log.turn.lock().wanted == 0 {
                    std::thread::yield_now();
                }
                scope.spawn(|| {
                    let mut batch = WriteBatch::new();
                    batch.put(b"key", b"value").unwrap();
                    let position = log.append(&mut batch).unwrap();
                    is_waiting.store(true, Ordering::Relaxed);
                    log.wait(position).unwrap();
                });
                while !is_waiting.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                drop(lead);
                assert!(!checkpoint.join().unwrap(), "the transaction was written first");
            });
        }
        assert_eq!(log.turn.lock().wanted, 0);
    }
}
