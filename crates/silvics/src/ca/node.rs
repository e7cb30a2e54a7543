//! Container nodes: some entries, or some children with the bounds between them, in order.
//!
//! # Layout
//! ```text
//! 0   the number of entries or children, and the last run of insertions (`Run`)
//! 8   the keys (N2); a child's key is the bound before it, and the first one has none
//!     the values or children; leaves of keys without values (`Slots::HAS_VALUES`) end here
//! ```
//! All fields are atomics, since readers look at them while a writer changes them. They throw away
//! what they have read then: see `search.rs`.

use super::avl::{self, AVL};
use super::key::Slots;
use super::splice::Item;
use super::word::{Kind, Place, Word};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Whether nodes may be copied word by word. In models, a word has a history that is not copied.
const COPIES_WORDS: bool = !cfg!(any(silvics_loom, silvics_shuttle));

/// The bytes of a cache line.
const LINE: usize = 64;
/// The most lines of a node.
const MAX_LINES: usize = 16;

/// The fields before the keys.
#[repr(C)]
struct Head {
    /// The lower half is the number of entries or children. The upper half is zero, or the length
    /// of a run and its position.
    len: AtomicU64,
}

/// The last insertions into a node, each beside the one before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Run {
    /// The position of the last inserted entry or child.
    pub(crate) at: usize,
    /// The number of these insertions. Higher numbers count as this one.
    pub(crate) len: usize,
}

impl Run {
    const MOST: usize = 255;

    /// The run after another insertion.
    pub(crate) fn after(before: Option<Self>, at: usize) -> Self {
        let beside = before.filter(|before| before.at == at || before.at + 1 == at);
        Self { at, len: beside.map_or(1, |before| (before.len + 1).min(Self::MOST)) }
    }
}

/// The bytes of the head. Keys may have an alignment of 16 bytes in models.
pub(super) const HEAD: usize = size_of::<Head>();

/// The layout of the smallest inner node.
pub(crate) const INNER: NodeLayout = NodeLayout {
    kind: "inner",
    size: LINE,
    align: 8,
    search: &[Field::new("len", 0, 8), Field::new("keys", HEAD, 8)],
    found: &[],
};

/// The layout of the smallest leaf.
pub(crate) const LEAF: NodeLayout = NodeLayout {
    kind: "leaf",
    size: LINE,
    align: 8,
    search: &[],
    found: &[Field::new("len", 0, 8), Field::new("keys", HEAD, 8)],
};

/// The bytes of an entry of a leaf, or of a child and its bound.
pub(super) const fn entry_bytes<K: Slots + ?Sized>(is_leaf: bool) -> usize {
    let word = if is_leaf && !K::HAS_VALUES {
        0
    } else if size_of::<Place>() > size_of::<AtomicU64>() {
        size_of::<Place>()
    } else {
        size_of::<AtomicU64>()
    };
    size_of::<K::Place>() + word
}

/// The bytes of a node with room for some entries: whole lines, so that it begins at one.
pub(crate) const fn bytes<K: Slots + ?Sized>(is_leaf: bool, capacity: usize) -> usize {
    (HEAD + capacity * entry_bytes::<K>(is_leaf)).next_multiple_of(LINE)
}

/// The entries that a node of some lines has room for.
const fn capacity_of<K: Slots + ?Sized>(is_leaf: bool, lines: usize) -> usize {
    (LINE * lines - HEAD) / entry_bytes::<K>(is_leaf)
}

/// The most entries of a node.
pub(crate) const fn max_entries<K: Slots + ?Sized>(is_leaf: bool) -> usize {
    if cfg!(silvics_shuttle) { 3 } else { capacity_of::<K>(is_leaf, MAX_LINES) }
}

/// The room of a node that is made for some entries, with a line for others if it `grows`.
pub(crate) const fn room_for<K: Slots + ?Sized>(
    is_leaf: bool,
    entries: usize,
    grows: bool,
) -> usize {
    let bytes = HEAD + entries * entry_bytes::<K>(is_leaf);
    let lines = bytes.div_ceil(LINE) + if grows { 1 } else { 0 };
    let capacity = capacity_of::<K>(is_leaf, lines);
    let most = max_entries::<K>(is_leaf);
    if capacity < most { capacity } else { most }
}

