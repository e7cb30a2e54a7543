//! The machine that a plan is made for.

use silvics_sync::htm::Rtm;

/// The facts about a machine on which a plan depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The default number of threads.
    pub cores: usize,
    /// Whether its CPU has restricted transactional memory.
    pub has_rtm: bool,
    /// Whether the plan is for a measurement on this machine. If not, it only describes one, and
    /// checks of memory and folders are left out.
    pub is_here: bool,
}

impl Site {
    /// Another machine, on which a plan was measured.
    pub fn there(cores: usize, has_rtm: bool) -> Self {
        Self { cores, has_rtm, is_here: false }
    }
}

/// This machine, with this default number of threads.
impl From<usize> for Site {
    fn from(cores: usize) -> Self {
        Self { cores, has_rtm: Rtm::detect().is_some(), is_here: true }
    }
}
