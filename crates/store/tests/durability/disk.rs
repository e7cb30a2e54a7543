//! A storage of logs and checkpoints in memory that loses power: [`Forgetful`], in which the
//! checkpoints are files with large numbers.

use silvics_memtable::log::forgetful::{Fault, Forgetful};
use silvics_memtable::log::{LogFile, LogStorage};
use silvics_store::durability::{CheckpointFile, CheckpointStorage, Durability};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::io::{self, Cursor, IoSlice, Read};
use std::sync::Arc;
use std::time::Duration;

const UNFINISHED: u64 = 1 << 62;
const FINISHED: u64 = 1 << 63;

/// The logs and checkpoints of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(pub(crate) Forgetful, pub(crate) Delay);

/// The time that a sync of a log takes.
#[derive(Clone, Debug, Default)]
pub(crate) enum Delay {
    #[default]
    None,
    Micros(u64),
    /// It waits while this mutex is locked.
    Gate(Arc<Mutex<()>>),
    /// The sync panics while this is set.
    Panic(Arc<AtomicBool>),
}

impl Delay {
    fn wait(&self) {
        match self {
            Self::None => {}
            Self::Micros(micros) => std::thread::sleep(Duration::from_micros(*micros)),
            Self::Gate(gate) => drop(gate.lock()),
            Self::Panic(panics) => assert!(!panics.load(Ordering::Relaxed), "planted"),
        }
    }
}

impl Disk {
    /// The settings of a store on this disk.
    pub(crate) fn durability(&self, sync: bool) -> Durability {
        let disk = Arc::new(self.clone());
        Durability { logs: Arc::<Self>::clone(&disk), checkpoints: disk, sync }
    }

    /// The disk after a power failure.
    pub(crate) fn power_loss(&self, seed: u64) -> Self {
        Self(self.0.power_loss(seed), self.1.clone())
    }

    /// Lets all calls fail after some successes.
    pub(crate) fn stop(&self, after: u64) {
        self.0.inject(Fault::stop(after));
    }

    /// Replaces the bytes of a finished checkpoint.
    pub(crate) fn overwrite_checkpoint(&self, number: u64, bytes: Vec<u8>) {
        self.0.overwrite(number | FINISHED, bytes);
    }

    /// The bytes of a finished checkpoint.
    pub(crate) fn checkpoint(&self, number: u64) -> Vec<u8> {
        self.0.read(number | FINISHED).unwrap()
    }

    /// The bytes of all files.
    pub(crate) fn content(&self) -> Vec<(u64, Vec<u8>)> {
        let numbers = self.0.numbers().unwrap();
        numbers.into_iter().map(|number| (number, self.0.read(number).unwrap())).collect()
    }

    fn numbers_of(&self, kind: u64) -> io::Result<Vec<u64>> {
        let numbers = self.0.numbers()?.into_iter();
        Ok(numbers.filter(|number| number & (FINISHED | UNFINISHED) == kind).collect())
    }
}

impl LogStorage for Disk {
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>> {
        let file = self.0.create(number)?;
        if matches!(self.1, Delay::None) {
            return Ok(file);
        }
        Ok(Box::new(SlowFile(file, self.1.clone())))
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

struct SlowFile(Box<dyn LogFile>, Delay);

impl LogFile for SlowFile {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        self.0.append(pieces)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.1.wait();
        self.0.sync()
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
