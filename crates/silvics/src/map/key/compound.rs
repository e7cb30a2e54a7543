//! Keys made of other keys: tuples, arrays and `Option`s.

use super::{AsKey, AsPrefix, FormRef, Key};
use crate::encoding::{Decoder, Encoder, no_variant};
use std::cmp::Ordering;

/// [`AsKey::with_form`] of a key whose form is the bytes that it writes as a part.
macro_rules! as_written {
    () => {
        #[inline]
        fn with_form<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
            Encoder::encode(|to| self.write(to), then)
        }
    };
}

macro_rules! tuples {
    ($($key:ident $as_key:ident $at:tt),*) => {
        impl<$($key: Key),*> Key for ($($key,)*) {
            type Form = [u8];
            type Ref<'a> = ($($key::Part<'a>,)*);
            type Part<'a> = ($($key::Part<'a>,)*);

            #[inline]
            fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
                Self::read(&mut Decoder::new(form))
            }
            #[inline]
            fn read<'a>(from: &mut Decoder<'a>) -> Self::Part<'a> {
                ($($key::read(from),)*)
            }
            #[inline]
            fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
                key
            }
            #[inline]
            fn part_to_owned(part: Self::Part<'_>) -> Self {
                ($($key::part_to_owned(part.$at),)*)
            }
            #[inline]
            fn compare(&self, other: &Self) -> Ordering {
                Ordering::Equal$(.then_with(|| self.$at.compare(&other.$at)))*
            }
        }

        impl<$($key: Key,)* $($as_key: AsKey<$key>,)*> AsKey<($($key,)*)> for ($($as_key,)*) {
            as_written!();

            #[inline]
            fn write(&self, to: &mut Encoder) {
                $(self.$at.write(to);)*
            }
        }
    };
}

tuples!(A QA 0);
tuples!(A QA 0, B QB 1);
tuples!(A QA 0, B QB 1, C QC 2);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7, I QI 8);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7, I QI 8, J QJ 9);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7, I QI 8, J QJ 9, K QK 10);
tuples!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7, I QI 8, J QJ 9, K QK 10, L QL 11);

/// Implements [`AsPrefix`] for all tuples that begin with the keys `$key`, followed by one or more
/// other keys.
macro_rules! prefixes {
    ([$($key:ident $as_key:ident $at:tt),*] $first:ident $($more:ident)*) => {
        prefixes!(@tuple [$($key $as_key $at),*] [$first] $($more)*);
    };
    (@tuple [$($key:ident $as_key:ident $at:tt),*] [$($rest:ident)*] $($more:ident)*) => {
        impl<$($key: Key,)* $($rest: Key,)* $($as_key: AsKey<$key>,)*> AsPrefix<($($key,)* $($rest,)*)>
            for ($($as_key,)*)
        {
            fn with_prefix<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                Encoder::encode(|to| { $(self.$at.write(to);)* }, then)
            }
        }
        prefixes!(@next [$($key $as_key $at),*] [$($rest)*] $($more)*);
    };
    (@next [$($key:ident $as_key:ident $at:tt),*] [$($rest:ident)*] $next:ident $($more:ident)*) => {
        prefixes!(@tuple [$($key $as_key $at),*] [$($rest)* $next] $($more)*);
    };
    (@next [$($key:ident $as_key:ident $at:tt),*] [$($rest:ident)*]) => {};
}

prefixes!([A QA 0] B C D E F G H I J K L);
prefixes!([A QA 0, B QB 1] C D E F G H I J K L);
prefixes!([A QA 0, B QB 1, C QC 2] D E F G H I J K L);
prefixes!([A QA 0, B QB 1, C QC 2, D QD 3] E F G H I J K L);

impl<T: Key, const N: usize> Key for [T; N] {
    type Form = [u8];
    type Ref<'a> = [T::Part<'a>; N];
    type Part<'a> = [T::Part<'a>; N];

    #[inline]
    fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
        Self::read(&mut Decoder::new(form))
    }
    #[inline]
    fn read<'a>(from: &mut Decoder<'a>) -> Self::Part<'a> {
        T::read_array(from)
    }
    #[inline]
    fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
        key
    }
    #[inline]
    fn part_to_owned(part: Self::Part<'_>) -> Self {
        part.map(T::part_to_owned)
    }
    #[inline]
    fn compare(&self, other: &Self) -> Ordering {
        let mut orders = self.iter().zip(other).map(|(one, other)| one.compare(other));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl<T: Key, Q: AsKey<T>, const N: usize> AsKey<[T; N]> for [Q; N] {
    as_written!();

    #[inline]
    fn write(&self, to: &mut Encoder) {
        Q::write_all(self, to);
    }
}

/// The byte before the key of a `Some`.
const SOME: u8 = 1;
/// The byte of a `None`.
const NONE: u8 = 0;

impl<T: Key> Key for Option<T> {
    type Form = [u8];
    type Ref<'a> = Option<T::Part<'a>>;
    type Part<'a> = Option<T::Part<'a>>;

    #[inline]
    fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
        Self::read(&mut Decoder::new(form))
    }
    #[inline]
    fn read<'a>(from: &mut Decoder<'a>) -> Self::Part<'a> {
        match from.array() {
            [NONE] => None,
            [SOME] => Some(T::read(from)),
            _ => no_variant(),
        }
    }
    #[inline]
    fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
        key
    }
    #[inline]
    fn part_to_owned(part: Self::Part<'_>) -> Self {
        part.map(T::part_to_owned)
    }
    #[inline]
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Some(one), Some(other)) => one.compare(other),
            _ => self.is_some().cmp(&other.is_some()),
        }
    }
}

impl<T: Key, Q: AsKey<T>> AsKey<Option<T>> for Option<Q> {
    as_written!();

    #[inline]
    fn write(&self, to: &mut Encoder) {
        match self {
            None => to.push(&[NONE]),
            Some(key) => {
                to.push(&[SOME]);
                key.write(to);
            }
        }
    }
}
