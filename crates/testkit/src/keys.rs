//! Test data for each key type, and the traits that the suite asks of an index.

use crate::rng::mix;
#[cfg(feature = "suite")]
use proptest::{prelude::*, strategy::BoxedStrategy};
use silvics::key::Prefixed;
use silvics::{Batches, Check, IndexKey, KeyRef, Lookup, OrderedScan, OwnedKey};
use std::fmt;

/// A key type with test data.
pub trait TestKey: IndexKey {
    /// The `n`-th key: `a < b` if and only if `nth(a) < nth(b)`.
    fn nth(n: u64) -> Self::Owned;

    /// A large key with the order of [`TestKey::nth`], if the type has large keys.
    fn bulky(n: u64) -> Self::Owned {
        Self::nth(n)
    }

    /// Keys at the limits of the type.
    fn extremes() -> Vec<Self::Owned>;

    /// A strategy whose keys often coincide, with extreme keys among them.
    #[cfg(feature = "suite")]
    fn strategy() -> BoxedStrategy<Self::Owned>;

    /// Displays the key in a few characters.
    fn show(key: &Self::Owned) -> String;
}

impl TestKey for u64 {
    fn nth(n: u64) -> u64 {
        n
    }

    fn extremes() -> Vec<u64> {
        vec![0, 1, 1 << 63, u64::MAX - 1, u64::MAX]
    }

    #[cfg(feature = "suite")]
    fn strategy() -> BoxedStrategy<u64> {
        prop_oneof![
            6 => 0..16u64,
            3 => 0..500u64,
            2 => proptest::sample::select(Self::extremes()),
            1 => any::<u64>(),
        ]
        .boxed()
    }

    fn show(key: &u64) -> String {
        key.to_string()
    }
}

impl TestKey for u128 {
    /// Puts the number into the middle bits. Keys whose numbers are 2^16 or more apart differ in
    /// the high half, closer ones only in the low half.
    fn nth(n: u64) -> u128 {
        u128::from(n) << 48
    }

    fn extremes() -> Vec<u128> {
        vec![0, 1, 1 << 64, 1 << 127, u128::MAX - 1, u128::MAX]
    }

    #[cfg(feature = "suite")]
    fn strategy() -> BoxedStrategy<u128> {
        prop_oneof![
            6 => 0..16u128,
            3 => (0..200u64).prop_map(Self::nth),
            2 => proptest::sample::select(Self::extremes()),
            1 => any::<u128>(),
        ]
        .boxed()
    }

    fn show(key: &u128) -> String {
        format!("{key:#x}")
    }
}

fn numbered(n: u64) -> Vec<u8> {
    let mut key = b"silvics/".to_vec();
    key.extend(n.to_be_bytes());
    key
}

impl TestKey for [u8] {
    /// A shared prefix and half the number in big-endian bytes. The key of an odd number has a
    /// filler behind them, so that the key before it is its prefix and lengths differ.
    fn nth(n: u64) -> Box<[u8]> {
        let mut key = numbered(n / 2);
        key.resize(key.len() + (n % 2) as usize * (1 + (n / 2 % 5) as usize * 7), b'.');
        key.into()
    }

    fn bulky(n: u64) -> Box<[u8]> {
        let mut key = numbered(n);
        key.resize(6000, b'.');
        key.into()
    }

    fn extremes() -> Vec<Box<[u8]>> {
        let long = |last: u8| {
            let mut key = vec![b'k'; 64 << 10]; // two such keys part where 16 bits end
            key.push(last);
            key
        };
        let keys: Vec<Vec<u8>> = vec![
            vec![],
            vec![0],
            vec![0; 8],
            vec![0; 9],
            vec![0xff],
            vec![0xff; 8],
            vec![0xff; 300],
            long(0),
            long(1),
        ];
        keys.into_iter().map(Into::into).collect()
    }

