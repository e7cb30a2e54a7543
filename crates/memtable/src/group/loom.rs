//! Every execution of a wake-up, and of writers that push while one leaves.

use super::wait::states::{DONE, LEADS};
use super::{Queue, Role, Site, State, Turns, Waiting, Writer};
use crate::batch::WriteBatch;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_sync::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

/// Explores executions with at most three preemptions per thread. All executions of three writers
/// take minutes.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A waker that sets the state by a load and a store: a waiter that blocks in between sleeps on.
#[test]
#[should_panic(expected = "deadlock")]
fn loom_a_waker_without_exchange_is_rejected() {
    ::loom::model(|| {
        let state = Arc::new(State::new());
        let other = Arc::clone(&state);
        let thread = ::loom::thread::spawn(move || other.set_without_exchange(DONE));
        Waiting::new(true).wait(&state, LEADS | DONE, &Site::default());
        thread.join().unwrap();
    });
}

#[test]
fn loom_a_blocked_waiter_is_woken() {
    ::loom::model(|| {
        let state = Arc::new((State::new(), UnsafeCell::new(0)));
        let other = Arc::clone(&state);
        let thread = ::loom::thread::spawn(move || {
            // SAFETY: the waiter reads it only after `DONE`.
            other.1.with_mut(|value| unsafe { *value = 7 });
            // SAFETY: the state is shared until both threads have ended.
            unsafe { State::set(&raw const other.0, DONE) };
        });
        let now = Waiting::new(true).wait(&state.0, LEADS | DONE, &Site::default());
        // SAFETY: the other thread has written it before `DONE`.
        assert_eq!((now, state.1.with(|value| unsafe { *value })), (DONE, 7));
        thread.join().unwrap();
    });
}

struct Shared {
    queue: Queue<()>,
    /// The state that belongs to the leader.
    led: UnsafeCell<usize>,
    done: AtomicUsize,
}

// SAFETY: `led` belongs to the leader.
unsafe impl Sync for Shared {}
// SAFETY: as for `Sync`.
unsafe impl Send for Shared {}

impl Shared {
    fn write(&self) {
        let batch = WriteBatch::new();
        let writer = Writer::new(Some(&batch), false);
        // SAFETY: G1: the writer stays until it is done.
        if unsafe { self.queue.join(&writer) } == Role::Lead {
            // SAFETY: the writer leads.
            let members = unsafe { self.queue.collect(&writer, |_| true) };
            // SAFETY: G2: loom refutes two leaders.
            self.led.with_mut(|led| unsafe { *led += members.count });
            self.done.fetch_add(members.iter().count(), Ordering::Relaxed);
            // SAFETY: the group leaves once.
            unsafe { self.queue.leave(members, None) };
        }
    }
}

/// A leader hands the lead over first and tells its writers afterwards, as in a pipeline.
#[test]
fn loom_a_lead_is_handed_over_before_the_end() {
    fn write(shared: &Shared) {
        let batch = WriteBatch::new();
        let writer = Writer::new(Some(&batch), false);
        // SAFETY: G1: the writer stays until it is done.
        if unsafe { shared.queue.join(&writer) } == Role::Lead {
            // SAFETY: the writer leads, and its group hands over once and is dismissed once.
            unsafe {
                let members = shared.queue.collect(&writer, |_| true);
                shared.led.with_mut(|led| *led += members.count);
                shared.queue.hand_over(members);
                shared.done.fetch_add(members.iter().count(), Ordering::Relaxed);
                Queue::dismiss(members, None);
            }
        }
    }
    explore(|| {
        let (queue, led) = (Queue::new(true), UnsafeCell::new(0));
        let shared = Arc::new(Shared { queue, led, done: AtomicUsize::new(0) });
        let other = Arc::clone(&shared);
        let thread = ::loom::thread::spawn(move || (0..2).for_each(|_| write(&other)));
        write(&shared);
        thread.join().unwrap();
        // SAFETY: all writers are done.
        assert_eq!(
            (shared.led.with(|led| unsafe { *led }), shared.done.load(Ordering::Relaxed)),
            (3, 3)
        );
    });
}

