//! Changes of lists: a new list shares all nodes with the old one that it does not copy.
//!
//! ```text
//! change(root, rank):  from the leaf with this rank up to the root, make a copy of the node with
//!                      the change: a value more or less, then an entry for each new child
//!                      a node without items goes; one with too many is made as two; one with few
//!                      takes the items of a neighbour that has few, too
//!                      a root with one child gives way to that child
//! ```
//! A list that grows at its end or at its beginning leaves full nodes behind. If two nodes are
//! neighbours under one branch, one of them has more than [`FEW`] items (L5). So the children of a
//! branch have about 8 items or more on average, however values come and go.

use super::node::{Entry, Item, ListMemory, MOST, Node, is_list};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::map::kept::Kept;
use silvics_pool::Placement;
use std::ops::Range;
use std::slice::from_ref;

/// A node with this number of items, or fewer, looks for a neighbour to be merged with.
pub(super) const FEW: usize = MOST / 4;
/// The most items of a merged node: fewer than fit, so that the next insert does not split it.
const MERGED: usize = 3 * MOST / 4;

/// The most branches on the way to a value. By L5, each level has about 8 times as many nodes or
/// values as the one above it, or more. So a list that needs more has about 5·10^11 values: 4 TB of
/// words.
const LEVELS: usize = if cfg!(silvics_shuttle) { 24 } else { 12 };

/// Up to three nodes of each level.
struct Few<'g> {
    nodes: [Option<Node<'g>>; 3 * LEVELS],
    len: usize,
}

impl<'g> Few<'g> {
    const fn new() -> Self {
        Self { nodes: [const { None }; 3 * LEVELS], len: 0 }
    }

    fn push(&mut self, node: Node<'g>) {
        self.nodes[self.len] = Some(node);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Node<'g>> {
        self.len = self.len.checked_sub(1)?;
        self.nodes[self.len].take()
    }

    /// Takes out a node if it is there.
    fn take(&mut self, node: Node<'_>) -> bool {
        let is_it = |at: &Option<Node<'_>>| at.is_some_and(|at| at.address() == node.address());
        let Some(at) = self.nodes[..self.len].iter().position(is_it) else { return false };
        self.nodes[..self.len].swap(at, self.len - 1);
        self.pop().is_some()
    }
}

