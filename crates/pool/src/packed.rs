//! Packs objects of any kinds one behind the other, to use as few pages as possible.
//!
//! # Algorithm
//! A region is mapped for a given number of bytes and filled by bumping a pointer. Each object
//! taken back lowers the region's count, and the last one unmaps the region. Space inside a region
//! is never reused: a user who packs objects together also moves the remaining objects out of old
//! regions.
//!
//! # Invariants
//! * K1: `live[r]` is the number of objects of region r that are handed out, plus one while its
//!   [`Packer`] lives. The region is mapped while `live[r]` is not 0.
//! * K2: `ranges[r]` is not 0 from before the first object of region r is handed out until the last
//!   one has been taken back. It is cleared before the region's addresses are returned to the
//!   system.
//! * K3: the budget contains the pages of a region that may hold its objects: all of its huge
//!   pages, or the small pages of the requested bytes.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `ranges`, `mapped` | store, load | Relaxed | – | a thread that takes an object back received it from the thread that filled the region, after the store. If the system has reused an address since, that happened after the store that clears the word (K2), and the system orders the two |
//! | `live` | increment | Relaxed | – | the packer's own count keeps the region mapped |
//! | `live` | decrement | Release, and Acquire fence at 0 | each other | all accesses to objects come before the unmapping |

use crate::budget::Budget;
use crate::pages::{HUGE_PAGE, Mapping, Pages, Region, SMALL_PAGE};
use crate::{AllocError, Config};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

/// The most regions: the number of words in a cache line.
const REGIONS: usize = 8;
/// The lower bits of a range's word hold the number of its granules, the upper bits that of the
/// first granule.
const LEN_BITS: u32 = 28;

struct Held {
    mapping: Mapping,
    /// The bytes taken from the budget.
    taken: usize,
}

#[derive(Default)]
struct Regions {
    held: [Option<Held>; REGIONS],
    /// Under the model, addresses are not reused, so that a use after the end of an object is
    /// found.
    #[cfg(silvics_shuttle)]
    gone: Vec<Mapping>,
}

/// The words that every free of an index reads. They lie in lines that are written only when a
/// region is mapped or unmapped.
#[repr(align(64))]
struct Ranges {
    of: [AtomicU64; REGIONS],
    /// The number of mapped regions.
    mapped: AtomicUsize,
}

/// Up to eight regions of packed objects.
///
/// A region is unmapped when all its objects have been taken back, or when the `Packed` is dropped.
///
/// ```
/// use silvics_pool::{Config, Packed};
/// use std::alloc::Layout;
///
/// let packed = Packed::new(&Config::default());
/// let mut packer = packed.region(1000)?.expect("fewer than eight regions");
/// let (a, b) = (packer.alloc(Layout::new::<u64>()), packer.alloc(Layout::new::<[u64; 3]>()));
/// let (a, b) = (a.expect("has room"), b.expect("has room"));
/// assert_eq!(a.addr().get() + 8, b.addr().get());
/// drop(packer);
/// // SAFETY: allocated above, used no more.
/// unsafe {
///     packed.take_back(a, 8);
///     packed.take_back(b, 24);
/// }
/// assert_eq!(packed.count(), 0);
/// # Ok::<(), silvics_pool::AllocError>(())
/// ```
pub struct Packed {
    ranges: Ranges,
    live: [AtomicUsize; REGIONS],
    regions: Mutex<Regions>,
    pages: Pages,
    budget: Arc<Budget>,
}

impl Packed {
    /// Makes a `Packed` without regions.
    pub fn new(config: &Config) -> Self {
        Self {
            ranges: Ranges {
                of: std::array::from_fn(|_| AtomicU64::new(0)),
                mapped: AtomicUsize::new(0),
            },
            live: std::array::from_fn(|_| AtomicUsize::new(0)),
            regions: Mutex::default(),
            pages: config.pages,
            budget: Arc::clone(&config.budget),
        }
    }

