//! Stores: their tables, their transactions, and what they count.

use crate::durability::{Checkpoints, Log, Position, Ticket};
use crate::error::{Conflict, Error, SchemaError};
use crate::index::{ErasedIndex, IndexCore, Maker, Named, default_structure};
use crate::key::FormKind;
use crate::lock::WordLock;
use crate::lock::table::LockTable;
use crate::policy::{Optimistic, Policy};
use crate::postponed::{NEEDS_REPAIRS, Postponed, needs_repairs};
use crate::rows::RowMemory;
use crate::schema::{IndexSpec, Kind, Place, Places, Schema, Structure, form};
use crate::table::{Table, TableCore};
use crate::tx::Tx;
use crate::tx::state::{Inner, Workspace};
use silvics::domain::Garbage;
use silvics::{Budget, Domain, Heap, Options};
use silvics_pool::Config;
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use silvics_sync::backoff::Backoff;
use silvics_sync::cell::UnsafeCell;
use silvics_sync::per_thread::{PerThread, thread_index};
use silvics_sync::stamp::stamp;
use silvics_sync::{CachePadded, Mutex};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The settings of a [`Store`].
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// The settings of the indexes' memory: pages, memory limit, tuning, and the heap of indexes
    /// with the placement [`Shared`](silvics::Shared). The domain is ignored: a store has its own.
    pub indexes: Options,
    /// Whether indexes that are chosen by name, or by default, take their nodes from that heap.
    pub indexes_in_heap: bool,
    /// The heap of rows; `None` for a pool for each kind of object. If it is the heap of the
    /// indexes, rows lie between nodes, as in most databases.
    pub rows_in_heap: Option<Arc<dyn Heap>>,
}

/// A database in memory.
///
/// Its transactions are strictly serializable, under each [policy](crate::policy) `P`. All threads
/// may use it. Dropping it releases its memory. [`Store::open`] makes one that also has a log and
/// checkpoints in a folder.
///
/// ```
/// use silvics_store::{Error, IndexSpec, Schema, Store, Type};
///
/// let store: Store = Store::new()?;
/// let accounts = store.create_table(
///     Schema::new("accounts").column("id", Type::U64).column("balance", Type::I64).primary(["id"]),
/// )?;
/// let by_id = accounts.index::<u64>("primary")?;
/// let (id, balance) = (accounts.column::<u64>("id")?, accounts.column::<i64>("balance")?);
/// store.transact(|tx| {
///     for number in 1..=2 {
///         tx.insert(&accounts, |row| {
///             row.set(id, number)?;
///             row.set(balance, 100)
///         })?;
///     }
///     Ok::<(), Error>(())
/// })?;
/// // Moves 30 from one account to the other, or nothing.
/// store.transact(|tx| {
///     let mut move_to = |number, amount| {
///         tx.update(&by_id, number, |row| {
///             let now = row.get(balance)?;
///             row.set(balance, now + amount)
///         })
///     };
///     Ok::<bool, Error>(move_to(1_u64, -30)? && move_to(2, 30)?)
/// })?;
/// let both = store.transact(|tx| {
///     let rows = tx.scan(&by_id, ..).rows()?;
///     rows.iter().map(|row| row.get(balance)).collect::<Result<Vec<_>, Error>>()
/// })?;
/// assert_eq!(both, [70, 130]);
/// # Ok::<(), Error>(())
/// ```
pub struct Store<P: Policy = Optimistic> {
    pub(crate) core: StoreCore<P>,
}

impl<P: Policy> fmt::Debug for Store<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("policy", &P::name()).finish_non_exhaustive()
    }
}

