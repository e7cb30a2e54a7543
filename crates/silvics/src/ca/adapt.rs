//! Splits and joins: the tree changes the number of its locks with the contention that it sees.
//!
//! # Algorithm
//! ```text
//! after a write in base node B, under B's lock:
//!     statistics += the lock was not free ? CONTENDED : -UNCONTENDED
//!     above SPLIT: halve the container; two new base nodes below a new route node replace B
//!     below JOIN:  M := the neighbour of B in the subtree beside it; try to lock M, else give up
//!                  P := B's route node, G := the one above P, or the root; lock P, then G
//!                  one new base node with both containers replaces M; G leads to P's other child
//! a base node that has lost its last entry is joined whatever its statistics say
//! one write in GRAVITY: takes GRAVITY_OFF from the statistics of a random base node, and joins it
//!     if they are below JOIN then
//! ```
//! The parent of a base node does not change while the base node is linked: a route node goes away
//! only with one of its children, which is a base node, and is locked then. So the way by which B
//! was found has its parent. B's lock keeps P, too: P goes away only if B is joined, or if its
//! other child is a base node that is joined with B. Locks of route nodes are taken from below.

use super::Ca;
use super::avl::Tree;
use super::build::{Build, Form, Limits};
use super::change::{Container, Gone, halve, height};
use super::key::{CaKey, object_word};
use super::objects::{Fresh, May};
use super::ops::{Hold, Way};
use super::route::{BaseRef, RouteRef};
use super::search::{Locked, order};
use super::word::{Kind, Place, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::backoff::Backoff;
use silvics_sync::version::VersionLock;
use std::cmp::Ordering;

/// The tries of a base node without entries to be joined, while locks are not free.
const JOIN_TRIES: u32 = 1000;

/// The lock of a route node that the caller has. Dropping it unlocks.
struct RouteHold<'g>(&'g VersionLock);

impl<'g> RouteHold<'g> {
    /// Locks. Returns nothing if the node is obsolete.
    fn new(lock: &'g VersionLock) -> Option<Self> {
        lock.lock().ok().map(|()| Self(lock))
    }

