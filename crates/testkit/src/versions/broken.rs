//! Maps with versions under one lock, each with one mistake that the checker must find. The map
//! without a mistake must pass, and so must ours.

use super::*;
use crate::verify::Until;
use crate::verify::Wrong as Fault;
use silvics::versions::{Drawn, Given};
use silvics::{BlockTree, WordTree};
use silvics_sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::yield_now;

/// The mistakes. A map that lets its lock go in the middle does so without looking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// A write draws its number, lets the lock go, and then puts its version.
    NumberBeforeValue,
    /// A batch lets the lock go between two of its versions.
    BatchInPart,
    /// `prune` drops what a snapshot can see.
    PrunedUnderSnapshot,
    /// A read through a snapshot finds the newest version.
    SnapshotSeesNewest,
    /// A write lets the lock go after it has compared the newest version with the expected one.
    LostCondition,
    /// A write with a given number lets the lock go after it has compared it with the watermark.
    LateKept,
    /// A snapshot sometimes reads at the number before the present one.
    OldSnapshot,
    /// `get_latest` sometimes finds the version before the newest one.
    OldRead,
    /// `prune` drops nothing.
    PruneKeeps,
    /// A new snapshot forgets the others, so `prune` drops what these can see.
    ReadersForgotten,
}

/// The state of a map.
#[derive(Default)]
struct State {
    now: u64,
    horizon: u64,
    /// The versions of each key.
    keys: BTreeMap<u32, BTreeMap<u64, Option<u64>>>,
    /// The numbers of live snapshots, each with the number of its snapshots.
    snapshots: BTreeMap<u64, usize>,
    calls: u64,
}

impl State {
    fn at(&self, key: u32, number: u64) -> Found {
        let (number, value) = self.keys.get(&key)?.range(..=number).next_back()?;
        value.map(|value| (*number, value))
    }

    fn latest(&self, key: u32) -> Option<u64> {
        self.at(key, u64::MAX).map(|(number, _)| number)
    }

    /// Whether this is one of every eight calls.
    fn is_eighth(&mut self) -> bool {
        self.calls += 1;
        self.calls.is_multiple_of(8)
    }
}

struct Locked {
    state: Arc<Mutex<State>>,
    mistake: Mistake,
    drawn: bool,
    retains_all: bool,
}

impl Locked {
    /// Lets the lock go for a while, if this is the mistake.
    fn pause<'s>(
        &self,
        mistake: Mistake,
        guard: silvics_sync::MutexGuard<'s, State>,
        state: &'s Mutex<State>,
    ) -> silvics_sync::MutexGuard<'s, State> {
        if self.mistake != mistake {
            return guard;
        }
        drop(guard);
        yield_now();
        state.lock()
    }

    fn horizon(&self, state: &State) -> u64 {
        if self.retains_all { state.horizon } else { state.now }
    }

    fn put(&self, writes: &[Write], given: Option<u64>) -> Answer {
        let mut state = self.state.lock();
        if let Some(given) = given {
            if given <= state.now {
                return Answer::TooLate(state.now);
            }
            if state.keys.get(&writes[0].key).is_some_and(|of| of.contains_key(&given)) {
                return Answer::Exists(given);
            }
        }
        for write in writes {
            let latest = state.latest(write.key);
            if !write.expected.accepts(latest) {
                return Answer::Conflict(latest);
            }
            let newest = state.keys.get(&write.key).and_then(|of| of.keys().next_back());
            if let (Some(given), Some(newest)) = (given, newest)
                && write.expected != Expected::Any
                && *newest >= given
            {
                return Answer::NotNewer(*newest);
            }
        }
        if self.drawn && writes.len() == 1 && writes[0].value.is_none() {
            let is_absent = state.latest(writes[0].key).is_none();
            if writes[0].expected == Expected::Any && is_absent {
                return Answer::Nothing;
            }
        }
        if writes.iter().any(|write| write.expected != Expected::Any) {
            state = self.pause(Mistake::LostCondition, state, &self.state);
        }
        let number = given.unwrap_or(state.now + 1);
        if given.is_none() {
            state.now = number;
        }
        state = self.pause(Mistake::NumberBeforeValue, state, &self.state);
        if given.is_some() {
            state = self.pause(Mistake::LateKept, state, &self.state);
        }
        for write in writes {
            state.keys.entry(write.key).or_default().insert(number, write.value);
            state = self.pause(Mistake::BatchInPart, state, &self.state);
        }
        Answer::Done(number)
    }

    fn begin(&self, at: Option<u64>) -> Result<Pin, Unreadable> {
        let mut state = self.state.lock();
        let mut number = at.unwrap_or(state.now);
        if number > state.now {
            return Err(Unreadable::Future(state.now));
        }
        let horizon = self.horizon(&state);
        if number < horizon && !state.snapshots.contains_key(&number) {
            return Err(Unreadable::Pruned(horizon));
        }
        if self.mistake == Mistake::OldSnapshot && at.is_none() && state.is_eighth() {
            number = number.saturating_sub(1);
        }
        if self.mistake == Mistake::ReadersForgotten {
            state.snapshots.clear();
        }
        *state.snapshots.entry(number).or_default() += 1;
        Ok(Pin { state: Arc::clone(&self.state), mistake: self.mistake, number })
    }
}

