//! A lookup of an index alone and a dependent cache miss, measured beside a run.

use super::engine::{Engine, Stop};
use super::plan::Plan;
use super::run::Fault;
use crate::drive::subject::Crew;
use silvics_workload::Share;
use silvics_workload::ycsb::{Inserts, Op};
use std::hint::black_box;
use std::time::Instant;

/// The lookups of a thread.
const LOOKUPS: usize = 200_000;

/// The dependent loads of a thread.
const LOADS: usize = 200_000;

/// The bytes from one place of the chase to the next: two lines, so that the prefetcher of pairs
/// brings no place that is not asked for.
const STRIDE: usize = 128;

/// The most bytes of a chase.
const LARGEST: usize = 1 << 30;

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Costs {
    /// A lookup of the index alone, with the keys and draws of the run.
    pub lookup_ns: f64,
    /// A dependent miss in memory of the size of the table's rows.
    pub miss_ns: f64,
}

/// Measures an engine, or returns `None` if it has no index that can be used alone.
pub fn measure(
    engine: &dyn Engine,
    plan: &Plan,
    inserts: &Inserts,
    threads: usize,
    crew: &Crew,
) -> Result<Option<Costs>, Fault> {
    let rows: u64 = engine.memory().iter().take(1).filter_map(|part| part.bytes).sum();
    let places = ((rows as usize).clamp(STRIDE, LARGEST) / STRIDE).max(2);
    let work = |share: Share| -> Result<Option<Costs>, Fault> {
        let records = draws(plan, inserts, share)?;
        let start = Instant::now();
        let found = engine.lookups(&plan.job, &records, plan.get_many);
        let time = start.elapsed();
        let Some(found) = found else { return Ok(None) };
        if found != records.len() as u64 {
            let wrong = format!("its index has found {found} of {} records", records.len());
            return Err(Fault::Stop(Stop::Wrong(wrong)));
        }
        let lookup_ns = time.as_nanos() as f64 / records.len() as f64;
        Ok(Some(Costs { lookup_ns, miss_ns: chase(places, plan.seed + share.thread as u64) }))
    };
    let laps = crew.work(threads, work, || ()).map_err(Fault::Failure)?;
    let laps = laps.into_iter().collect::<Result<Option<Vec<Costs>>, Fault>>()?;
    Ok(laps.map(|laps| {
        let mean = |of: fn(&Costs) -> f64| laps.iter().map(of).sum::<f64>() / laps.len() as f64;
        Costs { lookup_ns: mean(|one| one.lookup_ns), miss_ns: mean(|one| one.miss_ns) }
    }))
}

/// The records of a thread's operations.
fn draws(plan: &Plan, inserts: &Inserts, share: Share) -> Result<Vec<u64>, Fault> {
    let stream = plan.job.stream(plan.seed, share, inserts, plan.transaction);
    let mut stream = stream.map_err(Fault::Error)?;
    let mut records = Vec::with_capacity(LOOKUPS);
    while stream.next_block(|ops| {
        records.extend(ops.iter().filter_map(|op: &Op| op.record()));
        records.len() < LOOKUPS
    }) {}
    Ok(records)
}

/// Follows pointers through all places in a random order, and returns the nanoseconds of a step.
fn chase(places: usize, seed: u64) -> f64 {
    use rand::SeedableRng as _;
    use rand::seq::SliceRandom as _;
    let words = STRIDE / size_of::<u64>();
    let mut order: Vec<u32> = (0..places as u32).collect();
    order.shuffle(&mut rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut memory = vec![0_u64; places * words];
    for pair in 0..places {
        let (from, to) = (order[pair] as usize, order[(pair + 1) % places] as usize);
        memory[from * words] = (to * words) as u64;
    }
    let (mut at, start) = (order[0] as usize * words, Instant::now());
    for _ in 0..LOADS {
        at = memory[at] as usize;
    }
    black_box(at);
    start.elapsed().as_nanos() as f64 / LOADS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chase_takes_time() {
        assert!(chase(1000, 1) > 0.0);
    }
}
