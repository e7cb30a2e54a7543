//! Checks histories one after the other, without allocating for each.

use crate::history::{Event, Op};
use crate::linearizable::{Call, Refusal, Violation, judge_key, show_state};
use smallvec::SmallVec;

/// Separates histories by key, and keeps its memory for the next history.
#[derive(Debug)]
pub(super) struct Judge {
    /// The calls of each thread, grouped by key and in order within each key.
    threads: Vec<Lane>,
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
    /// The number of keys whose check was given up.
    pub(super) undecided: u64,
}

impl Judge {
    pub(super) fn new(keys: usize) -> Self {
        Self { threads: Vec::new(), keys }
    }

    /// Checks the calls of threads on an index that was empty before.
    pub(super) fn judge(
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
                Err(Refusal::Undecided) => judged.undecided += 1,
                Err(Refusal::Unexplained(bad)) => {
                    return Err(Violation::of(format!("key {}", show(key)), &bad, show_state));
                }
            }
        }
        Ok(judged)
    }
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
