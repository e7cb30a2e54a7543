//! What reads cost.

use super::{Counts, Level, Reached};

/// Cycles that pass until a read has what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// From the first level,
    pub l1: u64,
    /// the second,
    pub l2: u64,
    /// the last,
    pub llc: u64,
    /// and from memory.
    pub memory: u64,
    /// More, for a translation from the second level of these.
    pub second_tlb: u64,
    /// More, for one that is in neither; in a model that walks, without the reads of the page table.
    pub walk: u64,
}

impl Latencies {
    /// Those of no machine in particular: typical ones, of which a walk is taken as a whole.
    pub const TYPICAL: Self = Self { l1: 5, l2: 14, llc: 50, memory: 250, second_tlb: 7, walk: 30 };

    /// Sandy Bridge at 2.9 GHz, the turbo clock of `i7-2630qm`, for a model that walks. Caches: 7-cpu.com of
    /// Ivy Bridge, which has the same ones (4, 12 and 26 to 34 cycles). A second-level translation: 7
    /// cycles, as Intel's optimization manual has it. Assumptions: 60 ns behind the last level for memory,
    /// and that a walk begins when the second level of translations has been looked at, costs nothing but its
    /// reads, one after the other, and that each of these takes as long as a program's.
    pub const SANDY_BRIDGE: Self =
        Self { l1: 4, l2: 12, llc: 30, memory: 30 + 174, second_tlb: 7, walk: 7 };

    /// Until what was reached is there.
    pub fn of(&self, reached: Reached) -> u64 {
        match reached {
            Reached::Cache(Level::L1) => self.l1,
            Reached::Cache(Level::L2) => self.l2,
            Reached::Cache(Level::Llc) => self.llc,
            Reached::Memory => self.memory,
        }
    }

    /// Until a read has been translated that has made these counts. The translations of its lines are looked
    /// for at once, and what they read of the page table is read one after the other.
    pub fn of_translations(&self, counts: &Counts) -> u64 {
        let Counts { tlb_misses, page_walks, .. } = *counts;
        let Counts { table_reads, table_l1_misses, table_l2_misses, table_llc_misses, .. } =
            *counts;
        match (tlb_misses, page_walks) {
            (0, _) => 0,
            (_, 0) => self.second_tlb,
            _ => {
                self.walk
                    + (table_reads - table_l1_misses) * self.l1
                    + (table_l1_misses - table_l2_misses) * self.l2
                    + (table_l2_misses - table_llc_misses) * self.llc
                    + table_llc_misses * self.memory
            }
        }
    }
}
