//! The keys of maps. `form.rs` has the forms in which indexes hold them; `numbers.rs`, `text.rs`,
//! `compound.rs`, `reverse.rs` and `addresses.rs` implement [`Key`] for the types of the table in
//! [`crate::key`]; `order.rs` has [`check_order`].

mod addresses;
mod compound;
mod form;
mod numbers;
mod order;
mod reverse;
mod text;

pub use form::{DefaultIndex, Form, Forms};
pub use order::{OrderMismatch, check_order};

use crate::encoding::{Decoder, Encoder, IndexKey};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::marker::PhantomData;

/// The form of a key of type `K`, as an index takes it.
pub type FormRef<'a, K> = <<K as Key>::Form as IndexKey>::Ref<'a>;

/// A type that a [`Map`](crate::Map) can be keyed by: it has an encoding that keeps its order.
///
/// Keys are all types of [the table](crate::key#encodings): numbers, strings, byte strings, times,
/// addresses, and arrays, tuples, `Option`s and [`Reverse`](std::cmp::Reverse) of keys.
/// [`#[derive(Key)]`](macro@crate::Key), of the feature `derive`, implements the trait for structs
/// and enums of keys. A map sorts its keys by the type's [`Ord`], and floats by [`f64::total_cmp`].
///
/// ```
/// use silvics::{Key, Map};
///
/// #[derive(Key, Clone, Debug, PartialEq, Eq)]
/// struct Message {
///     room: String,
///     number: u64,
/// }
///
/// let map: Map<Message, &'static str> = Map::new();
/// map.insert(Message { room: "tea".into(), number: 2 }, "second");
/// map.insert(Message { room: "tea".into(), number: 1 }, "first");
/// let map = map.pin();
/// let found: Vec<_> = map.iter().map(|(key, value)| (key.number, *value)).collect();
/// assert_eq!(found, [(1, "first"), (2, "second")]);
/// // The derive also makes `MessageRef`, the borrowed form: a lookup by it allocates nothing.
/// let key = MessageRef { room: "tea".into(), number: 2 };
/// assert_eq!(map.get(&key).as_deref(), Some(&"second"));
/// ```
///
/// # The order
/// The derive also implements `Ord`, in the order of the encoding, so that a key has one order
/// everywhere. A second `Ord` does not compile:
///
/// ```compile_fail,E0119
/// # use std::cmp::Ordering;
/// #[derive(silvics::Key, Clone, Debug, PartialEq, Eq)]
/// struct ByLength(String);
///
/// impl Ord for ByLength {
///     fn cmp(&self, other: &Self) -> Ordering {
///         self.0.len().cmp(&other.0.len())
///     }
/// }
/// ```
///
/// ```compile_fail,E0119
/// #[derive(silvics::Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Twice(u64);
/// ```
///
/// `#[key(reverse)]` on a field sorts it in descending order, as the key type
/// [`Reverse`](std::cmp::Reverse) does. So the newest version of a key comes first:
///
/// ```
/// use silvics::{Key, Map};
///
/// #[derive(Key, Clone, Debug, PartialEq, Eq)]
/// struct Version {
///     key: Vec<u8>,
///     #[key(reverse)]
///     sequence: u64,
/// }
///
/// let map: Map<Version, &str> = Map::new();
/// map.insert(Version { key: b"a".into(), sequence: 7 }, "old");
/// map.insert(Version { key: b"a".into(), sequence: 9 }, "new");
/// // The newest version that sequence 8 can see, then all versions.
/// let view = map.pin();
/// let seen = view.range(Version { key: b"a".into(), sequence: 8 }..).next();
/// assert_eq!(*seen.unwrap().1, "old");
/// assert!(view.prefix((b"a",)).map(|(_, value)| *value).eq(["new", "old"]));
/// assert!(Version { key: vec![], sequence: 9 } < Version { key: vec![], sequence: 8 });
/// ```
///
/// A type without an encoding is no key:
///
/// ```compile_fail,E0277
/// silvics::Map::<std::time::Instant, u64>::new();
/// ```
///
/// # Implementing it by hand
/// An implementation must keep what [the table](crate::key) states for other types:
/// * Different keys have different forms, and the forms have the order of the keys.
/// * No key that [`AsKey::write`] writes is a prefix of another one.
/// * [`Key::read`] and [`Key::from_form`] return the key that was written.
/// * [`Key::compare`] has the order of the forms, as its default has.
///
/// [`key::check_order`](crate::key::check_order) finds keys of which this is not true.
///
/// An implementation that breaks this finds wrong keys, or panics; it never causes undefined
/// behaviour. Inserting a key that stands for a `String` but is not UTF-8 panics.
#[diagnostic::on_unimplemented(
    message = "a map cannot be keyed by `{Self}`",
    label = "no encoding keeps the order of this type",
    note = "derive it for structs and enums (feature `derive`): `#[derive(silvics::Key)]` writes \
            the `Ord`, too",
    note = "if the type needs another order, implement `silvics::Key` by hand"
)]
pub trait Key: AsKey<Self> + Sized + 'static {
    /// The form in which an index holds the key: `u64`, `u128` or `[u8]`.
    type Form: Form + ?Sized;
    /// A borrowed key, as a map returns it: the number itself, or `&str` for strings.
    type Ref<'a>: AsKey<Self> + Clone + Debug + PartialEq;
    /// A borrowed key that is a part of another key. A string is a [`Cow`](std::borrow::Cow), which
    /// is owned only if the string contains a byte 0, or lies in a [`Reverse`](std::cmp::Reverse).
    type Part<'a>: AsKey<Self> + Clone + Debug + PartialEq;

    /// Compares two keys in the order of their forms, which is the order of a map.
    ///
    /// The default encodes both keys. For types of this crate and derived ones this is
    /// [`Ord::cmp`], or [`f64::total_cmp`] for floats.
    fn compare(&self, other: &Self) -> Ordering {
        let with_other = |one: &[u8]| Encoder::encode(|to| other.write(to), |two| one.cmp(two));
        Encoder::encode(|to| self.write(to), with_other)
    }

    /// Decodes a form.
    fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_>;

    /// Decodes a form that an index holds, without checking it.
    ///
    /// # Safety
    /// [`Key::admit`] has returned for this form, or a type with [`AsKey::vouches`] has written it.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn from_own_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
        Self::from_form(form)
    }

    /// Panics if [`Key::from_own_form`] relies on a property of the form that this form lacks.
    #[doc(hidden)]
    #[inline(always)]
    fn admit(form: FormRef<'_, Self>) {
        _ = form;
    }

    /// Reads a key that [`AsKey::write`] wrote.
    fn read<'a>(from: &mut Decoder<'a>) -> Self::Part<'a>;

    /// Reads `N` keys, one behind the other.
    #[doc(hidden)]
    fn read_array<'a, const N: usize>(from: &mut Decoder<'a>) -> [Self::Part<'a>; N] {
        std::array::from_fn(|_| Self::read(from))
    }

    /// Converts a borrowed key to a part of another key.
    fn into_part(key: Self::Ref<'_>) -> Self::Part<'_>;

    /// Copies a borrowed part.
    fn part_to_owned(part: Self::Part<'_>) -> Self;

    /// Copies a borrowed key.
    fn to_owned(key: Self::Ref<'_>) -> Self {
        Self::part_to_owned(Self::into_part(key))
    }
}

/// A type that stands for a key of type `K` in calls, so that no `K` need be made: `&str` for
/// `String`, `(&str, u64)` for `(String, u64)`, and [`Key::Ref`] for every key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand for a key of type `{K}`",
    label = "not a key of this map"
)]
pub trait AsKey<K: Key> {
    /// Calls `then` with the key's form.
    fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, K>) -> R) -> R;

    /// The key's form if it is available without an encoding, as for numbers and strings. It must
    /// equal the form that [`AsKey::with_form`] passes on.
    #[inline(always)]
    fn form(&self) -> Option<FormRef<'_, K>> {
        None
    }

    /// Whether this type passes on only valid forms of keys. Types of this crate can say so; other
    /// types cannot, since only this crate makes a [`Vouched`].
    #[doc(hidden)]
    #[inline(always)]
    fn vouches(&self) -> Option<Vouched<Self>> {
        None
    }

    /// Writes the key as a part of another.
    fn write(&self, to: &mut Encoder);

    /// Writes all of `keys`, one behind the other.
    #[doc(hidden)]
    fn write_all(keys: &[Self], to: &mut Encoder)
    where
        Self: Sized,
    {
        for key in keys {
            key.write(to);
        }
    }
}

