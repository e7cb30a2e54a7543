//! The memory of nodes, blocks and long keys.

use super::block::{BLOCK, BlockRef, LINE};
use super::key::{Bit, BlockKey, MAX_INLINE};
use super::node::{self, NODE, NodeRef, Windows};
use super::shape::Shape;
use super::word::{Kind, Leads, Word};
use crate::domain::{Guard, Reclaim, Retired};
use crate::frame::Frame;
use crate::memory::Memory;
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::{AllocError, BytesAlloc, Config, Placement, PoolStats};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

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
/// Slots of blocks are up to 8 KiB, so slabs of 16 KiB would waste a part of each.
const SLAB: usize = 128 << 10;

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

/// The pools. Objects of all kinds are retired in one batch: the tag of a retired word says of
/// which kind its object is. Each batch counts a reference to the pools; the alignment keeps this
/// count off the line that allocations read.
#[repr(align(64))]
struct Pools<K: ?Sized, P: Placement> {
    nodes: P::Bytes,
    blocks: P::Bytes,
    long_keys: P::Bytes,
    marker: PhantomData<fn(&K)>,
}

impl<K: BlockKey + ?Sized, P: Placement> Pools<K, P> {
    /// Frees a node, a block without its long keys, or a long key.
    ///
    /// # Safety
    /// The word leads to an object of these pools, which nobody else has. It is freed once.
    unsafe fn free(&self, word: Word) {
        let Some(object) = NonNull::new(word.address()) else { return };
        // SAFETY: our contract. The word says of which kind the object is (I1), and the object
        // says how many bytes it has.
        unsafe {
            let (blocks, (memory, bytes)) = match word.kind() {
                Kind::Node => (&self.nodes, NodeRef::extent(object)),
                Kind::Block => (&self.blocks, BlockRef::<K>::extent(object)),
                Kind::LongKey => (&self.long_keys, long_key_extent(object)),
            };
            blocks.free(memory, bytes);
        }
    }
}

// SAFETY: the allocators may be shared by all threads. `reclaim` frees an object, as it should.
unsafe impl<K: BlockKey + ?Sized, P: Placement> Reclaim for Pools<K, P> {
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: `Objects::retire` passed this word to the domain, once, after the object was
        // unlinked (I4). The domain calls `reclaim` once, when no guard can reach the object.
        unsafe { self.free(Word::from_raw(object)) };
    }
}

/// The objects of a tree, and those that wait to be freed.
pub(super) struct Objects<K: BlockKey + ?Sized, P: Placement> {
    pools: Arc<Pools<K, P>>,
    retired: Retired<Pools<K, P>>,
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
        let pools = Arc::new(Pools {
            nodes: P::Bytes::new(NODE.kind, &aligned),
            blocks: P::Bytes::new(BLOCK.kind, &large),
            long_keys: P::Bytes::new(LONG_KEY.kind, config),
            marker: PhantomData,
        });
        let retired = Retired::starting_small(Arc::clone(&pools), domain.clone(), &config.budget);
        Self { pools, retired }
    }

    /// Calls `alloc`. If it fails, flushes the objects that this thread has retired, and calls it
    /// once more.
    #[inline]
    fn alloc(
        &self,
        of: impl Fn(&Pools<K, P>) -> &P::Bytes,
        bytes: usize,
        guard: &Guard,
    ) -> Result<NonNull<u8>, AllocError> {
        of(&self.pools).alloc(bytes).or_else(|_| {
            self.retired.flush(guard);
            of(&self.pools).alloc(bytes)
        })
    }

    /// A node that is not linked yet.
    pub(super) fn node(
        &self,
        windows: Windows,
        height: u8,
        children: &[(u32, Word)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let node = self.alloc(|pools| &pools.nodes, node::bytes(children.len()), guard)?;
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
        let block = self.alloc(|pools| &pools.blocks, shape.bytes, guard)?;
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
        if K::FIXED > 0 || K::IN_ENTRIES || len <= MAX_INLINE {
            return Ok(None);
        }
        let memory = self.alloc(|pools| &pools.long_keys, LENGTH_BYTES + len, guard)?;
        // SAFETY: fresh memory for the length and the key.
        unsafe {
            memory.cast::<u64>().write(len as u64);
            let to = memory.byte_add(LENGTH_BYTES);
            K::write(key, 0..len, to.as_ptr());
            Ok(Some(to))
        }
    }

    /// Retires an object, but not the objects that it leads to.
    ///
    /// # Safety
    /// No new reader can reach the object. It is retired once.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        let Some(object) = NonNull::new(word.address()) else { return };
        // SAFETY: the object has not been retired before (our contract), so it is not reclaimed.
        let (_, bytes) = unsafe {
            match word.kind() {
                Kind::Node => NodeRef::extent(object),
                Kind::Block => BlockRef::<K>::extent(object),
                Kind::LongKey => long_key_extent(object),
            }
        };
        // SAFETY: our contract is that of `Retired::retire`.
        unsafe { self.retired.retire(word.into_raw(), bytes, guard) };
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
                    unsafe { self.retire(Word::long_key(key), guard) };
                }
            }
        }
        // SAFETY: our contract.
        unsafe { self.retire(Word::block(block.as_ptr()), guard) };
    }

    /// Frees an object, but not the objects that it leads to.
    ///
    /// # Safety
    /// Nobody else has the object. It is freed once.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: our contract.
        unsafe { self.pools.free(word) };
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
                        unsafe { self.free(Word::long_key(key)) };
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
        let Pools { nodes, blocks, long_keys, .. } = &*self.pools;
        let keys = (K::FIXED == 0).then(|| long_keys.stats());
        [nodes.stats(), blocks.stats()].into_iter().chain(keys).collect()
    }

    fn settle(&mut self) {
        self.retired.drain();
    }

    fn shrink(&self) -> usize {
        self.retired.flush_unpinned();
        let Pools { nodes, blocks, long_keys, .. } = &*self.pools;
        nodes.shrink() + blocks.shrink() + long_keys.shrink()
    }
}
