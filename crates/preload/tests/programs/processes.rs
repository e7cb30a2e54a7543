//! The processes of the known program, and the memory they share.

use super::linux::{Block, free, get};
use libc::{c_char, c_int, c_void};
use silvics_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::ffi::{CStr, CString};
use std::hint::black_box;
use std::time::Duration;

/// Ends this process and its children after some seconds, in case one of them waits for ever.
fn watch() {
    extern "C" fn end_all(_: c_int) {
        // SAFETY: it signals only this process group.
        unsafe { libc::kill(0, libc::SIGKILL) };
    }
    // SAFETY: the handler has the type that the call expects.
    unsafe {
        assert_eq!(libc::setpgid(0, 0), 0);
        libc::signal(libc::SIGALRM, end_all as extern "C" fn(c_int) as libc::sighandler_t);
        libc::alarm(10);
    }
}

/// Waits for a child, or for any child (-1), which must end successfully.
fn wait(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is valid for the write.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(ended == child || child == -1 && ended > 0);
    assert_eq!(status, 0);
}

/// Makes a child that allocates, frees some blocks of its parent's, and ends.
fn with_child(fork: impl FnOnce() -> libc::pid_t) {
    watch();
    let before: Vec<Block> = (0..10).map(|_| get(7_001)).collect();
    let child = fork();
    if child == 0 {
        for block in before {
            free(block);
        }
        // More text than the tracer keeps.
        black_box((0..4_000).map(|_| get(24)).collect::<Vec<Block>>());
        black_box((0..30).map(|_| get(7_003)).collect::<Vec<Block>>());
        std::process::exit(0);
    }
    wait(child);
    let after: Vec<Block> = (0..20).map(|_| get(7_009)).collect();
    println!("{child}");
    black_box((before, after));
}

pub(super) fn fork() {
    // SAFETY: this process has one thread.
    with_child(|| unsafe { libc::fork() });
}

/// Forks by the system call, which calls no handlers.
pub(super) fn clone() {
    // SAFETY: this process has one thread; its stack is copied.
    with_child(|| unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as c_int });
}

/// Forks with the handlers below, which are registered before those of the shared object.
pub(super) fn handlers() {
    fork();
}

/// A fork handler that waits for an allocating thread.
extern "C" fn before_fork() {
    let thread = std::thread::spawn(|| {
        black_box((0..3).map(|_| get(7_013)).collect::<Vec<Block>>());
    });
    thread.join().expect("the thread ends");
}

extern "C" fn in_child() {
    black_box((0..5).map(|_| get(7_019)).collect::<Vec<Block>>());
}

extern "C" fn first(count: c_int, arguments: *const *const c_char) {
    // SAFETY: the program's arguments, and functions that are never unloaded.
    unsafe {
        if count > 1 && CStr::from_ptr(*arguments.add(1)) == c"handlers" {
            libc::pthread_atfork(Some(before_fork), None, Some(in_child));
        }
    }
}

// SAFETY: the loader calls the functions in this section before the constructors of all libraries.
// (It calls those of the program's libraries before those of a preloaded one.)
#[used]
#[unsafe(link_section = ".preinit_array")]
static FIRST: extern "C" fn(c_int, *const *const c_char) = first;

/// Forks while other threads allocate.
pub(super) fn fork_busy() {
    watch();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    free(get(7_001));
                }
            });
        }
        fork_children(10);
        done.store(true, Ordering::Relaxed);
    });
}

/// Forks while another thread holds the loader's lock most of the time.
pub(super) fn fork_loader() {
    unsafe extern "C" fn linger(
        _: *mut libc::dl_phdr_info,
        _: libc::size_t,
        _: *mut c_void,
    ) -> c_int {
        std::thread::sleep(Duration::from_micros(200));
        0
    }
    watch();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the callback reads nothing.
                unsafe { libc::dl_iterate_phdr(Some(linger), std::ptr::null_mut()) };
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        fork_children(10);
        done.store(true, Ordering::Relaxed);
    });
}

