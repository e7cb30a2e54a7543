//! Keys that are addresses with more than one number. `numbers.rs` has the others.

use super::{AsKey, FormRef, Key};
use crate::encoding::{Decoder, Encoder, no_variant};
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The byte before an address of version 4.
const V4: u8 = 0;
/// The byte before an address of version 6.
const V6: u8 = 1;

/// Implements [`Key`] for addresses, which are written and read by the two functions.
macro_rules! addresses {
    ($($type:ty: $write:expr, $read:expr;)*) => {$(
        impl Key for $type {
            type Form = [u8];
            type Ref<'a> = Self;
            type Part<'a> = Self;

            #[inline]
            fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
                Self::read(&mut Decoder::new(form))
            }
            #[inline]
            fn read(from: &mut Decoder<'_>) -> Self {
                let read: fn(&mut Decoder<'_>) -> Self = $read;
                read(from)
            }
            #[inline]
            fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
                key
            }
            #[inline]
            fn part_to_owned(part: Self) -> Self {
                part
            }
            #[inline]
            fn compare(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        }

        impl AsKey<Self> for $type {
            #[inline]
            fn with_form<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                Encoder::encode(|to| self.write(to), then)
            }
            #[inline]
            fn write(&self, to: &mut Encoder) {
                let write: fn(&Self, &mut Encoder) = $write;
                write(self, to);
            }
        }
    )*};
}

addresses! {
    SocketAddrV6: |address, to| {
        (*address.ip(), address.port(), address.flowinfo(), address.scope_id()).write(to);
    }, |from| {
        let (ip, port, flow, scope) = <(Ipv6Addr, u16, u32, u32)>::read(from);
        Self::new(ip, port, flow, scope)
    };
    IpAddr: |address, to| match address {
        Self::V4(v4) => (V4, *v4).write(to),
        Self::V6(v6) => (V6, *v6).write(to),
    }, |from| match from.array() {
        [V4] => Self::V4(Ipv4Addr::read(from)),
        [V6] => Self::V6(Ipv6Addr::read(from)),
        _ => no_variant(),
    };
    SocketAddr: |address, to| match address {
        Self::V4(v4) => (V4, *v4).write(to),
        Self::V6(v6) => (V6, *v6).write(to),
    }, |from| match from.array() {
        [V4] => Self::V4(SocketAddrV4::read(from)),
        [V6] => Self::V6(SocketAddrV6::read(from)),
        _ => no_variant(),
    };
}
