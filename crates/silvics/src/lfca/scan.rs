//! Ranges, and snapshots of them.
//!
//! # Algorithm
//! ```text
//! range:    takes the container of one base node after the other, each as it is when the walk comes
//! snapshot: collect: the base nodes of the range, one after the other
//!           validate: if the place of each still leads to it, all were linked at one moment
//!           else collect again; after some attempts, first join two base nodes of the range
//! ```
//! A walk goes on at the nearest bound that it has passed on the way to a base node. The route node
//! of this bound may have been unlinked before the base node was made, which has keys behind the
//! bound then. So a walk that has taken such keys goes on behind the last one, and a
//! snapshot finds the same base node again.

use super::Lfca;
use super::adapt::Joined;
use super::ops::Way;
use super::walk::{From, Walk, from_bound, goes_right, is_beyond};
use crate::ca::build::Build;
use crate::ca::key::CaKey;
use crate::ca::search::{Locked, order};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::{AllocError, reserved};
use crate::frame::{AlgorithmBounds, afterwards};
use silvics_pool::Placement;
use silvics_sync::backoff::Backoff;
use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;

/// The attempts of a snapshot before it joins base nodes.
const TRIES: u32 = if cfg!(silvics_shuttle) { 2 } else { 8 };

/// The limit `range` of a build is that of ETS. This tree takes off as many times more as SPAA 2018
/// does: 100.
const OFF: i64 = 10;

/// A scan of a [`LfcaTree`](crate::LfcaTree), in descending order if it `DESCENDS`.
pub struct Range<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> {
    tree: &'g Lfca<K, P, B>,
    guard: &'g Guard,
    /// The walk along the container at which the scan stands.
    walk: Walk<'g, K, DESCENDS>,
    /// The position where it goes on behind this container, unless it is done.
    next: Option<From<'g, K>>,
    /// The last entry.
    last: Option<K::Slot>,
    end: From<'g, K>,
}

impl<K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> fmt::Debug
    for Range<'_, K, P, B, DESCENDS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("is_done", &self.next.is_none()).finish_non_exhaustive()
    }
}

impl<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool>
    Range<'g, K, P, B, DESCENDS>
{
    pub(super) fn new(
        tree: &'g Lfca<K, P, B>,
        (low, high): AlgorithmBounds<'g, Lfca<K, P, B>>,
        guard: &'g Guard,
    ) -> Self {
        let (start, end) = if DESCENDS { (high, low) } else { (low, high) };
        let (next, end) = (Some(from_bound::<K>(start)), from_bound::<K>(end));
        Self { tree, guard, walk: Walk::nothing(), next, last: None, end }
    }

    /// Goes on in the next base node, if there is one.
    #[inline(never)]
    fn refill(&mut self) -> bool {
        let Some(mut from) = self.next.take() else { return false };
        if let (Some((probe, _)), Some(last)) = (&from, self.last) {
            let order = order::<K>(last, probe, Locked);
            let is_before = matches!(order, Ok(Ordering::Less));
            let is_passed = if DESCENDS { is_before } else { !is_before };
            if is_passed && !planted(Canary::StaleBoundTrusted) {
                // SAFETY: Q1: the entry was in the tree under the guard.
                from = Some((unsafe { K::probe_slot(last) }, false));
            }
        }
        let way = self.tree.way(|bound| goes_right::<K, DESCENDS>(bound, &from), self.guard);
        // SAFETY: Q1: the base node was read under the guard.
        self.walk = unsafe { Walk::new(way.base().container, &from) };
        self.next = way.bound(!DESCENDS).and_then(|bound| {
            // SAFETY: Q1: the bound was read under the guard.
            let next = Some((unsafe { K::probe_slot(bound) }, !DESCENDS));
            (!is_beyond::<K, DESCENDS>(bound, true, &self.end)).then_some(next)
        });
        true
    }
}

impl<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> Iterator
    for Range<'g, K, P, B, DESCENDS>
{
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((slot, value)) = self.walk.next() {
                if is_beyond::<K, DESCENDS>(slot, false, &self.end) {
                    (self.walk, self.next) = (Walk::nothing(), None);
                    return None;
                }
                self.last = Some(slot);
                // SAFETY: Q1: the entry was in the tree under the guard.
                return Some((unsafe { K::key(slot) }, value));
            }
            if !self.refill() {
                return None;
            }
        }
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> FusedIterator
    for Range<'_, K, P, B, DESCENDS>
{
}

/// Base nodes that were linked at one moment, in the order of a walk.
type Ways<'g, K> = Vec<Way<'g, K>>;

impl<K: CaKey + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
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
        let mut from = *from;
        loop {
            let way = self.way(|bound| goes_right::<K, DESCENDS>(bound, &from), guard);
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
            let Some(bound) = way.bound(!DESCENDS) else { break };
            if is_beyond::<K, DESCENDS>(bound, true, end) {
                break;
            }
            // SAFETY: Q1: the bound was read under the guard.
            from = Some((unsafe { K::probe_slot(bound) }, !DESCENDS));
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
                    let way = self.way(|bound| goes_right::<K, DESCENDS>(bound, range.0), guard);
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

    /// The entries within bounds, in ascending order, all at one moment of the call.
    pub(super) fn snapshot_of<'g>(
        &'g self,
        (low, high): AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError> {
        let (from, end) = (from_bound::<K>(low), from_bound::<K>(high));
        let ways = self.collect_all::<false>((&from, &end), |_| false, guard)?;
        let mut entries = Vec::new();
        for (at, way) in ways.iter().enumerate() {
            let from = if at == 0 { &from } else { &None };
            // SAFETY: Q1: the base node was read under the guard.
            let mut walk = unsafe { Walk::<K, false>::new(way.base().container, from) };
            while let Some((slot, value)) = walk.next() {
                if is_beyond::<K, false>(slot, false, &end) {
                    break;
                }
                // SAFETY: Q1: the entry was in the tree under the guard.
                reserved(&mut entries, 1)?.push((unsafe { K::key(slot) }, value));
            }
        }
        Ok(entries)
    }
}
