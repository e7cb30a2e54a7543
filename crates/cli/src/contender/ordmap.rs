//! `silvics::OrdMap` as a contender, as its users call it.

use crate::contender::held::{MapKey, MapValue};
use crate::contender::{Contender, Session, visited};
use silvics::map::TryInsertError;
use silvics::ord::{Compares, Natural, OnBorrowed, OrdView};
use silvics::{AllocError, Domain, Guard, IndexKey, Options, OrdMap, PoolStats, Pooled};
use std::cmp::Ordering;
use std::ops::Bound::{Included, Unbounded};

/// An order of the keys that `K` stands for.
pub trait Order<K: MapKey + ?Sized>: Compares<K::Owned, K::Owned> + Compares<K::Owned, K> {
    /// The order.
    fn new() -> Self;
}

impl<K: MapKey + ?Sized> Order<K> for Natural {
    fn new() -> Self {
        Self
    }
}

/// An order that is given as a function.
pub type Function<K> = OnBorrowed<K, fn(&K, &K) -> Ordering>;

impl<K: MapKey + ?Sized> Order<K> for Function<K> {
    fn new() -> Self {
        Self::new(|a: &K, b: &K| a.cmp(b))
    }
}

/// A map with keys that `K` stands for and values of type `V`, in an order `C`.
pub struct OurOrdMap<K: MapKey + ?Sized, V: MapValue, C: Order<K>> {
    map: OrdMap<K::Owned, V, C>,
    domain: Domain,
}

impl<K: MapKey + ?Sized, V: MapValue, C: Order<K>> OurOrdMap<K, V, C> {
    /// An empty map.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let domain = options.domain.clone().unwrap_or_default();
        let options = Options { domain: Some(domain.clone()), ..options.clone() };
        Ok(Self { map: OrdMap::with_options(C::new(), &options)?, domain })
    }
}

impl<K: MapKey + ?Sized, V: MapValue, C: Order<K>> Contender for OurOrdMap<K, V, C> {
    type Key = K::Bench;
    type Session<'a> = OrdSession<'a, K, V, C>;

    fn session(&self) -> OrdSession<'_, K, V, C> {
        OrdSession { view: self.map.pin() }
    }

    fn hold(&self) -> Option<Guard> {
        Some(self.domain.pin())
    }

    /// `None` if keys or values own memory outside the map, which the map does not count.
    fn bytes(&self) -> Option<usize> {
        let is_in_map = V::IS_IN_MAP && !std::mem::needs_drop::<K::Owned>();
        is_in_map.then(|| self.map.bytes())
    }

    fn pooled_bytes(&self) -> usize {
        self.map.bytes()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.map.pool_stats()
    }
}

/// A thread's session: the map pinned.
pub struct OrdSession<'a, K: MapKey + ?Sized, V: MapValue, C: Order<K>> {
    view: OrdView<'a, K::Owned, V, C, Pooled, silvics::ca::build::Adaptive>,
}

impl<K: MapKey + ?Sized, V: MapValue, C: Order<K>> Session for OrdSession<'_, K, V, C> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.view.get::<K>(K::lend(&key)).map(|value| value.word())
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        match self.view.try_insert(K::own(key), V::hold(value)) {
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
        let replaced = self.view.try_upsert(K::own(key), V::hold(value));
        Ok(replaced.map_err(|rejected| rejected.error)?.is_none())
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.view.try_remove::<K>(K::lend(&key))?.is_some())
    }

    #[inline]
    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let from: (_, std::ops::Bound<&K>) = (Included(K::lend(&from)), Unbounded);
        let entries = self.view.range::<K, _>(from).take(limit);
        visited(entries, |key, value| visit(K::show(&key), value.word()))
    }

    #[inline]
    fn refresh(&mut self) {
        self.view.repin();
    }
}
