//! Batches of writes, in the byte form that the log keeps.
//!
//! A batch is a count and a string of operations. Each operation takes one sequence number.
//!
//! | part of an operation | bytes | of |
//! |---|---|---|
//! | kind: the number of [`Kind`] | 1 | each |
//! | length of the key as a varint | 1 to 5 | each |
//! | key, or the first key of the range | its length | each |
//! | length of the value or second key as a varint | 1 to 5 | put, delete range |
//! | value, or the first key behind the range | its length | put, delete range |
//!
//! A varint has seven bits in each byte, the lowest first; the top bit says that another byte
//! follows. Every number has one form, the shortest: equal operations have equal bytes.

use crate::entry::{VARINT, varint_len};
use crate::key::Kind;
use silvics::AllocError;
use std::fmt;

/// The greatest length of a user key in bytes. (The byte index itself takes up to 16 MiB.)
pub const MAX_KEY_BYTES: usize = (512 << 10) - 16;

/// The greatest length of a value in bytes: a batch has room for it and for the longest key.
pub const MAX_VALUE_BYTES: usize = MAX_BATCH_BYTES - MAX_KEY_BYTES - 16;

/// The greatest length of a batch in bytes.
pub const MAX_BATCH_BYTES: usize = 1 << 30;

/// One operation of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// The key gets the value.
    Put {
        /// The user key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// The key is deleted.
    Delete {
        /// The user key.
        key: &'a [u8],
    },
    /// The keys from `from` on and before `to`, in the order of the comparator, are deleted.
    DeleteRange {
        /// The first key of the range.
        from: &'a [u8],
        /// The first key behind the range.
        to: &'a [u8],
    },
}

impl<'a> Op<'a> {
    fn parts(self) -> (Kind, &'a [u8], Option<&'a [u8]>) {
        match self {
            Self::Put { key, value } => (Kind::Put, key, Some(value)),
            Self::Delete { key } => (Kind::Delete, key, None),
            Self::DeleteRange { from, to } => (Kind::DeleteRange, from, Some(to)),
        }
    }
}

/// A list of operations that are written together: all of them or none.
///
/// ```
/// use silvics_memtable::{Op, WriteBatch};
///
/// let mut batch = WriteBatch::new();
/// batch.put(b"pine", b"evergreen")?;
/// batch.delete(b"larch")?;
/// assert_eq!(batch.len(), 2);
/// assert_eq!(batch.ops().next(), Some(Op::Put { key: b"pine", value: b"evergreen" }));
/// batch.clear(); // keeps its memory for the next batch
/// assert!(batch.is_empty());
/// # Ok::<(), silvics_memtable::BatchError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    count: u32,
}

