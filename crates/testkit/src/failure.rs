//! The result of a property, and the reason if the property does not hold.

use silvics::{AllocError, InsertManyError, Violation};
use std::fmt;

/// The reason why a property does not hold: a sentence, with the evidence below it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    reason: String,
    /// Whether an allocation failed for lack of memory, which refutes nothing.
    exhaustion: bool,
}

/// The result of every property.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Makes a failure with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), exhaustion: false }
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

    /// Whether memory ran out. Then the property was not refuted.
    pub fn is_exhaustion(&self) -> bool {
        self.exhaustion
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
        Self { reason: format!("unexpected allocation failure: {error}"), exhaustion: true }
    }
}

impl From<InsertManyError> for Failure {
    fn from(error: InsertManyError) -> Self {
        Self { reason: format!("unexpected allocation failure: {error}"), exhaustion: true }
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
