//! art/4.3: keys on pages, as its claim has them.

use super::Keys;
use silvics::Pages;
use silvics::art::hot::Policy;
use silvics_layout::PageSize;

/// A difference below this is no change, in either direction.
pub const CHANGE: f64 = 0.05;

/// Keys on pages, as the claim has them.
#[derive(Clone, Copy)]
pub struct On {
    pub keys: Keys,
    pub pages: Pages,
    /// The size of the pages in the model.
    pub size: PageSize,
}

impl On {
    /// The name of lookups of these keys with a skew.
    pub fn name(self, exponent: f64) -> String {
        format!("{} on {}, exponent {exponent}", self.keys.name(), self.pages)
    }

    /// The policy of what is moved: by default the nodes for which moving pays; everything where
    /// the claim is that moving does not help.
    pub fn policy(self) -> Policy {
        let usual = Policy::default();
        if self.helps() { usual } else { Policy { least_gain: 0.0, ..usual } }
    }

    /// Whether the claim is that reorganization helps.
    pub fn helps(self) -> bool {
        self.keys == Keys::Sparse
    }
}
