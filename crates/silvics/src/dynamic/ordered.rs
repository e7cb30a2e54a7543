//! The index of a map whose structure is chosen at run time.

use super::{Bounds, Ends, Entries, Ranks, Scans};
use crate::cursor::KeyCursor;
use crate::domain::{Domain, Guard};
use crate::encoding::IndexKey;
use crate::error::{AllocError, BulkLoadError, InsertManyError, Violation};
use crate::index::{
    Batches, Check, Create, KeyRef, Lookup, Options, OrderStatistics, OrderedEnds, OrderedIndex,
    OrderedScan,
};
use crate::map::MapIndex;
use crate::map::key::Form;
use crate::update::Update;
use crate::{BlockTree, WordTree};
use silvics_pool::{PoolStats, Pooled};
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::RangeBounds;
use std::sync::Arc;

/// An index of any structure that scans: the index of an [`AnyMap`](super::AnyMap). Its ends and
/// its ranks are optional.
pub struct AnyOrdered<K: IndexKey + ?Sized> {
    held: Held<K>,
    /// The index's domain, so that a pin needs no jump.
    domain: Domain,
}

enum Held<K: IndexKey + ?Sized> {
    Scans(Box<dyn Mapped<K>>),
    Ends(Box<dyn Ended<K>>),
    Ranks(Box<dyn Ranked<K>>),
}

/// The object-safe methods of a [`MapIndex`]. Each type that implements this trait implements that
/// one: no other crate can name this trait.
pub(super) trait Mapped<K: IndexKey + ?Sized>: Scans<K> {
    /// See [`MapIndex::load`].
    fn load_sorted(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>>;
    /// See [`MapIndex::read_ahead`].
    fn read_within<'g>(
        &'g self,
        bounds: Bounds<'g, K>,
        descends: bool,
        most: usize,
        guard: &'g Guard,
        each: &mut dyn FnMut(K::Ref<'g>, u64),
    );
}

/// [`Mapped`] with ends.
pub(super) trait Ended<K: IndexKey + ?Sized>: Mapped<K> + Ends<K> {}
/// [`Ended`] with ranks.
pub(super) trait Ranked<K: IndexKey + ?Sized>: Ended<K> + Ranks<K> {}

impl<K: IndexKey + ?Sized, I: Mapped<K> + Ends<K>> Ended<K> for I {}
impl<K: IndexKey + ?Sized, I: Ended<K> + Ranks<K>> Ranked<K> for I {}

impl<K: IndexKey + ?Sized, I: Scans<K> + MapIndex> Mapped<K> for I
where
    I: Lookup<Key = K> + 'static,
{
    fn load_sorted(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        MapIndex::load(self, entries, threads)
    }

    fn read_within<'g>(
        &'g self,
        bounds: Bounds<'g, K>,
        descends: bool,
        most: usize,
        guard: &'g Guard,
        each: &mut dyn FnMut(K::Ref<'g>, u64),
    ) {
        MapIndex::read_ahead(self, bounds, descends, most, guard, each);
    }
}

impl<K: IndexKey + ?Sized> AnyOrdered<K> {
    /// Wraps an index with its scans.
    pub fn new(index: impl MapIndex + Lookup<Key = K> + Check + 'static) -> Self {
        Self { domain: index.domain().clone(), held: Held::Scans(Box::new(index)) }
    }

    /// Wraps an index with its scans and its ends.
    pub fn with_ends(
        index: impl MapIndex + OrderedEnds + Lookup<Key = K> + Check + 'static,
    ) -> Self {
        Self { domain: index.domain().clone(), held: Held::Ends(Box::new(index)) }
    }

    /// Wraps an index with its scans, its ends and the ranks of its keys.
    pub fn with_ranks(
        index: impl MapIndex + OrderedEnds + OrderStatistics + Lookup<Key = K> + Check + 'static,
    ) -> Self {
        Self { domain: index.domain().clone(), held: Held::Ranks(Box::new(index)) }
    }

    /// The ends, if the index was wrapped with them.
    pub fn ends(&self) -> Option<&(dyn Ends<K> + 'static)> {
        match &self.held {
            Held::Scans(_) => None,
            Held::Ends(index) => Some(&**index),
            Held::Ranks(index) => Some(&**index),
        }
    }

    /// The ranks, if the index was wrapped with them.
    pub fn ranks(&self) -> Option<&(dyn Ranks<K> + 'static)> {
        match &self.held {
            Held::Scans(_) | Held::Ends(_) => None,
            Held::Ranks(index) => Some(&**index),
        }
    }

    #[inline(always)]
    fn held(&self) -> &(dyn Mapped<K> + 'static) {
        match &self.held {
            Held::Scans(index) => &**index,
            Held::Ends(index) => &**index,
            Held::Ranks(index) => &**index,
        }
    }

