//! Replays recorded lookups in a model, with objects where they are or where they would be.

use crate::analysis::moves::Start;
use crate::record::Read;
use crate::{Counts, Latencies, Level, Machine, MachineError, Model, Moves, PageSize};
use std::collections::BTreeMap;

/// A model through which recorded lookups run.
#[derive(Debug)]
pub struct Replay {
    model: Model,
    moves: Option<Moves>,
    pages: PageSize,
    latencies: Latencies,
    /// The model's counts when the counting of lookups began.
    before: Counts,
    lookups: u64,
    cycles: u64,
    /// The part of `cycles` that would vanish if the first level had every translation.
    translation_cycles: u64,
    /// The lines read from memory, by kind.
    memory_reads: BTreeMap<&'static str, u64>,
}

impl Replay {
    /// Makes a replay on a cold machine, with pages of one size. With `moves`, objects lie where
    /// these put them.
    pub fn new(
        machine: &Machine,
        pages: PageSize,
        moves: Option<Moves>,
    ) -> Result<Self, MachineError> {
        Ok(Self {
            model: Model::new(machine)?,
            moves,
            pages,
            latencies: Latencies::TYPICAL,
            before: Counts::default(),
            lookups: 0,
            cycles: 0,
            translation_cycles: 0,
            memory_reads: BTreeMap::new(),
        })
    }

    /// Replaces the latencies, and makes walks read the page table through the caches.
    #[must_use]
    pub fn walking(self, latencies: Latencies) -> Self {
        Self { model: self.model.walking(), latencies, ..self }
    }

    /// Replays one lookup: every byte that it loads, including links that it does not follow.
    pub fn lookup(&mut self, reads: &[Read]) {
        self.lookups += 1;
        for visit in reads.chunk_by(|a, b| a.object == b.object) {
            // All reads of one object are made at once.
            let start = self.moves.as_ref().and_then(|moves| moves.start(visit[0].object));
            let (mut slowest, mut translated) = (0, 0);
            for read in visit {
                let (translation, line) = self.read(start, read);
                slowest = slowest.max(translation + line);
                translated = translated.max(line);
            }
            self.cycles += slowest;
            self.translation_cycles += slowest - translated;
        }
    }

    /// Replays one read of an object whose move is `start`. Returns the cycles until it has its
    /// translations, and the cycles from there until it has its data.
    fn read(&mut self, start: Option<Start>, read: &Read) -> (u64, u64) {
        let address =
            self.moves.as_ref().map_or(read.address, |moves| moves.address_in(start, read));
        let before = self.model.counts();
        let reached = self.model.read(address, read.bytes, self.pages);
        let counts = self.model.counts() - before;
        if counts.llc_misses > 0 {
            *self.memory_reads.entry(read.layout.kind).or_default() += counts.llc_misses;
        }
        (self.latencies.of_translations(&counts), self.latencies.of(reached))
    }

    /// Restarts the counting. Earlier lookups have only filled the caches.
    pub fn warm(&mut self) {
        (self.before, self.lookups) = (self.model.counts(), 0);
        (self.cycles, self.translation_cycles) = (0, 0);
        self.memory_reads.clear();
    }

    /// The counts of the model since counting began.
    pub fn counts(&self) -> Counts {
        self.model.counts() - self.before
    }

    /// The number of lookups since counting began.
    pub fn lookups(&self) -> u64 {
        self.lookups
    }

    /// The lines read from memory since counting began, by kind.
    pub fn memory_reads(&self) -> &BTreeMap<&'static str, u64> {
        &self.memory_reads
    }

    /// The mean number of cycles that a lookup waits for memory. At each object it waits for the
    /// slowest of its reads, which are made at once; objects are visited one after the other. The
    /// latencies are [`Latencies::TYPICAL`] unless others were set.
    pub fn cycles_per_lookup(&self) -> f64 {
        self.cycles as f64 / self.lookups.max(1) as f64
    }

    /// The share of these cycles that would vanish if the first level had every translation.
    pub fn translation_share(&self) -> f64 {
        self.translation_cycles as f64 / self.cycles.max(1) as f64
    }

    /// The number of page table lines in a level now.
    pub fn table_lines(&self, level: Level) -> usize {
        self.model.table_lines(level)
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

    /// A lookup that passes through these objects.
    fn path(objects: &[usize]) -> Vec<Read> {
        let at = std::ptr::without_provenance::<u8>;
        objects.iter().flat_map(|object| NODE.passed(at(*object), 0)).collect()
    }

    #[test]
    fn a_lookup_waits_at_each_object_once() {
        let machine = Machine::named("haswell").unwrap();
        let mut replay = Replay::new(&machine, PageSize::Small, None).unwrap();
        // Two pages, and a node whose links lie in the next line, which was fetched as the pair of
        // the first.
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

    /// Two reads of an object, of which the one that waits for its translation need not be the
    /// slower.
    #[test]
    fn what_translations_cost_is_what_would_be_saved_without_them() {
        let machine = Machine::named("i7-2630qm").unwrap().without_prefetch();
        let costs = Latencies { l1: 1, l2: 10, llc: 100, memory: 1000, second_tlb: 7, walk: 3 };
        let replay = Replay::new(&machine, PageSize::Small, None).unwrap();
        let mut replay = replay.walking(costs);
        let at = std::ptr::without_provenance::<u8>;
        let mut lookup = |objects: &[usize]| {
            replay.warm();
            let reads = objects.iter().flat_map(|object| NODE.ended(at(*object)));
            replay.lookup(&reads.collect::<Vec<_>>());
            (replay.cycles, replay.translation_cycles, replay.translation_share().to_string())
        };
        // Four entries of the table and the line all come from memory.
        let (cycles, of_tables) = (3 + 4 * 1000 + 1000, 3 + 4 * 1000);
        let share = (f64::from(of_tables) / f64::from(cycles)).to_string();
        assert_eq!(lookup(&[1 << 20]), (cycles as u64, of_tables as u64, share));
        assert_eq!(lookup(&[1 << 20]), (1, 0, "0".into()));
        // The next page's entry lies in a known line, and the entries that lead to it are kept.
        assert_eq!(lookup(&[(1 << 20) + 4096]).0, 3 + 1 + 1000);
        // Five pages in a set of four: the second level has them all.
        let pages: Vec<usize> = (0..5).map(|n| (1 << 20) + (n << 16)).collect();
        lookup(&pages);
        assert_eq!(lookup(&pages), (5 * (1 + 7), 5 * 7, (7.0 / 8.0).to_string()));
    }

    #[test]
    fn the_slowest_read_of_an_object_counts() {
        let machine = Machine::named("i7-2630qm").unwrap().without_prefetch();
        let costs = Latencies { l1: 1, l2: 10, llc: 100, memory: 1000, second_tlb: 7, walk: 3 };
        let replay = Replay::new(&machine, PageSize::Huge, None).unwrap();
        let mut replay = replay.walking(costs);
        let object = std::ptr::without_provenance::<u8>(1 << 21);
        let read = |offset| NODE.read(object, offset, 8, crate::record::Why::Step);
        // One read walks and then waits 1000 cycles for its line; the other finds its translation
        // and waits as long for its line.
        replay.lookup(&[read(0), read(128)]);
        let walk = 3 + 3 * 1000;
        assert_eq!((replay.cycles, replay.translation_cycles), (walk + 1000, walk));
    }

    #[test]
    fn moved_objects_are_read_where_they_would_be() {
        // Too many pages for the first level, either all in one of its sets or spread over all.
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
