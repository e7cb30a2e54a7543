//! A program whose allocations the tests know: `silvics-preload-known WHAT`.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    match what.as_str() {
        "verbs" => linux::verbs(),
        "sites" => linux::sites(),
        "threads" => linux::threads(),
        "fork" => processes::fork(),
        "clone" => processes::clone(),
        "handlers" => processes::handlers(),
        "fork-busy" => processes::fork_busy(),
        "fork-loader" => processes::fork_loader(),
        "fork-signal" => processes::fork_signal(),
        "fork-again" => processes::fork_again(),
        "vfork" => processes::vfork(arguments),
        "fork-vfork" => processes::fork_vfork(arguments),
        "unwiped" => processes::unwiped(arguments),
        "exit-now" => linux::exit_now(),
        "exec" => linux::exec(),
        "errno" => linux::errno(),
        "cancel" => linux::cancel(),
        "close" => linux::close(),
        "killed" => linux::killed(),
        "no-memory" => linux::no_memory(arguments),
        other => panic!("nothing known is called `{other}`"),
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod processes;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux {
    use std::ffi::CString;
    use std::hint::black_box;
    use std::sync::mpsc;

    /// An address that may move to another thread.
    pub(super) struct Block(pub(super) *mut libc::c_void);
    // SAFETY: memory of the C library, which any thread may free.
    unsafe impl Send for Block {}

    #[inline(never)]
    pub(super) fn get(size: usize) -> Block {
        // SAFETY: `malloc` accepts any size.
        let at = black_box(unsafe { libc::malloc(size) });
        assert!(!at.is_null());
        Block(at)
    }

    #[expect(clippy::needless_pass_by_value, reason = "nobody has the block afterwards")]
    pub(super) fn free(block: Block) {
        // SAFETY: the block comes from `get` or a similar function, and is freed only once.
        unsafe { libc::free(black_box(block.0)) };
    }

    fn resized(block: &Block, size: usize) -> Block {
        // SAFETY: the block comes from `get` or a similar function, and is not used afterwards.
        Block(black_box(unsafe { libc::realloc(block.0, size) }))
    }

    /// Calls each verb with a size of its own, and frees some of the blocks.
    pub(super) fn verbs() {
        let kept: Vec<Block> = (0..100).map(|_| get(7_001)).collect();
        (0..50).map(|_| get(7_003)).for_each(free);
        // SAFETY: the sizes and alignments satisfy the C library's manual.
        unsafe {
            black_box(libc::calloc(7, 1_001)).cast::<u8>().write(1);
            black_box(libc::memalign(64, 7_009));
            black_box(libc::aligned_alloc(128, 7_040));
            let mut at = std::ptr::null_mut();
            assert_eq!(libc::posix_memalign(&raw mut at, 4096, 7_013), 0);
            assert_eq!(black_box(at).addr() % 4096, 0);
            assert!(libc::posix_memalign(&raw mut at, 3, 7_019) != 0);
            assert!(black_box(libc::malloc(usize::MAX / 2)).is_null());
            assert!(black_box(libc::calloc(usize::MAX / 2, 3)).is_null());
            let text = CString::new(vec![b'x'; 7_026]).expect("no zero in it");
            black_box(libc::strdup(text.as_ptr()));
        }
        let moved = (0..20).map(|_| resized(&get(7_039), 7_043));
        let moved: Vec<Block> = moved.map(|block| resized(&block, 70_000)).collect();
        let fresh = resized(&Block(std::ptr::null_mut()), 7_057);
        assert!(resized(&get(7_069), 0).0.is_null());
        black_box((kept, moved, fresh));
    }

    #[inline(never)]
    fn wrapper(size: usize) -> Block {
        black_box(get(size))
    }

    #[inline(never)]
    fn first() -> Block {
        black_box(wrapper(7_001))
    }

    #[inline(never)]
    fn second() -> Block {
        black_box(wrapper(7_003))
    }

    /// Calls a wrapper of `malloc` from two places.
    pub(super) fn sites() {
        for _ in 0..black_box(10) {
            black_box((first(), second()));
        }
    }

    /// Four threads in a ring. Each allocates, moves, and frees the blocks that its neighbour
    /// sends.
    pub(super) fn threads() {
        const THREADS: usize = 4;
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..THREADS).map(|_| mpsc::sync_channel::<Block>(64)).unzip();
        std::thread::scope(|scope| {
            for (at, receiver) in receivers.into_iter().enumerate() {
                let sender = senders[(at + 1) % THREADS].clone();
                scope.spawn(move || {
                    for round in 0..20_000_usize {
                        // Few sizes, so that freed addresses are reused soon.
                        let mut block = get(16 + 16 * (round % 3));
                        if round % 7 == 0 {
                            block = resized(&block, 24 + 32 * (round % 5));
                        }
                        let unsent = sender.try_send(block).err();
                        if let Some(mpsc::TrySendError::Full(block)) = unsent {
                            free(block);
                        }
                        receiver.try_iter().for_each(free);
                    }
                });
            }
        });
    }

    pub(super) fn exit_now() {
        black_box(get(7_001));
        // SAFETY: ends the process.
        unsafe { libc::_exit(3) };
    }

    /// Replaces itself by a program that is not traced.
    pub(super) fn exec() {
        black_box(get(7_001));
        let path = c"/bin/true";
        let (arguments, environment) = ([path.as_ptr(), std::ptr::null()], [std::ptr::null()]);
        // SAFETY: C strings, in lists that end with null.
        unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        panic!("/bin/true is not there");
    }

    /// Checks that error numbers are as without the tracer: kept on success, set on failure.
    pub(super) fn errno() {
        // SAFETY: the C library returns a pointer to this thread's own word.
        let errno = || unsafe { *libc::__errno_location() };
        for size in (0..20_000).map(|at| 16 + at % 50) {
            // SAFETY: the C library returns a pointer to this thread's own word.
            unsafe { *libc::__errno_location() = 1234 };
            let block = get(size);
            assert_eq!(errno(), 1234);
            let block = resized(&block, 2 * size);
            assert_eq!(errno(), 1234);
            free(block);
            assert_eq!(errno(), 1234);
        }
        // SAFETY: `malloc` accepts any size.
        assert!(black_box(unsafe { libc::malloc(usize::MAX / 2) }).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        let block = get(100);
        // SAFETY: this thread's own word, and a block from `get`.
        unsafe {
            *libc::__errno_location() = 0;
            assert!(black_box(libc::realloc(block.0, usize::MAX / 2)).is_null());
        }
        assert_eq!(errno(), libc::ENOMEM);
        free(block);
    }

    /// Cancels a thread, which must continue to the next cancellation point of the C library.
    pub(super) fn cancel() {
        extern "C" fn busy(done: *mut libc::c_void) -> *mut libc::c_void {
            for round in 0..100_000 {
                free(get(16 + round % 50));
            }
            // SAFETY: `done` belongs to the caller, which waits.
            unsafe { done.cast::<bool>().write(true) };
            std::ptr::null_mut()
        }
        let (mut thread, mut done) = (0, false);
        // SAFETY: the thread ends before `done` does.
        unsafe {
            let start = libc::pthread_create(
                &raw mut thread,
                std::ptr::null(),
                busy,
                (&raw mut done).cast(),
            );
            assert_eq!((start, libc::pthread_cancel(thread)), (0, 0));
            assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
        }
        assert!(black_box(done));
    }

    /// Closes every descriptor, and opens a file under the number of each.
    pub(super) fn close() {
        black_box(get(7_001));
        for fd in 3..1024 {
            // SAFETY: the program needs none of these descriptors.
            unsafe { libc::close(fd) };
        }
        let path = CString::new(std::env::args().nth(2).expect("a path")).expect("no zero in it");
        // SAFETY: a C string.
        while unsafe { libc::open(path.as_ptr(), libc::O_WRONLY) } < 1000 {}
        for _ in 0..10_000 {
            free(get(7_003));
        }
    }

    pub(super) fn killed() {
        for _ in 0..10_000 {
            free(get(7_003));
        }
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }

    /// Uses up its memory before it calls from a new place, by `malloc` or by `realloc`.
    pub(super) fn no_memory(mut arguments: impl Iterator<Item = String>) {
        let first = get(7_001);
        // This leaves room behind the first block.
        free(get(20_000));
        let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a readable limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const nothing) }, 0);
        let second = match arguments.next().as_deref() {
            // SAFETY: `malloc` accepts any size.
            Some("malloc") => Block(black_box(unsafe { libc::malloc(7_003) })),
            _ => resized(&first, 7_003),
        };
        assert!(!second.0.is_null());
        black_box((first, second));
    }
}
