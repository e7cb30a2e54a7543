//! Histories of maps that do not implement [`silvics::OrderedIndex`]: those of other crates.
//!
//! The threads follow the script that they follow on an index. A map may lack a write of the
//! script: another write replaces it. Single calls replace batches. A history contains the calls
//! whose answers the map returns; [`ForeignCalls::write`] says why that is enough.

use super::traffic::{KEYS, ROUNDS, STRIDE, Script, TURNS, Turn};
use super::{History, Plan, Ranges, Recorded, Report, Spare, Write, buffer, record_all, recorded};
use crate::clock::Clock;
use crate::crew::together;
use crate::history::{Calls, Event, Op, observe};
use crate::{Outcome, TestKey};
use silvics::IndexKey;

/// A map whose histories are recorded.
pub trait Foreign<K: IndexKey + ?Sized>: Send + Sync {
    /// The calls of one thread.
    fn calls(&self) -> Box<dyn ForeignCalls<K> + '_>;

    /// Whether the map can scan from any key.
    fn scans(&self) -> bool;
}

/// The calls of one thread on a [`Foreign`] map.
pub trait ForeignCalls<K: IndexKey + ?Sized> {
    /// Returns the value of a key.
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64>;

    /// Makes a write and returns it with its answer.
    ///
    /// Returns `None` if the map has no such write, or if the call changed nothing and does not
    /// return the value that it found. A history stays sound without such a call, because a call
    /// without effect changes the answer of no other call.
    fn write(&mut self, key: K::Ref<'_>, write: Write) -> Option<Op>;

    /// Visits up to `limit` entries, ascending, from the first key that is not less than `from`.
    /// It is called only if [`Foreign::scans`] returns true.
    fn scan(&mut self, from: K::Ref<'_>, limit: usize, visit: &mut dyn FnMut(K::Ref<'_>, u64));

    /// Unpins the thread and pins it again, if the calls hold a pin.
    fn refresh(&mut self);
}

/// Records histories of maps made by `make`, and checks them, as [`super::verify`] does.
pub fn verify_foreign<K: TestKey + ?Sized>(
    plan: &Plan,
    clock: &Clock,
    make: fn() -> Box<dyn Foreign<K>>,
    stop: impl Fn() -> bool + Sync,
) -> Report {
    let keys: Vec<K::Owned> = (0..u64::from(KEYS)).map(K::nth).collect();
    record_all::<K>(plan, &keys, stop, |number, spare| {
        record(plan, number, clock, &keys, &*make(), spare)
    })
}

/// Records history `number`. At its end every key is looked up, and a scan reads the whole map.
fn record<K: TestKey + ?Sized>(
    plan: &Plan,
    number: u64,
    clock: &Clock,
    keys: &[K::Owned],
    map: &dyn Foreign<K>,
    spare: &Spare,
) -> Recorded {
    recorded(plan, number, |threads, history| {
        let calls = together(threads, |thread, crew| {
            let mut caller = Caller::<K>::new(map, clock, keys, thread, buffer(spare));
            let mut script = Script::new(plan, number, thread, (false, Ranges::None));
            for _ in 0..ROUNDS {
                let pattern = script.pattern();
                crew.meet()?;
                for turn in 0..TURNS {
                    let turn = script.turn(pattern, turn);
                    caller.call(turn, &mut script)?;
                    caller.map.refresh();
                }
            }
            Ok(caller.calls)
        })?;
        let history = history.insert(History::of(number, calls));
        let events = std::mem::take(&mut history.threads[0]);
        let mut caller = Caller::<K>::new(map, clock, keys, 0, events);
        for key in 0..KEYS {
            caller.get(key);
        }
        let scanned = if map.scans() { caller.scan(0, KEYS) } else { Ok(()) };
        history.scans += caller.calls.scans;
        history.parts += caller.calls.parts;
        history.threads[0] = caller.calls.events;
        scanned
    })
}

/// One thread of a history.
struct Caller<'a, K: TestKey + ?Sized> {
    map: Box<dyn ForeignCalls<K> + 'a>,
    scans: bool,
    clock: &'a Clock,
    keys: &'a [K::Owned],
    thread: usize,
    calls: Calls,
}

impl<'a, K: TestKey + ?Sized> Caller<'a, K> {
    fn new(
        map: &'a dyn Foreign<K>,
        clock: &'a Clock,
        keys: &'a [K::Owned],
        thread: usize,
        events: Vec<Event>,
    ) -> Self {
        let calls = Calls { events, ..Calls::default() };
        Self { map: map.calls(), scans: map.scans(), clock, keys, thread, calls }
    }

