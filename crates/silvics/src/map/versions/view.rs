//! Reading the latest versions, or those at a number, under a pin.

use super::clock::Clock;
use super::{ReadError, VersionedMap};
use crate::domain::Guard;
use crate::map::key::{AsKey, DefaultIndex, Key};
use crate::map::{MapIndex, Value};
use std::fmt;
use std::ops::Deref;

/// A value, and the number of its version.
#[derive(Debug)]
pub struct Version<'g, V> {
    /// The number.
    pub number: u64,
    /// The value.
    pub value: &'g V,
}

impl<V> Clone for Version<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for Version<'_, V> {}

impl<V> Deref for Version<'_, V> {
    type Target = V;

    #[inline(always)]
    fn deref(&self) -> &V {
        self.value
    }
}

/// A [`VersionedMap`] with its domain pinned, made by [`VersionedMap::pin`]: for many calls. It
/// cannot leave its thread. Returned values borrow the view. While it lives, dropped versions
/// cannot be freed.
pub struct VersionedView<
    'm,
    K: Key,
    V: Value,
    C: Clock,
    I: MapIndex<Key = <K as Key>::Form> = DefaultIndex<K>,
> {
    map: &'m VersionedMap<K, V, C, I>,
    guard: Guard,
}

impl<'m, K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> VersionedView<'m, K, V, C, I> {
    pub(super) fn new(map: &'m VersionedMap<K, V, C, I>, guard: Guard) -> Self {
        Self { map, guard }
    }

    #[inline(always)]
    pub(super) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The map.
    pub fn map(&self) -> &'m VersionedMap<K, V, C, I> {
        self.map
    }

    /// Unpins and pins again, so that dropped versions can be freed. Returned values cannot be used
    /// afterwards.
    pub fn repin(&mut self) {
        self.guard.repin();
    }

    /// The newest version of a key, or `None` if the key is absent or deleted. Linearizable. If the
    /// caller gives the numbers, this may be a version above the watermark.
    #[inline]
    pub fn get_latest(&self, key: impl AsKey<K>) -> Option<Version<'_, V>> {
        self.read(&key, u64::MAX)
    }

    /// The version of a key that readers at `number` see: the newest one with a number up to it, or
    /// `None` if the key was absent or deleted then.
    ///
    /// Fails if versions that such a reader needs may have been dropped, or if `number` is in the
    /// future. A [`Snapshot`](super::Snapshot) can always read.
    pub fn get_at(
        &self,
        key: impl AsKey<K>,
        number: u64,
    ) -> Result<Option<Version<'_, V>>, ReadError> {
        let now = self.map.time.read_now::<C>();
        if number > now {
            return Err(ReadError::Future { number, now });
        }
        let version = self.read(&key, number);
        // Versions are dropped only after the horizon was raised (`chain.rs`).
        let horizon = self.map.time.horizon();
        if number < horizon { Err(ReadError::Pruned { number, horizon }) } else { Ok(version) }
    }

    /// All versions of a key that are left, the newest first: numbers and values, which are `None`
    /// for deletions. O(versions).
    pub fn history(&self, key: impl AsKey<K>) -> Vec<(u64, Option<&V>)> {
        let mut versions = Vec::new();
        key.with_form(|form| {
            let mut next = self.map.newest(form, &self.guard);
            while let Some((number, node)) = next.and_then(|node| self.map.find(node, u64::MAX)) {
                // SAFETY: the version is final.
                versions.push((number, unsafe { node.value() }));
                next = node.older();
            }
        });
        versions
    }

    #[inline(always)]
    fn read(&self, key: &(impl AsKey<K> + ?Sized), at: u64) -> Option<Version<'_, V>> {
        let newest = key.with_form(|form| self.map.newest(form, &self.guard))?;
        let (number, node) = self.map.find(newest, at)?;
        // SAFETY: the version is final.
        Some(Version { number, value: unsafe { node.value() }? })
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> fmt::Debug
    for VersionedView<'_, K, V, C, I>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.map.fmt(f)
    }
}
