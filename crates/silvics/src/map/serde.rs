//! Maps and sets in the formats of the crate `serde`: the feature `serde`.
//!
//! A map is a map of such a format, ascending by key, and a set is a sequence. What is read goes in one by one, with the
//! methods that tell what went wrong: what comes from elsewhere must not be able to end the program.

use super::key::Key;
use super::{Map, MapIndex, Set, Value, ValueGuard, ValueRef};
use crate::index::Options;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// As a map, ascending by key, with the feature `serde`.
///
/// **It is a scan, and not one moment**: it promises under concurrent writes what [`View::range`](super::View::range) does. A map
/// that is to be saved as it was at a moment must have no writers meanwhile. The map is pinned until it is done.
///
/// Formats for machines (those that are not `is_human_readable`) may want to know first how many entries there are. For
/// them the entries are collected before, which takes memory for the keys as they are lent and a word for each value.
///
/// Keys are written as the map lends them, strings as `str` and derived keys as their `Ref` type. For such a one
/// `Serialize` is one line, which makes sure that it is read as it is written:
///
/// ```
/// use serde::{Deserialize, Serialize, Serializer};
/// use silvics::{Key, Set};
///
/// #[derive(Key, Serialize, Deserialize, Clone, Debug, PartialEq)]
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
/// Those of the format: JSON knows maps by strings and numbers only, so that one by tuples is none there.
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

/// As a sequence, ascending, with the feature `serde`; otherwise as a [`Map`].
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

/// As the value, with the feature `serde`.
impl<V: Value + Serialize> Serialize for ValueRef<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// As the value, with the feature `serde`.
impl<V: Value + Serialize> Serialize for ValueGuard<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// What fills a map or a set, of type `T`.
struct Filling<T>(PhantomData<fn() -> T>);

/// A map without a limit, with the feature `serde`. Of entries with the same key the last one wins, and they need not be in
/// any order.
///
/// # Errors
/// Those of the format, of keys and of values; and the sentence of an [`AllocError`](crate::AllocError) where memory cannot be had, or a
/// key is too long. What has been read until then is dropped.
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
        let map = Map::with_options(&Options::default()).map_err(A::Error::custom)?;
        while let Some((key, value)) = entries.next_entry::<K, V>()? {
            map.pin().try_upsert(key, value).map_err(A::Error::custom)?;
        }
        Ok(map)
    }
}

/// A set without a limit, with the feature `serde`. Keys may come more than once, and in any order; errors as of a [`Map`].
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
        let map = Map::with_options(&Options::default()).map_err(A::Error::custom)?;
        while let Some(key) = keys.next_element::<K>()? {
            map.pin().try_upsert(key, ()).map_err(A::Error::custom)?;
        }
        Ok(map.into())
    }
}
