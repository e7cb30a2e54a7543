//! The memory of nodes, blocks and arrays of slots.

use super::block::{self, BLOCK, BlockRef};
use super::key::WordKey;
use super::node::{self, NODE, NodeRef};
use super::slots::{self, SlotsRef};
use super::value::Marks;
use super::word::{Kind, Leads, Word};
use crate::domain::Guard;
use crate::frame::Frame;
use crate::memory::Memory;
use crate::memory::late::{LatePools, PoolSet};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, BytesAlloc, BytesPool, Config, Placement, PoolStats};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Nodes have up to 4160 bytes, so slabs of 16 KiB would waste a part of each.
const SLAB: usize = 64 << 10;

/// The bytes of the object that a word leads to.
fn bytes<K: WordKey>(word: Word) -> usize {
    match word.kind() {
        Kind::None => 0,
        Kind::Node => node::bytes(word.bits()),
        Kind::Block => block::bytes::<K>(word.groups()),
        Kind::Slots => slots::BYTES,
    }
}

/// The pools. A retired word says of which kind its object is.
struct Pools<K, P: Placement> {
    nodes: P::Bytes,
    /// Blocks and arrays of slots share a pool: the slabs of blocks that have become arrays serve
    /// these.
    leaves: P::Bytes,
    marker: PhantomData<fn(K)>,
}

impl<K: WordKey, P: Placement> Pools<K, P> {
    fn of(&self, kind: Kind) -> &P::Bytes {
        match kind {
            Kind::Block | Kind::Slots => &self.leaves,
            Kind::Node | Kind::None => &self.nodes,
        }
    }
}

// SAFETY: the pools may be shared by all threads. `free` gives an object to the pool of its kind:
// the word says of which kind it is and how many bytes it has (I1).
unsafe impl<K: WordKey, P: Placement> PoolSet for Pools<K, P> {
    type Placement = P;
    const KINDS: &'static [NodeLayout] = &[NODE, BLOCK];

    fn new(config: &Config) -> Self {
        let mut large = config.clone();
        if !config.tuning.has_slab_bytes() {
            large.tuning = config.tuning.slab_bytes(SLAB).unwrap_or(config.tuning);
        }
        Self {
            nodes: P::Bytes::new(NODE.kind, &large),
            leaves: P::Bytes::new(BLOCK.kind, config),
            marker: PhantomData,
        }
    }

    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        let word = Word::from_raw(object);
        (word.object(), bytes::<K>(word))
    }

    unsafe fn free(&self, object: NonNull<u8>) {
        let word = Word::from_raw(object);
        // SAFETY: our contract.
        unsafe { self.of(word.kind()).free(word.object(), bytes::<K>(word)) };
    }

    fn stats(&self) -> Vec<PoolStats> {
        vec![self.nodes.stats(), self.leaves.stats()]
    }

    fn shrink(&self) -> usize {
        self.nodes.shrink() + self.leaves.shrink()
    }
}

/// The objects of a tree, and those that wait to be freed.
pub(super) struct Objects<K: WordKey, P: Placement>(LatePools<Pools<K, P>>);

impl<K: WordKey, P: Placement> Objects<K, P> {
    pub(super) fn new(frame: Frame) -> Result<Self, AllocError> {
        LatePools::new(frame).map(Self)
    }

    #[inline(always)]
    pub(super) fn frame(&self) -> &Frame {
        &self.0.frame
    }

    pub(super) fn memory(&self) -> &dyn Memory {
        &self.0
    }

    pub(super) fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.0
    }

    #[inline]
    fn alloc(&self, kind: Kind, bytes: usize, guard: &Guard) -> Result<NonNull<u8>, AllocError> {
        let number = usize::from(kind != Kind::Node);
        let of = |pools: &Pools<K, P>| pools.of(kind).alloc(bytes);
        self.0.alloc((number, BytesPool::slot(bytes)), of, guard)
    }

    /// A node that is not linked yet, and whose children lead nowhere. `base` is the smallest key
    /// below it.
    pub(super) fn node<'g>(
        &self,
        (base, shift, bits): (K, u32, u32),
        checks: bool,
        guard: &'g Guard,
    ) -> Result<NodeRef<'g, K>, AllocError> {
        let node = self.alloc(Kind::Node, node::bytes(bits), guard)?;
        // SAFETY: fresh memory of the node's size.
        unsafe {
            NodeRef::init(node, base, bits);
            Ok(NodeRef::new(Word::node(node, shift, bits, checks)))
        }
    }

    /// A block without entries that is not linked yet.
    pub(super) fn block<'g>(
        &self,
        groups: usize,
        marks: Marks,
        guard: &'g Guard,
    ) -> Result<BlockRef<'g, K>, AllocError> {
        let block = self.alloc(Kind::Block, block::bytes::<K>(groups), guard)?;
        // SAFETY: fresh memory of the block's size.
        unsafe {
            BlockRef::<K>::init(block, groups, marks);
            Ok(BlockRef::new(Word::block(block, groups, marks)))
        }
    }

    /// An array of slots without values that is not linked yet. `base` is the key of the first one.
    pub(super) fn slots<'g>(
        &self,
        base: K,
        marks: Marks,
        guard: &'g Guard,
    ) -> Result<SlotsRef<'g, K>, AllocError> {
        let slots = self.alloc(Kind::Slots, slots::BYTES, guard)?;
        // SAFETY: fresh memory of the array's size.
        unsafe {
            SlotsRef::init(slots, base, marks);
            Ok(SlotsRef::new(Word::slots(slots, marks)))
        }
    }

    /// Retires an object, but not the objects that it leads to.
    ///
    /// # Safety
    /// No new reader can reach the object. It is retired once.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        // SAFETY: our contract.
        unsafe { self.0.retire(word.into_raw(), guard) };
    }

    /// Frees an object, but not the objects that it leads to.
    ///
    /// # Safety
    /// Nobody else has the object. It is freed once.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: our contract.
        unsafe { self.0.free(word.into_raw()) };
    }

    /// Frees a subtree.
    ///
    /// # Safety
    /// Nobody else has an object of it. Each is freed once.
    pub(super) unsafe fn free_all(&self, root: Word) {
        let mut open = Vec::new();
        open.extend(Some(root).filter(|root| !root.is_none()));
        while let Some(word) = open.pop() {
            // SAFETY: our contract.
            if let Leads::Node(node) = unsafe { word.leads::<K>() } {
                let mut last = Word::NONE;
                for place in node.places().list {
                    // Neighbours may lead to the same object.
                    let child = place.word();
                    if child != last && !child.is_none() {
                        open.push(child);
                    }
                    last = child;
                }
            }
            // SAFETY: our contract.
            unsafe { self.free(word) };
        }
    }
}
