//! A concurrent ordered map from any key to any value, over one of the indexes.
//!
//! # Parts
//! * `mod.rs`: the type, and how it is made; `one_shot.rs`: the forms of its methods that pin by themselves;
//! * [`View`] (`view.rs`): the map while it is pinned;
//! * [`OwnedView`] (`owned.rs`): the same for whoever goes from thread to thread;
//! * `ops.rs`: the operations, over the index's words; `batch.rs`: many at once;
//! * `value.rs`: where values are, and when they are dropped;
//! * `scan.rs`: ranges; [`Cursor`] (`cursor.rs`): positions that own what they need;
//! * [`Builder`] (`builder.rs`): how a map is set up; [`Set`] (`set.rs`): a map without values;
//! * `serde.rs`, with the feature `serde`: maps and sets in the formats of that crate;
//! * `parallel.rs`, with the feature `rayon`: scans on many threads, by `par_iter` and `par_range` of an [`OwnedView`];
//! * keys are in [`crate::key`].
//!
//! # Invariants
//! * M1: every word in the index is the word (`value.rs`) of one value, or of a number the number itself.
//! * M2: whoever takes a word out of the index, by a removal or by putting another there, retires its value. An index tells
//!   each to one caller: its operations are linearizable.
//! * M3: values are read under a guard of the map's domain that was there when their word was read. So while it
//!   is, none of the words read is used for another value: a compare-and-swap of words that succeeds means
//!   that the very value that was read is still there, and one of two numbers compares the numbers.
//! * M4: the user's code (closures, `Drop`, `PartialEq`, keys' encodings) runs while no lock is held and before anything has
//!   changed, or after: if it panics, the map is as it was, and nothing is lost.
//! * M5: a form in the index comes from a type that vouches for its forms, or the key's type has admitted it: so scans
//!   need not look whether it is text.
//!
//! # Linearization points
//! Those of the index's operations ([`OrderedIndex`](crate::OrderedIndex)). `compute`, `update` and `remove_if` are a lookup, the
//! closure, and a `compare_exchange` that succeeds if the value is what the closure has seen: that one is their
//! point. If it fails, they begin again with what is there.

mod batch;
mod builder;
mod cursor;
pub(crate) mod key;
mod lend;
mod one_shot;
mod ops;
mod outcome;
mod owned;
#[cfg(feature = "rayon")]
mod parallel;
mod scan;
#[cfg(feature = "serde")]
mod serde;
mod set;
pub(crate) mod value;
mod verbs;
mod view;

pub use batch::ExtendError;
pub use builder::Builder;
pub use cursor::Cursor;
pub use lend::ValueGuard;
pub use outcome::{
    CompareExchangeError, Compute, Operation, Rejected, RemoveIfError, TryInsertError,
};
pub use owned::OwnedView;
#[cfg(feature = "rayon")]
pub use parallel::ParRange;
pub use scan::{KeyRange, Range, RangeRev};
pub use set::{Set, SetView};
pub use value::{Value, ValueRef};
pub use view::View;

use crate::art::{ArtKey, ArtTree};
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::index::{Batches, Check, Create, KeyRef, Options, OrderedScan};
use key::{AsKey, Key};
use outcome::OrPanic;
use silvics_pool::{Budget, Placement, PoolStats};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;
use value::Values;

/// An index that a [`Map`] can stand on.
///
/// # Safety
/// The map takes the index's words for addresses of values. So the index keeps the contract of [`OrderedIndex`](crate::OrderedIndex) and of
/// [`OrderedScan`] whatever is called: it gives no word that it was not given; an operation under a guard gives
/// only words that have been the key's value since the guard was there; each word that is removed or
/// replaced is given to one caller; and keys that a scan gives are those of the index, and not its bounds.
pub unsafe trait MapIndex: Create + Batches + OrderedScan {
    /// Where the map's values are.
    type Placement: Placement;