/// The branches on the way to a value, from the root on, and the number of a child in each.
struct Path<'g> {
    steps: [Option<(Node<'g>, usize)>; LEVELS],
    len: usize,
}

impl<'g> Path<'g> {
    /// The way to the value number `rank`, the leaf, and the number of the value there.
    fn to(root: Node<'g>, mut rank: u64) -> (Self, Node<'g>, usize) {
        let (mut path, mut node) = (Self { steps: [None; LEVELS], len: 0 }, root);
        while node.level() > 0 {
            let at = node.child_at(&mut rank);
            path.steps[path.len] = Some((node, at));
            path.len += 1;
            node = node.child(at);
        }
        (path, node, rank as usize)
    }

    fn last(&self) -> Option<(Node<'g>, usize)> {
        self.steps[..self.len].last().copied().flatten()
    }

    fn pop(&mut self) -> Option<(Node<'g>, usize)> {
        self.len = self.len.checked_sub(1)?;
        self.steps[self.len]
    }
}

/// The entries that take the place of some of a branch.
struct Replaced {
    entries: [Option<Entry>; 2],
    places: Range<usize>,
}

/// One change of a list that is not in the index yet. Dropping it frees the new nodes.
pub(super) struct Edit<'m, 'g, P: Placement> {
    lists: &'m Kept<ListMemory<P>>,
    guard: &'g Guard,
    /// The nodes that this edit has made, which no other thread knows.
    fresh: Few<'g>,
    /// The nodes of the old list that are not in the new one.
    old: Few<'g>,
}

impl<'m, 'g, P: Placement> Edit<'m, 'g, P> {
    pub(super) fn new(lists: &'m Kept<ListMemory<P>>, guard: &'g Guard) -> Self {
        Self { lists, guard, fresh: Few::new(), old: Few::new() }
    }

    fn make<T: Item>(&mut self, level: u8, pieces: &[&[T]]) -> Result<Node<'g>, AllocError> {
        let node = self.lists.made(self.guard, |memory| memory.make(level, pieces))?;
        self.fresh.push(node);
        Ok(node)
    }

    /// Makes a list of some values, and returns its word.
    pub(super) fn list(&mut self, words: &[u64]) -> Result<u64, AllocError> {
        self.make(0, &[words]).map(Node::word)
    }

    /// Puts a value before the one with this rank, and returns the word of the new list.
    pub(super) fn insert(
        &mut self,
        root: Node<'g>,
        rank: u64,
        word: u64,
    ) -> Result<u64, AllocError> {
        let full = if rank == root.total() {
            MOST
        } else if rank == 0 {
            1
        } else {
            MOST.div_ceil(2)
        };
        let (path, leaf, at) = Path::to(root, rank);
        let (before, after) = leaf.words().split_at(at);
        let changed = self.change(path, leaf, [before, from_ref(&word), after], full)?;
        Ok(changed.unwrap_or_else(|| unreachable!("a list with a value more")))
    }

    /// Leaves out the value with this rank, and returns the word for what is left: that of the
    /// only value, or of the new list.
    pub(super) fn remove(&mut self, root: Node<'g>, rank: u64) -> Result<Option<u64>, AllocError> {
        let (path, leaf, at) = Path::to(root, rank);
        let (before, after) = leaf.words().split_at(at);
        let after = &after[1..];
        // The last value of a list needs no node, and so no memory.
        if let (0, [word], []) | (0, [], [word]) = (path.len, before, after)
            && !is_list(*word)
        {
            self.old.push(leaf);
            return Ok(Some(*word));
        }
        self.change(path, leaf, [before, &[], after], MOST)
    }

    /// Gives a leaf other words, and copies the branches above it. A node that is split has `full`
    /// items on its left side. Returns the word for the new list, if it has values.
    fn change(
        &mut self,
        mut path: Path<'g>,
        leaf: Node<'g>,
        words: [&[u64]; 3],
        full: usize,
    ) -> Result<Option<u64>, AllocError> {
        let mut replaced = self.replace(leaf, words, path.last(), full)?;
        while let Some((branch, _)) = path.pop() {
            let entries = branch.entries();
            let (before, after) =
                (&entries[..replaced.places.start], &entries[replaced.places.end..]);
            let new = replaced.entries;
            let new = [new[0].as_slice(), new[1].as_slice()];
            let pieces = [before, new[0], new[1], after];
            let mut left = pieces.iter().copied().flatten();
            if path.len == 0
                && let (Some(only), None) = (left.next(), left.next())
            {
                self.old.push(branch);
                replaced = Replaced { entries: [Some(*only), None], places: 0..0 };
                break;
            }
            replaced = self.replace(branch, pieces, path.last(), full)?;
        }
        let root = match replaced.entries {
            [Some(left), Some(right)] => {
                // SAFETY: this edit has made both.
                let level = unsafe { left.child() }.level() + 1;
                self.make(level, &[&[left, right][..]])?
            }
            // SAFETY: this edit has made it, or it is in the old list, which the guard protects.
            [Some(only), None] => unsafe { only.child() },
            _ => return Ok(None),
        };
        Ok(Some(self.lowered(root)))
    }

    /// Makes nodes of some items in place of a node with a parent `above`: none, one or two. May
    /// take the items of a neighbour along.
    fn replace<T: Item, const N: usize>(
        &mut self,
        node: Node<'g>,
        pieces: [&[T]; N],
        above: Option<(Node<'g>, usize)>,
        full: usize,
    ) -> Result<Replaced, AllocError> {
        self.old.push(node);
        let (level, count) = (node.level(), pieces.iter().map(|piece| piece.len()).sum::<usize>());
        let at = above.map_or(0, |(_, at)| at);
        if count == 0 {
            return Ok(Replaced { entries: [None, None], places: at..at + 1 });
        }
        if count > MOST {
            let (left, right) = split(pieces, full);
            let left = Entry::of(self.make(level, &left)?);
            let right = Entry::of(self.make(level, &right)?);
            return Ok(Replaced { entries: [Some(left), Some(right)], places: at..at + 1 });
        }
        let neighbour = above.filter(|_| count <= FEW).and_then(|(branch, at)| {
            let before = at.checked_sub(1).map(|to| (to, branch.child(to)));
            let after = (at + 1 < branch.entries().len()).then(|| (at + 1, branch.child(at + 1)));
            let both = before.into_iter().chain(after);
            both.min_by_key(|(_, node)| T::of(*node).len())
                .filter(|(_, node)| T::of(*node).len() + count <= MERGED)
        });
        let (merged, places) = match neighbour {
            Some((to, other)) => {
                self.old.push(other);
                let items = [T::of(other)];
                let none: &[T] = &[];
                let (first, last) = if to < at { (items[0], none) } else { (none, items[0]) };
                let mut all: [&[T]; 6] = [none; 6];
                all[0] = first;
                all[1..=N].copy_from_slice(&pieces);
                all[N + 1] = last;
                (self.make(level, &all)?, to.min(at)..to.max(at) + 1)
            }
            None => (self.make(level, &pieces)?, at..at + 1),
        };
        Ok(Replaced { entries: [Some(Entry::of(merged)), None], places })
    }

    /// Leaves out roots with one child, and a leaf with one value that needs none. Returns the word
    /// for what is left.
    fn lowered(&mut self, mut root: Node<'g>) -> u64 {
        loop {
            if root.level() > 0 && root.entries().len() == 1 {
                let child = root.child(0);
                self.leave_out(root);
                root = child;
            } else if root.level() == 0
                && let [word] = root.words()
                && !is_list(*word)
            {
                let word = *word;
                self.leave_out(root);
                return word;
            } else {
                return root.word();
            }
        }
    }

    fn leave_out(&mut self, node: Node<'g>) {
        if self.fresh.take(node) {
            // SAFETY: this edit has made the node, and no other thread knows it.
            unsafe { self.lists.memory().free(node) };
        } else {
            self.old.push(node);
        }
    }

    /// Retires the nodes that are in the old list only.
    ///
    /// # Safety
    /// The new list has taken the place of the old one (L2). The caller calls this once.
    pub(super) unsafe fn retire_old(&mut self) {
        while let Some(node) = self.old.pop() {
            // SAFETY: our contract: no new reader finds the node, and nobody else retires it.
            unsafe { self.lists.retire_only(node.object(), node.bytes(), self.guard) };
        }
    }

    /// Ends the edit: the exchange has put the new list in place of the old one.
    pub(super) fn placed(mut self) {
        self.fresh.len = 0;
        // SAFETY: L2: the exchange has succeeded, and only for this edit.
        unsafe { self.retire_old() };
    }
}

impl<P: Placement> Drop for Edit<'_, '_, P> {
    fn drop(&mut self) {
        while let Some(node) = self.fresh.pop() {
            // SAFETY: this edit has made the node, and no other thread knows it.
            unsafe { self.lists.memory().free(node) };
        }
    }
}

/// Divides items that lie in several pieces. The first part has `count`.
fn split<T, const N: usize>(pieces: [&[T]; N], count: usize) -> ([&[T]; N], [&[T]; N]) {
    let mut left = count;
    let halves = pieces.map(|piece| {
        let here = piece.len().min(left);
        left -= here;
        piece.split_at(here)
    });
    (halves.map(|half| half.0), halves.map(|half| half.1))
}
