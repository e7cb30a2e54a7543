//! Keys of indexes: their columns, their forms, and their copies in a transaction.
//!
//! An index holds the keys of [`silvics::Key`]: a single number as a word, every other key as a
//! byte string. The form of a row's key is computed from the row, so that it equals the form of the
//! Rust key that a caller passes.

use crate::column::{Field, Type};
use crate::schema::Place;
use silvics::key::{AsKey, Encoder};
use silvics::{IndexKey, Key};

/// The form in which an index holds its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum FormKind {
    /// A word.
    Word,
    /// A byte string.
    Bytes,
}

impl FormKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Word => "number",
            Self::Bytes => "byte string",
        }
    }
}

/// A key in any form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyRef<'a> {
    /// A number.
    Word(u64),
    /// A byte string.
    Bytes(&'a [u8]),
}

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for [u8] {}
}

/// A form of keys that the store's indexes hold: `u64` or `[u8]`. The trait is sealed.
pub trait KeyForm: silvics::key::Form + IndexKey + private::Sealed {
    /// Hides the type of a key.
    fn erase<'a: 'a>(key: Self::Ref<'a>) -> KeyRef<'a>;
    /// Returns the key that `erase` was given. A key of another form, which the store never
    /// passes, becomes the smallest key.
    fn restore<'a: 'a>(key: KeyRef<'a>) -> Self::Ref<'a>;
    #[doc(hidden)]
    const KIND: FormKind;
}

impl KeyForm for u64 {
    #[inline(always)]
    fn erase<'a: 'a>(key: u64) -> KeyRef<'a> {
        KeyRef::Word(key)
    }
    #[inline(always)]
    fn restore<'a: 'a>(key: KeyRef<'a>) -> u64 {
        match key {
            KeyRef::Word(word) => word,
            KeyRef::Bytes(_) => 0,
        }
    }
    const KIND: FormKind = FormKind::Word;
}

impl KeyForm for [u8] {
    #[inline(always)]
    fn erase<'a: 'a>(key: &'a [u8]) -> KeyRef<'a> {
        KeyRef::Bytes(key)
    }
    #[inline(always)]
    fn restore<'a: 'a>(key: KeyRef<'a>) -> &'a [u8] {
        match key {
            KeyRef::Word(_) => &[],
            KeyRef::Bytes(bytes) => bytes,
        }
    }
    const KIND: FormKind = FormKind::Bytes;
}

/// A number that spreads the keys of index number `index`: each byte of a key changes its high
/// half.
#[inline]
pub(crate) fn spread(index: u64, key: KeyRef<'_>) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    // A bit of a factor changes no lower bit of the product, so its halves are folded.
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(ODD);
        product as u64 ^ (product >> 64) as u64
    };
    let start = mix(ODD, index);
    let state = match key {
        KeyRef::Word(word) => mix(start, word),
        KeyRef::Bytes(bytes) => {
            let mut chunks = bytes.chunks_exact(8);
            let mut state = mix(start, bytes.len() as u64);
            for chunk in &mut chunks {
                state = mix(state, chunk.first_chunk().map_or(0, |c| u64::from_le_bytes(*c)));
            }
            chunks.remainder().iter().fold(state, |state, byte| mix(state, u64::from(*byte)))
        }
    };
    mix(state, ODD)
}

/// A Rust type of the keys of an index: a number, `Vec<u8>`, `String`, or a tuple of up to eight of
/// them. It names the types of the index's columns.
pub trait RowKey: Key<Form: KeyForm> {
    /// Whether columns of these types have such keys.
    #[doc(hidden)]
    fn suits(columns: &[Type]) -> bool;
    /// The name of the type.
    #[doc(hidden)]
    fn name() -> String;
}

macro_rules! scalars {
    ($($key:ty: $field:ty),*) => {$(
        impl RowKey for $key {
            fn suits(columns: &[Type]) -> bool {
                matches!(columns, [column] if <$field as Field>::suits(*column))
            }
            fn name() -> String {
                stringify!($key).into()
            }
        }
    )*};
}

scalars! { u8: u8, u16: u16, u32: u32, u64: u64, i32: i32, i64: i64, f64: f64, Vec<u8>: [u8], String: str }

macro_rules! tuples {
    ($($key:ident $at:tt),*) => {
        impl<$($key: RowKey),*> RowKey for ($($key,)*) {
            fn suits(columns: &[Type]) -> bool {
                let parts: &[fn(&[Type]) -> bool] = &[$($key::suits),*];
                // A key of one part is that part itself.
                parts.len() > 1
                    && columns.len() == parts.len()
                    && parts.iter().zip(columns.chunks(1)).all(|(suits, column)| suits(column))
            }
            fn name() -> String {
                format!("({})", [$($key::name()),*].join(", "))
            }
        }
    };
}

tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// Calls a function with a column's value as a key.
macro_rules! with_value {
    ($column:expr, $row:expr, $value:ident => $then:expr) => {{
        let field = &$row[$column.start..$column.start + $column.kind.width()];
        match $column.kind {
            Type::U8 => {
                let $value = <u8 as Field>::read(field);
                $then
            }
            Type::U16 => {
                let $value = <u16 as Field>::read(field);
                $then
            }
            Type::U32 => {
                let $value = <u32 as Field>::read(field);
                $then
            }
            Type::U64 => {
                let $value = <u64 as Field>::read(field);
                $then
            }
            Type::I32 => {
                let $value = <i32 as Field>::read(field);
                $then
            }
            Type::I64 => {
                let $value = <i64 as Field>::read(field);
                $then
            }
            Type::F64 => {
                let $value = <f64 as Field>::read(field);
                $then
            }
            Type::Bytes(_) | Type::Text(_) => {
                let $value = <[u8] as Field>::read(field);
                $then
            }
        }
    }};
}

/// Writes the columns of a row as parts of a key. A text is the same part as its bytes.
fn write_parts(columns: &[Place], row: &[u8], to: &mut Encoder) {
    for column in columns {
        with_value!(column, row, value => part(&value, to));
    }
}

/// A value of a column that is a part of a key.
trait Part {
    type Key: Key;
}

macro_rules! parts {
    ($($value:ty => $key:ty),*) => {$(
        impl Part for $value {
            type Key = $key;
        }
    )*};
}

parts! { u8 => u8, u16 => u16, u32 => u32, u64 => u64, i32 => i32, i64 => i64, f64 => f64, &[u8] => Vec<u8> }

fn part<V: Part + AsKey<V::Key>>(value: &V, to: &mut Encoder) {
    value.write(to);
}

/// The word of a number as a key.
fn word<K: Key<Form = u64>>(value: &impl AsKey<K>) -> u64 {
    value.with_form(|word| word)
}

/// Calls `then` with the key of a row: `columns`, followed by `more`.
pub(crate) fn with_key<R>(
    columns: &[Place],
    more: &[Place],
    row: &[u8],
    then: impl FnOnce(KeyRef<'_>) -> R,
) -> R {
    if let ([column], []) = (columns, more) {
        let field = &row[column.start..column.start + column.kind.width()];
        return then(match column.kind {
            Type::U8 => KeyRef::Word(word::<u8>(&<u8 as Field>::read(field))),
            Type::U16 => KeyRef::Word(word::<u16>(&<u16 as Field>::read(field))),
            Type::U32 => KeyRef::Word(word::<u32>(&<u32 as Field>::read(field))),
            Type::U64 => KeyRef::Word(word::<u64>(&<u64 as Field>::read(field))),
            Type::I32 => KeyRef::Word(word::<i32>(&<i32 as Field>::read(field))),
            Type::I64 => KeyRef::Word(word::<i64>(&<i64 as Field>::read(field))),
            Type::F64 => KeyRef::Word(word::<f64>(&<f64 as Field>::read(field))),
            Type::Bytes(_) | Type::Text(_) => KeyRef::Bytes(<[u8] as Field>::read(field)),
        });
    }
    let write = |to: &mut Encoder| {
        write_parts(columns, row, to);
        write_parts(more, row, to);
    };
    Encoder::encode(write, |bytes| then(KeyRef::Bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Places, Schema};
    use proptest::prelude::*;

    fn places() -> Places {
        let schema = Schema::new("t")
            .column("a", Type::I32)
            .column("b", Type::Bytes(20))
            .column("c", Type::U64)
            .column("d", Type::F64)
            .column("e", Type::Text(9));
        Places::of(&schema).unwrap()
    }

    fn row(places: &Places, a: i32, b: &[u8], c: u64, d: f64, e: &str) -> Vec<u8> {
        let mut row = vec![0; places.words * 8];
        let field = |at: usize| {
            let column = &places.columns[at];
            column.start..column.start + column.kind.width()
        };
        <i32 as Field>::write(&mut row[field(0)], a).unwrap();
        <[u8] as Field>::write(&mut row[field(1)], b).unwrap();
        <u64 as Field>::write(&mut row[field(2)], c).unwrap();
        <f64 as Field>::write(&mut row[field(3)], d).unwrap();
        <str as Field>::write(&mut row[field(4)], e).unwrap();
        row
    }

    fn of(key: KeyRef<'_>) -> Vec<u8> {
        match key {
            KeyRef::Word(word) => word.to_be_bytes().into(),
            KeyRef::Bytes(bytes) => bytes.into(),
        }
    }

    proptest! {
        #[test]
        fn a_rows_key_is_that_of_the_rust_key(
            a: i32, b in prop::collection::vec(0_u8..3, 0..20), c: u64, d: f64, e in "[a-c]{0,9}",
        ) {
            let places = places();
            let row = row(&places, a, &b, c, d, &e);
            let [pa, pb, pc, pd, pe] = [0, 1, 2, 3, 4].map(|at| places.columns[at].clone());
            let of_row = |columns: &[Place], more: &[Place]| with_key(columns, more, &row, of);
            let word = |word: u64| word.to_be_bytes().to_vec();
            prop_assert_eq!(of_row(std::slice::from_ref(&pa), &[]), AsKey::<i32>::with_form(&a, word));
            prop_assert_eq!(of_row(std::slice::from_ref(&pd), &[]), AsKey::<f64>::with_form(&d, word));
            prop_assert_eq!(of_row(std::slice::from_ref(&pb), &[]), b.clone());
            prop_assert_eq!(of_row(std::slice::from_ref(&pe), &[]), e.as_bytes());
            type Two = (i32, Vec<u8>);
            let two = AsKey::<Two>::with_form(&(a, &b[..]), <[u8]>::to_vec);
            prop_assert_eq!(of_row(std::slice::from_ref(&pa), std::slice::from_ref(&pb)), two);
            type All = (String, f64, u64, Vec<u8>, i32);
            let all = AsKey::<All>::with_form(&(&e[..], d, c, &b[..], a), <[u8]>::to_vec);
            prop_assert_eq!(of_row(&[pe, pd, pc], &[pb, pa]), all);
        }
    }

    /// Keys that differed in their last bytes, or numbers that differed in their high bits, all had
    /// one lock.
    #[test]
    fn keys_spread_whichever_bits_differ() {
        let places = |spreads: &mut dyn Iterator<Item = u64>| {
            let places: std::collections::HashSet<u64> =
                spreads.map(|spread| (spread >> 32) % 8192).collect();
            places.len()
        };
        // 1000 random keys would have 941 places of 8192.
        for shift in 0..=54 {
            let words = places(&mut (0..1000).map(|n| spread(7, KeyRef::Word(n << shift))));
            assert!(words > 900, "{words} places of words with bits from {shift} on");
            let bytes = |n: u64| spread(7, KeyRef::Bytes(&(n << shift).to_be_bytes()));
            let bytes = places(&mut (0..1000).map(bytes));
            assert!(bytes > 900, "{bytes} places of byte strings with bits from {shift} on");
        }
        let texts =
            places(&mut (0..1000).map(|n| spread(7, KeyRef::Bytes(format!("{n}").as_bytes()))));
        assert!(texts > 900, "{texts}");
    }

    #[test]
    fn rust_keys_know_their_columns() {
        assert!(<(u32, String)>::suits(&[Type::U32, Type::Text(3)]));
        assert!(!<(u32, String)>::suits(&[Type::U32, Type::Bytes(3)]));
        assert!(!<(u32, u32)>::suits(&[Type::U32]));
        let suits = <u64 as RowKey>::suits;
        assert!(suits(&[Type::U64]) && !suits(&[Type::U64, Type::U64]));
        assert_eq!(<(u32, Vec<u8>)>::name(), "(u32, Vec<u8>)");
    }
}