    /// Fills an empty index with entries in ascending order, if it has a faster way to do so than by insertion. If
    /// anything is wrong, it stays empty.
    fn load(&mut self, entries: &[(KeyRef<'_, Self>, u64)]) -> Option<Result<(), BulkLoadError>> {
        let _ = entries;
        None
    }

    /// Gives `each` the first `most` entries of a scan, if there are so many: from the bound on, or back from it.
    fn read_ahead<'g>(
        &'g self,
        (from, descends): (Bound<KeyRef<'g, Self>>, bool),
        most: usize,
        guard: &'g Guard,
        mut each: impl FnMut(KeyRef<'g, Self>, u64),
    ) {
        let each = |(key, word)| each(key, word);
        if descends {
            self.range_rev((Bound::Unbounded, from), guard).take(most).for_each(each);
        } else {
            self.range((from, Bound::Unbounded), guard).take(most).for_each(each);
        }
    }
}

// SAFETY: linearizable, checked by the whole suite.
unsafe impl<K: ArtKey + ?Sized, P: Placement> MapIndex for ArtTree<K, P> {
    type Placement = P;

    fn load(&mut self, entries: &[(KeyRef<'_, Self>, u64)]) -> Option<Result<(), BulkLoadError>> {
        Some(self.bulk_load(entries, NonZeroUsize::MIN))
    }

    fn read_ahead<'g>(
        &'g self,
        (from, descends): (Bound<KeyRef<'g, Self>>, bool),
        most: usize,
        guard: &'g Guard,
        each: impl FnMut(KeyRef<'g, Self>, u64),
    ) {
        if descends {
            self.range_rev((Bound::Unbounded, from), guard).read_some(most, each);
        } else {
            self.range((from, Bound::Unbounded), guard).read_some(most, each);
        }
    }
}

/// What the bytes that a map holds are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// All of them: [`Map::bytes`].
    pub bytes: usize,
    /// Nodes and keys of the index, those that are retired included.
    pub index: usize,
    /// Values that are not in the index, those that are retired included.
    pub values: usize,
    /// Free slots, and what keeps account of all.
    pub slack: usize,
}

/// An entry as a map lends it.
pub type Entry<'g, K, V> = (<K as Key>::Ref<'g>, ValueRef<'g, V>);

/// A concurrent ordered map.
///
/// Every method takes `&self`, and any number of threads can call any of them at the same time. Each is linearizable: it
/// takes effect at one moment between its call and its return. Scans and batches are not one moment, and say so.
///
/// * Keys are of any type with an order-preserving encoding ([`Key`]), looked up by what is borrowed ([`AsKey`]).
/// * Values are of any type that threads can share, and stay at one address until they are removed or replaced.
///   Numbers, `bool` and `char` are in the index itself.
/// * `I` is the index, an adaptive radix tree unless it is named.
///
/// ```
/// use silvics::Map;
///
/// let map: Map<String, u64> = Map::new();
/// std::thread::scope(|scope| {
///     for worker in 0..4 {
///         let map = &map;
///         scope.spawn(move || {
///             map.insert(format!("worker/{worker}"), worker);
///         });
///     }
/// });
/// assert_eq!(map.len(), 4);
/// let view = map.pin();
/// assert_eq!(view.get("worker/2").as_deref(), Some(&2));
/// let from: Vec<_> = view.range("worker/2"..).map(|(key, _)| key).collect();
/// assert_eq!(from, ["worker/2", "worker/3"]);
/// ```
///
/// # When values are dropped
/// A value that is removed or replaced is dropped when no pin of before is left: by a later call of any method of the map on
/// any thread, before that does anything, or after a write; all of them by [`Map::flush`] once nothing is pinned, and at the latest with the map.
/// So do not call it while you hold a lock that destructors of values take. A destructor that panics ends the destruction of
/// that value, and is heard by the panic hook alone.
///
/// # Pins
/// What a map lends stays readable as long as something is pinned. [`Map::pin`] pins once for many calls, whose results
/// borrow the [`View`]. The methods of the map itself pin for a call; what they lend holds the pin
/// ([`ValueGuard`]). Nothing that has been removed can be freed while a thread stays pinned: keep neither for long.
pub struct Map<K: Key, V: Value, I: MapIndex<Key = K::Form> = ArtTree<<K as Key>::Form>> {
    index: I,
    values: Values<V, I::Placement>,
    budget: Arc<Budget>,
    keys: PhantomData<fn(K) -> K>,
}

// Said aloud, so that a value can contain a map of its own type.
// SAFETY: indexes are shared by all threads, values are `Send + Sync`, and there are no keys.
unsafe impl<K: Key, V: Send + Sync + 'static, I: MapIndex<Key = K::Form>> Send for Map<K, V, I> {}
// SAFETY: as above.
unsafe impl<K: Key, V: Send + Sync + 'static, I: MapIndex<Key = K::Form>> Sync for Map<K, V, I> {}

impl<K: Key, V: Value> Map<K, V> {
    /// An empty map without a limit.
    ///
    /// # Panics
    /// If there is no memory for its first node.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Default for Map<K, V, I> {
    fn default() -> Self {
        Self::with_options(&Options::default()).or_panic()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// An empty map, set up so.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let mut options = options.clone();
        let budget = options.shared_budget();
        let index = I::with_options(&options)?;
        let (_, config) = options.prepare();
        let values = Values::new(&config, index.domain());
        Ok(Self { index, values, budget, keys: PhantomData })
    }

    /// The map, pinned: the everyday way to call several methods.
    #[inline]
    pub fn pin(&self) -> View<'_, K, V, I> {
        View::new(self, self.one_shot())
    }

    /// A map with a limit, other pages, another index: see [`Builder`].
    pub fn builder() -> Builder<K, V, I> {
        Builder::new()
    }

    /// The map, pinned until what this returns is dropped, on whatever thread: to hold what it lends across an `await`.
    pub fn pin_owned(&self) -> OwnedView<'_, K, V, I> {
        OwnedView::new(self, self.index.domain().pin_owned())
    }

    /// A cursor, before the first entry, that keeps the map alive.
    pub fn cursor(self: &Arc<Self>) -> Cursor<K, V, I> {
        Cursor::new(Arc::clone(self))
    }

    /// How many keys are present: exact while nobody writes; else operations under way may or may
    /// not be counted. O(threads).
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no key is present, as [`Map::len`] counts them.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes the map holds from the system, exactly: nodes, keys and values, live, retired and free
    /// ones, and what keeps account of them. O(1). Not what values point to, nor the lists of what is retired (8 bytes for each object). Of maps
    /// that share a [budget](Builder::budget), what all of them hold.
    pub fn bytes(&self) -> usize {
        self.budget.held()
    }

    /// One entry per pool, that of the values last, if they have one. O(slabs).
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        let mut stats = self.index.pool_stats();
        stats.extend(self.values.stats());
        stats
    }

    /// A map of entries in ascending order of their keys: see [`Builder::from_sorted`].
    pub fn from_sorted<Q: AsKey<K>>(
        entries: impl IntoIterator<Item = (Q, V)>,
    ) -> Result<Self, BulkLoadError> {
        Self::builder().from_sorted(entries)
    }

    /// What the map's bytes are used for. O(slabs); exact while nobody writes. Of maps that share a [budget](Builder::budget) the slack has what
    /// the others hold.
    pub fn memory(&self) -> Memory {
        let live = |stats: &PoolStats| stats.live_bytes;
        let index = self.index.pool_stats().iter().map(live).sum();
        let values = self.values.stats().iter().map(live).sum();
        let bytes = self.bytes();
        Memory { bytes, index, values, slack: bytes.saturating_sub(index + values) }
    }

    /// Drops values that have been removed and nobody can read any more: all that this thread has removed, and full batches of
    /// others.
    pub fn flush(&self) {
        self.values.flush();
        self.index.domain().flush();
    }

    /// [`Map::flush`], and gives memory back to the system: of nodes and values the slabs of which no slot is in use.
    /// Returns how many bytes: [`Map::bytes`] is less by them.
    ///
    /// Call it after most of a map has been removed, and not while this thread has it pinned. O(slabs); writers that need a
    /// new slab meanwhile wait. What other threads keep for their next insertions stays, as does what shares a slab
    /// with it; entries are not moved, so after random removals there may be little to give.
    ///
    /// ```
    /// let map: silvics::Map<String, Vec<u8>> = silvics::Map::new();
    /// map.extend((0..10_000).map(|n| (format!("key {n}"), vec![0; 10])));
    /// let before = map.bytes();
    /// map.clear();
    /// map.shrink();
    /// assert!(map.bytes() < before / 2);
    /// ```
    pub fn shrink(&self) -> usize {
        self.values.shrink() + self.index.shrink()
    }

    #[inline]
    fn one_shot(&self) -> Guard {
        self.values.drop_some();
        self.index.domain().pin()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>, Q: AsKey<K>> FromIterator<(Q, V)>
    for Map<K, V, I>
{
    fn from_iter<T: IntoIterator<Item = (Q, V)>>(entries: T) -> Self {
        let map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>, Q: AsKey<K>> Extend<(Q, V)> for Map<K, V, I> {
    fn extend<T: IntoIterator<Item = (Q, V)>>(&mut self, entries: T) {
        Self::extend(self, entries);
    }
}

impl<K: Key, V: Value + fmt::Debug, I: MapIndex<Key = K::Form>> fmt::Debug for Map<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + Check> Check for Map<K, V, I> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.index.check()
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let entries = self.index.check()?;
        let mut reachable = self.index.reachable()?;
        reachable.extend(self.values.stats().map(|stats| (stats.kind, entries)));
        Ok(reachable)
    }

    fn settle(&mut self) {
        self.index.settle();
        self.values.settle();
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Drop for Map<K, V, I> {
    fn drop(&mut self) {
        if !self.values.are_dropped_one_by_one() {
            return;
        }
        let guard = self.index.domain().pin();
        for (_, word) in self.index.range(.., &guard) {
            // SAFETY: M1; nobody else has the map, and the index drops no values.
            unsafe { self.values.drop_in_index(word) };
        }
    }
}
