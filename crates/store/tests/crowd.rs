//! Threads whose transactions want the same few keys: afterwards, each key has one row, and each
//! row has its entries.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

#[path = "faults/heap.rs"]
mod heap;
mod support;

use heap::{Fault, end, in_heap};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use silvics_store::{Error, Policy};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use support::kinds::{STRUCTURES, each_policy, within};
use support::{Model, Op, Person, Structures};

const THREADS: u64 = 10;
const TRANSACTIONS: usize = 1500;

/// A random operation on one of a few rows.
fn op() -> impl Strategy<Value = Op> {
    let (id, code) = (0..3_u64, 0..4_u64);
    prop_oneof![
        1 => id.clone().prop_map(Op::Get),
        1 => code.clone().prop_map(Op::ByEmail),
        1 => Just(Op::ScanCodes { from: 1, to: 3, descending: false }),
        4 => (id.clone(), code.clone(), 0..3_u8).prop_map(|(id, code, town)| {
            Op::Insert(id, Person { code, town, balance: code as i64 })
        }),
        8 => (id.clone(), code.clone()).prop_map(|(id, code)| Op::Move(id, code)),
        3 => id.prop_map(Op::Delete),
        1 => code.prop_map(Op::DeleteByCode),
        1 => (0..3_u32, 0..3_u32).prop_map(|(number, value)| Op::Mark(number, value)),
    ]
}

/// Transactions of a thread, each with whether it is committed.
fn transactions(seed: u64) -> Vec<(Vec<Op>, bool)> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let one = (prop::collection::vec(op(), 1..5), prop::bool::weighted(0.5));
    let all = prop::collection::vec(one, TRANSACTIONS);
    all.new_tree(&mut runner).unwrap().current()
}

/// Runs the transactions of all threads at once, while allocations fail now and then. Returns
/// whether the indexes have had the same rows in each committed transaction.
fn crowd<P: Policy>(structures: Structures, faults: bool, seed: u64) -> bool {
    let (world, heap) = in_heap::<P>(structures);
    let (shared, faulty, differ) = (&world, &heap, &AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let all = transactions(seed + thread);
            scope.spawn(move || {
                for (number, (ops, commits)) in all.into_iter().enumerate() {
                    if faults && number % 3 == 0 {
                        let lasts = number % 2 == 0;
                        let fault = if lasts { Fault::Lasting } else { Fault::One };
                        faulty.arm(number as u64 % 23 + 1, fault);
                    } else if faults && number % 3 == 2 {
                        faulty.disarm();
                    }
                    let tx = shared.store.begin();
                    let done = ops.iter().try_for_each(|op| {
                        std::thread::yield_now();
                        shared.attempt(&tx, op)
                    });
                    let agree = done.and_then(|()| shared.agree(&tx));
                    let ended = agree.and_then(|agree| {
                        std::thread::yield_now();
                        if commits {
                            tx.commit()?;
                            differ.fetch_or(!agree, Ordering::Relaxed);
                        }
                        Ok(())
                    });
                    match ended {
                        Ok(()) | Err(Error::Aborted(_)) => {}
                        Err(error) => assert!(faults, "{error}"),
                    }
                }
            });
        }
    });
    heap.disarm();
    if differ.load(Ordering::Relaxed) {
        return false; // then nothing below holds
    }
    let commits = world.store.stats().commits;
    assert!(commits > 100, "only {commits} transactions are committed");
    let mut model = Model::default();
    world.store.transact(|tx| world.read_model(tx, &mut model)).unwrap();
    world.check(&model).unwrap();
    world.check_unlocked(&model);
    world.check_entries(&model);
    end(world, &heap);
    true
}

/// A mistake is planted for the whole process, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn crowds_leave_each_key_to_one_row() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    fn all<P: Policy>(seed: &mut u64) {
        for structures in STRUCTURES {
            for faults in [false, true] {
                let what = format!("{}, {structures:?}, {faults}, {seed}", P::name());
                let of = *seed;
                let is_right = within(&what, move || crowd::<P>(structures, faults, of));
                assert!(is_right, "{what}: the indexes have different rows");
                *seed += THREADS;
            }
        }
    }
    each_policy!(all(&mut 0));
}

/// The time in which a mistake must be found.
#[cfg(feature = "canaries")]
const BUDGET: std::time::Duration = std::time::Duration::from_secs(60);

#[cfg(feature = "canaries")]
#[test]
fn a_stolen_entry_is_seen() {
    use silvics_store::Optimistic;
    use silvics_store::canary::{Canary, plant};
    use std::time::Instant;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    plant(Some(Canary::EntryStolen));
    let is_seen =
        |seed| !within("a crowd", move || crowd::<Optimistic>(STRUCTURES[0], false, seed));
    let begun = Instant::now();
    let crowds = (0..).step_by(THREADS as usize).take_while(|_| begun.elapsed() < BUDGET);
    let first = crowds.map(is_seen).position(|is_seen| is_seen);
    plant(None);
    println!("seen in crowd {first:?}");
    assert!(first.is_some(), "no crowd has seen it");
}
