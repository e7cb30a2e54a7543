//! The other container: an AVL tree with a node for each entry, as Erlang's tables have.
//!
//! # Source
//! Adelson-Velsky and Landis, "An algorithm for the organization of information", Soviet
//! Mathematics Doklady 3, 1962; Blelloch, Ferizovic, Sun, "Just join for parallel ordered sets",
//! SPAA 2016, figure 1 (joins).
//!
//! # Layout
//! A node begins as a leaf with room for one entry, whose links follow:
//! ```text
//! 0   the height, at least 1
//! 8   the key; then the value
//! 24  the children (32 for keys of 16 bytes)
//! ```
//! A [`NodeRef`] takes the height for the number of entries, and finds one. So searches of ranges
//! hand out entries of both containers in one way.
//!
//! # Invariants
//! * V1: The keys on the left of a node are smaller than its key, those on the right are larger.
//! * V2: The height of a node is one more than that of its higher child. Those of its children
//!   differ by at most one.
//! * V3: Readers have the lock, so they see no change in part. Nodes and keys that leave the tree
//!   are retired as in N3.
//!
//! # Algorithm
//! ```text
//! insert, remove: as a binary search tree, then `balance` at each place on the way back, until a
//!     height is as it was
//! join(left, right): the smallest node of the right tree becomes the middle; in the higher tree,
//!     go down the side of the lower one to a subtree at most one higher than that; the middle
//!     takes its place, above both; `balance` on the way back
//! cut: the root's subtrees are the halves; the root becomes the end of the lower one
//! ```
//! All three take O(height), and neither of the last two allocates.

use super::build::Build;
use super::change::{Contents, Found};
use super::key::{Slots, object_word};
use super::node::{self, NodeRef};
use super::objects::{Fresh, May, Objects};
use super::search::{Locked, order};
use super::word::{Kind, Place, Word};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::frame::afterwards;
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout};
use silvics_pool::Placement;
use std::cmp::Ordering;

/// No tree is higher: one of height 64 has 2^44 nodes, which no address space has room for.
pub(super) const MAX_HEIGHT: usize = 64;

/// The bytes before the children.
const fn before_links<K: Slots + ?Sized>() -> usize {
    node::HEAD + node::entry_bytes::<K>(true)
}

/// The bytes of a node.
pub(super) const fn bytes<K: Slots + ?Sized>() -> usize {
    before_links::<K>() + 2 * size_of::<Place>()
}

/// The layout of a node with a key of `u64`.
pub(super) const AVL: NodeLayout = NodeLayout {
    kind: "avl",
    size: bytes::<u64>(),
    align: 8,
    search: &[Field::new("key", node::HEAD, 8), Field::links("children", before_links::<u64>(), 2)],
    found: &[Field::new("value", node::HEAD + 8, 8)],
};

impl<'g, K: Slots + ?Sized> NodeRef<'g, K> {
    /// Initialises a node of an AVL tree without children.
    ///
    /// # Safety
    /// `word` leads to as many bytes as [`bytes`] says, which nobody else has.
    pub(super) unsafe fn init_avl(word: Word, (key, value): (K::Slot, u64)) -> Self {
        // SAFETY: our contract: there is room for all fields.
        unsafe {
            let node = Self::init(word);
            for side in 0..2 {
                node.link_place(side).write(Place::new(Word::NONE));
            }
            node.set_key(0, key);
            node.set_value(0, value);
            node.set_len(1);
            node
        }
    }

    fn link_place(self, side: usize) -> *mut Place {
        debug_assert!(self.word().kind() == Kind::Avl);
        let places = self.word().address().wrapping_byte_add(before_links::<K>());
        places.cast::<Place>().wrapping_add(side)
    }

