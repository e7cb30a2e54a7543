//! Property: the first and last entry, and their removal, are linearizable with everything else.
//!
//! These calls see the whole index, so a history is checked as one object
//! ([`crate::linearizable::ordered`]). The histories are many, short, and on few keys.

use crate::clock::Clock;
use crate::crew::together;
use crate::failure::ensure;
use crate::history::{Op, show_entry};
use crate::keys::{lend, nth, own, show};
use crate::linearizable::Verdict;
use crate::linearizable::ordered::{EndVerb, OrderedEvent, OrderedOp, judge};
use crate::make::Make;
use crate::memory::kept_while_removed;
use crate::rng::Rng;
use crate::{Failure, Outcome, Subject, size};
use silvics::error::TryInsertError;
use silvics::{Guard, Options, OrderedEnds, OwnedKey};
use std::fmt;

/// The number of keys in a history.
const KEYS: u64 = 5;
/// The number of calls in a history.
const CALLS: usize = 50;
/// The number of histories.
const HISTORIES: usize = size::pick(20_000, 400, 4);

/// A key in the form that the checker needs: it can be hashed and displayed.
struct Shown<I: Subject + ?Sized>(OwnedKey<I>);

impl<I: Subject + ?Sized> Clone for Shown<I> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
impl<I: Subject + ?Sized> PartialEq for Shown<I> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<I: Subject + ?Sized> Eq for Shown<I> {}
impl<I: Subject + ?Sized> PartialOrd for Shown<I> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<I: Subject + ?Sized> Ord for Shown<I> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<I: Subject + ?Sized> fmt::Display for Shown<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show::<I>(&self.0))
    }
}
impl<I: Subject + ?Sized> fmt::Debug for Shown<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

type Events<I> = Vec<OrderedEvent<Shown<I>>>;

/// One thread of a history.
struct Caller<'a, I: Subject + ?Sized> {
    index: &'a I,
    clock: &'a Clock,
    rng: Rng,
    thread: usize,
    events: Events<I>,
}

impl<I: Subject + OrderedEnds + ?Sized> Caller<'_, I> {
    fn call(&mut self, call: u64, guard: &Guard) -> Outcome {
        let key = nth::<I>(self.rng.below(KEYS));
        let value = call << 8 | self.thread as u64;
        let verb = self.rng.below(12);
        let index = self.index;
        let start = self.clock.start();
        let op = match verb {
            0..=3 => {
                let outcome = match index.try_insert(lend::<I>(&key), value, guard) {
                    Ok(()) => Ok(()),
                    Err(TryInsertError::Occupied(present)) => Err(present),
                    Err(error) => return Err(Failure::new(format!("try_insert: {error}"))),
                };
                Ok(Op::TryInsert { value, outcome })
            }
            4..=6 => Ok(Op::Remove { old: index.remove(lend::<I>(&key), guard)? }),
            7 | 8 => Err((EndVerb::First, index.first(guard))),
            9 => Err((EndVerb::Last, index.last(guard))),
            10 => Err((EndVerb::PopFirst, index.pop_first(guard)?)),
            _ => Err((EndVerb::PopLast, index.pop_last(guard)?)),
        };
        let end = self.clock.end();
        let op = match op {
            Ok(op) => OrderedOp::Point { key: Shown(key), op },
            Err((verb, found)) => {
                let found = found.map(|(key, value)| (Shown(own::<I>(key)), value));
                OrderedOp::End { verb, found }
            }
        };
        self.events.push(OrderedEvent { thread: self.thread, start, end, op });
        Ok(())
    }
}

/// Records and judges short histories of two to four threads.
pub fn histories<I: Subject + OrderedEnds + ?Sized>(make: Make<I>) -> Outcome {
    let clock = Clock::new();
    let mut undecided = 0;
    for history in 0..HISTORIES {
        let threads = 2 + history % 3;
        let calls = (CALLS / threads) as u64;
        let index = make(&Options::default())?;
        let events = together(threads, |thread, _| {
            let rng = Rng::new(size::seed() + history as u64, thread);
            let (index, clock, events) = (&*index, &clock, Vec::with_capacity(calls as usize));
            let mut caller = Caller { index, clock, rng, thread, events };
            let guard = index.domain().pin();
            for call in 0..calls {
                caller.call(call, &guard)?;
            }
            Ok(caller.events)
        })?;
        match judge(&events.concat()) {
            Verdict::Linearizable => {}
            Verdict::Violation(violation) => return Err(violation.into()),
            Verdict::Undecided { .. } => undecided += 1,
        }
    }
    ensure!(undecided == 0, "{undecided} of {HISTORIES} histories are undecided");
    Ok(())
}

/// An entry that a guard may have seen is not freed while the guard is held, whatever guard it is
/// popped under.
pub fn held_guards_keep<I: Subject + OrderedEnds + ?Sized>(make: Make<I>) -> Outcome {
    kept_while_removed(make, |index, n, guard| {
        let popped = if n % 2 == 0 { index.pop_first(guard)? } else { index.pop_last(guard)? };
        ensure!(popped.is_some(), "an entry is left, and a pop finds none");
        Ok(())
    })
}

/// On one thread, the ends and their removals are those of a map.
pub fn sequential<I: Subject + OrderedEnds + ?Sized>(make: Make<I>) -> Outcome {
    let index = make(&Options::default())?;
    let guard = index.domain().pin();
    let keys: Vec<OwnedKey<I>> = (0..40).map(nth::<I>).collect();
    ensure!(index.first(&guard).is_none() && index.last(&guard).is_none(), "ends of nothing");
    for at in (0..40).map(|n| (n * 23) % 40) {
        index
            .try_insert(lend::<I>(&keys[at]), at as u64, &guard)
            .map_err(|e| Failure::new(format!("try_insert: {e}")))?;
    }
    let told = |entry: Option<(silvics::KeyRef<'_, I>, u64)>| {
        entry.map(|(key, value)| (own::<I>(key), value))
    };
    for (low, high) in (0..20).map(|n| (n, 39 - n)) {
        let wanted = |at: usize| Some((keys[at].clone(), at as u64));
        for (verb, found, at) in [
            ("first", told(index.first(&guard)), low),
            ("last", told(index.last(&guard)), high),
            ("pop_first", told(index.pop_first(&guard)?), low),
            ("pop_last", told(index.pop_last(&guard)?), high),
        ] {
            let shown = found.clone().map(|(key, value)| (Shown::<I>(key), value));
            ensure!(found == wanted(at), "{verb} is {}", show_entry(shown.as_ref()));
        }
    }
    ensure!(
        index.pop_first(&guard)?.is_none() && index.is_empty(),
        "all entries were popped, and some are left"
    );
    Ok(())
}
