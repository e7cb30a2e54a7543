//! Work off the event loop: long scans on threads of the module.
//!
//! # Algorithm
//! ```text
//! command (event loop): block the client; put a job into the queue
//! thread:  take a job; read some 65 000 entries, with a pin for each thousand
//!          if there are more, and the client is still there: put the job at the end of the queue
//!          else: reply to the blocked client's own context; unblock the client
//! client disconnects (event loop): set the flag of its job
//! ```
//! So a short job does not wait for the end of a long one.
//!
//! The event loop goes on writing to the map meanwhile. A thread owns a reference to the map, so
//! the key may be deleted. It never takes the server's lock: the server lets any thread reply to a
//! blocked client that it has for itself.
//!
//! # Invariants
//! * J1: a job is in `JOBS` from before it is sent until before its client is unblocked. So a
//!   client's address is there once, and the server has not reused it.
//!
//! # Memory ordering
//! The flags, counts and settings are Relaxed: nothing is read on their strength. A thread that
//! misses a flag reads another step. The settings change only before there are threads.

use super::api::{Call, Failure, Key, Reply, server};
use super::ranges::{Listing, Tally};
use crate::map::{ByteMap, ByteView};
use crate::scan::Scan;
use redis_module::raw;
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, OnceLock};

/// The settings of the module, from the arguments it was loaded with.
pub(super) struct Settings {
    threshold: AtomicUsize,
    threads: AtomicUsize,
}

static SETTINGS: Settings =
    Settings { threshold: AtomicUsize::new(1000), threads: AtomicUsize::new(1) };

pub(super) fn settings() -> &'static Settings {
    &SETTINGS
}

impl Settings {
    /// The most entries that a command reads on the event loop, if there are threads.
    pub(super) fn threshold(&self) -> usize {
        self.threshold.load(Ordering::Relaxed)
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Whether a command with more to read leaves the event loop.
    pub(super) fn leaves_loop(&self, call: Call<'_>) -> bool {
        self.threads() > 0 && call.may_block()
    }

    pub(super) fn set(&self, threshold: usize, threads: usize) {
        self.threshold.store(threshold, Ordering::Relaxed);
        self.threads.store(threads, Ordering::Relaxed);
    }
}

/// The work of a job, as far as it is done.
pub(super) enum Work {
    /// Replies with entries.
    List(Listing),
    /// Computes one result.
    Tally(Scan, Tally),
}

impl Work {
    /// Works on the next `most` entries. Returns whether there are no more.
    fn step(&mut self, view: &ByteView<'_>, most: usize, reply: Reply) -> bool {
        match self {
            Self::List(listing) => listing.step(view, most, reply),
            Self::Tally(scan, tally) => tally.step(scan, view, most),
        }
    }

    fn finish(self, reply: Reply) {
        match self {
            Self::List(listing) => listing.finish(reply),
            Self::Tally(_, tally) => tally.reply(reply),
        }
    }
}

/// A blocked client.
pub(super) struct Client(pub(super) *mut raw::RedisModuleBlockedClient);

/// Work for a thread.
struct Job {
    map: Arc<ByteMap>,
    work: Work,
    client: Client,
    /// The context in which the job replies; null before it begins.
    context: *mut raw::RedisModuleCtx,
    gone: Arc<AtomicBool>,
}

// SAFETY: the server lets any thread reply to a blocked client, in a context that one thread uses
// at a time. One thread has the job.
unsafe impl Send for Job {}

impl Job {
    /// Works for a while. Returns the job if there is more to do.
    fn advance(mut self) -> Option<Self> {
        /// The entries between two pins. A pin holds back memory that the event loop frees.
        const STEP: usize = 1024;
        /// The steps until another job has its turn.
        const STEPS: usize = 64;
        if self.context.is_null() {
            // SAFETY: the client is blocked, so the context is valid until it is unblocked.
            self.context = unsafe { server!(RedisModule_GetThreadSafeContext(self.client.0)) };
        }
        // SAFETY: the context is that of the blocked client, and this thread has the job.
        let reply = unsafe { Reply::new(self.context) };
        for _ in 0..STEPS {
            // Relaxed: see the module docs.
            let is_gone = self.gone.load(Ordering::Relaxed);
            if is_gone || self.work.step(&self.map.pin(), STEP, reply) {
                self.finish(reply, is_gone);
                return None;
            }
        }
        Some(self)
    }

