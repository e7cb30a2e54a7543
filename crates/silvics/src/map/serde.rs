//! Maps and sets in the formats of the crate `serde`: the feature `serde`.
//!
//! A map is serialized as a map, ascending by key, and a set as a sequence. Deserialization builds
//! the map by methods that return errors: input must not be able to end the program.

use super::batch::Caller;
use super::key::Key;
use super::{Map, MapIndex, Set, Value, ValueGuard, ValueRef};
use crate::index::Options;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::OnceCell;
use std::fmt;
use std::marker::PhantomData;

/// Serializes the map as a map, ascending by key, with the feature `serde`.
///
/// **Serialization is not atomic.** It is a scan with the guarantee of
/// [`View::range`](super::View::range). To save a map as it was at one moment, stop all writers
/// meanwhile. The map is pinned until the call returns.
///
/// Binary formats (those that are not `is_human_readable`) may need the number of entries first.
/// For them the call collects the entries before, which takes memory for the borrowed keys and one
/// word for each value.
///
/// Keys are written as the map borrows them: strings as `str`, and derived keys as their `Ref`
/// type. Implement `Serialize` for such a type in one line, so that a key is read as it was
/// written:
///
/// ```
/// use serde::{Deserialize, Serialize, Serializer};
/// use silvics::{Key, Set};
///
/// #[derive(Key, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
/// struct Message {
///     room: String,
///     number: u64,
/// }
///
/// impl Serialize for MessageRef<'_> {
///     fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
///         <Message as Key>::to_owned(self.clone()).serialize(serializer)
///     }
/// }
///
/// let set: Set<Message> = [Message { room: "tea".into(), number: 1 }].into_iter().collect();
/// let json = serde_json::to_string(&set)?;
/// assert_eq!(json, r#"[{"room":"tea","number":1}]"#);
/// let back: Set<Message> = serde_json::from_str(&json)?;
/// assert!(back.contains(MessageRef { room: "tea".into(), number: 1 }));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// The call returns the errors of the format. For example, JSON has no maps keyed by tuples.
impl<K, V, I> Serialize for Map<K, V, I>
where
    K: Key,
    for<'g> K::Ref<'g>: Serialize,
    V: Value + Serialize,
    I: MapIndex<Key = K::Form>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = self.pin();
        if serializer.is_human_readable() {
            return serializer.collect_map(view.iter());
        }
        serializer.collect_map(view.iter().collect::<Vec<_>>())
    }
}

/// Serializes the set as an ascending sequence, with the feature `serde`. The guarantees are those
/// of the `Serialize` implementation of [`Map`].
impl<K, I> Serialize for Set<K, I>
where
    K: Key,
    for<'g> K::Ref<'g>: Serialize,
    I: MapIndex<Key = K::Form>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = self.pin();
        if serializer.is_human_readable() {
            return serializer.collect_seq(view.iter());
        }
        serializer.collect_seq(view.iter().collect::<Vec<_>>())
    }
}

/// Serializes the value, with the feature `serde`.
impl<V: Value + Serialize> Serialize for ValueRef<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// Serializes the value, with the feature `serde`.
impl<V: Value + Serialize> Serialize for ValueGuard<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// The visitor that fills a map or a set of type `T`.
struct Filling<T>(PhantomData<fn() -> T>);

/// A map of the entries that `next` returns, up to the first error.
fn collected<K: Key, V: Value, I: MapIndex<Key = K::Form>, E: Error>(
    mut next: impl FnMut() -> Option<Result<(K, V), E>>,
) -> Result<Map<K, V, I>, E> {
    let mut map = Map::with_options(&Options::default()).map_err(E::custom)?;
    let failed = OnceCell::new();
    let entries = std::iter::from_fn(|| match next()? {
        Ok(entry) => Some(entry),
        Err(error) => {
            _ = failed.set(error); // the first one: no entry comes after it
            None
        }
    });
    let done = map.do_collect(entries.fuse(), || failed.get().is_none(), &Caller);
    failed.into_inner().map_or(done.map_err(E::custom), Err)?;
    Ok(map)
}

/// Deserializes a map without a memory limit, with the feature `serde`. The entries may come in any
/// order; if a key occurs twice, the later entry wins.
///
/// # Errors
/// The call returns the errors of the format, of keys and of values. If an allocation fails or a
/// key is too long, it returns the message of the [`AllocError`](crate::AllocError). The entries
/// read before are dropped.
impl<'de, K, V, I> Deserialize<'de> for Map<K, V, I>
where
    K: Key + Deserialize<'de>,
    V: Value + Deserialize<'de>,
    I: MapIndex<Key = K::Form>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Filling::<Self>(PhantomData))
    }
}

impl<'de, K, V, I> Visitor<'de> for Filling<Map<K, V, I>>
where
    K: Key + Deserialize<'de>,
    V: Value + Deserialize<'de>,
    I: MapIndex<Key = K::Form>,
{
    type Value = Map<K, V, I>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        collected(|| entries.next_entry::<K, V>().transpose())
    }
}

/// Deserializes a set without a memory limit, with the feature `serde`. Keys may come in any order
/// and more than once. The errors are those of a [`Map`].
impl<'de, K, I> Deserialize<'de> for Set<K, I>
where
    K: Key + Deserialize<'de>,
    I: MapIndex<Key = K::Form>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Filling::<Self>(PhantomData))
    }
}

impl<'de, K, I> Visitor<'de> for Filling<Set<K, I>>
where
    K: Key + Deserialize<'de>,
    I: MapIndex<Key = K::Form>,
{
    type Value = Set<K, I>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence of keys")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut keys: A) -> Result<Self::Value, A::Error> {
        let map = collected(|| Some(keys.next_element::<K>().transpose()?.map(|key| (key, ()))))?;
        Ok(map.into())
    }
}
