//! The words that a walk along an end of the tree has met.
//!
//! A walk is no snapshot: while it stands at a node that has been replaced, the node below may get
//! another first child. Two walks one after the other that meet the same words are a snapshot: each
//! place led to its word when the second walk began. A word that has left its place does not come
//! back while a guard keeps its object from being reused. Only a block can come back to the root,
//! and only under its own lock.

use super::word::Word;

/// The words that take no memory of their own.
const FEW: usize = 24;

/// The words that a walk has met, in order.
pub(super) struct Trail {
    few: [Word; FEW],
    len: usize,
    more: Vec<Word>,
}

impl Trail {
    pub(super) fn new() -> Self {
        Self { few: [Word::NONE; FEW], len: 0, more: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.more.clear();
    }

    pub(super) fn push(&mut self, word: Word) {
        match self.few.get_mut(self.len) {
            Some(place) => {
                *place = word;
                self.len += 1;
            }
            None => self.more.push(word),
        }
    }
}

impl PartialEq for Trail {
    fn eq(&self, other: &Self) -> bool {
        self.few[..self.len] == other.few[..other.len] && self.more == other.more
    }
}
