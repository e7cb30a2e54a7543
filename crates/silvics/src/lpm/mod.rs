//! Longest-prefix match: tables of IP prefixes, for routers and all that maps addresses to owners.
//!
//! # Source
//! Asai and Ohara, "Poptrie: A Compressed Trie with Population Count for Fast and Scalable Software
//! IP Routing Table Lookup", SIGCOMM 2015: nodes that split many bits, runs of equal leaves, and
//! counting bits to find a word. Eatherton, Varghese and Dittia, "Tree Bitmap", SIGCOMM CCR 2004:
//! the prefixes of a node stay in the node.
//!
//! # Algorithm
//! A tree for each family. A node splits 4 bits at the depths 0 and 4, and 8 bits below. It has a
//! word for each *slot*: none, a *leaf*, or a child (`word.rs`). The prefixes whose lengths end in
//! a node's digit are in this node, their *home*.
//! ```text
//! lookup(address):  word := root; best := none
//!                   while word is a child:
//!                       best := what the child has inherited, if that is a leaf
//!                       IPv6: if the child skips bits and the address has others, return best
//!                       word := the word of the slot of the address's next digit
//!                   return word if it is a leaf, else best
//! insert, remove:   lock the tree; make the nodes on the path anew; store the root (`update.rs`)
//! ```
//!
//! # Departures
//! 1. **Nodes never change, and each update stores one word**: the root. So a reader has all
//!    of a family as it was at one moment, and a batch or a walk has, too. Poptrie changes nodes in
//!    place, and its updates are atomic for each node only.
//! 2. **Leaves are not pushed down** into other nodes: a slot shows the longest prefix of its own
//!    node, and a child has a copy of the leaf that its slot would show. A lookup keeps the last
//!    leaf on its way. So the update of a short prefix costs copies of at most 128 children, and
//!    not of all nodes below.
//! 3. **A leaf has the length of its prefix, not the prefix.** The address of the lookup has the
//!    bits. So leaves of small numbers need no other memory.
//! 4. **There is no list of prefixes beside the tree.** A prefix that some slot shows can be read
//!    off the slot. Only a prefix that longer ones cover entirely is in a list, that of its node
//!    (`plan.rs`). The next shorter prefix, which takes a removed one's place, is found there, too.
//! 5. **The two uppermost levels are small**, since each update copies them: 16 words each. An
//!    array of 2^16 or 2^18 words, as poptrie has, would save a lookup two loads from the
//!    first-level cache.
//! 6. A packed node has one sequence of words, for leaves and children, and one bitmap. If it has
//!    160 runs or more, it is wide: a word for each slot, and no bitmap.
//!
//! # Invariants
//! * N1: A node does not change after the store of the root that publishes it.
//! * N2: Nodes that can be reached from a root stay readable while a guard lives that was taken
//!   before the root was read: a node is retired only after the store of a root from which it
//!   cannot be reached.
//! * N3: A child is at the depth at which its slot ends, or deeper in IPv6; its path begins with
//!   that of the slot.
//! * N4: A node has one link, and is retired or freed once: by the update that has replaced it, or
//!   by the failed one that has made it.
//! * N5: Each slot shows the longest prefix of its node that covers it, as its word or as what its
//!   child has inherited. The list of hidden prefixes has those that no slot shows.
//! * N6: Each node has a prefix or a child; in IPv6 a prefix or two children.
//! * L1: The payload of each leaf is a value, or the address of an initialised slot. The value is
//!   retired once, under a pin, after the leaf was taken out.
//! * L2: Destructors of values run while no lock is held.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `root` | `snapshot` | Acquire | `publish` | the nodes below an observed root are initialised (N1) |
//! | `root` | `publish` | Release | `snapshot` | publishes the new nodes; older ones were published under the same lock |
//! | `root` | `current` | Relaxed | – | only the thread that holds the lock stores it |
//! | `root` | `exclusive` | Relaxed | – | no other thread has the table |
//!
//! Nodes are read by plain loads.
//!
//! # Linearization points
//! `lookup`, `get`, `covered` and `covering`: the load of the root. `get_many` and `iter`: that of
//! the root of each family, one after the other. `insert` and `remove`: the store of the root;
//! `remove` of an absent prefix: its load, under the lock.
//!
//! # Progress and reclamation
//! Calls of a view are wait-free: a lookup reads at most 5 nodes in IPv4, and 17 in IPv6, and
//! repeats nothing. They write no memory that another thread reads. Taking a view pins, which
//! writes the epoch of the thread; it may also drop some removed values, under a lock. Writers take
//! a lock, one for each family. Replaced nodes and values go through the [domain](crate::domain).
//!
//! # Complexity and footprint
//! An update makes each node on the path of its prefix anew. For a /24 of IPv4 these are four: two
//! of 144 bytes, and two of some hundred bytes, or of 2 KiB if they are wide. An update of a prefix
//! also copies the children in the slots that show it: at most 128, but nothing below them. For a
//! /0 these are at most 16 nodes, in IPv4 of 144 bytes and some more for hidden prefixes. A node
//! has 48 bytes (IPv6: 64), and 8 for each run of slots with equal words. `docs/results/lpm.md` has
//! the figures of real tables.
//!
//! # Checked by
//! | check | what it refutes |
//! |---|---|
//! | `crates/api-tests/tests/lpm/agreement.rs` | wrong results, beside a map of prefixes that is searched in order; N3, N5, N6 after each step |
//! | `crates/api-tests/tests/lpm/threads.rs` | results that were right at no moment of the call |
//! | `crates/api-tests/tests/lpm/failures.rs` | values that are lost or dropped twice, at limits, with failing allocations and panicking destructors |
//! | `crates/silvics/tests/scenarios/lpm.rs` | N2, and lookups beside updates in many schedules |

