//! The calls of the threads of a history.
//!
//! A history consists of rounds. In each round the threads meet, so that they start together, and
//! then use a few common keys in one of several patterns. In one pattern they choose at random
//! among up to a few keys, so that all calls meet in the same nodes. In the others they sweep up or
//! down a longer run of keys, inserting in one pass and removing in the next. This makes trees
//! rotate, and splits and merges whole paths. All of this follows from the plan's seed and the
//! history's number.

use super::{Plan, Scans};
use crate::crew::Crew;
use crate::history::Recorder;
use crate::rng::Rng;
use crate::{Failure, Outcome, Subject};
use silvics::Guard;
use std::sync::Arc;

/// The number of keys of a history.
pub(crate) const KEYS: u32 = 256;
/// The number of rounds of a history.
pub(crate) const ROUNDS: usize = crate::size::pick(12, 12, 2);
/// The turns of a thread in a round. A turn is one call, or one scan or batch of lookups.
pub(crate) const TURNS: u32 = crate::size::pick(500, 200, 20) as u32;
/// The most keys that a scan covers.
const SPAN: u32 = 12;
/// The most keys of a batch: more than structures group together.
const BATCH: u32 = 20;

/// The pattern of a round.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    first: u32,
    keys: u32,
    sweep: Option<Sweep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweep {
    Up,
    Down,
    /// A sweep in which odd threads go down and even ones up.
    Crossing,
}

impl Pattern {
    /// Draws a pattern from a generator that all threads share.
    fn draw(shared: &mut Rng) -> Self {
        const NARROW: [u64; 4] = [1, 2, 4, 10];
        const WIDE: [u64; 3] = [16, 60, 200];
        let sweep = match shared.below(6) {
            0 => Some(Sweep::Up),
            1 => Some(Sweep::Down),
            2 => Some(Sweep::Crossing),
            _ => None,
        };
        let sizes: &[u64] = match sweep {
            None if shared.percent(70) => &NARROW,
            _ => &WIDE,
        };
        let keys = sizes[shared.below(sizes.len() as u64) as usize] as u32;
        let first = shared.below(u64::from(KEYS - keys + 1)) as u32;
        Self { first, keys, sweep }
    }

    /// The number of keys in a batch from `key` on.
    fn batch(self, key: u32) -> u32 {
        (self.first + self.keys - key).min(BATCH)
    }

    /// The key of a thread's turn. In a sweep, also whether this pass inserts.
    fn key(self, turn: u32, thread: usize, rng: &mut Rng) -> (u32, Option<bool>) {
        let Some(sweep) = self.sweep else {
            return (self.first + rng.below(u64::from(self.keys)) as u32, None);
        };
        let (pass, at) = (turn / self.keys, turn % self.keys);
        let down = sweep == Sweep::Down || sweep == Sweep::Crossing && thread % 2 == 1;
        let at = if down { self.keys - 1 - at } else { at };
        (self.first + at, Some(pass.is_multiple_of(2)))
    }
}

/// One thread of a history.
pub(crate) struct Caller<'a, I: Subject + ?Sized, S> {
    plan: &'a Plan,
    index: &'a Arc<I>,
    recorder: Recorder<'a, I>,
    rng: Rng,
    shared: Rng,
    thread: usize,
    written: u64,
    /// The last seen state of each key, which a compare-exchange expects.
    seen: Vec<Option<u64>>,
    scans: S,
}

impl<'a, I: Subject + ?Sized, S: Scans<I>> Caller<'a, I, S> {
    pub(crate) fn new(
        plan: &'a Plan,
        number: u64,
        index: &'a Arc<I>,
        recorder: Recorder<'a, I>,
        thread: usize,
        scans: S,
    ) -> Self {
        let seed = plan.seed ^ crate::rng::mix(number);
        Self {
            plan,
            index,
            recorder,
            rng: Rng::new(seed, thread + 1),
            shared: Rng::new(seed, 0),
            thread,
            written: 0,
            seen: vec![None; KEYS as usize],
            scans,
        }
    }

    /// Makes all rounds, and returns the recorded calls.
    pub(crate) fn run(mut self, crew: &Crew) -> Result<Recorder<'a, I>, Failure> {
        for _ in 0..ROUNDS {
            let pattern = Pattern::draw(&mut self.shared);
            crew.meet()?;
            for turn in 0..TURNS {
                let guard = self.index.domain().pin();
                self.turn(pattern, turn, &guard)?;
            }
        }
        Ok(self.recorder)
    }

    /// Returns a value that no other thread writes, and this thread only once.
    fn fresh(&mut self) -> u64 {
        self.written += 1;
        (self.written * Self::STRIDE) | self.thread as u64
    }

    /// The distance from one fresh value to the next.
    const STRIDE: u64 = 1 << 8;

    fn turn(&mut self, pattern: Pattern, turn: u32, guard: &Guard) -> Outcome {
        let (key, inserting) = pattern.key(turn, self.thread, &mut self.rng);
        let mix = self.plan.mix;
        let drawn = self.rng.below(100) as u32;
        if drawn < mix.lookups {
            self.look(pattern, key, guard);
            return Ok(());
        }
        if drawn < mix.lookups + mix.scans {
            let count = (KEYS - key).min(SPAN);
            let verb = self.rng.below(3);
            return self.scans.scan(&mut self.recorder, self.index, key, count, verb, guard);
        }
        let inserts = inserting.unwrap_or(drawn < mix.lookups + mix.scans + mix.inserts);
        if inserts && mix.inserts > 0 || mix.removals == 0 {
            self.put(pattern, key, guard)
        } else {
            self.take(key, guard)
        }
    }

    fn look(&mut self, pattern: Pattern, key: u32, guard: &Guard) {
        if self.rng.below(16) == 0 {
            self.recorder.get_many(key, pattern.batch(key), guard);
        } else {
            self.seen[key as usize] = self.recorder.get(key, guard);
        }
    }

    fn put(&mut self, pattern: Pattern, key: u32, guard: &Guard) -> Outcome {
        let value = self.fresh();
        let at = key as usize;
        if self.rng.below(24) == 0 {
            let count = pattern.batch(key);
            self.written += u64::from(count) - 1;
            return self.recorder.insert_many(key, count, value, Self::STRIDE, guard);
        }
        match self.rng.below(4) {
            0 => self.recorder.try_insert(key, value, guard)?,
            1 => {
                self.recorder.insert(key, value, guard)?;
                self.seen[at] = Some(value);
            }
            // Expects a wrong state now and then: a mismatch must be reported correctly too.
            2 => self.seen[at] = self.recorder.compare_exchange(key, None, Some(value), guard)?,
            _ => {
                let expected = self.seen[at];
                self.seen[at] =
                    self.recorder.compare_exchange(key, expected, Some(value), guard)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, key: u32, guard: &Guard) -> Outcome {
        let at = key as usize;
        if self.rng.below(3) == 0 {
            let expected = self.seen[at];
            let found = self.recorder.compare_exchange(key, expected, None, guard)?;
            self.seen[at] = if found == expected { None } else { found };
        } else {
            self.recorder.remove(key, guard)?;
            self.seen[at] = None;
        }
        Ok(())
    }
}
