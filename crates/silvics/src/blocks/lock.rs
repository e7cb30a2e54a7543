//! Locks of blocks, and updates beside them.

use super::block::BlockRef;
use super::key::BlockKey;
use super::state::Updates;
use crate::canary::{Canary, planted};
use silvics_sync::backoff::Backoff;
use silvics_sync::version::Obsolete;

impl<'g, K: BlockKey + ?Sized> BlockRef<'g, K> {
    /// Waits until the block admits updates, and counts one. Fails if the block is obsolete.
    #[inline]
    pub(super) fn begin_update(self) -> Result<Updating<'g>, Obsolete> {
        let updates = self.updates();
        let mut backoff = Backoff::new();
        while !updates.begin() {
            self.lock().read()?;
            backoff.wait();
        }
        Ok(Updating(updates))
    }

    /// Locks the block. Fails if it is obsolete.
    #[inline]
    pub(super) fn locked(self) -> Result<Locked<'g, K>, Obsolete> {
        self.lock().lock()?;
        Ok(Locked { block: self, barred: false })
    }

    /// Locks the block if no other thread has the lock.
    pub(super) fn try_locked(self) -> Option<Locked<'g, K>> {
        self.lock().try_lock().then(|| Locked { block: self, barred: false })
    }
}

/// An update in progress. Dropping it ends the update.
pub(super) struct Updating<'g>(&'g Updates);

impl Drop for Updating<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A block that the caller has locked. Dropping it unlocks the block.
pub(super) struct Locked<'g, K: BlockKey + ?Sized> {
    pub(super) block: BlockRef<'g, K>,
    barred: bool,
}

impl<K: BlockKey + ?Sized> Locked<'_, K> {
    /// Keeps updates out until the block is unlocked.
    pub(super) fn bar(&mut self) {
        if !self.barred {
            self.barred = true;
            self.block.updates().bar();
        }
    }

    /// Unlocks the block, which is no longer linked. Updates stay out.
    pub(super) fn obsolete(self) {
        if planted(Canary::BlockStaysValid) {
            return;
        }
        debug_assert!(self.barred);
        // SAFETY: `locked` has locked it, and `self` is forgotten, so it is unlocked once.
        unsafe { self.block.lock().unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl<K: BlockKey + ?Sized> Drop for Locked<'_, K> {
    #[inline]
    fn drop(&mut self) {
        if self.barred {
            self.block.updates().unbar();
        }
        // SAFETY: `locked` has locked it, and `self` goes away, so it is unlocked once.
        unsafe { self.block.lock().unlock() };
    }
}
