//! Records the reads of operations.
//!
//! A structure reports the bytes of objects that each step of an operation reads. In a structure
//! made for recording (`silvics_pool::Recorded`), the reports of a thread that records go to a
//! buffer of its own. In other structures the reports are not compiled at all.
//!
//! ```
//! use silvics_layout::{Described, describe, record};
//!
//! #[repr(C)]
//! struct Node { key: u64, children: [usize; 2] }
//! describe!(Node, "node", search: [key], links: [children; 2], found: [key]);
//!
//! static LAYOUT: silvics_layout::NodeLayout = Node::LAYOUT;
//! let node = Node { key: 3, children: [0; 2] };
//! let mut reads = Vec::new();
//! record::of(&mut reads, || {
//!     record::report(LAYOUT.passed(&raw const node, 1));
//!     node.children[1]
//! });
//! assert_eq!(reads.iter().map(|read| read.bytes).collect::<Vec<_>>(), [8, 8, 8]);
//! // Both links are loaded, and one of them is needed.
//! use record::Why::{Beside, Step};
//! assert_eq!(reads.iter().map(|read| read.why).collect::<Vec<_>>(), [Step, Beside, Step]);
//! ```

use crate::{Field, NodeLayout};
use std::cell::{Cell, RefCell};

/// The bytes of an object that a step of an operation read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The layout of the object.
    pub layout: &'static NodeLayout,
    /// The address of the object.
    pub object: usize,
    /// The address of the first byte read.
    pub address: usize,
    /// The number of bytes read.
    pub bytes: usize,
    /// The purpose of the read.
    pub why: Why,
}

/// The purpose of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// To continue from the object by one of its links.
    Step,
    /// None: a link that is not followed, loaded together with the one that is.
    Beside,
    /// To finish the operation in the object.
    Found,
    /// To check that the object has not changed.
    Again,
}

thread_local! {
    static RECORDS: Cell<bool> = const { Cell::new(false) };
    static READS: RefCell<Vec<Read>> = const { RefCell::new(Vec::new()) };
}

/// Adds `reads` to the recording of the calling thread, if it records.
pub fn report(reads: impl IntoIterator<Item = Read>) {
    if RECORDS.get() {
        for read in reads {
            add(read);
        }
    }
}

/// Adds one read to the recording. Neither this nor [`Reads`] is generic. So they are compiled
/// once, and not with each inspected structure, and are optimised in dev builds too.
fn add(read: Read) {
    READS.with_borrow_mut(|all| all.push(read));
}

/// Adds to `reads` the reports of recorded structures while the calling thread does `work`.
pub fn of<T>(reads: &mut Vec<Read>, work: impl FnOnce() -> T) -> T {
    /// Ends the recording, even if `work` panics.
    struct Recording<'r>(&'r mut Vec<Read>);
    impl Drop for Recording<'_> {
        fn drop(&mut self) {
            RECORDS.set(false);
            READS.with_borrow_mut(|all| std::mem::swap(all, self.0));
        }
    }
    READS.with_borrow_mut(|all| std::mem::swap(all, reads));
    RECORDS.set(true);
    let _recording = Recording(reads);
    work()
}

/// The reads that a search makes of an object.
#[derive(Clone, Debug)]
pub struct Reads {
    layout: &'static NodeLayout,
    object: usize,
    parts: Parts,
    /// The purpose of those reads that the search needs.
    needed: Why,
}

impl Iterator for Reads {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        let (offset, bytes, needed) = self.parts.next()?;
        let why = if needed { self.needed } else { Why::Beside };
        Some(self.layout.read_at(self.object, offset, bytes, why))
    }
}

/// The parts of an object that a search reads: the offset of each in the object, its bytes, and
/// whether the search needs it.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// The remaining fields.
    fields: &'static [Field],
    /// The next part of the first remaining field.
    part: usize,
    /// The number of links in earlier fields.
    before: usize,
    /// The link by which the search continues, or `None` in the object in which it ends, whose
    /// fields are read whole.
    link: Option<usize>,
}

impl Iterator for Parts {
    type Item = (usize, usize, bool);

    fn next(&mut self) -> Option<Self::Item> {
        let (field, rest) = self.fields.split_first()?;
        let links = self.link.map_or(0, |_| field.links);
        let (part, parts) = (self.part, links.max(1));
        let bytes = field.bytes / parts;
        let needed = links == 0 || self.link == Some(self.before + part);
        self.part += 1;
        if self.part == parts {
            (self.fields, self.part) = (rest, 0);
            self.before += links;
        }
        Some((field.offset + part * bytes, bytes, needed))
    }
}

impl NodeLayout {
    /// The parts that a search reads of an object that it leaves by link `link`.
    pub(crate) fn parts(&self, link: usize) -> Parts {
        Parts { fields: self.search, part: 0, before: 0, link: Some(link) }
    }

    /// The reads of a search that passes through `object` and leaves it by link `link`.
    pub fn passed<T>(&'static self, object: *const T, link: usize) -> Reads {
        let parts = self.parts(link);
        Reads { layout: self, object: object.addr(), parts, needed: Why::Step }
    }

    /// The reads of a search that ends in `object`.
    pub fn ended<T>(&'static self, object: *const T) -> Reads {
        let parts = Parts { fields: self.found, part: 0, before: 0, link: None };
        Reads { layout: self, object: object.addr(), parts, needed: Why::Found }
    }

    /// A read of `bytes` bytes from `offset` of an object.
    pub fn read<T>(&'static self, object: *const T, offset: usize, bytes: usize, why: Why) -> Read {
        self.read_at(object.addr(), offset, bytes, why)
    }

    fn read_at(&'static self, object: usize, offset: usize, bytes: usize, why: Why) -> Read {
        Read { layout: self, object, address: object.wrapping_add(offset), bytes, why }
    }
}
