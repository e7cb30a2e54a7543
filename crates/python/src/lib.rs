//! A sorted map for Python: the package `silvics`.
//!
//! A Python program uses the package; `docs/python.md` says how to build it. This crate has two
//! parts:
//!
//! * The first part needs Rust alone. [`key`] writes Python's keys as words or bytes that have
//!   Python's order. [`shape`] decides which types the elements of tuples have. [`store`] is a map
//!   over any structure, whose keys are those words or bytes, and whose values are words;
//!   [`entries`] has copies of its keys and entries.
//!   [`waiting`] has the words that wait for the end of bulk calls.
//! * The second part is the extension module `silvics._silvics`, with the feature `module`. It
//!   needs Python 3.11 or a later version. Its rules on references to Python objects are numbered
//!   in the docs of `module/owned.rs`.
//!
//! The rest of the package is Python: `python/silvics`.

pub mod entries;
pub mod key;
pub mod shape;
pub mod store;
pub mod waiting;

#[cfg(feature = "module")]
mod module;
