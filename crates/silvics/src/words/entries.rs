//! The entries of a block in the order of their keys.

use super::block::{BlockRef, MAX_PLACES};
use super::key::WordKey;
use super::order::NO_ORDER;
use super::slots::{SLOTS, SlotsRef};

/// Keys in ascending order with the places that have them, and the words of their values.
pub(super) struct Entries<K, const MOST: usize> {
    pub(super) keys: [K; MOST],
    pub(super) words: [u64; MOST],
    pub(super) at: [u8; MOST],
    pub(super) len: usize,
}

pub(super) type BlockEntries<K> = Entries<K, MAX_PLACES>;
pub(super) type SlotEntries<K> = Entries<K, SLOTS>;

impl<K: WordKey, const MOST: usize> Entries<K, MOST> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { keys: [K::ENDS[0]; MOST], words: [0; MOST], at: [0; MOST], len: 0 }
    }

    pub(super) fn keys(&self) -> &[K] {
        &self.keys[..self.len]
    }
}

impl<K: WordKey, const MOST: usize> Entries<K, MOST> {
    /// Reads the entries of a block that the caller has locked and closed.
    pub(super) fn read_closed(&mut self, block: BlockRef<'_, K>, like: K) {
        let (mut order, closed) = (NO_ORDER, block.word().marks().closed());
        let len = block.ordered(&mut order, like.top()).0;
        self.len = 0;
        for place in &order[..len] {
            let ((key, word), len) = (block.entry(*place, like.top()), self.len);
            (self.keys[len], self.words[len], self.at[len]) = (key, word, *place);
            self.len += usize::from(word != closed);
        }
    }
}

impl<K: WordKey, const MOST: usize> Entries<K, MOST> {
    /// Reads the entries of an array of slots that the caller has locked, and closes the others.
    pub(super) fn read_slots(&mut self, slots: SlotsRef<'_, K>) {
        slots.close();
        let (base, closed) = (slots.key(0), slots.word().marks().closed());
        self.len = 0;
        for at in 0..SLOTS {
            let (word, len) = (slots.value(at).word(), self.len);
            (self.keys[len], self.words[len], self.at[len]) = (base.with(0, at), word, at as u8);
            self.len += usize::from(word != closed);
        }
    }
}
