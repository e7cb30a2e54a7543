//! Write buffers whose histories are recorded: `memtable`, `memtable:art`, `memtable:art:serial`.
//!
//! The calls are puts, deletes, lookups and scans. A write returns no value that it replaces, so a
//! history has blind writes. Tables are switched every now and then, so reads also find what they
//! seek in frozen ones.

use crate::catalogue::Verify;
use crate::flags::error::Error;
use crate::interrupt;
use crate::memtable::plan::{MODES, Memtable, mode, mode_name};
use crate::memtable::pointer::PointerIndex;
use silvics_memtable::{BufferOptions, ByteIndex, OrdIndex, SkipIndex, WriteBuffer, WriteMode};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_testkit::clock::Clock;
use silvics_testkit::history::Op;
use silvics_testkit::verify::{self, Foreign, ForeignCalls, Write, verify_foreign};

/// The name of all buffers, with which the name of each begins.
const GROUP: &str = "memtable";
/// The writes after which a table is switched.
const WRITES_OF_TABLE: u64 = 200;

/// A buffer of memtables, and its way of inserting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    memtable: Memtable,
    mode: WriteMode,
    /// Whether it was named, rather than the group of all indexes.
    pub named: bool,
}

impl Buffer {
    /// The buffers that the items of `--index` name, and the other items.
    pub fn among(text: &str) -> Result<(Vec<Self>, Vec<&str>), Error> {
        let (mut buffers, mut others): (Vec<Self>, Vec<&str>) = (Vec::new(), Vec::new());
        for item in text.split(',') {
            let found = Self::of(item).map_err(|problem| Error::value("--index", problem))?;
            if found.is_empty() || !found[0].named {
                others.push(item);
            }
            for buffer in found {
                match buffers.iter_mut().find(|other| other.name() == buffer.name()) {
                    Some(other) => other.named |= buffer.named,
                    None => buffers.push(buffer),
                }
            }
        }
        Ok((buffers, others))
    }

    /// The buffers that an item means.
    fn of(item: &str) -> Result<Vec<Self>, String> {
        let rest = match item.strip_prefix(GROUP) {
            None if item == "all" || item == "ours" => "",
            Some("") => "",
            Some(rest) if rest.starts_with(':') => &rest[1..],
            _ => return Ok(Vec::new()),
        };
        let (memtables, modes) = match rest.split_once(':') {
            None if rest.is_empty() => (Memtable::ALL.to_vec(), MODES.to_vec()),
            None => (vec![Memtable::parse(rest)?], MODES.to_vec()),
            Some((memtable, of)) => (vec![Memtable::parse(memtable)?], vec![mode(of)?]),
        };
        let named = item.starts_with(GROUP);
        let all = memtables
            .iter()
            .flat_map(|&memtable| modes.iter().map(move |&mode| Self { memtable, mode, named }));
        Ok(all.collect())
    }

    pub fn name(self) -> String {
        format!("{GROUP}:{}:{}", self.memtable.name(), mode_name(self.mode))
    }

    /// The function that records and checks its histories.
    pub fn verify(self) -> Verify {
        match self.memtable {
            Memtable::Art => of_index::<ByteIndex>(self.mode),
            Memtable::SkipList => of_index::<SkipIndex>(self.mode),
            Memtable::OrdMap => of_index::<OrdIndex>(self.mode),
            Memtable::SkipListPointer => of_index::<PointerIndex>(self.mode),
        }
    }
}

fn of_index<I: silvics_memtable::Index>(mode: WriteMode) -> Verify {
    fn record<I: silvics_memtable::Index, const MODE: usize>(
        plan: &verify::Plan,
        clock: &Clock,
    ) -> verify::Report {
        let make = || -> Box<dyn Foreign<[u8]>> { Box::new(Recorded::<I>::new(MODES[MODE])) };
        verify_foreign(plan, clock, make, interrupt::pending_beat)
    }
    match MODES.iter().position(|&other| other == mode) {
        Some(0) => record::<I, 0>,
        Some(1) => record::<I, 1>,
        Some(2) => record::<I, 2>,
        _ => record::<I, 3>,
    }
}

/// A buffer whose histories are recorded.
struct Recorded<I: silvics_memtable::Index> {
    buffer: WriteBuffer<I>,
    writes: AtomicU64,
}

impl<I: silvics_memtable::Index> Recorded<I> {
    fn new(mode: WriteMode) -> Self {
        let mut options = BufferOptions { mode, max_frozen: 1000, ..BufferOptions::default() };
        options.table.block_bytes = 16 << 10;
        let buffer = WriteBuffer::new(options).expect("memory for a small table");
        Self { buffer, writes: AtomicU64::new(0) }
    }
}

impl<I: silvics_memtable::Index> Foreign<[u8]> for Recorded<I> {
    fn calls(&self) -> Box<dyn ForeignCalls<[u8]> + '_> {
        Box::new(self)
    }

    fn scans(&self) -> bool {
        true
    }
}

/// The word of a value.
fn word(value: &[u8]) -> u64 {
    // A value of another length is not one that was written, so the checker finds it.
    value.try_into().map_or(u64::MAX, u64::from_be_bytes)
}

impl<I: silvics_memtable::Index> ForeignCalls<[u8]> for &Recorded<I> {
    fn get(&mut self, key: &[u8]) -> Option<u64> {
        self.buffer.view().get(key).map(word)
    }

