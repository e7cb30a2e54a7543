//! The references of a map to the objects that are its values.
//!
//! A map with `values=object` stores the address of each object as a word of the index. The index
//! knows nothing of references. These rules keep each object alive as long as a word leads to it.
//! *The GIL* is Python's global lock.
//!
//! # Invariants
//! * O1: **a word owns a reference.** A call takes a reference to an object before it inserts the
//!   object's word. The index returns each word to one caller as removed or replaced (clause 3 of
//!   `MapIndex`). That caller then has the reference.
//! * O2: **references change under the GIL.** A call on one key holds the GIL from the moment at
//!   which it reads a word until it has a reference of its own. Every reference that a word owned
//!   is released with the GIL held. So no word that a call on one key reads can lose its reference
//!   before the call has its own.
//! * O3: **bulk calls are counted.** A call that releases the GIL while it walks the index has a
//!   [`Mark`]: [`Ledger::mark`] adds one to `detached` before the call releases the GIL, and the
//!   mark's drop subtracts one after the call has references to all words that it read. Both happen
//!   with the GIL held, so `detached` changes only with the GIL held.
//! * O4: **releases wait for earlier bulk calls.** While `detached` is not zero, the reference of a
//!   word that was taken out goes to the list `deferred`. A mark has a number, and an entry of the
//!   list has the number of the next mark. The drop of a mark releases the entries for which no
//!   mark with a smaller number is left ([`Waiting`]).
//! * O5: **no foreign code inside.** Each call of the store returns copied words, and holds neither
//!   a pin nor a lock when it returns. Code that can run Python (the release of a reference, the
//!   creation of an object, a comparison, a conversion) runs only between calls of the store, with
//!   no lock of this module held.
//! * O6: **no wait for the GIL inside.** Code that runs without the GIL calls only the store. So a
//!   thread that has the GIL, and waits for a lock of the index, waits for no thread that needs the
//!   GIL.
//! * O7: **the collector sees what the map owns.** `__traverse__` visits the object of each word
//!   once if `detached` is zero: all writers hold the GIL then, and a word is in the index only
//!   while the map owns its reference. It visits nothing if `detached` is not zero. An object that
//!   is not visited looks referenced from outside, and is not collected. The collector visits each
//!   map several times to decide which objects are garbage, and must meet the same references each
//!   time. It holds the GIL meanwhile, so `detached` does not change, and no call on one key runs.
//!
//! # Forks
//! The child of `os.fork` has only the thread that forked. Marks of other threads would never be
//! dropped there. [`forked`] counts the forks in the child. If the count has changed, releases and
//! marks end the calls of other threads first, and `__traverse__` ignores them (O4, O7). No other
//! thread holds a lock of this module during a fork: the holder of such a lock has the GIL, and the
//! thread that forks has it then.
//!
//! # Both sides of the race
//! A bulk call D reads word `w` without the GIL, and takes its reference later. Meanwhile a call R
//! takes `w` out of the index, and wants to release its reference.
//!
//! * If R finds that D has its mark, `detached` is not zero, and R defers the release until D's
//!   mark is gone (O4). By then D has its reference (O3).
//! * Otherwise D's mark comes later, because the GIL orders both, and R's release may come before
//!   D's end. R took `w` out before it looked at the marks, and D reads the index after it has its
//!   mark. So D cannot read `w`: the index returns no word that was taken out before the read began
//!   (clause 2 of `MapIndex`).
//!
//! R can be a bulk call that writes without the GIL. It has a mark, collects the words that it
//! takes out, and releases them with the GIL while it has its mark. So they are deferred.

use crate::waiting::Waiting;
use pyo3::ffi;
use pyo3::prelude::*;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex of this module. No code that can panic runs while one is held.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bulk calls of a map that is detached from the GIL, and the references that wait for them.
pub(super) struct Ledger {
    detached: AtomicUsize,
    /// The value of [`FORKS`] in the process that has made all marks.
    forks: AtomicUsize,
    waiting: Mutex<Waiting>,
}

/// The number of forks between the first process and this one. All accesses have the GIL.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Counts a fork. The child calls it before it runs other code.
pub(super) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            detached: AtomicUsize::new(0),
            forks: AtomicUsize::new(FORKS.load(Ordering::Relaxed)),
            waiting: Mutex::default(),
        }
    }
}

/// A bulk call, from before it releases the GIL until it has references to all it has read.
pub(super) struct Mark<'m, 'py> {
    ledger: &'m Ledger,
    number: u64,
    py: Python<'py>,
}

/// The word of an object, which owns a new reference to it.
#[inline]
pub(super) fn word_of(object: &Bound<'_, PyAny>) -> u64 {
    object.clone().into_ptr().expose_provenance() as u64
}

