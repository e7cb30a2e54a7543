//! Operations on many keys, and arrays.
//!
//! A call on more than [`ATTACHED`] entries releases the GIL while it walks the index, with a mark
//! (O3).

use super::error::{UnsupportedError, no_memory, refused, with_inserted};
use super::keys::{self, Unfit};
use super::map::{Base, Core, looked_for};
use super::owned::{locked, object_of};
use super::ranges::list;
use super::single::absent_key;
use super::values::{Fresh, Values};
use crate::key::{float_to_word, int_to_word, word_to_float, word_to_int};
use crate::shape::{Kind, Shape};
use crate::store::{Bounds, Entries, Keys, Store};
use pyo3::buffer::{Element, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use silvics_sync::prefetch;
use std::ops::Bound as Edge;

/// The most entries for which a call keeps the GIL.
const ATTACHED: usize = 512;
/// The number of entries that a scan reads under one pin.
const UNDER_A_PIN: usize = 2048;
/// The number of objects ahead that are prefetched.
const AHEAD: usize = 16;

/// Adds an element to a vector.
fn push<T>(to: &mut Vec<T>, element: T) -> PyResult<()> {
    to.try_reserve(1).map_err(no_memory)?;
    to.push(element);
    Ok(())
}

/// An empty vector with room for a number of elements.
fn room<T>(len: usize) -> PyResult<Vec<T>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).map_err(no_memory)?;
    Ok(elements)
}

/// A vector of elements whose number is known.
fn collected<T>(elements: impl ExactSizeIterator<Item = T>) -> PyResult<Vec<T>> {
    let mut to = room(elements.len())?;
    to.extend(elements);
    Ok(to)
}

/// The numbers of a one-dimensional buffer of this type, in the byte order of the machine.
fn buffer<T: Element + Default>(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<T>>> {
    if let Ok(buffer) = PyUntypedBuffer::get(object)
        && buffer.dimensions() > 1
    {
        let message =
            format!("an array of keys or values has one dimension, not {}", buffer.dimensions());
        return Err(PyTypeError::new_err(message));
    }
    let Ok(buffer) = PyBuffer::<T>::get(object) else { return Ok(None) };
    let order = buffer.format().to_bytes().first();
    let foreign = if cfg!(target_endian = "little") { &b">!"[..] } else { &b"<"[..] };
    if buffer.dimensions() != 1 || order.is_some_and(|order| foreign.contains(order)) {
        return Ok(None);
    }
    let mut numbers = room(buffer.item_count())?;
    numbers.resize(buffer.item_count(), T::default());
    buffer.copy_to_slice(object.py(), &mut numbers)?;
    Ok(Some(numbers))
}

/// The objects of an iterable.
fn objects<'py>(iterable: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut objects = Vec::new();
    for object in iterable.try_iter()? {
        push(&mut objects, object?)?;
    }
    Ok(objects)
}

/// Keys of a map in a buffer of numbers, if the object is one and its keys are such numbers.
fn keys_in_buffer(kind: Kind, object: &Bound<'_, PyAny>) -> Result<Option<Keys>, Unfit> {
    match kind {
        Kind::Int => {
            let Some(numbers) = buffer::<i64>(object)? else { return Ok(None) };
            Ok(Some(Keys::Words(collected(numbers.into_iter().map(int_to_word))?)))
        }
        Kind::Float => {
            let Some(numbers) = buffer::<f64>(object)? else { return Ok(None) };
            let mut words = room(numbers.len())?;
            for number in numbers {
                words.push(float_to_word(number).ok_or(Unfit::Nan)?);
            }
            Ok(Some(Keys::Words(words)))
        }
        _ => Ok(None),
    }
}

/// Keys to look up. The positions of objects that are no keys of the map are in `unfit`, and are
/// not among the keys.
struct Wanted<'py> {
    keys: Keys,
    unfit: Vec<usize>,
    first_unfit: Option<Bound<'py, PyAny>>,
    len: usize,
}

