//! A census of objects: the kind of each, its address, and the bytes that searches read.

use crate::analysis::runs::merge;
use crate::{Described, NodeLayout, Placed};
use std::ops::Range;

/// The objects of an index, or of any program.
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
    /// Whether `objects` are sorted by address.
    sorted: bool,
}

/// A kind of objects.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) reads: Reads,
    /// Whether its objects are locks, which every thread that takes one writes.
    pub(crate) locks: bool,
    /// The former kind of the objects, if they are freed blocks.
    pub(crate) freed: Option<String>,
}

/// The bytes that a search reads of the objects of a kind.
#[derive(Clone, Debug)]
pub(crate) enum Reads {
    /// The search reads the bytes that the layout describes.
    Described(&'static NodeLayout),
    /// The search reads these bytes of an object, or all its bytes if there is `None`.
    Hot(Option<Vec<Range<usize>>>),
}

/// The suffix in the name of a kind of freed blocks.
pub const FREED: &str = " (free)";

/// The identity of a kind in a [`Census`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindId(u32);

/// An object of a census.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) kind: u32,
    /// The bytes of the object; at most 4 GiB count.
    pub(crate) bytes: u32,
    /// How many of the bytes lie in front of `address`.
    pub(crate) before: u32,
    /// The address from which its layout counts.
    pub(crate) address: usize,
}

impl Object {
    /// The address of its first byte.
    pub(crate) fn start(self) -> usize {
        self.address - self.before as usize
    }

    /// The address behind its last byte.
    pub(crate) fn end(self) -> usize {
        self.start().saturating_add(self.bytes as usize)
    }

    /// The address of its last byte.
    pub(crate) fn last(self) -> usize {
        self.start().saturating_add((self.bytes as usize).saturating_sub(1))
    }
}

impl Kind {
    /// Calls `part` with each address range that a search reads of `object`.
    pub(crate) fn each_read(&self, object: Object, mut part: impl FnMut(Range<usize>)) {
        let whole = object.start()..object.end();
        match &self.reads {
            Reads::Described(layout) => {
                // A search may follow any link of a tower.
                if object.before > 0 {
                    part(object.start()..object.address);
                }
                for field in layout.search {
                    let first = object.address + field.offset;
                    part(first..first + field.bytes);
                }
            }
            Reads::Hot(None) => part(whole),
            Reads::Hot(Some(hot)) => {
                for range in hot {
                    let end = whole.start.saturating_add(range.end).min(whole.end);
                    let start = whole.start.saturating_add(range.start);
                    if start < end {
                        part(start..end);
                    }
                }
            }
        }
    }

    /// Writes into `lines` the numbers of the lines of `line` bytes that contain bytes of `object`
    /// a search reads. They are ascending and disjoint.
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
        self.place(Placed::new(layout, address));
    }

    /// Adds an object of a described kind that may have more bytes than its layout.
    pub fn place(&mut self, Placed { layout, address, before, bytes }: Placed) {
        // Objects mostly come in runs of one kind, or of two alternating kinds.
        let known = self.kinds.iter().rposition(|kind| match kind.reads {
            Reads::Described(of) => std::ptr::eq(of, layout) || of == layout,
            Reads::Hot(_) => false,
        });
        let kind = known.unwrap_or_else(|| {
            let reads = Reads::Described(layout);
            self.new_kind(layout.kind.into(), reads).0 as usize
        });
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let before = u32::try_from(before).unwrap_or(u32::MAX).min(bytes);
        self.objects.push(Object { kind: kind as u32, bytes, before, address });
        self.sorted = false;
    }

    fn new_kind(&mut self, name: String, reads: Reads) -> KindId {
        self.kinds.push(Kind { name, reads, locks: false, freed: None });
        KindId((self.kinds.len() - 1) as u32)
    }

    /// Adds an object of a described type.
    pub fn add_object<T: Described>(&mut self, object: &T) {
        const { assert!(size_of::<T>() > 0) };
        self.add(T::layout(), std::ptr::from_ref(object).addr());
    }

    /// Adds a kind whose objects are read at the bytes `hot`, or at all bytes for `None`.
    pub fn kind(&mut self, name: &str, hot: Option<Vec<Range<usize>>>) -> KindId {
        let hot = hot.map(|mut parts| {
            parts.retain(|part| !part.is_empty());
            merge(&mut parts);
            parts
        });
        self.new_kind(name.into(), Reads::Hot(hot))
    }

    /// Adds a kind of freed blocks that were objects called `of`.
    pub fn freed(&mut self, of: &str) -> KindId {
        let id = self.kind(&format!("{of}{FREED}"), Some(Vec::new()));
        self.kinds[id.0 as usize].freed = Some(of.into());
        id
    }

    /// Declares that the objects of a kind are locks.
    pub fn are_locks(&mut self, KindId(kind): KindId) {
        self.kinds[kind as usize].locks = true;
    }

    /// Adds an object of a kind, with any size.
    pub fn add_sized(&mut self, KindId(kind): KindId, address: usize, bytes: usize) {
        self.push(kind, address, bytes);
    }

    pub(crate) fn push(&mut self, kind: u32, address: usize, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.objects.push(Object { kind, bytes, before: 0, address });
        self.sorted = false;
    }

    /// The names of the kinds, in the order in which they were added.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }

    /// The kind, the first byte and the size of every object.
    pub fn objects(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.objects.iter().map(|object| {
            let name = &self.kinds[object.kind as usize].name;
            (name.as_str(), object.start(), object.bytes as usize)
        })
    }

    /// Whether the census contains no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The kinds, and the objects by ascending address.
    pub(crate) fn sorted(&mut self) -> (&[Kind], &[Object]) {
        if !self.sorted {
            self.objects.sort_unstable_by_key(|object| object.start());
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
    fn a_tower_lies_before_the_address_from_which_its_layout_counts() {
        let mut census = Census::default();
        census.place(Placed { layout: Mine::layout(), address: 0x1010, before: 24, bytes: 40 });
        census.add(Mine::layout(), 0x1100);
        let objects: Vec<_> = census.objects().collect();
        assert_eq!(objects, [("mine", 0xff8, 40), ("mine", 0x1100, 16)]);
        let (kinds, objects) = census.sorted();
        let mut read = Vec::new();
        kinds[0].each_read(objects[0], |part| read.push(part));
        assert_eq!(read, [0xff8..0x1010, 0x1010..0x1018, 0x1018..0x1020]);
    }

    #[test]
    fn what_is_read_ends_with_the_object() {
        let mut census = Census::default();
        let all = census.kind("all", Some(vec![0..usize::MAX, 200..usize::MAX]));
        census.add_sized(all, 0x1000, 64);
        let (kinds, objects) = census.sorted();
        let mut read = Vec::new();
        kinds[0].each_read(objects[0], |part| read.push(part));
        assert_eq!(read, std::slice::from_ref(&(0x1000..0x1040)));
    }

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
