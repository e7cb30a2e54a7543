//! The compiled class of a sorted map.

use super::arguments::{Given, Inclusive, Index};
use super::cursor::Cursor;
use super::keys::{self, Made, Unfit};
use super::owned::{self, Ledger};
use super::values::Values;
use super::{arguments, bulk, error, ranges, single};
use crate::shape::{Kind, Shape};
use crate::store::{Entries, Store, longest_key};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use silvics::Options;
use std::ops::Bound as Edge;
use std::sync::{Mutex, OnceLock};

/// The part of a map that exists since the type of its keys is known.
pub(super) struct Core {
    pub(super) kind: Kind,
    pub(super) store: Store,
    /// The greatest length of a key in bytes.
    pub(super) longest: usize,
    /// Locked only by code that calls no Python (O5).
    pub(super) shape: Mutex<Shape>,
}

impl Core {
    #[inline]
    pub(super) fn read<'a>(&self, object: &'a Bound<'_, PyAny>) -> Result<Made<'a>, Unfit> {
        keys::read(self.kind, &self.shape, object)
    }
}

/// A sorted map. The class `Map` of the package is derived from this one and has the rest of its
/// methods. Both have one name, which the messages of exceptions contain.
#[pyclass(frozen, subclass, name = "Map", module = "silvics._silvics")]
pub(super) struct Base {
    pub(super) core: OnceLock<Core>,
    pub(super) values: Values,
    structure: Option<String>,
    pages: String,
    options: Options,
    pub(super) ledger: Ledger,
}

impl Base {
    /// The part of the map that exists since the type of its keys is known.
    #[inline]
    pub(super) fn core(&self) -> Option<&Core> {
        self.core.get()
    }

    /// The part that the map will have if its first key is of a type.
    pub(super) fn new_core(&self, kind: Kind) -> PyResult<Core> {
        let structure = self.structure.as_deref();
        let store = Store::new(keys::are_words(kind), structure, &self.options);
        let store = store.map_err(error::no_structure)?;
        Ok(Core { kind, store, longest: longest_key(structure), shape: Mutex::default() })
    }

    /// Whether the map counts its keys, as far as its structure is known.
    pub(super) fn has_ranks_named(&self) -> bool {
        self.core().map_or(self.structure.is_none(), |core| core.store.has_ranks())
    }

