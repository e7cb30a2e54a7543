//! What a thread keeps of one class: free slots, and a run of never-used ones.

use crate::budget::Budget;
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
}

/// Free slots, last in first out, in an array that grows with the bursts it has seen.
pub(crate) struct Magazine {
    slots: Vec<*mut u8>,
    pub(crate) run: Run,
}

// SAFETY: addresses; the slots belong to whoever holds the magazine (C2).
unsafe impl Send for Magazine {}

impl Magazine {
    pub(crate) const EMPTY: Self = Self { slots: Vec::new(), run: Run::EMPTY };

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<*mut u8> {
        self.slots.pop()
    }

    /// False if it is full.
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_push(&mut self, slot: *mut u8) -> bool {
        let len = self.slots.len();
        if len == self.slots.capacity() {
            return false;
        }
        // SAFETY: there is room for one more, which is written before the length covers it.
        unsafe {
            self.slots.as_mut_ptr().add(len).write(slot);
            self.slots.set_len(len + 1);
        }
        true
    }

    pub(crate) fn room(&self) -> usize {
        self.slots.capacity() - self.slots.len()
    }

    pub(crate) fn has_array(&self) -> bool {
        self.slots.capacity() > 0
    }

    /// Makes room: `first` slots at first, four times as many each time, up to `most`. False if
    /// it is as large as it may get or memory cannot be had.
    pub(crate) fn grow(&mut self, first: usize, most: usize, budget: &Budget) -> bool {
        let old = self.slots.capacity();
        let new = if old == 0 { first } else { (4 * old).min(most) };
        let bytes = (new.saturating_sub(old)) * size_of::<*mut u8>();
        if bytes == 0 || budget.take(bytes).is_err() {
            return false;
        }
        if self.slots.try_reserve_exact(new - self.slots.len()).is_err() {
            budget.give(bytes);
            return false;
        }
        let surplus = self.slots.capacity() - new;
        debug_assert_eq!(surplus, 0, "reserve_exact is exact for pointers");
        true
    }

    /// The bytes of its array.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<*mut u8>()
    }

    /// The older half of its slots, which `take_older` removes.
    pub(crate) fn older(&self) -> &[*mut u8] {
        &self.slots[..self.slots.len().div_ceil(2)]
    }

    pub(crate) fn take_older(&mut self) {
        self.slots.drain(..self.slots.len().div_ceil(2));
    }
}
