//! Comparing the tags and gaps of a block, many at a time.

use super::block::{MAX_ENTRIES, TAG_WORDS};
use super::order::Gap;

const _: () = assert!(MAX_ENTRIES.is_multiple_of(16) || cfg!(silvics_shuttle));

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

/// Whether each gap of a block is smaller than `gap`, as bits.
#[inline(always)]
pub(super) fn smaller(gaps: &[Gap; MAX_ENTRIES], gap: Gap) -> u64 {
    let mut smaller = 0;
    #[cfg(all(target_arch = "x86_64", not(any(miri, silvics_shuttle, silvics_loom))))]
    for (at, gaps) in gaps.chunks_exact(16).enumerate() {
        use std::arch::x86_64::{
            _mm_cmplt_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_set1_epi16,
        };
        // SAFETY: SSE2 is a part of this architecture, and twice eight gaps can be read.
        let mask = unsafe {
            let limit = _mm_set1_epi16(gap.0);
            let low = _mm_cmplt_epi16(_mm_loadu_si128(gaps.as_ptr().cast()), limit);
            let high = _mm_cmplt_epi16(_mm_loadu_si128(gaps.as_ptr().add(8).cast()), limit);
            _mm_movemask_epi8(_mm_packs_epi16(low, high))
        };
        smaller |= u64::from(mask.cast_unsigned()) << (16 * at);
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, silvics_shuttle, silvics_loom)))))]
    for (at, other) in gaps.iter().enumerate() {
        smaller |= u64::from(*other < gap) << at;
    }
    smaller
}
