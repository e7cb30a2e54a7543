//! A pointer to an object that is made when it is first needed.
//!
//! # Invariants
//! * O1: a pointer that is not null leads to an initialised object, which stays until the `OnceBox`
//!   is dropped.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `object` | `get` load | Acquire | the CAS that installs it | a thread that sees the object sees it initialised |
//! | `object` | install CAS | Release / Acquire | `get` | publishes the object; the loser uses the winner's |

use crate::atomic::{AtomicPtr, Ordering};
use crate::per_thread::Account;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// A place for one `T`, which is made at most once and takes one word before.
pub struct OnceBox<T> {
    object: AtomicPtr<T>,
    owned: PhantomData<Box<T>>,
}

// SAFETY: the place owns its object.
unsafe impl<T: Send> Send for OnceBox<T> {}
// SAFETY: threads share references to the object, and any of them may install one.
unsafe impl<T: Send + Sync> Sync for OnceBox<T> {}

impl<T> Default for OnceBox<T> {
    fn default() -> Self {
        Self { object: AtomicPtr::new(null_mut()), owned: PhantomData }
    }
}

impl<T> From<T> for OnceBox<T> {
    /// A place with an object from the start.
    fn from(object: T) -> Self {
        Self { object: AtomicPtr::new(Box::into_raw(Box::new(object))), owned: PhantomData }
    }
}

impl<T> fmt::Debug for OnceBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnceBox({})", if self.get().is_some() { "made" } else { "empty" })
    }
}

impl<T> OnceBox<T> {
    /// The bytes that an object takes.
    pub const BYTES: usize = size_of::<T>();

    /// The object, if it has been made.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: O1.
        unsafe { self.object.load(Ordering::Acquire).as_ref() }
    }

    /// The object, if it has been made.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: O1; the borrow is exclusive.
        unsafe { self.object.load(Ordering::Acquire).as_mut() }
    }

    /// The object, made by `make` unless there is one. Another thread may be first, and then the
    /// new object is dropped.
    ///
    /// The account is charged [`OnceBox::BYTES`]. Returns `None` if it refuses them, or if their
    /// allocation failed. The owner of the `OnceBox` credits the account when it drops this.
    #[cold]
    pub fn get_or_make(&self, account: &impl Account, make: impl FnOnce() -> T) -> Option<&T> {
        if let Some(object) = self.get() {
            return Some(object);
        }
        let mut room = Vec::new();
        if room.try_reserve_exact(1).is_err() {
            return None;
        }
        room.push(make()); // before the account is charged: it may panic
        if !account.admit(Self::BYTES) {
            return None;
        }
        // A slice of one element has the layout of the element.
        let fresh = Box::into_raw(room.into_boxed_slice()).cast::<T>();
        let (success, failure) = (Ordering::Release, Ordering::Acquire);
        match self.object.compare_exchange(null_mut(), fresh, success, failure) {
            // SAFETY: O1: made above.
            Ok(_) => Some(unsafe { &*fresh }),
            Err(theirs) => {
                // SAFETY: `into_raw` returned it above, and it was never published.
                drop(unsafe { Box::from_raw(fresh) });
                account.refund(Self::BYTES);
                // SAFETY: O1.
                Some(unsafe { &*theirs })
            }
        }
    }
}

impl<T> Drop for OnceBox<T> {
    fn drop(&mut self) {
        let object = self.object.load(Ordering::Acquire);
        if !object.is_null() {
            // SAFETY: O1; `into_raw` returned it, and nobody else has the place.
            drop(unsafe { Box::from_raw(object) });
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::atomic::AtomicUsize;
    use std::sync::Barrier;

    #[test]
    fn one_object_is_made_and_the_others_are_dropped() {
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        for _ in 0..200 {
            let (made, dropped) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let place = OnceBox::default();
            let start = Barrier::new(3);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        start.wait();
                        let make = || {
                            made.fetch_add(1, Ordering::Relaxed);
                            Counted(&dropped)
                        };
                        let object = place.get_or_make(&(), make).unwrap();
                        assert!(std::ptr::eq(object, place.get().unwrap()));
                    });
                }
            });
            let (made, gone) = (made.into_inner(), dropped.load(Ordering::Relaxed));
            assert_eq!(made, gone + 1);
            drop(place);
            assert_eq!(dropped.load(Ordering::Relaxed), made);
        }
    }

    #[test]
    fn an_account_that_refuses_leaves_the_place_empty() {
        struct Refuses;
        impl Account for Refuses {
            fn admit(&self, _bytes: usize) -> bool {
                false
            }
            fn refund(&self, _bytes: usize) {}
        }
        let place = OnceBox::default();
        assert!(place.get_or_make(&Refuses, || 1).is_none() && place.get().is_none());
        assert_eq!(place.get_or_make(&(), || 2), Some(&2));
        assert_eq!(place.get_or_make(&Refuses, || 3), Some(&2));
    }
}
