//! A table agrees with a sorted map of prefixes, in which the longest match is searched in order.

use crate::{Rng, beside, inside, v4, v6};
use ipnet::IpNet;
use proptest::prelude::*;
use silvics::Lpm;
use silvics::lpm::{InsertError, PrefixError, RemoveError, parse_prefix};
use silvics_api_tests::mixed;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A type of values, and a value for each number.
trait Numbered: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    fn of(number: u64) -> Self;
}

impl Numbered for u32 {
    fn of(number: u64) -> Self {
        mixed(number) as u32
    }
}

impl Numbered for u64 {
    fn of(number: u64) -> Self {
        mixed(number)
    }
}

impl Numbered for () {
    fn of(_number: u64) -> Self {}
}

impl Numbered for i8 {
    fn of(number: u64) -> Self {
        // Few values, so that neighbouring prefixes often have equal ones.
        (number % 3) as i8 - 1
    }
}

impl Numbered for String {
    fn of(number: u64) -> Self {
        format!("value {number}")
    }
}

impl Numbered for [u64; 9] {
    fn of(number: u64) -> Self {
        [number; 9]
    }
}

/// A table and what it should contain.
struct Pair<V: Numbered> {
    table: Lpm<V>,
    model: BTreeMap<IpNet, V>,
    number: u64,
}

impl<V: Numbered> Pair<V> {
    fn new() -> Self {
        Self { table: Lpm::new(), model: BTreeMap::new(), number: 0 }
    }

    fn insert(&mut self, net: IpNet) {
        self.number += 1;
        let value = V::of(self.number);
        let old = self.table.insert(net, value.clone()).unwrap().map(|old| (*old).clone());
        assert_eq!(old, self.model.insert(net, value), "{net}");
    }

    fn remove(&mut self, net: IpNet) {
        let old = self.table.remove(net).unwrap().map(|old| (*old).clone());
        assert_eq!(old, self.model.remove(&net), "{net}");
    }

    /// Compares the lookups of an address and of addresses beside it.
    fn compare(&self, net: IpNet, bits: u128) {
        let addresses = [
            inside(net, bits),
            inside(net, 0),
            inside(net, !0),
            beside(net, true),
            beside(net, false),
        ];
        let view = self.table.pin();
        let mut found = [const { None }; 5];
        view.get_many(&addresses, &mut found);
        for (address, found) in addresses.into_iter().zip(found) {
            let covers = |(net, _): &(&IpNet, &V)| net.contains(&address);
            let longest = self.model.iter().filter(covers).max_by_key(|(net, _)| net.prefix_len());
            let looked_up = view.lookup(address);
            let looked_up = looked_up.as_ref().map(|(net, value)| (net, &**value));
            assert_eq!(looked_up, longest, "{address}");
            let found = found.as_ref().map(|found| (found.prefix(address), &**found));
            assert_eq!(found.as_ref().map(|(net, value)| (net, *value)), longest, "{address}");
        }
        assert_eq!(view.get(net).as_deref(), self.model.get(&net), "{net}");
        let entries = |nets: silvics::lpm::Prefixes<'_, V>| {
            nets.map(|(net, value)| (net, (*value).clone())).collect::<Vec<_>>()
        };
        let of = |inside: &dyn Fn(&IpNet) -> bool| {
            let inside = self.model.iter().filter(|(net, _)| inside(net));
            inside.map(|(net, value)| (*net, value.clone())).collect::<Vec<_>>()
        };
        assert_eq!(entries(view.covered(net)), of(&|other| net.contains(other)), "{net}");
        assert_eq!(entries(view.covering(net)), of(&|other| other.contains(&net)), "{net}");
        assert_eq!(view.len(), self.model.len());
    }

    fn check(&mut self) {
        assert_eq!(self.table.check().unwrap_or_else(|wrong| panic!("{wrong}")), self.model.len());
        let view = self.table.pin();
        let all = view.iter().map(|(net, value)| (net, (*value).clone()));
        assert!(all.eq(self.model.iter().map(|(net, value)| (*net, value.clone()))));
    }
}

/// A step of a program on a table: whether it inserts, and a prefix.
type Step = (bool, IpNet, u128);

