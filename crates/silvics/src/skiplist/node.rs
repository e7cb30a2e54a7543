//! Nodes, and every access to their words.

use super::key::SkipKey;
use super::references::{Dropped, References};
use crate::canary::{Canary, planted};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::Ordering;
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use silvics_sync::tagged::{AtomicTagged, Tagged};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The tallest tower: enough for 2^35 keys of either type.
pub(super) const MAX_HEIGHT: usize = 48;

/// A node of a variable number of bytes. Pointers lead into its middle: its tower lies below, so
/// that the link at a level has a fixed offset for any height, and the other fields lie above.
/// ```text
/// u64:  … [link 1][link 0] | [key 8][value 8][references 4][unused 4]
/// [u8]: … [link 1][link 0] | [value 8][references 4][length, 7 bits a byte][key]
/// ```
/// No value of this type exists; there are only pointers, with the provenance of the whole
/// allocation.
pub struct Node<K: ?Sized>(PhantomData<K>);

/// The bytes of a link.
const LINK: usize = 8;
const _: () = assert!(size_of::<AtomicLink<u64>>() == LINK);

/// The layout of the smallest node with a `u64` key: height 1.
pub const INTEGER_NODE: NodeLayout = NodeLayout {
    kind: "node",
    size: 32,
    align: 8,
    search: &[Field::links("tower", 0, 1), Field::new("key", 8, 8)],
    found: &[Field::new("key", 8, 8), Field::new("value", 16, 8)],
};

/// The layout of the smallest node with a byte-string key: height 1, empty key. The key is the last
/// field, and a search reads it only if the hints do not decide.
pub const BYTES_NODE: NodeLayout = NodeLayout {
    kind: "node",
    size: 21,
    align: 8,
    search: &[Field::links("tower", 0, 1)],
    found: &[Field::new("length, key", 20, 1), Field::new("value", 8, 8)],
};

const _: () = assert!(INTEGER_NODE.size == LINK + u64::BODY);
const _: () = assert!(BYTES_NODE.size == LINK + <[u8]>::BODY + 1);
const _: () = assert!(matches!(INTEGER_NODE.straddling(64), (0, 2)));

/// The bytes of a node with this key and height.
pub(super) fn node_bytes<K: SkipKey + ?Sized>(key: K::Ref<'_>, height: usize) -> usize {
    LINK * height + K::body_bytes(key)
}

impl<K: SkipKey + ?Sized> Node<K> {
    /// Initialises a node that no other thread can reach. Its links lead to no node, and it counts
    /// one reference for each level that it will be linked in (I4).
    ///
    /// # Safety
    /// `memory` has `node_bytes(key, height)` bytes, 8-byte aligned, and is the caller's alone.
    pub(super) unsafe fn init<'g>(
        memory: NonNull<u8>,
        key: K::Ref<'_>,
        value: u64,
        height: usize,
    ) -> NodeRef<'g, K> {
        debug_assert!((1..=MAX_HEIGHT).contains(&height));
        // SAFETY: the caller promises `node_bytes(key, height)` aligned bytes that no other thread
        // has. Tower and body lie within them.
        unsafe {
            let tower = memory.cast::<AtomicLink<K>>();
            for level in 0..height {
                tower.add(level).write(AtomicLink::new(Link::END));
            }
            let node = memory.byte_add(LINK * height).cast::<Self>();
            node.byte_add(K::VALUE).cast::<u64>().write(value);
            node.byte_add(K::VALUE + 8).cast::<References>().write(References::new(height));
            K::write(node, key);
            NodeRef { node, marker: PhantomData }
        }
    }

    /// The start of an initialised node's memory, and its bytes. Its pool needs both to free it.
    ///
    /// # Safety
    /// `node` is an initialised node, with the provenance of its whole allocation.
    pub(super) unsafe fn extent(node: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: I1: the caller promises an initialised node with the provenance of its
        // allocation, which begins `height` links before it.
        unsafe {
            let node = NodeRef::<K>::from_ptr(node.cast());
            let memory = node.node.byte_sub(LINK * node.height()).cast();
            (memory, node_bytes::<K>(node.key(), node.height()))
        }
    }
}

