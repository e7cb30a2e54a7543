//! Cursors.

use super::keys;
use super::map::Base;
use super::owned::locked;
use crate::shape::Kind;
use crate::store::{Key, OwnedKey, Store, Walk};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Mutex;

/// The walk of a cursor, whose type is that of the map's keys.
enum Walking {
    /// The map has had no key yet.
    Nowhere,
    Words(Walk<u64>),
    Blocks(Walk<Vec<u8>>),
}

/// A position in a map: at an entry, before the first entry, or after the last one.
///
/// A cursor keeps its map alive. If the entry at which it stands is removed, it keeps its place.
#[pyclass(frozen, module = "silvics._silvics")]
pub(super) struct Cursor {
    map: Py<Base>,
    /// Locked only by code that calls no Python (O5). The walk reads words of values ahead, which
    /// this file never uses: a word is looked up when it is needed.
    walking: Mutex<Walking>,
}

/// Evaluates an expression on the walk of a cursor.
macro_rules! walk {
    ($walking:expr, $walk:ident => $body:expr, $nowhere:expr) => {
        match &mut *$walking {
            Walking::Nowhere => $nowhere,
            Walking::Words($walk) => $body,
            Walking::Blocks($walk) => $body,
        }
    };
}

impl Cursor {
    pub(super) fn new(map: &Bound<'_, Base>) -> Self {
        Self { map: map.clone().unbind(), walking: Mutex::new(Walking::Nowhere) }
    }

    /// Moves the cursor. It is before the first entry if the map has had no key before.
    fn moved(&self, step: impl FnOnce(&mut Walking) -> bool) -> bool {
        let mut walking = locked(&self.walking);
        if let (Walking::Nowhere, Some(core)) = (&*walking, self.map.get().core()) {
            *walking = match &core.store {
                Store::Words(map) => Walking::Words(map.cursor()),
                Store::Blocks(map) => Walking::Blocks(map.cursor()),
            };
        }
        step(&mut walking)
    }

    fn sought(&self, key: &Bound<'_, PyAny>, reverse: bool) -> PyResult<bool> {
        let Some(core) = self.map.get().core() else {
            keys::kind_of(key)?;
            return Ok(false);
        };
        let made = core.read(key)?;
        Ok(self.moved(|walking| match (walking, made.key()) {
            (Walking::Words(walk), Key::Word(key)) if reverse => walk.seek_for_prev(key),
            (Walking::Words(walk), Key::Word(key)) => walk.seek(key),
            (Walking::Blocks(walk), Key::Block(key)) if reverse => walk.seek_for_prev(key),
            (Walking::Blocks(walk), Key::Block(key)) => walk.seek(key),
            _ => false,
        }))
    }

    /// The key at which the cursor stands, and its present value.
    fn here<'py>(&self, py: Python<'py>) -> Option<(Kind, OwnedKey, Option<Bound<'py, PyAny>>)> {
        let map = self.map.get();
        let kind = map.core()?.kind;
        let (key, word) = match &*locked(&self.walking) {
            Walking::Nowhere => None,
            Walking::Words(walk) => {
                walk.with_current(|key, word| (OwnedKey::Word(key), word.copied()))
            }
            Walking::Blocks(walk) => {
                walk.with_current(|key, word| (OwnedKey::Block(key.to_vec()), word.copied()))
            }
        }?;
        // SAFETY: O2: the GIL has been held since the lookup, which `with_current` makes.
        Some((kind, key, word.map(|word| unsafe { map.value(py, word) })))
    }
}

#[pymethods]
impl Cursor {
    /// Moves to the first entry at or after a key. Returns whether there is one.
    #[pyo3(signature = (key, /))]
    fn seek(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.sought(key, false)
    }

    /// Moves to the last entry at or before a key. Returns whether there is one.
    #[pyo3(signature = (key, /))]
    fn seek_for_prev(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.sought(key, true)
    }

    /// Moves to the first entry. Returns whether there is one.
    fn first(&self) -> bool {
        self.moved(|walking| walk!(walking, walk => walk.seek_to_first(), false))
    }

    /// Moves to the last entry. Returns whether there is one.
    fn last(&self) -> bool {
        self.moved(|walking| walk!(walking, walk => walk.seek_to_last(), false))
    }

    /// Moves to the next entry; from before the first entry, to the first one. Returns whether
    /// there is one.
    fn next(&self) -> bool {
        self.moved(|walking| walk!(walking, walk => walk.next(), false))
    }

    /// Moves to the previous entry; from after the last entry, to the last one. Returns whether
    /// there is one.
    fn prev(&self) -> bool {
        self.moved(|walking| walk!(walking, walk => walk.prev(), false))
    }

    /// The key at which the cursor stands, or `None`.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((kind, key, _)) = self.here(py) else { return Ok(None) };
        keys::object(py, kind, key.borrow()).map(Some)
    }

    /// The present value of that key, or `None` if the cursor stands at no entry or the key was
    /// removed.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.here(py)?.2
    }

    /// The key and its present value as a pair, or `None` if the cursor stands at no entry. If the
    /// key was removed, the value is `ABSENT`.
    #[getter]
    fn current<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((kind, key, value)) = self.here(py) else { return Ok(None) };
        let key = keys::object(py, kind, key.borrow())?;
        let value = value.map_or_else(|| super::single::absent(py), Ok)?;
        Ok(Some(PyTuple::new(py, [key, value])?.into_any()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.map)
    }
}
