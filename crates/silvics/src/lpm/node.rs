//! The nodes: their layout, and every access to their memory.
//!
//! | bytes | field | content |
//! |---|---|---|
//! | 8 | `inherited` | the leaf of the longest prefix of the *parent* that covers the slot of this node; none if there is none |
//! | 8 | `meta` | for each 64 slots the number of runs that begin before them (4 × 8 bits), the number of words (16), of hidden prefixes (8), the depth (8) |
//! | 16 | `path` | the address up to the depth; only in IPv6 |
//! | 32 | `starts` | a bit for each slot but the first: whether its word differs from the one before; only in packed nodes |
//! | 8 each | words | of a wide node one for each slot; of a packed node one for each run of equal words |
//! | 8 each | hidden | the prefixes that no slot shows, since longer ones cover them: the payload, the length behind the depth (8 bits), the first slot (8 bits) |
//!
//! A node does not change after the store that publishes it (N1), so no memory orderings are used
//! here.

use super::address::{Address, MOST, stride};
use super::count::{Count, Portable};
use super::word::Word;
use silvics_layout::{Field, NodeLayout};
use silvics_sync::model::touch;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The layout of the smallest node: a packed one of IPv4 with one word.
pub(super) const NODE: NodeLayout = NodeLayout {
    kind: "node",
    size: 64,
    align: 8,
    search: &[
        Field::new("inherited", 0, 8),
        Field::new("meta", 8, 8),
        Field::new("starts", 16, 32),
        Field::new("words", 48, 8),
    ],
    found: &[],
};

/// The bytes before `starts`, or before the words of a wide node.
const fn head(is_v6: bool) -> usize {
    if is_v6 { 32 } else { 16 }
}

const STARTS: usize = 32;

/// The size of the object for a node of these bytes: one of few, since a pool has slabs for each.
/// Large nodes begin at a cache line.
const fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(if bytes <= 192 { 16 } else { 64 })
}

/// The number of words from which on a node of 8 bits is wide. A lookup in a wide node reads one
/// line, and in a packed one mostly two.
const WIDE_FROM: usize = 160;

/// The contents of `meta`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meta(u64);

impl Meta {
    pub(super) fn new(ranks: [u8; 4], words: usize, hidden: usize, depth: u8) -> Self {
        debug_assert!(words <= MOST && u8::try_from(hidden).is_ok() && ranks[0] == 0);
        let ranks = u64::from(u32::from_le_bytes(ranks));
        Self(ranks | (words as u64) << 32 | (hidden as u64) << 48 | u64::from(depth) << 56)
    }

    #[inline(always)]
    fn rank(self, group: usize) -> usize {
        (self.0 >> (8 * group)) as u8 as usize
    }

    #[inline(always)]
    pub(super) fn words(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }

    #[inline(always)]
    pub(super) fn hidden(self) -> usize {
        (self.0 >> 48) as u8 as usize
    }

    #[inline(always)]
    pub(super) fn depth(self) -> u8 {
        (self.0 >> 56) as u8
    }
}

/// A prefix of a node that no slot shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hidden(u64);

impl Hidden {
    pub(super) const NONE: Self = Self(0);

    /// The prefix whose length is `behind` the depth and whose first slot is this one.
    pub(super) fn new(first: usize, behind: u8, payload: u64) -> Self {
        Self(payload << 16 | u64::from(behind) << 8 | first as u64)
    }

    pub(super) fn first(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    pub(super) fn behind(self) -> u8 {
        (self.0 >> 8) as u8
    }

    pub(super) fn payload(self) -> u64 {
        self.0 >> 16
    }

    pub(super) fn is_at(self, first: usize, behind: u8) -> bool {
        (self.first(), self.behind()) == (first, behind)
    }
}

/// The contents of a node that is to be made.
pub(super) struct Contents<'a> {
    pub(super) inherited: Word,
    pub(super) depth: u8,
    pub(super) path: [u64; 2],
    /// The word of each slot.
    pub(super) slots: &'a [Word],
    pub(super) hidden: &'a [Hidden],
}

