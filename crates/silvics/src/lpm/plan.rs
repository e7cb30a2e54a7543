//! A node taken apart, so that prefixes can be added and removed, and put together again.
//!
//! Each slot shows the longest of the node's prefixes that cover it: as its word, or in the child
//! that it leads to (`inherited`). A prefix that no slot shows is in the list of hidden ones.

use super::address::{Address, MOST, stride};
use super::node::{Contents, Hidden, Node};
use super::word::Word;
use std::marker::PhantomData;

/// The most hidden prefixes: all of the shorter ones that a node of 8 bits can have.
const MOST_HIDDEN: usize = 254;

/// The contents of a node.
///
/// P1: children in slots are not freed during `'g`.
pub(super) struct Plan<'g, A> {
    pub(super) depth: u8,
    pub(super) path: A,
    pub(super) inherited: Word,
    slots: [Word; MOST],
    /// The leaves that children in slots inherit from now on, as far as they change.
    inherits: [Word; MOST],
    changed: [u64; MOST / 64],
    hidden: [Hidden; MOST_HIDDEN],
    hidden_len: usize,
    lives: PhantomData<&'g ()>,
}

impl<'g, A: Address> Plan<'g, A> {
    /// A node without contents.
    pub(super) fn empty(depth: u8, path: A, inherited: Word) -> Self {
        Self {
            depth,
            path: path.first_bits(depth),
            inherited,
            slots: [Word::NONE; MOST],
            inherits: [Word::NONE; MOST],
            changed: [0; MOST / 64],
            hidden: [Hidden::NONE; MOST_HIDDEN],
            hidden_len: 0,
            lives: PhantomData,
        }
    }

    /// The contents of a node, to which this address leads.
    pub(super) fn of(node: Node<'g, A>, address: A) -> Self {
        let mut plan = Self::empty(node.depth(), address, node.inherited());
        for (first, last, word) in node.runs() {
            plan.slots[first..=last].fill(word);
        }
        for hidden in node.hidden() {
            plan.hide(hidden);
        }
        plan
    }

