//! Encodings of Python's keys that keep Python's order.
//!
//! | keys | form | encoding |
//! |---|---|---|
//! | `int` | `u64` | the number with the sign bit flipped |
//! | `float` | `u64` | the bits: all flipped for negative numbers, else only the sign bit; -0.0 is written as 0.0 |
//! | `str` | bytes | UTF-8, in which a lone surrogate has its three bytes |
//! | `bytes` | bytes | themselves |
//! | `tuple` | bytes | its elements, one after another |
//!
//! Python compares strings by code points. UTF-8 has the same order, also with lone surrogates.
//!
//! # Elements of tuples
//! An element is a tag, and then:
//! * for a number, the eight bytes of its word, with the most significant byte first;
//! * for a string of characters or bytes, its bytes, in which `00` becomes `00 ff`, and then `00`;
//! * for a tuple, its elements, and then `00`.
//!
//! Elements at one position have one type ([`crate::shape`]), so tags do not decide the order of
//! two elements. The end of a string is a `00`, behind which there is a tag, a `00` or nothing. All
//! of these are smaller than `ff`, so a string comes before those that continue it. The end of a
//! tuple is smaller than a tag, so a tuple comes before those that continue it. The outermost tuple
//! has no `00` at its end. So the encoding of a tuple is a prefix of the encodings of all tuples
//! that begin with its elements.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;

/// The word of an integer.
#[inline]
pub fn int_to_word(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

/// The integer of a word.
#[inline]
pub fn word_to_int(word: u64) -> i64 {
    (word ^ 1 << 63) as i64
}

/// The word of a float, or `None` for NaN, which has no place in an order. -0.0 has the word of
/// 0.0, to which it is equal.
#[inline]
pub fn float_to_word(number: f64) -> Option<u64> {
    let bits = (number + 0.0).to_bits();
    let flipped = if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 };
    (!number.is_nan()).then_some(flipped)
}

/// The float of a word.
#[inline]
pub fn word_to_float(word: u64) -> f64 {
    f64::from_bits(if word >> 63 == 1 { word ^ 1 << 63 } else { !word })
}

/// The float that is equal to an integer, if there is one.
pub fn exact_float(number: i64) -> Option<f64> {
    let float = number as f64;
    // 2^63 itself is no `i64`, but the largest integers round to it.
    (float < 9_223_372_036_854_775_808.0 && float as i64 == number).then_some(float)
}

/// A part of a key: an element of a tuple, or a tuple.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// An `int`.
    Int(i64),
    /// A `float` that is no NaN.
    Float(f64),
    /// The UTF-8 of a `str`.
    Str(Cow<'a, [u8]>),
    /// A `bytes`.
    Bytes(Cow<'a, [u8]>),
    /// A `tuple`.
    Tuple(Vec<Part<'a>>),
}

/// The order of Python, for parts that Python can compare.
impl PartialOrd for Part<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(two)) => Some(one.cmp(two)),
            (Self::Float(one), Self::Float(two)) => one.partial_cmp(two),
            (Self::Str(one), Self::Str(two)) | (Self::Bytes(one), Self::Bytes(two)) => {
                Some(one.cmp(two))
            }
            (Self::Tuple(one), Self::Tuple(two)) => one.partial_cmp(two),
            _ => None,
        }
    }
}

const INT: u8 = 1;
const FLOAT: u8 = 2;
const STR: u8 = 3;
const BYTES: u8 = 4;
const TUPLE: u8 = 5;
const END: u8 = 0;
/// The byte behind a `00` of a string; larger than each byte that can be behind its end.
const ESCAPE: u8 = 0xff;

/// Appends the encoding of the elements of a tuple.
pub fn write_parts(parts: &[Part<'_>], to: &mut Vec<u8>) {
    for part in parts {
        write_part(part, to);
    }
}

fn write_part(part: &Part<'_>, to: &mut Vec<u8>) {
    let word = |tag, word: u64, to: &mut Vec<u8>| {
        to.push(tag);
        to.extend_from_slice(&word.to_be_bytes());
    };
    match part {
        Part::Int(number) => word(INT, int_to_word(*number), to),
        // A NaN is refused where a part is made.
        Part::Float(number) => word(FLOAT, float_to_word(*number).unwrap_or(u64::MAX), to),
        Part::Str(bytes) => write_string(STR, bytes, to),
        Part::Bytes(bytes) => write_string(BYTES, bytes, to),
        Part::Tuple(parts) => {
            to.push(TUPLE);
            write_parts(parts, to);
            to.push(END);
        }
    }
}

fn write_string(tag: u8, bytes: &[u8], to: &mut Vec<u8>) {
    to.push(tag);
    for (at, run) in bytes.split(|byte| *byte == END).enumerate() {
        if at > 0 {
            to.extend_from_slice(&[END, ESCAPE]);
        }
        to.extend_from_slice(run);
    }
    to.push(END);
}

/// Reads the encoding of the elements of a tuple. Returns `None` if it is none.
pub fn read_parts(mut from: &[u8]) -> Option<Vec<Part<'_>>> {
    let parts = read_until_end(&mut from)?;
    from.is_empty().then_some(parts)
}

/// Reads elements up to the end of their tuple, or of all bytes.
fn read_until_end<'a>(from: &mut &'a [u8]) -> Option<Vec<Part<'a>>> {
    let mut parts = Vec::new();
    while let Some((tag, rest)) = from.split_first() {
        *from = rest;
        parts.push(match *tag {
            INT => Part::Int(word_to_int(read_word(from)?)),
            FLOAT => Part::Float(word_to_float(read_word(from)?)),
            STR => Part::Str(read_string(from)?),
            BYTES => Part::Bytes(read_string(from)?),
            TUPLE => Part::Tuple(read_until_end(from)?),
            END => return Some(parts),
            _ => return None,
        });
    }
    Some(parts)
}

