//! The bytes of a checkpoint.
//!
//! All numbers are little-endian. A file is a header, blocks, and a trailer, without gaps.
//!
//! | bytes | field of the header |
//! |---|---|
//! | 8 | magic: `silv-ckp` |
//! | 4 | version of the format: 1 |
//! | 8 | number of the checkpoint: that of the log at which the replay begins |
//! | 8 | position of the first record of that log |
//! | 4 | *n*: length of the description of the tables |
//! | *n* | the description, in UTF-8 |
//! | 4 | CRC-32C of all bytes before it |
//!
//! | bytes | field of a block |
//! |---|---|
//! | 4 | *n*: bytes of the rows, at least 1 |
//! | 4 | number of the table |
//! | 8 | number of the block, from 0 on |
//! | 4 | CRC-32C of the header of the file, the fields above, and the rows |
//! | *n* | rows, as they lie in memory |
//!
//! The trailer is a block without rows. Its number of the table is 0, and 8 bytes follow that the
//! CRC also covers: the position that the log must reach (W7). The file ends behind it.

use super::schema::VERSION;
use std::io::{self, Read};

/// The first bytes of a checkpoint.
const MAGIC: [u8; 8] = *b"silv-ckp";
/// The bytes of a header before the description.
const HEADER: usize = 32;
/// The bytes of a block before its rows.
const BLOCK: usize = 20;
/// The bytes of a checksum.
const CRC: usize = 4;
/// The most bytes of a description: those of a table are fewer by far.
const MOST_TEXT: usize = 1 << 20;
/// A block is written when its rows have this number of bytes.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// The most bytes of the rows of a block: a row has at most 64 KiB.
const MOST_BYTES: usize = 2 * BLOCK_BYTES;

/// The header of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: u64,
    /// The position of the first record that is replayed.
    pub(super) position: u64,
    /// The description of the tables.
    pub(super) schema: String,
}

impl Header {
    /// The bytes, and the CRC that the blocks continue.
    pub(super) fn encode(&self) -> (Vec<u8>, u32) {
        let mut bytes = Vec::with_capacity(HEADER + self.schema.len() + CRC);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.position.to_le_bytes());
        bytes.extend_from_slice(&(self.schema.len() as u32).to_le_bytes());
        bytes.extend_from_slice(self.schema.as_bytes());
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }
}

/// The bytes of a block before its rows.
pub(super) fn block_head(seed: u32, table: u32, number: u64, rows: &[u8]) -> [u8; BLOCK] {
    let mut head = [0; BLOCK];
    head[..4].copy_from_slice(&(rows.len() as u32).to_le_bytes());
    head[4..8].copy_from_slice(&table.to_le_bytes());
    head[8..16].copy_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(seed, &head[..16]), rows);
    head[16..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// The trailer.
pub(super) fn trailer(seed: u32, blocks: u64, end: u64) -> [u8; BLOCK + 8] {
    let mut bytes = [0; BLOCK + 8];
    bytes[8..16].copy_from_slice(&blocks.to_le_bytes());
    bytes[BLOCK..].copy_from_slice(&end.to_le_bytes());
    let crc = crc32c::crc32c_append(seed, &bytes[..16]);
    let crc = crc32c::crc32c_append(crc, &bytes[BLOCK..]);
    bytes[16..BLOCK].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Why a checkpoint is refused.
#[derive(Debug)]
pub(super) enum Wrong {
    /// The storage has failed.
    Io(io::Error),
    /// The file does not begin as a checkpoint.
    Foreign,
    /// It has another version.
    Version(u32),
    /// It is cut or damaged at this byte.
    Damaged { offset: u64, why: &'static str },
}

/// Reads a checkpoint.
pub(super) struct Reader {
    file: Box<dyn Read + Send>,
    offset: u64,
    /// The CRC of the header.
    seed: u32,
    blocks: u64,
    rows: Vec<u8>,
}

/// A part of a checkpoint.
pub(super) enum Part<'a> {
    /// Rows of a table.
    Rows(u32, &'a [u8]),
    /// The end, with the position that the log must reach.
    End(u64),
}

impl Reader {
    /// Reads the header.
    pub(super) fn open(file: Box<dyn Read + Send>) -> Result<(Header, Self), Wrong> {
        let mut reader = Self { file, offset: 0, seed: 0, blocks: 0, rows: Vec::new() };
        let head: [u8; HEADER] = reader.take()?;
        if head[..8] != MAGIC {
            return Err(Wrong::Foreign);
        }
        let version = number(&head[8..12]) as u32;
        if version != VERSION {
            return Err(Wrong::Version(version));
        }
        let len = number(&head[28..]) as usize;
        if len > MOST_TEXT {
            return Err(reader.damaged("the header has an impossible length"));
        }
        let mut text = vec![0; len];
        reader.fill(&mut text)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &text);
        if u64::from(crc) != number(&reader.take::<CRC>()?) {
            return Err(reader.damaged("the header has another checksum"));
        }
        let Ok(schema) = String::from_utf8(text) else {
            return Err(reader.damaged("the description of the tables is no text"));
        };
        reader.seed = crc;
        let (number, position) = (number(&head[12..20]), number(&head[20..28]));
        Ok((Header { number, position, schema }, reader))
    }

    /// Reads the next part. After the end there is none.
    pub(super) fn next(&mut self) -> Result<Part<'_>, Wrong> {
        let head: [u8; BLOCK] = self.take()?;
        let len = number(&head[..4]) as usize;
        let mut rows = std::mem::take(&mut self.rows);
        let is_end = len == 0;
        if len > MOST_BYTES {
            return Err(self.damaged("a block has an impossible length"));
        }
        rows.clear();
        rows.resize(if is_end { 8 } else { len }, 0);
        self.fill(&mut rows)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(self.seed, &head[..16]), &rows);
        if u64::from(crc) != number(&head[16..]) {
            return Err(self.damaged("a block has another checksum"));
        }
        if number(&head[8..16]) != self.blocks {
            return Err(self.damaged("a block is missing"));
        }
        self.blocks += 1;
        self.rows = rows;
        if is_end {
            if self.file.read(&mut [0]).map_err(Wrong::Io)? > 0 {
                return Err(self.damaged("bytes follow the end"));
            }
            return Ok(Part::End(number(&self.rows)));
        }
        Ok(Part::Rows(number(&head[4..8]) as u32, &self.rows))
    }

    /// The bytes that were read.
    pub(super) fn bytes(&self) -> u64 {
        self.offset
    }

    fn damaged(&self, why: &'static str) -> Wrong {
        Wrong::Damaged { offset: self.offset, why }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Wrong> {
        match self.file.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("the file ends too early"))
            }
            Err(error) => Err(Wrong::Io(error)),
        }
    }
}

/// A little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
