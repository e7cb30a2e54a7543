//! The result of a property, and the reason if the property does not hold.

use silvics::{AllocError, InsertManyError, Violation};
use std::{fmt, io};

/// The reason why a property does not hold: a sentence, with the evidence below it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    reason: String,
    /// The resource that ran out, which refutes nothing.
    exhausted: Option<Resource>,
}

/// A resource of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// An allocation failed.
    Memory,
    /// A thread was not started.
    Threads,
}

/// The result of every property.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Makes a failure with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), exhausted: None }
    }

    /// Puts the place of the failure in front of its reason.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self { reason: format!("{place}: {}", self.reason), ..self }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The failure of a run for which the system did not start all threads.
    pub(crate) fn threads(started: usize, asked: usize, error: &io::Error) -> Self {
        let reason = format!("the system started {started} of {asked} threads ({error})");
        Self { reason, exhausted: Some(Resource::Threads) }
    }

    /// The resource that ran out, if one did. Then the property was not refuted.
    pub fn exhausted(&self) -> Option<Resource> {
        self.exhausted
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Prints the failure as `Display` does: `unwrap` prints a history as lines, not as one escaped
/// string.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self::new(format!("check: {violation}"))
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        let reason = format!("unexpected allocation failure: {error}");
        Self { reason, exhausted: Some(Resource::Memory) }
    }
}

impl From<InsertManyError> for Failure {
    fn from(error: InsertManyError) -> Self {
        let reason = format!("unexpected allocation failure: {error}");
        Self { reason, exhausted: Some(Resource::Memory) }
    }
}

/// Returns a [`Failure`] unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err($crate::Failure::new(format!($($reason)+)));
        }
    };
}
pub(crate) use ensure;
