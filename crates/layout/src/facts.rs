//! Facts about where objects lie, computed from their addresses alone.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, USENIX ATC 2018: what its section 3.2 finds by hand (straddling,
//! half of the sets, useless neighbours, strides), and its closing question, how each type of object
//! spreads over the sets of a cache and which types lie close together.
//!
//! # Terms
//! The *searched bytes* of an object are those its [`NodeLayout`] names. A line is *read* if it holds
//! searched bytes. The *neighbour* of a line is the other one of the aligned pair, which processors
//! fetch with it. Addresses are virtual: sets beyond a page's bits are those of a system that maps
//! the pages in order, as huge pages do.

use crate::NodeLayout;
use std::collections::BTreeMap;

/// How addresses map to sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetHash {
    /// By the lowest bits of the line's number.
    Modulo,
    /// In one of so many slices. With `n = odd * 2^k` of them, the slice is chosen by the line's number
    /// modulo the odd part and by a fold of all its bits to `k`; so strides of powers of two are spread
    /// over all slices, and those that the odd part divides are not. A model, not the function of any
    /// processor.
    Slices(usize),
}

/// The shape of a cache, as far as it says where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sets {
    /// Bytes of a line, a power of two.
    pub line: usize,
    /// Sets in all slices together.
    pub sets: usize,
    /// How lines map to them.
    pub hash: SetHash,
}

impl Sets {
    /// The set of a line, by its number.
    pub const fn of(&self, line: usize) -> usize {
        match self.hash {
            SetHash::Modulo => line % self.sets,
            SetHash::Slices(slices) => {
                let (each, bits) = (self.sets / slices, slices.trailing_zeros());
                let slice = ((line % (slices >> bits)) << bits) | fold(line, bits);
                slice * each + (line >> bits) % each
            }
        }
    }
}

/// The exclusive or of a number's digits of so many bits.
const fn fold(mut number: usize, bits: u32) -> usize {
    let mut folded = 0;
    while bits > 0 && number > 0 {
        folded ^= number & ((1 << bits) - 1);
        number >>= bits;
    }
    folded
}

/// Objects of an index, or of any program: of what kind each is, and where.
#[derive(Clone, Debug, Default)]
pub struct Census {
    objects: Vec<(&'static NodeLayout, usize)>,
}

/// What is so for the objects of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// How many there are.
    pub objects: usize,
    /// The share of them with searched bytes in more than one line.
    pub straddling: f64,
    /// The lines read per visit, on average.
    pub lines_per_visit: f64,
    /// How many start at which byte of a line.
    pub offsets: BTreeMap<usize, usize>,
    /// How far behind an object the next one of its kind starts, and how often.
    pub strides: BTreeMap<usize, usize>,
    /// The share of all sets that lines read of these objects map to.
    pub set_coverage: f64,
    /// Of the neighbours of lines read of these objects, the share that is read for any object, or
    /// belongs to the same one.
    pub useful_neighbours: f64,
    /// The 4 KiB pages that hold some of them.
    pub pages: usize,
    /// The aligned 2 MiB regions that do.
    pub regions: usize,
    /// Runs of such pages with no other in between: `pages / page_runs` is their mean length.
    pub page_runs: usize,
}

