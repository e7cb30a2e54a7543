//! Checks histories one after the other, without allocating for each.

use super::History;
use crate::history::{Event, Op};
use crate::linearizable::ordered::{Numbered, OPEN_ALWAYS, OrderedOp, judge_numbered};
use crate::linearizable::{Call, Refusal, Verdict, Violation, judge_key, show_state};
use smallvec::SmallVec;

/// The comparisons for a history with ends: about a second, so that the search is not taken for a
/// call that never returns.
const WORK_MAX: u64 = 1 << 28;

/// Separates histories by key, and keeps its memory for the next history.
#[derive(Debug)]
pub(super) struct Judge {
    /// The calls of each thread, grouped by key and in order within each key.
    threads: Vec<Lane>,
    /// The calls of a history with ends or atomic ranges.
    whole: Vec<Numbered>,
    keys: usize,
}

#[derive(Debug, Default)]
struct Lane {
    calls: Vec<Call<Op>>,
    /// The index at which each key's calls begin, and the end of the last key.
    begins: Vec<u32>,
}

/// The result of checks.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The number of events that an order explains.
    pub(super) events: u64,
    /// The number of checks that were given up, each of a key or of a whole history.
    pub(super) undecided: u64,
    /// The first of these checks, and the limit that it met.
    pub(super) given_up: Option<String>,
}

impl Judge {
    pub(super) fn new(keys: usize) -> Self {
        Self { threads: Vec::new(), whole: Vec::new(), keys }
    }

    /// Checks a history of an index that was empty before.
    pub(super) fn judge(
        &mut self,
        history: &History,
        show: impl Fn(usize) -> String,
    ) -> Result<Judged, Violation> {
        if history.ends.is_empty() {
            return self.by_key(&history.threads, show);
        }
        self.whole.clear();
        let points = history.threads.iter().flatten().map(|event| Call {
            thread: event.thread,
            start: event.start,
            end: event.end,
            op: OrderedOp::Point { key: event.key, op: event.op },
        });
        self.whole.extend(points);
        self.whole.extend(history.ends.iter().map(|event| Call {
            thread: event.thread,
            start: event.start,
            end: event.end,
            op: event.op.clone(),
        }));
        match judge_numbered(&self.whole, self.keys, WORK_MAX, |key| show(key as usize)) {
            Verdict::Linearizable => {
                Ok(Judged { events: self.whole.len() as u64, ..Judged::default() })
            }
            Verdict::Violation(violation) => Err(violation),
            Verdict::Undecided { what } => {
                // The calls on each key may still be wrong. Among many threads, to search them all
                // would take longer than a call is given to return.
                if history.threads.len() <= OPEN_ALWAYS as usize {
                    self.by_key(&seen_by_key(history), show)?;
                }
                Ok(Judged { events: 0, undecided: 1, given_up: Some(what) })
            }
        }
    }

    /// Checks the calls on each key.
    fn by_key(
        &mut self,
        threads: &[Vec<Event>],
        show: impl Fn(usize) -> String,
    ) -> Result<Judged, Violation> {
        self.threads.resize_with(threads.len(), Lane::default);
        for (lane, events) in self.threads.iter_mut().zip(threads) {
            lane.group(events, self.keys);
        }
        let mut judged = Judged::default();
        for key in 0..self.keys {
            let lanes = self.threads.iter().map(|lane| lane.of(key));
            let lanes: SmallVec<[&[Call<Op>]; 8]> = lanes.filter(|l| !l.is_empty()).collect();
            match judge_key(&lanes, None) {
                Ok(()) => judged.events += lanes.iter().map(|lane| lane.len() as u64).sum::<u64>(),
                Err(Refusal::Undecided) => {
                    judged.undecided += 1;
                    judged.given_up.get_or_insert_with(|| format!("key {}", show(key)));
                }
                Err(Refusal::Unexplained(bad)) => {
                    return Err(Violation::of(format!("key {}", show(key)), &bad, show_state));
                }
            }
        }
        Ok(judged)
    }
}

/// The calls of each thread, and for each entry that a call on an end or a range found, the call on
/// its key that it implies.
fn seen_by_key(history: &History) -> Vec<Vec<Event>> {
    let mut threads = history.threads.clone();
    for event in &history.ends {
        let (thread, start, end) = (event.thread, event.start, event.end);
        for (&key, op) in event.op.on_keys() {
            threads[thread].push(Event { thread, key, start, end, op });
        }
    }
    for events in &mut threads {
        events.sort_by_key(|event| event.start);
    }
    threads
}

impl Lane {
    /// Sorts events by key with a counting sort, which keeps the order of each key's calls.
    fn group(&mut self, events: &[Event], keys: usize) {
        self.begins.clear();
        self.begins.resize(keys + 1, 0);
        for event in events {
            self.begins[event.key as usize + 1] += 1;
        }
        for key in 0..keys {
            self.begins[key + 1] += self.begins[key];
        }
        let filler = Call { thread: 0, start: 0, end: 0, op: Op::Get { found: None } };
        self.calls.clear();
        self.calls.resize(events.len(), filler);
        // Meanwhile `begins[key]` moves to the key's end, which is where the next key begins.
        for &Event { thread, key, start, end, op } in events {
            let at = &mut self.begins[key as usize];
            self.calls[*at as usize] = Call { thread, start, end, op };
            *at += 1;
        }
        self.begins.rotate_right(1);
        self.begins[0] = 0;
    }

    fn of(&self, key: usize) -> &[Call<Op>] {
        &self.calls[self.begins[key] as usize..self.begins[key + 1] as usize]
    }
}
