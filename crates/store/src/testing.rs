//! Stores under the checker of transactions, [`silvics_testkit::serial`].
//!
//! A store has one table with keys, values and the groups of the values. It has a primary index of
//! the keys and a unique index of the values. If transactions scan, it has a unique index of groups
//! with keys, and an index of the groups that is not unique.

use crate::canary::Canary;
use crate::index::{MultiLists, Named};
use crate::lock::{Latched, Padded, SpinLock};
use crate::policy::{Locking, NoWait, Optimistic, Policy, WaitDie};
use crate::rows::{Inline, Study};
use crate::{Column, Error, Index, IndexSpec, Multi, RowMut, Schema, Store, Table, Tx, Type};
use silvics::Options;
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::pthread::PthreadLock;
use silvics_testkit::Failure;
use silvics_testkit::serial::{
    Attempt, Body, By, Direction, End, Entry, Plan, Range, Refused, Report, Transactions, group,
    verify_transactions,
};
use silvics_testkit::{Outcome, clock::Clock};

/// A kind of store that can be checked.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The policy, with the row layout if it is not the default one.
    pub policy: &'static str,
    /// The structure of the indexes of numbers. The others have the default one.
    pub structure: &'static str,
    /// Whether transactions scan.
    scans: bool,
    /// Whether the index of the groups is the study's, with lists.
    lists: bool,
    make: Make,
}

/// Makes a store with these entries.
type Make = fn(&Subject, &[Entry]) -> Result<Box<dyn Transactions>, Failure>;

const fn subject<P: Policy>(policy: &'static str, structure: &'static str, scans: bool) -> Subject {
    Subject { policy, structure, scans, lists: false, make: make::<P> }
}

/// A kind of store whose index of the groups is the study's.
const fn with_lists<P: Policy>(policy: &'static str, structure: &'static str) -> Subject {
    Subject { lists: true, ..subject::<P>(policy, structure, true) }
}

type StudyLock = Latched<PthreadLock>;

/// The kinds of stores that are checked: each policy over several structures.
pub const SUBJECTS: [Subject; 14] = [
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
    with_lists::<Locking<NoWait, Study<StudyLock>>>("no-wait:study", "words"),
    with_lists::<Locking<NoWait, Study<Padded<StudyLock>>>>("no-wait:study-padded", "lfca-tree"),
    with_lists::<Optimistic>("optimistic:lists", "words"),
    with_lists::<Locking<WaitDie>>("wait-die:lists", "skiplist"),
];

impl Subject {
    /// The kinds of stores in which a mistake can be made: one for each policy that can make it.
    pub fn with(canary: Canary) -> impl Iterator<Item = &'static Self> {
        let (policies, scans): (&[&str], bool) = match canary {
            Canary::LockReleasedEarly | Canary::NextKeyIgnored => (&["no-wait", "wait-die"], true),
            Canary::MissedKeyUnlocked => (&["no-wait", "wait-die"], false),
            Canary::PhantomsIgnored
            | Canary::ReadsNotValidated
            | Canary::LostUpdate
            | Canary::ScannedKeysIgnored => (&["optimistic"], true),
            Canary::IndexNotUpdated
            | Canary::IndexTorn
            | Canary::EntryLeft
            | Canary::EntryStolen => (&["optimistic", "no-wait", "wait-die"], true),
            // Only a recovery shows them.
            Canary::ReadsNotAwaited | Canary::AppendedLate => (&[], true),
        };
        let fits = move |policy| move |of: &&Self| of.policy == policy && of.scans == scans;
        policies.iter().filter_map(move |&policy| SUBJECTS.iter().find(fits(policy)))
    }

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
    by_group: Option<ByGroup<P>>,
    key: Column<u64>,
    value: Column<u64>,
    group: Column<u64>,
    /// The attempts so far.
    attempts: AtomicU64,
}

