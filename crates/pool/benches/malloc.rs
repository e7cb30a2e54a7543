//! `Pool` beside other allocators: `cargo bench -p silvics-pool`.
//!
//! The system's malloc, and with the features `jemalloc`, `mimalloc`, `tcmalloc` those as well, with
//! thread caches as they come. Each row is one pattern at one number of threads. All take turns round
//! by round in one process; printed are the medians in nanoseconds per allocate-and-free pair, and behind
//! each allocator's the median of its per-round ratios to the pool's. Objects are 64 bytes; every
//! allocated object has its first word written, as its user would.
//!
//! | pattern | what one operation is |
//! |---|---|
//! | `lifo` | allocate, free it again |
//! | `remote` | objects allocated by one thread are freed by another, in lists of 1000 |
//! | `random` | of 1 M live objects, in random order, free one, allocate another |
//! | `burst` | of 1 M live objects, in random order, free 1000, then allocate 1000 |
//! | `random/100` | `random`, but over 100 pools of 10 000 objects, in turn |

use silvics_pool::{Config, Global, Heap, Pool};
use std::alloc::Layout;
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
trait Source: Send + Sync + 'static {
    fn new(pools: usize) -> Self;
    fn alloc(&self, pool: usize) -> NonNull<Object>;
    /// # Safety
    /// It came from `alloc(pool)` and is used no more.
    unsafe fn free(&self, pool: usize, object: NonNull<Object>);
}

struct Pools(Vec<Pool<Object>>);

impl Source for Pools {
    fn new(pools: usize) -> Self {
        Self((0..pools).map(|_| Pool::new("object", &Config::default())).collect())
    }
    fn alloc(&self, pool: usize) -> NonNull<Object> {
        self.0[pool].alloc().expect("memory")
    }
    unsafe fn free(&self, pool: usize, object: NonNull<Object>) {
        // SAFETY: the caller's promise.
        unsafe { self.0[pool].free(object) };
    }
}