    /// Takes all entries out, and releases their values when the map is empty.
    pub(super) fn empty(&self, py: Python<'_>) -> PyResult<()> {
        let Some(core) = self.core() else { return Ok(()) };
        let (mut entries, mut words) = (Entries::empty(core.store.are_words()), Vec::new());
        let (mut from, mut failed) = (Edge::Unbounded, None);
        loop {
            entries.clear();
            if let Err(error) = core.store.scan(&(from, Edge::Unbounded), false, 512, &mut entries)
                && entries.words.is_empty()
            {
                failed = Some(error::no_memory(error));
                break;
            }
            let Some(last) = entries.keys.last() else { break };
            for at in 0..entries.keys.len() {
                match core.store.remove(entries.keys.get(at)) {
                    Ok(word) => words.extend(word),
                    Err(error) => failed = Some(error::refused(error)),
                }
            }
            from = Edge::Excluded(last);
        }
        for word in words {
            // SAFETY: O1: the store returned the word to this call as removed.
            unsafe { self.release(py, word) };
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for Base {
    /// Releases the values of a map that nothing refers to any more. No cursor and no iterator
    /// exists, since these refer to the map, and no bulk call, since its caller does.
    fn drop(&mut self) {
        let (Values::Objects, Some(core)) = (self.values, self.core()) else { return };
        Python::attach(|py| {
            let (mut entries, mut from) = (Entries::empty(core.store.are_words()), Edge::Unbounded);
            loop {
                entries.clear();
                // Values that a failed scan has not returned come next. If it has returned none,
                // they leak.
                _ = core.store.scan(&(from, Edge::Unbounded), false, 512, &mut entries);
                let Some(last) = entries.keys.last() else { return };
                for word in &entries.words {
                    // SAFETY: O1: the word owns its reference. Each word comes once, because
                    // entries ascend, and nothing reads the map after this.
                    unsafe { owned::release_now(py, *word) };
                }
                from = Edge::Excluded(last);
            }
        });
    }
}

#[pymethods]
impl Base {
    #[new]
    #[pyo3(signature = (*others, keys=None, values=None, structure=None, memory_limit=None, pages=None, **named))]
    fn new(
        others: &Bound<'_, PyTuple>,
        keys: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyAny>>,
        structure: Option<String>,
        memory_limit: Option<&Bound<'_, PyAny>>,
        pages: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        _ = (others, named); // They are those of `__init__` of a derived class.
        let memory_limit = memory_limit.map(arguments::limit).transpose()?;
        let options =
            Options { memory_limit, pages: arguments::pages(pages)?, ..Options::default() };
        let mut map = Self {
            core: OnceLock::new(),
            values: Values::named(values)?,
            structure,
            pages: pages.unwrap_or("thp").into(),
            options,
            ledger: Ledger::default(),
        };
        match keys {
            Some(keys) => map.core = OnceLock::from(map.new_core(keys::kind_named(keys)?)?),
            // The name is checked now, and not at the first key.
            None if map.structure.is_some() => {
                let made = |words| Store::new(words, map.structure.as_deref(), &map.options);
                let either = made(true).or_else(|error| made(false).map_err(|_| error));
                either.map_err(error::no_structure)?;
            }
            None => {}
        }
        Ok(map)
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.look_up(key)? {
            Some(value) => Ok(value),
            None => Err(single::absent_key(key)),
        }
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(key, value)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.remove(key)?.map(drop).ok_or_else(|| single::absent_key(key))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.has(key)
    }

    fn __len__(&self) -> usize {
        self.core().map_or(0, |core| core.store.len())
    }

    fn __bool__(&self) -> bool {
        self.__len__() != 0
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ranges::iterate(slf, ranges::Parts::Keys, false)
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ranges::iterate(slf, ranges::Parts::Keys, true)
    }

    /// Returns the value of a key, or the default if the key is absent.
    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.look_up(key)?.or(default))
    }

    /// Returns the value of a key. If the key is absent, inserts the default and returns it.
    #[pyo3(signature = (key, default=None, /))]
    fn setdefault<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.set_default(key, default)
    }

