//! An `OrdMap` as an index, so that the checks of indexes check such maps, too: see
//! [`mapped`](crate::mapped).

use crate::linearizable::ordered::EndVerb;
use crate::mapped::{AnyMapped, Word, index_by_map};
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

index_by_map!(
    OrdMapped<K: OrdKey, P: Placement, B: Build>,
    |key| asked: K::ask(&key), put: K::copy(key), own: K::own(&key),
    |view, expected, new| exchange: view.compare_exchange(K::ask(&key), expected, new).map(Some),
);