/// The parts of a store that transactions use.
pub(crate) struct StoreCore<P: Policy> {
    pub(crate) number: u64,
    pub(crate) locks: LockTable,
    options: StoreOptions,
    pub(crate) domain: Domain,
    /// The tables, which stay until the store is dropped (T1).
    pub(crate) tables: Mutex<Vec<Arc<TableCore<P>>>>,
    threads: PerThread<Own<P>>,
    /// The next age of a transaction. Relaxed: it only has to be unique.
    ages: AtomicU64,
    /// See `policy/optimistic.rs`.
    epoch: AtomicU64,
    born: Instant,
    pub(crate) postponed: Postponed,
    /// Whether an allocation has failed since retired objects were freed.
    pub(crate) starved: AtomicBool,
    /// The log, if the store is durable.
    pub(crate) log: Option<Box<Log>>,
    /// Held while a checkpoint is written.
    pub(crate) checkpoint: Mutex<Checkpoints>,
}

/// The memory and the counts of a thread, kept between its transactions.
struct Own<P: Policy> {
    work: UnsafeCell<Option<Box<Workspace<P>>>>,
    /// The next ages of this thread, and how many are left.
    ages: UnsafeCell<(u64, u64)>,
    commits: AtomicU64,
    aborts: [AtomicU64; Conflict::ALL.len()],
}

// SAFETY: only the thread with the cell's index uses the cells in it (P1 of
// `silvics_sync::per_thread`); the counts are atomic.
unsafe impl<P: Policy> Sync for Own<P> {}

impl<P: Policy> Default for Own<P> {
    fn default() -> Self {
        Self {
            work: UnsafeCell::new(None),
            ages: UnsafeCell::new((0, 0)),
            commits: AtomicU64::new(0),
            aborts: Default::default(),
        }
    }
}

/// The numbers of transactions of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The transactions that were committed.
    pub commits: u64,
    /// The attempts that were aborted, by reason.
    pub aborts: Vec<(Conflict, u64)>,
}

/// The ages that a thread takes at a time.
const AGES: u64 = 16;

/// The time after which a commit advances the epoch, and how many commits look at the time.
const EPOCH: Duration = Duration::from_millis(40);
const LOOKS: u64 = 64;

impl<P: Policy> Store<P> {
    /// Makes an empty store with default settings.
    pub fn new() -> Result<Self, Error> {
        Self::with_options(&StoreOptions::default())
    }

    /// Makes an empty store.
    pub fn with_options(options: &StoreOptions) -> Result<Self, Error> {
        let mut options = options.clone();
        if let Some(limit) = options.indexes.memory_limit {
            options.indexes.budget.get_or_insert_with(|| Arc::new(Budget::new(Some(limit))));
        }
        Ok(Self {
            core: StoreCore {
                number: stamp(),
                locks: LockTable::new()?,
                options,
                domain: Domain::new(),
                tables: Mutex::new(Vec::new()),
                threads: PerThread::new(()),
                ages: AtomicU64::new(1),
                epoch: AtomicU64::new(1),
                born: Instant::now(),
                postponed: Postponed::default(),
                starved: AtomicBool::new(false),
                log: None,
                checkpoint: Mutex::default(),
            },
        })
    }

    /// Creates a table. If it fails, the store is as it was.
    pub fn create_table(&self, schema: Schema) -> Result<Table<P>, Error> {
        let core = &self.core;
        if core.log.is_some() {
            return Err(SchemaError::Fixed { table: schema.name }.into());
        }
        let places = Places::of(&schema)?;
        let (options, config) = core.memory();
        let shared = core.options.rows_in_heap.is_some();
        let memory = RowMemory::new(places.words, shared, &config);
        let rows = Garbage::new(memory, core.domain.clone(), &config.budget);
        let serial = stamp();
        let indexes = core.create_indexes(&schema, &places, serial)?;
        drop(options);
        let mut tables = core.tables.lock();
        let table = Arc::new(TableCore {
            name: schema.name,
            serial,
            store: core.number,
            number: tables.len() as u32,
            places,
            rows,
            budget: config.budget,
            indexes,
        });
        if tables.iter().any(|other| other.name == table.name) {
            drop(tables);
            return Err(SchemaError::Twice { kind: "table", name: table.name.clone() }.into());
        }
        tables.push(Arc::clone(&table));
        Ok(Table { core: table })
    }

