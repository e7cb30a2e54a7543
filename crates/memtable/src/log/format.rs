//! The bytes of headers and records: see the tables of the module.

use super::error::{HeaderError, LogError};
use crate::key::{MAX_SEQNO, Seqno};
use silvics::AllocError;

/// The first bytes of a log.
pub(super) const MAGIC: [u8; 8] = *b"silv-log";
/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// The bytes of a header before the name of the comparator.
pub(super) const HEADER_FIXED: usize = 30;
/// The bytes of a CRC.
pub(super) const CRC_BYTES: usize = 4;
/// The bytes of a record before its payload.
pub(super) const RECORD_HEAD: usize = 8;
/// The bytes of a payload before the operations.
pub(super) const PAYLOAD_HEAD: usize = 12;
/// The bytes of a record before the operations.
pub(super) const RECORD_FIXED: usize = RECORD_HEAD + PAYLOAD_HEAD;

/// The header of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The number of the log.
    pub number: u64,
    /// The sequence number that follows all earlier logs.
    pub first_seqno: Seqno,
    /// The name of the comparator.
    pub comparator: &'a str,
}

impl<'a> Header<'a> {
    /// The bytes of the header, and the CRC that the records continue.
    pub(super) fn encode(&self) -> Result<(Vec<u8>, u32), LogError> {
        let limit = u16::MAX as usize;
        let name = self.comparator.as_bytes();
        let Ok(len) = u16::try_from(name.len()) else {
            return Err(LogError::ComparatorName { bytes: name.len(), limit });
        };
        if !is_first(self.first_seqno) {
            return Err(LogError::SeqnoRange { seqno: self.first_seqno, limit: MAX_SEQNO });
        }
        let requested = header_bytes(self.comparator);
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(requested).is_err() {
            return Err(LogError::Alloc(AllocError::System { requested }));
        }
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.first_seqno.to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(name);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        Ok((bytes, crc))
    }

    /// Reads a header from the beginning of a file. Returns it, its bytes, and the CRC that the
    /// records continue.
    pub(super) fn decode(file: &'a [u8]) -> Result<(Self, usize, u32), HeaderError> {
        let bytes = file.len();
        let (magic, rest) =
            file.split_first_chunk().ok_or(HeaderError::Short { bytes, needs: HEADER_FIXED })?;
        if *magic != MAGIC {
            return Err(HeaderError::Foreign { found: *magic, wanted: MAGIC });
        }
        let mut fields = Fields(rest);
        let short = HeaderError::Short { bytes, needs: HEADER_FIXED + CRC_BYTES };
        let version = fields.u32().ok_or(short.clone())?;
        if version != VERSION {
            return Err(HeaderError::Version { found: version, known: VERSION });
        }
        let number = fields.u64().ok_or(short.clone())?;
        let first_seqno = fields.u64().ok_or(short.clone())?;
        let len = fields.u16().ok_or(short)? as usize;
        let end = HEADER_FIXED + len;
        let short = HeaderError::Short { bytes, needs: end + CRC_BYTES };
        let (covered, rest) = file.split_at_checked(end).ok_or(short.clone())?;
        let stored = Fields(rest).u32().ok_or(short)?;
        let crc = crc32c::crc32c(covered);
        if stored != crc {
            return Err(HeaderError::Damaged { stored, computed: crc });
        }
        let Ok(comparator) = std::str::from_utf8(&covered[HEADER_FIXED..]) else {
            return Err(HeaderError::Invalid { field: "the name of the comparator" });
        };
        if !is_first(first_seqno) {
            return Err(HeaderError::Invalid { field: "the first sequence number" });
        }
        Ok((Self { number, first_seqno, comparator }, end + CRC_BYTES, crc))
    }

    /// Checks that the header is that of the log with this number and comparator.
    pub fn expect(&self, number: u64, comparator: &str) -> Result<(), HeaderError> {
        if self.number != number {
            return Err(HeaderError::Number { found: self.number, wanted: number });
        }
        if self.comparator != comparator {
            return Err(HeaderError::Comparator {
                found: self.comparator.to_owned(),
                wanted: comparator.to_owned(),
            });
        }
        Ok(())
    }
}

/// The bytes of a header with the name of this comparator.
pub(super) fn header_bytes(comparator: &str) -> usize {
    HEADER_FIXED + comparator.len() + CRC_BYTES
}

/// Whether a log can begin at this number. Behind the last one there is still an empty log.
fn is_first(seqno: Seqno) -> bool {
    (1..=MAX_SEQNO + 1).contains(&seqno)
}

/// The bytes of a record before its operations.
pub(super) fn record_head(seed: u32, seqno: Seqno, count: u32, ops: &[u8]) -> [u8; RECORD_FIXED] {
    let mut head = [0; RECORD_FIXED];
    head[..4].copy_from_slice(&((PAYLOAD_HEAD + ops.len()) as u32).to_le_bytes());
    head[8..16].copy_from_slice(&seqno.to_le_bytes());
    head[16..].copy_from_slice(&count.to_le_bytes());
    let crc = record_crc(seed, &head, ops);
    head[4..8].copy_from_slice(&crc.to_le_bytes());
    head
}

/// The CRC of a record: of its length and its payload, behind the header of the file without its
/// CRC. The CRC of a message that its own CRC follows would be the same number for every message.
pub(super) fn record_crc(seed: u32, head: &[u8; RECORD_FIXED], ops: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(seed, &head[..4]);
    let crc = crc32c::crc32c_append(crc, &head[RECORD_HEAD..]);
    crc32c::crc32c_append(crc, ops)
}

/// Takes numbers from the front of bytes.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}
