//! The tracer: which events are recorded, and its state.
//!
//! # Order
//! All events go through one buffer under one lock. An allocation is written after the memory was
//! obtained, and a free before it is returned; a `realloc` happens under the lock. So of two events
//! at one address, the earlier one is written first, whichever threads they belong to.
//!
//! # No recursion
//! A `pthread_setspecific` value marks a thread that is inside the tracer. Its allocations there
//! are passed on untraced. A `thread_local!` would not do: accessing one can make the loader
//! allocate (after a `dlopen`, to enlarge the thread's table). That allocation would call the
//! tracer again before the mark is read. A key made this early has its place in the thread's own
//! control block.
//!
//! # Memory ordering
//!
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `PHASE` | `ready`, `begin` loads | Acquire | `begin` stores | the thread sees the next definitions and the key |
//! | `PHASE` | `begin` exchanges | AcqRel / Acquire | `begin` stores | one thread does each step, after the one before |
//! | `PHASE` | `begin` stores | Release | `ready` | publishes the results of the step |
//! | `TRACING` | `enter` | Acquire | `start` | the thread sees key and depth; an old value costs an event or a lock |
//! | `TRACING` | stores | Release | `enter` | publishes key and depth |
//! | `TRACING` | other loads | Relaxed | – | under the lock, like the stores |
//! | `KEY`, `DEPTH` | all | Relaxed | – | set before `TRACING`, and constant from then on |

use crate::file::{File, Refused, errno, set_errno};
use crate::fork;
use crate::lock::Locked;
use crate::name;
use crate::next;
use crate::say::{Refusal, Stderr};
use crate::sites::{DEPTH_MAX, Frames, Mapped, Sites};
use crate::text::Text;
use libc::{c_char, c_int, c_void};
use silvics_sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::ffi::CStr;

/// The number of bytes written at once, which a killed program loses.
const BUFFER: usize = 64 << 10;
/// Further room for events that a child in its parent's memory cannot write and its parent can.
const RESERVE: usize = 2 * BUFFER;
/// The length of the longest path, with its closing zero.
const PATH_MAX: usize = 4096;
/// The length of the longest line of an event: a short word, an address and a size.
const EVENT_MAX: usize = 80;
const _: () = assert!(name::NAME_MAX + EVENT_MAX < BUFFER);

const NEW: u32 = 0;
const RESOLVING: u32 = 1;
const RESOLVED: u32 = 2;
const STARTING: u32 = 3;
const STARTED: u32 = 4;

static PHASE: AtomicU32 = AtomicU32::new(NEW);
static TRACING: AtomicBool = AtomicBool::new(false);
static KEY: AtomicU32 = AtomicU32::new(0);
static DEPTH: AtomicUsize = AtomicUsize::new(1);

static STATE: Locked<State> = Locked::new(State {
    text: Text::new([0; BUFFER + RESERVE]),
    lost: 0,
    sites: Sites::new(),
    file: None,
    written: 0,
    pattern: Text::new([0; PATH_MAX]),
    stderr: Stderr::none(),
    ending: false,
});

