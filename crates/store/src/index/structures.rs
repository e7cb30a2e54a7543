//! Structures of silvics as indexes of tables, by their types.

use super::{FormOf, Scannable, Search};
use crate::key::KeyForm;
use silvics::error::TryInsertError;
use silvics::frame::{Algorithm, Ordered};
use silvics::{
    AllocError, Batches, Create, Guard, IndexKey, Lookup, Options, OrderedIndex, OrderedScan,
    PoolStats,
};
use std::ops::Bound;

/// A structure of silvics of which the table uses no scans, such as
/// `Points<BronsonTree<Pooled>>`.
pub struct Points<I>(I);

/// A structure of silvics with its scans, such as `Scans<WordTree<u64>>`.
pub struct Scans<I>(I);

/// The methods that both types share.
macro_rules! points {
    () => {
        type Form = A::Key;

        fn make(options: &Options) -> Result<Self, AllocError> {
            Ok(Self(Create::with_options(options)?))
        }
        fn structure(&self) -> String {
            A::NAME.into()
        }
        #[inline(always)]
        fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
            Lookup::get(&self.0, key, guard)
        }
        #[inline]
        fn get_many(&self, keys: &[FormOf<'_, Self>], words: &mut [Option<u64>], guard: &Guard) {
            Batches::get_many(&self.0, keys, words, guard);
        }
        unsafe fn try_insert(
            &self,
            key: FormOf<'_, Self>,
            word: u64,
            guard: &Guard,
        ) -> Result<Option<u64>, AllocError> {
            match OrderedIndex::try_insert(&self.0, key, word, guard) {
                Ok(()) => Ok(None),
                Err(TryInsertError::Occupied(present)) => Ok(Some(present)),
                Err(TryInsertError::Alloc(error)) => Err(error),
                Err(_) => Err(AllocError::Address),
            }
        }
        unsafe fn replace(
            &self,
            key: FormOf<'_, Self>,
            word: u64,
            guard: &Guard,
        ) -> Result<(), AllocError> {
            OrderedIndex::insert(&self.0, key, word, guard).map(|_| ())
        }
        unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
            OrderedIndex::remove(&self.0, key, guard).map(|_| ())
        }
        fn count(&self) -> usize {
            Lookup::len(&self.0)
        }
        fn bytes(&self) -> Option<usize> {
            Some(Lookup::bytes(&self.0))
        }
        fn pool_stats(&self) -> Vec<PoolStats> {
            Lookup::pool_stats(&self.0)
        }
    };
}

// SAFETY: S1 to S3 are A2 to A4 of `Algorithm`. S5: structures call no user code but heaps and
// placements, whose contracts forbid it. S6: lookups call none, and an insertion or removal
// whose heap unwinds is done, or leaves the structure as it was.
unsafe impl<A: Algorithm<Key: KeyForm>> Search for Points<silvics::Index<A>> {
    points!();
}

// SAFETY: as for `Points`; S4 is the guarantee of `OrderedScan`, which `Ordered` keeps.
unsafe impl<A: Ordered<Key: KeyForm>> Search for Scans<silvics::Index<A>> {
    points!();

    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        let bounds = (bounds.0.map(A::Key::shorten), bounds.1.map(A::Key::shorten));
        if descending {
            let _ = self.0.range_rev(bounds, guard).all(|(key, word)| visit(key, word));
        } else {
            let _ = self.0.range(bounds, guard).all(|(key, word)| visit(key, word));
        }
    }
    fn scans(&self) -> bool {
        true
    }
}

impl<A: Ordered<Key: KeyForm>> Scannable for Scans<silvics::Index<A>> {}
