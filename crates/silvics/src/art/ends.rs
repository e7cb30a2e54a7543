//! The first and the last entry.
//!
//! A reader notes the version of every node on its way to an end, before it looks into the node.
//! When it has the entry, it validates all versions. So between its last look and its first
//! validation no entry came before the one found.
//!
//! A removal holds the locks of all these nodes. If one of them were unlocked, another thread could
//! insert a smaller key there, finish, and see that the entry is still present.
//!
//! Checked by histories of threads (`ends` of the testkit's suite) and by schedules (`ENDS` of
//! `tests/scenarios/radix.rs`), each judged as one object.

use super::hot::sampler::Sampler;
use super::key::Digit;
use super::leaf::{LeafKey, LeafOf};
use super::node::NodeRef;
use super::node::Visit;
use super::resize::is_large;
use super::stack::{Frame, Occupant};
use super::word::{Kind, Word};
use super::{Art, ArtKey};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::Update;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering;
use silvics_sync::backoff::Backoff;
use silvics_sync::version::{Version, VersionLock};

/// The number of nodes whose versions a reader notes. The path of any `u128` has no more. It is
/// small in schedules, so that readers take the locks there.
const NOTED: usize = if cfg!(silvics_shuttle) { 2 } else { 16 };
/// The number of times that a reader looks before it takes the locks.
const LOOKS: usize = 64;

/// An entry, and its position in its node.
struct Entry<'g, K: LeafKey + ?Sized> {
    key: K::Ref<'g>,
    value: u64,
    digit: Digit,
    /// The leaf that has it, and the place there, if it is in one.
    leaf: Option<(Word, usize)>,
}

impl<'g, K: LeafKey + ?Sized> Entry<'g, K> {
    fn pair(self) -> (K::Ref<'g>, u64) {
        (self.key, self.value)
    }
}

/// The reason why a look at an end failed.
enum Missed {
    /// A node on the way is locked, or has changed meanwhile.
    Changed,
    /// More nodes are on the way than can be noted.
    Deep,
}

