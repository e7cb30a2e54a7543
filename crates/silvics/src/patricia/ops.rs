//! The writing verbs: the paper's `insert_leaf` and `delete_leaf`.

use super::build::Build;
use super::digits::{chars, digit};
use super::key::PatriciaKey;
use super::node::{Change, Draft, Made, Node, Nodes, Place, Slot};
use super::policy::Policy;
use super::retry::{Abort, Level, Section, Tries};
use super::search::{Above, Ancestors, End, Found, Here, NodesOf};
use super::sync::{Coupled, Held, Mode};
use super::transaction::{None as NoTransactions, Transactions};
use super::{MAX_BYTES, Patricia};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::frame::afterwards;
use crate::update::{Step, Update};
use silvics_pool::Placement;
use std::ptr::NonNull;

/// Why an attempt has changed nothing.
enum Stop {
    Aborted(Section, Abort),
    Memory(AllocError),
}

impl From<AllocError> for Stop {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

/// An abort of the modify section.
impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Self::Aborted(Section::Modify, abort)
    }
}

/// The result of a writer's search.
type Seen<'g, N> = Found<'g, N, Ancestors<'g, N>>;

/// A node that takes the place of the one above it, with the change that its label needs.
struct Lift<'g, 'm, N: Nodes, P: Placement> {
    child: Node<'g, N>,
    /// None if the child keeps its label.
    relabel: Option<Relabel<'g, 'm, N, P>>,
}

/// A change of a label: the node's lock, and its new label or the copy with it.
struct Relabel<'g, 'm, N: Nodes, P: Placement> {
    held: Held<'g, N::Lock>,
    change: Change,
    draft: Draft<'m, N, P>,
}

/// A lift in a trie.
type LiftOf<'g, K, B, S, P> = Lift<'g, 'g, NodesOf<K, B, S>, P>;

