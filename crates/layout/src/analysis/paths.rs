//! The objects and lines that lookups pass, from recorded reads.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, USENIX ATC 2018, sections 3.2 (lines per visit) and 3.3
//! (parents that share a line with a child).

use crate::record::{Read, Why};
use rustc_hash::FxHashMap;

/// A summary of recorded lookups: the lines that visits touch, and the distance between the last
/// two objects.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    lookups: usize,
    visits: usize,
    reads: usize,
    /// For each object passed: visits, lines read, and lines needed in them.
    passed: FxHashMap<usize, [u32; 3]>,
    /// For each object from which lookups came to the object they ended in, those ends.
    last_steps: FxHashMap<usize, Ends>,
}

/// The objects in which lookups ended that came from one object.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: usize,
    nearest: usize,
    near: Nearness,
}

/// The distance between two objects, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    SameLine,
    /// In the other line of an aligned pair.
    SamePair,
    /// In the line before or after, which belongs to another pair.
    NextPair,
    Far,
}

/// How many parents have the end of a lookup near them. A parent is an object from which lookups
/// come to the object in which they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collocation {
    /// The number of all parents.
    pub parents: usize,
    /// Parents with an end in the line where the parent is read first.
    pub same_line: usize,
    /// Other parents with an end in the other line of the aligned pair, which is fetched with it.
    pub same_pair: usize,
    /// Other parents with an end in the line before or after, which belongs to another pair.
    pub next_pair: usize,
}

/// The bytes of a line, on all machines that have presets.
pub(crate) const LINE: usize = 64;

/// The numbers of the lines of a read.
fn lines(read: &Read) -> std::ops::RangeInclusive<usize> {
    let last = read.address.saturating_add(read.bytes.saturating_sub(1));
    read.address / LINE..=last / LINE
}

/// The number of lines that these reads of one object touch.
fn distinct_lines<'r>(reads: impl Iterator<Item = &'r Read>) -> u32 {
    // Objects are small: a bit for each line from the first one on.
    let (mut base, mut met) = (None, 0_u128);
    for line in reads.flat_map(lines) {
        let base = *base.get_or_insert(line.saturating_sub(64));
        met |= 1 << line.saturating_sub(base).min(127);
    }
    met.count_ones()
}

impl Paths {
    /// Adds the reads of one lookup.
    pub fn add(&mut self, reads: &[Read]) {
        self.lookups += 1;
        self.reads += reads.len();
        let mut parent: Option<&Read> = None;
        // Consecutive reads of one object are a visit; reads in between that look again belong to
        // it.
        let mut at = 0;
        while let Some(first) = reads.get(at) {
            let of_visit = |read: &&Read| read.why == Why::Again || read.object == first.object;
            let visit = &reads[at..at + reads[at..].iter().take_while(of_visit).count()];
            at += visit.len().max(1);
            if first.why == Why::Again {
                continue;
            }
            self.visits += 1;
            if first.why == Why::Found {
                if let Some(parent) = parent {
                    self.end(parent, first);
                }
            } else {
                let loaded = visit.iter().filter(|read| read.why != Why::Again);
                let needed = visit.iter().filter(|read| read.why == Why::Step);
                let [visits, all, chosen] = self.passed.entry(first.object).or_default();
                *visits += 1;
                *all += distinct_lines(loaded);
                *chosen += distinct_lines(needed);
            }
            parent = Some(first);
        }
    }

    /// Adds only the object in which a lookup ended and the one from which it came there.
    pub fn add_end(&mut self, reads: &[Read]) {
        let Some(end) = reads.iter().position(|read| read.why == Why::Found) else { return };
        let (before, end) = (&reads[..end], &reads[end]);
        let before = before.iter().filter(|read| read.why != Why::Again);
        let mut from = before.clone().rev().map(|read| read.object);
        let Some(parent) = from.find(|object| *object != end.object) else { return };
        if let Some(parent) = before.clone().find(|read| read.object == parent) {
            self.end(parent, end);
        }
    }

    fn end(&mut self, parent: &Read, end: &Read) {
        let near = nearness(parent.address / LINE, end.address / LINE);
        let new = Ends { first: end.object, nearest: end.object, near };
        let ends = self.last_steps.entry(parent.object).or_insert(new);
        if near < ends.near {
            *ends = Ends { first: ends.first, ..new };
        }
    }

    /// The mean number of objects that a lookup visits.
    pub fn visits_per_lookup(&self) -> f64 {
        self.visits as f64 / self.lookups.max(1) as f64
    }

    /// The mean number of reads that a lookup makes of each object.
    pub fn reads_per_visit(&self) -> f64 {
        self.reads as f64 / self.visits.max(1) as f64
    }

    /// The mean number of lines that a visit reads of an object it passes, averaged over the
    /// objects. If every visit misses the caches, this is the number of misses.
    pub fn lines_per_visit(&self) -> f64 {
        self.per_visit(|[_, loaded, _]| loaded)
    }

    /// The mean number of lines that a visit needs of an object it passes, averaged over the
    /// objects: of links, only the one it follows.
    pub fn lines_needed(&self) -> f64 {
        self.per_visit(|[.., needed]| needed)
    }

