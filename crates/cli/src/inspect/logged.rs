//! A heap that records its blocks, so that the previous owner of a free block is known.

use silvics::Heap;
use silvics_layout::Census;
use std::alloc::Layout;
use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A heap that records its blocks for an inspection.
pub struct Logged {
    heap: Arc<dyn Heap>,
    blocks: Mutex<HashMap<usize, Block>>,
}

/// The last object at an address.
struct Block {
    kind: &'static str,
    bytes: usize,
    is_live: bool,
}

impl Logged {
    /// A heap that takes its blocks from `heap`.
    pub fn new(heap: Arc<dyn Heap>) -> Self {
        Self { heap, blocks: Mutex::new(HashMap::new()) }
    }

    fn blocks(&self) -> MutexGuard<'_, HashMap<usize, Block>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the blocks that were freed and not allocated again, as kinds of their own.
    pub fn census(&self, census: &mut Census) {
        let blocks = self.blocks();
        let mut kinds: Vec<_> = Vec::new();
        for (address, block) in blocks.iter().filter(|(_, block)| !block.is_live) {
            let known = kinds.iter().find(|(kind, _)| *kind == block.kind).map(|(_, id)| *id);
            let id = known.unwrap_or_else(|| {
                let id = census.freed(block.kind);
                kinds.push((block.kind, id));
                id
            });
            census.add_sized(id, *address, block.bytes);
        }
    }
}

impl fmt::Debug for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Logged").field(&self.heap).finish()
    }
}

// SAFETY: every block comes from the inner heap, which keeps the contract of `Heap`.
unsafe impl Heap for Logged {
    fn bytes(&self, layout: Layout) -> usize {
        self.heap.bytes(layout)
    }

    fn alloc(&self, kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        let object = self.heap.alloc(kind, layout)?;
        let block = Block { kind, bytes: layout.size(), is_live: true };
        self.blocks().insert(object.addr().get(), block);
        Some(object)
    }

    unsafe fn free(&self, kind: &'static str, object: NonNull<u8>, layout: Layout) {
        if let Some(block) = self.blocks().get_mut(&object.addr().get()) {
            block.is_live = false;
        }
        // SAFETY: the caller's promise.
        unsafe { self.heap.free(kind, object, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics::{Pages, SizeClassHeap};

    #[test]
    fn what_was_given_back_is_remembered_until_it_is_used_again() {
        let heap = Logged::new(Arc::new(SizeClassHeap::new(Pages::Small)));
        let layout = Layout::from_size_align(64, 8).unwrap();
        let objects = ["node", "descriptor", "node"].map(|kind| heap.alloc(kind, layout).unwrap());
        // SAFETY: allocated above, used no more.
        unsafe {
            heap.free("descriptor", objects[1], layout);
            heap.free("node", objects[2], layout);
        }
        let told = |heap: &Logged| {
            let mut census = Census::default();
            heap.census(&mut census);
            let mut told: Vec<_> = census
                .objects()
                .map(|(kind, address, bytes)| (kind.to_owned(), address, bytes))
                .collect();
            told.sort();
            told
        };
        let at = |object: usize| objects[object].addr().get();
        let free = |kind: &str, object| (format!("{kind} (free)"), at(object), 64);
        assert_eq!(told(&heap), [free("descriptor", 1), free("node", 2)]);
        assert_eq!(heap.alloc("row", layout), Some(objects[2]), "the newest free block");
        assert_eq!(told(&heap), [free("descriptor", 1)]);
    }
}
