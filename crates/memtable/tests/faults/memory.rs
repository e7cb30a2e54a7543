//! Limits of memory.

use super::support::{Known, MODES, Store, options, within};
use silvics_memtable::log::forgetful::Forgetful;
use silvics_memtable::{
    BufferOptions, ByteIndex, Bytewise, Failure, Index, OpenError, OrdIndex, SkipIndex, SyncPolicy,
    WriteBatch, WriteBuffer, WriteError, WriteMode, WriteOptions,
};
use std::sync::Arc;

/// A batch of `count` values of 1 KB under keys of its own.
fn large(prefix: &str, count: usize) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for number in 0..count {
        batch.put(format!("{prefix} {number}").as_bytes(), &[7; 1000]).unwrap();
    }
    batch
}

/// The values of a batch that has no more bytes than a table of 160 KiB, whose entries have more.
const TOO_MANY: usize = 160;

/// A table has room for a part of a batch: the group has an error, and no reader sees a part of it.
/// Recovery applies the batch as a whole. A batch with more bytes than a table is refused at once.
fn a_batch_without_room<I: Index>(mode: WriteMode) {
    let mut options = options(mode, SyncPolicy::EveryGroup, Arc::new(Bytewise));
    options.table.limit = Some(160 << 10);
    let storage = Arc::new(Forgetful::new());
    let (buffer, _) = WriteBuffer::<I>::recover(options.clone(), storage.clone()).unwrap();
    let refused = buffer.write(&large("refused", 400), WriteOptions::default()).unwrap_err();
    assert!(matches!(refused, WriteError::Limit { limit: 163_840, .. }), "{refused:?}");
    let last = buffer.put(b"before", b"1").unwrap();
    let errors: Vec<WriteError> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let buffer = &buffer;
                scope.spawn(move || {
                    let batch = large(&format!("large {thread}"), TOO_MANY);
                    buffer.write(&batch, WriteOptions::default()).unwrap_err()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for error in errors {
        assert!(matches!(error, WriteError::ReadOnly(Failure::Alloc(_))), "{error:?}");
        assert!(error.to_string().contains("recover from the log"), "{error}");
    }
    if mode != WriteMode::UnorderedUnrepeatableReads {
        assert_eq!(buffer.snapshot(), last);
        assert_eq!(buffer.get(b"large 0 0"), None);
    }
    assert_eq!(buffer.get(b"before").as_deref(), Some(&b"1"[..]));
    let mut cursor = buffer.cursor_at(last);
    cursor.first();
    assert_eq!(cursor.entry(), Some((&b"before"[..], &b"1"[..])));
    cursor.next();
    assert_eq!(cursor.entry(), None);
    drop(buffer);
    let (buffer, recovery) = WriteBuffer::<I>::recover(options, storage).unwrap();
    assert_eq!(buffer.get(b"before").as_deref(), Some(&b"1"[..]));
    let mut whole = 0;
    for thread in 0..3 {
        let found = |number| buffer.get(format!("large {thread} {number}").as_bytes()).is_some();
        let count = (0..TOO_MANY).filter(|number| found(*number)).count();
        assert!(count == 0 || count == TOO_MANY, "{count} of {TOO_MANY}");
        whole += count as u64;
    }
    assert_eq!(recovery.operations, whole + 1);
    assert!(whole >= TOO_MANY as u64);
    buffer.put(b"after", b"").unwrap();
}

#[test]
fn a_batch_without_room_fails_as_a_whole() {
    for mode in MODES {
        within(60, "skip list", move || a_batch_without_room::<SkipIndex>(mode));
        within(60, "ord", move || a_batch_without_room::<OrdIndex>(mode));
        within(60, "bytes", move || a_batch_without_room::<ByteIndex>(mode));
    }
}

fn with_limit<I: Index>(limit: usize) {
    let mut options = BufferOptions { table_bytes: limit - 1, ..BufferOptions::default() };
    options.table.limit = Some(limit);
    options.table.block_bytes = 4 << 10;
    let buffer = match WriteBuffer::<I>::new(options) {
        Ok(buffer) => buffer,
        Err(OpenError::Table(error)) => {
            assert!(error.to_string().contains("byte"), "{error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    for number in 0..10u64 {
        let key = number.to_be_bytes();
        match buffer.put(&key, b"value") {
            Ok(_) => assert!(buffer.get(&key).is_some(), "{limit}"),
            Err(_) => assert_eq!(buffer.get(&key), None, "{limit}"),
        }
        let _ = buffer.flush(|_| Ok::<(), String>(()));
        if buffer.failure().is_none() {
            assert!(buffer.bytes() <= 3 * limit, "{} of {limit}", buffer.bytes());
        }
    }
}

#[test]
fn the_least_limits_give_an_error_or_a_buffer() {
    for limit in [2, 100, 1 << 10, 4 << 10, 5 << 10, 16 << 10, 64 << 10, 256 << 10] {
        with_limit::<SkipIndex>(limit);
        with_limit::<OrdIndex>(limit);
        with_limit::<ByteIndex>(limit);
    }
}

#[test]
fn a_limit_above_the_size_of_a_table_is_enough_for_small_writes() {
    for mode in MODES {
        let mut options = options(mode, SyncPolicy::OnRequest, Arc::new(Bytewise));
        options.table.limit = Some(512 << 10);
        let (storage, known) = (Forgetful::new(), Arc::new(Known::default()));
        let (store, _) = Store::<ByteIndex>::recover(&options, Arc::new(storage), &known).unwrap();
        store.run(3, || std::thread::sleep(std::time::Duration::from_millis(50)));
        assert!(store.buffer.failure().is_none(), "{mode:?}: {:?}", store.buffer.failure());
        store.check_live();
    }
}
