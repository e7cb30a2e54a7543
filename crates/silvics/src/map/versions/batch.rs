//! Writes of many keys at once.

use super::clock::Drawn;
use super::node::{ABORTED, BatchState, Kind, Node, NodeMemory, Word};
use super::ops::{Draft, Expected, Refusal};
use super::{BatchError, OwnedKey, Value, VersionedMap};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::reserved;
use crate::map::key::{AsKey, DefaultIndex, Key};
use crate::map::ops::admit;
use crate::map::outcome::is_shortage;
use crate::map::{Map, MapIndex};
use silvics_sync::atomic::Ordering::SeqCst;
use std::collections::BTreeMap;
use std::fmt;

/// One write of a batch.
struct Write<V> {
    value: Option<V>,
    expected: Expected,
}

/// The writes of a batch, in the order of their keys.
type Writes<K, V> = BTreeMap<OwnedKey<K>, Write<V>>;

/// Writes of a [`VersionedMap`] that take effect at once, made by [`VersionedMap::batch`]. Readers
/// see all of them or none. A later write of a key replaces an earlier one, and drops its value.
/// The number that the earlier one has expected still counts, unless the later one expects one.
///
/// ```
/// use silvics::VersionedMap;
///
/// let accounts: VersionedMap<String, i64> = VersionedMap::new();
/// let opened = accounts.put("ada", 10)?;
/// let mut transfer = accounts.batch();
/// transfer.put_if_latest("ada", Some(opened), 7);
/// transfer.put("bob", 3);
/// let version = transfer.commit()?;
/// let now = accounts.snapshot();
/// assert_eq!(now.get_version("ada"), Some((version, &7)));
/// assert_eq!(now.get_version("bob"), Some((version, &3)));
///
/// let mut late = accounts.batch();
/// late.put_if_latest("ada", Some(opened), 0);
/// late.put("bob", 10);
/// assert!(late.commit().is_err());
/// assert_eq!(accounts.pin().get_latest("bob").as_deref(), Some(&3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batch<'m, K: Key, V: Value, I: MapIndex<Key = <K as Key>::Form> = DefaultIndex<K>> {
    map: &'m VersionedMap<K, V, Drawn, I>,
    writes: Writes<K, V>,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> VersionedMap<K, V, Drawn, I> {
    /// Begins a batch of writes.
    pub fn batch(&self) -> Batch<'_, K, V, I> {
        Batch { map: self, writes: BTreeMap::new() }
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Batch<'_, K, V, I> {
    fn add(&mut self, key: &impl AsKey<K>, value: Option<V>, expected: Expected) {
        let key = key.with_form(|form| {
            admit::<K>(key, form);
            <K::Form as IndexKey>::to_owned(form)
        });
        let mut write = Write { value, expected };
        if let Some(earlier) = self.writes.remove(&key)
            && matches!(write.expected, Expected::Any)
        {
            write.expected = earlier.expected;
        }
        self.writes.insert(key, write);
    }

    /// Adds a write of a key.
    pub fn put(&mut self, key: impl AsKey<K>, value: V) {
        self.add(&key, Some(value), Expected::Any);
    }

    /// Adds a write of a key whose newest version must have this number when the batch takes
    /// effect. `None` means that the key must be absent or deleted.
    pub fn put_if_latest(&mut self, key: impl AsKey<K>, latest: Option<u64>, value: V) {
        self.add(&key, Some(value), Expected::Latest(latest));
    }

    /// Adds a deletion of a key. If the key is absent, it stays so.
    pub fn delete(&mut self, key: impl AsKey<K>) {
        self.add(&key, None, Expected::Any);
    }

    /// Adds a deletion of a key whose newest version must have this number.
    pub fn delete_if_latest(&mut self, key: impl AsKey<K>, latest: u64) {
        self.add(&key, None, Expected::Latest(Some(latest)));
    }

    /// The number of writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Removes all writes from the batch and returns them in ascending order of their keys: values,
    /// or `None` for deletions.
    pub fn take_writes(&mut self) -> impl Iterator<Item = (K, Option<V>)> {
        let key =
            |key: &OwnedKey<K>| Map::<K, V, I>::owned_key_of(<K::Form as IndexKey>::borrow(key));
        std::mem::take(&mut self.writes).into_iter().map(move |(of, write)| (key(&of), write.value))
    }

    /// Makes all writes visible at once, and returns the number of their versions. The batch is
    /// empty then. If it fails, no write is visible at any moment, and the batch has all of them.
    /// If an allocation fails, it returns free memory to the system, and tries once more.
    ///
    /// Writers of the same keys wait until the call returns. Readers do not wait.
    pub fn commit(&mut self) -> Result<u64, BatchError> {
        match self.try_commit() {
            Err(BatchError::Alloc(error)) if is_shortage(error) => {
                self.map.shrink();
                self.try_commit()
            }
            committed => committed,
        }
    }

    fn try_commit(&mut self) -> Result<u64, BatchError> {
        let map = self.map;
        let guard = map.guard();
        let number = put_all(map, &mut self.writes, &guard).map_err(|refusal| match refusal {
            Refusal::Alloc(error) => BatchError::Alloc(error),
            Refusal::Conflict(latest) => BatchError::Conflict { latest },
            Refusal::Exists(_) | Refusal::NotNewer(_) => unreachable!("the map draws its numbers"),
        })?;
        self.writes.clear();
        drop(guard);
        map.nodes.drop_some();
        Ok(number)
    }
}

