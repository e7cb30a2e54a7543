//! The operations on one key, and on the entry at an index.

use super::arguments::Index;
use super::error::{no_ranks, refused};
use super::keys::{self, Made};
use super::map::{Base, Core, looked_for, no_entry};
use super::values::Fresh;
use crate::shape::Kind;
use crate::store::{Key, OwnedKey};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::ops::Deref;
use std::sync::Mutex;

static ABSENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The class of the object `ABSENT`.
#[pyclass(frozen, module = "silvics._silvics")]
pub(super) struct Absent;

// Python passes the object to its methods.
#[allow(clippy::unused_self)]
#[pymethods]
impl Absent {
    fn __repr__(&self) -> &'static str {
        "silvics.ABSENT"
    }

    fn __reduce__(&self) -> &'static str {
        "ABSENT"
    }
}

/// The object that stands for no value in `compare_exchange`.
pub(super) fn absent(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let made = ABSENT.get_or_try_init(py, || Py::new(py, Absent).map(Py::into_any))?;
    Ok(made.bind(py).clone())
}

/// The exception of a key that is absent.
#[cold]
pub(super) fn absent_key(key: &Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err((key.clone().unbind(),))
}

/// The core of a map, or one that becomes its core when something is inserted. So a call that
/// inserts nothing does not decide the type of the keys.
pub(super) enum Draft<'m> {
    Present(&'m Core),
    New(Box<Core>),
}

impl Deref for Draft<'_> {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        match self {
            Self::Present(core) => core,
            Self::New(core) => core,
        }
    }
}

impl<'m> Draft<'m> {
    /// Makes this the core of the map, and gives the new positions of an inserted key their types.
    #[inline]
    fn keep(self, map: &'m Base, made: &Made<'_>) {
        keys::learn(&self.shape, made);
        self.published(map);
    }

    /// Makes this the core of the map. The GIL has been held since the map had none.
    #[inline]
    pub(super) fn published(self, map: &'m Base) -> &'m Core {
        match self {
            Self::Present(core) => core,
            Self::New(core) => map.core.get_or_init(|| *core),
        }
    }
}

impl Base {
    /// Looks up a key.
    #[inline]
    pub(super) fn look_up<'py>(
        &self,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(core) = self.core() else { return Ok(None) };
        let Some(made) = looked_for(core, key)? else { return Ok(None) };
        let word = core.store.get(made.key());
        // SAFETY: O2: the GIL has been held since the lookup.
        Ok(word.map(|word| unsafe { self.value(key.py(), word) }))
    }

    pub(super) fn has(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(core) = self.core() else { return Ok(false) };
        let made = looked_for(core, key)?;
        Ok(made.is_some_and(|made| core.store.get(made.key()).is_some()))
    }

