//! Ranges in both directions.

use super::Skip;
#[cfg(doc)]
use super::SkipList;
use super::key::SkipKey;
use super::node::NodeRef;
use super::seek::Found;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::{Placement, Pooled};
use silvics_sync::atomic::Ordering as Memory;
use std::marker::PhantomData;
use std::ops::Bound;

/// An ascending scan of a [`SkipList`]; [`crate::OrderedScan`] states its guarantees.
///
/// Each step reads one node. A walk along level 0 alone would wait for each node in turn, so scouts
/// go ahead on the lowest levels.
pub struct Range<'g, K: SkipKey + ?Sized, P: Placement = Pooled> {
    next: Option<NodeRef<'g, K>>,
    scouts: Scouts<'g, K>,
    end: Bound<K::Ref<'g>>,
    marker: PhantomData<&'g Skip<K, P>>,
}

impl<'g, K: SkipKey + ?Sized, P: Placement> Range<'g, K, P> {
    pub(super) fn new(
        list: &'g Skip<K, P>,
        start: Bound<K::Ref<'g>>,
        end: Bound<K::Ref<'g>>,
        guard: &'g Guard,
    ) -> Self {
        let mut trail = [list.head(); SCOUTS];
        let next = list.first_from(start, &mut trail, guard);
        Self { next, scouts: Scouts::new(trail), end, marker: PhantomData }
    }

    /// Moves past the replacement of the removed `node`: never, since its key may be present.
    #[inline(always)]
    fn skip_replacement(&mut self, node: NodeRef<'g, K>) {
        while planted(Canary::ScanSkipsReplacement)
            && let Some(next) = self.next
            && next.key() == node.key()
        {
            self.next = next.next(0).node();
        }
    }
}

/// The number of lowest levels on which scouts go ahead of an ascending scan.
const SCOUTS: usize = 3;
/// The lead of a scout over the scan, in nodes of its level.
const LEAD: u8 = 4;

/// The scouts of an ascending scan, one on each of the lowest levels. A scout stands at a node that
/// is prefetched but not read. When the scan passes a node of a level, the scout of this level
/// reads its own node's links, prefetches the next nodes on its level and the one below, and moves
/// on. So the misses of all levels overlap, and each node is in the cache when the scan reaches it.
///
/// A scout starts at the node where the descent stood, and stays on its level. So every node that
/// it reads was linked there during the scan (I6).
struct Scouts<'g, K: SkipKey + ?Sized> {
    at: [Option<NodeRef<'g, K>>; SCOUTS],
    lead: [u8; SCOUTS],
}

impl<'g, K: SkipKey + ?Sized> Scouts<'g, K> {
    fn new(trail: [NodeRef<'g, K>; SCOUTS]) -> Self {
        Self { at: trail.map(Some), lead: [0; SCOUTS] }
    }

    /// Advances the scouts of all levels of `node`, which the scan passes.
    #[inline(always)]
    fn pass(&mut self, node: NodeRef<'g, K>) {
        for level in 0..node.height().min(SCOUTS) {
            self.lead[level] = self.lead[level].saturating_sub(1);
            // A scout takes two steps for one of the scan, until it has its lead.
            for _ in 0..2 {
                if self.lead[level] < LEAD {
                    self.advance(level);
                }
            }
        }
    }

    #[inline(always)]
    fn advance(&mut self, level: usize) {
        let Some(scout) = self.at[level] else { return };
        let link = scout.next(level);
        link.prefetch();
        if level > 0 {
            scout.next(level - 1).prefetch();
        }
        self.at[level] = link.node();
        self.lead[level] += 1;
    }
}

impl<'g, K: SkipKey + ?Sized, P: Placement> Iterator for Range<'g, K, P> {
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let node = self.next?;
            let onward = node.next(0);
            self.scouts.pass(node);
            // A marked link is frozen. The node that it leads to followed `node` when it was
            // frozen. Nodes that have come between since then were not present throughout the scan.
            self.next = onward.node();
            if onward.is_marked() {
                self.skip_replacement(node);
                continue;
            }
            let key = node.key();
            let within = match self.end {
                Bound::Unbounded => true,
                Bound::Included(end) => key <= end,
                Bound::Excluded(end) => key < end,
            };
            if !within {
                self.next = None;
                return None;
            }
            return Some((key, node.value()));
        }
    }
}

/// The number of nodes that a descending scan collects at a time.
const RUN: usize = 32;

