//! Power failures at random points of a script.

use super::{Entry, ORDER, append, batch, recover};
use crate::batch::WriteBatch;
use crate::log::forgetful::{Fault, Forgetful, SECTOR_BYTES};
use crate::log::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io::IoSlice;

#[test]
fn synced_bytes_survive_and_others_may_not() {
    let storage = Forgetful::new();
    let mut file = storage.create(1).unwrap();
    let bytes: Vec<u8> = (0..5 * SECTOR_BYTES).map(|at| (at % 251) as u8 + 1).collect();
    let (synced, rest) = bytes.split_at(700);
    file.append(&[IoSlice::new(synced)]).unwrap();
    file.sync().unwrap();
    file.append(&[IoSlice::new(rest)]).unwrap();
    storage.create(2).unwrap();
    let (mut all, mut none, mut torn, mut reordered, mut created) = (0, 0, 0, 0, 0);
    for seed in 0..500 {
        let after = storage.power_loss(seed);
        let found = after.read(1).unwrap();
        assert_eq!(found, storage.power_loss(seed).read(1).unwrap(), "seed {seed}");
        assert_eq!(found[..700], *synced, "seed {seed}");
        let is_right = |at: usize| found.get(at) == Some(&bytes[at]);
        let sector =
            |at: usize| (at * SECTOR_BYTES..(at + 1) * SECTOR_BYTES).filter(|&at| is_right(at));
        all += u32::from(found == bytes);
        none += u32::from(found == synced);
        torn += u32::from((10..SECTOR_BYTES - 10).contains(&sector(3).count()));
        reordered += u32::from(sector(2).count() < 10 && sector(4).count() == SECTOR_BYTES);
        created += u32::from(after.numbers().unwrap().contains(&2));
    }
    for count in [all, none, torn, reordered, created, 500 - created] {
        assert!(count > 5, "{all} {none} {torn} {reordered} {created}");
    }
}

#[test]
fn a_sync_that_is_tried_again_has_lost_the_bytes() {
    let mut lost = 0;
    for seed in 0..100 {
        let storage = Forgetful::new();
        let mut file = storage.create(1).unwrap();
        file.sync().unwrap();
        file.append(&[IoSlice::new(b"pine")]).unwrap();
        storage.inject(Fault::once(Action::Sync, 0));
        file.sync().unwrap_err();
        file.sync().unwrap(); // the wrong step
        lost += u32::from(storage.power_loss(seed).read(1).unwrap() != b"pine");
    }
    assert!(lost > 10, "{lost} of 100");
}

/// The owner of logs, as a write buffer would use them, and what it may expect of recovery.
struct Owner {
    chance: Xoshiro256PlusPlus,
    /// Everything appended, from the first batch on.
    appended: Vec<Entry>,
    /// The last number that is durable.
    synced: u64,
    /// The last number that is in durable tables, so that its log may be removed.
    flushed: u64,
    /// The logs that exist, with the last number of each but the newest.
    logs: Vec<(u64, u64)>,
    batches: u64,
}

impl Owner {
    fn next(&self) -> u64 {
        self.appended.last().map_or(1, |(first, count, _)| first + u64::from(*count))
    }

    fn group(&mut self) -> Vec<WriteBatch> {
        let count = self.chance.random_range(1..5);
        (0..count)
            .map(|_| {
                self.batches += 1;
                batch(self.batches, self.chance.random_range(0..25))
            })
            .collect()
    }

    /// Writes until a call fails.
    fn write(&mut self, storage: &Forgetful, number: u64) -> Result<(), LogError> {
        let mut log = LogWriter::create(storage, number, self.next(), ORDER)?;
        self.logs.push((number, u64::MAX));
        loop {
            match self.chance.random_range(0..12) {
                0 => log = self.switch(storage, log)?,
                1 => self.remove(storage)?,
                2..5 => {
                    log.sync()?;
                    self.synced = self.next() - 1;
                }
                _ => {
                    // Part of the records may be there even if the append fails.
                    let mut next = self.next();
                    let group = self.group();
                    let mut records = Vec::new();
                    for batch in &group {
                        records.push((next, batch));
                        self.appended.push((next, batch.len(), batch.bytes().to_vec()));
                        next += u64::from(batch.len());
                    }
                    log.append_group(&records)?;
                }
            }
        }
    }

