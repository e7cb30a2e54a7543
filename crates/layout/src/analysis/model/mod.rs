//! A deterministic model of the caches and translations between one core and memory.
//!
//! # Source
//! The terms, and the effects a model has to show, are those of Arbel-Raviv, Brown and Morrison,
//! USENIX ATC 2018 (sections 3.2 and 3.3), and of Wong et al. on translations. Each machine names
//! the source of its numbers (`presets.rs`).
//!
//! # Algorithm
//! ```text
//! read(line): L1 hit                    -> L1
//!             L2 hit                    -> fill L1
//!             LLC hit                   -> fill L2, L1; prefetch(line ^ 1)
//!             else                      -> fill LLC, L2, L1; prefetch(line ^ 1)
//! prefetch(line): unless L1 or L2 holds it, fill LLC and L2 with it
//! ```
//! An exclusive level is not filled on the way up: a line that hits leaves it, and evictions of the
//! level above fill it. Evictions of an inclusive level also leave the levels above. Each set is in
//! true LRU order. A line's translation is looked up once per read of the line, in both levels of
//! translations. In a model that walks ([`Model::walking`]), a translation in neither level is read
//! from the page table before the line. These reads go entry by entry through the same caches.
//!
//! # Departures from machines
//! 1. Replacement is true LRU. Processors only approximate it, large last levels least.
//! 2. Sets depend on virtual addresses, as described at [`Sets`](crate::Sets).
//! 3. There is one core, and it only reads: no writes and no instructions. Page tables are in the
//!    caches only if the model walks, with the tables at the places that `walk.rs` chooses.
//! 4. The only prefetcher completes pairs of lines, always and at once; there are no streams. Walks
//!    trigger no prefetch.
//!
//! # Invariants
//! M1: a line is at most once in a cache (`Lru`, R2). A level is filled after it missed, or as an
//! exclusive level with a line that was in the level above, and so not here.
//! M2: an inclusive LLC contains the lines of L1 and L2, and an inclusive L2 contains those of L1.
//! The levels are filled from the last to the first, and evict in this order.
//!
//! # Complexity
//! A read costs a scan of a set in each level it reaches, some nanoseconds in L1. The tags take an
//! eighth of the size of the caches. After `new` nothing is allocated.
//!
//! # Checked by
//! `tests.rs` has answers computed by hand for every mechanism. `tests/cachegrind.rs` compares the
//! number of misses with cachegrind's.

mod cache;
#[cfg(target_arch = "x86_64")]
mod cpuid;
mod host;
mod latencies;
mod machine;
mod presets;
#[cfg(test)]
mod tests;
mod tlb;
mod walk;

pub use latencies::Latencies;
pub use machine::{Cache, Entries, Inclusion, Level, Machine, MachineError, Tlb};
pub use tlb::PageSize;

use cache::Lines;
use std::ops::Sub;
use tlb::{Translation, Translations};
use walk::{TABLES, Walker};

/// The caches and translations of a [`Machine`], with their contents.
///
/// ```
/// use silvics_layout::{Level, Machine, Model, PageSize, Reached};
///
/// let mut model = Model::new(&Machine::named("haswell")?)?;
/// assert_eq!(model.read(0x1000, 24, PageSize::Small), Reached::Memory);
/// // The read also fetched the other line of the pair.
/// assert_eq!(model.read(0x1040, 24, PageSize::Small), Reached::Cache(Level::L2));
/// let before = model.counts();
/// assert_eq!(model.read(0x1000, 24, PageSize::Small), Reached::Cache(Level::L1));
/// assert_eq!((model.counts() - before).l1_misses, 0);
/// # Ok::<(), silvics_layout::MachineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    line_bits: u32,
    adjacent_line: bool,
    l1: Lines,
    l2: Lines,
    llc: Lines,
    translations: Translations,
    /// The reader of the page table, in a model that walks.
    walker: Option<Walker>,
    counts: Counts,
}

/// The distance that a read had to go, ordered from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reached {
    /// A cache held the line.
    Cache(Level),
    /// No cache held the line.
    Memory,
}

/// Counts of the events in a model. The difference of two gives the events in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The calls of [`Model::read`].
    pub reads: u64,
    /// The lines that these reads touched; each was translated once.
    pub lines: u64,
    /// The lines that were not in L1.
    pub l1_misses: u64,
    /// The lines that were neither in L1 nor in L2.
    pub l2_misses: u64,
    /// The lines that were in no cache, and so were read from memory.
    pub llc_misses: u64,
    /// The lines brought into L2 because they complete a pair.
    pub prefetched: u64,
    /// The prefetched lines that were read before L2, or the last level if it was filled as well,
    /// evicted them.
    pub prefetched_used: u64,
    /// The translations that were not in the first level.
    pub tlb_misses: u64,
    /// The translations that were in neither level: walks of the page table.
    pub page_walks: u64,
    /// The entries of the page table that walks read, in a model that walks.
    pub table_reads: u64,
    /// The table reads whose line was not in L1.
    pub table_l1_misses: u64,
    /// The table reads whose line was neither in L1 nor in L2.
    pub table_l2_misses: u64,
    /// The table reads whose line was in no cache, and so was read from memory.
    pub table_llc_misses: u64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            lines: self.lines - before.lines,
            l1_misses: self.l1_misses - before.l1_misses,
            l2_misses: self.l2_misses - before.l2_misses,
            llc_misses: self.llc_misses - before.llc_misses,
            prefetched: self.prefetched - before.prefetched,
            prefetched_used: self.prefetched_used - before.prefetched_used,
            tlb_misses: self.tlb_misses - before.tlb_misses,
            page_walks: self.page_walks - before.page_walks,
            table_reads: self.table_reads - before.table_reads,
            table_l1_misses: self.table_l1_misses - before.table_l1_misses,
            table_l2_misses: self.table_l2_misses - before.table_l2_misses,
            table_llc_misses: self.table_llc_misses - before.table_llc_misses,
        }
    }
}