fn all_writers_are_led_once(others: usize) {
    explore(move || {
        let shared = Arc::new(Shared {
            queue: Queue::new(true),
            led: UnsafeCell::new(0),
            done: AtomicUsize::new(0),
        });
        let spawn = || {
            let shared = Arc::clone(&shared);
            ::loom::thread::spawn(move || shared.write())
        };
        let threads: Vec<_> = (0..others).map(|_| spawn()).collect();
        shared.write();
        for thread in threads {
            thread.join().unwrap();
        }
        // SAFETY: all writers are done, and a writer's end orders it behind its leader.
        let led = shared.led.with(|led| unsafe { *led });
        assert_eq!((led, shared.done.load(Ordering::Relaxed)), (others + 1, others + 1));
    });
}

#[test]
fn loom_two_writers_are_led_once() {
    all_writers_are_led_once(1);
}

#[test]
fn loom_three_writers_are_led_once() {
    all_writers_are_led_once(2);
}

/// Groups of a pipeline: each is published once, in its turn, by a thread that sees what it and
/// those before it have inserted.
fn groups_take_turns(threads: u64) {
    struct Line {
        turns: Turns,
        /// The batches of the groups, each inserted by one thread.
        inserted: [UnsafeCell<u64>; 3],
        /// The groups that were published. It belongs to the thread whose turn it is.
        published: UnsafeCell<u64>,
        told: AtomicUsize,
    }
    // SAFETY: loom refutes two threads that use a cell at once.
    unsafe impl Sync for Line {}
    // SAFETY: as for `Sync`.
    unsafe impl Send for Line {}
    fn insert(line: &Line, ticket: u64) {
        // SAFETY: this thread alone has the ticket.
        line.inserted[ticket as usize].with_mut(|batch| unsafe { *batch = ticket + 1 });
        let publish = |group: NonNull<()>| {
            // SAFETY: P1: one thread at a time has a turn, and the group is inserted.
            line.published.with_mut(|published| unsafe {
                *published += 1;
                assert_eq!(group.addr().get(), *published as usize);
                for (at, batch) in line.inserted[..*published as usize].iter().enumerate() {
                    assert_eq!(batch.with(|batch| *batch), at as u64 + 1);
                }
            });
        };
        // SAFETY: the ticket was given, and is used once.
        unsafe {
            line.turns.inserted(ticket, publish, |_| {
                line.told.fetch_add(1, Ordering::Relaxed);
            })
        };
    }
    explore(move || {
        let line = Arc::new(Line {
            turns: Turns::new(),
            inserted: std::array::from_fn(|_| UnsafeCell::new(0)),
            published: UnsafeCell::new(0),
            told: AtomicUsize::new(0),
        });
        let group =
            |ticket: u64| NonNull::without_provenance((ticket as usize + 1).try_into().unwrap());
        let mut running = Vec::new();
        // The main thread leads, and groups insert meanwhile.
        for ticket in 0..threads {
            // SAFETY: this thread leads; no group is a pointer to anything.
            unsafe { line.turns.enter(ticket, group(ticket)) };
            let line = Arc::clone(&line);
            running.push(::loom::thread::spawn(move || insert(&line, ticket)));
        }
        // SAFETY: as before: tickets are consecutive.
        unsafe { line.turns.enter(threads, group(threads)) };
        insert(&line, threads);
        line.turns.wait_for(threads + 1);
        // SAFETY: all groups are published.
        assert_eq!(line.published.with(|published| unsafe { *published }), threads + 1);
        for thread in running {
            thread.join().unwrap();
        }
        assert_eq!(line.told.load(Ordering::Relaxed) as u64, threads + 1);
    });
}

#[test]
fn loom_two_groups_take_turns() {
    groups_take_turns(1);
}

#[test]
fn loom_three_groups_take_turns() {
    groups_take_turns(2); // one more than there are slots
}
