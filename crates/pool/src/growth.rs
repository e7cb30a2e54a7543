//! The source of a core's slabs: regions, mapped one after the other, and their granules.

use crate::budget::Budget;
use crate::pages::{Collapse, Fallback, HUGE_PAGE, Mapping, Pages, Region, SMALL_PAGE};
use crate::{AllocError, Config, Tuning};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Granules of a core are backed as a whole from this one on.
///
/// Earlier granules grow slab by slab on small pages, and move to huge pages when full: a hundred
/// small pools must not take a huge page each. Moving costs as much as many objects, so later
/// granules start on huge pages.
const WHOLE_FROM: usize = 4;
/// A granule is backed as a whole only if the budget holds at least this many bytes and has this
/// many left.
///
/// A granule is then at most 3 % of the held bytes, so each pool adds at most that much. It is also
/// at most 3 % of the rest of the limit, so half-empty granules do not keep much of it from other
/// pools.
pub(crate) const WHOLE_OF: usize = 32 * HUGE_PAGE;
/// As [`WHOLE_OF`], for a pool of objects of many sizes.
///
/// Its last granule is up to a quarter of what the budget holds, and 2 MiB at most. Such a pool has
/// half-empty slabs for each size anyway. A granule that begins on small pages and moves later
/// takes memory from the system twice. A load of a million random integers took 235 ns for each
/// with this constant and 248 with [`WHOLE_OF`] in its place (medians of seven turns, busy host).
pub(crate) const WHOLE_OF_SIZES: usize = 4 * HUGE_PAGE;

/// Before a core looks for idle slabs again, slots of one part in this many of its regions are
/// marked free, and of at least [`GATHER_FROM`] slabs.
const GATHER_PART: usize = 16;
const GATHER_FROM: usize = 4;

/// The regions of a core. The core keeps it under a lock.
pub(crate) struct Growth {
    mappings: Vec<Mapping>,
    /// The number of granules of the last mapping that are in use.
    used: usize,
    /// The granule in which slabs are opened.
    granule: *mut u8,
    /// The next unopened slab of `granule`.
    next_slab: usize,
    /// Whether `granule` is in the budget as a whole.
    whole: bool,
    granules: usize,
    /// The closed slabs as (granule, number), sorted. None of their bytes is in the budget.
    closed: Vec<(*mut u8, usize)>,
    /// The slabs that any class may open again: (granule, number). Their bytes are in the budget.
    idle: Vec<(*mut u8, usize)>,
    /// The bytes of a granule's first slab that stay when it is closed.
    header: usize,
    /// Full granules that have yet to be moved to huge pages.
    small: Vec<NonNull<u8>>,
    /// The bytes of the budget that are in regions (C4 of `core.rs`).
    taken: usize,
    slab_bytes: usize,
    /// See [`WHOLE_OF`].
    whole_of: usize,
    pages: Pages,
    tuning: Tuning,
    budget: Arc<Budget>,
}

// SAFETY: the pointers are addresses of granules that the mappings own.
unsafe impl Send for Growth {}

impl Growth {
    /// Starts with nothing mapped. Slabs have `slab_bytes`, and the first slab of a granule has a
    /// header. Granules are backed as a whole if the budget holds `whole_of` bytes.
    pub(crate) fn new(slab_bytes: usize, header: usize, whole_of: usize, config: &Config) -> Self {
        Self {
            mappings: Vec::new(),
            used: 0,
            granule: null_mut(),
            next_slab: HUGE_PAGE / slab_bytes,
            whole: false,
            granules: 0,
            closed: Vec::new(),
            idle: Vec::new(),
            header: header.next_multiple_of(SMALL_PAGE),
            small: Vec::new(),
            taken: 0,
            slab_bytes,
            whole_of,
            pages: config.pages,
            tuning: config.tuning,
            budget: Arc::clone(&config.budget),
        }
    }

    /// Whether there are granules and the next slab needs another one.
    pub(crate) fn is_used_up(&self) -> bool {
        let is_full = self.next_slab == HUGE_PAGE / self.slab_bytes;
        self.granules > 0 && is_full && self.closed.is_empty() && self.idle.is_empty()
    }

