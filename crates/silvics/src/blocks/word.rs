//! Words that lead to nodes and blocks.

use super::block::BlockRef;
use super::key::BlockKey;
use super::node::NodeRef;
use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::{AtomicTagged, Tagged};
use std::ptr::NonNull;

/// A node of the index or a block.
pub(super) struct Object;

/// The tag of a word that leads to a block.
const BLOCK: usize = 1;
/// The tag of a word that leads to a long key. Only a retired word has it.
const LONG_KEY: usize = 2;

/// The kinds of objects.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Node,
    Block,
    LongKey,
}

/// A word that leads to a node, to a block, or to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word(Tagged<Object>);

/// The object that a word leads to.
pub(super) enum Leads<'g, K: BlockKey + ?Sized> {
    Node(NodeRef<'g>),
    Block(BlockRef<'g, K>),
}

impl Word {
    pub(super) const NONE: Self = Self(Tagged::null());

    #[inline(always)]
    pub(super) fn node(node: NonNull<u8>) -> Self {
        Self(Tagged::new(node.as_ptr().cast()))
    }

    #[inline(always)]
    pub(super) fn block(block: NonNull<u8>) -> Self {
        Self(Tagged::new(block.as_ptr().cast()).with_tag(BLOCK))
    }

    pub(super) fn long_key(key: NonNull<u8>) -> Self {
        Self(Tagged::new(key.as_ptr().cast()).with_tag(LONG_KEY))
    }

    /// The word as a pointer, for the domain.
    pub(super) fn into_raw(self) -> NonNull<u8> {
        NonNull::new(self.0.into_raw()).expect("a word that leads to an object")
    }

    pub(super) fn from_raw(word: NonNull<u8>) -> Self {
        Self(Tagged::from_raw(word.as_ptr()))
    }

    pub(super) fn kind(self) -> Kind {
        match self.0.tag() {
            BLOCK => Kind::Block,
            LONG_KEY => Kind::LongKey,
            _ => Kind::Node,
        }
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self == Self::NONE
    }

    #[inline(always)]
    pub(super) fn is_block(self) -> bool {
        self.0.tag() == BLOCK
    }

    /// The object. The word leads to one.
    pub(super) fn object(self) -> NonNull<u8> {
        NonNull::new(self.address()).expect("a word that leads to an object")
    }

    /// The address of the object.
    #[inline(always)]
    pub(super) fn address(self) -> *mut u8 {
        self.0.pointer().cast()
    }

    /// The object that the word leads to.
    ///
    /// # Safety
    /// The word leads to an object of a tree of these keys, which is not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn leads<'g, K: BlockKey + ?Sized>(self) -> Leads<'g, K> {
        // SAFETY: the word leads to an object (our contract), so it is not null. The tag says of
        // which kind it is (I1).
        unsafe {
            let object = NonNull::new_unchecked(self.address());
            if self.is_block() {
                Leads::Block(BlockRef::from_ptr(object))
            } else {
                Leads::Node(NodeRef::from_ptr(object))
            }
        }
    }
}

/// A place for a word: the root, or the child of a node.
pub(super) struct Place(AtomicTagged<Object>);

impl Place {
    pub(super) fn new(word: Word) -> Self {
        Self(AtomicTagged::new(word.0))
    }

    /// The word. The object that it leads to is initialised.
    #[inline(always)]
    pub(super) fn word(&self) -> Word {
        Word(self.0.load(Ordering::SeqCst))
    }

    /// Links another object. The caller has the lock of the place.
    #[inline]
    pub(super) fn link(&self, word: Word) {
        self.0.store(word.0, Ordering::SeqCst);
    }
}
