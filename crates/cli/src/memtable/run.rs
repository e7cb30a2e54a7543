//! One run of a workload on a new write buffer.

use super::check;
use super::keys::{Draws, Key, Numbers, Purpose, Value};
use super::plan::{Log, Workload};
use super::work::{self, Lap, Tally};
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::host::switches::Switches;
use hdrhistogram::Histogram;
use silvics_memtable::{
    BufferOptions, Index, LogFolder, OpenError, WriteBatch, WriteBuffer, WriteError, WriteMode,
    WriteOptions, WriteStats,
};
use silvics_pool::ArenaStats;
use silvics_workload::Share;
use std::sync::Arc;

/// The operations of a write in the fill before a run, unless their values are long.
const FILL_BATCH: usize = 64;
/// The bytes from which on such a write takes no further operation.
const FILL_BYTES: usize = 1 << 20;

/// The settings of a run.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub workload: Workload,
    pub threads: usize,
    /// The operations of all threads, and the keys to choose from.
    pub num: usize,
    pub batch: usize,
    pub key_size: usize,
    pub value_size: usize,
    pub mode: WriteMode,
    pub yields: bool,
    pub log: &'a Log,
    /// Whether the log is read again after the run.
    pub recovers: bool,
    pub seed: u64,
    pub crew: &'a Crew,
}

/// The result of a run.
pub struct Sample {
    /// Operations per second; in `readwhilewriting` the reads.
    pub ops_per_s: f64,
    /// Writes per second of the thread that writes beside readers.
    pub writer_ops_per_s: Option<f64>,
    /// The keys that reads found.
    pub hits: Option<u64>,
    /// Nanoseconds of one call of some.
    pub latency: Histogram<u64>,
    pub switches: Option<Switches>,
    /// Counts of the run, without the fill.
    pub counts: Counts,
    /// The entries of the table and its bytes.
    pub entries: u64,
    pub bytes: usize,
}

/// The counts of a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub stats: WriteStats,
    pub arena: ArenaStats,
    pub retries: u64,
}

impl Counts {
    fn of<I: Index>(buffer: &WriteBuffer<I>) -> Self {
        let retries = buffer.active().index().retries();
        Self { stats: buffer.stats(), arena: buffer.arena_stats(), retries }
    }

    /// The counts since earlier ones.
    fn since(self, before: &Self) -> Self {
        let (now, then) = (self.stats, before.stats);
        let mut stats = now;
        stats.groups -= then.groups;
        stats.writes -= then.writes;
        stats.log_appends -= then.log_appends;
        stats.log_syncs -= then.log_syncs;
        stats.mutexes -= then.mutexes;
        stats.waits.yielded -= then.waits.yielded;
        stats.waits.blocked -= then.waits.blocked;
        let mut arena = self.arena;
        arena.allocations -= before.arena.allocations;
        arena.main_locks -= before.arena.main_locks;
        arena.contended -= before.arena.contended;
        arena.repicks -= before.arena.repicks;
        // Before there are shards, each allocation takes the lock, and the count grows.
        arena.unsharded_locks -= before.arena.unsharded_locks;
        Self { stats, arena, retries: self.retries - before.retries }
    }
}

impl Job<'_> {
    /// The options of a write.
    pub fn write_options(&self) -> WriteOptions {
        WriteOptions { sync: self.log.syncs() }
    }

    pub fn key(&self) -> Key {
        Key::new(self.key_size)
    }

    /// The draws of a thread.
    pub fn draws(&self, purpose: Purpose, thread: usize) -> Draws {
        Draws::new(self.seed, purpose, thread, self.num)
    }

    /// The threads that fill a buffer before a run.
    pub fn fillers(&self) -> usize {
        self.crew.threads
    }

    /// The operations of a thread.
    pub fn operations(&self, thread: usize, threads: usize) -> std::ops::Range<u64> {
        let part = Share { thread, threads }.part(self.num as u64);
        part.start..part.end
    }

    fn options(&self) -> BufferOptions {
        BufferOptions {
            table_bytes: usize::MAX / 2, // it is never flushed
            mode: self.mode,
            adaptive_yield: self.yields,
            ..BufferOptions::default()
        }
    }

    fn failed(&self, name: &str, error: &WriteError) -> Error {
        let remedy = match self.log {
            Log::None => "lower --num, --batch or --value-size, or free memory",
            Log::Folder { .. } => "free memory and room for the log, or lower --num or --batch",
        };
        Error::value("--memtable", format!("`{name}` could not write ({error}): {remedy}"))
    }
}

/// The keys that a run leaves behind.
pub struct Left {
    /// All keys.
    pub keys: Numbers,
    /// Those that the run itself has written.
    pub of_run: Numbers,
}