    fn write(&mut self, key: &[u8], write: Write) -> Option<Op> {
        let value = match write {
            Write::TryInsert { value } | Write::Insert { value } => Some(value),
            Write::CompareExchange { new, .. } => new,
            Write::Remove => None,
        };
        let written = match value {
            Some(value) => self.buffer.put(key, &value.to_be_bytes()),
            None => self.buffer.delete(key),
        };
        written.expect("memory for a small table");
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        if number % WRITES_OF_TABLE == WRITES_OF_TABLE - 1 {
            self.buffer.switch().expect("memory for a small table");
        }
        Some(value.map_or(Op::Delete, |value| Op::Put { value }))
    }

    fn scan(&mut self, from: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], u64)) {
        let mut cursor = self.buffer.cursor();
        cursor.seek(from);
        for _ in 0..limit {
            let Some((key, value)) = cursor.entry() else { return };
            visit(key, word(value));
            cursor.next();
        }
    }

    fn refresh(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_testkit::size;
    use silvics_testkit::verify::{Plan, Report, Until, Wrong};
    use std::time::Duration;

    fn among(text: &str) -> (Vec<Buffer>, Vec<&str>) {
        Buffer::among(text).unwrap()
    }

    #[test]
    fn items_mean_one_buffer_or_several() {
        let names = |text| among(text).0.into_iter().map(Buffer::name).collect::<Vec<_>>();
        assert_eq!(names("memtable").len(), Memtable::ALL.len() * MODES.len());
        assert_eq!(names("memtable:art:serial"), ["memtable:art:serial"]);
        assert_eq!(names("memtable:art,memtable:art:serial").len(), MODES.len());
        assert_eq!(among("map,memtable:art:serial").1, ["map"]);
        assert_eq!(among("all").1, ["all"]);
        assert!(among("all").0.iter().all(|buffer| !buffer.named));
        for buffer in among("memtable").0 {
            let name = buffer.name();
            assert_eq!(among(&name).0, [buffer]);
        }
        let error = |text| Buffer::among(text).unwrap_err().to_string();
        assert!(error("memtable:skiplst").contains("did you mean `skiplist`?"));
        assert!(error("memtable:art:seriel").contains("did you mean `serial`?"));
    }

    const RETURNS_EARLY: u8 = 0;
    const STALE_READ: u8 = 1;

    /// A buffer with a mistake.
    struct Mistaken<const MISTAKE: u8>(Recorded<ByteIndex>);

    impl<const MISTAKE: u8> Mistaken<MISTAKE> {
        fn make<const MODE: usize>() -> Box<dyn Foreign<[u8]>> {
            Box::new(Self(Recorded::new(MODES[MODE])))
        }
    }

    impl<const MISTAKE: u8> Foreign<[u8]> for Mistaken<MISTAKE> {
        fn calls(&self) -> Box<dyn ForeignCalls<[u8]> + '_> {
            Box::new(Caller::<MISTAKE> { calls: &self.0, held: None, lookups: 0 })
        }
        fn scans(&self) -> bool {
            true
        }
    }

    struct Caller<'b, const MISTAKE: u8> {
        calls: &'b Recorded<ByteIndex>,
        /// A write that has returned and is not made yet.
        held: Option<(Vec<u8>, Write)>,
        lookups: u64,
    }

    impl<const MISTAKE: u8> Caller<'_, MISTAKE> {
        fn catch_up(&mut self) {
            if let Some((key, write)) = self.held.take() {
                self.calls.write(&key, write);
            }
        }
    }

    impl<const MISTAKE: u8> Drop for Caller<'_, MISTAKE> {
        fn drop(&mut self) {
            self.catch_up();
        }
    }

    impl<const MISTAKE: u8> ForeignCalls<[u8]> for Caller<'_, MISTAKE> {
        fn get(&mut self, key: &[u8]) -> Option<u64> {
            self.catch_up();
            self.lookups += 1;
            if MISTAKE == STALE_READ && self.lookups.is_multiple_of(16) {
                let view = self.calls.buffer.view();
                return view.get_at(key, view.snapshot().saturating_sub(1)).map(word);
            }
            self.calls.get(key)
        }

        fn write(&mut self, key: &[u8], write: Write) -> Option<Op> {
            self.catch_up();
            if MISTAKE != RETURNS_EARLY {
                return self.calls.write(key, write);
            }
            self.held = Some((key.to_vec(), write));
            Some(match write {
                Write::TryInsert { value }
                | Write::Insert { value }
                | Write::CompareExchange { new: Some(value), .. } => Op::Put { value },
                Write::CompareExchange { new: None, .. } | Write::Remove => Op::Delete,
            })
        }

        fn scan(&mut self, from: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], u64)) {
            self.catch_up();
            self.calls.scan(from, limit, visit);
        }

        fn refresh(&mut self) {}
    }

    fn judge(make: fn() -> Box<dyn Foreign<[u8]>>) -> Report {
        let until = Until::Elapsed(Duration::from_secs(20));
        let plan = Plan { until, threads: vec![2, 3], seed: size::seed(), ..Plan::default() };
        verify_foreign(&plan, &Clock::new(), make, || false)
    }

    #[test]
    fn buffers_with_a_mistake_are_found() {
        for make in [
            Mistaken::<RETURNS_EARLY>::make::<0>,
            Mistaken::<RETURNS_EARLY>::make::<1>,
            Mistaken::<STALE_READ>::make::<0>,
            Mistaken::<STALE_READ>::make::<1>,
        ] {
            let found = judge(make).found.expect("the mistake");
            assert!(matches!(found.what, Wrong::History(_)), "{}", found.what);
        }
    }
}
