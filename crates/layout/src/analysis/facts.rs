//! Facts about the places of objects, computed from their addresses alone.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, USENIX ATC 2018. Section 3.2 finds such facts by hand:
//! straddling, half-used sets, useless neighbours, strides. The closing question asks how each type
//! of object spreads over the sets of a cache, and which types lie close together.
//!
//! # Terms
//! The *searched bytes* of an object are those its [`NodeLayout`](crate::NodeLayout) names. A line
//! is *read* if it contains searched bytes. The *neighbour* of a line is the other line of its
//! aligned pair, which processors fetch with it. Addresses are virtual. So the sets beyond a page's
//! bits are those of a system that maps pages in order, as huge pages are.

use crate::Sets;
use crate::analysis::census::{Census, Kind, Object, Reads};
use crate::analysis::runs::Runs;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// Facts about the objects of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The number of objects.
    pub objects: usize,
    /// The mean size of an object in bytes.
    pub bytes: f64,
    /// The mean number of bytes of an object that a search reads.
    pub hot_bytes: f64,
    /// The size of the smallest object in bytes.
    pub bytes_min: usize,
    /// The size of the largest object in bytes.
    pub bytes_max: usize,
    /// The median size in bytes, which a few large objects do not change.
    pub bytes_median: usize,
    /// The share of objects with searched bytes in more than one line.
    pub straddling: f64,
    /// The share of objects that straddle although their searched bytes would fit into one line.
    pub needless: f64,
    /// The share of objects that straddle but would not if they started a line.
    pub misaligned: f64,
    /// The mean number of lines with searched bytes of an object. A visit reads all of them, except
    /// that in a tower it reads the link of only one level.
    pub lines_per_visit: f64,
    /// The mean number of lines that contain the bytes a visit needs: of links, only the one it
    /// follows.
    pub lines_needed: f64,
    /// The number of objects by the byte of a line at which they start.
    pub offsets: BTreeMap<usize, usize>,
    /// How often each distance from an object to the next one of its kind occurs.
    pub strides: BTreeMap<usize, usize>,
    /// The share of all cache sets to which lines read of these objects map.
    pub set_coverage: f64,
    /// The share of all cache sets to which as many lines at random places would map.
    pub expected_coverage: f64,
    /// The number of distinct lines read of these objects.
    pub lines: usize,
    /// The share of the neighbours of these lines that is read for any object.
    pub useful_neighbours: f64,
    /// The contents of the lines read of these objects.
    pub in_lines: Shares,
    /// The contents of the neighbours that are not such lines themselves.
    pub in_neighbours: Shares,
    /// The contents of the pages that contain these objects.
    pub in_pages: Shares,
    /// The number of 4 KiB pages that contain some of these objects.
    pub pages: usize,
    /// The number of aligned 2 MiB regions that contain some of these objects.
    pub regions: usize,
    /// The number of runs of adjacent such pages: `pages / page_runs` is their mean length.
    pub page_runs: usize,
}

/// The contents of memory, as shares of its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// The share of each kind that occurs, in the order of [`Census::kinds`]. The rest belongs to
    /// no object.
    pub kinds: Vec<(String, f64)>,
    /// The share of searched bytes, of any kind.
    pub searched: f64,
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// The number of bytes that two ranges have in common.
fn overlap(a: &Range<usize>, b: &Range<usize>) -> usize {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// The share of the sets of a cache to which these lines map. There are at most `many` lines.
pub(crate) fn covered(lines: impl Iterator<Item = usize>, many: usize, sets: &Sets) -> f64 {
    let mut numbers = lines.map(|line| sets.of(line));
    let count = if many < sets.sets {
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    } else {
        let (mut met, mut left) = (vec![false; sets.sets], sets.sets);
        while left > 0 {
            let Some(set) = numbers.next() else { break };
            left -= usize::from(!std::mem::replace(&mut met[set], true));
        }
        sets.sets - left
    };
    share(count, sets.sets)
}

/// The number of leading items for which `is_so` holds; it holds for none of the others. The call
/// takes O(log of the result), so that a walk with short steps stays in the processor's caches.
fn leading<T>(items: &[T], is_so: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while items.get(step - 1).is_some_and(&is_so) {
        step *= 2;
    }
    let known = step / 2;
    known + items[known..items.len().min(step)].partition_point(is_so)
}

/// The numbers of the pages of `1 << bits` bytes that contain objects.
pub(crate) fn pages<'a>(objects: impl IntoIterator<Item = &'a Object>, bits: u32) -> Runs {
    let objects = objects.into_iter();
    objects.map(|object| object.start() >> bits..(object.last() >> bits) + 1).collect()
}

