//! Compares `Pool` with other allocators: `cargo bench -p silvics-pool`.
//!
//! The others are the system's malloc and, with the features `jemalloc`, `mimalloc`, `tcmalloc`,
//! those allocators with their default thread caches. Each row is one pattern at one number of
//! threads. All allocators take turns round by round in one process. The figures are medians in
//! nanoseconds per allocate-and-free pair. Behind each other allocator stands the median of its
//! per-round ratios to the pool. Objects have 64 bytes, and the first word of every allocated
//! object is written, as a user would do. If objects stay alive, the share of their memory on huge
//! pages after the last round follows each time, if the system reports it.
//!
//! | pattern | one operation |
//! |---|---|
//! | `lifo` | allocate an object and free it again |
//! | `remote` | one thread allocates objects and another frees them, in lists of 1000; two threads do so for each other |
//! | `random` | of 1 M live objects, free one in random order and allocate another |
//! | `burst` | of 1 M live objects, free 1000 in random order, then allocate 1000 |
//! | `random/100` | `random` over 100 pools of 10 000 objects, in turn |

use silvics_pool::{Config, Global, Heap, Pool};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Object = [u64; 8];
const LIVE: usize = 1_000_000;
const BURST: usize = 1000;
const ROUNDS: usize = 9;
const TURN: Duration = Duration::from_millis(200);

/// An allocator of `Object`s; `pool` selects one of its pools.
trait Source: Send + Sync + 'static {
    fn new(pools: usize) -> Self;
    fn alloc(&self, pool: usize) -> NonNull<Object>;
    /// # Safety
    /// The object came from `alloc(pool)` and is no longer used.
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
        // SAFETY: the object came from this pool and is no longer used, as the caller of `free`
        // promises.
        unsafe { self.0[pool].free(object) };
    }
}

/// A heap has no pools, so `pool` is ignored.
impl<H: Heap + Default> Source for H {
    fn new(_: usize) -> Self {
        Self::default()
    }
    fn alloc(&self, _: usize) -> NonNull<Object> {
        Heap::alloc(self, "object", Layout::new::<Object>()).expect("memory").cast()
    }
    unsafe fn free(&self, _: usize, object: NonNull<Object>) {
        // SAFETY: `alloc` allocated the object with this layout, and the caller no longer uses it.
        unsafe { Heap::free(self, "object", object.cast(), Layout::new::<Object>()) };
    }
}

fn taken(source: &impl Source, pool: usize) -> NonNull<Object> {
    let object = source.alloc(pool);
    // SAFETY: fresh memory of the size of an `Object`.
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

impl<S: Source> Live<S> {
    fn new(source: &Arc<S>, pools: usize, count: usize, seed: u64) -> Self {
        let mut objects: Vec<_> = (0..count).map(|at| taken(&**source, at % pools)).collect();
        // A Fisher-Yates shuffle within the objects of each pool.
        let mut state = seed;
        for at in (pools..objects.len()).rev() {
            let other = at % pools + random(&mut state) % (at / pools + 1) * pools;
            objects.swap(at, other);
        }
        Self { source: Arc::clone(source), objects, pools, next: 0 }
    }

    /// The next `BURST` objects, around and around.
    fn burst(&mut self) -> std::ops::Range<usize> {
        let start = if self.next + BURST > self.objects.len() { 0 } else { self.next };
        self.next = start + BURST;
        start..self.next
    }

    fn random_refill(&mut self) {
        for at in self.burst() {
            let pool = at % self.pools;
            // SAFETY: the object is from this pool and live, and only this thread uses it.
            unsafe { self.source.free(pool, self.objects[at]) };
            self.objects[at] = taken(&*self.source, pool);
        }
    }

    fn burst_refill(&mut self) {
        let places = self.burst();
        for at in places.clone() {
            // SAFETY: the object is from this source and live, and only this thread uses it.
            unsafe { self.source.free(0, self.objects[at]) };
        }
        for at in places {
            self.objects[at] = taken(&*self.source, 0);
        }
    }

    /// The resident bytes of the mappings that contain the live objects, and how many of them are
    /// on huge pages.
    fn resident(&self) -> Option<(usize, usize)> {
        let mut objects: Vec<_> = self.objects.iter().map(|object| object.addr().get()).collect();
        objects.sort_unstable();
        resident(&objects)
    }
}

impl<S: Source> Drop for Live<S> {
    fn drop(&mut self) {
        for (at, &object) in self.objects.iter().enumerate() {
            // SAFETY: the object is from this pool and live, and only this thread uses it.
            unsafe { self.source.free(at % self.pools, object) };
        }
    }
}

/// The resident bytes of the mappings that contain any of these ascending addresses, and how many
/// of them are on huge pages (Linux, proc(5): smaps).
fn resident(addresses: &[usize]) -> Option<(usize, usize)> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let (mut held, mut all, mut huge) = (false, 0, 0);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next()?, words.next());
        let kib = second.and_then(|word| word.parse::<usize>().ok());
        let hex = |text| usize::from_str_radix(text, 16).ok();
        match (first, kib) {
            ("Rss:", Some(kib)) if held => all += kib << 10,
            ("AnonHugePages:", Some(kib)) if held => huge += kib << 10,
            _ => {
                if let Some((start, end)) = first.split_once('-')
                    && let (Some(start), Some(end)) = (hex(start), hex(end))
                {
                    let next = addresses.partition_point(|address| *address < start);
                    held = addresses.get(next).is_some_and(|address| *address < end);
                }
            }
        }
    }
    Some((all, huge))
}

