//! The memory of nodes, blocks and arrays of slots.

use super::block::{self, BLOCK, BlockRef};
use super::key::WordKey;
use super::node::{self, NODE, NodeRef};
use super::slots::{self, SlotsRef};
use super::value::Marks;
use super::word::{Kind, LINE, Leads, Word};
use crate::domain::{Guard, Reclaim, Retired};
use crate::frame::Frame;
use crate::memory::Memory;
use silvics_pool::{AllocError, BytesAlloc, Config, Placement, PoolStats};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// Nodes are up to 4 KiB, so slabs of 16 KiB would waste a part of each.
const SLAB: usize = 128 << 10;

/// The bytes of the object that a word leads to.
fn bytes<K: WordKey>(word: Word) -> usize {
    match word.kind() {
        Kind::None => 0,
        Kind::Node => node::bytes(word.bits()),
        Kind::Block => block::bytes::<K>(word.groups()),
        Kind::Slots => slots::BYTES,
    }
}

/// The pools. Objects of all kinds are retired in one batch: a retired word says of which kind its
/// object is. Each batch counts a reference to the pools; the alignment keeps this count off the
/// line that allocations read.
#[repr(align(64))]
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

    /// Frees an object.
    ///
    /// # Safety
    /// The word leads to an object of these pools, which nobody else has. It is freed once.
    unsafe fn free(&self, word: Word) {
        let Some(object) = NonNull::new(word.address()) else { return };
        // SAFETY: our contract. The word says of which kind the object is and how many bytes it has
        // (I1).
        unsafe { self.of(word.kind()).free(object, bytes::<K>(word)) };
    }
}

// SAFETY: the allocators may be shared by all threads. `reclaim` frees an object, as it should.
unsafe impl<K: WordKey, P: Placement> Reclaim for Pools<K, P> {
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
pub(super) struct Objects<K: WordKey, P: Placement> {
    pools: Arc<Pools<K, P>>,
    retired: Retired<Pools<K, P>>,
}

impl<K: WordKey, P: Placement> Objects<K, P> {
    pub(super) fn new(frame: &Frame) -> Self {
        let Frame { config, domain, .. } = frame;
        let mut config: Config = config.clone();
        let tuning = config.tuning;
        config.tuning = tuning.slot_align(tuning.slot_alignment().max(LINE)).unwrap_or(tuning);
        let config = config.starting_small();
        let mut large = config.clone();
        if !config.tuning.has_slab_bytes() {
            large.tuning = config.tuning.slab_bytes(SLAB).unwrap_or(config.tuning);
        }
        let pools = Arc::new(Pools {
            nodes: P::Bytes::new(NODE.kind, &large),
            leaves: P::Bytes::new(BLOCK.kind, &config),
            marker: PhantomData,
        });
        let retired = Retired::starting_small(Arc::clone(&pools), domain.clone(), &config.budget);
        Self { pools, retired }
    }

    /// Allocates an object. If that fails, flushes the objects that this thread has retired, and
    /// tries once more.
    #[inline]
    fn alloc(&self, kind: Kind, bytes: usize, guard: &Guard) -> Result<NonNull<u8>, AllocError> {
        let pool = self.pools.of(kind);
        pool.alloc(bytes).or_else(|_| {
            self.retired.flush(guard);
            pool.alloc(bytes)
        })
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
        // SAFETY: our contract is that of `Retired::retire`.
        unsafe { self.retired.retire(word.into_raw(), bytes::<K>(word), guard) };
    }

    /// Frees an object, but not the objects that it leads to.
    ///
    /// # Safety
    /// Nobody else has the object. It is freed once.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: our contract.
        unsafe { self.pools.free(word) };
    }

    /// Frees a subtree.
    ///
    /// # Safety
    /// Nobody else has an object of it. Each is freed once.
    pub(super) unsafe fn free_all(&self, root: Word) {
        let mut open = vec![root];
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

impl<K: WordKey, P: Placement> Memory for Objects<K, P> {
    fn stats(&self) -> Vec<PoolStats> {
        let Pools { nodes, leaves, .. } = &*self.pools;
        vec![nodes.stats(), leaves.stats()]
    }

    fn settle(&mut self) {
        self.retired.drain();
    }

    fn shrink(&self) -> usize {
        self.retired.flush_unpinned();
        let Pools { nodes, leaves, .. } = &*self.pools;
        nodes.shrink() + leaves.shrink()
    }
}
