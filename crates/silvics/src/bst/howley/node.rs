//! Nodes, links, the op word's flags, and the descriptor.

use super::super::side::Side;
use super::build::Build;
use crate::bst::claim::{AtomicClaim, Clean, Flag};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use silvics_sync::model::touch;
use std::fmt;
use std::mem::offset_of;
use std::ptr::{NonNull, without_provenance_mut};

/// A node, which is an entry. Its key and value never change once it can be reached.
///
/// The fields that a search reads come first. The build gives the alignment.
#[repr(C)]
pub(super) struct Node<B: Build> {
    pub(super) key: u64,
    pub(super) children: [AtomicLink<B>; 2],
    pub(super) op: AtomicClaim<Descriptor<B>>,
    pub(super) value: u64,
    align: [B::Align; 0],
}

impl<B: Build> Node<B> {
    /// The layout of a node: the fields that a search reads, and those of the node that it finds.
    pub(super) const NODE: NodeLayout = NodeLayout::of::<Self>(
        "node",
        &[
            Field::new("key", offset_of!(Self, key), 8),
            Field::links("children", offset_of!(Self, children), 2),
        ],
        &[
            Field::new("key", offset_of!(Self, key), 8),
            Field::new("value", offset_of!(Self, value), 8),
        ],
    );

    /// A node that is not linked yet.
    pub(super) fn new(key: u64, value: u64, children: [Link<B>; 2]) -> Self {
        let children = children.map(AtomicLink::new);
        Self { key, children, op: AtomicClaim::new(), value, align: [] }
    }

    /// The link on the given side, for a descent.
    #[inline(always)]
    pub(super) fn follow(&self, side: Side) -> Link<B> {
        side.load(&self.children, AtomicLink::load)
    }

    /// The read of the op word at the node where a failed search went right last.
    pub(super) fn op_read(&self) -> Read {
        let layout: &'static NodeLayout = &Self::NODE;
        layout.read(self, offset_of!(Self, op), size_of::<usize>(), Why::Again)
    }

    /// The current left and right links.
    pub(super) fn links(&self) -> [Link<B>; 2] {
        self.children.each_ref().map(AtomicLink::load)
    }
}

/// The bit of a null link. A count takes the pointer's place.
const NULL: usize = 1;

/// The value of a link: a child, or null with the count of the claim that emptied it.
pub(super) struct Link<B: Build>(*mut Node<B>);

impl<B: Build> Clone for Link<B> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Build> Copy for Link<B> {}

impl<B: Build> PartialEq for Link<B> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<B: Build> fmt::Debug for Link<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

impl<B: Build> Link<B> {
    /// The null link of a new node.
    pub(super) const NONE: Self = Self::null(0);

    const fn null(count: usize) -> Self {
        Self(without_provenance_mut(count << 1 | NULL))
    }

    pub(super) fn to(node: NonNull<Node<B>>) -> Self {
        Self(node.as_ptr())
    }

    /// The null link of a node whose child was removed under a claim that replaced the clean word
    /// `before`. No earlier link of the node had this value (I5).
    pub(super) fn emptied(before: Clean) -> Self {
        Self::null(before.next().count())
    }

    #[inline(always)]
    pub(super) fn is_null(self) -> bool {
        self.0.addr() & NULL != 0
    }

    /// The count in a null link: that of the node's word when the link was emptied.
    pub(super) fn emptied_at(self) -> usize {
        debug_assert!(self.is_null());
        self.0.addr() >> 1
    }

    /// The child of a link that is not null.
    pub(super) fn node_ptr(self) -> NonNull<Node<B>> {
        debug_assert!(!self.is_null());
        // SAFETY: I1: a link without the bit leads to a node and is not null.
        unsafe { NonNull::new_unchecked(self.0) }
    }

    /// The child, or `None` for a null link.
    ///
    /// # Safety
    /// The link was loaded from a node that was reached under a guard that lives as long as `'g`,
    /// or is in a descriptor that was reached under one; or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn node<'g>(self) -> Option<&'g Node<B>> {
        // SAFETY: I1: the child is initialised. I8: it is not reclaimed under the caller's guard.
        unsafe { if self.is_null() { None } else { Some(&*touch(self.0)) } }
    }
}

/// A link in memory. This type contains every atomic access to links.
pub(super) struct AtomicLink<B: Build>(AtomicPtr<Node<B>>);

impl<B: Build> AtomicLink<B> {
    fn new(link: Link<B>) -> Self {
        Self(AtomicPtr::new(link.0))
    }

    #[inline(always)]
    pub(super) fn load(&self) -> Link<B> {
        Link(self.0.load(Ordering::SeqCst))
    }

    /// Replaces the link if it still is `current`. A late helper changes nothing (I5).
    pub(super) fn try_replace(&self, current: Link<B>, new: Link<B>) -> bool {
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        self.0.compare_exchange(current.0, new.0, success, failure).is_ok()
    }
}

