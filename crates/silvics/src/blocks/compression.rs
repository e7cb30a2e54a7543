//! The bytes that common prefixes save, or would save.

use super::Blocks;
use super::key::BlockKey;
use super::shape::shared;
use super::word::Leads;
use silvics_pool::Placement;

/// The common prefixes of byte strings in blocks. A [`BlockTree`](crate::BlockTree) of
/// [`Prefixed`](crate::key::Prefixed) keys stores them once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCompression {
    /// Whether the tree stores a prefix once in each block. Otherwise `prefix_bytes` are those of
    /// the prefixes that it would store.
    pub once: bool,
    /// The number of blocks.
    pub blocks: usize,
    /// The number of keys that are in a block, present or not. Long keys lie outside.
    pub keys: usize,
    /// The bytes of all these keys.
    pub key_bytes: usize,
    /// Those of them that are in the prefix of their block.
    pub shared_bytes: usize,
    /// The bytes of the prefixes of all blocks.
    pub prefix_bytes: usize,
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// Walks the tree, to which access is exclusive. Nothing if its blocks have no byte
    /// strings.
    pub(super) fn compressed(&mut self) -> Option<PrefixCompression> {
        if K::FIXED > 0 || K::IN_ENTRIES {
            return None;
        }
        let mut found = PrefixCompression { once: K::SHARES, ..PrefixCompression::default() };
        let mut open = vec![self.root.word()];
        while let Some(word) = open.pop() {
            if word.is_none() {
                continue;
            }
            // SAFETY: I3: access is exclusive, and the word is linked.
            let block = match unsafe { word.leads::<K>() } {
                Leads::Node(node) => {
                    open.extend((0..node.len()).map(|at| node.child(at).word()));
                    continue;
                }
                Leads::Block(block) => block,
            };
            let order = block.bare_order();
            let ends = [0, order.len() - 1].map(|at| block.key(usize::from(order.numbers()[at])));
            let would_be = shared::<K>((ends[0], ends[1]), block.depth());
            let prefix = if K::SHARES { block.prefix_len() } else { would_be };
            let inside = (0..block.entries()).filter(|at| block.outside(*at).is_none());
            found.blocks += 1;
            found.prefix_bytes += prefix;
            for at in inside {
                found.keys += 1;
                found.key_bytes += K::len(block.key(at));
                found.shared_bytes += prefix;
            }
        }
        Some(found)
    }
}
