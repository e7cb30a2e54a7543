//! `silvics::Map` as a contender, as its users call it.

use crate::contender::held::{MapKey, MapValue, OurKey};
use crate::contender::{Contender, Session, visited};
use silvics::map::{DefaultIndex, MapIndex, TryInsertError};
use silvics::{AllocError, Domain, Guard, IndexKey, Key, Map, Options, PoolStats, ValueRef, View};
use std::ops::Bound::{Included, Unbounded};

/// The form of the keys of our map.
type Form<K> = <<K as MapKey>::Ours as Key>::Form;

/// A map with keys that `K` stands for and values of type `V`.
pub struct OurMap<K: OurKey + ?Sized, V: MapValue, I = DefaultIndex<<K as MapKey>::Ours>>
where
    I: MapIndex<Key = Form<K>>,
{
    map: Map<K::Ours, V, I>,
    domain: Domain,
}

impl<K: OurKey + ?Sized, V: MapValue, I: MapIndex<Key = Form<K>>> OurMap<K, V, I> {
    /// An empty map.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let domain = options.domain.clone().unwrap_or_default();
        let options = Options { domain: Some(domain.clone()), ..options.clone() };
        Ok(Self { map: Map::with_options(&options)?, domain })
    }
}

impl<K: OurKey + ?Sized, V: MapValue, I> Contender for OurMap<K, V, I>
where
    I: MapIndex<Key = Form<K>> + 'static,
{
    type Key = K::Bench;
    type Session<'a> = MapSession<'a, K, V, I>;

    fn session(&self) -> MapSession<'_, K, V, I> {
        MapSession { view: self.map.pin() }
    }

    fn hold(&self) -> Option<Guard> {
        Some(self.domain.pin())
    }

    /// `None` if values own memory outside the map, which the map does not count.
    fn bytes(&self) -> Option<usize> {
        V::IS_IN_MAP.then(|| self.map.bytes())
    }

    fn pooled_bytes(&self) -> usize {
        self.map.bytes()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.map.pool_stats()
    }
}

/// A thread's session: the map pinned.
pub struct MapSession<'a, K: OurKey + ?Sized, V: MapValue, I: MapIndex<Key = Form<K>>> {
    view: View<'a, K::Ours, V, I>,
}

impl<K: OurKey + ?Sized, V: MapValue, I> Session for MapSession<'_, K, V, I>
where
    I: MapIndex<Key = Form<K>>,
{
    type Key = K::Bench;
    type Lent = K::Bench;
    const GETS_MANY: bool = true;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.view.get(K::lend(&key)).map(|value: ValueRef<'_, V>| value.word())
    }

    #[inline]
    fn get_many(&mut self, keys: &[<K::Bench as IndexKey>::Ref<'_>], values: &mut [Option<u64>]) {
        let keys: Vec<&K> = keys.iter().map(K::lend).collect();
        let mut found: Vec<_> = keys.iter().map(|_| None).collect();
        self.view.get_many(&keys, &mut found);
        for (value, found) in values.iter_mut().zip(found) {
            *value = found.map(|value: ValueRef<'_, V>| value.word());
        }
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        match self.view.try_insert(K::lend(&key), V::hold(value)) {
            Ok(_) => Ok(true),
            Err(TryInsertError::Alloc(rejected)) => Err(rejected.error),
            Err(_) => Ok(false),
        }
    }

    #[inline]
    fn upsert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let replaced = self.view.try_upsert(K::lend(&key), V::hold(value));
        Ok(replaced.map_err(|rejected| rejected.error)?.is_none())
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.view.try_remove(K::lend(&key))?.is_some())
    }

    #[inline]
    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let entries = self.view.range((Included(K::lend(&from)), Unbounded)).take(limit);
        visited(entries, |key, value| visit(K::lent(key), value.word()))
    }

    #[inline]
    fn refresh(&mut self) {
        self.view.repin();
    }
}
