//! The state of a writer, and waiting for its change.

use silvics_sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use silvics_sync::cell::UnsafeCell;
use silvics_sync::thread::{Thread, current, park};
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
use silvics_sync::{random::random, thread::yield_now};
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
use std::time::{Duration, Instant};

/// The number of pauses before a waiter yields (RocksDB, `WriteThread::AwaitState`).
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const PAUSES: u32 = 200;
/// The longest time of yielding (RocksDB's `write_thread_max_yield_usec`).
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const MOST_YIELDING: Duration = Duration::from_micros(100);
/// A yield of this time is slow: another thread ran (RocksDB's `write_thread_slow_yield_usec`).
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const SLOW_YIELD: Duration = Duration::from_micros(3);
/// A waiter blocks after this number of slow yields (RocksDB's `kMaxSlowYieldsWhileSpinning`).
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const MOST_SLOW_YIELDS: u32 = 3;
/// One of this many waits updates the credit although yielding is off (RocksDB's `sampling_base`).
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const SAMPLED: u64 = 256;
/// The credit loses this part of itself in each update, and a wait adds or takes a fixed amount.
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const CREDIT_PART: i64 = 1024;
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const CREDIT: i64 = 131_072;

/// The steps for which a waiter of a schedule stays awake.
#[cfg(silvics_shuttle)]
const AWAKE: usize = 20;

/// The states of a writer: bits, so that a waiter can name several.
pub(crate) mod states {
    pub(crate) const INIT: u8 = 1;
    pub(crate) const LEADS: u8 = 2;
    pub(crate) const INSERTS: u8 = 4;
    pub(crate) const DONE: u8 = 8;
    pub(crate) const BLOCKED: u8 = 16;
}
use states::{BLOCKED, INIT};

/// The state of a writer.
pub(crate) struct State {
    word: AtomicU8,
    /// The thread to be woken. Written before the state is `BLOCKED`, and read only then.
    thread: UnsafeCell<Option<Thread>>,
}

// SAFETY: the thread's name is written by the waiter before it sets `BLOCKED`, and read by the
// thread that finds `BLOCKED`; nobody writes it meanwhile, since the waiter waits.
unsafe impl Sync for State {}

impl State {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU8::new(INIT), thread: UnsafeCell::new(None) }
    }

    #[inline]
    pub(crate) fn load(&self) -> u8 {
        self.word.load(Ordering::Acquire)
    }

    /// Sets the state, and wakes the waiter if it is blocked.
    ///
    /// # Safety
    /// G1: the state stays until it is changed by this call. It may be gone before the call
    /// returns.
    pub(crate) unsafe fn set(this: *const Self, state: u8) {
        // SAFETY: the caller's promise. No reference to the whole state is made: its frame may end.
        let word = unsafe { &(*this).word };
        let mut now = word.load(Ordering::Acquire);
        while now != BLOCKED {
            let (ok, failed) = (Ordering::Release, Ordering::Acquire);
            match word.compare_exchange(now, state, ok, failed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
        // The name is cloned first: the writer may be gone once it sees its new state (G1).
        // SAFETY: the waiter wrote the name before it set `BLOCKED`, and waits.
        let thread = unsafe { (*this).thread.with(|thread| (*thread).clone()) };
        word.store(state, Ordering::Release);
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    /// A weaker `set`, which loom must reject.
    #[cfg(all(test, silvics_loom))]
    pub(crate) fn set_without_exchange(&self, state: u8) {
        let now = self.word.load(Ordering::Acquire);
        self.word.store(state, Ordering::Release);
        if now == BLOCKED {
            // SAFETY: as in `set`, but the waiter may go on before: the model has no frame.
            let thread = self.thread.with(|thread| unsafe { (*thread).clone() });
            if let Some(thread) = thread {
                thread.unpark();
            }
        }
    }

    /// Sets the state of a waiter that is awake. A blocked one stays as it is.
    pub(crate) fn set_if_awake(&self, state: u8) {
        let (ok, failed) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.word.compare_exchange(INIT, state, ok, failed);
    }

    /// Blocks until the state is one of `goal`.
    fn block(&self, mut now: u8, goal: u8) -> u8 {
        // SAFETY: only the waiter writes it, and nobody reads it before `BLOCKED`.
        self.thread.with_mut(|thread| unsafe { *thread = Some(current()) });
        while now & goal == 0 {
            if now == BLOCKED {
                park();
                now = self.load();
                continue;
            }
            let (ok, failed) = (Ordering::AcqRel, Ordering::Acquire);
            now = match self.word.compare_exchange(now, BLOCKED, ok, failed) {
                Ok(_) => BLOCKED,
                Err(other) => other,
            };
        }
        now
    }
}

/// A place of the code that waits, with its credit for yielding: at least 0 if waiters expect that
/// they need not block.
#[derive(Debug, Default)]
pub(crate) struct Site(
    #[cfg_attr(any(silvics_loom, silvics_shuttle), expect(dead_code, reason = "no clock"))]
    AtomicI64,
);

/// The number of waits, by the way in which they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Waits that ended while the thread yielded.
    pub yielded: u64,
    /// Waits in which the thread was blocked.
    pub blocked: u64,
}

/// The way in which writers wait.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Whether waiters yield before they block.
    #[cfg_attr(any(silvics_loom, silvics_shuttle), expect(dead_code))]
    yields: bool,
    yielded: AtomicU64,
    blocked: AtomicU64,
}

