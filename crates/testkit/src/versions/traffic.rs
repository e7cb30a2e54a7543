//! The calls of the threads of a history.
//!
//! A history consists of rounds. In each round the threads meet, and then use a few common keys:
//! mostly one to five, sometimes up to 200. Each thread holds up to three snapshots, reads through
//! them again and again, and passes some on to the other threads, so that several threads read
//! through one. All choices follow from the plan's seed and the history's number.
//!
//! If the caller gives the numbers, the threads write versions a little above the watermark, in any
//! order, while others raise it: some of these writes come too late, or find that their number is
//! taken.

use super::KEYS;
use super::call::{Answer, Expected, Found, Life, Write};
use super::record::{Held, Recorder};
use crate::crew::Crew;
use crate::rng::Rng;
use crate::verify::{Mix, Plan};
use crate::{Failure, Outcome};
use silvics_sync::Mutex;
use std::sync::Arc;

/// The number of rounds of a history.
const ROUNDS: usize = crate::size::pick(10, 10, 2);
/// The turns of a round, for up to four threads each. More threads share four times as many. A turn
/// is one call, or some reads through one snapshot.
const TURNS: usize = crate::size::pick(120, 60, 10);
/// The snapshots that a thread holds at most.
const HELD: usize = 3;

/// The state that the threads of a history share.
#[derive(Default)]
pub(super) struct Shared {
    /// Snapshots that a thread has passed on.
    snapshots: Mutex<Vec<Arc<Held>>>,
}

/// The keys of a round.
#[derive(Clone, Copy)]
struct Pattern {
    first: u32,
    keys: u32,
}

impl Pattern {
    fn draw(shared: &mut Rng) -> Self {
        const SIZES: [u64; 10] = [1, 1, 2, 2, 3, 3, 5, 12, 60, 200];
        let keys = SIZES[shared.below(SIZES.len() as u64) as usize] as u32;
        Self { first: shared.below(u64::from(KEYS - keys + 1)) as u32, keys }
    }

    /// The keys of a range that begins at `key`.
    fn from(self, key: u32) -> (u32, u32) {
        (key, (self.first + self.keys - 1).min(key + 20))
    }
}

/// One thread of a history.
pub(super) struct Caller<'a> {
    recorder: Recorder<'a>,
    shared: &'a Shared,
    mix: Mix,
    rng: Rng,
    rounds: Rng,
    drawn: bool,
    retains_all: bool,
    thread: usize,
    turns: usize,
    written: u64,
    /// The number at which this thread has last seen the map.
    near: u64,
    /// The newest version of each key that this thread has last seen.
    seen: Vec<Option<u64>>,
    held: Vec<Arc<Held>>,
}

/// The calls of a thread, and the snapshots that it still holds.
pub(super) struct Calls {
    pub(super) events: Vec<super::Event>,
    pub(super) lives: Vec<Life>,
    held: Vec<Arc<Held>>,
}

impl<'a> Caller<'a> {
    pub(super) fn new(
        recorder: Recorder<'a>,
        shared: &'a Shared,
        plan: &Plan,
        number: u64,
        (thread, threads): (usize, usize),
        (drawn, retains_all): (bool, bool),
    ) -> Self {
        let seed = plan.seed ^ crate::rng::mix(number);
        Self {
            recorder,
            shared,
            mix: plan.mix,
            rng: Rng::new(seed, thread + 1),
            rounds: Rng::new(seed, 0),
            drawn,
            retains_all,
            thread,
            turns: (4 * TURNS / threads.max(4)).max(1),
            written: 0,
            near: 0,
            seen: vec![None; KEYS as usize],
            held: Vec::new(),
        }
    }

    /// Makes all rounds.
    pub(super) fn run(mut self, crew: &Crew) -> Result<Calls, Failure> {
        for _ in 0..ROUNDS {
            let pattern = Pattern::draw(&mut self.rounds);
            crew.meet()?;
            for _ in 0..self.turns {
                self.turn(pattern)?;
            }
        }
        let Recorder { events, lives, .. } = self.recorder;
        Ok(Calls { events, lives, held: self.held })
    }

