//! The memory of an arena: granules that are charged to the budget step by step, and mappings of
//! single large objects.

use super::locked::Bump;
use crate::budget::Budget;
use crate::growth::WHOLE_OF_SIZES;
use crate::pages::{Collapse, Fallback, HUGE_PAGE, Mapping, Pages, Region, SMALL_PAGE};
use crate::{AllocError, Config, Tuning};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Granules are charged as a whole from this one on, so at most a fifth of the bytes of an arena
/// is charged in advance. Earlier granules begin on small pages and move to a huge page when they
/// are full.
const WHOLE_FROM: usize = 4;
/// A larger object gets a mapping of its own if it does not fit into the current granule: it would
/// leave too much of that granule unused.
const OWN_FROM: usize = HUGE_PAGE / 4;
/// The most granules of a mapping of one object: its bytes are then below `isize::MAX`.
const MOST_GRANULES: usize = isize::MAX as usize / HUGE_PAGE - 2;
/// The alignment of a shard's block: no two shards hand out bytes of one line.
const BLOCK_ALIGN: usize = 64;

/// The settings of an arena, and the count of its bytes.
pub(super) struct Source {
    pub(super) pages: Pages,
    tuning: Tuning,
    budget: Arc<Budget>,
    /// The bytes taken from the budget (A3). Written under the main lock.
    held: AtomicUsize,
    /// The most bytes that are charged in one step.
    largest_step: usize,
}

impl Source {
    pub(super) fn new(config: &Config, block_bytes: usize) -> Self {
        let block = block_bytes.clamp(SMALL_PAGE, HUGE_PAGE).next_multiple_of(SMALL_PAGE);
        Self {
            pages: config.pages,
            tuning: config.tuning,
            budget: Arc::clone(&config.budget),
            held: AtomicUsize::new(0),
            largest_step: block,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes `want` bytes from the budget, or `need` if it refuses more. Returns how many.
    fn take(&self, need: usize, want: usize) -> Result<usize, AllocError> {
        let taken = match self.budget.take(want) {
            Ok(()) => want,
            Err(_) => self.budget.take(need).map(|()| need)?,
        };
        self.held.fetch_add(taken, Ordering::Relaxed);
        Ok(taken)
    }

    fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.give(bytes);
    }

    /// Returns all bytes to the budget.
    pub(super) fn give_all(&self) {
        self.give(self.held());
    }
}

/// The granules and counts, which only the owner of the main lock accesses.
pub(super) struct Blocks {
    /// The charged part of the current granule.
    charged: Bump,
    /// The address of the end of the current granule.
    granule_end: usize,
    /// The next granule of the last mapping, and how many are left there.
    spare: *mut u8,
    spares: usize,
    granules: usize,
    /// The bytes that are charged next.
    step: usize,
    /// Whether the current granule was charged as a whole.
    whole: bool,
    mappings: Vec<Mapping>,
    /// The mappings of single objects.
    own: Vec<Mapping>,
    /// Full granules that have yet to be moved to huge pages.
    small: Vec<NonNull<u8>>,
    /// The bytes handed out from here, with their padding. Those of shards count there.
    pub(super) used: usize,
    pub(super) allocations: u64,
    pub(super) locks: u64,
    pub(super) unsharded_locks: u64,
    pub(super) contended: u64,
}

// SAFETY: the pointers are addresses of granules that the mappings own.
unsafe impl Send for Blocks {}

impl Blocks {
    /// Starts with nothing mapped.
    pub(super) const fn new() -> Self {
        Self {
            charged: Bump::EMPTY,
            granule_end: 0,
            spare: null_mut(),
            spares: 0,
            granules: 0,
            step: SMALL_PAGE,
            whole: false,
            mappings: Vec::new(),
            own: Vec::new(),
            small: Vec::new(),
            used: 0,
            allocations: 0,
            locks: 0,
            unsharded_locks: 0,
            contended: 0,
        }
    }

    /// Allocates an object, and counts it.
    #[inline]
    pub(super) fn alloc(
        &mut self,
        source: &Source,
        layout: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        let object = match self.cut(layout) {
            Some(object) => object,
            None => self.grow(source, layout)?,
        };
        self.allocations += 1;
        Ok(object)
    }