    /// The domain of the store, for measurements. A call that is deferred in it must not panic.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn domain(&self) -> &Domain {
        &self.core.domain
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Option<Table<P>> {
        let tables = self.core.tables.lock();
        let core = tables.iter().find(|table| table.name == name)?;
        Some(Table { core: Arc::clone(core) })
    }

    /// Begins a transaction. It must be ended on this thread.
    pub fn begin(&self) -> Tx<'_, P> {
        self.begin_at(None)
    }

    pub(crate) fn begin_at(&self, age: Option<u64>) -> Tx<'_, P> {
        let core = &self.core;
        if core.starved.load(Ordering::Relaxed) && core.starved.swap(false, Ordering::Relaxed) {
            core.domain.flush();
        }
        let guard = core.domain.pin();
        let own = core.own();
        // SAFETY: the cells are this thread's; the borrows end here.
        let work = own.and_then(|own| own.work.with_mut(|work| unsafe { &mut *work }.take()));
        let work = work.unwrap_or_default();
        let ts = age.unwrap_or_else(|| core.age(own));
        let mut repairs = core.repairs();
        if needs_repairs(repairs) {
            core.tidy_postponed(&guard);
            repairs = core.repairs();
        }
        let repairs = if needs_repairs(repairs) { NEEDS_REPAIRS } else { repairs };
        let work = ManuallyDrop::new(work);
        let (doomed, starved, position) = (None, false, Position::default());
        Tx::new(Inner { store: core, guard, work, ts, doomed, starved, repairs, position })
    }

    /// Runs `body` in a transaction and commits it. If it conflicts with another transaction, it
    /// runs `body` again, after a pause. Pauses grow for the first few attempts. If an allocation
    /// fails, it runs `body` once more, after it has freed what earlier transactions have deleted.
    /// So `body` may be called several times, and only the last call has effects on the database.
    /// Under the optimistic policy, a call may see rows of different moments; then it is not
    /// committed, and an error that it returns is not passed on.
    ///
    /// Do not call this inside of `body`: if the inner transaction needs a row that the outer one
    /// holds, it waits for ever.
    ///
    /// If `body` fails, everything is undone, and its error is returned. If it panics, everything
    /// is undone, too, and no lock stays.
    ///
    /// In a durable store the call returns when everything is durable that the transaction has read
    /// and written. Then it may also fail with [`Error::Unacknowledged`], after a commit.
    ///
    /// ```
    /// # use silvics_store::{Error, Schema, Store, Type};
    /// # let store: Store = Store::new()?;
    /// # let schema = Schema::new("t").column("id", Type::U64).primary(["id"]);
    /// # let table = store.create_table(schema)?;
    /// # let id = table.column::<u64>("id")?;
    /// let refused = store.transact(|tx| {
    ///     tx.insert(&table, |row| row.set(id, 1))?;
    ///     tx.insert(&table, |row| row.set(id, 1))
    /// });
    /// assert!(matches!(refused, Err(Error::Unique { .. })));
    /// assert!(table.is_empty());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn transact<T, E: From<Error>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (value, position) = self.attempts(body)?;
        self.core.wait(position)?;
        Ok(value)
    }

    /// Runs `body` as [`Store::transact`] does, and does not wait until it is durable: see
    /// [`Ticket`].
    pub fn transact_deferred<T, E: From<Error>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<(T, Ticket), E> {
        let (value, position) = self.attempts(body)?;
        Ok((value, self.core.ticket(position)))
    }

    /// Runs `body` until it is committed. Returns the position that must be durable then.
    fn attempts<T, E: From<Error>>(
        &self,
        mut body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<(T, Position), E> {
        let mut age = None;
        let mut backoff = Backoff::new();
        let mut starved = false;
        loop {
            let tx = self.begin_at(age);
            age = Some(tx.age());
            let failed = match body(&tx) {
                Ok(value) => match tx.end(Inner::commit) {
                    Ok(()) => return Ok((value, tx.seen().1)),
                    Err(Error::Aborted(_)) => None,
                    Err(error) => Some((error.into(), Position::default())),
                },
                // The error counts only if it follows from what is still true, and durable.
                Err(error) if !tx.is_outdated() => Some((error, self.core.seen())),
                _ => None,
            };
            // A transaction that lacked memory runs once more, when retired objects are freed.
            if let Some((error, position)) = failed
                && (starved || !tx.is_starved())
            {
                drop(tx); // the wait has no pin and no lock
                self.core.wait(position)?;
                return Err(error);
            }
            starved |= tx.is_starved();
            drop(tx);
            backoff.wait();
        }
    }

    /// The numbers of transactions so far.
    pub fn stats(&self) -> Stats {
        let aborts = Conflict::ALL.map(|conflict| (conflict, 0)).into();
        let mut stats = Stats { commits: 0, aborts };
        for own in self.core.threads.iter() {
            stats.commits += own.commits.load(Ordering::Relaxed);
            for (to, from) in stats.aborts.iter_mut().zip(&own.aborts) {
                to.1 += from.load(Ordering::Relaxed);
            }
        }
        stats
    }

    /// The bytes that the store holds from the system for rows and indexes, exactly, and for its
    /// locks. Indexes that cannot tell are not included.
    pub fn bytes(&self) -> usize {
        let core = &self.core;
        let shared = core.options.indexes.budget.as_ref().map(|budget| budget.held());
        let tables = core.tables.lock();
        let of_table = |table: &Arc<TableCore<P>>| {
            let indexes = table.indexes.iter().filter_map(|index| index.bytes());
            table.budget.held() + indexes.sum::<usize>()
        };
        shared.unwrap_or_else(|| tables.iter().map(of_table).sum()) + core.locks.bytes()
    }
}

