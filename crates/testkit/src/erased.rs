//! Indexes whose type is erased: what lets the suite be compiled once for all of them.
//!
//! A property is generic, and compiling all of them for every tree, build and placement would take
//! most of a build. So they are compiled for two types per kind of key: [`Erased`], and
//! [`ErasedScan`] for what has ranges and cursors. Each holds an index behind a trait object that
//! passes every call on, one by one, and drops it when the index would have been dropped.
//!
//! What `with_options` makes is the choice of the calling thread: [`run`] sets it for as long as a
//! piece of work takes, and the threads that the testkit starts take over the choice of the thread
//! that starts them (`chosen`). Nothing is shared by a process, so that tests of different indexes
//! run side by side.
//!
//! ```
//! use silvics::{BronsonTree, NatarajanTree};
//! use silvics_testkit::erased::{self, Erased};
//! use silvics_testkit::{holds, sequential};
//!
//! // One instance of the property, two trees.
//! holds(erased::run(erased::points::<NatarajanTree>(), sequential::extremes::<Erased<u64>>));
//! holds(erased::run(erased::points::<BronsonTree>(), sequential::extremes::<Erased<u64>>));
//! ```
//!
//! # What is the same, and what is not
//! * Every verb, batches, counts and checks included, is the real one: the trait has no default
//!   methods of its own.
//! * The index is dropped with its `Erased`; with ranges, with the last of the handles to it and
//!   its cursors. A cursor keeps what it is a cursor of, so that `Arc::get_mut` tells what it would
//!   tell of the index itself.
//! * A call costs an indirect jump; a range and a cursor a box. So what counts the allocations of
//!   scans ([`crate::lookups`]) and what is timed takes the index as it is.

use silvics::{
    AllocError, Check, CompareExchangeError, Cursor, Domain, Guard, IndexKey, InsertManyError,
    KeyRef, Options, OrderedIndex, OrderedScan, PoolStats, TryInsertError, Update, Violation,
};
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The key type of an index.
pub type KeyOf<I> = <I as OrderedIndex>::Key;

/// [`OrderedIndex`] and [`Check`] without what needs to know the type.
pub trait AnyIndex<K: IndexKey + ?Sized>: Send + Sync {
    /// See [`OrderedIndex::domain`].
    fn domain(&self) -> &Domain;
    /// See [`OrderedIndex::get`].
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64>;
    /// See [`OrderedIndex::update`].
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError>;
    /// See [`OrderedIndex::try_insert`].
    fn try_insert(&self, key: K::Ref<'_>, value: u64, guard: &Guard) -> Result<(), TryInsertError>;
    /// See [`OrderedIndex::insert`].
    fn insert(&self, key: K::Ref<'_>, value: u64, guard: &Guard)
    -> Result<Option<u64>, AllocError>;
    /// See [`OrderedIndex::remove`].
    fn remove(&self, key: K::Ref<'_>, guard: &Guard) -> Result<Option<u64>, AllocError>;
    /// See [`OrderedIndex::compare_exchange`].
    fn compare_exchange(
        &self,
        key: K::Ref<'_>,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Result<(), CompareExchangeError>;
    /// See [`OrderedIndex::get_many`].
    fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard);
    /// See [`OrderedIndex::insert_many`].
    fn insert_many(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError>;
    /// See [`OrderedIndex::len`].
    fn len(&self) -> usize;
    /// See [`OrderedIndex::is_empty`].
    fn is_empty(&self) -> bool;
    /// See [`OrderedIndex::bytes`].
    fn bytes(&self) -> usize;
    /// See [`OrderedIndex::pool_stats`].
    fn pool_stats(&self) -> Vec<PoolStats>;
    /// See [`OrderedIndex::shrink`].
    fn shrink(&self) -> usize;
    /// See [`Check::check`].
    fn check(&mut self) -> Result<usize, Violation>;
    /// See [`Check::reachable`].
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation>;
    /// See [`Check::settle`].
    fn settle(&mut self);
}

/// The entries of a range.
pub type Entries<'g, K> = Box<dyn Iterator<Item = (<K as IndexKey>::Ref<'g>, u64)> + 'g>;

/// The bounds of a range.
pub type Bounds<'g, K> = (Bound<<K as IndexKey>::Ref<'g>>, Bound<<K as IndexKey>::Ref<'g>>);

/// [`OrderedScan`] in the same way.
pub trait AnyScan<K: IndexKey + ?Sized>: AnyIndex<K> {
    /// See [`OrderedScan::range`].
    fn range<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K>;
    /// See [`OrderedScan::range_rev`].
    fn range_rev<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K>;
    /// See [`OrderedScan::cursor`].
    fn cursor(self: Arc<Self>) -> Box<dyn Cursor<Key = K>>;
}

impl<K, I> AnyIndex<K> for I
where
    K: IndexKey + ?Sized,
    I: OrderedIndex<Key = K> + Check + 'static,
{
    fn domain(&self) -> &Domain {
        OrderedIndex::domain(self)
    }
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        OrderedIndex::get(self, key, guard)
    }
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        OrderedIndex::update(self, key, verb, guard)
    }
    fn try_insert(&self, key: K::Ref<'_>, value: u64, guard: &Guard) -> Result<(), TryInsertError> {
        OrderedIndex::try_insert(self, key, value, guard)
    }
    fn insert(
        &self,
        key: K::Ref<'_>,
        value: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        OrderedIndex::insert(self, key, value, guard)
    }
    fn remove(&self, key: K::Ref<'_>, guard: &Guard) -> Result<Option<u64>, AllocError> {
        OrderedIndex::remove(self, key, guard)
    }
    fn compare_exchange(
        &self,
        key: K::Ref<'_>,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Result<(), CompareExchangeError> {
        OrderedIndex::compare_exchange(self, key, expected, new, guard)
    }
    fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
        OrderedIndex::get_many(self, keys, values, guard);
    }
    fn insert_many(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        OrderedIndex::insert_many(self, entries, replaced, guard)
    }
    fn len(&self) -> usize {
        OrderedIndex::len(self)
    }
    fn is_empty(&self) -> bool {
        OrderedIndex::is_empty(self)
    }
    fn bytes(&self) -> usize {
        OrderedIndex::bytes(self)
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        OrderedIndex::pool_stats(self)
    }
    fn shrink(&self) -> usize {
        OrderedIndex::shrink(self)
    }
    fn check(&mut self) -> Result<usize, Violation> {
        Check::check(self)
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        Check::reachable(self)
    }
    fn settle(&mut self) {
        Check::settle(self);
    }
}