/// Prefixes of few addresses, so that they cover each other.
fn near(lens: std::ops::RangeInclusive<u8>) -> impl Strategy<Value = IpNet> {
    let v4_of = |(address, len): (u32, u8)| v4(address & 0xC1C3_8181, len.min(32));
    let v6_of =
        |(address, len): (u128, u8)| v6(address & 0x2001_0DB8_8000_0001_8000_0001_8000_8081, len);
    let clustered = (any::<u32>(), 0..=32_u8).prop_map(v4_of);
    prop_oneof![
        clustered,
        (any::<u32>(), 0..=32_u8).prop_map(|(address, len)| v4(address, len)),
        (any::<u128>(), lens.clone()).prop_map(v6_of),
        (any::<u128>(), lens).prop_map(|(address, len)| v6(address, len)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (prop::bool::weighted(0.6), near(0..=128), any::<u128>());
    prop::collection::vec(step, 1..if cfg!(miri) { 30 } else { 120 })
}

fn run<V: Numbered>(steps: &[Step]) {
    let mut pair = Pair::<V>::new();
    for (at, &(inserts, net, bits)) in steps.iter().enumerate() {
        if inserts {
            pair.insert(net);
        } else {
            // Mostly one that is present.
            let present = pair.model.keys().nth(bits as usize % pair.model.len().max(1)).copied();
            pair.remove(present.filter(|_| at % 8 > 0).unwrap_or(net));
        }
        pair.compare(net, bits);
        pair.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 16 }, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn programs_agree(steps in steps()) {
        run::<u32>(&steps);
        run::<i8>(&steps);
        run::<String>(&steps);
    }

    #[test]
    fn programs_with_other_values_agree(steps in steps()) {
        run::<()>(&steps);
        run::<u64>(&steps);
        run::<[u64; 9]>(&steps);
    }
}

/// All lengths of one address, and of its neighbours, in several orders of insertion and removal.
#[test]
fn chains_of_all_lengths_agree() {
    let orders = if cfg!(miri) { 1 } else { 4 };
    for order in 0..orders {
        let mut nets: Vec<IpNet> = (0..=32).map(|len| v4(0xC0A8_57E1, len)).collect();
        nets.extend((1..=32).map(|len| v4(0xC0A8_57E1 ^ 1 << (32 - len), len)));
        nets.extend((0..=128).map(|len| v6(0x2001_0DB8_57E1_0000_1234_5678_9ABC_DEF1, len)));
        let mut rng = Rng(order);
        let mut shuffle = |nets: &mut Vec<IpNet>| match order {
            0 => {}
            1 => nets.reverse(),
            _ => (1..nets.len()).for_each(|at| nets.swap(at, rng.below(at as u64 + 1) as usize)),
        };
        let mut pair = Pair::<u32>::new();
        shuffle(&mut nets);
        for &net in &nets {
            pair.insert(net);
            pair.compare(net, 0x5555);
            pair.check();
        }
        for net in &nets {
            pair.insert(*net); // another value
        }
        shuffle(&mut nets);
        for &net in &nets {
            pair.remove(net);
            pair.remove(net);
            pair.compare(net, 0x5555);
            pair.check();
        }
        assert!(pair.table.is_empty());
    }
}

/// A node with all prefixes that it can have: 510, of which 254 are hidden.
#[test]
fn full_nodes_agree() {
    let step = if cfg!(miri) { 4 } else { 1 };
    let mut pair = Pair::<u32>::new();
    for len in (17..=24).rev() {
        for slot in (0..256_u32).step_by(step << (24 - len)) {
            pair.insert(v4(0x0A0B_0000 | slot << 8, len));
        }
    }
    // Children in all slots, which the prefixes of the node still cover.
    for slot in (0..256_u32).step_by(step) {
        pair.insert(v4(0x0A0B_0080 | slot << 8, 25));
        pair.insert(v4(0x0A0B_0000 | slot << 8, 16));
    }
    pair.check();
    pair.compare(v4(0x0A0B_0000, 16), 0x1234);
    pair.compare(v4(0x0A0B_4000, 18), 0x1234);
    let nets: Vec<IpNet> = pair.model.keys().copied().collect();
    for (at, net) in nets.into_iter().enumerate() {
        pair.remove(net);
        if at % 97 == 0 {
            pair.check();
            pair.compare(net, 0x1234);
        }
    }
    assert!(pair.table.is_empty());
}

/// Tables as large as their nodes are wide at each depth.
#[test]
fn random_tables_agree() {
    let (count, probes) = if cfg!(miri) { (60, 10) } else { (6000, 60) };
    let mut pair = Pair::<u32>::new();
    let mut rng = Rng(9);
    for _ in 0..count {
        let len = 8 + rng.below(25) as u8;
        pair.insert(v4(rng.next() as u32 & 0x03FF_FFFF, len));
        let address = u128::from(rng.next()) << 64 | u128::from(rng.next());
        pair.insert(v6(0x2001 << 112 | address & 0xFF7F << 80, 16 + rng.below(113) as u8));
    }
    pair.check();
    for _ in 0..probes {
        pair.compare(v4(rng.next() as u32 & 0x03FF_FFFF, rng.below(33) as u8), 0x77);
        let address = u128::from(rng.next()) << 64;
        pair.compare(v6(0x2001 << 112 | address & 0xFF7F << 80, rng.below(129) as u8), 0x77);
    }
    let nets: Vec<IpNet> = pair.model.keys().copied().filter(|_| rng.below(3) > 0).collect();
    for net in nets {
        pair.remove(net);
    }
    pair.check();
}

/// A batch of any length and of both families finds what single lookups find.
#[test]
fn batches_of_all_lengths_agree() {
    let table: Lpm<u32> = Lpm::new();
    let mut rng = Rng(3);
    for number in 0..500 {
        let len = rng.below(33) as u8;
        table.insert(v4(rng.next() as u32, len), number).unwrap();
        let address = u128::from(rng.next()) << 64;
        table.insert(v6(address, rng.below(65) as u8), number).unwrap();
    }
    let view = table.pin();
    let mut draw = |families: u64, at: usize| match (families, at % 3) {
        (0, _) | (2, 0) => IpAddr::V4((rng.next() as u32).into()),
        _ => IpAddr::V6((u128::from(rng.next()) << 64).into()),
    };
    for len in (0..140).step_by(if cfg!(miri) { 35 } else { 1 }) {
        for families in 0..3 {
            let addresses: Vec<IpAddr> = (0..len).map(|at| draw(families, at)).collect();
            let mut found: Vec<_> = (0..len + 3).map(|_| None).collect();
            view.get_many(&addresses, &mut found);
            for (address, found) in addresses.iter().zip(&found) {
                let single = view.lookup(*address).map(|(net, value)| (net, *value));
                assert_eq!(found.as_ref().map(|found| (found.prefix(*address), **found)), single);
            }
            assert!(found[len..].iter().all(Option::is_none));
        }
    }
}

/// A wrong prefix is refused in one sentence, and changes nothing.
#[test]
fn wrong_prefixes_are_refused() {
    for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "::/129", "x/8", "10.0.0.0/8 "] {
        let error = parse_prefix(text).unwrap_err();
        assert_eq!(error, PrefixError::Syntax { text: text.to_string() });
        assert!(error.to_string().contains("is no prefix: write an address"), "{error}");
    }
    let error = parse_prefix("2001:db8::1/32").unwrap_err();
    assert_eq!(
        error.to_string(),
        "2001:db8::1/32 has bits set behind its length: write 2001:db8::/32"
    );
    let table: Lpm<String> = Lpm::new();
    table.insert(v4(0x0A00_0000, 8), "ten".to_string()).unwrap();
    let host: IpNet = "10.0.0.1/8".parse().unwrap();
    match table.insert(host, "value".to_string()).map(|_| ()) {
        Err(InsertError::Prefix { error, value }) => {
            assert_eq!((error, value), (PrefixError::HostBits { given: host }, "value".into()));
        }
        other => panic!("{other:?}"),
    }
    let removed = table.remove(host).map(|_| ());
    assert_eq!(removed, Err(RemoveError::Prefix(PrefixError::HostBits { given: host })));
    assert!(table.get(host).is_none());
    // Walks take the network of a prefix.
    let view = table.pin();
    assert_eq!((view.covered(host).count(), view.covering(host).count()), (1, 1));
}
