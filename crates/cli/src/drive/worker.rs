//! The loops that drive a contender: one thread's share of a load and of a run. They are measured,
//! and compiled for each contender, so that every call is a direct one. Checks make their calls
//! through a table.

use super::check::{ScanCheck, show, wrong_value};
use super::run::{Failure, Left, RunSpec, Tally};
use super::scans::ScanBy;
use crate::contender::forms::Lent;
use crate::contender::{Contender, Session};
use crate::drive::keys::BenchKey;
use crate::interrupt;
use silvics::{Adaptation, AllocError, Guard, IndexKey, PoolStats};
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_workload::{BLOCK_OPS, Block, LoadPart, Op, Positions, Share, Stream};
use std::hint::black_box;

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
    /// Makes operations until the run ends.
    fn run(
        &self,
        space: &K::Space,
        stream: &mut Stream<'_>,
        spec: &RunSpec,
        end: End<'_>,
    ) -> Result<Tally, Failure>;
    /// A session whose calls are not measured.
    fn calls(&self) -> Box<dyn Calls<K> + '_>;
    /// See [`Contender::hold`].
    fn hold(&self) -> Option<Guard>;
    /// See [`Contender::loaded`].
    fn loaded(&mut self, threads: usize) -> Result<(), AllocError>;
    /// See [`Contender::bytes`].
    fn bytes(&self) -> Option<usize>;
    /// See [`Contender::pooled_bytes`].
    fn pooled_bytes(&self) -> usize;
    /// See [`Contender::pool_stats`].
    fn pool_stats(&self) -> Vec<PoolStats>;
    /// See [`Contender::adaptation`].
    fn adaptation(&self) -> Option<Adaptation>;
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
        end: End<'_>,
    ) -> Result<Tally, Failure> {
        run(&mut self.0.session(), space, stream, spec, end)
    }

    fn calls(&self) -> Box<dyn Calls<K> + '_> {
        Box::new(self.0.session())
    }

    fn hold(&self) -> Option<Guard> {
        self.0.hold()
    }

    fn loaded(&mut self, threads: usize) -> Result<(), AllocError> {
        self.0.loaded(threads)
    }

    fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }

    fn pooled_bytes(&self) -> usize {
        self.0.pooled_bytes()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.pool_stats()
    }

    fn adaptation(&self) -> Option<Adaptation> {
        self.0.adaptation()
    }
}

