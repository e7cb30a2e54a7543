//! Threads that write, read, switch and flush at once, in all modes and over all indexes.
#![cfg(not(any(silvics_loom, silvics_shuttle)))]

mod support;

use silvics_memtable::{
    BufferOptions, ByteIndex, Bytewise, Index, Kind, OrdIndex, SkipIndex, SyncPolicy, WriteBatch,
    WriteBuffer, WriteError, WriteMode, WriteOptions,
};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use silvics_testkit::size;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use support::{MODES, options, within};

/// The keys that each batch of a thread writes with one value.
const KEYS: usize = 5;
const WRITERS: usize = 2;

fn key(thread: usize, at: usize) -> [u8; 2] {
    [thread as u8, at as u8]
}

fn batch(thread: usize, number: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for at in 0..KEYS {
        let value = [&number.to_be_bytes()[..], &[7; 40]].concat();
        batch.put(&key(thread, at), &value).unwrap();
    }
    batch
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

fn write<I: Index>(buffer: &WriteBuffer<I>, batch: &WriteBatch) -> u64 {
    loop {
        match buffer.write(batch, WriteOptions::default()) {
            Ok(last) => return last,
            Err(WriteError::Stalled { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The newest flushed value of each key, with its sequence number.
type Files = Mutex<BTreeMap<Vec<u8>, (u64, Vec<u8>)>>;

fn flush<I: Index>(buffer: &WriteBuffer<I>, files: &Files) -> bool {
    let flushed = buffer.flush(|table| {
        let mut files = files.lock();
        let mut cursor = table.versions();
        while let Some(entry) = cursor.entry() {
            let key = entry.key();
            assert_eq!(key.kind(), Some(Kind::Put));
            // SAFETY: the entry is one of a table of this crate.
            let value = unsafe { entry.value() }.to_vec();
            let place = files.entry(key.user.to_vec()).or_default();
            if place.0 < key.seqno() {
                *place = (key.seqno(), value);
            }
            cursor.next();
        }
        Ok::<(), String>(())
    });
    flushed.unwrap().is_some()
}

/// A reader beside writers that overwrite the same keys: it looks into the buffer first and at the
/// files afterwards.
struct Reader<'b, I: Index> {
    buffer: &'b WriteBuffer<I>,
    files: &'b Files,
    ordered: bool,
    /// The last number seen of each writer.
    seen: [u64; WRITERS],
}

impl<I: Index> Reader<'_, I> {
    /// Reads all keys of a writer through one view.
    fn view(&mut self, thread: usize, least: u64) {
        let view = self.buffer.view();
        let snapshot = view.snapshot();
        let all = |snapshot| -> Vec<Option<u64>> {
            let found = |at| view.get_at(&key(thread, at), snapshot).map(number);
            (0..KEYS).map(found).collect()
        };
        let first = all(snapshot);
        if self.ordered {
            assert!(first.iter().all(|number| *number == first[0]), "a part of a batch: {first:?}");
            assert_eq!(first, all(snapshot), "the snapshot {snapshot} has changed");
        }
        drop(view);
        let newest = match first[0] {
            Some(number) => number,
            None => self.files.lock().get(&key(thread, 0)[..]).map_or(0, |at| number(&at.1)),
        };
        assert!(newest >= least, "a key is missed: {newest} found, {least} was acknowledged");
        assert!(newest >= self.seen[thread], "a read goes back");
        self.seen[thread] = newest;
    }

    /// Reads all keys through a cursor, in both directions, twice.
    fn cursor(&mut self) {
        let mut cursor = self.buffer.cursor();
        let mut runs = Vec::new();
        for backwards in [false, true, false] {
            let mut run = Vec::new();
            if backwards {
                cursor.last();
            } else {
                cursor.first();
            }
            while let Some((key, value)) = cursor.entry() {
                run.push((key.to_vec(), number(value)));
                if backwards { cursor.prev() } else { cursor.next() }
            }
            if backwards {
                run.reverse();
            }
            assert!(run.is_sorted_by(|a, b| a.0 < b.0), "{run:?}");
            runs.push(run);
        }
        if self.ordered {
            assert!(runs[0] == runs[1] && runs[0] == runs[2], "a cursor's state has changed");
            for of_thread in runs[0].chunk_by(|a, b| a.0[0] == b.0[0]) {
                let is_whole = of_thread.iter().all(|(_, number)| *number == of_thread[0].1);
                assert!(is_whole && of_thread.len() == KEYS, "a part of a batch: {of_thread:?}");
            }
        }
    }
}

/// Writers, a reader, and a thread that switches and flushes. Then all numbers are there.
fn together<I: Index>(mode: WriteMode, batches: u64) {
    let mut options = options(mode, SyncPolicy::OnRequest, Arc::new(Bytewise));
    options.table_bytes = 48 << 10;
    let buffer = WriteBuffer::<I>::new(options).unwrap();
    let (files, done) = (Files::default(), AtomicBool::new(false));
    let acked: [AtomicU64; WRITERS] = Default::default();
    let numbers = Mutex::new(Vec::new());
    let writing = AtomicUsize::new(WRITERS);
    std::thread::scope(|scope| {
        for thread in 0..WRITERS {
            let (buffer, files, acked) = (&buffer, &files, &acked[thread]);
            let (numbers, writing) = (&numbers, &writing);
            scope.spawn(move || {
                let mut own = Vec::new();
                for written in 1..=batches {
                    let last = write(buffer, &batch(thread, written));
                    own.push(last);
                    acked.store(written, Ordering::Release);
                    if written % 16 == 0 {
                        let at = key(thread, KEYS - 1);
                        let found = buffer.get(&at);
                        let found =
                            found.or_else(|| files.lock().get(&at[..]).map(|at| at.1.clone()));
                        assert_eq!(found.as_deref().map(number), Some(written), "the own write");
                    }
                }
                assert!(own.is_sorted(), "numbers of a thread ascend");
                numbers.lock().extend(own);
                writing.fetch_sub(1, Ordering::Release);
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if silvics_sync::random::random().is_multiple_of(8) {
                    let _ = buffer.switch();
                }
                flush(&buffer, &files);
                std::thread::yield_now();
            }
        });
        let ordered = mode != WriteMode::UnorderedUnrepeatableReads;
        let mut reader = Reader { buffer: &buffer, files: &files, ordered, seen: [0; WRITERS] };
        while writing.load(Ordering::Acquire) > 0 {
            for (thread, acked) in acked.iter().enumerate() {
                reader.view(thread, acked.load(Ordering::Acquire));
            }
            reader.cursor();
        }
        done.store(true, Ordering::Relaxed);
    });
    let mut numbers = std::mem::take(&mut *numbers.lock());
    numbers.sort_unstable();
    let wanted: Vec<u64> = (1..=WRITERS as u64 * batches).map(|n| n * KEYS as u64).collect();
    assert_eq!(numbers, wanted, "sequence numbers are contiguous");
    assert_eq!(buffer.snapshot(), *wanted.last().unwrap());
    while flush(&buffer, &files) {}
    buffer.switch().unwrap();
    flush(&buffer, &files);
    for thread in 0..WRITERS {
        for at in 0..KEYS {
            let files = files.lock();
            assert_eq!(number(&files[&key(thread, at)[..]].1), batches, "{thread} {at}");
        }
    }
}

#[test]
fn readers_see_whole_batches_and_miss_no_key() {
    let batches = size::pick(20_000, 1500, 10) as u64;
    for mode in MODES {
        within(300, "bytes", move || together::<ByteIndex>(mode, batches));
        within(300, "skip list", move || together::<SkipIndex>(mode, batches));
        within(300, "ord", move || together::<OrdIndex>(mode, batches));
    }
}

/// Each thread has keys of its own. All are in one table at the end.
fn inserts<I: Index>(mode: WriteMode, each: u64) {
    let buffer = WriteBuffer::<I>::new(BufferOptions { mode, ..BufferOptions::default() }).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let buffer = &buffer;
            scope.spawn(move || {
                for number in 0..each {
                    let key = (number * 4 + thread).to_be_bytes();
                    buffer.put(&key, &key).unwrap();
                }
            });
        }
    });
    let mut cursor = buffer.cursor();
    cursor.first();
    for number in 0..4 * each {
        let key = number.to_be_bytes();
        assert_eq!(cursor.entry(), Some((&key[..], &key[..])));
        assert_eq!(buffer.get(&key).as_deref(), Some(&key[..]));
        cursor.next();
    }
    assert_eq!(cursor.entry(), None);
    assert_eq!(buffer.snapshot(), 4 * each);
    let stats = buffer.stats();
    assert_eq!(stats.writes, 4 * each);
    assert_eq!(stats.mutexes, 0);
    let mut table = buffer.active();
    drop((cursor, buffer));
    let table = Arc::get_mut(&mut table).expect("nobody else has the table");
    assert_eq!(table.check(), Ok(4 * each as usize));
}

#[test]
fn the_keys_of_all_threads_are_there() {
    let each = size::pick(50_000, 5000, 20) as u64;
    for mode in MODES {
        within(120, "bytes", move || inserts::<ByteIndex>(mode, each));
        within(120, "skip list", move || inserts::<SkipIndex>(mode, each));
        within(120, "ord", move || inserts::<OrdIndex>(mode, each));
    }
}

fn outlives<I: Index>() {
    let mut options = options(WriteMode::Parallel, SyncPolicy::OnRequest, Arc::new(Bytewise));
    options.max_frozen = 10;
    let buffer = WriteBuffer::<I>::new(options).unwrap();
    for number in 0..100 {
        write(&buffer, &batch(0, number));
        if number % 25 == 24 {
            buffer.switch().unwrap();
        }
    }
    let mut cursor = buffer.cursor();
    cursor.first();
    let mut versions = buffer.active().cursor();
    while buffer.flush(|_| Ok::<(), String>(())).unwrap().is_some() {}
    assert_eq!(buffer.get(&key(0, 0)), None);
    drop(buffer);
    let on_another = std::thread::spawn(move || {
        let mut count = 0;
        while let Some((_, value)) = cursor.entry() {
            assert_eq!(number(value), 99);
            cursor.next();
            count += 1;
        }
        cursor.last();
        assert_eq!(cursor.entry().map(|(key, _)| key.to_vec()), Some(key(0, KEYS - 1).to_vec()));
        versions.first();
        assert!(versions.entry().is_none());
        count
    });
    assert_eq!(on_another.join().unwrap(), KEYS);
}

#[test]
fn cursors_outlive_the_buffer() {
    outlives::<ByteIndex>();
    outlives::<SkipIndex>();
    outlives::<OrdIndex>();
}

/// Replaced tables were owned by a deferred call of the domain that they kept: a cycle. A buffer
/// that was dropped before the call had run never freed them. Now the buffer owns them.
fn frees_its_tables<I: Index>() {
    let comparator = Arc::new(Bytewise);
    let mut options = options(WriteMode::Parallel, SyncPolicy::OnRequest, comparator.clone());
    options.max_frozen = 10;
    let buffer = WriteBuffer::<I>::new(options).unwrap();
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    let left = std::thread::scope(|scope| {
        let switched = Arc::new(buffer);
        let of_thread = Arc::clone(&switched);
        let (start, end) = (&start, &end);
        scope.spawn(move || {
            write(&of_thread, &batch(0, 1));
            of_thread.switch().unwrap();
            drop(of_thread);
            start.wait();
            end.wait(); // the thread lives on, with the deferred call
        });
        start.wait();
        write(&switched, &batch(0, 2));
        switched.switch().unwrap();
        drop(switched);
        let left = Arc::strong_count(&comparator);
        end.wait();
        left
    });
    assert_eq!(left, 1, "{} still has tables", I::NAME);
}

#[test]
fn a_dropped_buffer_frees_its_tables() {
    frees_its_tables::<ByteIndex>();
    frees_its_tables::<SkipIndex>();
    frees_its_tables::<OrdIndex>();
}

/// The memory of the process, which is that of all tests of this binary that run.
#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() << 12
}

