//! Nodes are replaced: by larger ones when they are full, by smaller ones when they have become
//! empty, and by copies elsewhere.

use super::alloc::{Children, Room, copied};
use super::hot::sampler::Sampler;
use super::key::Digit;
use super::leaf::Entries;
use super::lock::Locked;
use super::node::{AnySize, NodeRef, Visit};
use super::word::{Kind, Word};
use super::{Art, ArtKey};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::{AllocError, Placement};
use std::panic::AssertUnwindSafe;

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Replaces a node by a copy that has room for a key and more, or with `boxed` by one that
    /// leads to leaves instead of values. Does nothing if the two nodes have changed meanwhile.
    /// Without a parent, the node is the root.
    #[inline(never)]
    pub(super) fn rebuild(
        &self,
        parent: Option<Visit<'_>>,
        at: Visit<'_>,
        key: K::Ref<'_>,
        boxed: bool,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let make = |this: &Self| {
            let (prefix, depth) = (at.header().prefix, at.depth());
            let room = |len| Room::with_room(prefix, depth, len, K::digit(key, depth));
            Ok(Some(match at.node {
                NodeRef::Words(node) => {
                    copied(node, |all| this.alloc.node(all, room(all.len()), guard))?
                }
                NodeRef::Values(_) if boxed && at.header().live() <= K::LEAF_KEYS => {
                    // If the node is empty, the writer that has emptied it removes it, and then
                    // looks at the node above.
                    let leaf = this.few(at, guard)?;
                    return Ok((!leaf.is_none()).then_some(leaf));
                }
                NodeRef::Values(node) if boxed => {
                    let mut children = Children::<K, P, S, 256>::new(&this.alloc);
                    for (digit, value) in node.all() {
                        let byte = digit.expect("no value is at an end");
                        let entry = [(K::direct(prefix, byte), value)];
                        children.add(digit, this.alloc.leaf(&entry, guard)?);
                    }
                    children.node(Room::exact(prefix, depth), guard)?
                }
                NodeRef::Values(node) => {
                    copied(node, |all| this.alloc.node(all, room(all.len()), guard))?
                }
            }))
        };
        match parent {
            Some(parent) => self.replaced(parent, at, key, guard, make),
            None => self.replaced_root(at, guard, make),
        }
    }

    /// Makes the nodes on a key's path as small as their contents allow, from `depth` upwards, as
    /// far as they have become smaller and memory can be allocated.
    ///
    /// A writer that has emptied a place of a node and sees that the node is too large calls this.
    /// It ends when the node that is there by then, perhaps another thread's copy, has enough in
    /// it: the writer that empties more places calls this again.
    ///
    /// The removal is done by now. So a panic of an allocator is treated like a failed allocation:
    /// unwinding would tell the caller that nothing had happened.
    #[cold]
    pub(super) fn tidy(&self, key: K::Ref<'_>, depth: usize, guard: &Guard) {
        let shrink = AssertUnwindSafe(|| self.shrink_path(key, depth, guard));
        // Locks are unlocked when they are dropped, and no node is linked before it is complete.
        drop(std::panic::catch_unwind(shrink));
    }

    fn shrink_path(&self, key: K::Ref<'_>, mut depth: usize, guard: &Guard) {
        while depth > 0 {
            let Some((parent, at)) = self.node_at(key, depth) else { return };
            if !is_large(at, at.header().live()) {
                return;
            }
            match self.replaced(parent, at, key, guard, |this| this.smaller(at, guard)) {
                Ok(done) if done || gives_up() => depth = parent.depth(),
                Ok(_) => {} // another writer has changed one of the nodes
                Err(_) => return,
            }
        }
    }

    /// The node at a depth on a key's path, and the one above it. Never the root.
    fn node_at(&self, key: K::Ref<'_>, depth: usize) -> Option<(Visit<'_>, Visit<'_>)> {
        let mut at = self.root()?;
        loop {
            let NodeRef::Words(node) = at.node else { return None };
            let word = node.at(K::digit(key, at.depth()));
            if word.is_none() || word.kind() == Kind::Leaf || word.depth() > depth {
                return None;
            }
            // SAFETY: I7: the word's kind is a node's. I8: it was read under the caller's guard.
            let child = unsafe { Visit::of(word) };
            if child.depth() == depth {
                return Some((at, child));
            }
            at = child;
        }
    }

    /// The replacement of a locked node that is too large. Nothing if it is not.
    fn smaller(&self, at: Visit<'_>, guard: &Guard) -> Result<Option<Word>, AllocError> {
        let live = at.header().live();
        if !is_large(at, live) {
            return Ok(None);
        }
        let room = Room::exact(at.header().prefix, at.depth());
        match at.node {
            NodeRef::Values(node) => {
                if live > K::LEAF_KEYS {
                    return copied(node, |all| self.alloc.node(all, room, guard)).map(Some);
                }
                self.few(at, guard).map(Some)
            }
            NodeRef::Words(_) if live == 0 => Ok(Some(Word::NONE)),
            NodeRef::Words(node) => {
                let only = node.all().next().filter(|_| live == 1);
                if let Some((_, child)) = only {
                    return Ok(Some(child));
                }
                copied(node, |all| self.alloc.node(all, room, guard)).map(Some)
            }
        }
    }

    /// A leaf with the entries of a locked node of values, which must not be more than a leaf
    /// takes. Returns no leaf if there are none.
    fn few(&self, at: Visit<'_>, guard: &Guard) -> Result<Word, AllocError> {
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

    /// Locks a node on a key's path and its parent, and replaces the node by the one that `make`
    /// returns. Does nothing if the two have changed or `make` returns nothing. Returns whether it
    /// has replaced the node.
    fn replaced(
        &self,
        parent: Visit<'_>,
        at: Visit<'_>,
        key: K::Ref<'_>,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        self.replaced_at(parent, K::digit(key, parent.depth()), at, guard, make)
    }

    /// Replaces a node as [`Art::replaced`] does, at this digit of its parent.
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
        if leads_elsewhere(above, digit, at) {
            return Ok(false);
        }
        let Some((inner, word)) = self.lock_and_make(at, make)? else { return Ok(false) };
        if word.is_none() {
            above.take(digit);
        } else {
            above.replace(digit, word);
        }
        inner.obsolete();
        drop(outer);
        // SAFETY: this thread has unlinked the node above, under both locks (I3), so nobody else
        // retires it. The guard is of the tree's domain.
        unsafe { self.alloc.retire(at.word, guard) };
        Ok(true)
    }

    /// Locks a node, and then makes its replacement. Returns nothing if the node is obsolete or
    /// `make` returns nothing.
    pub(super) fn lock_and_make<'g>(
        &self,
        at: Visit<'g>,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<Option<(Locked<'g>, Word)>, AllocError> {
        if copies_early() {
            let word = make(self)?;
            return Ok(Locked::new(at).zip(word));
        }
        let Some(lock) = Locked::new(at) else { return Ok(None) };
        Ok(make(self)?.map(|word| (lock, word)))
    }

    /// Locks the node that leads to a leaf at a digit, and replaces the leaf by the one that `make`
    /// returns. Does nothing if the leaf is not there any more or `make` returns nothing. Returns
    /// whether it has replaced the leaf.
    pub(super) fn replaced_leaf(
        &self,
        parent: Visit<'_>,
        digit: Digit,
        leaf: Word,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        let NodeRef::Words(above) = parent.node else { unreachable!("values have no children") };
        if copies_leaf_early() {
            return self.replaced_leaf_early(parent, digit, leaf, guard, make);
        }
        let Some(lock) = Locked::new(parent) else { return Ok(false) };
        if has_moved(above, digit, leaf) {
            return Ok(false);
        }
        let Some(copy) = make(self)? else { return Ok(false) };
        above.replace(digit, copy);
        drop(lock);
        // SAFETY: this thread has unlinked the leaf above, under the lock (I3). The guard is of the
        // tree's domain.
        unsafe { self.retire_leaf(leaf, guard) };
        Ok(true)
    }

    /// The planted mistake [`Canary::LeafCopiedBeforeLocked`]: it copies the leaf without the lock.
    #[cold]
    fn replaced_leaf_early(
        &self,
        parent: Visit<'_>,
        digit: Digit,
        leaf: Word,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        let NodeRef::Words(above) = parent.node else { unreachable!("values have no children") };
        let Some(copy) = make(self)? else { return Ok(false) };
        let lock = Locked::new(parent);
        if lock.is_none() || above.at(digit) != leaf {
            // SAFETY: the copy has not been linked, so nobody else has it (I8).
            unsafe { self.alloc.free(copy) };
            return Ok(false);
        }
        above.replace(digit, copy);
        drop(lock);
        // SAFETY: this thread has unlinked the leaf above, under the lock (I3). The guard is of the
        // tree's domain.
        unsafe { self.retire_leaf(leaf, guard) };
        Ok(true)
    }

    /// Retires a leaf that was moved.
    ///
    /// # Safety
    /// The caller has unlinked the leaf, and nobody retires it again. The guard is of the tree's
    /// domain.
    unsafe fn retire_leaf(&self, leaf: Word, guard: &Guard) {
        // SAFETY: our contract is that of `retire`. To free the leaf here is the planted mistake.
        unsafe {
            if frees_at_once() {
                self.alloc.free(leaf);
            } else {
                self.alloc.retire(leaf, guard);
            }
        }
    }
}

