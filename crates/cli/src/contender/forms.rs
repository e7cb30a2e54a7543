//! The forms in which indexes take the keys that the command draws, and return them.
//!
//! Most indexes have the keys as they are. Scans of those that store common prefixes once return
//! byte strings in two pieces.

use crate::drive::keys::BenchKey;
use silvics::IndexKey;
use silvics::key::Prefixed;

/// The form in which scans of an index return keys `K`.
pub trait Lent<K: BenchKey + ?Sized>: IndexKey {
    /// See [`BenchKey::glance`].
    fn glance(key: Self::Ref<'_>) -> u64;
    /// Calls `then` with the key.
    fn whole<R>(key: Self::Ref<'_>, then: impl FnOnce(K::Ref<'_>) -> R) -> R;
}

impl<K: BenchKey + ?Sized> Lent<K> for K {
    #[inline(always)]
    fn glance(key: K::Ref<'_>) -> u64 {
        <K as BenchKey>::glance(key)
    }
    #[inline(always)]
    fn whole<R>(key: K::Ref<'_>, then: impl FnOnce(K::Ref<'_>) -> R) -> R {
        then(key)
    }
}

impl Lent<[u8]> for Prefixed<'static> {
    #[inline(always)]
    fn glance(key: Prefixed<'_>) -> u64 {
        let [prefix, rest] = key.pieces();
        rest.last().or(prefix.last()).map_or(0, |&byte| u64::from(byte)) + key.len() as u64
    }
    fn whole<R>(key: Prefixed<'_>, then: impl FnOnce(&[u8]) -> R) -> R {
        then(&key.to_vec())
    }
}

/// The form in which an index of ours takes keys.
pub trait Form: Lent<Self::Drawn> {
    /// The keys that the command draws.
    type Drawn: BenchKey + ?Sized;

    /// The form of a key.
    fn of(key: <Self::Drawn as IndexKey>::Ref<'_>) -> Self::Ref<'_>;
    /// Calls `then` with the forms of some keys.
    fn all<R>(
        keys: &[<Self::Drawn as IndexKey>::Ref<'_>],
        then: impl FnOnce(&[Self::Ref<'_>]) -> R,
    ) -> R;
    /// Calls `then` with the forms of the keys of some entries, and their values.
    fn entries<R>(
        entries: &[(<Self::Drawn as IndexKey>::Ref<'_>, u64)],
        then: impl FnOnce(&[(Self::Ref<'_>, u64)]) -> R,
    ) -> R;
}

impl<K: BenchKey + ?Sized> Form for K {
    type Drawn = K;

    #[inline(always)]
    fn of(key: K::Ref<'_>) -> K::Ref<'_> {
        key
    }
    #[inline(always)]
    fn all<R>(keys: &[K::Ref<'_>], then: impl FnOnce(&[K::Ref<'_>]) -> R) -> R {
        then(keys)
    }
    #[inline(always)]
    fn entries<R>(
        entries: &[(K::Ref<'_>, u64)],
        then: impl FnOnce(&[(K::Ref<'_>, u64)]) -> R,
    ) -> R {
        then(entries)
    }
}

impl Form for Prefixed<'static> {
    type Drawn = [u8];

    #[inline(always)]
    fn of(key: <[u8] as IndexKey>::Ref<'_>) -> Self::Ref<'_> {
        key.into()
    }
    fn all<R>(keys: &[&[u8]], then: impl FnOnce(&[Prefixed<'_>]) -> R) -> R {
        let forms: Vec<Prefixed<'_>> = keys.iter().map(|key| Prefixed::from(*key)).collect();
        then(&forms)
    }
    fn entries<R>(entries: &[(&[u8], u64)], then: impl FnOnce(&[(Prefixed<'_>, u64)]) -> R) -> R {
        let forms: Vec<(Prefixed<'_>, u64)> =
            entries.iter().map(|(key, value)| (Prefixed::from(*key), *value)).collect();
        then(&forms)
    }
}
