//! Ranges, and snapshots of them.
//!
//! # Algorithm
//! ```text
//! range:    takes the container of one base node after the other, each as it is when the walk comes
//! snapshot: collect: the base nodes of the range, one after the other
//!           validate: if the place of each still leads to it, all were linked at one moment
//!           else collect again; after some attempts, first join two base nodes of the range
//! ```
//! A walk goes on at the nearest bound that it has passed on the way to a base node. It follows the
//! route node, so that it ends even if comparisons contradict each other. This route node may have
//! been unlinked before the base node was made, which has keys behind the bound then. So a walk
//! that has taken such keys goes on behind the last one, and a snapshot finds the same base node
//! again.

use super::Lfca;
use super::adapt::Joined;
use super::node::{FreeRoute, State, join};
use super::ops::{Address, Way};
use super::walk::{From, Walk, from_bound, goes_right, is_beyond};
use crate::ca::build::Build;
use crate::ca::key::{CaKey, Slots};
use crate::ca::search::{Locked, order};
use crate::ca::word::Kind;
use crate::canary::{Canary, planted};
use crate::domain::{Guard, Under};
use crate::error::{AllocError, reserved};
use crate::frame::{AlgorithmBounds, afterwards};
use silvics_pool::Placement;
use silvics_sync::backoff::Backoff;
use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::mem::replace;

/// The attempts of a snapshot before it joins base nodes.
const TRIES: u32 = if cfg!(silvics_shuttle) { 2 } else { 8 };

/// The limit `range` of a build is that of ETS. This tree takes off as many times more as SPAA 2018
/// does: 100.
const OFF: i64 = 10;

/// A scan between two positions, in descending order if it `DESCENDS`. The caller passes the same
/// positions to each call.
pub(crate) struct Scan<'g, K: Slots + ?Sized, P: Placement, B: Build, const DESCENDS: bool> {
    tree: &'g Lfca<K, P, B>,
    guard: Under<'g>,
    /// The walk along the container at which the scan stands.
    walk: Walk<'g, K, DESCENDS>,
    /// The place where it goes on behind this container.
    next: Next<'g, K>,
    /// The last entry of the containers before.
    last: Option<K::Slot>,
    /// The address of the base node at which the scan stands.
    address: Address,
}

/// The place where a scan goes on.
#[derive(Clone, Copy)]
enum Next<'g, K: Slots + ?Sized> {
    Start,
    /// Behind the bound of a route node.
    Beyond(FreeRoute<'g, K>),
    Done,
}

impl<'g, K: Slots + ?Sized, P: Placement, B: Build, const DESCENDS: bool>
    Scan<'g, K, P, B, DESCENDS>
{
    #[inline]
    pub(crate) fn new(tree: &'g Lfca<K, P, B>, guard: impl Into<Under<'g>>) -> Self {
        let (guard, walk, next) = (guard.into(), Walk::nothing(), Next::Start);
        Self { tree, guard, walk, next, last: None, address: Address::default() }
    }

    /// Goes on in the next base node, if there is one.
    #[inline(never)]
    fn refill(&mut self, (start, end): (&From<'_, K>, &From<'_, K>)) -> bool {
        if self.walk.ends() {
            self.walk.stop_here();
            self.next = Next::Done;
        }
        let (tree, guard) = (self.tree, self.guard);
        let way = match replace(&mut self.next, Next::Done) {
            Next::Done => return false,
            Next::Start => {
                let right =
                    |route: FreeRoute<'g, K>| goes_right::<K, DESCENDS>(route.bound(), start);
                let way = tree.way(right, guard);
                // SAFETY: Q1: the base node was read under the guard.
                unsafe { self.walk.begin(way.base().container, start, end) };
                way
            }
            Next::Beyond(route) => {
                self.last = self.walk.last().or(self.last);
                let from = Some(self.beyond(route));
                let Some(way) = tree.way_beyond::<DESCENDS>(route, &from, guard) else {
                    self.walk.stop_here();
                    return false;
                };
                // SAFETY: likewise.
                unsafe { self.walk.begin(way.base().container, &from, end) };
                way
            }
        };
        self.address = way.address();
        if let Some(route) = way.side(!DESCENDS)
            && !is_beyond::<K, DESCENDS>(route.bound(), true, end)
        {
            self.next = Next::Beyond(route);
        }
        true
    }

    /// The position where the scan goes on behind a bound.
    fn beyond(&self, route: FreeRoute<'g, K>) -> (K::Probe<'g>, bool) {
        // SAFETY: Q1: the bound and the entry were read under the guard.
        let probe = |slot| unsafe { K::probe_slot(slot, &self.tree.order) };
        let bound = probe(route.bound());
        let is_passed = |last: &K::Slot| match order::<K>(*last, &bound, Locked) {
            Ok(Ordering::Less) => DESCENDS,
            _ => !DESCENDS,
        };
        let passed = self.last.filter(is_passed);
        match passed.filter(|_| !planted(Canary::StaleBoundTrusted)) {
            Some(last) => (probe(last), false),
            None => (bound, !DESCENDS),
        }
    }

    /// The next entry.
    #[inline]
    pub(crate) fn next(&mut self, bounds: (&From<'_, K>, &From<'_, K>)) -> Option<(K::Slot, u64)> {
        loop {
            if let Some(entry) = self.walk.next(bounds.1) {
                return Some(entry);
            }
            if !self.refill(bounds) {
                return None;
            }
        }
    }
}

