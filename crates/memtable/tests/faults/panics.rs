//! Storages of logs that panic.

use super::support::{Known, MODES, Store, options, within};
use super::{is_read_only, recovered};
use silvics_memtable::log::forgetful::Forgetful;
use silvics_memtable::log::{LogFile, LogStorage};
use silvics_memtable::{ByteIndex, Bytewise, Failure, SyncPolicy, WriteMode};
use silvics_sync::atomic::{AtomicI64, Ordering};
use silvics_testkit::size;
use std::io::{self, IoSlice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A payload of a panic whose destructor panics.
pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the destructor of a payload panics");
    }
}

/// Panics in the call at which a countdown comes to 0.
#[derive(Debug)]
pub(crate) struct Fuse {
    left: AtomicI64,
    bomb: bool,
}

impl Fuse {
    pub(crate) fn new(left: i64, bomb: bool) -> Self {
        Self { left: AtomicI64::new(left), bomb }
    }

    pub(crate) fn burn(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            if self.bomb {
                std::panic::panic_any(Bomb);
            }
            panic!("the fuse has burnt down");
        }
    }

    pub(crate) fn set(&self, left: i64) {
        self.left.store(left, Ordering::Relaxed);
    }

    pub(crate) fn is_burnt(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }
}

struct Panics(Forgetful, Arc<Fuse>);

impl LogStorage for Panics {
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>> {
        self.1.burn();
        Ok(Box::new(PanicsFile(self.0.create(number)?, Arc::clone(&self.1))))
    }
    fn numbers(&self) -> io::Result<Vec<u64>> {
        self.0.numbers()
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

struct PanicsFile(Box<dyn LogFile>, Arc<Fuse>);

impl LogFile for PanicsFile {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        self.1.burn();
        self.0.append(pieces)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.1.burn();
        self.0.sync()
    }
}

/// The payload of a panic was dropped inside the write path. A destructor that panicked unwound
/// through the leader's frame, which other writers still used.
#[test]
fn a_storage_that_panics_leaves_no_writer_waiting() {
    let one = |mode: WriteMode, after: i64, bomb: bool| {
        let (storage, fuse) = (Forgetful::new(), Arc::new(Fuse::new(i64::MAX, bomb)));
        let known = Arc::new(Known::default());
        let options = options(mode, SyncPolicy::EveryGroup, Arc::new(Bytewise));
        let panics = Arc::new(Panics(storage.clone(), Arc::clone(&fuse)));
        let (store, _) = Store::<ByteIndex>::recover(&options, panics, &known).unwrap();
        fuse.set(after);
        store.run(after as u64, || {
            let begun = Instant::now();
            while store.buffer.failure().is_none() && begun.elapsed() < Duration::from_secs(5) {
                std::thread::yield_now();
            }
        });
        assert!(matches!(store.buffer.failure(), Some(Failure::Panic)));
        is_read_only(&store, "the comparator or the storage of the log panicked");
        store.check_live();
        drop(store);
        recovered::<ByteIndex>(&known, mode, &storage, after as u64);
    };
    for after in 0..size::pick(60, 15, 1) as i64 {
        for bomb in [false, true] {
            let mode = MODES[(after as usize / 2 + usize::from(bomb)) % MODES.len()];
            within(60, &format!("{mode:?}, call {after}"), move || one(mode, after, bomb));
        }
    }
}

#[test]
fn a_flush_that_panics_keeps_the_table() {
    let options = options(WriteMode::Parallel, SyncPolicy::OnRequest, Arc::new(Bytewise));
    let (storage, known) = (Forgetful::new(), Arc::new(Known::default()));
    let (store, _) = Store::<ByteIndex>::recover(&options, Arc::new(storage), &known).unwrap();
    let mut chance = super::support::chance(7);
    store.write(0, &mut chance).unwrap();
    store.buffer.switch().unwrap();
    let call = || store.buffer.flush(|_| -> Result<(), String> { panic!("in the flush") });
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    assert_eq!(store.buffer.frozen(), 1);
    store.write(0, &mut chance).unwrap();
    store.check_live();
}
