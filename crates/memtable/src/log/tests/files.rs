//! One file: its round trip, its damages, and the failures of its storage.

use super::super::folder::write_pieces;
use super::super::format::{header_bytes, record_head};
use super::{ORDER, append, batch, entry, small};
use crate::batch::WriteBatch;
use crate::key::MAX_SEQNO;
use crate::log::forgetful::{Fault, FaultError, Forgetful};
use crate::log::*;
use std::io::{self, IoSlice, Write};

#[test]
fn records_are_read_as_they_were_appended() {
    let storage = Forgetful::new();
    let wanted = small(&storage, 7, 100);
    let file = storage.read(7).unwrap();
    let mut log = read_log(&file).unwrap();
    assert_eq!(log.header(), Header { number: 7, first_seqno: 100, comparator: ORDER });
    let found: Vec<_> = log.by_ref().map(|record| entry(&record)).collect();
    assert_eq!(found, wanted);
    assert_eq!((log.stop(), log.offset(), log.next_seqno()), (None, file.len() as u64, 107));
}

#[test]
fn long_batches_are_pieces_of_their_own() {
    let mut long = WriteBatch::new();
    long.put(b"pine", &[7; 5000]).unwrap();
    for order in [[0, 1, 0], [1, 0, 1], [1, 1, 0], [0, 0, 1]] {
        let storage = Forgetful::new();
        let mut log = LogWriter::create(&storage, 1, 1, ORDER).unwrap();
        let batches = order.map(|is_long| if is_long == 1 { long.clone() } else { batch(2, 2) });
        let wanted = append(&mut log, &batches);
        let file = storage.read(1).unwrap();
        assert_eq!(log.bytes(), file.len() as u64);
        assert!(read_log(&file).unwrap().map(|record| entry(&record)).eq(wanted));
    }
}

/// Reads a damaged form of `file`. Whatever is read must be a prefix of `wanted`.
fn prefix(file: &[u8], wanted: &[super::Entry]) -> Option<(usize, Option<Stop>)> {
    let mut log = read_log(file).ok().filter(|log| log.header().expect(7, ORDER).is_ok())?;
    let found: Vec<_> = log.by_ref().map(|record| entry(&record)).collect();
    assert_eq!(found, wanted[..found.len()]);
    Some((found.len(), log.stop().cloned()))
}

#[test]
fn a_truncated_file_has_the_records_before_its_end() {
    let storage = Forgetful::new();
    let wanted = small(&storage, 7, 1);
    let file = storage.read(7).unwrap();
    let mut ends = vec![header_bytes(ORDER)];
    ends.extend(wanted.iter().map(|(_, _, ops)| 20 + ops.len()));
    let ends: Vec<_> = ends
        .iter()
        .scan(0, |end, len| {
            *end += len;
            Some(*end)
        })
        .collect();
    for end in 0..=file.len() {
        let Some((read, stop)) = prefix(&file[..end], &wanted) else {
            assert!(end < ends[0], "the header ends at {}, not at {end}", ends[0]);
            continue;
        };
        assert_eq!(read + 1, ends.iter().filter(|&&record| record <= end).count());
        assert_eq!(stop.is_none(), ends.contains(&end), "{end}: {stop:?}");
        assert!(stop.is_none_or(|stop| stop.offset == ends[read] as u64));
    }
}

#[test]
fn each_flipped_bit_is_detected() {
    let storage = Forgetful::new();
    let wanted = small(&storage, 7, 1);
    let file = storage.read(7).unwrap();
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let read = prefix(&damaged, &wanted);
        assert!(read.is_none_or(|(_, stop)| stop.is_some()), "bit {bit}");
        assert_eq!(read_log(&damaged).is_err(), bit / 8 < header_bytes(ORDER), "bit {bit}");
    }
}

#[test]
fn zeros_behind_the_records_are_reported() {
    let storage = Forgetful::new();
    let wanted = small(&storage, 7, 1);
    let file = storage.read(7).unwrap();
    for zeros in [1, 7, 8, 20, 4096] {
        let longer = [&file[..], &vec![0; zeros]].concat();
        let stop =
            Stop { offset: file.len() as u64, reason: StopReason::Zeros { bytes: zeros as u64 } };
        assert_eq!(prefix(&longer, &wanted), Some((wanted.len(), Some(stop))));
    }
}

