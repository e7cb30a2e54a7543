//! The loops that drive a contender: one thread's share of a load, a run and a check. The first two
//! are measured, and compiled for each contender so that every call is a direct one; a check makes
//! its calls through a table.

use super::run::{Failure, RunSpec, Tally};
use crate::contender::{Contender, Session};
use crate::drive::keys::BenchKey;
use crate::interrupt;
use silvics::{AllocError, Guard, IndexKey, PoolStats};
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_workload::{BLOCK_OPS, Block, LoadPart, Op, Share, Stream};
use std::hint::{black_box, select_unpredictable};

/// A contender with the loops compiled for it.
pub(super) struct Driven<C>(pub(super) C);

/// One thread's share of what is measured, and the calls that are not.
pub(super) trait Loops<K: BenchKey + ?Sized>: Send + Sync {
    /// Inserts the keys of a part. The tally counts the inserts that succeeded, also if a later one
    /// fails.
    fn load(
        &self,
        space: &K::Space,
        part: LoadPart,
        stop: &AtomicBool,
    ) -> (Tally, Result<(), Failure>);
    /// Makes operations until `stop` is raised.
    fn run(
        &self,
        space: &K::Space,
        stream: &mut Stream<'_>,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<Tally, Failure>;
    /// A session whose calls are not measured.
    fn calls(&self) -> Box<dyn Calls<K> + '_>;
    /// See [`Contender::hold`].
    fn hold(&self) -> Option<Guard>;
    /// See [`Contender::loaded`].
    fn loaded(&mut self);
    /// See [`Contender::bytes`].
    fn bytes(&self) -> Option<usize>;
    /// See [`Contender::pool_stats`].
    fn pool_stats(&self) -> Vec<PoolStats>;
}

impl<K: BenchKey + ?Sized, C: Contender<Key = K>> Loops<K> for Driven<C> {
    fn load(
        &self,
        space: &K::Space,
        part: LoadPart,
        stop: &AtomicBool,
    ) -> (Tally, Result<(), Failure>) {
        load(&mut self.0.session(), space, part, stop)
    }

    fn run(
        &self,
        space: &K::Space,
        stream: &mut Stream<'_>,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<Tally, Failure> {
        run(&mut self.0.session(), space, stream, spec, stop)
    }

    fn calls(&self) -> Box<dyn Calls<K> + '_> {
        Box::new(self.0.session())
    }

    fn hold(&self) -> Option<Guard> {
        self.0.hold()
    }

    fn loaded(&mut self) {
        self.0.loaded();
    }

    fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.pool_stats()
    }
}

/// A [`Session`] behind a table of calls.
pub(super) trait Calls<K: BenchKey + ?Sized> {
    /// See [`Session::get`].
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64>;
    /// See [`Session::insert`].
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError>;
    /// See [`Session::remove`].
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError>;
    /// See [`Session::scan`].
    fn scan(&mut self, from: K::Ref<'_>, limit: usize, visit: Visit<'_, K>) -> usize;
    /// See [`Session::refresh`].
    fn refresh(&mut self);
}

type Visit<'a, K> = &'a mut dyn FnMut(<K as IndexKey>::Ref<'_>, u64);

impl<K: BenchKey + ?Sized, S: Session<Key = K>> Calls<K> for S {
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64> {
        Session::get(self, key)
    }

    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Session::insert(self, key, value)
    }

    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError> {
        Session::remove(self, key)
    }

    #[inline(never)]
    fn scan(&mut self, from: K::Ref<'_>, limit: usize, mut visit: Visit<'_, K>) -> usize {
        Session::scan(self, from, limit, &mut visit)
    }

    fn refresh(&mut self) {
        Session::refresh(self);
    }
}

