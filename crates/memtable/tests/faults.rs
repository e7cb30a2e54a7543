//! Storages, comparators and allocations that fail: a write succeeds or fails as a whole, no writer
//! hangs, and the buffer goes on with reads.
#![cfg(not(any(silvics_loom, silvics_shuttle)))]

#[path = "faults/comparators.rs"]
mod comparators;
#[path = "faults/disks.rs"]
mod disks;
#[path = "faults/memory.rs"]
mod memory;
#[path = "faults/panics.rs"]
mod panics;
mod support;

use silvics_memtable::log::Action;
use silvics_memtable::log::forgetful::{Fault, FaultError, Forgetful};
use silvics_memtable::{
    ByteIndex, Bytewise, Comparator, Failure, Index, SkipIndex, SyncPolicy, WriteError, WriteMode,
};
use silvics_testkit::size;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Known, MODES, Store, options, records_of, within};

const ACTIONS: [Action; 6] =
    [Action::Create, Action::Append, Action::Sync, Action::List, Action::Read, Action::Remove];

/// The sentence of a failed action.
fn sentence(action: Action) -> &'static str {
    match action {
        Action::Create => "could not be created",
        Action::Append => "could not be appended to",
        Action::Sync => "could not be made durable",
        Action::List => "could not be listed",
        Action::Read => "could not be read",
        _ => "could not be removed",
    }
}

/// A buffer whose log can no longer be written says why, and goes on with reads.
fn is_read_only<I: Index>(store: &Store<I>, why: &str) {
    let error = store.buffer.put(b"own", b"").unwrap_err();
    assert!(matches!(error, WriteError::ReadOnly(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("the buffer takes no more writes since a failure"), "{text}");
    assert!(text.contains(why), "{text}");
    assert!(matches!(store.buffer.switch(), Err(WriteError::ReadOnly(_))));
}

/// Recovers after a loss of power, and checks that no acknowledged write is lost.
fn recovered<I: Index>(known: &Arc<Known>, mode: WriteMode, storage: &Forgetful, seed: u64) {
    storage.heal();
    let (acks, _, after) = known.at(|| storage.power_loss(seed));
    let (records, recovery) = records_of(&after, Bytewise.name());
    let options = options(mode, SyncPolicy::EveryGroup, Arc::new(Bytewise));
    let (store, _) = Store::<I>::recover(&options, Arc::new(after), known).unwrap();
    store.check(&records, &acks, recovery.last_seqno, |ack| ack.synced);
    // Recovery may have filled more tables than may wait.
    store.check_live();
    store.buffer.put(b"own", b"").unwrap();
}

fn one_fault<I: Index>(mode: WriteMode, fault: Fault, seed: u64) {
    let options = options(mode, SyncPolicy::EveryGroup, Arc::new(Bytewise));
    let storage = Forgetful::new();
    let known = Arc::new(Known::default());
    let open = || Store::<I>::recover(&options, Arc::new(storage.clone()), &known);
    let (store, _) = open().unwrap();
    store.run(seed, || std::thread::sleep(Duration::from_micros(300)));
    storage.inject(fault);
    store.run(seed + 1, || {
        let begun = Instant::now();
        while store.buffer.failure().is_none() && begun.elapsed() < Duration::from_millis(3) {
            std::thread::yield_now();
        }
    });
    if let Some(failure) = store.buffer.failure() {
        assert!(matches!(failure, Failure::Log(_)), "{failure}");
        is_read_only(&store, sentence(fault.action.expect("one action")));
    }
    store.check_live();
    drop(store);
    // Recovery meets the fault if it lasts, or if it was not met.
    if let Err(error) = open().map(drop) {
        assert!(error.to_string().contains(sentence(fault.action.expect("one action"))), "{error}");
    }
    recovered::<I>(&known, mode, &storage, seed);
}

#[test]
fn each_call_of_a_storage_may_fail() {
    let calls = size::pick(12, 5, 1) as u64;
    for (number, action) in ACTIONS.into_iter().enumerate() {
        for after in 0..calls {
            for (partly, lasting) in [(false, false), (false, true), (true, false), (true, true)] {
                let error = if after % 2 == 0 { FaultError::NoSpace } else { FaultError::Io };
                let fault = Fault { action: Some(action), after, error, partly, lasting };
                let seed = number as u64 * 1000 + after;
                let of_modes = number + after as usize / 2 + usize::from(lasting);
                let mode = MODES[of_modes % MODES.len()];
                let what = format!("{fault:?}, {mode:?}");
                println!("{what}");
                let run = if partly { one_fault::<SkipIndex> } else { one_fault::<ByteIndex> };
                within(60, &what, move || run(mode, fault, seed));
            }
        }
    }
}

/// A failed creation of a log left a file, and each later attempt failed because that file was
/// there. Now it is removed first.
#[test]
fn a_log_is_created_after_all() {
    for (action, partly) in [
        (Action::Create, false),
        (Action::Create, true),
        (Action::Append, true),
        (Action::Sync, false),
        (Action::Sync, true),
    ] {
        let mode = WriteMode::Parallel;
        let options = options(mode, SyncPolicy::EveryGroup, Arc::new(Bytewise));
        let (storage, known) = (Forgetful::new(), Arc::new(Known::default()));
        let (store, _) =
            Store::<ByteIndex>::recover(&options, Arc::new(storage.clone()), &known).unwrap();
        let mut chance = support::chance(1);
        store.write(0, &mut chance).unwrap();
        // The first sync of a switch is that of the log before.
        let after = u64::from(action == Action::Sync);
        let fault = Fault { partly, ..Fault::once(action, after) };
        storage.inject(Fault { error: FaultError::NoSpace, ..fault });
        let error = store.buffer.switch().unwrap_err();
        assert!(matches!(error, WriteError::Switch(_)), "{error:?}");
        assert!(error.to_string().contains("no space left"), "{error}");
        // The log before takes more writes, so the one that failed begins too early.
        store.write(0, &mut chance).unwrap();
        assert!(store.buffer.switch().unwrap(), "{action:?}");
        store.write(0, &mut chance).unwrap();
        assert!(store.flush().unwrap());
        store.write(0, &mut chance).unwrap();
        drop(store);
        recovered::<ByteIndex>(&known, mode, &storage, 3);
    }
}

/// The system drops the bytes of a failed sync, and a later sync of the same bytes reports success.
/// A recovery without a restart reads these bytes. It must make them durable before it begins a
/// log behind them, or a loss of power leaves that log behind a hole.
#[test]
fn records_of_a_failed_sync_are_durable_after_recovery() {
    for seed in 0..size::pick(300, 60, 1) as u64 {
        let mode = WriteMode::Serial;
        let options = options(mode, SyncPolicy::EveryGroup, Arc::new(Bytewise));
        let (storage, known) = (Forgetful::new(), Arc::new(Known::default()));
        let open =
            || Store::<ByteIndex>::recover(&options, Arc::new(storage.clone()), &known).unwrap().0;
        let mut chance = support::chance(seed);
        let store = open();
        store.write(0, &mut chance).unwrap();
        storage.inject(Fault::once(Action::Sync, 0));
        store.write(0, &mut chance).unwrap_err();
        drop(store);
        let store = open();
        store.write(0, &mut chance).unwrap();
        drop(store);
        recovered::<ByteIndex>(&known, mode, &storage, seed);
    }
}
