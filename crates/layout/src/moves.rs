//! Layouts that are not there: where objects would lie, so that recorded reads can be replayed as if they
//! did.

use crate::census::Census;
use crate::record::Read;
use crate::{Field, NodeLayout, Paths};
use rustc_hash::FxHashMap;

/// Where objects would lie.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// From where to where, by ascending old address …
    starts: Vec<(usize, usize)>,
    /// … and where in that list.
    at: FxHashMap<usize, u32>,
    /// What objects of these layouts would look like.
    builds: Vec<(&'static NodeLayout, &'static NodeLayout)>,
}

/// Far from all that programs map, and from where the objects of the next kind go.
const FIRST: usize = 1 << 56;
const NEXT_KIND: usize = 1 << 44;

impl Moves {
    /// Each kind in memory of its own, its objects one after the other in the order of their addresses,
    /// as far apart as `stride` says for a kind and its bytes.
    pub fn apart(census: &mut Census, stride: impl Fn(&str, usize) -> usize) -> Self {
        let (kinds, objects) = census.sorted();
        let mut next: Vec<usize> = (0..kinds.len()).map(|kind| FIRST + kind * NEXT_KIND).collect();
        let moved = objects.iter().map(|object| {
            let kind = object.kind as usize;
            let start = next[kind];
            next[kind] += stride(&kinds[kind].name, object.bytes as usize);
            (object.address, start)
        });
        Self::new(moved.collect())
    }

    /// Every object a few bytes further on: as few of a line's as bring most of the objects in which
    /// lookups end into the line of that from which they come.
    pub fn beside_parents(census: &mut Census, paths: &Paths, line: usize) -> Self {
        let steps = paths.last_steps();
        let together = |shift: usize| {
            let line_of = |object: usize| (object + shift) / line;
            steps.iter().filter(|(parent, end)| line_of(*parent) == line_of(*end)).count()
        };
        let shifts = (0..line).step_by(size_of::<usize>());
        let shift = shifts.rev().max_by_key(|shift| together(*shift)).unwrap_or(0);
        let (_, objects) = census.sorted();
        let starts = objects.iter().map(|object| (object.address, object.address + shift));
        Self::new(starts.collect())
    }

    fn new(starts: Vec<(usize, usize)>) -> Self {
        let at = starts.iter().zip(0..).map(|((old, _), at)| (*old, at)).collect();
        Self { starts, at, builds: Vec::new() }
    }

    /// The same for objects that look like those of another build, kind by kind.
    #[must_use]
    pub fn built(mut self, builds: Vec<(&'static NodeLayout, &'static NodeLayout)>) -> Self {
        self.builds = builds;
        self
    }

    /// From where to where the object moves that starts there, or in which that lies.
    pub(crate) fn start(&self, object: usize) -> Option<(usize, usize)> {
        if let Some(at) = self.at.get(&object) {
            return Some(self.starts[*at as usize]);
        }
        // A leaf in its parent's block has an address behind the block's.
        let at = self.starts.partition_point(|start| start.0 <= object).checked_sub(1)?;
        let (old, new) = self.starts[at];
        (object - old < WITHIN).then_some((old, new))
    }

    /// Where a read would be. What is of no object that was moved is where it is.
    pub fn address(&self, read: &Read) -> usize {
        self.address_in(self.start(read.object), read)
    }

    /// The same for a read of an object of which it is known where it moves.
    pub(crate) fn address_in(&self, start: Option<(usize, usize)>, read: &Read) -> usize {
        let Some((old, new)) = start else { return read.address };
        new.wrapping_add(self.offset(read.layout, read.address.wrapping_sub(old)))
    }

    /// Where in an object of the other build a byte would be.
    fn offset(&self, layout: &NodeLayout, offset: usize) -> usize {
        let Some((from, to)) = self.builds.iter().find(|(from, _)| *from == layout) else {
            return offset;
        };
        let fields = |layout: &NodeLayout| layout.search.iter().chain(layout.found);
        let within = |field: &&Field| (field.offset..field.offset + field.bytes).contains(&offset);
        let there = fields(from).find(within).and_then(|field| {
            let same = fields(to).find(|other| other.name == field.name)?;
            Some(same.offset + (offset - field.offset))
        });
        there.unwrap_or(offset.min(to.size.saturating_sub(size_of::<usize>())))
    }
}

