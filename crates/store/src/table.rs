//! Tables, and the handles by which transactions use their indexes.

use crate::column::{Column, Field};
use crate::error::{Error, SchemaError};
use crate::index::{ErasedIndex, Named, Search, Typed};
use crate::key::RowKey;
use crate::policy::{Optimistic, Policy};
use crate::rows::{Address, RowLayout, RowMemory};
use crate::schema::{Kind, Places};
use crate::tx::state::bytes;
use silvics::domain::Garbage;
use silvics::{AllocError, PoolStats};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// A table of a store.
pub(crate) struct TableCore<P: Policy> {
    pub(crate) name: String,
    /// The number of the table, which no other table of the process has.
    pub(crate) serial: u64,
    /// The number of the store.
    pub(crate) store: u64,
    /// The number of the table within its store, in the order in which they were created.
    pub(crate) number: u32,
    pub(crate) places: Places,
    pub(crate) rows: Garbage<RowMemory<P::Rows>>,
    /// The budget of the rows.
    pub(crate) budget: Arc<silvics::Budget>,
    /// The indexes, the primary one first.
    pub(crate) indexes: Vec<Arc<dyn ErasedIndex>>,
}

impl<R: RowLayout> RowMemory<R> {
    /// Allocates a row.
    pub(crate) fn alloc(&self, header: R::Header) -> Result<Address, AllocError> {
        R::alloc(self, header).map(Address::from)
    }

    /// Frees a row at once.
    ///
    /// # Safety
    /// No index leads to the row, and no other thread knows it.
    pub(crate) unsafe fn dealloc(&self, row: Address) {
        // SAFETY: the caller's promise.
        unsafe { R::free(self, row.pointer()) };
    }
}

impl<P: Policy> TableCore<P> {
    /// Whether two images have one primary key.
    pub(crate) fn same_primary(&self, one: NonNull<u64>, other: NonNull<u64>) -> bool {
        let words = self.places.words;
        // SAFETY: the arena has both images, which nobody writes now.
        let (one, other) = unsafe { (bytes(one, words), bytes(other, words)) };
        let core = self.indexes[0].core();
        core.columns.iter().all(|column| {
            let field = column.start..column.start + column.kind.width();
            one[field.clone()] == other[field]
        })
    }

    fn index(&self, name: &str) -> Result<&Arc<dyn ErasedIndex>, SchemaError> {
        self.indexes.iter().find(|index| index.core().name == name).ok_or_else(|| {
            let known: Vec<&str> = self.indexes.iter().map(|index| &*index.core().name).collect();
            SchemaError::Unknown { kind: "index", name: name.into(), known: known.join(", ") }
        })
    }
}

/// A table of a store. A clone is another handle to the same table.
pub struct Table<P: Policy = Optimistic> {
    pub(crate) core: Arc<TableCore<P>>,
}

impl<P: Policy> Clone for Table<P> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }
}

impl<P: Policy> fmt::Debug for Table<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.core.name)
    }
}

/// The memory of a table or index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryUse {
    /// `table` for its rows, or the name of an index.
    pub name: String,
    /// The structure of an index, or the layout of the rows.
    pub structure: String,
    /// The rows of a table, or the keys of an index. Exact while no transaction writes.
    pub entries: usize,
    /// The bytes held from the system. If the store has a memory limit, its parts share a budget,
    /// and each of them has the bytes of all. `None` if the index cannot tell.
    pub bytes: Option<usize>,
    /// The pools.
    pub pools: Vec<PoolStats>,
}

