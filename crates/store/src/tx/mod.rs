//! Transactions.
//!
//! | file | holds |
//! |---|---|
//! | `state` | what a transaction remembers |
//! | `arena` | the memory of its copies of rows and keys |
//! | `entries` | the entries that it has placed in indexes |
//! | `read`, `scan`, `write` | lookups, scans and writes |
//! | `end` | commit and abort |
//!
//! # Invariants
//! * T1: a store keeps its tables and indexes until it is dropped, and transactions borrow the
//!   store. So a pointer to a table or an index of a transaction's store is valid during the
//!   transaction. Handles of other stores are refused ([`Error::Foreign`]).
//! * T2: code of the user that runs within a call of a transaction cannot change its state:
//!   closures that fill or change rows, and conversions of keys, run while it is busy or borrowed,
//!   so that their calls of it are refused. Visitors of scans run between calls.
//! * T3: the arena releases nothing while the transaction lives that a [`Row`] borrows: each row
//!   borrows the transaction.

pub(crate) mod arena;
mod end;
mod entries;
pub(crate) mod read;
mod scan;
pub(crate) mod state;
mod write;

pub use scan::Scan;

use crate::durability::{Position, Ticket};
use crate::error::Error;
use crate::index::{ErasedIndex, IndexCore, Scannable, Search};
use crate::key::{KeyForm, KeyRef, RowKey};
use crate::policy::{Optimistic, Policy, Stop};
use crate::row::{Row, RowMut};
use crate::rows::RowPart;
use crate::store::StoreCore;
use crate::table::{Index, Multi, Table};
use arena::Stored;
use read::{Found, Opened, typed_erased};
use silvics::key::{AsKey, Encoder, Form, FormRef};
use silvics::map::KeyRange;
use state::{Inner, bytes};
use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Bound;
use std::ptr::NonNull;
use write::Fail;

/// A transaction on a [`Store`](crate::Store). All of its reads and writes take effect at one
/// moment, when it commits. Dropping it undoes everything.
///
/// Rows that a transaction returns are copies, valid until it ends. It sees its own writes.
///
/// # Errors
/// Each method can fail with [`Error::Aborted`], if it conflicts with another transaction. Then all
/// later calls and the commit fail, too. [`Store::transact`](crate::Store::transact) handles this.
/// Any other error but [`Error::Unwound`] leaves the transaction as it was before the call, and it
/// can go on.
///
/// # Memory
/// A transaction keeps copies of the rows and keys that it reads and writes until it ends.
/// While it lives, no memory that the store's transactions free is reused.
pub struct Tx<'s, P: Policy = Optimistic> {
    inner: RefCell<Inner<'s, P>>,
    /// Whether a closure runs that must not use the transaction.
    busy: Cell<bool>,
    /// Whether a commit or an abort has begun, and whether it has returned.
    is_ending: Cell<bool>,
    has_ended: Cell<bool>,
}

impl<P: Policy> fmt::Debug for Tx<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("policy", &P::name()).finish_non_exhaustive()
    }
}

/// Marks a transaction as busy until it is dropped.
struct Busy<'a>(&'a Cell<bool>);