/// The slots whose words differ from the ones before them, and the number of runs.
fn starts_of(slots: &[Word]) -> ([u64; 4], usize) {
    let mut starts = [0; 4];
    let mut runs = 1;
    for at in 1..slots.len() {
        let starts_here = slots[at] != slots[at - 1];
        starts[at / 64] |= u64::from(starts_here) << (at % 64);
        runs += usize::from(starts_here);
    }
    (starts, runs)
}

/// The first start behind a slot.
fn next_start(starts: &[u64; 4], slot: usize) -> usize {
    let from = slot + 1;
    let mut passed = from % 64;
    for (group, starts) in starts.iter().enumerate().skip(from / 64) {
        let left = starts >> passed << passed;
        if left != 0 {
            return 64 * group + left.trailing_zeros() as usize;
        }
        passed = 0;
    }
    MOST
}

/// The form of a node that is to be made.
#[derive(Clone, Copy)]
pub(super) struct Form {
    starts: [u64; 4],
    words: usize,
    is_wide: bool,
    pub(super) bytes: usize,
}

impl Contents<'_> {
    /// The form of the node, whose size decides about the allocation.
    pub(super) fn form(&self, is_v6: bool) -> Form {
        let (starts, runs) = starts_of(self.slots);
        let is_wide = self.slots.len() < MOST || runs >= WIDE_FROM;
        let words = if is_wide { self.slots.len() } else { runs };
        let bytes = bytes(is_wide, is_v6, words, self.hidden.len());
        Form { starts, words, is_wide, bytes }
    }

    /// Writes the node into fresh memory.
    ///
    /// # Safety
    /// The memory has the bytes of the form, which is that of these contents. It is aligned to 8,
    /// and belongs to the caller alone.
    pub(super) unsafe fn write(&self, form: &Form, is_v6: bool, memory: NonNull<u8>) -> Word {
        let mut ranks = [0; 4];
        for group in 1..4 {
            ranks[group] = ranks[group - 1] + form.starts[group - 1].count_ones() as u8;
        }
        let ranks = if form.is_wide { [0; 4] } else { ranks };
        let meta = Meta::new(ranks, form.words, self.hidden.len(), self.depth);
        let base = memory.as_ptr();
        // SAFETY: `bytes` has counted all that is written here.
        unsafe {
            base.cast::<u64>().write(self.inherited.into_raw());
            base.cast::<u64>().add(1).write(meta.0);
            if is_v6 {
                base.add(16).cast::<[u64; 2]>().write(self.path);
            }
            let mut to = base.add(head(is_v6));
            if !form.is_wide {
                to.cast::<[u64; 4]>().write(form.starts);
                to = to.add(STARTS);
            }
            let mut to = to.cast::<u64>();
            for (at, word) in self.slots.iter().enumerate() {
                if form.is_wide || at == 0 || form.starts[at / 64] >> (at % 64) & 1 == 1 {
                    to.write(word.into_raw());
                    to = to.add(1);
                }
            }
            for hidden in self.hidden {
                to.write(hidden.0);
                to = to.add(1);
            }
            debug_assert!(to.addr() - base.addr() <= form.bytes);
        }
        Word::child(memory, form.is_wide, is_v6)
    }
}

/// The bytes of the object of a node.
fn bytes(is_wide: bool, is_v6: bool, words: usize, hidden: usize) -> usize {
    let starts = if is_wide { 0 } else { STARTS };
    rounded(head(is_v6) + starts + 8 * (words + hidden))
}

/// The memory of a node.
///
/// # Safety
/// The word is a child whose node has been written and is not freed.
pub(super) unsafe fn extent(word: Word) -> (NonNull<u8>, usize) {
    // SAFETY: our contract.
    let meta = Meta(unsafe { word.node().cast::<u64>().add(1).read() });
    let bytes = bytes(word.is_wide(), word.is_v6(), meta.words(), meta.hidden());
    (NonNull::new(word.node()).expect("a child is at no null address"), bytes)
}

/// A node that stays readable for `'g`.
pub(super) struct Node<'g, A> {
    word: Word,
    lives: PhantomData<(&'g (), A)>,
}

impl<A> Clone for Node<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Node<'_, A> {}

