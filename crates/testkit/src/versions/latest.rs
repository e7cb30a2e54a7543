//! The newest versions of a map whose caller numbers them.
//!
//! Numbers arrive in any order, so that of a key's versions does not follow from them. A key is a
//! register that holds its largest number so far, and the search of [`crate::linearizable`] looks
//! for an order of its calls.

use super::call::{Answer, Call, Expected};
use super::written::Written;
use crate::linearizable::{BUDGET, Refusal, States, Violation, follow};
use crate::linearizable::{Call as Timed, Object};
use std::fmt;

/// A key with its newest version.
#[derive(Debug)]
struct Newest;

/// The largest number of a key's versions, and whether this version has a value.
type State = (u64, bool);

/// The newest version with a value.
fn visible((number, has_value): State) -> Option<u64> {
    has_value.then_some(number)
}

/// A call, and its text for a report.
#[derive(Clone, Debug)]
struct Op {
    effect: Effect,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Effect {
    /// A version arrives.
    Put { version: State, expected: Expected },
    /// A write that was refused for the newest version, which is visible.
    Conflict { latest: Option<u64>, expected: Expected },
    /// A write that was refused for the newest version, whose number is as large.
    NotNewer { newest: u64, expected: Expected },
    /// A lookup.
    Get { found: Option<u64> },
    /// The first version of a list.
    Lists { newest: u64 },
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Object for Newest {
    type State = State;
    type Op = Op;

    fn idles(op: &Op, state: &State) -> bool {
        Self::apply(op, state) == Some(*state)
    }

    fn changed_nothing(op: &Op) -> bool {
        !matches!(op.effect, Effect::Put { .. })
    }

    fn apply(op: &Op, state: &State) -> Option<State> {
        let right = match op.effect {
            Effect::Put { expected: Expected::Any, .. } => true,
            Effect::Put { version, expected } => {
                expected.accepts(visible(*state)) && version.0 > state.0
            }
            Effect::Conflict { latest, expected } => {
                visible(*state) == latest && !expected.accepts(latest)
            }
            Effect::NotNewer { newest, expected } => {
                state.0 == newest && expected.accepts(visible(*state))
            }
            Effect::Get { found } => visible(*state) == found,
            Effect::Lists { newest } => state.0 == newest,
        };
        right.then(|| Self::effect(op, state))
    }

    fn effect(op: &Op, state: &State) -> State {
        match op.effect {
            Effect::Put { version, .. } => (*state).max(version),
            _ => *state,
        }
    }
}

impl Written<'_> {
    /// Looks for an order of the calls on each key's newest version. Returns the first key whose
    /// search was given up.
    pub(super) fn latest(&self) -> Result<Option<u32>, Violation> {
        let threads = self.history.events.iter().map(|event| event.thread + 1).max().unwrap_or(0);
        let mut given_up = None;
        let mut of_keys: Vec<Vec<Vec<Timed<Op>>>> =
            vec![vec![Vec::new(); threads]; super::KEYS as usize];
        for event in &self.history.events {
            let Some((key, effect)) = self.effect(&event.call) else { continue };
            let op = Op { effect, text: event.call.to_string() };
            let call = Timed { thread: event.thread, start: event.start, end: event.end, op };
            of_keys[key as usize][event.thread].push(call);
        }
        for (key, lanes) in (0..).zip(&of_keys) {
            let lanes: Vec<&[Timed<Op>]> = lanes.iter().map(Vec::as_slice).collect();
            let mut states = States::<State>::new();
            states.push((0, false));
            match follow::<Newest>(&lanes, &mut states, &mut { BUDGET }) {
                Ok(()) => {}
                Err(Refusal::Undecided) => _ = given_up.get_or_insert(key),
                Err(Refusal::Unexplained(bad)) => {
                    let show = |state: &State| match *state {
                        (0, _) => "absent".into(),
                        (number, true) => format!("version {number}"),
                        (number, false) => format!("deleted by version {number}"),
                    };
                    return Err(Violation::of(format!("key {key}"), &bad, show));
                }
            }
        }
        Ok(given_up)
    }

    /// The key of a call on its newest version, and the effect there.
    fn effect(&self, call: &Call) -> Option<(u32, Effect)> {
        let effect = match call {
            Call::Write { write, answer, .. } => {
                let (key, expected) = (write.key, write.expected);
                let effect = match *answer {
                    Answer::Done(number) => {
                        Effect::Put { version: (number, write.value.is_some()), expected }
                    }
                    Answer::Conflict(latest) => Effect::Conflict { latest, expected },
                    // The newest one may be a version that came too late, and is none.
                    Answer::NotNewer(newest) if self.get(key, newest).is_some() => {
                        Effect::NotNewer { newest, expected }
                    }
                    _ => return None,
                };
                (key, effect)
            }
            Call::Latest { key, found } => {
                (*key, Effect::Get { found: found.map(|(number, _)| number) })
            }
            Call::History { key, found } => {
                let newest = found.first().map(|(number, _)| *number);
                (
                    *key,
                    newest.map_or(Effect::Get { found: None }, |newest| Effect::Lists { newest }),
                )
            }
            _ => return None,
        };
        Some(effect)
    }
}