    /// The core; a new one for keys of a type if the map has none. No Python code runs before it is
    /// [kept](Draft::keep).
    #[inline]
    pub(super) fn draft(&self, kind: Kind) -> PyResult<Draft<'_>> {
        match self.core() {
            Some(core) => Ok(Draft::Present(core)),
            None => Ok(Draft::New(Box::new(self.new_core(kind)?))),
        }
    }

    /// Reads a key that is to be inserted, and returns the core: a new one for keys of this type if
    /// the map has none. No Python code runs before it is [kept](Draft::keep).
    #[inline]
    fn to_insert<'k>(&self, key: &'k Bound<'_, PyAny>) -> PyResult<(Draft<'_>, Made<'k>)> {
        if let Some(core) = self.core() {
            return Ok((Draft::Present(core), core.read(key)?));
        }
        self.first_to_insert(key)
    }

    #[cold]
    fn first_to_insert<'k>(&self, key: &'k Bound<'_, PyAny>) -> PyResult<(Draft<'_>, Made<'k>)> {
        let kind = keys::kind_of(key)?;
        let made = keys::read(kind, &Mutex::default(), key)?;
        // Code of the key may have inserted another one.
        match self.draft(kind)? {
            Draft::Present(core) => Ok((Draft::Present(core), core.read(key)?)),
            new @ Draft::New(_) => Ok((new, made)),
        }
    }

    #[inline]
    pub(super) fn set(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let fresh = self.values.word(value)?;
        let old = if let Some(core) = self.core() {
            let made = core.read(key)?;
            let old = core.store.upsert(made.key(), fresh.word()).map_err(refused)?;
            keys::learn(&core.shape, &made);
            old
        } else {
            let (core, made) = self.first_to_insert(key)?;
            let old = core.store.upsert(made.key(), fresh.word()).map_err(refused)?;
            core.keep(self, &made);
            old
        };
        fresh.placed();
        if let Some(old) = old {
            // SAFETY: O1: the store returned the word to this call as replaced.
            unsafe { self.release(key.py(), old) };
        }
        Ok(())
    }

    pub(super) fn set_default<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(present) = self.look_up(key)? {
            return Ok(present);
        }
        let py = key.py();
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        let fresh = self.values.word(&default)?;
        let (core, made) = self.to_insert(key)?;
        let present = core.store.insert_absent(made.key(), fresh.word()).map_err(refused)?;
        if let Some(present) = present {
            // SAFETY: O2: the GIL has been held since the store read the word.
            return Ok(unsafe { self.value(py, present) });
        }
        core.keep(self, &made);
        fresh.placed();
        Ok(default)
    }

    pub(super) fn remove<'py>(
        &self,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(core) = self.core() else { return Ok(None) };
        let Some(made) = looked_for(core, key)? else { return Ok(None) };
        let word = core.store.remove(made.key()).map_err(refused)?;
        // SAFETY: O1: the store returned the word to this call as removed.
        Ok(word.map(|word| unsafe { self.taken(key.py(), word) }))
    }

    pub(super) fn exchange(
        &self,
        key: &Bound<'_, PyAny>,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let py = key.py();
        let absent = absent(py)?;
        let fresh = if new.is(&absent) { None } else { Some(self.values.word(new)?) };
        let (core, made) = self.to_insert(key)?;
        loop {
            let found = core.store.get(made.key());
            // The object of the word stays alive until the exchange, so that no other object can
            // get its address, and the exchange replaces the very object that was compared.
            // SAFETY: O2: the GIL has been held since the lookup.
            let value = found.map(|word| unsafe { self.value(py, word) });
            let fits = match &value {
                None => expected.is(&absent),
                Some(_) if expected.is(&absent) => false,
                // The comparison can run any code.
                Some(value) => value.is(expected) || value.eq(expected)?,
            };
            if !fits {
                return Ok(false);
            }
            let word = fresh.as_ref().map(Fresh::word);
            let outcome = core.store.compare_exchange(made.key(), found, word).map_err(refused)?;
            if outcome.is_ok() {
                if let Some(fresh) = fresh {
                    // If the map has no core, or if the key has new positions, the key was absent,
                    // and no comparison has run.
                    core.keep(self, &made);
                    fresh.placed();
                }
                if let Some(old) = found {
                    // SAFETY: O1: the store has replaced or removed this word for this call.
                    unsafe { self.release(py, old) };
                }
                return Ok(true);
            }
        }
    }

    /// A pair of a key and a value.
    fn pair<'py>(
        core: &Core,
        key: Key<'_>,
        value: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        let key = keys::object(py, core.kind, key)?;
        Ok(PyTuple::new(py, [key, value])?.into_any())
    }

    pub(super) fn peek<'py>(
        &self,
        py: Python<'py>,
        Index(index): Index,
    ) -> PyResult<Bound<'py, PyAny>> {
        let core = self.core().ok_or_else(out_of_range)?;
        let (key, word) = Self::at(core, index)?.ok_or_else(out_of_range)?;
        // SAFETY: O2: the GIL has been held since the lookup.
        let value = unsafe { self.value(py, word) };
        Self::pair(core, key.borrow(), value)
    }

    /// The entry at an index, which may be negative.
    fn at(core: &Core, index: isize) -> PyResult<Option<(OwnedKey, u64)>> {
        match index {
            0 => Ok(core.store.end(false)),
            -1 => Ok(core.store.end(true)),
            _ if !core.store.has_ranks() => Err(no_ranks()),
            _ => {
                let len = core.store.len();
                let at =
                    if index < 0 { len.checked_add_signed(index) } else { Some(index as usize) };
                Ok(at.and_then(|at| core.store.nth(at)))
            }
        }
    }

    pub(super) fn pop_item<'py>(
        &self,
        py: Python<'py>,
        Index(index): Index,
    ) -> PyResult<Bound<'py, PyAny>> {
        let core = self.core().filter(|core| !core.store.is_empty()).ok_or_else(no_entry)?;
        let (key, word) = if let 0 | -1 = index {
            core.store.pop_end(index == -1).map_err(refused)?.ok_or_else(no_entry)?
        } else {
            loop {
                let (key, _) = Self::at(core, index)?.ok_or_else(out_of_range)?;
                if let Some(word) = core.store.remove(key.borrow()).map_err(refused)? {
                    break (key, word);
                }
            }
        };
        // SAFETY: O1: the store returned the word to this call as removed.
        let value = unsafe { self.taken(py, word) };
        Self::pair(core, key.borrow(), value)
    }

    pub(super) fn rank(&self, key: &Bound<'_, PyAny>, right: bool) -> PyResult<usize> {
        let Some(core) = self.core() else {
            if self.has_ranks_named() {
                keys::kind_of(key)?;
                return Ok(0);
            }
            return Err(no_ranks());
        };
        let made = core.read(key)?;
        let rank = core.store.rank(made.key()).ok_or_else(no_ranks)?;
        let present = right && core.store.get(made.key()).is_some();
        Ok(rank + usize::from(present))
    }

    pub(super) fn index_of(
        &self,
        key: &Bound<'_, PyAny>,
        start: Option<Index>,
        stop: Option<Index>,
    ) -> PyResult<usize> {
        let missing = || PyValueError::new_err("this key is not in the map, or not in the slice");
        let core = self.core().ok_or_else(missing)?;
        if !core.store.has_ranks() {
            return Err(no_ranks());
        }
        let made = looked_for(core, key)?.ok_or_else(missing)?;
        if core.store.get(made.key()).is_none() {
            return Err(missing());
        }
        let at = core.store.rank(made.key()).ok_or_else(no_ranks)?;
        let (from, to) = super::ranges::within(core.store.len(), start, stop);
        if (from..to).contains(&at) { Ok(at) } else { Err(missing()) }
    }
}

#[cold]
fn out_of_range() -> PyErr {
    PyIndexError::new_err("the map has no entry at this index")
}
