//! What is wrong with a layout, by name: cause, evidence and remedy.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, USENIX ATC 2018, which found these by hand and asked for tools that do.
//!
//! | finding | what it says of a kind | source |
//! |---|---|---|
//! | `straddling` | searched bytes that fit a line lie in two | section 3.2, 48-byte nodes |
//! | `useless-neighbours` | of the lines fetched beside those read, most hold nothing that a search reads | section 3.2, int-lf with noise |
//! | `set-underutilization` | lines read map to a part of the sets of some cache | section 3.2, int-lf |
//! | `sliced-stride` | the same in a last level in slices, which hides no stride that its odd part divides | section 4, a row, a wrapper and a node |
//! | `lost-collocation` | ends of lookups lie in the line beside that of the object they are reached from | section 3.3, edge-ext-lf |
//! | `lock-false-sharing` | locks share lines with others | section 4, row locks |
//! | `scattered-pages` | objects lie on more pages than they fill, or than translations are kept of | section 4, TLB misses |
//! | `oversized-node` | another build of the index has smaller objects | section 3.1, padding |
//! | `scattered-fields` | searched bytes that fit a line lie in two wherever the object starts | section 3.1, occ-avl |
//!
//! Whether a remedy pays is another question: [`Finding::remedied`] is the layout it would make, and
//! replaying lookups in both answers it for a machine. A smaller node may lie across lines, and aligning
//! it may make it too large for a cache.

use crate::census::{Census, Object};
use crate::facts::Facts;
use crate::{Level, Machine, Moves, NodeLayout, PageSize, Paths, SetHash, Tlb};
use std::fmt;

/// Which finding; its name is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// `straddling`
    Straddling,
    /// `useless-neighbours`
    UselessNeighbours,
    /// `set-underutilization`
    SetUnderutilization,
    /// `sliced-stride`
    SlicedStride,
    /// `lost-collocation`
    LostCollocation,
    /// `lock-false-sharing`
    LockFalseSharing,
    /// `scattered-pages`
    ScatteredPages,
    /// `oversized-node`
    OversizedNode,
    /// `scattered-fields`
    ScatteredFields,
}

impl Id {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Straddling => "straddling",
            Self::UselessNeighbours => "useless-neighbours",
            Self::SetUnderutilization => "set-underutilization",
            Self::SlicedStride => "sliced-stride",
            Self::LostCollocation => "lost-collocation",
            Self::LockFalseSharing => "lock-false-sharing",
            Self::ScatteredPages => "scattered-pages",
            Self::OversizedNode => "oversized-node",
            Self::ScatteredFields => "scattered-fields",
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Objects of the kind start at multiples of so many bytes.
    Align(usize),
    /// The kind gets memory of its own.
    OwnPool,
    /// The kind gets memory of its own, on huge pages.
    OwnHugePages,
    /// The index is built otherwise: the build's name.
    Build(String),
    /// An object in which lookups end is allocated together with the one it is reached from.
    Collocate,
    /// Locks start at multiples of so many bytes.
    PadLocks(usize),
}

/// Something that is wrong with where objects of a kind lie.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub id: Id,
    /// With which kind.
    pub kind: String,
    /// How it shows, in one sentence with its numbers.
    pub evidence: String,
    /// What to change.
    pub remedy: Remedy,
    /// Of a build, what the kind looks like now, and would.
    layouts: Option<(&'static NodeLayout, &'static NodeLayout)>,
}

/// Another build of the index.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Its name.
    pub name: &'static str,
    /// What it allocates.
    pub objects: &'static [NodeLayout],
}

/// What is to be judged, and by what.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The objects.
    pub census: &'a mut Census,
    /// The machine.
    pub machine: &'a Machine,
    /// The pages the objects are on.
    pub pages: PageSize,
    /// What lookups pass, if they were recorded.
    pub paths: Option<&'a Paths>,
    /// What the index allocates; nothing if there is no index.
    pub objects: &'static [NodeLayout],
    /// Its other builds, the best one first.
    pub builds: &'a [Build],
}

/// Of kinds with fewer objects nothing is said.
const FEWEST: usize = 256;

