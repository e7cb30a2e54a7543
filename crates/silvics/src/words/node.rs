//! Nodes of the index: some bits of a key choose a child.
//!
//! # Layout
//! ```text
//! 0   lock
//! 8   the smallest key below the node
//! 64  the children
//! ```
//! All but the lock and the children is written before the node is linked, and never changes (I1).

use super::key::WordKey;
use super::word::{ALIGN, LINE, Place, Word};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The most bits that a node chooses a child by.
pub(super) const MAX_BITS: u32 = if cfg!(silvics_shuttle) { 2 } else { 9 };

/// The fields before the children.
#[repr(C)]
struct Head {
    lock: VersionLock,
    /// Not a key, which may need a larger alignment than the object has.
    base: [u64; 2],
}

/// The layout of the smallest node.
pub(super) const NODE: NodeLayout = NodeLayout {
    kind: "node",
    size: 2 * LINE,
    align: ALIGN,
    search: &[Field::new("base", 8, 8), Field::links("children", LINE, 1)],
    found: &[],
};

/// The bytes of a node of `bits` bits: whole lines, so that it begins at one.
pub(super) const fn bytes(bits: u32) -> usize {
    LINE + (size_of::<Place>() << bits).next_multiple_of(LINE)
}

/// Some children side by side: those of a node, or of the root.
#[derive(Clone, Copy)]
pub(super) struct Places<'g, K> {
    pub(super) list: &'g [Place],
    pub(super) lock: &'g VersionLock,
    /// The smallest key below the first child.
    pub(super) base: K,
    /// The first bit that chooses a child.
    pub(super) shift: u32,
}

impl<K: WordKey> Places<'_, K> {
    /// The number of bits that choose a child.
    pub(super) fn bits(self) -> u32 {
        self.list.len().ilog2()
    }

    /// Whether these are the places of the root. Keys of different ones are in different leaves.
    pub(super) fn is_root(self) -> bool {
        self.shift == K::BITS - super::ops::ROOT_BITS
    }

    /// The child that a key below leads to.
    #[inline]
    pub(super) fn find(self, key: K) -> usize {
        key.bits(self.shift, self.bits())
    }

    /// The first bit above those that choose a child.
    pub(super) fn top(self) -> u32 {
        self.shift + self.bits()
    }

    /// The smallest key below a child.
    #[inline]
    pub(super) fn start(self, at: usize) -> K {
        self.base.with(self.shift, at)
    }

    /// The largest key below a child.
    #[inline]
    pub(super) fn end(self, at: usize) -> K {
        self.start(at).last_above(self.shift)
    }

    #[inline]
    pub(super) fn word(self, at: usize) -> Word {
        self.list[at].word()
    }

    /// The first and the last child around child `at` that have the word of this child.
    pub(super) fn run(self, at: usize) -> (usize, usize) {
        self.run_of(at, self.word(at))
    }

    /// The first and the last child around child `at` that have a word, which this child had.
    pub(super) fn run_of(self, at: usize, word: Word) -> (usize, usize) {
        let same = |other: &usize| self.word(*other) == word;
        let first = (0..at).rev().take_while(same).last().unwrap_or(at);
        let last = (at + 1..self.list.len()).take_while(same).last().unwrap_or(at);
        (first, last)
    }

    /// The largest aligned group of children around child `at` that all lead nowhere.
    pub(super) fn free_run(self, at: usize) -> (usize, usize) {
        let (mut first, mut len) = (at, 1);
        while 2 * len <= self.list.len() && !self.is_root() {
            let start = at & !(2 * len - 1);
            if !(start..start + 2 * len).all(|at| self.word(at).is_none()) {
                break;
            }
            (first, len) = (start, 2 * len);
        }
        (first, first + len - 1)
    }

    /// The number of different children.
    pub(super) fn distinct(self) -> usize {
        let mut last = Word::NONE;
        let mut count = 0;
        for place in self.list {
            let word = place.word();
            count += usize::from(word != last && !word.is_none());
            last = word;
        }
        count
    }
}

/// A node that is not reclaimed during `'g`.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'g, K> {
    word: Word,
    marker: PhantomData<(&'g Head, K)>,
}

impl<'g, K: WordKey> NodeRef<'g, K> {
    /// # Safety
    /// The word leads to a node of such keys that is initialised and not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    /// Initialises a node whose children lead nowhere.
    ///
    /// # Safety
    /// `node` has `bytes(bits)` bytes, aligned to [`ALIGN`], which nobody else has.
    pub(super) unsafe fn init(node: NonNull<u8>, base: K, bits: u32) {
        const { assert!(size_of::<Head>() <= LINE || cfg!(silvics_loom)) };
        // SAFETY: our contract: there is room for the head and the children.
        unsafe {
            node.cast::<Head>().write(Head { lock: VersionLock::new(), base: base.words() });
            for at in 0..1 << bits {
                node.byte_add(LINE).cast::<Place>().add(at).write(Place::new(Word::NONE));
            }
        }
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: I1: a node begins with its head, and is not reclaimed during `'g` (contract of
        // `new`).
        unsafe { &*touch(self.word.address()).cast::<Head>() }
    }

    /// The smallest key.
    #[inline(always)]
    fn base(self) -> K {
        K::of_words(self.head().base)
    }

    pub(super) fn word(self) -> Word {
        self.word
    }

    /// The child that a key leads to, or nothing if the key is not below the node.
    #[inline(always)]
    pub(super) fn find(self, key: K) -> Option<Word> {
        if self.word.checks() && !self.covers(key) {
            return None;
        }
        Some(self.place(key).word())
    }

    /// Whether a key agrees with those below the node in all bits above those that it tests.
    #[inline(always)]
    pub(super) fn covers(self, key: K) -> bool {
        let top = self.word.shift() + self.word.bits();
        key.above(top) == self.base().above(top)
    }

    #[inline(always)]
    fn place(self, key: K) -> &'g Place {
        let at = key.bits(self.word.shift(), self.word.bits());
        // SAFETY: I1: a node has a child for each number of these bits, and is not reclaimed during
        // `'g`.
        unsafe {
            let places = touch(self.word.address()).byte_add(LINE).cast::<Place>();
            &*places.add(at)
        }
    }

    /// Prefetches the lines that `find` reads.
    #[inline(always)]
    pub(super) fn prefetch(self, key: K) {
        let at = key.bits(self.word.shift(), self.word.bits());
        prefetch(self.word.address().wrapping_add(LINE + size_of::<Place>() * at));
        if self.word.checks() {
            prefetch(self.word.address());
        }
    }

    #[inline]
    pub(super) fn places(self) -> Places<'g, K> {
        let head = self.head();
        // SAFETY: I1: a node has two to the power of its bits children behind its head.
        let places = unsafe {
            let places = self.word.address().byte_add(LINE).cast::<Place>();
            std::slice::from_raw_parts(places, 1 << self.word.bits())
        };
        Places { list: places, lock: &head.lock, base: self.base(), shift: self.word.shift() }
    }

    /// The reads of a search that goes on with a key.
    pub(super) fn passed(self, key: K) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &NODE;
        let node = self.word.address().cast_const();
        let at = key.bits(self.word.shift(), self.word.bits());
        let child = layout.read(node, LINE + size_of::<Place>() * at, 8, Why::Step);
        let base = self.word.checks().then(|| layout.read(node, 8, size_of::<K>(), Why::Step));
        base.into_iter().chain([child])
    }

    pub(super) fn placed(self) -> Placed {
        let address = self.word.address().addr();
        Placed { layout: &NODE, address, before: 0, bytes: bytes(self.word.bits()) }
    }
}