/// Inserts the keys of a part.
fn load<K: BenchKey + ?Sized, S: Session<Key = K>>(
    session: &mut S,
    space: &K::Space,
    mut part: LoadPart,
    stop: &AtomicBool,
) -> (Tally, Result<(), Failure>) {
    let mut tally = Tally::default();
    let mut block = Vec::with_capacity(BLOCK_OPS);
    loop {
        block.clear();
        block.extend(part.by_ref().take(BLOCK_OPS));
        if block.is_empty() {
            return (tally, Ok(()));
        }
        for &position in &block {
            K::prefetch(space, position);
        }
        for &position in &block {
            let (key, value) = K::entry(space, position);
            match session.insert(key, value) {
                Ok(true) => {
                    tally.inserted += 1;
                    tally.weight = tally.weight.wrapping_add(K::weight(space, position));
                }
                Ok(false) => {
                    let what = format!("it took {} for present before it was inserted", show(&key));
                    return (tally, Err(Failure::Wrong(what)));
                }
                Err(error) => {
                    let done = tally.inserted as usize;
                    return (tally, Err(Failure::Alloc { error, done }));
                }
            }
        }
        tally.ops += block.len() as u64;
        session.refresh();
        if interrupt::pending() {
            return (tally, Err(Failure::Interrupted));
        }
        if stop.load(Ordering::Relaxed) {
            return (tally, Ok(())); // another thread failed, and tells
        }
    }
}

/// Makes operations until `stop` is raised.
fn run<K: BenchKey + ?Sized, S: Session<Key = K>>(
    session: &mut S,
    space: &K::Space,
    stream: &mut Stream<'_>,
    spec: &RunSpec,
    stop: &AtomicBool,
) -> Result<Tally, Failure> {
    let mut block = Block::new(spec.batch);
    let mut drawn = Vec::with_capacity(BLOCK_OPS);
    let mut driver = Driver {
        session,
        space,
        tally: Tally::default(),
        scan_length: spec.scan_length,
        scans: 0,
        read: 0,
        wrong: (0, 0),
        differs: 0,
        keys: Vec::with_capacity(spec.batch),
        values: vec![None; spec.batch],
        entries: Vec::with_capacity(spec.batch),
        absent: vec![false; spec.batch],
    };
    loop {
        stream.fill(&mut block);
        for &position in block.positions() {
            K::prefetch(space, position);
        }
        let made = if spec.batch == 1 {
            // The entries are made in advance. With fewer instructions between calls, a processor
            // overlaps more of them.
            drawn.clear();
            drawn.extend(block.positions().iter().map(|&position| K::entry(space, position)));
            let mut ops = block.iter().zip(&drawn);
            ops.try_for_each(|((op, position), &entry)| driver.step(op, position, entry))
        } else {
            block.batches().try_for_each(|(op, positions)| driver.step_batch(op, positions))
        };
        driver.checked()?; // before a shortage, which a wrong answer may be behind
        made?;
        driver.tally.ops += block.len() as u64;
        driver.session.refresh();
        if stop.load(Ordering::Relaxed) {
            black_box(driver.read);
            return Ok(driver.tally);
        }
    }
}

struct Driver<'a, K: BenchKey + ?Sized, S> {
    session: &'a mut S,
    space: &'a K::Space,
    tally: Tally,
    scan_length: usize,
    scans: u32,
    /// The sum of what scans read. It forces each entry to be read.
    read: u64,
    /// The last wrong answer, and the bits in which any answer was wrong.
    wrong: (u32, u64),
    differs: u64,
    keys: Vec<K::Ref<'a>>,
    values: Vec<Option<u64>>,
    entries: Vec<(K::Ref<'a>, u64)>,
    absent: Vec<bool>,
}

