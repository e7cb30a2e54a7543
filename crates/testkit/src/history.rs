//! What threads did to an index and when: the material of [`crate::linearizable`].
//!
//! Every call is stamped before and after from one counter. If one call's end stamp is below
//! another's start stamp, the first had returned before the second began, and must take effect
//! first; calls whose stamps overlap may take effect in either order.

use crate::keys::{TestKey, lend};
use crate::{Failure, Outcome, Subject};
use silvics::{CompareExchangeError, Guard, OwnedKey, TryInsertError};
use silvics_sync::CachePadded;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::fmt;

/// A call on one key, with its answer. A key's state is its value, or `None` for absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `get`, a place of `get_many`, or what a scan saw of the key.
    Get {
        /// The state seen.
        found: Option<u64>,
    },
    /// `try_insert`
    TryInsert {
        /// The value offered.
        value: u64,
        /// Success, or the value present.
        outcome: Result<(), u64>,
    },
    /// `insert`
    Insert {
        /// The new value.
        value: u64,
        /// The value replaced.
        old: Option<u64>,
    },
    /// `remove`
    Remove {
        /// The value removed.
        old: Option<u64>,
    },
    /// `compare_exchange`
    CompareExchange {
        /// The state expected.
        expected: Option<u64>,
        /// The state wanted.
        new: Option<u64>,
        /// Success, or the state found.
        outcome: Result<(), Option<u64>>,
    },
}

impl Op {
    /// The state after the call if it took effect in `state`; `None` if it could not have given
    /// this answer there.
    pub fn apply(self, state: Option<u64>) -> Option<Option<u64>> {
        let after = self.effect(state);
        let right = match self {
            Self::Get { found } => found == state,
            Self::TryInsert { outcome, .. } => outcome.err() == state,
            Self::Insert { old, .. } | Self::Remove { old } => old == state,
            Self::CompareExchange { expected, outcome, .. } => match outcome {
                Ok(()) => state == expected,
                Err(found) => found == state && state != expected,
            },
        };
        right.then_some(after)
    }

    /// The state after the call in `state`, whatever it answered.
    pub fn effect(self, state: Option<u64>) -> Option<u64> {
        match self {
            Self::TryInsert { value, .. } => state.or(Some(value)),
            Self::Insert { value, .. } => Some(value),
            Self::Remove { .. } => None,
            Self::CompareExchange { expected, new, .. } if state == expected => new,
            Self::Get { .. } | Self::CompareExchange { .. } => state,
        }
    }
}

/// A key's state in a report.
struct State(Option<u64>);

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("absent"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Get { found } => write!(f, "get → {}", State(found)),
            Self::TryInsert { value, outcome } => match outcome {
                Ok(()) => write!(f, "try_insert {value} → done"),
                Err(present) => write!(f, "try_insert {value} → occupied by {present}"),
            },
            Self::Insert { value, old } => write!(f, "insert {value} → replaced {}", State(old)),
            Self::Remove { old } => write!(f, "remove → removed {}", State(old)),
            Self::CompareExchange { expected, new, outcome } => {
                let (from, to) = (State(expected), State(new));
                match outcome {
                    Ok(()) => write!(f, "compare_exchange {from} ⇒ {to} → done"),
                    Err(found) => {
                        write!(f, "compare_exchange {from} ⇒ {to} → found {}", State(found))
                    }
                }
            }
        }
    }
}

/// One recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<O> {
    /// Who called.
    pub thread: usize,
    /// On which key.
    pub key: O,
    /// The stamp taken before the call.
    pub start: u64,
    /// The stamp taken after it.
    pub end: u64,
    /// The call and its answer.
    pub op: Op,
}

/// The counter all stamps come from.
#[derive(Debug, Default)]
pub struct Clock(CachePadded<AtomicU64>);

impl Clock {
    /// The next stamp. `SeqCst`: the stamps of all threads are one order, and no access of the
    /// call moves across its stamps.
    pub fn stamp(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// Calls an index for one thread and writes down what happened.
#[derive(Debug)]
pub struct Recorder<'a, I: Subject> {
    index: &'a I,
    clock: &'a Clock,
    thread: usize,
    events: Vec<Event<OwnedKey<I>>>,
}

impl<'a, I: Subject> Recorder<'a, I> {
    /// A recorder of `thread`'s calls on `index`, with room for some.
    pub fn new(index: &'a I, clock: &'a Clock, thread: usize) -> Self {
        Self { index, clock, thread, events: Vec::with_capacity(256) }
    }