fn rounds<I: Index>() {
    let mut options = BufferOptions { table_bytes: 8 << 20, ..BufferOptions::default() };
    options.table.block_bytes = 64 << 10;
    let buffer = WriteBuffer::<I>::new(options).unwrap();
    let empty = buffer.bytes();
    let mut after = Vec::new();
    for round in 0..60 {
        for number in 0..size::pick(20_000, 2000, 10) as u64 {
            buffer.put(&(number * 31).to_be_bytes(), &[round; 100]).unwrap();
        }
        if round % 3 == 0 {
            buffer.delete_range(b"a", b"z").unwrap();
        }
        buffer.switch().unwrap();
        buffer.flush(|_| Ok::<(), String>(())).unwrap();
        assert_eq!((buffer.bytes(), buffer.frozen()), (empty, 0), "round {round}");
        #[cfg(target_os = "linux")]
        after.push(resident_bytes());
        #[cfg(not(target_os = "linux"))]
        after.push(0);
    }
    let least_of = |rounds: &[usize]| *rounds.iter().min().unwrap();
    let (early, late) = (least_of(&after[5..15]), least_of(&after[50..]));
    // A round writes some 300 KB in a debug build. Other tests run meanwhile.
    let grown = late.saturating_sub(early);
    // AddressSanitizer keeps freed memory for a while.
    let is_kept = cfg!(any(miri, silvics_poison_asan));
    assert!(is_kept || grown < 12 << 20, "{early} bytes, then {late}: {after:?}");
}

#[test]
fn memory_does_not_grow_over_rounds() {
    rounds::<ByteIndex>();
    rounds::<SkipIndex>();
    rounds::<OrdIndex>();
}
