//! An `OrdMap` as an index, so that the checks of indexes check such maps, too: see
//! [`mapped`](crate::mapped).

use crate::linearizable::ordered::EndVerb;
use crate::mapped::{AnyMapped, Word};
use silvics::ca::build::{Adaptive, Build};
use silvics::map::{CompareExchangeError, Compute, Operation, RemoveIfError, TryInsertError};
use silvics::ord::{Compares, Natural};
use silvics::{
    AllocError, Batches, Check, Create, Domain, Guard, IndexKey, Lookup, Options, OrdMap,
    OrderedIndex, Placement, PoolStats, Pooled, Update, Violation,
};

/// A key of indexes, as a key of maps in any order.
pub trait OrdKey: IndexKey {
    /// The key that a map owns.
    type Of: silvics::map::Value;
    /// The form in which a map is asked for a key.
    type Asked: ?Sized;
    /// The order of the keys.
    type Order: Compares<Self::Of, Self::Of> + Compares<Self::Of, Self::Asked> + Default;

    /// Copies a key for a map.
    fn copy(key: Self::Ref<'_>) -> Self::Of;
    /// Borrows a key as a map is asked for it.
    fn ask<'a>(key: &'a Self::Ref<'_>) -> &'a Self::Asked;
    /// Copies a key that a map has.
    fn own(key: &Self::Of) -> Self::Owned;
}

macro_rules! keys {
    ($($form:ty: $of:ty, $asked:ty;)*) => {$(
        impl OrdKey for $form {
            type Of = $of;
            type Asked = $asked;
            type Order = Natural;

            fn copy(key: Self::Ref<'_>) -> $of {
                key.into()
            }
            fn ask<'a>(key: &'a Self::Ref<'_>) -> &'a $asked {
                key
            }
            fn own(key: &$of) -> Self::Owned {
                key.clone().into()
            }
        }
    )*};
}

keys! {
    u64: u64, u64;
    u128: u128, u128;
    [u8]: Vec<u8>, [u8];
}

/// An [`OrdMap`]. It has no scans: see [`Mapped`](crate::mapped::Mapped).
pub struct OrdMapped<K: OrdKey + ?Sized, P: Placement = Pooled, B: Build = Adaptive> {
    map: OrdMap<K::Of, Word, K::Order, P, B>,
    domain: Domain,
}

impl<K: OrdKey + ?Sized, P: Placement, B: Build> Create for OrdMapped<K, P, B> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        let domain = options.domain.clone().unwrap_or_default();
        let options = Options { domain: Some(domain.clone()), ..options.clone() };
        Ok(Self { map: OrdMap::with_options(K::Order::default(), &options)?, domain })
    }
}

impl<K: OrdKey + ?Sized, P: Placement, B: Build> Lookup for OrdMapped<K, P, B> {
    type Key = K;
    fn domain(&self) -> &Domain {
        &self.domain
    }
    fn get(&self, key: K::Ref<'_>, _guard: &Guard) -> Option<u64> {
        self.map.pin().get(K::ask(&key)).map(|value| value.read())
    }
    fn len(&self) -> usize {
        self.map.len()
    }
    fn bytes(&self) -> usize {
        self.map.bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.map.pool_stats()
    }
}

impl<K: OrdKey + ?Sized, P: Placement, B: Build> OrderedIndex for OrdMapped<K, P, B> {
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        _guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let view = self.map.pin();
        match verb {
            Update::TryInsert(value) => match view.try_insert(K::copy(key), Word(value)) {
                Ok(_) => Ok(None),
                Err(TryInsertError::Occupied { present, .. }) => Ok(Some(present.read())),
                Err(TryInsertError::Alloc(rejected)) => Err(rejected.error),
                Err(_) => unreachable!("there are no other errors"),
            },
            Update::Insert(value) => match view.try_upsert(K::copy(key), Word(value)) {
                Ok(old) => Ok(old.map(|old| old.read())),
                Err(rejected) => Err(rejected.error),
            },
            Update::Remove => Ok(view.try_remove(K::ask(&key))?.map(|old| old.read())),
            Update::CompareExchange { expected: None, new } => {
                let decide = |present: Option<&Word>| match (present, new) {
                    (None, Some(new)) => Operation::Insert(Word(new)),
                    (present, _) => Operation::Abort(present.map(Word::read)),
                };
                match view.try_compute(K::copy(key), decide) {
                    Ok(Compute::Aborted(present)) => Ok(present),
                    Ok(_) => Ok(None),
                    Err(rejected) => Err(rejected.error),
                }
            }
            Update::CompareExchange { expected: Some(expected), new: None } => {
                match view.try_remove_if(K::ask(&key), |present| present.read() == expected) {
                    Ok(old) => Ok(old.map(|old| old.read())),
                    Err(RemoveIfError::Kept(present)) => Ok(Some(present.read())),
                    Err(RemoveIfError::Alloc(error)) => Err(error),
                    Err(_) => unreachable!("there are no other errors"),
                }
            }
            Update::CompareExchange { expected: Some(expected), new } => {
                match view.compare_exchange(K::ask(&key), &Word(expected), new.map(Word)) {
                    Ok(old) => Ok(Some(old.read())),
                    Err(CompareExchangeError::Mismatch { present, .. }) => {
                        Ok(present.map(|present| present.read()))
                    }
                    Err(CompareExchangeError::Alloc(rejected)) => Err(rejected.error),
                    Err(_) => unreachable!("there are no other errors"),
                }
            }
        }
    }
    fn shrink(&self) -> usize {
        self.map.shrink()
    }
}

impl<K: OrdKey + ?Sized, P: Placement, B: Build> Batches for OrdMapped<K, P, B> {}

impl<K: OrdKey + ?Sized, P: Placement, B: Build> AnyMapped<K> for OrdMapped<K, P, B> {
    fn end(&self, verb: EndVerb) -> Result<Option<(K::Owned, u64)>, AllocError> {
        let view = self.map.pin();
        let found = match verb {
            EndVerb::First => view.first(),
            EndVerb::Last => view.last(),
            EndVerb::PopFirst => view.try_pop_first()?,
            EndVerb::PopLast => view.try_pop_last()?,
        };
        Ok(found.map(|(key, value)| (K::own(&key), value.read())))
    }
}

impl<K: OrdKey + ?Sized, P: Placement, B: Build> Check for OrdMapped<K, P, B> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.map.check()
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        self.map.reachable()
    }

    fn settle(&mut self) {
        self.map.settle();
    }
}
