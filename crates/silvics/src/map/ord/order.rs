//! Orders of keys.

use super::numbers::type_of;
use std::any::TypeId;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

/// An order of keys of type `K`: each function of two keys, or [`Natural`], the order of the type.
///
/// It must be a total order, and the same in all calls: for all keys `a`, `b`, `c`, `a` equals `a`,
/// `a < b` if and only if `b > a`, and if `a < b` and `b < c` then `a < c`. A map with another
/// function finds wrong keys or none. It still drops each key and value once, and each call ends.
///
/// A comparator may panic, and it may call the map. No lock is held while it runs. A write is
/// repeated if comparisons write to the same part of the map meanwhile. From its third attempt on,
/// it remembers how keys compare. So it ends, unless the comparisons insert a new key next to its
/// own in each attempt.
pub trait Comparator<K: ?Sized>: Send + Sync + 'static {
    /// Compares two keys.
    fn compare(&self, a: &K, b: &K) -> Ordering;

    /// Whether [`Comparator::head`] is more than its default. A map asks once, when it is made. If
    /// so, it keeps the heads of keys, which takes eight bytes for each.
    #[inline(always)]
    fn has_heads() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// A number in the order of the keys: if `a < b`, then `head(a) <= head(b)`. A map keeps it
    /// beside the key's address. If the heads of two keys differ, the map need not read the keys.
    #[inline(always)]
    fn head(&self, key: &K) -> u64 {
        _ = key;
        0
    }
}

/// An order in which keys of type `K` can be compared with values of type `Q`: those that a lookup
/// may take instead of a key.
pub trait Compares<K: ?Sized, Q: ?Sized>: Comparator<K> {
    /// Compares a key with a value that stands for one.
    fn compare_with(&self, key: &K, asked: &Q) -> Ordering;

    /// The head of the key that the value stands for, if it is known: see [`Comparator::head`].
    #[inline(always)]
    fn head_of(&self, asked: &Q) -> Option<u64> {
        _ = asked;
        None
    }
}

impl<K: ?Sized, F: Fn(&K, &K) -> Ordering + Send + Sync + 'static> Comparator<K> for F {
    #[inline(always)]
    fn compare(&self, a: &K, b: &K) -> Ordering {
        self(a, b)
    }
}

impl<K: ?Sized, F: Fn(&K, &K) -> Ordering + Send + Sync + 'static> Compares<K, K> for F {
    #[inline(always)]
    fn compare_with(&self, key: &K, asked: &K) -> Ordering {
        self(key, asked)
    }

    #[inline(always)]
    fn head_of(&self, asked: &K) -> Option<u64> {
        Some(self.head(asked))
    }
}

/// The order of the key type itself, its [`Ord`]. Lookups take each borrowed form of a key.
///
/// Strings and byte strings of the standard library have heads: the first eight bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Natural;

impl<K: Ord + 'static> Comparator<K> for Natural {
    #[inline(always)]
    fn has_heads() -> bool {
        is_text::<K>()
    }

    #[inline(always)]
    fn compare(&self, a: &K, b: &K) -> Ordering {
        a.cmp(b)
    }

    #[inline(always)]
    fn head(&self, key: &K) -> u64 {
        bytes_of(key).map_or(0, head_of)
    }
}

impl<K: Borrow<Q> + Ord + 'static, Q: Ord + ?Sized + 'static> Compares<K, Q> for Natural {
    #[inline(always)]
    fn compare_with(&self, key: &K, asked: &Q) -> Ordering {
        key.borrow().cmp(asked)
    }

    #[inline(always)]
    fn head_of(&self, asked: &Q) -> Option<u64> {
        if !is_text::<K>() {
            return Some(0);
        }
        borrowed_bytes_of(asked).map(head_of)
    }
}

/// A type with a number in the order of its values, for [`ByHead`].
///
/// ```
/// use silvics::ord::{ByHead, KeyHead};
/// use silvics::OrdMap;
///
/// #[derive(PartialEq, Eq, PartialOrd, Ord)]
/// struct Version {
///     key: [u8; 16],
///     number: u64,
/// }
///
/// impl KeyHead for Version {
///     fn head(&self) -> u64 {
///         u64::from_be_bytes(self.key[..8].try_into().expect("eight bytes"))
///     }
/// }
///
/// let map: OrdMap<Version, u64, ByHead> = OrdMap::ordered_by(ByHead);
/// map.insert(Version { key: [7; 16], number: 1 }, 10);
/// assert_eq!(map.get(&Version { key: [7; 16], number: 1 }).as_deref(), Some(&10));
/// ```
pub trait KeyHead: Ord {
    /// The head of a key: if `a < b`, then `a.head() <= b.head()`.
    fn head(&self) -> u64;
}

/// The order of a key type that has heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByHead;

impl<K: KeyHead> Comparator<K> for ByHead {
    #[inline(always)]
    fn has_heads() -> bool {
        true
    }

    #[inline(always)]
    fn compare(&self, a: &K, b: &K) -> Ordering {
        a.cmp(b)
    }

    #[inline(always)]
    fn head(&self, key: &K) -> u64 {
        key.head()
    }
}