mod address;
mod batch;
mod check;
mod count;
mod node;
mod objects;
mod ops;
mod plan;
mod prefix;
mod tree;
mod update;
mod values;
mod view;
mod walk;
mod word;

pub use prefix::{InsertError, PrefixError, RemoveError, parse_prefix};
pub use view::{LpmView, Match, Prefixes};

use crate::error::{AllocError, Violation};
use crate::frame::Frame;
use crate::index::Options;
use crate::map::{Memory, Value};
use check::{check, each_node};
use objects::Objects;
use silvics_layout::Placed;
use silvics_pool::{Placement, PoolStats, Pooled};
use std::fmt;
use tree::Tree;
use values::Slots;
use walk::Covered;

/// A concurrent table of IP prefixes with longest-prefix match.
///
/// It has prefixes of both families ([`IpNet`](ipnet::IpNet)) and a value for each. A lookup
/// returns the longest prefix that contains an address.
///
/// * Values have any type that threads can share. Numbers of at most four bytes are part of the
///   table; others have a slot each, and one address for their life in the table.
/// * Any number of threads may call any methods that take `&self` concurrently. Readings of a view
///   are wait-free; writers of one family take turns.
/// * Each update is atomic, whatever the length of its prefix. [`LpmView::covered`] and
///   [`LpmView::covering`] read one moment of the table, [`LpmView::iter`] and
///   [`LpmView::get_many`] one moment of each family.
/// * An IPv4 address that is written as one of IPv6 (`::ffff:192.0.2.1`) is looked up in IPv6. Call
///   [`IpAddr::to_canonical`](std::net::IpAddr::to_canonical) first if that is not meant.
///
/// ```
/// use silvics::Lpm;
/// use std::net::Ipv4Addr;
///
/// let routes: Lpm<&str> = Lpm::new();
/// routes.insert("0.0.0.0/0".parse()?, "uplink")?;
/// routes.insert("192.168.0.0/16".parse()?, "office")?;
/// let (prefix, hop) = routes.lookup(Ipv4Addr::new(192, 168, 7, 1)).expect("there is a /0");
/// assert_eq!((prefix, *hop), ("192.168.0.0/16".parse()?, "office"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Pins
/// [`Lpm::pin`] pins once for many calls. A method of the table itself pins for the call, which
/// takes some nanoseconds.
///
/// # When values are dropped
/// As in a [`Map`](crate::Map#when-values-are-dropped): once no pin protects them, by a later call
/// on the table, [`Lpm::flush`], or when the table is dropped. Do not call a method of the table
/// while holding a lock that a value's destructor takes: the call may run destructors, and would
/// deadlock.
///
/// # Memory
/// [`Lpm::bytes`] is exact, and [`Options::memory_limit`] limits it. At the limit, an update
/// returns an error, and the table is unchanged.
pub struct Lpm<V: Value, P: Placement = Pooled> {
    v4: Tree<u32>,
    v6: Tree<u128>,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    popcnt: Option<count::Popcnt>,
    objects: Objects<P>,
    values: Slots<V, P>,
}

// Implemented by hand: the auto traits would recurse for a table whose value type contains the
// table. SAFETY: nodes are plain memory, which any thread may free; values are `Send`; the domain
// is `Send`.
unsafe impl<V: Value, P: Placement> Send for Lpm<V, P> {}
// SAFETY: the root is atomic, nodes that it leads to do not change (N1), and values are `Sync`.
unsafe impl<V: Value, P: Placement> Sync for Lpm<V, P> {}

impl<V: Value> Lpm<V> {
    /// An empty table without a limit. It makes no system call.
    pub fn new() -> Self {
        // Pools allocate when they are first used, so this does not fail.
        match Self::with_options(&Options::default()) {
            Ok(table) => table,
            Err(error) => unreachable!("nothing was allocated: {error}"),
        }
    }
}

