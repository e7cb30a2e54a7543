//! Problems of a layout, by name: cause, evidence and remedy.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, USENIX ATC 2018. They found these problems by hand and asked
//! for tools that find them.
//!
//! | finding | what it says of a kind | from when on | source |
//! |---|---|---|---|
//! | `straddling` | searched bytes that fit a line lie in two, and would not in an object that starts a line | 2 % of objects | section 3.2, 48-byte nodes |
//! | `useless-neighbours` | lines fetched beside those read hold nothing that a search reads, but other kinds or nothing | 40 % of such lines, half of their bytes not the kind's own | section 3.2, int-lf with noise |
//! | `set-underutilization` | lines read map to a part of the sets of some cache, as objects do not lie side by side | three quarters of the sets that as many lines would reach anywhere | section 3.2, int-lf |
//! | `sliced-stride` | the same in a last level in slices, which hides no stride that its odd part divides | the same | section 4, a row, a wrapper and a node |
//! | `lost-collocation` | ends of lookups lie in the line beside that of the object they are reached from, though both fit one | 50 % beside, 10 % together at most | section 3.3, edge-ext-lf |
//! | `lock-false-sharing` | locks share lines with other locks | 10 % of locks | section 4, row locks |
//! | `scattered-pages` | objects lie on more pages than translations are kept of, which are small or which they do not fill | 1.5 times the pages they would fill, of huge ones | section 4, TLB misses |
//! | `oversized-node` | another build of the index has smaller objects | a byte | section 3.1, padding |
//! | `scattered-fields` | searched bytes that fit a line lie in two wherever the object starts | a line | section 3.1, occ-avl |
//!
//! Kinds with fewer than 256 objects have no findings. The thresholds are our choice. They lie
//! below the effects that the source saw, of which the smallest were a quarter of nodes across
//! lines, half of the sets, and two locks out of three. They lie above the effects of the first and
//! last lines of a pool, of a page that ends early, and of a root of another size. The predicted
//! gain says whether a share matters.
//!
//! Whether a remedy pays is another question. [`Finding::remedied`] is the layout that the remedy
//! would make. Replaying lookups in both layouts answers the question for a machine. A smaller node
//! may lie across lines, and aligning it may make it too large for a cache.

mod evidence;
#[cfg(test)]
mod tests;

pub use evidence::{Evidence, Stride};

use crate::analysis::census::{Census, Kind, Object, Reads};
use crate::analysis::facts::{Facts, Survey};
use crate::analysis::paths::LINE;
use crate::{Level, Machine, Moves, NodeLayout, PageSize, Paths, SetHash, Slot, Tlb};
use std::fmt;

/// The kind of a finding. Its name is stable.
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

/// The change that removes a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Objects of the kind start at multiples of this number of bytes.
    Align(usize),
    /// The kind gets memory of its own.
    OwnPool,
    /// The kind gets memory of its own, on huge pages.
    OwnHugePages,
    /// Another build of the index is used; the name of the build.
    Build(String),
    /// An object in which lookups end is allocated together with the object it is reached from.
    Collocate,
    /// Locks start at multiples of this number of bytes.
    PadLocks(usize),
    /// The fields that a search reads come first.
    Reorder,
}

/// A problem of where the objects of a kind lie.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kind of the finding.
    pub id: Id,
    /// The kind of objects that has the problem.
    pub kind: String,
    /// The figures that show it.
    pub evidence: Evidence,
    /// The change that removes the problem.
    pub remedy: Remedy,
    /// The layouts of each kind now and in the other build, if the remedy is a build.
    layouts: Vec<(&'static NodeLayout, &'static NodeLayout)>,
}

/// Another build of the index.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Its name.
    pub name: &'static str,
    /// The objects that it allocates.
    pub objects: &'static [NodeLayout],
}

/// The layout that is judged, and the machine and lookups by which it is judged.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The objects, surveyed for the machine's last level.
    pub survey: &'a Survey<'a>,
    /// The machine.
    pub machine: &'a Machine,
    /// The pages that the objects are on.
    pub pages: PageSize,
    /// The objects that lookups pass, if lookups were recorded.
    pub paths: Option<&'a Paths>,
    /// The objects that the index allocates; empty if there is no index.
    pub objects: &'static [NodeLayout],
    /// Its other builds, the best one first.
    pub builds: &'a [Build],
}

/// The fewest objects of a kind with findings.
const FEWEST: usize = 256;