impl<K: Slots + ?Sized, P: Placement, B: Build, const DESCENDS: bool> Scan<'_, K, P, B, DESCENDS> {
    /// The next entry, if it is in the same base node as the one before.
    #[inline]
    pub(crate) fn next_here(&mut self, end: &From<'_, K>) -> Option<(K::Slot, u64)> {
        self.walk.next(end)
    }

    /// The address of the base node that had the last entry.
    pub(crate) fn address(&self) -> Address {
        self.address
    }
}

/// A scan of a [`LfcaTree`](crate::LfcaTree), in descending order if it `DESCENDS`.
pub struct Range<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> {
    scan: Scan<'g, K, P, B, DESCENDS>,
    start: From<'g, K>,
    end: From<'g, K>,
}

impl<K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> fmt::Debug
    for Range<'_, K, P, B, DESCENDS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

impl<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool>
    Range<'g, K, P, B, DESCENDS>
{
    #[inline]
    pub(super) fn new(
        tree: &'g Lfca<K, P, B>,
        (low, high): AlgorithmBounds<'g, Lfca<K, P, B>>,
        guard: &'g Guard,
    ) -> Self {
        let (start, end) = if DESCENDS { (high, low) } else { (low, high) };
        let (start, end) = (from_bound(start.map(K::probe)), from_bound(end.map(K::probe)));
        Self { scan: Scan::new(tree, guard), start, end }
    }
}

