//! The fuzz targets: functions that take any bytes and panic if they find a mistake.
//!
//! A target decodes a program from its input and compares the behaviour of the code with the
//! specification. libFuzzer calls it through `fuzz/fuzz_targets/`, and a test of the gate
//! (`tests/fuzz_seeds.rs`) with the seeds in `fuzz/seeds/`.
//!
//! | target | decodes | refutes |
//! |---|---|---|
//! | [`index`](mod@index) | an index, a memory limit and calls of every verb | a difference from `BTreeMap`, a broken invariant, an operation that a failed allocation leaves half done |
//! | [`encodings`] | pairs of numbers | an encoding that loses order or value |
//! | [`history`] | a history file; and a few calls | a parser that panics or misreads its own output; a verdict that trying every order contradicts |
//! | [`key_file`] | a file | a parser that panics, accepts an invalid file, or returns wrong keys |

pub mod encodings;
pub mod history;
pub mod index;
mod input;
pub mod key_file;

/// A fuzz target. It panics if it finds a mistake.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its seeds' folder and of its file in
/// `fuzz/fuzz_targets/`.
pub const TARGETS: [(&str, Target); 4] = [
    ("index", index::run),
    ("encodings", encodings::run),
    ("key_file", key_file::run),
    ("history", history::run),
];
