//! The frame of every structure: [`Index`] gives an [`Algorithm`] the verbs of the contract, and
//! keeps the account of entries and memory.
//!
//! A structure implements [`Algorithm`], [`Ordered`] and [`Ended`] if it has ranges and ends, and
//! [`Adapting`] if its shape follows contention.
//! The frame implements the public traits of [`crate::index`] once, for all of them, and does what
//! each of these implementations needs first: it makes sure that the guard is of the index's own
//! domain. So the guards that an algorithm sees always protect its nodes.

mod adapting;
mod ordered;

pub use adapting::Adapting;
pub use ordered::{AlgorithmBounds, Atomic, Ended, Ordered, Updating};

use crate::batch::insert_in_groups;
use crate::compression::Compression;
use crate::domain::{Domain, Guard};
use crate::encoding::IndexKey;
use crate::error::{AllocError, InsertManyError, Violation};
use crate::index::{Batches, Check, Create, KeyRef, Lookup, Objects, Options, OrderedIndex};
use crate::memory::{Memory, Nodes};
use crate::pinned::{PinIndex, Pinned};
use crate::update::Update;
use silvics_layout::{NodeLayout, Placed};
use silvics_pool::{Budget, Config, Placement, PoolStats};
use silvics_sync::counter::StripedCounter;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// An index made of the algorithm `A`. The structures are aliases of this type, for example
/// [`NatarajanTree`](crate::NatarajanTree) and [`SkipList`](crate::SkipList).
pub struct Index<A: Algorithm>(pub(crate) A);

/// How algorithm `A` takes a key.
pub type AlgorithmKey<'a, A> = <<A as Algorithm>::Key as IndexKey>::Ref<'a>;