    fn per_visit(&self, count: impl Fn([u32; 3]) -> u32) -> f64 {
        let of_objects = self.passed.values();
        let sum: f64 = of_objects.map(|all| f64::from(count(*all)) / f64::from(all[0])).sum();
        sum / self.passed.len().max(1) as f64
    }

    /// The objects from which lookups came to the one they ended in, each with the first such end,
    /// in the order of their addresses.
    pub(crate) fn last_steps(&self) -> Vec<(usize, usize)> {
        let steps = self.last_steps.iter().map(|(parent, ends)| (*parent, ends.first));
        let mut steps: Vec<_> = steps.collect();
        steps.sort_unstable();
        steps
    }

    /// The nearest object in which lookups ended that came from `parent`.
    pub fn nearest_end(&self, parent: usize) -> Option<usize> {
        self.last_steps.get(&parent).map(|ends| ends.nearest)
    }

    /// How near their parents the objects lie in which lookups ended.
    pub fn collocation(&self) -> Collocation {
        let count = |near| self.last_steps.values().filter(|ends| ends.near == near).count();
        Collocation {
            parents: self.last_steps.len(),
            same_line: count(Nearness::SameLine),
            same_pair: count(Nearness::SamePair),
            next_pair: count(Nearness::NextPair),
        }
    }
}

/// The distance between two lines, by number.
fn nearness(a: usize, b: usize) -> Nearness {
    match a.abs_diff(b) {
        0 => Nearness::SameLine,
        1 if a ^ b == 1 => Nearness::SamePair,
        1 => Nearness::NextPair,
        _ => Nearness::Far,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, NodeLayout};

    static NODE: NodeLayout = NodeLayout {
        kind: "node",
        size: 48,
        align: 8,
        search: &[Field::new("key", 0, 8), Field::links("children", 8, 2)],
        found: &[Field::new("key", 0, 8)],
    };

    fn at(address: usize) -> *const u8 {
        std::ptr::without_provenance(address)
    }

    /// A lookup that follows the right link everywhere.
    fn path(objects: &[usize]) -> Vec<Read> {
        let (last, passed) = objects.split_last().unwrap();
        let passed = passed.iter().flat_map(|address| NODE.passed(at(*address), 1));
        passed.chain(NODE.ended(at(*last))).collect()
    }

    #[test]
    fn lines_are_counted_per_object_and_visit() {
        let mut paths = Paths::default();
        // The second object has its right link in the next line; the first is passed twice as
        // often.
        paths.add(&path(&[0x1000, 0x1030, 0x4000]));
        paths.add(&path(&[0x1000, 0x2000]));
        let rounded = |value: f64| format!("{value:.3}");
        assert_eq!(rounded(paths.visits_per_lookup()), "2.500");
        assert_eq!(rounded(paths.reads_per_visit()), "2.200");
        assert_eq!(
            (rounded(paths.lines_per_visit()), rounded(paths.lines_needed())),
            ("1.500".into(), "1.500".into())
        );
        // To the left, the needed bytes lie in one line.
        let left: Vec<Read> = NODE.passed(at(0x1030), 0).chain(NODE.ended(at(0x5000))).collect();
        paths.add(&left);
        assert_eq!(
            (rounded(paths.lines_per_visit()), rounded(paths.lines_needed())),
            ("1.500".into(), "1.250".into())
        );
    }

    #[test]
    fn the_nearest_end_counts() {
        let (mut paths, mut ends) = (Paths::default(), Paths::default());
        for (parent, end) in [
            (0x1000, 0x1020), // one line
            (0x2000, 0x2040), // the other line of the pair, and
            (0x2000, 0x9000), // far away
            (0x3040, 0x3080), // the next pair
            (0x4000, 0x8000),
        ] {
            paths.add(&path(&[0x100_000, parent, end]));
            ends.add_end(&path(&[0x100_000, parent, end]));
        }
        let found = Collocation { parents: 4, same_line: 1, same_pair: 1, next_pair: 1 };
        assert_eq!((paths.collocation(), ends.collocation()), (found, found));
        paths.add_end(&path(&[0x4000, 0x4020]));
        let ends = [0x1000, 0x2000, 0x4000, 0x5000].map(|parent| paths.nearest_end(parent));
        assert_eq!(ends, [Some(0x1020), Some(0x2040), Some(0x4020), None]);
        let firsts = [(0x1000, 0x1020), (0x2000, 0x2040), (0x3040, 0x3080), (0x4000, 0x8000)];
        assert_eq!(paths.last_steps(), firsts);
    }

    #[test]
    fn what_is_read_again_is_no_visit() {
        let mut reads = path(&[0x1000, 0x2000]);
        reads.insert(3, NODE.read(at(0x5000), 0, 8, Why::Again));
        let mut paths = Paths::default();
        paths.add(&reads);
        assert_eq!(
            format!("{:.1} {:.1}", paths.visits_per_lookup(), paths.reads_per_visit()),
            "2.0 2.5"
        );
    }
}
