//! The values of one key as a list, and their orders.

use super::node::{Node, is_list};
use crate::map::value::fetch;
use crate::map::value::inline;
use crate::map::{Value, ValueRef};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// The values of a key are in ascending order ([`Ord`]), each once.
#[derive(Clone, Copy, Debug)]
pub struct Sorted;

/// The values of a key are in the order of their insertion. A value may be there several times.
#[derive(Clone, Copy, Debug)]
pub struct Inserted;

mod private {
    pub trait Sealed {}
    impl Sealed for super::Sorted {}
    impl Sealed for super::Inserted {}
}

/// An order of the values of a key: [`Sorted`] or [`Inserted`]. The trait is sealed.
pub trait Order<V>: private::Sealed + 'static {
    /// Returns the place for a new value, or nothing if the list has an equal one and must not have
    /// two.
    #[doc(hidden)]
    fn place(list: &Listed<'_, V>, value: &V) -> Option<u64>;

    /// Whether two values may follow one another.
    #[doc(hidden)]
    fn agrees(one: &V, next: &V) -> bool;
}

/// An [`Order`] in which a value can be found: [`Sorted`] if values are [`Ord`], and [`Inserted`]
/// if they are [`PartialEq`]. The trait is sealed.
pub trait FindOrder<V>: Order<V> {
    /// Returns the number of the first equal value in the list.
    #[doc(hidden)]
    fn find(list: &Listed<'_, V>, value: &V) -> Option<u64>;
}

impl<V: Value + Ord> Order<V> for Sorted {
    #[inline]
    fn place(list: &Listed<'_, V>, value: &V) -> Option<u64> {
        list.search(|other| other.cmp(value)).err()
    }

    fn agrees(one: &V, next: &V) -> bool {
        one < next
    }
}

impl<V: Value + Ord> FindOrder<V> for Sorted {
    #[inline]
    fn find(list: &Listed<'_, V>, value: &V) -> Option<u64> {
        list.search(|other| other.cmp(value)).ok()
    }
}

impl<V: Value> Order<V> for Inserted {
    #[inline]
    fn place(list: &Listed<'_, V>, _value: &V) -> Option<u64> {
        Some(list.count())
    }

    fn agrees(_one: &V, _next: &V) -> bool {
        true
    }
}

impl<V: Value + PartialEq> FindOrder<V> for Inserted {
    fn find(list: &Listed<'_, V>, value: &V) -> Option<u64> {
        let mut values = list.values();
        values.by_ref().position(|other| *other == *value).map(|at| at as u64)
    }
}

/// The word of a key, read.
#[derive(Clone, Copy)]
pub(super) enum Held<'g> {
    /// The word of the only value.
    One(u64),
    /// The root of a list.
    List(Node<'g>),
}

/// The values of a key at one moment.
pub struct Listed<'g, V> {
    pub(super) held: Held<'g>,
    values: PhantomData<&'g V>,
}

impl<'g, V: Value> Listed<'g, V> {
    /// # Safety
    /// The word was read in the index of a multimap with values of this type. The map lives during
    /// `'g`, and so does a guard of its domain that was taken before the word was read.
    #[inline(always)]
    pub(super) unsafe fn new(word: u64) -> Self {
        let held = if is_list(word) {
            // SAFETY: L1: the word leads to a list; L2: the guard protects it.
            Held::List(unsafe { Node::of_word(word) })
        } else {
            Held::One(word)
        };
        Self { held, values: PhantomData }
    }

