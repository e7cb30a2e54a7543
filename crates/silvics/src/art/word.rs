//! Words that lead to children.

use super::key::{DigitKey, HINTS};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::tagged::{AtomicTagged, HINT_BITS, TAG_BITS, Tagged};
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

/// The bits of an address that are 0 for every node, since nodes begin at cache lines. A word has
/// the high bits of the node's depth there; the low ones are its hint.
const DEPTH_MASK: usize = 0b111 << TAG_BITS;
const DEPTH_SHIFT: u32 = HINT_BITS - TAG_BITS;
/// The number of depths that a word has room for.
pub(super) const DEPTHS: usize = (DEPTH_MASK << DEPTH_SHIFT) + (1 << HINT_BITS);

/// Nodes begin at multiples of a cache line.
const NODE_ALIGN: usize = 64;

const _: () = assert!(DEPTH_MASK + (1 << TAG_BITS) == NODE_ALIGN && DEPTHS == 1 << 19);

/// A child of a node, or none: its address, its kind and a hint.
///
/// The hint of a node has the low 16 bits of its depth. The hint of a leaf of integers says how
/// many there are and which of them are gone, the hint of a leaf of a byte string is the key's
/// fingerprint.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(Tagged<Object>);

impl Word {
    pub(super) const NONE: Self = Self(Tagged::null());

    #[inline]
    pub(super) fn node<N>(kind: Kind, node: NonNull<N>, depth: usize) -> Self {
        let start = node.addr().get();
        assert!(start & DEPTH_MASK == 0 && depth < DEPTHS, "a node at {start:#x}, depth {depth}");
        let high = depth >> DEPTH_SHIFT & DEPTH_MASK;
        let word = Tagged::new(node.as_ptr().wrapping_byte_add(high).cast());
        Self(word.with_tag(kind as usize).with_hint(depth as u16))
    }

    #[inline]
    pub(super) fn leaf<L>(leaf: NonNull<L>, hint: u16) -> Self {
        let word = Tagged::new(leaf.as_ptr().cast());
        Self(word.with_tag(Kind::Leaf as usize).with_hint(hint))
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
        let high = self.0.into_raw().addr() & DEPTH_MASK;
        high << DEPTH_SHIFT | self.0.hint() as usize
    }

    /// The depth of the node that the word leads to, as a lookup of a key needs it. For keys that
    /// are not long, it is the hint alone, which may be less than the depth of a node above long
    /// keys only.
    #[inline(always)]
    pub(super) fn depth_for<K: DigitKey + ?Sized, const LONG: bool>(self) -> usize {
        if LONG && K::MAX_BYTES > HINTS { self.depth() } else { self.0.hint() as usize }
    }

    /// The hint of the leaf that the word leads to.
    #[inline(always)]
    pub(super) fn hint(self) -> usize {
        self.0.hint() as usize
    }

    /// The object that the word leads to, null if the word is none.
    #[inline(always)]
    pub(super) fn object(self) -> *mut Object {
        if self.kind() == Kind::Leaf { self.leaf_object() } else { self.node_object() }
    }

    /// The leaf that the word leads to. The word's kind is `Leaf`.
    #[inline(always)]
    pub(super) fn leaf_object(self) -> *mut Object {
        self.0.pointer()
    }

    /// The node that the word leads to. The word's kind is not `Leaf`.
    #[inline(always)]
    pub(super) fn node_object(self) -> *mut Object {
        self.0.aligned::<NODE_ALIGN>()
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

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::super::node::{Node, Node4};
    use super::*;

    #[test]
    fn a_word_has_the_address_kind_and_depth_of_a_node() {
        let node = Box::new(Node4::<Word>::new(7));
        let start = NonNull::from(&*node);
        let depths = [0, 1, 65_535, 65_536, 65_537, 98_304, DEPTHS - 1];
        for (depth, kind) in depths.into_iter().flat_map(|depth| {
            [Kind::Node4, Kind::Node256, Kind::Values256].map(|kind| (depth, kind))
        }) {
            let word = Word::node(kind, start, depth);
            assert_eq!((word.kind(), word.depth()), (kind, depth));
            assert_eq!(
                (word.depth_for::<[u8], true>(), word.depth_for::<[u8], false>()),
                (depth, depth & 0xffff)
            );
            assert_eq!((word.address(), word.node_object()), (start.cast(), word.object()));
            assert_eq!(Word::from_raw(word.into_raw()), word);
        }
        let leaf = start.cast::<u8>().map_addr(|address| address | 0b11_1000);
        let word = Word::leaf(leaf, 0xfedc);
        assert_eq!((word.kind(), word.address(), word.hint()), (Kind::Leaf, leaf, 0xfedc));
    }

    #[test]
    #[should_panic(expected = "depth 524288")]
    fn a_deeper_node_has_no_word() {
        let node = Box::new(Node4::<Word>::new(7));
        Word::node(Kind::Node4, NonNull::from(&*node), DEPTHS);
    }
}