impl Waiting {
    pub(crate) fn new(yields: bool) -> Self {
        Self { yields, yielded: AtomicU64::new(0), blocked: AtomicU64::new(0) }
    }

    pub(crate) fn counts(&self) -> WaitCounts {
        WaitCounts {
            yielded: self.yielded.load(Ordering::Relaxed),
            blocked: self.blocked.load(Ordering::Relaxed),
        }
    }

    /// Waits until a state is one of `goal`, and returns it.
    #[cfg(not(any(silvics_loom, silvics_shuttle)))]
    pub(crate) fn wait(&self, state: &State, goal: u8, site: &Site) -> u8 {
        for _ in 0..PAUSES {
            let now = state.load();
            if now & goal != 0 {
                return now;
            }
            std::hint::spin_loop();
        }
        if !self.yields {
            return self.wait_blocked(state, goal);
        }
        let mut update = random().is_multiple_of(SAMPLED);
        let mut ended = None;
        if update || site.0.load(Ordering::Relaxed) >= 0 {
            ended = wait_yielding(state, goal, &mut update);
        }
        let was_worthwhile = ended.is_some();
        let now = if let Some(now) = ended {
            self.yielded.fetch_add(1, Ordering::Relaxed);
            now
        } else {
            self.wait_blocked(state, goal)
        };
        if update {
            let credit = site.0.load(Ordering::Relaxed);
            let change = if was_worthwhile { CREDIT } else { -CREDIT };
            site.0.store(credit - credit / CREDIT_PART + change, Ordering::Relaxed);
        }
        now
    }

    /// Waits until a state is one of `goal`, and returns it. A model has no clock. Under shuttle
    /// half of the waiters stay awake for some steps, so that they insert in parallel.
    #[cfg(any(silvics_loom, silvics_shuttle))]
    pub(crate) fn wait(&self, state: &State, goal: u8, _: &Site) -> u8 {
        #[cfg(silvics_shuttle)]
        if silvics_sync::model::below(2) == 0 {
            for _ in 0..AWAKE {
                let now = state.load();
                if now & goal != 0 {
                    return now;
                }
                silvics_sync::thread::yield_now();
            }
        }
        self.wait_blocked(state, goal)
    }

    fn wait_blocked(&self, state: &State, goal: u8) -> u8 {
        self.blocked.fetch_add(1, Ordering::Relaxed);
        state.block(state.load(), goal)
    }
}

/// Yields until a state is one of `goal`, for a time, or until yields are slow.
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
fn wait_yielding(state: &State, goal: u8, update: &mut bool) -> Option<u8> {
    let begin = Instant::now();
    let (mut before, mut slow) = (begin, 0);
    while before - begin <= MOST_YIELDING {
        yield_now();
        let now = state.load();
        if now & goal != 0 {
            return Some(now);
        }
        let after = Instant::now();
        if after - before >= SLOW_YIELD {
            slow += 1;
            if slow >= MOST_SLOW_YIELDS {
                *update = true;
                return None;
            }
        }
        before = after;
    }
    None
}
