//! Snapshots: readers at one number.

use super::clock::Clock;
use super::node::{Node, Word};
use super::ops::or_refuse;
use super::range::{OwnedVersionRange, VersionRange};
use super::{ReadError, VersionedMap};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::Lookup;
use crate::map::key::{AsKey, Key};
use crate::map::scan::KeyRange;
use crate::map::{MapIndex, Value};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

mod private {
    pub trait Sealed {}
}

/// A way to hold a [`VersionedMap`]: `&VersionedMap` or `Arc<VersionedMap>`. The trait is sealed.
pub trait HoldsVersions: private::Sealed {
    /// The type of keys.
    type Key: Key;
    /// The type of values.
    type Value: Value;
    /// The source of the versions' numbers.
    type Clock: Clock;
    /// The index.
    type Index: MapIndex<Key = <Self::Key as Key>::Form>;

    #[doc(hidden)]
    fn held(&self) -> &MapOf<Self>;
}

/// The map that is held.
pub(super) type MapOf<M> = VersionedMap<
    <M as HoldsVersions>::Key,
    <M as HoldsVersions>::Value,
    <M as HoldsVersions>::Clock,
    <M as HoldsVersions>::Index,
>;

macro_rules! holders {
    ($($holder:ty),*) => {$(
        impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> private::Sealed for $holder {}
        impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> HoldsVersions for $holder {
            type Key = K;
            type Value = V;
            type Clock = C;
            type Index = I;

            #[inline(always)]
            fn held(&self) -> &VersionedMap<K, V, C, I> {
                self
            }
        }
    )*};
}

holders!(&VersionedMap<K, V, C, I>, Arc<VersionedMap<K, V, C, I>>);

/// A reader of a [`VersionedMap`] at one number. It sees each key as it was then, whatever is
/// written meanwhile, and keeps what it can see from being dropped.
///
/// It is made by [`VersionedMap::snapshot`], which borrows the map, or
/// [`VersionedMap::snapshot_owned`], which keeps it alive. A snapshot can be sent to other threads
/// and shared, and holds no pin. Values that it returns borrow it.
pub struct Snapshot<M: HoldsVersions> {
    map: M,
    number: u64,
}

impl<M: HoldsVersions> Snapshot<M> {
    fn begin(map: M, number: Option<u64>) -> Result<Result<Self, u64>, AllocError> {
        let begun = map.held().time.begin::<M::Clock>(number)?;
        Ok(begun.map(|number| Self { map, number }))
    }

    fn at(map: M, number: u64) -> Result<Self, ReadError> {
        let now = map.held().now();
        if number > now {
            return Err(ReadError::Future { number, now });
        }
        match Self::begin(map, Some(number)) {
            Ok(Ok(snapshot)) => Ok(snapshot),
            Ok(Err(horizon)) => Err(ReadError::Pruned { number, horizon }),
            Err(error) => Err(ReadError::Alloc(error)),
        }
    }

    fn now(map: M) -> Result<Self, AllocError> {
        let begun = Self::begin(map, None)?;
        Ok(begun.unwrap_or_else(|_| unreachable!("the present can be read")))
    }

