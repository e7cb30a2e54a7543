//! Memory pools that keep each kind of object apart from all others, on huge pages.
//!
//! General allocators put objects of one size class side by side, whatever their kinds. The nodes
//! of an index then share cache lines, cache sets and pages with everything else the program
//! allocates. Arbel-Raviv, Brown and Morrison (USENIX ATC 2018, sections 4 and 5) show what that
//! costs. A pool holds one kind of object, on pages of its own:
//!
//! ```
//! use silvics_pool::{Config, Pool};
//!
//! let pool = Pool::<[u64; 4]>::new("node", &Config::default());
//! let node = pool.alloc()?;
//! // SAFETY: a fresh slot has room for the type and is ours alone.
//! unsafe { node.write([1, 2, 3, 4]) };
//! assert_eq!(pool.stats().live_slots, 1);
//! // SAFETY: allocated above, used no more.
//! unsafe { pool.free(node) };
//! assert_eq!(pool.stats().live_slots, 0);
//! # Ok::<(), silvics_pool::AllocError>(())
//! ```
//!
//! # Which pool for which objects
//! * [`Pool<T>`] holds objects of one type, [`BytesPool`] objects of many sizes.
//! * [`Packed`] holds objects of any kinds, one directly behind the other, in regions that are
//!   unmapped with their last object. Use it for a set of objects that are allocated together.
//! * [`ConcurrentArena`] holds objects of any kinds that many threads allocate, and frees them all
//!   at once when it is dropped. Use it for a structure that only grows, such as a memtable.
//!
//! # What a pool guarantees
//! * **Speed.** An allocation or a free pops or pushes an array that only the calling thread uses.
//!   It makes no shared write, except once in many calls, and does not touch the object's memory.
//! * **Pages.** [`Pages`] selects transparent huge pages (the default), hugetlb or 4 KiB pages.
//!   [`PoolStats`] reports which pages the system gave, and why if it gave others.
//! * **Exact bytes.** A [`Budget`] counts the bytes held from the system. It can have a limit,
//!   beyond which an allocation returns [`AllocError`] instead of aborting.
//! * **Layout.** [`Tuning`] sets the alignment of slots, the colouring and size of slabs, and the
//!   growth of regions.
//! * **Release.** Dropping a pool unmaps all of its memory at once; [`Pool::shrink`] returns unused
//!   slabs earlier.
//!
//! # Where objects lie
//! `live`, on either kind of pool, iterates over the addresses of all slots in use; it needs
//! exclusive access to the pool. A `Census` of `silvics-layout` (its feature `analysis`) takes them
//! and reports the kinds that share lines, sets and pages.
//!
//! ```
//! use silvics_layout::{Census, Described, SetHash, Sets, describe};
//! use silvics_pool::{BytesPool, Config, Pool};
//!
//! #[repr(C)]
//! struct Node { key: u64, next: [usize; 2], name: usize, hits: [u64; 2] }
//! describe!(Node, "node", search: [key], links: [next; 2], found: [key, name]);
//!
//! let config = Config::default();
//! let mut nodes = Pool::<Node>::new("node", &config);
//! let mut names = BytesPool::new("name", &config);
//! for _ in 0..1000 {
//!     nodes.alloc()?;
//!     names.alloc(20)?;
//! }
//!
//! let mut census = Census::default();
//! let kind = census.kind("name", None); // a search may read all bytes of a name
//! for (name, bytes) in names.live() {
//!     census.add_sized(kind, name.addr().get(), bytes);
//! }
//! for node in nodes.live() {
//!     census.add(Node::layout(), node.addr().get()); // a search reads the described fields
//! }
//! let sets = Sets { line: 64, sets: 64, hash: SetHash::Modulo };
//! let node = census.facts("node", &sets).expect("there are some");
//! assert_eq!((node.objects, node.bytes, node.hot_bytes), (1000, 48.0, 24.0));
//! // One 48-byte slot in four starts so late in its line that `next` continues in the next line.
//! assert!((node.straddling - 0.25).abs() < 0.01);
//! // No name shares a line or a page with a node.
//! assert!(node.in_pages.kinds.iter().all(|(kind, _)| kind == "node"));
//! # Ok::<(), silvics_pool::AllocError>(())
//! ```
//!
//! # Pools or an ordinary allocator
//! [`Placement`] makes the choice a type parameter. A [`Pooled`] structure has a pool per object
//! kind. A [`Shared`] structure takes every object from one [`Heap`], for comparison. Heaps are the
//! program's global allocator, a model with the size classes of the study ([`SizeClassHeap`]), and,
//! behind features of their names, jemalloc (also with an arena per object kind), mimalloc and
//! tcmalloc.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod arena;
mod budget;
mod bytes;
mod core;
mod error;
mod growth;
mod heap;
mod magazine;
mod packed;
mod pages;
mod placement;
#[cfg(silvics_poison)]
mod poison;
mod slab;
mod small;
mod tuning;
mod typed;

