//! The key types that an index is driven with, and their key spaces.

use crate::flags::types::KeyType;
use silvics::IndexKey;
use silvics_workload::keyfile::{self, Format, KeyFile, KeyFileError};
use silvics_workload::trace::TraceKeys;
use silvics_workload::{
    ByteKeys, Dist, KeySet, Longest, WideKeys, WordKeys, byte_hash, wide_value, word_value,
};
use std::path::Path;

/// A key type with its key spaces, and with the value every key must have.
///
/// The value of a key follows from the key, so that every hit can be checked. A key's *weight*
/// stands for it in sums of keys.
pub trait BenchKey: IndexKey {
    /// The key type that an index is asked for.
    const TYPE: KeyType;
    /// The key space, which maps positions to keys.
    type Space: Send + Sync + 'static;

    /// The generated key space of a distribution.
    fn generate(dist: Dist, len: usize, key_type: KeyType) -> Self::Space;
    /// The key space of a key set, in ascending order. Flags refuse key sets for numbers.
    fn of_set(set: KeySet, len: usize, seed: u64) -> Self::Space;
    /// The number, from 1, of the first key of a space that is not UTF-8, if there is one.
    fn first_binary(space: &Self::Space) -> Option<usize>;
    /// Reads the key space in a file. A file of lines has byte strings.
    fn read(path: &Path, format: Format) -> Result<KeyFile<Self::Space>, KeyFileError>;
    /// The key space of a trace's keys. `None` if they have another type.
    fn of_trace(keys: &TraceKeys) -> Option<Self::Space>;
    /// The key space of the keys at some positions of another, in their order.
    fn part(space: &Self::Space, positions: &[u32]) -> Self::Space;
    /// The number of keys of a space.
    fn len(space: &Self::Space) -> usize;
    /// The longest key of a space, if lengths differ.
    fn longest(space: &Self::Space) -> Option<Longest>;

