//! Losses of power while threads write: no synced write is lost, and no batch is there in part.
#![cfg(not(any(silvics_loom, silvics_shuttle)))]

mod support;

use rand::RngExt;
use silvics_memtable::log::forgetful::{Fault, Forgetful};
use silvics_memtable::{
    ByteIndex, Bytewise, Comparator, Index, OrdIndex, SkipIndex, SyncPolicy, WriteMode,
};
use silvics_testkit::size;
use std::sync::Arc;
use std::time::Duration;
use support::{Ack, Known, MODES, Store, chance, options, records_of, within};

/// The lives of a store, each of which ends with a loss of power, or with the end of the process
/// alone.
const LIVES: u64 = 4;

fn lives<I: Index>(seed: u64, mode: WriteMode, sync: SyncPolicy) {
    let options = options(mode, sync, Arc::new(Bytewise));
    let known = Arc::new(Known::default());
    let mut chance = chance(seed);
    let mut storage = Forgetful::new();
    for life in 0..LIVES {
        let (store, _) = Store::<I>::recover(&options, Arc::new(storage.clone()), &known).unwrap();
        let lasts = Duration::from_micros(chance.random_range(0..6000));
        let (loss, is_kill) = (chance.random(), chance.random_bool(0.2));
        let (acks, files, lost) = store.run(seed ^ life << 16, || {
            std::thread::sleep(lasts);
            known.at(|| storage.power_loss(loss))
        });
        drop(store);
        let (acks, files) = if is_kill {
            // All bytes are there that were appended.
            let (acks, files, ()) = known.at(|| ());
            (acks, files)
        } else {
            storage = lost;
            (acks, files)
        };
        known.forget(acks.clone(), files, u64::MAX);
        let is_lost_again = chance.random_bool(0.3);
        if is_lost_again {
            // The power fails while the logs are recovered.
            storage.inject(Fault::stop(chance.random_range(0..10)));
            drop(Store::<I>::recover(&options, Arc::new(storage.clone()), &known));
            storage.heal();
            storage = storage.power_loss(chance.random());
        }
        let all_stay = is_kill && !is_lost_again;
        let (records, recovery) = records_of(&storage, Bytewise.name());
        let last = recovery.last_seqno;
        let (store, recovery) =
            Store::<I>::recover(&options, Arc::new(storage.clone()), &known).unwrap();
        assert_eq!(recovery.last_seqno, last, "two recoveries differ");
        store.check(&records, &acks, last, |ack: &Ack| all_stay || ack.synced);
        let (acks, files, ()) = known.at(|| ());
        known.forget(acks, files, last);
    }
}

#[test]
fn nothing_synced_is_lost() {
    let chains = size::pick(500, 60, 1).div_ceil(LIVES as usize) as u64;
    for seed in 0..chains {
        let mode = MODES[seed as usize / 4 % MODES.len()];
        let sync = if seed / 3 % 2 == 0 { SyncPolicy::OnRequest } else { SyncPolicy::EveryGroup };
        let lives = match seed % 4 {
            0 => lives::<SkipIndex>,
            1 => lives::<OrdIndex>,
            _ => lives::<ByteIndex>,
        };
        let seed = seed + size::seed();
        let what = format!("seed {seed}, {mode:?}, {sync:?}");
        println!("{what}"); // of the failure, if there is one
        within(120, &what, move || lives(seed, mode, sync));
    }
    println!("losses of power: {}", chains * LIVES);
}
