//! Checks that key encodings keep order and value.

use super::input::Input;
use silvics::key::{decode_i64, decode_u64, decode_u128, encode_i64, encode_u64, encode_u128};
use std::fmt::Debug;

/// Checks pairs of numbers. The second number is often a neighbour of the first, or differs in only
/// one byte.
///
/// # Panics
/// Panics if two encodings are ordered differently from their numbers, or if decoding does not
/// restore a number.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    while let Some(relation) = input.next() {
        let wide =
            |input: &mut Input<'_>| u128::from(input.word()) << 64 | u128::from(input.word());
        let a = wide(&mut input);
        let b = match relation % 4 {
            0 => wide(&mut input),
            1 => a.wrapping_add(u128::from(input.byte())),
            2 => a ^ 1 << (input.byte() % 128),
            _ => !a,
        };
        keeps(a, b, encode_u128, decode_u128);
        let (a, b) = (a as u64, b as u64);
        keeps(a, b, encode_u64, decode_u64);
        keeps(a.cast_signed(), b.cast_signed(), encode_i64, decode_i64);
    }
}

fn keeps<T: Ord + Copy + Debug, E: Ord + Copy + Debug>(
    a: T,
    b: T,
    encode: impl Fn(T) -> E,
    decode: impl Fn(E) -> T,
) {
    let (low, high) = (encode(a), encode(b));
    assert_eq!((decode(low), decode(high)), (a, b), "not undone: {low:?}, {high:?}");
    assert_eq!(low.cmp(&high), a.cmp(&b), "{a:?} and {b:?} become {low:?} and {high:?}");
}
