//! Bugs for the tools that must find them: `silvics-planted NAME` commits the bug of that name.
//!
//! `.ci/sanitize` runs these bugs first: a tool that misses one is not believed when it finds
//! nothing in the structures. `none` does the same work correctly, and no tool may object to it, or
//! to `histories`: a few histories of every structure in each placement.

use silvics::structures::At;
use silvics::{Pooled, Shared};
use silvics_pool::{BytesPool, Config, Packed, Pool};
use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use silvics_testkit::Subject;
use silvics_testkit::clock::Clock;
use silvics_testkit::make::{self, Make};
use silvics_testkit::verify::{AllScans, NoScans, OrderedCalls, Plan, ScansAndEnds, Until, verify};
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::process::ExitCode;
use std::ptr::null_mut;

/// The rounds of a race, which a tool sees only if the threads overlap. On two processors the tools
/// need a common start and some milliseconds from there.
const ROUNDS: u64 = if cfg!(miri) { 50 } else { 1_000_000 };

type Node = [u64; 4];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "none" => none(),
        "histories" => histories(),
        "race" => race(),
        "publication" => publication(),
        "leak" => leak(),
        "use-after-free" => use_after_free(),
        "pooled-race" => pooled_race(),
        "pooled-use-after-free" => pooled_use_after_free(),
        "pooled-overflow" => pooled_overflow(),
        "pooled-double-free" => pooled_double_free(),
        "packed-use-after-free" => packed_use_after_free(),
        "packed-overflow" => packed_overflow(),
        _ => {
            eprintln!(
                "planted: no bug is called `{name}`: name none, histories, race, publication, leak, \
                 use-after-free, pooled-race, pooled-use-after-free, pooled-overflow, \
                 pooled-double-free, packed-use-after-free or packed-overflow"
            );
            return ExitCode::from(2);
        }
    }
    println!("planted: `{name}` ran to its end");
    ExitCode::SUCCESS
}

/// Records and checks some histories of every structure.
fn histories() {
    fn some<I: Subject + ?Sized, S: OrderedCalls<I>>(name: &str, make: Make<I>, calls: S) {
        let plan = Plan { until: Until::Histories(10), ..Plan::default() };
        let report = verify(make, &plan, &Clock::new(), calls, || false);
        assert!(
            report.found.is_none(),
            "{}",
            report.found.map_or(String::new(), |f| f.what.to_string())
        );
        assert_eq!(report.histories, 10);
        println!("{name}: {} operations", report.operations);
    }
    macro_rules! of {
        ($structure:ident $build:ident $keys:ident full points $f:ident $index:ty) => {
            let name = concat!(stringify!($structure), " with ", stringify!($keys));
            some(name, make::points::<At<$index, Pooled>>, NoScans);
            some(name, make::points::<At<$index, Shared>>, NoScans);
        };
        ($structure:ident $build:ident $keys:ident full ends $f:ident $index:ty) => {
            let name = concat!(stringify!($structure), " with ", stringify!($keys));
            some(name, make::ends::<At<$index, Pooled>>, ScansAndEnds);
            some(name, make::ends::<At<$index, Shared>>, ScansAndEnds);
        };
        ($structure:ident $build:ident $keys:ident full $scans:ident $f:ident $index:ty) => {
            let name = concat!(stringify!($structure), " with ", stringify!($keys));
            some(name, make::scans::<At<$index, Pooled>>, AllScans);
            some(name, make::scans::<At<$index, Shared>>, AllScans);
        };
        ($structure:ident $build:ident $keys:ident $runs:ident $($rest:tt)*) => {};
    }
    silvics::for_each_index! { of }
}

/// Runs both at once. They wait for each other by spinning: a sleeping thread would take longer to
/// wake than the other to end.
fn both(one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
    let waiting = AtomicUsize::new(2);
    std::thread::scope(|scope| {
        for work in [Box::new(one) as Box<dyn FnOnce() + Send>, Box::new(other)] {
            let waiting = &waiting;
            scope.spawn(move || {
                waiting.fetch_sub(1, Ordering::AcqRel);
                while waiting.load(Ordering::Acquire) > 0 {
                    silvics_sync::thread::yield_now();
                }
                work();
            });
        }
    });
}

/// Words that threads share without synchronization.
struct Bare(UnsafeCell<Node>);

// SAFETY: broken on purpose: only the code of each bug orders the accesses.
unsafe impl Sync for Bare {}

impl Bare {
    fn new() -> Self {
        Self(UnsafeCell::new([0; 4]))
    }

    /// Adds to the second word. The accesses are volatile, so that the compiler does not move them.
    fn add(&self) {
        // SAFETY: correct where a lock is held, broken on purpose in `race`.
        unsafe {
            let word = &raw mut (*self.0.get())[1];
            word.write_volatile(word.read_volatile() + 1);
        }
    }

    /// The second word.
    fn read(&self) -> u64 {
        // SAFETY: broken on purpose: nothing orders this read after the write.
        unsafe { (&raw const (*self.0.get())[1]).read_volatile() }
    }
}

