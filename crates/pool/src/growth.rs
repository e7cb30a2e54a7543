//! Where a core's slabs come from: regions, mapped one after the other, and their granules.

use crate::budget::Budget;
use crate::pages::{Collapse, Fallback, HUGE_PAGE, Mapping, Pages, Region, SMALL_PAGE};
use crate::{AllocError, Config, Tuning};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// A core's first granules grow slab by slab on small pages, and move to huge ones when full: a
/// hundred small pools must not take a huge page each. As moving costs as much as many objects, granules are
/// backed as a whole at once from this one on …
const WHOLE_FROM: usize = 4;
/// … if a granule is no more than 3 % of what the budget holds, so that each pool adds at most that to it, and of what its
/// limit leaves, so that pools with half-empty granules do not keep the others from much of it.
const WHOLE_OF: usize = 32 * HUGE_PAGE;

/// The regions of a core. Under a lock.
pub(crate) struct Growth {
    mappings: Vec<Mapping>,
    /// Granules of the last mapping already in use.
    used: usize,
    /// The granule slabs are opened in, and its next free slab.
    granule: *mut u8,
    next_slab: usize,
    /// Whether `granule` is in the budget as a whole.
    whole: bool,
    granules: usize,
    /// Closed slabs, none of whose bytes is in the budget: their granules and numbers, sorted.
    closed: Vec<(*mut u8, usize)>,
    /// Bytes of a granule's first slab that stay when it is closed.
    header: usize,
    /// Full granules still to be moved to huge pages.
    small: Vec<NonNull<u8>>,
    /// Bytes of the budget in regions (C4 of `core.rs`).
    taken: usize,
    slab_bytes: usize,
    pages: Pages,
    tuning: Tuning,
    budget: Arc<Budget>,
}

// SAFETY: addresses of granules the mappings own.
unsafe impl Send for Growth {}

impl Growth {
    /// Nothing mapped yet; slabs of `slab_bytes`, the first of which has a header.
    pub(crate) fn new(slab_bytes: usize, header: usize, config: &Config) -> Self {
        Self {
            mappings: Vec::new(),
            used: 0,
            granule: null_mut(),
            next_slab: HUGE_PAGE / slab_bytes,
            whole: false,
            granules: 0,
            closed: Vec::new(),
            header: header.next_multiple_of(SMALL_PAGE),
            small: Vec::new(),
            taken: 0,
            slab_bytes,
            pages: config.pages,
            tuning: config.tuning,
            budget: Arc::clone(&config.budget),
        }
    }

    /// The next slab, in the budget: its granule and its number there. One that was closed, if there is one.
    pub(crate) fn slab(&mut self) -> Result<(*mut u8, usize), AllocError> {
        if let Some(&(granule, index)) = self.closed.last() {
            match self.reopen(granule, index) {
                Ok(()) => return Ok((granule, index)),
                // One that is in the budget already needs no more.
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

    /// Whether the system takes slabs back.
    pub(crate) fn gives_back(&self) -> bool {
        self.mappings.iter().any(|mapping| mapping.gives_back(self.slab_bytes))
    }

    /// What goes when a slab is closed: where it begins in its granule, and its bytes.
    fn contents(&self, index: usize) -> (usize, usize) {
        let kept = if index == 0 { self.header } else { 0 };
        (index * self.slab_bytes + kept, self.slab_bytes - kept)
    }

    /// Tells the system that what is in a slab is not needed. The bytes that it takes back; nothing if it does not, as of
    /// pages that are reserved or locked.
    ///
    /// A huge page of which it is a part is one no more, and is to become none: the kernel would fill the gap.
    ///
    /// # Safety
    /// Nobody uses the slab's slots, or a bitmap in front of them. It is zeros afterwards, but for the rest of the header's page.
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

    /// Takes a discarded slab in, to be sorted.
    pub(crate) fn closed(&mut self, granule: *mut u8, index: usize) {
        self.closed.push((granule, index)); // `discard` has reserved the room
    }

    /// So that of closed slabs those of one granule are opened before others.
    pub(crate) fn sort_closed(&mut self) {
        self.closed.sort_unstable();
    }

    /// Takes the last closed slab back.
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

    /// Moves on to a fresh granule: the next of the last mapping, or the first of a new one.
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
                    || self.budget.held() < WHOLE_OF
                    || self.budget.left() < WHOLE_OF;
                !small && self.budget.take(HUGE_PAGE).is_ok()
            }
            Pages::HugeTlb => self.budget.take(HUGE_PAGE).map(|()| true)?,
        };
        if mapping.pages == Pages::Thp {
            mapping.advise(granule, HUGE_PAGE, whole);
        }
        if whole {
            // While a huge page is zeroed, others that touch it would zero one each, for nothing. Who opens slabs
            // of several sizes could, so it is here before anybody has a slab of it. If the system has no
            // huge page at this moment, moving the granule is left to it.
            // SAFETY: the first byte of a granule that nobody has yet.
            unsafe { granule.write_volatile(0) };
        }
        self.collapse();
        self.mappings.extend(fresh); // `map` has reserved the room
        self.taken += if whole { HUGE_PAGE } else { 0 };
        self.used = used + 1;
        self.granule = granule;
        self.next_slab = 0; // with what the header leaves of it
        self.whole = whole;
        self.granules += 1;
        Ok(())
    }

