//! Ranges that read some entries at a time, and hold no guard in between.
//!
//! # Algorithm
//! A range has a side for each end. A side reads a batch of entries under a pin, unpins, and
//! returns them one by one:
//! ```text
//! next:      if the front has an entry left: return its first one
//!            if the gap is open: read the first entries of the gap into the front; if there are
//!                                fewer than wanted, close the gap; begin again
//!            if the back has an entry left: return its last one
//! next_back: the same with the ends exchanged
//! ```
//! The *gap* is between the keys that the two sides have read. It begins behind the last key that
//! the front has read, or at the start of the range, and ends before the last key that the back has
//! read, or at the end of the range.
//!
//! The sums of the first batches are 26, 52 and 104, and so on until a batch has [`MOST`] entries.
//! Programs that stop early tend to stop after 25, 50 or 100 entries, and an entry that is read and
//! not taken costs as much as any other.
//!
//! # Invariants
//! * B1: each key of the range is in the gap, or was in the gap when one side read it and the keys
//!   around it. A batch is a scan of the gap from one of its ends. So a key that stays present is
//!   read once, by one side.
//! * B2: if reading a batch panics, the gap is as before, and the side has no entry left. So the
//!   next call reads the same batch again.

use super::key::{Form, FormRef, Key};
use super::scan::{Kept, kept};
use std::mem::replace;
use std::ops::Bound;

/// The number of entries that a side reads first.
const FIRST: usize = 26;
/// The most entries that a side reads at once.
const MOST: usize = 512;

/// A place for the entries of a batch.
pub(super) trait Buffer<K: Key>: Default {
    /// The number of entries.
    fn count(&self) -> usize;

    /// The key of an entry.
    fn key(&self, at: usize) -> FormRef<'_, K>;
}

/// The gap of a range, or the bounds of a scan of it.
pub(super) type Gap<'a, K> = (Bound<FormRef<'a, K>>, Bound<FormRef<'a, K>>);

/// One end of a range.
#[derive(Default)]
struct Side<B> {
    /// The last batch, from the end of the range towards its middle.
    batch: B,
    /// The entries of the batch from `at` to `end` have not been returned.
    at: usize,
    end: usize,
    /// The number of entries that all batches have had.
    read: usize,
}

impl<B> Side<B> {
    /// Takes out the entry that is next at this end.
    #[inline(always)]
    fn take(&mut self) -> Option<usize> {
        if self.at == self.end {
            return None;
        }
        self.at += 1;
        Some(self.at - 1)
    }

    /// Takes out the entry that is next if the range is read from the other end.
    #[inline(always)]
    fn take_innermost(&mut self) -> Option<usize> {
        if self.at == self.end {
            return None;
        }
        self.end -= 1;
        Some(self.end)
    }
}

/// Moves a bound of the gap behind a key that was read.
fn pass<K: Key>(bound: &mut Bound<<K::Form as Form>::Kept>, key: FormRef<'_, K>) {
    *bound = Bound::Excluded(match replace(bound, Bound::Unbounded) {
        Bound::Included(mut kept) | Bound::Excluded(mut kept) => {
            <K::Form as Form>::keep_in(&mut kept, key);
            kept
        }
        Bound::Unbounded => <K::Form as Form>::keep(key),
    });
}

/// The sides of a range and its gap: see the [module](self).
pub(super) struct Batched<K: Key, B> {
    front: Side<B>,
    back: Side<B>,
    gap: Kept<K>,
    /// Whether the gap may have entries.
    is_open: bool,
}

impl<K: Key, B: Buffer<K>> Batched<K, B> {
    pub(super) fn new(bounds: Kept<K>) -> Self {
        let (front, back) = Default::default();
        Self { front, back, gap: bounds, is_open: true }
    }

    /// Takes out the next entry from the front, or from the back if `REV`, and returns its batch
    /// and its number there. `read` reads up to the given number of entries of the gap into a
    /// buffer, from the back in descending order.
    #[inline(always)]
    pub(super) fn next<const REV: bool>(
        &mut self,
        read: impl FnOnce(Gap<'_, K>, usize, &mut B),
    ) -> Option<(&mut B, usize)> {
        let side = if REV { &mut self.back } else { &mut self.front };
        let (backwards, at) = match side.take() {
            Some(at) => (REV, at),
            None => self.next_of_gap::<REV>(read)?,
        };
        let side = if backwards { &mut self.back } else { &mut self.front };
        Some((&mut side.batch, at))
    }

    /// Takes out the next entry behind all those of a side: one of the gap, else one of the other
    /// side. Returns whether it is in the batch of the back, and its number there.
    #[inline(never)]
    fn next_of_gap<const REV: bool>(
        &mut self,
        read: impl FnOnce(Gap<'_, K>, usize, &mut B),
    ) -> Option<(bool, usize)> {
        let Self { front, back, gap, is_open } = self;
        let (side, other) = if REV { (back, front) } else { (front, back) };
        if *is_open {
            let most = side.read.clamp(FIRST, MOST);
            (side.at, side.end) = (0, 0);
            read((kept::<K>(&gap.0), kept::<K>(&gap.1)), most, &mut side.batch);
            let count = side.batch.count();
            *is_open = count == most;
            if let Some(last) = count.checked_sub(1) {
                pass::<K>(if REV { &mut gap.1 } else { &mut gap.0 }, side.batch.key(last));
            }
            (side.end, side.read) = (count, side.read + count);
            if let Some(at) = side.take() {
                return Some((REV, at));
            }
        }
        other.take_innermost().map(|at| (!REV, at))
    }
}