    /// Maps a region for `bytes` bytes of objects, or returns `None` if there are eight already. On
    /// huge pages a region has whole pages.
    pub fn region(&self, bytes: usize) -> Result<Option<Packer<'_>>, AllocError> {
        let mut regions = self.regions.lock();
        let Some(number) = regions.held.iter().position(Option::is_none) else { return Ok(None) };
        let granules = bytes.div_ceil(HUGE_PAGE).max(1);
        if granules >= 1 << LEN_BITS {
            return Err(AllocError::System { requested: bytes });
        }
        let mapping = Mapping::new(granules, self.pages)?;
        let small = mapping.pages == Pages::Small;
        let taken = if small { bytes.next_multiple_of(SMALL_PAGE) } else { mapping.len() };
        self.budget.take(taken)?; // K3
        if mapping.pages == Pages::Thp {
            mapping.advise(mapping.start(), mapping.len(), true);
        }
        let next = mapping.start();
        #[cfg(silvics_poison)]
        if let Some(all) = NonNull::new(next) {
            // SAFETY: mapped above, and no other thread has it yet.
            unsafe { crate::poison::free(all, taken) };
        }
        self.live[number].store(1, Ordering::Relaxed); // K1: the packer's
        let first = (next.addr() / HUGE_PAGE) as u64;
        self.ranges.of[number].store(first << LEN_BITS | granules as u64, Ordering::Relaxed); // K2
        self.ranges.mapped.fetch_add(1, Ordering::Relaxed);
        regions.held[number] = Some(Held { mapping, taken });
        Ok(Some(Packer { packed: self, number, next, end: next.wrapping_add(taken) }))
    }

    /// The number of the region that contains an address. The answer is right for an object of a
    /// region until that object is taken back.
    #[inline]
    pub fn find(&self, object: NonNull<u8>) -> Option<usize> {
        if self.ranges.mapped.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let granule = (object.addr().get() / HUGE_PAGE) as u64;
        self.ranges.of.iter().position(|range| {
            let range = range.load(Ordering::Relaxed);
            granule.wrapping_sub(range >> LEN_BITS) < range & ((1 << LEN_BITS) - 1)
        })
    }

    /// Takes an object back.
    ///
    /// # Safety
    /// The object came from here with this size, is taken back only once, and nobody uses it any
    /// more.
    pub unsafe fn take_back(&self, object: NonNull<u8>, bytes: usize) {
        #[cfg(silvics_poison)]
        // SAFETY: the caller's promise; K1: the object is mapped.
        unsafe {
            crate::poison::free(object, bytes);
        }
        #[cfg(silvics_shuttle)]
        silvics_sync::model::freed::insert(object.addr().get(), bytes);
        let _ = bytes;
        let number = self.find(object);
        debug_assert!(number.is_some(), "not from here, or taken back before");
        if let Some(number) = number {
            self.lower(number);
        }
    }

    /// The number of mapped regions.
    pub fn count(&self) -> usize {
        self.ranges.mapped.load(Ordering::Relaxed)
    }

    /// The pages that regions request.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// The mapped regions.
    pub fn regions(&self) -> Vec<Region> {
        let regions = self.regions.lock();
        let region = |held: &Held| {
            Some(Region { start: NonNull::new(held.mapping.start())?, bytes: held.mapping.len() })
        };
        regions.held.iter().flatten().filter_map(region).collect()
    }

    /// Lowers the count of a region by one, and unmaps the region at 0.
    fn lower(&self, number: usize) {
        let before = self.live[number].fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "taken back twice");
        if before == 1 {
            fence(Ordering::Acquire);
            self.release(number);
        }
    }

    #[cold]
    fn release(&self, number: usize) {
        let held = {
            let mut regions = self.regions.lock();
            self.ranges.of[number].store(0, Ordering::Relaxed); // K2
            self.ranges.mapped.fetch_sub(1, Ordering::Relaxed);
            regions.held[number].take()
        };
        let Some(Held { mapping, taken }) = held else { return };
        #[cfg(not(silvics_shuttle))]
        drop(mapping);
        #[cfg(silvics_shuttle)]
        self.regions.lock().gone.push(mapping);
        self.budget.give(taken);
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        let taken = |held: &Held| held.taken;
        self.budget.give(self.regions.lock().held.iter().flatten().map(taken).sum());
    }
}

/// Fills a region, and keeps it mapped while it lives.
pub struct Packer<'p> {
    packed: &'p Packed,
    number: usize,
    next: *mut u8,
    end: *mut u8,
}

impl Packer<'_> {
    /// The region's number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Allocates the next bytes of the region, or returns `None` if it is full. They are
    /// uninitialised and belong to the caller alone.
    pub fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let at = self.next.addr().next_multiple_of(layout.align());
        let end = at.checked_add(layout.size()).filter(|&end| end <= self.end.addr())?;
        let object = NonNull::new(self.next.with_addr(at))?;
        #[cfg(silvics_poison)]
        // SAFETY: the region was marked free as a whole, and these bytes are the caller's alone.
        unsafe {
            crate::poison::hand_out(object, layout.size());
        }
        self.next = self.next.with_addr(end);
        self.packed.live[self.number].fetch_add(1, Ordering::Relaxed); // K1
        Some(object)
    }
}

impl Drop for Packer<'_> {
    fn drop(&mut self) {
        self.packed.lower(self.number);
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    fn fill(packer: &mut Packer<'_>, layout: Layout) -> Vec<NonNull<u8>> {
        std::iter::from_fn(|| packer.alloc(layout)).collect()
    }

    #[test]
    fn regions_go_with_their_last_object_and_bytes_are_exact() {
        let config = Config::new(Pages::Small, None);
        let packed = Packed::new(&config);
        let layout = Layout::from_size_align(48, 16).unwrap();
        let mut packer = packed.region(10_000).unwrap().unwrap();
        let objects = fill(&mut packer, layout);
        assert_eq!((objects.len(), config.budget.held()), (3 * 4096 / 48, 3 * 4096));
        assert!(objects.windows(2).all(|two| two[0].addr().get() + 48 == two[1].addr().get()));
        drop(packer);
        assert_eq!(packed.find(NonNull::from(&config).cast()), None);
        for object in objects {
            assert_eq!((packed.regions().len(), packed.find(object)), (1, Some(0)));
            // SAFETY: allocated above, used no more.
            unsafe { packed.take_back(object, 48) };
        }
        assert_eq!((packed.regions().len(), packed.count(), config.budget.held()), (0, 0, 0));
        drop(packed.region(1).unwrap());
        assert_eq!(config.budget.held(), 0, "nothing was put there");
    }

    #[test]
    fn there_are_eight_regions_and_dropping_releases_them() {
        let config = Config::new(Pages::Small, Some(8 * 4096));
        let packed = Packed::new(&config);
        for number in 0..REGIONS {
            let mut packer = packed.region(100).unwrap().unwrap();
            let object = packer.alloc(Layout::new::<u64>()).unwrap();
            assert_eq!((packer.number(), packed.find(object)), (number, Some(number)));
            drop(packer);
            assert_eq!(packed.find(object), Some(number));
        }
        assert!(packed.region(100).unwrap().is_none());
        drop(packed);
        assert_eq!(config.budget.held(), 0);
        let refused = Packed::new(&config);
        assert!(matches!(refused.region(9 * 4096).err(), Some(AllocError::Limit { .. })));
        assert_eq!((refused.regions().len(), config.budget.held()), (0, 0));
    }
}
