//! The allocator of a tree: how nodes and leaves are made and retired.

use super::digits::NUMBERS;
use super::hot::sampler::Sampler;
use super::key::Digit;
use super::kinds::bytes;
use super::leaf::{Entries, LeafKey, Leaves, MOST_KEYS};
use super::node::{AnySize, Node, NodeRef, places};
use super::objects::Objects;
pub(super) use super::objects::{NodeContent, Pools};
use super::word::{Content, Kind, Word};
use crate::domain::{Guard, Retired};
use crate::frame::Frame;
use crate::memory::Memory;
use silvics_pool::{AllocError, Placement, PoolStats, SlotAlloc};
use silvics_sync::OnceBox;
use silvics_sync::atomic::{AtomicPtr, Ordering};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// The allocator of a tree's objects. Each thread retires objects of all kinds in one batch: the
/// tag of a retired word says what kind its object is.
///
/// An empty tree has no [`Made`].
pub(super) struct Allocator<K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    pub(super) frame: Frame,
    made: OnceBox<Made<K, P, S>>,
}

/// The objects, and those that wait to be freed.
struct Made<K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    /// The pools of the objects, or null if no thread has needed them yet. The objects have this
    /// pointer too, but in a line that each batch of retired objects writes, as it counts its
    /// references to them.
    pools: AtomicPtr<Pools<K, P, S>>,
    /// The batches, with the only reference to the objects beside those of sealed batches.
    retired: Retired<Objects<K, P, S>>,
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Made<K, P, S> {
    fn new(Frame { config, domain, .. }: &Frame) -> Self {
        let objects = Arc::new(Objects::new(config));
        let retired = Retired::starting_small(objects, domain.clone(), &config.budget);
        Self { pools: AtomicPtr::default(), retired }
    }

    fn objects(&self) -> &Objects<K, P, S> {
        self.retired.owner()
    }

    /// The pools, if they have been made.
    #[inline(always)]
    fn pools(&self) -> Option<&Pools<K, P, S>> {
        // Acquire pairs with Release of `find_pools`: a thread that sees the pools sees them
        // initialised.
        match NonNull::new(self.pools.load(Ordering::Acquire)) {
            // SAFETY: `find_pools` has stored the pools of our objects, which keep them.
            Some(pools) => Some(unsafe { pools.as_ref() }),
            None => self.find_pools(),
        }
    }

    #[cold]
    fn find_pools(&self) -> Option<&Pools<K, P, S>> {
        let pools = self.objects().pools_if_made()?;
        self.pools.store(NonNull::from(pools).as_ptr(), Ordering::Release);
        Some(pools)
    }

    /// A node of a kind from the pool that `of` selects.
    #[inline]
    fn node<N: Send + 'static>(
        &self,
        kind: Kind,
        of: impl Fn(&Pools<K, P, S>) -> &P::Slots<N>,
    ) -> Result<NonNull<N>, AllocError> {
        match self.pools() {
            Some(pools) => of(pools).alloc(),
            None => self.objects().first_node(kind, of),
        }
    }

    /// A leaf of these entries, at most as many as a leaf takes.
    #[inline]
    fn leaf(&self, entries: &[(K::Ref<'_>, u64)]) -> Result<Word, AllocError> {
        match self.pools() {
            Some(pools) => pools.leaves.alloc(entries),
            None => self.objects().first_leaf(entries),
        }
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Allocator<K, P, S> {
    /// Makes what keeps the objects with the first of them, except in a placement that frees each
    /// object by itself.
    pub(super) fn new(frame: Frame) -> Result<Self, AllocError> {
        let new = Self { frame, made: OnceBox::default() };
        if !P::RELEASES_WHOLE {
            new.make()?;
        }
        Ok(new)
    }

    /// The objects and their batches, made if necessary.
    #[inline]
    fn made_now(&self) -> Result<&Made<K, P, S>, AllocError> {
        self.made.get().map_or_else(|| self.make(), Ok)
    }

    #[cold]
    fn make(&self) -> Result<&Made<K, P, S>, AllocError> {
        let budget = &self.frame.config.budget;
        let made = self.made.get_or_make(budget, || Made::new(&self.frame));
        made.map_err(|refused| budget.error_of(refused, OnceBox::<Made<K, P, S>>::BYTES))
    }

    /// The objects of a tree that has some, or has had some.
    #[inline]
    fn made(&self) -> &Made<K, P, S> {
        self.made.get().expect("the first object has made this")
    }

    /// The objects of a tree that has some, or has had some.
    #[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
    pub(super) fn objects(&self) -> Option<&Objects<K, P, S>> {
        self.made.get().map(Made::objects)
    }

    /// Calls `alloc`. If it fails, flushes the objects that this thread has retired, and calls it
    /// once more.
    #[inline]
    fn alloc<T>(
        &self,
        alloc: impl Fn(&Made<K, P, S>) -> Result<T, AllocError>,
        guard: &Guard,
    ) -> Result<T, AllocError> {
        let made = self.made_now()?;
        alloc(made).or_else(|_| {
            made.retired.flush(guard);
            alloc(made)
        })
    }

    /// The root of a new tree.
    pub(super) fn root(&self, guard: &Guard) -> Result<Word, AllocError> {
        let node = self.empty(Kind::Node4, |pools| Word::pools(pools).four(), 0, guard)?;
        Ok(Word::node(Kind::Node4, node, 0))
    }

    /// A root with a place for each byte.
    pub(super) fn full(
        &self,
        contents: &[(Digit, Word)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let room = Room { prefix: 0, depth: 0, more: NUMBERS, end: false };
        self.node(contents, room, guard)
    }

    /// An empty node of a kind, from the pool that `of` selects.
    fn empty<C: NodeContent, N: Node<C>>(
        &self,
        kind: Kind,
        of: impl Fn(&Pools<K, P, S>) -> &P::Slots<N>,
        prefix: u64,
        guard: &Guard,
    ) -> Result<NonNull<N>, AllocError> {
        const { assert!(!std::mem::needs_drop::<N>(), "objects are freed without being dropped") };
        let node = self.alloc(|made| made.node(kind, &of), guard)?;
        // SAFETY: a fresh slot of this pool has room for such a node, and nobody else has it.
        unsafe { node.write(N::new(prefix)) };
        Ok(node)
    }

    /// The smallest node that takes the contents and the room asked for.
    pub(super) fn node<C: NodeContent>(
        &self,
        contents: &[(Digit, C)],
        room: Room,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let digits = contents.len() + room.more;
        let smallest = usize::from(C::KINDS[0] == C::KINDS[1]);
        let too_small = |kind: &&Kind| digits > places(**kind);
        let size = smallest + C::KINDS[smallest..3].iter().take_while(too_small).count();
        let filled = Filled { kind: C::KINDS[size], contents, room, guard };
        match size {
            0 => self.filled(filled, |pools| C::pools(pools).four()),
            1 => self.filled(filled, |pools| &C::pools(pools).fourteen),
            2 => self.filled(filled, |pools| &C::pools(pools).fifty_six),
            _ => self.filled(filled, |pools| &C::pools(pools).full),
        }
    }

    fn filled<C: NodeContent, N: Node<C>>(
        &self,
        Filled { kind, contents, room: Room { prefix, depth, end, .. }, guard }: Filled<'_, C>,
        of: impl Fn(&Pools<K, P, S>) -> &P::Slots<N>,
    ) -> Result<Word, AllocError> {
        let slot = self.empty(kind, of, prefix, guard)?;
        // SAFETY: `empty` has just made the node, and nobody else has it.
        fill(unsafe { slot.as_ref() }, contents, end);
        Ok(Word::node(kind, slot, depth))
    }

    /// The regions of hot objects.
    pub(super) fn regions(&self) -> Result<&S::Regions, AllocError> {
        Ok(&self.made_now()?.objects().pools()?.hot)
    }

    /// A leaf of these entries, at most as many as a leaf takes.
    #[inline]
    pub(super) fn leaf(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.alloc(|made| made.leaf(entries), guard)
    }

    /// A leaf of these entries, if the first attempt to allocate it succeeds. For callers that can
    /// do without.
    pub(super) fn leaf_at_hand(&self, entries: &[(K::Ref<'_>, u64)]) -> Option<Word> {
        self.made_now().ok()?.leaf(entries).ok()
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
            return self.node(&contents[..entries.len()], room, guard);
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
        let made = self.made();
        // SAFETY: our contract; all objects of the tree are there. A thread that has an object of a
        // pool sees the pools.
        unsafe { made.objects().free(word, made.pools()) };
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
    fn stats(&self) -> Vec<PoolStats> {
        let Some(made) = self.made.get() else {
            let pages = self.frame.config.pages;
            return K::OBJECTS.iter().map(|of| PoolStats::empty(of.kind, pages)).collect();
        };
        made.objects().stats()
    }

    fn settle(&mut self) {
        if let Some(made) = self.made.get_mut() {
            made.retired.drain();
        }
    }

    fn shrink(&self) -> usize {
        let Some(made) = self.made.get() else { return 0 };
        made.retired.flush_unpinned();
        made.objects().shrink()
    }
}

/// A node to make: its kind, contents and position.
struct Filled<'a, C> {
    kind: Kind,
    contents: &'a [(Digit, C)],
    room: Room,
    guard: &'a Guard,
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
        let node = self.alloc.node(&self.contents[..self.len], room, guard)?;
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
) -> R {
    let mut contents = [const { MaybeUninit::uninit() }; NUMBERS];
    let mut len = 0;
    for content in node.all() {
        contents[len].write(content);
        len += 1;
    }
    // SAFETY: the loop has written the first `len`.
    then(unsafe { std::slice::from_raw_parts(contents.as_ptr().cast::<(Digit, C)>(), len) })
}