    /// Whether it is time to look for idle slabs before a slab is opened, as slots of these bytes
    /// were marked free since the last search. A search looks at all slabs with freed slots, so one
    /// part in [`GATHER_PART`] of the regions must be marked before it is worthwhile.
    pub(crate) fn is_time_to_gather(&self, marked: usize) -> bool {
        let least = (self.taken / GATHER_PART).max(GATHER_FROM * self.slab_bytes);
        marked >= least && self.idle.is_empty() && self.closed.is_empty()
    }

    /// Whether there are idle slabs.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Keeps a slab for any class.
    pub(crate) fn keep(&mut self, granule: *mut u8, index: usize) {
        self.idle.push((granule, index)); // `reserve_idle` reserved the capacity
    }

    /// Reserves memory to note one more idle slab.
    pub(crate) fn reserve_idle(&mut self) -> bool {
        self.idle.try_reserve(1).is_ok()
    }

    /// Takes the next slab, an idle or closed one if there is one, and its bytes from the budget.
    /// Returns its granule and its number there.
    pub(crate) fn slab(&mut self) -> Result<(*mut u8, usize), AllocError> {
        if let Some(idle) = self.idle.pop() {
            return Ok(idle);
        }
        if let Some(&(granule, index)) = self.closed.last() {
            match self.reopen(granule, index) {
                Ok(()) => return Ok((granule, index)),
                // The current granule is in the budget already, so its next slab needs no bytes.
                Err(_) if self.whole && self.next_slab < HUGE_PAGE / self.slab_bytes => {}
                Err(error) => return Err(error),
            }
        }
        if self.next_slab == HUGE_PAGE / self.slab_bytes {
            self.next_granule()?;
        }
        if !self.whole {
            self.budget.take(self.slab_bytes)?;
            self.taken += self.slab_bytes;
        }
        self.next_slab += 1;
        Ok((self.granule, self.next_slab - 1))
    }

    /// Whether the system takes single slabs back.
    pub(crate) fn gives_back(&self) -> bool {
        self.mappings.iter().any(|mapping| mapping.gives_back(self.slab_bytes))
    }

    /// The part of a slab that is discarded when it is closed: its offset in the granule, and its
    /// bytes.
    fn contents(&self, index: usize) -> (usize, usize) {
        let kept = if index == 0 { self.header } else { 0 };
        (index * self.slab_bytes + kept, self.slab_bytes - kept)
    }

    /// Returns the pages of a slab to the system, and the number of bytes. Returns `None` if the
    /// system refuses, as it does for reserved or locked pages.
    ///
    /// A huge page that contains the slab is split. It must not become huge again, as the kernel
    /// would then fill the gap.
    ///
    /// # Safety
    /// Nobody uses the slab's slots, or a bitmap in front of them. Afterwards the slab is zero,
    /// except for the rest of the header's page.
    pub(crate) unsafe fn discard(&mut self, granule: *mut u8, index: usize) -> Option<usize> {
        self.closed.try_reserve(1).ok()?;
        let mapping = self.mappings.iter().find(|mapping| mapping.contains(granule))?;
        let (start, bytes) = self.contents(index);
        if mapping.pages == Pages::Thp {
            mapping.advise(granule, HUGE_PAGE, false);
        }
        // SAFETY: the caller's promise.
        if !unsafe { mapping.discard(granule.wrapping_add(start), bytes) } {
            return None;
        }
        self.small.retain(|small| small.as_ptr() != granule);
        self.taken -= bytes;
        self.budget.give(bytes);
        Some(bytes)
    }

    /// Returns the pages of the idle slabs to the system, and the number of bytes.
    pub(crate) fn discard_idle(&mut self) -> usize {
        let (mut given, mut kept) = (0, 0);
        while let Some(&(granule, index)) = self.idle.get(kept) {
            // SAFETY: the slab is closed, so nobody uses its slots.
            match unsafe { self.discard(granule, index) } {
                Some(bytes) => {
                    given += bytes;
                    self.idle.swap_remove(kept);
                    self.closed(granule, index);
                }
                None => kept += 1, // the system kept the pages
            }
        }
        self.sort_closed();
        given
    }

