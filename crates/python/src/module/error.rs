//! The exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use silvics::AllocError;
use silvics::dynamic::StructureError;
use std::collections::TryReserveError;

create_exception!(
    silvics,
    LimitError,
    PyMemoryError,
    "The map would exceed its memory limit. The entry is not in the map."
);
create_exception!(
    silvics,
    UnsupportedError,
    PyTypeError,
    "The structure, the type of the keys or the type of the values lacks this method."
);

/// The exception of a refused allocation.
pub(super) fn refused(error: AllocError) -> PyErr {
    match error {
        AllocError::Limit { .. } => LimitError::new_err(error.to_string()),
        AllocError::KeyLength { .. } => PyValueError::new_err(error.to_string()),
        _ => PyMemoryError::new_err(error.to_string()),
    }
}

/// The exception of an allocation that failed outside the index.
#[cold]
#[allow(clippy::needless_pass_by_value)] // for `map_err`
pub(super) fn no_memory(error: TryReserveError) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

/// The exception of a structure that a map cannot have.
pub(super) fn no_structure(error: StructureError) -> PyErr {
    match error {
        StructureError::Alloc(error) => refused(error),
        StructureError::Keys { name, known, .. } => PyValueError::new_err(format!(
            "the structure `{name}` takes keys of type int and float only: choose one of {known}"
        )),
        error => PyValueError::new_err(error.to_string()),
    }
}

/// The exception of a method that needs ranks.
pub(super) fn no_ranks() -> PyErr {
    UnsupportedError::new_err(
        "this structure does not count its keys: make the map without `structure=`",
    )
}

/// Records in an exception how many entries were inserted before it.
pub(super) fn with_inserted(py: Python<'_>, error: PyErr, inserted: usize) -> PyErr {
    // An exception without attributes is raised without the number.
    _ = error.value(py).setattr("inserted", inserted);
    error
}
