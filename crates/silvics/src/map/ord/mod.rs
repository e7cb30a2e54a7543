//! Maps of keys in any order: that of the key type, or a function that is given at run time.
//!
//! Begin with [`OrdMap`] and [`OrdSet`]; [`Comparator`] is an order that you define. The rest of
//! this page is about the implementation.
//!
//! # Algorithm
//! The map is a lock-free contention adapting tree ([`crate::lfca`]). Its nodes have addresses of
//! keys and words of values, and copy nothing else. Each key lies in a slot of its own, as a value
//! does (`map/value.rs`), from its insertion until its entry is removed and no pin protects it.
//!
//! **Code of the user compares keys.** It runs in containers, which never change, and at bounds of
//! route nodes, which never change either; all of them under a guard. A writer searches, makes a
//! new container without comparing, and exchanges one word. So the code may panic, and call the
//! map. If it is no total order, searches end in wrong places. All that the tree relies on is kept
//! by the position of entries and by the addresses of keys.
//!
//! # What the tree relies on, whatever the order is
//! * Bounds between the nodes of a container are keys of its own entries: the first one below each
//!   child but the first. A change of the first entry of a node changes the bound above it, found
//!   by its position. So a key that no entry has is no bound of a new container.
//! * Bounds of route nodes are keys of entries, or of former ones. The tree counts the route nodes
//!   that have a key (`lfca/bounds.rs`).
//! * A walk follows nodes from leaf to leaf, and from one base node to the next at the right of a
//!   route node that it has passed on the left. So it ends.
//!
//! # Invariants
//! * O1: Each key word that an operation returns is that of a key which was in the tree at some
//!   moment since the guard was taken. Such a key stays readable while the guard lives: it is
//!   retired once, after its entry was removed and no linked route node has it.
//! * O2: Code of the user (comparators, `Borrow`, `Drop`, closures) runs while no lock is held, and
//!   before the operation changes anything or after it is complete.
//! * The invariants M1 to M4 of [maps](crate::map) hold for values.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `order.rs` | [`Comparator`] and the orders that are here |
//! | `slot.rs`, `tree.rs` | the keys of the tree; the tree |
//! | `numbers.rs` | integers in their natural order, which the nodes have themselves |
//! | `ops.rs`, `scan.rs` | the operations on one key, and on ranges |
//! | `verbs.rs`, `view.rs`, `owned.rs` | the verbs, and the faces that have them |
//! | `bulk.rs` | building a map from sorted entries |
//! | `copied.rs` | ranges and cursors that copy entries and hold no pin |
//! | `guard.rs`, `set.rs` | entries that hold a pin; sets |
//! | `counted/` | entries that are counted, for the crate `silvics-skipmap` |

mod bulk;
mod copied;
#[doc(hidden)]
pub mod counted;
mod guard;
mod numbers;
mod ops;
mod order;
mod owned;
mod scan;
mod set;
mod slot;
mod tree;
mod verbs;
mod view;

pub use copied::{OrdCursor, OwnedRange};
pub use guard::EntryGuard;
pub use order::{ByHead, Comparator, Compares, KeyHead, Natural, OnBorrowed};
pub use owned::{OrdOwnedView, OwnedViewRange};
pub use scan::Range;
pub use set::{KeyGuard, OrdSet, OrdSetView, SetRange};
pub use view::OrdView;

use super::Memory;
use super::lend::Lends;
use super::outcome::OrPanic;
use super::value::{Value, ValueRef, Values};
use crate::ca::build::{Adaptive, Build};
use crate::domain::{Domain, Guard};
use crate::error::{AllocError, Violation};
use crate::frame::Frame;
use crate::index::Options;
use silvics_pool::{Placement, PoolStats, Pooled};
use std::cmp::Ordering;
use std::fmt;
use tree::{Tree, Words};

/// An entry that borrows a view of a map.
pub type Entry<'g, K, V> = (ValueRef<'g, K>, ValueRef<'g, V>);

