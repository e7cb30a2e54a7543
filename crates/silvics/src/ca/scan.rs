//! Ranges.
//!
//! # Algorithm
//! ```text
//! a walk takes some entries of a leaf at a time. With version locks it reads the version of the
//!     base node, then the entries, and validates. If a writer has come in between, it begins again
//!     at the next key; after some attempts it takes the lock. With other locks it takes the lock,
//!     or a share of it, for each of these parts
//! behind the last entry of a leaf, it goes on at the nearest bound that it has passed on the way
//! ```
//! The entries that it takes together were the container's at one moment. Two such moments may be
//! before and after a write, so a walk is not atomic.

use super::build::{Build, Form, Lock};
use super::key::CaKey;
use super::node::NodeRef;
use super::ops::{Hold, Share, TRIES, Way};
use super::search::{Locked, Seen, Torn, Valid, follow, order, rank};
use super::{Ca, avl};
use crate::domain::Guard;
use crate::frame::{AlgorithmBounds, afterwards};
use silvics_pool::Placement;
use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

/// The most entries that a walk takes together.
const TAKEN: usize = if cfg!(silvics_shuttle) { 2 } else { 16 };
/// The most entries that it takes at first: many walks end after one entry.
const TAKEN_FIRST: usize = if cfg!(silvics_shuttle) { 2 } else { 3 };

/// An inner node, and the number of one of its children.
type Child<'g, K> = (NodeRef<'g, K>, usize);

/// The place where a walk goes on.
enum Next<'g, K: CaKey + ?Sized> {
    /// At the beginning.
    Start(Bound<K::Ref<'g>>),
    /// Behind an entry.
    Behind(K::Slot),
    /// At a bound: behind it if the walk ascends, before it if not.
    At(K::Slot),
    Done,
}

impl<K: CaKey + ?Sized> Clone for Next<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: CaKey + ?Sized> Copy for Next<'_, K> {}

/// The leaf that a walk stands in.
struct Here<'g, K: CaKey + ?Sized> {
    seen: Seen<'g>,
    leaf: NodeRef<'g, K>,
    /// The number of the next entry, or if the walk descends, one more.
    at: usize,
    /// The node above, and the number of the leaf there.
    above: Option<Child<'g, K>>,
    /// The nearest bound of the node above, in the direction of the walk.
    outer: Option<K::Slot>,
    /// Whether the walk has taken entries once so far.
    is_first: bool,
}

/// A scan of a [`CaTree`](crate::CaTree), in descending order if it `DESCENDS`.
pub struct Range<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> {
    tree: &'g Ca<K, P, B>,
    guard: &'g Guard,
    next: Next<'g, K>,
    end: Bound<K::Ref<'g>>,
    here: Option<Here<'g, K>>,
    taken: [(K::Slot, u64); TAKEN],
    /// The entries of `taken` that are left.
    at: usize,
    len: usize,
}

/// The state of a walk behind some entries, which are in `taken`.
struct Step<'g, K: CaKey + ?Sized> {
    len: usize,
    next: Next<'g, K>,
    here: Option<Here<'g, K>>,
}

impl<K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> fmt::Debug
    for Range<'_, K, P, B, DESCENDS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("end", &self.end).finish_non_exhaustive()
    }
}