/// Sorted numbers, each once.
fn distinct(numbers: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut numbers: Vec<usize> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

impl Census {
    /// Adds an object.
    pub fn add(&mut self, layout: &'static NodeLayout, address: usize) {
        self.objects.push((layout, address));
    }

    /// The kinds there are objects of, in the order in which they were met.
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        for (layout, _) in &self.objects {
            if kinds.last() != Some(&layout.kind) && !kinds.contains(&layout.kind) {
                kinds.push(layout.kind);
            }
        }
        kinds
    }

    /// The lines read of the objects that `is` chooses.
    fn read(&self, sets: &Sets, is: impl Fn(&NodeLayout) -> bool) -> Vec<usize> {
        let chosen = self.objects.iter().filter(|(layout, _)| is(layout));
        distinct(chosen.flat_map(|(layout, address)| layout.lines_read(*address, sets.line)))
    }

    /// What is so for the objects called `kind`, in a cache of that shape. O(n log n).
    pub fn facts(&self, kind: &str, sets: &Sets) -> Facts {
        let of_kind = || self.objects.iter().filter(|(layout, _)| layout.kind == kind);
        let mut addresses: Vec<usize> = of_kind().map(|(_, address)| *address).collect();
        addresses.sort_unstable();
        let (mut straddling, mut lines) = (0, 0);
        let mut offsets = BTreeMap::new();
        for (layout, address) in of_kind() {
            let read = layout.lines_at(*address, sets.line);
            straddling += usize::from(read > 1);
            lines += read;
            *offsets.entry(address % sets.line).or_default() += 1;
        }
        let mut strides = BTreeMap::new();
        for pair in addresses.windows(2) {
            *strides.entry(pair[1] - pair[0]).or_default() += 1;
        }
        let (mine, all) =
            (self.read(sets, |layout| layout.kind == kind), self.read(sets, |_| true));
        let covered = distinct(mine.iter().map(|line| sets.of(*line))).len();
        let useful = mine.iter().filter(|line| all.binary_search(&(*line ^ 1)).is_ok()).count();
        let sizes = of_kind().map(|(layout, address)| (*address, *address + layout.size - 1));
        let pages = distinct(sizes.flat_map(|(first, last)| first >> 12..=last >> 12));
        Facts {
            objects: addresses.len(),
            straddling: share(straddling, addresses.len()),
            lines_per_visit: share(lines, addresses.len()),
            offsets,
            strides,
            set_coverage: share(covered, sets.sets),
            useful_neighbours: share(useful, mine.len()),
            regions: distinct(pages.iter().map(|page| page >> 9)).len(),
            page_runs: pages.windows(2).filter(|pair| pair[1] != pair[0] + 1).count()
                + usize::from(!pages.is_empty()),
            pages: pages.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    const SETS: Sets = Sets { line: 64, sets: 2048, hash: SetHash::Modulo };

    const fn layout(kind: &'static str, size: usize, search: &'static [Field]) -> NodeLayout {
        NodeLayout { kind, size, align: 8, search, found: &[] }
    }

    const HOT: &[Field] = &[Field::new("key, children", 0, 24)];
    static NODE: NodeLayout = layout("node", 64, HOT);
    static SLIM: NodeLayout = layout("slim", 48, HOT);
    static COLD: NodeLayout = layout("descriptor", 64, &[]);

    /// Blocks of these layouts in turns, each from where the last one ended.
    fn in_turns(layouts: &[&'static NodeLayout], rounds: usize) -> Census {
        let (mut census, mut address) = (Census::default(), 1 << 30);
        for _ in 0..rounds {
            for layout in layouts {
                census.add(layout, address);
                address += layout.size;
            }
        }
        census
    }

    fn ratio(value: f64) -> String {
        format!("{value:.4}")
    }

    #[test]
    fn a_quarter_of_48_byte_blocks_straddle() {
        let facts = in_turns(&[&SLIM], 4000).facts("slim", &SETS);
        assert_eq!(
            (ratio(facts.straddling), ratio(facts.lines_per_visit)),
            ("0.2500".into(), "1.2500".into())
        );
        assert_eq!(facts.offsets, BTreeMap::from([(0, 1000), (16, 1000), (32, 1000), (48, 1000)]));
        assert_eq!(facts.strides, BTreeMap::from([(48, 3999)]));
        assert_eq!((facts.objects, facts.pages, facts.page_runs, facts.regions), (4000, 47, 1, 1));
        assert_eq!(
            (ratio(facts.set_coverage), ratio(facts.useful_neighbours)),
            ("1.0000".into(), "1.0000".into())
        );
    }

    #[test]
    fn nodes_and_descriptors_in_turns_leave_half_of_the_sets() {
        let census = in_turns(&[&NODE, &COLD], 10_000);
        assert_eq!(census.kinds(), ["node", "descriptor"]);
        let facts = census.facts("node", &SETS);
        assert_eq!(
            (ratio(facts.set_coverage), ratio(facts.useful_neighbours)),
            ("0.5000".into(), "0.0000".into())
        );
        assert_eq!(facts.strides, BTreeMap::from([(128, 9999)]));
        let alone = in_turns(&[&NODE], 10_000).facts("node", &SETS);
        assert_eq!(
            (ratio(alone.set_coverage), ratio(alone.useful_neighbours)),
            ("1.0000".into(), "1.0000".into())
        );
        let none = census.facts("leaf", &SETS);
        assert_eq!((none.objects, none.pages, none.page_runs), (0, 0, 0));
        assert_eq!(ratio(none.set_coverage), "0.0000");
    }

    #[test]
    fn a_stride_of_three_lines_reaches_a_third_of_a_sliced_cache_and_all_of_another() {
        let census = in_turns(&[&NODE, &COLD, &COLD], 100_000);
        let sliced = Sets { line: 64, sets: 12 * 1024, hash: SetHash::Slices(12) };
        assert_eq!(ratio(census.facts("node", &sliced).set_coverage), "0.3333");
        assert_eq!(ratio(census.facts("node", &SETS).set_coverage), "1.0000");
        let spread = in_turns(&[&NODE, &COLD, &COLD, &COLD], 100_000);
        assert_eq!(ratio(spread.facts("node", &sliced).set_coverage), "1.0000");
        assert_eq!(ratio(spread.facts("node", &SETS).set_coverage), "0.2500");
        let pairs = in_turns(&[&NODE, &NODE, &COLD, &COLD], 100_000);
        assert_eq!(ratio(pairs.facts("node", &sliced).set_coverage), "1.0000");
    }

    #[test]
    fn runs_of_pages_end_where_a_page_is_missing() {
        let mut census = Census::default();
        for page in [0, 1, 2, 5, 6, 600] {
            census.add(&NODE, page << 12);
        }
        census.add(&COLD, 3 << 12);
        let facts = census.facts("node", &SETS);
        assert_eq!((facts.pages, facts.page_runs, facts.regions), (6, 3, 2));
    }
}
