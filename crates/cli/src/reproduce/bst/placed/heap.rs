//! The heap of a database and its index: one for all objects, or one for each part.
//!
//! The study's database takes the objects of a row and the nodes of its trees from one allocator,
//! and in its segregated form from several instances of that allocator: one for nodes, one for
//! descriptors, one for the database. A [`Divided`] heap does either, by the kind of an object. It
//! can also keep a record of its blocks.

use silvics::{Heap, Pages, SizeClassHeap};
use silvics_layout::Census;
use std::alloc::Layout;
use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The objects that the database allocates for a row, in the order of their allocation, and last
/// the one that its index allocates.
pub const OF_ROWS: [&str; 5] = ["row", "columns", "wrapper", "lock", CELL];
/// The place of the wrapper in this order.
const WRAPPER: usize = 2;
/// The locks of rows.
pub const LOCK: &str = "lock";
/// The cells between an index and the rows.
pub const CELL: &str = "cell";
/// The nodes of a tree, whatever it calls them.
pub const NODE: &str = "node";
/// The descriptors of a tree.
pub const DESCRIPTOR: &str = "descriptor";

/// The places of a database's objects and of its index's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// All objects come from one heap.
    Mixed,
    /// Nodes, descriptors and the database have a heap each.
    Segregated,
}

impl Places {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Segregated => "segregated",
        }
    }
}

/// A part of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Nodes,
    Descriptors,
    Database,
}

impl Part {
    /// The part of objects of this kind. A tree has no other objects than nodes and descriptors.
    fn of(kind: &str) -> Self {
        match kind {
            DESCRIPTOR => Self::Descriptors,
            _ if OF_ROWS.contains(&kind) => Self::Database,
            _ => Self::Nodes,
        }
    }
}

/// A heap that is divided by the kind of objects.
pub struct Divided {
    nodes: Arc<dyn Heap>,
    descriptors: Arc<dyn Heap>,
    database: Arc<dyn Heap>,
    /// The record of the blocks, if it is kept.
    record: Option<Mutex<Record>>,
}

/// An allocated block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The kind of the object in it: [`NODE`] for all nodes.
    pub kind: &'static str,
    pub address: usize,
    /// The bytes of the object.
    pub bytes: usize,
    /// The bytes of the block.
    pub class: usize,
    is_live: bool,
}

/// The blocks in the order of their allocation, and the number of the live block at an address.
#[derive(Default)]
struct Record {
    blocks: Vec<Block>,
    at: HashMap<usize, usize>,
}

impl Divided {
    /// A heap with the size classes of the study.
    pub fn size_class(places: Places) -> Self {
        let heap = || -> Arc<dyn Heap> { Arc::new(SizeClassHeap::new(Pages::Small)) };
        match places {
            Places::Mixed => Self::one(heap()),
            Places::Segregated => Self::of([heap(), heap(), heap()]),
        }
    }

    /// A heap of which all objects come from `heap`.
    pub fn one(heap: Arc<dyn Heap>) -> Self {
        Self::of([Arc::clone(&heap), Arc::clone(&heap), heap])
    }

    /// A heap of heaps for nodes, descriptors and the database.
    pub fn of([nodes, descriptors, database]: [Arc<dyn Heap>; 3]) -> Self {
        Self { nodes, descriptors, database, record: None }
    }

    /// The heap, with a record of its blocks.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self { record: Some(Mutex::default()), ..self }
    }

    fn heap(&self, kind: &str) -> &dyn Heap {
        match Part::of(kind) {
            Part::Nodes => &*self.nodes,
            Part::Descriptors => &*self.descriptors,
            Part::Database => &*self.database,
        }
    }

    fn record(&self) -> Option<MutexGuard<'_, Record>> {
        Some(self.record.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of blocks that were allocated so far; 0 without a record.
    pub fn allocated(&self) -> usize {
        self.record().map_or(0, |record| record.blocks.len())
    }

    /// The blocks that were allocated after the first `count` ones.
    pub fn since(&self, count: usize) -> Vec<Block> {
        self.record().map_or_else(Vec::new, |record| record.blocks[count..].to_vec())
    }

    /// The objects of the row that this wrapper leads to, in the order of [`OF_ROWS`] but without
    /// the cell. One thread has allocated them one behind the other. `None` without a record.
    pub fn of_wrapper(&self, wrapper: usize) -> Option<[Block; 4]> {
        let record = self.record()?;
        let first = record.at.get(&wrapper)?.checked_sub(WRAPPER)?;
        let blocks: [Block; 4] = record.blocks.get(first..first + 4)?.try_into().ok()?;
        blocks.iter().map(|block| block.kind).eq(OF_ROWS[..4].iter().copied()).then_some(blocks)
    }

    /// The live blocks.
    pub fn live(&self) -> Vec<Block> {
        let mut blocks = self.since(0);
        blocks.retain(|block| block.is_live);
        blocks
    }
}

