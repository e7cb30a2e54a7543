//! The pools of a tree's objects: one for each kind.

use super::hot::sampler::{Regions, Sampler};
use super::kinds::bytes;
use super::leaf::{LeafKey, Leaves};
use super::node::{NODES, Node4, Node14, Node56, Node256};
use super::word::{Content, Kind, Word};
use crate::memory::late::PoolSet;
use silvics_layout::NodeLayout;
use silvics_pool::{Config, Placement, PoolStats, SlotAlloc};
use std::ptr::NonNull;

/// The content of a node's places, with the kinds of the nodes that hold it.
pub(super) trait NodeContent: Content<Atomic: Send> + 'static {
    /// The kinds, from the smallest to the largest. No node has four places for values, as a leaf
    /// holds as many.
    const KINDS: [Kind; 4];

    /// The pools of the nodes that hold it.
    fn pools<K: LeafKey + ?Sized, P: Placement, S: Sampler>(
        of: &Pools<K, P, S>,
    ) -> &NodePools<Self, P>;
}

impl NodeContent for Word {
    const KINDS: [Kind; 4] = [Kind::Node4, Kind::Node14, Kind::Node56, Kind::Node256];

    #[inline(always)]
    fn pools<K: LeafKey + ?Sized, P: Placement, S: Sampler>(
        of: &Pools<K, P, S>,
    ) -> &NodePools<Self, P> {
        &of.words
    }
}

impl NodeContent for u64 {
    const KINDS: [Kind; 4] = [Kind::Values14, Kind::Values14, Kind::Values56, Kind::Values256];

    #[inline(always)]
    fn pools<K: LeafKey + ?Sized, P: Placement, S: Sampler>(
        of: &Pools<K, P, S>,
    ) -> &NodePools<Self, P> {
        of.values()
    }
}

/// The pools for all node sizes whose places hold `C`.
pub(super) struct NodePools<C: NodeContent, P: Placement> {
    four: Option<P::Slots<Node4<C>>>,
    pub(super) fourteen: P::Slots<Node14<C>>,
    pub(super) fifty_six: P::Slots<Node56<C>>,
    pub(super) full: P::Slots<Node256<C>>,
}

impl<C: NodeContent, P: Placement> NodePools<C, P> {
    fn new(config: &Config) -> Self {
        let kind = |of: usize| NODES[C::KINDS[of] as usize - 1].kind;
        Self {
            four: (C::KINDS[0] != C::KINDS[1]).then(|| SlotAlloc::new(kind(0), config)),
            fourteen: SlotAlloc::new(kind(1), config),
            fifty_six: SlotAlloc::new(kind(2), config),
            full: SlotAlloc::new(kind(3), config),
        }
    }

    #[inline(always)]
    pub(super) fn four(&self) -> &P::Slots<Node4<C>> {
        self.four.as_ref().expect("no kind of node has four places for this content")
    }

    /// Appends the statistics of each pool.
    fn stats(&self, stats: &mut Vec<PoolStats>) {
        stats.extend(self.four.iter().map(SlotAlloc::stats));
        stats.extend([self.fourteen.stats(), self.fifty_six.stats(), self.full.stats()]);
    }

    fn shrink(&self) -> usize {
        let four = self.four.as_ref().map_or(0, SlotAlloc::shrink);
        four + self.fourteen.shrink() + self.fifty_six.shrink() + self.full.shrink()
    }
}

/// A pool for each kind of object, and the hot regions, which hold objects of all kinds. The pools
/// are made in the order of [`LeafKey::OBJECTS`].
pub(super) struct Pools<K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    words: NodePools<Word, P>,
    /// The pools of nodes of values, if the key type has any.
    values: Option<NodePools<u64, P>>,
    pub(super) leaves: K::Leaves<P>,
    pub(super) hot: S::Regions,
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Pools<K, P, S> {
    fn values(&self) -> &NodePools<u64, P> {
        self.values.as_ref().expect("keys whose values lie in nodes")
    }
}

// SAFETY: pools and regions may be shared by all threads. `free` gives an object to the pool of its
// kind: I7: the word says of which kind it is.
unsafe impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> PoolSet for Pools<K, P, S> {
    type Placement = P;
    const KINDS: &'static [NodeLayout] = K::OBJECTS;

    fn new(config: &Config) -> Self {
        let words = NodePools::new(config);
        let values = K::DIRECT.then(|| NodePools::new(config));
        Self { words, values, leaves: Leaves::new(config), hot: Regions::new(config) }
    }

    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        let word = Word::from_raw(object);
        // SAFETY: our contract: the object is not reclaimed.
        (word.address(), unsafe { bytes::<K>(word) })
    }

    unsafe fn free(&self, object: NonNull<u8>) {
        let word = Word::from_raw(object);
        // SAFETY: our contract; H1: the regions know their objects by the address.
        if unsafe { self.hot.free::<K>(word) } {
            return;
        }
        let object = word.address();
        // SAFETY: I7: the object is of the word's kind, so it came from this pool, or was made for
        // it before; our contract says the rest.
        unsafe {
            match word.kind() {
                Kind::Leaf => self.leaves.free(word),
                Kind::Node4 => self.words.four().free(object.cast()),
                Kind::Node14 => self.words.fourteen.free(object.cast()),
                Kind::Node56 => self.words.fifty_six.free(object.cast()),
                Kind::Node256 => self.words.full.free(object.cast()),
                Kind::Values14 => self.values().fourteen.free(object.cast()),
                Kind::Values56 => self.values().fifty_six.free(object.cast()),
                Kind::Values256 => self.values().full.free(object.cast()),
            }
        }
    }

    /// Objects in hot regions count with their kind, the regions with the last one.
    fn stats(&self) -> Vec<PoolStats> {
        let mut stats = Vec::new();
        self.words.stats(&mut stats);
        if let Some(values) = &self.values {
            values.stats(&mut stats);
        }
        stats.extend(self.leaves.stats());
        self.hot.add_to(&mut stats);
        stats
    }

    fn shrink(&self) -> usize {
        let values = self.values.as_ref().map_or(0, NodePools::shrink);
        self.words.shrink() + values + self.leaves.shrink()
    }
}