/// The heaps know of no pools.
impl<H: Heap + Default> Source for H {
    fn new(_: usize) -> Self {
        Self::default()
    }
    fn alloc(&self, _: usize) -> NonNull<Object> {
        Heap::alloc(self, "object", Layout::new::<Object>()).expect("memory").cast()
    }
    unsafe fn free(&self, _: usize, object: NonNull<Object>) {
        // SAFETY: the caller's promise; allocated with this layout.
        unsafe { Heap::free(self, "object", object.cast(), Layout::new::<Object>()) };
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
struct Live<S: Source> {
    source: Arc<S>,
    objects: Vec<NonNull<Object>>,
    pools: usize,
    next: usize,
}

// SAFETY: a thread hands its objects over as a whole.
unsafe impl<S: Source> Send for Live<S> {}

impl<S: Source> Live<S> {
    /// Each thread's share of the live objects.
    fn all(pools: usize, threads: usize) -> Vec<Self> {
        let source = Arc::new(S::new(pools));
        (0..threads as u64).map(|t| Self::new(&source, pools, LIVE / threads, t + 1)).collect()
    }

    fn new(source: &Arc<S>, pools: usize, count: usize, seed: u64) -> Self {
        let mut objects: Vec<_> = (0..count).map(|at| taken(&**source, at % pools)).collect();
        // Fisher and Yates, within each pool's places.
        let mut state = seed;
        for at in (pools..objects.len()).rev() {
            let other = at % pools + random(&mut state) % (at / pools + 1) * pools;
            objects.swap(at, other);
        }
        Self { source: Arc::clone(source), objects, pools, next: 0 }
    }

    /// The next `BURST` places, around and around.
    fn burst(&mut self) -> std::ops::Range<usize> {
        let start = if self.next + BURST > self.objects.len() { 0 } else { self.next };
        self.next = start + BURST;
        start..self.next
    }
}

impl<S: Source> Drop for Live<S> {
    fn drop(&mut self) {
        for (at, &object) in self.objects.iter().enumerate() {
            // SAFETY: ours, from this pool.
            unsafe { self.source.free(at % self.pools, object) };
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

fn random_refill<S: Source>(live: &mut [Live<S>]) -> f64 {
    timed(live, |live| {
        for at in live.burst() {
            let pool = at % live.pools;
            // SAFETY: ours, from this pool.
            unsafe { live.source.free(pool, live.objects[at]) };
            live.objects[at] = taken(&*live.source, pool);
        }
        BURST
    })
}

fn burst_refill<S: Source>(live: &mut [Live<S>]) -> f64 {
    timed(live, |live| {
        let places = live.burst();
        for at in places.clone() {
            // SAFETY: ours, from this pool.
            unsafe { live.source.free(0, live.objects[at]) };
        }
        for at in places {
            live.objects[at] = taken(&*live.source, 0);
        }
        BURST
    })
}

struct List(Vec<NonNull<Object>>);
// SAFETY: a list is handed over as a whole.
unsafe impl Send for List {}

/// One thread allocates, another frees; with two threads each does both for the other.
fn remote(source: &impl Source, threads: usize) -> f64 {
    let start = Barrier::new(2 * threads);
    let rates = std::thread::scope(|scope| {
        let freed: Vec<_> = (0..threads)
            .map(|_| {
                let (send, receive) = sync_channel::<List>(8);
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    while began.elapsed() < TURN {
                        let list = List((0..BURST).map(|_| taken(source, 0)).collect());
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

/// One turn of an allocator: nanoseconds per operation and thread.
type Turn = Box<dyn FnMut() -> f64>;

fn turn<S: Source>(pattern: &str, threads: usize) -> Turn {
    match pattern {
        "lifo" => {
            let source = S::new(1);
            Box::new(move || lifo(&source, threads))
        }
        "remote" => {
            let source = S::new(1);
            Box::new(move || remote(&source, threads))
        }
        "burst" => {
            let mut live = Live::<S>::all(1, threads);
            Box::new(move || burst_refill(&mut live))
        }
        _ => {
            let mut live = Live::<S>::all(if pattern == "random" { 1 } else { 100 }, threads);
            Box::new(move || random_refill(&mut live))
        }
    }
}

/// An allocator's name, and what makes its turns.
type Contender = (&'static str, fn(&str, usize) -> Turn);

/// The pool first: the others are compared with it.
const CONTENDERS: &[Contender] = &[
    ("pool", turn::<Pools>),
    ("malloc", turn::<Global>),
    #[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
    ("jemalloc", turn::<silvics_pool::Jemalloc>),
    #[cfg(feature = "mimalloc")]
    ("mimalloc", turn::<silvics_pool::Mimalloc>),
    #[cfg(all(feature = "tcmalloc", target_os = "linux"))]
    ("tcmalloc", turn::<silvics_pool::Tcmalloc>),
];

fn row(pattern: &str, threads: usize) {
    let mut turns: Vec<_> = CONTENDERS.iter().map(|(_, make)| make(pattern, threads)).collect();
    let rounds: Vec<Vec<f64>> =
        (0..ROUNDS).map(|_| turns.iter_mut().map(|turn| turn()).collect()).collect();
    print!("{pattern:<11} {threads:>7} {:>9.1}", median(rounds.iter().map(|round| round[0])));
    for at in 1..turns.len() {
        let time = median(rounds.iter().map(|round| round[at]));
        let ratio = median(rounds.iter().map(|round| round[at] / round[0]));
        print!(" {time:>12.1} {ratio:>6.2}");
    }
    println!();
}

fn main() {
    print!("pattern     threads   pool ns");
    for (name, _) in &CONTENDERS[1..] {
        print!(" {:>12}  ratio", format!("{name} ns"));
    }
    println!();
    for threads in [1, 2] {
        for pattern in ["lifo", "remote", "random", "burst", "random/100"] {
            row(pattern, threads);
        }
    }
}