impl<K, I> AnyScan<K> for I
where
    K: IndexKey + ?Sized,
    I: OrderedScan<Key = K> + Check + 'static,
{
    fn range<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K> {
        Box::new(OrderedScan::range(self, bounds, guard))
    }
    fn range_rev<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K> {
        Box::new(OrderedScan::range_rev(self, bounds, guard))
    }
    fn cursor(self: Arc<Self>) -> Box<dyn Cursor<Key = K>> {
        Box::new(OrderedScan::cursor(&self))
    }
}

/// An index with keys `K`, whatever its type.
pub struct Erased<K: IndexKey + ?Sized> {
    index: Box<dyn AnyIndex<K>>,
}

/// An index with keys `K`, ranges and cursors, whatever its type.
pub struct ErasedScan<K: IndexKey + ?Sized> {
    /// Shared with its own cursors only.
    index: Arc<dyn AnyScan<K>>,
}

/// A constructor of one type of index, as a `T`.
type Make<T> = fn(&Options) -> Result<T, AllocError>;

/// What makes an [`Erased`].
pub struct Points<K: IndexKey + ?Sized>(Make<Box<dyn AnyIndex<K>>>);

/// What makes an [`ErasedScan`].
pub struct Scans<K: IndexKey + ?Sized>(Make<Arc<dyn AnyScan<K>>>);

/// Makes indexes of type `I`.
pub fn points<I: OrderedIndex + Check + 'static>() -> Points<I::Key> {
    Points(|options| Ok(Box::new(I::with_options(options)?)))
}

/// Makes indexes of type `I`, ranges included.
pub fn scans<I: OrderedScan + Check + 'static>() -> Scans<I::Key> {
    Scans(|options| Ok(Arc::new(I::with_options(options)?)))
}

/// What a thread has chosen to make.
#[derive(Clone, Default)]
pub(crate) struct Chosen(Option<Arc<dyn Any + Send + Sync>>);

std::thread_local! {
    static CHOSEN: RefCell<Chosen> = const { RefCell::new(Chosen(None)) };
}

/// Calls `work`; the erased indexes that it makes meanwhile are what `maker` makes.
pub fn run<T>(maker: impl Maker, work: impl FnOnce() -> T) -> T {
    Chosen(Some(Arc::new(maker))).within(work)
}