/// The first thing in a node.
enum Front<'g, K: LeafKey + ?Sized> {
    Nothing,
    Node(Visit<'g>),
    Entry(Entry<'g, K>),
}

/// The first thing in a node, or with `REV` the last.
///
/// The caller holds a guard of the tree's domain, under which it came to the node.
fn front<K: LeafKey + ?Sized, const REV: bool>(at: Visit<'_>) -> Front<'_, K> {
    match Frame::whole::<REV>(at).next::<REV>() {
        None => Front::Nothing,
        Some((digit, Occupant::Value(value))) => {
            let byte = digit.expect("no value is at an end");
            let key = K::shorten(K::direct(at.header().prefix, byte));
            Front::Entry(Entry { key, value, digit, leaf: None })
        }
        Some((digit, Occupant::Word(word))) if word.kind() == Kind::Leaf => {
            // SAFETY: I7: the word leads to a leaf. I8: it was read under the caller's guard.
            let leaf = unsafe { K::Leaf::from_word(word) };
            let mut places = leaf.places();
            let place = if REV { places.next_back() } else { places.next() };
            let place = place.expect("a leaf has an entry");
            let value = leaf.value(place).load(Ordering::SeqCst);
            Front::Entry(Entry { key: leaf.key(place), value, digit, leaf: Some((word, place)) })
        }
        // SAFETY: I7: the word's kind is a node's. I8: it was read under the caller's guard.
        Some((_, Occupant::Word(word))) => Front::Node(unsafe { Visit::of(word) }),
    }
}

/// The locks of all nodes from the root to the one that has the first entry. If the tree is empty,
/// it is the root's alone. To unlock them needs no memory: while they are held, the way does not
/// change.
struct LockedPath<'g, K: LeafKey + ?Sized, const REV: bool> {
    root: Visit<'g>,
    last: Visit<'g>,
    keys: std::marker::PhantomData<fn() -> Box<K>>,
}

impl<K: LeafKey + ?Sized, const REV: bool> Drop for LockedPath<'_, K, REV> {
    fn drop(&mut self) {
        let mut at = self.root;
        loop {
            let child = match front::<K, REV>(at) {
                Front::Node(child) if at.word != self.last.word => Some(child),
                _ => None,
            };
            // SAFETY: `lock_path` has locked the nodes from the root to the last, and while they
            // are locked the way leads to the same nodes (I3). Each is unlocked once.
            unsafe { at.header().lock.unlock() };
            let Some(child) = child else { return };
            at = child;
        }
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// The first entry, or with `REV` the last. This waits for writers on the way.
    pub(super) fn end<'g, const REV: bool>(
        &'g self,
        _guard: &'g Guard,
    ) -> Option<(K::Ref<'g>, u64)> {
        let mut backoff = Backoff::new();
        for _ in 0..LOOKS {
            match self.look::<REV>() {
                Ok(entry) => return entry.map(Entry::pair), // LP(first, last): see `look`
                Err(Missed::Changed) => backoff.wait(),
                Err(Missed::Deep) => break,
            }
        }
        let held = self.lock_path::<REV>()?;
        match front::<K, REV>(held.last) {
            Front::Entry(entry) => Some(entry.pair()), // LP(first, last): under the locks
            Front::Nothing | Front::Node(_) => None,
        }
    }

    /// The first entry, or with `REV` the last, if no node on the way changes meanwhile and the
    /// nodes are not too many.
    fn look<const REV: bool>(&self) -> Result<Option<Entry<'_, K>>, Missed> {
        let mut noted: [Option<(&VersionLock, Version)>; NOTED] = [None; NOTED];
        // LP(first, last), without a root: the load of its word.
        let Some(mut at) = self.root() else { return Ok(None) };
        let mut entry = None;
        for note in &mut noted {
            let lock = &at.header().lock;
            *note = Some((lock, lock.read().map_err(|_| Missed::Changed)?));
            match front::<K, REV>(at) {
                Front::Node(child) => {
                    at = child;
                    continue;
                }
                Front::Entry(found) => entry = Some(found),
                // The node is about to be removed.
                Front::Nothing if at.depth() > 0 => return Err(Missed::Changed),
                Front::Nothing => {}
            }
            // LP: before the first of these loads.
            let valid = |(lock, version): (&VersionLock, Version)| lock.validate(version);
            let unchanged = noted.into_iter().flatten().all(valid);
            return if unchanged || trusts_look() { Ok(entry) } else { Err(Missed::Changed) };
        }
        Err(Missed::Deep)
    }

    /// Locks the nodes on the way to the first entry, or with `REV` to the last. Returns nothing if
    /// there is no root.
    fn lock_path<const REV: bool>(&self) -> Option<LockedPath<'_, K, REV>> {
        let mut backoff = Backoff::new();
        loop {
            let root = self.root()?;
            if root.header().lock.lock().is_err() {
                continue; // another root is there
            }
            let keys = std::marker::PhantomData;
            let mut held = LockedPath { root, last: root, keys };
            loop {
                match front::<K, REV>(held.last) {
                    Front::Node(child) => {
                        let lock = &child.header().lock;
                        lock.lock().expect("a node stays while the one above it is locked");
                        if unlocks_path() {
                            // SAFETY: it was locked here, and the path now begins at the child.
                            unsafe { held.last.header().lock.unlock() };
                            held.root = child;
                        }
                        held.last = child;
                    }
                    Front::Nothing if held.last.depth() > 0 => break,
                    Front::Nothing | Front::Entry(_) => return Some(held),
                }
            }
            drop(held);
            backoff.wait(); // a node is about to be removed
        }
    }

    /// Removes the first entry, or with `REV` the last.
    pub(super) fn pop<'g, const REV: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Option<(K::Ref<'g>, u64)> {
        if pops_in_two_steps() {
            let (key, value) = self.end::<REV>(guard)?;
            let _ = self.update(K::shorten(key), Update::Remove, guard);
            return Some((key, value));
        }
        let held = self.lock_path::<REV>()?;
        let at = held.last;
        let Front::Entry(entry) = front::<K, REV>(at) else { return None }; // LP: under the locks
        let unlinked = match (at.node, entry.leaf) {
            (NodeRef::Values(node), _) => {
                node.take(entry.digit); // LP(popped)
                self.alloc.frame().len.add(-1);
                Word::NONE
            }
            (NodeRef::Words(node), Some(place)) => self.take(node, entry.digit, place),
            (NodeRef::Words(_), None) => unreachable!("entries below words are in leaves"),
        };
        let large = is_large(at, at.header().live());
        drop(held);
        if !unlinked.is_none() {
            // SAFETY: `take` has unlinked the leaf under the lock, so nobody else retires it (I3).
            // The guard is of the tree's domain.
            unsafe { self.alloc.retire(unlinked, guard) };
        }
        if large {
            self.tidy(K::shorten(entry.key), at.depth(), guard);
        }
        Some(entry.pair())
    }
}

/// Whether a look counts although a node on the way has changed: never, but for a planted mistake.
#[inline(always)]
fn trusts_look() -> bool {
    planted(Canary::EndNotValidated)
}

/// Whether a removal locks one node of the way at a time: never, but for a planted mistake.
#[inline(always)]
fn unlocks_path() -> bool {
    planted(Canary::PopPathUnlocked)
}

/// Whether a removal looks for its entry first, and then removes the key: never, but for a planted
/// mistake.
#[inline(always)]
fn pops_in_two_steps() -> bool {
    planted(Canary::PopInTwoSteps)
}
