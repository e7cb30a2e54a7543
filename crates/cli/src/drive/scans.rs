//! The ways in which the scans of a run read entries.

use std::fmt;
use std::str::FromStr;

/// The calls that make up a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanBy {
    /// One call that reads entries from a key on.
    Range,
    /// A call for each entry, which asks for the successor of the key before it.
    Next,
    /// One call that reads all entries.
    Whole,
}

impl ScanBy {
    const ALL: [Self; 3] = [Self::Range, Self::Next, Self::Whole];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Next => "next",
            Self::Whole => "whole",
        }
    }
}

impl FromStr for ScanBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|by| by.name() == text);
        found.ok_or_else(|| format!("`{text}` is not a way to scan: choose range, next or whole"))
    }
}

impl fmt::Display for ScanBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