    #[cfg(feature = "suite")]
    fn strategy() -> BoxedStrategy<Box<[u8]>> {
        let letters = || proptest::sample::select(vec![0u8, 1, b'a', 0xff]);
        let short = proptest::collection::vec(letters(), 0..4);
        // Lengths around the eight bytes of a word, which a fast path may compare at once.
        let word = proptest::collection::vec(letters(), 0..4).prop_map(|tail| {
            let mut key = vec![b'w'; 6];
            key.extend(tail);
            key
        });
        let shared = proptest::collection::vec(letters(), 0..3).prop_map(|tail| {
            let mut key = vec![b'p'; 300];
            key.extend(tail);
            key
        });
        prop_oneof![
            6 => short.prop_map(Into::into),
            3 => word.prop_map(Into::into),
            3 => shared.prop_map(Into::into),
            3 => (0..200u64).prop_map(Self::nth),
            1 => proptest::sample::select(Self::extremes()),
        ]
        .boxed()
    }

    fn show(key: &Box<[u8]>) -> String {
        let shown = &key[..key.len().min(24)];
        let tail = match key.len() {
            0..=24 => String::new(),
            len => format!("… ({len} bytes, last {:#04x})", key[len - 1]),
        };
        format!("b\"{}\"{tail}", shown.escape_ascii())
    }
}

/// The keys are those of `[u8]`.
impl TestKey for Prefixed<'static> {
    fn nth(n: u64) -> Box<[u8]> {
        <[u8]>::nth(n)
    }

    fn bulky(n: u64) -> Box<[u8]> {
        <[u8]>::bulky(n)
    }

    fn extremes() -> Vec<Box<[u8]>> {
        <[u8]>::extremes()
    }

    #[cfg(feature = "suite")]
    fn strategy() -> BoxedStrategy<Box<[u8]>> {
        <[u8]>::strategy()
    }

    fn show(key: &Box<[u8]>) -> String {
        <[u8]>::show(key)
    }
}

/// An owned key whose `Debug` is [`TestKey::show`]: reports stay readable with 64 KiB keys.
pub(crate) struct Shown<K: TestKey + ?Sized>(pub(crate) K::Owned);

impl<K: TestKey + ?Sized> fmt::Debug for Shown<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&K::show(&self.0))
    }
}

/// An index that the suite can test.
pub trait Subject: Batches + Check + Lookup<Key: TestKey> + 'static {}
impl<I: Batches + Check + Lookup<Key: TestKey> + ?Sized + 'static> Subject for I {}

/// An index with ranges that the suite can test.
pub trait ScanSubject: Subject + OrderedScan {}
impl<I: Subject + OrderedScan + ?Sized> ScanSubject for I {}

/// The `n`-th key of index `I`.
pub(crate) fn nth<I: Subject + ?Sized>(n: u64) -> OwnedKey<I> {
    <I::Key as TestKey>::nth(n)
}

/// Borrows a key of index `I`.
pub(crate) fn lend<I: Lookup + ?Sized>(key: &OwnedKey<I>) -> KeyRef<'_, I> {
    <I::Key as IndexKey>::borrow(key)
}

/// Copies a key of index `I`.
pub(crate) fn own<I: Lookup + ?Sized>(key: KeyRef<'_, I>) -> OwnedKey<I> {
    <I::Key as IndexKey>::to_owned(key)
}

/// Displays a key of index `I` in a few characters.
pub(crate) fn show<I: Subject + ?Sized>(key: &OwnedKey<I>) -> String {
    <I::Key as TestKey>::show(key)
}

/// A value that identifies its key and one of 256 writes of it. A lookup that reads another node's
/// memory therefore returns a value that betrays the mistake.
pub(crate) const fn tagged(n: u64, write: u64) -> u64 {
    (mix(n) & !0xff) | (write & 0xff)
}

/// Whether [`tagged`] returned `value` for key number `n`.
pub(crate) const fn belongs(n: u64, value: u64) -> bool {
    value & !0xff == mix(n) & !0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbering_keeps_the_order<K: TestKey + ?Sized>() {
        let numbers = [0, 1, 2, 255, 256, 1 << 40, u64::MAX - 1, u64::MAX];
        for a in numbers {
            for b in numbers {
                assert_eq!(K::nth(a).cmp(&K::nth(b)), a.cmp(&b));
            }
        }
    }

    #[test]
    fn numbered_keys_are_ordered_as_their_numbers() {
        numbering_keeps_the_order::<u64>();
        numbering_keeps_the_order::<u128>();
        numbering_keeps_the_order::<[u8]>();
    }

    #[test]
    fn a_value_tells_its_key() {
        assert!(belongs(7, tagged(7, 300)));
        assert!(!belongs(8, tagged(7, 300)));
    }
}
