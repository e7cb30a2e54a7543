//! The first and the last entry.
//!
//! A reader notes the version of every node on its way to an end, before it looks into it, and validates
//! them all when it has the entry: between the last look and the first validation nothing was before it. A
//! removal holds the locks of all these nodes: as long as one of them is free, somebody could put a smaller
//! key there, finish, and see that the entry is still present.
//!
//! Checked by histories of threads (`ends` of the testkit's suite) and by schedules (`ENDS` of `tests/scenarios/radix.rs`),
//! each judged as one object.

use super::ArtKey;
use super::ArtTree;
use super::key::Digit;
use super::leaf::{LeafKey, LeafOf};
use super::node::NodeRef;
use super::node::Visit;
use super::resize::is_large;
use super::stack::{Frame, Occupant};
use super::word::{Kind, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering;
use silvics_sync::backoff::Backoff;
use silvics_sync::version::{Version, VersionLock};

/// Nodes on the way to an end whose versions a reader notes; as many are on the path of any `u128`. Few in
/// schedules, so that locks are taken there.
const NOTED: usize = if cfg!(silvics_shuttle) { 2 } else { 16 };
/// How often a reader looks before it takes the locks.
const LOOKS: usize = 64;

/// An entry, and where it is in the node that has it.
struct Entry<'g, K: LeafKey + ?Sized> {
    key: K::Ref<'g>,
    value: u64,
    digit: Digit,
    /// The leaf, and the place there, if it is in one.
    leaf: Option<(Word, usize)>,
}

impl<'g, K: LeafKey + ?Sized> Entry<'g, K> {
    fn pair(self) -> (K::Ref<'g>, u64) {
        (self.key, self.value)
    }
}

/// Why a look at an end is none.
enum Missed {
    /// Something on the way is being written, or has been meanwhile.
    Changed,
    /// The way goes through more nodes than can be noted.
    Deep,
}

/// What is first in a node.
enum Front<'g, K: LeafKey + ?Sized> {
    Nothing,
    Node(Visit<'g>),
    Entry(Entry<'g, K>),
}

/// What is first in a node, or with `REV` last.
fn front<K: LeafKey + ?Sized, const REV: bool>(at: Visit<'_>) -> Front<'_, K> {
    match Frame::whole::<REV>(at).next::<REV>() {
        None => Front::Nothing,
        Some((digit, Occupant::Value(value))) => {
            let byte = digit.expect("no value is at an end");
            let key = K::shorten(K::direct(at.header().prefix, byte));
            Front::Entry(Entry { key, value, digit, leaf: None })
        }
        Some((digit, Occupant::Word(word))) if word.kind() == Kind::Leaf => {
            // SAFETY: read under the guard.
            let leaf = unsafe { K::Leaf::from_word(word) };
            let mut places = leaf.places();
            let place = if REV { places.next_back() } else { places.next() };
            let place = place.expect("a leaf has an entry");
            let value = leaf.value(place).load(Ordering::SeqCst);
            Front::Entry(Entry { key: leaf.key(place), value, digit, leaf: Some((word, place)) })
        }
        // SAFETY: read under the guard.
        Some((_, Occupant::Word(word))) => Front::Node(unsafe { Visit::of(word) }),
    }
}

/// The locks of all nodes from the root to the one that has the first entry, or if the tree is empty the
/// root's. No memory is needed to give them back: as long as they are held the way is what it was.
struct Held<'g, K: LeafKey + ?Sized, const REV: bool> {
    root: Visit<'g>,
    last: Visit<'g>,
    keys: std::marker::PhantomData<fn() -> Box<K>>,
}

impl<K: LeafKey + ?Sized, const REV: bool> Drop for Held<'_, K, REV> {
    fn drop(&mut self) {
        let mut at = self.root;
        loop {
            let child = match front::<K, REV>(at) {
                Front::Node(child) if at.word != self.last.word => Some(child),
                _ => None,
            };
            // SAFETY: locked in `hold`, as all down to the last are.
            unsafe { at.header().lock.unlock() };
            let Some(child) = child else { return };
            at = child;
        }
    }
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// The first entry, or with `REV` the last. Waits for writers on the way to it.
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
        let held = self.hold::<REV>();
        match front::<K, REV>(held.last) {
            Front::Entry(entry) => Some(entry.pair()), // LP(first, last): under the locks
            Front::Nothing | Front::Node(_) => None,
        }
    }

    /// The same, if no node on the way is written meanwhile, and they are not too many.
    fn look<const REV: bool>(&self) -> Result<Option<Entry<'_, K>>, Missed> {
        let mut noted: [Option<(&VersionLock, Version)>; NOTED] = [None; NOTED];
        let mut at = self.root();
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
                // A node that is about to be taken away.
                Front::Nothing if at.depth() > 0 => return Err(Missed::Changed),
                Front::Nothing => {}
            }
            // LP: before the first of these loads.
            let valid = |(lock, version): (&VersionLock, Version)| lock.validate(version);
            let all = noted.into_iter().flatten().all(valid);
            return if all || planted(Canary::EndNotValidated) {
                Ok(entry)
            } else {
                Err(Missed::Changed)
            };
        }
        Err(Missed::Deep)
    }

    /// Locks the way to the first entry.
    fn hold<const REV: bool>(&self) -> Held<'_, K, REV> {
        let mut backoff = Backoff::new();
        loop {
            let root = self.root();
            root.header().lock.lock().expect("the root stays");
            let keys = std::marker::PhantomData;
            let mut held = Held { root, last: root, keys };
            loop {
                match front::<K, REV>(held.last) {
                    Front::Node(child) => {
                        let lock = &child.header().lock;
                        lock.lock().expect("a node stays while the one above it is locked");
                        held.last = child;
                    }
                    Front::Nothing if held.last.depth() > 0 => break,
                    Front::Nothing | Front::Entry(_) => return held,
                }
            }
            drop(held);
            backoff.wait(); // a node is about to be taken away
        }
    }

    /// Removes the first entry, or with `REV` the last.
    pub(super) fn pop<'g, const REV: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Option<(K::Ref<'g>, u64)> {
        let held = self.hold::<REV>();
        let at = held.last;
        let Front::Entry(entry) = front::<K, REV>(at) else { return None }; // LP: under the locks
        let unlinked = match (at.node, entry.leaf) {
            (NodeRef::Values(node), _) => {
                node.take(entry.digit); // LP(popped)
                self.len.add(-1);
                Word::NONE
            }
            (NodeRef::Words(node), Some(place)) => self.take(node, entry.digit, place),
            (NodeRef::Words(_), None) => unreachable!("entries below words are in leaves"),
        };
        let large = is_large(at, at.header().live());
        drop(held);
        if !unlinked.is_none() {
            // SAFETY: unlinked above, under the lock.
            unsafe { self.alloc.retire(unlinked, guard) };
        }
        if large {
            self.tidy(K::shorten(entry.key), at.depth(), guard);
        }
        Some(entry.pair())
    }
}
