//! Limits, allocations that fail, destructors that panic, and values that are dropped once.

use crate::{Rng, v4, v6};
use ipnet::IpNet;
use silvics::lpm::{InsertError, RemoveError};
use silvics::{AllocError, Heap, Lpm, Options, Pages, Shared};
use silvics_api_tests::Tracked;
use silvics_sync::atomic::{AtomicI64, Ordering};
use silvics_testkit::make::apart;
use std::alloc::Layout;
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::sync::Arc;

fn options() -> Options {
    Options { pages: Pages::Small, ..apart() }
}

/// A prefix of either family, out of many.
fn net(rng: &mut Rng) -> IpNet {
    if rng.below(2) == 0 {
        v4(rng.next() as u32 & 0x0FFF_FFFF, 8 + rng.below(25) as u8)
    } else {
        v6((0x2001 << 112) | u128::from(rng.next()) << 48, 16 + rng.below(64) as u8)
    }
}

/// A table at its limit returns values, and takes others again after removals.
#[test]
fn a_table_at_its_limit_returns_values() {
    let limit = if cfg!(miri) { 1 << 17 } else { 1 << 20 };
    let live: Arc<AtomicI64> = Arc::default();
    let options = Options { memory_limit: Some(limit), ..options() };
    let mut table: Lpm<Tracked> = Lpm::with_options(&options).unwrap();
    let mut rng = Rng(1);
    for round in 0..3 {
        let mut inserted = Vec::new();
        let rejected = loop {
            let (net, number) = (net(&mut rng), inserted.len() as u64);
            match table.insert(net, Tracked::new(number, &live)) {
                Ok(_) => inserted.push(net),
                Err(InsertError::Alloc(rejected)) => break rejected,
                Err(other) => panic!("{other}"),
            }
        };
        assert!(matches!(rejected.error, AllocError::Limit { .. }), "{rejected}");
        assert_eq!(rejected.value.number(), inserted.len() as u64);
        drop(rejected);
        assert!(table.bytes() <= limit);
        let least = if cfg!(miri) { 100 } else { 3000 };
        assert!(inserted.len() > least, "{} in round {round}", inserted.len());
        table.settle();
        assert_eq!(table.check().unwrap_or_else(|wrong| panic!("{wrong}")), table.len());
        assert_eq!(live.load(Ordering::Relaxed), table.len() as i64);
        // A removal copies nodes. If there is no memory for that, nothing changes.
        for net in inserted {
            let present = table.get(net).is_some();
            match table.remove(net) {
                Ok(old) => assert_eq!(old.is_some(), present),
                Err(RemoveError::Alloc(error)) => {
                    assert!(matches!(error, AllocError::Limit { .. }));
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(table.check().unwrap_or_else(|wrong| panic!("{wrong}")), table.len());
        table.settle();
        table.shrink();
        assert_eq!(live.load(Ordering::Relaxed), table.len() as i64);
        assert!(table.len() < least / 10, "{} of round {round} are left", table.len());
    }
    drop(table);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A heap whose n-th allocation fails, and the one after it: a call that fails flushes, and tries
/// once more.
#[derive(Debug, Default)]
struct Faulty {
    /// Counts down; the allocations at zero and behind it fail, and all later ones succeed.
    left: AtomicI64,
    live: AtomicI64,
}

#[allow(clippy::disallowed_methods)] // this is a heap
// SAFETY: memory comes from the global allocator, and goes back to it.
unsafe impl Heap for Faulty {
    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        if matches!(self.left.fetch_sub(1, Ordering::Relaxed), 0 | -1) {
            return None;
        }
        self.live.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: our contract.
        unsafe { std::alloc::dealloc(object.as_ptr(), layout) };
    }
}

/// Each allocation of an update fails in turn. The table is as it was, and no object is lost.
#[test]
fn each_allocation_fails_in_turn() {
    let spread: Vec<IpNet> = (0..60).map(|at| v4(0x0A00_0000 | at << 18, 14)).collect();
    let deep: Vec<IpNet> = (0..60).map(|at| v4(0x0A00_0000 | at << 18, 24)).collect();
    let six: Vec<IpNet> = [32, 48, 64, 128].map(|len| v6(0x2001_0DB8 << 96 | 1 << 70, len)).into();
    let setups: [(Vec<IpNet>, IpNet); 5] = [
        (vec![], v4(0x0A00_0000, 24)),
        ([spread, deep.clone()].concat(), v4(0x0A00_0000, 9)),
        (deep, v4(0x0A00_0000, 24)),
        (six.clone(), v6(0x2001_0DB8 << 96 | 1 << 85, 48)),
        (six, v6(0x2001_0DB8 << 96, 32)),
    ];
    for (nets, changed) in &setups {
        for removes in [false, true] {
            let mut failed = 0;
            for nth in 0..if cfg!(miri) { 4 } else { 40 } {
                failed += fail_nth(nets, *changed, removes, nth);
            }
            assert!(failed > 0 || removes && !nets.contains(changed), "no allocation has failed");
        }
    }
}

/// Lets one allocation of an update fail. Returns the number of failed calls.
fn fail_nth(nets: &[IpNet], changed: IpNet, removes: bool, nth: i64) -> usize {
    let heap = Arc::new(Faulty { left: AtomicI64::new(i64::MAX), ..Faulty::default() });
    let options = Options { heap: Some(heap.clone()), ..options() };
    let live: Arc<AtomicI64> = Arc::default();
    let mut table: Lpm<Tracked, Shared> = Lpm::with_options(&options).unwrap();
    for (number, net) in nets.iter().enumerate() {
        table.insert(*net, Tracked::new(number as u64, &live)).unwrap();
    }
    let before: Vec<_> = table.pin().iter().map(|(net, value)| (net, value.number())).collect();
    let mut failed = 0;
    for _ in 0..2 {
        heap.left.store(nth, Ordering::Relaxed);
        let view = table.pin();
        let is_ok = if removes {
            view.remove(changed).is_ok()
        } else {
            match view.insert(changed, Tracked::new(1000, &live)) {
                Ok(_) => true,
                Err(InsertError::Alloc(rejected)) => {
                    assert_eq!(rejected.value.number(), 1000);
                    false
                }
                Err(other) => panic!("{other}"),
            }
        };
        failed += usize::from(!is_ok);
        drop(view);
        heap.left.store(i64::MAX, Ordering::Relaxed);
        assert_eq!(table.check().unwrap_or_else(|wrong| panic!("{wrong}")), table.len());
        if !is_ok {
            let view = table.pin();
            let now = view.iter().map(|(net, value)| (net, value.number()));
            assert!(now.eq(before.iter().copied()), "a failed update has changed the table");
        }
    }
    table.settle();
    assert_eq!(live.load(Ordering::Relaxed), table.len() as i64);
    drop(table);
    assert_eq!(live.load(Ordering::Relaxed), 0, "values are live");
    assert_eq!(heap.live.load(Ordering::Relaxed), 0, "objects are live");
    failed
}

/// A value whose destructor panics.
#[derive(Debug)]
struct Panics(#[allow(dead_code)] Tracked);

impl Drop for Panics {
    fn drop(&mut self) {
        resume_unwind(Box::new("a wanted panic"));
    }
}

/// Panics of destructors reach no caller of the table, and no value is dropped twice.
#[test]
fn panics_of_destructors_reach_no_caller() {
    let live: Arc<AtomicI64> = Arc::default();
    let mut table: Lpm<Panics> = Lpm::with_options(&options()).unwrap();
    let mut rng = Rng(5);
    let nets: Vec<IpNet> = (0..400).map(|_| net(&mut rng)).collect();
    for net in nets.iter().chain(&nets) {
        drop(table.insert(*net, Panics(Tracked::new(0, &live))).unwrap());
    }
    nets.iter().step_by(2).for_each(|net| drop(table.remove(*net).unwrap()));
    table.settle();
    assert_eq!(live.load(Ordering::Relaxed), table.len() as i64);
    assert_eq!(table.check().unwrap_or_else(|wrong| panic!("{wrong}")), table.len());
    drop(table);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A value stays readable under its pin, and is dropped afterwards.
#[test]
fn values_outlive_their_prefixes_under_a_pin() {
    let live: Arc<AtomicI64> = Arc::default();
    let mut table: Lpm<Tracked> = Lpm::with_options(&options()).unwrap();
    let ten = v4(0x0A00_0000, 8);
    table.insert(ten, Tracked::new(1, &live)).unwrap();
    let view = table.pin();
    let (_, value) = view.lookup(std::net::Ipv4Addr::new(10, 0, 0, 1)).unwrap();
    let one_shot = table.get(ten).unwrap();
    let old = table.remove(ten).unwrap().unwrap();
    table.flush();
    assert_eq!((value.number(), one_shot.number(), old.number()), (1, 1, 1));
    assert_eq!(live.load(Ordering::Relaxed), 1);
    drop((one_shot, old));
    drop(view);
    table.settle();
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// Memory stays constant while prefixes come and go, and goes back to the system.
#[test]
fn churn_runs_in_constant_memory() {
    let mut table: Lpm<u32> = Lpm::with_options(&options()).unwrap();
    let mut rng = Rng(2);
    let mut most = 0;
    for round in 0..if cfg!(miri) { 2 } else { 12 } {
        let nets: Vec<IpNet> = (0..1000).map(|_| net(&mut rng)).collect();
        for net in &nets {
            table.insert(*net, 1).unwrap();
        }
        for net in &nets {
            table.remove(*net).unwrap();
        }
        assert!(table.is_empty());
        if round < 4 {
            most = most.max(table.bytes());
        } else {
            assert!(table.bytes() <= most + (1 << 20), "{} after {most}", table.bytes());
        }
    }
    table.settle();
    assert_eq!(table.pool_stats().iter().map(|stats| stats.live_slots).sum::<usize>(), 0);
    assert_eq!(table.check(), Ok(0));
}
