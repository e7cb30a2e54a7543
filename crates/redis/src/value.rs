//! Values: byte strings in eight bytes.
//!
//! # Algorithm
//! A value is one word. Its two lowest bits say what the other bits are:
//!
//! | bits | the value | the other bits |
//! |---|---|---|
//! | `01` | up to 7 bytes | the length in three bits, the bytes in the seven upper bytes |
//! | `10` | an integer, as its decimal text | the integer, in 62 bits |
//! | `00` | any other bytes | the address of a block: the length in four bytes, then the bytes |
//!
//! # Invariants
//! * T1: a word with the lowest bits `00` is the address of a block of [`words`] words that
//!   [`Value::boxed`] has made, and only this value owns it. A block never changes.
//! * T2: a text becomes an integer only if the integer's decimal form is that text. So the bytes
//!   that come out are those that went in.

use std::fmt;
use std::ptr::{slice_from_raw_parts_mut, with_exposed_provenance, with_exposed_provenance_mut};

/// The most bytes of a value.
pub const MAX_VALUE: usize = u32::MAX as usize;

const FORM: u64 = 0b11;
const BLOCK: u64 = 0b00;
const INLINE: u64 = 0b01;
const INTEGER: u64 = 0b10;

/// The most bytes that are stored in the word itself.
const MAX_INLINE: usize = 7;
/// Integers have less than this magnitude.
const INTEGERS: i64 = 1 << 61;
/// The bytes of the length in a block.
const LENGTH: usize = 4;

// The bytes of an inline value are those behind the first one in memory, and an address is a word.
const _: () = assert!(cfg!(target_endian = "little") && size_of::<usize>() == 8);

/// A byte string that never changes, in eight bytes and at most one block of memory.
pub struct Value(u64);

/// Memory was not available for a value, or a value is longer than [`MAX_VALUE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// A place for the text of an integer.
#[derive(Default)]
pub struct Digits(itoa::Buffer);

/// A value as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer of 64 bits.
    Integer(i64),
    /// A finite number with a fraction or an exponent, or beyond 64 bits.
    Float(f64),
}

/// The words of a block for `len` bytes.
fn words(len: usize) -> usize {
    (LENGTH + len).div_ceil(8)
}

/// The integer whose decimal form is this text, if its magnitude is small enough.
fn canonical(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !(1..=19).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits[0] == b'0' && text.len() > 1 {
        return None; // zeros in front, or a negative zero
    }
    let integer: i64 = str::from_utf8(text).ok()?.parse().ok()?;
    (-INTEGERS..INTEGERS).contains(&integer).then_some(integer)
}

impl Value {
    /// Makes a value. Fails if memory for a block cannot be allocated.
    pub fn new(bytes: &[u8]) -> Result<Self, OutOfMemory> {
        if bytes.len() <= MAX_INLINE {
            let mut word = [0; 8];
            word[0] = (INLINE as u8) | ((bytes.len() as u8) << 2);
            word[1..=bytes.len()].copy_from_slice(bytes);
            return Ok(Self(u64::from_le_bytes(word)));
        }
        match canonical(bytes) {
            Some(integer) => Ok(Self(((integer as u64) << 2) | INTEGER)),
            None => Self::boxed(bytes),
        }
    }

