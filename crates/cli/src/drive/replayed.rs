//! Reads that run through a model, counted for an index and for the database around it.

use serde::{Deserialize, Serialize};
use silvics_layout::{Counts, Machine, MachineError, Model, PageSize};

/// A part of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The index.
    Index,
    /// The rows, and what leads from the index to them.
    Rows,
}

/// Misses of reads in a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Misses {
    /// Translations that were not in the first level.
    pub tlb: f64,
    /// Translations that were in no level.
    pub walks: f64,
    /// Lines that were not in the first level of caches.
    pub l1: f64,
    /// Lines that were in no cache.
    pub memory: f64,
}

impl Misses {
    fn of(counts: Counts) -> Self {
        let Counts { tlb_misses, page_walks, l1_misses, llc_misses, .. } = counts;
        let [tlb, walks, l1, memory] =
            [tlb_misses, page_walks, l1_misses, llc_misses].map(|count| count as f64);
        Self { tlb, walks, l1, memory }
    }

    fn each(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            tlb: of(self.tlb, other.tlb),
            walks: of(self.walks, other.walks),
            l1: of(self.l1, other.l1),
            memory: of(self.memory, other.memory),
        }
    }

    /// The sum of two.
    pub fn and(self, other: Self) -> Self {
        self.each(other, |one, other| one + other)
    }

    /// The misses of one transaction, if these are those of several.
    fn per(self, transactions: usize) -> Self {
        self.each(self, |all, _| all / transactions.max(1) as f64)
    }
}

/// A model, and what it has counted.
pub struct Replayed {
    model: Model,
    index: Misses,
    rows: Misses,
}

impl Replayed {
    /// A cold model of a machine.
    pub fn new(machine: &Machine) -> Result<Self, MachineError> {
        let (index, rows) = (Misses::default(), Misses::default());
        Ok(Self { model: Model::new(machine)?, index, rows })
    }

    /// Restarts the counting. Earlier reads have only filled the model.
    pub fn warm(&mut self) {
        (self.index, self.rows) = (Misses::default(), Misses::default());
    }

    /// Reads some bytes that lie on pages of this size.
    pub fn read(&mut self, part: Part, address: usize, bytes: usize, pages: PageSize) {
        let before = self.model.counts();
        self.model.read(address, bytes, pages);
        let misses = Misses::of(self.model.counts() - before);
        let to = match part {
            Part::Index => &mut self.index,
            Part::Rows => &mut self.rows,
        };
        *to = to.and(misses);
    }

    /// The mean misses of a transaction in the index and in the rows, if this number of
    /// transactions has been counted.
    pub fn per_transaction(&self, transactions: usize) -> [Misses; 2] {
        [self.index, self.rows].map(|misses| misses.per(transactions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_count_for_their_part() {
        let machine = Machine::named("i7-2630qm").unwrap().without_prefetch();
        let mut replayed = Replayed::new(&machine).unwrap();
        let mut read = |part, address| {
            replayed.read(part, address, 8, PageSize::Small);
            replayed.per_transaction(2)
        };
        let half = Misses { tlb: 0.5, walks: 0.5, l1: 0.5, memory: 0.5 };
        assert_eq!(read(Part::Index, 1 << 20), [half, Misses::default()]);
        assert_eq!(read(Part::Index, 1 << 20), [half, Misses::default()]);
        let line = Misses { tlb: 0.0, walks: 0.0, ..half };
        assert_eq!(read(Part::Rows, (1 << 20) + 128), [half, line]);
        replayed.warm();
        assert_eq!(replayed.per_transaction(2), [Misses::default(); 2]);
    }
}