/// The room of a node for some entries, if nodes have one of a few sizes: one line, three, or all.
pub(crate) const fn coarse_room_for<K: Slots + ?Sized>(is_leaf: bool, entries: usize) -> usize {
    let lines = match (HEAD + entries * entry_bytes::<K>(is_leaf)).div_ceil(LINE) {
        0 | 1 => 1,
        2 | 3 => 3,
        _ => MAX_LINES,
    };
    let (capacity, most) = (capacity_of::<K>(is_leaf, lines), max_entries::<K>(is_leaf));
    if capacity < most { capacity } else { most }
}

/// The room of a node that replaces a full one with room for `capacity` entries.
pub(crate) const fn more<K: Slots + ?Sized>(is_leaf: bool, capacity: usize) -> usize {
    room_for::<K>(is_leaf, capacity + 1 + capacity / 8, false)
}

/// A container node that is not reclaimed during `'g`.
pub(crate) struct NodeRef<'g, K: Slots + ?Sized> {
    word: Word,
    marker: PhantomData<&'g K>,
}

impl<K: Slots + ?Sized> Clone for NodeRef<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Slots + ?Sized> Copy for NodeRef<'_, K> {}

impl<'g, K: Slots + ?Sized> NodeRef<'g, K> {
    /// # Safety
    /// The word leads to a container node of such keys that is initialised and not reclaimed during
    /// `'g`.
    #[inline(always)]
    pub(crate) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    /// Initialises a node without entries.
    ///
    /// # Safety
    /// `word` leads to as many bytes as [`bytes`] says for its capacity, which nobody else has.
    pub(crate) unsafe fn init(word: Word) -> Self {
        // SAFETY: our contract.
        unsafe { Self::init_from(word, 0) }
    }

    /// Initialises a node without entries, except the places of the first `filled` ones.
    ///
    /// # Safety
    /// That of [`NodeRef::init`]. [`NodeRef::copy`] and [`NodeRef::put`] initialise these places
    /// before another thread gets the node, or nobody reads them.
    pub(crate) unsafe fn init_from(word: Word, filled: usize) -> Self {
        let from = if COPIES_WORDS { filled } else { 0 };
        // SAFETY: our contract: there is room for all fields.
        unsafe {
            let node = Self::new(word);
            word.object().cast::<Head>().write(Head { len: AtomicU64::new(0) });
            for at in from..word.capacity() {
                node.key_place(at).write(K::place(K::unused()));
                if word.kind() == Kind::Inner {
                    node.word_place::<Place>(at).write(Place::new(Word::NONE));
                } else if K::HAS_VALUES {
                    node.word_place::<AtomicU64>(at).write(AtomicU64::new(0));
                }
            }
            node
        }
    }

    pub(crate) fn word(self) -> Word {
        self.word
    }

    pub(crate) fn is_leaf(self) -> bool {
        self.word.kind() == Kind::Leaf
    }

    pub(crate) fn capacity(self) -> usize {
        self.word.capacity()
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: N1: a node begins with its head, and is not reclaimed during `'g`.
        unsafe { &*touch(self.word.address()).cast::<Head>() }
    }

