//! Ranges of an owned view, which can be sent to another thread and copy no entry.
//!
//! # Invariants
//! * P3: returned entries borrow the [`OwnedView`], and not the pin under which they were read.
//!   That pin is younger than the view's, and both are of the map's domain, so the view's pin
//!   protects every entry that was read under the younger pin.

use super::batched::{Batched, Buffer, Gap};
use super::key::{FormRef, Key};
use super::lend::Lends;
use super::scan::lengthen;
use super::value::{fetch, inline};
use super::{Entry, KeyRange, Map, MapIndex, OwnedView, Value, ValueRef};
use crate::domain::{Guard, OwnedGuard};
use std::fmt;
use std::iter::FusedIterator;
use std::ptr::from_ref;

/// The entries of a batch, as the index returned them.
struct Entries<'v, K: Key>(Vec<(FormRef<'v, K>, u64)>);

impl<K: Key> Default for Entries<'_, K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Key> Buffer<K> for Entries<'_, K> {
    #[inline]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn key(&self, at: usize) -> FormRef<'_, K> {
        super::ops::short::<K>(self.0[at].0)
    }
}

/// A double-ended scan of an [`OwnedView`], made by [`OwnedView::range`], whose docs have its
/// guarantee. It can be sent to another thread.
pub struct PinnedRange<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: &'v Map<K, V, I>,
    /// The guard of the view, older than any guard that is taken here (P3).
    _guard: &'v OwnedGuard,
    entries: Batched<K, Entries<'v, K>>,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> OwnedView<'_, K, V, I> {
    /// The entries of `range` in ascending order. A range whose start is past its end is empty.
    ///
    /// The iterator is double-ended and `Send`. It reads 26 entries at first, and then as many as
    /// it has read so far, up to 512; this thread is pinned while it reads. Entries are not copied:
    /// they borrow the view.
    ///
    /// # Guarantee under concurrent writes
    /// A scan has the guarantee of [`View::range`](super::View::range). It reads up to 512 entries
    /// ahead at each end: a write to one of these may go unnoticed, as if it happened after the
    /// scan had passed.
    ///
    /// ```
    /// let map: silvics::Map<u64, Vec<u64>> = (0..9).map(|n| (n, vec![n])).collect();
    /// let view = map.pin_owned();
    /// let mut range = view.range(3..);
    /// let (first, _) = range.next().unwrap();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || {
    ///         let (last, value) = range.next_back().unwrap();
    ///         assert_eq!((first, last, &value[..]), (3, 8, &[8][..]));
    ///     });
    /// });
    /// ```
    pub fn range(&self, range: impl KeyRange<K>) -> PinnedRange<'_, K, V, I> {
        let entries = Batched::new(range.keep());
        PinnedRange { map: self.map(), _guard: self.guard(), entries }
    }

    /// All entries in ascending order, with the guarantee of [`OwnedView::range`].
    pub fn iter(&self) -> PinnedRange<'_, K, V, I> {
        self.range(..)
    }
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> IntoIterator for &'g OwnedView<'_, K, V, I> {
    type Item = Entry<'g, K, V>;
    type IntoIter = PinnedRange<'g, K, V, I>;

    fn into_iter(self) -> PinnedRange<'g, K, V, I> {
        self.iter()
    }
}

impl<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> PinnedRange<'v, K, V, I> {
    #[inline(always)]
    fn step<const REV: bool>(&mut self) -> Option<Entry<'v, K, V>> {
        let map = self.map;
        let read = |(from, to): Gap<'_, K>, most, entries: &mut Entries<'v, K>| {
            entries.0.clear();
            entries.0.reserve(most);
            let pinned = map.one_shot();
            // SAFETY: the scan that uses the guard ends before the guard is dropped. The view's
            // guard, which is older and lives as long as `'v`, protects the entries (P3).
            let guard: &'v Guard = unsafe { &*from_ref(&pinned) };
            // SAFETY: the scan ends before `read` returns, and no entry is a bound (clause 5 of
            // `MapIndex`).
            let lend = |form| unsafe { lengthen::<K>(form) };
            map.index.read_ahead((from.map(lend), to.map(lend)), REV, most, guard, |key, word| {
                if !inline::<V>() {
                    fetch::<V>(word);
                }
                entries.0.push((key, word));
            });
        };
        let (entries, at) = self.entries.next::<REV>(read)?;
        let (form, word) = entries.0[at];
        // SAFETY: M1: the word is that of a value. It was read under a guard that is younger than
        // the view's, which lives as long as `'v` (M3, P3).
        Some((Map::<K, V, I>::key_of(form), unsafe { ValueRef::new(word) }))
    }
}

impl<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> Iterator for PinnedRange<'v, K, V, I> {
    type Item = Entry<'v, K, V>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.step::<false>()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> DoubleEndedIterator
    for PinnedRange<'_, K, V, I>
{
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step::<true>()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> FusedIterator for PinnedRange<'_, K, V, I> {}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for PinnedRange<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedRange").finish_non_exhaustive()
    }
}
