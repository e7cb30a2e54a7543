//! memtable/2.1: keys in the nodes of a skip list, or behind a pointer.

use super::{Fill, KEY_BYTES, KEYS};
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::memtable::keys::Key;
use crate::memtable::plan::Memtable;
use crate::reproduce::Experiment;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, at_least, in_turns, median, ratio};
use silvics_memtable::skiplist::{Arena, BehindPointer, ByBytes, Inline, Placing, SkipList};
use silvics_memtable::{Draft, Kind, WriteMode, pack};
use silvics_pool::{AllocError, ConcurrentArena, Config};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::alloc::Layout;
use std::ptr::NonNull;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: "memtable/2.1",
    title: "inline keys",
    source: "RocksDB, review D51123, 2015",
    machine: super::MACHINE,
    claim: "a node with its key behind it takes one allocation instead of two, and 1 to 8 bytes \
            less; 32 M random inserts by one thread, keys of 16 bytes and empty values: 310 k → \
            410 k per second; larger values: 5 to 10 %",
    carried_by: "fact; clock reported",
    seen_if: "one allocation per insert against two; bytes per entry lower by the pointer less \
            padding; towers of 4/3 pointers on average; inline at least 1.05 × as fast",
    elsewhere: false,
    cannot_show: &[],
    gather,
};

/// The ratio of the clock that confirms the source's direction.
const BAR: f64 = 1.05;
/// The pointers of a tower, if each level has a quarter of the nodes below: the sum of 1/4^n.
const TOWER: f64 = 4.0 / 3.0;
/// The bytes of the larger values.
const VALUE_BYTES: usize = 100;

fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(facts(lab.plan.keys(KEYS))?);
    }
    if lab.wants(Level::Clock) {
        lines.push(clock(lab, 0, BAR, "310 k → 410 k per second")?);
        lines.push(clock(lab, VALUE_BYTES, 1.0, "5 to 10 % more")?);
    }
    Ok(lines)
}

/// An arena that counts what a list asks it for.
struct Counted {
    arena: ConcurrentArena,
    calls: AtomicU64,
    bytes: AtomicU64,
}

// SAFETY: the arena inside hands each byte out once, and frees them when it is dropped.
unsafe impl Arena for Counted {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(layout.size() as u64, Ordering::Relaxed);
        self.arena.alloc(layout)
    }
}

/// The memory of a list, by entry.
struct Built {
    calls: f64,
    links: f64,
    /// With padding.
    bytes: f64,
}

/// Inserts entries with empty values into a list.
fn build<L: Placing>(keys: usize) -> Result<Built, Error> {
    let failed = |error| Error::Alloc { index: Memtable::SkipList.name().into(), error };
    let wrong = |what| Error::Wrong { index: Memtable::SkipList.name().into(), what };
    let arena = ConcurrentArena::new(&Config::default(), 1 << 20);
    let counted = Counted { arena, calls: AtomicU64::new(0), bytes: AtomicU64::new(0) };
    let mut list = SkipList::<ByBytes, Counted, L>::new(ByBytes, counted);
    let (mut key, mut entries) = (Key::new(KEY_BYTES), 0);
    for number in 0..keys as u64 {
        let key = key.of(scattered(number));
        let draft = Draft::new(key, pack(number + 1, Kind::Put as u8), b"");
        let draft = draft.ok_or_else(|| wrong("a key is too long".into()))?;
        entries += draft.len();
        let place = list.allocate(draft.len()).map_err(failed)?;
        // SAFETY: the place has these bytes, the entry is not written again, and this is the only
        // thread.
        let is_new = unsafe {
            draft.write(place.entry());
            list.insert(place)
        };
        if !is_new {
            return Err(wrong(format!("entry {number} is taken for another one")));
        }
        if number % 4096 == 0 && interrupt::pending() {
            return Err(Error::Interrupted);
        }
    }
    let found = list.check().map_err(wrong)?;
    if found != keys {
        return Err(wrong(format!("{found} entries, not {keys}")));
    }
    let arena = list.arena();
    let [calls, bytes] = [&arena.calls, &arena.bytes].map(|count| count.load(Ordering::Relaxed));
    let per_entry = |count: u64| count as f64 / keys as f64;
    let links = (bytes - entries as u64) / size_of::<usize>() as u64;
    Ok(Built {
        calls: per_entry(calls),
        links: per_entry(links),
        bytes: per_entry(arena.arena.used() as u64),
    })
}

/// A number for another one, in no order: a product with an odd number, so no two are equal.
pub fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn facts(keys: usize) -> Result<[Evidence; 4], Error> {
    let (inline, pointer) = (build::<Inline>(keys)?, build::<BehindPointer>(keys)?);
    let of = |built: &Built| format!("({keys} entries of 26 bytes, {:.1} bytes each)", built.bytes);
    let word = size_of::<usize>() as f64;
    Ok([
        Evidence::fact(
            "keys inline: allocations of an insert",
            Unit::Number(2),
            Expected::exactly(1.0),
            inline.calls,
        )
        .with(&of(&inline)),
        Evidence::fact(
            "keys behind pointers: allocations of an insert",
            Unit::Number(2),
            Expected::exactly(2.0),
            pointer.calls,
        )
        .with(&of(&pointer)),
        // Towers are drawn at random, so both means vary by some hundredths.
        Evidence::fact(
            "bytes by which an entry inline is smaller, padding included",
            Unit::Number(1),
            Expected::Within(1.0, word + 0.1),
            pointer.bytes - inline.bytes,
        ),
        Evidence::fact(
            "pointers of a tower",
            Unit::Number(2),
            Expected::about(TOWER, 0.05),
            inline.links,
        ),
    ])
}

/// Inline over pointers, by the whole write path of one thread.
fn clock(lab: &Lab, value_size: usize, bar: f64, claimed: &str) -> Result<Evidence, Error> {
    let crew = Crew::new();
    let rounds = Rounds::new(lab.plan.quick).rounds;
    let (mode, threads, yields) = (WriteMode::Serial, 1, true);
    let samples = in_turns(2, rounds, |subject, round| {
        let memtable = [Memtable::SkipListPointer, Memtable::SkipList][subject];
        let fill = Fill { memtable, mode, threads, value_size, yields };
        fill.run(lab, &crew, round).map(|sample| sample.ops_per_s)
    })?;
    let what = format!("fillrandom, values of {value_size} bytes: inline / pointer");
    let [pointer, inline] = [0, 1].map(|at| median(&samples[at]) / 1e3);
    let figures = format!("(kops/s: pointer {pointer:.0}, inline {inline:.0})");
    Ok(at_least(what, bar, claimed, ratio(&samples[1], &samples[0])).with(&figures))
}
