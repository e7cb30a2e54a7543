//! Inserts.

#![expect(clippy::needless_pass_by_value, reason = "a place is inserted once")]

use super::node::{Link, MAX_HEIGHT, Node};
use super::ops::Stand;
use super::order::Probe;
use super::{Arena, Order, Place, Placing, SkipList};
use crate::entry::Entry;
use silvics_sync::atomic::Ordering as Memory;
use std::cmp::Ordering;
use std::ptr::NonNull;

/// The places of an insert on the levels of the list: for each level the last node before the key.
#[derive(Debug, Default)]
pub(super) struct Splice {
    /// Null if no insert has been made. Else the nodes on each level, null for the head.
    before: [Option<NonNull<u8>>; MAX_HEIGHT],
    /// The number of lowest levels that are known.
    levels: usize,
}

// SAFETY: addresses of nodes of one list, which are used under the contract of its inserts.
unsafe impl Send for Splice {}

/// The places of the last insert that was made with this hint. It speeds up inserts of keys that
/// come in order, such as those of one prefix.
///
/// A hint belongs to the list with which it was used first.
#[derive(Debug, Default)]
pub struct InsertHint(Splice);

/// The place on one level.
#[derive(Clone, Copy)]
struct Spot<'l> {
    stand: Stand<'l>,
    link: Link<'l>,
}

impl<O: Order, A: Arena, L: Placing> SkipList<O, A, L> {
    /// Inserts an entry, and returns false if there is one with its key already.
    ///
    /// # Safety
    /// [`SkipList::allocate`] of this list returned the place. An entry is written there, of at
    /// most the bytes that were requested, and nobody writes to it again. No other insert runs
    /// meanwhile.
    pub unsafe fn insert(&self, place: Place) -> bool {
        let entry = self.entry_of(&place);
        self.last.with_mut(|last| {
            // SAFETY: the caller's promise: no other insert runs, and only this method uses it.
            let last = unsafe { &mut *last };
            if self.belongs_behind(last, entry) {
                return self.insert_near::<false>(&place, last);
            }
            self.insert_anywhere::<false>(&place, Some(last))
        })
    }

    /// Inserts an entry while other threads insert by the concurrent methods, and returns false if
    /// there is one with its key already.
    ///
    /// # Safety
    /// [`SkipList::allocate`] of this list returned the place. An entry is written there, of at
    /// most the bytes that were requested, and nobody writes to it again.
    pub unsafe fn insert_concurrently(&self, place: Place) -> bool {
        self.insert_anywhere::<true>(&place, None)
    }

    /// Inserts like [`SkipList::insert`], beginning at the places of a hint.
    ///
    /// # Safety
    /// As [`SkipList::insert`] has it; the hint was used with this list alone.
    pub unsafe fn insert_with_hint(&self, place: Place, hint: &mut InsertHint) -> bool {
        self.insert_near::<false>(&place, &mut hint.0)
    }

    /// Inserts like [`SkipList::insert_concurrently`], beginning at the places of a hint.
    ///
    /// # Safety
    /// As [`SkipList::insert_concurrently`] has it; the hint was used with this list alone.
    pub unsafe fn insert_with_hint_concurrently(
        &self,
        place: Place,
        hint: &mut InsertHint,
    ) -> bool {
        self.insert_near::<true>(&place, &mut hint.0)
    }