    /// The number at which it reads.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn map(&self) -> &MapOf<M> {
        self.map.held()
    }

    /// The value that a key with this newest object has for the snapshot. It stays as long as the
    /// snapshot (N3).
    ///
    /// # Safety
    /// The word was read in the index of the map under the guard.
    #[inline(always)]
    pub(super) unsafe fn value_of(
        &self,
        newest: Word,
        _guard: &Guard,
    ) -> Option<NonNull<M::Value>> {
        // SAFETY: N2, our contract.
        let (_, node) = self.map().find(unsafe { Node::new(newest) }, self.number)?;
        // SAFETY: the version is final.
        unsafe { node.value() }.map(NonNull::from)
    }

    /// The value of a key, or `None` if the key was absent or deleted.
    pub fn get(&self, key: impl AsKey<M::Key>) -> Option<&M::Value> {
        self.get_version(key).map(|(_, value)| value)
    }

    /// The number of a key's version, and its value.
    pub fn get_version(&self, key: impl AsKey<M::Key>) -> Option<(u64, &M::Value)> {
        let map = self.map();
        let guard = map.index.domain().pin();
        let newest = key.with_form(|form| map.newest(form, &guard))?;
        let (number, node) = map.find(newest, self.number)?;
        // SAFETY: the version is final. N3: it stays as long as the snapshot, so the value needs no
        // pin.
        let value = unsafe { lengthened(node.value()?) };
        Some((number, value))
    }

    /// The entries of `range` in ascending order of their keys. The iterator is double-ended, and
    /// can be sent. It reads 26 entries at first, and then as many as it has read so far, up to
    /// 512, under a pin that it takes for the time.
    pub fn range(&self, range: impl KeyRange<M::Key>) -> VersionRange<'_, M> {
        VersionRange::new(self, range)
    }

    /// All entries in ascending order of their keys.
    pub fn iter(&self) -> VersionRange<'_, M> {
        self.range(..)
    }

    /// The entries of `range` as copies, in an iterator that owns the snapshot.
    pub fn into_range(self, range: impl KeyRange<M::Key>) -> OwnedVersionRange<M> {
        OwnedVersionRange::new(self, range)
    }
}

/// Extends the lifetime of a value that a snapshot keeps.
///
/// # Safety
/// The value lives as long as `'a`.
unsafe fn lengthened<'a, V>(value: &V) -> &'a V {
    // SAFETY: our contract.
    unsafe { &*std::ptr::from_ref(value) }
}

impl<'s, M: HoldsVersions> IntoIterator for &'s Snapshot<M> {
    type Item = (M::Key, &'s M::Value);
    type IntoIter = VersionRange<'s, M>;

    fn into_iter(self) -> VersionRange<'s, M> {
        self.iter()
    }
}

impl<M: HoldsVersions> Drop for Snapshot<M> {
    fn drop(&mut self) {
        self.map.held().time.end(self.number);
    }
}

impl<M: HoldsVersions + Clone> Clone for Snapshot<M> {
    /// Another snapshot at the same number.
    ///
    /// # Panics
    /// If an allocation fails.
    fn clone(&self) -> Self {
        let begun = or_refuse(Self::begin(self.map.clone(), Some(self.number)));
        begun.unwrap_or_else(|_| unreachable!("a snapshot lives at this number"))
    }
}

impl<M: HoldsVersions> fmt::Debug for Snapshot<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({})", self.number)
    }
}

/// Snapshots.
impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> VersionedMap<K, V, C, I> {
    /// Begins a snapshot of the present. O(snapshots).
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn snapshot(&self) -> Snapshot<&Self> {
        or_refuse(Snapshot::now(self))
    }

    /// Begins a snapshot of the present that keeps the map alive. O(snapshots).
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn snapshot_owned(self: &Arc<Self>) -> Snapshot<Arc<Self>> {
        or_refuse(Snapshot::now(Arc::clone(self)))
    }

    /// Begins a snapshot like [`VersionedMap::snapshot`]. Fails if an allocation fails.
    pub fn try_snapshot(&self) -> Result<Snapshot<&Self>, AllocError> {
        Snapshot::now(self)
    }

    /// Begins a snapshot like [`VersionedMap::snapshot_owned`]. Fails if an allocation fails.
    pub fn try_snapshot_owned(self: &Arc<Self>) -> Result<Snapshot<Arc<Self>>, AllocError> {
        Snapshot::now(Arc::clone(self))
    }

    /// Begins a snapshot at a number. Fails if versions that it needs may have been dropped, or if
    /// the number is in the future.
    pub fn snapshot_at(&self, number: u64) -> Result<Snapshot<&Self>, ReadError> {
        Snapshot::at(self, number)
    }

    /// The entries of `range` at a number, as copies, in an iterator that keeps the map alive and
    /// holds a snapshot. It is double-ended, and can be sent. Fails as
    /// [`VersionedMap::snapshot_at`].
    pub fn range_at(
        self: &Arc<Self>,
        number: u64,
        range: impl KeyRange<K>,
    ) -> Result<OwnedVersionRange<Arc<Self>>, ReadError> {
        Ok(Snapshot::at(Arc::clone(self), number)?.into_range(range))
    }
}
