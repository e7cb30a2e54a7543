//! Searches.

use super::node::{Link, Node};
use super::order::Probe;
use super::{Arena, Order, Placing, Position, SkipList};
use silvics_sync::atomic::Ordering as Memory;
use silvics_sync::prefetch;
use std::cmp::Ordering;
use std::marker::PhantomData;

/// The place of a search on a level: the last node before the target that it knows.
#[derive(Clone, Copy)]
pub(super) struct Stand<'l> {
    pub(super) node: Node<'l>,
    /// The target, relative to the node.
    pub(super) probe: Probe,
}

impl<O: Order, A: Arena, L: Placing> SkipList<O, A, L> {
    /// The node as a position.
    #[inline(always)]
    pub(super) fn position(node: Node<'_>) -> Position<'_, L> {
        Position { node, placing: PhantomData }
    }

    /// The place at which a search begins.
    #[inline(always)]
    pub(super) fn stand(&self, target: O::Target<'_>) -> Stand<'_> {
        Stand { node: self.head.node(), probe: self.order.start(target) }
    }

    /// Moves to the last node of a level before the target. Returns its link, and how the node that
    /// the link leads to compares with the target; it is greater if there is none. `bigger` is a
    /// node that is known to be greater.
    #[inline(always)]
    pub(super) fn walk<'l>(
        &'l self,
        target: O::Target<'_>,
        stand: &mut Stand<'l>,
        level: usize,
        bigger: Option<Node<'l>>,
    ) -> (Link<'l>, Ordering) {
        loop {
            let link = stand.node.next(level);
            let Some(next) = link.node() else { return (link, Ordering::Greater) };
            if O::HINTS {
                if link.hint() < stand.probe.hint {
                    stand.node = next; // S3: the probe holds from there, too (`order.rs`)
                    continue;
                }
                if link.hint() > stand.probe.hint {
                    return (link, Ordering::Greater);
                }
            }
            if bigger == Some(next) {
                return (link, Ordering::Greater);
            }
            prefetch(next.line_of(level));
            if level > 0
                && let Some(below) = stand.node.next(level - 1).node()
            {
                prefetch(below.line_of(level - 1)); // the next one, if `next` is behind the target
            }
            let order = self.order.look(&mut stand.probe, Self::position(next).entry(), target);
            if order.is_ge() {
                return (link, order);
            }
            stand.node = next;
        }
    }

    /// Descends to level 0. Returns the place there, the link that leaves it, and the node with the
    /// target's key if `EQUAL`; then it stops at the level on which it meets this node.
    #[inline(always)]
    fn descend<const EQUAL: bool>(&self, target: O::Target<'_>) -> (Stand<'_>, Link<'_>, bool) {
        let mut stand = self.stand(target);
        let mut bigger = None;
        let mut level = self.height.load(Memory::Relaxed);
        loop {
            level -= 1;
            let (link, order) = self.walk(target, &mut stand, level, bigger);
            if level == 0 || (EQUAL && order.is_eq()) {
                return (stand, link, order.is_eq());
            }
            bigger = link.node();
        }
    }

    /// The first entry whose key is at or after the target.
    #[inline]
    pub fn seek(&self, target: O::Target<'_>) -> Option<Position<'_, L>> {
        let (_, link, _) = self.descend::<true>(target);
        link.node().map(Self::position)
    }

    /// The last entry whose key is at or before the target.
    #[inline]
    pub fn seek_for_prev(&self, target: O::Target<'_>) -> Option<Position<'_, L>> {
        let (stand, link, is_equal) = self.descend::<true>(target);
        if is_equal { link.node().map(Self::position) } else { self.position_of(stand.node) }
    }

    /// The last entry whose key is before the target.
    pub fn seek_before(&self, target: O::Target<'_>) -> Option<Position<'_, L>> {
        let (stand, _, _) = self.descend::<false>(target);
        self.position_of(stand.node)
    }

    /// Whether there is an entry with this key.
    pub fn contains(&self, target: O::Target<'_>) -> bool {
        self.descend::<true>(target).2
    }

    /// The first entry.
    pub fn first(&self) -> Option<Position<'_, L>> {
        self.head.node().next(0).node().map(Self::position)
    }

    /// The last entry.
    pub fn last(&self) -> Option<Position<'_, L>> {
        let mut node = self.head.node();
        for level in (0..self.height.load(Memory::Relaxed)).rev() {
            while let Some(next) = node.next(level).node() {
                node = next;
            }
        }
        self.position_of(node)
    }

    /// The entry behind a position. O(1).
    #[inline]
    pub fn next<'l>(&'l self, position: Position<'l, L>) -> Option<Position<'l, L>> {
        let next = position.node.next(0).node()?;
        prefetch(next.line_of(0));
        Some(Self::position(next))
    }

    /// The entry before a position. It is a search, since nodes have no links back.
    pub fn prev<'l>(&'l self, position: Position<'l, L>) -> Option<Position<'l, L>> {
        self.seek_before(O::target(position.entry()))
    }

    /// Visits a position and up to `count` - 1 entries behind it, or before it if `backwards`. The
    /// entry behind the last one is brought into the cache, for a walk that goes on.
    #[inline(always)]
    pub fn visit<'l>(
        &'l self,
        mut at: Option<Position<'l, L>>,
        backwards: bool,
        count: usize,
        mut each: impl FnMut(Position<'l, L>),
    ) {
        for left in (0..count).rev() {
            let Some(here) = at else { return };
            each(here);
            // A step back is a search, so the last one is spared.
            at = match backwards {
                false => self.next(here),
                true if left > 0 => self.prev(here),
                true => None,
            };
        }
    }

    /// The node as a position, unless it is the head.
    fn position_of<'l>(&'l self, node: Node<'l>) -> Option<Position<'l, L>> {
        (node != self.head.node()).then(|| Self::position(node))
    }
}