    fn switch(&mut self, storage: &Forgetful, mut log: LogWriter) -> Result<LogWriter, LogError> {
        log.sync()?; // rule R4
        self.synced = self.next() - 1;
        self.logs.last_mut().unwrap().1 = self.synced;
        let number = log.number() + 1;
        let log = LogWriter::create(storage, number, self.next(), ORDER)?;
        self.logs.push((number, u64::MAX));
        Ok(log)
    }

    /// Removes the oldest log, whose table is durable, unless it is the newest.
    fn remove(&mut self, storage: &Forgetful) -> Result<(), LogError> {
        if self.logs.len() > 1 {
            let (number, last) = self.logs[0];
            self.flushed = last;
            storage.remove(number).map_err(|error| LogError::io(number, Action::Remove, error))?;
            self.logs.remove(0);
        }
        Ok(())
    }

    /// Recovers, checks the result, and goes on from there.
    fn recover(&mut self, storage: &Forgetful) -> u64 {
        let (recovery, entries) = recover(storage).unwrap();
        assert!(recovery.last_seqno >= self.synced, "{recovery:?}: {} was synced", self.synced);
        assert_eq!(recovery.left_out, [], "{recovery:?}");
        let from = entries.first().map_or(recovery.last_seqno + 1, |(first, ..)| *first);
        assert!(from <= self.flushed + 1, "{recovery:?}: {} was flushed", self.flushed);
        // Empty batches at both ends share their number with their neighbours.
        let of = |entries: &[Entry]| -> Vec<Entry> {
            let has_operations = |(first, count, _): &&Entry| *count > 0 && *first >= from;
            entries.iter().filter(has_operations).cloned().collect()
        };
        let (found, wanted) = (of(&entries), of(&self.appended));
        assert_eq!(found, wanted[..found.len()]);
        self.appended.retain(|(first, ..)| *first <= recovery.last_seqno);
        assert_eq!(self.next(), recovery.last_seqno + 1);
        self.synced = recovery.last_seqno;
        let ends = recovery.logs.iter().map(|&log| (log, recovery.last_seqno));
        self.logs = ends.collect();
        recovery.next_number
    }
}

/// Runs several lives of an owner, each of which ends by a crash.
fn lives(seed: u64) {
    let chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (appended, logs) = (Vec::new(), Vec::new());
    let mut owner = Owner { chance, appended, synced: 0, flushed: 0, logs, batches: 0 };
    let mut storage = Forgetful::new();
    let mut number = 1;
    for _ in 0..4 {
        storage.inject(Fault::stop(owner.chance.random_range(0..60)));
        let error = owner.write(&storage, number).unwrap_err();
        assert!(matches!(error, LogError::Io { .. }), "{error}");
        storage.heal();
        if owner.chance.random_bool(0.8) {
            storage = storage.power_loss(owner.chance.random());
        }
        number = owner.recover(&storage);
    }
}

#[test]
fn recovery_after_power_failures_finds_what_was_synced() {
    let seeds = if cfg!(miri) { 3 } else { 500 };
    for seed in 0..seeds {
        let result = std::panic::catch_unwind(|| lives(seed));
        if let Err(panic) = result {
            println!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn an_unsynced_log_is_lost_in_part_or_torn() {
    let (mut whole, mut less, mut torn) = (0, 0, 0);
    for seed in 0..200 {
        let storage = Forgetful::new();
        let mut log = LogWriter::create(&storage, 1, 1, ORDER).unwrap();
        let first = append(&mut log, &[batch(8, 8)]);
        log.sync().unwrap();
        let batches: Vec<_> = (0..60).map(|seed| batch(seed, 1)).collect();
        append(&mut log, &batches);
        let (recovery, entries) = recover(&storage.power_loss(seed)).unwrap();
        assert_eq!(entries[..1], first);
        whole += u32::from(entries.len() == 61);
        less += u32::from(entries.len() < 61);
        torn += u32::from(recovery.stopped.is_some());
    }
    assert!(whole > 10 && less > 10 && torn > 10, "{whole} {less} {torn}");
}
