//! The sorted file that a frozen table becomes. Numbers in it are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `SLVSORT1` |
//! | 8 + 8 | the number of versions, and that of tombstones of ranges |
//! | each version, in order | length of the key 4, key, trailer 8, length of the value 4, value |
//! | each tombstone | length of the start 4, start, length of the end 4, end, sequence number 8 |
//! | 4 | the CRC-32C of all bytes before it |

use silvics_memtable::{Found, FrozenTable, Index, Kind, Seqno};
use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"SLVSORT1";

/// A file in memory, as an engine would have it in its cache.
#[derive(Debug)]
pub(crate) struct SortedFile {
    /// User key, sequence number, and the value unless the version deletes the key.
    versions: Vec<(Vec<u8>, Seqno, Option<Vec<u8>>)>,
    tombstones: Vec<(Vec<u8>, Vec<u8>, Seqno)>,
}

impl SortedFile {
    /// Writes a table to a new file, which gets its name once it is complete and synced.
    pub(crate) fn write<I: Index>(table: &FrozenTable<I>, path: &Path) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        let (stats, tombstones) = (table.stats(), table.range_tombstones());
        bytes.extend((stats.puts + stats.deletes).to_le_bytes());
        bytes.extend((tombstones.len() as u64).to_le_bytes());
        let mut cursor = table.versions();
        while let (Some(key), Some(value)) = (cursor.key(), cursor.value()) {
            push(&mut bytes, key.user);
            bytes.extend(key.trailer.to_le_bytes());
            push(&mut bytes, value);
            cursor.next();
        }
        for tombstone in &tombstones {
            push(&mut bytes, &tombstone.start);
            push(&mut bytes, &tombstone.end);
            bytes.extend(tombstone.seqno.to_le_bytes());
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        let unfinished = path.with_extension("tmp");
        let mut file = File::create(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        match path.parent() {
            Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }

    /// Reads a file, and checks its checksum.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        Self::parse(&bytes).ok_or_else(|| {
            Error::new(ErrorKind::InvalidData, format!("{} is damaged", path.display()))
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (content, sum) = bytes.split_last_chunk()?;
        if crc32c::crc32c(content) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut rest = content.strip_prefix(MAGIC)?;
        let (count, of_ranges) = (number(&mut rest)?, number(&mut rest)?);
        let version = |rest: &mut &[u8]| {
            let (user, trailer, value) = (text(rest)?, number(rest)?, text(rest)?);
            let is_put = trailer as u8 == Kind::Put as u8;
            Some((user, trailer >> 8, is_put.then_some(value)))
        };
        let versions = (0..count).map(|_| version(&mut rest)).collect::<Option<_>>()?;
        let tombstone = |rest: &mut &[u8]| Some((text(rest)?, text(rest)?, number(rest)?));
        let tombstones = (0..of_ranges).map(|_| tombstone(&mut rest)).collect::<Option<_>>()?;
        Some(Self { versions, tombstones })
    }

    /// The state of a key at a snapshot. If it is absent, older files decide.
    pub(crate) fn find(&self, key: &[u8], snapshot: Seqno) -> Found<'_> {
        let covers = |(start, end, seqno): &&(Vec<u8>, Vec<u8>, Seqno)| {
            *seqno <= snapshot && start.as_slice() <= key && key < end.as_slice()
        };
        let cover = self.tombstones.iter().filter(covers).map(|range| range.2).max().unwrap_or(0);
        // The newest version that the snapshot sees is the first one behind those it does not see.
        let at = self.versions.partition_point(|(user, seqno, _)| {
            user.as_slice() < key || (user == key && *seqno > snapshot)
        });
        match self.versions.get(at).filter(|(user, ..)| user == key) {
            Some((_, seqno, Some(value))) if *seqno > cover => Found::Value(value),
            None if cover == 0 => Found::Absent,
            _ => Found::Deleted,
        }
    }
}

fn push(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text);
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_le_bytes(*bytes))
}

fn text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, behind) = rest.split_first_chunk()?;
    let (text, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = behind;
    Some(text.to_vec())
}
