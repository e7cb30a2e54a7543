//! The steps of a lookup that special instructions make faster: with these, and without.

use super::node::GROUP;
use crate::encoding::Prefixed;

/// A way to find the child that a key leads to.
pub(super) trait Search: Copy {
    /// Moves the bits of `word` that `mask` selects together, to the lowest bits.
    fn gather(self, word: u64, mask: u64) -> u64;
    /// Whether each of eight paths has only bits that `bits` has: a bit for each.
    ///
    /// # Safety
    /// Eight paths can be read from `paths`.
    unsafe fn within(self, paths: *const u32, bits: u32) -> u32;
    /// Whether a key is a prefix and then a rest.
    fn equal(self, key: &[u8], prefix: &[u8], rest: &[u8]) -> bool;
}

/// A search without special instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Search for Portable {
    #[inline]
    fn gather(self, word: u64, mut mask: u64) -> u64 {
        let (mut bits, mut at) = (0, 0);
        while mask != 0 {
            bits |= (word >> mask.trailing_zeros() & 1) << at;
            mask &= mask - 1;
            at += 1;
        }
        bits
    }

    #[inline(always)]
    unsafe fn within(self, paths: *const u32, bits: u32) -> u32 {
        let mut within = 0;
        for at in 0..GROUP {
            // SAFETY: the caller's promise.
            let path = unsafe { paths.add(at).read() };
            within |= u32::from(path & !bits == 0) << at;
        }
        within
    }

    #[inline]
    fn equal(self, key: &[u8], prefix: &[u8], rest: &[u8]) -> bool {
        Prefixed::new(prefix, rest) == Prefixed::from(key)
    }
}

/// A search by BMI2 and AVX2. A value of this type says that the processor has them.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Avx2 {
    /// The search, if the processor has the instructions.
    pub(super) fn detect() -> Option<Self> {
        let found = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("popcnt");
        found.then_some(Self(()))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Search for Avx2 {
    #[inline(always)]
    fn gather(self, word: u64, mask: u64) -> u64 {
        // SAFETY: the value says that the processor has BMI2.
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }

    #[inline(always)]
    unsafe fn within(self, paths: *const u32, bits: u32) -> u32 {
        use std::arch::x86_64::{
            _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256,
            _mm256_movemask_ps, _mm256_set1_epi32,
        };
        // SAFETY: the value says that the processor has AVX2, and the caller promises that eight
        // paths can be read.
        unsafe {
            let paths = _mm256_loadu_si256(paths.cast());
            let common = _mm256_and_si256(paths, _mm256_set1_epi32(bits.cast_signed()));
            let equal = _mm256_cmpeq_epi32(common, paths);
            _mm256_movemask_ps(_mm256_castsi256_ps(equal)).cast_unsigned()
        }
    }

    /// Compares with both at once. A branch on the length of the prefix, which comes with the
    /// block, would seldom be predicted, and the processor could not go ahead meanwhile.
    #[inline(always)]
    fn equal(self, key: &[u8], prefix: &[u8], rest: &[u8]) -> bool {
        use std::arch::x86_64::{
            _mm256_add_epi32, _mm256_andnot_si256, _mm256_cmpgt_epi32, _mm256_maskload_epi32,
            _mm256_or_si256, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_setzero_si256,
            _mm256_testz_si256, _mm256_xor_si256,
        };
        let (Some(tail), Some(key_tail)) = (rest.last_chunk::<4>(), key.last_chunk::<4>()) else {
            return Portable.equal(key, prefix, rest);
        };
        let whole_lanes = prefix.len().is_multiple_of(4) && key.len() <= Prefixed::MAX_PIECES;
        if key.len() != prefix.len() + rest.len() || !whole_lanes {
            return Portable.equal(key, prefix, rest);
        }
        // SAFETY: the value says that the processor has AVX2. A lane of four bytes is read from the
        // prefix if it begins there: it ends there, too, as the length is a multiple of four. It is
        // read from the key if it ends there, and from the rest if this is so and it does not begin
        // in the prefix. No other lane is read. Lengths fit, as they are at most `MAX_PIECES`.
        unsafe {
            let prefix_len = _mm256_set1_epi32(prefix.len() as i32);
            let lanes_end = _mm256_set1_epi32(key.len() as i32 - 3);
            let lanes = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
            let virtual_rest = rest.as_ptr().wrapping_sub(prefix.len());
            let mut differ = _mm256_setzero_si256();
            for at in (0..key.len()).step_by(32) {
                let here = _mm256_add_epi32(lanes, _mm256_set1_epi32(at as i32));
                let in_prefix = _mm256_cmpgt_epi32(prefix_len, here);
                let in_key = _mm256_cmpgt_epi32(lanes_end, here);
                let in_rest = _mm256_andnot_si256(in_prefix, in_key);
                let load = |from: *const u8, mask| {
                    _mm256_maskload_epi32(from.wrapping_add(at).cast(), mask)
                };
                let stored =
                    _mm256_or_si256(load(prefix.as_ptr(), in_prefix), load(virtual_rest, in_rest));
                let key = load(key.as_ptr(), in_key);
                differ = _mm256_or_si256(differ, _mm256_xor_si256(stored, key));
            }
            _mm256_testz_si256(differ, differ) == 1 && tail == key_tail
        }
    }
}

#[cfg(all(test, target_arch = "x86_64", not(any(miri, silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn avx2_compares_as_portable_code_does() {
        let Some(avx2) = Avx2::detect() else { return };
        let key: Vec<u8> = (0..=u8::MAX).cycle().take(Prefixed::MAX_PIECES).collect();
        // Each piece lies apart, among other bytes.
        let apart = |piece: &[u8], other: u8| [&[other; 40][..], piece, &[other; 40]].concat();
        let equal = |key: &[u8], first: &[u8], rest: &[u8]| {
            let apart = [apart(key, 1), apart(first, 2), apart(rest, 3)];
            let [key, first, rest] = [0, 1, 2].map(|at| &apart[at][40..apart[at].len() - 40]);
            avx2.equal(key, first, rest)
        };
        let lens = [0, 1, 3, 4, 5, 7, 8, 31, 32, 33, 35, 36, 63, 64, 65, 100, 300, key.len() - 1];
        for (len, prefix) in lens.into_iter().flat_map(|len| (0..=len).map(move |at| (len, at))) {
            let key = &key[..len];
            let (first, rest) = key.split_at(prefix);
            assert!(equal(key, first, rest), "{len} {prefix}");
            assert!(!equal(key, first, &[rest, b"x"].concat()), "{len} {prefix}");
            // Each byte counts.
            for at in (0..len).filter(|at| len < 101 || at % 7 == 0) {
                let mut other = key.to_vec();
                other[at] ^= 1;
                assert!(!equal(&other, first, rest), "{len} {prefix} {at}");
                let (first, rest) = other.split_at(prefix);
                assert!(!equal(key, first, rest), "{len} {prefix} {at}");
            }
        }
    }
}
