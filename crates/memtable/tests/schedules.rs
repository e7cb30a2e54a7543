//! Write groups and buffers in many schedules: see `silvics_testkit::schedules`. Run it:
//! `.ci/step shuttle`.
#![cfg(silvics_shuttle)]

use silvics_memtable::{
    BufferOptions, ByteIndex, Index, SkipIndex, TableCursor, WriteBatch, WriteBuffer, WriteMode,
    WriteOptions,
};
use silvics_testkit::schedules::{Program, Task, beside_one_another, explore_program};

/// The number of schedules per program and scheduler, unless `SILVICS_SCHEDULES` is set.
const SCHEDULES: usize = 300;

const KEYS: [&[u8]; 2] = [b"first", b"second"];

/// Writes a number under both keys, and under a key of its own.
fn write<I: Index>(buffer: &WriteBuffer<I>, number: u8) {
    let mut batch = WriteBatch::new();
    for key in KEYS {
        batch.put(key, &[number]).unwrap();
    }
    batch.put(&[number], &[number]).unwrap();
    let last = buffer.write(&batch, WriteOptions::default()).unwrap();
    let view = buffer.view();
    assert!(view.snapshot() >= last, "the own write is not visible");
    // Nothing is flushed, so a table has it.
    assert_eq!(view.get(&[number]), Some(&[number][..]), "the own write is missed");
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

/// The sequence numbers of the versions in a table.
fn numbers_of<I: Index>(cursor: &mut TableCursor<I>) -> Vec<u64> {
    let mut numbers = Vec::new();
    cursor.first();
    while let Some(key) = cursor.key() {
        numbers.push(key.seqno());
        cursor.next();
    }
    numbers
}

/// Freezes the table, and reads it as a flush that fails in the end.
fn switch<I: Index>(buffer: &WriteBuffer<I>) {
    if buffer.switch().unwrap() {
        let read = buffer.flush(|table| {
            let mut numbers = numbers_of(&mut table.versions());
            numbers.sort_unstable();
            let wanted: Vec<u64> = (table.first_seqno()..=table.last_seqno()).collect();
            assert_eq!(numbers, wanted, "a frozen table lacks a write");
            Err::<(), ()>(())
        });
        assert!(read.is_err());
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
        tasks.push(Box::new(switch));
    }
    let buffer = beside_one_another(buffer, tasks);
    silvics_sync::model::sequential(|| {
        assert_eq!(buffer.snapshot(), u64::from(writers) * (KEYS.len() as u64 + 1));
        let view = buffer.view();
        let found = KEYS.map(|key| view.get(key).map(|value| value[0]));
        assert!(found[0].is_some() && found[0] == found[1], "{found:?}");
        drop(view);
        assert_eq!(buffer.stats().writes, u64::from(writers));
        let least = numbers_of(&mut buffer.active().cursor()).into_iter().min();
        let frozen = buffer.flush(|table| Ok::<_, ()>(numbers_of(&mut table.versions()))).unwrap();
        let greatest = frozen.unwrap_or_default().into_iter().max();
        assert!(
            greatest.zip(least).is_none_or(|(old, new)| old < new),
            "W1: a table has an older write than the table before it"
        );
        drop(buffer);
    });
}

const MODES: [WriteMode; 4] = [
    WriteMode::Serial,
    WriteMode::Parallel,
    WriteMode::Pipelined,
    WriteMode::UnorderedUnrepeatableReads,
];

fn explore<const MODE: usize>() {
    fn of<I: Index, const MODE: usize, const WRITERS: u8, const SWITCHES: bool>() {
        play::<I>(MODES[MODE], WRITERS, SWITCHES);
    }
    for (index, programs) in [
        ("memtable:skiplist", [of::<SkipIndex, MODE, 3, false>, of::<SkipIndex, MODE, 2, true>]),
        ("memtable:art", [of::<ByteIndex, MODE, 3, false>, of::<ByteIndex, MODE, 2, true>]),
    ] {
        let names = ["three-writers", "two-writers-beside-a-switch"];
        for (name, play) in names.into_iter().zip(programs) {
            explore_program(index, Program { name, play }, SCHEDULES);
        }
    }
}

/// All modes run in one test, because a canary is planted for the whole process.
#[test]
fn groups_are_written_as_wholes() {
    explore::<0>();
    explore::<1>();
    explore::<2>();
    explore::<3>();
    #[cfg(feature = "canaries")]
    {
        use silvics_memtable::canary::{Canary, plant};
        use silvics_testkit::schedules::hunt_programs;
        let three = || play::<SkipIndex>(WriteMode::Parallel, 3, false);
        let beside_a_switch = || play::<SkipIndex>(WriteMode::UnorderedUnrepeatableReads, 2, true);
        let three = Program { name: "three-writers", play: three };
        let pipelined_beside_a_switch = || play::<SkipIndex>(WriteMode::Pipelined, 2, true);
        let pipelined_beside_a_switch =
            Program { name: "a-pipeline-beside-a-switch", play: pipelined_beside_a_switch };
        let pipelined = || play::<SkipIndex>(WriteMode::Pipelined, 3, false);
        let pipelined = Program { name: "three-writers-in-a-pipeline", play: pipelined };
        let beside_a_switch =
            Program { name: "two-writers-beside-a-switch", play: beside_a_switch };
        for (canary, program, reasons) in [
            (
                Canary::SequencePublishedEarly,
                three,
                ["a part of a batch is visible", "a snapshot has changed"],
            ),
            (
                Canary::SequencePublishedEarly,
                pipelined,
                ["a part of a batch is visible", "a snapshot "],
            ),
            (Canary::ClaimedAndForgotten, three, ["the own write is missed", "a snapshot has"]),
            (Canary::PendingIgnored, beside_a_switch, ["W1: ", "a frozen table lacks a write"]),
            (
                Canary::PendingIgnored,
                pipelined_beside_a_switch,
                ["a frozen table lacks a write", "W1: "],
            ),
        ] {
            plant(Some(canary));
            let found = hunt_programs(&[program], 20_000);
            plant(None);
            let found = found.expect("the canary is not found");
            println!("canary {} schedules {} {}", canary.name(), found.schedules, found.scenario);
            let is_expected = reasons.iter().any(|reason| found.reason.contains(reason));
            assert!(is_expected, "{}: {}", canary.name(), found.reason);
        }
    }
}
