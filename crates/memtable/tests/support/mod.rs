//! A store of the tests: a write buffer over logs that fail, with files that do not, and a record
//! of all writes that were begun and acknowledged.
//!
//! Each batch begins with a put whose value is the batch's number, and no other put has such a
//! value. So the versions that are found later can be cut into batches again.
#![allow(dead_code, reason = "each test uses a part")]

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_memtable::log::{LogStorage, Recovery, recover_logs};
use silvics_memtable::{
    BufferOptions, Comparator, FlushError, Found, FrozenTable, Index, InternalKey, Kind, Op,
    OpenError, Seqno, SyncPolicy, WriteBatch, WriteBuffer, WriteError, WriteMode, WriteOptions,
};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

pub(crate) type Chance = Xoshiro256PlusPlus;

pub(crate) fn chance(seed: u64) -> Chance {
    Chance::seed_from_u64(seed)
}

pub(crate) const MODES: [WriteMode; 4] = [
    WriteMode::Serial,
    WriteMode::Parallel,
    WriteMode::Pipelined,
    WriteMode::UnorderedUnrepeatableReads,
];

/// The threads that write.
pub(crate) const WRITERS: usize = 4;

/// A version: its key, and its value unless it is a deletion.
pub(crate) type Version = (Vec<u8>, Option<Vec<u8>>);

/// A batch that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(crate) number: u64,
    pub(crate) last: Seqno,
    pub(crate) synced: bool,
}

/// The durable files: all versions that were flushed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) versions: BTreeMap<Seqno, Version>,
    pub(crate) last: Seqno,
}

/// The knowledge of all writes. It lives on across losses of power.
#[derive(Debug, Default)]
pub(crate) struct Known {
    numbers: AtomicU64,
    /// The operations of each batch, by number. Noted before the batch is written.
    begun: Mutex<BTreeMap<u64, Vec<Version>>>,
    acks: Mutex<Vec<Ack>>,
    files: Mutex<Files>,
}

impl Known {
    /// The acknowledged batches and the files, at a moment at which `call` runs.
    pub(crate) fn at<R>(&self, call: impl FnOnce() -> R) -> (Vec<Ack>, Files, R) {
        // Acknowledgements first: what is noted here was done before the call.
        let acks = self.acks.lock();
        let files = self.files.lock();
        let result = call();
        (acks.clone(), files.clone(), result)
    }

    /// Forgets what a loss of power has lost.
    pub(crate) fn forget(&self, acks: Vec<Ack>, files: Files, last: Seqno) {
        let kept = |ack: &Ack| ack.last <= last;
        *self.acks.lock() = acks.into_iter().filter(kept).collect();
        *self.files.lock() = files;
    }
}

/// A buffer with its files.
pub(crate) struct Store<I: Index> {
    pub(crate) buffer: WriteBuffer<I>,
    pub(crate) known: Arc<Known>,
}

impl<I: Index> Store<I> {
    pub(crate) fn recover(
        options: &BufferOptions,
        storage: Arc<dyn LogStorage>,
        known: &Arc<Known>,
    ) -> Result<(Self, Recovery), OpenError> {
        let (buffer, recovery) = WriteBuffer::recover(options.clone(), storage)?;
        Ok((Self { buffer, known: Arc::clone(known) }, recovery))
    }

    /// Writes a random batch, and notes it.
    pub(crate) fn write(&self, thread: usize, chance: &mut Chance) -> Result<Seqno, WriteError> {
        let number = self.known.numbers.fetch_add(1, Ordering::Relaxed);
        let key = |chance: &mut Chance| {
            if chance.random_bool(0.5) {
                format!("shared {}", chance.random_range(0..8)).into_bytes()
            } else {
                format!("own {thread} {}", chance.random_range(0..4)).into_bytes()
            }
        };
        let mut versions = vec![(key(chance), Some(head(number)))];
        for at in 1..chance.random_range(1..=5) {
            let long = chance.random_bool(0.05);
            let value = format!("{number}.{at}{}", "x".repeat(if long { 6000 } else { 20 }));
            versions.push((key(chance), chance.random_bool(0.7).then(|| value.into_bytes())));
        }
        let mut batch = WriteBatch::new();
        for (key, value) in &versions {
            match value {
                Some(value) => batch.put(key, value).unwrap(),
                None => batch.delete(key).unwrap(),
            }
        }
        let of_batch = versions.first().cloned();
        self.known.begun.lock().insert(number, versions);
        let sync = chance.random_bool(0.3);
        let last = self.buffer.write(&batch, WriteOptions { sync })?;
        assert!(self.buffer.snapshot() >= last, "the own write is not visible");
        let view = self.buffer.view();
        // The first key may be written again by the batch.
        let (key, _) = of_batch.expect("a first operation");
        assert!(
            view.find(&key, view.snapshot()) != Found::Absent
                || self.known.files.lock().last >= last,
            "the own write is not found"
        );
        drop(view);
        let synced = sync || self.buffer.options().sync == SyncPolicy::EveryGroup;
        self.known.acks.lock().push(Ack { number, last, synced });
        Ok(last)
    }