/// The algorithm of a structure. The guards that its methods take are of the index's domain.
///
/// # Safety
/// A [`Map`](crate::Map) takes the words that an algorithm returns for addresses of values, and
/// [`Index`] shares the algorithm between threads. So an implementation keeps the contract of
/// [`OrderedIndex`], that of [`OrderedScan`](crate::OrderedScan) if it is [`Ordered`], that of
/// [`OrderedEnds`](crate::OrderedEnds) if it is [`Ended`], that of
/// [`AtomicRanges`](crate::AtomicRanges) if it is [`Atomic`], and in particular these clauses:
///
/// * A1: **It is shared.** Any threads may call its methods concurrently, and any thread may drop
///   it, although it holds pointers to nodes.
/// * A2: **No word is made up.** Each word that a method returns was passed to the algorithm as a
///   value, by a verb that put it there.
/// * A3: **No word is stale.** Each word that a method returns for a key was the key's value at
///   some moment since the guard was taken.
/// * A4: **Each word leaves once.** If a word is the value of a key, and then the key is removed or
///   gets another value, exactly one call returns that word as the state found.
/// * A5: **A refused word stays out.** If a verb returns an error, or a state with which it puts
///   nothing, no other call ever finds the word that it was to put.
/// * A6: **Keys are the structure's own.** A key that a scan or an end returns is a copy, or memory
///   of the structure that the guard protects, and never a bound that was passed to it.
/// * A7: **Guards are the domain's own.** If it calls another algorithm, it passes a guard of that
///   algorithm's domain.
pub unsafe trait Algorithm: Sized + 'static {
    /// The keys.
    type Key: IndexKey + ?Sized;
    /// The memory that nodes are placed in. A [`Map`](crate::Map) places its values there, too.
    type Placement: Placement;
    /// The algorithm in another placement.
    type At<Q: Placement>: Algorithm<Key = Self::Key, Placement = Q>;
    /// The name of the public type, for `Debug`.
    const NAME: &'static str;
    /// See [`Objects`].
    const OBJECTS: &'static [NodeLayout];

    /// Makes an empty structure.
    fn new(frame: Frame) -> Result<Self, AllocError>;

    /// The frame that [`Algorithm::new`] was given.
    fn frame(&self) -> &Frame;

    /// See [`Lookup::get`].
    fn get(&self, key: AlgorithmKey<'_, Self>, guard: &Guard) -> Option<u64>;

    /// See [`OrderedIndex::update`].
    fn update(
        &self,
        key: AlgorithmKey<'_, Self>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError>;

    /// See [`Batches::get_many`].
    #[inline]
    fn get_many(&self, keys: &[AlgorithmKey<'_, Self>], values: &mut [Option<u64>], guard: &Guard) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(Self::Key::shorten(*key), guard);
        }
    }

    /// The number of entries of a batch of upserts that [`Algorithm::warm`] is shown at a time.
    const WARMED: usize = usize::MAX;

    /// Brings the nodes that upserts of `entries` will read into the cache, if the algorithm can
    /// descend to several keys at once.
    #[inline]
    fn warm(&self, entries: &[(AlgorithmKey<'_, Self>, u64)], guard: &Guard) {
        let _ = (entries, guard);
    }

    /// Gives up objects that had to stay because memory was short. Returns the number of bytes that
    /// it returned to the system. The caller has no guard.
    fn sweep(&self) -> usize {
        0
    }

    /// The pools of the nodes.
    fn memory(&self) -> &dyn Memory;

    /// The pools of the nodes, for exclusive access.
    fn memory_mut(&mut self) -> &mut dyn Memory;

    /// Verifies every invariant of the module docs on the quiescent structure, shows `see` each
    /// object that can be reached, and returns the number of entries.
    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation>;

    /// Frees every object that can be reached, unless dropping the pools does so.
    fn free_all(&mut self);

    /// See [`Objects::compression`].
    fn compression(&mut self) -> Option<Compression> {
        None
    }
}

/// An index type whose placement can be exchanged.
pub trait Structure {
    /// The index in placement `Q`.
    type At<Q: Placement>;
}

impl<A: Algorithm> Structure for Index<A> {
    type At<Q: Placement> = Index<A::At<Q>>;
}

/// A visitor of the objects of a structure.
pub type See<'a> = dyn FnMut(Placed) + 'a;

/// The parts that every structure has beside its nodes.
pub struct Frame {
    pub(crate) domain: Domain,
    pub(crate) config: Config,
    /// The number of keys that are present.
    pub(crate) len: StripedCounter<Arc<Budget>>,
}

impl Frame {
    pub(crate) fn new(options: &Options) -> Self {
        let (domain, config) = options.prepare();
        let len = StripedCounter::new(options.counting, Arc::clone(&config.budget));
        Self { domain, config, len }
    }

    /// A pool for objects of this layout.
    pub(crate) fn nodes<T: Send + 'static, P: Placement>(
        &self,
        layout: &NodeLayout,
    ) -> Nodes<T, P> {
        debug_assert_eq!(size_of::<T>(), layout.size);
        Nodes::new(layout.kind, &self.config, &self.domain)
    }

    /// Fails unless as many keys were counted as there are `entries`.
    pub(crate) fn counted(&self, entries: usize) -> Result<usize, Violation> {
        let counted = self.len.sum();
        if counted == entries as i64 {
            return Ok(entries);
        }
        violation("len", format!("{entries} entries, {counted} counted"))
    }
}

/// Does work that follows an operation which has taken effect. If the work panics, which only a
/// heap of the user can cause, the operation still returns: its caller must learn of the effect.
pub(crate) fn afterwards(work: impl FnOnce()) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else { return };
    let may_be_ours = panic.is::<&str>() || panic.is::<String>();
    if cfg!(any(debug_assertions, silvics_shuttle)) && may_be_ours {
        resume_unwind(panic); // a failed assertion, which tests must see
    }
    std::mem::forget(panic); // the panic hook has reported it; dropping it might panic, too
}

/// The error of an invariant that does not hold.
pub(crate) fn violation<T>(invariant: &'static str, detail: String) -> Result<T, Violation> {
    Err(Violation { invariant, detail })
}

// SAFETY: A1: any thread may use and drop the algorithm.
unsafe impl<A: Algorithm> Send for Index<A> {}
// SAFETY: A1: any threads may call the methods of the algorithm concurrently.
unsafe impl<A: Algorithm> Sync for Index<A> {}

impl<A: Algorithm> fmt::Debug for Index<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} keys, {})", A::NAME, self.len(), A::Placement::NAME)
    }
}

