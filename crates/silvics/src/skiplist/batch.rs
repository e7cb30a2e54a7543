//! Batches: several descents at a time. Each waits for its next node while the others continue.
//!
//! # Source
//! Kocberber, Falsafi and Grot, "Asynchronous memory access chaining", PVLDB 9(4), 2015. A lookup
//! is a state machine, called a lane, that ends each step with a prefetch. A lane that has ended
//! takes the next key at once.
//!
//! # Algorithm
//! ```text
//! lane:    the node it stands at, the level, and the node's link there, which leads to the node
//!          that the lane waits for
//! step:    arrive at that node as `search` does; move on by hints to the next node that must be
//!          read; prefetch it; let the next lane run
//! ```
//! Each lane is a `search` to level 0 in steps: it moves to the nodes that `search` moves to, for
//! its reasons (I6), and has its linearization points.

use super::Skip;
use super::key::SkipKey;
use super::node::{Link, NodeRef};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering as Memory;
use std::cmp::Ordering;

/// The number of lanes that take turns.
const LANES: usize = if cfg!(silvics_shuttle) { 2 } else { 32 };

/// The number of entries of a batch of upserts whose keys are looked up together first.
pub(super) const WARMED: usize = if cfg!(silvics_shuttle) { 3 } else { 64 };

/// The number of nodes at the top of the list that are assumed to be in the cache: no lane waits
/// for them.
const HOT: u64 = 1024;

/// The number of levels, from the top, that together have about `HOT` nodes, if a node has each
/// further level with the probability `higher` out of 2^16.
const fn hot_levels(higher: u16) -> usize {
    let (mut share, mut levels) = (HOT, 0);
    while share > 1 && !cfg!(silvics_shuttle) {
        (share, levels) = ((share * higher as u64) >> 16, levels + 1);
    }
    levels
}

/// Whether a node is removed: if its link is `marked`.
#[inline(always)]
fn is_removed(marked: bool) -> bool {
    marked && !planted(Canary::BatchTrustsLink)
}

/// A descent to one key.
struct Lane<'g, 'k, K: SkipKey + ?Sized> {
    /// The position of the key in the batch.
    number: usize,
    probe: K::Probe<'k>,
    /// The node that the lane stands at: the last one before the key so far.
    before: NodeRef<'g, K>,
    level: usize,
    /// The link of `before` at `level`. A waiting lane waits for the node that it leads to.
    link: Link<'g, K>,
}

/// The end of a lane.
enum End<'g, K: ?Sized> {
    /// The lane found the key's node, present at that moment.
    Present(NodeRef<'g, K>),
    /// The key is absent.
    Absent,
    /// The lane met a removed node, where it cannot continue.
    Removed,
}

/// The number of lowest levels on which most new nodes are linked. The nodes that follow a new node
/// there are read to make its hints.
const LINKED_LEVELS: usize = 3;