    /// Writes the oldest frozen table to the files.
    pub(crate) fn flush(&self) -> Result<bool, FlushError<String>> {
        let flushed = self.buffer.flush(|table| {
            let versions = versions_of(table)?;
            let mut files = self.known.files.lock();
            if files.last + 1 != table.first_seqno() && files.last < table.last_seqno() {
                // After a recovery the oldest table may have numbers that were flushed before.
                if table.first_seqno() > files.last + 1 {
                    return Err(format!("{table:?} comes after {}", files.last));
                }
            }
            for (seqno, version) in versions {
                if let Some(before) = files.versions.insert(seqno, version.clone())
                    && before != version
                {
                    return Err(format!("{seqno} was given to {before:?} and {version:?}"));
                }
            }
            files.last = files.last.max(table.last_seqno());
            Ok(())
        });
        flushed.map(|flushed| flushed.is_some())
    }

    /// Runs the writers and a thread that switches and flushes, while `main` runs. They end when
    /// `main` has returned, or when the buffer takes no more writes. Returns its result.
    pub(crate) fn run<R>(&self, seed: u64, main: impl FnOnce() -> R) -> R
    where
        I: 'static,
    {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..WRITERS {
                let stop = &stop;
                scope.spawn(move || {
                    let mut chance = chance(seed ^ (thread as u64 + 1) << 32);
                    while !stop.load(Ordering::Relaxed) {
                        match self.write(thread, &mut chance) {
                            Ok(_) => {}
                            Err(WriteError::Stalled { .. } | WriteError::Switch(_)) => {
                                std::thread::yield_now();
                            }
                            Err(WriteError::ReadOnly(_)) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            scope.spawn(|| {
                let mut chance = chance(seed ^ 77 << 40);
                while !stop.load(Ordering::Relaxed) && self.buffer.failure().is_none() {
                    if chance.random_bool(0.2) {
                        let _ = self.buffer.switch();
                    }
                    match self.flush() {
                        Ok(_) | Err(FlushError::Log(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                    std::thread::yield_now();
                }
            });
            let result = main();
            stop.store(true, Ordering::Relaxed);
            result
        })
    }

    /// Checks the buffer and the files against all acknowledged batches that must be there, and
    /// against the operations of all batches. `last` is the last number that was given.
    pub(crate) fn check(
        &self,
        records: &BTreeMap<Seqno, Version>,
        acks: &[Ack],
        last: Seqno,
        must: impl Fn(&Ack) -> bool,
    ) {
        let files = self.known.files.lock().clone();
        assert!(files.last <= last, "the files have {}, and the log ends at {last}", files.last);
        let mut all = files.versions.clone();
        for (seqno, version) in records {
            let before = all.insert(*seqno, version.clone());
            assert!(before.is_none_or(|before| before == *version), "{seqno} was given twice");
        }
        let numbers: Vec<Seqno> = all.keys().copied().collect();
        assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "numbers are missing");
        let batches = cut(&all, &self.known.begun.lock());
        let durable = acks.iter().filter(|ack| must(ack)).map(|ack| ack.last).max().unwrap_or(0);
        assert!(durable <= last, "{durable} was acknowledged, and the log ends at {last}");
        for ack in acks.iter().filter(|ack| ack.last <= durable) {
            let found = batches.get(&ack.number).copied();
            assert_eq!(found, Some(ack.last), "{ack:?}");
        }
        self.check_reads(&all, &files, last);
    }

    /// Checks a buffer that goes on: all acknowledged batches are visible, and no batch is in part.
    /// No thread writes meanwhile.
    pub(crate) fn check_live(&self) {
        loop {
            match self.flush() {
                Ok(true) => {}
                Err(FlushError::Log(_)) if self.buffer.frozen() > 0 => {}
                Ok(false) | Err(FlushError::Log(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let last = self.buffer.snapshot();
        let mut versions = BTreeMap::new();
        let mut cursor = self.buffer.active().cursor();
        cursor.first();
        while let Some(entry) = cursor.entry() {
            let key = entry.key();
            let is_put = key.kind() == Some(Kind::Put);
            // SAFETY: the entry is one of a table of this crate.
            let value = is_put.then(|| unsafe { entry.value() }.to_vec());
            if key.seqno() <= last {
                versions.insert(key.seqno(), (key.user.to_vec(), value));
            }
            cursor.next();
        }
        let acks = self.known.acks.lock().clone();
        self.check(&versions, &acks, last, |_| true);
    }

    /// Compares the reads of all keys at some snapshots with the versions.
    fn check_reads(&self, all: &BTreeMap<Seqno, Version>, files: &Files, last: Seqno) {
        assert_eq!(self.buffer.snapshot(), last);
        let view = self.buffer.view();
        let mut state = BTreeMap::new();
        for (&seqno, (key, value)) in all {
            state.insert(key.clone(), value.clone());
            let is_chosen = seqno == last || (seqno >= files.last && seqno % 7 == 0);
            if !is_chosen {
                continue;
            }
            for (key, value) in &state {
                let found = match view.find(key, seqno) {
                    Found::Value(value) => Some(value.to_vec()),
                    Found::Deleted => None,
                    Found::Absent => in_files(files, key),
                };
                assert_eq!(found, *value, "{} at {seqno}", key.escape_ascii());
            }
        }
    }
}

/// The newest version of a key in the files.
fn in_files(files: &Files, key: &[u8]) -> Option<Vec<u8>> {
    let newest = files.versions.values().rev().find(|(of, _)| of == key);
    newest.and_then(|(_, value)| value.clone())
}

/// The value of the first operation of a batch.
fn head(number: u64) -> Vec<u8> {
    format!("batch {number}").into_bytes()
}

fn number_of(value: Option<&Vec<u8>>) -> Option<u64> {
    std::str::from_utf8(value?).ok()?.strip_prefix("batch ")?.parse().ok()
}

/// Cuts versions into whole batches. Returns the last number of each.
///
/// # Panics
/// If a batch is there in part.
fn cut(
    all: &BTreeMap<Seqno, Version>,
    begun: &BTreeMap<u64, Vec<Version>>,
) -> BTreeMap<u64, Seqno> {
    let mut batches = BTreeMap::new();
    let mut versions = all.iter();
    while let Some((&first, version)) = versions.next() {
        let number = number_of(version.1.as_ref());
        let number = number.unwrap_or_else(|| panic!("no batch begins at {first}: {version:?}"));
        let ops = &begun[&number];
        assert_eq!(*version, ops[0], "batch {number}");
        let mut last = first;
        for op in &ops[1..] {
            let (&seqno, found) =
                versions.next().unwrap_or_else(|| panic!("half of batch {number} is there"));
            assert_eq!(found, op, "batch {number}, the number {seqno}");
            last = seqno;
        }
        assert_eq!(batches.insert(number, last), None, "batch {number} is there twice");
    }
    batches
}

/// The versions of a frozen table, which must have all its numbers.
fn versions_of<I: Index>(table: &FrozenTable<I>) -> Result<BTreeMap<Seqno, Version>, String> {
    let mut versions = BTreeMap::new();
    let mut cursor = table.versions();
    while let Some(entry) = cursor.entry() {
        let InternalKey { user, .. } = entry.key();
        let is_put = entry.key().kind() == Some(Kind::Put);
        // SAFETY: the entry is one of a table of this crate.
        let value = is_put.then(|| unsafe { entry.value() }.to_vec());
        if versions.insert(entry.key().seqno(), (user.to_vec(), value)).is_some() {
            return Err(format!("{:?} is there twice", entry.key()));
        }
        cursor.next();
    }
    let found: Vec<Seqno> = versions.keys().copied().collect();
    let wanted: Vec<Seqno> = (table.first_seqno()..=table.last_seqno()).collect();
    if found != wanted {
        return Err(format!("{table:?} has the numbers {found:?}"));
    }
    Ok(versions)
}

/// The operations of all records that recovery would apply, by number.
pub(crate) fn records_of(
    storage: &dyn LogStorage,
    order: &str,
) -> (BTreeMap<Seqno, Version>, Recovery) {
    let mut records = BTreeMap::new();
    let recovery = recover_logs(storage, order, |record| {
        for (seqno, op) in (record.first_seqno..).zip(record.batch.ops()) {
            let version = match op {
                Op::Put { key, value } => (key.to_vec(), Some(value.to_vec())),
                Op::Delete { key } => (key.to_vec(), None),
                Op::DeleteRange { .. } => return Err("no test deletes a range"),
            };
            records.insert(seqno, version);
        }
        Ok(())
    });
    (records, recovery.unwrap())
}

/// Options with small tables.
pub(crate) fn options(
    mode: WriteMode,
    sync: SyncPolicy,
    comparator: Arc<dyn Comparator>,
) -> BufferOptions {
    let mut options = BufferOptions::ordered_by(comparator);
    options.mode = mode;
    options.sync = sync;
    options.table.block_bytes = 16 << 10;
    options.table_bytes = 64 << 10;
    options.max_frozen = 3;
    options
}

/// Calls a function on a thread of its own, and fails if it does not return: a writer hangs.
///
/// # Panics
/// Panics as the function does.
pub(crate) fn within<R: Send + 'static>(
    seconds: u64,
    what: &str,
    call: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || {
        let _ = send.send(call());
    });
    match receive.recv_timeout(Duration::from_secs(seconds)) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: a call does not return"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the result was sent"),
        },
    }
}
