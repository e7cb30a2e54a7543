//! Changes of a container, which never changes once it is linked: a change makes a new one.
//!
//! # Algorithm
//! ```text
//! insert, put, remove: copy the leaf with the change, then the nodes above it with the new child
//!     a node that gets too large becomes two; an empty one vanishes with the bound beside it; one
//!         that gets small is put together with a neighbour
//! concat: copy the nodes at one edge of the higher container down to the height of the lower one
//! ```
//! All other nodes belong to the old and the new container. So an [`Edit`] has two lists: `fresh`
//! has the objects that only the new container has, and `gone` those that only the old one has. If
//! the new container is linked, the latter are retired; if not, the former are freed.

use super::node::Free;
use crate::ca::change::{Gone, Path, Step, bound, height, to_edge};
use crate::ca::key::{Slots, object_word};
use crate::ca::node::{NodeRef, coarse_room_for, max_entries, more, room_for};
use crate::ca::objects::{Fresh, May, Objects};
use crate::ca::search::{Locked, order, rank};
use crate::ca::splice::{Carry, Item, Spliced};
use crate::ca::word::Word;
use crate::canary::{Canary, planted};
use crate::error::AllocError;
use silvics_pool::Placement;
use std::cmp::Ordering;

/// The place of a key in a container, and the way there.
pub(super) struct Found<'g, K: Slots + ?Sized> {
    path: Path<'g, K>,
    leaf: NodeRef<'g, K>,
    at: usize,
    is_there: bool,
}

impl<'g, K: Slots + ?Sized> Found<'g, K> {
    /// The place of a key in a container. Nothing if the container is empty.
    ///
    /// # Safety
    /// The container is linked, or was at some moment since a guard was taken that lives during
    /// `'g`.
    pub(super) unsafe fn new(root: Word, probe: &K::Probe<'_>) -> Result<Option<Self>, AllocError> {
        if root.is_none() {
            return Ok(None);
        }
        // SAFETY: our contract; C1: the nodes of a container stay as long as it.
        let mut node = unsafe { NodeRef::<'g, K>::new(root) };
        let mut path = Path::default();
        while !node.is_leaf() {
            let at = place(node, 1, probe, true) - 1;
            path.push((node, at))?;
            NodeRef::<K>::prefetch_keys(node.child(at));
            // SAFETY: C1: likewise.
            node = unsafe { NodeRef::new(node.child(at)) };
        }
        let at = place(node, 0, probe, false);
        let is_there = at < node.len() && is_equal::<K>(node.key(at), probe);
        Ok(Some(Self { path, leaf: node, at, is_there }))
    }

    /// The first entry of a container, or the last one. Nothing if the container is empty.
    ///
    /// # Safety
    /// That of [`Found::new`].
    pub(super) unsafe fn at_end(root: Word, last: bool) -> Option<Self> {
        if root.is_none() {
            return None;
        }
        let mut path = Path::default();
        // SAFETY: our contract; C1: the nodes of a container stay as long as it.
        let leaf = unsafe { to_edge(root, last, &mut path) };
        let at = if last { leaf.len() - 1 } else { 0 };
        Some(Self { path, leaf, at, is_there: true })
    }

    /// The entry of the key, if it is there.
    pub(super) fn entry(&self) -> Option<(K::Slot, u64)> {
        self.is_there.then(|| (self.leaf.key(self.at), self.leaf.value(self.at)))
    }
}

/// The number of keys from `from` on that are smaller than a key, or equal to it if `or_equal`.
pub(super) fn place<K: Slots + ?Sized>(
    node: NodeRef<'_, K>,
    from: usize,
    probe: &K::Probe<'_>,
    or_equal: bool,
) -> usize {
    let place = rank(node, (from, node.len()), probe, or_equal, Locked);
    place.unwrap_or_else(|_| unreachable!("containers do not change"))
}

fn is_equal<K: Slots + ?Sized>(slot: K::Slot, probe: &K::Probe<'_>) -> bool {
    matches!(order::<K>(slot, probe, Locked), Ok(Ordering::Equal))
}

/// The form that a changed node has in the node above.
enum Lifted<K: Slots + ?Sized> {
    /// It is empty.
    Nothing,
    /// New nodes in its place.
    Carry(Carry<K>),
    /// One node in the place of two, from this child on.
    Merged(usize, Word),
}

/// Whether a container has at most some 15 000 entries, by the way to one of its leaves.
///
/// If it is the whole tree, its nodes have one of a few sizes. A leaf that fills up has each size
/// once, and each size that was ever used keeps free objects. In a small tree these are most of its
/// memory: a map of 1000 random integers took 103 KB with all sizes and takes 36 KB. A large one
/// takes less with all sizes.
fn is_small<K: Slots + ?Sized>(steps: &[Step<'_, K>]) -> bool {
    match steps {
        [] | [_] => true,
        [(root, _), _] => root.len() <= 8,
        _ => false,
    }
}

/// A change that is being made.
pub(super) struct Edit<'g, K: Slots + ?Sized, P: Placement> {
    pub(super) fresh: Fresh<'g, K, P, Free>,
    pub(super) gone: Gone,
    /// The key of an entry that the new container does not have.
    pub(super) removed: Option<K::Slot>,
    /// Whether a node may be larger than its content needs if no smaller one can be allocated.
    is_modest: bool,
    /// Whether nodes have one of a few sizes.
    has_few_sizes: bool,
}

impl<'g, K: Slots + ?Sized, P: Placement> Edit<'g, K, P> {
    pub(super) fn new(objects: &'g Objects<K, P, Free>, may: May<'g>, has_few_sizes: bool) -> Self {
        let fresh = Fresh::new(objects, may);
        Self { fresh, gone: Gone::new(), removed: None, is_modest: false, has_few_sizes }
    }

