//! Comparing the tags of a block.

use super::block::TAG_WORDS;

/// Whether each byte of some words is `byte`, as bits.
#[inline(always)]
pub(super) fn equal_bytes(words: [u64; TAG_WORDS], byte: u8) -> u64 {
    let mut equal = 0;
    #[cfg(all(target_arch = "x86_64", not(any(miri, silvics_shuttle, silvics_loom))))]
    for (at, pair) in words.chunks_exact(2).enumerate() {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
        // SAFETY: SSE2 is a part of this architecture.
        let mask = unsafe {
            let tags = _mm_set_epi64x(pair[1].cast_signed(), pair[0].cast_signed());
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(byte.cast_signed())))
        };
        equal |= u64::from(mask.cast_unsigned()) << (16 * at);
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, silvics_shuttle, silvics_loom)))))]
    for (at, word) in words.into_iter().enumerate() {
        for (n, other) in word.to_le_bytes().into_iter().enumerate() {
            equal |= u64::from(other == byte) << (8 * at + n);
        }
    }
    equal
}
