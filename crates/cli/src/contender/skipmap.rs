//! `silvics_skipmap::SkipMap` as a contender, as a program that moves from `crossbeam-skiplist`
//! calls it: each call for itself, with an entry as its result.

use super::held::{MapKey, MapValue};
use super::peer::Peer;
use super::recorded::Recorded;
use super::{Contender, Session, Upserts};
use silvics::{AllocError, IndexKey};
use silvics_skipmap::SkipMap;
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::cell::Cell;
use std::ops::Bound::{Included, Unbounded};

/// A [`SkipMap`] with keys that `K` stands for and values of type `V`.
pub struct OurSkipMap<K: MapKey + ?Sized, V: MapValue = u64> {
    map: SkipMap<K::Owned, V>,
}

impl<K: MapKey + ?Sized, V: MapValue> Default for OurSkipMap<K, V> {
    fn default() -> Self {
        Self { map: SkipMap::new() }
    }
}

impl<K: MapKey + ?Sized, V: MapValue> Peer for OurSkipMap<K, V> {
    const NAME: &'static str = "skipmap";
    const CRATE: &'static str = concat!("silvics-skipmap ", env!("CARGO_PKG_VERSION"));
    const PAPER: &'static str = "that of lfca-tree";
    const TOPOLOGY: &'static str = "lfca-tree of entries with counts";
    const SYNC: &'static str = "as in lfca-tree";
    const SCANS: bool = true;
    /// The entry that an upsert returns does not tell whether it has replaced another one.
    const UPSERTS: Upserts = Upserts::OfPresentKeys;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: MapKey + ?Sized, V: MapValue> Contender for OurSkipMap<K, V> {
    type Key = K::Bench;
    type Session<'a> = SkipSession<'a, K, V>;

    fn session(&self) -> Self::Session<'_> {
        SkipSession { map: &self.map }
    }

    /// As [`OurOrdMap::bytes`](super::ordmap::OurOrdMap).
    fn bytes(&self) -> Option<usize> {
        let is_in_map = V::IS_IN_MAP && !std::mem::needs_drop::<K::Owned>();
        is_in_map.then(|| self.map.bytes())
    }

    fn pooled_bytes(&self) -> usize {
        self.map.bytes()
    }
}

impl<K: MapKey + ?Sized> Recorded for OurSkipMap<K> {
    fn write(
        session: &mut Self::Session<'_>,
        key: <K::Bench as IndexKey>::Ref<'_>,
        write: Write,
    ) -> Option<Op> {
        match write {
            Write::TryInsert { value } => {
                let outcome = session.put_if_absent(key, value, u64::clone);
                Some(Op::TryInsert { value, outcome })
            }
            Write::Remove => {
                let old = session.map.remove(K::lend(&key)).map(|entry| *entry.value());
                Some(Op::Remove { old })
            }
            Write::Insert { .. } | Write::CompareExchange { .. } => None,
        }
    }
}

/// A thread's session.
pub struct SkipSession<'a, K: MapKey + ?Sized, V: MapValue> {
    map: &'a SkipMap<K::Owned, V>,
}

impl<K: MapKey + ?Sized, V: MapValue> SkipSession<'_, K, V> {
    /// Inserts the entry if the key is absent. Otherwise fails with the result of `read` on the
    /// present value.
    #[inline(always)]
    fn put_if_absent<R>(
        &self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: V,
        read: impl FnOnce(&V) -> R,
    ) -> Result<(), R> {
        let is_present = Cell::new(false);
        let keep = |_: &V| {
            is_present.set(true);
            false
        };
        let entry = self.map.compare_insert(K::own(key), value, keep);
        if is_present.get() { Err(read(entry.value())) } else { Ok(()) }
    }
}

impl<K: MapKey + ?Sized, V: MapValue> Session for SkipSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.map.get(K::lend(&key)).map(|entry| entry.value().word())
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        Ok(self.put_if_absent(key, V::hold(value), |_| ()).is_ok())
    }

    #[inline]
    fn upsert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        drop(self.map.insert(K::own(key), V::hold(value)));
        Ok(false) // see `UPSERTS`
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.map.remove(K::lend(&key)).is_some())
    }

    #[inline]
    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let mut seen = 0;
        for entry in self.map.range::<K, _>((Included(K::lend(&from)), Unbounded)).take(limit) {
            visit(K::show(entry.key()), entry.value().word());
            seen += 1;
        }
        seen
    }
}
