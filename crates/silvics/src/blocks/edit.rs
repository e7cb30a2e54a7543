//! Changes of the index: nodes are replaced by changed copies.

use super::Blocks;
use super::block::BlockRef;
use super::key::{Bit, BlockKey};
use super::lock::Locked;
use super::node::{MAX_CHILDREN, NodeRef};
use super::plan::Plan;
use super::trail::{Trail, Words};
use super::word::{Leads, Place, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::reserved;
use silvics_pool::{AllocError, Placement};
use silvics_sync::version::VersionLock;

/// A node on a path, and the number of the child that follows.
#[derive(Clone, Copy)]
pub(super) struct Step<'g> {
    pub(super) node: NodeRef<'g>,
    pub(super) at: usize,
}

/// A node or the root that the caller has locked. Dropping it unlocks.
pub(super) struct Hold<'g>(&'g VersionLock);

impl<'g> Hold<'g> {
    /// Locks. Returns nothing if the node is obsolete.
    pub(super) fn new(lock: &'g VersionLock) -> Option<Self> {
        lock.lock().ok().map(|()| Self(lock))
    }

    /// Unlocks a node that is no longer linked.
    fn obsolete(self) {
        // SAFETY: `new` has locked it, and `self` is forgotten, so it is unlocked once.
        unsafe { self.0.unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` has locked it, and `self` goes away, so it is unlocked once.
        unsafe { self.0.unlock() };
    }
}

/// Objects that are not linked. Dropping the list frees them.
pub(super) struct Made<'t, K: BlockKey + ?Sized, P: Placement> {
    tree: &'t Blocks<K, P>,
    words: Words<4>,
}

// SAFETY: nobody else has the objects, and the tree is shared by threads anyway.
unsafe impl<K: BlockKey + ?Sized, P: Placement> Send for Made<'_, K, P> {}

impl<K: BlockKey + ?Sized, P: Placement> Drop for Made<'_, K, P> {
    fn drop(&mut self) {
        for word in self.words.iter() {
            // SAFETY: the object was made for this change and never linked, so nobody else has it.
            // The keys of a new block are those of the block that it was to replace.
            unsafe { self.tree.objects.free(word) };
        }
    }
}

/// A change that is not made yet: the objects for it, and the nodes that it replaces. Dropping it
/// frees the objects and unlocks the nodes.
pub(super) struct Edit<'t, K: BlockKey + ?Sized, P: Placement> {
    tree: &'t Blocks<K, P>,
    guard: &'t Guard,
    fresh: Made<'t, K, P>,
    replaced: Vec<(Option<Hold<'t>>, NodeRef<'t>)>,
    /// A block that is locked until the change is made, and stays.
    neighbour: Option<Locked<'t, K>>,
}

/// The outcome of an attempt to change the index.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edited {
    Done,
    /// Another thread has changed a node on the path.
    Restart,
}

impl<'t, K: BlockKey + ?Sized, P: Placement> Edit<'t, K, P> {
    pub(super) fn new(tree: &'t Blocks<K, P>, guard: &'t Guard) -> Self {
        let fresh = Made { tree, words: Words::new() };
        Self { tree, guard, fresh, replaced: Vec::new(), neighbour: None }
    }

    /// Keeps a block locked until the change is made.
    pub(super) fn beside(&mut self, neighbour: Option<Locked<'t, K>>) {
        self.neighbour = neighbour;
    }

    /// Remembers a new object, to free it if the change is not made.
    pub(super) fn made(&mut self, word: Word) {
        self.fresh.words.push(word);
    }

    /// Makes room to remember `more` new objects.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), AllocError> {
        self.fresh.words.reserve(more)
    }

    /// Takes the objects out of the change, which need no guard. `tree` is the change's.
    pub(super) fn into_made(mut self, tree: &Blocks<K, P>) -> Made<'_, K, P> {
        debug_assert!(std::ptr::eq(tree, self.tree));
        Made { tree, words: std::mem::replace(&mut self.fresh.words, Words::new()) }
    }

    /// Adds the objects of another change.
    pub(super) fn adopt(&mut self, mut made: Made<'t, K, P>) -> Result<(), AllocError> {
        self.reserve(made.words.iter().count())?;
        made.words.iter().for_each(|word| self.made(word));
        made.words.clear();
        Ok(())
    }

    /// A node of this content, which one node can have.
    fn node(&mut self, plan: &Plan, windows: super::node::Windows) -> Result<Word, AllocError> {
        self.reserve(1)?;
        let mut children = [(0, Word::NONE); MAX_CHILDREN];
        let mut height = 0;
        for (to, child) in children.iter_mut().zip(plan.children()) {
            *to = child;
            height = height.max(Self::height(child.1));
        }
        let children = &children[..plan.len()];
        let node =
            self.tree.objects.node(windows, height.saturating_add(1), children, self.guard)?;
        self.made(node);
        Ok(node)
    }

    /// The height of an object. Blocks have height 0.
    fn height(word: Word) -> u8 {
        // SAFETY: I3: the word was read under the guard, or leads to an object of this change.
        match unsafe { word.leads::<K>() } {
            Leads::Node(node) => node.height(),
            Leads::Block(_) => 0,
        }
    }

    /// Objects for this content: one node, or if it cannot have it, a node of two. One child needs
    /// no node.
    pub(super) fn encode(&mut self, plan: &Plan) -> Result<Word, AllocError> {
        if plan.len() == 1 {
            return Ok(plan.child(0));
        }
        if let Some(windows) = plan.windows::<K>() {
            return self.node(plan, windows);
        }
        let (left, right, bit) = plan.divide();
        let (left, right) = (self.encode(&left)?, self.encode(&right)?);
        self.pair(left, right, bit)
    }

    /// A node of two children that part at a bit.
    fn pair(&mut self, left: Word, right: Word, bit: Bit) -> Result<Word, AllocError> {
        let mut pair = Plan::one(left);
        pair.insert(0, bit, true, right);
        match pair.windows::<K>() {
            Some(windows) => self.node(&pair, windows),
            None => unreachable!("one bit has a window"),
        }
    }

    /// Replaces the last node of `path`, which the caller has locked, by this content, and links
    /// it. `blocks` are the blocks that the change replaces. They stay locked if it is not made.
    ///
    /// If the content is too large for a node, the node is divided at its first bit. The two halves
    /// are put in the parent, or in a new node of two if the parent is higher than that (HOT,
    /// section 4.2).
    pub(super) fn replace_node(
        mut self,
        path: &[Step<'t>],
        hold: Hold<'t>,
        mut plan: Plan,
        blocks: &mut [Option<Locked<'t, K>>],
    ) -> Result<Edited, AllocError> {
        let (mut hold, mut path) = (hold, path);
        loop {
            let Some((step, above)) = path.split_last() else { unreachable!("there is a node") };
            reserved(&mut self.replaced, 1)?.push((Some(hold), step.node));
            let parent = above.last().copied();
            let is_too_large = plan.len() > 1 && plan.windows::<K>().is_none();
            let halves = is_too_large.then(|| plan.divide());
            let (left, right) = match &halves {
                Some((left, right, _)) => (self.encode(left)?, Some(self.encode(right)?)),
                None => (self.encode(&plan)?, None),
            };
            let Some(held) = self.tree.hold_place(parent) else { return Ok(Edited::Restart) };
            let place = self.tree.place(parent);
            if place.word() != Word::node(step.node.as_ptr()) {
                return Ok(Edited::Restart);
            }
            let (Some(right), Some((_, _, bit))) = (right, halves) else {
                self.link(place, left, held, blocks);
                return Ok(Edited::Done);
            };
            let height = Self::height(left).max(Self::height(right)).saturating_add(1);
            match parent {
                Some(parent) if parent.node.height() <= height => {
                    plan = Plan::of(parent.node);
                    plan.set_child(parent.at, left);
                    plan.insert(parent.at, bit, true, right);
                    (hold, path) = (held, above);
                }
                _ => {
                    let pair = self.pair(left, right, bit)?;
                    self.link(place, pair, held, blocks);
                    return Ok(Edited::Done);
                }
            }
        }
    }

    /// Replaces the object at `place`, which `held` has locked, and retires the objects that the
    /// change replaces, after all locks are free, as that takes time. From the store on, nothing
    /// here fails.
    pub(super) fn link(
        mut self,
        place: &Place,
        word: Word,
        held: Hold<'t>,
        blocks: &mut [Option<Locked<'t, K>>],
    ) {
        place.link(word); // LP: see the callers
        self.fresh.words.clear();
        for (hold, _) in &mut self.replaced {
            hold.take().into_iter().for_each(Hold::obsolete);
        }
        drop(held);
        let mut retired = [None; 2];
        for (retired, locked) in retired.iter_mut().zip(blocks) {
            *retired = locked.as_ref().map(|locked| locked.block);
            locked.take().into_iter().for_each(Locked::obsolete);
        }
        drop(self.neighbour.take());
        for (_, node) in &self.replaced {
            // SAFETY: I4: its parent no longer leads to the node, which was locked, so it is
            // retired once.
            unsafe { self.tree.objects.retire(Word::node(node.as_ptr()), self.guard) };
        }
        for block in retired.into_iter().flatten() {
            // SAFETY: I4: likewise. I5: its dead entries are in no other block.
            unsafe {
                if planted(Canary::BlockFreedAtOnce) {
                    self.tree.objects.free(Word::block(block.as_ptr()));
                } else {
                    self.tree.objects.retire_block(block, self.guard);
                }
            }
        }
    }

    /// Replaces a block by another word, if its place is still that one, and retires it.
    pub(super) fn replace_block(
        self,
        parent: Option<Step<'t>>,
        locked: Locked<'t, K>,
        word: Word,
    ) -> Edited {
        let Some(held) = self.tree.hold_place(parent) else { return Edited::Restart };
        let place = self.tree.place(parent);
        if place.word() != Word::block(locked.block.as_ptr()) {
            return Edited::Restart;
        }
        self.link(place, word, held, &mut [Some(locked)]);
        Edited::Done
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// The place of a child, or that of the root.
    pub(super) fn place<'g>(&'g self, parent: Option<Step<'g>>) -> &'g Place {
        parent.map_or(&self.root, |step| step.node.child(step.at))
    }

    /// Locks the node of a child's place, or the root.
    pub(super) fn hold_place<'g>(&'g self, parent: Option<Step<'g>>) -> Option<Hold<'g>> {
        Hold::new(parent.map_or(&self.root_lock, |step| step.node.lock()))
    }

    /// The block that a key leads to, with the path to it. Nothing if the tree is empty.
    pub(super) fn path<'g>(
        &'g self,
        key: K::Ref<'_>,
        path: &mut Vec<Step<'g>>,
        _guard: &'g Guard,
    ) -> Result<Option<BlockRef<'g, K>>, AllocError> {
        path.clear();
        let mut buffer = [0; 8];
        let probe = K::probe(K::shorten(key), &mut buffer);
        let mut reserved_all = Ok(());
        let block = Self::walk(self.root.word(), |node| {
            let at = self.child_of(node, &probe);
            match reserved(path, 1) {
                Ok(path) => path.push(Step { node, at }),
                Err(error) => reserved_all = Err(error),
            }
            at
        });
        reserved_all.map(|()| block)
    }

    /// The first block of a subtree, or the last one if `LAST`, and the words on the way. Nothing
    /// if the word leads nowhere.
    pub(super) fn edge<'g, const LAST: bool>(
        word: Word,
        trail: &mut Trail,
        _guard: &'g Guard,
    ) -> Option<BlockRef<'g, K>> {
        trail.clear();
        let block = Self::walk(word, |node| {
            trail.push(Word::node(node.as_ptr()));
            if LAST { node.len() - 1 } else { 0 }
        })?;
        trail.push(Word::block(block.as_ptr()));
        Some(block)
    }
}
