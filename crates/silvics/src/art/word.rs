//! Words that lead to children.

use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::tagged::{AtomicTagged, TAG_BITS, Tagged};
use std::ptr::NonNull;

/// The object that a word leads to. Only pointers to it exist.
pub(super) struct Object;

/// The kind of an object.
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

/// A child of a node, or none: its address, its kind and a hint.
///
/// The hint of a node is its depth. The hint of a leaf of integers says how many there are and
/// which of them are gone, the hint of a leaf of a byte string is the key's fingerprint.
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

    /// The word as a pointer, which must not be followed.
    pub(super) fn into_raw(self) -> NonNull<u8> {
        NonNull::new(self.0.into_raw()).expect("it leads somewhere")
    }

    /// The word that [`Word::into_raw`] made this pointer of.
    pub(super) fn from_raw(word: NonNull<u8>) -> Self {
        Self(Tagged::from_raw(word.as_ptr()))
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        // SAFETY: a tag has `TAG_BITS` bits, and the assertion above says that each is a kind.
        unsafe { std::mem::transmute::<usize, Kind>(self.0.tag()) }
    }

    /// The depth of the node that the word leads to.
    #[inline(always)]
    pub(super) fn depth(self) -> usize {
        self.0.hint() as usize
    }

    /// The hint of the leaf that the word leads to.
    #[inline(always)]
    pub(super) fn hint(self) -> usize {
        self.0.hint() as usize
    }

    #[inline(always)]
    pub(super) fn object(self) -> *mut Object {
        self.0.pointer()
    }

    /// The address of the object. The word is not none.
    pub(super) fn address(self) -> NonNull<u8> {
        NonNull::new(self.object().cast()).expect("the word leads to an object")
    }
}

/// The content of a node's place: a word that leads to a child, or a value.
pub(super) trait Content: Copy + PartialEq {
    /// The type of the place.
    type Atomic;
    /// The content of an empty place.
    const EMPTY: Self;

    fn place(self) -> Self::Atomic;
    fn load(place: &Self::Atomic) -> Self;
    fn store(self, place: &Self::Atomic);
    /// Stores the content before any other thread can reach the place.
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

/// The value that stands for "no value" in nodes of values. Any would do; this one is no value of
/// counters, pointers or small negative numbers.
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