/// Whether an index can be one of lists: their keys and those of rows are words.
fn can_be_lists(index: &IndexCore) -> bool {
    let is_word = |columns: &[Place]| match columns {
        [column] => form(columns) == FormKind::Word && column.kind.width() == size_of::<u64>(),
        _ => false,
    };
    index.kind == Kind::Composite && is_word(&index.columns) && is_word(&index.more)
}

impl<P: Policy> StoreCore<P> {
    /// The settings of a part's memory.
    fn memory(&self) -> (Options, Config) {
        let mut options = self.options.indexes.clone();
        options.domain = Some(self.domain.clone());
        let budget = options.budget.get_or_insert_with(|| Arc::new(Budget::new(None)));
        let mut config = Config::of_budget(options.pages, Arc::clone(budget));
        config.tuning = options.tuning;
        if let Some(heap) = &self.options.rows_in_heap {
            config.heap = Arc::clone(heap);
        }
        (options, config)
    }

    /// Creates the indexes of a table, the primary one first.
    fn create_indexes(
        &self,
        schema: &Schema,
        places: &Places,
        table: u64,
    ) -> Result<Vec<Arc<dyn ErasedIndex>>, Error> {
        let is_primary = |spec: &&IndexSpec| spec.kind == Kind::Primary;
        let Some(primary) = schema.indexes.iter().find(is_primary) else {
            return Err(SchemaError::NoPrimary { table: schema.name.clone() }.into());
        };
        let key = places.key(primary)?;
        let mut indexes: Vec<Arc<dyn ErasedIndex>> = Vec::new();
        let others = schema.indexes.iter().filter(|spec| !std::ptr::eq(*spec, primary));
        for spec in std::iter::once(primary).chain(others) {
            if indexes.iter().any(|index| index.core().name == spec.name) {
                return Err(SchemaError::Twice { kind: "index", name: spec.name.clone() }.into());
            }
            let more = if spec.kind == Kind::Composite { key.clone() } else { Vec::new() };
            let core = IndexCore {
                name: spec.name.clone(),
                serial: stamp(),
                table,
                words: places.words,
                kind: spec.kind,
                scans: spec.scans || spec.kind == Kind::Composite,
                lists: matches!(&spec.structure, Structure::Static(maker) if maker.lists),
                columns: places.key(spec)?,
                more,
                end: WordLock::default(),
                removals: CachePadded::new(AtomicU64::new(0)),
            };
            if core.lists && !can_be_lists(&core) {
                return Err(SchemaError::Lists { index: core.name }.into());
            }
            indexes.push(self.create_index(core, spec)?);
        }
        Ok(indexes)
    }

