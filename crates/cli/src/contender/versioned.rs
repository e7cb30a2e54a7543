//! `silvics::VersionedMap` as a contender, as its users call it. A scan reads a snapshot of the
//! moment when it begins.

use super::held::{MapValue, OurKey};
use super::peer::Peer;
use super::{Contender, Session, Upserts};
use crate::interrupt;
use silvics::map::DefaultIndex;
use silvics::versions::{Drawn, Given, PutError, Retain, VersionedMap, VersionedView};
use silvics::{AllocError, Domain, Guard, IndexKey, Options, PoolStats};
use silvics_testkit::clock::Clock;
use silvics_testkit::verify;
use silvics_testkit::versions::{Makers, NumberedKey, verify_versions, versioned};
use std::ops::Bound::{Included, Unbounded};

/// A map with keys that `K` stands for and values of type `V`.
pub struct OurVersioned<K: OurKey + ?Sized, V: MapValue = u64> {
    map: VersionedMap<K::Ours, V>,
    domain: Domain,
}

impl<K: OurKey + ?Sized, V: MapValue> OurVersioned<K, V> {
    /// An empty map.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let domain = options.domain.clone().unwrap_or_default();
        let options = Options { domain: Some(domain.clone()), ..options.clone() };
        Ok(Self { map: VersionedMap::with_options(&options, Retain::Snapshots)?, domain })
    }
}

impl<K: OurKey + ?Sized, V: MapValue> Default for OurVersioned<K, V> {
    fn default() -> Self {
        Self::with_options(&Options::default()).expect("an empty map needs little memory")
    }
}

impl<K: OurKey + ?Sized, V: MapValue> Peer for OurVersioned<K, V> {
    const NAME: &'static str = "versioned";
    const CRATE: &'static str = concat!("silvics ", env!("CARGO_PKG_VERSION"));
    const PAPER: &'static str = "Wei et al., PPoPP 2021, over words and blocks";
    const TOPOLOGY: &'static str = "as map, with a list of versions for each key";
    const SYNC: &'static str = "as in words and blocks; versions by exchange";
    const SCANS: bool = true;
    /// A write returns its number, and not whether the key was present.
    const UPSERTS: Upserts = Upserts::OfPresentKeys;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: OurKey + ?Sized, V: MapValue> Contender for OurVersioned<K, V> {
    type Key = K::Bench;
    type Session<'a> = VersionedSession<'a, K, V>;

    fn session(&self) -> VersionedSession<'_, K, V> {
        VersionedSession { view: self.map.pin() }
    }

    fn hold(&self) -> Option<Guard> {
        Some(self.domain.pin())
    }

    /// As [`OurMap::bytes`](super::map::OurMap).
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

/// Records histories of maps with keys of type `K`, and checks them.
pub fn verify<K: NumberedKey>(plan: &verify::Plan, clock: &Clock) -> verify::Report {
    let makers = Makers {
        drawn: &versioned::<K, Drawn, DefaultIndex<K>>,
        given: &versioned::<K, Given, DefaultIndex<K>>,
    };
    verify_versions(plan, clock, makers, interrupt::pending_beat)
}

/// A thread's session: the map pinned.
pub struct VersionedSession<'a, K: OurKey + ?Sized, V: MapValue> {
    view: VersionedView<'a, K::Ours, V, Drawn>,
}

fn alloc<V, T>(result: Result<T, PutError<V>>) -> Result<Option<T>, AllocError> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(PutError::Alloc { error, .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

impl<K: OurKey + ?Sized, V: MapValue> Session for VersionedSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.view.get_latest(K::lend(&key)).map(|found| found.value.word())
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let put = self.view.put_if_latest(K::lend(&key), None, V::hold(value));
        Ok(alloc(put)?.is_some())
    }

    #[inline]
    fn upsert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        alloc(self.view.put(K::lend(&key), V::hold(value)))?;
        Ok(false) // see `UPSERTS`
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(alloc(self.view.delete(K::lend(&key)))?.flatten().is_some())
    }

    #[inline]
    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let snapshot = self.view.map().snapshot();
        let mut range = snapshot.range((Included(K::lend(&from)), Unbounded));
        let mut seen = 0;
        while seen < limit
            && let Some((key, value)) = range.next_ref()
        {
            visit(K::lent(key), value.word());
            seen += 1;
        }
        seen
    }

    #[inline]
    fn refresh(&mut self) {
        self.view.repin();
    }
}
