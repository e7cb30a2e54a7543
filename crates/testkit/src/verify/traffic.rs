//! The calls of the threads of a history.
//!
//! A history consists of rounds. In each round the threads meet, so that they start together, and
//! then use a few common keys in one of several patterns. In one pattern they choose at random
//! among up to a few keys, so that all calls meet in the same nodes. In the others they sweep up or
//! down a longer run of keys, inserting in one pass and removing in the next. This makes trees
//! rotate, and splits and merges whole paths. All of this follows from the plan's seed and the
//! history's number.
//!
//! If the index has ends, one round in three also has calls on them: a third of its lookups are
//! `first` or `last`, and a third of its removals are `pop_first` or `pop_last`. Soon these meet
//! the other calls at the same keys, because pops remove the entries that earlier rounds have left.
//!
//! If it has atomic ranges, all scans and an eighth of the writes in these rounds are such
//! ranges, and in the other rounds half of the scans.

use super::{Mix, OrderedCalls, Plan, Ranges};
use crate::crew::Crew;
use crate::history::Recorder;
use crate::linearizable::ordered::EndVerb;
use crate::rng::Rng;
use crate::{Failure, Outcome, Subject};
use silvics::Guard;
use std::sync::Arc;

/// The number of keys of a history.
pub(crate) const KEYS: u32 = 256;
/// The number of rounds of a history.
pub(crate) const ROUNDS: usize = crate::size::pick_each(12, 12, 2);
/// The turns of a thread in a round. A turn is one call, or one scan or batch of lookups.
pub(crate) const TURNS: u32 = crate::size::pick_each(500, 200, 20) as u32;
/// The most keys that a scan covers.
const SPAN: u32 = 12;
/// The most keys of a batch: more than structures group together.
const BATCH: u32 = 20;

/// The pattern of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    first: u32,
    keys: u32,
    sweep: Option<Sweep>,
    /// Whether some calls are on the ends.
    ends: bool,
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
    fn draw(shared: &mut Rng, has_ends: bool) -> Self {
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
        // Histories without ends do not depend on this draw: their seeds mean what they did.
        let ends = has_ends && shared.below(3) == 0;
        Self { first, keys, sweep, ends }
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

/// A call that a thread makes in its turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// A lookup of a key.
    Get(u32),
    /// A batch of lookups of `count` keys from `first` on.
    GetMany { first: u32, count: u32 },
    /// A scan of `count` keys from `first` on, by one of three verbs.
    Scan { first: u32, count: u32, verb: u64 },
    /// A batch of upserts of `count` keys from `first` on, with values from `value` on.
    InsertMany { first: u32, count: u32, value: u64 },
    /// A write of a key.
    Write(u32, Write),
    /// A call on an end.
    End(EndVerb),
    /// An atomic range of `count` keys from `first` on: a read, or an update with a mask.
    Range { first: u32, count: u32, mask: u64 },
}

/// A write of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Puts the value if the key is absent.
    TryInsert {
        /// The value offered.
        value: u64,
    },
    /// Puts the value, whether the key is present or absent.
    Insert {
        /// The new value.
        value: u64,
    },
    /// Makes the key absent.
    Remove,
    /// Replaces one state of the key by another, where `None` is absent.
    CompareExchange {
        /// The expected state.
        expected: Option<u64>,
        /// The new state.
        new: Option<u64>,
    },
}

/// The distance from one fresh value of a thread to the next.
pub(super) const STRIDE: u64 = 1 << 8;

/// The calls of one thread of a history, one after the other.
pub(super) struct Script {
    mix: Mix,
    rng: Rng,
    shared: Rng,
    thread: usize,
    has_ends: bool,
    ranges: Ranges,
    written: u64,
    /// The last seen state of each key, which a compare-exchange expects.
    seen: Vec<Option<u64>>,
}

impl Script {
    pub(super) fn new(
        plan: &Plan,
        number: u64,
        thread: usize,
        (has_ends, ranges): (bool, Ranges),
    ) -> Self {
        let seed = plan.seed ^ crate::rng::mix(number);
        Self {
            mix: plan.mix,
            rng: Rng::new(seed, thread + 1),
            shared: Rng::new(seed, 0),
            thread,
            has_ends,
            ranges,
            written: 0,
            seen: vec![None; KEYS as usize],
        }
    }

    /// Draws the pattern of the next round.
    pub(super) fn pattern(&mut self) -> Pattern {
        Pattern::draw(&mut self.shared, self.has_ends)
    }

    /// Notes the state in which this thread has last seen a key.
    pub(super) fn saw(&mut self, key: u32, state: Option<u64>) {
        self.seen[key as usize] = state;
    }

    /// Returns a value that no other thread writes, and this thread only once.
    fn fresh(&mut self) -> u64 {
        self.written += 1;
        (self.written * STRIDE) | self.thread as u64
    }

