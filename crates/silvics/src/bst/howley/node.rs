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

/// A node: an entry. Key and value never change once it can be reached.
///
/// What a search reads comes first; the build says how it is aligned.
#[repr(C)]
pub(super) struct Node<B: Build> {
    pub(super) key: u64,
    pub(super) children: [AtomicLink<B>; 2],
    pub(super) op: AtomicClaim<Descriptor<B>>,
    pub(super) value: u64,
    align: [B::Align; 0],
}

impl<B: Build> Node<B> {
    /// What a search reads of it.
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

    /// One that is not linked yet.
    pub(super) fn new(key: u64, value: u64, children: [Link<B>; 2]) -> Self {
        let children = children.map(AtomicLink::new);
        Self { key, children, op: AtomicClaim::new(), value, align: [] }
    }

    /// Where the link on that side leads, for a descent.
    #[inline(always)]
    pub(super) fn follow(&self, side: Side) -> Link<B> {
        side.load(&self.children, AtomicLink::load)
    }

    /// What a search reads of the node where it went right last, if it finds nothing.
    pub(super) fn op_read(&self) -> Read {
        let layout: &'static NodeLayout = &Self::NODE;
        layout.read(self, offset_of!(Self, op), size_of::<usize>(), Why::Again)
    }

    /// Left and right as they are now.
    pub(super) fn links(&self) -> [Link<B>; 2] {
        self.children.each_ref().map(AtomicLink::load)
    }
}

/// The link leads nowhere. A count takes the pointer's place.
const NULL: usize = 1;

/// The value of a link: a child, or none and since when.
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
    /// Those of a new node without children.
    pub(super) const NONE: Self = Self::null(0);

    const fn null(count: usize) -> Self {
        Self(without_provenance_mut(count << 1 | NULL))
    }

    pub(super) fn to(node: NonNull<Node<B>>) -> Self {
        Self(node.as_ptr())
    }

    /// That of a node whose child has gone, by an operation that claimed it when its word was
    /// `before`: no link of the node has been the same (I5).
    pub(super) fn emptied(before: Clean) -> Self {
        Self::null(before.next().count())
    }

    #[inline(always)]
    pub(super) fn is_null(self) -> bool {
        self.0.addr() & NULL != 0
    }

    /// When a null link became one: the count of the node's word.
    pub(super) fn emptied_at(self) -> usize {
        debug_assert!(self.is_null());
        self.0.addr() >> 1
    }

    /// The child of a link that is not null.
    pub(super) fn node_ptr(self) -> NonNull<Node<B>> {
        debug_assert!(!self.is_null());
        // SAFETY: I1: a link without the bit is not null.
        unsafe { NonNull::new_unchecked(self.0) }
    }

    /// Follows the link.
    ///
    /// # Safety
    /// It was loaded from a reachable node's link under a guard that lives as long as `'g`, or a
    /// descriptor read so has it; or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn node<'g>(self) -> Option<&'g Node<B>> {
        // SAFETY: I1 and I8: the child is initialised and not reclaimed under the guard.
        unsafe { if self.is_null() { None } else { Some(&*touch(self.0)) } }
    }
}

/// A link in memory. Every access of the protocol is here.
pub(super) struct AtomicLink<B: Build>(AtomicPtr<Node<B>>);

impl<B: Build> AtomicLink<B> {
    fn new(link: Link<B>) -> Self {
        Self(AtomicPtr::new(link.0))
    }

    #[inline(always)]
    pub(super) fn load(&self) -> Link<B> {
        Link(self.0.load(Ordering::SeqCst))
    }

    /// Replaces the link if it still is `current`. Who helps late changes nothing (I5).
    pub(super) fn try_replace(&self, current: Link<B>, new: Link<B>) -> bool {
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        self.0.compare_exchange(current.0, new.0, success, failure).is_ok()
    }
}

