//! Byte strings in two pieces.

use super::index_key::{ByteKey, IndexKey, common_prefix};
use std::cmp::Ordering;
use std::fmt;

/// A byte string whose first bytes may lie apart from the others.
///
/// An index that stores the common prefix of neighbouring keys once returns such keys from its
/// scans, without a copy. A key in one piece comes [from](From) a slice.
///
/// ```
/// use silvics::key::Prefixed;
///
/// let key = Prefixed::from("/etc/hosts");
/// assert!(key.starts_with(b"/etc/") && key > Prefixed::from("/etc"));
/// assert_eq!((key.len(), key.first()), (10, Some(b'/')));
/// assert_eq!(key, *b"/etc/hosts");
/// assert_eq!(key.to_vec(), b"/etc/hosts");
/// ```
#[derive(Clone, Copy, Default)]
pub struct Prefixed<'a> {
    prefix: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Prefixed<'a> {
    /// A key of two pieces. It has at most `MAX_PIECES` bytes, unless `prefix` is empty.
    #[inline(always)]
    pub(crate) fn new(prefix: &'a [u8], rest: &'a [u8]) -> Self {
        debug_assert!(prefix.is_empty() || prefix.len() + rest.len() <= Self::MAX_PIECES);
        Self { prefix, rest }
    }

    /// The most bytes of a key that is not in one piece.
    pub(crate) const MAX_PIECES: usize = 512;

    /// The pieces, of which each may be empty. The key is the first one and then the second one.
    #[inline(always)]
    pub fn pieces(self) -> [&'a [u8]; 2] {
        [self.prefix, self.rest]
    }

    /// The number of bytes.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.prefix.len() + self.rest.len()
    }

    /// Whether there is no byte.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The byte at a position, if the key is so long.
    #[inline(always)]
    pub fn get(self, at: usize) -> Option<u8> {
        self.piece_at(at).first().copied()
    }

    /// The first byte.
    #[inline]
    pub fn first(self) -> Option<u8> {
        self.get(0)
    }

    /// The bytes, one after the other.
    #[inline]
    pub fn bytes(self) -> impl DoubleEndedIterator<Item = u8> + Clone + 'a {
        self.prefix.iter().chain(self.rest).copied()
    }

    /// Whether the key begins with some bytes.
    #[inline]
    pub fn starts_with(self, bytes: &[u8]) -> bool {
        self.common(bytes.into()) == bytes.len()
    }

    /// Appends the bytes to a buffer.
    #[inline]
    pub fn append_to(self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(self.prefix);
        buffer.extend_from_slice(self.rest);
    }

    /// A copy in one piece.
    pub fn to_vec(self) -> Vec<u8> {
        self.pieces().concat()
    }

    /// The piece that has the byte at a position, from that byte on. Empty behind the end.
    #[inline(always)]
    fn piece_at(self, at: usize) -> &'a [u8] {
        match at.checked_sub(self.prefix.len()) {
            None => &self.prefix[at..],
            Some(at) => self.rest.get(at..).unwrap_or(&[]),
        }
    }

    /// The number of first bytes that two keys have in common.
    #[inline]
    pub(crate) fn common(self, other: Self) -> usize {
        let mut at = 0;
        loop {
            let (a, b) = (self.piece_at(at), other.piece_at(at));
            let len = a.len().min(b.len());
            let common = common_prefix(a, b, 0);
            at += common;
            if common < len || len == 0 {
                return at;
            }
        }
    }
}

impl PartialEq for Prefixed<'_> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let (a, b) =
            if self.prefix.len() < other.prefix.len() { (self, other) } else { (other, self) };
        if a.len() != b.len() {
            return false;
        }
        // The longer prefix is that of `b`.
        let (head, tail) = b.prefix.split_at(a.prefix.len());
        let (middle, rest) = a.rest.split_at(tail.len());
        (head.is_empty() || a.prefix == head) && middle == tail && rest == b.rest
    }
}

impl Eq for Prefixed<'_> {}

impl Ord for Prefixed<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let common = self.common(*other);
        self.get(common).cmp(&other.get(common))
    }
}

impl PartialOrd for Prefixed<'_> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a, B: AsRef<[u8]> + ?Sized> From<&'a B> for Prefixed<'a> {
    #[inline(always)]
    fn from(bytes: &'a B) -> Self {
        Self { prefix: &[], rest: bytes.as_ref() }
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Prefixed<'_> {
    fn eq(&self, other: &[u8; N]) -> bool {
        *self == Prefixed::from(other)
    }
}

impl PartialEq<[u8]> for Prefixed<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        *self == Prefixed::from(other)
    }
}

impl PartialEq<&[u8]> for Prefixed<'_> {
    fn eq(&self, other: &&[u8]) -> bool {
        *self == Prefixed::from(*other)
    }
}

impl fmt::Debug for Prefixed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}{}\"", self.prefix.escape_ascii(), self.rest.escape_ascii())
    }
}

impl IndexKey for Prefixed<'static> {
    type Ref<'a> = Prefixed<'a>;
    type Owned = Box<[u8]>;

    #[inline]
    fn to_owned(key: Prefixed<'_>) -> Box<[u8]> {
        key.to_vec().into()
    }
    #[inline(always)]
    fn borrow(key: &Box<[u8]>) -> Prefixed<'_> {
        Prefixed::from(key)
    }
    #[inline(always)]
    fn shorten<'short, 'long: 'short>(key: Prefixed<'long>) -> Prefixed<'short> {
        key
    }
}

impl ByteKey for Prefixed<'static> {
    #[inline(always)]
    fn of_bytes(bytes: &[u8]) -> Prefixed<'_> {
        Prefixed::from(bytes)
    }
    #[inline]
    fn starts_with(key: Prefixed<'_>, bytes: &[u8]) -> bool {
        key.starts_with(bytes)
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn pieces_behave_as_the_whole() {
        let wholes = ["", "\0", "a", "a\0", "ab", "ab\0\0", "abcdefghij", "abcdefghik", "b"];
        let pieces = |whole: &'static str| {
            let whole = whole.as_bytes();
            (0..=whole.len()).map(move |at| (whole, Prefixed::new(&whole[..at], &whole[at..])))
        };
        for (a, key) in wholes.into_iter().flat_map(pieces) {
            assert_eq!(
                (key.len(), key.first(), key.is_empty()),
                (a.len(), a.first().copied(), a.is_empty())
            );
            assert_eq!((key.to_vec(), key.bytes().collect::<Vec<_>>()), (a.to_vec(), a.to_vec()));
            assert_eq!((key.get(a.len()), key.get(usize::MAX)), (None, None));
            assert_eq!(format!("{key:?}"), format!("b\"{}\"", a.escape_ascii()));
            let mut appended = b"x".to_vec();
            key.append_to(&mut appended);
            assert_eq!(appended, [b"x", a].concat());
            for (b, other) in wholes.into_iter().flat_map(pieces) {
                assert_eq!(
                    (key == other, key.cmp(&other)),
                    (a == b, a.cmp(b)),
                    "{key:?} {other:?}"
                );
                assert_eq!(key.common(other), common_prefix(a, b, 0));
                assert_eq!((key.starts_with(b), key == b), (a.starts_with(b), a == b));
            }
        }
    }
}
