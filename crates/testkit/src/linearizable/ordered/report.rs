//! Reports of violations: few calls that are not linearizable.

use super::state::Base;
use super::ways::{Moment, Stop, Ways, moments};
use super::{Numbered, OrderedOp, PENDING};
use crate::history::show_entry;
use crate::linearizable::Violation;
use std::collections::BTreeSet;

/// The comparisons made to shorten a report.
const BUDGET: u64 = 1 << 28;

/// The entries of a map.
pub(super) type Entries = Vec<(u32, u64)>;

/// Calls that are not linearizable, and the states in which they began.
struct Wrong {
    calls: Vec<Numbered>,
    states: Vec<Entries>,
    keys: usize,
}

/// A short report of calls that no order explains up to moment `at`.
pub(super) fn shorten(
    calls: &[Numbered],
    keys: usize,
    at: usize,
    name: &impl Fn(u32) -> String,
) -> Violation {
    let (states, calls) = self::calls(calls, keys, at);
    let shown = |call: &Numbered| call.with(call.op.renamed(|key| name(*key)));
    let calls: Vec<_> = calls.iter().map(shown).collect();
    let entry = |(key, value): &(u32, u64)| show_entry(Some(&(name(*key), *value)));
    let state = |entries: &Entries| {
        let entries: Vec<String> = entries.iter().map(entry).collect();
        format!("{{{}}}", entries.join(", "))
    };
    Violation::new("the map".into(), states.iter().map(state).collect(), &calls)
}

/// Few calls that are not linearizable, with the states in which they began, out of calls that no
/// order explains up to moment `at`.
pub(super) fn calls(calls: &[Numbered], keys: usize, at: usize) -> (Vec<Entries>, Vec<Numbered>) {
    let mut budget = BUDGET;
    let mut wrong = begin(calls, keys, at, &mut budget);
    loop {
        let before = wrong.calls.len();
        wrong.keep_few_keys(&mut budget);
        wrong.begin_later(&mut budget);
        if wrong.calls.len() == before {
            break;
        }
    }
    wrong.keep_few_reads(&mut budget);
    wrong.calls.sort_by_key(|call| (call.start, call.end));
    (wrong.states, wrong.calls)
}

/// The number of the first moment after the last one at which no call is under way.
fn quiet_before(moments: &[Moment]) -> usize {
    let (mut under_way, mut quiet) = (0, 0);
    for (at, moment) in moments.iter().enumerate() {
        if under_way == 0 {
            quiet = at;
        }
        under_way = if moment.returns { under_way - 1 } else { under_way + 1 };
    }
    quiet
}

/// The calls that were under way since the last quiet moment before moment `at`, up to the first
/// return that makes them wrong without the answers of later returns.
fn begin(calls: &[Numbered], keys: usize, at: usize, budget: &mut u64) -> Wrong {
    let moments = moments(calls);
    let quiet = quiet_before(&moments[..=at]);
    let mut ways = Ways::new(calls, Base::empty(keys), keys);
    let states = match ways.follow(&moments[..quiet], &mut u64::MAX.clone()) {
        Ok(()) => ways.states(),
        Err(_) => unreachable!("these calls were explained before"),
    };
    let until = |cut: usize| Wrong {
        calls: started(calls, &moments[quiet..=cut]),
        states: states.clone(),
        keys,
    };
    // The calls under way at the cut have answers that the search may have used. Some later cut is
    // wrong without the answers of calls that are under way there: the last one at the latest.
    let last = moments.len() - 1;
    let (mut good, mut cut, mut stride) = (at, at, 1);
    while cut < last && !until(cut).is_wrong(budget) {
        good = cut;
        cut = (cut + stride).min(last);
        stride *= 2;
    }
    while cut - good > 1 {
        let middle = good.midpoint(cut);
        if until(middle).is_wrong(budget) {
            cut = middle;
        } else {
            good = middle;
        }
    }
    until(cut)
}

/// The calls that start in a row of moments. A call that does not return there is pending.
fn started(calls: &[Numbered], moments: &[Moment]) -> Vec<Numbered> {
    let returned: BTreeSet<u32> =
        moments.iter().filter(|moment| moment.returns).map(|moment| moment.call).collect();
    let call = |moment: &Moment| {
        let mut call = calls[moment.call as usize].clone();
        if !returned.contains(&moment.call) {
            call.end = PENDING;
        }
        call
    };
    moments.iter().filter(|moment| !moment.returns).map(call).collect()
}

