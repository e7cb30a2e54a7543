//! Stores under the checker of transactions, [`silvics_testkit::serial`].
//!
//! A store has one table with keys and values, a primary index of the keys, and a unique index of
//! the values.

use crate::index::Named;
use crate::lock::{Latched, Padded, SpinLock};
use crate::policy::{Locking, NoWait, Optimistic, Policy, WaitDie};
use crate::rows::{Inline, Study};
use crate::{Column, Error, Index, IndexSpec, Schema, Store, Table, Tx, Type};
use silvics_sync::pthread::PthreadLock;
use silvics_testkit::Failure;
use silvics_testkit::serial::{
    Attempt, Body, Direction, End, Entry, Plan, Range, Refused, Report, Transactions,
    verify_transactions,
};
use silvics_testkit::{Outcome, clock::Clock};

/// A kind of store that can be checked.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The policy, with the row layout if it is not the default one.
    pub policy: &'static str,
    /// The structure of both indexes.
    pub structure: &'static str,
    /// Whether transactions scan.
    scans: bool,
    make: Make,
}

/// Makes a store with these entries.
type Make = fn(&Subject, &[Entry]) -> Result<Box<dyn Transactions>, Failure>;

const fn subject<P: Policy>(policy: &'static str, structure: &'static str, scans: bool) -> Subject {
    Subject { policy, structure, scans, make: make::<P> }
}

type StudyLock = Latched<PthreadLock>;

/// The kinds of stores that are checked: each policy over several structures.
pub const SUBJECTS: [Subject; 12] = [
    subject::<Optimistic>("optimistic", "words", true),
    subject::<Locking<NoWait>>("no-wait", "words", true),
    subject::<Locking<WaitDie>>("wait-die", "words", true),
    subject::<Optimistic>("optimistic", "skiplist", true),
    subject::<Locking<NoWait>>("no-wait", "art", true),
    subject::<Locking<WaitDie>>("wait-die", "edge-ext-lf", true),
    subject::<Optimistic>("optimistic", "occ-avl", false),
    subject::<Locking<NoWait>>("no-wait", "int-lf", false),
    subject::<Locking<WaitDie>>("wait-die", "citrus", false),
    subject::<Locking<WaitDie, Inline<Latched<SpinLock>>>>("wait-die:spin", "words", true),
    subject::<Locking<NoWait, Study<StudyLock>>>("no-wait:study", "words", true),
    subject::<Locking<NoWait, Study<Padded<StudyLock>>>>("no-wait:study-padded", "lfca-tree", true),
];

impl Subject {
    /// Records histories of transactions on such stores, and checks them.
    pub fn verify(&self, plan: &Plan, clock: &Clock, stop: impl Fn() -> bool + Sync) -> Report {
        verify_transactions(&|initial| (self.make)(self, initial), plan, clock, stop)
    }
}

/// A store with one table.
struct Pairs<P: Policy> {
    store: Store<P>,
    table: Table<P>,
    by_key: Index<P, u64, Named<u64>>,
    by_value: Index<P, u64, Named<u64>>,
    key: Column<u64>,
    value: Column<u64>,
    scans: bool,
}

fn make<P: Policy>(subject: &Subject, initial: &[Entry]) -> Result<Box<dyn Transactions>, Failure> {
    let pairs = Pairs::<P>::new(subject).map_err(|error| failed(&error))?;
    let filled = pairs.store.transact(|tx| {
        let fill = |&(key, value): &Entry| pairs.insert(tx, key, value);
        initial.iter().try_for_each(fill)
    });
    filled.map_err(|error| failed(&error))?;
    Ok(Box::new(pairs))
}

fn failed(error: &Error) -> Failure {
    Failure::new(error.to_string())
}

impl<P: Policy> Pairs<P> {
    fn new(subject: &Subject) -> Result<Self, Error> {
        let with = |spec: IndexSpec| {
            let spec = spec.named(subject.structure);
            if subject.scans { spec } else { spec.points_only() }
        };
        let store = Store::new()?;
        let schema = Schema::new("pairs")
            .column("key", Type::U64)
            .column("value", Type::U64)
            .index(with(IndexSpec::primary(["key"])))
            .index(with(IndexSpec::unique("by_value", ["value"])));
        let table = store.create_table(schema)?;
        Ok(Self {
            by_key: table.index("primary")?,
            by_value: table.index("by_value")?,
            key: table.column("key")?,
            value: table.column("value")?,
            scans: subject.scans,
            table,
            store,
        })
    }