/// The calling thread's choice, for a thread that it starts.
pub(crate) fn chosen() -> Chosen {
    CHOSEN.with_borrow(Clone::clone)
}

impl Chosen {
    /// Calls `work` with this choice.
    pub(crate) fn within<T>(self, work: impl FnOnce() -> T) -> T {
        /// Gives the thread its former choice back, also when `work` unwinds.
        struct Former(Chosen);
        impl Drop for Former {
            fn drop(&mut self) {
                CHOSEN.replace(std::mem::take(&mut self.0));
            }
        }
        let _former = Former(CHOSEN.replace(self));
        work()
    }
}

/// [`Points`] or [`Scans`].
pub trait Maker: Send + Sync + 'static {}
impl<K: IndexKey + ?Sized> Maker for Points<K> {}
impl<K: IndexKey + ?Sized> Maker for Scans<K> {}

/// Calls the maker of type `M` that the calling thread has chosen.
///
/// # Panics
/// If it has chosen none, or one of another type: a mistake in the test.
fn with_maker<M: Maker, T>(make: impl FnOnce(&M) -> T) -> T {
    let Chosen(chosen) = chosen();
    let maker = chosen.as_deref().and_then(|maker| maker.downcast_ref());
    make(maker.expect("an erased index is made within `erased::run`, with a maker of its kind"))
}

impl<K: IndexKey + ?Sized> fmt::Debug for Erased<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Erased({} keys)", self.index.len())
    }
}

impl<K: IndexKey + ?Sized> fmt::Debug for ErasedScan<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErasedScan({} keys)", self.index.len())
    }
}

/// Passes all of [`OrderedIndex`] but its constructor on.
macro_rules! passed_on {
    () => {
        fn domain(&self) -> &Domain {
            self.index.domain()
        }
        fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
            self.index.get(key, guard)
        }
        fn update(
            &self,
            key: K::Ref<'_>,
            verb: Update,
            guard: &Guard,
        ) -> Result<Option<u64>, AllocError> {
            self.index.update(key, verb, guard)
        }
        fn try_insert(
            &self,
            key: K::Ref<'_>,
            value: u64,
            guard: &Guard,
        ) -> Result<(), TryInsertError> {
            self.index.try_insert(key, value, guard)
        }
        fn insert(
            &self,
            key: K::Ref<'_>,
            value: u64,
            guard: &Guard,
        ) -> Result<Option<u64>, AllocError> {
            self.index.insert(key, value, guard)
        }
        fn remove(&self, key: K::Ref<'_>, guard: &Guard) -> Result<Option<u64>, AllocError> {
            self.index.remove(key, guard)
        }
        fn compare_exchange(
            &self,
            key: K::Ref<'_>,
            expected: Option<u64>,
            new: Option<u64>,
            guard: &Guard,
        ) -> Result<(), CompareExchangeError> {
            self.index.compare_exchange(key, expected, new, guard)
        }
        fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
            self.index.get_many(keys, values, guard);
        }
        fn insert_many(
            &self,
            entries: &[(K::Ref<'_>, u64)],
            replaced: &mut [Option<u64>],
            guard: &Guard,
        ) -> Result<usize, InsertManyError> {
            self.index.insert_many(entries, replaced, guard)
        }
        fn len(&self) -> usize {
            self.index.len()
        }
        fn is_empty(&self) -> bool {
            self.index.is_empty()
        }
        fn bytes(&self) -> usize {
            self.index.bytes()
        }
        fn pool_stats(&self) -> Vec<PoolStats> {
            self.index.pool_stats()
        }
        fn shrink(&self) -> usize {
            self.index.shrink()
        }
    };
}

impl<K: IndexKey + ?Sized> OrderedIndex for Erased<K> {
    type Key = K;

    fn with_options(options: &Options) -> Result<Self, AllocError> {
        with_maker(|Points(make)| make(options)).map(|index| Self { index })
    }
    passed_on!();
}

impl<K: IndexKey + ?Sized> OrderedIndex for ErasedScan<K> {
    type Key = K;

    fn with_options(options: &Options) -> Result<Self, AllocError> {
        with_maker(|Scans(make)| make(options)).map(|index| Self { index })
    }
    passed_on!();
}

