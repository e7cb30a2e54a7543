//! The memory of nodes.

use super::node::{NODE, extent};
use super::word::Word;
use crate::domain::Guard;
use crate::frame::Frame;
use crate::memory::Memory;
use crate::memory::late::{LatePools, PoolSet};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, BytesAlloc, BytesPool, Config, Placement, PoolStats};
use std::ptr::NonNull;

/// The pool of the nodes of both families.
struct Pools<P: Placement>(P::Bytes);

// SAFETY: any thread may call an allocator of `P`. `free` gives a node back with the bytes that its
// allocation had: both come from the contents of the node (`extent`).
unsafe impl<P: Placement> PoolSet for Pools<P> {
    type Placement = P;
    const KINDS: &'static [NodeLayout] = &[NODE];

    fn new(config: &Config) -> Self {
        Self(P::Bytes::new(NODE.kind, config))
    }

    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: our contract: the node is not freed.
        unsafe { extent(Word::from_retired(object)) }
    }

    unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: our contract.
        unsafe {
            let (memory, bytes) = Self::extent(object);
            self.0.free(memory, bytes);
        }
    }

    fn stats(&self) -> Vec<PoolStats> {
        vec![self.0.stats()]
    }

    fn shrink(&self) -> usize {
        self.0.shrink()
    }
}

/// The nodes of a table, and those that wait to be freed.
pub(super) struct Objects<P: Placement>(LatePools<Pools<P>>);

impl<P: Placement> Objects<P> {
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

    /// Memory for a node. If the allocation fails, it flushes the nodes that this thread retired,
    /// and tries once more.
    pub(super) fn alloc(&self, bytes: usize, guard: &Guard) -> Result<NonNull<u8>, AllocError> {
        let of = |pools: &Pools<P>| pools.0.alloc(bytes);
        self.0.alloc((0, BytesPool::slot(bytes)), of, guard)
    }

    /// Retires a node, but not its children.
    ///
    /// # Safety
    /// The word is a child. No new reader can reach its node, which is retired once. The guard is
    /// of the table's domain.
    pub(super) unsafe fn retire(&self, node: Word, guard: &Guard) {
        // SAFETY: our contract.
        unsafe { self.0.retire(node.into_retired(), guard) };
    }

    /// Frees a node, but not its children.
    ///
    /// # Safety
    /// The word is a child. Nobody else has its node, which is freed once.
    pub(super) unsafe fn free(&self, node: Word) {
        // SAFETY: our contract.
        unsafe { self.0.free(node.into_retired()) };
    }
}