    /// Gives a key a value, or replaces a key that has none. Returns the root of the new container.
    pub(super) fn put(
        &mut self,
        found: Option<&Found<'g, K>>,
        (key, value): (K::New<'_>, u64),
    ) -> Result<Word, AllocError> {
        let Some(&Found { ref path, leaf, at, is_there }) = found else {
            let leaf = self.fresh.node(true, room_for::<K>(true, 1, false))?;
            leaf.insert(0, (self.fresh.key(key, false)?, value));
            return Ok(leaf.word());
        };
        let slot = if is_there && K::HAS_VALUES {
            leaf.key(at)
        } else {
            self.removed = is_there.then(|| leaf.key(at));
            self.gone.extend(self.removed.and_then(object_word::<K>));
            self.fresh.key(key, false)?
        };
        let others = [(slot, Item::Value(value))];
        let cut = usize::from(is_there);
        self.change(path, &Spliced { node: leaf, at, cut, others: &others })
    }

    /// Removes a present key, and returns the root of the new container.
    pub(super) fn remove(&mut self, found: &Found<'g, K>) -> Result<Word, AllocError> {
        let &Found { ref path, leaf, at, .. } = found;
        self.is_modest = true;
        self.removed = Some(leaf.key(at));
        self.gone.extend(object_word::<K>(leaf.key(at)));
        self.change(path, &Spliced { node: leaf, at, cut: 1, others: &[] })
    }

    /// A node for some entries.
    ///
    /// At the limit of its memory, a pool may have free objects of one size alone: those that
    /// earlier writes have replaced. A removal makes do with larger ones, or with two smaller ones
    /// (`settle`), so that it can free memory.
    ///
    /// # Safety
    /// The caller puts as many entries into the node at once.
    unsafe fn node(&mut self, is_leaf: bool, len: usize) -> Result<NodeRef<'g, K>, AllocError> {
        // SAFETY: our contract. In this tree, nobody reads places behind the last entry.
        let mut made = |room| unsafe { self.fresh.node_to_fill(is_leaf, room, room) };
        let mut room = room_for::<K>(is_leaf, len, false);
        if self.has_few_sizes {
            let node = made(coarse_room_for::<K>(is_leaf, len));
            if node.is_ok() || !self.is_modest {
                return node;
            }
        }
        let mut node = made(room);
        while node.is_err() && self.is_modest && more::<K>(is_leaf, room) > room {
            room = more::<K>(is_leaf, room);
            node = made(room);
        }
        node
    }

    /// A node with some entries of a content.
    fn filled(
        &mut self,
        content: &Spliced<'_, 'g, K>,
        entries: std::ops::Range<usize>,
    ) -> Result<NodeRef<'g, K>, AllocError> {
        // SAFETY: `fill` puts the entries.
        let node = unsafe { self.node(content.node.is_leaf(), entries.len()) }?;
        content.fill(node, entries);
        Ok(node)
    }

