//! Scans over the keys of a multimap, and over its pairs.

use super::order::{Listed, ListedValues};
use crate::index::KeyRef;
use crate::map::key::Key;
use crate::map::{Map, MapIndex, Range, Value, ValueRef};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// The keys of a range, each with its values, made by [`MultiView::groups`].
///
/// [`MultiView::groups`]: super::MultiView::groups
pub struct Groups<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    keys: Range<'g, K, u64, I>,
    values: PhantomData<&'g V>,
}

/// A key as the index holds it, and its values.
type Group<'g, V, I> = (KeyRef<'g, I>, ListedValues<'g, V>);

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Groups<'g, K, V, I> {
    /// # Safety
    /// The range is one of a multimap with values of this type.
    pub(super) unsafe fn new(keys: Range<'g, K, u64, I>) -> Self {
        Self { keys, values: PhantomData }
    }

    #[inline(always)]
    fn step<const REV: bool>(&mut self) -> Option<Group<'g, V, I>> {
        let (form, word) = if REV { self.keys.next_back_word() } else { self.keys.next_word() }?;
        // SAFETY: `new`: the word was read in the index of a multimap, under the guard of the
        // range, which lives during `'g`.
        Some((form, unsafe { Listed::new(word) }.values()))
    }
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Iterator for Groups<'g, K, V, I> {
    type Item = (K::Ref<'g>, ListedValues<'g, V>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.step::<false>().map(|(form, values)| (Map::<K, u64, I>::key_of(form), values))
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> DoubleEndedIterator for Groups<'_, K, V, I> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step::<true>().map(|(form, values)| (Map::<K, u64, I>::key_of(form), values))
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Groups<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").finish_non_exhaustive()
    }
}

/// The pairs of keys and values of a range, made by [`MultiView::range`].
///
/// [`MultiView::range`]: super::MultiView::range
pub struct Pairs<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    groups: Groups<'g, K, V, I>,
    /// The keys that the front and the back stand at, with the values that are left.
    front: Option<Group<'g, V, I>>,
    back: Option<Group<'g, V, I>>,
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Pairs<'g, K, V, I> {
    pub(super) fn new(groups: Groups<'g, K, V, I>) -> Self {
        Self { groups, front: None, back: None }
    }

    /// Takes the next pair from the front, or from the back if `REV`. If no key is left between
    /// the two ends, takes a value of the key that the other end stands at.
    #[inline(always)]
    fn step<const REV: bool>(&mut self) -> Option<(KeyRef<'g, I>, ValueRef<'g, V>)> {
        let Self { groups, front, back } = self;
        let (own, other) = if REV { (back, front) } else { (front, back) };
        let take = |group: &mut Group<'g, V, I>| {
            let value = if REV { group.1.next_back() } else { group.1.next() };
            value.map(|value| (group.0, value))
        };
        loop {
            if let Some(pair) = own.as_mut().and_then(take) {
                return Some(pair);
            }
            *own = groups.step::<REV>();
            if own.is_none() {
                return other.as_mut().and_then(take);
            }
        }
    }
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Iterator for Pairs<'g, K, V, I> {
    type Item = (K::Ref<'g>, ValueRef<'g, V>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.step::<false>().map(|(form, value)| (Map::<K, u64, I>::key_of(form), value))
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> DoubleEndedIterator for Pairs<'_, K, V, I> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step::<true>().map(|(form, value)| (Map::<K, u64, I>::key_of(form), value))
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> FusedIterator for Pairs<'_, K, V, I> {}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Pairs<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairs").finish_non_exhaustive()
    }
}