impl<'a> Busy<'a> {
    fn new(busy: &'a Cell<bool>) -> Self {
        busy.set(true);
        Self(busy)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The keys of a batch of lookups.
const BATCH: usize = 32;

impl<'s, P: Policy> Tx<'s, P> {
    pub(crate) fn new(inner: Inner<'s, P>) -> Self {
        let [busy, is_ending, has_ended] = [const { false }; 3].map(Cell::new);
        Self { inner: RefCell::new(inner), busy, is_ending, has_ended }
    }

    /// The state, for a handle of the store with this number.
    #[inline(always)]
    fn enter(&self, store: u64) -> Result<RefMut<'_, Inner<'s, P>>, Error> {
        if self.busy.get() { Err(Error::Nested) } else { self.enter_busy(store) }
    }

    /// Calls `then` with the form of a key. The conversion of the key, which may be code of the
    /// user, must not use the transaction.
    #[inline(always)]
    fn with_form<K: RowKey, T>(
        &self,
        key: &impl AsKey<K>,
        then: impl FnOnce(FormRef<'_, K>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.busy.get() {
            return Err(Error::Nested);
        }
        let _busy = Busy::new(&self.busy);
        key.with_form(then)
    }

    /// The state, for a handle of the store with this number, while the transaction is busy.
    #[inline(always)]
    fn enter_busy(&self, store: u64) -> Result<RefMut<'_, Inner<'s, P>>, Error> {
        let inner = self.inner.try_borrow_mut().map_err(|_| Error::Nested)?;
        if inner.doomed.is_none() && inner.store.number != store {
            return Err(Error::Foreign);
        }
        usable(inner)
    }

    /// The state, for a scan whose index was checked when it was made.
    fn enter_scan(&self) -> Result<RefMut<'_, Inner<'s, P>>, Error> {
        if self.busy.get() {
            return Err(Error::Nested);
        }
        usable(self.inner.try_borrow_mut().map_err(|_| Error::Nested)?)
    }

    /// Returns the row with a key of a unique index, or `None` if there is none.
    #[inline]
    pub fn get<K: RowKey<Form = I::Form>, I: Search>(
        &self,
        index: &Index<P, K, I>,
        key: impl AsKey<K>,
    ) -> Result<Option<Row<'_>>, Error> {
        let found = self.with_form::<K, _>(&key, |form| {
            let mut inner = self.enter_busy(index.table.store)?;
            let found = inner.find(&index.typed, form, false);
            found.map_err(|stop| failed(&mut inner, stop))
        })?;
        Ok(found.map(|found| row(&index.typed.core, found.image)))
    }

    /// Returns the parts of the row with a key of a unique index, in the order in which a lookup
    /// reads them, or `None` if there is no row. A row keeps its place until it is deleted. The
    /// call reads the row, as [`Tx::get`] does; it is for models of memory.
    pub fn parts<K: RowKey<Form = I::Form>, I: Search>(
        &self,
        index: &Index<P, K, I>,
        key: impl AsKey<K>,
    ) -> Result<Option<Vec<RowPart>>, Error> {
        self.with_form::<K, _>(&key, |form| {
            let mut inner = self.enter_busy(index.table.store)?;
            let found = inner.find(&index.typed, form, false);
            let found = found.map_err(|stop| failed(&mut inner, stop))?;
            Ok(found.map(|found| found.row.parts()))
        })
    }

    /// Looks up every key of `keys` in a unique index and writes its row to the same place in
    /// `rows`; the shorter slice decides how many. The cache misses of the lookups overlap.
    ///
    /// If it fails, `rows` has some of the results.
    pub fn get_many<'t, K: RowKey<Form = I::Form>, I: Search>(
        &'t self,
        index: &Index<P, K, I>,
        keys: &[impl AsKey<K>],
        rows: &mut [Option<Row<'t>>],
    ) -> Result<(), Error> {
        for (keys, rows) in keys.chunks(BATCH).zip(rows.chunks_mut(BATCH)) {
            let keys = &keys[..keys.len().min(rows.len())];
            let mut words = [None; BATCH];
            if !self.look_up_all(index, keys, &mut words)? {
                for (key, to) in keys.iter().zip(rows) {
                    *to = self.get(index, key)?;
                }
                continue;
            }
            for ((key, word), to) in keys.iter().zip(words).zip(rows) {
                *to = self.open_one(index, key, word)?;
            }
        }
        Ok(())
    }

    /// Looks up the forms of some keys, and begins to fetch their rows. Returns whether the keys
    /// have forms that need no encoding.
    #[inline]
    fn look_up_all<K: RowKey<Form = I::Form>, I: Search>(
        &self,
        index: &Index<P, K, I>,
        keys: &[impl AsKey<K>],
        words: &mut [Option<u64>; BATCH],
    ) -> Result<bool, Error> {
        let Some(first) = keys.first().and_then(AsKey::form) else { return Ok(keys.is_empty()) };
        let mut forms = [first; BATCH];
        for (form, key) in forms.iter_mut().zip(keys) {
            match key.form() {
                Some(of_key) => *form = of_key,
                None => return Ok(false),
            }
        }
        let inner = self.enter(index.table.store)?;
        index.typed.index.get_many(&forms[..keys.len()], &mut words[..keys.len()], &inner.guard);
        for &word in words[..keys.len()].iter().flatten() {
            Inner::<P>::prefetch(word, index.typed.core.words);
        }
        Ok(true)
    }

    /// Reads the row that a lookup of a batch has found.
    #[inline]
    fn open_one<K: RowKey<Form = I::Form>, I: Search>(
        &self,
        index: &Index<P, K, I>,
        key: &impl AsKey<K>,
        word: Option<u64>,
    ) -> Result<Option<Row<'_>>, Error> {
        let core = &index.typed.core;
        let found = self.with_form::<K, _>(key, |form| {
            let mut inner = self.enter_busy(index.table.store)?;
            let key = I::Form::erase(form);
            let opened = match word {
                Some(word) => inner.open(core, key, word, core.words, false),
                None => Ok(Opened::Gone),
            };
            let found = match opened {
                Ok(Opened::Row(found)) => Ok(Some(found)),
                Ok(_) => inner.find_again(typed_erased(&*index.typed), key, false),
                Err(stop) => Err(stop),
            };
            found.map_err(|stop| failed(&mut inner, stop))
        })?;
        Ok(found.map(|found| row(core, found.image)))
    }

