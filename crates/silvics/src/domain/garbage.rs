//! Retired objects of structures outside of this crate.

use super::retired::{Reclaim, Retired};
use super::{Domain, Guard};
use silvics_pool::Budget;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// The owner of objects that are retired: it frees them when no guard protects them any more.
///
/// # Safety
/// Any thread may call `free`, and `free` does not unwind.
pub unsafe trait Owner: Send + Sync + 'static {
    /// Frees an object.
    ///
    /// # Safety
    /// The object is of this owner, no thread can reach it any more, and it is freed once.
    unsafe fn free(&self, object: NonNull<u8>);
}

struct Owned<O>(O);

// SAFETY: the contract of `Owner`.
unsafe impl<O: Owner> Reclaim for Owned<O> {
    fn releases_whole(&self) -> bool {
        false
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(object) };
    }
}

/// The retired objects of a structure that is built on this crate. They wait in batches for each
/// thread, as the nodes of indexes do ([`domain`](super)), and are freed when no guard of the
/// domain protects them any more.
///
/// ```
/// use silvics::Domain;
/// use silvics::domain::{Garbage, Owner};
/// use std::ptr::NonNull;
/// use std::sync::{Arc, Mutex};
///
/// struct Boxes(Arc<Mutex<u32>>);
/// // SAFETY: the objects are boxes of numbers, which any thread may drop.
/// unsafe impl Owner for Boxes {
///     unsafe fn free(&self, object: NonNull<u8>) {
///         // SAFETY: the object came from a box, and is freed once.
///         drop(unsafe { Box::from_raw(object.cast::<u64>().as_ptr()) });
///         *self.0.lock().unwrap() += 1;
///     }
/// }
///
/// let (domain, freed) = (Domain::new(), Arc::new(Mutex::new(0)));
/// let budget = Arc::new(silvics::Budget::new(None));
/// let garbage = Garbage::new(Boxes(Arc::clone(&freed)), domain.clone(), &budget);
/// let object = NonNull::from(Box::leak(Box::new(5_u64)));
/// // SAFETY: no thread can reach the box any more.
/// unsafe { garbage.retire(object.cast(), 8, &domain.pin()) };
/// garbage.flush();
/// assert_eq!(*freed.lock().unwrap(), 1);
/// ```
pub struct Garbage<O: Owner> {
    retired: Retired<Owned<O>>,
}

impl<O: Owner> fmt::Debug for Garbage<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Garbage").finish_non_exhaustive()
    }
}

impl<O: Owner> Garbage<O> {
    /// Makes the garbage of an owner. The memory of the batches counts against `budget`.
    pub fn new(owner: O, domain: Domain, budget: &Arc<Budget>) -> Self {
        Self { retired: Retired::new(Arc::new(Owned(owner)), domain, budget) }
    }

    /// The owner of the objects.
    pub fn owner(&self) -> &O {
        &self.retired.owner().0
    }

    /// Retires an object of `bytes` bytes: it is freed when no guard protects it any more.
    ///
    /// # Safety
    /// The object is of the owner. It is unlinked for threads that pin the domain from now on, and
    /// is retired once. `guard` is of the garbage's domain. When the garbage is dropped, no guard
    /// protects the object any more.
    pub unsafe fn retire(&self, object: NonNull<u8>, bytes: usize, guard: &Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.retired.retire(object, bytes, guard) };
    }

    /// Frees the objects that this thread or an ended one has retired, except those that a guard
    /// still protects.
    pub fn flush(&self) {
        self.retired.flush_unpinned();
    }
}
