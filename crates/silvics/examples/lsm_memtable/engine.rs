//! Memtables in turn: one takes writes until its memory limit, and then becomes a file.

use crate::memtable::{Memtable, Value};
use crate::sorted_file::{self, Error};
use silvics::AllocError;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::iter::once;
use std::mem::replace;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

/// The memtables of an engine: one that takes writes, and those that wait for their flush. All
/// sequence numbers in a memtable or file are greater than those in the ones before it.
pub(crate) struct Tables {
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Vec<Arc<Memtable>>,
    pub(crate) files: Vec<PathBuf>,
}

pub(crate) struct Engine {
    pub(crate) folder: PathBuf,
    limit: usize,
    /// The last sequence number.
    sequence: AtomicU64,
    pub(crate) tables: RwLock<Tables>,
    /// Held by the thread that writes files, so that they are written in order.
    flushing: Mutex<()>,
}

impl Engine {
    pub(crate) fn new(folder: &Path, limit: usize) -> Result<Self, Error> {
        let active = Arc::new(Memtable::new(limit, 1)?);
        let tables = RwLock::new(Tables { active, frozen: Vec::new(), files: Vec::new() });
        let (folder, sequence) = (folder.to_owned(), AtomicU64::new(0));
        Ok(Self { folder, limit, sequence, tables, flushing: Mutex::new(()) })
    }

    /// Puts a value, or deletes the user key by `None`. Returns the sequence number of the version.
    pub(crate) fn write(&self, user: &[u8], value: Option<&[u8]>) -> Result<u64, Error> {
        loop {
            let full = {
                let tables = self.tables.read().expect("no thread panicked");
                // Relaxed: the lock orders the numbers of this memtable before those of the next.
                let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
                match tables.active.insert(user, sequence, value) {
                    Ok(()) => return Ok(sequence),
                    Err(AllocError::Limit { .. }) if !tables.active.map.is_empty() => {
                        Arc::clone(&tables.active)
                    }
                    Err(error) => return Err(error.into()),
                }
            };
            // The refused version is not in `full`: the next turn writes it to another memtable.
            self.freeze(&full)?;
            self.flush()?;
        }
    }

    /// Freezes a memtable, unless another thread did.
    pub(crate) fn freeze(&self, full: &Arc<Memtable>) -> Result<(), Error> {
        let mut tables = self.tables.write().expect("no thread panicked");
        if Arc::ptr_eq(&tables.active, full) {
            let first = self.sequence.load(Ordering::Relaxed) + 1;
            let next = Arc::new(Memtable::new(self.limit, first)?);
            let frozen = replace(&mut tables.active, next);
            tables.frozen.push(frozen);
        }
        Ok(())
    }

    /// Writes all frozen memtables to files, the oldest one first. After an error, the memtable
    /// remains readable, and the next call tries again.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        let _one = self.flushing.lock().expect("no thread panicked");
        loop {
            let oldest = self.tables.read().expect("no thread panicked").frozen.first().cloned();
            let Some(oldest) = oldest else { return Ok(()) };
            let path = self.folder.join(format!("{:020}.sorted", oldest.first));
            sorted_file::write(&oldest, &path).map_err(|error| Error::File(path.clone(), error))?;
            let mut tables = self.tables.write().expect("no thread panicked");
            tables.frozen.remove(0);
            tables.files.push(path);
        }
    }

    /// The memtable that takes writes, and a sequence number such that no later write gets a
    /// smaller one.
    pub(crate) fn snapshot(&self) -> (Arc<Memtable>, u64) {
        // While this thread has the lock, no write is half done.
        let tables = self.tables.write().expect("no thread panicked");
        (Arc::clone(&tables.active), self.sequence.load(Ordering::Relaxed))
    }

    /// The value that a snapshot sees in the memtables. `Some(None)` says that the user key is
    /// deleted, and `None` that the files decide: looking there is not part of this example.
    pub(crate) fn get(&self, user: &[u8], snapshot: u64) -> Option<Value> {
        let tables = self.tables.read().expect("no thread panicked");
        let mut newest_first = once(&tables.active).chain(tables.frozen.iter().rev());
        newest_first.find_map(|memtable| memtable.get(user, snapshot))
    }
}
