//! What the benchmark drives: an index of ours or a peer, each in its best documented way.
//!
//! The measuring loop is generic over [`Contender`], so that every call is a direct one; only the
//! choice of contender goes through a table.
//!
//! | module | holds |
//! |---|---|
//! | `ours` | the indexes of this library, as contenders |
//! | `map` | `silvics::Map` as a contender |
//! | `held` | the types by which maps hold keys and values |
//! | `peers` | the ordered maps of other crates |

pub mod held;
pub mod map;
pub mod ours;
#[cfg(feature = "peers")]
pub mod peers;

use silvics::{AllocError, Guard, IndexKey, PoolStats};

/// A built index under measurement.
pub trait Contender: Send + Sync + Sized + 'static {
    /// `u64` or `[u8]`.
    type Key: IndexKey + ?Sized;
    /// A thread's way to call it: holds what the library wants held over many calls.
    type Session<'a>: Session<Key = Self::Key>
    where
        Self: 'a;

    /// A session for the calling thread.
    fn session(&self) -> Self::Session<'_>;

    /// A guard under which nothing that it retires is used again, if it can give one.
    fn hold(&self) -> Option<Guard> {
        None
    }

    /// It has been loaded, and no session is open.
    fn loaded(&mut self) {}

    /// The bytes it holds from the system, if it can tell exactly.
    fn bytes(&self) -> Option<usize> {
        None
    }

    /// What its pools hold and where, if it has pools of ours.
    fn pool_stats(&self) -> Vec<PoolStats> {
        Vec::new()
    }
}

/// A thread's session with a [`Contender`].
pub trait Session {
    /// The contender's key type.
    type Key: IndexKey + ?Sized;

    /// The value of `key`.
    fn get(&mut self, key: <Self::Key as IndexKey>::Ref<'_>) -> Option<u64>;

    /// Looks up every key of `keys`, writing each one's value to the same place in `values`. One
    /// by one, unless the library offers more.
    #[inline]
    fn get_many(&mut self, keys: &[<Self::Key as IndexKey>::Ref<'_>], values: &mut [Option<u64>]) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(<Self::Key as IndexKey>::shorten(*key));
        }
    }

    /// Makes `key` present; whether it was absent. (Put-if-absent where the library has it, else
    /// upsert: the benchmark derives a key's value from the key, so both leave the same map.)
    fn insert(
        &mut self,
        key: <Self::Key as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError>;

    /// Makes every key of `entries` present, in their order, and says of each to the same place in
    /// `absent` whether it was absent. One by one, unless the library offers more.
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

    /// Makes `key` absent; whether it was present.
    fn remove(&mut self, key: <Self::Key as IndexKey>::Ref<'_>) -> Result<bool, AllocError>;

    /// Visits up to `limit` entries from the first key at or after `from`, ascending; returns how
    /// many. Only called if the catalogue says that the contender scans.
    fn scan(
        &mut self,
        from: <Self::Key as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<Self::Key as IndexKey>::Ref<'_>, u64),
    ) -> usize;

    /// Called every 64 operations: unpin and pin again, announce quiescence, or nothing.
    fn refresh(&mut self) {}
}