    /// The calls so far, in order.
    pub fn into_events(self) -> Vec<Event<OwnedKey<I>>> {
        self.events
    }

    fn push(&mut self, key: &OwnedKey<I>, start: u64, end: u64, op: Op) {
        self.events.push(Event { thread: self.thread, key: key.clone(), start, end, op });
    }

    /// Calls `get`.
    pub fn get(&mut self, key: &OwnedKey<I>, guard: &Guard) -> Option<u64> {
        let start = self.clock.stamp();
        let found = self.index.get(lend::<I>(key), guard);
        let end = self.clock.stamp();
        self.push(key, start, end, Op::Get { found });
        found
    }

    /// Calls `get_many` on keys that differ.
    pub fn get_many(&mut self, keys: &[OwnedKey<I>], guard: &Guard) {
        let lent: Vec<_> = keys.iter().map(lend::<I>).collect();
        let mut values = vec![None; keys.len()];
        let start = self.clock.stamp();
        self.index.get_many(&lent, &mut values, guard);
        let end = self.clock.stamp();
        for (key, found) in keys.iter().zip(values) {
            self.push(key, start, end, Op::Get { found });
        }
    }

    /// Calls `try_insert`.
    pub fn try_insert(&mut self, key: &OwnedKey<I>, value: u64, guard: &Guard) -> Outcome {
        let start = self.clock.stamp();
        let result = self.index.try_insert(lend::<I>(key), value, guard);
        let end = self.clock.stamp();
        let outcome = match result {
            Ok(()) => Ok(()),
            Err(TryInsertError::Occupied(present)) => Err(present),
            Err(error) => return Err(Failure::new(format!("try_insert: {error}"))),
        };
        self.push(key, start, end, Op::TryInsert { value, outcome });
        Ok(())
    }

    /// Calls `insert`.
    pub fn insert(&mut self, key: &OwnedKey<I>, value: u64, guard: &Guard) -> Outcome {
        let start = self.clock.stamp();
        let old = self.index.insert(lend::<I>(key), value, guard)?;
        let end = self.clock.stamp();
        self.push(key, start, end, Op::Insert { value, old });
        Ok(())
    }

    /// Calls `remove`.
    pub fn remove(&mut self, key: &OwnedKey<I>, guard: &Guard) -> Outcome {
        let start = self.clock.stamp();
        let old = self.index.remove(lend::<I>(key), guard)?;
        let end = self.clock.stamp();
        self.push(key, start, end, Op::Remove { old });
        Ok(())
    }

    /// Calls `compare_exchange`.
    pub fn compare_exchange(
        &mut self,
        key: &OwnedKey<I>,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Outcome {
        let start = self.clock.stamp();
        let result = self.index.compare_exchange(lend::<I>(key), expected, new, guard);
        let end = self.clock.stamp();
        let outcome = match result {
            Ok(()) => Ok(()),
            Err(CompareExchangeError::Mismatch(found)) => Err(found),
            Err(error) => return Err(Failure::new(format!("compare_exchange: {error}"))),
        };
        let op = Op::CompareExchange { expected, new, outcome };
        self.push(key, start, end, op);
        Ok(())
    }

    /// Records what a scan saw of each of `keys`. By the contract of scans a key that is not seen
    /// was absent at some moment of the scan, and a value that is seen was there at some moment:
    /// both are what a `get` during the scan might have answered.
    pub fn scan(
        &mut self,
        keys: &[OwnedKey<I>],
        scan: impl FnOnce() -> Vec<(OwnedKey<I>, u64)>,
    ) -> Outcome {
        let start = self.clock.stamp();
        let seen = scan();
        let end = self.clock.stamp();
        for key in keys {
            let found = seen.iter().find(|(k, _)| k == key).map(|(_, value)| *value);
            self.push(key, start, end, Op::Get { found });
        }
        for (key, _) in &seen {
            if !keys.contains(key) {
                let key = <I::Key as TestKey>::show(key);
                return Err(Failure::new(format!("a scan saw {key}, never present")));
            }
        }
        Ok(())
    }
}
