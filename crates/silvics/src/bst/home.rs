//! The memory of the inner nodes and leaves of an external tree.
//!
//! A [`NodePools`] has a pool for each kind of node, or one for both. [`NodeStore`] is the set of
//! steps that an operation takes with nodes: it makes a leaf, or a leaf and the inner node that
//! comes with it, and retires or frees either. In [`Each`] every node is an object; in [`Blocks`]
//! every pair of them is.

use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::Frame;
use crate::memory::{Memory, Nodes, Spare};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, PoolStats};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::mem::{MaybeUninit, offset_of};
use std::ptr::NonNull;

/// The pools of an external tree with inner nodes `I` and leaves `L`.
pub trait NodePools<I: Send + 'static, L: Send + 'static, P: Placement>:
    Memory + Send + Sync + 'static
{
    /// Makes pools for objects of these layouts.
    fn new(frame: &Frame, inner: &NodeLayout, leaf: &NodeLayout) -> Self;
    /// The pool of the inner nodes.
    fn inners(&self) -> &Nodes<I, P>;
    /// The pool of the leaves.
    fn leaves(&self) -> &Nodes<L, P>;
}

/// Pools for inner nodes and leaves that are separate kinds, each in its own pool.
pub struct Apart<I: Send + 'static, L: Send + 'static, P: Placement> {
    inners: Nodes<I, P>,
    leaves: Nodes<L, P>,
}

impl<I: Send + 'static, L: Send + 'static, P: Placement> NodePools<I, L, P> for Apart<I, L, P> {
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
}

impl<I: Send + 'static, L: Send + 'static, P: Placement> Memory for Apart<I, L, P> {
    fn stats(&self) -> Vec<PoolStats> {
        [self.inners.stats(), self.leaves.stats()].concat()
    }
    fn settle(&mut self) {
        self.inners.settle();
        self.leaves.settle();
    }
    fn shrink(&self) -> usize {
        self.inners.shrink() + self.leaves.shrink()
    }
}

/// One pool for inner nodes and leaves of one type, as in published implementations.
pub struct Alike<N: Send + 'static, P: Placement> {
    nodes: Nodes<N, P>,
}

impl<N: Send + 'static, P: Placement> NodePools<N, N, P> for Alike<N, P> {
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
}

impl<N: Send + 'static, P: Placement> Memory for Alike<N, P> {
    fn stats(&self) -> Vec<PoolStats> {
        self.nodes.stats()
    }
    fn settle(&mut self) {
        self.nodes.settle();
    }
    fn shrink(&self) -> usize {
        self.nodes.shrink()
    }
}

/// The memory of an external tree with inner nodes `I` and leaves `L`, as its operations see it.
pub trait NodeStore<I: Send + 'static, L: Send + 'static, P: Placement>:
    Memory + Sized + Send + Sync + 'static
{
    /// The nodes that an operation has allocated and not linked yet.
    type Spare<'h>: Fresh<I, L>
    where
        Self: 'h;

    /// Makes pools for objects of these layouts, which are or contain inner nodes and leaves.
    fn new(frame: &Frame, inner: &NodeLayout, leaf: &NodeLayout) -> Self;

    /// Makes an empty set of spare nodes, for an operation that may need some.
    fn spare(&self) -> Self::Spare<'_>;

    /// Retires an inner node.
    ///
    /// # Safety
    /// The node came from this store, is unlinked for new readers and retired once, and `guard` is
    /// of the tree's domain.
    unsafe fn retire_inner(&self, inner: NonNull<I>, guard: &Guard);

    /// Retires a leaf.
    ///
    /// # Safety
    /// The contract of [`NodeStore::retire_inner`] holds for the leaf.
    unsafe fn retire_leaf(&self, leaf: NonNull<L>, guard: &Guard);

    /// Frees an inner node at once.
    ///
    /// # Safety
    /// The node came from this store, is not retired and freed once, and no thread can reach it.
    unsafe fn free_inner(&self, inner: NonNull<I>);

    /// Frees a leaf at once.
    ///
    /// # Safety
    /// The contract of [`NodeStore::free_inner`] holds for the leaf.
    unsafe fn free_leaf(&self, leaf: NonNull<L>);

    /// The place of an inner node of the quiescent tree.
    fn inner_lives(&self, inner: NonNull<I>) -> Lives;

    /// The place of a leaf of the quiescent tree.
    fn leaf_lives(&self, leaf: NonNull<L>) -> Lives;
}

/// Nodes that an operation has allocated and not linked yet. They are kept over attempts and freed
/// at the end.
pub trait Fresh<I, L> {
    /// Makes a leaf.
    fn leaf(&mut self, leaf: L, guard: &Guard) -> Result<NonNull<L>, AllocError>;

