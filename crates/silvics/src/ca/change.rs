//! Changes of a container. The caller has the lock of the base node.
//!
//! # Algorithm
//! ```text
//! insert: a leaf with room: shift. A full one: copy it to one with more room, or if it has the
//!             largest size, divide it in two and put a child into the node above, likewise
//! remove: shift. A node that is empty is unlinked; if it has few entries, it is merged with its
//!             neighbour or copied to one with less room, if there is memory
//! ```
//! `splice.rs` says where a node is divided.
//!
//! All objects of a change are made before the first word changes that leads to one.

use super::build::Build;
use super::key::{Slots, object_word};
use super::node::{NodeRef, max_entries, more, room_for};
use super::objects::{Fresh, May, Objects, Upper};
use super::search::{Locked, Torn, follow, order, rank};
use super::splice::{Carry, Item, Spliced};
use super::word::{Kind, Place, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::afterwards;
use silvics_pool::{AllocError, Placement};
use std::cmp::Ordering;
use std::mem::MaybeUninit;

/// The most inner nodes on a way. There are at least some eight insertions into a node for each one
/// that a division adds (`splice.rs`). So a tree gets as high as this by some eight to the power of
/// this number of insertions.
pub(crate) const MAX_HEIGHT: usize = if cfg!(silvics_shuttle) { 24 } else { 16 };

/// An inner node on a way, and the child that follows.
pub(crate) type Step<'g, K> = (NodeRef<'g, K>, usize);

/// The inner nodes from the root of a container to a node.
pub(crate) struct Path<'g, K: Slots + ?Sized> {
    /// The first `len` of them are there.
    steps: [MaybeUninit<Step<'g, K>>; MAX_HEIGHT],
    len: usize,
}

impl<K: Slots + ?Sized> Default for Path<'_, K> {
    fn default() -> Self {
        Self { steps: [const { MaybeUninit::uninit() }; MAX_HEIGHT], len: 0 }
    }
}

impl<'g, K: Slots + ?Sized> Path<'g, K> {
    pub(crate) fn push(&mut self, step: Step<'g, K>) -> Result<(), AllocError> {
        let place = self.steps.get_mut(self.len).ok_or(AllocError::System { requested: 0 })?;
        place.write(step);
        self.len += 1;
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a step on the way to a leaf of a container that does not change.
    pub(crate) fn go(&mut self, step: Step<'g, K>) {
        let Ok(()) = self.push(step) else {
            unreachable!("it takes more insertions than there are numbers");
        };
    }

    pub(crate) fn pop(&mut self) -> Option<Step<'g, K>> {
        let last = self.last()?;
        self.len -= 1;
        Some(last)
    }