    /// The key at a position.
    fn key(space: &Self::Space, position: u32) -> Self::Ref<'_>;
    /// The value of the key at a position.
    fn value(space: &Self::Space, position: u32) -> u64;
    /// Sets each position to the next one, and the entry beside it to the key there with its value.
    /// The key's memory is prefetched.
    fn draw<'a>(
        space: &'a Self::Space,
        positions: &mut [u32],
        next: impl FnMut() -> u32,
        entries: &mut [(Self::Ref<'a>, u64)],
    );
    /// The weight of the key at a position.
    fn weight(space: &Self::Space, position: u32) -> u64;

    /// The least key that the type has.
    const LEAST: Self::Ref<'static>;
    /// Turns a key into the least key above it. Returns whether there is one.
    fn step(key: &mut Self::Owned) -> bool;
    /// The value of a key.
    fn value_of(key: Self::Ref<'_>) -> u64;
    /// The weight of a key.
    fn weight_of(key: Self::Ref<'_>) -> u64;
    /// Reads the key as cheaply as possible: the least that a program does with the keys of a scan.
    fn glance(key: Self::Ref<'_>) -> u64;
}

fn words(dist: Dist, len: usize) -> WordKeys {
    if dist.is_sparse() { WordKeys::sparse(len) } else { WordKeys::dense(len) }
}

impl BenchKey for u64 {
    const TYPE: KeyType = KeyType::U64;
    type Space = WordKeys;

    fn generate(dist: Dist, len: usize, _key_type: KeyType) -> WordKeys {
        words(dist, len)
    }
    fn of_set(set: KeySet, _len: usize, _seed: u64) -> WordKeys {
        unreachable!("the keys of `{set}` are byte strings")
    }
    fn first_binary(_space: &WordKeys) -> Option<usize> {
        Some(1)
    }
    fn read(path: &Path, _format: Format) -> Result<KeyFile<WordKeys>, KeyFileError> {
        keyfile::read_sosd(path)
    }
    fn of_trace(keys: &TraceKeys) -> Option<WordKeys> {
        match keys {
            TraceKeys::U64(keys) => Some(WordKeys::listed(keys.clone())),
            _ => None,
        }
    }
    fn part(space: &WordKeys, positions: &[u32]) -> WordKeys {
        space.part(positions)
    }
    fn len(space: &WordKeys) -> usize {
        space.len()
    }
    fn longest(_space: &WordKeys) -> Option<Longest> {
        None
    }

    #[inline(always)]
    fn key(space: &WordKeys, position: u32) -> u64 {
        space.key(position)
    }
    #[inline(always)]
    fn value(space: &WordKeys, position: u32) -> u64 {
        word_value(space.key(position))
    }
    #[inline(always)]
    fn draw(
        space: &WordKeys,
        positions: &mut [u32],
        next: impl FnMut() -> u32,
        entries: &mut [(u64, u64)],
    ) {
        space.draw(positions, next, entries, |key| (key, word_value(key)));
    }
    #[inline(always)]
    fn weight(space: &WordKeys, position: u32) -> u64 {
        space.key(position)
    }

    const LEAST: u64 = 0;

    #[inline(always)]
    fn step(key: &mut u64) -> bool {
        *key = key.wrapping_add(1);
        *key != 0
    }
    #[inline(always)]
    fn value_of(key: u64) -> u64 {
        word_value(key)
    }
    #[inline(always)]
    fn weight_of(key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn glance(key: u64) -> u64 {
        key
    }
}

/// The keys are [`WideKeys`]: 128-bit numbers in the order of the words they are made of. Telling
/// two keys apart can need either half.
impl BenchKey for u128 {
    const TYPE: KeyType = KeyType::U128;
    type Space = WideKeys;

    fn generate(dist: Dist, len: usize, _key_type: KeyType) -> WideKeys {
        WideKeys::new(words(dist, len))
    }
    fn of_set(set: KeySet, _len: usize, _seed: u64) -> WideKeys {
        unreachable!("the keys of `{set}` are byte strings")
    }
    fn first_binary(_space: &WideKeys) -> Option<usize> {
        Some(1)
    }
    fn read(path: &Path, _format: Format) -> Result<KeyFile<WideKeys>, KeyFileError> {
        let KeyFile { keys, duplicates, unsorted_at } = keyfile::read_sosd(path)?;
        Ok(KeyFile { keys: WideKeys::new(keys), duplicates, unsorted_at })
    }
    fn of_trace(keys: &TraceKeys) -> Option<WideKeys> {
        match keys {
            TraceKeys::U128(keys) => Some(WideKeys::listed(keys.clone())),
            _ => None,
        }
    }
    fn part(space: &WideKeys, positions: &[u32]) -> WideKeys {
        space.part(positions)
    }
    fn len(space: &WideKeys) -> usize {
        space.len()
    }
    fn longest(_space: &WideKeys) -> Option<Longest> {
        None
    }

    #[inline(always)]
    fn key(space: &WideKeys, position: u32) -> u128 {
        space.key(position)
    }
    #[inline(always)]
    fn value(space: &WideKeys, position: u32) -> u64 {
        wide_value(space.key(position))
    }
    #[inline(always)]
    fn draw(
        space: &WideKeys,
        positions: &mut [u32],
        next: impl FnMut() -> u32,
        entries: &mut [(u128, u64)],
    ) {
        space.draw(positions, next, entries, |key| (key, wide_value(key)));
    }
    #[inline(always)]
    fn weight(space: &WideKeys, position: u32) -> u64 {
        wide_value(space.key(position))
    }

    const LEAST: u128 = 0;

    #[inline(always)]
    fn step(key: &mut u128) -> bool {
        *key = key.wrapping_add(1);
        *key != 0
    }
    #[inline(always)]
    fn value_of(key: u128) -> u64 {
        wide_value(key)
    }
    #[inline(always)]
    fn weight_of(key: u128) -> u64 {
        wide_value(key)
    }
    #[inline(always)]
    fn glance(key: u128) -> u64 {
        (key >> 64) as u64 ^ key as u64
    }
}

impl BenchKey for [u8] {
    const TYPE: KeyType = KeyType::Bytes;
    type Space = ByteKeys;

    fn generate(dist: Dist, len: usize, key_type: KeyType) -> ByteKeys {
        let words = words(dist, len);
        if key_type == KeyType::String {
            return ByteKeys::hexadecimal(&words);
        }
        ByteKeys::encoded(&words)
    }
    fn of_set(set: KeySet, len: usize, seed: u64) -> ByteKeys {
        set.keys(len, seed)
    }
    fn first_binary(space: &ByteKeys) -> Option<usize> {
        let binary = |&at: &usize| std::str::from_utf8(space.key(at as u32)).is_err();
        (0..space.len()).find(binary).map(|at| at + 1)
    }
    fn read(path: &Path, format: Format) -> Result<KeyFile<ByteKeys>, KeyFileError> {
        match format {
            Format::Lines => keyfile::read_lines(path),
            Format::Sosd => {
                let KeyFile { keys, duplicates, unsorted_at } = keyfile::read_sosd(path)?;
                Ok(KeyFile { keys: ByteKeys::encoded(&keys), duplicates, unsorted_at })
            }
        }
    }
    fn of_trace(keys: &TraceKeys) -> Option<ByteKeys> {
        match keys {
            TraceKeys::Bytes(keys) => Some(ByteKeys::new(keys.iter().map(Vec::as_slice))),
            _ => None,
        }
    }
    fn part(space: &ByteKeys, positions: &[u32]) -> ByteKeys {
        space.part(positions)
    }
    fn len(space: &ByteKeys) -> usize {
        space.len()
    }
    fn longest(space: &ByteKeys) -> Option<Longest> {
        Some(space.longest())
    }

    #[inline(always)]
    fn key(space: &ByteKeys, position: u32) -> &[u8] {
        space.key(position)
    }
    #[inline(always)]
    fn value(space: &ByteKeys, position: u32) -> u64 {
        space.hash(position)
    }
    #[inline(always)]
    fn draw<'a>(
        space: &'a ByteKeys,
        positions: &mut [u32],
        next: impl FnMut() -> u32,
        entries: &mut [(&'a [u8], u64)],
    ) {
        silvics_workload::draw(positions, next, entries, |position| {
            space.prefetch(position);
            (space.key(position), space.hash(position))
        });
    }
    #[inline(always)]
    fn weight(space: &ByteKeys, position: u32) -> u64 {
        space.hash(position)
    }

    const LEAST: &'static [u8] = &[];

    fn step(key: &mut Box<[u8]>) -> bool {
        let mut bytes = std::mem::take(key).into_vec();
        bytes.push(0);
        *key = bytes.into();
        true
    }
    fn value_of(key: &[u8]) -> u64 {
        byte_hash(key)
    }
    fn weight_of(key: &[u8]) -> u64 {
        byte_hash(key)
    }
    #[inline(always)]
    fn glance(key: &[u8]) -> u64 {
        key.last().map_or(0, |&byte| u64::from(byte)) + key.len() as u64
    }
}
