//! Explores every execution of the small pieces under the C11 memory model: `.ci/step loom`.
#![cfg(silvics_loom)]

use loom::thread;
use silvics_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use silvics_sync::cell::UnsafeCell;
use silvics_sync::lock::{RawLock, SpinLock, TicketLock};
use silvics_sync::per_thread::Account;
use silvics_sync::rcu::RcuDomain;
use silvics_sync::version::{Readers, VersionLock};
use std::sync::Arc;

/// Explores executions with at most two preemptions per thread. This finds nearly all real mistakes
/// and keeps each test within seconds.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(test);
}

struct Guarded<L>(L, UnsafeCell<u64>);
// SAFETY: the cell is only accessed under the lock; loom checks that.
unsafe impl<L: RawLock> Sync for Guarded<L> {}

fn increment<L: RawLock>(shared: &Guarded<L>) {
    shared.0.lock();
    // SAFETY: under the lock taken above.
    shared.1.with_mut(|c| unsafe { *c += 1 });
    // SAFETY: locked above.
    unsafe { shared.0.unlock() };
}

fn excludes<L: RawLock + 'static>() {
    explore(|| {
        let shared = Arc::new(Guarded(L::default(), UnsafeCell::new(0)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || increment(&shared))
        };
        increment(&shared);
        other.join().unwrap();
        // SAFETY: both threads have ended.
        assert_eq!(shared.1.with(|c| unsafe { *c }), 2);
    });
}

#[test]
fn spin_lock_excludes_and_publishes() {
    excludes::<SpinLock>();
}

#[test]
fn ticket_lock_excludes_and_publishes() {
    excludes::<TicketLock>();
}

#[test]
fn ticket_try_lock_excludes_and_publishes() {
    explore(|| {
        let shared = Arc::new(Guarded(TicketLock::default(), UnsafeCell::new(0)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if shared.0.try_lock() {
                    // SAFETY: under the lock taken above.
                    shared.1.with_mut(|c| unsafe { *c += 1 });
                    // SAFETY: locked above.
                    unsafe { shared.0.unlock() };
                }
            })
        };
        increment(&shared);
        other.join().unwrap();
    });
}

#[test]
fn validated_reads_are_of_one_moment() {
    explore(|| {
        let shared = Arc::new((VersionLock::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.lock().unwrap();
                shared.1.store(1, Ordering::Relaxed);
                shared.2.store(1, Ordering::Relaxed);
                // SAFETY: locked above.
                unsafe { shared.0.unlock() };
            })
        };
        let version = shared.0.read().unwrap();
        let a = shared.1.load(Ordering::Relaxed);
        let b = shared.2.load(Ordering::Relaxed);
        if shared.0.validate(version) {
            assert_eq!(a, b);
        }
        writer.join().unwrap();
    });
}

type Counted = (VersionLock, Readers, UnsafeCell<u64>);

struct Sent(Arc<Counted>);
// SAFETY: the cell is only accessed under the lock; loom checks that.
unsafe impl Send for Sent {}

/// Writers wait for counted readers, and readers for writers.
#[test]
fn counted_readers_exclude_writers() {
    explore(|| {
        let shared = Arc::new((VersionLock::new(), Readers::new(), UnsafeCell::new(0)));
        let sent = Sent(Arc::clone(&shared));
        let writer = thread::spawn(move || {
            let Sent(shared) = { sent }; // all of it, and not a field that is not `Send`
            shared.0.lock().unwrap();
            shared.1.wait();
            // SAFETY: under the lock, and no reader is inside.
            shared.2.with_mut(|c| unsafe { *c += 1 });
            // SAFETY: locked above.
            unsafe { shared.0.unlock() };
        });
        shared.1.enter(&shared.0).unwrap();
        // SAFETY: no writer is inside.
        shared.2.with(|c| assert!(unsafe { *c } <= 1));
        // SAFETY: entered above.
        unsafe { shared.1.leave() };
        writer.join().unwrap();
    });
}