    fn turn(&mut self, pattern: Pattern) -> Outcome {
        let key = pattern.first + self.rng.below(u64::from(pattern.keys)) as u32;
        if !self.drawn && self.rng.below(6) == 0 {
            self.publish();
        }
        match self.rng.below(40) {
            0 => return self.pass(pattern, key),
            1 => self.drop_one(),
            2 => self.prune(),
            _ => {}
        }
        let drawn = self.rng.below(100) as u32;
        let mix = self.mix;
        if drawn < mix.lookups {
            self.look_up(pattern, key)
        } else if drawn < mix.lookups + mix.scans {
            self.scan(pattern, key)
        } else if drawn < mix.lookups + mix.scans + mix.inserts {
            let value = Some(self.fresh());
            self.write(pattern, key, value)
        } else {
            self.write(pattern, key, None)
        }
    }

    /// Returns a value that no other thread writes, and this thread only once.
    fn fresh(&mut self) -> u64 {
        self.written += 1;
        (self.written << 8) | self.thread as u64
    }

    fn saw(&mut self, key: u32, found: Found) {
        self.seen[key as usize] = found.map(|(number, _)| number);
    }

    fn look_up(&mut self, pattern: Pattern, key: u32) -> Outcome {
        match self.rng.below(20) {
            0..8 => {
                let found = self.recorder.get_latest(key);
                self.saw(key, found);
            }
            8..11 => {
                let at = self.number_to_read();
                self.recorder.get_at(key, at);
            }
            11..15 => {
                let held = self.begin(None)?;
                return self.read(pattern, key, &held);
            }
            15..18 => {
                if let Some(held) = self.one_held() {
                    return self.read(pattern, key, &held);
                }
            }
            18 => self.recorder.history(key),
            _ => self.near = self.recorder.now(),
        }
        Ok(())
    }

    /// Begins a snapshot, and holds it if there is room. If its number cannot be read, it begins
    /// one of the present.
    fn begin(&mut self, asked: Option<u64>) -> Result<Arc<Held>, Failure> {
        let begun = self.recorder.snapshot(asked).or_else(|_| self.recorder.snapshot(None));
        let held = begun.map_err(|error| Failure::new(format!("snapshot → {error}")))?;
        self.near = self.near.max(held.number());
        let held = Arc::new(held);
        if self.held.len() == HELD {
            let at = self.rng.below(HELD as u64) as usize;
            let old = std::mem::replace(&mut self.held[at], Arc::clone(&held));
            self.recorder.drop(old);
        } else {
            self.held.push(Arc::clone(&held));
        }
        Ok(held)
    }

    fn one_held(&mut self) -> Option<Arc<Held>> {
        let at = self.rng.below(self.held.len().max(1) as u64) as usize;
        self.held.get(at).cloned()
    }

    /// Reads some keys through a snapshot, one of them twice.
    fn read(&mut self, pattern: Pattern, key: u32, held: &Arc<Held>) -> Outcome {
        self.recorder.read(held, key);
        for _ in 0..self.rng.below(3) {
            let other = pattern.first + self.rng.below(u64::from(pattern.keys)) as u32;
            self.recorder.read(held, other);
        }
        if self.rng.below(4) == 0 {
            let descending = self.rng.below(2) == 0;
            self.recorder.range(held, pattern.from(key), descending)?;
        }
        self.recorder.read(held, key);
        Ok(())
    }

    fn scan(&mut self, pattern: Pattern, key: u32) -> Outcome {
        let keys = pattern.from(key);
        if self.rng.below(2) == 0 {
            let at = self.number_to_read();
            return self.recorder.range_at(at, keys);
        }
        let held = self.begin(None)?;
        let descending = self.rng.below(2) == 0;
        self.recorder.range(&held, keys, descending)
    }

    /// A number for a reader: the present, that of a snapshot, an older or a future one.
    fn number_to_read(&mut self) -> u64 {
        match self.rng.below(8) {
            0 => self.near + self.rng.below(4),
            1 => self.near.saturating_sub(self.rng.below(8)),
            2..4 => self.one_held().map_or(self.near, |held| held.number()),
            _ => {
                self.near = self.recorder.now();
                self.near
            }
        }
    }

