//! The settings of a map.

use super::key::{AsKey, Key};
use super::{Map, MapIndex, Value};
use crate::counts::{Counted, CountedKey};
use crate::domain::Domain;
use crate::error::{AllocError, BulkLoadError};
use crate::frame::{Index, Ordered, Structure};
use crate::index::Options;
use silvics_pool::{Budget, Heap, Pages, Placement, Tuning};
use silvics_sync::counter::Counting;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The settings of a new [`Map`], made by [`Map::builder`].
///
/// ```
/// use silvics::{Map, Pages, SkipList};
///
/// let map: Map<String, Vec<u8>> = Map::builder().memory_limit(64 << 20).pages(Pages::Thp).build()?;
/// map.insert("a", vec![1]);
/// assert!(map.bytes() <= 64 << 20);
///
/// // A map over another index, a skip list.
/// let map = Map::<u64, String>::builder().index::<SkipList<u64>>().build()?;
/// map.insert(1, "one".to_string());
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub struct Builder<K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    pub(super) options: Options,
    keys: PhantomData<fn() -> K>,
    values: PhantomData<fn() -> V>,
    index: PhantomData<fn() -> I>,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Builder<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("options", &self.options).finish()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Builder<K, V, I> {
    pub(super) fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        Self { options, keys: PhantomData, values: PhantomData, index: PhantomData }
    }

    /// Sets the most bytes that the map may hold from the system for nodes, keys and values. Memory
    /// that values point to is not included. Such a map has a domain of its own by default, so that
    /// pins of other maps do not keep it at its limit.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory_limit = Some(bytes);
        self
    }

    /// Shares a limit with other maps, in place of [`Builder::memory_limit`]. Then [`Map::bytes`]
    /// returns the sum for all of them. A map whose memory grows in steps decides by this sum, too,
    /// whether it is large.
    #[must_use]
    pub fn budget(mut self, budget: Arc<Budget>) -> Self {
        self.options.budget = Some(budget);
        self
    }

    /// Sets the pages to request. By default these are huge pages, if the system has them.
    #[must_use]
    pub fn pages(mut self, pages: Pages) -> Self {
        self.options.pages = pages;
        self
    }

    /// Sets whether the threads that insert and remove keys share one count of them. By default
    /// they do not, once the map is large or they collide.
    #[must_use]
    pub fn counting(mut self, counting: Counting) -> Self {
        self.options.counting = counting;
        self
    }

    /// Sets how pools place slots and how they grow.
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.options.tuning = tuning;
        self
    }

    /// Sets the domain that the map reclaims memory through. A map with a memory limit, or with a
    /// budget that has one, gets a domain of its own by default. The default of all others is
    /// [`Domain::shared`]: one pin serves all maps of the process, and holds back the memory that
    /// any of them frees: until the oldest pin ends, a map holds all nodes and values that it has
    /// removed since. With a [`Domain::new`] of its own, a map depends on no other map's pins, and
    /// costs some KiB more.
    #[must_use]
    pub fn domain(mut self, domain: Domain) -> Self {
        self.options.domain = Some(domain);
        self
    }

    /// Sets the heap that a map with the placement [`Shared`](crate::Shared) allocates from. Maps
    /// with other placements ignore it.
    #[must_use]
    pub fn heap(mut self, heap: Arc<dyn Heap>) -> Self {
        self.options.heap = Some(heap);
        self
    }

    /// Sets the type of the index.
    #[must_use]
    pub fn index<J: MapIndex<Key = K::Form>>(self) -> Builder<K, V, J> {
        Builder::with(self.options)
    }

    /// Makes an empty map. Fails if the first nodes cannot be allocated.
    pub fn build(self) -> Result<Map<K, V, I>, AllocError> {
        Map::with_options(&self.options)
    }

    /// Makes a map from entries in ascending order of their keys. This is faster than inserting
    /// them, and takes less memory, since each node is as large as its content. If the entries are
    /// not in order, the error has the position of the first wrong one.
    ///
    /// ```
    /// use silvics::{BulkLoadError, Map};
    ///
    /// let squares: Map<u32, u64> = Map::from_sorted((0..1000).map(|n| (n, u64::from(n).pow(2))))?;
    /// assert_eq!(squares.get(30).as_deref(), Some(&900));
    /// let error = Map::<u32, char>::from_sorted([(1, 'a'), (3, 'c'), (2, 'b')]).map(drop);
    /// assert_eq!(error, Err(BulkLoadError::Unsorted { position: 2 }));
    /// # Ok::<(), BulkLoadError>(())
    /// ```
    pub fn from_sorted<Q: AsKey<K>>(
        self,
        entries: impl IntoIterator<Item = (Q, V)>,
    ) -> Result<Map<K, V, I>, BulkLoadError> {
        let mut map = self.build()?;
        map.do_from_sorted(entries)?;
        Ok(map)
    }
}

impl<K: Key<Form: CountedKey>, V: Value, A: Ordered<Key = K::Form>> Builder<K, V, Index<A>> {
    /// Makes a map that knows the rank of each key: [`View::rank`](super::View::rank),
    /// [`View::nth`](super::View::nth), [`View::count`](super::View::count) and
    /// [`View::sample`](super::View::sample). Maps without the option do not have these methods.
    ///
    /// Lookups and scans cost the same as without it. Each insertion and removal also marks the
    /// neighbourhood of its key, whose keys the next rank counts anew ([`crate::counts`]).
    ///
    /// ```
    /// use silvics::Map;
    ///
    /// let scores = Map::<u64, &str>::builder().counted().build()?;
    /// scores.extend([(310, "Ada"), (250, "Bob"), (475, "Cleo")]);
    /// let scores = scores.pin();
    /// assert_eq!(scores.rank(310), 1);
    /// assert_eq!(scores.nth(2).map(|(score, name)| (score, *name)), Some((475, "Cleo")));
    /// assert_eq!(scores.count(300..), 2);
    /// # Ok::<(), silvics::AllocError>(())
    /// ```
    #[must_use]
    pub fn counted(self) -> Builder<K, V, Index<Counted<A>>> {
        self.index()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + Structure> Builder<K, V, I> {
    /// Sets where nodes and values are placed: in pools ([`Pooled`](crate::Pooled), the default),
    /// or one by one in a heap ([`Shared`](crate::Shared)).
    #[must_use]
    pub fn placement<P: Placement>(self, _placement: P) -> Builder<K, V, I::At<P>>
    where
        I::At<P>: MapIndex<Key = K::Form>,
    {
        self.index()
    }
}
