//! Keys whose form is a number.

use super::{AsKey, FormRef, Key};
use crate::encoding::{Decoder, Encoder, no_variant};
use std::cmp::Ordering;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::num::NonZero;
use std::time::{Duration, SystemTime};

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
            #[inline(always)]
            fn compare(&self, other: &Self) -> Ordering {
                let (one, other): ($number, $number) = ($to(*self), $to(*other));
                one.cmp(&other)
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

/// The map from numbers to those that are not 0.
macro_rules! non_zero {
    () => {
        |number| NonZero::new(number).unwrap_or_else(|| no_variant())
    };
}

numbers! {
    NonZero<u8>: u64; u8, 1; (NonZero::<u8>::get), (non_zero!());
    NonZero<u16>: u64; u16, 2; (NonZero::<u16>::get), (non_zero!());
    NonZero<u32>: u64; u32, 4; (NonZero::<u32>::get), (non_zero!());
    NonZero<u64>: u64; u64, 8; (NonZero::<u64>::get), (non_zero!());
    NonZero<u128>: u128; u128, 16; (NonZero::<u128>::get), (non_zero!());
    NonZero<i8>: u64; u8, 1; (|n: NonZero<i8>| signed!(i8, u8)(n.get())), (|n| non_zero!()(signed!(back u8)(n)));
    NonZero<i16>: u64; u16, 2; (|n: NonZero<i16>| signed!(i16, u16)(n.get())), (|n| non_zero!()(signed!(back u16)(n)));
    NonZero<i32>: u64; u32, 4; (|n: NonZero<i32>| signed!(i32, u32)(n.get())), (|n| non_zero!()(signed!(back u32)(n)));
    NonZero<i64>: u64; u64, 8; (|n: NonZero<i64>| signed!(i64, u64)(n.get())), (|n| non_zero!()(signed!(back u64)(n)));
    NonZero<i128>: u128; u128, 16; (|n: NonZero<i128>| signed!(i128, u128)(n.get())), (|n| non_zero!()(signed!(back u128)(n)));
    Ipv4Addr: u64; u32, 4; (u32::from), (Ipv4Addr::from);
    Ipv6Addr: u128; u128, 16; (u128::from), (Ipv6Addr::from);
    SocketAddrV4: u64; u64, 6; (socket_v4), (socket_v4_back);
    Duration: u128; u128, 12; (|time: Duration| seconds(time.as_secs(), time.subsec_nanos())), (duration_back);
    SystemTime: u128; u128, 12; (system_time), (system_time_back);
}

#[cfg(feature = "uuid")]
numbers! {
    uuid::Uuid: u128; u128, 16; (|id: uuid::Uuid| id.as_u128()), (uuid::Uuid::from_u128);
}

#[inline]
fn socket_v4(address: SocketAddrV4) -> u64 {
    u64::from(u32::from(*address.ip())) << 16 | u64::from(address.port())
}

#[inline]
fn socket_v4_back(number: u64) -> SocketAddrV4 {
    SocketAddrV4::new(((number >> 16) as u32).into(), number as u16)
}

/// The nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;
/// The seconds of [`SystemTime`]s are counted from so long before 1970.
const EPOCH: u64 = 1 << 63;

/// A number with the order of seconds and nanoseconds.
#[inline]
fn seconds(seconds: u64, nanos: u32) -> u128 {
    u128::from(seconds) << 32 | u128::from(nanos)
}

#[inline]
fn duration_back(number: u128) -> Duration {
    let nanos = number as u32;
    if nanos >= SECOND {
        no_variant();
    }
    Duration::new((number >> 32) as u64, nanos)
}

/// Times before 1970 count the nanoseconds up from a whole second, as other times do.
fn system_time(time: SystemTime) -> u128 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => seconds(EPOCH.saturating_add(since.as_secs()), since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let (whole, nanos) = (EPOCH.saturating_sub(before.as_secs()), before.subsec_nanos());
            if nanos == 0 {
                seconds(whole, 0)
            } else {
                seconds(whole.saturating_sub(1), SECOND - nanos)
            }
        }
    }
}

fn system_time_back(number: u128) -> SystemTime {
    let time = duration_back(number);
    let epoch = Duration::from_secs(EPOCH);
    let time = match time.checked_sub(epoch) {
        Some(since) => SystemTime::UNIX_EPOCH.checked_add(since),
        None => SystemTime::UNIX_EPOCH.checked_sub(epoch.saturating_sub(time)),
    };
    time.unwrap_or_else(|| no_variant())
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
    #[inline(always)]
    fn compare(&self, other: &Self) -> Ordering {
        self.cmp(other)
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