/// The object of a word.
#[inline]
pub(super) fn object_of(word: u64) -> *mut ffi::PyObject {
    std::ptr::with_exposed_provenance_mut(word as usize)
}

/// A new reference to the object of a word.
///
/// # Safety
/// The word was made by [`word_of`], and a reference to its object exists.
#[inline]
pub(super) unsafe fn borrowed(py: Python<'_>, word: u64) -> Bound<'_, PyAny> {
    // SAFETY: the caller's promise.
    unsafe { Bound::from_borrowed_ptr(py, object_of(word)) }
}

/// Releases the reference that a word owns. This can run any code.
///
/// # Safety
/// The word was made by [`word_of`], its reference is the caller's, and no bulk call can have read
/// it without a reference of its own.
pub(super) unsafe fn release_now(_py: Python<'_>, word: u64) {
    // SAFETY: the caller's promise; the token proves that the thread has the GIL (O2).
    unsafe { ffi::Py_DECREF(object_of(word)) };
}

impl Ledger {
    /// Whether a bulk call may have words without references of its own. Runs no Python code.
    #[inline]
    pub(super) fn is_detached(&self) -> bool {
        // Relaxed: the GIL orders all accesses (O3).
        self.detached.load(Ordering::Relaxed) != 0
            && (!self.is_of_a_parent() || locked(&self.waiting).calls(false) != 0)
    }

    /// Whether this process has been forked since the last mark.
    fn is_of_a_parent(&self) -> bool {
        self.forks.load(Ordering::Relaxed) != FORKS.load(Ordering::Relaxed)
    }

    /// Ends the calls of threads that a fork has not copied into this process.
    #[cold]
    fn after_fork(&self, py: Python<'_>) {
        let mut waiting = locked(&self.waiting);
        let free = waiting.end_others();
        self.detached.store(waiting.calls(true), Ordering::Relaxed);
        self.forks.store(FORKS.load(Ordering::Relaxed), Ordering::Relaxed);
        drop(waiting);
        for word in free {
            // SAFETY: O4: a call gave the word's reference to the list. The calls for which it
            // waited were those of threads that do not exist in this process.
            unsafe { release_now(py, word) };
        }
    }

    /// Begins a bulk call.
    pub(super) fn mark<'m, 'py>(&'m self, py: Python<'py>) -> Mark<'m, 'py> {
        if self.is_of_a_parent() {
            self.after_fork(py);
        }
        self.detached.fetch_add(1, Ordering::Relaxed);
        Mark { ledger: self, number: locked(&self.waiting).begin(), py }
    }

    /// Whether a bulk call may have words without references of its own. Can run Python code in the
    /// child of a fork.
    #[inline]
    fn has_calls(&self, py: Python<'_>) -> bool {
        if self.detached.load(Ordering::Relaxed) == 0 {
            return false;
        }
        if self.is_of_a_parent() {
            self.after_fork(py);
        }
        self.detached.load(Ordering::Relaxed) != 0
    }

    /// Releases the reference of a word that the caller has taken out of the index.
    ///
    /// # Safety
    /// The word is that of an object, and the index returned it to the caller as taken out.
    #[inline]
    pub(super) unsafe fn release(&self, py: Python<'_>, word: u64) {
        if self.has_calls(py) {
            return locked(&self.waiting).defer(word);
        }
        // SAFETY: O1: the reference is the caller's. No bulk call has read the word: the second
        // side of the race in the docs of this file.
        unsafe { release_now(py, word) };
    }

    /// Turns a word that the caller has taken out of the index into a reference.
    ///
    /// # Safety
    /// The contract of [`Ledger::release`] holds.
    #[inline]
    pub(super) unsafe fn take<'py>(&self, py: Python<'py>, word: u64) -> Bound<'py, PyAny> {
        if self.has_calls(py) {
            // SAFETY: O1: the word's reference is the caller's. It exists until the list releases
            // it.
            let object = unsafe { borrowed(py, word) };
            locked(&self.waiting).defer(word);
            return object;
        }
        // SAFETY: O1: the reference is the caller's, which passes it on.
        unsafe { Bound::from_owned_ptr(py, object_of(word)) }
    }
}

impl Drop for Mark<'_, '_> {
    fn drop(&mut self) {
        if self.ledger.is_of_a_parent() {
            self.ledger.after_fork(self.py);
        }
        self.ledger.detached.fetch_sub(1, Ordering::Relaxed);
        let free = locked(&self.ledger.waiting).end(self.number);
        for word in free {
            // SAFETY: O4: the word was taken out by a call that gave its reference to the list. All
            // bulk calls that began before that have ended, and later ones cannot read the word.
            unsafe { release_now(self.py, word) };
        }
    }
}
