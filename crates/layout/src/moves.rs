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
        let starts: Vec<(usize, usize)> = moved.collect();
        let at = starts.iter().zip(0..).map(|((old, _), at)| (*old, at)).collect();
        Self { starts, at, builds: Vec::new() }
    }

    /// Each object in which a lookup ended in half a line, beside that from which it came, whose other
    /// child it is at most; all others apart, in as many bytes.
    pub fn beside_parents(census: &mut Census, paths: &Paths, bytes: usize) -> Self {
        let mut moves = Self::apart(census, |_, _| bytes);
        let blocks = FIRST + NEXT_KIND * census.kinds.len();
        for (number, (parent, end)) in paths.last_steps().into_iter().enumerate() {
            let block = blocks + number * 2 * bytes;
            moves.put(parent, block);
            moves.put(end, block + bytes);
        }
        moves
    }

    fn put(&mut self, old: usize, new: usize) {
        if let Some(at) = self.at.get(&old) {
            self.starts[*at as usize].1 = new;
        }
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
    fn ends_move_to_where_lookups_come_from() {
        let (mut census, mut paths) = (Census::default(), Paths::default());
        let nodes = [0x1000, 0x1020, 0x1040, 0x1060, 0x1080];
        for address in nodes {
            census.add(&FIXED, address);
        }
        for end in [2, 3] {
            let path = [nodes[0], nodes[4]].into_iter().flat_map(|node| FIXED.passed(at(node), 0));
            paths.add(&path.chain(FIXED.ended(at(nodes[end]))).collect::<Vec<_>>());
        }
        let moves = Moves::beside_parents(&mut census, &paths, 32);
        let to = |node: usize| moves.address(&FIXED.read(at(node), 0, 8, crate::record::Why::Step));
        assert_eq!(to(nodes[4]) + 32, to(nodes[2]), "the first that was met");
        assert_eq!(to(nodes[4]) % 64, 0);
        assert_eq!((to(nodes[0]), to(nodes[3])), (FIRST, FIRST + 3 * 32));
    }
}
