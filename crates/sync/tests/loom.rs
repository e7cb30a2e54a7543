//! Every execution of the small pieces under the C11 memory model:
//! `RUSTFLAGS="--cfg silvics_loom" cargo test --release -p silvics-sync --test loom`.
#![cfg(silvics_loom)]

use loom::thread;
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::cell::UnsafeCell;
use silvics_sync::lock::{RawLock, SpinLock, TicketLock};
use silvics_sync::version::VersionLock;
use std::sync::Arc;

/// Explores with at most two preemptions per thread, which finds nearly all real mistakes and
/// keeps each test within seconds.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(test);
}

struct Guarded<L>(L, UnsafeCell<u64>);
// SAFETY: the cell is only touched under the lock; loom checks that.
unsafe impl<L: RawLock> Sync for Guarded<L> {}

fn increment<L: RawLock>(shared: &Guarded<L>) {
    shared.0.lock();
    // SAFETY: under the lock.
    shared.1.with_mut(|c| unsafe { *c += 1 });
    // SAFETY: taken above.
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
        // SAFETY: both are done.
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
                    // SAFETY: under the lock.
                    shared.1.with_mut(|c| unsafe { *c += 1 });
                    // SAFETY: taken above.
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

/// The checker can fail: the same reader without the fence before the second look, which a closing
/// Acquire load does not replace.
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
        if before == after && before % 2 == 0 {
            assert_eq!(a, b, "torn");
        }
        writer.join().unwrap();
    });
}
