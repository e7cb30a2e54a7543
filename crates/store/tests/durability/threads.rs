//! Threads that write and read, checkpoints beside them, and losses of power.

use super::bank::{Bank, Content, THREADS, Told};
use super::disk::{Delay, Disk};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_memtable::log::forgetful::Forgetful;
use silvics_store::Policy;
use silvics_store::durability::CheckpointError;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sets a flag, also if the thread panics.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes checkpoints until the storage fails.
fn write_checkpoints<P: Policy>(bank: &Bank<P>, stop: impl Fn() -> bool) -> u64 {
    let mut count = 0;
    while !stop() {
        match bank.store.checkpoint() {
            Ok(_) => count += 1,
            Err(
                CheckpointError::Log { .. }
                | CheckpointError::Storage { .. }
                | CheckpointError::Removal { .. },
            ) => return count,
            Err(error) => panic!("{error}"),
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    count
}

/// Runs threads on a bank, and takes the disk as a power failure leaves it meanwhile, with the
/// transactions that were known to be committed before. Returns the number of checkpoints, too.
fn run<P: Policy>(
    bank: &Bank<P>,
    disk: &Disk,
    chance: &mut Xoshiro256PlusPlus,
) -> (Told, Disk, u64) {
    let stop = &AtomicBool::new(false);
    let stopped = || stop.load(Ordering::Relaxed);
    let (seed, lasts) = (chance.random::<u64>(), chance.random_range(0..8000));
    std::thread::scope(|scope| {
        let _stop = Sets(stop);
        for thread in 0..THREADS {
            scope.spawn(move || bank.write(thread, seed, stopped));
        }
        scope.spawn(move || bank.read(stopped));
        let checkpoints = scope.spawn(move || write_checkpoints(bank, stopped));
        std::thread::sleep(Duration::from_micros(lasts));
        let told = bank.told();
        let lost = disk.power_loss(chance.random());
        stop.store(true, Ordering::Relaxed);
        (told, lost, checkpoints.join().unwrap())
    })
}

/// Checks that a recovered bank has all transactions that were known to be committed.
fn check(content: &Content, told: &Told) {
    for (thread, number) in told {
        let found = content[1].get(&(2 * thread)).copied().unwrap_or(0);
        assert!(found >= *number, "thread {thread}: transaction {number} is lost after {found}");
    }
}

/// Lives of a bank, which end by a loss of power, a failure of the storage, or well. Returns the
/// number of checkpoints.
pub(crate) fn lives<P: Policy>(seed: u64) -> u64 {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let delay = if seed.is_multiple_of(3) { Delay::Micros(100) } else { Delay::None };
    let mut disk = Disk(Forgetful::new(), delay);
    let mut checkpoints = 0;
    for _ in 0..4 {
        let (bank, _) = Bank::<P>::open(disk.durability(true)).unwrap();
        bank.fill();
        let fails = chance.random_bool(0.3);
        if fails {
            disk.stop(chance.random_range(0..200));
        }
        let (mut told, lost, count) = run(&bank, &disk, &mut chance);
        checkpoints += count;
        let mut before = None;
        if chance.random_bool(0.5) {
            disk = lost;
        } else {
            told = bank.told();
            before = (!fails).then(|| bank.content());
        }
        drop(bank);
        disk.0.heal();
        let (bank, recovery) = Bank::<P>::open(disk.durability(true)).unwrap();
        assert!(recovery.left_out.is_empty(), "{recovery:?}");
        let content = bank.content();
        check(&content, &told);
        if let Some(before) = before {
            assert_eq!(content, before, "{recovery:?}");
        }
        if chance.random_bool(0.3) {
            drop(bank);
            let (bank, _) = Bank::<P>::open(disk.durability(true)).unwrap();
            assert_eq!(bank.content(), content, "two recoveries differ");
        }
    }
    checkpoints
}
