//! The translations that transactions need, in the model.

use super::heap::{Block, CELL, OF_ROWS};
use super::trees::LOCK_BYTES;
use crate::drive::replayed::{Misses, Part, Replayed};
use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::interrupt;
use silvics_layout::record::Read;
use silvics_layout::{Machine, MachineError, PageSize};

/// The misses of a transaction of one database in several models, on average.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modelled {
    /// In the tree and in the rows, on pages of 4 KiB.
    pub small: [Misses; 2],
    /// On pages of 2 MiB.
    pub huge: [Misses; 2],
}

impl Modelled {
    /// Calls `replay` with the number of each transaction of a database over the tree `name`. The
    /// first `count` transactions fill the models, and as many more count.
    pub fn of(
        machine: &Machine,
        name: &str,
        count: usize,
        mut replay: impl FnMut(usize, &mut Models) -> Result<(), Failure>,
    ) -> Result<Self, Error> {
        let models = Models::new(machine);
        let mut models = models.map_err(|error| Error::value("--machine", error))?;
        for number in 0..2 * count {
            if number == count {
                models.warm();
            }
            replay(number, &mut models).map_err(|failure| failure.of(name))?;
            if number.is_multiple_of(256) && interrupt::pending() {
                return Err(Error::Interrupted);
            }
        }
        Ok(models.per_transaction(count))
    }
}

/// A model on small pages, and one on huge pages.
pub struct Models([(Replayed, PageSize); 2]);

impl Models {
    /// Cold models. Unlike in other experiments, a quick run has the whole machine: even its few
    /// rows lie on more pages than there are translations.
    fn new(machine: &Machine) -> Result<Self, MachineError> {
        let [small, huge] = [Replayed::new(machine)?, Replayed::new(machine)?];
        Ok(Self([(small, PageSize::Small), (huge, PageSize::Huge)]))
    }

    /// Restarts the counting.
    fn warm(&mut self) {
        self.0.iter_mut().for_each(|(model, _)| model.warm());
    }

    /// Reads some bytes.
    pub fn read(&mut self, part: Part, address: usize, bytes: usize) {
        for (model, pages) in &mut self.0 {
            model.read(part, address, bytes, *pages);
        }
    }

    /// Reads what a lookup has read of a tree.
    pub fn path(&mut self, path: &[Read]) {
        for step in path {
            self.read(Part::Index, step.address, step.bytes);
        }
    }

    /// The misses, if this number of transactions has been counted.
    fn per_transaction(&self, transactions: usize) -> Modelled {
        let [small, huge] = self.0.each_ref().map(|(model, _)| model.per_transaction(transactions));
        Modelled { small, huge }
    }
}

/// The addresses of the objects of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfRow {
    row: usize,
    columns: usize,
    wrapper: usize,
    lock: usize,
    cell: usize,
    /// The bytes of the columns.
    bytes: usize,
}

/// The bytes that are read of the other objects of a row.
const WORD: usize = 8;
const ROW_HEAD: usize = 16;

impl OfRow {
    /// The row whose objects are among these, or `None` if one is missing.
    pub fn among(blocks: &[Block]) -> Option<Self> {
        let of_kind = |kind: &str| blocks.iter().find(|block| block.kind == kind);
        let cell = of_kind(CELL)?.address;
        let [row, columns, wrapper, lock, _] = OF_ROWS.map(of_kind);
        Some(Self {
            row: row?.address,
            columns: columns?.address,
            bytes: columns?.bytes,
            wrapper: wrapper?.address,
            lock: lock?.address,
            cell,
        })
    }

    /// The reads that follow a lookup of the row.
    pub fn look(&self, models: &mut Models) {
        let mut read = |address, bytes| models.read(Part::Rows, address, bytes);
        read(self.cell, WORD);
        read(self.wrapper, WORD);
        read(self.row, ROW_HEAD);
        read(self.lock, LOCK_BYTES);
        read(self.columns, self.bytes);
    }

    /// The reads of the row at the commit.
    pub fn commit(&self, is_written: bool, models: &mut Models) {
        let mut read = |address, bytes| models.read(Part::Rows, address, bytes);
        read(self.wrapper, WORD);
        read(self.row, ROW_HEAD);
        if is_written {
            read(self.columns, self.bytes);
        }
        read(self.lock, LOCK_BYTES);
    }
}