    /// A place in the arena for the columns of a row.
    fn new_image(&self, store: u64, words: usize) -> Result<NonNull<u64>, Error> {
        let mut inner = self.enter(store)?;
        inner.work.arena.alloc(words).map_err(|error| failed(&mut inner, error.into()))
    }

    /// Inserts a row that `fill` fills. Fails with [`Error::Unique`] if a unique index has a row
    /// with the same key.
    ///
    /// `fill` must not use the transaction: that fails with [`Error::Nested`].
    pub fn insert<E: From<Error>>(
        &self,
        table: &Table<P>,
        fill: impl FnOnce(&mut RowMut<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let core = &*table.core;
        let words = core.places.words;
        let image = self.new_image(core.store, words)?;
        // SAFETY: the arena has just returned these words, and nobody else uses them.
        let columns = unsafe { columns_mut(image, words) };
        columns.fill(0);
        self.filled(core.serial, columns, fill)?;
        let mut inner = self.enter(core.store)?;
        let done = whole(&mut inner, |inner| inner.insert(core, image));
        Ok(done.map_err(|fail| refused(&mut inner, fail))?)
    }

    /// Changes the row with a key of a unique index by `change`. Returns whether there is one.
    ///
    /// Fails with [`Error::Unique`] if another row has a key that the row would get, and with
    /// [`Error::PrimaryKey`] if the row would get another primary key. `change` must not use the
    /// transaction: that fails with [`Error::Nested`]. If `change` fails, the row stays as it was.
    pub fn update<K: RowKey<Form = I::Form>, I: Search, E: From<Error>>(
        &self,
        index: &Index<P, K, I>,
        key: impl AsKey<K>,
        change: impl FnOnce(&mut RowMut<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let (table, core) = (&*index.table, &index.typed.core);
        let words = core.words;
        let found = self.with_form::<K, _>(&key, |form| self.find_to_write(index, form))?;
        let Some(found) = found else { return Ok(false) };
        let image = self.new_image(table.store, words)?;
        // SAFETY: the arena has just returned these words, and nobody else uses them.
        let columns = unsafe { columns_mut(image, words) };
        // SAFETY: the arena has the image, which nobody writes.
        columns.copy_from_slice(unsafe { bytes(found.image, words) });
        self.filled(table.serial, columns, change)?;
        let mut inner = self.enter(table.store)?;
        if !table.same_primary(found.image, image) {
            return Err(Error::PrimaryKey { table: table.name.clone() }.into());
        }
        let done = whole(&mut inner, |inner| inner.update(table, found, image));
        done.map_err(|fail| refused(&mut inner, fail))?;
        Ok(true)
    }

    /// Deletes the row with a key of a unique index. Returns whether there was one.
    pub fn delete<K: RowKey<Form = I::Form>, I: Search>(
        &self,
        index: &Index<P, K, I>,
        key: impl AsKey<K>,
    ) -> Result<bool, Error> {
        let found = self.with_form::<K, _>(&key, |form| self.find_to_write(index, form))?;
        let Some(found) = found else { return Ok(false) };
        let mut inner = self.enter(index.table.store)?;
        let done = whole(&mut inner, |inner| inner.delete(&index.table, found));
        done.map_err(|fail| refused(&mut inner, fail))?;
        Ok(true)
    }

    fn find_to_write<K: RowKey<Form = I::Form>, I: Search>(
        &self,
        index: &Index<P, K, I>,
        form: crate::index::FormOf<'_, I>,
    ) -> Result<Option<Found<P>>, Error> {
        let mut inner = self.enter_busy(index.table.store)?;
        let found = inner.find(&index.typed, form, true);
        found.map_err(|stop| failed(&mut inner, stop))
    }

    /// Calls a closure that fills or changes a row.
    fn filled<E: From<Error>>(
        &self,
        table: u64,
        bytes: &mut [u8],
        fill: impl FnOnce(&mut RowMut<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let _busy = Busy::new(&self.busy);
        fill(&mut RowMut { table, bytes })
    }

    /// Scans a range of a unique index in ascending order of its keys: see [`Scan`].
    pub fn scan<'t, K: RowKey<Form = I::Form>, I: Scannable>(
        &'t self,
        index: &'t Index<P, K, I>,
        range: impl KeyRange<K>,
    ) -> Scan<'t, 's, P> {
        let kept = range.keep();
        let core = &index.typed.core;
        let bounds = self.enter(index.table.store).and_then(|mut inner| {
            if !core.scans {
                return Err(Error::PointsOnly { index: core.name.clone() });
            }
            let mut keep = |bound: &Bound<<K::Form as Form>::Kept>| -> Result<_, Error> {
                Ok(match bound {
                    Bound::Unbounded => Bound::Unbounded,
                    Bound::Included(key) => Bound::Included(store_key::<K>(&mut inner, key)?),
                    Bound::Excluded(key) => Bound::Excluded(store_key::<K>(&mut inner, key)?),
                })
            };
            Ok((keep(&kept.0)?, keep(&kept.1)?))
        });
        let index: &(dyn ErasedIndex + 'static) = typed_erased(&*index.typed);
        Scan { tx: self, index, bounds, descending: false, limit: usize::MAX }
    }

    /// Scans the rows of an index behind a key, or all. The index may be declared with
    /// `points_only`: then rows may be inserted into the range before the transaction ends.
    pub(crate) fn scan_behind<'t>(
        &'t self,
        index: &'t (dyn ErasedIndex + 'static),
        key: Option<KeyRef<'_>>,
    ) -> Scan<'t, 's, P> {
        let bounds = self.enter_scan().and_then(|mut inner| {
            let key = key.map(|key| inner.work.arena.key(key)).transpose()?;
            Ok((key.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
        });
        Scan { tx: self, index, bounds, descending: false, limit: usize::MAX }
    }

    /// Scans the rows with a key of an index that is not unique, in ascending order of their
    /// primary keys: see [`Scan`].
    pub fn find_all<'t, K: RowKey>(
        &'t self,
        index: &'t Multi<P, K>,
        key: impl AsKey<K>,
    ) -> Scan<'t, 's, P> {
        let bounds = self.enter(index.table.store).and_then(|mut inner| {
            let write = |to: &mut Encoder| key.write(to);
            Encoder::encode(write, |prefix| prefix_bounds(&mut inner, prefix))
        });
        Scan { tx: self, index: &*index.index, bounds, descending: false, limit: usize::MAX }
    }

    /// Commits the transaction. If it fails, everything is undone, except with
    /// [`Error::Unacknowledged`]. In a durable store the call returns when everything is durable
    /// that the transaction has read and written.
    pub fn commit(self) -> Result<(), Error> {
        self.end(Inner::commit)?;
        let (store, position) = self.seen();
        drop(self); // the wait has no pin
        store.wait(position)
    }

    /// Commits the transaction, and does not wait until it is durable: see [`Ticket`].
    pub fn commit_deferred(self) -> Result<Ticket, Error> {
        self.end(Inner::commit)?;
        let (store, position) = self.seen();
        drop(self);
        Ok(store.ticket(position))
    }

    /// The store, and the position in its log that must be durable before the result of the
    /// transaction is passed on.
    pub(crate) fn seen(&self) -> (&'s StoreCore<P>, Position) {
        let inner = self.inner.borrow();
        (inner.store, inner.position)
    }

    /// Undoes everything.
    pub fn abort(self) {
        let _ = self.end(Inner::abort_counted);
    }

    pub(crate) fn end(
        &self,
        end: impl FnOnce(&mut Inner<'s, P>) -> Result<(), Stop>,
    ) -> Result<(), Error> {
        let mut inner = self.inner.try_borrow_mut().map_err(|_| Error::Nested)?;
        self.is_ending.set(true);
        let done = end(&mut inner);
        self.has_ended.set(true);
        done.map_err(|stop| failed(&mut inner, stop))
    }

    /// Whether something that the transaction has read is not true any more, so that it is doomed.
    pub(crate) fn is_outdated(&self) -> bool {
        let Ok(mut inner) = self.inner.try_borrow_mut() else { return false };
        if inner.doomed.is_none() {
            let checked =
                P::recheck(&inner).map_err(Stop::from).and_then(|()| inner.check_repairs());
            if let Err(stop) = checked {
                failed(&mut inner, stop);
            }
        }
        matches!(inner.doomed, Some(Stop::Conflict(_)))
    }

    /// Whether an allocation has failed in the transaction.
    pub(crate) fn is_starved(&self) -> bool {
        self.inner.try_borrow().is_ok_and(|inner| inner.starved)
    }

    /// The age of the transaction, with which it runs again.
    pub(crate) fn age(&self) -> u64 {
        self.inner.try_borrow().map_or(0, |inner| inner.ts)
    }
}

impl<P: Policy> Drop for Tx<'_, P> {
    fn drop(&mut self) {
        if !self.has_ended.get() && !self.is_ending.get() {
            let _ = self.end(Inner::abort_counted);
        }
        if self.has_ended.get() {
            let inner = self.inner.get_mut();
            // SAFETY: the workspace is taken once, and not used afterwards.
            let work = unsafe { ManuallyDrop::take(&mut inner.work) };
            inner.store.give_back(work);
        }
        // A transaction whose end has panicked keeps its memory, which may be in use.
    }
}

/// The state of a transaction, if it can go on.
#[inline(always)]
fn usable<'t, 's, P: Policy>(
    mut inner: RefMut<'t, Inner<'s, P>>,
) -> Result<RefMut<'t, Inner<'s, P>>, Error> {
    match inner.doomed {
        Some(stop) => Err(stop.into()),
        None => match inner.check_repairs() {
            Ok(()) => Ok(inner),
            Err(stop) => Err(failed(&mut inner, stop)),
        },
    }
}

/// Makes a call that writes. If it unwinds, the transaction cannot go on: the call may have placed
/// some of a row's entries.
fn whole<'s, P: Policy, T>(
    inner: &mut Inner<'s, P>,
    call: impl FnOnce(&mut Inner<'s, P>) -> T,
) -> T {
    struct Dooms<'a, 's, P: Policy>(&'a mut Inner<'s, P>);
    impl<P: Policy> Drop for Dooms<'_, '_, P> {
        fn drop(&mut self) {
            self.0.doom(Stop::Unwound);
        }
    }
    let dooms = Dooms(inner);
    let result = call(dooms.0);
    std::mem::forget(dooms);
    result
}

/// The columns of an image.
///
/// # Safety
/// The arena returned `words` words at `image`, and nobody else uses them during `'a`.
unsafe fn columns_mut<'a>(image: NonNull<u64>, words: usize) -> &'a mut [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(image.as_ptr().cast(), words * 8) }
}

/// The row whose columns are an image. `'t` is the borrow of a transaction (T3).
#[inline(always)]
fn row<'t>(index: &IndexCore, image: NonNull<u64>) -> Row<'t> {
    // SAFETY: T3: the arena keeps the image, and nobody writes it: an update makes a new one.
    Row { table: index.table, bytes: unsafe { bytes(image, index.words) } }
}

/// Remembers why a call failed, and returns the error.
#[cold]
fn failed<P: Policy>(inner: &mut Inner<'_, P>, stop: Stop) -> Error {
    match stop {
        Stop::Conflict(_) | Stop::Unwound => inner.doom(stop),
        Stop::Alloc(silvics::AllocError::KeyLength { .. }) | Stop::Record(_) => {}
        Stop::Alloc(_) => inner.starve(),
        Stop::ReadOnly => {
            if let Some(why) = inner.store.log.as_ref().and_then(|log| log.failure()) {
                return Error::ReadOnly { why };
            }
        }
    }
    stop.into()
}

#[cold]
fn refused<P: Policy>(inner: &mut Inner<'_, P>, fail: Fail) -> Error {
    match fail {
        Fail::Stop(stop) => failed(inner, stop),
        Fail::Error(error) => error,
    }
}

fn store_key<K: RowKey>(
    inner: &mut Inner<'_, impl Policy>,
    key: &<K::Form as Form>::Kept,
) -> Result<Stored, Error> {
    Ok(inner.work.arena.key(K::Form::erase(K::Form::kept(key)))?)
}

/// The bounds of all byte strings that begin with `prefix`.
fn prefix_bounds(
    inner: &mut Inner<'_, impl Policy>,
    prefix: &[u8],
) -> Result<(Bound<Stored>, Bound<Stored>), Error> {
    let low = Bound::Included(inner.work.arena.key(KeyRef::Bytes(prefix))?);
    // The smallest string above all of them: the last byte that can grow is one larger.
    let high = match prefix.iter().rposition(|&byte| byte < 0xFF) {
        None => Bound::Unbounded,
        Some(at) => {
            let failed = |_| silvics::AllocError::System { requested: at + 1 };
            let mut next = Vec::new();
            next.try_reserve_exact(at + 1).map_err(failed)?;
            next.extend_from_slice(&prefix[..=at]);
            next[at] += 1;
            Bound::Excluded(inner.work.arena.key(KeyRef::Bytes(&next))?)
        }
    };
    Ok((low, high))
}
