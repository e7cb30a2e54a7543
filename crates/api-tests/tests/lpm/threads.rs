//! Readers beside a writer: each result was right at some moment of its call.

use crate::{Rng, inside, v4, v6};
use ipnet::IpNet;
use silvics::{Lpm, Options, Pages};
use silvics_api_tests::Tracked;
use silvics_sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::scope;

/// The prefixes that contain an address, each with the number of the update that put it there.
type State = Vec<(IpNet, u64)>;

/// A program of updates, and what each of them leaves.
struct Program {
    /// A prefix, and whether it is inserted; its value is the number of the update.
    updates: Vec<(IpNet, bool)>,
    addresses: Vec<IpAddr>,
    /// For each address, the state before the first update, and after each of them.
    states: Vec<Vec<State>>,
}

impl Program {
    /// A program of updates of prefixes that contain one of the addresses.
    fn new(addresses: Vec<IpAddr>, nets: &[IpNet], count: usize, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let mut present = BTreeMap::new();
        let mut updates = Vec::new();
        let mut states = vec![vec![State::new()]; addresses.len()];
        for number in 1..=count as u64 {
            let net = nets[rng.below(nets.len() as u64) as usize];
            let inserts = rng.below(5) < 3;
            if inserts {
                present.insert(net, number);
            } else {
                present.remove(&net);
            }
            updates.push((net, inserts));
            for (address, states) in addresses.iter().zip(&mut states) {
                let around = present.iter().filter(|(net, _)| net.contains(address));
                states.push(around.map(|(net, number)| (*net, *number)).collect());
            }
        }
        Self { updates, addresses, states }
    }

    /// Runs the updates, beside two readers. `number` is that of a value.
    fn run<V: Send + Sync + std::fmt::Debug + 'static>(
        &self,
        table: &Lpm<V>,
        make: impl Fn(u64) -> V + Sync,
        number: impl Fn(&V) -> u64 + Sync,
    ) {
        // The updates that have begun, and those that are complete.
        let (begun, complete) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let done = AtomicBool::new(false);
        scope(|s| {
            for reader in 0..2 {
                let (begun, complete, done, number) = (&begun, &complete, &done, &number);
                s.spawn(move || {
                    let mut rng = Rng(reader);
                    while !done.load(Ordering::SeqCst) {
                        self.read(table, &mut rng, (begun, complete), number);
                    }
                });
            }
            for (at, (net, inserts)) in self.updates.iter().enumerate() {
                begun.store(at + 1, Ordering::SeqCst);
                if *inserts {
                    table.insert(*net, make(at as u64 + 1)).unwrap();
                } else {
                    table.remove(*net).unwrap();
                }
                complete.store(at + 1, Ordering::SeqCst);
            }
            done.store(true, Ordering::SeqCst);
        });
    }

    fn read<V: Send + Sync + 'static>(
        &self,
        table: &Lpm<V>,
        rng: &mut Rng,
        (begun, complete): (&AtomicUsize, &AtomicUsize),
        number: &impl Fn(&V) -> u64,
    ) {
        let of = rng.below(self.addresses.len() as u64) as usize;
        let (address, states) = (self.addresses[of], &self.states[of]);
        let view = table.pin();
        let first = complete.load(Ordering::SeqCst);
        let among = |what: &dyn Fn(&State) -> bool| {
            let last = begun.load(Ordering::SeqCst);
            assert!(states[first..=last].iter().any(what), "{address}: right at no moment");
        };
        match rng.below(4) {
            0 => {
                let found = view.lookup(address).map(|(net, value)| (net, number(&value)));
                among(&|state| state.last().copied() == found);
            }
            1 => {
                let mut found = [None];
                view.get_many(&[address], &mut found);
                let [found] = found;
                let found = found.map(|found| (found.prefix(address), number(&found)));
                among(&|state| state.last().copied() == found);
            }
            2 => {
                let around = view.covering(IpNet::from(address));
                let found: State = around.map(|(net, value)| (net, number(&value))).collect();
                among(&|state| *state == found);
            }
            _ => {
                let all = view.iter().filter(|(net, _)| net.contains(&address));
                let found: State = all.map(|(net, value)| (net, number(&value))).collect();
                among(&|state| *state == found);
            }
        }
    }
}

