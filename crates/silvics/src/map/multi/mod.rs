//! Maps whose keys have several values, and sets that count their keys.
//!
//! Begin with [`MultiMap`] and [`MultiSet`]. The rest of this page is about the implementation.
//!
//! # Source
//! Driscoll, Sarnak, Sleator and Tarjan, "Making data structures persistent", JCSS 1989 (path
//! copying); Comer, "The ubiquitous B-tree", ACM Computing Surveys 1979. The index below is that of
//! a [`Map`], and its words are exchanged as there.
//!
//! # Algorithm
//! The word of a key is that of its only value, as in a `Map`, or leads to a list: a B+-tree of the
//! words of the values, whose nodes never change.
//! ```text
//! insert(k, v):     w := word of v; if k is absent: put w, in the same step of the index
//!                   else: list' := the list of k with w at its place; exchange list for list'
//!                         if the word of k has changed meanwhile: free the new nodes, begin again
//!                         retire the nodes that only the old list has
//! remove(k, v):     list' := the list of k without v, or the word of the only value that is left;
//!                   exchange as above, or remove k if no value is left; retire v
//! remove_all(k):    remove k from the index; retire the list that it had, and its values
//! values(k):        get k; walk the list
//! ```
//! `edit.rs` says how a list with a change is made: it copies one leaf and the branches above it.
//!
//! # Departures
//! 1. A branch has, for each child, the number of values below it and the word of the first one. So
//!    the number of values is known in O(1), a value is found by its number in O(log n), and a
//!    search in sorted values reads no child that it does not enter. In a tree whose nodes change
//!    in place, each insert would have to write these counts on its whole path. Here, the path is
//!    copied anyway.
//! 2. One value needs no list. Its word is the one that a `Map` would have, so lookups, inserts and
//!    memory of such a key cost what they cost there. A removal makes a lookup and an exchange,
//!    since it compares the value first. A number whose word looks like that of a list is always in
//!    a list (`node.rs`).
//! 3. A node has up to 63 items and not 64, so that a full leaf takes 512 bytes with its header.
//! 4. Nodes with few items are merged, and others stay as they are: no item moves from one node to
//!    its neighbour.
//!
//! # Invariants
//! M3 and M4 of [`crate::map`], and:
//! * L1: Each word in the index is the word of one value, which is not a list word, or a list word.
//!   A list has at least one value. A list has one value only if that value's word looks like a
//!   list word.
//! * L2: A node does not change after the exchange that publishes it. A node is in the lists of one
//!   key only. When an exchange replaces a list, the thread that made the exchange retires the
//!   nodes that are not in the new list, once. They are in no later list, since each list is made
//!   of nodes of the one before.
//! * L3: A value that is not stored in its word has one place in one list. The thread whose
//!   exchange takes it out of the list retires it, once.
//! * L4: Code of the user (`Ord`, `PartialEq`, encodings, destructors) runs while no lock is held,
//!   and while no node is owned that is not in the index. A value that is owned then has a drop
//!   guard, which is disarmed after the exchange that publishes the value, before old nodes are
//!   retired.
//! * L5: All leaves have the same depth. The counts and first words of branches are exact. If two
//!   nodes are neighbours under one branch, one of them has more than a quarter of the items that
//!   fit.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | word of a key | the index's exchange | Release | its lookups, Acquire | nodes and values are initialised |
//! | items of nodes | plain loads | – | – | nodes do not change (L2) |
//! | count of values | [`StripedCounter`] | see there | – | exact only at rest |
//!
//! # Linearization points
//! * `insert`: of a first value, the insert of the index; of another one, or of a first value whose
//!   word looks like a list word, the exchange that succeeds. If the value is present: the lookup,
//!   or the exchange that failed, that returned the list with it.
//! * `remove`: the exchange that succeeds. If the value is absent: the lookup, or the exchange that
//!   failed, that returned the list without it, or no list.
//! * `remove_all`: the removal of the index. Lookups, `count` and `values`: the lookup of the
//!   index. So all values of one key are read at one moment.
//!
//! # Progress and reclamation
//! A lookup waits for nobody if lookups of the index do not. A writer that finds that the word of
//! its key has changed begins again; some other writer of the key has made progress then. Nodes and
//! values are retired to the domain of the index. Values with destructors wait for a call on the
//! map (`kept.rs`).
//!
//! # Complexity and footprint
//! For a key with n values: `count` O(1), sorted search O(log n) comparisons, an insert or removal
//! copies up to 512 bytes and, for each level above, up to 1.5 KiB. `remove_all` is O(n).
//!
//! A list of n values takes 8 bytes for each, 8 for each leaf, and 24 above for each leaf. Measured
//! with 100 000 values: 8.5 bytes for each value in ascending order, 10.4 in random order. The map
//! holds more from the system, since a growing list passes through all sizes of nodes: 14 to 17
//! bytes for each value then. `docs/multimaps.md` has the bytes of maps with many keys.
//!
//! # Checked by
//! `crates/api-tests/tests/multi/`: agreement with maps of the standard library, failures of
//! allocations, panics, threads. `crates/silvics/tests/scenarios/multi.rs`: schedules, with the
//! canaries of `multi`. [`Check`](crate::Check): L1, L5, and the counts.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `node.rs` | nodes of lists, and list words |
//! | `edit.rs` | a list with a change, and the nodes that it replaces |
//! | `order.rs` | the orders of values, search, and walks over the values of a key |
//! | `ops.rs` | the operations on one key |
//! | `verbs.rs`, `view.rs` | the methods of maps and views |
//! | `range.rs` | scans over keys and pairs |
//! | `check.rs` | the invariants, and the drop of a map |
//! | `set.rs` | [`MultiSet`] |
//! | `outcome.rs` | results and errors |

