//! A concurrent ordered map from any key to any value, over one of the indexes.
//!
//! | type | for |
//! |---|---|
//! | [`Map`], [`Set`] | most uses; [`Builder`] chooses the index, its memory and a limit |
//! | [`View`], [`OwnedView`] | many calls under one pin, on one thread or on several |
//! | [`OwnedRange`], [`PinnedRange`], [`Cursor`] | scans that live longer than a view |
//! | [`KeyedSet`] | values that contain their keys |
//! | [`CountedMap`] | ranks, and the entry at a rank |
//! | [`OrdMap`](ord::OrdMap) | keys without an encoding, and orders chosen at run time |
//! | [`VersionedMap`](versions::VersionedMap) | snapshots of all keys at one moment |
//! | [`MultiMap`](multi::MultiMap), [`MultiSet`](multi::MultiSet) | several values for a key; counts |
//!
//! The rest of this page is about the implementation.
//!
//! # Files
//! * `mod.rs`: the type [`Map`], and the contract of the indexes below it ([`MapIndex`]).
//! * `verbs.rs`: the verbs, each declared once for the three faces of a map: the methods of [`Map`]
//!   itself (`one_shot.rs`), of [`View`] (`view.rs`) and of [`OwnedView`] (`owned.rs`).
//! * `ops.rs`, `scan.rs`, `batch.rs`: the operations on one key, on ranges, and on many keys.
//!   `spot.rs`: the operations on one key, apart from how the index finds it.
//! * `lend.rs`: the pins that protect returned values; `outcome.rs`: results and errors.
//! * `value.rs`, `kept.rs`: the memory of values, and the time when they are dropped.
//! * `batched.rs`: scans that read some entries at a time: [`OwnedRange`] (`owned_range.rs`), whose
//!   entries are copies (`copies.rs`), and [`PinnedRange`] (`pinned_range.rs`).
//! * `cursor.rs`: [`Cursor`], a position that owns the memory it needs.
//! * `key/`: the keys of maps; see [`crate::key`].
//! * `versions/`: [`VersionedMap`](versions::VersionedMap), a map that keeps older versions.
//! * `multi/`: [`MultiMap`](multi::MultiMap), a map with several values for each key.
//! * `rank.rs`: ranks, for an index that counts its keys ([`crate::counts`]).
//! * `builder.rs`: [`Builder`]; `set.rs`: [`Set`], a map without values; `keyed.rs`: [`Keyed`],
//!   values that contain their keys.
//! * `serde.rs`, with the feature `serde`: maps and sets in the formats of that crate.
//! * `parallel.rs`, with the feature `rayon`: scans and `collect` on many threads.
//!
//! # Invariants
//! * M1: every word in the index is the word of one value (`value.rs`): its address, or a number
//!   itself.
//! * M2: the caller that takes a word out of the index, by a removal or a replacement, retires the
//!   word's value. The index returns each word to one caller (clause 3 of [`MapIndex`]).
//! * M3: a value is read under a guard of the map's domain that was taken before the value's word
//!   was read. While that guard lives, no word that was read is reused for another value. So a
//!   compare-and-swap of words that succeeds replaces the very value that was read; for numbers it
//!   compares the numbers.
//! * M4: user code (closures, `Drop`, `PartialEq`, encodings of keys) runs while no lock is held,
//!   and either before the operation changes anything or after it is complete. If user code panics,
//!   the map is consistent and no value is lost. The writer of a recorded map is the exception: it
//!   runs under the lock of its trace, after the index and before the map, and no panic of it
//!   leaves the recording.
//! * M5: a type that vouches for its forms wrote each form in the index, or [`Key`] has admitted
//!   it. So scans need not check that a string is text.
//!
//! # Linearization points
//! They are those of the index's operations ([`OrderedIndex`](crate::OrderedIndex)). `compute`,
//! `update` and `remove_if` are a lookup, the closure, and a `compare_exchange` that succeeds if
//! the key still has the value that the closure was given: that step is their point. If it fails,
//! they begin again with the state found.

mod batch;
mod batched;
mod builder;
mod copies;
mod cursor;
pub(crate) mod kept;
pub(crate) mod key;
mod keyed;
pub(crate) mod lend;
pub mod multi;
mod one_shot;
mod ops;
pub mod ord;
pub(crate) mod outcome;
mod owned;
mod owned_range;
#[cfg(feature = "rayon")]
mod parallel;
mod pinned_range;
mod rank;
mod record;
mod scan;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod spot;
pub(crate) mod value;
mod verbs;
pub mod versions;
mod view;

