//! Insert-only skip list with inline entries.
//!
//! # Source
//! Pugh, "Skip lists: a probabilistic alternative to balanced trees", CACM 1990. RocksDB's
//! `InlineSkipList` (D51123: keys behind the links; D50589: concurrent inserts), its heights, and
//! its hints for inserts. The hints on links are our own ([`order`]).
//!
//! # Algorithm
//! The list of level 0 has all entries in order, each higher level a quarter of the one below.
//! ```text
//! search(k): from the head's top level: while the next node is before k, move to it;
//!            else go down a level
//! insert(e): search; on each level of the node, from the lowest one: write the node's link, then
//!            make the predecessor's link lead to the node, by a store or a CAS; if the CAS
//!            fails, search again on that level from the predecessor
//! ```
//! Entries are never removed, so a reader needs no guard, and a link only ever changes to lead to a
//! node that is nearer.
//!
//! # Departures
//! 1. A link has a 16-bit hint on the next node's key in its upper bits ([`order`]). It decides
//!    most comparisons without touching that node.
//! 2. One writer and many writers insert by the same code; a const parameter chooses between the
//!    store and the CAS. So the choice is made for each call, and costs nothing.
//! 3. An insert of one writer begins at the place of the last one only if its key belongs directly
//!    behind that one. RocksDB compares the places of all levels from the lowest one up.
//! 4. An [`InsertHint`] of a user keeps the predecessors of its last insert. It serves ascending
//!    inserts of one prefix, as RocksDB's does, and is validated level by level.
//!
//! # Invariants
//! * S1: a linked node is initialised, and lives as long as the list's arena. A node that was
//!   reached at a level has a link at this level.
//! * S2: on each level the keys ascend strictly. The nodes of a level are also in all lower ones,
//!   except while their insert runs: it links the lowest level first.
//! * S3: the hint of a link is the hint of its two keys, or 0 in orders without hints.
//! * S4: an entry's bytes do not change once its node is linked.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `next[level]` | `next` | Acquire | `set_next`, `try_link` | the next node and its entry are initialised (S1, S4) |
//! | `next[level]` | `set_next` | Release | `next` | publishes; there is no other writer |
//! | `next[level]` | `try_link` success / failure | Release / Relaxed | `next` | publishes; a loser reads again through `next` |
//! | own `next`, before linking | `set_next_unshared` | Relaxed | – | private on this level until the store that publishes it |
//! | `height` | load, raise | Relaxed | – | a stale height costs levels, never entries |
//! | `retries` | all | Relaxed | – | a count |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `insert…`, true | the store or CAS of `next[0]` of the predecessor |
//! | `insert…`, false | the load of the link that led to the equal entry |
//! | searches, an entry | the load of the last link that led to it |
//! | searches, none | the load of the link at the end of level 0 |
//!
//! # Progress and reclamation
//! Searches are wait-free if the length of the list is bounded, and write nothing. Concurrent
//! inserts are lock-free. Nothing is reclaimed before the arena is dropped.
//!
//! # Complexity and footprint
//! Searches and inserts take expected O(log n) steps, inserts behind the last one O(1). An entry
//! takes 8 bytes for each link, 4/3 of them on average, and its bytes rounded up to 8.
//!
//! # Checked by
//! The tests below this module beside a `BTreeSet`, in all orders, with threads; every hint of
//! awkward keys in `order.rs`; [`SkipList::check`], which verifies S2 and S3; loom
//! (`loom.rs`).
//!
//! # Files
//! `node.rs` has the layout and every access to a link, `order.rs` orders and hints, `ops.rs`
//! searches, `insert.rs` inserts, `check.rs` the verification.

mod check;
mod insert;
#[cfg(all(test, silvics_loom))]
mod loom;
mod node;
mod ops;
pub mod order;
#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;

pub use insert::InsertHint;
pub use node::{BehindPointer, Inline, Place, Placing};
pub use order::{ByBytes, ByComparator, ByFunction, Order};

use crate::entry::Entry;
use insert::Splice;
use node::{BRANCHING, Head, MAX_HEIGHT, Node};
use silvics_pool::AllocError;
use silvics_sync::atomic::{AtomicU64, AtomicUsize, Ordering as Memory};
use silvics_sync::cell::UnsafeCell;
use silvics_sync::random::random;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory for nodes.
///
/// # Safety
/// `alloc` returns memory for the layout that no other caller has. It stays valid, at its address,
/// while the value or any clone of it lives, also if the value is moved. It does not panic.
pub unsafe trait Arena: Send + Sync {
    /// Allocates uninitialised memory. The layout has at least one byte.
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError>;
}

