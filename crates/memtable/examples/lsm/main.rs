//! A small LSM store: a write buffer, its log, and the sorted files that its tables become.
//!
//! `cargo run --release -p silvics-memtable --example lsm`

mod sorted_file;

use silvics_memtable::{
    BufferOptions, Found, LogFolder, Seqno, WriteBatch, WriteBuffer, WriteError, WriteOptions,
};
use sorted_file::SortedFile;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

/// The store. Its files are newer than one another as the tables were: the newest one comes first.
struct Store {
    buffer: WriteBuffer,
    files: RwLock<Vec<Arc<SortedFile>>>,
    folder: PathBuf,
}

impl Store {
    /// Opens a folder: reads its files, and recovers the writes that only the log has.
    fn open(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let mut names: Vec<PathBuf> = fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        names.retain(|name| name.extension().is_some_and(|extension| extension == "sorted"));
        names.sort_unstable_by(|a, b| b.cmp(a));
        let files = names.iter().map(|name| SortedFile::read(name).map(Arc::new));
        let files = RwLock::new(files.collect::<Result<_, _>>()?);
        let options = BufferOptions { table_bytes: 1 << 20, ..BufferOptions::default() };
        let logs = Arc::new(LogFolder::open(folder.join("logs"))?);
        let (buffer, recovery) = WriteBuffer::recover(options, logs)?;
        if let Some(stopped) = recovery.stopped {
            eprintln!("{stopped}");
        }
        Ok(Self { buffer, files, folder: folder.to_owned() })
    }

    /// Writes a batch. If too many tables wait, it flushes one first. A program that does not want
    /// its writers to do this flushes on a thread of its own, before the buffer is full.
    fn write(&self, batch: &WriteBatch) -> Result<Seqno, Box<dyn Error>> {
        loop {
            match self.buffer.write(batch, WriteOptions::default()) {
                Err(WriteError::Stalled { .. }) => self.flush()?,
                result => return Ok(result?),
            }
        }
    }

    /// Turns the oldest frozen table into a file.
    fn flush(&self) -> Result<(), Box<dyn Error>> {
        self.buffer.flush(|table| {
            let path = self.folder.join(format!("{:020}.sorted", table.last_seqno()));
            SortedFile::write(table, &path)?;
            // Readers must find the file before the buffer forgets the table.
            let file = Arc::new(SortedFile::read(&path)?);
            self.files.write().expect("no thread panicked").insert(0, file);
            Ok::<_, std::io::Error>(())
        })?;
        Ok(())
    }

    /// The value of a key at a snapshot: first in the buffer, then in the files.
    fn get_at(&self, key: &[u8], snapshot: Seqno) -> Option<Vec<u8>> {
        match self.buffer.view().find(key, snapshot) {
            Found::Value(value) => return Some(value.to_vec()),
            Found::Deleted => return None,
            Found::Absent => {}
        }
        let files = self.files.read().expect("no thread panicked").clone();
        let mut states = files.iter().map(|file| file.find(key, snapshot));
        match states.find(|state| *state != Found::Absent)? {
            Found::Value(value) => Some(value.to_vec()),
            _ => None,
        }
    }
}

fn key(thread: u32, number: u32) -> Vec<u8> {
    format!("{thread}/{number:06}").into_bytes()
}

fn main() -> Result<(), Box<dyn Error>> {
    const THREADS: u32 = 4;
    const KEYS: u32 = 8000;
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path())?;

    // Threads write pairs of keys, so that each pair is there as a whole or not at all.
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let mut batch = WriteBatch::new();
                for number in (0..KEYS).step_by(2) {
                    batch.clear();
                    for number in [number, number + 1] {
                        let value = vec![number as u8; 40];
                        batch.put(&key(thread, number), &value).expect("small keys and values");
                    }
                    store.write(&batch).expect("the disk has room");
                }
            });
        }
    });
    let before = store.buffer.snapshot();
    assert_eq!(before, u64::from(THREADS * KEYS));

    // Delete all keys of one thread: a snapshot from before still reads them.
    store.buffer.delete_range(b"1/", b"1/~")?;
    assert_eq!(store.get_at(&key(1, 77), before), Some(vec![77; 40]));
    assert_eq!(store.get_at(&key(1, 77), store.buffer.snapshot()), None);

    // Flush all. Then everything is in files, and the buffer has an empty table.
    while store.buffer.frozen() > 0 {
        store.flush()?;
    }
    store.buffer.switch()?;
    store.flush()?;
    let files = store.files.read().expect("no thread panicked").len();
    println!("{before} entries in {files} files, {} bytes in the buffer", store.buffer.bytes());
    store.buffer.put(b"last", b"only in the log")?;

    // The process ends without a flush. Another one finds what it wrote.
    drop(store);
    let store = Store::open(folder.path())?;
    let now = store.buffer.snapshot();
    assert_eq!(store.get_at(b"last", now).as_deref(), Some(&b"only in the log"[..]));
    for thread in 0..THREADS {
        for number in 0..KEYS {
            let wanted = (thread != 1).then(|| vec![number as u8; 40]);
            assert_eq!(store.get_at(&key(thread, number), now), wanted);
        }
    }
    println!("{now} sequence numbers, all entries found after reopening");
    Ok(())
}