/// The state of the tracer. A process has one.
struct State {
    text: Text<[u8; BUFFER + RESERVE]>,
    /// The number of events for which a child had no room.
    lost: usize,
    sites: Sites,
    /// The file, or `None` in a child that has not written yet.
    file: Option<File>,
    /// The number of bytes in the file.
    written: u64,
    /// The path as it was given, with `%p`.
    pattern: Text<[u8; PATH_MAX]>,
    stderr: Stderr,
    /// Whether every event is written at once, because the program may end after it.
    ending: bool,
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Whether the next definitions are known. The first call looks them up and starts the trace.
pub(crate) fn ready() -> bool {
    PHASE.load(Ordering::Acquire) == STARTED || begin()
}

#[cold]
fn begin() -> bool {
    let step =
        |from, to| PHASE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if step(NEW, RESOLVING) {
        next::resolve_all();
        PHASE.store(RESOLVED, Ordering::Release);
    }
    // SAFETY: the loader's variable. It is null until the C library has started; then the next call
    // tries again.
    let has_environment = unsafe { !(&raw const environ).read().is_null() };
    if has_environment && step(RESOLVED, STARTING) {
        let saved = errno();
        start();
        set_errno(saved);
        PHASE.store(STARTED, Ordering::Release);
    }
    PHASE.load(Ordering::Acquire) >= RESOLVED
}

/// Opens the file that the environment names, if any.
fn start() {
    let Some(path) = variable(c"SILVICS_TRACE") else { return };
    // SAFETY: no thread is inside before the phase is STARTED.
    unsafe {
        STATE.with(|state| {
            state.stderr = Stderr::now();
            match state.start(path) {
                Ok(()) => {}
                Err(refusal) => state.stderr.untraced(&refusal, path),
            }
        });
    }
}

fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: a C string. The value is copied or parsed before the program continues.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// Parses a decimal number from 1 to [`DEPTH_MAX`].
fn parse_depth(value: &[u8]) -> Option<usize> {
    let depth = match value {
        [digit @ b'0'..=b'9'] => usize::from(digit - b'0'),
        [b'1', digit @ b'0'..=b'9'] => 10 + usize::from(digit - b'0'),
        _ => 0,
    };
    (1..=DEPTH_MAX).contains(&depth).then_some(depth)
}

impl State {
    fn start(&mut self, path: &[u8]) -> Result<(), Refusal<'static>> {
        let depth = match variable(c"SILVICS_TRACE_DEPTH") {
            None => 1,
            Some(value) => parse_depth(value).ok_or(Refusal::Depth(value))?,
        };
        self.set_pattern(path)?;
        let mut key = 0;
        // SAFETY: the key has no destructor, so marks stay while other destructors allocate.
        if unsafe { libc::pthread_key_create(&raw mut key, None) } != 0 {
            return Err(Refusal::NoKey);
        }
        KEY.store(key, Ordering::Relaxed);
        DEPTH.store(depth, Ordering::Relaxed);
        fork::begin();
        self.file = Some(self.open().map_err(Refusal::File)?);
        self.begin_file();
        // libgcc allocates when it unwinds for the first time, so unwind now.
        name::frames(0, depth);
        TRACING.store(true, Ordering::Release);
        Ok(())
    }

