//! Order statistics.

use super::Counted;
use super::key::CountedKey;
use super::node::{Level, NodeRef};
use super::ops::Way;
use super::plan::MOST_KEYS;
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::frame::{AlgorithmKey, Index, Ordered};
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
            let root = self.root(guard).unwrap_or(root);
            way = Way::find(root, A::Key::shorten(key));
        }
        let (start, _) = way.bounds();
        let scanned = self.inner.count_range((start, end), guard);
        (way.count_before() as usize).saturating_add(scanned)
    }

    /// Whether the counts on a way have what was counted until now: no thread is counting, and the
    /// nodes have not been replaced. The caller has read their marks.
    fn is_counted(&self, way: &Way<'_, A::Key>, guard: &Guard) -> bool {
        !self.cleaning.load(Ordering::SeqCst)
            && self.root(guard).is_some_and(|root| way.is_linked(root))
    }

    /// The entry with a number.
    fn entry<'g>(&'g self, number: usize, guard: &'g Guard) -> Option<(AlgorithmKey<'g, A>, u64)> {
        let Some(mut root) = self.root_for_ranks(guard) else {
            return self.inner.range((Bound::Unbounded, Bound::Unbounded), guard).nth(number);
        };
        let is_counted = !root.is_marked_before(root.len())
            && !self.cleaning.load(Ordering::SeqCst)
            && self.root(guard) == Some(root);
        if !is_counted {
            self.clean(guard);
            root = self.root(guard)?;
        }
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
        self.nodes().fold(0, |sum, (node, at)| sum.wrapping_add(node.count_before(at)))
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
        let before = match range.start_bound().cloned() {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.0.keys_to(Bound::Excluded(key), guard),
            Bound::Excluded(key) => self.0.keys_to(Bound::Included(key), guard),
        };
        self.0.keys_to(range.end_bound().cloned(), guard).saturating_sub(before)
    }
}
