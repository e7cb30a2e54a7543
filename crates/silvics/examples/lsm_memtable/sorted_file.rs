//! The sorted file that a memtable becomes. All numbers in it are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `LSMFILE1` |
//! | for each version, in the order of internal keys: 4 | the length of the user key |
//! | that length | the user key |
//! | 8 | the sequence number |
//! | 4 | the length of the value, or `u32::MAX` for a tombstone, which has no value |
//! | that length | the value |
//! | at the end of the file: 8 | the number of versions |
//! | 8 | the FNV-1a hash of all bytes before it |

use crate::memtable::{InternalKey, Memtable, Value};
use silvics::AllocError;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) enum Error {
    /// A version does not fit into an empty memtable, or its key is too long.
    Memory(AllocError),
    File(PathBuf, io::Error),
    Damaged(PathBuf, &'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Damaged(path, reason) => write!(f, "{} is damaged: {reason}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

impl From<AllocError> for Error {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

const MAGIC: [u8; 8] = *b"LSMFILE1";
/// The length that stands for a tombstone.
const TOMBSTONE: u32 = u32::MAX;

/// The FNV-1a hash of the bytes that went through.
struct Hashed<W> {
    to: W,
    hash: u64,
}

impl<W: Write> Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash = hashed(self.hash, bytes);
        self.to.write_all(bytes)
    }

    /// Writes the length of a string, then the string.
    fn write_string(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).ok().filter(|&length| length != TOMBSTONE);
        let length = length.ok_or(io::Error::other("a string has more than 4 GiB"))?;
        self.write(&length.to_le_bytes())?;
        self.write(bytes)
    }
}

fn hashed(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

const NO_BYTES: u64 = 0xcbf2_9ce4_8422_2325;

/// Writes a frozen memtable to a new file. The file gets its name when it is complete and synced,
/// so no crash leaves a part of a file under this name.
pub(crate) fn write(memtable: &Memtable, path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension("tmp");
    let mut file = Hashed { to: BufWriter::new(File::create(&unfinished)?), hash: NO_BYTES };
    file.write(&MAGIC)?;
    let mut count = 0u64;
    // The view borrows the entries and copies nothing. No write waits for its pin: this map is
    // frozen, and it has a domain of its own, because it has a limit.
    for (key, value) in &memtable.map.pin() {
        file.write_string(&key.user)?;
        file.write(&key.sequence.to_le_bytes())?;
        match &*value {
            Some(value) => file.write_string(value)?,
            None => file.write(&TOMBSTONE.to_le_bytes())?,
        }
        count += 1;
    }
    file.write(&count.to_le_bytes())?;
    let hash = file.hash;
    file.write(&hash.to_le_bytes())?;
    file.to.into_inner()?.sync_all()?;
    fs::rename(&unfinished, path)?;
    // The new name is an entry of the folder, which other systems than Unix sync by themselves.
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Reads a file that [`write()`] wrote, and checks its hash, its count and its order.
pub(crate) fn read(path: &Path) -> Result<Vec<(InternalKey, Value)>, Error> {
    let damaged = |reason| Error::Damaged(path.to_owned(), reason);
    let bytes = fs::read(path).map_err(|error| Error::File(path.to_owned(), error))?;
    let (content, hash) = bytes.split_last_chunk().ok_or(damaged("it is too short"))?;
    if hashed(NO_BYTES, content) != u64::from_le_bytes(*hash) {
        return Err(damaged("its hash is wrong"));
    }
    let (rest, count) = content.split_last_chunk().ok_or(damaged("it is too short"))?;
    let mut rest = rest.strip_prefix(&MAGIC).ok_or(damaged("it is of another kind"))?;
    let mut entries: Vec<(InternalKey, Value)> = Vec::new();
    while !rest.is_empty() {
        let entry = read_version(&mut rest).ok_or(damaged("a version is incomplete"))?;
        if entries.last().is_some_and(|(last, _)| *last >= entry.0) {
            return Err(damaged("its versions are not in order"));
        }
        entries.push(entry);
    }
    if entries.len() as u64 != u64::from_le_bytes(*count) {
        return Err(damaged("it has another number of versions than it says"));
    }
    Ok(entries)
}

fn read_version(from: &mut &[u8]) -> Option<(InternalKey, Value)> {
    let length = u32::from_le_bytes(read_array(from)?);
    let user = from.split_off(..length as usize)?.to_vec();
    let sequence = u64::from_le_bytes(read_array(from)?);
    let value = match u32::from_le_bytes(read_array(from)?) {
        TOMBSTONE => None,
        length => Some(from.split_off(..length as usize)?.into()),
    };
    Some((InternalKey { user, sequence }, value))
}

fn read_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    from.split_off(..N)?.try_into().ok()
}
