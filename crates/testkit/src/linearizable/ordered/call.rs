//! Calls as demands on the state of a map, and the calls that depend on one another.

use super::state::State;
use super::{EndVerb, Numbered, OrderedOp};
use crate::history::Op;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// A call as the search sees it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The key that the call reads or writes. A call that finds the map empty has none, and so has
    /// a pop without an answer.
    key: Option<u32>,
    rule: Rule,
    /// The keys that must be absent, but for those of `read`.
    absent: Range<u32>,
    /// The entries that must be present, ascending.
    read: Vec<(u32, u64)>,
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
    /// The answer demands the entries of a range. The call leaves their values with these bits
    /// turned over.
    Range { mask: u64 },
    /// An update of a range that has not returned.
    OpenRange { mask: u64 },
}

/// The keys that a call changes, with their states afterwards.
pub(super) type Effect = SmallVec<[(u32, Option<u64>); 1]>;

impl Step {
    /// The step of a call on a map whose keys have numbers below `keys`. `None` stands for a call
    /// that has no answer and no effect.
    pub(super) fn of(call: &Numbered, keys: u32) -> Option<Self> {
        match &call.op {
            OrderedOp::Point { op: Op::Get { .. }, .. } if call.is_pending() => None,
            OrderedOp::Point { key, op } => {
                let rule = if call.is_pending() { Rule::Open(*op) } else { answered(*op) };
                Some(Self { key: Some(*key), rule, absent: 0..0, read: Vec::new() })
            }
            OrderedOp::End { verb, .. } if call.is_pending() => {
                let rule = Rule::OpenPop { last: verb.is_last() };
                let read = Vec::new();
                verb.pops().then_some(Self { key: None, rule, absent: 0..0, read })
            }
            OrderedOp::End { verb, found } => Some(Self::of_end(*verb, *found, keys)),
            OrderedOp::Range { low, high, mask, found } => {
                let absent = *low..high.saturating_add(1).max(*low);
                let (rule, read) = if call.is_pending() {
                    (Rule::OpenRange { mask: *mask }, Vec::new())
                } else {
                    let is_legal = found.iter().all(|(key, _)| absent.contains(key))
                        && found.is_sorted_by(|one, other| one.0 < other.0);
                    let rule = Rule::Range { mask: *mask };
                    (if is_legal { rule } else { Rule::Impossible }, found.clone())
                };
                let is_open_read = call.is_pending() && *mask == 0;
                (!is_open_read).then_some(Self { key: None, rule, absent, read })
            }
        }
    }

    fn of_end(verb: EndVerb, found: Option<(u32, u64)>, keys: u32) -> Self {
        let Some((key, value)) = found else {
            let rule = Rule::Answered { before: None, after: None };
            return Self { key: None, rule, absent: 0..keys, read: Vec::new() };
        };
        let before = Some(value);
        let after = if verb.pops() { None } else { before };
        let absent = if verb.is_last() { key + 1..keys } else { 0..key };
        Self { key: Some(key), rule: Rule::Answered { before, after }, absent, read: Vec::new() }
    }

    /// The key of a call that reads and writes no other key.
    pub(super) fn only_key(&self) -> Option<u32> {
        self.key.filter(|_| self.absent.is_empty())
    }

    /// Whether the call may touch keys `from` on.
    pub(super) fn is_from(&self, from: u32) -> bool {
        self.only_key().is_none_or(|key| key >= from)
    }

    /// Whether a key is one of those that must be present.
    fn reads(&self, key: u32) -> bool {
        self.read.binary_search_by_key(&key, |entry| entry.0).is_ok()
    }