impl<K: IndexKey + ?Sized> Check for Erased<K> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.index.check()
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        self.index.reachable()
    }
    fn settle(&mut self) {
        self.index.settle();
    }
}

impl<K: IndexKey + ?Sized> ErasedScan<K> {
    /// Exclusive access: cursors keep an `ErasedScan` and not the index alone, so that there is
    /// none left, unless somebody has kept one wrongly.
    fn exclusive(&mut self) -> Result<&mut (dyn AnyScan<K> + 'static), Violation> {
        let shared = || Violation { invariant: "exclusive", detail: "a cursor is left".into() };
        Arc::get_mut(&mut self.index).ok_or_else(shared)
    }
}

impl<K: IndexKey + ?Sized> Check for ErasedScan<K> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.exclusive()?.check()
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        self.exclusive()?.reachable()
    }
    /// Leaves all as it is if a cursor is left, which [`Check::check`] then tells.
    fn settle(&mut self) {
        if let Ok(index) = self.exclusive() {
            index.settle();
        }
    }
}

impl<K: IndexKey + ?Sized> OrderedScan for ErasedScan<K> {
    type Range<'g> = Entries<'g, K>;
    type RangeRev<'g> = Entries<'g, K>;
    type Cursor = ErasedCursor<K>;

    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Entries<'g, K> {
        self.index.range((range.start_bound().cloned(), range.end_bound().cloned()), guard)
    }
    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Entries<'g, K> {
        self.index.range_rev((range.start_bound().cloned(), range.end_bound().cloned()), guard)
    }
    fn cursor(self: &Arc<Self>) -> ErasedCursor<K> {
        ErasedCursor { cursor: Arc::clone(&self.index).cursor(), index: Arc::clone(self) }
    }
}

/// A cursor of [`ErasedScan`]. Its fields are dropped in this order: with the last handle the index
/// goes, whose cursor is then gone.
pub struct ErasedCursor<K: IndexKey + ?Sized> {
    cursor: Box<dyn Cursor<Key = K>>,
    #[allow(dead_code)] // kept
    index: Arc<ErasedScan<K>>,
}

impl<K: IndexKey + ?Sized> fmt::Debug for ErasedCursor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErasedCursor({:?})", self.cursor.key())
    }
}

impl<K: IndexKey + ?Sized> Cursor for ErasedCursor<K> {
    type Key = K;

    fn seek(&mut self, key: K::Ref<'_>) -> bool {
        self.cursor.seek(key)
    }
    fn seek_rev(&mut self, key: K::Ref<'_>) -> bool {
        self.cursor.seek_rev(key)
    }
    fn next(&mut self) -> bool {
        self.cursor.next()
    }
    fn prev(&mut self) -> bool {
        self.cursor.prev()
    }
    fn key(&self) -> Option<K::Ref<'_>> {
        self.cursor.key()
    }
    fn value(&self) -> Option<u64> {
        self.cursor.value()
    }
}

#[cfg(all(test, feature = "suite"))]
mod tests {
    use super::*;
    use crate::crew::together;
    use crate::reference::LockedMap;
    use silvics::{NatarajanTree, Shared, SkipList};
    use silvics_sync::atomic::{AtomicUsize, Ordering};

    /// A map that counts its drops.
    struct Counted {
        map: Arc<LockedMap<u64>>,
        drops: Arc<AtomicUsize>,
    }

    std::thread_local! {
        static DROPS: Arc<AtomicUsize> = Arc::default();
    }

