//! A storage of logs and checkpoints in memory that loses power: [`Forgetful`], in which the
//! checkpoints are files with large numbers.

use silvics_memtable::log::forgetful::{Fault, Forgetful};
use silvics_memtable::log::{LogFile, LogStorage};
use silvics_store::durability::{CheckpointFile, CheckpointStorage, Durability};
use std::io::{self, Cursor, IoSlice, Read};
use std::sync::Arc;

const UNFINISHED: u64 = 1 << 62;
const FINISHED: u64 = 1 << 63;

/// The logs and checkpoints of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(pub(crate) Forgetful);

impl Disk {
    /// The settings of a store on this disk.
    pub(crate) fn durability(&self, sync: bool) -> Durability {
        let disk = Arc::new(self.clone());
        Durability { logs: Arc::<Self>::clone(&disk), checkpoints: disk, sync }
    }

    /// The disk after a power failure.
    pub(crate) fn power_loss(&self, seed: u64) -> Self {
        Self(self.0.power_loss(seed))
    }

    /// Lets all calls fail after some successes.
    pub(crate) fn stop(&self, after: u64) {
        self.0.inject(Fault::stop(after));
    }

    fn numbers_of(&self, kind: u64) -> io::Result<Vec<u64>> {
        let numbers = self.0.numbers()?.into_iter();
        Ok(numbers.filter(|number| number & (FINISHED | UNFINISHED) == kind).collect())
    }
}

impl LogStorage for Disk {
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>> {
        self.0.create(number)
    }
    fn numbers(&self) -> io::Result<Vec<u64>> {
        self.numbers_of(0)
    }
    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        self.0.read(number)
    }
    fn sync(&self, number: u64) -> io::Result<()> {
        self.0.sync(number)
    }
    fn remove(&self, number: u64) -> io::Result<()> {
        self.0.remove(number)
    }
}

impl CheckpointStorage for Disk {
    fn create(&self, number: u64) -> io::Result<Box<dyn CheckpointFile>> {
        let file = self.0.create(number | UNFINISHED)?;
        Ok(Box::new(DiskFile { file, number, disk: self.clone() }))
    }
    fn numbers(&self) -> io::Result<Vec<u64>> {
        Ok(self.numbers_of(FINISHED)?.into_iter().map(|number| number ^ FINISHED).collect())
    }
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(self.0.read(number | FINISHED)?)))
    }
    fn remove(&self, number: u64) -> io::Result<()> {
        self.0.remove(number | FINISHED)
    }
    fn remove_unfinished(&self) -> io::Result<()> {
        self.numbers_of(UNFINISHED)?.into_iter().try_for_each(|number| self.0.remove(number))
    }
}

struct DiskFile {
    file: Box<dyn LogFile>,
    number: u64,
    disk: Disk,
}

impl CheckpointFile for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(&[IoSlice::new(bytes)])
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.file.sync()?;
        self.disk.0.rename(self.number | UNFINISHED, self.number | FINISHED)
    }
}
