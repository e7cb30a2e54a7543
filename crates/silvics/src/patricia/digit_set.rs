//! The digits for which a node of the build `compact` has a slot. A slot's number is the number of
//! smaller digits in the set.

/// A set of digits that never changes once it is made.
pub trait DigitSet: Copy + Send + Sync + 'static {
    /// The set of these digits, which ascend.
    #[doc(hidden)]
    fn of(digits: impl Iterator<Item = u32>) -> Self;
    /// The number of a digit's slot, if the digit is in the set.
    #[doc(hidden)]
    fn number(&self, digit: u32) -> Option<usize>;
    /// The number of digits.
    #[doc(hidden)]
    fn len(&self) -> usize;
}

/// Up to 64 digits: a bit for each.
#[derive(Clone, Copy, Debug)]
pub struct Few(u64);

impl DigitSet for Few {
    fn of(digits: impl Iterator<Item = u32>) -> Self {
        Self(digits.fold(0, |bits, digit| bits | 1 << digit))
    }
    #[inline(always)]
    fn number(&self, digit: u32) -> Option<usize> {
        let below = self.0 & ((1 << digit) - 1);
        (self.0 >> digit & 1 != 0).then(|| below.count_ones() as usize)
    }
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.count_ones() as usize
    }
}

/// Sixteen digits: a bit for each, and the number of its slot. To count bits takes some ten
/// instructions on the machines that Rust compiles for by default, and a search does it at each
/// node.
#[derive(Clone, Copy, Debug)]
pub struct Sixteen {
    /// Four bits for each digit.
    numbers: u64,
    bits: u16,
    len: u16,
}

impl DigitSet for Sixteen {
    fn of(digits: impl Iterator<Item = u32>) -> Self {
        let mut set = Self { numbers: 0, bits: 0, len: 0 };
        for digit in digits {
            set.numbers |= u64::from(set.len) << (4 * digit);
            set.bits |= 1 << digit;
            set.len += 1;
        }
        set
    }
    #[inline(always)]
    fn number(&self, digit: u32) -> Option<usize> {
        let number = (self.numbers >> (4 * digit) & 15) as usize;
        (self.bits >> digit & 1 != 0).then_some(number)
    }
    #[inline(always)]
    fn len(&self) -> usize {
        usize::from(self.len)
    }
}

/// 256 digits: a bit for each, and the number of digits in the words before.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    bits: [u64; 4],
    before: [u16; 4],
}

impl DigitSet for Bytes {
    fn of(digits: impl Iterator<Item = u32>) -> Self {
        let mut set = Self { bits: [0; 4], before: [0; 4] };
        for digit in digits {
            set.bits[digit as usize / 64] |= 1 << (digit % 64);
        }
        for word in 1..4 {
            set.before[word] = set.before[word - 1] + set.bits[word - 1].count_ones() as u16;
        }
        set
    }
    #[inline(always)]
    fn number(&self, digit: u32) -> Option<usize> {
        let word = digit as usize / 64 % 4;
        let below = self.bits[word] & ((1 << (digit % 64)) - 1);
        let number = usize::from(self.before[word]) + below.count_ones() as usize;
        (self.bits[word] >> (digit % 64) & 1 != 0).then_some(number)
    }
    #[inline(always)]
    fn len(&self) -> usize {
        usize::from(self.before[3]) + self.bits[3].count_ones() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<S: DigitSet>(alphabet: u32) {
        for step in 1..7 {
            for first in 0..alphabet.min(70) {
                let digits = || (first..alphabet).step_by(step);
                let set = S::of(digits());
                assert_eq!(set.len(), digits().count());
                for digit in 0..alphabet {
                    assert_eq!(set.number(digit), digits().position(|of| of == digit), "{digit}");
                }
            }
        }
        assert_eq!(S::of(std::iter::empty()).len(), 0);
    }

    #[test]
    fn slots_have_the_order_of_digits() {
        numbers::<Few>(2);
        numbers::<Few>(4);
        numbers::<Sixteen>(16);
        numbers::<Bytes>(256);
    }
}
