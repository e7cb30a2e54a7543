//! A multimap with its domain pinned, and the methods of a multimap that pin for one call.

use super::order::{FindOrder, ListedValues, Order};
use super::range::{Groups, Pairs};
use super::verbs::multi_verbs;
use super::{Insertion, MultiMap, Sorted};
use crate::domain::{Domain, Guard};
use crate::error::AllocError;
use crate::map::key::{AsKey, AsPrefix, DefaultIndex, Key};
use crate::map::lend::{Lends, Pin};
use crate::map::outcome::OrPanic;
use crate::map::{ExtendError, KeyRange, MapIndex, Rejected, Value, ValueGuard, ValueRef};
use std::borrow::Borrow;
use std::fmt;
use std::ops::RangeBounds;

/// Implements verbs under the guard of a view.
macro_rules! view {
    (sweeps: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* Some(&$self.guard))
    };
    ($kind:ident $($argument:ident)?: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* (&$self.guard).into())
    };
}

/// Implements verbs with a pin for each call. An operation of a map keeps no value that it reads,
/// except in its result.
macro_rules! one_shot {
    (reads: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps no value, except in its result.
        unsafe { $self.held(|pin| $self.$operation($($pass,)* pin)) }
    };
    (writes: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps no value, except in its result.
        unsafe { $self.held_or_repeated((), |(), pin| $self.$operation($($pass,)* pin), drop) }
    };
    (writes $argument:ident: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps no value, except in its result.
        unsafe {
            $self.held_or_repeated(
                $argument,
                |$argument, pin| $self.$operation($($pass,)* pin),
                std::convert::identity,
            )
        }
    };
    (sweeps: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.$operation($($pass,)* None)
    };
}

/// A [`MultiMap`] with its domain pinned, made by [`MultiMap::pin`]: for many calls. It cannot
/// leave its thread.
///
/// Returned keys and values borrow the view. They are valid while the view lives, even if they are
/// removed from the map. Memory removed under this pin cannot be used again while the pin is held.
/// An insert into the list of a key also removes memory: the nodes that it copied, up to 2 KiB. If
/// you insert many values, call [`MultiView::repin`] from time to time, or call the methods of the
/// map, which pin for one call each.
pub struct MultiView<
    'm,
    K: Key,
    V: Value,
    O = Sorted,
    I: MapIndex<Key = <K as Key>::Form> = DefaultIndex<K>,
> {
    map: &'m MultiMap<K, V, O, I>,
    guard: Guard,
}

impl<'m, K: Key, V: Value, O, I: MapIndex<Key = K::Form>> MultiView<'m, K, V, O, I> {
    pub(super) fn new(map: &'m MultiMap<K, V, O, I>, guard: Guard) -> Self {
        Self { map, guard }
    }

