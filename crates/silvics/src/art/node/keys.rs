//! The key bytes of a node's places.

use crate::art::digits::Digits;
use crate::art::key::Digit;
use crate::art::word::Content;
use silvics_sync::atomic::{AtomicU64, Ordering};

/// The number of key bytes that a word has room for.
pub(super) const IN_WORD: usize = 7;

/// The key bytes of up to seven places, in one word, so that one load reads them all.
///
/// The byte of the first place is the lowest. Above the bytes lies their number. The highest bit
/// says whether the last place belongs to the end.
pub(super) struct Keys(AtomicU64);

/// The keys of a line, as loaded.
#[derive(Clone, Copy)]
pub(super) struct Held(u64);

impl Held {
    const END: u64 = 1 << 63;

    /// The number of bytes.
    #[inline(always)]
    fn len(self) -> usize {
        (self.0 >> 56 & 7) as usize
    }

    /// Whether the last place belongs to the end.
    #[inline(always)]
    fn has_end(self) -> bool {
        self.0 & Self::END != 0
    }

    /// Whether every one of `places` places belongs to a digit.
    #[inline(always)]
    pub(super) fn fills(self, places: usize) -> bool {
        self.len() + usize::from(self.has_end()) == places
    }

    /// The number of a byte's place.
    #[inline(always)]
    fn find(self, byte: u8) -> Option<usize> {
        let at = self.first(byte);
        // A byte that is not a key was found beyond the keys.
        (at < self.len()).then_some(at)
    }

    /// The position of the first byte of the word that equals `byte`, or 7 if none of the lower
    /// seven does. This takes fewer instructions than arithmetic does, and processors overlap as
    /// many lookups as fit into their reorder buffers.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn first(self, byte: u8) -> usize {
        use std::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm_movemask_epi8,
            _mm_shufflelo_epi16, _mm_unpacklo_epi8,
        };
        // SAFETY: every x86-64 processor has SSE2.
        let equal = unsafe {
            let one = _mm_cvtsi32_si128(i32::from(byte));
            let all = _mm_shufflelo_epi16::<0>(_mm_unpacklo_epi8(one, one));
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_cvtsi64_si128(self.0 as i64), all))
        };
        (equal | 1 << 7).trailing_zeros() as usize
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn first(self, byte: u8) -> usize {
        self.first_by_arithmetic(byte)
    }

    /// [`Held::first`] for any processor.
    #[cfg(any(all(test, not(any(silvics_loom, silvics_shuttle))), not(target_arch = "x86_64")))]
    #[inline(always)]
    fn first_by_arithmetic(self, byte: u8) -> usize {
        const LOW: u64 = 0x0101_0101_0101_0101;
        // A zero byte borrows, so bytes above it may be wrong; the lowest is right (Warren,
        // "Hacker's delight", section 6-1).
        let different = self.0 ^ (LOW * u64::from(byte));
        let zeros = different.wrapping_sub(LOW) & !different & (LOW << 7);
        ((zeros | 1 << 63).trailing_zeros() / 8) as usize
    }

    /// The place of a byte, among the places of its line.
    #[inline(always)]
    pub(super) fn place<A>(self, byte: u8, places: &[A]) -> Option<&A> {
        let at = self.find(byte)?;
        debug_assert!(at < places.len());
        // SAFETY: I4: a line has no more keys than places, as `Keys::add` sees to.
        Some(unsafe { places.get_unchecked(at) })
    }

    fn with(self, byte: u8) -> Self {
        Self((self.0 | u64::from(byte) << (8 * self.len())) + (1 << 56))
    }

    /// Calls `call` with the number of each digit that has a place, and the number of the place.
    #[inline(always)]
    pub(super) fn each(self, places: usize, mut call: impl FnMut(u16, usize)) {
        (0..self.len()).for_each(|at| call(u16::from((self.0 >> (8 * at)) as u8) + 1, at));
        if self.has_end() {
            call(0, places - 1);
        }
    }

    pub(super) fn add_to(self, digits: &mut Digits) {
        (0..self.len()).for_each(|at| digits.add((self.0 >> (8 * at)) as u8));
        digits.add_end(self.has_end());
    }
}

impl Keys {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline(always)]
    pub(super) fn load(&self) -> Held {
        Held(self.0.load(Ordering::SeqCst))
    }

    /// The place of a digit, among the places of its line.
    #[inline(always)]
    pub(super) fn place<'n, A>(&self, digit: Digit, places: &'n [A]) -> Option<&'n A> {
        let held = self.load();
        match digit {
            Some(byte) => held.place(byte, places),
            None => held.has_end().then(|| &places[places.len() - 1]),
        }
    }

    /// Gives one of these places to a digit that has none. Returns false if no place is left. The
    /// caller holds the lock, or without `SHARED` the node is not linked yet.
    pub(super) fn add<C: Content, const SHARED: bool>(
        &self,
        digit: Digit,
        content: C,
        places: &[C::Atomic],
    ) -> bool {
        let held = self.load();
        if held.fills(places.len()) {
            return false;
        }
        let (place, with) = match digit {
            Some(byte) => (held.len(), held.with(byte)),
            None => (places.len() - 1, Held(held.0 | Held::END)),
        };
        content.store_unshared(&places[place]);
        self.0.store(with.0, if SHARED { Ordering::SeqCst } else { Ordering::Relaxed });
        true
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_words() {
        for len in 0..=IN_WORD {
            for byte in 0..=255_u8 {
                let others = (0..len).map(|at| byte.wrapping_add(1 + 31 * at as u8));
                let held = others.clone().fold(Held(0), Held::with);
                assert_eq!(held.first(byte), held.first_by_arithmetic(byte), "{others:?}");
                assert_eq!((held.len(), held.find(byte)), (len, None), "{others:?}");
                for place in 0..len {
                    let keys = others.clone().enumerate();
                    let keys = keys.map(|(at, other)| if at == place { byte } else { other });
                    let held = keys.fold(Held(0), Held::with);
                    assert_eq!(
                        (held.find(byte), held.first_by_arithmetic(byte)),
                        (Some(place), place)
                    );
                }
            }
        }
    }
}