impl Left {
    fn of(job: &Job<'_>) -> Self {
        let mut left = Self { keys: Numbers::new(job.num), of_run: Numbers::new(job.num) };
        if job.workload.is_filled_first() {
            let fillers = job.fillers();
            for thread in 0..fillers {
                let mut draws = job.draws(Purpose::Fill, thread);
                for _ in job.operations(thread, fillers) {
                    left.keys.insert(draws.draw());
                }
            }
        }
        for thread in (0..job.threads).filter(|_| job.workload.writes()) {
            let mut draws = job.draws(Purpose::Run, thread);
            for number in job.operations(thread, job.threads) {
                let is_in_order = job.workload == Workload::FillSeq;
                let number = if is_in_order { number } else { draws.draw() };
                left.keys.insert(number);
                left.of_run.insert(number);
            }
        }
        left
    }
}

/// Makes a buffer, fills it if the workload needs this, runs the workload, and checks the answers
/// and the content.
pub fn measure<I: Index>(job: &Job<'_>) -> Result<Sample, Error> {
    let folder = job.log.folder()?;
    let opened = match &folder {
        None => WriteBuffer::<I>::new(job.options()),
        Some(folder) => open(job, folder.path())?,
    };
    let buffer = opened.map_err(|error| Error::value("--memtable", error))?;
    if job.workload.is_filled_first() {
        fill(&buffer, job)?;
    }
    let before = Counts::of(&buffer);
    let laps = work::run(&buffer, job).map_err(|failure| failure.of(I::NAME))?;
    let laps: Result<Vec<Lap>, WriteError> = laps.into_iter().collect();
    let mut laps = laps.map_err(|error| job.failed(I::NAME, &error))?;
    let counts = Counts::of(&buffer).since(&before);
    let wrong = |what| Error::Wrong { index: I::NAME.into(), what };
    let left = Left::of(job);
    check::answers(job, &left, &laps).map_err(wrong)?;
    check::content(&buffer, job, &left).map_err(wrong)?;
    let stats = buffer.active().stats();
    drop(buffer);
    if let Some(folder) = folder.as_ref().filter(|_| job.recovers) {
        let again = open::<I>(job, folder.path())?;
        let again = again.map_err(|error| wrong(format!("its log cannot be read: {error}")))?;
        let in_log = |what| wrong(format!("read from its log, {what}"));
        check::content(&again, job, &left).map_err(in_log)?;
    }
    let writer = laps.split_off(job.threads).pop();
    Ok(Sample {
        ops_per_s: work::rate(&laps),
        writer_ops_per_s: writer.map(|writer| work::rate(&[writer])),
        hits: (!job.workload.writes()).then(|| laps.iter().map(|lap| lap.tally.hits).sum()),
        switches: laps.iter().map(|lap| lap.switches).reduce(|a, b| Some(a? + b?)).flatten(),
        latency: laps
            .into_iter()
            .map(|lap| lap.latency)
            .reduce(|a, b| a + b)
            .unwrap_or_else(work::latencies),
        counts,
        entries: stats.puts,
        bytes: stats.bytes,
    })
}

/// Opens a buffer over the logs of a folder.
fn open<I: Index>(
    job: &Job<'_>,
    folder: &std::path::Path,
) -> Result<Result<WriteBuffer<I>, OpenError>, Error> {
    let logs = LogFolder::open(folder).map_err(|error| Log::failed(folder, error))?;
    Ok(WriteBuffer::recover(job.options(), Arc::new(logs)).map(|(buffer, _)| buffer))
}

/// Writes random keys.
fn fill<I: Index>(buffer: &WriteBuffer<I>, job: &Job<'_>) -> Result<(), Error> {
    let work = |share: Share| {
        let mut draws = job.draws(Purpose::Fill, share.thread);
        let mut numbers = job.operations(share.thread, share.threads).map(|_| draws.draw());
        let (mut key, mut value) = (job.key(), Value::new(job.value_size, Purpose::Fill));
        let mut batch = WriteBatch::new();
        loop {
            for number in numbers.by_ref().take(FILL_BATCH) {
                batch.put(key.of(number), value.of(number))?;
                if batch.bytes().len() >= FILL_BYTES {
                    break;
                }
            }
            if batch.is_empty() {
                return Ok(Tally::default());
            }
            buffer.write(&batch, WriteOptions::default())?;
            batch.clear();
        }
    };
    let done = job.crew.work(job.fillers(), work, || ());
    let done = done.map_err(|failure: Failure| failure.of(I::NAME))?;
    let done: Result<Vec<Tally>, WriteError> = done.into_iter().collect();
    done.map(|_| ()).map_err(|error| job.failed(I::NAME, &error))
}
