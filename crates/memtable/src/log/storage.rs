//! The storage of logs, which a user can replace.

use std::io::{self, IoSlice};

/// A place for logs: [`LogFolder`](crate::log::LogFolder) is one in the file system.
///
/// The methods may be called by several threads at the same time, but not for the same log.
pub trait LogStorage: Send + Sync + 'static {
    /// Creates an empty log. It is an error if a log with this number exists.
    ///
    /// The log is durable, and [`numbers`](Self::numbers) finds it, once its first
    /// [`sync`](LogFile::sync) has returned. Before that, a power failure may remove it.
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>>;

    /// The numbers of all logs in ascending order.
    fn numbers(&self) -> io::Result<Vec<u64>>;

    /// The bytes of a log, whether they are durable or not.
    fn read(&self, number: u64) -> io::Result<Vec<u8>>;

    /// Replaces the bytes of `into` by those of a log, as [`read`](Self::read) returns them.
    ///
    /// Recovery calls it for one log after the other with the same list. If an implementation
    /// reuses the memory of the list, the system need not map new pages for each log.
    fn read_into(&self, number: u64, into: &mut Vec<u8>) -> io::Result<()> {
        *into = self.read(number)?;
        Ok(())
    }

    /// Makes a log durable: its existence and the bytes that [`read`](Self::read) returns.
    ///
    /// Also those for which the sync of an earlier writer has failed, so that an `fsync` alone is
    /// not enough: [`LogFolder`](crate::log::LogFolder) writes the bytes again.
    fn sync(&self, number: u64) -> io::Result<()>;

    /// Removes a log. The removal is durable when the call returns.
    ///
    /// A removal that has failed may have happened, so that [`numbers`](Self::numbers) does not
    /// find the log, and yet not be durable. It becomes so with the next successful removal,
    /// [`sync`](Self::sync), or first sync of a new log. An `fsync` of the folder has this effect.
    fn remove(&self, number: u64) -> io::Result<()>;
}

/// A log that is open for appending. Only one thread uses it at a time.
pub trait LogFile: Send {
    /// Appends the pieces, one behind the other.
    ///
    /// After an error, any part of them may be in the log. The writer then never appends again.
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<()>;

    /// Makes everything appended durable, as `fdatasync` does.
    ///
    /// After an error, any part of it may be durable. The writer then never syncs again.
    fn sync(&mut self) -> io::Result<()>;
}
