//! Verifies the invariants of a quiescent tree.

use super::Blocks;
use super::block::{self, BlockRef};
use super::key::{Bit, BlockKey};
use super::node::NodeRef;
use super::objects::placed_key;
use super::order::Gap;
use super::word::{Leads, Word};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;

/// The keys of a subtree: its first and last one, and the number of present ones.
struct Extent<K: BlockKey + ?Sized> {
    first: K::Owned,
    last: K::Owned,
    entries: usize,
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// Walks the tree and verifies I1 to I9. Calls `see` with each object, and returns the number
    /// of entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let root = self.root.word();
        let entries = if root.is_none() { 0 } else { self.check_word(root, 0, see)?.entries };
        self.objects.frame().counted(entries)
    }

    fn check_word(
        &self,
        word: Word,
        depth: Bit,
        see: &mut See<'_>,
    ) -> Result<Extent<K>, Violation> {
        // SAFETY: I3: access is exclusive, and the word is linked.
        match unsafe { word.leads::<K>() } {
            Leads::Node(node) => self.check_node(node, depth, see),
            Leads::Block(block) => Self::check_block(block, depth, see),
        }
    }

    fn check_node(
        &self,
        node: NodeRef<'_>,
        depth: Bit,
        see: &mut See<'_>,
    ) -> Result<Extent<K>, Violation> {
        see(node.placed());
        let bits: Vec<Bit> = node.bits().collect();
        if !node.lock().is_open() {
            return violation("I4", "a linked node is locked or obsolete".into());
        }
        let ascend = bits.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascend || bits.first().is_none_or(|bit| *bit < depth) {
            return violation("I6", format!("bits {bits:?} below depth {depth}"));
        }
        let weight = |path: u32, at: usize| path >> (bits.len() - 1 - at) & 1 == 1;
        let mut whole: Option<Extent<K>> = None;
        for at in 0..node.len() {
            // The path to a child tests the bits where it parts from its neighbours.
            let neighbours = [at.checked_sub(1), Some(at + 1).filter(|next| *next < node.len())];
            let tested = |other: usize| {
                let parting = node.path(other) ^ node.path(at);
                bits[bits.len() - 1 - parting.ilog2() as usize]
            };
            let last = neighbours.into_iter().flatten().map(tested).max();
            let Some(last) = last else { return violation("I6", "an only child".into()) };
            let extent = self.check_word(node.child(at).word(), last + 1, see)?;
            for (n, bit) in bits.iter().enumerate() {
                let [first, last] = [&extent.first, &extent.last].map(|key| K::borrow(key));
                if weight(node.path(at), n) && !(K::has(first, *bit) && K::has(last, *bit)) {
                    return violation("I6", format!("child {at} lacks bit {bit} of its path"));
                }
            }
            let mut buffer = [0; 8];
            let probe = K::probe(K::borrow(&extent.first), &mut buffer);
            if self.child_of(node, &probe) != at {
                return violation("I6", format!("{:?} is not below child {at}", extent.first));
            }
            whole = Some(match whole {
                None => extent,
                Some(Extent { last, .. }) if last >= extent.first => {
                    return violation("I7", format!("{last:?} before {:?}", extent.first));
                }
                Some(Extent { first, entries, .. }) => {
                    Extent { first, last: extent.last, entries: entries + extent.entries }
                }
            });
        }
        let Some(whole) = whole else { return violation("I6", "a node without children".into()) };
        let differ = K::difference(K::borrow(&whole.first), K::borrow(&whole.last));
        if differ != bits.first().copied() {
            return violation("I6", format!("a node of {bits:?} parts at {differ:?}"));
        }
        Ok(whole)
    }

    fn check_block(
        block: BlockRef<'_, K>,
        depth: Bit,
        see: &mut See<'_>,
    ) -> Result<Extent<K>, Violation> {
        see(block.placed());
        if !block.lock().is_open() || !block.admits_updates() {
            return violation("I4", "a linked block is locked, obsolete or barred".into());
        }
        if block.depth() < depth {
            return violation("I6", format!("depth {} instead of {depth}", block.depth()));
        }
        let (order, entries) = (block.order(), block.entries());
        let live = block.live();
        if entries == 0 || live & !block::all(entries) != 0 {
            return violation("I2", format!("{entries} entries, present {live:#x}"));
        }
        if !block.prefix_len().is_multiple_of(4) {
            return violation("I9", format!("a prefix of {} bytes", block.prefix_len()));
        }
        for at in 0..entries {
            let key = block.key(at);
            // The other keys are made of the prefix, so only a long one can lack it.
            if K::SHARES && K::common(K::shorten(key), block.key(0)) < block.prefix_len() {
                return violation("I9", format!("{key:?} lacks the prefix of its block"));
            }
            if block.tag(at) != block::tag(K::hash(K::shorten(key))) {
                return violation("I2", format!("the tag of {key:?} is wrong"));
            }
            if let Some(long) = block.outside(at) {
                see(placed_key(long));
            }
        }
        let key = |at: usize| block.key(usize::from(order.numbers()[at]));
        for at in 1..entries {
            let (before, key) = (key(at - 1), key(at));
            if before >= key {
                return violation("I7", format!("{before:?} before {key:?}"));
            }
            let gap = K::difference(before, key).map(Gap::of);
            if K::FIXED == 0 && gap != Some(order.gap(at)) {
                return violation(
                    "I8",
                    format!("{:?} between {before:?} and {key:?}", order.gap(at)),
                );
            }
        }
        let (first, last) = (key(0), key(entries - 1));
        if K::difference(first, last).is_some_and(|bit| bit < depth) {
            return violation("I6", format!("{first:?} and {last:?} part above depth {depth}"));
        }
        Ok(Extent {
            first: K::to_owned(first),
            last: K::to_owned(last),
            entries: live.count_ones() as usize,
        })
    }
}