/// From which share on objects count as lying across lines.
const STRADDLING: f64 = 0.02;
/// From which share of useless neighbours on there are too many.
const USELESS: f64 = 0.4;
/// Up to which part of the sets that as many lines would reach anywhere, they reach too few.
const UNDERUTILIZED: f64 = 0.75;
/// From which share of the ends on that lie in the next line, and to which of those in the same line,
/// collocation is lost.
const BESIDE: (f64, f64) = (0.5, 0.1);
/// From which share of locks on that share a line.
const SHARED_LOCKS: f64 = 0.1;
/// How many times the pages that objects would fill are too many.
const SCATTERED: f64 = 1.5;

/// The bytes of a line, as [`Paths`] counts them.
const LINE: usize = 64;

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// How many translations of pages of that size a machine keeps, in the larger of its two levels.
fn translations(machine: &Machine, pages: PageSize) -> usize {
    let of_level = |tlb: &Tlb| match (tlb, pages) {
        (Tlb::Split { small: of, .. } | Tlb::Small(of) | Tlb::Shared(of), PageSize::Small)
        | (Tlb::Split { huge: of, .. } | Tlb::Shared(of), PageSize::Huge) => of.entries,
        (Tlb::Small(_), PageSize::Huge) => 0,
    };
    machine.tlb.iter().map(of_level).max().unwrap_or(0)
}

