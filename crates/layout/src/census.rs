//! Objects: of what kind each is, where it lies, and which of its bytes searches read.

use crate::runs::merge;
use crate::{Described, NodeLayout};
use std::ops::Range;

/// Objects of an index, or of any program.
///
/// ```
/// use silvics_layout::{Census, Described, describe};
///
/// #[repr(C)]
/// struct Node { key: u64, next: [usize; 1], value: [u64; 6] }
/// describe!(Node, "node", search: [key], links: [next; 1], found: [key, value]);
/// static NODE: silvics_layout::NodeLayout = Node::LAYOUT;
///
/// let nodes: Vec<Node> = (0..100).map(|key| Node { key, next: [0], value: [0; 6] }).collect();
/// let mut census = Census::default();
/// for node in &nodes {
///     census.add(&NODE, std::ptr::from_ref(node).addr());
/// }
/// assert!(census.objects().all(|(kind, _, bytes)| (kind, bytes) == ("node", 64)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Census {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) objects: Vec<Object>,
    /// By address.
    sorted: bool,
}

/// A kind of objects.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) reads: Reads,
    /// Whether its objects are locks: whoever takes one writes to it.
    pub(crate) locks: bool,
}

/// What a search reads of the objects of a kind.
#[derive(Clone, Debug)]
pub(crate) enum Reads {
    /// What their layout says.
    Described(&'static NodeLayout),
    /// These of an object's bytes; all, if there are none here.
    Hot(Option<Vec<Range<usize>>>),
}

/// Names a kind of a [`Census`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindId(u32);

/// An object of a census.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) kind: u32,
    /// At most 4 GiB count.
    pub(crate) bytes: u32,
    pub(crate) address: usize,
}

impl Object {
    /// The first byte behind it.
    pub(crate) fn end(self) -> usize {
        self.address + self.bytes as usize
    }

    /// Its last byte.
    pub(crate) fn last(self) -> usize {
        self.address + (self.bytes as usize).saturating_sub(1)
    }
}

impl Kind {
    /// Calls `part` with the addresses that a search reads of an object.
    pub(crate) fn each_read(&self, object: Object, mut part: impl FnMut(Range<usize>)) {
        let whole = object.address..object.address + object.bytes as usize;
        match &self.reads {
            Reads::Described(layout) => {
                for field in layout.search {
                    let first = object.address + field.offset;
                    part(first..first + field.bytes);
                }
            }
            Reads::Hot(None) => part(whole),
            Reads::Hot(Some(hot)) => {
                for range in hot {
                    let end = (object.address + range.end).min(whole.end);
                    let start = object.address + range.start;
                    if start < end {
                        part(start..end);
                    }
                }
            }
        }
    }

    /// The numbers of the lines of `line` bytes in which an object has bytes that a search reads, each
    /// once, in ascending order, into `lines`.
    pub(crate) fn lines(&self, object: Object, line: usize, lines: &mut Vec<Range<usize>>) {
        lines.clear();
        self.each_read(object, |read| {
            if !read.is_empty() {
                lines.push(read.start / line..(read.end - 1) / line + 1);
            }
        });
        if lines.len() > 1 {
            merge(lines);
        }
    }
}

impl Census {
    /// Adds an object of a described kind.
    pub fn add(&mut self, layout: &'static NodeLayout, address: usize) {
        // Objects mostly come in runs of a kind, or of two in turns.
        let known = self.kinds.iter().rposition(|kind| match kind.reads {
            Reads::Described(of) => std::ptr::eq(of, layout) || of == layout,
            Reads::Hot(_) => false,
        });
        let kind = known.unwrap_or_else(|| {
            let reads = Reads::Described(layout);
            self.kinds.push(Kind { name: layout.kind.into(), reads, locks: false });
            self.kinds.len() - 1
        });
        self.push(kind as u32, address, layout.size);
    }

    /// Adds an object of a described type.
    pub fn add_object<T: Described>(&mut self, object: &T) {
        const { assert!(size_of::<T>() > 0) };
        self.add(T::layout(), std::ptr::from_ref(object).addr());
    }

    /// A kind of which searches read these bytes; all, if that is not known.
    pub fn kind(&mut self, name: &str, hot: Option<Vec<Range<usize>>>) -> KindId {
        self.kinds.push(Kind { name: name.into(), reads: Reads::Hot(hot), locks: false });
        KindId((self.kinds.len() - 1) as u32)
    }

    /// The objects of a kind are locks.
    pub fn are_locks(&mut self, KindId(kind): KindId) {
        self.kinds[kind as usize].locks = true;
    }

    /// Adds an object of any kind and size.
    pub fn add_sized(&mut self, KindId(kind): KindId, address: usize, bytes: usize) {
        self.push(kind, address, bytes);
    }

    pub(crate) fn push(&mut self, kind: u32, address: usize, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.objects.push(Object { kind, bytes, address });
        self.sorted = false;
    }

    /// The kinds, in the order in which they were met.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }

    /// The kind, address and bytes of every object.
    pub fn objects(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.objects.iter().map(|object| {
            let name = &self.kinds[object.kind as usize].name;
            (name.as_str(), object.address, object.bytes as usize)
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects by ascending address.
    pub(crate) fn sorted(&mut self) -> (&[Kind], &[Object]) {
        if !self.sorted {
            self.objects.sort_unstable_by_key(|object| object.address);
            self.sorted = true;
        }
        (&self.kinds, &self.objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Mine {
        key: u64,
        next: [usize; 1],
    }
    crate::describe!(Mine, "mine", search: [key], links: [next; 1], found: [key]);

    #[test]
    fn objects_of_many_kinds_stand_side_by_side() {
        let (mut census, mine) = (Census::default(), Mine { key: 1, next: [0] });
        let row = census.kind("row", Some(vec![8..16, 100..200]));
        census.add_sized(row, 0x2000, 120);
        census.add_object(&mine);
        census.add_sized(row, 0x1000, 64);
        census.add_object(&mine);
        assert_eq!(census.kinds().collect::<Vec<_>>(), ["row", "mine"]);
        let kinds: Vec<_> = census.objects().map(|(kind, _, bytes)| (kind, bytes)).collect();
        assert_eq!(kinds, [("row", 120), ("mine", 16), ("row", 64), ("mine", 16)]);
        let (kinds, objects) = census.sorted();
        assert!(objects.is_sorted_by_key(|object| object.address));
        let mut read = Vec::new();
        kinds[0].each_read(objects[1], |part| read.push(part));
        assert_eq!(read, [0x2008..0x2010, 0x2064..0x2078], "what lies beyond the end is not read");
        let mut lines = Vec::new();
        kinds[0].lines(objects[1], 64, &mut lines);
        assert_eq!(lines, std::slice::from_ref(&(0x80..0x82)));
        assert_eq!((mine.key, mine.next), (1, [0]));
    }
}
