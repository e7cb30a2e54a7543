//! Insertions and removals: each makes the nodes that change anew, up to the root, and publishes
//! them by one store.
//!
//! ```text
//! insert(prefix, leaf):           lock the tree; descend to the home of the prefix
//!   the home is there:            take it apart, add the prefix, make it anew
//!   a slot on the way is no child: make the home (IPv4: and the nodes above it) in the slot
//!   a child skips the home:       make a node where the two paths part, with both below
//!   copy the nodes above, each with the new child; store the root; retire the replaced nodes
//! ```
//! A removal does the same. If it leaves a node without contents, the slot of the node gets what
//! the node has inherited. If it leaves an IPv6 node with one child and no prefix, the child takes
//! the place of the node.

use super::address::{Address, LEVELS, MOST, home, stride};
use super::count::Portable;
use super::node::{Change, Node, copy, extent};
use super::objects::Objects;
use super::plan::Plan;
use super::tree::Tree;
use super::word::Word;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::frame::afterwards;
use silvics_pool::Placement;

/// Some nodes. An update makes and replaces at most the children of one node, and two nodes on each
/// level.
struct List {
    words: [Word; MOST + 2 * LEVELS + 2],
    len: usize,
}

impl List {
    const fn new() -> Self {
        Self { words: [Word::NONE; MOST + 2 * LEVELS + 2], len: 0 }
    }

    fn push(&mut self, word: Word) {
        self.words[self.len] = word;
        self.len += 1;
    }

    fn take(&mut self) -> &[Word] {
        let len = std::mem::take(&mut self.len);
        &self.words[..len]
    }
}

/// The nodes above the one that an update changes, each with the slot of the next one.
struct Path<'g, A> {
    steps: [Option<(Node<'g, A>, usize)>; LEVELS],
    len: usize,
}

impl<'g, A: Address> Path<'g, A> {
    fn new() -> Self {
        Self { steps: [None; LEVELS], len: 0 }
    }

    fn push(&mut self, node: Node<'g, A>, slot: usize) {
        self.steps[self.len] = Some((node, slot));
        self.len += 1;
    }
}

/// An update under way: the nodes that it has made, which nobody else has yet, and those that they
/// replace. Dropping it frees the nodes that it has made.
struct Edit<'g, P: Placement> {
    objects: &'g Objects<P>,
    guard: &'g Guard,
    made: List,
    replaced: List,
}

impl<P: Placement> Drop for Edit<'_, P> {
    fn drop(&mut self) {
        for &node in self.made.take() {
            // SAFETY: N4: the edit has made the node, and has not published it.
            unsafe { self.objects.free(node) };
        }
    }
}

impl<'g, P: Placement> Edit<'g, P> {
    fn new(objects: &'g Objects<P>, guard: &'g Guard) -> Self {
        Self { objects, guard, made: List::new(), replaced: List::new() }
    }

    /// Makes a node of a plan, after copies of the children that inherit another leaf from now on.
    fn make<A: Address>(&mut self, mut plan: Plan<'g, A>) -> Result<Word, AllocError> {
        for slot in 0..MOST {
            let Some((child, leaf)) = plan.changed(slot) else { continue };
            // SAFETY: P1 of plans.
            let child = unsafe { Node::<A>::new(child) };
            let new = self.copy(child, Change::Inherited(leaf))?;
            // SAFETY: P1: the edit frees what it has made only if it fails.
            unsafe { plan.put(slot, new) };
        }
        let contents = plan.contents();
        let form = contents.form(A::SKIPS);
        let memory = self.objects.alloc(form.bytes, self.guard)?;
        // SAFETY: fresh memory of the form of these contents.
        let word = unsafe { contents.write(&form, A::SKIPS, memory) };
        self.made.push(word);
        Ok(word)
    }

    /// Makes a copy of a node, which it replaces.
    fn copy<A: Address>(&mut self, node: Node<'g, A>, change: Change) -> Result<Word, AllocError> {
        // SAFETY: the node is readable for `'g`.
        let (_, bytes) = unsafe { extent(node.word()) };
        let memory = self.objects.alloc(bytes, self.guard)?;
        // SAFETY: fresh memory of the node's size. `Child` is for slots with children only.
        let word = unsafe { copy(node, change, memory) };
        self.made.push(word);
        self.replaced.push(node.word());
        Ok(word)
    }

    /// Makes the home of a prefix, and in IPv4 the nodes between the end of a slot and the home.
    fn chain<A: Address>(
        &mut self,
        net: A,
        leaf: Word,
        end: u8,
        inherited: Word,
    ) -> Result<Word, AllocError> {
        let mut depth = home(leaf.len());
        let inherits = |depth| if A::SKIPS || depth == end { inherited } else { Word::NONE };
        let mut plan = Plan::empty(depth, net, inherits(depth));
        plan.insert(net.digit(depth), leaf);
        let mut word = self.make(plan)?;
        while !A::SKIPS && depth > end {
            depth -= stride(depth - 1);
            let mut plan = Plan::empty(depth, net, inherits(depth));
            // SAFETY: P1: the edit frees what it has made only if it fails.
            unsafe { plan.put(net.digit(depth), word) };
            word = self.make(plan)?;
        }
        Ok(word)
    }