    fn create_index(
        &self,
        core: IndexCore,
        spec: &IndexSpec,
    ) -> Result<Arc<dyn ErasedIndex>, Error> {
        let (options, _) = self.memory();
        let form = if core.more.is_empty() { form(&core.columns) } else { FormKind::Bytes };
        let (name, scans) = (core.name.clone(), core.scans);
        let named = |core: IndexCore, structure: &str| -> Result<Arc<dyn ErasedIndex>, Error> {
            let shared = self.options.indexes_in_heap;
            Ok(match form {
                FormKind::Word => {
                    let index = Named::<u64>::of(&name, structure, scans, shared, &options)?;
                    Arc::new(crate::index::Typed { core, index })
                }
                FormKind::Bytes => {
                    let index = Named::<[u8]>::of(&name, structure, scans, shared, &options)?;
                    Arc::new(crate::index::Typed { core, index })
                }
            })
        };
        let Maker { form: takes, make, .. } = match &spec.structure {
            Structure::Default => return named(core, default_structure(form)),
            Structure::Named(structure) => return named(core, structure),
            Structure::Static(maker) => maker.clone(),
        };
        let others = || crate::index::names(form, scans);
        if takes != form {
            let (index, structure) = (spec.name.clone(), takes.name().into());
            let form = form.name();
            return Err(SchemaError::NoKeys { index, structure, form, others: others() }.into());
        }
        let index = make(core, &options)?;
        if scans && !index.can_scan() {
            let (name, structure) = (spec.name.clone(), index.structure());
            let (index, others) = (name, others());
            return Err(SchemaError::NoScans { index, structure, others }.into());
        }
        Ok(index)
    }

    /// The calling thread's cell, unless the thread is ending or there is no memory.
    fn own(&self) -> Option<&Own<P>> {
        self.threads.get_or_make(thread_index()?)
    }

    /// An age that no other transaction has.
    fn age(&self, own: Option<&Own<P>>) -> u64 {
        let Some(own) = own else { return self.ages.fetch_add(AGES, Ordering::Relaxed) };
        own.ages.with_mut(|ages| {
            // SAFETY: the cells are this thread's; the borrow ends here.
            let (next, left) = unsafe { &mut *ages };
            if *left == 0 {
                (*next, *left) = (self.ages.fetch_add(AGES, Ordering::Relaxed), AGES);
            }
            *left -= 1;
            *next += 1;
            *next - 1
        })
    }

    /// Keeps the memory of a transaction for the thread's next one.
    pub(crate) fn give_back(&self, work: Box<Workspace<P>>) {
        let Some(own) = self.own().filter(|_| work.is_kept()) else { return };
        own.work.with_mut(|kept| {
            // SAFETY: the cells are this thread's; the borrow ends here.
            unsafe { &mut *kept }.get_or_insert(work);
        });
    }

    pub(crate) fn count_commit(&self) {
        let Some(own) = self.own() else { return };
        let commits = own.commits.load(Ordering::Relaxed) + 1;
        own.commits.store(commits, Ordering::Relaxed);
        if commits.is_multiple_of(LOOKS) {
            self.advance_epoch();
        }
    }

    pub(crate) fn count_abort(&self, conflict: Conflict) {
        let Some(own) = self.own() else { return };
        let count = &own.aborts[conflict.number()];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The present epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    #[cold]
    fn advance_epoch(&self) {
        let now = (self.born.elapsed().as_nanos() / EPOCH.as_nanos()) as u64 + 1;
        let epoch = self.epoch();
        if now > epoch {
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = self.epoch.compare_exchange(epoch, now, success, failure);
        }
    }
}
