//! What a thread keeps of one class: free slots, and a run of never-used ones.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | `len`, `taken` | load and store | Relaxed | one writer (C1); a count for others, exact when it rests |

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

// SAFETY: addresses; the slots belong to whoever holds the run (C2).
unsafe impl Send for Run {}

impl Run {
    pub(crate) const EMPTY: Self = Self { next: null_mut(), end: null_mut() };

    /// Cuts `slots` slots of `size` bytes off the front, fewer at the end.
    pub(crate) fn split(&mut self, slots: usize, size: usize) -> Self {
        let bytes = (slots * size).min(self.end.addr() - self.next.addr());
        let front = Self { next: self.next, end: self.next.wrapping_add(bytes) };
        self.next = front.end;
        front
    }

    pub(crate) fn is_empty(self) -> bool {
        self.next == self.end
    }

    /// Its slots of `size` bytes.
    pub(crate) fn slots(self, size: usize) -> impl Iterator<Item = *mut u8> {
        let bytes = self.end.addr() - self.next.addr();
        (0..bytes).step_by(size).map(move |at| self.next.wrapping_add(at))
    }
}

/// What a thread keeps of one class.
///
/// Only its owner opens it. Others may count what is in it, so that the fast paths of allocation
/// and free need no count of their own.
pub(crate) struct Magazine {
    owned: UnsafeCell<Owned>,
    /// How many slots the array holds; written by the owner.
    len: AtomicUsize,
    /// Slots the owner has taken from the pool less those it has given back to it; written by the
    /// owner.
    taken: AtomicI64,
}

/// An array of slots, last in first out, that grows with the bursts it has seen; and a run.
struct Owned {
    /// The first `len` places are in use; the length of the vector itself stays 0.
    slots: Vec<*mut u8>,
    run: Run,
}

// SAFETY: the slots in a magazine belong to it, whoever owns it (C2), and `open` is its owner's.
unsafe impl Send for Magazine {}
// SAFETY: as above.
unsafe impl Sync for Magazine {}

impl Magazine {
    pub(crate) fn new() -> Self {
        let owned = Owned { slots: Vec::new(), run: Run::EMPTY };
        let (len, taken) = (AtomicUsize::new(0), AtomicI64::new(0));
        Self { owned: UnsafeCell::new(owned), len, taken }
    }

    /// The slot last pushed.
    ///
    /// # Safety
    /// C1: the caller is the owner, and has not opened it.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self) -> Option<*mut u8> {
        // SAFETY: the caller's promise.
        self.owned.with(|owned| pop(unsafe { &*owned }, &self.len))
    }

    /// Puts a slot in. False if it is full.
    ///
    /// # Safety
    /// As for `pop`.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn try_push(&self, slot: *mut u8) -> bool {
        // SAFETY: the caller's promise.
        self.owned.with_mut(|owned| try_push(unsafe { &mut *owned }, &self.len, slot))
    }

    /// Lets its owner do more.
    ///
    /// # Safety
    /// As for `pop`, also for what `work` does.
    pub(crate) unsafe fn open<R>(&self, work: impl FnOnce(&mut Open<'_>) -> R) -> R {
        self.owned.with_mut(|owned| {
            // SAFETY: the caller's promise.
            let owned = unsafe { &mut *owned };
            work(&mut Open { owned, len: &self.len, taken: &self.taken })
        })
    }

    /// Slots the owner has handed out less those it was handed back; exact when it rests.
    pub(crate) fn live(&self) -> i64 {
        self.taken.load(Ordering::Relaxed) - self.len.load(Ordering::Relaxed) as i64
    }

    /// The bytes of its array.
    ///
    /// # Safety
    /// As for `open`.
    pub(crate) unsafe fn bytes(&self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.open(|open| open.capacity() * size_of::<*mut u8>()) }
    }
}

// What both paths share. The fast one keeps all of it in registers: on a store that misses the
// cache, each further store waits in a short queue.

#[inline(always)]
fn pop(owned: &Owned, len: &AtomicUsize) -> Option<*mut u8> {
    let rest = len.load(Ordering::Relaxed).checked_sub(1)?;
    len.store(rest, Ordering::Relaxed);
    // SAFETY: the first `rest + 1` places are in use.
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

/// A magazine in its owner's hands.
pub(crate) struct Open<'a> {
    owned: &'a mut Owned,
    len: &'a AtomicUsize,
    taken: &'a AtomicI64,
}

impl Open<'_> {
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    fn capacity(&self) -> usize {
        self.owned.slots.capacity()
    }

    pub(crate) fn pop(&mut self) -> Option<*mut u8> {
        pop(self.owned, self.len)
    }

    /// False if it is full.
    #[must_use]
    pub(crate) fn try_push(&mut self, slot: *mut u8) -> bool {
        try_push(self.owned, self.len, slot)
    }

    /// Never-used slots.
    pub(crate) fn run(&mut self) -> &mut Run {
        &mut self.owned.run
    }

    /// Takes note that the owner's hands hold `slots` more than before, those in the array
    /// included.
    pub(crate) fn note_taken(&mut self, slots: i64) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken + slots, Ordering::Relaxed);
    }

    pub(crate) fn room(&self) -> usize {
        self.capacity() - self.len()
    }

    pub(crate) fn has_array(&self) -> bool {
        self.capacity() > 0
    }

    /// Makes room: `first` slots at first, four times as many each time, up to `most`. False if
    /// it is as large as it may get or memory cannot be had.
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
        // SAFETY: the first `len` places are in use, and the new array has as many.
        unsafe { self.owned.slots.as_ptr().copy_to_nonoverlapping(slots.as_mut_ptr(), self.len()) };
        self.owned.slots = slots;
        true
    }

    /// The slots of its array, oldest first.
    pub(crate) fn slots(&self) -> &[*mut u8] {
        // SAFETY: the first `len` places are in use.
        unsafe { std::slice::from_raw_parts(self.owned.slots.as_ptr(), self.len()) }
    }

    /// The older half of its slots, which `take_older` removes.
    pub(crate) fn older(&self) -> &[*mut u8] {
        &self.slots()[..self.len().div_ceil(2)]
    }

    pub(crate) fn take_older(&mut self) {
        let (len, older) = (self.len(), self.older().len());
        let slots = self.owned.slots.as_mut_ptr();
        // SAFETY: as in `older`.
        unsafe { slots.add(older).copy_to(slots, len - older) };
        self.len.store(len - older, Ordering::Relaxed);
    }
}
