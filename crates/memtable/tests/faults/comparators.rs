//! Comparators that panic, and that answer at random.

use super::panics::Fuse;
use super::support::{Known, MODES, Store, chance, options, records_of, within};
use silvics_memtable::log::forgetful::Forgetful;
use silvics_memtable::{
    BufferOptions, Comparator, Failure, Index, OrdIndex, SkipIndex, SyncPolicy, WriteBatch,
    WriteBuffer, WriteError, WriteMode, WriteOptions,
};
use silvics_sync::random::random;
use silvics_testkit::size;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};

const NAME: &str = "bytewise, with a fuse";

struct Panics(Arc<Fuse>);

impl Comparator for Panics {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.burn();
        a.cmp(b)
    }
    fn name(&self) -> &str {
        NAME
    }
}

fn panics_at<I: Index>(mode: WriteMode, call: i64, bomb: bool) {
    let fuse = Arc::new(Fuse::new(i64::MAX, bomb));
    let options = options(mode, SyncPolicy::EveryGroup, Arc::new(Panics(Arc::clone(&fuse))));
    let (storage, known) = (Forgetful::new(), Arc::new(Known::default()));
    let open = || Store::<I>::recover(&options, Arc::new(storage.clone()), &known).unwrap().0;
    let store = open();
    let mut first = chance(1);
    for thread in 0..3 {
        store.write(thread, &mut first).unwrap();
    }
    fuse.set(call);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        // A table with a part of a batch must not be frozen.
        scope.spawn(|| {
            start.wait();
            for _ in 0..20 {
                let _ = store.buffer.switch();
                match catch_unwind(AssertUnwindSafe(|| store.flush())) {
                    Ok(flushed) => drop(flushed.unwrap()),
                    Err(payload) => std::mem::forget(payload),
                }
                std::thread::yield_now();
            }
        });
        for thread in 0..3 {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                let mut chance = chance(call as u64 * 3 + thread as u64);
                start.wait();
                for _ in 0..4 {
                    // `write` reads what it has written, and that may panic as well.
                    let write = || store.write(thread, &mut chance);
                    match catch_unwind(AssertUnwindSafe(write)) {
                        Ok(Err(WriteError::ReadOnly(Failure::Panic)) | Ok(_)) => {}
                        Ok(Err(error)) => panic!("{error}"),
                        Err(payload) => std::mem::forget(payload),
                    }
                }
            });
        }
    });
    let was_met = fuse.is_burnt();
    fuse.set(i64::MAX);
    if store.buffer.failure().is_some() {
        assert!(was_met);
        assert!(matches!(store.buffer.put(b"own", b""), Err(WriteError::ReadOnly(Failure::Panic))));
    }
    if mode != WriteMode::UnorderedUnrepeatableReads || store.buffer.failure().is_none() {
        store.check_live();
    }
    drop(store);
    let (acks, files, after) = known.at(|| storage.power_loss(call as u64));
    drop(files);
    let (records, recovery) = records_of(&after, NAME);
    let (store, _) = Store::<I>::recover(&options, Arc::new(after), &known).unwrap();
    store.check(&records, &acks, recovery.last_seqno, |ack| ack.synced);
}

#[test]
fn a_comparator_may_panic_in_each_call() {
    for call in 0..size::pick(300, 70, 2) as i64 {
        for mode in MODES {
            let what = format!("call {call}, {mode:?}");
            within(60, &format!("{what}, skip list"), move || {
                panics_at::<SkipIndex>(mode, call, call % 2 == 1);
            });
            within(60, &format!("{what}, ord"), move || {
                panics_at::<OrdIndex>(mode, call, call % 2 == 1);
            });
        }
    }
}

struct Random;

impl Comparator for Random {
    fn compare(&self, _: &[u8], _: &[u8]) -> Ordering {
        [Ordering::Less, Ordering::Equal, Ordering::Greater][random() as usize % 3]
    }
    fn name(&self) -> &'static str {
        "random"
    }
}

/// Entries may be lost or returned wrongly. Memory stays safe, and calls return.
fn at_random<I: Index>(mode: WriteMode) {
    let mut options = BufferOptions::ordered_by(Arc::new(Random));
    options.mode = mode;
    options.table_bytes = 32 << 10;
    options.table.block_bytes = 4 << 10;
    let buffer = WriteBuffer::<I>::new(options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let buffer = &buffer;
            scope.spawn(move || {
                for number in 0..300 {
                    let mut batch = WriteBatch::new();
                    batch.put(format!("{thread} {number}").as_bytes(), b"value").unwrap();
                    batch.delete(b"key").unwrap();
                    batch.delete_range(b"a", b"b").unwrap();
                    let _ = buffer.write(&batch, WriteOptions::default());
                    let _ = buffer.get(b"key");
                    if number % 50 == 0 {
                        let mut cursor = buffer.cursor();
                        cursor.seek(b"key");
                        for step in 0..20 {
                            if step % 3 == 0 { cursor.prev() } else { cursor.next() }
                        }
                    }
                    if number % 60 == 0 {
                        let _ = buffer.switch();
                        let _ = buffer.flush(|_| Ok::<(), String>(()));
                    }
                }
            });
        }
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "a table asserts that no two versions are equal")]
fn a_comparator_that_answers_at_random_harms_no_memory() {
    for mode in MODES {
        within(120, "skip list", move || at_random::<SkipIndex>(mode));
        within(120, "ord", move || at_random::<OrdIndex>(mode));
    }
}

/// Each key is before every key, also before itself.
struct Less;

impl Comparator for Less {
    fn compare(&self, _: &[u8], _: &[u8]) -> Ordering {
        Ordering::Less
    }
    fn name(&self) -> &'static str {
        "less"
    }
}

/// Story: a cursor stood still at a key that was not equal to itself.
#[test]
fn a_key_that_is_not_equal_to_itself_does_not_stop_a_cursor() {
    within(60, "a cursor", || {
        let options = BufferOptions::ordered_by(Arc::new(Less));
        let buffer = WriteBuffer::<SkipIndex>::new(options).unwrap();
        for key in [b"a", b"b"] {
            buffer.put(key, b"").unwrap();
        }
        let mut cursor = buffer.cursor();
        cursor.first();
        while cursor.entry().is_some() {
            cursor.next();
        }
    });
}