pub use arena::{ArenaStats, ConcurrentArena};
pub use budget::Budget;
pub use bytes::BytesPool;
pub use error::AllocError;
#[cfg(feature = "mimalloc")]
pub use heap::mimalloc::Mimalloc;
#[cfg(all(feature = "tcmalloc", target_os = "linux"))]
pub use heap::tcmalloc::Tcmalloc;
pub use heap::{Global, Heap, SizeClassHeap};
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
pub use heap::{jemalloc::Jemalloc, segregated::SegregatedJemalloc};
pub use packed::{Packed, Packer};
pub use pages::{Fallback, HUGE_PAGE, Pages, Region, SMALL_PAGE, set_read_only};
pub use placement::{
    BytesAlloc, Placement, Pooled, Recorded, Shared, SharedBytes, SharedSlots, SlotAlloc,
};
pub use small::{SlotSize, SmallObjects};
pub use tuning::{Tuning, TuningError};
pub use typed::Pool;

use std::sync::{Arc, LazyLock};

/// The settings of a pool.
#[derive(Clone, Debug)]
pub struct Config {
    /// The pages to request from the system.
    pub pages: Pages,
    /// The byte count and limit, shared with the other pools of the same index.
    pub budget: Arc<Budget>,
    /// The allocator of [`Shared`] objects.
    pub heap: Arc<dyn Heap>,
    /// The layout of slots, slabs and regions.
    pub tuning: Tuning,
    /// The small objects of the pools, if these start small: see [`Config::starting_small`].
    pub small: Option<Arc<SmallObjects>>,
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Pages::default(), None)
    }
}

impl Config {
    /// Settings for pools on `pages` that together hold at most `limit` bytes.
    pub fn new(pages: Pages, limit: Option<usize>) -> Self {
        Self::of_budget(pages, Arc::new(Budget::new(limit)))
    }

    /// Settings for pools on `pages` that share a budget.
    pub fn of_budget(pages: Pages, budget: Arc<Budget>) -> Self {
        Self { pages, budget, heap: Arc::clone(&GLOBAL), tuning: Tuning::default(), small: None }
    }

    /// Lets the pools made with these settings take their first objects from memory that the whole
    /// process shares, in chunks of half a KiB or more. A pool gets regions of its own when these
    /// objects have 8 KiB, or 32 KiB if they are of 128 bytes or more. So an index of a few
    /// entries costs little more than they need.
    ///
    /// Until then a pool's objects lie beside those of other pools of these settings, and an
    /// allocation takes a lock that these pools share.
    #[must_use]
    pub fn starting_small(self) -> Self {
        if cfg!(any(silvics_shuttle, silvics_loom)) {
            return self; // the shared memory does not end with an execution of a model
        }
        let objects = SmallObjects::new(Self { small: None, ..self.clone() });
        Self { small: Some(Arc::new(objects)), ..self }
    }
}

/// The allocator of [`Shared`] objects unless another is named.
static GLOBAL: LazyLock<Arc<dyn Heap>> = LazyLock::new(|| Arc::new(Global));

/// The memory that a pool holds at one moment.
#[derive(Clone, Debug)]
pub struct PoolStats {
    /// The kind of object, as its `NodeLayout` names it.
    pub kind: &'static str,
    /// The number of live slots, including those of retired objects; exact when quiescent.
    pub live_slots: usize,
    /// The bytes of the live slots, each rounded up to its size class.
    pub live_bytes: usize,
    /// The mapped regions; empty if the objects come from another allocator.
    pub regions: Vec<Region>,
    /// The pages that the system gave, or the requested ones while nothing is mapped.
    pub pages: Pages,
    /// Why the system gave other pages than the requested ones.
    pub fallback: Option<Fallback>,
}

impl PoolStats {
    /// The statistics of a pool without objects.
    pub fn empty(kind: &'static str, pages: Pages) -> Self {
        let (live_slots, live_bytes, regions) = (0, 0, Vec::new());
        Self { kind, live_slots, live_bytes, regions, pages, fallback: None }
    }
}
