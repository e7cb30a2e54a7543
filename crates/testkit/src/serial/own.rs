//! The view of one transaction: whether it is consistent in itself, and what it saw of others.

use super::anomaly::Kind;
use super::flaw::Flaw;
use super::groups::Scanned;
use super::history::{By, Direction, Entry, Operation, Range};
use super::table::{Fate, NONE, Table};

/// A fact that a transaction observed about the writes of others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    /// It saw this version.
    Version(u32),
    /// It found the key of this rank absent.
    Absent(u32),
    /// It did not find the value of this version.
    Missed(u32),
}

/// A fact with its observer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) by: u32,
    pub(super) fact: Fact,
}

/// The net effect of a transaction on a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    pub(super) by: u32,
    /// The version before; `NONE` if the key was absent.
    pub(super) before: u32,
    /// The version after; `NONE` if the key is absent.
    pub(super) after: u32,
}

/// Walks over the operations of transactions.
pub(super) struct Walk<'t, 'h> {
    table: &'t Table<'h>,
    by: u32,
    /// The states that the transaction saw before its own writes, with `NONE` for absent.
    seen: Vec<(u64, u32)>,
    written: Vec<Own>,
    /// The keys that it could not insert before its own writes of them.
    present: Vec<u64>,
    pub(super) observed: Vec<Observed>,
    /// The scans by group.
    pub(super) scanned: Vec<Scanned>,
    pub(super) effects: Vec<Effect>,
}

/// A key that the transaction has written.
#[derive(Clone, Copy)]
struct Own {
    key: u64,
    before: u32,
    now: Option<u64>,
}

impl<'t, 'h> Walk<'t, 'h> {
    pub(super) fn new(table: &'t Table<'h>) -> Self {
        let transactions = table.history.transactions.len();
        Self {
            table,
            by: NONE,
            seen: Vec::new(),
            written: Vec::new(),
            present: Vec::new(),
            observed: Vec::with_capacity(transactions * 8),
            scanned: Vec::new(),
            effects: Vec::with_capacity(transactions * 2),
        }
    }

    /// Walks over the operations of one committed transaction.
    pub(super) fn transaction(&mut self, by: u32) -> Result<(), Flaw> {
        self.by = by;
        self.seen.clear();
        self.written.clear();
        self.present.clear();
        for operation in &self.table.transaction(by).operations {
            match *operation {
                Operation::Read { key, value } => self.read(key, value)?,
                Operation::Write { key, value } => self.write(key, value)?,
                Operation::Find { value, found: Some(key) } => self.read(key, Some(value))?,
                Operation::Find { value, found: None } => self.missed(value)?,
                Operation::Present { key } => self.present(key)?,
                Operation::Scan { range, ref entries } => self.scan(&range, entries)?,
            }
        }
        for &key in &self.present {
            if self.seen.contains(&(key, NONE)) {
                let why = format!("T1 could not insert key {key}, and found it absent");
                return self.flaw(Kind::Internal, key, &[], why);
            }
        }
        for own in &self.written {
            let after = own.now.map_or(Some(NONE), |value| self.table.named(value));
            let after = after.unwrap_or(NONE);
            self.effects.push(Effect { by, before: own.before, after });
        }
        Ok(())
    }

    fn own(&self, key: u64) -> Option<&Own> {
        self.written.iter().find(|own| own.key == key)
    }

    fn flaw<T>(&self, kind: Kind, key: u64, others: &[u32], why: String) -> Result<T, Flaw> {
        let transactions = std::iter::once(self.by).chain(others.iter().copied()).collect();
        Err(Flaw::Anomaly { kind, transactions, keys: vec![key], why })
    }

    fn read(&mut self, key: u64, value: Option<u64>) -> Result<(), Flaw> {
        match self.own(key) {
            None => self.observe(key, value),
            Some(own) if own.now == value => Ok(()),
            Some(own) => {
                let (wrote, read) = (show(own.now), show(value));
                self.flaw(Kind::Internal, key, &[], {
                    format!("T1 made key {key} {wrote} and then read it as {read}")
                })
            }
        }
    }

    /// Notes the state of a key that the transaction has not written.
    fn observe(&mut self, key: u64, value: Option<u64>) -> Result<(), Flaw> {
        let Some(value) = value else {
            self.seen.push((key, NONE));
            if let Some(rank) = self.table.rank(key) {
                self.observed.push(Observed { by: self.by, fact: Fact::Absent(rank) });
            }
            return Ok(());
        };
        let Some(at) = self.table.named(value) else {
            let why = format!("T1 read key {key} = {value}, which no transaction wrote");
            return self.flaw(Kind::Garbage, key, &[], why);
        };
        let version = self.table.version(at);
        let writer = version.writer;
        if version.key != key {
            let others: &[u32] = if writer == NONE || writer == self.by { &[] } else { &[writer] };
            let why = format!("T1 read key {key} = {value}, a value of key {}", version.key);
            return self.flaw(Kind::Garbage, key, others, why);
        }
        if writer == self.by {
            let why = format!("T1 read key {key} = {value} before it wrote this value");
            return self.flaw(Kind::Internal, key, &[], why);
        }
        let (kind, how) = match version.fate {
            Fate::Final => {
                self.seen.push((key, at));
                self.observed.push(Observed { by: self.by, fact: Fact::Version(at) });
                return Ok(());
            }
            Fate::Aborted => (Kind::AbortedRead, "wrote and aborted"),
            Fate::Intermediate => (Kind::IntermediateRead, "wrote and then replaced"),
        };
        let why = format!("T1 read key {key} = {value}, which T2 {how}");
        self.flaw(kind, key, &[writer], why)
    }

