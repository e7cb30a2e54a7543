//! What a property returns when it does not hold.

use silvics::{AllocError, Violation};
use std::fmt;

/// Why a property does not hold: a sentence, with the evidence below it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(String);

/// What every property returns.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// A failure for this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// The same failure, with where it was met in front.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As it is displayed: `unwrap` prints a history as lines, not as one escaped string.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self(format!("check: {violation}"))
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        Self(format!("unexpected allocation failure: {error}"))
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
