//! Histories with ends, judged by the search and by trying every order.

use super::*;
use crate::linearizable::Violation;
use crate::rng::Rng;
use std::time::Instant;

type Event = OrderedEvent<u64>;

fn end(thread: usize, start: u64, end: u64, verb: EndVerb, found: Option<(u64, u64)>) -> Event {
    OrderedEvent { thread, start, end, op: OrderedOp::End { verb, found } }
}

fn range(
    thread: usize,
    (start, end): (u64, u64),
    (low, high): (u64, u64),
    mask: u64,
    found: &[(u64, u64)],
) -> Event {
    let op = OrderedOp::Range { low, high, mask, found: found.to_vec() };
    OrderedEvent { thread, start, end, op }
}

fn point(thread: usize, start: u64, end: u64, key: u64, op: Op) -> Event {
    OrderedEvent { thread, start, end, op: OrderedOp::Point { key, op } }
}

fn insert(value: u64) -> Op {
    Op::TryInsert { value, outcome: Ok(()) }
}

fn remove(value: u64) -> Op {
    Op::Remove { old: Some(value) }
}

#[track_caller]
fn violation(events: &[Event]) -> Violation {
    match judge(events) {
        Verdict::Violation(violation) => violation,
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn ends_of_a_sequential_history_are_those_of_a_map() {
    let good = vec![
        end(0, 0, 1, EndVerb::First, None),
        point(0, 2, 3, 5, insert(50)),
        point(0, 4, 5, 3, insert(30)),
        end(0, 6, 7, EndVerb::First, Some((3, 30))),
        end(0, 8, 9, EndVerb::Last, Some((5, 50))),
        end(0, 10, 11, EndVerb::PopLast, Some((5, 50))),
        end(0, 12, 13, EndVerb::PopFirst, Some((3, 30))),
        end(0, 14, 15, EndVerb::PopFirst, None),
    ];
    assert_eq!(judge(&good), Verdict::Linearizable);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at].op = OrderedOp::End { verb: EndVerb::First, found: Some((7, 7)) };
        violation(&bad);
    }
}

/// A wrong `first` walks past A; then C is inserted before D and A is removed. It returns D,
/// which was never first.
#[test]
fn a_first_that_was_never_first_is_found() {
    let history = |found| {
        vec![
            point(0, 0, 1, 1, insert(10)), // A
            point(0, 2, 3, 9, insert(90)), // D
            end(1, 4, 11, EndVerb::First, found),
            point(0, 5, 6, 5, insert(50)), // C
            point(0, 7, 8, 1, remove(10)), // A
        ]
    };
    assert_eq!(judge(&history(Some((1, 10)))), Verdict::Linearizable);
    assert_eq!(judge(&history(Some((5, 50)))), Verdict::Linearizable);
    let violation = violation(&history(Some((9, 90))));
    assert_eq!(violation.states, ["{1: 10, 9: 90}"], "{violation}");
    assert_eq!(violation.calls.len(), 3, "{violation}");
}

#[test]
fn two_pops_of_one_entry_are_one_too_many() {
    for second in [EndVerb::PopFirst, EndVerb::PopLast] {
        violation(&[
            point(0, 0, 1, 1, insert(10)),
            end(0, 2, 5, EndVerb::PopFirst, Some((1, 10))),
            end(1, 3, 4, second, Some((1, 10))),
        ]);
    }
}

#[test]
fn a_pop_of_the_second_entry_is_right_only_beside_the_removal_of_the_first() {
    let history = |removed: (u64, u64)| {
        [
            point(0, 0, 1, 1, insert(10)),
            point(0, 2, 3, 2, insert(20)),
            end(0, 4, 7, EndVerb::PopFirst, Some((2, 20))),
            point(1, removed.0, removed.1, 1, remove(10)),
        ]
    };
    assert_eq!(judge(&history((5, 6))), Verdict::Linearizable);
    assert_eq!(judge(&history((5, 9))), Verdict::Linearizable);
    violation(&history((8, 9)));
}

