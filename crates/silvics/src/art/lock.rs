//! Locks of nodes.

use super::node::Visit;
use crate::canary::{Canary, planted};
use silvics_sync::version::VersionLock;

/// The lock of a node. Dropping it unlocks the node, even if an allocator panics.
pub(super) struct Locked<'g>(&'g VersionLock);

impl<'g> Locked<'g> {
    /// Locks a node. Returns nothing if the node is obsolete.
    #[inline]
    pub(super) fn new(at: Visit<'g>) -> Option<Self> {
        let lock = &at.header().lock;
        lock.lock().ok().map(|()| Self(lock))
    }

    /// Unlocks the node and marks it as unlinked for good.
    pub(super) fn obsolete(self) {
        if stays_valid() {
            return;
        }
        // SAFETY: `new` has locked it, and `self` is forgotten, so it is unlocked once.
        unsafe { self.0.unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `new` has locked it, and `self` goes away, so it is unlocked once.
        unsafe { self.0.unlock() };
    }
}

/// Whether a node that has been replaced is unlocked as if it were still linked: never, but for a
/// planted mistake.
#[inline(always)]
fn stays_valid() -> bool {
    planted(Canary::ReplacedNotObsolete)
}
