//! Types of columns, and the places of their values in a row.
//!
//! A row is a sequence of 8-byte words. A number lies at a multiple of its size; a byte string or
//! text has a length of four bytes in front of it, at a multiple of four. So a row of a table has
//! one size, and an update changes it where it lies.

use crate::error::{Error, ValueError};
use std::fmt;
use std::marker::PhantomData;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `f64`.
    F64,
    /// A byte string of at most this many bytes.
    Bytes(u32),
    /// A text of at most this many bytes in UTF-8.
    Text(u32),
}

impl Type {
    /// The bytes that a value takes in a row, its length included.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Bytes(max) | Self::Text(max) => LENGTH + max as usize,
        }
    }

    /// The alignment of a value in a row.
    pub(crate) fn alignment(self) -> usize {
        match self {
            Self::Bytes(_) | Self::Text(_) => LENGTH,
            other => other.width(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U8 => f.write_str("u8"),
            Self::U16 => f.write_str("u16"),
            Self::U32 => f.write_str("u32"),
            Self::U64 => f.write_str("u64"),
            Self::I32 => f.write_str("i32"),
            Self::I64 => f.write_str("i64"),
            Self::F64 => f.write_str("f64"),
            Self::Bytes(max) => write!(f, "bytes({max})"),
            Self::Text(max) => write!(f, "text({max})"),
        }
    }
}

/// The bytes of the length of a byte string.
const LENGTH: usize = 4;

mod private {
    pub trait Sealed {}
}

/// A Rust type that a column can have: a number, `[u8]` or `str`. The trait is sealed.
pub trait Field: private::Sealed + 'static {
    /// A value as [`Row::get`](crate::Row::get) returns it and [`RowMut::set`](crate::RowMut::set)
    /// takes it: the number itself, `&[u8]` or `&str`.
    type Value<'a>: Copy + fmt::Debug + PartialEq;
    /// The name of the type.
    const NAME: &'static str;

    /// Whether a column of this type has such values.
    #[doc(hidden)]
    fn suits(column: Type) -> bool;
    /// Reads the value whose field is `field`.
    #[doc(hidden)]
    fn read(field: &[u8]) -> Self::Value<'_>;
    /// Writes a value into `field`.
    #[doc(hidden)]
    fn write(field: &mut [u8], value: Self::Value<'_>) -> Result<(), ValueError>;
}

macro_rules! numbers {
    ($($number:ident $column:ident),*) => {$(
        impl private::Sealed for $number {}

        impl Field for $number {
            type Value<'a> = $number;
            const NAME: &'static str = stringify!($number);

            #[inline]
            fn suits(column: Type) -> bool {
                column == Type::$column
            }
            #[inline(always)]
            fn read(field: &[u8]) -> $number {
                field.first_chunk().map_or($number::default(), |bytes| $number::from_le_bytes(*bytes))
            }
            #[inline(always)]
            fn write(field: &mut [u8], value: $number) -> Result<(), ValueError> {
                if let Some(bytes) = field.first_chunk_mut() {
                    *bytes = value.to_le_bytes();
                }
                Ok(())
            }
        }
    )*};
}

numbers! { u8 U8, u16 U16, u32 U32, u64 U64, i32 I32, i64 I64, f64 F64 }

impl private::Sealed for [u8] {}

impl Field for [u8] {
    type Value<'a> = &'a [u8];
    const NAME: &'static str = "[u8]";

    fn suits(column: Type) -> bool {
        matches!(column, Type::Bytes(_))
    }

    #[inline]
    fn read(field: &[u8]) -> &[u8] {
        let Some((length, bytes)) = field.split_first_chunk() else { return &[] };
        bytes.get(..u32::from_le_bytes(*length) as usize).unwrap_or(bytes)
    }