    /// The last step.
    pub(crate) fn last(&self) -> Option<Step<'g, K>> {
        self.steps().last().copied()
    }

    /// The steps, from the root on.
    pub(crate) fn steps(&self) -> &[Step<'g, K>] {
        let steps = &raw const self.steps[..self.len];
        // SAFETY: `push` has written the first `len` steps.
        unsafe { &*(steps as *const [Step<'g, K>]) }
    }
}

/// Objects that a change unlinks.
pub(crate) struct Gone {
    words: [Word; 3 * MAX_HEIGHT + 4],
    len: usize,
}

impl Gone {
    pub(crate) fn new() -> Self {
        Self { words: [Word::NONE; 3 * MAX_HEIGHT + 4], len: 0 }
    }

    /// Adds an object. There is room for three of each level.
    pub(crate) fn push(&mut self, word: Word) {
        self.words[self.len] = word;
        self.len += 1;
    }

    /// Adds an object, if there is one.
    pub(crate) fn extend(&mut self, word: Option<Word>) {
        if let Some(word) = word {
            self.push(word);
        }
    }

    /// The objects.
    pub(crate) fn words(&self) -> &[Word] {
        &self.words[..self.len]
    }

    /// Retires the objects.
    ///
    /// # Safety
    /// No new reader can reach them, and each is retired once.
    pub(crate) unsafe fn retire<K: Slots + ?Sized, P: Placement, U: Upper<K>>(
        &self,
        objects: &Objects<K, P, U>,
        guard: &Guard,
    ) {
        for word in self.words() {
            // SAFETY: our contract.
            unsafe {
                if planted(Canary::ContainerFreedAtOnce) {
                    objects.free(*word);
                } else {
                    objects.retire(*word, guard);
                }
            }
        }
    }
}

/// A container whose base node the caller has locked alone, of any [`Form`](super::build::Form).
pub(super) trait Contents<'g, K: Slots + ?Sized> {
    /// The way to a key.
    type Path: Default;

    /// The place of a key, and the way there. Nothing if the container is empty.
    fn find(
        &self,
        probe: &K::Probe<'_>,
        path: &mut Self::Path,
    ) -> Result<Option<Found<'g, K>>, AllocError>;

    /// Inserts an absent key at its place.
    fn insert(
        &self,
        found: Option<&Found<'g, K>>,
        path: Self::Path,
        entry: (K::New<'_>, u64),
    ) -> Result<(), AllocError>;

    /// Removes an entry.
    fn remove(&self, found: &Found<'g, K>, path: Self::Path);
}

/// A B⁺-tree whose base node the caller has locked. `top` leads to its root.
pub(super) struct Container<'g, K: Slots + ?Sized, P: Placement, B: Build> {
    pub(super) top: &'g Place,
    pub(super) objects: &'g Objects<K, P, B>,
    pub(super) guard: &'g Guard,
}

/// The place of a key in a container.
pub(crate) struct Found<'g, K: Slots + ?Sized> {
    pub(crate) leaf: NodeRef<'g, K>,
    pub(crate) at: usize,
    pub(crate) is_there: bool,
}

fn never_torn<T>(outcome: Result<T, Torn>) -> T {
    outcome.unwrap_or_else(|Torn| unreachable!("the caller has the lock"))
}

impl<'g, K: Slots + ?Sized, P: Placement, B: Build> Contents<'g, K> for Container<'g, K, P, B> {
    type Path = Path<'g, K>;

    fn find(
        &self,
        probe: &K::Probe<'_>,
        path: &mut Path<'g, K>,
    ) -> Result<Option<Found<'g, K>>, AllocError> {
        let Some(mut node) = Self::node(self.top.word()) else { return Ok(None) };
        while !node.is_leaf() {
            let at = never_torn(rank(node, (1, node.len()), probe, true, Locked)) - 1;
            path.push((node, at))?;
            let word = node.child(at);
            NodeRef::<K>::prefetch_keys(word);
            let Some(child) = Self::node(word) else { unreachable!("N4: children exist") };
            node = child;
        }
        let len = node.len();
        let at = never_torn(rank(node, (0, len), probe, false, Locked));
        let is_there =
            at < len && never_torn(order::<K>(node.key(at), probe, Locked)) == Ordering::Equal;
        Ok(Some(Found { leaf: node, at, is_there }))
    }

    fn insert(
        &self,
        found: Option<&Found<'g, K>>,
        mut path: Path<'g, K>,
        (key, value): (K::New<'_>, u64),
    ) -> Result<(), AllocError> {
        let mut fresh = Fresh::new(self.objects, May::Flush(self.guard));
        let slot = fresh.key(key, false)?;
        let Some(found) = found else {
            let leaf = fresh.node(true, room_for::<K>(true, 1, false))?;
            leaf.insert(0, (slot, value));
            self.top.link(leaf.word());
            fresh.linked();
            return Ok(());
        };
        let (leaf, at) = (found.leaf, found.at);
        if leaf.len() < leaf.capacity() {
            leaf.insert(at, (slot, value));
            fresh.linked();
            return Ok(());
        }
        let others = [(slot, Item::Value(value))];
        let content = Spliced { node: leaf, at, cut: 0, others: &others };
        let mut gone = Gone::new();
        let carry = Self::rebuilt(&mut fresh, &content, &mut gone)?;
        self.climb(&mut path, carry, fresh, gone)
    }

    fn remove(&self, found: &Found<'g, K>, path: Path<'g, K>) {
        let key = object_word::<K>(found.leaf.key(found.at));
        found.leaf.remove(found.at);
        if let Some(key) = key.filter(|_| !planted(Canary::ObjectNotRetired)) {
            // SAFETY: N3: the key was in the container, and is no longer.
            unsafe { self.objects.retire(key, self.guard) };
        }
        afterwards(|| self.tidy(found.leaf, path));
    }
}

