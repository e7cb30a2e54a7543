//! The extension module `silvics._silvics`.
//!
//! * `owned.rs`: the references of a map to its values, and the rules that keep them alive.
//! * `keys.rs`, `values.rs`: Python's objects as keys and words, and back.
//! * `map.rs`: the compiled class, from which the class `Map` of the package is derived.
//! * `single.rs`: its operations on one key. `ranges.rs`: ranges and iterators. `bulk.rs`: many
//!   keys at once, and arrays. `cursor.rs`: cursors.
//! * `arguments.rs`: arguments of methods. `error.rs`: exceptions.

mod arguments;
mod bulk;
mod cursor;
mod error;
mod keys;
mod map;
mod owned;
mod ranges;
mod single;
mod values;

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// Python calls it in the child of a fork.
#[pyfunction]
fn forked() {
    owned::forked();
}

/// The compiled part of the package.
// The rules of `owned.rs` need the GIL.
#[pymodule(gil_used = true)]
fn _silvics(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let limit_error = py.get_type::<error::LimitError>();
    limit_error.setattr("inserted", 0)?; // that of a call on one key
    module.add("LimitError", limit_error)?;
    module.add("UnsupportedError", py.get_type::<error::UnsupportedError>())?;
    module.add("ABSENT", single::absent(py)?)?;
    module.add_class::<single::Absent>()?;
    // Some systems have no forks.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let hook = [("after_in_child", wrap_pyfunction!(forked, module)?)].into_py_dict(py)?;
        register.call((), Some(&hook))?;
    }
    module.add_class::<map::Base>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<ranges::Chunks>()
}
