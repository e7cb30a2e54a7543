//! Batches: several descents at a time, each waiting for its next node while the others go on.
//!
//! # Source
//! Kocberber, Falsafi and Grot, "Asynchronous memory access chaining", PVLDB 9(4), 2015: a lookup is a
//! state machine, a lane, that ends each step with a prefetch; who has ended takes the next key at once.
//!
//! # Algorithm
//! ```text
//! lane:    node stood at, level, its link there, which leads to the node waited for
//! step:    arrive at that node as `search` does; go on, down and then forth, by what the nodes passed
//!          tell, to the next node that must be read; prefetch it; the next lane's turn
//! ```
//! Each lane is a `search` to level 0 that takes its time: it moves to the same nodes, for the same
//! reasons (I6), and its linearization points are the same.

use super::Skip;
use super::key::SkipKey;
use super::node::{Link, NodeRef};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering as Memory;
use std::cmp::Ordering;

/// Descents at a time.
const LANES: usize = if cfg!(silvics_shuttle) { 2 } else { 32 };

/// Entries of a batch of upserts whose keys are looked up together first.
pub(super) const WARMED: usize = if cfg!(silvics_shuttle) { 3 } else { 64 };

/// Nodes at the top of the list that are taken to be in the cache: nobody waits for them.
const HOT: u64 = 1024;

/// The levels from the top that have about as many nodes, if each further level has the probability
/// `higher` out of 2^16.
const fn hot_levels(higher: u16) -> usize {
    let (mut share, mut levels) = (HOT, 0);
    while share > 1 && !cfg!(silvics_shuttle) {
        (share, levels) = ((share * higher as u64) >> 16, levels + 1);
    }
    levels
}

/// A descent to one key.
struct Lane<'g, 'k, K: SkipKey + ?Sized> {
    /// The key's number in the batch.
    number: usize,
    probe: K::Probe<'k>,
    /// The last node before the key that it has come to …
    before: NodeRef<'g, K>,
    level: usize,
    /// … and its link at `level`: if the lane waits, for the node that this leads to.
    link: Link<'g, K>,
}

/// Where a lane ends.
enum End<'g, K: ?Sized> {
    /// At the key's node, present at that moment.
    Present(NodeRef<'g, K>),
    /// Nowhere.
    Absent,
    /// At a removed node, where it cannot go on.
    Removed,
}

/// Levels on which most new nodes are linked: what follows them there is read to make their hints.
const LINKED_LEVELS: usize = 3;

impl<'g, K: SkipKey + ?Sized> Lane<'g, '_, K> {
    /// Goes on until it has to read a node on a level below `cold` that is not `fetched`, which it
    /// prefetches, or to its end. The steps are those of [`Skip::search`]; to `WARM` for a write, which
    /// descends to level 0, those of a search that stops at no key and prefetches what follows it.
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
                if after.is_marked() && !planted(Canary::BatchTrustsLink) {
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
                    // LP(get, found): the load of `after`, or this one.
                    Ordering::Equal if self.level > 0 && next.next(0).is_marked() => {
                        return Some(End::Removed);
                    }
                    Ordering::Equal => return Some(End::Present(next)),
                    Ordering::Greater => {}
                }
                seen = Some(next);
            }
            if self.level == 0 {
                return Some(End::Absent); // LP(get, absent): the load of `link`, or the moment it was frozen
            }
            self.level -= 1;
            self.link = self.before.next(self.level);
            fetched = seen.is_some() && self.link.node() == seen;
        }
    }
}

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// Looks up the keys numbered below `count`, and tells `found` of each, in any order.
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

    /// Brings what upserts of the keys numbered below `count` will read into the cache.
    #[inline]
    pub(super) fn warm_many<'g>(
        &'g self,
        count: usize,
        key: impl Fn(usize) -> K::Ref<'g>,
        _guard: &'g Guard,
    ) {
        self.descend::<true>(count, &key, |_, _| ());
    }

    /// Descends to the keys numbered below `count`, and tells `ended` where each descent has ended.
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
        // A descent to the next of the keys that must wait.
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
