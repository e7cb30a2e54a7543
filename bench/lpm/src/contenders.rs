//! The tables that are measured, behind one trait.

use crate::tables::Family;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rotonda_store::match_options::{IncludeHistory, MatchOptions, MatchType};
use rotonda_store::prefix_record::{Meta, Record, RouteStatus};
use rotonda_store::rib::StarCastRib;
use rotonda_store::rib::config::MemoryOnlyConfig;
use silvics::Lpm;
use silvics::lpm::Match;
use std::net::IpAddr;
use ts_bart::RoutingTable;

/// A table of prefixes of one family, with numbers.
pub trait Contender<F: Family> {
    /// Inserts a prefix, or gives it another number.
    fn insert(&mut self, net: IpNet, value: u32);

    /// Looks up all addresses. Returns the sum of the numbers found.
    fn sum(&self, addresses: &[F]) -> u64;

    /// The bytes that the table holds, if it knows them.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// Our table, looked up one address at a time.
pub struct Ours(pub Lpm<u32>);

impl<F: Family> Contender<F> for Ours {
    fn insert(&mut self, net: IpNet, value: u32) {
        self.0.insert(net, value).expect("there is memory and the prefix is one");
    }

    fn sum(&self, addresses: &[F]) -> u64 {
        let (mut view, mut sum) = (self.0.pin(), 0);
        for some in addresses.chunks(64) {
            for address in some {
                if let Some((_, value)) = view.lookup(*address) {
                    sum += u64::from(*value);
                }
            }
            view.repin();
        }
        sum
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.0.bytes())
    }
}

/// The sum of the numbers that batches of 64 find.
pub fn sum_of_batches<F: Family>(table: &Lpm<u32>, addresses: &[F]) -> u64 {
    let (mut view, mut sum) = (table.pin(), 0);
    for some in addresses.chunks(64) {
        let mut found: [Option<Match<'_, u32>>; 64] = [const { None }; 64];
        view.get_many(some, &mut found);
        sum += found.iter().flatten().map(|found| u64::from(**found)).sum::<u64>();
        view.repin();
    }
    sum
}

#[derive(Default)]
pub struct Bart(ts_bart::Table<u32>);

impl<F: Family> Contender<F> for Bart {
    fn insert(&mut self, net: IpNet, value: u32) {
        self.0.insert(net, value);
    }

    fn sum(&self, addresses: &[F]) -> u64 {
        let found = addresses.iter().filter_map(|address| self.0.lookup((*address).into()));
        found.map(|value| u64::from(*value)).sum()
    }
}

/// `ts_bart` with children in arrays of their node.
#[derive(Default)]
pub struct BartInline(ts_bart::table::SplitStackTable<ts_bart::Node<u32, ts_bart::InlineStorage>>);

impl<F: Family> Contender<F> for BartInline {
    fn insert(&mut self, net: IpNet, value: u32) {
        self.0.insert(net, value);
    }

    fn sum(&self, addresses: &[F]) -> u64 {
        let found = addresses.iter().filter_map(|address| self.0.lookup((*address).into()));
        found.map(|value| u64::from(*value)).sum()
    }
}

#[derive(Default)]
pub struct PrefixTrie {
    v4: prefix_trie::PrefixMap<Ipv4Net, u32>,
    v6: prefix_trie::PrefixMap<Ipv6Net, u32>,
}

impl<F: Family> Contender<F> for PrefixTrie {
    fn insert(&mut self, net: IpNet, value: u32) {
        match net {
            IpNet::V4(net) => self.v4.insert(net, value),
            IpNet::V6(net) => self.v6.insert(net, value),
        };
    }

    fn sum(&self, addresses: &[F]) -> u64 {
        let find = |address: &F| match (*address).into() {
            IpAddr::V4(address) => {
                self.v4.get_lpm(&Ipv4Net::new_assert(address, 32)).map(|(_, value)| value)
            }
            IpAddr::V6(address) => {
                self.v6.get_lpm(&Ipv6Net::new_assert(address, 128)).map(|(_, value)| value)
            }
        };
        addresses.iter().filter_map(find).map(|value| u64::from(*value)).sum()
    }
}

#[derive(Default)]
pub struct TreeBitmap(ip_network_table::IpNetworkTable<u32>);

impl<F: Family> Contender<F> for TreeBitmap {
    fn insert(&mut self, net: IpNet, value: u32) {
        let net = ip_network::IpNetwork::new(net.addr(), net.prefix_len());
        self.0.insert(net.expect("host bits are zero"), value);
    }

    fn sum(&self, addresses: &[F]) -> u64 {
        let find = |address: &F| match (*address).into() {
            IpAddr::V4(address) => self.0.longest_match_ipv4(address).map(|(_, value)| value),
            IpAddr::V6(address) => self.0.longest_match_ipv6(address).map(|(_, value)| value),
        };
        addresses.iter().filter_map(find).map(|value| u64::from(*value)).sum()
    }
}

/// A number in the form that `rotonda-store` takes.
#[derive(Clone, Debug)]
pub struct Number([u8; 4]);

impl Meta for Number {
    type Orderable<'a> = u32;
    type TBI = ();

    fn as_orderable(&self, (): ()) -> u32 {
        u32::from_le_bytes(self.0)
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", u32::from_le_bytes(self.0))
    }
}

impl AsRef<[u8]> for Number {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Number {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.first_chunk().copied().unwrap_or_default())
    }
}

/// `rotonda-store`, in memory.
pub struct Rotonda(StarCastRib<Number, MemoryOnlyConfig>);

impl Default for Rotonda {
    fn default() -> Self {
        Self(StarCastRib::try_default().expect("a store in memory"))
    }
}

impl Rotonda {
    /// Inserts a prefix, or gives it another number. Any thread may.
    pub fn put(&self, net: IpNet, value: u32) {
        let prefix = inetnum::addr::Prefix::new(net.addr(), net.prefix_len());
        let record = Record::new(1, 1, RouteStatus::Active, Number(value.to_le_bytes()));
        let put = self.0.insert(&prefix.expect("host bits are zero"), record, None);
        put.expect("a store in memory");
    }
}

impl<F: Family> Contender<F> for Rotonda {
    fn insert(&mut self, net: IpNet, value: u32) {
        self.put(net, value);
    }

    fn sum(&self, addresses: &[F]) -> u64 {
        let options = MatchOptions {
            match_type: MatchType::LongestMatch,
            include_withdrawn: false,
            include_less_specifics: false,
            include_more_specifics: false,
            mui: None,
            include_history: IncludeHistory::None,
        };
        let (mut guard, mut sum) = (rotonda_store::epoch::pin(), 0);
        for some in addresses.chunks(64) {
            for address in some {
                let address: IpAddr = (*address).into();
                let len = if address.is_ipv4() { 32 } else { 128 };
                let host = inetnum::addr::Prefix::new(address, len).expect("all bits of it");
                let found = self.0.match_prefix(&host, &options, &guard).expect("in memory");
                if let Some(record) = found.records.first() {
                    sum += u64::from(u32::from_le_bytes(record.meta.0));
                }
            }
            guard.repin();
        }
        sum
    }
}
