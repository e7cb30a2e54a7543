//! Ranges, and the iterators over them.
//!
//! An iterator of the package is an `itertools.chain` over a [`Chunks`], each of whose elements is
//! a list of some keys, values or pairs. So the interpreter gets most elements from a list, in C.

use super::arguments::{Inclusive, Index};
use super::error::{no_memory, no_ranks};
use super::keys;
use super::map::Base;
use super::owned::{locked, object_of};
use super::values::Values;
use crate::key::{behind, behind_tuples};
use crate::shape::Kind;
use crate::store::{Bounds, Entries, Key, OwnedKey, Store};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use std::alloc::{Layout, handle_alloc_error};
use std::ops::Bound as Edge;
use std::ptr::NonNull;
use std::sync::Mutex;

/// The number of entries of the first list. Many ranges are short.
const FIRST: usize = 4;
/// The factor by which lists grow.
const GROWTH: usize = 4;
/// The most entries of a list.
const MOST: usize = 512;

/// The parts of entries that an iterator returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    Keys,
    Values,
    Items,
}

impl Parts {
    pub(super) fn named(name: &str) -> PyResult<Self> {
        match name {
            "keys" => Ok(Self::Keys),
            "values" => Ok(Self::Values),
            "items" => Ok(Self::Items),
            _ => Err(PyValueError::new_err("the parts are \"keys\", \"values\" or \"items\"")),
        }
    }
}

/// An iterator over lists of consecutive entries.
#[pyclass(frozen, module = "silvics._silvics")]
pub(super) struct Chunks {
    map: Py<Base>,
    parts: Parts,
    reverse: bool,
    /// Locked only by code that calls no Python (O5).
    place: Mutex<Place>,
}

/// The place of an iterator in its map.
struct Place {
    bounds: Bounds,
    /// The number of entries of the next list.
    next: usize,
    /// The number of entries that are left, at most.
    left: usize,
    /// The memory of the last list.
    entries: Option<Entries>,
}

/// The next entries of an iterator.
struct Next {
    kind: Kind,
    entries: Entries,
}

impl Chunks {
    /// Reads the next entries. The caller holds the GIL until it has references to their values.
    fn read(&self) -> PyResult<Option<Next>> {
        let Some(core) = self.map.get().core() else { return Ok(None) };
        let mut place = locked(&self.place);
        let most = place.next.min(place.left);
        if most == 0 {
            return Ok(None);
        }
        let empty = || Entries::empty(core.store.are_words());
        let mut entries = place.entries.take().unwrap_or_else(empty);
        entries.clear();
        core.store.scan(&place.bounds, self.reverse, most, &mut entries).map_err(no_memory)?;
        let read = entries.words.len();
        // A list that is not full is the last one.
        place.left = if read < most { 0 } else { place.left - read };
        place.next = (place.next * GROWTH).min(MOST);
        let Some(last) = entries.keys.last().map(Edge::Excluded) else { return Ok(None) };
        if self.reverse {
            place.bounds.1 = last;
        } else {
            place.bounds.0 = last;
        }
        Ok(Some(Next { kind: core.kind, entries }))
    }
}

#[pymethods]
impl Chunks {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(Next { kind, entries }) = self.read()? else { return Ok(None) };
        let map = self.map.get();
        let values = self.parts != Parts::Keys;
        // References to all values come before any object is made, which can run the collector, and
        // so code that removes entries.
        let words = if values { &entries.words[..] } else { &[] };
        // SAFETY: O2: the GIL has been held since `read` read the words.
        let values = words.iter().map(|word| unsafe { map.value(py, *word) });
        let mut values: Vec<Bound<'_, PyAny>> = values.collect();
        let list = match self.parts {
            Parts::Keys => {
                list(py, entries.keys.len(), |at| keys::object(py, kind, entries.keys.get(at)))
            }
            Parts::Values => {
                let mut values = values.drain(..);
                let len = entries.words.len();
                list(py, len, |_| values.next().ok_or_else(no_value))
            }
            Parts::Items => {
                let mut values = values.drain(..);
                list(py, entries.keys.len(), |at| {
                    let key = keys::object(py, kind, entries.keys.get(at))?;
                    let value = values.next().ok_or_else(no_value)?;
                    Ok(PyTuple::new(py, [key, value])?.into_any())
                })
            }
        }?;
        locked(&self.place).entries = Some(entries);
        Ok(Some(list))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.map)
    }
}

/// The exception of an entry without a value, which no scan returns.
fn no_value() -> PyErr {
    PyRuntimeError::new_err("the map returned an entry without a value")
}

/// A list of the given number of elements. It exists when all elements do: code that runs while
/// elements are made, such as a callback of the collector, must not see a list with empty places.
pub(super) fn list<'py>(
    py: Python<'py>,
    len: usize,
    mut element: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).map_err(no_memory)?;
    for at in 0..len {
        elements.push(element(at)?);
    }
    Ok(PyList::new(py, elements)?.into_any())
}