pub use batch::ExtendError;
pub use builder::Builder;
pub use cursor::Cursor;
pub use key::DefaultIndex;
pub use keyed::{Keyed, KeyedSet};
use lend::Lends;
pub use lend::{OwnedValueGuard, ValueGuard};
pub use outcome::{
    CompareExchangeError, Compute, Operation, Rejected, RemoveIfError, TryInsertError,
};
pub use owned::OwnedView;
pub use owned_range::{HoldsMap, OwnedRange};
#[cfg(feature = "rayon")]
pub use parallel::ParRange;
pub use pinned_range::PinnedRange;
pub use record::RecordedMap;
pub use scan::{KeyRange, Range, RangeRev};
pub use set::{Set, SetRange, SetView};
pub use value::{Value, ValueRef};
pub use view::View;

use crate::counts::Countable;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::index::{Batches, Check, Create, KeyRef, Options, OrderedScan};
use crate::key::IndexKey;
use key::{AsKey, Key};
use outcome::OrPanic;
use silvics_pool::{Budget, Placement, PoolStats};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;
use value::Values;

/// An index that a [`Map`] can use.
///
/// # Safety
/// A map takes the words that the index returns for addresses of values. So the index keeps the
/// contracts of [`OrderedIndex`](crate::OrderedIndex), [`Batches`] and [`OrderedScan`], and those
/// of [`OrderedEnds`](crate::OrderedEnds) and [`OrderStatistics`](crate::OrderStatistics) if it has
/// them, whatever is called, on any threads, and in particular these clauses. *The guard* is the
/// one that is passed to the operation; it is of the index's domain.
///
/// 1. **No word is made up.** Each word that an operation returns was passed to the index as a
///    value by an operation that put it there.
/// 2. **No word is stale.** Each word that an operation returns for a key was the key's value at
///    some moment since the guard was taken.
/// 3. **Each word leaves once.** If a word is the value of a key, and then the key is removed or
///    gets another value, exactly one operation returns that word as removed or replaced.
/// 4. **A refused word stays out.** If an operation returns an error, or a state with which its
///    verb puts nothing, no other operation ever finds the word that it was to put.
/// 5. **Keys are the index's own.** A key that a scan or an end returns is a copy, or memory of the
///    index that the guard protects, and never a bound that was passed to it.
///
/// Two threads may use an index at once, so it is [`Send`] and [`Sync`] by
/// [`Lookup`](crate::Lookup).
pub unsafe trait MapIndex: Create + Batches + OrderedScan {
    /// The memory that the map places its values in.
    type Placement: Placement;

