//! Sessions whose calls are timed one by one, and the times.
//!
//! # Method
//! A run with times is the same loop as any other run ([`worker`](super::worker)), over a session
//! that reads a clock before and after each call. So keys, draws and checks are those of the runs
//! that measure throughput, and the loop of these contains no code for times. The calls go through
//! a table, because a second loop for each contender would double the code of the command. Entries
//! that a scan reads do not go through it.
//!
//! # Clock
//! The clock is [`Instant`]. Its reading waits for the loads that came before it. The crates
//! `quanta` and `minstant` read a processor's counter without a fence. That costs less and does not
//! wait: in a trial with reads that miss all caches, it reported a small part of their time. With
//! fences it costs nearly as much as `Instant`, which all systems have.
//!
//! # What a time contains
//! From the first reading to the second: the call through the table, the call itself, and the cost
//! of one reading. [`Nothing`](super::nothing::Nothing) under the same loop shows the parts that
//! are not the index's. They differ by verb and configuration, such as the threads. Guards are
//! renewed between two calls, and this is not timed.
//!
//! A batch is one time. A library without such a call makes one after the other in it. A scan by
//! [`ScanBy::Next`] has a time for each entry, which contains the copy of its key for the next
//! call.

use super::run::{Failure, RunSpec, Tally};
use super::scans::ScanBy;
use super::worker::{self, Calls, End};
use crate::contender::Session;
use crate::drive::keys::BenchKey;
use hdrhistogram::Histogram;
use silvics::AllocError;
use silvics_workload::{Mix, Op, Stream};
use std::time::Instant;

/// The longest time in nanoseconds: a minute. Longer ones count as this.
const LONGEST: u64 = 60_000_000_000;

/// The times of calls in nanoseconds, by verb.
#[derive(Clone, Debug, Default)]
pub struct Times {
    verbs: [Option<Histogram<u64>>; Op::ALL.len()],
    /// Whether one call of the library takes many keys, by verb.
    takes_many: [bool; Op::ALL.len()],
}

impl Times {
    /// No times yet, with room for those of the verbs of a mix.
    fn of_mix(mix: Mix, takes_many: impl Fn(Op) -> bool) -> Self {
        let verbs = Op::ALL.map(|op| {
            let bounds = (1, LONGEST, 3);
            (mix.share(op) > 0).then(|| {
                Histogram::new_with_bounds(bounds.0, bounds.1, bounds.2)
                    .expect("these bounds are valid")
            })
        });
        Self { verbs, takes_many: Op::ALL.map(takes_many) }
    }

    /// Adds the times of another run of the same contender.
    pub fn add(&mut self, other: Self) {
        self.takes_many = other.takes_many;
        for (mine, other) in self.verbs.iter_mut().zip(other.verbs) {
            match (mine, other) {
                (Some(mine), Some(other)) => mine.add(other).expect("the bounds are the same"),
                (mine @ None, other) => *mine = other,
                (Some(_), None) => {}
            }
        }
    }

    /// The verbs with their times, without verbs that made no call.
    pub fn by_verb(&self) -> impl Iterator<Item = (Op, &Histogram<u64>)> {
        let verbs = Op::ALL.into_iter().zip(&self.verbs);
        verbs
            .filter_map(|(op, times)| Some((op, times.as_ref().filter(|times| !times.is_empty())?)))
    }

    /// The median of a verb's times. `None` if it made no call.
    pub fn median(&self, op: Op) -> Option<u64> {
        let times = self.verbs[op as usize].as_ref().filter(|times| !times.is_empty())?;
        Some(times.value_at_quantile(0.5))
    }

    /// Whether one call of the library takes many keys of a verb. If not, a time of many keys is
    /// that of one call after the other.
    pub fn takes_many(&self, op: Op) -> bool {
        self.takes_many[op as usize]
    }

    #[inline]
    fn record(&mut self, op: Op, nanos: u64) {
        if let Some(times) = &mut self.verbs[op as usize] {
            times.saturating_record(nanos);
        }
    }
}

/// Makes operations until the run ends, and returns their times also.
pub(super) fn run<'a, K: BenchKey + ?Sized>(
    calls: Box<dyn Calls<K> + 'a>,
    space: &K::Space,
    stream: &mut Stream<'_>,
    spec: &RunSpec,
    end: End<'_>,
) -> Result<(Tally, Times), Failure> {
    let times = Times::of_mix(spec.mix, |op| calls.takes_many(op));
    let mut session = Timed { calls, times, by_next: spec.scan_by == ScanBy::Next };
    let tally = worker::run(&mut session, space, stream, spec, end)?;
    Ok((tally, session.times))
}

/// A session whose calls are timed.
struct Timed<'a, K: BenchKey + ?Sized> {
    calls: Box<dyn Calls<K> + 'a>,
    times: Times,
    /// Whether scans go on by calls that read one entry.
    by_next: bool,
}

impl<K: BenchKey + ?Sized> Timed<'_, K> {
    #[inline(always)]
    fn timed<T>(&mut self, op: Op, call: impl FnOnce(&mut dyn Calls<K>) -> T) -> T {
        let start = Instant::now();
        let result = call(&mut *self.calls);
        let nanos = start.elapsed().as_nanos() as u64;
        self.times.record(op, nanos);
        result
    }
}

impl<K: BenchKey + ?Sized> Session for Timed<'_, K> {
    type Key = K;
    type Lent = K;

    fn get(&mut self, key: K::Ref<'_>) -> Option<u64> {
        self.timed(Op::Lookup, |calls| calls.get(key))
    }

    fn get_many(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) {
        self.timed(Op::Lookup, |calls| calls.get_many(keys, values));
    }

    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        self.timed(Op::Insert, |calls| calls.insert(key, value))
    }

    fn insert_many(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        self.timed(Op::Insert, |calls| calls.insert_many(entries, absent))
    }

    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        self.timed(Op::Upsert, |calls| calls.upsert(key, value))
    }

    fn upsert_many(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        self.timed(Op::Upsert, |calls| calls.upsert_many(entries, absent))
    }

    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError> {
        self.timed(Op::Remove, |calls| calls.remove(key))
    }

    /// Scans by [`ScanBy::Next`] are timed here, one call for each entry. Other scans with a
    /// visitor are checks, which take longer than the scan.
    fn scan(
        &mut self,
        from: K::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(K::Ref<'_>, u64),
    ) -> usize {
        if self.by_next {
            self.timed(Op::Scan, |calls| calls.scan(from, limit, visit))
        } else {
            self.calls.scan(from, limit, visit)
        }
    }

    fn read(&mut self, from: K::Ref<'_>, limit: usize, sum: &mut u64) -> usize {
        self.timed(Op::Scan, |calls| calls.read(from, limit, sum))
    }

    fn refresh(&mut self) {
        self.calls.refresh();
    }
}
