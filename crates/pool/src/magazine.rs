//! The slots of one class that a thread keeps for itself: free ones, and a run of never-used ones.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | `len`, `taken` | load and store | Relaxed | one writer (C1); others read them as counts, exact while the owner is idle |

use crate::budget::Budget;
use silvics_sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use silvics_sync::cell::UnsafeCell;
use std::ptr::null_mut;

/// Never-used slots from `next` up to `end`.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) next: *mut u8,
    pub(crate) end: *mut u8,
}

// SAFETY: addresses only; the slots belong to the holder of the run (C2).
unsafe impl Send for Run {}

impl Run {
    pub(crate) const EMPTY: Self = Self { next: null_mut(), end: null_mut() };

    /// Cuts `slots` slots of `size` bytes off the front, or as many as are left.
    pub(crate) fn split(&mut self, slots: usize, size: usize) -> Self {
        let bytes = (slots * size).min(self.end.addr() - self.next.addr());
        let front = Self { next: self.next, end: self.next.wrapping_add(bytes) };
        self.next = front.end;
        front
    }

    pub(crate) fn is_empty(self) -> bool {
        self.next == self.end
    }

    /// The addresses of its slots, each of `size` bytes.
    pub(crate) fn slots(self, size: usize) -> impl Iterator<Item = *mut u8> {
        let bytes = self.end.addr() - self.next.addr();
        (0..bytes).step_by(size).map(move |at| self.next.wrapping_add(at))
    }
}

/// The slots of one class that a thread keeps for itself.
///
/// Only its owner opens it. Other threads may count its slots, so the fast paths of allocation and
/// free need no other counter.
pub(crate) struct Magazine {
    owned: UnsafeCell<Owned>,
    /// How many slots the array holds; written by the owner.
    len: AtomicUsize,
    /// The slots that the owner took from the pool, less those it returned; written by the owner.
    taken: AtomicI64,
}

/// A stack of slots that grows with the bursts of frees it has seen, and a run.
struct Owned {
    /// The first `len` elements are in use; the length of the vector itself stays 0.
    slots: Vec<*mut u8>,
    run: Run,
}

// SAFETY: the slots in a magazine belong to it and not to a thread (C2), and only the owner calls
// `open`.
unsafe impl Send for Magazine {}
// SAFETY: as for `Send`: other threads only read `len` and `taken`, which are atomic.
unsafe impl Sync for Magazine {}

impl Magazine {
    pub(crate) fn new() -> Self {
        let owned = Owned { slots: Vec::new(), run: Run::EMPTY };
        let (len, taken) = (AtomicUsize::new(0), AtomicI64::new(0));
        Self { owned: UnsafeCell::new(owned), len, taken }
    }

    /// Pops the slot pushed last.
    ///
    /// # Safety
    /// C1: the caller is the owner and does not have the magazine open.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self) -> Option<*mut u8> {
        // SAFETY: the caller's promise.
        self.owned.with(|owned| pop(unsafe { &*owned }, &self.len))
    }

    /// Pushes a slot. Returns false if the magazine is full.
    ///
    /// # Safety
    /// C1: the caller is the owner and does not have the magazine open.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn try_push(&self, slot: *mut u8) -> bool {
        // SAFETY: the caller's promise.
        self.owned.with_mut(|owned| try_push(unsafe { &mut *owned }, &self.len, slot))
    }

    /// Opens the magazine for its owner.
    ///
    /// # Safety
    /// C1: the caller is the owner and does not have the magazine open; `work` does not use it
    /// otherwise.
    pub(crate) unsafe fn open<R>(&self, work: impl FnOnce(&mut Open<'_>) -> R) -> R {
        self.owned.with_mut(|owned| {
            // SAFETY: the caller's promise.
            let owned = unsafe { &mut *owned };
            work(&mut Open { owned, len: &self.len, taken: &self.taken })
        })
    }

    /// The slots that the owner handed out, less those it took back; exact while the owner is idle.
    pub(crate) fn live(&self) -> i64 {
        self.taken.load(Ordering::Relaxed) - self.len.load(Ordering::Relaxed) as i64
    }

    /// The bytes of its array.
    ///
    /// # Safety
    /// C1: the caller is the owner and does not have the magazine open.
    pub(crate) unsafe fn bytes(&self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.open(|open| open.capacity() * size_of::<*mut u8>()) }
    }
}

