//! Several logs: which of them are applied, and what the report says.

use super::{ORDER, append, batch, recover, small};
use crate::log::forgetful::{Fault, Forgetful};
use crate::log::*;

/// Cuts some bytes off the end of a log.
fn cut(storage: &Forgetful, number: u64, bytes: usize) {
    let file = storage.read(number).unwrap();
    storage.overwrite(number, file[..file.len() - bytes].to_vec());
}

#[test]
fn no_logs_are_an_empty_store() {
    let (recovery, entries) = recover(&Forgetful::new()).unwrap();
    assert_eq!(recovery, Recovery { next_number: 1, ..Recovery::default() });
    assert!(entries.is_empty());
}

#[test]
fn logs_are_applied_in_order() {
    let storage = Forgetful::new();
    let mut wanted = small(&storage, 7, 41);
    wanted.extend(small(&storage, 9, 48));
    let (recovery, entries) = recover(&storage).unwrap();
    assert_eq!(entries, wanted);
    assert_eq!((recovery.last_seqno, recovery.next_number), (54, 10));
    assert_eq!((recovery.batches, recovery.operations), (10, 14));
    assert_eq!((recovery.stopped, recovery.logs), (None, vec![7, 9]));
    assert_eq!(recovery.bytes, wanted.iter().map(|(_, _, ops)| 20 + ops.len() as u64).sum::<u64>());
}

#[test]
fn an_empty_log_keeps_the_numbers_of_removed_ones() {
    let storage = Forgetful::new();
    LogWriter::create(&storage, 9, 500, ORDER).unwrap();
    let (recovery, entries) = recover(&storage).unwrap();
    assert_eq!((recovery.last_seqno, entries.len(), recovery.stopped), (499, 0, None));
}

#[test]
fn nothing_behind_a_hole_is_applied() {
    let storage = Forgetful::new();
    let wanted = small(&storage, 7, 1);
    small(&storage, 8, 8);
    small(&storage, 9, 15);
    cut(&storage, 7, 1);
    let (recovery, entries) = recover(&storage).unwrap();
    assert_eq!(entries, wanted[..4]);
    assert_eq!((recovery.last_seqno, recovery.next_number), (6, 10));
    assert_eq!(recovery.left_out, [8, 9]);
    let records = |log| read_log(&storage.read(log).unwrap()).unwrap().map(|r| r.offset).min();
    let bytes = [8, 9].map(|log| {
        storage.read(log).unwrap().len() as u64 - records(log).expect("a log has records")
    });
    assert_eq!(recovery.left_out_bytes, bytes[0] + bytes[1]);
    let stopped = recovery.stopped.unwrap();
    assert_eq!(stopped.log, 7);
    assert!(matches!(stopped.reason, StopReason::Torn { .. }), "{stopped}");

    // The next log continues where recovery stopped: the hole was accepted.
    let mut wanted = wanted[..4].to_vec();
    wanted.extend(small(&storage, 10, 7));
    let (recovery, entries) = recover(&storage).unwrap();
    assert_eq!(entries, wanted);
    assert_eq!((recovery.last_seqno, recovery.stopped), (13, None));
    assert_eq!(recovery.left_out, [8, 9]);
}

#[test]
fn a_log_lost_at_a_boundary_is_a_gap() {
    let storage = Forgetful::new();
    small(&storage, 7, 1);
    small(&storage, 9, 15);
    let (recovery, entries) = recover(&storage).unwrap();
    assert_eq!((recovery.last_seqno, entries.len()), (7, 5));
    let stopped = recovery.stopped.unwrap();
    assert_eq!((stopped.log, &stopped.reason), (9, &StopReason::Gap { wanted: 8, found: 15 }));
    let text =
        "the log begins at the sequence number 15 instead of 8, so records before it are lost";
    assert!(stopped.to_string().ends_with(text), "{stopped}");
}

