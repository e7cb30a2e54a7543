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
use crate::per_thread::{Account, Charge};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{null_mut, slice_from_raw_parts_mut};

/// The reason why an object was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The account did not admit its bytes.
    Account,
    /// The allocation of its memory failed.
    Allocation,
}

/// Allocates `len` elements made by `make`. Returns `None` if the allocation failed.
pub(crate) fn try_boxed<T>(len: usize, make: impl FnMut() -> T) -> Option<Box<[T]>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).ok()?;
    elements.resize_with(len, make);
    Some(elements.into_boxed_slice())
}

/// Installs `fresh` in a `place` that is null, and returns its pointer. If another thread was
/// first, drops `fresh` and returns the pointer that is there as the error.
pub(crate) fn install<T>(place: &AtomicPtr<T>, fresh: Box<[T]>) -> Result<*mut T, *mut T> {
    let len = fresh.len();
    let fresh = Box::into_raw(fresh).cast::<T>();
    let (success, failure) = (Ordering::Release, Ordering::Acquire);
    match place.compare_exchange(null_mut(), fresh, success, failure) {
        Ok(_) => Ok(fresh),
        Err(theirs) => {
            // SAFETY: `into_raw` returned it above with this length, and it was never published.
            drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(fresh, len)) });
            Err(theirs)
        }
    }
}

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
    /// The account is charged [`OnceBox::BYTES`] before anything is allocated. The owner of the
    /// `OnceBox` credits the account when it drops this. An error means that the place was still
    /// empty when the account or the allocator had refused.
    #[cold]
    pub fn get_or_make(
        &self,
        account: &impl Account,
        make: impl FnOnce() -> T,
    ) -> Result<&T, Refused> {
        match self.get() {
            Some(object) => Ok(object),
            // Another thread may have made the object with the last bytes that were left.
            None => self.make(account, make).or_else(|refused| self.get().ok_or(refused)),
        }
    }

    fn make(&self, account: &impl Account, make: impl FnOnce() -> T) -> Result<&T, Refused> {
        let charge = Charge::take(account, Self::BYTES).ok_or(Refused::Account)?;
        let mut room = Vec::new();
        room.try_reserve_exact(1).map_err(|_| Refused::Allocation)?;
        room.push(make());
        let object = install(&self.object, room.into_boxed_slice());
        if object.is_ok() {
            charge.keep();
        }
        let (Ok(object) | Err(object)) = object;
        // SAFETY: O1: installed now, or by the thread that was first.
        Ok(unsafe { &*object })
    }
}

impl<T> Drop for OnceBox<T> {
    fn drop(&mut self) {
        let object = self.object.load(Ordering::Acquire);
        if !object.is_null() {
            // SAFETY: O1; `into_raw` returned it, for a slice of one element, which has the layout
            // of the element; nobody else has the place.
            drop(unsafe { Box::from_raw(object) });
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::atomic::AtomicUsize;
    use crate::times;
    use std::sync::Barrier;

    #[test]
    fn one_object_is_made_and_the_others_are_dropped() {
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        for _ in 0..times(200) {
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

    /// An account of one object.
    struct OneOf(AtomicUsize);

    impl Account for OneOf {
        fn admit(&self, _bytes: usize) -> bool {
            let one = |left: usize| left.checked_sub(1);
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one).is_ok()
        }
        fn refund(&self, _bytes: usize) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_account_that_refuses_leaves_the_place_empty() {
        let (place, full) = (OnceBox::default(), OneOf(AtomicUsize::new(0)));
        let never = || -> i32 { unreachable!("an object that was refused") };
        assert_eq!(place.get_or_make(&full, never), Err(Refused::Account));
        assert!(place.get().is_none());
        assert_eq!(place.get_or_make(&(), || 2), Ok(&2));
        assert_eq!(place.get_or_make(&full, never), Ok(&2));
    }

    #[test]
    fn a_thread_that_is_refused_gets_the_object_of_the_one_that_was_admitted() {
        for _ in 0..times(500) {
            let (place, account) = (OnceBox::default(), OneOf(AtomicUsize::new(1)));
            let start = Barrier::new(2);
            let made = std::thread::scope(|scope| {
                let make = || {
                    start.wait();
                    place.get_or_make(&account, || 7).copied()
                };
                let threads = [scope.spawn(make), scope.spawn(make)];
                threads.map(|thread| thread.join().unwrap())
            });
            // A refusal is right only while the object is not there yet.
            assert!(made.contains(&Ok(7)), "{made:?}");
            assert_eq!(place.get_or_make(&account, || 8), Ok(&7));
            assert_eq!(account.0.load(Ordering::Relaxed), 0, "charged once");
        }
    }

    #[test]
    fn a_maker_that_panics_is_not_charged() {
        let (place, account) = (OnceBox::<i32>::default(), OneOf(AtomicUsize::new(1)));
        let panics = || std::panic::resume_unwind(Box::new(()));
        let make = || _ = place.get_or_make(&account, panics);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(make)).is_err());
        assert_eq!(account.0.load(Ordering::Relaxed), 1);
        assert_eq!(place.get_or_make(&account, || 2), Ok(&2));
    }
}