impl<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> Iterator
    for Range<'g, K, P, B, DESCENDS>
{
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (slot, value) = self.scan.next((&self.start, &self.end))?;
        // SAFETY: Q1: the entry was in the tree under the guard.
        Some((unsafe { K::key(slot) }, value))
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> FusedIterator
    for Range<'_, K, P, B, DESCENDS>
{
}

/// Base nodes that were linked at one moment, in the order of a walk.
type Ways<'g, K> = Vec<Way<'g, K>>;

impl<K: Slots + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// The way to the base node behind the bound of a route node, with a position there. Nothing if
    /// the comparisons lead elsewhere, as those of a total order never do.
    ///
    /// While the route node is linked, this base node is at the edge of its subtree. It may only
    /// have been unlinked since a way has led through it. So each call makes progress along the
    /// tree, or another thread has joined base nodes.
    fn way_beyond<'g, const DESCENDS: bool>(
        &'g self,
        route: FreeRoute<'g, K>,
        from: &From<'_, K>,
        guard: impl Into<Under<'g>>,
    ) -> Option<Way<'g, K>> {
        let mut is_met = false;
        let right = |met: FreeRoute<'g, K>| {
            if met.word() == route.word() {
                is_met = true;
                return !DESCENDS;
            }
            goes_right::<K, DESCENDS>(met.bound(), from)
        };
        let way = self.way(right, guard);
        (is_met || Self::is_unlinked(route)).then_some(way)
    }

    /// Whether a join has unlinked a route node, or is about to.
    fn is_unlinked(route: FreeRoute<'_, K>) -> bool {
        let word = route.child(false).read();
        if word.kind() != Kind::Join {
            return false;
        }
        // SAFETY: Q1: the word was read under the guard.
        let (join, _) = unsafe { join(word) };
        join.parent == route.word() && join.state() >= State::Committed // J2
    }

    /// Collects the base nodes from a position on, until `is_last` says that one is enough, or the
    /// next bound is beyond the end. Returns nothing unless all were linked at one moment of the
    /// call.
    fn collect<'g, const DESCENDS: bool>(
        &'g self,
        (from, end): (&From<'g, K>, &From<'g, K>),
        is_last: impl Fn(&Way<'g, K>) -> bool,
        guard: &'g Guard,
    ) -> Result<Result<Ways<'g, K>, usize>, AllocError> {
        let mut ways: Ways<'g, K> = Vec::new();
        let mut way = self.way(|route| goes_right::<K, DESCENDS>(route.bound(), from), guard);
        loop {
            if way.free().is_none() {
                Self::help(way.place, way.word, guard);
                return Ok(Err(ways.len()));
            }
            match ways.last_mut() {
                Some(last) if last.word == way.word => *last = way,
                _ => reserved(&mut ways, 1)?.push(way),
            }
            if is_last(&way) {
                break;
            }
            let Some(route) = way.side(!DESCENDS) else { break };
            if is_beyond::<K, DESCENDS>(route.bound(), true, end) {
                break;
            }
            // SAFETY: Q1: the bound was read under the guard.
            let bound = unsafe { K::probe_slot(route.bound(), &self.order) };
            let from = Some((bound, !DESCENDS));
            let Some(next) = self.way_beyond::<DESCENDS>(route, &from, guard) else { break };
            way = next;
        }
        // One base node alone was linked when its word was read, or just before.
        let is_linked = |way: &Way<'g, K>| {
            let word = way.place.read();
            if word != way.word {
                Self::help(way.place, word, guard);
            }
            word == way.word || planted(Canary::SnapshotNotValidated)
        };
        // LP(snapshot): between the last word that was collected and the first that is validated.
        let all = ways.len() == 1 || ways.iter().all(is_linked);
        Ok(if all { Ok(ways) } else { Err(ways.len()) })
    }

    /// Collects base nodes as [`Lfca::collect`] until it succeeds. Notes that an operation has used
    /// several base nodes, if it has.
    pub(super) fn collect_all<'g, const DESCENDS: bool>(
        &'g self,
        range: (&From<'g, K>, &From<'g, K>),
        is_last: impl Fn(&Way<'g, K>) -> bool,
        guard: &'g Guard,
    ) -> Result<Ways<'g, K>, AllocError> {
        let (mut tries, mut backoff) = (0, Backoff::new());
        loop {
            match self.collect::<DESCENDS>(range, &is_last, guard)? {
                Ok(ways) => {
                    if ways.len() > 1 && B::ADAPTS {
                        afterwards(|| self.used(&ways, guard));
                    }
                    return Ok(ways);
                }
                Err(_) if tries < TRIES => tries += 1,
                Err(found) if found > 1 && B::ADAPTS => {
                    let right =
                        |route: FreeRoute<'g, K>| goes_right::<K, DESCENDS>(route.bound(), range.0);
                    let way = self.way(right, guard);
                    afterwards(|| {
                        if self.join(&way, guard) == Joined::Disturbed {
                            backoff.wait();
                        }
                    });
                }
                Err(_) => backoff.wait(),
            }
        }
    }

    /// Notes that an operation has used several base nodes, and perhaps joins one of them.
    fn used<'g>(&'g self, ways: &Ways<'g, K>, guard: &'g Guard) {
        let draw = std::ptr::from_ref(ways).addr() >> 4 ^ ways[0].word.address().addr() >> 5;
        let chosen = draw % ways.len();
        for (at, way) in ways.iter().enumerate() {
            if at != chosen {
                let base = way.base();
                let most = B::LIMITS.most;
                base.set_statistics((base.statistics() - OFF * B::LIMITS.range).clamp(-most, most));
            }
        }
        self.adapt_by(&ways[chosen], -OFF * B::LIMITS.range, guard);
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// The entries within bounds, in ascending order, all at one moment of the call.
    pub(super) fn snapshot_of<'g>(
        &'g self,
        (low, high): AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError> {
        let (from, end) = (from_bound(low.map(K::probe)), from_bound(high.map(K::probe)));
        let ways = self.collect_all::<false>((&from, &end), |_| false, guard)?;
        let mut entries = Vec::new();
        for (at, way) in ways.iter().enumerate() {
            let from = if at == 0 { &from } else { &None };
            let mut walk = Walk::<K, false>::nothing();
            // SAFETY: Q1: the base node was read under the guard.
            unsafe { walk.begin(way.base().container, from, &end) };
            while let Some((slot, value)) = walk.next(&end) {
                // SAFETY: Q1: the entry was in the tree under the guard.
                reserved(&mut entries, 1)?.push((unsafe { K::key(slot) }, value));
            }
        }
        Ok(entries)
    }
}