impl Subject for Locked {
    fn write(&self, write: &Write, given: Option<u64>) -> Result<Answer, Failure> {
        Ok(self.put(&[*write], given))
    }

    fn commit(&self, writes: &[Write]) -> Result<Answer, Failure> {
        // A batch of one deletion notes it even if the key is absent.
        let answer = self.put(writes, None);
        if answer == Answer::Nothing {
            let mut state = self.state.lock();
            state.now += 1;
            let number = state.now;
            state.keys.entry(writes[0].key).or_default().insert(number, None);
            return Ok(Answer::Done(number));
        }
        Ok(answer)
    }

    fn get_latest(&self, key: u32) -> Found {
        let mut state = self.state.lock();
        let found = state.at(key, u64::MAX);
        if self.mistake == Mistake::OldRead && state.is_eighth() {
            return found.and_then(|(number, _)| state.at(key, number - 1));
        }
        found
    }

    fn get_at(&self, key: u32, at: u64) -> Result<Found, Unreadable> {
        let state = self.state.lock();
        let horizon = self.horizon(&state);
        match at {
            _ if at > state.now => Err(Unreadable::Future(state.now)),
            _ if at < horizon => Err(Unreadable::Pruned(horizon)),
            _ => Ok(state.at(key, at)),
        }
    }

    fn range_at(
        &self,
        at: u64,
        keys: (u32, u32),
    ) -> Result<Result<Vec<(u32, u64)>, Unreadable>, Failure> {
        match self.begin(Some(at)) {
            Ok(pin) => pin.range(keys, false).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn snapshot(&self, at: Option<u64>) -> Result<Box<dyn Reader>, Unreadable> {
        self.begin(at).map(|pin| Box::new(pin) as Box<dyn Reader>)
    }

    fn history(&self, key: u32) -> Vec<(u64, Option<u64>)> {
        let state = self.state.lock();
        let versions = state.keys.get(&key).into_iter().flatten();
        versions.map(|(number, value)| (*number, *value)).rev().collect()
    }

    fn now(&self) -> u64 {
        self.state.lock().now
    }

    fn prune(&self, number: u64) -> Result<(), u64> {
        let mut state = self.state.lock();
        if number > state.now {
            return Err(state.now);
        }
        if self.mistake == Mistake::PruneKeeps {
            return Ok(());
        }
        state.horizon = state.horizon.max(number);
        let horizon = self.horizon(&state);
        let mut readers: BTreeSet<u64> = state.snapshots.keys().copied().collect();
        if self.mistake == Mistake::PrunedUnderSnapshot {
            readers.clear();
        }
        readers.insert(horizon);
        for versions in state.keys.values_mut() {
            let numbers: Vec<u64> = versions.keys().copied().collect();
            for pair in numbers.windows(2) {
                if readers.range(pair[0]..pair[1]).next().is_none() && pair[0] <= horizon {
                    versions.remove(&pair[0]);
                }
            }
        }
        Ok(())
    }

    fn publish(&self, number: u64) -> Result<(), u64> {
        let mut state = self.state.lock();
        if number < state.now {
            return Err(state.now);
        }
        state.now = number;
        Ok(())
    }

    fn at_rest(self: Box<Self>, _: usize) -> Outcome {
        Ok(())
    }
}

/// A snapshot.
struct Pin {
    state: Arc<Mutex<State>>,
    mistake: Mistake,
    number: u64,
}

impl Reader for Pin {
    fn number(&self) -> u64 {
        self.number
    }

    fn get(&self, key: u32) -> Found {
        let newest = self.mistake == Mistake::SnapshotSeesNewest;
        self.state.lock().at(key, if newest { u64::MAX } else { self.number })
    }

    fn range(&self, keys: (u32, u32), _: bool) -> Result<Vec<(u32, u64)>, Failure> {
        let state = self.state.lock();
        let found = |key| state.at(key, self.number).map(|(_, value)| (key, value));
        Ok((keys.0..=keys.1).filter_map(found).collect())
    }

    fn again(&self) -> Box<dyn Reader> {
        *self.state.lock().snapshots.entry(self.number).or_default() += 1;
        Box::new(Self { state: Arc::clone(&self.state), ..*self })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Some(count) = state.snapshots.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                state.snapshots.remove(&self.number);
            }
        }
    }
}