/// Puts the versions of a batch, in the order of their keys.
fn put_all<K: Key, V: Value, I: MapIndex<Key = K::Form>>(
    map: &VersionedMap<K, V, Drawn, I>,
    writes: &mut Writes<K, V>,
    guard: &Guard,
) -> Result<u64, Refusal> {
    let mut placed: Vec<Option<Node<'_, V>>> = Vec::new();
    reserved(&mut placed, writes.len())?;
    let first = if planted(Canary::BatchReadyEarly) { BatchState::READY } else { BatchState::OPEN };
    let make =
        |memory: &NodeMemory<V, I::Placement>| memory.make(Kind::Tombstone, first, Word::NONE);
    let object = map.nodes.made_under_lock(guard, make)?;
    // The state takes the place of a stamp.
    // SAFETY: the object is made, and retired below.
    let batch = unsafe { BatchState::of_stamp(Node::<V>::new(object).stamp_address()) };
    let stamp = batch.stamp();
    let mut refused = None;
    for (key, write) in &mut *writes {
        let mut draft = Draft::new(map, stamp, write.value.take());
        let form = <K::Form as IndexKey>::borrow(key);
        match map.push(form, &mut draft, write.expected, guard) {
            Ok(node) => placed.push(node),
            Err(refusal) => {
                write.value = draft.into_value();
                refused = Some(refusal);
                break;
            }
        }
    }
    let result = match refused {
        None => {
            _ = batch.0.compare_exchange(BatchState::OPEN, BatchState::READY, SeqCst, SeqCst);
            let number = map.decide(batch) - BatchState::FAILED;
            for node in placed.iter().flatten() {
                // Readers may have done so.
                _ = node.stamp().compare_exchange(stamp, number, SeqCst, SeqCst);
            }
            for (node, key) in placed.iter().flatten().zip(writes.keys()) {
                if map.time.prunes() {
                    let is_over = node.older().is_some();
                    let form = <K::Form as IndexKey>::borrow(key);
                    map.sweep.note(is_over, map.prune_key(form, None, guard));
                    map.sweep_on(guard);
                }
            }
            Ok(number)
        }
        Some(refusal) => {
            batch.0.store(BatchState::FAILED, SeqCst);
            for (node, (key, write)) in placed.iter().zip(&mut *writes) {
                let Some(node) = node else { continue };
                node.stamp().store(ABORTED, SeqCst);
                // SAFETY: the version is aborted, so nobody reads its value. The guard keeps it.
                write.value = unsafe { node.take_value() };
                map.prune_key(<K::Form as IndexKey>::borrow(key), None, guard);
            }
            Err(refusal)
        }
    };
    // SAFETY: B2: no version has the batch as its stamp any more.
    unsafe { map.retire(Node::new(object), guard) };
    result
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Batch<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} writes)", self.len())
    }
}