    fn boxed(bytes: &[u8]) -> Result<Self, OutOfMemory> {
        let len = u32::try_from(bytes.len()).map_err(|_| OutOfMemory)?;
        let mut block: Vec<u64> = Vec::new();
        block.try_reserve_exact(words(bytes.len())).map_err(|_| OutOfMemory)?;
        block.resize(words(bytes.len()), 0);
        let block: *mut u8 = Box::into_raw(block.into_boxed_slice()).cast();
        // SAFETY: the block is new and has room for the length and the bytes.
        unsafe {
            block.cast::<u32>().write(len);
            block.add(LENGTH).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Ok(Self(block.expose_provenance() as u64))
    }

    fn form(&self) -> u64 {
        self.0 & FORM
    }

    /// The bytes, for which `digits` is the place if the value is an integer. Takes O(1).
    #[inline]
    pub fn bytes<'a>(&'a self, digits: &'a mut Digits) -> &'a [u8] {
        match self.form() {
            // SAFETY: the length is at most 7, and the word has as many bytes behind its first one.
            INLINE => unsafe {
                let first = (&raw const self.0).cast::<u8>();
                std::slice::from_raw_parts(first.add(1), (self.0 as usize & 0xff) >> 2)
            },
            INTEGER => digits.0.format(self.integer()).as_bytes(),
            _ => self.block(),
        }
    }

    fn integer(&self) -> i64 {
        debug_assert_eq!(self.form(), INTEGER);
        (self.0 as i64) >> 2
    }

    fn block(&self) -> &[u8] {
        debug_assert_eq!(self.form(), BLOCK);
        let block = with_exposed_provenance::<u8>(self.0 as usize);
        // SAFETY: T1: the block has its length and as many bytes, and lives as long as the value.
        unsafe {
            std::slice::from_raw_parts(block.add(LENGTH), block.cast::<u32>().read() as usize)
        }
    }

    /// The value as a number. It is one if its text is a decimal integer, or a finite floating
    /// point number as Rust parses it.
    #[inline]
    pub fn number(&self) -> Option<Number> {
        if self.form() == INTEGER {
            return Some(Number::Integer(self.integer()));
        }
        let mut digits = Digits::default();
        let text = str::from_utf8(self.bytes(&mut digits)).ok()?;
        if let Ok(integer) = text.parse() {
            return Some(Number::Integer(integer));
        }
        let float: f64 = text.parse().ok()?;
        float.is_finite().then_some(Number::Float(float))
    }

    /// The bytes of memory that were requested for the value's block, beside the value itself.
    pub fn block_bytes(&self) -> usize {
        if self.form() == BLOCK { 8 * words(self.block().len()) } else { 0 }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if self.form() == BLOCK {
            let words = words(self.block().len());
            let block = with_exposed_provenance_mut::<u64>(self.0 as usize);
            // SAFETY: T1: the block is a leaked box of so many words, which this value owns alone.
            drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(block, words)) });
        }
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        self.bytes(&mut Digits::default()) == other
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes(&mut Digits::default()).escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(bytes: &[u8]) -> Value {
        let value = Value::new(bytes).unwrap();
        assert_eq!(value.bytes(&mut Digits::default()), bytes);
        value
    }

    #[test]
    fn texts_that_are_nearly_integers_stay_as_they_are() {
        for text in [
            "00000001",
            "+12345678",
            "-0",
            "-00000001",
            "12345678 ",
            " 12345678",
            "1234567.8",
            "2305843009213693952",
            "-2305843009213693953",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "99999999999999999999",
            "--------",
            "",
        ] {
            assert_ne!(round_trip(text.as_bytes()).form(), INTEGER, "{text}");
        }
    }

    #[test]
    fn integers_need_no_block() {
        for integer in [12_345_678, -12_345_678, INTEGERS - 1, -INTEGERS, 1_700_000_000_000] {
            let value = round_trip(integer.to_string().as_bytes());
            assert_eq!((value.form(), value.block_bytes()), (INTEGER, 0));
            assert_eq!(value.number(), Some(Number::Integer(integer)));
        }
    }

    #[test]
    fn numbers_are_finite() {
        let number = |text: &str| round_trip(text.as_bytes()).number();
        assert_eq!(number("17"), Some(Number::Integer(17)));
        assert_eq!(number("00000000017"), Some(Number::Integer(17)));
        assert_eq!(number("-1.5e3"), Some(Number::Float(-1500.0)));
        assert_eq!(number("9223372036854775808"), Some(Number::Float(9_223_372_036_854_775_808.0)));
        for text in ["", "x", "inf", "NaN", "1e999", "1 ", "0x10"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let value = round_trip(&bytes);
            prop_assert_eq!(value.block_bytes() == 0, bytes.len() <= MAX_INLINE || value.form() == INTEGER);
        }

        #[test]
        fn every_integer_comes_back(integer: i64) {
            let value = round_trip(integer.to_string().as_bytes());
            prop_assert_eq!(value.number(), Some(Number::Integer(integer)));
        }
    }
}