impl<V: Value> Default for Lpm<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Value, P: Placement> Lpm<V, P> {
    /// An empty table with these options: a memory limit, pages, a domain. Fails if what the table
    /// needs from the start cannot be allocated.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let mut options = options.clone();
        options.shared_budget();
        let frame = Frame::new(&options);
        let values = Slots::new(|| frame.config.clone(), &frame.domain);
        let objects = Objects::new(frame)?;
        Ok(Self {
            v4: Tree::default(),
            v6: Tree::default(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            popcnt: count::Popcnt::detect(),
            objects,
            values,
        })
    }

    /// Pins the table: the everyday way to call several methods.
    #[inline]
    pub fn pin(&self) -> LpmView<'_, V, P> {
        LpmView::new(self)
    }

    /// The number of prefixes. It is exact while no thread writes; otherwise each concurrent update
    /// may or may not be counted. O(threads).
    pub fn len(&self) -> usize {
        self.objects.frame().len.sum().max(0) as usize
    }

    /// Whether [`Lpm::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the table holds from the system, exactly: see
    /// [`Map::bytes`](crate::Map::bytes).
    pub fn bytes(&self) -> usize {
        self.objects.frame().config.budget.held()
    }

    /// One entry for the pool of the nodes, and one for that of the values, if there is any.
    /// O(slabs).
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        let mut stats = self.objects.memory().stats();
        stats.extend(self.values.stats());
        stats
    }

    /// The use of the table's bytes. It is exact while no thread writes. O(slabs).
    pub fn memory(&self) -> Memory {
        let live = |stats: &PoolStats| stats.live_bytes;
        let values = self.values.stats().iter().map(live).sum();
        let index = self.objects.memory().stats().iter().map(live).sum();
        let bytes = self.bytes();
        Memory { bytes, index, values, slack: bytes.saturating_sub(index + values) }
    }

    /// Drops removed values that no pin protects: all that this thread or a joined one removed, and
    /// those of full batches of other threads.
    pub fn flush(&self) {
        self.values.flush();
        self.objects.frame().domain.flush();
    }

    /// Calls [`Lpm::flush`], and returns the slabs without a used slot to the system: see
    /// [`Map::shrink`](crate::Map::shrink). Returns the number of bytes that it returned.
    pub fn shrink(&self) -> usize {
        self.values.shrink() + self.objects.memory().shrink()
    }

    /// Verifies every invariant of both trees. Returns the number of prefixes. O(n).
    pub fn check(&mut self) -> Result<usize, Violation> {
        self.walk(&mut |_| ())
    }

    /// The objects that can be reached: see [`Check::reachable`](crate::Check::reachable).
    pub fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let mut nodes = 0;
        let prefixes = self.walk(&mut |_| nodes += 1)?;
        let mut kinds = vec![(node::NODE.kind, nodes)];
        kinds.extend(self.values.stats().map(|pool| (pool.kind, prefixes)));
        Ok(kinds)
    }

    fn walk(&mut self, see: &mut dyn FnMut(Placed)) -> Result<usize, Violation> {
        let prefixes = check(self.v4.exclusive(), see)? + check(self.v6.exclusive(), see)?;
        self.objects.frame().counted(prefixes)
    }

    /// Drops what [`Lpm::flush`] drops, whichever thread has removed it. Only a pin of another
    /// table or map of the same domain can hold something back.
    pub fn settle(&mut self) {
        self.objects.memory_mut().settle();
        self.values.settle();
    }
}

impl<V: Value, P: Placement> fmt::Debug for Lpm<V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lpm({} prefixes, {})", self.len(), P::NAME)
    }
}

impl<V: Value, P: Placement> Drop for Lpm<V, P> {
    fn drop(&mut self) {
        let Self { v4, v6, objects, values, .. } = self;
        if values.are_dropped_one_by_one() {
            let v4 = Covered::new(v4.exclusive(), 0, 0).map(|(_, leaf)| leaf);
            let v6 = Covered::new(v6.exclusive(), 0, 0).map(|(_, leaf)| leaf);
            // SAFETY: L1: each leaf has a value of its own. Access is exclusive, and each prefix
            // comes once.
            v4.chain(v6).for_each(|leaf| unsafe { values.drop_with_table(leaf.payload()) });
        }
        if !P::RELEASES_WHOLE {
            // SAFETY: access is exclusive, and each node comes once (N4), after its children.
            each_node(v4.exclusive(), |node| unsafe { objects.free(node.word()) });
            // SAFETY: access is exclusive, and each node comes once (N4), after its children.
            each_node(v6.exclusive(), |node| unsafe { objects.free(node.word()) });
        }
    }
}
