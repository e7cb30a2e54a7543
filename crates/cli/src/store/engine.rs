//! Databases as the benchmarks measure them.

use silvics_store::Error;

/// A wrong answer of an engine.
pub type Wrong = String;

/// The reason why an engine cannot go on.
#[derive(Debug)]
pub enum Stop {
    /// It gave a wrong answer.
    Wrong(Wrong),
    /// It refused a call.
    Refused(String),
    /// Its log has failed. The first part is the flag that names the folder of the log.
    Log(&'static str, String),
}

impl Stop {
    /// The error of a store, whose log is in the folder that the flag names.
    pub fn of(error: &Error, log: &'static str) -> Self {
        match error {
            Error::ReadOnly { why } | Error::Unacknowledged { why } => {
                Self::Log(log, format!("its log has failed: {why}"))
            }
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// The facts about an engine that a report needs.
pub trait Measured: Send + Sync {
    /// The memory of each part.
    fn memory(&self) -> Vec<Memory>;

    /// The aborted attempts so far, by reason.
    fn aborts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether it measures the time that its indexes take.
    fn times_index(&self) -> bool {
        false
    }
}

/// The memory of a table or index.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Memory {
    pub part: String,
    pub structure: String,
    pub entries: u64,
    /// `None` if the part cannot tell.
    pub bytes: Option<u64>,
    /// Whether it is an index: tables and indexes have columns of their own.
    pub is_index: bool,
}

impl Memory {
    /// The parts of a table of the store, each with `prefix` in front of its name.
    pub fn of(parts: Vec<silvics_store::MemoryUse>, prefix: &str) -> Vec<Self> {
        let of = |(at, part): (usize, silvics_store::MemoryUse)| Self {
            is_index: at > 0,
            part: format!("{prefix}{}", part.name),
            structure: part.structure,
            entries: part.entries as u64,
            bytes: part.bytes.map(|bytes| bytes as u64),
        };
        parts.into_iter().enumerate().map(of).collect()
    }
}
