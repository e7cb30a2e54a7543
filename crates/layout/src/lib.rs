//! Explains memory layout: where objects lie in memory, and what that costs a search.
//!
//! Every structure describes each kind of object it allocates once, as a constant [`NodeLayout`].
//! Size assertions, documentation and all tools below use that one description:
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
//!
//! # From a description to an explanation
//! 1. A [`Census`] collects the addresses of objects, of an index or of any program ([`Trace`]).
//! 2. A [`Survey`] of it computes [`Facts`] about each kind: straddling, strides, set coverage,
//!    useful neighbours, pages. [`Frames`] does so for physical addresses.
//! 3. [`findings`] names the layouts that are bad, with evidence and remedy. [`views`] draws
//!    memory.
//! 4. [`record`] collects what lookups read, and [`Paths`] summarises it.
//! 5. A [`Replay`] runs recorded lookups through the [`Model`] of a [`Machine`], with objects where
//!    they are or where [`Moves`] would put them. So it predicts the gain of a remedy.
//!
//! # Features
//! A structure needs the descriptions, [`Placed`] and [`record`], and no feature for them. All else
//! is the feature `analysis`, on by default. The indexes of silvics switch it off, so a program
//! that uses an index does not compile the census and the model.
//!
//! # Guarantees
//! Facts follow from addresses alone: two runs with the same addresses give the same facts. The
//! model is deterministic too, but it is a model. Its module documentation lists where it departs
//! from real machines.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "analysis")]
mod analysis;
mod class;
pub mod record;

#[cfg(feature = "analysis")]
pub use analysis::*;
pub use class::study_class;
pub use record::Read;

/// Compiles the examples of docs/layout.md.
#[cfg(all(doctest, feature = "analysis"))]
#[doc = include_str!("../../../docs/layout.md")]
struct LayoutPage;

/// A part of an object that a search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in the code.
    pub name: &'static str,
    /// The offset of the first byte within the object.
    pub offset: usize,
    /// The length in bytes.
    pub bytes: usize,
    /// The number of pointers that form the field, of which a search follows one; 0 if it is no
    /// pointer.
    pub links: usize,
}

impl Field {
    /// A field of `bytes` bytes from `offset` that contains no links.
    pub const fn new(name: &'static str, offset: usize, bytes: usize) -> Self {
        Self { name, offset, bytes, links: 0 }
    }

    /// A field of `links` pointers from `offset`.
    pub const fn links(name: &'static str, offset: usize, links: usize) -> Self {
        Self { name, offset, bytes: links * size_of::<usize>(), links }
    }
}

/// The layout of one kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLayout {
    /// The name of the kind.
    pub kind: &'static str,
    /// The bytes of an object, or of the smallest one if sizes vary.
    pub size: usize,
    /// The alignment in bytes.
    pub align: usize,
    /// The fields that a search reads of an object it passes through, in the order of reading. It
    /// loads all links at once, before the comparison of keys decides which one it follows.
    pub search: &'static [Field],
    /// The fields that a search reads of an object in which it ends.
    pub found: &'static [Field],
}

/// An object of a described kind, with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The layout of the object from its address on.
    pub layout: &'static NodeLayout,
    /// The address from which the layout counts.
    pub address: usize,
    /// The bytes in front of `address`: the upper links of a tower.
    pub before: usize,
    /// All bytes of the object, including those before `address`.
    pub bytes: usize,
}

impl Placed {
    /// An object of exactly the size of its layout.
    pub const fn new(layout: &'static NodeLayout, address: usize) -> Self {
        Self { layout, address, before: 0, bytes: layout.size }
    }
}

/// A type with a described layout. [`describe!`] implements it.
pub trait Described {
    /// The description.
    const LAYOUT: NodeLayout;

    /// A reference to the description.
    fn layout() -> &'static NodeLayout {
        &Self::LAYOUT
    }
}

/// Implements [`Described`] for a type; see the [crate](crate) for an example.
///
/// The arguments are the name of the kind, then the fields that a search reads of objects it passes
/// through. Fields of links follow, each with the number of its pointers. Last come the fields that
/// a search reads of the object in which it ends.
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

/// The size of a field, named by a function that borrows it.
#[doc(hidden)]
pub const fn field_bytes<T, F>(_field: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

impl NodeLayout {
    /// Describes `T` by the fields that a search reads of objects it passes through, and of the one
    /// in which it ends.
    pub const fn of<T>(
        kind: &'static str,
        search: &'static [Field],
        found: &'static [Field],
    ) -> Self {
        Self { kind, size: size_of::<T>(), align: align_of::<T>(), search, found }
    }

    /// The number of pointers to other objects of the structure that a search may follow; for
    /// objects of several sizes, that of the smallest.
    pub fn edges(&self) -> usize {
        self.search.iter().map(|field| field.links).sum()
    }

    /// One past the last byte that a search reads.
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

    /// The first byte that a search reads.
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

    /// The number of bytes that a search reads.
    pub fn hot_bytes(&self) -> usize {
        self.search.iter().map(|field| field.bytes).sum()
    }

    /// The lines of `line` bytes that one visit touches, on average over objects that lie `stride`
    /// bytes apart. The first one starts a line.
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

    /// The lines of `line` bytes that one visit touches if the object starts `offset` bytes after
    /// the start of a line.
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

    /// The lines of `line` bytes that contain the fields a search needs, if the object starts
    /// `offset` bytes after the start of a line. Only one link is needed; the result is the average
    /// over all links.
    pub fn lines_needed(&self, offset: usize, line: usize) -> f64 {
        self.lines_needed_at(offset, 0, line)
    }

    /// The lines of `line` bytes that contain the fields a search needs of an object at `address`,
    /// on average over all links. `before` bytes of further links lie in front of `address`, as in
    /// a tower, one level below the other.
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

    /// The share of objects with search bytes in two lines of `line` bytes, as a pair (how many, of
    /// how many), after which the pattern repeats. The objects lie end to end from the start of a
    /// line.
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
        // Arbel-Raviv, Brown and Morrison, USENIX ATC 2018: one block in four crosses a line.
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
        // The links are at 48, 56 and 64, and the key at 72: on the two upper levels in two lines.
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