impl Model {
    /// Makes the empty caches of a machine, or reports what is wrong with its geometry.
    pub fn new(machine: &Machine) -> Result<Self, MachineError> {
        machine.check()?;
        Ok(Self {
            line_bits: machine.line.trailing_zeros(),
            adjacent_line: machine.adjacent_line,
            l1: Lines::new(machine, Level::L1),
            l2: Lines::new(machine, Level::L2),
            llc: Lines::new(machine, Level::Llc),
            translations: Translations::new(machine.tlb),
            walker: None,
            counts: Counts::default(),
        })
    }

    /// Makes walks read the page table through the caches.
    #[must_use]
    pub fn walking(self) -> Self {
        Self { walker: Some(Walker::new()), ..self }
    }

    /// Reads `bytes` bytes from `address`, at least one, in memory mapped by pages of size `page`:
    /// each line they span, in order. Returns how far the furthest line was.
    #[inline]
    pub fn read(&mut self, address: usize, bytes: usize, page: PageSize) -> Reached {
        self.counts.reads += 1;
        let last = address.saturating_add(bytes.saturating_sub(1)) >> self.line_bits;
        let mut furthest = Reached::Cache(Level::L1);
        for line in address >> self.line_bits..=last {
            self.counts.lines += 1;
            match self.translations.translate(line << self.line_bits, page) {
                Translation::First => {}
                Translation::Second => self.counts.tlb_misses += 1,
                Translation::Walked => {
                    self.counts.tlb_misses += 1;
                    self.counts.page_walks += 1;
                    self.walk(line << self.line_bits, page);
                }
            }
            if self.l1.hit(line).is_none() {
                let reached = self.miss(line, self.adjacent_line);
                self.counts.l1_misses += 1;
                self.counts.l2_misses += u64::from(reached > Reached::Cache(Level::L2));
                self.counts.llc_misses += u64::from(reached == Reached::Memory);
                furthest = furthest.max(reached);
            }
        }
        furthest
    }

    /// The counts since `new`.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of page table lines in a level.
    pub fn table_lines(&self, level: Level) -> usize {
        let cache = match level {
            Level::L1 => &self.l1,
            Level::L2 => &self.l2,
            Level::Llc => &self.llc,
        };
        cache.lines().filter(|line| *line >= TABLES >> self.line_bits).count()
    }

    /// Reads the entries that a walk needs, in a model that walks.
    fn walk(&mut self, address: usize, page: PageSize) {
        let Some(walker) = &mut self.walker else { return };
        for entry in walker.walk(address, page) {
            self.counts.table_reads += 1;
            let line = entry >> self.line_bits;
            if self.l1.hit(line).is_none() {
                let reached = self.miss(line, false);
                self.counts.table_l1_misses += 1;
                self.counts.table_l2_misses += u64::from(reached > Reached::Cache(Level::L2));
                self.counts.table_llc_misses += u64::from(reached == Reached::Memory);
            }
        }
    }

    /// Brings a line into L1 that is absent there, and if `pair` is set, the other line of its pair
    /// into L2. Returns where the line was.
    fn miss(&mut self, line: usize, pair: bool) -> Reached {
        if let Some(prefetched) = self.l2.find(line) {
            if prefetched {
                self.counts.prefetched_used += 1;
                self.llc.mark(line, false);
            }
            self.fill_l1(line);
            return Reached::Cache(Level::L2);
        }
        let reached = if let Some(prefetched) = self.llc.find(line) {
            self.counts.prefetched_used += u64::from(prefetched);
            Reached::Cache(Level::Llc)
        } else {
            if self.llc.inclusion != Inclusion::Exclusive {
                self.fill_llc(line, false);
            }
            Reached::Memory
        };
        if self.l2.inclusion != Inclusion::Exclusive {
            self.fill_l2(line, false);
        }
        self.fill_l1(line);
        if pair {
            self.prefetch(line ^ 1);
        }
        reached
    }

    /// Brings a line into L2 without a read.
    fn prefetch(&mut self, line: usize) {
        if self.l1.holds(line) || self.l2.holds(line) {
            return;
        }
        self.counts.prefetched += 1;
        let keeps = self.llc.inclusion != Inclusion::Exclusive;
        match self.llc.find(line) {
            // The line is there by an earlier prefetch and has not been read since.
            Some(unused) if keeps => self.llc.mark(line, unused),
            None if keeps => self.fill_llc(line, true),
            _ => {}
        }
        self.fill_l2(line, true);
    }

    fn fill_l1(&mut self, line: usize) {
        if let Some((victim, _)) = self.l1.insert(line, false)
            && self.l2.inclusion == Inclusion::Exclusive
        {
            self.fill_l2(victim, false);
        }
    }

    fn fill_l2(&mut self, line: usize, prefetched: bool) {
        if let Some((victim, unused)) = self.l2.insert(line, prefetched) {
            if self.l2.inclusion == Inclusion::Inclusive {
                self.l1.remove(victim);
            }
            if self.llc.inclusion == Inclusion::Exclusive {
                self.fill_llc(victim, unused);
            }
        }
    }

    fn fill_llc(&mut self, line: usize, prefetched: bool) {
        if let Some((victim, _)) = self.llc.insert(line, prefetched)
            && self.llc.inclusion == Inclusion::Inclusive
        {
            self.l2.remove(victim);
            self.l1.remove(victim);
        }
    }
}
