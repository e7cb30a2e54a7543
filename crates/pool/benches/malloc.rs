//! `Pool` beside the system's malloc: `cargo bench -p silvics-pool`.
//!
//! Each row is one pattern at one number of threads. Pool and malloc take turns round by round in
//! one process; printed are the medians in nanoseconds per allocate-and-free pair and the median
//! of the per-round ratios. Objects are 64 bytes; every allocated object has its first word
//! written, as its user would.
//!
//! | pattern | what one operation is |
//! |---|---|
//! | `lifo` | allocate, free it again |
//! | `random` | of 1 M live objects, in random order, free one, allocate another |
//! | `burst` | of 1 M live objects, in random order, free 1000, then allocate 1000 |
//! | `remote` | objects allocated by one thread are freed by another, in lists of 1000 |
//! | `random/100` | `random`, but over 100 pools of 10 000 objects, in turn |

use silvics_pool::{Config, Pool};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

type Object = [u64; 8];
const LIVE: usize = 1_000_000;
const BURST: usize = 1000;
const ROUNDS: usize = 9;
const TURN: Duration = Duration::from_millis(200);

/// An allocator of `Object`s; `pool` says from which of several.
trait Source: Send + Sync {
    fn alloc(&self, pool: usize) -> NonNull<Object>;
    /// # Safety
    /// It came from `alloc(pool)` and is used no more.
    unsafe fn free(&self, pool: usize, object: NonNull<Object>);
}

struct Malloc;

impl Source for Malloc {
    fn alloc(&self, _: usize) -> NonNull<Object> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { System.alloc(Layout::new::<Object>()) }.cast()).expect("memory")
    }
    unsafe fn free(&self, _: usize, object: NonNull<Object>) {
        // SAFETY: allocated with this layout.
        unsafe { System.dealloc(object.as_ptr().cast(), Layout::new::<Object>()) };
    }
}

struct Pools(Vec<Pool<Object>>);

impl Source for Pools {
    fn alloc(&self, pool: usize) -> NonNull<Object> {
        self.0[pool].alloc().expect("memory")
    }
    unsafe fn free(&self, pool: usize, object: NonNull<Object>) {
        // SAFETY: the caller's promise.
        unsafe { self.0[pool].free(object) };
    }
}

fn taken(source: &impl Source, pool: usize) -> NonNull<Object> {
    let object = source.alloc(pool);
    // SAFETY: fresh memory of the right size.
    unsafe { object.cast::<u64>().write(1) };
    object
}

fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 20) as usize
}

/// A thread's live objects, spread over `pools` pools.
struct Live {
    objects: Vec<NonNull<Object>>,
    pools: usize,
    next: usize,
}

// SAFETY: a thread hands its objects over as a whole.
unsafe impl Send for Live {}

impl Live {
    fn new(source: &impl Source, pools: usize, threads: usize, seed: u64) -> Self {
        let mut objects: Vec<_> = (0..LIVE / threads).map(|at| taken(source, at % pools)).collect();
        // Fisher and Yates, within each pool's places.
        let mut state = seed;
        for at in (pools..objects.len()).rev() {
            let other = at % pools + random(&mut state) % (at / pools + 1) * pools;
            objects.swap(at, other);
        }
        Self { objects, pools, next: 0 }
    }

    /// The next `BURST` places, around and around.
    fn burst(&mut self) -> std::ops::Range<usize> {
        let start = if self.next + BURST > self.objects.len() { 0 } else { self.next };
        self.next = start + BURST;
        start..self.next
    }

    fn release(self, source: &impl Source) {
        for (at, object) in self.objects.into_iter().enumerate() {
            // SAFETY: ours, from this pool.
            unsafe { source.free(at % self.pools, object) };
        }
    }
}

