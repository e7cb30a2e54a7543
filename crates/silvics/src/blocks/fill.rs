//! Writing entries to a block.

use super::block::{BlockRef, FOLLOWS, HEAD, New, OUTSIDE, TAG_WORDS};
use super::key::BlockKey;
use super::order::{Gap, NEW, Order, Rank};
use super::shape::inline_bytes;
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
    /// Whether the block has room for an entry whose key has `len` bytes. The caller has the lock.
    pub(super) fn has_room(self, len: usize) -> bool {
        let end = self.head().end.load(Ordering::Relaxed) as usize;
        self.entries() < self.capacity() && end + inline_bytes::<K>(len) <= self.bytes()
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
                K::write(key, self.as_ptr().as_ptr().wrapping_byte_add(HEAD + K::FIXED * at));
            };
        } else {
            let start = head.end.load(Ordering::Relaxed) as usize;
            let end = start + inline_bytes::<K>(K::len(K::shorten(new.key)));
            assert!(end <= self.bytes());
            let to = self.as_ptr().as_ptr().wrapping_byte_add(start);
            let mark = if let Some(outside) = new.outside {
                write_reference(to, outside, K::len(K::shorten(new.key)));
                OUTSIDE
            } else {
                // SAFETY: the key ends within the block (asserted). No entry has these bytes, so
                // nobody reads them.
                unsafe { K::write(key, to) };
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

    /// The bytes that a run of entries has in the block.
    pub(super) fn run_bytes(self, run: Run) -> usize {
        if K::FIXED > 0 {
            return 0;
        }
        let offset = |at| usize::from(self.start(at).load(Ordering::Relaxed) & !OUTSIDE);
        offset(run.first + run.len) - offset(run.first)
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
                    K::write(from.key(first + n), to.as_ptr());
                }
            }
        } else {
            let start = from.start(first).load(Ordering::Relaxed) & !OUTSIDE;
            let to = head.end.load(Ordering::Relaxed) as usize;
            let bytes = from.run_bytes(run);
            assert!(to + bytes <= self.bytes());
            // SAFETY: I2: these keys of the other block were written before its entries could be
            // seen, and never change. They end within this block (asserted), which nobody else has.
            unsafe {
                let keys = from.as_ptr().byte_add(usize::from(start));
                self.as_ptr().byte_add(to).copy_from_nonoverlapping(keys, bytes);
            }
            let moved = (to as u16).wrapping_sub(start);
            for n in 0..len {
                // The mark is in the highest bit, and offsets do not reach it.
                let start = from.start(first + n).load(Ordering::Relaxed).wrapping_add(moved);
                self.start(at + n).store(start, Ordering::Relaxed);
            }
            for (n, to) in self.gaps()[at..at + len].iter().enumerate() {
                to.store(gap(position + n).0.cast_unsigned(), Ordering::Relaxed);
            }
            self.start(at + len).store((to + bytes) as u16, Ordering::Relaxed);
            head.end.store((to + bytes) as u32, Ordering::Relaxed);
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

fn write_reference(to: *mut u8, key: NonNull<u8>, len: usize) {
    // SAFETY: the caller has found room for `REFERENCE` bytes there, which nobody else has.
    unsafe {
        to.cast::<*mut u8>().write_unaligned(key.as_ptr());
        to.byte_add(8).cast::<u32>().write_unaligned(len as u32);
    }
}