/// The nodes among blocks.
pub fn census_of_nodes(blocks: &[Block]) -> Census {
    let mut census = Census::default();
    let nodes = census.kind(NODE, None);
    for block in blocks.iter().filter(|block| block.kind == NODE) {
        census.add_sized(nodes, block.address, block.bytes);
    }
    census
}

impl fmt::Debug for Divided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Divided").field(&self.nodes).field(&self.database).finish()
    }
}

// SAFETY: each block comes from the heap of its kind, which keeps the contract of `Heap`, and goes
// back to it: `free` gets the kind that `alloc` got.
unsafe impl Heap for Divided {
    /// The heaps of all parts have the same size classes.
    fn bytes(&self, layout: Layout) -> usize {
        self.database.bytes(layout)
    }

    fn alloc(&self, kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        let object = self.heap(kind).alloc(kind, layout)?;
        if let Some(mut record) = self.record() {
            let kind = if Part::of(kind) == Part::Nodes { NODE } else { kind };
            let (address, bytes) = (object.addr().get(), layout.size());
            let block = Block { kind, address, bytes, class: self.bytes(layout), is_live: true };
            let number = record.blocks.len();
            record.blocks.push(block);
            record.at.insert(address, number);
        }
        Some(object)
    }

    unsafe fn free(&self, kind: &'static str, object: NonNull<u8>, layout: Layout) {
        if let Some(mut record) = self.record()
            && let Some(number) = record.at.remove(&object.addr().get())
        {
            record.blocks[number].is_live = false;
        }
        // SAFETY: the caller's promise.
        unsafe { self.heap(kind).free(kind, object, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_of_a_row_are_those_around_its_wrapper() {
        let layout = Layout::from_size_align(64, 8).unwrap();
        let heap = Divided::size_class(Places::Mixed).recorded();
        let row = OF_ROWS.map(|kind| heap.alloc(kind, layout).unwrap().addr().get());
        let found = heap.of_wrapper(row[WRAPPER]).unwrap().map(|block| block.address);
        assert_eq!(found, row[..4]);
        assert_eq!(heap.of_wrapper(row[WRAPPER] + 1), None);
    }

    #[test]
    fn blocks_are_recorded_and_divided_by_kind() {
        let layout = Layout::from_size_align(64, 8).unwrap();
        let kinds = ["row", "leaf", "descriptor", "inner", "wrapper"];
        for places in [Places::Mixed, Places::Segregated] {
            let heap = Divided::size_class(places).recorded();
            let objects = kinds.map(|kind| heap.alloc(kind, layout).unwrap());
            let blocks = heap.since(0);
            let of: Vec<_> = blocks.iter().map(|block| (block.kind, block.class)).collect();
            let names = ["row", NODE, DESCRIPTOR, NODE, "wrapper"];
            assert_eq!(of, names.map(|kind| (kind, 64)), "{places:?}");
            let nodes = blocks[3].address - blocks[1].address;
            let rows = blocks[4].address - blocks[0].address;
            let expected = if places == Places::Mixed { (128, 256) } else { (64, 64) };
            assert_eq!((nodes, rows), expected, "{places:?}");
            assert_eq!(heap.of_wrapper(blocks[4].address), None, "its row is not before it");
            // SAFETY: allocated above, used no more.
            unsafe { heap.free("leaf", objects[1], layout) };
            assert_eq!((heap.allocated(), heap.live().len()), (5, 4));
            assert_eq!(census_of_nodes(&heap.live()).objects().count(), 1);
        }
    }
}
