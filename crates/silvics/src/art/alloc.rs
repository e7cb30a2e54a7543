//! The objects of a tree: a pool for each kind, and what is made of what.

use super::digits::NUMBERS;
use super::key::Digit;
use super::kinds::{bytes, kind_number};
use super::leaf::{Entries, LeafKey, LeafOf, Leaves, MOST_KEYS};
use super::node::{AnySize, NODES, Node, Node4, Node14, Node56, Node256, NodeRef, places};
use super::word::{Content, Kind, Word};
use crate::domain::{Domain, Guard, Reclaim, Retired};
use silvics_pool::{AllocError, Config, Packed, Packer, Placement, PoolStats, SlotAlloc};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// Where nodes are whose places hold `C`.
pub(super) struct NodePools<C: Content + 'static, P: Placement>
where
    C::Atomic: Send,
{
    four: P::Slots<Node4<C>>,
    fourteen: P::Slots<Node14<C>>,
    fifty_six: P::Slots<Node56<C>>,
    full: P::Slots<Node256<C>>,
}

/// What a node's places can hold, and what such nodes are called.
pub(super) trait NodeContent: Content + 'static {
    /// By the number of places; of values there is none of four, as a leaf has as many.
    const KINDS: [Kind; 4];
}

impl NodeContent for Word {
    const KINDS: [Kind; 4] = [Kind::Node4, Kind::Node14, Kind::Node56, Kind::Node256];
}

impl NodeContent for u64 {
    const KINDS: [Kind; 4] = [Kind::Values14, Kind::Values14, Kind::Values56, Kind::Values256];
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

    /// One for each pool.
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

/// A pool for each kind of object, and the regions of hot ones, of all kinds.
struct Pools<K: LeafKey + ?Sized, P: Placement> {
    words: NodePools<Word, P>,
    /// If there are nodes of values.
    values: Option<NodePools<u64, P>>,
    leaves: K::Leaves<P>,
    hot: Packed,
    /// What is in `hot`, in the order of `LeafKey::OBJECTS`.
    counts: [Count; MOST_KINDS],
}

/// As many kinds of objects as a tree has, at most.
const MOST_KINDS: usize = NODES.len() + MOST_KEYS;

/// Objects of a kind in hot regions. Counts, which publish nothing: Relaxed.
#[derive(Default)]
struct Count {
    objects: AtomicUsize,
    bytes: AtomicUsize,
}

/// All objects of a tree. What is retired, of whatever kind, is one batch for each thread: of a word its
/// tag says what it leads to.
pub(super) struct Allocator<K: LeafKey + ?Sized, P: Placement> {
    pools: Arc<Pools<K, P>>,
    retired: Retired<Pools<K, P>>,
}

// SAFETY: allocators are shared by all threads.
unsafe impl<K: LeafKey + ?Sized, P: Placement> Reclaim for Pools<K, P> {
    fn releases_whole(&self) -> bool {
        Allocator::<K, P>::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: `Allocator::retire` has retired it; the caller's promise.
        unsafe { self.free(Word::from_raw(object)) };
    }
}

impl<K: LeafKey + ?Sized, P: Placement> Pools<K, P> {
    fn values(&self) -> &NodePools<u64, P> {
        self.values.as_ref().expect("keys whose values lie in nodes")
    }

    /// Takes back what a word leads to.
    ///
    /// # Safety
    /// It came from here, is taken back once, and nobody can reach it any more.
    unsafe fn free(&self, word: Word) {
        let object = word.address();
        if self.hot.find(object).is_some() {
            // SAFETY: the caller's promise.
            return unsafe { self.free_hot(word) };
        }
        // SAFETY: the caller's promise, and the kind is that of the object.
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

    /// # Safety
    /// As for `free`, and it is in a hot region.
    #[cold]
    unsafe fn free_hot(&self, word: Word) {
        // SAFETY: the caller's promise: it is still what it was.
        let bytes = unsafe { bytes::<K>(word) };
        let count = &self.counts[kind_number::<K>(word)];
        count.objects.fetch_sub(1, Ordering::Relaxed);
        count.bytes.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: the caller's promise; `packed` has asked for so many.
        unsafe { self.hot.take_back(word.address(), bytes) };
    }
}

impl<K: LeafKey + ?Sized, P: Placement> Allocator<K, P> {
    /// Whether dropping it releases every object.
    pub(super) const RELEASES_WHOLE: bool = K::Leaves::<P>::RELEASES_WHOLE;