impl<'g, K: SkipKey + ?Sized> Lane<'g, '_, K> {
    /// Moves on to the lane's end, or until it has to read a node on a level below `cold` that is
    /// not `fetched`: it prefetches this node and returns `None`. The steps are those of
    /// [`Skip::search`]. With `WARM`, for a write, they are those of a search that descends to
    /// level 0, stops at no key, and prefetches the nodes that follow the key.
    #[inline(always)]
    fn go_on<P: Placement, const WARM: bool>(
        &mut self,
        mut fetched: bool,
        cold: usize,
    ) -> Option<End<'g, K>> {
        loop {
            let guess = self.link.hint().cmp(&K::hint_to_target(&self.probe));
            let ahead = self.link.node();
            let mut seen = None;
            if guess == Ordering::Greater {
                if WARM && self.level < LINKED_LEVELS {
                    ahead.inspect(|next| next.prefetch(0));
                }
            } else if let Some(next) = ahead {
                if !fetched && self.level < cold {
                    next.prefetch(self.level);
                    return None;
                }
                P::saw(|| next.passed(self.level));
                let after = next.next(self.level);
                if is_removed(after.is_marked()) {
                    return Some(End::Removed);
                }
                let order = if guess == Ordering::Less {
                    K::pass(&mut self.probe, next);
                    guess
                } else {
                    P::saw(|| next.looked_at());
                    K::look(&mut self.probe, self.link.hint(), next)
                };
                match order {
                    Ordering::Less => {
                        (self.before, self.link, fetched) = (next, after, false);
                        continue;
                    }
                    Ordering::Equal if WARM => after.node().iter().for_each(|n| n.prefetch(0)),
                    // LP(get, found): the load of `after`, or the load of the link at level 0.
                    Ordering::Equal if self.level > 0 && next.next(0).is_marked() => {
                        return Some(End::Removed);
                    }
                    Ordering::Equal => return Some(End::Present(next)),
                    Ordering::Greater => {}
                }
                seen = Some(next);
            }
            if self.level == 0 {
                // LP(get, absent): the load of `link`, or the moment it was frozen.
                return Some(End::Absent);
            }
            self.level -= 1;
            self.link = self.before.next(self.level);
            fetched = seen.is_some() && self.link.node() == seen;
        }
    }
}

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// Looks up the keys with numbers below `count`, and calls `found` for each, in any order.
    #[inline]
    pub(super) fn find_many<'g>(
        &'g self,
        count: usize,
        key: impl Fn(usize) -> K::Ref<'g>,
        mut found: impl FnMut(usize, Option<NodeRef<'g, K>>),
        guard: &'g Guard,
    ) {
        self.descend::<false>(count, &key, |number, end| {
            let node = match end {
                End::Present(node) => Some(node),
                End::Absent => None,
                End::Removed => self.find(key(number), guard),
            };
            P::saw(|| node.into_iter().flat_map(NodeRef::ended));
            found(number, node);
        });
    }

    /// Brings the nodes that upserts of the keys with numbers below `count` will read into the
    /// cache.
    #[inline]
    pub(super) fn warm_many<'g>(
        &'g self,
        count: usize,
        key: impl Fn(usize) -> K::Ref<'g>,
        _guard: &'g Guard,
    ) {
        self.descend::<true>(count, &key, |_, _| ());
    }

    /// Descends to the keys with numbers below `count`, and calls `ended` with the end of each
    /// lane.
    #[inline(always)]
    fn descend<'g, const WARM: bool>(
        &'g self,
        count: usize,
        key: &impl Fn(usize) -> K::Ref<'g>,
        mut ended: impl FnMut(usize, End<'g, K>),
    ) {
        let top = self.height.load(Memory::Relaxed);
        let cold = top.saturating_sub(const { hot_levels(K::HIGHER_LEVEL) });
        let mut numbers = 0..count;
        // Starts the next lane that has to wait; lanes that end at once are reported.
        let mut begin = |ended: &mut dyn FnMut(usize, End<'g, K>)| {
            for number in numbers.by_ref() {
                let (before, level) = (self.head(), top - 1);
                let (probe, link) = (K::probe(key(number)), before.next(level));
                let mut lane = Lane { number, probe, before, level, link };
                match lane.go_on::<P, WARM>(false, cold) {
                    None => return Some(lane),
                    Some(end) => ended(number, end),
                }
            }
            None
        };
        let mut lanes: [Option<Lane<'g, 'g, K>>; LANES] = [const { None }; LANES];
        let lanes = &mut lanes[..LANES.min(count)];
        let mut waiting = 0;
        for slot in &mut *lanes {
            *slot = begin(&mut ended);
            waiting += usize::from(slot.is_some());
        }
        while waiting > 0 {
            for slot in &mut *lanes {
                let Some(lane) = slot else { continue };
                if let Some(end) = lane.go_on::<P, WARM>(true, cold) {
                    ended(lane.number, end);
                    *slot = begin(&mut ended);
                    waiting -= usize::from(slot.is_none());
                }
            }
        }
    }
}
