//! The fuzz target of the log: any bytes as a file, and as records with valid checksums.

use super::error::StopReason;
use super::forgetful::Forgetful;
use super::format::{Fields, Header, RECORD_FIXED, record_head};
use super::reader::read_log;
use super::recover::recover_logs;
use crate::batch::WriteBatch;

/// Reads `data` as a log, as a batch, and as the records of a log.
///
/// # Panics
/// Panics if reading panics, or if what was read, written again, has other bytes.
pub fn run(data: &[u8]) {
    check(data);
    if let Some((&count, bytes)) = data.split_first() {
        batch(count.into(), bytes);
    }
    let file = with_checksums(data);
    let stop = check(&file);
    let refused = matches!(stop, Some(StopReason::Checksum { .. } | StopReason::Zeros { .. }));
    assert!(!refused, "a valid record was refused: {stop:?}");
    recovered(&file);
}

fn batch(count: u32, bytes: &[u8]) {
    let Ok(batch) = WriteBatch::parse(count, bytes) else { return };
    let mut again = WriteBatch::new();
    for op in batch {
        again.push(op).expect("an operation within the limits");
    }
    assert_eq!(again.view(), batch, "the operations of {bytes:?}");
}

/// A log with a valid header and with records around the bytes of `data`.
///
/// The first byte of each record is the length of its operations, the second is added to the right
/// sequence number, and the third is the number of operations.
fn with_checksums(mut data: &[u8]) -> Vec<u8> {
    let header = Header { number: 7, first_seqno: 1, comparator: "fuzz" };
    let (mut file, seed) = header.encode().expect("a valid header");
    let mut next = 1;
    while let Some((&[len, skip, count], rest)) = data.split_first_chunk() {
        let (ops, behind) = rest.split_at(usize::from(len).min(rest.len()));
        file.extend_from_slice(&record_head(seed, next + u64::from(skip), count.into(), ops));
        file.extend_from_slice(ops);
        next += u64::from(count);
        data = behind;
    }
    file
}

/// Reads a log and checks that its records, written again, have the same bytes.
fn check(file: &[u8]) -> Option<StopReason> {
    let mut reader = read_log(file).ok()?;
    let begin = reader.offset() as usize;
    let (mut again, seed) = reader.header().encode().expect("a header that was read");
    let mut next = reader.header().first_seqno;
    for record in reader.by_ref() {
        assert_eq!((record.first_seqno, record.offset), (next, again.len() as u64));
        let batch = record.batch;
        batch_again(batch.len(), batch.bytes());
        again.extend_from_slice(&record_head(seed, next, batch.len(), batch.bytes()));
        again.extend_from_slice(batch.bytes());
        next += u64::from(batch.len());
    }
    let end = reader.offset() as usize;
    assert!(begin <= end && again == file[..end], "another encoding");
    assert_eq!(reader.next_seqno(), next);
    let stop = reader.stop();
    assert_eq!(stop.map_or(file.len(), |stop| stop.offset as usize), end);
    stop.map(|stop| stop.reason.clone())
}

fn batch_again(count: u32, bytes: &[u8]) {
    let parsed = WriteBatch::parse(count, bytes).expect("operations that were read");
    assert_eq!(parsed.ops().count(), count as usize);
    batch(count, bytes);
}

/// Recovers the log, and checks that recovery applies the records that a reader finds.
fn recovered(file: &[u8]) {
    let storage = Forgetful::new();
    storage.overwrite(7, file.to_vec());
    let mut applied = Vec::new();
    let recovery = recover_logs(&storage, "fuzz", |record| {
        applied.push((record.offset, record.first_seqno, record.batch.len()));
        Ok::<(), std::convert::Infallible>(())
    });
    let recovery = recovery.expect("a log with a valid header");
    let mut reader = read_log(file).expect("a valid header");
    let read: Vec<_> = reader
        .by_ref()
        .map(|record| (record.offset, record.first_seqno, record.batch.len()))
        .collect();
    assert_eq!(applied, read);
    assert_eq!(recovery.last_seqno + 1, reader.next_seqno());
    assert_eq!(
        recovery.stopped.map(|stopped| stopped.reason),
        reader.stop().map(|s| s.reason.clone())
    );
    assert!(Fields(file).u64().is_some() && file.len() >= RECORD_FIXED);
}
