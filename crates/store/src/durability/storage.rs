//! The storage of checkpoints, which a user can replace, and a folder for logs and checkpoints.

use silvics_memtable::log::{LogFile, LogFolder, LogStorage};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A place for checkpoints: [`StoreFolder`] is one in the file system.
pub trait CheckpointStorage: Send + Sync + 'static {
    /// Begins a checkpoint. [`numbers`](Self::numbers) does not find it before
    /// [`CheckpointFile::finish`] has been called. An earlier one with this number that was never
    /// finished is replaced.
    fn create(&self, number: u64) -> io::Result<Box<dyn CheckpointFile>>;

    /// The numbers of all finished checkpoints, in ascending order.
    fn numbers(&self) -> io::Result<Vec<u64>>;

    /// Opens a finished checkpoint for reading.
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>>;

    /// Removes a finished checkpoint. The removal is durable when the call returns.
    fn remove(&self, number: u64) -> io::Result<()>;

    /// Removes the checkpoints that were begun and not finished. No checkpoint is being written.
    fn remove_unfinished(&self) -> io::Result<()>;
}

/// A checkpoint that is being written.
pub trait CheckpointFile: Send {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes durable, then lets [`CheckpointStorage::numbers`] find the checkpoint, and
    /// makes that durable, too. A power failure in between leaves the whole checkpoint or none.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Logs and checkpoints as files of a folder: `0000000007.log` and `0000000007.checkpoint`. A
/// checkpoint that is not finished is called `0000000007.unfinished`.
///
/// Files with other names are ignored. Two stores must not use one folder at the same time.
#[derive(Debug)]
pub struct StoreFolder {
    logs: LogFolder,
}

const FINISHED: &str = "checkpoint";
const UNFINISHED: &str = "unfinished";

impl StoreFolder {
    /// Opens a folder. It is created if it does not exist, also its parents.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self { logs: LogFolder::open(path)? })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.logs.path()
    }

    /// The path of a log.
    pub fn log(&self, number: u64) -> PathBuf {
        self.logs.file(number)
    }

    /// The path of a finished checkpoint.
    pub fn checkpoint(&self, number: u64) -> PathBuf {
        self.file(number, FINISHED)
    }

    fn file(&self, number: u64, kind: &str) -> PathBuf {
        self.path().join(format!("{number:010}.{kind}"))
    }

    /// The numbers of the files of a kind.
    fn numbers_of(&self, kind: &str) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(self.path())? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let number = stem.and_then(|stem| stem.parse().ok());
            // Other spellings of the number would be other files.
            numbers.extend(number.filter(|&number| self.file(number, kind) == path));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes the names of the files durable.
    ///
    /// Systems other than Unix cannot open a folder to sync it: their file systems log the names.
    fn sync(&self) -> io::Result<()> {
        if cfg!(unix) { File::open(self.path())?.sync_all() } else { Ok(()) }
    }
}

impl LogStorage for StoreFolder {
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>> {
        self.logs.create(number)
    }
    fn numbers(&self) -> io::Result<Vec<u64>> {
        self.logs.numbers()
    }
    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        self.logs.read(number)
    }
    fn read_into(&self, number: u64, into: &mut Vec<u8>) -> io::Result<()> {
        self.logs.read_into(number, into)
    }
    fn sync(&self, number: u64) -> io::Result<()> {
        self.logs.sync(number)
    }
    fn remove(&self, number: u64) -> io::Result<()> {
        self.logs.remove(number)
    }
}

impl CheckpointStorage for StoreFolder {
    fn create(&self, number: u64) -> io::Result<Box<dyn CheckpointFile>> {
        let path = self.file(number, UNFINISHED);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        let folder = Self { logs: LogFolder::open(self.path())? };
        Ok(Box::new(FolderFile { file, number, folder }))
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        self.numbers_of(FINISHED)
    }

    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(self.checkpoint(number))?))
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        fs::remove_file(self.checkpoint(number))?;
        self.sync()
    }

    fn remove_unfinished(&self) -> io::Result<()> {
        for number in self.numbers_of(UNFINISHED)? {
            fs::remove_file(self.file(number, UNFINISHED))?;
        }
        Ok(())
    }
}

struct FolderFile {
    file: File,
    number: u64,
    folder: StoreFolder,
}

impl CheckpointFile for FolderFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let Self { file, number, folder } = *self;
        file.sync_data()?;
        drop(file); // some systems rename no open file
        fs::rename(folder.file(number, UNFINISHED), folder.checkpoint(number))?;
        folder.sync()
    }
}