    /// Allocates bytes that are not counted as handed out. They are marked free.
    pub(super) fn block(&mut self, source: &Source, bytes: usize) -> Result<Bump, AllocError> {
        // The rest of a granule is not left unused if it makes a block that is not much smaller.
        let left = self.granule_end - self.charged.next().addr().next_multiple_of(BLOCK_ALIGN);
        let bytes = if left >= bytes / 4 { bytes.min(left & !(BLOCK_ALIGN - 1)) } else { bytes };
        let failed = AllocError::System { requested: bytes };
        let layout = Layout::from_size_align(bytes, BLOCK_ALIGN).map_err(|_| failed)?;
        let start = self.reserve(source, layout)?;
        #[cfg(silvics_poison)]
        // SAFETY: allocated now, so the bytes are this arena's alone.
        unsafe {
            crate::poison::free(start, bytes);
        }
        Ok(Bump::new(start.as_ptr(), bytes))
    }

    /// Allocates memory of the arena's own, which counts neither as handed out nor as an object.
    pub(super) fn reserve(
        &mut self,
        source: &Source,
        layout: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        let used = self.used;
        let result = match self.cut(layout) {
            Some(start) => Ok(start),
            None => self.grow(source, layout),
        };
        self.used = used;
        result
    }

    #[inline(always)]
    fn cut(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let before = self.charged.next().addr();
        let object = self.charged.alloc(layout)?;
        self.used += self.charged.next().addr() - before;
        Some(object)
    }

    /// Charges more bytes, and allocates the object. An error changes nothing.
    #[cold]
    fn grow(&mut self, source: &Source, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match self.charged.place(layout) {
            Some((_, end)) if end <= self.granule_end => self.charge(source, end)?,
            // A layout's size and padding together are below `isize::MAX`.
            _ if layout.size() + (layout.align() - 1) > OWN_FROM => {
                return self.own(source, layout);
            }
            _ => self.next_granule(source, layout.size())?,
        }
        self.cut(layout).ok_or(AllocError::System { requested: layout.size() })
    }

    /// Charges the current granule up to the address `end` at least.
    fn charge(&mut self, source: &Source, end: usize) -> Result<(), AllocError> {
        let from = self.charged.end();
        let need = (end - from.addr()).next_multiple_of(SMALL_PAGE);
        let want = self.step.clamp(need, self.granule_end - from.addr());
        let taken = source.take(need, want)?;
        self.step = (self.step * 2).min(source.largest_step);
        poison(from, taken);
        self.charged.extend(taken);
        Ok(())
    }

    /// Moves on to a new granule, of which `bytes` bytes at least are charged.
    fn next_granule(&mut self, source: &Source, bytes: usize) -> Result<(), AllocError> {
        let failed = AllocError::System { requested: HUGE_PAGE };
        self.small.try_reserve(1).map_err(|_| failed)?;
        let fresh = if self.spares == 0 { Some(self.map(source)?) } else { None };
        let mapping = fresh.as_ref().or(self.mappings.last()).ok_or(failed)?;
        let granule = fresh.as_ref().map_or(self.spare, Mapping::start);

        let need = bytes.next_multiple_of(SMALL_PAGE);
        let step = self.step.max(need);
        let taken = match mapping.pages {
            Pages::Small => source.take(need, step)?,
            Pages::HugeTlb => source.take(HUGE_PAGE, HUGE_PAGE)?,
            Pages::Thp if self.granules < WHOLE_FROM => source.take(need, step)?,
            Pages::Thp if source.budget.left() < WHOLE_OF_SIZES => source.take(need, step)?,
            Pages::Thp => source.take(need, HUGE_PAGE)?,
        };
        let whole = taken == HUGE_PAGE;
        if mapping.pages == Pages::Thp {
            mapping.advise(granule, HUGE_PAGE, whole);
        }
        if whole {
            // SAFETY: the first byte of a granule that no thread has yet. Backing the page now
            // saves that several threads zero a huge page at once, all but one in vain.
            unsafe { granule.write_volatile(0) };
        }
        poison(granule, taken);

        self.collapse();
        self.step = (self.step * 2).min(source.largest_step);
        if let Some(mapping) = fresh {
            self.spares = mapping.len() / HUGE_PAGE;
            self.mappings.push(mapping); // `map` reserved the capacity
        }
        self.spares -= 1;
        self.spare = granule.wrapping_add(HUGE_PAGE);
        self.charged = Bump::new(granule, taken);
        self.granule_end = granule.addr() + HUGE_PAGE;
        self.whole = whole;
        self.granules += 1;
        Ok(())
    }