impl Situation<'_> {
    /// All that is wrong, in the order of the table above. O(n log n).
    pub fn findings(&mut self) -> Vec<Finding> {
        let kinds: Vec<String> = self.census.kinds().map(str::to_owned).collect();
        let sets = self.machine.sets(Level::Llc);
        let mut findings = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            let Some(facts) = self.census.facts(kind, &sets) else { continue };
            if facts.objects < FEWEST {
                continue;
            }
            let locks = self.census.kinds[number].locks;
            let layout = self.objects.iter().find(|layout| layout.kind == kind);
            if locks {
                findings.extend(self.shared_locks(kind));
            }
            if facts.hot_bytes > 0.0 && !locks {
                findings.extend(self.straddling(kind, &facts, layout));
                findings.extend(self.useless_neighbours(kind, &facts));
                findings.extend(self.sets(kind, &facts));
                findings.extend(self.scattered_pages(kind, &facts));
            }
            if let Some(layout) = layout {
                findings.extend(self.oversized(layout));
                findings.extend(self.scattered_fields(layout));
            }
        }
        findings.extend(self.lost_collocation());
        findings.sort_by_key(|finding| finding.id);
        findings
    }

    fn straddling(
        &self,
        kind: &str,
        facts: &Facts,
        layout: Option<&'static NodeLayout>,
    ) -> Option<Finding> {
        let line = self.machine.line;
        let fits = layout.map_or(facts.bytes, |layout| layout.search_end() as f64) <= line as f64;
        if facts.straddling < STRADDLING || !fits {
            return None;
        }
        let aligned = (facts.bytes.ceil() as usize).next_power_of_two().min(line);
        Some(Finding::new(
            Id::Straddling,
            kind,
            format!(
                "{} of {} objects of {:.0} bytes have the {:.0} bytes that a search reads in two lines: \
                 {:.3} lines per visit, {:.3} of them needed",
                percent(facts.straddling),
                facts.objects,
                facts.bytes,
                facts.hot_bytes,
                facts.lines_per_visit,
                facts.lines_needed
            ),
            Remedy::Align(aligned),
        ))
    }

    fn useless_neighbours(&self, kind: &str, facts: &Facts) -> Option<Finding> {
        if !self.machine.adjacent_line || 1.0 - facts.useful_neighbours < USELESS {
            return None;
        }
        let others = facts.in_neighbours.kinds.iter().filter(|(other, _)| other != kind);
        let others: Vec<String> =
            others.map(|(other, share)| format!("{other} {}", percent(*share))).collect();
        let others = if others.is_empty() { "nothing of ours".into() } else { others.join(", ") };
        Some(Finding::new(
            Id::UselessNeighbours,
            kind,
            format!(
                "{} of the lines fetched beside the {} read hold nothing that a search reads (they \
                 hold {others})",
                percent(1.0 - facts.useful_neighbours),
                facts.lines
            ),
            Remedy::OwnPool,
        ))
    }

    /// Too few sets of some cache: of one in slices, or of another.
    fn sets(&mut self, kind: &str, facts: &Facts) -> Option<Finding> {
        let (mut reached, mut sliced) = (Vec::new(), None);
        for (name, level) in [("L1", Level::L1), ("L2", Level::L2), ("LLC", Level::Llc)] {
            let sets = self.machine.sets(level);
            let expected = 1.0 - (-(facts.lines as f64) / sets.sets as f64).exp();
            let coverage = self.census.coverage(kind, &sets);
            if coverage > UNDERUTILIZED * expected {
                continue;
            }
            match sets.hash {
                SetHash::Modulo => reached.push(format!("{} of the {name}", percent(coverage))),
                SetHash::Slices(slices) => sliced = Some((coverage, slices)),
            }
        }
        let (stride, share) = facts.usual_stride();
        let strides = format!("{} of them lie {stride} bytes behind the last", percent(share));
        let lines = facts.lines;
        if !reached.is_empty() {
            let reached = reached.join(", ");
            let evidence = format!("the {lines} lines read map to {reached} sets; {strides}");
            return Some(Finding::new(Id::SetUnderutilization, kind, evidence, Remedy::OwnPool));
        }
        let (coverage, slices) = sliced?;
        let evidence = format!(
            "the {lines} lines read map to {} of the sets of a last level in {slices} slices; {strides}",
            percent(coverage)
        );
        Some(Finding::new(Id::SlicedStride, kind, evidence, Remedy::OwnPool))
    }

    fn scattered_pages(&self, kind: &str, facts: &Facts) -> Option<Finding> {
        let bytes = facts.objects as f64 * facts.bytes;
        let (unit, there, name) = match self.pages {
            PageSize::Small => (4096.0, facts.pages, "4 KiB"),
            PageSize::Huge => (f64::from(2 << 20), facts.regions, "2 MiB"),
        };
        let full = (bytes / unit).ceil().max(1.0);
        let kept = translations(self.machine, self.pages);
        let scattered = there as f64 > SCATTERED * full + 1.0;
        let small = self.pages == PageSize::Small && there > kept;
        if !scattered && !small || there <= kept {
            return None;
        }
        let runs = facts.pages as f64 / facts.page_runs.max(1) as f64;
        Some(Finding::new(
            Id::ScatteredPages,
            kind,
            format!(
                "they lie on {there} pages of {name} and would fill {full:.0}; runs of {runs:.1} pages of \
                 4 KiB, and {kept} translations are kept"
            ),
            Remedy::OwnHugePages,
        ))
    }

    fn shared_locks(&mut self, kind: &str) -> Option<Finding> {
        let line = self.machine.line;
        let (kinds, objects) = self.census.sorted();
        let locks: Vec<&Object> =
            objects.iter().filter(|object| kinds[object.kind as usize].name == kind).collect();
        let touch = |a: &Object, b: &Object| a.last() / line == b.address / line;
        let mut shared = vec![false; locks.len()];
        for (at, pair) in locks.windows(2).enumerate() {
            if touch(pair[0], pair[1]) {
                (shared[at], shared[at + 1]) = (true, true);
            }
        }
        let shared = shared.iter().filter(|shared| **shared).count() as f64 / locks.len() as f64;
        if shared < SHARED_LOCKS {
            return None;
        }
        let mut lines: Vec<usize> = Vec::new();
        for lock in &locks {
            lines.extend(lock.address / line..=lock.last() / line);
        }
        lines.dedup();
        let per_line = locks.len() as f64 / lines.len() as f64;
        let evidence = format!(
            "{} of {} share a line with another: {per_line:.2} locks per line",
            percent(shared),
            locks.len()
        );
        let padded = locks.iter().map(|lock| lock.bytes as usize).max().unwrap_or(0);
        let remedy = Remedy::PadLocks(padded.next_multiple_of(line));
        Some(Finding::new(Id::LockFalseSharing, kind, evidence, remedy))
    }

    /// The first other build in which `better` says that the kind is.
    fn other_build(
        &self,
        layout: &'static NodeLayout,
        better: impl Fn(&NodeLayout) -> bool,
    ) -> Option<(&'static str, &'static NodeLayout)> {
        let number = self.objects.iter().position(|object| object == layout)?;
        self.builds.iter().find_map(|build| {
            let other = build.objects.get(number)?;
            (other.kind == layout.kind && better(other)).then_some((build.name, other))
        })
    }

    fn oversized(&self, layout: &'static NodeLayout) -> Option<Finding> {
        let (name, other) = self.other_build(layout, |other| other.size < layout.size)?;
        let evidence = format!(
            "objects have {} bytes, of which a search reads {}; in the build `{name}` they have {}",
            layout.size,
            layout.hot_bytes(),
            other.size
        );
        let finding =
            Finding::new(Id::OversizedNode, layout.kind, evidence, Remedy::Build(name.into()));
        Some(Finding { layouts: Some((layout, other)), ..finding })
    }

    fn scattered_fields(&self, layout: &'static NodeLayout) -> Option<Finding> {
        let line = self.machine.line;
        let lines = layout.lines_at(0, line);
        if lines <= layout.hot_bytes().div_ceil(line).max(1) {
            return None;
        }
        let (name, other) = self.other_build(layout, |other| other.lines_at(0, line) < lines)?;
        let first = layout.search.iter().min_by_key(|field| field.offset)?;
        let last = layout.search.iter().max_by_key(|field| field.offset)?;
        let evidence = format!(
            "a search reads {} bytes, from `{}` at byte {} to `{}` at byte {}: {lines} lines where one \
             would do",
            layout.hot_bytes(),
            first.name,
            first.offset,
            last.name,
            last.offset
        );
        let finding =
            Finding::new(Id::ScatteredFields, layout.kind, evidence, Remedy::Build(name.into()));
        Some(Finding { layouts: Some((layout, other)), ..finding })
    }

    fn lost_collocation(&self) -> Option<Finding> {
        let found = self.paths?.collocation();
        let share = |part: usize| part as f64 / found.parents.max(1) as f64;
        let beside = share(found.same_pair + found.next_pair);
        let (least, most) = BESIDE;
        if found.parents < FEWEST || beside < least || share(found.same_line) > most {
            return None;
        }
        let kind = self.objects.first()?.kind;
        let evidence = format!(
            "{} of the {} objects from which lookups come to their end have it in the next line or the \
             one before, {} of those in another pair of lines; {} share a line with it",
            percent(beside),
            found.parents,
            percent(share(found.next_pair) / beside),
            percent(share(found.same_line))
        );
        Some(Finding::new(Id::LostCollocation, kind, evidence, Remedy::Collocate))
    }
}

