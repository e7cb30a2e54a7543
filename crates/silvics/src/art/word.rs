//! Words that lead to children.

use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::tagged::{AtomicTagged, TAG_BITS, Tagged};
use std::ptr::NonNull;

/// What a word leads to; only pointers to it exist.
pub(super) struct Object;

/// What kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Kind {
    Leaf,
    Node4,
    Node14,
    Node56,
    Node256,
    Values14,
    Values56,
    Values256,
}

const _: () = assert!(Kind::Values256 as usize + 1 == 1 << TAG_BITS);

/// A child of a node, or none: where it is, of which kind, and a hint: the depth of a node, for a leaf of
/// integers how many it has and which of them are gone, for one of a byte string its fingerprint.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(Tagged<Object>);

impl Word {
    pub(super) const NONE: Self = Self(Tagged::null());

    #[inline]
    pub(super) fn node<N>(kind: Kind, node: NonNull<N>, depth: usize) -> Self {
        Self(Tagged::new(node.as_ptr().cast()).with_tag(kind as usize).with_hint(depth as u16))
    }

    #[inline]
    pub(super) fn leaf<L>(leaf: NonNull<L>, hint: u16) -> Self {
        Self::node(Kind::Leaf, leaf, usize::from(hint))
    }

    /// The word as a pointer that leads nowhere, for whoever keeps it.
    pub(super) fn into_raw(self) -> NonNull<u8> {
        NonNull::new(self.0.into_raw()).expect("it leads somewhere")
    }

    pub(super) fn from_raw(word: NonNull<u8>) -> Self {
        Self(Tagged::from_raw(word.as_ptr()))
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        // SAFETY: there are as many kinds as tags.
        unsafe { std::mem::transmute::<usize, Kind>(self.0.tag()) }
    }

    /// Of a node.
    #[inline(always)]
    pub(super) fn depth(self) -> usize {
        self.0.hint() as usize
    }

    /// Of a leaf.
    #[inline(always)]
    pub(super) fn hint(self) -> usize {
        self.0.hint() as usize
    }

    #[inline(always)]
    pub(super) fn object(self) -> *mut Object {
        self.0.pointer()
    }

    /// The same of a word that is not none.
    pub(super) fn address(self) -> NonNull<u8> {
        NonNull::new(self.object().cast()).expect("the word leads to an object")
    }
}

/// What a place of a node holds: a word that leads to a child, or a value.
pub(super) trait Content: Copy + PartialEq {
    /// Where it is kept.
    type Atomic;
    /// What is there if there is nothing.
    const EMPTY: Self;

    fn place(self) -> Self::Atomic;
    fn load(place: &Self::Atomic) -> Self;
    fn store(self, place: &Self::Atomic);
    /// Before anybody else can see the place.
    fn store_unshared(self, place: &Self::Atomic);
}

impl Content for Word {
    type Atomic = AtomicTagged<Object>;
    const EMPTY: Self = Self::NONE;

    fn place(self) -> AtomicTagged<Object> {
        AtomicTagged::new(self.0)
    }
    #[inline(always)]
    fn load(place: &AtomicTagged<Object>) -> Self {
        Self(place.load(Ordering::SeqCst))
    }
    #[inline]
    fn store(self, place: &AtomicTagged<Object>) {
        place.store(self.0, Ordering::SeqCst);
    }
    #[inline]
    fn store_unshared(self, place: &AtomicTagged<Object>) {
        place.store(self.0, Ordering::Relaxed);
    }
}

/// The value that stands for none in nodes of values: as good as any, and not one that counters, pointers
/// or small negative numbers come to.
pub(super) const ABSENT: u64 = 0xA85E_4E7D_EC0D_E5ED;

impl Content for u64 {
    type Atomic = AtomicU64;
    const EMPTY: Self = ABSENT;

    fn place(self) -> AtomicU64 {
        AtomicU64::new(self)
    }
    #[inline(always)]
    fn load(place: &AtomicU64) -> Self {
        place.load(Ordering::SeqCst)
    }
    #[inline]
    fn store(self, place: &AtomicU64) {
        place.store(self, Ordering::SeqCst);
    }
    #[inline]
    fn store_unshared(self, place: &AtomicU64) {
        place.store(self, Ordering::Relaxed);
    }
}