fn wanted<'py>(core: &Core, keys: &Bound<'py, PyAny>) -> PyResult<Wanted<'py>> {
    match keys_in_buffer(core.kind, keys) {
        Ok(Some(keys)) => {
            let len = keys.len();
            return Ok(Wanted { keys, unfit: Vec::new(), first_unfit: None, len });
        }
        Err(Unfit::Raised(error)) => return Err(error),
        _ => {} // a NaN among the numbers is absent
    }
    let mut read = Keys::empty(core.store.are_words());
    let (mut unfit, mut first_unfit, mut len) = (Vec::new(), None, 0);
    for key in keys.try_iter()? {
        let key = key?;
        if let Some(made) = looked_for(core, &key)? {
            read.push(made.key()).map_err(no_memory)?;
        } else {
            push(&mut unfit, len)?;
            first_unfit.get_or_insert(key);
        }
        len += 1;
    }
    Ok(Wanted { keys: read, unfit, first_unfit, len })
}

impl Wanted<'_> {
    /// The exception of the first absent key. All keys before its position were found.
    fn missing(&self, py: Python<'_>, kind: Kind, at: usize) -> PyErr {
        match &self.first_unfit {
            Some(key) if self.unfit.first() == Some(&at) => absent_key(key),
            // No object before it was unfit, so its key is at its own position.
            _ => match keys::object(py, kind, self.keys.get(at)) {
                Ok(key) => absent_key(&key),
                Err(error) => error,
            },
        }
    }

    /// Puts an absent entry at the position of each unfit object.
    fn spread(&self, found: Vec<Option<u64>>) -> PyResult<Vec<Option<u64>>> {
        if self.unfit.is_empty() {
            return Ok(found);
        }
        let (mut found, mut unfit) = (found.into_iter(), self.unfit.iter().peekable());
        let next = |at: usize| {
            unfit.next_if(|next| **next == at).map_or_else(|| found.next().flatten(), |_| None)
        };
        collected((0..self.len).map(next))
    }
}

/// Looks up many keys.
pub(super) fn get_many<'py>(
    map: &Base,
    keys: &Bound<'py, PyAny>,
    default: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let none = py.None().into_bound(py);
    let numbers = map.has_numbers();
    let instead = match default {
        Some(default) if numbers => Some(map.values.word(default)?.word()),
        _ => None,
    };
    let Some(core) = map.core() else {
        return absent_all(map, keys, (instead, default.unwrap_or(&none)));
    };
    let wanted = wanted(core, keys)?;
    let mark = map.ledger.mark(py);
    let mut found = room(wanted.keys.len())?;
    let look_up = || {
        core.store.get_many(&wanted.keys, |word| found.push(word));
        found
    };
    let found = if wanted.len > ATTACHED { py.detach(look_up) } else { look_up() };
    let found = wanted.spread(found)?;
    if numbers {
        drop(mark);
        let mut words = room(found.len())?;
        for (at, word) in found.iter().enumerate() {
            match word.or(instead) {
                Some(word) => words.push(word),
                None => return Err(wanted.missing(py, core.kind, at)),
            }
        }
        return array_of_values(map, py, &words);
    }
    let default = default.unwrap_or(&none);
    let list = list(py, found.len(), |at| {
        if let Some(Some(word)) = found.get(at + AHEAD) {
            prefetch(object_of(*word));
        }
        Ok(match found[at] {
            // SAFETY: O3: the mark is older than the lookup, and lives until all references
            // are taken.
            Some(word) => unsafe { map.value(py, word) },
            None => default.clone(),
        })
    });
    drop(mark);
    list
}

/// The result of lookups in a map that never had a key.
fn absent_all<'py>(
    map: &Base,
    keys: &Bound<'py, PyAny>,
    (instead, default): (Option<u64>, &Bound<'py, PyAny>),
) -> PyResult<Bound<'py, PyAny>> {
    let (py, mut len) = (keys.py(), 0);
    for key in keys.try_iter()? {
        let key = key?;
        if map.has_numbers() && instead.is_none() {
            return Err(absent_key(&key));
        }
        len += 1;
    }
    if !map.has_numbers() {
        return list(py, len, |_| Ok(default.clone()));
    }
    array_of_values(map, py, &collected((0..len).map(|_| instead.unwrap_or(0)))?)
}

/// Entries that are to be inserted. Their values own references until they are placed.
struct Batch<'py> {
    kind: Kind,
    keys: Keys,
    shape: Option<Shape>,
    words: Vec<u64>,
    fresh: Vec<Fresh<'py>>,
}

