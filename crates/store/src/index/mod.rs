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

    /// Looks up every key of `keys` and writes its word to the same place in `words`.
    fn get_many(&self, keys: &[FormOf<'_, Self>], words: &mut [Option<u64>], guard: &Guard);

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
    /// returns false. An index that cannot scan visits nothing.
    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    );

    /// Whether it can scan.
    fn scans(&self) -> bool;

    /// The number of keys.
    fn count(&self) -> usize;

    /// The bytes that the index holds from the system, exactly, or `None` if it cannot tell.
    fn bytes(&self) -> Option<usize>;

    /// The memory of its pools.
    fn pool_stats(&self) -> Vec<PoolStats>;
}

/// An index whose type promises scans.
pub trait Scannable: Search {}