impl<K: KeyHead> Compares<K, K> for ByHead {
    #[inline(always)]
    fn compare_with(&self, key: &K, asked: &K) -> Ordering {
        key.cmp(asked)
    }

    #[inline(always)]
    fn head_of(&self, asked: &K) -> Option<u64> {
        Some(asked.head())
    }
}

/// An order of a borrowed form of the keys: a function of two `Q`, for keys that are, for example,
/// `Vec<u8>` or `String`. Lookups take each value that borrows as `Q`, and so allocate nothing.
///
/// ```
/// use silvics::ord::OnBorrowed;
/// use silvics::OrdMap;
///
/// // Byte strings, the longest first.
/// let by_length = OnBorrowed::new(|a: &[u8], b: &[u8]| (b.len(), a).cmp(&(a.len(), b)));
/// let map: OrdMap<Vec<u8>, u64, _> = OrdMap::ordered_by(by_length);
/// map.insert(b"a".to_vec(), 1);
/// map.insert(b"bb".to_vec(), 2);
/// assert_eq!(map.get(&b"bb"[..]).as_deref(), Some(&2));
/// assert_eq!(map.pin().first().map(|(key, _)| key.len()), Some(2));
/// ```
pub struct OnBorrowed<Q: ?Sized, F> {
    compare: F,
    form: PhantomData<fn(&Q)>,
}

impl<Q: ?Sized, F: Fn(&Q, &Q) -> Ordering> OnBorrowed<Q, F> {
    /// The order of such a function.
    pub fn new(compare: F) -> Self {
        Self { compare, form: PhantomData }
    }
}

impl<Q: ?Sized, F> fmt::Debug for OnBorrowed<Q, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnBorrowed")
    }
}

impl<K, Q, F> Comparator<K> for OnBorrowed<Q, F>
where
    K: Borrow<Q>,
    Q: ?Sized + 'static,
    F: Fn(&Q, &Q) -> Ordering + Send + Sync + 'static,
{
    #[inline(always)]
    fn compare(&self, a: &K, b: &K) -> Ordering {
        (self.compare)(a.borrow(), b.borrow())
    }
}

impl<K, Q, A, F> Compares<K, A> for OnBorrowed<Q, F>
where
    K: Borrow<Q>,
    Q: ?Sized + 'static,
    A: Borrow<Q> + ?Sized,
    F: Fn(&Q, &Q) -> Ordering + Send + Sync + 'static,
{
    #[inline(always)]
    fn compare_with(&self, key: &K, asked: &A) -> Ordering {
        (self.compare)(key.borrow(), asked.borrow())
    }

    #[inline(always)]
    fn head_of(&self, _asked: &A) -> Option<u64> {
        Some(0)
    }
}

/// The first eight bytes, with zeros behind a shorter string.
#[inline]
pub(super) fn head_of(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = bytes.len().min(8);
    head[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(head)
}

macro_rules! texts {
    ($($owned:ty as $borrowed:ty: $bytes:expr;)*) => {
        /// Whether keys of this type are ordered as byte strings.
        #[inline(always)]
        pub(super) fn is_text<K>() -> bool {
            $(type_of::<K>() == TypeId::of::<$owned>())||*
        }

        /// The bytes of a key that is ordered as a byte string.
        #[inline(always)]
        pub(super) fn bytes_of<K>(key: &K) -> Option<&[u8]> {
            $(if type_of::<K>() == TypeId::of::<$owned>() {
                // SAFETY: the types are the same.
                let key: &$owned = unsafe { &*std::ptr::from_ref(key).cast() };
                let bytes: fn(&$borrowed) -> &[u8] = $bytes;
                return Some(bytes(key));
            })*
            None
        }
    };
}

texts! {
    String as str: str::as_bytes;
    Box<str> as str: str::as_bytes;
    std::sync::Arc<str> as str: str::as_bytes;
    &'static str as str: str::as_bytes;
    Vec<u8> as [u8]: |bytes| bytes;
    Box<[u8]> as [u8]: |bytes| bytes;
    std::sync::Arc<[u8]> as [u8]: |bytes| bytes;
    &'static [u8] as [u8]: |bytes| bytes;
}

/// The bytes of a form that such a key can borrow as.
#[inline(always)]
pub(super) fn borrowed_bytes_of<Q: ?Sized>(asked: &Q) -> Option<&[u8]> {
    macro_rules! one_of {
        ($($form:ty: $bytes:expr;)*) => {
            $(if type_of::<Q>() == TypeId::of::<$form>() {
                // SAFETY: the types are the same, so that a reference to one is one to the other.
                let asked: &$form = unsafe { std::mem::transmute_copy(&asked) };
                let bytes: for<'b> fn(&'b $form) -> &'b [u8] = $bytes;
                return Some(bytes(asked));
            })*
        };
    }
    one_of! {
        str: str::as_bytes;
        [u8]: |bytes| bytes;
        String: |text| text.as_bytes();
        Box<str>: |text| text.as_bytes();
        std::sync::Arc<str>: |text| text.as_bytes();
        &'static str: |text| text.as_bytes();
        Vec<u8>: |bytes| bytes;
        Box<[u8]>: |bytes| bytes;
        std::sync::Arc<[u8]>: |bytes| bytes;
        &'static [u8]: |bytes| bytes;
    }
    None
}