    fn drops() -> usize {
        DROPS.with(|drops| drops.load(Ordering::Relaxed))
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.drops.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl OrderedIndex for Counted {
        type Key = u64;

        fn with_options(options: &Options) -> Result<Self, AllocError> {
            let map = Arc::new(LockedMap::with_options(options)?);
            Ok(Self { map, drops: DROPS.with(Arc::clone) })
        }
        fn domain(&self) -> &Domain {
            OrderedIndex::domain(&*self.map)
        }
        fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
            OrderedIndex::get(&*self.map, key, guard)
        }
        fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
            OrderedIndex::update(&*self.map, key, verb, guard)
        }
        fn len(&self) -> usize {
            OrderedIndex::len(&*self.map)
        }
        fn bytes(&self) -> usize {
            OrderedIndex::bytes(&*self.map)
        }
        fn pool_stats(&self) -> Vec<PoolStats> {
            OrderedIndex::pool_stats(&*self.map)
        }
    }

    impl Check for Counted {
        fn check(&mut self) -> Result<usize, Violation> {
            Ok(OrderedIndex::len(self))
        }
        fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
            Ok(vec![("entry", OrderedIndex::len(self))])
        }
        fn settle(&mut self) {}
    }

    impl OrderedScan for Counted {
        type Range<'g> = <LockedMap<u64> as OrderedScan>::Range<'g>;
        type RangeRev<'g> = <LockedMap<u64> as OrderedScan>::RangeRev<'g>;
        type Cursor = CountedCursor;

        fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
            &'g self,
            range: R,
            guard: &'g Guard,
        ) -> Self::Range<'g> {
            OrderedScan::range(&*self.map, range, guard)
        }
        fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
            &'g self,
            range: R,
            guard: &'g Guard,
        ) -> Self::RangeRev<'g> {
            OrderedScan::range_rev(&*self.map, range, guard)
        }
        fn cursor(self: &Arc<Self>) -> CountedCursor {
            CountedCursor { cursor: OrderedScan::cursor(&self.map), index: Arc::clone(self) }
        }
    }

    /// A cursor that keeps its index, as those of structures do.
    struct CountedCursor {
        cursor: <LockedMap<u64> as OrderedScan>::Cursor,
        index: Arc<Counted>,
    }

    impl Cursor for CountedCursor {
        type Key = u64;

        fn seek(&mut self, key: u64) -> bool {
            self.cursor.seek(key)
        }
        fn seek_rev(&mut self, key: u64) -> bool {
            self.cursor.seek_rev(key)
        }
        fn next(&mut self) -> bool {
            assert_eq!(self.index.drops.load(Ordering::Relaxed), drops());
            self.cursor.next()
        }
        fn prev(&mut self) -> bool {
            self.cursor.prev()
        }
        fn key(&self) -> Option<u64> {
            self.cursor.key()
        }
        fn value(&self) -> Option<u64> {
            self.cursor.value()
        }
    }

    fn made<I: OrderedIndex>() -> I {
        I::with_options(&Options::default()).unwrap()
    }

    #[test]
    fn an_index_goes_with_its_last_handle() {
        let before = drops();
        drop(run(points::<Counted>(), made::<Erased<u64>>));
        assert_eq!(drops(), before + 1);

        let mut index = Arc::new(run(scans::<Counted>(), made::<ErasedScan<u64>>));
        OrderedIndex::pin(&*index).insert(1, 10).unwrap();
        let mut cursor = OrderedScan::cursor(&index);
        assert!(Arc::get_mut(&mut index).is_none(), "the cursor keeps the index");
        drop(OrderedScan::cursor(&index));
        drop(index);
        assert_eq!(drops(), before + 1);
        assert!(cursor.next() && cursor.value() == Some(10));
        drop(cursor);
        assert_eq!(drops(), before + 2);
    }

    #[test]
    fn exclusive_access_comes_back_with_the_last_cursor() {
        let mut index = Arc::new(run(scans::<SkipList<u64, Shared>>(), made::<ErasedScan<u64>>));
        OrderedIndex::pin(&*index).insert(1, 10).unwrap();
        let mut cursor = OrderedScan::cursor(&index);
        assert!(cursor.seek(1) && Arc::get_mut(&mut index).is_none());
        drop(cursor);
        let index = Arc::get_mut(&mut index).unwrap();
        assert_eq!(Check::check(index).unwrap(), 1);
    }

    #[test]
    fn a_choice_is_that_of_a_thread_and_of_those_it_starts() {
        fn name() -> String {
            format!("{:?}", OrderedIndex::pool_stats(&made::<Erased<u64>>())[0].kind)
        }
        let tree = || run(points::<NatarajanTree<Shared>>(), name);
        assert_ne!(tree(), run(points::<LockedMap<u64>>(), name));
        run(points::<LockedMap<u64>>(), || {
            let mine = name();
            let theirs = together(2, |thread, crew| {
                let inner = if thread == 0 { tree() } else { name() };
                crew.meet()?;
                assert_eq!(name(), mine, "a choice within another goes with its work");
                Ok(inner)
            });
            assert_eq!(theirs.unwrap(), [tree(), mine]);
        });
        let elsewhere = std::thread::spawn(|| std::panic::catch_unwind(name).is_err());
        assert!(elsewhere.join().unwrap(), "another thread has chosen nothing");
        assert!(std::panic::catch_unwind(name).is_err(), "the choice is over");
    }
}
