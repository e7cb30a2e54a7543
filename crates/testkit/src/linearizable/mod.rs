//! Checks whether a history is linearizable.
//!
//! # Source
//! Wing and Gong, "Testing and verifying concurrent objects", J. Parallel and Distributed Computing
//! 17, 1993; with the memory of visited configurations of Lowe, "Testing for linearizability",
//! Concurrency and Computation 29(4), 2017. Linearizability is local (Herlihy and Wing, 1990). So
//! calls on one key are checked key by key, as a register that may be absent ([`check`]). Calls on
//! the whole index (first, last, pop) cannot be separated ([`ordered`]).
//!
//! # Algorithm
//! ```text
//! check(history, initial state):
//!   states ← {initial}
//!   for each segment (a maximal run of calls without a moment at which none is under way):
//!     states ← all states to which some legal order of the segment leads from one of `states`
//!     if there is none: not linearizable
//! order(segment): a search over (calls done, state), each visited once; from a configuration,
//!   a call may be next if it started before every other remaining call had ended.
//! ```
//!
//! # Departures
//! 1. Calls stay in *lanes*, one per thread, since a thread's calls do not overlap. "Calls done" is
//!    then one position per lane, and nothing has to be sorted.
//! 2. A call that may come next, and whose answer is right and leaves the state unchanged, is taken
//!    at once and alone: an order that takes it later may as well take it now. If values are
//!    written only once, hardly any configuration then has two continuations, and the check is
//!    linear. A blind write (`put`, `delete`) is right in each state, so it is never taken in this
//!    way.
//! 3. A violation is cut to its shortest prefix. Calls under way at the cut are *pending*: they may
//!    have taken effect or not, and have not answered. Then every call is removed that changed
//!    nothing, if there is still no order without it.
//!
//! # Complexity
//! A segment of n calls of t threads costs O(n t) if there is only one continuation, and at worst
//! the number of configurations: (n/t)^t times the states. [`BUDGET`] limits it, and t is at most
//! 64. Beyond these limits the answer is *undecided*, which is not *linearizable*.

pub mod ordered;
mod search;

use crate::failure::{Failure, Outcome};
use crate::history::{Event, Op};
pub(crate) use search::{
    Call, Object, PENDING, Refusal, States, Unexplained, follow, is_unexplained,
};
use std::collections::BTreeMap;
use std::fmt::{Debug, Display, Write};

/// The configurations visited per key or object before the search for an order stops.
pub const BUDGET: u64 = 1 << 22;

/// A key as a sequential object: a word that may be absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register;

impl Object for Register {
    type State = Option<u64>;
    type Op = Op;

    #[inline]
    fn idles(op: &Op, state: &Option<u64>) -> bool {
        // A blind write may be right now and be needed later, in another state.
        !op.is_blind() && op.apply(*state) == Some(*state)
    }
    fn changed_nothing(op: &Op) -> bool {
        op.changed_nothing()
    }
    #[inline]
    fn apply(op: &Op, state: &Option<u64>) -> Option<Option<u64>> {
        op.apply(*state)
    }
    fn effect(op: &Op, state: &Option<u64>) -> Option<u64> {
        op.effect(*state)
    }
}

/// The result of [`judge`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some order explains all calls.
    Linearizable,
    /// No order explains these calls.
    Violation(Violation),
    /// The search stopped without a result.
    Undecided {
        /// The object that was searched, for a report.
        what: String,
    },
}

/// A short history that is not linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The object of the calls, such as `key 7`.
    pub on: String,
    /// The possible states of the object before the calls.
    pub states: Vec<String>,
    /// The calls, in the order of their starts.
    pub calls: Vec<BadCall>,
}

/// A call of a [`Violation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCall {
    /// The calling thread.
    pub thread: usize,
    /// The stamp taken before the call.
    pub start: u64,
    /// The stamp taken after the call. `None` if it had not returned by the last answer of these
    /// calls, so that it may have taken effect or not.
    pub end: Option<u64>,
    /// The call, with its answer if it had returned.
    pub call: String,
}

