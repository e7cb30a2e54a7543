//! Lines of memory, byte by byte.

use crate::analysis::runs::{Runs, merge};
use crate::{Census, Paths};
use std::ops::Range;

/// The memory around typical objects of a kind, as aligned pairs of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The bytes of a pair.
    pub bytes: usize,
    /// The pairs, by ascending address. Long runs of pairs without objects of the kind are left
    /// out.
    pub pairs: Vec<Pair>,
}

/// Two lines that are fetched together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The address of the first byte.
    pub address: usize,
    /// The parts of objects of all kinds in the pair, by ascending address.
    pub parts: Vec<Part>,
}

/// The bytes of one object in a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The position of its kind in [`Census::kinds`].
    pub kind: usize,
    /// The bytes, counted from the first byte of the pair.
    pub bytes: Range<usize>,
    /// The bytes that a search reads: disjoint, not touching, by ascending address.
    pub searched: Vec<Range<usize>>,
    /// Whether the object begins in this pair.
    pub begins: bool,
    /// Whether the object ends in this pair.
    pub ends: bool,
    /// Whether searched bytes of the object lie in more than one line.
    pub straddles: bool,
}

/// The number of candidate windows, spread from one end of the kind's memory to the other.
const CANDIDATES: usize = 33;
/// The longest run of pairs without objects of the kind that is shown.
const SHOWN: usize = 2;

/// The position in `pairs`, which are ascending, at which a typical window of `most` pairs begins:
/// the candidate nearest to the middle among those with the median span.
fn typical(pairs: &Runs, most: usize) -> usize {
    let at = |n: usize| pairs.numbers().nth(n).unwrap_or_default();
    let Some(last) = pairs.len().checked_sub(most).filter(|_| most > 0) else { return 0 };
    let (start, middle) = (|n: usize| n * last / (CANDIDATES - 1), CANDIDATES / 2);
    let span = |n: usize| at(start(n) + most - 1) - at(start(n));
    let mut spans: Vec<usize> = (0..CANDIDATES).map(span).collect();
    spans.sort_unstable();
    let usual = (0..CANDIDATES).filter(|n| span(*n) == spans[middle]);
    usual.min_by_key(|n| n.abs_diff(middle)).map_or(0, start)
}

impl Window {
    /// The last steps of lookups inside this window: the address of an object from which lookups
    /// came to the one they ended in, and of the nearest such end. Both begin in one pair or in
    /// neighbouring pairs.
    pub fn last_steps(&self, paths: &Paths) -> Vec<(usize, usize)> {
        let begin = |pair: &Pair| {
            let begin = pair.parts.iter().filter(|part| part.begins);
            begin.map(|part| pair.address + part.bytes.start).collect::<Vec<_>>()
        };
        let begins: Vec<(usize, Vec<usize>)> =
            self.pairs.iter().map(|pair| (pair.address, begin(pair))).collect();
        let mut steps = Vec::new();
        for (at, (_, parents)) in begins.iter().enumerate() {
            // A row of the window is only a neighbour if no pair was left out in between.
            let near = &begins[at.saturating_sub(1)..(at + 2).min(begins.len())];
            let bytes = self.bytes;
            let near = near.iter().filter(|pair| pair.0.abs_diff(begins[at].0) <= bytes);
            let near: Vec<usize> = near.flat_map(|pair| pair.1.iter().copied()).collect();
            for parent in parents {
                let end = paths.nearest_end(*parent);
                steps.extend(end.filter(|end| near.contains(end)).map(|end| (*parent, end)));
            }
        }
        steps
    }
}

