//! A store with one table, and a model of it. `tests/support` has no model that serves: it compares
//! each answer at once, but here the order of the transactions is known only at the end. Its rows
//! of some 400 bytes would also take many steps.

use silvics::Options;
use silvics_store::index::Named;
use silvics_store::{
    Column, Error, Index, IndexSpec, Multi, Policy, Row, Schema, Store, StoreOptions, Table, Tx,
    Type,
};
use silvics_sync::model::below;
use silvics_testkit::schedules::Model as PoisoningHeap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The structures of the indexes: for numbers, and for byte strings.
pub(super) type Structures = (&'static str, &'static str);

/// A row: its number and its code, which are unique, and its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) id: u64,
    pub(super) code: u64,
    pub(super) group: u64,
}

/// A unique index.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    Id,
    Code,
}

/// An operation of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Get(By, u64),
    Scan {
        by: By,
        from: u64,
        to: u64,
        descending: bool,
        limit: usize,
    },
    InGroup(u64),
    Insert(Item),
    /// Gives the row with this number another code and group.
    Update(Item),
    Delete(By, u64),
}

impl Op {
    /// A scan of all rows.
    pub(super) fn all(by: By, descending: bool) -> Self {
        Self::Scan { by, from: 0, to: u64::MAX, descending, limit: usize::MAX }
    }

    /// The operation that the schedule chooses, on numbers and codes below `keys`.
    pub(super) fn choose(keys: u64) -> Self {
        match below(14) {
            0 => Self::Get(By::Id, below(keys)),
            1 => Self::Get(By::Code, below(keys)),
            2..=4 => {
                // Rows move in the index of codes only.
                let by = if below(3) == 0 { By::Id } else { By::Code };
                let (from, descending) = (below(keys), below(2) == 0);
                let (to, limit) = (from + below(3), 1 + below(4) as usize);
                Self::Scan { by, from, to, descending, limit }
            }
            5 => Self::InGroup(below(GROUPS)),
            _ => Self::choose_write(keys),
        }
    }

    /// The write that the schedule chooses, on numbers and codes below `keys`.
    pub(super) fn choose_write(keys: u64) -> Self {
        let item = || Item { id: below(keys), code: below(keys), group: below(GROUPS) };
        match below(8) {
            0 | 1 => Self::Insert(item()),
            2..=4 => Self::Update(item()),
            5 | 6 => Self::Delete(By::Id, below(keys)),
            _ => Self::Delete(By::Code, below(keys)),
        }
    }
}

/// Groups are below this.
pub(super) const GROUPS: u64 = 2;

/// The answer to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Rows(Vec<Item>),
    /// Whether there was a row to change.
    Done(bool),
    /// Another row has the key.
    Refused,
}

/// The state of the table as it must be: the rows by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Model(BTreeMap<u64, Item>);

impl Model {
    fn find(&self, by: By, key: u64) -> Option<Item> {
        match by {
            By::Id => self.0.get(&key).copied(),
            By::Code => self.0.values().find(|item| item.code == key).copied(),
        }
    }

    fn is_free(&self, code: u64, id: u64) -> bool {
        self.find(By::Code, code).is_none_or(|of| of.id == id)
    }

    /// Runs an operation, and returns the answer that the store must give.
    pub(super) fn answer(&mut self, op: &Op) -> Answer {
        match *op {
            Op::Get(by, key) => Answer::Rows(self.find(by, key).into_iter().collect()),
            Op::Scan { by, from, to, descending, limit } => {
                let key = |item: &Item| match by {
                    By::Id => item.id,
                    By::Code => item.code,
                };
                let covered = |item: &Item| (from..=to).contains(&key(item));
                let mut rows: Vec<_> = self.0.values().copied().filter(covered).collect();
                rows.sort_unstable_by_key(key);
                if descending {
                    rows.reverse();
                }
                rows.truncate(limit);
                Answer::Rows(rows)
            }
            Op::InGroup(group) => {
                let rows = self.0.values().copied().filter(|item| item.group == group);
                Answer::Rows(rows.collect())
            }
            Op::Insert(item) => {
                if self.0.contains_key(&item.id) || !self.is_free(item.code, item.id) {
                    return Answer::Refused;
                }
                self.0.insert(item.id, item);
                Answer::Done(true)
            }
            Op::Update(item) => {
                if !self.0.contains_key(&item.id) {
                    return Answer::Done(false);
                }
                if !self.is_free(item.code, item.id) {
                    return Answer::Refused;
                }
                self.0.insert(item.id, item);
                Answer::Done(true)
            }
            Op::Delete(by, key) => {
                let found = self.find(by, key);
                Answer::Done(found.is_some_and(|item| self.0.remove(&item.id).is_some()))
            }
        }
    }
}