impl Violation {
    pub(crate) fn of<B: Object<Op: Display>>(
        on: String,
        bad: &Unexplained<B>,
        show: impl Fn(&B::State) -> String,
    ) -> Self {
        Self::new(on, bad.states.iter().map(show).collect(), &bad.calls)
    }

    fn new<O: Display>(on: String, states: Vec<String>, calls: &[Call<O>]) -> Self {
        let first = calls.iter().map(|call| call.start).min().unwrap_or(0);
        let told = |call: &Call<O>| {
            let text = call.op.to_string();
            let text = match text.split_once(" →") {
                Some((verb, _)) if call.is_pending() => verb.to_owned(),
                _ => text,
            };
            BadCall {
                thread: call.thread,
                start: call.start - first,
                end: (!call.is_pending()).then(|| call.end - first),
                call: text,
            }
        };
        Self { on, states, calls: calls.iter().map(told).collect() }
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = format!(
            "{} is not linearizable: in state {}, no order explains\n",
            self.on,
            self.states.join(" or ")
        );
        for call in &self.calls {
            let (start, thread, told) = (call.start, call.thread, &call.call);
            let end = call.end.map_or("…".into(), |end| end.to_string());
            let _ = writeln!(text, "  {start:>8} {end:>8}  thread {thread}: {told}");
        }
        text.push_str("  (stamps before and after each call)");
        f.write_str(&text)
    }
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self::new(violation.to_string())
    }
}

/// Checks the calls on every key, given the state of each key before the first call.
pub fn check<O: Ord + Debug>(
    events: &[Event<O>],
    initial: impl Fn(&O) -> Option<u64>,
    show: impl Fn(&O) -> String,
) -> Outcome {
    match judge(events, initial, show) {
        Verdict::Linearizable => Ok(()),
        Verdict::Violation(violation) => Err(violation.into()),
        Verdict::Undecided { what } => Err(Failure::new(format!("{what} is undecided"))),
    }
}

/// Judges the calls on every key, given the state of each key before the first call.
pub fn judge<O: Ord + Debug>(
    events: &[Event<O>],
    initial: impl Fn(&O) -> Option<u64>,
    show: impl Fn(&O) -> String,
) -> Verdict {
    let mut keys: BTreeMap<&O, Vec<Call<Op>>> = BTreeMap::new();
    for &Event { thread, ref key, start, end, op } in events {
        keys.entry(key).or_default().push(Call { thread, start, end, op });
    }
    let mut undecided = None;
    for (key, calls) in keys {
        let lanes = lanes(calls);
        let lanes: Vec<&[Call<Op>]> = lanes.iter().map(Vec::as_slice).collect();
        let on = || format!("key {}", show(key));
        match judge_key(&lanes, initial(key)) {
            Ok(()) => {}
            Err(Refusal::Unexplained(bad)) => {
                return Verdict::Violation(Violation::of(on(), &bad, show_state));
            }
            Err(Refusal::Undecided) => undecided = Some(on()),
        }
    }
    undecided.map_or(Verdict::Linearizable, |what| Verdict::Undecided { what })
}

/// Judges the calls on one key.
pub(crate) fn judge_key(
    lanes: &[&[Call<Op>]],
    initial: Option<u64>,
) -> Result<(), Refusal<Register>> {
    follow::<Register>(lanes, &mut States::from_iter([initial]), &mut BUDGET.clone())
}

/// Distributes calls over sequences without overlaps: as few as there are concurrent calls.
pub(crate) fn lanes<O: Clone>(mut calls: Vec<Call<O>>) -> Vec<Vec<Call<O>>> {
    calls.sort_by_key(|call| (call.start, call.end));
    let mut lanes: Vec<Vec<Call<O>>> = Vec::new();
    for call in calls {
        let free = |lane: &&mut Vec<Call<O>>| lane.last().is_some_and(|c| c.end < call.start);
        match lanes.iter_mut().find(free) {
            Some(lane) => lane.push(call),
            None => lanes.push(vec![call]),
        }
    }
    lanes
}