    /// The number of entries or children.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        // Relaxed, as all accesses of a node: the lock of the base node orders them.
        (self.head().len.load(Ordering::Relaxed) as u32 as usize).min(self.capacity())
    }

    /// Sets the number of entries or children. There is no run then.
    pub(crate) fn set_len(self, len: usize) {
        self.set_head(len, None);
    }

    /// Sets the number of entries or children, and the last run of insertions.
    pub(super) fn set_head(self, len: usize, run: Option<Run>) {
        debug_assert!(len <= self.capacity());
        let run = run.map_or(0, |run| (run.len as u64) << 16 | run.at as u64);
        self.head().len.store(run << 32 | len as u64, Ordering::Relaxed);
    }

    /// The last run of insertions. Nothing if positions have changed in another way since.
    pub(crate) fn run(self) -> Option<Run> {
        let run = (self.head().len.load(Ordering::Relaxed) >> 32) as usize;
        (run > 0).then_some(Run { at: run & 0xFFFF, len: run >> 16 })
    }

    pub(crate) fn set_run(self, run: Option<Run>) {
        self.set_head(self.len(), run);
    }

    /// The height of a node of an AVL tree.
    #[inline(always)]
    pub(super) fn height(self) -> u64 {
        self.head().len.load(Ordering::Relaxed)
    }

    pub(super) fn set_height(self, height: u64) {
        self.head().len.store(height, Ordering::Relaxed);
    }

    #[inline(always)]
    fn key_place(self, at: usize) -> *mut K::Place {
        debug_assert!(at < self.capacity());
        self.word.address().wrapping_byte_add(HEAD).cast::<K::Place>().wrapping_add(at)
    }

    /// The place of a value or a child.
    #[inline(always)]
    fn word_place<T>(self, at: usize) -> *mut T {
        debug_assert!(at < self.capacity());
        let offset = HEAD + self.capacity() * size_of::<K::Place>();
        self.word.address().wrapping_byte_add(offset).cast::<T>().wrapping_add(at)
    }

    #[inline(always)]
    pub(crate) fn key(self, at: usize) -> K::Slot {
        // SAFETY: N1: a node has a key for each entry that it has room for. It is not reclaimed
        // during `'g`.
        K::load(unsafe { &*self.key_place(at) })
    }

    pub(crate) fn set_key(self, at: usize, slot: K::Slot) {
        // SAFETY: as in `key`.
        K::store(unsafe { &*self.key_place(at) }, slot);
    }

    #[inline(always)]
    pub(crate) fn value(self, at: usize) -> u64 {
        debug_assert!(self.word.kind() != Kind::Inner);
        if !K::HAS_VALUES {
            return 0;
        }
        // SAFETY: N1: a leaf has a value for each entry that it has room for. It is not reclaimed
        // during `'g`.
        unsafe { &*self.word_place::<AtomicU64>(at) }.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_value(self, at: usize, value: u64) {
        debug_assert!(self.word.kind() != Kind::Inner);
        if !K::HAS_VALUES {
            return;
        }
        // SAFETY: as in `value`.
        unsafe { &*self.word_place::<AtomicU64>(at) }.store(value, Ordering::Relaxed);
    }

    /// The place of a child.
    #[inline(always)]
    pub(crate) fn child_place(self, at: usize) -> &'g Place {
        debug_assert!(!self.is_leaf());
        // SAFETY: N1: an inner node has a place for each child that it has room for. It is not
        // reclaimed during `'g`.
        unsafe { &*self.word_place::<Place>(at) }
    }

    #[inline(always)]
    pub(crate) fn child(self, at: usize) -> Word {
        self.child_place(at).word()
    }

    /// Prefetches the keys of a node. A search reads some lines of them, one after the other.
    #[inline(always)]
    pub(crate) fn prefetch_keys(word: Word) {
        Self::prefetch(word, HEAD + word.capacity() * size_of::<K::Place>());
    }

    /// Prefetches a node.
    #[inline]
    pub(super) fn prefetch_all(word: Word) {
        Self::prefetch(word, bytes::<K>(word.kind() == Kind::Leaf, word.capacity()));
    }

    #[inline(always)]
    fn prefetch(word: Word, bytes: usize) {
        for line in (0..bytes).step_by(LINE) {
            prefetch(word.address().wrapping_byte_add(line));
        }
    }

    /// Puts an entry or a child into its place, which need not be initialised. No other thread has
    /// the node yet.
    pub(crate) fn put(self, at: usize, (key, item): (K::Slot, Item)) {
        assert!(at < self.capacity());
        if !COPIES_WORDS {
            self.set_key(at, key);
            match item {
                Item::Value(value) => self.set_value(at, value),
                Item::Child(child) => self.child_place(at).link(child),
            }
            return;
        }
        // SAFETY: N1: the node has these places, and nobody else has the node.
        unsafe {
            self.key_place(at).write(K::place(key));
            match item {
                Item::Value(value) if K::HAS_VALUES => {
                    self.word_place::<AtomicU64>(at).write(AtomicU64::new(value));
                }
                Item::Value(_) => {}
                Item::Child(child) => self.word_place::<Place>(at).write(Place::new(child)),
            }
        }
    }

    /// Copies entries of another node, which does not change meanwhile, to a position of this one,
    /// which is not that one, and which no other thread has yet.
    pub(crate) fn copy(self, to: usize, other: NodeRef<'_, K>, entries: std::ops::Range<usize>) {
        let (from, len) = (entries.start, entries.len());
        if len == 0 {
            return;
        }
        debug_assert!(to + len <= self.capacity() && entries.end <= other.capacity());
        debug_assert!(self.word.kind() == other.word.kind());
        if COPIES_WORDS {
            // SAFETY: N1: both nodes have as many places. No thread writes the entries of the other
            // one, and no other thread has this one.
            unsafe {
                self.key_place(to).copy_from_nonoverlapping(other.key_place(from), len);
                if K::HAS_VALUES || !self.is_leaf() {
                    let words = other.word_place::<Place>(from);
                    self.word_place::<Place>(to).copy_from_nonoverlapping(words, len);
                }
            }
            return;
        }
        for (to, from) in (to..).zip(entries) {
            self.set_key(to, other.key(from));
            if self.is_leaf() {
                self.set_value(to, other.value(from));
            } else {
                self.child_place(to).link(other.child(from));
            }
        }
    }

    /// Copies the entries `from..` of another node behind those that this one has.
    pub(crate) fn append(self, other: NodeRef<'_, K>, entries: std::ops::Range<usize>) {
        let (before, len) = (self.len(), entries.len());
        self.copy(before, other, entries);
        self.set_len(before + len);
    }

    /// Moves the entries from `at` on by one place, and returns their new number.
    fn shift_up(self, at: usize) -> usize {
        let len = self.len();
        for entry in (at..len).rev() {
            self.set_key(entry + 1, self.key(entry));
            if self.is_leaf() {
                self.set_value(entry + 1, self.value(entry));
            } else {
                self.child_place(entry + 1).link(self.child(entry));
            }
        }
        len + 1
    }

    /// Puts an entry at a position. The leaf has room.
    pub(crate) fn insert(self, at: usize, (key, value): (K::Slot, u64)) {
        let run = Run::after(self.run(), at);
        let len = self.shift_up(at);
        self.set_key(at, key);
        self.set_value(at, value);
        self.set_head(len, Some(run));
    }

    /// Puts a child at a position, and the bound before it. The inner node has room.
    pub(crate) fn insert_child(self, at: usize, (bound, child): (K::Slot, Word)) {
        let run = Run::after(self.run(), at);
        let len = self.shift_up(at);
        self.set_key(at, bound);
        self.child_place(at).link(child);
        self.set_head(len, Some(run));
    }

    /// Removes the entry or the child at a position.
    pub(crate) fn remove(self, at: usize) {
        let len = self.len() - 1;
        for entry in at..len {
            self.set_key(entry, self.key(entry + 1));
            if self.is_leaf() {
                self.set_value(entry, self.value(entry + 1));
            } else {
                self.child_place(entry).link(self.child(entry + 1));
            }
        }
        self.set_len(len);
    }

    /// The bytes that a search reads before it goes on with a child, or ends with an entry.
    pub(crate) fn looked_at(self, at: usize) -> impl Iterator<Item = Read> {
        let (layout, why): (&'static NodeLayout, _) =
            if self.is_leaf() { (&LEAF, Why::Found) } else { (&INNER, Why::Step) };
        // A search for an absent key may end behind the last entry.
        let at = at.min(self.capacity() - 1);
        let node = self.word.address().cast_const();
        let (key, word) = (self.key_place(at), self.word_place::<u64>(at));
        let offset = |address: usize| address - node.addr();
        let has_word = K::HAS_VALUES || !self.is_leaf();
        let word = has_word.then(|| layout.read(node, offset(word.addr()), 8, why));
        [
            layout.read(node, 0, 8, why),
            layout.read(node, offset(key.addr()), size_of::<K::Place>(), why),
        ]
        .into_iter()
        .chain(word)
    }

    pub(crate) fn placed(self) -> Placed {
        let layout = match self.word.kind() {
            Kind::Avl => &AVL,
            Kind::Leaf => &LEAF,
            _ => &INNER,
        };
        let (object, bytes) = Self::extent(self.word);
        Placed { layout, address: object.as_ptr().addr(), before: 0, bytes }
    }

    /// The memory of the node.
    pub(crate) fn extent(word: Word) -> (NonNull<u8>, usize) {
        let is_avl = word.kind() == Kind::Avl;
        let is_leaf = word.kind() == Kind::Leaf;
        let bytes = if is_avl { avl::bytes::<K>() } else { bytes::<K>(is_leaf, word.capacity()) };
        (word.object(), bytes)
    }
}

const _: () = assert!(HEAD == 8 || cfg!(any(silvics_loom, silvics_shuttle)));