    /// The place of the left child, or of the `right` one.
    #[inline(always)]
    pub(super) fn link(self, right: bool) -> &'g Place {
        // SAFETY: a node of an AVL tree has two places for children, and is not reclaimed during
        // `'g`.
        unsafe { &*self.link_place(usize::from(right)) }
    }

    /// The left child, or the `right` one.
    #[inline(always)]
    pub(super) fn below(self, right: bool) -> Option<Self> {
        // SAFETY: the lock keeps the children of this node as long as it keeps the node.
        unsafe { node_of(self.link(right).word()) }
    }

    /// The bytes that a search reads which finds the key in this `order` to the one that it wants.
    fn looked_at_avl(self, order: Ordering) -> impl Iterator<Item = Read> {
        let (layout, node): (&'static NodeLayout, _) = (&AVL, self.word().address().cast_const());
        let value = node::HEAD + size_of::<K::Place>();
        let (offset, why) = match order {
            Ordering::Equal => (value, Why::Found),
            Ordering::Greater => (before_links::<K>(), Why::Step),
            Ordering::Less => (before_links::<K>() + size_of::<Place>(), Why::Step),
        };
        let key = layout.read(node, node::HEAD, size_of::<K::Place>(), why);
        [key, layout.read(node, offset, 8, why)].into_iter()
    }

    /// Makes the height that of the children and one, and returns it.
    fn update_height(self) -> u64 {
        let height = height_of(self.below(false)).max(height_of(self.below(true))) + 1;
        self.set_height(height);
        height
    }
}

/// The node that a word leads to, if it leads to one.
///
/// # Safety
/// The word was read from an AVL tree whose lock the caller has during `'g`.
#[inline(always)]
unsafe fn node_of<'g, K: Slots + ?Sized>(word: Word) -> Option<NodeRef<'g, K>> {
    // SAFETY: our contract, V3.
    (!word.is_none()).then(|| unsafe { NodeRef::new(word) })
}

/// The height of a tree.
pub(super) fn height_of<K: Slots + ?Sized>(root: Option<NodeRef<'_, K>>) -> u64 {
    root.map_or(0, NodeRef::height)
}

fn order_of<K: Slots + ?Sized>(node: NodeRef<'_, K>, probe: &K::Probe<'_>) -> Ordering {
    let order = order::<K>(node.key(0), probe, Locked);
    order.unwrap_or_else(|_| unreachable!("the caller has the lock"))
}

/// The entry of a key.
///
/// # Safety
/// The word is the root of an AVL tree whose lock the caller has.
pub(super) unsafe fn value_of<K: Slots + ?Sized, P: Placement>(
    root: Word,
    probe: &K::Probe<'_>,
) -> Option<u64> {
    // SAFETY: our contract.
    let mut node = unsafe { node_of::<K>(root) };
    while let Some(here) = node {
        let order = order_of(here, probe);
        let right = order == Ordering::Less;
        P::saw(|| here.looked_at_avl(order));
        if order == Ordering::Equal {
            return Some(here.value(0));
        }
        node = here.below(right);
    }
    None
}

/// The first entry, or the last one.
///
/// # Safety
/// The word is the root of an AVL tree whose lock the caller has during `'g`.
pub(super) unsafe fn end_of<'g, K: Slots + ?Sized>(
    root: Word,
    last: bool,
) -> Option<NodeRef<'g, K>> {
    // SAFETY: our contract.
    let mut node = unsafe { node_of::<K>(root) }?;
    while let Some(below) = node.below(last) {
        node = below;
    }
    Some(node)
}

/// Calls `each` with the nodes of a tree in order, or in descending order, without those for which
/// `is_before` says that they are before the start, until it returns that it wants no more.
///
/// # Safety
/// The word is the root of an AVL tree whose lock the caller has during `'g`.
pub(super) unsafe fn walk<'g, K: Slots + ?Sized, E>(
    root: Word,
    descends: bool,
    is_before: impl Fn(NodeRef<'g, K>) -> bool,
    each: &mut impl FnMut(NodeRef<'g, K>) -> Result<bool, E>,
) -> Result<(), E> {
    // The nodes whose left subtree is under way, or was left out.
    let (mut open, mut len) = ([None; MAX_HEIGHT], 0);
    // SAFETY: our contract.
    let mut node = unsafe { node_of::<K>(root) };
    loop {
        while let Some(here) = node {
            node = if is_before(here) {
                here.below(!descends)
            } else {
                open[len] = Some(here);
                len += 1;
                here.below(descends)
            };
        }
        let Some(next) = len.checked_sub(1) else { return Ok(()) };
        len = next;
        let Some(here) = open[len] else { unreachable!("an open node") };
        if !each(here)? {
            return Ok(());
        }
        node = here.below(!descends);
    }
}

/// The places on a way down. The first one leads to the root.
pub(super) struct Path<'g> {
    places: [Option<&'g Place>; MAX_HEIGHT + 1],
    len: usize,
}

impl Default for Path<'_> {
    fn default() -> Self {
        Self { places: [None; MAX_HEIGHT + 1], len: 0 }
    }
}

