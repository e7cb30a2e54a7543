//! Descriptions of object layouts.
//!
//! Every structure of silvics describes each kind of object it allocates once, as a constant
//! [`NodeLayout`]; size assertions, documentation and the tools that explain an index's speed use
//! that one description.
//!
//! ```
//! use silvics_layout::{Field, NodeLayout};
//!
//! #[repr(C)]
//! struct Node { key: u64, left: usize, right: usize, value: u64 }
//!
//! const NODE: NodeLayout = NodeLayout::of::<Node>("node", &[
//!     Field::new("key", 0, 8),
//!     Field::new("left, right", 8, 16),
//! ], 2);
//! const _: () = assert!(NODE.size == 32 && NODE.search_end() == 24);
//! // 32-byte slots start at 0 or 32 within a line: a search never crosses one.
//! assert_eq!(NODE.straddling(64), (0, 2));
//! assert_eq!(NODE.lines_per_visit(NODE.size, 64), 1.0);
//! ```

mod class;
mod facts;

pub use class::study_class;
pub use facts::{Census, Facts, SetHash, Sets};

/// A part of an object that a search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the code.
    pub name: &'static str,
    /// Its first byte within the object.
    pub offset: usize,
    /// Its length in bytes.
    pub bytes: usize,
}

impl Field {
    /// `bytes` bytes from `offset`.
    pub const fn new(name: &'static str, offset: usize, bytes: usize) -> Self {
        Self { name, offset, bytes }
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
    /// What a search reads of an object it passes through, in the order it reads it.
    pub search: &'static [Field],
    /// Pointers to other objects of the structure that a search may follow; for objects of several
    /// sizes, of the smallest.
    pub edges: usize,
}

impl NodeLayout {
    /// The layout of `T`.
    pub const fn of<T>(kind: &'static str, search: &'static [Field], edges: usize) -> Self {
        Self { kind, size: size_of::<T>(), align: align_of::<T>(), search, edges }
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
        self.lines_read(offset, line).len()
    }

    /// The numbers of the lines of `line` bytes in which an object at `address` has bytes that a
    /// search reads.
    pub(crate) fn lines_read(&self, address: usize, line: usize) -> Vec<usize> {
        let mut lines = Vec::new();
        for field in self.search {
            let first = address + field.offset;
            lines.extend(first / line..=(first + field.bytes - 1) / line);
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Of objects laid end to end from a line's start, how many of how many have search bytes in
    /// two lines of `line` bytes: the share after which the pattern repeats.
    pub const fn straddling(&self, line: usize) -> (usize, usize) {
        let (first, last) = (self.search_start(), self.search_end() - 1);
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
        NodeLayout { kind: "node", size, align: 8, search, edges: 2 }
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
    fn the_search_span_covers_scattered_fields() {
        const SEARCH: &[Field] = &[Field::new("version", 104, 8), Field::new("key", 8, 8)];
        let layout = layout(112, SEARCH);
        assert_eq!((layout.search_start(), layout.search_end()), (8, 112));
        assert_eq!(layout.lines_at(0, 64), 2);
    }
}