/// Visits the objects of all words, for the collector.
pub(super) fn visit(store: &Store, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    let (mut entries, mut from) = (Entries::empty(store.are_words()), Edge::Unbounded);
    loop {
        entries.clear();
        if store.scan(&(from, Edge::Unbounded), false, MOST, &mut entries).is_err() {
            // The collector must meet the same references each time (O7), so none may be left out.
            handle_alloc_error(Layout::new::<u64>());
        }
        let Some(last) = entries.keys.last() else { return Ok(()) };
        for word in &entries.words {
            let Some(object) = NonNull::new(object_of(*word)) else { continue };
            // SAFETY: O7: the word owns a reference. `Py` has the layout of a `NonNull`, and this
            // borrowed one is not dropped.
            let object = unsafe { &*(&raw const object).cast::<Py<PyAny>>() };
            visit.call(object)?;
        }
        from = Edge::Excluded(last);
    }
}

static CHAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// An iterator over the elements of the lists of a [`Chunks`].
fn chain<'py>(
    map: &Bound<'py, Base>,
    bounds: Bounds,
    left: usize,
    (parts, reverse): (Parts, bool),
) -> PyResult<Bound<'py, PyAny>> {
    let py = map.py();
    let place = Place { bounds, next: FIRST, left, entries: None };
    let place = Mutex::new(place);
    let chunks = Bound::new(py, Chunks { map: map.clone().unbind(), parts, reverse, place })?;
    let chain = CHAIN.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("itertools")?.getattr("chain")?.getattr("from_iterable")?.unbind())
    })?;
    chain.bind(py).call1((chunks,))
}

/// Iterates over all entries.
pub(super) fn iterate<'py>(
    map: &Bound<'py, Base>,
    parts: Parts,
    reverse: bool,
) -> PyResult<Bound<'py, PyAny>> {
    chain(map, (Edge::Unbounded, Edge::Unbounded), usize::MAX, (parts, reverse))
}

/// Iterates over the entries between bounds; over none if there are no bounds.
pub(super) fn between<'py>(
    map: &Bound<'py, Base>,
    bounds: Option<Bounds>,
    parts: Parts,
    reverse: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let left = if bounds.is_some() { usize::MAX } else { 0 };
    let bounds = bounds.unwrap_or((Edge::Unbounded, Edge::Unbounded));
    chain(map, bounds, left, (parts, reverse))
}

/// The indexes of a slice, as Python has them.
pub(super) fn within(len: usize, start: Option<Index>, stop: Option<Index>) -> (usize, usize) {
    let at = |Index(index): Index| {
        if index < 0 { len.saturating_add_signed(index) } else { (index as usize).min(len) }
    };
    (start.map_or(0, at), stop.map_or(len, at))
}

/// Iterates over the entries between two indexes.
pub(super) fn slice<'py>(
    map: &Bound<'py, Base>,
    (start, stop): (Option<Index>, Option<Index>),
    parts: Parts,
    reverse: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let base = map.get();
    if !base.has_ranks_named() {
        return Err(no_ranks());
    }
    let mut bounds = (Edge::Unbounded, Edge::Unbounded);
    let mut left = 0;
    if let Some(core) = base.core() {
        let (start, stop) = within(core.store.len(), start, stop);
        let first = if reverse { stop.wrapping_sub(1) } else { start };
        if start < stop
            && let Some((key, _)) = core.store.nth(first)
        {
            left = stop - start;
            let edge = if reverse { &mut bounds.1 } else { &mut bounds.0 };
            *edge = Edge::Included(key);
        }
    }
    chain(map, bounds, left, (parts, reverse))
}

impl Base {
    /// The bounds of a range; none if the map is empty because it never had a key.
    pub(super) fn bounds(
        &self,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
        inclusive: Inclusive,
    ) -> PyResult<Option<Bounds>> {
        let Some(core) = self.core() else {
            for key in minimum.into_iter().chain(maximum) {
                keys::kind_of(key)?;
            }
            return Ok(None);
        };
        let edge = |key: Option<&Bound<'_, PyAny>>, inclusive: bool| {
            let Some(key) = key else { return Ok(Edge::Unbounded) };
            let key = core.read(key)?.into_owned();
            Ok::<_, PyErr>(if inclusive { Edge::Included(key) } else { Edge::Excluded(key) })
        };
        Ok(Some((edge(minimum, inclusive.0)?, edge(maximum, inclusive.1)?)))
    }

    /// The bounds of the keys that begin with a prefix.
    pub(super) fn prefixed(&self, prefix: &Bound<'_, PyAny>) -> PyResult<Option<Bounds>> {
        let Some(core) = self.core() else { return Ok(None) };
        let made = core.read(prefix)?;
        let end = match made.key() {
            Key::Word(_) => {
                let message = "keys that are numbers have no prefixes: use `irange`";
                return Err(PyTypeError::new_err(message));
            }
            Key::Block(block) if core.kind == Kind::Tuple => behind_tuples(block),
            Key::Block(block) => behind(block),
        };
        Ok(Some((Edge::Included(made.into_owned()), end.map(OwnedKey::Block))))
    }

    /// Whether the map has numbers as values, which arrays can have.
    pub(super) fn has_numbers(&self) -> bool {
        self.values != Values::Objects
    }
}
