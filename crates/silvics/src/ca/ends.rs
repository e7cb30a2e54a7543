//! The first and the last entry.
//!
//! The base node at the end of the tree usually has an entry, and its lock or its version says
//! which one is the first at one moment. If it has none, its lock is kept, and the next base node
//! is locked, too: the range of a base node never changes, so these are neighbours. Locks are taken
//! in ascending order. A walk from the last base node down only tries them.

use super::avl;
use super::build::{Build, Form, Lock};
use super::key::CaKey;
use super::ops::{Hold, Share, TRIES, Way};
use super::search::{Locked, Seen, Torn, Valid, follow, order};
use super::word::Word;
use super::{Ca, NEVER_TORN};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::frame::afterwards;
use crate::update::Update;
use silvics_pool::Placement;
use silvics_sync::atomic::{Ordering as Fence, fence};
use silvics_sync::backoff::Backoff;
use std::cmp::Ordering;

/// The state of a walk along an end.
enum Ended<'g, K: CaKey + ?Sized, T> {
    /// An entry, and its base node with its lock.
    Found(T, Way<'g, K>, Hold<'g>, bool),
    /// There is no entry at all.
    Empty,
    /// A lock was not free: the walk begins again.
    Busy,
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ca<K, P, B> {
    /// The way to the first base node, or the last one.
    fn way_to_end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Way<'g, K> {
        self.way(|_| LAST, guard)
    }

    /// The first entry of a container, or the last one. Nothing if it is empty.
    ///
    /// # Safety
    /// That of [`follow`].
    unsafe fn end_of<'g, const LAST: bool>(
        container: Word,
        valid: impl Valid,
        _guard: &'g Guard,
    ) -> Result<Option<(K::Ref<'g>, u64)>, Torn> {
        let mut word = container;
        loop {
            // SAFETY: our contract.
            let Some(node) = (unsafe { follow::<'g, K>(word, valid)? }) else { return Ok(None) };
            let at = if LAST { node.len().saturating_sub(1) } else { 0 };
            if !node.is_leaf() {
                word = node.child(at);
                continue;
            }
            let (slot, value) = (node.key(at), node.value(at));
            if !valid.is_valid() {
                return Err(Torn);
            }
            // SAFETY: N3: the entry was in the container under the guard.
            return Ok(Some((unsafe { K::key(slot) }, value)));
        }
    }

    /// The first entry of a base node that the caller has locked, or shares, or the last one.
    fn end_under_lock<'g, const LAST: bool>(
        way: &Way<'g, K>,
        guard: &'g Guard,
    ) -> Option<(K::Ref<'g>, u64)> {
        let container = way.base.get().container.word();
        // SAFETY: the word was read from the container under its lock. N3: the entry is in the
        // container.
        unsafe {
            if B::FORM == Form::Avl {
                let node = avl::end_of::<K>(container, LAST)?;
                return Some((K::key(node.key(0)), node.value(0)));
            }
            let found = Self::end_of::<LAST>(container, Locked, guard);
            found.unwrap_or_else(|Torn| unreachable!("{NEVER_TORN}"))
        }
    }

    /// The first entry, or the last one.
    pub(super) fn end_entry<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Option<(K::Ref<'g>, u64)> {
        if B::LOCK == Lock::Shared {
            let way = self.way_to_end::<LAST>(guard);
            let share = Share::new::<B>(way.base); // LP(first, last)
            let found = share.and_then(|_share| Self::end_under_lock::<LAST>(&way, guard));
            if found.is_some() {
                return found;
            }
        }
        let tries = if B::LOCK == Lock::Version { TRIES } else { 0 };
        for _ in 0..tries {
            let way = self.way_to_end::<LAST>(guard);
            let lock = &way.base.get().lock;
            let Ok(version) = lock.read() else { continue }; // LP(first, last)
            let container = way.base.get().container.word();
            let seen = Seen { lock, version };
            // SAFETY: the word was read from the container after the version.
            match unsafe { Self::end_of::<LAST>(container, seen, guard) } {
                Ok(None) => break,
                Ok(found) => return found,
                Err(Torn) => {}
            }
        }
        self.end_locked::<LAST, _>(guard, |way| Self::end_under_lock::<LAST>(way, guard))
    }

    /// Removes the first entry, or the last one, and returns it.
    pub(super) fn pop_entry<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        let popped = self.end_locked::<LAST, _>(guard, |way| {
            let found = Self::end_under_lock::<LAST>(way, guard)?;
            let key = (K::shorten(found.0), &K::probe(found.0));
            let removed = self.change_locked(way, key, Update::Remove, guard);
            removed.map(|value| value.map(|_| found)).transpose()
        });
        popped.transpose()
    }

    /// Calls `take` for the first base node that has an entry, or the last one, under its lock.
    fn end_locked<'g, const LAST: bool, T>(
        &'g self,
        guard: &'g Guard,
        mut take: impl FnMut(&Way<'g, K>) -> Option<T>,
    ) -> Option<T> {
        let mut backoff = Backoff::new();
        loop {
            let way = self.way_to_end::<LAST>(guard);
            let is_empty = way.base.get().container.word().is_none();
            // An empty base node is left over from a time without memory for a join, or the build
            // does not adapt. The walk below would lock it each time.
            if is_empty && way.parent.is_some() && self.join_empty(&way, guard) {
                continue;
            }
            let Some((hold, contended)) = Hold::new::<B>(way.base) else { continue };
            match self.end_from::<LAST, T>(way, hold, contended, guard, &mut take) {
                Ended::Found(found, way, hold, contended) => {
                    // The walk has dropped the locks of the empty base nodes, which a join needs.
                    afterwards(|| self.adapt(&way, hold, (contended, 0), guard));
                    return Some(found);
                }
                Ended::Empty => return None,
                Ended::Busy => backoff.wait(),
            }
        }
    }

    /// Goes on from a base node that the caller has locked. Those that it leaves are empty, and
    /// stay locked until it ends.
    fn end_from<'g, const LAST: bool, T>(
        &'g self,
        mut way: Way<'g, K>,
        mut hold: Hold<'g>,
        mut contended: bool,
        guard: &'g Guard,
        take: &mut impl FnMut(&Way<'g, K>) -> Option<T>,
    ) -> Ended<'g, K, T> {
        let mut empty: Vec<Hold<'g>> = Vec::new();
        loop {
            if let Some(found) = take(&way) {
                return Ended::Found(found, way, hold, contended);
            }
            let bound = match way.bound(!LAST) {
                Ok(Some(bound)) => bound,
                Ok(None) => return Ended::Empty,
                Err(Torn) => return Ended::Busy,
            };
            // Without memory for the list, the walk begins again, and first tries to join.
            if empty.try_reserve(1).is_err() {
                return Ended::Busy;
            }
            empty.push(hold);
            let Some((next, next_hold, waited)) = self.beyond::<LAST>(bound, guard) else {
                return Ended::Busy;
            };
            (way, hold, contended) = (next, next_hold, waited);
            fence(Fence::SeqCst); // LP, as in `collect.rs`
        }
    }

    /// The base node beyond a bound, locked, and whether its lock was not free. Nothing if it is
    /// obsolete, or if the caller, who walks down, would have to wait.
    fn beyond<'g, const LAST: bool>(
        &'g self,
        bound: K::Slot,
        guard: &'g Guard,
    ) -> Option<(Way<'g, K>, Hold<'g>, bool)> {
        // SAFETY: R2: the bound was read under the guard.
        let probe = unsafe { K::probe_slot(bound, &()) };
        let next = self.way(
            |bound| match order::<K>(bound, &probe, Locked) {
                Ok(Ordering::Equal) => !LAST,
                order => matches!(order, Ok(Ordering::Less)),
            },
            guard,
        );
        let (hold, waited) =
            if LAST { (Hold::attempt::<B>(next.base)?, false) } else { Hold::new::<B>(next.base)? };
        Some((next, hold, waited))
    }
}
