//! Property: dropping an index returns all its memory.

use crate::crew::together;
use crate::failure::ensure;
use crate::key_sum::{Balance, random_write};
use crate::keys::{TestKey, lend, nth};
use crate::make::Make;
use crate::rng::{Rng, scattered};
use crate::{Failure, Outcome, Subject, size};
use silvics::{Domain, Options, PinIndex};
use silvics_pool::{BytesPool, Config, Pages, SmallObjects};
use std::sync::{Barrier, Once};
use std::time::Duration;

/// Dropping an index unmaps its regions and returns its heap memory, garbage included: after each
/// of a few rounds of work the heap must be at its level before. The index has a domain of its own,
/// and no thread that used it is left. Call this in a process of its own; `heap` returns the live
/// bytes of the global allocator.
pub fn dropping_returns_everything<I: Subject + ?Sized>(
    make: Make<I>,
    heap: impl Fn() -> usize,
) -> Outcome {
    dropping(make, heap, &|| None)
}

/// Checks [`dropping_returns_everything`] with a domain that outlives the index and is flushed.
pub fn dropping_and_flushing_returns_everything<I: Subject + ?Sized>(
    make: Make<I>,
    heap: impl Fn() -> usize,
) -> Outcome {
    dropping(make, heap, &|| Some(Domain::new()))
}

fn dropping<I: Subject + ?Sized>(
    make: Make<I>,
    heap: impl Fn() -> usize,
    domain: &dyn Fn() -> Option<Domain>,
) -> Outcome {
    /// Bytes by which two levels of the same heap may differ.
    const KEPT: usize = 512;
    /// The number of first rounds, which fill tables that stay.
    const WARM: usize = 2;
    /// The rounds of which the median heap level is compared with the lowest one of the last
    /// rounds, of twice as many. The collector frees some 2 KiB of each thread that it knew late,
    /// in some rounds and not in others.
    const ROUNDS: usize = 6;
    static FILLED: Once = Once::new();
    FILLED.call_once(fill_source);
    let mut mappings = Mappings::new();
    let (mut early, mut later) = (Vec::with_capacity(ROUNDS), usize::MAX);
    for round in 0..WARM + 2 * ROUNDS {
        let domain = domain();
        let index = make(&Options { domain: domain.clone(), ..Options::default() })?;
        busy(&*index)?;
        let pools = index.pool_stats().into_iter();
        let regions: Vec<_> = pools.flat_map(|pool| pool.regions).collect();
        drop(index);
        for _ in 0..1000 {
            domain.iter().for_each(Domain::flush);
        }
        let mapped = mappings.count(&regions)?;
        ensure!(mapped == 0, "{mapped} of {} regions stay mapped after the drop", regions.len());
        drop((regions, domain));
        if round < WARM {
            continue;
        }
        // A pin of another domain takes this thread's place in the dropped one, and so frees what
        // the collector has kept for itself.
        let level = || {
            drop(Domain::new().pin());
            // The source of small slots has lists for each thread and size, some KiB.
            SmallObjects::trim();
            heap()
        };
        let enough = early.first().map_or(usize::MAX, |level| level + KEPT);
        let mut now = level();
        // A thread that has ended may still be freeing its registration.
        for _ in 0..50 {
            if now <= enough {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            now = level().min(now);
        }
        if early.len() < ROUNDS {
            early.push(now);
        } else if round >= WARM + 3 * ROUNDS / 2 {
            later = later.min(now);
        }
    }
    early.sort_unstable();
    let before = early[ROUNDS / 2];
    ensure!(later <= before + KEPT, "the heap grew from {before} to {later} bytes");
    Ok(())
}

/// Has the source of small slots open more slabs than any test needs, of all sizes of chunks, on
/// more threads. It keeps a list of those that went back to the system, and a cache for each thread
/// at once and size: these are then as many as they get.
fn fill_source() {
    const THREADS: usize = 8;
    let (config, filled) = (Config::new(Pages::Small, None), Barrier::new(THREADS));
    let fill = |number: usize| {
        let first = SmallObjects::before_pools(&config)?;
        let slot = BytesPool::slot(64 * (1 + number % 64));
        while let Ok(Some(_)) = first.alloc_first(0, slot, None) {}
        Some(first)
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let indexes: Vec<_> = (0..64).map(fill).collect();
                filled.wait();
                drop(indexes);
            });
        }
    });
    SmallObjects::trim();
}

/// Leaves entries, free objects, sealed and unsealed garbage behind, after contended writes to few
/// keys.
fn busy<I: Subject + ?Sized>(index: &I) -> Outcome {
    let keys = size::pick(1 << 15, 1 << 11, 64) as u64;
    let work = |thread: u64| -> Outcome {
        for n in (0..keys).map(|at| scattered(at, keys)) {
            index.pin().insert(lend::<I>(&nth::<I>(2 * n + thread)), n)?;
        }
        for n in 0..keys / 2 {
            index.pin().insert(lend::<I>(&nth::<I>(2 * n + thread)), !n)?;
            index.pin().remove(lend::<I>(&nth::<I>(2 * n + thread)))?;
        }
        index.pin().insert(lend::<I>(&<I::Key as TestKey>::bulky(2 * keys + thread)), 1)?;
        Ok(())
    };
    together(3, |thread, _| {
        let mut rng = Rng::new(size::seed(), thread);
        let mut balance = Balance::new();
        for _ in 0..size::pick(200_000, 8000, 60) {
            random_write(index, &mut rng, 6, &index.domain().pin(), &mut balance)?;
        }
        Ok(())
    })?;
    together(2, |thread, _| work(thread as u64))?;
    work(0)
}

/// The process's mappings, read into a buffer that is allocated before the regions are dropped: the
/// text must not show a mapping that was made for reading it.
struct Mappings(Vec<u8>);

impl Mappings {
    fn new() -> Self {
        Self(Vec::with_capacity(1 << 20))
    }

    /// How many of `regions` are mapped.
    #[cfg(target_os = "linux")]
    fn count(&mut self, regions: &[silvics_pool::Region]) -> Result<usize, Failure> {
        use std::io::Read;
        self.0.clear();
        std::fs::File::open("/proc/self/maps")
            .and_then(|mut file| file.read_to_end(&mut self.0))
            .map_err(|error| Failure::new(format!("/proc/self/maps: {error}")))?;
        let text = String::from_utf8_lossy(&self.0);
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        let lines = text.lines().filter_map(|line| {
            let (start, end) = line.split_whitespace().next()?.split_once('-')?;
            Some((address(start)?, address(end)?))
        });
        let mappings: Vec<(usize, usize)> = lines.collect();
        let is_mapped = |region: &&silvics_pool::Region| {
            let start = region.start.as_ptr().addr();
            let end = start + region.bytes;
            mappings.iter().any(|&(from, to)| from < end && start < to)
        };
        Ok(regions.iter().filter(is_mapped).count())
    }

    /// Counts nothing on systems that do not report mappings.
    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::unnecessary_wraps)]
    fn count(&mut self, _: &[silvics_pool::Region]) -> Result<usize, Failure> {
        Ok(self.0.len())
    }
}
