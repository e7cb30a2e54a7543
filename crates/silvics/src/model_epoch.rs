//! The collector under `--cfg silvics_shuttle`: the few functions of `crossbeam-epoch` that
//! [`crate::domain`] uses, and as precise as reclamation can be.
//!
//! A deferred call runs at the moment the last of the guards that existed when it was deferred is
//! gone. A real epoch collector frees later, or never in a short run, and so hides most of the
//! mistakes of those who retire too early or read without a guard.
//!
//! Each guard is a registration of its own, whichever task holds it: all tasks of an execution
//! share one operating system thread.

use silvics_sync::model;
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;

/// The number of guards that are not registered.
const UNPROTECTED: u64 = u64::MAX;

/// Shared by a collector, its handles and its guards.
#[derive(Default)]
struct State {
    /// The number of the next guard.
    next: u64,
    /// The guards there are.
    guards: BTreeSet<u64>,
    /// Calls, each with the number the next guard had when it was deferred: guards from that
    /// number on do not hold it back.
    deferred: VecDeque<(u64, Box<dyn FnOnce()>)>,
}

/// The state that one operating system thread refers to, and so one task at a time.
struct Shared(Rc<RefCell<State>>);

// SAFETY: the model's executions, with all that belongs to them, stay on one operating system
// thread; no borrow of the state lasts over a scheduling point.
unsafe impl Send for Shared {}
// SAFETY: executions stay on one operating system thread, so no two threads share the state.
unsafe impl Sync for Shared {}

impl Shared {
    fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    fn enter(&self) -> u64 {
        let mut state = self.0.borrow_mut();
        let number = state.next;
        state.next += 1;
        state.guards.insert(number);
        number
    }

    fn leave(&self, number: u64) {
        self.0.borrow_mut().guards.remove(&number);
        self.collect();
    }

    /// Runs what no guard holds back.
    fn collect(&self) {
        loop {
            let call = {
                let mut state = self.0.borrow_mut();
                let oldest = state.guards.first().copied().unwrap_or(u64::MAX);
                match state.deferred.front() {
                    Some((before, _)) if *before <= oldest => state.deferred.pop_front(),
                    _ => None,
                }
            };
            let Some((_, call)) = call else { return };
            call();
        }
    }
}

pub(crate) struct Collector(Shared);

impl Collector {
    pub(crate) fn new() -> Self {
        Self(Shared(Rc::default()))
    }

    pub(crate) fn register(&self) -> LocalHandle {
        LocalHandle(self.0.share())
    }

    /// A guard that holds nothing back.
    pub(crate) fn unprotected(&self) -> Guard {
        Guard { number: UNPROTECTED, shared: self.0.share(), stays: PhantomData }
    }
}

pub(crate) struct LocalHandle(Shared);

impl LocalHandle {
    pub(crate) fn pin(&self) -> Guard {
        model::step();
        Guard { number: self.0.enter(), shared: self.0.share(), stays: PhantomData }
    }
}

pub(crate) struct Guard {
    number: u64,
    shared: Shared,
    /// With its task, as a guard of `crossbeam-epoch` stays with its thread.
    stays: PhantomData<*const ()>,
}

impl Guard {
    pub(crate) fn repin(&mut self) {
        model::step();
        self.shared.leave(self.number);
        self.number = self.shared.enter();
    }

    /// # Safety
    /// `call` may run on any thread, as soon as no guard that exists now is left.
    pub(crate) unsafe fn defer_unchecked(&self, call: impl FnOnce() + 'static) {
        model::step();
        let mut state = self.shared.0.borrow_mut();
        let before = state.next;
        state.deferred.push_back((before, Box::new(call)));
    }

    /// Nothing waits that could run.
    pub(crate) fn flush(&self) {
        self.shared.collect();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.number != UNPROTECTED {
            model::step();
            self.shared.leave(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A call deferred under `guard` that counts itself.
    fn count(calls: &Rc<Cell<usize>>, guard: &Guard) {
        let calls = Rc::clone(calls);
        // SAFETY: it touches nothing that could be gone.
        unsafe { guard.defer_unchecked(move || calls.set(calls.get() + 1)) };
    }

    #[test]
    fn a_call_runs_when_the_last_guard_that_was_there_goes() {
        let (collector, calls) = (Collector::new(), Rc::new(Cell::new(0)));
        let pin = || collector.register().pin();
        let (own, mut other) = (pin(), pin());
        count(&calls, &own);
        let later = pin();
        drop(own);
        later.flush();
        assert_eq!(calls.get(), 0, "another guard was there when it was deferred");
        other.repin();
        assert_eq!(calls.get(), 1, "only guards are left that came later");
        drop((other, later));
        assert_eq!(calls.get(), 1, "it runs once");
    }

    #[test]
    fn what_is_deferred_later_waits_longer() {
        let (collector, calls) = (Collector::new(), Rc::new(Cell::new(0)));
        let pin = || collector.register().pin();
        let first = pin();
        count(&calls, &first);
        let second = pin();
        count(&calls, &second);
        drop(first);
        assert_eq!(calls.get(), 1);
        drop(second);
        assert_eq!(calls.get(), 2);
    }

    #[test]
    fn a_call_may_pin_and_defer() {
        let collector = Rc::new(Collector::new());
        let calls = Rc::new(Cell::new(0));
        let guard = collector.register().pin();
        let (inner, counter) = (Rc::clone(&collector), Rc::clone(&calls));
        // SAFETY: it touches nothing that could be gone.
        unsafe { guard.defer_unchecked(move || count(&counter, &inner.register().pin())) };
        drop(guard);
        assert_eq!(calls.get(), 1);
    }
}