    /// Removes a key and returns its value. If the key is absent, returns the default, or raises
    /// `KeyError` if there is none.
    #[pyo3(signature = (key, default=Given(None)), text_signature = "($self, key, default=...)")]
    fn pop<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Given<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.remove(key)?.or(default.0).ok_or_else(|| single::absent_key(key))
    }

    /// Returns the entry at an index, as a pair.
    #[pyo3(signature = (index=Index(-1)), text_signature = "($self, index=-1)")]
    fn peekitem<'py>(&self, py: Python<'py>, index: Index) -> PyResult<Bound<'py, PyAny>> {
        self.peek(py, index)
    }

    /// Removes the entry at an index, and returns it as a pair.
    #[pyo3(signature = (index=Index(-1)), text_signature = "($self, index=-1)")]
    fn popitem<'py>(&self, py: Python<'py>, index: Index) -> PyResult<Bound<'py, PyAny>> {
        self.pop_item(py, index)
    }

    /// Removes all entries.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.empty(py)
    }

    /// Gives a key the value `new` if it has the value `expected`, in one atomic step. `ABSENT`
    /// stands for no value. Returns whether it did.
    #[pyo3(signature = (key, expected, new, /))]
    fn compare_exchange(
        &self,
        key: &Bound<'_, PyAny>,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.exchange(key, expected, new)
    }

    /// Iterates over the keys between two bounds.
    #[pyo3(
        signature = (minimum=None, maximum=None, inclusive=Inclusive(true, true), reverse=false),
        text_signature = "($self, minimum=None, maximum=None, inclusive=(True, True), reverse=False)"
    )]
    fn irange<'py>(
        slf: &Bound<'py, Self>,
        minimum: Option<&Bound<'py, PyAny>>,
        maximum: Option<&Bound<'py, PyAny>>,
        inclusive: Inclusive,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = slf.get().bounds(minimum, maximum, inclusive)?;
        ranges::between(slf, bounds, ranges::Parts::Keys, reverse)
    }

    /// Iterates over the keys between two indexes.
    #[pyo3(signature = (start=None, stop=None, reverse=false))]
    fn islice<'py>(
        slf: &Bound<'py, Self>,
        start: Option<Index>,
        stop: Option<Index>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        ranges::slice(slf, (start, stop), ranges::Parts::Keys, reverse)
    }

    /// Iterates over keys ("keys"), values ("values") or pairs ("items") between two indexes.
    #[pyo3(signature = (parts, start=None, stop=None, reverse=false))]
    fn _slice<'py>(
        slf: &Bound<'py, Self>,
        parts: &str,
        start: Option<Index>,
        stop: Option<Index>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parts = ranges::Parts::named(parts)?;
        if start.is_none() && stop.is_none() {
            return ranges::iterate(slf, parts, reverse);
        }
        ranges::slice(slf, (start, stop), parts, reverse)
    }

    /// Iterates over the entries between two bounds, as pairs.
    #[pyo3(
        signature = (minimum=None, maximum=None, inclusive=Inclusive(true, true), reverse=false),
        text_signature = "($self, minimum=None, maximum=None, inclusive=(True, True), reverse=False)"
    )]
    fn irange_items<'py>(
        slf: &Bound<'py, Self>,
        minimum: Option<&Bound<'py, PyAny>>,
        maximum: Option<&Bound<'py, PyAny>>,
        inclusive: Inclusive,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = slf.get().bounds(minimum, maximum, inclusive)?;
        ranges::between(slf, bounds, ranges::Parts::Items, reverse)
    }

    /// Iterates over the keys that begin with a string, or with the elements of a tuple.
    #[pyo3(signature = (prefix, reverse=false))]
    fn prefix<'py>(
        slf: &Bound<'py, Self>,
        prefix: &Bound<'py, PyAny>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = slf.get().prefixed(prefix)?;
        ranges::between(slf, bounds, ranges::Parts::Keys, reverse)
    }

    /// Returns the number of keys between two bounds.
    #[pyo3(
        signature = (minimum=None, maximum=None, inclusive=Inclusive(true, true)),
        text_signature = "($self, minimum=None, maximum=None, inclusive=(True, True))"
    )]
    fn count(
        &self,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
        inclusive: Inclusive,
    ) -> PyResult<usize> {
        let bounds = self.bounds(minimum, maximum, inclusive)?;
        let (Some(core), Some(bounds)) = (self.core(), bounds) else { return Ok(0) };
        core.store.count(&bounds).ok_or_else(error::no_ranks)
    }

    /// Returns the number of keys that are smaller than a key.
    #[pyo3(signature = (key, /))]
    fn bisect_left(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.rank(key, false)
    }

    /// Returns the number of keys that are not greater than a key.
    #[pyo3(signature = (key, /))]
    fn bisect_right(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.rank(key, true)
    }

    /// Returns the number of keys that are not greater than a key.
    #[pyo3(signature = (key, /))]
    fn bisect(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.rank(key, true)
    }

    /// Returns the index of a key. Raises `ValueError` if it is absent or not in the given slice.
    #[pyo3(signature = (key, start=None, stop=None, /))]
    fn index(
        &self,
        key: &Bound<'_, PyAny>,
        start: Option<Index>,
        stop: Option<Index>,
    ) -> PyResult<usize> {
        self.index_of(key, start, stop)
    }

    /// Returns a cursor, which is before the first entry.
    fn cursor(slf: &Bound<'_, Self>) -> Cursor {
        Cursor::new(slf)
    }

    /// Looks up many keys, in the order of the argument.
    #[pyo3(signature = (keys, default=None))]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        default: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        bulk::get_many(self, keys, default)
    }

    /// Inserts many entries, in the order of the arguments: keys and values, or pairs.
    #[pyo3(signature = (keys, values=None, /))]
    fn insert_many(
        &self,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        bulk::insert_many(self, keys, values)
    }

    /// Returns an array of numpy with the keys between two bounds.
    #[pyo3(
        signature = (minimum=None, maximum=None, inclusive=Inclusive(true, true)),
        text_signature = "($self, minimum=None, maximum=None, inclusive=(True, True))"
    )]
    fn keys_array<'py>(
        &self,
        py: Python<'py>,
        minimum: Option<&Bound<'py, PyAny>>,
        maximum: Option<&Bound<'py, PyAny>>,
        inclusive: Inclusive,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = self.bounds(minimum, maximum, inclusive)?;
        bulk::keys_array(self, py, bounds)
    }

    /// Returns an array of numpy with the values of the keys between two bounds.
    #[pyo3(
        signature = (minimum=None, maximum=None, inclusive=Inclusive(true, true)),
        text_signature = "($self, minimum=None, maximum=None, inclusive=(True, True))"
    )]
    fn values_array<'py>(
        &self,
        py: Python<'py>,
        minimum: Option<&Bound<'py, PyAny>>,
        maximum: Option<&Bound<'py, PyAny>>,
        inclusive: Inclusive,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = self.bounds(minimum, maximum, inclusive)?;
        bulk::values_array(self, py, bounds)
    }

    /// Returns two arrays of numpy: the keys between two bounds, and their values.
    #[pyo3(
        signature = (minimum=None, maximum=None, inclusive=Inclusive(true, true)),
        text_signature = "($self, minimum=None, maximum=None, inclusive=(True, True))"
    )]
    fn arrays<'py>(
        &self,
        py: Python<'py>,
        minimum: Option<&Bound<'py, PyAny>>,
        maximum: Option<&Bound<'py, PyAny>>,
        inclusive: Inclusive,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let bounds = self.bounds(minimum, maximum, inclusive)?;
        bulk::arrays(self, py, bounds)
    }

    /// Returns unused memory to the system, and the number of its bytes.
    fn shrink(&self, py: Python<'_>) -> usize {
        self.core().map_or(0, |core| py.detach(|| core.store.shrink()))
    }

    /// Checks the map, and returns the number of its keys. Raises `RuntimeError` if the map is
    /// damaged.
    fn check(&self) -> PyResult<usize> {
        // The GIL is held, so that only bulk calls of other threads can cause a false report.
        self.core().map_or(Ok(0), |core| core.store.check().map_err(PyRuntimeError::new_err))
    }

    /// The bytes that the map holds, without those of the objects that are its values.
    #[getter]
    fn bytes(&self) -> usize {
        self.core().map_or(0, |core| core.store.bytes())
    }

    /// The type of the keys, or `None` if the map never had a key.
    #[getter]
    fn key_type<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.core().map(|core| keys::class_of(py, core.kind))
    }

    /// The type of the values.
    #[getter]
    fn value_type<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.values.class(py)
    }

    /// The name of the structure, or `None` for the default structure.
    #[getter]
    fn structure(&self) -> Option<&str> {
        self.structure.as_deref()
    }

    /// The most bytes that the map may hold, or `None`.
    #[getter]
    fn memory_limit(&self) -> Option<usize> {
        self.options.memory_limit
    }

    /// The pages that the map requests.
    #[getter]
    fn pages(&self) -> &str {
        &self.pages
    }

    /// Whether the structure counts its keys.
    #[getter]
    fn has_ranks(&self) -> bool {
        self.has_ranks_named()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let (Values::Objects, Some(core)) = (self.values, self.core()) else { return Ok(()) };
        if self.ledger.is_detached() {
            return Ok(()); // O7
        }
        ranges::visit(&core.store, &visit)
    }

    fn __clear__(&self, py: Python<'_>) {
        // The collector takes no errors; an entry that is not removed keeps its value alive.
        _ = self.empty(py);
    }
}

/// Reads a key for a lookup; `None` if the object is no key of the map.
#[inline]
pub(super) fn looked_for<'a>(
    core: &Core,
    object: &'a Bound<'_, PyAny>,
) -> PyResult<Option<Made<'a>>> {
    match core.read(object) {
        Ok(made) => Ok(Some(made)),
        Err(unfit) => unfit.absent().map(|()| None),
    }
}

/// The exception of an empty map.
pub(super) fn no_entry() -> PyErr {
    PyKeyError::new_err("the map is empty")
}