    /// Notes that the key could not be inserted. A read says more, so this is compared only with
    /// what else the transaction saw of the key.
    fn present(&mut self, key: u64) -> Result<(), Flaw> {
        match self.own(key) {
            Some(own) if own.now.is_none() => {
                let why = format!("T1 deleted key {key} and then could not insert it");
                self.flaw(Kind::Internal, key, &[], why)
            }
            Some(_) => Ok(()),
            None => {
                self.present.push(key);
                Ok(())
            }
        }
    }

    /// Notes that the index has no entry with this value.
    fn missed(&mut self, value: u64) -> Result<(), Flaw> {
        let Some(at) = self.table.named(value) else { return Ok(()) };
        let version = self.table.version(at);
        let key = version.key;
        match self.own(key) {
            Some(own) if own.now == Some(value) => {
                let why = format!("T1 wrote key {key} = {value} and then did not find {value}");
                self.flaw(Kind::Internal, key, &[], why)
            }
            Some(_) => Ok(()), // it has replaced the value, or has not written it yet
            None => {
                if version.fate == Fate::Final && version.writer != self.by {
                    self.observed.push(Observed { by: self.by, fact: Fact::Missed(at) });
                }
                Ok(())
            }
        }
    }

    fn write(&mut self, key: u64, value: Option<u64>) -> Result<(), Flaw> {
        if let Some(own) = self.written.iter_mut().find(|own| own.key == key) {
            let before = std::mem::replace(&mut own.now, value);
            return if before.is_none() && value.is_none() { self.deleted(key) } else { Ok(()) };
        }
        let Some(&(_, before)) = self.seen.iter().rev().find(|seen| seen.0 == key) else {
            let by = self.by;
            let why = format!("transaction {by} writes key {key}, which it has not observed");
            return Err(Flaw::Unfit(why));
        };
        if before != NONE && self.seen.contains(&(key, NONE)) {
            let why = format!("T1 saw key {key} absent and present before it wrote the key");
            return self.flaw(Kind::Internal, key, &[], why);
        }
        if before == NONE && value.is_none() {
            return self.deleted(key);
        }
        self.written.push(Own { key, before, now: value });
        Ok(())
    }

    fn deleted(&self, key: u64) -> Result<(), Flaw> {
        let why = format!("T1 deleted key {key}, which was absent");
        self.flaw(Kind::Internal, key, &[], why)
    }

    fn scan(&mut self, range: &Range, entries: &[Entry]) -> Result<(), Flaw> {
        self.well_formed(range, entries)?;
        for &(key, value) in entries {
            self.read(key, Some(value))?;
        }
        let Some((from, to)) = range.covered(entries) else { return Ok(()) };
        let covers = |entry| (from..=to).contains(&range.place(entry));
        let has = |place| {
            let found = entries.binary_search_by(|&of| match range.direction {
                Direction::Ascending => range.place(of).cmp(&place),
                Direction::Descending => place.cmp(&range.place(of)),
            });
            found.is_ok()
        };
        for own in &self.written {
            let key = own.key;
            if let Some(value) = own.now
                && covers((key, value))
                && !has(range.place((key, value)))
            {
                let why = format!("T1 wrote key {key} = {value} and then missed it in a scan");
                return self.flaw(Kind::Internal, key, &[], why);
            }
        }
        match range.by {
            By::Key => {
                let first = self.table.keys.partition_point(|&key| (key, 0) < from);
                let covered = self.table.keys[first..].iter().take_while(|&&key| (key, 0) <= to);
                for (at, &key) in covered.enumerate() {
                    if !has((key, 0)) && self.own(key).is_none() {
                        self.seen.push((key, NONE));
                        let rank = (first + at) as u32;
                        self.observed.push(Observed { by: self.by, fact: Fact::Absent(rank) });
                    }
                }
            }
            By::Group => {
                let written = self.written.iter().map(|own| own.key);
                let mut known: Vec<u64> = entries.iter().map(|of| of.0).chain(written).collect();
                known.sort_unstable();
                let (by, range, covered) = (self.by, *range, (from, to));
                self.scanned.push(Scanned { by, range, covered, known });
            }
        }
        Ok(())
    }

    /// Checks the order, the bounds and the number of entries.
    fn well_formed(&self, range: &Range, entries: &[Entry]) -> Result<(), Flaw> {
        let internal = |key, why| self.flaw(Kind::Internal, key, &[], why);
        if let Some(&(key, _)) = entries.iter().find(|&&of| !range.includes(of)) {
            return internal(key, format!("a scan of T1 returned key {key}, out of its bounds"));
        }
        for pair in entries.windows(2) {
            let (a, b) = (range.place(pair[0]), range.place(pair[1]));
            let ordered = match range.direction {
                Direction::Ascending => a < b,
                Direction::Descending => a > b,
            };
            if !ordered {
                let (a, b) = (pair[0].0, pair[1].0);
                return internal(b, format!("a scan of T1 returned key {b} after key {a}"));
            }
        }
        match range.limit {
            Some(limit) if entries.len() > limit => {
                let count = entries.len();
                let why = format!("a scan of T1 returned {count} entries, at most {limit} asked");
                internal(entries[limit].0, why)
            }
            _ => Ok(()),
        }
    }
}

/// A state of a key in a sentence.
fn show(value: Option<u64>) -> String {
    value.map_or("absent".into(), |value| value.to_string())
}
