//! The page sources of regions: 4 KiB pages, transparent huge pages, hugetlb.

use crate::AllocError;
use std::fmt;
#[cfg(silvics_poison)]
use std::ptr::NonNull;

/// The size of a huge page, and of a granule: the unit in which pools grow.
pub const HUGE_PAGE: usize = 2 << 20;

/// The size of a small page.
pub const SMALL_PAGE: usize = 4 << 10;

/// The pages that a pool requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Pages of 4 KiB, even if the system would give huge pages.
    Small,
    /// Pages of 2 MiB by `madvise(MADV_HUGEPAGE)`, which needs no setup of the system. The default.
    #[default]
    Thp,
    /// Pages of 2 MiB from the pool that the administrator reserved (`vm.nr_hugepages`).
    HugeTlb,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Small => "4k",
            Self::Thp => "thp",
            Self::HugeTlb => "hugetlb",
        })
    }
}

/// Why the system gave other pages than the requested ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The requested pages.
    pub wanted: Pages,
    /// The pages that the system gave.
    pub given: Pages,
    /// The cause and the remedy, in one sentence.
    pub reason: String,
}

/// A mapping of whole granules, aligned to [`HUGE_PAGE`].
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    len: usize,
    pub(crate) pages: Pages,
    pub(crate) fallback: Option<Fallback>,
}

// SAFETY: a mapping is plain memory; the pool decides which thread may access which part.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`; the methods do not access the memory itself except under their contracts.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Maps `granules` zeroed granules. Except with hugetlb, the system backs a page when it is
    /// first touched.
    pub(crate) fn new(granules: usize, wanted: Pages) -> Result<Self, AllocError> {
        let len = granules * HUGE_PAGE;
        let mapping = os::map(len, wanted)?;
        if !silvics_sync::tagged::addressable(mapping.start)
            || !silvics_sync::tagged::addressable(mapping.start.wrapping_add(len - 8))
        {
            return Err(AllocError::Address); // dropping the mapping unmaps it
        }
        Ok(mapping)
    }

    /// Whether `address` lies in this mapping.
    pub(crate) fn contains(&self, address: *const u8) -> bool {
        (self.start.addr()..self.start.addr() + self.len).contains(&address.addr())
    }

    /// Asks for huge pages (or for small ones, even if the system would give huge pages) behind
    /// `len` bytes from `start`. The range must lie in this mapping.
    pub(crate) fn advise(&self, start: *mut u8, len: usize, huge: bool) {
        debug_assert!(self.contains(start) && start.addr() + len <= self.start.addr() + self.len);
        os::advise(start, len, huge);
    }

    /// Whether the system takes back a range that begins and ends at multiples of `bytes`. It must
    /// consist of whole system pages, and reserved huge pages are larger than any slab.
    pub(crate) fn gives_back(&self, bytes: usize) -> bool {
        self.pages != Pages::HugeTlb && bytes.is_multiple_of(os::page_bytes())
    }

    /// Returns the pages of a range of this mapping to the system. The range reads as zeros
    /// afterwards. Returns false if the system refuses, or if the range does not consist of [whole
    /// pages](Self::gives_back).
    ///
    /// # Safety
    /// Nobody uses the memory of the range.
    pub(crate) unsafe fn discard(&self, start: *mut u8, len: usize) -> bool {
        debug_assert!(self.contains(start) && start.addr() + len <= self.start.addr() + self.len);
        // SAFETY: the caller's promise; whole pages, so nothing outside the range is discarded.
        self.gives_back(start.addr() | len) && unsafe { os::discard(start, len) }
    }

    /// Moves the touched pages of a range to huge pages.
    pub(crate) fn collapse(&self, start: *mut u8, len: usize) -> Collapse {
        self.advise(start, len, true);
        os::collapse(start, len)
    }
}

/// Backs `len` bytes of a mapping from `start` by pages, all at once: the system takes longer to
/// back each page when it is touched.
pub(crate) fn populate(start: *mut u8, len: usize) {
    os::populate(start, len);
}

/// The outcome of [`Mapping::collapse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collapse {
    /// Done, or pointless to repeat: the kernel may still do it in its own time.
    Settled,
    /// Impossible at this moment; worth another call later.
    Later,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[cfg(silvics_poison)]
        if let Some(start) = NonNull::new(self.start) {
            // SAFETY: nobody uses the mapping any more.
            unsafe { crate::poison::forget(start, self.len) };
        }
        // SAFETY: `os::map` made it with this length, and it is unmapped only once.
        unsafe { os::unmap(self.start, self.len) };
    }
}