    /// Fills an empty index with entries in ascending order, on at most `threads` threads. If it
    /// returns an error, the index stays empty. An index to which inserts are as good returns
    /// `None`, whatever the entries are.
    fn load(
        &mut self,
        entries: &[(KeyRef<'_, Self>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        let _ = (entries, threads);
        None
    }

    /// Calls `each` with the first `most` entries between two bounds, or with all if there are
    /// fewer. If `descends`, these are the last entries, in descending order.
    fn read_ahead<'g>(
        &'g self,
        bounds: (Bound<KeyRef<'g, Self>>, Bound<KeyRef<'g, Self>>),
        descends: bool,
        most: usize,
        guard: &'g Guard,
        mut each: impl FnMut(KeyRef<'g, Self>, u64),
    ) {
        let each = |(key, word)| each(key, word);
        if descends {
            self.range_rev(bounds, guard).take(most).for_each(each);
        } else {
            self.range(bounds, guard).take(most).for_each(each);
        }
    }
}

/// The use of the bytes that a map holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// All bytes: [`Map::bytes`].
    pub bytes: usize,
    /// The bytes of nodes and keys of the index, retired ones included.
    pub index: usize,
    /// The bytes of values outside the index, retired ones included.
    pub values: usize,
    /// The bytes of free slots and of bookkeeping. If maps share a budget, this includes the bytes
    /// of the other maps.
    pub slack: usize,
}

/// An entry that borrows a view of a map.
pub type Entry<'g, K, V> = (<K as Key>::Ref<'g>, ValueRef<'g, V>);

/// A concurrent ordered map.
///
/// Every method takes `&self`, and any number of threads may call any methods concurrently. Each
/// method on one key, and each method on the first or last entry, is linearizable: it takes effect
/// at one moment between its call and its return. `len`, `lower_bound`, `upper_bound`, scans, and
/// methods on many entries are not; their docs say what they guarantee.
///
/// * Keys have any type with an order-preserving encoding ([`Key`]). A borrowed form is enough for
///   a lookup ([`AsKey`]).
/// * Values have any type that threads can share. A value keeps its address until it is removed or
///   replaced, unless it is one of the [small values](Value), which are stored in the index
///   itself.
/// * `I` is the index. The default depends on the form of the keys: [`DefaultIndex`].
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
/// A removed or replaced value is dropped after every pin that was taken before its removal is
/// gone. Any later call of a method of the map, on any thread, may run destructors of such values,
/// before or after its own work. [`Map::flush`] runs those that no pin protects, except for the
/// last few values that each other living thread has removed. Dropping the map runs all of them.
///
/// Do not call any method of a map while you hold a lock that a value's destructor takes: the call
/// may run that destructor, and deadlock. If a destructor panics, the panic hook reports it, and
/// the panic does not reach the caller.
///
/// # Pins
/// A returned value is valid while its pin lasts. [`Map::pin`] pins once for many calls, and their
/// results borrow the [`View`]. A method of the map itself pins for one call, and its result holds
/// the pin ([`ValueGuard`]). While a thread stays pinned, no removed entry can be freed, in this
/// map or another that shares its [`Domain`](crate::Domain); so keep views and results for a short
/// time only. By default all maps of the process share one domain. A map with a memory limit has
/// its own, and [`Builder::domain`] gives a map any other.
///
/// # Small maps
/// An empty map makes no system call. A map of a few entries takes memory for these entries and
/// some hundred bytes; its pools get regions of their own as it grows.
pub struct Map<K: Key, V: Value, I: MapIndex<Key = K::Form> = DefaultIndex<K>> {
    index: I,
    values: Values<V, I::Placement>,
    budget: Arc<Budget>,
    keys: PhantomData<fn(K) -> K>,
}

// Implemented by hand: the auto traits would recurse for a map whose value type contains the map.
// SAFETY: the index and its domain are `Send` and `Sync`, and so are the values. The map has no
// keys of type `K`, only their forms in the index.
unsafe impl<K: Key, V: Send + Sync + 'static, I: MapIndex<Key = K::Form>> Send for Map<K, V, I> {}
// SAFETY: the argument for `Send` holds for shared references.
unsafe impl<K: Key, V: Send + Sync + 'static, I: MapIndex<Key = K::Form>> Sync for Map<K, V, I> {}

/// A map with a default index that counts its keys, as [`Builder::counted`] makes it.
///
/// ```
/// use silvics::CountedMap;
///
/// struct Board {
///     scores: CountedMap<(u32, String), ()>,
/// }
/// let board = Board { scores: CountedMap::default() };
/// board.scores.insert((310, "Ada"), ());
/// assert_eq!(board.scores.rank((400, "")), 1);
/// ```
pub type CountedMap<K, V> = Map<K, V, <DefaultIndex<K> as Countable>::Counted>;

impl<K: Key, V: Value> Map<K, V> {
    /// An empty map without a limit.
    ///
    /// # Panics
    /// If the first nodes of the index cannot be allocated.
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
    /// An empty map with these options. Fails if the first nodes of the index cannot be allocated.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        Self::around(options, I::with_options)
    }

    /// An empty map with these options over the index that `make` makes of them.
    pub(crate) fn around(
        options: &Options,
        make: impl FnOnce(&Options) -> Result<I, AllocError>,
    ) -> Result<Self, AllocError> {
        let mut options = options.clone();
        let budget = options.shared_budget();
        let index = make(&options)?;
        let values = Values::new("value", || options.prepare().1, index.domain());
        Ok(Self { index, values, budget, keys: PhantomData })
    }

    /// The index, for the capabilities that only some have.
    pub(crate) fn index(&self) -> &I {
        &self.index
    }

