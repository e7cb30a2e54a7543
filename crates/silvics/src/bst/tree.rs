//! What the trees share beside their algorithms: the contract's verbs, and the account of entries
//! and memory.

use crate::batch::insert_in_groups;
use crate::domain::{Domain, Guard};
use crate::error::{InsertManyError, Violation};
use crate::index::{Check, Objects, Options, OrderedIndex};
use crate::memory::Nodes;
use crate::update::Update;
use silvics_layout::{NodeLayout, Placed};
use silvics_pool::{AllocError, Budget, Config, Placement, PoolStats};
use silvics_sync::counter::StripedCounter;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// A binary search tree: the algorithm `A`, which this gives the contract's verbs, counts and
/// checks. The aliases in [`crate::bst`] name the trees.
pub struct Tree<A: Algorithm>(pub(super) A);

/// An algorithm of a tree. Guards it is given are of the tree's domain.
///
/// # Safety
/// The type is shared by all threads, though it holds pointers to nodes. And it keeps the contract of [`OrderedIndex`], and of
/// [`OrderedScan`](crate::OrderedScan) where it is [`Ordered`](super::Ordered): maps take what it gives for what they gave to it
/// ([`MapIndex`](crate::map::MapIndex)).
pub unsafe trait Algorithm: Sized + 'static {
    /// The tree's name, for `Debug`.
    const NAME: &'static str;
    /// See [`Objects`].
    const OBJECTS: &'static [NodeLayout];

    /// An empty tree.
    fn new(frame: Frame) -> Result<Self, AllocError>;

    /// What it was made with.
    fn frame(&self) -> &Frame;

    /// See [`OrderedIndex::get`].
    fn get(&self, key: u64, guard: &Guard) -> Option<u64>;

    /// See [`OrderedIndex::update`].
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError>;

    /// See [`OrderedIndex::get_many`].
    #[inline]
    fn get_many(&self, keys: &[u64], values: &mut [Option<u64>], guard: &Guard) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(*key, guard);
        }
    }

    /// How many entries of a batch of upserts [`Algorithm::warm`] is shown at a time.
    const WARMED: usize = usize::MAX;

    /// Brings what upserts of these entries will read into the cache, if it can for all at once.
    #[inline]
    fn warm(&self, entries: &[(u64, u64)], guard: &Guard) {
        let _ = (entries, guard);
    }

    /// What each of its pools holds.
    fn pool_stats(&self) -> Vec<PoolStats>;

    /// Verifies every invariant of the module docs on the quiescent tree, shows `see` each object
    /// that can be reached, and returns the number of entries.
    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation>;

    /// See [`Check::settle`].
    fn settle(&mut self);

    /// See [`OrderedIndex::shrink`].
    fn shrink(&self) -> usize;

    /// Frees every object that can be reached. Only where dropping the pools does not do that.
    fn free_all(&mut self);
}

/// Who is shown the objects of a tree: their layout, and where they are.
pub type See<'a> = dyn FnMut(&'static NodeLayout, NonNull<u8>) + 'a;

/// What every tree has beside its nodes.
pub struct Frame {
    pub(super) domain: Domain,
    pub(super) config: Config,
    /// The keys that are present.
    pub(super) len: StripedCounter<Arc<Budget>>,
}

impl Frame {
    fn new(options: &Options) -> Self {
        let (domain, config) = options.prepare();
        let len = StripedCounter::new(Arc::clone(&config.budget));
        Self { domain, config, len }
    }

    /// A pool for objects of this layout.
    pub(super) fn nodes<T: Send + 'static, P: Placement>(
        &self,
        layout: &NodeLayout,
    ) -> Nodes<T, P> {
        debug_assert_eq!(size_of::<T>(), layout.size);
        Nodes::new(layout.kind, &self.config, &self.domain)
    }

    /// Fails unless as many keys were counted as there are `entries`.
    pub(super) fn counted(&self, entries: usize) -> Result<usize, Violation> {
        let counted = self.len.sum();
        if counted == entries as i64 {
            return Ok(entries);
        }
        violation("len", format!("{entries} entries, {counted} counted"))
    }
}

/// An invariant does not hold.
pub(super) fn violation<T>(invariant: &'static str, detail: String) -> Result<T, Violation> {
    Err(Violation { invariant, detail })
}

// SAFETY: what `Algorithm` demands.
unsafe impl<A: Algorithm> Send for Tree<A> {}
// SAFETY: as above.
unsafe impl<A: Algorithm> Sync for Tree<A> {}

impl<A: Algorithm> fmt::Debug for Tree<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} keys)", A::NAME, self.len())
    }
}

impl<A: Algorithm> OrderedIndex for Tree<A> {
    type Key = u64;

    fn with_options(options: &Options) -> Result<Self, AllocError> {
        A::new(Frame::new(options)).map(Self)
    }

    fn domain(&self) -> &Domain {
        &self.0.frame().domain
    }

    #[inline]
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        self.0.get(key, &self.domain().enter(guard))
    }

    #[inline]
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.0.update(key, verb, &self.domain().enter(guard))
    }

    fn get_many(&self, keys: &[u64], values: &mut [Option<u64>], guard: &Guard) {
        self.0.get_many(keys, values, &self.domain().enter(guard));
    }

    fn insert_many(
        &self,
        entries: &[(u64, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let guard = &*self.domain().enter(guard);
        let warm = |some: &[(u64, u64)]| self.0.warm(some, guard);
        let insert = |key, value| self.0.update(key, Update::Insert(value), guard);
        insert_in_groups(entries, replaced, A::WARMED, warm, insert)
    }

    fn len(&self) -> usize {
        self.0.frame().len.sum().max(0) as usize
    }

    fn bytes(&self) -> usize {
        self.0.frame().config.budget.held()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.pool_stats()
    }
    fn shrink(&self) -> usize {
        self.0.shrink()
    }
}

impl<A: Algorithm> Tree<A> {
    /// The algorithm.
    #[inline(always)]
    pub(super) fn algorithm(&self) -> &A {
        &self.0
    }
}

impl<A: Algorithm> Objects for Tree<A> {
    const OBJECTS: &'static [NodeLayout] = A::OBJECTS;

    fn census(&mut self, see: &mut dyn FnMut(Placed)) -> Result<usize, Violation> {
        self.0.walk(&mut |layout, object| see(Placed::new(layout, object.addr().get())))
    }
}

impl<A: Algorithm> Check for Tree<A> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.0.walk(&mut |_, _| ())
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let mut kinds: Vec<_> = self.pool_stats().iter().map(|pool| (pool.kind, 0)).collect();
        self.0.walk(&mut |layout, _| {
            let kind = kinds.iter_mut().find(|(kind, _)| *kind == layout.kind);
            kind.expect("every kind has a pool").1 += 1;
        })?;
        Ok(kinds)
    }

    fn settle(&mut self) {
        self.0.settle();
    }
}

impl<A: Algorithm> Drop for Tree<A> {
    fn drop(&mut self) {
        self.0.free_all();
    }
}