    pub(super) fn new(config: &Config, domain: &Domain) -> Self {
        let pools = Arc::new(Pools {
            words: NodePools::new(config),
            values: K::DIRECT.then(|| NodePools::new(config)),
            leaves: K::Leaves::<P>::new(config),
            hot: Packed::new(config),
            counts: std::array::from_fn(|_| Count::default()),
        });
        let retired = Retired::new(Arc::clone(&pools), domain.clone(), &config.budget);
        Self { pools, retired }
    }

    /// Something new. If memory is short, what this thread has retired is flushed and the attempt repeated
    /// once.
    #[inline]
    fn alloc<T>(
        &self,
        alloc: impl Fn() -> Result<T, AllocError>,
        guard: &Guard,
    ) -> Result<T, AllocError> {
        alloc().or_else(|_| {
            self.retired.flush(guard);
            alloc()
        })
    }

    /// The node that every tree begins with.
    pub(super) fn root(&self, guard: &Guard) -> Result<NonNull<Node256<Word>>, AllocError> {
        self.empty(&self.pools.words.full, 0, guard)
    }

    fn empty<C: NodeContent, N: Node<C>>(
        &self,
        slots: &P::Slots<N>,
        prefix: u64,
        guard: &Guard,
    ) -> Result<NonNull<N>, AllocError> {
        const { assert!(!std::mem::needs_drop::<N>(), "objects are freed without being dropped") };
        let node = self.alloc(|| slots.alloc(), guard)?;
        // SAFETY: a fresh slot has room for a node and is ours alone.
        unsafe { node.write(N::new(prefix)) };
        Ok(node)
    }

    /// A node of words that has room for these, with them in it.
    pub(super) fn words(
        &self,
        contents: &[(Digit, Word)],
        place: Room,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.sized(&self.pools.words, contents, place, guard)
    }

    /// The same of values.
    pub(super) fn values(
        &self,
        contents: &[(Digit, u64)],
        place: Room,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.sized(self.pools.values(), contents, place, guard)
    }

