//! Scans of a map on many threads at once: the feature `rayon`.
//!
//! # Algorithm
//! A part of a map is what lies within two bounds. `rayon` asks a part to divide itself as long as it has threads to
//! spare, and has each part that is left scanned by one of them.
//! ```text
//! split(part):  pin; first, last := the part's ends; unpin
//!               if first < last: at := a key in (first, last]; the part before `at`, the part from `at` on
//! fold(part):   pin; give each entry of the part's scan; unpin
//! ```
//! Of the two parts each had something in it: `first` the left one, `last` the right one. Keys are not counted, so one can
//! be larger than the other by far; what is still too large for its thread is divided again when another is idle.
//!
//! # Invariants
//! * P1: the parts of a range are disjoint, and together they are the range. So a key that is there throughout is in the
//!   scan of one part.
//! * P2: what is given borrows the [`OwnedView`], not the pin under which it was read: that one is the younger, and
//!   both are of the map's domain, so that what one could read the other one protects.

use super::key::{Form, Key};
use super::scan::{Kept, lend};
use super::{Entry, KeyRange, Map, MapIndex, OwnedView, Range, Value};
use crate::domain::{Guard, OwnedGuard};
use rayon::iter::plumbing::{Folder, UnindexedConsumer, UnindexedProducer, bridge_unindexed};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fmt;
use std::ops::Bound;
use std::ptr::from_ref;

/// A scan on many threads: made by [`OwnedView::par_range`], which tells what it promises.
pub struct ParRange<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>>(Part<'v, K, V, I>);

/// What lies within two bounds.
struct Part<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: &'v Map<K, V, I>,
    /// The view's, older than any that is taken here (P2).
    _guard: &'v OwnedGuard,
    bounds: Kept<K>,
}

/// Scans on many threads, with the feature `rayon`.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> OwnedView<'_, K, V, I> {
    /// The entries of `range`, for many threads at once; those of the whole map are `par_iter`'s. An empty range (start past
    /// end) has none.
    ///
    /// The range is divided by its keys into parts that are scanned one by one, each by a thread that pins meanwhile.
    /// What is given borrows the view. Order is kept as by all such iterators of `rayon`: `collect` has the keys in
    /// ascending order, `for_each` comes to them in any.
    ///
    /// # Guarantee under concurrent writes
    /// That of [`View::range`](super::View::range) for each part: keys come in strictly ascending order, and none comes twice, in no other
    /// part either. A key that is present throughout is seen exactly once; one absent throughout is not; one
    /// inserted or removed meanwhile may or may not be seen. Parts are not scanned at the same time.
    ///
    /// ```
    /// use rayon::prelude::*;
    /// use silvics::Map;
    ///
    /// let map: Map<u32, u64> = (0..10_000).map(|n| (n, u64::from(n))).collect();
    /// let view = map.pin_owned();
    /// let sum: u64 = view.par_iter().map(|(_, value)| *value).sum();
    /// assert_eq!(sum, 49_995_000);
    /// let keys: Vec<u32> = view.par_range(9_997..).map(|(key, _)| key).collect();
    /// assert_eq!(keys, [9_997, 9_998, 9_999]);
    /// ```
    pub fn par_range<'v>(&'v self, range: impl KeyRange<K>) -> ParRange<'v, K, V, I>
    where
        K::Ref<'v>: Send,
    {
        ParRange(Part { map: self.map(), _guard: self.guard(), bounds: range.keep() })
    }
}

/// All entries, as [`OwnedView::par_range`]. Of a [`Set`](super::Set) those of its map.
impl<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> IntoParallelIterator
    for &'v OwnedView<'_, K, V, I>
where
    K::Ref<'v>: Send,
{
    type Item = Entry<'v, K, V>;
    type Iter = ParRange<'v, K, V, I>;

    fn into_par_iter(self) -> ParRange<'v, K, V, I> {
        self.par_range(..)
    }
}

impl<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> ParallelIterator for ParRange<'v, K, V, I>
where
    K::Ref<'v>: Send,
{
    type Item = Entry<'v, K, V>;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(self.0, consumer)
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Part<'_, K, V, I> {
    /// Where to divide it, if it has two keys.
    fn middle(&self) -> Option<<K::Form as Form>::Kept> {
        let guard = self.map.one_shot();
        let ends = || {
            // SAFETY: the part stays where it is while they are used.
            unsafe { (lend::<K>(&self.bounds.0), lend::<K>(&self.bounds.1)) }
        };
        let (first, _) = self.map.index.range(ends(), &guard).next()?;
        let (last, _) = self.map.index.range_rev(ends(), &guard).next()?;
        // The first one can have been removed, and keys before it inserted.
        (first < last).then(|| K::Form::between(first, last))
    }
}

