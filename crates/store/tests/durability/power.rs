//! Random transactions and checkpoints of one thread, and a loss of power at each call of the
//! storage.

use super::disk::Disk;
use super::support::kinds::{each_policy, within};
use super::support::{Model, Op, Structures, World, op};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_store::durability::{CheckpointError, OpenError, Recovery};
use silvics_store::{Error, Policy, Store, StoreOptions};
use silvics_testkit::size;

const STRUCTURES: Structures = ("words", "blocks");

/// A step of a script.
#[derive(Debug)]
enum Step {
    Transaction(Vec<Op>),
    /// A transaction that is not awaited.
    Deferred(Vec<Op>),
    Checkpoint,
}

fn script(seed: u64) -> Vec<Step> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let steps = chance.random_range(2..9);
    (0..steps)
        .map(|_| {
            let kind = chance.random_range(0..6);
            if kind == 0 {
                return Step::Checkpoint;
            }
            let ops = proptest::collection::vec(op(), 0..10);
            let ops = ops.new_tree(&mut runner).unwrap().current();
            if kind == 1 { Step::Deferred(ops) } else { Step::Transaction(ops) }
        })
        .collect()
}

pub(crate) fn open<P: Policy>(disk: &Disk, sync: bool) -> Result<(World<P>, Recovery), OpenError> {
    let create = |store: &Store<P>| World::create(store, STRUCTURES);
    let (store, (), recovery) =
        Store::open(&StoreOptions::default(), disk.durability(sync), create)?;
    Ok((World::over(store).unwrap(), recovery))
}

/// The states that a recovery may find.
struct Expected {
    /// The states since the last recovery, one for each transaction.
    states: Vec<Model>,
    /// The first of them that may be found after an end of the process.
    acknowledged: usize,
    /// The first of them that may be found after a loss of power.
    synced: usize,
}

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    CheckpointFailed,
    LogFailed,
}

/// Runs a script until the storage fails.
fn run<P: Policy>(world: &World<P>, script: &[Step], sync: bool, expected: &mut Expected) -> Ended {
    for step in script {
        let (ops, waits) = match step {
            Step::Checkpoint => {
                match world.store.checkpoint() {
                    Ok(_) | Err(CheckpointError::Removal { .. }) => {
                        expected.synced = expected.states.len() - 1;
                        expected.acknowledged = expected.synced;
                    }
                    Err(CheckpointError::Log { .. }) => return Ended::LogFailed,
                    Err(CheckpointError::Storage { .. }) => return Ended::CheckpointFailed,
                    Err(error) => panic!("{error}"),
                }
                continue;
            }
            Step::Transaction(ops) => (ops, true),
            Step::Deferred(ops) => (ops, false),
        };
        let mut after = expected.states.last().unwrap().clone();
        let tx = world.store.begin();
        for op in ops {
            world.run(&tx, &mut after, op).unwrap();
        }
        let ended = if waits { tx.commit() } else { tx.commit_deferred().map(|_| ()) };
        match ended {
            Ok(()) => {
                expected.states.push(after);
                if waits {
                    expected.acknowledged = expected.states.len() - 1;
                    if sync {
                        expected.synced = expected.acknowledged;
                    }
                }
            }
            Err(Error::Unacknowledged { .. }) => {
                expected.states.push(after);
                return Ended::LogFailed;
            }
            Err(Error::ReadOnly { .. }) => return Ended::LogFailed,
            Err(error) => panic!("{error}"),
        }
    }
    Ended::Whole
}

/// A store whose log has failed takes no more writes. Its content can be read.
fn check_read_only<P: Policy>(world: &World<P>, model: &Model) {
    let mut now = model.clone();
    for _ in 0..2 {
        let refused = world.transaction_strict(&mut now, &[Op::Mark(77, 77)]);
        assert!(matches!(refused, Some(Error::ReadOnly { .. })), "{refused:?}");
    }
    let mut found = Model::default();
    let read = world.store.transact_deferred(|tx| world.read_model(tx, &mut found));
    read.unwrap();
    assert_eq!(found, now);
}

/// The content of a store, which all of its indexes must have.
pub(crate) fn content<P: Policy>(world: &World<P>) -> Model {
    let mut model = Model::default();
    world.store.transact(|tx| world.read_model(tx, &mut model)).unwrap();
    world.check(&model).unwrap();
    world.check_entries(&model);
    world.check_unlocked(&model);
    model
}

/// Lives of a store, of which the first one ends after `calls` calls of the storage.
fn lives<P: Policy>(seed: u64, calls: u64, sync: bool) -> bool {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ calls << 32);
    let mut disk = Disk::default();
    let mut states = vec![Model::default()];
    let mut was_whole = false;
    for life in 0..3 {
        disk.stop(if life == 0 { calls } else { chance.random_range(0..40) });
        let mut expected = Expected { states, acknowledged: 0, synced: 0 };
        let opened = open::<P>(&disk, sync);
        let is_whole = match &opened {
            Ok((world, _)) => {
                let script = script(seed + life);
                let ended = run(world, &script, sync, &mut expected);
                if ended == Ended::LogFailed {
                    check_read_only(world, expected.states.last().unwrap());
                }
                ended == Ended::Whole
            }
            Err(OpenError::Log(_) | OpenError::Storage { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        was_whole |= life == 0 && is_whole;
        // The end of the process, or a loss of power.
        let mut is_lost = chance.random_bool(0.7);
        let mut after = if is_lost { disk.power_loss(chance.random()) } else { disk.clone() };
        if !is_lost && is_whole {
            drop(opened); // writes what nobody has waited for
        }
        after.0.heal();
        if chance.random_bool(0.3) {
            // The power fails during the recovery.
            after.stop(chance.random_range(0..12));
            drop(open::<P>(&after, sync));
            after.0.heal();
            after = after.power_loss(chance.random());
            is_lost = true;
        }
        let (world, recovery) = open::<P>(&after, sync).unwrap();
        let found = content(&world);
        let first = if is_lost { expected.synced } else { expected.acknowledged };
        assert!(
            expected.states[first..].contains(&found),
            "{found:?} is none of {:?}, from {first} on, {recovery:?}",
            expected.states
        );
        let rows = found.people.len() + found.marks.len();
        assert_eq!((recovery.rows, &recovery.left_out), (rows as u64, &vec![]));
        disk = after;
        drop(world);
        states = vec![found];
    }
    was_whole
}

fn at_each_call<P: Policy>(seeds: u64, first: u64) {
    for seed in 0..seeds {
        let seed = first + 1000 * seed;
        for sync in [true, false] {
            let mut calls = 0;
            loop {
                let is_whole = std::panic::catch_unwind(|| lives::<P>(seed, calls, sync));
                let is_whole = is_whole.unwrap_or_else(|panic| {
                    println!("seed {seed}, after {calls} calls, sync {sync}");
                    std::panic::resume_unwind(panic)
                });
                if is_whole {
                    break; // the script has ended before
                }
                calls += 1;
                assert!(calls < 1000);
            }
        }
    }
}

#[test]
fn a_loss_of_power_at_any_call_leaves_a_prefix() {
    let seeds = size::pick(400, 12, 1) as u64;
    within("power", move || each_policy!(at_each_call(seeds, size::seed())));
}
