//! What threads did to an index and when: the material of [`crate::linearizable`].

use crate::clock::Clock;
use crate::keys::{lend, show};
use crate::{Failure, Outcome, Subject};
use silvics::{CompareExchangeError, Guard, KeyRef, OwnedKey, TryInsertError};
use smallvec::SmallVec;
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
    /// `insert`, or an entry of `insert_many`.
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

    /// Whether it is a lookup that found the key.
    pub(crate) fn saw_presence(self) -> bool {
        matches!(self, Self::Get { found: Some(_) })
    }

    /// Whether the answer says that the call has changed nothing.
    pub fn changed_nothing(self) -> bool {
        match self {
            Self::Get { .. } => true,
            Self::TryInsert { outcome, .. } => outcome.is_err(),
            Self::Insert { value, old } => old == Some(value),
            Self::Remove { old } => old.is_none(),
            Self::CompareExchange { expected, new, outcome } => outcome.is_err() || expected == new,
        }
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

/// An entry in a report.
pub(crate) fn show_entry<O: fmt::Display>(entry: Option<&(O, u64)>) -> String {
    entry.map_or("none".into(), |(key, value)| format!("{key}: {value}"))
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
pub struct Event<O = u32> {
    /// Who called.
    pub thread: usize,
    /// On which key; a number stands for [`crate::TestKey::nth`] of it.
    pub key: O,
    /// The stamp taken before the call.
    pub start: u64,
    /// The stamp taken after it.
    pub end: u64,
    /// The call and its answer.
    pub op: Op,
}

/// Calls an index for one thread and writes down what happened.
#[derive(Debug)]
pub struct Recorder<'a, I: Subject> {
    index: &'a I,
    clock: &'a Clock,
    keys: &'a [OwnedKey<I>],
    thread: usize,
    /// The calls so far, in order.
    pub events: Vec<Event>,
    /// Events that are not calls of their own: all but the first of each scan.
    pub parts: u64,
}

impl<'a, I: Subject> Recorder<'a, I> {
    /// A recorder of `thread`'s calls on `index`, on keys out of `keys`, that goes on in `events`.
    pub fn new(
        index: &'a I,
        clock: &'a Clock,
        keys: &'a [OwnedKey<I>],
        thread: usize,
        events: Vec<Event>,
    ) -> Self {
        Self { index, clock, keys, thread, events, parts: 0 }
    }

    #[inline(always)]
    fn push(&mut self, key: u32, start: u64, end: u64, op: Op) {
        self.events.push(Event { thread: self.thread, key, start, end, op });
    }

    /// The keys, by number.
    pub fn keys(&self) -> &'a [OwnedKey<I>] {
        self.keys
    }

    #[inline(always)]
    fn key(&self, key: u32) -> KeyRef<'a, I> {
        lend::<I>(&self.keys[key as usize])
    }

    /// Calls `get`.
    #[inline]
    pub fn get(&mut self, key: u32, guard: &Guard) -> Option<u64> {
        let lent = self.key(key);
        let start = self.clock.start();
        let found = self.index.get(lent, guard);
        let end = self.clock.end();
        self.push(key, start, end, Op::Get { found });
        found
    }

    /// Calls `get_many` on the keys from `first` on.
    pub fn get_many(&mut self, first: u32, count: u32, guard: &Guard) {
        let lent: SmallVec<[_; 16]> = (first..first + count).map(|key| self.key(key)).collect();
        let mut values: SmallVec<[_; 16]> = SmallVec::from_elem(None, lent.len());
        let start = self.clock.start();
        self.index.get_many(&lent, &mut values, guard);
        let end = self.clock.end();
        for (key, found) in (first..).zip(values) {
            self.push(key, start, end, Op::Get { found });
        }
    }

    /// Calls `insert_many` on the keys from `first` on, with values from `value` on in steps of
    /// `stride`.
    pub fn insert_many(
        &mut self,
        first: u32,
        count: u32,
        value: u64,
        stride: u64,
        guard: &Guard,
    ) -> Outcome {
        let value = |at: u32| value + stride * u64::from(at);
        let entries: SmallVec<[_; 16]> =
            (0..count).map(|at| (self.key(first + at), value(at))).collect();
        let mut replaced: SmallVec<[_; 16]> = SmallVec::from_elem(None, entries.len());
        let start = self.clock.start();
        self.index.insert_many(&entries, &mut replaced, guard)?;
        let end = self.clock.end();
        for (at, old) in (0..count).zip(replaced) {
            self.push(first + at, start, end, Op::Insert { value: value(at), old });
        }
        Ok(())
    }

    /// Calls `try_insert`.
    pub fn try_insert(&mut self, key: u32, value: u64, guard: &Guard) -> Outcome {
        let lent = self.key(key);
        let start = self.clock.start();
        let result = self.index.try_insert(lent, value, guard);
        let end = self.clock.end();
        let outcome = match result {
            Ok(()) => Ok(()),
            Err(TryInsertError::Occupied(present)) => Err(present),
            Err(TryInsertError::Alloc(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::new(format!("try_insert: {error}"))),
        };
        self.push(key, start, end, Op::TryInsert { value, outcome });
        Ok(())
    }

    /// Calls `insert`.
    pub fn insert(&mut self, key: u32, value: u64, guard: &Guard) -> Outcome {
        let lent = self.key(key);
        let start = self.clock.start();
        let old = self.index.insert(lent, value, guard)?;
        let end = self.clock.end();
        self.push(key, start, end, Op::Insert { value, old });
        Ok(())
    }

    /// Calls `remove`.
    pub fn remove(&mut self, key: u32, guard: &Guard) -> Outcome {
        let lent = self.key(key);
        let start = self.clock.start();
        let old = self.index.remove(lent, guard)?;
        let end = self.clock.end();
        self.push(key, start, end, Op::Remove { old });
        Ok(())
    }

    /// Calls `compare_exchange`; the state found.
    pub fn compare_exchange(
        &mut self,
        key: u32,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Result<Option<u64>, Failure> {
        let lent = self.key(key);
        let start = self.clock.start();
        let result = self.index.compare_exchange(lent, expected, new, guard);
        let end = self.clock.end();
        let outcome = match result {
            Ok(()) => Ok(()),
            Err(CompareExchangeError::Mismatch(found)) => Err(found),
            Err(CompareExchangeError::Alloc(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::new(format!("compare_exchange: {error}"))),
        };
        self.push(key, start, end, Op::CompareExchange { expected, new, outcome });
        Ok(outcome.err().unwrap_or(expected))
    }

    /// Records what a scan of the keys from `first` on saw of each. By the contract of scans a key
    /// that is not seen was absent at some moment of the scan, and a value that is seen was there
    /// at some moment: both are what a `get` during the scan might have answered.
    ///
    /// What the scan gives must be in order, ascending or `descending`, and among those keys.
    pub fn scan(
        &mut self,
        first: u32,
        count: u32,
        descending: bool,
        scan: impl FnOnce(&mut Vec<(OwnedKey<I>, u64)>),
    ) -> Outcome {
        let mut seen = Vec::with_capacity(count as usize);
        let start = self.clock.start();
        scan(&mut seen);
        let end = self.clock.end();
        self.parts += u64::from(count) - 1;
        if descending {
            seen.reverse();
        }
        let mut rest = seen.iter().peekable();
        for key in first..first + count {
            let expected = &self.keys[key as usize];
            let found = rest.next_if(|(seen, _)| seen == expected).map(|(_, value)| *value);
            self.push(key, start, end, Op::Get { found });
        }
        match rest.next() {
            None => Ok(()),
            Some((key, _)) => {
                let order = if descending { "descending" } else { "ascending" };
                let all: Vec<String> = seen.iter().map(|(key, _)| show::<I>(key)).collect();
                Err(Failure::new(format!(
                    "a scan of keys {first} to {} gave {}, out of {order} order, twice or never \
                     asked for: in ascending order it gave {}",
                    first + count - 1,
                    show::<I>(key),
                    all.join(", ")
                )))
            }
        }
    }
}