/// Repeats `work` for the time of a turn. Returns operations per nanosecond.
fn timed(mut work: impl FnMut() -> usize) -> f64 {
    let (began, mut operations) = (Instant::now(), 0);
    while began.elapsed() < TURN {
        operations += work();
    }
    operations as f64 / began.elapsed().as_nanos() as f64
}

/// The work of one thread.
trait Worker {
    /// Works for one turn. Returns operations per nanosecond.
    fn turn(&mut self) -> f64;
    /// The resident bytes around its live objects, and how many of them are on huge pages.
    fn resident(&self) -> Option<(usize, usize)> {
        None
    }
}

struct Lifo<S: Source>(Arc<S>);

impl<S: Source> Worker for Lifo<S> {
    fn turn(&mut self) -> f64 {
        timed(|| {
            for _ in 0..BURST {
                let object = std::hint::black_box(taken(&*self.0, 0));
                // SAFETY: just allocated.
                unsafe { self.0.free(0, object) };
            }
            BURST
        })
    }
}

struct Refill<S: Source>(Live<S>, fn(&mut Live<S>));

impl<S: Source> Worker for Refill<S> {
    fn turn(&mut self) -> f64 {
        timed(|| {
            self.1(&mut self.0);
            BURST
        })
    }
    fn resident(&self) -> Option<(usize, usize)> {
        self.0.resident()
    }
}

/// Objects on their way from the thread that allocated them to another; empty at the end of a turn.
struct List(Vec<NonNull<Object>>);
// SAFETY: a list moves to one other thread as a whole.
unsafe impl Send for List {}

impl List {
    /// Frees the objects. Returns how many there were.
    fn free(self, source: &impl Source) -> usize {
        for object in &self.0 {
            // SAFETY: the thread that allocated the object handed it over.
            unsafe { source.free(0, *object) };
        }
        self.0.len()
    }
}

fn list(source: &impl Source, objects: usize) -> List {
    List((0..objects).map(|_| taken(source, 0)).collect())
}

/// Allocates for another thread, which counts the operations.
struct Giver<S: Source>(Arc<S>, SyncSender<List>);

impl<S: Source> Worker for Giver<S> {
    fn turn(&mut self) -> f64 {
        timed(|| {
            self.1.send(list(&*self.0, BURST)).expect("the other thread receives");
            0
        });
        self.1.send(List(Vec::new())).expect("the other thread receives");
        0.0
    }
}

/// Frees the objects that another thread allocates.
struct Taker<S: Source>(Arc<S>, Receiver<List>);

impl<S: Source> Worker for Taker<S> {
    fn turn(&mut self) -> f64 {
        let began = Instant::now();
        let lists = self.1.iter().take_while(|list| !list.0.is_empty());
        let operations: usize = lists.map(|list| list.free(&*self.0)).sum();
        operations as f64 / began.elapsed().as_nanos() as f64
    }
}

/// Allocates for another thread, and frees the objects that it allocates.
struct Exchange<S: Source> {
    source: Arc<S>,
    to: SyncSender<List>,
    from: Receiver<List>,
}

impl<S: Source> Worker for Exchange<S> {
    fn turn(&mut self) -> f64 {
        let (began, mut operations) = (Instant::now(), 0);
        let (mut next, mut given, mut taken_all) = (None, false, false);
        while !(given && taken_all) {
            if !given {
                let objects = if began.elapsed() < TURN { BURST } else { 0 };
                let list = next.take().unwrap_or_else(|| list(&*self.source, objects));
                let last = list.0.is_empty();
                match self.to.try_send(list) {
                    Ok(()) => given = last,
                    Err(TrySendError::Full(list)) => next = Some(list),
                    Err(TrySendError::Disconnected(_)) => panic!("the other thread is gone"),
                }
            }
            if !taken_all && let Ok(list) = self.from.try_recv() {
                taken_all = list.0.is_empty();
                operations += list.free(&*self.source);
            }
        }
        operations as f64 / began.elapsed().as_nanos() as f64
    }
}

/// Makes a worker on the thread on which it works.
type Hire = Box<dyn FnOnce() -> Box<dyn Worker> + Send>;

/// Threads that persist over all turns, as in a real program.
struct Crew {
    /// The number of threads whose operations are counted.
    threads: usize,
    go: Vec<SyncSender<()>>,
    rates: Receiver<f64>,
    resident: Receiver<Option<(usize, usize)>>,
    handles: Vec<JoinHandle<()>>,
}