/// Prefixes of many lengths that contain addresses beside each other.
fn program(count: usize, seed: u64) -> Program {
    let (four, six) = (0xC0A8_5781, 0x2001_0DB8_57E1_0000_1234_5678_9ABC_DEF1);
    let mut nets: Vec<IpNet> =
        [0, 3, 4, 7, 8, 12, 16, 17, 20, 24, 25, 32].map(|len| v4(four, len)).into();
    nets.extend([9, 16, 24, 30].map(|len| v4(four ^ 1 << (32 - len), len)));
    nets.extend([0, 5, 8, 29, 32, 33, 48, 64, 127, 128].map(|len| v6(six, len)));
    nets.extend([32, 40, 48].map(|len| v6(six ^ 1 << (128 - len), len)));
    let addresses = [
        v4(four, 32),
        v4(four ^ 1, 32),
        v4(four ^ 0x100, 32),
        v6(six, 128),
        v6(six ^ 1 << 88, 128),
    ];
    let addresses = addresses.map(|net| inside(net, 0)).into();
    Program::new(addresses, &nets, count, seed)
}

fn updates() -> usize {
    if cfg!(miri) { 60 } else { 8000 }
}

#[test]
fn results_are_right_at_some_moment() {
    for seed in 0..2 {
        let mut table = Lpm::new();
        program(updates(), seed).run(&table, |number| number as u32, |value| u64::from(*value));
        table.check().unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// Values are dropped once, and none while a reader has it.
#[test]
fn values_are_right_and_dropped_once() {
    let live: Arc<AtomicI64> = Arc::default();
    let options = Options { pages: Pages::Small, ..silvics_testkit::make::apart() };
    let mut table: Lpm<Tracked> = Lpm::with_options(&options).unwrap();
    program(updates(), 7).run(&table, |number| Tracked::new(number, &live), Tracked::number);
    table.check().unwrap_or_else(|wrong| panic!("{wrong}"));
    table.settle();
    assert_eq!(live.load(Ordering::Relaxed), table.len() as i64);
    let live_nodes: Vec<_> =
        table.pool_stats().iter().map(|stats| (stats.kind, stats.live_slots)).collect();
    assert_eq!(table.reachable().unwrap(), live_nodes);
    drop(table);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// Writers of both families beside each other lose no update.
#[test]
fn writers_lose_nothing() {
    let (threads, rounds) = (4, if cfg!(miri) { 30 } else { 3000 });
    let mut table: Lpm<u64> = Lpm::new();
    scope(|s| {
        for thread in 0..threads {
            let table = &table;
            s.spawn(move || {
                let mut rng = Rng(thread);
                let mut present = BTreeMap::new();
                for round in 0..rounds {
                    // The last two bits of each prefix are the thread's.
                    let own = |bits: u64| bits << 2 | thread;
                    let net = if rng.below(2) == 0 {
                        v4((own(rng.below(1 << 14)) << 8) as u32, 24)
                    } else {
                        v6(u128::from(own(rng.below(1 << 10))) << 80, 48)
                    };
                    let value = round << 8 | thread;
                    let old = if rng.below(3) > 0 {
                        (
                            table.insert(net, value).unwrap().map(|old| *old),
                            present.insert(net, value),
                        )
                    } else {
                        (table.remove(net).unwrap().map(|old| *old), present.remove(&net))
                    };
                    assert_eq!(old.0, old.1, "{net}");
                }
                let view = table.pin();
                assert!(
                    present.iter().all(|(net, value)| view.get(*net).as_deref() == Some(value))
                );
            });
        }
    });
    assert_eq!(table.check().unwrap_or_else(|wrong| panic!("{wrong}")), table.len());
}
