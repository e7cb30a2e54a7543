//! Keys whose form is a number.

use super::{AsKey, FormRef, Key};
use crate::encoding::{Decoder, Encoder};

/// Implements [`Key`] for number types. Each line is
/// `type: form; unsigned integer of the same width, bytes in a part; to that integer, and back`.
macro_rules! numbers {
    ($($type:ty: $form:ty; $number:ty, $bytes:literal; $to:expr, $back:expr;)*) => {$(
        impl Key for $type {
            type Form = $form;
            type Ref<'a> = Self;
            type Part<'a> = Self;

            #[inline(always)]
            fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
                $back(form as $number)
            }
            #[inline(always)]
            fn read(from: &mut Decoder<'_>) -> Self {
                const WIDTH: usize = size_of::<$number>();
                let mut bytes = [0; WIDTH];
                bytes[WIDTH - $bytes..].copy_from_slice(&from.array::<$bytes>());
                $back(<$number>::from_be_bytes(bytes))
            }
            #[inline]
            fn read_array<const N: usize>(from: &mut Decoder<'_>) -> [Self; N] {
                std::array::from_fn(|_| Self::read(from))
            }
            #[inline(always)]
            fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
                key
            }
            #[inline(always)]
            fn part_to_owned(part: Self) -> Self {
                part
            }
        }

        impl AsKey<Self> for $type {
            #[inline(always)]
            fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, Self>) -> R) -> R {
                let number: $number = $to(*self);
                then(number as $form)
            }
            #[inline(always)]
            fn form(&self) -> Option<FormRef<'_, Self>> {
                let number: $number = $to(*self);
                Some(number as $form)
            }
            #[inline(always)]
            fn write(&self, to: &mut Encoder) {
                let number: $number = $to(*self);
                to.push(&number.to_be_bytes()[size_of::<$number>() - $bytes..]);
            }
        }
    )*};
}

/// The map from signed to unsigned integers that keeps the order: it flips the sign bit. The
/// inverse (`back`) differs in its types only.
macro_rules! signed {
    ($signed:ty, $unsigned:ty) => {
        |number: $signed| number.cast_unsigned() ^ 1 << (<$unsigned>::BITS - 1)
    };
    (back $unsigned:ty) => {
        |number: $unsigned| (number ^ 1 << (<$unsigned>::BITS - 1)).cast_signed()
    };
}

/// The map from floats to unsigned integers that keeps the order of `total_cmp`: it flips all bits
/// of negative numbers, and the sign bit of others.
macro_rules! float {
    ($float:ty, $bits:ty) => {
        |number: $float| {
            let bits = number.to_bits();
            let all = (bits.cast_signed() >> (<$bits>::BITS - 1)).cast_unsigned();
            bits ^ (all | 1 << (<$bits>::BITS - 1))
        }
    };
    (back $float:ty, $bits:ty) => {
        |bits: $bits| {
            let all = (!bits.cast_signed() >> (<$bits>::BITS - 1)).cast_unsigned();
            <$float>::from_bits(bits ^ (all | 1 << (<$bits>::BITS - 1)))
        }
    };
}

numbers! {
    u16: u64; u16, 2; (|number| number), (|number| number);
    u32: u64; u32, 4; (|number| number), (|number| number);
    u64: u64; u64, 8; (|number| number), (|number| number);
    usize: u64; u64, 8; (|number: usize| number as u64), (|number: u64| number as usize);
    u128: u128; u128, 16; (|number| number), (|number| number);
    i8: u64; u8, 1; (signed!(i8, u8)), (signed!(back u8));
    i16: u64; u16, 2; (signed!(i16, u16)), (signed!(back u16));
    i32: u64; u32, 4; (signed!(i32, u32)), (signed!(back u32));
    i64: u64; u64, 8; (signed!(i64, u64)), (signed!(back u64));
    isize: u64; u64, 8; (|number: isize| signed!(i64, u64)(number as i64)), (|number: u64| signed!(back u64)(number) as isize);
    i128: u128; u128, 16; (signed!(i128, u128)), (signed!(back u128));
    f32: u64; u32, 4; (float!(f32, u32)), (float!(back f32, u32));
    f64: u64; u64, 8; (float!(f64, u64)), (float!(back f64, u64));
    bool: u64; u8, 1; (u8::from), (|number| number != 0);
    char: u64; u32, 3; (u32::from), (|number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
}

// Implemented without the macro, since arrays of `u8` are read and written as one string of bytes.
impl Key for u8 {
    type Form = u64;
    type Ref<'a> = Self;
    type Part<'a> = Self;

    #[inline(always)]
    fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
        form as Self
    }
    #[inline(always)]
    fn read(from: &mut Decoder<'_>) -> Self {
        let [byte] = from.array();
        byte
    }
    #[inline]
    fn read_array<const N: usize>(from: &mut Decoder<'_>) -> [Self; N] {
        from.array()
    }
    #[inline(always)]
    fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
        key
    }
    #[inline(always)]
    fn part_to_owned(part: Self) -> Self {
        part
    }
}

impl AsKey<Self> for u8 {
    #[inline(always)]
    fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, Self>) -> R) -> R {
        then(u64::from(*self))
    }
    #[inline(always)]
    fn form(&self) -> Option<u64> {
        Some(u64::from(*self))
    }
    #[inline(always)]
    fn write(&self, to: &mut Encoder) {
        to.push(&[*self]);
    }
    #[inline]
    fn write_all(keys: &[Self], to: &mut Encoder) {
        to.push(keys);
    }
}