impl Facts {
    /// The most frequent distance from one object to the next, and how large a share of all it is.
    pub fn usual_stride(&self) -> (usize, f64) {
        let all: usize = self.strides.values().sum();
        let usual = self.strides.iter().max_by_key(|(_, count)| **count);
        usual.map_or((0, 0.0), |(stride, count)| (*stride, *count as f64 / all as f64))
    }
}

impl Finding {
    fn new(id: Id, kind: &str, evidence: String, remedy: Remedy) -> Self {
        Self { id, kind: kind.into(), evidence, remedy, layouts: None }
    }

    /// Where the objects would lie if the remedy were applied to the whole index, each kind in memory of
    /// its own as with a pool, and on which pages; nothing for what lookups do not show.
    pub fn remedied(
        &self,
        census: &mut Census,
        paths: &Paths,
        pages: PageSize,
    ) -> Option<(Moves, PageSize)> {
        let moves = match &self.remedy {
            Remedy::Align(align) => Moves::apart(census, |kind, bytes| {
                bytes.next_multiple_of(if kind == self.kind { *align } else { 8 })
            }),
            Remedy::OwnPool => Moves::apart(census, |_, bytes| bytes.next_multiple_of(8)),
            Remedy::OwnHugePages => {
                let moves = Moves::apart(census, |_, bytes| bytes.next_multiple_of(8));
                return Some((moves, PageSize::Huge));
            }
            Remedy::Build(_) => {
                let (from, to) = self.layouts?;
                let size = |kind: &str, bytes| if kind == self.kind { to.size } else { bytes };
                Moves::apart(census, size).built(vec![(from, to)])
            }
            Remedy::Collocate => Moves::beside_parents(census, paths, LINE),
            Remedy::PadLocks(_) => return None,
        };
        Some((moves, pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;
    use crate::record::Why;

    const HOT: &[Field] = &[Field::new("key", 0, 8), Field::links("children", 8, 2)];
    const fn layout(kind: &'static str, size: usize, search: &'static [Field]) -> NodeLayout {
        NodeLayout { kind, size, align: 8, search, found: search }
    }
    static SLIM: [NodeLayout; 1] = [layout("node", 48, HOT)];
    static LINE: [NodeLayout; 1] = [layout("node", 64, HOT)];
    static COLD: NodeLayout = layout("descriptor", 64, &[]);
    static HALF: [NodeLayout; 1] = [layout("node", 32, HOT)];
    static WIDE: [NodeLayout; 1] = [layout(
        "node",
        128,
        &[Field::new("version", 104, 8), Field::new("key", 0, 8), Field::links("children", 8, 2)],
    )];

    const START: usize = 1 << 32;

    /// Blocks of these layouts in turns, 100 000 rounds from a huge page's start on.
    fn in_turns(layouts: &[&'static NodeLayout]) -> Census {
        let (mut census, mut address) = (Census::default(), START);
        for _ in 0..100_000 {
            for layout in layouts {
                census.add(layout, address);
                address += layout.size;
            }
        }
        census
    }

    fn found(
        census: &mut Census,
        pages: PageSize,
        objects: &'static [NodeLayout],
        builds: &[Build],
        paths: Option<&Paths>,
    ) -> Vec<Finding> {
        let machine = Machine::named("haswell").unwrap();
        Situation { census, machine: &machine, pages, paths, objects, builds }.findings()
    }

    fn names(findings: &[Finding]) -> Vec<(&'static str, &str)> {
        findings.iter().map(|finding| (finding.id.name(), finding.kind.as_str())).collect()
    }

    /// What there is to say of nodes of a kind in turns with others, on huge pages.
    fn of(objects: &'static [NodeLayout], others: &[&'static NodeLayout]) -> Vec<Finding> {
        let layouts: Vec<_> = objects.iter().chain(others.iter().copied()).collect();
        found(&mut in_turns(&layouts), PageSize::Huge, objects, &[], None)
    }

    #[test]
    fn each_layout_is_told_by_its_name() {
        assert_eq!(names(&of(&LINE, &[])), []);
        assert_eq!(names(&of(&HALF, &[])), []);
        let straddling = of(&SLIM, &[]);
        assert_eq!(names(&straddling), [("straddling", "node")]);
        assert_eq!(straddling[0].remedy, Remedy::Align(64));
        assert!(straddling[0].evidence.starts_with("25.0 % of 100000 objects of 48 bytes"));
        assert!(straddling[0].evidence.contains("1.250 lines per visit, 1.125 of them needed"));
        let two = of(&LINE, &[&COLD]);
        assert_eq!(names(&two), [("useless-neighbours", "node"), ("set-underutilization", "node")]);
        assert!(two[0].evidence.contains("descriptor 100.0 %"), "{}", two[0].evidence);
        assert!(two[1].evidence.contains("50.0 % of the L1, 50.0 % of the L2 sets"));
        let three = of(&LINE, &[&COLD, &COLD]);
        // Every neighbour is of another kind, and the powers of two are prime to three.
        assert_eq!(names(&three), [("useless-neighbours", "node"), ("sliced-stride", "node")]);
        assert!(three[1].evidence.contains("33.3 % of the sets of a last level in 12 slices"));
        assert!(three[1].evidence.contains("100.0 % of them lie 192 bytes behind the last"));
    }

    #[test]
    fn pages_are_scattered_or_too_small() {
        let small =
            |census: &mut Census| names(&found(census, PageSize::Small, &LINE, &[], None)).len();
        // 1563 pages, where 512 translations are kept.
        assert_eq!(small(&mut in_turns(&[&LINE[0]])), 1);
        let spread = |pages: usize| {
            let mut census = Census::default();
            (0..pages)
                .for_each(|page| census.add(&LINE[0], START + page * 4096 + 64 * (page / 8 % 64)));
            census
        };
        let findings = found(&mut spread(600), PageSize::Small, &LINE, &[], None);
        assert_eq!(names(&findings), [("useless-neighbours", "node"), ("scattered-pages", "node")]);
        assert!(
            findings[1].evidence.contains("600 pages of 4 KiB and would fill 10; runs of 600.0")
        );
        assert_eq!(findings[1].remedy, Remedy::OwnHugePages);
        let few = found(&mut spread(500), PageSize::Small, &LINE, &[], None);
        assert_eq!(names(&few), [("useless-neighbours", "node")], "translations of all are kept");
        assert_eq!(names(&found(&mut spread(600), PageSize::Huge, &LINE, &[], None)).len(), 1);
    }

    #[test]
    fn other_builds_may_be_smaller_or_denser() {
        let builds =
            [Build { name: "large", objects: &WIDE }, Build { name: "fixed", objects: &SLIM }];
        let mut census = in_turns(&[&WIDE[0]]);
        let findings = found(&mut census, PageSize::Huge, &WIDE, &builds, None);
        assert_eq!(names(&findings), [("oversized-node", "node"), ("scattered-fields", "node")]);
        for finding in &findings {
            assert_eq!(finding.remedy, Remedy::Build("fixed".into()));
            let (moves, pages) =
                finding.remedied(&mut census, &Paths::default(), PageSize::Huge).unwrap();
            assert_eq!(pages, PageSize::Huge);
            let at = std::ptr::without_provenance::<u8>(START + 3 * 128);
            let reads: Vec<_> = WIDE[0].passed(at, 1).map(|read| moves.address(&read)).collect();
            let first = reads[1];
            assert_eq!(reads[2..], [first + 8, first + 16], "as the other build has them");
        }
        assert_eq!(names(&found(&mut census, PageSize::Huge, &WIDE, &builds[..1], None)), []);
    }

    #[test]
    fn locks_share_lines_unless_they_fill_them() {
        let locks = |bytes: usize| {
            let mut census = Census::default();
            let lock = census.kind("lock", None);
            census.are_locks(lock);
            (0..1000).for_each(|n| census.add_sized(lock, START + n * bytes, bytes));
            found(&mut census, PageSize::Small, &[], &[], None)
        };
        let findings = locks(48);
        assert_eq!(names(&findings), [("lock-false-sharing", "lock")]);
        assert!(
            findings[0].evidence.starts_with("100.0 % of 1000 share a line with another: 1.33")
        );
        assert_eq!(findings[0].remedy, Remedy::PadLocks(64));
        assert!(locks(64).is_empty() && locks(192).is_empty());
    }

    #[test]
    fn collocation_is_lost_by_a_shift() {
        /// Pairs of leaf and parent, end to end from there on.
        fn shifted(by: usize) -> (Census, Paths) {
            let (mut census, mut paths) = (Census::default(), Paths::default());
            let at = std::ptr::without_provenance::<u8>;
            for pair in 0..1000 {
                let (leaf, parent) = (START + by + pair * 64, START + by + pair * 64 + 32);
                census.add(&HALF[0], leaf);
                census.add(&HALF[0], parent);
                let reads =
                    HALF[0].passed(at(parent), 0).chain([HALF[0].read(at(leaf), 0, 8, Why::Found)]);
                paths.add(&reads.collect::<Vec<_>>());
            }
            (census, paths)
        }
        let (mut census, paths) = shifted(0);
        assert_eq!(names(&found(&mut census, PageSize::Huge, &HALF, &[], Some(&paths))), []);
        let (mut census, paths) = shifted(32);
        let findings = found(&mut census, PageSize::Huge, &HALF, &[], Some(&paths));
        assert_eq!(names(&findings), [("lost-collocation", "node")]);
        assert!(
            findings[0].evidence.starts_with("100.0 % of the 1000"),
            "{}",
            findings[0].evidence
        );
        assert!(findings[0].evidence.contains("50.0 % of those in another pair"));
        let (moves, _) = findings[0].remedied(&mut census, &paths, PageSize::Huge).unwrap();
        let line = |object: usize| {
            let object = std::ptr::without_provenance::<u8>(object);
            moves.address(&HALF[0].read(object, 0, 8, Why::Step)) / 64
        };
        assert_eq!(line(START + 32 + 640), line(START + 32 + 640 + 32));
    }
}