    fn held_mut(&mut self) -> &mut (dyn Mapped<K> + 'static) {
        match &mut self.held {
            Held::Scans(index) => &mut **index,
            Held::Ends(index) => &mut **index,
            Held::Ranks(index) => &mut **index,
        }
    }
}

impl<K: IndexKey + ?Sized> From<AnyOrdered<K>> for super::AnyIndex<K> {
    fn from(index: AnyOrdered<K>) -> Self {
        Self(match index.held {
            Held::Scans(index) => super::Held::Scans(Arc::<dyn Mapped<K>>::from(index)),
            Held::Ends(index) => super::Held::Ends(Arc::<dyn Ended<K>>::from(index)),
            Held::Ranks(index) => super::Held::Ends(Arc::<dyn Ranked<K>>::from(index)),
        })
    }
}

impl<K: IndexKey + ?Sized> fmt::Debug for AnyOrdered<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyOrdered({} keys)", self.len())
    }
}

/// A form of keys that structures chosen at run time take: `u64` or `[u8]`. The trait is sealed.
pub trait InTable: Form {
    /// The name of the keys in an error.
    #[doc(hidden)]
    const KEYS: &'static str;
    /// The constructors of a build: with pools, and with the heap of the options.
    #[cfg(feature = "named")]
    #[doc(hidden)]
    fn makers(build: &super::named::Build) -> Option<[super::named::Maker<Self>; 2]>;
    /// Makes the default index, which counts its keys.
    #[doc(hidden)]
    fn counted(options: &Options) -> Result<AnyOrdered<Self>, AllocError>;
}

macro_rules! in_table {
    ($($form:ty, $tree:ty, $field:ident, $keys:literal;)*) => {$(
        impl InTable for $form {
            const KEYS: &'static str = $keys;

            #[cfg(feature = "named")]
            fn makers(build: &super::named::Build) -> Option<[super::named::Maker<$form>; 2]> {
                build.$field
            }
            #[inline] // not compiled before it is called
            fn counted(options: &Options) -> Result<AnyOrdered<$form>, AllocError> {
                type Counted = <$tree as crate::counts::Countable>::Counted;
                Ok(AnyOrdered::with_ranks(<Counted as Create>::with_options(options)?))
            }
        }
    )*};
}

in_table! {
    u64, WordTree<u64>, words, "`u64`";
    [u8], BlockTree<[u8]>, bytes, "byte strings";
}

/// Makes the default index of a map with keys of this form.
impl<K: InTable + ?Sized> Create for AnyOrdered<K> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        Ok(Self::with_ends(K::Index::<Pooled>::with_options(options)?))
    }
}

impl<K: IndexKey + ?Sized> Lookup for AnyOrdered<K> {
    type Key = K;

    #[inline(always)]
    fn domain(&self) -> &Domain {
        &self.domain
    }
    #[inline(always)]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.held().get(key, guard)
    }
    fn len(&self) -> usize {
        self.held().len()
    }
    fn len_snapshot(&self) -> Option<usize> {
        self.held().len_snapshot()
    }
    fn bytes(&self) -> usize {
        self.held().bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.held().pool_stats()
    }
}

impl<K: IndexKey + ?Sized> OrderedIndex for AnyOrdered<K> {
    #[inline(always)]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.held().update(key, verb, guard)
    }
    fn shrink(&self) -> usize {
        self.held().shrink()
    }
}

impl<K: IndexKey + ?Sized> Batches for AnyOrdered<K> {
    fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
        self.held().get_many(keys, values, guard);
    }
    fn insert_many(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        self.held().insert_many(entries, replaced, guard)
    }
}

impl<K: IndexKey + ?Sized> OrderedScan for AnyOrdered<K> {
    type Range<'g> = Entries<'g, K>;
    type RangeRev<'g> = Entries<'g, K>;
    type Cursor = KeyCursor<Self>;

    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Entries<'g, K> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        self.held().range_within(bounds, guard)
    }

    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Entries<'g, K> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        self.held().range_rev_within(bounds, guard)
    }

    fn cursor(self: &Arc<Self>) -> KeyCursor<Self> {
        KeyCursor::new(Arc::clone(self))
    }
}

impl<K: IndexKey + ?Sized> Check for AnyOrdered<K> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.held_mut().check()
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        self.held_mut().reachable()
    }
    fn settle(&mut self) {
        self.held_mut().settle();
    }
}

// SAFETY: only indexes that implement `MapIndex` are wrapped, and their words, keys and results are
// passed on unchanged.
unsafe impl<K: InTable + ?Sized> MapIndex for AnyOrdered<K> {
    type Placement = Pooled;

    fn load(
        &mut self,
        entries: &[(KeyRef<'_, Self>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        self.held_mut().load_sorted(entries, threads)
    }

    fn read_ahead<'g>(
        &'g self,
        bounds: Bounds<'g, K>,
        descends: bool,
        most: usize,
        guard: &'g Guard,
        mut each: impl FnMut(KeyRef<'g, Self>, u64),
    ) {
        self.held().read_within(bounds, descends, most, guard, &mut each);
    }
}
