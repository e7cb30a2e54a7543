//! Scans of a map that pin nothing, as a child of `fork` needs them.

use super::{Key, Map, MapIndex, Range, Value};
use crate::blocks::{BlockKey, BlockTree};
use crate::domain;
use crate::index::Lookup;
use silvics_pool::Placement;
use std::fmt;

/// A face of a [`Map`] for a time in which no thread writes to it, made by [`Map::unprotected`].
///
/// Its scans pin nothing, take no lock, allocate nothing, and run no destructor.
pub struct Unprotected<'m, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: &'m Map<K, V, I>,
    guard: domain::Unprotected,
}

impl<K: Key, V: Value, F, P> Map<K, V, BlockTree<F, P>>
where
    K: Key<Form = F>,
    F: BlockKey + ?Sized,
    P: Placement,
    BlockTree<F, P>: MapIndex<Key = F>,
{
    /// Returns a face of the map whose scans pin nothing and take no lock.
    ///
    /// A child of `fork` has one thread. Other threads of the parent may have held locks of the
    /// collector or of a pool at that moment, and nobody releases these locks in the child. Every
    /// method of a map or a view may wait for such a lock, since each one pins. The scans of this
    /// face do not wait.
    ///
    /// # Safety
    /// Until the last use of the result, and of each reference that was obtained from it:
    /// * no thread writes to the map: none inserts, removes, replaces or changes an entry, and none
    ///   calls [`Map::shrink`];
    /// * in a child of `fork`, no thread was in such a call when the process was forked.
    ///
    /// Other threads may read the map, and entries that were removed before may be freed meanwhile.
    ///
    /// ```
    /// use silvics::{BlockTree, Map};
    ///
    /// let map: Map<Vec<u8>, String, BlockTree<[u8]>> = Map::new();
    /// map.insert("b", "two".to_string());
    /// map.insert("a", "one".to_string());
    /// // SAFETY: no other thread has the map, and this one does not write to it below.
    /// let quiet = unsafe { map.unprotected() };
    /// let values: Vec<&String> = quiet.iter().filter_map(|(_, value)| value.into_ref()).collect();
    /// assert_eq!(values, ["one", "two"]);
    /// ```
    pub unsafe fn unprotected(&self) -> Unprotected<'_, K, V, BlockTree<F, P>> {
        // SAFETY: nobody writes (the caller's promise), so no object of the index is unlinked and
        // no value is removed. Scans of blocks write nothing, so they retire nothing.
        Unprotected { map: self, guard: unsafe { domain::Unprotected::new(self.index.domain()) } }
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Unprotected<'_, K, V, I> {
    /// All entries in ascending order of their keys.
    pub fn iter(&self) -> Range<'_, K, V, I> {
        self.map.do_range(.., self.guard.guard())
    }
}

impl<'a, K: Key, V: Value, I: MapIndex<Key = K::Form>> IntoIterator
    for &'a Unprotected<'_, K, V, I>
{
    type Item = super::Entry<'a, K, V>;
    type IntoIter = Range<'a, K, V, I>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Unprotected<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprotected").finish_non_exhaustive()
    }
}
