//! art/4.3: keys on pages, as its claim has them.

use super::Keys;
use silvics::Pages;
use silvics::art::hot::Policy;
use silvics_layout::PageSize;

/// Less than this is no change, in either direction.
pub const CHANGE: f64 = 0.05;

/// Keys on pages, as the claim has them.
#[derive(Clone, Copy)]
pub struct On {
    pub keys: Keys,
    pub pages: Pages,
    /// Those of the model.
    pub size: PageSize,
}

impl On {
    /// Lookups of these keys with a skew.
    pub fn name(self, exponent: f64) -> String {
        format!("{} on {}, exponent {exponent}", self.keys.name(), self.pages)
    }

    /// What is moved: by default what pays, and where none of it does all the same.
    pub fn policy(self) -> Policy {
        let usual = Policy::default();
        if self.helps() { usual } else { Policy { least_gain: 0.0, ..usual } }
    }

    /// Whether the claim is that it helps.
    pub fn helps(self) -> bool {
        self.keys == Keys::Sparse
    }
}