impl<'g, A: Address> Node<'g, A> {
    /// The node of a child.
    ///
    /// # Safety
    /// The word is a child of this family, and its node is not freed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn new(word: Word) -> Self {
        debug_assert!(word.is_child() && word.is_v6() == A::SKIPS);
        Self { word, lives: PhantomData }
    }

    #[inline(always)]
    pub(super) fn word(self) -> Word {
        self.word
    }

    /// The memory of the node, which the caller is about to read.
    #[inline(always)]
    fn base(self) -> *const u8 {
        touch(self.word.node())
    }

    /// The node that a word of this node leads to, if that is a child.
    ///
    /// # Safety
    /// The word was read in this node.
    #[inline(always)]
    #[allow(clippy::unused_self)] // it says how long the child lives
    pub(super) unsafe fn child(self, word: Word) -> Option<Node<'g, A>> {
        // SAFETY: N2: a child of a node that is not freed during `'g` is not freed either.
        word.is_child().then(|| unsafe { Node::new(word) })
    }

    #[inline(always)]
    pub(super) fn inherited(self) -> Word {
        // SAFETY: `new`: the node is readable.
        Word::from_raw(unsafe { self.base().cast::<u64>().read() })
    }

    #[inline(always)]
    pub(super) fn meta(self) -> Meta {
        // SAFETY: `new`: the node is readable.
        Meta(unsafe { self.base().cast::<u64>().add(1).read() })
    }

    #[inline(always)]
    pub(super) fn depth(self) -> u8 {
        self.meta().depth()
    }

    /// The number of slots.
    #[inline(always)]
    pub(super) fn slots(self) -> usize {
        1 << stride(self.depth())
    }

    #[inline(always)]
    fn raw_path(self) -> [u64; 2] {
        debug_assert!(A::SKIPS);
        // SAFETY: `new`: the node is readable, and has a path in a family that skips.
        unsafe { self.base().add(16).cast::<[u64; 2]>().read() }
    }

    /// The address up to the depth. Only nodes of IPv6 have it.
    pub(super) fn path(self) -> A {
        A::from_path(self.raw_path())
    }

    /// Whether the address leads to this node, given that it leads to its slot.
    #[inline(always)]
    pub(super) fn is_on_path(self, address: A, depth: u8) -> bool {
        !A::SKIPS || address.is_on(self.raw_path(), depth)
    }

    #[inline(always)]
    fn words(self) -> *const u64 {
        let starts = if self.word.is_wide() { 0 } else { STARTS };
        self.base().wrapping_add(head(A::SKIPS) + starts).cast()
    }

    /// The number of the run of a slot in a packed node.
    #[inline(always)]
    fn run(self, slot: usize, count: impl Count) -> usize {
        let group = slot / 64;
        // SAFETY: `new`: the node is readable. A packed one has a word of `starts` for each 64 of
        // its 256 slots. A wide one has 16 words there, or more.
        let starts = unsafe { self.base().add(head(A::SKIPS)).cast::<u64>().add(group).read() };
        let upto = starts & (u64::MAX >> (63 - slot % 64));
        self.meta().rank(group) + count.ones(upto)
    }

    /// The place of the word of a slot.
    #[inline(always)]
    pub(super) fn place(self, slot: usize, count: impl Count) -> *const u64 {
        debug_assert!(slot < self.slots());
        let at = if self.word.is_wide() { slot } else { self.run(slot, count) };
        self.words().wrapping_add(at)
    }

    /// The place of the word of a slot in a wide node.
    #[inline(always)]
    pub(super) fn place_if_wide(self, slot: usize) -> *const u64 {
        debug_assert!(slot < self.slots() && self.word.is_wide());
        self.base().wrapping_add(head(A::SKIPS) + 8 * slot).cast()
    }

    /// The place of the word of a slot, found without a branch that depends on the form of the
    /// node. For batches, which do not wait for the first line of the node.
    #[inline(always)]
    pub(super) fn place_in_batch(self, slot: usize, count: impl Count) -> *const u64 {
        debug_assert!(slot < self.slots());
        // A wide node has 16 words or more at the place of `starts`, so they can be read, too.
        let run = self.run(slot, count);
        let (at, starts) = if self.word.is_wide() { (slot, 0) } else { (run, STARTS) };
        self.base().wrapping_add(head(A::SKIPS) + starts + 8 * at).cast()
    }

    /// The word of a slot.
    #[inline(always)]
    pub(super) fn slot(self, slot: usize, count: impl Count) -> Word {
        // SAFETY: `new`: the node is readable, and `place` is that of one of its words (N3).
        Word::from_raw(unsafe { self.place(slot, count).read() })
    }

    /// A word by its number: of a slot if the node is wide, else of a run.
    #[inline(always)]
    fn nth(self, at: usize) -> Word {
        debug_assert!(at < self.meta().words());
        // SAFETY: `new`: the node is readable, and has as many words.
        Word::from_raw(unsafe { self.words().add(at).read() })
    }

    /// The words of the slots `first` to `last`, without repetitions in a run.
    pub(super) fn between(self, first: usize, last: usize) -> impl Iterator<Item = Word> {
        let number = |slot| if self.word.is_wide() { slot } else { self.run(slot, Portable) };
        (number(first)..=number(last)).map(move |at| self.nth(at))
    }

    /// The runs in order: the first slot, the last one, the word. A wide node has a run for each
    /// slot.
    pub(super) fn runs(self) -> impl Iterator<Item = (usize, usize, Word)> {
        let starts = if self.word.is_wide() {
            [u64::MAX; 4]
        } else {
            // SAFETY: `new`: the node is readable, and a packed one has these words.
            unsafe { self.base().add(head(A::SKIPS)).cast::<[u64; 4]>().read() }
        };
        let (slots, mut first) = (self.slots(), 0);
        (0..self.meta().words()).map(move |at| {
            let next = next_start(&starts, first).min(slots);
            let run = (first, next - 1, self.nth(at));
            first = next;
            run
        })
    }

    /// The hidden prefixes.
    pub(super) fn hidden(self) -> impl Iterator<Item = Hidden> {
        let words = self.meta().words();
        (0..self.meta().hidden()).map(move |at| {
            // SAFETY: `new`: the node is readable, and has as many hidden prefixes behind its
            // words.
            Hidden(unsafe { self.words().add(words + at).read() })
        })
    }

    /// The leaf of the longest prefix of this node that covers a slot with this word; none if there
    /// is none.
    ///
    /// # Safety
    /// The word was read in this node.
    #[inline]
    pub(super) unsafe fn shown(self, word: Word) -> Word {
        // SAFETY: our contract.
        unsafe { self.child(word) }.map_or(word, Node::inherited)
    }

    /// The leaf of the prefix whose length is `behind` the depth and whose first slot is this one.
    pub(super) fn prefix(self, first: usize, behind: u8) -> Option<Word> {
        let depth = self.depth();
        let last = first + (1 << (stride(depth) - behind)) - 1;
        // SAFETY: `between` reads in this node.
        let mut shown = self.between(first, last).map(|word| unsafe { self.shown(word) });
        shown.find(|word| word.is_leaf_of(depth + behind)).or_else(|| {
            let hidden = self.hidden().find(|hidden| hidden.is_at(first, behind))?;
            Some(Word::leaf(hidden.payload(), depth + behind))
        })
    }
}