/// Shows that the checker can fail: it catches a reader that looks at the lock before it counts
/// itself.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_reader_that_counts_itself_late_is_caught() {
    struct Late(AtomicU64, AtomicU64, UnsafeCell<u64>);
    // SAFETY: loom checks the accesses of the cell.
    unsafe impl Sync for Late {}
    explore(|| {
        let shared = Arc::new(Late(AtomicU64::new(0), AtomicU64::new(0), UnsafeCell::new(0)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.swap(1, Ordering::SeqCst);
                if shared.1.fetch_add(0, Ordering::SeqCst) == 0 {
                    // SAFETY: loom checks that no reader is inside.
                    shared.2.with_mut(|c| unsafe { *c += 1 });
                }
            })
        };
        if shared.0.load(Ordering::SeqCst) == 0 {
            shared.1.fetch_add(1, Ordering::SeqCst);
            // SAFETY: loom checks that no writer is inside.
            shared.2.with(|c| assert!(unsafe { *c } <= 1));
            shared.1.fetch_sub(1, Ordering::Release);
        }
        writer.join().unwrap();
    });
}

/// Shows that the checker can fail: it catches a reader without the fence before the second load of
/// the version. A closing Acquire load does not replace that fence.
#[test]
#[should_panic(expected = "torn")]
fn a_validation_without_fence_is_caught() {
    explore(|| {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.store(1, Ordering::Relaxed);
                loom::sync::atomic::fence(Ordering::Release);
                shared.1.store(1, Ordering::Relaxed);
                shared.2.store(1, Ordering::Relaxed);
                shared.0.store(2, Ordering::Release);
            })
        };
        let before = shared.0.load(Ordering::Acquire);
        let a = shared.1.load(Ordering::Relaxed);
        let b = shared.2.load(Ordering::Relaxed);
        let after = shared.0.load(Ordering::Acquire);
        if before == after && before.is_multiple_of(2) {
            assert_eq!(a, b, "torn");
        }
        writer.join().unwrap();
    });
}

/// The calls of read-copy-update that a reader and a writer make.
trait Rcu: Send + Sync + 'static {
    fn read(&self, read: impl FnOnce());
    fn synchronize(&self);
}

impl<A: Account + Send + Sync + 'static> Rcu for RcuDomain<A> {
    fn read(&self, read: impl FnOnce()) {
        let _section = RcuDomain::read(self);
        read();
    }
    fn synchronize(&self) {
        RcuDomain::synchronize(self);
    }
}

/// An account that admits nothing, so that readers count in the shared word.
struct Refusing;

impl Account for Refusing {
    fn admit(&self, _bytes: usize) -> bool {
        false
    }
    fn refund(&self, _bytes: usize) {}
}

/// The index of the current cell, and two cells.
struct Cells(AtomicUsize, [UnsafeCell<u64>; 2]);
// SAFETY: a cell is written only when no thread reads it any more; loom checks that.
unsafe impl Sync for Cells {}
// SAFETY: a cell is a plain number, which any thread may own.
unsafe impl Send for Cells {}

/// A writer moves readers from the first cell to the second, waits, and overwrites the first.
fn who_has_waited_may_overwrite<R: Rcu>(make: fn() -> R, sections: usize) {
    explore(move || {
        let cells = [UnsafeCell::new(0), UnsafeCell::new(1)];
        let shared = Arc::new((make(), Cells(AtomicUsize::new(0), cells)));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (rcu, Cells(at, cells)) = &*shared;
                for _ in 0..sections {
                    rcu.read(|| {
                        let at = at.load(Ordering::Acquire);
                        // SAFETY: the cell was current in this section.
                        assert_eq!(cells[at].with(|cell| unsafe { *cell }), at as u64);
                    });
                }
            })
        };
        let (rcu, Cells(at, cells)) = &*shared;
        at.store(1, Ordering::Release);
        rcu.synchronize();
        // SAFETY: no thread reads it any more; this is what the test checks.
        cells[0].with_mut(|cell| unsafe { *cell = 7 });
        reader.join().unwrap();
    });
}