/// The indexes of groups.
struct ByGroup<P: Policy> {
    /// For several groups.
    with_keys: Index<P, (u64, u64), Named<[u8]>>,
    /// For one group.
    alone: Multi<P, u64>,
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
        let mut schema = Schema::new("pairs")
            .column("key", Type::U64)
            .column("value", Type::U64)
            .column("group", Type::U64)
            .index(with(IndexSpec::primary(["key"])))
            .index(with(IndexSpec::unique("by_value", ["value"])));
        if subject.scans {
            let in_group = IndexSpec::multi("in_group", ["group"]);
            // A tree that cannot scan.
            let lists = |options: &Options| {
                MultiLists::around(Named::with_structure("occ-avl", false, options)?, options)
            };
            schema = schema
                .index(IndexSpec::unique("by_group", ["group", "key"]))
                .index(if subject.lists { in_group.made_by(lists) } else { in_group });
        }
        let table = store.create_table(schema)?;
        let by_group = || {
            let (with_keys, alone) = (table.index("by_group")?, table.multi("in_group")?);
            Ok::<_, Error>(ByGroup { with_keys, alone })
        };
        Ok(Self {
            by_key: table.index("primary")?,
            by_value: table.index("by_value")?,
            by_group: subject.scans.then(by_group).transpose()?,
            key: table.column("key")?,
            value: table.column("value")?,
            group: table.column("group")?,
            attempts: AtomicU64::new(0),
            table,
            store,
        })
    }

    fn insert(&self, tx: &Tx<'_, P>, key: u64, value: u64) -> Result<(), Error> {
        tx.insert(&self.table, |row| {
            row.set(self.key, key)?;
            self.set(row, value)
        })
    }

    /// Runs attempts in [`Store::transact`] until one is committed or `body` asks for an abort.
    fn transact(&self, body: Body<'_>) -> Result<End, Failure> {
        let ended = self.store.transact(|tx| {
            let mut failure = None;
            let done = body(&mut Try { pairs: self, tx, failure: &mut failure });
            match (done, failure) {
                (_, Some(error)) => Err(Stopped::Failed(error)),
                (Ok(()), None) => Ok(()),
                (Err(_), None) => Err(Stopped::Refused),
            }
        });
        match ended {
            Ok(()) => Ok(End::Committed),
            Err(Stopped::Refused) => Ok(End::Aborted),
            Err(Stopped::Failed(error)) => Err(failed(&error)),
        }
    }

    fn set(&self, row: &mut RowMut<'_>, value: u64) -> Result<(), Error> {
        row.set(self.value, value)?;
        row.set(self.group, group(value))
    }
}

/// Why a body has ended without success.
enum Stopped {
    Refused,
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Failed(error)
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

    fn replace(&mut self, key: u64, value: u64) -> Result<Option<u64>, Refused> {
        let (pairs, mut before) = (self.pairs, None);
        let updated = self.tx.update(&pairs.by_key, key, |row| {
            before = Some(row.get(pairs.value)?);
            pairs.set(row, value)
        });
        let updated = updated.map_err(|error| self.refused(error))?;
        Ok(before.filter(|_| updated))
    }

    fn insert(&mut self, key: u64, value: u64) -> Result<bool, Refused> {
        match self.pairs.insert(self.tx, key, value) {
            Ok(()) => Ok(true),
            Err(Error::Unique { index, .. }) if index == "primary" => Ok(false),
            Err(error) => Err(self.refused(error)),
        }
    }

    fn delete(&mut self, key: u64) -> Result<bool, Refused> {
        let (pairs, tx) = (self.pairs, self.tx);
        let by_value = || match tx.get(&pairs.by_key, key)? {
            Some(row) => tx.delete(&pairs.by_value, row.get(pairs.value)?),
            None => Ok(false),
        };
        let is_even = key.is_multiple_of(2);
        let deleted = if is_even { by_value() } else { tx.delete(&pairs.by_key, key) };
        deleted.map_err(|error| self.refused(error))
    }

    fn scan(&mut self, range: &Range, out: &mut Vec<Entry>) -> Result<(), Refused> {
        let pairs = self.pairs;
        let mut scan = match (range.by, &pairs.by_group) {
            (By::Group, Some(of)) if range.from == range.to => {
                self.tx.find_all(&of.alone, range.from)
            }
            (By::Group, Some(of)) => {
                self.tx.scan(&of.with_keys, (range.from, 0)..=(range.to, u64::MAX))
            }
            (By::Group, None) | (By::Key, _) => self.tx.scan(&pairs.by_key, range.from..=range.to),
        };
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
        // Half of the attempts are retried by the store.
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(2) {
            return self.transact(body);
        }
        let mut failure = None;
        let tx = self.store.begin();
        let done = body(&mut Try { pairs: self, tx: &tx, failure: &mut failure });
        let ended = match (done, failure) {
            (_, Some(error)) => return Err(failed(&error)),
            (Ok(()), None) => tx.commit(),
            (Err(_), None) => {
                if number % 4 == 1 {
                    tx.abort();
                }
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
        self.by_group.is_some()
    }

    fn at_rest(&self, entries: &[Entry]) -> Outcome {
        let counts: Vec<usize> = self.table.memory().iter().map(|part| part.entries).collect();
        if counts.iter().all(|count| *count == entries.len()) {
            return Ok(());
        }
        let rows = entries.len();
        let why = format!("the table and its indexes have {counts:?} entries for {rows} rows");
        Err(Failure::new(why))
    }
}
