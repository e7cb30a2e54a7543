//! Values as words.

use super::keys::exact;
use super::map::Base;
use super::owned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use std::mem::ManuallyDrop;

/// The type of all values of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Any objects: a word is an address that owns a reference.
    Objects,
    /// Integers of 64 bits: a word is the number.
    Ints,
    /// Floats: a word is the bits.
    Floats,
}

/// The word of a value that is not in the index. Its drop releases the reference that it owns.
pub(super) struct Fresh<'py> {
    word: u64,
    values: Values,
    py: Python<'py>,
}

impl Fresh<'_> {
    /// The word, for an insertion.
    pub(super) fn word(&self) -> u64 {
        self.word
    }

    /// The index has the word, and owns its reference (O1).
    pub(super) fn placed(self) {
        _ = ManuallyDrop::new(self);
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        // After a panic in the index it is unknown whether the index has the word. The reference
        // then leaks.
        if self.values == Values::Objects && !std::thread::panicking() {
            // SAFETY: O1: `Values::word` took this reference, and the index never had the word.
            unsafe { owned::release_now(self.py, self.word) };
        }
    }
}

/// The integer of a value.
fn int(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract::<i64>().map_err(|error| {
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            PyOverflowError::new_err("the values of this map are integers of 64 bits with sign")
        } else if error.is_instance_of::<PyTypeError>(py) {
            wrong("int", value)
        } else {
            error
        }
    })
}

/// The float of a value. An integer must be equal to a float.
fn float(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let inexact = || {
        PyTypeError::new_err("the values of this map are floats, and none is equal to this number")
    };
    let py = value.py();
    let number = value.extract::<f64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(py) {
            inexact()
        } else if error.is_instance_of::<PyTypeError>(py) {
            wrong("float", value)
        } else {
            error
        }
    })?;
    let rounded = || {
        let integer = exact(value)?;
        Ok::<_, PyErr>(integer.is_instance_of::<PyInt>() && !integer.eq(number)?)
    };
    if !value.is_exact_instance_of::<PyFloat>() && rounded()? { Err(inexact()) } else { Ok(number) }
}

fn wrong(wanted: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value.get_type();
    PyTypeError::new_err(match found.name() {
        Ok(found) => format!("the values of this map are of type {wanted}, not {found}"),
        Err(_) => format!("the values of this map are of type {wanted}"),
    })
}

impl Values {
    /// The type that an argument `values=` names.
    pub(super) fn named(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(argument) = argument else { return Ok(Self::Objects) };
        let py = argument.py();
        if argument.is(py.get_type::<PyAny>()) {
            Ok(Self::Objects)
        } else if argument.is(py.get_type::<PyInt>()) {
            Ok(Self::Ints)
        } else if argument.is(py.get_type::<PyFloat>()) {
            Ok(Self::Floats)
        } else {
            Err(PyTypeError::new_err("`values` is `object`, `int` or `float`"))
        }
    }

    /// The type as Python has it.
    pub(super) fn class(self, py: Python<'_>) -> Bound<'_, PyAny> {
        match self {
            Self::Objects => py.get_type::<PyAny>().into_any(),
            Self::Ints => py.get_type::<PyInt>().into_any(),
            Self::Floats => py.get_type::<PyFloat>().into_any(),
        }
    }

    /// The word of a value. It owns a reference if it is that of an object.
    #[inline]
    pub(super) fn word<'py>(self, value: &Bound<'py, PyAny>) -> PyResult<Fresh<'py>> {
        let word = match self {
            Self::Objects => owned::word_of(value),
            Self::Ints => int(value)? as u64,
            Self::Floats => float(value)?.to_bits(),
        };
        Ok(Fresh { word, values: self, py: value.py() })
    }

    /// The value of a word.
    ///
    /// # Safety
    /// The word is that of a value of this type, and a reference to its object exists.
    #[inline]
    pub(super) unsafe fn value(self, py: Python<'_>, word: u64) -> Bound<'_, PyAny> {
        match self {
            // SAFETY: the caller's promise.
            Self::Objects => unsafe { owned::borrowed(py, word) },
            Self::Ints => PyInt::new(py, word as i64).into_any(),
            Self::Floats => PyFloat::new(py, f64::from_bits(word)).into_any(),
        }
    }
}

impl Base {
    /// The value of a word that this call has read in the map while it held the GIL.
    ///
    /// # Safety
    /// The thread has held the GIL since it read the word, or it has a mark that is older.
    #[inline]
    pub(super) unsafe fn value<'py>(&self, py: Python<'py>, word: u64) -> Bound<'py, PyAny> {
        // SAFETY: O2, and O4 for a call with a mark: the word's reference exists.
        unsafe { self.values.value(py, word) }
    }

    /// Releases a word that this call has taken out of the map.
    ///
    /// # Safety
    /// The store returned the word to this call as removed or replaced.
    #[inline]
    pub(super) unsafe fn release(&self, py: Python<'_>, word: u64) {
        if self.values == Values::Objects {
            // SAFETY: the caller's promise.
            unsafe { self.ledger.release(py, word) };
        }
    }

    /// The value of a word that this call has taken out of the map.
    ///
    /// # Safety
    /// The store returned the word to this call as removed or replaced.
    #[inline]
    pub(super) unsafe fn taken<'py>(&self, py: Python<'py>, word: u64) -> Bound<'py, PyAny> {
        match self.values {
            // SAFETY: the caller's promise.
            Values::Objects => unsafe { self.ledger.take(py, word) },
            // SAFETY: a number has no reference.
            other => unsafe { other.value(py, word) },
        }
    }
}
