//! Keys of maps ([`Key`]) and of indexes ([`IndexKey`]), and how the order of the former becomes that of the latter.
//!
//! # Encodings
//! An index knows three forms of keys: `u64`, `u128`, and byte strings. For all `a` and `b` of a type, and whatever follows
//! in the same byte string, `a < b` if and only if the form of `a` comes before that of `b`, and each form is
//! that of one key.
//!
//! | type | alone | as a part of another key |
//! |---|---|---|
//! | unsigned integers, `bool` | `u64` or `u128`: the number | big-endian, in as many bytes as the type has (`usize`: 8) |
//! | signed integers | with the sign bit flipped | as above |
//! | `char` | `u64`: the code point | 3 bytes, big-endian |
//! | `f32`, `f64` | the bits: of negative numbers all flipped, else the sign; the order of `total_cmp` | as above |
//! | strings, byte strings | their bytes | bytes 0 and 1 become (1, 1) and (1, 2), and a byte 0 follows |
//! | tuples, arrays, structs | their parts, one behind the other | the same |
//! | `Option`, enums | a byte (with more than 256 variants two) that counts the smaller variants, and the parts | the same |
//!
//! A part tells where it ends, so that a part that is the prefix of another comes first. (The end of a string is a byte
//! smaller than all others there may be.)

mod buffer;
mod compound;
mod index;
mod numbers;
mod text;

pub use buffer::{Decoder, Encoder};
#[doc(hidden)]
pub use buffer::{Form, Forms, no_variant, ranks};
pub(crate) use index::common_prefix;
pub use index::{
    IndexKey, decode_i64, decode_u64, decode_u128, encode_i64, encode_u64, encode_u128,
};

use std::fmt::Debug;
use std::marker::PhantomData;

/// A key as an index takes it.
pub type FormRef<'a, K> = <<K as Key>::Form as IndexKey>::Ref<'a>;

/// A type that a [`Map`](crate::Map) can be keyed by: it has an encoding that keeps its order.
///
/// Integers, `char`, `bool`, floats, `String`, `Vec<u8>` (and `Box` and `Arc` of `str` and `[u8]`), arrays, tuples of
/// up to twelve and `Option`s of such types are keys. [`#[derive(Key)]`](macro@crate::Key) makes structs and enums of them so.
/// Keys are in the order of the type's [`Ord`], floats in that of [`f64::total_cmp`].
///
/// ```
/// use silvics::{Key, Map};
///
/// #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
/// // `MessageRef` is derived, too: how a map lends such a key, and a lookup that allocates nothing.
/// let key = MessageRef { room: "tea".into(), number: 2 };
/// assert_eq!(map.get(&key).as_deref(), Some(&"second"));
/// ```
///
/// # By hand
/// Whoever implements it promises what the table above does for other types: that different keys have different forms, in
/// the keys' order, and none that is the prefix of another where [`AsKey::write`] writes it; and that
/// [`Key::read`] and [`Key::from_form`] give back what was written. A type that breaks this finds other
/// keys than its own, or a panic, and never undefined behaviour. What stands for a string and is no text is a panic where it would be inserted.
#[diagnostic::on_unimplemented(
    message = "a map cannot be keyed by `{Self}`",
    label = "no encoding keeps the order of this type",
    note = "derive it for structs and enums: `#[derive(silvics::Key)]`"
)]
pub trait Key: AsKey<Self> + Sized + 'static {
    /// The form in which an index holds the key: `u64`, `u128` or `[u8]`.
    type Form: Form + ?Sized;
    /// A key as a map lends it: by value, or for strings as `&str`.
    type Ref<'a>: AsKey<Self> + Clone + Debug + PartialEq;
    /// A key as it is lent inside another. Strings are [`Cow`](std::borrow::Cow)s, owned only if they contain one
    /// of the bytes 0 and 1, which are written otherwise.
    type Part<'a>: AsKey<Self> + Clone + Debug + PartialEq;

    /// The key of a form.
    fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_>;

    /// The key of a form that a map has, without a look whether it is one.
    ///
    /// # Safety
    /// [`Key::admit`] has returned for the form, or a type with [`AsKey::vouches`] has written it.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn from_own_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
        Self::from_form(form)
    }

    /// Looks whether a form is that of a key, and panics if not, where [`Key::from_own_form`] relies on that.
    #[doc(hidden)]
    #[inline(always)]
    fn admit(form: FormRef<'_, Self>) {
        _ = form;
    }

    /// Reads what [`AsKey::write`] has written.
    fn read<'a>(from: &mut Decoder<'a>) -> Self::Part<'a>;

    /// Reads so many keys, one behind the other.
    #[doc(hidden)]
    fn read_array<'a, const N: usize>(from: &mut Decoder<'a>) -> [Self::Part<'a>; N] {
        std::array::from_fn(|_| Self::read(from))
    }

    /// A key that is lent alone, as one that is inside another.
    fn into_part(key: Self::Ref<'_>) -> Self::Part<'_>;

    /// Copies a part.
    fn part_to_owned(part: Self::Part<'_>) -> Self;

    /// Copies a key.
    fn to_owned(key: Self::Ref<'_>) -> Self {
        Self::part_to_owned(Self::into_part(key))
    }
}

/// What a key of type `K` can be looked up by, without making one: `&str` for `String`, `(&str, u64)` for `(String,
/// u64)`, and whatever a map has lent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand for a key of type `{K}`",
    label = "not a key of this map"
)]
pub trait AsKey<K: Key> {
    /// Passes the key's form on.
    fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, K>) -> R) -> R;

    /// The key's form, if it need not be made: of numbers and strings. What [`AsKey::with_form`] passes on then.
    #[inline(always)]
    fn form(&self) -> Option<FormRef<'_, K>> {
        None
    }

    /// That the forms it passes on are those of keys: of types of this crate, and others can not say so.
    #[doc(hidden)]
    #[inline(always)]
    fn vouches(&self) -> Option<Vouched<Self>> {
        None
    }

    /// Writes the key as a part of another.
    fn write(&self, to: &mut Encoder);

    /// Writes so many keys, one behind the other.
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

/// That a type stands for keys rightly. Only this crate makes one, and each is of one type.
#[doc(hidden)]
pub struct Vouched<Q: ?Sized>(PhantomData<Q>);

impl<Q: ?Sized> Vouched<Q> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

/// What all keys of type `K` that begin in a certain way have in common: `&str` for `String`, and for tuples
/// one with fewer parts, `("a",)` for `(String, u64)`.
pub trait AsPrefix<K: Key<Form = [u8]>> {
    /// Passes the first bytes of the keys' form on.
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
