//! Lookups and `update`: the way to a base node, and the exchange that replaces it.

use super::Lfca;
use super::edit::{Edit, Found};
use super::node::{Base, FreeRoute, Join, Role, State, base, changed, claim, join, new_base};
use crate::ca::build::{Build, Limits};
use crate::ca::bulk::check_len;
use crate::ca::key::Slots;
use crate::ca::objects::May;
use crate::ca::search::{Locked, entry_of, order};
use crate::ca::word::{Kind, Place, Word};
use crate::canary::{Canary, planted};
use crate::domain::{Guard, Under};
use crate::error::AllocError;
use crate::frame::afterwards;
use crate::update::{Step, Update};
use silvics_pool::{Budget, Placement};
use std::cmp::Ordering;

/// The way to a base node.
pub(super) struct Way<'g, K: Slots + ?Sized> {
    /// The place that leads to the base node.
    pub(super) place: &'g Place,
    /// Its word: that of the base node, or of a join that has claimed the place.
    pub(super) word: Word,
    /// The route node that has the place, and whether it is the right child.
    pub(super) parent: Option<(FreeRoute<'g, K>, bool)>,
    /// The place that led to this route node.
    pub(super) above: &'g Place,
    /// The number of route nodes on the way.
    pub(super) depth: u32,
    /// The turns at them, the last one in the lowest bit: whether the way goes right. Those of a
    /// way with more than 64 route nodes are unknown.
    turns: u64,
    /// The last route nodes on the way with a bound below the base node, and above it.
    sides: [Option<FreeRoute<'g, K>>; 2],
}

/// The serial number of a base node, and the way that led to it. If a base node with this number is
/// at the end of this way, it is the same one: all its keys are those that it had.
#[derive(Clone, Copy, Default)]
pub(crate) struct Address {
    serial: u64,
    turns: u64,
    depth: u32,
}

impl<K: Slots + ?Sized> Clone for Way<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Slots + ?Sized> Copy for Way<'_, K> {}

impl<'g, K: Slots + ?Sized> Way<'g, K> {
    /// The route node with the nearest bound on the way, below the base node or above it. The base
    /// node has all keys up to it, and more if this route node was unlinked before it was made.
    pub(super) fn side(&self, above: bool) -> Option<FreeRoute<'g, K>> {
        self.sides[usize::from(above)]
    }

    /// The address of the base node.
    pub(super) fn address(&self) -> Address {
        Address { serial: self.base().serial, turns: self.turns, depth: self.depth }
    }

    /// The base node, unless a join has claimed its place.
    pub(super) fn free(&self) -> Option<&'g Base> {
        // SAFETY: Q1: the word was read under the guard of `'g`.
        (self.word.kind() == Kind::Base).then(|| unsafe { base(self.word) })
    }

    /// The base node, claimed or not.
    pub(super) fn base(&self) -> &'g Base {
        // SAFETY: Q1: the word was read under the guard of `'g`.
        unsafe {
            match self.word.kind() {
                Kind::Join => {
                    let (join, role) = join(self.word);
                    base(join.resolve(role))
                }
                _ => base(self.word),
            }
        }
    }
}

/// Whether a search for a key goes right at a bound.
#[inline(always)]
fn goes_right<K: Slots + ?Sized>(bound: K::Slot, probe: &K::Probe<'_>) -> bool {
    // Q1: the bound's object is retired after its route node, or with it.
    !matches!(order::<K>(bound, probe, Locked), Ok(Ordering::Greater))
}