    /// The entry that the caller has written.
    #[expect(clippy::unused_self, reason = "the entry lives as long as the list")]
    fn entry_of<'l>(&'l self, place: &Place) -> Entry<'l> {
        // SAFETY: S1: `allocate` has initialised the node; the callers promise the entry.
        unsafe { L::entry(place.node) }
    }

    /// The node of a splice at a level.
    fn node_of<'l>(&'l self, splice: &Splice, level: usize) -> Node<'l> {
        // SAFETY: S1: a splice has nodes of this list, each reached at its level.
        splice.before[level].map_or(self.head.node(), |at| unsafe { Node::from_raw(at) })
    }

    /// Whether an entry belongs directly behind the last one.
    fn belongs_behind(&self, last: &Splice, entry: Entry<'_>) -> bool {
        let Some(at) = last.before[0].filter(|_| last.levels > 0) else { return false };
        // SAFETY: S1: the splice has a node of this list.
        let node = unsafe { Node::from_raw(at) };
        let target = O::target(entry);
        self.order.compare(Self::position(node).entry(), target).is_lt()
            && node
                .next(0)
                .node()
                .is_none_or(|next| self.order.compare(Self::position(next).entry(), target).is_gt())
    }

    /// Raises the height of the list to that of a new node, and returns the list's height.
    #[inline]
    fn raise(&self, height: usize) -> usize {
        let mut now = self.height.load(Memory::Relaxed);
        while height > now {
            let (ok, failed) = (Memory::Relaxed, Memory::Relaxed);
            match self.height.compare_exchange(now, height, ok, failed) {
                Ok(_) => return height,
                Err(other) => now = other,
            }
        }
        now
    }

    /// Inserts by a search from the head, and keeps the places in a splice.
    #[inline(always)]
    fn insert_anywhere<const SHARED: bool>(
        &self,
        place: &Place,
        keep: Option<&mut Splice>,
    ) -> bool {
        let target = O::target(self.entry_of(place));
        let height = place.height();
        let levels = self.raise(height);
        let mut stand = self.stand(target);
        let mut spots = [Spot { stand, link: Link::END }; MAX_HEIGHT];
        let mut bigger = None;
        for level in (0..levels).rev() {
            let (link, order) = self.walk(target, &mut stand, level, bigger);
            if order.is_eq() {
                return false; // LP(insert, false): the load of the link
            }
            spots[level] = Spot { stand, link };
            bigger = link.node();
        }
        if !self.link::<SHARED>(place, &mut spots[..height]) {
            return false;
        }
        if let Some(splice) = keep {
            for (level, spot) in spots.iter().enumerate().take(levels) {
                let node = if level < height { place.node } else { spot.stand.node.at };
                splice.before[level] = (node != self.head.node().at).then_some(node);
            }
            splice.levels = levels;
        }
        true
    }

    /// Inserts by a search from the places of a splice, and keeps the new places there.
    fn insert_near<const SHARED: bool>(&self, place: &Place, splice: &mut Splice) -> bool {
        let target = O::target(self.entry_of(place));
        let height = place.height();
        let levels = self.raise(height);
        let start = self.stand(target);
        let mut spots = [Spot { stand: start, link: Link::END }; MAX_HEIGHT];
        // The lowest level on which the splice's node is before the key and the next one is not.
        let mut from = levels;
        for (level, place) in spots.iter_mut().enumerate().take(splice.levels.min(levels)) {
            if let Some(spot) = self.bracket(target, splice, level) {
                (*place, from) = (spot, level);
                break;
            }
        }
        // Each level above has the key between the splice's node there and the next one, too, or
        // another insert has come between, and then `walk` moves on from that node.
        for level in (from + 1..height).rev() {
            let stand = if level < splice.levels {
                self.stand_at(self.node_of(splice, level), target)
            } else {
                Some(start)
            };
            let mut stand = stand.unwrap_or(start);
            let (link, order) = self.walk(target, &mut stand, level, None);
            if order.is_eq() {
                return false;
            }
            spots[level] = Spot { stand, link };
        }
        let mut stand = if from < levels { spots[from].stand } else { start };
        let mut bigger = if from < levels { spots[from].link.node() } else { None };
        for level in (0..from).rev() {
            let (link, order) = self.walk(target, &mut stand, level, bigger);
            if order.is_eq() {
                return false;
            }
            spots[level] = Spot { stand, link };
            bigger = link.node();
        }
        if !self.link::<SHARED>(place, &mut spots[..height]) {
            return false;
        }
        // Levels that this search did not visit keep their nodes, which are still before the key.
        for (level, spot) in spots.iter().enumerate().take(levels) {
            let node = if level < height {
                place.node
            } else if level <= from.min(levels - 1) || level >= splice.levels {
                spot.stand.node.at
            } else {
                continue;
            };
            splice.before[level] = (node != self.head.node().at).then_some(node);
        }
        splice.levels = levels;
        true
    }

    /// A stand at a node, if the node is before the target.
    fn stand_at<'l>(&'l self, node: Node<'l>, target: O::Target<'_>) -> Option<Stand<'l>> {
        if node == self.head.node() {
            return Some(self.stand(target));
        }
        let mut probe = Probe::default();
        let order = self.order.look(&mut probe, Self::position(node).entry(), target);
        order.is_lt().then_some(Stand { node, probe })
    }

    /// The place of a splice on a level, if the target belongs there.
    fn bracket<'l>(
        &'l self,
        target: O::Target<'_>,
        splice: &Splice,
        level: usize,
    ) -> Option<Spot<'l>> {
        let stand = self.stand_at(self.node_of(splice, level), target)?;
        let link = stand.node.next(level);
        let is_after = link.node().is_none_or(|next| {
            self.order.compare(Self::position(next).entry(), target) == Ordering::Greater
        });
        is_after.then_some(Spot { stand, link })
    }

    /// Links a node at its places, from the lowest level on. Returns false if another thread has
    /// inserted an entry with its key.
    #[inline(always)]
    fn link<'l, const SHARED: bool>(&'l self, place: &Place, spots: &mut [Spot<'l>]) -> bool {
        let entry = self.entry_of(place);
        // SAFETY: S1: `allocate` has initialised the node.
        let node = unsafe { Node::from_raw(place.node) };
        for (level, spot) in spots.iter_mut().enumerate() {
            loop {
                let Spot { stand, link } = *spot;
                node.set_next_unshared(level, Self::link_from(entry, stand.probe, link));
                let to_node = Link::to(node, stand.probe.hint);
                if !SHARED {
                    stand.node.set_next(level, to_node); // LP(insert, true) on level 0
                    break;
                }
                if stand.node.try_link(level, link, to_node) {
                    break; // LP(insert, true) on level 0
                }
                self.retries.fetch_add(1, Memory::Relaxed);
                let mut again = stand;
                let (link, order) = self.walk(O::target(entry), &mut again, level, None);
                if order.is_eq() {
                    return false; // on level 0 alone: above, the entry is the only one with its key
                }
                *spot = Spot { stand: again, link };
            }
        }
        true
    }

    /// The link from an entry to the node behind it, which a link leads to from the node before it.
    #[inline(always)]
    fn link_from<'l>(entry: Entry<'_>, probe: Probe, link: Link<'l>) -> Link<'l> {
        let Some(next) = link.node() else { return Link::END };
        if !O::HINTS {
            return Link::to(next, 0);
        }
        if probe.hint < link.hint() {
            return Link::to(next, link.hint()); // see `order.rs`
        }
        Link::to(next, O::hint(entry, Self::position(next).entry()))
    }
}
