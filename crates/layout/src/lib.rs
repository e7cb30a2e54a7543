//! Descriptions of object layouts.
//!
//! Every structure of silvics describes each kind of object it allocates once, as a constant
//! [`NodeLayout`]; size assertions, documentation and the tools that explain an index's speed use
//! that one description.
//!
//! ```
//! use silvics_layout::{Described, describe};
//!
//! #[repr(C)]
//! struct Node { key: u64, children: [usize; 2], value: u64 }
//! describe!(Node, "node", search: [key], links: [children; 2], found: [key, value]);
//!
//! const _: () = assert!(Node::LAYOUT.size == 32 && Node::LAYOUT.search_end() == 24);
//! // 32-byte slots start at 0 or 32 within a line: a search never crosses one.
//! assert_eq!(Node::LAYOUT.straddling(64), (0, 2));
//! assert_eq!(Node::LAYOUT.lines_per_visit(Node::LAYOUT.size, 64), 1.0);
//! ```

mod census;
mod class;
mod facts;
pub mod findings;
mod model;
mod moves;
mod pagemap;
mod paths;
pub mod record;
mod replay;
mod runs;
mod sets;
mod trace;
pub mod views;

pub use census::{Census, FREED, KindId, Placed};
pub use class::study_class;
pub use facts::{Facts, Shares, Survey};
pub use model::{
    Cache, Counts, Entries, Inclusion, Latencies, Level, Machine, MachineError, Model, PageSize,
    Reached, Tlb,
};
pub use moves::{Among, Moves, Slot};
pub use pagemap::{Frames, PagemapError};
pub use paths::{Collocation, Paths};
pub use record::Read;
pub use replay::Replay;
pub use sets::{SetHash, Sets};
pub use trace::{LineFault, Trace, TraceError, TraceKind, TraceObject};

/// The examples of that page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/layout.md")]
struct LayoutPage;

/// A part of an object that a search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the code.
    pub name: &'static str,
    /// Its first byte within the object.
    pub offset: usize,
    /// Its length in bytes.
    pub bytes: usize,
    /// Of how many pointers of one size it is made, of which a search follows one; 0 if it is something
    /// else.
    pub links: usize,
}

impl Field {
    /// `bytes` bytes from `offset` that are no links.
    pub const fn new(name: &'static str, offset: usize, bytes: usize) -> Self {
        Self { name, offset, bytes, links: 0 }
    }

    /// `links` pointers from `offset`.
    pub const fn links(name: &'static str, offset: usize, links: usize) -> Self {
        Self { name, offset, bytes: links * size_of::<usize>(), links }
    }
}

/// One kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLayout {
    /// What the structure calls it.
    pub kind: &'static str,
    /// Bytes of an object; for objects of several sizes, of the smallest.
    pub size: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// What a search reads of an object it passes through, in the order it reads it. Links are loaded
    /// together, so that none waits for the comparison of keys, though one is followed.
    pub search: &'static [Field],
    /// What a search reads of an object in which it ends.
    pub found: &'static [Field],
}

/// A type whose layout is described. [`describe!`] implements it.
pub trait Described {
    /// The description.
    const LAYOUT: NodeLayout;

    /// The same as a reference.
    fn layout() -> &'static NodeLayout {
        &Self::LAYOUT
    }
}

/// Describes a type: the name of its kind; the fields that a search reads of objects it passes
/// through, those that are `links` and how many pointers each holds, and the fields that it reads of
/// the object in which it ends.
///
/// Implements [`Described`]; see the [crate](crate) for an example.
#[macro_export]
macro_rules! describe {
    ($type:ty, $kind:literal, search: [$($field:ident),*], links: [$($link:ident; $count:literal),*],
     found: [$($found:ident),*]) => {
        impl $crate::Described for $type {
            const LAYOUT: $crate::NodeLayout = $crate::NodeLayout::of::<Self>(
                $kind,
                &[
                    $($crate::Field::new(
                        stringify!($field),
                        ::core::mem::offset_of!(Self, $field),
                        $crate::field_bytes(|object: &Self| &object.$field),
                    ),)*
                    $({
                        const BYTES: usize = $crate::field_bytes(|object: &$type| &object.$link);
                        const { assert!(BYTES == $count * size_of::<usize>(), "links are words") };
                        $crate::Field::links(
                            stringify!($link),
                            ::core::mem::offset_of!(Self, $link),
                            $count,
                        )
                    },)*
                ],
                &[$($crate::Field::new(
                    stringify!($found),
                    ::core::mem::offset_of!(Self, $found),
                    $crate::field_bytes(|object: &Self| &object.$found),
                ),)*],
            );
        }
    };
}