/// A store with its handles.
pub(super) struct World<P: Policy> {
    pub(super) store: Store<P>,
    table: Table<P>,
    by_id: Index<P, u64, Named<u64>>,
    by_code: Index<P, u64, Named<u64>>,
    by_group: Multi<P, u64>,
    id: Column<u64>,
    code: Column<u64>,
    group: Column<u64>,
}

impl<P: Policy> World<P> {
    /// Makes an empty table. The memory of nodes and rows is poisoned when it is freed, or comes
    /// from pools, which use it again.
    pub(super) fn new((words, bytes): Structures, pooled: bool) -> Result<Self, Error> {
        let mut options = StoreOptions::default();
        if !pooled {
            options.indexes = Options { heap: Some(Arc::new(PoisoningHeap)), ..Options::default() };
            options.indexes_in_heap = true;
            options.rows_in_heap = Some(Arc::new(PoisoningHeap));
        }
        let store = Store::with_options(&options)?;
        let table = store.create_table(
            Schema::new("items")
                .column("id", Type::U64)
                .column("code", Type::U64)
                .column("group", Type::U64)
                .index(IndexSpec::primary(["id"]).named(words))
                .index(IndexSpec::unique("by_code", ["code"]).named(words))
                .index(IndexSpec::multi("by_group", ["group"]).named(bytes)),
        )?;
        Ok(Self {
            by_id: table.index("primary")?,
            by_code: table.index("by_code")?,
            by_group: table.multi("by_group")?,
            id: table.column("id")?,
            code: table.column("code")?,
            group: table.column("group")?,
            table,
            store,
        })
    }

    fn unique(&self, by: By) -> &Index<P, u64, Named<u64>> {
        match by {
            By::Id => &self.by_id,
            By::Code => &self.by_code,
        }
    }

    fn rows<'t>(&self, rows: impl IntoIterator<Item = Row<'t>>) -> Result<Answer, Error> {
        let item = |row: Row<'_>| {
            let (id, code, group) = (row.get(self.id)?, row.get(self.code)?, row.get(self.group)?);
            Ok(Item { id, code, group })
        };
        rows.into_iter().map(item).collect::<Result<_, _>>().map(Answer::Rows)
    }

    /// Runs an operation. Errors are those that end a transaction.
    pub(super) fn answer(&self, tx: &Tx<'_, P>, op: &Op) -> Result<Answer, Error> {
        let changed = match *op {
            Op::Get(by, key) => return self.rows(tx.get(self.unique(by), key)?),
            Op::Scan { by, from, to, descending, limit } => {
                let scan = tx.scan(self.unique(by), from..=to).limit(limit);
                let scan = if descending { scan.descending() } else { scan };
                return self.rows(scan.rows()?);
            }
            Op::InGroup(group) => return self.rows(tx.find_all(&self.by_group, group).rows()?),
            Op::Insert(Item { id, code, group }) => {
                let inserted = tx.insert(&self.table, |row| {
                    row.set(self.id, id)?;
                    row.set(self.code, code)?;
                    row.set(self.group, group)
                });
                inserted.map(|()| true)
            }
            Op::Update(Item { id, code, group }) => tx.update(&self.by_id, id, |row| {
                row.set(self.code, code)?;
                row.set(self.group, group)
            }),
            Op::Delete(by, key) => tx.delete(self.unique(by), key),
        };
        match changed {
            Ok(is_there) => Ok(Answer::Done(is_there)),
            Err(Error::Unique { .. }) => Ok(Answer::Refused),
            Err(error) => Err(error),
        }
    }

    /// The number of entries of each index.
    pub(super) fn entries(&self) -> Vec<usize> {
        self.table.memory().iter().map(|part| part.entries).collect()
    }
}