fn none() {
    let (bare, lock) = (Bare::new(), silvics_sync::Mutex::new(()));
    let add = || {
        for _ in 0..ROUNDS / 10 {
            let held = lock.lock();
            bare.add();
            drop(held);
        }
    };
    both(add, add);
    let published = AtomicPtr::<u64>::new(null_mut());
    both(
        || published.store(Box::into_raw(Box::new(7)), Ordering::Release),
        || {
            // SAFETY: the node is published with Release, and freed below after both threads have
            // ended.
            let seen = unsafe { published.load(Ordering::Acquire).as_ref() };
            assert!(matches!(seen, None | Some(7)));
        },
    );
    // SAFETY: `Box::into_raw` made the pointer, and no other thread is left.
    drop(unsafe { Box::from_raw(published.into_inner()) });

    let (pool, bytes) = (
        Pool::<Node>::new("node", &Config::default()),
        BytesPool::new("bytes", &Config::default()),
    );
    let reuse = || {
        for round in 0..ROUNDS / 100 {
            let slot = pool.alloc().expect("memory");
            let object = bytes.alloc(100).expect("memory");
            // SAFETY: this thread owns both, and each is freed once.
            unsafe {
                slot.write([round; 4]);
                object.write_bytes(1, 100);
                assert_eq!(black_box(slot.read()), [round; 4]);
                pool.free(slot);
                bytes.free(object, 100);
            }
        }
    };
    both(reuse, reuse);

    let packed = Packed::new(&Config::default());
    for round in 0..20 {
        let mut packer = packed.region(1000).expect("memory").expect("the only one");
        let objects: Vec<_> = std::iter::from_fn(|| packer.alloc(Layout::new::<Node>())).collect();
        for object in objects {
            // SAFETY: allocated above, and taken back once.
            unsafe {
                object.cast::<Node>().write([round; 4]);
                packed.take_back(object, size_of::<Node>());
            }
        }
    }
}

/// Two threads add to one word.
fn race() {
    let bare = Bare::new();
    let add = || (0..10 * ROUNDS).for_each(|_| bare.add());
    both(add, add);
    black_box(bare.0.into_inner());
}

/// A node is published by a Relaxed store: a thread that reads its address may not see its content.
fn publication() {
    let nodes: Vec<Bare> = (0..ROUNDS).map(|_| Bare::new()).collect();
    let (published, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    both(
        || {
            for (node, number) in nodes.iter().zip(1..) {
                node.add();
                published.store(number, Ordering::Relaxed);
            }
            stop.store(true, Ordering::Relaxed);
        },
        || {
            while !stop.load(Ordering::Relaxed) {
                if let Some(last) = published.load(Ordering::Relaxed).checked_sub(1) {
                    black_box(nodes[last as usize].read());
                }
                silvics_sync::hint::spin_loop();
            }
        },
    );
}

fn leak() {
    for at in 0..100u64 {
        std::mem::forget(black_box(Box::new([at; 4])));
    }
    // Overwrites copies of the address in registers and dead stack frames.
    black_box([0u64; 512]);
}

fn use_after_free() {
    let node = Box::into_raw(Box::new([1u64; 4]));
    // SAFETY: broken on purpose: read after it was freed.
    unsafe {
        drop(Box::from_raw(black_box(node)));
        black_box((&raw const (*node)[1]).read_volatile());
    }
}

/// A thread reads nodes that another one frees, and nothing orders the two.
fn pooled_race() {
    let pool = Pool::<Node>::new("node", &Config::default());
    let shared = AtomicPtr::<Node>::new(null_mut());
    let stop = AtomicBool::new(false);
    both(
        || {
            for round in 0..ROUNDS {
                let slot = pool.alloc().expect("memory");
                // SAFETY: this thread owns the slot until it publishes it. The slot is freed once,
                // and, on purpose, while other threads read it.
                unsafe {
                    slot.write([round; 4]);
                    let old = shared.swap(slot.as_ptr(), Ordering::AcqRel);
                    if let Some(old) = std::ptr::NonNull::new(old) {
                        pool.free(old);
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        },
        || {
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: broken on purpose: the node may be free by now.
                black_box(unsafe { shared.load(Ordering::Acquire).as_ref() }.copied());
            }
        },
    );
}

fn pooled_use_after_free() {
    let pool = Pool::<Node>::new("node", &Config::default());
    let slot = pool.alloc().expect("memory");
    // SAFETY: broken on purpose: read after it was freed.
    unsafe {
        slot.write([1; 4]);
        pool.free(slot);
        if black_box(slot.cast::<u64>().add(1).read_volatile()) == 1 {
            println!("planted: the freed slot is as it was");
        }
    }
}

fn pooled_overflow() {
    let pool = BytesPool::new("bytes", &Config::default());
    let object = pool.alloc(100).expect("memory");
    // SAFETY: broken on purpose: the object ends before, though its slot does not.
    unsafe { object.add(100).write_volatile(1) };
}

fn pooled_double_free() {
    let pool = Pool::<Node>::new("node", &Config::default());
    let slot = pool.alloc().expect("memory");
    // SAFETY: broken on purpose: freed twice.
    unsafe {
        slot.write([1; 4]);
        pool.free(slot);
        pool.free(slot);
    }
}

fn packed_use_after_free() {
    let packed = Packed::new(&Config::default());
    let mut packer = packed.region(1000).expect("memory").expect("the first");
    let object = packer.alloc(Layout::new::<Node>()).expect("has room");
    // SAFETY: broken on purpose: read after it was taken back, from a region that the packer keeps.
    unsafe {
        object.cast::<Node>().write([1; 4]);
        packed.take_back(object, size_of::<Node>());
        if black_box(object.cast::<u64>().add(1).read_volatile()) == 1 {
            println!("planted: the object that was taken back is as it was");
        }
    }
}

fn packed_overflow() {
    let packed = Packed::new(&Config::default());
    let mut packer = packed.region(1000).expect("memory").expect("the first");
    let object = packer.alloc(Layout::new::<Node>()).expect("has room");
    // SAFETY: broken on purpose: no object lies behind this one.
    unsafe { object.add(size_of::<Node>()).write_volatile(1) };
}