/// The node is going: its parent's link will pass it by. Never released.
pub(super) const MARK: Flag = Flag::One;
/// A link of the node is being replaced.
pub(super) const CHILDCAS: Flag = Flag::Two;
/// The node has a part in a relocation. Those that go by it are never released once it has succeeded.
pub(super) const RELOCATE: Flag = Flag::Three;

/// What is to be done for an operation, once the word of its first node holds it: a link is replaced,
/// and the node that it leads to, if any, goes. A relocation does that twice, and has two of them.
#[repr(C, align(64))]
pub(super) struct Descriptor<B: Build> {
    /// The node whose link changes …
    pub(super) parent: NonNull<Node<B>>,
    /// … and what its word was.
    pub(super) before: Clean,
    /// From what …
    pub(super) old: Link<B>,
    /// … to what.
    pub(super) new: Link<B>,
    /// What the word of the old child was, if there is one.
    pub(super) old_before: Clean,
    /// For a relocation, how the successor goes from where it was.
    second: Option<NonNull<Descriptor<B>>>,
    /// Which link.
    side: Side,
    /// Whether the new child takes the old one's place, children included, and is not one of them.
    is_copy: bool,
    /// Of a relocation.
    state: AtomicU8,
}

// SAFETY: it is shared as what it refers to is: through atomics, and but for those it is not written
// once published.
unsafe impl<B: Build> Send for Descriptor<B> {}

/// Some node of the relocation is not known to be claimed.
const ONGOING: u8 = 0;
/// All of them were claimed at once.
const SUCCESSFUL: u8 = 1;
/// One of them had changed, and can not be claimed any more.
const FAILED: u8 = 2;

impl<B: Build> Descriptor<B> {
    /// A search does not read it.
    pub(super) const LAYOUT: NodeLayout = NodeLayout::of::<Self>("descriptor", &[], &[]);

    /// For the replacement of `old`, a link of `parent`, by `new`.
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

    /// The same for a new child that takes the place of the old one, children included.
    pub(super) fn with_copy(self) -> Self {
        Self { is_copy: true, ..self }
    }

    /// The same for a relocation, in which the successor goes as the second part says.
    pub(super) fn with_second(self, second: NonNull<Self>) -> Self {
        Self { second: Some(second), is_copy: true, ..self }
    }

    /// The second part, if it is a relocation.
    pub(super) fn second(&self) -> Option<NonNull<Self>> {
        self.second
    }

    /// Whether the new child takes the place of the old one, and is not one of its children.
    pub(super) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Whether the old child is `node`.
    pub(super) fn takes(&self, node: &Node<B>) -> bool {
        std::ptr::eq(self.old.0, node)
    }

    /// Replaces the link, unless somebody has done so.
    ///
    /// # Safety
    /// The parent is not reclaimed.
    pub(super) unsafe fn replace_link(&self) {
        // SAFETY: the caller's promise.
        self.replace_link_of(unsafe { &*touch(self.parent.as_ptr()) });
    }

    /// The same, for a node at the parent's address.
    pub(super) fn replace_link_of(&self, parent: &Node<B>) {
        parent.children[self.side].try_replace(self.old, self.new);
    }

    /// Whether it is not decided what becomes of the relocation. Then its owner is still about it.
    pub(super) fn is_ongoing(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ONGOING
    }

    /// Whether the relocation takes effect.
    pub(super) fn has_succeeded(&self) -> bool {
        self.state.load(Ordering::SeqCst) == SUCCESSFUL
    }

    /// Decides what becomes of the relocation, unless somebody has. Whether it takes effect.
    pub(super) fn decide(&self, all_claimed: bool) -> bool {
        let verdict = if all_claimed { SUCCESSFUL } else { FAILED };
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        let seen = self.state.compare_exchange(ONGOING, verdict, success, failure);
        seen.map_or_else(|seen| seen == SUCCESSFUL, |_| all_claimed)
    }
}