impl<K, B, S, P> Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    const ALPHABET_BITS: u32 = NodesOf::<K, B, S>::BITS;

    /// See [`crate::OrderedIndex::update`].
    #[inline(always)]
    pub(super) fn change(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let bytes = K::bytes(key);
        let bytes = bytes.as_ref();
        if bytes.len() > MAX_BYTES {
            return Self::change_too_long(bytes.len(), verb);
        }
        match self.try_change_at(Self::first_level(), bytes, verb, guard) {
            Ok(found) => Ok(found),
            Err(Stop::Memory(error)) => Err(error),
            Err(Stop::Aborted(section, abort)) => {
                self.change_again(bytes, verb, (section, abort), guard)
            }
        }
    }

    /// One try at a level. Those in transactions are out of line.
    #[inline(always)]
    fn try_change_at(
        &self,
        level: Level,
        key: &[u8],
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, Stop> {
        match level {
            Level::Transaction => {
                self.try_change::<S::InTransaction, S::Transactions>(key, verb, guard)
            }
            Level::Optimistic => self.try_change::<S::Fast, NoTransactions>(key, verb, guard),
            Level::Locked => self.try_change::<Coupled, NoTransactions>(key, verb, guard),
        }
    }

    /// No key of this length is present.
    #[cold]
    fn change_too_long(bytes: usize, verb: Update) -> Result<Option<u64>, AllocError> {
        match verb.step(None) {
            Step::Put(_) => Err(AllocError::KeyLength { bytes, limit: MAX_BYTES }),
            Step::Keep | Step::Take => Ok(None),
        }
    }

    /// Goes on after an attempt has been aborted.
    #[cold]
    #[inline(never)]
    fn change_again(
        &self,
        key: &[u8],
        verb: Update,
        aborted: (Section, Abort),
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let (mut tries, mut aborted) = (Tries::new(Self::first_level()), aborted);
        loop {
            self.retries.aborted(&mut tries, aborted.0, aborted.1);
            match self.try_change_at(tries.level, key, verb, guard) {
                Ok(found) => {
                    self.retries.done(&tries);
                    return Ok(found);
                }
                Err(Stop::Memory(error)) => return Err(error),
                Err(Stop::Aborted(section, abort)) => aborted = (section, abort),
            }
        }
    }

    /// One try: the read section, and then the modify section.
    #[inline(always)]
    fn try_change<M: Mode<S::Lock>, T: Transactions>(
        &self,
        key: &[u8],
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, Stop> {
        let read = |abort| Stop::Aborted(Section::Read, abort);
        let search = || self.search::<M, Ancestors<'_, _>>(key, guard);
        let found = T::run(&self.retries, search).map_err(read)?;
        let state = match &found.here {
            Some((here, End::Exact)) => NodesOf::<K, B, S>::value(here.node),
            _ => None,
        };
        match (verb.step(state), found) {
            (Step::Keep, found) => {
                if let Some((here, _)) = &found.here {
                    here.held.validate().map_err(read)?;
                }
            }
            (Step::Put(value), Found { here: Some((mut here, _)), .. }) if state.is_some() => {
                // LP(replaced): the exchange that takes the lock.
                T::run(&self.retries, || here.held.own())?;
                // SAFETY: the lock is owned at the version at which the node had an entry.
                unsafe { NodesOf::<K, B, S>::set_value(here.node, value) };
            }
            (Step::Put(value), found) => {
                self.insert_leaf::<T>(found, key, value, guard)?;
                self.frame.len.add(1);
            }
            (Step::Take, found) => {
                self.delete_leaf::<M, T>(found, key, guard)?;
                self.frame.len.add(-1);
            }
        }
        Ok(state)
    }

    /// Adds an entry where a search for its key has ended.
    fn insert_leaf<'g, T: Transactions>(
        &'g self,
        found: Seen<'g, NodesOf<K, B, S>>,
        key: &[u8],
        value: u64,
        guard: &'g Guard,
    ) -> Result<(), Stop> {
        let Found { trail: Ancestors { mut parent, .. }, here } = found;
        let Some((mut here, end)) = here else {
            T::run(&self.retries, || parent.held.own())?;
            let place = Place { key, from: 0, digit: None };
            let leaf = NodesOf::<K, B, S>::leaf::<P>(&self.memory, place, value, guard)?;
            Self::link(parent.slot, leaf);
            return Ok(());
        };
        // A copy changes the parent's slot, and a fork does.
        let with_parent = !NodesOf::<K, B, S>::IN_PLACE || matches!(end, End::Differs(_));
        T::run(&self.retries, || {
            if with_parent {
                parent.held.own()?;
            }
            here.held.own()
        })?;
        let place = Place { key, from: here.from, digit: None };
        match end {
            End::Exact => {
                self.edit(here, parent.slot, Change::Entry(value), place, guard)?;
            }
            End::Missing(digit) => {
                let from = NodesOf::<K, B, S>::end(here.node) + 1;
                let of_leaf = Place { key, from, digit: None };
                let leaf = NodesOf::<K, B, S>::leaf::<P>(&self.memory, of_leaf, value, guard)?;
                let Some(word) = leaf.node() else { unreachable!("`leaf` makes a node") };
                let empty = NodesOf::<K, B, S>::slot(here.node, digit);
                match empty {
                    // A place that a removal has left empty.
                    Some(slot) if !NodesOf::<K, B, S>::IN_PLACE => Self::link(slot, leaf),
                    _ => {
                        let (change, memory) = (Change::Child(digit, word), &self.memory);
                        let draft = NodesOf::<K, B, S>::prepare::<P>(
                            memory, here.node, change, place, guard,
                        )?;
                        leaf.keep(); // from here on nothing fails
                        self.apply(here, parent.slot, change, draft, guard);
                    }
                }
            }
            End::Differs(at) => self.split(here, parent.slot, (key, at), value, guard)?,
        }
        Ok(())
    }

    /// Makes a slot lead to a node that was made.
    #[inline(always)]
    fn link(slot: &Slot, node: Draft<'_, NodesOf<K, B, S>, P>) {
        slot.store(node.node());
        node.keep();
    }

    /// Puts a node above `here`, at the character in which the key differs, with `here` and the
    /// entry below it. The locks of `here` and of the slot's node are owned.
    fn split<'g>(
        &'g self,
        here: Here<'g, NodesOf<K, B, S>>,
        slot: &Slot,
        (key, at): (&[u8], u32),
        value: u64,
        guard: &'g Guard,
    ) -> Result<(), Stop> {
        let Here { held, node, from } = here;
        let of_node = NodesOf::<K, B, S>::label(node, from).digit(Self::ALPHABET_BITS, at);
        let change = Change::Label(from);
        let lower = if NodesOf::<K, B, S>::keeps_label(node) {
            None
        } else {
            let place = Place { key, from: at + 1, digit: None };
            let memory = &self.memory;
            Some(NodesOf::<K, B, S>::prepare::<P>(memory, node, change, place, guard)?)
        };
        let copy = lower.as_ref().and_then(Draft::node);
        let below = (of_node, copy.unwrap_or(node.word()));
        let place = Place { key, from, digit: None };
        let mut leaf = None;
        let fork = if at == chars(Self::ALPHABET_BITS, key.len()) {
            let value = Some(value);
            NodesOf::<K, B, S>::fork::<P>(&self.memory, place, at, value, &[below], guard)?
        } else {
            let of_leaf = Place { key, from: at + 1, digit: None };
            let made = NodesOf::<K, B, S>::leaf::<P>(&self.memory, of_leaf, value, guard)?;
            let Some(word) = made.node() else { unreachable!("`leaf` makes a node") };
            leaf = Some(made);
            let children = [below, (digit(Self::ALPHABET_BITS, key, at), word)];
            NodesOf::<K, B, S>::fork::<P>(&self.memory, place, at, None, &children, guard)?
        };
        // From here on nothing fails.
        Self::link(slot, fork);
        leaf.map(Draft::keep);
        if let Some(lower) = lower {
            self.finish(Here { held, node, from }, change, lower, guard);
        }
        Ok(())
    }

    /// Makes a prepared change of a locked node, in place or by retiring the node whose copy is
    /// linked. The lock is released.
    #[inline]
    fn finish(
        &self,
        here: Here<'_, NodesOf<K, B, S>>,
        change: Change,
        draft: Draft<'_, NodesOf<K, B, S>, P>,
        guard: &Guard,
    ) {
        let Here { held, node, .. } = here;
        let made = draft.keep();
        if NodesOf::<K, B, S>::IN_PLACE {
            // SAFETY: the lock is owned, and `made` was prepared since.
            let old = unsafe { NodesOf::<K, B, S>::change(node, change, made) };
            drop(held);
            self.retire(old, guard);
        } else {
            held.unlink();
            self.retire(Some(Made::Node(node.word())), guard);
        }
    }

    /// Retires an object that was unlinked.
    #[inline]
    fn retire(&self, object: Option<Made>, guard: &Guard) {
        if let Some(object) = object {
            // SAFETY: I5: this thread has unlinked the object, under the locks that lead to it.
            afterwards(|| unsafe { NodesOf::<K, B, S>::retire::<P>(&self.memory, object, guard) });
        }
    }

    /// Changes a node whose lock is owned. If nodes do not change in place, the lock of the slot's
    /// node is, too.
    fn edit(
        &self,
        here: Here<'_, NodesOf<K, B, S>>,
        slot: &Slot,
        change: Change,
        place: Place<'_>,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        let memory = &self.memory;
        let draft = NodesOf::<K, B, S>::prepare::<P>(memory, here.node, change, place, guard)?;
        self.apply(here, slot, change, draft, guard);
        Ok(())
    }

    /// Makes a prepared change of a locked node, whose copy, if there is one, the slot gets.
    fn apply(
        &self,
        here: Here<'_, NodesOf<K, B, S>>,
        slot: &Slot,
        change: Change,
        draft: Draft<'_, NodesOf<K, B, S>, P>,
        guard: &Guard,
    ) {
        if let Some(copy) = draft.node() {
            slot.store(Some(copy));
        }
        self.finish(here, change, draft, guard);
    }

    /// As `edit`, for a change that takes something away. It needs no memory, but leaves the node
    /// as large as it is if there is none.
    fn reduce(
        &self,
        here: Here<'_, NodesOf<K, B, S>>,
        slot: &Slot,
        change: Change,
        place: Place<'_>,
        guard: &Guard,
    ) {
        let memory = &self.memory;
        match NodesOf::<K, B, S>::prepare::<P>(memory, here.node, change, place, guard) {
            Ok(draft) => self.apply(here, slot, change, draft, guard),
            Err(_) => self.reduce_in_place(here, change, guard),
        }
    }

    #[cold]
    fn reduce_in_place(&self, here: Here<'_, NodesOf<K, B, S>>, change: Change, guard: &Guard) {
        self.set_untidy();
        // SAFETY: the lock is owned, and these changes need nothing prepared.
        let old = unsafe { NodesOf::<K, B, S>::change(here.node, change, None) };
        drop(here.held);
        self.retire(old, guard);
    }

    /// Removes the entry where a search for its key has ended.
    fn delete_leaf<'g, M: Mode<S::Lock>, T: Transactions>(
        &'g self,
        found: Seen<'g, NodesOf<K, B, S>>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<(), Stop> {
        let Found { trail: Ancestors { grandparent, mut parent }, here } = found;
        let Some((mut here, _)) = here else { unreachable!("the entry was found") };
        let children = NodesOf::<K, B, S>::children(here.node);
        if children == 0 {
            let ancestors = Ancestors { parent, grandparent };
            return self.delete_childless::<M, T>(ancestors, here, key, guard);
        }
        let with_parent = !NodesOf::<K, B, S>::IN_PLACE || children == 1;
        T::run(&self.retries, || {
            if with_parent {
                parent.held.own()?;
            }
            here.held.own()
        })?;
        let place = Place { key, from: here.from, digit: None };
        if children == 1 {
            let lift = self.lift::<M>(here.node, here.from, None, key, guard)?;
            if let Some(lift) = lift {
                self.put(parent.slot, lift, guard);
                here.held.unlink();
                self.retire(Some(Made::Node(here.node.word())), guard);
                return Ok(());
            }
            self.reduce_in_place(here, Change::NoEntry, guard);
            return Ok(());
        }
        self.reduce(here, parent.slot, Change::NoEntry, place, guard);
        Ok(())
    }

    /// Removes a node without children, and its parent if that has one other child and no entry.
    fn delete_childless<'g, M: Mode<S::Lock>, T: Transactions>(
        &'g self,
        Ancestors { grandparent, mut parent }: Ancestors<'g, NodesOf<K, B, S>>,
        mut here: Here<'g, NodesOf<K, B, S>>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<(), Stop> {
        let gone = here.node.word();
        let (Some(mut above), Some(node)) = (grandparent, parent.node) else {
            T::run(&self.retries, || {
                parent.held.own()?;
                here.held.own()
            })?;
            parent.slot.store(None);
            here.held.unlink();
            self.retire(Some(Made::Node(gone)), guard);
            return Ok(());
        };
        let has_entry = NodesOf::<K, B, S>::value(node).is_some();
        let children = NodesOf::<K, B, S>::children(node);
        let stays = has_entry || children > 2;
        let with_above =
            (!stays || !NodesOf::<K, B, S>::IN_PLACE) && !planted(Canary::GrandparentNotLocked);
        T::run(&self.retries, || {
            if with_above {
                above.held.own()?;
            }
            parent.held.own()?;
            here.held.own()
        })?;
        let change = Change::NoChild(parent.digit);
        let Above { held, from, digit, .. } = parent;
        let upper = Here { held, node, from };
        if stays {
            let place = Place { key, from, digit: None };
            self.reduce(upper, above.slot, change, place, guard);
        } else if children < 2 {
            // For want of memory, the parent had no other child.
            self.empty(&above);
            upper.held.unlink();
            self.retire(Some(Made::Node(node.word())), guard);
        } else if let Some(lift) = self.lift::<M>(node, from, Some(digit), key, guard)? {
            self.put(above.slot, lift, guard);
            upper.held.unlink();
            self.retire(Some(Made::Node(node.word())), guard);
        } else {
            self.reduce_in_place(upper, change, guard);
        }
        here.held.unlink();
        self.retire(Some(Made::Node(gone)), guard);
        Ok(())
    }

    /// Empties a slot whose lock is owned.
    #[cold]
    fn empty(&self, above: &Above<'_, NodesOf<K, B, S>>) {
        self.set_untidy();
        match above.node {
            // SAFETY: the lock is owned, and this change needs nothing prepared.
            Some(node) => unsafe {
                NodesOf::<K, B, S>::change(node, Change::NoChild(above.digit), None);
            },
            None => above.slot.store(None),
        }
    }

    /// Prepares that the only child of a node, beside the one for digit `but`, takes the place of
    /// the node, whose label begins at `from`. The node's lock is owned. Returns `None` if there
    /// is no memory for it.
    fn lift<'g, M: Mode<S::Lock>>(
        &'g self,
        node: Node<'g, NodesOf<K, B, S>>,
        from: u32,
        but: Option<u32>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<LiftOf<'g, K, B, S, P>>, Abort> {
        let first = NodesOf::<K, B, S>::child::<false>(node, 0);
        let other = first.filter(|(digit, _)| Some(*digit) != but).or_else(|| {
            NodesOf::<K, B, S>::child::<false>(node, first.map_or(0, |(digit, _)| digit as i32 + 1))
        });
        let Some((digit, child)) = other else { unreachable!("there is such a child") };
        if NodesOf::<K, B, S>::keeps_label(child) {
            return Ok(Some(Lift { child, relabel: None }));
        }
        let mut held = M::enter(NodesOf::<K, B, S>::lock(child))?;
        held.own()?;
        let end = NodesOf::<K, B, S>::end(node);
        let (place, change) =
            (Place { key, from, digit: Some((end, digit)) }, Change::Label(end + 1));
        let memory = &self.memory;
        match NodesOf::<K, B, S>::prepare::<P>(memory, child, change, place, guard) {
            Ok(draft) => Ok(Some(Lift { child, relabel: Some(Relabel { held, change, draft }) })),
            Err(_) => Ok(None),
        }
    }

    /// Makes a slot lead to a node that takes the place of the one above it.
    fn put(&self, slot: &Slot, lift: Lift<'_, '_, NodesOf<K, B, S>, P>, guard: &Guard) {
        let Lift { child, relabel } = lift;
        let Some(Relabel { held, change, draft }) = relabel else {
            slot.store(Some(child.word()));
            return;
        };
        slot.store(Some(draft.node().unwrap_or(child.word())));
        self.finish(Here { held, node: child, from: 0 }, change, draft, guard);
    }

    /// The nodes below a node, for one that has exclusive access.
    pub(super) fn below(node: Node<'_, NodesOf<K, B, S>>, open: &mut Vec<NonNull<u8>>) {
        let mut next = NodesOf::<K, B, S>::child::<false>(node, 0);
        while let Some((digit, child)) = next {
            open.push(child.word());
            next = NodesOf::<K, B, S>::child::<false>(node, digit as i32 + 1);
        }
    }
}