/// Whether an update may replace a marked link: never.
#[inline(always)]
fn may_replace_marked() -> bool {
    planted(Canary::UpdateReplacesRemoved)
}

/// A node that is not reclaimed during `'g`.
pub struct NodeRef<'g, K: ?Sized> {
    node: NonNull<Node<K>>,
    marker: PhantomData<&'g Node<K>>,
}

impl<K: ?Sized> Clone for NodeRef<'_, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for NodeRef<'_, K> {}

impl<K: ?Sized> PartialEq for NodeRef<'_, K> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<'g, K: SkipKey + ?Sized> NodeRef<'g, K> {
    /// # Safety
    /// The node is initialised, and is not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn from_ptr(node: NonNull<Node<K>>) -> Self {
        Self { node, marker: PhantomData }
    }

    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut Node<K> {
        self.node.as_ptr()
    }

    #[inline(always)]
    pub(super) fn as_non_null(self) -> NonNull<Node<K>> {
        self.node
    }

    #[inline(always)]
    fn references_word(self) -> &'g References {
        // SAFETY: I1: the word was written before the node could be reached. The type promises that
        // the node is not reclaimed during `'g`.
        unsafe { self.node.byte_add(K::VALUE + 8).cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn key(self) -> K::Ref<'g> {
        K::read(self)
    }

    #[inline(always)]
    pub(super) fn value(self) -> u64 {
        // SAFETY: I1: the word was written before the node could be reached. The type promises that
        // the node is not reclaimed during `'g`.
        unsafe { touch(self.as_ptr()).byte_add(K::VALUE).cast::<u64>().read() }
    }

    #[inline(always)]
    pub(super) fn height(self) -> usize {
        self.references_word().height()
    }

    /// The number of references that keep the node: the levels that link it, those that its builder
    /// will link, and cursors.
    pub(super) fn references(self) -> u32 {
        self.references_word().count()
    }

    /// Takes a reference. Returns false if the last one is gone.
    #[must_use]
    pub(super) fn try_refer(self) -> bool {
        self.references_word().try_add()
    }

    /// Gives up `count` references.
    pub(super) fn unrefer(self, count: usize) -> Dropped {
        self.references_word().give_up(count)
    }

    #[inline(always)]
    fn link(self, level: usize) -> &'g AtomicLink<K> {
        debug_assert!(level < self.height());
        // SAFETY: I1: the tower has `height` links, and `level` is below `height`. The type
        // promises that the node is not reclaimed during `'g`.
        unsafe { self.node.byte_sub(LINK * (level + 1)).cast().as_ref() }
    }

    /// The link at `level`. The node that it leads to is initialised.
    #[inline(always)]
    pub(super) fn next(self, level: usize) -> Link<'g, K> {
        Link { word: self.link(level).0.load(Ordering::SeqCst), marker: PhantomData }
    }

    /// Prefetches the fields that a search reads: the link at `level`, the key and the value.
    #[inline(always)]
    pub(super) fn prefetch(self, level: usize) {
        let node = self.as_ptr().cast::<u8>();
        prefetch(node.wrapping_sub(LINK * (level + 1)));
        prefetch(node.wrapping_add(8));
    }

    /// Sets a link of a node that no other thread can reach yet.
    pub(super) fn set_next_unshared(self, level: usize, link: Link<'_, K>) {
        self.link(level).0.store(link.word, Ordering::Relaxed);
    }

    /// The address that the layout's offsets count from: the node's lowest link.
    pub(super) fn layout_start(self) -> *const u8 {
        self.as_ptr().cast_const().cast::<u8>().wrapping_sub(LINK)
    }

    /// The position of the node in memory, with all its links.
    pub(super) fn placed(self) -> Placed {
        Placed {
            layout: &K::NODE,
            address: self.layout_start().addr(),
            before: LINK * (self.height() - 1),
            bytes: node_bytes::<K>(self.key(), self.height()),
        }
    }

    /// The fields that a search reads of a node that it reaches at `level`.
    pub(super) fn passed(self, level: usize) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &K::NODE;
        let start = self.layout_start();
        let link = layout.read(start, (LINK * level).wrapping_neg(), LINK, Why::Step);
        let others = layout.search.iter().filter(|field| field.links == 0);
        let rest =
            others.map(move |field| layout.read(start, field.offset, field.bytes, Why::Step));
        std::iter::once(link).chain(rest)
    }

    /// The bytes that a search reads in addition if it compares the node's key to its target.
    pub(super) fn looked_at(self) -> Option<Read> {
        let (layout, bytes): (&'static NodeLayout, _) =
            (&K::NODE, K::body_bytes(self.key()) - K::BODY);
        (bytes > 0).then(|| layout.read(self.layout_start(), LINK + K::BODY, bytes, Why::Step))
    }

    /// The fields that a search reads of the node that it ends at.
    pub(super) fn ended(self) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &K::NODE;
        layout.ended(self.layout_start())
    }

    /// Replaces the unmarked link `current` by `new`. Returns false if the link has changed.
    #[inline]
    #[must_use]
    pub(super) fn try_link(self, level: usize, current: Link<'_, K>, new: Link<'_, K>) -> bool {
        debug_assert!(!current.is_marked() || may_replace_marked());
        self.link(level)
            .0
            .compare_exchange(current.word, new.word, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Marks the link at `level`, and returns whether this call or an earlier one has marked it.
    pub(super) fn mark(self, level: usize) -> Marked {
        loop {
            let link = self.next(level);
            if link.is_marked() {
                return Marked::Before;
            }
            if self.try_link(level, link, link.marked()) {
                return Marked::Now;
            }
        }
    }
}

/// The call that has marked a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the call that marks level 0 has removed the key"]
pub(super) enum Marked {
    /// This call has marked the link.
    Now,
    /// An earlier call has marked the link.
    Before,
}

/// A link in memory.
struct AtomicLink<K: ?Sized>(AtomicTagged<Node<K>>);

impl<K: ?Sized> AtomicLink<K> {
    fn new(link: Link<'_, K>) -> Self {
        Self(AtomicTagged::new(link.word))
    }
}

const MARK: usize = 1;

/// The value of a link: the next node, a hint about its key, and a mark that says whether the
/// link's own node is removed.
pub(super) struct Link<'g, K: ?Sized> {
    word: Tagged<Node<K>>,
    marker: PhantomData<&'g Node<K>>,
}

