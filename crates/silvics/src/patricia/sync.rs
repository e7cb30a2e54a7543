//! The synchronisation of a trie: the lock in each node, and how a section comes to a node.
//!
//! A *section* is a walk from the top of the trie. It enters each node before it leaves the node
//! above, so what it has read of a path was true at one moment. Two modes do this:
//!
//! * [`Coupled`]: entering locks the node, leaving unlocks it. That is hand-over-hand locking, the
//!   paper's slow path. A thread that waits for a lock owns only locks above it (or, with their
//!   parent, beside it), so threads cannot wait for one another in a circle.
//! * [`Optimistic`]: entering reads the node's version, leaving validates it. It writes nothing and
//!   waits for no lock: a section that meets a lock or a change *aborts*, and starts again. To
//!   write, it takes the locks at the versions that it has read ([`Held::own`]): so the thread
//!   stands at the end of the path with the locks that hand-over-hand locking would have taken it
//!   to. This is the paper's lock teleportation, validated in software.

use super::retry::Abort;
use crate::canary::{Canary, planted};
use silvics_sync::backoff::Backoff;
use silvics_sync::lock::RawLock;
use silvics_sync::version::{Version, VersionLock};
use std::mem::ManuallyDrop;

/// The lock of a node.
pub trait NodeLock: Default + Send + Sync + 'static {
    /// The version that an optimistic section reads. A lock without versions has none.
    #[doc(hidden)]
    type Version: Copy;

    /// Waits until the caller owns the lock.
    #[doc(hidden)]
    fn lock(&self) -> Result<(), Abort>;
    /// Whether no thread has owned the lock since the version was read.
    #[doc(hidden)]
    fn validate(&self, version: Self::Version) -> bool;
    /// Takes the lock if no thread has owned it since the version was read.
    #[doc(hidden)]
    fn upgrade(&self, version: Self::Version) -> bool;
    /// Releases the lock.
    ///
    /// # Safety
    /// The caller owns the lock.
    #[doc(hidden)]
    unsafe fn unlock(&self);
    /// Releases the lock of a node that was unlinked for good.
    ///
    /// # Safety
    /// The caller owns the lock.
    #[doc(hidden)]
    unsafe fn unlock_obsolete(&self);
}

/// A lock without versions.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Plain<L>(L);

/// The version of a lock that has none.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl<L: RawLock + 'static> NodeLock for Plain<L> {
    type Version = Never;

    #[inline(always)]
    fn lock(&self) -> Result<(), Abort> {
        self.0.lock();
        Ok(())
    }
    #[inline(always)]
    fn validate(&self, version: Never) -> bool {
        match version {}
    }
    #[inline(always)]
    fn upgrade(&self, version: Never) -> bool {
        match version {}
    }
    #[inline(always)]
    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock() };
    }
    #[inline(always)]
    unsafe fn unlock_obsolete(&self) {
        // SAFETY: the caller's promise. No thread waits for the lock: it would own the lock of the
        // node above, and that one was owned by the thread that has unlinked the node (I3).
        unsafe { self.0.unlock() };
    }
}

impl NodeLock for VersionLock {
    type Version = Version;

    #[inline(always)]
    fn lock(&self) -> Result<(), Abort> {
        VersionLock::lock(self).map_err(|_| Abort::Changed)
    }
    #[inline(always)]
    fn validate(&self, version: Version) -> bool {
        VersionLock::validate(self, version)
    }
    #[inline(always)]
    fn upgrade(&self, version: Version) -> bool {
        VersionLock::upgrade(self, version).is_ok()
    }
    #[inline(always)]
    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { VersionLock::unlock(self) };
    }
    #[inline(always)]
    unsafe fn unlock_obsolete(&self) {
        // SAFETY: the caller's promise.
        unsafe { VersionLock::unlock_obsolete(self) };
    }
}