impl<'g, K: Slots + ?Sized, P: Placement, B: Build> Container<'g, K, P, B> {
    /// The node that a word of the container leads to.
    fn node(word: Word) -> Option<NodeRef<'g, K>> {
        // SAFETY: the caller has the lock, and the word is one of the container.
        never_torn(unsafe { follow(word, Locked) })
    }

    /// Nodes for a content that has no room in its node. `gone` gets this one, unless it stays.
    fn rebuilt(
        fresh: &mut Fresh<'g, K, P, B>,
        content: &Spliced<'_, 'g, K>,
        gone: &mut Gone,
    ) -> Result<Carry<K>, AllocError> {
        let (len, node) = (content.len(), content.node);
        let is_leaf = node.is_leaf();
        if len <= max_entries::<K>(is_leaf) {
            let is_run = content.ascends() && content.at == node.len();
            let most = if is_run { 2 * node.capacity() } else { len };
            let room = more::<K>(is_leaf, node.capacity()).max(room_for::<K>(is_leaf, most, false));
            let new = fresh.node(is_leaf, room)?;
            content.fill(new, 0..len);
            gone.push(node.word());
            return Ok(Carry::One(new.word()));
        }
        let part = |fresh: &mut Fresh<'g, K, P, B>, entries: std::ops::Range<usize>| {
            if is_leaf && entries.len() == node.len() && !entries.contains(&content.at) {
                return Ok((node, true)); // it has these entries
            }
            let new = fresh.node(is_leaf, room_for::<K>(is_leaf, entries.len(), true))?;
            content.fill(new, entries);
            Ok((new, false))
        };
        let half = content.division();
        let ((left, left_stays), (right, right_stays)) =
            (part(fresh, 0..half)?, part(fresh, half..len)?);
        let bound =
            if is_leaf { bound(fresh, left, right, content.descends())? } else { right.key(0) };
        if left_stays || right_stays {
            node.set_run(None); // it goes on in the other node
        } else {
            gone.push(node.word());
        }
        Ok(Carry::Two(left.word(), bound, right.word()))
    }

    /// Puts new nodes in the place of one, and changes the nodes above it. `gone` has the replaced
    /// nodes.
    fn climb(
        &self,
        path: &mut Path<'g, K>,
        mut carry: Carry<K>,
        mut fresh: Fresh<'g, K, P, B>,
        mut gone: Gone,
    ) -> Result<(), AllocError> {
        loop {
            let Some((node, at)) = path.pop() else {
                let root = match carry {
                    Carry::One(node) => node,
                    Carry::Two(left, bound, right) => {
                        let root = fresh.node(false, room_for::<K>(false, 2, true))?;
                        root.insert_child(0, (K::unused(), left));
                        root.insert_child(1, (bound, right));
                        root.word()
                    }
                };
                self.top.link(root);
                break;
            };
            match carry {
                Carry::One(child) => {
                    node.child_place(at).link(child);
                    break;
                }
                Carry::Two(left, bound, right) if node.len() < node.capacity() => {
                    node.child_place(at).link(left);
                    node.insert_child(at + 1, (bound, right));
                    break;
                }
                Carry::Two(left, bound, right) => {
                    let others = [(node.key(at), Item::Child(left)), (bound, Item::Child(right))];
                    let content = Spliced { node, at, cut: 1, others: &others };
                    carry = Self::rebuilt(&mut fresh, &content, &mut gone)?;
                }
            }
        }
        fresh.linked();
        // SAFETY: N3: the nodes above no longer lead to these, and each was in the container once.
        // If two containers are put together, their base nodes are locked until they are obsolete.
        unsafe { gone.retire(self.objects, self.guard) };
        Ok(())
    }

    /// Puts another container behind this one, or in front of it. All its keys are on that side of
    /// the bound. It is not higher. Returns whether the container has the bound now. If that fails,
    /// both are as they were.
    pub(crate) fn attach(
        &self,
        (other, other_height): (Word, usize),
        bound: K::Slot,
        in_front: bool,
        mut fresh: Fresh<'g, K, P, B>,
    ) -> Result<bool, AllocError> {
        let mut path = Path::default();
        let Some(mut node) = Self::node(self.top.word()) else { unreachable!("it has entries") };
        for _ in other_height..height::<K>(node.word()) {
            let at = if in_front { 0 } else { node.len() - 1 };
            path.push((node, at))?;
            let Some(child) = Self::node(node.child(at)) else {
                unreachable!("N4: children exist")
            };
            node = child;
        }
        let mut gone = Gone::new();
        let Some(other_node) = Self::node(other) else { unreachable!("it has entries") };
        let (left, right) = if in_front { (other_node, node) } else { (node, other_node) };
        let len = left.len() + right.len();
        let is_leaf = node.is_leaf();
        let carry = if len <= max_entries::<K>(is_leaf) {
            let both = fresh.node(is_leaf, room_for::<K>(is_leaf, len, false))?;
            both.append(left, 0..left.len());
            both.append(right, 0..right.len());
            if !both.is_leaf() {
                both.set_key(left.len(), bound);
            }
            gone.push(left.word());
            gone.push(right.word());
            Carry::One(both.word())
        } else {
            Carry::Two(left.word(), bound, right.word())
        };
        let has_bound = !(is_leaf && len <= max_entries::<K>(is_leaf));
        self.climb(&mut path, carry, fresh, gone).map(|()| has_bound)
    }

    /// Takes back room after a node has lost an entry.
    fn tidy(&self, mut node: NodeRef<'g, K>, mut path: Path<'g, K>) {
        loop {
            let Some((parent, at)) = path.pop() else { return self.tidy_root(node) };
            let mut gone = Gone::new();
            if node.len() == 0 {
                let bound = (parent.len() > 1).then(|| parent.key(at.max(1)));
                parent.remove(at);
                gone.push(node.word());
                gone.extend(bound.and_then(object_word::<K>));
            } else if node.len() > max_entries::<K>(node.is_leaf()) / 4
                || !self.merge((parent, at), node, &mut gone)
            {
                return self.shrink(node, parent.child_place(at));
            }
            // SAFETY: N3: the parent no longer leads to these, and each was in the container once.
            unsafe { gone.retire(self.objects, self.guard) };
            node = parent;
        }
    }

    /// Merges a node with a neighbour, if both are small and there is memory.
    fn merge(
        &self,
        (parent, at): (NodeRef<'g, K>, usize),
        node: NodeRef<'g, K>,
        gone: &mut Gone,
    ) -> bool {
        // With the neighbour on the right, or if that is too large, with that on the left.
        let fits = |other: &usize| {
            let beside = Self::node(parent.child(*other));
            let most = max_entries::<K>(node.is_leaf()) * 3 / 4;
            beside.is_some_and(|beside| beside.len() + node.len() <= most)
        };
        let right = Some(at + 1).filter(|other| *other < parent.len()).filter(fits);
        let Some(other) = right.or_else(|| at.checked_sub(1).filter(fits)) else { return false };
        let first = at.min(other);
        let nodes = (Self::node(parent.child(first)), Self::node(parent.child(first + 1)));
        let (Some(left), Some(right)) = nodes else { unreachable!("N4: children exist") };
        let len = left.len() + right.len();
        let mut fresh = Fresh::new(self.objects, May::Fail);
        let is_leaf = node.is_leaf();
        let room = room_for::<K>(is_leaf, len, true);
        let Ok(both) = fresh.node(is_leaf, room) else { return false };
        let bound = parent.key(first + 1);
        both.append(left, 0..left.len());
        both.append(right, 0..right.len());
        if both.is_leaf() {
            gone.extend(object_word::<K>(bound));
        } else {
            both.set_key(left.len(), bound);
        }
        parent.remove(first + 1);
        parent.child_place(first).link(both.word());
        fresh.linked();
        gone.push(left.word());
        gone.push(right.word());
        true
    }

    /// Copies a node to a smaller one if less than half of it is used, and if there is memory.
    fn shrink(&self, node: NodeRef<'g, K>, place: &Place) {
        let room = room_for::<K>(node.is_leaf(), node.len(), true);
        if 2 * node.len() >= node.capacity() || 3 * room > 2 * node.capacity() {
            return;
        }
        let mut fresh = Fresh::new(self.objects, May::Fail);
        let Ok(copy) = fresh.node(node.is_leaf(), room) else { return };
        copy.append(node, 0..node.len());
        place.link(copy.word());
        fresh.linked();
        // SAFETY: N3: nothing leads to the node any more, and it was in the container once.
        unsafe { self.objects.retire(node.word(), self.guard) };
    }

    /// Takes back the root if it is empty, or if it has one child.
    fn tidy_root(&self, mut root: NodeRef<'g, K>) {
        loop {
            let below = match (root.is_leaf(), root.len()) {
                (_, 0) => Word::NONE,
                (false, 1) => root.child(0),
                _ => return self.shrink(root, self.top),
            };
            self.top.link(below);
            // SAFETY: N3: nothing leads to the root any more, and it was in the container once.
            unsafe { self.objects.retire(root.word(), self.guard) };
            match Self::node(below) {
                Some(node) => root = node,
                None => return,
            }
        }
    }
}