impl<A: Algorithm> Index<A> {
    /// Makes an empty index. Fails if its first nodes cannot be allocated.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        A::new(Frame::new(options)).map(Self)
    }

    /// Pins the index's domain and hides the guard: the everyday way to call several operations.
    #[inline]
    pub fn pin(&self) -> Pinned<'_, Self> {
        PinIndex::pin(self)
    }

    /// The number of inserts and removals that have written the line in which threads count keys
    /// together. Experiments compare it for different [`Counting`](crate::Counting).
    #[doc(hidden)]
    pub fn counted_in_shared_line(&self) -> u64 {
        self.0.frame().len.in_shared_line()
    }

    /// The lookup of a caller whose guard is of another domain.
    #[cold]
    #[inline(never)]
    fn get_apart(&self, key: KeyRef<'_, Self>) -> Option<u64> {
        self.0.get(key, &self.domain().pin())
    }
}

impl<A: Algorithm> Create for Index<A> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        Self::with_options(options)
    }
}

impl<A: Algorithm> Lookup for Index<A> {
    type Key = A::Key;

    #[inline]
    fn domain(&self) -> &Domain {
        &self.0.frame().domain
    }

    #[inline]
    fn get(&self, key: KeyRef<'_, Self>, guard: &Guard) -> Option<u64> {
        if self.domain().is_of(guard) { self.0.get(key, guard) } else { self.get_apart(key) }
    }

    fn len(&self) -> usize {
        self.0.frame().len.sum().max(0) as usize
    }

    fn len_snapshot(&self) -> Option<usize> {
        self.0.frame().len.snapshot().map(|sum| sum.max(0) as usize)
    }

    fn bytes(&self) -> usize {
        self.0.frame().config.budget.held()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.memory().stats()
    }
}

impl<A: Algorithm> OrderedIndex for Index<A> {
    #[inline(always)] // so that an algorithm can be compiled for each verb
    fn update(
        &self,
        key: KeyRef<'_, Self>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.0.update(key, verb, &self.domain().enter(guard))
    }

    fn shrink(&self) -> usize {
        self.0.sweep() + self.0.memory().shrink()
    }
}

impl<A: Algorithm> Batches for Index<A> {
    fn get_many(&self, keys: &[KeyRef<'_, Self>], values: &mut [Option<u64>], guard: &Guard) {
        self.0.get_many(keys, values, &self.domain().enter(guard));
    }

    fn insert_many(
        &self,
        entries: &[(KeyRef<'_, Self>, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let guard = &*self.domain().enter(guard);
        let warm = |some: &[(KeyRef<'_, Self>, u64)]| self.0.warm(some, guard);
        let insert = |key, value| self.0.update(key, Update::Insert(value), guard);
        insert_in_groups(entries, replaced, A::WARMED, warm, insert)
    }
}

impl<A: Algorithm> Objects for Index<A> {
    const OBJECTS: &'static [NodeLayout] = A::OBJECTS;

    fn census(&mut self, see: &mut dyn FnMut(Placed)) -> Result<usize, Violation> {
        self.0.walk(see)
    }

    fn compression(&mut self) -> Option<Compression> {
        self.0.compression()
    }
}

impl<A: Algorithm> Check for Index<A> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.0.walk(&mut |_| ())
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let mut kinds: Vec<_> = self.pool_stats().iter().map(|pool| (pool.kind, 0)).collect();
        self.0.walk(&mut |placed| {
            let kind = placed.layout.kind;
            kinds.iter_mut().filter(|(of, _)| *of == kind).for_each(|(_, count)| *count += 1);
        })?;
        Ok(kinds)
    }

    fn settle(&mut self) {
        self.0.memory_mut().settle();
    }
}

impl<A: Algorithm> Drop for Index<A> {
    fn drop(&mut self) {
        self.0.free_all();
    }
}
