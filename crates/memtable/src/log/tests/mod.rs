//! Tests of the log. `files` has those of one file, `recovery` those of several, and `power` those
//! of storages that lose power.

mod files;
mod power;
mod recovery;
mod seeds;

use super::{LogWriter, Record};
use crate::batch::WriteBatch;
use crate::key::Seqno;
use crate::log::forgetful::Forgetful;
use crate::log::{LogStorage, Recovery, RecoveryError, recover_logs};
use std::convert::Infallible;

const ORDER: &str = "test.Order";

/// A batch of `count` operations that only `seed` and `count` determine.
fn batch(seed: u64, count: u32) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for at in 0..u64::from(count) {
        let key = (seed * 31 + at).to_be_bytes();
        match (seed + at) % 4 {
            0 => batch.delete(&key[4..]).unwrap(),
            1 => batch.delete_range(&key[6..], &key[5..]).unwrap(),
            _ => batch.put(&key, &vec![seed as u8; (seed % 90) as usize]).unwrap(),
        }
    }
    batch
}

/// A record that owns its bytes.
type Entry = (Seqno, u32, Vec<u8>);

fn entry(record: &Record<'_>) -> Entry {
    (record.first_seqno, record.batch.len(), record.batch.bytes().to_vec())
}

/// Appends the batches behind each other as one group. Returns them as they will be read.
fn append(log: &mut LogWriter, batches: &[WriteBatch]) -> Vec<Entry> {
    let mut next = log.next_seqno();
    let mut records = Vec::new();
    for batch in batches {
        records.push((next, batch));
        next += u64::from(batch.len());
    }
    log.append_group(&records).unwrap();
    let owned =
        |&(seqno, batch): &(Seqno, &WriteBatch)| (seqno, batch.len(), batch.bytes().to_vec());
    records.iter().map(owned).collect()
}

/// A synced log of five batches in two groups, its entries, and the offset of each record.
fn small(storage: &Forgetful, number: u64, first: Seqno) -> Vec<Entry> {
    let mut log = LogWriter::create(storage, number, first, ORDER).unwrap();
    let mut entries = append(&mut log, &[batch(1, 1), batch(2, 3), batch(7, 0)]);
    entries.extend(append(&mut log, &[batch(3, 2), batch(4, 1)]));
    log.sync().unwrap();
    entries
}

fn recover(storage: &impl LogStorage) -> Result<(Recovery, Vec<Entry>), RecoveryError<Infallible>> {
    let mut entries = Vec::new();
    let recovery = recover_logs(storage, ORDER, |record| {
        entries.push(entry(record));
        Ok(())
    })?;
    Ok((recovery, entries))
}