impl WriteBatch {
    /// An empty batch. It has no memory yet.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0 }
    }

    /// An empty batch with memory for operations of `bytes` bytes in all.
    pub fn with_capacity(bytes: usize) -> Result<Self, BatchError> {
        let mut batch = Self::new();
        batch.reserve(bytes)?;
        Ok(batch)
    }

    /// Adds a write of `value` under `key`. After an error the batch is unchanged.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BatchError> {
        self.push(Op::Put { key, value })
    }

    /// Adds a deletion of `key`. After an error the batch is unchanged.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), BatchError> {
        self.push(Op::Delete { key })
    }

    /// Adds a deletion of the keys from `from` on and before `to`. After an error the batch is
    /// unchanged.
    ///
    /// A range whose end does not follow its start deletes nothing.
    pub fn delete_range(&mut self, from: &[u8], to: &[u8]) -> Result<(), BatchError> {
        self.push(Op::DeleteRange { from, to })
    }

    /// Adds an operation. After an error the batch is unchanged.
    pub fn push(&mut self, op: Op<'_>) -> Result<(), BatchError> {
        let (kind, first, second) = op.parts();
        check(kind, first, second)?;
        // Lengths are checked: at most 2^30.
        let string = |string: &[u8]| varint_len(string.len() as u32) + string.len();
        let more = 1 + string(first) + second.map_or(0, string);
        if more > MAX_BATCH_BYTES - self.bytes.len() {
            let bytes = self.bytes.len() + more;
            return Err(BatchError::BatchLength { bytes, limit: MAX_BATCH_BYTES });
        }
        let count = self.count.checked_add(1).ok_or(BatchError::Count { limit: u32::MAX })?;
        self.reserve(more)?;
        self.bytes.push(kind as u8);
        push_string(&mut self.bytes, first);
        if let Some(second) = second {
            push_string(&mut self.bytes, second);
        }
        self.count = count;
        Ok(())
    }

    fn reserve(&mut self, more: usize) -> Result<(), BatchError> {
        let requested = self.bytes.len().saturating_add(more);
        let refused = |_| BatchError::Alloc(AllocError::System { requested });
        self.bytes.try_reserve(more).map_err(refused)
    }

    /// Removes all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// The number of operations, and of the sequence numbers that the batch takes.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The operations in their byte form.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The operations, in the order in which they were added.
    pub fn ops(&self) -> Ops<'_> {
        self.view().ops()
    }

    /// The batch as a reference that can be copied.
    pub fn view(&self) -> BatchRef<'_> {
        BatchRef { bytes: &self.bytes, count: self.count }
    }

    /// Checks that `bytes` are `count` operations in their byte form, each within the limits.
    ///
    /// The check reads each length once and no key or value. To iterate over the result cannot
    /// fail.
    pub fn parse(count: u32, bytes: &[u8]) -> Result<BatchRef<'_>, ParseError> {
        let error = |offset, reason| Err(ParseError { offset, reason });
        if bytes.len() > MAX_BATCH_BYTES {
            let limits = BatchError::BatchLength { bytes: bytes.len(), limit: MAX_BATCH_BYTES };
            return error(0, ParseReason::Limit(limits));
        }
        let (mut rest, mut found) = (bytes, 0);
        while !rest.is_empty() {
            let offset = bytes.len() - rest.len();
            if found == count {
                return error(offset, ParseReason::Count { announced: count, found: None });
            }
            let op = match split_op(&mut rest) {
                Ok(op) => op,
                Err(reason) => return error(offset, reason),
            };
            let (kind, first, second) = op.parts();
            if let Err(limits) = check(kind, first, second) {
                return error(offset, ParseReason::Limit(limits));
            }
            found += 1;
        }
        if found != count {
            let reason = ParseReason::Count { announced: count, found: Some(found) };
            return error(bytes.len(), reason);
        }
        Ok(BatchRef { bytes, count })
    }
}

/// A batch whose bytes belong to another owner. Its operations are known to be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRef<'a> {
    bytes: &'a [u8],
    count: u32,
}

impl<'a> BatchRef<'a> {
    /// The number of operations, and of the sequence numbers that the batch takes.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The operations in their byte form.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The operations, in the order in which they were added.
    pub fn ops(&self) -> Ops<'a> {
        Ops { rest: self.bytes, left: self.count }
    }
}

impl<'a> IntoIterator for BatchRef<'a> {
    type Item = Op<'a>;
    type IntoIter = Ops<'a>;

    fn into_iter(self) -> Ops<'a> {
        self.ops()
    }
}

/// The operations of a batch, in the order in which they were added.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Iterator for Ops<'a> {
    type Item = Op<'a>;

    #[inline]
    fn next(&mut self) -> Option<Op<'a>> {
        // Bytes of a batch are valid: they are written by `push` or checked by `parse`.
        let op = split_op(&mut self.rest).ok()?;
        self.left -= 1;
        Some(op)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Ops<'_> {}
impl std::iter::FusedIterator for Ops<'_> {}

/// Checks the lengths of an operation.
fn check(kind: Kind, first: &[u8], second: Option<&[u8]>) -> Result<(), BatchError> {
    let key = |key: &[u8]| {
        let bytes = key.len();
        let long = bytes > MAX_KEY_BYTES;
        if long { Err(BatchError::KeyLength { bytes, limit: MAX_KEY_BYTES }) } else { Ok(()) }
    };
    key(first)?;
    let Some(second) = second else { return Ok(()) };
    if kind == Kind::DeleteRange {
        return key(second);
    }
    if second.len() > MAX_VALUE_BYTES {
        let bytes = second.len();
        return Err(BatchError::ValueLength { bytes, limit: MAX_VALUE_BYTES });
    }
    Ok(())
}

/// Appends the length of `string` as a varint, then `string`. The list has room for both.
#[inline]
fn push_string(list: &mut Vec<u8>, string: &[u8]) {
    let mut len = string.len();
    while len >= 0x80 {
        list.push(len as u8 | 0x80);
        len >>= 7;
    }
    list.push(len as u8);
    list.extend_from_slice(string);
}

