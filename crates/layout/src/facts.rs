//! Facts about where objects lie, computed from their addresses alone.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, USENIX ATC 2018: what its section 3.2 finds by hand (straddling,
//! half of the sets, useless neighbours, strides), and its closing question, how each type of object
//! spreads over the sets of a cache and which types lie close together.
//!
//! # Terms
//! The *searched bytes* of an object are those its [`NodeLayout`](crate::NodeLayout) names. A line is *read* if it holds
//! searched bytes. The *neighbour* of a line is the other one of the aligned pair, which processors
//! fetch with it. Addresses are virtual: sets beyond a page's bits are those of a system that maps
//! the pages in order, as huge pages do.

use crate::Sets;
use crate::census::{Census, Kind, Object, Reads};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What is so for the objects of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// How many there are.
    pub objects: usize,
    /// Their bytes, on average.
    pub bytes: f64,
    /// The bytes of one that searches read, on average.
    pub hot_bytes: f64,
    /// The share of them with searched bytes in more than one line.
    pub straddling: f64,
    /// The lines read per visit, on average.
    pub lines_per_visit: f64,
    /// The lines that hold what a visit needs, on average: of links the one that is followed.
    pub lines_needed: f64,
    /// How many start at which byte of a line.
    pub offsets: BTreeMap<usize, usize>,
    /// How far behind an object the next one of its kind starts, and how often.
    pub strides: BTreeMap<usize, usize>,
    /// The share of all sets that lines read of these objects map to …
    pub set_coverage: f64,
    /// … and the share that as many lines would map to if they lay anywhere.
    pub expected_coverage: f64,
    /// The different lines read of these objects.
    pub lines: usize,
    /// Of the neighbours of lines read of these objects, the share that is read for any object, or
    /// belongs to the same one.
    pub useful_neighbours: f64,
    /// What the lines read of these objects hold.
    pub in_lines: Shares,
    /// What those neighbours hold that are not such lines themselves.
    pub in_neighbours: Shares,
    /// What the pages hold where these objects lie.
    pub in_pages: Shares,
    /// The 4 KiB pages that hold some of them.
    pub pages: usize,
    /// The aligned 2 MiB regions that do.
    pub regions: usize,
    /// Runs of such pages with no other in between: `pages / page_runs` is their mean length.
    pub page_runs: usize,
}

/// What memory holds, as shares of its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// By kind, in the order of [`Census::kinds`], those that are there at all. The rest is no object's.
    pub kinds: Vec<(String, f64)>,
    /// What searches read, of whatever kind.
    pub searched: f64,
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

/// Ranges that follow each other or are one apart, as one.
fn runs(sorted: &[usize]) -> usize {
    sorted.windows(2).filter(|pair| pair[1] != pair[0] + 1).count()
        + usize::from(!sorted.is_empty())
}

/// The bytes that two ranges share.
fn overlap(a: &RangeInclusive<usize>, b: &RangeInclusive<usize>) -> usize {
    let (first, last) = (*a.start().max(b.start()), *a.end().min(b.end()));
    (last + 1).saturating_sub(first)
}

/// What the units of so many bytes with these numbers, in ascending order, hold.
fn held(units: &[usize], unit: usize, kinds: &[Kind], objects: &[Object]) -> Shares {
    let (mut bytes, mut searched, mut next) = (vec![0; kinds.len()], 0, 0);
    for object in objects {
        while next < units.len() && units[next] < object.address / unit {
            next += 1;
        }
        let kind = &kinds[object.kind as usize];
        for number in &units[next..] {
            let lies = number * unit..=number * unit + (unit - 1);
            if *lies.start() > object.last() {
                break;
            }
            bytes[object.kind as usize] += overlap(&lies, &(object.address..=object.last()));
            kind.each_read(*object, |part| {
                searched += overlap(&lies, &(part.start..=part.end - 1));
            });
        }
    }
    let all = units.len() * unit;
    let there = kinds.iter().zip(bytes).filter(|(_, bytes)| *bytes > 0);
    Shares {
        kinds: there.map(|(kind, bytes)| (kind.name.clone(), share(bytes, all))).collect(),
        searched: share(searched, all),
    }
}

/// What is counted object by object.
#[derive(Default)]
struct Counts {
    bytes: usize,
    hot: usize,
    straddling: usize,
    lines: usize,
    needed: f64,
    offsets: BTreeMap<usize, usize>,
    strides: BTreeMap<usize, usize>,
}

