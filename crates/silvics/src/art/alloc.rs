//! The allocator of a tree: how nodes and leaves are made and retired.

use super::digits::NUMBERS;
use super::hot::sampler::Sampler;
use super::key::Digit;
use super::leaf::{Entries, LeafKey, Leaves, MOST_KEYS};
use super::node::{AnySize, Node, NodeRef, places};
pub(super) use super::objects::NodeContent;
use super::objects::Pools;
use super::word::{Content, Kind, Word};
use crate::domain::Guard;
use crate::frame::Frame;
use crate::memory::Memory;
use crate::memory::late::LatePools;
use silvics_pool::{AllocError, Placement, Pool, SlotAlloc, SlotSize};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The allocator of a tree's objects. Each thread retires objects of all kinds in one batch: the
/// tag of a retired word says what kind its object is.
pub(super) struct Allocator<K: LeafKey + ?Sized, P: Placement, S: Sampler>(
    LatePools<Pools<K, P, S>>,
);

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Allocator<K, P, S> {
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
        let alloc = |pools: &Pools<K, P, S>| of(pools).alloc().map(NonNull::cast);
        let first = (kind as usize - 1, Pool::<N>::SLOT);
        let node = self.0.alloc(first, alloc, guard)?.cast();
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
        Ok(&self.0.pools()?.hot)
    }

    /// The number of the pool of a leaf of these entries, and the size of the leaf.
    fn first_leaf(entries: &[(K::Ref<'_>, u64)]) -> (usize, SlotSize) {
        let number = K::OBJECTS.len() - K::LEAF_KEYS + entries.len() - 1;
        (number, K::Leaves::<P>::slot(entries))
    }

    /// A leaf of these entries, at most as many as a leaf takes.
    #[inline]
    pub(super) fn leaf(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        let alloc = |pools: &Pools<K, P, S>| pools.leaves.alloc(entries);
        let leaf = self.0.alloc(Self::first_leaf(entries), alloc, guard)?;
        // SAFETY: fresh memory of the size of such a leaf, and nobody else has it.
        Ok(unsafe { K::Leaves::<P>::fill(leaf, entries) })
    }

    /// A leaf of these entries, if the first attempt to allocate it succeeds. For callers that can
    /// do without.
    pub(super) fn leaf_at_hand(&self, entries: &[(K::Ref<'_>, u64)]) -> Option<Word> {
        let alloc = |pools: &Pools<K, P, S>| pools.leaves.alloc(entries);
        let leaf = self.0.alloc_at_hand(Self::first_leaf(entries), alloc)?;
        // SAFETY: fresh memory of the size of such a leaf, and nobody else has it.
        Some(unsafe { K::Leaves::<P>::fill(leaf, entries) })
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
        // SAFETY: our contract.
        unsafe { self.0.retire(word.into_raw(), guard) };
    }

    /// See [`LatePools::flush`].
    pub(super) fn flush(&self, guard: &Guard) {
        self.0.flush(guard);
    }

    /// Frees the object that a word leads to, but not the objects below it.
    ///
    /// # Safety
    /// Nobody else has the object, or can reach it any more. It is freed once.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: our contract.
        unsafe { self.0.free(word.into_raw()) };
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