    /// The smallest node with so many places.
    fn sized<C: NodeContent>(
        &self,
        family: &NodePools<C, P>,
        contents: &[(Digit, C)],
        place: Room,
        guard: &Guard,
    ) -> Result<Word, AllocError>
    where
        C::Atomic: Send,
    {
        let fits = |kind: &Kind| contents.len() + place.more <= places(*kind);
        let first = usize::from(C::KINDS[0] == C::KINDS[1]);
        let size = first + C::KINDS[first..3].iter().take_while(|kind| !fits(kind)).count();
        let (kind, depth) = (C::KINDS[size], place.depth);
        Ok(match size {
            0 => Word::node(kind, self.filled(&family.four, contents, place, guard)?, depth),
            1 => Word::node(kind, self.filled(&family.fourteen, contents, place, guard)?, depth),
            2 => Word::node(kind, self.filled(&family.fifty_six, contents, place, guard)?, depth),
            _ => Word::node(kind, self.filled(&family.full, contents, place, guard)?, depth),
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
        // SAFETY: not linked yet.
        fill(unsafe { slot.as_ref() }, contents, end);
        Ok(slot)
    }

    /// The hot regions.
    pub(super) fn hot(&self) -> &Packed {
        &self.pools.hot
    }

    /// A copy of what a word leads to, in a hot region; nothing, if that is full. Under the lock of the node that
    /// leads to it, and if it is a node under its own.
    pub(super) fn packed(&self, word: Word, packer: &mut Packer<'_>) -> Option<Word> {
        // SAFETY: read under a guard, and linked as long as the lock is held.
        let bytes = unsafe { bytes::<K>(word) };
        let copy = if word.kind() == Kind::Leaf {
            let memory = packer.alloc(hot_layout(word.kind(), bytes))?;
            // SAFETY: as above; who would write its values waits for the lock, and the memory has room and is ours alone.
            unsafe { memory.copy_from_nonoverlapping(word.address(), bytes) };
            Word::leaf(memory, word.hint() as u16)
        } else {
            // SAFETY: as above.
            match unsafe { NodeRef::from_word(word) } {
                NodeRef::Words(node) => packed(node, word, packer)?,
                NodeRef::Values(node) => packed(node, word, packer)?,
            }
        };
        let count = &self.pools.counts[kind_number::<K>(word)];
        count.objects.fetch_add(1, Ordering::Relaxed);
        count.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(copy)
    }

    /// A copy of what a word leads to, in the pool of its kind; under the same locks.
    pub(super) fn pooled(&self, word: Word, guard: &Guard) -> Result<Word, AllocError> {
        if word.kind() == Kind::Leaf {
            // SAFETY: read under the guard.
            let leaf = unsafe { K::Leaf::from_word(word) };
            return self.leaf(Entries::<K>::of(leaf).as_slice(), guard);
        }
        // SAFETY: as above.
        let node = unsafe { NodeRef::from_word(word) };
        let place = |filled| Room::alike(word, node.header().prefix, filled);
        match node {
            NodeRef::Words(node) => copied(node, |all| self.words(all, place(all.len()), guard)),
            NodeRef::Values(node) => copied(node, |all| self.values(all, place(all.len()), guard)),
        }
    }

    /// A leaf of these entries, as many as a leaf takes.
    #[inline]
    pub(super) fn leaf(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.alloc(|| self.pools.leaves.alloc(entries), guard)
    }

    /// The same at the first attempt, if there is memory at hand: for whoever can do without.
    pub(super) fn leaf_at_hand(&self, entries: &[(K::Ref<'_>, u64)]) -> Option<Word> {
        self.pools.leaves.alloc(entries).ok()
    }

    /// A subtree of one entry more than a leaf takes, which part below the node that leads to it.
    pub(super) fn burst(
        &self,
        entries: &Entries<'_, K>,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let entries = entries.as_slice();
        let [first, .., last] = entries else { unreachable!("more than a leaf takes") };
        let depth = K::parting(first.0, last.0);
        let place = Room::exact(K::before(first.0, depth), depth);
        let digit = |entry: &(K::Ref<'_>, u64)| K::digit(entry.0, depth);
        if K::is_direct(depth) && entries.iter().all(|(_, value)| *value != u64::EMPTY) {
            let mut contents = [(None, u64::EMPTY); MOST_KEYS + 1];
            for (content, entry) in contents.iter_mut().zip(entries) {
                *content = (digit(entry), entry.1);
            }
            return self.values(&contents[..entries.len()], place, guard);
        }
        let mut children = Children::<K, P, { MOST_KEYS + 1 }>::new(self);
        for group in entries.chunk_by(|a, b| digit(a) == digit(b)) {
            children.add(digit(&group[0]), self.leaf(group, guard)?);
        }
        children.node(place, guard)
    }

    /// Retires what a word leads to, without what is below.
    ///
    /// # Safety
    /// It is unlinked for new readers, is retired once, and the guard is of the tree's domain.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        // SAFETY: the guard keeps it as it is.
        let bytes = unsafe { bytes::<K>(word) };
        // SAFETY: the caller's promise.
        unsafe { self.retired.retire(word.into_raw(), bytes, guard) };
    }

    /// Has what this thread has retired reclaimed as soon as guards allow it.
    pub(super) fn flush(&self, guard: &Guard) {
        self.retired.flush(guard);
    }

    /// Frees what a word leads to, without what is below.
    ///
    /// # Safety
    /// Nobody else has it, or can reach it any more.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: the caller's promise.
        unsafe { self.pools.free(word) };
    }

    /// Frees the subtree of a word.
    ///
    /// # Safety
    /// As for `free`, of all that is in it.
    pub(super) unsafe fn free_all(&self, root: Word) {
        let mut open = vec![root];
        while let Some(word) = open.pop() {
            if word.kind() != Kind::Leaf {
                // SAFETY: the caller's promise.
                if let NodeRef::Words(node) = unsafe { NodeRef::from_word(word) } {
                    open.extend(node.all().map(|(_, child)| child));
                }
            }
            // SAFETY: the caller's promise.
            unsafe { self.free(word) };
        }
    }

    /// In the order of `LeafKey::OBJECTS`. What is in hot regions counts with its kind; the regions are told with
    /// those of the last one.
    pub(super) fn stats(&self) -> Vec<PoolStats> {
        let mut stats = Vec::new();
        self.pools.words.stats(&mut stats);
        if let Some(values) = &self.pools.values {
            values.stats(&mut stats);
        }
        stats.extend(self.pools.leaves.stats());
        for (stats, count) in stats.iter_mut().zip(&self.pools.counts) {
            stats.live_slots += count.objects.load(Ordering::Relaxed);
            stats.live_bytes += count.bytes.load(Ordering::Relaxed);
        }
        let leaves = stats.last_mut().expect("every tree has leaves");
        leaves.regions.extend(self.pools.hot.regions());
        stats
    }

    pub(super) fn settle(&mut self) {
        self.retired.drain();
    }

    /// See [`OrderedIndex::shrink`](crate::OrderedIndex::shrink).
    pub(super) fn shrink(&self) -> usize {
        self.retired.flush_unpinned();
        let values = self.pools.values.as_ref().map_or(0, NodePools::shrink);
        self.pools.words.shrink() + values + self.pools.leaves.shrink()
    }
}

/// Where a new node goes, and which places it has beside those that are filled.
#[derive(Clone, Copy)]
pub(super) struct Room {
    prefix: u64,
    depth: usize,
    more: usize,
    /// Whether one of them must be for the end.
    end: bool,
}

impl Room {
    /// As many places as are filled, at least.
    pub(super) fn exact(prefix: u64, depth: usize) -> Self {
        Self { prefix, depth, more: 0, end: false }
    }

    /// With room for a digit, and for a quarter more, so that the node is not copied again soon.
    pub(super) fn with_room(prefix: u64, depth: usize, filled: usize, digit: Digit) -> Self {
        Self { prefix, depth, more: (filled / 4).max(1), end: digit.is_none() }
    }

    /// With places as a node has that is copied, so that the copy is of its kind.
    fn alike(word: Word, prefix: u64, filled: usize) -> Self {
        let places = places(word.kind());
        Self { prefix, depth: word.depth(), more: places - filled.min(places), end: false }
    }
}

/// Children for a new node, which are freed if it does not come to be.
pub(super) struct Children<'h, K: LeafKey + ?Sized, P: Placement, const N: usize> {
    alloc: &'h Allocator<K, P>,
    contents: [(Digit, Word); N],
    len: usize,
}

impl<'h, K: LeafKey + ?Sized, P: Placement, const N: usize> Children<'h, K, P, N> {
    pub(super) fn new(alloc: &'h Allocator<K, P>) -> Self {
        Self { alloc, contents: [(None, Word::NONE); N], len: 0 }
    }

    /// Adds one that was made for this.
    pub(super) fn add(&mut self, digit: Digit, word: Word) {
        self.contents[self.len] = (digit, word);
        self.len += 1;
    }

    /// The node with all of them.
    pub(super) fn node(mut self, place: Room, guard: &Guard) -> Result<Word, AllocError> {
        let node = self.alloc.words(&self.contents[..self.len], place, guard)?;
        self.len = 0;
        Ok(node)
    }
}

impl<K: LeafKey + ?Sized, P: Placement, const N: usize> Drop for Children<'_, K, P, N> {
    fn drop(&mut self) {
        for (_, word) in &self.contents[..self.len] {
            // SAFETY: leaves made for a node that has not come to be.
            unsafe { self.alloc.free(*word) };
        }
    }
}

/// A leaf that was made and is not linked yet; freed if it does not come to that.
pub(super) struct UnlinkedLeaf<'h, K: LeafKey + ?Sized, P: Placement>(&'h Allocator<K, P>, Word);

impl<'h, K: LeafKey + ?Sized, P: Placement> UnlinkedLeaf<'h, K, P> {
    pub(super) fn new(alloc: &'h Allocator<K, P>, word: Word) -> Self {
        Self(alloc, word)
    }