mod check;
mod edit;
mod node;
mod ops;
mod order;
mod outcome;
mod range;
mod set;
mod verbs;
mod view;

pub use order::{FindOrder, Inserted, ListedValues, Order, Sorted};
pub use outcome::{CountError, Insertion, MultiMemory};
pub use range::{Groups, Pairs};
pub use set::{MultiSet, MultiSetView};
pub use view::MultiView;

use super::builder::Builder;
use super::kept::Kept;
use super::key::{AsKey, DefaultIndex, Key};
use super::lend::Lends;
use super::outcome::OrPanic;
use super::value::Values;
use super::{Map, MapIndex, Value};
use crate::error::AllocError;
use crate::index::Options;
use node::ListMemory;
use silvics_pool::{Budget, PoolStats};
use silvics_sync::counter::StripedCounter;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A concurrent ordered map from keys to several values each.
///
/// * `O` is the order of the values of a key. With [`Sorted`], they are in ascending order, and a
///   pair of key and value is present at most once. With [`Inserted`], they are in the order of
///   their insertion, and a value may be there several times.
/// * Keys, values and indexes have the types that a [`Map`] takes. A value keeps its address until
///   it is removed.
///
/// ```
/// use silvics::MultiMap;
///
/// let by_city: MultiMap<String, u64> = MultiMap::new();
/// by_city.insert("Oslo", 7);
/// by_city.insert("Oslo", 3);
/// by_city.insert("Rome", 5);
/// assert!(!by_city.insert("Oslo", 7).is_added(), "the pair was present");
///
/// let view = by_city.pin();
/// assert!(view.values("Oslo").map(|number| *number).eq([3, 7]));
/// assert_eq!((view.count("Oslo"), view.len(), view.key_count()), (2, 3, 2));
/// assert_eq!(view.remove("Oslo", &3).as_deref(), Some(&3));
/// assert_eq!(by_city.remove_all("Oslo"), 1);
/// assert!(view.iter().map(|(city, number)| (city, *number)).eq([("Rome", 5)]));
/// ```
///
/// # Guarantees under concurrency
/// Any number of threads may call any methods that take `&self` concurrently. Each method on one
/// key is linearizable. The values of one key are read as they were at one moment: by
/// [`MultiView::values`], and also by scans, which are not atomic between keys.
///
/// # Cost
/// If a key has one value, lookups, inserts and memory cost what they cost in a `Map`; a removal
/// makes a lookup and an exchange. A key with more has a list, of which an insert or a removal
/// copies a part: some hundred bytes, and with thousands of values some KiB. If two threads write
/// one key at once, one of them repeats its work. If one key has very many values and many writers,
/// use a [`Set`](crate::Set) of pairs instead.
///
/// # When values are dropped
/// A removed value is dropped after every pin that was taken before its removal has ended, by a
/// later call on the map: see [`Map`](Map#when-values-are-dropped).
pub struct MultiMap<
    K: Key,
    V: Value,
    O = Sorted,
    I: MapIndex<Key = <K as Key>::Form> = DefaultIndex<K>,
> {
    /// The words of the keys (L1), as numbers.
    map: Map<K, u64, I>,
    values: Values<V, I::Placement>,
    lists: Kept<ListMemory<I::Placement>>,
    /// The number of values beside the first one of each key.
    more: StripedCounter<Arc<Budget>>,
    order: PhantomData<fn() -> O>,
}

// Implemented by hand: the auto traits would recurse for a map whose value type contains the map.
// SAFETY: the index and its domain are `Send` and `Sync`, and so are the values and the nodes.
unsafe impl<K, V, O, I> Send for MultiMap<K, V, O, I>
where
    K: Key,
    V: Send + Sync + 'static,
    I: MapIndex<Key = K::Form>,
{
}
// SAFETY: the argument for `Send` holds for shared references.
unsafe impl<K, V, O, I> Sync for MultiMap<K, V, O, I>
where
    K: Key,
    V: Send + Sync + 'static,
    I: MapIndex<Key = K::Form>,
{
}

