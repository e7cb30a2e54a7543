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

/// A node of a variable number of bytes that grows both ways from where pointers to it lead: its
/// tower downwards, so that the link at a level is at the same place whatever the height; the rest
/// upwards.
/// ```text
/// u64:  … [link 1][link 0] | [key 8][value 8][references 4][unused 4]
/// [u8]: … [link 1][link 0] | [value 8][references 4][length, 7 bits a byte][key]
/// ```
/// Never a value; only pointers to it exist, with the provenance of the whole allocation.
pub struct Node<K: ?Sized>(PhantomData<K>);

/// Bytes of a link.
const LINK: usize = 8;
const _: () = assert!(size_of::<AtomicLink<u64>>() == LINK);

/// The smallest node with a `u64` key: height 1.
pub const INTEGER_NODE: NodeLayout = NodeLayout {
    kind: "node",
    size: 32,
    align: 8,
    search: &[Field::links("tower", 0, 1), Field::new("key", 8, 8)],
    found: &[Field::new("key", 8, 8), Field::new("value", 16, 8)],
};

/// The smallest node with a byte-string key: height 1, empty key. The key comes last, and is read
/// only where the hints do not decide.
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

/// Bytes of a node with this key and height.
pub(super) fn node_bytes<K: SkipKey + ?Sized>(key: K::Ref<'_>, height: usize) -> usize {
    LINK * height + K::body_bytes(key)
}

impl<K: SkipKey + ?Sized> Node<K> {
    /// Initialises a node that nobody else can reach: its links lead nowhere, and it counts one
    /// reference for each level it is to be linked in (I4).
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
        // SAFETY: the caller's promise; tower and body lie within the node.
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

    /// Where the memory of an initialised node starts, and its bytes: how its pool learns what
    /// comes back.
    ///
    /// # Safety
    /// `node` is an initialised node, with the provenance of its whole allocation.
    pub(super) unsafe fn extent(node: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let node = NodeRef::<K>::from_ptr(node.cast());
            let memory = node.node.byte_sub(LINK * node.height()).cast();
            (memory, node_bytes::<K>(node.key(), node.height()))
        }
    }
}

/// A node that is not reclaimed as long as `'g` lasts.
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
    /// The node is initialised and not reclaimed as long as `'g` lasts.
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
        // SAFETY: I1, and the type's promise.
        unsafe { self.node.byte_add(K::VALUE + 8).cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn key(self) -> K::Ref<'g> {
        K::read(self)
    }

    #[inline(always)]
    pub(super) fn value(self) -> u64 {
        // SAFETY: I1, and the type's promise.
        unsafe { touch(self.as_ptr()).byte_add(K::VALUE).cast::<u64>().read() }
    }

    #[inline(always)]
    pub(super) fn height(self) -> usize {
        self.references_word().height()
    }

    /// The references that keep the node: levels it is linked in, or is to be, and cursors.
    pub(super) fn references(self) -> u32 {
        self.references_word().count()
    }

    /// Takes a reference, unless the last one is gone already.
    #[must_use]
    pub(super) fn try_refer(self) -> bool {
        self.references_word().try_add()
    }

    /// Gives `count` references up.
    pub(super) fn unrefer(self, count: usize) -> Dropped {
        self.references_word().give_up(count)
    }

    #[inline(always)]
    fn link(self, level: usize) -> &'g AtomicLink<K> {
        debug_assert!(level < self.height());
        // SAFETY: I1, the tower has `height` links.
        unsafe { self.node.byte_sub(LINK * (level + 1)).cast().as_ref() }
    }

    /// The link at `level`; what it leads to is initialised.
    #[inline(always)]
    pub(super) fn next(self, level: usize) -> Link<'g, K> {
        Link { word: self.link(level).0.load(Ordering::SeqCst), marker: PhantomData }
    }

    /// Starts to bring what a search reads of the node into the cache: the link at `level`, the key, and
    /// the value.
    #[inline(always)]
    pub(super) fn prefetch(self, level: usize) {
        let node = self.as_ptr().cast::<u8>();
        prefetch(node.wrapping_sub(LINK * (level + 1)));
        prefetch(node.wrapping_add(8));
    }

    /// Sets a link of a node nobody else can reach yet.
    pub(super) fn set_next_unshared(self, level: usize, link: Link<'_, K>) {
        self.link(level).0.store(link.word, Ordering::Relaxed);
    }

    /// Where the parts of a node are counted from in its layout: at its lowest link.
    pub(super) fn layout_start(self) -> *const u8 {
        self.as_ptr().cast_const().cast::<u8>().wrapping_sub(LINK)
    }

    /// Where it lies, with all its links.
    pub(super) fn placed(self) -> Placed {
        Placed {
            layout: &K::NODE,
            address: self.layout_start().addr(),
            before: LINK * (self.height() - 1),
            bytes: node_bytes::<K>(self.key(), self.height()),
        }
    }

    /// What a search reads of a node that it comes to at `level`.
    pub(super) fn passed(self, level: usize) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &K::NODE;
        let start = self.layout_start();
        let link = layout.read(start, (LINK * level).wrapping_neg(), LINK, Why::Step);
        let others = layout.search.iter().filter(|field| field.links == 0);
        let rest =
            others.map(move |field| layout.read(start, field.offset, field.bytes, Why::Step));
        std::iter::once(link).chain(rest)
    }

    /// What it reads in addition of a node whose key it compares to its own.
    pub(super) fn looked_at(self) -> Option<Read> {
        let (layout, bytes): (&'static NodeLayout, _) =
            (&K::NODE, K::body_bytes(self.key()) - K::BODY);
        (bytes > 0).then(|| layout.read(self.layout_start(), LINK + K::BODY, bytes, Why::Step))
    }

    /// What it reads of the node that it ends in.
    pub(super) fn ended(self) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &K::NODE;
        layout.ended(self.layout_start())
    }

    /// Replaces an unmarked link.
    #[inline]
    #[must_use]
    pub(super) fn try_link(self, level: usize, current: Link<'_, K>, new: Link<'_, K>) -> bool {
        debug_assert!(!current.is_marked() || planted(Canary::UpdateReplacesRemoved));
        self.link(level)
            .0
            .compare_exchange(current.word, new.word, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Marks the link at `level`, unless it is marked.
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

/// Whose mark it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "who marks level 0 has removed the key"]
pub(super) enum Marked {
    /// This call's.
    Now,
    /// An earlier one's.
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

/// The value of a link: the next node, a hint about its key, and whether the node the link belongs
/// to is removed.
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
    /// Leads nowhere, with a hint that says so to all but the targets it cannot tell from the last
    /// key there is.
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

    /// The node it leads to.
    #[inline(always)]
    pub(super) fn node(self) -> Option<NodeRef<'g, K>> {
        let node = NonNull::new(self.word.pointer())?;
        Some(NodeRef { node, marker: PhantomData })
    }

    /// Starts to bring the next node's lowest links and the fields behind them into the cache.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        let node = self.word.pointer().cast::<u8>();
        prefetch(node.wrapping_sub(LINK));
        prefetch(node.wrapping_add(16));
    }
}
