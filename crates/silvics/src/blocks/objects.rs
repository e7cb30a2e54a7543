//! The memory of nodes, blocks and long keys.

use super::block::{BLOCK, BlockRef};
use super::key::{Bit, BlockKey, MAX_INLINE};
use super::node::{self, NODE, NodeRef, Windows};
use super::shape::Shape;
use super::word::{Kind, Leads, Word};
use crate::domain::Guard;
use crate::frame::Frame;
use crate::memory::Memory;
use crate::memory::late::{LatePools, PoolSet};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::{AllocError, BytesAlloc, BytesPool, Config, Placement, PoolStats};
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
/// Slots of blocks are up to 8 KiB, so slabs of 16 KiB would waste a part of each.
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

/// The pools. A retired word says of which kind its object is.
struct Pools<K: ?Sized, P: Placement> {
    nodes: P::Bytes,
    blocks: P::Bytes,
    long_keys: P::Bytes,
    marker: PhantomData<fn(&K)>,
}

impl<K: BlockKey + ?Sized, P: Placement> Pools<K, P> {
    fn of(&self, kind: Kind) -> &P::Bytes {
        match kind {
            Kind::Node => &self.nodes,
            Kind::Block => &self.blocks,
            Kind::LongKey => &self.long_keys,
        }
    }
}

// SAFETY: the pools may be shared by all threads. `free` gives an object to the pool of its kind:
// the word says of which kind it is (I1), and the object says how many bytes it has.
unsafe impl<K: BlockKey + ?Sized, P: Placement> PoolSet for Pools<K, P> {
    type Placement = P;
    const KINDS: &'static [NodeLayout] =
        if K::FIXED == 0 { super::OBJECTS } else { super::OBJECTS.split_at(2).0 };

    fn new(config: &Config) -> Self {
        let mut large = config.clone();
        if !config.tuning.has_slab_bytes() {
            large.tuning = config.tuning.slab_bytes(SLAB).unwrap_or(config.tuning);
        }
        Self {
            nodes: P::Bytes::new(NODE.kind, config),
            blocks: P::Bytes::new(BLOCK.kind, &large),
            long_keys: P::Bytes::new(LONG_KEY.kind, config),
            marker: PhantomData,
        }
    }

    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        let word = Word::from_raw(object);
        let object = word.object();
        // SAFETY: our contract. The word says of which kind the object is (I1).
        unsafe {
            match word.kind() {
                Kind::Node => NodeRef::extent(object),
                Kind::Block => BlockRef::<K>::extent(object),
                Kind::LongKey => long_key_extent(object),
            }
        }
    }

    unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: our contract.
        unsafe {
            let (memory, bytes) = Self::extent(object);
            self.of(Word::from_raw(object).kind()).free(memory, bytes);
        }
    }

    fn stats(&self) -> Vec<PoolStats> {
        let Self { nodes, blocks, long_keys, .. } = self;
        let keys = (K::FIXED == 0).then(|| long_keys.stats());
        [nodes.stats(), blocks.stats()].into_iter().chain(keys).collect()
    }

    fn shrink(&self) -> usize {
        let Self { nodes, blocks, long_keys, .. } = self;
        nodes.shrink() + blocks.shrink() + long_keys.shrink()
    }
}

/// The bytes that a tree with a memory limit reserves for sweeps (`sweep.rs`): some nodes.
const RESERVE: usize = 4 << 10;

/// The objects of a tree, and those that wait to be freed.
pub(super) struct Objects<K: BlockKey + ?Sized, P: Placement> {
    pools: LatePools<Pools<K, P>>,
    /// The bytes that are reserved.
    reserved: usize,
}

impl<K: BlockKey + ?Sized, P: Placement> Objects<K, P> {
    pub(super) fn new(frame: Frame) -> Result<Self, AllocError> {
        let pools = LatePools::new(frame)?;
        let reserved = pools.frame.config.budget.reserve(RESERVE);
        Ok(Self { pools, reserved })
    }

    #[inline(always)]
    pub(super) fn frame(&self) -> &Frame {
        &self.pools.frame
    }

    pub(super) fn memory(&self) -> &dyn Memory {
        &self.pools
    }

    pub(super) fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.pools
    }

    #[inline]
    fn alloc(&self, kind: Kind, bytes: usize, guard: &Guard) -> Result<NonNull<u8>, AllocError> {
        let number = match kind {
            Kind::Node => 0,
            Kind::Block => 1,
            Kind::LongKey => 2,
        };
        let of = |pools: &Pools<K, P>| pools.of(kind).alloc(bytes);
        self.pools.alloc((number, BytesPool::slot(bytes)), of, guard)
    }

    /// A node that is not linked yet.
    pub(super) fn node(
        &self,
        windows: Windows,
        height: u8,
        children: &[(u32, Word)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let node = self.alloc(Kind::Node, node::bytes(children.len()), guard)?;
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
        let block = self.alloc(Kind::Block, shape.bytes, guard)?;
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
        let memory = self.alloc(Kind::LongKey, LENGTH_BYTES + len, guard)?;
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
        // SAFETY: our contract.
        unsafe { self.pools.retire(word.into_raw(), guard) };
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
        unsafe { self.pools.free(word.into_raw()) };
    }

    /// Frees a subtree with all its keys.
    ///
    /// # Safety
    /// Nobody else has an object of it. Each is freed once.
    pub(super) unsafe fn free_all(&self, root: Word) {
        let mut open = Vec::new();
        open.extend(Some(root).filter(|root| !root.is_none()));
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

impl<K: BlockKey + ?Sized, P: Placement> Drop for Objects<K, P> {
    fn drop(&mut self) {
        self.frame().config.budget.unreserve(self.reserved);
    }
}

/// The position in memory of a long key.
pub(super) fn placed_key((key, len): (NonNull<u8>, usize)) -> Placed {
    let address = key.as_ptr().addr() - LENGTH_BYTES;
    Placed { layout: &LONG_KEY, address, before: 0, bytes: LENGTH_BYTES + len }
}
