//! Batches of lookups, whose cache misses overlap.
//!
//! A group of addresses goes down the tree step by step: one pass over the group finds the places
//! of the words in the nodes that the addresses have come to, and prefetches them; the next pass
//! reads the words, and prefetches the nodes that these lead to. An address that has come to a leaf
//! leaves the group. The passes have no branch that depends on an address, except at their end.

use super::address::{Address, stride};
use super::count::Count;
use super::node::Node;
use super::tree::Snapshot;
use super::word::Word;
use silvics_sync::prefetch;

/// The number of addresses of a group: more than the 10 to 16 line fill buffers of a core, since
/// some of the lines are in the cache.
pub(super) const GROUP: usize = 32;

/// One address of a group.
#[derive(Clone, Copy)]
struct Lane<A> {
    address: A,
    /// The word that the address has come to.
    word: Word,
    /// The last leaf on its way.
    best: Word,
    /// The place of the next word.
    place: *const u64,
}

impl<A: Address> Snapshot<'_, A> {
    /// Goes down to the first node of 8 bits, or to a leaf, and returns the word and the last leaf
    /// on the way. The nodes above are few and small: they are in the first-level cache.
    #[inline(always)]
    fn enter(self, address: A) -> (Word, Word) {
        let (mut word, mut best, mut depth) = (self.root(), Word::NONE, 0);
        // SAFETY: the words are the root, and words that were read in nodes of this tree.
        while let Some(node) = unsafe { self.node(word) } {
            if A::SKIPS {
                depth = node.depth();
            }
            if depth >= 8 {
                break;
            }
            best = node.inherited().or(best);
            if !node.is_on_path(address, depth) {
                return (Word::NONE, best);
            }
            // SAFETY: nodes of 4 bits are wide, so the place needs no count.
            word = Word::from_raw(unsafe { node.place_if_wide(address.digit(depth)).read() });
            depth += 4;
        }
        (word, best)
    }

    /// The leaves of the longest prefixes that cover the addresses; none where there is none.
    #[inline(always)]
    pub(super) fn find_group(self, addresses: &[A; GROUP], count: impl Count) -> [Word; GROUP] {
        let mut lanes = addresses.map(|address| {
            let (word, best) = self.enter(address);
            Lane { address, word, best, place: std::ptr::null() }
        });
        let (mut open, mut left, mut depth) = ([0_u8; GROUP], 0, 8);
        for (at, lane) in (0..).zip(&lanes) {
            open[left % GROUP] = at;
            left += usize::from(lane.word.is_child());
        }
        while left > 0 {
            let mut inside = 0;
            for at in 0..left {
                let number = open[at % GROUP];
                let lane = &mut lanes[usize::from(number) % GROUP];
                // SAFETY: lanes that are open have children, which are the root, or were read in
                // nodes of this tree.
                let node: Node<'_, A> = unsafe { Node::new(lane.word) };
                lane.best = node.inherited().or(lane.best);
                let depth = if A::SKIPS { node.depth() } else { depth };
                let is_on_path = node.is_on_path(lane.address, depth);
                lane.word = Word::NONE;
                lane.place = node.place_in_batch(lane.address.digit(depth), count);
                prefetch(lane.place);
                open[inside % GROUP] = number;
                inside += usize::from(is_on_path);
            }
            left = 0;
            for at in 0..inside {
                let number = open[at % GROUP];
                let lane = &mut lanes[usize::from(number) % GROUP];
                // SAFETY: the place is that of a word of a node of this tree, which stays readable.
                let word = Word::from_raw(unsafe { lane.place.read() });
                lane.word = word;
                // A leaf is no address: a prefetch of it could cost a walk through page tables.
                prefetch(if word.is_child() {
                    word.node().cast_const().cast()
                } else {
                    lane.place
                });
                open[left % GROUP] = number;
                left += usize::from(word.is_child());
            }
            depth += stride(depth);
        }
        lanes.map(|lane| lane.word.or(lane.best))
    }
}