    /// Maps more granules, as many as there are, so that mappings are few; makes room to keep it.
    fn map(&mut self) -> Result<Mapping, AllocError> {
        let granules = match self.pages {
            Pages::HugeTlb => 1, // backed as soon as it is mapped
            _ => self.tuning.region_granules(self.granules),
        };
        let failed = AllocError::System { requested: granules * HUGE_PAGE };
        self.mappings.try_reserve(1).map_err(|_| failed)?;
        Mapping::new(granules, self.pages)
    }

    /// Moves the granule, full now, to a huge page if it began on small ones. The budget has all
    /// its slabs, and with them all of it.
    ///
    /// The kernel cannot while another thread touches a page for the first time, as threads do in
    /// slabs they opened before: such granules wait for the next time.
    fn collapse(&mut self) {
        let last = self.mappings.iter().rev().find(|m| m.contains(self.granule));
        let thp = last.is_some_and(|m| m.pages == Pages::Thp);
        if thp && !self.whole && !self.has_closed(self.granule) {
            self.small.extend(NonNull::new(self.granule)); // `next_granule` has reserved the room
        }
        let mappings = &self.mappings;
        self.small.retain(|granule| {
            let owner = mappings.iter().find(|m| m.contains(granule.as_ptr()));
            owner.is_some_and(|m| m.collapse(granule.as_ptr(), HUGE_PAGE) == Collapse::Later)
        });
    }

    /// Bytes of the budget in regions.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// The granules in use: all in which slabs may have been opened.
    pub(crate) fn granules(&self) -> impl Iterator<Item = *mut u8> {
        let mapped = self.mappings.iter().flat_map(|mapping| {
            (0..mapping.len()).step_by(HUGE_PAGE).map(|at| mapping.start().wrapping_add(at))
        });
        mapped.take(self.granules) // only the last mapping has others
    }

    /// The mapped regions, the pages they are on, and why they are not the wanted ones.
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

    /// What the budget holds more with each slab of a granule: SLAB, or all with the first.
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
        let mut one = Growth::new(SLAB, 0, &config);
        for n in 0..WHOLE_OF / HUGE_PAGE {
            assert!(by_slabs(&granule(&mut one, &budget)), "granule {n} of a small budget");
        }
        // Nothing is whole where the system has no transparent huge pages.
        let thp = one.regions().1 == Pages::Thp;
        assert_eq!(at_once(&granule(&mut one, &budget)), thp);
        let mut other = Growth::new(SLAB, 0, &config);
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
        let mut growth = Growth::new(SLAB, 0, &config);
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
