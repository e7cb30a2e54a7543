//! Recorded lookups in a model, as they were or as they would be.

use crate::moves::Start;
use crate::record::Read;
use crate::{Counts, Latencies, Level, Machine, MachineError, Model, Moves, PageSize};
use std::collections::BTreeMap;

/// A model that recorded lookups run through.
#[derive(Debug)]
pub struct Replay {
    model: Model,
    moves: Option<Moves>,
    pages: PageSize,
    latencies: Latencies,
    /// What had happened when counting began, and since then:
    before: Counts,
    lookups: u64,
    cycles: u64,
    /// Those of them that there would not be if the first level had every translation.
    translation_cycles: u64,
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
            latencies: Latencies::TYPICAL,
            before: Counts::default(),
            lookups: 0,
            cycles: 0,
            translation_cycles: 0,
            memory_reads: BTreeMap::new(),
        })
    }

    /// The same on a machine with these latencies, whose walks read the page table through its caches.
    #[must_use]
    pub fn walking(self, latencies: Latencies) -> Self {
        Self { model: self.model.walking(), latencies, ..self }
    }

    /// Replays one lookup: every byte that it loads, links that it does not follow included.
    pub fn lookup(&mut self, reads: &[Read]) {
        self.lookups += 1;
        for visit in reads.chunk_by(|a, b| a.object == b.object) {
            // What is loaded of one object is loaded at once.
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

    /// The cycles until a read has its translations, and from there until it has what it reads, of an object
    /// that moves like this.
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

    /// Counts from here on: what came before has filled the caches.
    pub fn warm(&mut self) {
        (self.before, self.lookups) = (self.model.counts(), 0);
        (self.cycles, self.translation_cycles) = (0, 0);
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
    /// reads, which are made at once, and so at one object after the other. [`Latencies::TYPICAL`], unless it
    /// was given others.
    pub fn cycles_per_lookup(&self) -> f64 {
        self.cycles as f64 / self.lookups.max(1) as f64
    }

    /// The share of these cycles that there would not be if the first level had every translation.
    pub fn translation_share(&self) -> f64 {
        self.translation_cycles as f64 / self.cycles.max(1) as f64
    }

    /// How many lines of the page table a level holds now.
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

    /// Two reads of an object, of which the one that waits for its translation need not be the slower one.
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
        // Four entries of the table and the line, all from memory.
        let (cycles, of_tables) = (3 + 4 * 1000 + 1000, 3 + 4 * 1000);
        let share = (f64::from(of_tables) / f64::from(cycles)).to_string();
        assert_eq!(lookup(&[1 << 20]), (cycles as u64, of_tables as u64, share));
        assert_eq!(lookup(&[1 << 20]), (1, 0, "0".into()));
        // The next page's entry is in the same line, and what leads to it is known.
        assert_eq!(lookup(&[(1 << 20) + 4096]).0, 3 + 1 + 1000);
        // Five pages of a set of four: the second level has them all.
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
        // One read walks for a line of 1000 cycles, the other finds the translation, and another such line.
        replay.lookup(&[read(0), read(128)]);
        let walk = 3 + 3 * 1000;
        assert_eq!((replay.cycles, replay.translation_cycles), (walk + 1000, walk));
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