/// The right to read what a lock protects: the lock itself, or a version of it. Dropping it
/// releases the lock if the section owns it.
#[derive(Debug)]
pub(super) struct Held<'g, L: NodeLock> {
    lock: &'g L,
    /// The version that was read; `None` if the section owns the lock.
    version: Option<L::Version>,
}

impl<L: NodeLock> Held<'_, L> {
    /// Fails unless all that was read under it was there at one moment, and is still there.
    #[inline(always)]
    pub(super) fn validate(&self) -> Result<(), Abort> {
        match self.version {
            Some(version) if !self.lock.validate(version) => Err(Abort::Changed),
            _ => Ok(()),
        }
    }

    /// Takes the lock, unless what was read under it has changed.
    #[inline(always)]
    pub(super) fn own(&mut self) -> Result<(), Abort> {
        if let Some(version) = self.version {
            if planted(Canary::TeleportNotValidated) {
                self.lock.lock()?;
            } else if !self.lock.upgrade(version) {
                return Err(Abort::Changed);
            }
            self.version = None;
        }
        Ok(())
    }

    /// Whether the section owns the lock.
    #[inline(always)]
    pub(super) fn is_owned(&self) -> bool {
        self.version.is_none()
    }

    /// Releases the owned lock of a node that was unlinked for good.
    #[inline(always)]
    pub(super) fn unlink(self) {
        debug_assert!(self.is_owned());
        let held = ManuallyDrop::new(self);
        // SAFETY: `version` is none, so the section owns the lock; it is not released again.
        unsafe { held.lock.unlock_obsolete() };
    }
}

impl<L: NodeLock> Drop for Held<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_owned() {
            // SAFETY: `version` is none, so the section owns the lock.
            unsafe { self.lock.unlock() };
        }
    }
}

/// How a section enters a node.
pub(super) trait Mode<L: NodeLock> {
    /// Enters a node. The caller holds the node above.
    fn enter(lock: &L) -> Result<Held<'_, L>, Abort>;
}

/// Sections lock each node.
#[derive(Debug)]
pub struct Coupled;

impl<L: NodeLock> Mode<L> for Coupled {
    #[inline(always)]
    fn enter(lock: &L) -> Result<Held<'_, L>, Abort> {
        lock.lock()?;
        Ok(Held { lock, version: None })
    }
}

/// Sections read the version of each node.
#[derive(Debug)]
pub struct Optimistic;

impl Mode<VersionLock> for Optimistic {
    #[inline(always)]
    fn enter(lock: &VersionLock) -> Result<Held<'_, VersionLock>, Abort> {
        match lock.try_read() {
            Ok(Some(version)) => Ok(Held { lock, version: Some(version) }),
            Ok(None) => enter_busy(lock),
            Err(_) => Err(Abort::Changed),
        }
    }
}

/// As [`Optimistic`], in a transaction: a section that meets a lock aborts at once. Waiting would
/// abort the transaction for another reason.
#[derive(Debug)]
pub struct AtOnce;

impl Mode<VersionLock> for AtOnce {
    #[inline(always)]
    fn enter(lock: &VersionLock) -> Result<Held<'_, VersionLock>, Abort> {
        match lock.try_read() {
            Ok(Some(version)) => Ok(Held { lock, version: Some(version) }),
            Ok(None) => Err(Abort::Busy),
            Err(_) => Err(Abort::Changed),
        }
    }
}

/// Waits a little for a writer, which holds a lock for some hundred nanoseconds if it runs.
#[cold]
fn enter_busy(lock: &VersionLock) -> Result<Held<'_, VersionLock>, Abort> {
    let mut backoff = Backoff::new();
    loop {
        let may_run = !backoff.yields();
        backoff.wait();
        match lock.try_read() {
            Ok(Some(version)) => return Ok(Held { lock, version: Some(version) }),
            Ok(None) if may_run => {}
            Ok(None) => return Err(Abort::Busy),
            Err(_) => return Err(Abort::Changed),
        }
    }
}
