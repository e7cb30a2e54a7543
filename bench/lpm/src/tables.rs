//! Real routing tables, which packages of the registry contain, and addresses inside them.

use ipnet::IpNet;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::error::Error;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::Command;

/// The source of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// 1 062 046 prefixes in `ts_bart`. The value of a prefix is its number.
    Bart,
    /// 1 248 917 prefixes in `iptrie`, with numbers of autonomous systems as values.
    Iptrie,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bart => "ts_bart 0.6.1",
            Self::Iptrie => "iptrie 0.11.2",
        }
    }
}

/// The folder of a package that this one depends on.
fn folder(package: &str) -> Result<PathBuf, Box<dyn Error>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = ["metadata", "--format-version", "1", "--offline", "--manifest-path", manifest];
    let output = Command::new(cargo).args(arguments).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let found = packages.iter().find(|found| found["name"] == package);
    let path = found.and_then(|found| found["manifest_path"].as_str());
    let path = PathBuf::from(path.ok_or("cargo metadata does not list the package")?);
    Ok(path.parent().ok_or("a manifest has a folder")?.to_path_buf())
}

/// The prefixes of a table in order, each with its value.
pub fn load(source: Source) -> Result<Vec<(IpNet, u32)>, Box<dyn Error>> {
    let mut text = String::new();
    if source == Source::Bart {
        let file = folder("ts_bart")?.join("benches/common/prefixes.txt.gz");
        flate2::read::GzDecoder::new(std::fs::File::open(file)?).read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(folder("iptrie")?.join("benches/bgpas.lpm"))?;
    }
    let mut entries = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(net) = words.next() else { continue };
        let value = words.next().map_or(Ok(0), str::parse)?;
        entries.push((net.parse::<IpNet>()?.trunc(), value));
    }
    entries.sort();
    entries.dedup_by_key(|(net, _)| *net);
    if source == Source::Bart {
        (0..).zip(&mut entries).for_each(|(number, (_, value))| *value = number);
    }
    Ok(entries)
}

/// The first and the last address of a prefix.
fn ends(net: &IpNet) -> (u128, u128) {
    let number = |address| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    (number(net.network()), number(net.broadcast()))
}

/// Addresses drawn uniformly from the union of the prefixes of one family, without a default route.
pub fn draw(nets: &[(IpNet, u32)], count: usize, seed: u64) -> Vec<u128> {
    let mut ranges: Vec<(u128, u128)> = Vec::new();
    // A default route announces nothing.
    for (net, _) in nets.iter().filter(|(net, _)| net.prefix_len() > 0) {
        let (first, last) = ends(net);
        match ranges.last_mut() {
            Some(range) if first <= range.1.saturating_add(1) => range.1 = range.1.max(last),
            _ => ranges.push((first, last)),
        }
    }
    let mut sum = 0;
    let sums: Vec<u128> = ranges
        .iter()
        .map(|(first, last)| {
            sum += last - first + 1;
            sum
        })
        .collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut draw = || {
        let drawn = (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) % sum;
        let at = sums.partition_point(|upto| *upto <= drawn);
        ranges[at].1 - (sums[at] - 1 - drawn)
    };
    (0..count).map(|_| draw()).collect()
}

/// An address of a family as a peer takes it.
pub trait Family: Copy + Into<IpAddr> + Send + Sync + 'static {
    const NAME: &'static str;
    fn of(number: u128) -> Self;
    fn has(net: &IpNet) -> bool;
}

impl Family for Ipv4Addr {
    const NAME: &'static str = "IPv4";
    fn of(number: u128) -> Self {
        Self::from(number as u32)
    }
    fn has(net: &IpNet) -> bool {
        net.addr().is_ipv4()
    }
}

impl Family for Ipv6Addr {
    const NAME: &'static str = "IPv6";
    fn of(number: u128) -> Self {
        Self::from(number)
    }
    fn has(net: &IpNet) -> bool {
        net.addr().is_ipv6()
    }
}
