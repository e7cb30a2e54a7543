//! The contenders that the benchmark drives: an index of ours or a peer, each in its best
//! documented way.
//!
//! The measuring loop is generic over [`Contender`], so that every call is a direct one; only the
//! choice of contender goes through a table.
//!
//! | module | holds |
//! |---|---|
//! | `forms` | the forms in which indexes take and return keys |
//! | `ours` | the indexes of this library, as contenders |
//! | `map`, `multimap`, `ordmap`, `versioned` | the maps of `silvics` as contenders |
//! | `skipmap` | `silvics_skipmap::SkipMap` as a contender |
//! | `held` | the types by which maps hold keys and values |
//! | `peers` | the ordered maps of other crates |
//! | `peer`, `recorded` | the traits of peers, of `versioned`, `multimap` and `skipmap` |

pub mod forms;
pub mod held;
pub mod map;
pub mod multimap;
pub mod ordmap;
pub mod ours;
pub mod peer;
#[cfg(feature = "peers")]
pub mod peers;
pub mod recorded;
pub mod skipmap;
pub mod versioned;

use crate::drive::keys::BenchKey;
use forms::Lent;
use silvics::{Adaptation, AllocError, Guard, IndexKey, PoolStats};

/// The upserts of a contender: calls that insert a key or replace its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upserts {
    /// They say whether the key was absent.
    Any,
    /// They do not, so a mix cannot have removals beside them.
    OfPresentKeys,
    /// There are none.
    None,
}

/// A built index under measurement.
pub trait Contender: Send + Sync + Sized + 'static {
    /// `u64`, `u128` or `[u8]`.
    type Key: BenchKey + ?Sized;
    /// A thread's session: it holds guards and handles that the library lets its user keep over
    /// many calls.
    type Session<'a>: Session<Key = Self::Key>
    where
        Self: 'a;

    /// A session for the calling thread.
    fn session(&self) -> Self::Session<'_>;

    /// A guard that prevents the reuse of retired memory, if the contender has such guards.
    fn hold(&self) -> Option<Guard> {
        None
    }

    /// Called when the contender has been loaded and no session is open, with the most threads of
    /// a run.
    fn loaded(&mut self, _threads: usize) -> Result<(), AllocError> {
        Ok(())
    }

    /// The bytes that the contender holds from the system. `None` if it cannot report them exactly.
    fn bytes(&self) -> Option<usize> {
        None
    }

    /// The bytes that its pools of this library hold from the system, beside the blocks that it has
    /// from the global allocator. It is called if `bytes` is `None`.
    fn pooled_bytes(&self) -> usize {
        0
    }

    /// The statistics of the contender's pools, if it has pools of this library.
    fn pool_stats(&self) -> Vec<PoolStats> {
        Vec::new()
    }

    /// The shape of the contender. `None` unless it adapts its shape to contention.
    fn adaptation(&self) -> Option<Adaptation> {
        None
    }
}

/// Visits entries, and returns their number.
#[inline]
pub fn visited<K, V>(entries: impl Iterator<Item = (K, V)>, mut visit: impl FnMut(K, V)) -> usize {
    let mut seen = 0;
    for (key, value) in entries {
        visit(key, value);
        seen += 1;
    }
    seen
}

/// A thread's session with a [`Contender`].
pub trait Session {
    /// The contender's key type.
    type Key: BenchKey + ?Sized;
    /// The form in which scans return keys.
    type Lent: Lent<Self::Key> + ?Sized;
    /// Whether [`Session::get_many`] is one call of the library.
    const GETS_MANY: bool = false;
    /// Whether [`Session::insert_many`] and [`Session::upsert_many`] are one call of the library.
    const INSERTS_MANY: bool = false;

    /// The value of `key`.
    fn get(&mut self, key: <Self::Key as IndexKey>::Ref<'_>) -> Option<u64>;

    /// Looks up every key of `keys` and writes its value to the same place in `values`. The default
    /// makes one lookup after the other.
    #[inline]
    fn get_many(&mut self, keys: &[<Self::Key as IndexKey>::Ref<'_>], values: &mut [Option<u64>]) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(<Self::Key as IndexKey>::shorten(*key));
        }
    }

    /// Inserts `key` and returns whether it was absent. (It is put-if-absent if the library has
    /// that, else an upsert. The benchmark derives a key's value from the key, so both leave the
    /// same map.)
    fn insert(
        &mut self,
        key: <Self::Key as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError>;

    /// Inserts every key of `entries`, in their order, and writes to the same place in `absent`
    /// whether the key was absent. The default makes one insert after the other.
    #[inline]
    fn insert_many(
        &mut self,
        entries: &[(<Self::Key as IndexKey>::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        for ((key, value), absent) in entries.iter().zip(absent) {
            *absent = self.insert(<Self::Key as IndexKey>::shorten(*key), *value)?;
        }
        Ok(())
    }

    /// Inserts `key`, or replaces its value, and returns whether it was absent. It is called only
    /// if the catalogue says that the contender has upserts.
    fn upsert(
        &mut self,
        key: <Self::Key as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError>;

    /// Upserts every key of `entries`, in their order, as [`Session::insert_many`] inserts. The
    /// default makes one upsert after the other.
    #[inline]
    fn upsert_many(
        &mut self,
        entries: &[(<Self::Key as IndexKey>::Ref<'_>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        for ((key, value), absent) in entries.iter().zip(absent) {
            *absent = self.upsert(<Self::Key as IndexKey>::shorten(*key), *value)?;
        }
        Ok(())
    }

    /// Removes `key` and returns whether it was present.
    fn remove(&mut self, key: <Self::Key as IndexKey>::Ref<'_>) -> Result<bool, AllocError>;

    /// Visits up to `limit` entries in ascending order, from the first key at or after `from`, and
    /// returns their number. It is called only if the catalogue says that the contender scans.
    fn scan(
        &mut self,
        from: <Self::Key as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<Self::Lent as IndexKey>::Ref<'_>, u64),
    ) -> usize;

    /// Scans, and adds a word of each entry that it visits to `sum`, so that each entry is read.
    #[inline(always)]
    fn read(
        &mut self,
        from: <Self::Key as IndexKey>::Ref<'_>,
        limit: usize,
        sum: &mut u64,
    ) -> usize {
        self.scan(from, limit, &mut |key, value| {
            *sum = sum.wrapping_add(Self::Lent::glance(key) ^ value);
        })
    }

    /// Called every 64 operations: unpins and pins again, announces quiescence, or does nothing.
    fn refresh(&mut self) {}
}