impl<'a, K: BenchKey + ?Sized, S: Session<Key = K>> Driver<'a, K, S> {
    #[inline(always)]
    fn step(
        &mut self,
        op: Op,
        position: u32,
        (key, value): (K::Ref<'a>, u64),
    ) -> Result<(), Failure> {
        match op {
            Op::Lookup => {
                let found = self.session.get(key);
                self.look(found, position, value);
                Ok(())
            }
            _ => self.step_other(op, position),
        }
    }

    /// Not in line: the loops over single operations and over batches share it.
    #[inline(never)]
    fn step_other(&mut self, op: Op, position: u32) -> Result<(), Failure> {
        let key = K::key(self.space, position);
        match op {
            Op::Lookup => unreachable!("lookups are in line"),
            Op::Insert => {
                let value = K::value(self.space, position);
                if self.session.insert(key, value).map_err(out_of_memory)? {
                    self.inserted(position);
                }
            }
            Op::Remove => {
                if self.session.remove(key).map_err(out_of_memory)? {
                    let weight = K::weight(self.space, position);
                    self.tally.weight = self.tally.weight.wrapping_sub(weight);
                    self.tally.removed += 1;
                }
            }
            Op::Scan => self.scan(key)?,
        }
        Ok(())
    }

    /// Counts a key that was absent and is not now.
    #[inline(always)]
    fn inserted(&mut self, position: u32) {
        let weight = K::weight(self.space, position);
        self.tally.weight = self.tally.weight.wrapping_add(weight);
        self.tally.inserted += 1;
    }

    /// Counts a lookup's answer, and remembers it if it is wrong. It has no branch on whether the
    /// key was found: processors predict that branch wrongly half of the time, and each wrong
    /// prediction discards the lookups that have begun.
    #[inline(always)]
    fn look(&mut self, found: Option<u64>, position: u32, expected: u64) {
        let value = found.unwrap_or(expected);
        self.tally.lookups += 1;
        self.tally.hits += u64::from(found.is_some());
        self.wrong = select_unpredictable(value != expected, (position, value), self.wrong);
        self.differs |= value ^ expected;
    }

    /// Whether all answers were right.
    #[inline(always)]
    fn checked(&self) -> Result<(), Failure> {
        if self.differs == 0 {
            return Ok(());
        }
        let (position, value) = self.wrong;
        Err(wrong_value::<K>(K::key(self.space, position), value))
    }

    #[inline]
    fn step_batch(&mut self, op: Op, positions: &[u32]) -> Result<(), Failure> {
        match op {
            Op::Lookup => {
                self.look_many(positions);
                Ok(())
            }
            Op::Insert => self.insert_many(positions),
            _ => positions.iter().try_for_each(|&position| self.step_other(op, position)),
        }
    }

    #[inline]
    fn look_many(&mut self, positions: &[u32]) {
        self.keys.clear();
        self.keys.extend(positions.iter().map(|&position| K::key(self.space, position)));
        self.session.get_many(&self.keys, &mut self.values);
        for (at, &position) in positions.iter().enumerate() {
            self.look(self.values[at], position, K::value(self.space, position));
        }
    }

    #[inline]
    fn insert_many(&mut self, positions: &[u32]) -> Result<(), Failure> {
        self.entries.clear();
        let entry = |&position| K::entry(self.space, position);
        self.entries.extend(positions.iter().map(entry));
        self.session.insert_many(&self.entries, &mut self.absent).map_err(out_of_memory)?;
        for (at, &position) in positions.iter().enumerate() {
            if self.absent[at] {
                self.inserted(position);
            }
        }
        Ok(())
    }

    fn scan(&mut self, from: K::Ref<'_>) -> Result<(), Failure> {
        self.scans = self.scans.wrapping_add(1);
        let limit = self.scan_length;
        if self.scans.is_multiple_of(16) {
            let mut check = ScanCheck::<K>::new(from);
            let visit = &mut |key: K::Ref<'_>, value| check.visit(key, value);
            let count = Calls::scan(self.session, from, limit, visit);
            self.tally.scanned += check.finish(count, limit)?;
            return Ok(());
        }
        let read = &mut self.read;
        let count = self.session.scan(from, limit, &mut |key, value| {
            *read = read.wrapping_add(K::glance(key) ^ value);
        });
        self.tally.scanned += count as u64;
        Ok(())
    }
}

fn out_of_memory(error: silvics::AllocError) -> Failure {
    Failure::Alloc { error, done: 0 }
}

#[cold]
fn wrong_value<K: BenchKey + ?Sized>(key: K::Ref<'_>, value: u64) -> Failure {
    Failure::Wrong(format!(
        "{} has the value {:#x} instead of {:#x}",
        show(&key),
        value,
        K::value_of(key)
    ))
}

/// A key in a message, cut short.
fn show(key: &impl std::fmt::Debug) -> String {
    let text = format!("key {key:?}");
    if text.len() <= 100 {
        return text;
    }
    let cut = text.char_indices().map(|(at, _)| at).take_while(|&at| at <= 100);
    format!("{}…", &text[..cut.last().unwrap_or(0)])
}

/// Checks the entries of one scan.
struct ScanCheck<K: BenchKey + ?Sized> {
    from: K::Owned,
    last: Option<K::Owned>,
    seen: usize,
    wrong: Option<String>,
}

impl<K: BenchKey + ?Sized> ScanCheck<K> {
    fn new(from: K::Ref<'_>) -> Self {
        Self { from: K::to_owned(from), last: None, seen: 0, wrong: None }
    }

