//! The two parts of which an arena consists: a range that is handed out from its front, and a spin
//! lock with the content that it protects.

use silvics_sync::cell::UnsafeCell;
use silvics_sync::lock::{RawLock, SpinLock};
use std::alloc::Layout;
use std::ptr::{NonNull, null_mut};

/// A range of bytes that is handed out from its front: those from `next` on are free.
pub(super) struct Bump {
    start: *mut u8,
    next: *mut u8,
    end: *mut u8,
}

// SAFETY: three addresses; the owner of the range decides which thread uses it.
unsafe impl Send for Bump {}

impl Bump {
    /// The range without bytes.
    pub(super) const EMPTY: Self = Self { start: null_mut(), next: null_mut(), end: null_mut() };

    /// The range of `bytes` bytes from `start`. They belong to one mapping.
    pub(super) fn new(start: *mut u8, bytes: usize) -> Self {
        Self { start, next: start, end: start.wrapping_add(bytes) }
    }

    /// The addresses at which the next object begins and ends, whether or not the range has room
    /// for it. Returns `None` if these are no addresses.
    #[inline(always)]
    pub(super) fn place(&self, layout: Layout) -> Option<(usize, usize)> {
        let mask = layout.align() - 1; // an alignment is a power of two
        let at = self.next.addr().checked_add(mask)? & !mask;
        Some((at, at.checked_add(layout.size())?))
    }

    /// Cuts off an object that has bytes, or returns `None` if the range has no room for it.
    #[inline(always)]
    pub(super) fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        debug_assert!(layout.size() > 0, "the empty range has room for it");
        let (at, end) = self.place(layout)?;
        if end > self.end.addr() {
            return None;
        }
        let object = NonNull::new(self.next.with_addr(at))?;
        #[cfg(silvics_poison)]
        // SAFETY: A1 and A2: the range was marked free when it was charged, and these bytes were
        // cut off now.
        unsafe {
            crate::poison::hand_out(object, layout.size());
        }
        self.next = self.next.with_addr(end);
        Some(object)
    }

    /// Adds the `bytes` bytes behind the range.
    pub(super) fn extend(&mut self, bytes: usize) {
        self.end = self.end.wrapping_add(bytes);
    }

    /// The bytes that were cut off, with the padding in front of aligned objects.
    pub(super) fn used(&self) -> usize {
        self.next.addr() - self.start.addr()
    }

    pub(super) fn next(&self) -> *mut u8 {
        self.next
    }

    pub(super) fn end(&self) -> *mut u8 {
        self.end
    }
}

/// A content that is accessed by the owner of a spin lock only.
pub(super) struct Locked<T, L: RawLock = SpinLock> {
    lock: L,
    content: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time access the content, and orders the accesses.
unsafe impl<T: Send, L: RawLock> Sync for Locked<T, L> {}

/// Unlocks when it is dropped, also while a panic unwinds.
struct Owned<'a, L: RawLock>(&'a L);

impl<L: RawLock> Drop for Owned<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: an `Owned` is made only after the lock was taken.
        unsafe { self.0.unlock() };
    }
}

impl<T, L: RawLock> Locked<T, L> {
    pub(super) fn new(content: T) -> Self {
        Self { lock: L::default(), content: UnsafeCell::new(content) }
    }

    /// Calls `work` with the content, if no other thread has the lock. Returns `work` as the error
    /// otherwise.
    #[inline(always)]
    pub(super) fn try_with<R, W: FnOnce(&mut T) -> R>(&self, work: W) -> Result<R, W> {
        if !self.lock.try_lock() {
            return Err(work);
        }
        let _owned = Owned(&self.lock);
        // SAFETY: this thread has the lock, so no other one accesses the content.
        Ok(self.content.with_mut(|content| work(unsafe { &mut *content })))
    }

    /// Waits for the lock, and calls `work` with the content.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        self.lock.lock();
        let _owned = Owned(&self.lock);
        // SAFETY: this thread has the lock, so no other one accesses the content.
        self.content.with_mut(|content| work(unsafe { &mut *content }))
    }
}
