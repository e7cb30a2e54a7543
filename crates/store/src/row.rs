//! Rows as a transaction shows them.

use crate::column::{Column, Field};
use crate::error::Error;
use std::fmt;

/// A row as a transaction read it: a copy that later changes do not touch.
#[derive(Clone, Copy)]
pub struct Row<'t> {
    pub(crate) table: u64,
    pub(crate) bytes: &'t [u8],
}

impl<'t> Row<'t> {
    /// Returns the value of a column. Fails if the column is of another table.
    #[inline(always)]
    pub fn get<F: Field + ?Sized>(&self, column: Column<F>) -> Result<F::Value<'t>, Error> {
        column.read(self.table, self.bytes)
    }

    /// The bytes of the row, as it lies in memory: see [`Type`](crate::Type).
    pub fn bytes(&self) -> &'t [u8] {
        self.bytes
    }
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Row({} bytes)", self.bytes.len())
    }
}

/// A row that an insertion fills or an update changes.
pub struct RowMut<'t> {
    pub(crate) table: u64,
    pub(crate) bytes: &'t mut [u8],
}

impl RowMut<'_> {
    /// Returns the value of a column. Fails if the column is of another table.
    #[inline(always)]
    pub fn get<F: Field + ?Sized>(&self, column: Column<F>) -> Result<F::Value<'_>, Error> {
        column.read(self.table, self.bytes)
    }

    /// Gives a column a value. A new row begins with zeros and empty strings. Fails if the column
    /// is of another table, or if the value is too long for it; then the row is as it was.
    #[inline(always)]
    pub fn set<F: Field + ?Sized>(
        &mut self,
        column: Column<F>,
        value: F::Value<'_>,
    ) -> Result<(), Error> {
        column.write(self.table, self.bytes, value)
    }
}

impl fmt::Debug for RowMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowMut({} bytes)", self.bytes.len())
    }
}