    /// The contents for [`Contents::write`].
    pub(super) fn contents(&self) -> Contents<'_> {
        Contents {
            inherited: self.inherited,
            depth: self.depth,
            path: self.path.to_path(),
            slots: &self.slots[..self.len()],
            hidden: &self.hidden[..self.hidden_len],
        }
    }

    fn len(&self) -> usize {
        1 << stride(self.depth)
    }

    /// Puts a word into a slot.
    ///
    /// # Safety
    /// If it is a child, it is one of this family whose node is not freed during `'g` (P1).
    pub(super) unsafe fn put(&mut self, slot: usize, word: Word) {
        self.slots[slot] = word;
    }

    /// The child in a slot and the leaf that it inherits from now on, if that changes.
    pub(super) fn changed(&self, slot: usize) -> Option<(Word, Word)> {
        self.is_changed(slot).then(|| (self.slots[slot], self.inherits[slot]))
    }

    fn is_changed(&self, slot: usize) -> bool {
        self.changed[slot / 64] >> (slot % 64) & 1 == 1
    }

    /// Whether the node has neither a prefix nor a child.
    pub(super) fn is_empty(&self) -> bool {
        self.hidden_len == 0 && self.slots[..self.len()].iter().all(|word| word.is_none())
    }

    /// The only child, if the node has one and no prefix.
    pub(super) fn only_child(&self) -> Option<Word> {
        let mut words = self.slots[..self.len()].iter().filter(|word| !word.is_none());
        let only = words.next().copied().filter(|word| word.is_child())?;
        let inherits = self.shown(self.slots.iter().position(|word| *word == only)?);
        (self.hidden_len == 0 && words.next().is_none() && inherits.is_none()).then_some(only)
    }

    /// The leaf of the longest prefix of the node that covers a slot; none if there is none.
    pub(super) fn shown(&self, slot: usize) -> Word {
        match self.slots[slot] {
            _ if self.is_changed(slot) => self.inherits[slot],
            // SAFETY: P1.
            child if child.is_child() => unsafe { Node::<A>::new(child) }.inherited(),
            word => word,
        }
    }

    fn show(&mut self, slot: usize, leaf: Word) {
        if self.slots[slot].is_child() {
            self.inherits[slot] = leaf;
            self.changed[slot / 64] |= 1 << (slot % 64);
        } else {
            self.slots[slot] = leaf;
        }
    }

    fn hide(&mut self, hidden: Hidden) {
        self.hidden[self.hidden_len] = hidden;
        self.hidden_len += 1;
    }

    /// Takes a prefix off the list of hidden ones.
    fn unhide(&mut self, first: usize, behind: u8) -> Option<Word> {
        let list = &self.hidden[..self.hidden_len];
        let at = list.iter().position(|hidden| hidden.is_at(first, behind))?;
        let payload = self.hidden[at].payload();
        self.hidden_len -= 1;
        self.hidden[at] = self.hidden[self.hidden_len];
        Some(Word::leaf(payload, self.depth + behind))
    }

    /// The slots of the prefix of this slot whose length is `behind` the depth.
    fn slots_of(&self, slot: usize, behind: u8) -> std::ops::Range<usize> {
        let count = 1 << (stride(self.depth) - behind);
        let first = slot & !(count - 1);
        first..first + count
    }

    /// The leaf of a prefix, if some slot shows it.
    fn find_shown(&self, slot: usize, behind: u8) -> Option<Word> {
        let mut shown = self.slots_of(slot, behind).map(|slot| self.shown(slot));
        shown.find(|word| word.is_leaf_of(self.depth + behind))
    }

    /// Gives the prefix of a leaf this leaf. Returns the leaf that it had. `slot` is the first one
    /// of the prefix.
    pub(super) fn insert(&mut self, slot: usize, leaf: Word) -> Option<Word> {
        let (len, behind) = (leaf.len(), leaf.len() - self.depth);
        if let Some(old) = self.find_shown(slot, behind) {
            for slot in self.slots_of(slot, behind) {
                if self.shown(slot).is_leaf_of(len) {
                    self.show(slot, leaf);
                }
            }
            return Some(old);
        }
        if let Some(old) = self.unhide(slot, behind) {
            self.hide(Hidden::new(slot, behind, leaf.payload()));
            return Some(old);
        }
        // All slots that show a shorter prefix show the same one: the longest that covers all.
        let (mut covered, mut is_shown) = (Word::NONE, false);
        for slot in self.slots_of(slot, behind) {
            let shown = self.shown(slot);
            if shown.is_none() || shown.len() < len {
                covered = shown.or(covered);
                self.show(slot, leaf);
                is_shown = true;
            }
        }
        if !is_shown {
            self.hide(Hidden::new(slot, behind, leaf.payload()));
        }
        if covered.is_leaf() {
            let behind = covered.len() - self.depth;
            if self.find_shown(slot, behind).is_none() {
                let first = self.slots_of(slot, behind).start;
                self.hide(Hidden::new(first, behind, covered.payload()));
            }
        }
        None
    }

    /// Removes a prefix, and returns the leaf that it had. The next shorter prefix of the node
    /// takes its place.
    pub(super) fn remove(&mut self, slot: usize, len: u8) -> Option<Word> {
        let behind = len - self.depth;
        let Some(old) = self.find_shown(slot, behind) else {
            return self.unhide(slot, behind);
        };
        let mut next = Word::NONE;
        for behind in (0..behind).rev() {
            let first = self.slots_of(slot, behind).start;
            let found = self.find_shown(slot, behind).or_else(|| self.unhide(first, behind));
            if let Some(found) = found {
                next = found;
                break;
            }
        }
        for slot in self.slots_of(slot, behind) {
            if self.shown(slot).is_leaf_of(len) {
                self.show(slot, next);
            }
        }
        Some(old)
    }
}
