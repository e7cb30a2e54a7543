//! Histories of puts, deletes, lookups and scans on a buffer are linearizable, key by key.
//!
//! They are recorded and judged as `silvics verify` does it. A write returns no value that it
//! replaces, so a history has blind writes. Buffers with one of two mistakes must be found.
#![cfg(not(any(silvics_loom, silvics_shuttle)))]

use silvics_memtable::{
    BufferOptions, ByteIndex, Index, OrdIndex, SkipIndex, WriteBuffer, WriteMode,
};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_testkit::clock::Clock;
use silvics_testkit::history::Op;
use silvics_testkit::size;
use silvics_testkit::verify::{
    Foreign, ForeignCalls, Plan, Report, Until, Write, Wrong, verify_foreign,
};
use std::time::Duration;

const SERIAL: u8 = 0;
const PARALLEL: u8 = 1;
const UNORDERED: u8 = 2;

const NONE: u8 = 0;
/// A write returns before it is published.
const RETURNS_EARLY: u8 = 1;
/// One lookup in 16 uses the snapshot before the newest one.
const STALE_READ: u8 = 2;

type Make = fn() -> Box<dyn Foreign<u64>>;

/// A buffer that switches its table now and then.
struct Map<I: Index, const MODE: u8, const MISTAKE: u8> {
    buffer: WriteBuffer<I>,
    writes: AtomicU64,
}

impl<I: Index, const MODE: u8, const MISTAKE: u8> Map<I, MODE, MISTAKE> {
    fn make() -> Box<dyn Foreign<u64>> {
        let mode = match MODE {
            SERIAL => WriteMode::Serial,
            PARALLEL => WriteMode::Parallel,
            _ => WriteMode::UnorderedUnrepeatableReads,
        };
        let mut options = BufferOptions { mode, max_frozen: 1000, ..BufferOptions::default() };
        options.table.block_bytes = 16 << 10;
        let buffer = WriteBuffer::new(options).unwrap();
        Box::new(Self { buffer, writes: AtomicU64::new(0) })
    }

    fn apply(&self, key: u64, value: Option<u64>) {
        let key = key.to_be_bytes();
        let result = match value {
            Some(value) => self.buffer.put(&key, &value.to_be_bytes()),
            None => self.buffer.delete(&key),
        };
        result.expect("memory");
        if self.writes.fetch_add(1, Ordering::Relaxed) % 200 == 199 {
            self.buffer.switch().expect("memory");
        }
    }
}

impl<I: Index, const MODE: u8, const MISTAKE: u8> Foreign<u64> for Map<I, MODE, MISTAKE> {
    fn calls(&self) -> Box<dyn ForeignCalls<u64> + '_> {
        Box::new(Caller { map: self, held: None, lookups: 0 })
    }

    fn scans(&self) -> bool {
        true
    }
}

struct Caller<'m, I: Index, const MODE: u8, const MISTAKE: u8> {
    map: &'m Map<I, MODE, MISTAKE>,
    /// A write that has returned and is not made yet.
    held: Option<(u64, Option<u64>)>,
    lookups: u64,
}

impl<I: Index, const MODE: u8, const MISTAKE: u8> Caller<'_, I, MODE, MISTAKE> {
    fn catch_up(&mut self) {
        if let Some((key, value)) = self.held.take() {
            self.map.apply(key, value);
        }
    }
}

impl<I: Index, const MODE: u8, const MISTAKE: u8> Drop for Caller<'_, I, MODE, MISTAKE> {
    fn drop(&mut self) {
        self.catch_up();
    }
}

impl<I: Index, const MODE: u8, const MISTAKE: u8> ForeignCalls<u64>
    for Caller<'_, I, MODE, MISTAKE>
{
    fn get(&mut self, key: u64) -> Option<u64> {
        self.catch_up();
        self.lookups += 1;
        let view = self.map.buffer.view();
        let is_stale = MISTAKE == STALE_READ && self.lookups.is_multiple_of(16);
        let snapshot = view.snapshot().saturating_sub(u64::from(is_stale));
        let found = view.get_at(&key.to_be_bytes(), snapshot);
        found.map(|value| u64::from_be_bytes(value.try_into().expect("eight bytes")))
    }

    fn write(&mut self, key: u64, write: Write) -> Option<Op> {
        self.catch_up();
        let value = match write {
            Write::TryInsert { value } | Write::Insert { value } => Some(value),
            Write::CompareExchange { new, .. } => new,
            Write::Remove => None,
        };
        if MISTAKE == RETURNS_EARLY {
            self.held = Some((key, value));
        } else {
            self.map.apply(key, value);
        }
        Some(value.map_or(Op::Delete, |value| Op::Put { value }))
    }

    fn scan(&mut self, from: u64, limit: usize, visit: &mut dyn FnMut(u64, u64)) {
        self.catch_up();
        let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        let mut cursor = self.map.buffer.cursor();
        cursor.seek(&from.to_be_bytes());
        for _ in 0..limit {
            let Some((key, value)) = cursor.entry() else { return };
            visit(word(key), word(value));
            cursor.next();
        }
    }

    fn refresh(&mut self) {}
}

fn judge(make: Make, until: Until) -> Report {
    let plan = Plan { until, threads: vec![2, 3], seed: size::seed(), ..Plan::default() };
    verify_foreign(&plan, &Clock::new(), make, || false)
}

#[test]
fn histories_are_linearizable() {
    let maps: [(&str, Make); 6] = [
        ("bytes, parallel", Map::<ByteIndex, PARALLEL, NONE>::make),
        ("bytes, serial", Map::<ByteIndex, SERIAL, NONE>::make),
        ("bytes, unordered", Map::<ByteIndex, UNORDERED, NONE>::make),
        ("skip list, parallel", Map::<SkipIndex, PARALLEL, NONE>::make),
        ("skip list, serial", Map::<SkipIndex, SERIAL, NONE>::make),
        ("ord, parallel", Map::<OrdIndex, PARALLEL, NONE>::make),
    ];
    for (name, make) in maps {
        let until = Until::Histories(size::pick(300, 8, 1) as u64);
        let report = judge(make, until);
        assert!(report.found.is_none(), "{name}: {:?}", report.found);
        assert_eq!(report.undecided, 0, "{name}");
        println!("{name}: {} histories", report.histories);
    }
}

#[test]
fn buffers_with_a_mistake_are_found() {
    let maps: [(&str, Make); 4] = [
        ("returns early, parallel", Map::<ByteIndex, PARALLEL, RETURNS_EARLY>::make),
        ("returns early, serial", Map::<ByteIndex, SERIAL, RETURNS_EARLY>::make),
        ("a stale read, parallel", Map::<SkipIndex, PARALLEL, STALE_READ>::make),
        ("a stale read, serial", Map::<SkipIndex, SERIAL, STALE_READ>::make),
    ];
    for (name, make) in maps {
        let report = judge(make, Until::Elapsed(Duration::from_secs(20)));
        let found = report.found.unwrap_or_else(|| panic!("{name} is not found"));
        assert!(matches!(found.what, Wrong::History(_)), "{name}: {}", found.what);
        println!("{name}: found in history {}", found.history);
    }
}