/// Makes regions read-only, or writable again, to detect writes that should not happen.
///
/// # Safety
/// The ranges are whole regions of pools, and nobody unmaps them meanwhile. While they are
/// read-only, nobody allocates from them, frees into them or writes objects in them. Such a write
/// ends the process, which is the purpose.
pub unsafe fn set_read_only(regions: &[Region], read_only: bool) -> std::io::Result<()> {
    for region in regions {
        // SAFETY: the caller's promise.
        unsafe { os::protect(region.start.as_ptr(), region.bytes, read_only)? };
    }
    Ok(())
}

/// A mapped range of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first address, aligned to the page size.
    pub start: std::ptr::NonNull<u8>,
    /// Its length in bytes.
    pub bytes: usize,
}

// SAFETY: an address and a length; nothing is read through the address here.
unsafe impl Send for Region {}
// SAFETY: as for `Send`.
unsafe impl Sync for Region {}

/// The page source of Linux and other unixes: `mmap`.
#[cfg(all(unix, not(miri)))]
mod os {
    use super::{Collapse, Fallback, HUGE_PAGE, Mapping, Pages};
    use crate::AllocError;
    #[cfg(target_os = "linux")]
    use std::fs::File;
    #[cfg(target_os = "linux")]
    use std::io::Read;
    use std::io::{Error, Result};
    use std::ptr::null_mut;

    pub(super) fn map(len: usize, wanted: Pages) -> std::result::Result<Mapping, AllocError> {
        let mut fallback = None;
        if wanted == Pages::HugeTlb {
            match map_hugetlb(len) {
                Ok(start) => {
                    return Ok(Mapping { start, len, pages: wanted, fallback: None });
                }
                Err(reason) => {
                    fallback = Some(Fallback { wanted, given: Pages::Thp, reason });
                }
            }
        }
        let start = map_aligned(len).ok_or_else(|| match reached_mappings() {
            Some(limit) => AllocError::Mappings { limit },
            None => AllocError::System { requested: len },
        })?;
        let mut mapping = Mapping { start, len, pages: Pages::Small, fallback };
        if wanted == Pages::Small {
            advise(start, len, false);
        } else if let Err(reason) = huge_pages_available() {
            let first = mapping.fallback.take().map_or(String::new(), |f| f.reason + "; ");
            let reason = first + &reason;
            mapping.fallback = Some(Fallback { wanted, given: Pages::Small, reason });
        } else {
            mapping.pages = Pages::Thp;
        }
        Ok(mapping)
    }

    /// The most mappings of a process, if this process has as many. Allocates nothing.
    #[cfg(target_os = "linux")]
    fn reached_mappings() -> Option<usize> {
        let mut number = [0; 20];
        let digits = File::open("/proc/sys/vm/max_map_count").ok()?.read(&mut number).ok()?;
        let limit: usize = std::str::from_utf8(&number[..digits]).ok()?.trim().parse().ok()?;
        let (mut maps, mut part) = (File::open("/proc/self/maps").ok()?, [0; 4096]);
        let mut mappings = 0;
        loop {
            match maps.read(&mut part).ok()? {
                0 => break,
                read => mappings += part[..read].split(|byte| *byte == b'\n').count() - 1,
            }
        }
        // A mapping that is placed between two others may need two more at first.
        (mappings + 2 >= limit).then_some(limit)
    }

    #[cfg(not(target_os = "linux"))]
    fn reached_mappings() -> Option<usize> {
        None
    }

    /// Maps one granule more than needed and unmaps both ends, so that the rest is aligned. At the
    /// limit of mappings the system may refuse to unmap an end. It then stays mapped, untouched.
    fn map_aligned(len: usize) -> Option<*mut u8> {
        let wide = len.checked_add(HUGE_PAGE)?;
        let start = map_private(wide, 0).ok()?;
        let skip = start.align_offset(HUGE_PAGE);
        let aligned = start.wrapping_add(skip);
        // SAFETY: both ends lie in the new mapping, and nobody uses them.
        unsafe {
            if skip > 0 {
                libc::munmap(start.cast(), skip);
            }
            if HUGE_PAGE > skip {
                libc::munmap(aligned.wrapping_add(len).cast(), HUGE_PAGE - skip);
            }
        }
        Some(aligned)
    }

    fn map_private(len: usize, flags: libc::c_int) -> Result<*mut u8> {
        // SAFETY: an anonymous mapping without a fixed address changes no existing mapping.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(start.cast()) }
    }

