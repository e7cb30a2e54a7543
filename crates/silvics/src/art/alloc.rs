//! The objects of a tree: a pool for each kind, and how nodes and leaves are made and retired.

use super::digits::NUMBERS;
use super::hot::sampler::{Regions, Sampler};
use super::key::Digit;
use super::kinds::bytes;
use super::leaf::{Entries, LeafKey, Leaves, MOST_KEYS};
use super::node::{AnySize, NODES, Node, Node4, Node14, Node56, Node256, NodeRef, places};
use super::word::{Content, Kind, Word};
use crate::domain::{Guard, Reclaim, Retired};
use crate::frame::Frame;
use crate::memory::Memory;
use silvics_pool::{AllocError, Config, Placement, PoolStats, SlotAlloc};
use silvics_sync::OnceBox;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// The content of a node's places, with the kinds of the nodes that hold it.
pub(super) trait NodeContent: Content + 'static {
    /// The kinds, from the smallest to the largest. No node has four places for values, as a leaf
    /// holds as many.
    const KINDS: [Kind; 4];
}

impl NodeContent for Word {
    const KINDS: [Kind; 4] = [Kind::Node4, Kind::Node14, Kind::Node56, Kind::Node256];
}

impl NodeContent for u64 {
    const KINDS: [Kind; 4] = [Kind::Values14, Kind::Values14, Kind::Values56, Kind::Values256];
}

/// The pools for all node sizes whose places hold `C`.
struct NodePools<C: Content + 'static, P: Placement>
where
    C::Atomic: Send,
{
    four: P::Slots<Node4<C>>,
    fourteen: P::Slots<Node14<C>>,
    fifty_six: P::Slots<Node56<C>>,
    full: P::Slots<Node256<C>>,
}

impl<C: NodeContent, P: Placement> NodePools<C, P>
where
    C::Atomic: Send,
{
    fn new(config: &Config) -> Self {
        let kind = |of: usize| NODES[C::KINDS[of] as usize - 1].kind;
        Self {
            four: P::Slots::new(kind(0), config),
            fourteen: P::Slots::new(kind(1), config),
            fifty_six: P::Slots::new(kind(2), config),
            full: P::Slots::new(kind(3), config),
        }
    }

    /// Appends the statistics of each pool.
    fn stats(&self, stats: &mut Vec<PoolStats>) {
        if C::KINDS[0] != C::KINDS[1] {
            stats.push(self.four.stats());
        }
        stats.extend([self.fourteen.stats(), self.fifty_six.stats(), self.full.stats()]);
    }

    fn shrink(&self) -> usize {
        let large = self.fourteen.shrink() + self.fifty_six.shrink() + self.full.shrink();
        self.four.shrink() + large
    }
}

/// A pool for each kind of object, and the hot regions, which hold objects of all kinds.
struct Pools<K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    words: NodePools<Word, P>,
    /// The pools of nodes of values, if the key type has any.
    values: Option<NodePools<u64, P>>,
    leaves: K::Leaves<P>,
    hot: S::Regions,
}

/// The allocator of a tree's objects. Each thread retires objects of all kinds in one batch: the
/// tag of a retired word says what kind its object is.
///
/// The first object of a tree makes the pools, so an empty tree has none.
pub(super) struct Allocator<K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    pub(super) frame: Frame,
    made: OnceBox<Made<K, P, S>>,
}

/// The pools, and the objects that wait to return to them.
struct Made<K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    pools: Arc<Pools<K, P, S>>,
    retired: Retired<Pools<K, P, S>>,
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Made<K, P, S> {
    fn new(frame: &Frame) -> Self {
        let config = frame.config.clone().starting_small();
        let pools = Arc::new(Pools {
            words: NodePools::new(&config),
            values: K::DIRECT.then(|| NodePools::new(&config)),
            leaves: K::Leaves::<P>::new(&config),
            hot: S::Regions::new(&config),
        });
        let retired =
            Retired::starting_small(Arc::clone(&pools), frame.domain.clone(), &config.budget);
        Self { pools, retired }
    }
}

