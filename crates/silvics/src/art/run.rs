//! Sixteen values side by side: the common case of a scan of dense integers.

use super::key::DigitKey;
use super::node::{AnySize, NodeRef};
use super::word::{ABSENT, Content, Word};
use silvics_sync::atomic::AtomicU64;

/// The number of bytes that are looked at together.
const BYTES: usize = 16;

/// The values that come next in a scan of a `Values256`: those of sixteen bytes.
#[derive(Clone, Copy)]
pub(super) struct Run<'g> {
    /// The places of the sixteen bytes. There are none before the first run.
    places: &'g [AtomicU64],
    prefix: u64,
    /// The first byte.
    from: u8,
    /// The places that had a value when the scan came and have not been passed, as bits.
    rest: u16,
}

impl Run<'_> {
    pub(super) fn none() -> Self {
        Self { places: &[], prefix: 0, from: 0, rest: 0 }
    }

    /// The next sixteen bytes beyond an edge of a node that have a value, and the edge beyond them.
    ///
    /// # Safety
    /// The word's kind is `Values256`, and its node is not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn beyond<const REV: bool>(word: Word, mut edge: u16) -> Option<(Self, u16)> {
        // SAFETY: I7: the word leads to a node of its kind, which is not reclaimed (our contract).
        let NodeRef::Values(node) = (unsafe { NodeRef::from_word(word) }) else { return None };
        let AnySize::Full(full) = node else { return None };
        loop {
            let byte = if REV { edge.checked_sub(2)? } else { edge.saturating_sub(1) };
            let from = usize::from(byte) & !(BYTES - 1);
            let places = full.places().get(from..from + BYTES)?;
            let to_come = if REV { u16::MAX >> (15 - byte % 16) } else { u16::MAX << (byte % 16) };
            edge = from as u16 + if REV { 1 } else { BYTES as u16 + 1 };
            let rest = node.present(from).unwrap_or(0) & to_come;
            if rest != 0 {
                let prefix = full.prefix();
                return Some((Self { places, prefix, from: from as u8, rest }, edge));
            }
        }
    }

    /// The next entry that is still present.
    #[inline(always)]
    pub(super) fn next<const REV: bool, K: DigitKey + ?Sized>(
        &mut self,
    ) -> Option<(K::Ref<'static>, u64)> {
        while self.rest != 0 {
            let at = if REV { self.rest.ilog2() } else { self.rest.trailing_zeros() };
            self.rest &= if REV { !(1 << at) } else { self.rest - 1 };
            let value = u64::load(&self.places[at as usize]);
            if value != ABSENT {
                return Some((K::direct(self.prefix, self.from + at as u8), value));
            }
        }
        None
    }
}