impl<P: Policy> Table<P> {
    /// The name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The number of rows. Exact while no transaction writes.
    pub fn len(&self) -> usize {
        self.core.indexes[0].count()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A column, for [`Row::get`](crate::Row::get). Fails if the table has no such column, or if it
    /// has another type.
    pub fn column<F: Field + ?Sized>(&self, name: &str) -> Result<Column<F>, Error> {
        let place = self.core.places.column(name)?;
        if !F::suits(place.kind) {
            let (name, has) = (name.into(), place.kind.to_string());
            return Err(SchemaError::Type { name, has, wanted: F::NAME.into() }.into());
        }
        Ok(Column {
            table: self.core.serial,
            start: place.start as u32,
            width: place.kind.width() as u32,
            field: PhantomData,
        })
    }

    /// A unique index with keys of type `K` that was declared without a structure, or by the name
    /// of one.
    pub fn index<K: RowKey<Form: crate::index::InTable>>(
        &self,
        name: &str,
    ) -> Result<Index<P, K, Named<K::Form>>, Error> {
        self.index_over::<K, Named<K::Form>>(name)
    }

    /// A unique index with keys of type `K` that was declared with the structure `I`.
    pub fn index_over<K: RowKey<Form = I::Form>, I: Search>(
        &self,
        name: &str,
    ) -> Result<Index<P, K, I>, Error> {
        let index = self.core.index(name)?;
        let core = index.core();
        if core.kind == Kind::Composite {
            return Err(SchemaError::Kind { index: name.into(), has: core.kind.name() }.into());
        }
        Self::has_keys::<K>(index)?;
        let typed = Arc::clone(index).any().downcast::<Typed<I>>().map_err(|_| {
            let (has, wanted) = (index.structure(), std::any::type_name::<I>().into());
            SchemaError::Type { name: name.into(), has, wanted }
        })?;
        Ok(Index { table: Arc::clone(&self.core), typed, keys: PhantomData })
    }

    /// An index that is not unique, with keys of type `K`.
    pub fn multi<K: RowKey>(&self, name: &str) -> Result<Multi<P, K>, Error> {
        let index = self.core.index(name)?;
        let core = index.core();
        if core.kind != Kind::Composite {
            return Err(SchemaError::Kind { index: name.into(), has: core.kind.name() }.into());
        }
        Self::has_keys::<K>(index)?;
        let (table, index) = (Arc::clone(&self.core), Arc::clone(index));
        Ok(Multi { table, index, keys: PhantomData })
    }

    /// Fails unless the columns of an index have keys of type `K`.
    fn has_keys<K: RowKey>(index: &Arc<dyn ErasedIndex>) -> Result<(), SchemaError> {
        let core = index.core();
        let kinds: Vec<_> = core.columns.iter().map(|column| column.kind).collect();
        if K::suits(&kinds) {
            return Ok(());
        }
        let names: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        let has = format!("({})", names.join(", "));
        Err(SchemaError::Type { name: core.name.clone(), has, wanted: K::name() })
    }

    /// The memory of the rows and of each index.
    pub fn memory(&self) -> Vec<MemoryUse> {
        let core = &self.core;
        let rows = MemoryUse {
            name: "table".into(),
            structure: P::Rows::NAME.into(),
            entries: self.len(),
            bytes: Some(core.budget.held()),
            pools: core.rows.owner().stats(),
        };
        let indexes = core.indexes.iter().map(|index| MemoryUse {
            name: index.core().name.clone(),
            structure: index.structure(),
            entries: index.count(),
            bytes: index.bytes(),
            pools: index.pool_stats(),
        });
        std::iter::once(rows).chain(indexes).collect()
    }
}

/// A unique index of a table, with keys of type `K`.
pub struct Index<P: Policy, K, I> {
    pub(crate) table: Arc<TableCore<P>>,
    pub(crate) typed: Arc<Typed<I>>,
    keys: PhantomData<fn() -> K>,
}

impl<P: Policy, K, I> Clone for Index<P, K, I> {
    fn clone(&self) -> Self {
        let (table, typed) = (Arc::clone(&self.table), Arc::clone(&self.typed));
        Self { table, typed, keys: PhantomData }
    }
}

impl<P: Policy, K, I> fmt::Debug for Index<P, K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({}.{})", self.table.name, self.typed.core.name)
    }
}

impl<P: Policy, K, I: Search> Index<P, K, I> {
    /// The structure, outside of any transaction: to measure it, or to count its keys.
    pub fn structure(&self) -> &I {
        &self.typed.index
    }
}

/// An index of a table in which several rows can have one key.
pub struct Multi<P: Policy, K> {
    pub(crate) table: Arc<TableCore<P>>,
    pub(crate) index: Arc<dyn ErasedIndex>,
    keys: PhantomData<fn() -> K>,
}

impl<P: Policy, K> Clone for Multi<P, K> {
    fn clone(&self) -> Self {
        let (table, index) = (Arc::clone(&self.table), Arc::clone(&self.index));
        Self { table, index, keys: PhantomData }
    }
}

impl<P: Policy, K> fmt::Debug for Multi<P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Multi({}.{})", self.table.name, self.index.core().name)
    }
}
