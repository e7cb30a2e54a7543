//! The writes that the cluster has to hold: for each key, the acknowledged one and the later ones.

use std::collections::{HashMap, HashSet};

/// One write of a key: a number that is greater than that of each earlier write of this key, and
/// whether the write deletes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Op(u64);

impl Op {
    pub(crate) fn set(number: u64) -> Self {
        Self(number << 1)
    }

    pub(crate) fn del(number: u64) -> Self {
        Self(number << 1 | 1)
    }

    pub(crate) fn deletes(self) -> bool {
        self.0 & 1 == 1
    }

    /// The number, which is also the value of the key.
    pub(crate) fn number(self) -> u64 {
        self.0 >> 1
    }
}

/// The writes of the keys of one writer. The keys are numbers from 0.
#[derive(Debug)]
pub(crate) struct Model {
    /// The last write of each key that has to survive.
    acknowledged: Vec<Op>,
    /// The later writes whose outcome is unknown, in their order.
    pending: HashMap<usize, Vec<Op>>,
    losses: Losses,
}

/// Keys whose acknowledged write is lost.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) keys: HashSet<usize>,
    /// A sentence about the first of them.
    pub(crate) first: Option<String>,
}

impl Model {
    pub(crate) fn new(keys: usize) -> Self {
        Self {
            acknowledged: vec![Op::del(0); keys],
            pending: HashMap::new(),
            losses: Losses::default(),
        }
    }

    pub(crate) fn keys(&self) -> usize {
        self.acknowledged.len()
    }

    /// A write is about to be sent.
    pub(crate) fn sent(&mut self, key: usize, op: Op) {
        self.pending.entry(key).or_default().push(op);
    }

    /// The server refused a write, so it has no effect.
    pub(crate) fn refused(&mut self, key: usize, op: Op) {
        self.forget(key, |other| other != op);
    }

    /// A write has to survive from now on, or a later one.
    pub(crate) fn acknowledge(&mut self, key: usize, op: Op) {
        self.acknowledged[key] = op;
        self.forget(key, |other| other > op);
    }

    fn forget(&mut self, key: usize, keep: impl Fn(Op) -> bool) {
        if let Some(pending) = self.pending.get_mut(&key) {
            pending.retain(|&op| keep(op));
            if pending.is_empty() {
                self.pending.remove(&key);
            }
        }
    }

    /// Compares a key with the value that a server has. Only the acknowledged write or a later one
    /// explains the value, otherwise a write is lost.
    pub(crate) fn observe(&mut self, key: usize, found: Option<u64>) {
        if self.explanation(key, found).is_some() {
            return;
        }
        let acknowledged = self.acknowledged[key];
        if self.losses.keys.insert(key) && self.losses.first.is_none() {
            let found = found.map_or("is absent".to_owned(), |number| format!("has {number}"));
            let verb = if acknowledged.deletes() { "its deletion" } else { "its value" };
            let number = acknowledged.number();
            self.losses.first = Some(format!("{found}, but {verb} {number} was acknowledged"));
        }
        // The loss is found once.
        self.acknowledged[key] = found.map_or(Op::del(acknowledged.number()), Op::set);
    }

    /// Observes a key while no write is in flight and the replica is in sync: the found value is
    /// from now on the acknowledged one.
    pub(crate) fn settle(&mut self, key: usize, found: Option<u64>) {
        self.observe(key, found);
        if let Some(op) = self.explanation(key, found) {
            self.acknowledged[key] = op;
        }
        self.pending.remove(&key);
    }

    /// The write that explains a value.
    fn explanation(&self, key: usize, found: Option<u64>) -> Option<Op> {
        let pending = self.pending.get(&key).map_or(&[][..], Vec::as_slice);
        pending.iter().rev().chain([&self.acknowledged[key]]).copied().find(|op| match found {
            Some(number) => !op.deletes() && op.number() == number,
            None => op.deletes(),
        })
    }

    /// The losses since the last call.
    pub(crate) fn take_losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: usize = 1;

    /// A model in which the key has the acknowledged value 10.
    fn model() -> Model {
        let mut model = Model::new(3);
        model.sent(KEY, Op::set(10));
        model.acknowledge(KEY, Op::set(10));
        model
    }

    fn losses(mut model: Model, found: Option<u64>) -> usize {
        model.observe(KEY, found);
        model.take_losses().keys.len()
    }

    #[test]
    fn an_acknowledged_value_must_be_there() {
        assert_eq!(losses(model(), Some(10)), 0);
        assert_eq!(losses(model(), Some(8)), 1);
        assert_eq!(losses(model(), None), 1);
        assert_eq!(losses(Model::new(3), None), 0);
    }

    #[test]
    fn an_acknowledged_deletion_must_hold() {
        let deleted = || {
            let mut model = model();
            model.sent(KEY, Op::del(12));
            model.acknowledge(KEY, Op::del(12));
            model
        };
        assert_eq!(losses(deleted(), None), 0);
        assert_eq!(losses(deleted(), Some(10)), 1);
    }

    #[test]
    fn a_later_write_of_unknown_outcome_explains_both() {
        let pending = || {
            let mut model = model();
            model.sent(KEY, Op::set(14));
            model.sent(KEY, Op::del(16));
            model
        };
        for found in [Some(10), Some(14), None] {
            assert_eq!(losses(pending(), found), 0, "{found:?}");
        }
        assert_eq!(losses(pending(), Some(12)), 1);
        let mut acknowledged = pending();
        acknowledged.acknowledge(KEY, Op::set(14)); // 10 is older, 16 is still unknown
        assert_eq!(losses(acknowledged, Some(10)), 1);
        let mut refused = pending();
        refused.refused(KEY, Op::set(14));
        assert_eq!(losses(refused, Some(14)), 1);
    }

    #[test]
    fn a_settled_key_cannot_go_back() {
        let mut model = model();
        model.sent(KEY, Op::set(14));
        model.settle(KEY, Some(14));
        model.observe(KEY, Some(10));
        assert_eq!(model.take_losses().keys.len(), 1);
        assert_eq!(model.take_losses().keys.len(), 0, "a loss is found once");
    }
}