/// Whether a node with this many live places should be a smaller one. The limits lie some places
/// below those at which the smaller node would grow again.
pub(super) fn is_large(at: Visit<'_>, live: usize) -> bool {
    let least = match at.word.kind() {
        Kind::Leaf | Kind::Node4 => 2,
        Kind::Node14 | Kind::Values14 => 4,
        Kind::Node56 | Kind::Values56 => 11,
        Kind::Node256 | Kind::Values256 => 41,
    };
    live < least
}

/// Whether a locked node leads to another node than `at` at a digit.
#[inline(always)]
fn leads_elsewhere(above: AnySize<'_, Word>, digit: Digit, at: Visit<'_>) -> bool {
    above.at(digit) != at.word && !planted(Canary::ParentWordTrusted)
}

/// Whether a locked node does not lead to `leaf` any more.
#[inline(always)]
fn has_moved(above: AnySize<'_, Word>, digit: Digit, leaf: Word) -> bool {
    above.at(digit) != leaf && !planted(Canary::MovedLeafTrusted)
}

/// Whether a node is copied before it is locked: never, but for a planted mistake.
#[inline(always)]
fn copies_early() -> bool {
    planted(Canary::CopiedBeforeLocked)
}

/// Whether a leaf is copied before its parent is locked: never, but for a planted mistake.
#[inline(always)]
fn copies_leaf_early() -> bool {
    planted(Canary::LeafCopiedBeforeLocked)
}

/// Whether a leaf that was moved is freed while readers may have it: never, but for a planted
/// mistake.
#[inline(always)]
fn frees_at_once() -> bool {
    planted(Canary::MovedLeafFreedAtOnce)
}

/// Whether a node that another writer has changed is left as large as it is: never, but for a
/// planted mistake.
#[inline(always)]
fn gives_up() -> bool {
    planted(Canary::ShrinkForgotten)
}