/// Makes children that allocate and end, one after another.
fn fork_children(count: usize) {
    for _ in 0..count {
        // SAFETY: the child allocates, which the C library allows, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            black_box((0..30).map(|_| get(7_003)).collect::<Vec<Block>>());
            // SAFETY: ends only the child.
            unsafe { libc::_exit(0) };
        }
        wait(child);
    }
}

static TICKS: AtomicU32 = AtomicU32::new(0);
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Forks in a signal handler that interrupts allocations; the children return to these too.
pub(super) fn fork_signal() {
    const FORKS: u32 = 60;
    extern "C" fn tick(_: c_int) {
        match TICKS.fetch_add(1, Ordering::Relaxed) {
            // SAFETY: this process has one thread, and the child ends after returning.
            0..FORKS => match unsafe { libc::fork() } {
                0 => IS_CHILD.store(true, Ordering::Relaxed),
                child => assert!(child > 0),
            },
            // After nine seconds. This timer replaces that of `watch`.
            // SAFETY: it signals only the process group that `watch` made.
            30_000.. => _ = unsafe { libc::kill(0, libc::SIGKILL) },
            _ => {}
        }
    }
    watch();
    let time = libc::timeval { tv_sec: 0, tv_usec: 300 };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the handler has the type that the call expects.
    unsafe {
        libc::signal(libc::SIGALRM, tick as extern "C" fn(c_int) as libc::sighandler_t);
        let set = libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
        assert_eq!(set, 0);
    }
    while TICKS.load(Ordering::Relaxed) < FORKS && !IS_CHILD.load(Ordering::Relaxed) {
        free(get(7_001));
    }
    if IS_CHILD.load(Ordering::Relaxed) {
        black_box((0..30).map(|_| get(7_003)).collect::<Vec<Block>>());
        std::process::exit(0);
    }
    (0..FORKS).for_each(|_| wait(-1));
}

/// Forks, and the child forks again in a signal handler: while it releases its parent's sites by
/// unmapping their memory.
pub(super) fn fork_again() {
    static ARMED: AtomicBool = AtomicBool::new(false);
    extern "C" fn unmap(_: c_int) {
        if ARMED.swap(false, Ordering::Relaxed) {
            // SAFETY: this process has one thread, and the child ends after returning.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            IS_CHILD.store(child == 0, Ordering::Relaxed);
        }
    }
    watch();
    let before = get(7_001);
    // SAFETY: the handler has the type that the call expects.
    unsafe { libc::signal(libc::SIGSYS, unmap as extern "C" fn(c_int) as libc::sighandler_t) };
    answer(libc::SYS_munmap, None, libc::SECCOMP_RET_TRAP);
    ARMED.store(true, Ordering::Relaxed);
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        assert!(!ARMED.load(Ordering::Relaxed));
        black_box((0..30).map(|_| get(7_003)).collect::<Vec<Block>>());
        if !IS_CHILD.load(Ordering::Relaxed) {
            wait(-1);
        }
        std::process::exit(0);
    }
    ARMED.store(false, Ordering::Relaxed);
    wait(child);
    black_box(before);
}

/// The orders for a child in this process's memory, and the blocks it leaves.
struct Borrower {
    bar: Option<fn()>,
    rounds: usize,
    kept: [*mut c_void; 10],
}

fn close_all() {
    for fd in 3..1024 {
        // SAFETY: the descriptors are the child's own, not its parent's, and it does not need them.
        unsafe { libc::close(fd) };
    }
}

fn limit(resource: libc::__rlimit_resource_t) {
    let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a readable limit, set for the child alone.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const nothing) }, 0);
}