    /// Stores the absolute path, because the program may change its folder.
    fn set_pattern(&mut self, path: &[u8]) -> Result<(), Refusal<'static>> {
        if path.is_empty() {
            return Err(Refusal::NoPath);
        }
        self.pattern.clear();
        if !path.starts_with(b"/") {
            let mut folder = [0_u8; PATH_MAX];
            // SAFETY: `folder` has room for the path that the call writes.
            if unsafe { libc::getcwd(folder.as_mut_ptr().cast(), folder.len()) }.is_null() {
                return Err(Refusal::File(Refused::System(errno())));
            }
            let end = folder.iter().position(|byte| *byte == 0).unwrap_or(0);
            self.pattern.push(folder.get(..end).unwrap_or_default());
            self.pattern.push(b"/");
        }
        self.pattern.push(path);
        // Each `%p` may become ten digits, and a zero follows the path.
        let names = self.pattern.written().windows(2).filter(|pair| *pair == b"%p").count();
        if self.pattern.room() <= 8 * names { Err(Refusal::LongPath) } else { Ok(()) }
    }

    fn own_file_per_process(&self) -> bool {
        self.pattern.written().windows(2).any(|pair| pair == b"%p")
    }

    fn open(&self) -> Result<File, Refused> {
        let mut path = Text::new([0_u8; PATH_MAX]);
        let mut rest = self.pattern.written();
        while let [first, others @ ..] = rest {
            rest = if let [b'p', others @ ..] = others
                && *first == b'%'
            {
                path.push_decimal(fork::owner() as usize);
                others
            } else {
                path.push(&[*first]);
                others
            };
        }
        path.push(&[0]);
        let path = CStr::from_bytes_with_nul(path.written());
        File::create(path.map_err(|_| Refused::System(libc::EINVAL))?, self.written)
    }

    fn begin_file(&mut self) {
        self.text.push(b"# silvics-preload: process ");
        self.text.push_decimal(fork::owner() as usize);
        self.text.push(b", frames ");
        self.text.push_decimal(DEPTH.load(Ordering::Relaxed));
        self.text.push(b"\n");
    }

    /// Makes room for an event of `bytes` bytes, by writing earlier ones if necessary. Returns
    /// false if there is no room; the event is then lost.
    fn make_room(&mut self, bytes: usize) -> bool {
        if self.text.room() < bytes + RESERVE {
            self.flush();
        }
        let has_room = self.text.room() >= bytes;
        self.lost += usize::from(!has_room);
        has_room
    }

    fn allocation(&mut self, site: usize, address: usize, size: usize) {
        if !self.make_room(EVENT_MAX) {
            return;
        }
        self.text.push(b"k");
        self.text.push_decimal(site);
        self.text.push(b" ");
        self.text.push_hex(address);
        self.text.push(b" ");
        self.text.push_decimal(size);
        self.end_line();
    }

    fn free(&mut self, address: usize) {
        if !self.make_room(EVENT_MAX) {
            return;
        }
        self.text.push(b"- ");
        self.text.push_hex(address);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.text.push(b"\n");
        if self.ending {
            self.flush();
        }
    }

    /// Declares a site, unless another thread has done so meanwhile. Returns its number, or `None`
    /// if it cannot be declared.
    fn declare<B>(&mut self, frames: &Frames, name: &Text<B>) -> Option<usize>
    where
        B: AsRef<[u8]> + AsMut<[u8]>,
    {
        if let Some(site) = self.sites.find(frames) {
            return Some(site);
        }
        if !self.make_room(name::NAME_MAX + EVENT_MAX) {
            return None;
        }
        let Some(site) = self.sites.add(*frames) else {
            self.end_without_memory();
            return None;
        };
        self.text.push(b"kind ");
        self.text.push(name.written());
        self.text.push(b" short k");
        self.text.push_decimal(site);
        self.end_line();
        Some(site)
    }

    fn flush(&mut self) {
        // A signal handler forked in the middle of a write, and this is its child.
        if fork::is_copy() {
            return self.text.clear();
        }
        if TRACING.load(Ordering::Relaxed)
            && let Err(error) = self.write()
        {
            // The child's descriptors, limits and rights are its own, so its parent writes later.
            if !fork::is_owner() {
                return;
            }
            self.end(error);
        }
        self.text.clear();
    }

    /// Writes the buffer to the file, which is opened if necessary. The error is an error number.
    fn write(&mut self) -> Result<(), c_int> {
        // A file that a child in its parent's memory opens is not open in its parent.
        let lent = self.file.is_none() && !fork::is_owner();
        if self.file.is_none() {
            self.file = Some(self.open().map_err(|refused| match refused {
                Refused::System(error) => error,
                Refused::NotRegular | Refused::Busy => libc::EBUSY,
            })?);
        }
        let lines = self.text.written();
        let wrote = self.file.as_ref().map_or(Ok(()), |file| file.append(self.written, lines));
        if wrote.is_ok() {
            self.written += lines.len() as u64;
        }
        if lent {
            self.file = None;
        }
        wrote
    }

    /// Drops the parent's state in a child, which continues with a file of its own or untraced.
    /// Another thread may have been using the state when the child was made.
    fn leave_parent(&mut self, torn: bool) {
        let sites = std::mem::replace(&mut self.sites, Sites::new());
        if torn {
            // The memory of the sites may be unmapped already.
            std::mem::forget(sites);
        }
        self.text.clear();
        self.lost = 0;
        // If `file` is half written, its descriptor is not valid and must not be closed.
        self.file = None;
        self.written = 0;
        self.ending = false;
        if self.own_file_per_process() {
            self.begin_file();
        } else {
            TRACING.store(false, Ordering::Release);
        }
    }

    /// Ends the trace before a site for which an allocation failed. A child may have a lower limit
    /// than its parent.
    fn end_without_memory(&mut self) {
        if !fork::is_owner() {
            self.lost += 1;
            return;
        }
        self.flush();
        if TRACING.load(Ordering::Relaxed) {
            self.end(libc::ENOMEM);
        }
    }

    /// Ends the trace, which keeps the text written so far.
    fn end(&mut self, error: c_int) {
        TRACING.store(false, Ordering::Release);
        self.file = None;
        self.stderr.ends_early(error);
        self.say_lost();
    }

    fn say_lost(&mut self) {
        if self.lost > 0 {
            self.stderr.lacks(std::mem::take(&mut self.lost));
        }
    }
}

/// A thread that is inside the tracer. Only the next definitions set its error number.
pub(crate) struct Inside(());

/// Marks the thread as inside, unless nothing is traced or it is inside already.
pub(crate) fn enter() -> Option<Inside> {
    if !TRACING.load(Ordering::Acquire) || fork::is_untold() {
        return None;
    }
    let key = KEY.load(Ordering::Relaxed);
    // SAFETY: the key was created before tracing began.
    unsafe {
        if !libc::pthread_getspecific(key).is_null() {
            return None;
        }
        let saved = errno();
        let failed = libc::pthread_setspecific(key, (&raw const TRACING).cast());
        set_errno(saved);
        (failed == 0).then_some(Inside(()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // SAFETY: the key was created before tracing began. Setting a null value allocates nothing.
        unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), std::ptr::null()) };
    }
}

