//! A map as an index, so that the checks of indexes check maps, too. Each value has a slot of the
//! map's own: if the map mixed slots up or freed one too early, a wrong word would be found in it.

use crate::linearizable::ordered::EndVerb;
use silvics::dynamic::Points;
use silvics::map::{
    CompareExchangeError, Compute, DefaultIndex, Operation, RemoveIfError, TryInsertError,
};
use silvics::{
    AllocError, AsKey, Batches, Check, Create, Domain, Guard, IndexKey, Key, Lookup, Map, Options,
    OrderedIndex, Placement, PoolStats, Pooled, Update, Violation,
};

/// A form in which indexes hold keys, as a key of maps.
pub trait MappedKey: silvics::key::Form {
    /// The key type with this form.
    type Of: Key<Form = Self>;
    /// The type with which a map is asked for a key.
    type Lent<'a>: AsKey<Self::Of>;

    /// Borrows a key as the map is asked for it.
    fn lend(key: Self::Ref<'_>) -> Self::Lent<'_>;
    /// Copies a key that the map returned.
    fn own(key: <Self::Of as Key>::Ref<'_>) -> Self::Owned;
}

macro_rules! mapped {
    ($($form:ty: $of:ty, $lent:ty;)*) => {$(
        impl MappedKey for $form {
            type Of = $of;
            type Lent<'a> = $lent;

            fn lend(key: Self::Ref<'_>) -> Self::Lent<'_> {
                key
            }
            fn own(key: <$of as Key>::Ref<'_>) -> Self::Owned {
                key.into()
            }
        }
    )*};
}

mapped! {
    u64: u64, u64;
    u128: u128, u128;
    [u8]: Vec<u8>, &'a [u8];
}

/// A word that the map does not take for a number, so that the value gets a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// Reads the word. In schedules it yields first, some time after the word was borrowed.
    pub(crate) fn read(&self) -> u64 {
        if cfg!(silvics_shuttle) {
            silvics_sync::thread::yield_now();
        }
        self.0
    }
}

/// A [`Map`] over its default index. It has no scans: entries of a map's scan are borrowed from a
/// view of the map, and not from a guard.
pub struct Mapped<K: MappedKey + ?Sized, P: Placement = Pooled> {
    map: Map<K::Of, Word, DefaultIndex<K::Of, P>>,
    domain: Domain,
}

impl<K: MappedKey + ?Sized, P: Placement> Create for Mapped<K, P> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        let domain = options.domain.clone().unwrap_or_default();
        let options = Options { domain: Some(domain.clone()), ..options.clone() };
        Ok(Self { map: Map::with_options(&options)?, domain })
    }
}

/// A [`Mapped`] whose placement is hidden, with its ends. The map returns their keys under a pin of
/// its own, so they are copied.
pub trait AnyMapped<K: IndexKey + ?Sized>: Points<K> {
    /// Makes a call on an end.
    fn end(&self, verb: EndVerb) -> Result<Option<(K::Owned, u64)>, AllocError>;
}

/// Implements the contract of indexes by a map. `asked` is the key as a lookup takes it, `put` as
/// an insertion does, and `own` copies a key that the map returned. `exchange` gives a key with an
/// expected value another one.
macro_rules! index_by_map {
    (
        $index:ident<$K:ident: $form:ident, $($other:ident: $bound:ident),+>,
        |$key:ident| asked: $asked:expr, put: $put:expr, own: $own:expr,
        |$view:ident, $expected:ident, $new:ident| exchange: $exchange:expr,
    ) => {
        impl<$K: $form + ?Sized, $($other: $bound),+> Lookup for $index<$K, $($other),+> {
            type Key = $K;
            fn domain(&self) -> &Domain {
                &self.domain
            }
            fn get(&self, $key: $K::Ref<'_>, _guard: &Guard) -> Option<u64> {
                self.map.pin().get($asked).map(|value| value.read())
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

        impl<$K: $form + ?Sized, $($other: $bound),+> OrderedIndex for $index<$K, $($other),+> {
            fn update(
                &self,
                $key: $K::Ref<'_>,
                verb: Update,
                _guard: &Guard,
            ) -> Result<Option<u64>, AllocError> {
                let $view = self.map.pin();
                match verb {
                    Update::TryInsert(value) => match $view.try_insert($put, Word(value)) {
                        Ok(_) => Ok(None),
                        Err(TryInsertError::Occupied { present, .. }) => Ok(Some(present.read())),
                        Err(TryInsertError::Alloc(rejected)) => Err(rejected.error),
                        Err(_) => unreachable!("there are no other errors"),
                    },
                    Update::Insert(value) => match $view.try_upsert($put, Word(value)) {
                        Ok(old) => Ok(old.map(|old| old.read())),
                        Err(rejected) => Err(rejected.error),
                    },
                    Update::Remove => Ok($view.try_remove($asked)?.map(|old| old.read())),
                    // The map's other methods are built from the methods called here, which checks
                    // them too.
                    Update::CompareExchange { expected: None, new } => {
                        let decide = |present: Option<&Word>| match (present, new) {
                            (None, Some(new)) => Operation::Insert(Word(new)),
                            (present, _) => Operation::Abort(present.map(Word::read)),
                        };
                        match $view.try_compute($put, decide) {
                            Ok(Compute::Aborted(present)) => Ok(present),
                            Ok(_) => Ok(None),
                            Err(rejected) => Err(rejected.error),
                        }
                    }
                    Update::CompareExchange { expected: Some(expected), new: None } => {
                        match $view.try_remove_if($asked, |present| present.read() == expected) {
                            Ok(old) => Ok(old.map(|old| old.read())),
                            Err(RemoveIfError::Kept(present)) => Ok(Some(present.read())),
                            Err(RemoveIfError::Alloc(error)) => Err(error),
                            Err(_) => unreachable!("there are no other errors"),
                        }
                    }
                    Update::CompareExchange { expected: Some(expected), new } => {
                        let ($expected, $new) = (&Word(expected), new.map(Word));
                        match $exchange {
                            Ok(old) => Ok(old.map(|old| old.read())),
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

        impl<$K: $form + ?Sized, $($other: $bound),+> Batches for $index<$K, $($other),+> {}

        impl<$K: $form + ?Sized, $($other: $bound),+> AnyMapped<$K> for $index<$K, $($other),+> {
            fn end(&self, verb: EndVerb) -> Result<Option<($K::Owned, u64)>, AllocError> {
                let view = self.map.pin();
                let found = match verb {
                    EndVerb::First => view.first(),
                    EndVerb::Last => view.last(),
                    EndVerb::PopFirst => view.try_pop_first()?,
                    EndVerb::PopLast => view.try_pop_last()?,
                };
                Ok(found.map(|($key, value)| ($own, value.read())))
            }
        }

        impl<$K: $form + ?Sized, $($other: $bound),+> Check for $index<$K, $($other),+> {
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
    };
}

pub(crate) use index_by_map;

index_by_map!(
    Mapped<K: MappedKey, P: Placement>,
    |key| asked: K::lend(key), put: K::lend(key), own: K::own(key),
    |view, expected, new| exchange: view.compare_exchange(K::lend(key), Some(expected), new),
);
