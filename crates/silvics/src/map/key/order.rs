//! The check that a type's order is that of its encoding.

use super::Key;
use crate::encoding::{Encoder, IndexKey};
use std::cmp::Ordering;
use std::fmt;

/// A pair of keys whose order is not that of their encodings: the error of [`check_order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderMismatch {
    /// The position of the first key in the slice.
    pub first: usize,
    /// The position of the second key in the slice.
    pub second: usize,
    /// The order of the two keys by [`Ord`].
    pub by_ord: Ordering,
    /// The order of their encodings.
    pub by_encoding: Ordering,
}

impl fmt::Display for OrderMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, by_ord, by_encoding } = self;
        write!(
            f,
            "keys {first} and {second} are {by_ord:?} by their Ord and {by_encoding:?} by their \
             encoding, which is the order of a map: change one of the two"
        )
    }
}

impl std::error::Error for OrderMismatch {}

/// Compares all pairs of `keys`, and returns the first pair whose [`Ord`] is not the order of their
/// encodings: the forms of whole keys, the bytes of keys that are parts of others, and
/// [`Key::compare`]. O(n²): this is for tests of types with an `Ord` written by hand.
///
/// ```
/// use silvics::{Key, key};
/// use std::cmp::Ordering;
///
/// /// Sorted by length first, but only by its own `Ord`.
/// #[derive(Key, Clone, Debug, PartialEq, Eq)]
/// #[key(own_ord)]
/// struct Word(String);
///
/// impl Ord for Word {
///     fn cmp(&self, other: &Self) -> Ordering {
///         (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
///     }
/// }
/// impl PartialOrd for Word {
///     fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
///         Some(self.cmp(other))
///     }
/// }
///
/// let words = ["a", "b", "aa"].map(|word| Word(word.into()));
/// let mismatch = key::check_order(&words).unwrap_err();
/// assert_eq!((mismatch.first, mismatch.second), (1, 2));
/// ```
pub fn check_order<K: Key + Ord>(keys: &[K]) -> Result<(), OrderMismatch> {
    let form = |key: &K| key.with_form(<K::Form as IndexKey>::to_owned);
    let part = |key: &K| Encoder::encode(|to| key.write(to), <[u8]>::to_vec);
    let encoded: Vec<_> = keys.iter().map(|key| (form(key), part(key))).collect();
    for (first, key) in keys.iter().enumerate() {
        for second in first + 1..keys.len() {
            let (by_ord, (a, b)) = (key.cmp(&keys[second]), (&encoded[first], &encoded[second]));
            let orders = [a.0.cmp(&b.0), a.1.cmp(&b.1), key.compare(&keys[second])];
            if let Some(&by_encoding) = orders.iter().find(|order| **order != by_ord) {
                return Err(OrderMismatch { first, second, by_ord, by_encoding });
            }
        }
    }
    Ok(())
}
