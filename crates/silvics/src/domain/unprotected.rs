//! A guard that pins nothing.
//!
//! *Checked by* `tests/unprotected.rs`: children of `fork` while a deferred call waits for a lock;
//! and `tests/schedules/unprotected.rs`: scans beside readers that free, and beside a writer, which
//! the model must find.

use super::{Adopted, Domain, Guard};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A guard that pins nothing, made by [`Domain::unprotected`].
pub struct Unprotected(ManuallyDrop<Guard>);

impl Domain {
    /// Returns a guard that pins nothing, for reads of indexes that no thread writes to. This call
    /// and the drop of the guard take no lock, allocate nothing, and free no retired objects.
    ///
    /// A child of `fork` needs it. Such a child has one thread. Other threads of its parent may
    /// have held locks at that moment: of an allocator, or of the program, in a deferred call.
    /// Nobody releases these locks in the child. A pin may free retired objects and run deferred
    /// calls, and so may wait forever for such a lock.
    ///
    /// # Safety
    /// Until the last use of the guard, and of each word and key that was read under it:
    /// * the guard is used only for lookups and scans of [`BlockTree`](crate::BlockTree)s of this
    ///   domain, which write nothing and so retire nothing, and not for [`Guard::defer`];
    /// * no thread inserts, removes or changes an entry of these trees, or calls their
    ///   [`OrderedIndex::shrink`](crate::OrderedIndex::shrink);
    /// * in a child of `fork`, no thread was in such a call when the process was forked.
    ///
    /// Other threads may read the trees, and objects that were retired before may be freed.
    ///
    /// ```
    /// use silvics::{BlockTree, Lookup, Options, OrderedIndex, OrderedScan};
    ///
    /// let tree: BlockTree<[u8]> = BlockTree::with_options(&Options::default())?;
    /// tree.pin().insert(b"b", 2)?;
    /// tree.pin().insert(b"a", 1)?;
    /// // SAFETY: only this thread has the tree, and it does not write to it below.
    /// let guard = unsafe { tree.domain().unprotected() };
    /// assert!(tree.range(.., &guard).eq([(&b"a"[..], 1), (b"b", 2)]));
    /// # Ok::<(), silvics::AllocError>(())
    /// ```
    pub unsafe fn unprotected(&self) -> Unprotected {
        #[cfg(not(silvics_shuttle))]
        // SAFETY: the copy is never dropped, so it never unpins. The caller keeps all objects that
        // are read linked, as `crossbeam_epoch::unprotected` demands.
        let inner = unsafe { std::ptr::read(crossbeam_epoch::unprotected()) };
        #[cfg(silvics_shuttle)]
        let inner = self.inner.collector.unprotected();
        let serial = self.inner.identity.serial;
        Unprotected(ManuallyDrop::new(Guard { inner, serial, adopted: Adopted::default() }))
    }
}

impl Deref for Unprotected {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.0
    }
}

impl fmt::Debug for Unprotected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unprotected(domain {})", self.0.serial)
    }
}

impl Drop for Unprotected {
    fn drop(&mut self) {
        self.0.adopted.clear();
        // The guard of the model owns a reference to its collector.
        #[cfg(silvics_shuttle)]
        // SAFETY: the guard is dropped once.
        unsafe {
            ManuallyDrop::drop(&mut self.0);
        }
    }
}