    /// Makes a node above one that is not on the path of a prefix, or deeper than its home: where
    /// the two paths part.
    fn branch<A: Address>(
        &mut self,
        below: Node<'g, A>,
        net: A,
        leaf: Word,
    ) -> Result<Word, AllocError> {
        let (path, home) = (below.path(), home(leaf.len()));
        let common = net.common(path);
        let depth = if common < 8 { common & !3 } else { common & !7 }.min(home);
        let mut plan = Plan::empty(depth, net, below.inherited());
        let child = self.copy(below, Change::Inherited(Word::NONE))?;
        // SAFETY: P1: the edit frees what it has made only if it fails.
        unsafe { plan.put(path.digit(depth), child) };
        if depth == home {
            plan.insert(net.digit(depth), leaf);
        } else {
            let other = self.chain(net, leaf, depth + stride(depth), Word::NONE)?;
            // SAFETY: P1: the edit frees what it has made only if it fails.
            unsafe { plan.put(net.digit(depth), other) };
        }
        self.make(plan)
    }

    /// Makes what replaces a node with the contents of this plan.
    fn remake<A: Address>(
        &mut self,
        node: Node<'g, A>,
        plan: Plan<'g, A>,
    ) -> Result<Word, AllocError> {
        self.replaced.push(node.word());
        if plan.is_empty() {
            return Ok(node.inherited());
        }
        let only = if A::SKIPS { plan.only_child() } else { None };
        match only {
            // SAFETY: P1 of plans.
            Some(only) => unsafe {
                self.copy(Node::<A>::new(only), Change::Inherited(node.inherited()))
            },
            None => self.make(plan),
        }
    }

    /// Copies the nodes of a path, from the last one to the root, each with the word that replaces
    /// the next one. Returns the root.
    fn lift<A: Address>(
        &mut self,
        path: &Path<'g, A>,
        net: A,
        mut word: Word,
    ) -> Result<Word, AllocError> {
        for &(node, slot) in path.steps[..path.len].iter().rev().flatten() {
            word = if word.is_child() && node.slot(slot, Portable).is_child() {
                self.copy(node, Change::Child(slot, word))?
            } else {
                let mut plan = Plan::of(node, net);
                // SAFETY: P1: the edit frees what it has made only if it fails.
                unsafe { plan.put(slot, word) };
                self.remake(node, plan)?
            };
        }
        Ok(word)
    }

    /// Publishes the root, and retires the replaced nodes.
    fn commit<A: Address>(mut self, tree: &Tree<A>, root: Word) {
        tree.publish(root);
        self.made.take();
        afterwards(|| {
            for &node in self.replaced.take() {
                if planted(Canary::LpmNodeFreedAtOnce) {
                    // SAFETY: none: this is a canary. A reader may still read the node.
                    unsafe { self.objects.free(node) };
                    continue;
                }
                // SAFETY: N4: the node was unlinked by the store of the root, and is in the list
                // once.
                unsafe { self.objects.retire(node, self.guard) };
            }
        });
    }
}

impl<A: Address> Tree<A> {
    /// Gives a prefix a leaf. Returns the leaf that it had. If an allocation fails, the tree is as
    /// it was. The guard is of the table's domain.
    pub(super) fn insert<P: Placement>(
        &self,
        net: A,
        leaf: Word,
        objects: &Objects<P>,
        guard: &Guard,
    ) -> Result<Option<Word>, AllocError> {
        let early = planted(Canary::LpmRootReadEarly).then(|| self.current(guard));
        let _writer = self.writer.lock();
        let snapshot = early.unwrap_or_else(|| self.current(guard));
        let mut edit = Edit::new(objects, guard);
        let (mut word, mut end, home) = (snapshot.root(), 0, home(leaf.len()));
        let mut path = Path::new();
        let (new, old) = loop {
            // SAFETY: the words are the root, and words that were read in nodes of the tree.
            let Some(node) = (unsafe { snapshot.node(word) }) else {
                break (edit.chain(net, leaf, end, word)?, None);
            };
            let depth = node.depth();
            if depth > home || !node.is_on_path(net, depth) {
                break (edit.branch(node, net, leaf)?, None);
            }
            let slot = net.digit(depth);
            if depth == home {
                let mut plan = Plan::of(node, net);
                let old = plan.insert(slot, leaf);
                break (edit.remake(node, plan)?, old);
            }
            path.push(node, slot);
            end = depth + stride(depth);
            word = node.slot(slot, Portable);
        };
        let root = edit.lift(&path, net, new)?;
        edit.commit(self, root);
        Ok(old)
    }

    /// Removes a prefix. Returns the leaf that it had. If an allocation fails, the tree is as it
    /// was. The guard is of the table's domain.
    pub(super) fn remove<P: Placement>(
        &self,
        (net, len): (A, u8),
        objects: &Objects<P>,
        guard: &Guard,
    ) -> Result<Option<Word>, AllocError> {
        let _writer = self.writer.lock();
        let snapshot = self.current(guard);
        let Some(home) = snapshot.home(net, len) else { return Ok(None) };
        let (mut word, mut path) = (snapshot.root(), Path::new());
        while word != home.word() {
            // SAFETY: the words are the root, and words that were read in nodes of the tree. They
            // lead to the home.
            let Some(node) = (unsafe { snapshot.node(word) }) else { return Ok(None) };
            let slot = net.digit(node.depth());
            path.push(node, slot);
            word = node.slot(slot, Portable);
        }
        let mut plan = Plan::of(home, net);
        let Some(old) = plan.remove(net.digit(home.depth()), len) else { return Ok(None) };
        let mut edit = Edit::new(objects, guard);
        let new = edit.remake(home, plan)?;
        let root = edit.lift(&path, net, new)?;
        edit.commit(self, root);
        Ok(Some(old))
    }
}
