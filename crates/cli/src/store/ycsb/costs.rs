//! A lookup of an index alone and a dependent cache miss, measured beside a run.

use super::engine::Engine;
use super::plan::Plan;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::values::THREADS_MAX;
use crate::interrupt;
use crate::store::engine::Stop;
use crate::store::meter::Fault;
use silvics::Pages;
use silvics_workload::Share;
use silvics_workload::ycsb::{Inserts, Op};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// The lookups of a thread.
const LOOKUPS: usize = 200_000;

/// The dependent loads of a thread.
const LOADS: usize = 200_000;

/// The bytes from one place of the chase to the next: two lines, so that the prefetcher of pairs
/// brings no place that is not asked for.
const STRIDE: usize = 128;

/// The most bytes of a chase: no cache has a part of them that matters.
const LARGEST: usize = 1 << 30;

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Costs {
    /// A lookup of the index alone, with the keys of the run.
    pub lookup_ns: f64,
    /// A dependent miss in memory of the size of the table's rows, up to 1 GiB, in pages like
    /// theirs.
    pub miss_ns: f64,
    pub miss_bytes: u64,
}

/// Measures an engine, or returns `None` if it has no index that can be used alone. With the
/// `seed` of a run, the lookups are those of its first operations.
pub fn measure(
    engine: &dyn Engine,
    plan: &Plan,
    inserts: &Inserts,
    (threads, pages, seed): (usize, Pages, u64),
    crew: &Crew,
) -> Result<Option<Costs>, Fault> {
    let lookups = |_, records: Vec<u64>| -> Result<Option<f64>, Fault> {
        let start = Instant::now();
        let found = engine.lookups(&plan.job, &records, plan.get_many);
        let time = start.elapsed();
        let Some(found) = found else { return Ok(None) };
        if found != records.len() as u64 {
            let wrong = format!("its index has found {found} of {} records", records.len());
            return Err(Fault::Stop(Stop::Wrong(wrong)));
        }
        Ok(Some(time.as_nanos() as f64 / records.len() as f64))
    };
    let draw = |share| draws(plan, inserts, seed, share);
    let Some(lookup_ns) = phase(crew, threads, draw, lookups)? else { return Ok(None) };
    let rows: u64 =
        engine.memory().iter().filter(|part| !part.is_index).filter_map(|part| part.bytes).sum();
    let places = ((rows as usize).clamp(STRIDE, LARGEST) / STRIDE).max(2);
    let chase = Chase::new(places, pages, seed);
    let follow = |share, ()| Ok(Some(chase.follow(share)));
    let miss_ns = phase(crew, threads, |_| Ok(()), follow)?;
    Ok(miss_ns.map(|miss_ns| Costs { lookup_ns, miss_ns, miss_bytes: chase.bytes() }))
}

/// Lets all threads work at the same time, once all of them have prepared it. Returns the mean of
/// their times.
fn phase<T>(
    crew: &Crew,
    threads: usize,
    prepare: impl Fn(Share) -> Result<T, Fault> + Sync,
    work: impl Fn(Share, T) -> Result<Option<f64>, Fault> + Sync,
) -> Result<Option<f64>, Fault> {
    let barrier = Barrier::new(threads);
    let part = |share: Share| {
        let prepared = prepare(share);
        barrier.wait(); // also after a failure, because the others wait
        work(share, prepared?)
    };
    let times = crew.work(threads, part, || ()).map_err(Fault::Failure)?;
    let times = times.into_iter().collect::<Result<Option<Vec<f64>>, Fault>>()?;
    Ok(times.map(|times| times.iter().sum::<f64>() / times.len() as f64))
}

/// The records of a thread's first operations.
fn draws(plan: &Plan, inserts: &Inserts, seed: u64, share: Share) -> Result<Vec<u64>, Fault> {
    let stream = plan.job.stream(seed, share, inserts, plan.transaction);
    let mut stream = stream.map_err(Fault::Error)?;
    let mut records = Vec::with_capacity(LOOKUPS);
    while stream.next_block(|ops| {
        records.extend(ops.iter().filter_map(|op: &Op| op.record()));
        records.len() < LOOKUPS
    }) {
        if interrupt::pending() {
            return Err(Fault::Failure(Failure::Interrupted));
        }
    }
    Ok(records)
}

/// Places in memory, each of which leads to the next one in a random order.
struct Chase {
    words: Vec<u64>,
    /// The first words of places, from which threads begin.
    begins: Vec<usize>,
}

