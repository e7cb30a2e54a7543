//! The key bytes of a node's places.

use super::digits::Digits;
use super::key::Digit;
use super::word::Content;
use silvics_sync::atomic::{AtomicU64, Ordering};

/// So many in a word.
pub(super) const IN_WORD: usize = 7;

/// The key bytes of up to seven places in a word, the first place's lowest; above them how many there are,
/// and in the highest bit whether the last place is that of keys that end here: one load tells all.
pub(super) struct Keys(AtomicU64);

/// What such a word holds.
#[derive(Clone, Copy)]
pub(super) struct Held(u64);

impl Held {
    const END: u64 = 1 << 63;

    /// How many bytes.
    #[inline(always)]
    fn len(self) -> usize {
        (self.0 >> 56 & 7) as usize
    }

    /// Whether the last place belongs to the end.
    #[inline(always)]
    fn has_end(self) -> bool {
        self.0 & Self::END != 0
    }

    /// Whether all of so many places belong to somebody.
    #[inline(always)]
    pub(super) fn fills(self, places: usize) -> bool {
        self.len() + usize::from(self.has_end()) == places
    }

    /// The place of a byte.
    #[inline(always)]
    fn find(self, byte: u8) -> Option<usize> {
        let at = self.first(byte);
        // What is no key has the number of a place that is not used.
        (at < self.len()).then_some(at)
    }

    /// Which of the word's bytes is the first that equals this one, 7 if it is none of the others. In fewer
    /// instructions than by arithmetic: processors overlap as many lookups as fit into their reorder buffers.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn first(self, byte: u8) -> usize {
        use std::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm_movemask_epi8,
            _mm_shufflelo_epi16, _mm_unpacklo_epi8,
        };
        // SAFETY: every such processor has SSE2.
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

    /// The same on any processor.
    #[cfg(any(all(test, not(any(silvics_loom, silvics_shuttle))), not(target_arch = "x86_64")))]
    #[inline(always)]
    fn first_by_arithmetic(self, byte: u8) -> usize {
        const LOW: u64 = 0x0101_0101_0101_0101;
        // A zero byte borrows; what is above it may be wrong, and the lowest is right (Warren, "Hacker's
        // delight", section 6-1).
        let different = self.0 ^ (LOW * u64::from(byte));
        let zeros = different.wrapping_sub(LOW) & !different & (LOW << 7);
        ((zeros | 1 << 63).trailing_zeros() / 8) as usize
    }

    /// The byte's place among these.
    #[inline(always)]
    pub(super) fn place<A>(self, byte: u8, places: &[A]) -> Option<&A> {
        let at = self.find(byte)?;
        debug_assert!(at < places.len());
        // SAFETY: `add` gives no more keys to a word than it has places.
        Some(unsafe { places.get_unchecked(at) })
    }

    fn with(self, byte: u8) -> Self {
        Self((self.0 | u64::from(byte) << (8 * self.len())) + (1 << 56))
    }

    /// The number of each digit that has one of so many places, and the place.
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

    /// The place of a digit among these, of which there are as many as keys at least.
    #[inline(always)]
    pub(super) fn place<'n, A>(&self, digit: Digit, places: &'n [A]) -> Option<&'n A> {
        let held = self.load();
        match digit {
            Some(byte) => held.place(byte, places),
            None => held.has_end().then(|| &places[places.len() - 1]),
        }
    }

    /// Under the lock or before the node is linked: gives one of these places, if one is left, to a digit
    /// that has none.
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
