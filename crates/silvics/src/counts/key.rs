//! Keys as separators: a number to compare first, and the bytes behind it.

use crate::encoding::{ByteKey, IndexKey, Prefixed, common_prefix};
use std::cmp::Ordering;

/// Keys of an index that counts them.
pub trait CountedKey: IndexKey {
    /// The bytes of each key, or none if keys are byte strings.
    const FIXED: Option<usize>;

    /// The eight bytes of a key from a position on, as a big-endian number. Bytes behind the end
    /// are zeros.
    fn head(key: Self::Ref<'_>, from: usize) -> u64;
    /// The order of a key relative to a byte string, if both are without their first `from` bytes.
    fn compare(key: Self::Ref<'_>, bytes: &[u8], from: usize) -> Ordering;
    /// The order of the first bytes of a key relative to a byte string, which may be longer.
    fn compare_start(key: Self::Ref<'_>, bytes: &[u8]) -> Ordering;
    /// The length of the shortest prefix of `key` that is larger than `before`, a smaller key.
    fn separates(before: Self::Ref<'_>, key: Self::Ref<'_>) -> usize;
    /// Copies the first bytes of a key.
    fn copy(key: Self::Ref<'_>, to: &mut [u8]);
    /// The key with these bytes.
    fn of_bytes(bytes: &[u8]) -> Self::Ref<'_>;
    /// The key with this head, if heads are keys.
    #[inline(always)]
    fn of_head(_head: u64) -> Option<Self::Ref<'static>> {
        None
    }
}

macro_rules! numbers {
    ($($key:ty: $head_is_key:literal),*) => {$(
        impl CountedKey for $key {
            const FIXED: Option<usize> = Some(size_of::<$key>());

            #[inline(always)]
            fn head(key: $key, _from: usize) -> u64 {
                (key >> (<$key>::BITS - 64)) as u64
            }
            #[inline(always)]
            fn compare(key: $key, bytes: &[u8], _from: usize) -> Ordering {
                key.cmp(&<$key as CountedKey>::of_bytes(bytes))
            }
            fn compare_start(_key: $key, _bytes: &[u8]) -> Ordering {
                Ordering::Equal
            }
            fn separates(_before: $key, _key: $key) -> usize {
                size_of::<$key>()
            }
            fn copy(key: $key, to: &mut [u8]) {
                to.copy_from_slice(&key.to_be_bytes()[..to.len()]);
            }
            #[inline(always)]
            fn of_bytes(bytes: &[u8]) -> $key {
                bytes.try_into().map_or(0, <$key>::from_be_bytes)
            }
            #[inline(always)]
            fn of_head(head: u64) -> Option<$key> {
                $head_is_key.then_some(head as $key)
            }
        }
    )*};
}

numbers!(u64: true, u128: false);

/// See [`CountedKey::head`].
#[inline(always)]
fn head_of(bytes: &[u8], from: usize) -> u64 {
    let rest = bytes.get(from..).unwrap_or(&[]);
    if let Some(head) = rest.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(head)
}

impl CountedKey for [u8] {
    const FIXED: Option<usize> = None;

    #[inline(always)]
    fn head(key: &[u8], from: usize) -> u64 {
        head_of(key, from)
    }
    #[inline]
    fn compare(key: &[u8], bytes: &[u8], from: usize) -> Ordering {
        key.get(from..).unwrap_or(&[]).cmp(bytes.get(from..).unwrap_or(&[]))
    }
    #[inline]
    fn compare_start(key: &[u8], bytes: &[u8]) -> Ordering {
        let len = key.len().min(bytes.len());
        key[..len].cmp(&bytes[..len]).then(len.cmp(&bytes.len()))
    }
    fn separates(before: &[u8], key: &[u8]) -> usize {
        key.len().min(common_prefix(before, key, 0) + 1)
    }
    fn copy(key: &[u8], to: &mut [u8]) {
        to.copy_from_slice(&key[..to.len()]);
    }
    #[inline(always)]
    fn of_bytes(bytes: &[u8]) -> &[u8] {
        bytes
    }
}

impl CountedKey for Prefixed<'static> {
    const FIXED: Option<usize> = None;

    #[inline(always)]
    fn head(key: Prefixed<'_>, from: usize) -> u64 {
        match key.pieces() {
            [[], bytes] | [bytes, []] => head_of(bytes, from),
            _ => {
                let byte = |at| u64::from(key.get(from + at).unwrap_or(0));
                (0..8).fold(0, |head, at| head << 8 | byte(at))
            }
        }
    }
    #[inline]
    fn compare(key: Prefixed<'_>, bytes: &[u8], _from: usize) -> Ordering {
        key.cmp(&Prefixed::from(bytes))
    }
    #[inline]
    fn compare_start(key: Prefixed<'_>, bytes: &[u8]) -> Ordering {
        let other = Prefixed::from(bytes);
        let common = key.common(other);
        if common == bytes.len() {
            Ordering::Equal
        } else {
            key.get(common).cmp(&other.get(common))
        }
    }
    fn separates(before: Prefixed<'_>, key: Prefixed<'_>) -> usize {
        key.len().min(before.common(key) + 1)
    }
    fn copy(key: Prefixed<'_>, to: &mut [u8]) {
        to.iter_mut().zip(key.bytes()).for_each(|(to, byte)| *to = byte);
    }
    #[inline(always)]
    fn of_bytes(bytes: &[u8]) -> Prefixed<'_> {
        <Self as ByteKey>::of_bytes(bytes)
    }
}