impl<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> UnindexedProducer for Part<'v, K, V, I> {
    type Item = Entry<'v, K, V>;

    fn split(self) -> (Self, Option<Self>) {
        let Some(middle) = self.middle() else { return (self, None) };
        let (from, to) = self.bounds;
        let left = Self { bounds: (from, Bound::Excluded(middle.clone())), ..self };
        (left, Some(Self { bounds: (Bound::Included(middle), to), ..self }))
    }

    fn fold_with<F: Folder<Self::Item>>(self, folder: F) -> F {
        let pinned = self.map.one_shot();
        // SAFETY: only the scan, which is dropped before it, uses the guard for longer than it is borrowed. What the scan
        // gives is protected by the view's guard, which was there before and lives as long as `'v` (P2).
        let guard: &'v Guard = unsafe { &*from_ref(&pinned) };
        let mut entries = Range::new(self.map, self.bounds, guard);
        folder.consume_iter(&mut entries)
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for ParRange<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParRange").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::index::Options;
    use crate::{NatarajanTree, SkipList};
    use silvics_pool::Pages;
    use std::fmt::Debug;

    /// The keys of a part's parts, in order, divided as far as that goes.
    fn keys<K: Key, I: MapIndex<Key = K::Form>>(part: Part<'_, K, u64, I>, keys: &mut Vec<K>) {
        match part.split() {
            (left, Some(right)) => {
                for part in [left, right] {
                    let before = keys.len();
                    self::keys(part, keys);
                    assert!(keys.len() > before, "a part has nothing");
                }
            }
            (part, None) => {
                let guard = part.map.one_shot();
                let scan = Range::new(part.map, part.bounds, &guard);
                let whole: Vec<K> = scan.map(|(key, _)| K::to_owned(key)).collect();
                assert!(whole.len() <= 1, "it could have been divided");
                keys.extend(whole);
            }
        }
    }

    fn divides<K: Key + Debug + PartialEq + Clone, I: MapIndex<Key = K::Form>>(
        expected: impl IntoIterator<Item = K>,
    ) where
        for<'g> K::Ref<'g>: Send,
    {
        let options = Options { pages: Pages::Small, ..Options::default() };
        let map = Map::<K, u64, I>::with_options(&options).unwrap();
        map.extend(expected.into_iter().map(|key| (key, 0)));
        let expected: Vec<K> = map.pin().keys().map(K::to_owned).collect();
        let view = map.pin_owned();
        let mut found = Vec::new();
        keys(view.par_range(..).0, &mut found);
        assert_eq!(found, expected);
        for (at, key) in expected.iter().enumerate().step_by(7) {
            let mut found = Vec::new();
            keys(view.par_range(key..).0, &mut found);
            assert_eq!(found, expected[at..]);
            found.clear();
            keys(
                view.par_range((Bound::Excluded(&expected[0]), Bound::Excluded(key))).0,
                &mut found,
            );
            assert_eq!(found, expected[at.min(1)..at]);
        }
    }

    fn numbers() -> [Vec<u64>; 5] {
        let sparse = (0..300).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let far = (0..100).chain([u64::MAX]).collect();
        [vec![], vec![7], (0..300).collect(), sparse, far]
    }

    fn strings() -> [Vec<Vec<u8>>; 3] {
        let nested = (0..100).map(|len| vec![0; len]).collect();
        let long = (0..20).map(|n| [vec![7; (64 << 10) - 1 - n / 10], vec![n as u8]].concat());
        let mixed = (0..300u32).map(|n| n.to_string().into_bytes()).collect();
        [nested, long.collect(), mixed]
    }

    #[test]
    fn parts_are_the_whole_and_none_is_empty() {
        for keys in numbers() {
            let wide = keys.iter().map(|&key| u128::from(key) << 60);
            divides::<u128, crate::ArtTree<u128>>(wide);
            divides::<u64, crate::ArtTree<u64>>(keys.clone());
            divides::<u64, SkipList<u64>>(keys.clone());
            divides::<u64, NatarajanTree>(keys);
        }
        for keys in strings() {
            divides::<Vec<u8>, crate::ArtTree<[u8]>>(keys.clone());
            divides::<Vec<u8>, SkipList<[u8]>>(keys);
        }
        let tuples = (0..300u64).map(|n| (format!("{}\0", n % 7), n));
        divides::<(String, u64), crate::ArtTree<[u8]>>(tuples);
    }
}
