//! Locks of nodes.

use super::node::Visit;
use crate::canary::{Canary, planted};
use silvics_sync::version::VersionLock;

/// A node's lock, which is given back even if an allocator panics.
pub(super) struct Locked<'g>(&'g VersionLock);

impl<'g> Locked<'g> {
    /// Nothing, if the node is obsolete.
    #[inline]
    pub(super) fn new(at: Visit<'g>) -> Option<Self> {
        let lock = &at.header().lock;
        lock.lock().ok().map(|()| Self(lock))
    }

    /// Gives it back, and marks the node as unlinked for good.
    pub(super) fn obsolete(self) {
        if planted(Canary::ReplacedNotObsolete) {
            return;
        }
        // SAFETY: locked in `new`.
        unsafe { self.0.unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: locked in `new`.
        unsafe { self.0.unlock() };
    }
}