    /// Makes a leaf, and the inner node that `inner` returns for it.
    fn pair(
        &mut self,
        leaf: L,
        inner: impl FnOnce(NonNull<L>) -> I,
        guard: &Guard,
    ) -> Result<NonNull<I>, AllocError>;

    /// Records that the last result of `leaf` is linked in the tree.
    fn leaf_linked(&mut self);

    /// Records that the last result of `pair` is linked in the tree.
    fn pair_linked(&mut self);
}

/// The place of a node of a quiescent tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// The node is in this object and represents it.
    In(NonNull<u8>),
    /// The node is in an object that the inner node in it represents.
    BesideInner,
    /// The node counts as retired.
    Nowhere,
}

/// A store in which each node is an object of the pools `H`.
pub struct Each<H>(H);

/// A spare leaf and a spare inner node, each an object.
pub struct Two<'h, I: Send + 'static, L: Send + 'static, P: Placement> {
    leaf: Spare<'h, L, P>,
    inner: Spare<'h, I, P>,
}

impl<I: Send + 'static, L: Send + 'static, P: Placement> Fresh<I, L> for Two<'_, I, L, P> {
    #[inline(always)]
    fn leaf(&mut self, leaf: L, guard: &Guard) -> Result<NonNull<L>, AllocError> {
        self.leaf.filled(leaf, guard)
    }
    #[inline(always)]
    fn pair(
        &mut self,
        leaf: L,
        inner: impl FnOnce(NonNull<L>) -> I,
        guard: &Guard,
    ) -> Result<NonNull<I>, AllocError> {
        let leaf = self.leaf.filled(leaf, guard)?;
        self.inner.filled(inner(leaf), guard)
    }
    #[inline(always)]
    fn leaf_linked(&mut self) {
        self.leaf.linked();
    }
    #[inline(always)]
    fn pair_linked(&mut self) {
        self.leaf.linked();
        self.inner.linked();
    }
}

impl<I: Send + 'static, L: Send + 'static, P: Placement, H: NodePools<I, L, P>> NodeStore<I, L, P>
    for Each<H>
{
    type Spare<'h>
        = Two<'h, I, L, P>
    where
        Self: 'h;

    fn new(frame: &Frame, inner: &NodeLayout, leaf: &NodeLayout) -> Self {
        Self(H::new(frame, inner, leaf))
    }
    #[inline(always)]
    fn spare(&self) -> Two<'_, I, L, P> {
        Two { leaf: self.0.leaves().spare(), inner: self.0.inners().spare() }
    }
    #[inline(always)]
    unsafe fn retire_inner(&self, inner: NonNull<I>, guard: &Guard) {
        // SAFETY: this method has the contract of the pool's method, and the node is of this pool.
        unsafe { self.0.inners().retire(inner, guard) };
    }
    #[inline(always)]
    unsafe fn retire_leaf(&self, leaf: NonNull<L>, guard: &Guard) {
        // SAFETY: this method has the contract of the pool's method, and the node is of this pool.
        unsafe { self.0.leaves().retire(leaf, guard) };
    }
    unsafe fn free_inner(&self, inner: NonNull<I>) {
        // SAFETY: this method has the contract of the pool's method, and the node is of this pool.
        unsafe { self.0.inners().free(inner) };
    }
    unsafe fn free_leaf(&self, leaf: NonNull<L>) {
        // SAFETY: this method has the contract of the pool's method, and the node is of this pool.
        unsafe { self.0.leaves().free(leaf) };
    }
    fn inner_lives(&self, inner: NonNull<I>) -> Lives {
        Lives::In(inner.cast())
    }
    fn leaf_lives(&self, leaf: NonNull<L>) -> Lives {
        Lives::In(leaf.cast())
    }
}

impl<H: Memory> Memory for Each<H> {
    fn stats(&self) -> Vec<PoolStats> {
        self.0.stats()
    }
    fn settle(&mut self) {
        self.0.settle();
    }
    fn shrink(&self) -> usize {
        self.0.shrink()
    }
}

/// A leaf and the inner node made with it, in one object: a line.
///
/// Each half lives and dies on its own: the leaf may be replaced or removed while the inner node
/// still routes, or the other way round. The thread that retires the second half retires the block
/// with it. Every reader that could reach the first half had its guard before. A leaf that an
/// update makes alone has a block whose other half is dead from the start.
///
/// A block costs a line for each pair of nodes, and for a node that has outlived its other half or
/// never had one. So a key takes 64 bytes as long as keys only come, and up to 128 after updates
/// and removals. Retiring a node writes to its block.
#[repr(C, align(64))]
pub struct Block<I, L> {
    inner: MaybeUninit<I>,
    leaf: L,
    live: Halves,
}

/// The halves of a block that are not dead.
struct Halves(AtomicU64);

