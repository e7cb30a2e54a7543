//! Scans of a map, and building one, on many threads at once: the feature `rayon`.
//!
//! # Algorithm
//! A part of a map is the entries between two bounds. `rayon` asks parts to divide while it has
//! idle threads, and has each remaining part scanned by one thread.
//! ```text
//! split(part):  pin; first, last := the part's ends; unpin
//!               if first < last: at := a key in (first, last]; the part before `at`, the part from `at` on
//! fold(part):   pin; pass on each entry of the part's scan; unpin
//! ```
//! Each of the two parts had an entry: `first` is in the left one, `last` in the right one. Keys
//! are not counted, so one part may be much larger than the other; a part that is still too large
//! for its thread is divided again when another thread is idle.
//!
//! # Invariants
//! * P1: the parts of a range are disjoint, and their union is the range. So a key that is present
//!   for the whole scan is in the scan of exactly one part.
//! * P2: returned entries borrow the [`OwnedView`], and not the pin under which they were read.
//!   That pin is younger than the view's, and both are of the map's domain, so the view's pin
//!   protects every entry that was read under the younger pin.

use super::batch::Workers;
use super::key::{AsKey, Form, Key};
use super::lend::Lends;
use super::outcome::OrPanic;
use super::scan::{Kept, lend};
use super::{Entry, KeyRange, Map, MapIndex, OwnedView, Range, Set, Value};
use crate::domain::{Guard, OwnedGuard};
use rayon::iter::plumbing::{Folder, UnindexedConsumer, UnindexedProducer, bridge_unindexed};
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::ptr::from_ref;

/// A scan on many threads, made by [`OwnedView::par_range`], whose docs have its guarantee.
pub struct ParRange<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>>(Part<'v, K, V, I>);

/// The entries between two bounds.
struct Part<'v, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: &'v Map<K, V, I>,
    /// The guard of the view, older than any guard that is taken here (P2).
    _guard: &'v OwnedGuard,
    bounds: Kept<K>,
}

/// Scans on many threads, with the feature `rayon`.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> OwnedView<'_, K, V, I> {
    /// The entries of `range`, for many threads in parallel; for the whole map, use `par_iter`. A
    /// range whose start is past its end is empty.
    ///
    /// The range is divided by its keys into parts. Each part is scanned by one thread, which pins
    /// meanwhile. Returned entries borrow the view. `collect` returns the keys in ascending order;
    /// `for_each` visits them in any order.
    ///
    /// # Guarantee under concurrent writes
    /// Each part has the guarantee of [`View::range`](super::View::range), and no key is in two
    /// parts. So a key that is present for the whole scan is visited exactly once, and a key that
    /// is absent for the whole scan is not visited. A key that is inserted or removed during the
    /// scan may or may not be visited. Different parts may be scanned at different times.
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

/// Iterates in parallel over all entries, with the guarantee of [`OwnedView::par_range`]. For a
/// [`Set`], use its map.
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
    /// The key at which to divide the part; none if the part has fewer than two keys.
    fn middle(&self) -> Option<<K::Form as Form>::Kept> {
        let guard = self.map.one_shot();
        let ends = || {
            // SAFETY: `self` owns the bounds and is borrowed until the scans below have ended.
            unsafe { (lend::<K>(&self.bounds.0), lend::<K>(&self.bounds.1)) }
        };
        let (first, _) = self.map.index.range(ends(), &guard).next()?;
        let (last, _) = self.map.index.range_rev(ends(), &guard).next()?;
        // A concurrent writer may have changed the ends, so that they are in the wrong order.
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
        // SAFETY: only the scan uses the guard for longer than it is borrowed, and the scan is
        // dropped before the guard. The view's guard, which is older and lives as long as `'v`,
        // protects the entries that the scan returns (P2).
        let guard: &'v Guard = unsafe { &*from_ref(&pinned) };
        let mut entries = Range::new(self.map, self.bounds, guard);
        folder.consume_iter(&mut entries)
    }
}

/// The pool of threads in which the call runs sorts; as many threads build the index.
struct Pool;

impl Workers for Pool {
    fn threads(&self) -> NonZeroUsize {
        NonZeroUsize::new(rayon::current_num_threads()).unwrap_or(NonZeroUsize::MIN)
    }

    fn sort<T: Ord + Send>(&self, list: &mut [T]) {
        list.par_sort_unstable();
    }
}

/// Builds a map from entries of a parallel iterator, with the feature `rayon`. If a key occurs
/// twice, the later entry wins.
///
/// This is [`FromIterator`] with several threads, which produce the entries and sort them. They
/// also build the index if it can be built from sorted entries, as the default ones can. One thread
/// copies the keys, and moves the values into the map, from a list of all entries.
///
/// ```
/// use rayon::prelude::*;
/// use silvics::Map;
///
/// let squares: Map<u64, u64> = (0..10_000u64).into_par_iter().map(|n| (n, n * n)).collect();
/// assert_eq!(squares.len(), 10_000);
/// assert_eq!(squares.get(&99).as_deref(), Some(&9801));
/// ```
impl<K, V, I, Q> FromParallelIterator<(Q, V)> for Map<K, V, I>
where
    K: Key,
    V: Value,
    I: MapIndex<Key = K::Form>,
    Q: AsKey<K> + Send,
{
    fn from_par_iter<T: IntoParallelIterator<Item = (Q, V)>>(entries: T) -> Self {
        let entries: Vec<(Q, V)> = entries.into_par_iter().collect();
        let mut map = Self::default();
        map.do_collect(entries, || true, &Pool).or_panic();
        map
    }
}

/// Builds a set as [`Map`] is built, with the feature `rayon`.
impl<K: Key, I: MapIndex<Key = K::Form>, Q: AsKey<K> + Send> FromParallelIterator<Q> for Set<K, I> {
    fn from_par_iter<T: IntoParallelIterator<Item = Q>>(keys: T) -> Self {
        Self(keys.into_par_iter().map(|key| (key, ())).collect())
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

    /// The keys of a part in order, found by dividing it as far as possible.
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
            divides::<u128, crate::WordTree<u128>>(wide);
            divides::<u64, crate::WordTree<u64>>(keys.clone());
            divides::<u64, SkipList<u64>>(keys.clone());
            divides::<u64, NatarajanTree>(keys);
        }
        for keys in strings() {
            divides::<Vec<u8>, crate::BlockTree<[u8]>>(keys.clone());
            divides::<Vec<u8>, SkipList<[u8]>>(keys);
        }
        let tuples = (0..300u64).map(|n| (format!("{}\0", n % 7), n));
        divides::<(String, u64), crate::BlockTree<[u8]>>(tuples);
    }
}
