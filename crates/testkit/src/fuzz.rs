//! What the fuzzers run: functions from any bytes to a panic or none.
//!
//! A target decodes a program from its input and compares what the code does with what it must do.
//! libFuzzer calls it through `fuzz/fuzz_targets/`, and a test of the gate
//! (`tests/fuzz_seeds.rs`) with the seeds in `fuzz/seeds/`.
//!
//! | target | decodes | refutes |
//! |---|---|---|
//! | [`index`](mod@index) | an index, a memory limit and calls of every verb | a difference from `BTreeMap`, a broken invariant, an operation that a refused allocation leaves half done |
//! | [`encodings`] | pairs of numbers | an encoding that loses order or value |
//! | [`history`] | a history file; and a few calls | a parser that panics or reads back something else; a verdict that trying every order contradicts |
//! | [`key_file`] | a file | a parser that panics, takes what it must refuse, or gives other keys |

pub mod encodings;
pub mod history;
pub mod index;
mod input;
pub mod key_file;

/// Does with its input what the module says, and panics where something is wrong.
pub type Target = fn(&[u8]);

/// Every target by its name: that of its seeds' folder and of its file in `fuzz/fuzz_targets/`.
pub const TARGETS: [(&str, Target); 4] = [
    ("index", index::run),
    ("encodings", encodings::run),
    ("key_file", key_file::run),
    ("history", history::run),
];