impl<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool>
    Range<'g, K, P, B, DESCENDS>
{
    pub(super) fn new(
        tree: &'g Ca<K, P, B>,
        (low, high): AlgorithmBounds<'g, Ca<K, P, B>>,
        guard: &'g Guard,
    ) -> Self {
        let (start, end) = if DESCENDS { (high, low) } else { (low, high) };
        let taken = [(K::unused(), 0); TAKEN];
        Self { tree, guard, next: Next::Start(start), end, here: None, taken, at: 0, len: 0 }
    }

    /// The key at which the walk goes on, and whether it is part of the rest. Nothing if the walk
    /// begins at the end of the tree.
    fn target(&self) -> Option<(K::Probe<'g>, bool)> {
        match self.next {
            Next::Start(Bound::Unbounded) | Next::Done => None,
            Next::Start(Bound::Included(key)) => Some((K::probe(key), true)),
            Next::Start(Bound::Excluded(key)) => Some((K::probe(key), false)),
            // SAFETY: N3, R2: the key or bound was in the tree under the guard.
            Next::Behind(slot) => Some((unsafe { K::probe_slot(slot, &()) }, false)),
            // SAFETY: likewise.
            Next::At(slot) => Some((unsafe { K::probe_slot(slot, &()) }, !DESCENDS)),
        }
    }

    /// Takes the next entries, if there are any. Returns whether there may be more.
    #[inline(never)]
    fn refill(&mut self) -> bool {
        (self.at, self.len) = (0, 0);
        if matches!(self.next, Next::Done) {
            return false;
        }
        if let Some(here) = self.here.take()
            && let Ok(step) = self.go_on(&here)
        {
            return self.stand(step);
        }
        if B::LOCK != Lock::Version {
            return self.refill_locked();
        }
        for _ in 0..TRIES {
            let target = self.target();
            let way = self.way(target.as_ref());
            let lock = &way.base.get().lock;
            let Ok(version) = lock.read() else { continue };
            let seen = Seen { lock, version };
            if let Ok(step) = self.take_from(&way, target.as_ref(), seen, Some(seen)) {
                return self.stand(step);
            }
        }
        self.refill_disturbed()
    }

    #[cold]
    fn refill_disturbed(&mut self) -> bool {
        self.refill_locked()
    }

    /// Takes the next entries of a base node under its lock. With version locks, writers have
    /// disturbed the walk, which counts as contention.
    fn refill_locked(&mut self) -> bool {
        loop {
            let target = self.target();
            let way = self.way(target.as_ref());
            let step = if B::LOCK == Lock::Shared {
                let Some(_share) = Share::new::<B>(way.base) else { continue };
                self.take_under_lock(&way, target.as_ref())
            } else {
                let Some((hold, waited)) = Hold::new::<B>(way.base) else { continue };
                let contended = waited || B::LOCK == Lock::Version;
                let step = self.take_under_lock(&way, target.as_ref());
                afterwards(|| self.tree.adapt(&way, hold, (contended, 0), self.guard));
                step
            };
            if let Ok(step) = step {
                return self.stand(step);
            }
            // The way was old.
        }
    }

    /// Takes the entries from the walk's position on in a base node that the caller has locked, or
    /// shares.
    fn take_under_lock(
        &mut self,
        way: &Way<'g, K>,
        target: Option<&(K::Probe<'g>, bool)>,
    ) -> Result<Step<'g, K>, Torn> {
        if B::FORM == Form::Blocks {
            return self.take_from(way, target, Locked, None);
        }
        let root = way.base.get().container.word();
        let is_before = |node: NodeRef<'g, K>| {
            target.is_some_and(|(probe, included)| match order::<K>(node.key(0), probe, Locked) {
                Ok(Ordering::Equal) => !included,
                order => matches!(order, Ok(Ordering::Less)) != DESCENDS,
            })
        };
        let (mut len, mut next) = (0, Next::Done);
        if let Some(bound) = way.bound(!DESCENDS)?
            && !self.is_beyond(bound, true, Locked)?
        {
            next = Next::At(bound);
        }
        let mut take = |node: NodeRef<'g, K>| {
            let key = node.key(0);
            if self.is_beyond(key, false, Locked)? {
                next = Next::Done;
                return Ok(false);
            }
            if len == TAKEN {
                next = Next::Behind(self.taken[TAKEN - 1].0);
                return Ok(false);
            }
            self.taken[len] = (key, node.value(0));
            len += 1;
            Ok(true)
        };
        // SAFETY: the word was read from the container under its lock.
        unsafe { avl::walk(root, DESCENDS, is_before, &mut take)? };
        Ok(Step { len, next, here: None })
    }

    fn stand(&mut self, Step { len, next, here }: Step<'g, K>) -> bool {
        (self.len, self.next, self.here) = (len, next, here);
        true
    }

    /// The way to the base node where the walk goes on.
    fn way(&self, target: Option<&(K::Probe<'g>, bool)>) -> Way<'g, K> {
        let right = |bound: K::Slot| match target {
            None => DESCENDS,
            Some((probe, included)) => match order::<K>(bound, probe, Locked) {
                Ok(Ordering::Equal) => !DESCENDS || *included,
                order => matches!(order, Ok(Ordering::Less)),
            },
        };
        self.tree.way(right, self.guard)
    }

    /// Takes the entries from the walk's position on in a base node.
    fn take_from<V: Valid>(
        &mut self,
        way: &Way<'g, K>,
        target: Option<&(K::Probe<'g>, bool)>,
        valid: V,
        seen: Option<Seen<'g>>,
    ) -> Result<Step<'g, K>, Torn> {
        let (mut outer, mut above) = (way.bound(!DESCENDS)?, None);
        let mut word = way.base.get().container.word();
        loop {
            // SAFETY: the word was read from the container after the version, or under the lock.
            let Some(node) = (unsafe { follow::<K>(word, valid)? }) else {
                let next = outer.map_or(Next::Done, Next::At);
                return Ok(Step { len: 0, next, here: None });
            };
            let len = node.len();
            let at = match target {
                None if DESCENDS => len,
                None => 0,
                Some((probe, included)) => {
                    let or_equal = if DESCENDS { *included } else { !node.is_leaf() || !*included };
                    let from = usize::from(!node.is_leaf());
                    rank(node, (from, len), probe, or_equal, valid)?
                }
            };
            if node.is_leaf() {
                return self.take((node, at), (above, outer), valid, seen);
            }
            if let Some(bound) = above.and_then(Self::beside) {
                outer = Some(bound);
            }
            let at = at.saturating_sub(1);
            above = Some((node, at));
            word = node.child(at);
            NodeRef::<K>::prefetch_keys(word);
        }
    }

    /// The bound beside a child, in the direction of the walk, if its node has it.
    fn beside((node, at): Child<'g, K>) -> Option<K::Slot> {
        let bound = if DESCENDS { at } else { at + 1 };
        (0 < bound && bound < node.len()).then(|| node.key(bound))
    }

    /// Whether the walk ends before a key, or before all keys behind a bound.
    fn is_beyond(&self, slot: K::Slot, is_bound: bool, valid: impl Valid) -> Result<bool, Torn> {
        let (end, included) = match self.end {
            Bound::Unbounded => return Ok(false),
            Bound::Included(end) => (end, true),
            Bound::Excluded(end) => (end, false),
        };
        Ok(match order::<K>(slot, &K::probe(end), valid)? {
            Ordering::Equal => !included || DESCENDS && is_bound,
            order => (order == Ordering::Less) == DESCENDS,
        })
    }

    /// Takes entries of a leaf from a position on.
    fn take(
        &mut self,
        (leaf, from): (NodeRef<'g, K>, usize),
        (above, outer): (Option<Child<'g, K>>, Option<K::Slot>),
        valid: impl Valid,
        seen: Option<Seen<'g>>,
    ) -> Result<Step<'g, K>, Torn> {
        let left = if DESCENDS { from } else { leaf.len().saturating_sub(from) };
        let is_first = matches!(self.next, Next::Start(_));
        let most = if is_first { TAKEN_FIRST } else { TAKEN };
        let mut len = left.min(most);
        for (n, taken) in self.taken[..len].iter_mut().enumerate() {
            let at = if DESCENDS { from - 1 - n } else { from + n };
            *taken = (leaf.key(at), leaf.value(at));
        }
        let last = self.taken[..len].last().map(|(key, _)| *key);
        let here = |at: usize| seen.map(|seen| Here { seen, leaf, at, above, outer, is_first });
        let bound = above.and_then(Self::beside).or(outer);
        let (next, here) = match (last, bound) {
            (Some(last), _) if self.is_beyond(last, false, valid)? => {
                while len > 0 && self.is_beyond(self.taken[len - 1].0, false, valid)? {
                    len -= 1;
                }
                (Next::Done, None)
            }
            (Some(last), _) if len < left => {
                (Next::Behind(last), here(if DESCENDS { from - len } else { from + len }))
            }
            (_, Some(bound)) if !self.is_beyond(bound, true, valid)? => {
                (Next::At(bound), here(if DESCENDS { 0 } else { leaf.len() }))
            }
            _ => (Next::Done, None),
        };
        if valid.is_valid() { Ok(Step { len, next, here }) } else { Err(Torn) }
    }

    /// Goes on in the leaf, or in the next one of the same node, if no writer has come since.
    fn go_on(&mut self, here: &Here<'g, K>) -> Result<Step<'g, K>, Torn> {
        let Here { seen, leaf, at, above, outer, is_first } = *here;
        let is_left = if DESCENDS { at > 0 } else { at < leaf.len() };
        if is_left {
            if is_first {
                Self::prefetch_behind(above);
            }
            return self.take((leaf, at), (above, outer), seen, Some(seen));
        }
        let Some((node, child)) = above.and_then(Self::next_child) else { return Err(Torn) };
        // SAFETY: the node was in the container at the version, and so was its child if it is still
        // valid.
        let Some(leaf) = (unsafe { follow::<K>(node.child(child), seen)? }) else {
            return Err(Torn);
        };
        Self::prefetch_behind(Some((node, child)));
        let at = if DESCENDS { leaf.len() } else { 0 };
        self.take((leaf, at), (Some((node, child)), outer), seen, Some(seen))
    }

    /// The next child of the same node, in the direction of the walk.
    fn next_child((node, child): Child<'g, K>) -> Option<Child<'g, K>> {
        let next = if DESCENDS { child.checked_sub(1)? } else { child + 1 };
        (next < node.len()).then_some((node, next))
    }

    /// Prefetches the leaf behind one: leaves lie anywhere in memory.
    fn prefetch_behind(child: Option<Child<'g, K>>) {
        if let Some((node, next)) = child.and_then(Self::next_child) {
            NodeRef::<K>::prefetch_all(node.child(next));
        }
    }
}

impl<'g, K: CaKey + ?Sized, P: Placement, B: Build, const DESCENDS: bool> Iterator
    for Range<'g, K, P, B, DESCENDS>
{
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.at < self.len {
                let (key, value) = self.taken[self.at];
                self.at += 1;
                // SAFETY: N3: the entry was in the tree under the guard.
                return Some((unsafe { K::key(key) }, value));
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
