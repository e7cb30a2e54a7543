//! Lookups and `update`: the way to a base node, and the work under its lock.

use super::avl::{self, Tree};
use super::build::{Build, Form, Lock};
use super::bulk::check_len;
use super::change::{Container, Contents};
use super::key::CaKey;
use super::route::{Base, BaseRef, RouteRef};
use super::search::{Locked, Seen, Torn, entry_of, order};
use super::word::{Kind, Place};
use super::{Ca, NEVER_TORN};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::frame::afterwards;
use crate::update::{Step, Update};
use silvics_pool::Placement;
use std::cmp::Ordering;

/// The searches of a lookup without the lock before it takes the lock.
pub(super) const TRIES: u32 = 4;

/// The way to a base node.
pub(super) struct Way<'g, K: CaKey + ?Sized> {
    pub(super) base: BaseRef<'g>,
    /// The place that leads to the base node, and the route node that has it.
    pub(super) place: &'g Place,
    pub(super) parent: Option<(RouteRef<'g, K>, bool)>,
    /// The number of route nodes on the way.
    pub(super) depth: u32,
    /// The last route nodes on the way with a bound below the base node, and above it.
    sides: [Option<RouteRef<'g, K>>; 2],
}

impl<K: CaKey + ?Sized> Way<'_, K> {
    /// The nearest bound of the base node, below it or above it. Nothing if it is the last base
    /// node on this side. Fails if the way leads through a route node that is no longer linked.
    ///
    /// The caller has the lock of the base node, or reads its version before and validates it
    /// afterwards. While it is linked, its bounds are those of route nodes that are linked (R4).
    /// Other route nodes on the way are obsolete: a join unlinks one before it links a base node
    /// that has keys on both sides of its bound.
    pub(super) fn bound(&self, above: bool) -> Result<Option<K::Slot>, Torn> {
        let Some(route) = self.sides[usize::from(above)] else { return Ok(None) };
        if route.get().lock.is_obsolete() && !planted(Canary::OldBoundTrusted) {
            return Err(Torn);
        }
        Ok(Some(route.bound()))
    }
}

/// A base node that the caller has locked. Dropping it unlocks.
pub(super) struct Hold<'g>(BaseRef<'g>);

impl<'g> Hold<'g> {
    /// Locks. Returns whether the lock was not free, or nothing if the base node is obsolete.
    pub(super) fn new<B: Build>(base: BaseRef<'g>) -> Option<(Self, bool)> {
        let Base { lock, readers, .. } = base.get();
        let contended = !lock.try_lock();
        if contended && lock.lock().is_err() {
            return None;
        }
        let waited =
            B::LOCK == Lock::Shared && !planted(Canary::ReadersNotAwaited) && readers.wait();
        Some((Self(base), contended || waited))
    }

    /// Locks if the lock is free and the base node is not obsolete. It does not wait.
    pub(super) fn attempt<B: Build>(base: BaseRef<'g>) -> Option<Self> {
        let hold = base.get().lock.try_lock().then(|| Self(base))?;
        (B::LOCK != Lock::Shared || base.get().readers.is_empty()).then_some(hold)
    }