    /// Chooses the next call.
    pub(super) fn turn(&mut self, pattern: Pattern, turn: u32) -> Turn {
        let (key, inserting) = pattern.key(turn, self.thread, &mut self.rng);
        let mix = self.mix;
        let drawn = self.rng.below(100) as u32;
        if drawn < mix.lookups {
            if self.at_end(pattern) {
                return Turn::End(self.one_of([EndVerb::First, EndVerb::Last]));
            }
            if self.rng.below(16) == 0 {
                return Turn::GetMany { first: key, count: pattern.batch(key) };
            }
            return Turn::Get(key);
        }
        if drawn < mix.lookups + mix.scans {
            let count = (KEYS - key).min(SPAN);
            if self.ranges != Ranges::None && (pattern.ends || self.rng.below(2) == 0) {
                return Turn::Range { first: key, count, mask: 0 };
            }
            return Turn::Scan { first: key, count, verb: self.rng.below(3) };
        }
        if self.ranges == Ranges::Updated && pattern.ends && self.rng.below(8) == 0 {
            // Bits that fresh values do not have, and no other update.
            let count = (KEYS - key).min(SPAN);
            return Turn::Range { first: key, count, mask: self.fresh() << 32 };
        }
        let inserts = inserting.unwrap_or(drawn < mix.lookups + mix.scans + mix.inserts);
        if inserts && mix.inserts > 0 || mix.removals == 0 {
            self.put(pattern, key)
        } else if self.at_end(pattern) {
            Turn::End(self.one_of([EndVerb::PopFirst, EndVerb::PopLast]))
        } else {
            Turn::Write(key, self.take(key))
        }
    }

    /// Whether the next lookup or removal is one at an end.
    fn at_end(&mut self, pattern: Pattern) -> bool {
        pattern.ends && self.rng.below(3) == 0
    }

    fn one_of(&mut self, verbs: [EndVerb; 2]) -> EndVerb {
        verbs[self.rng.below(2) as usize]
    }

    fn put(&mut self, pattern: Pattern, key: u32) -> Turn {
        let value = self.fresh();
        if self.rng.below(24) == 0 {
            let count = pattern.batch(key);
            self.written += u64::from(count) - 1;
            return Turn::InsertMany { first: key, count, value };
        }
        let new = Some(value);
        let write = match self.rng.below(4) {
            0 => Write::TryInsert { value },
            1 => Write::Insert { value },
            // Expects a wrong state now and then: a mismatch must be reported correctly too.
            2 => Write::CompareExchange { expected: None, new },
            _ => Write::CompareExchange { expected: self.seen[key as usize], new },
        };
        Turn::Write(key, write)
    }

    fn take(&mut self, key: u32) -> Write {
        if self.rng.below(3) == 0 {
            return Write::CompareExchange { expected: self.seen[key as usize], new: None };
        }
        Write::Remove
    }
}

/// One thread of a history of an index.
pub(crate) struct Caller<'a, I: Subject + ?Sized, S> {
    index: &'a Arc<I>,
    recorder: Recorder<'a, I>,
    script: Script,
    ordered: S,
}

impl<'a, I: Subject + ?Sized, S: OrderedCalls<I>> Caller<'a, I, S> {
    pub(crate) fn new(
        plan: &Plan,
        number: u64,
        index: &'a Arc<I>,
        recorder: Recorder<'a, I>,
        thread: usize,
        ordered: S,
    ) -> Self {
        Self {
            index,
            recorder,
            script: Script::new(plan, number, thread, (S::ENDS, S::RANGES)),
            ordered,
        }
    }

    /// Makes all rounds, and returns the recorded calls.
    pub(crate) fn run(mut self, crew: &Crew) -> Result<Recorder<'a, I>, Failure> {
        for _ in 0..ROUNDS {
            let pattern = self.script.pattern();
            crew.meet()?;
            for turn in 0..TURNS {
                let guard = self.index.domain().pin();
                let turn = self.script.turn(pattern, turn);
                self.call(turn, &guard)?;
            }
        }
        Ok(self.recorder)
    }

    fn call(&mut self, turn: Turn, guard: &Guard) -> Outcome {
        let Self { index, recorder, script, ordered } = self;
        match turn {
            Turn::Get(key) => script.saw(key, recorder.get(key, guard)),
            Turn::GetMany { first, count } => recorder.get_many(first, count, guard),
            Turn::Scan { first, count, verb } => {
                return ordered.scan(recorder, index, first, count, verb, guard);
            }
            Turn::End(verb) => {
                if let Some((key, value)) = ordered.end(recorder, index, verb, guard)? {
                    script.saw(key, (!verb.pops()).then_some(value));
                }
            }
            Turn::Range { first, count, mask } => {
                return ordered.range(recorder, index, (first, count), mask, guard);
            }
            Turn::InsertMany { first, count, value } => {
                return recorder.insert_many(first, count, value, STRIDE, guard);
            }
            Turn::Write(key, Write::TryInsert { value }) => {
                return recorder.try_insert(key, value, guard);
            }
            Turn::Write(key, Write::Insert { value }) => {
                recorder.insert(key, value, guard)?;
                script.saw(key, Some(value));
            }
            Turn::Write(key, Write::Remove) => {
                recorder.remove(key, guard)?;
                script.saw(key, None);
            }
            Turn::Write(key, Write::CompareExchange { expected, new }) => {
                let found = recorder.compare_exchange(key, expected, new, guard)?;
                let removed = new.is_none() && found == expected;
                script.saw(key, if removed { None } else { found });
            }
        }
        Ok(())
    }
}