#[derive(Clone, Copy)]
enum Half {
    Inner = 1,
    Leaf = 2,
}

impl Halves {
    fn both() -> Self {
        Self(AtomicU64::new(Half::Inner as u64 | Half::Leaf as u64))
    }

    fn leaf_alone() -> Self {
        Self(AtomicU64::new(Half::Leaf as u64))
    }

    /// Marks `half` as dead. Returns whether it was the last.
    #[must_use]
    fn die(&self, half: Half) -> bool {
        // AcqRel: all uses of the half that died first come before the block is freed.
        let before = self.0.fetch_and(!(half as u64), Ordering::AcqRel);
        debug_assert!(before & half as u64 != 0 || cfg!(feature = "canaries"), "it dies twice");
        before & !(half as u64) == 0
    }

    /// Whether `half` is not dead, in a quiescent tree.
    fn has(&self, half: Half) -> bool {
        self.0.load(Ordering::Relaxed) & half as u64 != 0
    }
}

impl<I, L> Block<I, L> {
    /// The offset of the leaf.
    pub const LEAF: usize = offset_of!(Self, leaf);

    fn inner(block: NonNull<Self>) -> NonNull<I> {
        const { assert!(offset_of!(Self, inner) == 0) };
        block.cast()
    }

    fn leaf(block: NonNull<Self>) -> NonNull<L> {
        // SAFETY: the offset is within the block.
        unsafe { block.byte_add(Self::LEAF) }.cast()
    }

    fn of_inner(inner: NonNull<I>) -> NonNull<Self> {
        inner.cast()
    }

    /// The block that contains `leaf`.
    ///
    /// # Safety
    /// `leaf` came from `Self::leaf`.
    unsafe fn of_leaf(leaf: NonNull<L>) -> NonNull<Self> {
        // SAFETY: the caller promises that `leaf` lies at this offset of a block.
        unsafe { leaf.byte_sub(Self::LEAF) }.cast()
    }
}

/// Whether a block ends with a half: with the last.
#[inline(always)]
fn is_block_dead(last: bool) -> bool {
    last || planted(Canary::BlockRetiredByHalves)
}

/// A store in which a leaf and the inner node made with it share a line: see [`Block`].
pub struct Blocks<I: Send + 'static, L: Send + 'static, P: Placement> {
    blocks: Nodes<Block<I, L>, P>,
}

/// A spare block.
pub struct One<'h, I: Send + 'static, L: Send + 'static, P: Placement>(Spare<'h, Block<I, L>, P>);

impl<I: Send + 'static, L: Send + 'static, P: Placement> Fresh<I, L> for One<'_, I, L, P> {
    fn leaf(&mut self, leaf: L, guard: &Guard) -> Result<NonNull<L>, AllocError> {
        let block = Block { inner: MaybeUninit::uninit(), leaf, live: Halves::leaf_alone() };
        self.0.filled(block, guard).map(Block::leaf)
    }
    fn pair(
        &mut self,
        leaf: L,
        inner: impl FnOnce(NonNull<L>) -> I,
        guard: &Guard,
    ) -> Result<NonNull<I>, AllocError> {
        let block = Block { inner: MaybeUninit::uninit(), leaf, live: Halves::both() };
        let block = self.0.filled(block, guard)?;
        let made = Block::inner(block);
        // SAFETY: the block is not linked yet, so no other thread has it.
        unsafe { made.write(inner(Block::leaf(block))) };
        Ok(made)
    }
    fn leaf_linked(&mut self) {
        self.0.linked();
    }
    fn pair_linked(&mut self) {
        self.0.linked();
    }
}

impl<I: Send + 'static, L: Send + 'static, P: Placement> Blocks<I, L, P> {
    /// Marks `half` as dead. Returns the block if it was the last.
    ///
    /// # Safety
    /// The half is alive, and dies once.
    unsafe fn without(block: NonNull<Block<I, L>>, half: Half) -> Option<NonNull<Block<I, L>>> {
        // SAFETY: the caller promises that one half of the block is alive, so the block is not
        // retired.
        let last = unsafe { block.as_ref() }.live.die(half);
        is_block_dead(last).then_some(block)
    }

    /// The place of a half of a linked block.
    fn lives(block: NonNull<Block<I, L>>, half: Half) -> Lives {
        // SAFETY: the tree is quiescent and an edge leads to a node in the block, so the block is
        // not retired.
        let live = &unsafe { block.as_ref() }.live;
        match half {
            _ if !live.has(half) => Lives::Nowhere,
            Half::Leaf if live.has(Half::Inner) => Lives::BesideInner,
            _ => Lives::In(block.cast()),
        }
    }
}

impl<I: Send + 'static, L: Send + 'static, P: Placement> NodeStore<I, L, P> for Blocks<I, L, P> {
    type Spare<'h>
        = One<'h, I, L, P>
    where
        Self: 'h;