    fn finish(self, reply: Reply, is_gone: bool) {
        let Self { map, work, client, context, .. } = self;
        work.finish(reply);
        drop(map); // this frees the map if its key was deleted meanwhile
        JOBS.lock().retain(|(address, _)| *address != client.0.addr()); // J1
        COUNTS.ended(is_gone);
        // SAFETY: the context is that of the client, which is blocked, and is unblocked once.
        unsafe {
            server!(RedisModule_FreeThreadSafeContext(context));
            server!(RedisModule_UnblockClient(client.0, null_mut()));
        }
    }
}

/// The flags of all jobs, by the addresses of their clients.
static JOBS: LazyLock<Mutex<Flags>> = LazyLock::new(Mutex::default);

type Flags = Vec<(usize, Arc<AtomicBool>)>;

/// Numbers of jobs, for `INFO`.
pub(super) struct Counts {
    pub(super) running: AtomicUsize,
    pub(super) done: AtomicUsize,
    pub(super) abandoned: AtomicUsize,
}

pub(super) static COUNTS: Counts = Counts {
    running: AtomicUsize::new(0),
    done: AtomicUsize::new(0),
    abandoned: AtomicUsize::new(0),
};

impl Counts {
    fn ended(&self, gone: bool) {
        let ended = if gone { &self.abandoned } else { &self.done };
        ended.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The way to the threads. They are started with the first job, after the server has become a
/// daemon, and live as long as the process.
static THREADS: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();

fn start() -> Mutex<Sender<Job>> {
    let (sender, receiver) = channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    let start = |_: &usize| {
        let (receiver, queue) = (Arc::clone(&receiver), sender.clone());
        std::thread::Builder::new().name("silvics-om".into()).spawn(move || work(&receiver, &queue))
    };
    let started = (0..settings().threads()).take_while(|number| start(number).is_ok()).count();
    // Fewer threads do the work of all. If there is none, `submit` says so.
    settings().threads.store(started, Ordering::Relaxed);
    Mutex::new(sender)
}

/// Works on jobs as long as the process lives.
fn work(receiver: &Mutex<Receiver<Job>>, queue: &Sender<Job>) {
    /// A panic in a job would leave its client blocked.
    struct EndsProcess;
    impl Drop for EndsProcess {
        fn drop(&mut self) {
            if std::thread::panicking() {
                std::process::abort();
            }
        }
    }
    let _ends = EndsProcess;
    let next = || receiver.lock().recv().ok();
    while let Some(job) = next() {
        if let Some(job) = job.advance() {
            // The receiver is there as long as this thread.
            let _ = queue.send(job);
        }
    }
}

/// Called on the event loop when a blocked client has disconnected.
unsafe extern "C" fn disconnected(
    _ctx: *mut raw::RedisModuleCtx,
    client: *mut raw::RedisModuleBlockedClient,
) {
    let jobs = JOBS.lock();
    if let Some((_, gone)) = jobs.iter().find(|(address, _)| *address == client.addr()) {
        gone.store(true, Ordering::Relaxed);
    }
}

/// Blocks the client, and has a thread do the work on the map of the key and reply.
pub(super) fn submit(call: Call<'_>, key: &Key<'_>, work: Work) -> Result<(), Failure> {
    let map = key.shared()?.expect("the work is on the map of the key");
    let queue = THREADS.get_or_init(start);
    if settings().threads() == 0 {
        let sentence = "no thread could be started: load the module with threads 0";
        return Err(Failure::Sentence(sentence.into()));
    }
    let (client, gone) = (call.block(Some(disconnected)), Arc::new(AtomicBool::new(false)));
    JOBS.lock().push((client.0.addr(), Arc::clone(&gone)));
    COUNTS.running.fetch_add(1, Ordering::Relaxed);
    // It fails only without threads, which live as long as the process.
    let _ = queue.lock().send(Job { map, work, client, context: null_mut(), gone });
    Ok(())
}