    /// The value of a word of this list.
    #[inline(always)]
    #[allow(clippy::unused_self)] // the list says that the value is valid
    pub(super) fn value(&self, word: u64) -> ValueRef<'g, V> {
        // SAFETY: L1, L3: the word is that of a value; our `new` makes the demands of this one.
        unsafe { ValueRef::new(word) }
    }

    /// The number of values.
    #[inline(always)]
    pub(super) fn count(&self) -> u64 {
        match self.held {
            Held::One(_) => 1,
            Held::List(root) => root.total(),
        }
    }

    /// The word of the value with a number. Panics if a list has no such value.
    #[inline]
    pub(super) fn word_at(&self, rank: u64) -> u64 {
        match self.held {
            Held::One(word) => word,
            Held::List(root) => {
                let (words, at) = root.leaf_at(rank);
                words[at]
            }
        }
    }

    /// Searches values in ascending order for one that `order` says is equal. Returns its number,
    /// or as an error the number that it would have. Whatever `order` answers, a number that is
    /// found is in the list, and another one is in the list or at its end.
    #[inline]
    fn search(&self, order: impl Fn(&V) -> Ordering) -> Result<u64, u64> {
        let order = |word: u64| order(&self.value(word));
        let mut node = match self.held {
            Held::List(root) => root,
            Held::One(word) => {
                return match order(word) {
                    Ordering::Equal => Ok(0),
                    Ordering::Less => Err(1),
                    Ordering::Greater => Err(0),
                };
            }
        };
        let mut before = 0;
        while node.level() > 0 {
            let entries = node.entries();
            let (at, is_equal) = match entries.binary_search_by(|entry| order(entry.first)) {
                Ok(at) => (at, true),
                Err(at) => (at.saturating_sub(1), false),
            };
            before += entries[..at].iter().map(|entry| entry.count).sum::<u64>();
            if is_equal {
                return Ok(before);
            }
            node = node.child(at);
        }
        let words = node.words();
        match words.binary_search_by(|word| order(*word)) {
            Ok(at) => Ok(before + at as u64),
            Err(at) => Err(before + at as u64),
        }
    }

    /// The number of the first value for which `is_before` is false, if the values for which it is
    /// true come first. Whatever it answers, the result is a number in the list or that of its end.
    fn rank(&self, is_before: impl Fn(&V) -> bool) -> u64 {
        let order = |value: &V| if is_before(value) { Ordering::Less } else { Ordering::Greater };
        self.search(order).unwrap_or_else(|rank| rank)
    }

    /// The values between two bounds, if values are in ascending order.
    pub(super) fn between<Q: Ord + ?Sized>(
        &self,
        range: &impl RangeBounds<Q>,
    ) -> ListedValues<'g, V>
    where
        V: Borrow<Q>,
    {
        let next = match range.start_bound() {
            Bound::Included(low) => self.rank(|value| value.borrow() < low),
            Bound::Excluded(low) => self.rank(|value| value.borrow() <= low),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(high) => self.rank(|value| value.borrow() <= high),
            Bound::Excluded(high) => self.rank(|value| value.borrow() < high),
            Bound::Unbounded => self.count(),
        };
        ListedValues { next, end: end.max(next), ..self.values() }
    }

    /// The values in order.
    pub(super) fn values(&self) -> ListedValues<'g, V> {
        let (end, held) = (self.count(), self.held);
        ListedValues { held, next: 0, end, front: &[], back: &[], values: PhantomData }
    }
}

/// The values of one key as they were at one moment, made by
/// [`MultiView::values`](super::MultiView::values) and
/// [`MultiView::values_range`](super::MultiView::values_range). They are read from both ends.
///
/// A step takes O(1) on average. [`Iterator::nth`] takes O(log n).
pub struct ListedValues<'g, V> {
    held: Held<'g>,
    /// The values from the number `next` to `end` are left.
    next: u64,
    end: u64,
    /// The words of a leaf from the number `next` on, or none.
    front: &'g [u64],
    /// The words of a leaf up to the number `end`, or none.
    back: &'g [u64],
    values: PhantomData<&'g V>,
}

/// The number of values that are prefetched.
const AHEAD: usize = 4;

impl<'g, V: Value> ListedValues<'g, V> {
    /// No values.
    pub(super) fn none() -> Self {
        let held = Held::One(0);
        Self { held, next: 0, end: 0, front: &[], back: &[], values: PhantomData }
    }

    /// The value of a word of the list.
    #[inline(always)]
    fn value(word: u64) -> ValueRef<'g, V> {
        // SAFETY: L1, L3: the word is that of a value. The list was made by `Listed::new`, whose
        // demands are these.
        unsafe { ValueRef::new(word) }
    }

    #[inline(always)]
    fn fetch(word: Option<&u64>) {
        if let Some(word) = word.filter(|_| !inline::<V>()) {
            fetch::<V>(*word);
        }
    }
}

impl<'g, V: Value> Iterator for ListedValues<'g, V> {
    type Item = ValueRef<'g, V>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        let word = match self.held {
            Held::One(word) => word,
            Held::List(root) => {
                if self.front.is_empty() {
                    let (words, at) = root.leaf_at(self.next);
                    self.front = &words[at..];
                    self.front.iter().take(AHEAD).for_each(|word| Self::fetch(Some(word)));
                }
                let (word, front) = self.front.split_first()?;
                self.front = front;
                Self::fetch(front.get(AHEAD - 1));
                *word
            }
        };
        self.next += 1;
        Some(Self::value(word))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.next = self.end.min(self.next.saturating_add(n as u64));
        self.front = self.front.get(n..).unwrap_or_default();
        self.next()
    }
}

impl<V: Value> DoubleEndedIterator for ListedValues<'_, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        let word = match self.held {
            Held::One(word) => word,
            Held::List(root) => {
                if self.back.is_empty() {
                    let (words, at) = root.leaf_at(self.end - 1);
                    self.back = &words[..=at];
                    self.back.iter().rev().take(AHEAD).for_each(|word| Self::fetch(Some(word)));
                }
                let (word, back) = self.back.split_last()?;
                self.back = back;
                Self::fetch(back.len().checked_sub(AHEAD).map(|at| &back[at]));
                *word
            }
        };
        self.end -= 1;
        Some(Self::value(word))
    }
}

impl<V: Value> ExactSizeIterator for ListedValues<'_, V> {}
impl<V: Value> FusedIterator for ListedValues<'_, V> {}

impl<V> Clone for ListedValues<'_, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<V: Value + fmt::Debug> fmt::Debug for ListedValues<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
