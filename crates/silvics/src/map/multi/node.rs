//! The nodes of lists, and the words that lead to them.
//!
//! | object | content |
//! |---|---|
//! | leaf | header, up to [`MOST`] words of values |
//! | branch | header, up to [`MOST`] [`Entry`]s, one for each child |
//!
//! A header has the number of items, the level (0 for a leaf), and the number of values below the
//! node. A leaf of [`MOST`] words has 512 bytes, header included.
//!
//! A *list word* has [`TAG`] in its upper 16 bits, and the address of a root in the lower 48. Every
//! other word is that of one value. A number whose word would be a list word is *escaped*: it is
//! always in a list.
//!
//! No memory orderings are used here: a node does not change after the exchange that publishes it
//! (L2).

use crate::error::AllocError;
use crate::map::kept::Objects;
use silvics_pool::{BytesAlloc, Config, Placement, PoolStats};
use std::marker::PhantomData;
use std::ptr::{NonNull, with_exposed_provenance_mut};

/// The most items of a node. Few under a model checker, so that short programs split nodes.
pub(super) const MOST: usize = if cfg!(silvics_shuttle) { 4 } else { 63 };

/// The upper 16 bits of list words. No address has them, and few numbers do: as an integer such a
/// word is far from zero, and as a double it is near -1e-198.
const TAG: u64 = 0x96D3;
const ADDRESS_BITS: u32 = 48;

/// Whether a word is a list word.
#[inline(always)]
pub(super) fn is_list(word: u64) -> bool {
    word >> ADDRESS_BITS == TAG
}

/// One child of a branch.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The word of the first value below the child.
    pub(super) first: u64,
    /// The number of values below the child.
    pub(super) count: u64,
    /// The address of the child.
    child: u64,
}

const _: () = assert!(size_of::<Entry>() == 24 && align_of::<Entry>() == 8);
const _: () = assert!(size_of::<Header>() == 8 && MOST <= u8::MAX as usize);

impl Entry {
    pub(super) fn of(node: Node<'_>) -> Self {
        Self { first: node.first(), count: node.total(), child: node.address() }
    }

    /// The child of an entry that was read in a node, or made of one.
    ///
    /// # Safety
    /// The child is not freed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn child<'g>(self) -> Node<'g> {
        // SAFETY: `of` was given a node; our contract.
        unsafe { Node::new(self.child) }
    }
}

/// The number of items in bits 0 to 7, the level in bits 8 to 15, then the number of values.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Header(u64);

impl Header {
    fn new(len: usize, level: u8, total: u64) -> Self {
        assert!(len <= MOST && total < 1 << 48, "a node has room for this");
        Self(len as u64 | u64::from(level) << 8 | total << 16)
    }

    #[inline(always)]
    fn len(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    #[inline(always)]
    fn level(self) -> u8 {
        (self.0 >> 8 & 0xFF) as u8
    }

    #[inline(always)]
    fn total(self) -> u64 {
        self.0 >> 16
    }

    /// The bytes of the node: one of [`SIZES`].
    fn size(self) -> usize {
        let item = if self.level() == 0 { size_of::<u64>() } else { size_of::<Entry>() };
        let least = size_of::<Self>() + self.len() * item;
        let fits = SIZES.partition_point(|size| *size < least);
        SIZES[fits.min(SIZES.len() - 1)] // the largest one has room for all nodes
    }
}

/// The sizes of nodes. Each change of a list makes a node with one item more or less, and a pool
/// has slabs for each size. With a size for each number of items, a list of a thousand values held
/// a megabyte of slabs.
const SIZES: [usize; 14] = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536];
const _: () = assert!(SIZES[10] == 8 * (MOST + 1) || cfg!(silvics_shuttle));
const _: () = assert!(SIZES[10] >= 8 * (MOST + 1) && SIZES[13] >= 8 + MOST * size_of::<Entry>());

/// The items of a node: words of a leaf, entries of a branch.
pub(super) trait Item: Copy {
    /// The number of values that the item stands for.
    fn count(self) -> u64;

    /// The items of a node of the level that has such items.
    fn of(node: Node<'_>) -> &[Self];
}

impl Item for u64 {
    #[inline(always)]
    fn count(self) -> u64 {
        1
    }

    #[inline(always)]
    fn of(node: Node<'_>) -> &[Self] {
        node.words()
    }
}

impl Item for Entry {
    #[inline(always)]
    fn count(self) -> u64 {
        self.count
    }

    #[inline(always)]
    fn of(node: Node<'_>) -> &[Self] {
        node.entries()
    }
}

/// A node that is initialised, and is not freed during `'g`.
#[derive(Clone, Copy)]
pub(super) struct Node<'g> {
    at: NonNull<u8>,
    lent: PhantomData<&'g u64>,
}

impl<'g> Node<'g> {
    /// # Safety
    /// [`ListMemory::make`] made a node at this address, and it is not freed during `'g`.
    #[inline(always)]
    unsafe fn new(address: u64) -> Self {
        let at = NonNull::new(with_exposed_provenance_mut(address as usize));
        Self { at: at.expect("no node is at address 0"), lent: PhantomData }
    }

