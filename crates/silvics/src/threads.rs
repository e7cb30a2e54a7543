//! Work in parts that several threads take.

use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread;

/// The most threads for each processor that the program may use.
const MOST: usize = 4;
/// The fewest entries for which another thread is worth starting.
const FEWEST: usize = 1024;

/// The number of threads for work on some entries, at most as many as the caller allows.
pub(crate) fn for_entries(entries: usize, allowed: NonZeroUsize) -> NonZeroUsize {
    let wanted = NonZeroUsize::new(entries / FEWEST).map_or(allowed, |most| most.min(allowed));
    if entries < FEWEST || wanted == NonZeroUsize::MIN {
        return NonZeroUsize::MIN;
    }
    let processors = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    wanted.min(processors.saturating_mul(const { NonZeroUsize::new(MOST).unwrap() }))
}

/// The numbers of the parts that one thread takes, ascending.
pub(crate) struct Numbers<'n> {
    next: &'n AtomicUsize,
    count: usize,
}

impl Iterator for Numbers<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        // Relaxed: only the number counts. The spawn and the join order all else.
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        (at < self.count).then_some(at)
    }
}

/// Calls `work` on the calling thread and on up to `threads - 1` others. Each call gets numbers
/// from `0..count`, and each number goes to one call. There are fewer threads if there are fewer
/// parts, or if the system refuses a thread.
///
/// Returns the results of all calls. If one panics, so does this function, when all have returned.
pub(crate) fn share<T: Send>(
    count: usize,
    threads: NonZeroUsize,
    work: impl Fn(Numbers<'_>) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || work(Numbers { next: &next, count });
    if threads.get().min(count) <= 1 {
        return vec![work()];
    }
    thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads.get().min(count)).map_while(spawn).collect();
        let mut results = vec![work()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    })
}
