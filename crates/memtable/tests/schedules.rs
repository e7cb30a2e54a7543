//! Write groups and buffers in many schedules: see `silvics_testkit::schedules`. Run it:
//! `.ci/step shuttle`.
#![cfg(silvics_shuttle)]

use silvics_memtable::{
    BufferOptions, ByteIndex, Index, SkipIndex, WriteBatch, WriteBuffer, WriteMode, WriteOptions,
};
use silvics_testkit::schedules::{Program, Task, beside_one_another, explore_program};

/// The number of schedules per program and scheduler, unless `SILVICS_SCHEDULES` is set.
const SCHEDULES: usize = 300;

const KEYS: [&[u8]; 2] = [b"first", b"second"];

/// Writes a number under both keys.
fn write<I: Index>(buffer: &WriteBuffer<I>, number: u8) {
    let mut batch = WriteBatch::new();
    for key in KEYS {
        batch.put(key, &[number]).unwrap();
    }
    let last = buffer.write(&batch, WriteOptions::default()).unwrap();
    let view = buffer.view();
    assert!(view.snapshot() >= last, "the own write is not visible");
    // Nothing is flushed, so a table has it.
    assert!(view.get(KEYS[1]).is_some(), "the own write is missed");
}

/// Reads some times, each time also at the snapshot before.
fn read<I: Index>(buffer: &WriteBuffer<I>, whole: bool) {
    let mut before: Option<(u64, Option<u8>)> = None;
    // Writers take more steps, so a reader that does not wait is done before they publish.
    for _ in 0..silvics_sync::model::below(200) {
        if buffer.snapshot() > 0 {
            break;
        }
        silvics_sync::thread::yield_now();
    }
    for _ in 0..4 {
        let view = buffer.view();
        let snapshot = view.snapshot();
        let at = |key: usize, snapshot| view.get_at(KEYS[key], snapshot).map(|value| value[0]);
        let found = at(0, snapshot);
        if whole {
            assert_eq!(found, at(1, snapshot), "a part of a batch is visible");
            if let Some((snapshot, found)) = before {
                assert_eq!(at(0, snapshot), found, "a snapshot has changed");
            }
        }
        if let Some((earlier, _)) = before {
            assert!(earlier <= snapshot, "a snapshot goes back");
        }
        before = Some((snapshot, found));
    }
}

/// Writers of one batch each, a reader, and a task that switches if asked.
fn play<I: Index>(mode: WriteMode, writers: u8, switches: bool) {
    let mut options = BufferOptions { mode, ..BufferOptions::default() };
    options.table.block_bytes = 4 << 10;
    let buffer = WriteBuffer::<I>::new(options).unwrap();
    let mut tasks: Vec<Task<WriteBuffer<I>>> = Vec::new();
    for number in 1..=writers {
        tasks.push(Box::new(move |buffer: &WriteBuffer<I>| write(buffer, number)));
    }
    let whole = mode != WriteMode::UnorderedUnrepeatableReads;
    tasks.push(Box::new(move |buffer: &WriteBuffer<I>| read(buffer, whole)));
    if switches {
        tasks.push(Box::new(|buffer: &WriteBuffer<I>| drop(buffer.switch().unwrap())));
    }
    let buffer = beside_one_another(buffer, tasks);
    silvics_sync::model::sequential(|| {
        assert_eq!(buffer.snapshot(), u64::from(writers) * KEYS.len() as u64);
        let view = buffer.view();
        let found = KEYS.map(|key| view.get(key).map(|value| value[0]));
        assert!(found[0].is_some() && found[0] == found[1], "{found:?}");
        drop(view);
        assert_eq!(buffer.stats().writes, u64::from(writers));
        drop(buffer);
    });
}

fn explore(mode: WriteMode) {
    fn of<I: Index, const MODE: u8, const WRITERS: u8, const SWITCHES: bool>() {
        let mode = match MODE {
            0 => WriteMode::Serial,
            1 => WriteMode::Parallel,
            _ => WriteMode::UnorderedUnrepeatableReads,
        };
        play::<I>(mode, WRITERS, SWITCHES);
    }
    fn of_mode<const MODE: u8>() {
        for (index, programs) in [
            (
                "memtable:skiplist",
                [of::<SkipIndex, MODE, 3, false>, of::<SkipIndex, MODE, 2, true>],
            ),
            ("memtable:art", [of::<ByteIndex, MODE, 3, false>, of::<ByteIndex, MODE, 2, true>]),
        ] {
            let names = ["three-writers", "two-writers-beside-a-switch"];
            for (name, play) in names.into_iter().zip(programs) {
                explore_program(index, Program { name, play }, SCHEDULES);
            }
        }
    }
    match mode {
        WriteMode::Serial => of_mode::<0>(),
        WriteMode::Parallel => of_mode::<1>(),
        WriteMode::UnorderedUnrepeatableReads => of_mode::<2>(),
    }
}

/// All modes run in one test, because a canary is planted for the whole process.
#[test]
fn groups_are_written_as_wholes() {
    for mode in [WriteMode::Serial, WriteMode::Parallel, WriteMode::UnorderedUnrepeatableReads] {
        explore(mode);
    }
    #[cfg(feature = "canaries")]
    {
        use silvics_memtable::canary::{Canary, plant};
        use silvics_testkit::schedules::hunt_programs;
        let play = || play::<SkipIndex>(WriteMode::Parallel, 3, false);
        plant(Some(Canary::SequencePublishedEarly));
        let found = hunt_programs(&[Program { name: "three-writers", play }], 20_000);
        plant(None);
        let found = found.expect("the canary is not found");
        println!(
            "canary {} schedules {} {}",
            Canary::SequencePublishedEarly.name(),
            found.schedules,
            found.scenario
        );
        let reasons = ["a part of a batch is visible", "a snapshot has changed"];
        assert!(reasons.iter().any(|reason| found.reason.contains(reason)), "{}", found.reason);
    }
}