impl<K: Slots + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// The base node of a key.
    #[inline]
    fn base_of<'g>(&'g self, probe: &K::Probe<'_>, _guard: &'g Guard) -> &'g Base {
        let mut word = self.root.read(); // LP(get): this load, or a later one of the loop
        loop {
            if word.kind() == Kind::Join {
                // SAFETY: Q1: the word was read under the guard.
                let (join, role) = unsafe { join(word) };
                word = join.resolve(role);
            }
            if word.kind() != Kind::Route {
                // SAFETY: Q1: likewise. Every way ends at a base node.
                return unsafe { base(word) };
            }
            // SAFETY: Q1: likewise.
            let route = unsafe { FreeRoute::<K>::new(word) };
            let right = goes_right::<K>(route.bound(), probe);
            P::saw(|| route.passed(right));
            word = route.child(right).read();
        }
    }

    /// Whether the base node of an address is linked. Nobody compares keys.
    pub(crate) fn is_linked(&self, at: Address, _guard: &Guard) -> bool {
        let mut word = self.root.read();
        for left in (0..=at.depth).rev() {
            if word.kind() == Kind::Join {
                // SAFETY: Q1: the word was read under the guard.
                let (join, role) = unsafe { join(word) };
                word = join.resolve(role);
            }
            match (word.kind(), left) {
                // SAFETY: Q1: likewise.
                (Kind::Base, 0) => return unsafe { base(word) }.serial == at.serial,
                (Kind::Route, 1..) if left <= u64::BITS => {
                    // SAFETY: Q1: likewise.
                    let route = unsafe { FreeRoute::<K>::new(word) };
                    word = route.child(at.turns >> (left - 1) & 1 == 1).read();
                }
                _ => return false,
            }
        }
        false
    }

    /// See [`Lookup::get`](crate::Lookup::get). The guard is of the tree's domain.
    #[inline]
    pub(crate) fn look_up(&self, probe: &K::Probe<'_>, guard: &Guard) -> Option<(K::Slot, u64)> {
        let base = self.base_of(probe, guard);
        P::saw(|| base.looked_at());
        // SAFETY: Q1: the base node was read under the guard.
        let found = unsafe { entry_of::<K, P>(base.container, probe, Locked) };
        found.unwrap_or_else(|_| unreachable!("containers do not change"))
    }

    /// The way that a search takes which goes right at route nodes for which `right` says so.
    pub(super) fn way<'g>(
        &'g self,
        mut right: impl FnMut(FreeRoute<'g, K>) -> bool,
        guard: impl Into<Under<'g>>,
    ) -> Way<'g, K> {
        Self::way_below((&self.root, None), &mut right, guard.into())
    }

    /// The way from a place on.
    pub(super) fn way_below<'g>(
        (from, parent): (&'g Place, Option<(FreeRoute<'g, K>, bool)>),
        right: &mut impl FnMut(FreeRoute<'g, K>) -> bool,
        _guard: Under<'g>,
    ) -> Way<'g, K> {
        let word = from.read();
        let (above, sides) = (from, [None; 2]);
        let mut way = Way { place: from, word, parent, above, depth: 0, turns: 0, sides };
        loop {
            let mut node = way.word;
            if node.kind() == Kind::Join {
                // SAFETY: Q1: the word was read under the guard.
                let (join, role) = unsafe { join(node) };
                node = match role {
                    Role::Main | Role::Neighbour => return way,
                    _ => join.resolve(role),
                };
            }
            if node.kind() != Kind::Route {
                return way;
            }
            // SAFETY: Q1: likewise.
            let route = unsafe { FreeRoute::<K>::new(node) };
            let goes_right = right(route);
            way.sides[usize::from(!goes_right)] = Some(route);
            (way.above, way.place) = (way.place, route.child(goes_right));
            way.parent = Some((route, goes_right));
            (way.depth, way.turns) = (way.depth + 1, way.turns << 1 | u64::from(goes_right));
            way.word = way.place.read();
        }
    }

    /// The way to the base node of a key.
    pub(super) fn way_to<'g>(&'g self, probe: &K::Probe<'_>, guard: &'g Guard) -> Way<'g, K> {
        self.way(|route| goes_right::<K>(route.bound(), probe), guard)
    }

    /// Whether one base node has all entries.
    fn is_undivided(&self) -> bool {
        self.root.read().kind() == Kind::Base
    }

    /// See [`OrderedIndex::update`](crate::OrderedIndex::update). Returns the entry that was found.
    /// The guard is of the tree's domain.
    ///
    /// Keys are compared before anything is made or changed. If the entry has another key than
    /// `only`, it stays as it is.
    pub(crate) fn change(
        &self,
        (probe, key): (&K::Probe<'_>, K::New<'_>),
        only: Option<K::Slot>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<(K::Slot, u64)>, AllocError> {
        let mut contended = false;
        loop {
            let way = self.way_to(probe, guard);
            let Some(base) = way.free() else {
                Self::help(way.place, way.word, guard);
                contended = true;
                continue;
            };
            // SAFETY: Q1: the base node was read under the guard.
            let found = unsafe { Found::new(base.container, probe) }?;
            let state = found.as_ref().and_then(Found::entry);
            let is_other = |only| state.is_some_and(|(slot, _)| !K::are_same(slot, only));
            if only.is_some_and(is_other) {
                return Ok(state);
            }
            let is_done = match (verb.step(state.map(|(_, value)| value)), &found) {
                (Step::Put(value), found) => {
                    check_len::<K>(key)?;
                    let mut edit = Edit::new(&self.objects, May::Flush(guard), self.is_undivided());
                    let root = edit.put(found.as_ref(), (key, value))?;
                    let more = i64::from(state.is_none());
                    let now = self.replace(&way, (root, &mut edit), contended, more, guard)?;
                    self.adapt_after(now, guard)
                }
                (Step::Take, Some(found)) if state.is_some() => {
                    self.take_out(&way, found, contended, guard)?
                }
                _ => {
                    afterwards(|| self.leave(&way, guard));
                    true
                }
            };
            if is_done {
                return Ok(state);
            }
            K::again(probe);
            contended = true;
        }
    }

    /// Removes an entry of a base node. Returns whether the place still led to the base node.
    ///
    /// At the limit of its memory, a removal uses what the tree has reserved. It frees as much when
    /// the objects that it replaces are reclaimed.
    pub(super) fn take_out<'g>(
        &'g self,
        way: &Way<'g, K>,
        found: &Found<'g, K>,
        contended: bool,
        guard: &'g Guard,
    ) -> Result<bool, AllocError> {
        let take = || -> Result<Option<Way<'g, K>>, AllocError> {
            let mut edit = Edit::new(&self.objects, May::Flush(guard), self.is_undivided());
            let root = edit.remove(found)?;
            self.replace(way, (root, &mut edit), contended, -1, guard)
        };
        let now = take().or_else(|_| Budget::with_reserves(take))?;
        Ok(self.adapt_after(now, guard))
    }

    /// Adapts a base node that has replaced another one, and returns whether there is one.
    fn adapt_after<'g>(&'g self, now: Option<Way<'g, K>>, guard: &'g Guard) -> bool {
        if let Some(now) = &now {
            afterwards(|| self.adapt(now, guard));
        }
        now.is_some()
    }

    /// Puts a new base node in the place of one, with a container that has `more` entries. Returns
    /// the way to the new one, or nothing if the place no longer led to the old one.
    fn replace<'g>(
        &'g self,
        way: &Way<'g, K>,
        (root, edit): (Word, &mut Edit<'_, K, P>),
        contended: bool,
        more: i64,
        guard: &'g Guard,
    ) -> Result<Option<Way<'g, K>>, AllocError> {
        let old = way.base();
        let Limits { contended: plus, uncontended: minus, most, .. } = B::LIMITS;
        let by = if contended { plus } else { -minus } + B::nudge(old.writes());
        let statistics = changed(old.statistics(), by, most);
        let new = new_base(&mut edit.fresh, Base::after(old, root, statistics))?;
        if !way.place.replace(way.word, new) {
            return Ok(None); // `edit` frees what it has made
        }
        // LP(inserted), LP(removed)
        edit.fresh.linked();
        self.objects.frame().len.add(more);
        edit.gone.push(way.word);
        for word in edit.gone.words() {
            // SAFETY: C1, Q1: the exchange has unlinked these, so no new reader finds them. Only
            // this thread has made it.
            unsafe {
                if planted(Canary::ReplacedFreedAtOnce) {
                    self.objects.free(*word);
                } else {
                    self.objects.retire(*word, guard);
                }
            }
        }
        if let Some(key) = edit.removed
            && K::BOUNDS_ARE_ENTRIES
            && self.bounds.remove(key)
        {
            // SAFETY: L3: no entry and no route node has the key any more. This thread is the last.
            unsafe { K::retire(key, &self.order, guard) };
        }
        Ok(Some(Way { word: new, ..*way }))
    }

    /// Helps an operation that has claimed a place. Afterwards the place has another word, or is
    /// not linked any more.
    #[cold]
    pub(super) fn help(place: &Place, word: Word, _guard: &Guard) {
        if word.kind() != Kind::Join || planted(Canary::JoinNotHelped) {
            return;
        }
        // SAFETY: Q1: the word was read under the guard.
        let (join, role) = unsafe { join(word) };
        join.abort();
        Self::finish(join, word, place, role);
    }

    /// Finishes a decided join, as far as it concerns one place that it has claimed.
    pub(super) fn finish(join: &Join, word: Word, place: &Place, role: Role) {
        debug_assert!(join.state() != State::Claiming);
        if join.state() == State::Aborted {
            let _ = place.replace(claim(word, role), join.before(role));
            return;
        }
        if join.state() == State::Committed {
            // SAFETY: J4: the join was committed and not passed just now, so the place above was
            // linked since the guard was taken.
            let above = unsafe { &*join.above };
            let _ = above.replace(claim(word, Role::Above), claim(word, Role::Past));
            join.pass();
        }
        debug_assert!(join.state() == State::Passed);
        match role {
            Role::Above | Role::Past => {
                let _ = place.replace(claim(word, Role::Past), join.rest);
            }
            Role::Neighbour if !join.is_short() => {
                let _ = place.replace(claim(word, Role::Neighbour), join.joined);
            }
            // These are places of the parent, which nothing leads to any more.
            Role::Main | Role::Other | Role::Neighbour => {}
        }
    }
}
