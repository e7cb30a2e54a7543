//! The search for an order: follows all ways through a history.

use super::call::{Step, depend};
use super::state::{Base, Differences, State, put};
use super::{Numbered, OPEN_ALWAYS, WAYS_MAX};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::Cell;

/// A state of the map, and the open calls that have not taken effect in it, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Way {
    differs: Differences,
    open: SmallVec<[u32; 6]>,
}

/// An invocation or a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) time: u64,
    /// `false` for an invocation, which comes before returns at an equal time.
    pub(super) returns: bool,
    /// The number of the call.
    pub(super) call: u32,
}

/// The reason why the search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// No order explains the calls up to the moment with this number.
    Unexplained(usize),
    /// The search was given up.
    Undecided(Limit),
}

/// The limit at which a search is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Too many ways at one return, beside this number of calls.
    AtOnce { under_way: usize },
    /// Too many comparisons in all.
    InAll,
}

impl Limit {
    /// The limit, with the remedy.
    pub(super) fn told(self) -> String {
        match self {
            Self::AtOnce { under_way } => format!(
                "{under_way} calls were under way at once, in more than {WAYS_MAX} orders. Up to \
                 {OPEN_ALWAYS} calls with answers stay within that: record fewer threads, and \
                 leave out calls that never returned"
            ),
            Self::InAll => String::from(
                "too many orders of overlapping calls were tried: record fewer threads, or check a \
                 shorter history",
            ),
        }
    }
}

/// The invocations and returns of calls in the order of time.
pub(super) fn moments(calls: &[Numbered]) -> Vec<Moment> {
    let mut moments = Vec::with_capacity(2 * calls.len());
    for (number, call) in (0..).zip(calls) {
        moments.push(Moment { time: call.start, returns: false, call: number });
    }
    for (number, call) in (0..).zip(calls) {
        if !call.is_pending() {
            moments.push(Moment { time: call.end, returns: true, call: number });
        }
    }
    moments.sort(); // a stable sort is fast here: each thread's moments are sorted already
    moments
}

/// Searches for an order of calls on keys with numbers below `keys`, from the empty map on, by at
/// most `work` comparisons.
pub(super) fn explain(calls: &[Numbered], keys: usize, mut work: u64) -> Result<(), Stop> {
    let mut ways = Ways::new(calls, Base::empty(keys), keys);
    ways.follow(&moments(calls), &mut work)
}

/// All ways through the moments so far.
#[derive(Debug)]
pub(super) struct Ways {
    steps: Vec<Option<Step>>,
    base: Base,
    all: Vec<Way>,
    under_way: usize,
}

impl Ways {
    pub(super) fn new(calls: &[Numbered], base: Base, keys: usize) -> Self {
        let steps = calls.iter().map(|call| Step::of(call, keys as u32)).collect();
        Self { steps, base, all: vec![Way::default()], under_way: 0 }
    }

    /// Begins in one of `states`, which are the entries of a map.
    pub(super) fn beginning(mut self, states: &[Vec<(u32, u64)>]) -> Self {
        let way = |entries: &Vec<(u32, u64)>| {
            let differs = entries.iter().map(|(key, value)| (*key, Some(*value))).collect();
            Way { differs, ..Way::default() }
        };
        self.all = states.iter().map(way).collect();
        self.settle_base();
        self
    }

    /// The states of all ways.
    pub(super) fn states(&self) -> Vec<Vec<(u32, u64)>> {
        let state = |way: &Way| State { base: &self.base, differs: &way.differs }.entries();
        let mut states: Vec<_> = self.all.iter().map(state).collect();
        states.sort();
        states.dedup();
        states
    }

    /// Follows all ways through more moments. `budget` is the number of comparisons to make.
    pub(super) fn follow(&mut self, moments: &[Moment], budget: &mut u64) -> Result<(), Stop> {
        for (at, moment) in moments.iter().enumerate() {
            let others = self.all.len().saturating_sub(1) * self.under_way;
            spend(budget, others as u64).map_err(Stop::Undecided)?;
            if !moment.returns {
                self.invoke(moment.call);
                continue;
            }
            self.complete(moment.call, budget).map_err(Stop::Undecided)?;
            if self.all.is_empty() {
                return Err(Stop::Unexplained(at));
            }
        }
        Ok(())
    }