    /// Unlocks a node that is no longer linked.
    fn obsolete(self) {
        // SAFETY: `new` has locked it, and `self` is forgotten, so it is unlocked once.
        unsafe { self.0.unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl Drop for RouteHold<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` has locked it, and `self` goes away, so it is unlocked once.
        unsafe { self.0.unlock() };
    }
}

/// The outcome of an attempt to join a base node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Joined {
    Done,
    /// The neighbour's lock was not free.
    Busy,
    /// There is no neighbour, or no memory.
    Not,
}

/// A base node with its lock, and the way to it.
struct Held<'w, 'g, K: CaKey + ?Sized> {
    way: &'w Way<'g, K>,
    hold: Hold<'g>,
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ca<K, P, B> {
    /// The change of the statistics for an operation that has found a lock free or not, after some
    /// writes. `off` is taken off if it has more than one lock.
    fn weight(contended: bool, off: i64, writes: u64) -> i64 {
        let Limits { contended: more, uncontended: less, .. } = B::LIMITS;
        (if contended { more } else { -less } - off) + B::nudge(writes)
    }

    /// Changes the statistics of a base node that the caller has locked, whatever they say then.
    pub(super) fn note(base: BaseRef<'_>, contended: bool, off: i64) {
        let (base, most) = (base.get(), B::LIMITS.most);
        let change = Self::weight(contended, off, base.count_write());
        base.set_statistics(base.statistics().saturating_add(change).clamp(-most, most));
    }

    /// Notes whether the lock of a base node was free, splits or joins the base node if its
    /// statistics say so, and unlocks it. `off` is taken off the statistics.
    pub(super) fn adapt<'g>(
        &'g self,
        way: &Way<'g, K>,
        hold: Hold<'g>,
        (contended, off): (bool, i64),
        guard: &'g Guard,
    ) {
        if !B::ADAPTS {
            return;
        }
        let base = way.base.get();
        let writes = base.count_write();
        let draw = writes ^ way.base.word().address().addr() as u64;
        let change = Self::weight(contended, off, writes);
        let is_empty = base.container.word().is_none();
        self.adapt_by(Held { way, hold }, change, guard);
        if is_empty && way.parent.is_some() {
            let _ = self.join_empty(way, guard);
        }
        if writes % B::LIMITS.gravity == B::LIMITS.gravity - 1 {
            self.pull(draw, guard);
        }
    }

    /// Changes the statistics of a base node, and splits or joins it if they say so.
    fn adapt_by<'g>(&'g self, held: Held<'_, 'g, K>, change: i64, guard: &'g Guard) {
        let (base, limits) = (held.way.base.get(), B::LIMITS);
        let statistics = base.statistics().saturating_add(change).clamp(-limits.most, limits.most);
        base.set_statistics(statistics);
        if statistics > limits.split {
            base.set_statistics(0);
            if held.way.depth < limits.depth {
                self.split(held, guard);
            }
        } else if statistics < limits.join {
            base.set_statistics(0);
            let _ = self.join(held, guard);
        }
    }

    /// Joins a base node that has lost its last entry, unless it gets one. Perhaps no operation
    /// ever comes to it again. Returns whether it is gone, or has an entry. If the locks that it
    /// tries are never free, as readers of a neighbour may have shares of its lock at all times, it
    /// gives up: the base node stays, as without memory.
    #[cold]
    pub(super) fn join_empty<'g>(&'g self, way: &Way<'g, K>, guard: &'g Guard) -> bool {
        let mut backoff = Backoff::new();
        for _ in 0..JOIN_TRIES {
            let Some((hold, _)) = Hold::new::<B>(way.base) else { return true };
            if !way.base.get().container.word().is_none() {
                return true;
            }
            match self.join(Held { way, hold }, guard) {
                Joined::Done => return true,
                Joined::Not => return false,
                Joined::Busy => backoff.wait(),
            }
        }
        false
    }

    /// Takes a part off the statistics of a random base node, if its lock is free.
    #[cold]
    fn pull(&self, draw: u64, guard: &Guard) {
        let mut bits =
            draw.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ std::ptr::from_ref(self).addr() as u64;
        let way = self.way(
            |_| {
                bits = bits.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                bits >> 63 != 0
            },
            guard,
        );
        let Some(hold) = Hold::attempt::<B>(way.base) else { return };
        self.adapt_by(Held { way: &way, hold }, -B::LIMITS.gravity_off, guard);
    }

    /// Splits a base node, if it has two entries and there is memory.
    #[cold]
    fn split<'g>(&'g self, held: Held<'_, 'g, K>, guard: &'g Guard) {
        let Held { way, hold } = held;
        let base = way.base.get();
        let (top, objects) = (&base.container, &self.objects);
        let (mut fresh, mut gone) = (Fresh::new(objects, May::Fail), Gone::new());
        let tree = Tree { top, objects, guard };
        let halves = match B::FORM {
            Form::Blocks => halve(top.word(), &mut fresh, &mut gone),
            // It is cut below, since nothing may fail then.
            Form::Avl => tree.halves_at(&mut fresh).map(|bound| (Word::NONE, bound, Word::NONE)),
        };
        let Some((left, bound, right)) = halves else { return };
        let (Ok(left), Ok(right)) = (fresh.base(left), fresh.base(right)) else { return };
        let Ok(route) = fresh.route(left, bound, right) else { return };
        if B::FORM == Form::Avl {
            // SAFETY: both were made above.
            let halves = unsafe { [left, right].map(|base| BaseRef::new(base).get()) };
            tree.cut(&halves[0].container, &halves[1].container);
        }
        way.place.link(route);
        fresh.linked();
        if !planted(Canary::SplitBaseStaysValid) {
            hold.obsolete();
        }
        self.changes.count_split();
        gone.push(way.base.word());
        // SAFETY: R2: the place no longer leads to the base node, and neither of the new ones has
        // these container nodes. Each was linked once.
        unsafe { gone.retire(&self.objects, guard) };
    }

    /// Joins a base node with a neighbour, if the neighbour's lock is free and there is memory.
    #[cold]
    fn join<'g>(&'g self, held: Held<'_, 'g, K>, guard: &'g Guard) -> Joined {
        let Held { way, hold } = held;
        let Some((parent, is_right)) = way.parent else { return Joined::Not };
        // The neighbour is at the edge of the subtree beside the base node.
        let from = (parent.child(!is_right), Some((parent, !is_right)));
        let beside = Self::way_below(from, &mut |_| is_right, guard);
        let Some(other) = Hold::attempt::<B>(beside.base) else { return Joined::Busy };
        let Some(route_hold) = RouteHold::new(&parent.get().lock) else { return Joined::Not };
        let (place, above) = self.place_of(parent, guard);
        let sides = if is_right { (beside.base, way.base) } else { (way.base, beside.base) };
        let joined = self.joined(sides, parent.bound(), guard);
        let Some((joined, has_bound)) = joined else { return Joined::Not };
        let subtree = parent.child(!is_right).word();
        if subtree == beside.base.word() {
            place.link(joined);
            route_hold.obsolete();
        } else {
            // In this order: before anybody can find the new base node, and remove the bound from
            // its container, no search finds the route node that had the bound, and those that have
            // passed it can see that it no longer is a bound.
            place.link(subtree);
            route_hold.obsolete();
            beside.place.link(joined);
        }
        drop(above);
        if !planted(Canary::JoinedBaseStaysValid) {
            other.obsolete();
        }
        hold.obsolete();
        self.changes.count_join();
        let key = object_word::<K>(parent.bound()).filter(|_| !has_bound);
        let gone = [parent.word(), way.base.word(), beside.base.word()];
        for word in gone.into_iter().chain(key) {
            // SAFETY: R2: nothing leads to these any more, and each was linked once.
            unsafe { self.objects.retire(word, guard) };
        }
        Joined::Done
    }

    /// The place that leads to a route node, with the lock of the route node that has it. The
    /// caller has the lock of the node, so it is linked.
    fn place_of<'g>(
        &'g self,
        route: RouteRef<'g, K>,
        _guard: &'g Guard,
    ) -> (&'g Place, Option<RouteHold<'g>>) {
        // SAFETY: R2: the route node was read under the guard, and its key's object stays longer.
        let probe = unsafe { K::probe_slot(route.bound(), &()) };
        loop {
            let (mut place, mut above) = (&self.root, None);
            loop {
                let word = place.word();
                if word == route.word() || word.kind() != Kind::Route {
                    break;
                }
                // SAFETY: R2: the word was read under the guard.
                let node = unsafe { RouteRef::<K>::new(word) };
                let order = order::<K>(node.bound(), &probe, Locked);
                place = node.child(!matches!(order, Ok(Ordering::Greater)));
                above = Some(node);
            }
            let held = above.map(|node| RouteHold::new(&node.get().lock));
            // If that node is obsolete, or leads elsewhere by now, the search begins again.
            let leads = place.word() == route.word();
            match held {
                None if leads => return (place, None),
                Some(Some(_)) if leads && planted(Canary::RouteNotLocked) => return (place, None),
                Some(Some(hold)) if leads => return (place, Some(hold)),
                _ => {}
            }
        }
    }

    /// A new base node with the entries of two neighbours, which the caller has locked, and whether
    /// its container has the bound between them. Nothing if there is no memory.
    fn joined<'g>(
        &'g self,
        (left, right): (BaseRef<'g>, BaseRef<'g>),
        bound: K::Slot,
        guard: &'g Guard,
    ) -> Option<(Word, bool)> {
        let mut fresh = Fresh::new(&self.objects, May::Fail);
        let base = fresh.base(Word::NONE).ok()?;
        // SAFETY: it was made above.
        let top = &unsafe { BaseRef::new(base) }.get().container;
        let objects = &self.objects;
        if B::FORM == Form::Avl {
            let (left, right) = (&left.get().container, &right.get().container);
            Tree { top, objects, guard }.join(left, right);
            fresh.linked();
            return Some((base, false));
        }
        let container = Container { top, objects, guard };
        let (left, right) = (left.get().container.word(), right.get().container.word());
        if left.is_none() || right.is_none() {
            top.link(if left.is_none() { right } else { left });
            fresh.linked();
            return Some((base, false));
        }
        let heights = (height::<K>(left), height::<K>(right));
        let in_front = heights.0 < heights.1;
        let (high, low) =
            if in_front { (right, (left, heights.0)) } else { (left, (right, heights.1)) };
        top.link(high);
        let more = Fresh::new(&self.objects, May::Fail);
        let has_bound = container.attach(low, bound, in_front, more).ok()?;
        fresh.linked();
        Some((base, has_bound))
    }
}
