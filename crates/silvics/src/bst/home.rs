//! Where the inner nodes and leaves of an external tree live.

use super::tree::Frame;
use crate::memory::Nodes;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, PoolStats};

/// The pools of an external tree with inner nodes `I` and leaves `L`.
pub trait Home<I: Send + 'static, L: Send + 'static, P: Placement>: Send + Sync + 'static {
    /// Pools for objects of these layouts.
    fn new(frame: &Frame, inner: &NodeLayout, leaf: &NodeLayout) -> Self;
    /// The inner nodes.
    fn inners(&self) -> &Nodes<I, P>;
    /// The leaves.
    fn leaves(&self) -> &Nodes<L, P>;
    /// What they hold.
    fn stats(&self) -> Vec<PoolStats>;
    /// Reclaims what is retired.
    fn settle(&mut self);
}

/// Inner nodes and leaves are kinds of their own, each in its pool.
pub struct Apart<I: Send + 'static, L: Send + 'static, P: Placement> {
    inners: Nodes<I, P>,
    leaves: Nodes<L, P>,
}

impl<I: Send + 'static, L: Send + 'static, P: Placement> Home<I, L, P> for Apart<I, L, P> {
    fn new(frame: &Frame, inner: &NodeLayout, leaf: &NodeLayout) -> Self {
        Self { inners: frame.nodes(inner), leaves: frame.nodes(leaf) }
    }
    #[inline(always)]
    fn inners(&self) -> &Nodes<I, P> {
        &self.inners
    }
    #[inline(always)]
    fn leaves(&self) -> &Nodes<L, P> {
        &self.leaves
    }
    fn stats(&self) -> Vec<PoolStats> {
        vec![self.inners.stats(), self.leaves.stats()]
    }
    fn settle(&mut self) {
        self.inners.settle();
        self.leaves.settle();
    }
}

/// Both are of one type, in one pool, as published implementations have it.
pub struct Alike<N: Send + 'static, P: Placement> {
    nodes: Nodes<N, P>,
}

impl<N: Send + 'static, P: Placement> Home<N, N, P> for Alike<N, P> {
    fn new(frame: &Frame, inner: &NodeLayout, _leaf: &NodeLayout) -> Self {
        Self { nodes: frame.nodes(inner) }
    }
    #[inline(always)]
    fn inners(&self) -> &Nodes<N, P> {
        &self.nodes
    }
    #[inline(always)]
    fn leaves(&self) -> &Nodes<N, P> {
        &self.nodes
    }
    fn stats(&self) -> Vec<PoolStats> {
        vec![self.nodes.stats()]
    }
    fn settle(&mut self) {
        self.nodes.settle();
    }
}