/// Takes the operation at the front.
#[inline]
fn split_op<'a>(rest: &mut &'a [u8]) -> Result<Op<'a>, ParseReason> {
    let (&byte, behind) = rest.split_first().ok_or(ParseReason::Short)?;
    let kind = Kind::from_byte(byte).ok_or(ParseReason::Kind(byte))?;
    *rest = behind;
    let key = split_string(rest)?;
    Ok(match kind {
        Kind::Put => Op::Put { key, value: split_string(rest)? },
        Kind::Delete => Op::Delete { key },
        Kind::DeleteRange => Op::DeleteRange { from: key, to: split_string(rest)? },
    })
}

#[inline]
fn split_string<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], ParseReason> {
    let len = split_varint(rest)? as usize;
    let (string, behind) = rest.split_at_checked(len).ok_or(ParseReason::Short)?;
    *rest = behind;
    Ok(string)
}

#[inline]
fn split_varint(rest: &mut &[u8]) -> Result<u32, ParseReason> {
    let mut number = 0_u64;
    for (at, &byte) in rest.iter().take(VARINT).enumerate() {
        number |= u64::from(byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            // A last byte of zero could be left out.
            if byte == 0 && at > 0 {
                return Err(ParseReason::Varint);
            }
            *rest = &rest[at + 1..];
            return u32::try_from(number).map_err(|_| ParseReason::Varint);
        }
    }
    Err(if rest.len() < VARINT { ParseReason::Short } else { ParseReason::Varint })
}

/// The reason why an operation was not added to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// A key is too long.
    KeyLength {
        /// The length of the key in bytes.
        bytes: usize,
        /// The greatest length of a key in bytes.
        limit: usize,
    },
    /// A value is too long.
    ValueLength {
        /// The length of the value in bytes.
        bytes: usize,
        /// The greatest length of a value in bytes.
        limit: usize,
    },
    /// The batch would be too long.
    BatchLength {
        /// The length that the batch would have in bytes.
        bytes: usize,
        /// The greatest length of a batch in bytes.
        limit: usize,
    },
    /// The batch has the greatest number of operations.
    Count {
        /// The greatest number of operations.
        limit: u32,
    },
    /// An allocation failed.
    Alloc(AllocError),
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyLength { bytes, limit } => write!(
                f,
                "a key of {bytes} bytes exceeds the limit of {limit} bytes: shorten or hash it"
            ),
            Self::ValueLength { bytes, limit } => write!(
                f,
                "a value of {bytes} bytes exceeds the limit of {limit} bytes: \
                 split it into several, or store it elsewhere"
            ),
            Self::BatchLength { bytes, limit } => write!(
                f,
                "a batch of {bytes} bytes would exceed the limit of {limit} bytes: \
                 write this batch and start another one"
            ),
            Self::Count { limit } => write!(
                f,
                "the batch has {limit} operations, the most possible: \
                 write this batch and start another one"
            ),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BatchError {}

/// The place and the reason for which bytes are not operations of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The offset of the operation in the bytes.
    pub offset: usize,
    /// The mistake.
    pub reason: ParseReason,
}

/// The reason why bytes are not operations of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseReason {
    /// No kind of operation has this number.
    Kind(u8),
    /// The bytes end within the operation.
    Short,
    /// A length is not a number of 32 bits in its shortest form.
    Varint,
    /// An operation exceeds a limit.
    Limit(BatchError),
    /// The number of operations is another than the announced one.
    Count {
        /// The announced number of operations.
        announced: u32,
        /// The number found, or `None` if there are more than announced.
        found: Option<u32>,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        match self.reason {
            ParseReason::Kind(byte) => {
                write!(f, "the operation at byte {offset} has the unknown kind {byte:#04x}")
            }
            ParseReason::Short => write!(f, "the bytes end within the operation at byte {offset}"),
            ParseReason::Varint => {
                write!(f, "the operation at byte {offset} has an invalid length of a key or value")
            }
            ParseReason::Limit(limit) => write!(f, "the operation at byte {offset}: {limit}"),
            ParseReason::Count { announced, found: Some(found) } => {
                write!(f, "there are {found} operations, where {announced} are announced")
            }
            ParseReason::Count { announced, found: None } => {
                write!(f, "more operations than the announced {announced} begin at byte {offset}")
            }
        }
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests;