fn read_word(from: &mut &[u8]) -> Option<u64> {
    let (word, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_be_bytes(*word))
}

fn read_string<'a>(from: &mut &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let mut string = Cow::Borrowed(&[][..]);
    loop {
        let end = from.iter().position(|byte| *byte == END)?;
        let (run, rest) = (&from[..end], &from[end + 1..]);
        if string.is_empty() {
            string = Cow::Borrowed(run);
        } else {
            string.to_mut().extend_from_slice(run);
        }
        let Some((&ESCAPE, rest)) = rest.split_first() else {
            *from = rest;
            return Some(string);
        };
        string.to_mut().push(END);
        *from = rest;
    }
}

/// The bound behind all byte strings that begin with `prefix`.
pub fn behind(prefix: &[u8]) -> Bound<Vec<u8>> {
    let Some(last) = prefix.iter().rposition(|byte| *byte != u8::MAX) else {
        return Bound::Unbounded;
    };
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Bound::Excluded(behind)
}

/// The bound behind the encodings of all tuples that begin with the elements that `prefix` encodes.
pub fn behind_tuples(prefix: &[u8]) -> Bound<Vec<u8>> {
    // Behind the elements there is a tag or nothing. An `ff` there belongs to a longer string.
    let mut behind = prefix.to_vec();
    behind.push(ESCAPE);
    Bound::Excluded(behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(parts: &[Part<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_parts(parts, &mut bytes);
        bytes
    }

    /// Elements of the types that `shape` names, of which the last ones may be missing.
    fn tuples() -> impl Strategy<Value = Vec<Part<'static>>> {
        let string =
            || proptest::collection::vec(prop_oneof![Just(0_u8), Just(255), 0..4_u8], 0..5);
        let int = prop_oneof![-2..2_i64, any::<i64>()];
        let float = prop_oneof![
            Just(-0.0),
            Just(f64::INFINITY),
            (-2..2_i64).prop_map(|number| number as f64),
            any::<f64>().prop_filter("no NaN", |float| !float.is_nan())
        ];
        let inner = (string(), int.clone(), 0..3_usize).prop_map(|(bytes, int, len)| {
            let mut parts = vec![Part::Bytes(bytes.into()), Part::Int(int)];
            parts.truncate(len);
            Part::Tuple(parts)
        });
        (string(), inner, int, float, string(), 0..6_usize).prop_map(
            |(text, inner, int, float, bytes, len)| {
                let mut parts = vec![
                    Part::Str(text.into()),
                    inner,
                    Part::Int(int),
                    Part::Float(float + 0.0),
                    Part::Bytes(bytes.into()),
                ];
                parts.truncate(len);
                parts
            },
        )
    }

    proptest! {
        #[test]
        fn integers_keep_their_order(one: i64, two: i64) {
            prop_assert_eq!(one.cmp(&two), int_to_word(one).cmp(&int_to_word(two)));
            prop_assert_eq!(word_to_int(int_to_word(one)), one);
        }

        #[test]
        fn floats_keep_their_order(one: f64, two: f64) {
            prop_assume!(!one.is_nan() && !two.is_nan());
            let words = (float_to_word(one), float_to_word(two));
            prop_assert_eq!(one.partial_cmp(&two), words.0.partial_cmp(&words.1));
            prop_assert_eq!(word_to_float(words.0.unwrap()).partial_cmp(&one), Some(Ordering::Equal));
        }

        #[test]
        fn tuples_keep_their_order(one in tuples(), two in tuples()) {
            prop_assert_eq!(one.partial_cmp(&two), Some(encoded(&one).cmp(&encoded(&two))));
            let bytes = encoded(&one);
            prop_assert_eq!(read_parts(&bytes), Some(one));
        }

        #[test]
        fn a_prefix_has_the_tuples_that_begin_with_it(one in tuples(), two in tuples()) {
            let (prefix, key) = (encoded(&one), encoded(&two));
            let Bound::Excluded(end) = behind_tuples(&prefix) else { panic!("a bound") };
            prop_assert_eq!(two.starts_with(&one), prefix <= key && key < end);
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            if let Some(parts) = read_parts(&bytes) {
                // An end behind the last element is the only byte that a second encoding may lack.
                prop_assert!(bytes.starts_with(&encoded(&parts)) || bytes.contains(&END));
            }
        }
    }

    #[test]
    fn the_ends_of_numbers() {
        assert!(float_to_word(f64::NAN).is_none());
        assert_eq!(float_to_word(-0.0), float_to_word(0.0));
        assert_eq!(word_to_float(float_to_word(-0.0).unwrap()).to_bits(), 0);
        assert_eq!(exact_float(i64::MAX), None);
        assert_eq!(exact_float(i64::MIN), Some(-9_223_372_036_854_775_808.0));
        assert_eq!(exact_float((1 << 53) + 1), None);
        assert_eq!(exact_float(1 << 60), Some((1_u64 << 60) as f64));
    }

    #[test]
    fn the_bounds_behind_prefixes() {
        assert_eq!(behind(b""), Bound::Unbounded);
        assert_eq!(behind(b"\xff\xff"), Bound::Unbounded);
        assert_eq!(behind(b"a\xff"), Bound::Excluded(b"b".to_vec()));
        let key = |bytes: &'static [u8]| encoded(&[Part::Str(bytes.into())]);
        let Bound::Excluded(end) = behind_tuples(&key(b"a")) else { panic!("a bound") };
        assert!(key(b"a\0b") >= end && key(b"a\0b").starts_with(&key(b"a")));
    }
}
