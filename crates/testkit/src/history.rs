//! Recorded histories: the calls of threads on an index and their times, for
//! [`crate::linearizable`].

use crate::clock::Clock;
use crate::keys::{TestKey, lend};
use crate::linearizable::ordered::{EndVerb, OrderedEvent, OrderedOp};
use crate::{Failure, Outcome, Subject};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::{AllocError, Guard, KeyRef, OwnedKey};
use smallvec::SmallVec;
use std::fmt;

/// A call on one key, with its answer. A key's state is its value, or `None` for absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `get`, one key of `get_many`, or the observation of a key by a scan.
    Get {
        /// The state found.
        found: Option<u64>,
    },
    /// `try_insert`
    TryInsert {
        /// The offered value.
        value: u64,
        /// Success, or the present value.
        outcome: Result<(), u64>,
    },
    /// `insert`, or an entry of `insert_many`.
    Insert {
        /// The new value.
        value: u64,
        /// The replaced value.
        old: Option<u64>,
    },
    /// `remove`
    Remove {
        /// The removed value.
        old: Option<u64>,
    },
    /// `put`: a write that does not return the state that it replaces.
    Put {
        /// The new value.
        value: u64,
    },
    /// `delete`: a removal that does not return the state that it removes.
    Delete,
    /// `compare_exchange`
    CompareExchange {
        /// The expected state.
        expected: Option<u64>,
        /// The new state.
        new: Option<u64>,
        /// Success, or the state found.
        outcome: Result<(), Option<u64>>,
    },
}

impl Op {
    /// The state after the call if it took effect in `state`, or `None` if this answer is
    /// impossible there.
    pub fn apply(self, state: Option<u64>) -> Option<Option<u64>> {
        let after = self.effect(state);
        let right = match self {
            Self::Get { found } => found == state,
            Self::TryInsert { outcome, .. } => outcome.err() == state,
            Self::Insert { old, .. } | Self::Remove { old } => old == state,
            Self::Put { .. } | Self::Delete => true,
            Self::CompareExchange { expected, outcome, .. } => match outcome {
                Ok(()) => state == expected,
                Err(found) => found == state && state != expected,
            },
        };
        right.then_some(after)
    }

    /// Whether the call writes and its answer says nothing about the state before.
    pub(crate) fn is_blind(self) -> bool {
        matches!(self, Self::Put { .. } | Self::Delete)
    }

    /// Whether this is a lookup that found the key.
    pub(crate) fn saw_presence(self) -> bool {
        matches!(self, Self::Get { found: Some(_) })
    }

    /// Whether the answer implies that the call changed nothing.
    pub fn changed_nothing(self) -> bool {
        match self {
            Self::Get { .. } => true,
            Self::TryInsert { outcome, .. } => outcome.is_err(),
            Self::Insert { value, old } => old == Some(value),
            Self::Remove { old } => old.is_none(),
            Self::Put { .. } | Self::Delete => false,
            Self::CompareExchange { expected, new, outcome } => outcome.is_err() || expected == new,
        }
    }

    /// The state of the key right after the call, according to its answer.
    pub(crate) fn state_after(self) -> Option<u64> {
        match self {
            Self::Get { found } => found,
            Self::TryInsert { value, outcome } => Some(outcome.err().unwrap_or(value)),
            Self::Insert { value, .. } | Self::Put { value } => Some(value),
            Self::Remove { .. } | Self::Delete => None,
            Self::CompareExchange { new, outcome, .. } => {
                outcome.map_or_else(|found| found, |()| new)
            }
        }
    }

    /// The state after the call in `state`, ignoring its answer.
    pub fn effect(self, state: Option<u64>) -> Option<u64> {
        match self {
            Self::TryInsert { value, .. } => state.or(Some(value)),
            Self::Insert { value, .. } | Self::Put { value } => Some(value),
            Self::Remove { .. } | Self::Delete => None,
            Self::CompareExchange { expected, new, .. } if state == expected => new,
            Self::Get { .. } | Self::CompareExchange { .. } => state,
        }
    }
}

/// Displays the state of a key in a report.
struct State(Option<u64>);

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("absent"),
        }
    }
}

/// Formats an entry for a report.
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
            Self::Put { value } => write!(f, "put {value} → done"),
            Self::Delete => f.write_str("delete → done"),
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
    /// The calling thread.
    pub thread: usize,
    /// The key. A number stands for [`crate::TestKey::nth`] of it.
    pub key: O,
    /// The stamp taken before the call.
    pub start: u64,
    /// The stamp taken after the call.
    pub end: u64,
    /// The call and its answer.
    pub op: Op,
}

/// Calls an index for one thread and records the calls.
#[derive(Debug)]
pub struct Recorder<'a, I: Subject + ?Sized> {
    index: &'a I,
    clock: &'a Clock,
    keys: &'a [OwnedKey<I>],
    thread: usize,
    /// The recorded calls.
    pub calls: Calls,
}

/// The recorded calls of a thread.
#[derive(Debug, Default)]
pub struct Calls {
    /// The calls on keys, in order.
    pub events: Vec<Event>,
    /// The calls on ends and on atomic ranges, in order. Their keys are numbers, as in
    /// `events`.
    pub ends: Vec<OrderedEvent<u32>>,
    /// The number of scans.
    pub scans: u64,
    /// The number of events that are not calls of their own: all but the first of each scan.
    pub parts: u64,
}

impl<'a, I: Subject + ?Sized> Recorder<'a, I> {
    /// Makes a recorder of `thread`'s calls on `index`, with keys out of `keys`, that appends to
    /// `events`.
    pub fn new(
        index: &'a I,
        clock: &'a Clock,
        keys: &'a [OwnedKey<I>],
        thread: usize,
        events: Vec<Event>,
    ) -> Self {
        Self { index, clock, keys, thread, calls: Calls { events, ..Calls::default() } }
    }

