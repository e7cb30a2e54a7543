//! Work off the event loop: long scans on threads of the module.
//!
//! # Algorithm
//! ```text
//! command (event loop): block the client; send the map, the work and the client to the threads
//! thread:  repeat: read some entries, pinned     until done, or the client has gone
//!          reply to the blocked client's own context; unblock the client
//! client disconnects (event loop): set the flag of its job
//! ```
//! The event loop goes on writing to the map meanwhile. A thread owns a reference to the map, so
//! the key may be deleted. It never takes the server's lock: the server lets any thread reply to a
//! blocked client that it has for itself.
//!
//! # Invariants
//! * J1: a job is in `JOBS` from before it is sent until before its client is unblocked. So a
//!   client's address is there once, and the server has not reused it.
//!
//! # Memory ordering
//! The flag and the counts are Relaxed: nothing is read on their strength. A thread that misses the
//! flag reads another step.

use super::api::{Call, Failure, Reply, server};
use super::ranges::{Tally, run};
use crate::map::ByteMap;
use crate::request::Slice;
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

/// The work of a job.
pub(super) enum Work {
    /// Replies with entries.
    List(Scan, Slice),
    /// Computes one result.
    Tally(Scan, Tally),
    /// Nothing.
    Done,
}

/// A blocked client.
pub(super) struct Client(pub(super) *mut raw::RedisModuleBlockedClient);

// SAFETY: the server lets any thread reply to a blocked client and unblock it, and one job has it.
unsafe impl Send for Client {}

/// Work for a thread.
pub(super) struct Job {
    pub(super) map: Arc<ByteMap>,
    pub(super) work: Work,
    client: Client,
    gone: Arc<AtomicBool>,
}

impl Job {
    /// Whether the client has disconnected.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    fn run(mut self) {
        // SAFETY: the client is blocked, so the context is valid until it is unblocked. This thread
        // has both for itself.
        unsafe {
            let ctx = server!(RedisModule_GetThreadSafeContext(self.client.0));
            run(&mut self, Reply(ctx));
            server!(RedisModule_FreeThreadSafeContext(ctx));
        }
        let Self { map, client, gone, .. } = self;
        drop(map); // this frees the map if its key was deleted meanwhile
        JOBS.lock().retain(|(address, _)| *address != client.0.addr()); // J1
        COUNTS.ended(gone.load(Ordering::Relaxed));
        // SAFETY: the client is blocked, and is unblocked once.
        unsafe { server!(RedisModule_UnblockClient(client.0, null_mut())) };
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
    let receiver: Arc<Mutex<Receiver<Job>>> = Arc::new(Mutex::new(receiver));
    for _ in 0..settings().threads() {
        let receiver = Arc::clone(&receiver);
        let next = move || receiver.lock().recv().ok();
        let thread = std::thread::Builder::new().name("silvics-om".into());
        // If no thread can be started, the receiver is dropped, and `submit` says so.
        drop(thread.spawn(move || std::iter::from_fn(next).for_each(Job::run)));
    }
    Mutex::new(sender)
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

/// Blocks the client, and has a thread do the work and reply.
pub(super) fn submit(call: Call<'_>, map: Arc<ByteMap>, work: Work) -> Result<(), Failure> {
    let sender = THREADS.get_or_init(start);
    let (client, gone) = (call.block(Some(disconnected)), Arc::new(AtomicBool::new(false)));
    JOBS.lock().push((client.0.addr(), Arc::clone(&gone)));
    COUNTS.running.fetch_add(1, Ordering::Relaxed);
    if let Err(unsent) = sender.lock().send(Job { map, work, client, gone }) {
        let client = unsent.0.client.0;
        JOBS.lock().retain(|(address, _)| *address != client.addr());
        COUNTS.ended(false);
        // SAFETY: the client was blocked above, and its command replies below instead.
        unsafe { server!(RedisModule_AbortBlock(client)) };
        let sentence = "no thread could be started: load the module with threads 0";
        return Err(Failure::Sentence(sentence.into()));
    }
    Ok(())
}
