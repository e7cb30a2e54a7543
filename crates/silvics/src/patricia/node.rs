//! The common parts of the two builds of nodes: references to nodes, the slots that lead to them,
//! and [`Nodes`], all that the algorithm does with a node.

use super::digits::{HEAD, Label};
use super::key::PatriciaKey;
use super::sync::NodeLock;
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::{AllocError, Violation};
use crate::frame::{Frame, See};
use crate::memory::Memory;
use silvics_layout::NodeLayout;
use silvics_layout::record::Read;
use silvics_pool::Placement;
use silvics_sync::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A node of build `N` that is not reclaimed during `'g`. The lowest bit of its word is set if the
/// node is a leaf of the build `compact`.
pub struct Node<'g, N: ?Sized> {
    word: NonNull<u8>,
    marker: PhantomData<&'g Marker<N>>,
}

/// The build of a node.
pub(super) struct Marker<N: ?Sized>(PhantomData<fn(&N)>);

impl<N: ?Sized> Clone for Node<'_, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<N: ?Sized> Copy for Node<'_, N> {}

impl<N: ?Sized> Node<'_, N> {
    /// The bit of a leaf.
    pub(super) const LEAF: usize = 1;

    /// # Safety
    /// The word leads to an initialised node of build `N`, which is not reclaimed during the
    /// lifetime.
    #[inline(always)]
    pub(super) unsafe fn new(word: NonNull<u8>) -> Self {
        Self { word, marker: PhantomData }
    }

    /// The word that leads to the node.
    #[inline(always)]
    pub(super) fn word(self) -> NonNull<u8> {
        self.word
    }

    /// Whether the word says that the node is a leaf.
    #[inline(always)]
    pub(super) fn is_leaf(self) -> bool {
        self.word.addr().get() & Self::LEAF != 0
    }

    /// The memory of the node.
    #[inline(always)]
    pub(super) fn object(self) -> *mut u8 {
        self.word.as_ptr().map_addr(|address| address & !Self::LEAF)
    }
}

/// A word of a node, or the one of the trie, that leads to a node or to none.
///
/// | site | ordering | pairs with | why |
/// |---|---|---|---|
/// | `load` | Acquire | `store` | the node that it leads to is initialised |
/// | `store` | Release | `load` | publishes the node |
#[derive(Debug)]
pub struct Slot(AtomicPtr<u8>);

impl Slot {
    #[inline(always)]
    pub(super) fn new(word: *mut u8) -> Self {
        Self(AtomicPtr::new(word))
    }

    /// The word in the slot.
    #[inline(always)]
    pub(super) fn word(&self) -> *mut u8 {
        self.0.load(Ordering::Acquire)
    }

    /// The node that the slot leads to.
    ///
    /// # Safety
    /// The slot is one of a trie of build `N`, and the caller has a guard of the trie's domain, or
    /// exclusive access, during `'g`. If the slot is in a node, the caller has found that node
    /// under this guard (I4).
    #[inline(always)]
    pub(super) unsafe fn load<'g, N: ?Sized>(&self) -> Option<Node<'g, N>> {
        // SAFETY: I4: a node whose word was read under a guard is not reclaimed while it lives.
        NonNull::new(self.word()).map(|word| unsafe { Node::new(word) })
    }

    /// Makes the slot lead to another node, or to none.
    #[inline(always)]
    pub(super) fn store(&self, word: Option<NonNull<u8>>) {
        self.0.store(word.map_or(std::ptr::null_mut(), NonNull::as_ptr), Ordering::Release);
    }
}

/// A change of one node.
#[derive(Clone, Copy)]
pub enum Change {
    /// The node gets a child for a digit that has none.
    Child(u32, NonNull<u8>),
    /// The node loses its child for a digit.
    NoChild(u32),
    /// The node gets an entry.
    Entry(u64),
    /// The node loses its entry.
    NoEntry,
    /// The node's label, which began at this character, begins elsewhere.
    Label(u32),
}

/// The place of a node in the trie: the characters of its label, and a key with its path.
#[derive(Clone, Copy)]
pub struct Place<'k> {
    /// A key that has the characters before `from`, and those of `digit`.
    pub(super) key: &'k [u8],
    /// The first character of the label.
    pub(super) from: u32,
    /// A character in which the node's path differs from the key, and its position.
    pub(super) digit: Option<(u32, u32)>,
}

/// Memory that a thread has made for a change, and that no other thread can reach yet.
#[derive(Clone, Copy)]
pub enum Made {
    /// A node.
    Node(NonNull<u8>),
    /// A label of the build `paper`: the bytes in the node, and the object with the others.
    Label([u8; HEAD], usize, Option<NonNull<u8>>),
}

/// The memory for a change; it is freed unless the change is made.
pub struct Draft<'m, N: Nodes, P: Placement> {
    memory: &'m N::Memory<P>,
    made: Option<Made>,
}

impl<'m, N: Nodes, P: Placement> Draft<'m, N, P> {
    /// # Safety
    /// The object is of this memory, initialised, and the caller's alone.
    #[inline(always)]
    pub(super) unsafe fn new(memory: &'m N::Memory<P>, made: Option<Made>) -> Self {
        Self { memory, made }
    }

    /// The node that was made.
    #[inline(always)]
    pub(super) fn node(&self) -> Option<NonNull<u8>> {
        match self.made {
            Some(Made::Node(node)) => Some(node),
            _ => None,
        }
    }

    /// The object, if one was needed.
    #[inline(always)]
    pub(super) fn made(&self) -> Option<Made> {
        self.made
    }

