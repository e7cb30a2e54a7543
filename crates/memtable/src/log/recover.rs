//! Reads all logs of a storage after a crash: see the section on recovery of the module.

use super::error::{Action, HeaderError, LogError, RecoveryError, Stop, StopReason};
use super::format::header_bytes;
use super::reader::{Record, read_log};
use super::storage::LogStorage;
use crate::key::Seqno;
use std::fmt;

/// The result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The last sequence number given: that of the last operation applied, or that before the first
    /// number of the logs if none was. The next log begins behind it.
    pub last_seqno: Seqno,
    /// The number of batches applied.
    pub batches: u64,
    /// The number of operations of these batches.
    pub operations: u64,
    /// The length of their records in bytes.
    pub bytes: u64,
    /// The place behind which nothing was applied, unless that is the end of the newest log.
    pub stopped: Option<Stopped>,
    /// The numbers of all logs in ascending order, also of those that are empty or left out.
    pub logs: Vec<u64>,
    /// The numbers of the logs that were left out, because they do not continue what is applied.
    pub left_out: Vec<u64>,
    /// The bytes behind the headers of the logs that were left out: 0 if these have no records.
    pub left_out_bytes: u64,
    /// The number for the next log.
    pub next_number: u64,
}

/// The place at which recovery stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The number of the log.
    pub log: u64,
    /// The offset in the log of the first record that was not applied.
    pub offset: u64,
    /// The bytes of the log from there on.
    pub bytes: u64,
    /// The reason.
    pub reason: StopReason,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log, offset, bytes, reason } = self;
        write!(
            f,
            "recovery stopped at byte {offset} of log {log} and did not apply the {bytes} bytes \
             from there on: {reason}"
        )
    }
}

/// Reads all logs in ascending order and calls `apply` for each record.
///
/// Records come in the order of their sequence numbers, without gaps. When the call has returned
/// without an error, all of them are durable. The logs stay; remove those in `Recovery::logs` once
/// their entries are durable elsewhere, from the oldest on, and after the next log was created.
pub fn recover_logs<E>(
    storage: &(impl LogStorage + ?Sized),
    comparator_name: &str,
    mut apply: impl FnMut(&Record<'_>) -> Result<(), E>,
) -> Result<Recovery, RecoveryError<E>> {
    let logs = storage.numbers().map_err(|error| LogError::io(None, Action::List, error))?;
    let next_number = match logs.last() {
        Some(last) => last.checked_add(1).ok_or(LogError::NumberRange)?,
        None => 1,
    };
    let mut recovery = Recovery { next_number, ..Recovery::default() };
    let mut next_seqno = None;
    let mut file = Vec::new();
    for &log in &logs {
        storage
            .read_into(log, &mut file)
            .map_err(|error| LogError::io(log, Action::Read, error))?;
        let is_applied =
            recover_log(log, &file, comparator_name, &mut apply, &mut recovery, &mut next_seqno)?;
        if is_applied {
            storage.sync(log).map_err(|error| LogError::io(log, Action::Sync, error))?;
        }
    }
    recovery.logs = logs;
    recovery.last_seqno = next_seqno.unwrap_or(1) - 1;
    Ok(recovery)
}

/// Applies one log if it continues the ones before it, which end before `next_seqno`. Returns
/// whether it does.
fn recover_log<E>(
    log: u64,
    file: &[u8],
    comparator: &str,
    apply: &mut impl FnMut(&Record<'_>) -> Result<(), E>,
    recovery: &mut Recovery,
    next_seqno: &mut Option<Seqno>,
) -> Result<bool, RecoveryError<E>> {
    let len = file.len() as u64;
    let opened = read_log(file).and_then(|reader| {
        reader.header().expect(log, comparator)?;
        Ok(reader)
    });
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(reason) if is_unfinished(file, comparator, &reason) => {
            let reason = StopReason::Header(reason);
            recovery.stopped.get_or_insert(Stopped { log, offset: 0, bytes: len, reason });
            return Ok(false);
        }
        Err(reason) => return Err(LogError::Header { log, reason }.into()),
    };
    let first = reader.header().first_seqno;
    let wanted = *next_seqno.get_or_insert(first);
    if first != wanted {
        let reason = StopReason::Gap { wanted, found: first };
        recovery.stopped.get_or_insert(Stopped { log, offset: 0, bytes: len, reason });
        recovery.left_out.push(log);
        recovery.left_out_bytes += len - reader.offset();
        return Ok(false);
    }
    let begin = reader.offset();
    for record in reader.by_ref() {
        // The recovery that began this log has accepted and reported earlier stops.
        recovery.stopped = None;
        let offset = record.offset;
        apply(&record).map_err(|error| RecoveryError::Apply { log, offset, error })?;
        recovery.batches += 1;
        recovery.operations += u64::from(record.batch.len());
    }
    recovery.bytes += reader.offset() - begin;
    *next_seqno = Some(reader.next_seqno());
    if let Some(Stop { offset, reason }) = reader.stop().cloned() {
        recovery.stopped = Some(Stopped { log, offset, bytes: len - offset, reason });
    }
    Ok(true)
}

/// Whether the creation of the log was interrupted before its header was durable (rule R1).
///
/// The bytes may be those of any file to which the block belonged before. A valid header with the
/// name of another comparator is refused nevertheless: it is more probably a wrong comparator.
fn is_unfinished(file: &[u8], comparator: &str, reason: &HeaderError) -> bool {
    file.len() <= header_bytes(comparator) && !matches!(reason, HeaderError::Comparator { .. })
}
