//! The writing verb: `update`, of which all others are uses.
//!
//! [`Art::put`] (`insert.rs`) makes a key present, [`Art::take`] (`remove.rs`) makes it absent, and
//! `resize.rs` replaces nodes that are too small or too large.

use super::hot::sampler::Sampler;
use super::key::Digit;
use super::leaf::LeafOf;
use super::lock::Locked;
use super::node::{AnySize, NodeRef, Visit};
use super::seek::{Descent, End, Lead, Patience, Trail};
use super::word::{ABSENT, Content, Word};
use super::{Art, ArtKey};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::Ordering;
use silvics_sync::prefetch;

/// The last two nodes of a path. The root has no parent.
struct LastTwo {
    parent: Word,
    node: Word,
}

impl Trail for LastTwo {
    #[inline(always)]
    fn begin(&mut self) {
        (self.parent, self.node) = (Word::NONE, Word::NONE);
    }
    #[inline(always)]
    fn pass(&mut self, at: Word, _digit: Digit) {
        (self.parent, self.node) = (self.node, at);
        // The node's lock is not in the line of the place that decides whether it will be needed.
        prefetch(at.node_object());
    }
}

/// The outcome of an attempt to update a key.
pub(super) enum Attempt {
    /// Nothing was tried: the descent has not come to a node of values.
    Elsewhere,
    Done(Option<u64>),
    /// The node has no place for the key, or with `boxed` must hold words instead of values.
    Rebuild {
        boxed: bool,
    },
    Restart,
    /// The update is done, and the node may be larger than its contents need.
    Shrunk(Option<u64>),
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// See [`OrderedIndex::update`](crate::OrderedIndex::update). The guard is of the tree's
    /// domain.
    ///
    /// This is the common case, inlined for each verb: the descent, and the change of a value that
    /// lies in a node.
    #[inline(always)]
    pub(super) fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut trail = LastTwo { parent: Word::NONE, node: Word::NONE };
        let root = self.root.word();
        if root.is_none() {
            return self.update_first(key, verb, guard);
        }
        let descent = self.descend(root, key, usize::MAX, &mut trail);
        match self.change(&descent, key, verb) {
            Attempt::Done(state) => Ok(state),
            attempt => self.update_on(attempt, descent, trail, key, verb, guard),
        }
    }

    /// Updates a key of a tree that had no root.
    #[cold]
    fn update_first(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        if !matches!(verb.step(None), Step::Put(_)) {
            return Ok(None); // LP(kept): the load of the root's word
        }
        self.plant(guard)?;
        let mut trail = LastTwo { parent: Word::NONE, node: Word::NONE };
        let descent = self.descend(self.root.word(), key, usize::MAX, &mut trail);
        let attempt = self.change(&descent, key, verb);
        self.update_on(attempt, descent, trail, key, verb, guard)
    }

    /// Finishes an update after a descent and a first attempt.
    #[inline(never)]
    fn update_on<'g>(
        &'g self,
        mut attempt: Attempt,
        mut descent: Descent<'g>,
        mut trail: LastTwo,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        loop {
            let mut at = descent.at;
            if let Attempt::Elsewhere = attempt {
                let end;
                (at, end) = self.seek_on(descent, key, usize::MAX, Patience::Waits, &mut trail);
                let state = Self::state(end);
                if verb.step(state) == Step::Keep {
                    return Ok(state); // LP(kept): the last load
                }
                let mut unlinked = Word::NONE;
                attempt = self.attempt(at, end, key, verb, &mut unlinked, guard)?;
                if !unlinked.is_none() {
                    // SAFETY: the attempt has unlinked the object under the lock, and nobody else
                    // can have (I3), so it is retired once. The guard is of the tree's domain. The
                    // lock is free again, as reclaiming takes time.
                    unsafe { self.alloc.retire(unlinked, guard) };
                }
            }
            match attempt {
                Attempt::Done(state) => return Ok(state),
                Attempt::Shrunk(state) => {
                    self.tidy(key, at.depth_for::<K>(), guard);
                    return Ok(state);
                }
                Attempt::Rebuild { boxed } => {
                    let parent = (!trail.parent.is_none()).then_some(trail.parent);
                    // SAFETY: I7: a trail has nodes only. I8: they were read under the guard.
                    let parent = parent.map(|word| unsafe { Visit::of(word) });
                    self.rebuild(parent, at, key, boxed, guard)?;
                }
                Attempt::Restart | Attempt::Elsewhere => {}
            }
            self.widen(guard);
            descent = self.descend(self.root.word(), key, usize::MAX, &mut trail);
            attempt = self.change(&descent, key, verb);
        }
    }

    /// Does what the verb wants if a descent has come to a node of values.
    ///
    /// A processor takes a lock when all earlier loads are done, and the value is usually in no
    /// cache. So a `Node256` says in the line of the lock which of its places have a value. If that
    /// says that the verb will change the key, this takes the lock without loading the value.
    #[inline(always)]
    fn change(&self, descent: &Descent<'_>, key: K::Ref<'_>, verb: Update) -> Attempt {
        let at = descent.at;
        let NodeRef::Values(node) = at.node else { return Attempt::Elsewhere };
        let Lead::Place(place) = descent.end else { return self.add(at, node, key, verb) };
        let digit = K::digit(key, at.depth_for::<K>());
        let holds = || match (node, digit) {
            (AnySize::Full(node), Some(byte)) => Some(node.holds(byte)),
            _ => None,
        };
        let state = || Some(u64::load(place)).filter(|value| *value != ABSENT);
        let guess = holds();
        if guess.is_some_and(|holds| verb.changes(holds)) && verb.value() != Some(ABSENT) {
            prefetch(std::ptr::from_ref(place));
        } else {
            let seen = state();
            match verb.step(seen) {
                Step::Keep => return Attempt::Done(seen), // LP(kept)
                Step::Put(ABSENT) => return Attempt::Rebuild { boxed: true },
                Step::Put(_) | Step::Take => {}
            }
        }
        let Some(_lock) = Locked::new(at) else { return Attempt::Restart };
        let state = if is_empty(guess, holds()) { None } else { state() };
        match verb.step(state) {
            Step::Keep => Attempt::Done(state),
            Step::Put(value) => {
                value.store(place); // LP(inserted, replaced)
                if state.is_none() {
                    node.came(noted(digit));
                    self.alloc.frame().len.add(1);
                }
                Attempt::Done(state)
            }
            Step::Take => {
                ABSENT.store(place); // LP(removed)
                node.went(digit);
                self.alloc.frame().len.add(-1);
                Attempt::taken(at, state)
            }
        }
    }

    /// The value of a key whose path has this end.
    fn state(end: End) -> Option<u64> {
        match end {
            End::Value(value) => Some(value),
            End::Leaf(word, at) => {
                // SAFETY: I7: the path ends at a leaf. I8: its word was read under the guard of the
                // update.
                let leaf = unsafe { K::Leaf::from_word(word) };
                at.map(|at| leaf.value(at).load(Ordering::SeqCst))
            }
            End::Nothing | End::Parting(..) => None,
        }
    }

    /// Locks the node where a path has ended, looks again, and does what the verb wants. `unlinked`
    /// becomes the word of an object that is no longer linked.
    #[inline]
    fn attempt(
        &self,
        at: Visit<'_>,
        end: End,
        key: K::Ref<'_>,
        verb: Update,
        unlinked: &mut Word,
        guard: &Guard,
    ) -> Result<Attempt, AllocError> {
        // The node of values was linked after the descent that `change` has seen.
        let NodeRef::Words(node) = at.node else { return Ok(Attempt::Restart) };
        let Some(_lock) = Locked::new(at) else { return Ok(Attempt::Restart) };
        let digit = K::digit(key, at.depth_for::<K>());
        if has_changed(node, digit, end) {
            return Ok(Attempt::Restart);
        }
        let state = Self::state(end);
        match verb.step(state) {
            Step::Keep => Ok(Attempt::Done(state)),
            Step::Put(_) if K::len(key) > K::MAX_BYTES => {
                Err(AllocError::KeyLength { bytes: K::len(key), limit: K::MAX_BYTES })
            }
            Step::Put(value) => self.put(at, node, end, (key, value), unlinked, guard),
            Step::Take => {
                let End::Leaf(word, Some(place)) = end else { unreachable!("a present key") };
                *unlinked = self.take(node, digit, (word, place));
                Ok(Attempt::taken(at, state))
            }
        }
    }
}

/// Whether the bit read under the lock says that a place is empty. `guess` was read before.
#[inline(always)]
fn is_empty(guess: Option<bool>, held: Option<bool>) -> bool {
    held == Some(false) || planted(Canary::GuessTrusted) && guess == Some(false)
}

/// The digit that a node notes as filled.
#[inline(always)]
fn noted(digit: Digit) -> Digit {
    if planted(Canary::HeldForgotten) { None } else { digit }
}

/// Whether a place has changed between the end of a path there and the locking of its node.
#[inline(always)]
fn has_changed(node: AnySize<'_, Word>, digit: Digit, end: End) -> bool {
    let seen = match end {
        End::Leaf(word, _) | End::Parting(word, ..) => word,
        End::Nothing | End::Value(_) => Word::NONE,
    };
    node.at(digit) != seen && !planted(Canary::SeenBeforeLocked)
}
