//! Hypothetical layouts: the places where objects would lie, so that recorded reads can be replayed
//! as if they lay there.

use crate::analysis::PAGE;
use crate::analysis::census::Census;
use crate::record::Read;
use crate::{Field, NodeLayout, Paths};
use rustc_hash::FxHashMap;

/// A mapping from the places of objects to hypothetical ones.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// The moves, by ascending old address.
    starts: Vec<Start>,
    /// The index in `starts` of each old address.
    at: FxHashMap<usize, u32>,
    /// Pairs of layouts: objects of the first would look like objects of the second.
    builds: Vec<(&'static NodeLayout, &'static NodeLayout)>,
}

/// The move of one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    old: usize,
    new: usize,
    /// The bytes of the object from `old` on.
    bytes: usize,
}

/// The memory that a heap uses for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The bytes from the start of this slot to that of the next.
    pub bytes: usize,
    /// The objects that share memory with this one.
    pub among: Among,
}

/// The objects that lie side by side in a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Objects of one kind and one slot size, in memory of their own.
    Kind,
    /// Objects of one slot size, on 4 KiB pages of their own.
    Size,
    /// All objects.
    All,
}

/// The start of hypothetical memory, far from everything that programs map.
const FIRST: usize = 1 << 56;
/// The distance between the memory of one kind and that of the next.
const NEXT: usize = 1 << 44;

/// A heap that hands out ascending memory and never reuses any.
#[derive(Default)]
struct Bump<'a> {
    /// The end of the memory that all kinds share.
    shared: usize,
    /// The rest of the current page of each slot size in shared memory: its start and end.
    sizes: FxHashMap<usize, (usize, usize)>,
    /// The end of each kind's own memory, by kind and slot size.
    kinds: FxHashMap<(&'a str, usize), usize>,
}

impl<'a> Bump<'a> {
    fn take(&mut self, kind: &'a str, slot: Slot) -> usize {
        let bytes = slot.bytes;
        let next = match slot.among {
            Among::Kind => {
                let others = self.kinds.len();
                self.kinds.entry((kind, bytes)).or_insert((others + 1) * NEXT)
            }
            Among::Size => {
                let (next, end) = self.sizes.entry(bytes).or_default();
                if *next + bytes > *end {
                    *next = self.shared.next_multiple_of(PAGE);
                    *end = *next + bytes.next_multiple_of(PAGE);
                    self.shared = *end;
                }
                next
            }
            Among::All => &mut self.shared,
        };
        let start = FIRST + *next;
        *next += bytes;
        start
    }
}

impl Moves {
    /// Places objects as a heap would that hands out ascending memory without reuse, if it
    /// allocated them in the order of their addresses. `slot` returns the slot for a kind and a
    /// size. Freed blocks take the slots of their former kind. O(n log n).
    pub fn housed(census: &mut Census, slot: impl Fn(&str, usize) -> Slot) -> Self {
        let (kinds, objects) = census.sorted();
        let mut heap = Bump::default();
        let moved = objects.iter().map(|object| {
            let kind = &kinds[object.kind as usize];
            let kind = kind.freed.as_deref().unwrap_or(&kind.name);
            let start = heap.take(kind, slot(kind, object.bytes as usize));
            let new = start + object.before as usize;
            Start { old: object.address, new, bytes: object.end() - object.address }
        });
        Self::new(moved.collect())
    }

    /// Shifts all objects by a few bytes, less than a line. It chooses the shift that puts most
    /// objects in which lookups end into the line of the object they come from, and the smallest
    /// such shift.
    pub fn beside_parents(census: &mut Census, paths: &Paths, line: usize) -> Self {
        let steps = paths.last_steps();
        let together = |shift: usize| {
            let line_of = |object: usize| (object + shift) / line;
            steps.iter().filter(|(parent, end)| line_of(*parent) == line_of(*end)).count()
        };
        let shifts = (0..line).step_by(size_of::<usize>());
        let shift = shifts.rev().max_by_key(|shift| together(*shift)).unwrap_or(0);
        let (_, objects) = census.sorted();
        let starts = objects.iter().map(|object| {
            let (old, bytes) = (object.address, object.end() - object.address);
            Start { old, new: old + shift, bytes }
        });
        Self::new(starts.collect())
    }