/// How far behind an object's start one lies that is part of it.
const WITHIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: &[Field] = &[Field::new("key", 0, 8), Field::links("children", 48, 2)];
    static BASELINE: NodeLayout = NodeLayout {
        kind: "node",
        size: 96,
        align: 8,
        search: WIDE,
        found: &[Field::new("key", 0, 8), Field::new("value", 88, 8)],
    };
    static FIXED: NodeLayout = NodeLayout {
        kind: "node",
        size: 32,
        align: 8,
        search: &[Field::new("key", 0, 8), Field::links("children", 8, 2)],
        found: &[Field::new("key", 0, 8), Field::new("value", 24, 8)],
    };
    static ROW: NodeLayout =
        NodeLayout { kind: "row", size: 64, align: 8, search: &[], found: &[] };

    fn mixed() -> Census {
        let mut census = Census::default();
        for number in 0..4 {
            census.add(&BASELINE, 0x1000 + number * 160);
            census.add(&ROW, 0x1000 + number * 160 + 96);
        }
        census
    }

    fn at(address: usize) -> *const u8 {
        std::ptr::without_provenance(address)
    }

    #[test]
    fn kinds_move_apart_in_their_order() {
        let moves = Moves::apart(&mut mixed(), |kind, bytes| {
            assert_eq!(bytes, if kind == "node" { 96 } else { 64 });
            128
        });
        let third = BASELINE.read(at(0x1000 + 2 * 160), 88, 8, crate::record::Why::Found);
        assert_eq!(moves.address(&third), FIRST + 2 * 128 + 88);
        let row = ROW.read(at(0x1000 + 96), 0, 8, crate::record::Why::Step);
        assert_eq!(moves.address(&row), FIRST + NEXT_KIND);
        let unknown = ROW.read(at(0x900), 8, 8, crate::record::Why::Step);
        let beyond = ROW.read(at(0x9000), 8, 8, crate::record::Why::Step);
        assert_eq!((moves.address(&unknown), moves.address(&beyond)), (0x908, 0x9008));
    }

    #[test]
    fn objects_are_read_as_another_build_has_them() {
        let moves = Moves::apart(&mut mixed(), |_, _| 32).built(vec![(&BASELINE, &FIXED)]);
        let second = at(0x1000 + 160);
        let reads = BASELINE.passed(second, 1).chain(BASELINE.ended(second));
        let offsets: Vec<usize> = reads.map(|read| moves.address(&read) - FIRST).collect();
        assert_eq!(offsets, [32, 32 + 8, 32 + 16, 32, 32 + 24]);
        let other = BASELINE.read(second, 40, 8, crate::record::Why::Again);
        assert_eq!(moves.address(&other) - FIRST, 32 + 24, "the last word, if nothing is known");
    }

    #[test]
    fn all_move_as_far_as_brings_ends_to_where_lookups_come_from() {
        let (mut census, mut paths) = (Census::default(), Paths::default());
        // Pairs of half a line each that lie across lines, but for the last one.
        let pairs: Vec<(usize, usize)> =
            (0..10).map(|n| (0x1020 + n * 64, 0x1040 + n * 64)).chain([(0x8000, 0x8020)]).collect();
        for (end, parent) in &pairs {
            census.add(&FIXED, *end);
            census.add(&FIXED, *parent);
            let path = FIXED.passed(at(*parent), 0).chain(FIXED.ended(at(*end)));
            paths.add(&path.collect::<Vec<_>>());
        }
        let moves = Moves::beside_parents(&mut census, &paths, 64);
        let to = |node: usize| moves.address(&FIXED.read(at(node), 8, 8, crate::record::Why::Step));
        assert!(pairs[..10].iter().all(|(end, parent)| to(*end) / 64 == to(*parent) / 64));
        assert_eq!(to(0x1020), 0x1020 + 32 + 8);
        let (lucky, none) = (pairs[10], &mut Census::default());
        assert_ne!(to(lucky.0) / 64, to(lucky.1) / 64);
        assert!(Moves::beside_parents(none, &Paths::default(), 64).starts.is_empty());
    }
}
