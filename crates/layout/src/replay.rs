//! Recorded lookups in a model, as they were or as they would be.

use crate::moves::Start;
use crate::record::Read;
use crate::{Counts, Level, Machine, MachineError, Model, Moves, PageSize, Reached};
use std::collections::BTreeMap;

/// A model that recorded lookups run through.
#[derive(Debug)]
pub struct Replay {
    model: Model,
    moves: Option<Moves>,
    pages: PageSize,
    /// What had happened when counting began, and since then:
    before: Counts,
    lookups: u64,
    cycles: u64,
    /// Lines read from memory, by kind.
    memory_reads: BTreeMap<&'static str, u64>,
}

impl Replay {
    /// A cold machine, on pages of one size; with `moves`, objects lie where these say.
    pub fn new(
        machine: &Machine,
        pages: PageSize,
        moves: Option<Moves>,
    ) -> Result<Self, MachineError> {
        Ok(Self {
            model: Model::new(machine)?,
            moves,
            pages,
            before: Counts::default(),
            lookups: 0,
            cycles: 0,
            memory_reads: BTreeMap::new(),
        })
    }

    /// Replays one lookup: every byte that it loads, links that it does not follow included.
    pub fn lookup(&mut self, reads: &[Read]) {
        self.lookups += 1;
        for visit in reads.chunk_by(|a, b| a.object == b.object) {
            // What is loaded of one object is loaded at once.
            let start = self.moves.as_ref().and_then(|moves| moves.start(visit[0].object));
            let slowest = visit.iter().map(|read| self.read(start, read)).max();
            self.cycles += slowest.unwrap_or(0);
        }
    }

    /// The cycles until a read has what it reads, of an object that moves like this.
    fn read(&mut self, start: Option<Start>, read: &Read) -> u64 {
        let address =
            self.moves.as_ref().map_or(read.address, |moves| moves.address_in(start, read));
        let before = self.model.counts();
        let reached = self.model.read(address, read.bytes, self.pages);
        let counts = self.model.counts() - before;
        if counts.llc_misses > 0 {
            *self.memory_reads.entry(read.layout.kind).or_default() += counts.llc_misses;
        }
        let translation = match (counts.tlb_misses, counts.page_walks) {
            (0, _) => 0,
            (_, 0) => 7,
            _ => 30,
        };
        translation
            + match reached {
                Reached::Cache(Level::L1) => 5,
                Reached::Cache(Level::L2) => 14,
                Reached::Cache(Level::Llc) => 50,
                Reached::Memory => 250,
            }
    }

    /// Counts from here on: what came before has filled the caches.
    pub fn warm(&mut self) {
        (self.before, self.lookups, self.cycles) = (self.model.counts(), 0, 0);
        self.memory_reads.clear();
    }

    /// What has happened since then.
    pub fn counts(&self) -> Counts {
        self.model.counts() - self.before
    }

    /// In how many lookups.
    pub fn lookups(&self) -> u64 {
        self.lookups
    }

    /// The lines read from memory since then, by kind.
    pub fn memory_reads(&self) -> &BTreeMap<&'static str, u64> {
        &self.memory_reads
    }

    /// The cycles that a lookup waits for memory, on average: at each object for the slowest of its
    /// reads, which are made at once, and so at one object after the other.
    ///
    /// Latencies are typical ones, the same for all machines: 5, 14, 50 and 250 cycles from the three
    /// levels and from memory, 7 more for a translation from the second level and 30 for a walk.
    pub fn cycles_per_lookup(&self) -> f64 {
        self.cycles as f64 / self.lookups.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Among, Census, Field, NodeLayout, Slot};

    static NODE: NodeLayout = NodeLayout {
        kind: "node",
        size: 64,
        align: 64,
        search: &[Field::new("key", 0, 8), Field::links("children", 8, 2)],
        found: &[Field::new("key", 0, 8)],
    };

    /// A lookup that goes through these objects.
    fn path(objects: &[usize]) -> Vec<Read> {
        let at = std::ptr::without_provenance::<u8>;
        objects.iter().flat_map(|object| NODE.passed(at(*object), 0)).collect()
    }

    #[test]
    fn a_lookup_waits_at_each_object_once() {
        let machine = Machine::named("haswell").unwrap();
        let mut replay = Replay::new(&machine, PageSize::Small, None).unwrap();
        // Two pages, and a node whose links lie in the next line; fetched with the first as its pair.
        replay.lookup(&path(&[0x10_0000, 0x20_0038]));
        assert_eq!(replay.lookups(), 1);
        assert_eq!(replay.cycles_per_lookup().to_string(), (2 * (250 + 30)).to_string());
        assert_eq!(replay.memory_reads()["node"], 2);
        assert_eq!(replay.counts().page_walks, 2);
        replay.warm();
        replay.lookup(&path(&[0x10_0000, 0x20_0038]));
        assert_eq!(replay.cycles_per_lookup().to_string(), "10");
        assert_eq!((replay.counts().reads, replay.memory_reads().len()), (6, 0));
    }

    #[test]
    fn moved_objects_are_read_where_they_would_be() {
        // Too many for the first level, all in one of its sets, or spread over all.
        let nodes: Vec<usize> = (0..100).map(|n| 0x10_0000 + n * 4096).collect();
        let (mut census, machine) = (Census::default(), Machine::named("haswell").unwrap());
        for node in &nodes {
            census.add(&NODE, *node);
        }
        let cycles = |moves| {
            let mut replay = Replay::new(&machine, PageSize::Small, moves).unwrap();
            replay.lookup(&path(&nodes));
            replay.warm();
            replay.lookup(&path(&nodes));
            (replay.counts().l1_misses, replay.counts().tlb_misses)
        };
        assert_eq!(cycles(None), (100, 100));
        assert_eq!(
            cycles(Some(Moves::housed(&mut census, |_, bytes| Slot { bytes, among: Among::Kind }))),
            (0, 0)
        );
    }
}