impl Counts {
    fn of(objects: &[Object], kind: &Kind, line: usize) -> Self {
        let (mut counts, mut lines) = (Self::default(), Vec::new());
        for object in objects {
            kind.lines(*object, line, &mut lines);
            kind.each_read(*object, |part| counts.hot += part.len());
            counts.bytes += object.bytes as usize;
            counts.straddling += usize::from(lines.len() > 1);
            counts.lines += lines.len();
            counts.needed += match kind.reads {
                Reads::Described(layout) => layout.lines_needed(object.address % line, line),
                Reads::Hot(_) => lines.len() as f64,
            };
            *counts.offsets.entry(object.address % line).or_default() += 1;
        }
        for pair in objects.windows(2) {
            *counts.strides.entry(pair[1].address - pair[0].address).or_default() += 1;
        }
        counts
    }
}

impl Census {
    /// The lines of so many bytes that are read of objects of a kind, of all if there is none, in
    /// ascending order.
    fn read(&mut self, line: usize, of: Option<u32>) -> Vec<usize> {
        let (kinds, objects) = self.sorted();
        let (mut all, mut lines) = (Vec::new(), Vec::new());
        for object in objects.iter().filter(|object| of.is_none_or(|kind| object.kind == kind)) {
            kinds[object.kind as usize].lines(*object, line, &mut lines);
            all.extend_from_slice(&lines);
        }
        distinct(all)
    }

    /// The share of the sets of a cache that lines read of objects of that kind map to. O(n log n).
    pub fn coverage(&mut self, kind: &str, sets: &Sets) -> f64 {
        let kind = self.kinds.iter().position(|of| of.name == kind);
        let lines = kind.map_or_else(Vec::new, |kind| self.read(sets.line, Some(kind as u32)));
        share(distinct(lines.iter().map(|line| sets.of(*line))).len(), sets.sets)
    }

