//! Blocks: up to 48 entries of neighbouring keys.
//!
//! # Layout
//! ```text
//! 0    live: a bit for each entry that is present
//! 8    capacity, entries, sorted entries, unused; bytes
//! 16   tags: a byte of each entry's hash
//! 64   lock
//! 72   updates in progress; the end of the keys
//! 80   depth; length of the prefix; unused
//! 88   byte strings: the start of each key, and the end of the last one; the gap of each entry (2
//!      bytes each); the prefix
//!      integers: the keys
//! ..   values
//! ..   the rank of each entry that was added (1 byte)
//! ..   byte strings: the keys without the prefix. A long one is an address and a length.
//! ```

use super::key::{Bit, BlockKey};
use super::lanes::equal_bytes;
use super::order::{Gap, Rank};
use super::search::Search;
use super::shape::{Parts, Shape, parts, prefix_at};
use super::state::Updates;
use crate::canary::{Canary, planted};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

/// The most entries of a block.
pub(super) const MAX_ENTRIES: usize = if cfg!(silvics_shuttle) { 3 } else { 48 };
/// The tags of a block, in words.
pub(super) const TAG_WORDS: usize = MAX_ENTRIES.div_ceil(8);
/// Blocks begin with a line.
pub(super) const LINE: usize = 64;
/// The bit of a rank that says that the gap is that of the entry, not that of the one behind it.
pub(super) const FOLLOWS: u8 = 1 << 7;
/// The bit of a key's start that says that the key is not in the block.
pub(super) const OUTSIDE: u16 = 1 << 15;

/// The fields before the keys and values.
#[repr(C)]
pub(super) struct Head {
    live: AtomicU64,
    capacity: u8,
    pub(super) entries: AtomicU8,
    sorted: u8,
    _unused: u8,
    bytes: u32,
    pub(super) tags: [AtomicU64; TAG_WORDS],
    lock: VersionLock,
    updates: Updates,
    pub(super) end: AtomicU32,
    depth: Bit,
    /// The bytes that the block has once for all its keys.
    prefix: u16,
    _unused_too: u16,
}

pub(super) const HEAD: usize = size_of::<Head>();
const _: () = assert!(HEAD == 88 || cfg!(any(silvics_loom, silvics_shuttle)));

/// The layout of an empty block of byte strings.
pub(super) const BLOCK: NodeLayout = NodeLayout {
    kind: "block",
    size: HEAD,
    align: 8,
    search: &[],
    found: &[
        Field::new("live", 0, 8),
        Field::new("tags", offset_of!(Head, tags), 8 * TAG_WORDS),
        Field::new("starts", HEAD, 2),
    ],
};

/// The tag of a hash: never 0, which is the tag of no entry.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// A block that is not reclaimed during `'g`.
pub(super) struct BlockRef<'g, K: ?Sized> {
    block: NonNull<u8>,
    marker: PhantomData<(&'g Head, *const K)>,
}

impl<K: ?Sized> Clone for BlockRef<'_, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for BlockRef<'_, K> {}
impl<K: ?Sized> PartialEq for BlockRef<'_, K> {
    fn eq(&self, other: &Self) -> bool {
        self.block == other.block
    }
}

/// An entry that is written to a block.
pub(super) struct New<'k, K: BlockKey + ?Sized> {
    pub(super) key: K::Ref<'k>,
    pub(super) value: u64,
    /// The memory of a long key.
    pub(super) outside: Option<NonNull<u8>>,
}