    /// Adds a discarded slab to the closed ones. The caller sorts them afterwards.
    pub(crate) fn closed(&mut self, granule: *mut u8, index: usize) {
        self.closed.push((granule, index)); // `discard` reserved the capacity
    }

    /// Sorts the closed slabs, so that those of one granule are reopened together.
    pub(crate) fn sort_closed(&mut self) {
        self.closed.sort_unstable();
    }

    /// Takes the last closed slab into use again.
    fn reopen(&mut self, granule: *mut u8, index: usize) -> Result<(), AllocError> {
        let (_, bytes) = self.contents(index);
        self.budget.take(bytes)?;
        self.taken += bytes;
        self.closed.pop();
        let is_full = granule != self.granule && !self.has_closed(granule);
        let mapping = self.mappings.iter().find(|mapping| mapping.contains(granule));
        if is_full
            && mapping.is_some_and(|mapping| mapping.pages == Pages::Thp)
            && self.small.try_reserve(2).is_ok()
        {
            self.small.extend(NonNull::new(granule));
        }
        Ok(())
    }

    fn has_closed(&self, granule: *mut u8) -> bool {
        let at = self.closed.partition_point(|&closed| closed < (granule, 0));
        self.closed.get(at).is_some_and(|closed| closed.0 == granule)
    }

    /// Moves on to a new granule: the next one of the last mapping, or the first of a new mapping.
    fn next_granule(&mut self) -> Result<(), AllocError> {
        let failed = AllocError::System { requested: HUGE_PAGE };
        self.small.try_reserve(1).map_err(|_| failed)?;
        let left = self.mappings.last().is_some_and(|m| self.used < m.len() / HUGE_PAGE);
        let fresh = if left { None } else { Some(self.map()?) };
        let used = if left { self.used } else { 0 };
        let mapping = fresh.as_ref().or(self.mappings.last()).expect("one of the two");
        let granule = mapping.start().wrapping_add(used * HUGE_PAGE);
        let whole = match mapping.pages {
            Pages::Small => false,
            Pages::Thp => {
                let small = self.granules < WHOLE_FROM
                    || self.budget.held() < self.whole_of
                    || self.budget.left() < self.whole_of;
                !small && self.budget.take(HUGE_PAGE).is_ok()
            }
            Pages::HugeTlb => self.budget.take(HUGE_PAGE).map(|()| true)?,
        };
        if mapping.pages == Pages::Thp {
            mapping.advise(granule, HUGE_PAGE, whole);
        }
        if whole {
            // Back the page now, before any thread has a slab of it. Otherwise threads that open
            // slabs of several sizes would touch it at once and each zero a huge page, all but one
            // in vain. If the system has no huge page at this moment, it moves the granule later.
            // SAFETY: the first byte of a granule that no thread has yet.
            unsafe { granule.write_volatile(0) };
        }
        self.collapse();
        self.mappings.extend(fresh); // `map` reserved the capacity
        self.taken += if whole { HUGE_PAGE } else { 0 };
        self.used = used + 1;
        self.granule = granule;
        self.next_slab = 0; // its slots begin after the header
        self.whole = whole;
        self.granules += 1;
        Ok(())
    }

    /// Maps as many granules as the core already has, so that mappings stay few, and reserves
    /// capacity to store the mapping.
    fn map(&mut self) -> Result<Mapping, AllocError> {
        let granules = match self.pages {
            Pages::HugeTlb => 1, // backed as soon as it is mapped
            _ => self.tuning.region_granules(self.granules),
        };
        let failed = AllocError::System { requested: granules * HUGE_PAGE };
        self.mappings.try_reserve(1).map_err(|_| failed)?;
        Mapping::new(granules, self.pages)
    }