/// The reason why a record with a valid checksum is not read.
fn refused(seqno: u64, count: u32, ops: &[u8]) -> StopReason {
    let header = Header { number: 7, first_seqno: 5, comparator: ORDER };
    let (mut file, seed) = header.encode().unwrap();
    file.extend_from_slice(&record_head(seed, seqno, count, ops));
    file.extend_from_slice(ops);
    let mut log = read_log(&file).unwrap();
    assert_eq!(log.next(), None);
    log.stop().unwrap().reason.clone()
}

#[test]
fn records_must_continue_and_parse() {
    assert_eq!(refused(6, 0, b""), StopReason::Sequence { wanted: 5, found: 6 });
    assert_eq!(refused(0, 0, b""), StopReason::Sequence { wanted: 5, found: 0 });
    assert!(matches!(refused(5, 1, b"\x02"), StopReason::Operations(_)));
    assert!(matches!(refused(5, 2, b"\x00\x00"), StopReason::Operations(_)));
    let header = Header { number: 7, first_seqno: MAX_SEQNO, comparator: ORDER };
    let (mut file, seed) = header.encode().unwrap();
    file.extend_from_slice(&record_head(seed, MAX_SEQNO, 2, b"\0\0\0\0"));
    file.extend_from_slice(b"\0\0\0\0");
    let mut log = read_log(&file).unwrap();
    assert_eq!(log.next(), None);
    let reason = StopReason::SeqnoRange { seqno: MAX_SEQNO + 1, limit: MAX_SEQNO };
    assert_eq!(log.stop().unwrap().reason, reason);
}

#[test]
fn a_record_of_another_log_is_not_accepted() {
    let (ours, theirs) = (Forgetful::new(), Forgetful::new());
    small(&ours, 7, 1);
    small(&theirs, 8, 1);
    let (ours, theirs) = (ours.read(7).unwrap(), theirs.read(8).unwrap());
    let at = header_bytes(ORDER);
    let mixed = [&ours[..at], &theirs[at..]].concat();
    let mut log = read_log(&mixed).unwrap();
    assert_eq!(log.next(), None);
    assert!(matches!(log.stop().unwrap().reason, StopReason::Checksum { .. }));
}

#[test]
fn headers_are_refused_by_sentences() {
    let storage = Forgetful::new();
    small(&storage, 7, 1);
    let file = storage.read(7).unwrap();
    let text = |bytes: &[u8]| read_log(bytes).unwrap_err().to_string();
    assert_eq!(text(b""), "the file is empty");
    assert_eq!(text(b"silv"), "the file ends after 4 bytes, and the header has at least 30");
    assert_eq!(
        text(b"#!/bin/sh\n"),
        "the file begins with \"#!/bin/s\" instead of \"silv-log\", so it is not a log: move it away"
    );
    let mut other = file.clone();
    other[8] = 2;
    let error = HeaderError::Version { found: 2, known: 1 };
    assert_eq!(read_log(&other).unwrap_err(), error);
    let header = read_log(&file).unwrap().header();
    assert_eq!(
        header.expect(9, ORDER).unwrap_err().to_string(),
        "the file is log 7 under the name of log 9: undo the renaming"
    );
    assert_eq!(
        header.expect(7, "reverse").unwrap_err().to_string(),
        "the keys are in the order \"test.Order\", and the buffer has \"reverse\": \
         open it with the comparator \"test.Order\""
    );
}

#[test]
fn wrong_calls_are_refused_and_leave_the_log_usable() {
    let storage = Forgetful::new();
    let name = "x".repeat(70_000);
    let error = LogWriter::create(&storage, 1, 1, &name).unwrap_err();
    assert!(matches!(error, LogError::ComparatorName { bytes: 70_000, limit: 65_535 }));
    for seqno in [0, MAX_SEQNO + 2] {
        let error = LogWriter::create(&storage, 1, seqno, ORDER).unwrap_err();
        assert!(matches!(error, LogError::SeqnoRange { .. }), "{error}");
    }
    let mut log = LogWriter::create(&storage, 1, MAX_SEQNO, ORDER).unwrap();
    let (one, two) = (batch(1, 1), batch(2, 2));
    let error = log.append_group(&[(1, &one)]).unwrap_err();
    assert!(matches!(error, LogError::Sequence { found: 1, .. }), "{error}");
    let error = log.append_group(&[(MAX_SEQNO, &two)]).unwrap_err();
    assert!(matches!(error, LogError::SeqnoRange { .. }), "{error}");
    append(&mut log, &[one]);
    log.append_group(&[]).unwrap();
    assert!(log.failure().is_none());
    LogWriter::create(&storage, 2, log.next_seqno(), ORDER).unwrap();
}