// SAFETY: the arena behind the pointer promises it, and it lives as long as the pointer.
unsafe impl<T: Arena + ?Sized> Arena for Arc<T> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        (**self).alloc(layout)
    }
}

/// A skip list of entries in an order, whose nodes are in an arena: see the [module](self).
pub struct SkipList<O: Order, A: Arena, L: Placing = Inline> {
    head: Head,
    /// The height of the tallest tower, at least 1. Some levels below may be empty.
    height: AtomicUsize,
    /// The number of links that another thread has changed first.
    retries: AtomicU64,
    /// The places of the last insert by `insert`. Only its caller touches it.
    last: UnsafeCell<Splice>,
    order: O,
    arena: A,
    placing: PhantomData<L>,
}

/// A skip list whose entries lie in its nodes.
pub type InlineSkipList<O, A> = SkipList<O, A, Inline>;

/// A skip list whose nodes have the addresses of their entries.
pub type PointerSkipList<O, A> = SkipList<O, A, BehindPointer>;

// SAFETY: links are atomic, entries do not change (S4), and `last` belongs to the caller of
// `insert`, which no other insert runs beside.
unsafe impl<O: Order, A: Arena, L: Placing> Send for SkipList<O, A, L> {}
// SAFETY: as for `Send`.
unsafe impl<O: Order, A: Arena, L: Placing> Sync for SkipList<O, A, L> {}

/// An entry of a list, as a place from which to go on.
pub struct Position<'l, L: Placing = Inline> {
    node: Node<'l>,
    placing: PhantomData<L>,
}

impl<L: Placing> Clone for Position<'_, L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<L: Placing> Copy for Position<'_, L> {}

impl<'l, L: Placing> Position<'l, L> {
    /// The entry.
    #[inline(always)]
    pub fn entry(self) -> Entry<'l> {
        // SAFETY: S1: only nodes that searches have reached become positions.
        unsafe { L::entry(self.node.at) }
    }

    /// The address of the node, for callers that keep it across a foreign interface.
    #[inline(always)]
    pub fn into_raw(self) -> NonNull<u8> {
        self.node.at
    }

    /// The position of an address.
    ///
    /// # Safety
    /// [`Position::into_raw`] returned the address, and the list lives during `'l`.
    #[inline(always)]
    pub unsafe fn from_raw(node: NonNull<u8>) -> Self {
        // SAFETY: S1, by the caller's promise.
        Self { node: unsafe { Node::from_raw(node) }, placing: PhantomData }
    }
}

impl<L: Placing> std::fmt::Debug for Position<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.entry().fmt(f)
    }
}

impl<O: Order, A: Arena, L: Placing> SkipList<O, A, L> {
    /// An empty list. It allocates nothing.
    pub fn new(order: O, arena: A) -> Self {
        Self {
            head: Head::new(),
            height: AtomicUsize::new(1),
            retries: AtomicU64::new(0),
            last: UnsafeCell::new(Splice::default()),
            order,
            arena,
            placing: PhantomData,
        }
    }

    /// The order of the list.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// The arena of the list.
    pub fn arena(&self) -> &A {
        &self.arena
    }

    /// The number of times that an insert had to search a level again, because another insert
    /// changed a link first.
    pub fn retries(&self) -> u64 {
        self.retries.load(Memory::Relaxed)
    }

    /// Allocates a node with room for an entry of `bytes` bytes, at least one. The memory is used
    /// until the arena is dropped, whether the place is inserted or not.
    #[inline]
    pub fn allocate(&self, bytes: usize) -> Result<Place, AllocError> {
        let mut height = 1;
        let mut draws = random();
        while height < MAX_HEIGHT && draws.is_multiple_of(BRANCHING) {
            height += 1;
            draws /= BRANCHING;
        }
        L::allocate(&self.arena, height, bytes.max(1))
    }

    /// The most bytes that [`SkipList::allocate`] requests for an entry of `bytes` bytes.
    pub fn most_bytes(bytes: usize) -> usize {
        bytes + (MAX_HEIGHT + 2) * size_of::<usize>()
    }
}

impl<O: Order, A: Arena, L: Placing> std::fmt::Debug for SkipList<O, A, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SkipList(height {})", self.height.load(Memory::Relaxed))
    }
}
