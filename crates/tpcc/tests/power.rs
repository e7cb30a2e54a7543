//! Durable databases that lose power while transactions and checkpoints run. After the recovery,
//! everything that was acknowledged is there, and the consistency conditions hold.

#[path = "../../store/tests/durability/disk.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod disk;
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use disk::Disk;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_store::durability::{CheckpointError, OpenError};
use silvics_store::{Error, Locking, NoWait, Optimistic, Policy, Store, StoreOptions, WaitDie};
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::Transaction;
use silvics_testkit::size;
use silvics_tpcc::serial::{Recorder, Versions};
use silvics_tpcc::{Database, Failure};
use silvics_workload::Share;
use silvics_workload::tpcc::Mix;
use support::{NOW, SEED, Words, load, scale, words};

type Kept<P> = Database<P, Words>;

fn open<P: Policy>(disk: &Disk) -> Result<Kept<P>, OpenError> {
    let create = |store: &Store<P>| Database::create_tables(store, &words());
    let (store, (), _) = Store::open(&StoreOptions::default(), disk.durability(true), create)?;
    Ok(Database::new(store).unwrap())
}

/// A disk with a loaded database.
fn loaded<P: Policy>() -> Disk {
    let disk = Disk::default();
    let database = open::<P>(&disk).unwrap();
    load(&database, scale(1));
    database.store().checkpoint().unwrap();
    disk
}

/// The transactions that wait together: several in half of the lives.
fn group(life: u64) -> u64 {
    if life.is_multiple_of(2) { 1 } else { 7 }
}

/// Runs transactions until the storage fails. Returns those that were acknowledged.
fn run<P: Policy>(database: &Kept<P>, clock: &Clock, thread: usize, life: u64) -> Vec<Transaction> {
    let terminal = scale(1).terminal(Mix::Standard, SEED + life, Share { thread, threads: 2 });
    let (mut terminal, mut recorder) = (terminal, Recorder::new(clock, thread));
    let group = group(life);
    for number in 1..=300 {
        let ran = recorder.run_deferred(database, &terminal.draw(), NOW + number);
        let waits = number.is_multiple_of(group);
        let ended = ran.and_then(|_| if waits { recorder.wait(database) } else { Ok(()) });
        match ended {
            Ok(()) => {}
            Err(Failure::Store(Error::Unacknowledged { .. } | Error::ReadOnly { .. })) => break,
            Err(failure) => panic!("{failure}"),
        }
    }
    recorder.committed()
}

/// Loses power once. Returns the numbers of acknowledged transactions and of checkpoints.
fn life<P: Policy>(base: &Disk, life: u64) -> [usize; 2] {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(life);
    let disk = base.power_loss(life);
    let (database, clock) = (open::<P>(&disk).unwrap(), Clock::new());
    // Some lives end without a failure of the storage, at a moment of the threads.
    disk.stop(chance.random_range(0..400 / group(life)));
    let mut checkpoints = 0;
    let acknowledged = std::thread::scope(|scope| {
        let threads = [0, 1].map(|thread| {
            let (database, clock) = (&database, &clock);
            scope.spawn(move || run(database, clock, thread, life))
        });
        while chance.random_bool(0.5) {
            match database.store().checkpoint() {
                Ok(_) | Err(CheckpointError::Removal { .. }) => checkpoints += 1,
                Err(CheckpointError::Log { .. } | CheckpointError::Storage { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    let mut after = disk.power_loss(chance.random());
    drop(database);
    after.0.heal();
    if chance.random_bool(0.3) {
        // The power fails during the recovery, too.
        after.stop(chance.random_range(0..12));
        drop(open::<P>(&after));
        after.0.heal();
        after = after.power_loss(chance.random());
    }
    let database = open::<P>(&after).unwrap();
    let violations = database.check(scale(1)).unwrap();
    assert!(violations.is_empty(), "life {life}: {}", violations[0]);
    let versions = Versions::of(&database, scale(1)).unwrap();
    versions.cover(&acknowledged).unwrap_or_else(|lost| panic!("life {life}: {lost}"));
    [acknowledged.len(), checkpoints]
}

fn lives<P: Policy>(first: u64) {
    let base = loaded::<P>();
    let lives = size::pick(100, 12, 1);
    let mut sums = [0, 0];
    for number in 0..lives {
        let found = life::<P>(&base, first + number as u64);
        sums = [sums[0] + found[0], sums[1] + found[1]];
    }
    let [acknowledged, checkpoints] = sums;
    println!("{lives} losses of power: {acknowledged} acknowledged, {checkpoints} checkpoints");
    // A life has 90 acknowledged transactions on average, and a third of them a checkpoint.
    assert!(acknowledged > lives, "{acknowledged} transactions were acknowledged");
    assert!(lives < 100 || checkpoints > 0, "no checkpoint was complete");
}

#[test]
fn a_database_survives_losses_of_power() {
    lives::<Optimistic>(size::seed());
    lives::<Locking<NoWait>>(size::seed() + 1000);
    lives::<Locking<WaitDie>>(size::seed() + 2000);
}