#[test]
fn a_failure_is_final_and_named() {
    // Symptom to prevent: `fsync` fails once, its retry succeeds, and the pages are lost.
    for action in [Action::Append, Action::Sync] {
        let storage = Forgetful::new();
        let mut log = LogWriter::create(&storage, 3, 1, ORDER).unwrap();
        let error = FaultError::NoSpace;
        storage.inject(Fault { error, partly: true, ..Fault::once(action, 0) });
        let one = batch(2, 1);
        let first = log.append_group(&[(1, &one)]).and_then(|()| log.sync()).unwrap_err();
        let LogError::Io { log: Some(3), error, .. } = &first else { panic!("{first}") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let next = log.next_seqno();
        let before = storage.read(3).unwrap();
        for error in [log.sync().unwrap_err(), log.append_group(&[(next, &one)]).unwrap_err()] {
            assert!(matches!(error, LogError::Failed { log: 3, .. }), "{error}");
            assert!(error.to_string().contains(&first.to_string()), "{error}");
        }
        assert_eq!(storage.read(3).unwrap(), before);
    }
}

/// Takes a few bytes at each call, and is interrupted now and then.
struct Slow {
    bytes: Vec<u8>,
    step: usize,
    calls: usize,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let before = self.bytes.len();
        let bytes = pieces.iter().flat_map(|piece| piece.iter());
        self.bytes.extend(bytes.take(self.step));
        Ok(self.bytes.len() - before)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn partial_writes_are_continued() {
    let parts: [&[u8]; 6] = [b"", b"abc", b"", b"defgh", b"i", b""];
    let pieces = parts.map(IoSlice::new);
    for step in 1..12 {
        let mut slow = Slow { bytes: Vec::new(), step, calls: 0 };
        write_pieces(&mut slow, &pieces).unwrap();
        assert_eq!(slow.bytes, b"abcdefghi", "{step} bytes at each call");
    }
    let mut stuck = Slow { bytes: Vec::new(), step: 0, calls: 0 };
    let error = write_pieces(&mut stuck, &pieces).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}

#[test]
#[cfg_attr(miri, ignore = "uses files")]
fn a_folder_keeps_logs_and_ignores_other_files() {
    let temp = tempfile::tempdir().unwrap();
    let folder = LogFolder::open(temp.path().join("a/b")).unwrap();
    for name in ["7.log", "0000000007.sst", "000000000x.log", "00000000007.log", "LOCK"] {
        std::fs::write(folder.path().join(name), "not a log").unwrap();
    }
    assert_eq!(folder.numbers().unwrap(), []);
    let mut wanted = Vec::new();
    for number in [8, 10_000_000_000, 7] {
        let next = 1;
        let mut log = LogWriter::create(&folder, number, next, ORDER).unwrap();
        wanted = append(&mut log, &[batch(2, 2), batch(5, 700)]);
        log.sync().unwrap();
        assert_eq!(log.bytes(), std::fs::metadata(folder.file(number)).unwrap().len());
    }
    assert!(folder.file(7).ends_with("0000000007.log"));
    assert_eq!(folder.numbers().unwrap(), [7, 8, 10_000_000_000]);
    let file = folder.read(8).unwrap();
    assert!(read_log(&file).unwrap().map(|record| entry(&record)).eq(wanted));
    let error = LogWriter::create(&folder, 7, 1, ORDER).unwrap_err();
    assert!(error.to_string().starts_with("log 7 could not be created: "), "{error}");
    folder.sync(7).unwrap();
    folder.remove(7).unwrap();
    assert_eq!(folder.numbers().unwrap(), [8, 10_000_000_000]);
    assert_eq!(folder.read(7).unwrap_err().kind(), io::ErrorKind::NotFound);
}