/// Evidence that type `Q` passes on only valid forms of keys. Only this crate makes one.
#[doc(hidden)]
pub struct Vouched<Q: ?Sized>(PhantomData<Q>);

impl<Q: ?Sized> Vouched<Q> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

/// A type that stands for a prefix of keys of type `K`: `&str` for `String`, and a tuple with fewer
/// parts for tuples, such as `("a",)` for `(String, u64)`.
pub trait AsPrefix<K: Key<Form = [u8]>> {
    /// Calls `then` with the bytes that the forms of all these keys begin with.
    fn with_prefix<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R;
}

impl<K: Key, Q: AsKey<K> + ?Sized> AsKey<K> for &Q {
    #[inline(always)]
    fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, K>) -> R) -> R {
        (**self).with_form(then)
    }
    #[inline(always)]
    fn form(&self) -> Option<FormRef<'_, K>> {
        (**self).form()
    }
    #[inline(always)]
    fn vouches(&self) -> Option<Vouched<Self>> {
        (**self).vouches().map(|_| Vouched::new())
    }
    #[inline]
    fn write(&self, to: &mut Encoder) {
        (**self).write(to);
    }
}

impl<K: Key<Form = [u8]>, Q: AsPrefix<K> + ?Sized> AsPrefix<K> for &Q {
    fn with_prefix<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_prefix(then)
    }
}