/// A concurrent map of keys in any order.
///
/// **Use [`Map`](crate::Map) if the key type has an encoding** ([`Key`](crate::Key)): it is faster
/// and smaller, also for integers and strings. This map is for keys that have none: collations, an
/// order that leaves out some fields, or one that is chosen at run time.
///
/// * `C` is the order: [`Natural`], that of the type's [`Ord`], or a [`Comparator`], such as a
///   function of two keys. Integers of at most 64 bits in their natural order lie in the nodes.
/// * Keys and values have any type that threads can share. Each has one address for its life in the
///   map (integers and the other [small values](crate::map::Value) have none), and is dropped once:
///   see [`Map`](crate::Map#when-values-are-dropped). A key is dropped like a value.
/// * A lookup takes each form that the order can compare with a key ([`Compares`]): a `&str` for a
///   `String`.
///
/// Any number of threads may call any methods that take `&self` concurrently. Each method on one
/// key, and each method on the first or last entry, is linearizable. `len`,
/// `lower_bound`, `upper_bound`, scans, and methods on many entries are not; their docs say what
/// they guarantee. Methods take O(log n) comparisons, and write O(log n) small blocks.
///
/// ```
/// use silvics::OrdMap;
/// use std::cmp::Reverse;
///
/// /// A key of a log: by name, the newest version first. The size is no part of the order.
/// struct Version {
///     name: String,
///     number: u64,
///     size: usize,
/// }
///
/// let order = |a: &Version, b: &Version| {
///     (&a.name, Reverse(a.number)).cmp(&(&b.name, Reverse(b.number)))
/// };
/// let map: OrdMap<Version, &str, _> = OrdMap::ordered_by(order);
/// for (number, size, content) in [(1, 10, "old"), (2, 20, "new")] {
///     map.insert(Version { name: "a".into(), number, size }, content);
/// }
/// let view = map.pin();
/// let (newest, content) = view.first().expect("inserted");
/// assert_eq!((newest.number, newest.size, *content), (2, 20, "new"));
/// ```
///
/// # Pins and memory
/// As for a [`Map`](crate::Map#pins): [`OrdMap::pin`] for many calls, [`OrdMap::pin_owned`] for
/// entries that are sent, [`OrdMap::range_owned`] and [`OrdMap::cursor`] for scans that are kept. A
/// map without entries makes no system call.
pub struct OrdMap<
    K: Value,
    V: Value,
    C: Comparator<K> = Natural,
    P: Placement = Pooled,
    B: Build = Adaptive,
> {
    tree: Tree<K, C, P, B>,
    values: Values<V, P>,
}

// Implemented by hand: the auto traits would recurse for a map whose value type contains the map.
// SAFETY: nodes, keys, values and the order are `Send` and `Sync`, and so is the domain.
unsafe impl<K, V, C, P, B> Send for OrdMap<K, V, C, P, B>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    C: Comparator<K>,
    P: Placement,
    B: Build,
{
}
// SAFETY: the argument for `Send` holds for shared references.
unsafe impl<K, V, C, P, B> Sync for OrdMap<K, V, C, P, B>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    C: Comparator<K>,
    P: Placement,
    B: Build,
{
}

impl<K: Value + Ord, V: Value> OrdMap<K, V> {
    /// An empty map in the natural order, without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn new() -> Self {
        Self::ordered_by(Natural)
    }
}