impl Census {
    /// At most `most` pairs of lines of `line` bytes around typical objects of the kinds called
    /// `kind`; none if there are no such objects. O(n log n).
    pub fn window(&mut self, kind: &str, line: usize, most: usize) -> Window {
        let pair = 2 * line;
        let (kinds, objects) = self.sorted();
        let named: Vec<bool> = kinds.iter().map(|of| of.name == kind).collect();
        let of_kind = objects.iter().filter(|object| named[object.kind as usize]);
        let held: Runs =
            of_kind.map(|object| object.start() / pair..object.last() / pair + 1).collect();
        let mut shown: Vec<usize> = Vec::new();
        for number in held.numbers().skip(typical(&held, most)).take(most) {
            match shown.last() {
                Some(last) if number - last <= SHOWN + 1 => shown.extend(last + 1..=number),
                _ => shown.push(number),
            }
        }
        shown.truncate(most);
        let mut lines = Vec::new();
        let mut in_pair = |number: usize| {
            // The last byte of the address space belongs to no object.
            let lies = number * pair..(number * pair).saturating_add(pair);
            let within = |part: Range<usize>| {
                part.start.max(lies.start) - lies.start
                    ..part.end.min(lies.end).max(lies.start) - lies.start
            };
            let first = objects.partition_point(|object| object.last() < lies.start);
            let there = objects[first..].iter().take_while(|object| object.start() < lies.end);
            let parts = there.map(|object| {
                let (of, mut searched) = (&kinds[object.kind as usize], Vec::new());
                of.each_read(*object, |part| {
                    if part.start < lies.end && part.end > lies.start {
                        searched.push(within(part));
                    }
                });
                merge(&mut searched);
                of.lines(*object, line, &mut lines);
                Part {
                    kind: object.kind as usize,
                    bytes: within(object.start()..object.last().saturating_add(1)),
                    searched,
                    begins: object.start() >= lies.start,
                    ends: object.last() < lies.end,
                    straddles: lines.iter().map(Range::len).sum::<usize>() > 1,
                }
            });
            Pair { address: lies.start, parts: parts.collect() }
        };
        Window { bytes: pair, pairs: shown.into_iter().map(&mut in_pair).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{COLD, NODE, SLIM, START, in_turns};
    use super::*;
    use crate::record::Why;

    fn part(kind: usize, bytes: Range<usize>, searched: Range<usize>) -> Part {
        let searched = Some(searched).filter(|range| !range.is_empty()).into_iter().collect();
        Part { kind, bytes, searched, begins: true, ends: true, straddles: false }
    }

    #[test]
    fn parts_are_exact_to_the_byte() {
        // The second object has its key in line 0 and a link in line 1; the third lies in both
        // pairs.
        let window = in_turns(&[&SLIM], 4).window("slim", 64, 8);
        let [first, second] = &window.pairs[..] else { panic!("{window:?}") };
        assert_eq!((first.address, second.address), (START, START + 128));
        assert_eq!(
            first.parts,
            [
                part(0, 0..48, 0..24),
                Part { straddles: true, ..part(0, 48..96, 48..72) },
                Part { ends: false, ..part(0, 96..128, 96..120) },
            ]
        );
        let rest = Part { begins: false, ..part(0, 0..16, 0..0) };
        assert_eq!(second.parts, [rest, part(0, 16..64, 16..40)]);
    }

    #[test]
    fn nothing_and_one_object_are_shown_as_they_are() {
        let mut census = Census::default();
        assert_eq!(census.window("node", 64, 32).pairs, []);
        census.add(&NODE, 0x10c0);
        assert_eq!(census.window("slim", 64, 32).pairs, []);
        let parts = vec![part(0, 64..128, 64..88)];
        let pairs = vec![Pair { address: 0x1080, parts }];
        assert_eq!(census.window("node", 64, 32), Window { bytes: 128, pairs });
    }

    #[test]
    fn other_kinds_stand_beside_and_long_gaps_are_left_out() {
        let mut census = in_turns(&[&NODE, &COLD], 2);
        census.add(&NODE, START + 5 * 128);
        let row = census.kind("row", Some(Vec::new()));
        // The object ends in the last pair shown, and begins in none of them.
        census.add_sized(row, START + 6 * 128, 3 * 128 + 32);
        census.add(&NODE, START + 9 * 128 + 64);
        let addresses = |window: &Window| -> Vec<usize> {
            window.pairs.iter().map(|pair| (pair.address - START) / 128).collect()
        };
        let window = census.window("node", 64, 32);
        assert_eq!(addresses(&window), [0, 1, 5, 9], "three in a row hold no node");
        assert_eq!(window.pairs[0].parts[1], part(1, 64..128, 0..0));
        let rest = Part { begins: false, ..part(2, 0..32, 0..0) };
        assert_eq!(window.pairs[3].parts[0], rest);
        census.add(&NODE, START + 3 * 128);
        let window = census.window("node", 64, 32);
        assert_eq!(addresses(&window), [0, 1, 2, 3, 4, 5, 9]);
        assert_eq!(window.pairs[2].parts, []);
        assert_eq!(addresses(&census.window("node", 64, 3)).len(), 3);
    }

    #[test]
    fn overlapping_objects_and_empty_windows_are_no_trouble() {
        let mut census = Census::default();
        let row = census.kind("row", None);
        for (at, bytes) in [(0, 4096), (8, 16), (512, 8), (600, 1000)] {
            census.add_sized(row, START + at, bytes);
        }
        assert_eq!(census.window("row", 64, 0).pairs, []);
        assert_eq!(census.window("row", 64, 4).pairs.len(), 4);
    }

    #[test]
    fn windows_into_large_objects_and_up_to_the_last_byte_are_as_small() {
        let mut census = Census::default();
        let (array, high) = (census.kind("array", None), census.kind("high", None));
        for number in 0..1024 {
            census.add_sized(array, number << 32, (1 << 32) - 4096);
        }
        census.add_sized(high, usize::MAX - 100, 100);
        let window = census.window("array", 64, 4);
        // The middle is where the 512th object ends: two of its pairs are shown, and two of the
        // next object's.
        let pairs = [4096 + 256, 4096 + 128, 0].map(|before| (512_usize << 32) - before);
        let addresses: Vec<usize> = window.pairs.iter().map(|pair| pair.address).collect();
        assert_eq!(addresses[..3], pairs);
        for pair in &window.pairs {
            let [part] = &pair.parts[..] else { panic!("{pair:?}") };
            assert_eq!((&part.bytes, part.searched.first()), (&(0..128), Some(&(0..128))));
            assert!(part.straddles);
        }
        let window = census.window("high", 64, 4);
        let last = Part { straddles: true, ..part(1, 27..127, 27..127) };
        assert_eq!(window.pairs, [Pair { address: usize::MAX - 127, parts: vec![last] }]);
    }

    #[test]
    fn last_steps_lead_to_neighbours() {
        let mut census = in_turns(&[&NODE], 8);
        census.add(&NODE, START + 20 * 128);
        let mut paths = Paths::default();
        let at = std::ptr::without_provenance::<u8>;
        let node = |number: usize| START + number * 64;
        // Steps within a pair, to the next pair, back, too far, and across the pairs left out.
        let steps = [(0, 1), (3, 4), (5, 2), (7, 0), (6, 40)];
        for (parent, end) in steps {
            let ended = NODE.read(at(node(end)), 0, 8, Why::Found);
            paths.add(&NODE.passed(at(node(parent)), 0).chain([ended]).collect::<Vec<_>>());
        }
        let window = census.window("node", 64, 32);
        assert_eq!(window.pairs.len(), 5);
        let near = [(0, 1), (3, 4), (5, 2)].map(|(parent, end)| (node(parent), node(end)));
        assert_eq!(window.last_steps(&paths), near);
    }

    #[test]
    fn the_usual_pattern_is_shown() {
        // Dense at both ends; in between, where most windows lie, one in four pairs.
        let dense = 0..100;
        let sparse = (100..2100).map(|n| 100 + (n - 100) * 4);
        let pairs: Vec<usize> = dense.chain(sparse).chain(9000..9100).collect();
        let runs = |pairs: &[usize]| pairs.iter().map(|pair| *pair..pair + 1).collect::<Runs>();
        let start = typical(&runs(&pairs), 32);
        assert_eq!(pairs[start + 31] - pairs[start], 31 * 4);
        // The candidate is number 16 of 0..=32 over 2200 - 32 places.
        assert_eq!(start, 16 * (2200 - 32) / 32);
        let few = [&pairs[..32], &pairs[..5], &[]];
        assert_eq!(few.map(|pairs| typical(&runs(pairs), 32)), [0, 0, 0]);
    }
}