    /// Gives a leaf another content.
    fn change(
        &mut self,
        path: &Path<'g, K>,
        content: &Spliced<'_, 'g, K>,
    ) -> Result<Word, AllocError> {
        self.gone.push(content.node.word());
        self.has_few_sizes &= is_small(path.steps());
        let starts_anew = K::BOUNDS_ARE_ENTRIES
            && content.at == 0
            && content.len() > 0
            && !planted(Canary::OldFirstEntry);
        let mut first = starts_anew.then(|| content.entry(0).0);
        let lifted = self.settle(content, path.steps(), &mut first)?;
        self.lift(path.steps(), lifted, first)
    }

    /// Copies the nodes above a changed one, in which `first` is the first entry now, if it is
    /// another one. Returns the new root.
    fn lift(
        &mut self,
        mut steps: &[Step<'g, K>],
        mut lifted: Lifted<K>,
        mut first: Option<K::Slot>,
    ) -> Result<Word, AllocError> {
        while let Some((&(node, child), above)) = steps.split_last() {
            steps = above;
            self.gone.push(node.word());
            // The bound before a child is its first entry, if bounds are entries.
            let mut before = |child: usize| {
                let new = if child > 0 { first.take() } else { None };
                new.unwrap_or_else(|| node.key(child))
            };
            let mut others = [(K::unused(), Item::Value(0)); 2];
            let (at, cut, len) = match lifted {
                Lifted::Nothing => {
                    if K::BOUNDS_ARE_ENTRIES && child == 0 && node.len() > 1 {
                        first = Some(node.key(1));
                    }
                    (child, 1, 0)
                }
                Lifted::Carry(Carry::One(word)) => {
                    others[0] = (before(child), Item::Child(word));
                    (child, 1, 1)
                }
                Lifted::Carry(Carry::Two(left, bound, right)) => {
                    others = [(before(child), Item::Child(left)), (bound, Item::Child(right))];
                    (child, 1, 2)
                }
                Lifted::Merged(from, word) => {
                    others[0] = (before(from), Item::Child(word));
                    (from, 2, 1)
                }
            };
            let content = Spliced { node, at, cut, others: &others[..len] };
            lifted = self.settle(&content, steps, &mut first)?;
        }
        match lifted {
            Lifted::Nothing => Ok(Word::NONE),
            Lifted::Carry(Carry::One(root)) | Lifted::Merged(_, root) => Ok(root),
            Lifted::Carry(Carry::Two(left, bound, right)) => {
                // SAFETY: the children are put below.
                let root = unsafe { self.node(false, 2) }?;
                root.put(0, (K::unused(), Item::Child(left)));
                root.put(1, (bound, Item::Child(right)));
                root.set_len(2);
                Ok(root.word())
            }
        }
    }

    /// Makes the nodes for a content. `steps` lead to its node. `first` is its first entry
    /// below, if the node had another one.
    fn settle(
        &mut self,
        content: &Spliced<'_, 'g, K>,
        steps: &[Step<'g, K>],
        first: &mut Option<K::Slot>,
    ) -> Result<Lifted<K>, AllocError> {
        let (len, is_leaf) = (content.len(), content.node.is_leaf());
        let above = steps.last().copied();
        if len == 0 {
            let bound = above.filter(|(parent, _)| parent.len() > 1);
            let bound = bound.map(|(parent, at)| parent.key(at.max(1)));
            self.gone.extend(bound.and_then(object_word::<K>));
            return Ok(Lifted::Nothing);
        }
        if above.is_none() && !is_leaf && len == 1 {
            let Item::Child(child) = content.entry(0).1 else {
                unreachable!("N1: it has children")
            };
            return Ok(Lifted::Carry(Carry::One(child)));
        }
        if let Some(above) = above
            && content.others.len() < content.cut
            && len <= max_entries::<K>(is_leaf) / 4
            && let Some(merged) = self.merge(content, above, first)
        {
            return Ok(merged);
        }
        if len <= max_entries::<K>(is_leaf) {
            match self.filled(content, 0..len) {
                Ok(node) => return Ok(Lifted::Carry(Carry::One(node.word()))),
                Err(error) if !self.is_modest || len < 2 => return Err(error),
                Err(_) => {} // perhaps there is memory for two smaller ones
            }
        }
        let half = content.division();
        let left = self.filled(content, 0..half)?;
        let right = self.filled(content, half..len)?;
        let bound = if is_leaf {
            bound(&mut self.fresh, left, right, content.descends())?
        } else {
            right.key(0)
        };
        Ok(Lifted::Carry(Carry::Two(left.word(), bound, right.word())))
    }

    /// Puts a small content together with a neighbour of its node, if that is small and there is
    /// memory.
    fn merge(
        &mut self,
        content: &Spliced<'_, 'g, K>,
        (parent, at): Step<'g, K>,
        first_entry: &mut Option<K::Slot>,
    ) -> Option<Lifted<K>> {
        let (len, is_leaf) = (content.len(), content.node.is_leaf());
        let beside = |at: usize| {
            // SAFETY: C1: the children of a node of a container stay as long as it.
            let node = unsafe { NodeRef::<'g, K>::new(parent.child(at)) };
            (node.len() + len <= max_entries::<K>(is_leaf) * 3 / 4).then_some((node, at))
        };
        let right = Some(at + 1).filter(|other| *other < parent.len()).and_then(beside);
        let (other, other_at) = right.or_else(|| at.checked_sub(1).and_then(beside))?;
        // SAFETY: `fill` and `append` put the entries.
        let both = unsafe { self.node(is_leaf, len + other.len()) }.ok()?;
        let first = at.min(other_at);
        // The first entry of the content is in the middle now, if the other one is in front.
        let moved = if first == at { None } else { first_entry.take() };
        let bound = moved.unwrap_or_else(|| parent.key(first + 1));
        let in_front = if first == at {
            content.fill(both, 0..len);
            both.append(other, 0..other.len());
            len
        } else {
            both.append(other, 0..other.len());
            content.fill(both, 0..len);
            other.len()
        };
        if is_leaf {
            self.gone.extend(object_word::<K>(bound));
        } else {
            both.set_key(in_front, bound);
        }
        self.gone.push(other.word());
        Some(Lifted::Merged(first, both.word()))
    }

    /// Puts two neighbouring containers together. Returns the root of the new one, and whether it
    /// has the bound between them.
    ///
    /// # Safety
    /// That of [`Found::new`], for both.
    pub(super) unsafe fn concat(
        &mut self,
        left: Word,
        bound: K::Slot,
        right: Word,
    ) -> Result<(Word, bool), AllocError> {
        if left.is_none() || right.is_none() {
            return Ok((if left.is_none() { right } else { left }, false));
        }
        let bound = if K::BOUNDS_ARE_ENTRIES {
            // SAFETY: our contract.
            unsafe { to_edge::<K>(right, false, &mut Path::default()) }.key(0)
        } else {
            bound
        };
        let heights = (height::<K>(left), height::<K>(right));
        let in_front = heights.0 < heights.1;
        let (high, low) = if in_front { (right, left) } else { (left, right) };
        // SAFETY: our contract; C1: the nodes of a container stay as long as it.
        let (mut node, low) = unsafe { (NodeRef::<'g, K>::new(high), NodeRef::<'g, K>::new(low)) };
        let mut path = Path::default();
        for _ in 0..heights.0.abs_diff(heights.1) {
            let at = if in_front { 0 } else { node.len() - 1 };
            path.push((node, at))?;
            // SAFETY: C1: likewise.
            node = unsafe { NodeRef::new(node.child(at)) };
        }
        let (left, right) = if in_front { (low, node) } else { (node, low) };
        let len = left.len() + right.len();
        if len > max_entries::<K>(node.is_leaf()) {
            let carry = Lifted::Carry(Carry::Two(left.word(), bound, right.word()));
            return self.lift(path.steps(), carry, None).map(|root| (root, true));
        }
        let both = self.fresh.node(node.is_leaf(), room_for::<K>(node.is_leaf(), len, false))?;
        both.append(left, 0..left.len());
        both.append(right, 0..right.len());
        if !both.is_leaf() {
            both.set_key(left.len(), bound);
        }
        self.gone.push(left.word());
        self.gone.push(right.word());
        let has_bound = !both.is_leaf();
        let carry = Lifted::Carry(Carry::One(both.word()));
        self.lift(path.steps(), carry, None).map(|root| (root, has_bound))
    }
}
