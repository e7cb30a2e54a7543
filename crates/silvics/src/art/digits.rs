//! Sets of digits.

use super::key::Digit;

/// A set of digits. Each digit has a number: that of the end is 0, that of a byte is the byte plus
/// 1.
#[derive(Clone, Copy, Default)]
pub(super) struct Digits {
    bytes: [u64; 4],
    end: bool,
}

/// The number of digits.
pub(super) const NUMBERS: usize = 257;

/// The number of a digit.
#[inline(always)]
pub(super) fn number(digit: Digit) -> usize {
    digit.map_or(0, |byte| usize::from(byte) + 1)
}

impl Digits {
    /// The set of all bytes, with the end or without.
    pub(super) fn all(end: bool) -> Self {
        Self { bytes: [u64::MAX; 4], end }
    }

    pub(super) fn add(&mut self, byte: u8) {
        self.bytes[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    /// Adds the end if `end` is true.
    pub(super) fn add_end(&mut self, end: bool) {
        self.end |= end;
    }

    /// Keeps those of the sixteen bytes from `from`, a multiple of sixteen, that are in `set`.
    #[inline(always)]
    pub(super) fn keep(&mut self, from: usize, set: u16) {
        self.bytes[from / 64] &= !(0xffff << (from % 64)) | u64::from(set) << (from % 64);
    }

    /// The number of digits in the set.
    pub(super) fn count(&self) -> usize {
        let bytes = self.bytes.iter().map(|word| word.count_ones());
        bytes.sum::<u32>() as usize + usize::from(self.end)
    }

    /// The first digit whose number is `from` or more.
    #[inline(always)]
    pub(super) fn first_from(&self, from: usize) -> Option<Digit> {
        if from == 0 && self.end {
            return Some(None);
        }
        let from = from.saturating_sub(1);
        let mut at = from / 64;
        let mut word = self.bytes.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.bytes.get(at)?;
        }
        Some(Some((64 * at) as u8 + word.trailing_zeros() as u8))
    }

    /// The last digit whose number is less than `to`.
    #[inline(always)]
    pub(super) fn last_before(&self, to: usize) -> Option<Digit> {
        let end = || (to > 0 && self.end).then_some(None);
        let Some(last) = to.checked_sub(2) else { return end() };
        let mut at = last / 64;
        let mut word = self.bytes[at] & (u64::MAX >> (63 - last % 64));
        while word == 0 {
            let Some(before) = at.checked_sub(1) else { return end() };
            at = before;
            word = self.bytes[at];
        }
        Some(Some((64 * at) as u8 + 63 - word.leading_zeros() as u8))
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn sets_of_digits_are_walked_both_ways() {
        let mut digits = Digits { end: true, ..Digits::default() };
        for byte in [0, 63, 64, 200, 255] {
            digits.add(byte);
        }
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(digit) = digits.first_from(at) {
            up.push(digit);
            at = number(digit) + 1;
        }
        at = NUMBERS;
        while let Some(digit) = digits.last_before(at) {
            down.push(digit);
            at = number(digit);
        }
        assert_eq!(up, [None, Some(0), Some(63), Some(64), Some(200), Some(255)]);
        down.reverse();
        assert_eq!(up, down);
        assert_eq!(Digits::default().first_from(0), None);
        assert_eq!(Digits::default().last_before(NUMBERS), None);
    }
}