    /// Unlocks a base node that is no longer linked.
    pub(super) fn obsolete(self) {
        // SAFETY: `new` or `attempt` has locked it, and `self` is forgotten, so it is unlocked
        // once.
        unsafe { self.0.get().lock.unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` or `attempt` has locked it, and `self` goes away, so it is unlocked once.
        unsafe { self.0.get().lock.unlock() };
    }
}

/// A base node whose lock the caller shares with other readers. Dropping it gives up the share.
pub(super) struct Share<'g>(BaseRef<'g>);

impl<'g> Share<'g> {
    /// Takes a share. Returns nothing if the base node is obsolete. If a writer had the lock, the
    /// reader adds to the statistics, as in JPDC 2018. The next writer splits the base node.
    pub(super) fn new<B: Build>(base: BaseRef<'g>) -> Option<Self> {
        let waited = base.get().readers.enter(&base.get().lock).ok()?; // LP
        let share = Self(base);
        if waited && B::ADAPTS {
            share.note::<B>(B::LIMITS.contended);
        }
        Some(share)
    }

    /// Changes the statistics.
    #[cold]
    pub(super) fn note<B: Build>(&self, change: i64) {
        self.0.get().add_statistics(change, B::LIMITS.most);
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` has taken the share, and `self` goes away, so it is given up once.
        unsafe { self.0.get().readers.leave() };
    }
}

/// Whether a search for a key goes right at a bound.
#[inline(always)]
pub(super) fn goes_right<K: CaKey + ?Sized>(bound: K::Slot, probe: &K::Probe<'_>) -> bool {
    // The bound's object is retired after its route node, which was read under the guard.
    order::<K>(bound, probe, Locked).unwrap_or_else(|_| unreachable!("{NEVER_TORN}"))
        != Ordering::Greater
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ca<K, P, B> {
    /// The base node of a key. It may be obsolete by now.
    #[inline]
    fn base_of<'g>(&'g self, probe: &K::Probe<'_>, _guard: &'g Guard) -> BaseRef<'g> {
        let mut word = self.root.word();
        while word.kind() == Kind::Route {
            // SAFETY: R2: the word was read under the guard.
            let route = unsafe { RouteRef::<K>::new(word) };
            let right = goes_right::<K>(route.bound(), probe);
            P::saw(|| route.passed(right));
            word = route.child(right).word();
        }
        // SAFETY: R2: likewise. Every way ends at a base node.
        unsafe { BaseRef::new(word) }
    }