/// The counts that are made object by object.
#[derive(Default)]
struct Counts {
    bytes: usize,
    hot: usize,
    straddling: usize,
    needless: usize,
    misaligned: usize,
    lines: usize,
    needed: f64,
    offsets: BTreeMap<usize, usize>,
    strides: BTreeMap<usize, usize>,
}

impl Counts {
    fn of(objects: &[Object], kind: &Kind, line: usize) -> Self {
        let (mut counts, mut lines) = (Self::default(), Vec::new());
        // The lines needed by an object that starts at a given byte of a line.
        let mut needed: FxHashMap<(usize, u32), f64> = FxHashMap::default();
        for object in objects {
            kind.lines(*object, line, &mut lines);
            let (mut first, mut end) = (usize::MAX, 0);
            kind.each_read(*object, |part| {
                counts.hot += part.len();
                (first, end) = (first.min(part.start), end.max(part.end));
            });
            let count: usize = lines.iter().map(Range::len).sum();
            counts.bytes += object.bytes as usize;
            counts.straddling += usize::from(count > 1);
            counts.needless += usize::from(count > 1 && end - first <= line);
            counts.misaligned += usize::from(count > 1 && end - object.start() <= line);
            counts.lines += count;
            counts.needed += match kind.reads {
                Reads::Described(layout) => {
                    *needed.entry((object.address % line, object.before)).or_insert_with(|| {
                        layout.lines_needed_at(object.address, object.before as usize, line)
                    })
                }
                Reads::Hot(_) => count as f64,
            };
            *counts.offsets.entry(object.start() % line).or_default() += 1;
        }
        for pair in objects.windows(2) {
            *counts.strides.entry(pair[1].start() - pair[0].start()).or_default() += 1;
        }
        counts
    }
}

/// The objects of a census by kind, and facts about them, made by [`Census::survey`].
///
/// A kind is identified by its position in [`Census::kinds`].
#[derive(Debug)]
pub struct Survey<'a> {
    pub(crate) kinds: &'a [Kind],
    /// All objects, by address.
    pub(crate) all: &'a [Object],
    /// All objects by address, each with the largest end address of it and all objects before it.
    reach: Vec<(usize, Object)>,
    /// The objects kind by kind, each kind by address.
    by_kind: Vec<Object>,
    /// The index in `by_kind` where each kind begins, and the end of the last kind.
    starts: Vec<usize>,
    /// The shape of the cache that facts are about.
    sets: Sets,
    /// The lines read of any object.
    read: Runs,
    /// The facts computed so far, by kind.
    facts: Vec<OnceCell<Facts>>,
}

impl<'a> Survey<'a> {
    fn new(kinds: &'a [Kind], all: &'a [Object], sets: Sets) -> Self {
        let mut starts = vec![0; kinds.len() + 1];
        for object in all {
            starts[object.kind as usize + 1] += 1;
        }
        for kind in 0..kinds.len() {
            starts[kind + 1] += starts[kind];
        }
        let (mut by_kind, mut next) = (all.to_vec(), starts.clone());
        for object in all {
            let place = &mut next[object.kind as usize];
            by_kind[*place] = *object;
            *place += 1;
        }
        let reach = all.iter().scan(0, |reach, object| {
            *reach = object.end().max(*reach);
            Some((*reach, *object))
        });
        let (reach, read) = (reach.collect(), read(kinds, all, sets.line));
        let facts = vec![OnceCell::new(); kinds.len()];
        Self { kinds, all, reach, by_kind, starts, sets, read, facts }
    }

