//! Threads that start together, meet at barriers, and never wait for a thread that failed.

use crate::failure::{Failure, Outcome};
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

/// The state that the threads of one concurrent run share.
#[derive(Debug)]
pub(crate) struct Crew {
    size: usize,
    arrived: AtomicUsize,
    stop: AtomicBool,
    aborted: AtomicBool,
}

/// The reason that a thread returns if it stopped because another thread failed.
const STOPPED: &str = "stopped: another thread failed";

impl Crew {
    /// Waits for all other threads, spinning: the threads leave within a fraction of a microsecond
    /// of each other, so that even short runs overlap. (A futex takes some 50 µs to wake its
    /// sleepers.)
    pub(crate) fn meet(&self) -> Outcome {
        let mine = self.arrived.fetch_add(1, Ordering::AcqRel);
        let full = (mine / self.size + 1) * self.size;
        let mut spins = 0u32;
        while self.arrived.load(Ordering::Acquire) < full {
            if self.aborted.load(Ordering::Relaxed) {
                return Err(Failure::new(STOPPED));
            }
            spins += 1;
            if spins < 200 {
                silvics_sync::hint::spin_loop();
            } else {
                silvics_sync::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Asks threads that loop until [`Crew::stopped`] to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether some thread called [`Crew::stop`] or failed.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.aborted.load(Ordering::Relaxed)
    }
}

/// Aborts the crew unless the thread's work ended well. A panic aborts it too.
struct AbortOnDrop<'a>(&'a Crew);

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.0.aborted.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on `size` threads that start together, and passes each its number and the crew.
/// Returns the threads' results, or the first failure. A panic is passed on. If the system does not
/// start all threads, those that it has started do nothing.
///
/// Operations overlap as far as there are cores. (Signals that stop threads in the middle of an
/// operation, some ten thousand a second, were tried. They found planted races less often, since
/// true overlap, millions of times a second, was lost.)
pub(crate) fn together<T: Send>(
    size: usize,
    work: impl Fn(usize, &Crew) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let crew = Crew {
        size,
        arrived: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        aborted: AtomicBool::new(false),
    };
    let one = |thread: usize| {
        let abort = AbortOnDrop(&crew);
        crew.meet()?;
        let result = work(thread, &crew)?;
        std::mem::forget(abort);
        Ok(result)
    };
    let results: Vec<Result<T, Failure>> = std::thread::scope(|scope| -> Result<_, Failure> {
        let one = &one;
        let abort = AbortOnDrop(&crew); // if a thread cannot start, the others must not wait for it
        let start = |thread| {
            let started = Builder::new().spawn_scoped(scope, move || one(thread));
            started.map_err(|error| Failure::threads(thread, size, &error))
        };
        let threads = (0..size).map(start).collect::<Result<Vec<_>, _>>()?;
        std::mem::forget(abort);
        let unwound = |panic| std::panic::resume_unwind(panic);
        Ok(threads.into_iter().map(|thread| thread.join().unwrap_or_else(unwound)).collect())
    })?;
    let failed = |r: &&Result<T, Failure>| r.as_ref().is_err_and(|f| f.reason() != STOPPED);
    if let Some(Err(failure)) = results.iter().find(failed) {
        return Err(failure.clone());
    }
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_releases_the_threads_that_wait_for_it() {
        let result = together(3, |thread, crew| {
            if thread == 1 {
                return Err(Failure::new("mine"));
            }
            crew.meet()
        });
        assert_eq!(result, Err(Failure::new("mine")));
    }

    #[test]
    fn all_results_come_back_in_order() {
        let result = together(3, |thread, crew| {
            for _ in 0..10 {
                crew.meet()?;
            }
            Ok(thread)
        });
        assert_eq!(result, Ok(vec![0, 1, 2]));
    }
}
