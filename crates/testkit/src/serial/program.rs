//! Random programs of transactions.
//!
//! A history consists of rounds. In each round the threads meet, so that they start together, and
//! use a few neighbouring keys. All programs follow from the plan's seed and the history's number.
//! Each program has one of several patterns, which tempt a store into one anomaly each:
//!
//! | pattern | tempts to |
//! |---|---|
//! | update one key | lost updates |
//! | read all keys of a round, twice | read skew |
//! | read two keys, write one | write skew |
//! | scan a range, insert or delete in it | phantoms |
//! | write several keys | reads between the writes |
//! | delete, insert, or move a value's place | indexes out of step, lost insertions |
//! | find values seen earlier | indexes out of step |
//! | scan groups of values, before and after a write | indexes out of step, rows that a scan missed |
//! | anything | all of these together |
//!
//! Some attempts abort voluntarily after writes. Now and then a thread pauses between two
//! operations, so that transactions overlap on two cores.

use super::face::Refused;
use super::history::{Direction, GROUPS, Range};
use super::record::Recorded;
use crate::rng::{Rng, mix};

/// The most keys of a round.
const HOT: u64 = 8;
/// The number of values that a thread remembers.
const REMEMBERED: usize = 16;

/// The capabilities of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verbs {
    pub(super) scans: bool,
    pub(super) finds: bool,
    pub(super) groups: bool,
}

/// The keys of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    first: u64,
    keys: u64,
}

/// The choices of one thread of a history.
pub(super) struct Script {
    rng: Rng,
    shared: Rng,
    verbs: Verbs,
    keys: u64,
    thread: usize,
    /// The number of the last value that this thread wrote.
    pub(super) written: u64,
    remembered: [u64; REMEMBERED],
}

/// The number of threads that can write different values.
pub(super) const THREADS: u64 = 1 << 8;

impl Script {
    /// The choices of a thread that has written `written` values before on the same store.
    pub(super) fn new(seed: u64, number: u64, thread: usize, keys: u64, verbs: Verbs) -> Self {
        let seed = seed ^ mix(number);
        Self {
            rng: Rng::new(seed, thread + 1),
            shared: Rng::new(seed, 0),
            verbs,
            keys,
            thread,
            written: 0,
            remembered: [0; REMEMBERED],
        }
    }

    /// Draws the keys of the next round. All threads draw the same.
    pub(super) fn round(&mut self) -> Round {
        const SIZES: [u64; 6] = [1, 2, 3, 4, 6, HOT];
        let keys = SIZES[self.shared.below(SIZES.len() as u64) as usize].min(self.keys);
        Round { first: self.shared.below(self.keys - keys + 1), keys }
    }

    /// Returns a value that is written nowhere else.
    fn fresh(&mut self) -> u64 {
        self.written += 1;
        let value = self.written * THREADS + self.thread as u64;
        self.remember(value);
        value
    }

    fn remember(&mut self, value: u64) {
        let at = self.rng.below(REMEMBERED as u64) as usize;
        self.remembered[at] = value;
    }

    fn key(&mut self, round: Round) -> u64 {
        round.first + self.rng.below(round.keys)
    }

    /// Pauses now and then.
    fn pause(&mut self) {
        match self.rng.below(64) {
            0 => std::thread::yield_now(),
            1..4 => (0..self.rng.below(400)).for_each(|_| silvics_sync::hint::spin_loop()),
            _ => {}
        }
    }

    /// Runs the operations of one random transaction.
    pub(super) fn run(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        match self.rng.below(16) {
            0..3 => self.update(round, on)?,
            3 => self.read_all(round, on)?,
            4..6 => self.skew(round, on)?,
            6..8 if self.verbs.scans => self.scan_and_write(round, on)?,
            8..10 => self.write_several(round, on)?,
            10..12 => self.come_and_go(round, on)?,
            12 if self.verbs.finds => self.look_around(round, on)?,
            13 if self.verbs.groups => self.scan_groups(round, on)?,
            _ => {
                for _ in 0..=self.rng.below(7) {
                    self.anything(round, on)?;
                }
            }
        }
        if self.rng.below(16) == 0 {
            self.pause();
            return Err(Refused::Voluntary);
        }
        Ok(())
    }

    fn read(&mut self, key: u64, on: &mut Recorded<'_>) -> Result<Option<u64>, Refused> {
        self.pause();
        let value = on.read(key)?;
        if let Some(value) = value {
            self.remember(value);
        }
        Ok(value)
    }

    /// Gives a key a new state. It need not be read before it is put.
    fn change(&mut self, key: u64, put: bool, on: &mut Recorded<'_>) -> Result<(), Refused> {
        if !put {
            self.read(key, on)?;
            self.pause();
            return on.delete(key).map(|_| ());
        }
        match self.rng.below(4) {
            0 => {
                let value = self.fresh();
                if !on.insert(key, value)? {
                    self.pause();
                    self.read(key, on)?;
                    on.replace(key, value)?;
                }
                Ok(())
            }
            1 => {
                let value = self.fresh();
                if !on.replace(key, value)? {
                    self.pause();
                    on.insert(key, value)?;
                }
                Ok(())
            }
            _ => {
                let present = self.read(key, on)?.is_some();
                self.pause();
                self.put(key, present, on)
            }
        }
    }