    pub(super) fn word(&self) -> Word {
        self.1
    }

    /// It is the tree's.
    pub(super) fn linked(self) {
        std::mem::forget(self);
    }
}

impl<K: LeafKey + ?Sized, P: Placement> Drop for UnlinkedLeaf<'_, K, P> {
    fn drop(&mut self) {
        // SAFETY: not linked.
        unsafe { self.0.free(self.1) };
    }
}

/// Puts these into a node that is not linked yet, and has room for them; with a place for the end, if there must be
/// one.
fn fill<C: NodeContent, N: Node<C>>(node: &N, contents: &[(Digit, C)], end: bool) {
    // The end first: other digits may have filled the line that it must be in.
    let reserved = end && !contents.iter().any(|(digit, _)| digit.is_none());
    let mut added = !reserved || node.add::<false>(None, C::EMPTY);
    for (digit, content) in contents {
        added &= node.add::<false>(*digit, *content);
    }
    debug_assert!(added, "the node has room");
    node.header().count(contents.len() as isize);
}

/// How an object of so many bytes lies in a hot region: nodes in lines of their own, leaves so that they cross no
/// line without need.
pub(super) fn hot_layout(kind: Kind, bytes: usize) -> Layout {
    let log = if kind == Kind::Leaf { bytes.trailing_zeros().clamp(3, 6) } else { 6 };
    Layout::from_size_align(bytes, 1 << log).expect("no more than a key's bytes")
}

/// A copy of a node, of the same kind, in a hot region; nothing, if that is full.
fn packed<C: NodeContent>(node: AnySize<'_, C>, word: Word, packer: &mut Packer<'_>) -> Option<Word>
where
    C::Atomic: Send,
{
    fn put<C: NodeContent, N: Node<C>>(
        contents: &[(Digit, C)],
        prefix: u64,
        packer: &mut Packer<'_>,
    ) -> Option<NonNull<u8>> {
        let slot = packer.alloc(hot_layout(Kind::Node4, size_of::<N>()))?.cast::<N>();
        // SAFETY: fresh memory with room for a node, ours alone.
        let node = unsafe {
            slot.write(N::new(prefix));
            slot.as_ref()
        };
        fill(node, contents, false);
        Some(slot.cast())
    }
    let (kind, prefix) = (word.kind(), node.header().prefix);
    let object = copied(node, |all| match node {
        AnySize::Four(_) => put::<C, Node4<C>>(all, prefix, packer),
        AnySize::Fourteen(_) => put::<C, Node14<C>>(all, prefix, packer),
        AnySize::FiftySix(_) => put::<C, Node56<C>>(all, prefix, packer),
        AnySize::Full(_) => put::<C, Node256<C>>(all, prefix, packer),
    })?;
    Some(Word::node(kind, object, word.depth()))
}

/// Gives `then` what is in a node, for a copy of it.
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
    // SAFETY: so many have been written.
    then(unsafe { std::slice::from_raw_parts(contents.as_ptr().cast::<(Digit, C)>(), len) })
}
