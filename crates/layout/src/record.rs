//! What operations read, recorded.
//!
//! A structure reports what each step of an operation reads of which object; where a structure is made
//! to be recorded (`silvics_pool::Recorded`), the reports of a thread that records go to a buffer of its
//! own. Elsewhere they are not compiled at all.
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
//! // Both links are loaded, and one is needed.
//! use record::Why::{Beside, Step};
//! assert_eq!(reads.iter().map(|read| read.why).collect::<Vec<_>>(), [Step, Beside, Step]);
//! ```

use crate::{Field, NodeLayout};
use std::cell::{Cell, RefCell};

/// Bytes of an object that a step of an operation has read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// What the object is.
    pub layout: &'static NodeLayout,
    /// Where it starts.
    pub object: usize,
    /// The first byte that was read.
    pub address: usize,
    /// How many were.
    pub bytes: usize,
    /// What for.
    pub why: Why,
}

/// What a read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// To go on from the object by one of its links.
    Step,
    /// Nothing: a link that is not followed, loaded together with the one that is.
    Beside,
    /// The operation ends in the object.
    Found,
    /// To see that the object is as it was.
    Again,
}

thread_local! {
    static RECORDS: Cell<bool> = const { Cell::new(false) };
    static READS: RefCell<Vec<Read>> = const { RefCell::new(Vec::new()) };
}

/// Adds these to what the calling thread records, if it does.
pub fn report(reads: impl IntoIterator<Item = Read>) {
    if RECORDS.get() {
        for read in reads {
            add(read);
        }
    }
}

/// Nothing here is generic, nor in [`Reads`]: they are compiled once, optimised in dev builds as well, and
/// not with each structure where it is inspected.
fn add(read: Read) {
    READS.with_borrow_mut(|all| all.push(read));
}

/// Adds to `reads` what recorded structures report while the calling thread does `work`.
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

/// What a search reads of an object.
#[derive(Clone, Debug)]
pub struct Reads {
    layout: &'static NodeLayout,
    object: usize,
    parts: Parts,
    /// Those that the search needs.
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

/// Parts of an object that are read: where each starts within the object, its bytes, and whether the search
/// needs it.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// The fields that are left …
    fields: &'static [Field],
    /// … and of the first of them, the next part.
    part: usize,
    /// Links of the fields before.
    before: usize,
    /// The link that the search goes on by; where it ends, fields are read whole.
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
    /// The parts that a search reads of an object that it passes through by that one of its links.
    pub(crate) fn parts(&self, link: usize) -> Parts {
        Parts { fields: self.search, part: 0, before: 0, link: Some(link) }
    }

    /// What a search reads of an object that it passes through by that one of its links.
    pub fn passed<T>(&'static self, object: *const T, link: usize) -> Reads {
        let parts = self.parts(link);
        Reads { layout: self, object: object.addr(), parts, needed: Why::Step }
    }

    /// What a search reads of an object in which it ends.
    pub fn ended<T>(&'static self, object: *const T) -> Reads {
        let parts = Parts { fields: self.found, part: 0, before: 0, link: None };
        Reads { layout: self, object: object.addr(), parts, needed: Why::Found }
    }

    /// So many bytes from `offset` of an object.
    pub fn read<T>(&'static self, object: *const T, offset: usize, bytes: usize, why: Why) -> Read {
        self.read_at(object.addr(), offset, bytes, why)
    }

    fn read_at(&'static self, object: usize, offset: usize, bytes: usize, why: Why) -> Read {
        Read { layout: self, object, address: object.wrapping_add(offset), bytes, why }
    }
}
