//! The costs of reads.

use super::{Counts, Level, Reached};

/// The latencies of a machine, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// The latency of a read from the first level.
    pub l1: u64,
    /// The latency of a read from the second level.
    pub l2: u64,
    /// The latency of a read from the last level.
    pub llc: u64,
    /// The latency of a read from memory.
    pub memory: u64,
    /// The additional latency of a translation from the second level of translations.
    pub second_tlb: u64,
    /// The additional latency of a translation in neither level. In a model that walks, it excludes
    /// the reads of the page table.
    pub walk: u64,
}

impl Latencies {
    /// Typical latencies, of no particular machine. `walk` covers a whole walk.
    pub const TYPICAL: Self = Self { l1: 5, l2: 14, llc: 50, memory: 250, second_tlb: 7, walk: 30 };

    /// Sandy Bridge at 2.9 GHz, the turbo clock of `i7-2630qm`, for a model that walks.
    ///
    /// The caches follow 7-cpu.com on Ivy Bridge, which has equal ones (4, 12 and 26 to 34 cycles).
    /// A second-level translation takes 7 cycles according to Intel's optimization manual. Three
    /// assumptions: memory takes 60 ns beyond the last level; a walk begins after the lookup in the
    /// second level of translations; a walk costs only its reads, one after the other, each as long
    /// as a program's.
    pub const SANDY_BRIDGE: Self =
        Self { l1: 4, l2: 12, llc: 30, memory: 30 + 174, second_tlb: 7, walk: 7 };

    /// The latency of a read that reached `reached`.
    pub fn of(&self, reached: Reached) -> u64 {
        match reached {
            Reached::Cache(Level::L1) => self.l1,
            Reached::Cache(Level::L2) => self.l2,
            Reached::Cache(Level::Llc) => self.llc,
            Reached::Memory => self.memory,
        }
    }

    /// The latency until a read with these counts has been translated. The translations of its
    /// lines are looked up at once, and their reads of the page table are made one after the other.
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
