//! Appends to a log.

use super::error::{Action, LogError};
use super::format::{Header, RECORD_FIXED, record_head};
use super::storage::{LogFile, LogStorage};
use crate::batch::WriteBatch;
use crate::key::{MAX_SEQNO, Seqno};
use silvics::AllocError;
use std::fmt;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// Batches up to this length are copied behind each other, so that a group of them is one piece.
/// Longer ones are pieces of their own.
const COPIED_BYTES: usize = 4 << 10;

/// Appends batches to a log.
///
/// After a failed append or sync, the writer refuses every later call with [`LogError::Failed`],
/// which names the first cause. To go on, recover the logs and start a new one.
pub struct LogWriter {
    file: Box<dyn LogFile>,
    number: u64,
    /// The CRC that the records continue.
    seed: u32,
    next_seqno: Seqno,
    bytes: u64,
    /// The heads of records and the short batches of a group.
    copied: Vec<u8>,
    failed: Option<Arc<LogError>>,
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter")
            .field("number", &self.number)
            .field("next_seqno", &self.next_seqno)
            .field("bytes", &self.bytes)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl LogWriter {
    /// Creates a log. When the call returns, the log and its header are durable.
    ///
    /// The first record gets `first_seqno`, which follows the last one of the log before. Sync that
    /// log first: otherwise a power failure may lose its end, and recovery leaves out the new log.
    pub fn create(
        storage: &(impl LogStorage + ?Sized),
        number: u64,
        first_seqno: Seqno,
        comparator_name: &str,
    ) -> Result<Self, LogError> {
        let header = Header { number, first_seqno, comparator: comparator_name };
        let (header, seed) = header.encode()?;
        let file =
            storage.create(number).map_err(|error| LogError::io(number, Action::Create, error))?;
        let (next_seqno, copied) = (first_seqno, Vec::new());
        let mut log = Self { file, number, seed, next_seqno, bytes: 0, copied, failed: None };
        log.append(&[IoSlice::new(&header)], header.len())?;
        log.sync()?;
        Ok(log)
    }

    /// The number of the log.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The sequence number that the next record must have.
    pub fn next_seqno(&self) -> Seqno {
        self.next_seqno
    }

    /// The length of the log in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The failure after which the log refuses all calls, if there was one.
    pub fn failure(&self) -> Option<&LogError> {
        self.failed.as_deref()
    }

    /// Appends a group of batches by one call of the storage, as one record each.
    ///
    /// Each batch comes with the sequence number of its first operation, and the numbers must have
    /// no gap. The records are durable once [`sync`](Self::sync) has returned without an error.
    pub fn append_group(&mut self, records: &[(Seqno, &WriteBatch)]) -> Result<(), LogError> {
        self.refuse_if_failed()?;
        let next_seqno = self.check_seqnos(records)?;
        if records.is_empty() {
            return Ok(());
        }
        let mut copied = std::mem::take(&mut self.copied);
        let result = self.append_with(&mut copied, records);
        self.copied = copied;
        result?;
        self.next_seqno = next_seqno;
        Ok(())
    }

    /// Makes all appended records durable.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.refuse_if_failed()?;
        self.file.sync().map_err(|error| self.fail(Action::Sync, error))
    }

    fn refuse_if_failed(&self) -> Result<(), LogError> {
        match &self.failed {
            Some(first) => Err(LogError::Failed { log: self.number, first: Arc::clone(first) }),
            None => Ok(()),
        }
    }

    /// Remembers the failure of a call for good (rule R2).
    fn fail(&mut self, action: Action, error: io::Error) -> LogError {
        let error = LogError::io(self.number, action, error);
        self.failed = Some(Arc::new(error.clone()));
        error
    }

    /// Checks that the numbers continue (rule R3). Returns the number behind the last record.
    fn check_seqnos(&self, records: &[(Seqno, &WriteBatch)]) -> Result<Seqno, LogError> {
        let mut next = self.next_seqno;
        for &(seqno, batch) in records {
            if seqno != next {
                return Err(LogError::Sequence { log: self.number, wanted: next, found: seqno });
            }
            next += u64::from(batch.len());
            if next > MAX_SEQNO + 1 {
                return Err(LogError::SeqnoRange { seqno: next - 1, limit: MAX_SEQNO });
            }
        }
        Ok(next)
    }

    fn append_with(
        &mut self,
        copied: &mut Vec<u8>,
        records: &[(Seqno, &WriteBatch)],
    ) -> Result<(), LogError> {
        let is_long = |batch: &WriteBatch| batch.bytes().len() > COPIED_BYTES;
        let short: usize = records
            .iter()
            .map(|(_, batch)| if is_long(batch) { 0 } else { batch.bytes().len() })
            .sum();
        copied.clear();
        reserve(copied, short + records.len() * RECORD_FIXED)?;
        let (mut longs, mut bytes) = (0, 0);
        for &(seqno, batch) in records {
            let ops = batch.bytes();
            copied.extend_from_slice(&record_head(self.seed, seqno, batch.len(), ops));
            bytes += RECORD_FIXED + ops.len();
            if is_long(batch) {
                longs += 1;
            } else {
                copied.extend_from_slice(ops);
            }
        }
        if longs == 0 {
            return self.append(&[IoSlice::new(copied)], bytes);
        }
        // The bytes that were copied up to a long batch, then that batch.
        let mut pieces = Vec::new();
        reserve(&mut pieces, 2 * longs + 1)?;
        let (mut from, mut to) = (0, 0);
        for &(_, batch) in records {
            to += RECORD_FIXED;
            if is_long(batch) {
                pieces.push(IoSlice::new(&copied[from..to]));
                pieces.push(IoSlice::new(batch.bytes()));
                from = to;
            } else {
                to += batch.bytes().len();
            }
        }
        if from < to {
            pieces.push(IoSlice::new(&copied[from..]));
        }
        self.append(&pieces, bytes)
    }

    fn append(&mut self, pieces: &[IoSlice<'_>], bytes: usize) -> Result<(), LogError> {
        self.file.append(pieces).map_err(|error| self.fail(Action::Append, error))?;
        self.bytes += bytes as u64;
        Ok(())
    }
}

fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), LogError> {
    let requested = more.saturating_mul(size_of::<T>());
    list.try_reserve(more).map_err(|_| LogError::Alloc(AllocError::System { requested }))
}