    /// Gives a key a new value, when it is known whether the key is present.
    fn put(&mut self, key: u64, present: bool, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let value = self.fresh();
        // If the answer contradicts an earlier one, the record shows it.
        let done = if present { on.replace(key, value) } else { on.insert(key, value) };
        done.map(|_| ())
    }

    fn puts(&mut self) -> bool {
        self.rng.percent(65)
    }

    fn update(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let key = self.key(round);
        let put = self.rng.percent(90);
        self.change(key, put, on)
    }

    /// Reads keys one by one, and then all together.
    fn read_all(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        for key in round.first..round.first + round.keys {
            self.read(key, on)?;
        }
        self.pause();
        if self.verbs.scans && self.rng.below(2) == 0 {
            let range = self.range(round);
            return on.scan(range).map(|_| ());
        }
        let keys: Vec<u64> = (round.first..round.first + round.keys).rev().collect();
        on.read_many(&keys).map(|_| ())
    }

    fn skew(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let (one, other) = (self.key(round), self.key(round));
        let present = self.read(one, on)?.is_some();
        self.read(other, on)?;
        self.pause();
        if self.puts() { self.put(one, present, on) } else { on.delete(one).map(|_| ()) }
    }

    fn range(&mut self, round: Round) -> Range {
        let (a, b) = match self.rng.below(4) {
            0 => (0, u64::MAX),
            1 => (round.first, round.first + round.keys - 1),
            _ => (self.key(round), self.key(round)),
        };
        self.varied(Range::ascending(a.min(b), a.max(b)))
    }

    fn groups(&mut self) -> Range {
        let (a, b) = (self.rng.below(GROUPS), self.rng.below(GROUPS));
        self.varied(Range::ascending(a.min(b), a.max(b)).by_group())
    }

    /// Gives a range a direction, and now and then a limit.
    fn varied(&mut self, range: Range) -> Range {
        let limit = (self.rng.below(3) == 0).then(|| 1 + self.rng.below(4) as usize);
        let descending = self.rng.below(2) == 0;
        let direction = if descending { Direction::Descending } else { Direction::Ascending };
        Range { limit, direction, ..range }
    }

    fn scan_and_write(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let range = self.range(round);
        self.pause();
        let found = on.scan(range)?.len();
        if self.rng.below(4) == 0 {
            let range = self.range(round);
            on.scan(range)?;
        }
        let key = self.key(round);
        let put = if self.rng.below(2) == 0 { found < 2 } else { self.puts() };
        self.change(key, put, on)
    }

    fn write_several(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        for _ in 0..2 + self.rng.below(3) {
            let key = self.key(round);
            let put = self.rng.percent(85);
            self.change(key, put, on)?;
        }
        Ok(())
    }

    /// Deletes one key and inserts another one, or one key several times.
    fn come_and_go(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let key = self.key(round);
        let was = self.read(key, on)?;
        self.pause();
        if was.is_none() {
            self.put(key, false, on)?;
        } else {
            on.delete(key)?;
        }
        let other = if self.rng.below(3) == 0 { key } else { self.key(round) };
        self.change(other, was.is_some(), on)
    }

    fn look_around(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let key = self.key(round);
        if let Some(value) = self.read(key, on)? {
            self.pause();
            on.find(value)?;
        }
        for _ in 0..self.rng.below(3) {
            self.find(on)?;
        }
        self.read(key, on).map(|_| ())
    }

    /// Scans groups, once or before and after a write.
    fn scan_groups(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let groups = self.groups();
        self.pause();
        on.scan(groups)?;
        if self.rng.below(2) == 0 {
            let (key, put) = (self.key(round), self.puts());
            self.change(key, put, on)?;
        }
        if self.rng.below(2) == 0 {
            on.scan(groups)?;
        }
        Ok(())
    }

    /// Looks for a value, and then reads the key found.
    fn find(&mut self, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let value = self.remembered[self.rng.below(REMEMBERED as u64) as usize];
        self.pause();
        match on.find(value)? {
            Some(key) if self.rng.below(2) == 0 => self.read(key, on).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn anything(&mut self, round: Round, on: &mut Recorded<'_>) -> Result<(), Refused> {
        let key = self.key(round);
        match self.rng.below(10) {
            0..3 => self.read(key, on).map(|_| ()),
            3 if self.verbs.scans => {
                let range = self.range(round);
                self.pause();
                on.scan(range).map(|_| ())
            }
            4 if self.verbs.finds => self.find(on),
            5 => {
                let keys = [key, self.key(round), self.key(round)];
                on.read_many(&keys).map(|_| ())
            }
            6 if self.verbs.groups => {
                let groups = self.groups();
                self.pause();
                on.scan(groups).map(|_| ())
            }
            _ => {
                let put = self.puts();
                self.change(key, put, on)
            }
        }
    }
}