    #[inline(always)]
    fn push(&mut self, key: u32, start: u64, end: u64, op: Op) {
        self.calls.events.push(Event { thread: self.thread, key, start, end, op });
    }

    /// The keys, indexed by number.
    pub fn keys(&self) -> &'a [OwnedKey<I>] {
        self.keys
    }

    #[inline(always)]
    fn key(&self, key: u32) -> KeyRef<'a, I> {
        lend::<I>(&self.keys[key as usize])
    }

    /// Calls `get` and records it.
    #[inline]
    pub fn get(&mut self, key: u32, guard: &Guard) -> Option<u64> {
        let lent = self.key(key);
        let start = self.clock.start();
        let found = self.index.get(lent, guard);
        let end = self.clock.end();
        self.push(key, start, end, Op::Get { found });
        found
    }

    /// Calls `get_many` on `count` keys from `first` on and records it.
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

    /// Calls `insert_many` on the keys from `first` on and records it. The values start at `value`
    /// and increase by `stride`.
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

    /// Calls `try_insert` and records it.
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

    /// Calls `insert` and records it.
    pub fn insert(&mut self, key: u32, value: u64, guard: &Guard) -> Outcome {
        let lent = self.key(key);
        let start = self.clock.start();
        let old = self.index.insert(lent, value, guard)?;
        let end = self.clock.end();
        self.push(key, start, end, Op::Insert { value, old });
        Ok(())
    }

    /// Calls `remove` and records it.
    pub fn remove(&mut self, key: u32, guard: &Guard) -> Outcome {
        let lent = self.key(key);
        let start = self.clock.start();
        let old = self.index.remove(lent, guard)?;
        let end = self.clock.end();
        self.push(key, start, end, Op::Remove { old });
        Ok(())
    }

    /// Calls `compare_exchange` and records it. Returns the state found.
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

    /// Makes a call on an end and records it. Returns the number of the key found, with its value.
    #[inline]
    pub fn end(
        &mut self,
        verb: EndVerb,
        call: impl FnOnce() -> Result<Option<(OwnedKey<I>, u64)>, AllocError>,
    ) -> Result<Option<(u32, u64)>, Failure> {
        let start = self.clock.start();
        let found = call()?;
        let end = self.clock.end();
        let number = |(key, value): (OwnedKey<I>, u64)| {
            let number = self.keys.binary_search(&key).map_err(|_| {
                let (verb, key) = (verb.name(), <I::Key as TestKey>::show(&key));
                Failure::new(format!("{verb} returned {key}, which no call has inserted"))
            })?;
            Ok::<_, Failure>((number as u32, value))
        };
        let found = found.map(number).transpose()?;
        let op = OrderedOp::End { verb, found };
        self.calls.ends.push(OrderedEvent { thread: self.thread, start, end, op });
        Ok(found)
    }

    /// Reads `count` keys from `first` on atomically, or updates them with a mask, and records
    /// that. `range` returns the entries found, with their values before.
    pub fn range(
        &mut self,
        (first, count): (u32, u32),
        mask: u64,
        range: impl FnOnce() -> Result<Vec<(OwnedKey<I>, u64)>, AllocError>,
    ) -> Outcome {
        let start = self.clock.start();
        let seen = range()?;
        let end = self.clock.end();
        let keys = &self.keys[first as usize..][..count as usize];
        let mut found = Vec::with_capacity(seen.len());
        observe::<I::Key>(keys, first, false, &seen, |key, value| {
            found.extend(value.map(|value| (key, value)));
        })?;
        let op = OrderedOp::Range { low: first, high: first + count - 1, mask, found };
        self.calls.ends.push(OrderedEvent { thread: self.thread, start, end, op });
        Ok(())
    }

    /// Scans the keys from `first` on and records a `get` for each of them.
    ///
    /// By the contract of scans, a key that is not returned was absent at some moment of the scan,
    /// and a returned value was present at some moment. So each is a possible answer of a `get`
    /// during the scan. The keys returned must be in order, ascending or `descending`, and in this
    /// range.
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
        self.calls.scans += 1;
        self.calls.parts += u64::from(count) - 1;
        if descending {
            seen.reverse();
        }
        let keys = &self.keys[first as usize..][..count as usize];
        observe::<I::Key>(keys, first, descending, &seen, |key, found| {
            self.push(key, start, end, Op::Get { found });
        })
    }
}

/// Calls `record` with the state in which a scan saw each key of `keys`, whose numbers begin with
/// `first`. Fails if the entries seen are out of ascending order or include another key. A
/// `descending` scan passes its entries in ascending order.
pub(crate) fn observe<K: TestKey + ?Sized>(
    keys: &[K::Owned],
    first: u32,
    descending: bool,
    seen: &[(K::Owned, u64)],
    mut record: impl FnMut(u32, Option<u64>),
) -> Outcome {
    let mut rest = seen.iter().peekable();
    for (number, expected) in (first..).zip(keys) {
        let found = rest.next_if(|(seen, _)| seen == expected).map(|(_, value)| *value);
        record(number, found);
    }
    let Some((key, _)) = rest.next() else {
        return Ok(());
    };
    let order = if descending { "descending" } else { "ascending" };
    let all: Vec<String> = seen.iter().map(|(key, _)| K::show(key)).collect();
    Err(Failure::new(format!(
        "a scan of keys {first} to {} gave {}, out of {order} order, twice or never asked for: in \
         ascending order it gave {}",
        first + keys.len() as u32 - 1,
        K::show(key),
        all.join(", ")
    )))
}