/// The bound between two neighbouring leaves, which do not change meanwhile: a `low` one if keys
/// descend, so that the next ones go to the leaf on the right.
pub(crate) fn bound<K: Slots + ?Sized, P: Placement, U: Upper<K>>(
    fresh: &mut Fresh<'_, K, P, U>,
    left: NodeRef<'_, K>,
    right: NodeRef<'_, K>,
    low: bool,
) -> Result<K::Slot, AllocError> {
    let (left, right) = (left.key(left.len() - 1), right.key(0));
    if K::BOUNDS_ARE_ENTRIES {
        return Ok(right);
    }
    // SAFETY: N3: the keys are of entries of the container, which does not change.
    fresh.key(unsafe { K::bound(left, right, low) }, true)
}

/// Divides a container between two children of its root, or two entries, in the middle, if it has
/// two entries and there is memory. `gone` gets the nodes that neither has. The container does not
/// change meanwhile.
pub(crate) fn halve<'g, K: Slots + ?Sized, P: Placement, U: Upper<K>>(
    root: Word,
    fresh: &mut Fresh<'g, K, P, U>,
    gone: &mut Gone,
) -> Option<(Word, K::Slot, Word)> {
    // SAFETY: the caller has the container, and keeps writers from it.
    let node = |word: Word| (!word.is_none()).then(|| unsafe { NodeRef::<'g, K>::new(word) });
    let mut root = node(root)?;
    while !root.is_leaf() && root.len() == 1 {
        gone.push(root.word());
        root = node(root.child(0))?;
    }
    let len = root.len();
    if len < 2 {
        return None;
    }
    let half = len / 2;
    let part = |fresh: &mut Fresh<'g, K, P, U>, entries: std::ops::Range<usize>| {
        let is_leaf = root.is_leaf();
        let node = fresh.node(is_leaf, room_for::<K>(is_leaf, entries.len(), false)).ok()?;
        node.append(root, entries);
        Some(node)
    };
    let halves = if root.is_leaf() {
        let (left, right) = (part(fresh, 0..half)?, part(fresh, half..len)?);
        (left.word(), bound(fresh, left, right, false).ok()?, right.word())
    } else {
        let child = |fresh: &mut Fresh<'g, K, P, U>, entries: std::ops::Range<usize>| {
            if entries.len() == 1 {
                return Some(root.child(entries.start));
            }
            part(fresh, entries).map(NodeRef::word)
        };
        (child(fresh, 0..half)?, root.key(half), child(fresh, half..len)?)
    };
    gone.push(root.word());
    Some(halves)
}

/// The first leaf of a subtree, or the last one. `path` gets the way there.
///
/// # Safety
/// The container does not change, and none of its nodes is reclaimed, during `'g`.
pub(crate) unsafe fn to_edge<'g, K: Slots + ?Sized>(
    from: Word,
    last: bool,
    path: &mut Path<'g, K>,
) -> NodeRef<'g, K> {
    // SAFETY: our contract; N4: children exist.
    let mut node = unsafe { NodeRef::<'g, K>::new(from) };
    while !node.is_leaf() {
        let at = if last { node.len() - 1 } else { 0 };
        path.go((node, at));
        // SAFETY: likewise.
        node = unsafe { NodeRef::new(node.child(at)) };
    }
    node
}

/// The number of inner nodes above a leaf. The container does not change meanwhile.
pub(crate) fn height<K: Slots + ?Sized>(root: Word) -> usize {
    let (mut height, mut word) = (0, root);
    while word.kind() == Kind::Inner {
        // SAFETY: N4: the caller keeps writers from the container, and it has this node.
        let node = unsafe { NodeRef::<K>::new(word) };
        (height, word) = (height + 1, node.child(0));
    }
    height
}