    pub(super) unsafe fn unmap(start: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        let result = unsafe { libc::munmap(start.cast(), len) };
        debug_assert_eq!(result, 0, "munmap: {}", Error::last_os_error());
    }

    pub(super) unsafe fn protect(start: *mut u8, len: usize, read_only: bool) -> Result<()> {
        let protection =
            if read_only { libc::PROT_READ } else { libc::PROT_READ | libc::PROT_WRITE };
        // SAFETY: the caller's promise.
        match unsafe { libc::mprotect(start.cast(), len, protection) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    #[cfg(target_os = "linux")]
    fn map_hugetlb(len: usize) -> std::result::Result<*mut u8, String> {
        // With MAP_NORESERVE a shortage would raise SIGBUS at the first touch, so populate at once.
        // SAFETY: an anonymous mapping without a fixed address changes no existing mapping.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE
                    | libc::MAP_ANONYMOUS
                    | libc::MAP_HUGETLB
                    | libc::MAP_HUGE_2MB
                    | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if start != libc::MAP_FAILED {
            return Ok(start.cast());
        }
        Err(shortage(len / HUGE_PAGE, &Error::last_os_error(), |file| {
            let path = format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{file}");
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        }))
    }

    /// Says why hugetlb refused `needed` pages, and how to reserve them. `count` reads the system's
    /// counts.
    #[cfg(target_os = "linux")]
    fn shortage(needed: usize, error: &Error, count: impl Fn(&str) -> Option<usize>) -> String {
        let (Some(reserved), Some(free)) = (count("nr_hugepages"), count("free_hugepages")) else {
            return format!("hugetlb has no 2 MiB pages on this system ({error}): use thp or 4k");
        };
        // Some of the free pages may be promised to other processes already.
        let free = free.saturating_sub(count("resv_hugepages").unwrap_or(0));
        if free >= needed {
            return format!(
                "hugetlb refused {needed} of {free} free 2 MiB pages ({error}): raise the hugetlb \
                 limit of this process's control group, or use thp"
            );
        }
        format!(
            "this region needs {needed} hugetlb pages of 2 MiB, and {free} of {reserved} are free \
             ({error}): reserve them with `sysctl vm.nr_hugepages={}`, and one more for every \
             further 2 MiB",
            reserved + needed - free
        )
    }

    #[cfg(all(test, target_os = "linux", not(any(silvics_loom, silvics_shuttle))))]
    #[test]
    fn a_shortage_says_how_many_pages_and_how_to_reserve_them() {
        let refused = Error::from_raw_os_error(libc::ENOMEM);
        let with = |counts: [Option<usize>; 3]| {
            let count = |file: &str| match file {
                "nr_hugepages" => counts[0],
                "free_hugepages" => counts[1],
                _ => counts[2],
            };
            shortage(3, &refused, count)
        };
        let none = with([Some(0); 3]);
        assert!(
            none.starts_with("this region needs 3 hugetlb pages of 2 MiB, and 0 of 0 are free (")
        );
        assert!(none.contains("`sysctl vm.nr_hugepages=3`"), "{none}");
        let promised = with([Some(10), Some(4), Some(3)]);
        assert!(promised.contains("1 of 10 are free"), "{promised}");
        assert!(promised.contains("`sysctl vm.nr_hugepages=12`"), "{promised}");
        assert!(with([Some(10), Some(4), None]).contains("3 of 4 free"));
        assert!(with([None; 3]).contains("use thp or 4k"));
    }

    #[cfg(not(target_os = "linux"))]
    fn map_hugetlb(_len: usize) -> std::result::Result<*mut u8, String> {
        Err("hugetlb exists on Linux only: use thp or 4k".into())
    }

    #[cfg(target_os = "linux")]
    fn huge_pages_available() -> std::result::Result<(), String> {
        use std::sync::LazyLock;
        static MODE: LazyLock<std::result::Result<(), String>> = LazyLock::new(|| {
            let path = "/sys/kernel/mm/transparent_hugepage/enabled";
            match std::fs::read_to_string(path) {
                Ok(mode) if mode.contains("[never]") => {
                    Err(format!("transparent huge pages are off: write madvise to {path}"))
                }
                Ok(_) => Ok(()),
                Err(error) => Err(format!(
                    "transparent huge pages are unknown on this system ({path}: {error}): use 4k"
                )),
            }
        });
        MODE.clone()
    }

    #[cfg(not(target_os = "linux"))]
    fn huge_pages_available() -> std::result::Result<(), String> {
        Err("transparent huge pages exist on Linux only: use 4k".into())
    }

    /// The size of the system's pages, which can exceed [`SMALL_PAGE`](super::SMALL_PAGE).
    pub(super) fn page_bytes() -> usize {
        // SAFETY: `sysconf` accepts any name; this one returns a constant.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(super::HUGE_PAGE)
    }

    #[cfg(target_os = "linux")]
    pub(super) unsafe fn discard(start: *mut u8, len: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { libc::madvise(start.cast(), len, libc::MADV_DONTNEED) == 0 }
    }

    /// On other systems `MADV_DONTNEED` does not promise zeros afterwards. A new mapping in place
    /// of the range does.
    #[cfg(not(target_os = "linux"))]
    pub(super) unsafe fn discard(start: *mut u8, len: usize) -> bool {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the caller's promise; the range lies in a mapping of ours.
        len == 0
            || unsafe { libc::mmap(start.cast(), len, protection, flags, -1, 0) }
                != libc::MAP_FAILED
    }

    #[cfg(target_os = "linux")]
    pub(super) fn advise(start: *mut u8, len: usize, huge: bool) {
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: advice on a range of our own mapping changes no content. If it fails, the pages
        // are other ones, which the huge-page share of every report shows.
        unsafe { libc::madvise(start.cast(), len, advice) };
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn advise(_start: *mut u8, _len: usize, _huge: bool) {}

    #[cfg(target_os = "linux")]
    pub(super) fn collapse(start: *mut u8, len: usize) -> Collapse {
        /// Since Linux 6.1. The libc crate does not name it on every target.
        const MADV_COLLAPSE: libc::c_int = 25;
        // SAFETY: as in `advise`: it moves the content of our own mapping and changes none.
        let result = unsafe { libc::madvise(start.cast(), len, MADV_COLLAPSE) };
        if result != 0 && Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) {
            return Collapse::Later;
        }
        Collapse::Settled
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn collapse(_start: *mut u8, _len: usize) -> Collapse {
        Collapse::Settled
    }

    #[cfg(target_os = "linux")]
    pub(super) fn populate(start: *mut u8, len: usize) {
        /// Since Linux 5.14. The libc crate does not name it on every target.
        const MADV_POPULATE_WRITE: libc::c_int = 23;
        // SAFETY: as in `advise`: it backs pages of our own mapping and changes no content. If it
        // fails, the first access of a page backs it.
        unsafe { libc::madvise(start.cast(), len, MADV_POPULATE_WRITE) };
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn populate(_start: *mut u8, _len: usize) {}
}

/// The page source of all other platforms, and of Miri, which cannot unmap parts of a mapping: the
/// global allocator, aligned.
#[cfg(any(not(unix), miri))]
mod os {
    use super::{Collapse, Fallback, HUGE_PAGE, Mapping, Pages};
    use crate::AllocError;
    use std::alloc::Layout;

    #[allow(clippy::disallowed_methods)] // the page source of platforms without mmap
    pub(super) fn map(len: usize, wanted: Pages) -> Result<Mapping, AllocError> {
        let failed = AllocError::System { requested: len };
        let layout = Layout::from_size_align(len, HUGE_PAGE).map_err(|_| failed)?;
        // SAFETY: `len` is at least one granule, so not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return Err(failed);
        }
        let fallback = (wanted != Pages::Small).then(|| Fallback {
            wanted,
            given: Pages::Small,
            reason: "this platform's page source is the global allocator: use 4k".into(),
        });
        Ok(Mapping { start, len, pages: Pages::Small, fallback })
    }

    #[allow(clippy::disallowed_methods)]
    pub(super) unsafe fn unmap(start: *mut u8, len: usize) {
        // SAFETY: `map` allocated it with this length and alignment.
        unsafe { std::alloc::dealloc(start, Layout::from_size_align_unchecked(len, HUGE_PAGE)) };
    }

    pub(super) unsafe fn protect(_: *mut u8, _: usize, _: bool) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(super) fn page_bytes() -> usize {
        super::HUGE_PAGE
    }

    pub(super) unsafe fn discard(_start: *mut u8, _len: usize) -> bool {
        false
    }

    pub(super) fn advise(_start: *mut u8, _len: usize, _huge: bool) {}

    pub(super) fn collapse(_start: *mut u8, _len: usize) -> Collapse {
        Collapse::Settled
    }

    pub(super) fn populate(_start: *mut u8, _len: usize) {}
}
