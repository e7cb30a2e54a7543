//! Is a history linearizable?
//!
//! # Source
//! Wing and Gong, "Testing and verifying concurrent objects", J. Parallel and Distributed
//! Computing 17, 1993; with the memory of visited configurations of Lowe, "Testing for
//! linearizability", Concurrency and Computation 29(4), 2017. Linearizability is local (Herlihy
//! and Wing, 1990), so each key is checked alone: a register that may be absent.
//!
//! # Algorithm
//! ```text
//! check(history of one key, initial state):
//!   states ← {initial}
//!   for each segment (a maximal run of calls without a moment when none is under way):
//!     states ← all states some legal order of the segment leads to from one of `states`
//!     if there is none: not linearizable
//! order(segment): a search over (calls done, state), each visited once; from a configuration,
//!   any call may be next that started before every other one left had ended.
//! ```
//! Calls are kept in *lanes*, sequences of calls that do not overlap, so "calls done" is one
//! position per lane: with few threads there are few configurations.
//!
//! A violation is cut to its shortest prefix: calls under way at the cut are *pending*, which may
//! have taken effect or not, and have not answered.

use crate::failure::{Failure, Outcome};
use crate::history::Event;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::{Debug, Write};

/// Checks the calls on every key, given each one's state before the first of them.
pub fn check<O: Ord + Debug>(
    events: &[Event<O>],
    initial: impl Fn(&O) -> Option<u64>,
    show: impl Fn(&O) -> String,
) -> Outcome {
    let mut keys: BTreeMap<&O, Vec<Call>> = BTreeMap::new();
    for event in events {
        keys.entry(&event.key).or_default().push(Call {
            thread: event.thread,
            start: event.start,
            end: event.end,
            op: event.op,
        });
    }
    for (key, mut calls) in keys {
        calls.sort_by_key(|call| (call.start, call.end));
        check_key(&calls, initial(key)).map_err(|bad| bad.report(&show(key)))?;
    }
    Ok(())
}

/// An [`Event`] without its key. Pending if `end` is `u64::MAX`.
#[derive(Clone, Copy, Debug)]
struct Call {
    thread: usize,
    start: u64,
    end: u64,
    op: crate::history::Op,
}

impl Call {
    fn is_pending(self) -> bool {
        self.end == u64::MAX
    }
}

type States = BTreeSet<Option<u64>>;

/// A segment no order explains, and the states it could have started in.
struct Bad {
    segment: Vec<Call>,
    states: States,
}

/// Checks the calls on one key, sorted by start.
fn check_key(calls: &[Call], initial: Option<u64>) -> Result<(), Bad> {
    let mut states = States::from([initial]);
    let mut rest = calls;
    while !rest.is_empty() {
        let (segment, after) = rest.split_at(segment_len(rest));
        let reached = explore(segment, &states);
        if reached.is_empty() {
            let segment = shortest_prefix(segment, &states);
            return Err(Bad { segment, states });
        }
        states = reached;
        rest = after;
    }
    Ok(())
}

/// How many calls pass before none is under way.
fn segment_len(calls: &[Call]) -> usize {
    let mut end = 0;
    for (at, call) in calls.iter().enumerate() {
        if at > 0 && call.start > end {
            return at;
        }
        end = end.max(call.end);
    }
    calls.len()
}

/// The calls of `segment` up to the earliest moment at which no order explains them.
fn shortest_prefix(segment: &[Call], states: &States) -> Vec<Call> {
    let mut ends: Vec<u64> = segment.iter().map(|call| call.end).collect();
    ends.sort_unstable();
    // A prefix of an explained history is explained, so the first bad cut can be bisected.
    let good = ends.partition_point(|&cut| !explore(&prefix(segment, cut), states).is_empty());
    prefix(segment, ends[good.min(ends.len() - 1)])
}

/// The calls that had started at stamp `cut`; those that had not ended are pending.
fn prefix(segment: &[Call], cut: u64) -> Vec<Call> {
    let started = segment.iter().filter(|call| call.start < cut);
    started
        .map(|call| Call { end: if call.end <= cut { call.end } else { u64::MAX }, ..*call })
        .collect()
}

/// All states that legal orders of `segment` lead to from one of `states`.
fn explore(segment: &[Call], states: &States) -> States {
    let lanes = lanes(segment);
    let mut reached = States::new();
    let mut visited: HashSet<(Vec<u32>, Option<u64>)> = HashSet::new();
    let mut open: Vec<(Vec<u32>, Option<u64>)> =
        states.iter().map(|state| (vec![0; lanes.len()], *state)).collect();
    while let Some((done, state)) = open.pop() {
        if !visited.insert((done.clone(), state)) {
            continue;
        }
        let next = |lane: usize| lanes[lane].get(done[lane] as usize);
        let left = || (0..lanes.len()).filter_map(next);
        if left().all(|call| call.is_pending()) {
            reached.insert(state); // whatever is pending may have had no effect yet
        }
        let deadline = left().map(|call| call.end).min().unwrap_or(0);
        for lane in 0..lanes.len() {
            let Some(call) = next(lane).filter(|call| call.start <= deadline) else {
                continue;
            };
            let after =
                if call.is_pending() { Some(call.op.effect(state)) } else { call.op.apply(state) };
            if let Some(after) = after {
                let mut done = done.clone();
                done[lane] += 1;
                open.push((done, after));
            }
        }
    }
    reached
}

/// Deals calls, sorted by start, into as few sequences of calls that do not overlap as there are
/// calls at once.
fn lanes(segment: &[Call]) -> Vec<Vec<Call>> {
    let mut lanes: Vec<Vec<Call>> = Vec::new();
    for &call in segment {
        let free = |lane: &&mut Vec<Call>| lane.last().is_some_and(|last| last.end < call.start);
        match lanes.iter_mut().find(free) {
            Some(lane) => lane.push(call),
            None => lanes.push(vec![call]),
        }
    }
    lanes
}

impl Bad {
    fn report(&self, key: &str) -> Failure {
        let state = |s: &Option<u64>| s.map_or("absent".into(), |v| v.to_string());
        let states: Vec<String> = self.states.iter().map(state).collect();
        let mut text = format!(
            "key {key} is not linearizable: in state {}, no order explains\n",
            states.join(" or ")
        );
        for call in &self.segment {
            let (start, thread, op) = (call.start, call.thread, call.op.to_string());
            let (end, told) = if call.is_pending() {
                let verb = op.split_once(" →").map_or(op.as_str(), |(verb, _)| verb);
                ("…".into(), verb)
            } else {
                (call.end.to_string(), op.as_str())
            };
            let _ = writeln!(text, "  {start:>8} {end:>8}  thread {thread}: {told}");
        }
        text.push_str("  (stamps before and after each call)");
        Failure::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Op;

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

    #[test]
    fn a_read_may_not_go_back_in_time() {
        let late_old_value = [
            event(0, 0, 1, insert(1, None)),
            event(0, 2, 3, insert(2, Some(1))),
            event(1, 4, 5, get(Some(1))),
        ];
        assert!(verdict(&late_old_value).is_err());
        // Two reads during one write: new, then old.
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
        // One call under way throughout, 500 calls of another thread meanwhile.
        let mut events = vec![event(0, 0, 10_000, remove(Some(499)))];
        for n in 0..500u64 {
            events.push(event(1, 1 + 2 * n, 2 + 2 * n, insert(n, n.checked_sub(1))));
        }
        events.push(event(1, 2000, 2001, get(None)));
        assert_eq!(verdict(&events), Ok(()));
    }
}
