//! The objects of a tree: a pool for each kind, and the first objects, before there are pools.
//!
//! The pools take some hundred bytes, and some hundred nanoseconds to make and drop. So a tree in a
//! placement that [takes first objects](Placement::TAKES_FIRST) makes them when it has some KiB of
//! objects (`small.rs` of `silvics-pool`).

use super::hot::sampler::{Regions, Sampler};
use super::kinds::bytes;
use super::leaf::{LeafKey, Leaves};
use super::node::{NODES, Node4, Node14, Node56, Node256};
use super::word::{Content, Kind, Word};
use crate::domain::Reclaim;
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Config, Placement, Pool, PoolStats, SlotAlloc, SmallObjects};
use silvics_sync::{Mutex, OnceBox};
use std::ptr::NonNull;
use std::sync::Arc;

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
    fn new(config: &Config) -> Self {
        let words = NodePools::new(config);
        let values = K::DIRECT.then(|| NodePools::new(config));
        Self { words, values, leaves: Leaves::new(config), hot: Regions::new(config) }
    }

    fn values(&self) -> &NodePools<u64, P> {
        self.values.as_ref().expect("keys whose values lie in nodes")
    }

    /// Frees the object that a word leads to.
    ///
    /// # Safety
    /// That of [`Objects::free`].
    unsafe fn free(&self, word: Word) {
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
}

