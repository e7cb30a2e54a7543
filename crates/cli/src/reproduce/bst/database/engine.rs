//! The study's database: one table, whose rows are found by a tree.

use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::reproduce::bst::placed::heap::Divided;
use crate::reproduce::bst::placed::trees::{
    BareLock, Listed, Lock, PaddedLock, Purpose, Tree, Visit,
};
use crate::reproduce::bst::placed::{failed, options};
use crate::store::timed::Timed;
use silvics::frame::Algorithm;
use silvics::{Recorded, Shared};
use silvics_layout::record::{self, Read};
use silvics_store::index::Search;
use silvics_store::lock::RowLock;
use silvics_store::{
    Column, Error as StoreError, Index, IndexSpec, Locking, NoWait, Schema, Store, Study, Table,
    Tx, Type,
};
use silvics_workload::ycsb::{Request, Study as Workload};
use std::sync::Arc;

/// The policy of the study: row-level two-phase locking that aborts at once, with its layout of
/// rows.
type Policy<L> = Locking<NoWait, Study<L>>;

/// A database, whatever its tree and its locks.
pub trait Engine: Send + Sync {
    /// Inserts the row with this key, in a transaction.
    fn insert(&self, key: u64) -> Result<(), Failure>;

    /// Runs a transaction until it is committed.
    fn transact(&self, requests: &[Request]) -> Result<(), Failure>;

    /// Runs a transaction until it is committed, and passes each request with the reads of its
    /// lookup to `see`.
    fn trace(
        &self,
        requests: &[Request],
        see: &mut dyn FnMut(Request, &[Read]),
    ) -> Result<(), Failure>;

    /// The number of updates of a row.
    fn updates(&self, key: u64) -> Result<u64, Failure>;

    /// The attempts of transactions that were aborted.
    fn aborts(&self) -> u64;
}

/// The database with index `I` and row locks `L`.
pub struct Database<I: Search<Form = u64>, L: RowLock> {
    store: Store<Policy<L>>,
    table: Table<Policy<L>>,
    index: Index<Policy<L>, u64, I>,
    key: Column<u64>,
    /// The first field counts the updates of its row.
    counter: Column<[u8]>,
}

/// Makes an empty database over a tree, whose rows and index take their objects from `heap`.
pub fn empty(
    tree: Tree,
    purpose: Purpose,
    lock: Lock,
    heap: Arc<Divided>,
) -> Result<Box<dyn Engine>, Error> {
    tree.visit(Maker { tree: tree.name, purpose, lock, heap })
}

struct Maker {
    tree: &'static str,
    purpose: Purpose,
    lock: Lock,
    heap: Arc<Divided>,
}

impl Visit for Maker {
    type Made = Result<Box<dyn Engine>, Error>;

    fn over<A: Algorithm<Key = u64>>(self) -> Self::Made {
        type Clocked<A> = Timed<Listed<A, Shared>>;
        type Traced<A> = Listed<A, Recorded<Shared>>;
        let Self { tree, purpose, lock, heap } = self;
        match (purpose, lock) {
            (Purpose::Clock, Lock::Bare) => Database::<Clocked<A>, BareLock>::boxed(tree, heap),
            (Purpose::Clock, Lock::Padded) => Database::<Clocked<A>, PaddedLock>::boxed(tree, heap),
            (Purpose::Trace, Lock::Bare) => Database::<Traced<A>, BareLock>::boxed(tree, heap),
            (Purpose::Trace, Lock::Padded) => Database::<Traced<A>, PaddedLock>::boxed(tree, heap),
        }
    }
}

fn missed(key: u64) -> Failure {
    Failure::Wrong(format!("row {key} was loaded, and is not there"))
}

/// The number in a field.
fn count(field: &[u8]) -> u64 {
    field.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl<I: Search<Form = u64>, L: RowLock> Database<I, L> {
    fn boxed(tree: &str, heap: Arc<Divided>) -> Result<Box<dyn Engine>, Error> {
        let made = Self::new(heap).map_err(|error| failed(error).of(tree))?;
        Ok(Box::new(made))
    }

    fn new(heap: Arc<Divided>) -> Result<Self, StoreError> {
        let store = Store::with_options(&options(heap))?;
        let mut schema = Schema::new("usertable").column("key", Type::U64);
        for field in 0..Workload::FIELDS {
            let bytes = Type::Bytes(Workload::FIELD_BYTES);
            schema = schema.column(format!("field{field}"), bytes);
        }
        let primary = IndexSpec::primary(["key"]).over::<I>().points_only();
        let table = store.create_table(schema.index(primary))?;
        let index = table.index_over::<u64, I>("primary")?;
        let (key, counter) = (table.column("key")?, table.column("field0")?);
        Ok(Self { store, table, index, key, counter })
    }

    /// Makes one request. Returns whether the row was found.
    #[inline]
    fn request(&self, tx: &Tx<'_, Policy<L>>, request: Request) -> Result<bool, StoreError> {
        let Request { key, is_update } = request;
        if is_update {
            return tx.update(&self.index, key, |row| {
                let count = count(row.get(self.counter)?) + 1;
                row.set(self.counter, &count.to_le_bytes())
            });
        }
        match tx.get(&self.index, key)? {
            Some(row) => Ok(row.get(self.key)? == key),
            None => Ok(false),
        }
    }

    fn run(
        &self,
        requests: &[Request],
        mut each: impl FnMut(&Tx<'_, Policy<L>>, Request) -> Result<bool, StoreError>,
    ) -> Result<(), Failure> {
        let missing = self.store.transact(|tx| {
            for request in requests {
                if !each(tx, *request)? {
                    return Ok::<_, StoreError>(Some(request.key));
                }
            }
            Ok(None)
        });
        match missing.map_err(failed)? {
            Some(key) => Err(missed(key)),
            None => Ok(()),
        }
    }
}

impl<I: Search<Form = u64>, L: RowLock> Engine for Database<I, L> {
    fn insert(&self, key: u64) -> Result<(), Failure> {
        let inserted = self.store.transact(|tx| {
            tx.insert(&self.table, |row| {
                row.set(self.key, key)?;
                row.set(self.counter, &0_u64.to_le_bytes())
            })
        });
        inserted.map_err(failed)
    }

    fn transact(&self, requests: &[Request]) -> Result<(), Failure> {
        self.run(requests, |tx, request| self.request(tx, request))
    }

    fn trace(
        &self,
        requests: &[Request],
        see: &mut dyn FnMut(Request, &[Read]),
    ) -> Result<(), Failure> {
        let mut reads = Vec::new();
        self.run(requests, |tx, request| {
            reads.clear();
            let found = record::of(&mut reads, || self.request(tx, request));
            see(request, &reads);
            found
        })
    }

    fn updates(&self, key: u64) -> Result<u64, Failure> {
        let found = self.store.transact(|tx| match tx.get(&self.index, key)? {
            Some(row) => row.get(self.counter).map(|field| Some(count(field))),
            None => Ok::<_, StoreError>(None),
        });
        found.map_err(failed)?.ok_or_else(|| missed(key))
    }

    fn aborts(&self) -> u64 {
        self.store.stats().aborts.iter().map(|(_, count)| count).sum()
    }
}