/// Runs `turn` on each thread until its time is over; nanoseconds per operation and thread.
fn timed<T: Send>(states: &mut [T], turn: impl Fn(&mut T) -> usize + Sync) -> f64 {
    let start = Barrier::new(states.len());
    let threads = states.len() as f64;
    let rates = std::thread::scope(|scope| {
        let workers: Vec<_> = states
            .iter_mut()
            .map(|state| {
                let (start, turn) = (&start, &turn);
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    let mut operations = 0;
                    while began.elapsed() < TURN {
                        operations += turn(state);
                    }
                    operations as f64 / began.elapsed().as_nanos() as f64
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().expect("no panic")).sum::<f64>()
    });
    threads / rates
}

fn lifo(source: &impl Source, threads: usize) -> f64 {
    timed(&mut vec![(); threads], |()| {
        for _ in 0..BURST {
            let object = std::hint::black_box(taken(source, 0));
            // SAFETY: just allocated.
            unsafe { source.free(0, object) };
        }
        BURST
    })
}

fn random_refill(source: &impl Source, live: &mut [Live]) -> f64 {
    timed(live, |live| {
        for at in live.burst() {
            let pool = at % live.pools;
            // SAFETY: ours, from this pool.
            unsafe { source.free(pool, live.objects[at]) };
            live.objects[at] = taken(source, pool);
        }
        BURST
    })
}

fn burst_refill(source: &impl Source, live: &mut [Live]) -> f64 {
    timed(live, |live| {
        let places = live.burst();
        for at in places.clone() {
            // SAFETY: ours, from this pool.
            unsafe { source.free(0, live.objects[at]) };
        }
        for at in places {
            live.objects[at] = taken(source, 0);
        }
        BURST
    })
}

struct List(Vec<NonNull<Object>>);
// SAFETY: a list is handed over as a whole.
unsafe impl Send for List {}

/// One thread allocates, another frees; with two threads each does both for the other.
fn remote(source: &Arc<impl Source + 'static>, threads: usize) -> f64 {
    let start = Barrier::new(2 * threads);
    let rates = std::thread::scope(|scope| {
        let freed: Vec<_> = (0..threads)
            .map(|_| {
                let (send, receive) = sync_channel::<List>(8);
                let (start, source) = (&start, source);
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    while began.elapsed() < TURN {
                        let list = List((0..BURST).map(|_| taken(&**source, 0)).collect());
                        send.send(list).expect("the other thread receives");
                    }
                });
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    let mut operations = 0;
                    for List(objects) in receive {
                        operations += objects.len();
                        for object in objects {
                            // SAFETY: handed over by the thread that allocated it.
                            unsafe { source.free(0, object) };
                        }
                    }
                    operations as f64 / began.elapsed().as_nanos() as f64
                })
            })
            .collect();
        freed.into_iter().map(|w| w.join().expect("no panic")).sum::<f64>()
    });
    threads as f64 / rates
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn row(pattern: &str, threads: usize, mut round: impl FnMut() -> (f64, f64)) {
    let times: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    let pool = median(times.iter().map(|t| t.0));
    let malloc = median(times.iter().map(|t| t.1));
    let ratio = median(times.iter().map(|t| t.1 / t.0));
    println!("{pattern:<11} {threads:>7} {pool:>9.1} {malloc:>11.1} {ratio:>7.2}");
}

fn main() {
    println!("pattern     threads   pool ns   malloc ns   ratio");
    for threads in [1, 2] {
        let pools = Arc::new(Pools(vec![Pool::new("object", &Config::default())]));
        let malloc = Arc::new(Malloc);
        row("lifo", threads, || (lifo(&*pools, threads), lifo(&*malloc, threads)));
        row("remote", threads, || (remote(&pools, threads), remote(&malloc, threads)));
        for (pattern, many) in [("random", 1), ("random/100", 100)] {
            let pools = Pools((0..many).map(|_| Pool::new("object", &Config::default())).collect());
            let live = |source: &dyn Fn(u64) -> Live| (0..threads as u64).map(source).collect();
            let mut ours: Vec<_> = live(&|t| Live::new(&pools, many, threads, t + 1));
            let mut theirs: Vec<_> = live(&|t| Live::new(&*malloc, many, threads, t + 1));
            row(pattern, threads, || {
                (random_refill(&pools, &mut ours), random_refill(&*malloc, &mut theirs))
            });
            if many == 1 {
                row("burst", threads, || {
                    (burst_refill(&pools, &mut ours), burst_refill(&*malloc, &mut theirs))
                });
            }
            for live in ours {
                live.release(&pools);
            }
            for live in theirs {
                live.release(&*malloc);
            }
        }
    }
}