#[allow(clippy::ref_option)] // the signature by which the object's states are shown
pub(crate) fn show_state(state: &Option<u64>) -> String {
    state.map_or("absent".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(thread: usize, start: u64, end: u64, op: Op) -> Event<u64> {
        Event { thread, key: 1, start, end, op }
    }

    fn get(found: Option<u64>) -> Op {
        Op::Get { found }
    }

    fn insert(value: u64, old: Option<u64>) -> Op {
        Op::Insert { value, old }
    }

    fn remove(old: Option<u64>) -> Op {
        Op::Remove { old }
    }

    fn exchange(expected: Option<u64>, new: Option<u64>, outcome: Result<(), Option<u64>>) -> Op {
        Op::CompareExchange { expected, new, outcome }
    }

    fn verdict(events: &[Event<u64>]) -> Outcome {
        check(events, |_| None, u64::to_string)
    }

    #[test]
    fn sequential_histories_are_judged_as_a_map_would() {
        let good = [
            event(0, 0, 1, get(None)),
            event(0, 2, 3, insert(5, None)),
            event(0, 4, 5, Op::TryInsert { value: 6, outcome: Err(5) }),
            event(0, 6, 7, exchange(Some(5), Some(0), Ok(()))),
            event(0, 8, 9, exchange(None, Some(9), Err(Some(0)))),
            event(0, 10, 11, remove(Some(0))),
            event(0, 12, 13, exchange(None, None, Ok(()))),
            event(0, 14, 15, Op::TryInsert { value: u64::MAX, outcome: Ok(()) }),
        ];
        assert_eq!(verdict(&good), Ok(()));
        for at in 0..good.len() {
            let mut bad = good.to_vec();
            bad[at].op = get(Some(77));
            assert!(verdict(&bad).is_err(), "call {at} replaced");
        }
    }

    #[test]
    fn overlapping_calls_may_take_effect_in_either_order() {
        let reads = |found| {
            [
                event(0, 0, 5, insert(1, None)),
                event(1, 1, 4, insert(2, Some(1))),
                event(2, 2, 3, get(found)),
                event(2, 6, 7, get(Some(2))),
            ]
        };
        for found in [None, Some(1), Some(2)] {
            assert_eq!(verdict(&reads(found)), Ok(()), "{found:?}");
        }
        assert!(verdict(&reads(Some(3))).is_err());
    }

    /// A deletion of an absent key may be the one that a later lookup needs. The search took it at
    /// once, because it left the state as it was.
    #[test]
    fn blind_writes_are_taken_in_any_order() {
        let calls = |found| {
            [
                event(0, 0, 9, Op::Delete),
                event(1, 1, 2, Op::Put { value: 1 }),
                event(2, 3, 8, Op::Put { value: 2 }),
                event(1, 4, 7, Op::Put { value: 1 }),
                event(1, 10, 11, get(found)),
            ]
        };
        for found in [None, Some(1), Some(2)] {
            assert_eq!(verdict(&calls(found)), Ok(()), "{found:?}");
        }
        assert!(verdict(&calls(Some(3))).is_err());
        let lost = [event(0, 0, 1, Op::Put { value: 1 }), event(0, 2, 3, get(None))];
        assert!(verdict(&lost).is_err());
        let kept = [lost[0].clone(), event(0, 2, 3, Op::Delete), event(0, 4, 5, get(Some(1)))];
        assert!(verdict(&kept).is_err());
    }

    #[test]
    fn a_read_may_not_go_back_in_time() {
        let late_old_value = [
            event(0, 0, 1, insert(1, None)),
            event(0, 2, 3, insert(2, Some(1))),
            event(1, 4, 5, get(Some(1))),
        ];
        assert!(verdict(&late_old_value).is_err());
        // Two reads during one write return the new state, then the old one.
        let flicker = [
            event(0, 0, 9, insert(1, None)),
            event(1, 1, 2, get(Some(1))),
            event(1, 3, 4, get(None)),
        ];
        let failure = verdict(&flicker).unwrap_err();
        assert!(failure.reason().contains("thread 1: get → absent"), "{failure}");
    }

    #[test]
    fn two_winners_of_one_race_are_one_too_many() {
        for op in [
            Op::TryInsert { value: 1, outcome: Ok(()) },
            insert(1, None),
            exchange(None, Some(1), Ok(())),
        ] {
            assert!(verdict(&[event(0, 0, 2, op), event(1, 1, 3, op)]).is_err(), "{op}");
        }
        let twice_removed = [
            event(0, 0, 1, insert(1, None)),
            event(0, 2, 4, remove(Some(1))),
            event(1, 3, 5, remove(Some(1))),
        ];
        assert!(verdict(&twice_removed).is_err());
    }

    #[test]
    fn a_mismatch_must_have_been_one() {
        assert!(verdict(&[event(0, 0, 1, exchange(None, Some(1), Err(None)))]).is_err());
        assert!(verdict(&[event(0, 0, 1, exchange(Some(1), None, Err(None)))]).is_ok());
    }

    #[test]
    fn keys_are_independent_and_start_in_their_initial_state() {
        let mut other = event(1, 0, 1, get(Some(2)));
        other.key = 2;
        let events = [event(0, 0, 1, get(Some(1))), other];
        assert_eq!(check(&events, |k| Some(*k), u64::to_string), Ok(()));
        assert!(check(&events, |_| Some(1), u64::to_string).is_err());
    }

    #[test]
    fn a_call_that_begins_where_another_ends_overlaps_it() {
        let events = [
            event(0, 0, 3, get(None)),
            event(1, 0, 5, get(Some(1))),
            event(2, 5, 10, insert(1, Some(7))), // the wrong one
        ];
        let failure = verdict(&events).unwrap_err();
        assert!(failure.reason().contains("insert 1 → replaced 7"), "{failure}");
    }

    #[test]
    fn too_many_calls_at_once_are_undecided() {
        let events: Vec<_> = (0..65).map(|n| event(n, 0, 9, insert(n as u64, None))).collect();
        let verdict = judge(&events, |_| None, u64::to_string);
        assert!(matches!(verdict, Verdict::Undecided { .. }), "{verdict:?}");
    }

    #[test]
    fn a_report_is_cut_to_the_shortest_prefix() {
        let mut events = vec![
            event(0, 0, 1, insert(1, None)),
            event(0, 2, 90, insert(2, Some(1))),
            event(1, 3, 4, get(Some(7))), // here it goes wrong
        ];
        for at in 0..20 {
            events.push(event(1, 5 + 2 * at, 6 + 2 * at, get(Some(2))));
        }
        let failure = verdict(&events).unwrap_err();
        let lines: Vec<&str> = failure.reason().lines().collect();
        assert!(lines[0].contains("in state 1"), "{failure}");
        assert!(lines[1].contains('…') && lines[1].ends_with("insert 2"), "{failure}");
        assert!(lines[2].ends_with("get → 7"), "{failure}");
        assert_eq!(lines.len(), 4, "{failure}");
    }

    #[test]
    fn many_overlapping_calls_are_checked_in_reasonable_time() {
        // One call is under way throughout, and another thread makes 500 calls meanwhile.
        let mut events = vec![event(0, 0, 10_000, remove(Some(499)))];
        for n in 0..500u64 {
            events.push(event(1, 1 + 2 * n, 2 + 2 * n, insert(n, n.checked_sub(1))));
        }
        events.push(event(1, 2000, 2001, get(None)));
        assert_eq!(verdict(&events), Ok(()));
    }
}