/// Copies a node, and puts another child into the place of one, or another inherited leaf.
///
/// # Safety
/// The node is readable, and `memory` has its bytes and belongs to the caller alone. The word of
/// the slot is a child, and so is the new one.
pub(super) unsafe fn copy<A: Address>(
    node: Node<'_, A>,
    change: Change,
    memory: NonNull<u8>,
) -> Word {
    // SAFETY: our contract.
    unsafe {
        let (from, bytes) = extent(node.word());
        let meta = node.meta();
        let used = node.words().addr() - from.as_ptr().addr() + 8 * (meta.words() + meta.hidden());
        debug_assert!(used <= bytes);
        memory.copy_from_nonoverlapping(from, used);
        match change {
            Change::Child(slot, child) => {
                debug_assert!(node.slot(slot, Portable).is_child() && child.is_child());
                let at = node.place(slot, Portable).addr() - from.as_ptr().addr();
                memory.byte_add(at).cast::<u64>().write(child.into_raw());
            }
            Change::Inherited(leaf) => memory.cast::<u64>().write(leaf.into_raw()),
        }
    }
    Word::child(memory, node.word().is_wide(), A::SKIPS)
}

/// The difference of a copy.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// Another child in this slot.
    Child(usize, Word),
    /// Another inherited leaf.
    Inherited(Word),
}
