//! The word that leads to the root, and how the root grows.
//!
//! The first entry makes a `Node4`. Like any node, it is replaced when it has no place for another
//! digit. When the tree, or all indexes of its budget, hold [`FULL_FROM`] bytes, the next writer
//! that replaces a node or restarts puts a `Node256` there. Then lookups in large trees begin
//! without a search and without a look at the root's kind.

use super::alloc::copied;
use super::hot::sampler::Sampler;
use super::node::Node256;
use super::node::{NodeRef, Visit};
use super::word::{Content, Kind, Word};
use super::{Art, ArtKey};
use crate::domain::Guard;
use silvics_pool::{AllocError, Placement};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicPtr, Ordering};
use std::ptr::null_mut;

/// The bytes that a tree holds from which on its root has a place for each byte. Under a model
/// checker every root that grows gets one.
pub(super) const FULL_FROM: usize = if cfg!(silvics_shuttle) { 0 } else { 64 << 10 };

/// The way to the root.
pub(super) struct Root {
    /// The root, if it is a `Node256`: a copy of `word`, or null while that is another node (I9).
    full: AtomicPtr<Node256<Word>>,
    /// The word that leads to the root.
    word: <Word as Content>::Atomic,
    /// Held while `word` changes. A writer that locks a node, too, locks it after this.
    growing: Mutex<()>,
}

impl Default for Root {
    fn default() -> Self {
        let full = AtomicPtr::new(null_mut());
        Self { full, word: Word::NONE.place(), growing: Mutex::default() }
    }
}

impl Root {
    /// The word that leads to the root, or none in a tree that never had an entry.
    #[inline(always)]
    pub(super) fn word(&self) -> Word {
        Word::load(&self.word)
    }

    /// The root, if it is a `Node256` and stays.
    #[inline(always)]
    pub(super) fn full(&self) -> Option<&Node256<Word>> {
        // SAFETY: I9: a node that is here is linked as long as the tree lives, so it is not
        // reclaimed (I8).
        unsafe { self.full.load(Ordering::SeqCst).as_ref() }
    }

    /// Stores a new root. The caller holds `growing`, and access is exclusive if the old root is a
    /// `Node256`.
    fn store(&self, word: Word) {
        let full = if word.kind() == Kind::Node256 { word.object() } else { null_mut() };
        word.store(&self.word);
        self.full.store(full.cast(), Ordering::SeqCst);
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Makes an empty root, unless there is one.
    #[cold]
    pub(super) fn plant(&self, guard: &Guard) -> Result<(), AllocError> {
        let _growing = self.root.growing.lock();
        if self.root.word().is_none() {
            self.root.store(self.alloc.root(guard)?);
        }
        Ok(())
    }

    /// Links the root of a tree that has no entries, to which access is exclusive.
    pub(super) fn hang(&mut self, root: Word, guard: &Guard) {
        let _growing = self.root.growing.lock();
        let old = self.root.word();
        self.root.store(root);
        if !old.is_none() {
            // SAFETY: the store above has unlinked the node, and access is exclusive. The guard is
            // of the tree's domain.
            unsafe { self.alloc.retire(old, guard) };
        }
    }

    /// Replaces the root by the node that `make` returns. Does nothing if it has been replaced
    /// meanwhile, if it is a `Node256`, which stays (I9), or if `make` returns nothing. Returns
    /// whether it has replaced the root.
    ///
    /// Another thread may have put the `Node256` there since the caller found another root to be
    /// too small.
    pub(super) fn replaced_root(
        &self,
        at: Visit<'_>,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        let growing = self.root.growing.lock();
        if self.root.word() != at.word || at.word.kind() == Kind::Node256 {
            return Ok(false);
        }
        let Some((inner, word)) = self.lock_and_make(at, make)? else { return Ok(false) };
        self.root.store(word);
        inner.obsolete();
        drop(growing);
        // SAFETY: this thread has unlinked the node above, under both locks (I3, I9), so nobody
        // else retires it. The guard is of the tree's domain.
        unsafe { self.alloc.retire(at.word, guard) };
        Ok(true)
    }

    /// Gives a large tree a root with a place for each byte, if there is memory for it.
    #[inline]
    pub(super) fn widen(&self, guard: &Guard) {
        let budget = &self.alloc.frame().config.budget;
        if self.root.full().is_none()
            && budget.held() >= FULL_FROM
            && budget.left() >= size_of::<Node256<Word>>()
        {
            self.widen_now(guard);
        }
    }

    #[cold]
    fn widen_now(&self, guard: &Guard) {
        let Some(at) = self.root() else { return };
        let NodeRef::Words(node) = at.node else { unreachable!("the root is a node of words") };
        let full = |this: &Self| copied(node, |all| this.alloc.full(all, guard)).map(Some);
        // Without memory for it, a later writer tries again.
        let _ = self.replaced_root(at, guard, full);
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::{ArtTree, Lookup, Options, OrderedIndex};

    /// A thread that has found the root too small may come to replace it after another thread has
    /// done so. A second `Node256` would be found by writers before lookups.
    #[test]
    fn a_root_with_a_place_for_each_byte_is_not_replaced() {
        let tree: ArtTree<u64> = ArtTree::with_options(&Options::default()).expect("memory");
        let guard = tree.domain().pin();
        for byte in 0..40 {
            tree.insert(byte << 56, byte, &guard).expect("memory");
        }
        let art = &tree.0;
        assert!(art.root.full().is_none(), "a small tree");
        art.widen_now(&guard);
        let word = art.root.word();
        assert!(word.kind() == Kind::Node256 && art.root.full().is_some());
        art.widen_now(&guard);
        assert_eq!(art.root.word(), word);
        assert!((0..40).all(|byte| tree.get(byte << 56, &guard) == Some(byte)));
    }
}