    /// Writes a key, or several at once.
    fn write(&mut self, pattern: Pattern, key: u32, value: Option<u64>) -> Outcome {
        let first = Write { key, value, expected: self.expected(key, value.is_some()) };
        let given = (!self.drawn).then(|| self.near + 1 + self.rng.below(6));
        let (writes, answer) = if self.drawn && self.rng.below(4) == 0 {
            let mut writes = vec![first];
            for _ in 0..self.rng.below(4) {
                let key = pattern.first + self.rng.below(u64::from(pattern.keys)) as u32;
                if writes.iter().all(|write| write.key != key) {
                    let value = (self.rng.below(3) > 0).then(|| self.fresh());
                    let expected = self.expected(key, value.is_some());
                    writes.push(Write { key, value, expected });
                }
            }
            writes.sort_unstable_by_key(|write| write.key);
            (writes.clone(), self.recorder.commit(writes)?)
        } else {
            (vec![first], self.recorder.write(first, given)?)
        };
        match answer {
            Answer::Done(number) => {
                for write in &writes {
                    self.seen[write.key as usize] = write.value.map(|_| number);
                }
                if self.drawn {
                    self.near = self.near.max(number);
                }
            }
            Answer::Nothing => self.seen[key as usize] = None,
            Answer::Conflict(latest) if writes.len() == 1 => self.seen[key as usize] = latest,
            Answer::TooLate(watermark) => self.near = self.near.max(watermark),
            Answer::Conflict(_) | Answer::Exists(_) | Answer::NotNewer(_) => {}
        }
        Ok(())
    }

    /// The version that the next write of a key expects: any, the one last seen, or none.
    fn expected(&mut self, key: u32, puts: bool) -> Expected {
        match self.rng.below(8) {
            0 if puts => Expected::Latest(None),
            0..4 => match self.seen[key as usize] {
                None if !puts => Expected::Any,
                seen => Expected::Latest(seen),
            },
            _ => Expected::Any,
        }
    }

    fn publish(&mut self) {
        let number = self.near + self.rng.below(3);
        self.near = self.recorder.publish(number).err().unwrap_or(number);
    }

    fn prune(&mut self) {
        let back = if self.retains_all { self.rng.below(12) } else { self.rng.below(2) };
        let ahead = if self.rng.below(8) == 0 { 3 } else { 0 };
        self.recorder.prune(self.near.saturating_sub(back) + ahead);
    }

    fn drop_one(&mut self) {
        if !self.held.is_empty() {
            let at = self.rng.below(self.held.len() as u64) as usize;
            let held = self.held.swap_remove(at);
            self.recorder.drop(held);
        }
    }

    /// Passes a snapshot on to other threads, takes one that they have passed on, or begins one at
    /// its number.
    fn pass(&mut self, pattern: Pattern, key: u32) -> Outcome {
        let mine = self.one_held();
        let theirs = match &mine {
            Some(mine) if self.rng.below(2) == 0 => {
                let mut passed = self.shared.snapshots.lock();
                passed.push(Arc::clone(mine));
                if passed.len() > 2 { Some(passed.swap_remove(0)) } else { None }
            }
            Some(mine) if self.rng.below(3) == 0 => Some(Arc::new(self.recorder.again(mine))),
            Some(mine) if self.rng.below(3) == 0 => Some(self.begin(Some(mine.number()))?),
            _ => self.shared.snapshots.lock().pop(),
        };
        // It may have left the list of this thread meanwhile.
        if let Some(mine) = mine {
            self.recorder.drop(mine);
        }
        let Some(theirs) = theirs else { return Ok(()) };
        self.read(pattern, key, &theirs)?;
        self.recorder.drop(theirs);
        Ok(())
    }
}

/// Reads everything once more when all threads have ended, drops the snapshots, and prunes the map.
/// Returns the number of keys that have a value.
pub(super) fn at_rest(
    recorder: &mut Recorder<'_>,
    shared: &Shared,
    calls: &mut [Calls],
    drawn: bool,
) -> Result<usize, Failure> {
    let held = calls.iter_mut().flat_map(|calls| std::mem::take(&mut calls.held));
    let held: Vec<_> = held.chain(std::mem::take(&mut *shared.snapshots.lock())).collect();
    for (at, held) in held.iter().enumerate() {
        recorder.range(held, (0, KEYS - 1), at % 2 == 0)?;
    }
    (0..KEYS).for_each(|key| recorder.history(key));
    for held in held {
        recorder.drop(held);
    }
    if !drawn {
        let events = calls.iter().flat_map(|calls| &calls.events);
        let last = events.filter_map(|event| event.call.number()).max();
        _ = recorder.publish(last.unwrap_or(0));
    }
    let now = recorder.now();
    recorder.prune(now);
    let mut present = 0;
    for key in 0..KEYS {
        recorder.history(key);
        present += usize::from(recorder.get_latest(key).is_some());
    }
    Ok(present)
}