    /// The root that a list word leads to.
    ///
    /// # Safety
    /// The word is a list word of a list that is not freed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn of_word(word: u64) -> Self {
        debug_assert!(is_list(word));
        // SAFETY: our contract.
        unsafe { Self::new(word & !(u64::MAX << ADDRESS_BITS)) }
    }

    /// The list word of this root.
    pub(super) fn word(self) -> u64 {
        self.address() | TAG << ADDRESS_BITS
    }

    pub(super) fn address(self) -> u64 {
        self.at.as_ptr().expose_provenance() as u64
    }

    #[inline(always)]
    fn header(self) -> Header {
        // SAFETY: `new`: the node is initialised. Nobody writes it (L2).
        let header = unsafe { self.at.cast::<Header>().read() };
        debug_assert!(header.len() <= MOST, "use after free: a node with {} items", header.len());
        header
    }

    #[inline(always)]
    pub(super) fn level(self) -> u8 {
        self.header().level()
    }

    /// The number of values below the node.
    #[inline(always)]
    pub(super) fn total(self) -> u64 {
        self.header().total()
    }

    /// The bytes of the node.
    pub(super) fn bytes(self) -> usize {
        self.header().size()
    }

    /// The items, whose type depends on the level.
    #[inline(always)]
    fn items<T: Item>(self) -> &'g [T] {
        // SAFETY: the callers have checked the level, so the node has this number of such items
        // behind its header. Nobody writes them (L2).
        unsafe {
            let items = self.at.byte_add(size_of::<Header>()).cast::<T>();
            std::slice::from_raw_parts(items.as_ptr(), self.header().len())
        }
    }

    /// The words of a leaf.
    #[inline(always)]
    pub(super) fn words(self) -> &'g [u64] {
        assert!(self.level() == 0, "the node is a leaf");
        self.items()
    }

    /// The entries of a branch.
    #[inline(always)]
    pub(super) fn entries(self) -> &'g [Entry] {
        assert!(self.level() > 0, "the node is a branch");
        self.items()
    }

    /// The child number `at` of a branch.
    #[inline(always)]
    pub(super) fn child(self, at: usize) -> Self {
        // SAFETY: a child lives as long as the list that it is in (L2), and so as long as `self`.
        unsafe { self.entries()[at].child() }
    }

    /// The children of a branch.
    pub(super) fn children(self) -> impl Iterator<Item = Self> {
        (0..self.entries().len()).map(move |at| self.child(at))
    }

    /// The word of the first value below the node, which has an item.
    #[inline(always)]
    fn first(self) -> u64 {
        if self.level() == 0 { self.words()[0] } else { self.entries()[0].first }
    }

    /// The leaf with the value number `rank` of those below the node, and the place of the value
    /// there. If `rank` is their number, this is the end of the last leaf.
    #[inline]
    pub(super) fn leaf_at(self, mut rank: u64) -> (&'g [u64], usize) {
        let mut node = self;
        while node.level() > 0 {
            let at = node.child_at(&mut rank);
            node = node.child(at);
        }
        (node.words(), rank as usize)
    }

    /// The child of a branch below which the value number `rank` is. Then `rank` is its number
    /// there.
    #[inline]
    pub(super) fn child_at(self, rank: &mut u64) -> usize {
        let entries = self.entries();
        let mut at = 0;
        while at + 1 < entries.len() && *rank >= entries[at].count {
            *rank -= entries[at].count;
            at += 1;
        }
        at
    }
}

/// The memory of the nodes of one map.
pub(super) struct ListMemory<P: Placement>(P::Bytes);

impl<P: Placement> ListMemory<P> {
    pub(super) fn new(config: &Config) -> Self {
        Self(P::Bytes::new("list", config))
    }

    /// Makes a node of items that lie in several pieces.
    pub(super) fn make<'g, T: Item>(
        &self,
        level: u8,
        pieces: &[&[T]],
    ) -> Result<Node<'g>, AllocError> {
        let items = || pieces.iter().copied().flatten().copied();
        let header = Header::new(items().count(), level, items().map(Item::count).sum());
        debug_assert!((level == 0) == (size_of::<T>() == size_of::<u64>()));
        let at = self.0.alloc(header.size())?;
        // SAFETY: fresh memory with room for the header and the items of these pieces.
        unsafe {
            at.cast().write(header);
            let mut place = at.byte_add(size_of::<Header>()).cast::<T>();
            for piece in pieces {
                place.copy_from_nonoverlapping(NonNull::from(*piece).cast(), piece.len());
                place = place.add(piece.len());
            }
        }
        let node = Node { at, lent: PhantomData };
        assert!(node.address() >> ADDRESS_BITS == 0, "addresses have 48 bits");
        Ok(node)
    }

    /// Frees a node.
    ///
    /// # Safety
    /// The node is of this memory, and nobody uses it any more.
    pub(super) unsafe fn free(&self, node: Node<'_>) {
        // SAFETY: our contract; `make` has allocated this size.
        unsafe { self.0.free(node.at, node.bytes()) };
    }

    pub(super) fn shrink(&self) -> usize {
        self.0.shrink()
    }

    pub(super) fn stats(&self) -> PoolStats {
        self.0.stats()
    }
}

// SAFETY: any thread may free nodes of the pool.
unsafe impl<P: Placement> Objects for ListMemory<P> {
    #[inline(always)]
    fn runs_user_code(&self) -> bool {
        false
    }

    #[inline(always)]
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE
    }

    unsafe fn take_back(&self, object: NonNull<u8>) {
        // SAFETY: our contract: the object is a node.
        unsafe { self.free(Node { at: object, lent: PhantomData }) };
    }
}

impl<'g> Node<'g> {
    /// The node as the collector takes it.
    pub(super) fn object(self) -> NonNull<u8> {
        self.at
    }

    /// Calls `each` with every node below this one and then with the node itself: the children of
    /// a node come before it, and it may be freed when it comes.
    pub(super) fn each(self, each: &mut impl FnMut(Node<'g>)) {
        if self.level() > 0 {
            self.children().for_each(|child| child.each(each));
        }
        each(self);
    }
}