impl<'g, K: BlockKey + ?Sized> BlockRef<'g, K> {
    /// # Safety
    /// `block` leads to a block of these keys that is initialised and not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn from_ptr(block: NonNull<u8>) -> Self {
        Self { block, marker: PhantomData }
    }

    /// Initialises a block without entries.
    ///
    /// # Safety
    /// `block` has the bytes of the shape, aligned to 8, which nobody else has during `'g`.
    pub(super) unsafe fn init(block: NonNull<u8>, shape: Shape, depth: Bit) -> Self {
        let Shape { capacity, sorted, prefix, bytes } = shape;
        let parts = parts::<K>(capacity, sorted, prefix);
        let head = Head {
            live: AtomicU64::new(0),
            capacity: capacity as u8,
            entries: AtomicU8::new(0),
            sorted: sorted as u8,
            _unused: 0,
            bytes: bytes as u32,
            tags: std::array::from_fn(|_| AtomicU64::new(0)),
            lock: VersionLock::new(),
            updates: Updates::new(),
            end: AtomicU32::new(parts.keys as u32),
            depth,
            prefix: prefix as u16,
            _unused_too: 0,
        };
        // SAFETY: our contract: there is room for the head and, as the shape says, for the parts.
        unsafe {
            block.cast::<Head>().write(head);
            if K::FIXED == 0 {
                // The starts and gaps.
                for at in 0..=2 * capacity {
                    let start = block.byte_add(HEAD + 2 * at).cast::<AtomicU16>();
                    start.write(AtomicU16::new(parts.keys as u16));
                }
            }
            for at in 0..capacity - sorted {
                block.byte_add(parts.ranks + at).cast::<AtomicU8>().write(AtomicU8::new(0));
            }
            for at in 0..capacity {
                block.byte_add(parts.values + 8 * at).cast::<AtomicU64>().write(AtomicU64::new(0));
            }
            Self::from_ptr(block)
        }
    }

    /// The start of a block's memory, and its bytes.
    ///
    /// # Safety
    /// `block` leads to an initialised block.
    pub(super) unsafe fn extent(block: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: our contract.
        let bytes = unsafe { Self::from_ptr(block) }.bytes();
        (block, bytes)
    }

    #[inline(always)]
    pub(super) fn head(self) -> &'g Head {
        // SAFETY: I1: a block begins with its head, and is not reclaimed during `'g` (contract of
        // `from_ptr`).
        unsafe { &*touch(self.block.as_ptr()).cast::<Head>() }
    }

    pub(super) fn as_ptr(self) -> NonNull<u8> {
        self.block
    }

    #[inline(always)]
    pub(super) fn capacity(self) -> usize {
        usize::from(self.head().capacity)
    }

    /// The bytes of the block, without long keys.
    pub(super) fn bytes(self) -> usize {
        self.head().bytes as usize
    }

    /// One more than the last bit that the path to the block tests, or more: keys that agree in all
    /// bits before it with one of the block's keys are the block's.
    pub(super) fn depth(self) -> Bit {
        self.head().depth
    }

    pub(super) fn lock(self) -> &'g VersionLock {
        &self.head().lock
    }

    pub(super) fn updates(self) -> &'g Updates {
        &self.head().updates
    }

    /// The entries that are present, as bits.
    #[inline(always)]
    pub(super) fn live(self) -> u64 {
        self.head().live.load(Ordering::SeqCst)
    }

    /// Changes the entries that are present. The caller has the lock; if an entry leaves, no update
    /// is in progress.
    #[inline(always)]
    pub(super) fn set_live(self, live: u64) {
        self.head().live.store(live, Ordering::SeqCst);
    }

    /// The number of entries, present or not.
    #[inline(always)]
    pub(super) fn entries(self) -> usize {
        usize::from(self.head().entries.load(Ordering::Acquire))
    }

    /// The entries that have a tag, as bits.
    #[inline(always)]
    fn tagged(self, tag: u8) -> u64 {
        let head = self.head();
        let words: [u64; TAG_WORDS] =
            std::array::from_fn(|at| head.tags[at].load(Ordering::Relaxed));
        equal_bytes(words, tag)
    }

    /// The start of an integer, or the start and length of a byte string or reference.
    #[inline(always)]
    fn bounds(self, at: usize) -> (usize, usize, bool) {
        debug_assert!(at < self.capacity());
        if K::FIXED > 0 {
            return (HEAD + K::FIXED * at, K::FIXED, false);
        }
        let start = |at| self.start(at).load(Ordering::Relaxed);
        let (from, to) = (start(at), start(at + 1));
        let begin = usize::from(from & !OUTSIDE);
        (begin, usize::from(to & !OUTSIDE).wrapping_sub(begin), from & OUTSIDE != 0)
    }

    #[inline(always)]
    pub(super) fn start(self, at: usize) -> &'g AtomicU16 {
        // SAFETY: I1: a block of byte strings has `capacity + 1` starts behind its head.
        unsafe { self.block.byte_add(HEAD + 2 * at).cast().as_ref() }
    }

    /// The offsets of the parts.
    #[inline(always)]
    fn parts(self) -> Parts {
        parts::<K>(self.capacity(), self.sorted_entries(), self.prefix_len())
    }

    /// The length of the prefix that the block has once for all its keys, but for long ones.
    #[inline(always)]
    pub(super) fn prefix_len(self) -> usize {
        if K::SHARES { usize::from(self.head().prefix) } else { 0 }
    }

    #[inline(always)]
    pub(super) fn prefix(self) -> &'g [u8] {
        if !K::SHARES {
            return &[];
        }
        // SAFETY: I1: the block has a prefix of this length, which never changes.
        unsafe {
            let prefix = touch(self.block.as_ptr()).byte_add(prefix_at(self.capacity()));
            std::slice::from_raw_parts(prefix, self.prefix_len())
        }
    }

    /// The gaps of byte strings, as they are stored. Integers have none.
    #[inline(always)]
    pub(super) fn gaps(self) -> &'g [AtomicU16] {
        if K::FIXED > 0 {
            return &[];
        }
        let capacity = self.capacity();
        // SAFETY: I1: a block of byte strings has `capacity` gaps behind its starts.
        unsafe {
            let gaps = self.block.byte_add(HEAD + 2 * (capacity + 1));
            std::slice::from_raw_parts(gaps.cast().as_ptr(), capacity)
        }
    }

    #[inline(always)]
    pub(super) fn rank_byte(self, at: usize) -> &'g AtomicU8 {
        let sorted = self.sorted_entries();
        assert!((sorted..self.capacity()).contains(&at));
        let added = at - sorted;
        // SAFETY: I1: a block has a rank for each entry behind the first `sorted` (asserted).
        unsafe { self.block.byte_add(self.parts().ranks + added).cast().as_ref() }
    }

    /// The rank of an entry that was added. The caller has seen the entry.
    #[inline(always)]
    pub(super) fn rank(self, at: usize) -> Rank {
        let rank = self.rank_byte(at).load(Ordering::Relaxed);
        let gap = if K::FIXED == 0 { self.gaps()[at].load(Ordering::Relaxed) } else { 0 };
        let gap = Gap(gap.cast_signed());
        Rank { position: usize::from(rank & !FOLLOWS), gap, follows: rank & FOLLOWS != 0 }
    }

    /// The key of an entry. The caller has seen the entry: in `live`, in `entries`, or as it has
    /// the lock.
    #[inline(always)]
    pub(super) fn key(self, at: usize) -> K::Ref<'g> {
        self.key_behind(self.prefix(), at)
    }

    /// As `key`, for who has the block's prefix already.
    #[inline(always)]
    pub(super) fn key_behind(self, prefix: &'g [u8], at: usize) -> K::Ref<'g> {
        if K::IN_ENTRIES {
            let word = self.value(at).load(Ordering::SeqCst);
            // SAFETY: I2: the entry has a value. I10: it is the word of an entry that lives as long
            // as the tree.
            return unsafe { K::behind(word) };
        }
        let (start, len, outside) = self.bounds(at);
        let key = touch(self.block.as_ptr()).wrapping_byte_add(start);
        if K::FIXED == 0 && outside {
            return Self::outside_key(key);
        }
        // SAFETY: I2: the key was written before the entry could be seen, and never changes. It
        // lies in the block, which is not reclaimed during `'g`.
        unsafe { K::read(prefix, key, len) }
    }

    #[cold]
    fn outside_key(reference: *const u8) -> K::Ref<'g> {
        let (key, len) = read_reference(reference);
        // SAFETY: I2: the reference was written before the entry could be seen. I5: the key is
        // reclaimed no earlier than the last block that refers to it.
        unsafe { K::read(&[], touch(key), len) }
    }

    /// The memory of a long key, and its length.
    pub(super) fn outside(self, at: usize) -> Option<(NonNull<u8>, usize)> {
        let (start, _, outside) = self.bounds(at);
        if !outside {
            return None;
        }
        let (key, len) = read_reference(self.block.as_ptr().wrapping_byte_add(start));
        Some((NonNull::new(key)?, len))
    }

    /// Whether several entries with long keys are not present.
    pub(super) fn has_dead_long_keys(self) -> bool {
        const SEVERAL: usize = 4;
        if K::FIXED > 0 {
            return false;
        }
        let dead = !self.live() & all(self.entries());
        let is_long = |at: &usize| dead >> at & 1 == 1 && self.outside(*at).is_some();
        dead != 0 && (0..self.entries()).filter(is_long).count() >= SEVERAL
    }

    /// The value of an entry.
    #[inline(always)]
    pub(super) fn value(self, at: usize) -> &'g AtomicU64 {
        let capacity = self.capacity();
        debug_assert!(at < capacity);
        // SAFETY: I1: a block has a value for each entry, and is not reclaimed during `'g`.
        unsafe {
            let values = touch(self.block.as_ptr()).byte_add(self.parts().values);
            &*values.cast::<AtomicU64>().add(at)
        }
    }

    /// The tag of an entry. The caller has seen the entry.
    pub(super) fn tag(self, at: usize) -> u8 {
        (self.head().tags[at / 8].load(Ordering::Relaxed) >> (8 * (at % 8))) as u8
    }

    /// Finds a key among the entries of `among`.
    #[inline(always)]
    pub(super) fn find(
        self,
        key: K::Ref<'_>,
        tag: u8,
        among: u64,
        search: impl Search,
    ) -> Option<usize> {
        let mut found = self.tagged(tag) & among;
        while found != 0 {
            let at = found.trailing_zeros() as usize;
            let stored = self.key(at);
            let is_key = match K::pieces(K::shorten(key)) {
                Some([[], key]) => {
                    let [prefix, rest] = K::pieces(stored).unwrap_or_default();
                    search.equal(key, prefix, rest)
                }
                _ => K::shorten(stored) == K::shorten(key),
            };
            if planted(Canary::TagTakenForKey) || is_key {
                return Some(at);
            }
            found &= found - 1;
        }
        None
    }

    /// Prefetches the lines that a search reads first.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        let block = self.block.as_ptr();
        prefetch(block);
        prefetch(block.wrapping_add(64));
        prefetch(block.wrapping_add(128));
        if K::SHARES {
            prefetch(block.wrapping_add(192));
        }
    }

    /// Prefetches the lines that a walk reads first: the order, and the first keys and values.
    pub(super) fn prefetch_all(self) {
        for line in 0..8 {
            prefetch(self.block.as_ptr().wrapping_add(64 * line));
        }
    }

    /// Prefetches the lines that an insert writes: the end of the keys, and the places of the next
    /// entry.
    #[inline(always)]
    pub(super) fn prefetch_insert(self) {
        let block = self.block.as_ptr();
        let (parts, entries) = (self.parts(), self.entries());
        prefetch(block.wrapping_add(parts.values + 8 * entries));
        if K::FIXED == 0 {
            let end = self.head().end.load(Ordering::Relaxed) as usize;
            for at in [end, end + 64] {
                prefetch(block.wrapping_add(at));
            }
        }
    }

    /// Prefetches all lines, for a copy.
    pub(super) fn prefetch_whole(self) {
        for line in (0..self.bytes()).step_by(64) {
            prefetch(self.block.as_ptr().wrapping_add(line));
        }
    }

    /// Prefetches the value and key of the first entry that a search will compare.
    #[inline(always)]
    pub(super) fn prefetch_entry(self, tag: u8) {
        let found = self.tagged(tag) & self.live();
        if found != 0 {
            let at = found.trailing_zeros() as usize;
            prefetch(std::ptr::from_ref(self.value(at)));
            if K::IN_ENTRIES {
                return;
            }
            let key = self.block.as_ptr().wrapping_byte_add(self.bounds(at).0);
            prefetch(key);
            prefetch(key.wrapping_add(64));
        }
    }

    /// The number of first entries that are in the order of their keys. It never changes after the
    /// block is linked.
    #[inline(always)]
    pub(super) fn sorted_entries(self) -> usize {
        usize::from(self.head().sorted)
    }

    /// Whether no thread keeps updates out, or is in the middle of one.
    pub(super) fn admits_updates(self) -> bool {
        self.head().updates.is_idle()
    }

    /// The reads of a lookup that ends in the block, at an entry if it found its key.
    pub(super) fn looked_at(self, found: Option<usize>) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &BLOCK;
        let block = self.block.as_ptr().cast_const();
        let read = move |offset, bytes| layout.read(block, offset, bytes, Why::Found);
        let head = [read(0, 8), read(offset_of!(Head, tags), 8 * TAG_WORDS)];
        let prefix = Some(self.prefix_len()).filter(|len| found.is_some() && *len > 0);
        let prefix = prefix.map(|len| read(prefix_at(self.capacity()), len));
        let entry = found.map(|at| {
            let (start, len, _) = self.bounds(at);
            [read(start, len), read(self.parts().values + 8 * at, 8)]
        });
        head.into_iter().chain(prefix).chain(entry.into_iter().flatten())
    }

    pub(super) fn placed(self) -> Placed {
        let address = self.block.as_ptr().addr();
        Placed { layout: &BLOCK, address, before: 0, bytes: self.bytes() }
    }
}

/// The bits of the first `entries` entries.
#[inline(always)]
pub(super) fn all(entries: usize) -> u64 {
    (1 << entries) - 1
}

fn read_reference(reference: *const u8) -> (*mut u8, usize) {
    // SAFETY: the callers have found a reference of `REFERENCE` bytes there.
    unsafe {
        let key = reference.cast::<*mut u8>().read_unaligned();
        (key, reference.byte_add(8).cast::<u32>().read_unaligned() as usize)
    }
}