#[test]
fn a_popped_value_is_the_value_present() {
    let history = |popped| {
        [
            point(0, 0, 1, 1, insert(10)),
            point(0, 2, 6, 1, Op::Insert { value: 11, old: Some(10) }),
            end(1, 3, 5, EndVerb::PopLast, Some((1, popped))),
        ]
    };
    violation(&history(10)); // the insert would have found the key absent
    assert_eq!(judge(&history(11)), Verdict::Linearizable);
    violation(&history(12));
}

/// The map is empty only if both removals precede `first`, and the insert does not.
#[test]
fn an_empty_map_needs_the_removal_of_all_keys() {
    let history = |second: (u64, u64)| {
        [
            point(0, 0, 1, 1, insert(10)),
            point(0, 2, 3, 2, insert(20)),
            end(0, 4, 9, EndVerb::First, None),
            point(1, 5, 20, 1, remove(10)),
            point(2, second.0, second.1, 2, remove(20)),
            point(3, 6, 7, 3, insert(30)),
        ]
    };
    assert_eq!(judge(&history((5, 20))), Verdict::Linearizable);
    violation(&history((10, 20)));
}

#[test]
fn a_range_shows_one_moment() {
    let history = |found: &[(u64, u64)]| {
        vec![
            point(0, 0, 1, 1, insert(10)),
            point(0, 2, 3, 9, insert(90)),
            range(1, (4, 20), (1, 9), 0, found),
            point(0, 5, 6, 5, insert(50)),
            point(0, 7, 8, 1, remove(10)),
        ]
    };
    for found in [&[(1, 10), (9, 90)][..], &[(1, 10), (5, 50), (9, 90)], &[(5, 50), (9, 90)]] {
        assert_eq!(judge(&history(found)), Verdict::Linearizable, "{found:?}");
    }
    // It saw 1 before its removal, and not 5, which was inserted before that: fine. But not both
    // absent, and no entry out of the range or twice.
    violation(&history(&[(9, 90)]));
    violation(&history(&[(1, 10), (1, 10), (9, 90)]));
    violation(&history(&[(9, 90), (1, 10)]));
    let with = |found: &[(u64, u64)]| {
        let mut events = history(&[(1, 10), (9, 90)]);
        events.push(range(1, (21, 22), (6, 8), 0, found));
        events
    };
    assert_eq!(judge(&with(&[])), Verdict::Linearizable);
    violation(&with(&[(9, 90)]));
}

/// A walk that is not atomic reads 1, then another thread moves an entry from 9 to 1.
#[test]
fn an_entry_that_moves_behind_a_range_is_not_lost() {
    let history = |found: &[(u64, u64)]| {
        [
            point(0, 0, 1, 9, insert(90)),
            range(1, (2, 20), (0, 10), 0, found),
            point(0, 3, 4, 1, insert(91)),
            point(0, 5, 6, 9, remove(90)),
        ]
    };
    let violation = violation(&history(&[]));
    assert!(violation.to_string().contains("collect_range 0..=10 → {}"), "{violation}");
    assert_eq!(judge(&history(&[(1, 91)])), Verdict::Linearizable);
}

#[test]
fn an_update_of_a_range_takes_effect_at_once() {
    let history = |one: u64, other: u64| {
        [
            point(0, 0, 1, 1, insert(10)),
            point(0, 2, 3, 2, insert(20)),
            range(0, (4, 20), (0, 5), 64, &[(1, 10), (2, 20)]),
            point(1, 5, 6, 1, Op::Get { found: Some(one) }),
            point(1, 7, 8, 2, Op::Get { found: Some(other) }),
        ]
    };
    for (one, other) in [(10, 20), (10, 84), (74, 84)] {
        assert_eq!(judge(&history(one, other)), Verdict::Linearizable);
    }
    violation(&history(74, 20));
    violation(&history(10, 148));
    let mut open = history(74, 84);
    open[2].end = PENDING;
    assert_eq!(judge(&open), Verdict::Linearizable);
    open[4].op = OrderedOp::Point { key: 2, op: Op::Get { found: Some(20) } };
    violation(&open);
}