impl<K: ?Sized> Clone for Link<'_, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for Link<'_, K> {}

impl<'g, K: SkipKey + ?Sized> Link<'g, K> {
    /// The link that leads to no node. Its hint is after every target, except for targets that a
    /// hint cannot distinguish from the last possible key.
    pub(super) const END: Self =
        Self { word: Tagged::null_with_hint(u16::MAX), marker: PhantomData };

    #[inline]
    pub(super) fn to(node: NodeRef<'g, K>, hint: u16) -> Self {
        Self { word: Tagged::new(node.as_ptr()).with_hint(hint), marker: PhantomData }
    }

    #[inline(always)]
    pub(super) fn is_marked(self) -> bool {
        self.word.tag() & MARK != 0
    }

    #[inline(always)]
    pub(super) fn hint(self) -> u16 {
        self.word.hint()
    }

    #[inline(always)]
    pub(super) fn marked(self) -> Self {
        Self { word: self.word.with_tag(MARK), marker: PhantomData }
    }

    #[inline(always)]
    pub(super) fn unmarked(self) -> Self {
        Self { word: self.word.with_tag(0), marker: PhantomData }
    }

    /// The node that the link leads to.
    #[inline(always)]
    pub(super) fn node(self) -> Option<NodeRef<'g, K>> {
        let node = NonNull::new(self.word.pointer())?;
        Some(NodeRef { node, marker: PhantomData })
    }

    /// Prefetches the next node's lowest links and the fields behind them.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        let node = self.word.pointer().cast::<u8>();
        prefetch(node.wrapping_sub(LINK));
        prefetch(node.wrapping_add(16));
    }
}