/// Keys, and as many values.
type Columns<'py> = (Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>);

/// Splits pairs into keys and values.
fn unzipped<'py>(pairs: &Bound<'py, PyAny>) -> PyResult<Columns<'py>> {
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    let iterator = pairs.try_iter().map_err(|error| match pairs.get_type().name() {
        Ok(found) if error.is_instance_of::<PyTypeError>(pairs.py()) => PyTypeError::new_err(
            format!("entries come from a mapping or an iterable of pairs, not {found}"),
        ),
        _ => error,
    })?;
    for pair in iterator {
        let pair = pair?;
        if let Ok(pair) = pair.cast_exact::<PyTuple>()
            && pair.len() == 2
        {
            push(&mut keys, pair.get_item(0)?)?;
            push(&mut values, pair.get_item(1)?)?;
            continue;
        }
        let parts = objects(&pair)?;
        let [key, value] = <[_; 2]>::try_from(parts).map_err(|parts| {
            let message =
                format!("an entry is a pair of a key and a value, not {} parts", parts.len());
            PyValueError::new_err(message)
        })?;
        push(&mut keys, key)?;
        push(&mut values, value)?;
    }
    Ok((keys, values))
}

/// Keys and values of a mapping, in its order.
fn of_mapping<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Columns<'py>> {
    if let Ok(dict) = mapping.cast_exact::<PyDict>() {
        let (mut keys, mut values) = (room(dict.len())?, room(dict.len())?);
        for (key, value) in dict {
            push(&mut keys, key)?;
            push(&mut values, value)?;
        }
        return Ok((keys, values));
    }
    if mapping.hasattr("items")? {
        return unzipped(&mapping.call_method0("items")?);
    }
    let keys = objects(&mapping.call_method0("keys")?)?;
    let mut values = room(keys.len())?;
    for key in &keys {
        values.push(mapping.get_item(key)?);
    }
    Ok((keys, values))
}

/// Reads keys and their kind.
fn keys_of(map: &Base, objects: &[Bound<'_, PyAny>]) -> Result<(Kind, Keys, Shape), Unfit> {
    let (kind, shape) = match (map.core(), objects.first()) {
        (Some(core), _) => (core.kind, Some(&core.shape)),
        (None, Some(first)) => (keys::kind_of(first)?, None),
        (None, None) => (Kind::Int, None),
    };
    let (keys, shape) = keys::read_all(kind, shape, objects)?;
    Ok((kind, keys, shape))
}

/// Reads all keys and values before the first write.
fn batch<'py>(
    map: &Base,
    keys: &Bound<'py, PyAny>,
    values: Option<&Bound<'py, PyAny>>,
) -> PyResult<Batch<'py>> {
    let (keys, values) = if let Some(values) = values {
        (Source::Given(keys), Source::Given(values))
    } else {
        let is_mapping = keys.hasattr("keys")?;
        let (keys, values) = if is_mapping { of_mapping(keys)? } else { unzipped(keys)? };
        (Source::Listed(keys), Source::Listed(values))
    };
    let known = map.core().map(|core| core.kind);
    let in_buffer = match (&keys, known) {
        (Source::Given(keys), Some(kind)) => keys_in_buffer(kind, keys)?.map(|keys| (kind, keys)),
        (Source::Given(keys), None) => keys_of_new(keys)?,
        _ => None,
    };
    let (kind, keys, shape) = if let Some((kind, keys)) = in_buffer {
        (kind, keys, None)
    } else {
        let (kind, keys, shape) = keys_of(map, &keys.listed()?)?;
        (kind, keys, Some(shape))
    };
    let (words, fresh) = words_of(map, values)?;
    if keys.len() != words.len() {
        return Err(PyValueError::new_err(format!(
            "{} keys have {} values: there must be one value for each key",
            keys.len(),
            words.len()
        )));
    }
    Ok(Batch { kind, keys, shape, words, fresh })
}

/// Keys for a map that has none, if the object is a buffer of numbers.
fn keys_of_new(object: &Bound<'_, PyAny>) -> Result<Option<(Kind, Keys)>, Unfit> {
    for kind in [Kind::Int, Kind::Float] {
        if let Some(keys) = keys_in_buffer(kind, object)? {
            return Ok(Some((kind, keys)));
        }
    }
    Ok(None)
}