    /// Moves the granule, which is full now, to a huge page if it began on small ones. The budget
    /// contains all its slabs, and so the whole granule.
    ///
    /// The kernel refuses while another thread touches a page for the first time, as threads do in
    /// slabs opened before. Such granules wait for the next call.
    fn collapse(&mut self) {
        let last = self.mappings.iter().rev().find(|m| m.contains(self.granule));
        let thp = last.is_some_and(|m| m.pages == Pages::Thp);
        if thp && !self.whole && !self.has_closed(self.granule) {
            self.small.extend(NonNull::new(self.granule)); // `next_granule` reserved the capacity
        }
        let mappings = &self.mappings;
        self.small.retain(|granule| {
            let owner = mappings.iter().find(|m| m.contains(granule.as_ptr()));
            owner.is_some_and(|m| m.collapse(granule.as_ptr(), HUGE_PAGE) == Collapse::Later)
        });
    }

    /// The bytes of the budget that are in regions.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// The granules in use: all those in which slabs may have been opened.
    pub(crate) fn granules(&self) -> impl Iterator<Item = *mut u8> {
        let mapped = self.mappings.iter().flat_map(|mapping| {
            (0..mapping.len()).step_by(HUGE_PAGE).map(|at| mapping.start().wrapping_add(at))
        });
        mapped.take(self.granules) // only the last mapping has unused ones
    }

    /// The mapped regions, the pages they are on, and why these are not the requested ones.
    pub(crate) fn regions(&self) -> (Vec<Region>, Pages, Option<Fallback>) {
        let regions = self
            .mappings
            .iter()
            .filter_map(|m| Some(Region { start: NonNull::new(m.start())?, bytes: m.len() }));
        let last = self.mappings.last();
        (
            regions.collect(),
            last.map_or(self.pages, |m| m.pages),
            self.mappings.iter().find_map(|m| m.fallback.clone()),
        )
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    const SLAB: usize = 64 << 10;

    /// By how much each slab of a granule raises the budget: SLAB each, or all with the first.
    fn granule(growth: &mut Growth, budget: &Budget) -> Vec<usize> {
        let more = |_| {
            let before = budget.held();
            growth.slab().map(|_| budget.held() - before).expect("within the limit")
        };
        (0..HUGE_PAGE / SLAB).map(more).collect()
    }

    fn by_slabs(of: &[usize]) -> bool {
        of.iter().all(|more| *more == SLAB)
    }

    fn at_once(of: &[usize]) -> bool {
        of[0] == HUGE_PAGE && of[1..].iter().all(|more| *more == 0)
    }

    #[test]
    fn granules_are_whole_when_pool_and_budget_are_large() {
        let config = Config::new(Pages::Thp, None);
        let budget = Arc::clone(&config.budget);
        let mut one = Growth::new(SLAB, 0, WHOLE_OF, &config);
        for n in 0..WHOLE_OF / HUGE_PAGE {
            assert!(by_slabs(&granule(&mut one, &budget)), "granule {n} of a small budget");
        }
        // Nothing is whole where the system has no transparent huge pages.
        let thp = one.regions().1 == Pages::Thp;
        assert_eq!(at_once(&granule(&mut one, &budget)), thp);
        let mut other = Growth::new(SLAB, 0, WHOLE_OF, &config);
        for n in 0..WHOLE_FROM {
            assert!(by_slabs(&granule(&mut other, &budget)), "granule {n} of a small pool");
        }
        assert_eq!(at_once(&granule(&mut other, &budget)), thp);
        assert_eq!(one.taken() + other.taken(), budget.held());
    }

    #[test]
    fn a_limit_is_used_slab_by_slab_as_it_comes_near() {
        let limit = 2 * WHOLE_OF + HUGE_PAGE + 3 * SLAB;
        let config = Config::new(Pages::Thp, Some(limit));
        let mut growth = Growth::new(SLAB, 0, WHOLE_OF, &config);
        (0..WHOLE_OF / HUGE_PAGE).for_each(|_| drop(granule(&mut growth, &config.budget)));
        let thp = growth.regions().1 == Pages::Thp;
        for _ in 0..2 {
            assert_eq!(at_once(&granule(&mut growth, &config.budget)), thp);
        }
        while config.budget.left() > 0 {
            let before = config.budget.left();
            assert!(growth.slab().is_ok());
            assert_eq!(config.budget.left(), before - SLAB);
        }
        let refused = growth.slab();
        assert_eq!(refused, Err(AllocError::Limit { requested: SLAB, held: limit, limit }));
        assert_eq!(growth.taken(), limit);
    }
}
