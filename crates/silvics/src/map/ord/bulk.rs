//! Building a map from sorted entries.

use super::OrdMap;
use super::order::Comparator;
use super::tree::New;
use crate::ca::build::Build;
use crate::error::{BulkLoadError, reserved};
use crate::index::Options;
use crate::map::value::{Draft, Value};
use silvics_pool::Placement;
use std::cmp::Ordering;

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> OrdMap<K, V, C, P, B> {
    /// Makes a map from entries in ascending order of their keys. This is faster than inserting
    /// them, and each node is nearly full. If the entries are not in order, the error has the
    /// position of the first wrong one, and all entries are dropped. Each key is compared with the
    /// one before it. O(n). Until the map is built, it takes up to 72 bytes for each entry beside
    /// the map, which do not count towards a limit.
    ///
    /// ```
    /// use silvics::ord::OnBorrowed;
    /// use silvics::{BulkLoadError, Options, OrdMap};
    ///
    /// let by_length = || OnBorrowed::new(|a: &str, b: &str| (a.len(), a).cmp(&(b.len(), b)));
    /// let words = ["ox", "ant", "bee"].map(|word| (word.to_string(), word.len()));
    /// let options = Options::default();
    /// let map = OrdMap::<String, usize, _>::from_sorted(by_length(), &options, words)?;
    /// assert_eq!(map.get("bee").as_deref(), Some(&3));
    ///
    /// let wrong = ["ox", "bee", "ant"].map(|word| (word.to_string(), 0));
    /// let error = OrdMap::<String, usize, _>::from_sorted(by_length(), &options, wrong).map(drop);
    /// assert_eq!(error, Err(BulkLoadError::Unsorted { position: 2 }));
    /// # Ok::<(), BulkLoadError>(())
    /// ```
    pub fn from_sorted(
        order: C,
        options: &Options,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, BulkLoadError> {
        let map = Self::with_options(order, options)?;
        let mut keys: Vec<(New<'_, K, P>, u64)> = Vec::new();
        let mut values: Vec<Draft<'_, V, P>> = Vec::new();
        let entries = entries.into_iter();
        let few = entries.size_hint().0.min(1 << 20); // the iterator may promise more than it has
        reserved(&mut keys, few)?;
        reserved(&mut values, few)?;
        for (position, (key, value)) in entries.enumerate() {
            // The pin ends before the iterator runs again, which may be slow.
            let guard = map.tree.domain().pin();
            let key = map.tree.draft(key, &guard).map_err(|(_, error)| error)?;
            let value = map.values.draft(value, &guard).map_err(|(_, error)| error)?;
            let order = keys.last().map(|(last, _)| last.compare(&key, map.order()));
            match order.unwrap_or(Ordering::Less) {
                Ordering::Less => {}
                Ordering::Equal => return Err(BulkLoadError::Duplicate { position }),
                Ordering::Greater => return Err(BulkLoadError::Unsorted { position }),
            }
            reserved(&mut keys, 1)?.push((key, value.word()));
            reserved(&mut values, 1)?.push(value);
        }
        // SAFETY: no other thread has the map. If this succeeds, the drafts are placed.
        unsafe { map.tree.load(&keys) }?;
        for ((key, _), value) in keys.into_iter().zip(values) {
            key.placed();
            value.placed();
        }
        Ok(map)
    }
}
