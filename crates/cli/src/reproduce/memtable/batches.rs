//! Facts on batches: readers see them as a whole and in order, beside writers.
//!
//! Each writer has a few keys, and each of its batches gives all of them the batch's number. A view
//! must find one number in all keys of a writer, never a smaller one than an earlier view, and in
//! the writer itself the number that it has just written.

use super::KEYS;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::memtable::keys::{Key, word};
use crate::memtable::plan::Memtable;
use crate::reproduce::evidence::Evidence;
use crate::reproduce::lab::Lab;
use silvics_memtable::{
    BufferOptions, ByteIndex, Index, OrdIndex, SkipIndex, View, WriteBatch, WriteBuffer,
    WriteOptions,
};
use silvics_sync::atomic::{AtomicUsize, Ordering};

const WRITERS: usize = 6;
const READERS: usize = 2;
/// The keys of a writer.
const OWN: u64 = 8;
/// The batches of a writer are this part of the keys of an experiment.
const PART: usize = 256;

/// The observations of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The looks at the keys of a writer.
    looks: u64,
    /// Those that found different numbers.
    torn: u64,
    /// Those that found a smaller number than before.
    backwards: u64,
}

/// The lines on a memtable.
pub fn facts(lab: &Lab, memtable: Memtable) -> Result<[Evidence; 2], Error> {
    let batches = (lab.plan.keys(KEYS) / PART).max(100) as u64;
    let seen = match memtable {
        Memtable::Art => watch::<ByteIndex>(batches),
        Memtable::OrdMap => watch::<OrdIndex>(batches),
        Memtable::SkipList | Memtable::SkipListPointer => watch::<SkipIndex>(batches),
    };
    let seen = seen.map_err(|failure| failure.of(memtable.name()))?;
    let name = memtable.name();
    let line = |what: &str, found: u64| {
        let what = format!("{name}, {WRITERS} writers and {READERS} readers: {what}");
        let figure = format!("{found} of {}", seen.looks);
        Evidence::plain(what, "0".into(), figure, found == 0)
    };
    Ok([line("batches seen in part", seen.torn), line("numbers that went back", seen.backwards)])
}

fn watch<I: Index>(batches: u64) -> Result<Seen, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Wrong(format!("{error}"));
    let buffer = WriteBuffer::<I>::new(BufferOptions::default()).map_err(|error| failed(&error))?;
    let writing = AtomicUsize::new(WRITERS);
    let work = |thread: usize| -> Result<Seen, Failure> {
        let (mut seen, mut last) = (Seen::default(), [0; WRITERS]);
        if thread >= WRITERS {
            while writing.load(Ordering::Relaxed) > 0 {
                let view = buffer.view();
                for (writer, last) in last.iter_mut().enumerate() {
                    look(&view, writer, last, &mut seen);
                }
            }
            return Ok(seen);
        }
        let written = (1..=batches).try_for_each(|number| {
            write(&buffer, thread, number).map_err(|error| failed(&error))?;
            last[thread] = number;
            look(&buffer.view(), thread, &mut last[thread], &mut seen);
            Ok(())
        });
        writing.fetch_sub(1, Ordering::Relaxed);
        written.map(|()| seen)
    };
    let all = Crew::new().work(WRITERS + READERS, |share| work(share.thread), || ())?;
    let add = |a: Seen, b: Seen| Seen {
        looks: a.looks + b.looks,
        torn: a.torn + b.torn,
        backwards: a.backwards + b.backwards,
    };
    all.into_iter().try_fold(Seen::default(), |sum, seen| Ok(add(sum, seen?)))
}

fn number_of(writer: usize, own: u64) -> u64 {
    // Keys of different writers alternate.
    own * WRITERS as u64 + writer as u64
}

fn write<I: Index>(
    buffer: &WriteBuffer<I>,
    writer: usize,
    number: u64,
) -> Result<(), silvics_memtable::WriteError> {
    let (mut batch, mut key) = (WriteBatch::new(), Key::new(super::KEY_BYTES));
    for own in 0..OWN {
        batch.put(key.of(number_of(writer, own)), &number.to_le_bytes())?;
    }
    buffer.write(&batch, WriteOptions::default()).map(|_| ())
}

/// Reads the keys of a writer.
fn look<I: Index>(view: &View<'_, I>, writer: usize, last: &mut u64, seen: &mut Seen) {
    let mut key = Key::new(super::KEY_BYTES);
    let mut find = |own| view.get(key.of(number_of(writer, own))).map_or(0, word);
    let first = find(0);
    seen.looks += 1;
    seen.torn += u64::from((1..OWN).any(|own| find(own) != first));
    seen.backwards += u64::from(first < *last);
    *last = first;
}
