//! The regions of hot objects, and the copies that move there and back.

use super::super::alloc::{Allocator, NodeContent, Room, copied, fill};
use super::super::key::Digit;
use super::super::kinds::{bytes, kind_number};
use super::super::leaf::{Entries, LeafKey, LeafOf, MOST_KEYS};
use super::super::node::{AnySize, NODES, Node, Node4, Node14, Node56, Node256, NodeRef};
use super::super::word::{Kind, Word};
use super::sampler::{Regions, Sampled};
use crate::domain::Guard;
use silvics_pool::{AllocError, Config, Packed, Packer, Placement, PoolStats};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::ptr::NonNull;

/// The most kinds of objects that a tree has.
const MOST_KINDS: usize = NODES.len() + MOST_KEYS;

/// The regions of a tree's hot objects, and the number of objects there.
#[doc(hidden)]
pub struct HotRegions {
    packed: Packed,
    /// The objects of each kind, in the order of [`LeafKey::OBJECTS`].
    counts: [Count; MOST_KINDS],
}

/// The objects of one kind. These are counts that publish nothing: Relaxed.
#[derive(Default)]
struct Count {
    objects: AtomicUsize,
    bytes: AtomicUsize,
}

impl Regions for HotRegions {
    fn new(config: &Config) -> Self {
        let counts = std::array::from_fn(|_| Count::default());
        Self { packed: Packed::new(config), counts }
    }

    #[inline]
    unsafe fn free<K: LeafKey + ?Sized>(&self, word: Word) -> bool {
        let is_hot = self.packed.find(word.address()).is_some(); // H1
        if is_hot {
            // SAFETY: our contract, and the object is in a region.
            unsafe { self.take_back::<K>(word) };
        }
        is_hot
    }

    fn add_to(&self, stats: &mut [PoolStats]) {
        for (stats, count) in stats.iter_mut().zip(&self.counts) {
            stats.live_slots += count.objects.load(Ordering::Relaxed);
            stats.live_bytes += count.bytes.load(Ordering::Relaxed);
        }
        let leaves = stats.last_mut().expect("every tree has leaves");
        leaves.regions.extend(self.packed.regions());
    }
}

impl HotRegions {
    pub(super) fn packed(&self) -> &Packed {
        &self.packed
    }

    /// # Safety
    /// The contract of [`Regions::free`], and the object is in a region.
    #[cold]
    unsafe fn take_back<K: LeafKey + ?Sized>(&self, word: Word) {
        // SAFETY: the object has not been freed yet (our contract).
        let bytes = unsafe { bytes::<K>(word) };
        let count = &self.counts[kind_number::<K>(word)];
        count.objects.fetch_sub(1, Ordering::Relaxed);
        count.bytes.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: I1: the object has the size that `hot_copy` asked for; our contract says the
        // rest.
        unsafe { self.packed.take_back(word.address(), bytes) };
    }
}

impl<K: LeafKey + ?Sized, P: Placement> Allocator<K, P, Sampled> {
    /// A copy of the object that a word leads to, in a hot region. Nothing, if the region is full.
    /// The caller holds the lock of the node that leads to the object, and the object's own if it
    /// is a node.
    pub(super) fn hot_copy(&self, word: Word, packer: &mut Packer<'_>) -> Option<Word> {
        // SAFETY: the object is linked while the lock is held (I3), so it is not reclaimed (I8).
        let bytes = unsafe { bytes::<K>(word) };
        let copy = if word.kind() == Kind::Leaf {
            let memory = packer.alloc(hot_layout(word.kind(), bytes))?;
            // SAFETY: the leaf is linked while the lock is held (I3, I8), and its values do not
            // change while it is (I5). The memory has room, and nobody else has it.
            unsafe { memory.copy_from_nonoverlapping(word.address(), bytes) };
            Word::leaf(memory, word.hint() as u16)
        } else {
            // SAFETY: I7: the word's kind is a node's. The node is linked while the lock is held
            // (I3), so it is not reclaimed (I8).
            match unsafe { NodeRef::from_word(word) } {
                NodeRef::Words(node) => hot_node(node, word, packer)?,
                NodeRef::Values(node) => hot_node(node, word, packer)?,
            }
        };
        let count = &self.regions().ok()?.counts[kind_number::<K>(word)];
        count.objects.fetch_add(1, Ordering::Relaxed);
        count.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(copy)
    }

    /// A copy of the object that a word leads to, in the pool of its kind. The caller holds the
    /// locks that [`Allocator::hot_copy`] asks for.
    pub(super) fn pooled_copy(&self, word: Word, guard: &Guard) -> Result<Word, AllocError> {
        if word.kind() == Kind::Leaf {
            // SAFETY: I7: the word leads to a leaf. I8: it was read under the guard.
            let leaf = unsafe { K::Leaf::from_word(word) };
            return self.leaf(Entries::<K>::of(leaf).as_slice(), guard);
        }
        // SAFETY: I7: the word's kind is a node's. I8: it was read under the guard.
        let node = unsafe { NodeRef::from_word(word) };
        let room = |filled| Room::alike(word, node.header().prefix, filled);
        match node {
            NodeRef::Words(node) => copied(node, |all| self.node(all, room(all.len()), guard)),
            NodeRef::Values(node) => copied(node, |all| self.node(all, room(all.len()), guard)),
        }
    }
}

/// The layout of an object of this size in a hot region: nodes in lines of their own, leaves so
/// that they do not cross a line without need.
pub(super) fn hot_layout(kind: Kind, bytes: usize) -> Layout {
    let log = if kind == Kind::Leaf { bytes.trailing_zeros().clamp(3, 6) } else { 6 };
    Layout::from_size_align(bytes, 1 << log).expect("no more than a key's bytes")
}

/// A copy of a node, of its kind, in a hot region. Nothing, if the region is full.
fn hot_node<C: NodeContent>(
    node: AnySize<'_, C>,
    word: Word,
    packer: &mut Packer<'_>,
) -> Option<Word>
where
    C::Atomic: Send,
{
    fn put<C: NodeContent, N: Node<C>>(
        contents: &[(Digit, C)],
        prefix: u64,
        packer: &mut Packer<'_>,
    ) -> Option<NonNull<u8>> {
        let slot = packer.alloc(hot_layout(Kind::Node4, size_of::<N>()))?.cast::<N>();
        // SAFETY: fresh memory has room for a node of this layout, and nobody else has it.
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
