//! The measured loops.
//!
//! All threads begin together. One call of [`SAMPLED`] is timed for the latencies; reading the
//! clock for each would slow reads down by a tenth and more.

use super::keys::{Purpose, Value, number_of, word, write_number};
use super::plan::Workload;
use super::run::Job;
use crate::drive::run::Failure;
use crate::host::switches::Switches;
use hdrhistogram::Histogram;
use silvics_memtable::{Index, WriteBatch, WriteBuffer, WriteError};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_workload::Share;
use std::sync::Barrier;
use std::time::Instant;

/// One of this many calls is timed.
pub const SAMPLED: u32 = 8;
/// The reads under one view.
pub const VIEW_CALLS: u64 = 64;
/// Longer latencies count as this one, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// The answers of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The operations: entries that were written, keys that were asked for.
    pub ops: u64,
    /// The keys that were found.
    pub hits: u64,
    /// The sum of the words of the values that were found; in `seekrandom`, of the keys' numbers.
    pub sum: u64,
}

impl Tally {
    /// Counts a read.
    #[inline]
    pub fn read(&mut self, found: Option<u64>) {
        self.ops += 1;
        if let Some(word) = found {
            self.hits += 1;
            self.sum = self.sum.wrapping_add(word);
        }
    }
}

/// The part of a thread.
pub struct Lap {
    pub tally: Tally,
    start: Instant,
    end: Instant,
    pub latency: Histogram<u64>,
    pub switches: Option<Switches>,
}

/// No latencies yet.
pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order")
}

/// The operations per second, from the start of the first thread to the end of the last.
pub fn rate(laps: &[Lap]) -> f64 {
    let done: u64 = laps.iter().map(|lap| lap.tally.ops).sum();
    let start = laps.iter().map(|lap| lap.start).min();
    let end = laps.iter().map(|lap| lap.end).max();
    let seconds = start.zip(end).map_or(0.0, |(start, end)| (end - start).as_secs_f64());
    done as f64 / seconds.max(1e-9)
}

/// Measures the latencies of some calls.
struct Meter {
    latency: Histogram<u64>,
    until_next: u32,
}

impl Meter {
    #[inline]
    fn call<R>(&mut self, call: impl FnOnce() -> R) -> R {
        self.until_next -= 1;
        if self.until_next > 0 {
            return call();
        }
        self.until_next = SAMPLED;
        let start = Instant::now();
        let result = call();
        self.latency.saturating_record(start.elapsed().as_nanos() as u64);
        result
    }
}

/// Runs the workload. In `readwhilewriting` the last part is that of the thread that writes.
pub fn run<I: Index>(
    buffer: &WriteBuffer<I>,
    job: &Job<'_>,
) -> Result<Vec<Result<Lap, WriteError>>, Failure> {
    let beside = usize::from(job.workload == Workload::ReadWhileWriting);
    let barrier = Barrier::new(job.threads + beside);
    let readers = AtomicUsize::new(job.threads);
    let work = |share: Share| {
        let mut meter = Meter { latency: latencies(), until_next: 1 };
        barrier.wait();
        let (before, start) = (Switches::of_this_thread(), Instant::now());
        let thread = share.thread;
        let tally = match job.workload {
            Workload::FillSeq => {
                let numbers = job.operations(thread, job.threads);
                write(buffer, job, numbers, &mut meter)
            }
            Workload::FillRandom | Workload::Overwrite => {
                let mut draws = job.draws(Purpose::Run, thread);
                let numbers = job.operations(thread, job.threads).map(|_| draws.draw());
                write(buffer, job, numbers, &mut meter)
            }
            Workload::ReadWhileWriting if thread == job.threads => {
                write_beside(buffer, job, &readers, &mut meter)
            }
            Workload::ReadRandom | Workload::ReadWhileWriting => {
                let tally = read(buffer, job, thread, &mut meter);
                readers.fetch_sub(1, Ordering::Relaxed); // it publishes no other data
                Ok(tally)
            }
            Workload::MultiReadRandom => Ok(read_many(buffer, job, thread, &mut meter)),
            Workload::SeekRandom => Ok(seek(buffer, job, thread, &mut meter)),
        };
        let (end, after) = (Instant::now(), Switches::of_this_thread());
        let switches = after.zip(before).map(|(after, before)| after - before);
        tally.map(|tally| Lap { tally, start, end, latency: meter.latency, switches })
    };
    job.crew.work(job.threads + beside, work, || ())
}