    fn new(starts: Vec<Start>) -> Self {
        let at = starts.iter().zip(0..).map(|(start, at)| (start.old, at)).collect();
        Self { starts, at, builds: Vec::new() }
    }

    /// Adds changes of layout: objects of the first layout of a pair look like those of the second,
    /// which belongs to another build.
    #[must_use]
    pub fn built(mut self, builds: Vec<(&'static NodeLayout, &'static NodeLayout)>) -> Self {
        self.builds = builds;
        self
    }

    /// The move of the object that starts at `object` or contains it.
    pub(crate) fn start(&self, object: usize) -> Option<Start> {
        if let Some(at) = self.at.get(&object) {
            return Some(self.starts[*at as usize]);
        }
        // A leaf inside its parent's block has an address behind the block's start.
        let at = self.starts.partition_point(|start| start.old <= object).checked_sub(1)?;
        let start = self.starts[at];
        (object - start.old < start.bytes).then_some(start)
    }

    /// The hypothetical address of a read. A read of an object that does not move keeps its
    /// address.
    pub fn address(&self, read: &Read) -> usize {
        self.address_in(self.start(read.object), read)
    }

    /// The hypothetical address of a read of an object whose move is `start`.
    pub(crate) fn address_in(&self, start: Option<Start>, read: &Read) -> usize {
        let Some(Start { old, new, .. }) = start else { return read.address };
        new.wrapping_add(self.offset(read.layout, read.address.wrapping_sub(old)))
    }