    /// Adds a call to the open ones. A read that is right takes effect now (departure 2).
    fn invoke(&mut self, call: u32) {
        self.under_way += 1;
        let Some(step) = &self.steps[call as usize] else { return };
        for way in &mut self.all {
            let state = State { base: &self.base, differs: &way.differs };
            if !(step.only_reads() && step.is_right(&state)) {
                let at = way.open.partition_point(|open| *open < call);
                way.open.insert(at, call);
            }
        }
    }

    /// Lets a call return: it must have taken effect in each way.
    fn complete(&mut self, call: u32, budget: &mut u64) -> Result<(), Limit> {
        let under_way = self.under_way;
        self.under_way -= 1;
        if let [way] = &mut self.all[..] {
            let search = Search::new(&self.steps, &self.base, call);
            if !way.open.contains(&call) {
                return Ok(());
            }
            if search.is_alone(way) {
                match search.take(way, call) {
                    Some(after) => *way = after,
                    None => self.all.clear(),
                }
                self.settle_base();
                return Ok(());
            }
        }
        let (mut done, waiting): (Vec<Way>, Vec<Way>) =
            std::mem::take(&mut self.all).into_iter().partition(|way| !way.open.contains(&call));
        if !waiting.is_empty() {
            let search = Search::new(&self.steps, &self.base, call);
            let mut found: FxHashSet<Way> = done.into_iter().collect();
            search.all(waiting, &mut found, under_way, budget)?;
            done = found.into_iter().collect();
        }
        self.all = done;
        self.settle_base();
        Ok(())
    }

    /// Moves the differences that all ways share into the common state, if there is one way or the
    /// differences are many.
    fn settle_base(&mut self) {
        const MANY: usize = 16;
        if let [way] = &mut self.all[..] {
            for (key, state) in way.differs.drain(..) {
                self.base.set(key, state);
            }
            return;
        }
        let Some((first, others)) = self.all.split_first() else { return };
        if first.differs.len() < MANY {
            return;
        }
        let is_shared = |entry: &&(u32, Option<u64>)| {
            others.iter().all(|way| way.differs.binary_search(entry).is_ok())
        };
        let shared: Differences = first.differs.iter().filter(is_shared).copied().collect();
        for (key, state) in &shared {
            self.base.set(*key, *state);
        }
        for way in &mut self.all {
            way.differs.retain(|entry| shared.binary_search(entry).is_err());
        }
    }
}

/// The search for the sequences of open calls that end with one call.
struct Search<'a> {
    steps: &'a [Option<Step>],
    base: &'a Base,
    call: u32,
    /// The comparisons made since the budget was charged.
    work: Cell<u64>,
}

/// Charges work to the budget.
fn spend(budget: &mut u64, work: u64) -> Result<(), Limit> {
    let left = budget.checked_sub(work);
    *budget = left.unwrap_or(0);
    left.map(|_| ()).ok_or(Limit::InAll)
}

impl<'a> Search<'a> {
    fn new(steps: &'a [Option<Step>], base: &'a Base, call: u32) -> Self {
        Self { steps, base, call, work: Cell::new(0) }
    }

    fn works(&self, comparisons: usize) {
        self.work.set(self.work.get() + comparisons as u64);
    }

    fn step(&self, call: u32) -> &Step {
        self.steps[call as usize].as_ref().expect("a call without effect is never open")
    }

    fn state<'s>(&'s self, way: &'s Way) -> State<'s> {
        State { base: self.base, differs: &way.differs }
    }

    /// Whether no other open call depends on the call.
    fn is_alone(&self, way: &Way) -> bool {
        let own = self.step(self.call);
        way.open.iter().all(|&open| open == self.call || !depend(own, self.step(open)))
    }