#[test]
fn a_call_that_never_returned_may_have_taken_effect_or_not() {
    let popped_by_another = |found: Option<(u64, u64)>| {
        [
            point(0, 0, 1, 1, insert(10)),
            end(1, 2, PENDING, EndVerb::PopFirst, None),
            end(0, 4, 5, EndVerb::Last, found),
        ]
    };
    assert_eq!(judge(&popped_by_another(Some((1, 10)))), Verdict::Linearizable);
    assert_eq!(judge(&popped_by_another(None)), Verdict::Linearizable);
    violation(&popped_by_another(Some((2, 20))));
    let inserted_by_another = [
        point(1, 2, PENDING, 7, insert(70)),
        end(0, 4, 5, EndVerb::PopLast, Some((7, 70))),
        end(0, 6, 7, EndVerb::PopLast, None),
    ];
    assert_eq!(judge(&inserted_by_another), Verdict::Linearizable);
}

#[test]
fn a_report_has_the_calls_and_keys_that_matter() {
    let mut events = vec![point(0, 0, 1, 50, insert(5))];
    for n in 0..300 {
        events.push(point(0, 2 + 2 * n, 3 + 2 * n, 60 + n, insert(n)));
    }
    events.push(end(1, 1000, 1003, EndVerb::First, Some((70, 10)))); // the wrong one
    events.push(point(0, 1001, 1002, 80, remove(20)));
    for n in 0..300 {
        events.push(end(0, 1100 + 2 * n, 1101 + 2 * n, EndVerb::First, Some((50, 5))));
    }
    let violation = violation(&events);
    assert_eq!(violation.calls.len(), 1, "{violation}");
    assert_eq!(violation.states.len(), 1, "{violation}");
    assert!(violation.states[0].len() < 20, "{violation}");
}

/// An answer that only a later call explains must not be judged by what is known before it.
#[test]
fn a_batch_of_inserts_beside_a_pop_is_decided() {
    let mut events = vec![point(0, 0, 1, 500, insert(1))];
    // A batch inserts 40 keys; the pop takes one in the middle, so most follow it.
    events.extend((0..40).map(|n| point(0, 10, 50, 100 + n, insert(n))));
    events.push(end(1, 11, 60, EndVerb::PopFirst, Some((120, 20))));
    events.push(end(2, 12, 70, EndVerb::Last, Some((500, 1))));
    assert_eq!(judge(&events), Verdict::Linearizable);
    events.push(end(1, 80, 90, EndVerb::First, Some((101, 1)))); // 100 is still present
    violation(&events);
}

/// A range sees two batches on its keys that have not returned. The search goes key by key.
#[test]
fn a_range_beside_two_batches_is_decided() {
    let history = |last: u64| {
        let mut events: Vec<Event> = (0..20).map(|n| point(0, 1, 50, n, insert(n))).collect();
        let replace = |n: u64| Op::Insert { value: 100 + n, old: Some(n) };
        events.extend((0..20).map(|n| point(1, 2, 60, n, replace(n))));
        let mut found: Vec<(u64, u64)> = (0..20).map(|n| (n, 100 + n)).collect();
        found[19].1 = last;
        events.push(range(2, (3, 10), (0, 30), 0, &found));
        events
    };
    assert_eq!(judge(&history(119)), Verdict::Linearizable);
    assert_eq!(judge(&history(19)), Verdict::Linearizable);
    violation(&history(120));
}

