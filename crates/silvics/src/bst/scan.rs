//! Ranges and cursors of the trees that have them.

use super::tree::{Algorithm, Tree};
use crate::domain::Guard;
use crate::index::{Cursor, KeyRef, OrderedIndex, OrderedScan};
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Keys that follow each other, from the first to the last: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    first: u64,
    last: u64,
}

impl Keys {
    /// Those within bounds of any kind, if there are any.
    pub fn within(bounds: &impl RangeBounds<u64>) -> Option<Self> {
        let first = match bounds.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(&key) => key,
            Bound::Excluded(&key) => key.checked_add(1)?,
        };
        let last = match bounds.end_bound() {
            Bound::Unbounded => u64::MAX,
            Bound::Included(&key) => key,
            Bound::Excluded(&key) => key.checked_sub(1)?,
        };
        (first <= last).then_some(Self { first, last })
    }

    /// The smallest.
    #[inline(always)]
    pub fn first(self) -> u64 {
        self.first
    }

    /// The largest.
    #[inline(always)]
    pub fn last(self) -> u64 {
        self.last
    }

    /// Whether `key` is one of them.
    #[inline(always)]
    pub fn contains(self, key: u64) -> bool {
        self.first <= key && key <= self.last
    }

    /// Those of them that are larger than `key`, which is one of them.
    #[inline(always)]
    pub fn after(self, key: u64) -> Option<Self> {
        (key < self.last).then(|| Self { first: key + 1, ..self })
    }

    /// Those of them that are smaller than `key`, which is one of them.
    #[inline(always)]
    pub fn before(self, key: u64) -> Option<Self> {
        (key > self.first).then(|| Self { last: key - 1, ..self })
    }
}

/// An algorithm whose entries can be scanned, as [`OrderedScan`] promises. Guards it is given are
/// of the tree's domain.
pub trait Ordered: Algorithm {
    /// An ascending scan.
    type Range<'g>: Iterator<Item = (u64, u64)>
    where
        Self: 'g;
    /// A descending scan.
    type RangeRev<'g>: Iterator<Item = (u64, u64)>
    where
        Self: 'g;

    /// The entries with these keys, ascending.
    fn range<'g>(&'g self, keys: Option<Keys>, guard: &'g Guard) -> Self::Range<'g>;

    /// The same, descending.
    fn range_rev<'g>(&'g self, keys: Option<Keys>, guard: &'g Guard) -> Self::RangeRev<'g>;
}

impl<A: Ordered> OrderedScan for Tree<A> {
    type Range<'g>
        = A::Range<'g>
    where
        Self: 'g;
    type RangeRev<'g>
        = A::RangeRev<'g>
    where
        Self: 'g;
    type Cursor = TreeCursor<A>;

    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> A::Range<'g> {
        self.domain().adopt(guard);
        self.0.range(Keys::within(&range), guard)
    }

    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> A::RangeRev<'g> {
        self.domain().adopt(guard);
        self.0.range_rev(Keys::within(&range), guard)
    }

    fn cursor(self: &Arc<Self>) -> TreeCursor<A> {
        TreeCursor { tree: Arc::clone(self), at: Position::BeforeFirst }
    }
}

/// A cursor over a tree; see [`Cursor`].
///
/// It stands at a key: each move pins and looks for the nearest entry beyond, as a range would.
pub struct TreeCursor<A: Ordered> {
    tree: Arc<Tree<A>>,
    at: Position,
}

#[derive(Clone, Copy)]
enum Position {
    BeforeFirst,
    /// At a key, whose value was this.
    At(u64, u64),
    AfterLast,
}

impl<A: Ordered> fmt::Debug for TreeCursor<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeCursor").field("key", &self.key()).finish_non_exhaustive()
    }
}

impl<A: Ordered> TreeCursor<A> {
    /// Stands at the first entry from `start` on, or after the last.
    fn stand_at_first(&mut self, start: Bound<u64>) -> bool {
        let keys = Keys::within(&(start, Bound::Unbounded));
        let first = self.tree.0.range(keys, &self.tree.domain().pin()).next();
        self.at = first.map_or(Position::AfterLast, |(key, value)| Position::At(key, value));
        first.is_some()
    }

    /// Stands at the last entry up to `end`, or before the first.
    fn stand_at_last(&mut self, end: Bound<u64>) -> bool {
        let keys = Keys::within(&(Bound::Unbounded, end));
        let last = self.tree.0.range_rev(keys, &self.tree.domain().pin()).next();
        self.at = last.map_or(Position::BeforeFirst, |(key, value)| Position::At(key, value));
        last.is_some()
    }
}

impl<A: Ordered> Cursor for TreeCursor<A> {
    type Key = u64;

    fn seek(&mut self, key: u64) -> bool {
        self.stand_at_first(Bound::Included(key))
    }

    fn seek_rev(&mut self, key: u64) -> bool {
        self.stand_at_last(Bound::Included(key))
    }

    fn next(&mut self) -> bool {
        match self.at {
            Position::BeforeFirst => self.stand_at_first(Bound::Unbounded),
            Position::At(key, _) => self.stand_at_first(Bound::Excluded(key)),
            Position::AfterLast => false,
        }
    }

    fn prev(&mut self) -> bool {
        match self.at {
            Position::BeforeFirst => false,
            Position::At(key, _) => self.stand_at_last(Bound::Excluded(key)),
            Position::AfterLast => self.stand_at_last(Bound::Unbounded),
        }
    }

    fn key(&self) -> Option<u64> {
        match self.at {
            Position::At(key, _) => Some(key),
            _ => None,
        }
    }

    fn value(&self) -> Option<u64> {
        match self.at {
            Position::At(_, value) => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    /// Bounds of every kind on keys at the ends of the key space, against what they say themselves.
    #[test]
    fn keys_within_bounds_of_every_kind() {
        let ends = [0, 1, 2, u64::MAX - 2, u64::MAX - 1, u64::MAX];
        let bounds = || {
            let kinds = |&key: &u64| [Included(key), Excluded(key)];
            ends.iter().flat_map(kinds).chain([Unbounded])
        };
        for low in bounds() {
            for high in bounds() {
                let keys = Keys::within(&(low, high));
                let inside: Vec<u64> =
                    ends.into_iter().filter(|key| (low, high).contains(key)).collect();
                for key in ends {
                    let is_inside = keys.is_some_and(|keys| keys.contains(key));
                    assert_eq!(is_inside, inside.contains(&key), "{key} in {low:?}, {high:?}");
                }
                let Some(keys) = keys else { continue };
                for key in inside {
                    assert_eq!(keys.after(key), Keys::within(&(Excluded(key), high)));
                    assert_eq!(keys.before(key), Keys::within(&(low, Excluded(key))));
                }
            }
        }
    }
}
