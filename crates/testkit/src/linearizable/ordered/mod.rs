//! Calls that see the whole index: its first and last entry, their removal, and ranges at one
//! moment.
//!
//! # Source
//! Just-in-time linearization with memory: Lowe, "Testing for linearizability", Concurrency and
//! Computation 29(4), 2017. The way to leave out orders that differ only in independent calls is
//! that of partial-order reduction: Godefroid, "Partial-order methods for the verification of
//! concurrent systems", LNCS 1032, 1996.
//!
//! # Why key by key is not enough
//! Linearizability is local: a history is linearizable if the calls on each object are (Herlihy and
//! Wing, 1990). A key is such an object as long as each call concerns one key. But `first` says
//! that a key is present *and that all smaller keys are absent*, and a range that is read at one
//! moment says this of all its keys. The whole map is then one object.
//! Deciding its histories takes time exponential in the number of overlapping calls (Gibbons and
//! Korach, "Testing shared memories", SIAM J. Comput. 26(4), 1997), but not in their length.
//!
//! # Algorithm
//! ```text
//! judge(history):
//!   ways ← {(empty map, no open call)}
//!   for each invocation and return, in the order of time; invocations first among equal times:
//!     call is invoked:  add it to the open calls of each way
//!     call returns:     ways ← all ways to which `take(way, call)` leads
//!                       if there is none: not linearizable
//! take(state, open, call):
//!   if call is not open: it took effect earlier; the way stays
//!   for each sequence of open calls that ends with `call` and whose answers are right from `state`
//!     on: (the state after it, the open calls that are not in it)
//! ```
//! A *way* is a state of the map, and the open calls that have not taken effect in it. Each way is
//! visited once per return; key by key (departure 5), again if it may go on from a lesser key.
//!
//! # Departures
//! 1. **Demands.** A call with an answer is turned into a `Step` of `call.rs`. It demands a state
//!    of its key, demands that a run of keys is absent, and leaves its key in a state. `pop_first`
//!    with the answer `(k, v)` demands `v` at `k` and the absence of all keys below `k`, and leaves
//!    `k` absent. An answer without an entry demands that all keys are absent. A range demands the
//!    entries of its answer and the absence of its other keys. If it is an update, it leaves each
//!    of these entries with some bits of its value turned over.
//! 2. **Reads at once.** A call whose step changes nothing is taken as soon as its demands hold. An
//!    order that takes it later may as well take it now: it returns later than now, and it has no
//!    effect.
//! 3. **Only the calls that matter.** Two steps are *independent* if neither changes the key or a
//!    key of the run of the other (`depend` of `call.rs`). Then either both orders of them are
//!    right or neither is, and both lead to the same state. Let `a₁ … aₙ call` be a sequence that
//!    `take` could use, within an order of the whole history. If `aᵢ` is independent of all that
//!    follow it in the sequence, it can move behind `call`: the answers stay right, and `aᵢ` has
//!    not returned when `call` returns, so no returned call is overtaken. So `take` uses only
//!    sequences in which each member depends on a later one.
//! 4. **Only calls that can still be right.** A demand that does not hold can hold later only if an
//!    open call leaves the key in that state. So `take` drops a way in which `call` can no longer
//!    be right. It also does not take a call for the sake of another one that can no longer be
//!    right. Without this, a batch of inserts beside a `pop_first` would be tried in all subsets.
//! 5. **Key by key.** If each open call other than `call` is on one key, calls on different keys
//!    are independent. So the members of a sequence can be sorted by key: `take` uses only
//!    ascending sequences, and drops one that has left a key in a state in which `call` is wrong.
//!    Without this, a range that saw two batches of inserts on its keys would be tried after all
//!    subsets.
//! 6. **Differences.** A way stores how its state differs from a common one. If one way is left,
//!    its state becomes the common one.
//! 7. **Calls without an answer** (type `info` in files, or cut off in a report) may take effect at
//!    any time, or never. They stay open until the end, and they depend on all calls on their key;
//!    a pop depends on all calls, and an update of a range on all calls on keys of the range.
//!
//! # Limits
//! If all calls of a set have answers, the set alone decides the state after it. For each key they
//! lead from one state to another, as the edges of a walk. A walk through given edges from a given
//! start has one end. So there are at most 2^n ways if n calls are under way at once, whatever the
//! length of the history. [`WAYS_MAX`] is 2^16, so histories whose calls all have answers stay
//! within it with up to [`OPEN_ALWAYS`] calls at once. A pop without an answer may have removed any
//! of many keys, and has a way for each. A batch or a scan counts as one call for each of its keys;
//! an atomic range is one call.
//! Departures 2 to 5 keep the number of ways far lower in most histories. Beyond [`WAYS_MAX`] ways
//! at one return, or [`WORK_MAX`] comparisons of two calls in all, the history is *undecided*, and
//! the report names the limit. Comparisons are counted only where there are several ways.
//!
//! # Reports
//! `report` makes a violation short. It begins at the last moment at which no call was under way,
//! and ends at the return that no order explains. Then it removes keys: a linearizable history
//! stays linearizable if all calls on a key are removed, and all ends that answered this key, and
//! the key from the answers of all ranges. At last it removes calls that changed nothing. It
//! removes a key or a call only if the remaining calls are still not linearizable.

