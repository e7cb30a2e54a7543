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
        READS.with_borrow_mut(|all| all.extend(reads));
    }
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

impl NodeLayout {
    /// The parts that a search reads of an object that it passes through by that one of its links: where
    /// each starts within the object, its bytes, and whether the search needs it.
    pub(crate) fn parts(&self, link: usize) -> impl Iterator<Item = (usize, usize, bool)> + use<> {
        let mut before = 0;
        self.search.iter().flat_map(move |field| {
            let first = before;
            before += field.links;
            let parts = field.links.max(1);
            let bytes = field.bytes / parts;
            (0..parts).map(move |part| {
                (field.offset + part * bytes, bytes, field.links == 0 || first + part == link)
            })
        })
    }

    /// What a search reads of an object that it passes through by that one of its links.
    pub fn passed<T>(&'static self, object: *const T, link: usize) -> impl Iterator<Item = Read> {
        self.parts(link).map(move |(offset, bytes, needed)| {
            self.read(object, offset, bytes, if needed { Why::Step } else { Why::Beside })
        })
    }

    /// What a search reads of an object in which it ends.
    pub fn ended<T>(&'static self, object: *const T) -> impl Iterator<Item = Read> {
        let read = move |field: &Field| self.read(object, field.offset, field.bytes, Why::Found);
        self.found.iter().map(read)
    }

    /// So many bytes from `offset` of an object.
    pub fn read<T>(&'static self, object: *const T, offset: usize, bytes: usize, why: Why) -> Read {
        let object = object.addr();
        Read { layout: self, object, address: object.wrapping_add(offset), bytes, why }
    }
}
