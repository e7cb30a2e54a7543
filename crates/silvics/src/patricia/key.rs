//! The key types of tries.

use crate::encoding::IndexKey;

/// A key type that a trie can hold: `u64`, `u128` or `[u8]`. The trait is sealed.
pub trait PatriciaKey: IndexKey + private::Sealed {
    /// The key as bytes, in the order of keys.
    #[doc(hidden)]
    type Bytes<'k>: AsRef<[u8]> + Copy;
    /// The path of a scan, if keys are made of paths.
    #[doc(hidden)]
    type Path: AsMut<[u8]> + Default;
    /// The number of bytes of a key if all keys have the same. Then keys are made of paths. Other
    /// keys are borrowed from nodes, so each node with an entry has its whole key.
    #[doc(hidden)]
    const FIXED: Option<usize>;

    /// The bytes of a key.
    #[doc(hidden)]
    fn bytes(key: Self::Ref<'_>) -> Self::Bytes<'_>;
    /// The key with these bytes, which are in a node.
    #[doc(hidden)]
    fn of_bytes(bytes: &[u8]) -> Self::Ref<'_>;
    /// The key of a path, if all keys have the same number of bytes.
    #[doc(hidden)]
    fn of_path(path: &Self::Path) -> Option<Self::Ref<'static>>;
}

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
    impl Sealed for [u8] {}
}

macro_rules! integer {
    ($integer:ty) => {
        impl PatriciaKey for $integer {
            type Bytes<'k> = [u8; size_of::<$integer>()];
            type Path = [u8; size_of::<$integer>()];
            const FIXED: Option<usize> = Some(size_of::<$integer>());

            #[inline(always)]
            fn bytes(key: Self::Ref<'_>) -> Self::Bytes<'_> {
                key.to_be_bytes()
            }
            #[inline(always)]
            fn of_bytes(bytes: &[u8]) -> $integer {
                <$integer>::from_be_bytes(bytes.try_into().unwrap_or_default())
            }
            #[inline(always)]
            fn of_path(path: &Self::Path) -> Option<$integer> {
                Some(<$integer>::from_be_bytes(*path))
            }
        }
    };
}

integer!(u64);
integer!(u128);

impl PatriciaKey for [u8] {
    type Bytes<'k> = &'k [u8];
    type Path = [u8; 0];
    const FIXED: Option<usize> = None;

    #[inline(always)]
    fn bytes(key: Self::Ref<'_>) -> Self::Bytes<'_> {
        key
    }
    #[inline(always)]
    fn of_bytes(bytes: &[u8]) -> &[u8] {
        bytes
    }
    #[inline(always)]
    fn of_path(_path: &[u8; 0]) -> Option<&'static [u8]> {
        None
    }
}
