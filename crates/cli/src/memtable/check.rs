//! The checks of a run: its answers, and the content that it leaves behind.

use super::keys::{Numbers, Purpose, is_of_run, number_of, word, word_of};
use super::plan::Workload;
use super::run::{Job, Left};
use super::work::{Lap, Tally};
use silvics_memtable::{Index, WriteBuffer};

/// Checks the answers of readers, by drawing their keys again.
pub fn answers(job: &Job<'_>, left: &Left, laps: &[Lap]) -> Result<(), String> {
    if job.workload.writes() {
        let ops: u64 = laps.iter().map(|lap| lap.tally.ops).sum();
        return equal("entries written", ops, job.num as u64);
    }
    for (thread, lap) in laps.iter().take(job.threads).enumerate() {
        let expected = expected(job, &left.keys, thread);
        if lap.tally != expected {
            return Err(format!(
                "{} answers {:?}, not {expected:?}",
                job.workload.name(),
                lap.tally
            ));
        }
    }
    Ok(())
}

/// The answers that a thread must get.
fn expected(job: &Job<'_>, keys: &Numbers, thread: usize) -> Tally {
    let (mut draws, mut tally) = (job.draws(Purpose::Run, thread), Tally::default());
    for _ in job.operations(thread, job.threads) {
        let number = draws.draw();
        tally.read(match job.workload {
            Workload::SeekRandom => keys.next(number),
            _ => keys.contains(number).then(|| word_of(number, job.value_size)),
        });
    }
    tally
}

fn equal(what: &str, found: u64, expected: u64) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found} {what}, not {expected}")) }
}

/// Walks over a buffer, which must have exactly the keys that the run leaves, with their values.
pub fn content<I: Index>(
    buffer: &WriteBuffer<I>,
    job: &Job<'_>,
    left: &Left,
) -> Result<(), String> {
    let mut cursor = buffer.cursor();
    cursor.first();
    let (mut next, mut count) = (left.keys.next(0), 0);
    while let Some((key, value)) = cursor.entry() {
        let number = number_of(key).filter(|_| key.len() == job.key_size);
        if number != next {
            return Err(format!("key {number:?} where {next:?} must be"));
        }
        let Some(number) = number else { return Err("a key too many".into()) };
        let is_its_value =
            value.len() == job.value_size && word(value) == word_of(number, job.value_size);
        // Beside readers, keys of the fill may have been written again.
        let is_newest = job.workload == Workload::ReadWhileWriting
            || is_of_run(value).is_none_or(|is| is == left.of_run.contains(number));
        if !(is_its_value && is_newest) {
            return Err(format!("key {number} has a wrong value: {value:?}"));
        }
        count += 1;
        next = left.keys.next(number + 1);
        cursor.next();
    }
    equal("keys", count, left.keys.len())
}