/// A [`Session`] behind a table of calls.
pub(super) trait Calls<K: BenchKey + ?Sized> {
    /// Whether one call of the library takes many keys of a verb.
    fn takes_many(&self, op: Op) -> bool;
    /// See [`Session::get`].
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64>;
    /// See [`Session::get_many`].
    fn get_many(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]);
    /// See [`Session::insert`].
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError>;
    /// See [`Session::insert_many`].
    fn insert_many(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError>;
    /// See [`Session::upsert`].
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError>;
    /// See [`Session::upsert_many`].
    fn upsert_many(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError>;
    /// See [`Session::remove`].
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError>;
    /// See [`Session::scan`].
    fn scan(&mut self, from: K::Ref<'_>, limit: usize, visit: Visit<'_, K>) -> usize;
    /// See [`Session::read`].
    fn read(&mut self, from: K::Ref<'_>, limit: usize, sum: &mut u64) -> usize;
    /// See [`Session::refresh`].
    fn refresh(&mut self);
}

type Visit<'a, K> = &'a mut dyn FnMut(<K as IndexKey>::Ref<'_>, u64);

impl<K: BenchKey + ?Sized, S: Session<Key = K>> Calls<K> for S {
    fn takes_many(&self, op: Op) -> bool {
        match op {
            Op::Lookup => S::GETS_MANY,
            Op::Insert | Op::Upsert => S::INSERTS_MANY,
            Op::Remove | Op::Scan => false,
        }
    }

    fn get(&mut self, key: K::Ref<'_>) -> Option<u64> {
        Session::get(self, key)
    }

    fn get_many(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) {
        Session::get_many(self, keys, values);
    }

    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Session::insert(self, key, value)
    }

    fn insert_many(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        Session::insert_many(self, entries, absent)
    }

    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Session::upsert(self, key, value)
    }

    fn upsert_many(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        Session::upsert_many(self, entries, absent)
    }

    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError> {
        Session::remove(self, key)
    }

    #[inline(never)]
    fn scan(&mut self, from: K::Ref<'_>, limit: usize, visit: Visit<'_, K>) -> usize {
        Session::scan(self, from, limit, &mut |key, value| {
            S::Lent::whole(key, |key| visit(key, value));
        })
    }

    fn read(&mut self, from: K::Ref<'_>, limit: usize, sum: &mut u64) -> usize {
        Session::read(self, from, limit, sum)
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
    let mut block = [0; BLOCK_OPS];
    let mut drawn = [(K::shorten(K::LEAST), 0); BLOCK_OPS];
    loop {
        let block = &mut block[..part.len().min(BLOCK_OPS)];
        if block.is_empty() {
            return (tally, Ok(()));
        }
        K::draw(space, block, || part.next().unwrap_or(0), &mut drawn);
        for (&(key, value), &position) in drawn.iter().zip(&*block) {
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
            return (tally, Ok(())); // another thread failed, and reports it
        }
    }
}

/// The end of a run: a flag, which a thread raises when the limit is reached.
#[derive(Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) left: Option<&'a Left>,
    /// The thread.
    pub(super) share: Share,
}

/// The number of operations after which a thread counts by how many keys the index has grown.
const COUNTED: u64 = 1024;

/// Makes operations until the run ends, block by block. A block is drawn first, with its keys
/// and values, then its operations are made by a loop for each kind, and then their answers are
/// checked. So little stands between two calls, and a processor overlaps more of them.
pub(super) fn run<K: BenchKey + ?Sized, S: Session<Key = K>>(
    session: &mut S,
    space: &K::Space,
    stream: &mut Stream<'_>,
    spec: &RunSpec,
    End { stop, left, share }: End<'_>,
) -> Result<Tally, Failure> {
    let (mut counted_at, mut counted) = (0, 0);
    let most = left.and_then(|left| left.share(share)).unwrap_or(u64::MAX);
    let mut block = Block::new(spec.batch);
    let mut drawn = vec![(K::shorten(K::LEAST), 0); block.len()];
    let mut driver = Driver {
        session,
        space,
        tally: Tally::default(),
        batch: spec.batch,
        scan_by: spec.scan_by,
        scan_length: spec.scan_length,
        scans: 0,
        read: 0,
        keys: Vec::with_capacity(spec.batch),
        values: vec![None; spec.batch],
        absent: vec![false; spec.batch],
    };
    loop {
        fill::<K>(stream, &mut block, space, &mut drawn);
        // The last block may be one of which some operations are left over.
        let made = usize::try_from(most - driver.tally.ops).unwrap_or(usize::MAX).min(block.len());
        for (op, range) in block.runs() {
            let range = range.start..range.end.min(made);
            if range.is_empty() {
                break;
            }
            let run = Run { entries: &drawn[range.clone()], positions: &block.positions()[range] };
            match op {
                Op::Lookup => driver.look_up(&run),
                Op::Insert => driver.put::<false>(&run),
                Op::Remove => driver.remove(&run),
                Op::Scan => driver.scan(&run),
                Op::Upsert => driver.put::<true>(&run),
            }?;
        }
        driver.tally.ops += made as u64;
        driver.session.refresh();
        if let Some(left) = left
            && driver.tally.ops - counted_at >= COUNTED
        {
            let now = driver.tally.growth();
            if left.grown(now - counted) {
                stop.store(true, Ordering::Relaxed);
            }
            (counted_at, counted) = (driver.tally.ops, now);
        }
        let is_done = driver.tally.ops == most;
        if is_done && left.is_some_and(Left::made) {
            stop.store(true, Ordering::Relaxed);
        }
        if is_done || stop.load(Ordering::Relaxed) {
            black_box(driver.read);
            return Ok(driver.tally);
        }
    }
}

/// Draws the next block, with its keys and values. Not in line: it is the same for all contenders.
#[inline(never)]
fn fill<'a, K: BenchKey + ?Sized>(
    stream: &mut Stream<'_>,
    block: &mut Block,
    space: &'a K::Space,
    drawn: &mut [(K::Ref<'a>, u64)],
) {
    stream.fill_with(block, &mut Entries::<K> { space, drawn });
}

/// The taker of positions that makes the keys and values there.
struct Entries<'d, 'a, K: BenchKey + ?Sized> {
    space: &'a K::Space,
    drawn: &'d mut [(K::Ref<'a>, u64)],
}

impl<K: BenchKey + ?Sized> Positions for Entries<'_, '_, K> {
    #[inline(always)]
    fn take(&mut self, at: usize, positions: &mut [u32], next: impl FnMut() -> u32) {
        let drawn = &mut self.drawn[at..at + positions.len()];
        K::draw(self.space, positions, next, drawn);
    }
}

/// Operations of one kind: their keys and values, and the positions of these.
struct Run<'r, 'a, K: BenchKey + ?Sized> {
    entries: &'r [(K::Ref<'a>, u64)],
    positions: &'r [u32],
}

struct Driver<'a, K: BenchKey + ?Sized, S> {
    session: &'a mut S,
    space: &'a K::Space,
    tally: Tally,
    batch: usize,
    scan_by: ScanBy,
    scan_length: usize,
    scans: u32,
    /// The sum of what scans read. It forces each entry to be read.
    read: u64,
    keys: Vec<K::Ref<'a>>,
    values: Vec<Option<u64>>,
    absent: Vec<bool>,
}

impl<'a, K: BenchKey + ?Sized, S: Session<Key = K>> Driver<'a, K, S> {
    #[inline(always)]
    fn look_up(&mut self, run: &Run<'_, 'a, K>) -> Result<(), Failure> {
        let session = &mut *self.session;
        let (mut hits, mut differs) = (0, 0);
        if self.batch == 1 {
            for &(key, value) in run.entries {
                hits += answer(session.get(key), value, &mut differs);
            }
        } else {
            for batch in run.entries.chunks(self.batch) {
                self.keys.clear();
                self.keys.extend(batch.iter().map(|&(key, _)| key));
                session.get_many(&self.keys, &mut self.values[..batch.len()]);
                for (&(_, value), &found) in batch.iter().zip(&self.values) {
                    hits += answer(found, value, &mut differs);
                }
            }
        }
        self.tally.lookups += run.entries.len() as u64;
        self.tally.hits += hits;
        if differs == 0 {
            return Ok(());
        }
        Err(self.wrong_lookup(run))
    }

