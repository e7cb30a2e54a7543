//! Arguments of the methods of a map.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use silvics::Pages;

/// An optional argument. Distinguishes a given `None` from a missing argument.
pub(super) struct Given<'py>(pub(super) Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// The number of bytes of a memory limit.
pub(super) fn limit(bytes: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = bytes.py();
    bytes.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(py) {
            PyValueError::new_err("`memory_limit` is a number of bytes: it is from 0 to 2**64 - 1")
        } else if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err("`memory_limit` is a number of bytes, or None")
        } else {
            error
        }
    })
}

/// The pages that an argument `pages=` names.
pub(super) fn pages(name: Option<&str>) -> PyResult<Pages> {
    match name {
        None | Some("thp") => Ok(Pages::Thp),
        Some("4k") => Ok(Pages::Small),
        Some("hugetlb") => Ok(Pages::HugeTlb),
        Some(name) => Err(PyValueError::new_err(format!(
            "no pages are called {name:?}: there are \"thp\", \"4k\" and \"hugetlb\""
        ))),
    }
}

/// An index, or an end of a slice. One that needs more than 64 bits becomes the nearest one that
/// does not, which is also outside of each map.
#[derive(Clone, Copy)]
pub(super) struct Index(pub(super) isize);

impl FromPyObject<'_, '_> for Index {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        // SAFETY: the object is valid. Without an exception to raise, the call clamps.
        let index = unsafe { ffi::PyNumber_AsSsize_t(object.as_ptr(), std::ptr::null_mut()) };
        match PyErr::take(object.py()) {
            Some(error) if index == -1 => Err(error),
            _ => Ok(Self(index)),
        }
    }
}

/// Whether a range includes its two bounds: a pair of truth values.
#[derive(Clone, Copy)]
pub(super) struct Inclusive(pub(super) bool, pub(super) bool);

impl FromPyObject<'_, '_> for Inclusive {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let parts: Vec<_> = object.try_iter()?.take(3).collect::<PyResult<_>>()?;
        match &parts[..] {
            [low, high] => Ok(Self(low.is_truthy()?, high.is_truthy()?)),
            _ => Err(PyValueError::new_err("`inclusive` is a pair of truth values")),
        }
    }
}