/// The least share of objects beside one another that makes a kind lie by itself.
const ALONE: f64 = 0.75;
/// The least share of objects across lines that makes a finding.
const STRADDLING: f64 = 0.02;
/// The least share of useless neighbours that makes a finding, and the share of their bytes that
/// may be the kind's own.
const USELESS: (f64, f64) = (0.4, 0.5);
/// The most sets that make a finding, as a part of the sets that as many lines would reach at
/// random addresses.
const UNDERUTILIZED: f64 = 0.75;
/// The least share of ends in the next line, and the largest share of ends in the same line, with
/// which collocation is lost.
const BESIDE: (f64, f64) = (0.5, 0.1);
/// The least share of locks in a line with others that makes a finding.
const SHARED_LOCKS: f64 = 0.1;
/// The least factor over the pages that the objects would fill that makes a finding.
const SCATTERED: f64 = 1.5;
/// The most kinds that evidence names beside a kind.
const OTHERS: usize = 4;

/// The number of translations of pages of that size that a machine keeps, in the larger of its two
/// levels.
fn translations(machine: &Machine, pages: PageSize) -> usize {
    let of_level = |tlb: &Tlb| match (tlb, pages) {
        (Tlb::Split { small: of, .. } | Tlb::Small(of) | Tlb::Shared(of), PageSize::Small)
        | (Tlb::Split { huge: of, .. } | Tlb::Shared(of), PageSize::Huge) => of.entries,
        (Tlb::Small(_), PageSize::Huge) => 0,
    };
    machine.tlb.iter().map(of_level).max().unwrap_or(0)
}

