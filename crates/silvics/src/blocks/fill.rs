//! Writing entries to a block.

use super::block::{BlockRef, FOLLOWS, HEAD, New, OUTSIDE, TAG_WORDS};
use super::key::{Bit, BlockKey};
use super::order::{Gap, NEW, Order, Rank};
use super::shape::{inline_bytes, prefix_at};
use crate::canary::{Canary, planted};
use silvics_sync::atomic::Ordering;
use std::ptr::NonNull;

/// Entries of a block with numbers in a row that are neighbours in the order, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The position of the first one.
    pub(super) position: usize,
    /// The number of the first one.
    pub(super) first: usize,
    pub(super) len: usize,
}

impl Run {
    /// Whether it is an entry that is not in the block yet.
    pub(super) fn is_new(self) -> bool {
        self.first == usize::from(NEW)
    }
}

impl Order {
    /// The runs from a position to another one. A new entry is a run of its own.
    pub(super) fn runs(&self, from: usize, to: usize) -> impl Iterator<Item = Run> {
        let mut position = from;
        std::iter::from_fn(move || {
            let rest = &self.numbers()[..to][position..];
            let first = usize::from(*rest.first()?);
            let in_a_row = rest.iter().zip(first..);
            // The number of a new entry is the largest one, so none follows it.
            let len = in_a_row.take_while(|(number, next)| usize::from(**number) == *next).count();
            let run = Run { position, first, len };
            position += len;
            Some(run)
        })
    }
}

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// Whether the block has room for an entry whose key has `len` bytes and the block's prefix.
    /// The caller has the lock.
    pub(super) fn has_room(self, len: usize) -> bool {
        let end = self.head().end.load(Ordering::Relaxed) as usize;
        let bytes = inline_bytes::<K>(len.max(self.prefix_len()), self.prefix_len());
        self.entries() < self.capacity() && end + bytes <= self.bytes()
    }

    /// Whether a key of `len` bytes has the block's prefix, if it differs in `bit`, and in none
    /// before, from one that has it.
    pub(super) fn is_prefix_of(self, len: usize, bit: Bit) -> bool {
        let prefix = self.prefix_len();
        len >= prefix && (bit as usize >= 8 * prefix || planted(Canary::PrefixIgnored))
    }

    /// Writes the prefix, which is that of a key. Nobody else has the block.
    pub(super) fn set_prefix(self, key: K::Ref<'_>) {
        let (at, len) = (prefix_at(self.capacity()), self.prefix_len());
        if K::SHARES {
            // SAFETY: I1: the block has room for the prefix there, and nobody else has it.
            unsafe { K::write(key, 0..len, self.as_ptr().byte_add(at).as_ptr()) };
        }
    }

    /// Adds an entry, which [`BlockRef::has_room`] has found room for, and does not make it present
    /// yet. Returns its number. The caller has the lock, or nobody else has the block.
    pub(super) fn append(self, new: &New<'_, K>, tag: u8, rank: Rank) -> usize {
        let (head, at) = (self.head(), self.entries());
        assert!(at < self.capacity());
        let key = K::shorten(new.key);
        if K::FIXED > 0 {
            // SAFETY: there is a place for each key. Nobody reads this one before it is present,
            // or counted in `entries`.
            unsafe {
                let to = self.as_ptr().as_ptr().wrapping_byte_add(HEAD + K::FIXED * at);
                K::write(key, 0..K::FIXED, to);
            };
        } else {
            let start = head.end.load(Ordering::Relaxed) as usize;
            let (len, prefix) = (K::len(K::shorten(new.key)), self.prefix_len());
            let end = start + inline_bytes::<K>(len, prefix);
            assert!(end <= self.bytes());
            let to = self.as_ptr().as_ptr().wrapping_byte_add(start);
            let mark = if let Some(outside) = new.outside {
                write_reference(to, outside, len);
                OUTSIDE
            } else {
                // SAFETY: the key ends within the block (asserted). No entry has these bytes, so
                // nobody reads them.
                unsafe { K::write(key, prefix..len, to) };
                0
            };
            self.start(at).store(start as u16 | mark, Ordering::Relaxed);
            self.start(at + 1).store(end as u16, Ordering::Relaxed);
            head.end.store(end as u32, Ordering::Relaxed);
            self.gaps()[at].store(rank.gap.0.cast_unsigned(), Ordering::Relaxed);
        }
        if at >= self.sorted_entries() {
            let follows = if rank.follows { FOLLOWS } else { 0 };
            self.rank_byte(at).store(rank.position as u8 | follows, Ordering::Relaxed);
        }
        self.value(at).store(new.value, Ordering::Relaxed);
        let tags = &head.tags[at / 8];
        let word = tags.load(Ordering::Relaxed) | u64::from(tag) << (8 * (at % 8));
        tags.store(word, Ordering::Relaxed);
        head.entries.store(at as u8 + 1, Ordering::Release);
        at
    }

    /// The bytes that the keys of a run of entries take in a block with a prefix of `prefix` bytes.
    pub(super) fn run_bytes(self, run: Run, prefix: usize) -> usize {
        if K::FIXED > 0 {
            return 0;
        }
        let offset = |at| usize::from(self.start(at).load(Ordering::Relaxed) & !OUTSIDE);
        let bytes = offset(run.first + run.len) - offset(run.first);
        if prefix == self.prefix_len() {
            return bytes;
        }
        let is_inside = |at: &usize| self.start(*at).load(Ordering::Relaxed) & OUTSIDE == 0;
        let inside = (run.first..run.first + run.len).filter(is_inside).count();
        bytes + inside * self.prefix_len() - inside * prefix
    }

    /// Adds copies of a run of entries of another block, which keeps updates out. Nobody else has
    /// this block. It has room for them in its sorted part.
    pub(super) fn append_run(self, from: Self, run: Run, gap: impl Fn(usize) -> Gap) {
        let (head, at) = (self.head(), self.entries());
        let Run { position, first, len } = run;
        assert!(at + len <= self.sorted_entries() && first + len <= from.entries());
        if K::FIXED > 0 {
            for n in 0..len {
                // SAFETY: there is a place for each key, and nobody else has the block.
                unsafe {
                    let to = self.as_ptr().byte_add(HEAD + K::FIXED * (at + n));
                    K::write(from.key(first + n), 0..K::FIXED, to.as_ptr());
                }
            }
        } else {
            let bytes = from.run_bytes(run, self.prefix_len());
            let end = head.end.load(Ordering::Relaxed) as usize + bytes;
            assert!(end <= self.bytes());
            if self.prefix_len() == from.prefix_len() {
                self.copy_keys(from, run, bytes);
            } else {
                self.cut_keys(from, run);
            }
            for (n, to) in self.gaps()[at..at + len].iter().enumerate() {
                to.store(gap(position + n).0.cast_unsigned(), Ordering::Relaxed);
            }
            self.start(at + len).store(end as u16, Ordering::Relaxed);
            head.end.store(end as u32, Ordering::Relaxed);
        }
        let mut tags: [u64; TAG_WORDS] =
            std::array::from_fn(|word| head.tags[word].load(Ordering::Relaxed));
        for n in 0..len {
            let value = from.value(first + n).load(Ordering::Relaxed);
            self.value(at + n).store(value, Ordering::Relaxed);
            tags[(at + n) / 8] |= u64::from(from.tag(first + n)) << (8 * ((at + n) % 8));
        }
        for (word, tags) in head.tags.iter().zip(tags) {
            word.store(tags, Ordering::Relaxed);
        }
        head.entries.store((at + len) as u8, Ordering::Release);
    }
}

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// Copies the keys of a run, which take `bytes`, behind those of this block, which has room for
    /// them. Both blocks have the same prefix.
    fn copy_keys(self, from: Self, run: Run, bytes: usize) {
        let (at, to) = (self.entries(), self.head().end.load(Ordering::Relaxed) as usize);
        let start = from.start(run.first).load(Ordering::Relaxed) & !OUTSIDE;
        // SAFETY: I2: these keys of the other block were written before its entries could be seen,
        // and never change. The caller has found room for them in this block, which nobody else
        // has.
        unsafe {
            let keys = from.as_ptr().byte_add(usize::from(start));
            self.as_ptr().byte_add(to).copy_from_nonoverlapping(keys, bytes);
        }
        let moved = (to as u16).wrapping_sub(start);
        for n in 0..run.len {
            // The mark is in the highest bit, and offsets do not reach it.
            let start = from.start(run.first + n).load(Ordering::Relaxed).wrapping_add(moved);
            self.start(at + n).store(start, Ordering::Relaxed);
        }
    }

    /// As `copy_keys`, if the blocks have different prefixes.
    fn cut_keys(self, from: Self, run: Run) {
        let (at, prefix) = (self.entries(), self.prefix_len());
        let mut end = self.head().end.load(Ordering::Relaxed) as usize;
        for n in 0..run.len {
            let to = self.as_ptr().as_ptr().wrapping_byte_add(end);
            let (mark, len) = if let Some((outside, len)) = from.outside(run.first + n) {
                write_reference(to, outside, len);
                (OUTSIDE, len)
            } else {
                let key = from.key(run.first + n);
                let len = K::len(K::shorten(key));
                // SAFETY: the caller has found room for the keys of the run, without the prefix.
                // Nobody else has this block.
                unsafe { K::write(key, prefix..len, to) };
                (0, len)
            };
            self.start(at + n).store(end as u16 | mark, Ordering::Relaxed);
            end += inline_bytes::<K>(len, prefix);
        }
    }
}

fn write_reference(to: *mut u8, key: NonNull<u8>, len: usize) {
    // SAFETY: the caller has found room for `REFERENCE` bytes there, which nobody else has.
    unsafe {
        to.cast::<*mut u8>().write_unaligned(key.as_ptr());
        to.byte_add(8).cast::<u32>().write_unaligned(len as u32);
    }
}
