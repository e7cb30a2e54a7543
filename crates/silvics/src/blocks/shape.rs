//! The sizes of blocks, and of their parts.

use super::block::{HEAD, LINE, MAX_ENTRIES, OUTSIDE};
use super::key::{Bit, BlockKey, MAX_INLINE};
use silvics_pool::BytesPool;

/// A block with more bytes is split when an entry comes, if it has two entries. A copy with a
/// shorter prefix may have more: all bytes of all its keys.
pub(super) const MAX_BLOCK: usize = 8192;
// The offsets of keys leave the mark for long keys free.
const _: () = assert!(
    parts::<[u8]>(MAX_ENTRIES, 0, MAX_INLINE).keys + MAX_ENTRIES * MAX_INLINE < OUTSIDE as usize
);
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

/// The parts of a block of `capacity` entries, of which the first `sorted` have no rank, with a
/// prefix of `prefix` bytes.
#[inline(always)]
pub(super) const fn parts<K: BlockKey + ?Sized>(
    capacity: usize,
    sorted: usize,
    prefix: usize,
) -> Parts {
    let front = if K::FIXED == 0 { prefix_at(capacity) } else { HEAD + K::FIXED * capacity };
    let values = (front + prefix).next_multiple_of(8);
    let ranks = values + 8 * capacity;
    Parts { values, ranks, keys: ranks + (capacity - sorted) }
}

/// The offset of the prefix, behind the starts and gaps.
#[inline(always)]
pub(super) const fn prefix_at(capacity: usize) -> usize {
    HEAD + 2 * (capacity + 1) + 2 * capacity
}

/// The bytes that a key takes in a block of byte strings with a prefix of `prefix` bytes.
#[inline]
pub(super) fn inline_bytes<K: BlockKey + ?Sized>(len: usize, prefix: usize) -> usize {
    if K::IN_ENTRIES {
        return 0;
    }
    match (K::FIXED, len > MAX_INLINE) {
        (0, false) => len - prefix,
        (0, true) => REFERENCE,
        _ => 0,
    }
}

/// The bytes of keys in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    /// Those that the block has once.
    pub(super) prefix: usize,
    /// All others.
    pub(super) keys: usize,
}

impl Bytes {
    /// Those of one key, in a block of a depth.
    pub(super) fn of_one<K: BlockKey + ?Sized>(key: K::Ref<'_>, depth: Bit) -> Self {
        let len = K::len(K::shorten(key));
        let prefix = prefix_of::<K>((K::shorten(key), key), depth);
        Self { prefix, keys: inline_bytes::<K>(len, prefix) }
    }
}

/// The length of the prefix that a block of a depth has once, from the first and the last key.
#[inline]
pub(super) fn prefix_of<K: BlockKey + ?Sized>(
    (first, last): (K::Ref<'_>, K::Ref<'_>),
    depth: Bit,
) -> usize {
    if K::SHARES { shared::<K>((first, last), depth) } else { 0 }
}

/// The length of that prefix if blocks had one.
#[inline]
pub(super) fn shared<K: BlockKey + ?Sized>(
    (first, last): (K::Ref<'_>, K::Ref<'_>),
    depth: Bit,
) -> usize {
    let len = |key: K::Ref<'_>| K::len(key);
    let longest = len(K::shorten(first)).max(len(K::shorten(last)));
    if longest > MAX_INLINE {
        return 0;
    }
    let common = K::common(first, last);
    // Most keys that come to a block of one key agree with it up to its depth.
    let common = if common == longest { common.min(depth as usize / 8) } else { common };
    // A comparison takes four bytes at once.
    common & !3
}

/// The size of a block to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) capacity: usize,
    /// The entries that it is made with, in order.
    pub(super) sorted: usize,
    /// The bytes that it has once for all its keys.
    pub(super) prefix: usize,
    pub(super) bytes: usize,
}

impl Shape {
    /// A block for `entries` whose keys take these bytes, with room for more, unless it is one of
    /// the largest.
    pub(super) fn with_room<K: BlockKey + ?Sized>(entries: usize, bytes: Bytes) -> Self {
        Self::of::<K>(entries, 1, bytes)
    }

    /// A block for `entries` whose keys take these bytes, as large as its slot.
    pub(super) fn exact<K: BlockKey + ?Sized>(entries: usize, bytes: Bytes) -> Self {
        Self::of::<K>(entries, 0, bytes)
    }

    fn of<K: BlockKey + ?Sized>(
        entries: usize,
        room: usize,
        Bytes { prefix, keys }: Bytes,
    ) -> Self {
        let least_key = if K::IN_ENTRIES { 0 } else { 8 };
        let per_key = keys.div_ceil(entries.max(1)).max(least_key);
        let least = |capacity| parts::<K>(capacity, entries, prefix).keys + keys;
        if K::FIXED > 0 {
            let more = (room * entries / 8).max(room).next_multiple_of(STEP);
            let capacity = (entries + more).min(MAX_ENTRIES).max(entries);
            let bytes = least(capacity).next_multiple_of(LINE);
            return Self { capacity, sorted: entries, prefix, bytes };
        }
        // Room for these entries and an eighth more, if that fits, and for as many more as the slot
        // has. The largest blocks have none.
        let size = |room| least(entries + room) + room * per_key;
        let mut room = (room * entries / 8).min(MAX_ENTRIES.saturating_sub(entries)).max(room);
        while room > 1 && size(room) > MAX_BLOCK {
            room -= 1;
        }
        let with_more = size(room);
        if least(entries) <= MAX_BLOCK && (entries == MAX_ENTRIES || with_more > MAX_BLOCK) {
            let bytes = BytesPool::slot(least(entries)).slot_bytes().next_multiple_of(LINE);
            let bytes = bytes.min(MAX_BLOCK);
            return Self { capacity: entries, sorted: entries, prefix, bytes };
        }
        let bytes = BytesPool::slot(with_more).slot_bytes().next_multiple_of(LINE);
        let more = (bytes - with_more) / (per_key + PER_ENTRY);
        let mut capacity = (entries + room + more).min(MAX_ENTRIES).max(entries);
        while capacity > entries && least(capacity) > bytes {
            capacity -= 1;
        }
        Self { capacity, sorted: entries, prefix, bytes }
    }
}

/// Whether entries whose keys take these bytes have a block of the usual size.
pub(super) fn fits<K: BlockKey + ?Sized>(entries: usize, Bytes { prefix, keys }: Bytes) -> bool {
    entries <= MAX_ENTRIES && parts::<K>(entries, entries, prefix).keys + keys <= MAX_BLOCK
}