impl Chase {
    fn new(places: usize, pages: Pages, seed: u64) -> Self {
        use rand::SeedableRng as _;
        use rand::seq::SliceRandom as _;
        let words = STRIDE / size_of::<u64>();
        let mut order: Vec<u32> = (0..places as u32).collect();
        order.shuffle(&mut rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut memory = Vec::with_capacity(places * words);
        if pages != Pages::Small {
            advise_huge(&mut memory);
        }
        memory.resize(places * words, 0_u64);
        for pair in 0..places {
            let (from, to) = (order[pair] as usize, order[(pair + 1) % places] as usize);
            memory[from * words] = (to * words) as u64;
        }
        let begins = order.iter().step_by(places.div_ceil(THREADS_MAX));
        let begins = begins.map(|&place| place as usize * words).collect();
        Self { words: memory, begins }
    }

    fn bytes(&self) -> u64 {
        size_of_val(&self.words[..]) as u64
    }

    /// Follows the places from that of a thread, and returns the nanoseconds of a step.
    fn follow(&self, share: Share) -> f64 {
        let first = share.thread * self.begins.len() / share.threads;
        let (mut at, start) = (self.begins[first], Instant::now());
        for _ in 0..LOADS {
            at = self.words[at] as usize;
        }
        black_box(at);
        start.elapsed().as_nanos() as f64 / LOADS as f64
    }
}

/// Asks for pages of 2 MiB, as pools do, before the memory is used.
fn advise_huge(memory: &mut Vec<u64>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let start = memory.as_mut_ptr().addr().next_multiple_of(PAGE);
        let end = memory.as_mut_ptr().addr() + memory.capacity() * size_of::<u64>();
        if let Some(bytes) = end.checked_sub(start) {
            // SAFETY: the whole pages lie in the vector's memory, and the advice changes no
            // content. If it is refused, the pages are small.
            unsafe { libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engine::Measured;
    use crate::store::engine::Memory;
    use crate::store::meter::Lap;
    use crate::store::ycsb::job::Job;
    use crate::store::ycsb::lies::plan;
    use crate::store::ycsb::run::{Loader, Worker, run};
    use silvics_sync::Mutex;

    /// An engine that notes the records of operations, and of lookups.
    #[derive(Default)]
    struct Notes {
        run: Mutex<Vec<u64>>,
        lookups: Mutex<Vec<u64>>,
    }

    impl Engine for Notes {
        fn load(&self, loader: Loader<'_>) -> Result<Lap, Stop> {
            loader.drive(|_| Ok(()))
        }
        fn run(&self, worker: Worker<'_>) -> Result<Lap, Stop> {
            worker.drive(|ops, _| {
                self.run.lock().extend(ops.iter().filter_map(|op| op.record()));
                Ok(())
            })
        }
        fn records(&self) -> Result<u64, Stop> {
            Ok(0)
        }
        fn lookups(&self, _: &Job, records: &[u64], _: bool) -> Option<u64> {
            self.lookups.lock().extend(records);
            Some(records.len() as u64)
        }
    }

    impl Measured for Notes {
        fn memory(&self) -> Vec<Memory> {
            Vec::new()
        }
    }

    /// The lookups were those of another seed than the run's, from its second round on.
    #[test]
    fn lookups_are_those_of_the_run() {
        let (plan, engine, crew) = (plan("--costs"), Notes::default(), Crew::new());
        let inserts = plan.job.inserts();
        for round in 0..2 {
            let sample = run(&engine, &plan, &inserts, (1, round, 1), Pages::Small, &crew);
            assert!(sample.is_ok_and(|sample| sample.costs.is_some()));
            let (run, lookups) = (&mut *engine.run.lock(), &mut *engine.lookups.lock());
            assert_eq!(run.len(), 2000);
            assert_eq!(run[..], lookups[..2000], "round {round}");
            run.clear();
            lookups.clear();
        }
    }

    #[test]
    fn a_chase_comes_to_all_places() {
        for pages in [Pages::Small, Pages::Thp] {
            let chase = Chase::new(1000, pages, 1);
            assert_eq!(chase.bytes(), 1000 * STRIDE as u64);
            let next = |at: &usize| Some(chase.words[*at] as usize);
            let seen: std::collections::HashSet<usize> =
                std::iter::successors(Some(chase.begins[0]), next).take(1000).collect();
            assert_eq!(seen.len(), 1000);
            let shares = (0..3).map(|thread| Share { thread, threads: 3 });
            assert!(shares.map(|share| chase.follow(share)).all(|time| time > 0.0));
        }
    }
}