/// An argument, or the objects that came out of one.
enum Source<'a, 'py> {
    Given(&'a Bound<'py, PyAny>),
    Listed(Vec<Bound<'py, PyAny>>),
}

impl<'py> Source<'_, 'py> {
    fn listed(self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match self {
            Self::Given(iterable) => objects(iterable),
            Self::Listed(objects) => Ok(objects),
        }
    }
}

/// The words of values, and the references that they own if they are objects.
fn words_of<'py>(map: &Base, values: Source<'_, 'py>) -> PyResult<(Vec<u64>, Vec<Fresh<'py>>)> {
    if let Source::Given(values) = &values {
        let words =
            match map.values {
                Values::Objects => None,
                Values::Ints => buffer::<i64>(values)?
                    .map(|ints| collected(ints.into_iter().map(|int| int as u64))),
                Values::Floats => buffer::<f64>(values)?
                    .map(|floats| collected(floats.into_iter().map(f64::to_bits))),
            };
        if let Some(words) = words {
            return Ok((words?, Vec::new()));
        }
    }
    let values = values.listed()?;
    let mut fresh = room(values.len())?;
    for value in &values {
        fresh.push(map.values.word(value)?);
    }
    Ok((collected(fresh.iter().map(Fresh::word))?, fresh))
}

/// Refuses keys that a core does not take. Other threads may have changed the map since the keys
/// were read.
fn fits(core: &Core, batch: &Batch<'_>) -> PyResult<()> {
    if core.kind != batch.kind {
        let message = "another thread gave the map keys of another type during the call";
        return Err(PyRuntimeError::new_err(message));
    }
    Store::check_lengths(&batch.keys, core.longest).map_err(refused)?;
    if let Some(shape) = &batch.shape {
        locked(&core.shape).agrees(shape).map_err(Unfit::Position)?;
    }
    Ok(())
}

/// Inserts many entries. Returns their number.
pub(super) fn insert_many(
    map: &Base,
    keys: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
) -> PyResult<usize> {
    let py = keys.py();
    let none = |error: PyErr| with_inserted(py, error, 0);
    let batch = batch(map, keys, values).map_err(none)?;
    let count = batch.words.len();
    if count == 0 {
        return Ok(0);
    }
    let mark = map.ledger.mark(py);
    let draft = map.draft(batch.kind).map_err(none)?;
    fits(&draft, &batch).map_err(none)?;
    let Batch { keys, words, fresh, shape, .. } = batch;
    let objects = !map.has_numbers();
    let mut old = room(if objects { count } else { 0 }).map_err(none)?;
    // If the first entry is refused, nothing decides the types of the keys.
    let first = draft.store.upsert(keys.get(0), words[0]).map_err(|error| none(refused(error)))?;
    old.extend(first.filter(|_| objects));
    let core = draft.published(map);
    if let Some(shape) = shape {
        let merged = locked(&core.shape).merge(&shape);
        debug_assert!(merged.is_ok(), "the shapes agreed, and the GIL has been held since then");
    }
    let mut write = || {
        if objects {
            core.store.insert_many(&keys, &words, 1, |word| old.push(word))
        } else {
            core.store.extend(&keys, &words, 1)
        }
    };
    // The references that the words own are the index's for entries that it takes.
    let outcome = if count > ATTACHED { py.detach(write) } else { write() };
    let done = outcome.map_or_else(|(done, _)| done, |()| count);
    let mut fresh = fresh.into_iter();
    fresh.by_ref().take(done).for_each(Fresh::placed);
    for word in old {
        // SAFETY: O1: the store returned the word to this call as replaced.
        unsafe { map.release(py, word) };
    }
    drop(mark);
    drop(fresh);
    let failed = |(done, error)| with_inserted(py, refused(error), done);
    outcome.map(|()| count).map_err(failed)
}

/// The entries between two bounds.
fn gathered(py: Python<'_>, core: &Core, bounds: Bounds) -> PyResult<Entries> {
    let mut entries = Entries::empty(core.store.are_words());
    core.store.scan(&bounds, false, ATTACHED, &mut entries).map_err(no_memory)?;
    if entries.words.len() < ATTACHED {
        return Ok(entries);
    }
    let (mut from, to) = bounds;
    py.detach(|| {
        loop {
            let before = entries.words.len();
            if let Some(last) = entries.keys.last() {
                from = Edge::Excluded(last);
            }
            let bounds = (from.clone(), to.clone());
            core.store.scan(&bounds, false, UNDER_A_PIN, &mut entries)?;
            if entries.words.len() - before < UNDER_A_PIN {
                return Ok(entries);
            }
        }
    })
    .map_err(no_memory)
}

