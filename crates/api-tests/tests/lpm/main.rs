//! Tables of IP prefixes, as users call them.

mod agreement;
mod failures;
mod threads;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use silvics_api_tests::mixed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A seeded generator.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A prefix of IPv4.
fn v4(address: u32, len: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new(Ipv4Addr::from(address), len).unwrap().trunc())
}

/// A prefix of IPv6.
fn v6(address: u128, len: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new(Ipv6Addr::from(address), len).unwrap().trunc())
}

/// An address inside a prefix, with these bits behind its length.
fn inside(net: IpNet, bits: u128) -> IpAddr {
    match net {
        IpNet::V4(net) => {
            let host = u32::from(net.hostmask()) & bits as u32;
            IpAddr::V4(Ipv4Addr::from(u32::from(net.network()) | host))
        }
        IpNet::V6(net) => {
            let host = u128::from(net.hostmask()) & bits;
            IpAddr::V6(Ipv6Addr::from(u128::from(net.network()) | host))
        }
    }
}

/// The address right before a prefix, or right behind it.
fn beside(net: IpNet, behind: bool) -> IpAddr {
    match net {
        IpNet::V4(net) => IpAddr::V4(if behind {
            Ipv4Addr::from(u32::from(net.broadcast()).wrapping_add(1))
        } else {
            Ipv4Addr::from(u32::from(net.network()).wrapping_sub(1))
        }),
        IpNet::V6(net) => IpAddr::V6(if behind {
            Ipv6Addr::from(u128::from(net.broadcast()).wrapping_add(1))
        } else {
            Ipv6Addr::from(u128::from(net.network()).wrapping_sub(1))
        }),
    }
}
