//! Recording a map: [`Map::record`].

use super::key::Key;
use super::{Map, MapIndex, Value};
use crate::encoding::IndexKey;
use crate::recording::{Begun, RecordError, Recorder, Recording, TraceKey};
use std::io::Write;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Bound;
use std::ptr;

/// A map whose operations are recorded.
pub type RecordedMap<K, V, I> = Map<K, V, Recording<I>>;

/// The keys that are read under one pin while the keys of a map are written to its trace.
const AT_ONCE: usize = 1024;

impl<K: Key<Form: TraceKey>, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// Records the operations of this map as JSON lines, from now on: [`crate::recording`] has the
    /// format. The keys that are present are written first. The recorded map has the methods of
    /// this one, except for ranks and atomic ranges. [`Recorder::finish`] ends the recording and
    /// reports errors of the writer. `silvics advise --trace FILE` measures indexes with the trace.
    ///
    /// Operations wait for the writer, and are pinned meanwhile. So a slow writer keeps memory that
    /// any map of the domain frees. A writer that uses the map, or that takes a lock whose holder
    /// uses the map, blocks for ever.
    ///
    /// ```
    /// use silvics::Map;
    ///
    /// let map: Map<u64, String> = [(1, "one".to_owned()), (2, "two".to_owned())].into_iter().collect();
    /// let file = tempfile::tempfile()?;
    /// let (map, recorder) = map.record(file)?;
    /// map.insert(3, "three".to_owned());
    /// assert_eq!(map.get(2).as_deref().map(String::as_str), Some("two"));
    /// assert_eq!(recorder.finish()?, 2); // operations
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[expect(clippy::type_complexity, reason = "it is the map, either way")]
    pub fn record(
        self,
        to: impl Write + Send + 'static,
    ) -> Result<(RecordedMap<K, V, I>, Recorder), RecordError<Self>> {
        let begun = Begun::new::<K::Form>(to, self.len(), |each| {
            let mut after = None;
            loop {
                let (mut count, mut next) = (0, None);
                let guard = self.index.domain().pin();
                let last = after.as_ref().map(<K::Form as IndexKey>::borrow);
                let bounds = (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
                self.index.read_ahead(bounds, false, AT_ONCE, &guard, |key, _| {
                    count += 1;
                    if count == AT_ONCE {
                        next = Some(<K::Form as IndexKey>::to_owned(K::Form::shorten(key)));
                    }
                    each(key);
                });
                after = next;
                if after.is_none() {
                    return;
                }
            }
        });
        let begun = match begun {
            Ok(begun) => begun,
            Err(error) => return Err(RecordError { map: self, error }),
        };
        let this = ManuallyDrop::new(self);
        // SAFETY: the map is never dropped or used again, so each of its fields is moved once.
        let (index, values, budget) = unsafe {
            (
                ptr::read(&raw const this.index),
                ptr::read(&raw const this.values),
                ptr::read(&raw const this.budget),
            )
        };
        let (index, recorder) = begun.around(index);
        Ok((Map { index, values, budget, keys: PhantomData }, recorder))
    }
}