    /// The failure of a run in which a lookup had a wrong answer, found by asking again.
    #[cold]
    fn wrong_lookup(&mut self, run: &Run<'_, 'a, K>) -> Failure {
        for &(key, value) in run.entries {
            if let Some(found) = self.session.get(key)
                && found != value
            {
                return wrong_value::<K>(key, found);
            }
        }
        let what = "a lookup returned a wrong value, but the next lookup of each key did not";
        Failure::Wrong(what.into())
    }

    /// Upserts the keys of a run, or inserts them.
    #[inline(never)]
    fn put<const UPSERTS: bool>(&mut self, run: &Run<'_, 'a, K>) -> Result<(), Failure> {
        if self.batch == 1 {
            for (&(key, value), &position) in run.entries.iter().zip(run.positions) {
                let put = if UPSERTS {
                    self.session.upsert(key, value)
                } else {
                    self.session.insert(key, value)
                };
                if put.map_err(out_of_memory)? {
                    self.inserted(position);
                }
            }
            return Ok(());
        }
        let batches = run.entries.chunks(self.batch);
        for (batch, positions) in batches.zip(run.positions.chunks(self.batch)) {
            let absent = &mut self.absent[..batch.len()];
            let put = if UPSERTS {
                self.session.upsert_many(batch, absent)
            } else {
                self.session.insert_many(batch, absent)
            };
            put.map_err(out_of_memory)?;
            for (at, &position) in positions.iter().enumerate() {
                if self.absent[at] {
                    self.inserted(position);
                }
            }
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

    #[inline(never)]
    fn remove(&mut self, run: &Run<'_, 'a, K>) -> Result<(), Failure> {
        for (&(key, _), &position) in run.entries.iter().zip(run.positions) {
            if self.session.remove(key).map_err(out_of_memory)? {
                let weight = K::weight(self.space, position);
                self.tally.weight = self.tally.weight.wrapping_sub(weight);
                self.tally.removed += 1;
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn scan(&mut self, run: &Run<'_, 'a, K>) -> Result<(), Failure> {
        let limit = match self.scan_by {
            ScanBy::Range => self.scan_length,
            ScanBy::Whole => K::len(self.space), // no index has more keys
            ScanBy::Next => return self.scan_by_next(run),
        };
        for &(from, _) in run.entries {
            let from = if self.scan_by == ScanBy::Whole { K::shorten(K::LEAST) } else { from };
            if self.checks_scan() {
                let mut check = ScanCheck::<K>::new(K::shorten(from));
                let visit = &mut |key: K::Ref<'_>, value| check.visit(key, value);
                let count = Calls::scan(self.session, from, limit, visit);
                self.tally.scanned += check.finish(count, limit)?;
                continue;
            }
            let count = self.session.read(from, limit, &mut self.read);
            self.tally.scanned += count as u64;
        }
        Ok(())
    }

    /// Scans entry by entry. Each call looks for the least key above the one before.
    #[inline(never)]
    fn scan_by_next(&mut self, run: &Run<'_, 'a, K>) -> Result<(), Failure> {
        for &(from, _) in run.entries {
            let checks = self.checks_scan();
            let mut check = ScanCheck::<K>::new(K::shorten(from));
            let (mut at, mut count) = (K::to_owned(from), 0);
            while count < self.scan_length && K::step(&mut at) {
                let mut next = None;
                let found = self.session.scan(K::borrow(&at), 1, &mut |key, value| {
                    S::Lent::whole(key, |key| next = Some((K::to_owned(key), value)));
                });
                let Some((key, value)) = next.filter(|_| found == 1) else { break };
                if checks {
                    check.visit(K::borrow(&key), value);
                }
                self.read = self.read.wrapping_add(value);
                at = key;
                count += 1;
            }
            if checks {
                check.finish(count, self.scan_length)?;
            }
            self.tally.scanned += count as u64;
        }
        Ok(())
    }

    /// Whether to check the next scan.
    fn checks_scan(&mut self) -> bool {
        self.scans = self.scans.wrapping_add(1);
        self.scans.is_multiple_of(16)
    }
}

/// Adds the bits in which the answer of a lookup differs from the right value, and returns 1 if the
/// key was found. It has no branch on whether it was: processors predict that branch wrongly half
/// of the time, and each wrong prediction discards the lookups that have begun.
#[inline(always)]
fn answer(found: Option<u64>, value: u64, differs: &mut u64) -> u64 {
    *differs |= found.unwrap_or(value) ^ value;
    u64::from(found.is_some())
}

fn out_of_memory(error: silvics::AllocError) -> Failure {
    Failure::Alloc { error, done: 0 }
}