    /// The way after an open call took effect, and all reads that are right then.
    fn take(&self, way: &Way, call: u32) -> Option<Way> {
        self.works(way.open.len());
        let step = self.step(call);
        if !step.is_right(&self.state(way)) {
            return None;
        }
        let effect = step.effect(&self.state(way));
        let mut after = way.clone();
        after.open.retain(|open| *open != call);
        if !effect.is_empty() {
            for (key, state) in effect {
                put(self.base, &mut after.differs, key, state);
            }
            let state = State { base: self.base, differs: &after.differs };
            let waits = |step: &Step| !(step.only_reads() && step.is_right(&state));
            after.open.retain(|open| waits(self.step(*open)));
        }
        Some(after)
    }

    /// All ways to which sequences of open calls lead that end with the call.
    fn all(
        &self,
        waiting: Vec<Way>,
        found: &mut FxHashSet<Way>,
        under_way: usize,
        budget: &mut u64,
    ) -> Result<(), Limit> {
        let mut left: Vec<(Way, u32)> = waiting.into_iter().map(|way| (way, 0)).collect();
        // The least key from which each way was gone on with.
        let mut visited: FxHashMap<Way, u32> = left.iter().cloned().collect();
        while let Some((way, from)) = left.pop() {
            self.works(1 + way.open.len());
            spend(budget, self.work.take())?;
            found.extend(self.take(&way, self.call));
            let by_key = self.is_by_key(&way);
            for &open in way.open.iter().filter(|open| **open != self.call) {
                let own = self.step(open);
                if own.only_reads() || !own.is_from(from) {
                    continue; // it is not right yet, or its turn is over
                }
                let Some(after) = self.take(&way, open) else { continue };
                let from = own.only_key().filter(|_| by_key).unwrap_or(0);
                if !after.open.contains(&self.call) {
                    found.insert(after); // the call was a read that is right now
                } else if after.differs != way.differs
                    && self.serves(open, &way, &after, from)
                    && visited.get(&after).is_none_or(|before| from < *before)
                {
                    visited.insert(after.clone(), from);
                    left.push((after, from));
                }
            }
            if visited.len().max(found.len()) > WAYS_MAX {
                return Err(Limit::AtOnce { under_way });
            }
        }
        Ok(())
    }

    /// Whether calls may be taken key by key (departure 5): each open call other than the one that
    /// returns is on one key.
    fn is_by_key(&self, way: &Way) -> bool {
        self.works(way.open.len());
        way.open.iter().all(|&open| open == self.call || self.step(open).only_key().is_some())
    }

    /// Whether an open call that took effect may serve the call that returns: whether it depends on
    /// that call, or on another that may follow it and serve the call (departures 3 and 4). Reads
    /// that its effect made right follow it. The call that returns has to become right by calls on
    /// keys `from` on (departure 5).
    fn serves(&self, taken: u32, before: &Way, after: &Way, from: u32) -> bool {
        let state = self.state(after);
        let own = self.step(taken);
        let may_follow_from = |call: u32, from: u32| {
            self.works(after.open.len());
            let others = after.open.iter().filter(|open| **open != call && **open != self.call);
            let others = others.map(|open| self.step(*open)).filter(|other| other.is_from(from));
            self.step(call).may_become_right(&state, &others)
        };
        let may_follow = |call: u32| may_follow_from(call, 0);
        if !may_follow_from(self.call, from) {
            return false;
        }
        if depend(own, self.step(self.call)) {
            return true;
        }
        // The calls that may follow and serve the call; the last ones were not looked at yet.
        let mut serve: SmallVec<[u32; 6]> = SmallVec::from_slice(&[self.call]);
        let mut at = 0;
        while let Some(&server) = serve.get(at) {
            at += 1;
            self.works(before.open.len());
            for &open in before.open.iter().filter(|open| **open != taken) {
                let follows = || !after.open.contains(&open) || may_follow(open);
                if serve.contains(&open)
                    || !depend(self.step(open), self.step(server))
                    || !follows()
                {
                    continue;
                }
                if depend(own, self.step(open)) {
                    return true;
                }
                serve.push(open);
            }
        }
        false
    }
}
