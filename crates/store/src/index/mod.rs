//! Indexes of tables: what the store asks of a structure, and the structures that it can have.
//!
//! | type | holds |
//! |---|---|
//! | [`Points<I>`] | any structure of silvics, by its type; no scans |
//! | [`Scans<I>`] | a structure of silvics that scans, by its type |
//! | [`Named<F>`] | a structure of silvics, by its name at run time |
//! | [`Lists<I>`] | the study's unique index: a key leads to a list, under a lock of a table |
//! | [`MultiLists<I>`] | the study's index with several rows for a key |

mod erased;
mod lists;
mod multi_lists;
mod named;
mod structures;

pub(crate) use erased::{Bounds, Maker, Typed};
pub(crate) use erased::{ErasedIndex, IndexCore};
#[doc(hidden)]
pub use lists::CELL_BYTES;
pub use lists::Lists;
pub use multi_lists::MultiLists;
pub use named::{InTable, Named};
pub(crate) use named::{default_structure, names};
pub use structures::{Points, Scans};

use crate::key::KeyForm;
use silvics::{AllocError, Guard, IndexKey, Options, PoolStats};
use std::ops::Bound;

/// A borrowed key of an index.
pub type FormOf<'a, I> = <<I as Search>::Form as IndexKey>::Ref<'a>;

/// The operations that the store needs of an index: a map from keys to words.
///
/// # Safety
/// The store takes the words for addresses of rows. So an implementation keeps these clauses:
///
/// * S1: Each word that it returns or visits was passed to `try_insert` or `insert` with that key.
/// * S2: It was the word of the key at some moment since the guard was pinned, which is of the
///   domain in the options that `make` got.
/// * S3: `try_insert` and `remove` take effect atomically. After `remove` has returned, no call
///   that begins returns the word.
/// * S4: A scan visits each key that is present during the whole scan.
/// * S5: No method calls the store.
/// * S6: `get` and `get_many` do not unwind. A change that unwinds is done, or not done.
pub unsafe trait Search: Send + Sync + Sized + 'static {
    /// The form of the keys: `u64` or `[u8]`.
    type Form: KeyForm + ?Sized;

    /// Whether it is an index of lists, as [`MultiLists`]: it scans within a list alone.
    /// A wrapper has that of its inner index.
    #[doc(hidden)]
    const LISTS: bool = false;

    /// Makes an empty index.
    fn make(options: &Options) -> Result<Self, AllocError>;

    /// The name of the structure.
    fn structure(&self) -> String;

    /// Returns the word of `key`.
    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64>;

    /// Looks up every key of `keys` and writes its word to the same place in `words`. Unless an
    /// index does better, it looks them up one after the other.
    fn get_many(&self, keys: &[FormOf<'_, Self>], words: &mut [Option<u64>], guard: &Guard) {
        for (key, word) in keys.iter().zip(words) {
            *word = self.get(*key, guard);
        }
    }

    /// Inserts `key` unless it is present. Returns the word of a present key.
    ///
    /// # Safety
    /// The store calls it, or another index that the store calls: the store trusts the words in its
    /// indexes.
    unsafe fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError>;

    /// Gives a present key another word.
    ///
    /// # Safety
    /// As for [`Search::try_insert`].
    unsafe fn replace(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<(), AllocError>;

    /// Removes a key.
    ///
    /// # Safety
    /// As for [`Search::try_insert`].
    unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError>;

    /// Visits the entries within the bounds, in ascending or descending order, until `visit`
    /// returns false. An index that cannot scan keeps this method, which visits nothing.
    fn walk(
        &self,
        _bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        _descending: bool,
        _guard: &Guard,
        _visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
    }

    /// Whether it can scan. An index that cannot keeps this method.
    fn scans(&self) -> bool {
        false
    }

    /// The number of keys.
    fn count(&self) -> usize;

    /// The bytes that the index holds from the system, exactly, or `None` if it cannot tell.
    fn bytes(&self) -> Option<usize>;

    /// The memory of its pools.
    fn pool_stats(&self) -> Vec<PoolStats>;
}

/// An index whose type promises scans.
pub trait Scannable: Search {}

/// Defines methods of [`Search`] for an index around another one: each is that of the index in the
/// field.
///
/// ```text
/// pass_on!(0: structure replace remove scans count bytes pool_stats);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! pass_on {
    ($field:tt: $($method:ident)+) => { $($crate::pass_on!(@ $field $method);)+ };
    (@ $field:tt structure) => {
        fn structure(&self) -> String {
            self.$field.structure()
        }
    };
    (@ $field:tt get) => {
        #[inline]
        fn get(
            &self,
            key: $crate::index::FormOf<'_, Self>,
            guard: &::silvics::Guard,
        ) -> Option<u64> {
            self.$field.get(key, guard)
        }
    };
    (@ $field:tt get_many) => {
        fn get_many(
            &self,
            keys: &[$crate::index::FormOf<'_, Self>],
            words: &mut [Option<u64>],
            guard: &::silvics::Guard,
        ) {
            self.$field.get_many(keys, words, guard);
        }
    };
    (@ $field:tt try_insert) => {
        unsafe fn try_insert(
            &self,
            key: $crate::index::FormOf<'_, Self>,
            word: u64,
            guard: &::silvics::Guard,
        ) -> Result<Option<u64>, ::silvics::AllocError> {
            // SAFETY: the caller's promise.
            unsafe { self.$field.try_insert(key, word, guard) }
        }
    };
    (@ $field:tt replace) => {
        unsafe fn replace(
            &self,
            key: $crate::index::FormOf<'_, Self>,
            word: u64,
            guard: &::silvics::Guard,
        ) -> Result<(), ::silvics::AllocError> {
            // SAFETY: the caller's promise.
            unsafe { self.$field.replace(key, word, guard) }
        }
    };
    (@ $field:tt remove) => {
        unsafe fn remove(
            &self,
            key: $crate::index::FormOf<'_, Self>,
            guard: &::silvics::Guard,
        ) -> Result<(), ::silvics::AllocError> {
            // SAFETY: the caller's promise.
            unsafe { self.$field.remove(key, guard) }
        }
    };
    (@ $field:tt scans) => {
        fn scans(&self) -> bool {
            self.$field.scans()
        }
    };
    (@ $field:tt count) => {
        fn count(&self) -> usize {
            self.$field.count()
        }
    };
    (@ $field:tt bytes) => {
        fn bytes(&self) -> Option<usize> {
            self.$field.bytes()
        }
    };
    (@ $field:tt pool_stats) => {
        fn pool_stats(&self) -> Vec<::silvics::PoolStats> {
            self.$field.pool_stats()
        }
    };
}
