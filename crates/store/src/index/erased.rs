//! An index of a table behind a trait object: what transactions do with indexes whose types they do
//! not know, such as undoing an insertion into all indexes of a table.

use super::Search;
use crate::error::Error;
use crate::key::{FormKind, KeyForm, KeyRef, with_key};
use crate::lock::WordLock;
use crate::schema::{Kind, Place};
use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_sync::CachePadded;
use silvics_sync::atomic::AtomicU64;
use std::any::Any;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// The bounds of a range.
pub(crate) type Bounds<'a> = (Bound<KeyRef<'a>>, Bound<KeyRef<'a>>);

/// The facts about an index that do not depend on its type.
pub struct IndexCore {
    pub(crate) name: String,
    /// The number of the index, which no other index of the process has.
    pub(crate) serial: u64,
    /// The number of its table.
    pub(crate) table: u64,
    /// The words of a row of its table.
    pub(crate) words: usize,
    pub(crate) kind: Kind,
    /// Whether transactions may scan it.
    pub(crate) scans: bool,
    /// Whether it has a list for each key: see [`MultiLists`](super::MultiLists).
    pub(crate) lists: bool,
    /// The columns of the key.
    pub(crate) columns: Vec<Place>,
    /// The columns of the primary key, if they follow in the index.
    pub(crate) more: Vec<Place>,
    /// The lock behind the last key, for the locking policies.
    pub(crate) end: WordLock,
    /// The number of removals: of committed entries under the optimistic policy, of others under
    /// the locking ones.
    pub(crate) removals: CachePadded<AtomicU64>,
}

impl IndexCore {
    /// Calls `then` with the key of a row in this index.
    #[inline]
    pub(crate) fn with_key<R>(&self, row: &[u8], then: impl FnOnce(KeyRef<'_>) -> R) -> R {
        with_key(&self.columns, &self.more, row, then)
    }

    /// Whether no two rows have one key.
    pub(crate) fn is_unique(&self) -> bool {
        self.kind != Kind::Composite
    }
}

/// An index of a table.
pub trait ErasedIndex: Send + Sync {
    /// The facts about it.
    fn core(&self) -> &IndexCore;
    /// See [`Search::get`].
    fn look(&self, key: KeyRef<'_>, guard: &Guard) -> Option<u64>;
    /// See [`Search::try_insert`].
    fn place(&self, key: KeyRef<'_>, word: u64, guard: &Guard) -> Result<Option<u64>, AllocError>;
    /// See [`Search::replace`].
    fn replace(&self, key: KeyRef<'_>, word: u64, guard: &Guard) -> Result<(), AllocError>;
    /// See [`Search::remove`].
    fn remove(&self, key: KeyRef<'_>, guard: &Guard) -> Result<(), AllocError>;
    /// See [`Search::walk`].
    fn walk(
        &self,
        bounds: Bounds<'_>,
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(KeyRef<'_>, u64) -> bool,
    );
    /// See [`Search::structure`].
    fn structure(&self) -> String;
    /// See [`Search::scans`].
    fn can_scan(&self) -> bool;
    /// See [`Search::count`].
    fn count(&self) -> usize;
    /// See [`Search::bytes`].
    fn bytes(&self) -> Option<usize>;
    /// See [`Search::pool_stats`].
    fn pool_stats(&self) -> Vec<PoolStats>;
    /// The index, to find its type.
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// An index with its type.
pub(crate) struct Typed<I> {
    pub(crate) core: IndexCore,
    pub(crate) index: I,
}

impl<I: Search> ErasedIndex for Typed<I> {
    fn core(&self) -> &IndexCore {
        &self.core
    }
    fn look(&self, key: KeyRef<'_>, guard: &Guard) -> Option<u64> {
        self.index.get(I::Form::restore(key), guard)
    }
    fn place(&self, key: KeyRef<'_>, word: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        // SAFETY: only transactions of the store call this.
        unsafe { self.index.try_insert(I::Form::restore(key), word, guard) }
    }
    fn replace(&self, key: KeyRef<'_>, word: u64, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: only transactions of the store call this.
        unsafe { self.index.replace(I::Form::restore(key), word, guard) }
    }
    fn remove(&self, key: KeyRef<'_>, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: only transactions of the store call this.
        unsafe { self.index.remove(I::Form::restore(key), guard) }
    }
    fn walk(
        &self,
        bounds: Bounds<'_>,
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(KeyRef<'_>, u64) -> bool,
    ) {
        let bounds = (bounds.0.map(I::Form::restore), bounds.1.map(I::Form::restore));
        let mut erased = |key: super::FormOf<'_, I>, word| visit(I::Form::erase(key), word);
        self.index.walk(bounds, descending, guard, &mut erased);
    }
    fn structure(&self) -> String {
        self.index.structure()
    }
    fn can_scan(&self) -> bool {
        self.index.scans()
    }
    fn count(&self) -> usize {
        self.index.count()
    }
    fn bytes(&self) -> Option<usize> {
        self.index.bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.index.pool_stats()
    }
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// A function that makes an index.
type Make = dyn Fn(IndexCore, &Options) -> Result<Arc<dyn ErasedIndex>, Error> + Send + Sync;

/// The constructor of an index.
#[derive(Clone)]
pub(crate) struct Maker {
    pub form: FormKind,
    /// See [`Search::LISTS`].
    pub lists: bool,
    pub make: Arc<Make>,
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Maker of {} keys", self.form.name())
    }
}

impl Maker {
    pub(crate) fn of<I: Search>(
        make: impl Fn(&Options) -> Result<I, Error> + Send + Sync + 'static,
    ) -> Self {
        let make = move |core, options: &Options| -> Result<Arc<dyn ErasedIndex>, Error> {
            Ok(Arc::new(Typed { core, index: make(options)? }))
        };
        Self { form: I::Form::KIND, lists: I::LISTS, make: Arc::new(make) }
    }
}
