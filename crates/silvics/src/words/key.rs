//! Keys that are numbers.

use crate::encoding::IndexKey;

/// The keys of a [`WordTree`](crate::WordTree): `u64` and `u128`.
pub trait WordKey:
    for<'k> IndexKey<Ref<'k> = Self, Owned = Self>
    + private::Sealed
    + Copy
    + Ord
    + std::fmt::Debug
    + Send
    + Sync
{
    /// The bits of a key.
    #[doc(hidden)]
    const BITS: u32;
    /// The words of a stored key.
    #[doc(hidden)]
    const WORDS: usize;
    /// The entries of a group.
    #[doc(hidden)]
    const PER_GROUP: usize;
    /// The words of a group.
    #[doc(hidden)]
    const GROUP_WORDS: usize;
    /// The smallest and the largest key.
    #[doc(hidden)]
    const ENDS: [Self; 2];

    /// The number that some bits of the key make, from bit `shift` up.
    #[doc(hidden)]
    fn bits(self, shift: u32, bits: u32) -> usize;
    /// The key without its bits below `bit`.
    #[doc(hidden)]
    #[must_use]
    fn above(self, bit: u32) -> Self;
    /// The largest key that has these bits from `bit` up.
    #[doc(hidden)]
    #[must_use]
    fn last_above(self, bit: u32) -> Self;
    /// The key with a number added to the bits from `shift` up, which does not overflow.
    #[doc(hidden)]
    #[must_use]
    fn with(self, shift: u32, number: usize) -> Self;
    /// The next larger key, or the next smaller one.
    #[doc(hidden)]
    fn next(self, descends: bool) -> Option<Self>;
    /// The bits of the key, the low ones first.
    #[doc(hidden)]
    fn words(self) -> [u64; 2];
    /// The key of such words.
    #[doc(hidden)]
    fn of_words(words: [u64; 2]) -> Self;
    /// A hash of 32 bits.
    #[doc(hidden)]
    fn hash(self) -> u32;
    /// The highest bit in which two keys differ.
    #[doc(hidden)]
    fn difference(self, other: Self) -> Option<u32>;
    /// The key as it is stored: all but its first two bits, with the number 1 below.
    #[doc(hidden)]
    fn stored(self) -> Stored;
    /// The first two bits of the key, which are not stored.
    #[doc(hidden)]
    #[must_use]
    fn top(self) -> Self;
    /// The key of a stored one, whose first two bits are `top`.
    #[doc(hidden)]
    fn restored(stored: Stored, top: Self) -> Self;
}

/// The words of a stored key, the low one first. The second one is 0 if the key has one word.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored(pub(super) u64, pub(super) u64);

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

/// The multiplier of Fibonacci hashing (Knuth, volume 3, section 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Another odd number without a pattern: the fraction of the square root of 2.
const OTHER: u64 = 0x6A09_E667_F3BC_C909;

macro_rules! word_key {
    ($key:ty, words: $words:literal, group: $per_group:expr, $group_words:expr) => {
        const _: () = {
            /// The first bit of the high word, if there is one.
            const HIGH: u32 = <$key>::BITS.saturating_sub(66);

            impl WordKey for $key {
                const BITS: u32 = <$key>::BITS;
                const WORDS: usize = $words;
                const PER_GROUP: usize = $per_group;
                const GROUP_WORDS: usize = $group_words;
                const ENDS: [Self; 2] = [0, <$key>::MAX];

                #[inline(always)]
                fn bits(self, shift: u32, bits: u32) -> usize {
                    (self >> (shift & (<$key>::BITS - 1))) as usize & ((1 << (bits & 31)) - 1)
                }
                #[inline(always)]
                fn above(self, bit: u32) -> Self {
                    if bit >= <$key>::BITS { 0 } else { self >> bit << bit }
                }
                #[inline(always)]
                fn last_above(self, bit: u32) -> Self {
                    if bit >= <$key>::BITS { <$key>::MAX } else { self | ((1 << bit) - 1) }
                }
                #[inline(always)]
                fn with(self, shift: u32, number: usize) -> Self {
                    self + ((number as $key) << shift)
                }
                #[inline(always)]
                fn next(self, descends: bool) -> Option<Self> {
                    if descends { self.checked_sub(1) } else { self.checked_add(1) }
                }
                #[inline(always)]
                fn words(self) -> [u64; 2] {
                    [self as u64, (u128::from(self) >> 64) as u64]
                }
                #[inline(always)]
                fn of_words([low, high]: [u64; 2]) -> Self {
                    (u128::from(high) << 64 | u128::from(low)) as Self
                }
                #[inline(always)]
                fn hash(self) -> u32 {
                    let mut low = self as u64;
                    if $words > 1 {
                        low ^= ((self >> (<$key>::BITS - 64)) as u64)
                            .wrapping_mul(OTHER)
                            .rotate_left(32);
                    }
                    (low.wrapping_mul(GOLDEN) >> 32) as u32
                }
                #[inline(always)]
                fn difference(self, other: Self) -> Option<u32> {
                    (self != other).then(|| <$key>::BITS - 1 - (self ^ other).leading_zeros())
                }
                #[inline(always)]
                fn stored(self) -> Stored {
                    let high = if $words > 1 { (self >> HIGH) as u64 } else { 0 };
                    Stored((self as u64) << 2 | 1, high)
                }
                #[inline(always)]
                fn top(self) -> Self {
                    self.above(<$key>::BITS - 2)
                }
                #[inline(always)]
                fn restored(Stored(low, high): Stored, top: Self) -> Self {
                    let mut key = (low >> 2) as $key;
                    if $words > 1 {
                        key |= (high as $key) << HIGH;
                    }
                    top | key
                }
            }
        };
    };
}

word_key!(u64, words: 1, group: if cfg!(silvics_shuttle) { 2 } else { 4 }, 8);
word_key!(u128, words: 2, group: 5, 16);
