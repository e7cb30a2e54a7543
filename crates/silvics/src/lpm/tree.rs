//! The tree of one family: its root, and lookups.

use super::address::{Address, home, stride};
use super::count::{Count, Portable};
use super::node::Node;
use super::word::Word;
use crate::domain::Guard;
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::marker::PhantomData;

/// The tree of one family.
pub(super) struct Tree<A> {
    root: AtomicU64,
    /// Held by the writer.
    pub(super) writer: Mutex<()>,
    family: PhantomData<fn() -> A>,
}

impl<A> Default for Tree<A> {
    fn default() -> Self {
        let root = AtomicU64::new(Word::NONE.into_raw());
        Self { root, writer: Mutex::default(), family: PhantomData }
    }
}

impl<A: Address> Tree<A> {
    /// The tree at this moment. It stays readable while the guard lives, which is of the table's
    /// domain.
    #[inline(always)]
    pub(super) fn snapshot<'g>(&self, _guard: &'g Guard) -> Snapshot<'g, A> {
        // LP of every reading method. Acquire pairs with Release of `publish`.
        let root = Word::from_raw(self.root.load(Ordering::Acquire));
        Snapshot { root, lives: PhantomData }
    }

    /// The tree at this moment, for the writer. The guard is of the table's domain.
    pub(super) fn current<'g>(&self, _guard: &'g Guard) -> Snapshot<'g, A> {
        // Relaxed: only threads with the lock of the writer store the root.
        let root = Word::from_raw(self.root.load(Ordering::Relaxed));
        Snapshot { root, lives: PhantomData }
    }

    /// The tree, for exclusive access.
    pub(super) fn exclusive(&mut self) -> Snapshot<'_, A> {
        let root = Word::from_raw(self.root.load(Ordering::Relaxed));
        Snapshot { root, lives: PhantomData }
    }

    /// Makes this the root. The caller is the writer.
    pub(super) fn publish(&self, root: Word) {
        // LP of every writing method. Release: a thread that reads this root sees its nodes
        // initialised. The older nodes below were published by earlier writers, whose stores the
        // lock orders before this one.
        self.root.store(root.into_raw(), Ordering::Release);
    }
}

/// A tree at one moment: nothing below its root ever changes (N1).
#[derive(Clone, Copy)]
pub(super) struct Snapshot<'g, A> {
    root: Word,
    lives: PhantomData<(&'g (), A)>,
}

impl<'g, A: Address> Snapshot<'g, A> {
    #[inline(always)]
    pub(super) fn root(self) -> Word {
        self.root
    }

    /// The node of a word of this tree, if that is a child.
    ///
    /// # Safety
    /// The word is the root or was read in a node of this tree.
    #[inline(always)]
    #[allow(clippy::unused_self)] // it says how long the node lives
    pub(super) unsafe fn node(self, word: Word) -> Option<Node<'g, A>> {
        // SAFETY: N2: what was reachable when the root was read is not freed during `'g`.
        word.is_child().then(|| unsafe { Node::new(word) })
    }

    /// The leaf of the longest prefix that covers an address; none if there is none.
    #[inline(always)]
    pub(super) fn find(self, address: A, count: impl Count) -> Word {
        let (mut word, mut best, mut depth) = (self.root, Word::NONE, 0);
        // SAFETY: the words are the root, and words that were read in nodes of this tree.
        while let Some(node) = unsafe { self.node(word) } {
            best = node.inherited().or(best);
            if A::SKIPS {
                depth = node.depth();
                if !node.is_on_path(address, depth) {
                    return best;
                }
            }
            word = node.slot(address.digit(depth), count);
            depth += stride(depth);
        }
        word.or(best)
    }

    /// The node that has the prefixes of this length of an address, if there is one.
    pub(super) fn home(self, address: A, len: u8) -> Option<Node<'g, A>> {
        let (mut word, home) = (self.root, home(len));
        // SAFETY: the words are the root, and words that were read in nodes of this tree.
        while let Some(node) = unsafe { self.node(word) } {
            let depth = node.depth();
            if depth > home || !node.is_on_path(address, depth) {
                return None;
            }
            if depth == home {
                return Some(node);
            }
            word = node.slot(address.digit(depth), Portable);
        }
        None
    }

    /// The leaf of this prefix.
    pub(super) fn get(self, net: A, len: u8) -> Option<Word> {
        let node = self.home(net, len)?;
        node.prefix(net.digit(node.depth()), len - node.depth())
    }
}
