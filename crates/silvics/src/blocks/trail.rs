//! The words that a walk along an end of the tree has met, and other lists of words.
//!
//! A walk is no snapshot: while it stands at a node that has been replaced, the node below may get
//! another first child. Two walks one after the other that meet the same words are a snapshot: each
//! place led to its word when the second walk began. A word that has left its place does not come
//! back while a guard keeps its object from being reused. Only a block can come back to the root,
//! and only under its own lock.

use super::word::Word;
use crate::error::{AllocError, reserved};

/// The words that a walk has met, in order.
pub(super) type Trail = Words<24>;

/// A list of words. The first `N` take no memory of their own.
pub(super) struct Words<const N: usize> {
    few: [Word; N],
    len: usize,
    more: Vec<Word>,
}

impl<const N: usize> Words<N> {
    pub(super) fn new() -> Self {
        Self { few: [Word::NONE; N], len: 0, more: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.more.clear();
    }

    /// Makes room for `more` words.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), AllocError> {
        if self.len + more <= N {
            return Ok(());
        }
        reserved(&mut self.more, more).map(|_| ())
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

    pub(super) fn iter(&self) -> impl Iterator<Item = Word> {
        self.few[..self.len].iter().chain(&self.more).copied()
    }
}

impl<const N: usize> PartialEq for Words<N> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