#[test]
fn a_torn_header_is_an_empty_log() {
    let storage = Forgetful::new();
    let mut wanted = small(&storage, 7, 1);
    LogWriter::create(&storage, 8, 8, ORDER).unwrap();
    let header = storage.read(8).unwrap();
    for len in 0..header.len() {
        for torn in [header[..len].to_vec(), vec![0; len], vec![0xA5; header.len()]] {
            let bytes = torn.len() as u64;
            storage.overwrite(8, torn);
            let (recovery, entries) = recover(&storage).unwrap();
            assert_eq!((entries, recovery.last_seqno), (wanted.clone(), 7));
            let stopped = recovery.stopped.unwrap();
            assert_eq!((stopped.log, stopped.offset, stopped.bytes), (8, 0, bytes));
        }
    }
    wanted.extend(small(&storage, 9, 8));
    let (recovery, entries) = recover(&storage).unwrap();
    assert_eq!((entries, recovery.stopped), (wanted, None));
}

#[test]
fn foreign_files_are_errors() {
    let storage = Forgetful::new();
    small(&storage, 7, 1);
    let file = storage.read(7).unwrap();
    let refused = |number, bytes: &[u8]| {
        let storage = Forgetful::new();
        storage.overwrite(number, bytes.to_vec());
        match recover(&storage).unwrap_err() {
            RecoveryError::Log(LogError::Header { log, reason }) if log == number => reason,
            error => panic!("{error}"),
        }
    };
    let text = b"The quick brown fox jumps over the lazy dog, twice.";
    assert!(matches!(refused(7, text), HeaderError::Foreign { .. }));
    assert_eq!(refused(8, &file), HeaderError::Number { found: 7, wanted: 8 });
    let mut damaged = file.clone();
    damaged[13] ^= 1;
    assert!(matches!(refused(7, &damaged), HeaderError::Damaged { .. }));

    let other = recover_logs(&storage, "other.Order", |_| Ok::<(), ()>(())).unwrap_err();
    let RecoveryError::Log(LogError::Header { log: 7, reason }) = other else {
        panic!("{other:?}")
    };
    assert!(matches!(reason, HeaderError::Comparator { .. }));
}

#[test]
fn failures_of_recovery_are_reported() {
    let storage = Forgetful::new();
    small(&storage, 7, 1);
    for action in [Action::List, Action::Read, Action::Sync] {
        storage.inject(Fault::once(action, 0));
        let error = recover(&storage).unwrap_err();
        let RecoveryError::Log(LogError::Io { action: found, .. }) = error else { panic!() };
        assert_eq!(found, action);
    }
    let mut calls = 0;
    let error = recover_logs(&storage, ORDER, |_| {
        calls += 1;
        if calls == 2 { Err("the table is full") } else { Ok(()) }
    });
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("of log 7 was not applied: the table is full"), "{error}");
    storage.overwrite(u64::MAX, Vec::new());
    let error = recover(&storage).unwrap_err();
    assert!(matches!(error, RecoveryError::Log(LogError::NumberRange)), "{error}");
}

#[test]
fn recovered_records_survive_a_power_failure_after_the_next_log() {
    // Symptom to prevent: the process crashes before a sync; recovery reads from the page cache and
    // begins log 2 behind it; the power fails, and synced records of log 2 are behind a hole.
    for seed in 0..50 {
        let storage = Forgetful::new();
        let mut log = LogWriter::create(&storage, 1, 1, ORDER).unwrap();
        let mut wanted = append(&mut log, &[batch(2, 2), batch(3, 40)]);
        drop(log);
        let (recovery, _) = recover(&storage).unwrap();
        let (number, first) = (recovery.next_number, recovery.last_seqno + 1);
        let mut log = LogWriter::create(&storage, number, first, ORDER).unwrap();
        wanted.extend(append(&mut log, &[batch(4, 4)]));
        log.sync().unwrap();
        let (recovery, entries) = recover(&storage.power_loss(seed)).unwrap();
        assert_eq!((entries, recovery.stopped), (wanted, None), "seed {seed}");
    }
}