    #[inline]
    fn write(field: &mut [u8], value: &[u8]) -> Result<(), ValueError> {
        let max = field.len().saturating_sub(LENGTH);
        let too_long = ValueError::TooLong { bytes: value.len(), max };
        let Some((length, bytes)) = field.split_first_chunk_mut() else { return Err(too_long) };
        let Some(to) = bytes.get_mut(..value.len()) else { return Err(too_long) };
        *length = (value.len() as u32).to_le_bytes();
        to.copy_from_slice(value);
        bytes[value.len()..].fill(0); // two rows with equal values have equal words
        Ok(())
    }
}

impl private::Sealed for str {}

impl Field for str {
    type Value<'a> = &'a str;
    const NAME: &'static str = "str";

    fn suits(column: Type) -> bool {
        matches!(column, Type::Text(_))
    }

    #[inline]
    fn read(field: &[u8]) -> &str {
        // A text column is only written below, or read from a log with a right checksum, so the
        // bytes are UTF-8. Other bytes count as no text.
        std::str::from_utf8(<[u8] as Field>::read(field)).unwrap_or_default()
    }

    #[inline]
    fn write(field: &mut [u8], value: &str) -> Result<(), ValueError> {
        <[u8] as Field>::write(field, value.as_bytes())
    }
}

/// A column of a table, for [`Row::get`](crate::Row::get) and [`RowMut::set`](crate::RowMut::set).
/// [`Table::column`](crate::Table::column) makes it, and checks name and type once.
pub struct Column<F: Field + ?Sized> {
    pub(crate) table: u64,
    pub(crate) start: u32,
    pub(crate) width: u32,
    pub(crate) field: PhantomData<fn() -> Box<F>>,
}

impl<F: Field + ?Sized> Clone for Column<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Field + ?Sized> Copy for Column<F> {}

impl<F: Field + ?Sized> fmt::Debug for Column<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column<{}> at byte {}", F::NAME, self.start)
    }
}

impl<F: Field + ?Sized> Column<F> {
    /// The bytes of the column in a row of the table with this number.
    #[inline(always)]
    fn range(&self, table: u64) -> Result<std::ops::Range<usize>, Error> {
        if self.table != table {
            return Err(Error::Foreign);
        }
        Ok(self.start as usize..(self.start + self.width) as usize)
    }

    /// Reads the column of a row of the table with this number.
    #[inline(always)]
    pub(crate) fn read<'a>(&self, table: u64, row: &'a [u8]) -> Result<F::Value<'a>, Error> {
        let Some(field) = row.get(self.range(table)?) else { return Err(Error::Foreign) };
        Ok(F::read(field))
    }

    /// Writes the column of a row of the table with this number.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        table: u64,
        row: &mut [u8],
        value: F::Value<'_>,
    ) -> Result<(), Error> {
        let Some(field) = row.get_mut(self.range(table)?) else { return Err(Error::Foreign) };
        Ok(F::write(field, value)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_hold_what_was_written() {
        let mut field = [7; 12];
        <[u8]>::write(&mut field, b"abc").unwrap();
        assert_eq!(<[u8]>::read(&field), b"abc");
        assert_eq!(field, [3, 0, 0, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0]);
        str::write(&mut field, "ä").unwrap();
        assert_eq!(str::read(&field), "ä");
        let error = <[u8]>::write(&mut field, b"nine byte").unwrap_err();
        assert_eq!(error, ValueError::TooLong { bytes: 9, max: 8 });
        assert_eq!(str::read(&field), "ä", "a refused value changes nothing");
        i64::write(&mut field, -2).unwrap();
        assert_eq!(i64::read(&field), -2);
    }

    #[test]
    fn a_column_of_another_table_is_refused() {
        let column = Column::<u64> { table: 1, start: 8, width: 8, field: PhantomData };
        assert_eq!(column.read(2, &[0; 16]), Err(Error::Foreign));
        assert_eq!(column.read(1, &[0; 8]), Err(Error::Foreign));
        assert_eq!(column.read(1, &[1; 16]), Ok(u64::from_le_bytes([1; 8])));
    }
}