    /// Maps as many granules as there are already, so that mappings stay few, and reserves capacity
    /// to store the mapping.
    fn map(&mut self, source: &Source) -> Result<Mapping, AllocError> {
        let granules = match source.pages {
            Pages::HugeTlb => 1, // backed as soon as it is mapped
            _ => source.tuning.region_granules(self.granules),
        };
        let failed = AllocError::System { requested: granules * HUGE_PAGE };
        self.mappings.try_reserve(1).map_err(|_| failed)?;
        Mapping::new(granules, source.pages)
    }

    /// Moves the current granule to a huge page if it began on small ones and all of it is charged.
    /// Granules that the kernel refuses at this moment wait for the next call.
    fn collapse(&mut self) {
        let full = self.charged.end().addr() == self.granule_end;
        let mapping = self.mappings.last(); // the current granule is in the last mapping
        if full && !self.whole && mapping.is_some_and(|mapping| mapping.pages == Pages::Thp) {
            let granule = self.charged.end().wrapping_sub(HUGE_PAGE);
            self.small.extend(NonNull::new(granule)); // `next_granule` reserved the capacity
        }
        let mappings = &self.mappings;
        self.small.retain(|granule| {
            let owner = mappings.iter().rev().find(|mapping| mapping.contains(granule.as_ptr()));
            owner.is_some_and(|m| m.collapse(granule.as_ptr(), HUGE_PAGE) == Collapse::Later)
        });
    }

    /// Allocates an object in a mapping of its own: on huge pages as far as it fills them, and else
    /// on small ones.
    fn own(&mut self, source: &Source, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        let failed = AllocError::System { requested: layout.size() };
        // A mapping is aligned to a granule.
        let slack = layout.align().saturating_sub(HUGE_PAGE);
        let granules = (layout.size() + slack).div_ceil(HUGE_PAGE);
        if granules > MOST_GRANULES {
            return Err(failed);
        }
        self.own.try_reserve(1).map_err(|_| failed)?;
        let charge = layout.size().next_multiple_of(SMALL_PAGE);
        source.take(charge, charge)?;
        let mapping = Mapping::new(granules, source.pages).inspect_err(|_| source.give(charge))?;
        let rest = mapping.len() - charge;
        if mapping.pages == Pages::HugeTlb && rest > 0 {
            source.take(rest, rest).inspect_err(|_| source.give(charge))?;
        }
        let mask = layout.align() - 1;
        let at = mapping.start().map_addr(|start| (start + mask) & !mask);
        let object = NonNull::new(at).ok_or(failed)?;
        if mapping.pages == Pages::Thp {
            let huge = charge - charge % HUGE_PAGE;
            for (from, bytes) in [(0, huge), (huge, charge - huge)] {
                if bytes > 0 {
                    mapping.advise(at.wrapping_add(from), bytes, from < huge);
                }
            }
        }
        poison(at, charge);
        #[cfg(silvics_poison)]
        // SAFETY: marked free now, and no other thread has it.
        unsafe {
            crate::poison::hand_out(object, layout.size());
        }
        self.own.push(mapping); // the capacity is reserved
        self.used += layout.size();
        Ok(object)
    }

    /// The mapped regions.
    pub(super) fn regions(&self) -> Vec<Region> {
        let region = |mapping: &Mapping| {
            Some(Region { start: NonNull::new(mapping.start())?, bytes: mapping.len() })
        };
        self.mappings.iter().chain(&self.own).filter_map(region).collect()
    }

    /// The pages that the system gave, if anything is mapped, and why it gave others than wanted.
    pub(super) fn pages(&self) -> Option<(Pages, Option<Fallback>)> {
        let last = self.mappings.last().or(self.own.last())?;
        let fallback = self.mappings.iter().chain(&self.own).find_map(|m| m.fallback.clone());
        Some((last.pages, fallback))
    }

    /// Unmaps everything. No byte of the arena is in use any more.
    pub(super) fn unmap(&mut self) {
        self.charged = Bump::EMPTY;
        self.granule_end = 0;
        self.spares = 0;
        self.mappings.clear();
        self.own.clear();
    }
}

/// Marks memory free that was charged now, and that no thread has.
#[cfg_attr(not(silvics_poison), inline(always))]
fn poison(start: *mut u8, bytes: usize) {
    #[cfg(silvics_poison)]
    if let Some(start) = NonNull::new(start) {
        // SAFETY: the caller has mapped it, and A1: no thread has it.
        unsafe { crate::poison::free(start, bytes) };
    }
    #[cfg(not(silvics_poison))]
    let _ = (start, bytes);
}
