//! The order of a block's entries, and the place of a key in it.
//!
//! # Order
//! A block is made with its entries in order. An insert appends its entry behind them and notes its
//! *rank*: how many entries precede it. So the order of all entries is that of the first ones, with
//! each later one put in at its rank. No key is read for it.
//!
//! # Gaps
//! The *gap* of an entry is the first bit in which its key differs from the key before it in the
//! order. The gaps are the inner nodes of a Patricia trie of the keys, from left to right. So a
//! search looks at bits of its own key only, until it has come to one entry: if any key agrees with
//! it up to some bit, this one does. It compares the two keys, and the bit in which they differ
//! leads to the place of its key: Ferragina, Grossi, "The string B-tree", JACM 1999, section 2.
//!
//! Integers have no gaps: their keys lie next to each other, and a binary search compares them. So
//! does one that comes to keys with 4095 equal bytes, whose gaps would not fit in 16 bits.

use super::block::{BlockRef, MAX_ENTRIES};
use super::key::{Bit, BlockKey, LENGTH};
use super::lanes::smaller;
use crate::canary::{Canary, planted};
use silvics_sync::atomic::Ordering;

/// The first bit in which two neighbours differ. Gaps have the order of their bits. The number is
/// negative for a bit of a byte, since SSE2 compares signed numbers.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Gap(pub(super) i16);

impl Gap {
    /// The gap of the first entry, which no search reads.
    pub(super) const NONE: Self = Self(i16::MIN);
    /// This bit of a byte, or any later one: too far to be noted.
    const FAR: Self = Self(-1);

    pub(super) fn of(bit: Bit) -> Self {
        if bit >= LENGTH {
            return Self((bit - LENGTH) as i16);
        }
        const FAR: i32 = Gap::FAR.0 as i32 - i16::MIN as i32;
        Self((i32::from(i16::MIN) + (bit as i32).min(FAR)) as i16)
    }

    /// Whether a key has the bit, if it is not far.
    #[inline(always)]
    fn is_in<K: BlockKey + ?Sized>(self, key: K::Ref<'_>) -> bool {
        if self.0 >= 0 {
            return K::has(key, LENGTH + self.0 as Bit);
        }
        K::has(key, (self.0 as u16 & i16::MAX as u16).into())
    }
}

/// The place that an entry was put in at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    /// The number of entries that precede it.
    pub(super) position: usize,
    /// The first bit in which its key differs from that of the neighbour that is more like it.
    pub(super) gap: Gap,
    /// Whether this neighbour precedes it.
    pub(super) follows: bool,
}

impl Rank {
    /// The rank of an entry that is appended in order.
    pub(super) fn last(gap: Gap) -> Self {
        Self { position: 0, gap, follows: true }
    }
}

/// The place of a key among the entries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// It is the key of the entry at this position.
    At(usize),
    /// No entry has the key. It differs in this bit, and in none before, from the key that is most
    /// like it.
    Between(Rank, Bit),
}

/// The numbers of a block's entries in the order of their keys, present or not.
pub(super) struct Order {
    numbers: [u8; MAX_ENTRIES + 1],
    gaps: [Gap; MAX_ENTRIES + 1],
    len: usize,
}

/// The number of an entry that is not in the block yet.
pub(super) const NEW: u8 = u8::MAX;

impl Order {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn numbers(&self) -> &[u8] {
        &self.numbers[..self.len]
    }

    /// The gap of the entry at a position. The first entry has none.
    pub(super) fn gap(&self, position: usize) -> Gap {
        self.gaps[position]
    }

    /// Puts an entry in at its rank.
    #[inline]
    pub(super) fn insert(&mut self, rank: Rank, number: u8) {
        let Rank { position: at, gap, follows } = rank;
        self.numbers.copy_within(at..self.len, at + 1);
        self.gaps.copy_within(at..self.len, at + 1);
        self.numbers[at] = number;
        self.len += 1;
        if follows {
            self.gaps[at] = gap;
        } else if !planted(Canary::GapForgotten) {
            // The entry behind it was that of the old gap. Now the new one is.
            self.gaps[at + 1] = gap;
        }
    }

