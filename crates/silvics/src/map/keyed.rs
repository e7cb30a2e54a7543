//! Values that contain their keys.

use super::key::{AsKey, Key};
use super::{DefaultIndex, Map};
use std::sync::Arc;

/// A type whose values contain their keys, such as the entries of a [`KeyedSet`].
///
/// [`insert_keyed`](super::View::insert_keyed) takes such a value by one move: the map encodes the
/// key while the value is in its place already, so that no key is cloned for the call.
///
/// The method [`key`](Keyed::key) returns a borrowed key: a reference to a field, or a tuple of
/// such references.
///
/// ```
/// use silvics::map::{Keyed, KeyedSet};
/// use silvics::AsKey;
/// use std::cmp::Reverse;
///
/// struct Version {
///     key: Vec<u8>,
///     sequence: u64,
///     text: String,
/// }
///
/// impl Keyed for Version {
///     type Key = (Vec<u8>, Reverse<u64>);
///
///     fn key(&self) -> impl AsKey<Self::Key> {
///         (&self.key, Reverse(self.sequence))
///     }
/// }
///
/// let versions: KeyedSet<Version> = KeyedSet::new();
/// for sequence in [1, 2] {
///     let text = format!("text {sequence}");
///     versions.insert_keyed(Version { key: b"a".to_vec(), sequence, text });
/// }
/// assert_eq!(versions.get((b"a", Reverse(1))).unwrap().text, "text 1");
/// assert_eq!(versions.pin().values().next().unwrap().text, "text 2");
/// ```
///
/// # Storing the key once
/// An index holds an encoded copy of each key, so an entry of a [`KeyedSet`] has its key twice. To
/// store it once, take the value apart and store the rest. The call borrows the key and moves the
/// rest, so this clones nothing either. The map returns the two parts together:
///
/// ```
/// use silvics::Map;
///
/// struct Order {
///     symbol: String,
///     number: u64,
///     text: String,
/// }
///
/// let orders: Map<(String, u64), String> = Map::new();
/// let order = Order { symbol: "tea".into(), number: 7, text: "two boxes".into() };
/// let Order { symbol, number, text } = order;
/// orders.insert((&symbol, number), text);
///
/// let view = orders.pin();
/// let ((symbol, number), text) = view.get_key_value(("tea", 7)).unwrap();
/// assert_eq!((&*symbol, number, &**text), ("tea", 7, "two boxes"));
/// ```
///
/// # The key of a stored value
/// The map calls [`key`](Keyed::key) once, while it inserts the value. If the value can change its
/// key afterwards, as by a `Mutex`, the map still holds it under the first one.
pub trait Keyed {
    /// The type of the keys.
    type Key: Key;

    /// The key of this value.
    fn key(&self) -> impl AsKey<Self::Key>;
}

impl<T: Keyed + ?Sized> Keyed for Arc<T> {
    type Key = T::Key;

    #[inline]
    fn key(&self) -> impl AsKey<Self::Key> {
        (**self).key()
    }
}

impl<T: Keyed + ?Sized> Keyed for Box<T> {
    type Key = T::Key;

    #[inline]
    fn key(&self) -> impl AsKey<Self::Key> {
        (**self).key()
    }
}

/// A set of values that contain their keys, sorted by them: a [`Map`] with all its methods. Insert
/// by [`Map::insert_keyed`], and iterate by [`View::values`](super::View::values).
pub type KeyedSet<T, I = DefaultIndex<<T as Keyed>::Key>> = Map<<T as Keyed>::Key, T, I>;
