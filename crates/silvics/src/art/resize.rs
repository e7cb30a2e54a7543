//! Nodes become as small as what is in them.

use super::ArtKey;
use super::ArtTree;
use super::alloc::{Children, Room, copied};
use super::key::Digit;
use super::leaf::Entries;
use super::lock::Locked;
use super::node::{NodeRef, Visit};
use super::word::{Kind, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::{AllocError, Placement};
use std::panic::AssertUnwindSafe;

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Replaces a node by a copy that has room for a key and more, or by one that leads to leaves instead of
    /// values. Nothing, if somebody has changed the two nodes.
    #[inline(never)]
    pub(super) fn rebuild(
        &self,
        parent: Visit<'_>,
        at: Visit<'_>,
        key: K::Ref<'_>,
        boxed: bool,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        self.replaced(parent, at, key, guard, |this| {
            let (prefix, depth) = (at.header().prefix, at.depth());
            let room = |len| Room::with_room(prefix, depth, len, K::digit(key, depth));
            Ok(Some(match at.node {
                NodeRef::Words(node) => {
                    copied(node, |all| this.alloc.words(all, room(all.len()), guard))?
                }
                NodeRef::Values(_) if boxed && at.header().live() <= K::LEAF_KEYS => {
                    // If it is empty, who has emptied it takes it away, and looks at the node above then.
                    let leaf = this.few(at, guard)?;
                    return Ok((!leaf.is_none()).then_some(leaf));
                }
                NodeRef::Values(node) if boxed => {
                    let mut children = Children::<K, P, 256>::new(&this.alloc);
                    for (digit, value) in node.all() {
                        let byte = digit.expect("no value is at an end");
                        let entry = [(K::direct(prefix, byte), value)];
                        children.add(digit, this.alloc.leaf(&entry, guard)?);
                    }
                    children.node(Room::exact(prefix, depth), guard)?
                }
                NodeRef::Values(node) => {
                    copied(node, |all| this.alloc.values(all, room(all.len()), guard))?
                }
            }))
        })
    }

    /// Locks a node and its parent and puts what `make` makes in the node's place, unless `make` has nothing
    /// or the two are not as they were; whether it has.
    pub(super) fn replaced(
        &self,
        parent: Visit<'_>,
        at: Visit<'_>,
        key: K::Ref<'_>,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        self.replaced_at(parent, K::digit(key, parent.depth()), at, guard, make)
    }

    /// The same of the node at a digit.
    pub(super) fn replaced_at(
        &self,
        parent: Visit<'_>,
        digit: Digit,
        at: Visit<'_>,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        let NodeRef::Words(above) = parent.node else { unreachable!("values have no children") };
        let Some(outer) = Locked::new(parent) else { return Ok(false) };
        if above.at(digit) != at.word && !planted(Canary::ParentWordTrusted) {
            return Ok(false);
        }
        let (word, inner) = if planted(Canary::CopiedBeforeLocked) {
            let word = make(self)?;
            (word, Locked::new(at))
        } else {
            let Some(inner) = Locked::new(at) else { return Ok(false) };
            (make(self)?, Some(inner))
        };
        let (Some(word), Some(inner)) = (word, inner) else { return Ok(false) };
        if word.is_none() {
            above.take(digit);
        } else {
            above.replace(digit, word);
        }
        inner.obsolete();
        drop(outer);
        // SAFETY: unlinked above, by us alone.
        unsafe { self.alloc.retire(at.word, guard) };
        Ok(true)
    }

    /// Locks the node that leads to a leaf at a digit and puts what `make` makes in the leaf's place, unless `make` has
    /// nothing or the leaf is not there any more; whether it has.
    pub(super) fn replaced_leaf(
        &self,
        parent: Visit<'_>,
        digit: Digit,
        leaf: Word,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        let NodeRef::Words(above) = parent.node else { unreachable!("values have no children") };
        let early = planted(Canary::LeafCopiedBeforeLocked);
        let (copy, lock) = if early {
            (make(self)?, Locked::new(parent))
        } else {
            let Some(lock) = Locked::new(parent) else { return Ok(false) };
            if above.at(digit) != leaf && !planted(Canary::MovedLeafTrusted) {
                return Ok(false);
            }
            (make(self)?, Some(lock))
        };
        let Some(copy) = copy else { return Ok(false) };
        if early && (lock.is_none() || above.at(digit) != leaf) {
            // SAFETY: it has not been linked.
            unsafe { self.alloc.free(copy) };
            return Ok(false);
        }
        above.replace(digit, copy);
        drop(lock);
        // SAFETY: unlinked above, by us alone.
        unsafe {
            if planted(Canary::MovedLeafFreedAtOnce) {
                self.alloc.free(leaf);
            } else {
                self.alloc.retire(leaf, guard);
            }
        }
        Ok(true)
    }

    /// Makes the nodes on a key's path as small as what is in them, from that depth upwards, as far as
    /// they have become smaller; as far as there is memory for it.
    ///
    /// Whoever has taken something from a node, and seen it large, calls this. It ends when it sees enough in the node that is
    /// there by then, which may be another one's copy: then whoever takes more calls it later.
    /// What was taken is taken, so that an allocator that panics is as one that has nothing: who unwound
    /// would say that nothing had happened.
    #[cold]
    pub(super) fn tidy(&self, key: K::Ref<'_>, depth: usize, guard: &Guard) {
        let shrink = AssertUnwindSafe(|| self.shrink(key, depth, guard));
        // Locks are given back by who holds them, and no node is linked before it is whole.
        drop(std::panic::catch_unwind(shrink));
    }

    fn shrink(&self, key: K::Ref<'_>, mut depth: usize, guard: &Guard) {
        while depth > 0 {
            let Some((parent, at)) = self.node_at(key, depth) else { return };
            if !is_large(at, at.header().live()) {
                return;
            }
            match self.replaced(parent, at, key, guard, |this| this.smaller(at, guard)) {
                Ok(done) if done || planted(Canary::ShrinkForgotten) => depth = parent.depth(),
                Ok(_) => {} // somebody was in the way
                Err(_) => return,
            }
        }
    }

    /// The node at a depth, other than the root's, on a key's path, and the one above it.
    fn node_at(&self, key: K::Ref<'_>, depth: usize) -> Option<(Visit<'_>, Visit<'_>)> {
        let mut at = self.root();
        loop {
            let NodeRef::Words(node) = at.node else { return None };
            let word = node.at(K::digit(key, at.depth()));
            if word.is_none() || word.kind() == Kind::Leaf || word.depth() > depth {
                return None;
            }
            // SAFETY: read under the guard.
            let child = unsafe { Visit::of(word) };
            if child.depth() == depth {
                return Some((at, child));
            }
            at = child;
        }
    }

    /// What a node can be replaced by, under its lock; nothing, if it is as it should be.
    fn smaller(&self, at: Visit<'_>, guard: &Guard) -> Result<Option<Word>, AllocError> {
        let live = at.header().live();
        if !is_large(at, live) {
            return Ok(None);
        }
        let place = Room::exact(at.header().prefix, at.depth());
        match at.node {
            NodeRef::Values(node) => {
                if live > K::LEAF_KEYS {
                    return copied(node, |all| self.alloc.values(all, place, guard)).map(Some);
                }
                self.few(at, guard).map(Some)
            }
            NodeRef::Words(_) if live == 0 => Ok(Some(Word::NONE)),
            NodeRef::Words(node) => {
                let only = node.all().next().filter(|_| live == 1);
                if let Some((_, child)) = only {
                    return Ok(Some(child));
                }
                copied(node, |all| self.alloc.words(all, place, guard)).map(Some)
            }
        }
    }

    /// The leaf that a node of values can be replaced by, which are no more than a leaf takes; none, if it
    /// has none. Under the node's lock.
    pub(super) fn few(&self, at: Visit<'_>, guard: &Guard) -> Result<Word, AllocError> {
        let NodeRef::Values(node) = at.node else { unreachable!("a node of values") };
        let mut entries: Option<Entries<'_, K>> = None;
        for (digit, value) in node.all() {
            let byte = digit.expect("no value is at an end");
            let key = K::shorten(K::direct(at.header().prefix, byte));
            match &mut entries {
                Some(entries) => entries.push(key, value),
                None => entries = Some(Entries::one(key, value)),
            }
        }
        entries.map_or(Ok(Word::NONE), |entries| self.alloc.leaf(entries.as_slice(), guard))
    }
}

/// Whether a node with so many places that are not empty should be a smaller one: some places before one
/// would grow again.
pub(super) fn is_large(at: Visit<'_>, live: usize) -> bool {
    let least = match at.word.kind() {
        Kind::Leaf | Kind::Node4 => 2,
        Kind::Node14 | Kind::Values14 => 4,
        Kind::Node56 | Kind::Values56 => 11,
        Kind::Node256 | Kind::Values256 => 41,
    };
    live < least
}