    /// Returns a [`View`]: the map with one pin for many calls. Scans (`iter`, `range`, `prefix`)
    /// are methods of the view. While it lives, no removed entry of the domain can be freed.
    ///
    /// ```
    /// let map: silvics::Map<u64, char> = (0..).zip('a'..='e').collect();
    /// for (key, value) in map.pin().range(1..3) {
    ///     println!("{key}: {}", *value);
    /// }
    /// ```
    #[inline]
    pub fn pin(&self) -> View<'_, K, V, I> {
        View::new(self, self.one_shot())
    }

    /// Begins to set up a map with a memory limit, other pages or another index.
    pub fn builder() -> Builder<K, V, I> {
        Builder::new()
    }

    /// Pins the map until the returned view is dropped, on any thread. The view and the values that
    /// it returns may be held across an `await`.
    pub fn pin_owned(&self) -> OwnedView<'_, K, V, I> {
        OwnedView::new(self, self.index.domain().pin_owned())
    }

    /// The number of keys. It is exact while no thread writes; otherwise each concurrent operation
    /// may or may not be counted. O(threads).
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The number of keys at one moment, or `None` if writers prevent that: see
    /// [`crate::Lookup::len_snapshot`].
    pub fn len_snapshot(&self) -> Option<usize> {
        self.index.len_snapshot()
    }

    /// Whether [`Map::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the map holds from the system, exactly: live, retired and free nodes, keys
    /// and values, and bookkeeping. O(1).
    ///
    /// Memory that values point to is not included, nor are the lists of retired objects (8 bytes
    /// for each object). If maps share a [budget](Builder::budget), the result is the sum for all
    /// of them.
    pub fn bytes(&self) -> usize {
        self.budget.held()
    }

    /// One entry for each pool; the pool of the values, if there is one, comes last. O(slabs).
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        let mut stats = self.index.pool_stats();
        stats.extend(self.values.stats());
        stats
    }

    /// Builds a map from entries in ascending order of their keys: see [`Builder::from_sorted`].
    pub fn from_sorted<Q: AsKey<K>>(
        entries: impl IntoIterator<Item = (Q, V)>,
    ) -> Result<Self, BulkLoadError> {
        Self::builder().from_sorted(entries)
    }

    /// The use of the map's bytes. It is exact while no thread writes. O(slabs).
    pub fn memory(&self) -> Memory {
        let live = |stats: &PoolStats| stats.live_bytes;
        let index = self.index.pool_stats().iter().map(live).sum();
        let values = self.values.stats().iter().map(live).sum();
        let bytes = self.bytes();
        Memory { bytes, index, values, slack: bytes.saturating_sub(index + values) }
    }

    /// Drops removed values that no pin protects: all that this thread or a joined one removed, and
    /// those of full batches of other threads.
    pub fn flush(&self) {
        self.values.flush();
        self.index.domain().flush();
    }

    /// Calls [`Map::flush`], and returns the slabs of nodes and values without a used slot to the
    /// system. Returns the number of bytes that it returned.
    ///
    /// Call it after most of a map was removed, and not while this thread has pinned a map of the
    /// same domain. O(slabs + ended threads); writers that need a new slab wait meanwhile. The free
    /// slots that other living threads cache stay, and so does each slab that holds one. Values are
    /// not moved, and neither are entries, so after random removals few slabs may be empty.
    ///
    /// There is one exception. Removals of string keys at the memory limit may have to leave empty
    /// nodes behind. The call then takes O(entries), removes these nodes, and puts the entries of
    /// sparse ones together.
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
}

/// Builds a map from entries in any order. If a key occurs twice, the later entry wins.
///
/// If the index can be built from sorted entries, this sorts them, and each node is as large as its
/// content, as with [`Map::from_sorted`]. Until the map is built, it takes about a hundred bytes
/// for each entry and a copy of its key, beside the map. [`Map::extend`] takes none, and inserts
/// entry by entry.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>, Q: AsKey<K>> FromIterator<(Q, V)>
    for Map<K, V, I>
{
    fn from_iter<T: IntoIterator<Item = (Q, V)>>(entries: T) -> Self {
        let mut map = Self::default();
        map.do_collect(entries, || true, &batch::Caller).or_panic();
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

/// The number of values that the drop of a map looks up before it drops them.
const DROPPED_AT_ONCE: usize = 128;

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Drop for Map<K, V, I> {
    fn drop(&mut self) {
        if !self.values.are_dropped_one_by_one() {
            return;
        }
        // Destructors run without a pin, which would hold back what other maps free.
        let (mut words, mut after) = ([0; DROPPED_AT_ONCE], None);
        loop {
            let mut count = 0;
            {
                let guard = self.index.domain().pin();
                let last = after.as_ref().map(<K::Form as IndexKey>::borrow);
                let bounds = (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
                let mut next = None;
                self.index.read_ahead(bounds, false, words.len(), &guard, |key, word| {
                    value::fetch::<V>(word);
                    words[count] = word;
                    count += 1;
                    if count == DROPPED_AT_ONCE {
                        next = Some(<K::Form as IndexKey>::to_owned(key));
                    }
                });
                after = next;
            }
            for &word in &words[..count] {
                // SAFETY: M1: the word is that of one value. The map is borrowed exclusively, so no
                // other thread uses the word, and the index drops no values. Each word comes once:
                // entries come in ascending order, and the next ones lie behind the last of these.
                unsafe { self.values.drop_with_map(word) };
            }
            if after.is_none() {
                return;
            }
        }
    }
}
