//! The memory of nodes, blocks and long keys.

use super::block::{BLOCK, BlockRef, LINE, Shape};
use super::key::{Bit, BlockKey, MAX_INLINE};
use super::node::{self, NODE, NodeRef, Windows};
use super::word::{Leads, Word};
use crate::domain::Guard;
use crate::frame::Frame;
use crate::memory::{Blobs, Memory};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::{AllocError, Config, Placement, PoolStats};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The layout of the shortest key outside its block: the length, then the bytes.
pub(super) const LONG_KEY: NodeLayout = NodeLayout {
    kind: "key",
    size: LENGTH_BYTES + MAX_INLINE + 1,
    align: 8,
    search: &[],
    found: &[Field::new("key", LENGTH_BYTES, 64)],
};

/// The bytes of the length in front of a long key.
const LENGTH_BYTES: usize = 8;
/// Slots of blocks are up to 4 KiB, so slabs of 16 KiB would waste a part of each.
const SLAB: usize = 64 << 10;

/// The memory of a long key, and its bytes.
///
/// # Safety
/// `key` leads to a key that [`Objects::long_key`] has made.
unsafe fn long_key_extent(key: NonNull<u8>) -> (NonNull<u8>, usize) {
    // SAFETY: our contract: the length lies in front of the key.
    unsafe {
        let memory = key.byte_sub(LENGTH_BYTES);
        (memory, LENGTH_BYTES + memory.cast::<u64>().read() as usize)
    }
}

/// The pools of a tree's objects.
pub(super) struct Objects<K: ?Sized, P: Placement> {
    nodes: Blobs<P>,
    blocks: Blobs<P>,
    long_keys: Blobs<P>,
    marker: PhantomData<fn(&K)>,
}

impl<K: BlockKey + ?Sized, P: Placement> Objects<K, P> {
    pub(super) fn new(frame: &Frame) -> Self {
        let Frame { config, domain, .. } = frame;
        let mut aligned: Config = config.clone();
        let tuning = aligned.tuning;
        let align = tuning.slot_alignment().max(LINE);
        aligned.tuning = tuning.slot_align(align).unwrap_or(tuning);
        let mut large = aligned.clone();
        if !large.tuning.has_slab_bytes() {
            large.tuning = large.tuning.slab_bytes(SLAB).unwrap_or(large.tuning);
        }
        Self {
            nodes: Blobs::new(NODE.kind, &aligned, domain, NodeRef::extent),
            blocks: Blobs::new(BLOCK.kind, &large, domain, BlockRef::<K>::extent),
            long_keys: Blobs::new(LONG_KEY.kind, config, domain, long_key_extent),
            marker: PhantomData,
        }
    }

    /// A node that is not linked yet.
    pub(super) fn node(
        &self,
        windows: Windows,
        height: u8,
        children: &[(u32, Word)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let node = self.nodes.alloc(node::bytes(children.len()), guard)?;
        // SAFETY: fresh memory of the node's size.
        unsafe { NodeRef::init(node, windows, height, children) };
        Ok(Word::node(node))
    }

    /// A block without entries that is not linked yet.
    pub(super) fn block<'g>(
        &self,
        shape: Shape,
        depth: Bit,
        guard: &'g Guard,
    ) -> Result<BlockRef<'g, K>, AllocError> {
        let block = self.blocks.alloc(shape.bytes, guard)?;
        // SAFETY: fresh memory of the block's size.
        Ok(unsafe { BlockRef::init(block, shape, depth) })
    }

    /// Memory for a key that is too long for a block, or nothing if it is not.
    pub(super) fn long_key(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<Option<NonNull<u8>>, AllocError> {
        let len = K::len(K::shorten(key));
        if K::FIXED > 0 || len <= MAX_INLINE {
            return Ok(None);
        }
        let memory = self.long_keys.alloc(LENGTH_BYTES + len, guard)?;
        // SAFETY: fresh memory for the length and the key.
        unsafe {
            memory.cast::<u64>().write(len as u64);
            let to = memory.byte_add(LENGTH_BYTES);
            K::write(key, to.as_ptr());
            Ok(Some(to))
        }
    }

    /// Retires a node, or a block with none of its long keys.
    ///
    /// # Safety
    /// No new reader can reach the object. It is retired once.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        let Some(object) = NonNull::new(word.address()) else { return };
        let blobs = if word.is_block() { &self.blocks } else { &self.nodes };
        // SAFETY: our contract. The word says of which kind the object is (I1).
        unsafe { blobs.retire(object, guard) };
    }

    /// Retires a block, and the long keys of its entries that are not present.
    ///
    /// # Safety
    /// As [`Objects::retire`]. No other block has these keys, and the present ones have moved.
    pub(super) unsafe fn retire_block(&self, block: BlockRef<'_, K>, guard: &Guard) {
        if K::FIXED == 0 {
            let live = block.live();
            for at in (0..block.entries()).filter(|at| live >> at & 1 == 0) {
                if let Some((key, _)) = block.outside(at) {
                    // SAFETY: our contract.
                    unsafe { self.long_keys.retire(key, guard) };
                }
            }
        }
        // SAFETY: our contract.
        unsafe { self.retire(Word::block(block.as_ptr()), guard) };
    }

    /// Frees a node or a block, but no long keys.
    ///
    /// # Safety
    /// Nobody else has the object. It is freed once.
    pub(super) unsafe fn free(&self, word: Word) {
        let Some(object) = NonNull::new(word.address()) else { return };
        let blobs = if word.is_block() { &self.blocks } else { &self.nodes };
        // SAFETY: our contract. The word says of which kind the object is (I1).
        unsafe { blobs.free(object) };
    }

    /// Frees a long key.
    ///
    /// # Safety
    /// Nobody else has the key. It is freed once.
    pub(super) unsafe fn free_key(&self, key: NonNull<u8>) {
        // SAFETY: our contract.
        unsafe { self.long_keys.free(key) };
    }

    /// Frees a subtree with all its keys.
    ///
    /// # Safety
    /// Nobody else has an object of it. Each is freed once.
    pub(super) unsafe fn free_all(&self, root: Word) {
        let mut open = vec![root];
        while let Some(word) = open.pop() {
            if word.is_none() {
                continue;
            }
            // SAFETY: our contract.
            match unsafe { word.leads::<K>() } {
                Leads::Node(node) => open.extend((0..node.len()).map(|at| node.child(at).word())),
                Leads::Block(block) => {
                    for (key, _) in (0..block.entries()).filter_map(|at| block.outside(at)) {
                        // SAFETY: our contract.
                        unsafe { self.free_key(key) };
                    }
                }
            }
            // SAFETY: our contract.
            unsafe { self.free(word) };
        }
    }
}

/// The position in memory of a long key.
pub(super) fn placed_key((key, len): (NonNull<u8>, usize)) -> Placed {
    let address = key.as_ptr().addr() - LENGTH_BYTES;
    Placed { layout: &LONG_KEY, address, before: 0, bytes: LENGTH_BYTES + len }
}

impl<K: BlockKey + ?Sized, P: Placement> Memory for Objects<K, P> {
    fn stats(&self) -> Vec<PoolStats> {
        let mut stats = [self.nodes.stats(), self.blocks.stats()].concat();
        if K::FIXED == 0 {
            stats.extend(self.long_keys.stats());
        }
        stats
    }

    fn settle(&mut self) {
        self.nodes.settle();
        self.blocks.settle();
        self.long_keys.settle();
    }

    fn shrink(&self) -> usize {
        self.nodes.shrink() + self.blocks.shrink() + self.long_keys.shrink()
    }
}