impl Situation<'_> {
    /// All findings, in the order of the table above. O(n log n).
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (number, kind) in self.survey.kinds.iter().enumerate() {
            let Some(facts) = self.survey.facts(number) else { continue };
            if facts.objects < FEWEST {
                continue;
            }
            let layout = self.objects.iter().find(|layout| layout.kind == kind.name);
            if kind.locks {
                findings.extend(self.shared_locks(number));
            }
            if facts.hot_bytes > 0.0 && !kind.locks {
                findings.extend(self.straddling(kind, facts));
                findings.extend(Self::unordered(kind, facts));
                findings.extend(self.useless_neighbours(&kind.name, facts));
                findings.extend(self.sets(number, facts));
                findings.extend(self.scattered_pages(&kind.name, facts));
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

    fn straddling(&self, kind: &Kind, facts: &Facts) -> Option<Finding> {
        if facts.misaligned < STRADDLING {
            return None;
        }
        let aligned = facts.bytes_median.next_power_of_two().min(self.machine.line);
        let (share, objects, lines) = (facts.misaligned, facts.objects, facts.lines_per_visit);
        let evidence = if matches!(kind.reads, Reads::Hot(None)) {
            let bytes = [facts.bytes_min, facts.bytes_max, facts.bytes_median];
            Evidence::Straddling { share, objects, bytes, lines }
        } else {
            let (bytes, hot_bytes, needed) = (facts.bytes, facts.hot_bytes, facts.lines_needed);
            Evidence::HotStraddling { share, objects, bytes, hot_bytes, lines, needed }
        };
        Some(Finding::new(Id::Straddling, &kind.name, evidence, Remedy::Align(aligned)))
    }

    /// The finding, for a kind without a layout, that no object which starts a line has all the
    /// bytes that are read in it.
    fn unordered(kind: &Kind, facts: &Facts) -> Option<Finding> {
        let Reads::Hot(Some(hot)) = &kind.reads else { return None };
        if facts.needless - facts.misaligned < STRADDLING {
            return None;
        }
        let first = hot.first().map_or(0, |part| part.start);
        let last = hot.last().map_or(0, |part| part.end.min(facts.bytes_max) - 1);
        let (hot_bytes, lines) = (facts.hot_bytes, facts.lines_per_visit);
        let evidence = Evidence::Unordered { hot_bytes, first, last, lines };
        Some(Finding::new(Id::ScatteredFields, &kind.name, evidence, Remedy::Reorder))
    }

    fn useless_neighbours(&self, kind: &str, facts: &Facts) -> Option<Finding> {
        let (least, most) = USELESS;
        let of_kind = facts.in_neighbours.kinds.iter().find(|(other, _)| other == kind);
        let own = of_kind.map_or(0.0, |(_, share)| *share);
        if !self.machine.adjacent_line || 1.0 - facts.useful_neighbours < least || own > most {
            return None;
        }
        let others = facts.in_neighbours.kinds.iter().filter(|(other, _)| other != kind);
        let mut held: Vec<(String, f64)> = others.cloned().collect();
        held.sort_by(|a, b| b.1.total_cmp(&a.1));
        held.truncate(OTHERS);
        let (share, lines) = (1.0 - facts.useful_neighbours, facts.lines);
        let evidence = Evidence::UselessNeighbours { share, lines, held };
        Some(Finding::new(Id::UselessNeighbours, kind, evidence, Remedy::OwnPool))
    }

    /// The findings that too few sets of a cache are used: of a cache in slices, or of another. A
    /// pool helps a kind only if its objects do not already lie side by side.
    fn sets(&self, number: usize, facts: &Facts) -> Vec<Finding> {
        let kind = &self.survey.kinds[number].name;
        let stride = facts.usual_stride();
        let side_by_side = stride.bytes <= facts.bytes_median.next_multiple_of(self.machine.line);
        if side_by_side && stride.share > ALONE {
            return Vec::new();
        }
        let (mut reached, mut sliced) = (Vec::new(), None);
        for (name, level) in [("L1", Level::L1), ("L2", Level::L2), ("LLC", Level::Llc)] {
            let sets = self.machine.sets(level);
            let expected = 1.0 - (-(facts.lines as f64) / sets.sets as f64).exp();
            let coverage = self.survey.coverage(number, &sets);
            if coverage > UNDERUTILIZED * expected {
                continue;
            }
            match sets.hash {
                SetHash::Slices(slices) => sliced = Some((coverage, slices)),
                // Hardware does not index by a division. How a cache with this number of sets
                // indexes is not known.
                SetHash::Modulo if !sets.sets.is_power_of_two() => {}
                SetHash::Modulo => reached.push((name, coverage)),
            }
        }
        let lines = facts.lines;
        let found = |id, evidence| Finding::new(id, kind, evidence, Remedy::OwnPool);
        let few = (!reached.is_empty())
            .then(|| found(Id::SetUnderutilization, Evidence::Sets { lines, reached, stride }));
        let sliced = sliced.map(|(reached, slices)| {
            found(Id::SlicedStride, Evidence::Slices { lines, reached, slices, stride })
        });
        few.into_iter().chain(sliced).collect()
    }

    fn scattered_pages(&self, kind: &str, facts: &Facts) -> Option<Finding> {
        let bytes = facts.objects as f64 * facts.bytes;
        let pages = match self.pages {
            PageSize::Small => facts.pages,
            PageSize::Huge => facts.regions,
        };
        let size = self.pages.name();
        let full = (bytes / self.pages.bytes() as f64).ceil().max(1.0);
        let kept = translations(self.machine, self.pages);
        let scattered = pages as f64 > SCATTERED * full + 1.0;
        let small = self.pages == PageSize::Small && pages > kept;
        if !scattered && !small || pages <= kept {
            return None;
        }
        let evidence = if scattered {
            let run = facts.pages as f64 / facts.page_runs.max(1) as f64;
            Evidence::ScatteredPages { pages, size, full, run, kept }
        } else {
            Evidence::ManyPages { pages, size, kept }
        };
        Some(Finding::new(Id::ScatteredPages, kind, evidence, Remedy::OwnHugePages))
    }

    fn shared_locks(&self, number: usize) -> Option<Finding> {
        let line = self.machine.line;
        let (kind, locks) = (&self.survey.kinds[number].name, self.survey.objects(number));
        let touch = |a: &Object, b: &Object| a.last() / line == b.start() / line;
        let mut shared = vec![false; locks.len()];
        for (at, pair) in locks.windows(2).enumerate() {
            if touch(&pair[0], &pair[1]) {
                (shared[at], shared[at + 1]) = (true, true);
            }
        }
        let share = shared.iter().filter(|shared| **shared).count() as f64 / locks.len() as f64;
        if share < SHARED_LOCKS {
            return None;
        }
        let mut lines: Vec<usize> = Vec::new();
        for lock in locks {
            lines.extend(lock.start() / line..=lock.last() / line);
        }
        lines.dedup();
        let per_line = locks.len() as f64 / lines.len() as f64;
        let evidence = Evidence::SharedLocks { share, locks: locks.len(), per_line };
        let padded = locks.iter().map(|lock| lock.bytes as usize).max().unwrap_or(0);
        let remedy = Remedy::PadLocks(padded.next_multiple_of(line));
        Some(Finding::new(Id::LockFalseSharing, kind, evidence, remedy))
    }

    /// The first other build in which `better` holds for the kind, and the layout of the kind
    /// there.
    fn other_build(
        &self,
        layout: &'static NodeLayout,
        better: impl Fn(&NodeLayout) -> bool,
    ) -> Option<(&Build, &'static NodeLayout)> {
        let number = self.objects.iter().position(|object| object == layout)?;
        self.builds.iter().find_map(|build| {
            let other = build.objects.get(number)?;
            (other.kind == layout.kind && better(other)).then_some((build, other))
        })
    }

    /// The finding that a kind is better in another build.
    fn rebuilt(&self, id: Id, kind: &str, evidence: Evidence, build: &Build) -> Finding {
        let finding = Finding::new(id, kind, evidence, Remedy::Build(build.name.into()));
        let kinds = self.objects.iter().zip(build.objects);
        let layouts = kinds.filter(|(from, to)| from.kind == to.kind).collect();
        Finding { layouts, ..finding }
    }

    fn oversized(&self, layout: &'static NodeLayout) -> Option<Finding> {
        let (build, other) = self.other_build(layout, |other| other.size < layout.size)?;
        let evidence = Evidence::Oversized {
            bytes: layout.size,
            hot_bytes: layout.hot_bytes(),
            build: build.name,
            bytes_there: other.size,
        };
        Some(self.rebuilt(Id::OversizedNode, layout.kind, evidence, build))
    }

    fn scattered_fields(&self, layout: &'static NodeLayout) -> Option<Finding> {
        let line = self.machine.line;
        let lines = layout.lines_at(0, line);
        if lines <= layout.hot_bytes().div_ceil(line).max(1) {
            return None;
        }
        let (build, _) = self.other_build(layout, |other| other.lines_at(0, line) < lines)?;
        let first = layout.search.iter().min_by_key(|field| field.offset)?;
        let last = layout.search.iter().max_by_key(|field| field.offset)?;
        let evidence = Evidence::ScatteredFields {
            hot_bytes: layout.hot_bytes(),
            first: (first.name, first.offset),
            last: (last.name, last.offset),
            lines,
        };
        Some(self.rebuilt(Id::ScatteredFields, layout.kind, evidence, build))
    }

    fn lost_collocation(&self) -> Option<Finding> {
        let found = self.paths?.collocation();
        let share = |part: usize| part as f64 / found.parents.max(1) as f64;
        let beside = share(found.same_pair + found.next_pair);
        let (least, most) = BESIDE;
        if found.parents < FEWEST || beside < least || share(found.same_line) > most {
            return None;
        }
        let first = self.objects.first()?;
        let smallest = self.objects.iter().map(|layout| layout.size).min()?;
        if first.size + smallest > LINE {
            return None;
        }
        let kind = first.kind;
        let evidence = Evidence::LostCollocation {
            beside,
            parents: found.parents,
            other_pair: share(found.next_pair) / beside,
            together: share(found.same_line),
        };
        Some(Finding::new(Id::LostCollocation, kind, evidence, Remedy::Collocate))
    }
}

impl Finding {
    fn new(id: Id, kind: &str, evidence: Evidence, remedy: Remedy) -> Self {
        Self { id, kind: kind.into(), evidence, remedy, layouts: Vec::new() }
    }

    /// The addresses and pages of the objects if the remedy were applied to the whole index. `slot`
    /// is the slot of a kind and its bytes in the heap with the remedy. `None` for problems that
    /// lookups do not show.
    pub fn remedied(
        &self,
        census: &mut Census,
        paths: &Paths,
        pages: PageSize,
        slot: impl Fn(&str, usize) -> Slot,
    ) -> Option<(Moves, PageSize)> {
        Some(match &self.remedy {
            Remedy::Align(_) | Remedy::OwnPool => (Moves::housed(census, slot), pages),
            Remedy::OwnHugePages => (Moves::housed(census, slot), PageSize::Huge),
            Remedy::Build(_) => {
                let built = |kind: &str, bytes| {
                    let layout = self.layouts.iter().find(|(from, _)| from.kind == kind);
                    slot(kind, layout.map_or(bytes, |(_, to)| to.size))
                };
                (Moves::housed(census, built).built(self.layouts.clone()), pages)
            }
            Remedy::Collocate => (Moves::beside_parents(census, paths, LINE), pages),
            Remedy::PadLocks(_) | Remedy::Reorder => return None,
        })
    }
}