impl Inside {
    /// Calls `f` with the state and preserves the error number. A new process first makes the state
    /// its own.
    #[expect(clippy::unused_self, reason = "having one proves that the thread is inside")]
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let saved = errno();
        // SAFETY: in a copy, one thread calls this before anything else uses the state.
        fork::in_copy(|| unsafe {
            let torn = STATE.renew();
            STATE.with(|state| state.leave_parent(torn));
        });
        // SAFETY: `self` is the thread's only `Inside`, and nothing below calls this again.
        let result = unsafe { STATE.with(f) };
        set_errno(saved);
        result
    }

    /// Calls `f` with the state and the number of a call's site. A new site is declared first; if
    /// that fails, the trace ends.
    ///
    /// All this happens in one use of the state. At the next use this may be another process, in
    /// which the number has no meaning.
    fn at_site<R>(&self, caller: usize, f: impl FnOnce(&mut State, usize) -> R) -> Option<R> {
        let saved = errno();
        let frames = name::frames(caller, DEPTH.load(Ordering::Relaxed));
        let done = self.with(|state| match state.sites.find(&frames) {
            Some(site) => Ok(f(state, site)),
            None => Err(f),
        });
        let result = done.map_or_else(|f| self.at_new_site(&frames, f), Some);
        set_errno(saved);
        result
    }

    #[cold]
    fn at_new_site<R>(&self, frames: &Frames, f: impl FnOnce(&mut State, usize) -> R) -> Option<R> {
        // Outside of the lock: naming takes time, and with old C libraries the loader's lock.
        // SAFETY: zeros are valid bytes.
        let Some(scratch) = (unsafe { Mapped::<u8>::zeros(name::NAME_MAX) }) else {
            self.with(State::end_without_memory);
            return None;
        };
        let mut name = Text::new(scratch);
        name::write(frames, &mut name);
        self.with(|state| state.declare(frames, &name).map(|site| f(state, site)))
    }

    /// Records an allocation that has happened, by the call that returns to `caller`.
    pub(crate) fn allocated(&self, caller: usize, at: *const c_void, size: usize) {
        self.at_site(caller, |state, site| state.allocation(site, at.addr(), size));
    }

    /// Records a free that is about to happen.
    pub(crate) fn freed(&self, at: *const c_void) {
        self.with(|state| state.free(at.addr()));
    }

    /// Moves an object by `realloc`, which returns its new place, and records that.
    pub(crate) fn moved(
        &self,
        caller: usize,
        old: *mut c_void,
        size: usize,
        realloc: impl Fn() -> *mut c_void,
    ) -> *mut c_void {
        let before = errno();
        let moved = self.at_site(caller, |state, site| {
            set_errno(0);
            let new = realloc();
            let after = errno();
            // Without a new place, the old one is free if there was nothing to keep.
            if !new.is_null() || (size == 0 && after != libc::ENOMEM) {
                state.free(old.addr());
            }
            if !new.is_null() {
                state.allocation(site, new.addr(), size);
            }
            (new, after)
        });
        let Some((new, after)) = moved else { return realloc() };
        set_errno(if after == 0 { before } else { after });
        new
    }
}

/// Writes the buffer, because nothing of this program may run afterwards.
pub(crate) fn finish(ending: bool) {
    // A `vfork` child shares its parent's memory, and a signal handler may have interrupted a
    // write: neither may write.
    if fork::is_owner()
        && let Some(inside) = enter()
    {
        inside.with(|state| {
            state.flush();
            state.say_lost();
            state.ending = ending;
        });
    }
}

extern "C" fn in_child() {
    fork::tell();
    // Do this at once, so that the child does not keep the parent's file open and locked.
    if let Some(inside) = enter() {
        inside.with(|_| ());
    }
}

extern "C" fn load() {
    ready();
    // SAFETY: the handler lives as long as this object, which is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

extern "C" fn unload() {
    finish(true);
}

// SAFETY: the loader calls the functions in these sections once, after the object's libraries are
// initialised and before they are finalised.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;
// SAFETY: see `.init_array` above.
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;
