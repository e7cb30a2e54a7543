//! All values of a history, and the versions of keys that they name.

use super::history::{End, Entry, History, Operation, Transaction};
use rustc_hash::{FxHashMap, FxHashSet};

/// No transaction, or no version.
pub(super) const NONE: u32 = u32::MAX;

/// Whether other transactions may see a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its writer committed, and did not write the key again.
    Final,
    /// Its writer wrote the key again.
    Intermediate,
    /// Its writer aborted.
    Aborted,
}

/// A value of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub(super) key: u64,
    pub(super) value: u64,
    /// The writer; `NONE` if the value is an initial one.
    pub(super) writer: u32,
    pub(super) fate: Fate,
    /// The transaction that overwrote or deleted this version, if any.
    pub(super) next: u32,
    /// The version that `next` wrote; `NONE` if it deleted the key.
    pub(super) follower: u32,
    /// Whether the key was absent before this version, or has it from the beginning.
    pub(super) starts: bool,
    /// The least end stamp of the transactions that wrote, read or replaced the version.
    pub(super) min_end: u64,
    /// The greatest start stamp of these transactions.
    pub(super) max_start: u64,
}

impl Version {
    /// Notes a transaction that wrote, read or replaced the version.
    pub(super) fn touched(&mut self, by: &Transaction) {
        self.min_end = self.min_end.min(by.end);
        self.max_start = self.max_start.max(by.start);
    }
}

/// The values of a history by name, and its keys.
pub(super) struct Table<'h> {
    pub(super) history: &'h History,
    pub(super) versions: Vec<Version>,
    /// All keys that were present at some time, in order.
    pub(super) keys: Vec<u64>,
    named: FxHashMap<u64, u32>,
}

impl<'h> Table<'h> {
    /// Reads all writes. Returns the reason if the history is not one that can be checked.
    pub(super) fn of(history: &'h History) -> Result<Self, String> {
        let size = history.initial.len() + history.transactions.len() * 2;
        let mut table = Self {
            history,
            versions: Vec::with_capacity(size),
            keys: Vec::new(),
            named: FxHashMap::with_capacity_and_hasher(size, rustc_hash::FxBuildHasher),
        };
        let mut keys = FxHashSet::default();
        for &entry in &history.initial {
            if !keys.insert(entry.0) {
                return Err(format!("key {} has two initial values", entry.0));
            }
            table.add(entry, NONE, Fate::Final)?;
        }
        let mut latest: Vec<(u64, u32)> = Vec::new();
        for (at, of) in history.transactions.iter().enumerate() {
            if of.end < of.start {
                return Err(format!("transaction {at} ends before it starts"));
            }
            latest.clear();
            for operation in &of.operations {
                if let Operation::Write { key, value } = *operation {
                    table.write(at as u32, of.outcome, key, value, &mut latest)?;
                    if of.outcome == End::Committed && value.is_some() {
                        keys.insert(key);
                    }
                }
            }
        }
        table.keys.extend(keys);
        table.keys.sort_unstable();
        Ok(table)
    }

    fn add(&mut self, (key, value): Entry, writer: u32, fate: Fate) -> Result<u32, String> {
        let at = self.versions.len() as u32;
        if self.named.insert(value, at).is_some() {
            return Err(format!("value {value} is written twice"));
        }
        let (next, follower, starts) = (NONE, NONE, writer == NONE);
        let (min_end, max_start) = (u64::MAX, 0);
        let version =
            Version { key, value, writer, fate, next, follower, starts, min_end, max_start };
        self.versions.push(version);
        Ok(at)
    }

    /// Adds a write. `latest` has the versions that its transaction has written so far.
    fn write(
        &mut self,
        by: u32,
        outcome: End,
        key: u64,
        value: Option<u64>,
        latest: &mut Vec<(u64, u32)>,
    ) -> Result<(), String> {
        let version = match (value, outcome) {
            (None, _) => NONE,
            (Some(value), End::Committed) => self.add((key, value), by, Fate::Final)?,
            (Some(value), End::Aborted) => self.add((key, value), by, Fate::Aborted)?,
        };
        let Some(own) = latest.iter_mut().find(|own| own.0 == key) else {
            latest.push((key, version));
            return Ok(());
        };
        let before = std::mem::replace(&mut own.1, version);
        if before != NONE && outcome == End::Committed {
            self.versions[before as usize].fate = Fate::Intermediate;
        }
        Ok(())
    }

    /// The version that a value names.
    pub(super) fn named(&self, value: u64) -> Option<u32> {
        self.named.get(&value).copied()
    }

    pub(super) fn version(&self, at: u32) -> &Version {
        &self.versions[at as usize]
    }

    pub(super) fn transaction(&self, at: u32) -> &'h Transaction {
        &self.history.transactions[at as usize]
    }

    /// The position of a key among `keys`.
    pub(super) fn rank(&self, key: u64) -> Option<u32> {
        self.keys.binary_search(&key).ok().map(|at| at as u32)
    }
}