static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A new array of these numbers.
fn array<'py, T: Element>(py: Python<'py>, numbers: &[T], of: &str) -> PyResult<Bound<'py, PyAny>> {
    let empty = EMPTY.get_or_try_init(py, || {
        let numpy = py.import("numpy").map_err(|error| {
            let message = "arrays need NumPy, which is not installed: pip install numpy";
            let clearer = UnsupportedError::new_err(message);
            clearer.set_cause(py, Some(error));
            clearer
        })?;
        Ok::<_, PyErr>(numpy.getattr("empty")?.unbind())
    })?;
    let array = empty.bind(py).call1((numbers.len(), of))?;
    if !numbers.is_empty() {
        PyBuffer::<T>::get(&array)?.copy_from_slice(py, numbers)?;
    }
    Ok(array)
}

fn array_of_keys<'py>(py: Python<'py>, kind: Kind, keys: &Keys) -> PyResult<Bound<'py, PyAny>> {
    let none = Vec::new();
    let words = if let Keys::Words(words) = keys { words } else { &none };
    if kind == Kind::Float {
        let floats: Vec<f64> = collected(words.iter().map(|word| word_to_float(*word)))?;
        return array(py, &floats, "float64");
    }
    let ints: Vec<i64> = collected(words.iter().map(|word| word_to_int(*word)))?;
    array(py, &ints, "int64")
}

fn array_of_values<'py>(map: &Base, py: Python<'py>, words: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    if map.values == Values::Floats {
        let floats: Vec<f64> = collected(words.iter().map(|word| f64::from_bits(*word)))?;
        return array(py, &floats, "float64");
    }
    let ints: Vec<i64> = collected(words.iter().map(|word| *word as i64))?;
    array(py, &ints, "int64")
}

/// Refuses keys that are no numbers.
fn number_keys(core: &Core) -> PyResult<()> {
    if core.store.are_words() {
        return Ok(());
    }
    let message = "arrays of keys need keys of type int or float: iterate over the map";
    Err(UnsupportedError::new_err(message))
}

/// Refuses values that are no numbers.
fn number_values(map: &Base) -> PyResult<()> {
    if map.has_numbers() {
        return Ok(());
    }
    let message = "arrays of values need a map with `values=int` or `values=float`: iterate over \
                   `values()`";
    Err(UnsupportedError::new_err(message))
}

/// The entries between two bounds, and the type of their keys.
fn within(map: &Base, py: Python<'_>, bounds: Option<Bounds>) -> PyResult<(Kind, Entries)> {
    Ok(match (map.core(), bounds) {
        (Some(core), Some(bounds)) => (core.kind, gathered(py, core, bounds)?),
        _ => (Kind::Int, Entries::empty(true)),
    })
}

/// The keys between two bounds.
pub(super) fn keys_array<'py>(
    map: &Base,
    py: Python<'py>,
    bounds: Option<Bounds>,
) -> PyResult<Bound<'py, PyAny>> {
    map.core().map_or(Ok(()), number_keys)?;
    let (kind, entries) = within(map, py, bounds)?;
    array_of_keys(py, kind, &entries.keys)
}

/// The values of the keys between two bounds.
pub(super) fn values_array<'py>(
    map: &Base,
    py: Python<'py>,
    bounds: Option<Bounds>,
) -> PyResult<Bound<'py, PyAny>> {
    number_values(map)?;
    array_of_values(map, py, &within(map, py, bounds)?.1.words)
}

/// The keys between two bounds, and their values.
pub(super) fn arrays<'py>(
    map: &Base,
    py: Python<'py>,
    bounds: Option<Bounds>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    map.core().map_or(Ok(()), number_keys)?;
    number_values(map)?;
    let (kind, entries) = within(map, py, bounds)?;
    Ok((array_of_keys(py, kind, &entries.keys)?, array_of_values(map, py, &entries.words)?))
}
