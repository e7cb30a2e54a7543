//! Splits and joins: the tree changes the number of its base nodes with the contention that it
//! sees.
//!
//! # Algorithm
//! ```text
//! after a write that has put base node B into its place:
//!     above SPLIT: halve the container; replace B by a route node over two new base nodes
//!     below JOIN:  P := the route node of B; M := the neighbour of B in the subtree beside it
//!                  N := a base node with the entries of both
//!                  claim the places of B and M, the other child of P, and the place above P
//!                  commit; then the place above leads past P, and the place of M to N
//! one write in GRAVITY: takes GRAVITY_OFF from the statistics of a random base node, and joins it
//!     if they are below JOIN then
//! ```
//! [The module](super) has the states of a join and the roles of its places.

use super::Lfca;
use super::edit::Edit;
use super::node::{Base, Join, Role, State, changed, claim, join, new_base, new_route};
use super::ops::Way;
use crate::ca::build::Build;
use crate::ca::change::{Gone, halve};
use crate::ca::key::{Slots, object_word};
use crate::ca::objects::{Fresh, May};
use crate::ca::search::{Locked, order};
use crate::ca::word::{Kind, Place, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::backoff::Backoff;
use std::cmp::Ordering;

/// The attempts to join an empty base node. If others disturb all of them, the next write that
/// comes by tries again.
const TRIES: u32 = 8;

/// The outcome of an attempt to join a base node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Joined {
    Done,
    /// Another thread has changed a place.
    Disturbed,
    /// There is no neighbour.
    Alone,
    /// An allocation failed.
    NoMemory,
}

