//! An index under inspection: any of ours whose reads are recorded.

use crate::contender::forms::Form;
use crate::drive::keys::BenchKey;
use silvics::error::TryInsertError;
use silvics::{
    AllocError, Check, Compression, Guard, IndexKey, Lookup, Objects, OrderedIndex, PinIndex,
    PoolStats, Violation,
};
use silvics_layout::Census;
use silvics_layout::record::{self, Read};

/// An index whose reads are recorded, whatever its type.
pub trait Inspected<K: BenchKey + ?Sized>: Send + Sync {
    /// Inserts a key unless it is there. Returns the value of a key that is there.
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, AllocError>;
    /// Gives a key a value, whether it is there or not.
    fn set(&self, key: K::Ref<'_>, value: u64) -> Result<(), AllocError>;
    /// Removes a key.
    fn remove(&self, key: K::Ref<'_>) -> Result<bool, AllocError>;
    /// Looks a key up. A thread that records its reads has those of the lookup: see [`record::of`].
    fn look(&self, key: K::Ref<'_>) -> Option<u64>;
    /// Looks a key up, and adds what that reads to `reads`.
    fn get(&self, key: K::Ref<'_>, reads: &mut Vec<Read>) -> Option<u64> {
        record::of(reads, || self.look(key))
    }
    /// Every object that can be reached, after what is retired has been reclaimed.
    fn census(&mut self) -> Result<Census, Violation>;
    /// See [`Objects::compression`].
    fn compression(&mut self) -> Option<Compression>;
    /// See [`OrderedIndex::bytes`].
    fn bytes(&self) -> usize;
    /// See [`OrderedIndex::len`].
    fn len(&self) -> usize;
    /// See [`OrderedIndex::pool_stats`].
    fn pool_stats(&self) -> Vec<PoolStats>;
    /// Keeps what is retired from being used again as long as it lives.
    fn hold(&self) -> Guard;
}

impl<I> Inspected<<I::Key as Form>::Drawn> for I
where
    I: OrderedIndex<Key: Form> + Objects + Check,
{
    fn insert(
        &self,
        key: <<I::Key as Form>::Drawn as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<Option<u64>, AllocError> {
        match self.pin().try_insert(I::Key::of(key), value) {
            Ok(()) => Ok(None),
            Err(TryInsertError::Occupied(present)) => Ok(Some(present)),
            Err(TryInsertError::Alloc(error)) => Err(error),
            Err(_) => Err(AllocError::Address),
        }
    }

    fn set(
        &self,
        key: <<I::Key as Form>::Drawn as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<(), AllocError> {
        self.pin().insert(I::Key::of(key), value).map(|_| ())
    }

    fn remove(
        &self,
        key: <<I::Key as Form>::Drawn as IndexKey>::Ref<'_>,
    ) -> Result<bool, AllocError> {
        Ok(self.pin().remove(I::Key::of(key))?.is_some())
    }

    fn look(&self, key: <<I::Key as Form>::Drawn as IndexKey>::Ref<'_>) -> Option<u64> {
        self.pin().get(I::Key::of(key))
    }

    fn census(&mut self) -> Result<Census, Violation> {
        self.settle();
        let mut census = Census::default();
        Objects::census(self, &mut |object| census.place(object))?;
        Ok(census)
    }

    fn compression(&mut self) -> Option<Compression> {
        Objects::compression(self)
    }

    fn bytes(&self) -> usize {
        Lookup::bytes(self)
    }

    fn len(&self) -> usize {
        Lookup::len(self)
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        Lookup::pool_stats(self)
    }

    fn hold(&self) -> Guard {
        self.domain().pin()
    }
}
