//! Words that lead to objects. The lock-free tree ([`crate::lfca`]) has them, too.

use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::{AtomicTagged, Tagged};
use std::ptr::NonNull;

const ROUTE: usize = 1;
const BASE: usize = 2;
const INNER: usize = 3;
const LEAF: usize = 4;
const KEY: usize = 5;
const JOIN: usize = 6;
const AVL: usize = 7;

/// An object without its type.
pub(crate) struct Object;

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    None,
    Route,
    Base,
    Inner,
    Leaf,
    /// A node of an AVL tree: a leaf with one entry and two children, see `avl.rs`.
    Avl,
    Key,
    /// A join of the lock-free tree.
    Join,
}

/// A word that leads to an object of the tree, or to nothing. That of a container node says for how
/// many entries the node has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word(Tagged<Object>);

impl Word {
    pub(crate) const NONE: Self = Self(Tagged::null());

    fn new(object: NonNull<u8>, kind: usize, capacity: usize) -> Self {
        let word = Tagged::new(object.as_ptr().cast());
        Self(word.with_tag(kind).with_hint(capacity as u16))
    }

    pub(crate) fn route(object: NonNull<u8>) -> Self {
        Self::new(object, ROUTE, 0)
    }

    pub(crate) fn base(object: NonNull<u8>) -> Self {
        Self::new(object, BASE, 0)
    }

    pub(crate) fn inner(object: NonNull<u8>, capacity: usize) -> Self {
        Self::new(object, INNER, capacity)
    }

    pub(crate) fn leaf(object: NonNull<u8>, capacity: usize) -> Self {
        Self::new(object, LEAF, capacity)
    }

    pub(crate) fn avl(object: NonNull<u8>) -> Self {
        Self::new(object, AVL, 1)
    }

    pub(crate) fn key(object: NonNull<u8>) -> Self {
        Self::new(object, KEY, 0)
    }

    pub(crate) fn join(object: NonNull<u8>, role: usize) -> Self {
        Self::new(object, JOIN, role)
    }

    /// The word as a pointer, for the domain.
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        NonNull::new(self.0.into_raw()).expect("a word that leads to an object")
    }

    pub(crate) fn from_raw(word: NonNull<u8>) -> Self {
        Self(Tagged::from_raw(word.as_ptr()))
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> Kind {
        match self.0.tag() {
            ROUTE => Kind::Route,
            BASE => Kind::Base,
            INNER => Kind::Inner,
            LEAF => Kind::Leaf,
            AVL => Kind::Avl,
            KEY => Kind::Key,
            JOIN => Kind::Join,
            _ => Kind::None,
        }
    }

    /// The entries that the container node has room for, or the role of a place in a join.
    #[inline(always)]
    pub(crate) fn capacity(self) -> usize {
        usize::from(self.0.hint())
    }

    /// The object. The word leads to one.
    pub(crate) fn object(self) -> NonNull<u8> {
        NonNull::new(self.address()).expect("a word that leads to an object")
    }

    /// The address of the object.
    #[inline(always)]
    pub(crate) fn address(self) -> *mut u8 {
        self.0.pointer().cast()
    }
}

/// A place for a word.
pub(crate) struct Place(AtomicTagged<Object>);

impl Place {
    pub(crate) fn new(word: Word) -> Self {
        Self(AtomicTagged::new(word.0))
    }

    /// The word. The object that it leads to is initialised.
    #[inline(always)]
    pub(crate) fn word(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Puts another word, which publishes the object.
    #[inline]
    pub(crate) fn link(&self, word: Word) {
        self.0.store(word.0, Ordering::Release);
    }

    /// The word of a place that changes by [`Place::replace`]. Such accesses are in one order.
    #[inline(always)]
    pub(crate) fn read(&self) -> Word {
        Word(self.0.load(Ordering::SeqCst)) // SeqCst: the order of linearization points (`lfca`)
    }

    /// Replaces a word by another, which publishes the object. Returns whether the place had it.
    #[inline]
    pub(crate) fn replace(&self, old: Word, new: Word) -> bool {
        let order = Ordering::SeqCst; // as in `read`
        self.0.compare_exchange(old.0, new.0, order, order).is_ok()
    }
}