/// `first` finds nothing while all keys are being removed, and another call on an end is open. The
/// search tries the removals in every subset.
#[test]
fn many_calls_at_once_are_undecided() {
    let verdict = |removals: u64| {
        let insert = |n: u64| point(0, 2 * n, 2 * n + 1, n, insert(n));
        let mut events: Vec<Event> = (0..removals).map(insert).collect();
        events.extend((0..removals).map(|n| point(n as usize, 100, 200, n, remove(n))));
        let last = removals - 1;
        events.push(end(98, 105, 150, EndVerb::First, Some((last, last))));
        events.push(end(99, 110, 120, EndVerb::First, None));
        judge(&events)
    };
    assert_eq!(verdict(u64::from(OPEN_ALWAYS) - 2), Verdict::Linearizable);
    let Verdict::Undecided { what } = verdict(24) else { panic!("2^24 orders were tried") };
    assert!(what.contains("26 calls were under way at once"), "{what}");
    assert!(what.contains("Up to 16 calls with answers stay within that"), "{what}");
}

/// Calls of a correct map: each takes effect at a moment between its start and its end.
struct Simulated {
    rng: Rng,
    now: u64,
    keys: u64,
    map: BTreeMap<u64, u64>,
    events: Vec<Event>,
    open: Vec<Option<Open>>,
}

/// A call that has started, with the answer if it has taken effect.
struct Open {
    start: u64,
    choice: u64,
    key: u64,
    value: u64,
    done: Option<OrderedOp<u64>>,
}

impl Simulated {
    fn new(seed: u64, threads: usize, keys: u64) -> Self {
        let open = (0..threads).map(|_| None).collect();
        let rng = Rng::new(seed, 0);
        Self { rng, now: 0, keys, map: BTreeMap::new(), events: Vec::new(), open }
    }

    fn run(mut self, calls: usize) -> Vec<Event> {
        while self.events.len() < calls {
            let thread = self.rng.below(self.open.len() as u64) as usize;
            self.now += 1;
            match self.open[thread].take() {
                None => {
                    let (choice, key) = (self.rng.below(14), self.rng.below(self.keys));
                    let (start, value) = (self.now, self.now);
                    self.open[thread] = Some(Open { start, choice, key, value, done: None });
                }
                Some(mut open) => match open.done.take() {
                    None => {
                        open.done = Some(self.effect(&open));
                        self.open[thread] = Some(open);
                    }
                    Some(op) => self.events.push(OrderedEvent {
                        thread,
                        start: open.start,
                        end: self.now,
                        op,
                    }),
                },
            }
        }
        self.finish()
    }

    /// Lets the open calls that have taken effect return.
    fn finish(mut self) -> Vec<Event> {
        for (thread, open) in self.open.into_iter().enumerate() {
            if let Some(Open { start, done: Some(op), .. }) = open {
                self.now += 1;
                self.events.push(OrderedEvent { thread, start, end: self.now, op });
            }
        }
        self.events
    }

    fn effect(&mut self, open: &Open) -> OrderedOp<u64> {
        let Open { choice, key, value, .. } = *open;
        let map = &mut self.map;
        let present = map.get(&key).copied();
        let op = match choice {
            0 | 1 => Op::Get { found: present },
            2 | 3 => {
                map.entry(key).or_insert(value);
                Op::TryInsert { value, outcome: present.map_or(Ok(()), Err) }
            }
            4 => Op::Insert { value, old: map.insert(key, value) },
            5 | 6 => Op::Remove { old: map.remove(&key) },
            7 => {
                map.insert(key, value);
                Op::CompareExchange { expected: present, new: Some(value), outcome: Ok(()) }
            }
            12 | 13 => {
                let (low, high) = (key, (key + value % 3).min(self.keys - 1));
                let mask = if choice == 12 { 0 } else { value << 32 };
                let found = map.range_mut(low..=high).map(|(key, value)| {
                    *value ^= mask;
                    (*key, *value ^ mask)
                });
                return OrderedOp::Range { low, high, mask, found: found.collect() };
            }
            choice => {
                let verb = EndVerb::ALL[choice as usize - 8];
                let found = match verb {
                    EndVerb::First => map.first_key_value().map(|(key, value)| (*key, *value)),
                    EndVerb::Last => map.last_key_value().map(|(key, value)| (*key, *value)),
                    EndVerb::PopFirst => map.pop_first(),
                    EndVerb::PopLast => map.pop_last(),
                };
                return OrderedOp::End { verb, found };
            }
        };
        OrderedOp::Point { key, op }
    }
}