    fn new(frame: &Frame, inner: &NodeLayout, _leaf: &NodeLayout) -> Self {
        Self { blocks: frame.nodes(inner) }
    }
    fn spare(&self) -> One<'_, I, L, P> {
        One(self.blocks.spare())
    }
    unsafe fn retire_inner(&self, inner: NonNull<I>, guard: &Guard) {
        // SAFETY: the caller promises that the node came from this store, is unlinked, and is
        // retired once. If it was the last half, the other half was unlinked before, and the block
        // is retired once.
        unsafe {
            if let Some(block) = Self::without(Block::of_inner(inner), Half::Inner) {
                self.blocks.retire(block, guard);
            }
        }
    }
    unsafe fn retire_leaf(&self, leaf: NonNull<L>, guard: &Guard) {
        // SAFETY: the caller promises that the leaf came from this store, and so from a block, is
        // unlinked, and is retired once. If it was the last half, the other half was unlinked
        // before, and the block is retired once.
        unsafe {
            if let Some(block) = Self::without(Block::of_leaf(leaf), Half::Leaf) {
                self.blocks.retire(block, guard);
            }
        }
    }
    unsafe fn free_inner(&self, inner: NonNull<I>) {
        // SAFETY: the caller promises that the node came from this store, that no thread can reach
        // it, and that it is freed once. If it was the last half, the block is freed once.
        unsafe {
            if let Some(block) = Self::without(Block::of_inner(inner), Half::Inner) {
                self.blocks.free(block);
            }
        }
    }
    unsafe fn free_leaf(&self, leaf: NonNull<L>) {
        // SAFETY: the caller promises that the leaf came from this store, and so from a block, that
        // no thread can reach it, and that it is freed once. If it was the last half, the block is
        // freed once.
        unsafe {
            if let Some(block) = Self::without(Block::of_leaf(leaf), Half::Leaf) {
                self.blocks.free(block);
            }
        }
    }
    fn inner_lives(&self, inner: NonNull<I>) -> Lives {
        Self::lives(Block::of_inner(inner), Half::Inner)
    }
    fn leaf_lives(&self, leaf: NonNull<L>) -> Lives {
        // SAFETY: every leaf of this store lies in a block.
        Self::lives(unsafe { Block::of_leaf(leaf) }, Half::Leaf)
    }
}

impl<I: Send + 'static, L: Send + 'static, P: Placement> Memory for Blocks<I, L, P> {
    fn stats(&self) -> Vec<PoolStats> {
        self.blocks.stats()
    }
    fn settle(&mut self) {
        self.blocks.settle();
    }
    fn shrink(&self) -> usize {
        self.blocks.shrink()
    }
}

/// Loom checks the halves of a block in every execution (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::cell::UnsafeCell;
    use std::sync::Arc;

    struct Shared {
        live: Halves,
        /// The reads of the halves. The thread that frees the block must come after them.
        halves: [UnsafeCell<u32>; 2],
    }
    // SAFETY: one thread accesses each half until it dies; loom checks the rest.
    unsafe impl Sync for Shared {}
    // SAFETY: the halves have no tie to the thread that made them.
    unsafe impl Send for Shared {}

    fn both_die(die: fn(&Halves, Half) -> bool) {
        loom::model(move || {
            let halves = [UnsafeCell::new(0), UnsafeCell::new(0)];
            let shared = Arc::new(Shared { live: Halves::both(), halves });
            let ends = move |shared: &Shared, half: Half| {
                let own = &shared.halves[half as usize - 1];
                // SAFETY: the half belongs to this thread until it dies.
                own.with_mut(|used| unsafe { *used += 1 });
                let last = die(&shared.live, half);
                if last {
                    for half in &shared.halves {
                        // SAFETY: both halves are dead.
                        assert_eq!(half.with_mut(|used| unsafe { *used }), 1);
                    }
                }
                last
            };
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || ends(&shared, Half::Leaf))
            };
            let (one, other) = (ends(&shared, Half::Inner), other.join().unwrap());
            assert!(one != other, "the block is freed once");
        });
    }

    #[test]
    fn who_kills_the_second_half_frees_the_block_after_all_uses() {
        both_die(Halves::die);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_relaxed_death_is_caught() {
        both_die(|live, half| {
            live.0.fetch_and(!(half as u64), Ordering::Relaxed) & !(half as u64) == 0
        });
    }

    #[test]
    #[should_panic(expected = "the block is freed once")]
    fn a_death_by_load_and_store_is_caught() {
        both_die(|live, half| {
            let left = live.0.load(Ordering::Acquire) & !(half as u64);
            live.0.store(left, Ordering::Release);
            left == 0
        });
    }
}