impl<K: Key, V: Value, O> MultiMap<K, V, O> {
    /// An empty map without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Key, V: Value, O, I: MapIndex<Key = K::Form>> Default for MultiMap<K, V, O, I> {
    fn default() -> Self {
        Self::with_options(&Options::default()).or_panic()
    }
}

impl<K: Key, V: Value, O, I: MapIndex<Key = K::Form>> MultiMap<K, V, O, I> {
    /// An empty map with these options. Fails if the first nodes of the index cannot be allocated.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let mut options = options.clone();
        let budget = options.shared_budget();
        let map: Map<K, u64, I> = Map::with_options(&options)?;
        let config = || options.prepare().1;
        let values = Values::new("value", config, map.domain());
        let memory = ListMemory::new(&config().starting_small());
        let lists = Kept::new(memory, map.domain(), &budget);
        let more = StripedCounter::new(options.counting, budget);
        Ok(Self { map, values, lists, more, order: PhantomData })
    }

    /// Pins the map: the everyday way to call several methods.
    #[inline]
    pub fn pin(&self) -> MultiView<'_, K, V, O, I> {
        MultiView::new(self, self.one_shot())
    }

    /// The number of pairs of a key and a value. It is exact while no thread writes. Otherwise,
    /// each concurrent operation may or may not be counted, and a [`MultiMap::remove_all`] may be
    /// counted in part. O(threads).
    pub fn len(&self) -> usize {
        let more = self.more.sum();
        usize::try_from(self.map.len() as i64 + more).unwrap_or(0)
    }

    /// Whether the map has no key.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The number of keys. It is exact while no thread writes. O(threads).
    pub fn key_count(&self) -> usize {
        self.map.len()
    }

    /// The bytes that the map holds from the system, exactly: see [`Map::bytes`].
    pub fn bytes(&self) -> usize {
        self.map.bytes()
    }

    /// One entry for each pool: those of the index, that of the lists, and that of the values, if
    /// there is one. O(slabs).
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        let mut stats = self.map.pool_stats();
        stats.push(self.lists.memory().stats());
        stats.extend(self.values.stats());
        stats
    }

    /// The use of the map's bytes. It is exact while no thread writes. O(slabs).
    pub fn memory(&self) -> MultiMemory {
        let index = self.map.memory().index;
        let lists = self.lists.memory().stats().live_bytes;
        let values = self.values.stats().iter().map(|stats| stats.live_bytes).sum();
        let bytes = self.bytes();
        let slack = bytes.saturating_sub(index + lists + values);
        MultiMemory { bytes, index, lists, values, slack }
    }

    /// Drops removed values that no pin protects: see [`Map::flush`].
    pub fn flush(&self) {
        self.lists.flush();
        self.values.flush();
        self.map.flush();
    }

    /// Calls [`MultiMap::flush`], and returns the slabs without a used slot to the system: see
    /// [`Map::shrink`]. Returns the number of bytes that it returned.
    pub fn shrink(&self) -> usize {
        self.lists.flush();
        self.values.shrink() + self.lists.memory().shrink() + self.map.shrink()
    }

    /// Begins to set up a map with a memory limit, other pages or another index:
    /// [`Builder::build_multi`] makes it.
    pub fn builder() -> Builder<K, V, I> {
        Builder::new()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Builder<K, V, I> {
    /// Makes an empty [`MultiMap`] whose values have the order `O`. Fails if what the index needs
    /// from the start cannot be allocated.
    ///
    /// ```
    /// use silvics::multi::Inserted;
    /// use silvics::{Map, MultiMap};
    ///
    /// let builder = Map::<String, u64>::builder().memory_limit(1 << 20);
    /// let log: MultiMap<String, u64, Inserted> = builder.build_multi()?;
    /// log.extend([("a", 2), ("a", 1), ("a", 2)]);
    /// assert!(log.pin().values("a").map(|value| *value).eq([2, 1, 2]));
    /// # Ok::<(), silvics::AllocError>(())
    /// ```
    pub fn build_multi<O>(self) -> Result<MultiMap<K, V, O, I>, AllocError> {
        MultiMap::with_options(&self.options)
    }
}

/// Inserts every pair, in order.
impl<K: Key, V: Value, O: Order<V>, I: MapIndex<Key = K::Form>, Q: AsKey<K>> FromIterator<(Q, V)>
    for MultiMap<K, V, O, I>
{
    fn from_iter<T: IntoIterator<Item = (Q, V)>>(pairs: T) -> Self {
        let map = Self::default();
        map.extend(pairs);
        map
    }
}

impl<K: Key, V: Value, O: Order<V>, I: MapIndex<Key = K::Form>, Q: AsKey<K>> Extend<(Q, V)>
    for MultiMap<K, V, O, I>
{
    fn extend<T: IntoIterator<Item = (Q, V)>>(&mut self, pairs: T) {
        Self::extend(self, pairs);
    }
}

impl<K: Key, V: Value + fmt::Debug, O, I: MapIndex<Key = K::Form>> fmt::Debug
    for MultiMap<K, V, O, I>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}
