//! The `artmap` crate's `ArtMap`: an adaptive radix tree with optimistic lock coupling.
//!
//! # How it is driven
//! Through the `*_with_guard` methods, which the README recommends to amortise pinning. Each
//! session keeps one guard of `pin()` and repins it in `refresh`. `insert_with_guard` is an upsert.
//! `remove` has no such form and pins inside, which is cheap under the session's guard.
//!
//! `get_or_insert_with`, the put-if-absent, looks a key up and then descends again to insert it.
//! The upsert descends once, but replaces the entry of a present key. The two were level in a mix
//! with 10 % updates.
//!
//! # Keys
//! Integers are their big-endian bytes, as in the README. Byte strings are `Vec<u8>` and text is
//! `String`, looked up by slice. Keys may be empty, be prefixes of each other and contain any byte.
//!
//! # Scans
//! `range_with_guard`. The crate's `scan` with a callback is built on it, but pins again.

use crate::contender::held::{MapKey, MapValue};
use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session};
use artmap::{ArtMap, AsBytes, Guard};
use silvics::{AllocError, IndexKey, key};
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::borrow::Borrow;
use std::ops::Bound::{Included, Unbounded};

/// A key that `artmap` can store.
pub trait ArtmapKey: MapKey {
    /// The stored type.
    type Stored: AsBytes + Borrow<Self::Lent> + Send + Sync + 'static;
    /// The type by which a stored key is looked up.
    type Lent: AsBytes + ?Sized;

    /// Copies a key into the stored type.
    fn store(key: <Self::Bench as IndexKey>::Ref<'_>) -> Self::Stored;
    /// Calls `with` with the form in which the map looks `key` up.
    fn with<R>(key: <Self::Bench as IndexKey>::Ref<'_>, with: impl FnOnce(&Self::Lent) -> R) -> R;
    /// The benchmark's key for a stored key.
    fn read(stored: &Self::Stored) -> <Self::Bench as IndexKey>::Ref<'_>;
}

/// Declares integers, which the map stores as big-endian bytes.
macro_rules! stored_as_bytes {
    ($($key:ident: $len:literal, $encode:ident, $decode:ident;)*) => {$(
        impl ArtmapKey for $key {
            type Stored = [u8; $len];
            type Lent = [u8; $len];

            #[inline(always)]
            fn store(key: $key) -> [u8; $len] {
                key::$encode(key)
            }
            #[inline(always)]
            fn with<R>(key: $key, with: impl FnOnce(&[u8; $len]) -> R) -> R {
                with(&key::$encode(key))
            }
            #[inline(always)]
            fn read(stored: &[u8; $len]) -> <$key as IndexKey>::Ref<'_> {
                key::$decode(*stored)
            }
        }
    )*};
}

stored_as_bytes! {
    u64: 8, encode_u64, decode_u64;
    u128: 16, encode_u128, decode_u128;
}

/// Declares keys that the map stores as [`MapKey::Owned`] and looks up by slice.
macro_rules! stored_as_owned {
    ($($key:ty,)*) => {$(
        impl ArtmapKey for $key {
            type Stored = <$key as MapKey>::Owned;
            type Lent = $key;

            #[inline(always)]
            fn store(key: &[u8]) -> Self::Stored {
                Self::own(key)
            }
            #[inline(always)]
            fn with<R>(key: &[u8], with: impl FnOnce(&Self) -> R) -> R {
                with(Self::lend(&key))
            }
            #[inline(always)]
            fn read(stored: &Self::Stored) -> &[u8] {
                Self::show(stored)
            }
        }
    )*};
}

stored_as_owned! { [u8], str, }

/// `artmap::ArtMap`.
pub struct Artmap<K: ArtmapKey + ?Sized, V: MapValue = u64> {
    map: ArtMap<K::Stored, V>,
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Default for Artmap<K, V> {
    fn default() -> Self {
        Self { map: ArtMap::new() }
    }
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Peer for Artmap<K, V> {
    const NAME: &'static str = "artmap";
    const CRATE: &'static str = "artmap 0.8.0";
    const PAPER: &'static str = "";
    const TOPOLOGY: &'static str = "adaptive radix tree";
    const SYNC: &'static str = "optimistic lock coupling";
    const SCANS: bool = true;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Contender for Artmap<K, V> {
    type Key = K::Bench;
    type Session<'a> = ArtmapSession<'a, K, V>;

    fn session(&self) -> Self::Session<'_> {
        ArtmapSession { map: &self.map, guard: self.map.pin() }
    }
}

impl<K: ArtmapKey + ?Sized> Recorded for Artmap<K> {
    fn write(
        session: &mut Self::Session<'_>,
        key: <K::Bench as IndexKey>::Ref<'_>,
        write: Write,
    ) -> Option<Op> {
        let (map, guard) = (session.map, &session.guard);
        Some(match write {
            Write::TryInsert { value } => {
                // Values differ, so the value of the entry tells whose it is.
                let present = *map.get_or_insert_with(K::store(key), || value).value();
                let outcome = if present == value { Ok(()) } else { Err(present) };
                Op::TryInsert { value, outcome }
            }
            Write::Insert { value } => {
                let old = map.insert_with_guard(K::store(key), value, guard);
                Op::Insert { value, old: old.map(|entry| *entry.value()) }
            }
            Write::Remove => {
                let remove = |key: &K::Lent| map.remove::<K::Lent>(key).map(|old| *old.value());
                Op::Remove { old: K::with(key, remove) }
            }
            Write::CompareExchange { .. } => return None,
        })
    }
}

/// A thread's session: a pinned guard.
pub struct ArtmapSession<'a, K: ArtmapKey + ?Sized, V: MapValue> {
    map: &'a ArtMap<K::Stored, V>,
    guard: Guard<'a>,
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Session for ArtmapSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        K::with(key, |key| {
            self.map.get_with_guard::<K::Lent>(key, &self.guard).map(|entry| entry.value().word())
        })
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let old = self.map.insert_with_guard(K::store(key), V::hold(value), &self.guard);
        Ok(old.is_none())
    }

    #[inline]
    fn upsert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        self.insert(key, value)
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(K::with(key, |key| self.map.remove::<K::Lent>(key).is_some()))
    }

    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        K::with(from, |from| {
            let range = (Included(from), Unbounded);
            let entries = self.map.range_with_guard::<_, K::Lent>(range, &self.guard);
            let mut seen = 0;
            for entry in entries.take(limit) {
                visit(K::read(entry.key()), entry.value().word());
                seen += 1;
            }
            seen
        })
    }

    #[inline]
    fn refresh(&mut self) {
        self.guard.repin();
    }
}