    fn visit(&mut self, key: K::Ref<'_>, value: u64) {
        self.seen += 1;
        if self.wrong.is_some() {
            return;
        }
        let owned = K::to_owned(key);
        if owned < self.from {
            self.wrong = Some(format!("a scan from {:?} gave {}", self.from, show(&key)));
        } else if self.last.as_ref().is_some_and(|last| owned <= *last) {
            self.wrong = Some(format!("a scan gave {} out of order", show(&key)));
        } else if value != K::value_of(key)
            && let Failure::Wrong(what) = wrong_value::<K>(key, value)
        {
            self.wrong = Some(format!("in a scan {what}"));
        }
        self.last = Some(owned);
    }

    /// How many entries the scan gave, if all were right.
    fn finish(self, count: usize, limit: usize) -> Result<u64, Failure> {
        if let Some(what) = self.wrong {
            return Err(Failure::Wrong(what));
        }
        if count != self.seen || count > limit {
            let seen = self.seen;
            return Err(Failure::Wrong(format!(
                "a scan of {limit} entries gave {seen} and counted {count}"
            )));
        }
        Ok(count as u64)
    }
}

/// Looks up this share of the key space; what is found counts as inserted. In ascending order,
/// since neighbours are found faster. Also gives the least key found.
pub(super) fn look_up_all<K: BenchKey + ?Sized>(
    session: &mut dyn Calls<K>,
    space: &K::Space,
    share: Share,
) -> Result<(Tally, Option<K::Owned>), Failure> {
    /// Positions sorted at a time.
    const CHUNK: usize = 1 << 18;
    let mut tally = Tally::default();
    let mut least: Option<K::Owned> = None;
    let mut part = share.part(K::len(space) as u64);
    let mut chunk: Vec<u32> = Vec::new();
    loop {
        chunk.clear();
        chunk.extend(part.by_ref().take(CHUNK).map(|position| position as u32));
        if chunk.is_empty() {
            return Ok((tally, least));
        }
        chunk.sort_unstable_by(|&a, &b| K::key(space, a).cmp(&K::key(space, b)));
        for block in chunk.chunks(BLOCK_OPS) {
            for &position in block {
                let key = K::key(space, position);
                if let Some(value) = session.get(key) {
                    if value != K::value(space, position) {
                        return Err(wrong_value::<K>(key, value));
                    }
                    tally.inserted += 1;
                    if least.as_ref().is_none_or(|least| K::shorten(K::borrow(least)) > key) {
                        least = Some(K::to_owned(key));
                    }
                    tally.weight = tally.weight.wrapping_add(K::weight(space, position));
                }
            }
            session.refresh();
        }
        if interrupt::pending() {
            return Err(Failure::Interrupted);
        }
    }
}

/// Scans everything from a key on; what is seen counts as inserted.
pub(super) fn scan_all<K: BenchKey + ?Sized>(
    session: &mut dyn Calls<K>,
    mut from: K::Owned,
) -> Result<Tally, Failure> {
    /// Entries read at a time; each part but the first starts with the last of the one before.
    const PART: usize = 4096;
    let mut tally = Tally::default();
    let mut first_part = true;
    loop {
        let mut check = ScanCheck::<K>::new(K::borrow(&from));
        let count = session.scan(K::borrow(&from), PART, &mut |key, value| {
            check.visit(key, value);
            let again = check.seen == 1 && K::shorten(K::borrow(&from)) == K::shorten(key);
            if first_part || !again {
                tally.weight = tally.weight.wrapping_add(K::weight_of(key));
                tally.inserted += 1;
            }
        });
        let last = check.last.take();
        check.finish(count, PART)?;
        session.refresh();
        match last {
            Some(last) if count == PART => from = last,
            _ => return Ok(tally),
        }
        if interrupt::pending() {
            return Err(Failure::Interrupted);
        }
        first_part = false;
    }
}
