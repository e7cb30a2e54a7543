//! Calls as demands on the state of a map, and the calls that depend on one another.

use super::state::State;
use super::{EndVerb, Numbered, OrderedOp};
use crate::history::Op;
use std::ops::Range;

/// A call as the search sees it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The key that the call reads or writes. A call that finds the map empty has none, and so has
    /// a pop without an answer.
    key: Option<u32>,
    rule: Rule,
    /// The keys that must be absent.
    absent: Range<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The answer demands the state `before` of the key, and the call leaves the state `after`.
    Answered { before: Option<u64>, after: Option<u64> },
    /// The answer is wrong in every state.
    Impossible,
    /// A call on the key that has not returned.
    Open(Op),
    /// A `pop_first` that has not returned, or a `pop_last`.
    OpenPop { last: bool },
}

impl Step {
    /// The step of a call on a map whose keys have numbers below `keys`. `None` stands for a call
    /// that has no answer and no effect.
    pub(super) fn of(call: &Numbered, keys: u32) -> Option<Self> {
        match &call.op {
            OrderedOp::Point { op: Op::Get { .. }, .. } if call.is_pending() => None,
            OrderedOp::Point { key, op } => {
                let rule = if call.is_pending() { Rule::Open(*op) } else { answered(*op) };
                Some(Self { key: Some(*key), rule, absent: 0..0 })
            }
            OrderedOp::End { verb, .. } if call.is_pending() => {
                let rule = Rule::OpenPop { last: verb.is_last() };
                verb.pops().then_some(Self { key: None, rule, absent: 0..0 })
            }
            OrderedOp::End { verb, found } => Some(Self::of_end(*verb, *found, keys)),
        }
    }

    fn of_end(verb: EndVerb, found: Option<(u32, u64)>, keys: u32) -> Self {
        let Some((key, value)) = found else {
            let rule = Rule::Answered { before: None, after: None };
            return Self { key: None, rule, absent: 0..keys };
        };
        let before = Some(value);
        let after = if verb.pops() { None } else { before };
        let absent = if verb.is_last() { key + 1..keys } else { 0..key };
        Self { key: Some(key), rule: Rule::Answered { before, after }, absent }
    }

    /// Whether the call has an answer and changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        matches!(self.rule, Rule::Answered { before, after } if before == after)
    }

    /// Whether the call may change its key.
    fn changes(&self) -> bool {
        match self.rule {
            Rule::Answered { before, after } => before != after,
            Rule::Impossible => false,
            Rule::Open(_) | Rule::OpenPop { .. } => true,
        }
    }

    /// Whether the call may take effect in `state`.
    pub(super) fn is_right(&self, state: &State<'_>) -> bool {
        match self.rule {
            Rule::Answered { before, .. } => {
                self.key.is_none_or(|key| state.get(key) == before)
                    && state.all_present(self.absent.clone(), |_| false)
            }
            Rule::Impossible => false,
            Rule::Open(_) | Rule::OpenPop { .. } => true,
        }
    }

    /// The key that the call changes in `state`, with its state afterwards.
    pub(super) fn effect(&self, state: &State<'_>) -> Option<(u32, Option<u64>)> {
        let (key, after) = match self.rule {
            Rule::Answered { after, .. } => (self.key?, after),
            Rule::Impossible => return None,
            Rule::Open(op) => (self.key?, op.effect(state.get(self.key?))),
            Rule::OpenPop { last } => (state.end(last)?, None),
        };
        (state.get(key) != after).then_some((key, after))
    }

    /// Whether the call may leave `key` in the state `wanted`.
    fn may_write(&self, key: u32, wanted: Option<u64>) -> bool {
        match self.rule {
            Rule::OpenPop { .. } => wanted.is_none(),
            _ if self.key != Some(key) => false,
            Rule::Answered { before, after } => before != after && after == wanted,
            Rule::Impossible => false,
            Rule::Open(op) => match op {
                Op::Get { .. } => false,
                Op::TryInsert { value, .. } | Op::Insert { value, .. } => wanted == Some(value),
                Op::Remove { .. } => wanted.is_none(),
                Op::CompareExchange { new, .. } => wanted == new,
            },
        }
    }

    /// Whether the call can become right in `state` or after some of the calls `others`. `true` may
    /// be wrong, `false` is not.
    pub(super) fn may_become_right<'s>(
        &self,
        state: &State<'_>,
        others: &(impl Iterator<Item = &'s Self> + Clone),
    ) -> bool {
        let may_be = |key: u32, wanted| others.clone().any(|other| other.may_write(key, wanted));
        match self.rule {
            Rule::Answered { before, .. } => {
                self.key.is_none_or(|key| state.get(key) == before || may_be(key, before))
                    && state.all_present(self.absent.clone(), |key| may_be(key, None))
            }
            Rule::Impossible => false,
            Rule::Open(_) | Rule::OpenPop { .. } => true,
        }
    }
}

/// The rule of a call on a key that has returned.
fn answered(op: Op) -> Rule {
    let (before, after) = match op {
        Op::CompareExchange { expected, outcome: Err(found), .. } if found == expected => {
            return Rule::Impossible;
        }
        Op::Get { found } | Op::CompareExchange { outcome: Err(found), .. } => (found, found),
        Op::TryInsert { value, outcome: Ok(()) } => (None, Some(value)),
        Op::TryInsert { outcome: Err(present), .. } => (Some(present), Some(present)),
        Op::Insert { value, old } => (old, Some(value)),
        Op::Remove { old } => (old, None),
        Op::CompareExchange { expected, new, outcome: Ok(()) } => (expected, new),
    };
    Rule::Answered { before, after }
}

/// Whether the order of two calls may matter. If not, then in each state both orders are right and
/// lead to one state, or neither order is right.
pub(super) fn depend(one: &Step, other: &Step) -> bool {
    let pops = |step: &Step| matches!(step.rule, Rule::OpenPop { .. });
    if pops(one) || pops(other) {
        return true;
    }
    let touches = |one: &Step, other: &Step| {
        let Some(key) = one.key else { return false };
        one.changes() && (other.key == Some(key) || other.absent.contains(&key))
    };
    touches(one, other) || touches(other, one)
}