    /// What is so for the objects called `kind`, in a cache of that shape; nothing, if there are none.
    /// O(n log n).
    pub fn facts(&mut self, kind: &str, sets: &Sets) -> Option<Facts> {
        let number = self.kinds.iter().position(|of| of.name == kind)?;
        let (mine, all) = (self.read(sets.line, Some(number as u32)), self.read(sets.line, None));
        let (kinds, objects) = self.sorted();
        let of_kind = objects.iter().filter(|object| object.kind as usize == number);
        let of_kind: Vec<Object> = of_kind.copied().collect();
        let counts = Counts::of(&of_kind, &kinds[number], sets.line);
        let covered = distinct(mine.iter().map(|line| sets.of(*line))).len();
        let useful = mine.iter().filter(|line| all.binary_search(&(*line ^ 1)).is_ok()).count();
        let neighbours = mine.iter().map(|line| line ^ 1);
        let neighbours = distinct(neighbours.filter(|line| mine.binary_search(line).is_err()));
        let pages =
            distinct(of_kind.iter().flat_map(|object| object.address >> 12..=object.last() >> 12));
        let held = |units: &[usize], unit| held(units, unit, kinds, objects);
        Some(Facts {
            objects: of_kind.len(),
            bytes: share(counts.bytes, of_kind.len()),
            hot_bytes: share(counts.hot, of_kind.len()),
            straddling: share(counts.straddling, of_kind.len()),
            lines_per_visit: share(counts.lines, of_kind.len()),
            lines_needed: counts.needed / of_kind.len().max(1) as f64,
            offsets: counts.offsets,
            strides: counts.strides,
            set_coverage: share(covered, sets.sets),
            expected_coverage: 1.0 - (-(mine.len() as f64) / sets.sets as f64).exp(),
            lines: mine.len(),
            useful_neighbours: share(useful, mine.len()),
            in_lines: held(&mine, sets.line),
            in_neighbours: held(&neighbours, sets.line),
            in_pages: held(&pages, 1 << 12),
            regions: distinct(pages.iter().map(|page| page >> 9)).len(),
            page_runs: runs(&pages),
            pages: pages.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, NodeLayout, SetHash};

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
        let facts = in_turns(&[&SLIM], 4000).facts("slim", &SETS).unwrap();
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
        assert_eq!(
            (ratio(facts.bytes), ratio(facts.hot_bytes)),
            ("48.0000".into(), "24.0000".into())
        );
        assert_eq!(ratio(facts.lines_needed), "1.2500", "none of the fields are links");
        assert_eq!(ratio(facts.in_lines.searched), "0.5000");
        assert_eq!(facts.in_neighbours, Shares::default(), "all lines are read");
    }

    #[test]
    fn what_lies_beside_nodes_is_told_by_kind() {
        let mut census = in_turns(&[&NODE, &COLD], 10_000);
        // Half of another line, and 1 GiB away nothing that counts.
        let noise = census.kind("noise", None);
        census.add_sized(noise, (1 << 30) + 10_000 * 128, 32);
        census.add_sized(noise, 1 << 31, 4096);
        let shares = |shares: &Shares| {
            let kinds = shares.kinds.iter();
            let kinds: Vec<_> = kinds.map(|(kind, share)| (kind.clone(), ratio(*share))).collect();
            (kinds, ratio(shares.searched))
        };
        let facts = census.facts("node", &SETS).unwrap();
        assert_eq!(
            shares(&facts.in_lines),
            (vec![("node".into(), "1.0000".into())], "0.3750".into())
        );
        let cold = ("descriptor".into(), "1.0000".into());
        assert_eq!(shares(&facts.in_neighbours), (vec![cold], "0.0000".into()));
        let (kinds, searched) = shares(&facts.in_pages);
        // 313 pages, of which the last is half full: 10 000 lines of 313 * 64 are nodes.
        let third = |share: &str| share.to_string();
        assert_eq!(
            kinds,
            [
                ("node".into(), third("0.4992")),
                ("descriptor".into(), third("0.4992")),
                ("noise".into(), third("0.0000")),
            ]
        );
        assert_eq!(searched, "0.1872");
        let noise = census.facts("noise", &SETS).unwrap();
        assert_eq!((noise.objects, noise.lines, ratio(noise.bytes)), (2, 65, "2064.0000".into()));
    }

    #[test]
    fn nodes_and_descriptors_in_turns_leave_half_of_the_sets() {
        let mut census = in_turns(&[&NODE, &COLD], 10_000);
        assert_eq!(census.kinds().collect::<Vec<_>>(), ["node", "descriptor"]);
        let facts = census.facts("node", &SETS).unwrap();
        assert_eq!(
            (ratio(facts.set_coverage), ratio(facts.useful_neighbours)),
            ("0.5000".into(), "0.0000".into())
        );
        assert_eq!(facts.strides, BTreeMap::from([(128, 9999)]));
        let alone = in_turns(&[&NODE], 10_000).facts("node", &SETS).unwrap();
        assert_eq!(
            (ratio(alone.set_coverage), ratio(alone.useful_neighbours)),
            ("1.0000".into(), "1.0000".into())
        );
        assert_eq!(census.facts("leaf", &SETS), None);
        assert_eq!(ratio(census.coverage("leaf", &SETS)), "0.0000");
        assert_eq!(ratio(census.coverage("node", &SETS)), "0.5000");
    }

    #[test]
    fn a_stride_of_three_lines_reaches_a_third_of_a_sliced_cache_and_all_of_another() {
        let mut census = in_turns(&[&NODE, &COLD, &COLD], 100_000);
        let sliced = Sets { line: 64, sets: 12 * 1024, hash: SetHash::Slices(12) };
        assert_eq!(ratio(census.facts("node", &sliced).unwrap().set_coverage), "0.3333");
        assert_eq!(ratio(census.facts("node", &SETS).unwrap().set_coverage), "1.0000");
        let mut spread = in_turns(&[&NODE, &COLD, &COLD, &COLD], 100_000);
        assert_eq!(ratio(spread.facts("node", &sliced).unwrap().set_coverage), "1.0000");
        assert_eq!(ratio(spread.facts("node", &SETS).unwrap().set_coverage), "0.2500");
        let mut pairs = in_turns(&[&NODE, &NODE, &COLD, &COLD], 100_000);
        assert_eq!(ratio(pairs.facts("node", &sliced).unwrap().set_coverage), "1.0000");
    }

    #[test]
    fn runs_of_pages_end_where_a_page_is_missing() {
        let mut census = Census::default();
        for page in [0, 1, 2, 5, 6, 600] {
            census.add(&NODE, page << 12);
        }
        census.add(&COLD, 3 << 12);
        let facts = census.facts("node", &SETS).unwrap();
        assert_eq!((facts.pages, facts.page_runs, facts.regions), (6, 3, 2));
    }
}
