//! All errors of the command. Each is one sentence with the flag, the value and the remedy.

use crate::flags::types::KeyType;
use crate::flags::units::Bytes;
use silvics::AllocError;
use silvics_workload::keyfile::KeyFileError;
use silvics_workload::trace::TraceError;
use silvics_workload::{Dist, Mix};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The reason why the command failed.
#[derive(Debug)]
pub enum Error {
    /// A flag has a wrong value. The problem continues the sentence that the flag's name begins.
    Value { flag: &'static str, problem: String },
    /// Two flags that exclude each other.
    Conflict { flag: &'static str, other: &'static str, remedy: &'static str },
    /// A key file that cannot be used.
    KeyFile { path: PathBuf, error: KeyFileError },
    /// A trace that cannot be used.
    Trace { path: PathBuf, error: TraceError },
    /// A key file that is not in ascending order, for a distribution that needs the order.
    Unsorted {
        path: PathBuf,
        dist: Dist,
        /// The number, from 1, of the first key that is less than the one before it.
        at: usize,
    },
    /// A key that is not UTF-8, for `--key-type string`.
    Binary {
        /// The number, from 1, of the first such key.
        at: usize,
    },
    /// An index that does not take the type of keys.
    KeyType { index: String, key_type: KeyType },
    /// An index whose values are words, with another `--value-type`.
    ValueType { index: String },
    /// An index that cannot scan, in a mix with scans.
    NoScans { index: String, key_type: KeyType, mix: Mix },
    /// An index without upserts, or without any that say whether the key was absent, in a mix with
    /// upserts, or with upserts and removals.
    NoUpserts { index: String, mix: Mix },
    /// An index that takes lookups only, and a mix with writes.
    LookupsOnly { index: String, mix: Mix },
    /// A key that is too long for an index.
    KeyTooLong { index: String, bytes: usize, line: Option<usize>, limit: usize },
    /// Nothing is left to run.
    Nothing { indexes: String, why: &'static str },
    /// The memory limit does not hold the keys.
    MemoryLimit {
        index: String,
        limit: usize,
        done: usize,
        keys: usize,
        /// Whether it happened during the load rather than by later inserts.
        loading: bool,
    },
    /// An allocation failed for another reason.
    Alloc { index: String, error: AllocError },
    /// An allocation failed while histories were recorded.
    Exhausted { index: String, problem: String },
    /// An index gave a wrong answer.
    Wrong { index: String, what: String },
    /// The user interrupted a command that has no partial result.
    Interrupted,
    /// A thread that drove an index panicked.
    Panicked { index: String },
    /// The result could not be written.
    Output(io::Error),
    /// A file that cannot be read or written.
    File { flag: &'static str, path: PathBuf, problem: String },
}

impl Error {
    /// The error for a wrong value of a flag.
    pub fn value(flag: &'static str, problem: impl fmt::Display) -> Self {
        let problem = problem.to_string();
        Self::Value { flag, problem }
    }

    /// The exit code: 2 for wrong input, 1 for failures that the caller did not cause.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Wrong { .. } | Self::Panicked { .. } | Self::Output(_) => ExitCode::from(1),
            Self::Interrupted => ExitCode::from(crate::interrupt::EXIT_CODE),
            _ => ExitCode::from(2),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { flag, problem } => write!(f, "{flag}: {problem}"),
            Self::Conflict { flag, other, remedy } => {
                write!(f, "{flag} and {other} exclude each other: {remedy}")
            }
            Self::KeyFile { path, error } => write!(f, "--key-file: `{}` {error}", path.display()),
            Self::Trace { path, error } => write!(f, "--trace: `{}` {error}", path.display()),
            Self::Unsorted { path, dist, at } => unsorted(f, path, *dist, *at),
            Self::Binary { at } => write!(
                f,
                "--key-type string: key {at} is not valid UTF-8: choose --key-type bytes, or other keys"
            ),
            Self::KeyType { index, key_type } => write!(
                f,
                "--index: `{index}` takes no {key_type} keys: leave it out, or choose another \
                 --key-type"
            ),
            Self::ValueType { index } => write!(
                f,
                "--index: `{index}` stores 8-byte values only: leave it out, or choose --value-type u64"
            ),
            Self::NoScans { index, key_type, mix } => write!(
                f,
                "--index: `{index}` cannot scan {} keys, but --mix {mix} has scans: leave one of them \
                 out",
                key_type.name()
            ),
            Self::NoUpserts { index, mix } => no_upserts(f, index, *mix),
            Self::LookupsOnly { index, mix } => write!(
                f,
                "--index: `{index}` only looks keys up, but --mix {mix} has writes: leave one of them \
                 out"
            ),
            Self::KeyTooLong { index, bytes, line, limit } => {
                key_too_long(f, index, *bytes, *line, *limit)
            }
            Self::Nothing { indexes, why } => {
                write!(f, "--index: no index of `{indexes}` {why}: name another index")
            }
            Self::MemoryLimit { index, limit, done, keys, loading } => {
                memory_limit(f, index, *limit, *done, *keys, *loading)
            }
            Self::Alloc { index, error } => {
                write!(f, "--index: `{index}` could not allocate memory: {error}")
            }
            Self::Exhausted { index, problem } => write!(
                f,
                "--index: `{index}` could not go on ({problem}): record fewer threads or free memory"
            ),
            Self::Wrong { index, what } => write!(
                f,
                "`{index}` gave a wrong answer ({what}): its figures mean nothing, report the error \
                 to its authors and leave it out"
            ),
            Self::Interrupted => f.write_str("interrupted before there was a result"),
            Self::Panicked { index } => write!(
                f,
                "`{index}` panicked: report the message above to its authors and leave it out"
            ),
            Self::File { flag, path, problem } => {
                write!(f, "{flag}: `{}` {problem}", path.display())
            }
            Self::Output(error) => write!(
                f,
                "the result could not be written to standard output ({error}): redirect \
                 it to a file that can be written"
            ),
        }
    }
}

fn no_upserts(f: &mut fmt::Formatter<'_>, index: &str, mix: Mix) -> fmt::Result {
    write!(
        f,
        "--index: `{index}` has no upserts, or none beside removals, but --mix {mix} has: leave one \
         of them out"
    )
}

fn unsorted(f: &mut fmt::Formatter<'_>, path: &Path, dist: Dist, at: usize) -> fmt::Result {
    write!(
        f,
        "--key-file: key {at} of `{}` is less than the one before it, but --dist {dist} takes the \
         keys in ascending order: sort the file (lines with `LC_ALL=C sort`), or choose another \
         --dist",
        path.display()
    )
}

fn key_too_long(
    f: &mut fmt::Formatter<'_>,
    index: &str,
    bytes: usize,
    line: Option<usize>,
    limit: usize,
) -> fmt::Result {
    let key = match line {
        Some(line) => format!("line {line} of the key file"),
        None => "the longest key".into(),
    };
    write!(
        f,
        "--index: `{index}` takes keys of at most {limit} bytes, but {key} has {bytes}: leave out \
         the index or the key"
    )
}

fn memory_limit(
    f: &mut fmt::Formatter<'_>,
    index: &str,
    limit: usize,
    done: usize,
    keys: usize,
    loading: bool,
) -> fmt::Result {
    let limit_text = Bytes(limit);
    if !loading {
        return write!(
            f,
            "--memory-limit {limit_text}: `{index}` held the {keys} loaded keys but ran out of \
             memory while keys were inserted and removed: raise the limit, or lower --keys"
        );
    }
    write!(
        f,
        "--memory-limit {limit_text}: `{index}` held {done} of {keys} keys when the limit was \
         reached: "
    )?;
    match limit.checked_mul(keys).and_then(|total| total.checked_div(done)) {
        // A quarter more than the proportion, in whole MiB.
        Some(needed) => {
            let needed = (needed + needed / 4).next_multiple_of(1 << 20);
            write!(f, "raise it to about {}, or lower --keys", Bytes(needed))
        }
        None => write!(f, "raise it, or lower --keys"),
    }
}

impl std::error::Error for Error {}