    /// The objects of a kind by address; empty if there is no such kind.
    pub(crate) fn objects(&self, kind: usize) -> &[Object] {
        if kind < self.kinds.len() {
            &self.by_kind[self.starts[kind]..self.starts[kind + 1]]
        } else {
            &[]
        }
    }

    /// The size of each object of a kind.
    pub fn sizes(&self, kind: usize) -> impl Iterator<Item = usize> {
        self.objects(kind).iter().map(|object| object.bytes as usize)
    }

    /// The addresses of the 4 KiB pages that contain objects of a kind, as disjoint ascending
    /// ranges.
    pub fn pages(&self, kind: usize) -> Vec<Range<usize>> {
        pages(self.objects(kind), 12).as_slice().iter().map(|run| bytes(run, 1 << 12)).collect()
    }

    /// The numbers of the lines read of objects of a kind.
    pub(crate) fn lines(&self, kind: usize) -> Runs {
        read(self.kinds, self.objects(kind), self.sets.line)
    }

    /// The share of the sets of a cache to which lines read of objects of a kind map. The cache
    /// must have the survey's line size.
    pub fn coverage(&self, kind: usize, sets: &Sets) -> f64 {
        let lines = self.lines(kind);
        covered(lines.numbers(), lines.len(), sets)
    }

    /// The contents of units of `unit` bytes.
    fn held(&self, units: &Runs, unit: usize) -> Shares {
        let (mut of_kinds, mut searched, mut next) = (FxHashMap::default(), 0, 0);
        for run in units.as_slice() {
            let lies = bytes(run, unit);
            next += leading(&self.reach[next..], |(reach, _)| *reach <= lies.start);
            let behind = self.reach[next..].iter().map(|(_, object)| object);
            for object in behind.take_while(|object| object.start() < lies.end) {
                let there = overlap(&lies, &(object.start()..object.end()));
                if there > 0 {
                    *of_kinds.entry(object.kind).or_default() += there;
                    let kind = &self.kinds[object.kind as usize];
                    kind.each_read(*object, |part| searched += overlap(&lies, &part));
                }
            }
        }
        let whole = units.len() * unit;
        let mut of_kinds: Vec<(u32, usize)> = of_kinds.into_iter().collect();
        of_kinds.sort_unstable();
        let name = |kind: u32| self.kinds[kind as usize].name.clone();
        Shares {
            kinds: of_kinds
                .iter()
                .map(|(kind, bytes)| (name(*kind), share(*bytes, whole)))
                .collect(),
            searched: share(searched, whole),
        }
    }

    /// The facts about the objects of a kind, for the cache of the survey, or `None` if there are
    /// no such objects. The first call takes O(n log n) in these objects and those on their pages;
    /// later calls are O(1).
    pub fn facts(&self, kind: usize) -> Option<&Facts> {
        let there = !self.objects(kind).is_empty();
        there.then(|| self.facts[kind].get_or_init(|| self.find(kind)))
    }

    fn find(&self, kind: usize) -> Facts {
        let (objects, sets) = (self.objects(kind), &self.sets);
        let mut sizes: Vec<usize> = self.sizes(kind).collect();
        let counts = Counts::of(objects, &self.kinds[kind], sets.line);
        let lines = self.lines(kind);
        let neighbours = lines.partners();
        let useless = neighbours.numbers().filter(|line| !self.read.contains(*line)).count();
        let pages = pages(objects, 12);
        Facts {
            objects: objects.len(),
            bytes: share(counts.bytes, objects.len()),
            hot_bytes: share(counts.hot, objects.len()),
            bytes_min: *sizes.iter().min().unwrap_or(&0),
            bytes_max: *sizes.iter().max().unwrap_or(&0),
            bytes_median: *sizes.select_nth_unstable(objects.len() / 2).1,
            straddling: share(counts.straddling, objects.len()),
            needless: share(counts.needless, objects.len()),
            misaligned: share(counts.misaligned, objects.len()),
            lines_per_visit: share(counts.lines, objects.len()),
            lines_needed: counts.needed / objects.len() as f64,
            offsets: counts.offsets,
            strides: counts.strides,
            set_coverage: covered(lines.numbers(), lines.len(), sets),
            expected_coverage: 1.0 - (-(lines.len() as f64) / sets.sets as f64).exp(),
            lines: lines.len(),
            useful_neighbours: share(lines.len() - useless, lines.len()),
            in_lines: self.held(&lines, sets.line),
            in_neighbours: self.held(&neighbours, sets.line),
            in_pages: self.held(&pages, 1 << 12),
            regions: pages.shifted(9).len(),
            page_runs: pages.as_slice().len(),
            pages: pages.len(),
        }
    }
}

