//! Order statistics.

use super::Counted;
use super::key::CountedKey;
use super::node::{Level, NodeRef};
use super::ops::Way;
use super::plan::MOST_KEYS;
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::frame::{AlgorithmBounds, AlgorithmKey, Index, Ordered};
use crate::index::{KeyRef, Lookup, OrderStatistics};
use silvics_sync::atomic::Ordering;
use std::ops::{Bound, RangeBounds};

impl<A: Ordered<Key: CountedKey>> Counted<A> {
    /// The root, made if the index has many keys.
    fn root_for_ranks<'g>(&'g self, guard: &'g Guard) -> Option<NodeRef<'g, A::Key>> {
        self.root(guard).or_else(|| {
            if self.len() <= MOST_KEYS as usize {
                return None;
            }
            self.clean(guard);
            self.root(guard)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.inner.frame().len.sum().max(0) as usize
    }

    /// The number of keys up to a bound.
    fn keys_to<'g>(&'g self, end: Bound<AlgorithmKey<'g, A>>, guard: &'g Guard) -> usize {
        let (Bound::Included(key) | Bound::Excluded(key)) = end else { return self.len() };
        let Some(root) = self.root_for_ranks(guard) else {
            return self.inner.count_range((Bound::Unbounded, end), guard);
        };
        self.inner.prefetch_leaf(A::Key::shorten(key), guard);
        let mut way = Way::find(root, A::Key::shorten(key));
        if way.is_marked_before() || !self.is_counted(&way, guard) {
            self.clean(guard);
            let Some(root) = self.root(guard) else {
                // It has been dropped since, or there is no memory for it.
                return self.inner.count_range((Bound::Unbounded, end), guard);
            };
            way = Way::find(root, A::Key::shorten(key));
        }
        let (start, _) = way.bounds();
        let scanned = self.inner.count_range((start, end), guard);
        (way.count_before() as usize).saturating_add(scanned)
    }

    /// The number of keys between two bounds. If both are keys, it reads no count of other keys, so
    /// operations on these do not change it. Without an upper bound, it is the number of all keys
    /// less a rank: then operations below the range count, too.
    fn keys_in<'g>(&'g self, bounds: AlgorithmBounds<'g, A>, guard: &'g Guard) -> usize {
        let (from, to) = match bounds {
            (Bound::Unbounded, end) => return self.keys_to(end, guard),
            (Bound::Included(from) | Bound::Excluded(from), end) => match end {
                Bound::Included(to) | Bound::Excluded(to) => (from, to),
                Bound::Unbounded => {
                    let before = match bounds.0 {
                        Bound::Excluded(_) => self.keys_to(Bound::Included(from), guard),
                        _ => self.keys_to(Bound::Excluded(from), guard),
                    };
                    return self.len().saturating_sub(before);
                }
            },
        };
        if from > to {
            return 0;
        }
        self.inner.prefetch_leaf(A::Key::shorten(from), guard);
        self.inner.prefetch_leaf(A::Key::shorten(to), guard);
        let find = |root| {
            let last = Way::find(root, A::Key::shorten(to));
            (Way::find_beside(&last, A::Key::shorten(from)), last)
        };
        let mut ways = self.root_for_ranks(guard).map(find);
        let is_counted = |way| self.is_counted(way, guard);
        if let Some((first, last)) = &ways
            && (last.is_marked_before() || !is_counted(first) || !is_counted(last))
        {
            self.clean(guard);
            ways = self.root(guard).map(find);
        }
        let Some((first, last)) = ways else { return self.inner.count_range(bounds, guard) };
        match first.count_between(&last) {
            None => self.inner.count_range(bounds, guard), // they are in one bucket
            Some(between) => {
                let first = self.inner.count_range((bounds.0, first.bounds().1), guard);
                let last = self.inner.count_range((last.bounds().0, bounds.1), guard);
                (between as usize).saturating_add(first + last)
            }
        }
    }

    /// Whether the counts on a way have what was counted until now: no thread is counting, and the
    /// nodes have not been replaced. The caller has read their marks.
    fn is_counted(&self, way: &Way<'_, A::Key>, guard: &Guard) -> bool {
        !self.cleaning.load(Ordering::SeqCst)
            && self.root(guard).is_some_and(|root| way.is_linked(root))
    }

    /// The root, with all buckets counted, if there is one.
    fn counted_root<'g>(&'g self, guard: &'g Guard) -> Option<NodeRef<'g, A::Key>> {
        let root = self.root_for_ranks(guard)?;
        let is_counted = !root.is_marked_before(root.len())
            && !self.cleaning.load(Ordering::SeqCst)
            && self.root(guard) == Some(root);
        if is_counted {
            return Some(root);
        }
        self.clean(guard);
        self.root(guard)
    }

    /// The entry with a number.
    fn entry<'g>(&'g self, number: usize, guard: &'g Guard) -> Option<(AlgorithmKey<'g, A>, u64)> {
        let Some(root) = self.counted_root(guard) else {
            return self.inner.range((Bound::Unbounded, Bound::Unbounded), guard).nth(number);
        };
        let (mut node, mut number, mut is_first) = (root, number as u64, true);
        let separator = loop {
            let (at, left) = node.part_of(number);
            (number, is_first) = (left, is_first && at == 0);
            if node.level() == Level::Group {
                break node.separator(at);
            }
            node = node.child(at);
        };
        let start = if is_first { Bound::Unbounded } else { Bound::Included(separator.key) };
        self.inner.range((start, Bound::Unbounded), guard).nth(usize::try_from(number).ok()?)
    }
}

impl<'g, K: CountedKey + ?Sized> Way<'g, K> {
    /// Whether keys before the bucket may have come or gone since they were counted.
    fn is_marked_before(&self) -> bool {
        self.nodes().any(|(node, at)| node.is_marked_before(at))
    }

    /// The number of keys before the bucket.
    fn count_before(&self) -> u64 {
        self.nodes().fold(0, |sum, (node, at)| sum.wrapping_add(node.count_in(0..at)))
    }

    /// The number of keys between the bucket and another one behind it, on a way that begins with
    /// the same nodes. Nothing if it is the same bucket.
    fn count_between(&self, last: &Self) -> Option<u64> {
        let (mut sum, mut is_same) = (0_u64, true);
        for ((first, from), (last, to)) in self.nodes().zip(last.nodes()) {
            if is_same && from < to {
                (sum, is_same) = (sum.wrapping_add(first.count_in(from + 1..to)), false);
            } else if !is_same {
                let ends = [first.count_in(from + 1..first.len()), last.count_in(0..to)];
                sum = ends.into_iter().fold(sum, u64::wrapping_add);
            }
        }
        (!is_same).then_some(sum)
    }

    fn nodes(&self) -> impl Iterator<Item = (NodeRef<'g, K>, usize)> {
        [self.root, self.section, self.group].into_iter().zip(self.at)
    }
}

impl<A: Ordered<Key: CountedKey>> OrderStatistics for Index<Counted<A>> {
    fn rank<'g>(&'g self, key: KeyRef<'g, Self>, guard: &'g Guard) -> usize {
        let guard = self.domain().adopt(guard);
        self.0.keys_to(Bound::Excluded(key), guard)
    }

    fn nth<'g>(&'g self, number: usize, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)> {
        let guard = self.domain().adopt(guard);
        self.0.entry(number, guard)
    }

    fn count<'g, R: RangeBounds<KeyRef<'g, Self>>>(&'g self, range: R, guard: &'g Guard) -> usize {
        let guard = self.domain().adopt(guard);
        self.0.keys_in((range.start_bound().cloned(), range.end_bound().cloned()), guard)
    }
}
