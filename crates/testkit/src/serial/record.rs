//! Calls a store for one thread, and records the attempts.

use super::face::{Attempt, Refused, Transactions};
use super::history::{End, Entry, Operation, Range, Transaction};
use crate::Failure;
use crate::clock::Clock;

/// The attempts of one thread.
pub(super) struct Recorder<'a> {
    store: &'a dyn Transactions,
    clock: &'a Clock,
    thread: usize,
    pub(super) transactions: Vec<Transaction>,
}

/// A transaction under way, whose operations are recorded.
pub(super) struct Recorded<'a> {
    attempt: &'a mut dyn Attempt,
    operations: &'a mut Vec<Operation>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(store: &'a dyn Transactions, clock: &'a Clock, thread: usize) -> Self {
        Self { store, clock, thread, transactions: Vec::new() }
    }

    /// Makes one attempt. Returns whether it committed.
    pub(super) fn attempt(
        &mut self,
        mut body: impl FnMut(&mut Recorded<'_>) -> Result<(), Refused>,
    ) -> Result<End, Failure> {
        let Self { store, clock, thread, ref mut transactions } = *self;
        let mut start = clock.start();
        let mut operations = Vec::new();
        let (mut ran, mut refused) = (None, false);
        let outcome = store.attempt(&mut |attempt| {
            if let Some(end) = ran.take() {
                // The engine retries. The next attempt begins when the last one has ended.
                let operations = std::mem::take(&mut operations);
                let outcome = End::Aborted;
                transactions.push(Transaction { thread, start, end, outcome, operations });
                start = end;
            }
            let result = body(&mut Recorded { attempt, operations: &mut operations });
            (ran, refused) = (Some(clock.end()), result.is_err());
            result
        })?;
        let end = clock.end();
        if outcome == End::Committed && (refused || ran.is_none()) {
            let what = if refused { "that had to abort" } else { "that it has not run" };
            return Err(Failure::new(format!("the store committed a transaction {what}")));
        }
        transactions.push(Transaction { thread, start, end, outcome, operations });
        Ok(outcome)
    }
}

impl Recorded<'_> {
    pub(super) fn read(&mut self, key: u64) -> Result<Option<u64>, Refused> {
        let value = self.attempt.read(key)?;
        self.operations.push(Operation::Read { key, value });
        Ok(value)
    }

    pub(super) fn read_many(&mut self, keys: &[u64]) -> Result<Vec<Option<u64>>, Refused> {
        let mut values = Vec::with_capacity(keys.len());
        self.attempt.read_many(keys, &mut values)?;
        // If an answer is missing, the key counts as absent: the check will notice.
        values.resize(keys.len(), None);
        for (&key, &value) in keys.iter().zip(&values) {
            self.operations.push(Operation::Read { key, value });
        }
        Ok(values)
    }

    /// Replaces the value of a key. Returns whether the key was present.
    pub(super) fn replace(&mut self, key: u64, value: u64) -> Result<bool, Refused> {
        let at = self.begin(key, Some(value));
        let before = self.attempt.replace(key, value)?;
        self.operations.insert(at, Operation::Read { key, value: before });
        Ok(self.done(at + 1, before.is_some()))
    }

    /// Inserts a key. Returns whether it was absent.
    pub(super) fn insert(&mut self, key: u64, value: u64) -> Result<bool, Refused> {
        let at = self.begin(key, Some(value));
        let was_absent = self.attempt.insert(key, value)?;
        let found = if was_absent {
            Operation::Read { key, value: None }
        } else {
            Operation::Present { key }
        };
        self.operations.insert(at, found);
        Ok(self.done(at + 1, was_absent))
    }

    /// Deletes a key. Returns whether it was present.
    pub(super) fn delete(&mut self, key: u64) -> Result<bool, Refused> {
        let at = self.begin(key, None);
        let was_present = self.attempt.delete(key)?;
        if !was_present {
            self.operations.push(Operation::Read { key, value: None });
        }
        Ok(self.done(at, was_present))
    }

    /// Records a write before it is tried: if it is refused, no other transaction may see it.
    fn begin(&mut self, key: u64, value: Option<u64>) -> usize {
        self.operations.push(Operation::Write { key, value });
        self.operations.len() - 1
    }

    /// Forgets the write with this number unless it was done.
    fn done(&mut self, number: usize, is_done: bool) -> bool {
        if !is_done {
            self.operations.remove(number);
        }
        is_done
    }

    pub(super) fn scan(&mut self, range: Range) -> Result<Vec<Entry>, Refused> {
        let mut entries = Vec::new();
        self.attempt.scan(&range, &mut entries)?;
        self.operations.push(Operation::Scan { range, entries: entries.clone() });
        Ok(entries)
    }

    pub(super) fn find(&mut self, value: u64) -> Result<Option<u64>, Refused> {
        let found = self.attempt.find(value)?;
        self.operations.push(Operation::Find { value, found });
        Ok(found)
    }
}