/// A descending scan of a [`SkipList`]; [`crate::OrderedScan`] states its guarantees.
///
/// Links lead forward only. So the scan descends to a node some way before its position, collects
/// nodes along level 0 from there, and returns them in reverse: one descent for some eight entries.
pub struct RangeRev<'g, K: SkipKey + ?Sized, P: Placement = Pooled> {
    list: &'g Skip<K, P>,
    guard: &'g Guard,
    start: Bound<K::Ref<'g>>,
    /// The end of the next run; none when the scan is over.
    end: Option<Bound<K::Ref<'g>>>,
    run: [Option<NodeRef<'g, K>>; RUN],
    /// The run's nodes are `run[at % RUN]` for `at` in `first..last`.
    first: usize,
    last: usize,
}

impl<'g, K: SkipKey + ?Sized, P: Placement> RangeRev<'g, K, P> {
    pub(super) fn new(
        list: &'g Skip<K, P>,
        start: Bound<K::Ref<'g>>,
        end: Bound<K::Ref<'g>>,
        guard: &'g Guard,
    ) -> Self {
        Self { list, guard, start, end: Some(end), run: [None; RUN], first: 0, last: 0 }
    }

    /// Collects the last nodes before `end`. The run stays empty only if there are none.
    fn refill(&mut self) {
        while let Some(end) = self.end.take() {
            (self.first, self.last) = (0, 0);
            let from = self.list.last_before(end, K::RUN_LEVEL, self.guard);
            let is_head = from == self.list.head();
            let mut node = Some(from);
            while let Some(current) = node {
                let onward = current.next(0);
                let within = match end {
                    Bound::Unbounded => true,
                    Bound::Included(end) => current.key() <= end,
                    Bound::Excluded(end) => current.key() < end,
                };
                if !within && current != self.list.head() {
                    break;
                }
                if !onward.is_marked() && current != self.list.head() {
                    self.run[self.last % RUN] = Some(current);
                    self.last += 1;
                    self.first = self.first.max(self.last.saturating_sub(RUN));
                }
                node = onward.node();
            }
            if self.first < self.last {
                let oldest = self.run[self.first % RUN].expect("collected above");
                self.end = Some(Bound::Excluded(oldest.key()));
                return;
            }
            if !is_head {
                // All of them were removed meanwhile: collect further back.
                self.end = Some(Bound::Excluded(from.key()));
            }
        }
    }
}

impl<'g, K: SkipKey + ?Sized, P: Placement> Iterator for RangeRev<'g, K, P> {
    type Item = (K::Ref<'g>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        if self.first == self.last {
            self.refill();
        }
        if self.first == self.last {
            return None;
        }
        self.last -= 1;
        let node = self.run[self.last % RUN]?;
        let key = node.key();
        let within = match self.start {
            Bound::Unbounded => true,
            Bound::Included(start) => key >= start,
            Bound::Excluded(start) => key > start,
        };
        if !within {
            (self.first, self.last, self.end) = (0, 0, None);
            return None;
        }
        Some((key, node.value()))
    }
}

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// Returns the first node at or after a bound, marked or not, and fills `trail` with the trail
    /// of the search for it.
    pub(super) fn first_from<'g, const TRAIL: usize>(
        &'g self,
        start: Bound<K::Ref<'_>>,
        trail: &mut [NodeRef<'g, K>; TRAIL],
        guard: &'g Guard,
    ) -> Option<NodeRef<'g, K>> {
        let (key, included) = match start {
            Bound::Unbounded => return self.head().next(0).node(),
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        let found = match self.search::<true, TRAIL>(K::shorten(key), 0, trail, guard) {
            Found::Present(node) if included => return Some(node),
            Found::Present(node) => node.next(0).node(),
            Found::Absent { link, .. } => link.node(),
        };
        // The next nodes may still have this key: removed ones, or the replacement of one.
        let mut next = found;
        while let Some(node) = next {
            let order = K::shorten(node.key()).cmp(&K::shorten(key));
            if order.is_gt() || included && order.is_eq() {
                break;
            }
            next = node.next(0).node();
        }
        next
    }

    /// The last node on level `floor` before the end of a bound, or the head if there is none. The
    /// node was unmarked when the search met it.
    pub(super) fn last_before<'g>(
        &'g self,
        end: Bound<K::Ref<'_>>,
        floor: usize,
        guard: &'g Guard,
    ) -> NodeRef<'g, K> {
        match end {
            Bound::Included(key) | Bound::Excluded(key) => {
                match self.search::<false, 0>(key, floor, &mut [], guard) {
                    Found::Absent { before, .. } | Found::Present(before) => before,
                }
            }
            Bound::Unbounded => self.last_on(floor),
        }
    }

    fn last_on(&self, floor: usize) -> NodeRef<'_, K> {
        let mut last = self.head();
        for level in (floor..self.height.load(Memory::Relaxed).max(floor + 1)).rev() {
            let mut next = last.next(level).node();
            while let Some(node) = next {
                let onward = node.next(level);
                if !onward.is_marked() {
                    last = node;
                }
                next = onward.node();
            }
        }
        last
    }
}