    /// The object, which belongs to the trie from now on.
    #[inline(always)]
    pub(super) fn keep(mut self) -> Option<Made> {
        self.made.take()
    }
}

impl<N: Nodes, P: Placement> Drop for Draft<'_, N, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(made) = self.made.take() {
            // SAFETY: the contract of `new`: the object was never linked.
            unsafe { N::discard(self.memory, made) };
        }
    }
}

/// A key of build `N`.
pub(super) type KeyOf<'g, N> = <<N as Nodes>::Key as IndexKey>::Ref<'g>;

/// The path of a scan of build `N`.
pub(super) type PathOf<N> = <<N as Nodes>::Key as PatriciaKey>::Path;

/// A build of nodes, for one type of keys, one alphabet and one kind of lock.
///
/// The content of a node may change while a section without the node's lock reads it. Then each
/// answer is some answer, without undefined behaviour, and the section will fail to validate.
///
/// # Safety
/// The words that `Memory` makes and slots store lead to nodes of the build, as [`Node::new`] asks.
#[doc(hidden)]
pub unsafe trait Nodes: Sized + 'static {
    /// The keys.
    type Key: PatriciaKey + ?Sized;
    /// The lock of a node.
    type Lock: NodeLock;
    /// The memory of nodes.
    type Memory<P: Placement>: Memory + Send + Sync;

    /// The bits of a character.
    const BITS: u32;
    /// Whether a lookup need not compare labels: then each entry has its whole key.
    const SKIPS: bool;
    /// Whether nodes change in place. Other nodes are replaced by copies.
    const IN_PLACE: bool;
    /// The kinds of objects.
    const OBJECTS: &'static [NodeLayout];

    /// Makes the memory.
    fn memory<P: Placement>(frame: &Frame) -> Self::Memory<P>;

    /// The node's lock.
    fn lock(node: Node<'_, Self>) -> &Self::Lock;
    /// Prefetches what a search reads of the node behind its first line.
    #[inline(always)]
    fn prefetch(node: Node<'_, Self>) {
        let _ = node;
    }
    /// One past the node's last character.
    fn end(node: Node<'_, Self>) -> u32;
    /// The value of the node's own entry.
    fn value(node: Node<'_, Self>) -> Option<u64>;
    /// Whether the node's entry, if it has one, has this key. Only if `SKIPS`.
    fn has_key(node: Node<'_, Self>, key: &[u8]) -> bool;
    /// The slot for a digit, if there is one.
    fn slot(node: Node<'_, Self>, digit: u32) -> Option<&Slot>;
    /// The first child from a digit on, or the last one up to it if `DOWN`. Digits below 0 or
    /// beyond the alphabet are legal.
    fn child<const DOWN: bool>(node: Node<'_, Self>, digit: i32) -> Option<(u32, Node<'_, Self>)>;
    /// The number of children, or 3 if there are more.
    fn children(node: Node<'_, Self>) -> usize;
    /// The node's label, whose first character is `from`.
    fn label(node: Node<'_, Self>, from: u32) -> Label<'_>;
    /// Whether the label stays as it is wherever it begins.
    fn keeps_label(node: Node<'_, Self>) -> bool;
    /// The key of the node's entry, if the node has it whole.
    fn key(node: Node<'_, Self>) -> Option<KeyOf<'_, Self>>;

    /// Makes a node with an entry and no child.
    fn leaf<'m, P: Placement>(
        memory: &'m Self::Memory<P>,
        place: Place<'_>,
        value: u64,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError>;
    /// Makes a node that ends before character `end` of the key: with these children, and with an
    /// entry if there is a value.
    fn fork<'m, P: Placement>(
        memory: &'m Self::Memory<P>,
        place: Place<'_>,
        end: u32,
        value: Option<u64>,
        children: &[(u32, NonNull<u8>)],
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError>;
    /// Makes the memory that a change of a locked node needs: a copy with the change, unless nodes
    /// change in place.
    fn prepare<'m, P: Placement>(
        memory: &'m Self::Memory<P>,
        node: Node<'_, Self>,
        change: Change,
        place: Place<'_>,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError>;

    /// Changes a locked node in place, and returns the object that goes. If nodes do not change in
    /// place, it does so for want of memory, and only for `NoChild` and `NoEntry`.
    ///
    /// # Safety
    /// The caller owns the lock of the linked node. `made` is what `prepare` has made for it since.
    unsafe fn change(node: Node<'_, Self>, change: Change, made: Option<Made>) -> Option<Made>;
    /// Gives the node's entry another value.
    ///
    /// # Safety
    /// The caller owns the lock of the linked node, which has an entry.
    unsafe fn set_value(node: Node<'_, Self>, value: u64);

    /// Frees an object at once.
    ///
    /// # Safety
    /// The object is of this memory, and no other thread can reach it.
    unsafe fn discard<P: Placement>(memory: &Self::Memory<P>, made: Made);
    /// Retires an object, and with a node its label.
    ///
    /// # Safety
    /// The object is of this memory, unlinked for new readers, and retired once. The guard is of
    /// the trie's domain.
    unsafe fn retire<P: Placement>(memory: &Self::Memory<P>, made: Made, guard: &Guard);

    /// Shows `see` the objects of a node, and verifies what a node can be verified by alone.
    fn check(node: Node<'_, Self>, from: u32, see: &mut See<'_>) -> Result<(), Violation>;
    /// The reads of a search that goes on for a digit, or ends.
    fn reads(node: Node<'_, Self>, digit: Option<u32>) -> impl Iterator<Item = Read>;
}