/// The node is leaving: its parent's link will bypass it. This flag is never released.
pub(super) const MARK: Flag = Flag::One;
/// A link of the node is being replaced.
pub(super) const CHILDCAS: Flag = Flag::Two;
/// The node takes part in a relocation. If the relocation succeeds, the nodes that leave are never
/// released.
pub(super) const RELOCATE: Flag = Flag::Three;

/// The steps of an operation whose first node's word holds this descriptor: a link is replaced, and
/// its old child, if any, leaves. A relocation does that twice, and has two descriptors.
#[repr(C, align(64))]
pub(super) struct Descriptor<B: Build> {
    /// The node whose link changes.
    pub(super) parent: NonNull<Node<B>>,
    /// The clean word of `parent` that the claim replaced.
    pub(super) before: Clean,
    /// The old value of the link.
    pub(super) old: Link<B>,
    /// The new value of the link.
    pub(super) new: Link<B>,
    /// The clean word of the old child, if there is one.
    pub(super) old_before: Clean,
    /// The second part of a relocation, which unlinks the successor from its old place.
    second: Option<NonNull<Descriptor<B>>>,
    /// The side of the link that changes.
    side: Side,
    /// Whether the new child is a copy that takes the old one's place and children, and not one of
    /// those children.
    is_copy: bool,
    /// `ONGOING`, or the verdict of a relocation.
    state: AtomicU8,
}

// SAFETY: nodes and descriptors may be reached from any thread (I8). A published descriptor changes
// only in `state`, which is atomic, and nodes change only through atomics.
unsafe impl<B: Build> Send for Descriptor<B> {}

/// The relocation is not decided: some node is not known to be claimed.
const ONGOING: u8 = 0;
/// All nodes of the relocation were claimed at once.
const SUCCESSFUL: u8 = 1;
/// One node of the relocation had changed, and cannot be claimed any more.
const FAILED: u8 = 2;

impl<B: Build> Descriptor<B> {
    /// The layout of a descriptor, of which a search reads nothing.
    pub(super) const LAYOUT: NodeLayout = NodeLayout::of::<Self>("descriptor", &[], &[]);

    /// A descriptor that replaces `old`, a link of `parent`, by `new`.
    pub(super) fn new(
        (parent, before): (&Node<B>, Clean),
        side: Side,
        (old, old_before): (Link<B>, Clean),
        new: Link<B>,
    ) -> Self {
        Self {
            parent: NonNull::from(parent),
            before,
            old,
            new,
            old_before,
            second: None,
            side,
            is_copy: false,
            state: AtomicU8::new(ONGOING),
        }
    }

    /// Makes this a descriptor whose new child takes the place and the children of the old one.
    pub(super) fn with_copy(self) -> Self {
        Self { is_copy: true, ..self }
    }

    /// Makes this the descriptor of a relocation with the given second part, which unlinks the
    /// successor.
    pub(super) fn with_second(self, second: NonNull<Self>) -> Self {
        Self { second: Some(second), is_copy: true, ..self }
    }

    /// The second part, if it is a relocation.
    pub(super) fn second(&self) -> Option<NonNull<Self>> {
        self.second
    }

    /// Whether the new child takes the place of the old one and is not one of its children.
    pub(super) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Whether the old child is `node`.
    pub(super) fn takes(&self, node: &Node<B>) -> bool {
        std::ptr::eq(self.old.0, node)
    }

    /// Replaces the link, unless another thread has done so.
    ///
    /// # Safety
    /// The parent was initialised and is not reclaimed during the call.
    pub(super) unsafe fn replace_link(&self) {
        // SAFETY: the caller promises that the parent is initialised and not reclaimed.
        self.replace_link_of(unsafe { &*touch(self.parent.as_ptr()) });
    }

    /// Replaces the link of a node that lies at the parent's address, unless another thread has
    /// done so.
    pub(super) fn replace_link_of(&self, parent: &Node<B>) {
        parent.children[self.side].try_replace(self.old, self.new);
    }

    /// Whether the relocation is undecided. Its owner then still works on it, under its guard.
    pub(super) fn is_ongoing(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ONGOING
    }

    /// Whether the relocation takes effect.
    pub(super) fn has_succeeded(&self) -> bool {
        self.state.load(Ordering::SeqCst) == SUCCESSFUL
    }

    /// Decides whether the relocation takes effect, unless another thread has. Returns the verdict.
    pub(super) fn decide(&self, all_claimed: bool) -> bool {
        let verdict = if all_claimed { SUCCESSFUL } else { FAILED };
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        let seen = self.state.compare_exchange(ONGOING, verdict, success, failure);
        seen.map_or_else(|seen| seen == SUCCESSFUL, |_| all_claimed)
    }
}