/// The objects of a tree.
pub(super) struct Objects<K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    /// The first objects, if the pools are made later. They are dropped before the
    /// pools, so that these need not give back slot by slot.
    first: Option<Arc<SmallObjects>>,
    pools: OnceBox<Pools<K, P, S>>,
    /// Held while the pools are made: they are numbered.
    making: Mutex<()>,
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Objects<K, P, S> {
    pub(super) fn new(config: &Config) -> Self {
        let first = P::TAKES_FIRST.then(|| SmallObjects::before_pools(config)).flatten();
        let pools = match first {
            Some(_) => OnceBox::default(),
            None => OnceBox::from(Pools::new(&config.clone().starting_small())),
        };
        Self { first, pools, making: Mutex::default() }
    }

    /// The pools, made if necessary.
    pub(super) fn pools(&self) -> Result<&Pools<K, P, S>, AllocError> {
        self.pools.get().map_or_else(|| self.make(), Ok)
    }

    /// The pools, if they have been made.
    pub(super) fn pools_if_made(&self) -> Option<&Pools<K, P, S>> {
        self.pools.get()
    }

    fn first(&self) -> &Arc<SmallObjects> {
        self.first.as_ref().expect("pools are made later only after first objects")
    }

    #[cold]
    fn make(&self) -> Result<&Pools<K, P, S>, AllocError> {
        let _making = self.making.lock();
        let first = self.first();
        let made = self.pools.get_or_make(&**first.budget(), || Pools::new(&first.pool_config()));
        made.map_err(|refused| first.budget().error_of(refused, OnceBox::<Pools<K, P, S>>::BYTES))
    }

    /// Allocates a node of a kind from the first objects, or else from the pool that `of` selects.
    #[cold]
    pub(super) fn first_node<N: Send + 'static>(
        &self,
        kind: Kind,
        of: impl Fn(&Pools<K, P, S>) -> &P::Slots<N>,
    ) -> Result<NonNull<N>, AllocError> {
        let alloc = |refused| self.first().alloc_first(kind as u16 - 1, Pool::<N>::SLOT, refused);
        if let Some(node) = alloc(None)? {
            return Ok(node.cast());
        }
        match self.make() {
            Ok(pools) => of(pools).alloc(),
            Err(refused) => alloc(Some(refused))?.map(NonNull::cast).ok_or(refused),
        }
    }

    /// A leaf of these entries, at most as many as a leaf takes, as `first_node` makes a node.
    #[cold]
    pub(super) fn first_leaf(&self, entries: &[(K::Ref<'_>, u64)]) -> Result<Word, AllocError> {
        let number = K::OBJECTS.len() - K::LEAF_KEYS + entries.len() - 1;
        let size = K::Leaves::<P>::slot(entries);
        let alloc = |refused| {
            let leaf = self.first().alloc_first(number as u16, size, refused)?;
            // SAFETY: a fresh slot of the size of such a leaf, and nobody else has it.
            Ok(leaf.map(|leaf| unsafe { K::Leaves::<P>::fill(leaf, entries) }))
        };
        if let Some(leaf) = alloc(None)? {
            return Ok(leaf);
        }
        match self.make() {
            Ok(pools) => pools.leaves.alloc(entries),
            Err(refused) => alloc(Some(refused))?.ok_or(refused),
        }
    }

    /// Frees the object that a word leads to.
    ///
    /// # Safety
    /// The object is one of these, is freed once, and nobody can reach it any more. The pools are
    /// passed, unless the object was made before them.
    #[inline]
    pub(super) unsafe fn free(&self, word: Word, pools: Option<&Pools<K, P, S>>) {
        // SAFETY: our contract.
        unsafe {
            match pools {
                Some(pools) => pools.free(word),
                None => self.first().free_first(word.address(), bytes::<K>(word)),
            }
        }
    }

    /// The statistics of all pools, in the order of [`LeafKey::OBJECTS`]. Objects in hot regions
    /// count with their kind, the regions with the last one.
    pub(super) fn stats(&self) -> Vec<PoolStats> {
        let Some(pools) = self.pools.get() else {
            let stats =
                |(number, of): (usize, &NodeLayout)| self.first().stats(number as u16, of.kind);
            return K::OBJECTS.iter().enumerate().map(stats).collect();
        };
        let mut stats = Vec::new();
        pools.words.stats(&mut stats);
        if let Some(values) = &pools.values {
            values.stats(&mut stats);
        }
        stats.extend(pools.leaves.stats());
        pools.hot.add_to(&mut stats);
        stats
    }

    /// Returns the free memory of all pools to the system, and its bytes.
    pub(super) fn shrink(&self) -> usize {
        let Some(pools) = self.pools.get() else { return 0 };
        let values = pools.values.as_ref().map_or(0, NodePools::shrink);
        pools.words.shrink() + values + pools.leaves.shrink()
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Drop for Objects<K, P, S> {
    fn drop(&mut self) {
        if let (Some(first), Some(_)) = (&self.first, self.pools.get()) {
            first.budget().give(OnceBox::<Pools<K, P, S>>::BYTES);
        }
    }
}

// SAFETY: pools and regions may be shared by all threads. `reclaim` frees an object, as it should.
unsafe impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Reclaim for Objects<K, P, S> {
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: `Allocator::retire` passed this word to the domain, once, after it was unlinked
        // (I8). The domain calls `reclaim` once, when no guard can reach the object. A thread that
        // has an object of a pool sees the pools.
        unsafe { self.free(Word::from_raw(object), self.pools.get()) };
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::art::ArtKey;
    use crate::{ArtTree, Check, Domain, Lookup, Options, OrderedIndex};
    use std::sync::Barrier;

    fn has_pools<K: ArtKey + ?Sized>(tree: &ArtTree<K>) -> bool {
        tree.0.alloc.objects().is_some_and(|objects| objects.pools.get().is_some())
    }

    /// Threads insert and remove keys of a tree until it has pools, and beyond.
    #[test]
    fn threads_that_outgrow_the_first_objects_together_lose_none() {
        const THREADS: u64 = 4;
        for round in 0..200 {
            let budget = Arc::new(silvics_pool::Budget::new(None));
            let domain = Some(Domain::new()); // no other test pins it
            let options = Options { budget: Some(budget), domain, ..Options::default() };
            let mut tree: ArtTree<[u8]> = ArtTree::with_options(&options).unwrap();
            let start = Barrier::new(THREADS as usize);
            let work = |thread| {
                start.wait();
                let guard = tree.domain().pin();
                for n in 0..60 + round % 20 {
                    let key = format!("{:03}/{thread}/of this thread", n * 7 % 50);
                    if tree.insert(key.as_bytes(), n, &guard).unwrap().is_some() {
                        tree.remove(key.as_bytes(), &guard).unwrap();
                    }
                }
            };
            std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
                for thread in threads {
                    thread.join().unwrap(); // else it may be pinned while it ends
                }
            });
            assert!(has_pools(&tree));
            let entries = tree.check().unwrap();
            tree.settle();
            let live = |stats: &[PoolStats]| stats.iter().map(|of| of.live_slots).sum::<usize>();
            let objects = tree.reachable().unwrap().iter().map(|(_, count)| count).sum::<usize>();
            assert_eq!(live(&tree.pool_stats()), objects, "{entries} entries");
            drop(tree);
            assert_eq!(options.budget.unwrap().held(), 0);
        }
    }

    /// Each pool takes over the objects of its kind.
    fn pools_have_the_first_objects<K: ArtKey + ?Sized>(key: impl Fn(u64) -> K::Owned) {
        let tree: ArtTree<K> = ArtTree::with_options(&Options::default()).unwrap();
        let guard = tree.domain().pin();
        for n in 0..100 {
            tree.insert(K::borrow(&key(n)), n, &guard).unwrap();
        }
        assert!(!has_pools(&tree));
        let stats = || {
            let of = |of: PoolStats| (of.kind, of.live_slots, of.live_bytes);
            tree.pool_stats().into_iter().map(of).collect::<Vec<_>>()
        };
        let before = stats();
        assert!(before.iter().filter(|of| of.1 > 0).count() > 2, "{before:?}");
        tree.0.alloc.objects().unwrap().pools().unwrap();
        assert_eq!(stats(), before);
    }

    #[test]
    fn each_pool_takes_over_the_objects_of_its_kind() {
        pools_have_the_first_objects::<u64>(|n| n * n);
        pools_have_the_first_objects::<u128>(|n| u128::from(n * n) << 60);
        pools_have_the_first_objects::<[u8]>(|n| n.to_string().into_bytes().into());
    }

    #[test]
    fn a_small_tree_has_no_pools() {
        let tree: ArtTree<u64> = ArtTree::with_options(&Options::default()).unwrap();
        let guard = tree.domain().pin();
        for key in 0..40 {
            tree.insert(key, key, &guard).unwrap();
            let live = |stats: PoolStats| stats.live_bytes;
            assert!(tree.pool_stats().into_iter().map(live).sum::<usize>() < tree.bytes());
        }
        assert!(!has_pools(&tree));
        assert_eq!(tree.pool_stats().len(), <u64 as LeafKey>::OBJECTS.len());
        tree.0.alloc.objects().unwrap().pools().unwrap();
        assert!((0..40).all(|key| tree.remove(key, &guard).unwrap() == Some(key)));
    }

    /// Its limit has room for some more objects, but not for the pools.
    #[test]
    fn a_tree_at_its_limit_goes_on_without_pools() {
        let options = Options { memory_limit: Some(10_000), ..Options::default() };
        let tree: ArtTree<[u8]> = ArtTree::with_options(&options).unwrap();
        let guard = tree.domain().pin();
        let key = |n: u64| format!("{:02}{}", n % 100, n / 100);
        let inserted = (0..).take_while(|&n| tree.insert(key(n).as_bytes(), n, &guard).is_ok());
        let inserted = inserted.count() as u64;
        assert!(!has_pools(&tree) && tree.bytes() > 9800, "{} bytes", tree.bytes());
        assert!((0..inserted).all(|n| tree.get(key(n).as_bytes(), &guard) == Some(n)));
    }
}
