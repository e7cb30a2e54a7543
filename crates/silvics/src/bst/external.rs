//! The nodes of external trees: a leaf is an entry, an internal node routes.
//!
//! | type | what it is | bytes |
//! |---|---|---|
//! | [`Inner`] | an internal node alone | 24, and its control word |
//! | [`Leaf`] | a leaf alone | 16 |
//! | [`Either`] | an internal node or a leaf, as in published implementations (which have the value behind the key) | 32, and the control word |
//!
//! A tree chooses its [`EdgeCell`]. It also chooses the word by which operations control an
//! internal node, which is `()` if the edges suffice, and, with `A`, the alignment of its nodes.
//! The fields that a search reads, the key and the edges, come first in each node.

use super::align;
use super::home::{Lives, NodeStore};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::Placement;
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use silvics_sync::tagged::Tagged;
use std::mem::offset_of;
use std::ptr::NonNull;

/// An edge in memory.
pub trait EdgeCell: Send + Sync + 'static {
    /// The value of the edge.
    type Edge: Copy;
    /// The value of the edges in a leaf whose type has room for children. It is never followed.
    const NONE: Self::Edge;

    /// Makes an edge with the value `edge`.
    fn new(edge: Self::Edge) -> Self;
}

/// An internal node, which routes keys up to its own to the left.
pub trait InnerWords: Sized + Send + Sync + 'static {
    /// The type of its edges.
    type Cell: EdgeCell;
    /// The type of the word by which operations control it.
    type Control;
    /// The layout of the object that is or contains an internal node.
    const INNER: NodeLayout;

    /// Makes a node that is not linked yet.
    fn new(key: u64, children: [<Self::Cell as EdgeCell>::Edge; 2]) -> Self;
    /// The largest key that belongs on the left.
    fn key(&self) -> u64;
    /// The left and right edges.
    fn children(&self) -> &[Self::Cell; 2];
    /// The control word.
    fn control(&self) -> &Self::Control;
}

/// A leaf, which is an entry. It never changes once it can be reached; an update replaces it.
pub trait LeafWords: Sized + Send + Sync + 'static {
    /// The layout of the object that is or contains a leaf.
    const LEAF: NodeLayout;

    /// Makes a leaf that is not linked yet.
    fn new(key: u64, value: u64) -> Self;
    /// The key.
    fn key(&self) -> u64;
    /// The value.
    fn value(&self) -> u64;
}

/// An internal node that is an object of its own.
#[repr(C)]
pub struct Inner<E, C, A> {
    key: u64,
    children: [E; 2],
    control: C,
    align: [A; 0],
}

impl<E, C, A> Inner<E, C, A> {
    /// The layout of an internal node, with the fields that a search reads.
    pub const LAYOUT: NodeLayout = NodeLayout::of::<Self>(
        "inner",
        &[
            Field::new("key", offset_of!(Self, key), 8),
            Field::links("children", offset_of!(Self, children), 2),
        ],
        &[],
    );
}

impl<E, C, A> InnerWords for Inner<E, C, A>
where
    E: EdgeCell,
    C: Default + Send + Sync + 'static,
    A: Send + Sync + 'static,
{
    type Cell = E;
    type Control = C;
    const INNER: NodeLayout = Self::LAYOUT;

    #[inline(always)]
    fn new(key: u64, children: [E::Edge; 2]) -> Self {
        Self { key, children: children.map(E::new), control: C::default(), align: [] }
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self.key
    }
    #[inline(always)]
    fn children(&self) -> &[E; 2] {
        &self.children
    }
    #[inline(always)]
    fn control(&self) -> &C {
        &self.control
    }
}

/// A leaf that is an object of its own.
#[repr(C)]
pub struct Leaf {
    key: u64,
    value: u64,
}

impl Leaf {
    /// The layout of a leaf, with the fields that a search reads.
    pub const LAYOUT: NodeLayout = NodeLayout::of::<Self>(
        "leaf",
        &[
            Field::new("key", offset_of!(Self, key), 8),
            Field::new("value", offset_of!(Self, value), 8),
        ],
        &[
            Field::new("key", offset_of!(Self, key), 8),
            Field::new("value", offset_of!(Self, value), 8),
        ],
    );
}