/// The numbers of the lines read of objects.
pub(crate) fn read<'a>(
    kinds: &[Kind],
    objects: impl IntoIterator<Item = &'a Object>,
    line: usize,
) -> Runs {
    let (mut all, mut lines) = (Vec::new(), Vec::new());
    for object in objects {
        kinds[object.kind as usize].lines(*object, line, &mut lines);
        all.append(&mut lines);
    }
    all.into_iter().collect()
}

/// The addresses of a run of units of `unit` bytes. (The last unit of the address space ends a byte
/// early.)
fn bytes(run: &Range<usize>, unit: usize) -> Range<usize> {
    run.start * unit..run.end.saturating_mul(unit)
}

impl Census {
    /// Prepares facts about all kinds, for a cache of the shape `sets`. O(n log n).
    pub fn survey(&mut self, sets: &Sets) -> Survey<'_> {
        let (kinds, objects) = self.sorted();
        Survey::new(kinds, objects, *sets)
    }

    /// The position of a kind, by name.
    fn position(&self, kind: &str) -> Option<usize> {
        self.kinds.iter().position(|of| of.name == kind)
    }

    /// The share of the sets of a cache to which lines read of objects of a kind map. O(n log n).
    pub fn coverage(&mut self, kind: &str, sets: &Sets) -> f64 {
        self.position(kind).map_or(0.0, |kind| self.survey(sets).coverage(kind, sets))
    }

    /// The facts about the objects called `kind`, for a cache of the shape `sets`, or `None` if
    /// there are no such objects. O(n log n). For several kinds, one [`survey`](Self::survey) is
    /// faster.
    pub fn facts(&mut self, kind: &str, sets: &Sets) -> Option<Facts> {
        let kind = self.position(kind)?;
        self.survey(sets).facts(kind).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, NodeLayout, SetHash};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SETS: Sets = Sets { line: 64, sets: 2048, hash: SetHash::Modulo };

    const fn layout(kind: &'static str, size: usize, search: &'static [Field]) -> NodeLayout {
        NodeLayout { kind, size, align: 8, search, found: &[] }
    }

    const HOT: &[Field] = &[Field::new("key, children", 0, 24)];
    static NODE: NodeLayout = layout("node", 64, HOT);
    static SLIM: NodeLayout = layout("slim", 48, HOT);
    static COLD: NodeLayout = layout("descriptor", 64, &[]);

    /// A census of blocks of these layouts in turns, each adjacent to the previous one.
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
        // Half of another line, and an unrelated object 1 GiB away.
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
        // 313 pages, the last of which is half full: 10 000 of 313 * 64 lines are nodes.
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
        assert_eq!((noise.bytes_min, noise.bytes_median, noise.bytes_max), (32, 4096, 4096));
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

    /// The facts of the first kind, computed byte by byte, for comparison.
    fn by_bytes(objects: &[Object], hot: &[Vec<Range<usize>>]) -> (Vec<usize>, [Shares; 3], usize) {
        let reads = |object: &Object| {
            let (start, end) = (object.address, object.end());
            let hot = hot[object.kind as usize].iter();
            let parts =
                hot.map(move |part| start + part.start..start.saturating_add(part.end).min(end));
            parts.flatten().collect::<Vec<usize>>()
        };
        let lines = |kind: Option<u32>| -> BTreeSet<usize> {
            let of = objects.iter().filter(|object| kind.is_none_or(|kind| object.kind == kind));
            of.flat_map(|object| reads(object).into_iter().map(|byte| byte / 64)).collect()
        };
        let (mine, all) = (lines(Some(0)), lines(None));
        let beside: BTreeSet<usize> =
            mine.iter().map(|line| line ^ 1).filter(|line| !mine.contains(line)).collect();
        let of_kind = objects.iter().filter(|object| object.kind == 0);
        let on = of_kind.flat_map(|object| (object.address..object.end()).map(|byte| byte >> 12));
        let pages: BTreeSet<usize> = on.collect();
        let shares = |units: &BTreeSet<usize>, unit: usize| {
            let inside = |byte: &usize| units.contains(&(byte / unit));
            let part = |bytes: usize| share(bytes, units.len() * unit);
            let of = |kind: u32| {
                let objects = objects.iter().filter(|object| object.kind == kind);
                objects.flat_map(|object| object.address..object.end()).filter(inside).count()
            };
            let kinds = (0..3).map(|kind| (format!("kind {kind}"), of(kind)));
            let there = kinds.filter(|(_, bytes)| *bytes > 0);
            let searched = objects.iter().flat_map(reads).filter(inside).count();
            let kinds = there.map(|(kind, bytes)| (kind, part(bytes))).collect();
            Shares { kinds, searched: part(searched) }
        };
        let shares = [shares(&mine, 64), shares(&beside, 64), shares(&pages, 4096)];
        let useful = mine.iter().filter(|line| all.contains(&(*line ^ 1))).count();
        (mine.into_iter().collect(), shares, useful)
    }

    proptest! {
        #[test]
        fn facts_are_those_of_each_byte(
            objects in prop::collection::vec((0..3_u32, 0..30_000_usize, 1..300_usize), 1..60),
            hot in prop::collection::vec(prop::option::of((0..200_usize, 1..100_usize)), 3),
        ) {
            let mut census = Census::default();
            let whole = |part: &Option<(usize, usize)>| part.map_or_else(
                || std::iter::once(0..usize::MAX).collect(),
                |(start, bytes)| std::iter::once(start..start + bytes).collect(),
            );
            let hot: Vec<Vec<Range<usize>>> = hot.iter().map(whole).collect();
            for (number, hot) in hot.iter().enumerate() {
                census.kind(&format!("kind {number}"), Some(hot.clone()));
            }
            for (kind, address, bytes) in objects {
                census.push(kind, address, bytes);
            }
            let (lines, [in_lines, in_neighbours, in_pages], useful) = by_bytes(&census.objects, &hot);
            let Some(facts) = census.facts("kind 0", &SETS) else {
                prop_assert!(census.objects.iter().all(|object| object.kind != 0));
                return Ok(());
            };
            prop_assert_eq!(facts.lines, lines.len());
            prop_assert_eq!(facts.in_lines, in_lines);
            prop_assert_eq!(facts.in_neighbours, in_neighbours);
            prop_assert_eq!(facts.in_pages, in_pages);
            prop_assert_eq!(ratio(facts.useful_neighbours), ratio(share(useful, lines.len())));
            let sets: BTreeSet<usize> = lines.iter().map(|line| SETS.of(*line)).collect();
            prop_assert_eq!(ratio(facts.set_coverage), ratio(share(sets.len(), SETS.sets)));
        }
    }

    #[test]
    fn leading_items_are_counted() {
        for (len, count) in (0..40).flat_map(|len| (0..=len).map(move |count| (len, count))) {
            let items: Vec<usize> = (0..len).collect();
            assert_eq!(leading(&items, |item| *item < count), count, "of {len}");
        }
    }

    #[test]
    fn the_last_bytes_of_all_are_facts_too() {
        let mut census = Census::default();
        let high = census.kind("high", None);
        census.add_sized(high, usize::MAX - 100, 100);
        let facts = census.facts("high", &SETS).unwrap();
        assert_eq!((facts.lines, facts.pages, facts.regions, facts.objects), (2, 1, 1, 1));
    }
}
