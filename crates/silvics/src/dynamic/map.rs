//! Maps whose structure is chosen at run time.

use super::{AnyOrdered, Ends, InTable, Ranks};
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::index::Options;
use crate::map::key::{AsKey, Key};
use crate::map::{Entry, KeyRange, Map, Value, View};
use std::fmt;

/// A [`Map`] whose structure is chosen at run time: by its name with
/// [`Structure::map`](super::Structure::map) (feature `named`), or the default one, as here.
///
/// It has all methods of a map: views, values of any type with destructors, batches, owned cursors,
/// a memory limit. The methods at both ends and the ranks are capabilities that a structure may
/// lack: [`View::ends`] and [`View::ranks`] return `None` then.
///
/// ```
/// use silvics::dynamic::{AnyMap, Structure};
/// use silvics::Options;
///
/// for name in ["words", "skiplist", "edge-ext-lf"] {
///     let map: AnyMap<u64, String> = Structure::named(name)?.map(&Options::default())?;
///     map.insert(2, "two".to_string());
///     map.insert(1, "one".to_string());
///     let view = map.pin();
///     let values: Vec<_> = view.values().map(|value| value.clone()).collect();
///     assert_eq!(values, ["one", "two"]);
///     match view.ends() {
///         Some(ends) => assert_eq!(ends.last().map(|(key, _)| key), Some(2)),
///         None => assert_ne!(name, "words"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Costs
/// A call costs one indirect jump more than on a [`Map`] of a static type, and a range allocates
/// once.
pub type AnyMap<K, V> = Map<K, V, AnyOrdered<<K as Key>::Form>>;

impl<K: Key<Form: InTable>, V: Value> AnyMap<K, V> {
    /// An empty map over the default structure, which counts its keys: such a map has
    /// [ranks](View::ranks), as one of [`Builder::counted`](crate::map::Builder::counted) has.
    pub fn counted(options: &Options) -> Result<Self, AllocError> {
        Self::around(options, K::Form::counted)
    }

    /// Whether the structure finds its first and its last entry: see [`View::ends`].
    pub fn has_ends(&self) -> bool {
        self.index().ends().is_some()
    }

    /// Whether the map knows the ranks of its keys: see [`View::ranks`].
    pub fn has_ranks(&self) -> bool {
        self.index().ranks().is_some()
    }
}

impl<K: Key<Form: InTable>, V: Value> View<'_, K, V, AnyOrdered<K::Form>> {
    /// The verbs at both ends of the map, or `None` if its structure has none.
    pub fn ends(&self) -> Option<AnyEnds<'_, K, V>> {
        self.map().index().ends().map(|index| AnyEnds { view: self, index })
    }

    /// The verbs of a map that counts its keys, or `None` if it does not.
    pub fn ranks(&self) -> Option<AnyRanks<'_, K, V>> {
        self.map().index().ranks().map(|index| AnyRanks { view: self, index })
    }
}

/// The view of a map.
type AnyView<'g, K, V> = View<'g, K, V, AnyOrdered<<K as Key>::Form>>;

/// The verbs at both ends of an [`AnyMap`], under the pin of a [`View`].
pub struct AnyEnds<'g, K: Key<Form: InTable>, V: Value> {
    view: &'g AnyView<'g, K, V>,
    index: &'g (dyn Ends<K::Form> + 'static),
}

impl<K: Key<Form: InTable>, V: Value> fmt::Debug for AnyEnds<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyEnds").finish_non_exhaustive()
    }
}

impl<'g, K: Key<Form: InTable>, V: Value> AnyEnds<'g, K, V> {
    /// Returns the entry with the smallest key. Linearizable: see [`View::first`].
    pub fn first(&self) -> Option<Entry<'g, K, V>> {
        // SAFETY: the index is that of the view's map.
        self.index.first(self.view.guard()).map(|found| unsafe { self.view.found(found) })
    }

    /// Returns the entry with the largest key. Linearizable: see [`View::last`].
    pub fn last(&self) -> Option<Entry<'g, K, V>> {
        // SAFETY: the index is that of the view's map.
        self.index.last(self.view.guard()).map(|found| unsafe { self.view.found(found) })
    }

    /// Removes the entry with the smallest key and returns it, or an error if the structure
    /// allocates to remove and the allocation fails.
    pub fn try_pop_first(&self) -> Result<Option<Entry<'g, K, V>>, AllocError> {
        let popped = self.index.pop_first(self.view.guard())?;
        // SAFETY: the index returned the word to this caller alone (clause 3 of `MapIndex`).
        Ok(popped.map(|popped| unsafe { self.view.popped(popped) }))
    }

    /// Removes the entry with the largest key and returns it, or an error if the structure
    /// allocates to remove and the allocation fails.
    pub fn try_pop_last(&self) -> Result<Option<Entry<'g, K, V>>, AllocError> {
        let popped = self.index.pop_last(self.view.guard())?;
        // SAFETY: the index returned the word to this caller alone (clause 3 of `MapIndex`).
        Ok(popped.map(|popped| unsafe { self.view.popped(popped) }))
    }
}

/// The verbs of an [`AnyMap`] that counts its keys, under the pin of a [`View`].
pub struct AnyRanks<'g, K: Key<Form: InTable>, V: Value> {
    view: &'g AnyView<'g, K, V>,
    index: &'g (dyn Ranks<K::Form> + 'static),
}

impl<K: Key<Form: InTable>, V: Value> fmt::Debug for AnyRanks<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyRanks").finish_non_exhaustive()
    }
}

impl<'g, K: Key<Form: InTable>, V: Value> AnyRanks<'g, K, V> {
    /// Returns the number of keys that are smaller than `key`: see [`View::rank`].
    pub fn rank(&self, key: impl AsKey<K>) -> usize {
        key.with_form(|form| {
            self.index.rank_of(<K::Form as IndexKey>::shorten(form), self.view.guard())
        })
    }

    /// Returns the number of keys of `range`: see [`View::count`].
    pub fn count(&self, range: impl KeyRange<K>) -> usize {
        range.with_bounds(|bounds| self.index.count_within(bounds, self.view.guard()))
    }

    /// Returns the entry whose key has `number` smaller keys, or `None` if there are fewer keys:
    /// see [`View::nth`].
    pub fn nth(&self, number: usize) -> Option<Entry<'g, K, V>> {
        // SAFETY: the index is that of the view's map.
        self.index.nth_of(number, self.view.guard()).map(|found| unsafe { self.view.found(found) })
    }
}
