//! The types by which maps hold keys and values in a benchmark: those that their users would
//! choose.

use crate::drive::keys::BenchKey;
use silvics::map::Value;
use silvics::{AsKey, IndexKey, Key};
use std::borrow::Borrow;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// A type by which a map's keys are looked up: `u64`, `u128`, `[u8]` or `str`.
pub trait MapKey: Ord + Hash + 'static {
    /// The benchmark's key.
    type Bench: BenchKey + ?Sized;
    /// The owned key of most maps.
    type Owned: Ord + Hash + Clone + Debug + Borrow<Self> + Send + Sync + 'static;
    /// The key type of our map.
    type Ours: Key;

    /// Copies a key of the benchmark for a map that owns its keys.
    fn own(key: <Self::Bench as IndexKey>::Ref<'_>) -> Self::Owned;
    /// Borrows a key of the benchmark in the form that lookups take.
    fn lend<'a>(key: &'a <Self::Bench as IndexKey>::Ref<'_>) -> &'a Self;
    /// Converts a key that a map owns for the benchmark.
    fn show(key: &Self::Owned) -> <Self::Bench as IndexKey>::Ref<'_>;
    /// Converts a key that our map returned for the benchmark.
    fn lent(key: <Self::Ours as Key>::Ref<'_>) -> <Self::Bench as IndexKey>::Ref<'_>;
}

impl MapKey for u64 {
    type Bench = u64;
    type Owned = u64;
    type Ours = u64;

    #[inline(always)]
    fn own(key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn lend(key: &u64) -> &u64 {
        key
    }
    #[inline(always)]
    fn show(key: &u64) -> <u64 as IndexKey>::Ref<'_> {
        *key
    }
    #[inline(always)]
    fn lent(key: <u64 as Key>::Ref<'_>) -> <u64 as IndexKey>::Ref<'_> {
        key
    }
}

impl MapKey for u128 {
    type Bench = u128;
    type Owned = u128;
    type Ours = u128;

    #[inline(always)]
    fn own(key: u128) -> u128 {
        key
    }
    #[inline(always)]
    fn lend(key: &u128) -> &u128 {
        key
    }
    #[inline(always)]
    fn show(key: &u128) -> <u128 as IndexKey>::Ref<'_> {
        *key
    }
    #[inline(always)]
    fn lent(key: <u128 as Key>::Ref<'_>) -> <u128 as IndexKey>::Ref<'_> {
        key
    }
}

impl MapKey for [u8] {
    type Bench = [u8];
    type Owned = Vec<u8>;
    type Ours = Vec<u8>;

    #[inline(always)]
    fn own(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }
    #[inline(always)]
    fn lend<'a>(key: &'a &[u8]) -> &'a [u8] {
        key
    }
    #[inline(always)]
    fn show(key: &Vec<u8>) -> &[u8] {
        key
    }
    #[inline(always)]
    fn lent(key: <Vec<u8> as Key>::Ref<'_>) -> <[u8] as IndexKey>::Ref<'_> {
        key
    }
}

/// A key of a benchmark with `--key-type string` as text. All keys are checked before the benchmark
/// begins.
#[inline(always)]
fn text(key: &[u8]) -> &str {
    debug_assert!(std::str::from_utf8(key).is_ok());
    // SAFETY: `Keys::read` refuses a key space with any other key.
    unsafe { std::str::from_utf8_unchecked(key) }
}

impl MapKey for str {
    type Bench = [u8];
    type Owned = String;
    type Ours = String;

    #[inline(always)]
    fn own(key: &[u8]) -> String {
        text(key).to_string()
    }
    #[inline(always)]
    fn lend<'a>(key: &'a &[u8]) -> &'a str {
        text(key)
    }
    #[inline(always)]
    fn show(key: &String) -> &[u8] {
        key.as_bytes()
    }
    #[inline(always)]
    fn lent(key: <String as Key>::Ref<'_>) -> <[u8] as IndexKey>::Ref<'_> {
        key.as_bytes()
    }
}

/// A type by which the keys of our map can be looked up.
pub trait OurKey: MapKey + AsKey<Self::Ours> {}
impl<K: MapKey + AsKey<Self::Ours> + ?Sized> OurKey for K {}

/// A type of values. Each value holds the word it was made of.
pub trait MapValue: Value + Clone {
    /// Whether the map holds all memory of a value.
    const IS_IN_MAP: bool;

    /// Makes the value for a word.
    fn hold(word: u64) -> Self;
    /// The word that the value was made of.
    fn word(&self) -> u64;
}

impl MapValue for u64 {
    const IS_IN_MAP: bool = true;

    #[inline(always)]
    fn hold(word: u64) -> u64 {
        word
    }
    #[inline(always)]
    fn word(&self) -> u64 {
        *self
    }
}

impl MapValue for Arc<[u8]> {
    const IS_IN_MAP: bool = false;

    #[inline(always)]
    fn hold(word: u64) -> Self {
        Arc::from(word.to_ne_bytes())
    }
    #[inline(always)]
    fn word(&self) -> u64 {
        self.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }
}
