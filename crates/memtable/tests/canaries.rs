//! Planted mistakes, each of which a test on real threads must find.
#![cfg(feature = "canaries")]

use silvics_memtable::canary::{Canary, plant};
use silvics_memtable::{
    BufferOptions, ByteIndex, DynamicBloom, KeyHash, LogFolder, WriteBatch, WriteBuffer, WriteMode,
    WriteOptions,
};
use silvics_pool::{ConcurrentArena, Config};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

/// A canary is planted for the whole process, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Calls `work` while a canary is planted, or none.
fn with<R>(canary: Option<Canary>, work: impl FnOnce() -> R) -> R {
    plant(canary);
    let result = work();
    plant(None);
    result
}

/// Whether two threads that add at once lose a key of one round.
fn a_key_is_lost(round: u64) -> bool {
    let arena = Arc::new(ConcurrentArena::new(&Config::default(), 1 << 20));
    let bloom = DynamicBloom::new(4096, 6, &arena).expect("no limit");
    let key = |thread: u64, number: u64| {
        KeyHash::of(&[round, thread, number].map(u64::to_ne_bytes).concat())
    };
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (bloom, start) = (&bloom, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..300 {
                    bloom.add_concurrently(key(thread, number));
                }
            });
        }
    });
    (0..2).any(|thread| (0..300).any(|number| !bloom.may_contain(key(thread, number))))
}

#[test]
fn a_lost_bloom_bit_is_found() {
    let _turn = TURN.lock();
    assert!(!with(None, || (0..300).any(a_key_is_lost)), "a key is lost without a canary");
    let found =
        with(Some(Canary::LostBloomBit), || (0..100_000).find(|&round| a_key_is_lost(round)));
    let found = found.expect("no key was lost");
    println!("canary {} filter found in round {found}", Canary::LostBloomBit.name());
}

/// Whether a reader sees a part of a batch within this time.
fn a_batch_is_torn(mode: WriteMode, budget: Duration) -> bool {
    const KEYS: u8 = 40;
    let options = BufferOptions { mode, ..BufferOptions::default() };
    let buffer = WriteBuffer::<ByteIndex>::new(options).unwrap();
    let (stop, torn, begun) = (AtomicBool::new(false), AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (buffer, stop) = (&buffer, &stop);
            scope.spawn(move || {
                for number in 0_u32.. {
                    if stop.load(Ordering::Relaxed) || number == 200_000 {
                        return;
                    }
                    let mut batch = WriteBatch::new();
                    for at in 0..KEYS {
                        batch.put(&[thread, at], &number.to_be_bytes()).unwrap();
                    }
                    buffer.write(&batch, WriteOptions::default()).unwrap();
                    if number % 500 == 499 {
                        let _ = buffer.switch();
                        while buffer.flush(|_| Ok::<(), ()>(())).unwrap().is_some() {}
                    }
                }
            });
        }
        while begun.elapsed() < budget && !torn.load(Ordering::Relaxed) {
            let view = buffer.view();
            for thread in 0..3 {
                let (first, last) = (view.get(&[thread, 0]), view.get(&[thread, KEYS - 1]));
                if first != last {
                    torn.store(true, Ordering::Relaxed);
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    torn.into_inner()
}

#[test]
fn a_sequence_number_published_early_is_found() {
    let _turn = TURN.lock();
    let canary = Canary::SequencePublishedEarly;
    for mode in [WriteMode::Parallel, WriteMode::Pipelined] {
        let torn = |seconds| a_batch_is_torn(mode, Duration::from_secs(seconds));
        assert!(!with(None, || torn(1)), "without a canary");
        let begun = Instant::now();
        let found = with(Some(canary), || torn(30));
        assert!(found, "no batch was torn");
        println!("canary {} {mode:?} found within {:.2?}", canary.name(), begun.elapsed());
    }
}

/// Whether recovery returns a value that nobody wrote: that of a last record in which a sector is
/// damaged.
fn a_torn_record_is_read() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let storage = Arc::new(LogFolder::open(folder.path()).unwrap());
        WriteBuffer::<ByteIndex>::recover(BufferOptions::default(), storage).unwrap()
    };
    let (buffer, _) = open();
    let value = [7; 1000];
    for key in [b"one", b"two"] {
        buffer.put(key, &value).unwrap();
    }
    drop(buffer);
    let file = LogFolder::open(folder.path()).unwrap().file(1);
    let mut bytes = std::fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[end - 512..].fill(0);
    std::fs::write(&file, bytes).unwrap();
    let (buffer, recovery) = open();
    assert_eq!(buffer.get(b"one").as_deref(), Some(&value[..]));
    let is_read = buffer.get(b"two").is_some_and(|found| found != value);
    assert!(is_read || recovery.stopped.is_some(), "{recovery:?}");
    is_read
}

#[test]
fn a_torn_record_accepted_is_found() {
    let _turn = TURN.lock();
    assert!(!with(None, a_torn_record_is_read), "without a canary");
    let canary = Canary::TornRecordAccepted;
    assert!(with(Some(canary), a_torn_record_is_read), "no record was read");
    println!("canary {} recovery found at once", canary.name());
}
