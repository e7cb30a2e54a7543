//! An index whose reads are recorded.

use crate::catalogue::Inspect;
use crate::drive::inspected::Inspected;
use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_layout::record::{self, Why};
use silvics_layout::{Field, NodeLayout};
use silvics_store::index::{CELL_BYTES, Scannable, Search};

/// An index of the catalogue. A thread that records its reads has those of lookups: see
/// [`record::of`].
pub struct Recorder {
    name: String,
    index: Box<dyn Inspected<u64>>,
    /// Whether its words lead to cells with the addresses of rows, which a lookup also reads.
    leads_to_cells: bool,
}

/// The cells of the study's lists: see [`silvics_store::index::Lists`].
pub static CELL: NodeLayout = NodeLayout {
    kind: "cell",
    size: CELL_BYTES,
    align: 8,
    search: &[],
    found: &[Field::new("row", 0, 8)],
};

impl Recorder {
    /// Makes an index of the catalogue with these options. `name` is its name there.
    pub fn made(name: String, make: Inspect<u64>, options: &Options) -> Result<Self, AllocError> {
        Ok(Self { name, index: make(options)?, leads_to_cells: false })
    }

    /// The index as that of the study's lists.
    #[must_use]
    pub fn of_lists(self) -> Self {
        Self { leads_to_cells: true, ..self }
    }
}

// SAFETY: the index is one of the catalogue, as `Named` is, since only `made` makes this type; that
// also made it with the options, so it is of their domain, whose guard is pinned during each call.
// So S1 to S3, S5 and S6 hold. It cannot scan (S4).
unsafe impl Search for Recorder {
    type Form = u64;

    /// Fails: an index is made by the catalogue.
    fn make(_options: &Options) -> Result<Self, AllocError> {
        Err(AllocError::Address)
    }
    fn structure(&self) -> String {
        self.name.clone()
    }
    fn get(&self, key: u64, _guard: &Guard) -> Option<u64> {
        let word = self.index.look(key);
        if let (true, Some(word)) = (self.leads_to_cells, word) {
            let cell = std::ptr::without_provenance::<u8>(word as usize);
            record::report([CELL.read(cell, 0, 8, Why::Found)]);
        }
        word
    }
    /// Looks the key up before: an insertion does not report all of its reads.
    unsafe fn try_insert(
        &self,
        key: u64,
        word: u64,
        _guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        match self.index.look(key) {
            Some(present) => Ok(Some(present)),
            None => self.index.insert(key, word),
        }
    }
    unsafe fn replace(&self, key: u64, word: u64, _guard: &Guard) -> Result<(), AllocError> {
        self.index.set(key, word)
    }
    unsafe fn remove(&self, key: u64, _guard: &Guard) -> Result<(), AllocError> {
        self.index.remove(key).map(|_| ())
    }
    fn count(&self) -> usize {
        self.index.len()
    }
    fn bytes(&self) -> Option<usize> {
        Some(self.index.bytes())
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.index.pool_stats()
    }
}

/// Whether an index scans is known when a table is made, as for [`silvics_store::index::Named`].
impl Scannable for Recorder {}