// Both the fast path and an open magazine use these two. The fast path keeps everything in
// registers: while a store that missed the cache is pending, further stores wait in a short queue.

#[inline(always)]
fn pop(owned: &Owned, len: &AtomicUsize) -> Option<*mut u8> {
    let rest = len.load(Ordering::Relaxed).checked_sub(1)?;
    len.store(rest, Ordering::Relaxed);
    // SAFETY: the first `rest + 1` elements are in use.
    Some(unsafe { owned.slots.as_ptr().add(rest).read() })
}

#[inline(always)]
fn try_push(owned: &mut Owned, len: &AtomicUsize, slot: *mut u8) -> bool {
    let used = len.load(Ordering::Relaxed);
    if used == owned.slots.capacity() {
        return false;
    }
    // SAFETY: there is room for one more.
    unsafe { owned.slots.as_mut_ptr().add(used).write(slot) };
    len.store(used + 1, Ordering::Relaxed);
    true
}

/// A magazine that its owner has opened.
pub(crate) struct Open<'a> {
    owned: &'a mut Owned,
    len: &'a AtomicUsize,
    taken: &'a AtomicI64,
}

impl Open<'_> {
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.owned.slots.capacity()
    }

    /// The slots that the owner took from the pool, less those it returned, or 0 if it returned
    /// more: slots of other threads.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed).max(0) as usize
    }

    pub(crate) fn pop(&mut self) -> Option<*mut u8> {
        pop(self.owned, self.len)
    }

    /// Pushes a slot. Returns false if the magazine is full.
    #[must_use]
    pub(crate) fn try_push(&mut self, slot: *mut u8) -> bool {
        try_push(self.owned, self.len, slot)
    }

    /// The run of never-used slots.
    pub(crate) fn run(&mut self) -> &mut Run {
        &mut self.owned.run
    }

    /// Records that the owner holds `slots` more than before, including those in the array.
    pub(crate) fn note_taken(&mut self, slots: i64) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken + slots, Ordering::Relaxed);
    }

    pub(crate) fn room(&self) -> usize {
        self.capacity() - self.len()
    }

    /// Enlarges the array: to `first` slots at first, then four times as many each time, up to
    /// `most`. Returns false if it may not grow further or if the allocation failed.
    pub(crate) fn grow(&mut self, first: usize, most: usize, budget: &Budget) -> bool {
        let old = self.capacity();
        let new = if old == 0 { first } else { (4 * old).min(most) };
        let bytes = (new.saturating_sub(old)) * size_of::<*mut u8>();
        if bytes == 0 || budget.take(bytes).is_err() {
            return false;
        }
        let mut slots = Vec::new();
        if slots.try_reserve_exact(new).is_err() {
            budget.give(bytes);
            return false;
        }
        debug_assert_eq!(slots.capacity(), new, "reserve_exact is exact for pointers");
        // SAFETY: the first `len` elements are in use, and the new array has at least as many.
        unsafe { self.owned.slots.as_ptr().copy_to_nonoverlapping(slots.as_mut_ptr(), self.len()) };
        self.owned.slots = slots;
        true
    }

    /// Frees the array, which is empty. Returns its bytes.
    pub(crate) fn drop_array(&mut self, budget: &Budget) -> usize {
        debug_assert_eq!(self.len(), 0);
        let bytes = self.capacity() * size_of::<*mut u8>();
        if bytes > 0 {
            self.owned.slots = Vec::new();
            budget.give(bytes);
        }
        bytes
    }

    /// The slots of the array, oldest first.
    pub(crate) fn slots(&self) -> &[*mut u8] {
        // SAFETY: the first `len` elements are in use.
        unsafe { std::slice::from_raw_parts(self.owned.slots.as_ptr(), self.len()) }
    }

    /// The older half of the slots, which `take_older` removes.
    pub(crate) fn older(&self) -> &[*mut u8] {
        &self.slots()[..self.len().div_ceil(2)]
    }

    pub(crate) fn take_older(&mut self) {
        let (len, older) = (self.len(), self.older().len());
        let slots = self.owned.slots.as_mut_ptr();
        // SAFETY: the first `len` elements are in use, and `older` is at most `len`.
        unsafe { slots.add(older).copy_to(slots, len - older) };
        self.len.store(len - older, Ordering::Relaxed);
    }
}