/// Writes these keys in batches.
fn write<I: Index>(
    buffer: &WriteBuffer<I>,
    job: &Job<'_>,
    mut numbers: impl Iterator<Item = u64>,
    meter: &mut Meter,
) -> Result<Tally, WriteError> {
    let (mut key, mut value) = (job.key(), Value::new(job.value_size, Purpose::Run));
    let (options, mut batch, mut tally) =
        (job.write_options(), WriteBatch::new(), Tally::default());
    loop {
        let written = meter.call(|| {
            batch.clear();
            for number in numbers.by_ref().take(job.batch) {
                batch.put(key.of(number), value.of(number))?;
            }
            if !batch.is_empty() {
                buffer.write(&batch, options)?;
            }
            Ok::<_, WriteError>(batch.len())
        })?;
        if written == 0 {
            return Ok(tally);
        }
        tally.ops += u64::from(written);
    }
}

/// Writes keys of the fill again until no thread reads.
fn write_beside<I: Index>(
    buffer: &WriteBuffer<I>,
    job: &Job<'_>,
    readers: &AtomicUsize,
    meter: &mut Meter,
) -> Result<Tally, WriteError> {
    let mut tally = Tally::default();
    while readers.load(Ordering::Relaxed) > 0 {
        let mut draws = job.draws(Purpose::Fill, 0);
        let numbers = job.operations(0, job.fillers()).map(|_| draws.draw());
        let numbers = numbers.take_while(|_| readers.load(Ordering::Relaxed) > 0);
        tally.ops += write(buffer, &Job { batch: 1, ..*job }, numbers, meter)?.ops;
    }
    Ok(tally)
}

/// Reads random keys.
fn read<I: Index>(
    buffer: &WriteBuffer<I>,
    job: &Job<'_>,
    thread: usize,
    meter: &mut Meter,
) -> Tally {
    let (mut draws, mut key) = (job.draws(Purpose::Run, thread), job.key());
    let (mut tally, mut left) = (Tally::default(), reads(job, thread));
    while left > 0 {
        let view = buffer.view();
        for _ in 0..left.min(VIEW_CALLS) {
            let key = key.of(draws.draw());
            tally.read(meter.call(|| view.get(key).map(word)));
        }
        left -= left.min(VIEW_CALLS);
    }
    tally
}

/// The reads of a thread.
fn reads(job: &Job<'_>, thread: usize) -> u64 {
    let part = job.operations(thread, job.threads);
    part.end - part.start
}

/// Reads random keys, several in a call.
fn read_many<I: Index>(
    buffer: &WriteBuffer<I>,
    job: &Job<'_>,
    thread: usize,
    meter: &mut Meter,
) -> Tally {
    let (mut draws, mut tally) = (job.draws(Purpose::Run, thread), Tally::default());
    let mut left = reads(job, thread);
    let most = job.batch as u64 * VIEW_CALLS;
    let mut bytes: Vec<u8> = job.key().of(0).repeat(left.min(most) as usize);
    while left > 0 {
        let now = left.min(most) as usize;
        let keys = &mut bytes[..now * job.key_size];
        keys.chunks_exact_mut(job.key_size).for_each(|key| write_number(key, draws.draw()));
        let keys: Vec<&[u8]> = keys.chunks_exact(job.key_size).collect();
        let view = buffer.view();
        for keys in keys.chunks(job.batch) {
            meter.call(|| view.get_many(keys, |_, value| tally.read(value.map(word))));
        }
        left -= now as u64;
    }
    tally
}

/// Seeks random keys, under cursors for some of them each.
fn seek<I: Index>(
    buffer: &WriteBuffer<I>,
    job: &Job<'_>,
    thread: usize,
    meter: &mut Meter,
) -> Tally {
    let (mut draws, mut key) = (job.draws(Purpose::Run, thread), job.key());
    let (mut tally, mut left) = (Tally::default(), reads(job, thread));
    while left > 0 {
        let mut cursor = buffer.cursor();
        for _ in 0..left.min(VIEW_CALLS) {
            let key = key.of(draws.draw());
            let found = meter.call(|| {
                cursor.seek(key);
                // A key that is none of ours makes the sum wrong.
                cursor.entry().map(|(key, _)| number_of(key).unwrap_or(u64::MAX))
            });
            tally.read(found);
        }
        left -= left.min(VIEW_CALLS);
    }
    tally
}
