//! The node with a place for each byte: `Node256`.

use super::{Header, Node};
use crate::art::digits::Digits;
use crate::art::key::Digit;
use crate::art::word::Content;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::array;

/// A node with a place for each byte, from the second line on.
#[repr(C, align(64))]
pub(in super::super) struct Node256<C: Content> {
    header: Header,
    end: C::Atomic,
    /// A bit for each byte: whether its place is not empty. Protected by the lock.
    held: [AtomicU64; 4],
    pub(super) places: [C::Atomic; 256],
}

impl<C: Content> Node256<C> {
    /// The places of all bytes.
    #[inline(always)]
    pub(in super::super) fn places(&self) -> &[C::Atomic; 256] {
        &self.places
    }

    #[inline(always)]
    pub(in super::super) fn prefix(&self) -> u64 {
        self.header.prefix
    }

    /// Whether the place of a byte is not empty, read from the line of the lock. This is exact
    /// under the lock; without the lock it was so at some time.
    #[inline(always)]
    pub(in super::super) fn holds(&self, byte: u8) -> bool {
        self.held[usize::from(byte / 64)].load(Ordering::Relaxed) >> (byte % 64) & 1 != 0
    }

    /// Which of the sixteen places from a multiple of sixteen on are not empty. Without a branch: a
    /// processor cannot predict which places are.
    #[inline(always)]
    pub(super) fn present(&self, from: usize) -> u16 {
        let places = self.places[from..from + 16].iter().enumerate();
        places.fold(0, |set, (at, place)| set | u16::from(C::load(place) != C::EMPTY) << at)
    }

    /// Notes whether the place of a byte is not empty. The caller holds the lock, or the node is
    /// not linked yet.
    #[inline]
    pub(super) fn note(&self, byte: u8, holds: bool) {
        let word = &self.held[usize::from(byte / 64)];
        let others = word.load(Ordering::Relaxed) & !(1 << (byte % 64));
        word.store(others | u64::from(holds) << (byte % 64), Ordering::Relaxed);
    }
}

impl<C: Content + 'static> Node<C> for Node256<C>
where
    C::Atomic: Send,
{
    const LIMIT: usize = 256;

    fn new(prefix: u64) -> Self {
        let places = array::from_fn(|_| C::EMPTY.place());
        let held = array::from_fn(|_| AtomicU64::new(0));
        Self { header: Header::new(prefix), end: C::EMPTY.place(), held, places }
    }
    #[inline(always)]
    fn header(&self) -> &Header {
        &self.header
    }
    #[inline(always)]
    fn find(&self, digit: Digit) -> Option<&C::Atomic> {
        Some(digit.map_or(&self.end, |byte| &self.places[usize::from(byte)]))
    }
    fn add<const SHARED: bool>(&self, digit: Digit, content: C) -> bool {
        let store = if SHARED { C::store } else { C::store_unshared };
        if let Some(byte) = digit {
            self.note(byte, true);
        }
        self.find(digit).map(|place| store(content, place)).is_some()
    }
    fn digits(&self) -> Digits {
        Digits::all(C::load(&self.end) != C::EMPTY)
    }
}
