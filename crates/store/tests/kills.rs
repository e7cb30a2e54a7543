//! A process with a durable store is killed at random moments. Another one recovers, and finds each
//! transaction that was acknowledged, or that an acknowledged reader has seen.
//!
//! The kernel keeps the bytes that a killed process has written. `durability.rs` loses these, too.
#![cfg(all(unix, not(any(silvics_loom, silvics_shuttle, miri))))]

#[path = "durability/bank.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod bank;

use bank::{Bank, THREADS, Told};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_store::durability::Durability;
use silvics_store::{Locking, NoWait, Optimistic, Policy, WaitDie};
use silvics_sync::Mutex;
use silvics_testkit::size;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The folder of the child's store. A process with this variable is a child.
const FOLDER: &str = "SILVICS_STORE_KILLS_FOLDER";

fn open<P: Policy>(folder: &Path, sync: bool) -> Bank<P> {
    let durability = Durability { sync, ..Durability::folder(folder).unwrap() };
    Bank::open(durability).unwrap().0
}

/// Works until it is killed, and reports what is known to be committed.
fn work<P: Policy>(folder: &Path) {
    let mut bank = open::<P>(folder, folder.ends_with("synced"));
    bank.fill();
    // Not by `print!`, which the harness captures.
    // SAFETY: standard output is open, and this file is never closed.
    let out = std::mem::ManuallyDrop::new(unsafe {
        <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(1)
    });
    let out = Mutex::new(out);
    bank.report = Some(Box::new(move |thread, number| {
        let mut told = Vec::with_capacity(16);
        told.extend(thread.to_le_bytes());
        told.extend(number.to_le_bytes());
        // The parent may be gone.
        if out.lock().write_all(&told).is_err() {
            std::process::exit(0);
        }
    }));
    let bank = &bank;
    let seed = std::process::id().into();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || bank.write(thread, seed, || false));
        }
        scope.spawn(|| bank.read(|| false));
        loop {
            bank.store.checkpoint().unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
    });
}

/// It does nothing unless a test below runs it as a child.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    match folder.parent().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some("optimistic") => work::<Optimistic>(folder),
        Some("no-wait") => work::<Locking<NoWait>>(folder),
        _ => work::<Locking<WaitDie>>(folder),
    }
}

/// Runs a child, and kills it after some time. Returns what it has reported.
fn run_and_kill(folder: &Path, lasts: Duration) -> Told {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--quiet"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    // The harness prints a line first, which ends before the first report.
    let mut line = Vec::new();
    let reader = std::thread::spawn(move || {
        let mut told = Told::new();
        let mut byte = [0];
        while !line.ends_with(b"test\n") && out.read(&mut byte).unwrap() > 0 {
            line.push(byte[0]);
        }
        let mut report = [0; 16];
        while out.read_exact(&mut report).is_ok() {
            let [thread, number] =
                [0, 8].map(|at| u64::from_le_bytes(report[at..at + 8].try_into().unwrap()));
            let known = told.entry(thread).or_default();
            *known = number.max(*known);
        }
        told
    });
    std::thread::sleep(lasts);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(!status.success(), "{status}");
    reader.join().unwrap()
}

fn kills<P: Policy>(name: &str, rounds: usize, chance: &mut Xoshiro256PlusPlus) -> u64 {
    let parent = tempfile::tempdir().unwrap();
    let mut known = 0;
    for sync in ["synced", "unsynced"] {
        let folder = parent.path().join(name).join(sync);
        let mut told = Told::new();
        for _ in 0..rounds {
            let lasts = Duration::from_micros(chance.random_range(10_000..80_000));
            told.extend(run_and_kill(&folder, lasts));
            let bank = open::<P>(&folder, true);
            let [_, traces, _] = bank.content();
            for (thread, number) in &told {
                assert!(traces[&(2 * thread)] >= *number, "{name}: {number} of {thread} is lost");
            }
            known += u64::from(!told.is_empty());
        }
    }
    known
}

/// Kills processes in each of six settings.
fn kill_all(rounds: usize) {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(size::seed());
    let known = kills::<Optimistic>("optimistic", rounds, &mut chance)
        + kills::<Locking<NoWait>>("no-wait", rounds, &mut chance)
        + kills::<Locking<WaitDie>>("wait-die", rounds, &mut chance);
    println!("kills: {}, of processes that had reported something: {known}", 6 * rounds);
    assert!(known > 0, "no child has reported anything");
}

#[test]
fn acknowledged_transactions_outlive_a_kill() {
    kill_all(size::pick(10, 3, 1));
}

#[test]
#[ignore = "takes half a minute: `just stress` runs it"]
fn acknowledged_transactions_outlive_three_hundred_kills() {
    kill_all(50);
}