impl Crew {
    fn new(threads: usize, hires: Vec<Hire>) -> Self {
        let (rate, rates) = channel();
        let (tell, resident) = channel();
        let ready = Arc::new(Barrier::new(hires.len() + 1));
        let start = Arc::new(Barrier::new(hires.len()));
        let (mut go, mut handles) = (Vec::new(), Vec::new());
        for hire in hires {
            let (send, receive) = sync_channel(1);
            let (rate, tell, ready) = (rate.clone(), tell.clone(), Arc::clone(&ready));
            let start = Arc::clone(&start);
            handles.push(std::thread::spawn(move || {
                let mut worker = hire();
                ready.wait();
                for () in receive {
                    start.wait();
                    rate.send(worker.turn()).expect("somebody waits");
                }
                tell.send(worker.resident()).expect("somebody waits");
            }));
            go.push(send);
        }
        ready.wait();
        Self { threads, go, rates, resident, handles }
    }

    /// Works for one turn. Returns nanoseconds per operation and thread.
    fn turn(&self) -> f64 {
        self.go.iter().for_each(|go| go.send(()).expect("the thread waits"));
        let rates: f64 = self.rates.iter().take(self.go.len()).sum();
        self.threads as f64 / rates
    }

    /// The final share of the live objects' memory that is on huge pages.
    fn huge_share(self) -> Option<f64> {
        drop(self.go);
        let of_threads: Option<Vec<_>> = self.resident.iter().take(self.handles.len()).collect();
        for handle in self.handles {
            handle.join().expect("no panic");
        }
        let of_threads = of_threads?.into_iter();
        let (all, huge) = of_threads.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        (all > 0).then(|| huge as f64 / all as f64)
    }
}

fn crew<S: Source>(pattern: &str, threads: usize) -> Crew {
    let pools = if pattern == "random/100" { 100 } else { 1 };
    let source = Arc::new(S::new(pools));
    let step = if pattern == "burst" { Live::burst_refill } else { Live::random_refill };
    let ways = (0..2).map(|_| sync_channel(8));
    let (to, from): (Vec<SyncSender<List>>, Vec<Receiver<List>>) = ways.unzip();
    let (mut to, mut from) = (to.into_iter(), from.into_iter().rev());
    let mut way = || (to.next().expect("one of two"), from.next().expect("one of two"));
    let mut hires: Vec<Hire> = Vec::new();
    for thread in 1..=threads as u64 {
        let source = Arc::clone(&source);
        match pattern {
            "lifo" => hires.push(Box::new(|| Box::new(Lifo(source)))),
            "remote" if threads == 1 => {
                let (other, (send, receive)) = (Arc::clone(&source), sync_channel(8));
                hires.push(Box::new(|| Box::new(Giver(source, send))));
                hires.push(Box::new(|| Box::new(Taker(other, receive))));
            }
            "remote" => {
                let (to, from) = way();
                hires.push(Box::new(|| Box::new(Exchange { source, to, from })));
            }
            _ => hires.push(Box::new(move || {
                Box::new(Refill(Live::new(&source, pools, LIVE / threads, thread), step))
            })),
        }
    }
    Crew::new(threads, hires)
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The name of an allocator, and the crew that uses it in a pattern.
type Contender = (&'static str, fn(&str, usize) -> Crew);

/// The allocators; the first is the pool, with which the others are compared.
const CONTENDERS: &[Contender] = &[
    ("pool", crew::<Pools>),
    ("malloc", crew::<Global>),
    #[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
    ("jemalloc", crew::<silvics_pool::Jemalloc>),
    #[cfg(feature = "mimalloc")]
    ("mimalloc", crew::<silvics_pool::Mimalloc>),
    #[cfg(all(feature = "tcmalloc", target_os = "linux"))]
    ("tcmalloc", crew::<silvics_pool::Tcmalloc>),
];

fn row(pattern: &str, threads: usize) {
    let crews: Vec<_> = CONTENDERS.iter().map(|(_, crew)| crew(pattern, threads)).collect();
    let rounds: Vec<Vec<f64>> = (0..ROUNDS)
        .map(|round| {
            let mut times = vec![0.0; crews.len()];
            for turn in 0..crews.len() {
                // A B C, then C B A.
                let at = if round % 2 == 0 { turn } else { crews.len() - 1 - turn };
                times[at] = crews[at].turn();
            }
            times
        })
        .collect();
    print!("| `{pattern}` | {threads} |");
    for (at, of) in crews.into_iter().enumerate() {
        let time = median(rounds.iter().map(|round| round[at]));
        let ratio = median(rounds.iter().map(|round| round[at] / round[0]));
        let huge = of.huge_share().map_or(String::new(), |share| format!("{:.0}", 100.0 * share));
        print!(" {time:.1} | {huge} |");
        if at > 0 {
            print!(" {ratio:.2} |");
        }
    }
    println!();
}

fn main() {
    print!("| pattern | threads |");
    for (at, (name, _)) in CONTENDERS.iter().enumerate() {
        print!(" {name}, ns | {name}, huge % |");
        if at > 0 {
            print!(" {name}, ratio |");
        }
    }
    println!("\n|{}", "---|".repeat(1 + 3 * CONTENDERS.len()));
    for threads in [1, 2] {
        for pattern in ["lifo", "remote", "random", "burst", "random/100"] {
            row(pattern, threads);
        }
    }
}