/// Makes a child in this process's memory. It allocates more than the tracer keeps, bars itself
/// from the file or from memory as before an `exec`, allocates again for the given rounds, and
/// leaves ten objects.
pub(super) fn vfork(mut arguments: impl Iterator<Item = String>) {
    extern "C" fn child(borrower: *mut c_void) -> c_int {
        // SAFETY: `borrower` belongs to the parent, which waits.
        let borrower = unsafe { &mut *borrower.cast::<Borrower>() };
        let churn = |rounds| (0..rounds).for_each(|_| free(get(7_003)));
        churn(5_000);
        // Leaves memory for the objects below.
        free(get(100_000));
        if let Some(bar) = borrower.bar {
            bar();
        }
        churn(borrower.rounds);
        // SAFETY: `malloc` accepts any size, and is called from a new place here; then the child
        // ends.
        unsafe {
            borrower.kept.fill_with(|| black_box(libc::malloc(7_009)));
            libc::_exit(0)
        }
    }
    watch();
    let bar: Option<fn()> = match arguments.next().as_deref() {
        Some("close") => Some(close_all),
        Some("file-size") => Some(|| limit(libc::RLIMIT_FSIZE)),
        Some("memory") => Some(|| limit(libc::RLIMIT_AS)),
        _ => None,
    };
    let rounds = arguments.next().map_or(0, |rounds| rounds.parse().expect("a number"));
    let mut borrower = Borrower { bar, rounds, kept: [std::ptr::null_mut(); 10] };
    let before = get(7_001);
    let mut stack = vec![0_u8; 1 << 20];
    // SAFETY: as `posix_spawn` does it: the child has a stack of its own, and this thread waits for
    // its end.
    let child = unsafe {
        let top = stack.as_mut_ptr_range().end.cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(child, top, flags, (&raw mut borrower).cast())
    };
    wait(child);
    black_box((0..20).map(|_| get(7_013)).collect::<Vec<Block>>());
    borrower.kept.into_iter().map(Block).for_each(free);
    for _ in 0..5_000 {
        free(get(7_019));
    }
    black_box((before, stack));
}

/// Forks, and the child, which has written nothing yet, makes a child in its memory.
pub(super) fn fork_vfork(arguments: impl Iterator<Item = String>) {
    watch();
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        vfork(arguments);
        std::process::exit(0);
    }
    wait(child);
    println!("{child}");
}

/// Restarts itself with the remaining arguments, under a kernel whose `madvise` rejects
/// `MADV_WIPEONFORK` (`refused`) or accepts it without effect (`ignored`).
pub(super) fn unwiped(mut arguments: impl Iterator<Item = String>) {
    let (only, error) = match arguments.next().as_deref() {
        Some("refused") => (Some(libc::MADV_WIPEONFORK), libc::EINVAL),
        _ => (None, 0),
    };
    answer(libc::SYS_madvise, only, libc::SECCOMP_RET_ERRNO | error as u32);
    let arguments: Vec<CString> = std::env::args()
        .take(1)
        .chain(arguments)
        .map(|argument| CString::new(argument).expect("no zero in it"))
        .collect();
    let list = arguments.iter().map(|argument| argument.as_ptr());
    let list: Vec<*const c_char> = list.chain([std::ptr::null()]).collect();
    // SAFETY: C strings, in a list that ends with null.
    unsafe { libc::execv(c"/proc/self/exe".as_ptr(), list.as_ptr()) };
    panic!("the program cannot be run again");
}

/// Makes a filter answer a system call in the kernel's place: always, or only if its third argument
/// is `only`.
fn answer(number: libc::c_long, only: Option<c_int>, answer: u32) {
    let load = |at| libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: at };
    let unless_equal = |value, skip| libc::sock_filter { code: 0x15, jt: 0, jf: skip, k: value };
    let give = |k| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k };
    // The offsets in `seccomp_data` of the call's number and of its third argument.
    let (call, third) = (0, 32);
    let mut filter = match only {
        None => vec![load(call), unless_equal(number as u32, 1)],
        Some(only) => vec![
            load(call),
            unless_equal(number as u32, 3),
            load(third),
            unless_equal(only as u32, 1),
        ],
    };
    filter.extend([give(answer), give(libc::SECCOMP_RET_ALLOW)]);
    let filter = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a valid filter, which the kernel copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter);
        assert_eq!(set, 0);
    }
}