impl<K: Value, V: Value, C: Comparator<K> + Default, P: Placement, B: Build> Default
    for OrdMap<K, V, C, P, B>
{
    fn default() -> Self {
        Self::ordered_by(C::default())
    }
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> OrdMap<K, V, C, P, B> {
    /// An empty map in this order, without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn ordered_by(order: C) -> Self {
        Self::with_options(order, &Options::default()).or_panic()
    }

    /// An empty map in this order with these options: a memory limit, pages, a domain. Fails if
    /// the first nodes cannot be allocated.
    pub fn with_options(order: C, options: &Options) -> Result<Self, AllocError> {
        let mut options = options.clone();
        options.shared_budget();
        let frame = Frame::new(&options);
        let values = Values::new("value", || frame.config.clone(), &frame.domain);
        Ok(Self { tree: Tree::new(frame, order)?, values })
    }

    /// The order of the keys.
    pub fn order(&self) -> &C {
        self.tree.order()
    }

    /// The number of keys. It is exact while no thread writes; otherwise each concurrent operation
    /// may or may not be counted. O(threads).
    pub fn len(&self) -> usize {
        self.tree.frame().len.sum().max(0) as usize
    }

    /// The number of keys at one moment, or `None` if writers prevent that: see
    /// [`crate::Lookup::len_snapshot`].
    pub fn len_snapshot(&self) -> Option<usize> {
        self.tree.frame().len.snapshot().map(|sum| sum.max(0) as usize)
    }

    /// Whether [`OrdMap::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the map holds from the system, exactly: see [`Map::bytes`](crate::Map::bytes).
    pub fn bytes(&self) -> usize {
        self.tree.frame().config.budget.held()
    }

    /// One entry for each pool; those of the keys and the values, if there are any, come last.
    /// O(slabs).
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        let mut stats = self.tree.memory().stats();
        stats.extend(self.tree.keys().and_then(Values::stats));
        stats.extend(self.values.stats());
        stats
    }

    /// The use of the map's bytes. Keys outside the nodes count as part of the index. It is exact
    /// while no thread writes. O(slabs).
    pub fn memory(&self) -> Memory {
        let live = |stats: &PoolStats| stats.live_bytes;
        let values = self.values.stats().iter().map(live).sum();
        let nodes: usize = self.tree.memory().stats().iter().map(live).sum();
        let keys = self.tree.keys().and_then(Values::stats);
        let index = nodes + keys.iter().map(live).sum::<usize>();
        let bytes = self.bytes();
        Memory { bytes, index, values, slack: bytes.saturating_sub(index + values) }
    }

    /// Drops removed keys and values that no pin protects: all that this thread or a joined one
    /// removed, and those of full batches of other threads. A removed key stays while it separates
    /// two parts of the tree, which contention has split: there are at most as many such keys as
    /// splits, and they are dropped when the parts are joined, or with the map.
    pub fn flush(&self) {
        self.values.flush();
        self.tree.keys().into_iter().for_each(Values::flush);
        self.tree.domain().flush();
    }

    /// Calls [`OrdMap::flush`], and returns the slabs without a used slot to the system: see
    /// [`Map::shrink`](crate::Map::shrink). Returns the number of bytes that it returned.
    pub fn shrink(&self) -> usize {
        let keys = self.tree.keys().map_or(0, Values::shrink);
        self.values.shrink() + keys + self.tree.memory().shrink()
    }

    /// Verifies every invariant of the tree, and that the keys ascend. If the error is that they do
    /// not, it names the positions of two keys. Returns the number of entries. O(n log n).
    ///
    /// Each key is compared with those 1, 2, 4, 8, … positions before it.
    pub fn check(&mut self) -> Result<usize, Violation> {
        self.tree.check_bounds()?;
        let mut words = Vec::new();
        // SAFETY: access is exclusive.
        unsafe { self.tree.each_entry(|(key, _)| words.push(key)) };
        let mut distance = 1;
        while distance < words.len() {
            for (at, pair) in words.windows(distance + 1).enumerate() {
                if self.compare_words(pair[0], pair[distance]) != Ordering::Less {
                    let detail = format!(
                        "the keys at positions {at} and {} are not in ascending order: the \
                         comparator is no total order, or keys have changed",
                        at + distance
                    );
                    return Err(Violation { invariant: "order", detail });
                }
            }
            distance *= 2;
        }
        self.tree.check(&mut |_| ())
    }

    /// The objects that can be reached: see [`Check::reachable`](crate::Check::reachable).
    pub fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let mut kinds: Vec<_> =
            self.tree.memory().stats().iter().map(|pool| (pool.kind, 0)).collect();
        let entries = self.tree.check(&mut |placed| {
            let kind = placed.layout.kind;
            kinds.iter_mut().filter(|(of, _)| *of == kind).for_each(|(_, count)| *count += 1);
        })?;
        let keys = entries + self.tree.bounds_without_entries().len();
        kinds.extend(self.tree.keys().and_then(Values::stats).map(|pool| (pool.kind, keys)));
        kinds.extend(self.values.stats().map(|pool| (pool.kind, entries)));
        Ok(kinds)
    }

    /// Drops what [`OrdMap::flush`] drops, whichever thread has removed it. Only a pin of another
    /// map of the same domain can hold something back.
    pub fn settle(&mut self) {
        self.tree.memory_mut().settle();
        if let Some(keys) = self.tree.keys_mut() {
            keys.settle();
        }
        self.values.settle();
    }

    /// Drops keys and values of batches that no pin protects.
    #[inline(always)]
    fn drop_some(&self) {
        self.values.drop_some();
        self.drop_some_keys();
    }
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> Lends<V>
    for OrdMap<K, V, C, P, B>
{
    #[inline(always)]
    fn domain(&self) -> &Domain {
        self.tree.domain()
    }

    #[inline(always)]
    fn one_shot(&self) -> Guard {
        self.drop_some();
        self.tree.domain().pin()
    }

    fn give_back(&self) {
        self.shrink();
    }
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> fmt::Debug
    for OrdMap<K, V, C, P, B>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrdMap({} keys, {})", self.len(), P::NAME)
    }
}

