//! Batches of lookups, whose cache misses overlap.
//!
//! A group of addresses goes down the tree step by step: one pass over the group reads the words
//! that the addresses have come to, and prefetches the nodes that these lead to; the next pass finds
//! the places in these nodes, and prefetches them. An address that has come to a leaf leaves the
//! group. So the loop has no branch that depends on an address, except at its end.

use super::address::{Address, stride};
use super::count::Count;
use super::tree::Snapshot;
use super::word::Word;
use silvics_sync::prefetch;

/// The number of addresses of a group: more than the 10 to 16 line fill buffers of a core, since
/// some of the lines are in the cache.
pub(super) const GROUP: usize = 32;

impl<A: Address> Snapshot<'_, A> {
    /// The leaves of the longest prefixes that cover the addresses; none where there is none.
    #[inline(always)]
    pub(super) fn find_group(self, addresses: &[A; GROUP], count: impl Count) -> [Word; GROUP] {
        let (mut words, mut best) = ([self.root(); GROUP], [Word::NONE; GROUP]);
        let mut open: [u8; GROUP] = std::array::from_fn(|at| at as u8);
        let mut places = [std::ptr::null::<u64>(); GROUP];
        let (mut left, mut depth) = (if self.root().is_child() { GROUP } else { 0 }, 0);
        while left > 0 {
            let mut inside = 0;
            for at in 0..left {
                let lane = open[at];
                let at = usize::from(lane);
                // SAFETY: the words are the root, and words that were read in nodes of this tree.
                let Some(node) = (unsafe { self.node(words[at]) }) else { continue };
                best[at] = node.inherited().or(best[at]);
                words[at] = Word::NONE;
                let depth = if A::SKIPS { node.depth() } else { depth };
                if node.is_on_path(addresses[at], depth) {
                    places[at] = node.place(addresses[at].digit(depth), count);
                    prefetch(places[at]);
                    open[inside] = lane;
                    inside += 1;
                }
            }
            left = 0;
            for at in 0..inside {
                let lane = open[at];
                let at = usize::from(lane);
                // SAFETY: the place is that of a word of a node of this tree, which stays readable.
                let word = Word::from_raw(unsafe { places[at].read() });
                words[at] = word;
                // A leaf is no address: a prefetch of it could cost a walk through page tables.
                prefetch(if word.is_child() { word.node().cast() } else { places[at] });
                open[left] = lane;
                left += usize::from(word.is_child());
            }
            depth += stride(depth);
        }
        std::array::from_fn(|at| words[at].or(best[at]))
    }
}