/// Changes one answer, and maybe makes a call one that never returned.
fn spoil(events: &mut [Event], keys: u64, rng: &mut Rng) {
    let at = rng.below(events.len() as u64) as usize;
    let other = events[rng.below(events.len() as u64) as usize].op.clone();
    let event = &mut events[at];
    match (&mut event.op, other) {
        (OrderedOp::End { found, .. }, OrderedOp::End { found: other, .. }) => *found = other,
        (OrderedOp::End { found, .. }, OrderedOp::Point { key, op }) => {
            *found = op.state_after().map(|value| (key, value));
        }
        (OrderedOp::Point { key, .. }, _) => *key = rng.below(keys),
        (OrderedOp::Range { found, .. }, OrderedOp::Range { found: other, .. }) => *found = other,
        (OrderedOp::Range { low, high, mask, found }, _) => {
            if found.pop().is_none() {
                (*low, *high, *mask) = (0, keys - 1, *mask ^ 1);
            }
        }
        (OrderedOp::End { found, .. }, OrderedOp::Range { found: other, .. }) => {
            *found = other.first().copied();
        }
    }
    if rng.below(4) == 0 {
        event.end = PENDING;
    }
}

/// Whether some order explains the calls that are not `done`. It tries every order.
fn explained(events: &[Event], done: &mut [bool], map: &BTreeMap<u64, u64>) -> bool {
    if (0..events.len()).all(|at| done[at] || events[at].end == PENDING) {
        return true;
    }
    for at in 0..events.len() {
        let first = |other: usize| done[other] || events[other].end >= events[at].start;
        if done[at] || !(0..events.len()).all(first) {
            continue;
        }
        if let Some(after) = applied(&events[at], map) {
            done[at] = true;
            let explained = explained(events, done, &after);
            done[at] = false;
            if explained {
                return true;
            }
        }
    }
    false
}

/// The map after a call, if its answer is right. A call that never returned has none.
fn applied(event: &Event, map: &BTreeMap<u64, u64>) -> Option<BTreeMap<u64, u64>> {
    let mut after = map.clone();
    let has_answer = event.end != PENDING;
    match &event.op {
        OrderedOp::Point { key, op } => {
            let state = map.get(key).copied();
            let state = if has_answer { op.apply(state)? } else { op.effect(state) };
            match state {
                Some(value) => after.insert(*key, value),
                None => after.remove(key),
            };
        }
        OrderedOp::End { verb, found } => {
            let entry = if verb.is_last() { after.last_entry() } else { after.first_entry() };
            let entry = entry.map(|entry| {
                let pair = (*entry.key(), *entry.get());
                if verb.pops() {
                    entry.remove();
                }
                pair
            });
            if has_answer && entry != *found {
                return None;
            }
        }
        OrderedOp::Range { low, high, mask, found } => {
            let mut entries = Vec::new();
            for (key, value) in after.range_mut(low..=high) {
                entries.push((*key, *value));
                *value ^= mask;
            }
            if has_answer && entries != *found {
                return None;
            }
        }
    }
    Some(after)
}

fn brute(events: &[Event]) -> bool {
    explained(events, &mut vec![false; events.len()], &BTreeMap::new())
}