    /// Whether the call has an answer and changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        match self.rule {
            Rule::Answered { before, after } => before == after,
            Rule::Range { mask } => mask == 0 || self.read.is_empty(),
            _ => false,
        }
    }

    /// Whether the call may change its key.
    fn changes(&self) -> bool {
        match self.rule {
            Rule::Answered { before, after } => before != after,
            Rule::Range { mask } => mask != 0 && !self.read.is_empty(),
            Rule::Impossible => false,
            Rule::Open(_) | Rule::OpenPop { .. } | Rule::OpenRange { .. } => true,
        }
    }

    /// Whether the call may take effect in `state`.
    pub(super) fn is_right(&self, state: &State<'_>) -> bool {
        match self.rule {
            Rule::Answered { before, .. } => {
                self.key.is_none_or(|key| state.get(key) == before)
                    && state.all_present(self.absent.clone(), |_| false)
            }
            Rule::Range { .. } => {
                self.read.iter().all(|(key, value)| state.get(*key) == Some(*value))
                    && state.all_present(self.absent.clone(), |key| self.reads(key))
            }
            Rule::Impossible => false,
            Rule::Open(_) | Rule::OpenPop { .. } | Rule::OpenRange { .. } => true,
        }
    }

    /// The keys that the call changes in `state`, with their states afterwards.
    pub(super) fn effect(&self, state: &State<'_>) -> Effect {
        let turned = |mask: u64| move |(key, value): (u32, u64)| (key, Some(value ^ mask));
        match self.rule {
            Rule::Range { mask: 0 } | Rule::OpenRange { mask: 0 } => smallvec![],
            Rule::Range { mask } => self.read.iter().copied().map(turned(mask)).collect(),
            Rule::OpenRange { mask } => {
                let keys = self.absent.clone();
                let present = keys.filter_map(|key| Some((key, state.get(key)?)));
                present.map(turned(mask)).collect()
            }
            _ => self.effect_on_key(state).into_iter().collect(),
        }
    }

    /// The key that a call on one key or on an end changes.
    fn effect_on_key(&self, state: &State<'_>) -> Option<(u32, Option<u64>)> {
        let (key, after) = match self.rule {
            Rule::Answered { after, .. } => (self.key?, after),
            Rule::Open(op) => (self.key?, op.effect(state.get(self.key?))),
            Rule::OpenPop { last } => (state.end(last)?, None),
            Rule::Impossible | Rule::Range { .. } | Rule::OpenRange { .. } => return None,
        };
        (state.get(key) != after).then_some((key, after))
    }

    /// Whether the call may leave `key` in the state `wanted`.
    fn may_write(&self, key: u32, wanted: Option<u64>) -> bool {
        match self.rule {
            Rule::OpenPop { .. } => wanted.is_none(),
            Rule::Range { mask } => {
                let written = |(key_read, value): &(u32, u64)| {
                    *key_read == key && wanted == Some(value ^ mask)
                };
                mask != 0 && self.read.iter().any(written)
            }
            Rule::OpenRange { .. } => self.absent.contains(&key) && wanted.is_some(),
            _ if self.key != Some(key) => false,
            Rule::Answered { before, after } => before != after && after == wanted,
            Rule::Impossible => false,
            Rule::Open(op) => match op {
                Op::Get { .. } => false,
                Op::TryInsert { value, .. } | Op::Insert { value, .. } | Op::Put { value } => {
                    wanted == Some(value)
                }
                Op::Remove { .. } | Op::Delete => wanted.is_none(),
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
            Rule::Range { .. } => {
                let is_or_may_be = |&(key, value): &(u32, u64)| {
                    state.get(key) == Some(value) || may_be(key, Some(value))
                };
                self.read.iter().all(is_or_may_be)
                    && state.all_present(self.absent.clone(), |key| {
                        self.reads(key) || may_be(key, None)
                    })
            }
            Rule::Impossible => false,
            Rule::Open(_) | Rule::OpenPop { .. } | Rule::OpenRange { .. } => true,
        }
    }
}

/// The rule of a call on a key that has returned.
fn answered(op: Op) -> Rule {
    let (before, after) = match op {
        Op::CompareExchange { expected, outcome: Err(found), .. } if found == expected => {
            return Rule::Impossible;
        }
        // Right in each state.
        Op::Put { .. } | Op::Delete => return Rule::Open(op),
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
        if !one.changes() {
            return false;
        }
        // All keys that a range may change are in the run of keys that it demands.
        let is_touched = |key: u32| other.key == Some(key) || other.absent.contains(&key);
        match (one.rule, one.key) {
            (Rule::Range { .. }, _) => one.read.iter().any(|(key, _)| is_touched(*key)),
            (Rule::OpenRange { .. }, _) => one.absent.clone().any(is_touched),
            (_, Some(key)) => is_touched(key),
            (_, None) => false,
        }
    };
    touches(one, other) || touches(other, one)
}
