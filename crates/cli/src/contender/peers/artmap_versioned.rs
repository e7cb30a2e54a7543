//! The `artmap` crate's `VersionedArtMap`: its radix tree with a chain of versions for each key.
//!
//! # How it is driven
//! As [`Artmap`](super::Artmap), with a guard for each session. The caller gives the numbers of
//! versions; here one counter draws them. An insertion is a lookup and an `insert`, since an
//! `insert` does not say whether the key was present. So it is no put-if-absent, and the map is
//! measured without writes, beside its load.

use super::artmap::ArtmapKey;
use crate::contender::held::MapValue;
use crate::contender::peer::Peer;
use crate::contender::{Contender, Session, Upserts};
use artmap::{Guard, VersionedArtMap};
use silvics::{AllocError, IndexKey};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::ops::Bound::{Included, Unbounded};

/// `artmap::VersionedArtMap`, and the number of the last version.
pub struct ArtmapVersioned<K: ArtmapKey + ?Sized, V: MapValue = u64> {
    map: VersionedArtMap<K::Stored, V>,
    now: AtomicU64,
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Default for ArtmapVersioned<K, V> {
    fn default() -> Self {
        Self { map: VersionedArtMap::new(), now: AtomicU64::new(0) }
    }
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Peer for ArtmapVersioned<K, V> {
    const NAME: &'static str = "artmap-versioned";
    const CRATE: &'static str = "artmap 0.8.0";
    const PAPER: &'static str = "";
    const TOPOLOGY: &'static str = "adaptive radix tree, with a list of versions for each key";
    const SYNC: &'static str = "optimistic lock coupling, a latch for each list";
    const SCANS: bool = true;
    const UPSERTS: Upserts = Upserts::OfPresentKeys;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Contender for ArtmapVersioned<K, V> {
    type Key = K::Bench;
    type Session<'a> = ArtmapVersionedSession<'a, K, V>;

    fn session(&self) -> Self::Session<'_> {
        ArtmapVersionedSession { of: self, guard: self.map.pin() }
    }
}

/// A thread's session: a pinned guard.
pub struct ArtmapVersionedSession<'a, K: ArtmapKey + ?Sized, V: MapValue> {
    of: &'a ArtmapVersioned<K, V>,
    guard: Guard<'a>,
}

impl<K: ArtmapKey + ?Sized, V: MapValue> ArtmapVersionedSession<'_, K, V> {
    fn draw(&self) -> u64 {
        self.of.now.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl<K: ArtmapKey + ?Sized, V: MapValue> Session for ArtmapVersionedSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        let get = |key: &K::Lent| {
            let found =
                self.of.map.get_version_le_with_guard::<K::Lent>(key, u64::MAX, &self.guard);
            found.map(|(_, value)| value.word())
        };
        K::with(key, get)
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let shorter = <K::Bench as IndexKey>::shorten(key);
        if K::with(shorter, |key| self.of.map.contains_key::<K::Lent>(key)) {
            return Ok(false);
        }
        self.upsert(key, value)?;
        Ok(true)
    }

    #[inline]
    fn upsert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let number = self.draw();
        self.of.map.insert_with_guard(K::store(key), number, V::hold(value), &self.guard);
        Ok(false) // see `UPSERTS`
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.of.map.delete(K::store(key), self.draw()))
    }

    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        K::with(from, |from| {
            let range = (Included(from), Unbounded);
            let entries = self.of.map.range_with_guard::<_, K::Lent>(range, &self.guard);
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
