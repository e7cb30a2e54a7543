//! Addresses of both families as numbers, and the depths at which nodes split them.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fmt::Debug;
use std::net::IpAddr;

/// The number of slots of the largest node.
pub(super) const MOST: usize = 256;

/// The number of bits that a node of this depth splits: two nodes of 4 bits, then nodes of 8.
///
/// A writer copies each node on its path. The first two nodes are on the path of every update, so
/// they are small.
#[inline(always)]
pub(super) const fn stride(depth: u8) -> u8 {
    if depth < 8 { 4 } else { 8 }
}

/// The depth of the node that has the prefixes of this length.
#[inline(always)]
pub(super) const fn home(len: u8) -> u8 {
    match len {
        0..=4 => 0,
        5..=8 => 4,
        _ => (len - 1) & !7,
    }
}

/// The number of nodes between the root and a leaf, at most.
pub(super) const LEVELS: usize = 17;

/// An address of a family, as a number.
pub(super) trait Address: Copy + Eq + Ord + Debug + Send + Sync + 'static {
    /// Whether a child may be deeper than the end of its slot. Then nodes have their paths.
    const SKIPS: bool;

    /// The digit that a node of this depth looks at.
    fn digit(self, depth: u8) -> usize;

    /// The address with only its first bits.
    fn first_bits(self, len: u8) -> Self;

    /// The number of leading bits that two addresses share.
    fn common(self, other: Self) -> u8;

    /// Whether the address begins with this path of `depth` bits.
    fn is_on(self, path: [u64; 2], depth: u8) -> bool;

    /// The address with a digit of a node of this depth, whose bits are zero.
    fn with_digit(self, depth: u8, digit: usize) -> Self;

    /// The prefix of some bits of the address.
    fn net(self, len: u8) -> IpNet;

    /// The address in the form in which nodes have it.
    fn to_path(self) -> [u64; 2];

    /// The address of a path.
    fn from_path(path: [u64; 2]) -> Self;
}

macro_rules! address {
    ($type:ty, $bits:literal, $skips:literal, $net:ident, $address:ident, $half:ident) => {
        impl Address for $type {
            const SKIPS: bool = $skips;

            #[inline(always)]
            fn digit(self, depth: u8) -> usize {
                let stride = stride(depth);
                let (half, end) = $half(self, depth);
                (half >> (end - depth - stride)) as usize & ((1 << stride) - 1)
            }

            #[inline(always)]
            fn is_on(self, [high, low]: [u64; 2], depth: u8) -> bool {
                let own = self.to_path();
                let differs = (own[0] ^ high, own[1] ^ low);
                if depth <= 64 {
                    differs.0.checked_shr(u32::from(64 - depth)).unwrap_or(0) == 0
                } else {
                    differs.0 == 0 && differs.1 >> (128 - depth) == 0
                }
            }

            #[inline(always)]
            fn first_bits(self, len: u8) -> Self {
                if len == 0 { 0 } else { self & (<$type>::MAX << ($bits - len)) }
            }

            #[inline(always)]
            fn common(self, other: Self) -> u8 {
                (self ^ other).leading_zeros() as u8
            }

            #[inline(always)]
            fn with_digit(self, depth: u8, digit: usize) -> Self {
                self | (digit as $type) << ($bits - depth - stride(depth))
            }

            #[inline(always)]
            fn net(self, len: u8) -> IpNet {
                let address = std::net::$address::from(self.first_bits(len));
                IpNet::from($net::new_assert(address, len))
            }

            #[inline(always)]
            fn to_path(self) -> [u64; 2] {
                let wide = u128::from(self) << (128 - $bits);
                [(wide >> 64) as u64, wide as u64]
            }

            #[inline(always)]
            fn from_path([high, low]: [u64; 2]) -> Self {
                ((u128::from(high) << 64 | u128::from(low)) >> (128 - $bits)) as $type
            }
        }
    };
}

/// The half of an address in which the digit at a depth is, and the depth at which the half ends.
/// No digit crosses the middle, and shifts of 64 bits are faster than those of 128.
#[inline(always)]
const fn half_of_v6(address: u128, depth: u8) -> (u64, u8) {
    if depth < 64 { ((address >> 64) as u64, 64) } else { (address as u64, 128) }
}

#[inline(always)]
const fn all_of_v4(address: u32, _depth: u8) -> (u64, u8) {
    (address as u64, 32)
}

address!(u32, 32, false, Ipv4Net, Ipv4Addr, all_of_v4);
address!(u128, 128, true, Ipv6Net, Ipv6Addr, half_of_v6);

/// An address or a prefix of either family.
#[derive(Clone, Copy)]
pub(super) enum Family<A, B> {
    V4(A),
    V6(B),
}

/// The number of an address.
#[inline(always)]
pub(super) fn number(address: IpAddr) -> Family<u32, u128> {
    match address {
        IpAddr::V4(address) => Family::V4(u32::from(address)),
        IpAddr::V6(address) => Family::V6(u128::from(address)),
    }
}

/// The number of the address of a prefix, host bits included, and the length.
#[inline(always)]
pub(super) fn parts(net: IpNet) -> Family<(u32, u8), (u128, u8)> {
    match net {
        IpNet::V4(net) => Family::V4((u32::from(net.addr()), net.prefix_len())),
        IpNet::V6(net) => Family::V6((u128::from(net.addr()), net.prefix_len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_a_home_whose_digit_ends_behind_it() {
        for len in 0..=128 {
            let depth = home(len);
            assert!(len <= depth + stride(depth), "{len}");
            assert!(len > depth || len == 0, "{len}");
        }
        let mut depths: Vec<u8> = (0..=128).map(home).collect();
        depths.dedup();
        assert_eq!(depths.len(), LEVELS);
    }

    #[test]
    fn digits_make_up_the_address() {
        let address = 0xC0A8_1234_u32;
        let digits = [0, 4, 8, 16, 24].map(|depth| address.digit(depth));
        assert_eq!(digits, [0xC, 0, 0xA8, 0x12, 0x34]);
        let built = [0, 4, 8, 16, 24].iter().zip(digits);
        assert_eq!(built.fold(0, |sum: u32, (&depth, at)| sum.with_digit(depth, at)), address);
        assert_eq!(u32::from_path(address.to_path()), address);
        let long = 0x2001_0DB8_0000_0000_0000_0000_0000_0001_u128;
        assert_eq!(u128::from_path(long.to_path()), long);
        assert_eq!(
            (long.digit(0), long.digit(4), long.digit(24), long.digit(120)),
            (2, 0, 0xB8, 1)
        );
        assert_eq!(long.first_bits(0), 0);
        assert_eq!(long.common(long), 128);
    }
}
