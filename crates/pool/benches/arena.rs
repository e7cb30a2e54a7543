//! Times allocations of `ConcurrentArena`: `cargo bench -p silvics-pool --bench arena`.
//!
//! Each thread allocates a million objects of 40 bytes from one arena. The figures are nanoseconds
//! per allocation of one thread: the median of nine rounds, and the least. `main` uses the main
//! arena until threads meet, `shards` has shards from the start, and `written` also writes the
//! first word of each object. Behind them stands how many allocations there are to each lock of the
//! main arena. `bump` is a range that one thread has alone (`Packer`), for comparison.

use silvics_pool::{ConcurrentArena, Config, Packed};
use std::alloc::Layout;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

const OBJECTS: usize = 1_000_000;
const ROUNDS: usize = 9;
const OBJECT: Layout = Layout::new::<[u64; 5]>();

/// The median and the least of the nanoseconds of each thread's allocations.
fn summary(mut nanos: Vec<f64>) -> (f64, f64) {
    nanos.sort_unstable_by(f64::total_cmp);
    (nanos[nanos.len() / 2], nanos[0])
}

fn timed(mut alloc: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..OBJECTS {
        alloc();
    }
    start.elapsed().as_nanos() as f64 / OBJECTS as f64
}

fn arena(name: &str, threads: usize, shards: bool, write: bool) {
    let (mut nanos, mut allocations, mut locks) = (Vec::new(), 0, 0);
    for _ in 0..ROUNDS {
        let arena = ConcurrentArena::new(&Config::default(), 1 << 20);
        if shards {
            arena.make_shards().expect("memory");
        }
        let start = Barrier::new(threads);
        std::thread::scope(|scope| {
            let one = || {
                start.wait();
                timed(|| {
                    let object = arena.alloc(OBJECT).expect("memory").cast::<u64>();
                    if write {
                        // SAFETY: fresh memory of this thread, with room for a word.
                        unsafe { object.write(1) };
                    }
                    black_box(object);
                })
            };
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
            nanos.extend(running.into_iter().map(|thread| thread.join().expect("no panic")));
        });
        let stats = arena.stats();
        assert_eq!(stats.allocations, (threads * OBJECTS) as u64);
        assert!(arena.used() >= threads * OBJECTS * OBJECT.size());
        allocations += stats.allocations;
        locks += stats.main_locks;
    }
    let (median, least) = summary(nanos);
    let per = allocations / locks;
    println!("{name:<16} {threads} threads {median:6.2} {least:6.2} ns {per:>6} per main lock");
}

fn main() {
    let bump = (0..ROUNDS).map(|_| {
        let packed = Packed::new(&Config::default());
        let region = packed.region(OBJECTS * OBJECT.size()).expect("memory");
        let mut packer = region.expect("the first region");
        let nanos = timed(|| {
            black_box(packer.alloc(OBJECT).expect("room"));
        });
        drop(packer);
        nanos
    });
    let (median, least) = summary(bump.collect());
    println!("{:<16} 1 threads {median:6.2} {least:6.2} ns", "bump");
    for threads in [1, 2, 4] {
        arena("main", threads, false, false);
        arena("shards", threads, true, false);
        arena("shards, written", threads, true, true);
    }
}