impl LeafWords for Leaf {
    const LEAF: NodeLayout = Self::LAYOUT;

    #[inline(always)]
    fn new(key: u64, value: u64) -> Self {
        Self { key, value }
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self.key
    }
    #[inline(always)]
    fn value(&self) -> u64 {
        self.value
    }
}

/// An internal node or a leaf in one type. A leaf's children and control word are never used, nor
/// is an internal node's value.
#[repr(C)]
pub struct Either<E, C, A> {
    inner: Inner<E, C, align::Word>,
    value: u64,
    align: [A; 0],
}

impl<E, C, A> Either<E, C, A> {
    const ENTRY: &'static [Field] = &[
        Field::new("key", offset_of!(Inner<E, C, align::Word>, key), 8),
        Field::new("value", offset_of!(Self, value), 8),
    ];

    /// The layout: the fields that a search reads in an internal node that it passes, and in a
    /// leaf.
    pub const LAYOUT: NodeLayout = {
        assert!(offset_of!(Self, inner) == 0);
        let inner = Inner::<E, C, align::Word>::LAYOUT;
        NodeLayout::of::<Self>("node", inner.search, Self::ENTRY)
    };
}

impl<E, C, A> InnerWords for Either<E, C, A>
where
    E: EdgeCell,
    C: Default + Send + Sync + 'static,
    A: Send + Sync + 'static,
{
    type Cell = E;
    type Control = C;
    const INNER: NodeLayout = Self::LAYOUT;

    #[inline(always)]
    fn new(key: u64, children: [E::Edge; 2]) -> Self {
        Self { inner: Inner::new(key, children), value: 0, align: [] }
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self.inner.key
    }
    #[inline(always)]
    fn children(&self) -> &[E; 2] {
        &self.inner.children
    }
    #[inline(always)]
    fn control(&self) -> &C {
        &self.inner.control
    }
}

impl<E, C, A> LeafWords for Either<E, C, A>
where
    E: EdgeCell,
    C: Default + Send + Sync + 'static,
    A: Send + Sync + 'static,
{
    const LEAF: NodeLayout = Self::LAYOUT;

    #[inline(always)]
    fn new(key: u64, value: u64) -> Self {
        Self { inner: Inner::new(key, [E::NONE; 2]), value, align: [] }
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self.inner.key
    }
    #[inline(always)]
    fn value(&self) -> u64 {
        self.value
    }
}

