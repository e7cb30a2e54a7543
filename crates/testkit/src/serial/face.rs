//! The face of a transactional store, which an engine implements to be checked.

use super::history::{End, Entry, Range};
use crate::{Failure, Outcome};

/// The reason why a transaction cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The engine refuses an operation: the transaction must abort.
    Conflict,
    /// The body of the transaction asks for an abort.
    Voluntary,
}

/// The body of a transaction. An error asks for an abort.
pub type Body<'a> = &'a mut dyn FnMut(&mut dyn Attempt) -> Result<(), Refused>;

/// A store with transactions from `u64` to `u64`. Several threads call it at a time.
pub trait Transactions: Sync {
    /// Begins a transaction, runs `body` in it, and commits it unless `body` returns an error.
    /// Returns whether the transaction committed.
    ///
    /// The transaction begins and ends within this call. If the engine retries by itself, it may
    /// call `body` again: each call is recorded as an attempt, and the last one has the outcome
    /// returned. An error of this method is not a conflict, for instance a failed allocation. It
    /// ends the run.
    fn attempt(&self, body: Body<'_>) -> Result<End, Failure>;

    /// Whether [`Attempt::scan`] can be called.
    fn scans(&self) -> bool {
        true
    }

    /// Whether [`Attempt::find`] can be called.
    fn finds(&self) -> bool {
        true
    }

    /// Whether [`Attempt::scan`] can be called with ranges of groups.
    fn groups(&self) -> bool {
        self.scans()
    }

    /// Checks the store while no transaction is under way, after each history. `entries` are all
    /// entries that a transaction read then.
    fn at_rest(&self, entries: &[Entry]) -> Outcome {
        let _ = entries;
        Ok(())
    }
}

/// A transaction under way. Each method may refuse; then the transaction must abort.
pub trait Attempt {
    /// Returns the value of a key.
    fn read(&mut self, key: u64) -> Result<Option<u64>, Refused>;

    /// Appends the value of each key to `out`.
    fn read_many(&mut self, keys: &[u64], out: &mut Vec<Option<u64>>) -> Result<(), Refused> {
        for &key in keys {
            out.push(self.read(key)?);
        }
        Ok(())
    }

    /// Makes `value` the value of a key that is present, and returns the value before. If the key
    /// is absent, does nothing.
    fn replace(&mut self, key: u64, value: u64) -> Result<Option<u64>, Refused>;

    /// Inserts a key, and returns true. If the key is present, does nothing, and returns false.
    fn insert(&mut self, key: u64, value: u64) -> Result<bool, Refused>;

    /// Makes a key absent. Returns whether it was present.
    fn delete(&mut self, key: u64) -> Result<bool, Refused>;

    /// Appends the entries of a range to `out`, in the range's order. Called only if
    /// [`Transactions::scans`] returns true. A range [by group](super::By::Group) needs an index on
    /// the groups of the values, and is used only if [`Transactions::groups`] returns true.
    fn scan(&mut self, range: &Range, out: &mut Vec<Entry>) -> Result<(), Refused>;

    /// Returns the key that has this value, by a unique secondary index on the values. Called only
    /// if [`Transactions::finds`] returns true.
    fn find(&mut self, value: u64) -> Result<Option<u64>, Refused>;
}

/// Makes a store with these initial entries. `Sync` is not needed: one thread makes all stores.
pub type Make<'a> = &'a dyn Fn(&[Entry]) -> Result<Box<dyn Transactions>, Failure>;