// SAFETY: pools and regions may be shared by all threads. `reclaim` frees an object, as it should.
unsafe impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Reclaim for Pools<K, P, S> {
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: `Allocator::retire` passed this word to the domain, once, after it was unlinked
        // (I8). The domain calls `reclaim` once, when no guard can reach the object.
        unsafe { self.free(Word::from_raw(object)) };
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Pools<K, P, S> {
    fn values(&self) -> &NodePools<u64, P> {
        self.values.as_ref().expect("keys whose values lie in nodes")
    }

    /// Frees the object that a word leads to.
    ///
    /// # Safety
    /// The object came from these pools, is freed once, and nobody can reach it any more.
    unsafe fn free(&self, word: Word) {
        // SAFETY: our contract; H1: the regions know their objects by the address.
        if unsafe { self.hot.free::<K>(word) } {
            return;
        }
        let object = word.address();
        // SAFETY: I7: the object is of the word's kind, so it came from this pool; our contract
        // says the rest.
        unsafe {
            match word.kind() {
                Kind::Leaf => self.leaves.free(word),
                Kind::Node4 => self.words.four.free(object.cast()),
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

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Allocator<K, P, S> {
    /// Without pools if these may start small; else with all pools.
    pub(super) fn new(frame: Frame) -> Result<Self, AllocError> {
        let new = Self { frame, made: OnceBox::default() };
        if !P::RELEASES_WHOLE {
            new.pools()?;
        }
        Ok(new)
    }

    /// The pools, made if necessary.
    #[inline]
    fn pools(&self) -> Result<&Pools<K, P, S>, AllocError> {
        match self.made.get() {
            Some(made) => Ok(&made.pools),
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> Result<&Pools<K, P, S>, AllocError> {
        let budget = &self.frame.config.budget;
        let made = self.made.get_or_make(budget, || Made::new(&self.frame));
        let bytes = OnceBox::<Made<K, P, S>>::BYTES;
        Ok(&made.map_err(|refused| budget.error_of(refused, bytes))?.pools)
    }

    /// The pools of a tree that has objects, or has had some.
    #[inline]
    fn made(&self) -> &Made<K, P, S> {
        self.made.get().expect("the first object has made the pools")
    }

    /// Calls `alloc`. If it fails, flushes the objects that this thread has retired, and calls it
    /// once more.
    #[inline]
    fn alloc<T>(
        &self,
        alloc: impl Fn(&Pools<K, P, S>) -> Result<T, AllocError>,
        guard: &Guard,
    ) -> Result<T, AllocError> {
        let pools = self.pools()?;
        alloc(pools).or_else(|_| {
            self.made().retired.flush(guard);
            alloc(pools)
        })
    }

    /// The root of a new tree.
    pub(super) fn root(&self, guard: &Guard) -> Result<Word, AllocError> {
        let node = self.empty(&self.pools()?.words.four, 0, guard)?;
        Ok(Word::node(Kind::Node4, node, 0))
    }

    /// A root with a place for each byte.
    pub(super) fn full(
        &self,
        contents: &[(Digit, Word)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let room = Room { prefix: 0, depth: 0, more: NUMBERS, end: false };
        self.words(contents, room, guard)
    }

    fn empty<C: NodeContent, N: Node<C>>(
        &self,
        slots: &P::Slots<N>,
        prefix: u64,
        guard: &Guard,
    ) -> Result<NonNull<N>, AllocError> {
        const { assert!(!std::mem::needs_drop::<N>(), "objects are freed without being dropped") };
        let node = self.alloc(|_| slots.alloc(), guard)?;
        // SAFETY: a fresh slot of this pool has room for such a node, and nobody else has it.
        unsafe { node.write(N::new(prefix)) };
        Ok(node)
    }

    /// A node of words that holds these contents and has the room asked for.
    pub(super) fn words(
        &self,
        contents: &[(Digit, Word)],
        room: Room,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.sized(&self.pools()?.words, contents, room, guard)
    }

    /// A node of values that holds these contents and has the room asked for.
    pub(super) fn values(
        &self,
        contents: &[(Digit, u64)],
        room: Room,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.sized(self.pools()?.values(), contents, room, guard)
    }

    /// The smallest node that takes the contents and the room asked for.
    fn sized<C: NodeContent>(
        &self,
        pools: &NodePools<C, P>,
        contents: &[(Digit, C)],
        room: Room,
        guard: &Guard,
    ) -> Result<Word, AllocError>
    where
        C::Atomic: Send,
    {
        let digits = contents.len() + room.more;
        let smallest = usize::from(C::KINDS[0] == C::KINDS[1]);
        let too_small = |kind: &&Kind| digits > places(**kind);
        let size = smallest + C::KINDS[smallest..3].iter().take_while(too_small).count();
        let (kind, depth) = (C::KINDS[size], room.depth);
        Ok(match size {
            0 => Word::node(kind, self.filled(&pools.four, contents, room, guard)?, depth),
            1 => Word::node(kind, self.filled(&pools.fourteen, contents, room, guard)?, depth),
            2 => Word::node(kind, self.filled(&pools.fifty_six, contents, room, guard)?, depth),
            _ => Word::node(kind, self.filled(&pools.full, contents, room, guard)?, depth),
        })
    }

    fn filled<C: NodeContent, N: Node<C>>(
        &self,
        slots: &P::Slots<N>,
        contents: &[(Digit, C)],
        Room { prefix, end, .. }: Room,
        guard: &Guard,
    ) -> Result<NonNull<N>, AllocError> {
        let slot = self.empty(slots, prefix, guard)?;
        // SAFETY: `empty` has just made the node, and nobody else has it.
        fill(unsafe { slot.as_ref() }, contents, end);
        Ok(slot)
    }

    /// The regions of hot objects.
    pub(super) fn regions(&self) -> Result<&S::Regions, AllocError> {
        Ok(&self.pools()?.hot)
    }

    /// A leaf of these entries, at most as many as a leaf takes.
    #[inline]
    pub(super) fn leaf(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.alloc(|pools| pools.leaves.alloc(entries), guard)
    }

    /// A leaf of these entries, if the first attempt to allocate it succeeds. For callers that can
    /// do without.
    pub(super) fn leaf_at_hand(&self, entries: &[(K::Ref<'_>, u64)]) -> Option<Word> {
        self.pools().ok()?.leaves.alloc(entries).ok()
    }

    /// A subtree of one entry more than a leaf takes.
    pub(super) fn burst(
        &self,
        entries: &Entries<'_, K>,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let entries = entries.as_slice();
        let [first, .., last] = entries else { unreachable!("more than a leaf takes") };
        let depth = K::parting(first.0, last.0);
        let room = Room::exact(K::before(first.0, depth), depth);
        let digit = |entry: &(K::Ref<'_>, u64)| K::digit(entry.0, depth);
        if K::is_direct(depth) && entries.iter().all(|(_, value)| *value != u64::EMPTY) {
            let mut contents = [(None, u64::EMPTY); MOST_KEYS + 1];
            for (content, entry) in contents.iter_mut().zip(entries) {
                *content = (digit(entry), entry.1);
            }
            return self.values(&contents[..entries.len()], room, guard);
        }
        let mut children = Children::<K, P, S, { MOST_KEYS + 1 }>::new(self);
        for group in entries.chunk_by(|a, b| digit(a) == digit(b)) {
            children.add(digit(&group[0]), self.leaf(group, guard)?);
        }
        children.node(room, guard)
    }

    /// Retires the object that a word leads to, but not the objects below it.
    ///
    /// # Safety
    /// No new reader can reach the object. It is retired once. The guard is of the tree's domain.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        // SAFETY: the object has not been retired before (our contract), so it is not reclaimed.
        let bytes = unsafe { bytes::<K>(word) };
        // SAFETY: our contract is that of `Retired::retire`.
        unsafe { self.made().retired.retire(word.into_raw(), bytes, guard) };
    }

    /// Hands the objects that this thread has retired to the domain, to be reclaimed as soon as
    /// guards allow it.
    pub(super) fn flush(&self, guard: &Guard) {
        if let Some(made) = self.made.get() {
            made.retired.flush(guard);
        }
    }

    /// Frees the object that a word leads to, but not the objects below it.
    ///
    /// # Safety
    /// Nobody else has the object, or can reach it any more. It is freed once.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: our contract; all objects of the tree come from its pools.
        unsafe { self.made().pools.free(word) };
    }

    /// Frees the subtree of a word.
    ///
    /// # Safety
    /// Nobody else has any object of the subtree, or can reach one. Each is freed once.
    pub(super) unsafe fn free_all(&self, root: Word) {
        let mut open = vec![root];
        while let Some(word) = open.pop() {
            if word.kind() != Kind::Leaf {
                // SAFETY: I7: the word's kind is a node's. The node has not been freed: only one
                // word leads to it (I2).
                if let NodeRef::Words(node) = unsafe { NodeRef::from_word(word) } {
                    open.extend(node.all().map(|(_, child)| child));
                }
            }
            // SAFETY: our contract.
            unsafe { self.free(word) };
        }
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Drop for Allocator<K, P, S> {
    fn drop(&mut self) {
        if self.made.get().is_some() {
            self.frame.config.budget.give(OnceBox::<Made<K, P, S>>::BYTES);
        }
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Memory for Allocator<K, P, S> {
    /// The statistics of all pools, in the order of [`LeafKey::OBJECTS`]. Objects in hot regions
    /// count with their kind, the regions with the last one.
    fn stats(&self) -> Vec<PoolStats> {
        let Some(Made { pools, .. }) = self.made.get() else {
            let pages = self.frame.config.pages;
            return K::OBJECTS.iter().map(|of| PoolStats::empty(of.kind, pages)).collect();
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

    fn settle(&mut self) {
        if let Some(made) = self.made.get_mut() {
            made.retired.drain();
        }
    }

    fn shrink(&self) -> usize {
        let Some(Made { pools, retired }) = self.made.get() else { return 0 };
        retired.flush_unpinned();
        let values = pools.values.as_ref().map_or(0, NodePools::shrink);
        pools.words.shrink() + values + pools.leaves.shrink()
    }
}

/// The position of a new node, and the room that it needs beside its contents.
#[derive(Clone, Copy)]
pub(super) struct Room {
    prefix: u64,
    depth: usize,
    more: usize,
    /// Whether one place must be for the end.
    end: bool,
}

impl Room {
    /// No room beside the contents.
    pub(super) fn exact(prefix: u64, depth: usize) -> Self {
        Self { prefix, depth, more: 0, end: false }
    }

    /// Room for a digit and for a quarter more, so that the node is not copied again soon.
    pub(super) fn with_room(prefix: u64, depth: usize, filled: usize, digit: Digit) -> Self {
        Self { prefix, depth, more: (filled / 4).max(1), end: digit.is_none() }
    }

    /// The room of the node that a word leads to, so that a copy is of its kind.
    pub(super) fn alike(word: Word, prefix: u64, filled: usize) -> Self {
        let places = places(word.kind());
        Self { prefix, depth: word.depth(), more: places - filled.min(places), end: false }
    }
}

/// Children for a new node. They are freed if the node cannot be made.
pub(super) struct Children<'t, K: LeafKey + ?Sized, P: Placement, S: Sampler, const N: usize> {
    alloc: &'t Allocator<K, P, S>,
    contents: [(Digit, Word); N],
    len: usize,
}

impl<'t, K: LeafKey + ?Sized, P: Placement, S: Sampler, const N: usize> Children<'t, K, P, S, N> {
    pub(super) fn new(alloc: &'t Allocator<K, P, S>) -> Self {
        Self { alloc, contents: [(None, Word::NONE); N], len: 0 }
    }

    /// Adds a leaf that was made for the new node.
    pub(super) fn add(&mut self, digit: Digit, word: Word) {
        self.contents[self.len] = (digit, word);
        self.len += 1;
    }

    /// The node with all of them.
    pub(super) fn node(mut self, room: Room, guard: &Guard) -> Result<Word, AllocError> {
        let node = self.alloc.words(&self.contents[..self.len], room, guard)?;
        self.len = 0;
        Ok(node)
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler, const N: usize> Drop
    for Children<'_, K, P, S, N>
{
    fn drop(&mut self) {
        for (_, word) in &self.contents[..self.len] {
            // SAFETY: the leaf was made for a node that was not made, so nobody else has it (I8).
            unsafe { self.alloc.free(*word) };
        }
    }
}

/// A leaf that is not linked yet. It is freed if it never is.
pub(super) struct UnlinkedLeaf<'t, K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    alloc: &'t Allocator<K, P, S>,
    word: Word,
}

impl<'t, K: LeafKey + ?Sized, P: Placement, S: Sampler> UnlinkedLeaf<'t, K, P, S> {
    pub(super) fn new(alloc: &'t Allocator<K, P, S>, word: Word) -> Self {
        Self { alloc, word }
    }

    pub(super) fn word(&self) -> Word {
        self.word
    }

    /// Gives the leaf to the tree, in which it has been linked.
    pub(super) fn linked(self) {
        std::mem::forget(self);
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Drop for UnlinkedLeaf<'_, K, P, S> {
    fn drop(&mut self) {
        // SAFETY: the leaf has not been linked, so nobody else has it (I8).
        unsafe { self.alloc.free(self.word) };
    }
}

/// Fills a node that is not linked yet and has room for the contents. With `end`, one place is for
/// the end in any case.
pub(super) fn fill<C: NodeContent, N: Node<C>>(node: &N, contents: &[(Digit, C)], end: bool) {
    // The end first: other digits may fill the line that it must be in.
    let reserved = end && !contents.iter().any(|(digit, _)| digit.is_none());
    let mut added = !reserved || node.add::<false>(None, C::EMPTY);
    for (digit, content) in contents {
        added &= node.add::<false>(*digit, *content);
    }
    debug_assert!(added, "the node has room");
    node.header().count(contents.len() as isize);
}

/// Calls `then` with the contents of a node, for a copy of it.
pub(super) fn copied<C: NodeContent, R>(
    node: AnySize<'_, C>,
    then: impl FnOnce(&[(Digit, C)]) -> R,
) -> R
where
    C::Atomic: Send,
{
    let mut contents = [const { MaybeUninit::uninit() }; NUMBERS];
    let mut len = 0;
    for content in node.all() {
        contents[len].write(content);
        len += 1;
    }
    // SAFETY: the loop has written the first `len`.
    then(unsafe { std::slice::from_raw_parts(contents.as_ptr().cast::<(Digit, C)>(), len) })
}
