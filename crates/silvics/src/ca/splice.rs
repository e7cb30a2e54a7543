//! The content of a node after a change, and where it is divided if it is too large for one node.
//!
//! # Runs
//! A node is divided in the middle, unless the last insertions into it were each beside the one
//! before: then others probably follow, and the node is divided there. So keys that ascend or
//! descend fill their nodes, also if there are many such runs at once and other keys between them.
//! Each node counts the insertions of its last run for that.
//!
//! A division may leave one entry in a node. But it takes [`LONG`] insertions into a node until it
//! is divided at a run, and the parts begin to count anew. So no order of insertions makes many
//! small nodes.

use super::key::Slots;
use super::node::{NodeRef, Run};
use super::word::Word;

/// The insertions of a run after which a node is divided there.
const LONG: usize = if cfg!(silvics_shuttle) { 2 } else { 8 };

/// A value or a child.
#[derive(Clone, Copy)]
pub(crate) enum Item {
    Value(u64),
    Child(Word),
}

/// The content of a node after a change: some of its entries, and others in the place of those from
/// `at` on.
pub(crate) struct Spliced<'s, 'g, K: Slots + ?Sized> {
    pub(crate) node: NodeRef<'g, K>,
    pub(crate) at: usize,
    /// The number of entries that the others replace.
    pub(crate) cut: usize,
    pub(crate) others: &'s [(K::Slot, Item)],
}

impl<K: Slots + ?Sized> Spliced<'_, '_, K> {
    pub(crate) fn len(&self) -> usize {
        self.node.len() - self.cut + self.others.len()
    }

    pub(crate) fn entry(&self, at: usize) -> (K::Slot, Item) {
        let of = |at: usize| {
            let item = if self.node.is_leaf() {
                Item::Value(self.node.value(at))
            } else {
                Item::Child(self.node.child(at))
            };
            (self.node.key(at), item)
        };
        match at.checked_sub(self.at) {
            None => of(at),
            Some(behind) if behind < self.others.len() => self.others[behind],
            Some(behind) => of(self.at + self.cut + behind - self.others.len()),
        }
    }

    /// Adds entries of the content behind those of a node with room that no other thread has yet.
    /// The node of the content does not change meanwhile.
    pub(crate) fn fill(&self, node: NodeRef<'_, K>, entries: std::ops::Range<usize>) {
        let before = node.len();
        let to = |at: usize| before + at - entries.start;
        let part = |from: usize, end: usize| {
            let from = from.max(entries.start);
            from..end.min(entries.end).max(from)
        };
        let (front, behind) = (self.at, self.at + self.others.len());
        let first = part(0, front);
        node.copy(to(first.start), self.node, first);
        for at in part(front, behind) {
            node.put(to(at), self.others[at - front]);
        }
        let last = part(behind, self.len());
        let in_node = |at: usize| at - self.others.len() + self.cut;
        node.copy(to(last.start), self.node, in_node(last.start)..in_node(last.end));
        // A part begins a new run.
        let len = |run: Run| if entries.len() == self.len() { run.len } else { 1 };
        let run = self.run().filter(|run| entries.contains(&run.at));
        let run = run.map(|run| Run { at: before + run.at - entries.start, len: len(run) });
        node.set_head(before + entries.len(), run);
    }

    /// The position of a new entry. Its children are two in the place of one.
    fn inserted(&self) -> Option<usize> {
        (self.others.len() > self.cut).then(|| self.at + self.others.len() - 1)
    }

    /// The last run of insertions, with that of the new entry.
    fn run(&self) -> Option<Run> {
        match self.inserted() {
            Some(new) => Some(Run::after(self.node.run(), new)),
            None => self.node.run().filter(|_| self.others.len() == self.cut),
        }
    }

    /// Whether the new entry belongs to a run and stands right behind the one before.
    pub(crate) fn ascends(&self) -> bool {
        self.is_run(|before, new| before + 1 == new)
    }

    /// Whether the new entry belongs to a run and has taken the position of the one before, which
    /// stands right behind it now.
    pub(crate) fn descends(&self) -> bool {
        self.is_run(|before, new| before == new)
    }

    fn is_run(&self, follows: impl Fn(usize, usize) -> bool) -> bool {
        let is_long = self.run().is_some_and(|run| run.len >= LONG);
        let before = self.node.run().zip(self.inserted());
        is_long && before.is_some_and(|(before, new)| follows(before.at, new))
    }

    /// The entries of the first one of two nodes that divide the content among them.
    pub(crate) fn division(&self) -> usize {
        let len = self.len();
        match self.inserted() {
            Some(new) if self.ascends() => (new + 1).min(len - 1),
            // With the new entry, or with the child that will be divided again.
            Some(_) if self.descends() => self.at.max(1),
            _ => len / 2,
        }
    }
}

/// The objects that replace a node.
pub(crate) enum Carry<K: Slots + ?Sized> {
    One(Word),
    /// Two neighbours with the bound between them.
    Two(Word, K::Slot, Word),
}