#[test]
fn verdicts_are_those_of_trying_every_order() {
    let mut counts = [0; 2];
    for seed in 0..crate::size::pick(60_000, 6000, 20) as u64 {
        let mut rng = Rng::new(seed, 7);
        let keys = 1 + rng.below(4);
        let threads = 2 + rng.below(3) as usize;
        let calls = 2 + rng.below(6) as usize;
        let mut events = Simulated::new(seed, threads, keys).run(calls);
        assert!(brute(&events), "the simulated map is wrong: {events:#?}");
        assert_eq!(judge(&events), Verdict::Linearizable, "{events:#?}");
        for _ in 0..rng.below(3) {
            spoil(&mut events, keys, &mut rng);
        }
        let wanted = brute(&events);
        counts[usize::from(wanted)] += 1;
        match judge(&events) {
            Verdict::Linearizable => assert!(wanted, "seed {seed}: {events:#?}"),
            Verdict::Violation(violation) => {
                assert!(!wanted, "seed {seed}: {events:#?}\n{violation}");
                assert!((1..=events.len()).contains(&violation.calls.len()), "{violation}");
            }
            Verdict::Undecided { what } => panic!("seed {seed}: {what}"),
        }
    }
    assert!(counts.iter().all(|&count| count > 3), "{counts:?}");
}

#[test]
fn reports_are_not_linearizable_either() {
    for seed in 0..crate::size::pick(3000, 300, 3) as u64 {
        let mut rng = Rng::new(seed, 9);
        let mut events = Simulated::new(seed, 3, 4).run(60);
        spoil(&mut events, 4, &mut rng);
        let keys: Vec<u64> = (0..4).collect();
        let number = |key: &u64| keys.iter().position(|other| other == key).unwrap() as u32;
        let call = |event: &Event| Call {
            thread: event.thread,
            start: event.start,
            end: event.end,
            op: event.op.renamed(number),
        };
        let calls: Vec<Numbered> = events.iter().map(call).collect();
        if let Err(Stop::Unexplained(at)) = ways::explain(&calls, 4, WORK_MAX) {
            let (states, shown) = report::calls(&calls, 4, at);
            let shown: Vec<Event> = shown
                .iter()
                .map(|call| OrderedEvent {
                    thread: call.thread,
                    start: call.start,
                    end: call.end,
                    op: call.op.renamed(|key| u64::from(*key)),
                })
                .collect();
            assert!(shown.len() <= 12, "seed {seed}: {shown:#?}");
            for state in states {
                let map = state.iter().map(|(key, value)| (u64::from(*key), *value)).collect();
                let explained = explained(&shown, &mut vec![false; shown.len()], &map);
                assert!(!explained, "seed {seed}: {shown:#?} from {map:?}");
            }
        }
    }
}

/// Thousands of calls of four threads, among them a third on the ends, are decided in seconds.
#[test]
fn a_long_history_is_decided_in_seconds() {
    let calls = crate::size::pick(100_000, 8000, 200);
    for keys in [3, 40, 2000] {
        let mut events = Simulated::new(11, 4, keys).run(calls);
        let begun = Instant::now();
        assert_eq!(judge(&events), Verdict::Linearizable);
        let time = begun.elapsed();
        println!("{keys} keys: {calls} calls in {time:?}");
        assert!(cfg!(miri) || time.as_secs() < 10, "{keys} keys: {time:?}");
        // One answer late in the history is wrong.
        let late = events.len() * 9 / 10;
        let pop = events[late..].iter_mut().find_map(|event| match &mut event.op {
            OrderedOp::End { verb: EndVerb::PopFirst, found: Some((_, value)) } => Some(value),
            _ => None,
        });
        *pop.expect("a pop") += 1_000_000_000;
        let begun = Instant::now();
        let violation = violation(&events);
        println!(
            "{keys} keys: a report of {} calls in {:?}",
            violation.calls.len(),
            begun.elapsed()
        );
        assert!(violation.calls.len() <= 12, "{violation}");
    }
}
