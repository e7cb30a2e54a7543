//! Logs as files of a folder.

use super::storage::{LogFile, LogStorage};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};

/// The bytes that are written again at a time.
const SYNCED_BYTES: usize = 1 << 20;

/// Logs as files of a folder, named by their numbers: `0000000007.log`.
///
/// Files with other names are ignored. The folder must not be used by two buffers at the same time:
/// each would read and remove the logs of the other.
#[derive(Debug)]
pub struct LogFolder {
    path: PathBuf,
}

impl LogFolder {
    /// Opens a folder. It is created if it does not exist, also its parents.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        create_durably(&path)?;
        Ok(Self { path })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a log.
    pub fn file(&self, number: u64) -> PathBuf {
        self.path.join(name(number))
    }
}

/// Creates a folder and its parents, and makes their names durable. The name of a folder that
/// exists is made durable, too: an earlier call may have ended in between.
fn create_durably(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    if !path.is_dir() {
        if let Some(parent) = parent {
            create_durably(parent)?;
        }
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    sync_folder(parent)
}

fn name(number: u64) -> String {
    format!("{number:010}.log")
}

fn number(file: &OsStr) -> Option<u64> {
    let text = file.to_str()?;
    let number = text.strip_suffix(".log")?.parse().ok()?;
    // Other spellings of the number would be other files.
    (name(number) == text).then_some(number)
}

/// Makes the names of files in a folder durable; `None` is the current one.
///
/// Systems other than Unix cannot open a folder to sync it: their file systems log the names.
fn sync_folder(path: Option<&Path>) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

impl LogStorage for LogFolder {
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(self.file(number))?;
        Ok(Box::new(FolderFile { file, unnamed: Some(self.path.clone()) }))
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            numbers.extend(number(&entry?.file_name()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(number, &mut bytes)?;
        Ok(bytes)
    }

    fn read_into(&self, number: u64, into: &mut Vec<u8>) -> io::Result<()> {
        let mut file = File::open(self.file(number))?;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        into.clear();
        into.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        file.read_to_end(into)?;
        Ok(())
    }

    /// Writes the bytes of the log in its place again, and syncs them. After a failed sync of an
    /// earlier writer, Linux still has its bytes in memory and takes them for written: a sync alone
    /// would do nothing and report success.
    fn sync(&self, number: u64) -> io::Result<()> {
        let path = self.file(number);
        let from = File::open(&path)?;
        let mut file = OpenOptions::new().write(true).open(&path)?;
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(SYNCED_BYTES).map_err(|_| io::ErrorKind::OutOfMemory)?;
        while (&from).take(SYNCED_BYTES as u64).read_to_end(&mut chunk)? > 0 {
            file.write_all(&chunk)?;
            chunk.clear();
        }
        file.sync_data()?;
        sync_folder(Some(&self.path))
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        fs::remove_file(self.file(number))?;
        sync_folder(Some(&self.path))
    }
}

struct FolderFile {
    file: File,
    /// The folder, until the name of the file is durable.
    unnamed: Option<PathBuf>,
}

impl LogFile for FolderFile {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        write_pieces(&mut self.file, pieces)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(folder) = &self.unnamed {
            sync_folder(Some(folder))?;
            self.unnamed = None;
        }
        Ok(())
    }
}

/// Writes all pieces. A system call may take only some of their bytes.
pub(super) fn write_pieces(to: &mut impl Write, mut pieces: &[IoSlice<'_>]) -> io::Result<()> {
    while !pieces.is_empty() {
        let mut written = match to.write_vectored(pieces) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let before = pieces.len();
        while let Some((first, behind)) = pieces.split_first()
            && written >= first.len()
        {
            written -= first.len();
            pieces = behind;
        }
        if written > 0 {
            // The call ended within a piece: its rest goes alone.
            let Some((first, behind)) = pieces.split_first() else { break };
            to.write_all(&first[written..])?;
            pieces = behind;
        } else if pieces.len() == before {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}