/// The bytes of a field, named by a function that borrows it.
#[doc(hidden)]
pub const fn field_bytes<T, F>(_field: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

impl NodeLayout {
    /// The layout of `T`: what a search reads of objects it passes through, and of one it ends in.
    pub const fn of<T>(
        kind: &'static str,
        search: &'static [Field],
        found: &'static [Field],
    ) -> Self {
        Self { kind, size: size_of::<T>(), align: align_of::<T>(), search, found }
    }

    /// Pointers to other objects of the structure that a search may follow; for objects of several
    /// sizes, of the smallest.
    pub fn edges(&self) -> usize {
        self.search.iter().map(|field| field.links).sum()
    }

    /// One past the last byte a search reads.
    pub const fn search_end(&self) -> usize {
        let (mut end, mut at) = (0, 0);
        while at < self.search.len() {
            let field = self.search[at];
            if field.offset + field.bytes > end {
                end = field.offset + field.bytes;
            }
            at += 1;
        }
        end
    }

    /// The first byte a search reads.
    pub const fn search_start(&self) -> usize {
        let (mut start, mut at) = (self.size, 0);
        while at < self.search.len() {
            if self.search[at].offset < start {
                start = self.search[at].offset;
            }
            at += 1;
        }
        start
    }

    /// The bytes that searches read.
    pub fn hot_bytes(&self) -> usize {
        self.search.iter().map(|field| field.bytes).sum()
    }

    /// The lines of `line` bytes that one visit of a search touches, on average over objects that lie
    /// `stride` bytes apart from a line's start on.
    pub fn lines_per_visit(&self, stride: usize, line: usize) -> f64 {
        let (mut lines, mut starts, mut offset) = (0, 0, 0);
        loop {
            lines += self.lines_at(offset, line);
            starts += 1;
            offset = (offset + stride) % line;
            if offset == 0 {
                return lines as f64 / f64::from(starts);
            }
        }
    }

    /// The lines of `line` bytes that one visit touches of an object that starts `offset` bytes after
    /// a line's start.
    pub fn lines_at(&self, offset: usize, line: usize) -> usize {
        let mut lines = Vec::new();
        for field in self.search {
            let first = offset + field.offset;
            lines.extend(first / line..(first + field.bytes).div_ceil(line));
        }
        lines.sort_unstable();
        lines.dedup();
        lines.len()
    }

    /// The lines of `line` bytes that hold what a search needs of an object at that offset in a line: of
    /// the links the one that it follows, on average over all of them.
    pub fn lines_needed(&self, offset: usize, line: usize) -> f64 {
        self.lines_needed_at(offset, 0, line)
    }

    /// The same at an address before which `before` bytes of links lie, one level of a tower below the
    /// other.
    pub(crate) fn lines_needed_at(&self, address: usize, before: usize, line: usize) -> f64 {
        let lines_of = |start: usize, bytes: usize| start / line..(start + bytes).div_ceil(line);
        let (links, above) = (self.edges().max(1), before / size_of::<usize>());
        let lines = |link: usize| {
            let needed = self.parts(link).filter(|(.., needed)| *needed);
            let mut lines: Vec<usize> =
                needed.flat_map(|(start, bytes, _)| lines_of(address + start, bytes)).collect();
            if let Some(above) = (link + 1).checked_sub(links).filter(|above| *above > 0) {
                lines.extend(lines_of(address - above * size_of::<usize>(), size_of::<usize>()));
            }
            lines.sort_unstable();
            lines.dedup();
            lines.len()
        };
        (0..links + above).map(lines).sum::<usize>() as f64 / (links + above) as f64
    }

    /// Of objects laid end to end from a line's start, how many of how many have search bytes in
    /// two lines of `line` bytes: the share after which the pattern repeats.
    pub const fn straddling(&self, line: usize) -> (usize, usize) {
        let (first, last) = (self.search_start(), self.search_end().saturating_sub(1));
        let (mut crossing, mut of, mut offset) = (0, 0, 0);
        loop {
            if (offset + first) / line != (offset + last) / line {
                crossing += 1;
            }
            of += 1;
            offset = (offset + self.size) % line;
            if offset == 0 {
                return (crossing, of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn layout(size: usize, search: &'static [Field]) -> NodeLayout {
        NodeLayout { kind: "node", size, align: 8, search, found: &[] }
    }

    #[test]
    fn a_quarter_of_48_byte_nodes_straddle_and_no_64_byte_ones() {
        // Arbel-Raviv, Brown and Morrison, USENIX ATC 2018: one block in four crosses.
        const SEARCH: &[Field] = &[Field::new("key, left, right", 0, 24)];
        assert_eq!(layout(48, SEARCH).straddling(64), (1, 4));
        assert_eq!(layout(64, SEARCH).straddling(64), (0, 1));
        assert_eq!(layout(32, SEARCH).straddling(64), (0, 2));
        assert_eq!(layout(24, SEARCH).straddling(64), (2, 8));
    }

    #[test]
    fn one_visit_in_four_touches_two_lines_of_a_48_byte_node() {
        const SEARCH: &[Field] = &[Field::new("key", 0, 8), Field::new("children", 8, 16)];
        let lines = |size: usize| layout(size, SEARCH).lines_per_visit(size, 64).to_string();
        assert_eq!((lines(48), lines(24)), ("1.25".into(), "1.25".into()));
        assert_eq!((lines(64), lines(32)), ("1".into(), "1".into()));
        assert_eq!(layout(48, SEARCH).hot_bytes(), 24);
    }

    #[test]
    fn one_visit_in_eight_needs_two_lines_of_a_48_byte_node() {
        const SEARCH: &[Field] = &[Field::new("key", 0, 8), Field::links("children", 8, 2)];
        let (node, starts) = (layout(48, SEARCH), [0, 16, 32, 48]);
        let lines = starts.map(|start| node.lines_needed(start, 64));
        assert_eq!(lines.map(|lines| lines.to_string()), ["1", "1", "1", "1.5"]);
        assert_eq!((node.edges(), node.hot_bytes()), (2, 24));
    }

    #[test]
    fn of_a_tower_one_link_is_needed() {
        const SEARCH: &[Field] = &[Field::links("tower", 0, 1), Field::new("key", 8, 8)];
        let node = layout(32, SEARCH);
        // Links at 48, 56 and 64, and the key at 72: on the two upper levels in two lines.
        assert_eq!(node.lines_needed_at(64, 16, 64).to_string(), (5.0 / 3.0).to_string());
        assert_eq!(node.lines_needed_at(80, 16, 64).to_string(), "1");
        assert_eq!(node.lines_needed_at(64, 0, 64).to_string(), "1");
    }

    #[repr(C)]
    struct Mine {
        lock: u32,
        key: u32,
        next: [usize; 3],
    }
    describe!(Mine, "mine", search: [key], links: [next; 3], found: [key, lock]);

    #[test]
    fn a_type_is_described_by_its_fields() {
        const MINE: NodeLayout = Mine::LAYOUT;
        assert_eq!((MINE.kind, MINE.size, MINE.align, MINE.edges()), ("mine", 32, 8, 3));
        assert_eq!(MINE.search, [Field::new("key", 4, 4), Field::links("next", 8, 3)]);
        assert_eq!(MINE.found, [Field::new("key", 4, 4), Field::new("lock", 0, 4)]);
        let mine = Mine { lock: 1, key: 2, next: [0; 3] };
        assert_eq!((mine.lock, mine.key, mine.next), (1, 2, [0; 3]));
    }

    #[test]
    fn the_search_span_covers_scattered_fields() {
        const SEARCH: &[Field] = &[Field::new("version", 104, 8), Field::new("key", 8, 8)];
        let layout = layout(112, SEARCH);
        assert_eq!((layout.search_start(), layout.search_end()), (8, 112));
        assert_eq!(layout.lines_at(0, 64), 2);
    }
}
