//! Batches: the misses of several keys overlap.
//!
//! A group of keys goes down the index in step. Each key asks for the line that it reads next, and
//! the line arrives while the others ask for theirs.

use super::Words;
use super::block::BlockRef;
use super::key::WordKey;
use super::node::NodeRef;
use super::slots::SlotsRef;
use super::word::{Leads, Word};
use crate::domain::Guard;
use silvics_pool::Placement;

/// The number of keys of a group. It is the number of line fill buffers of a core, 10 to 16.
const GROUP: usize = 16;
/// The entries of a batch of upserts that `warm_up` is shown at a time.
pub(super) const WARMED: usize = 64;

impl<K: WordKey, P: Placement> Words<K, P> {
    /// See [`Batches::get_many`](crate::Batches::get_many).
    pub(super) fn find_many(&self, keys: &[K], values: &mut [Option<u64>], guard: &Guard) {
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            let leaves = self.leaves(keys.len(), |at| keys[at], guard);
            for ((key, value), leaf) in keys.iter().zip(values).zip(leaves) {
                *value = self.value_in(leaf, *key);
            }
        }
    }

    /// Brings the lines that upserts of some keys read first into the cache.
    pub(super) fn warm_up(&self, entries: &[(K, u64)], guard: &Guard) {
        for entries in entries.chunks(GROUP) {
            self.leaves(entries.len(), |at| entries[at].0, guard);
        }
    }

    /// The leaves that the keys of a group lead to. The lines that lookups read there are on the
    /// way.
    #[inline]
    fn leaves(&self, len: usize, key: impl Fn(usize) -> K, _guard: &Guard) -> [Word; GROUP] {
        let mut words = [Word::NONE; GROUP];
        for (at, word) in words[..len].iter_mut().enumerate() {
            *word = self.first(key(at));
            Self::prefetch(*word, key(at));
        }
        loop {
            let mut nodes = false;
            for (at, word) in words[..len].iter_mut().enumerate() {
                // SAFETY: I3: the word was read under the guard of the caller's operation.
                let Leads::Node(node) = (unsafe { word.leads::<K>() }) else { continue };
                P::saw(|| node.passed(key(at)));
                *word = node.find(key(at)).unwrap_or(Word::NONE);
                Self::prefetch(*word, key(at));
                nodes = true;
            }
            if !nodes {
                return words;
            }
        }
    }

    /// Prefetches what a search for a key reads in an object.
    #[inline(always)]
    fn prefetch(word: Word, key: K) {
        // SAFETY: I3: the word was read under the guard of the caller's operation.
        match unsafe { word.leads::<K>() } {
            Leads::None => {}
            Leads::Node(node) => NodeRef::prefetch(node, key),
            Leads::Block(block) => BlockRef::prefetch(block, key),
            Leads::Slots(slots) => SlotsRef::prefetch(slots, key),
        }
    }
}
