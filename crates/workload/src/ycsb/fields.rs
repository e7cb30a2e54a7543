//! Field values that a reader can check.
//!
//! A value consists of words, each with its lowest byte first, and may end within a word. Word 0 is
//! the writer's *stamp*. The others depend on the record, the field, the stamp and their place:
//! word i is a hash of the first three plus i times a constant, so one addition makes the next
//! word. A value of another record or field, or of two writers mixed, fails the check.

use crate::bijection::{GOLDEN, mix};
use std::fmt;

/// The bytes at the start of a value that [`check_head`] reads: the stamp, and one word that proves
/// the record and the field.
pub const HEAD_BYTES: usize = 16;

const WORD: usize = size_of::<u64>();

/// The reason why a value is not that of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// The number of the record.
    pub record: u64,
    /// The number of the field.
    pub field: u32,
    /// The stamp that the value claims.
    pub stamp: u64,
    /// The place of the first wrong byte, rounded down to a word.
    pub at: usize,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, field, stamp, at } = self;
        write!(
            f,
            "field {field} of record {record} is not what writer {stamp:#x} wrote, from byte {at} \
             on: the engine mixed up records, fields or versions"
        )
    }
}

impl std::error::Error for FieldError {}

/// Fills the value of a field. `stamp` tells writes apart: for example the number of the thread and
/// that of its write.
///
/// A value with less than 8 bytes has no room for the stamp, and depends on the record and the
/// field only.
///
/// ```
/// use silvics_workload::ycsb::{check_field, fill_field};
///
/// let mut value = [0; 100];
/// fill_field(7, 3, 42, &mut value);
/// assert_eq!(check_field(7, 3, &value), Ok(42));
/// assert!(check_field(8, 3, &value).is_err());
/// value[99] ^= 1;
/// assert_eq!(check_field(7, 3, &value).unwrap_err().at, 96);
/// ```
#[inline]
pub fn fill_field(record: u64, field: u32, stamp: u64, value: &mut [u8]) {
    if value.len() < WORD {
        let word = base(record, field, 0).to_le_bytes();
        value.copy_from_slice(&word[..value.len()]);
        return;
    }
    let (head, body) = value.split_at_mut(WORD);
    head.copy_from_slice(&stamp.to_le_bytes());
    let mut word = base(record, field, stamp);
    let (words, rest) = body.as_chunks_mut();
    for bytes in words {
        *bytes = word.to_le_bytes();
        word = word.wrapping_add(GOLDEN);
    }
    rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
}

/// Checks each byte of a field's value, and returns its stamp. A value with less than 8 bytes has
/// the stamp 0.
#[inline]
pub fn check_field(record: u64, field: u32, value: &[u8]) -> Result<u64, FieldError> {
    let (stamp, body) = stamp_of(value);
    let wrong = |at: usize| FieldError { record, field, stamp, at };
    let mut word = base(record, field, stamp);
    let (words, rest) = body.as_chunks();
    let mut difference = 0;
    for bytes in words {
        difference |= u64::from_le_bytes(*bytes) ^ word;
        word = word.wrapping_add(GOLDEN);
    }
    if difference != 0 {
        return Err(wrong(first_wrong(base(record, field, stamp), words)));
    }
    if rest != &word.to_le_bytes()[..rest.len()] {
        return Err(wrong(value.len() - rest.len()));
    }
    Ok(stamp)
}

/// Checks the first [`HEAD_BYTES`] bytes of a field's value, and returns its stamp. It costs a few
/// nanoseconds at any length.
#[inline]
pub fn check_head(record: u64, field: u32, value: &[u8]) -> Result<u64, FieldError> {
    check_field(record, field, &value[..value.len().min(HEAD_BYTES)])
}

/// The stamp of a value, and the bytes behind it.
#[inline]
fn stamp_of(value: &[u8]) -> (u64, &[u8]) {
    match value.split_first_chunk() {
        Some((stamp, body)) => (u64::from_le_bytes(*stamp), body),
        None => (0, value),
    }
}

