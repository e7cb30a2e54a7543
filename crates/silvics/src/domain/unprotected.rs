//! A guard that pins nothing.

use super::{Adopted, Domain, Guard};
use std::mem::ManuallyDrop;

/// A guard of a domain that pins nothing, for readers to whom no linked object can be lost.
pub(crate) struct Unprotected(ManuallyDrop<Guard>);

impl Unprotected {
    /// Makes the guard. Neither this nor dropping it takes a lock, allocates, or runs a batch.
    ///
    /// # Safety
    /// While the guard lives, no thread unlinks an object of an index that is read under it, and
    /// the reader retires none.
    pub(crate) unsafe fn new(domain: &Domain) -> Self {
        #[cfg(not(silvics_shuttle))]
        // SAFETY: the copy is never dropped, and so never unpins. The caller keeps all objects that
        // it reads linked, which is what `unprotected` demands.
        let inner = unsafe { std::ptr::read(crossbeam_epoch::unprotected()) };
        #[cfg(silvics_shuttle)]
        let inner = domain.inner.collector.unprotected();
        let serial = domain.inner.identity.serial;
        Self(ManuallyDrop::new(Guard { inner, serial, adopted: Adopted::default() }))
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0
    }
}

#[cfg(silvics_shuttle)]
impl Drop for Unprotected {
    /// The guard of the model owns a reference to its collector.
    fn drop(&mut self) {
        // SAFETY: the guard is dropped once.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
