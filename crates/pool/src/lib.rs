//! Memory pools segregated by object kind.
//!
//! General allocators put objects of one size class side by side whatever they are, so that an
//! index's nodes share cache lines, sets and pages with whatever else the program allocates
//! (Arbel-Raviv, Brown and Morrison, USENIX ATC 2018, sections 4 and 5, show what that costs). A
//! pool holds one kind of object, on pages of its own:
//!
//! * [`Pool<T>`] for one node type, [`BytesPool`] for objects of many sizes;
//! * an allocation or a free is a push or pop on an array of the thread's own: no shared write, and
//!   the object's memory is not touched;
//! * [`Pages`]: huge pages by default, hugetlb or 4 KiB on request, and a report of what was given;
//! * [`Budget`]: the exact number of bytes held, and a limit past which allocation fails as a value;
//! * [`Tuning`]: the alignment of slots, the colouring and size of slabs, the growth of regions;
//! * [`Packed`]: objects of any kinds one behind the other, in regions that go with their last object;
//! * dropping a pool unmaps it whole.
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
//! # Where objects lie
//! A pool that nobody else uses shows what it has handed out: `live`, on either kind of pool, goes
//! through the addresses, `census` adds them to a [`Census`](silvics_layout::Census), which says who shares
//! lines, sets and pages with whom.
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
//! let (mut nodes, mut names) = (Pool::<Node>::new("node", &config), BytesPool::new("name", &config));
//! for _ in 0..1000 {
//!     nodes.alloc()?;
//!     names.alloc(20)?;
//! }
//!
//! let mut census = Census::default();
//! names.census(&mut census); // searches may read all of a name …
//! for node in nodes.live() {
//!     census.add(Node::layout(), node.addr().get()); // … and of a node what is described
//! }
//! let sets = Sets { line: 64, sets: 64, hash: SetHash::Modulo };
//! let node = census.facts("node", &sets).expect("there are some");
//! assert_eq!((node.objects, node.bytes, node.hot_bytes), (1000, 48.0, 24.0));
//! // Of 48-byte slots one in four begins so late in a line that `next` is partly in the following one.
//! assert!((node.straddling - 0.25).abs() < 0.01);
//! // No name shares a line or a page with nodes.
//! assert!(node.in_pages.kinds.iter().all(|(kind, _)| kind == "node"));
//! # Ok::<(), silvics_pool::AllocError>(())
//! ```
//!
//! [`Placement`] makes the choice a type: [`Pooled`] structures keep a pool per object kind,
//! [`Shared`] ones take everything from one [`Heap`], for comparison: the program's global allocator,
//! one with the size classes of the study, or, behind features of their names, jemalloc (also with an
//! arena per kind of object), mimalloc and tcmalloc.

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
mod tuning;
mod typed;

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
pub use pages::{Fallback, HUGE_PAGE, Pages, Region, set_read_only};
pub use placement::{
    BytesAlloc, Placement, Pooled, Recorded, Shared, SharedBytes, SharedSlots, SlotAlloc,
};
pub use tuning::{Tuning, TuningError};
pub use typed::Pool;

use std::sync::Arc;

/// How a pool is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The pages to ask for.
    pub pages: Pages,
    /// What it may hold, shared with the other pools of the same index.
    pub budget: Arc<Budget>,
    /// Where [`Shared`] objects come from.
    pub heap: Arc<dyn Heap>,
    /// How pools lay out their slots, slabs and regions.
    pub tuning: Tuning,
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Pages::default(), None)
    }
}

impl Config {
    /// Pools on `pages` that together hold at most `limit` bytes.
    pub fn new(pages: Pages, limit: Option<usize>) -> Self {
        let budget = Arc::new(Budget::new(limit));
        Self { pages, budget, heap: Arc::new(Global), tuning: Tuning::default() }
    }
}

/// What a pool holds at one moment.
#[derive(Clone, Debug)]
pub struct PoolStats {
    /// The kind of object, as its `NodeLayout` names it.
    pub kind: &'static str,
    /// Slots handed out, retired ones included; exact when quiescent.
    pub live_slots: usize,
    /// Their bytes, rounded up to their size classes.
    pub live_bytes: usize,
    /// The mapped regions; empty where objects come from another allocator.
    pub regions: Vec<Region>,
    /// The pages given; what was wanted, while nothing is mapped.
    pub pages: Pages,
    /// Why other pages than the wanted ones were given.
    pub fallback: Option<Fallback>,
}