    /// The offset in an object of the other build that corresponds to `offset` in one of `layout`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placed;
    use crate::record::Why;

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
        let moves = Moves::housed(&mut mixed(), |kind, bytes| {
            assert_eq!(bytes, if kind == "node" { 96 } else { 64 });
            Slot { bytes: 128, among: Among::Kind }
        });
        let third = BASELINE.read(at(0x1000 + 2 * 160), 88, 8, Why::Found);
        assert_eq!(moves.address(&third), FIRST + NEXT + 2 * 128 + 88);
        let row = ROW.read(at(0x1000 + 96), 0, 8, Why::Step);
        assert_eq!(moves.address(&row), FIRST + 2 * NEXT);
        let unknown = ROW.read(at(0x900), 8, 8, Why::Step);
        let beyond = ROW.read(at(0x9000), 8, 8, Why::Step);
        assert_eq!((moves.address(&unknown), moves.address(&beyond)), (0x908, 0x9008));
    }

    #[test]
    fn sizes_of_a_kind_move_apart() {
        let mut census = Census::default();
        let tower = census.kind("tower", None);
        (0..4).for_each(|n| census.add_sized(tower, 0x1000 + n * 96, 32 + n % 2 * 64));
        let own = |_: &str, bytes| Slot { bytes, among: Among::Kind };
        let moves = Moves::housed(&mut census, own);
        let to = |n: usize| moves.address(&ROW.read(at(0x1000 + n * 96), 0, 8, Why::Step)) - FIRST;
        assert_eq!([0, 1, 2, 3].map(to), [NEXT, 2 * NEXT, NEXT + 32, 2 * NEXT + 96]);
    }

    #[test]
    fn objects_of_one_class_stay_side_by_side_whatever_they_are() {
        let mut census = mixed();
        let free = census.freed("row");
        census.add_sized(free, 0x900, 64);
        let moves = Moves::housed(&mut census, |kind, bytes| {
            assert!(["node", "row"].contains(&kind), "{kind}");
            Slot { bytes: bytes.min(64), among: Among::Size }
        });
        let to = |object: usize| moves.address(&ROW.read(at(object), 0, 8, Why::Step)) - FIRST;
        let lie = [0x900, 0x1000, 0x1060, 0x10a0, 0x1100].map(to);
        assert_eq!(lie, [0, 64, 128, 192, 256]);
        // Objects of another class lie on pages of their own; without classes all lie one after the
        // other.
        let lies = |among, object: usize| {
            let moves = Moves::housed(&mut mixed(), |_, bytes| Slot { bytes, among });
            moves.address(&ROW.read(at(object), 0, 8, Why::Step)) - FIRST
        };
        assert_eq!([0x1060, 0x1100].map(|row| lies(Among::Size, row)), [PAGE, PAGE + 64]);
        assert_eq!([0x1060, 0x1100].map(|row| lies(Among::All, row)), [96, 96 + 160]);
        // 42 objects fit on a page.
        let mut census = Census::default();
        (0..43).for_each(|n| census.add(&BASELINE, n * 96));
        let moves = Moves::housed(&mut census, |_, bytes| Slot { bytes, among: Among::Size });
        let last = moves.address(&BASELINE.read(at(42 * 96), 0, 8, Why::Step));
        assert_eq!(last, FIRST + PAGE);
    }

    #[test]
    fn a_tower_moves_with_all_its_links() {
        let mut census = Census::default();
        for (address, before) in [(0x1010, 16), (0x1100, 0)] {
            let bytes = FIXED.size + before;
            census.place(Placed { layout: &FIXED, address, before, bytes });
        }
        let moves = Moves::housed(&mut census, |_, bytes| Slot { bytes, among: Among::All });
        let top = Read { address: 0x1000, ..FIXED.read(at(0x1010), 0, 8, Why::Step) };
        assert_eq!(moves.address(&top), FIRST);
        let next = FIXED.read(at(0x1100), 0, 8, Why::Step);
        assert_eq!(moves.address(&next), FIRST + 48);
    }

    #[test]
    fn objects_are_read_as_another_build_has_them() {
        let slot = |_: &str, _| Slot { bytes: 32, among: Among::Kind };
        let moves = Moves::housed(&mut mixed(), slot).built(vec![(&BASELINE, &FIXED)]);
        let second = at(0x1000 + 160);
        let reads = BASELINE.passed(second, 1).chain(BASELINE.ended(second));
        let offsets: Vec<usize> = reads.map(|read| moves.address(&read) - FIRST - NEXT).collect();
        assert_eq!(offsets, [32, 32 + 8, 32 + 16, 32, 32 + 24]);
        let other = BASELINE.read(second, 40, 8, Why::Again);
        assert_eq!(
            moves.address(&other) - FIRST - NEXT,
            32 + 24,
            "the last word, if nothing is known"
        );
    }

    #[test]
    fn all_move_as_far_as_brings_ends_to_where_lookups_come_from() {
        let (mut census, mut paths) = (Census::default(), Paths::default());
        // Pairs of half a line each that lie across lines, except for the last pair.
        let pairs: Vec<(usize, usize)> =
            (0..10).map(|n| (0x1020 + n * 64, 0x1040 + n * 64)).chain([(0x8000, 0x8020)]).collect();
        for (end, parent) in &pairs {
            census.add(&FIXED, *end);
            census.add(&FIXED, *parent);
            let path = FIXED.passed(at(*parent), 0).chain(FIXED.ended(at(*end)));
            paths.add(&path.collect::<Vec<_>>());
        }
        let moves = Moves::beside_parents(&mut census, &paths, 64);
        let to = |node: usize| moves.address(&FIXED.read(at(node), 8, 8, Why::Step));
        assert!(pairs[..10].iter().all(|(end, parent)| to(*end) / 64 == to(*parent) / 64));
        assert_eq!(to(0x1020), 0x1020 + 32 + 8);
        let (lucky, none) = (pairs[10], &mut Census::default());
        assert_ne!(to(lucky.0) / 64, to(lucky.1) / 64);
        assert!(Moves::beside_parents(none, &Paths::default(), 64).starts.is_empty());
    }
}
