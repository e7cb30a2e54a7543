//! Words that lead to nodes and blocks.

use super::block::BlockRef;
use super::key::WordKey;
use super::node::NodeRef;
use super::slots::SlotsRef;
use super::value::Marks;
use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::{AtomicTagged, Tagged};
use std::ptr::NonNull;

/// The object that a word leads to. Only pointers to it exist.
pub(super) struct Object;

/// The bytes of a cache line. Objects in the slots of pools begin at multiples of it.
pub(super) const LINE: usize = 64;
/// The alignment of each object, also of those that come from a heap.
pub(super) const ALIGN: usize = 8;

const NODE: usize = 1;
const BLOCK: usize = 2;
const SLOTS: usize = 3;
const KIND: usize = 3;
/// The bit of the tag that says that a node must check keys, or which marks a block has.
const FLAG: usize = 4;
/// The bits of a hint that have the shift of a node.
const SHIFT_BITS: u32 = 8;

/// A word that leads to a node, to a block, to an array of slots, or to nothing.
///
/// The word of a node says which bits of a key choose the child, and the word of a block how many
/// groups it has. So a lookup need not read the head of either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word(Tagged<Object>);

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    None,
    Node,
    Block,
    Slots,
}

/// The object that a word leads to.
pub(super) enum Leads<'g, K: WordKey> {
    None,
    Node(NodeRef<'g, K>),
    Block(BlockRef<'g, K>),
    Slots(SlotsRef<'g, K>),
}

impl Word {
    pub(super) const NONE: Self = Self(Tagged::null());

    fn new(object: NonNull<u8>, kind: usize, flag: bool, hint: u16) -> Self {
        debug_assert!(object.as_ptr().addr().is_multiple_of(ALIGN));
        let tag = kind | if flag { FLAG } else { 0 };
        Self(Tagged::new(object.as_ptr().cast()).with_tag(tag).with_hint(hint))
    }

    /// The word of a node whose children differ in `bits` bits from bit `shift` up. Keys below it
    /// may be others than those that lead to it if it `checks`.
    pub(super) fn node(node: NonNull<u8>, shift: u32, bits: u32, checks: bool) -> Self {
        Self::new(node, NODE, checks, (shift | bits << SHIFT_BITS) as u16)
    }

    pub(super) fn block(block: NonNull<u8>, groups: usize, marks: Marks) -> Self {
        Self::new(block, BLOCK, marks.is_other(), groups as u16)
    }

    pub(super) fn slots(slots: NonNull<u8>, marks: Marks) -> Self {
        Self::new(slots, SLOTS, marks.is_other(), 0)
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
        match self.0.tag() & KIND {
            NODE => Kind::Node,
            BLOCK => Kind::Block,
            SLOTS => Kind::Slots,
            _ => Kind::None,
        }
    }

    /// The object. The word leads to one.
    pub(super) fn object(self) -> NonNull<u8> {
        NonNull::new(self.address()).expect("a word that leads to an object")
    }

    /// The address of the object.
    #[inline(always)]
    pub(super) fn address(self) -> *mut u8 {
        self.0.aligned::<ALIGN>().cast()
    }

    #[inline(always)]
    fn flag(self) -> bool {
        self.0.tag() & FLAG != 0
    }

    /// The first bit that the node chooses a child by.
    #[inline(always)]
    pub(super) fn shift(self) -> u32 {
        u32::from(self.0.hint()) & ((1 << SHIFT_BITS) - 1)
    }

    /// The number of bits that the node chooses a child by.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        u32::from(self.0.hint()) >> SHIFT_BITS
    }

    /// Whether keys that lead to the node may be others than those below it.
    #[inline(always)]
    pub(super) fn checks(self) -> bool {
        self.flag()
    }

    /// The word, for a place whose keys the node must check, or not.
    pub(super) fn with_checks(self, checks: bool) -> Self {
        let tag = self.0.tag() & KIND | if checks { FLAG } else { 0 };
        Self(self.0.with_tag(tag))
    }

    /// The groups of the block.
    #[inline(always)]
    pub(super) fn groups(self) -> usize {
        usize::from(self.0.hint())
    }

    /// The marks of the block or the array of slots.
    #[inline(always)]
    pub(super) fn marks(self) -> Marks {
        Marks::new(self.flag())
    }

    /// The object that the word leads to.
    ///
    /// # Safety
    /// The object is one of a tree of these keys, and is not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn leads<'g, K: WordKey>(self) -> Leads<'g, K> {
        // SAFETY: our contract; the tag says of which kind the object is (I1).
        unsafe {
            match self.kind() {
                Kind::None => Leads::None,
                Kind::Node => Leads::Node(NodeRef::new(self)),
                Kind::Block => Leads::Block(BlockRef::new(self)),
                Kind::Slots => Leads::Slots(SlotsRef::new(self)),
            }
        }
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
        Word(self.0.load(Ordering::SeqCst))
    }

    /// Puts another word. The caller has the lock of the place.
    #[inline]
    pub(super) fn link(&self, word: Word) {
        self.0.store(word.0, Ordering::SeqCst);
    }
}