mod call;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod ways;

use super::{Call, PENDING, Verdict};
use crate::history::{Op, show_entry};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use ways::Stop;

/// The number of calls under way at once up to which a history whose calls all have answers stays
/// within [`WAYS_MAX`].
pub const OPEN_ALWAYS: u32 = 16;
/// The most ways that the search visits at one return.
pub const WAYS_MAX: usize = 1 << OPEN_ALWAYS;
/// The most comparisons of two calls that the search makes: some ten seconds.
pub const WORK_MAX: u64 = 1 << 32;

/// A call on an ordered map, with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderedOp<O> {
    /// A call on one key.
    Point {
        /// The key.
        key: O,
        /// The call.
        op: Op,
    },
    /// A call on the first or last entry.
    End {
        /// The verb of the call.
        verb: EndVerb,
        /// The entry found, which the pops removed.
        found: Option<(O, u64)>,
    },
    /// An atomic read or update of a range.
    Range {
        /// The first key of the range.
        low: O,
        /// The last key of the range.
        high: O,
        /// The bits of the values that the call turned over; zero for a read.
        mask: u64,
        /// The entries found, with their values before.
        found: Vec<(O, u64)>,
    },
}

impl<O> OrderedOp<O> {
    /// The call with other names for its keys.
    pub(crate) fn renamed<'a, P>(&'a self, name: impl Fn(&'a O) -> P) -> OrderedOp<P> {
        match self {
            Self::Point { key, op } => OrderedOp::Point { key: name(key), op: *op },
            Self::End { verb, found } => {
                let found = found.as_ref().map(|(key, value)| (name(key), *value));
                OrderedOp::End { verb: *verb, found }
            }
            Self::Range { low, high, mask, found } => {
                let found = found.iter().map(|(key, value)| (name(key), *value)).collect();
                OrderedOp::Range { low: name(low), high: name(high), mask: *mask, found }
            }
        }
    }

    /// The calls on single keys that this call implies: a call on an end that found an entry
    /// looked its key up, or removed it, and one on a range did so with each key found.
    pub(crate) fn on_keys(&self) -> Vec<(&O, Op)> {
        let (found, mask, removes) = match self {
            Self::Point { key, op } => return vec![(key, *op)],
            Self::End { verb, found } => (found.as_slice(), 0, verb.pops()),
            Self::Range { mask, found, .. } => (&found[..], *mask, false),
        };
        let mut calls = Vec::with_capacity(found.len());
        for (key, value) in found {
            let old = Some(*value);
            let op = match mask {
                0 if removes => Op::Remove { old },
                0 => Op::Get { found: old },
                mask => Op::Insert { value: value ^ mask, old },
            };
            calls.push((key, op));
        }
        calls
    }