/// Judges histories of maps with a mistake.
fn judged(mistake: Mistake, histories: u64) -> Report {
    let make = move |drawn: bool| {
        move |_: &Options, retain: Retain| -> Result<Box<dyn Subject>, Failure> {
            let (state, retains_all) = (Arc::default(), retain == Retain::All);
            Ok(Box::new(Locked { state, mistake, drawn, retains_all }))
        }
    };
    let plan = Plan { until: Until::Histories(histories), ..Plan::default() };
    let (drawn, given) = (make(true), make(false));
    let makers = Makers { drawn: &drawn, given: &given };
    verify_versions(&plan, &Clock::new(), makers, || false)
}

/// The histories within which each mistake must be found.
const HISTORIES: u64 = 60;

/// Checks that a mistake is found for one of these reasons, by few calls.
fn is_found(mistake: Mistake, reasons: &[&str]) {
    let found = judged(mistake, HISTORIES).found;
    let found = found.unwrap_or_else(|| panic!("{mistake:?} is not found"));
    let text = found.what.to_string();
    println!("{mistake:?}, history {}: {text}", found.history);
    assert!(reasons.iter().any(|reason| text.contains(reason)), "{mistake:?}: {text}");
    let calls = match &found.what {
        Fault::Versions(wrong) => &wrong.calls,
        Fault::History(violation) => &violation.calls,
        Fault::Other(reason) => panic!("{mistake:?}: {reason}"),
    };
    assert!((1..=16).contains(&calls.len()), "{mistake:?}: {text}");
}

/// The reports of a reader that does not find the state at its number. The other reads decide which
/// one names a mistake: they may have seen a version that a snapshot has lost, or not.
const MISREAD: [&str; 3] = ["misses version", "sees a part of batch", "is gone"];

/// The reports of other calls that meet a write which is visible in part.
const UNDER_WAY: [&str; 4] = [
    "a conditional write is lost",
    "no moment has",
    "is written after",
    "is left, which was pruned",
];

#[test]
fn a_version_that_is_visible_before_its_value_is_found() {
    is_found(Mistake::NumberBeforeValue, &[&MISREAD[..], &UNDER_WAY].concat());
}

#[test]
fn a_batch_that_is_visible_in_part_is_found() {
    is_found(Mistake::BatchInPart, &[&MISREAD[..], &UNDER_WAY].concat());
}

#[test]
fn a_version_that_is_pruned_under_a_snapshot_is_found() {
    is_found(Mistake::PrunedUnderSnapshot, &MISREAD);
    is_found(Mistake::ReadersForgotten, &[&MISREAD[..], &["refused at the number of"]].concat());
}

#[test]
fn a_snapshot_that_sees_a_later_write_is_found() {
    // A later deletion looks like a version that is missing.
    is_found(Mistake::SnapshotSeesNewest, &[&MISREAD[..], &["sees the later version"]].concat());
}

#[test]
fn a_lost_conditional_write_is_found() {
    is_found(Mistake::LostCondition, &["a conditional write is lost", "not linearizable"]);
}

#[test]
fn a_late_version_is_found() {
    let reasons = ["misses version", "is written after", "has got version", "not linearizable"];
    is_found(Mistake::LateKept, &reasons);
}

#[test]
fn old_answers_are_found() {
    // Versions that such a snapshot needs are dropped before it begins.
    is_found(Mistake::OldSnapshot, &[&MISREAD[..], &["goes back"]].concat());
    is_found(
        Mistake::OldRead,
        &["no moment has", "not linearizable", "is written after", "goes back"],
    );
}

#[test]
fn a_prune_that_drops_nothing_is_found() {
    is_found(Mistake::PruneKeeps, &["is left, which was pruned"]);
}

fn passes(report: &Report, histories: u64) {
    if let Some(found) = &report.found {
        panic!("history {}: {}", found.history, found.what);
    }
    assert_eq!((report.histories, report.undecided), (histories, 0), "{report:?}");
}

#[test]
fn a_map_without_a_mistake_passes() {
    passes(&judged(Mistake::None, 2 * HISTORIES), 2 * HISTORIES);
}

#[test]
fn our_map_passes() {
    let words = Makers {
        drawn: &versioned::<u64, Drawn, WordTree<u64>>,
        given: &versioned::<u64, Given, WordTree<u64>>,
    };
    let strings = Makers {
        drawn: &versioned::<String, Drawn, BlockTree<[u8]>>,
        given: &versioned::<String, Given, BlockTree<[u8]>>,
    };
    for makers in [words, strings] {
        let plan = Plan { until: Until::Histories(HISTORIES), ..Plan::default() };
        passes(&verify_versions(&plan, &Clock::new(), makers, || false), HISTORIES);
    }
}