    fn insert(&self, tx: &Tx<'_, P>, key: u64, value: u64) -> Result<(), Error> {
        tx.insert(&self.table, |row| {
            row.set(self.key, key)?;
            row.set(self.value, value)
        })
    }
}

/// An attempt of a transaction.
struct Try<'a, 's, P: Policy> {
    pairs: &'a Pairs<P>,
    tx: &'a Tx<'s, P>,
    /// An error that is no conflict.
    failure: &'a mut Option<Error>,
}

impl<P: Policy> Try<'_, '_, P> {
    fn refused(&mut self, error: Error) -> Refused {
        if !matches!(error, Error::Aborted(_)) {
            *self.failure = Some(error);
        }
        Refused::Conflict
    }
}

impl<P: Policy> Attempt for Try<'_, '_, P> {
    fn read(&mut self, key: u64) -> Result<Option<u64>, Refused> {
        let row = self.tx.get(&self.pairs.by_key, key);
        let value = row.and_then(|row| row.map(|row| row.get(self.pairs.value)).transpose());
        value.map_err(|error| self.refused(error))
    }

    fn read_many(&mut self, keys: &[u64], out: &mut Vec<Option<u64>>) -> Result<(), Refused> {
        let mut rows = vec![None; keys.len()];
        let done = self.tx.get_many(&self.pairs.by_key, keys, &mut rows);
        done.map_err(|error| self.refused(error))?;
        for row in rows {
            let value = row.map(|row| row.get(self.pairs.value)).transpose();
            out.push(value.map_err(|error| self.refused(error))?);
        }
        Ok(())
    }

    fn write(&mut self, key: u64, value: u64) -> Result<(), Refused> {
        let pairs = self.pairs;
        let updated = self.tx.update(&pairs.by_key, key, |row| row.set(pairs.value, value));
        let done = match updated {
            Ok(true) => Ok(()),
            Ok(false) => pairs.insert(self.tx, key, value),
            Err(error) => Err(error),
        };
        done.map_err(|error| self.refused(error))
    }

    fn delete(&mut self, key: u64) -> Result<(), Refused> {
        let deleted = self.tx.delete(&self.pairs.by_key, key);
        deleted.map(|_| ()).map_err(|error| self.refused(error))
    }

    fn scan(&mut self, range: &Range, out: &mut Vec<Entry>) -> Result<(), Refused> {
        let pairs = self.pairs;
        let mut scan = self.tx.scan(&pairs.by_key, range.from..=range.to);
        if range.direction == Direction::Descending {
            scan = scan.descending();
        }
        if let Some(limit) = range.limit {
            scan = scan.limit(limit);
        }
        let rows = scan.rows().and_then(|rows| {
            let entry = |row: &crate::Row<'_>| Ok((row.get(pairs.key)?, row.get(pairs.value)?));
            rows.iter().map(entry).collect::<Result<Vec<Entry>, Error>>()
        });
        out.extend(rows.map_err(|error| self.refused(error))?);
        Ok(())
    }

    fn find(&mut self, value: u64) -> Result<Option<u64>, Refused> {
        let row = self.tx.get(&self.pairs.by_value, value);
        let key = row.and_then(|row| row.map(|row| row.get(self.pairs.key)).transpose());
        key.map_err(|error| self.refused(error))
    }
}

impl<P: Policy> Transactions for Pairs<P> {
    fn attempt(&self, body: Body<'_>) -> Result<End, Failure> {
        let mut failure = None;
        let tx = self.store.begin();
        let done = body(&mut Try { pairs: self, tx: &tx, failure: &mut failure });
        let ended = match (done, failure) {
            (_, Some(error)) => return Err(failed(&error)),
            (Ok(()), None) => tx.commit(),
            (Err(_), None) => {
                tx.abort();
                return Ok(End::Aborted);
            }
        };
        match ended {
            Ok(()) => Ok(End::Committed),
            Err(Error::Aborted(_)) => Ok(End::Aborted),
            Err(error) => Err(failed(&error)),
        }
    }

    fn scans(&self) -> bool {
        self.scans
    }

    fn at_rest(&self) -> Outcome {
        let counts: Vec<usize> = self.table.memory().iter().map(|part| part.entries).collect();
        if counts.iter().all(|count| *count == counts[0]) {
            return Ok(());
        }
        Err(Failure::new(format!("the table and its indexes have {counts:?} entries")))
    }
}
