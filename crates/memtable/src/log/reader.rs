//! Reads the records of one log.

use super::error::{HeaderError, Stop, StopReason};
use super::format::{Fields, Header, PAYLOAD_HEAD, RECORD_FIXED, RECORD_HEAD, record_crc};
use crate::batch::{BatchRef, MAX_BATCH_BYTES, WriteBatch};
use crate::canary::{Canary, planted};
use crate::key::{MAX_SEQNO, Seqno};

/// A record of a log: one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The number of the log.
    pub log: u64,
    /// The offset of the record in the file.
    pub offset: u64,
    /// The sequence number of the first operation. Each operation has the next one.
    pub first_seqno: Seqno,
    /// The operations.
    pub batch: BatchRef<'a>,
}

/// Reads the header of a log, whose records can then be iterated over.
///
/// To check that it is the expected log, call [`Header::expect`].
pub fn read_log(file: &[u8]) -> Result<LogReader<'_>, HeaderError> {
    let (header, at, seed) = Header::decode(file)?;
    Ok(LogReader { header, file, at, seed, next_seqno: header.first_seqno, stop: None })
}

/// The records of a log, up to the end of the file or to the first one that is torn or damaged.
///
/// After the last record, [`stop`](Self::stop) says why it is the last.
#[derive(Clone, Debug)]
pub struct LogReader<'a> {
    header: Header<'a>,
    file: &'a [u8],
    /// The offset of the next record.
    at: usize,
    /// The CRC that the records continue.
    seed: u32,
    next_seqno: Seqno,
    stop: Option<Stop>,
}

impl<'a> LogReader<'a> {
    /// The header of the log.
    pub fn header(&self) -> Header<'a> {
        self.header
    }

    /// The reason why reading stopped before the end of the file.
    ///
    /// It is `None` while there are more records, and if the last record ends where the file ends.
    pub fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// The offset of the next record in the file.
    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    /// The sequence number that follows the records read.
    pub fn next_seqno(&self) -> Seqno {
        self.next_seqno
    }

    fn read(&mut self) -> Result<Record<'a>, StopReason> {
        let rest = &self.file[self.at..];
        let bytes = rest.len() as u64;
        if rest.iter().take(RECORD_HEAD).all(|&byte| byte == 0) && rest.iter().all(|&b| b == 0) {
            return Err(StopReason::Zeros { bytes });
        }
        let Some((head, behind)) = rest.split_first_chunk::<RECORD_FIXED>() else {
            return Err(StopReason::Torn { bytes, needs: RECORD_FIXED as u64 });
        };
        let mut fields = Fields(head);
        // The head has these four fields and no other.
        let (Some(length), Some(stored), Some(first_seqno), Some(count)) =
            (fields.u32(), fields.u32(), fields.u64(), fields.u32())
        else {
            return Err(StopReason::Torn { bytes, needs: RECORD_FIXED as u64 });
        };
        let len = match (length as usize).checked_sub(PAYLOAD_HEAD) {
            Some(len) if len <= MAX_BATCH_BYTES => len,
            _ => return Err(StopReason::Length { bytes: length.into() }),
        };
        let Some(ops) = behind.get(..len) else {
            return Err(StopReason::Torn { bytes, needs: (RECORD_FIXED + len) as u64 });
        };
        let computed = record_crc(self.seed, head, ops);
        if computed != stored && !planted(Canary::TornRecordAccepted) {
            return Err(StopReason::Checksum { stored, computed });
        }
        if first_seqno != self.next_seqno {
            return Err(StopReason::Sequence { wanted: self.next_seqno, found: first_seqno });
        }
        let next_seqno = first_seqno + u64::from(count);
        if next_seqno > MAX_SEQNO + 1 {
            return Err(StopReason::SeqnoRange { seqno: next_seqno - 1, limit: MAX_SEQNO });
        }
        let batch = WriteBatch::parse(count, ops).map_err(StopReason::Operations)?;
        let offset = self.offset();
        self.at += RECORD_FIXED + len;
        self.next_seqno = next_seqno;
        Ok(Record { log: self.header.number, offset, first_seqno, batch })
    }
}

impl<'a> Iterator for LogReader<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        if self.stop.is_some() || self.at == self.file.len() {
            return None;
        }
        match self.read() {
            Ok(record) => Some(record),
            Err(reason) => {
                self.stop = Some(Stop { offset: self.offset(), reason });
                None
            }
        }
    }
}

impl std::iter::FusedIterator for LogReader<'_> {}