impl<K: Slots + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// Splits or joins a base node if its statistics say so, after a write that has linked it.
    pub(super) fn adapt<'g>(&'g self, way: &Way<'g, K>, guard: &'g Guard) {
        let Some(base) = way.free().filter(|_| B::ADAPTS) else { return };
        // Another write may replace the base node at any time, and the guard keeps it.
        let writes = base.writes();
        if base.container.is_none() && way.parent.is_some() {
            self.join_empty(way, guard);
        } else {
            self.adapt_by(way, 0, guard);
        }
        if writes % B::LIMITS.gravity == 0 && writes > 0 {
            self.pull(writes ^ way.word.address().addr() as u64, guard);
        }
    }

    /// Changes the statistics of a base node, and splits or joins it if they say so.
    pub(super) fn adapt_by<'g>(&'g self, way: &Way<'g, K>, change: i64, guard: &'g Guard) {
        let (Some(base), limits) = (way.free(), B::LIMITS) else { return };
        let statistics = changed(base.statistics(), change, limits.most);
        if statistics > limits.split {
            base.set_statistics(0);
            if way.depth < limits.depth {
                self.split(way, base, guard);
            }
        } else if statistics < limits.join {
            base.set_statistics(0);
            let _ = self.join(way, guard);
        } else if change != 0 {
            base.set_statistics(statistics);
        }
    }

    /// Looks after a base node that an operation leaves as it is: an empty one is joined.
    #[inline]
    pub(super) fn leave<'g>(&'g self, way: &Way<'g, K>, guard: &'g Guard) {
        let is_empty = |base: &Base| base.container.is_none();
        if way.free().is_some_and(is_empty) && way.parent.is_some() && B::ADAPTS {
            self.join_empty(way, guard);
        }
    }

    /// Joins a base node that has no entry, unless it gets one.
    #[cold]
    fn join_empty<'g>(&'g self, way: &Way<'g, K>, guard: &'g Guard) {
        let mut backoff = Backoff::new();
        let mut way = *way;
        for _ in 0..TRIES {
            if self.join(&way, guard) != Joined::Disturbed {
                return;
            }
            if K::BOUNDS_ARE_ENTRIES {
                return; // code of the user may compare keys, and must not run now
            }
            backoff.wait();
            // The thread that has disturbed the join may have changed the way.
            let Some((parent, is_right)) = way.parent else { return };
            // SAFETY: Q1: the route node was read under the guard, and its bound stays as long.
            let probe = unsafe { K::probe_slot(parent.bound(), &self.order) };
            way = self.way(|route| Self::is_beside(route.bound(), &probe, is_right), guard);
            let is_empty = |base: &Base| base.container.is_none();
            if !way.free().is_some_and(is_empty) {
                return;
            }
        }
    }

    /// Whether the way to the base node right of a bound, or left of it, goes right at another one.
    pub(super) fn is_beside(bound: K::Slot, probe: &K::Probe<'_>, is_right: bool) -> bool {
        match order::<K>(bound, probe, Locked) {
            Ok(Ordering::Equal) => is_right,
            order => matches!(order, Ok(Ordering::Less)),
        }
    }

    /// Takes a part off the statistics of a random base node.
    #[cold]
    fn pull<'g>(&'g self, draw: u64, guard: &'g Guard) {
        let mut bits =
            draw.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ std::ptr::from_ref(self).addr() as u64;
        let way = self.way(
            |_| {
                bits = bits.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                bits >> 63 != 0
            },
            guard,
        );
        self.adapt_by(&way, -B::LIMITS.gravity_off, guard);
    }

    /// Splits a base node, if it has two entries and there is memory, and if no other thread has
    /// replaced it.
    #[cold]
    fn split(&self, way: &Way<'_, K>, base: &Base, guard: &Guard) {
        let (mut fresh, mut gone) = (Fresh::new(&self.objects, May::Fail), Gone::new());
        let halves = halve(base.container, &mut fresh, &mut gone);
        let Some((left, bound, right)) = halves else { return };
        let mut new = |container| new_base(&mut fresh, self.first_base(container)).ok();
        let (Some(left), Some(right)) = (new(left), new(right)) else { return };
        let Ok(route) = new_route(&mut fresh, left, bound, right) else { return };
        let budget = &self.objects.frame().config.budget;
        let is_held = || !K::BOUNDS_ARE_ENTRIES || self.bounds.hold(bound, budget).is_ok();
        let is_late = planted(Canary::KeyHeldLate);
        if !is_late && !is_held() {
            return;
        }
        if planted(Canary::SplitOverwrites) {
            way.place.link(route);
        } else if !way.place.replace(way.word, route) {
            self.release(bound, guard);
            return; // `fresh` frees what it has made
        }
        if is_late {
            is_held();
        }
        self.changes.count_split();
        fresh.linked();
        gone.push(way.word);
        for word in gone.words() {
            // SAFETY: C1, Q1: the exchange has unlinked these. Only this thread has made it.
            unsafe { self.objects.retire(*word, guard) };
        }
    }

    /// Notes that a route node does not have a bound any more, or never had it.
    fn release(&self, bound: K::Slot, guard: &Guard) {
        if K::BOUNDS_ARE_ENTRIES && self.bounds.release(bound) {
            // SAFETY: L3: no entry and no route node has the key any more. This thread is the last.
            unsafe { K::retire(bound, &self.order, guard) };
        }
    }

    /// Joins a base node with a neighbour, if there is memory and no other thread changes a place
    /// meanwhile.
    #[cold]
    pub(super) fn join<'g>(&'g self, way: &Way<'g, K>, guard: &'g Guard) -> Joined {
        let Some((parent, is_right)) = way.parent else { return Joined::Alone };
        let Some(main) = way.free() else { return Joined::Disturbed };
        // The neighbour is at the edge of the subtree beside the base node.
        let beside = parent.child(!is_right);
        let from = (beside, Some((parent, !is_right)));
        let other = Self::way_below(from, &mut |_| is_right, guard.into());
        let rest = beside.read();
        let Some(neighbour) = other.free() else {
            Self::help(other.place, other.word, guard);
            return Joined::Disturbed;
        };
        let is_short = std::ptr::eq(beside, other.place);
        let above = way.above.read();
        if rest.kind() != (if is_short { Kind::Base } else { Kind::Route })
            || above != parent.word()
        {
            // Perhaps the owner of another join has stopped.
            Self::help(beside, rest, guard);
            Self::help(way.above, above, guard);
            return Joined::Disturbed;
        }
        let mut edit = Edit::new(&self.objects, May::Fail, false);
        let (left, right) = if is_right { (neighbour, main) } else { (main, neighbour) };
        // SAFETY: Q1: the base nodes were read under the guard.
        let both = unsafe { edit.concat(left.container, parent.bound(), right.container) };
        let Ok((container, has_bound)) = both else { return Joined::NoMemory };
        let Ok(joined) = new_base(&mut edit.fresh, self.first_base(container)) else {
            return Joined::NoMemory;
        };
        let mut own = Fresh::new(&self.objects, May::Fail);
        let nodes = [way.word, other.word, joined];
        let rest = if is_short { joined } else { rest };
        let Ok(word) = Join::make(&mut own, nodes, [parent.word(), rest], way.above) else {
            return Joined::NoMemory;
        };
        let places = [
            (Role::Main, way.place),
            (Role::Neighbour, other.place),
            (Role::Other, beside),
            (Role::Above, way.above),
        ];
        // Other threads may find the join now, so it is retired even if it does not take place.
        own.linked();
        let done = Self::claim_and_finish(word, &places, is_short, guard);
        if done {
            self.changes.count_join();
            edit.fresh.linked();
            edit.gone.extend(object_word::<K>(parent.bound()).filter(|_| !has_bound));
            let gone = edit.gone.words().iter().copied();
            for word in gone.chain([parent.word(), way.word, other.word]) {
                // SAFETY: J3, C1: this thread has the committed join, and has finished it.
                unsafe { self.objects.retire(word, guard) };
            }
            self.release(parent.bound(), guard);
        }
        // SAFETY: J3: no place is claimed any more that a new reader could find.
        unsafe { self.objects.retire(word, guard) };
        if done { Joined::Done } else { Joined::Disturbed }
    }

    /// Claims the places of a join, commits it and finishes it. Returns whether it took place. If
    /// not, its claims are taken back.
    fn claim_and_finish(
        word: Word,
        places: &[(Role, &Place); 4],
        is_short: bool,
        _guard: &Guard,
    ) -> bool {
        // SAFETY: the caller has made the join, and retires it afterwards.
        let (own, _) = unsafe { join(word) };
        let claimed = |role| match role {
            // That is the place of the neighbour, and has been claimed.
            Role::Other if is_short => false,
            Role::Neighbour => !planted(Canary::NeighbourNotClaimed),
            Role::Other => !planted(Canary::OtherNotClaimed),
            Role::Above => !planted(Canary::AboveNotClaimed),
            _ => true,
        };
        let all = places
            .iter()
            .filter(|(role, _)| claimed(*role))
            .all(|(role, place)| place.replace(own.before(*role), claim(word, *role)));
        if !all || !own.commit() {
            own.abort();
        }
        // The place above comes first, because the others depend on it.
        for (role, place) in places.iter().rev() {
            Self::finish(own, word, place, *role);
        }
        own.state() != State::Aborted
    }
}
