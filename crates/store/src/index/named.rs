//! Structures of silvics as indexes of tables, by their names.

use super::{FormOf, Scannable, Search};
use crate::error::SchemaError;
use crate::key::{FormKind, KeyForm};
use silvics::dynamic::{self, AnyIndex, Structure, StructureError};
use silvics::error::TryInsertError;
use silvics::{AllocError, Batches, Guard, Lookup, Options, OrderedIndex, OrderedScan, PoolStats};
use std::ops::Bound;

/// A structure whose type is chosen at run time.
pub struct Named<F: KeyForm + ?Sized> {
    index: AnyIndex<F>,
    name: &'static str,
}

/// A form of keys that structures are made for by their names: `u64` or `[u8]`.
pub trait InTable: KeyForm + dynamic::InTable {}
impl<F: KeyForm + dynamic::InTable + ?Sized> InTable for F {}

/// The default structure for keys of a form, as for a [`Map`](silvics::Map).
pub(crate) fn default_structure(form: FormKind) -> &'static str {
    match form {
        FormKind::Word => "words",
        FormKind::Bytes => "blocks",
    }
}

/// The names of the structures that take keys of a form, and scan if `scans`.
pub(crate) fn names(form: FormKind, scans: bool) -> String {
    match form {
        FormKind::Word => Structure::<u64>::names(scans),
        FormKind::Bytes => Structure::<[u8]>::names(scans),
    }
}

impl<F: InTable + ?Sized> Named<F> {
    /// Makes an index with this structure, which takes its nodes from the heap of the options if
    /// `in_heap`, and from pools otherwise.
    pub fn with_structure(
        structure: &str,
        in_heap: bool,
        options: &Options,
    ) -> Result<Self, crate::Error> {
        Self::of(structure, structure, false, in_heap, options)
    }

    /// Makes an index with this structure. `index` is its name, for errors.
    pub(crate) fn of(
        index: &str,
        structure: &str,
        scans: bool,
        shared: bool,
        options: &Options,
    ) -> Result<Self, crate::Error> {
        let found =
            if scans { Structure::scanning(structure) } else { Structure::named(structure) };
        let (index, form) = (index.to_string(), F::KIND.name());
        let found: Structure<F> = found.map_err(|error| match error {
            StructureError::Unknown { name, known } => {
                SchemaError::Unknown { kind: "structure", name, known }
            }
            StructureError::NoScans { name, known } => {
                SchemaError::NoScans { index, structure: name, others: known }
            }
            _ => {
                let (structure, others) = (structure.into(), names(F::KIND, scans));
                SchemaError::NoKeys { index, structure, form, others }
            }
        })?;
        let made = if shared { found.index_in_heap(options) } else { found.index(options) };
        Ok(Self { index: made?, name: found.name() })
    }
}

// SAFETY: the index is one of silvics, since only `of` makes this type. So S1 to S6 hold as for
// `Scans`.
unsafe impl<F: InTable + ?Sized> Search for Named<F> {
    type Form = F;

    /// Makes the default structure for keys of this form.
    fn make(options: &Options) -> Result<Self, AllocError> {
        let made = Self::of("primary", default_structure(F::KIND), true, false, options);
        made.map_err(|error| match error {
            crate::Error::Alloc(error) => error,
            _ => AllocError::Address, // the default structure takes these keys
        })
    }

    fn structure(&self) -> String {
        self.name.into()
    }
    #[inline]
    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
        Lookup::get(&*self.index, key, guard)
    }
    #[inline]
    fn get_many(&self, keys: &[FormOf<'_, Self>], words: &mut [Option<u64>], guard: &Guard) {
        Batches::get_many(&*self.index, keys, words, guard);
    }
    unsafe fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        match OrderedIndex::try_insert(&*self.index, key, word, guard) {
            Ok(()) => Ok(None),
            Err(TryInsertError::Occupied(present)) => Ok(Some(present)),
            Err(TryInsertError::Alloc(error)) => Err(error),
            Err(_) => Err(AllocError::Address),
        }
    }
    unsafe fn replace(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        OrderedIndex::insert(&*self.index, key, word, guard).map(|_| ())
    }
    unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
        OrderedIndex::remove(&*self.index, key, guard).map(|_| ())
    }
    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        let Some(index) = self.index.scans() else { return };
        let bounds = (bounds.0.map(F::shorten), bounds.1.map(F::shorten));
        if descending {
            let _ = index.range_rev(bounds, guard).all(|(key, word)| visit(key, word));
        } else {
            let _ = index.range(bounds, guard).all(|(key, word)| visit(key, word));
        }
    }
    fn scans(&self) -> bool {
        self.index.scans().is_some()
    }
    fn count(&self) -> usize {
        Lookup::len(&*self.index)
    }
    fn bytes(&self) -> Option<usize> {
        Some(Lookup::bytes(&*self.index))
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        Lookup::pool_stats(&*self.index)
    }
}

impl<F: InTable + ?Sized> Scannable for Named<F> {}