    /// Leaves out the entries that are not `live`, except for new ones.
    pub(super) fn keep(&mut self, live: u64) {
        let (mut kept, mut gap) = (0, Gap(i16::MAX));
        for at in 0..self.len {
            gap = gap.min(self.gaps[at]);
            let number = self.numbers[at];
            if number == NEW || live >> number & 1 == 1 {
                (self.numbers[kept], self.gaps[kept]) = (number, gap);
                (kept, gap) = (kept + 1, Gap(i16::MAX));
            }
        }
        self.len = kept;
    }

    /// The place of a key among the entries of `block`, which are these. There is one at least.
    #[inline]
    pub(super) fn place<K: BlockKey + ?Sized>(
        &self,
        block: BlockRef<'_, K>,
        key: K::Ref<'_>,
    ) -> Place {
        if K::FIXED > 0 {
            return self.place_by_keys(block, key);
        }
        // The leftmost entry below the nodes passed, and the first one that is not below them.
        let (mut nearest, mut at) = (0, 1);
        while at < self.len {
            let gap = self.gaps[at];
            if gap == Gap::FAR {
                return self.place_by_keys(block, key);
            }
            if gap.is_in::<K>(K::shorten(key)) {
                (nearest, at) = (at, at + 1);
            } else {
                at = self.end_of_larger(at, gap);
            }
        }
        let other = block.key(usize::from(self.numbers[nearest]));
        let Some(bit) = K::difference(K::shorten(key), other) else { return Place::At(nearest) };
        let (gap, follows) = (Gap::of(bit), K::has(K::shorten(key), bit));
        if gap == Gap::FAR {
            return self.place_by_keys(block, key);
        }
        // Behind the entries next to this one that agree with it in the bit, or before them.
        let position = if follows {
            self.end_of_larger(nearest, gap)
        } else {
            let smaller = self.smaller(gap) & !(!1 << nearest) | 1;
            smaller.ilog2() as usize
        };
        Place::Between(Rank { position, gap, follows }, bit)
    }

    /// The positions whose gap is smaller than `gap`, as bits.
    #[inline(always)]
    fn smaller(&self, gap: Gap) -> u64 {
        smaller(self.gaps.first_chunk().expect("as many gaps"), gap)
    }

    /// The first position behind `at` whose gap is smaller than `gap`.
    #[inline(always)]
    fn end_of_larger(&self, at: usize, gap: Gap) -> usize {
        let smaller = self.smaller(gap) | 1 << self.len;
        at + 1 + (smaller >> at >> 1).trailing_zeros() as usize
    }

    /// As `place`, by comparisons alone.
    fn place_by_keys<K: BlockKey + ?Sized>(
        &self,
        block: BlockRef<'_, K>,
        key: K::Ref<'_>,
    ) -> Place {
        let key_of = |number: &u8| block.key(usize::from(*number));
        let numbers = self.numbers();
        let position = numbers.partition_point(|number| key_of(number) < K::shorten(key));
        let difference = |at: usize| K::difference(K::shorten(key), key_of(&numbers[at]));
        let behind = match numbers.get(position).map(|_| difference(position)) {
            Some(None) => return Place::At(position),
            behind => behind.flatten(),
        };
        let before = position.checked_sub(1).and_then(difference);
        // No neighbour is less like the key than any neighbour. There is one at least.
        let bit = before.max(behind).unwrap_or(0);
        Place::Between(Rank { position, gap: Gap::of(bit), follows: before > behind }, bit)
    }
}

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// The order of all entries, with gaps if keys have them.
    #[inline]
    pub(super) fn order(self) -> Order {
        self.order_with::<true>()
    }

    /// The order of all entries, without gaps.
    #[inline]
    pub(super) fn bare_order(self) -> Order {
        self.order_with::<false>()
    }

    #[inline]
    fn order_with<const WITH_GAPS: bool>(self) -> Order {
        let (entries, sorted) = (self.entries(), self.sorted_entries());
        let numbers = std::array::from_fn(|at| at as u8);
        let mut order = Order { numbers, gaps: [Gap::NONE; MAX_ENTRIES + 1], len: sorted };
        if WITH_GAPS && K::FIXED == 0 {
            for (to, gap) in order.gaps[..sorted].iter_mut().zip(self.gaps()).skip(1) {
                *to = Gap(gap.load(Ordering::Relaxed).cast_signed());
            }
        }
        for at in sorted..entries {
            order.insert(self.rank(at), at as u8);
        }
        order
    }
}
