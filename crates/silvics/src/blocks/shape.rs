//! The sizes of blocks, and of their parts.

use super::block::{HEAD, LINE, MAX_ENTRIES};
use super::key::{BlockKey, MAX_INLINE};
use silvics_pool::BytesPool;

/// A block with more bytes is split, if it has two entries.
pub(super) const MAX_BLOCK: usize = 8192;
/// The bytes of an added entry beside its tag and key: its start, gap, value and rank.
const PER_ENTRY: usize = 2 + 2 + 8 + 1;
/// The capacity for integers is a multiple of this number.
const STEP: usize = if cfg!(silvics_shuttle) { 1 } else { 4 };
/// The bytes of the reference to a key that is not in the block.
pub(super) const REFERENCE: usize = 12;

/// The parts of a block.
pub(super) struct Parts {
    pub(super) values: usize,
    pub(super) ranks: usize,
    /// The start of byte strings, and for integers the end of the block.
    pub(super) keys: usize,
}

/// The parts of a block of `capacity` entries, of which the first `sorted` have no rank.
pub(super) const fn parts<K: BlockKey + ?Sized>(capacity: usize, sorted: usize) -> Parts {
    let keys = if K::FIXED == 0 { 2 * (capacity + 1) + 2 * capacity } else { K::FIXED * capacity };
    let values = (HEAD + keys).next_multiple_of(8);
    let ranks = values + 8 * capacity;
    Parts { values, ranks, keys: ranks + (capacity - sorted) }
}

/// The bytes that a key takes in a block of byte strings.
#[inline]
pub(super) fn inline_bytes<K: BlockKey + ?Sized>(len: usize) -> usize {
    match (K::FIXED, len > MAX_INLINE) {
        (0, false) => len,
        (0, true) => REFERENCE,
        _ => 0,
    }
}

/// The size of a block to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) capacity: usize,
    /// The entries that it is made with, in order.
    pub(super) sorted: usize,
    pub(super) bytes: usize,
}

impl Shape {
    /// A block for `entries` whose keys take `key_bytes`, with some room for more.
    pub(super) fn with_room<K: BlockKey + ?Sized>(entries: usize, key_bytes: usize) -> Self {
        let per_key = key_bytes.div_ceil(entries.max(1)).max(8);
        let least = |capacity| parts::<K>(capacity, entries).keys + key_bytes;
        if K::FIXED > 0 {
            let more = (entries / 8).max(1).next_multiple_of(STEP);
            let capacity = (entries + more).min(MAX_ENTRIES).max(entries);
            return Self { capacity, sorted: entries, bytes: least(capacity) };
        }
        // Room for one entry, and for as many more as the slot has. The largest blocks have none.
        let one_more = least(entries + 1) + per_key;
        if least(entries) <= MAX_BLOCK && (entries == MAX_ENTRIES || one_more > MAX_BLOCK) {
            let bytes = BytesPool::slot(least(entries)).slot_bytes().next_multiple_of(LINE);
            return Self { capacity: entries, sorted: entries, bytes: bytes.min(MAX_BLOCK) };
        }
        let bytes = BytesPool::slot(one_more).slot_bytes().next_multiple_of(LINE);
        let more = (bytes - one_more) / (per_key + PER_ENTRY);
        let mut capacity = (entries + 1 + more).min(MAX_ENTRIES).max(entries);
        while capacity > entries && least(capacity) > bytes {
            capacity -= 1;
        }
        Self { capacity, sorted: entries, bytes }
    }
}

/// Whether entries whose keys take `key_bytes` have a block of the usual size.
pub(super) fn fits<K: BlockKey + ?Sized>(entries: usize, key_bytes: usize) -> bool {
    entries <= MAX_ENTRIES && parts::<K>(entries, entries).keys + key_bytes <= MAX_BLOCK
}
