//! Calls that see the whole index: its first and last entry, and their removal.
//!
//! Such a history cannot be checked key by key, and deciding it takes time exponential in the
//! number of overlapping calls (Gibbons and Korach, "Testing shared memories", SIAM J. Comput.
//! 26(4), 1997). So histories are small: at most [`THREADS_MAX`] threads and [`CALLS_MAX`] calls.
//! Beyond [`super::BUDGET`] configurations the answer is *undecided*.

use super::search::Object;
use super::{BUDGET, Call, Refusal, States, Verdict, Violation, follow, lanes};
use crate::history::{Op, show_entry};
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::marker::PhantomData;

/// The most threads of a history that is searched.
pub const THREADS_MAX: usize = 4;
/// The most calls of a history that is searched.
pub const CALLS_MAX: usize = 200;

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

    fn pops(self) -> bool {
        matches!(self, Self::PopFirst | Self::PopLast)
    }
}

impl<O: Display> Display for OrderedOp<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point { key, op } => write!(f, "key {key}: {op}"),
            Self::End { verb, found } => {
                write!(f, "{} → {}", verb.name(), show_entry(found.as_ref()))
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

/// An ordered map as one sequential object.
#[derive(Debug)]
struct Map<O>(PhantomData<O>);

impl<O: Ord + Clone + Hash + Debug> Object for Map<O> {
    type State = BTreeMap<O, u64>;
    type Op = OrderedOp<O>;

    fn idles(op: &Self::Op, state: &Self::State) -> bool {
        match op {
            OrderedOp::Point { key, op } => {
                let state = state.get(key).copied();
                op.apply(state) == Some(state)
            }
            OrderedOp::End { verb, found } => {
                at_end(*verb, state) == *found && !(verb.pops() && found.is_some())
            }
        }
    }

    fn changed_nothing(op: &Self::Op) -> bool {
        match op {
            OrderedOp::Point { op, .. } => op.changed_nothing(),
            OrderedOp::End { verb, found } => !(verb.pops() && found.is_some()),
        }
    }

    fn apply(op: &Self::Op, state: &Self::State) -> Option<Self::State> {
        let right = match op {
            OrderedOp::Point { key, op } => op.apply(state.get(key).copied()).is_some(),
            OrderedOp::End { verb, found } => at_end(*verb, state) == *found,
        };
        right.then(|| Self::effect(op, state))
    }

    fn effect(op: &Self::Op, state: &Self::State) -> Self::State {
        let mut after = state.clone();
        match op {
            OrderedOp::Point { key, op } => match op.effect(state.get(key).copied()) {
                Some(value) => {
                    after.insert(key.clone(), value);
                }
                None => {
                    after.remove(key);
                }
            },
            OrderedOp::End { verb: EndVerb::PopFirst, .. } => {
                after.pop_first();
            }
            OrderedOp::End { verb: EndVerb::PopLast, .. } => {
                after.pop_last();
            }
            OrderedOp::End { .. } => {}
        }
        after
    }
}

fn at_end<O: Ord + Clone>(verb: EndVerb, state: &BTreeMap<O, u64>) -> Option<(O, u64)> {
    let entry = match verb {
        EndVerb::First | EndVerb::PopFirst => state.first_key_value(),
        EndVerb::Last | EndVerb::PopLast => state.last_key_value(),
    };
    entry.map(|(key, value)| (key.clone(), *value))
}

/// Checks calls on an ordered map that was empty before the first of them.
pub fn judge<O: Ord + Clone + Hash + Debug + Display>(events: Vec<OrderedEvent<O>>) -> Verdict {
    let undecided = |why: String| Verdict::Undecided { what: format!("the whole map ({why})") };
    if events.len() > CALLS_MAX {
        return undecided(format!("{} calls, searched are {CALLS_MAX}", events.len()));
    }
    let mut threads: Vec<usize> = events.iter().map(|event| event.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    if threads.len() > THREADS_MAX {
        return undecided(format!("{} threads, searched are {THREADS_MAX}", threads.len()));
    }
    let call = |OrderedEvent { thread, start, end, op }| Call { thread, start, end, op };
    let lanes = lanes(events.into_iter().map(call).collect());
    let lanes: Vec<&[Call<OrderedOp<O>>]> = lanes.iter().map(Vec::as_slice).collect();
    let mut states = States::from_iter([BTreeMap::new()]);
    match follow::<Map<O>>(&lanes, &mut states, &mut BUDGET.clone()) {
        Ok(()) => Verdict::Linearizable,
        Err(Refusal::Unexplained(bad)) => {
            let show = |state: &BTreeMap<O, u64>| {
                let entries: Vec<String> = state.iter().map(|(k, v)| format!("{k}: {v}")).collect();
                format!("{{{}}}", entries.join(", "))
            };
            Verdict::Violation(Violation::of("the map".into(), &bad, show))
        }
        Err(Refusal::Undecided) => undecided(format!("{BUDGET} configurations searched")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(
        thread: usize,
        start: u64,
        end: u64,
        verb: EndVerb,
        found: Option<(u64, u64)>,
    ) -> OrderedEvent<u64> {
        OrderedEvent { thread, start, end, op: OrderedOp::End { verb, found } }
    }

    fn point(thread: usize, start: u64, end: u64, key: u64, op: Op) -> OrderedEvent<u64> {
        OrderedEvent { thread, start, end, op: OrderedOp::Point { key, op } }
    }

    fn insert(value: u64) -> Op {
        Op::TryInsert { value, outcome: Ok(()) }
    }

    fn is_violation(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Violation(_))
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
        assert_eq!(judge(good.clone()), Verdict::Linearizable);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at].op = OrderedOp::End { verb: EndVerb::First, found: Some((7, 7)) };
            assert!(is_violation(&judge(bad)), "call {at} replaced");
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
                point(0, 5, 6, 5, insert(50)),                   // C
                point(0, 7, 8, 1, Op::Remove { old: Some(10) }), // A
            ]
        };
        assert_eq!(judge(history(Some((1, 10)))), Verdict::Linearizable);
        assert_eq!(judge(history(Some((5, 50)))), Verdict::Linearizable);
        let Verdict::Violation(violation) = judge(history(Some((9, 90)))) else {
            panic!("D was never first");
        };
        assert!(violation.calls.len() <= 3, "{violation}");
    }

    #[test]
    fn two_pops_of_one_entry_are_one_too_many() {
        let history = vec![
            point(0, 0, 1, 1, insert(10)),
            end(0, 2, 5, EndVerb::PopFirst, Some((1, 10))),
            end(1, 3, 4, EndVerb::PopLast, Some((1, 10))),
        ];
        assert!(is_violation(&judge(history)));
    }

    #[test]
    fn what_is_too_large_is_undecided() {
        let calls = |count: u64, threads: u64| -> Verdict {
            let call = |n: u64| end((n % threads) as usize, 2 * n, 2 * n + 1, EndVerb::Last, None);
            judge((0..count).map(call).collect())
        };
        assert_eq!(calls(200, 4), Verdict::Linearizable);
        assert!(matches!(calls(201, 4), Verdict::Undecided { .. }));
        assert!(matches!(calls(20, 5), Verdict::Undecided { .. }));
    }
}