    /// The way that a search takes which goes right at bounds for which `right` says so.
    pub(super) fn way<'g>(
        &'g self,
        mut right: impl FnMut(K::Slot) -> bool,
        guard: &'g Guard,
    ) -> Way<'g, K> {
        Self::way_below((&self.root, None), &mut right, guard)
    }

    /// The way from a place on.
    pub(super) fn way_below<'g>(
        (from, above): (&'g Place, Option<(RouteRef<'g, K>, bool)>),
        right: &mut impl FnMut(K::Slot) -> bool,
        _guard: &'g Guard,
    ) -> Way<'g, K> {
        let (mut place, mut parent, mut depth, mut sides) = (from, above, 0, [None; 2]);
        loop {
            let word = place.word();
            if word.kind() != Kind::Route {
                // SAFETY: R2: the word was read under the guard.
                let base = unsafe { BaseRef::new(word) };
                return Way { base, place, parent, depth, sides };
            }
            // SAFETY: R2: likewise.
            let route = unsafe { RouteRef::<K>::new(word) };
            let goes_right = right(route.bound());
            sides[usize::from(!goes_right)] = Some(route);
            place = route.child(goes_right);
            parent = Some((route, goes_right));
            depth += 1;
        }
    }

    /// The way to the base node of a key.
    pub(super) fn way_to<'g>(&'g self, probe: &K::Probe<'_>, guard: &'g Guard) -> Way<'g, K> {
        self.way(|bound| goes_right::<K>(bound, probe), guard)
    }

    /// See [`Lookup::get`](crate::Lookup::get). The guard is of the tree's domain.
    #[inline]
    pub(super) fn look_up(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        let probe = K::probe(K::shorten(key));
        match B::LOCK {
            Lock::Version => {}
            Lock::Shared => return self.look_up_shared(&probe, guard),
            Lock::Spin => return self.look_up_locked(&probe, guard),
        }
        for _ in 0..TRIES {
            let base = self.base_of(&probe, guard);
            let lock = &base.get().lock;
            P::saw(|| base.get().looked_at());
            let Ok(version) = lock.read() else { continue }; // LP(get)
            let seen = Seen { lock, version };
            let container = base.get().container.word();
            // SAFETY: the word was read from a container after the version, under the guard.
            if let Ok(entry) = unsafe { entry_of::<K, P>(container, &probe, seen) } {
                return entry.map(|(_, value)| value);
            }
        }
        self.look_up_disturbed(&probe, guard)
    }

    #[cold]
    fn look_up_disturbed(&self, probe: &K::Probe<'_>, guard: &Guard) -> Option<u64> {
        self.look_up_locked(probe, guard)
    }

    /// The lookup of a reader that takes the lock. With version locks, writers have disturbed it,
    /// which counts as contention.
    fn look_up_locked(&self, probe: &K::Probe<'_>, guard: &Guard) -> Option<u64> {
        loop {
            let way = self.way_to(probe, guard);
            let Some((hold, waited)) = Hold::new::<B>(way.base) else { continue };
            let found = Self::value_under_lock(way.base, probe);
            let contended = waited || B::LOCK == Lock::Version;
            afterwards(|| self.adapt(&way, hold, (contended, 0), guard));
            return found;
        }
    }

    /// The lookup of a reader that shares the lock.
    fn look_up_shared(&self, probe: &K::Probe<'_>, guard: &Guard) -> Option<u64> {
        loop {
            let base = self.base_of(probe, guard);
            if let Some(_share) = Share::new::<B>(base) {
                return Self::value_under_lock(base, probe); // LP(get): the share
            }
        }
    }

    /// The value of a key in a base node that the caller has locked, or shares.
    fn value_under_lock(base: BaseRef<'_>, probe: &K::Probe<'_>) -> Option<u64> {
        P::saw(|| base.get().looked_at());
        let container = base.get().container.word();
        // SAFETY: the word was read from the container under its lock.
        unsafe {
            if B::FORM == Form::Avl {
                return avl::value_of::<K, P>(container, probe);
            }
            let found = entry_of::<K, P>(container, probe, Locked);
            let entry = found.unwrap_or_else(|_| unreachable!("{NEVER_TORN}"));
            entry.map(|(_, value)| value)
        }
    }

    /// See [`OrderedIndex::update`](crate::OrderedIndex::update). The guard is of the tree's
    /// domain.
    pub(super) fn change(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let probe = K::probe(K::shorten(key));
        loop {
            let way = self.way_to(&probe, guard);
            let Some((hold, contended)) = Hold::new::<B>(way.base) else { continue };
            let outcome = self.change_locked(&way, (K::shorten(key), &probe), verb, guard);
            afterwards(|| self.adapt(&way, hold, (contended, 0), guard));
            return outcome;
        }
    }

    /// Changes the state of a key in a base node that the caller has locked.
    pub(super) fn change_locked(
        &self,
        way: &Way<'_, K>,
        key: (K::Ref<'_>, &K::Probe<'_>),
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let (top, objects) = (&way.base.get().container, &self.objects);
        match B::FORM {
            Form::Blocks => self.change_in(&Container { top, objects, guard }, key, verb),
            Form::Avl => self.change_in(&Tree { top, objects, guard }, key, verb),
        }
    }

    #[inline]
    fn change_in<'g>(
        &self,
        container: &impl Contents<'g, K>,
        (key, probe): (K::Ref<'_>, &K::Probe<'_>),
        verb: Update,
    ) -> Result<Option<u64>, AllocError>
    where
        K: 'g,
    {
        let mut path = Default::default();
        let found = container.find(probe, &mut path)?;
        let present = found.as_ref().filter(|found| found.is_there);
        let state = present.map(|found| found.leaf.value(found.at));
        let len = &self.objects.frame().len;
        match (verb.step(state), present) {
            (Step::Keep, _) | (Step::Take, None) => {}
            (Step::Put(value), Some(found)) => found.leaf.set_value(found.at, value),
            (Step::Put(value), None) => {
                check_len::<K>(K::shorten(key))?;
                container.insert(found.as_ref(), path, (key, value))?;
                len.add(1);
            }
            (Step::Take, Some(found)) => {
                len.add(-1);
                container.remove(found, path);
            }
        }
        Ok(state)
    }
}