/// The child of an edge.
pub(super) enum Child<'g, I, L> {
    /// An internal node.
    Inner(&'g I),
    /// A leaf.
    Leaf(&'g L),
}

/// The bit that says: the edge leads to a leaf.
const IS_LEAF: usize = 4;
/// The bits with which trees mark edges.
const MARKS: usize = 3;

/// The value of an edge that is never null: a child, the child's kind, and the tree's marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge(pub(super) Tagged<u8>);

impl Edge {
    /// The value of the edges of a holder, and of a leaf whose type has room for children. It is
    /// never followed.
    pub(super) const NONE: Self = Self(Tagged::null());

    /// An edge to an internal node.
    #[inline(always)]
    pub(super) fn to_inner<I>(inner: NonNull<I>) -> Self {
        const { assert!(align_of::<I>() > MARKS | IS_LEAF) };
        Self(Tagged::new(inner.as_ptr().cast()))
    }

    /// An edge to a leaf.
    #[inline(always)]
    pub(super) fn to_leaf<L>(leaf: NonNull<L>) -> Self {
        const { assert!(align_of::<L>() > MARKS | IS_LEAF) };
        Self(Tagged::new(leaf.as_ptr().cast()).with_tag(IS_LEAF))
    }

    /// Whether the edge leads to a leaf.
    #[inline(always)]
    pub(super) fn is_leaf(self) -> bool {
        self.0.tag() & IS_LEAF != 0
    }

    /// Whether all bits of `mark` are set. A mark is made of the lowest two bits.
    #[inline(always)]
    pub(super) fn has(self, mark: usize) -> bool {
        self.0.tag() & mark == mark
    }

    /// The edge with `mark` added.
    pub(super) fn with(self, mark: usize) -> Self {
        Self(self.0.with_tag(self.0.tag() | mark))
    }

    /// The edge with `mark` removed.
    #[inline(always)]
    pub(super) fn without(self, mark: usize) -> Self {
        Self(self.0.with_tag(self.0.tag() & !mark))
    }

    /// The internal node that the edge leads to.
    pub(super) fn inner_ptr<I>(self) -> NonNull<I> {
        debug_assert!(!self.is_leaf());
        // SAFETY: I1 of the tree: an edge that is followed is not null.
        unsafe { NonNull::new_unchecked(self.0.pointer()) }.cast()
    }

    /// The leaf that the edge leads to.
    pub(super) fn leaf_ptr<L>(self) -> NonNull<L> {
        debug_assert!(self.is_leaf());
        // SAFETY: I1 of the tree: an edge that is followed is not null.
        unsafe { NonNull::new_unchecked(self.0.pointer()) }.cast()
    }

    /// Prefetches the bytes that a search reads from the internal node at the end of the edge.
    #[inline(always)]
    pub(super) fn prefetch<I: InnerWords>(self) {
        let node = self.0.pointer().cast::<u8>();
        prefetch(node);
        if const { I::INNER.straddling(64).0 > 0 } {
            prefetch(node.wrapping_add(const { I::INNER.search_end() - 1 }));
        }
    }

    /// Follows the edge.
    ///
    /// # Safety
    /// The edge is of a tree with nodes of these types, and is not `NONE`. It was loaded from the
    /// tree's root edge or from a node that was reached under a guard that lives as long as `'g`;
    /// or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn child<'g, I, L>(self) -> Child<'g, I, L> {
        // SAFETY: I1 of the tree: the child is initialised, and the bit gives its kind. The caller
        // promises a guard, under which the tree does not reclaim it, or a quiescent tree.
        unsafe {
            if self.is_leaf() {
                Child::Leaf(&*touch(self.0.pointer().cast::<L>()))
            } else {
                Child::Inner(&*touch(self.0.pointer().cast::<I>()))
            }
        }
    }
}

/// Frees all nodes from `root` on.
///
/// # Safety
/// The nodes came from `objects` and are not retired, one edge leads to each, and no other thread
/// has them.
pub(super) unsafe fn free_all<I, L, P, O>(root: Edge, objects: &O, load: impl Fn(&I::Cell) -> Edge)
where
    I: InnerWords,
    L: LeafWords,
    P: Placement,
    O: NodeStore<I, L, P>,
{
    let mut edges = vec![root];
    while let Some(edge) = edges.pop() {
        // SAFETY: the caller promises that no other thread has the nodes, that they came from
        // `objects` and are not retired, and that one edge leads to each, so that each is freed
        // once.
        unsafe {
            match edge.child::<I, L>() {
                Child::Leaf(_) => objects.free_leaf(edge.leaf_ptr()),
                Child::Inner(inner) => {
                    edges.extend(inner.children().iter().map(&load));
                    objects.free_inner(edge.inner_ptr());
                }
            }
        }
    }
}

/// Shows `see` the object that contains a node which an edge leads to. `invariant` is the tree's
/// invariant that the node is not retired.
pub(super) fn show(
    lives: Lives,
    layout: &'static NodeLayout,
    invariant: &'static str,
    see: &mut See<'_>,
) -> Result<(), Violation> {
    match lives {
        Lives::In(object) => see(Placed::new(layout, object.addr().get())),
        Lives::BesideInner => {}
        Lives::Nowhere => {
            return violation(invariant, format!("a retired {} is linked", layout.kind));
        }
    }
    Ok(())
}
