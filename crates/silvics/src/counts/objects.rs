//! The memory of the directory.

use super::key::CountedKey;
use super::node::{self, Level, NODE, NodeRef, Part};
use crate::domain::Guard;
use crate::frame::Frame;
use crate::memory::Memory;
use crate::memory::late::{LatePools, PoolSet};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, BytesAlloc, BytesPool, Config, Placement, PoolStats};
use silvics_sync::counter::{Counting, StripedCounter};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// The pool of the nodes.
struct Pools<K: ?Sized, P: Placement> {
    nodes: P::Bytes,
    marker: PhantomData<fn(&K)>,
}

// SAFETY: the pool may be shared by all threads. `free` gives a node back with the bytes that it
// was allocated with, which the node says (`node.rs`).
unsafe impl<K: CountedKey + ?Sized, P: Placement> PoolSet for Pools<K, P> {
    type Placement = P;
    const KINDS: &'static [NodeLayout] = &[NODE];

    fn new(config: &Config) -> Self {
        Self { nodes: P::Bytes::new(NODE.kind, config), marker: PhantomData }
    }

    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: our contract: the node is initialised and not reclaimed.
        (object, unsafe { NodeRef::<K>::new(object) }.bytes())
    }

    unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: our contract.
        unsafe {
            let (object, bytes) = Self::extent(object);
            self.nodes.free(object, bytes);
        }
    }

    fn stats(&self) -> Vec<PoolStats> {
        vec![self.nodes.stats()]
    }

    fn shrink(&self) -> usize {
        self.nodes.shrink()
    }
}

/// The nodes of a directory, and those that wait to be freed.
pub(super) struct Objects<K: CountedKey + ?Sized, P: Placement>(LatePools<Pools<K, P>>);

impl<K: CountedKey + ?Sized, P: Placement> Objects<K, P> {
    /// The memory of the directory of an index that has this frame.
    pub(super) fn beside(frame: &Frame) -> Result<Self, AllocError> {
        let (domain, config) = (frame.domain.clone(), frame.config.clone());
        let len = StripedCounter::new(Counting::Single, Arc::clone(&config.budget));
        LatePools::new(Frame { domain, config, len }).map(Self)
    }

    pub(super) fn memory(&self) -> &dyn Memory {
        &self.0
    }

    pub(super) fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.0
    }

    /// A node that is not linked yet.
    pub(super) fn node<'g>(
        &self,
        level: Level,
        parts: &[Part<'_, K>],
        guard: &'g Guard,
    ) -> Result<NodeRef<'g, K>, AllocError> {
        let bytes = node::bytes_of(level, parts);
        if u32::try_from(bytes).is_err() {
            return Err(AllocError::System { requested: bytes });
        }
        let of = |pools: &Pools<K, P>| pools.nodes.alloc(bytes);
        let node = self.0.alloc((0, BytesPool::slot(bytes)), of, guard)?;
        // SAFETY: fresh memory of the node's size.
        unsafe {
            NodeRef::init(node, level, parts);
            Ok(NodeRef::new(node))
        }
    }

    /// Retires a node, but not those below it.
    ///
    /// # Safety
    /// No new reader can reach the node. It is retired once.
    pub(super) unsafe fn retire(&self, node: NodeRef<'_, K>, guard: &Guard) {
        // SAFETY: our contract.
        unsafe { self.0.retire(node.address(), guard) };
    }

    /// Frees a node, but not those below it.
    ///
    /// # Safety
    /// Nobody else has the node. It is freed once.
    pub(super) unsafe fn free(&self, node: NodeRef<'_, K>) {
        // SAFETY: our contract.
        unsafe { self.0.free(node.address()) };
    }
}