    /// The keys of the call and of its answer.
    fn keys(&self) -> impl Iterator<Item = &O> {
        let (own, found): ([Option<&O>; 2], &[(O, u64)]) = match self {
            Self::Point { key, .. } => ([Some(key), None], &[]),
            Self::End { found, .. } => ([None; 2], found.as_slice()),
            Self::Range { low, high, found, .. } => ([Some(low), Some(high)], found),
        };
        own.into_iter().flatten().chain(found.iter().map(|(key, _)| key))
    }
}

/// A verb on an end of an ordered map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndVerb {
    /// `first`
    First,
    /// `last`
    Last,
    /// `pop_first`
    PopFirst,
    /// `pop_last`
    PopLast,
}

impl EndVerb {
    /// All verbs.
    pub const ALL: [Self; 4] = [Self::First, Self::Last, Self::PopFirst, Self::PopLast];

    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::PopFirst => "pop_first",
            Self::PopLast => "pop_last",
        }
    }

    /// Whether the verb removes the entry.
    pub fn pops(self) -> bool {
        matches!(self, Self::PopFirst | Self::PopLast)
    }

    /// Whether the verb concerns the last entry.
    pub fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::PopLast)
    }
}

impl<O: Display> Display for OrderedOp<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point { key, op } => write!(f, "key {key}: {op}"),
            Self::End { verb, found } => {
                write!(f, "{} → {}", verb.name(), show_entry(found.as_ref()))
            }
            Self::Range { low, high, mask, found } => {
                match mask {
                    0 => write!(f, "collect_range {low}..={high} → ")?,
                    mask => write!(f, "update_range {low}..={high} by ^ {mask} → ")?,
                }
                let entries: Vec<_> = found.iter().map(|e| show_entry(Some(e))).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}

/// One recorded call on an ordered map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedEvent<O> {
    /// The calling thread.
    pub thread: usize,
    /// The stamp taken before the call.
    pub start: u64,
    /// The stamp taken after the call.
    pub end: u64,
    /// The call and its answer.
    pub op: OrderedOp<O>,
}

/// A call whose key is a number: keys are ordered as their numbers.
pub(crate) type Numbered = Call<OrderedOp<u32>>;

/// Checks calls on an ordered map that was empty before the first of them.
pub fn judge<O: Ord + Clone + Display>(events: &[OrderedEvent<O>]) -> Verdict {
    let mut numbers: BTreeMap<&O, u32> = BTreeMap::new();
    for event in events {
        numbers.extend(event.op.keys().map(|key| (key, 0)));
    }
    for (number, at) in (0..).zip(numbers.values_mut()) {
        *at = number;
    }
    let call = |event: &OrderedEvent<O>| Call {
        thread: event.thread,
        start: event.start,
        end: event.end,
        op: event.op.renamed(|key| numbers[key]),
    };
    let calls: Vec<Numbered> = events.iter().map(call).collect();
    let names: Vec<&O> = numbers.keys().copied().collect();
    judge_numbered(&calls, names.len(), WORK_MAX, |number| names[number as usize].to_string())
}

/// Checks calls on keys with numbers below `keys`, on a map that was empty before, by at most
/// `work` comparisons.
pub(crate) fn judge_numbered(
    calls: &[Numbered],
    keys: usize,
    work: u64,
    name: impl Fn(u32) -> String,
) -> Verdict {
    match ways::explain(calls, keys, work) {
        Ok(()) => Verdict::Linearizable,
        Err(Stop::Undecided(limit)) => {
            Verdict::Undecided { what: format!("the whole map ({})", limit.told()) }
        }
        Err(Stop::Unexplained(at)) => Verdict::Violation(report::shorten(calls, keys, at, &name)),
    }
}
