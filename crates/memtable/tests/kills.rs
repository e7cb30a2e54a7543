//! A process that writes to a folder of logs is killed at random moments. Another one recovers, and
//! finds each write that was acknowledged.
//!
//! The kernel keeps the bytes that a killed process has written, so writes need no sync here.
//! `power.rs` loses these bytes as well.
#![cfg(all(unix, not(any(silvics_loom, silvics_shuttle, miri))))]

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_memtable::{
    BufferOptions, ByteIndex, LogFolder, WriteBatch, WriteBuffer, WriteMode, WriteOptions,
};
use silvics_sync::Mutex;
use silvics_testkit::size;
use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The folder of the child's logs. A process with this variable is a child.
const FOLDER: &str = "SILVICS_KILLS_FOLDER";
const THREADS: u64 = 4;
/// The keys of a batch.
const KEYS: u64 = 3;

/// The keys of a thread's batch, which all get its number. The last one is shared by all threads.
fn keys(thread: u64, number: u64) -> [String; KEYS as usize] {
    [format!("own {thread} {}", number % 8), format!("own {thread} last"), "shared".into()]
}

fn open(folder: &Path, mode: WriteMode) -> WriteBuffer<ByteIndex> {
    let mut options = BufferOptions { mode, max_frozen: 1000, ..BufferOptions::default() };
    options.table.block_bytes = 16 << 10;
    options.table_bytes = 64 << 10;
    let storage = Arc::new(LogFolder::open(folder).unwrap());
    WriteBuffer::recover(options, storage).unwrap().0
}

fn mode(folder: &Path) -> WriteMode {
    let name = folder.file_name().unwrap().to_str().unwrap();
    match name.bytes().last() {
        Some(b'0') => WriteMode::Serial,
        Some(b'1') => WriteMode::UnorderedUnrepeatableReads,
        Some(b'2') => WriteMode::Parallel,
        _ => WriteMode::Pipelined,
    }
}

/// Writes until it is killed, and reports each acknowledged write: its thread, number and sequence
/// number. It does nothing unless a test below runs it as a child.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let buffer = open(Path::new(&folder), mode(Path::new(&folder)));
    // Not by `print!`, which the harness captures.
    // SAFETY: standard output is open, and this file is never closed.
    let out = std::mem::ManuallyDrop::new(unsafe {
        <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(1)
    });
    let out = Mutex::new(&*out);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (buffer, out) = (&buffer, &out);
            scope.spawn(move || {
                let last = buffer.get(format!("own {thread} last").as_bytes());
                let first = last.map_or(1, |last| number(&last) + 1);
                for number in first.. {
                    let mut batch = WriteBatch::new();
                    for key in keys(thread, number) {
                        let value =
                            format!("{number} {thread}{}", " ".repeat(number as usize % 90));
                        batch.put(key.as_bytes(), value.as_bytes()).unwrap();
                    }
                    let sync = number % 64 == 0;
                    let seqno = buffer.write(&batch, WriteOptions { sync }).unwrap();
                    let mut told = Vec::with_capacity(24);
                    for word in [thread, number, seqno] {
                        told.extend(word.to_le_bytes());
                    }
                    if number % 200 == 0 && thread == 0 {
                        let _ = buffer.switch();
                    }
                    // The parent may be gone.
                    if out.lock().write_all(&told).is_err() {
                        std::process::exit(0);
                    }
                }
            });
        }
    });
}

fn number(value: &[u8]) -> u64 {
    let text = std::str::from_utf8(value).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// The last acknowledged write of each thread, with its sequence number.
type Acks = BTreeMap<u64, (u64, u64)>;

/// Runs a child, and kills it after some time.
fn run_and_kill(folder: &Path, lasts: Duration, acks: &mut Acks) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--quiet"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut told = Vec::new();
        out.read_to_end(&mut told).unwrap();
        told
    });
    std::thread::sleep(lasts);
    child.kill().unwrap();
    child.wait().unwrap();
    let told = reader.join().unwrap();
    // The harness has written a line before the child's first words.
    let from = told.windows(2).position(|two| two == b"t\n").map_or(told.len(), |at| at + 2);
    for words in told[from..].chunks_exact(24) {
        let word = |at: usize| u64::from_le_bytes(words[at * 8..][..8].try_into().unwrap());
        let (thread, number, seqno) = (word(0), word(1), word(2));
        assert!(thread < THREADS, "the report of the child is out of step");
        let before = acks.insert(thread, (number, seqno));
        assert!(before.is_none_or(|before| before.0 < number && before.1 < seqno));
    }
}

/// Checks that the acknowledged writes are there, and whole batches.
fn check(folder: &Path, acks: &mut Acks) {
    let buffer = open(folder, mode(folder));
    let get = |key: &str| buffer.get(key.as_bytes()).map(|value| number(&value));
    let mut shared = 0;
    for thread in 0..THREADS {
        let (acked, seqno) = acks.get(&thread).copied().unwrap_or_default();
        let last = get(&format!("own {thread} last")).unwrap_or(0);
        assert!(last >= acked, "thread {thread}: {acked} was acknowledged, {last} is there");
        // One more write may have been under way.
        assert!(last <= acked + 1, "thread {thread}: {last} is there, {acked} was acknowledged");
        for number in last.saturating_sub(7).max(1)..=last {
            assert_eq!(get(&keys(thread, number)[0]), Some(number), "half a batch is there");
        }
        assert!(buffer.snapshot() >= seqno);
        shared = shared.max(seqno);
        acks.insert(thread, (last, seqno));
    }
    assert!(shared == 0 || get("shared").is_some());
    assert_eq!(buffer.snapshot() % KEYS, 0, "half a batch has numbers");
}

#[test]
fn acknowledged_writes_outlive_a_kill() {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(size::seed());
    let kills = size::pick(500, 20, 1);
    let (mut left, mut written) = (kills, 0);
    for round in 0.. {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join(format!("logs {}", round % 4));
        let mut acks = Acks::new();
        for _ in 0..left.min(5) {
            let lasts = Duration::from_micros(chance.random_range(3000..80_000));
            run_and_kill(&folder, lasts, &mut acks);
            check(&folder, &mut acks);
            left -= 1;
        }
        written += acks.values().map(|ack| ack.0).sum::<u64>();
        if left == 0 {
            break;
        }
    }
    assert!(written > 100, "the children have written {written} batches only");
    println!("kills: {kills}, batches: {written}");
}