impl<K: Value, V: Value, C: Compares<K, K>, P: Placement, B: Build> OrdMap<K, V, C, P, B> {
    /// Pins the map: the everyday way to call several methods.
    #[inline]
    pub fn pin(&self) -> OrdView<'_, K, V, C, P, B> {
        OrdView::new(self, self.one_shot())
    }

    /// Pins the map until the returned view is dropped, on any thread. The view and what it returns
    /// may be held across an `await`.
    pub fn pin_owned(&self) -> OrdOwnedView<'_, K, V, C, P, B> {
        OrdOwnedView::new(self, self.tree.domain().pin_owned())
    }

    /// Inserts every entry like [`OrdMap::insert`], in order, with a pin for each. Returns the
    /// number of entries.
    ///
    /// # Panics
    /// If an allocation fails. The entries before that one are inserted.
    pub fn extend(&self, entries: impl IntoIterator<Item = (K, V)>) -> usize {
        let insert = |(key, value)| _ = self.insert(key, value);
        entries.into_iter().map(insert).count()
    }

    /// Removes all entries, and returns their number: see [`OrdView::clear`].
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn clear(&self) -> usize {
        self.pin().clear()
    }
}

/// Builds a map from entries in any order. If a key occurs twice, the later value wins.
impl<K: Value, V: Value, C: Compares<K, K> + Default, P: Placement, B: Build> FromIterator<(K, V)>
    for OrdMap<K, V, C, P, B>
{
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> Drop for OrdMap<K, V, C, P, B> {
    fn drop(&mut self) {
        let keys_are_dropped = self.tree.keys().is_some_and(Values::are_dropped_one_by_one);
        if keys_are_dropped || self.values.are_dropped_one_by_one() {
            self.drop_entries();
        }
        self.tree.free_nodes();
    }
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> OrdMap<K, V, C, P, B> {
    /// Drops the keys and values that are in the tree. Access is exclusive, and nothing reads them
    /// afterwards.
    fn drop_entries(&mut self) {
        let keys = self.tree.keys();
        let drop_entry = |(key, value): Words| {
            // SAFETY: M1, O1: the words are those of one key and one value. Access is exclusive,
            // and each entry comes once.
            unsafe {
                if let Some(keys) = keys {
                    keys.drop_with_map(key);
                }
                self.values.drop_with_map(value);
            }
        };
        // SAFETY: access is exclusive. Destructors run without a pin, which would hold back what
        // other maps free.
        unsafe { self.tree.each_entry(drop_entry) };
        if let Some(keys) = keys {
            for key in self.tree.bounds_without_entries() {
                // SAFETY: L3: the entry is removed, and the route nodes go away with the map.
                unsafe { keys.drop_with_map(key) };
            }
        }
    }
}