impl Wrong {
    /// Whether it is certain that no order explains the calls.
    fn is_wrong(&self, budget: &mut u64) -> bool {
        let ways = Ways::new(&self.calls, Base::empty(self.keys), self.keys);
        let found = ways.beginning(&self.states).follow(&moments(&self.calls), budget);
        if matches!(found, Err(Stop::Undecided(_))) {
            *budget = 0; // further attempts to shorten the report stop
        }
        matches!(found, Err(Stop::Unexplained(_)))
    }

    /// Removes keys that are not needed.
    fn keep_few_keys(&mut self, budget: &mut u64) {
        let of_calls = self.calls.iter().flat_map(|call| call.op.keys().copied());
        let of_states = self.states.iter().flatten().map(|entry| entry.0);
        let keys: BTreeSet<u32> = of_calls.chain(of_states).collect();
        let kept = fewer(keys.into_iter().collect(), |kept| self.on(kept).is_wrong(budget));
        *self = self.on(&kept);
    }

    /// The calls on some keys alone. A pop without an answer is kept: it may have been on any key.
    /// So is a range, without the entries of other keys.
    fn on(&self, keys: &[u32]) -> Self {
        let has = |key: &u32| keys.binary_search(key).is_ok();
        let on = |call: &Numbered| match &call.op {
            OrderedOp::End { .. } if call.is_pending() => Some(call.clone()),
            OrderedOp::Range { low, high, mask, found } => {
                let found = found.iter().filter(|entry| has(&entry.0)).copied().collect();
                let op = OrderedOp::Range { low: *low, high: *high, mask: *mask, found };
                Some(call.with(op))
            }
            op => op.keys().all(has).then(|| call.clone()),
        };
        let calls = self.calls.iter().filter_map(on).collect();
        let state = |entries: &Entries| {
            entries.iter().filter(|entry| has(&entry.0)).copied().collect::<Entries>()
        };
        let mut states: Vec<Entries> = self.states.iter().map(state).collect();
        states.sort();
        states.dedup();
        Self { calls, states, keys: self.keys }
    }

    /// Begins at the last moment at which none of the remaining calls was under way.
    fn begin_later(&mut self, budget: &mut u64) {
        let moments = moments(&self.calls);
        let quiet = quiet_before(&moments);
        let ways = Ways::new(&self.calls, Base::empty(self.keys), self.keys);
        let mut ways = ways.beginning(&self.states);
        if ways.follow(&moments[..quiet], budget).is_ok() {
            let states = ways.states();
            let later = Self { calls: started(&self.calls, &moments[quiet..]), states, ..*self };
            if later.is_wrong(budget) {
                *self = later;
            }
        }
    }

    /// Removes calls that changed nothing and are not needed.
    fn keep_few_reads(&mut self, budget: &mut u64) {
        let reads = |call: &Numbered| match &call.op {
            OrderedOp::Point { op, .. } => op.changed_nothing(),
            OrderedOp::End { verb, found } => !verb.pops() || found.is_none(),
            OrderedOp::Range { mask, found, .. } => *mask == 0 || found.is_empty(),
        };
        let calls = std::mem::take(&mut self.calls);
        let (reads, writes): (Vec<_>, Vec<_>) = calls.into_iter().partition(reads);
        let with = |reads: &[Numbered]| Self {
            calls: [&writes[..], reads].concat(),
            states: self.states.clone(),
            keys: self.keys,
        };
        let kept = fewer(reads, |reads| with(reads).is_wrong(budget));
        *self = with(&kept);
    }
}

/// A part of `items` that passes the test, as `items` do: first without large parts, then without
/// single items.
fn fewer<T: Clone>(mut items: Vec<T>, mut test: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut size = items.len().next_power_of_two();
    while size > 0 {
        let mut end = items.len();
        while end > 0 {
            let begin = end.saturating_sub(size);
            let mut rest = items[..begin].to_vec();
            rest.extend_from_slice(&items[end..]);
            if test(&rest) {
                items = rest;
            }
            end = begin;
        }
        size /= 2;
    }
    items
}