    fn key(&self, number: u32) -> K::Ref<'a> {
        K::borrow(&self.keys[number as usize])
    }

    fn call(&mut self, turn: Turn, script: &mut Script) -> Outcome {
        match turn {
            Turn::Scan { first, count, .. } if self.scans => return self.scan(first, count),
            Turn::End(_) | Turn::Range { .. } => unreachable!("the script has no such calls"),
            Turn::Get(key) | Turn::Scan { first: key, .. } => script.saw(key, self.get(key)),
            Turn::GetMany { first, count } => {
                for key in first..first + count {
                    self.get(key);
                }
            }
            Turn::InsertMany { first, count, value } => {
                for at in 0..count {
                    let value = value + STRIDE * u64::from(at);
                    self.write(first + at, Write::Insert { value });
                }
            }
            Turn::Write(key, write) => {
                if let Some(op) = self.write(key, write) {
                    script.saw(key, op.state_after());
                }
            }
        }
        Ok(())
    }

    fn get(&mut self, key: u32) -> Option<u64> {
        let lent = self.key(key);
        let start = self.clock.start();
        let found = self.map.get(lent);
        let end = self.clock.end();
        self.push(key, start, end, Op::Get { found });
        found
    }

    /// Makes the write, or a similar one that the map has.
    fn write(&mut self, key: u32, write: Write) -> Option<Op> {
        let value = match write {
            Write::TryInsert { value } | Write::Insert { value } => Some(value),
            Write::CompareExchange { new, .. } => new,
            Write::Remove => None,
        };
        let others = match value {
            Some(value) => [Write::TryInsert { value }, Write::Insert { value }],
            None => [Write::Remove; 2],
        };
        for write in [write].into_iter().chain(others) {
            let lent = self.key(key);
            let start = self.clock.start();
            let op = self.map.write(lent, write);
            let end = self.clock.end();
            if let Some(op) = op {
                self.push(key, start, end, op);
                return Some(op);
            }
        }
        None
    }

    fn scan(&mut self, first: u32, count: u32) -> Outcome {
        let (from, numbers) = (first as usize, count as usize);
        let keys = &self.keys[from..][..numbers];
        let mut seen = Vec::with_capacity(numbers);
        let (low, high) = (K::borrow(&keys[0]), &keys[numbers - 1]);
        let start = self.clock.start();
        self.map.scan(low, numbers, &mut |key, value| {
            let key = K::to_owned(key);
            if key <= *high {
                seen.push((key, value));
            }
        });
        let end = self.clock.end();
        self.calls.scans += 1;
        self.calls.parts += u64::from(count) - 1;
        observe::<K>(keys, first, false, &seen, |key, found| {
            self.push(key, start, end, Op::Get { found });
        })
    }

    fn push(&mut self, key: u32, start: u64, end: u64, op: Op) {
        self.calls.events.push(Event { thread: self.thread, key, start, end, op });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Until, Wrong};
    use silvics_sync::Mutex;
    use silvics_sync::atomic::{AtomicU64, Ordering};
    use std::collections::BTreeMap;

    /// A locked map that inserts, removes and scans, with one of two mistakes if a test asks for
    /// it.
    #[derive(Default)]
    struct Locked {
        map: Mutex<BTreeMap<u64, u64>>,
        removals: AtomicU64,
        mistake: Option<Mistake>,
    }

    #[derive(Clone, Copy)]
    enum Mistake {
        /// One removal returns the value and leaves it in the map.
        Leaves,
        /// Scans skip their first entry.
        Skips,
    }

    impl Locked {
        fn with(mistake: Mistake) -> Self {
            Self { mistake: Some(mistake), ..Self::default() }
        }
    }

    impl Foreign<u64> for Locked {
        fn calls(&self) -> Box<dyn ForeignCalls<u64> + '_> {
            Box::new(self)
        }
        fn scans(&self) -> bool {
            true
        }
    }

    impl ForeignCalls<u64> for &Locked {
        fn get(&mut self, key: u64) -> Option<u64> {
            self.map.lock().get(&key).copied()
        }
        fn write(&mut self, key: u64, write: Write) -> Option<Op> {
            match write {
                // Some maps do not return the value that is present, so this one does not either.
                Write::TryInsert { value } => {
                    let mut map = self.map.lock();
                    if map.contains_key(&key) {
                        return None;
                    }
                    map.insert(key, value);
                    Some(Op::TryInsert { value, outcome: Ok(()) })
                }
                Write::Remove => {
                    let number = self.removals.fetch_add(1, Ordering::Relaxed);
                    let leaves = matches!(self.mistake, Some(Mistake::Leaves)) && number == 500;
                    let mut map = self.map.lock();
                    let old = if leaves { map.get(&key).copied() } else { map.remove(&key) };
                    Some(Op::Remove { old })
                }
                Write::Insert { .. } | Write::CompareExchange { .. } => None,
            }
        }
        fn scan(&mut self, from: u64, limit: usize, visit: &mut dyn FnMut(u64, u64)) {
            let skipped = usize::from(matches!(self.mistake, Some(Mistake::Skips)));
            for (&key, &value) in self.map.lock().range(from..).skip(skipped).take(limit) {
                visit(key, value);
            }
        }
        fn refresh(&mut self) {}
    }

    fn judged(make: fn() -> Box<dyn Foreign<u64>>) -> Report {
        let plan = Plan { until: Until::Histories(4), ..Plan::default() };
        verify_foreign(&plan, &Clock::new(), make, || false)
    }

    #[test]
    fn a_map_that_returns_some_answers_passes() {
        let report = judged(|| Box::new(Locked::default()));
        assert!(report.found.is_none(), "{report:?}");
        assert_eq!((report.histories, report.undecided), (4, 0));
        let events = report.last.unwrap().threads.concat();
        assert!(events.iter().any(|event| matches!(event.op, Op::TryInsert { .. })));
        assert!(!events.iter().any(|event| matches!(event.op, Op::Insert { .. })));
    }

    #[test]
    fn a_map_with_a_mistake_is_found() {
        let leaves = judged(|| Box::new(Locked::with(Mistake::Leaves)));
        let skips = judged(|| Box::new(Locked::with(Mistake::Skips)));
        for report in [leaves, skips] {
            let found = report.found.expect("the mistake");
            assert!(matches!(found.what, Wrong::History(_)), "{found:?}");
        }
    }
}
