//! The writing verbs.

use super::ArtKey;
use super::ArtTree;
use super::alloc::{Room, UnlinkedLeaf};
use super::key::Digit;
use super::leaf::{Entries, LeafOf};
use super::lock::Locked;
use super::node::{AnySize, NodeRef, Visit};
use super::resize::is_large;
use super::seek::{Descent, End, Lead, Patience, Trail};
use super::word::{ABSENT, Content, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::Ordering;
use silvics_sync::prefetch;

/// The last two nodes of a path.
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
        // Its lock is in another line than the place that decides whether it will be needed.
        prefetch(at.object());
    }
}

/// What came of an attempt.
enum Attempt {
    Done(Option<u64>),
    /// The node has no place for the key, or must hold words instead of values.
    Rebuild {
        boxed: bool,
    },
    Restart,
    /// Done, and the node may be larger than what is in it asks for.
    Shrunk(Option<u64>),
}

impl Attempt {
    /// Something was taken from a node, which is locked.
    fn taken(at: Visit<'_>, state: Option<u64>) -> Self {
        if is_large(at, at.header().live()) { Self::Shrunk(state) } else { Self::Done(state) }
    }
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// The part of an update that most of them are, compiled for each verb: the way down, and the change of a
    /// value that lies in a node.
    #[inline(always)]
    pub(super) fn do_update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut trail = LastTwo { parent: Word::NONE, node: Word::NONE };
        let descent = self.descend(key, usize::MAX, &mut trail);
        match self.change(&descent, key, verb) {
            Some(Attempt::Done(state)) => Ok(state),
            attempt => self.update_on(attempt, descent, trail, key, verb, guard),
        }
    }

    /// What is left of an update after a descent and an attempt.
    #[inline(never)]
    fn update_on<'g>(
        &'g self,
        mut attempt: Option<Attempt>,
        mut descent: Descent<'g>,
        mut trail: LastTwo,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        loop {
            let mut at = descent.at;
            if attempt.is_none() {
                let end;
                (at, end) = self.seek_on(descent, key, usize::MAX, Patience::Waits, &mut trail);
                let state = Self::state(end);
                if verb.step(state) == Step::Keep {
                    return Ok(state); // LP(kept): the last load
                }
                let mut unlinked = Word::NONE;
                attempt = Some(self.attempt(at, end, key, verb, &mut unlinked, guard)?);
                if !unlinked.is_none() {
                    // SAFETY: unlinked by the attempt, under the lock, which is free again: reclaiming takes time.
                    unsafe { self.alloc.retire(unlinked, guard) };
                }
            }
            match attempt {
                Some(Attempt::Done(state)) => return Ok(state),
                Some(Attempt::Shrunk(state)) => {
                    self.tidy(key, at.depth(), guard);
                    return Ok(state);
                }
                Some(Attempt::Rebuild { boxed }) => {
                    // SAFETY: read under the guard; the root is not rebuilt, it has a place for each digit.
                    let parent = unsafe { Visit::of(trail.parent) };
                    self.rebuild(parent, at, key, boxed, guard)?;
                }
                Some(Attempt::Restart) | None => {}
            }
            descent = self.descend(key, usize::MAX, &mut trail);
            attempt = self.change(&descent, key, verb);
        }
    }

    /// Does what the verb wants where a descent has led to a node of values.
    ///
    /// A lock is taken when all loads before it are done. So that it need not wait for the value, which is
    /// in no cache mostly, a `Node256` tells in the line of the lock which of its places have one: if the verb will
    /// surely change the key, it goes for the lock at once.
    #[inline(always)]
    fn change(&self, descent: &Descent<'_>, key: K::Ref<'_>, verb: Update) -> Option<Attempt> {
        let at = descent.at;
        let NodeRef::Values(node) = at.node else { return None };
        let Lead::Place(place) = descent.end else { return Some(self.add(at, node, key, verb)) };
        let digit = K::digit(key, at.depth());
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
                Step::Keep => return Some(Attempt::Done(seen)), // LP(kept)
                Step::Put(ABSENT) => return Some(Attempt::Rebuild { boxed: true }),
                Step::Put(_) | Step::Take => {}
            }
        }
        let Some(_lock) = Locked::new(at) else { return Some(Attempt::Restart) };
        let state = match holds() {
            _ if planted(Canary::GuessTrusted) && guess == Some(false) => None,
            Some(false) => None,
            Some(true) | None => state(),
        };
        Some(match verb.step(state) {
            Step::Keep => Attempt::Done(state),
            Step::Put(value) => {
                value.store(place); // LP(inserted, replaced)
                if state.is_none() {
                    let noted = if planted(Canary::HeldForgotten) { None } else { digit };
                    node.came(noted);
                    self.len.add(1);
                }
                Attempt::Done(state)
            }
            Step::Take => {
                ABSENT.store(place); // LP(removed)
                node.went(digit);
                self.len.add(-1);
                Attempt::taken(at, state)
            }
        })
    }

    /// The same, if the key's digit had no place in the node.
    #[inline(always)]
    fn add(&self, at: Visit<'_>, node: AnySize<'_, u64>, key: K::Ref<'_>, verb: Update) -> Attempt {
        let value = match verb.step(None) {
            Step::Put(ABSENT) => return Attempt::Rebuild { boxed: true },
            Step::Put(value) => value,
            Step::Keep | Step::Take => return Attempt::Done(None), // LP(kept): the load of the keys
        };
        let Some(_lock) = Locked::new(at) else { return Attempt::Restart };
        let digit = K::digit(key, at.depth());
        if node.find(digit).is_some() && !planted(Canary::DigitAddedTwice) {
            return Attempt::Restart;
        }
        if !node.add(digit, value) {
            return Attempt::Rebuild { boxed: false };
        }
        self.len.add(1); // LP(inserted): before
        Attempt::Done(None)
    }

    /// The value of a key whose path ends so.
    fn state(end: End) -> Option<u64> {
        match end {
            End::Value(value) => Some(value),
            End::Leaf(word, at) => {
                // SAFETY: read under the guard.
                let leaf = unsafe { K::Leaf::from_word(word) };
                at.map(|at| leaf.value(at).load(Ordering::SeqCst))
            }
            End::Nothing | End::Parting(..) => None,
        }
    }

    /// Locks the node where a path has ended, looks again, and does what the verb wants. Gives what is not
    /// linked any more.
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
        // A node of values has come since the descent that `change` has seen.
        let NodeRef::Words(node) = at.node else { return Ok(Attempt::Restart) };
        let Some(_lock) = Locked::new(at) else { return Ok(Attempt::Restart) };
        let digit = K::digit(key, at.depth());
        let seen = match end {
            End::Leaf(word, _) | End::Parting(word, ..) => word,
            End::Nothing | End::Value(_) => Word::NONE,
        };
        if node.at(digit) != seen && !planted(Canary::SeenBeforeLocked) {
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

    /// Makes a key absent that is in a leaf below a node, under the node's lock. Gives the leaf if it is not linked any
    /// more. Needs no memory: where a smaller leaf cannot be had, the same one stays with a word that says what is gone.
    pub(super) fn take(
        &self,
        node: AnySize<'_, Word>,
        digit: Digit,
        (word, place): (Word, usize),
    ) -> Word {
        // SAFETY: read under the guard.
        let leaf = unsafe { K::Leaf::from_word(word) };
        let mut unlinked = word;
        if leaf.places().count() > 1 {
            let rest = Entries::<K>::of(leaf).without(leaf.key(place));
            let rest = self.alloc.leaf_at_hand(rest.as_slice()).unwrap_or_else(|| {
                unlinked = Word::NONE;
                K::Leaf::without(word, place)
            });
            node.replace(digit, rest); // LP(removed)
        } else {
            node.take(digit); // LP(removed)
        }
        self.len.add(-1);
        unlinked
    }

    /// Makes a key present below a node of words, under its lock.
    fn put(
        &self,
        at: Visit<'_>,
        node: AnySize<'_, Word>,
        end: End,
        (key, value): (K::Ref<'_>, u64),
        unlinked: &mut Word,
        guard: &Guard,
    ) -> Result<Attempt, AllocError> {
        let digit = K::digit(key, at.depth());
        match end {
            End::Leaf(word, place) => {
                // SAFETY: read under the guard.
                let leaf = unsafe { K::Leaf::from_word(word) };
                if let Some(place) = place {
                    let old = leaf.value(place).load(Ordering::SeqCst);
                    leaf.value(place).store(value, Ordering::SeqCst); // LP(replaced)
                    return Ok(Attempt::Done(Some(old)));
                }
                let entries = Entries::<K>::of(leaf).with(K::shorten(key), value);
                let new = if entries.as_slice().len() <= K::LEAF_KEYS {
                    self.alloc.leaf(entries.as_slice(), guard)?
                } else {
                    self.alloc.burst(&entries, guard)?
                };
                node.replace(digit, new); // LP(inserted)
                *unlinked = word;
            }
            End::Parting(word, depth, other) => {
                let leaf = self.spare((key, value), guard)?;
                let both = [(other, word), (K::digit(key, depth), leaf.word())];
                let place = Room::exact(K::before(key, depth), depth);
                node.replace(digit, self.alloc.words(&both, place, guard)?); // LP(inserted)
                leaf.linked();
            }
            End::Nothing | End::Value(_) => {
                let leaf = self.spare((key, value), guard)?;
                if !node.put(digit, leaf.word()) {
                    return Ok(Attempt::Rebuild { boxed: false });
                }
                leaf.linked();
            }
        }
        self.len.add(1);
        Ok(Attempt::Done(None))
    }

    /// A leaf of one entry.
    fn spare(
        &self,
        entry: (K::Ref<'_>, u64),
        guard: &Guard,
    ) -> Result<UnlinkedLeaf<'_, K, P>, AllocError> {
        Ok(UnlinkedLeaf::new(&self.alloc, self.alloc.leaf(&[entry], guard)?))
    }
}