/// A section that sees a write made after the wait also sees the writes made before it, in
/// whichever order it reads.
fn no_section_spans_a_wait<R: Rcu>(make: fn() -> R) {
    for before_first in [true, false] {
        explore(move || {
            let shared = Arc::new((make(), AtomicU64::new(0), AtomicU64::new(0)));
            let reader = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (rcu, before, after) = &*shared;
                    let (mut first, mut second) = (before, after);
                    if !before_first {
                        (first, second) = (after, before);
                    }
                    let mut seen = (0, 0);
                    rcu.read(|| {
                        seen = (first.load(Ordering::Relaxed), second.load(Ordering::Relaxed));
                    });
                    if !before_first {
                        seen = (seen.1, seen.0);
                    }
                    assert!(seen != (0, 1), "a section spans the wait");
                })
            };
            let (rcu, before, after) = &*shared;
            before.store(1, Ordering::Relaxed);
            rcu.synchronize();
            after.store(1, Ordering::Relaxed);
            reader.join().unwrap();
        });
    }
}

#[test]
fn who_has_waited_for_readers_may_overwrite() {
    who_has_waited_may_overwrite(|| RcuDomain::new(()), 2);
}

#[test]
fn who_has_waited_for_strangers_may_overwrite() {
    who_has_waited_may_overwrite(|| RcuDomain::new(Refusing), 1);
}

#[test]
fn no_read_section_spans_a_wait() {
    no_section_spans_a_wait(|| RcuDomain::new(()));
}

#[test]
fn no_strangers_section_spans_a_wait() {
    no_section_spans_a_wait(|| RcuDomain::new(Refusing));
}

/// Two writers wait at once, and neither waits for the other.
#[test]
fn two_wait_at_once() {
    explore(|| {
        let cells = || Cells(AtomicUsize::new(0), [UnsafeCell::new(0), UnsafeCell::new(1)]);
        let shared = Arc::new((RcuDomain::new(()), [cells(), cells()]));
        let write = |shared: &(RcuDomain, [Cells; 2]), writer: usize| {
            let Cells(at, cells) = &shared.1[writer];
            at.store(1, Ordering::Release);
            shared.0.synchronize();
            // SAFETY: no thread reads the cell any more.
            cells[0].with_mut(|cell| unsafe { *cell = 7 });
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || write(&shared, 1))
        };
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _section = shared.0.read();
                for Cells(at, cells) in &shared.1 {
                    let at = at.load(Ordering::Acquire);
                    // SAFETY: the cell was current in this section.
                    assert_eq!(cells[at].with(|cell| unsafe { *cell }), at as u64);
                }
            })
        };
        write(&shared, 0);
        other.join().unwrap();
        reader.join().unwrap();
    });
}

/// A copy of a reader's line, each of whose steps can be weakened.
struct Twin {
    line: AtomicU64,
    fences: bool,
    enter: Ordering,
    leave: Ordering,
    waits: bool,
}

impl Twin {
    fn new() -> Self {
        let (enter, leave) = (Ordering::Release, Ordering::Release);
        Self { line: AtomicU64::new(0), fences: true, enter, leave, waits: true }
    }

    fn step(&self, ordering: Ordering) {
        let word = self.line.load(Ordering::Relaxed);
        self.line.store(word + 1, ordering);
    }

    fn fence(&self) {
        if self.fences {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
}

impl Rcu for Twin {
    fn read(&self, read: impl FnOnce()) {
        self.step(self.enter);
        self.fence();
        read();
        self.step(self.leave);
    }
    fn synchronize(&self) {
        self.fence();
        let seen = self.line.load(Ordering::Acquire);
        while self.waits && seen % 2 == 1 && self.line.load(Ordering::Acquire) == seen {
            thread::yield_now();
        }
    }
}

#[test]
fn the_twin_is_one() {
    who_has_waited_may_overwrite(Twin::new, 2);
    no_section_spans_a_wait(Twin::new);
}

#[test]
#[should_panic(expected = "a section spans the wait")]
fn a_reader_that_enters_without_fence_is_caught() {
    no_section_spans_a_wait(|| Twin { fences: false, ..Twin::new() });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_reader_that_leaves_relaxed_is_caught() {
    who_has_waited_may_overwrite(|| Twin { leave: Ordering::Relaxed, ..Twin::new() }, 1);
}

/// A writer that sees a later section must know that the earlier one is over.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_reader_that_enters_relaxed_is_caught() {
    who_has_waited_may_overwrite(|| Twin { enter: Ordering::Relaxed, ..Twin::new() }, 2);
}

#[test]
#[should_panic(expected = "a section spans the wait")]
fn a_writer_that_does_not_wait_is_caught() {
    no_section_spans_a_wait(|| Twin { waits: false, ..Twin::new() });
}