/// The place in the value of the first wrong word. It is out of line, because it is rare.
#[cold]
fn first_wrong(base: u64, words: &[[u8; WORD]]) -> usize {
    let place = |i: usize| base.wrapping_add(GOLDEN.wrapping_mul(i as u64)).to_le_bytes();
    let wrong = words.iter().enumerate().position(|(i, bytes)| *bytes != place(i));
    WORD * (1 + wrong.unwrap_or(0))
}

/// The word that the others follow from.
#[inline]
pub(crate) fn base(record: u64, field: u32, stamp: u64) -> u64 {
    mix(mix(record.wrapping_mul(GOLDEN) ^ u64::from(field)) ^ stamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(record: u64, field: u32, stamp: u64, len: usize) -> Vec<u8> {
        let mut value = vec![0xee; len];
        fill_field(record, field, stamp, &mut value);
        value
    }

    #[test]
    fn values_are_fixed() {
        // These values are in stored results: they must not change.
        assert_eq!(filled(7, 3, 42, 20), GOLDEN_VALUE);
        assert_eq!(filled(7, 3, 42, 3), GOLDEN_SHORT);
    }

    const GOLDEN_VALUE: [u8; 20] =
        [42, 0, 0, 0, 0, 0, 0, 0, 203, 48, 33, 98, 182, 53, 71, 5, 224, 172, 107, 225];
    const GOLDEN_SHORT: [u8; 3] = [87, 169, 1];

    #[test]
    fn a_mix_of_two_writers_is_found() {
        let (mut torn, other) = (filled(1, 1, 5, 100), filled(1, 1, 6, 100));
        torn[48..].copy_from_slice(&other[48..]);
        let error = check_field(1, 1, &torn).unwrap_err();
        assert_eq!(error, FieldError { record: 1, field: 1, stamp: 5, at: 48 });
        let text = error.to_string();
        assert!(text.starts_with("field 1 of record 1 is not what writer 0x5 wrote, from byte 48"));
        assert_eq!(check_head(1, 1, &torn), Ok(5));
    }

    #[test]
    fn short_values_prove_their_record() {
        for len in 4..16 {
            let value = filled(9, 2, 3, len);
            let stamp = if len < 8 { 0 } else { 3 };
            assert_eq!(check_field(9, 2, &value), Ok(stamp));
            if !(8..12).contains(&len) {
                assert!(check_field(10, 2, &value).is_err() && check_field(9, 3, &value).is_err());
            }
        }
        assert_eq!(check_field(9, 2, &[]), Ok(0));
    }

    proptest! {
        #[test]
        fn stamps_come_back(record: u64, field: u32, stamp: u64, len in 8_usize..300) {
            let value = filled(record, field, stamp, len);
            prop_assert_eq!(check_field(record, field, &value), Ok(stamp));
            prop_assert_eq!(check_head(record, field, &value), Ok(stamp));
        }

        #[test]
        fn any_changed_bit_is_found(
            record: u64, field: u32, stamp: u64, len in 16_usize..300, bit in 0_usize..2400,
        ) {
            let mut value = filled(record, field, stamp, len);
            let bit = bit % (8 * len);
            value[bit / 8] ^= 1 << (bit % 8);
            let error = check_field(record, field, &value).unwrap_err();
            prop_assert_eq!(error.at, (bit / 64 * 8).max(8));
            prop_assert_eq!(check_head(record, field, &value).is_err(), bit < 128);
        }

        #[test]
        fn values_of_others_are_found(
            a: (u64, u32), b: (u64, u32), stamp: u64, len in 16_usize..64,
        ) {
            prop_assume!(a != b);
            let value = filled(a.0, a.1, stamp, len);
            prop_assert!(check_head(b.0, b.1, &value).is_err());
        }

        #[test]
        fn no_value_panics(record: u64, field: u32, value: Vec<u8>) {
            let _ = check_field(record, field, &value);
            let _ = check_head(record, field, &value);
        }
    }
}