impl<'g> Path<'g> {
    fn push(&mut self, place: &'g Place) {
        self.places[self.len] = Some(place);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<&'g Place> {
        self.len = self.len.checked_sub(1)?;
        self.places[self.len]
    }
}

/// An AVL tree whose base node the caller has locked alone. `top` leads to its root.
pub(super) struct Tree<'g, K: Slots + ?Sized, P: Placement, B: Build> {
    pub(super) top: &'g Place,
    pub(super) objects: &'g Objects<K, P, B>,
    pub(super) guard: &'g Guard,
}

impl<'g, K: Slots + ?Sized, P: Placement, B: Build> Tree<'g, K, P, B> {
    fn at(place: &Place) -> Option<NodeRef<'g, K>> {
        // SAFETY: the caller has the lock, and the place is one of the tree.
        unsafe { node_of(place.word()) }
    }

    /// Lets the child on a side take the place of a node, which becomes its child.
    fn rotate(place: &Place, node: NodeRef<'g, K>, right: bool) {
        let Some(up) = node.below(right) else { unreachable!("the higher child") };
        node.link(right).link(up.link(!right).word());
        up.link(!right).link(node.word());
        place.link(up.word());
        node.update_height();
        up.update_height();
    }

    /// Restores V2 at a place after the subtree of one child has become higher or lower by one.
    /// Returns whether the height at the place has changed.
    fn balance(place: &Place) -> bool {
        let Some(node) = Self::at(place) else { return true };
        let before = node.height();
        let (left, right) = (height_of(node.below(false)), height_of(node.below(true)));
        if left.abs_diff(right) <= 1 {
            return node.update_height() != before;
        }
        let side = right > left;
        let Some(high) = node.below(side) else { unreachable!("the higher child") };
        if height_of(high.below(!side)) > height_of(high.below(side)) {
            Self::rotate(node.link(side), high, !side);
        }
        Self::rotate(place, node, side);
        height_of(Self::at(place)) != before
    }

    /// Restores V2 on the way back from a subtree whose height has changed by one.
    fn balance_all(mut path: Path<'g>) {
        while path.pop().is_some_and(Self::balance) {}
    }

    /// Unlinks the first node below a place, or the last one, and returns it. There is one.
    fn detach(top: &'g Place, last: bool) -> NodeRef<'g, K> {
        let (mut path, mut place) = (Path::default(), top);
        let Some(mut node) = Self::at(place) else { unreachable!("the tree has entries") };
        while let Some(below) = node.below(last) {
            path.push(place);
            (place, node) = (node.link(last), below);
        }
        place.link(node.link(!last).word());
        Self::balance_all(path);
        node
    }

    /// Puts a node between two trees. `left` leads to the result then.
    fn join_at(left: &'g Place, middle: NodeRef<'g, K>, right: Word, top: &'g Place) {
        // SAFETY: the caller has the locks of both trees.
        let right_height = height_of(unsafe { node_of::<K>(right) });
        let left_height = height_of(Self::at(left));
        let in_front = left_height < right_height;
        let (high, low) = if in_front { (right, left.word()) } else { (left.word(), right) };
        let low_height = left_height.min(right_height);
        top.link(high);
        let (mut path, mut place) = (Path::default(), top);
        while let Some(node) = Self::at(place).filter(|node| node.height() > low_height + 1) {
            path.push(place);
            place = node.link(!in_front);
        }
        middle.link(in_front).link(place.word());
        middle.link(!in_front).link(low);
        middle.update_height();
        place.link(middle.word());
        Self::balance_all(path);
    }

    /// Puts the entries of two trees into this one, which is empty. All keys of the left one are
    /// smaller than those of the right one. Neither is a tree afterwards.
    pub(super) fn join(&self, left: &'g Place, right: &'g Place) {
        if left.word().is_none() || right.word().is_none() {
            let both = if left.word().is_none() { right } else { left };
            return self.top.link(both.word());
        }
        let middle = Self::detach(right, false);
        Self::join_at(left, middle, right.word(), self.top);
    }

    /// The bound at which [`Tree::cut`] divides the tree, if it has two entries and there is
    /// memory.
    pub(super) fn halves_at(&self, fresh: &mut Fresh<'g, K, P, B>) -> Option<K::Slot> {
        let root = Self::at(self.top)?;
        let (left, right) = (root.link(false).word(), root.link(true).word());
        // SAFETY: the caller has the lock.
        let neighbours = unsafe {
            if Self::root_goes_right(root) {
                (end_of::<K>(left, true)?, root)
            } else {
                (root, end_of::<K>(right, false)?)
            }
        };
        // SAFETY: N3: the keys are of entries of the tree.
        let bound = unsafe { K::bound(neighbours.0.key(0), neighbours.1.key(0), false) };
        fresh.key(bound, true).ok()
    }

    fn root_goes_right(root: NodeRef<'_, K>) -> bool {
        height_of(root.below(false)) > height_of(root.below(true))
    }

    /// Divides the tree between two places. It has two entries, and is no tree afterwards.
    pub(super) fn cut(&self, left: &'g Place, right: &'g Place) {
        let Some(root) = Self::at(self.top) else { unreachable!("it has two entries") };
        let to_right = Self::root_goes_right(root);
        left.link(root.link(false).word());
        right.link(root.link(true).word());
        if to_right {
            let rest = right.word();
            right.link(Word::NONE);
            Self::join_at(right, root, rest, right);
        } else {
            Self::join_at(left, root, Word::NONE, left);
        }
    }

    /// Builds a tree of sorted entries.
    pub(super) fn build(
        fresh: &mut Fresh<'_, K, P, B>,
        entries: &[(K::New<'_>, u64)],
    ) -> Result<Word, AllocError> {
        let middle = entries.len() / 2;
        let Some((key, value)) = entries.get(middle) else { return Ok(Word::NONE) };
        let left = Self::build(fresh, &entries[..middle])?;
        let slot = fresh.key(*key, false)?;
        let node = fresh.avl((slot, *value))?;
        let right = Self::build(fresh, &entries[middle + 1..])?;
        node.link(false).link(left);
        node.link(true).link(right);
        node.update_height();
        Ok(node.word())
    }
}

impl<'g, K: Slots + ?Sized, P: Placement, B: Build> Contents<'g, K> for Tree<'g, K, P, B> {
    type Path = Path<'g>;

    fn find(
        &self,
        probe: &K::Probe<'_>,
        path: &mut Path<'g>,
    ) -> Result<Option<Found<'g, K>>, AllocError> {
        let mut place = self.top;
        loop {
            path.push(place);
            let Some(node) = Self::at(place) else { return Ok(None) };
            match order_of(node, probe) {
                Ordering::Equal => return Ok(Some(Found { leaf: node, at: 0, is_there: true })),
                order => place = node.link(order == Ordering::Less),
            }
        }
    }

    fn insert(
        &self,
        _found: Option<&Found<'g, K>>,
        mut path: Path<'g>,
        (key, value): (K::New<'_>, u64),
    ) -> Result<(), AllocError> {
        let mut fresh = Fresh::new(self.objects, May::Flush(self.guard));
        let slot = fresh.key(key, false)?;
        let node = fresh.avl((slot, value))?;
        let Some(place) = path.pop() else { unreachable!("`find` has pushed the place") };
        place.link(node.word());
        fresh.linked();
        Self::balance_all(path);
        Ok(())
    }

    fn remove(&self, found: &Found<'g, K>, mut path: Path<'g>) {
        let Some(place) = path.pop() else { unreachable!("`find` has pushed the place") };
        let node = found.leaf;
        let key = object_word::<K>(node.key(0));
        if node.below(false).is_some() && node.below(true).is_some() {
            // The next node takes the place of this one. Its own children have changed then.
            let next = Self::detach(node.link(true), false);
            next.link(false).link(node.link(false).word());
            next.link(true).link(node.link(true).word());
            next.set_height(node.height());
            place.link(next.word());
            path.push(place);
        } else {
            let right = node.below(true).is_some();
            place.link(node.link(right).word());
        }
        Self::balance_all(path);
        afterwards(|| {
            for word in [Some(node.word()), key].into_iter().flatten() {
                // SAFETY: N3: node and key were in the container, and are no longer.
                unsafe { self.objects.retire(word, self.guard) };
            }
        });
    }
}
