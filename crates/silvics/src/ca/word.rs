//! Words that lead to objects.

use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::{AtomicTagged, Tagged};
use std::ptr::NonNull;

const ROUTE: usize = 1;
const BASE: usize = 2;
const INNER: usize = 3;
const LEAF: usize = 4;
const KEY: usize = 5;

/// An object without its type.
pub(super) struct Object;

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    None,
    Route,
    Base,
    Inner,
    Leaf,
    Key,
}

/// A word that leads to an object of the tree, or to nothing. That of a container node says for how
/// many entries the node has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word(Tagged<Object>);

impl Word {
    pub(super) const NONE: Self = Self(Tagged::null());

    fn new(object: NonNull<u8>, kind: usize, capacity: usize) -> Self {
        let word = Tagged::new(object.as_ptr().cast());
        Self(word.with_tag(kind).with_hint(capacity as u16))
    }

    pub(super) fn route(object: NonNull<u8>) -> Self {
        Self::new(object, ROUTE, 0)
    }

    pub(super) fn base(object: NonNull<u8>) -> Self {
        Self::new(object, BASE, 0)
    }

    pub(super) fn inner(object: NonNull<u8>, capacity: usize) -> Self {
        Self::new(object, INNER, capacity)
    }

    pub(super) fn leaf(object: NonNull<u8>, capacity: usize) -> Self {
        Self::new(object, LEAF, capacity)
    }

    pub(super) fn key(object: NonNull<u8>) -> Self {
        Self::new(object, KEY, 0)
    }

    /// The word as a pointer, for the domain.
    pub(super) fn into_raw(self) -> NonNull<u8> {
        NonNull::new(self.0.into_raw()).expect("a word that leads to an object")
    }

    pub(super) fn from_raw(word: NonNull<u8>) -> Self {
        Self(Tagged::from_raw(word.as_ptr()))
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self == Self::NONE
    }

    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        match self.0.tag() {
            ROUTE => Kind::Route,
            BASE => Kind::Base,
            INNER => Kind::Inner,
            LEAF => Kind::Leaf,
            KEY => Kind::Key,
            _ => Kind::None,
        }
    }

    /// The entries that the container node has room for.
    #[inline(always)]
    pub(super) fn capacity(self) -> usize {
        usize::from(self.0.hint())
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
}

/// A place for a word.
pub(super) struct Place(AtomicTagged<Object>);

impl Place {
    pub(super) fn new(word: Word) -> Self {
        Self(AtomicTagged::new(word.0))
    }

    /// The word. The object that it leads to is initialised.
    #[inline(always)]
    pub(super) fn word(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Puts another word, which publishes the object.
    #[inline]
    pub(super) fn link(&self, word: Word) {
        self.0.store(word.0, Ordering::Release);
    }
}
