//! The file to which a trace is written.

use libc::{
    EWOULDBLOCK, F_DUPFD_CLOEXEC, LOCK_EX, LOCK_NB, O_CLOEXEC, O_CREAT, O_NOCTTY, O_NONBLOCK,
    O_WRONLY, RLIMIT_FSIZE, RLIMIT_NOFILE, S_IFMT, S_IFREG, c_int, rlim_t, rlimit,
};
use std::ffi::CStr;

/// The calling thread's error number.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library returns a pointer to this thread's own word.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's error number.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: the C library returns a pointer to this thread's own word.
    unsafe { *libc::__errno_location() = value };
}

/// Calls `f` while the thread cannot be cancelled. `open` and `pwrite` are cancellation points,
/// which `malloc` must not be.
fn uncancelled<R>(f: impl FnOnce() -> R) -> R {
    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    }
    const DISABLE: c_int = 1;
    let mut old = 0;
    // SAFETY: changes the state of the calling thread, which is restored below.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut old) };
    let result = f();
    // SAFETY: restores the state saved above.
    unsafe { pthread_setcancelstate(old, &raw mut old) };
    result
}

/// The identity of the file behind an open descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    regular: bool,
}

impl Identity {
    pub(crate) fn of(fd: c_int) -> Option<Self> {
        let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `stat` has room for the struct that a successful call fills in.
        let stat = unsafe {
            if libc::fstat(fd, stat.as_mut_ptr()) != 0 {
                return None;
            }
            stat.assume_init()
        };
        let regular = stat.st_mode & S_IFMT == S_IFREG;
        Some(Self { device: stat.st_dev, inode: stat.st_ino, regular })
    }
}

/// The reason why a file is not written.
pub(crate) enum Refused {
    /// The file cannot be opened or locked. The value is the error number.
    System(c_int),
    /// The file is a folder, a pipe or a device.
    NotRegular,
    /// Another process is writing to the file.
    Busy,
}

/// The file of a trace, locked against other processes while it is open.
pub(crate) struct File {
    fd: c_int,
    identity: Identity,
}

impl File {
    /// Opens a file: a new one, or an existing one cut to its first `keep` bytes.
    pub(crate) fn create(path: &CStr, keep: u64) -> Result<Self, Refused> {
        // Opening must not wait for the reader of a pipe, nor truncate the file before it is
        // locked.
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
        // SAFETY: a C string.
        let fd = uncancelled(|| unsafe { libc::open(path.as_ptr(), flags, 0o666) });
        if fd < 0 {
            return Err(Refused::System(errno()));
        }
        let refuse = |refused| {
            // SAFETY: opened above.
            uncancelled(|| unsafe { libc::close(fd) });
            Err(refused)
        };
        let Some(identity) = Identity::of(fd).filter(|identity| identity.regular) else {
            return refuse(Refused::NotRegular);
        };
        // SAFETY: opened above.
        if unsafe { libc::flock(fd, LOCK_EX | LOCK_NB) } != 0 {
            let error = errno();
            return refuse(if error == EWOULDBLOCK {
                Refused::Busy
            } else {
                Refused::System(error)
            });
        }
        // SAFETY: opened above.
        if unsafe { libc::ftruncate(fd, keep as libc::off_t) } != 0 {
            return refuse(Refused::System(errno()));
        }
        Ok(Self { fd: out_of_the_way(fd), identity })
    }

    /// Appends whole lines at `end`. If that fails, it removes the part that was written and
    /// returns the error number.
    pub(crate) fn append(&self, end: u64, lines: &[u8]) -> Result<(), c_int> {
        // The program may have closed the descriptor and opened another file under its number.
        if Identity::of(self.fd) != Some(self.identity) {
            return Err(libc::EBADF);
        }
        // A write beyond this limit would raise a signal.
        if end + lines.len() as u64 > limit(RLIMIT_FSIZE) {
            return Err(libc::EFBIG);
        }
        let mut rest = lines;
        while !rest.is_empty() {
            let at = end + (lines.len() - rest.len()) as u64;
            // SAFETY: readable bytes. The offset is explicit, so no other use of the file changes
            // it.
            let wrote = uncancelled(|| unsafe {
                libc::pwrite(self.fd, rest.as_ptr().cast(), rest.len(), at as libc::off_t)
            });
            if wrote > 0 {
                rest = rest.get(wrote as usize..).unwrap_or_default();
            } else if wrote == 0 || errno() != libc::EINTR {
                let error = if wrote == 0 { libc::ENOSPC } else { errno() };
                // SAFETY: the file belongs to this tracer.
                unsafe { libc::ftruncate(self.fd, end as libc::off_t) };
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if Identity::of(self.fd) == Some(self.identity) {
            // SAFETY: opened by `create`.
            uncancelled(|| unsafe { libc::close(self.fd) });
        }
    }
}

fn limit(resource: libc::__rlimit_resource_t) -> rlim_t {
    let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the struct that the call fills in.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    limit.rlim_cur
}

/// Moves a file to a high descriptor number if the system allows it, so that programs find the low
/// numbers they expect.
fn out_of_the_way(fd: c_int) -> c_int {
    let least = limit(RLIMIT_NOFILE).min(1000).saturating_sub(16);
    // SAFETY: an open descriptor, which is only closed if it has a duplicate.
    unsafe {
        let high = libc::fcntl(fd, F_DUPFD_CLOEXEC, least as c_int);
        if high < 0 {
            return fd;
        }
        uncancelled(|| libc::close(fd));
        high
    }
}