    /// The map.
    pub fn map(&self) -> &'m MultiMap<K, V, O, I> {
        self.map
    }

    /// Pins anew, so that entries removed since the last pin can be freed. Values that the view
    /// returned before are no longer valid; the exclusive borrow enforces this.
    pub fn repin(&mut self) {
        self.map.values.drop_some();
        self.guard.repin();
    }

    multi_verbs!(view, ValueRef<'_, V>);

    /// All values of `key`, as they were at one moment. They are counted, and read from both ends.
    ///
    /// ```
    /// use silvics::MultiMap;
    ///
    /// let map: MultiMap<String, u64> = [("oak", 3), ("elm", 7), ("oak", 1)].into_iter().collect();
    /// let view = map.pin();
    /// let values = view.values("oak");
    /// assert_eq!(values.len(), 2);
    /// assert!(values.map(|value| *value).eq([1, 3]));
    /// assert_eq!(view.values("ash").len(), 0);
    /// ```
    pub fn values(&self, key: impl AsKey<K>) -> ListedValues<'_, V> {
        let list = self.map.do_list(&key, (&self.guard).into());
        list.map_or_else(ListedValues::none, |list| list.values())
    }

    /// The pairs of `range`, by ascending keys, and the values of each key in their order. Both
    /// ends can be read.
    ///
    /// # Guarantee under concurrent writes
    /// The keys have the guarantee of [`View::range`](crate::View::range): no key comes twice, each
    /// that is present throughout comes, and none that is absent throughout. The values of one key
    /// are read atomically.
    pub fn range(&self, range: impl KeyRange<K>) -> Pairs<'_, K, V, I> {
        Pairs::new(self.groups(range))
    }

    /// The pairs of `range` from the last one on, with the guarantee of [`MultiView::range`].
    pub fn range_rev(&self, range: impl KeyRange<K>) -> std::iter::Rev<Pairs<'_, K, V, I>> {
        self.range(range).rev()
    }

    /// All pairs, with the guarantee of [`MultiView::range`].
    pub fn iter(&self) -> Pairs<'_, K, V, I> {
        self.range(..)
    }

    /// All pairs from the last one on, with the guarantee of [`MultiView::range`].
    pub fn iter_rev(&self) -> std::iter::Rev<Pairs<'_, K, V, I>> {
        self.range_rev(..)
    }

    /// The keys of `range` in ascending order, each with all its values, with the guarantee of
    /// [`MultiView::range`].
    pub fn groups(&self, range: impl KeyRange<K>) -> Groups<'_, K, V, I> {
        // SAFETY: the range is one of this map.
        unsafe { Groups::new(self.map.map.do_range(range, &self.guard)) }
    }

    /// All keys in ascending order, each once, with the guarantee of [`MultiView::range`].
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K::Ref<'_>> {
        self.map.map.do_range(.., &self.guard).map(|(key, _)| key)
    }

    /// The number of pairs: see [`MultiMap::len`].
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether [`MultiView::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The number of keys: see [`MultiMap::key_count`].
    pub fn key_count(&self) -> usize {
        self.map.key_count()
    }
}

impl<K: Key, V: Value + Ord, I: MapIndex<Key = K::Form>> MultiView<'_, K, V, Sorted, I> {
    /// Returns the values of `key` within `range`, in ascending order. The read is atomic. The
    /// iterator is double-ended and knows its length. Takes O(log n) comparisons. If the end of the
    /// range is below its start, the iterator is empty.
    ///
    /// ```
    /// use silvics::MultiMap;
    ///
    /// let map: MultiMap<String, u64> = [2, 3, 5, 7, 11].map(|n| ("prime", n)).into_iter().collect();
    /// let view = map.pin();
    /// assert!(view.values_range("prime", 3..8).map(|value| *value).eq([3, 5, 7]));
    /// assert_eq!(view.values_range("prime", 8..).len(), 1);
    /// ```
    pub fn values_range<Q: Ord + ?Sized>(
        &self,
        key: impl AsKey<K>,
        range: impl RangeBounds<Q>,
    ) -> ListedValues<'_, V>
    where
        V: Borrow<Q>,
    {
        let list = self.map.do_list(&key, (&self.guard).into());
        list.map_or_else(ListedValues::none, |list| list.between(&range))
    }
}

impl<K: Key<Form = [u8]>, V: Value, O, I: MapIndex<Key = [u8]>> MultiView<'_, K, V, O, I> {
    /// The pairs whose keys begin with `prefix`, with the guarantee of [`MultiView::range`].
    pub fn prefix(&self, prefix: impl AsPrefix<K>) -> Pairs<'_, K, V, I> {
        // SAFETY: the range is one of this map.
        Pairs::new(unsafe { Groups::new(self.map.map.do_prefix(&prefix, &self.guard)) })
    }
}

impl<'g, K: Key, V: Value, O, I: MapIndex<Key = K::Form>> IntoIterator
    for &'g MultiView<'_, K, V, O, I>
{
    type Item = (K::Ref<'g>, ValueRef<'g, V>);
    type IntoIter = Pairs<'g, K, V, I>;

    fn into_iter(self) -> Pairs<'g, K, V, I> {
        self.iter()
    }
}

impl<K: Key, V: Value + fmt::Debug, O, I: MapIndex<Key = K::Form>> fmt::Debug
    for MultiView<'_, K, V, O, I>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.groups(..)).finish()
    }
}

/// Methods that pin for the call: the values that they return hold the pin. A [`MultiView`] has all
/// of them and more, and pins once for many calls.
///
/// If an allocation fails, a method unpins, returns free memory by [`MultiMap::shrink`], and tries
/// once more.
impl<K: Key, V: Value, O, I: MapIndex<Key = K::Form>> MultiMap<K, V, O, I> {
    multi_verbs!(one_shot, ValueGuard<'_, V>);

    fn do_contains_key(&self, key: &(impl AsKey<K> + ?Sized), pin: Pin<'_, '_>) -> bool {
        self.map.do_contains_key(key, pin)
    }
}

impl<K: Key, V: Value, O, I: MapIndex<Key = K::Form>> Lends<V> for MultiMap<K, V, O, I> {
    #[inline(always)]
    fn domain(&self) -> &Domain {
        self.map.domain()
    }

    #[inline(always)]
    fn one_shot(&self) -> Guard {
        self.values.drop_some();
        self.map.domain().pin()
    }

    fn give_back(&self) {
        self.shrink();
    }
}
